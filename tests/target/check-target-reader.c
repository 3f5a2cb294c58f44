/* SPDX-License-Identifier: MIT */
/* check-target-reader.c - types for a given size, for a model that is read by
 * a function */
#include "config.h"
#include "base/compiler.h"
#include "gguf/reader.h"
#include "gguf/target.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

#include <stdatomic.h>

/* A file "far:PATH", whose bytes a function gives. */
static struct far {
    uint8_t *data;
    size_t size;
    atomic_size_t n_reads, n_bytes;
    size_t fail_at; /* number of the read that fails; 0: none */
    bool open;
} far;

static bool reader_takes(void *user, const char *path)
{
    (void)user;
    return !strncmp(path, "far:", 4);
}

static enum gguf_status read_far(void *user, uint64_t off, void *dst,
                                 size_t size, struct gguf_error *err)
{
    struct far *f = user;
    if (atomic_fetch_add(&f->n_reads, 1) + 1 == f->fail_at)
        return gguf_error_set(err, GGUF_E_IO, "the line is dead");
    atomic_fetch_add(&f->n_bytes, size);
    memcpy(dst, f->data + off, size);
    return GGUF_OK;
}

static void close_far(void *user)
{
    ((struct far *)user)->open = false;
}

static enum gguf_status open_far(void *user, const char *path,
                                 struct gguf_reader *out,
                                 struct gguf_error *err)
{
    struct far *f = user;
    (void)path;
    (void)err;
    f->open = true;
    out->size = f->size;
    out->read_at = read_far;
    out->close = close_far;
    out->user = f;
    return GGUF_OK;
}

static const struct gguf_opener opener = { sizeof opener, reader_takes,
                                           open_far, &far };

/* A job, its target, and its output; out NULL: no output. */
struct job {
    struct gguf_quant_params p;
    struct gguf_target_params t;
    unsigned threads;
    struct gguf_target_result result;
    uint32_t types[64];
    size_t n_reads, n_bytes; /* reads and bytes by the target */
    struct gguf_error err;
};
#define JOB                                                                   \
    {                                                                         \
        .p = GGUF_QUANT_PARAMS_INIT, .t = GGUF_TARGET_PARAMS_INIT,            \
        .result = GGUF_TARGET_RESULT_INIT                                     \
    }

static enum gguf_status run_job(struct job *j, const char *in, const char *out)
{
    static const struct gguf_str text = { "base Q2_K\n", 10 };
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_recipe *r = NULL;
    struct gguf_pool *pool = NULL;
    struct gguf_quant *q = NULL;
    pp.n_threads = j->threads;
    o.no_sync = o.force = 1;
    gguf_error_clear(&j->err);
    enum gguf_status st = gguf_recipe_parse(&r, text, NULL, &j->err);
    if (st == GGUF_OK && j->threads)
        st = gguf_pool_create(&pool, &pp, &j->err);
    j->p.recipe = r;
    j->p.pool = pool;
    j->p.opener = &opener;
    if (st == GGUF_OK)
        st = gguf_quant_create(&q, in, &j->p, &j->err);
    j->n_reads = far.n_reads;
    j->n_bytes = far.n_bytes;
    if (st == GGUF_OK)
        st = gguf_quant_fit_size(q, &j->t, &j->result, &j->err);
    j->n_reads = far.n_reads - j->n_reads;
    j->n_bytes = far.n_bytes - j->n_bytes;
    for (size_t i = 0; st == GGUF_OK && i < gguf_quant_n_tensors(q); i++)
        j->types[i] = gguf_quant_tensor(q, i)->to;
    if (st == GGUF_OK && out)
        st = gguf_quant_run(q, out, &o, &j->err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    gguf_pool_destroy(pool);
    return st;
}

static bool same_result(const struct job *a, const struct job *b)
{
    return a->result.noise == b->result.noise &&
           a->result.size == b->result.size &&
           !memcmp(a->types, b->types, sizeof a->types);
}

static void check_same(const char *in)
{
    static const uint32_t outer[] = { GGUF_DTYPE_NVFP4, GGUF_DTYPE_Q2_K,
                                      GGUF_DTYPE_Q8_0 };
    char there[4100];
    const char *a = in_dir("a.gguf"), *b = in_dir("b.gguf");
    int bad = 0, n = 0;
    snprintf(there, sizeof there, "far:%s", in);
    for (int with = 0; with < 2; with++)
        for (unsigned threads = 0; threads < 5; threads += 2, n++) {
            struct job x = JOB;
            x.t.max_size = 400000;
            x.threads = threads;
            x.p.outer_scales = with;
            x.t.types = with ? outer : NULL;
            x.t.n_types = with ? GG_LEN(outer) : 0;
            /* a few tensors at a time */
            x.p.max_memory = threads == 2 ? 300000 : 0;
            struct job y = x;
            bad += run_job(&x, in, a) != GGUF_OK ||
                   run_job(&y, there, b) != GGUF_OK;
            bad += !same_result(&x, &y) || !same_files(a, b) || far.open;
        }
    ok(!bad, "%d times the same types, and the same file, as of a file here",
       n);
    remove(a);
    remove(b);
}

/* The target reads a row of most tensors and a matrix of a few, not the whole
 * file. */
static void check_bytes(void)
{
    struct job x = JOB;
    x.t.max_size = 400000;
    x.t.sample = GGUF_TARGET_SAMPLE_ELEMENTS;
    x.t.n_sample = 1;
    bool good = run_job(&x, "far:in", NULL) == GGUF_OK;
    ok(good && x.n_bytes < far.size / 32 && x.n_reads <= 32,
       "a sample of %zu bytes in %zu pieces, of %zu", x.n_bytes, x.n_reads,
       far.size);
    struct job y = JOB;
    y.t.max_size = 400000;
    y.t.sample = GGUF_TARGET_SAMPLE_ALL;
    good = run_job(&y, "far:in", NULL) == GGUF_OK;
    ok(good && y.n_bytes <= far.size && y.n_bytes > far.size / 2,
       "all of it: %zu bytes in %zu pieces, none twice", y.n_bytes, y.n_reads);
}

static void check_failing(void)
{
    int bad = 0;
    struct job x = JOB;
    x.t.max_size = 400000;
    x.threads = 2;
    far.n_reads = 0;
    bad += run_job(&x, "far:in", NULL) != GGUF_OK;
    const size_t n = far.n_reads, first = n - x.n_reads;
    for (size_t i = first; i < n; i++) {
        far.n_reads = 0;
        far.fail_at = i + 1;
        bad += run_job(&x, "far:in", NULL) != GGUF_E_IO || far.open ||
               strcmp(x.err.message, "the line is dead") != 0;
    }
    far.fail_at = 0;
    ok(!bad && x.n_reads, "each of %zu reads that fails ends it", n - first);
}

int main(void)
{
    const char *in = enter_model();
    far.data = slurp(in, &far.size);
    if (!far.data)
        return 99;
    check_same(in);
    check_bytes();
    check_failing();
    free(far.data);
    return leave_model();
}
