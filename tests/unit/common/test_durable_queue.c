/* Promises of common/loop/durable_queue.h: order, group commit, fail closed, callbacks only from the loop, many queues.
 */
#include "common/cleanup.h"
#include "common/durable.h"
#include "common/loop/durable_queue.h"
#include "faults.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static struct scratch scratch;
static uv_loop_t loop;
static struct hf_durable_queue *queue;

/* What completed, in order: one letter per item, upper case when it failed. */
static char completed[4096];
static size_t completed_count;
static int last_errno;
static bool was_freed;

static void start(void)
{
    scratch_make(&scratch);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    queue = hf_durable_queue_new(&loop, scratch.fd);
    memset(completed, 0, sizeof completed);
    completed_count = 0;
    last_errno = 0;
    was_freed = false;
}

static void note_freed(void *context)
{
    ck_assert_ptr_eq(context, &scratch);
    was_freed = true;
}

/* Frees the queue if the test has not, and shows that nothing is left on the loop. */
static void finish(void)
{
    if (queue)
        hf_durable_queue_free(STEAL_PTR(queue), note_freed, &scratch);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(was_freed);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    faults_clear();
    scratch_remove(&scratch);
}

static void done(void *context, const struct hf_error *err)
{
    char letter = *(const char *)context;
    completed[completed_count++] = err ? (char)(letter - 'a' + 'A') : letter;
    if (err) {
        ck_assert_str_eq(err->code, "storage-failed");
        last_errno = err->saved_errno;
    }
}

static void append(const char *journal, const char *line, const char *letter)
{
    hf_durable_queue_append(queue, journal, line, strlen(line), done, (void *)(uintptr_t)letter);
}

static void document(const char *name, const char *bytes, const char *letter)
{
    hf_durable_queue_document(queue, name, bytes, strlen(bytes), done, (void *)(uintptr_t)letter);
}

static void assert_file(const char *name, const char *expected)
{
    cleanup_free char *text = scratch_read(scratch.fd, name, NULL);
    ck_assert_str_eq(text, expected);
}

START_TEST(items_complete_in_order_and_are_on_disk)
{
    start();
    append("j", "one", "a");
    append("j", "two", "b");
    document("d", "document", "c");
    append("k", "three", "d");
    append("j", "four", "e");
    ck_assert_uint_eq(completed_count, 0); /* nothing is called from inside a submission */
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "abcde");
    assert_file("j", "one\ntwo\nfour\n");
    assert_file("k", "three\n");
    assert_file("d", "document");
    finish();
}
END_TEST

START_TEST(appends_that_gather_share_one_fdatasync)
{
    start();
    faults_count_start();
    append("j", "first", "a"); /* begins at once; the others gather behind it */
    for (int i = 0; i < 20; i++)
        append("j", "later", "b");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(faults_count("fdatasync"), 2);
    ck_assert_int_eq(faults_count("write"), 2);
    ck_assert_uint_eq(completed_count, 21);
    faults_clear();
    finish();
}
END_TEST

START_TEST(batches_end_at_another_journal_a_document_and_a_mebibyte)
{
    cleanup_free char *big = malloc(600 * 1024 + 1);
    memset(big, 'x', 600 * 1024);
    big[600 * 1024] = '\0';
    start();
    faults_count_start();
    append("j", "0", "a");
    append("j", "1", "b");
    append("k", "2", "c");
    append("j", "3", "d");
    document("d", "4", "e");
    append("j", big, "f");
    append("j", big, "g");
    append("j", "5", "h");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "abcdefgh");
    ck_assert_int_eq(faults_count("fdatasync"), 6); /* 0 | 1 | 2 | 3 | document | big big | 5 */
    faults_clear();
    finish();
}
END_TEST

START_TEST(a_subdirectory_is_created_for_a_document)
{
    struct stat status;
    start();
    document("sub/one", "1", "a");
    document("sub/two", "2", "b");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "ab");
    assert_file("sub/one", "1");
    assert_file("sub/two", "2");
    ck_assert_int_eq(fstatat(scratch.fd, "sub", &status, 0), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0700);
    finish();
}
END_TEST

