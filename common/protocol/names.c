/* Names of operations, categories and states as the wire spells them: the only copy. Pure. */
#include "common/protocol/message.h"

#include <stdlib.h>
#include <string.h>

static const char *const operation_names[] = {
    [HF_OP_INITIALIZE] = "initialize", [HF_OP_EXECUTE] = "execute", [HF_OP_FINALIZE] = "finalize",
    [HF_OP_SHUTDOWN] = "shutdown",     [HF_OP_ERROR] = "error",
};

const char *const hf_category_names[] = {
    [HF_CATEGORY_PASSED] = "passed",
    [HF_CATEGORY_TEST_FAILURE] = "test-failure",
    [HF_CATEGORY_TIMEOUT] = "timeout",
    [HF_CATEGORY_EXECUTOR_ERROR] = "executor-error",
    [HF_CATEGORY_POLICY_VIOLATION] = "policy-violation",
    [HF_CATEGORY_AVAILABILITY_FAILURE] = "availability-failure",
    NULL,
};

const char *const hf_finalize_status_names[] = {
    [HF_FINALIZE_PASSED] = "passed",
    [HF_FINALIZE_FAILED] = "failed",
    [HF_FINALIZE_QUARANTINED] = "quarantined",
    NULL,
};

const char *const hf_backend_names[] = {"kvm", "mshv", "whp", "tcg", NULL};
const char *const hf_host_type_names[] = {"baremetal", "virtual-machine", "unspecified", NULL};

const char *hf_operation_name(enum hf_operation operation)
{
    return operation_names[operation];
}

const char *hf_category_name(enum hf_category category)
{
    return hf_category_names[category];
}

enum hf_operation hf_operation_from_name(const char *name)
{
    for (size_t i = 0; name && i < HF_COUNT(operation_names); i++)
        if (strcmp(operation_names[i], name) == 0)
            return (enum hf_operation)i;
    return HF_OP_ERROR;
}

int hf_name_index(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    abort(); /* the shape that was checked before has the same list */
}

struct hf_shape_names hf_dialect_names(const struct hf_dialect *dialect)
{
    return (struct hf_shape_names){.source = dialect->source, .vmm = dialect->vmm, .runtime = dialect->runtime};
}
