/* SPDX-License-Identifier: MIT */
/* refbert.c - encoders like BERT in double precision
 *
 * Plain loops over the tokens. The weights come from gen.h, and nothing else
 * of the library is used.
 */
#include "config.h"
#include "tests/family/refbert.h"
#include "tests/ignore_status.h"
#include "tests/model/ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model ---- */

enum ffn { PLAIN, GATED, HALVES };
enum rope { STILL, PAIRS, NEOX };

/* Facts of an architecture. pre: RMS norms before each part and one at the
 * end, called last; else layer norms after the parts and after the embeddings.
 * The activation is GELU without a gate, or SiLU with a gate, which may be the
 * first half of ffn_up. */
struct model {
    int pre;
    const char *last;
    enum rope rope;
    enum ffn ffn;
    int alibi, second_norm, gelu_gate; /* jina-bert-v2 has these */
    int n_embd, n_ff, n_head, n_head_kv, n_layer;
    int rot; /* rotated elements of a head */
    int fused, causal, head_norm;
    int ffn_bias;             /* the feed-forward part has biases */
    int swin;                 /* norms stand after the parts, with pre */
    int every, experts, used; /* layers with il % every == 1 have experts */
    double eps, base;
};

/* Number of rows of a tensor; 0: the model lacks it. */
static int n_rows(const struct skeleton *m, const char *name)
{
    for (size_t i = 0; i < m->g.n; i++)
        if (!strcmp(m->g.t[i].name, name))
            return (int)m->g.t[i].ne[1];
    return 0;
}

/* Number or bool of a key; `other' if the key is missing. */
static double get_key(const struct skeleton *m, const char *key, double other)
{
    char name[192];
    double v = other;
    bool is = false;
    skeleton_key(m, key, name);
    const struct gguf_kv *kv = gguf_meta_find(m->g.meta, name);
    if (kv && kv->type == GGUF_VAL_BOOL && !gguf_kv_get_bool(kv, &is, NULL))
        return is;
    if (kv)
        ignore_status(gguf_kv_get_float(kv, &v, NULL));
    return v;
}

static struct model read_model(const struct skeleton *m)
{
    static const struct {
        const char *arch;
        enum rope rope;
    } ropes[] = { { "bert", STILL },          { "neo-bert", PAIRS },
                  { "chameleon", PAIRS },     { "nomic-bert", NEOX },
                  { "nomic-bert-moe", NEOX }, { "jina-bert-v3", NEOX },
                  { "eurobert", NEOX },       { "jina-bert-v2", STILL } };
    char arch[192];
    struct model s = { .pre = n_rows(m, "blk.0.attn_norm.weight") > 0 };
    skeleton_key(m, ".", arch);
    arch[strlen(arch) - 1] = 0;
    for (size_t i = 0; i < sizeof ropes / sizeof *ropes; i++)
        if (!strcmp(arch, ropes[i].arch))
            s.rope = ropes[i].rope;
    s.last = n_rows(m, "enc.output_norm.weight") ? "enc.output_norm"
                                                 : "output_norm";
    s.n_embd = (int)get_key(m, ".embedding_length", 0);
    s.n_ff = (int)get_key(m, ".feed_forward_length", 0);
    s.ffn = n_rows(m, "blk.0.ffn_gate.weight")               ? GATED
            : n_rows(m, "blk.0.ffn_up.weight") == 2 * s.n_ff ? HALVES
                                                             : PLAIN;
    s.n_head = (int)get_key(m, ".attention.head_count", 1);
    s.n_head_kv = (int)get_key(m, ".attention.head_count_kv", s.n_head);
    s.n_layer = (int)get_key(m, ".block_count", 0);
    s.rot = (int)get_key(m, ".rope.dimension_count", s.n_embd / s.n_head);
    s.fused = n_rows(m, "blk.0.attn_qkv.weight") > 0;
    s.causal = get_key(m, ".attention.causal", 1) != 0;
    s.head_norm = n_rows(m, "blk.0.attn_q_norm.weight") > 0;
    s.ffn_bias = strcmp(arch, "nomic-bert") != 0;
    s.alibi = s.gelu_gate = !strcmp(arch, "jina-bert-v2");
    s.second_norm = n_rows(m, "blk.0.attn_norm_2.weight") > 0;
    s.swin = get_key(m, ".swin_norm", 0) != 0;
    s.every = (int)get_key(m, ".moe_every_n_layers", 0);
    s.experts = (int)get_key(m, ".expert_count", 0);
    s.used = (int)get_key(m, ".expert_used_count", 0);
    s.eps = get_key(m,
                    s.pre ? ".attention.layer_norm_rms_epsilon"
                          : ".attention.layer_norm_epsilon",
                    0);
    s.base = get_key(m, ".rope.freq_base", 10000);
    return s;
}

