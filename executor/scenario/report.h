/*
 * outcome.json and the transcript: what a run leaves behind. The schema is documented in executor/scenario/README.md.
 * Holds no guest text: what the guest said is in the logs beside it.
 */
#ifndef HF_SCENARIO_REPORT_H
#define HF_SCENARIO_REPORT_H

#include "executor/scenario/phase.h"

#define HF_OUTCOME_SCHEMA_VERSION 1

cJSON *hf_report_vm(const struct hf_phase *phase); /* one entry of `vms`; owned by the caller */
cJSON *hf_report_teardown(const struct hf_vm_teardown *teardown);
bool hf_report_passed(const struct hf_run *run);
cJSON *hf_report_outcome(const struct hf_run *run);                  /* the whole document; owned by the caller */
int hf_report_write(const struct hf_run *run, struct hf_error *err); /* outcome.json, durably */
/* The console logs of all VMs to `out`, bounded: the beginning and the end of each. */
void hf_report_transcript(const struct hf_run *run, int out_fd);

#endif
