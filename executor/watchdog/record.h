/* Lines of the watchdog's two journals. Both are appended durably; a failed append is the watchdog's own failure. */
#ifndef HF_EXECUTOR_WATCHDOG_RECORD_H
#define HF_EXECUTOR_WATCHDOG_RECORD_H

#include "executor/watchdog/watchdog.h"

/* Checks the host canaries, measures, and appends one line to watchdog-samples.jsonl. */
void watchdog_sample(struct watchdog *watchdog);
/* Takes what waits at the listener, with one access line for each connection. */
void watchdog_take_connections(struct watchdog *watchdog);
void watchdog_close_listener(struct watchdog *watchdog);
/* Writes the access line of a host canary that is no longer intact, once. */
void watchdog_record_host_access(struct watchdog *watchdog);
void watchdog_fail(struct watchdog *watchdog, const struct hf_error *err);

#endif
