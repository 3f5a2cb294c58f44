/* SPDX-License-Identifier: MIT */
/* check-cache.c - keys and values stored in every cache type
 *
 * The error of a stored row is within the bound that gguf/session.h states.
 * Logits are compared with a double-precision evaluation that uses the stored
 * keys and values, so that only rounding is left. In every architecture, the
 * stored bytes are those that the encoder makes of the rows of a session with
 * an F32 cache.
 */
#include "config.h"
#include "run/session_int.h"
#include "tests/kern/kern.h"
#include "tests/model/gen.h"
#include "tests/model/ref.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include "base/compiler.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

static const uint32_t types[] = { GGUF_DTYPE_F32,   GGUF_DTYPE_F16,
                                  GGUF_DTYPE_BF16,  GGUF_DTYPE_Q8_0,
                                  GGUF_DTYPE_Q5_1,  GGUF_DTYPE_Q5_0,
                                  GGUF_DTYPE_Q4_1,  GGUF_DTYPE_Q4_0,
                                  GGUF_DTYPE_IQ4_NL };
enum { N_TYPES = GG_LEN(types) };

static struct gg_kern kern; /* C kernels for tensors in memory */

static const char *name_of(uint32_t type)
{
    return gguf_dtype_find(type)->name;
}

/* ---- rows ---- */

/* Smallest, largest and extreme of the 32 numbers of a block. */
struct span {
    double lo, hi, m;
    double end; /* the number of largest magnitude */
};

static struct span span_of(const float *x)
{
    struct span s = { (double)x[0], (double)x[0], 0, 0 };
    for (int i = 0; i < 32; i++) {
        const double v = (double)x[i];
        s.lo = fmin(s.lo, v);
        s.hi = fmax(s.hi, v);
        if (fabs(v) > s.m) {
            s.m = fabs(v);
            s.end = v;
        }
    }
    return s;
}

/* Bound of |x - y|, where y is x after encoding and decoding. It leaves out
 * rounding in the encoder's own floats, which is 32 units in the last place of
 * the extreme. */
static double bound_of(uint32_t type, double x, double y, const struct span *s)
{
    const double f16 = 0x1p-11 * fabs(y), w = s->hi - s->lo;
    const double affine = 0x1p-11 * (w + fabs(s->lo)) + 0x1p-25;
    const bool far = x * s->end < 0; /* the sign differs from the extreme's */
    switch (type) {
    case GGUF_DTYPE_F32: return 0;
    case GGUF_DTYPE_F16: return fmax(0x1p-11 * fabs(x), 0x1p-25);
    case GGUF_DTYPE_BF16: return 0x1p-8 * fabs(x);
    case GGUF_DTYPE_Q8_0: return s->m / 254 + fmax(f16, 127 * 0x1p-25);
    case GGUF_DTYPE_Q5_0:
        return s->m / (far ? 16 : 32) + fmax(f16, 16 * 0x1p-25);
    case GGUF_DTYPE_Q4_0:
        return s->m / (far ? 8 : 16) + fmax(f16, 8 * 0x1p-25);
    case GGUF_DTYPE_Q5_1: return w / 62 + affine + 31 * 0x1p-25;
    case GGUF_DTYPE_Q4_1: return w / 30 + affine + 15 * 0x1p-25;
    default:
        return INFINITY; /* IQ4_NL has a bound on squares, see
                               * table_error() */
    }
}

/* Error of a block of IQ4_NL as a fraction of its bound. The sum of squared
 * errors, weighted by x^2, is at most that of the scale that maps the extreme
 * to -127. */
static double table_error(const float *x, const float *y, const struct span *s)
{
    static const int level[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113 };
    double got = 0, most = 0, scale = 0;
    for (int i = 0; i < 32; i++) {
        const double v = (double)x[i], w = v * v;
        double near = INFINITY;
        for (int l = 0; l < 16; l++)
            near = fmin(near, fabs(v - level[l] * s->end / -127));
        got += w * pow(v - (double)y[i], 2);
        most += w * near * near;
        scale += w * pow(fmax(0x1p-11 * fabs((double)y[i]), 127 * 0x1p-25), 2);
    }
    return s->m > 0 ? sqrt(got) / (sqrt(most) + sqrt(scale)) : 0;
}

