/* hf_child_run(): input, output, limits, timeouts and interrupts of one blocking run. */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEN_MIB 10485760

static int temporary_file(void)
{
    char name[] = "/tmp/holdfast-test-XXXXXX";
    int fd = mkstemp(name);
    ck_assert_int_ge(fd, 0);
    unlink(name);
    return fd;
}

START_TEST(stdin_is_written_to_the_last_byte_and_closed)
{
    struct harness harness;
    char *bytes = calloc(1, TEN_MIB);
    harness_init(&harness, "count-stdin", 0);
    harness.spec.stdin_fd = HF_CHILD_PIPE;
    harness.options.stdin_bytes = bytes;
    harness.options.stdin_length = TEN_MIB;
    harness_run(&harness);
    ck_assert_int_eq(harness.output.report.exit_code, TEN_MIB % 251);
    harness_clear(&harness);
    harness_init(&harness, "count-stdin", 0);
    harness.spec.stdin_fd = HF_CHILD_PIPE; /* and nothing to write */
    harness_run(&harness);
    ck_assert_int_eq(harness.output.report.exit_code, 0);
    harness_clear(&harness);
    free(bytes);
}
END_TEST

START_TEST(a_child_that_never_reads_its_stdin_meets_the_timeout)
{
    struct harness harness;
    char *bytes = calloc(1, TEN_MIB);
    harness_init(&harness, "linger", 0);
    harness.spec.stdin_fd = HF_CHILD_PIPE;
    harness.options.stdin_bytes = bytes;
    harness.options.stdin_length = TEN_MIB;
    harness.options.timeout_ms = 300;
    harness_run(&harness);
    ck_assert(harness.output.timed_out);
    ck_assert(harness.output.report.stop_requested);
    ck_assert_int_eq(harness.output.report.term_signal, SIGTERM);
    ck_assert_uint_lt(harness.output.report.duration_ms, 4000);
    harness_clear(&harness);
    free(bytes);
}
END_TEST

START_TEST(a_child_that_ends_without_reading_raises_no_sigpipe)
{
    struct harness harness;
    char *bytes = calloc(1, TEN_MIB);
    sigset_t pending;

    signal(SIGPIPE, SIG_DFL); /* would end this program */
    harness_init(&harness, "exit", 7);
    harness.spec.stdin_fd = HF_CHILD_PIPE;
    harness.options.stdin_bytes = bytes;
    harness.options.stdin_length = TEN_MIB;
    harness_run(&harness);
    ck_assert_int_eq(harness.output.report.exit_code, 7);
    harness_clear(&harness);
    harness_init(&harness, "close-stdio", 0);
    harness.spec.stdin_fd = HF_CHILD_PIPE;
    harness.options.stdin_bytes = bytes;
    harness.options.stdin_length = TEN_MIB;
    harness_run(&harness);
    ck_assert_int_eq(harness.output.report.exit_code, 5);
    ck_assert_int_eq(sigpending(&pending), 0);
    ck_assert(!sigismember(&pending, SIGPIPE));
    harness_clear(&harness);
    free(bytes);
}
END_TEST

START_TEST(a_flood_is_kept_up_to_the_limit_and_counted_to_the_end)
{
    struct harness harness;
    struct stat status;
    int file = temporary_file();

    harness_init(&harness, "flood", 100 * 1000 * 1000);
    harness.options.stdout_limit = 8192;
    harness.options.stdout_file_fd = file;
    harness.options.file_limit = 1000 * 1000 + 1;
    harness_run(&harness);
    ck_assert_int_eq(harness.output.report.exit_code, 0);
    ck_assert_uint_eq(harness.output.stdout_total, 100 * 1000 * 1000);
    ck_assert_uint_eq(harness.output.stdout_length, 8192);
    ck_assert_uint_eq(strlen(harness.output.stdout_bytes), 8192);
    ck_assert(harness.output.file_truncated);
    ck_assert_int_eq(fstat(file, &status), 0);
    ck_assert_int_eq(status.st_size, 1000 * 1000 + 1);
    close(file);
    harness_clear(&harness);
}
END_TEST

