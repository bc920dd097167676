/* Promises of common/digest.h: published SHA-256 and base64 vectors, and every kind of file that is refused. */
#include "common/cleanup.h"
#include "common/digest.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC_SHA256   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

START_TEST(sha256_agrees_with_the_published_vectors)
{
    char hex[HF_SHA256_HEX_SIZE];
    hf_sha256_hex("", 0, hex);
    ck_assert_str_eq(hex, EMPTY_SHA256);
    hf_sha256_hex(NULL, 0, hex);
    ck_assert_str_eq(hex, EMPTY_SHA256);
    hf_sha256_hex("abc", 3, hex);
    ck_assert_str_eq(hex, ABC_SHA256);
    hf_sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
    ck_assert_str_eq(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}
END_TEST

START_TEST(a_million_letters_in_uneven_pieces_hash_as_one)
{
    struct hf_sha256 hash;
    char piece[1009], hex[HF_SHA256_HEX_SIZE];
    uint8_t digest[32];
    memset(piece, 'a', sizeof piece);
    hf_sha256_init(&hash);
    for (size_t left = 1000000; left > 0;) {
        size_t length = left < sizeof piece ? left : sizeof piece;
        hf_sha256_update(&hash, piece, length);
        left -= length;
    }
    hf_sha256_final(&hash, digest);
    hf_hex(digest, sizeof digest, hex);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

START_TEST(files_of_all_sizes_around_the_buffer_hash_as_their_bytes)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 262143, 262144, 262145, 1000000};
    struct scratch scratch;
    scratch_make(&scratch);
    cleanup_free char *bytes = malloc(1000000);
    for (size_t i = 0; i < 1000000; i++)
        bytes[i] = (char)(i * 7 % 251);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char path[300], expected[HF_SHA256_HEX_SIZE], found[HF_SHA256_HEX_SIZE];
        uint64_t size_bytes;
        struct hf_error err = {0};
        scratch_write(scratch.fd, "file", bytes, sizes[i]);
        snprintf(path, sizeof path, "%s/file", scratch.path);
        hf_sha256_hex(bytes, sizes[i], expected);
        ck_assert_msg(hf_sha256_file(path, sizes[i], found, &size_bytes, &err) == 0, "%s", err.message);
        ck_assert_str_eq(found, expected);
        ck_assert_uint_eq(size_bytes, sizes[i]);
    }
    scratch_remove(&scratch);
}
END_TEST

START_TEST(the_position_of_a_descriptor_does_not_matter_and_is_kept)
{
    struct scratch scratch;
    char hex[HF_SHA256_HEX_SIZE];
    scratch_make(&scratch);
    scratch_write(scratch.fd, "file", "abc", 3);
    cleanup_close int fd = openat(scratch.fd, "file", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(lseek(fd, 2, SEEK_SET), 2);
    ck_assert_int_eq(hf_sha256_fd(fd, 3, hex, NULL, NULL), 0);
    ck_assert_str_eq(hex, ABC_SHA256);
    ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 2);
    scratch_remove(&scratch);
}
END_TEST

static void assert_refused(const char *directory, const char *name, uint64_t max_bytes, const char *code, int number)
{
    char path[300], hex[HF_SHA256_HEX_SIZE];
    struct hf_error err = {0};
    snprintf(path, sizeof path, "%s/%s", directory, name);
    ck_assert_int_eq(hf_sha256_file(path, max_bytes, hex, NULL, &err), -1);
    ck_assert_str_eq(err.code, code);
    ck_assert_int_eq(err.saved_errno, number);
    ck_assert_ptr_nonnull(strstr(err.message, name));
}

START_TEST(what_is_not_a_regular_file_within_the_bound_is_refused)
{
    struct scratch scratch;
    scratch_make(&scratch);
    scratch_write(scratch.fd, "file", "abcd", 4);
    ck_assert_int_eq(symlinkat("file", scratch.fd, "link"), 0);
    ck_assert_int_eq(mkfifoat(scratch.fd, "fifo", 0600), 0);
    ck_assert_int_eq(mkdirat(scratch.fd, "directory", 0700), 0);
    assert_refused(scratch.path, "absent", 10, "digest-open-failed", ENOENT);
    assert_refused(scratch.path, "link", 10, "digest-not-regular", ELOOP);
    assert_refused(scratch.path, "fifo", 10, "digest-not-regular", 0); /* and does not wait for a writer */
    assert_refused(scratch.path, "directory", 10, "digest-not-regular", 0);
    assert_refused(scratch.path, "file", 3, "digest-too-large", 0);
    scratch_remove(&scratch);
}
END_TEST

