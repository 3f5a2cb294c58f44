/* SPDX-License-Identifier: MIT */
/* ref.c - a forward pass in double precision
 *
 * Plain loops over the tokens. The weights come from gen.h, and nothing else
 * of the library is used.
 */
#include "config.h"
#include "tests/model/ref.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

float *ref_weights(const struct gen *g, const char *fmt, ...)
{
    char name[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < g->n; i++) {
        const struct gen_tensor *t = &g->t[i];
        if (strcmp(t->name, name) != 0)
            continue;
        size_t n = (size_t)(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]);
        float *w = malloc(n * sizeof *w);
        if (!w)
            abort();
        gen_weights(w, g, t);
        return w;
    }
    return NULL;
}

double *ref_doubles(size_t n)
{
    double *p = calloc(n, sizeof *p);
    if (!p)
        abort();
    return p;
}

/* Callback for the vectors that matrices multiply. */
struct watch {
    ref_seen_fn *seen;
    void *user;
};

static void show_part(const struct watch *w, const char *part, unsigned il,
                      int token, const double *x, int n)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s.weight", il, part);
    if (w->seen)
        w->seen(w->user, name, token, x, n);
}

static void rms_norm(double *y, const double *x, const float *w, int n,
                     double eps)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sqrt(sum / n + eps) * (double)w[i];
}

void ref_linear(double *y, const float *w, const float *b, const double *x,
                int k, int m)
{
    for (int i = 0; i < m; i++) {
        y[i] = b ? (double)b[i] : 0;
        for (int j = 0; j < k; j++)
            y[i] += (double)w[(size_t)i * (size_t)k + (size_t)j] * x[j];
    }
}

/* Angle of pair i at position p; *scale: factor of the pair. YaRN as in arXiv
 * 2309.00071, section 3. */
static double angle(const struct gen_spec *s, const float *freqs, int n_rot,
                    int i, int p, double *scale)
{
    double base = (double)s->freq_base;
    double theta = p * pow(base, -2.0 * i / n_rot);
    if (freqs)
        theta /= (double)freqs[i];
    *scale = 1;
    if (!s->scaling)
        return theta;
    double f = (double)s->factor;
    if (strcmp(s->scaling, "linear") == 0)
        return theta / f;
    double lo = n_rot * log(s->n_ctx_orig / (32 * 2 * PI)) / (2 * log(base));
    double hi = n_rot * log(s->n_ctx_orig / (1 * 2 * PI)) / (2 * log(base));
    lo = fmax(0, floor(lo));
    hi = fmin(n_rot - 1, ceil(hi));
    double ramp = fmin(1, fmax(0, (i - lo) / fmax(0.001, hi - lo)));
    *scale = 1 + 0.1 * log(f);
    return theta / f * ramp + theta * (1 - ramp);
}

static void apply_rope(const struct gen_spec *s, const float *freqs, double *x,
                       int d, int p)
{
    int n_rot = s->n_rot ? (int)s->n_rot : d;
    int neox = strcmp(s->arch, "llama") != 0;
    for (int i = 0; i < n_rot / 2; i++) {
        double scale, a = angle(s, freqs, n_rot, i, p, &scale);
        double *u = neox ? &x[i] : &x[2 * i];
        double *v = neox ? &x[i + n_rot / 2] : &x[2 * i + 1];
        double c = cos(a) * scale, z = sin(a) * scale, u0 = *u, v0 = *v;
        *u = u0 * c - v0 * z;
        *v = u0 * z + v0 * c;
    }
}

/* Project, normalise and rotate the heads of n tokens: out [n][h * d]. */
static void project_heads(const struct gen *g, const struct gen_spec *s,
                          const char *what, unsigned il, const double *x,
                          int n, int d, int h, int rotate, double *out)
{
    int e = (int)s->n_embd;
    float *w = ref_weights(g, "blk.%u.attn_%s.weight", il, what);
    float *b = ref_weights(g, "blk.%u.attn_%s.bias", il, what);
    float *norm = ref_weights(g, "blk.%u.attn_%s_norm.weight", il, what);
    float *freqs = ref_weights(g, "rope_freqs.weight");
    for (int t = 0; t < n; t++) {
        double *y = out + t * h * d;
        ref_linear(y, w, b, x + t * e, e, h * d);
        for (int i = 0; i < h; i++) {
            if (norm)
                rms_norm(y + i * d, y + i * d, norm, d, (double)s->eps);
            if (rotate)
                apply_rope(s, freqs, y + i * d, d, t);
        }
    }
    free(w);
    free(b);
    free(norm);
    free(freqs);
}

/* Attention of head h (KV head hk) for token t: y[d]. */
static void attend_head(const double *q, const double *k, const double *v,
                        int t, int d, int stride_kv, double *y)
{
    double *p = ref_doubles((size_t)t + 1), max = -INFINITY, sum = 0;
    for (int i = 0; i <= t; i++) {
        for (int j = 0; j < d; j++)
            p[i] += q[j] * k[i * stride_kv + j];
        p[i] /= sqrt(d);
        max = fmax(max, p[i]);
    }
    for (int i = 0; i <= t; i++)
        sum += p[i] = exp(p[i] - max);
    for (int j = 0; j < d; j++) {
        y[j] = 0;
        for (int i = 0; i <= t; i++)
            y[j] += p[i] / sum * v[i * stride_kv + j];
    }
    free(p);
}