START_TEST(output_that_just_fits_is_not_truncated)
{
    struct harness harness;
    int file = temporary_file();

    harness_init(&harness, "flood", 70000);
    harness.options.stdout_limit = 70000;
    harness.options.stdout_file_fd = file;
    harness.options.file_limit = 70000;
    harness_run(&harness);
    ck_assert_uint_eq(harness.output.stdout_length, 70000);
    ck_assert_uint_eq(harness.output.stdout_total, 70000);
    ck_assert(!harness.output.file_truncated);
    close(file);
    harness_clear(&harness);
}
END_TEST

START_TEST(streams_are_kept_apart)
{
    static const char *const argv[] = {"/bin/sh", "-c", "echo out; echo err >&2", NULL};
    struct harness harness;
    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness_run(&harness);
    ck_assert_str_eq(harness.output.stdout_bytes, "out\n");
    ck_assert_str_eq(harness.output.stderr_bytes, "err\n");
    harness_clear(&harness);
}
END_TEST

START_TEST(streams_that_are_not_pipes_are_honoured)
{
    static const char *const argv[] = {"/bin/sh", "-c", "cat; echo err >&2", NULL};
    struct harness harness;
    char text[16] = "";
    int in = temporary_file(), out = temporary_file();

    ck_assert_int_eq(pwrite(in, "in\n", 3, 0), 3);
    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness.spec.stdin_fd = in;
    harness.spec.stdout_fd = out;
    harness.spec.stderr_fd = HF_CHILD_NULL;
    harness_run(&harness);
    ck_assert_int_eq(pread(out, text, sizeof text - 1, 0), 3);
    ck_assert_str_eq(text, "in\n");
    ck_assert_str_eq(harness.output.stdout_bytes, "");
    ck_assert_uint_eq(harness.output.stdout_total, 0);
    ck_assert_uint_eq(harness.output.stderr_total, 0);
    close(in);
    close(out);
    harness_clear(&harness);
}
END_TEST

START_TEST(a_log_file_that_cannot_be_written_stops_the_child_and_is_an_error)
{
    struct harness harness;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    harness_init(&harness, "flood", 100 * 1000 * 1000);
    harness.options.stdout_file_fd = full;
    harness.options.file_limit = 1000;
    ck_assert_int_eq(hf_child_run(&harness.spec, &harness.options, &harness.output, &harness.err), -1);
    ck_assert_str_eq(harness.err.code, "child-output-failed");
    ck_assert_int_eq(harness.err.saved_errno, 28 /* ENOSPC */);
    close(harness.spec.extra_fds[0]);
    ck_assert(harness_tree_is_gone(&harness, 0));
    close(full);
    harness_clear(&harness);
}
END_TEST

START_TEST(a_child_that_closes_its_stdio_is_waited_for)
{
    struct harness harness;
    harness_init(&harness, "close-stdio", 0);
    harness_run(&harness);
    ck_assert_int_eq(harness.output.report.exit_code, 5);
    ck_assert_uint_ge(harness.output.report.duration_ms, 200);
    harness_clear(&harness);
}
END_TEST

START_TEST(output_of_descendants_is_read_and_never_waited_for)
{
    static const char *const argv[] = {"/bin/sh", "-c", "setsid sleep 30 & echo last words", NULL};
    struct harness harness;
    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness_run(&harness);
    ck_assert_str_eq(harness.output.stdout_bytes, "last words\n");
    ck_assert_uint_lt(harness.output.report.duration_ms, 4000);
    harness_clear(&harness);
}
END_TEST

