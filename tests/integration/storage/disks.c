/* Implementation of disks.h. */
#include "tests/integration/storage/disks.h"

#include "common/cleanup.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
    char command[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    ck_assert_msg(system(command) == 0, "failed: %s", command);
}

void disks_enter_namespace(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        fprintf(stderr, "this test mounts disks, which needs root: %s\n", strerror(errno));
        exit(EXIT_FAILURE);
    }
}

void disk_mount_memory(const char *directory, unsigned size_kib)
{
    char options[64];
    snprintf(options, sizeof options, "size=%uk,mode=700", size_kib);
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    ck_assert_msg(mount("tmpfs", directory, "tmpfs", 0, options) == 0, "mount: %s", strerror(errno));
}

static int open_filler(const char *directory)
{
    char path[512];
    snprintf(path, sizeof path, "%s/filler", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    return fd;
}

void disk_fill(const char *directory)
{
    static const char block[65536];
    cleanup_close int fd = open_filler(directory);
    for (size_t size = sizeof block; size > 0;) {
        if (write(fd, block, size) <= 0)
            size /= 2; /* down to the last byte */
    }
}

void disk_free(const char *directory)
{
    cleanup_close int fd = open_filler(directory);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
}

void disk_set_read_only(const char *directory, int read_only)
{
    ck_assert_msg(mount("none", directory, NULL, MS_REMOUNT | (read_only ? MS_RDONLY : 0), NULL) == 0,
                  "remounting %s: %s", directory, strerror(errno));
}

void disk_mount_ext4(const char *directory, const char *image, unsigned size_mib)
{
    cleanup_close int fd = open(image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_msg(fd >= 0 && ftruncate(fd, (off_t)size_mib << 20) == 0, "%s: %s", image, strerror(errno));
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    run("mkfs.ext4 -q -F '%s'", image);
    run("mount -o loop,errors=remount-ro '%s' '%s'", image, directory);
}

void disk_break(const char *directory)
{
    char path[256], link[256];
    struct stat status;
    ck_assert_int_eq(stat(directory, &status), 0);
    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(status.st_dev), minor(status.st_dev));
    char *device = realpath(link, NULL);
    ck_assert_ptr_nonnull(device);
    snprintf(path, sizeof path, "/sys/fs/ext4/%s/trigger_fs_error", strrchr(device, '/') + 1);
    free(device);
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0 && write(fd, "injected by a test\n", 19) == 19, "%s: %s", path, strerror(errno));
}

void disk_repair(const char *directory, const char *image)
{
    disk_unmount(directory);
    run("e2fsck -p -f '%s' >/dev/null || [ $? -le 2 ]", image);
    run("mount -o loop,errors=remount-ro '%s' '%s'", image, directory);
}

void disk_unmount(const char *directory)
{
    ck_assert_msg(umount(directory) == 0, "unmounting %s: %s; somebody still has a file open", directory,
                  strerror(errno));
}
