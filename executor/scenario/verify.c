/* Prerequisites and provenance of the guest; see verify.h. */
#include "executor/scenario/verify.h"

#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json.h"
#include "common/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PROVENANCE_MAX_BYTES (1u << 20)
#define QEMU_RUN_TIMEOUT_MS  20000
#define KERNEL_HEAD_BYTES    65536 /* the boot header and, behind it, the version string */

/* Field `source.version` of a provenance document of kind debian-package, copied into `version`. */
static int package_version(int guest_dirfd, const char *document, char version[128], struct hf_error *err)
{
    static const struct hf_json_limits limits = {.max_bytes = PROVENANCE_MAX_BYTES, .max_depth = 8};
    size_t length = 0;
    cleanup_free char *text = hf_document_read(guest_dirfd, document, PROVENANCE_MAX_BYTES, &length, err);
    if (!text)
        return hf_error_prefix(err, "provenance document '%s'", document);
    cleanup_json cJSON *root = hf_json_parse(text, length, &limits, err);
    if (!root)
        return hf_error_prefix(err, "provenance document '%s'", document);
    const cJSON *source = hf_json_get(root, "source");
    const char *kind = hf_json_get_string(source, "kind");
    const char *seen = hf_json_get_string(source, "version");
    if (!kind || strcmp(kind, "debian-package") != 0 || !seen || !seen[0] || strlen(seen) >= 128)
        return hf_error_set(
            err, "verify-provenance", 0, document,
            "expected source.kind debian-package with a version in '%s'; build the target 'guest' again", document);
    snprintf(version, 128, "%s", seen);
    return 0;
}

static ssize_t read_head(int guest_dirfd, const char *name, void *bytes, size_t size)
{
    cleanup_close int fd = openat(guest_dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -1 : pread(fd, bytes, size, 0);
}

/* Source: Linux Documentation/x86/boot.rst: boot_flag at 0x1FE, header "HdrS" at 0x202, kernel_version (16 bits, plus
 * 0x200) at 0x20E points to a NUL-terminated version. */
int hf_verify_kernel(int guest_dirfd, struct hf_error *err)
{
    uint8_t head[KERNEL_HEAD_BYTES];
    char version[128];
    ssize_t length = read_head(guest_dirfd, "vmlinuz", head, sizeof head - 1);
    if (length < 0)
        return hf_error_set(err, "verify-kernel", errno, "kernel", "cannot read the kernel 'vmlinuz': %s",
                            strerror(errno));
    head[length] = '\0';
    if (length < 0x250 || head[0x1FE] != 0x55 || head[0x1FF] != 0xAA || memcmp(head + 0x202, "HdrS", 4) != 0)
        return hf_error_set(err, "verify-kernel", 0, "kernel",
                            "expected 'vmlinuz' to be a bzImage, its boot header is not");
    if (package_version(guest_dirfd, "kernel.provenance.json", version, err))
        return -1;
    size_t at = 0x200u + head[0x20E] + 256u * head[0x20F];
    if (at >= (size_t)length || !strstr((const char *)head + at, version))
        return hf_error_set(err, "verify-provenance", 0, "kernel",
                            "expected 'vmlinuz' to be of version %s as its provenance document says, it names another",
                            version);
    return 0;
}

int hf_verify_initramfs(int guest_dirfd, struct hf_error *err)
{
    char magic[6];
    ssize_t length = read_head(guest_dirfd, "initramfs.cpio", magic, sizeof magic);
    if (length < 0)
        return hf_error_set(err, "verify-initramfs", errno, "initramfs", "cannot read 'initramfs.cpio': %s",
                            strerror(errno));
    if (length != sizeof magic || memcmp(magic, "070701", sizeof magic) != 0)
        return hf_error_set(err, "verify-initramfs", 0, "initramfs",
                            "expected 'initramfs.cpio' to be a newc archive, it begins otherwise");
    return 0;
}

/* Runs QEMU with fixed arguments and hands its standard output over. */
static int run_qemu(const char *const argv[], struct hf_child_output *output, struct hf_error *err)
{
    static const char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    const struct hf_child_spec spec = {.argv = argv,
                                       .envp = environment,
                                       .cwd = "/",
                                       .stdin_fd = HF_CHILD_NULL,
                                       .stdout_fd = HF_CHILD_PIPE,
                                       .stderr_fd = HF_CHILD_NULL,
                                       .extra_fds = {-1, -1, -1, -1}};
    const struct hf_child_run_options options = {.stdout_limit = 16384,
                                                 .stdout_file_fd = -1,
                                                 .stderr_file_fd = -1,
                                                 .timeout_ms = QEMU_RUN_TIMEOUT_MS,
                                                 .interrupt_fd = -1};
    if (hf_child_run(&spec, &options, output, err))
        return -1;
    if (!output->report.exited || output->report.exit_code != 0 || !output->stdout_bytes)
        return hf_error_set(err, "verify-qemu", output->report.start_errno, "qemu",
                            "'%s %s' does not run: install qemu-system-x86", argv[0], argv[1]);
    return 0;
}

static int check_accelerator(const char *qemu_path, struct hf_error *err)
{
    const char *const argv[] = {qemu_path, "-accel", "help", NULL};
    struct hf_child_output output = {0};
    int result = run_qemu(argv, &output, err);
    if (result == 0 && !strstr(output.stdout_bytes, "\ntcg\n"))
        result = hf_error_set(err, "verify-qemu", 0, "qemu", "expected QEMU to have the accelerator tcg, it has not");
    hf_child_output_clear(&output);
    return result;
}

int hf_verify_qemu(const char *qemu_path, int guest_dirfd, struct hf_error *err)
{
    const char *const argv[] = {qemu_path, "--version", NULL};
    char version[128], wanted[160];
    struct hf_child_output output = {0};
    if (package_version(guest_dirfd, "qemu.provenance.json", version, err))
        return -1;
    snprintf(wanted, sizeof wanted, "(Debian %s)", version);
    int result = run_qemu(argv, &output, err);
    if (result == 0 && !strstr(output.stdout_bytes, wanted))
        result =
            hf_error_set(err, "verify-provenance", 0, "qemu",
                         "expected QEMU %s as its provenance document says, '%s --version' names another; build the "
                         "target 'guest' again",
                         version, qemu_path);
    hf_child_output_clear(&output);
    return result ? result : check_accelerator(qemu_path, err);
}

int hf_verify(const char *qemu_path, const char *guest_dir)
{
    struct hf_error err = {0};
    cleanup_close int guest_dirfd = open(guest_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (guest_dirfd < 0)
        hf_error_set(&err, "verify-kernel", errno, "guest-dir", "cannot open the guest directory: %s", strerror(errno));
    if (guest_dirfd < 0 || hf_verify_kernel(guest_dirfd, &err) || hf_verify_initramfs(guest_dirfd, &err) ||
        hf_verify_qemu(qemu_path, guest_dirfd, &err)) {
        fprintf(stderr, "holdfast-scenario: %s\n", err.message);
        return 1;
    }
    printf("verified: QEMU with tcg, kernel and initramfs are what their provenance documents describe\n");
    return 0;
}
