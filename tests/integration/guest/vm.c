/* Implementation of vm.h. */
#include "vm.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONTROL_FD = 10 };

const char *guest_file(const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    const char *directory = getenv("HF_GUEST_DIR");
    ck_assert_msg(directory != NULL, "HF_GUEST_DIR has to name the directory of the guest's files");
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void exec_qemu(const struct vm_spec *spec, int console, int control)
{
    char memory[16];
    const char *argv[64] = {"qemu-system-x86_64",
                            "-no-user-config",
                            "-nodefaults",
                            "-display",
                            "none",
                            "-no-reboot",
                            "-machine",
                            "q35",
                            "-bios",
                            "qboot.rom",
                            "-accel",
                            spec->accelerator,
                            "-cpu",
                            strcmp(spec->accelerator, "kvm") == 0 ? "host,arch-capabilities=off" : "qemu64",
                            "-m",
                            memory,
                            "-serial",
                            "stdio",
                            "-device",
                            "isa-debug-exit,iobase=0xf4,iosize=0x04",
                            "-kernel",
                            spec->kernel,
                            "-append",
                            spec->append};
    int count = 24;
    snprintf(memory, sizeof memory, "%u", spec->memory_mib ? spec->memory_mib : 128);
    if (spec->initramfs) {
        argv[count++] = "-initrd";
        argv[count++] = spec->initramfs;
    }
    if (spec->with_control) {
        static const char *const devices[] = {"-device",  "virtio-serial-pci,max_ports=2",
                                              "-chardev", "socket,id=control,fd=10",
                                              "-device",  "virtserialport,chardev=control,name=org.holdfast.control"};
        for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
            argv[count++] = devices[i];
    }
    for (int i = 0; i < VM_EXTRA_MAX && spec->extra[i]; i++)
        argv[count++] = spec->extra[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (dup2(null, STDIN_FILENO) < 0 || dup2(console, STDOUT_FILENO) < 0 ||
        (control >= 0 && dup2(control, CONTROL_FD) < 0))
        _exit(126);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

void vm_start(struct vm *vm, const struct vm_spec *spec)
{
    int console[2], control[2] = {-1, -1};
    memset(vm, 0, sizeof *vm);
    ck_assert_int_eq(pipe2(console, O_CLOEXEC), 0);
    if (spec->with_control)
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
    vm->started_ms = hf_clock_mono_ms();
    vm->pid = fork();
    ck_assert_int_ge(vm->pid, 0);
    if (vm->pid == 0)
        exec_qemu(spec, console[1], control[1]);
    close(console[1]);
    if (control[1] >= 0)
        close(control[1]);
    vm->console_fd = console[0];
    vm->control_fd = control[0];
}

/* Waits for bytes on either descriptor and keeps them. False when the console is at its end. */
static bool pump(struct vm *vm, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = vm->console_fd, .events = POLLIN}, {.fd = vm->control_fd, .events = POLLIN}};
    if (poll(fds, 2, timeout_ms) <= 0)
        return true;
    if (fds[1].revents) {
        const size_t room = sizeof vm->line - 1 - vm->line_length;
        ssize_t got = read(vm->control_fd, vm->line + vm->line_length, room);
        if (got > 0)
            vm->line_length += (size_t)got;
        if (got == 0) {
            close(vm->control_fd);
            vm->control_fd = -1;
        }
    }
    if (!fds[0].revents)
        return true;
    const size_t room = sizeof vm->console - 1 - vm->console_length;
    ck_assert_msg(room > 0, "the console printed more than a test expects");
    ssize_t got = read(vm->console_fd, vm->console + vm->console_length, room);
    if (got > 0)
        vm->console_length += (size_t)got;
    vm->console[vm->console_length] = '\0';
    return got > 0;
}

static int remaining(uint64_t deadline_ms)
{
    uint64_t now = hf_clock_mono_ms();
    return now >= deadline_ms ? 0 : (int)(deadline_ms - now);
}

uint64_t vm_wait_console(struct vm *vm, const char *text, unsigned timeout_ms)
{
    const uint64_t deadline_ms = hf_clock_mono_ms() + timeout_ms;
    while (!strstr(vm->console, text)) {
        ck_assert_msg(remaining(deadline_ms) > 0, "no \"%s\" within %u ms; the console says: %s", text, timeout_ms,
                      vm->console);
        ck_assert_msg(pump(vm, remaining(deadline_ms)), "QEMU ended before \"%s\"; the console says: %s", text,
                      vm->console);
    }
    return hf_clock_mono_ms() - vm->started_ms;
}

int vm_wait_end(struct vm *vm, unsigned timeout_ms)
{
    const uint64_t deadline_ms = hf_clock_mono_ms() + timeout_ms;
    int status;
    while (pump(vm, remaining(deadline_ms)))
        ck_assert_msg(remaining(deadline_ms) > 0, "QEMU runs on after %u ms; the console says: %s", timeout_ms,
                      vm->console);
    ck_assert_int_eq(waitpid(vm->pid, &status, 0), vm->pid);
    vm->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void vm_send(struct vm *vm, const char *line)
{
    size_t length = strlen(line), sent = 0;
    while (sent < length) {
        ssize_t put = send(vm->control_fd, line + sent, length - sent, MSG_NOSIGNAL);
        ck_assert_msg(put > 0, "the control port takes nothing: %s", strerror(errno));
        sent += (size_t)put;
    }
    ck_assert_int_eq(send(vm->control_fd, "\n", 1, MSG_NOSIGNAL), 1);
}

const char *vm_receive_text(struct vm *vm, unsigned timeout_ms)
{
    static char taken[sizeof vm->line];
    const uint64_t deadline_ms = hf_clock_mono_ms() + timeout_ms;
    for (;;) {
        char *newline = memchr(vm->line, '\n', vm->line_length);
        if (!newline) {
            ck_assert_msg(remaining(deadline_ms) > 0, "no answer within %u ms; the console says: %s", timeout_ms,
                          vm->console);
            ck_assert_msg(pump(vm, remaining(deadline_ms)), "QEMU ended instead of an answer: %s", vm->console);
            continue;
        }
        const size_t length = (size_t)(newline - vm->line);
        memcpy(taken, vm->line, length);
        taken[length] = '\0';
        vm->line_length -= length + 1;
        memmove(vm->line, newline + 1, vm->line_length);
        if (length > 0)
            return taken;
    }
}

cJSON *vm_receive(struct vm *vm, unsigned timeout_ms)
{
    const struct hf_json_limits limits = {.max_bytes = sizeof vm->line, .max_depth = 24};
    struct hf_error err = {0};
    const char *text = vm_receive_text(vm, timeout_ms);
    cJSON *answer = hf_json_parse(text, strlen(text), &limits, &err);
    ck_assert_msg(answer != NULL, "%s in %.200s", err.message, text);
    return answer;
}

cJSON *vm_ask(struct vm *vm, const char *line, unsigned timeout_ms)
{
    vm_send(vm, line);
    return vm_receive(vm, timeout_ms);
}

void vm_stop(struct vm *vm)
{
    if (vm->started_ms == 0)
        return;
    if (vm->pid > 0) {
        kill(vm->pid, SIGKILL);
        waitpid(vm->pid, NULL, 0);
    }
    if (vm->control_fd >= 0)
        close(vm->control_fd);
    if (vm->console_fd >= 0)
        close(vm->console_fd);
    memset(vm, 0, sizeof *vm);
}