/* Largest error of n numbers, as a fraction of the bound. */
static double row_error(uint32_t type, const float *x, const float *y,
                        size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i += 32) {
        const struct span s = span_of(x + i);
        for (size_t j = i; j < i + 32; j++) {
            const double v = (double)x[j], u = (double)y[j];
            const double most = bound_of(type, v, u, &s) +
                                (type == GGUF_DTYPE_F32 ? 0 : 0x1p-19 * s.m);
            const double e = fabs(v - u);
            worst = fmax(worst, most > 0 ? e / most : e > 0 ? INFINITY : 0);
        }
        if (type == GGUF_DTYPE_IQ4_NL)
            worst = fmax(worst, table_error(x + i, y + i, &s) / (1 + 1e-5));
    }
    return worst;
}

/* A random row: sums of few or of many draws, outliers, blocks of one sign, of
 * zeros or of one number, with magnitudes from 1e-3 to 1e3. */
static void random_row(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 32) {
        const unsigned kind = rnd_below(6);
        const double size = pow(10, (double)rnd_below(7) - 3);
        for (size_t j = i; j < i + 32; j++) {
            double v = (double)rnd_f32();
            if (kind == 1)
                v += (double)rnd_f32() + (double)rnd_f32();
            if (kind == 2)
                v = rnd_below(16) ? v : 30 * v;
            if (kind == 3)
                v = fabs(v) + 2;
            if (kind == 4)
                v = rnd_below(3) ? 0 : v;
            x[j] = (float)(size * (kind == 5 && rnd_below(9) ? 0.5 : v));
        }
    }
    if (rnd_below(8) == 0)
        memset(x, 0, 32 * sizeof *x);
}

static void check_rows(void)
{
    enum { N = 320 };
    const int n_rows = getenv("GGUF_TEST_LONG") ? 200000 : 2000;
    float x[N], y[N];
    unsigned char bytes[N * sizeof(float)];
    struct test_level level[8];
    const unsigned n_levels = test_levels(level);
    struct gg_kern k;
    gg_kern_init(&k, level[n_levels - 1].mask);
    gg_codec_kern_set_native_order(k.codec);
    for (size_t t = 0; t < N_TYPES; t++) {
        const struct gg_codec_kern *c = &k.codec[gg_dtype_index(types[t])];
        double worst = 0;
        for (int i = 0; i < n_rows; i++) {
            random_row(x, N);
            c->encode(x, bytes, 1, N, NULL);
            c->decode(bytes, y, N);
            worst = fmax(worst, row_error(types[t], x, y, N));
        }
        /* the bound is tight: the worst error comes near it */
        ok(worst <= 1 && (types[t] == GGUF_DTYPE_F32 || worst > 0.5),
           "%s: %d random rows, errors of %.3f of the bound",
           name_of(types[t]), n_rows, worst);
    }
}

/* ---- whole evaluations ---- */

enum { V = 96, N_TOK = 40, D = 32, N_KV = 2, N_LAYER = 2 };

static const struct gen_spec spec = { .arch = "llama",
                                      .n_vocab = V,
                                      .n_ctx = 64,
                                      .n_embd = 64,
                                      .n_layer = N_LAYER,
                                      .n_ff = 96,
                                      .n_head = 4,
                                      .n_head_kv = N_KV,
                                      .head_dim = D,
                                      .eps = 1e-5f,
                                      .freq_base = 10000 };

static void make_tokens(gguf_token *t, int n)
{
    for (int i = 0; i < n; i++)
        t[i] = (i * 37 + 11) % V;
}

/* Find a tensor of a session's cache. */
static const struct gguf_tensor *kept_tensor(const struct run *r,
                                             const char *what, unsigned il)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%u", what, il);
    return gguf_ctx_find_tensor(r->session->cache_ctx, name);
}

/* Decode its first n rows to floats. Free them with free(). */
static float *decode_rows(const struct gguf_tensor *t, size_t n)
{
    const size_t d = (size_t)t->ne[0];
    float *x = malloc(n * d * sizeof *x);
    for (size_t i = 0; i < n; i++)
        kern.codec[gg_dtype_index(t->dtype)].decode(
            (const char *)t->data + i * (size_t)t->nb[1], x + i * d, d);
    return x;
}

