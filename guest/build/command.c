/* Implementation of command.h. */
#include "guest/build/command.h"

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static char *read_all(int fd, size_t max_bytes)
{
    cleanup_free char *bytes = malloc(max_bytes + 1);
    size_t length = 0;
    while (bytes) {
        ssize_t got = read(fd, bytes + length, max_bytes + 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || length + (size_t)got > max_bytes)
            return NULL;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    if (!bytes)
        return NULL;
    if (length > 0 && bytes[length - 1] == '\n')
        length--;
    bytes[length] = '\0';
    return STEAL_PTR(bytes);
}

char *hf_command_output(const char *const *argv, size_t max_bytes, struct hf_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        hf_error_set(err, "command-failed", errno, "", "no pipe for %s: %s", argv[0], strerror(errno));
        return NULL;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t pid;
    int failure = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    cleanup_free char *output = failure ? NULL : read_all(ends[0], max_bytes);
    close(ends[0]);
    int status = -1;
    while (!failure && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (output && status == 0)
        return STEAL_PTR(output);
    hf_error_set(err, "command-failed", failure, "", "%s did not give its answer (%s, status %d)", argv[0],
                 failure ? strerror(failure) : "it failed or printed too much", status);
    return NULL;
}
