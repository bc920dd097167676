/* Implementation of faults.h. Tests set faults only while no worker thread is inside durable storage. */
#include "faults.h"

#include "common/durable.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { MAX_FAULTS = 2, MAX_COUNTED = 12 };

static struct fault {
    const char *operation;
    int nth;
    int fault;
    bool for_ever;
} faults[MAX_FAULTS];

static struct counter {
    char operation[16];
    int count;
} counters[MAX_COUNTED];

static int inject(const char *operation, const char *name)
{
    (void)name;
    int result = 0;
    for (size_t i = 0; i < MAX_FAULTS; i++) { /* all of them count the call, also when an earlier one fires */
        struct fault *fault = &faults[i];
        if (!fault->operation || strcmp(fault->operation, operation) != 0)
            continue;
        fault->nth--;
        if (fault->nth == 0 || (fault->nth < 0 && fault->for_ever))
            result = fault->fault;
    }
    return result;
}

static int count(const char *operation, const char *name)
{
    (void)name;
    for (size_t i = 0; i < MAX_COUNTED; i++) {
        if (counters[i].operation[0] == '\0')
            strncpy(counters[i].operation, operation, sizeof counters[i].operation - 1);
        if (strcmp(counters[i].operation, operation) == 0) {
            counters[i].count++;
            break;
        }
    }
    return 0;
}

void faults_clear(void)
{
    memset(faults, 0, sizeof faults);
    hf_durable_fault_hook = NULL;
}

void faults_set(const char *operation, int nth, int fault)
{
    faults_clear();
    faults[0] = (struct fault){operation, nth, fault, false};
    hf_durable_fault_hook = inject;
}

void faults_set_for_ever(const char *operation, int nth, int fault)
{
    faults_set(operation, nth, fault);
    faults[0].for_ever = true;
}

void faults_add(const char *operation, int nth, int fault)
{
    faults[1] = (struct fault){operation, nth, fault, false};
}

void faults_count_start(void)
{
    memset(counters, 0, sizeof counters);
    hf_durable_fault_hook = count;
}

int faults_count(const char *operation)
{
    for (size_t i = 0; i < MAX_COUNTED; i++) {
        if (strcmp(counters[i].operation, operation) == 0)
            return counters[i].count;
    }
    return 0;
}
