/* SPDX-License-Identifier: MIT */
/* check-attn.c - attention against double precision, at every instruction set
 * level
 *
 * The bound estimates the rounding of F32 sums. A score of length d is off by
 * d * eps * sum |q k|, a weight by the same relative error, and the output is
 * a mean of n_kv values with these weights. Attention on integers
 * (kern/attn_i16.h) adds the error of half a step of each integer.
 */
#include "config.h"
#include "base/barrier.h"
#include "base/compiler.h"
#include "cpu/attn.h"
#include "dtype/f16.h"
#include "gguf/pool.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum mask_kind { NONE, CAUSAL, WINDOW, RANDOM, HEADS, GROUPS };

struct shape {
    const char *name;
    size_t d, dv, n_tok, n_kv, n_head, n_head_kv, n_seq;
    enum mask_kind mask;
    bool half; /* k, v and mask are F16 */
    float max_bias, softcap;
};

static const struct shape shapes[] = {
    { "one token", 64, 64, 1, 7, 4, 4, 1, NONE, false, 0, 0 },
    { "one token, grouped, half", 64, 64, 1, 300, 8, 2, 1, CAUSAL, true, 0,
      0 },
    { "causal", 32, 32, 130, 130, 4, 4, 1, CAUSAL, false, 0, 0 },
    { "causal, grouped, half", 64, 64, 140, 260, 8, 1, 2, CAUSAL, true, 0, 0 },
    { "window", 32, 32, 230, 500, 4, 2, 1, WINDOW, false, 0, 0 },
    { "window, half", 16, 64, 70, 300, 8, 2, 2, WINDOW, true, 0, 30 },
    { "group of 3, odd sizes", 20, 13, 37, 129, 6, 2, 1, RANDOM, false, 0, 0 },
    { "ALiBi, 6 heads", 16, 40, 33, 65, 6, 6, 1, CAUSAL, true, 8, 0 },
    { "softcap", 48, 48, 9, 150, 4, 2, 2, RANDOM, false, 0, 20 },
    { "a mask for each head", 16, 24, 37, 140, 6, 6, 2, HEADS, false, 0, 0 },
    { "a mask for each head, grouped, half", 16, 24, 40, 140, 6, 2, 1, HEADS,
      true, 0, 0 },
    { "a mask for each head of keys", 16, 24, 37, 140, 6, 2, 1, GROUPS, false,
      0, 0 },
    { "wide group", 16, 16, 5, 17, 128, 1, 1, CAUSAL, false, 0, 0 },
    { "long rows", 320, 288, 3, 11, 2, 1, 1, NONE, false, 0, 0 },
    { "latent", 576, 512, 3, 131, 2, 1, 1, CAUSAL, true, 0, 0 },
    { "many columns", 80, 48, 130, 130, 8, 2, 1, CAUSAL, false, 0, 0 },
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

/* Types of keys and of values that a cache may have. Heads are whole blocks. */
static const int types[][2] = {
    { GG_DT_F16, GG_DT_F32 },    { GG_DT_BF16, GG_DT_BF16 },
    { GG_DT_Q8_0, GG_DT_Q8_0 },  { GG_DT_Q4_0, GG_DT_Q4_0 },
    { GG_DT_Q4_1, GG_DT_Q4_1 },  { GG_DT_Q5_0, GG_DT_Q5_0 },
    { GG_DT_Q5_1, GG_DT_Q5_1 },  { GG_DT_IQ4_NL, GG_DT_IQ4_NL },
    { GG_DT_Q8_0, GG_DT_Q5_1 },  { GG_DT_F32, GG_DT_Q4_0 },
    { GG_DT_IQ4_NL, GG_DT_F16 },
};
#define N_TYPES (sizeof types / sizeof types[0])
static const struct shape typed[] = {
    { "one token", 64, 32, 1, 300, 8, 2, 2, RANDOM, false, 0, 0 },
    { "causal, grouped", 32, 96, 37, 140, 6, 2, 1, CAUSAL, false, 0, 0 },
};

struct problem {
    const struct shape *s;
    struct gg_attn_args a;
    float *q, *k, *v, *mask; /* F32 values, contiguous */
    void *k_rows, *v_rows, *mask16;
    float *out;
    size_t out_floats;
    void *work;
    struct gg_barrier barrier;
};

static void *must_alloc(void *p)
{
    if (!p) {
        printf("Bail out! out of memory\n");
        exit(1);
    }
    return p;
}

/* n random floats that F16 stores exactly. */
static float *random_values(size_t n, float size)
{
    float *x = must_alloc(malloc((n + 1) * sizeof *x));
    for (size_t i = 0; i < n; i++)
        x[i] = gg_dtype_f16_to_f32(gg_dtype_f32_to_f16(rnd_f32() * size));
    return x;
}

/* Encode x[n], in heads of d elements, as a type. Afterwards x has the decoded
 * values. */
static void *rows_of(const struct gg_kern *kern, int type, float *x, size_t n,
                     size_t d)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(type);
    unsigned char *rows =
        must_alloc(malloc(n / dt->block_len * dt->block_size + 1));
    kern->codec[type].encode(x, rows, n / d, d, NULL);
    kern->codec[type].decode(rows, x, n);
    return rows;
}

