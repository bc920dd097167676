/* Walking and judging a scenario's reports; see inventory.h. */
#include "executor/inventory.h"

#include "common/cleanup.h"
#include "common/digest.h"
#include "common/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    struct inventory *inventory;
    const char *const *required;
    size_t required_count;
    uint64_t required_seen; /* bit for each required name */
    size_t entries, reports;
    char path[4096]; /* of the present entry, relative to the output directory */
};

_Static_assert(HF_PROFILE_MAX_REPORTS <= 64, "required_seen has one bit for each required report");

bool inventory_is_report_name(const char *name)
{
    return fnmatch("*outcome*.json", name, 0) == 0 || fnmatch("*report*.json", name, 0) == 0;
}

static void fault(struct walk *walk, const char *code, int saved_errno, const char *what)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    walk->inventory->acceptable = false;
    if (!walk->inventory->first_fault.code)
        hf_error_set(&walk->inventory->first_fault, code, saved_errno, "", "%s: %s",
                     hf_error_quote(walk->path, strlen(walk->path), quoted), what);
}

static void note_teardown_fault(struct walk *walk)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    struct inventory *inventory = walk->inventory;
    if (inventory->teardown_complete && !inventory->first_fault.code)
        hf_error_set(&inventory->first_fault, "report-teardown", 0, "teardown", "%s: a teardown field is not true",
                     hf_error_quote(walk->path, strlen(walk->path), quoted));
    inventory->teardown_complete = false;
}

/* `teardown` is true itself, or an object of at least one field whose every field is true. */
static bool teardown_is_true(const cJSON *teardown)
{
    if (!cJSON_IsObject(teardown))
        return cJSON_IsTrue(teardown);
    const cJSON *field;
    cJSON_ArrayForEach(field, teardown) if (!cJSON_IsTrue(field)) return false;
    return teardown->child != NULL;
}

/* Looks at every member named `teardown`, at any depth (the reader bounds it). Counts them; false when one is false. */
static bool teardowns_are_true(const cJSON *item, unsigned *seen)
{
    bool all = true;
    const cJSON *member;
    cJSON_ArrayForEach(member, item)
    {
        if (member->string && strcmp(member->string, "teardown") == 0) {
            (*seen)++;
            all = teardown_is_true(member) && all;
        } else {
            all = teardowns_are_true(member, seen) && all;
        }
    }
    return all;
}

/* Reads at most INVENTORY_MAX_REPORT_BYTES; owned, or NULL after a fault was noted. */
static char *read_report(struct walk *walk, int dirfd, const char *name, size_t *length)
{
    struct stat status;
    cleanup_close int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) != 0) {
        fault(walk, errno == ELOOP ? "report-link" : "report-unreadable", errno,
              errno == ELOOP ? "is a symbolic link; a regular file was expected" : "cannot be opened");
        return NULL;
    }
    if (!S_ISREG(status.st_mode)) {
        fault(walk, "report-unreadable", 0, "is no regular file");
        return NULL;
    }
    cleanup_free char *text = malloc(INVENTORY_MAX_REPORT_BYTES + 1);
    ssize_t got = text ? 1 : -1;
    for (*length = 0; got > 0 && *length <= INVENTORY_MAX_REPORT_BYTES; *length += got > 0 ? (size_t)got : 0)
        got = read(fd, text + *length, INVENTORY_MAX_REPORT_BYTES + 1 - *length);
    if (got < 0) {
        fault(walk, "report-unreadable", errno, "cannot be read");
        return NULL;
    }
    if (*length > INVENTORY_MAX_REPORT_BYTES) {
        fault(walk, "report-too-large", 0, "is larger than 1 MiB");
        return NULL;
    }
    return STEAL_PTR(text);
}

