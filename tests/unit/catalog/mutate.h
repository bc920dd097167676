/*
 * Mechanical mutation of a valid JSON document: every key absent, doubled, of another type, and every object extended.
 * Used by the unit tests of strict readers (catalog, profile, protocol); each mutant must be refused with its field.
 */
#ifndef HF_TESTS_UNIT_CATALOG_MUTATE_H
#define HF_TESTS_UNIT_CATALOG_MUTATE_H

#include "common/error.h"

#include <stddef.h>

/* A mutant that the reader rightly accepts: the field's path and the value, or "absent". */
struct mutation_exception {
    const char *path;
    const char *json;
};

struct mutation_subject {
    const char *valid; /* JSON text that the reader accepts */
    int (*parse)(const char *text, size_t length, const void *context, struct hf_error *err);
    const void *context;
    const struct mutation_exception *exceptions;
    size_t exception_count;
    const char *code; /* of the refusals; a doubled key is always "json-invalid" */
};

/* Fails the running test at the first mutant that is accepted, or refused without its field. Returns how many were
 * tried. */
size_t mutate_all(const struct mutation_subject *subject);

/* The document with one field ("cases[0].id") set to a JSON value; removed when json is NULL. Owned text. */
char *mutate_set(const char *document, const char *path, const char *json);

/* Whole file, owned; fails the running test when it cannot be read. */
char *read_text(const char *path);

#endif