static size_t bytes_of(int type, size_t n)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(type);
    return n / dt->block_len * dt->block_size;
}

static void *to_halves(const float *x, size_t n)
{
    uint16_t *h = must_alloc(malloc((n + 1) * sizeof *h));
    for (size_t i = 0; i < n; i++)
        h[i] = gg_dtype_f32_to_f16(x[i]);
    return h;
}

static float mask_at(const struct shape *s, size_t tok, size_t pos)
{
    if (s->mask == WINDOW) /* 150 keys, up to the token's own position */
        return pos + s->n_tok <= tok + s->n_kv &&
                       pos + s->n_tok + 150 > tok + s->n_kv
                   ? 0
                   : -INFINITY;
    if (s->mask == CAUSAL) /* the last token attends to every key */
        return pos + s->n_tok <= tok + s->n_kv
                   ? s->max_bias != 0
                         ? -(float)(tok + s->n_kv - s->n_tok - pos)
                         : 0
                   : -INFINITY;
    /* token 2 attends to no key */
    return tok == 2 || rnd_below(3) == 0 ? -INFINITY : (float)rnd_below(4) - 2;
}

/* k and v are ordered by position, head, element, as in a cache; q and out by
 * head, token, element. type: types of k and v; NULL: F32. */
static void problem_init(struct problem *p, const struct shape *s,
                         const int type[2], const struct gg_kern *kern)
{
    const size_t n_rows = s->n_tok * (s->mask == HEADS    ? s->n_head
                                      : s->mask == GROUPS ? s->n_head_kv
                                                          : 1);
    const size_t n_mask = s->n_kv * n_rows;
    *p = (struct problem){ .s = s };
    p->q = random_values(s->d * s->n_tok * s->n_head * s->n_seq, 1);
    p->k = random_values(s->d * s->n_kv * s->n_head_kv * s->n_seq, 3);
    p->v = random_values(s->dv * s->n_kv * s->n_head_kv * s->n_seq, 1);
    p->mask = random_values(n_mask, 0);
    for (size_t t = 0; t < n_rows; t++)
        for (size_t i = 0; i < s->n_kv; i++)
            p->mask[t * s->n_kv + i] = mask_at(s, t, i);
    const int plain = s->half ? GG_DT_F16 : GG_DT_F32;
    const int k_type = type ? type[0] : plain;
    const int v_type = type ? type[1] : plain;
    p->k_rows = rows_of(kern, k_type, p->k,
                        s->d * s->n_kv * s->n_head_kv * s->n_seq, s->d);
    p->v_rows = rows_of(kern, v_type, p->v,
                        s->dv * s->n_kv * s->n_head_kv * s->n_seq, s->dv);
    const size_t k_head = bytes_of(k_type, s->d);
    const size_t v_head = bytes_of(v_type, s->dv);
    p->mask16 = to_halves(p->mask, n_mask);
    p->out_floats = (s->dv + 3) * s->n_head * s->n_tok * s->n_seq;
    p->out = random_values(p->out_floats, 0);
    const size_t e = s->half ? 2 : 4, f = sizeof(float);
    p->a = (struct gg_attn_args){
        .kern = kern,
        .q = p->q,
        .k = p->k_rows,
        .v = p->v_rows,
        .q_nb = { s->d * f, s->d * s->n_tok * f,
                  s->d * s->n_tok * s->n_head * f },
        .k_nb = { s->n_head_kv * k_head, k_head,
                  s->n_head_kv * s->n_kv * k_head },
        .v_nb = { s->n_head_kv * v_head, v_head,
                  s->n_head_kv * s->n_kv * v_head },
        .k_type = k_type,
        .v_type = v_type,
        .mask = s->mask == NONE ? NULL
                : s->half       ? p->mask16
                                : p->mask,
        .mask_nb = { s->n_kv * e,
                     s->mask == HEADS ? s->n_tok * s->n_kv * e : 0, 0 },
        .mask_kv_nb = s->mask == GROUPS ? s->n_tok * s->n_kv * e : 0,
        .mask_type = s->half ? GG_DT_F16 : GG_DT_F32,
        .out = p->out,
        .out_nb = { (s->dv + 3) * f, (s->dv + 3) * s->n_head * f,
                    (s->dv + 3) * s->n_head * s->n_tok * f },
        .d = (int64_t)s->d,
        .dv = (int64_t)s->dv,
        .n_tok = (int64_t)s->n_tok,
        .n_kv = (int64_t)s->n_kv,
        .n_seq = (int64_t)s->n_seq,
        .n_head = (int64_t)s->n_head,
        .n_head_kv = (int64_t)s->n_head_kv,
        .scale = 0.2f,
        .max_bias = s->max_bias,
        .softcap = s->softcap,
    };
}

