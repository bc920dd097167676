/* Clocks. Only shells (server, executor, cli) read them; statemachines/ gets time inside events. */
#ifndef HF_COMMON_CLOCK_H
#define HF_COMMON_CLOCK_H

#include <stdint.h>

uint64_t hf_clock_mono_ms(void);
uint64_t hf_clock_mono_ns(void);
uint64_t hf_clock_wall_ms(void);                          /* since 1970-01-01 UTC */
void hf_clock_format_utc(uint64_t wall_ms, char out[25]); /* 2026-01-31T23:59:59.123Z */

#endif
