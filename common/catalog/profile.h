/*
 * Profiles: `catalog/profiles/<name>.json`. One data file that lets one controller and one executor test any VMM:
 * protocol dialect, verify command, artifacts with their provenance, environment allow-list, and the command of each
 * scenario. No shell, no concatenation: commands are argument vectors in which an element may contain placeholders of a
 * closed set.
 */
#ifndef HF_COMMON_CATALOG_PROFILE_H
#define HF_COMMON_CATALOG_PROFILE_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>

#define HF_PROFILE_MAX_BYTES     (128 * 1024)
#define HF_PROFILE_MAX_ARGS      48
#define HF_PROFILE_MAX_ARTIFACTS 16
#define HF_PROFILE_MAX_SCENARIOS 64
#define HF_PROFILE_MAX_REPORTS   8
#define HF_PROFILE_MAX_ENV       32
#define HF_PROFILE_NAME_SIZE     65

/* Field names of the wire dialect (docs/protocol.md, "Dialect"). */
struct hf_dialect {
    char
        source[33]; /* "holdfast": holdfast_commit, holdfast_dirty, holdfast_status, and expected_commit refers to it */
    char vmm[33];   /* "qemu": qemu_commit, ..., expected_qemu_commit, qemu_pids, live_qemu_pids */
    char runtime[33]; /* "libc": one more non-empty string of metadata */
    char artifact_names[HF_PROFILE_MAX_ARTIFACTS][HF_PROFILE_NAME_SIZE];
    size_t artifact_count;
};

/* An argument vector with placeholders still in it. */
struct hf_command_template {
    char **arguments; /* owned */
    size_t count;     /* 1..HF_PROFILE_MAX_ARGS */
};

/* Values of the closed placeholder set; a NULL value makes its use an error. Paths are absolute. */
struct hf_placeholders {
    const char *backend;       /* {backend} */
    const char *scenario;      /* {scenario} */
    const char *memory_mib;    /* {memory_mib} */
    const char *phase_timeout; /* {phase_timeout}: seconds that one VM phase may take */
    const char *timeout;       /* {timeout}: seconds for the whole invocation */
    const char *seed;          /* {seed} */
    const char *output_dir;    /* {output_dir} */
    const char *source_root;   /* {source_root} */
    const char *bin_dir;       /* {bin_dir} */
    const char *guest_dir;     /* {guest_dir} */
};

enum hf_provenance_kind {
    HF_PROVENANCE_NONE,    /* is itself a provenance document or manifest */
    HF_PROVENANCE_PACKAGE, /* document names a distribution package, its version and digest */
    HF_PROVENANCE_BUILT,   /* document lists the digests of every source file that went in */
};

struct hf_profile_artifact {
    char name[HF_PROFILE_NAME_SIZE];
    char *path;                               /* template, only path placeholders */
    char path_variable[HF_PROFILE_NAME_SIZE]; /* listed environment variable that, when set, names the file instead of
                                                 `path`; "" when there is none */
    enum hf_provenance_kind provenance_kind;
    char provenance[HF_PROFILE_NAME_SIZE]; /* name of the artifact that is its provenance document, "" when NONE */
};

struct hf_profile_scenario {
    char name[HF_PROFILE_NAME_SIZE];
    struct hf_command_template extra;                           /* appended to the profile's command; count may be 0 */
    char reports[HF_PROFILE_MAX_REPORTS][HF_PROFILE_NAME_SIZE]; /* file names that must be there, each matching
                                                                 *outcome*.json or *report*.json */
    size_t report_count; /* 0..: whatever is found is inventoried, these must be there */
};

enum hf_vmm_identity { HF_VMM_DEBIAN_PACKAGE, HF_VMM_GIT };

struct hf_profile {
    char name[HF_PROFILE_NAME_SIZE];
    char description[513];
    struct hf_dialect dialect;
    char backends[4][8]; /* subset of kvm, mshv, whp, tcg */
    size_t backend_count;
    char *campaigns_dir; /* template, e.g. "{source_root}/catalog/campaigns" */
    enum hf_vmm_identity vmm_identity;
    char *vmm_source; /* package name, or template of a git work tree */
    struct hf_command_template verify;
    struct hf_command_template boot;        /* baseline and post-campaign VM */
    char boot_report[HF_PROFILE_NAME_SIZE]; /* report that a boot must leave, "" when none is required */
    struct hf_command_template command;     /* every scenario */
    char environment[HF_PROFILE_MAX_ENV]
                    [HF_PROFILE_NAME_SIZE]; /* names passed on besides PATH, HOME, LANG, LC_ALL, TMPDIR, USER */
    size_t environment_count;
    char pid_journal_variable[HF_PROFILE_NAME_SIZE];
    struct hf_profile_artifact artifacts[HF_PROFILE_MAX_ARTIFACTS];
    size_t artifact_count;
    struct hf_profile_scenario *scenarios; /* owned */
    size_t scenario_count;
};

/* Parses a profile; *profile must be cleared with hf_profile_clear() also after failure. Codes "json-invalid",
 * "profile-invalid". Names that could carry credentials (GITHUB_*, GH_*, COPILOT_*, SSH_*, *TOKEN*, *SECRET*,
 * *PASSWORD*, *KEY*, CARGO_TARGET_DIR, RUSTFLAGS, RUSTUP_TOOLCHAIN, LD_*) are refused in `environment`. */
int hf_profile_parse(const char *text, size_t length, const char *expected_name, struct hf_profile *profile,
                     struct hf_error *err);
/* Loads DIR/<name>.json. A missing file is "storage-missing", one that is no strict JSON "profile-invalid". */
int hf_profile_load(const char *profiles_dir, const char *name, struct hf_profile *profile, struct hf_error *err);
void hf_profile_clear(struct hf_profile *profile);

bool hf_profile_has_backend(const struct hf_profile *profile, const char *backend);
const struct hf_profile_scenario *hf_profile_find_scenario(const struct hf_profile *profile, const char *name);

/* Replaces placeholders in one string / builds a NULL-terminated argv from one or two templates (second may be NULL).
 * Owned; free each element and the array (hf_argv_free). Code "profile-placeholder-missing". */
char *hf_placeholder_expand(const char *text, const struct hf_placeholders *values, struct hf_error *err);
char **hf_command_expand(const struct hf_command_template *first, const struct hf_command_template *second,
                         const struct hf_placeholders *values, struct hf_error *err);
void hf_argv_free(char **argv);

#endif
