/* Promises of guest/build/image.h: an archive that cpio(1) reads as it was described, the same bytes for the same
 * entries whatever else differs, a manifest of every file, and a refusal of every list that is not one. */
#include "guest/build/image.h"
#include "scratch.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "tests/run_suite.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct hf_image image;

static void setup(void)
{
    scratch_setup();
    image.count = 0;
}

static void teardown(void)
{
    hf_image_clear(&image);
    scratch_teardown();
}

static int build(const char *list, struct hf_error *err)
{
    hf_image_clear(&image);
    if (hf_image_read_list(&image, scratch_text(0, "list", list), err) != 0)
        return -1;
    return hf_image_finish(&image, err);
}

static char *archive_of(const char *list, size_t *length)
{
    struct hf_error err = {0};
    char *bytes = NULL;
    ck_assert_msg(build(list, &err) == 0, "%s", err.message);
    FILE *out = open_memstream(&bytes, length);
    ck_assert_int_eq(hf_image_write_cpio(&image, out, &err), 0);
    fclose(out);
    return bytes;
}

static const char *sample_list(const char *order)
{
    static char list[1024];
    const char *init = scratch_text(1, "init-program", "#!init\n");
    const char *empty = scratch_text(2, "empty", "");
    char lines[4][256];
    snprintf(lines[0], sizeof lines[0], "dir /dev 0755\n");
    snprintf(lines[1], sizeof lines[1], "char /dev/console 0600 5 1\n");
    snprintf(lines[2], sizeof lines[2], "file /init 0755 %s\n", init);
    snprintf(lines[3], sizeof lines[3], "file /dev/empty 0440 %s\n", empty);
    list[0] = '\0';
    for (const char *at = order; *at; at++)
        strcat(list, lines[*at - '0']);
    return list;
}

START_TEST(cpio_lists_what_was_described)
{
    size_t length;
    cleanup_free char *bytes = archive_of(sample_list("0123"), &length);
    char command[512], listing[2048];
    snprintf(command, sizeof command, "TZ=UTC LC_ALL=C cpio --quiet -itv --numeric-uid-gid < %s",
             scratch_file(3, "archive", bytes, length));
    FILE *cpio = popen(command, "r");
    ck_assert_ptr_nonnull(cpio);
    size_t got = fread(listing, 1, sizeof listing - 1, cpio);
    listing[got] = '\0';
    ck_assert_int_eq(pclose(cpio), 0);
    ck_assert_str_eq(listing, "drwxr-xr-x   2 0        0               0 Jan  1  1970 dev\n"
                              "crw-------   1 0        0          5,   1 Jan  1  1970 dev/console\n"
                              "-r--r-----   1 0        0               0 Jan  1  1970 dev/empty\n"
                              "-rwxr-xr-x   1 0        0               7 Jan  1  1970 init\n");
}
END_TEST

