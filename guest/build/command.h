/* Runs one trusted program of the build machine (git, dpkg-query) and takes what it prints. No shell is involved. */
#ifndef HF_GUEST_BUILD_COMMAND_H
#define HF_GUEST_BUILD_COMMAND_H

#include "common/error.h"

#include <stddef.h>

/* Owned NUL-terminated standard output of at most max_bytes, one final newline cut. NULL with code "command-failed"
 * when the program cannot be started, does not exit with 0, or prints more. argv[0] is looked up in PATH. */
char *hf_command_output(const char *const *argv, size_t max_bytes, struct hf_error *err);

#endif
