/* Files that the build tools write: whole or not at all, readable by all, whatever the caller's umask. */
#ifndef HF_GUEST_BUILD_OUTPUT_H
#define HF_GUEST_BUILD_OUTPUT_H

#include "common/error.h"

#include <stdio.h>

struct hf_output {
    FILE *file;
    const char *path; /* borrowed */
    char temporary[4096];
};

/* Opens "PATH.new" for writing; hf_output_commit() renames it. Code "output-failed". */
int hf_output_open(struct hf_output *output, const char *path, struct hf_error *err);
int hf_output_commit(struct hf_output *output, struct hf_error *err);
void hf_output_discard(struct hf_output *output); /* does nothing after a commit */

/* The whole of it for one text. */
int hf_output_text(const char *path, const char *text, size_t length, struct hf_error *err);

#endif
