/*
 * Environments of child processes: allow-lists only (docs/executor.md). Nothing that names GitHub, Copilot, ssh
 * agents or tokens can get through, because nothing gets through that is not listed.
 */
#ifndef HF_SERVER_CORE_ENVIRONMENT_H
#define HF_SERVER_CORE_ENVIRONMENT_H

#include "common/catalog/profile.h"

/* PATH, HOME, LANG, LC_ALL, TMPDIR, USER and, when a profile is given, the names that it adds; taken from the
 * controller's own environment where they are set there. NULL-terminated, owned (hf_argv_free()). */
char **hf_environment_new(const struct hf_profile *profile);

#endif
