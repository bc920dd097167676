/* The VMM's process as /proc shows it; see process_view.h. */
#include "executor/scenario/vm/process_view.h"

#include "common/cleanup.h"
#include "common/process/proc_stat.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PROC_TEXT_MAX 8192 /* our own command lines are shorter; of others the beginning is enough */

/* Reads /proc/PID/NAME into text (NUL-terminated). Returns the length, or -1 with errno. */
static ssize_t read_proc(pid_t pid, const char *name, char text[PROC_TEXT_MAX])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t length = read(fd, text, PROC_TEXT_MAX - 1);
    if (length >= 0)
        text[length] = '\0';
    return length;
}

static bool has_argument(pid_t pid, const char *token)
{
    char text[PROC_TEXT_MAX];
    ssize_t length = read_proc(pid, "cmdline", text);
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1)
        if (strcmp(text + at, token) == 0)
            return true;
    return false;
}

/* Calls back for every process until the callback returns false. Returns -1 when /proc cannot be listed. */
static int each_process(bool (*visit)(pid_t pid, void *context), void *context)
{
    cleanup_dir DIR *proc = opendir("/proc");
    if (!proc)
        return -1;
    for (const struct dirent *entry = readdir(proc); entry; entry = readdir(proc))
        if (isdigit((unsigned char)entry->d_name[0]) && !visit((pid_t)strtol(entry->d_name, NULL, 10), context))
            break;
    return 0;
}

struct search {
    pid_t parent;
    const char *token;
    struct hf_process_identity *identity;
    int count;
};

static bool visit_child(pid_t pid, void *context)
{
    struct search *search = context;
    struct proc_stat fields;
    if (proc_stat_read(pid, 0, &fields) != 0 || fields.parent_pid != search->parent ||
        !has_argument(pid, search->token))
        return true;
    *search->identity = (struct hf_process_identity){.pid = pid, .start_ticks = fields.start_ticks};
    return false;
}

int hf_process_find(pid_t supervisor, const char *token, struct hf_process_identity *identity, struct hf_error *err)
{
    struct search search = {.parent = supervisor, .token = token, .identity = identity};
    *identity = (struct hf_process_identity){0};
    if (each_process(visit_child, &search) || identity->pid == 0)
        return hf_error_set(err, "vm-process-missing", errno, "",
                            "expected the VMM as a child of its supervisor %d, found none in /proc", (int)supervisor);
    return 0;
}

bool hf_process_alive(const struct hf_process_identity *identity)
{
    struct proc_stat fields;
    if (identity->pid == 0)
        return false;
    if (proc_stat_read(identity->pid, 0, &fields) != 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d", (int)identity->pid);
        return access(path, F_OK) == 0;
    }
    return fields.start_ticks == identity->start_ticks && !proc_stat_has_exited(&fields);
}

static bool visit_token(pid_t pid, void *context)
{
    struct search *search = context;
    struct proc_stat fields;
    if (has_argument(pid, search->token) && proc_stat_read(pid, 0, &fields) == 0 && !proc_stat_has_exited(&fields))
        search->count++;
    return true;
}

int hf_process_count_by_token(const char *token)
{
    struct search search = {.token = token};
    return each_process(visit_token, &search) ? -1 : search.count;
}
