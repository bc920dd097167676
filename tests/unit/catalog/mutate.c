/* Implementation of mutate.h. */
#include "tests/unit/catalog/mutate.h"

#include "common/cleanup.h"
#include "common/json.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct hf_json_limits limits = {4 * 1024 * 1024, HF_JSON_MAX_DEPTH};

struct node {
    cJSON *item;
    cJSON *parent; /* NULL for the root */
    char path[160];
};

static cJSON *parse_or_fail(const char *text)
{
    struct hf_error err = {0};
    cJSON *document = hf_json_parse(text, strlen(text), &limits, &err);
    ck_assert_msg(document != NULL, "not JSON: %s: %s", text, err.message);
    return document;
}

static cJSON *take_copy(const cJSON *item)
{
    cleanup_free char *text = hf_json_canonical(item, NULL);
    return parse_or_fail(text);
}

/* Finds the node that is number *index in document order, counting down. */
static bool find_node(cJSON *item, cJSON *parent, const char *path, size_t *index, struct node *out)
{
    if (*index == 0) {
        out->item = item;
        out->parent = parent;
        snprintf(out->path, sizeof(out->path), "%s", path);
        return true;
    }
    (*index)--;
    size_t position = 0;
    for (cJSON *child = item->child; child; child = child->next, position++) {
        char child_path[400];
        if (cJSON_IsArray(item))
            snprintf(child_path, sizeof(child_path), "%s[%zu]", path, position);
        else
            snprintf(child_path, sizeof(child_path), "%s%s%s", path, path[0] ? "." : "", child->string);
        if (find_node(child, item, child_path, index, out))
            return true;
    }
    return false;
}

static bool is_exception(const struct mutation_subject *subject, const char *path, const char *json)
{
    for (size_t i = 0; i < subject->exception_count; i++)
        if (strcmp(subject->exceptions[i].path, path) == 0 && strcmp(subject->exceptions[i].json, json) == 0)
            return true;
    return false;
}

static void expect_text_refusal(const struct mutation_subject *subject, const char *text, const char *path,
                                const char *what, const char *code)
{
    struct hf_error err = {0};
    int result = subject->parse(text, strlen(text), subject->context, &err);
    ck_assert_msg(result == -1, "accepted: %s %s", path, what);
    ck_assert_msg(strcmp(err.code, code) == 0, "%s %s: code %s, expected %s: %s", path, what, err.code, code,
                  err.message);
    ck_assert_msg(strcmp(code, "json-invalid") == 0 || strcmp(err.field, path) == 0,
                  "%s %s: refused for field \"%s\": %s", path, what, err.field, err.message);
    ck_assert_msg(err.message[0] != '\0', "%s %s: no message", path, what);
}

static void expect_refusal(const struct mutation_subject *subject, const cJSON *mutant, const char *path,
                           const char *what)
{
    cleanup_free char *text = hf_json_canonical(mutant, NULL);
    expect_text_refusal(subject, text, path, what, subject->code);
}

/* null, boolean, integer, fraction, string, array, object. */
static int kind_of(const cJSON *item)
{
    int64_t integer;
    if (cJSON_IsNumber(item))
        return hf_json_get_int64(item, &integer) ? 2 : 3;
    return cJSON_IsNull(item) ? 0 : cJSON_IsBool(item) ? 1 : cJSON_IsString(item) ? 4 : cJSON_IsArray(item) ? 5 : 6;
}

static size_t mutate_type(const struct mutation_subject *subject, size_t index)
{
    static const char *const values[] = {"null", "true", "7", "1.5", "\"x\"", "[]", "{}"};
    size_t tried = 0;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        cleanup_json cJSON *document = parse_or_fail(subject->valid);
        struct node node;
        size_t countdown = index;
        ck_assert(find_node(document, NULL, "", &countdown, &node));
        cJSON *value = parse_or_fail(values[i]);
        if (kind_of(node.item) == kind_of(value) || is_exception(subject, node.path, values[i])) {
            cJSON_Delete(value);
            continue;
        }
        if (node.parent && cJSON_IsObject(node.parent)) {
            cleanup_free char *key = strdup(node.item->string);
            cJSON_ReplaceItemInObjectCaseSensitive(node.parent, key, value);
        } else if (node.parent) {
            cJSON_ReplaceItemViaPointer(node.parent, node.item, value);
        } else {
            cJSON_Delete(document);
            document = value;
        }
        expect_refusal(subject, document, node.path, values[i]);
        tried++;
    }
    return tried;
}

