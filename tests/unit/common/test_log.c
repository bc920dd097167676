/* Promises of common/log.h, checked on a stderr that leads into a file. */
#include "common/cleanup.h"
#include "common/log.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct capture {
    struct scratch scratch;
    int saved_stderr;
};

static void capture_start(struct capture *capture)
{
    scratch_make(&capture->scratch);
    capture->saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    cleanup_close int fd = openat(capture->scratch.fd, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
}

/* Ends the capture. Returns what was written; owned. */
static char *capture_end(struct capture *capture)
{
    dup2(capture->saved_stderr, STDERR_FILENO);
    close(capture->saved_stderr);
    char *text = scratch_read(capture->scratch.fd, "log", NULL);
    scratch_remove(&capture->scratch);
    return text;
}

/* What follows "TIMESTAMP program ". */
static const char *after_timestamp(const char *line)
{
    ck_assert_uint_ge(strlen(line), 25);
    ck_assert(line[4] == '-' && line[10] == 'T' && line[23] == 'Z' && line[24] == ' ');
    return line + 25;
}

START_TEST(a_line_has_time_program_level_event_and_pairs)
{
    struct capture capture;
    capture_start(&capture);
    hf_log_init("tester", HF_LOG_INFO);
    hf_log(HF_LOG_INFO, "session_started", "run", "run-1", "path", "/a b", NULL);
    cleanup_free char *text = capture_end(&capture);
    ck_assert_str_eq(after_timestamp(text), "tester info session_started run=run-1 path=\"/a b\"\n");
}
END_TEST

START_TEST(levels_above_the_maximum_are_silent)
{
    struct capture capture;
    struct hf_error err;
    hf_error_set(&err, "some-code", 0, NULL, "x");
    capture_start(&capture);
    hf_log_init("tester", HF_LOG_WARNING);
    hf_log(HF_LOG_NOTICE, "quiet", NULL);
    hf_log_error(HF_LOG_INFO, "quiet", &err);
    hf_log(HF_LOG_WARNING, "loud", NULL);
    cleanup_free char *text = capture_end(&capture);
    ck_assert_str_eq(after_timestamp(text), "tester warning loud\n");
}
END_TEST

START_TEST(values_cannot_forge_lines_or_pairs)
{
    struct capture capture;
    capture_start(&capture);
    hf_log_init("tester", HF_LOG_INFO);
    hf_log(HF_LOG_INFO, "e", "a", "x\n<3>forged y=z", "b", "q\"\\", "c", "\x1b[2J\xc3\xa9\x7f", "d", "", NULL);
    cleanup_free char *text = capture_end(&capture);
    ck_assert_str_eq(after_timestamp(text),
                     "tester info e a=\"x\\x0a<3>forged y=z\" b=\"q\\\"\\\\\" c=\"\\x1b[2J\\xc3\\xa9\\x7f\" d=\"\"\n");
}
END_TEST

START_TEST(a_missing_value_ends_the_line_safely)
{
    struct capture capture;
    capture_start(&capture);
    hf_log_init("tester", HF_LOG_INFO);
    hf_log(HF_LOG_INFO, "e", "a", (const char *)NULL, NULL);
    cleanup_free char *text = capture_end(&capture);
    ck_assert_str_eq(after_timestamp(text), "tester info e a=\"\"\n");
}
END_TEST

START_TEST(a_long_line_is_cut_marked_and_still_one_line)
{
    struct capture capture;
    char value[20000];
    memset(value, '\x01', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    capture_start(&capture);
    hf_log_init("tester", HF_LOG_INFO);
    hf_log(HF_LOG_INFO, "e", "a", value, "b", "never", NULL);
    cleanup_free char *text = capture_end(&capture);
    ck_assert_uint_le(strlen(text), 4096);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    ck_assert_ptr_nonnull(strstr(text, "\\x01 ...\n"));
}
END_TEST

START_TEST(an_error_is_logged_with_all_its_parts)
{
    struct capture capture;
    struct hf_error err;
    hf_error_set(&err, "storage-failed", ENOSPC, "a.b", "cannot write");
    capture_start(&capture);
    hf_log_init("tester", HF_LOG_INFO);
    hf_log_error(HF_LOG_ERROR, "e", &err);
    hf_error_set(&err, "some-code", 0, NULL, "plain");
    hf_log_error(HF_LOG_ERROR, "e", &err);
    cleanup_free char *text = capture_end(&capture);
    ck_assert_ptr_nonnull(
        strstr(text, "tester error e code=storage-failed field=a.b errno=ENOSPC message=\"cannot write\"\n"));
    ck_assert_ptr_nonnull(strstr(text, "tester error e code=some-code message=plain\n"));
}
END_TEST

START_TEST(the_journal_gets_priorities_instead_of_times)
{
    struct capture capture;
    struct stat status;
    char stream[64];
    capture_start(&capture);
    ck_assert_int_eq(fstat(STDERR_FILENO, &status), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    hf_log_init("tester", HF_LOG_INFO);
    hf_log(HF_LOG_ERROR, "e", "a", "b", NULL);
    cleanup_free char *text = capture_end(&capture);
    unsetenv("JOURNAL_STREAM");
    ck_assert_str_eq(text, "<3>e a=b\n");
}
END_TEST

START_TEST(a_journal_stream_of_another_descriptor_is_not_believed)
{
    static const char *const streams[] = {"1:2", "nonsense", ""};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        struct capture capture;
        capture_start(&capture);
        setenv("JOURNAL_STREAM", streams[i], 1);
        hf_log_init("tester", HF_LOG_INFO);
        hf_log(HF_LOG_ERROR, "e", NULL);
        cleanup_free char *text = capture_end(&capture);
        unsetenv("JOURNAL_STREAM");
        ck_assert_str_eq(after_timestamp(text), "tester error e\n");
    }
}
END_TEST

START_TEST(a_closed_stderr_does_not_stop_the_program)
{
    int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    close(STDERR_FILENO);
    hf_log_init("tester", HF_LOG_INFO);
    hf_log(HF_LOG_ERROR, "e", NULL);
    ck_assert_int_eq(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    close(saved);
}
END_TEST

SCRATCH_MAIN("log", a_line_has_time_program_level_event_and_pairs, levels_above_the_maximum_are_silent,
             values_cannot_forge_lines_or_pairs, a_missing_value_ends_the_line_safely,
             a_long_line_is_cut_marked_and_still_one_line, an_error_is_logged_with_all_its_parts,
             the_journal_gets_priorities_instead_of_times, a_journal_stream_of_another_descriptor_is_not_believed,
             a_closed_stderr_does_not_stop_the_program)
