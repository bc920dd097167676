/* Creating the run directory; see run_directory.h. */
#include "executor/run_directory.h"

#include "common/cleanup.h"
#include "common/options/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int create_above(const char *path, struct hf_error *err)
{
    char prefix[HF_PATH_SIZE];
    snprintf(prefix, sizeof prefix, "%s", path);
    for (char *slash = strchr(prefix + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(prefix, 0700) != 0 && errno != EEXIST)
            return hf_error_set(err, "storage-failed", errno, "state-dir", "cannot create %.512s: %s", prefix,
                                strerror(errno));
        if (!slash)
            return 0;
        *slash = '/';
    }
}

int run_directory_create(const char *state_dir, const char *run_id, struct hf_error *err)
{
    struct stat status;
    if (create_above(state_dir, err) != 0)
        return -1;
    cleanup_close int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (state_fd < 0 || fstat(state_fd, &status) != 0)
        return hf_error_set(err, "storage-failed", errno, "state-dir", "cannot open %.512s as a directory: %s",
                            state_dir, strerror(errno));
    if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return hf_error_set(err, "state-unsafe", 0, "state-dir",
                            "%.512s has to belong to the executor's user and be writable by nobody else", state_dir);
    if (mkdirat(state_fd, run_id, 0700) != 0)
        return hf_error_set(err, errno == EEXIST ? "run-exists" : "storage-failed", errno, "run_id",
                            errno == EEXIST ? "%.512s/%s is there already; every session needs a run id of its own (%s)"
                                            : "cannot create %.512s/%s: %s",
                            state_dir, run_id, strerror(errno));
    int fd = openat(state_fd, run_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return hf_error_set(err, "storage-failed", errno, "run_id", "cannot open the run directory: %s",
                            strerror(errno));
    fsync(state_fd);
    return fd;
}