START_TEST(the_timeout_gives_a_grace_and_then_kills)
{
    struct harness harness;
    harness_init(&harness, "ignore-term", 0);
    harness.options.timeout_ms = 100;
    harness_run(&harness);
    ck_assert(harness.output.timed_out);
    ck_assert(!harness.output.interrupted);
    ck_assert_int_eq(harness.output.report.term_signal, SIGKILL);
    ck_assert_uint_ge(harness.output.report.duration_ms, HF_CHILD_TERM_GRACE_MS);
    ck_assert(harness.output.report.teardown_complete);
    harness_clear(&harness);
}
END_TEST

START_TEST(an_interrupt_kills_at_once)
{
    for (int hangup = 0; hangup < 2; hangup++) {
        struct harness harness;
        int ends[2];
        ck_assert_int_eq(pipe(ends), 0);
        harness_init(&harness, "ignore-term", 0);
        harness.options.interrupt_fd = ends[0];
        if (hangup)
            close(ends[1]);
        else
            ck_assert_int_eq(write(ends[1], "x", 1), 1);
        harness_run(&harness);
        ck_assert(harness.output.interrupted);
        ck_assert(!harness.output.timed_out);
        ck_assert(harness.output.report.stop_requested);
        ck_assert_uint_lt(harness.output.report.duration_ms, 4000);
        ck_assert(harness_tree_is_gone(&harness, 0));
        close(ends[0]);
        if (!hangup)
            close(ends[1]);
        harness_clear(&harness);
    }
}
END_TEST

static bool stop_at_third_call(void *context)
{
    return ++*(int *)context == 3;
}

START_TEST(the_poll_callback_stops_the_child)
{
    struct harness harness;
    int calls = 0;
    harness_init(&harness, "linger", 0);
    harness.options.poll = stop_at_third_call;
    harness.options.poll_context = &calls;
    harness.options.poll_interval_ms = 50;
    harness_run(&harness);
    ck_assert(harness.output.stopped_by_poll);
    ck_assert(!harness.output.timed_out);
    ck_assert_int_eq(calls, 3);
    ck_assert_int_eq(harness.output.report.term_signal, SIGTERM);
    ck_assert_uint_ge(harness.output.report.duration_ms, 90);
    harness_clear(&harness);
}
END_TEST

START_TEST(cpu_time_of_the_whole_tree_is_reported)
{
    static const char *const argv[] = {"/bin/sh", "-c", "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done) & wait",
                                       NULL};
    struct harness harness;
    harness_init(&harness, "x", 0);
    harness.spec.argv = argv;
    harness_run(&harness);
    ck_assert_int_eq(harness.output.report.exit_code, 0);
    ck_assert_uint_ge(harness.output.report.cpu_ms, 20);
    ck_assert_uint_le(harness.output.report.cpu_ms, harness.output.report.duration_ms * 2 + 20);
    harness_clear(&harness);
}
END_TEST

TCase *case_run(void)
{
    TCase *tcase = tcase_create("run");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, stdin_is_written_to_the_last_byte_and_closed);
    tcase_add_test(tcase, a_child_that_never_reads_its_stdin_meets_the_timeout);
    tcase_add_test(tcase, a_child_that_ends_without_reading_raises_no_sigpipe);
    tcase_add_test(tcase, a_flood_is_kept_up_to_the_limit_and_counted_to_the_end);
    tcase_add_test(tcase, output_that_just_fits_is_not_truncated);
    tcase_add_test(tcase, streams_are_kept_apart);
    tcase_add_test(tcase, streams_that_are_not_pipes_are_honoured);
    tcase_add_test(tcase, a_log_file_that_cannot_be_written_stops_the_child_and_is_an_error);
    tcase_add_test(tcase, a_child_that_closes_its_stdio_is_waited_for);
    tcase_add_test(tcase, output_of_descendants_is_read_and_never_waited_for);
    tcase_add_test(tcase, the_timeout_gives_a_grace_and_then_kills);
    tcase_add_test(tcase, an_interrupt_kills_at_once);
    tcase_add_test(tcase, the_poll_callback_stops_the_child);
    tcase_add_test(tcase, cpu_time_of_the_whole_tree_is_reported);
    return tcase;
}
