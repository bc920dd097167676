/*
 * Bulk digest: hf_sha256_file() beside `openssl dgst -sha256` on one file of 256 MiB in the page cache, in turns. The
 * ratio is openssl's median time divided by ours; above 1 means faster than openssl.
 */
#include "bench.h"
#include "common/clock.h"
#include "common/digest.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_BYTES (256U << 20)
#define TARGET     0.9

static void make_file(const struct bench_scratch *scratch)
{
    static uint64_t block[1 << 17]; /* 1 MiB */
    uint64_t state = 1;
    int fd = openat(scratch->fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (size_t written = 0; written < FILE_BYTES; written += sizeof block) {
        for (size_t i = 0; i < sizeof block / sizeof block[0]; i++)
            block[i] = state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            bench_fail("cannot write the file to hash", NULL);
    }
    if (fsync(fd) < 0) /* no write-back during the measurement */
        bench_fail("cannot write the file to hash", NULL);
    close(fd);
}

static uint64_t time_holdfast(const char *path, char hex[HF_SHA256_HEX_SIZE])
{
    struct hf_error err = {0};
    uint64_t start_ns = hf_clock_mono_ns();
    if (hf_sha256_file(path, FILE_BYTES, hex, NULL, &err) < 0)
        bench_fail("hf_sha256_file", &err);
    return hf_clock_mono_ns() - start_ns;
}

static uint64_t time_openssl(char *path, char hex[HF_SHA256_HEX_SIZE])
{
    extern char **environ;
    char *const arguments[] = {"openssl", "dgst", "-sha256", "-r", path, NULL};
    posix_spawn_file_actions_t actions;
    int output[2], status;
    pid_t child;
    if (pipe2(output, O_CLOEXEC) < 0)
        bench_fail("cannot create a pipe", NULL);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    uint64_t start_ns = hf_clock_mono_ns();
    if (posix_spawnp(&child, "openssl", &actions, NULL, arguments, environ) != 0)
        bench_fail("cannot run openssl; install it", NULL);
    close(output[1]);
    ssize_t got = read(output[0], hex, HF_SHA256_HEX_SIZE - 1);
    if (waitpid(child, &status, 0) != child || status != 0 || got != HF_SHA256_HEX_SIZE - 1)
        bench_fail("openssl dgst failed", NULL);
    uint64_t used_ns = hf_clock_mono_ns() - start_ns;
    hex[got] = '\0';
    close(output[0]);
    posix_spawn_file_actions_destroy(&actions);
    return used_ns;
}

int main(void)
{
    static const char *const files[] = {"file", NULL};
    uint64_t ours_ns[BENCH_ROUNDS], openssl_ns[BENCH_ROUNDS];
    char path[4096], ours[HF_SHA256_HEX_SIZE], theirs[HF_SHA256_HEX_SIZE];
    struct bench_scratch scratch;
    bench_scratch_make(&scratch);
    make_file(&scratch);
    snprintf(path, sizeof path, "%s/file", scratch.path);
    time_holdfast(path, ours);
    time_openssl(path, theirs);
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        ours_ns[round] = time_holdfast(path, ours);
        openssl_ns[round] = time_openssl(path, theirs);
    }
    bench_scratch_remove(&scratch, files);
    if (strcmp(ours, theirs) != 0)
        bench_fail("the two digests differ", NULL);
    uint64_t ours_median = bench_median(ours_ns), openssl_median = bench_median(openssl_ns);
    cJSON *report = hf_json_new_object();
    hf_json_add_string(report, "benchmark", "bulk-digest");
    hf_json_add_int(report, "file_bytes", FILE_BYTES);
    hf_json_add_int(report, "rounds", BENCH_ROUNDS);
    hf_json_add_int(report, "holdfast_ns", (int64_t)ours_median);
    hf_json_add_int(report, "openssl_ns", (int64_t)openssl_median);
    bench_add_ratio(report, "holdfast_mb_per_s", FILE_BYTES / 1e6 / ((double)ours_median / 1e9));
    return bench_report(report, (double)openssl_median / (double)ours_median, TARGET);
}