static int has_experts(const struct model *s, int il)
{
    return s->every && il % s->every == 1;
}

/* ---- parts ---- */

struct pass {
    const struct gen *g;
    const struct model *s;
    int n, il;
};

/* y[t] = W x[t] + b with rows [first, first + m) of a matrix of k columns. */
static void product(const struct pass *p, const char *what, int biased,
                    const double *x, int k, int first, int m, double *y)
{
    float *w = ref_weights(p->g, "blk.%d.%s.weight", p->il, what);
    float *b =
        biased ? ref_weights(p->g, "blk.%d.%s.bias", p->il, what) : NULL;
    for (int t = 0; t < p->n; t++)
        ref_linear(y + t * m, w + first * k, b ? b + first : NULL, x + t * k,
                   k, m);
    free(w);
    free(b);
}

/* Apply the norm of this name, of a layer or of the model. */
static void apply_norm(const struct pass *p, const char *name, double *x)
{
    const int e = p->s->n_embd, rms = p->s->pre;
    float *w = ref_weights(p->g, "%s.weight", name);
    float *b = ref_weights(p->g, "%s.bias", name);
    for (int t = 0; t < p->n; t++) {
        double *y = x + t * e, mean = 0, var = 0;
        for (int i = 0; i < e && !rms; i++)
            mean += y[i] / e;
        for (int i = 0; i < e; i++)
            var += (y[i] - mean) * (y[i] - mean) / e;
        for (int i = 0; i < e; i++)
            y[i] = (y[i] - mean) / sqrt(var + p->s->eps) * (double)w[i] +
                   (b ? (double)b[i] : 0);
    }
    free(w);
    free(b);
}

static void apply_rope(const struct model *s, double *x, int pos)
{
    const int n = s->rot, near = s->rope == PAIRS;
    for (int i = 0; s->rope != STILL && i < n / 2; i++) {
        const double angle = pos * pow(s->base, -2.0 * i / n);
        double *u = x + (near ? 2 * i : i), *v = near ? u + 1 : u + n / 2;
        const double a = *u, b = *v;
        *u = a * cos(angle) - b * sin(angle);
        *v = a * sin(angle) + b * cos(angle);
    }
}

/* ALiBi slope of head h of n. If n is not a power of two, the first heads have
 * the slopes of the next smaller power, the others every second slope of the
 * next larger one. */
static double slope(int h, int n)
{
    int p = 1;
    while (2 * p <= n)
        p *= 2;
    return h < p ? pow(2, -8.0 * (h + 1) / p)
                 : pow(2, -8.0 * (2 * (h - p) + 1) / (2 * p));
}

static void attend_head(const struct pass *p, const double *q, const double *k,
                        const double *v, double *y)
{
    const struct model *s = p->s;
    const int d = s->n_embd / s->n_head, per = s->n_head / s->n_head_kv;
    double *w = ref_doubles((size_t)p->n);
    for (int i = 0; i < p->n * s->n_head; i++) {
        const int t = i / s->n_head, h = i % s->n_head;
        const int seen = s->causal ? t + 1 : p->n;
        double sum = 0;
        for (int j = 0; j < seen; j++) {
            double dot = 0;
            for (int e = 0; e < d; e++)
                dot += q[i * d + e] * k[(j * s->n_head_kv + h / per) * d + e];
            dot /= sqrt(d);
            dot -= s->alibi ? slope(h, s->n_head) * abs(j - t) : 0;
            sum += w[j] = exp(dot);
        }
        for (int e = 0; e < d; e++)
            for (int j = 0; j < seen; j++)
                y[i * d + e] +=
                    w[j] / sum * v[(j * s->n_head_kv + h / per) * d + e];
    }
    free(w);
}

