/*
 * `holdfast-scenario --verify`: is what the scenarios need here, and is it what the provenance documents describe? Runs
 * no guest code. The executor calls it once, before it hashes the artifacts against the same documents.
 */
#ifndef HF_SCENARIO_VERIFY_H
#define HF_SCENARIO_VERIFY_H

#include "common/error.h"

/* Prints one line; 0 when everything is in order, 1 otherwise. */
int hf_verify(const char *qemu_path, const char *guest_dir);

/* The parts, for tests. Codes "verify-kernel", "verify-initramfs", "verify-qemu", "verify-provenance". */
int hf_verify_kernel(int guest_dirfd, struct hf_error *err);
int hf_verify_initramfs(int guest_dirfd, struct hf_error *err);
int hf_verify_qemu(const char *qemu_path, int guest_dirfd, struct hf_error *err);

#endif
