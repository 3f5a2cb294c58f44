/* SPDX-License-Identifier: MIT */
/* check-collect.c - importance data: sums agree with a forward pass in double
 * precision, and do not depend on how they are collected */
#include "config.h"
#include "base/compiler.h"
#include "eval/collect_int.h"
#include "gguf/collect.h"
#include "run/session_int.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/ref.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { CTX = 24, CHUNKS = 7, V = 300, N = CHUNKS * CTX + 5 };

static const struct gen_spec spec = { GEN_LAYERS(2), .n_vocab = V };

static struct gen g;
static void *file;
static size_t file_size;
static gguf_token text[N];
static char dir[] = "/tmp/check-collect-XXXXXX";

/* ---- a collection ---- */

struct how {
    unsigned n_threads;
    uint32_t n_ubatch;
    size_t first, max;
    size_t held; /* chunks computed layer by layer; 0: chunk by chunk */
    const struct gguf_allocator *a;
};

static bool open_session(struct run *r, const struct how *h)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = CTX;
    p.n_ubatch = h->n_ubatch;
    bool good = run_open(r, file, file_size, h->n_threads, &p);
    if (!good)
        printf("# %s\n", r->err.message);
    return good;
}

static struct gguf_collect *make_collect(const struct gguf_allocator *a)
{
    struct gguf_collect_params p = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_collect *c;
    p.allocator = a;
    p.n_ctx = CTX;
    p.output = true;
    return gguf_collect_create(&c, &p, NULL) == GGUF_OK ? c : NULL;
}

/* Bytes that n_chunks chunks store between two layers. */
static uint64_t stored_bytes(struct run *r, size_t n_chunks)
{
    bool want[CTX];
    struct gguf_batch b = GGUF_BATCH_INIT;
    uint64_t size = 0;
    memset(want, 1, CTX);
    b.n = CTX;
    b.token = text;
    b.want = want;
    if (gguf_session_layered_size(r->session, &b, &size, NULL) != GGUF_OK)
        return 0;
    return n_chunks * size;
}

static enum gguf_status add_chunks(struct gguf_collect *c, const struct how *h,
                                   struct gguf_error *err)
{
    struct gguf_collect_run_params cr = GGUF_COLLECT_RUN_PARAMS_INIT;
    struct run r;
    enum gguf_status st = GGUF_E_IO;
    cr.dataset = "a text";
    cr.first_chunk = h->first;
    cr.max_chunks = h->max;
    if (open_session(&r, h)) {
        cr.pool = r.pool;
        cr.max_stored = stored_bytes(&r, h->held);
        st = gguf_collect_run(c, r.session, text, N, &cr, err);
    }
    run_close(&r);
    return st;
}

static struct gguf_collect *collect_text(const struct how *h)
{
    struct gguf_error err;
    struct gguf_collect *c = make_collect(h->a);
    if (c && add_chunks(c, h, &err) != GGUF_OK) {
        printf("# %s\n", err.message);
        gguf_collect_destroy(c);
        c = NULL;
    }
    return c;
}

/* Do both have the same matrices, counts and digits? */
static bool same_sums(const struct gguf_collect *a,
                      const struct gguf_collect *b)
{
    if (!a || !b || a->n_entries != b->n_entries || !a->n_entries)
        return false;
    for (size_t k = 0; k < a->n_entries; k++) {
        const struct gg_collect_entry *x = a->entries[k];
        const struct gg_collect_entry *y =
            gg_collect_find(b, (struct gguf_str){ x->name, strlen(x->name) });
        const size_t n = (size_t)(x->n_cols * x->n_mats);
        if (!y || x->n_cols != y->n_cols || x->n_mats != y->n_mats ||
            memcmp(x->total.high, y->total.high, 8 * n) != 0 ||
            memcmp(x->total.low, y->total.low, 8 * n) != 0 ||
            memcmp(x->total.place, y->total.place, n) != 0 ||
            memcmp(x->count, y->count, 8 * (size_t)x->n_mats) != 0) {
            printf("# '%s' differs: counts %d and %d, digits %d %d %d\n",
                   x->name, (int)x->count[0], y ? (int)y->count[0] : -1,
                   y ? memcmp(x->total.high, y->total.high, 8 * n) : 0,
                   y ? memcmp(x->total.low, y->total.low, 8 * n) : 0,
                   y ? memcmp(x->total.place, y->total.place, n) : 0);
            return false;
        }
    }
    return true;
}

