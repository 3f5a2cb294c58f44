/* op_ssm.c - state-space models: the causal convolution and the scan */
#include "config.h"
#include "cpu/optab.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- convolution ---------------------------------------------------------- */

enum { TMP_X, TMP_KERNEL, N_CONV_TMP };

static size_t ssm_conv_work(const struct gguf_tensor *t, unsigned nth,
                            const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->src[0]->ne[0] + 1, N_CONV_TMP, nth);
}

/* Channels of sequences are shared out: a channel of the source is a row. */
static void ssm_conv(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *x = t->src[0], *k = t->src[1];
    const int64_t n = x->ne[0] + 1; /* room for either row */
    int64_t r, end;
    if (gguf_tensor_is_empty(t))
        return;
    gg_cpu_share(task, t->ne[0] * t->ne[2], &r, &end);
    for (; r < end; r++) {
        const int64_t i = r % t->ne[0], seq = r / t->ne[0];
        const float *row =
            gg_row_load(task->kern, x, gg_row_at(x, i, seq, 0),
                        gg_row_tmp(task, n, N_CONV_TMP, TMP_X), x->ne[0]);
        const float *w =
            gg_row_load(task->kern, k, gg_row_at(k, i, 0, 0),
                        gg_row_tmp(task, n, N_CONV_TMP, TMP_KERNEL), k->ne[0]);
        float *y = (float *)gg_row_at(t, 0, seq, 0) + i;
        for (int64_t tok = 0; tok < t->ne[1]; tok++, y += t->ne[0]) {
            float sum = 0;
            for (int64_t j = 0; j < k->ne[0]; j++)
                sum += w[j] * row[tok + j];
            *y = sum;
        }
    }
}

/* --- scan ----------------------------------------------------------------- */

enum { SRC_STATE, SRC_X, SRC_DT, SRC_A, SRC_B, SRC_C, SRC_IDS };
enum { TMP_ROW, TMP_A, TMP_B, TMP_C, TMP_DECAY, N_SCAN_TMP };

static int64_t longest(const struct gguf_tensor *t)
{
    return GG_MAX(t->src[SRC_STATE]->ne[0], t->src[SRC_X]->ne[0]);
}

static size_t ssm_scan_work(const struct gguf_tensor *t, unsigned nth,
                            const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(longest(t), N_SCAN_TMP, nth);
}

/* One head of one sequence. */
struct head {
    const struct gguf_tensor *t;
    const struct gg_cpu_task *task;
    int64_t h, seq;
    float *s; /* [head_dim][d_state] */
    const float *a;
};

/* Row (i1, i2) of source i in the sequence. */
static const float *row_of(const struct head *p, int i, int tmp, int64_t i1,
                           int64_t i2)
{
    const struct gguf_tensor *src = p->t->src[i];
    return gg_row_load(
        p->task->kern, src, gg_row_at(src, i1, i2, p->seq),
        gg_row_tmp(p->task, longest(p->t), N_SCAN_TMP, (unsigned)tmp),
        src->ne[0]);
}

static float softplus(float x)
{
    return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
}

static void scan_token(const struct head *p, int64_t tok, float *y)
{
    const struct gguf_tensor *x = p->t->src[SRC_X], *dt = p->t->src[SRC_DT];
    const struct gguf_tensor *a = p->t->src[SRC_A], *b = p->t->src[SRC_B];
    const struct gg_vec_kern *vec = &p->task->kern->vec;
    const int64_t n = p->t->src[SRC_STATE]->ne[0];
    const int64_t group = p->h / (x->ne[1] / b->ne[1]);
    const float d = softplus(
        gg_row_get(p->task->kern, dt, gg_row_at(dt, tok, p->seq, 0), p->h));
    const float *row = row_of(p, SRC_X, TMP_ROW, p->h, tok);
    const float *br = row_of(p, SRC_B, TMP_B, group, tok);
    const float *cr = row_of(p, SRC_C, TMP_C, group, tok);
    float *decay = gg_row_tmp(p->task, longest(p->t), N_SCAN_TMP, TMP_DECAY);
    for (int64_t i = 0; i < n; i++)
        decay[i] = a->ne[0] > 1 || !i ? expf(d * p->a[i]) : decay[0];
    for (int64_t e = 0; e < x->ne[0]; e++) {
        float *s = p->s + e * n;
        const float dx = d * row[e];
        for (int64_t i = 0; i < n; i++)
            s[i] = s[i] * decay[i] + br[i] * dx;
        y[e] = vec->dot(s, cr, (size_t)n);
    }
}

static void scan_head(struct head *p, int64_t first)
{
    const struct gguf_tensor *state = p->t->src[SRC_STATE];
    const struct gguf_tensor *x = p->t->src[SRC_X], *a = p->t->src[SRC_A];
    const int64_t n = state->ne[0], dim = x->ne[0], heads = x->ne[1];
    float *y = p->t->data;
    p->s = y + gguf_tensor_n_elements(x) + (p->seq * heads + p->h) * dim * n;
    float *tmp = gg_row_tmp(p->task, longest(p->t), N_SCAN_TMP, TMP_ROW);
    for (int64_t e = 0; e < dim; e++)
        memcpy(p->s + e * n,
               gg_row_load(p->task->kern, state,
                           gg_row_at(state, e, p->h, first), tmp, n),
               (size_t)n * sizeof *p->s);
    p->a = gg_row_load(p->task->kern, a, gg_row_at(a, p->h, 0, 0),
                       gg_row_tmp(p->task, longest(p->t), N_SCAN_TMP, TMP_A),
                       a->ne[0]);
    for (int64_t tok = 0; tok < x->ne[2]; tok++)
        scan_token(p, tok,
                   y + ((p->seq * x->ne[2] + tok) * heads + p->h) * dim);
}

/* Heads of sequences are shared out. */
static void ssm_scan(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *state = t->src[SRC_STATE], *x = t->src[SRC_X];
    const struct gguf_tensor *ids = t->src[SRC_IDS];
    int64_t i, end;
    if (!x->ne[0])
        return;
    gg_cpu_share(task, x->ne[1] * x->ne[3], &i, &end);
    for (; i < end; i++) {
        struct head p = {
            .t = t, .task = task, .h = i % x->ne[1], .seq = i / x->ne[1]
        };
        int32_t first;
        memcpy(&first, (const char *)ids->data + p.seq * ids->nb[0],
               sizeof first);
        if (first < 0 || first >= state->ne[3]) {
            gg_cpu_fail(task, GGUF_E_INVALID,
                        "ssm_scan: state %" PRId32 " of %" PRId64, first,
                        state->ne[3]);
            return;
        }
        scan_head(&p, first);
    }
}

GG_CPU_OP(ssm_conv, ssm_conv, ssm_conv_work, gg_cpu_elem_supports, false);
GG_CPU_OP(ssm_scan, ssm_scan, ssm_scan_work, gg_cpu_elem_supports, false);
