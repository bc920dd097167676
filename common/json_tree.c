/*
 * Builders and look-ups of json.h: the only code that creates or reads nodes for the rest of the project. Trees built
 * here are what hf_json_canonical() writes. No I/O; out of memory aborts, as json.h explains.
 */
#include "common/json.h"

#include "common/json_number.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_abort(void *allocated)
{
    if (!allocated)
        abort();
    return allocated;
}

/* Copies text for a node (cJSON_free frees it); each byte that is not part of valid UTF-8 becomes U+FFFD. */
static char *copy_text(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t length = strlen(text), used = 0;
    char *copy = or_abort(cJSON_malloc(3 * length + 1)); /* an invalid byte grows to three */
    for (size_t offset = 0; offset < length;) {
        uint32_t code_point;
        size_t size = hf_utf8_decode((const uint8_t *)text + offset, length - offset, &code_point);
        memcpy(copy + used, size ? text + offset : replacement, size ? size : 3);
        used += size ? size : 3;
        offset += size ? size : 1;
    }
    copy[used] = '\0';
    return copy;
}

bool hf_json_get_int64(const cJSON *item, int64_t *out)
{
    return cJSON_IsNumber(item) && item->valuestring && hf_json_text_to_int64(item->valuestring, out);
}

cJSON *hf_json_new_object(void)
{
    return or_abort(cJSON_CreateObject());
}

cJSON *hf_json_new_array(void)
{
    return or_abort(cJSON_CreateArray());
}

cJSON *hf_json_new_int(int64_t value)
{
    cJSON *item = or_abort(cJSON_CreateNumber((double)value));
    item->valuestring = or_abort(cJSON_malloc(HF_JSON_NUMBER_SIZE));
    snprintf(item->valuestring, HF_JSON_NUMBER_SIZE, "%" PRId64, value);
    return item;
}

cJSON *hf_json_new_string(const char *text)
{
    cJSON *item = or_abort(cJSON_CreateNull());
    item->type = cJSON_String;
    item->valuestring = copy_text(text);
    return item;
}

/* A node that already hangs in a tree would be freed twice later. */
static bool is_free_node(const cJSON *item)
{
    return item && !item->next && !item->prev;
}

/* Nodes that were duplicated or detached from an object still carry their former key. */
static void drop_key(cJSON *item)
{
    if (!(item->type & cJSON_StringIsConst))
        cJSON_free(item->string);
    item->type &= ~cJSON_StringIsConst;
    item->string = NULL;
}

cJSON *hf_json_add(cJSON *object, const char *key, cJSON *item)
{
    if (!cJSON_IsObject(object) || !is_free_node(item))
        abort();
    drop_key(item);
    item->string = copy_text(key);
    if (!cJSON_AddItemToArray(object, item))
        abort();
    return item;
}

cJSON *hf_json_add_int(cJSON *object, const char *key, int64_t value)
{
    return hf_json_add(object, key, hf_json_new_int(value));
}

cJSON *hf_json_add_bool(cJSON *object, const char *key, bool value)
{
    return hf_json_add(object, key, or_abort(cJSON_CreateBool(value)));
}

cJSON *hf_json_add_null(cJSON *object, const char *key)
{
    return hf_json_add(object, key, or_abort(cJSON_CreateNull()));
}

cJSON *hf_json_add_string(cJSON *object, const char *key, const char *text)
{
    return text ? hf_json_add(object, key, hf_json_new_string(text)) : hf_json_add_null(object, key);
}

cJSON *hf_json_append(cJSON *array, cJSON *item)
{
    if (!cJSON_IsArray(array) || !is_free_node(item))
        abort();
    drop_key(item);
    if (!cJSON_AddItemToArray(array, item))
        abort();
    return item;
}

const cJSON *hf_json_get(const cJSON *object, const char *key)
{
    if (!cJSON_IsObject(object))
        return NULL;
    for (const cJSON *member = object->child; member; member = member->next) {
        if (member->string && strcmp(member->string, key) == 0)
            return member;
    }
    return NULL;
}

const char *hf_json_get_string(const cJSON *object, const char *key)
{
    const cJSON *member = hf_json_get(object, key);
    return cJSON_IsString(member) ? member->valuestring : NULL;
}

int64_t hf_json_get_int_or(const cJSON *object, const char *key, int64_t fallback)
{
    int64_t value;
    return hf_json_get_int64(hf_json_get(object, key), &value) ? value : fallback;
}

bool hf_json_get_bool_or(const cJSON *object, const char *key, bool fallback)
{
    const cJSON *member = hf_json_get(object, key);
    return cJSON_IsBool(member) ? cJSON_IsTrue(member) : fallback;
}
