/* Implementation of power.h. */
#include "guest/init/power.h"

#include "guest/init/file.h"
#include "guest/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <sys/reboot.h>
#include <unistd.h>

/* With this type an emergency restart empties the IDT and raises int3 (arch/x86/kernel/reboot.c, BOOT_TRIPLE); the file
 * is there since 5.11. */
#define REBOOT_TYPE   "/sys/kernel/reboot/type"
#define SYSRQ_TRIGGER "/proc/sysrq-trigger"

static int refuse(char *why, size_t why_size, const char *what)
{
    snprintf(why, why_size, "%s: %s", what, strerror(errno));
    return -1;
}

int hf_power_prepare(enum hf_power_end end, char *why, size_t why_size)
{
    if (end == HF_POWER_TRIPLE_FAULT && hf_file_write(REBOOT_TYPE, "triple") != 0)
        return refuse(why, why_size, "cannot choose the triple fault in " REBOOT_TYPE);
    if ((end == HF_POWER_TRIPLE_FAULT || end == HF_POWER_PANIC) && access(SYSRQ_TRIGGER, W_OK) != 0)
        return refuse(why, why_size, "cannot write " SYSRQ_TRIGGER);
    if (end == HF_POWER_EXIT && ioperm(HF_GUEST_DEBUG_EXIT_PORT, 1, 1) != 0)
        return refuse(why, why_size, "no access to the debug-exit port");
    return 0;
}

void hf_power_perform(enum hf_power_end end, uint8_t value)
{
    sync();
    switch (end) {
    case HF_POWER_OFF:
        reboot(RB_POWER_OFF);
        break;
    case HF_POWER_REBOOT:
        reboot(RB_AUTOBOOT);
        break;
    case HF_POWER_PANIC:
        hf_file_write(SYSRQ_TRIGGER, "c");
        break;
    case HF_POWER_TRIPLE_FAULT:
        hf_file_write(SYSRQ_TRIGGER, "b");
        break;
    case HF_POWER_EXIT:
        outb(value, HF_GUEST_DEBUG_EXIT_PORT);
        break;
    }
}
