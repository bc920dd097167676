/* Implementation of scratch.h, for the test programs of this directory only. */
#include "scratch.h"

#include "common/cleanup.h"
#include "tests/run_suite.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

void scratch_make(struct scratch *scratch)
{
    const char *parent = getenv("TMPDIR");
    snprintf(scratch->path, sizeof scratch->path, "%s/hf-test-XXXXXX", parent ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(scratch->path));
    scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(scratch->fd, 0);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

void scratch_remove(struct scratch *scratch)
{
    fchmod(scratch->fd, 0700);
    close(scratch->fd);
    ck_assert_int_eq(nftw(scratch->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

char *scratch_read(int dirfd, const char *name, size_t *length)
{
    cleanup_close int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    ck_assert_msg(fd >= 0 && fstat(fd, &status) == 0, "cannot open %s", name);
    char *bytes = malloc((size_t)status.st_size + 1);
    ck_assert_int_eq(read(fd, bytes, (size_t)status.st_size), status.st_size);
    bytes[status.st_size] = '\0';
    if (length)
        *length = (size_t)status.st_size;
    return bytes;
}

void scratch_write(int dirfd, const char *name, const void *bytes, size_t length)
{
    cleanup_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
}

bool scratch_exists(int dirfd, const char *name)
{
    return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

size_t scratch_count(int dirfd)
{
    size_t count = 0;
    cleanup_dir DIR *stream = fdopendir(openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ck_assert_ptr_nonnull(stream);
    for (const struct dirent *entry = readdir(stream); entry; entry = readdir(stream))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    return count;
}

bool scratch_aborts(void (*function)(void *context), void *context)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        function(context);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

double scratch_cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

cJSON *scratch_parse(const char *text)
{
    const struct hf_json_limits limits = {.max_bytes = 4 << 20, .max_depth = HF_JSON_MAX_DEPTH};
    struct hf_error err = {0};
    cJSON *item = hf_json_parse(text, strlen(text), &limits, &err);
    ck_assert_msg(item != NULL, "%s", err.message);
    return item;
}

unsigned scratch_random(unsigned long long *state, unsigned bound)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(*state >> 33) % bound;
}

int scratch_run(const char *suite_name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(suite_name);
    TCase *tcase = tcase_create(suite_name);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