struct growth {
    int fd;
    atomic_bool stop;
};

static void *grow(void *context)
{
    struct growth *growth = context;
    while (!atomic_load(&growth->stop))
        ck_assert_int_eq(write(growth->fd, "x", 1), 1);
    return NULL;
}

START_TEST(a_file_that_changes_while_it_is_hashed_is_refused)
{
    struct scratch scratch;
    struct growth growth = {.fd = -1};
    struct hf_error err = {0};
    pthread_t thread;
    char hex[HF_SHA256_HEX_SIZE];
    scratch_make(&scratch);
    growth.fd = openat(scratch.fd, "file", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(growth.fd, 64 << 20), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, grow, &growth), 0);
    int result = 0;
    for (int attempt = 0; attempt < 50 && result == 0; attempt++) /* the writer may not get a processor at once */
        result = hf_sha256_fd(growth.fd, 1U << 30, hex, NULL, &err);
    atomic_store(&growth.stop, true);
    pthread_join(thread, NULL);
    close(growth.fd);
    ck_assert_int_eq(result, -1);
    ck_assert_str_eq(err.code, "digest-changed");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_descriptor_that_cannot_be_read_is_an_error)
{
    struct scratch scratch;
    struct hf_error err = {0};
    char hex[HF_SHA256_HEX_SIZE];
    scratch_make(&scratch);
    scratch_write(scratch.fd, "file", "abc", 3);
    cleanup_close int fd = openat(scratch.fd, "file", O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(hf_sha256_fd(fd, 3, hex, NULL, &err), -1);
    ck_assert_str_eq(err.code, "digest-read-failed");
    ck_assert_int_eq(err.saved_errno, EBADF);
    ck_assert_int_eq(hf_sha256_fd(-1, 3, hex, NULL, &err), -1);
    ck_assert_str_eq(err.code, "digest-read-failed");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(base64_agrees_with_rfc_4648)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t length;
        cleanup_free char *text = hf_base64_encode(pairs[i][0], strlen(pairs[i][0]));
        ck_assert_str_eq(text, pairs[i][1]);
        cleanup_free uint8_t *bytes = hf_base64_decode(pairs[i][1], &length);
        ck_assert_ptr_nonnull(bytes);
        ck_assert_uint_eq(length, strlen(pairs[i][0]));
        ck_assert_int_eq(memcmp(bytes, pairs[i][0], length), 0);
    }
}
END_TEST

START_TEST(every_byte_survives_base64)
{
    uint8_t bytes[259];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        size_t back_length;
        cleanup_free char *text = hf_base64_encode(bytes, length);
        cleanup_free uint8_t *back = hf_base64_decode(text, &back_length);
        ck_assert_ptr_nonnull(back);
        ck_assert_uint_eq(back_length, length);
        ck_assert_int_eq(memcmp(back, bytes, length), 0);
    }
}
END_TEST

START_TEST(base64_that_is_not_canonical_is_refused)
{
    static const char *const texts[] = {
        "Zg",   "Zg=",  "Zg===",    "Zh==", "Zm9=",  "Zm9v=",           "Z===", "====", "=", "Zg==\n", " Zg==",
        "Zm-v", "Zm_v", "Zg==Zg==", "Z=g=", "Zm9vZ", "\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t length;
        ck_assert_msg(hf_base64_decode(texts[i], &length) == NULL, "accepted: %s", texts[i]);
    }
}
END_TEST

SCRATCH_MAIN("digest", sha256_agrees_with_the_published_vectors, a_million_letters_in_uneven_pieces_hash_as_one,
             files_of_all_sizes_around_the_buffer_hash_as_their_bytes,
             the_position_of_a_descriptor_does_not_matter_and_is_kept,
             what_is_not_a_regular_file_within_the_bound_is_refused, a_file_that_changes_while_it_is_hashed_is_refused,
             a_descriptor_that_cannot_be_read_is_an_error, base64_agrees_with_rfc_4648, every_byte_survives_base64,
             base64_that_is_not_canonical_is_refused)
