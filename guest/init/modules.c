/* Implementation of modules.h, and hf_guest_load_module() of guest/probes/probes.h. */
#include "guest/init/modules.h"

#include "guest/init/file.h"
#include "guest/probes/probes.h"
#include "guest/protocol.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIST_MAX = 32 << 10, DEPTH_MAX = 8, MODALIAS_MAX = 512 };

struct module_line {
    char name[HF_GUEST_NAME_MAX + 1];
    char depends[512];
    const char *aliases; /* within the list, up to its newline */
    size_t aliases_length;
};

/* Reads the line at *at and moves on. False at the end of the list. */
static bool next_line(const char **at, struct module_line *line)
{
    size_t length = strcspn(*at, "\n");
    if (length == 0 || sscanf(*at, "%63s %511s", line->name, line->depends) != 2)
        return false;
    size_t fixed = strlen(line->name) + 1 + strlen(line->depends);
    line->aliases = *at + fixed;
    line->aliases_length = length - fixed;
    *at += length;
    *at += **at == '\n';
    return true;
}

static int insert(const char *name, char *why, size_t why_size)
{
    char path[sizeof HF_MODULES_DIR + HF_GUEST_NAME_MAX + 8];
    snprintf(path, sizeof path, HF_MODULES_DIR "/%s.ko", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    long result = fd < 0 ? -1 : syscall(SYS_finit_module, fd, "", 0);
    int saved = errno;
    if (fd >= 0)
        close(fd);
    if (result == 0 || (fd >= 0 && saved == EEXIST))
        return 0;
    snprintf(why, why_size, "kernel module %s cannot be loaded: %s", name, strerror(saved));
    return -1;
}

static int load(const char *list, const char *name, unsigned depth, char *why, size_t why_size)
{
    struct module_line line;
    const char *at = list;
    while (next_line(&at, &line)) {
        if (strcmp(line.name, name) != 0)
            continue;
        char *rest = line.depends;
        for (char *needed; depth > 0 && strcmp(line.depends, "-") != 0 && (needed = strsep(&rest, ","));)
            if (load(list, needed, depth - 1, why, why_size) != 0)
                return -1;
        return insert(name, why, why_size);
    }
    snprintf(why, why_size, "kernel module %s is not in the initramfs", name);
    return -1;
}

static int read_list(char list[LIST_MAX], char *why, size_t why_size)
{
    if (hf_file_read(HF_MODULES_LIST, list, LIST_MAX) >= 0)
        return 0;
    snprintf(why, why_size, "cannot read " HF_MODULES_LIST ": %s", strerror(errno));
    return -1;
}

int hf_guest_load_module(const char *name, char *why, size_t why_size)
{
    char list[LIST_MAX];
    return read_list(list, why, why_size) != 0 ? -1 : load(list, name, DEPTH_MAX, why, why_size);
}

static bool drives(const struct module_line *line, const char *modalias)
{
    const char *at = line->aliases, *end = at + line->aliases_length;
    while (at < end) {
        char pattern[MODALIAS_MAX];
        at += strspn(at, " ");
        size_t length = strcspn(at, " \n");
        if (length > 0 && length < sizeof pattern) {
            memcpy(pattern, at, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, modalias, 0) == 0)
                return true;
        }
        at += length;
    }
    return false;
}

static int load_for_device(const char *list, const char *modalias, char *why, size_t why_size)
{
    struct module_line line;
    const char *at = list;
    while (next_line(&at, &line))
        if (drives(&line, modalias) && load(list, line.name, DEPTH_MAX, why, why_size) != 0)
            return -1;
    return 0;
}

static int load_for_bus(const char *list, const char *bus, char *why, size_t why_size)
{
    char path[300], modalias[MODALIAS_MAX];
    snprintf(path, sizeof path, "/sys/bus/%s/devices", bus);
    DIR *devices = opendir(path);
    if (!devices)
        return 0; /* a bus that is not there has no devices */
    int result = 0;
    for (struct dirent *device; result == 0 && (device = readdir(devices));) {
        if (device->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/sys/bus/%s/devices/%.200s/modalias", bus, device->d_name);
        if (hf_file_read(path, modalias, sizeof modalias) > 0)
            result = load_for_device(list, modalias, why, why_size);
    }
    closedir(devices);
    return result;
}

int hf_modules_load_for_devices(char *why, size_t why_size)
{
    static const char *const buses[] = {"acpi", "pci", "virtio"};
    char list[LIST_MAX];
    if (read_list(list, why, why_size) != 0)
        return -1;
    for (size_t i = 0; i < sizeof buses / sizeof buses[0]; i++)
        if (load_for_bus(list, buses[i], why, why_size) != 0)
            return -1;
    return 0;
}

void hf_modules_emit_loaded(struct hf_emit *emit, const char *key)
{
    char table[8 << 10];
    hf_emit_array_begin(emit, key);
    if (hf_file_read("/proc/modules", table, sizeof table) > 0) {
        char *rest = table;
        for (char *row; (row = strsep(&rest, "\n"));)
            hf_emit_bytes(emit, NULL, row, strcspn(row, " "));
    }
    hf_emit_end(emit);
}