static void problem_fini(struct problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->mask);
    free(p->k_rows);
    free(p->v_rows);
    free(p->mask16);
    free(p->out);
}

static void run_attn(void *user, unsigned ith, unsigned nth)
{
    struct problem *p = user;
    (void)nth;
    gg_attn_run(&p->a, ith, p->work, &p->barrier);
}

static void problem_run(struct problem *p, struct gguf_pool *pool)
{
    const unsigned nth = gguf_pool_n_threads(pool);
    const size_t size = gg_attn_work_size(&p->a, nth);
    unsigned char *work = must_alloc(malloc(size + 2));
    memset(work, 0x7f, size + 2); /* floats of 3.4e38 */
    p->work = work + 1;
    for (size_t i = 0; i < p->out_floats; i++)
        p->out[i] = -7;
    if (gg_barrier_init(&p->barrier, nth, 0, NULL)) {
        printf("Bail out! no barrier\n");
        exit(1);
    }
    gguf_pool_run(pool, (struct gguf_pool_callback){ run_attn, p });
    gg_barrier_fini(&p->barrier);
    if (work[0] != 0x7f || work[size + 1] != 0x7f) {
        printf("Bail out! wrote outside of work\n");
        exit(1);
    }
    free(work);
}

/* A row rounded to integers: half a step, its length and its largest
 * magnitude. */
struct rounded {
    double half, length, max;
};

static struct rounded rounded_copy(const float *x, size_t n)
{
    double max = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        max = GG_MAX(max, fabs((double)x[i]));
        squares += (double)x[i] * (double)x[i];
    }
    const double length = sqrt(squares);
    return (struct rounded){ 0.501 * fmax(max / GG_ATTN_I16_MOST,
                                          length / GG_ATTN_I16_LENGTH),
                             length, max };
}

/* Largest error of a score if every element of q and k is off by half a step.
 */
static double score_slack(struct rounded q, struct rounded k, size_t d)
{
    const double n = sqrt((double)d);
    return n * (q.half * k.length + k.half * q.length + n * q.half * k.half);
}

