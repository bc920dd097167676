/*
 * Scenario "console-exit". It has to show: "a guest that floods the console while the host reads late; exact bytes
 * before the bound, none lost at exit; exact exit status."
 *
 * The probe's bytes are a function of the seed (guest/probes/console_flood.h), so the host compares every one of them
 * as it arrives, whether it is kept or lies beyond the bound.
 */
#include "executor/scenario/scenarios.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "guest/probes/console_flood.h"
#include "guest/probes/pattern.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define FLOOD_BYTES      (192 << 10)
#define BOUND_BYTES      (64 << 10) /* kept of the console: the flood exhausts it */
#define LAST_BYTES       128        /* must fit the socket's queue, because nobody reads until the VMM is gone */
#define QUIET_MS         250        /* a queue that has not grown for so long is full, not slow */
#define PROBE_TIMEOUT_MS 120000

enum console_part { BEFORE_MARKER, FLOOD, LAST_WORDS, AFTER_LAST };

/* What has been seen of the console, byte by byte. */
struct console_watch {
    uint64_t seed;
    enum console_part part;
    uint8_t marker[HF_FLOOD_MARKER_SIZE];
    uint8_t window[HF_FLOOD_MARKER_SIZE]; /* the last bytes seen */
    struct hf_pattern expected;
    uint64_t total_bytes, marker_end; /* offset just behind the marker */
    uint64_t flood_bytes, last_bytes, wrong_bytes, surplus_bytes;
    uint64_t first_wrong; /* offset in the console, when wrong_bytes is not 0 */
};

static void watch_init(struct console_watch *watch, uint64_t seed)
{
    struct hf_pattern pattern;
    *watch = (struct console_watch){.seed = seed};
    hf_pattern_init(&pattern, seed, HF_FLOOD_STREAM_MARKER);
    hf_pattern_fill(&pattern, watch->marker, sizeof watch->marker);
}

static void seek_marker(struct console_watch *watch, uint8_t byte)
{
    memmove(watch->window, watch->window + 1, sizeof watch->window - 1);
    watch->window[sizeof watch->window - 1] = byte;
    if (memcmp(watch->window, watch->marker, sizeof watch->window) != 0)
        return;
    watch->part = FLOOD;
    watch->marker_end = watch->total_bytes + 1;
    hf_pattern_init(&watch->expected, watch->seed, HF_FLOOD_STREAM_FLOOD);
}

static void compare(struct console_watch *watch, uint8_t byte)
{
    if (byte == hf_pattern_next(&watch->expected))
        return;
    if (watch->wrong_bytes++ == 0)
        watch->first_wrong = watch->total_bytes;
}

static void take_byte(struct console_watch *watch, uint8_t byte)
{
    switch (watch->part) {
    case BEFORE_MARKER:
        seek_marker(watch, byte);
        break;
    case FLOOD:
        compare(watch, byte);
        if (++watch->flood_bytes == FLOOD_BYTES) {
            watch->part = LAST_WORDS;
            hf_pattern_init(&watch->expected, watch->seed, HF_FLOOD_STREAM_LAST);
        }
        break;
    case LAST_WORDS:
        compare(watch, byte);
        if (++watch->last_bytes == LAST_BYTES)
            watch->part = AFTER_LAST;
        break;
    case AFTER_LAST:
        watch->surplus_bytes++;
        break;
    }
    watch->total_bytes++;
}

static int take_bytes(void *context, const uint8_t *bytes, size_t count, struct hf_error *err)
{
    (void)err;
    for (size_t i = 0; i < count; i++)
        take_byte(context, bytes[i]);
    return 0;
}

static int prepare(struct hf_phase *phase, struct hf_error *err)
{
    (void)err;
    struct console_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        abort();
    watch_init(watch, phase->run->options.seed);
    phase->state = watch;
    phase->spec.console_sink = take_bytes;
    phase->spec.console_context = watch;
    phase->spec.console_bound_bytes = BOUND_BYTES;
    return 0;
}