/* x += attention of layer il. */
static void attention(const struct gen *g, const struct gen_spec *s,
                      unsigned il, const struct ref_kept *kept, double *x,
                      int n, const struct watch *seen)
{
    int e = (int)s->n_embd, h = (int)s->n_head;
    int d = s->head_dim ? (int)s->head_dim : e / h;
    int hk = (int)(s->head_kv_layer ? s->head_kv_layer[il] : s->n_head_kv);
    double *z = ref_doubles((size_t)(n * e)), *o = ref_doubles((size_t)e);
    double *q = ref_doubles((size_t)(n * h * d)),
           *y = ref_doubles((size_t)(h * d));
    double *k = ref_doubles((size_t)(n * hk * d));
    double *v = ref_doubles((size_t)(n * hk * d));
    float *norm = ref_weights(g, "blk.%u.attn_norm.weight", il);
    float *w = ref_weights(g, "blk.%u.attn_output.weight", il);
    float *b = ref_weights(g, "blk.%u.attn_output.bias", il);
    for (int t = 0; t < n; t++) {
        rms_norm(z + t * e, x + t * e, norm, e, (double)s->eps);
        show_part(seen, "attn_q", il, t, z + t * e, e);
        show_part(seen, "attn_k", il, t, z + t * e, e);
        show_part(seen, "attn_v", il, t, z + t * e, e);
    }
    project_heads(g, s, "q", il, z, n, d, h, 1, q);
    project_heads(g, s, "k", il, z, n, d, hk, 1, k);
    project_heads(g, s, "v", il, z, n, d, hk, 0, v);
    for (int i = 0; kept && i < n * hk * d; i++) {
        k[i] = (double)kept->k[il][i];
        v[i] = (double)kept->v[il][i];
    }
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < h; i++)
            attend_head(q + (t * h + i) * d, k + i / (h / hk) * d,
                        v + i / (h / hk) * d, t, d, hk * d, y + i * d);
        show_part(seen, "attn_output", il, t, y, h * d);
        ref_linear(o, w, b, y, h * d, e);
        for (int i = 0; i < e; i++)
            x[t * e + i] += o[i];
    }
    free(z);
    free(o);
    free(q);
    free(y);
    free(k);
    free(v);
    free(norm);
    free(w);
    free(b);
}

static void feed_forward(const struct gen *g, const struct gen_spec *s,
                         unsigned il, double *x, int n,
                         const struct watch *seen)
{
    int e = (int)s->n_embd;
    int f = (int)(s->ff_layer ? s->ff_layer[il] : s->n_ff);
    double *z = ref_doubles((size_t)e), *gate = ref_doubles((size_t)f);
    double *up = ref_doubles((size_t)f);
    float *norm = ref_weights(g, "blk.%u.ffn_norm.weight", il);
    float *wg = ref_weights(g, "blk.%u.ffn_gate.weight", il);
    float *wu = ref_weights(g, "blk.%u.ffn_up.weight", il);
    float *wd = ref_weights(g, "blk.%u.ffn_down.weight", il);
    float *bg = ref_weights(g, "blk.%u.ffn_gate.bias", il);
    float *bu = ref_weights(g, "blk.%u.ffn_up.bias", il);
    float *bd = ref_weights(g, "blk.%u.ffn_down.bias", il);
    for (int t = 0; t < n; t++) {
        rms_norm(z, x + t * e, norm, e, (double)s->eps);
        show_part(seen, "ffn_gate", il, t, z, e);
        show_part(seen, "ffn_up", il, t, z, e);
        ref_linear(gate, wg, bg, z, e, f);
        ref_linear(up, wu, bu, z, e, f);
        for (int i = 0; i < f; i++)
            up[i] *= gate[i] / (1 + exp(-gate[i]));
        show_part(seen, "ffn_down", il, t, up, f);
        ref_linear(z, wd, bd, up, f, e);
        for (int i = 0; i < e; i++)
            x[t * e + i] += z[i];
    }
    free(z);
    free(gate);
    free(up);
    free(norm);
    free(wg);
    free(wu);
    free(wd);
    free(bg);
    free(bu);
    free(bd);
}

static void logits_of(const struct gen *g, const struct gen_spec *s,
                      const gguf_token *token, int n,
                      const struct ref_kept *kept, double *logits,
                      ref_seen_fn *seen, void *user)
{
    const struct watch watch = { seen, user };
    int e = (int)s->n_embd, v = (int)s->n_vocab;
    double *x = ref_doubles((size_t)(n * e));
    float *embd = ref_weights(g, "token_embd.weight");
    float *norm = ref_weights(g, "output_norm.weight");
    float *out = s->tied ? NULL : ref_weights(g, "output.weight");
    for (int t = 0; t < n; t++)
        for (int i = 0; i < e; i++)
            x[t * e + i] = (double)embd[token[t] * e + i];
    for (unsigned il = 0; il < s->n_layer; il++) {
        attention(g, s, il, kept, x, n, &watch);
        feed_forward(g, s, il, x, n, &watch);
    }
    for (int t = 0; t < n; t++) {
        rms_norm(x + t * e, x + t * e, norm, e, (double)s->eps);
        if (seen)
            seen(user, out ? "output.weight" : "token_embd.weight", t,
                 x + t * e, e);
        ref_linear(logits + t * v, out ? out : embd, NULL, x + t * e, e, v);
    }
    free(x);
    free(embd);
    free(norm);
    free(out);
}

void ref_logits(const struct gen *g, const struct gen_spec *s,
                const gguf_token *token, int n, double *logits)
{
    logits_of(g, s, token, n, NULL, logits, NULL, NULL);
}

void ref_logits_of(const struct gen *g, const struct gen_spec *s,
                   const gguf_token *token, int n, const struct ref_kept *kept,
                   double *logits)
{
    logits_of(g, s, token, n, kept, logits, NULL, NULL);
}

void ref_logits_seen(const struct gen *g, const struct gen_spec *s,
                     const gguf_token *token, int n, double *logits,
                     ref_seen_fn *seen, void *user)
{
    logits_of(g, s, token, n, NULL, logits, seen, user);
}
