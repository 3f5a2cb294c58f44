/* op_recur.c - linear attention: a state for each head, token by token
 *
 * Heads of sequences are shared out. A head's state lies where the result
 * wants it, and each token's step reads and writes it there.
 */
#include "config.h"
#include "cpu/optab.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <string.h>

enum {
    N_IN = 6, /* sources besides the state, at most */
    N_TMP = N_IN
};

/* One token of one head. in: its rows of the sources, in order. */
struct step {
    int64_t n;
    float *s; /* [n][n]; the header's S[j, i] is s[i * n + j] */
    float *y;
    const float *in[N_IN];
    const struct gguf_tensor *t;
    const struct gg_vec_kern *vec;
};
typedef void step_fn(const struct step *p);

static void wkv6_step(const struct step *p)
{
    const float *r = p->in[0], *k = p->in[1], *v = p->in[2];
    const float *u = p->in[3], *w = p->in[4];
    memset(p->y, 0, (size_t)p->n * sizeof *p->y);
    for (int64_t i = 0; i < p->n; i++) {
        float *s = p->s + i * p->n;
        for (int64_t j = 0; j < p->n; j++) {
            const float kv = k[i] * v[j];
            p->y[j] += r[i] * (u[i] * kv + s[j]);
            s[j] = w[i] * s[j] + kv;
        }
    }
}

static void gla_step(const struct step *p)
{
    const float *q = p->in[0], *k = p->in[1], *v = p->in[2], *g = p->in[3];
    float scale;
    memcpy(&scale, p->t->op_params, sizeof scale);
    memset(p->y, 0, (size_t)p->n * sizeof *p->y);
    for (int64_t i = 0; i < p->n; i++) {
        float *s = p->s + i * p->n;
        for (int64_t j = 0; j < p->n; j++) {
            s[j] = g[i] * s[j] + k[i] * v[j];
            p->y[j] += scale * q[i] * s[j];
        }
    }
}

static void wkv7_step(const struct step *p)
{
    const float *r = p->in[0], *k = p->in[1], *v = p->in[2];
    const float *w = p->in[3], *a = p->in[4], *b = p->in[5];
    for (int64_t i = 0; i < p->n; i++) {
        float *s = p->s + i * p->n;
        const float e = p->vec->dot(s, a, (size_t)p->n);
        for (int64_t j = 0; j < p->n; j++)
            s[j] = w[j] * s[j] + k[j] * v[i] + b[j] * e;
        p->y[i] = p->vec->dot(s, r, (size_t)p->n);
    }
}

static size_t recur_work(const struct gguf_tensor *t, unsigned nth,
                         const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->src[2]->ne[0], N_TMP, nth);
}

/* The first state, from wherever it lies. */
static void load_state(float *to, const struct gguf_tensor *state,
                       const struct gg_cpu_task *task, int64_t h, int64_t seq)
{
    const int64_t n = state->ne[0];
    float *tmp = gg_row_tmp(task, n, N_TMP, 0);
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * n,
               gg_row_load(task->kern, state, gg_row_at(state, i, h, seq), tmp,
                           n),
               (size_t)n * sizeof *to);
}

/* All tokens of one head; sources before the one that is the state, each
 * broadcast to v's shape. */
static void run_head(const struct step *proto, const struct gg_cpu_task *task,
                     step_fn *fn, int n_in, int64_t h, int64_t seq)
{
    const struct gguf_tensor *t = proto->t, *v = t->src[2];
    struct step p = *proto;
    const int64_t n = p.n, heads = v->ne[1], tok = v->ne[2];
    float *y = t->data;
    p.s = y + gguf_tensor_n_elements(v) + (seq * heads + h) * n * n;
    load_state(p.s, t->src[n_in], task, h, seq);
    for (int64_t k = 0; k < tok; k++) {
        p.y = y + ((seq * tok + k) * heads + h) * n;
        for (int i = 0; i < n_in; i++)
            p.in[i] = gg_row_load(
                task->kern, t->src[i],
                gg_row_mod(t->src[i], (struct gg_cpu_pos){ h, k, seq }),
                gg_row_tmp(task, n, N_TMP, (unsigned)i), t->src[i]->ne[0]);
        fn(&p);
    }
}

static void each_head(const struct gguf_tensor *t,
                      const struct gg_cpu_task *task, step_fn *fn, int n_in)
{
    const struct gguf_tensor *v = t->src[2];
    const struct step p = { .n = v->ne[0], .t = t, .vec = &task->kern->vec };
    int64_t i, end;
    if (!v->ne[0])
        return;
    gg_cpu_share(task, v->ne[1] * v->ne[3], &i, &end);
    for (; i < end; i++)
        run_head(&p, task, fn, n_in, i % v->ne[1], i / v->ne[1]);
}

/* n_in: sources before the one that is the state. */
#define RECUR(name, step, n_in)                                               \
    static void name##_run(struct gguf_tensor *t,                             \
                           const struct gg_cpu_task *task)                    \
    {                                                                         \
        each_head(t, task, step, n_in);                                       \
    }                                                                         \
    GG_CPU_OP(name, name##_run, recur_work, gg_cpu_elem_supports, false);

RECUR(rwkv_wkv6, wkv6_step, 5)
RECUR(rwkv_wkv7, wkv7_step, 6)
RECUR(gated_linear_attn, gla_step, 4)
