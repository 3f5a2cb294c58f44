/* SPDX-License-Identifier: MIT */
/* refds4.c - DeepSeek-V4 in double precision
 *
 * Plain loops over the tokens. The weights come from gen.h, and nothing else
 * of the library is used.
 */
#include "config.h"
#include "tests/family/refds4.h"
#include "tests/model/ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* A layer that is computed for all tokens. */
struct pass {
    const struct gen *g;
    const struct refds4 *s;
    int n, il;
    const gguf_token *tok;
};

/* ---- parts ---- */

static float *layer_weights(const struct pass *p, const char *what)
{
    float *w = ref_weights(p->g, "blk.%d.%s", p->il, what);
    if (!w)
        abort();
    return w;
}

/* y[t] = W x[t]. */
static void product(const struct pass *p, const char *what, const double *x,
                    int k, int m, double *y)
{
    float *w = layer_weights(p, what);
    for (int t = 0; t < p->n; t++)
        ref_linear(y + t * m, w, NULL, x + t * k, k, m);
    free(w);
}

static void apply_rms_norm(double *x, const float *w, int d, double eps)
{
    double sum = 0;
    for (int i = 0; i < d; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < d; i++)
        x[i] *= (w ? (double)w[i] : 1) / sqrt(sum / d + eps);
}

static void norm_rows(const struct pass *p, const char *what, double *x, int n,
                      int d)
{
    float *w = what ? layer_weights(p, what) : NULL;
    for (int t = 0; t < n; t++)
        apply_rms_norm(x + t * d, w, d, (double)p->s->eps);
    free(w);
}

