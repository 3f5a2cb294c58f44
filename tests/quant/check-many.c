/* SPDX-License-Identifier: MIT */
/* check-many.c - very many tensors, and importance data of very many tensors
 * and texts: time is proportional to their number */
#include "config.h"
#include "base/bytes.h"
#include "gguf/imatrix.h"
#include "gguf/quant.h"
#include "gguf/writer.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <unistd.h>

enum { N_ENTRIES = 190000, N_TEXTS = 100000 }; /* files of 4.6 and 1.5 MB */

/* Seconds. Linear time takes a tenth of one, quadratic time 10 to 40. */
static const double LIMIT = 4;

static char dir[200];

static double seconds_since(double start)
{
    return scratch_cpu_time() - start;
}

static uint8_t *put_name(uint8_t *p, uint32_t v)
{
    gg_bytes_store32le(p, v);
    return p + 4;
}

/* Write importance data in the older form, names descending, or ascending from
 * another letter. */
static bool write_dat(const char *path, bool descending)
{
    uint8_t *b = malloc(4 + (size_t)N_ENTRIES * 24), *p = b;
    if (!b)
        return false;
    p = put_name(p, N_ENTRIES);
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        char name[16];
        snprintf(name, sizeof name, descending ? "m%07u" : "a%07u",
                 descending ? N_ENTRIES - i : i);
        p = put_name(p, 8);
        memcpy(p, name, 8);
        p = put_name(put_name(p + 8, 1), 1);
        p = put_name(p, gg_bytes_f32_bits((float)i));
    }
    bool good = spill(path, b, (size_t)(p - b));
    free(b);
    return good;
}

static void check_entries(void)
{
    char *down = scratch_path(dir, "down.dat"), *up = scratch_path(dir, "up");
    struct gguf_imatrix *a = NULL, *b = NULL;
    struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
    struct gguf_error err;
    size_t i;
    if (!write_dat(down, true) || !write_dat(up, false))
        exit(99);
    double start = scratch_cpu_time(), took;
    gguf_error_clear(&err);
    bool good = gguf_imatrix_load(&a, down, NULL, &err) == GGUF_OK;
    took = seconds_since(start);
    ok(good && gguf_imatrix_n_entries(a) == N_ENTRIES && took < LIMIT &&
           !gguf_imatrix_entry(a, 0, &e, NULL) && !strcmp(e.name, "m0000001"),
       "%d descending names: %.2f s %s", N_ENTRIES, took, err.message);
    start = scratch_cpu_time();
    good = good && gguf_imatrix_load(&b, up, NULL, &err) == GGUF_OK &&
           gguf_imatrix_merge(a, b, &err) == GGUF_OK;
    took = seconds_since(start);
    ok(good && gguf_imatrix_n_entries(a) == 2 * N_ENTRIES && took < LIMIT,
       "and others before each of them: %.2f s %s", took, err.message);
    start = scratch_cpu_time();
    for (size_t k = 0; good && k < 2 * N_ENTRIES; k++)
        good = !gguf_imatrix_entry(a, k, &e, NULL) &&
               gguf_imatrix_find(
                   a, (struct gguf_str){ e.name, strlen(e.name) }, &i) &&
               i == k;
    took = seconds_since(start);
    ok(good && took < LIMIT &&
           !gguf_imatrix_find(a, (struct gguf_str){ "x", 1 }, &i),
       "each is found by its name: %.2f s", took);
    gguf_imatrix_destroy(a);
    gguf_imatrix_destroy(b);
}

