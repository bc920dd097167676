/* The outputs of an image; see image.h. */
#include "guest/build/image.h"

#include "common/json.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { CPIO_ALIGNMENT = 4 };

static const unsigned file_types[] = {
    [HF_IMAGE_DIRECTORY] = S_IFDIR, [HF_IMAGE_FILE] = S_IFREG, [HF_IMAGE_CHARACTER_DEVICE] = S_IFCHR};

static void put_padding(FILE *out, size_t written)
{
    static const char zeros[CPIO_ALIGNMENT];
    fwrite(zeros, 1, (CPIO_ALIGNMENT - written % CPIO_ALIGNMENT) % CPIO_ALIGNMENT, out);
}

static void put_record(FILE *out, unsigned inode, const struct hf_image_entry *entry, const char *name)
{
    const unsigned mode = entry ? file_types[entry->kind] | entry->mode : 0;
    const unsigned links = entry && entry->kind == HF_IMAGE_DIRECTORY ? 2 : 1;
    const size_t name_size = strlen(name) + 1, size = entry ? entry->size_bytes : 0;
    int header =
        fprintf(out, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", inode, mode, 0, 0, links, 0,
                (unsigned)size, 0, 0, entry ? entry->major : 0, entry ? entry->minor : 0, (unsigned)name_size, 0);
    fwrite(name, 1, name_size, out);
    put_padding(out, (size_t)header + name_size);
    if (size > 0)
        fwrite(entry->bytes, 1, size, out);
    put_padding(out, size);
}

int hf_image_write_cpio(const struct hf_image *image, FILE *out, struct hf_error *err)
{
    for (size_t i = 0; i < image->count; i++)
        put_record(out, (unsigned)i + 1, image->entries[i], image->entries[i]->path + 1);
    put_record(out, 0, NULL, "TRAILER!!!");
    if (fflush(out) != 0 || ferror(out))
        return hf_error_set(err, "image-write-failed", errno, "", "cannot write the archive: %s", strerror(errno));
    return 0;
}

char *hf_image_manifest(const struct hf_image *image, const char *artifact, size_t *length)
{
    cJSON *manifest = hf_json_new_object();
    hf_json_add_int(manifest, "schema_version", 1);
    hf_json_add_string(manifest, "artifact", artifact);
    cJSON *lists[] = {
        [HF_IMAGE_DIRECTORY] = hf_json_add(manifest, "directories", hf_json_new_array()),
        [HF_IMAGE_FILE] = hf_json_add(manifest, "files", hf_json_new_array()),
        [HF_IMAGE_CHARACTER_DEVICE] = hf_json_add(manifest, "devices", hf_json_new_array()),
    };
    for (size_t i = 0; i < image->count; i++) {
        const struct hf_image_entry *entry = image->entries[i];
        char mode[8];
        snprintf(mode, sizeof mode, "%04o", entry->mode);
        cJSON *item = hf_json_append(lists[entry->kind], hf_json_new_object());
        hf_json_add_string(item, "path", entry->path);
        hf_json_add_string(item, "mode", mode);
        if (entry->kind == HF_IMAGE_FILE) {
            hf_json_add_int(item, "size", (int64_t)entry->size_bytes);
            hf_json_add_string(item, "sha256", entry->sha256);
        } else if (entry->kind == HF_IMAGE_CHARACTER_DEVICE) {
            hf_json_add_int(item, "major", entry->major);
            hf_json_add_int(item, "minor", entry->minor);
        }
    }
    char *text = hf_json_canonical(manifest, length);
    cJSON_Delete(manifest);
    return text;
}
