/*
 * Log lines to stderr: one line per event, `event key=value ...`, with an sd-daemon(3) priority prefix `<N>` when
 * stderr is the journal (JOURNAL_STREAM) and a timestamp otherwise. Values are quoted and escaped; guest bytes, tokens
 * and paths of secrets are never logged (I7). Only programs call this; libraries report through hf_error.
 *
 * Never waits for the reader: lines that stderr cannot take at once are dropped and counted, and the count is logged
 * as log_lines_lost before the next line.
 */
#ifndef HF_COMMON_LOG_H
#define HF_COMMON_LOG_H

#include "common/error.h"

enum hf_log_level { HF_LOG_ERROR = 3, HF_LOG_WARNING = 4, HF_LOG_NOTICE = 5, HF_LOG_INFO = 6, HF_LOG_DEBUG = 7 };

void hf_log_init(const char *program, enum hf_log_level max_level);
/* Pairs of key and value follow, ended by NULL: hf_log(HF_LOG_INFO, "session_started", "run", run_id, NULL). */
void hf_log(enum hf_log_level level, const char *event, ...) __attribute__((sentinel));
void hf_log_error(enum hf_log_level level, const char *event, const struct hf_error *err);

#endif