/* The status that this seed must produce: any odd value from 33 to 159, never one that QEMU uses itself. */
static unsigned exit_value(uint64_t seed)
{
    return 16 + (unsigned)(seed % 64);
}

static int queued_bytes(const struct hf_vm *vm)
{
    int queued = 0;
    return ioctl(vm->serial_fd, FIONREAD, &queued) == 0 ? queued : -1;
}

/* Pumps everything but the console until its queue has stopped growing. Returns how much is queued, -1 on error. */
static int wait_until_blocked(struct hf_vm *vm, struct hf_error *err)
{
    int queued = queued_bytes(vm);
    uint64_t quiet_since = hf_clock_mono_ms();
    while (queued == 0 || hf_clock_mono_ms() - quiet_since < QUIET_MS) {
        if (hf_clock_mono_ms() >= vm->deadline_mono_ms || hf_vm_drained(vm))
            return hf_error_set(err, "vm-timeout", 0, "", "expected the guest to fill the console, it did not");
        if (hf_vm_pump(vm, hf_clock_mono_ms() + 20, err))
            return -1;
        int now = queued_bytes(vm);
        if (now != queued)
            quiet_since = hf_clock_mono_ms();
        queued = now;
    }
    return queued;
}

static bool flood_arrived(struct hf_vm *vm, void *context)
{
    const struct console_watch *watch = context;
    (void)vm;
    return watch->flood_bytes >= FLOOD_BYTES;
}

static cJSON *probe_args(const struct hf_phase *phase)
{
    cJSON *args = hf_json_new_object();
    hf_json_add_int(args, "seed", (int64_t)phase->run->options.seed);
    hf_json_add_int(args, "bytes", FLOOD_BYTES);
    hf_json_add_int(args, "last_bytes", LAST_BYTES);
    hf_json_add_int(args, "value", exit_value(phase->run->options.seed));
    return args;
}

/* "a guest that floods the console while the host reads late" */
static int flood_against_late_reader(struct hf_phase *phase, struct hf_error *err)
{
    struct hf_vm *vm = &phase->vm;
    vm->hold_console = true;
    if (hf_vm_run_continue(vm, NULL, err))
        return -1;
    int queued = wait_until_blocked(vm, err);
    if (queued < 0)
        return -1;
    bool blocked = queued > 0 && queued < FLOOD_BYTES && vm->control.pending_id != 0;
    hf_phase_check(phase, "back-pressure", blocked, "the guest waits with most of the flood unwritten",
                   "%d bytes queued, probe %s", queued, vm->control.pending_id ? "still writing" : "ended");
    hf_json_add_int(phase->measurements, "queued_bytes_when_blocked", queued);
    uint64_t read_since = hf_clock_mono_ms();
    vm->hold_console = false;
    if (hf_vm_run_event(vm, PROBE_TIMEOUT_MS, HF_FLOOD_EVENT_WRITTEN, NULL, err) ||
        hf_vm_wait(vm, PROBE_TIMEOUT_MS, flood_arrived, phase->state, "the whole flood on the console", err))
        return -1;
    hf_json_add_int(phase->measurements, "drain_ms", (int64_t)(hf_clock_mono_ms() - read_since));
    return 0;
}

static int flood_and_exit(struct hf_phase *phase, struct hf_error *err)
{
    struct hf_vm *vm = &phase->vm;
    if (hf_phase_boot(phase, err) || hf_vm_run_begin(vm, PROBE_TIMEOUT_MS, HF_FLOOD_PROBE, probe_args(phase), err) ||
        hf_vm_run_event(vm, PROBE_TIMEOUT_MS, HF_FLOOD_EVENT_BEGINS, NULL, err) ||
        flood_against_late_reader(phase, err))
        return -1;
    /* "none lost at exit": the last words are written, and QEMU ends, while nobody reads the console */
    vm->hold_console = true;
    return hf_vm_run_continue(vm, NULL, err);
}

