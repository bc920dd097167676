/* The protocol loop of one executor process. Called by main.c once. */
#ifndef HF_EXECUTOR_SESSION_H
#define HF_EXECUTOR_SESSION_H

#include "executor/executor.h"

/* Serves requests until the session is over. Returns the process's exit status. */
int session_serve(struct executor *executor);

#endif
