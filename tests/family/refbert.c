/* SPDX-License-Identifier: MIT */
/* refbert.c - encoders of BERT's kin in double precision
 *
 * One token after the other, one loop after the other; nothing of the library
 * is used but the generator's weights.
 */
#include "config.h"
#include "tests/family/refbert.h"
#include "tests/model/ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model ---- */

static void must_set(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

static const char *full_key(const struct refbert *s, const char *what)
{
    static char name[96];
    snprintf(name, sizeof name, "%s.%s", s->arch, what);
    return name;
}

static void put_key(struct gen *g, const struct refbert *s, const char *what,
                    int v)
{
    must_set(gguf_meta_set_u32(g->meta, full_key(s, what), (uint32_t)v, NULL));
}

static void put_keys(struct gen *g, const struct refbert *s, int n_vocab)
{
    must_set(
        gguf_meta_set_strz(g->meta, "general.architecture", s->arch, NULL));
    must_set(
        gguf_meta_set_strz(g->meta, "tokenizer.ggml.model", "no_vocab", NULL));
    put_key(g, s, "vocab_size", n_vocab);
    put_key(g, s, "context_length", 64);
    put_key(g, s, "embedding_length", s->n_embd);
    put_key(g, s, "block_count", s->n_layer);
    put_key(g, s, "feed_forward_length", s->n_ff);
    put_key(g, s, "attention.head_count", s->n_head);
    put_key(g, s, "attention.head_count_kv", s->n_head_kv);
    must_set(gguf_meta_set_f32(
        g->meta,
        full_key(s, s->pre ? "attention.layer_norm_rms_epsilon"
                           : "attention.layer_norm_epsilon"),
        s->eps, NULL));
    if (s->causal != 2)
        must_set(gguf_meta_set_bool(g->meta, full_key(s, "attention.causal"),
                                    s->causal, NULL));
    if (s->rot)
        put_key(g, s, "rope.dimension_count", s->rot);
    if (s->base > 0)
        must_set(gguf_meta_set_f32(g->meta, full_key(s, "rope.freq_base"),
                                   s->base, NULL));
    if (s->types)
        must_set(gguf_meta_set_u32(g->meta, "tokenizer.ggml.token_type_count",
                                   (uint32_t)s->types, NULL));
    if (s->swin)
        must_set(
            gguf_meta_set_bool(g->meta, full_key(s, "swin_norm"), 1, NULL));
    if (s->every)
        put_key(g, s, "moe_every_n_layers", s->every);
    if (s->experts) {
        put_key(g, s, "expert_count", s->experts);
        put_key(g, s, "expert_used_count", s->used);
    }
}

static void add_pair(struct gen *g, const char *name, int64_t ne0, int64_t ne1,
                     int bias)
{
    gen_tensor(g, ne0, ne1, "%s.weight", name);
    if (bias)
        gen_tensor(g, ne1 ? ne1 : ne0, 0, "%s.bias", name);
}

static const char *name_in(int il, const char *what)
{
    static char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", il, what);
    return name;
}

static int has_experts(const struct refbert *s, int il)
{
    return s->every && il % s->every == 1;
}

static void put_ffn(struct gen *g, const struct refbert *s, int il)
{
    const int e = s->n_embd, ff = s->n_ff, b = s->ffn_bias != 0;
    if (has_experts(s, il)) {
        gen_tensor(g, e, s->experts, "blk.%d.ffn_gate_inp.weight", il);
        gen_tensor(g, e, ff, "blk.%d.ffn_up_exps.weight", il);
        g->t[g->n - 1].n_dims = 3;
        g->t[g->n - 1].ne[2] = s->experts;
        gen_tensor(g, ff, e, "blk.%d.ffn_down_exps.weight", il);
        g->t[g->n - 1].n_dims = 3;
        g->t[g->n - 1].ne[2] = s->experts;
        return;
    }
    if (s->ffn == REFBERT_GATED)
        add_pair(g, name_in(il, "ffn_gate"), e, ff, b);
    add_pair(g, name_in(il, "ffn_up"), e,
             ff * (s->ffn == REFBERT_HALVES ? 2 : 1), b);
    add_pair(g, name_in(il, "ffn_down"), ff, e, b);
}

static void put_head_norms(struct gen *g, const struct refbert *s, int il)
{
    const int d = s->n_embd / s->n_head;
    for (int i = 0; i < 2 * s->head_norm; i++)
        gen_tensor(g, d, i % 2 ? s->n_head_kv : s->n_head,
                   "blk.%d.attn_%s_norm.%s", il, i % 2 ? "k" : "q",
                   i < 2 ? "weight" : "bias");
}

static void put_layer(struct gen *g, const struct refbert *s, int il)
{
    const int e = s->n_embd, kv = e / s->n_head * s->n_head_kv;
    put_head_norms(g, s, il);
    if (s->pre) {
        add_pair(g, name_in(il, "attn_norm"), e, 0, 0);
        add_pair(g, name_in(il, "ffn_norm"), e, 0, 0);
    } else {
        add_pair(g, name_in(il, "attn_output_norm"), e, 0, 1);
        add_pair(g, name_in(il, "layer_output_norm"), e, 0, 1);
    }
    if (s->fused) {
        add_pair(g, name_in(il, "attn_qkv"), e, e + 2 * kv, s->qkv_bias);
    } else {
        add_pair(g, name_in(il, "attn_q"), e, e, s->qkv_bias);
        add_pair(g, name_in(il, "attn_k"), e, kv, s->qkv_bias);
        add_pair(g, name_in(il, "attn_v"), e, kv, s->qkv_bias);
    }
    add_pair(g, name_in(il, "attn_output"), e, e, s->out_bias);
    put_ffn(g, s, il);
}

void refbert_model(struct gen *g, const struct refbert *s, int n_vocab)
{
    gen_init(g, 23);
    put_keys(g, s, n_vocab);
    gen_tensor(g, s->n_embd, n_vocab, "token_embd.weight");
    if (s->types)
        gen_tensor(g, s->n_embd, s->types, "token_types.weight");
    if (s->positions)
        gen_tensor(g, s->n_embd, 64, "position_embd.weight");
    if (s->pre)
        gen_tensor(g, s->n_embd, 0, "%s.weight", s->last);
    else
        add_pair(g, "token_embd_norm", s->n_embd, 0, 1);
    for (int il = 0; il < s->n_layer; il++)
        put_layer(g, s, il);
}

/* ---- parts ---- */

struct pass {
    const struct gen *g;
    const struct refbert *s;
    int n, il;
};

/* y[t] = W x[t] + b, of rows [first, first + m) of a matrix of k columns. */
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

/* Of one name, of a layer or of the model. */
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
            y[i] =
                (y[i] - mean) / sqrt(var + (double)p->s->eps) * (double)w[i] +
                (b ? (double)b[i] : 0);
    }
    free(w);
    free(b);
}

