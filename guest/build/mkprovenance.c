/*
 * mkprovenance: writes the provenance document of one artifact (form: guest/README.md). Run by the build; the executor
 * checks the document against the artifact before any VM starts.
 *
 *     mkprovenance package   NAME FILE OUTPUT RECORD.json              unpacked from the package of RECORD.json
 *     mkprovenance installed NAME FILE OUTPUT PACKAGE                 installed; its digest is in the package's md5sums
 *     mkprovenance built     NAME FILE OUTPUT SOURCE_ROOT INPUT...    inputs are paths relative to SOURCE_ROOT
 */
#include "guest/build/command.h"
#include "guest/build/output.h"

#include "common/cleanup.h"
#include "common/digest.h"
#include "common/durable.h"
#include "common/json.h"

#include <fcntl.h>
#include <nettle/md5.h>
#include <string.h>

enum { ARTIFACT_MAX = 1 << 30, RECORD_MAX = 64 << 10, MD5SUMS_MAX = 4 << 20, INPUT_MAX = 64 << 20 };

struct request {
    const char *name, *file, *output;
    char **rest; /* of the command line, NULL-terminated */
};

static int check_installed_file(const char *package, const char *file, struct hf_error *err)
{
    size_t length;
    cleanup_free char *bytes = hf_document_read(AT_FDCWD, file, ARTIFACT_MAX, &length, err);
    if (!bytes)
        return -1;
    struct md5_ctx md5;
    uint8_t digest[MD5_DIGEST_SIZE];
    char hex[2 * MD5_DIGEST_SIZE + 1], wanted[4096];
    md5_init(&md5);
    md5_update(&md5, length, (const uint8_t *)bytes);
    md5_digest(&md5, sizeof digest, digest);
    hf_hex(digest, sizeof digest, hex);
    snprintf(wanted, sizeof wanted, "%s  %s", hex, file + 1); /* the list's paths have no leading slash */
    cleanup_free char *sums = hf_command_output(
        (const char *const[]){"dpkg-query", "--control-show", package, "md5sums", NULL}, MD5SUMS_MAX, err);
    if (!sums)
        return -1;
    char *rest = sums;
    for (char *row; (row = strsep(&rest, "\n"));)
        if (strcmp(row, wanted) == 0)
            return 0;
    return hf_error_set(err, "provenance-mismatch", 0, "",
                        "%s is not the file of package %s: its MD5 is %s; reinstall the package", file, package, hex);
}

static int add_installed(cJSON *source, const struct request *request, struct hf_error *err)
{
    const char *package = request->rest[0];
    if (!package || request->file[0] != '/')
        return hf_error_set(err, "usage", 0, "", "expected an absolute FILE and a PACKAGE");
    cleanup_free char *version = hf_command_output(
        (const char *const[]){"dpkg-query", "--show", "--showformat=${Version}", package, NULL}, RECORD_MAX, err);
    if (!version || check_installed_file(package, request->file, err) != 0)
        return -1;
    hf_json_add_string(source, "kind", "debian-package");
    hf_json_add_string(source, "package", package);
    hf_json_add_string(source, "version", version);
    hf_json_add_null(source, "package_sha256");
    hf_json_add_string(source, "file", request->file + 1);
    return 0;
}

static int add_package(cJSON *source, const struct request *request, struct hf_error *err)
{
    const struct hf_json_limits limits = {.max_bytes = RECORD_MAX, .max_depth = 2};
    size_t length;
    if (!request->rest[0])
        return hf_error_set(err, "usage", 0, "", "expected RECORD.json");
    cleanup_free char *text = hf_document_read(AT_FDCWD, request->rest[0], RECORD_MAX, &length, err);
    cleanup_json cJSON *record = text ? hf_json_parse(text, length, &limits, err) : NULL;
    if (!record)
        return hf_error_prefix(err, "%s", request->rest[0]);
    const char *package = hf_json_get_string(record, "package");
    const char *version = hf_json_get_string(record, "version");
    const char *sha256 = hf_json_get_string(record, "sha256");
    const char *member = hf_json_get_string(record, "member");
    if (!package || !version || !sha256 || !member)
        return hf_error_set(err, "provenance-record", 0, "", "expected package, version, sha256 and member in %s",
                            request->rest[0]);
    hf_json_add_string(source, "kind", "debian-package");
    hf_json_add_string(source, "package", package);
    hf_json_add_string(source, "version", version);
    hf_json_add_string(source, "package_sha256", sha256);
    hf_json_add_string(source, "file", member);
    return 0;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Outside a git work tree the sources speak through their digests alone. */
static void add_commit(cJSON *source, const char *root)
{
    struct hf_error ignored = {0};
    cleanup_free char *commit =
        hf_command_output((const char *const[]){"git", "-C", root, "rev-parse", "HEAD", NULL}, 64, &ignored);
    hf_json_add_string(source, "commit", commit ? commit : "none");
}

static int add_built(cJSON *source, const struct request *request, struct hf_error *err)
{
    const char *root = request->rest[0];
    if (!root || !request->rest[1])
        return hf_error_set(err, "usage", 0, "", "expected SOURCE_ROOT and at least one INPUT");
    char **inputs = request->rest + 1;
    size_t count = 0;
    while (inputs[count])
        count++;
    qsort(inputs, count, sizeof inputs[0], by_text);
    hf_json_add_string(source, "kind", "built");
    add_commit(source, root);
    cJSON *list = hf_json_add(source, "inputs", hf_json_new_array());
    for (size_t i = 0; i < count; i++) {
        char path[8192], sha256[HF_SHA256_HEX_SIZE];
        if (i > 0 && strcmp(inputs[i], inputs[i - 1]) == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", root, inputs[i]);
        if (hf_sha256_file(path, INPUT_MAX, sha256, NULL, err) != 0)
            return hf_error_prefix(err, "input %s", inputs[i]);
        cJSON *input = hf_json_append(list, hf_json_new_object());
        hf_json_add_string(input, "path", inputs[i]);
        hf_json_add_string(input, "sha256", sha256);
    }
    return 0;
}

static const struct {
    const char *kind;
    int (*add)(cJSON *source, const struct request *request, struct hf_error *err);
} kinds[] = {{"package", add_package}, {"installed", add_installed}, {"built", add_built}};

static int write_document(const char *kind, const struct request *request, struct hf_error *err)
{
    char sha256[HF_SHA256_HEX_SIZE];
    uint64_t size_bytes;
    if (hf_sha256_file(request->file, ARTIFACT_MAX, sha256, &size_bytes, err) != 0)
        return -1;
    cleanup_json cJSON *document = hf_json_new_object();
    hf_json_add_int(document, "schema_version", 1);
    hf_json_add_string(document, "artifact", request->name);
    hf_json_add_string(document, "sha256", sha256);
    hf_json_add_int(document, "size", (int64_t)size_bytes);
    cJSON *source = hf_json_add(document, "source", hf_json_new_object());
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        if (kinds[i].add(source, request, err) != 0)
            return -1;
        size_t length;
        cleanup_free char *text = hf_json_canonical(document, &length);
        return hf_output_text(request->output, text, length, err);
    }
    return hf_error_set(err, "usage", 0, "", "expected package, installed or built, not \"%.32s\"", kind);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: mkprovenance package|installed|built NAME FILE OUTPUT ...\n");
        return 2;
    }
    struct hf_error err = {0};
    const struct request request = {argv[2], argv[3], argv[4], argv + 5};
    if (write_document(argv[1], &request, &err) == 0)
        return 0;
    fprintf(stderr, "mkprovenance: %s: %s\n", argv[2], err.message);
    return 1;
}