static void check_texts(void)
{
    static const float one = 1;
    char *path = scratch_path(dir, "texts");
    struct gguf_imatrix *a = NULL, *b = NULL;
    struct gguf_error err;
    gguf_error_clear(&err);
    double start = scratch_cpu_time(), took;
    bool good = gguf_imatrix_create(&a, NULL, &err) == GGUF_OK &&
                gguf_imatrix_add(a, "t", 1, 1, &one, &one, &err) == GGUF_OK;
    for (unsigned i = 0; good && i < 2 * N_TEXTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u/%06u", i % 2, i / 2);
        good = gguf_imatrix_add_chunks(a, name, 1, 1, &err) == GGUF_OK;
    }
    good = good &&
           gguf_imatrix_save(a, path, GGUF_IMATRIX_GGUF, 0, &err) == GGUF_OK &&
           gguf_imatrix_load(&b, path, NULL, &err) == GGUF_OK &&
           gguf_imatrix_dataset(b, 2 * N_TEXTS - 1) &&
           !gguf_imatrix_dataset(b, 2 * N_TEXTS);
    took = seconds_since(start);
    ok(good && took < LIMIT, "%d texts, noted and read: %.2f s %s",
       2 * N_TEXTS, took, err.message);
    start = scratch_cpu_time();
    gguf_imatrix_hide_paths(b);
    took = seconds_since(start);
    ok(good && took < LIMIT && !gguf_imatrix_dataset(b, N_TEXTS) &&
           !strcmp(gguf_imatrix_dataset(b, N_TEXTS - 1), "099999"),
       "without folders half the number: %.2f s", took);
    /* a text is found by its new name only */
    ok(gguf_imatrix_add_chunks(b, "000001", 1, 1, &err) == GGUF_OK &&
           !gguf_imatrix_dataset(b, N_TEXTS) &&
           gguf_imatrix_add_chunks(b, "0/000001", 1, 1, &err) == GGUF_OK &&
           gguf_imatrix_dataset(b, N_TEXTS),
       "and they are known by these");
    gguf_imatrix_destroy(a);
    gguf_imatrix_destroy(b);
}

/* Each tensor has a scale beside it, which is multiplied into its weights. */
static void check_scales(void)
{
    enum { N = 40000 };
    static const uint8_t zeros[72];
    char *path = scratch_path(dir, "scales");
    struct gguf_error err;
    struct gguf_writer *w;
    struct gguf_output_params op = GGUF_INIT(struct gguf_output_params);
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    static const int64_t ne[2] = { 64, 2 }, one = 1;
    gguf_error_clear(&err);
    bool good = gguf_writer_create(&w, NULL, NULL, &err) == GGUF_OK;
    for (unsigned i = 0; good && i < 2 * N; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%u.%s", i / 2,
                 i % 2 ? "scale" : "weight");
        good = gguf_writer_add_tensor(
                   w, (struct gguf_str){ name, strlen(name) },
                   i % 2 ? GGUF_DTYPE_F32 : GGUF_DTYPE_NVFP4, i % 2 ? 1 : 2,
                   i % 2 ? &one : ne, &err) == GGUF_OK;
    }
    op.no_sync = 1;
    good = good && gguf_writer_begin_file(w, path, &op, &err) == GGUF_OK;
    for (unsigned i = 0; good && i < 2 * N; i++)
        good = gguf_writer_begin_tensor(w, i, &err) == GGUF_OK &&
               gguf_writer_write(w, zeros, i % 2 ? 4 : 72, &err) == GGUF_OK;
    good = good && gguf_writer_commit(w, &err) == GGUF_OK &&
           gguf_recipe_preset(&r, "Q8_0", NULL, &err) == GGUF_OK;
    gguf_writer_destroy(w);
    p.recipe = r;
    p.allow_requantize = 1;
    double start = scratch_cpu_time();
    good = good && gguf_quant_create(&q, path, &p, &err) == GGUF_OK;
    double took = seconds_since(start);
    ok(good && gguf_quant_n_tensors(q) == N && took < LIMIT,
       "%d tensors with scales are planned: %.2f s %s", N, took, err.message);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.150s/gguf-check-XXXXXX", tmp ? tmp : "/tmp");
    if (!scratch_make(dir)) {
        perror(dir);
        return 99;
    }
    check_entries();
    check_texts();
    check_scales();
    scratch_clean(dir);
    ok(rmdir(dir) == 0, "nothing is left");
    return done_testing();
}