/* Are the files that both write equal byte by byte? */
static bool same_order(const struct gguf_collect *a,
                       const struct gguf_collect *b)
{
    bool good = a && b && a->n_entries == b->n_entries;
    for (size_t k = 0; good && k < a->n_entries; k++)
        good = !strcmp(a->entries[k]->name, b->entries[k]->name);
    return good;
}

/* ---- against double precision ---- */

struct wanted {
    const struct gguf_collect *c;
    double sum[64][64]; /* [entry][column] */
    uint64_t n[64];
    int n_unknown;
};

static void on_seen(void *user, const char *name, int token, const double *x,
                    int n)
{
    struct wanted *w = user;
    size_t k = 0;
    (void)token;
    while (k < w->c->n_entries && strcmp(w->c->entries[k]->name, name) != 0)
        k++;
    if (k == w->c->n_entries || w->c->entries[k]->n_cols != (uint64_t)n) {
        w->n_unknown++;
        return;
    }
    for (int j = 0; j < n; j++)
        w->sum[k][j] += x[j] * x[j];
    w->n[k]++;
}

static void check_reference(void)
{
    static struct wanted w;
    const struct how h = { .n_threads = 2 };
    struct gguf_collect *c = collect_text(&h);
    double *logits = ref_doubles(CTX * V), worst = 0;
    size_t n_counts = 0;
    w.c = c;
    for (int k = 0; c && k < CHUNKS; k++)
        ref_logits_seen(&g, &spec, text + k * CTX, CTX, logits, on_seen, &w);
    for (size_t k = 0; c && k < c->n_entries; k++) {
        const struct gg_collect_entry *e = c->entries[k];
        n_counts += e->count[0] == CHUNKS * CTX && w.n[k] == CHUNKS * CTX;
        for (uint64_t j = 0; j < e->n_cols; j++)
            worst = fmax(
                worst,
                fabs(gg_collect_total_value(&e->total, j) / w.sum[k][j] - 1));
    }
    ok(c && c->n_entries == 15 && n_counts == 15 && !w.n_unknown,
       "the matrices of two layers and the output: %d rows each",
       CHUNKS * CTX);
    ok(c && worst < 1e-6,
       "every sum within 1e-6 of one in double precision: %.2g", worst);
    free(logits);
    gguf_collect_destroy(c);
}

/* ---- the same digits ---- */

static void check_digits(void)
{
    static const struct how ways[] = {
        { .n_threads = 1 },
        { .n_threads = 3, .n_ubatch = 11 }, /* micro-batches of 11, 11 and 2 */
        { .n_threads = 2, .n_ubatch = 5 },
        { .n_threads = 2, .n_ubatch = 4 * CTX },
        { .n_threads = 2, .held = 3 }, /* groups of 3, 3 and 1 chunks */
        { .n_threads = 1, .n_ubatch = 11, .held = 1 },
        { .n_threads = 3, .n_ubatch = 5, .held = 2 * CHUNKS },
    };
    const struct how h = { .n_threads = 2 };
    struct gguf_collect *c = collect_text(&h);
    for (size_t k = 0; k < GG_LEN(ways); k++) {
        struct gguf_collect *other = collect_text(&ways[k]);
        ok(same_sums(c, other) && same_order(c, other),
           "%u threads, %u tokens together, %zu chunks in a layer",
           ways[k].n_threads, ways[k].n_ubatch, ways[k].held);
        gguf_collect_destroy(other);
    }
    gguf_collect_destroy(c);
}

static bool stop_at_third(void *user, const struct gguf_collect_chunk *chunk)
{
    (void)user;
    return chunk->n_done == 3;
}

/* Merging parts from files, in any order, gives the sums of one run. A stopped
 * run continues with the same sums. */
