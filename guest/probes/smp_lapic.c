/*
 * Probe "smp-lapic": does every processor of the guest get its timer interrupts, its inter-processor interrupts and its
 * share of time, and does it come back after it was taken offline? Progress is measured until a goal is reached or a
 * generous deadline passes, so that a loaded host makes the probe slower, not wrong.
 *
 * Arguments: "processors" (how many there must be), "churn" (offline/online rounds), "deadline_ms" (for any one goal).
 */
#include "guest/init/file.h"
#include "guest/probes/probes.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSORS   8
#define GOAL_TICKS       20 /* local timer interrupts per processor and window */
#define GOAL_EXPIRATIONS 20 /* of a 2 ms timer that a pinned thread waits for */
#define GOAL_CALLS       10 /* function-call interrupts per processor */
#define GOAL_WAKEUPS     10 /* wake-ups of a pinned thread from each other processor */
#define STARVED_RATIO    20 /* the slowest processor must do at least 1/20 of the fastest's work */

struct processor {
    unsigned number;
    pthread_t thread;
    atomic_bool stop;
    atomic_ulong work;        /* rounds of a busy loop */
    atomic_ulong expirations; /* of its timer */
    atomic_int turn;          /* futex: 1 asks the pinned thread to answer, which sets it back to 0 */
    atomic_ulong answers;
};

