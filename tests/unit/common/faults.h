/* A programmable hf_durable_fault_hook for the tests of durable storage. */
#ifndef HF_TESTS_UNIT_COMMON_FAULTS_H
#define HF_TESTS_UNIT_COMMON_FAULTS_H

/* From now on the `nth` (1: the next) call of `operation` fails with `fault`, an errno, or is shortened when `fault` is
 * negative; later ones succeed again, unless `for_ever`. */
void faults_set(const char *operation, int nth, int fault);
void faults_set_for_ever(const char *operation, int nth, int fault);
/* A second fault beside the first. */
void faults_add(const char *operation, int nth, int fault);
void faults_clear(void);
/* How many operations of this name have happened since faults_count_start(). Counting and faults exclude each other. */
void faults_count_start(void);
int faults_count(const char *operation);

#endif