static void check_parts(void)
{
    static const struct how parts[] = {
        { .n_threads = 1, .first = 5 },
        { .n_threads = 2, .first = 0, .max = 2, .n_ubatch = 9 },
        { .n_threads = 2, .first = 2, .max = 3 },
    };
    const struct how h = { .n_threads = 2 };
    struct gguf_collect *c = collect_text(&h), *all = NULL;
    struct gguf_collect_info info = GGUF_COLLECT_INFO_INIT;
    struct gguf_error err;
    bool good = true;
    for (size_t k = 0; k < GG_LEN(parts); k++) {
        struct gguf_collect *one = collect_text(&parts[k]), *back = NULL;
        const char *path = scratch_path(dir, "part");
        good = good && one && !gguf_collect_save(one, path, 1, &err) &&
               !gguf_collect_load(&back, path, NULL, &err) &&
               same_sums(one, back);
        gguf_collect_destroy(one);
        if (!all) {
            all = back;
            continue;
        }
        good = good && !gguf_collect_merge(all, back, &err);
        gguf_collect_destroy(back);
    }
    good = good && all && !gguf_collect_info(all, &info, &err);
    ok(good && same_sums(c, all) && info.n_done == CHUNKS &&
           info.n_chunks == CHUNKS && info.n_ctx == CTX && info.output,
       "three parts from files make the digits of one run%s",
       good ? "" : err.message);
    ok(c && all && gguf_collect_merge(all, c, &err) == GGUF_E_MISMATCH &&
           same_sums(c, all),
       "a chunk that both have is refused: %s", err.message);
    gguf_collect_destroy(all);
    gguf_collect_destroy(c);
}

/* Stop a run after three chunks, or with held chunks after the third one's
 * group, and continue it. */
static void check_stopped(size_t held)
{
    const struct how h = { .n_threads = 2, .held = held };
    struct gguf_collect *c = collect_text(&h), *all = make_collect(NULL),
                        *on = NULL;
    struct gguf_collect_run_params cr = GGUF_COLLECT_RUN_PARAMS_INIT;
    struct gguf_collect_info info = GGUF_COLLECT_INFO_INIT;
    const size_t n = held ? (2 + held) / held * held : 3;
    struct gguf_error err;
    struct run r;
    bool good = open_session(&r, &h);
    cr.on_chunk.fn = stop_at_third;
    cr.max_stored = stored_bytes(&r, held);
    good = good &&
           gguf_collect_run(all, r.session, text, N, &cr, &err) ==
               GGUF_E_CANCELLED &&
           !r.session->on_graph.fn &&
           !gguf_collect_save(all, scratch_path(dir, "stopped"), 1, &err) &&
           !gguf_collect_load(&on, scratch_path(dir, "stopped"), NULL, &err);
    run_close(&r);
    good = good && on &&
           gguf_collect_chunk_state(on, n - 1) == GGUF_COLLECT_DONE &&
           gguf_collect_chunk_state(on, n) == GGUF_COLLECT_MISSING &&
           !add_chunks(on, &h, &err) && !gguf_collect_info(on, &info, &err);
    ok(good && same_sums(c, on) && info.n_done == CHUNKS,
       "a run that was stopped after %zu chunks goes on", n);
    gguf_collect_destroy(all);
    gguf_collect_destroy(on);
    gguf_collect_destroy(c);
}

/* Stop within a group's layers: none of its chunks is counted. */
static bool stop_at_half(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    return done > total / 2;
}

static void check_half(void)
{
    const struct how h = { .n_threads = 1 };
    struct gguf_collect *c = make_collect(NULL);
    struct gguf_collect_run_params cr = GGUF_COLLECT_RUN_PARAMS_INIT;
    struct gguf_collect_info info = GGUF_COLLECT_INFO_INIT;
    struct gguf_error err;
    struct run r;
    bool good = open_session(&r, &h);
    cr.progress.fn = stop_at_half;
    cr.max_stored = UINT64_MAX;
    ok(good &&
           gguf_collect_run(c, r.session, text, N, &cr, &err) ==
               GGUF_E_CANCELLED &&
           !gguf_collect_info(c, &info, NULL) && !info.n_done &&
           !info.n_tensors,
       "half of the layers count for nothing: %s", err.message);
    cr.progress.fn = NULL;
    cr.max_stored = stored_bytes(&r, 1) - 1;
    ok(gguf_collect_run(c, r.session, text, N, &cr, &err) == GGUF_E_LIMIT &&
           strstr(err.message, "a chunk leaves "),
       "%s", err.message);
    run_close(&r);
    gguf_collect_destroy(c);
}

