/* Between the files of the VM library: vm_start.c, vm_pump.c, vm_ask.c, vm_end.c. */
#ifndef HF_SCENARIO_VM_VM_INTERNAL_H
#define HF_SCENARIO_VM_VM_INTERNAL_H

#include "executor/scenario/vm/vm.h"

/* True when the VMM is gone and nothing is left to read from any of its streams. */
bool hf_vm_drained(const struct hf_vm *vm);

#endif
