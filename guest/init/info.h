/* What the agent tells about its guest: members of the answers to "ping" and "info". */
#ifndef HF_GUEST_INIT_INFO_H
#define HF_GUEST_INIT_INFO_H

#include "guest/init/emit.h"

void hf_info_emit_ping(struct hf_emit *emit);
void hf_info_emit(struct hf_emit *emit);

#endif
