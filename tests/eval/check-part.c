/* SPDX-License-Identifier: MIT */
/* check-part.c - parts: merged in any order, saved exactly, refused by key */
#include "config.h"
#include "base/compiler.h"
#include "gguf/kld.h"
#include "gguf/part.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 9, HEADS = 3, VALUES = 4, MOST = 6 };

static char dir[] = "/tmp/check-part-XXXXXX";
static double value[CHUNKS][MOST * VALUES], head[CHUNKS][HEADS];

static size_t n_of(size_t chunk)
{
    return chunk % MOST; /* one chunk has no tokens */
}

static struct gguf_part *make_part(const char *ctx, const char *note)
{
    struct gguf_part *p = NULL;
    if (gguf_part_create(&p, CHUNKS, HEADS, VALUES, NULL, NULL) != GGUF_OK ||
        gguf_part_set_setting(p, "ctx_size", ctx, NULL) != GGUF_OK ||
        gguf_part_set_setting(p, "model.0", "0123", NULL) != GGUF_OK ||
        gguf_part_set_note(p, "file", note, NULL) != GGUF_OK)
        exit(99);
    return p;
}

/* A part with the chunks whose bits are set. */
static struct gguf_part *make_with(const char *ctx, const char *note,
                                   unsigned mask)
{
    struct gguf_part *p = make_part(ctx, note);
    for (size_t i = 0; i < CHUNKS; i++)
        if (mask >> i & 1 && gguf_part_add_chunk(p, i, head[i], value[i],
                                                 n_of(i), NULL) != GGUF_OK)
            exit(99);
    return p;
}

static bool same_values(const struct gguf_part *a, const struct gguf_part *b)
{
    bool same = gguf_part_n_done(a) == gguf_part_n_done(b) &&
                gguf_part_n_chunks(a) == gguf_part_n_chunks(b) &&
                gguf_part_n_chunk_values(a) == gguf_part_n_chunk_values(b) &&
                gguf_part_n_row_values(a) == gguf_part_n_row_values(b);
    for (size_t i = 0; i < gguf_part_n_chunks(a); i++) {
        size_t n = 0, k = 0;
        const double *x = gguf_part_row_values(a, i, &n);
        const double *y = gguf_part_row_values(b, i, &k);
        same = same && !x == !y && n == k &&
               (!x || !memcmp(x, y, n * VALUES * sizeof *x));
        x = gguf_part_chunk_values(a, i);
        y = gguf_part_chunk_values(b, i);
        same = same && !x == !y && (!x || !memcmp(x, y, sizeof head[i]));
    }
    return same;
}

static bool has_note(const struct gguf_part *p, const char *want)
{
    const char *note = gguf_part_note(p, "file");
    return note && !strcmp(note, want);
}

static void fill_tokens(void)
{
    for (size_t i = 0; i < CHUNKS; i++)
        for (size_t k = 0; k < HEADS; k++)
            head[i][k] = (double)rnd_f32();
    for (size_t i = 0; i < CHUNKS; i++)
        for (size_t k = 0; k < MOST * VALUES; k++)
            value[i][k] = (double)rnd_f32() * pow(2, (double)rnd_below(60));
    value[3][1] = -0.0;
    value[4][2] = 5e-324;
}

/* ---- in memory ---- */

static void check_merge(void)
{
    static const unsigned splits[][3] = { { 0x1c0, 0x007, 0x038 },
                                          { 0x0aa, 0x155, 0x000 },
                                          { 0x000, 0x1ff, 0x000 },
                                          { 0x100, 0x001, 0x0fe } };
    static const unsigned orders[][3] = { { 0, 1, 2 },
                                          { 2, 1, 0 },
                                          { 1, 2, 0 } };
    struct gguf_part *all = make_with("64", "a", 0x1ff);
    struct gguf_error err;
    bool good = true;
    for (size_t s = 0; s < GG_LEN(splits); s++)
        for (size_t o = 0; o < GG_LEN(orders); o++) {
            struct gguf_part *sum = NULL;
            for (int k = 0; k < 3; k++) {
                const char *name = k ? "b" : "a";
                struct gguf_part *p =
                    make_with("64", name, splits[s][orders[o][k]]);
                if (sum) {
                    good = good && !gguf_part_merge(sum, p, &err);
                    gguf_part_destroy(p);
                } else {
                    sum = p;
                }
            }
            good = good && same_values(all, sum) && has_note(sum, "a");
            gguf_part_destroy(sum);
        }
    ok(good, "three parts in any order equal one, with the first one's "
             "notes");
    gguf_part_destroy(all);
}

