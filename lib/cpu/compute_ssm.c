/* SPDX-License-Identifier: MIT */
/* compute_ssm.c - state-space models: the causal convolution and the scan */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <inttypes.h>
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

/* Threads claim channels of sequences. */
static void conv_tiles(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const int64_t groups = (t->ne[0] + CHANNELS - 1) / CHANNELS;
    const int64_t most = tile_of(t->src[1]->ne[0]) / CHANNELS;
    int64_t i, end;
    while (gg_cpu_claim_items(task, groups * t->ne[2], &i, &end))
        for (int64_t n; i < end; i += n) {
            const int64_t from = i % groups;
            n = GG_MIN(GG_MIN(groups - from, end - i), most);
            const int64_t last = GG_MIN((from + n) * CHANNELS, t->ne[0]);
            conv_tile(t, task, i / groups, from * CHANNELS,
                      last - from * CHANNELS);
        }
}

/* Convolve channel by channel: a channel of the source is a row. */
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

/* Tokens at a time, so that what all rows read stays in the first cache, and
 * heads of one row that are taken together. */
enum { TILE = 16, BLOCK = 16 };

/* Scratch: rows of each token of a tile; of each head; one row; numbers of each
 * token. */
enum { TMP_STEP, TMP_DX, TMP_B, TMP_C, N_TILES };
enum {
    TMP_A = N_TILES * TILE,
    TMP_ROW = TMP_A + BLOCK,
    TMP_DECAY,
    N_SCAN_TMP
};

/* A head of a sequence, or n_heads of one row each, which have their own
 * decays. */
struct part {
    const struct gguf_tensor *t;
    const struct gg_cpu_task *task;
    int64_t head, n_heads, group, seq;
    bool own; /* each element has its own decay */
    struct gg_vec_scan d;
};

static int64_t source_width(const struct gguf_tensor *t)
{
    return GG_MAX(GG_MAX(t->src[SRC_STATE]->ne[0], t->src[SRC_X]->ne[0]),
                  (int64_t)TILE);
}

static size_t ssm_scan_work(const struct gguf_tensor *t, unsigned nth,
                            const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(source_width(t), N_SCAN_TMP, nth);
}

static float *source_tmp(const struct part *p, int i)
{
    return gg_row_tmp(p->task, source_width(p->t), N_SCAN_TMP, (unsigned)i);
}

/* Row (i1, i2, i3) of source i. */
static const float *source_row(const struct part *p, int i, int64_t i1,
                               int64_t i2, int64_t i3)
{
    const struct gguf_tensor *src = p->t->src[i];
    return gg_row_load(p->task->kern, src, gg_row_at(src, i1, i2, i3),
                       source_tmp(p, TMP_ROW), src->ne[0]);
}

/* Rows of n numbers that lie where p says, if they can be read there. */
static bool in_place(const struct gguf_tensor *src, int64_t stride, int64_t n)
{
    return gg_row_is_plain(src) && (n == 1 || src->nb[0] == sizeof(float)) &&
           stride % (int64_t)sizeof(float) == 0;
}

/* The time step and the input of each row, of token tok, the kth of a tile. */
static void prepare_token(const struct part *p, int64_t tok, int64_t k)
{
    const struct gguf_tensor *x = p->t->src[SRC_X], *dt = p->t->src[SRC_DT];
    const struct gg_kern *kern = p->task->kern;
    const int64_t n = (int64_t)p->d.n_rows;
    float *step = source_tmp(p, TMP_STEP * TILE) + k * n;
    float *dx = source_tmp(p, TMP_DX * TILE) + k * n;
    float *decay = source_tmp(p, TMP_DECAY) + k;
    const char *at = gg_row_at(dt, tok, p->seq, 0);
    const float *from = gg_row_load(kern, dt, at + p->head * dt->nb[0],
                                    source_tmp(p, TMP_ROW), p->n_heads);
    kern->vec.softplus(step, from, (size_t)p->n_heads);
    *decay = 0;
    if (p->n_heads > 1) {
        for (int64_t i = 0; i < n; i++)
            dx[i] =
                gg_row_get(kern, x, gg_row_at(x, p->head + i, tok, p->seq), 0);
        kern->vec.mul(dx, dx, step, (size_t)n);
        return;
    }
    kern->vec.scale(dx, source_row(p, SRC_X, p->head, tok, p->seq), (size_t)n,
                    *step, 0);
    if (!p->own) {
        const float power = *step * *source_row(p, SRC_A, p->head, 0, 0);
        kern->vec.exp_sum(decay, &power, 1, 0);
    }
    for (int64_t i = n; i-- > 0;)
        step[i] = *step;
}

