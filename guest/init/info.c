/* Implementation of info.h. */
#include "guest/init/info.h"

#include "guest/init/file.h"
#include "guest/init/modules.h"
#include "guest/init/runner.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

void hf_info_emit_ping(struct hf_emit *emit)
{
    char boot_id[64] = "";
    hf_file_read("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
    hf_emit_uint(emit, "uptime_ms", hf_agent_now_ms());
    hf_emit_string(emit, "boot_id", boot_id);
}

/* Number of processors in a list such as "0-2,5". */
static int64_t count_listed(const char *path)
{
    char list[512];
    int64_t count = 0;
    if (hf_file_read(path, list, sizeof list) <= 0)
        return 0;
    char *rest = list;
    for (char *range; (range = strsep(&rest, ","));) {
        char *end;
        const long first = strtol(range, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, NULL, 10) : first;
        count += last - first + 1;
    }
    return count;
}

static int64_t meminfo_kib(const char *table, const char *name)
{
    const char *row = strstr(table, name);
    return row ? strtoll(row + strlen(name), NULL, 10) : 0;
}

static void emit_devices(struct hf_emit *emit)
{
    hf_emit_array_begin(emit, "devices");
    DIR *devices = opendir("/sys/bus/virtio/devices");
    for (struct dirent *device; devices && (device = readdir(devices));) {
        char path[300], modalias[128];
        snprintf(path, sizeof path, "/sys/bus/virtio/devices/%.200s/modalias", device->d_name);
        if (device->d_name[0] != '.' && hf_file_read(path, modalias, sizeof modalias) > 0)
            hf_emit_string(emit, NULL, modalias);
    }
    if (devices)
        closedir(devices);
    hf_emit_end(emit);
}

void hf_info_emit(struct hf_emit *emit)
{
    struct utsname kernel = {0};
    char meminfo[4096] = "", cmdline[4096] = "";
    uname(&kernel);
    hf_file_read("/proc/meminfo", meminfo, sizeof meminfo);
    hf_file_read("/proc/cmdline", cmdline, sizeof cmdline);
    hf_emit_string(emit, "version", HF_VERSION);
    hf_emit_string(emit, "kernel_release", kernel.release);
    hf_emit_int(emit, "cpus_online", count_listed("/sys/devices/system/cpu/online"));
    hf_emit_int(emit, "cpus_possible", count_listed("/sys/devices/system/cpu/possible"));
    hf_emit_int(emit, "memory_total_kib", meminfo_kib(meminfo, "MemTotal:"));
    hf_emit_int(emit, "memory_available_kib", meminfo_kib(meminfo, "MemAvailable:"));
    hf_emit_string(emit, "cmdline", cmdline);
    hf_modules_emit_loaded(emit, "modules");
    emit_devices(emit);
    hf_probe_emit_names(emit, "probes");
}
