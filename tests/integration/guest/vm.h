/* One QEMU for a test: its console, its control port, and its end. Everything has a deadline; nothing outlives the
 * test. */
#ifndef HF_TESTS_INTEGRATION_GUEST_VM_H
#define HF_TESTS_INTEGRATION_GUEST_VM_H

#include "common/json.h"

#include <check.h>
#include <stdint.h>
#include <sys/types.h>

#define VM_EXTRA_MAX 16

struct vm_spec {
    const char *accelerator; /* "tcg" or "kvm" */
    const char *kernel, *initramfs, *append;
    const char *extra[VM_EXTRA_MAX]; /* further arguments, NULL-terminated */
    bool with_control;
    unsigned memory_mib;
};

struct vm {
    pid_t pid;
    int console_fd, control_fd; /* this end of each, -1 when closed */
    uint64_t started_ms;
    char console[1 << 20];
    size_t console_length;
    char line[1 << 17]; /* control bytes not yet taken */
    size_t line_length;
};

void vm_start(struct vm *vm, const struct vm_spec *spec);
/* Reads the console until it holds `text`; fails the test after timeout_ms. Milliseconds since the start. */
uint64_t vm_wait_console(struct vm *vm, const char *text, unsigned timeout_ms);
/* Reads the console until QEMU ends, and gives its exit status; -signal when a signal ended it. */
int vm_wait_end(struct vm *vm, unsigned timeout_ms);
void vm_send(struct vm *vm, const char *line);
/* The next control line, as JSON, owned by the caller. */
cJSON *vm_receive(struct vm *vm, unsigned timeout_ms);
/* The same as its text, for lines that are no JSON; valid until the next call. */
const char *vm_receive_text(struct vm *vm, unsigned timeout_ms);
cJSON *vm_ask(struct vm *vm, const char *line, unsigned timeout_ms);
void vm_stop(struct vm *vm); /* kills what is left; harmless when nothing was started */

const char *guest_file(const char *name); /* below HF_GUEST_DIR; valid until the fourth call after it */

#endif
