/*
 * mkinitramfs ARTIFACT OUTPUT.cpio OUTPUT.manifest.json LIST...: writes an initramfs and the manifest of its entries
 * from lists of entries (see image.h). Run by the build. Writes nothing but its two outputs.
 */
#include "guest/build/image.h"
#include "guest/build/output.h"

#include "common/cleanup.h"

#include <string.h>

static int build(struct hf_image *image, char **arguments, struct hf_error *err)
{
    for (char **list = arguments + 4; *list; list++)
        if (hf_image_read_list(image, *list, err) != 0)
            return -1;
    if (hf_image_finish(image, err) != 0)
        return -1;
    struct hf_output archive;
    if (hf_output_open(&archive, arguments[2], err) != 0)
        return -1;
    if (hf_image_write_cpio(image, archive.file, err) != 0) {
        hf_output_discard(&archive);
        return -1;
    }
    if (hf_output_commit(&archive, err) != 0)
        return -1;
    size_t length;
    cleanup_free char *manifest = hf_image_manifest(image, arguments[1], &length);
    return hf_output_text(arguments[3], manifest, length, err);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: mkinitramfs ARTIFACT OUTPUT.cpio OUTPUT.manifest.json LIST...\n");
        return 2;
    }
    static struct hf_image image;
    struct hf_error err = {0};
    int result = build(&image, argv, &err);
    hf_image_clear(&image);
    if (result != 0)
        fprintf(stderr, "mkinitramfs: %s\n", err.message);
    return result != 0;
}
