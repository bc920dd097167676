/* Implementation of identity.h. */
#include "server/core/identity.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/process/child.h"
#include "server/core/environment.h"

#include <string.h>

#define QUERY_TIMEOUT_MS   20000
#define QUERY_OUTPUT_LIMIT (64 * 1024)

void hf_identity_cache_init(struct hf_identity_cache *cache)
{
    memset(cache, 0, sizeof *cache);
    pthread_mutex_init(&cache->mutex, NULL);
}

void hf_identity_cache_clear(struct hf_identity_cache *cache)
{
    pthread_mutex_destroy(&cache->mutex);
}

/* Runs a query; *text is its output without the last newline, owned. */
static int query(const char *const *argv, char **text, struct hf_error *err)
{
    char **environment = hf_environment_new(NULL);
    struct hf_child_spec spec = {.argv = argv,
                                 .envp = (const char *const *)environment,
                                 .stdin_fd = HF_CHILD_NULL,
                                 .stdout_fd = HF_CHILD_PIPE,
                                 .stderr_fd = HF_CHILD_NULL,
                                 .extra_fds = {-1, -1, -1, -1}};
    struct hf_child_run_options options = {.stdout_limit = QUERY_OUTPUT_LIMIT,
                                           .stdout_file_fd = -1,
                                           .stderr_file_fd = -1,
                                           .timeout_ms = QUERY_TIMEOUT_MS,
                                           .interrupt_fd = -1};
    struct hf_child_output output = {0};
    int failed = hf_child_run(&spec, &options, &output, err);
    hf_argv_free(environment);
    if (failed)
        return -1;
    bool good = output.report.started && output.report.exited && output.report.exit_code == 0 && !output.timed_out &&
                output.stdout_bytes;
    if (good) {
        char *line = STEAL_PTR(output.stdout_bytes);
        size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\n')
            line[length - 1] = '\0';
        *text = line;
    }
    hf_child_output_clear(&output);
    if (good)
        return 0;
    hf_error_set(err, "identity-unknown", 0, NULL, "%s failed", argv[0]);
    return -1;
}

static int copy_identity(const char *text, char out[65], const char *what, struct hf_error *err)
{
    size_t length = strlen(text);
    if (length == 0 || length > 64 ||
        strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz"
                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ.+~:-_") != length)
        return hf_error_set(err, "identity-unknown", 0, NULL, "%s is not a commit or version of at most 64 characters",
                            what);
    memcpy(out, text, length + 1);
    return 0;
}

static int read_commit(const char *tree, char out[65], struct hf_error *err)
{
    cleanup_free char *text = NULL;
    const char *const argv[] = {"git", "-C", tree, "rev-parse", "--verify", "HEAD", NULL};
    if (query(argv, &text, err) != 0)
        return hf_error_set(
            err, "identity-unknown", 0, NULL,
            "cannot read the commit of %s: expected a git work tree with at least one commit that this user may "
            "read, and git in PATH",
            tree);
    return copy_identity(text, out, "the output of git rev-parse", err);
}

static int read_dirty(const char *tree, bool *dirty, struct hf_error *err)
{
    cleanup_free char *text = NULL;
    const char *const argv[] = {"git", "--no-optional-locks", "-C", tree, "status", "--porcelain", NULL};
    if (query(argv, &text, err) != 0)
        return hf_error_set(err, "identity-unknown", 0, NULL, "git status failed in %s", tree);
    *dirty = text[0] != '\0';
    return 0;
}

static int read_package_version(const char *package, char out[65], struct hf_error *err)
{
    cleanup_free char *text = NULL;
    const char *const argv[] = {"dpkg-query", "-W", "-f=${Version}", package, NULL};
    if (query(argv, &text, err) != 0)
        return hf_error_set(err, "identity-unknown", 0, NULL,
                            "cannot read the version of package %s: is it installed? (apt-get install %s)", package,
                            package);
    return copy_identity(text, out, "the package version", err);
}

static int read_all(const struct hf_profile *profile, const char *source_root, struct hf_identity *identity,
                    struct hf_error *err)
{
    if (read_commit(source_root, identity->commit, err) != 0 || read_dirty(source_root, &identity->dirty, err) != 0)
        return -1;
    if (profile->vmm_identity == HF_VMM_DEBIAN_PACKAGE)
        return read_package_version(profile->vmm_source, identity->vmm_commit, err);
    struct hf_placeholders values = {.source_root = source_root};
    cleanup_free char *tree = hf_placeholder_expand(profile->vmm_source, &values, err);
    return tree ? read_commit(tree, identity->vmm_commit, err) : -1;
}

int hf_identity_read(struct hf_identity_cache *cache, const struct hf_profile *profile, const char *source_root,
                     struct hf_identity *identity, struct hf_error *err)
{
    int failed = 0;
    pthread_mutex_lock(&cache->mutex);
    uint64_t now_ms = hf_clock_mono_ms();
    if (strcmp(cache->profile, profile->name) != 0 || now_ms - cache->read_mono_ms > HF_IDENTITY_CACHE_MS) {
        cache->profile[0] = '\0';
        failed = read_all(profile, source_root, &cache->identity, err);
        if (!failed)
            memcpy(cache->profile, profile->name, sizeof cache->profile);
        cache->read_mono_ms = now_ms;
    }
    if (!failed)
        *identity = cache->identity;
    pthread_mutex_unlock(&cache->mutex);
    return failed;
}
