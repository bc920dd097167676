/* The precedence of categories as a table; see verdict.h. */
#include "executor/verdict.h"

#include <stddef.h>

struct rule {
    size_t fact; /* offset of a bool in struct verdict_facts */
    bool bad;    /* the value that makes this rule speak */
    enum hf_category category;
};

static const struct rule RULES[] = {
    {offsetof(struct verdict_facts, violated), true, HF_CATEGORY_POLICY_VIOLATION},
    {offsetof(struct verdict_facts, oracle_lost), true, HF_CATEGORY_EXECUTOR_ERROR},
    {offsetof(struct verdict_facts, storage_failed), true, HF_CATEGORY_EXECUTOR_ERROR},
    {offsetof(struct verdict_facts, artifact_changed), true, HF_CATEGORY_EXECUTOR_ERROR},
    {offsetof(struct verdict_facts, started), false, HF_CATEGORY_EXECUTOR_ERROR},
    {offsetof(struct verdict_facts, timed_out), true, HF_CATEGORY_TIMEOUT},
    {offsetof(struct verdict_facts, teardown_complete), false, HF_CATEGORY_TEST_FAILURE},
    {offsetof(struct verdict_facts, returned_zero), false, HF_CATEGORY_TEST_FAILURE},
    {offsetof(struct verdict_facts, reports_acceptable), false, HF_CATEGORY_TEST_FAILURE},
};

enum hf_category verdict_category(const struct verdict_facts *facts)
{
    for (size_t i = 0; i < sizeof RULES / sizeof RULES[0]; i++)
        if (*(const bool *)((const char *)facts + RULES[i].fact) == RULES[i].bad)
            return RULES[i].category;
    return HF_CATEGORY_PASSED;
}

enum hf_category verdict_boot_category(const struct verdict_facts *facts)
{
    enum hf_category category = verdict_category(facts);
    bool known =
        category == HF_CATEGORY_PASSED || category == HF_CATEGORY_TIMEOUT || category == HF_CATEGORY_TEST_FAILURE;
    return known ? category : HF_CATEGORY_AVAILABILITY_FAILURE;
}
