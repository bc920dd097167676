/* Promises of the journals in common/durable.h: what is durable, what a fault leaves behind, what recovery cuts. */
#include "common/cleanup.h"
#include "common/durable.h"
#include "faults.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static struct scratch scratch;

static void open_journal(struct hf_journal *journal)
{
    struct hf_error err = {0};
    ck_assert_msg(hf_journal_open(journal, scratch.fd, "j", &err) == 0, "%s", err.message);
}

static void append(struct hf_journal *journal, const char *lines)
{
    struct hf_error err = {0};
    ck_assert_msg(hf_journal_append(journal, lines, strlen(lines), &err) == 0, "%s", err.message);
}

static void assert_append_fails(struct hf_journal *journal, const char *lines, int saved_errno)
{
    struct hf_error err = {0};
    ck_assert_int_eq(hf_journal_append(journal, lines, strlen(lines), &err), -1);
    ck_assert_str_eq(err.code, "storage-failed");
    ck_assert_int_eq(err.saved_errno, saved_errno);
    ck_assert_int_eq(strncmp(err.message, "j: ", 3), 0);
}

static void assert_content(const char *expected)
{
    cleanup_free char *text = scratch_read(scratch.fd, "j", NULL);
    ck_assert_str_eq(text, expected);
}

START_TEST(lines_are_appended_in_order_and_survive_reopening)
{
    struct hf_journal journal;
    scratch_make(&scratch);
    open_journal(&journal);
    append(&journal, "{\"a\":1}");
    append(&journal, "second\nthird");
    ck_assert_uint_eq(journal.size_bytes, 21);
    hf_journal_close(&journal);
    open_journal(&journal);
    ck_assert_uint_eq(journal.size_bytes, 21);
    append(&journal, "fourth");
    hf_journal_close(&journal);
    assert_content("{\"a\":1}\nsecond\nthird\nfourth\n");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_new_journal_is_private_and_its_directory_entry_is_synced)
{
    struct hf_journal journal;
    struct stat status;
    scratch_make(&scratch);
    faults_count_start();
    open_journal(&journal);
    ck_assert_int_eq(faults_count("fsync"), 1);
    append(&journal, "x");
    ck_assert_int_eq(faults_count("fdatasync"), 1);
    hf_journal_close(&journal);
    faults_count_start();
    open_journal(&journal);
    ck_assert_int_eq(faults_count("fsync"), 0);
    hf_journal_close(&journal);
    faults_clear();
    ck_assert_int_eq(fstatat(scratch.fd, "j", &status, AT_SYMLINK_NOFOLLOW), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(several_lines_cost_one_write_and_one_fdatasync)
{
    struct hf_journal journal;
    scratch_make(&scratch);
    open_journal(&journal);
    faults_count_start();
    append(&journal, "a\nb\nc\nd");
    ck_assert_int_eq(faults_count("write"), 1);
    ck_assert_int_eq(faults_count("fdatasync"), 1);
    faults_clear();
    hf_journal_close(&journal);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(empty_lines_and_control_characters_are_refused_unwritten)
{
    static const char *const lines[] = {"", "\n", "a\n", "\na", "a\n\nb", "a\rb", "a\tb", "\x1b[0m", "a\x7f"};
    struct hf_journal journal;
    scratch_make(&scratch);
    open_journal(&journal);
    append(&journal, "good");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_append_fails(&journal, lines[i], EINVAL);
    ck_assert_int_eq(hf_journal_append(&journal, "a\0b", 3, NULL), -1);
    append(&journal, "still open");
    hf_journal_close(&journal);
    assert_content("good\nstill open\n");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_full_disk_leaves_the_former_content_and_an_open_journal)
{
    struct hf_journal journal;
    scratch_make(&scratch);
    open_journal(&journal);
    append(&journal, "first");
    faults_set("write", 1, ENOSPC);
    assert_append_fails(&journal, "lost", ENOSPC);
    faults_clear();
    assert_content("first\n");
    append(&journal, "second");
    hf_journal_close(&journal);
    assert_content("first\nsecond\n");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_short_write_is_continued)
{
    struct hf_journal journal;
    scratch_make(&scratch);
    open_journal(&journal);
    faults_set("write", 1, -3);
    append(&journal, "abcdef");
    faults_clear();
    hf_journal_close(&journal);
    assert_content("abcdef\n");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_short_write_before_a_full_disk_is_cut_back)
{
    struct hf_journal journal;
    scratch_make(&scratch);
    open_journal(&journal);
    append(&journal, "first");
    faults_set("write", 1, -3);
    faults_add("write", 2, ENOSPC);
    assert_append_fails(&journal, "abcdef", ENOSPC);
    faults_clear();
    assert_content("first\n");
    ck_assert(!journal.failed);
    hf_journal_close(&journal);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(what_cannot_be_cut_back_closes_the_journal)
{
    static const char *const operations[] = {"truncate", "fdatasync"};
    for (size_t i = 0; i < 2; i++) {
        struct hf_journal journal;
        scratch_make(&scratch);
        open_journal(&journal);
        append(&journal, "first");
        faults_set(operations[i], 1, EIO);
        faults_add("write", 1, ENOSPC);
        assert_append_fails(&journal, "abcdef", ENOSPC);
        faults_clear();
        ck_assert(journal.failed);
        assert_append_fails(&journal, "later", 0);
        hf_journal_close(&journal);
        assert_content("first\n");
        scratch_remove(&scratch);
    }
}
END_TEST

START_TEST(a_failed_fdatasync_cuts_back_and_closes_the_journal)
{
    struct hf_journal journal;
    scratch_make(&scratch);
    open_journal(&journal);
    append(&journal, "first");
    faults_set("fdatasync", 1, EIO);
    assert_append_fails(&journal, "unknown", EIO);
    faults_clear();
    ck_assert(journal.failed);
    assert_append_fails(&journal, "later", 0);
    hf_journal_close(&journal);
    assert_content("first\n");
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_closed_journal_takes_no_lines)
{
    struct hf_journal journal;
    struct hf_error err = {0};
    hf_journal_init(&journal);
    ck_assert_int_eq(hf_journal_append(&journal, "x", 1, &err), -1);
    ck_assert_str_eq(err.code, "storage-failed");
    hf_journal_close(&journal);
}
END_TEST

START_TEST(opening_reports_each_fault)
{
    static const struct {
        const char *operation;
        int saved_errno;
    } cases[] = {{"open", EACCES}, {"open", EMFILE}, {"fsync", EIO}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hf_journal journal;
        struct hf_error err = {0};
        scratch_make(&scratch);
        faults_set(cases[i].operation, 1, cases[i].saved_errno);
        ck_assert_int_eq(hf_journal_open(&journal, scratch.fd, "j", &err), -1);
        faults_clear();
        ck_assert_str_eq(err.code, "storage-failed");
        ck_assert_int_eq(err.saved_errno, cases[i].saved_errno);
        ck_assert_int_eq(journal.fd, -1);
        scratch_remove(&scratch);
    }
}
END_TEST

static void assert_not_opened(const char *name, int saved_errno)
{
    struct hf_journal journal;
    struct hf_error err = {0};
    ck_assert_int_eq(hf_journal_open(&journal, scratch.fd, name, &err), -1);
    ck_assert_str_eq(err.code, "storage-failed");
    ck_assert_int_eq(err.saved_errno, saved_errno);
    ck_assert_int_eq(hf_journal_recover(scratch.fd, name, 10, NULL, NULL, NULL, &err), -1);
    ck_assert_int_eq(err.saved_errno, saved_errno);
}

START_TEST(links_fifos_and_directories_are_no_journals)
{
    scratch_make(&scratch);
    ck_assert_int_eq(symlinkat("target", scratch.fd, "link"), 0);
    ck_assert_int_eq(mkfifoat(scratch.fd, "fifo", 0600), 0);
    ck_assert_int_eq(mkdirat(scratch.fd, "directory", 0700), 0);
    assert_not_opened("link", ELOOP);
    assert_not_opened("fifo", EINVAL);
    assert_not_opened("directory", EISDIR);
    ck_assert(!scratch_exists(scratch.fd, "target"));
    scratch_remove(&scratch);
}
END_TEST

START_TEST(names_that_leave_the_directory_are_refused)
{
    char name[200];
    memset(name, 'x', sizeof name);
    name[128] = '\0';
    scratch_make(&scratch);
    assert_not_opened("", EINVAL);
    assert_not_opened(".", EINVAL);
    assert_not_opened("..", EINVAL);
    assert_not_opened("../j", EINVAL);
    assert_not_opened("/tmp/j", EINVAL);
    assert_not_opened(name, EINVAL);
    name[127] = '\0';
    struct hf_journal journal;
    ck_assert_int_eq(hf_journal_open(&journal, scratch.fd, name, NULL), 0);
    hf_journal_close(&journal);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_journal_with_a_torn_line_is_not_opened_before_recovery)
{
    struct hf_journal journal;
    struct hf_error err = {0};
    scratch_make(&scratch);
    scratch_write(scratch.fd, "j", "whole\ntorn", 10);
    ck_assert_int_eq(hf_journal_open(&journal, scratch.fd, "j", &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "recover it first"));
    assert_content("whole\ntorn");
    scratch_remove(&scratch);
}
END_TEST

/* What recovery delivered, joined with '|'. */
struct delivered {
    char *text;
    size_t used;
    uint64_t lines;
    uint64_t refuse_line;
};

static int take_line(void *context, const char *text, size_t length, uint64_t number, struct hf_error *err)
{
    struct delivered *delivered = context;
    ck_assert_uint_eq(number, ++delivered->lines);
    if (number == delivered->refuse_line)
        return hf_error_set(err, "line-refused", 0, NULL, "line %llu", (unsigned long long)number);
    delivered->text = realloc(delivered->text, delivered->used + length + 2);
    memcpy(delivered->text + delivered->used, text, length);
    delivered->used += length;
    delivered->text[delivered->used++] = '|';
    delivered->text[delivered->used] = '\0';
    return 0;
}

static void assert_recovers(const char *content, size_t length, const char *expected, uint64_t expected_torn)
{
    struct delivered delivered = {0};
    struct hf_error err = {0};
    uint64_t torn_bytes = 99;
    scratch_write(scratch.fd, "j", content, length);
    int result = hf_journal_recover(scratch.fd, "j", 100, take_line, &delivered, &torn_bytes, &err);
    ck_assert_msg(result == 0, "%s", err.message);
    ck_assert_str_eq(delivered.text ? delivered.text : "", expected);
    ck_assert_uint_eq(torn_bytes, expected_torn);
    size_t left;
    cleanup_free char *text = scratch_read(scratch.fd, "j", &left);
    ck_assert_uint_eq(left, length - expected_torn);
    ck_assert_int_eq(memcmp(text, content, left), 0);
    free(delivered.text);
}

START_TEST(recovery_delivers_whole_lines_and_cuts_a_torn_one)
{
    char long_torn[200];
    memset(long_torn, 'x', sizeof long_torn);
    scratch_make(&scratch);
    assert_recovers("", 0, "", 0);
    assert_recovers("a\n", 2, "a|", 0);
    assert_recovers("a\nbb\nccc\n", 9, "a|bb|ccc|", 0);
    assert_recovers("a\nbb\ncc", 7, "a|bb|", 2);
    assert_recovers("torn", 4, "", 4);
    assert_recovers("a\n\0\0\0", 5, "a|", 3);
    assert_recovers(long_torn, sizeof long_torn, "", sizeof long_torn);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(lines_may_cross_any_read_boundary)
{
    enum { LINES = 5000 };
    struct delivered delivered = {0};
    struct hf_error err = {0};
    scratch_make(&scratch);
    cleanup_free char *content = malloc(LINES * 100);
    cleanup_free char *expected = malloc(LINES * 100);
    size_t used = 0;
    for (int i = 0; i < LINES; i++)
        used += (size_t)sprintf(content + used, "%d:%.*s\n", i, i % 89,
                                "................................"
                                "................................"
                                "................................");
    memcpy(expected, content, used + 1);
    for (char *newline = strchr(expected, '\n'); newline; newline = strchr(newline, '\n'))
        *newline = '|';
    scratch_write(scratch.fd, "j", content, used);
    int result = hf_journal_recover(scratch.fd, "j", 100, take_line, &delivered, NULL, &err);
    ck_assert_msg(result == 0, "%s", err.message);
    ck_assert_uint_eq(delivered.lines, LINES);
    ck_assert_str_eq(delivered.text, expected);
    free(delivered.text);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(every_cut_of_a_journal_recovers_to_its_whole_lines)
{
    static const char content[] = "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n";
    scratch_make(&scratch);
    for (size_t length = 0; length < sizeof content; length++) {
        struct delivered delivered = {0};
        scratch_write(scratch.fd, "j", content, length);
        ck_assert_int_eq(hf_journal_recover(scratch.fd, "j", 100, take_line, &delivered, NULL, NULL), 0);
        ck_assert_uint_eq(delivered.lines, length / 8);
        free(delivered.text);
        struct hf_journal journal;
        open_journal(&journal);
        ck_assert_uint_eq(journal.size_bytes, length / 8 * 8);
        append(&journal, "next");
        hf_journal_close(&journal);
    }
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_missing_journal_is_zero_lines_and_is_not_created)
{
    uint64_t torn_bytes = 99;
    scratch_make(&scratch);
    ck_assert_int_eq(hf_journal_recover(scratch.fd, "j", 100, take_line, NULL, &torn_bytes, NULL), 0);
    ck_assert_uint_eq(torn_bytes, 0);
    ck_assert(!scratch_exists(scratch.fd, "j"));
    scratch_remove(&scratch);
}
END_TEST

START_TEST(lines_are_allowed_exactly_to_the_limit)
{
    struct delivered delivered = {0};
    struct hf_error err = {0};
    scratch_make(&scratch);
    scratch_write(scratch.fd, "j", "12345\n1234567\n", 14);
    ck_assert_int_eq(hf_journal_recover(scratch.fd, "j", 7, take_line, &delivered, NULL, &err), 0);
    delivered.lines = 0;
    ck_assert_int_eq(hf_journal_recover(scratch.fd, "j", 6, take_line, &delivered, NULL, &err), -1);
    ck_assert_str_eq(err.message, "j: line 2: expected at most 6 bytes, found more; the journal is damaged");
    free(delivered.text);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(a_callback_that_refuses_ends_the_reading_with_its_error)
{
    struct delivered delivered = {.refuse_line = 2};
    struct hf_error err = {0};
    scratch_make(&scratch);
    scratch_write(scratch.fd, "j", "a\nb\nc\n", 6);
    ck_assert_int_eq(hf_journal_recover(scratch.fd, "j", 100, take_line, &delivered, NULL, &err), -1);
    ck_assert_str_eq(err.code, "line-refused");
    ck_assert_uint_eq(delivered.lines, 2);
    free(delivered.text);
    scratch_remove(&scratch);
}
END_TEST

START_TEST(recovery_reports_each_fault_and_delivers_nothing_then)
{
    static const struct {
        const char *operation;
        int saved_errno;
    } cases[] = {{"open", EACCES}, {"read", EIO}, {"truncate", EIO}, {"fdatasync", EIO}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct delivered delivered = {0};
        struct hf_error err = {0};
        scratch_make(&scratch);
        scratch_write(scratch.fd, "j", "a\ntorn", 6);
        faults_set(cases[i].operation, 1, cases[i].saved_errno);
        ck_assert_int_eq(hf_journal_recover(scratch.fd, "j", 100, take_line, &delivered, NULL, &err), -1);
        faults_clear();
        ck_assert_str_eq(err.code, "storage-failed");
        ck_assert_int_eq(err.saved_errno, cases[i].saved_errno);
        ck_assert_uint_eq(delivered.lines, 0);
        scratch_remove(&scratch);
    }
}
END_TEST

SCRATCH_MAIN("journal", lines_are_appended_in_order_and_survive_reopening,
             a_new_journal_is_private_and_its_directory_entry_is_synced, several_lines_cost_one_write_and_one_fdatasync,
             empty_lines_and_control_characters_are_refused_unwritten,
             a_full_disk_leaves_the_former_content_and_an_open_journal, a_short_write_is_continued,
             a_short_write_before_a_full_disk_is_cut_back, what_cannot_be_cut_back_closes_the_journal,
             a_failed_fdatasync_cuts_back_and_closes_the_journal, a_closed_journal_takes_no_lines,
             opening_reports_each_fault, links_fifos_and_directories_are_no_journals,
             names_that_leave_the_directory_are_refused, a_journal_with_a_torn_line_is_not_opened_before_recovery,
             recovery_delivers_whole_lines_and_cuts_a_torn_one, lines_may_cross_any_read_boundary,
             every_cut_of_a_journal_recovers_to_its_whole_lines, a_missing_journal_is_zero_lines_and_is_not_created,
             lines_are_allowed_exactly_to_the_limit, a_callback_that_refuses_ends_the_reading_with_its_error,
             recovery_reports_each_fault_and_delivers_nothing_then)
