/* The table of VM ends: each end from its own evidence, and no end from evidence that contradicts itself. */
#include "executor/scenario/vm/classify.h"
#include "tests/unit/scenario/suite.h"

#include <signal.h>
#include <string.h>

/* Evidence of a guest that ran and ended by itself with status 0; rows below override what differs. */
#define RAN .resumed = true, .exited = true

static const struct {
    const char *what;
    struct hf_vm_evidence evidence;
    enum hf_vm_end end;
} rows[] = {
    {"poweroff", {RAN, .shutdown = HF_VM_SHUTDOWN_GUEST_SHUTDOWN}, HF_VM_END_POWEROFF},
    {"reset", {RAN, .shutdown = HF_VM_SHUTDOWN_GUEST_RESET}, HF_VM_END_RESET},
    {"triple fault", {RAN, .shutdown = HF_VM_SHUTDOWN_GUEST_RESET, .triple_fault = true}, HF_VM_END_TRIPLE_FAULT},
    {"panic", {RAN, .shutdown = HF_VM_SHUTDOWN_GUEST_PANIC, .guest_panicked = true}, HF_VM_END_PANIC},
    {"exit 33", {RAN, .exit_code = 33}, HF_VM_END_DEBUG_EXIT},
    {"exit 255", {RAN, .exit_code = 255}, HF_VM_END_DEBUG_EXIT},
    {"killed", {.resumed = true, .term_signal = SIGKILL}, HF_VM_END_KILLED},
    {"crashed", {.resumed = true, .term_signal = SIGSEGV}, HF_VM_END_SIGNALLED},
    {"aborted at start", {.term_signal = SIGABRT}, HF_VM_END_SIGNALLED},
    {"refused", {.exited = true, .exit_code = 1}, HF_VM_END_NEVER_RAN},
    {"timeout", {.resumed = true, .stop = HF_VM_STOP_TIMEOUT, .term_signal = SIGKILL}, HF_VM_END_TIMEOUT},
    {"stopped", {.resumed = true, .stop = HF_VM_STOP_WANTED, .term_signal = SIGKILL}, HF_VM_END_STOPPED},
    {"interrupted", {.resumed = true, .stop = HF_VM_STOP_INTERRUPT, .term_signal = SIGKILL}, HF_VM_END_INTERRUPTED},
    {"internal error",
     {.resumed = true, .internal_error = true, .stop = HF_VM_STOP_TIMEOUT, .term_signal = SIGKILL},
     HF_VM_END_INTERNAL_ERROR},

    {"status 1 after running", {RAN, .exit_code = 1}, HF_VM_END_UNKNOWN},
    {"even status", {RAN, .exit_code = 34}, HF_VM_END_UNKNOWN},
    {"status 0 without a word", {RAN}, HF_VM_END_UNKNOWN},
    {"poweroff with status 33", {RAN, .exit_code = 33, .shutdown = HF_VM_SHUTDOWN_GUEST_SHUTDOWN}, HF_VM_END_UNKNOWN},
    {"panic reported, then poweroff",
     {RAN, .shutdown = HF_VM_SHUTDOWN_GUEST_SHUTDOWN, .guest_panicked = true},
     HF_VM_END_UNKNOWN},
    {"panic reason without report", {RAN, .shutdown = HF_VM_SHUTDOWN_GUEST_PANIC}, HF_VM_END_UNKNOWN},
    {"triple fault, then poweroff",
     {RAN, .shutdown = HF_VM_SHUTDOWN_GUEST_SHUTDOWN, .triple_fault = true},
     HF_VM_END_UNKNOWN},
    {"two reasons", {RAN, .shutdown = HF_VM_SHUTDOWN_OTHER}, HF_VM_END_UNKNOWN},
    {"killed after a poweroff",
     {.resumed = true, .term_signal = SIGKILL, .shutdown = HF_VM_SHUTDOWN_GUEST_SHUTDOWN},
     HF_VM_END_SIGNALLED},
    {"no end at all", {.resumed = true}, HF_VM_END_UNKNOWN},
};

START_TEST(evidence_gives_its_end)
{
    ck_assert_msg(hf_vm_classify(&rows[_i].evidence) == rows[_i].end, "%s: expected %s, got %s", rows[_i].what,
                  hf_vm_end_name(rows[_i].end), hf_vm_end_name(hf_vm_classify(&rows[_i].evidence)));
}
END_TEST

START_TEST(every_end_can_be_reached)
{
    for (int end = 0; end < HF_VM_END_COUNT; end++) {
        bool reached = false;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            reached |= (int)hf_vm_classify(&rows[i].evidence) == end;
        ck_assert_msg(reached, "%s is never the answer", hf_vm_end_name((enum hf_vm_end)end));
    }
}
END_TEST

START_TEST(names_are_distinct)
{
    for (int a = 0; a < HF_VM_END_COUNT; a++)
        for (int b = 0; b < a; b++)
            ck_assert_str_ne(hf_vm_end_name((enum hf_vm_end)a), hf_vm_end_name((enum hf_vm_end)b));
}
END_TEST

START_TEST(a_guest_that_ended_itself_is_never_called_stopped)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].evidence.stop == HF_VM_STOP_NONE && !rows[i].evidence.internal_error) {
            enum hf_vm_end end = hf_vm_classify(&rows[i].evidence);
            ck_assert(end != HF_VM_END_STOPPED && end != HF_VM_END_TIMEOUT && end != HF_VM_END_INTERRUPTED);
        }
}
END_TEST

TCase *classify_case(void)
{
    TCase *tcase = tcase_create("classify");
    tcase_add_loop_test(tcase, evidence_gives_its_end, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(tcase, every_end_can_be_reached);
    tcase_add_test(tcase, names_are_distinct);
    tcase_add_test(tcase, a_guest_that_ended_itself_is_never_called_stopped);
    return tcase;
}