/* ---- the result ---- */

static void check_result(void)
{
    const struct how h = { .n_threads = 2 };
    struct gguf_collect *c = collect_text(&h), *empty = make_collect(NULL);
    struct gguf_imatrix *im = NULL, *none = NULL;
    struct gguf_error err;
    float sums[64], count = 0;
    size_t i = 0, n_wrong = 0;
    bool good = c && !gguf_collect_result(c, &im, &err);
    for (size_t k = 0; good && k < c->n_entries; k++) {
        const struct gg_collect_entry *e = c->entries[k];
        const struct gguf_str name = { e->name, strlen(e->name) };
        good = gguf_imatrix_find(im, name, &i) &&
               !gguf_imatrix_sums(im, i, 0, (size_t)e->n_cols, sums, &err) &&
               !gguf_imatrix_counts(im, i, 0, 1, &count, &err);
        for (uint64_t j = 0; good && j < e->n_cols; j++)
            n_wrong += sums[j] != (float)gg_collect_total_value(&e->total, j);
        n_wrong += count != CHUNKS * CTX;
    }
    ok(good && !n_wrong && gguf_imatrix_n_entries(im) == 15 &&
           gguf_imatrix_n_chunks(im) == CHUNKS &&
           gguf_imatrix_chunk_size(im) == CTX &&
           !strcmp(gguf_imatrix_dataset(im, 0), "a text"),
       "the result has the sums in single precision");
    ok(gguf_collect_result(empty, &none, &err) == GGUF_E_NOTFOUND && !none &&
           gguf_collect_save(empty, scratch_path(dir, "x"), 0, &err) ==
               GGUF_E_INVALID,
       "where nothing was collected there is neither result nor part");
    gguf_imatrix_destroy(im);
    gguf_collect_destroy(c);
    gguf_collect_destroy(empty);
}

static void check_filter(void)
{
    static const char *const in[] = { "ffn_", "attn_q" }, *ex[] = { "blk.1" };
    struct gguf_collect_params p = GGUF_COLLECT_PARAMS_INIT;
    const struct how h = { .n_threads = 2 };
    struct gguf_collect *c = NULL, *plain, *back = NULL;
    struct gguf_error err;
    p.n_ctx = CTX;
    plain = gguf_collect_create(&plain, &p, &err) ? NULL : plain;
    p.include = in;
    p.n_include = 2;
    p.exclude = ex;
    p.n_exclude = 1;
    bool good = plain && !gguf_collect_create(&c, &p, &err) &&
                !add_chunks(c, &h, &err) && !add_chunks(plain, &h, &err);
    ok(good && c->n_entries == 4 &&
           gg_collect_find(c, (struct gguf_str){ "blk.0.attn_q.weight", 19 }),
       "only matrices that are asked for");
    ok(good && plain->n_entries == 14, "without the output matrix 14");
    ok(good && gguf_collect_merge(plain, c, &err) == GGUF_E_MISMATCH, "%s",
       err.message);
    good = good && !gguf_collect_save(c, scratch_path(dir, "f"), 0, &err) &&
           !gguf_collect_load(&back, scratch_path(dir, "f"), NULL, &err);
    ok(good && !strcmp(back->filter, "+ffn_\n+attn_q\n-blk.1\n"),
       "a part stores the filter");
    gguf_collect_destroy(c);
    gguf_collect_destroy(plain);
    gguf_collect_destroy(back);
}

/* ---- what does not belong together ---- */

