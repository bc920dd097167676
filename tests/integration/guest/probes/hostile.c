/* Probes that misbehave on demand; part of the image that test_guest_agent boots, never of the one that is shipped. */
#include "guest/probes/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Fills what is told to be filled: arguments back, one check per kind. */
static int echo(struct hf_probe *probe)
{
    int64_t number, fallback;
    const char *text;
    bool held;
    if (hf_probe_arg_int(probe, "number", 1, 100, &number) != 0 || hf_probe_arg_string(probe, "text", &text) != 0 ||
        hf_probe_arg_bool_or(probe, "held", true, &held) != 0 ||
        hf_probe_arg_int_or(probe, "absent", 0, 1, 1, &fallback) != 0)
        return -1;
    hf_emit_int(hf_probe_result(probe), "number", number);
    hf_emit_string(hf_probe_result(probe), "text", text);
    hf_probe_check(probe, "told", held, "the host said %s", held ? "held" : "broken");
    return 0;
}
HF_PROBE("echo", echo);

static int no_check(struct hf_probe *probe)
{
    (void)probe;
    return 0;
}
HF_PROBE("no-check", no_check);

static int cannot_run(struct hf_probe *probe)
{
    char why[128];
    if (hf_guest_load_module("no_such_module", why, sizeof why) == 0)
        return 0;
    return hf_probe_cannot_run(probe, "%s", why);
}
HF_PROBE("cannot-run", cannot_run);

static int hang(struct hf_probe *probe)
{
    (void)probe;
    signal(SIGTERM, SIG_IGN);
    while (pause() < 0)
        ;
    return 0;
}
HF_PROBE("hang", hang);

static int crash(struct hf_probe *probe)
{
    (void)probe;
    raise(SIGSEGV);
    return 0;
}
HF_PROBE("crash", crash);

static int leave_at_once(struct hf_probe *probe)
{
    (void)probe;
    _exit(7);
}
HF_PROBE("leave-at-once", leave_at_once);

/* Ten processes in sessions of their own, deaf to everything that can be ignored, one of them stopped. */
static int daemons(struct hf_probe *probe)
{
    for (int i = 0; i < 10; i++) {
        if (fork() != 0)
            continue;
        setsid();
        for (int number = 1; number < 32; number++)
            signal(number, SIG_IGN);
        if (i == 0)
            raise(SIGSTOP);
        for (;;)
            pause();
    }
    usleep(50000);
    hf_probe_check(probe, "left", true, "ten daemons left");
    return 0;
}
HF_PROBE("daemons", daemons);

static int fork_bomb(struct hf_probe *probe)
{
    (void)probe;
    while (fork() >= -1)
        ;
    return 0;
}
HF_PROBE("fork-bomb", fork_bomb);

static int kill_all(struct hf_probe *probe)
{
    static const int numbers[] = {SIGKILL, SIGSTOP, SIGTERM, SIGINT, SIGCHLD, SIGSEGV};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        kill(1, numbers[i]);
    hf_probe_check(probe, "sent", true, "six signals sent to process 1");
    return 0;
}
HF_PROBE("kill-agent", kill_all);

static int event_flood(struct hf_probe *probe)
{
    int64_t events;
    if (hf_probe_arg_int(probe, "events", 1, 1 << 20, &events) != 0)
        return -1;
    for (int64_t i = 0; i < events; i++) {
        hf_emit_int(hf_probe_event_begin(probe, "flood"), "number", i);
        if (hf_probe_event_send(probe) != 0)
            return hf_probe_cannot_run(probe, "event %lld was not taken", (long long)i);
    }
    hf_probe_check(probe, "sent", true, "all events sent");
    return 0;
}
HF_PROBE("event-flood", event_flood);

static int long_result(struct hf_probe *probe)
{
    int64_t length;
    if (hf_probe_arg_int(probe, "length", 1, 1 << 20, &length) != 0)
        return -1;
    char *text = malloc((size_t)length + 1);
    memset(text, 'r', (size_t)length);
    text[length] = '\0';
    hf_emit_string(hf_probe_result(probe), "text", text);
    hf_probe_check(probe, "made", true, "made");
    return 0;
}
HF_PROBE("long-result", long_result);

/* Speaks to the agent past the library: the descriptor is 3. */
static int forge(struct hf_probe *probe)
{
    static const char *const packets[] = {"Hnot json", "E{\"id\":1}\n{\"id\":1}", "R[1]", "Zunknown", "H[1"};
    int64_t which;
    if (hf_probe_arg_int(probe, "which", 0, 4, &which) != 0)
        return -1;
    send(3, packets[which], strlen(packets[which]), 0);
    hf_probe_check(probe, "sent", true, "sent");
    return 0;
}
HF_PROBE("forge", forge);

static int close_agent(struct hf_probe *probe)
{
    (void)probe;
    close(3);
    while (pause() < 0)
        ;
    return 0;
}
HF_PROBE("close-agent", close_agent);

static int memory_hog(struct hf_probe *probe)
{
    (void)probe;
    char *chunk;
    while ((chunk = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
        memset(chunk, 0x5a, 1 << 20);
    return 0;
}
HF_PROBE("memory-hog", memory_hog);

static int stay(struct hf_probe *probe)
{
    int64_t value = 0;
    hf_emit_bool(hf_probe_event_begin(probe, "waiting"), "ready", true);
    if (hf_probe_event_send(probe) != 0)
        return hf_probe_cannot_run(probe, "the announcement was not taken");
    int waited = hf_probe_wait_continue(probe, 20000);
    if (waited != 0)
        return hf_probe_cannot_run(probe, "no continue: %d", waited);
    if (hf_probe_arg_int(probe, "value", 1, 9, &value) != 0)
        return -1;
    hf_emit_int(hf_probe_result(probe), "value", value);
    hf_probe_check(probe, "continued", true, "continued");
    return 0;
}
HF_PROBE("stay", stay);

static int steal_port(struct hf_probe *probe)
{
    static const char *const paths[] = {"/dev/vport0p1", "/dev/vport1p1"};
    int opened = 0;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        int fd = open(paths[i], O_RDWR | O_NONBLOCK);
        opened += fd >= 0;
        if (fd >= 0)
            close(fd);
    }
    hf_probe_check(probe, "busy", opened == 0, "%d ports could be opened a second time", opened);
    return 0;
}
HF_PROBE("steal-port", steal_port);
