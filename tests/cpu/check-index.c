/* SPDX-License-Identifier: MIT */
/* check-index.c - the keys that an indexer selects, found in double precision
 * by counting better ones */
#include "config.h"
#include "tests/cpu/ops.h"

enum { Q, K, W, POS = W, MASK };

static struct gguf_index_params params_of(const tensor *t)
{
    struct gguf_index_params p;
    memcpy(&p, t->op_params, sizeof p);
    return p;
}

static double dot_keys(const tensor *t, int64_t j, int64_t tok, int64_t h,
                       int64_t seq)
{
    double sum = 0;
    for (int64_t e = 0; e < t->src[Q]->ne[0]; e++)
        sum += at(t->src[Q], e, tok, h, seq) * at(t->src[K], e, j, 0, seq);
    return sum;
}

static double mask_at(const tensor *t, int64_t j, int64_t tok, int64_t seq)
{
    return src_at(t, MASK, j, tok, 0, seq);
}

/* Scores of all keys, or of all blocks, for the current row. NAN: masked. */
static double score[512];

/* Number of scores better than score i. *close: some are so near that rounding
 * may decide otherwise. */
static int64_t n_better(int64_t n, int64_t i, bool *close)
{
    int64_t better = 0;
    *close = false;
    for (int64_t j = 0; j < n; j++) {
        better += score[j] > score[i];
        *close |= j != i && fabs(score[j] - score[i]) < 1e-4;
    }
    return better;
}

/* The mask if key i is among the n_top best, else minus infinity. */
static double kept_mask(const tensor *t, int64_t n, int64_t i, double mask,
                        double got, double *tol)
{
    bool close;
    *tol = 0;
    if (mask == -INFINITY)
        return -INFINITY;
    const bool in = n_better(n, i, &close) < params_of(t).n_top;
    if (close && (got == mask || got == -INFINITY))
        return got;
    return in ? mask : -INFINITY;
}

static double f_top(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                    int64_t i3, double *tol)
{
    for (int64_t j = 0; i0 == 0 && j < t->ne[0]; j++) {
        score[j] = mask_at(t, j, i1, i3) == -INFINITY ? NAN : 0;
        for (int64_t h = 0; h < t->src[Q]->ne[2]; h++)
            score[j] += src_at(t, W, h, i1, 0, i3) *
                        fmax(dot_keys(t, j, i1, h, i3), 0);
    }
    return kept_mask(t, t->ne[0], i0, mask_at(t, i0, i1, i3),
                     at(t, i0, i1, i2, i3), tol);
}

static double f_blocks(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tol)
{
    const struct gguf_index_params p = params_of(t);
    const int64_t n = 200;
    int64_t last = -1;
    for (int64_t b = 0; i0 == 0 && b < n; b++)
        score[b] = NAN;
    for (int64_t j = 0; i0 == 0 && j < t->ne[0]; j++) {
        const int64_t b = (int64_t)src_at(t, POS, j, 0, 0, i3) / p.block;
        const double s = dot_keys(t, j, i1, i2, i3);
        if (mask_at(t, j, i1, i3) == -INFINITY)
            continue;
        score[b] = isnan(score[b]) ? s : fmax(score[b], s);
        last = b > last ? b : last;
    }
    for (int64_t b = 0; i0 == 0 && b < p.n_local && b <= last; b++)
        if (!isnan(score[last - b])) /* the last blocks first */
            score[last - b] = 1e9 - (double)b;
    return kept_mask(t, n, (int64_t)src_at(t, POS, i0, 0, 0, i3) / p.block,
                     mask_at(t, i0, i1, i3), at(t, i0, i1, i2, i3), tol);
}

/* Keys of blocks: as few scores as a block must have more of them to be kept,
 * by the number of positions that are left for complete blocks. */
static double f_pooled(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tol)
{
    const struct gguf_index_params p = params_of(t);
    const int64_t block = (int64_t)src_at(t, POS, i0, 0, 0, i3) / p.block;
    const double mask = mask_at(t, i0, i1, i3), got = at(t, i0, i1, i2, i3);
    int64_t last = -1, n = 0;
    bool close;
    *tol = 0;
    for (int64_t j = 0; j < t->ne[0]; j++)
        if (mask_at(t, j, i1, i3) != -INFINITY)
            last = (int64_t)fmax((double)last, src_at(t, POS, j, 0, 0, i3));
    while (n < t->src[K]->ne[1] && (n + 1) * p.block <= last + 1)
        n++;
    if (mask == -INFINITY || block >= n)
        return mask;
    for (int64_t b = 0; b < n; b++) {
        score[b] = 0;
        for (int64_t h = 0; h < t->src[Q]->ne[2]; h++)
            score[b] += fmax(dot_keys(t, b, i1, h, i3), 0);
    }
    int64_t kept = 0, room = p.n_top + p.block - 1 - (last + 1 - n * p.block);
    for (; room >= p.block; room -= p.block)
        kept++;
    const bool in = n_better(n, block, &close) < kept;
    return close && (got == mask || got == -INFINITY) ? got
           : in                                       ? mask
                                                      : -INFINITY;
}

/* A causal mask with holes. */
static tensor *make_mask(ctx_t *c, int64_t n_kv, int64_t n_tok, int64_t n_seq)
{
    tensor *m =
        gguf_tensor_create_4d(c, GGUF_DTYPE_F32, n_kv, n_tok, 1, n_seq);
    float *v = m->data;
    for (int64_t i = 0; i < n_kv * n_tok * n_seq; i++) {
        const int64_t tok = i / n_kv % n_tok, j = i % n_kv;
        v[i] = j > n_kv - n_tok + tok || rnd_below(9) == 0 || tok == 3
                   ? -INFINITY
                   : (float)rnd_below(3);
    }
    return m;
}

