/* A temporary directory for one test, and files in it. */
#ifndef HF_TESTS_UNIT_GUEST_SCRATCH_H
#define HF_TESTS_UNIT_GUEST_SCRATCH_H

#include <check.h>
#include <stddef.h>

extern char scratch_dir[64]; /* absolute; valid between the two fixtures */

void scratch_setup(void);
void scratch_teardown(void);
/* Writes a file below the directory and returns its path, valid until the next call with the same slot (0..7). */
const char *scratch_file(unsigned slot, const char *name, const void *bytes, size_t length);
const char *scratch_text(unsigned slot, const char *name, const char *text);

#endif
