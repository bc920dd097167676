/*
 * What a program makes sure of before anything else, whatever it was started with. Called by main() first; libraries
 * and holdfast-supervise, which resets signals for its child, do not.
 */
#ifndef HF_COMMON_PROGRAM_H
#define HF_COMMON_PROGRAM_H

#include <stdbool.h>

/*
 * - Descriptors 0, 1 and 2 are occupied, so that no file of ours gets such a number and with it what is printed. One
 * that was closed stays unusable: reads and writes fail with EBADF.
 * - SIGPIPE and SIGXFSZ are ignored: a reader that left, or a file size limit (RLIMIT_FSIZE), is an error of one write
 * and not the end of a program that has summaries to write.
 * - The umask takes nothing from this user and at least writing from others; one that takes more from them stays.
 */
void hf_program_begin(void);

/* False when SIGHUP was ignored by whoever started the program (nohup): then it shall stay so. */
bool hf_program_hears_hangup(void);

#endif
