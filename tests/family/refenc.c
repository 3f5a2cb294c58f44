/* SPDX-License-Identifier: MIT */
/* refenc.c - T5 in double precision
 *
 * Plain loops over the tokens. The weights come from gen.h, and nothing else
 * of the library is used.
 */
#include "config.h"
#include "tests/family/refenc.h"
#include "tests/ignore_status.h"
#include "tests/model/ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts ---- */

static double gelu(double x)
{
    return 0.5 * x *
           (1 + tanh(sqrt(2 / 3.14159265358979323846) *
                     (x + 0.044715 * x * x * x)));
}

/* y[t] = W x[t] + b for n tokens; stem: first part of the tensors' names. */
static void product(const struct gen *g, const char *stem, const double *x,
                    int n, int k, int m, double *y)
{
    float *w = ref_weights(g, "%s.weight", stem);
    float *b = ref_weights(g, "%s.bias", stem);
    for (int t = 0; t < n; t++)
        ref_linear(y + t * m, w, b, x + t * k, k, m);
    free(w);
    free(b);
}

static void norm_rows(const struct gen *g, const char *stem, double *x, int n,
                      int e)
{
    float *w = ref_weights(g, "%s.weight", stem);
    for (int t = 0; t < n; t++) {
        double *y = x + t * e, sum = 0;
        for (int i = 0; i < e; i++)
            sum += y[i] * y[i] / e;
        for (int i = 0; i < e; i++)
            y[i] *= (double)w[i] / sqrt(sum + 1e-5);
    }
    free(w);
}

/* out = softmax(scale q k + bias) v of one head. q [n], k and v [m] are rows
 * of the given widths; bias is [n][m]. */
static void attend_head(const double *q, int q_row, const double *k,
                        const double *v, int k_row, int d, int n, int m,
                        double scale, const double *bias, double *out)
{
    double *w = ref_doubles((size_t)m);
    for (int t = 0; t < n; t++) {
        double max = -INFINITY, sum = 0;
        for (int i = 0; i < m; i++) {
            w[i] = 0;
            for (int j = 0; j < d; j++)
                w[i] += scale * q[t * q_row + j] * k[i * k_row + j];
            w[i] += bias ? bias[t * m + i] : 0;
            max = fmax(max, w[i]);
        }
        for (int i = 0; i < m; i++)
            sum += w[i] = exp(w[i] - max);
        for (int j = 0; j < d; j++) {
            double y = 0;
            for (int i = 0; i < m; i++)
                y += w[i] / sum * v[i * k_row + j];
            out[t * q_row + j] = y;
        }
    }
    free(w);
}

static void embed_tokens(const struct gen *g, const gguf_token *tok, int n,
                         int e, double *x)
{
    float *w = ref_weights(g, "token_embd.weight");
    for (int t = 0; t < n; t++)
        for (int i = 0; i < e; i++)
            x[t * e + i] = (double)w[tok[t] * e + i];
    free(w);
}

static void add_rows(double *x, const double *y, int n)
{
    for (int i = 0; i < n; i++)
        x[i] += y[i];
}

static const char *name_stem(char out[64], const char *half, int il,
                             const char *what)
{
    snprintf(out, 64, "%s%d.%s", half, il, what);
    return out;
}

/* ---- T5 ---- */

struct model {
    int n_vocab, n_embd, n_ff, n_head, n_head_kv,
        d;                       /* d: elements of a head */
    int n_enc, n_dec, n_buckets; /* layers, and buckets; n_dec 0: an encoder
                                  * without decoder */
    int gated;                   /* GEGLU; 0: ReLU */
    int rel_all; /* every layer has a table of biases; 0: the first layer's is
                  * shared */
    int tied;    /* the embedding is the output matrix */
};

static int get_key(const struct skeleton *m, const char *key, int other)
{
    char name[192];
    uint64_t v = (uint64_t)other;
    skeleton_key(m, key, name);
    ignore_status(gguf_kv_get_uint(gguf_meta_find(m->g.meta, name), &v, NULL));
    return (int)v;
}

static int has_tensor(const struct skeleton *m, const char *name)
{
    for (size_t i = 0; i < m->g.n; i++)
        if (!strcmp(m->g.t[i].name, name))
            return 1;
    return 0;
}

static struct model read_model(const struct skeleton *m)
{
    struct model s = { .n_vocab = get_key(m, ".vocab_size", 0) };
    s.n_embd = get_key(m, ".embedding_length", 0);
    s.n_ff = get_key(m, ".feed_forward_length", 0);
    s.n_head = get_key(m, ".attention.head_count", 1);
    s.n_head_kv = get_key(m, ".attention.head_count_kv", s.n_head);
    s.d = get_key(m, ".attention.key_length", s.n_embd / s.n_head);
    s.n_enc = get_key(m, ".block_count", 0);
    if (has_tensor(m, "dec.output_norm.weight"))
        s.n_dec = get_key(m, ".decoder_block_count", s.n_enc);
    s.n_buckets = get_key(m, ".attention.relative_buckets_count", 0);
    s.gated = has_tensor(m, "enc.blk.0.ffn_gate.weight");
    s.rel_all = has_tensor(m, "enc.blk.1.attn_rel_b.weight") ||
                has_tensor(m, "dec.blk.1.attn_rel_b.weight");
    s.tied = !has_tensor(m, "output.weight");
    return s;
}

