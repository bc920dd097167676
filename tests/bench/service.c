/* Implementation of service.h. */
#include "service.h"

#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20, ANSWER_TIMEOUT_MS = 60000 };

static void find_programs(struct bench_service *service)
{
    ssize_t length = readlink("/proc/self/exe", service->bin_dir, sizeof service->bin_dir - 1);
    char *slash = length > 0 ? memrchr(service->bin_dir, '/', (size_t)length) : NULL;
    if (!slash)
        bench_fail("cannot find this program's own directory", NULL);
    *slash = '\0';
}

static void make_directory(struct bench_service *service, const char *behaviours)
{
    char path[4100];
    const char *parent = getenv("TMPDIR");
    snprintf(service->directory, sizeof service->directory, "%s/hf-bench-XXXXXX", parent ? parent : "/var/tmp");
    if (!mkdtemp(service->directory))
        bench_fail("cannot create a scratch directory; set TMPDIR to a directory that is writable", NULL);
    snprintf(path, sizeof path, "%s/wrapper", service->directory);
    FILE *script = fopen(path, "w");
    if (!script || fchmod(fileno(script), 0700) < 0)
        bench_fail("cannot write the wrapper script", NULL);
    fprintf(script, "#!/bin/sh\nexec '%s/fake-executor' '%s' '%s'\n", service->bin_dir, behaviours, service->directory);
    if (fclose(script) != 0)
        bench_fail("cannot write the wrapper script", NULL);
}

static _Noreturn void run_server(const struct bench_service *service, int output_fd)
{
    char program[4096], runs[4096], state[4096], executor[4200], log[4096];
    snprintf(program, sizeof program, "%s/holdfastd", service->bin_dir);
    snprintf(runs, sizeof runs, "%s/runs", service->directory);
    snprintf(state, sizeof state, "%s/state", service->directory);
    snprintf(log, sizeof log, "%s/log", service->directory);
    snprintf(executor, sizeof executor, "fake=%s/wrapper", service->directory);
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(output_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    execl(program, program, "--listen", "127.0.0.1:0", "--runs-dir", runs, "--state-dir", state, "--executor", executor,
          (char *)NULL);
    _exit(127);
}

void bench_service_start(struct bench_service *service, const char *behaviours)
{
    int ends[2];
    find_programs(service);
    make_directory(service, behaviours);
    if (pipe2(ends, O_CLOEXEC) < 0 || (service->pid = fork()) < 0)
        bench_fail("cannot start holdfastd", NULL);
    if (service->pid == 0)
        run_server(service, ends[1]);
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    if (!output || fscanf(output, "holdfastd listens on port %u", &service->port) != 1)
        bench_fail("holdfastd did not start; its log is in the scratch directory", NULL);
    fclose(output);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

int bench_service_stop(struct bench_service *service)
{
    int status = -1;
    if (kill(service->pid, SIGTERM) < 0 || waitpid(service->pid, &status, 0) != service->pid)
        bench_fail("holdfastd was not there any more", NULL);
    nftw(service->directory, remove_entry, 32, FTW_DEPTH | FTW_PHYS);
    return status;
}

int bench_service_send(const struct bench_service *service, const char *path, const char *body)
{
    char request[4096];
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)service->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int length = snprintf(request, sizeof request,
                          "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                          body ? "POST" : "GET", path, service->port, body ? strlen(body) : 0, body ? body : "");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) < 0 ||
        send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        bench_fail(strerror(errno), NULL);
    return fd;
}

cJSON *bench_service_answer(int fd, int *status)
{
    const struct hf_json_limits limits = {.max_bytes = ANSWER_MAX, .max_depth = 16};
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    struct hf_error err = {0};
    size_t used = 0;
    ssize_t count = 1;
    char *answer = malloc(ANSWER_MAX + 1);
    if (!answer)
        bench_fail("out of memory", NULL);
    while (count > 0 && used < ANSWER_MAX && poll(&ready, 1, ANSWER_TIMEOUT_MS) == 1) {
        count = recv(fd, answer + used, ANSWER_MAX - used, 0);
        used += count > 0 ? (size_t)count : 0;
    }
    answer[used] = '\0';
    close(fd);
    const char *body = strstr(answer, "\r\n\r\n");
    if (count != 0 || !body || sscanf(answer, "HTTP/1.%*d %d", status) != 1)
        bench_fail("holdfastd gave no whole answer", NULL);
    cJSON *document = hf_json_parse(body + 4, strlen(body + 4), &limits, &err);
    free(answer);
    if (!document)
        bench_fail("holdfastd's answer is not JSON", &err);
    return document;
}

cJSON *bench_service_get(const struct bench_service *service, const char *path)
{
    int status;
    cJSON *document = bench_service_answer(bench_service_send(service, path, NULL), &status);
    if (status != 200)
        bench_fail(path, NULL);
    return document;
}