/* Compares what was kept of the console with what the probe wrote, byte for byte. */
static bool kept_is_exact(const struct hf_phase *phase, const struct console_watch *watch)
{
    char name[64];
    struct hf_pattern pattern;
    snprintf(name, sizeof name, "serial-%u.log", phase->index);
    cleanup_close int fd = openat(phase->run->host.output_dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    cleanup_free uint8_t *kept = malloc(BOUND_BYTES + 1);
    if (fd < 0 || !kept || pread(fd, kept, BOUND_BYTES + 1, 0) != BOUND_BYTES || watch->marker_end == 0)
        return false;
    hf_pattern_init(&pattern, watch->seed, HF_FLOOD_STREAM_FLOOD);
    for (uint64_t at = watch->marker_end; at < BOUND_BYTES; at++)
        if (kept[at] != hf_pattern_next(&pattern))
            return false;
    return watch->marker_end < BOUND_BYTES;
}

static void check_console(struct hf_phase *phase, const struct console_watch *watch)
{
    char expected[96];
    snprintf(expected, sizeof expected, "%d bytes of flood, none wrong", FLOOD_BYTES);
    hf_phase_check(phase, "flood-exact", watch->flood_bytes == FLOOD_BYTES && watch->wrong_bytes == 0, expected,
                   "%llu bytes, %llu wrong (first at %llu)", (unsigned long long)watch->flood_bytes,
                   (unsigned long long)watch->wrong_bytes, (unsigned long long)watch->first_wrong);
    /* "exact bytes before the bound" */
    snprintf(expected, sizeof expected, "exactly the first %d bytes kept, the rest counted", BOUND_BYTES);
    bool exact = kept_is_exact(phase, watch);
    hf_phase_check(phase, "bound-exact",
                   exact && phase->vm.serial_log.stored_bytes == BOUND_BYTES &&
                       phase->vm.serial_log.total_bytes == watch->total_bytes,
                   expected, "%llu kept of %llu, contents %s", (unsigned long long)phase->vm.serial_log.stored_bytes,
                   (unsigned long long)phase->vm.serial_log.total_bytes, exact ? "exact" : "not exact");
    /* "none lost at exit" */
    snprintf(expected, sizeof expected, "%d last bytes and nothing after them", LAST_BYTES);
    hf_phase_check(phase, "last-words", watch->last_bytes == LAST_BYTES && watch->surplus_bytes == 0, expected,
                   "%llu bytes, then %llu more", (unsigned long long)watch->last_bytes,
                   (unsigned long long)watch->surplus_bytes);
}

static int check_after_end(struct hf_phase *phase, struct hf_error *err)
{
    struct hf_vm *vm = &phase->vm;
    struct console_watch *watch = phase->state;
    uint64_t unread_at_end = watch->last_bytes;
    vm->hold_console = false;
    int result = hf_vm_await_end(vm, err);
    hf_phase_check(phase, "last-words-read-late", unread_at_end < LAST_BYTES,
                   "last words still unread when the VMM was gone", "%llu of %d had been read",
                   (unsigned long long)unread_at_end, LAST_BYTES);
    check_console(phase, watch);
    /* "exact exit status" */
    int expected_status = (int)(exit_value(phase->run->options.seed) << 1 | 1);
    char expected[32];
    snprintf(expected, sizeof expected, "%d", expected_status);
    hf_phase_check(phase, "exit-status", vm->report.exited && vm->report.exit_code == expected_status, expected, "%d",
                   vm->report.exited ? vm->report.exit_code : -1);
    return result;
}

const struct hf_phase_plan hf_console_exit_plan = {
    .name = "flood-and-exit",
    .expected_end = HF_VM_END_DEBUG_EXIT,
    .exit_code = -1, /* depends on the seed: checked after the end */
    .processors = 1,
    .devices = {.control = true, .debug_exit = true},
    .prepare = prepare,
    .script = flood_and_exit,
    .after = check_after_end,
};

int hf_scenario_console_exit(struct hf_run *run)
{
    return hf_run_phases(run, &hf_console_exit_plan, 1);
}