static void check_pair(const struct gen *g, const void *file, size_t size,
                       uint32_t k, uint32_t v, size_t at_once)
{
    static double want[N_TOK * V];
    static float got[N_TOK * V];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct ref_kept rows = { { NULL }, { NULL } };
    gguf_token tok[N_TOK];
    struct run r;
    p.key_dtype = gguf_dtype_find(k);
    p.value_dtype = gguf_dtype_find(v);
    p.n_ctx = N_TOK;
    make_tokens(tok, N_TOK);
    bool good = run_open(&r, file, size, 2, &p);
    for (size_t i = 0; good && i < N_TOK; i += at_once) {
        struct gguf_batch b = { .struct_size = sizeof b,
                                .n = at_once,
                                .token = tok + i };
        good = run_logits(&r, &b, got + i * V);
    }
    for (unsigned il = 0; good && il < N_LAYER; il++) {
        good = good && kept_tensor(&r, "cache_k", il)->dtype == k &&
               kept_tensor(&r, "cache_v", il)->dtype == v;
        rows.k[il] = decode_rows(kept_tensor(&r, "cache_k", il), N_TOK);
        rows.v[il] = decode_rows(kept_tensor(&r, "cache_v", il), N_TOK);
    }
    double d = 0, s = 0;
    if (good)
        ref_logits_of(g, &spec, tok, N_TOK, &rows, want);
    for (size_t i = 0; i < N_TOK * V; i++) {
        d += (want[i] - (double)got[i]) * (want[i] - (double)got[i]);
        s += want[i] * want[i];
    }
    ok(good && d / s < 1e-11,
       "keys of %s, values of %s, %zu tokens at once: %s%.2g from one in "
       "double with the rows that were kept",
       name_of(k), name_of(v), at_once, good ? "" : r.err.message, d / s);
    for (unsigned il = 0; il < N_LAYER; il++) {
        free((void *)(uintptr_t)rows.k[il]);
        free((void *)(uintptr_t)rows.v[il]);
    }
    run_close(&r);
}

static void check_evaluations(const struct gen *g, const void *file,
                              size_t size)
{
    for (size_t k = 0; k < N_TYPES; k++)
        for (size_t v = 0; v < N_TYPES; v++)
            if (k == v || (k + v) % 4 == 1)
                check_pair(g, file, size, types[k], types[v],
                           k == v  ? 1
                           : v % 2 ? 8
                           : k % 2 ? 4
                                   : N_TOK);
}

/* Logits have the same bits however the batch is cut and with any number of
 * threads. */
static void check_cuts(const void *file, size_t size)
{
    static float all[N_TOK * V], got[N_TOK * V];
    static const uint32_t cuts[] = { 40, 4, 7, 13 };
    gguf_token tok[N_TOK];
    struct gguf_batch b = { .struct_size = sizeof b, .n = N_TOK };
    make_tokens(tok, N_TOK);
    b.token = tok;
    for (size_t t = 0; t < N_TYPES; t++) {
        unsigned n_same = 0;
        bool good = true;
        struct run r;
        for (size_t i = 0; i < GG_LEN(cuts) && good; i++) {
            struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
            p.key_dtype = p.value_dtype = gguf_dtype_find(types[t]);
            p.n_ctx = N_TOK;
            p.n_ubatch = cuts[i];
            good = run_open(&r, file, size, 1 + (unsigned)i % 3, &p) &&
                   run_logits(&r, &b, i ? got : all);
            n_same += good && i && !memcmp(all, got, sizeof all);
            run_close(&r);
        }
        ok(good && n_same == GG_LEN(cuts) - 1,
           "%s: the same bits in passes of any size (%u)", name_of(types[t]),
           n_same);
    }
}

/* ---- rows in the cache, in all architectures ---- */

/* Is this tensor of the first layer that has keys, or of the encoder? Its
 * input does not depend on the cache type. first: suffix of that layer's name,
 * set once it is found. */
static bool is_first(const char *name, const char **first)
{
    if (!strncmp(name, "cross_", 6))
        return true;
    if (strncmp(name, "cache_", 6) != 0)
        return false;
    *first = *first ? *first : strchr(name, '.');
    return !strcmp(strchr(name, '.'), *first);
}

static bool same_rows(const struct gguf_tensor *t, const struct gguf_tensor *f)
{
    const size_t d = (size_t)t->ne[0], size = (size_t)t->nb[1];
    unsigned char *row = malloc(size);
    bool same = true;
    for (int64_t i = 0; i < t->ne[1] && same; i++) {
        const float *x = (const float *)(const void *)((const char *)f->data +
                                                       i * f->nb[1]);
        kern.codec[gg_dtype_index(t->dtype)].encode(x, row, 1, d, NULL);
        same = !memcmp(row, (const char *)t->data + i * t->nb[1], size);
    }
    free(row);
    return same;
}