/* Largest error of an output element if values, and weights per block of keys,
 * are rounded. v: values of key 0; w: weights with a sum of 1. The bound is
 * *plain, plus the sum of the returned factors times the magnitude of each
 * key's element. free(). */
static double *value_slack(const struct shape *s, const double *w,
                           const float *v, double *plain)
{
    double *factor = must_alloc(malloc((s->n_kv + 1) * sizeof *factor));
    *plain = 0;
    for (size_t first = 0; first < s->n_kv; first += 128) {
        const size_t end = GG_MIN(first + 128, s->n_kv);
        double most = 0, sum = 0;
        for (size_t i = first; i < end; i++) {
            factor[i] = rounded_copy(v + i * s->n_head_kv * s->dv, s->dv).max /
                        GG_ATTN_I16_VALUE;
            most = fmax(most, w[i] * factor[i]);
            sum += w[i] * factor[i];
        }
        *plain += 0.501 * sum;
        for (size_t i = first; i < end; i++)
            factor[i] = factor[i] > 0 ? 0.501 *
                                            fmax(most / GG_ATTN_I16_MOST,
                                                 sum / GG_ATTN_I16_SUM) /
                                            factor[i]
                                      : 0;
    }
    return factor;
}

/* A token of one head, and its weights. */
struct token {
    const struct problem *p;
    size_t h;
    const float *q, *k, *v, *mask; /* k, v: rows of key 0 */
    double *w;                     /* [n_kv], with a sum of 1 */
    double sum;                    /* sum of the weights before division; 0:
                                    * attends to no key */
    double slack; /* error of scores in F32, in units of eps */
    double lost;  /* error of scores on integers */
};

static void find_weights(struct token *t)
{
    const struct problem *p = t->p;
    const struct shape *s = p->s;
    const struct rounded q_rounded = rounded_copy(t->q, s->d);
    const double slope =
        (double)gg_attn_slope(s->max_bias, (int64_t)t->h, (int64_t)s->n_head);
    double max = -INFINITY, *w = t->w;
    for (size_t i = 0; i < s->n_kv; i++) {
        const float *k = t->k + i * s->n_head_kv * s->d;
        double size = 0;
        w[i] = 0;
        for (size_t e = 0; e < s->d; e++) {
            w[i] += (double)t->q[e] * (double)k[e];
            size += fabs((double)t->q[e] * (double)k[e]);
        }
        t->slack =
            fmax(t->slack, (double)(s->d + 4) * size * (double)p->a.scale);
        if (p->a.ints)
            t->lost = fmax(
                t->lost, score_slack(q_rounded, rounded_copy(k, s->d), s->d) *
                             (double)p->a.scale);
        w[i] *= (double)p->a.scale;
        if (s->softcap != 0)
            w[i] = (double)s->softcap * tanh(w[i] / (double)s->softcap);
        if (s->mask != NONE)
            w[i] += slope * (double)t->mask[i];
        max = fmax(max, w[i]);
    }
    for (size_t i = 0; i < s->n_kv; i++) {
        w[i] = max == -INFINITY ? 0 : exp(w[i] - max);
        t->sum += w[i];
    }
    for (size_t i = 0; i < s->n_kv && t->sum > 0; i++)
        w[i] /= t->sum;
}

/* Evaluate one token of one head by the formula. Returns the largest error as
 * a fraction of the bound. */
