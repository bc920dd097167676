/*
 * Implementation of broker.h. First the bytes (length, UTF-8), then the outline (where the value begins and ends, how
 * deep it goes), then the strict reader, then the two keys. The outline exists only to name the refusal; nothing is
 * accepted that the strict reader has not read as a whole.
 */
#include "server/core/broker.h"

#include "common/cleanup.h"
#include "common/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const char *const refusal_names[HF_REFUSAL_KIND_COUNT] = {
    [HF_REFUSAL_NONE] = "none",
    [HF_REFUSAL_ANSWER_TOO_LONG] = "answer-too-long",
    [HF_REFUSAL_INVALID_UTF8] = "invalid-utf8",
    [HF_REFUSAL_EMPTY] = "empty",
    [HF_REFUSAL_NESTED_TOO_DEEP] = "nested-too-deep",
    [HF_REFUSAL_NOT_AN_OBJECT] = "not-an-object",
    [HF_REFUSAL_SURROUNDING_TEXT] = "surrounding-text",
    [HF_REFUSAL_SEVERAL_OBJECTS] = "several-objects",
    [HF_REFUSAL_MALFORMED_JSON] = "malformed-json",
    [HF_REFUSAL_DUPLICATE_KEY] = "duplicate-key",
    [HF_REFUSAL_EXTRA_KEY] = "extra-key",
    [HF_REFUSAL_MISSING_KEY] = "missing-key",
    [HF_REFUSAL_SCHEMA_VERSION] = "schema-version",
    [HF_REFUSAL_CASE_ID_TYPE] = "case-id-type",
    [HF_REFUSAL_CASE_COMPLETED] = "case-completed",
    [HF_REFUSAL_CASE_UNKNOWN] = "case-unknown",
};

const char *hf_refusal_name(enum hf_refusal_kind kind)
{
    return refusal_names[kind];
}

/* Fills the refusal and returns false, so that a check can `return refuse(...)`. */
static bool __attribute__((format(printf, 3, 4)))
refuse(struct hf_refusal *refusal, enum hf_refusal_kind kind, const char *format, ...)
{
    refusal->kind = kind;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(refusal->message, sizeof refusal->message, format, arguments);
    va_end(arguments);
    return false;
}

/* Where the first top-level bracket opens and where it closes. */
struct outline {
    size_t first;     /* offset of the first byte that is not whitespace; length when there is none */
    size_t open;      /* offset of the first '{' or '[' outside a string; length when there is none */
    size_t end;       /* one past the bracket that closes it; length when it never closes */
    size_t next;      /* offset of the first byte after it that is not whitespace; length when there is none */
    unsigned deepest; /* brackets open at once, at most HF_BROKER_MAX_DEPTH + 1 */
};

static size_t skip_whitespace(const char *text, size_t length, size_t offset)
{
    while (offset < length && text[offset] != '\0' && strchr(" \t\r\n", text[offset]))
        offset++;
    return offset;
}

static struct outline outline_of(const char *text, size_t length)
{
    struct outline outline = {.first = skip_whitespace(text, length, 0), .open = length, .end = length, .next = length};
    unsigned depth = 0;
    bool in_string = false;
    for (size_t i = outline.first; i < length && outline.end == length; i++) {
        if (in_string) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_string = false;
        } else if (text[i] == '"') {
            /* Quotation marks in prose before the object do not hide it. */
            in_string = depth > 0 || i == outline.first;
        } else if (text[i] == '{' || text[i] == '[') {
            outline.open = depth == 0 ? i : outline.open;
            depth++;
            outline.deepest = depth > outline.deepest ? depth : outline.deepest;
        } else if ((text[i] == '}' || text[i] == ']') && depth > 0 && --depth == 0) {
            outline.end = i + 1;
        }
        if (outline.deepest > HF_BROKER_MAX_DEPTH)
            return outline;
    }
    outline.next = skip_whitespace(text, length, outline.end);
    return outline;
}

static bool is_utf8(const void *text, size_t length)
{
    const uint8_t *bytes = text;
    uint32_t code_point;
    for (size_t offset = 0, size; offset < length; offset += size)
        if ((size = hf_utf8_decode(bytes + offset, length - offset, &code_point)) == 0)
            return false;
    return true;
}

static bool check_bytes(const char *answer, size_t length, struct hf_refusal *refusal)
{
    if (length > HF_BROKER_MAX_ANSWER)
        return refuse(refusal, HF_REFUSAL_ANSWER_TOO_LONG, "expected at most %d bytes, the answer is longer",
                      HF_BROKER_MAX_ANSWER);
    if (!is_utf8(answer, length))
        return refuse(refusal, HF_REFUSAL_INVALID_UTF8, "expected UTF-8, the answer is not");
    if (skip_whitespace(answer, length, 0) == length)
        return refuse(refusal, HF_REFUSAL_EMPTY, "expected one JSON object, the answer is empty");
    return true;
}

