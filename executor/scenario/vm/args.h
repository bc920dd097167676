/*
 * QEMU's command line, generated from a closed description: no user configuration, no default devices, only what the
 * scenario needs. Pure: no file is touched. Device facts: guest/README.md.
 */
#ifndef HF_SCENARIO_VM_ARGS_H
#define HF_SCENARIO_VM_ARGS_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF_VM_MAX_ARGS   96
#define HF_VM_TOKEN_SIZE 48 /* name of a VM, unique on the host, found again in its command line */

enum hf_vm_backend { HF_VM_TCG, HF_VM_KVM };

/* Descriptors that the VMM finds open; the order of struct hf_vm's sockets. */
enum { HF_VM_FD_QMP = 3, HF_VM_FD_SERIAL, HF_VM_FD_CONTROL, HF_VM_FD_NETWORK };

struct hf_vm_devices {
    bool control;      /* virtio-serial port HF_GUEST_CONTROL_PORT */
    bool debug_exit;   /* isa-debug-exit at HF_GUEST_DEBUG_EXIT_PORT */
    bool panic_device; /* pvpanic, so that a kernel panic is a QMP event */
    bool network;      /* virtio-net on a datagram socket: one frame, one datagram */
};

struct hf_vm_machine {
    enum hf_vm_backend backend;
    unsigned memory_mib;
    unsigned processors; /* 1..HF_VM_MAX_PROCESSORS */
    const char *kernel;
    const char *initramfs; /* NULL for none */
    const char *append;    /* kernel command line */
    struct hf_vm_devices devices;
};
#define HF_VM_MAX_PROCESSORS  8
#define HF_VM_GUEST_MAC       "52:54:00:48:46:01"
#define HF_VM_CONTROL_PORT_ID "control-port" /* in QMP event VSERPORT_CHANGE */

struct hf_vm_args {
    char *items[HF_VM_MAX_ARGS + 1]; /* owned, NULL-terminated */
    size_t count;
};

/* Codes: "vm-spec-invalid" (a path with a comma or newline, too many processors). Clear also after failure. */
int hf_vm_args_build(struct hf_vm_args *args, const char *qemu_path, const char *token,
                     const struct hf_vm_machine *machine, struct hf_error *err);
void hf_vm_args_clear(struct hf_vm_args *args);

const char *hf_vm_backend_name(enum hf_vm_backend backend); /* "tcg", "kvm" */

#endif