static void check_refused(void)
{
    struct gguf_part *a = make_with("64", "a", 0x00f),
                     *b = make_with("32", "a", 0x010);
    struct gguf_part *c = make_with("64", "c", 0x018), *d = NULL, *e = NULL;
    struct gguf_part *before = make_with("64", "a", 0x00f);
    struct gguf_error err;
    const char *v;
    ok(gguf_part_merge(a, b, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "'ctx_size' is '32', not '64'"),
       "another setting: %s", err.message);
    ok(gguf_part_merge(a, c, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "chunk 3 is in both parts"),
       "a chunk twice: %s", err.message);
    ok(!gguf_part_set_setting(c, "lora", "x", &err) &&
           gguf_part_merge(a, c, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "'lora' is 'x', not ''") &&
           gguf_part_merge(c, a, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "'lora' is '', not 'x'"),
       "a setting that one has: %s", err.message);
    ok(!gguf_part_create(&d, CHUNKS + 1, HEADS, VALUES, NULL, &err) &&
           !gguf_part_create(&e, CHUNKS, HEADS, VALUES + 1, NULL, &err) &&
           gguf_part_check_settings(d, e, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "5 numbers for each row, not 4"),
       "%s", err.message);
    gguf_part_destroy(e);
    ok(!gguf_part_create(&e, CHUNKS, 0, VALUES, NULL, &err) &&
           gguf_part_check_settings(d, e, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "0 numbers for each chunk, not 3"),
       "%s", err.message);
    gguf_part_destroy(e);
    ok(!gguf_part_create(&e, CHUNKS, HEADS, VALUES, NULL, &err) &&
           gguf_part_check_settings(d, e, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "9 chunks, not 10"),
       "%s", err.message);
    ok(same_values(a, before), "after all of that the part is as it was");
    double bad[VALUES] = { 1, 2, NAN, 4 };
    ok(gguf_part_add_chunk(a, 5, head[5], bad, 1, &err) == GGUF_E_INVALID &&
           gguf_part_add_chunk(a, 5, bad, value[5], 1, &err) ==
               GGUF_E_INVALID &&
           strstr(err.message, "chunk 5: number 2 is not finite"),
       "%s", err.message);
    ok(gguf_part_add_chunk(a, CHUNKS, head[0], value[0], 1, &err) ==
               GGUF_E_INVALID &&
           gguf_part_add_chunk(a, 1, head[0], value[0], 1, &err) ==
               GGUF_E_INVALID,
       "a finished chunk, or one out of range: %s", err.message);
    ok(gguf_part_set_setting(a, "Name", "x", &err) == GGUF_E_INVALID &&
           gguf_part_set_setting(a, "", "x", &err) == GGUF_E_INVALID,
       "names: %s", err.message);
    ok(!gguf_part_set_setting(a, "ctx_size", "65", &err) &&
           !strcmp(gguf_part_setting(a, 0, &v), "ctx_size") &&
           !strcmp(v, "65") && !gguf_part_setting(a, 2, &v),
       "a setting is replaced");
    struct gguf_part *const list[] = { a, b, c, d, e, before };
    for (size_t i = 0; i < GG_LEN(list); i++)
        gguf_part_destroy(list[i]);
    ok(gguf_part_create(&a, 1, 0, 0, NULL, &err) == GGUF_E_INVALID && !a &&
           gguf_part_create(&a, 1, 65, 1, NULL, &err) == GGUF_E_INVALID && !a,
       "%s", err.message);
}