static size_t mutate_absence(const struct mutation_subject *subject, size_t index)
{
    cleanup_json cJSON *document = parse_or_fail(subject->valid);
    struct node node;
    ck_assert(find_node(document, NULL, "", &index, &node));
    if (!node.parent || !cJSON_IsObject(node.parent) || is_exception(subject, node.path, "absent"))
        return 0;
    cJSON_Delete(cJSON_DetachItemViaPointer(node.parent, node.item));
    expect_refusal(subject, document, node.path, "absent");
    return 1;
}

static size_t mutate_doubling(const struct mutation_subject *subject, size_t index)
{
    cleanup_json cJSON *document = parse_or_fail(subject->valid);
    struct node node;
    ck_assert(find_node(document, NULL, "", &index, &node));
    if (!node.parent || !cJSON_IsObject(node.parent))
        return 0;
    /* No writer of the project can double a key, so the second one is put into the text. */
    static const char marker[] = "\"!second!\":";
    hf_json_add(node.parent, "!second!", take_copy(node.item));
    cleanup_free char *text = hf_json_canonical(document, NULL);
    const char *at = strstr(text, marker);
    ck_assert(at != NULL);
    size_t size = strlen(text) + strlen(node.item->string);
    cleanup_free char *doubled = malloc(size);
    ck_assert(doubled != NULL);
    snprintf(doubled, size, "%.*s\"%s\":%s", (int)(at - text), text, node.item->string, at + strlen(marker));
    expect_text_refusal(subject, doubled, node.path, "doubled", "json-invalid");
    return 1;
}

static size_t mutate_extension(const struct mutation_subject *subject, size_t index)
{
    cleanup_json cJSON *document = parse_or_fail(subject->valid);
    struct node node;
    ck_assert(find_node(document, NULL, "", &index, &node));
    if (!cJSON_IsObject(node.item))
        return 0;
    hf_json_add_int(node.item, "unexpected", 1);
    expect_refusal(subject, document, node.path, "extended");
    return 1;
}

size_t mutate_all(const struct mutation_subject *subject)
{
    struct hf_error err = {0};
    ck_assert_msg(subject->parse(subject->valid, strlen(subject->valid), subject->context, &err) == 0,
                  "the valid document is refused: %s", err.message);
    size_t tried = 0;
    for (size_t index = 0;; index++) {
        cleanup_json cJSON *document = parse_or_fail(subject->valid);
        struct node node;
        size_t countdown = index;
        if (!find_node(document, NULL, "", &countdown, &node))
            return tried;
        tried += mutate_type(subject, index) + mutate_absence(subject, index) + mutate_doubling(subject, index) +
                 mutate_extension(subject, index);
    }
}

/* The child that one step of a path ("key" or "[3]") leads to; NULL when a key is new. Moves *path on. */
static cJSON *step(cJSON *item, const char **path, char key[160])
{
    if (**path == '[') {
        int index = atoi(*path + 1);
        *path = strchr(*path, ']') + 1;
        key[0] = '\0';
        return cJSON_GetArrayItem(item, index);
    }
    *path += **path == '.';
    size_t length = strcspn(*path, ".[");
    snprintf(key, 160, "%.*s", (int)length, *path);
    *path += length;
    return cJSON_GetObjectItemCaseSensitive(item, key);
}

char *mutate_set(const char *document, const char *path, const char *json)
{
    cleanup_json cJSON *tree = parse_or_fail(document);
    cJSON *item = tree, *parent = NULL;
    char key[160] = "";
    for (const char *rest = path; *rest;) {
        parent = item;
        item = step(parent, &rest, key);
        ck_assert_msg(item || !*rest, "no such path: %s", path);
    }
    if (!item && json)
        hf_json_add(parent, key, parse_or_fail(json));
    else if (item && !json)
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, item));
    else if (item && key[0])
        cJSON_ReplaceItemInObjectCaseSensitive(parent, key, parse_or_fail(json));
    else if (item)
        cJSON_ReplaceItemViaPointer(parent, item, parse_or_fail(json));
    return hf_json_canonical(tree, NULL);
}

char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: %s (tests run from the root of the tree)", path, strerror(errno));
    char *text = calloc(1, 1 << 20);
    ck_assert(text != NULL);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    ck_assert_uint_gt(length, 0);
    return text;
}