struct counts {
    unsigned n_rows, n_index, n_cross, n_refused, n_run, n_states;
};

/* Compare the cache tensors of both sessions: states are F32, rows are
 * encoded. */
static bool compare_kept(const struct run *r, const struct run *f,
                         uint32_t type, struct counts *n)
{
    const struct gguf_tensor *t = gguf_ctx_first_tensor(r->session->cache_ctx);
    const char *first = NULL;
    for (; t; t = gguf_ctx_next_tensor(r->session->cache_ctx, t)) {
        const char *name = t->name;
        /* a state, the tokens of an unfinished block, or adapters of tokens;
         * recent token ids are integers */
        if (!strncmp(name, "state", 5) || strstr(name, "ring") ||
            !strncmp(name, "adapters", 8)) {
            n->n_states++;
            if (t->dtype != (strstr(name, "recent") ? (uint32_t)GGUF_DTYPE_I32
                                                    : GGUF_DTYPE_F32))
                return false;
            continue;
        }
        if (t->dtype != type)
            return false;
        if (!is_first(name, &first))
            continue;
        n->n_rows++;
        n->n_index += strstr(name, "index") != NULL;
        n->n_cross += strstr(name, "cross") != NULL;
        if (!same_rows(t, gguf_ctx_find_tensor(f->session->cache_ctx, name)))
            return false;
    }
    return true;
}

static bool evaluate_model(struct run *r, const struct skeleton *m,
                           const void *file, size_t size, uint32_t type,
                           float *out)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[SKELETON_TOKENS];
    skeleton_tokens_of(m, tok);
    p.n_ctx = SKELETON_TOKENS;
    p.key_dtype = p.value_dtype = gguf_dtype_find(type);
    b.n = SKELETON_TOKENS;
    b.token = tok;
    return run_open(r, file, size, 1, &p) &&
           run_encode(r, tok, SKELETON_TOKENS) && run_logits(r, &b, out);
}

/* Heads of this model do not fit the type's blocks, and the message names the
 * key. */
static bool is_refused(const struct run *r)
{
    return r->err.status == GGUF_E_UNSUPPORTED && !r->session &&
           strstr(r->err.message, "not a multiple of the 32") &&
           (strstr(r->err.message, ".attention.key_length") ||
            strstr(r->err.message, ".attention.kv_lora_rank") ||
            strstr(r->err.message, ".rope.dimension_count"));
}

enum { N_OUT = SKELETON_TOKENS * SKELETON_VOCAB };

static void check_arch(const char *name, size_t number, struct counts *n)
{
    static struct skeleton m;
    static float want[N_OUT], got[N_OUT];
    const uint32_t pick[] = { GGUF_DTYPE_Q8_0, types[1 + number % 8] };
    struct run f, r;
    size_t size;
    if (!skeleton_open(&m, name))
        abort();
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    if (evaluate_model(&f, &m, file, size, GGUF_DTYPE_F32, want) &&
        f.session->n_cache_buffers)
        for (size_t i = 0; i < GG_LEN(pick); i++) {
            const bool run = evaluate_model(&r, &m, file, size, pick[i], got);
            const bool refused = !run && is_refused(&r);
            const unsigned before = n->n_rows;
            const double d =
                run ? run_nmse(got, want, SKELETON_TOKENS * skeleton_width(&m))
                    : 0;
            n->n_run += run;
            n->n_refused += refused;
            const bool same = run && compare_kept(&r, &f, pick[i], n);
            /* Another expert or another key may have been chosen. Models with
             * states only have the same digits. */
            ok(refused || (same && d < (i ? INFINITY : 0.1) &&
                           (d > 0) == (n->n_rows > before)),
               "%s, %s: %s%.2g", name, name_of(pick[i]),
               run ? "rows are as encoded, outputs are apart by "
                   : r.err.message,
               d);
            run_close(&r);
        }
    run_close(&f);
    free(file);
    skeleton_close(&m);
}

static void check_archs(void)
{
    static char names[512][64];
    struct counts n = { 0 };
    const size_t all = skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < all; i++)
        check_arch(names[i], i, &n);
    ok(n.n_run > 150 && n.n_refused > 10 && n.n_index && n.n_cross &&
           n.n_states,
       "%u evaluations, %u refused; %u tensors of rows, %u of an indexer's, "
       "%u of encoded texts, %u states",
       n.n_run, n.n_refused, n.n_rows, n.n_index, n.n_cross, n.n_states);
}

