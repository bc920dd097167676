/* Implementation of scratch.h. */
#include "scratch.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char scratch_dir[64];

void scratch_setup(void)
{
    snprintf(scratch_dir, sizeof scratch_dir, "/tmp/holdfast-guest-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch_dir));
}

void scratch_teardown(void)
{
    char *const roots[] = {scratch_dir, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *entry; walk && (entry = fts_read(walk));)
        if (entry->fts_info != FTS_D)
            remove(entry->fts_accpath);
    if (walk)
        fts_close(walk);
}

const char *scratch_file(unsigned slot, const char *name, const void *bytes, size_t length)
{
    static char paths[8][256];
    snprintf(paths[slot], sizeof paths[slot], "%s/%s", scratch_dir, name);
    FILE *file = fopen(paths[slot], "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    return paths[slot];
}

const char *scratch_text(unsigned slot, const char *name, const char *text)
{
    return scratch_file(slot, name, text, strlen(text));
}
