/* Locating the program's own tree; see paths.h. */
#include "common/options/paths.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Cuts the last component off an absolute path; false when only the root is left. */
static bool cut_last_component(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

static bool has_directory(const char *parent, const char *child)
{
    char path[HF_PATH_SIZE + 64];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", parent, child);
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int hf_paths_find(struct hf_paths *paths, const char *source_root, struct hf_error *err)
{
    ssize_t length = readlink("/proc/self/exe", paths->bin_dir, sizeof paths->bin_dir - 1);
    if (length < 0)
        return hf_error_set(err, "paths-unknown", errno, "", "cannot read /proc/self/exe (%s); is /proc mounted?",
                            strerror(errno));
    paths->bin_dir[length] = '\0';
    cut_last_component(paths->bin_dir);

    char above[HF_PATH_SIZE];
    memcpy(above, paths->bin_dir, sizeof above);
    cut_last_component(above);
    int written = snprintf(paths->guest_dir, sizeof paths->guest_dir, "%s/guest", above);
    if (written < 0 || (size_t)written >= sizeof paths->guest_dir)
        return hf_error_set(err, "path-too-long", ENAMETOOLONG, "", "the program's own directory has too long a path");
    if (source_root)
        return hf_path_absolute(source_root, paths->source_root, err);
    while (!has_directory(above, "catalog/campaigns"))
        if (!cut_last_component(above))
            return hf_error_set(err, "paths-unknown", ENOENT, "source-root",
                                "no directory above %.512s holds catalog/campaigns; name the source tree with "
                                "--source-root",
                                paths->bin_dir);
    memcpy(paths->source_root, above, sizeof above);
    return 0;
}

int hf_path_absolute(const char *path, char out[HF_PATH_SIZE], struct hf_error *err)
{
    char working[HF_PATH_SIZE];
    int written;
    if (path[0] == '/')
        written = snprintf(out, HF_PATH_SIZE, "%s", path);
    else if (getcwd(working, sizeof working))
        written = snprintf(out, HF_PATH_SIZE, "%s/%s", working, path);
    else
        return hf_error_set(err, "paths-unknown", errno, "", "cannot tell the working directory: %s", strerror(errno));
    if (written < 0 || written >= HF_PATH_SIZE)
        return hf_error_set(err, "path-too-long", ENAMETOOLONG, "", "the path is longer than %d bytes",
                            HF_PATH_SIZE - 1);
    return 0;
}