/* Layer norms of each head of queries or keys, with their own epsilon. */
static void head_norms(const struct pass *p, const char *which, double *x,
                       int h)
{
    const int d = p->s->n_embd / p->s->n_head;
    float *w = ref_weights(p->g, "blk.%d.%s_norm.weight", p->il, which);
    float *b = ref_weights(p->g, "blk.%d.%s_norm.bias", p->il, which);
    for (int i = 0; i < p->n * h; i++) {
        double *y = x + i * d, mean = 0, var = 0;
        for (int j = 0; j < d; j++)
            mean += y[j] / d;
        for (int j = 0; j < d; j++)
            var += (y[j] - mean) * (y[j] - mean) / d;
        for (int j = 0; j < d; j++)
            y[j] =
                (y[j] - mean) / sqrt(var + 1e-5) * (double)w[i % h * d + j] +
                (b ? (double)b[i % h * d + j] : 0);
    }
    free(w);
    free(b);
}

static void attention(const struct pass *p, const double *x, double *y)
{
    const struct model *s = p->s;
    const int e = s->n_embd, d = e / s->n_head, kv = d * s->n_head_kv;
    static const char *const apart[] = { "attn_q", "attn_k", "attn_v" };
    const int m[] = { e, kv, kv }, first[] = { 0, e, e + kv };
    double *of[3], *z = ref_doubles((size_t)(p->n * e));
    char q_norm[64], k_norm[64];
    snprintf(q_norm, sizeof q_norm, "blk.%d.attn_q_norm", p->il);
    snprintf(k_norm, sizeof k_norm, "blk.%d.attn_k_norm", p->il);
    for (int i = 0; i < 3; i++) {
        of[i] = ref_doubles((size_t)(p->n * m[i]));
        product(p, s->fused ? "attn_qkv" : apart[i], 1, x, e,
                s->fused ? first[i] : 0, m[i], of[i]);
        if (i < 2 && s->head_norm && s->alibi)
            apply_norm(p, i ? k_norm : q_norm,
                       of[i]); /* one norm over all heads */
        else if (i < 2 && s->head_norm)
            head_norms(p, apart[i], of[i], m[i] / d);
        for (int j = 0; i < 2 && j < p->n * m[i] / d; j++)
            apply_rope(s, of[i] + j * d, j / (m[i] / d));
    }
    attend_head(p, of[0], of[1], of[2], z);
    product(p, "attn_output", 1, z, e, 0, e, y);
    for (int i = 0; i < 3; i++)
        free(of[i]);
    free(z);
}

