/* Implementation of output.h. */
#include "guest/build/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const struct hf_output *output, struct hf_error *err)
{
    return hf_error_set(err, "output-failed", errno, "", "cannot write %s: %s", output->path, strerror(errno));
}

int hf_output_open(struct hf_output *output, const char *path, struct hf_error *err)
{
    output->path = path;
    output->file = NULL;
    int length = snprintf(output->temporary, sizeof output->temporary, "%s.new", path);
    if (length < 0 || (size_t)length >= sizeof output->temporary) {
        errno = ENAMETOOLONG;
        return refuse(output, err);
    }
    output->file = fopen(output->temporary, "we");
    return output->file ? 0 : refuse(output, err);
}

int hf_output_commit(struct hf_output *output, struct hf_error *err)
{
    FILE *file = output->file;
    output->file = NULL;
    int failed = fflush(file) != 0 || ferror(file) || fchmod(fileno(file), 0644) != 0;
    failed |= fclose(file) != 0;
    if (!failed && rename(output->temporary, output->path) == 0)
        return 0;
    refuse(output, err);
    unlink(output->temporary);
    return -1;
}

void hf_output_discard(struct hf_output *output)
{
    if (!output->file)
        return;
    fclose(output->file);
    output->file = NULL;
    unlink(output->temporary);
}

int hf_output_text(const char *path, const char *text, size_t length, struct hf_error *err)
{
    struct hf_output output;
    if (hf_output_open(&output, path, err) != 0)
        return -1;
    fwrite(text, 1, length, output.file);
    return hf_output_commit(&output, err);
}