/* Long settings that differ are quoted around the first difference. */
static void check_long(void)
{
    struct gguf_part *a = make_part("64", ""), *b = make_part("64", "");
    struct gguf_error err;
    char text[400];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    const bool set = !gguf_part_set_setting(a, "texts", text, NULL);
    text[300] = 'b';
    ok(set && !gguf_part_set_setting(b, "texts", text, NULL) &&
           gguf_part_check_settings(a, b, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "'texts' is '...aaaaaaaaaaaabaaa") &&
           strstr(err.message, "not '...aaaaaaaaaaaaaaa"),
       "%s", err.message);
    gguf_part_destroy(a);
    gguf_part_destroy(b);
}

/* ---- files ---- */

static void check_files(void)
{
    struct gguf_part *a = make_with("64", "a \"b\"\n", 0x0db), *b = NULL;
    struct gguf_part *none = make_part("64", "");
    struct gguf_error err;
    const char *path = scratch_path(dir, "a"), *v = NULL;
    ok(!gguf_part_save(a, path, false, &err) &&
           !gguf_part_load(&b, path, NULL, &err) && same_values(a, b) &&
           has_note(b, "a \"b\"\n") && !gguf_part_check_settings(a, b, &err) &&
           !strcmp(gguf_part_setting(b, 1, &v), "model.0"),
       "a part comes back as it was");
    gguf_part_destroy(b);
    ok(gguf_part_save(a, path, false, &err) == GGUF_E_EXIST &&
           !gguf_part_save(a, path, true, &err),
       "a file is replaced where that is asked for: %s", err.message);
    const char *empty = scratch_path(dir, "none");
    ok(!gguf_part_save(none, empty, false, &err) &&
           !gguf_part_load(&b, empty, NULL, &err) && same_values(none, b),
       "so does one without chunks");
    gguf_part_destroy(b);
    gguf_part_destroy(none);
    gguf_part_destroy(a);
}

/* A file with any byte changed, or truncated anywhere, is refused. */
static void check_changed(void)
{
    struct gguf_part *a = make_with("64", "a", 0x003), *b = NULL;
    struct gguf_error err;
    const char *path = scratch_path(dir, "a");
    const char *other = scratch_path(dir, "changed");
    size_t size = 0, n_bad = 0, n_silent = 0;
    if (gguf_part_save(a, path, true, &err))
        exit(99);
    uint8_t *p = slurp(path, &size);
    const size_t step = SCRATCH_SANITIZED ? 7 : 1;
    for (size_t i = 0; i < size; i += step) {
        const uint8_t kept = p[i];
        p[i] ^= (uint8_t)(1u << rnd_below(8));
        gguf_error_clear(&err);
        (void)spill(other, p, size);
        n_bad += gguf_part_load(&b, other, NULL, &err) == GGUF_OK || b;
        n_silent += !err.message[0];
        gguf_part_destroy(b);
        p[i] = kept;
    }
    ok(size > 500 && !n_bad && !n_silent,
       "%zu changed bytes are refused, each with a message", size);
    for (size_t i = 0; i < size; i += step) {
        (void)spill(other, p, i);
        n_bad += gguf_part_load(&b, other, NULL, &err) == GGUF_OK || b;
        gguf_part_destroy(b);
    }
    ok(!n_bad, "so is every file that ends too early");
    uint8_t *more = malloc(size + 1);
    memcpy(more, p, size);
    more[size] = 0;
    (void)spill(other, more, size + 1);
    ok(gguf_part_load(&b, other, NULL, &err) == GGUF_E_MISMATCH &&
           err.offset == size,
       "or has a byte more: %s", err.message);
    p[size - 100] ^= 1;
    (void)spill(other, p, size);
    ok(gguf_part_load(&b, other, NULL, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "the file has changed") &&
           err.offset == size - 32,
       "%s", err.message);
    free(more);
    free(p);
    gguf_part_destroy(a);
}