static double token_error(const struct problem *p, size_t seq, size_t h,
                          size_t tok)
{
    const struct shape *s = p->s;
    const size_t h_kv = h / (s->n_head / s->n_head_kv);
    const size_t of = s->mask == HEADS ? h : s->mask == GROUPS ? h_kv : 0;
    const size_t row = seq * s->n_kv * s->n_head_kv + h_kv;
    struct token t = {
        .p = p,
        .h = h,
        .q = p->q + ((seq * s->n_head + h) * s->n_tok + tok) * s->d,
        .k = p->k + row * s->d,
        .v = p->v + row * s->dv,
        .mask = p->mask + (of * s->n_tok + tok) * s->n_kv,
        .w = must_alloc(malloc(s->n_kv * sizeof *t.w)),
    };
    find_weights(&t);
    double plain, worst = 0, *factor = value_slack(s, t.w, t.v, &plain);
    const double change = expm1(2 * t.lost); /* relative change of a weight */
    const float *out =
        p->out + ((seq * s->n_tok + tok) * s->n_head + h) * (s->dv + 3);
    for (size_t e = 0; e < s->dv + 3; e++) {
        double want = e < s->dv ? 0 : -7, size = 0, rest = plain;
        for (size_t i = 0; i < s->n_kv && e < s->dv && t.sum > 0; i++) {
            const double v = (double)t.v[i * s->n_head_kv * s->dv + e];
            want += t.w[i] * v;
            size += t.w[i] * fabs(v);
            rest += factor[i] * fabs(v);
        }
        double bound =
            FLT_EPSILON * size * ((double)s->n_kv + 2 * t.slack + 8);
        if (p->a.ints && e < s->dv && t.sum > 0)
            bound += 1.01 * (size * change + (1 + change) * rest);
        const double err = fabs((double)out[e] - want);
        worst = fmax(worst, bound > 0 ? err / bound : err > 0 ? INFINITY : 0);
        if (out[e] != out[e])
            worst = INFINITY;
    }
    free(factor);
    free(t.w);
    return worst;
}

static void check_shape(const char *level, const struct gg_kern *kern,
                        const struct shape *s, bool integers,
                        const int type[2], struct gguf_pool *const pool[4])
{
    struct problem p;
    char name[96];
    snprintf(name, sizeof name, "%s%s%s%s%s%s", s->name,
             integers ? ", integers" : "", type ? ", " : "",
             type ? gg_dtype_by_index(type[0])->name : "", type ? " and " : "",
             type ? gg_dtype_by_index(type[1])->name : "");
    problem_init(&p, s, type, kern);
    p.a.ints = integers;
    problem_run(&p, pool[0]);
    double worst = 0;
    for (size_t seq = 0; seq < s->n_seq; seq++)
        for (size_t h = 0; h < s->n_head; h++)
            for (size_t t = 0; t < s->n_tok; t++)
                worst = fmax(worst, token_error(&p, seq, h, t));
    ok(worst <= 1, "%s: %s: largest error %.3f of the bound", level, name,
       worst);
    float *first = must_alloc(malloc(p.out_floats * sizeof *first));
    memcpy(first, p.out, p.out_floats * sizeof *first);
    bool same = true;
    for (unsigned t = 1; t < 4; t++) {
        problem_run(&p, pool[t]);
        same = same && !memcmp(first, p.out, p.out_floats * sizeof *first);
    }
    ok(same, "%s: %s: same bits with 1 to 4 threads", level, name);
    free(first);
    problem_fini(&p);
}

/* A token's result does not depend on the others in the batch: alone, the last
 * token has the same bits. */
static void check_alone(const char *level, const struct gg_kern *kern,
                        const struct shape *s, bool integers,
                        struct gguf_pool *pool)
{
    struct problem p;
    problem_init(&p, s, NULL, kern);
    p.a.ints = integers;
    problem_run(&p, pool);
    const size_t row = (s->dv + 3) * s->n_head;
    float *last = must_alloc(malloc(row * sizeof *last));
    memcpy(last, p.out + (s->n_tok - 1) * row, row * sizeof *last);
    p.a.q = (const char *)p.a.q + (s->n_tok - 1) * p.a.q_nb[0];
    p.a.mask = (const char *)p.a.mask + (s->n_tok - 1) * p.a.mask_nb[0];
    p.a.n_tok = 1;
    problem_run(&p, pool);
    bool same = true;
    for (size_t h = 0; h < s->n_head; h++)
        same = same && !memcmp(last + h * (s->dv + 3), p.out + h * (s->dv + 3),
                               s->dv * sizeof *last);
    ok(same, "%s: %s%s: a token alone gives the same bits", level, s->name,
       integers ? ", integers" : "");
    free(last);
    problem_fini(&p);
}