/* Rotate the last elements by a position, in a layer with ratio r. */
static void apply_rope(const struct refds4 *s, double *x, int d, double pos,
                       int r)
{
    const double base = (double)(r ? s->compress_base : s->base);
    const int n = s->rot;
    const double f = r && s->scaling ? (double)s->factor : 1;
    double low = n * log(s->n_ctx_orig / (32 * 2 * PI)) / (2 * log(base));
    double high = n * log(s->n_ctx_orig / (2 * PI)) / (2 * log(base));
    low = fmax(0, floor(low));
    high = fmin(n - 1, ceil(high));
    for (int i = 0; i < n / 2; i++) {
        double theta = pos * pow(base, -2.0 * i / n);
        double *y = x + d - n + 2 * i, a = y[0], b = y[1], ramp = 1;
        if (f != 1 && !strcmp(s->scaling, "yarn"))
            ramp = fmin(1, fmax(0, (i - low) / fmax(0.001, high - low)));
        theta = theta / f * ramp + theta * (1 - ramp);
        y[0] = a * cos(theta) - b * sin(theta);
        y[1] = a * sin(theta) + b * cos(theta);
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- streams ---- */

/* Scale and shift z. It has n, n and n * n numbers, and one scale for each
 * part. */
static void mix_streams(const struct pass *p, const char *stem,
                        const double *h, int all, double *z)
{
    const int n = p->s->streams, k = n * p->s->n_embd;
    float *fn = ref_weights(p->g, "%s_fn.weight", stem);
    float *base = ref_weights(p->g, "%s_base.weight", stem);
    float *scale = ref_weights(p->g, "%s_scale.weight", stem);
    double *x = ref_doubles((size_t)k);
    memcpy(x, h, (size_t)k * sizeof *x);
    apply_rms_norm(x, NULL, k, (double)p->s->eps);
    ref_linear(z, fn, NULL, x, k, all);
    for (int i = 0; i < all; i++)
        z[i] = z[i] * (double)scale[i < n       ? 0
                                    : i < 2 * n ? 1
                                                : 2] +
               (double)base[i];
    free(x);
    free(fn);
    free(base);
    free(scale);
}

/* Sinkhorn iterations on c[dst][src]. */
static void balance_mix(const struct refds4 *s, const double *z, double *c)
{
    const int n = s->streams;
    const double eps = (double)s->hyper_eps;
    for (int src = 0; src < n; src++) {
        double sum = 0;
        for (int dst = 0; dst < n; dst++)
            sum += exp(z[dst + n * src]);
        for (int dst = 0; dst < n; dst++)
            c[dst * n + src] = exp(z[dst + n * src]) / sum + eps;
    }
    for (int k = 0; k < 2 * s->iterations - 1 || k == 0; k++)
        for (int a = 0; a < n; a++) {
            const int over_src = k % 2 == 0;
            double sum = 0;
            for (int b = 0; b < n; b++)
                sum += over_src ? c[a * n + b] : c[b * n + a];
            for (int b = 0; b < n; b++)
                c[over_src ? a * n + b : b * n + a] /= sum + eps;
        }
}

/* Combine token t's streams into the input of a part. */
static void read_streams(const struct refds4 *s, const double *z,
                         const double *h, double *u)
{
    for (int i = 0; i < s->n_embd; i++) {
        u[i] = 0;
        for (int k = 0; k < s->streams; k++)
            u[i] +=
                (sigmoid(z[k]) + (double)s->hyper_eps) * h[k * s->n_embd + i];
    }
}

static void write_streams(const struct refds4 *s, const double *z,
                          const double *y, double *h)
{
    const int n = s->streams, e = s->n_embd;
    double *c = ref_doubles((size_t)(n * n));
    double *old = ref_doubles((size_t)(n * e));
    memcpy(old, h, (size_t)(n * e) * sizeof *old);
    balance_mix(s, z + 2 * n, c);
    for (int dst = 0; dst < n; dst++)
        for (int i = 0; i < e; i++) {
            double v = 2 * sigmoid(z[n + dst]) * y[i];
            for (int src = 0; src < n; src++)
                v += c[dst * n + src] * old[src * e + i];
            h[dst * e + i] = v;
        }
    free(c);
    free(old);
}

/* ---- attention ---- */

/* Compress blocks of r tokens to rows, [n / r][d]. */
static double *compress_blocks(const struct pass *p, const char *stem,
                               const double *u, int d, int r)
{
    const int wide = r == 4 ? 2 : 1, w = wide * d;
    char name[3][64];
    static const char *const parts[] = { "kv", "gate", "ape" };
    double *kv = ref_doubles((size_t)(p->n * w));
    double *sc = ref_doubles((size_t)(p->n * w));
    double *rows = ref_doubles((size_t)((p->n / r + 1) * d));
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof name[i], "%s_%s.weight", stem, parts[i]);
    float *ape = layer_weights(p, name[2]);
    product(p, name[0], u, p->s->n_embd, w, kv);
    product(p, name[1], u, p->s->n_embd, w, sc);
    for (int t = 0; t < p->n; t++)
        for (int i = 0; i < w; i++)
            sc[t * w + i] += (double)ape[t % r * w + i];
    for (int b = 0; b < p->n / r; b++)
        for (int i = 0; i < d; i++) {
            double sum = 0, y = 0;
            for (int t = (b + 1 - wide) * r; t < (b + 1) * r; t++) {
                const int at = t * w + i + (t >= b * r ? (wide - 1) * d : 0);
                if (t < 0)
                    continue;
                sum += exp(sc[at]);
                y += exp(sc[at]) * kv[at];
            }
            rows[b * d + i] = y / sum;
        }
    snprintf(name[0], sizeof name[0], "%s_norm.weight", stem);
    norm_rows(p, name[0], rows, p->n / r, d);
    for (int b = 0; b < p->n / r; b++)
        apply_rope(p->s, rows + b * d, d, b * r, r);
    free(ape);
    free(kv);
    free(sc);
    return rows;
}

/* Choose the blocks that each token reads: [n][n / 4]. */
static char *choose_blocks(const struct pass *p, const double *u,
                           const double *qr)
{
    const struct refds4 *s = p->s;
    const int n = p->n, d = s->d_idx, h = s->n_idx, m = n / 4;
    char *yes = calloc((size_t)(n * (m + 1)), 1);
    double *q = ref_doubles((size_t)(n * h * d));
    double *w = ref_doubles((size_t)(n * h));
    double *score = ref_doubles((size_t)m + 1);
    double *k = compress_blocks(p, "indexer_compressor", u, d, 4);
    if (!yes)
        abort();
    product(p, "indexer.attn_q_b.weight", qr, s->rank_q, h * d, q);
    product(p, "indexer.proj.weight", u, s->n_embd, h, w);
    for (int t = 0; t < n; t++) {
        const int seen = (t + 1) / 4;
        for (int j = 0; j < h; j++)
            apply_rope(s, q + (t * h + j) * d, d, t, 4);
        for (int b = 0; b < seen; b++) {
            score[b] = 0;
            for (int j = 0; j < h; j++) {
                double dot = 0;
                for (int i = 0; i < d; i++)
                    dot += q[(t * h + j) * d + i] * k[b * d + i];
                score[b] += w[t * h + j] / sqrt(d * h) * fmax(dot, 0);
            }
        }
        for (int b = 0; b < seen; b++) {
            int better = 0;
            for (int c = 0; c < seen; c++)
                better += score[c] > score[b];
            yes[t * m + b] = better < s->top;
        }
    }
    free(q);
    free(w);
    free(score);
    free(k);
    return yes;
}

/* Attention of head q over rows [n_rows], by token t: y[d]. */
struct sees {
    const double *kv, *rows;
    const char *yes; /* blocks that are read; NULL: all */
    int r;
};
static void attend_head(const struct pass *p, const struct sees *k, int t,
                        const double *q, double sink, double *y)
{
    const struct refds4 *s = p->s;
    const int d = s->d, n_rows = k->r ? (t + 1) / k->r : 0;
    double sum = exp(sink);
    memset(y, 0, (size_t)d * sizeof *y);
    for (int i = 0; i < n_rows + s->window; i++) {
        const int pos = t - (i - n_rows);
        const double *row =
            i < n_rows ? k->rows + i * d : k->kv + (pos < 0 ? 0 : pos) * d;
        double dot = 0;
        if ((i >= n_rows && pos < 0) ||
            (i < n_rows && k->yes && !k->yes[t * (p->n / 4) + i]))
            continue;
        for (int j = 0; j < d; j++)
            dot += q[j] * row[j];
        const double w = exp(dot / sqrt(d));
        sum += w;
        for (int j = 0; j < d; j++)
            y[j] += w * row[j];
    }
    for (int j = 0; j < d; j++)
        y[j] /= sum;
}

/* y [n][n_embd] of x [n][n_head * d]: a matrix for each group of heads, then
 * one for all. */
static void project_out(const struct pass *p, const double *x, double *y)
{
    const struct refds4 *s = p->s;
    const int all = s->n_head * s->d, k = all / s->groups, m = s->out_rank;
    float *a = layer_weights(p, "attn_output_a.weight");
    double *mid = ref_doubles((size_t)(p->n * m * s->groups));
    for (int t = 0; t < p->n; t++)
        for (int g = 0; g < s->groups; g++)
            ref_linear(mid + (t * s->groups + g) * m, a + g * m * k, NULL,
                       x + t * all + g * k, k, m);
    product(p, "attn_output_b.weight", mid, m * s->groups, s->n_embd, y);
    free(a);
    free(mid);
}

static void attention(const struct pass *p, const double *u, double *y)
{
    const struct refds4 *s = p->s;
    const int n = p->n, d = s->d, h = s->n_head, r = s->ratio[p->il];
    double *qr = ref_doubles((size_t)(n * s->rank_q));
    double *q = ref_doubles((size_t)(n * h * d));
    double *kv = ref_doubles((size_t)(n * d));
    double *x = ref_doubles((size_t)(n * h * d));
    float *sinks = layer_weights(p, "attn_sinks.weight");
    product(p, "attn_q_a.weight", u, s->n_embd, s->rank_q, qr);
    norm_rows(p, "attn_q_a_norm.weight", qr, n, s->rank_q);
    product(p, "attn_q_b.weight", qr, s->rank_q, h * d, q);
    norm_rows(p, NULL, q, n * h, d);
    product(p, "attn_kv.weight", u, s->n_embd, d, kv);
    norm_rows(p, "attn_kv_a_norm.weight", kv, n, d);
    for (int t = 0; t < n; t++)
        apply_rope(s, kv + t * d, d, t, r);
    double *rows = r ? compress_blocks(p, "attn_compressor", u, d, r) : NULL;
    char *yes = r == 4 ? choose_blocks(p, u, qr) : NULL;
    const struct sees k = { kv, rows, yes, r };
    for (int i = 0; i < n * h; i++) {
        apply_rope(s, q + i * d, d, i / h, r);
        attend_head(p, &k, i / h, q + i * d, (double)sinks[i % h], x + i * d);
        apply_rope(s, x + i * d, d, -(i / h), r);
    }
    project_out(p, x, y);
    free(qr);
    free(q);
    free(kv);
    free(x);
    free(sinks);
    free(rows);
    free(yes);
}

/* ---- experts ---- */

/* y += much * down(silu(gate x) * (up x)), clamped. */
static void add_expert(const struct pass *p, const float *gate,
                       const float *up, const float *down, int ff,
                       double limit, double much, const double *x, double *y)
{
    const int e = p->s->n_embd;
    double *a = ref_doubles((size_t)ff), *b = ref_doubles((size_t)ff);
    double *z = ref_doubles((size_t)e);
    ref_linear(a, gate, NULL, x, e, ff);
    ref_linear(b, up, NULL, x, e, ff);
    for (int i = 0; i < ff; i++) {
        if (limit > 1e-6) {
            a[i] = fmin(a[i], limit);
            b[i] = fmax(-limit, fmin(b[i], limit));
        }
        a[i] = a[i] * sigmoid(a[i]) * b[i];
    }
    ref_linear(z, down, NULL, a, ff, e);
    for (int i = 0; i < e; i++)
        y[i] += much * z[i];
    free(a);
    free(b);
    free(z);
}

/* Choose a token's experts: their ids and weights. */
static void route_token(const struct pass *p, int t, const double *x, int *id,
                        double *w)
{
    const struct refds4 *s = p->s;
    float *router = layer_weights(p, "ffn_gate_inp.weight");
    float *bias = ref_weights(p->g, "blk.%d.exp_probs_b.bias", p->il);
    double *score = ref_doubles((size_t)s->experts), sum = 0;
    ref_linear(score, router, NULL, x, s->n_embd, s->experts);
    for (int i = 0; i < s->experts; i++)
        score[i] = sqrt(log1p(exp(score[i])));
    for (int i = 0, n = 0; i < s->experts && p->il >= s->hashed; i++) {
        int better = 0;
        for (int j = 0; j < s->experts; j++)
            better += score[j] + (double)bias[j] > score[i] + (double)bias[i];
        if (better < s->used)
            id[n++] = i;
    }
    for (int k = 0; k < s->used; k++) {
        if (p->il < s->hashed)
            id[k] = refds4_table(s)[p->tok[t] * s->used + k];
        sum += w[k] = score[id[k]];
    }
    for (int k = 0; k < s->used; k++)
        w[k] *= (s->norm ? 1 / sum : 1) * (s->scale != 0 ? s->scale : 1);
    free(router);
    free(bias);
    free(score);
}

static void moe_ffn(const struct pass *p, const double *u, double *y)
{
    const struct refds4 *s = p->s;
    const int e = s->n_embd, ff = s->n_ff;
    const double limit = (double)s->clamp[p->il];
    float *w[6];
    static const char *const names[6] = {
        "ffn_gate_exps.weight",  "ffn_up_exps.weight",  "ffn_down_exps.weight",
        "ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight"
    };
    for (int i = 0; i < 6; i++)
        w[i] = layer_weights(p, names[i]);
    memset(y, 0, (size_t)(p->n * e) * sizeof *y);
    for (int t = 0; t < p->n; t++) {
        int id[8];
        double much[8];
        route_token(p, t, u + t * e, id, much);
        for (int k = 0; k < s->used; k++)
            add_expert(p, w[0] + id[k] * e * ff, w[1] + id[k] * e * ff,
                       w[2] + id[k] * e * ff, ff, limit, much[k], u + t * e,
                       y + t * e);
        add_expert(p, w[3], w[4], w[5], ff * s->shared,
                   s->clamp_shared >= 0 ? (double)s->clamp_shared : limit, 1,
                   u + t * e, y + t * e);
    }
    for (int i = 0; i < 6; i++)
        free(w[i]);
}

/* ---- all of it ---- */

typedef void part_fn(const struct pass *p, const double *u, double *y);

static void add_part(const struct pass *p, const char *what, part_fn *fn,
                     double *h)
{
    const struct refds4 *s = p->s;
    const int n = s->streams, e = s->n_embd, all = (2 + n) * n;
    double *z = ref_doubles((size_t)(p->n * all));
    double *u = ref_doubles((size_t)(p->n * e));
    double *y = ref_doubles((size_t)(p->n * e));
    char stem[64], name[64];
    snprintf(stem, sizeof stem, "blk.%d.hc_%s", p->il, what);
    snprintf(name, sizeof name, "%s_norm.weight", what);
    for (int t = 0; t < p->n; t++) {
        mix_streams(p, stem, h + t * n * e, all, z + t * all);
        read_streams(s, z + t * all, h + t * n * e, u + t * e);
    }
    norm_rows(p, name, u, p->n, e);
    fn(p, u, y);
    for (int t = 0; t < p->n; t++)
        write_streams(s, z + t * all, y + t * e, h + t * n * e);
    free(z);
    free(u);
    free(y);
}

void refds4_run(const struct gen *g, const struct refds4 *s,
                const gguf_token *tok, int n, double *logits)
{
    const int e = s->n_embd, m = s->streams;
    struct pass p = { g, s, n, 0, tok };
    double *h = ref_doubles((size_t)(n * m * e));
    double *u = ref_doubles((size_t)e), *z = ref_doubles((size_t)m);
    float *embd = ref_weights(g, "token_embd.weight");
    float *last = ref_weights(g, "output_norm.weight");
    float *out = ref_weights(g, "output.weight");
    for (int i = 0; i < n * m * e; i++)
        h[i] = (double)embd[tok[i / (m * e)] * e + i % e];
    for (p.il = 0; p.il < s->n_layer; p.il++) {
        add_part(&p, "attn", attention, h);
        add_part(&p, "ffn", moe_ffn, h);
    }
    for (int t = 0; t < n; t++) {
        mix_streams(&p, "output_hc", h + t * m * e, m, z);
        read_streams(s, z, h + t * m * e, u);
        apply_rms_norm(u, last, e, (double)s->eps);
        ref_linear(logits + t * REFDS4_VOCAB, out, NULL, u, e, REFDS4_VOCAB);
    }
    free(h);
    free(u);
    free(z);
    free(embd);
    free(last);
    free(out);
}