/* Names what is wrong with an answer that is not exactly one object, from its outline. */
static bool check_outline(const char *answer, size_t length, struct hf_refusal *refusal)
{
    struct outline outline = outline_of(answer, length);
    if (outline.deepest > HF_BROKER_MAX_DEPTH)
        return refuse(refusal, HF_REFUSAL_NESTED_TOO_DEEP,
                      "expected one flat object, found more than %d levels of nesting", HF_BROKER_MAX_DEPTH);
    struct hf_json_limits limits = {HF_BROKER_MAX_ANSWER, HF_BROKER_MAX_DEPTH + 1};
    if (answer[outline.first] != '{') {
        cleanup_json cJSON *other = hf_json_parse(answer, length, &limits, NULL);
        if (other)
            return refuse(refusal, HF_REFUSAL_NOT_AN_OBJECT,
                          "expected one JSON object, found a JSON value of another type");
        if (outline.open < length && answer[outline.open] == '{' && outline.end > outline.open &&
            answer[outline.end - 1] == '}')
            return refuse(refusal, HF_REFUSAL_SURROUNDING_TEXT, "expected one JSON object alone, found text before it");
        return refuse(refusal, HF_REFUSAL_MALFORMED_JSON, "expected one JSON object, the answer is not JSON");
    }
    if (outline.next < length && answer[outline.next] == '{')
        return refuse(refusal, HF_REFUSAL_SEVERAL_OBJECTS, "expected one JSON object, found a second one after it");
    if (outline.next < length)
        return refuse(refusal, HF_REFUSAL_SURROUNDING_TEXT, "expected one JSON object alone, found text after it");
    return true;
}

static bool check_keys(const cJSON *object, struct hf_refusal *refusal)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        if (strcmp(member->string, "schema_version") != 0 && strcmp(member->string, "case_id") != 0)
            return refuse(refusal, HF_REFUSAL_EXTRA_KEY,
                          "expected only the keys schema_version and case_id, found also \"%s\"",
                          hf_error_quote(member->string, strlen(member->string), quoted));
    }
    static const char *const required[] = {"schema_version", "case_id"};
    for (size_t i = 0; i < 2; i++)
        if (!hf_json_get(object, required[i]))
            return refuse(refusal, HF_REFUSAL_MISSING_KEY,
                          "expected the keys schema_version and case_id, %s is missing", required[i]);
    return true;
}

static bool find_case(const struct hf_choice *choice, const char *case_id, size_t *case_index,
                      struct hf_refusal *refusal)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    for (size_t i = 0; i < choice->campaign->case_count; i++) {
        if (strcmp(choice->campaign->cases[i].id, case_id) != 0)
            continue;
        if (choice->completed[i])
            return refuse(refusal, HF_REFUSAL_CASE_COMPLETED, "expected one of the candidates, case %s was already run",
                          choice->campaign->cases[i].id);
        *case_index = i;
        return true;
    }
    return refuse(refusal, HF_REFUSAL_CASE_UNKNOWN, "expected one of the candidates, \"%s\" is none of them",
                  hf_error_quote(case_id, strlen(case_id), quoted));
}

bool hf_broker_judge(const struct hf_choice *choice, const void *answer, size_t length, size_t *case_index,
                     struct hf_refusal *refusal)
{
    *refusal = (struct hf_refusal){.kind = HF_REFUSAL_NONE};
    if (!check_bytes(answer, length, refusal) || !check_outline(answer, length, refusal))
        return false;
    struct hf_json_limits limits = {HF_BROKER_MAX_ANSWER, HF_BROKER_MAX_DEPTH};
    struct hf_error err = {0};
    cleanup_json cJSON *object = hf_json_parse(answer, length, &limits, &err);
    if (!object && err.saved_errno == EEXIST)
        return refuse(refusal, HF_REFUSAL_DUPLICATE_KEY, "expected every key once, found a repeated key");
    if (!object)
        return refuse(refusal, HF_REFUSAL_MALFORMED_JSON, "%.400s", err.message);
    if (!check_keys(object, refusal))
        return false;
    int64_t version;
    if (!hf_json_get_int64(hf_json_get(object, "schema_version"), &version) || version != 1)
        return refuse(refusal, HF_REFUSAL_SCHEMA_VERSION, "expected schema_version to be the integer 1");
    const char *case_id = hf_json_get_string(object, "case_id");
    if (!case_id)
        return refuse(refusal, HF_REFUSAL_CASE_ID_TYPE, "expected case_id to be a string");
    return find_case(choice, case_id, case_index, refusal);
}
