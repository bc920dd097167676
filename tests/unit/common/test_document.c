/* Promises of documents and directories in common/durable.h: old or new bytes under every fault, no links, no
 * left-overs. */
#include "common/cleanup.h"
#include "common/durable.h"
#include "faults.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static struct scratch scratch;

static void write_document(const char *bytes)
{
    struct hf_error err = {0};
    ck_assert_msg(hf_document_write(scratch.fd, "d", bytes, strlen(bytes), &err) == 0, "%s", err.message);
}

static void assert_content(const char *expected)
{
    size_t length;
    struct hf_error err = {0};
    cleanup_free char *text = hf_document_read(scratch.fd, "d", 100, &length, &err);
    ck_assert_msg(text != NULL, "%s", err.message);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(length, strlen(expected));
}

START_TEST(a_document_reads_back_as_written_and_is_private)
{
    struct stat status;
    scratch_make(&scratch);
    write_document("one");
    assert_content("one");
    write_document("");
    assert_content("");
    write_document("three");
    assert_content("three");
    ck_assert_int_eq(fstatat(scratch.fd, "d", &status, AT_SYMLINK_NOFOLLOW), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    ck_assert_uint_eq(scratch_count(scratch.fd), 1);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(contents_and_entry_are_synced_in_order)
{
    scratch_make(&scratch);
    faults_count_start();
    write_document("one");
    ck_assert_int_eq(faults_count("fsync"), 2);
    ck_assert_int_eq(faults_count("rename"), 1);
    faults_clear();
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_fault_before_the_rename_keeps_the_old_bytes_and_leaves_nothing)
{
    static const struct {
        const char *operation;
        int saved_errno;
    } cases[] = {{"open", EACCES}, {"write", ENOSPC}, {"fsync", EIO}, {"rename", EIO}};
    scratch_make(&scratch);
    write_document("old");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hf_error err = {0};
        faults_set(cases[i].operation, 1, cases[i].saved_errno);
        ck_assert_int_eq(hf_document_write(scratch.fd, "d", "new", 3, &err), -1);
        faults_clear();
        ck_assert_str_eq(err.code, "storage-failed");
        ck_assert_int_eq(err.saved_errno, cases[i].saved_errno);
        ck_assert_int_eq(strncmp(err.message, "d: cannot ", 10), 0);
        assert_content("old");
        ck_assert_uint_eq(scratch_count(scratch.fd), 1);
    }
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_fault_after_the_rename_is_still_a_failure)
{
    struct hf_error err = {0};
    scratch_make(&scratch);
    write_document("old");
    faults_set("fsync", 2, EIO);
    ck_assert_int_eq(hf_document_write(scratch.fd, "d", "new", 3, &err), -1);
    faults_clear();
    ck_assert_int_eq(err.saved_errno, EIO);
    assert_content("new");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(short_writes_are_continued)
{
    scratch_make(&scratch);
    faults_set_for_ever("write", 1, -2);
    write_document("abcdefgh");
    faults_clear();
    assert_content("abcdefgh");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_directory_without_permission_is_an_error)
{
    struct hf_error err = {0};
    struct hf_journal journal;
    uid_t user = geteuid();
    scratch_make(&scratch);
    ck_assert_int_eq(fchmod(scratch.fd, 0500), 0);
    if (user == 0)
        ck_assert_int_eq(seteuid(65534), 0); /* root would not be refused */
    int document = hf_document_write(scratch.fd, "d", "x", 1, &err);
    int document_errno = err.saved_errno;
    int opened = hf_journal_open(&journal, scratch.fd, "j", &err);
    ck_assert_int_eq(seteuid(user), 0);
    ck_assert_int_eq(document, -1);
    ck_assert_int_eq(document_errno, EACCES);
    ck_assert_int_eq(opened, -1);
    ck_assert_int_eq(err.saved_errno, EACCES);
    ck_assert_ptr_nonnull(strstr(err.message, "make the directory writable"));
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_link_is_replaced_and_never_written_through)
{
    struct stat status;
    scratch_make(&scratch);
    scratch_write(scratch.fd, "target", "untouched", 9);
    ck_assert_int_eq(symlinkat("target", scratch.fd, "d"), 0);
    write_document("new");
    ck_assert_int_eq(fstatat(scratch.fd, "d", &status, AT_SYMLINK_NOFOLLOW), 0);
    ck_assert(S_ISREG(status.st_mode));
    cleanup_free char *text = scratch_read(scratch.fd, "target", NULL);
    ck_assert_str_eq(text, "untouched");
    scratch_remove(&scratch);
}
END_TEST

static void assert_not_read(const char *name, size_t max_bytes, const char *code, int saved_errno)
{
    struct hf_error err = {0};
    ck_assert_ptr_null(hf_document_read(scratch.fd, name, max_bytes, NULL, &err));
    ck_assert_str_eq(err.code, code);
    ck_assert_int_eq(err.saved_errno, saved_errno);
}

START_TEST(only_regular_files_within_the_bound_are_read)
{
    scratch_make(&scratch);
    scratch_write(scratch.fd, "d", "12345", 5);
    ck_assert_int_eq(symlinkat("d", scratch.fd, "link"), 0);
    ck_assert_int_eq(mkfifoat(scratch.fd, "fifo", 0600), 0);
    ck_assert_int_eq(mkdirat(scratch.fd, "directory", 0700), 0);
    assert_not_read("absent", 10, "storage-missing", ENOENT);
    assert_not_read("link", 10, "storage-failed", ELOOP);
    assert_not_read("fifo", 10, "storage-failed", EINVAL);
    assert_not_read("directory", 10, "storage-failed", EINVAL);
    assert_not_read("d", 4, "storage-failed", EFBIG);
    cleanup_free char *text = hf_document_read(scratch.fd, "d", 5, NULL, NULL);
    ck_assert_str_eq(text, "12345");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(reading_reports_each_fault)
{
    scratch_make(&scratch);
    write_document("x");
    faults_set("open", 1, EMFILE);
    assert_not_read("d", 10, "storage-failed", EMFILE);
    faults_set("read", 1, EIO);
    assert_not_read("d", 10, "storage-failed", EIO);
    faults_clear();
    scratch_remove(&scratch);
}
END_TEST

START_TEST(names_that_leave_the_directory_are_not_written)
{
    static const char *const names[] = {"", ".", "..", "a/b", "/tmp/hf-never", "../hf-never"};
    scratch_make(&scratch);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hf_error err = {0};
        ck_assert_int_eq(hf_document_write(scratch.fd, names[i], "x", 1, &err), -1);
        ck_assert_int_eq(err.saved_errno, EINVAL);
    }
    ck_assert_uint_eq(scratch_count(scratch.fd), 0);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_sweep_removes_left_over_temporaries_and_nothing_else)
{
    scratch_make(&scratch);
    scratch_write(scratch.fd, "d.0123456789abcdef.tmp~", "x", 1);
    scratch_write(scratch.fd, "e.tmp~", "x", 1);
    scratch_write(scratch.fd, ".tmp~", "x", 1);
    scratch_write(scratch.fd, "keep.tmp", "x", 1);
    scratch_write(scratch.fd, "keep", "x", 1);
    ck_assert_int_eq(mkdirat(scratch.fd, "directory.tmp~", 0700), 0);
    ck_assert_int_eq(symlinkat("keep", scratch.fd, "link.tmp~"), 0);
    ck_assert_int_eq(hf_document_sweep(scratch.fd, NULL), 0);
    ck_assert_uint_eq(scratch_count(scratch.fd), 5);
    ck_assert(!scratch_exists(scratch.fd, "e.tmp~"));
    ck_assert(scratch_exists(scratch.fd, "keep"));
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_crash_leaves_a_temporary_that_the_sweep_finds)
{
    scratch_make(&scratch);
    write_document("old");
    faults_set("rename", 1, EIO);
    faults_add("unlink", 1, EIO); /* the temporary stays, as after a crash */
    ck_assert_int_eq(hf_document_write(scratch.fd, "d", "new", 3, NULL), -1);
    faults_clear();
    ck_assert_uint_eq(scratch_count(scratch.fd), 2);
    ck_assert_int_eq(hf_document_sweep(scratch.fd, NULL), 0);
    ck_assert_uint_eq(scratch_count(scratch.fd), 1);
    assert_content("old");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_sweep_reports_each_fault)
{
    static const char *const operations[] = {"open", "unlink", "fsync"};
    for (size_t i = 0; i < 3; i++) {
        struct hf_error err = {0};
        scratch_make(&scratch);
        scratch_write(scratch.fd, "e.tmp~", "x", 1);
        faults_set(operations[i], 1, EIO);
        ck_assert_int_eq(hf_document_sweep(scratch.fd, &err), -1);
        faults_clear();
        ck_assert_str_eq(err.code, "storage-failed");
        scratch_remove(&scratch);
    }
}
END_TEST

START_TEST(a_directory_is_created_private_and_opened_again)
{
    struct stat status;
    scratch_make(&scratch);
    faults_count_start();
    cleanup_close int first = hf_dir_open(scratch.fd, "sub", true, NULL);
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(faults_count("fsync"), 1);
    cleanup_close int second = hf_dir_open(scratch.fd, "sub", true, NULL);
    ck_assert_int_ge(second, 0);
    cleanup_close int third = hf_dir_open(scratch.fd, "sub", false, NULL);
    ck_assert_int_ge(third, 0);
    ck_assert_int_eq(faults_count("fsync"), 1);
    faults_clear();
    ck_assert_int_eq(fstat(first, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0700);
    ck_assert_int_eq(fcntl(first, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_directory_may_be_named_by_a_path)
{
    char path[300];
    scratch_make(&scratch);
    snprintf(path, sizeof path, "%s/sub//", scratch.path);
    cleanup_close int fd = hf_dir_open(AT_FDCWD, path, true, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert(scratch_exists(scratch.fd, "sub"));
    scratch_remove(&scratch);
}
END_TEST

static void assert_dir_not_opened(const char *name, bool create, const char *code, int saved_errno)
{
    struct hf_error err = {0};
    ck_assert_int_eq(hf_dir_open(scratch.fd, name, create, &err), -1);
    ck_assert_str_eq(err.code, code);
    ck_assert_int_eq(err.saved_errno, saved_errno);
}

START_TEST(what_is_no_directory_is_not_opened)
{
    scratch_make(&scratch);
    scratch_write(scratch.fd, "file", "x", 1);
    ck_assert_int_eq(symlinkat(".", scratch.fd, "link"), 0);
    assert_dir_not_opened("absent", false, "storage-missing", ENOENT);
    assert_dir_not_opened("absent/sub", true, "storage-failed", ENOENT);
    assert_dir_not_opened("file", true, "storage-failed", ENOTDIR);
    assert_dir_not_opened("link", true, "storage-failed", ENOTDIR);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(creating_a_directory_reports_each_fault)
{
    scratch_make(&scratch);
    faults_set("mkdir", 1, EROFS);
    assert_dir_not_opened("sub", true, "storage-failed", EROFS);
    faults_set("fsync", 1, EIO);
    assert_dir_not_opened("sub", true, "storage-failed", EIO);
    faults_set("open", 1, EMFILE);
    assert_dir_not_opened("sub", true, "storage-failed", EMFILE);
    faults_clear();
    scratch_remove(&scratch);
}
END_TEST

START_TEST(messages_say_what_to_do)
{
    static const struct {
        int saved_errno;
        const char *advice;
    } cases[] = {{ENOSPC, "free space"}, {EROFS, "make the directory writable"}, {EIO, "check the disk"}};
    scratch_make(&scratch);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hf_error err = {0};
        faults_set("write", 1, cases[i].saved_errno);
        ck_assert_int_eq(hf_document_write(scratch.fd, "d", "x", 1, &err), -1);
        ck_assert_ptr_nonnull(strstr(err.message, cases[i].advice));
    }
    faults_clear();
    scratch_remove(&scratch);
}
END_TEST

SCRATCH_MAIN("document", a_document_reads_back_as_written_and_is_private, contents_and_entry_are_synced_in_order,
             a_fault_before_the_rename_keeps_the_old_bytes_and_leaves_nothing,
             a_fault_after_the_rename_is_still_a_failure, short_writes_are_continued,
             a_directory_without_permission_is_an_error, a_link_is_replaced_and_never_written_through,
             only_regular_files_within_the_bound_are_read, reading_reports_each_fault,
             names_that_leave_the_directory_are_not_written, a_sweep_removes_left_over_temporaries_and_nothing_else,
             a_crash_leaves_a_temporary_that_the_sweep_finds, a_sweep_reports_each_fault,
             a_directory_is_created_private_and_opened_again, a_directory_may_be_named_by_a_path,
             what_is_no_directory_is_not_opened, creating_a_directory_reports_each_fault, messages_say_what_to_do)
