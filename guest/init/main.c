/*
 * /init of the guest: process 1. Mounts what the agent needs, loads the drivers of the devices that are there, opens
 * the control port, prints the ready marker and becomes the agent. Started by the kernel; stdin, stdout and stderr are
 * the serial console. It never exits: a guest that cannot become ready says why on the console and powers off.
 */
#include "guest/init/agent.h"
#include "guest/init/file.h"
#include "guest/init/modules.h"
#include "guest/init/power.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { PORT_TIMEOUT_MS = 10000 };

static const struct {
    const char *type, *target, *options;
    unsigned long flags;
} mounts[] = {
    {"devtmpfs", "/dev", "mode=0755", MS_NOSUID | MS_NOEXEC},
    {"proc", "/proc", NULL, MS_NOSUID | MS_NOEXEC | MS_NODEV},
    {"sysfs", "/sys", NULL, MS_NOSUID | MS_NOEXEC | MS_NODEV},
    {"tmpfs", "/tmp", "mode=1777", MS_NOSUID | MS_NODEV},
};

static int mount_all(char *why, size_t why_size)
{
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
        if (mount(mounts[i].type, mounts[i].target, mounts[i].type, mounts[i].flags, mounts[i].options) == 0)
            continue;
        snprintf(why, why_size, "cannot mount %s: %s", mounts[i].target, strerror(errno));
        return -1;
    }
    return 0;
}

/* Children are noticed through a descriptor; every other signal is left alone, the kernel does not deliver to process 1
 * what it has no handler for. */
static int watch_children(void)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    return signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(void)
{
    static struct hf_agent agent;
    char why[512] = "";
    if (mount_all(why, sizeof why) == 0 && hf_modules_load_for_devices(why, sizeof why) == 0 &&
        hf_control_open(&agent.control, PORT_TIMEOUT_MS, why, sizeof why) == 0) {
        hf_file_write("/proc/self/oom_score_adj", "-1000");
        agent.child_fd = watch_children();
        dprintf(STDOUT_FILENO, "\n" HF_GUEST_READY_MARKER " " HF_VERSION "\n");
        hf_agent_serve(&agent);
    }
    dprintf(STDERR_FILENO, "holdfast-guest failed: %s\n", why);
    hf_power_perform(HF_POWER_OFF, 0);
    for (;;)
        pause();
}
