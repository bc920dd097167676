/* What recovery.c and recovery_replay.c share; nobody else includes it. */
#ifndef HF_SERVER_CORE_RECOVERY_INTERNAL_H
#define HF_SERVER_CORE_RECOVERY_INTERNAL_H

#include "server/core/controller_internal.h"
#include "server/core/run_documents.h"
#include "statemachines/campaign.h"
#include "statemachines/executor_session.h"

#define HF_RECOVERY_MAX_CASES 100

/* What the files of one run directory say. */
struct hf_recovered {
    int dirfd;
    struct hf_run_record record;
    char artifact_root[HF_PROTOCOL_MAX_PATH];
    struct hf_sm_instance campaign;
    struct hf_campaign_facts facts;
    struct hf_sm_instance session;
    bool session_started;
    struct hf_run_actions_file actions;
    char completed[HF_RECOVERY_MAX_CASES][HF_IDENTIFIER_SIZE];
    size_t completed_count;
    char failed_case[HF_IDENTIFIER_SIZE]; /* of the last observation that was not passed; "" when none */
    struct hf_error damage;               /* code set: a file could not be read as a whole; reported, not repaired */
};

/* Reads metadata and the three journals, cuts torn tails durably. Damage inside a file is remembered, not fatal. */
void hf_recover_read(struct hf_recovered *run, const char *run_id);

#endif
