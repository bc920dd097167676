/*
 * Shapes: closed JSON structures as data. A shape lists every key an object may have; anything else is refused. All
 * protocol messages, catalog and profile files, API bodies, plans and manifests are checked against shapes before a
 * single field is read.
 */
#ifndef HF_COMMON_JSON_SHAPE_H
#define HF_COMMON_JSON_SHAPE_H

#include "common/error.h"
#include "common/json.h"

enum hf_shape_type {
    HF_SHAPE_STRING, /* min..max: bytes of UTF-8 */
    HF_SHAPE_INT,    /* min..max: value; a boolean or 1.0 is not an integer */
    HF_SHAPE_BOOL,
    HF_SHAPE_OBJECT, /* members checked against `object`; when that is NULL any keys, min..max: how many members */
    HF_SHAPE_ARRAY,  /* min..max: elements, each checked against `element` (unless that is NULL) */
    HF_SHAPE_ANY,    /* any value; the caller checks it itself */
};

enum hf_shape_flags {
    HF_SHAPE_OPTIONAL = 1, /* the key may be absent */
    HF_SHAPE_NULLABLE = 2, /* null is accepted */
    HF_SHAPE_UNIQUE = 4,   /* array: no two elements are equal strings */
};

/* Character rules for strings, checked over the whole string. */
enum hf_shape_text {
    HF_TEXT_ANY,
    HF_TEXT_IDENTIFIER, /* [a-z][a-z0-9-]{0,63} */
    HF_TEXT_RUN_ID,     /* [a-z0-9][a-z0-9-]{0,95} */
    HF_TEXT_SHA256,     /* 64 lower-case hex digits */
    HF_TEXT_BASE64,     /* canonical RFC 4648 with padding */
    HF_TEXT_PRINTABLE,  /* no control characters */
    HF_TEXT_FIELD_NAME, /* [a-z][a-z0-9_]{0,63} */
    HF_TEXT_ENV_NAME,   /* [A-Z_][A-Z0-9_]{0,63} */
};

struct hf_shape;

struct hf_shape_field {
    const char *name; /* key; may contain {source}, {vmm}, {runtime}, replaced through struct hf_shape_names; NULL in an
                         element description */
    enum hf_shape_type type;
    unsigned flags;
    int64_t min, max; /* meaning depends on type, see above; both 0: unbounded */
    enum hf_shape_text text;
    const char *const *one_of;            /* NULL-terminated closed list for strings, or NULL */
    const struct hf_shape *object;        /* for HF_SHAPE_OBJECT */
    const struct hf_shape_field *element; /* for HF_SHAPE_ARRAY */
};

struct hf_shape {
    const char *title; /* for messages: "execute response" */
    const struct hf_shape_field *fields;
    size_t field_count;
};

/* Replacement of the placeholders in field names; NULL where a shape uses none. */
struct hf_shape_names {
    const char *source;  /* e.g. "holdfast": {source}_commit is "holdfast_commit" */
    const char *vmm;     /* e.g. "qemu" */
    const char *runtime; /* e.g. "libc" */
};

/* Checks that item is an object with exactly the keys of shape, each within its bounds. err->code is "shape-invalid",
 * err->field the path of the first offender, the message what was expected and what was seen (never the value itself
 * unless it is a number or a type name). */
int hf_shape_check(const struct hf_shape *shape, const struct hf_shape_names *names, const cJSON *item,
                   struct hf_error *err);

/* Checks one string against a character rule. */
bool hf_text_is(enum hf_shape_text rule, const char *text);
/* The rule in words, to complete "expected ...". Static. */
const char *hf_text_describe(enum hf_shape_text rule);

/* Expands {source}, {vmm}, {runtime} in a field name into out (at least 96 bytes). Returns out. */
const char *hf_shape_name(const struct hf_shape_names *names, const char *pattern, char *out, size_t out_size);

#endif
