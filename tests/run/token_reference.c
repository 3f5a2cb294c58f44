/* SPDX-License-Identifier: MIT */
/* token_reference.c - llama in double precision, one token at a time */
#include "config.h"
#include "tests/run/token_reference.h"

#include "tests/model/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, OUT, GATE, UP, DOWN, NORM, FFN_NORM, N_WEIGHTS };

struct token_ref_layer {
    float *w[N_WEIGHTS];
};

void token_ref_init(struct token_ref *m, const struct gen *g,
                    const struct gen_spec *spec, int window)
{
    static const char *const name[N_WEIGHTS] = {
        [Q] = "attn_q",        [K] = "attn_k",       [V] = "attn_v",
        [OUT] = "attn_output", [GATE] = "ffn_gate",  [UP] = "ffn_up",
        [DOWN] = "ffn_down",   [NORM] = "attn_norm", [FFN_NORM] = "ffn_norm"
    };
    *m = (struct token_ref){ .spec = spec, .window = window };
    m->layer = calloc(spec->n_layer, sizeof *m->layer);
    if (!m->layer)
        abort();
    const int d = (int)(spec->n_embd / spec->n_head);
    m->freq = ref_doubles((size_t)d / 2);
    for (int i = 0; i < d; i += 2)
        m->freq[i / 2] = pow((double)spec->freq_base, -(double)i / d);
    m->embd = ref_weights(g, "token_embd.weight");
    m->norm = ref_weights(g, "output_norm.weight");
    m->out = ref_weights(g, "output.weight");
    for (unsigned il = 0; il < spec->n_layer; il++)
        for (int i = 0; i < N_WEIGHTS; i++)
            m->layer[il].w[i] =
                ref_weights(g, "blk.%u.%s.weight", il, name[i]);
}

void token_ref_fini(struct token_ref *m)
{
    for (unsigned il = 0; il < m->spec->n_layer; il++)
        for (int i = 0; i < N_WEIGHTS; i++)
            free(m->layer[il].w[i]);
    for (struct token_ref_kv *t = m->pool, *next; t; t = next) {
        next = t->next;
        free(t->k);
        free(t->v);
        free(t);
    }
    free(m->layer);
    free(m->freq);
    free(m->embd);
    free(m->norm);
    free(m->out);
}

static void norm_row(const struct token_ref *m, const float *w,
                     const double *x, double *y)
{
    const int n = (int)m->spec->n_embd;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sqrt(sum / n + (double)m->spec->eps) * (double)w[i];
}

static int head_dim(const struct token_ref *m)
{
    return (int)(m->spec->n_embd / m->spec->n_head);
}

/* Product of a query, after RoPE, and a key at a position. */
static double product(const struct token_ref *m, const double *q,
                      const double *k, int pos)
{
    const int d = head_dim(m);
    double sum = 0;
    for (int i = 0; i < d; i += 2) {
        const double a = pos * m->freq[i / 2];
        sum += q[i] * (k[i] * cos(a) - k[i + 1] * sin(a)) +
               q[i + 1] * (k[i] * sin(a) + k[i + 1] * cos(a));
    }
    return sum;
}

static void apply_rope(const struct token_ref *m, double *q, int pos)
{
    const int d = head_dim(m);
    for (int i = 0; i < d; i += 2) {
        const double a = pos * m->freq[i / 2];
        const double x = q[i], y = q[i + 1];
        q[i] = x * cos(a) - y * sin(a);
        q[i + 1] = x * sin(a) + y * cos(a);
    }
}

