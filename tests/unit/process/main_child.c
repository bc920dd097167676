/*
 * Runs the promises of common/process/child.h in one of three settings (first argument, none: as we are).
 *   without-cgroup   the cgroup2 mounts are read-only in a mount namespace of our own
 *   unprivileged     as user 65534, who may not write the cgroup either
 */
#include "harness.h"
#include "tests/run_suite.h"

#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SKIPPED 77

static int make_cgroups_read_only(void)
{
    char line[4096], point[1024];
    FILE *mounts = NULL;

    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        !(mounts = fopen("/proc/self/mountinfo", "re")))
        return -1;
    int result = 0;
    while (fgets(line, sizeof line, mounts)) {
        if (strstr(line, " - cgroup2 ") && sscanf(line, "%*s %*s %*s %*s %1023s", point) == 1 &&
            mount(NULL, point, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
            result = -1;
    }
    fclose(mounts);
    return result;
}

static int drop_privileges(void)
{
    if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
        return -1;
    return prctl(PR_SET_DUMPABLE, 1); /* /proc/self is ours again */
}

static int enter(const char *setting)
{
    if (strcmp(setting, "without-cgroup") == 0) {
        harness_mode = HARNESS_WITHOUT_CGROUP;
        return make_cgroups_read_only();
    }
    if (strcmp(setting, "unprivileged") == 0) {
        harness_mode = HARNESS_UNPRIVILEGED;
        return drop_privileges();
    }
    fprintf(stderr, "expected without-cgroup, unprivileged or nothing\n");
    exit(64);
}

int main(int argc, char **argv)
{
    /* A shell may hand down limits that would make the bombs fail to explode. */
    struct rlimit files = {.rlim_cur = 1024, .rlim_max = 1024};
    setrlimit(RLIMIT_NOFILE, &files);
    if (argc > 1 && enter(argv[1]) < 0) {
        perror("skipped: this setting can only be reached as root");
        return SKIPPED;
    }
    Suite *suite = suite_create("process/child");
    suite_add_tcase(suite, case_end());
    suite_add_tcase(suite, case_teardown());
    suite_add_tcase(suite, case_loss());
    suite_add_tcase(suite, case_run());
    return run_suite(suite);
}
