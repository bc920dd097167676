/*
 * What the probe "structured-outcome" does in each mode; included by the probe and by
 * executor/scenario/structured_outcome.c. A report travels as the text of the event "report" {"kind", "text"}, so that
 * it can also be something that is no JSON at all.
 *
 *     passed        real work, then its true report, whose outcome is "passed"
 *     test-failure  the same with one check that cannot hold
 *     hang          event "hanging", then nothing, forever
 *     bad-reports   one report of each kind below, then the true one (kind "control")
 *
 * A report: {"schema_version":1,"outcome":"passed"|"test-failure","checks":[{"name","held"}],
 * "teardown":{"files_removed","processes_gone"}}, at most HF_OUTCOME_REPORT_MAX bytes.
 */
#ifndef HF_GUEST_PROBES_STRUCTURED_OUTCOME_H
#define HF_GUEST_PROBES_STRUCTURED_OUTCOME_H

#define HF_OUTCOME_PROBE         "structured-outcome"
#define HF_OUTCOME_EVENT_REPORT  "report"
#define HF_OUTCOME_EVENT_HANGING "hanging"
#define HF_OUTCOME_KIND_TRUE     "true"    /* modes passed and test-failure */
#define HF_OUTCOME_KIND_CONTROL  "control" /* the acceptable one among the bad ones */
#define HF_OUTCOME_REPORT_MAX    4096

#endif
