/*
 * The initramfs as data, and its two outputs: a newc cpio archive and a manifest. Used by mkinitramfs at build time.
 *
 * The same entries give the same bytes, whatever the order they were added in, the directory they came from, the clock
 * and the user: entries are sorted by path, inode numbers count from 1, owner is 0:0 and every time is 0. Format: Linux
 * Documentation/driver-api/early-userspace/buffer-format.rst.
 */
#ifndef HF_GUEST_BUILD_IMAGE_H
#define HF_GUEST_BUILD_IMAGE_H

#include "common/digest.h"
#include "common/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HF_IMAGE_PATH_MAX    255
#define HF_IMAGE_ENTRIES_MAX 1024
#define HF_IMAGE_FILE_MAX    (64u << 20)

enum hf_image_kind { HF_IMAGE_DIRECTORY, HF_IMAGE_FILE, HF_IMAGE_CHARACTER_DEVICE };

struct hf_image_entry {
    enum hf_image_kind kind;
    char path[HF_IMAGE_PATH_MAX + 1]; /* absolute in the guest: "/lib/modules/list" */
    unsigned mode;                    /* permission bits */
    unsigned major, minor;            /* of a device */
    char *source;                     /* of a file: where its bytes are now; owned */
    uint8_t *bytes;                   /* owned */
    size_t size_bytes;
    char sha256[HF_SHA256_HEX_SIZE];
};

struct hf_image {
    struct hf_image_entry *entries[HF_IMAGE_ENTRIES_MAX]; /* owned */
    size_t count;
};

void hf_image_clear(struct hf_image *image);

/* Reads a list of entries, one per line; '#' starts a comment line. Code "image-list-invalid" with file and line.
 *     dir /dev 0755
 *     file /init 0755 SOURCE      (the rest of the line; a relative source is taken from the current directory)
 *     char /dev/console 0600 5 1
 */
int hf_image_read_list(struct hf_image *image, const char *list_path, struct hf_error *err);

/* Sorts, refuses doubled paths and missing parent directories, reads and digests every file. */
int hf_image_finish(struct hf_image *image, struct hf_error *err);

/* Both need hf_image_finish() first. */
int hf_image_write_cpio(const struct hf_image *image, FILE *out, struct hf_error *err);
/* Owned canonical JSON: {"schema_version":1,"artifact":NAME,"files":[{"path","mode","size","sha256"}],
 * "directories":[{"path","mode"}],"devices":[{"path","mode","major","minor"}]}; modes are octal strings. */
char *hf_image_manifest(const struct hf_image *image, const char *artifact, size_t *length);

#endif