/* Row of a tile that all rows read: in place, or decoded. */
static const float *shared_row(const struct part *p, int i, int what,
                               int64_t tok, size_t *stride)
{
    const struct gguf_tensor *src = p->t->src[i];
    const size_t n = p->d.n;
    if (in_place(src, src->nb[2], src->ne[0])) {
        *stride = (size_t)src->nb[2] / sizeof(float);
        return gg_row_at(src, p->group, tok, p->seq);
    }
    *stride = n;
    for (size_t k = 0; k < p->d.n_tok; k++)
        memcpy(source_tmp(p, what * TILE) + k * n,
               source_row(p, i, p->group, tok + (int64_t)k, p->seq),
               n * sizeof(float));
    return source_tmp(p, what * TILE);
}

/* The state before the first token: where it lies, or put where it goes. */
static void take_state(struct part *p, int32_t first, bool copy)
{
    const struct gguf_tensor *s = p->t->src[SRC_STATE];
    const int64_t n = (int64_t)p->d.n;
    const bool heads = p->n_heads > 1;
    const int64_t stride = s->nb[heads ? 2 : 1];
    p->d.from = gg_row_at(s, 0, p->head, first);
    if (!copy && in_place(s, stride, n) &&
        stride == n * (int64_t)sizeof(float))
        return;
    p->d.from = p->d.s;
    for (int64_t i = 0; i < (int64_t)p->d.n_rows; i++)
        memcpy(p->d.s + i * n,
               source_row(p, SRC_STATE, heads ? 0 : i,
                          p->head + (heads ? i : 0), first),
               (size_t)n * sizeof(float));
}

/* Decays of each element, of each head. */
static void take_decays(struct part *p)
{
    const size_t n = p->d.n;
    if (!p->own)
        return;
    for (int64_t i = 0; i < p->n_heads; i++)
        memcpy(source_tmp(p, TMP_A) + (size_t)i * n,
               source_row(p, SRC_A, p->head + i, 0, 0), n * sizeof(float));
    p->d.a = source_tmp(p, TMP_A);
    p->d.a_stride = p->n_heads > 1 ? n : 0;
}

static void scan_part(struct part *p, int32_t first)
{
    const struct gguf_tensor *x = p->t->src[SRC_X];
    const int64_t n = p->t->src[SRC_STATE]->ne[0], dim = x->ne[0];
    const int64_t heads = x->ne[1], n_tok = x->ne[2];
    float *y = p->t->data;
    p->d.n = (size_t)n;
    p->d.n_rows = (size_t)(p->n_heads * dim);
    p->d.s =
        y + gguf_tensor_n_elements(x) + (p->seq * heads + p->head) * dim * n;
    p->d.stride = p->d.n_rows;
    p->d.y_stride = (size_t)(heads * dim);
    take_decays(p);
    take_state(p, first, !n_tok);
    for (int64_t tok = 0; tok < n_tok; tok += TILE, p->d.from = p->d.s) {
        p->d.n_tok = (size_t)GG_MIN(n_tok - tok, (int64_t)TILE);
        for (int64_t k = 0; k < (int64_t)p->d.n_tok; k++)
            prepare_token(p, tok + k, k);
        p->d.step = source_tmp(p, TMP_STEP * TILE);
        p->d.x = source_tmp(p, TMP_DX * TILE);
        p->d.decay = source_tmp(p, TMP_DECAY);
        p->d.b = shared_row(p, SRC_B, TMP_B, tok, &p->d.b_stride);
        p->d.c = shared_row(p, SRC_C, TMP_C, tok, &p->d.c_stride);
        p->d.y = y + ((p->seq * n_tok + tok) * heads + p->head) * dim;
        p->task->kern->vec.scan(&p->d);
    }
}

/* Threads claim heads of sequences, those of one row several at a time. */
static void ssm_scan(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *state = t->src[SRC_STATE], *x = t->src[SRC_X];
    const struct gguf_tensor *a = t->src[SRC_A], *ids = t->src[SRC_IDS];
    const bool own = a->ne[0] > 1;
    const int64_t per_group = x->ne[1] / t->src[SRC_B]->ne[1];
    const int64_t block =
        own && x->ne[0] == 1 && per_group % BLOCK == 0 ? BLOCK : 1;
    const int64_t n = x->ne[1] / block;
    int64_t i, end;
    if (!x->ne[0])
        return;
    while (gg_cpu_claim_items(task, n * x->ne[3], &i, &end))
        for (; i < end; i++) {
            const int64_t head = i % n * block;
            struct part p = { .t = t,
                              .task = task,
                              .head = head,
                              .n_heads = block,
                              .group = head / per_group,
                              .seq = i / n,
                              .own = own };
            int32_t first;
            memcpy(&first, (const char *)ids->data + p.seq * ids->nb[0],
                   sizeof first);
            if (first < 0 || first >= state->ne[3]) {
                gg_cpu_fail(task, GGUF_E_INVALID,
                            "ssm_scan: state %" PRId32 " of %" PRId64, first,
                            state->ne[3]);
                return;
            }
            scan_part(&p, first);
        }
}

GG_CPU_OP(ssm_conv, ssm_conv, ssm_conv_work, gg_cpu_elem_supports, false);
GG_CPU_OP(ssm_scan, ssm_scan, ssm_scan_work, gg_cpu_elem_supports, false);