START_TEST(an_empty_document_is_a_document)
{
    start();
    hf_durable_queue_document(queue, "d", NULL, 0, done, (void *)(uintptr_t) "a");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "a");
    assert_file("d", "");
    finish();
}
END_TEST

START_TEST(names_that_leave_the_run_directory_fail)
{
    static const char *const names[] = {"../d", "a/b/c", "/tmp/hf-never", "..", "a/..", "a/", "/"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        start();
        document(names[i], "x", "a");
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_str_eq(completed, "A");
        ck_assert_int_eq(last_errno, EINVAL);
        finish();
    }
}
END_TEST

START_TEST(after_the_first_failure_nothing_more_is_written)
{
    start();
    append("j", "one", "a");
    uv_run(&loop, UV_RUN_DEFAULT);
    faults_set("write", 1, ENOSPC); /* once: what follows would succeed if it were tried */
    append("j", "two", "b");
    append("j", "three", "c");
    document("d", "x", "d");
    append("k", "four", "e");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "aBCDE");
    ck_assert_int_eq(last_errno, ENOSPC);
    append("j", "five", "f"); /* also what is submitted much later */
    ck_assert_uint_eq(completed_count, 5);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "aBCDEF");
    ck_assert_int_eq(last_errno, ENOSPC);
    assert_file("j", "one\n");
    ck_assert(!scratch_exists(scratch.fd, "d"));
    ck_assert(!scratch_exists(scratch.fd, "k"));
    finish();
}
END_TEST

START_TEST(a_failed_group_fails_together)
{
    start();
    faults_set("fdatasync", 2, EIO);
    append("j", "one", "a");
    append("j", "two", "b");
    append("j", "three", "c");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "aBC");
    assert_file("j", "one\n");
    finish();
}
END_TEST

START_TEST(every_faulty_operation_fails_its_item)
{
    static const struct {
        const char *operation;
        int nth;
        const char *expected; /* of: append, document */
    } cases[] = {{"open", 1, "AB"},      {"fsync", 1, "AB"}, {"write", 1, "AB"},
                 {"fdatasync", 1, "AB"}, {"mkdir", 1, "aB"}, {"rename", 1, "aB"},
                 {"fsync", 2, "aB"},     {"write", 2, "aB"}, {"fsync", 4, "aB"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start();
        faults_set(cases[i].operation, cases[i].nth, EIO);
        append("j", "one", "a");
        document("sub/d", "x", "b");
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_msg(strcmp(completed, cases[i].expected) == 0, "%s %d: %s", cases[i].operation, cases[i].nth,
                      completed);
        ck_assert_int_eq(last_errno, EIO);
        finish();
    }
}
END_TEST

START_TEST(a_line_with_a_newline_fails_alone_and_closes_the_queue)
{
    static const char *const lines[] = {"two\nlines", ""};
    for (size_t i = 0; i < 2; i++) {
        start();
        append("j", "one", "a");
        append("j", "two", "b");
        append("j", lines[i], "c");
        append("j", "four", "d");
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_str_eq(completed, "abCD");
        assert_file("j", "one\ntwo\n");
        finish();
    }
}
END_TEST

START_TEST(freeing_waits_for_everything_submitted)
{
    start();
    append("j", "one", "a");
    document("d", "x", "b");
    append("j", "two", "c");
    hf_durable_queue_free(STEAL_PTR(queue), note_freed, &scratch);
    ck_assert(!was_freed);
    ck_assert_uint_eq(completed_count, 0);
    finish();
    ck_assert_str_eq(completed, "abc");
}
END_TEST

START_TEST(freeing_an_idle_queue_also_calls_back_from_the_loop)
{
    start();
    hf_durable_queue_free(STEAL_PTR(queue), note_freed, &scratch);
    ck_assert(!was_freed);
    finish();
}
END_TEST

static void free_queue_when_done(void *context, const struct hf_error *err)
{
    done(context, err);
    hf_durable_queue_free(STEAL_PTR(queue), note_freed, &scratch);
}

START_TEST(a_callback_may_free_the_queue)
{
    start();
    hf_durable_queue_append(queue, "j", "one", 3, free_queue_when_done, (void *)(uintptr_t) "a");
    append("j", "two", "b");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "ab");
    finish();
}
END_TEST

