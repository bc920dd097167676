/* Reading and completing the list of entries; see image.h. */
#include "guest/build/image.h"

#include "common/cleanup.h"
#include "common/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void hf_image_clear(struct hf_image *image)
{
    for (size_t i = 0; i < image->count; i++) {
        free(image->entries[i]->source);
        free(image->entries[i]->bytes);
        free(image->entries[i]);
    }
    image->count = 0;
}

/* Absolute, no empty, "." or ".." component, plain printable ASCII. */
static bool path_is_plain(const char *path)
{
    if (path[0] != '/' || path[1] == '\0' || strlen(path) > HF_IMAGE_PATH_MAX)
        return false;
    for (const char *at = path; *at;) {
        size_t length = strcspn(++at, "/");
        if (length == 0 || (length <= 2 && strncmp(at, "..", length) == 0))
            return false;
        for (size_t i = 0; i < length; i++)
            if (at[i] <= ' ' || at[i] > '~')
                return false;
        at += length;
    }
    return true;
}

static bool parse_number(const char *text, int base, unsigned max, unsigned *value)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    unsigned long parsed = strtoul(text, &end, base);
    *value = (unsigned)parsed;
    return errno == 0 && *end == '\0' && parsed <= max;
}

static bool parse_device(char *rest, struct hf_image_entry *entry)
{
    const char *major = strsep(&rest, " ");
    return major && rest && parse_number(major, 10, 511, &entry->major) && parse_number(rest, 10, 255, &entry->minor);
}

static bool parse_entry(char *line, struct hf_image_entry *entry)
{
    char *rest = line;
    const char *kind = strsep(&rest, " ");
    const char *path = strsep(&rest, " ");
    const char *mode = strsep(&rest, " ");
    if (!mode || !path_is_plain(path) || !parse_number(mode, 8, 07777, &entry->mode))
        return false;
    snprintf(entry->path, sizeof entry->path, "%s", path);
    if (strcmp(kind, "dir") == 0) {
        entry->kind = HF_IMAGE_DIRECTORY;
        return rest == NULL;
    }
    if (strcmp(kind, "char") == 0) {
        entry->kind = HF_IMAGE_CHARACTER_DEVICE;
        return rest && parse_device(rest, entry);
    }
    entry->kind = HF_IMAGE_FILE;
    if (strcmp(kind, "file") != 0 || !rest || !rest[0])
        return false;
    entry->source = strdup(rest);
    return entry->source != NULL;
}

static int add_line(struct hf_image *image, char *line, struct hf_error *err)
{
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    if (image->count == HF_IMAGE_ENTRIES_MAX)
        return hf_error_set(err, "image-list-invalid", 0, "", "more than %d entries", HF_IMAGE_ENTRIES_MAX);
    struct hf_image_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return hf_error_set(err, "image-list-invalid", errno, "", "out of memory");
    image->entries[image->count++] = entry;
    if (parse_entry(line, entry))
        return 0;
    return hf_error_set(err, "image-list-invalid", 0, "",
                        "expected 'dir PATH MODE', 'file PATH MODE SOURCE' or 'char PATH MODE MAJOR MINOR'");
}

int hf_image_read_list(struct hf_image *image, const char *list_path, struct hf_error *err)
{
    cleanup_file FILE *list = fopen(list_path, "re");
    if (!list)
        return hf_error_set(err, "image-list-invalid", errno, "", "cannot open the list %s: %s", list_path,
                            strerror(errno));
    cleanup_free char *line = NULL;
    size_t capacity = 0;
    unsigned number = 0;
    for (ssize_t length; (length = getline(&line, &capacity, list)) > 0;) {
        number++;
        if (line[length - 1] == '\n')
            line[length - 1] = '\0';
        if (add_line(image, line, err) != 0)
            return hf_error_prefix(err, "%s:%u", list_path, number);
    }
    return ferror(list) ? hf_error_set(err, "image-list-invalid", errno, "", "cannot read %s", list_path) : 0;
}

static int by_path(const void *left, const void *right)
{
    const struct hf_image_entry *const *a = left, *const *b = right;
    return strcmp((*a)->path, (*b)->path);
}

static bool has_directory(const struct hf_image *image, const char *path, size_t length)
{
    for (size_t i = 0; i < image->count; i++)
        if (image->entries[i]->kind == HF_IMAGE_DIRECTORY && strlen(image->entries[i]->path) == length &&
            strncmp(image->entries[i]->path, path, length) == 0)
            return true;
    return false;
}

static int read_file(struct hf_image_entry *entry, struct hf_error *err)
{
    if (entry->kind != HF_IMAGE_FILE)
        return 0;
    entry->bytes = (uint8_t *)hf_document_read(AT_FDCWD, entry->source, HF_IMAGE_FILE_MAX, &entry->size_bytes, err);
    if (!entry->bytes)
        return hf_error_prefix(err, "%s", entry->path);
    hf_sha256_hex(entry->bytes, entry->size_bytes, entry->sha256);
    return 0;
}

int hf_image_finish(struct hf_image *image, struct hf_error *err)
{
    qsort(image->entries, image->count, sizeof image->entries[0], by_path);
    for (size_t i = 0; i < image->count; i++) {
        const char *path = image->entries[i]->path;
        const size_t parent = (size_t)(strrchr(path, '/') - path);
        if (i > 0 && strcmp(image->entries[i - 1]->path, path) == 0)
            return hf_error_set(err, "image-list-invalid", 0, path, "%s is listed twice", path);
        if (parent > 0 && !has_directory(image, path, parent))
            return hf_error_set(err, "image-list-invalid", 0, path, "%s needs a 'dir %.*s' line", path, (int)parent,
                                path);
        if (read_file(image->entries[i], err) != 0)
            return -1;
    }
    return 0;
}