static void apply_rope(const struct refbert *s, double *x, int d, int pos)
{
    const int n = s->rot ? s->rot : d, near = s->rope == REFBERT_PAIRS;
    for (int i = 0; s->rope != REFBERT_STILL && i < n / 2; i++) {
        const double base = s->base > 0 ? (double)s->base : 10000;
        const double angle = pos * pow(base, -2.0 * i / n);
        double *u = x + (near ? 2 * i : i), *v = near ? u + 1 : u + n / 2;
        const double a = *u, b = *v;
        *u = a * cos(angle) - b * sin(angle);
        *v = a * sin(angle) + b * cos(angle);
    }
}

static void attend_head(const struct pass *p, const double *q, const double *k,
                        const double *v, double *y)
{
    const struct refbert *s = p->s;
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
            sum += w[j] = exp(dot / sqrt(d));
        }
        for (int e = 0; e < d; e++)
            for (int j = 0; j < seen; j++)
                y[i * d + e] +=
                    w[j] / sum * v[(j * s->n_head_kv + h / per) * d + e];
    }
    free(w);
}

/* Layer norms of all heads of queries or keys, of their own epsilon. */
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
    const struct refbert *s = p->s;
    const int e = s->n_embd, d = e / s->n_head, kv = d * s->n_head_kv;
    static const char *const apart[] = { "attn_q", "attn_k", "attn_v" };
    const int m[] = { e, kv, kv }, first[] = { 0, e, e + kv };
    double *of[3], *z = ref_doubles((size_t)(p->n * e));
    for (int i = 0; i < 3; i++) {
        of[i] = ref_doubles((size_t)(p->n * m[i]));
        product(p, s->fused ? "attn_qkv" : apart[i], s->qkv_bias, x, e,
                s->fused ? first[i] : 0, m[i], of[i]);
        if (i < 2 && s->head_norm)
            head_norms(p, apart[i], of[i], m[i] / d);
        for (int j = 0; i < 2 && j < p->n * m[i] / d; j++)
            apply_rope(s, of[i] + j * d, d, j / (m[i] / d));
    }
    attend_head(p, of[0], of[1], of[2], z);
    product(p, "attn_output", s->out_bias, z, e, 0, e, y);
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
    const struct refbert *s = p->s;
    const int e = s->n_embd, ff = s->n_ff, b = s->ffn_bias == 1;
    const int halves = s->ffn == REFBERT_HALVES;
    double *up = ref_doubles((size_t)(p->n * ff));
    double *gate = ref_doubles((size_t)(p->n * ff));
    product(p, "ffn_up", b, x, e, halves ? ff : 0, ff, up);
    if (s->ffn != REFBERT_PLAIN)
        product(p, halves ? "ffn_up" : "ffn_gate", b, x, e, 0, ff, gate);
    for (int i = 0; i < p->n * ff; i++)
        up[i] = s->ffn == REFBERT_PLAIN ? gelu(up[i]) : silu(gate[i]) * up[i];
    product(p, "ffn_down", b, up, ff, 0, e, y);
    free(up);
    free(gate);
}

/* y += much * down(gelu(up x)) of expert k. */
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
    const struct refbert *s = p->s;
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
                         double *x)
{
    const int e = p->s->n_embd;
    float *w = ref_weights(p->g, "token_embd.weight");
    float *type = ref_weights(p->g, "token_types.weight");
    float *pos = ref_weights(p->g, "position_embd.weight");
    for (int t = 0; t < p->n; t++)
        for (int i = 0; i < e; i++)
            x[t * e + i] = (double)w[tok[t] * e + i] +
                           (type ? (double)type[i] : 0) +
                           (pos ? (double)pos[t * e + i] : 0);
    free(w);
    free(type);
    free(pos);
}

/* A part of a layer: x becomes what the stream is after it. */
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
    free(in_part);
    free(y);
}

void refbert_run(const struct gen *g, const struct refbert *s,
                 const gguf_token *tok, int n, double *x)
{
    struct pass p = { g, s, n, 0 };
    embed_tokens(&p, tok, x);
    if (!s->pre)
        apply_norm(&p, "token_embd_norm", x);
    for (p.il = 0; p.il < s->n_layer; p.il++) {
        add_part(&p, s->pre ? "attn_norm" : "attn_output_norm", x, attention);
        add_part(&p, s->pre ? "ffn_norm" : "layer_output_norm", x,
                 has_experts(s, p.il) ? moe_ffn : dense_ffn);
    }
    if (s->pre)
        apply_norm(&p, s->last, x);
}
