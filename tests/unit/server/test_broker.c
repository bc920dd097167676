/* The broker: one way in, every other way refused by name. */
#include "server/core/broker.h"
#include "server/core/prng.h"
#include "tests/unit/server/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture fixture;

static void set_up(void)
{
    fixture_init(&fixture);
    fixture.completed[3] = true; /* delta */
}

static bool judge(const char *answer, size_t length, struct hf_refusal *refusal, size_t *index)
{
    return hf_broker_judge(&fixture.choice, answer, length, index, refusal);
}

#define GOOD "{\"schema_version\":1,\"case_id\":\"beta\"}"

START_TEST(an_exact_answer_is_taken)
{
    static const char *const answers[] = {
        GOOD,
        GOOD "\n",
        " \t\r\n" GOOD " \n\n",
        "{\"case_id\":\"beta\",\"schema_version\":1}",
        "{ \"schema_version\" : 1 , \"case_id\" : \"beta\" }",
        "{\"schema_version\":1,\"case_id\":\"b\\u0065ta\"}",
        "{\"\\u0073chema_version\":1,\"case_id\":\"beta\"}",
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct hf_refusal refusal;
        size_t index = 99;
        ck_assert_msg(judge(answers[i], strlen(answers[i]), &refusal, &index), "%s: %s", answers[i], refusal.message);
        ck_assert_uint_eq(index, 1);
        ck_assert_int_eq(refusal.kind, HF_REFUSAL_NONE);
    }
}
END_TEST

struct row {
    enum hf_refusal_kind kind;
    const char *answer;
};

static const struct row rows[] = {
    {HF_REFUSAL_INVALID_UTF8, "{\"schema_version\":1,\"case_id\":\"be\xff\"}"},
    {HF_REFUSAL_INVALID_UTF8, "{\"schema_version\":1,\"case_id\":\"\xed\xa0\x80\"}"},
    {HF_REFUSAL_INVALID_UTF8, GOOD "\xc3"},
    {HF_REFUSAL_EMPTY, ""},
    {HF_REFUSAL_EMPTY, " \n\t\r "},
    {HF_REFUSAL_NESTED_TOO_DEEP, "[[[[[[[[[[[[[[[[[[[["},
    {HF_REFUSAL_NESTED_TOO_DEEP, "{\"case_id\":{\"a\":[{\"b\":[[[[[[1]]]]]]}]}}"},
    {HF_REFUSAL_NOT_AN_OBJECT, "[" GOOD "]"},
    {HF_REFUSAL_NOT_AN_OBJECT, "\"beta\""},
    {HF_REFUSAL_NOT_AN_OBJECT, "1"},
    {HF_REFUSAL_NOT_AN_OBJECT, "null"},
    {HF_REFUSAL_SURROUNDING_TEXT, "I choose " GOOD},
    {HF_REFUSAL_SURROUNDING_TEXT, "```json\n" GOOD "\n```"},
    {HF_REFUSAL_SURROUNDING_TEXT, GOOD " because it is next."},
    {HF_REFUSAL_SURROUNDING_TEXT, GOOD ","},
    {HF_REFUSAL_SURROUNDING_TEXT, GOOD "]"},
    {HF_REFUSAL_SEVERAL_OBJECTS, GOOD GOOD},
    {HF_REFUSAL_SEVERAL_OBJECTS, GOOD "\n{}"},
    {HF_REFUSAL_MALFORMED_JSON, "{"},
    {HF_REFUSAL_MALFORMED_JSON, "{\"schema_version\":1,\"case_id\":\"beta\""},
    {HF_REFUSAL_MALFORMED_JSON, "{\"schema_version\":01,\"case_id\":\"beta\"}"},
    {HF_REFUSAL_MALFORMED_JSON, "{'schema_version':1,'case_id':'beta'}"},
    {HF_REFUSAL_MALFORMED_JSON, "{\"schema_version\":1,\"case_id\":\"be\\u0000ta\"}"},
    {HF_REFUSAL_MALFORMED_JSON, "beta"},
    {HF_REFUSAL_DUPLICATE_KEY, "{\"schema_version\":1,\"case_id\":\"alpha\",\"case_id\":\"beta\"}"},
    {HF_REFUSAL_DUPLICATE_KEY, "{\"schema_version\":1,\"case_id\":\"alpha\",\"case\\u005fid\":\"beta\"}"},
    {HF_REFUSAL_DUPLICATE_KEY, "{\"schema_version\":1,\"case_id\":{\"a\":1,\"a\":2}}"},
    {HF_REFUSAL_EXTRA_KEY, "{\"schema_version\":1,\"case_id\":\"beta\",\"timeout\":9}"},
    {HF_REFUSAL_EXTRA_KEY, "{\"schema_version\":1,\"case_id\":\"beta\",\"Case_id\":\"beta\"}"},
    {HF_REFUSAL_MISSING_KEY, "{}"},
    {HF_REFUSAL_MISSING_KEY, "{\"case_id\":\"beta\"}"},
    {HF_REFUSAL_MISSING_KEY, "{\"schema_version\":1}"},
    {HF_REFUSAL_SCHEMA_VERSION, "{\"schema_version\":true,\"case_id\":\"beta\"}"},
    {HF_REFUSAL_SCHEMA_VERSION, "{\"schema_version\":1.0,\"case_id\":\"beta\"}"},
    {HF_REFUSAL_SCHEMA_VERSION, "{\"schema_version\":1e0,\"case_id\":\"beta\"}"},
    {HF_REFUSAL_SCHEMA_VERSION, "{\"schema_version\":\"1\",\"case_id\":\"beta\"}"},
    {HF_REFUSAL_SCHEMA_VERSION, "{\"schema_version\":2,\"case_id\":\"beta\"}"},
    {HF_REFUSAL_SCHEMA_VERSION, "{\"schema_version\":null,\"case_id\":\"beta\"}"},
    {HF_REFUSAL_CASE_ID_TYPE, "{\"schema_version\":1,\"case_id\":1}"},
    {HF_REFUSAL_CASE_ID_TYPE, "{\"schema_version\":1,\"case_id\":[\"beta\"]}"},
    {HF_REFUSAL_CASE_ID_TYPE, "{\"schema_version\":1,\"case_id\":null}"},
    {HF_REFUSAL_CASE_COMPLETED, "{\"schema_version\":1,\"case_id\":\"delta\"}"},
    {HF_REFUSAL_CASE_UNKNOWN, "{\"schema_version\":1,\"case_id\":\"epsilon\"}"},
    {HF_REFUSAL_CASE_UNKNOWN, "{\"schema_version\":1,\"case_id\":\"\"}"},
    {HF_REFUSAL_CASE_UNKNOWN, "{\"schema_version\":1,\"case_id\":\"beta \"}"},
};

