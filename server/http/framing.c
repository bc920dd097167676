/* Checks of a request's form; see framing.h. */
#include "server/http/framing.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Fields whose second occurrence another parser might prefer to the first. */
static const char *const single_fields[] = {
    "Host", "Content-Length", "Transfer-Encoding", "Content-Type", "Origin", "Idempotency-Key", NULL};

struct search {
    struct MHD_Connection *mhd;
    const char *repeated; /* the name as in single_fields */
    bool name_invalid;
    bool parameter_invalid;
};

/* MHD_lookup_connection_value() finds the first of a name: any other pointer is a later one. */
static enum MHD_Result look_at_header(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct search *search = context;
    if (key[strcspn(key, " \t")])
        search->name_invalid = true; /* "Transfer-Encoding :", which some parsers take for what it looks like */
    for (const char *const *name = single_fields; *name; name++)
        if (strcasecmp(*name, key) == 0 && MHD_lookup_connection_value(search->mhd, kind, key) != value)
            search->repeated = *name;
    return MHD_YES;
}

static enum MHD_Result look_at_parameter(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct search *search = context;
    if (!value || MHD_lookup_connection_value(search->mhd, kind, key) != value)
        search->parameter_invalid = true;
    return MHD_YES;
}

static int check_body_framing(struct MHD_Connection *mhd, const char *version, struct hf_error *err)
{
    const char *encoding = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Transfer-Encoding");
    if (!encoding)
        return 0;
    if (MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length"))
        return hf_error_set(err, "framing-refused", 0, "Transfer-Encoding",
                            "expected Content-Length or Transfer-Encoding, found both; send one of them");
    if (strcmp(version, MHD_HTTP_VERSION_1_1) != 0 || strcasecmp(encoding, "chunked") != 0)
        return hf_error_set(err, "framing-refused", 0, "Transfer-Encoding",
                            "expected no Transfer-Encoding but chunked, and that in HTTP/1.1 only");
    return 0;
}

int hf_http_framing_check(struct MHD_Connection *mhd, const char *version, struct hf_error *err)
{
    struct search search = {.mhd = mhd};
    MHD_get_connection_values(mhd, MHD_HEADER_KIND, look_at_header, &search);
    MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, look_at_parameter, &search);
    if (search.name_invalid)
        return hf_error_set(err, "framing-refused", 0, "",
                            "expected header names without spaces, found one with a space");
    if (search.repeated)
        return hf_error_set(err, "framing-refused", 0, search.repeated, "expected %s once, found it repeated",
                            search.repeated);
    if (check_body_framing(mhd, version, err) < 0)
        return -1;
    if (search.parameter_invalid)
        return hf_error_set(err, "parameter-invalid", 0, "",
                            "expected every query parameter once and as name=value, found one repeated or without "
                            "a value");
    return 0;
}