static void check_refused(void)
{
    const struct how h = { .n_threads = 2, .max = 1 };
    struct gguf_collect *c = collect_text(&h), *d = make_collect(NULL);
    struct gguf_error err;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    sp.n_ctx = CTX;
    sp.key_dtype = sp.value_dtype = gguf_dtype_find(GGUF_DTYPE_F16);
    bool good = c && d && run_open(&r, file, file_size, 1, &sp);
#define REFUSED(tokens, n, st, what)                                          \
    ok(good &&gguf_collect_run(c, r.session, tokens, n, NULL, &err) ==        \
               (st) &&                                                        \
           strstr(err.message, what) && !r.session->on_graph.fn,              \
       "%s", err.message)
    REFUSED(text, N, GGUF_E_MISMATCH,
            "another type of keys and values: F16 F16, not F32 F32");
    run_close(&r);
    sp.key_dtype = sp.value_dtype = gguf_dtype_find(GGUF_DTYPE_F32);
    good = good && run_open(&r, file, file_size, 1, &sp);
    REFUSED(text, N - 1, GGUF_E_MISMATCH, "another text: 172 tokens, not 173");
    REFUSED(text, CTX - 1, GGUF_E_INVALID, "23 tokens, a chunk 24");
    text[3] ^= 1;
    REFUSED(text, N, GGUF_E_MISMATCH, "another text: ");
    text[3] ^= 1;
    run_close(&r);
    sp.n_ctx = CTX - 1;
    good = good && run_open(&r, file, file_size, 1, &sp);
    REFUSED(text, N, GGUF_E_INVALID, "the session has room for 23");
    run_close(&r);
    sp.n_ctx = CTX;
    /* one weight differs */
    float *some = (float *)(void *)((char *)file + file_size - 64);
    const float kept = *some;
    *some = kept + 1;
    good = good && run_open(&r, file, file_size, 1, &sp);
    REFUSED(text, N, GGUF_E_MISMATCH, "another model: ");
    run_close(&r);
    *some = kept;
#undef REFUSED
    gguf_collect_destroy(c);
    gguf_collect_destroy(d);
}

static size_t n_bad;
static bool on_bad(void *user, const struct gguf_collect_chunk *chunk)
{
    (void)user;
    n_bad += chunk->bad && !strcmp(chunk->bad, "blk.0.attn_q.weight") &&
             chunk->chunk == 2;
    return false;
}

/* A token with an infinite embedding makes its chunk invalid, and no other. */
static void check_nonfinite(size_t held)
{
    const struct gguf_tensor_info *t;
    struct gguf_file *f = NULL;
    struct gguf_error err;
    struct gguf_collect_run_params cr = GGUF_COLLECT_RUN_PARAMS_INIT;
    const struct how h = { .n_threads = 2 };
    struct gguf_collect *c = make_collect(NULL), *rest = make_collect(NULL);
    struct gguf_collect_info info = GGUF_COLLECT_INFO_INIT;
    struct gguf_imatrix *im = NULL;
    struct run r;
    int *used = calloc(V, sizeof *used);
    size_t odd = 0;
    for (size_t i = 0; used && i < CHUNKS * CTX; i++)
        used[text[i]] |= i / CTX == 2 ? 1 : 2;
    for (size_t i = 2 * CTX; used && i < 3 * CTX; i++)
        odd = used[text[i]] == 1 ? (size_t)text[i] : odd;
    bool good = odd && !gguf_file_open_memory(&f, file, file_size, NULL, &err);
    t = good ? gguf_file_tensor_find(f, "token_embd.weight") : NULL;
    float *row =
        t ? (float *)(void *)((char *)file + gguf_file_data_off(f) + t->off) +
                odd * (size_t)t->ne[0]
          : NULL;
    const float kept = row ? *row : 0;
    gguf_file_close(f);
    if (row)
        *row = INFINITY;
    cr.on_chunk.fn = on_bad;
    n_bad = 0;
    good = good && row && open_session(&r, &h);
    cr.max_stored = good ? stored_bytes(&r, held) : 0;
    good = good && !gguf_collect_run(c, r.session, text, N, &cr, &err) &&
           !gguf_collect_info(c, &info, &err);
    ok(good && info.n_skipped == 1 && info.n_done == CHUNKS - 1 &&
           n_bad == 1 &&
           gguf_collect_chunk_state(c, 2) == GGUF_COLLECT_SKIPPED,
       "a chunk with an infinite input is left out and reported, %zu held",
       held);
    cr.on_chunk.fn = NULL;
    cr.max_chunks = 2;
    good = good && !gguf_collect_run(rest, r.session, text, N, &cr, &err);
    cr.first_chunk = 3;
    cr.max_chunks = 0;
    good = good && !gguf_collect_run(rest, r.session, text, N, &cr, &err);
    ok(good && same_sums(c, rest), "the sums are those of the other chunks");
    gguf_collect_destroy(rest);
    rest = make_collect(NULL);
    cr.first_chunk = 2;
    cr.max_chunks = 1;
    ok(good && !gguf_collect_run(rest, r.session, text, N, &cr, &err) &&
           gguf_collect_result(rest, &im, &err) == GGUF_E_NONFINITE && !im,
       "where all were left out: %s", err.message);
    run_close(&r);
    if (row)
        *row = kept;
    free(used);
    gguf_collect_destroy(c);
    gguf_collect_destroy(rest);
}