/* Bucket of a distance: the last one that begins at or before it. */
static int bucket(int n, int both, int rel)
{
    int first = 0, d = rel < 0 ? -rel : 0;
    if (both) {
        n /= 2;
        first = rel > 0 ? n : 0;
        d = abs(rel);
    }
    const int near = n / 2;
    int b = d < near ? d : near;
    for (int i = near + 1; i < n; i++)
        if (d >=
            near * pow(128.0 / near, (double)(i - near) / (n - near)) - 1e-7)
            b = i;
    return first + b;
}

/* The bias that head h of a layer adds to its scores. */
static void add_bias(const struct gen *g, const struct model *s,
                     const char *half, int il, int h, int n, double *bias)
{
    const bool both = half[0] == 'e';
    float *rel =
        ref_weights(g, "%s%d.attn_rel_b.weight", half, s->rel_all ? il : 0);
    for (int t = 0; t < n; t++)
        for (int i = 0; i < n; i++)
            bias[t * n + i] =
                !both && i > t
                    ? -INFINITY
                    : (double)
                          rel[bucket(s->n_buckets, both, i - t) * s->n_head +
                              h];
    free(rel);
}

/* x [n] += attention to itself, or to the encoder's states [m]. */
static void t5_attention(const struct gen *g, const struct model *s,
                         const char *half, int il, double *x, int n,
                         const double *from, int m)
{
    const int e = s->n_embd, d = s->d, nq = s->n_head * d,
              nk = s->n_head_kv * d;
    const char *w = from ? "cross_attn_" : "attn_";
    char name[64], at[40];
    double *y = ref_doubles((size_t)(n * e)),
           *q = ref_doubles((size_t)(n * nq));
    const int n_kv = from ? m : n;
    double *k = ref_doubles((size_t)(n_kv * nk)),
           *v = ref_doubles((size_t)(n_kv * nk));
    double *z = ref_doubles((size_t)(n * nq));
    double *bias = from ? NULL : ref_doubles((size_t)(n * n));
    memcpy(y, x, (size_t)(n * e) * sizeof *y);
#define NAME(X)                                                               \
    (snprintf(at, sizeof at, "%s" X, w), name_stem(name, half, il, at))
    norm_rows(g, NAME("norm"), y, n, e);
    product(g, NAME("q"), y, n, e, nq, q);
    product(g, NAME("k"), from ? from : y, n_kv, e, nk, k);
    product(g, NAME("v"), from ? from : y, n_kv, e, nk, v);
    for (int h = 0; h < s->n_head; h++) {
        const int kv = h / (s->n_head / s->n_head_kv) * d;
        if (bias)
            add_bias(g, s, half, il, h, n, bias);
        attend_head(q + h * d, nq, k + kv, v + kv, nk, d, n, n_kv, 1, bias,
                    z + h * d);
    }
    product(g, NAME("o"), z, n, nq, e, y);
#undef NAME
    add_rows(x, y, n * e);
    free(y);
    free(q);
    free(k);
    free(v);
    free(z);
    free(bias);
}

static void t5_ffn(const struct gen *g, const struct model *s,
                   const char *half, int il, double *x, int n)
{
    const int e = s->n_embd, f = s->n_ff;
    char name[64];
    double *y = ref_doubles((size_t)(n * e)),
           *up = ref_doubles((size_t)(n * f)),
           *gate = ref_doubles((size_t)(n * f));
    memcpy(y, x, (size_t)(n * e) * sizeof *y);
    norm_rows(g, name_stem(name, half, il, "ffn_norm"), y, n, e);
    product(g, name_stem(name, half, il, "ffn_up"), y, n, e, f, up);
    if (s->gated)
        product(g, name_stem(name, half, il, "ffn_gate"), y, n, e, f, gate);
    for (int i = 0; i < n * f; i++)
        up[i] = s->gated ? gelu(gate[i]) * up[i] : fmax(up[i], 0);
    product(g, name_stem(name, half, il, "ffn_down"), up, n, f, e, y);
    add_rows(x, y, n * e);
    free(y);
    free(up);
    free(gate);
}

void refenc_t5_run(const struct skeleton *of, const gguf_token *text, int n,
                   const gguf_token *to, int m, double *states, double *logits)
{
    const struct model model = read_model(of), *s = &model;
    const struct gen *g = &of->g;
    const int e = s->n_embd;
    embed_tokens(g, text, n, e, states);
    for (int il = 0; il < s->n_enc; il++) {
        t5_attention(g, s, "enc.blk.", il, states, n, NULL, 0);
        t5_ffn(g, s, "enc.blk.", il, states, n);
    }
    norm_rows(g, "enc.output_norm", states, n, e);
    if (!s->n_dec)
        return;
    double *x = ref_doubles((size_t)(m * e));
    embed_tokens(g, to, m, e, x);
    for (int il = 0; il < s->n_dec; il++) {
        t5_attention(g, s, "dec.blk.", il, x, m, NULL, 0);
        t5_attention(g, s, "dec.blk.", il, x, m, states, n);
        t5_ffn(g, s, "dec.blk.", il, x, m);
    }
    norm_rows(g, "dec.output_norm", x, m, e);
    product(g, s->tied ? "token_embd" : "output", x, m, e, s->n_vocab, logits);
    free(x);
}
