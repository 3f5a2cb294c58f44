/* SPDX-License-Identifier: MIT */
/* check-fork-golden.c - rows of ik_llama.cpp decode to its floats
 *
 * golden/ik/codec/manifest.tsv has a digest of the bytes and of the floats of
 * each result. For types whose decoder in ik_llama.cpp ignores the scale, the
 * digest is that of the scaled floats (column dequant_own_xxh64).
 */
#include "config.h"
#include "tests/kern/kern.h"
#include "tests/slurp.h"
#include "tests/tap.h"

/* Columns of the manifest. */
enum {
    CASE,
    TYPE,
    ID,
    VARIANT,
    IMATRIX,
    ROWS,
    LEN,
    INTERLEAVE,
    FILE_NAME,
    OFFSET,
    BYTES,
    HASH,
    HASH_NATIVE,
    FLOATS,
    FLOATS_NATIVE,
    FLOATS_OWN,
    N_COLUMNS
};

static uint8_t data[1 << 20];
static char loaded[64];
static size_t loaded_size;

/* Read a compressed file of the folder into data[]. */
static bool load_data(const char *name)
{
    char command[4200];
    if (!strcmp(name, loaded))
        return true;
    const char *path = shared_path(name);
    if (!path)
        return false;
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *f = popen(command, "r");
    loaded_size = f ? fread(data, 1, sizeof data, f) : 0;
    snprintf(loaded, sizeof loaded, "%s", name);
    return f && pclose(f) == 0;
}

/* Decode the rows of a result and hash the floats. */
static uint64_t decode_rows(const struct gg_kern *k, int type,
                            const uint8_t *rows, size_t n, size_t len)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    const size_t size = t->row_header + len / t->block_len * t->block_size;
    float *y = malloc(n * len * sizeof *y);
    for (size_t r = 0; r < n; r++)
        k->codec[type].decode(rows + r * size, y + r * len, len);
    const uint64_t hash = test_hash_floats(y, n * len);
    free(y);
    return hash;
}

struct tally {
    const char *level;
    unsigned n[GG_N_DTYPES], bad[GG_N_DTYPES];
};

static void check_line(const struct gg_kern *k, struct tally *c, char **f)
{
    const struct gguf_dtype_info *t = gguf_dtype_find_name(f[TYPE]);
    const int type = t ? gg_dtype_index(t->id) : -1;
    char name[128];
    if (type < 0 || t->family != GGUF_FAMILY_FORK ||
        strcmp(f[INTERLEAVE], "1"))
        return;
    c->n[type]++;
    snprintf(name, sizeof name, "golden/ik/codec/%s.gz", f[FILE_NAME]);
    const size_t off = strtoul(f[OFFSET], NULL, 10);
    const size_t size = strtoul(f[BYTES], NULL, 10);
    const char *floats =
        strcmp(f[FLOATS_OWN], "-") ? f[FLOATS_OWN] : f[FLOATS];
    const bool same =
        load_data(name) && off + size <= loaded_size &&
        test_hash(data + off, size) == strtoull(f[HASH], NULL, 16) &&
        decode_rows(k, type, data + off, strtoul(f[ROWS], NULL, 10),
                    strtoul(f[LEN], NULL, 10)) == strtoull(floats, NULL, 16);
    if (!same && !c->bad[type]++)
        printf("# %s: %s %s %s %s\n", c->level, f[TYPE], f[CASE], f[VARIANT],
               f[IMATRIX]);
}

static void check_level(const struct gg_kern *k, const char *level)
{
    static struct tally c;
    char *text = slurp(shared_path("golden/ik/codec/manifest.tsv"), NULL);
    char *end = text ? text + strcspn(text, "\n") : NULL; /* the titles */
    memset(&c, 0, sizeof c);
    c.level = level;
    while (end && *end) {
        char *line = end + 1, *f[N_COLUMNS + 8];
        end = line + strcspn(line, "\n");
        const bool last = !*end;
        *end = 0;
        if (test_fields(line, f, N_COLUMNS + 8) >= N_COLUMNS)
            check_line(k, &c, f);
        *end = last ? 0 : '\n';
    }
    free(text);
    for (int i = 0; i < GG_N_DTYPES; i++)
        if (c.n[i])
            ok(!c.bad[i], "%s %s: %u of %u results", level,
               gg_dtype_by_index(i)->name, c.n[i] - c.bad[i], c.n[i]);
}

int main(void)
{
    if (shared_path("golden/ik/codec/manifest.tsv"))
        test_each_level(check_level);
    else
        skip("no folder golden/ik");
    return done_testing();
}