START_TEST(everything_else_is_refused_by_name)
{
    struct hf_refusal refusal;
    size_t index = 99;
    ck_assert(!judge(rows[_i].answer, strlen(rows[_i].answer), &refusal, &index));
    ck_assert_msg(refusal.kind == rows[_i].kind, "%s: %s, expected %s (%s)", rows[_i].answer,
                  hf_refusal_name(refusal.kind), hf_refusal_name(rows[_i].kind), refusal.message);
    ck_assert_uint_eq(index, 99);
    ck_assert(refusal.message[0] != '\0');
}
END_TEST

START_TEST(an_answer_of_4096_bytes_is_read_and_one_more_is_not)
{
    static char answer[HF_BROKER_MAX_ANSWER + 1];
    struct hf_refusal refusal;
    size_t index;
    memset(answer, ' ', sizeof answer);
    memcpy(answer, GOOD, sizeof GOOD - 1);
    ck_assert(judge(answer, HF_BROKER_MAX_ANSWER, &refusal, &index));
    ck_assert(!judge(answer, HF_BROKER_MAX_ANSWER + 1, &refusal, &index));
    ck_assert_int_eq(refusal.kind, HF_REFUSAL_ANSWER_TOO_LONG);
}
END_TEST

START_TEST(every_kind_has_a_row_and_a_name)
{
    bool seen[HF_REFUSAL_KIND_COUNT] = {[HF_REFUSAL_NONE] = true, [HF_REFUSAL_ANSWER_TOO_LONG] = true};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        seen[rows[i].kind] = true;
    for (int i = 0; i < HF_REFUSAL_KIND_COUNT; i++) {
        ck_assert_msg(seen[i], "%d", i);
        ck_assert_ptr_nonnull(hf_refusal_name((enum hf_refusal_kind)i));
    }
}
END_TEST

