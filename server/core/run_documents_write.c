/* Writes the last documents of a run, also onto a disk that is full: see hf_run_documents_write() in run_documents.h.
 */
#include "server/core/run_documents.h"

#include "common/cleanup.h"
#include "common/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int hf_run_reserve_make(int dirfd, struct hf_error *err)
{
    cleanup_close int fd = openat(dirfd, HF_RUN_RESERVE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int failed = fd < 0 ? errno : posix_fallocate(fd, 0, HF_RUN_RESERVE_BYTES);
    /* A file system without fallocate is no reason to refuse a campaign; a full one is. */
    if (failed == 0 || failed == EOPNOTSUPP || failed == EINVAL)
        return 0;
    return hf_error_set(err, "storage-failed", failed, NULL,
                        "cannot reserve %d bytes in the run directory: %s; free space on the disk that holds the runs, "
                        "or repair it",
                        HF_RUN_RESERVE_BYTES, strerrordesc_np(failed));
}

void hf_run_reserve_release(int dirfd)
{
    unlinkat(dirfd, HF_RUN_RESERVE_NAME, 0);
}

static int write_all(const struct hf_run_documents *documents, struct hf_error *err)
{
    const struct {
        const char *name;
        const char *bytes;
        size_t length;
    } files[] = {
        {"replay-manifest.json", documents->manifest, documents->manifest_length},
        {"summary.json", documents->summary, documents->summary_length},
        {"public-summary.json", documents->public_summary, documents->public_summary_length},
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (hf_document_write(documents->dirfd, files[i].name, files[i].bytes, files[i].length, failed ? NULL : err) !=
            0)
            failed = -1;
    return failed;
}

int hf_run_documents_write(const struct hf_run_documents *documents, struct hf_error *err)
{
    struct hf_error first = {0};
    int failed = write_all(documents, &first);
    hf_run_reserve_release(documents->dirfd);
    if (failed)
        failed = write_all(documents, err);
    return failed;
}

void hf_run_documents_free(struct hf_run_documents *documents)
{
    if (!documents)
        return;
    free(documents->manifest);
    free(documents->summary);
    free(documents->public_summary);
    free(documents);
}
