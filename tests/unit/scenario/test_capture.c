/* Bounded logs: exact up to the bound, counted beyond it. */
#include "executor/scenario/vm/capture.h"
#include "tests/unit/scenario/suite.h"

#include "common/cleanup.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char directory[64];
static int directory_fd;

static void set_up(void)
{
    strcpy(directory, "/tmp/hf-capture-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void tear_down(void)
{
    unlinkat(directory_fd, "log", 0);
    close(directory_fd);
    rmdir(directory);
}

START_TEST(the_bound_cuts_exactly)
{
    struct hf_capture capture;
    char bytes[16] = "";
    ck_assert_int_eq(hf_capture_open(&capture, directory_fd, "log", 10, NULL), 0);
    ck_assert_int_eq(hf_capture_write(&capture, "abcdef", 6, NULL), 0);
    ck_assert_int_eq(hf_capture_write(&capture, "ghijkl", 6, NULL), 0);
    ck_assert_int_eq(hf_capture_write(&capture, "mnop", 4, NULL), 0);
    ck_assert_uint_eq(capture.stored_bytes, 10);
    ck_assert_uint_eq(capture.total_bytes, 16);
    hf_capture_close(&capture);
    cleanup_close int fd = openat(directory_fd, "log", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(read(fd, bytes, sizeof bytes), 10);
    ck_assert_str_eq(bytes, "abcdefghij");
}
END_TEST

START_TEST(an_existing_file_is_never_overwritten)
{
    struct hf_capture capture, again;
    struct hf_error err = {0};
    ck_assert_int_eq(hf_capture_open(&capture, directory_fd, "log", 10, NULL), 0);
    ck_assert_int_eq(hf_capture_open(&again, directory_fd, "log", 10, &err), -1);
    ck_assert_str_eq(err.code, "storage-failed");
    hf_capture_close(&capture);
    hf_capture_close(&again);
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
    struct hf_capture capture;
    struct hf_error err = {0};
    struct rlimit old, small = {4, 4};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(hf_capture_open(&capture, directory_fd, "log", 10, NULL), 0);
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    int result = hf_capture_write(&capture, "abcdef", 6, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    ck_assert_int_eq(result, -1);
    ck_assert_str_eq(err.code, "storage-failed");
    hf_capture_close(&capture);
}
END_TEST

TCase *capture_case(void)
{
    TCase *tcase = tcase_create("capture");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_bound_cuts_exactly);
    tcase_add_test(tcase, an_existing_file_is_never_overwritten);
    tcase_add_test(tcase, a_full_disk_is_an_error);
    return tcase;
}
