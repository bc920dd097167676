/* Measuring the artifacts and noticing that one changed; see artifacts.h. */
#include "executor/artifacts.h"

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool same_identity(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mode == b->st_mode &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int measure(const char *name, struct artifact *artifact, struct hf_error *err)
{
    cleanup_close int fd = open(artifact->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &artifact->identity) != 0)
        return hf_error_set(err, "artifact-unreadable", errno, name,
                            "artifact %s: %.512s cannot be opened (%s); a regular file and no link was expected; has "
                            "it been built?",
                            name, artifact->path, strerror(errno));
    if (hf_sha256_fd(fd, ARTIFACT_MAX_BYTES, artifact->sha256, &artifact->size_bytes, err) != 0)
        return hf_error_prefix(err, "artifact %s: %.512s", name, artifact->path);
    if (artifact->size_bytes == 0)
        return hf_error_set(err, "artifact-empty", 0, name, "artifact %s: %.512s is empty", name, artifact->path);
    return 0;
}

/* The file that the scenarios will use: the one that a variable names, where the profile says so and it is set. */
static char *artifact_path(const struct hf_profile_artifact *wanted, const struct hf_placeholders *places,
                           struct hf_error *err)
{
    const char *named = wanted->path_variable[0] != '\0' ? getenv(wanted->path_variable) : NULL;
    if (!named || named[0] == '\0')
        return hf_placeholder_expand(wanted->path, places, err);
    if (named[0] == '/')
        return strdup(named);
    hf_error_set(err, "artifact-unreadable", 0, wanted->path_variable,
                 "artifact %s: %s has to be an absolute path; set it so, or unset it", wanted->name,
                 wanted->path_variable);
    return NULL;
}

int artifacts_measure(const struct hf_profile *profile, const struct hf_placeholders *places, struct artifact_set *set,
                      struct hf_error *err)
{
    set->count = 0;
    for (size_t i = 0; i < profile->artifact_count; i++) {
        const struct hf_profile_artifact *wanted = &profile->artifacts[i];
        struct artifact *artifact = &set->list[i];
        cleanup_free char *path = artifact_path(wanted, places, err);
        if (!path)
            return -1;
        if (snprintf(artifact->path, sizeof artifact->path, "%s", path) >= (int)sizeof artifact->path)
            return hf_error_set(err, "artifact-unreadable", ENAMETOOLONG, wanted->name,
                                "artifact %s: its path is too long", wanted->name);
        if (measure(wanted->name, artifact, err) != 0)
            return -1;
        set->count++;
    }
    return 0;
}

int artifacts_check_unchanged(struct artifact_set *set, const struct hf_profile *profile, struct hf_error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        struct artifact *known = &set->list[i];
        struct stat now;
        if (lstat(known->path, &now) == 0 && same_identity(&now, &known->identity))
            continue;
        struct artifact again = {0};
        const char *name = profile->artifacts[i].name;
        memcpy(again.path, known->path, sizeof again.path);
        if (measure(name, &again, err) != 0 || strcmp(again.sha256, known->sha256) != 0)
            return hf_error_set(err, "artifact-changed", 0, name,
                                "artifact %s is no longer the file that was hashed at initialize (%.64s); nothing more "
                                "is run from it",
                                name, known->sha256);
        known->identity = again.identity;
    }
    return 0;
}
