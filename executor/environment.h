/*
 * The environment of everything that the executor starts: an allow-list, never the executor's own environment. Names
 * that could carry a credential never get this far: the profile's loader refuses them.
 */
#ifndef HF_EXECUTOR_ENVIRONMENT_H
#define HF_EXECUTOR_ENVIRONMENT_H

#include "common/catalog/profile.h"

/* PATH, HOME, LANG, LC_ALL, TMPDIR, USER and the profile's names, as far as the executor has them (PATH has a default),
 * then `extra` ("NAME=value" strings, NULL-terminated, may be NULL). Owned; hf_argv_free(). */
char **environment_new(const struct hf_profile *profile, const char *const *extra);

/* For git and dpkg-query: no configuration of the host or of a user, no prompt, C locale. Owned. */
char **environment_new_query(const char *ceiling_directory);

#endif
