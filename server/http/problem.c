/* Problem documents; see problem.h. */
#include "server/http/problem.h"

#include "common/cleanup.h"
#include "common/json.h"

#include <stdio.h>
#include <string.h>

struct problem {
    const char *code;
    unsigned status;
    const char *title;
};

static const struct problem problems[] = {
    {"json-invalid", 400, "The body is not strict JSON"},
    {"shape-invalid", 400, "The body has a wrong shape"},
    {"request-invalid", 400, "A field is out of bounds"},
    {"framing-refused", 400, "The request could be read in two ways"},
    {"parameter-invalid", 400, "A query parameter is out of bounds"},
    {"idempotency-unsupported", 400, "Idempotency keys are not supported"},
    {"host-refused", 403, "The Host header does not name this listener"},
    {"origin-refused", 403, "Requests from web pages are refused"},
    {"not-found", 404, "There is no such resource"},
    {"campaign-unknown", 404, "There is no such campaign"},
    {"summary-pending", 404, "The campaign has not ended yet"},
    {"method-not-allowed", 405, "The method is not allowed here"},
    {"campaign-elsewhere", 409, "The campaign runs in another controller"},
    {"campaign-finished", 409, "The campaign has already ended"},
    {"body-too-large", 413, "The body is too large"},
    {"content-type-unsupported", 415, "The body must be application/json"},
    {"catalog-invalid", 422, "The campaign file is invalid"},
    {"catalog-scenario-unknown", 422, "The profile does not know a scenario of the campaign"},
    {"profile-invalid", 422, "The profile is invalid"},
    {"storage-missing", 422, "The campaign or profile does not exist"},
    {"profile-placeholder-missing", 422, "The profile uses a placeholder that has no value here"},
    {"executor-unknown", 422, "There is no such executor"},
    {"executor-command-invalid", 503, "The executor's wrapper cannot be started"},
    {"seed-unavailable", 503, "No seed can be drawn yet"},
    {"controller-busy", 503, "Too many campaigns are running"},
    {"controller-stopping", 503, "The controller is stopping"},
    {"storage-failed", 507, "The controller cannot store the campaign"},
};
static const struct problem unexpected = {"internal", 500, "The controller failed"};

static const struct problem *find_problem(const char *code)
{
    for (size_t i = 0; code && i < sizeof problems / sizeof problems[0]; i++)
        if (strcmp(problems[i].code, code) == 0)
            return &problems[i];
    return &unexpected;
}

unsigned hf_problem_status(const char *code)
{
    return find_problem(code)->status;
}

char *hf_problem_document(const struct hf_error *err, size_t *length)
{
    const struct problem *problem = find_problem(err->code);
    char type[128];
    snprintf(type, sizeof type, HF_PROBLEM_TYPE_PREFIX "%s", problem->code);
    cleanup_json cJSON *document = hf_json_new_object();
    hf_json_add_string(document, "type", type);
    hf_json_add_string(document, "title", problem->title);
    hf_json_add_int(document, "status", problem->status);
    hf_json_add_string(document, "detail", err->message);
    if (err->field[0])
        hf_json_add_string(document, "field", err->field);
    return hf_json_canonical(document, length);
}