/* ---- parameters ---- */

static void check_size(const void *file, size_t size)
{
    for (size_t t = 0; t < N_TYPES; t++) {
        struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
        const uint32_t k = types[t], v = types[N_TYPES - 1 - t];
        uint64_t row[2] = { 0 }, got[2] = { 0 }, cache = 0, graph = 0;
        struct run r;
        p.key_dtype = gguf_dtype_find(k);
        p.value_dtype = gguf_dtype_find(v);
        p.n_ctx = 64;
        p.n_seq = 3;
        const uint64_t n = (uint64_t)p.n_ctx * p.n_seq * N_LAYER;
        bool good =
            !gguf_dtype_row_size(k, (uint64_t)D * N_KV, &row[0], NULL) &&
            !gguf_dtype_row_size(v, (uint64_t)D * N_KV, &row[1], NULL) &&
            run_open(&r, file, size, 1, &p);
        p.backend = r.backend;
        if (good)
            gguf_session_memory_size(r.session, &got[0], &got[1]);
        good = good && gguf_session_estimate_memory(r.model, &p, &cache,
                                                    &graph, &r.err) == GGUF_OK;
        ok(good && got[0] == n * (row[0] + row[1]) && got[0] == cache &&
               got[1] == graph,
           "keys of %s, values of %s: %" PRIu64 " bytes, as was estimated",
           name_of(k), name_of(v), got[0]);
        run_close(&r);
    }
}

static void check_refusal(struct gen_spec s, uint32_t k, uint32_t v,
                          enum gguf_status want, const char *says,
                          const char *too)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gen g;
    struct run r;
    size_t size;
    gen_init(&g, 1);
    gen_model(&g, &s);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    p.key_dtype = gguf_dtype_find(k);
    p.value_dtype = gguf_dtype_find(v);
    const bool good = run_open(&r, file, size, 1, &p);
    uint64_t cache = 1, graph = 1;
    struct gguf_error err = { 0 };
    p.backend = r.backend;
    ok(!good && r.err.status == want && strstr(r.err.message, says) &&
           strstr(r.err.message, too) &&
           gguf_session_estimate_memory(r.model, &p, &cache, &graph, &err) ==
               want &&
           !cache && !graph,
       "%s", good ? "nothing is refused" : r.err.message);
    run_close(&r);
    free(file);
    gen_fini(&g);
}

static void check_refused(const void *file, size_t size)
{
    struct gen_spec s = spec;
    check_refusal(s, GGUF_DTYPE_Q4_K, 0, GGUF_E_INVALID,
                  "keys of type Q4_K (12)",
                  "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL");
    check_refusal(s, 0, 4, GGUF_E_INVALID, "values of type", "(4)");
    s.head_dim = 20;
    check_refusal(
        s, GGUF_DTYPE_Q8_0, 0, GGUF_E_UNSUPPORTED,
        "llama.attention.key_length: keys of layer 0 have 20 elements",
        "the 32 in a block of Q8_0");
    check_refusal(s, GGUF_DTYPE_BF16, GGUF_DTYPE_IQ4_NL, GGUF_E_UNSUPPORTED,
                  "llama.attention.value_length: values of layer 0 have 20 ",
                  "the 32 in a block of IQ4_NL");
    /* a program built before there were types */
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    p.struct_size = offsetof(struct gguf_session_params, key_dtype);
    /* ignored: the struct is too short for them */
    p.key_dtype = p.value_dtype = gguf_dtype_find(GGUF_DTYPE_Q4_K);
    ok(run_open(&r, file, size, 1, &p) &&
           kept_tensor(&r, "cache_k", 0)->dtype == GGUF_DTYPE_F32 &&
           kept_tensor(&r, "cache_v", 1)->dtype == GGUF_DTYPE_F32,
       "the default of both: %s", r.session ? "F32" : r.err.message);
    run_close(&r);
}

int main(void)
{
    struct gen g;
    size_t size;
    gg_kern_init(&kern, 0);
    gg_codec_kern_set_native_order(kern.codec);
    gen_init(&g, 1);
    gen_model(&g, &spec);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    check_rows();
    check_evaluations(&g, file, size);
    check_cuts(file, size);
    check_archs();
    check_size(file, size);
    check_refused(file, size);
    free(file);
    gen_fini(&g);
    return done_testing();
}