static void check_no_memory(void)
{
    struct failalloc f;
    bool good = true, more = true;
    unsigned n = 0;
    const char *path = scratch_path(dir, "memory");
    for (; more && good; n += more) {
        struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
        struct gguf_part *p = NULL, *back = NULL, *sum = NULL;
        struct gguf_error err;
        fp.allocator = failalloc_init(&f, n);
        enum gguf_status st =
            gguf_part_create(&p, CHUNKS, HEADS, VALUES, &f.a, &err);
        if (!st)
            st = gguf_part_create(&sum, CHUNKS, HEADS, VALUES, &f.a, &err);
        if (!st)
            st = gguf_part_set_setting(p, "ctx_size", "64", &err);
        if (!st)
            st = gguf_part_set_setting(sum, "ctx_size", "64", &err);
        for (size_t i = 0; !st && i < 3; i++)
            st = gguf_part_add_chunk(p, i, head[i], value[i], n_of(i), &err);
        if (!st)
            st = gguf_part_save(p, path, true, &err);
        if (!st)
            st = gguf_part_load(&back, path, &fp, &err);
        if (!st)
            st = gguf_part_merge(sum, back, &err);
        more = f.calls > n;
        good = st == (more ? GGUF_E_NOMEM : GGUF_OK) &&
               (!sum || !more || gguf_part_n_done(sum) == 0);
        gguf_part_destroy(p);
        gguf_part_destroy(sum);
        gguf_part_destroy(back);
        good = good && f.live == 0;
    }
    ok(good && n > 20, "each of %u allocations may fail", n);
}

/* ---- of what ---- */

static void check_tell(void)
{
    enum { V = 50, CTX = 8 };
    const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = V };
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    gguf_token text[2 * CTX];
    struct gguf_part *p[4];
    struct gguf_error err;
    size_t size = 0;
    bool good = true;
    uint8_t *file = gen_model_file(&spec, 5, GGUF_DTYPE_F32, &size);
    sp.n_ctx = CTX;
    for (int i = 0; i < 2 * CTX; i++)
        text[i] = i;
    for (int i = 0; i < 4; i++) {
        struct run r;
        sp.key_dtype = sp.value_dtype =
            gguf_dtype_find(i == 1 ? GGUF_DTYPE_F16 : GGUF_DTYPE_F32);
        text[3] = i == 2 ? 4 : 3;
        float *some = (float *)(void *)(file + size - 64);
        *some += i == 3 ? 1.0f : 0.0f;
        p[i] = make_part("8", "");
        good = good && run_open(&r, file, size, 1, &sp) &&
               !gguf_part_set_model(p[i], 1, r.session, text, 2 * CTX, &err);
        run_close(&r);
    }
    ok(good && gguf_part_check_settings(p[0], p[1], &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "'cache.1' is 'F16 F16', not 'F32 F32'"),
       "%s", err.message);
    ok(good && gguf_part_check_settings(p[0], p[2], &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "'text' is '"),
       "another text: %s", err.message);
    ok(good && gguf_part_check_settings(p[0], p[3], &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "'model.1' is '"),
       "one weight is another: %s", err.message);
    for (int i = 0; i < 4; i++)
        gguf_part_destroy(p[i]);
    free(file);
}

/* Processor time to set n notes and settings. */
static double time_notes(size_t n)
{
    struct gguf_part *p;
    char name[32];
    const clock_t begin = clock();
    if (gguf_part_create(&p, 1, 0, 1, NULL, NULL) != GGUF_OK)
        exit(99);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "n%zu", i);
        if (gguf_part_set_note(p, name, "x", NULL) != GGUF_OK ||
            gguf_part_set_setting(p, name, "x", NULL) != GGUF_OK)
            exit(99);
    }
    const bool found = gguf_part_note(p, name) != NULL;
    gguf_part_destroy(p);
    return found ? (double)(clock() - begin) / CLOCKS_PER_SEC : -1;
}

/* Names are found by an index: time grows linearly with their number. */
static void check_many(void)
{
    const double few = time_notes(8000), many = time_notes(16 * 8000);
    ok(few >= 0 && many >= 0 && many < 80 * few + 0.2,
       "8000 notes take %g s, 16 times that number %g s", few, many);
}

int main(void)
{
    check_many();
    if (!scratch_make(dir))
        return 99;
    fill_tokens();
    check_merge();
    check_refused();
    check_long();
    check_files();
    check_changed();
    check_no_memory();
    check_tell();
    scratch_clean(dir);
    rmdir(dir);
    return done_testing();
}
