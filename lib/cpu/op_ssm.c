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

/* Channels that are shared out together, and those of a tile: their kernels
 * stay in the first cache while tokens go by. */
enum { CHANNELS = 16 };

static int64_t tile_of(int64_t n_conv)
{
    const int64_t n = 8192 / n_conv / CHANNELS * CHANNELS;
    return GG_MAX((int64_t)CHANNELS, GG_MIN(n, (int64_t)1024));
}

/* Where channels of a token lie side by side, all of a tile are computed
 * together, with their kernels turned: [n_conv][tile]. */
static bool side_by_side(const struct gguf_tensor *x)
{
    return x->dtype == GGUF_DTYPE_F32 && x->nb[1] == sizeof(float) &&
           x->nb[0] % (int64_t)sizeof(float) == 0 && x->nb[0] > 0;
}

static size_t ssm_conv_work(const struct gguf_tensor *t, unsigned nth,
                            const struct gg_kern *kern)
{
    const struct gguf_tensor *x = t->src[0], *k = t->src[1];
    (void)kern;
    if (side_by_side(x))
        return gg_row_work(k->ne[0], 1, nth) +
               gg_row_work(k->ne[0] * tile_of(k->ne[0]), 1, nth);
    return gg_row_work(x->ne[0] + 1, N_CONV_TMP, nth);
}

/* Channels [first, first + n) of a sequence, a tile of them at most. */
static void conv_tile(struct gguf_tensor *t, const struct gg_cpu_task *task,
                      int64_t seq, int64_t first, int64_t n)
{
    const struct gguf_tensor *x = t->src[0], *k = t->src[1];
    const int64_t n_conv = k->ne[0];
    float *row = gg_row_tmp(task, n_conv, 1, 0);
    struct gg_cpu_task after = *task;
    after.work = (char *)task->work + gg_row_work(n_conv, 1, task->nth);
    float *w = gg_row_tmp(&after, n_conv * tile_of(n_conv), 1, 0);
    for (int64_t i = 0; i < n; i++) {
        const float *from = gg_row_load(
            task->kern, k, gg_row_at(k, first + i, 0, 0), row, n_conv);
        for (int64_t j = 0; j < n_conv; j++)
            w[j * n + i] = from[j];
    }
    const size_t step = (size_t)x->nb[0] / sizeof(float);
    const float *in = (const float *)gg_row_at(x, first, seq, 0);
    float *y = (float *)gg_row_at(t, 0, seq, 0) + first;
    for (int64_t tok = 0; tok < t->ne[1]; tok++)
        task->kern->vec.taps(y + tok * t->ne[0], in + (size_t)tok * step, step,
                             w, (size_t)n, (size_t)n_conv, (size_t)n);
}

/* Channels of sequences are shared out. */
static void conv_tiles(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const int64_t groups = (t->ne[0] + CHANNELS - 1) / CHANNELS;
    const int64_t most = tile_of(t->src[1]->ne[0]) / CHANNELS;
    int64_t i, end;
    gg_cpu_share(task, groups * t->ne[2], &i, &end);
    while (i < end) {
        const int64_t from = i % groups;
        const int64_t n = GG_MIN(GG_MIN(groups - from, end - i), most);
        const int64_t last = GG_MIN((from + n) * CHANNELS, t->ne[0]);
        conv_tile(t, task, i / groups, from * CHANNELS,
                  last - from * CHANNELS);
        i += n;
    }
}

/* Likewise, one by one: a channel of the source is a row. */
static void conv_rows(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *x = t->src[0], *k = t->src[1];
    const int64_t n = x->ne[0] + 1; /* room for either row */
    int64_t r, end;
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
            float sum = w[0] * row[tok];
            for (int64_t j = 1; j < k->ne[0]; j++)
                sum += w[j] * row[tok + j];
            *y = sum;
        }
    }
}

static void ssm_conv(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    if (gguf_tensor_is_empty(t))
        return;
    if (side_by_side(t->src[0]))
        conv_tiles(t, task);
    else
        conv_rows(t, task);
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
