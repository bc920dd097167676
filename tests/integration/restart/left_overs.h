/*
 * What a killed controller must not leave on the machine: processes, sockets, temporaries, cgroups. Everything that it
 * starts has the test's private directory on its command line.
 */
#ifndef HF_TESTS_RESTART_LEFT_OVERS_H
#define HF_TESTS_RESTART_LEFT_OVERS_H

#include <sys/types.h>

/* Remembers the supervisors that run below `controller` now; their cgroups are looked for later. */
void left_overs_note_supervisors(pid_t controller);
/* Waits until no process but `spared` (0: none) names the directory on its command line; aborts the test after ten
 * seconds. */
void left_overs_expect_no_process(const char *directory, pid_t spared);
/* No socket, FIFO or temporary below the directory, no cgroup of a noted supervisor that has ended. */
void left_overs_expect_no_file(const char *directory);

#endif