/* Each allocation of a collection and of its part fails once. */
static void check_no_memory(bool layered)
{
    struct failalloc f;
    struct run r;
    const struct how h = { .n_threads = 1 };
    unsigned n_failed = 0;
    bool good = open_session(&r, &h);
    for (bool more = good; more;) {
        struct gguf_collect_params p = GGUF_COLLECT_PARAMS_INIT;
        struct gguf_collect_run_params cr = GGUF_COLLECT_RUN_PARAMS_INIT;
        struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
        struct gguf_collect *c = NULL, *back = NULL;
        struct gguf_imatrix *im = NULL;
        const char *path = scratch_path(dir, "memory");
        p.allocator = fp.allocator = failalloc_init(&f, n_failed);
        p.n_ctx = CTX;
        p.output = true;
        cr.dataset = "a text";
        cr.max_chunks = layered ? 2 : 1;
        cr.max_stored = layered ? UINT64_MAX : 0;
        enum gguf_status st = gguf_collect_create(&c, &p, &r.err);
        if (!st)
            st = gguf_collect_run(c, r.session, text, N, &cr, &r.err);
        if (!st)
            st = gguf_collect_save(c, path, 1, &r.err);
        if (!st)
            st = gguf_collect_load(&back, path, &fp, &r.err);
        if (!st)
            st = gguf_collect_result(back, &im, &r.err);
        more = f.calls > n_failed;
        good = good && st == (more ? GGUF_E_NOMEM : GGUF_OK) &&
               r.err.status == st * more && !r.session->on_graph.fn;
        if (!good)
            printf("# allocation %u: %s\n", n_failed, r.err.message);
        gguf_imatrix_destroy(im);
        gguf_collect_destroy(c);
        gguf_collect_destroy(back);
        good = good && f.live == 0;
        more = more && good;
        n_failed += more;
        gguf_error_clear(&r.err);
    }
    ok(good && n_failed >= 20, "each of %u allocations failed once", n_failed);
    run_close(&r);
}

int main(void)
{
    gen_init(&g, 5);
    gen_model(&g, &spec);
    file = gen_file(&g, GGUF_DTYPE_F32, &file_size);
    for (int i = 0; i < N; i++)
        text[i] = (gguf_token)rnd_below(V);
    if (!file || !scratch_make(dir)) {
        printf("Bail out! no model\n");
        return 1;
    }
    check_reference();
    check_digits();
    check_parts();
    check_stopped(0);
    check_stopped(2);
    check_half();
    check_result();
    check_filter();
    check_refused();
    check_nonfinite(0);
    check_nonfinite(2);
    check_nonfinite(CHUNKS);
    check_no_memory(false);
    check_no_memory(true);
    scratch_clean(dir);
    rmdir(dir);
    gen_fini(&g);
    free(file);
    return done_testing();
}
