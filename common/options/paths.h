/* Where a program's own tree is, derived from /proc/self/exe, so that a checkout and a package both work unconfigured.
 */
#ifndef HF_COMMON_OPTIONS_PATHS_H
#define HF_COMMON_OPTIONS_PATHS_H

#include "common/error.h"

#define HF_PATH_SIZE 4096

struct hf_paths {
    char bin_dir[HF_PATH_SIZE];     /* directory of this executable */
    char guest_dir[HF_PATH_SIZE];   /* <directory above bin_dir>/guest */
    char source_root[HF_PATH_SIZE]; /* nearest directory above bin_dir that holds catalog/campaigns */
};

/* Fills in all three. A source_root that is not NULL is taken as given (made absolute) instead of being looked for.
 * Codes: "paths-unknown" with what was looked for, "path-too-long". */
int hf_paths_find(struct hf_paths *paths, const char *source_root, struct hf_error *err);

/* Makes `path` absolute against the working directory, without requiring that it exists. Code "path-too-long". */
int hf_path_absolute(const char *path, char out[HF_PATH_SIZE], struct hf_error *err);

#endif