static void judge_report(struct walk *walk, int dirfd, const char *name)
{
    const struct hf_json_limits limits = {.max_bytes = INVENTORY_MAX_REPORT_BYTES, .max_depth = HF_JSON_MAX_DEPTH};
    char sha256[HF_SHA256_HEX_SIZE];
    size_t length;
    unsigned teardowns = 0;
    if (++walk->reports > INVENTORY_MAX_REPORTS) {
        fault(walk, "report-too-many", 0, "there are more than 256 reports");
        return;
    }
    cleanup_free char *text = read_report(walk, dirfd, name, &length);
    if (!text)
        return;
    hf_sha256_hex(text, length, sha256);
    cleanup_json cJSON *report = hf_json_parse(text, length, &limits, NULL);
    if (!report)
        fault(walk, "report-invalid", 0, "is no well-formed JSON");
    bool torn_down = !report || teardowns_are_true(report, &teardowns);
    if (!torn_down)
        note_teardown_fault(walk);
    for (size_t i = 0; report && i < walk->required_count; i++)
        if (strcmp(walk->required[i], name) == 0)
            walk->required_seen |= UINT64_C(1) << i;
    cJSON *entry = hf_json_append(walk->inventory->reports, hf_json_new_object());
    hf_json_add_string(entry, "path", walk->path);
    hf_json_add_string(entry, "sha256", sha256);
    hf_json_add_int(entry, "size", (int64_t)length);
    hf_json_add_int(entry, "teardowns", teardowns);
    hf_json_add_bool(entry, "teardown_complete", torn_down);
}

static void walk_directory(struct walk *walk, int dirfd, unsigned depth);

static void visit(struct walk *walk, int dirfd, const char *name, unsigned depth)
{
    struct stat status;
    size_t before = strlen(walk->path);
    int written = snprintf(walk->path + before, sizeof walk->path - before, "%s%s", before ? "/" : "", name);
    if (written < 0 || (size_t)written >= sizeof walk->path - before)
        fault(walk, "report-too-many", ENAMETOOLONG, "has too long a path");
    else if (fstatat(dirfd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        fault(walk, "report-unreadable", errno, "vanished while the output was read");
    else if (S_ISDIR(status.st_mode)) {
        cleanup_close int child = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (child < 0)
            fault(walk, "report-unreadable", errno, "is a directory that cannot be opened");
        else if (depth >= INVENTORY_MAX_DEPTH)
            fault(walk, "report-too-many", 0, "is nested too deep");
        else
            walk_directory(walk, child, depth + 1);
    } else if (inventory_is_report_name(name))
        judge_report(walk, dirfd, name);
    walk->path[before] = '\0';
}

static void walk_directory(struct walk *walk, int dirfd, unsigned depth)
{
    int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    if (!directory) {
        if (copy >= 0)
            close(copy);
        fault(walk, "report-unreadable", errno, "cannot be listed");
        return;
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry && errno != 0)
            fault(walk, "report-unreadable", errno, "cannot be listed");
        if (!entry)
            return;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (++walk->entries > INVENTORY_MAX_ENTRIES) {
            fault(walk, "report-too-many", 0, "the output holds more than 20,000 files");
            return;
        }
        visit(walk, dirfd, entry->d_name, depth);
    }
}

void inventory_take(int output_dirfd, const char *const *required, size_t required_count, struct inventory *inventory)
{
    struct walk walk = {.inventory = inventory, .required = required, .required_count = required_count};
    memset(inventory, 0, sizeof *inventory);
    inventory->reports = hf_json_new_array();
    inventory->teardown_complete = inventory->acceptable = true;
    walk_directory(&walk, output_dirfd, 0);
    for (size_t i = 0; i < required_count; i++)
        if (!(walk.required_seen & UINT64_C(1) << i)) {
            snprintf(walk.path, sizeof walk.path, "%s", required[i]);
            fault(&walk, "report-missing", 0, "the scenario did not leave this report");
        }
}

void inventory_clear(struct inventory *inventory)
{
    cJSON_Delete(inventory->reports);
    inventory->reports = NULL;
}
