/* Requests from hostile bytes: whatever is accepted is rebuilt to a line that is accepted and rebuilt to itself. */
#include "common/protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hf_dialect dialect = {
    .source = "holdfast", .vmm = "qemu", .runtime = "libc", .artifact_names = {"kernel"}, .artifact_count = 1};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_request request, again;
    struct hf_error err = {0};
    if (hf_request_parse((const char *)data, size, &dialect, &request, &err) != 0) {
        if (!err.code || !err.message[0])
            abort();
        return 0;
    }
    size_t length, second_length;
    char *line = hf_request_build(&request, &dialect, &length);
    if (hf_request_parse(line, length, &dialect, &again, &err) != 0)
        abort();
    char *second = hf_request_build(&again, &dialect, &second_length);
    if (length != second_length || memcmp(line, second, length) != 0)
        abort();
    free(line);
    free(second);
    return 0;
}
