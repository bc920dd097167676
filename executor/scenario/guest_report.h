/*
 * A structured report as a guest writes it (guest/probes/structured_outcome.h): read strictly, judged, and either taken
 * apart into values of closed types or refused with the reason. Pure.
 */
#ifndef HF_SCENARIO_GUEST_REPORT_H
#define HF_SCENARIO_GUEST_REPORT_H

#include "common/error.h"
#include "common/json.h"

/* Returns the accepted report (owned: only known keys, enumerated or identifier strings, booleans), or NULL. Codes:
 * "report-too-long", "json-invalid", "shape-invalid" (with the field), "report-teardown-false" (with the field),
 * "report-contradicts-itself". */
cJSON *hf_guest_report_parse(const char *text, size_t length, struct hf_error *err);

#endif