static double gelu(double x)
{
    return 0.5 * x *
           (1 + tanh(sqrt(2 / 3.14159265358979323846) *
                     (x + 0.044715 * x * x * x)));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static void dense_ffn(const struct pass *p, const double *x, double *y)
{
    const struct model *s = p->s;
    const int e = s->n_embd, ff = s->n_ff, b = s->ffn_bias;
    const int halves = s->ffn == HALVES;
    double *up = ref_doubles((size_t)(p->n * ff));
    double *gate = ref_doubles((size_t)(p->n * ff));
    product(p, "ffn_up", b, x, e, halves ? ff : 0, ff, up);
    if (s->ffn != PLAIN)
        product(p, halves ? "ffn_up" : "ffn_gate", b, x, e, 0, ff, gate);
    for (int i = 0; i < p->n * ff; i++)
        up[i] = s->ffn == PLAIN ? gelu(up[i])
                : s->gelu_gate  ? gelu(gate[i]) * up[i]
                                : silu(gate[i]) * up[i];
    product(p, "ffn_down", b, up, ff, 0, e, y);
    free(up);
    free(gate);
}

/* y += much * down(gelu(up x)) with the matrices of expert k. */
static void add_expert(const struct pass *p, int k, double much,
                       const double *x, double *y)
{
    const int e = p->s->n_embd, ff = p->s->n_ff;
    float *up = ref_weights(p->g, "blk.%d.ffn_up_exps.weight", p->il);
    float *down = ref_weights(p->g, "blk.%d.ffn_down_exps.weight", p->il);
    double *a = ref_doubles((size_t)ff), *b = ref_doubles((size_t)e);
    ref_linear(a, up + k * e * ff, NULL, x, e, ff);
    for (int i = 0; i < ff; i++)
        a[i] = gelu(a[i]);
    ref_linear(b, down + k * e * ff, NULL, a, ff, e);
    for (int i = 0; i < e; i++)
        y[i] += much * b[i];
    free(up);
    free(down);
    free(a);
    free(b);
}

static void moe_ffn(const struct pass *p, const double *x, double *y)
{
    const struct model *s = p->s;
    const int e = s->n_embd, n = s->experts;
    double *w = ref_doubles((size_t)(p->n * n));
    product(p, "ffn_gate_inp", 0, x, e, 0, n, w);
    memset(y, 0, (size_t)(p->n * e) * sizeof *y);
    for (int t = 0; t < p->n; t++) {
        double sum = 0, *v = w + t * n;
        for (int k = 0; k < n; k++)
            sum += exp(v[k]);
        for (int k = 0; k < n; k++) {
            int better = 0;
            for (int j = 0; j < n; j++)
                better += v[j] > v[k];
            if (better < s->used)
                add_expert(p, k, exp(v[k]) / sum, x + t * e, y + t * e);
        }
    }
    free(w);
}

/* ---- all of it ---- */

static void embed_tokens(const struct pass *p, const gguf_token *tok,
                         const uint32_t *types, double *x)
{
    const int e = p->s->n_embd;
    float *w = ref_weights(p->g, "token_embd.weight");
    float *type = ref_weights(p->g, "token_types.weight");
    float *pos = ref_weights(p->g, "position_embd.weight");
    for (int t = 0; t < p->n; t++)
        for (int i = 0; i < e; i++)
            x[t * e + i] =
                (double)w[tok[t] * e + i] +
                (type ? (double)type[(types ? (int)types[t] : 0) * e + i]
                      : 0) +
                (pos ? (double)pos[t * e + i] : 0);
    free(w);
    free(type);
    free(pos);
}

/* Compute a part of a layer in the stream x. */
static void add_part(const struct pass *p, const char *what, double *x,
                     void (*fn)(const struct pass *p, const double *x,
                                double *y))
{
    const int n = p->n * p->s->n_embd;
    double *in_part = ref_doubles((size_t)n), *y = ref_doubles((size_t)n);
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", p->il, what);
    memcpy(in_part, x, (size_t)n * sizeof *x);
    if (p->s->pre && !p->s->swin)
        apply_norm(p, name, in_part);
    fn(p, in_part, y);
    if (p->s->swin)
        apply_norm(p, name, y);
    for (int i = 0; i < n; i++)
        x[i] += y[i];
    if (!p->s->pre)
        apply_norm(p, name, x);
    if (fn == attention && p->s->second_norm) {
        for (int i = 0; i < n; i++)
            x[i] += in_part[i];
        snprintf(name, sizeof name, "blk.%d.attn_norm_2", p->il);
        apply_norm(p, name, x);
    }
    free(in_part);
    free(y);
}

void refbert_run(const struct skeleton *m, const gguf_token *tok, int n,
                 double *x)
{
    refbert_run_types(m, tok, NULL, n, x);
}

void refbert_run_types(const struct skeleton *m, const gguf_token *tok,
                       const uint32_t *types, int n, double *x)
{
    const struct model s = read_model(m);
    struct pass p = { &m->g, &s, n, 0 };
    embed_tokens(&p, tok, types, x);
    if (!s.pre)
        apply_norm(&p, "token_embd_norm", x);
    for (p.il = 0; p.il < s.n_layer; p.il++) {
        add_part(&p, s.pre ? "attn_norm" : "attn_output_norm", x, attention);
        add_part(&p, s.pre ? "ffn_norm" : "layer_output_norm", x,
                 has_experts(&s, p.il) ? moe_ffn : dense_ffn);
    }
    if (s.pre)
        apply_norm(&p, s.last, x);
}
