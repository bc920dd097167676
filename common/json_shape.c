/*
 * Implementation of json_shape.h: walks a tree and a table side by side. Called before any field of an untrusted
 * document is read. Pure. Never puts a value, an unknown key or any other byte of the document into a message (I7),
 * only numbers, type names and the names that the table itself holds.
 */
#include "common/json_shape.h"

#include "common/cleanup.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one name of a table after its placeholder was replaced. */
#define NAME_BYTES 96

/* Where the walk is: a chain of stack frames, rendered only when something is wrong. */
struct place {
    const struct place *parent; /* NULL at the root */
    const char *name;           /* NULL for an array element */
    size_t index;
};

struct check {
    const struct hf_shape_names *names;
    const char *title;
    struct hf_error *err;
};

static int check_value(const struct check *check, const struct place *place, const struct hf_shape_field *field,
                       const cJSON *item);

static size_t render_place(const struct place *place, char *out, size_t size)
{
    if (!place->parent) {
        out[0] = '\0';
        return 0;
    }
    size_t used = render_place(place->parent, out, size);
    int written;
    if (place->name)
        written = snprintf(out + used, size - used, "%s%s", used > 0 ? "." : "", place->name);
    else
        written = snprintf(out + used, size - used, "[%zu]", place->index);
    used += written > 0 ? (size_t)written : 0;
    return used < size ? used : size - 1;
}