/* An infinity or NaN in a key or a value makes the results of the tokens that
 * attend to it NaN, and only of these and of tokens in the same panels. */
static void check_not_finite(const char *level, const struct gg_kern *kern,
                             struct gguf_pool *pool)
{
    static const struct shape s = { "not finite", 32,    32, 130, 300, 1, 1, 1,
                                    CAUSAL,       false, 0,  0 };
    enum {
        BLOCK = 256,
        BAD = 290,
        PANEL = 12
    }; /* the last tokens attend to key BAD */
    bool shows = true, others = true;
    for (int of_v = 0; of_v < 2; of_v++) {
        struct problem p;
        problem_init(&p, &s, NULL, kern);
        p.a.ints = true;
        float *x = of_v ? p.v_rows : p.k_rows;
        x[BAD * s.d + 7] = of_v ? NAN : INFINITY;
        problem_run(&p, pool);
        for (size_t t = 0; t < s.n_tok; t++)
            for (size_t h = 0; h < s.n_head; h++)
                for (size_t e = 0; e < s.dv; e++) {
                    const float y = p.out[(t * s.n_head + h) * (s.dv + 3) + e];
                    /* index of the last key */
                    const size_t last = t + s.n_kv - s.n_tok;
                    shows = shows && (last < BAD || y != y);
                    others = others && (last + PANEL >= BLOCK || y == y);
                }
        problem_fini(&p);
    }
    ok(shows, "%s: integers: numbers that are not finite give NaN", level);
    ok(others, "%s: and not where its block is closed", level);
}

static void check_level(const char *level, const struct gg_kern *kern,
                        bool integers, struct gguf_pool *const pool[4])
{
    for (size_t s = 0; s < N_SHAPES; s++)
        check_shape(level, kern, &shapes[s], integers, NULL, pool);
    for (size_t t = 0; t < N_TYPES; t++)
        for (size_t s = 0; s < sizeof typed / sizeof typed[0]; s++)
            check_shape(level, kern, &typed[s], integers, types[t], pool);
    for (size_t k = 0; k < N_SHAPES; k++)
        if (shapes[k].mask == CAUSAL || shapes[k].mask == WINDOW)
            check_alone(level, kern, &shapes[k], integers, pool[0]);
}

static void check_slopes(void)
{
    /* 8 heads: 2^-1 .. 2^-8; 12 heads: then also 2^-0.5, 2^-1.5, ... */
    bool good = gg_attn_slope(0, 3, 8) == 1;
    for (int h = 0; h < 8; h++)
        good = good && gg_attn_slope(8, h, 8) == ldexpf(1, -(h + 1)) &&
               gg_attn_slope(8, h, 12) == ldexpf(1, -(h + 1));
    for (int h = 8; h < 12; h++)
        good = good &&
               gg_attn_slope(8, h, 12) == (float)exp2(-0.5 - (double)(h - 8));
    ok(good, "ALiBi slopes");
}

int main(void)
{
    struct gguf_pool *pool[4];
    for (unsigned t = 0; t < 4; t++) {
        struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
        params.n_threads = t + 1;
        if (gguf_pool_create(&pool[t], &params, NULL)) {
            printf("Bail out! no threads\n");
            return 1;
        }
    }
    check_slopes();
    struct test_level level[8];
    const unsigned n = test_levels(level);
    for (unsigned i = 0; i < n; i++) {
        struct gg_kern kern;
        gg_kern_init(&kern, level[i].mask);
        gg_codec_kern_set_native_order(kern.codec);
        check_level(level[i].name, &kern, false, pool);
        check_level(level[i].name, &kern, true, pool);
        check_not_finite(level[i].name, &kern, pool[0]);
    }
    for (unsigned t = 0; t < 4; t++)
        gguf_pool_destroy(pool[t]);
    return done_testing();
}
