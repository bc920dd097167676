/*
 * One holdfastd for a benchmark: started beside the benchmark's own executable with private directories, spoken to over
 * HTTP/1.1 with one connection for each request, stopped and removed. Used by bench_sessions only; any failure ends the
 * program with a sentence (bench_fail()).
 */
#ifndef HF_TESTS_BENCH_SERVICE_H
#define HF_TESTS_BENCH_SERVICE_H

#include "common/json.h"

#include <stddef.h>
#include <sys/types.h>

struct bench_service {
    pid_t pid;
    unsigned port;
    char bin_dir[3900];
    char directory[4000]; /* runs/, state/, wrapper, log */
};

/* `behaviours`: of the scripted executor, which is configured under the name "fake". */
void bench_service_start(struct bench_service *service, const char *behaviours);
/* SIGTERM, wait, removal of the directory. Returns the wait status. */
int bench_service_stop(struct bench_service *service);

/* Sends a request on a new connection and returns it without waiting for the answer. `body` NULL: GET, else POST. */
int bench_service_send(const struct bench_service *service, const char *path, const char *body);
/* Reads the answer to its end and closes. Owned document; *status gets the HTTP status. */
cJSON *bench_service_answer(int fd, int *status);
cJSON *bench_service_get(const struct bench_service *service, const char *path);

#endif
