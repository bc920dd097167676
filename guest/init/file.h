/* Small files of /proc and /sys, whole, for the agent. */
#ifndef HF_GUEST_INIT_FILE_H
#define HF_GUEST_INIT_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads at most size-1 bytes, adds NUL and cuts one final newline. Length, or -1 with errno. */
ssize_t hf_file_read(const char *path, char *out, size_t size);
/* Writes text with one write(2). 0, or -1 with errno. */
int hf_file_write(const char *path, const char *text);

#endif