/* Positions of keys in random order, some far apart. */
static tensor *make_places(ctx_t *c, int64_t n_kv, int64_t n_seq)
{
    tensor *t = gguf_tensor_create_4d(c, GGUF_DTYPE_I32, n_kv, 1, 1, n_seq);
    int32_t *v = t->data;
    for (int64_t s = 0; s < n_seq; s++)
        for (int64_t j = 0; j < n_kv; j++)
            v[s * n_kv + j] = (int32_t)((j * 7 + s) % n_kv) + (j % 5 ? 0 : 90);
    return t;
}

static const struct {
    int64_t d, n_kv, n_tok, n_head, n_seq, n_mask;
} sizes[] = {
    { 8, 1, 1, 1, 1, 1 },     { 16, 40, 5, 3, 1, 1 },
    { 32, 131, 21, 4, 2, 2 }, { 24, 100, 17, 2, 2, 1 },
    { 64, 128, 40, 2, 1, 1 }, { 96, 70, 9, 3, 2, 1 },
};

/* Types of keys; the first three have no blocks. */
static const uint32_t types[] = { GGUF_DTYPE_F16,   GGUF_DTYPE_F32,
                                  GGUF_DTYPE_BF16,  GGUF_DTYPE_Q8_0,
                                  GGUF_DTYPE_Q4_0,  GGUF_DTYPE_Q4_1,
                                  GGUF_DTYPE_Q5_0,  GGUF_DTYPE_Q5_1,
                                  GGUF_DTYPE_IQ4_NL };

static void check_index(void)
{
    size_t n = 0;
    for (size_t i = 0; i < GG_LEN(sizes); i++)
        for (int64_t top = 1; top < 200; top = top * 3 + 1) {
            const int64_t d = sizes[i].d, n_kv = sizes[i].n_kv;
            const int64_t n_tok = sizes[i].n_tok, h = sizes[i].n_head;
            const int64_t n_seq = sizes[i].n_seq;
            const uint32_t type = d % 32 ? types[top % 2] : types[n++ % 9];
            ctx_t *c = new_ctx();
            tensor *k = source(c, type, PADDED, d, n_kv, 1, n_seq);
            tensor *q = source(c, GGUF_DTYPE_F32, i % 2 ? SWAPPED : PLAIN, d,
                               n_tok, h, n_seq);
            tensor *w = source(c, GGUF_DTYPE_F32, PLAIN, h, n_tok, 1, n_seq);
            tensor *m = make_mask(c, n_kv, n_tok, sizes[i].n_mask);
            tensor *p = make_places(c, n_kv, sizes[i].n_mask);
            run_case(c, gguf_op_index_top(c, q, k, w, m, top), f_top,
                     "index_top of %d in %d, %d tokens", (int)top, (int)n_kv,
                     (int)n_tok);
            run_case(c, gguf_op_index_blocks(c, q, k, p, m, top, 3, 2),
                     f_blocks, "index_blocks of %d, %d keys, %d heads",
                     (int)top, (int)n_kv, (int)h);
            const int32_t block = 1 + (int32_t)(top % 4);
            tensor *pooled =
                source(c, type, PADDED, d, (n_kv + top) / block + 1, 1, n_seq);
            run_case(c, gguf_op_index_pooled(c, q, pooled, p, m, top, block),
                     f_pooled, "index_pooled of %d, %d keys, blocks of %d",
                     (int)top, (int)n_kv, (int)block);
            gguf_ctx_destroy(c);
        }
}

static void check_refused(void)
{
    ctx_t *c = new_ctx();
    tensor *q = gguf_tensor_create_3d(c, GGUF_DTYPE_F32, 8, 3, 2);
    tensor *k = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 8, 5);
    tensor *k2 = gguf_tensor_create_3d(c, GGUF_DTYPE_F32, 8, 5, 2);
    tensor *w = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 2, 3);
    tensor *m = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 5, 3);
    tensor *m2 = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 5, 2);
    tensor *p = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 5);
    refused(c, gguf_op_index_top(c, q, k2, w, m, 1), GGUF_E_SHAPE, "keys");
    refused(c, gguf_op_index_top(c, q, k, m, m, 1), GGUF_E_SHAPE, "weights");
    refused(c, gguf_op_index_top(c, q, k, w, w, 1), GGUF_E_SHAPE, "mask");
    refused(c, gguf_op_index_top(c, q, k, w, m, 0), GGUF_E_INVALID, "0 are");
    refused(c, gguf_op_index_top(c, q, k, p, m, 1), GGUF_E_TYPE, "weights");
    refused(c, gguf_op_index_blocks(c, q, k, w, m, 1, 2, 1), GGUF_E_TYPE,
            "positions");
    refused(c, gguf_op_index_blocks(c, q, k, p, m, 1, 0, 1), GGUF_E_INVALID,
            "blocks of 0");
    refused(c, gguf_op_index_pooled(c, q, k, p, m, 1, 0), GGUF_E_INVALID,
            "blocks of 0");
    refused(c, gguf_op_index_pooled(c, q, k, p, m2, 1, 2), GGUF_E_SHAPE,
            "mask");
    refused(c, gguf_op_index_pooled(c, q, k, w, m, 1, 2), GGUF_E_TYPE,
            "positions");
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_index();
    check_refused();
    ops_end();
    return done_testing();
}