struct smp {
    struct hf_probe *probe;
    uint64_t deadline_ms;
    unsigned count;
    struct processor processors[MAX_PROCESSORS];
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void pin_to(unsigned processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* --- counting interrupts --- */

/* Reads the row `label` of /proc/interrupts; a processor that is offline has no column and keeps 0. */
static bool read_interrupts(const char *label, uint64_t counts[MAX_PROCESSORS])
{
    static char text[32768];
    unsigned columns[MAX_PROCESSORS], column_count = 0;
    memset(counts, 0, MAX_PROCESSORS * sizeof counts[0]);
    if (hf_file_read("/proc/interrupts", text, sizeof text) <= 0)
        return false;
    for (char *at = strstr(text, "CPU"); at && at < strchr(text, '\n') && column_count < MAX_PROCESSORS;
         at = strstr(at + 3, "CPU"))
        columns[column_count++] = (unsigned)strtoul(at + 3, NULL, 10);
    char wanted[16];
    snprintf(wanted, sizeof wanted, "%s:", label);
    char *row = strstr(text, wanted);
    if (!row)
        return false;
    row += strlen(wanted);
    for (unsigned i = 0; i < column_count; i++) {
        uint64_t value = strtoull(row, &row, 10);
        if (columns[i] < MAX_PROCESSORS)
            counts[columns[i]] = value;
    }
    return true;
}

static unsigned long lowest_delta(const struct smp *smp, const uint64_t before[], const uint64_t after[])
{
    unsigned long lowest = (unsigned long)-1;
    for (unsigned i = 0; i < smp->count; i++)
        if (after[i] - before[i] < lowest)
            lowest = after[i] - before[i];
    return lowest;
}

/* --- timers and time --- */

/* Works and, every 2 ms, is interrupted by a timer of its own processor. */
static void *busy_with_timer(void *context)
{
    struct processor *self = context;
    const struct itimerspec period = {.it_interval = {0, 2000000}, .it_value = {0, 2000000}};
    pin_to(self->number);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    timerfd_settime(timer, 0, &period, NULL);
    while (!atomic_load(&self->stop)) {
        uint64_t expired = 0;
        for (volatile unsigned spin = 0; spin < 2000; spin++)
            ;
        atomic_fetch_add(&self->work, 1);
        if (read(timer, &expired, sizeof expired) == sizeof expired)
            atomic_fetch_add(&self->expirations, expired);
    }
    close(timer);
    return NULL;
}

static bool start_all(struct smp *smp, void *(*run)(void *))
{
    unsigned started = 0;
    for (unsigned i = 0; i < smp->count; i++) {
        smp->processors[i] = (struct processor){.number = i};
        started += pthread_create(&smp->processors[i].thread, NULL, run, &smp->processors[i]) == 0;
    }
    return started == smp->count;
}

static long futex(atomic_int *word, int operation, int value)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void join_all(struct smp *smp)
{
    for (unsigned i = 0; i < smp->count; i++) {
        atomic_store(&smp->processors[i].stop, true);
        atomic_store(&smp->processors[i].turn, 1); /* for those that sleep until it is their turn */
        futex(&smp->processors[i].turn, FUTEX_WAKE, 1);
    }
    for (unsigned i = 0; i < smp->count; i++)
        pthread_join(smp->processors[i].thread, NULL);
}

static void spread(const struct smp *smp, unsigned long *least, unsigned long *most, unsigned long *expirations)
{
    *least = *expirations = (unsigned long)-1;
    *most = 0;
    for (unsigned i = 0; i < smp->count; i++) {
        unsigned long work = atomic_load(&smp->processors[i].work);
        unsigned long expired = atomic_load(&smp->processors[i].expirations);
        *least = work < *least ? work : *least;
        *most = work > *most ? work : *most;
        *expirations = expired < *expirations ? expired : *expirations;
    }
}

/* Timer progress on each processor and no starvation, while every processor is busy. */
static void check_timers(struct smp *smp, const char *ticks_name, const char *timer_name, const char *share_name)
{
    uint64_t before[MAX_PROCESSORS], after[MAX_PROCESSORS], give_up = now_ms() + smp->deadline_ms;
    unsigned long ticks = 0, least = 0, most = 0, expirations = 0;
    bool counted = read_interrupts("LOC", before), started = start_all(smp, busy_with_timer);
    do {
        usleep(20000);
        counted &= read_interrupts("LOC", after);
        ticks = lowest_delta(smp, before, after);
        spread(smp, &least, &most, &expirations);
    } while (started && counted && now_ms() < give_up &&
             (ticks < GOAL_TICKS || expirations < GOAL_EXPIRATIONS || least == 0 || least < most / STARVED_RATIO));
    join_all(smp);
    hf_probe_check(smp->probe, ticks_name, started && counted && ticks >= GOAL_TICKS,
                   "at least %lu local timer interrupts on each processor", ticks);
    hf_probe_check(smp->probe, timer_name, started && expirations >= GOAL_EXPIRATIONS,
                   "at least %lu timer expirations seen on each", expirations);
    hf_probe_check(smp->probe, share_name, started && least > 0 && least >= most / STARVED_RATIO,
                   "between %lu and %lu rounds of work on each", least, most);
}

/* --- inter-processor interrupts --- */

/* Sleeps on its processor until another one wakes it, which takes an interrupt from there to here. There is no timeout:
 * a wake-up that is lost stays lost. */
static void *answer_turns(void *context)
{
    struct processor *self = context;
    pin_to(self->number);
    while (!atomic_load(&self->stop)) {
        if (atomic_load(&self->turn) == 0) {
            futex(&self->turn, FUTEX_WAIT, 0);
            continue;
        }
        atomic_store(&self->turn, 0); /* before the answer: who sees the answer may ask again at once */
        atomic_fetch_add(&self->answers, 1);
    }
    return NULL;
}

/* From the processor this thread is pinned to, wakes the thread of `other` and waits for its answer. The deadline is
 * that of one wake-up: on a busy host all of them together may take long, but each is answered. */
static bool wake_once(struct processor *other, uint64_t deadline_ms)
{
    uint64_t give_up = now_ms() + deadline_ms;
    unsigned long answers = atomic_load(&other->answers);
    atomic_store(&other->turn, 1);
    futex(&other->turn, FUTEX_WAKE, 1);
    while (atomic_load(&other->answers) == answers) {
        if (now_ms() >= give_up)
            return false;
        sched_yield();
    }
    return true;
}

/* Ends at the first wake-up that is lost: a processor that does not answer one need not be asked again. */
static bool wake_all_pairs(struct smp *smp)
{
    for (unsigned from = 0; from < smp->count; from++) {
        pin_to(from);
        for (unsigned to = 0; to < smp->count; to++)
            for (unsigned i = 0; to != from && i < GOAL_WAKEUPS; i++)
                if (!wake_once(&smp->processors[to], smp->deadline_ms))
                    return false;
    }
    return true;
}

static void *spin(void *context)
{
    struct processor *self = context;
    pin_to(self->number);
    while (!atomic_load(&self->stop))
        atomic_fetch_add(&self->work, 1);
    return NULL;
}

/* membarrier(2) interrupts every processor that runs a thread of this process: here, each of them in turn. */
static unsigned long call_all(struct smp *smp)
{
    uint64_t before[MAX_PROCESSORS], after[MAX_PROCESSORS], give_up = now_ms() + smp->deadline_ms;
    unsigned long calls = 0;
    bool usable = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
                  read_interrupts("CAL", before) && start_all(smp, spin);
    while (usable && calls < GOAL_CALLS && now_ms() < give_up) {
        for (unsigned from = 0; from < smp->count; from++) {
            pin_to(from);
            for (unsigned i = 0; i < GOAL_CALLS; i++)
                usable &= syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
        }
        usable &= read_interrupts("CAL", after);
        calls = lowest_delta(smp, before, after);
    }
    join_all(smp);
    return usable ? calls : 0;
}

static void check_interrupts(struct smp *smp, const char *wake_name, const char *call_name)
{
    bool started = start_all(smp, answer_turns);
    bool answered = started && wake_all_pairs(smp);
    join_all(smp);
    hf_probe_check(smp->probe, wake_name, answered, "%d wake-ups from each processor to each other one, %s",
                   GOAL_WAKEUPS, answered ? "each answered" : "one of them lost");
    unsigned long calls = call_all(smp);
    hf_probe_check(smp->probe, call_name, calls >= GOAL_CALLS,
                   "at least %lu function-call interrupts on each processor", calls);
}

/* --- offline and online --- */

static int switch_processor(unsigned number, const char *state)
{
    char path[64], seen[8];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/online", number);
    if (hf_file_write(path, state) != 0 || hf_file_read(path, seen, sizeof seen) < 0)
        return errno ? errno : EIO;
    return strcmp(seen, state) == 0 ? 0 : EIO;
}

/* A processor that is offline takes no interrupt: it has no column, and nothing can be pinned to it. */
static bool is_absent(unsigned number)
{
    uint64_t counts[MAX_PROCESSORS];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(number, &set);
    return read_interrupts("LOC", counts) && counts[number] == 0 && sched_setaffinity(0, sizeof set, &set) != 0 &&
           errno == EINVAL;
}

static void check_hotplug(struct smp *smp, unsigned rounds)
{
    unsigned failed = 0, present = 0, last_errno = 0;
    pin_to(0);
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 1; i < smp->count; i++) {
            int off = switch_processor(i, "0");
            present += off == 0 && !is_absent(i);
            int on = switch_processor(i, "1");
            failed += (unsigned)(off != 0) + (unsigned)(on != 0);
            last_errno = off || on ? (unsigned)(off ? off : on) : last_errno;
        }
    hf_probe_check(smp->probe, "offline-online", failed == 0,
                   "%u rounds over %u processors, %u switches failed (errno %u)", rounds, smp->count - 1, failed,
                   last_errno);
    hf_probe_check(smp->probe, "offline-takes-no-interrupt", present == 0, "%u were still there", present);
}

/* --- topology --- */

static void check_topology(struct smp *smp)
{
    static char text[65536];
    unsigned seen = 0, doubled = 0;
    uint64_t apic_ids = 0;
    ssize_t length = hf_file_read("/proc/cpuinfo", text, sizeof text);
    for (char *at = length > 0 ? strstr(text, "\napicid") : NULL; at; at = strstr(at + 1, "\napicid")) {
        unsigned long id = strtoul(strchr(at, ':') + 1, NULL, 10);
        doubled += id < 64 && (apic_ids >> id & 1);
        apic_ids |= id < 64 ? UINT64_C(1) << id : 0;
        seen++;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    hf_probe_check(smp->probe, "topology", online == (long)smp->count && seen == smp->count && doubled == 0,
                   "%ld processors online, %u listed, %u APIC ids used twice", online, seen, doubled);
}

/* Notes the time since `begin` in the result; returns the time now. */
static uint64_t lap(struct hf_probe *probe, const char *name, uint64_t begin)
{
    uint64_t now = now_ms();
    hf_emit_uint(hf_probe_result(probe), name, now - begin);
    return now;
}

static int smp_lapic(struct hf_probe *probe)
{
    static struct smp smp;
    int64_t processors, churn, deadline_ms;
    uint64_t counts[MAX_PROCESSORS];
    if (hf_probe_arg_int(probe, "processors", 2, MAX_PROCESSORS, &processors) ||
        hf_probe_arg_int(probe, "churn", 1, 16, &churn) ||
        hf_probe_arg_int(probe, "deadline_ms", 1000, 3600000, &deadline_ms))
        return -1;
    if (!read_interrupts("LOC", counts) || !read_interrupts("CAL", counts))
        return hf_probe_cannot_run(probe, "/proc/interrupts has no rows LOC and CAL");
    if (access("/sys/devices/system/cpu/cpu1/online", W_OK) != 0)
        return hf_probe_cannot_run(probe, "processors cannot be taken offline: %s", strerror(errno));
    smp.probe = probe;
    smp.deadline_ms = (uint64_t)deadline_ms;
    smp.count = (unsigned)processors;
    check_topology(&smp);
    if (sysconf(_SC_NPROCESSORS_ONLN) != processors)
        return 0; /* the check above has told */
    uint64_t begin = now_ms();
    check_timers(&smp, "timer-interrupts", "timer-progress", "no-starvation");
    begin = lap(probe, "timers_ms", begin);
    check_interrupts(&smp, "wake-up-progress", "call-interrupts");
    begin = lap(probe, "interrupts_ms", begin);
    check_hotplug(&smp, (unsigned)churn);
    begin = lap(probe, "hotplug_ms", begin);
    check_timers(&smp, "timer-interrupts-after-churn", "timer-progress-after-churn", "no-starvation-after-churn");
    check_interrupts(&smp, "wake-up-progress-after-churn", "call-interrupts-after-churn");
    lap(probe, "after_churn_ms", begin);
    return 0;
}

HF_PROBE("smp-lapic", smp_lapic);