static void submit_when_done(void *context, const struct hf_error *err)
{
    done(context, err);
    if (completed_count < 5)
        hf_durable_queue_append(queue, "j", "again", 5, submit_when_done, context);
}

START_TEST(a_callback_may_submit_also_after_a_failure)
{
    start();
    hf_durable_queue_append(queue, "j", "one", 3, submit_when_done, (void *)(uintptr_t) "a");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "aaaaa");
    faults_set("write", 1, ENOSPC);
    completed_count = 0;
    hf_durable_queue_append(queue, "j", "one", 3, submit_when_done, (void *)(uintptr_t) "a");
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_str_eq(completed, "AAAAA");
    finish();
}
END_TEST

static void submit_after_free(void *context)
{
    (void)context;
    hf_durable_queue_free(queue, NULL, NULL);
    append("j", "one", "a");
}

START_TEST(submitting_after_freeing_aborts)
{
    start();
    ck_assert(scratch_aborts(submit_after_free, NULL));
    finish();
}
END_TEST

enum { QUEUES = 200, LINES = 20 };

static void count_done(void *context, const struct hf_error *err)
{
    ck_assert_ptr_null(err);
    ++*(int *)context;
}

START_TEST(hundreds_of_queues_keep_their_own_order)
{
    static struct hf_durable_queue *queues[QUEUES];
    static int directories[QUEUES];
    int count = 0;
    start();
    for (int i = 0; i < QUEUES; i++) {
        char name[16];
        snprintf(name, sizeof name, "run-%d", i);
        directories[i] = hf_dir_open(scratch.fd, name, true, NULL);
        ck_assert_int_ge(directories[i], 0);
        queues[i] = hf_durable_queue_new(&loop, directories[i]);
    }
    for (int line = 0; line < LINES; line++) {
        for (int i = 0; i < QUEUES; i++) {
            char text[32];
            int length = snprintf(text, sizeof text, "%d %d", i, line);
            hf_durable_queue_append(queues[i], "j", text, (size_t)length, count_done, &count);
        }
    }
    for (int i = 0; i < QUEUES; i++)
        hf_durable_queue_free(queues[i], NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(count, QUEUES * LINES);
    for (int i = 0; i < QUEUES; i++) {
        cleanup_free char *text = scratch_read(directories[i], "j", NULL);
        const char *rest = text;
        for (int line = 0; line < LINES; line++) {
            char expected[32];
            int length = snprintf(expected, sizeof expected, "%d %d\n", i, line);
            ck_assert_int_eq(strncmp(rest, expected, (size_t)length), 0);
            rest += length;
        }
        ck_assert_str_eq(rest, "");
        close(directories[i]);
    }
    finish();
}
END_TEST

SCRATCH_MAIN("durable queue", items_complete_in_order_and_are_on_disk, appends_that_gather_share_one_fdatasync,
             batches_end_at_another_journal_a_document_and_a_mebibyte, a_subdirectory_is_created_for_a_document,
             an_empty_document_is_a_document, names_that_leave_the_run_directory_fail,
             after_the_first_failure_nothing_more_is_written, a_failed_group_fails_together,
             every_faulty_operation_fails_its_item, a_line_with_a_newline_fails_alone_and_closes_the_queue,
             freeing_waits_for_everything_submitted, freeing_an_idle_queue_also_calls_back_from_the_loop,
             a_callback_may_free_the_queue, a_callback_may_submit_also_after_a_failure, submitting_after_freeing_aborts,
             hundreds_of_queues_keep_their_own_order)
