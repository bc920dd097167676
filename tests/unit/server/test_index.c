/* The index over runs and the quarantine register. */
#include "server/core/index.h"
#include "tests/unit/server/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uv_loop_t loop;
static char directory[64];
static struct hf_index *index_under_test;
static struct hf_error err;
static int done_count, failed_count;

static void set_up(void)
{
    strcpy(directory, "/tmp/hf-index-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    uv_loop_init(&loop);
    index_under_test = hf_index_open(&loop, directory, &err);
    ck_assert_msg(index_under_test != NULL, "%s", err.message);
    done_count = failed_count = 0;
}

static void tear_down(void)
{
    char command[128];
    hf_index_close(index_under_test);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void on_done(void *context, const struct hf_error *failure)
{
    (void)context;
    done_count++;
    failed_count += failure != NULL;
}

static struct hf_campaign_view view_of(int number)
{
    struct hf_campaign_view view = {.seed = INT64_MAX - number,
                                    .actions = number,
                                    .budget_actions = 8,
                                    .budget_seconds = 900,
                                    .created_wall_ms = UINT64_C(1796133547443) + (uint64_t)number};
    snprintf(view.run_id, sizeof view.run_id, "run-%03d", number);
    strcpy(view.campaign, "guest-isolation");
    strcpy(view.profile, "qemu");
    strcpy(view.backend, "tcg");
    strcpy(view.host_type, "virtual-machine");
    strcpy(view.state, "selecting");
    strcpy(view.status, "running");
    return view;
}

START_TEST(a_row_comes_back_as_it_went_in)
{
    struct hf_campaign_view put = view_of(3), got;
    ck_assert_int_eq(hf_index_put_run_now(index_under_test, &put, &err), 0);
    ck_assert(hf_index_get_run(index_under_test, "run-003", &got));
    ck_assert_mem_eq(&put, &got, sizeof put);
    ck_assert(!hf_index_get_run(index_under_test, "run-004", &got));
}
END_TEST

START_TEST(a_second_write_changes_the_row_and_keeps_its_place)
{
    struct hf_campaign_view views[3];
    for (int i = 0; i < 3; i++) {
        struct hf_campaign_view view = view_of(i);
        hf_index_put_run(index_under_test, &view, on_done, NULL);
    }
    struct hf_campaign_view finished = view_of(0);
    strcpy(finished.status, "failed");
    strcpy(finished.category, "timeout");
    strcpy(finished.failed_case, "alpha");
    finished.finished_wall_ms = 5;
    hf_index_put_run(index_under_test, &finished, on_done, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(done_count, 4);
    ck_assert_int_eq(failed_count, 0);
    ck_assert_uint_eq(hf_index_list_runs(index_under_test, NULL, 3, views), 3);
    ck_assert_str_eq(views[0].run_id, "run-002");
    ck_assert_str_eq(views[2].run_id, "run-000");
    ck_assert_str_eq(views[2].category, "timeout");
    ck_assert_int_eq(hf_index_count_runs(index_under_test), 3);
}
END_TEST

START_TEST(a_list_is_read_in_pages)
{
    struct hf_campaign_view views[10];
    for (int i = 0; i < 40; i++) {
        struct hf_campaign_view view = view_of(i);
        hf_index_put_run(index_under_test, &view, on_done, NULL);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(done_count, 40);
    ck_assert_uint_eq(hf_index_list_runs(index_under_test, "run-020", 10, views), 10);
    ck_assert_str_eq(views[0].run_id, "run-019");
    ck_assert_uint_eq(hf_index_list_runs(index_under_test, "run-004", 10, views), 4);
    ck_assert_uint_eq(hf_index_list_runs(index_under_test, "run-000", 10, views), 0);
    ck_assert_uint_eq(hf_index_list_runs(index_under_test, "run-unknown", 10, views), 0);
}
END_TEST

START_TEST(a_target_is_registered_once_and_stays)
{
    struct hf_quarantine_record record = {.registered_wall_ms = 7}, got;
    strcpy(record.identity, "external:/wrapper:/root");
    strcpy(record.run_id, "run-001");
    strcpy(record.reason, "policy-violation");
    hf_quarantine_record_name(&record);
    ck_assert_int_eq(hf_index_find_quarantine(index_under_test, record.identity, &got, &err), 0);
    hf_index_quarantine(index_under_test, &record, on_done, NULL);
    struct hf_quarantine_record again = record;
    strcpy(again.run_id, "run-002");
    hf_index_quarantine(index_under_test, &again, on_done, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(failed_count, 0);
    ck_assert_int_eq(hf_index_find_quarantine(index_under_test, record.identity, &got, &err), 1);
    ck_assert_mem_eq(&record, &got, sizeof record);
    ck_assert_uint_eq(hf_index_list_quarantine(index_under_test, 1, &got), 1);
    ck_assert_int_eq(strncmp(got.target_id, "target-", 7), 0);
    ck_assert_uint_eq(strlen(got.target_id), 23);
}
END_TEST

START_TEST(what_was_written_is_there_after_opening_again)
{
    struct hf_campaign_view put = view_of(1), got;
    ck_assert_int_eq(hf_index_put_run_now(index_under_test, &put, &err), 0);
    hf_index_close(index_under_test);
    index_under_test = hf_index_open(&loop, directory, &err);
    ck_assert_ptr_nonnull(index_under_test);
    ck_assert(hf_index_get_run(index_under_test, "run-001", &got));
}
END_TEST

static void write_file(const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/index.sqlite", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

START_TEST(a_file_that_is_no_index_is_refused_and_says_what_to_do)
{
    hf_index_close(index_under_test);
    write_file("this is not a database, but it is long enough to be looked at as if it were one, and then refused");
    index_under_test = hf_index_open(&loop, directory, &err);
    ck_assert_ptr_null(index_under_test);
    ck_assert_ptr_nonnull(strstr(err.message, "rebuilt from the run directories"));
}
END_TEST

START_TEST(an_index_of_another_version_is_refused)
{
    char command[200];
    hf_index_close(index_under_test);
    snprintf(command, sizeof command, "sqlite3 %s/index.sqlite 'PRAGMA user_version = 9'", directory);
    ck_assert_int_eq(system(command), 0);
    index_under_test = hf_index_open(&loop, directory, &err);
    ck_assert_ptr_null(index_under_test);
    ck_assert_str_eq(err.code, "index-schema");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_row_comes_back_as_it_went_in);
    tcase_add_test(tests, a_second_write_changes_the_row_and_keeps_its_place);
    tcase_add_test(tests, a_list_is_read_in_pages);
    tcase_add_test(tests, a_target_is_registered_once_and_stays);
    tcase_add_test(tests, what_was_written_is_there_after_opening_again);
    tcase_add_test(tests, a_file_that_is_no_index_is_refused_and_says_what_to_do);
    tcase_add_test(tests, an_index_of_another_version_is_refused);
}

int main(void)
{
    return run_tests("index", add);
}
