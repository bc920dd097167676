/*
 * The reader and writer under hostile input: a table of one-mebibyte texts that would hurt a careless parser, and
 * seeded random documents and mutations. Time is bounded because every step has to stay at n log n.
 */
#include "common/cleanup.h"
#include "common/json.h"
#include "scratch.h"

#include <stdarg.h>
#include <string.h>

#define MEBIBYTE (1U << 20)
/* Generous for a sanitizer build on a busy machine; quadratic work on these texts takes minutes. */
#define MAX_CPU_SECONDS 10.0

static const struct hf_json_limits usual = {.max_bytes = MEBIBYTE, .max_depth = HF_JSON_MAX_DEPTH};

/* A text under construction that stops growing at one mebibyte, leaving room to close what is open. */
struct builder {
    char *text;
    size_t used;
};

static bool add(struct builder *builder, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool add(struct builder *builder, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(builder->text + builder->used, MEBIBYTE - builder->used, format, arguments);
    va_end(arguments);
    builder->used += (size_t)written;
    return builder->used + 1024 < MEBIBYTE;
}

static void fill(struct builder *builder, const char *piece)
{
    while (add(builder, "%s", piece))
        continue;
}

static void deep_arrays(struct builder *builder)
{
    fill(builder, "[");
}

static void deep_objects(struct builder *builder)
{
    fill(builder, "{\"a\":");
}

static void one_long_key(struct builder *builder)
{
    add(builder, "{\"");
    fill(builder, "0123456789abcdef");
    add(builder, "\":1}");
}

static void many_keys(struct builder *builder)
{
    add(builder, "{\"first\":0");
    for (unsigned i = 0; add(builder, ",\"key-%012x\":0", i); i++)
        continue;
    add(builder, "}");
}

static void many_keys_with_one_prefix(struct builder *builder)
{
    add(builder, "{\"first\":0");
    for (unsigned i = 0; add(builder, ",\"%0200u\":0", i); i++)
        continue;
    add(builder, "}");
}

static void many_equal_keys(struct builder *builder)
{
    add(builder, "{\"k\":0");
    fill(builder, ",\"one-key-all-over\":0");
    add(builder, "}");
}

static void one_repeated_key_at_the_far_end(struct builder *builder)
{
    add(builder, "{\"first\":0");
    for (unsigned i = 0; add(builder, ",\"key-%012x\":0", i); i++)
        continue;
    add(builder, ",\"first\":0}");
}

static void many_small_objects(struct builder *builder)
{
    add(builder, "[0");
    fill(builder, ",{\"a\":1,\"b\":\"\"}");
    add(builder, "]");
}

static void many_empty_arrays(struct builder *builder)
{
    add(builder, "[0");
    fill(builder, ",[]");
    add(builder, "]");
}

static void a_long_integer(struct builder *builder)
{
    fill(builder, "9999999999999999");
}

static void a_long_fraction(struct builder *builder)
{
    add(builder, "0.");
    fill(builder, "1234567890123456");
}

static void a_long_exponent(struct builder *builder)
{
    add(builder, "1e");
    fill(builder, "9999999999999999");
}

static void a_long_negative_exponent(struct builder *builder)
{
    add(builder, "1e-");
    fill(builder, "9999999999999999");
}

static void a_string_of_escapes(struct builder *builder)
{
    add(builder, "\"");
    fill(builder, "\\ud83d\\ude00\\u001f");
    add(builder, "\"");
}

static void a_string_of_backslashes(struct builder *builder)
{
    add(builder, "\"");
    fill(builder, "\\\\");
}

static void open_strings(struct builder *builder)
{
    fill(builder, "[\"");
}

static void only_whitespace(struct builder *builder)
{
    fill(builder, " \n\r\t");
}

static void values_without_commas(struct builder *builder)
{
    fill(builder, "[1] ");
}

START_TEST(a_mebibyte_of_anything_is_answered_in_bounded_time)
{
    static const struct {
        const char *name;
        void (*build)(struct builder *builder);
        const char *refusal; /* NULL: accepted */
    } cases[] = {
        {"deep arrays", deep_arrays, "at most 64 levels"},
        {"deep objects", deep_objects, "at most 64 levels"},
        {"one long key", one_long_key, NULL},
        {"many keys", many_keys, NULL},
        {"many keys with one prefix", many_keys_with_one_prefix, NULL},
        {"many equal keys", many_equal_keys, "every key once"},
        {"one repeated key at the far end", one_repeated_key_at_the_far_end, "every key once"},
        {"many small objects", many_small_objects, "at most 65536 values"},
        {"many empty arrays", many_empty_arrays, "at most 65536 values"},
        {"a long integer", a_long_integer, "an integer within"},
        {"a long fraction", a_long_fraction, NULL},
        {"a long exponent", a_long_exponent, "a finite number"},
        {"a long negative exponent", a_long_negative_exponent, NULL},
        {"a string of escapes", a_string_of_escapes, NULL},
        {"a string of backslashes", a_string_of_backslashes, "a closing quotation mark"},
        {"open strings", open_strings, "a comma or ']'"},
        {"only whitespace", only_whitespace, "a value, found the end"},
        {"values without commas", values_without_commas, "the end of the input"},
    };
    cleanup_free char *text = malloc(MEBIBYTE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct builder builder = {text, 0};
        struct hf_error err = {0};
        cases[i].build(&builder);
        ck_assert_uint_gt(builder.used, MEBIBYTE - 2048);
        double start = scratch_cpu_seconds();
        cleanup_json cJSON *item = hf_json_parse(text, builder.used, &usual, &err);
        if (item)
            free(hf_json_canonical(item, NULL));
        double used = scratch_cpu_seconds() - start;
        ck_assert_msg(used < MAX_CPU_SECONDS, "%s took %.1f s", cases[i].name, used);
        ck_assert_msg(!item == !!cases[i].refusal, "%s: %s", cases[i].name, item ? "accepted" : err.message);
        if (!item)
            ck_assert_msg(strstr(err.message, cases[i].refusal) != NULL, "%s: %s", cases[i].name, err.message);
    }
}
END_TEST

static void random_text(unsigned long long *seed, char *out, unsigned max_code_points)
{
    static const char *const pieces[] = {"a",
                                         "Z",
                                         "0",
                                         " ",
                                         "\"",
                                         "\\",
                                         "/",
                                         "\n",
                                         "\t",
                                         "\x01",
                                         "\x1f",
                                         "\x7f",
                                         "\xc3\xa9",
                                         "\xe2\x80\xa8",
                                         "\xef\xbf\xbf",
                                         "\xf0\x9f\x98\x80",
                                         "\xf4\x8f\xbf\xbf"};
    out[0] = '\0';
    for (unsigned left = scratch_random(seed, max_code_points + 1); left > 0; left--)
        strcat(out, pieces[scratch_random(seed, sizeof pieces / sizeof pieces[0])]);
}

static cJSON *random_number(unsigned long long *seed)
{
    char text[64];
    uint64_t bits = (uint64_t)scratch_random(seed, UINT32_MAX) << 33 ^ scratch_random(seed, UINT32_MAX);
    int64_t value = (int64_t)bits >> scratch_random(seed, 64);
    if (scratch_random(seed, 2))
        return hf_json_new_int(value);
    snprintf(text, sizeof text, "%.*e", (int)scratch_random(seed, 18),
             (double)value * (scratch_random(seed, 2) ? 1e-9 : 1e250));
    return scratch_parse(text);
}

static cJSON *random_value(unsigned long long *seed, unsigned depth)
{
    char text[256];
    unsigned kind = scratch_random(seed, depth > 4 ? 5 : 8);
    if (kind == 0)
        return random_number(seed);
    if (kind <= 2) {
        random_text(seed, text, 20);
        return hf_json_new_string(text);
    }
    if (kind == 3)
        return cJSON_CreateBool(scratch_random(seed, 2) != 0);
    if (kind == 4)
        return cJSON_CreateNull();
    bool object = kind == 5;
    cJSON *container = object ? hf_json_new_object() : hf_json_new_array();
    for (unsigned left = scratch_random(seed, 6); left > 0; left--) {
        cJSON *child = random_value(seed, depth + 1);
        random_text(seed, text, 8);
        if (!object)
            hf_json_append(container, child);
        else if (!hf_json_get(container, text))
            hf_json_add(container, text, child);
        else
            cJSON_Delete(child);
    }
    return container;
}

static bool equal(const cJSON *left, const cJSON *right);

/* Members may come in another order: canonical JSON sorts them. */
static bool equal_children(const cJSON *left, const cJSON *right)
{
    const cJSON *other = right->child;
    for (const cJSON *child = left->child; child; child = child->next) {
        const cJSON *match = cJSON_IsObject(left) ? hf_json_get(right, child->string) : other;
        if (!match || !equal(child, match))
            return false;
        other = other ? other->next : NULL;
    }
    return cJSON_GetArraySize(left) == cJSON_GetArraySize(right);
}

static bool equal(const cJSON *left, const cJSON *right)
{
    int64_t left_value, right_value;
    if ((left->type & 0xff) != (right->type & 0xff))
        return false;
    if (cJSON_IsString(left))
        return strcmp(left->valuestring, right->valuestring) == 0;
    if (cJSON_IsNumber(left) && hf_json_get_int64(left, &left_value))
        return hf_json_get_int64(right, &right_value) && left_value == right_value;
    if (cJSON_IsNumber(left))
        return !hf_json_get_int64(right, &right_value) && left->valuedouble == right->valuedouble;
    return equal_children(left, right);
}

START_TEST(parsing_the_canonical_text_gives_the_same_tree)
{
    for (unsigned long long round = 1; round <= 20000; round++) {
        unsigned long long seed = round;
        struct hf_error err = {0};
        size_t length;
        cleanup_json cJSON *tree = random_value(&seed, 0);
        cleanup_free char *text = hf_json_canonical(tree, &length);
        cleanup_json cJSON *back = hf_json_parse(text, length, &usual, &err);
        ck_assert_msg(back != NULL, "seed %llu: %s: %s", round, err.message, text);
        ck_assert_msg(equal(tree, back), "seed %llu: %s", round, text);
        cleanup_free char *again = hf_json_canonical(back, NULL);
        ck_assert_str_eq(text, again);
        ck_assert_uint_eq(strspn(text, " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
                                       "abcdefghijklmnopqrstuvwxyz{|}~"),
                          length);
    }
}
END_TEST

START_TEST(mutated_texts_are_refused_or_read_consistently)
{
    static const char bytes[] = "{}[]\",:\\0123456789.eE+-tfnu \n\x01\x80\xff";
    unsigned accepted = 0;
    for (unsigned long long round = 1; round <= 20000; round++) {
        unsigned long long seed = round;
        struct hf_error err = {0};
        size_t length;
        cleanup_json cJSON *tree = random_value(&seed, 0);
        cleanup_free char *text = hf_json_canonical(tree, &length);
        for (unsigned left = 1 + scratch_random(&seed, 3); left > 0; left--)
            text[scratch_random(&seed, (unsigned)length)] = bytes[scratch_random(&seed, sizeof bytes)];
        cleanup_json cJSON *mutant = hf_json_parse(text, length, &usual, &err);
        if (!mutant) {
            ck_assert_str_eq(err.code, "json-invalid");
            continue;
        }
        accepted++;
        cleanup_free char *canonical = hf_json_canonical(mutant, &length);
        cleanup_json cJSON *back = hf_json_parse(canonical, length, &usual, &err);
        ck_assert_msg(back && equal(mutant, back), "seed %llu: %s", round, text);
    }
    ck_assert_uint_gt(accepted, 100); /* otherwise the property above was hardly tried */
}
END_TEST

SCRATCH_MAIN("json hostile", a_mebibyte_of_anything_is_answered_in_bounded_time,
             parsing_the_canonical_text_gives_the_same_tree, mutated_texts_are_refused_or_read_consistently)
