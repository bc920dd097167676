/*
 * Scope-bound ownership: `cleanup_free char *text = ...;` frees on every way out, `return STEAL_PTR(text);` hands it
 * over.
 */
#ifndef HF_COMMON_CLEANUP_H
#define HF_COMMON_CLEANUP_H

#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void hf_cleanup_free(void *pointer_address)
{
    free(*(void **)pointer_address);
}

static inline void hf_cleanup_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void hf_cleanup_json(cJSON **item)
{
    cJSON_Delete(*item);
}

static inline void hf_cleanup_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

static inline void hf_cleanup_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

#define cleanup_free  __attribute__((cleanup(hf_cleanup_free)))
#define cleanup_close __attribute__((cleanup(hf_cleanup_close)))
#define cleanup_json  __attribute__((cleanup(hf_cleanup_json)))
#define cleanup_file  __attribute__((cleanup(hf_cleanup_file)))
#define cleanup_dir   __attribute__((cleanup(hf_cleanup_dir)))

#define STEAL_PTR(pointer)                                                                                             \
    ({                                                                                                                 \
        __typeof__(pointer) hf_stolen = (pointer);                                                                     \
        (pointer) = NULL;                                                                                              \
        hf_stolen;                                                                                                     \
    })

static inline int hf_steal_fd(int *fd)
{
    int stolen = *fd;
    *fd = -1;
    return stolen;
}
#define STEAL_FD(fd) hf_steal_fd(&(fd))

#endif