/* Result y[d] of one head. */
static void attend_head(const struct token_ref *m, unsigned il,
                        const double *q, int head, int pos,
                        const struct token_ref_visible *seen, int n, double *y)
{
    const int d = head_dim(m), n_kv = (int)m->spec->n_head_kv;
    const int at = ((int)il * n_kv + head / ((int)m->spec->n_head / n_kv)) * d;
    const int first = m->window && il % 2 == 0 ? pos - m->window + 1 : 0;
    double *p = ref_doubles((size_t)n), max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) {
        p[i] = seen[i].pos < first
                   ? -INFINITY
                   : product(m, q, seen[i].t->k + at, seen[i].pos) / sqrt(d);
        max = fmax(max, p[i]);
    }
    memset(y, 0, (size_t)d * sizeof *y);
    for (int i = 0; i < n; i++) {
        const double w = exp(p[i] - max);
        sum += w;
        for (int j = 0; j < d; j++)
            y[j] += w * seen[i].t->v[at + j];
    }
    for (int j = 0; j < d; j++)
        y[j] /= sum;
    free(p);
}

static void attention(const struct token_ref *m, unsigned il,
                      struct token_ref_kv *t, int pos,
                      const struct token_ref_visible *seen, int n, double *x)
{
    const struct gen_spec *s = m->spec;
    const struct token_ref_layer *l = &m->layer[il];
    const int e = (int)s->n_embd, d = head_dim(m), kv = (int)s->n_head_kv * d;
    double *z = ref_doubles(3 * (size_t)e), *q = z + e, *y = q + e;
    norm_row(m, l->w[NORM], x, z);
    ref_linear(q, l->w[Q], NULL, z, e, e);
    ref_linear(t->k + (int)il * kv, l->w[K], NULL, z, e, kv);
    ref_linear(t->v + (int)il * kv, l->w[V], NULL, z, e, kv);
    for (int h = 0; h < (int)s->n_head; h++) {
        apply_rope(m, q + h * d, pos);
        attend_head(m, il, q + h * d, h, pos, seen, n, y + h * d);
    }
    ref_linear(z, l->w[OUT], NULL, y, e, e);
    for (int i = 0; i < e; i++)
        x[i] += z[i];
    free(z);
}

static void feed_forward(const struct token_ref *m, unsigned il, double *x)
{
    const struct token_ref_layer *l = &m->layer[il];
    const int e = (int)m->spec->n_embd, f = (int)m->spec->n_ff;
    double *z = ref_doubles((size_t)(e + 2 * f)), *gate = z + e,
           *up = gate + f;
    norm_row(m, l->w[FFN_NORM], x, z);
    ref_linear(gate, l->w[GATE], NULL, z, e, f);
    ref_linear(up, l->w[UP], NULL, z, e, f);
    for (int i = 0; i < f; i++)
        up[i] *= gate[i] / (1 + exp(-gate[i]));
    ref_linear(z, l->w[DOWN], NULL, up, f, e);
    for (int i = 0; i < e; i++)
        x[i] += z[i];
    free(z);
}

const struct token_ref_kv *
token_ref_evaluate(struct token_ref *m, int token, int pos,
                   const struct token_ref_visible *seen, int n, double *logits)
{
    const struct gen_spec *s = m->spec;
    const size_t e = s->n_embd;
    const size_t kv = s->n_layer * s->n_head_kv * (size_t)head_dim(m);
    struct token_ref_kv *t = calloc(1, sizeof *t);
    struct token_ref_visible *all = calloc((size_t)n + 1, sizeof *all);
    double *x = ref_doubles(2 * e);
    if (!t || !all)
        abort();
    *t = (struct token_ref_kv){ m->pool, ref_doubles(kv), ref_doubles(kv) };
    m->pool = t;
    if (n)
        memcpy(all, seen, (size_t)n * sizeof *all);
    all[n] = (struct token_ref_visible){ t, pos };
    for (size_t i = 0; i < e; i++)
        x[i] = (double)m->embd[(size_t)token * e + i];
    for (unsigned il = 0; il < s->n_layer; il++) {
        attention(m, il, t, pos, all, n + 1, x);
        feed_forward(m, il, x);
    }
    if (logits) {
        norm_row(m, m->norm, x, x + e);
        ref_linear(logits, m->out, NULL, x + e, (int)e, (int)s->n_vocab);
    }
    free(all);
    free(x);
    return t;
}
