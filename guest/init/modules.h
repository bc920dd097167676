/*
 * Kernel modules of the initramfs. guest/build/mkmodules wrote HF_MODULES_LIST: one module per line, each after
 * everything it depends on: `NAME DEPENDS ALIAS...`, where DEPENDS is a comma-separated list or "-", and the aliases
 * are the patterns (fnmatch(3)) of the devices that it drives. The files are HF_MODULES_DIR/NAME.ko, as Debian signed
 * them.
 */
#ifndef HF_GUEST_INIT_MODULES_H
#define HF_GUEST_INIT_MODULES_H

#include "guest/init/emit.h"

#define HF_MODULES_DIR  "/lib/modules"
#define HF_MODULES_LIST HF_MODULES_DIR "/list"

/* Loads what the present devices need, bus by bus: a PCI transport brings its virtio device, and that its driver.
 * Nothing is loaded for a device that is not there, which keeps the boot short. -1 with a sentence in `why`. */
int hf_modules_load_for_devices(char *why, size_t why_size);

/* Adds the array of loaded modules. */
void hf_modules_emit_loaded(struct hf_emit *emit, const char *key);

#endif
