/*
 * The printers, and the generated documents in docs/statemachines/. A test that finds a document out of date says how
 * to write it anew: HF_UPDATE_DOCS=1 in the environment of this program, run in the source tree.
 */
#include "statemachines/print.h"
#include "tests/run_suite.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A growing text; the tests print machines of some ten kilobytes. */
struct text {
    char *bytes;
    size_t length;
    size_t calls;
};

static void collect(void *context, const char *bytes, size_t length)
{
    struct text *text = context;
    text->bytes = realloc(text->bytes, text->length + length + 1);
    ck_assert_ptr_nonnull(text->bytes);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
    text->calls++;
}

static void add(struct text *text, const char *more)
{
    collect(text, more, strlen(more));
}

static cJSON *parse_all(void)
{
    struct text text = {0};
    hf_sm_print_json(collect, &text);
    cJSON *document = cJSON_ParseWithLengthOpts(text.bytes, text.length, NULL, false);
    ck_assert_ptr_nonnull(document);
    free(text.bytes);
    return document;
}

START_TEST(json_holds_every_row_of_every_machine)
{
    size_t count;
    const struct hf_sm_definition *const *machines = hf_sm_all(&count);
    cJSON *document = parse_all();
    const cJSON *printed = cJSON_GetObjectItemCaseSensitive(document, "machines");
    ck_assert_int_eq(cJSON_GetArraySize(printed), (int)count);
    for (size_t i = 0; i < count; i++) {
        const cJSON *rows = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(printed, (int)i), "rows");
        ck_assert_int_eq(cJSON_GetArraySize(rows), (int)machines[i]->row_count);
        const cJSON *last = cJSON_GetArrayItem(rows, (int)machines[i]->row_count - 1);
        const struct hf_sm_row *row = &machines[i]->rows[machines[i]->row_count - 1];
        ck_assert_str_eq(cJSON_GetObjectItemCaseSensitive(last, "state")->valuestring,
                         machines[i]->state_names[row->state]);
        ck_assert_str_eq(cJSON_GetObjectItemCaseSensitive(last, "event")->valuestring,
                         machines[i]->event_names[row->event]);
    }
    cJSON_Delete(document);
}
END_TEST

START_TEST(json_is_canonical)
{
    struct text text = {0};
    hf_sm_print_json(collect, &text);
    cJSON *document = cJSON_Parse(text.bytes);
    char *compact = cJSON_PrintUnformatted(document); /* keeps the order of members */
    ck_assert_uint_eq(text.length, strlen(compact) + 1);
    ck_assert_int_eq(memcmp(text.bytes, compact, text.length - 1), 0);
    for (const cJSON *machine = cJSON_GetObjectItem(document, "machines")->child; machine; machine = machine->next) {
        for (const cJSON *member = machine->child; member->next; member = member->next)
            ck_assert_int_lt(strcmp(member->string, member->next->string), 0);
    }
    free(compact);
    free(text.bytes);
    cJSON_Delete(document);
}
END_TEST

START_TEST(dot_of_all_is_the_dots_of_each)
{
    size_t count;
    const struct hf_sm_definition *const *machines = hf_sm_all(&count);
    struct text all = {0}, each = {0};
    hf_sm_print_dot(collect, &all);
    for (size_t i = 0; i < count; i++)
        hf_sm_print_dot_one(machines[i], collect, &each);
    ck_assert_str_eq(all.bytes, each.bytes);
    free(all.bytes);
    free(each.bytes);
}
END_TEST

START_TEST(dot_draws_every_pair_of_states_once)
{
    size_t count;
    const struct hf_sm_definition *machine = hf_sm_all(&count)[_i];
    struct text text = {0};
    hf_sm_print_dot_one(machine, collect, &text);
    for (size_t i = 0; i < machine->row_count; i++) {
        char edge[128];
        snprintf(edge, sizeof edge, "  %s -> %s [", machine->state_names[machine->rows[i].state],
                 machine->state_names[machine->rows[i].next]);
        const char *first = strstr(text.bytes, edge);
        ck_assert_msg(first && !strstr(first + 1, edge), "%s: %s", machine->name, edge);
    }
    free(text.bytes);
}
END_TEST

static char *read_document(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    struct text text = {0};
    char chunk[4096];
    size_t length;
    add(&text, "");
    while ((length = fread(chunk, 1, sizeof chunk, file)) > 0)
        collect(&text, chunk, length);
    fclose(file);
    return text.bytes;
}

static void expect_document(const char *path, const struct text *expected)
{
    if (getenv("HF_UPDATE_DOCS")) {
        FILE *file = fopen(path, "we");
        ck_assert_msg(file && fwrite(expected->bytes, 1, expected->length, file) == expected->length, "%s", path);
        ck_assert_int_eq(fclose(file), 0);
    }
    char *present = read_document(path);
    ck_assert_msg(present && strcmp(present, expected->bytes) == 0,
                  "%s is not what the tables say; run HF_UPDATE_DOCS=1 test_sm_print in the source tree", path);
    free(present);
}

START_TEST(dot_document_is_up_to_date)
{
    size_t count;
    const struct hf_sm_definition *machine = hf_sm_all(&count)[_i];
    struct text expected = {0};
    char path[128];
    hf_sm_print_dot_one(machine, collect, &expected);
    snprintf(path, sizeof path, "docs/statemachines/%s.dot", machine->name);
    expect_document(path, &expected);
    free(expected.bytes);
}
END_TEST

START_TEST(markdown_document_is_up_to_date)
{
    size_t count;
    const struct hf_sm_definition *machine = hf_sm_all(&count)[_i];
    struct text expected = {0};
    char path[128];
    add(&expected, "# ");
    add(&expected, machine->name);
    add(&expected, "\n\nGenerated from `statemachines/");
    add(&expected, machine->name);
    add(&expected, ".c`; the effects of each row are in the `.dot` file beside this one.\n\n```mermaid\n");
    hf_sm_print_mermaid_one(machine, collect, &expected);
    add(&expected, "```\n");
    snprintf(path, sizeof path, "docs/statemachines/%s.md", machine->name);
    expect_document(path, &expected);
    free(expected.bytes);
}
END_TEST

static Suite *print_suite(void)
{
    Suite *suite = suite_create("statemachines/print");
    TCase *print = tcase_create("print");
    tcase_add_test(print, json_holds_every_row_of_every_machine);
    tcase_add_test(print, json_is_canonical);
    tcase_add_test(print, dot_of_all_is_the_dots_of_each);
    tcase_add_loop_test(print, dot_draws_every_pair_of_states_once, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(print, dot_document_is_up_to_date, 0, HF_SM_MACHINE_COUNT);
    tcase_add_loop_test(print, markdown_document_is_up_to_date, 0, HF_SM_MACHINE_COUNT);
    suite_add_tcase(suite, print);
    return suite;
}

int main(void)
{
    return run_suite(print_suite());
}
