/* QEMU's command line: only what was asked for, and nothing that the host's configuration could add. */
#include "executor/scenario/vm/args.h"
#include "tests/unit/scenario/suite.h"

#include <string.h>

static struct hf_vm_machine machine = {
    .backend = HF_VM_TCG, .memory_mib = 256, .processors = 2, .kernel = "/k", .initramfs = "/i", .append = "quiet"};

/* The argument after `option`, or NULL. */
static const char *value_of(const struct hf_vm_args *args, const char *option)
{
    for (size_t i = 0; i + 1 < args->count; i++)
        if (strcmp(args->items[i], option) == 0)
            return args->items[i + 1];
    return NULL;
}

static bool mentions(const struct hf_vm_args *args, const char *text)
{
    for (size_t i = 0; i < args->count; i++)
        if (strstr(args->items[i], text))
            return true;
    return false;
}

START_TEST(a_plain_machine_has_no_device)
{
    struct hf_vm_args args;
    ck_assert_int_eq(hf_vm_args_build(&args, "/q", "token", &machine, NULL), 0);
    ck_assert_ptr_null(value_of(&args, "-device"));
    ck_assert_ptr_null(value_of(&args, "-netdev"));
    ck_assert(mentions(&args, "-nodefaults") && mentions(&args, "-no-user-config") && mentions(&args, "-S"));
    ck_assert_str_eq(value_of(&args, "-accel"), "tcg");
    ck_assert_str_eq(value_of(&args, "-smp"), "2");
    ck_assert_str_eq(value_of(&args, "-m"), "256");
    ck_assert_str_eq(value_of(&args, "-name"), "token");
    ck_assert_str_eq(value_of(&args, "-append"), "quiet");
    ck_assert_ptr_null(args.items[args.count]);
    hf_vm_args_clear(&args);
}
END_TEST

START_TEST(each_device_is_there_exactly_when_asked_for)
{
    static const struct {
        struct hf_vm_devices devices;
        const char *mark;
    } rows[] = {{{.control = true}, "name=org.holdfast.control"},
                {{.debug_exit = true}, "isa-debug-exit,iobase=0xf4"},
                {{.panic_device = true}, "pvpanic"},
                {{.network = true}, "virtio-net-pci"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hf_vm_machine with = machine;
        struct hf_vm_args args;
        with.devices = rows[i].devices;
        ck_assert_int_eq(hf_vm_args_build(&args, "/q", "token", &with, NULL), 0);
        for (size_t other = 0; other < sizeof rows / sizeof rows[0]; other++)
            ck_assert_int_eq(mentions(&args, rows[other].mark), other == i);
        hf_vm_args_clear(&args);
    }
}
END_TEST

START_TEST(kvm_is_kvm_alone)
{
    struct hf_vm_machine with = machine;
    struct hf_vm_args args;
    with.backend = HF_VM_KVM;
    ck_assert_int_eq(hf_vm_args_build(&args, "/q", "token", &with, NULL), 0);
    ck_assert_str_eq(value_of(&args, "-accel"), "kvm");
    ck_assert(!mentions(&args, "tcg"));
    hf_vm_args_clear(&args);
}
END_TEST

START_TEST(values_that_could_add_options_are_refused)
{
    static const char *const paths[] = {"relative", "/with,comma", "/with\nnewline", ""};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct hf_vm_machine with = machine;
        struct hf_vm_args args;
        struct hf_error err = {0};
        with.kernel = paths[i];
        ck_assert_int_eq(hf_vm_args_build(&args, "/q", "token", &with, &err), -1);
        ck_assert_str_eq(err.code, "vm-spec-invalid");
        ck_assert_str_eq(err.field, "kernel");
        hf_vm_args_clear(&args);
    }
}
END_TEST

START_TEST(processor_counts_are_bounded)
{
    static const unsigned counts[] = {0, HF_VM_MAX_PROCESSORS + 1};
    for (size_t i = 0; i < 2; i++) {
        struct hf_vm_machine with = machine;
        struct hf_vm_args args;
        struct hf_error err = {0};
        with.processors = counts[i];
        ck_assert_int_eq(hf_vm_args_build(&args, "/q", "token", &with, &err), -1);
        ck_assert_str_eq(err.field, "processors");
        hf_vm_args_clear(&args);
    }
}
END_TEST

TCase *args_case(void)
{
    TCase *tcase = tcase_create("args");
    tcase_add_test(tcase, a_plain_machine_has_no_device);
    tcase_add_test(tcase, each_device_is_there_exactly_when_asked_for);
    tcase_add_test(tcase, kvm_is_kvm_alone);
    tcase_add_test(tcase, values_that_could_add_options_are_refused);
    tcase_add_test(tcase, processor_counts_are_bounded);
    return tcase;
}