START_TEST(order_times_owner_and_source_path_do_not_show)
{
    size_t first_length, second_length;
    cleanup_free char *first = archive_of(sample_list("0123"), &first_length);
    const char *list = sample_list("3210");
    char moved[128], rewritten[1024];
    snprintf(moved, sizeof moved, "%s/elsewhere", scratch_dir);
    const char *init = scratch_text(1, "init-program", "#!init\n");
    ck_assert_int_eq(rename(init, moved), 0);
    ck_assert_int_eq(chmod(moved, 0600), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(chown(moved, 12, 34), 0);
    const char *at = strstr(list, init);
    snprintf(rewritten, sizeof rewritten, "# a comment\n\n%.*s%s%s", (int)(at - list), list, moved, at + strlen(init));
    cleanup_free char *second = archive_of(rewritten, &second_length);
    ck_assert_uint_eq(first_length, second_length);
    ck_assert_mem_eq(first, second, first_length);
}
END_TEST

START_TEST(one_changed_byte_shows_in_archive_and_manifest)
{
    size_t first_length, second_length;
    cleanup_free char *first = archive_of(sample_list("0123"), &first_length);
    cleanup_free char *before = hf_image_manifest(&image, "initramfs", NULL);
    const char *list = sample_list("0123");
    scratch_text(1, "init-program", "#!iniT\n");
    cleanup_free char *second = archive_of(list, &second_length);
    cleanup_free char *after = hf_image_manifest(&image, "initramfs", NULL);
    ck_assert_uint_eq(first_length, second_length);
    ck_assert_mem_ne(first, second, first_length);
    ck_assert_str_ne(before, after);
}
END_TEST

START_TEST(the_manifest_names_every_entry_with_its_digest)
{
    size_t length;
    struct hf_error err = {0};
    ck_assert_int_eq(build(sample_list("0123"), &err), 0);
    cleanup_free char *manifest = hf_image_manifest(&image, "initramfs", &length);
    char digest[HF_SHA256_HEX_SIZE], expected[1024];
    hf_sha256_hex("#!init\n", 7, digest);
    snprintf(
        expected, sizeof expected,
        "{\"artifact\":\"initramfs\",\"devices\":[{\"major\":5,\"minor\":1,\"mode\":\"0600\",\"path\":\"/dev/"
        "console\"}],\"directories\":[{\"mode\":\"0755\",\"path\":\"/dev\"}],\"files\":[{\"mode\":\"0440\",\"path\":"
        "\"/dev/empty\",\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"size\":0},"
        "{\"mode\":\"0755\",\"path\":\"/init\",\"sha256\":\"%s\",\"size\":7}],\"schema_version\":1}",
        digest);
    ck_assert_str_eq(manifest, expected);
}
END_TEST

static const struct {
    const char *list, *says;
} refused_lists[] = {
    {"dir dev 0755\n", "list:1"},
    {"dir / 0755\n", "list:1"},
    {"dir /dev/ 0755\n", "list:1"},
    {"dir //dev 0755\n", "list:1"},
    {"dir /a/../b 0755\n", "list:1"},
    {"dir /. 0755\n", "list:1"},
    {"dir /\x7f 0755\n", "list:1"},
    {"dir /dev 0855\n", "list:1"},
    {"dir /dev 10000\n", "list:1"},
    {"dir /dev -1\n", "list:1"},
    {"dir /dev\n", "list:1"},
    {"dir /dev 0755 more\n", "list:1"},
    {"\nchar /console 0600 5\n", "list:2"},
    {"char /console 0600 512 1\n", "list:1"},
    {"char /console 0600 5 256\n", "list:1"},
    {"file /init 0755\n", "list:1"},
    {"file /init 0755 \n", "list:1"},
    {"block /sda 0600 8 0\n", "list:1"},
    {"dir /dev 0755\ndir /dev 0700\n", "twice"},
    {"char /dev/console 0600 5 1\n", "needs a 'dir /dev' line"},
    {"char /dev 0600 5 1\nchar /dev/console 0600 5 1\n", "needs a 'dir /dev' line"},
    {"file /init 0755 /nonexistent/init\n", "/init"},
    {"file /init 0755 /dev/null\n", "/init"},
    {"file /init 0755 /tmp\n", "/init"},
};

START_TEST(a_list_that_is_none_is_refused_with_its_place)
{
    struct hf_error err = {0};
    ck_assert_int_eq(build(refused_lists[_i].list, &err), -1);
    ck_assert_ptr_nonnull(err.code);
    ck_assert_msg(strstr(err.message, refused_lists[_i].says) != NULL, "%s", err.message);
}
END_TEST

START_TEST(a_path_of_the_greatest_length_fits_and_a_longer_one_does_not)
{
    struct hf_error err = {0};
    char list[512];
    for (int extra = 0; extra < 2; extra++) {
        memset(list, 'a', sizeof list);
        memcpy(list, "dir /", 5);
        snprintf(list + 5 + HF_IMAGE_PATH_MAX - 1 + extra, 16, " 0755\n");
        ck_assert_int_eq(build(list, &err), -extra);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guest image");
    TCase *tests = tcase_create("image");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, cpio_lists_what_was_described);
    tcase_add_test(tests, order_times_owner_and_source_path_do_not_show);
    tcase_add_test(tests, one_changed_byte_shows_in_archive_and_manifest);
    tcase_add_test(tests, the_manifest_names_every_entry_with_its_digest);
    tcase_add_loop_test(tests, a_list_that_is_none_is_refused_with_its_place, 0,
                        sizeof refused_lists / sizeof refused_lists[0]);
    tcase_add_test(tests, a_path_of_the_greatest_length_fits_and_a_longer_one_does_not);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
