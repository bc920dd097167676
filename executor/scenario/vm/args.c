/* QEMU's command line; see args.h. */
#include "executor/scenario/vm/args.h"

#include "guest/protocol.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct hf_vm_args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct hf_vm_args *args, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (args->count >= HF_VM_MAX_ARGS || vasprintf(&args->items[args->count], format, list) < 0)
        abort(); /* the lists below are shorter than HF_VM_MAX_ARGS */
    args->count++;
    va_end(list);
}

const char *hf_vm_backend_name(enum hf_vm_backend backend)
{
    return backend == HF_VM_KVM ? "kvm" : "tcg";
}

static void add_frame(struct hf_vm_args *args, const char *token, const struct hf_vm_machine *machine)
{
    static const char *const fixed[] = {
        "-no-user-config",
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
        "-S",
        "-sandbox",
        "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-d",
        "cpu_reset", /* TCG names a triple fault only here */
    };
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        add(args, "%s", fixed[i]);
    add(args, "-name");
    add(args, "%s", token);
    add(args, "-machine");
    add(args, "q35,usb=off,smbus=off,sata=off");
    add(args, "-accel");
    add(args, "%s", hf_vm_backend_name(machine->backend));
    /* Firmware that does nothing but start a given kernel: faster, and SeaBIOS takes a quarter of a minute where KVM
     * emulates firmware instruction by instruction (guest/README.md). */
    add(args, "-bios");
    add(args, "qboot.rom");
    add(args, "-cpu");
    /* host: QEMU 7.2 aborts where KVM offers IA32_ARCH_CAPABILITIES but refuses its value, as software KVM does */
    add(args, machine->backend == HF_VM_KVM ? "host,arch-capabilities=off" : "qemu64");
    add(args, "-m");
    add(args, "%u", machine->memory_mib);
    add(args, "-smp");
    add(args, "%u", machine->processors);
}

static void add_channels(struct hf_vm_args *args, const struct hf_vm_devices *devices)
{
    add(args, "-chardev");
    add(args, "socket,id=monitor,fd=%d", HF_VM_FD_QMP);
    add(args, "-mon");
    add(args, "chardev=monitor,mode=control");
    add(args, "-chardev");
    add(args, "socket,id=console,fd=%d", HF_VM_FD_SERIAL);
    add(args, "-serial");
    add(args, "chardev:console");
    if (devices->control) {
        add(args, "-device");
        add(args, "virtio-serial-pci,max_ports=2");
        add(args, "-chardev");
        add(args, "socket,id=control,fd=%d", HF_VM_FD_CONTROL);
        add(args, "-device");
        add(args, "virtserialport,id=" HF_VM_CONTROL_PORT_ID ",chardev=control,name=" HF_GUEST_CONTROL_PORT);
    }
}

static void add_devices(struct hf_vm_args *args, const struct hf_vm_devices *devices)
{
    if (devices->debug_exit) {
        add(args, "-device");
        add(args, "isa-debug-exit,iobase=0x%x,iosize=0x04", HF_GUEST_DEBUG_EXIT_PORT);
    }
    if (devices->panic_device) {
        add(args, "-device");
        add(args, "pvpanic-pci");
    }
    if (devices->network) {
        add(args, "-netdev");
        add(args, "dgram,id=net0,local.type=fd,local.str=%d", HF_VM_FD_NETWORK);
        add(args, "-device");
        add(args, "virtio-net-pci,netdev=net0,mac=" HF_VM_GUEST_MAC ",romfile=");
    }
}

static int check_path(const char *what, const char *path, struct hf_error *err)
{
    if (!path || path[0] != '/' || strpbrk(path, ",\n"))
        return hf_error_set(err, "vm-spec-invalid", 0, what,
                            "the path of the %s must be absolute and hold neither a comma nor a newline", what);
    return 0;
}

int hf_vm_args_build(struct hf_vm_args *args, const char *qemu_path, const char *token,
                     const struct hf_vm_machine *machine, struct hf_error *err)
{
    *args = (struct hf_vm_args){0};
    if (check_path("kernel", machine->kernel, err) ||
        (machine->initramfs && check_path("initramfs", machine->initramfs, err)))
        return -1;
    if (machine->processors < 1 || machine->processors > HF_VM_MAX_PROCESSORS || machine->memory_mib < 1)
        return hf_error_set(err, "vm-spec-invalid", 0, "processors", "expected 1 to %d processors, got %u",
                            HF_VM_MAX_PROCESSORS, machine->processors);
    add(args, "%s", qemu_path);
    add_frame(args, token, machine);
    add_channels(args, &machine->devices);
    add_devices(args, &machine->devices);
    add(args, "-kernel");
    add(args, "%s", machine->kernel);
    if (machine->initramfs) {
        add(args, "-initrd");
        add(args, "%s", machine->initramfs);
    }
    add(args, "-append");
    add(args, "%s", machine->append ? machine->append : "");
    return 0;
}

void hf_vm_args_clear(struct hf_vm_args *args)
{
    for (size_t i = 0; i < args->count; i++)
        free(args->items[i]);
    *args = (struct hf_vm_args){0};
}