START_TEST(a_refusal_echoes_text_only_escaped_and_cut)
{
    char answer[1200] = "{\"schema_version\":1,\"case_id\":\"\\u001b[31m";
    for (size_t i = strlen(answer); i < 1100; i++)
        answer[i] = 'x';
    strcat(answer, "\"}");
    struct hf_refusal refusal;
    size_t index;
    ck_assert(!judge(answer, strlen(answer), &refusal, &index));
    ck_assert_int_eq(refusal.kind, HF_REFUSAL_CASE_UNKNOWN);
    ck_assert_ptr_null(strchr(refusal.message, 0x1b));
    ck_assert_ptr_nonnull(strstr(refusal.message, "\\x1b"));
    ck_assert_uint_lt(strlen(refusal.message), 200);
}
END_TEST

/* ---- mutations against an oracle that knows nothing of the broker ---- */

/* The answers that may be taken, spelled out as a pattern over the bytes: optional whitespace between the tokens of one
 * of the two key orders, plain strings without escapes. Mutations make no other valid spelling. */
static const char *skip(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

static const char *token(const char *at, const char *text)
{
    size_t length = strlen(text);
    return at && strncmp(skip(at), text, length) == 0 ? skip(at) + length : NULL;
}

static bool oracle_accepts(const char *text, const char *case_id)
{
    char quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\"", case_id);
    const char *const orders[2][9] = {
        {"{", "\"schema_version\"", ":", "1", ",", "\"case_id\"", ":", quoted, "}"},
        {"{", "\"case_id\"", ":", quoted, ",", "\"schema_version\"", ":", "1", "}"},
    };
    for (int order = 0; order < 2; order++) {
        const char *at = text;
        for (int i = 0; i < 9; i++)
            at = token(at, orders[order][i]);
        if (at && *skip(at) == '\0')
            return true;
    }
    return false;
}

static void mutate(struct hf_prng *prng, char *text)
{
    static const char alphabet[] = "{}[]\":,01 \n\\abcdefghit_vsr\x7f\xc3\xa4";
    size_t length = strlen(text);
    size_t at = (size_t)hf_prng_below(prng, length + 1);
    switch (hf_prng_below(prng, 4)) {
    case 0: /* insert */
        memmove(text + at + 1, text + at, length - at + 1);
        text[at] = alphabet[hf_prng_below(prng, sizeof alphabet - 1)];
        break;
    case 1: /* remove */
        if (at < length)
            memmove(text + at, text + at + 1, length - at);
        break;
    case 2: /* replace */
        if (at < length)
            text[at] = alphabet[hf_prng_below(prng, sizeof alphabet - 1)];
        break;
    default: /* cut */
        if (hf_prng_below(prng, 8) == 0)
            text[at] = '\0';
        break;
    }
}

START_TEST(ten_thousand_mutations_agree_with_an_independent_oracle)
{
    struct hf_prng prng;
    int accepted = 0, refused = 0;
    hf_prng_init(&prng, 20261201);
    for (int i = 0; i < 10000; i++) {
        char text[256] = GOOD;
        for (uint64_t mutations = hf_prng_below(&prng, 4); mutations > 0; mutations--)
            mutate(&prng, text);
        struct hf_refusal refusal;
        size_t index = 99;
        bool taken = judge(text, strlen(text), &refusal, &index);
        bool expected = false;
        for (size_t of_case = 0; of_case < 3; of_case++)
            expected = expected || oracle_accepts(text, fixture.cases[of_case].id);
        ck_assert_msg(taken == expected, "%s: %s", text, taken ? "taken" : refusal.message);
        accepted += taken;
        refused += !taken;
    }
    ck_assert_int_gt(accepted, 2000);
    ck_assert_int_gt(refused, 4000);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, an_exact_answer_is_taken);
    tcase_add_loop_test(tests, everything_else_is_refused_by_name, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(tests, an_answer_of_4096_bytes_is_read_and_one_more_is_not);
    tcase_add_test(tests, every_kind_has_a_row_and_a_name);
    tcase_add_test(tests, a_refusal_echoes_text_only_escaped_and_cut);
    tcase_add_test(tests, ten_thousand_mutations_agree_with_an_independent_oracle);
}

int main(void)
{
    return run_tests("broker", add);
}