static int refuse(const struct check *check, const struct place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(const struct check *check, const struct place *place, const char *format, ...)
{
    char path[sizeof check->err->field], sentence[sizeof check->err->message];
    render_place(place, path, sizeof path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return hf_error_set(check->err, "shape-invalid", 0, path, "%s%s%s: %s", check->title, path[0] ? ": " : "", path,
                        sentence);
}

static const char *type_name(const cJSON *item)
{
    if (cJSON_IsObject(item))
        return "an object";
    if (cJSON_IsArray(item))
        return "an array";
    if (cJSON_IsString(item))
        return "a string";
    if (cJSON_IsBool(item))
        return "a boolean";
    if (cJSON_IsNull(item))
        return "null";
    return "a number";
}

/* "1..3600", "at least 1", "at most 5": how messages name a range; the two ends of int64 stand for no bound. */
static const char *range_text(int64_t min, int64_t max, char out[64])
{
    if (max == INT64_MAX)
        snprintf(out, 64, "at least %" PRId64, min);
    else if (min == INT64_MIN)
        snprintf(out, 64, "at most %" PRId64, max);
    else
        snprintf(out, 64, "%" PRId64 "..%" PRId64, min, max);
    return out;
}

static bool is_bounded(const struct hf_shape_field *field)
{
    return field->min != 0 || field->max != 0;
}

static int check_count(const struct check *check, const struct place *place, const struct hf_shape_field *field,
                       size_t count, const char *unit)
{
    char range[64];
    if (!is_bounded(field) || ((int64_t)count >= field->min && (int64_t)count <= field->max))
        return 0;
    return refuse(check, place, "expected %s %s, found %zu", range_text(field->min, field->max, range), unit, count);
}

static int check_int(const struct check *check, const struct place *place, const struct hf_shape_field *field,
                     const cJSON *item)
{
    int64_t value;
    char range[64];
    if (!cJSON_IsNumber(item))
        return refuse(check, place, "expected an integer, found %s", type_name(item));
    if (!hf_json_get_int64(item, &value))
        return refuse(check, place, "expected an integer, found a number with a fraction or an exponent");
    if (!is_bounded(field) || (value >= field->min && value <= field->max))
        return 0;
    return refuse(check, place, "expected an integer %s, found %" PRId64, range_text(field->min, field->max, range),
                  value);
}

/* Joins names with ", " as far as they fit; the rest becomes "...". */
static void join_name(char *out, size_t size, const char *name)
{
    size_t used = strlen(out), length = strlen(name);
    if (used + length + sizeof ", , ..." > size) {
        if (used >= 3 && strcmp(out + used - 3, "...") != 0)
            snprintf(out + used, size - used, ", ...");
        return;
    }
    snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

static int check_one_of(const struct check *check, const struct place *place, const char *const *allowed,
                        const char *text)
{
    char list[512] = "";
    for (size_t i = 0; allowed[i]; i++) {
        if (strcmp(allowed[i], text) == 0)
            return 0;
        join_name(list, sizeof list, allowed[i]);
    }
    return refuse(check, place, "expected one of %s, found another string", list);
}

static int check_string(const struct check *check, const struct place *place, const struct hf_shape_field *field,
                        const cJSON *item)
{
    if (!cJSON_IsString(item))
        return refuse(check, place, "expected a string, found %s", type_name(item));
    const char *text = item->valuestring;
    if (check_count(check, place, field, strlen(text), "bytes of text") < 0)
        return -1;
    if (field->one_of && check_one_of(check, place, field->one_of, text) < 0)
        return -1;
    if (!hf_text_is(field->text, text))
        return refuse(check, place, "expected %s, found a string of %zu bytes that is not",
                      hf_text_describe(field->text), strlen(text));
    return 0;
}

static int compare_elements(const void *a, const void *b)
{
    const cJSON *const *left = a, *const *right = b;
    return strcmp((*left)->valuestring, (*right)->valuestring);
}

/* Only strings are compared; sorting keeps long hostile arrays at n log n. */
static int check_unique(const struct check *check, const struct place *place, const cJSON *array, size_t count)
{
    cleanup_free const cJSON **strings = calloc(count + 1, sizeof strings[0]);
    if (!strings)
        abort();
    size_t used = 0;
    for (const cJSON *element = array->child; element; element = element->next) {
        if (cJSON_IsString(element))
            strings[used++] = element;
    }
    qsort(strings, used, sizeof strings[0], compare_elements);
    for (size_t i = 1; i < used; i++) {
        if (compare_elements(&strings[i - 1], &strings[i]) == 0)
            return refuse(check, place, "expected elements that are all different, found the same string twice");
    }
    return 0;
}

static int check_array(const struct check *check, const struct place *place, const struct hf_shape_field *field,
                       const cJSON *item)
{
    if (!cJSON_IsArray(item))
        return refuse(check, place, "expected an array, found %s", type_name(item));
    size_t count = 0;
    for (const cJSON *element = item->child; element; element = element->next)
        count++;
    if (check_count(check, place, field, count, "elements") < 0)
        return -1;
    struct place here = {.parent = place};
    for (const cJSON *element = item->child; element && field->element; element = element->next, here.index++) {
        if (check_value(check, &here, field->element, element) < 0)
            return -1;
    }
    return field->flags & HF_SHAPE_UNIQUE ? check_unique(check, place, item, count) : 0;
}

static bool is_member_name(const struct check *check, const struct hf_shape *shape, const char *key)
{
    char name[NAME_BYTES];
    for (size_t i = 0; i < shape->field_count; i++) {
        if (strcmp(hf_shape_name(check->names, shape->fields[i].name, name, sizeof name), key) == 0)
            return true;
    }
    return false;
}

static int refuse_unknown_key(const struct check *check, const struct place *place, const struct hf_shape *shape,
                              size_t position, size_t count)
{
    char list[512] = "", name[NAME_BYTES];
    for (size_t i = 0; i < shape->field_count; i++)
        join_name(list, sizeof list, hf_shape_name(check->names, shape->fields[i].name, name, sizeof name));
    return refuse(check, place, "expected no other keys than %s; found another one (member %zu of %zu)",
                  list[0] ? list : "none", position, count);
}

static int check_keys(const struct check *check, const struct place *place, const struct hf_shape *shape,
                      const cJSON *object)
{
    size_t count = 0, position = 0;
    for (const cJSON *member = object->child; member; member = member->next)
        count++;
    for (const cJSON *member = object->child; member; member = member->next) {
        position++;
        if (!is_member_name(check, shape, member->string))
            return refuse_unknown_key(check, place, shape, position, count);
    }
    return 0;
}

static int check_members(const struct check *check, const struct place *place, const struct hf_shape *shape,
                         const cJSON *object)
{
    if (check_keys(check, place, shape, object) < 0)
        return -1;
    for (size_t i = 0; i < shape->field_count; i++) {
        const struct hf_shape_field *field = &shape->fields[i];
        char name[NAME_BYTES];
        hf_shape_name(check->names, field->name, name, sizeof name);
        const struct place here = {.parent = place, .name = name};
        const cJSON *member = hf_json_get(object, name);
        if (!member && !(field->flags & HF_SHAPE_OPTIONAL))
            return refuse(check, &here, "expected this key, found an object without it");
        if (member && check_value(check, &here, field, member) < 0)
            return -1;
    }
    return 0;
}

static int check_object(const struct check *check, const struct place *place, const struct hf_shape_field *field,
                        const cJSON *item)
{
    if (!cJSON_IsObject(item))
        return refuse(check, place, "expected an object, found %s", type_name(item));
    if (field->object)
        return check_members(check, place, field->object, item);
    size_t count = 0;
    for (const cJSON *member = item->child; member; member = member->next)
        count++;
    return check_count(check, place, field, count, "members");
}

static int check_value(const struct check *check, const struct place *place, const struct hf_shape_field *field,
                       const cJSON *item)
{
    if (cJSON_IsNull(item) && field->flags & HF_SHAPE_NULLABLE)
        return 0;
    switch (field->type) {
    case HF_SHAPE_STRING:
        return check_string(check, place, field, item);
    case HF_SHAPE_INT:
        return check_int(check, place, field, item);
    case HF_SHAPE_BOOL:
        return cJSON_IsBool(item) ? 0 : refuse(check, place, "expected a boolean, found %s", type_name(item));
    case HF_SHAPE_OBJECT:
        return check_object(check, place, field, item);
    case HF_SHAPE_ARRAY:
        return check_array(check, place, field, item);
    case HF_SHAPE_ANY:
        return 0;
    }
    abort(); /* a table with a type outside the enum */
}

int hf_shape_check(const struct hf_shape *shape, const struct hf_shape_names *names, const cJSON *item,
                   struct hf_error *err)
{
    const struct check check = {.names = names, .title = shape->title, .err = err};
    const struct place root = {0};
    const struct hf_shape_field whole = {.type = HF_SHAPE_OBJECT, .object = shape};
    return check_value(&check, &root, &whole, item);
}

const char *hf_shape_name(const struct hf_shape_names *names, const char *pattern, char *out, size_t out_size)
{
    static const struct hf_shape_names none = {0};
    if (!names)
        names = &none;
    const struct {
        const char *placeholder;
        const char *value;
    } replacements[] = {{"{source}", names->source}, {"{vmm}", names->vmm}, {"{runtime}", names->runtime}};
    for (size_t i = 0; i < sizeof replacements / sizeof replacements[0]; i++) {
        const char *found = strstr(pattern, replacements[i].placeholder);
        if (!found || !replacements[i].value)
            continue;
        const char *rest = found + strlen(replacements[i].placeholder);
        int written = snprintf(out, out_size, "%.*s%s%s", (int)(found - pattern), pattern, replacements[i].value, rest);
        if (written < 0 || (size_t)written >= out_size)
            abort(); /* names are bounded where the profile is read; a cut key would match the wrong thing */
        return out;
    }
    snprintf(out, out_size, "%s", pattern);
    return out;
}
