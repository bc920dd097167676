/*
 * Small disks for tests, mounted in a mount namespace of the test program: nothing of them is left when it ends,
 * however it ends. Needs root. Any failure aborts the test.
 */
#ifndef HF_TESTS_STORAGE_DISKS_H
#define HF_TESTS_STORAGE_DISKS_H

/* Once, before anything is started that shall see the disks. */
void disks_enter_namespace(void);

/* A tmpfs of so many KiB on the directory, which is created. */
void disk_mount_memory(const char *directory, unsigned size_kib);
/* Uses up the last byte, through a file "filler"; disk_free() gives it back. */
void disk_fill(const char *directory);
void disk_free(const char *directory);
/* Refused by the kernel while a file is open for writing. */
void disk_set_read_only(const char *directory, int read_only);

/* ext4 in a file below `image`, mounted with errors=remount-ro. */
void disk_mount_ext4(const char *directory, const char *image, unsigned size_mib);
/* An error of the file system, as a bad block would cause it: the kernel makes the disk read-only at once, whoever
 * writes. */
void disk_break(const char *directory);
/* Unmounts, repairs and mounts again. */
void disk_repair(const char *directory, const char *image);
void disk_unmount(const char *directory);

#endif
