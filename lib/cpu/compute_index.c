/* SPDX-License-Identifier: MIT */
/* compute_index.c - which keys attention reads: those, or the blocks, of the
 * best scores
 *
 * Threads claim tokens. A thread goes through the keys once for several of them
 * and leaves scores in the rows of the result, which become masks then. Keys
 * of whole blocks are fewer or more than elements of such a row: their scores
 * have their own memory.
 */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

enum { SRC_Q, SRC_K, SRC_WEIGHT, SRC_POS = SRC_WEIGHT, SRC_MASK };
enum { TOKENS = 16 }; /* that a key is decoded for */

/* A number and its score. */
struct scored {
    float score;
    int32_t i;
};

/* ---- the best of many ---- */

/* Min-heap (Williams 1964): v moves down from hole, to the left child if both
 * are equal, until no child is less. As Floyd proposed, the hole sinks to the
 * end first and v rises again, which is seldom far. */
static void sink_in_heap(struct scored *heap, size_t n, size_t hole,
                         struct scored v)
{
    const size_t top = hole;
    for (size_t child; (child = 2 * hole + 1) < n; hole = child) {
        if (child + 1 < n && !(heap[child + 1].score > heap[child].score))
            child++;
        heap[hole] = heap[child];
    }
    while (hole > top && heap[(hole - 1) / 2].score > v.score) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = v;
}

/* The n best of all, at the begin of x. Of equal ones some stay. */
static void keep_best(struct scored *x, size_t n, size_t all)
{
    if (n >= all)
        return;
    for (size_t i = n / 2; i-- > 0;)
        sink_in_heap(x, n, i, x[i]);
    for (size_t i = n; i < all; i++)
        if (x[i].score > x[0].score)
            sink_in_heap(x, n, 0, x[i]);
}

/* ---- scores ---- */

/* A token's queries and what becomes of them. */
struct row {
    int64_t tok, seq;
    const float *mask;
    float *out; /* result row of head 0 */
};

static struct row row_of(const struct gguf_tensor *t, int64_t r)
{
    const struct gguf_tensor *mask = t->src[SRC_MASK];
    const int64_t n_tok = t->src[SRC_Q]->ne[1];
    const int64_t tok = r % n_tok, seq = r / n_tok;
    return (struct row){ tok, seq,
                         gg_row_at(mask, tok, 0, mask->ne[3] == 1 ? 0 : seq),
                         gg_row_at(t, tok, 0, seq) };
}

static const float *query_row(const struct gguf_tensor *t, const struct row *r,
                              int64_t head)
{
    return gg_row_at(t->src[SRC_Q], r->tok, head, r->seq);
}

/* Claim tokens of one sequence; 0: none are left. The last tokens take longest,
 * as they see most keys. */
static int64_t claim_rows(const struct gguf_tensor *t,
                          const struct gg_cpu_task *task,
                          struct row rows[TOKENS])
{
    const struct gguf_tensor *q = t->src[SRC_Q];
    const size_t n_tok = (size_t)q->ne[1], total = n_tok * (size_t)q->ne[3];
    const size_t parts = task->nth == 1 ? 1 : 4 * (size_t)task->nth;
    size_t at;
    const size_t n = gg_cpu_claim(task->next, total, parts, 1, TOKENS,
                                  GG_MAX(n_tok, 1), &at);
    for (size_t i = 0; i < n; i++)
        rows[i] = row_of(t, (int64_t)(at + i));
    return (int64_t)n;
}

/* Handler of a key that a token sees. */
typedef void score_fn(const struct gguf_tensor *t,
                      const struct gg_vec_kern *vec, const struct row *r,
                      const float *key, int64_t j);

/* Scores of n tokens of one sequence. */
static void score_tokens(const struct gguf_tensor *t,
                         const struct gg_cpu_task *task,
                         const struct row *rows, int64_t n, float *tmp,
                         score_fn *fn)
{
    const struct gguf_tensor *k = t->src[SRC_K];
    for (int64_t j = 0; j < k->ne[1]; j++) {
        const float *key = NULL;
        for (int64_t i = 0; i < n; i++) {
            if (rows[i].mask[j] == -INFINITY)
                continue;
            if (!key)
                key =
                    gg_row_load(task->kern, k, gg_row_at(k, j, 0, rows[i].seq),
                                tmp, k->ne[0]);
            fn(t, &task->kern->vec, &rows[i], key, j);
        }
    }
}

/* Scratch of a thread: numbers of all keys, and a key. */
static size_t scratch_size(const struct gguf_tensor *t)
{
    const struct gguf_tensor *k = t->src[SRC_K];
    const size_t size = (size_t)k->ne[1] * 2 * sizeof(struct scored) +
                        (size_t)k->ne[0] * sizeof(float);
    return (size + 63) / 64 * 64;
}

static size_t index_work(const struct gguf_tensor *t, unsigned nth,
                         const struct gg_kern *kern)
{
    (void)kern;
    return nth * scratch_size(t);
}

/* The tokens that this thread claims: their scores, and then finish. */
static void each_token(struct gguf_tensor *t, const struct gg_cpu_task *task,
                       score_fn *fn,
                       void (*finish)(const struct gguf_tensor *t,
                                      const struct row *r, struct scored *tmp))
{
    const int64_t n_kv = t->src[SRC_K]->ne[1];
    struct scored *tmp =
        (struct scored *)(void *)((char *)task->work +
                                  task->ith * scratch_size(t));
    struct row rows[TOKENS];
    if (gguf_tensor_is_empty(t))
        return;
    for (int64_t n; (n = claim_rows(t, task, rows)) > 0;) {
        score_tokens(t, task, rows, n, (float *)(void *)(tmp + 2 * n_kv), fn);
        for (int64_t i = 0; i < n; i++)
            finish(t, &rows[i], tmp);
    }
}

static bool index_supports(const struct gguf_tensor *t,
                           const struct gg_kern *kern)
{
    return gg_row_is_plain(t) && gg_row_is_plain(t->src[SRC_Q]) &&
           gg_row_is_plain(t->src[SRC_MASK]) &&
           gg_row_can_load(kern, t->src[SRC_K]) &&
           (t->src[SRC_POS]->dtype == GGUF_DTYPE_I32
                ? gguf_tensor_has_contiguous_rows(t->src[SRC_POS])
                : gg_row_is_plain(t->src[SRC_WEIGHT]));
}

/* ---- the best keys ---- */

static void score_key(const struct gguf_tensor *t,
                      const struct gg_vec_kern *vec, const struct row *r,
                      const float *key, int64_t j)
{
    const struct gguf_tensor *q = t->src[SRC_Q];
    const float *w = gg_row_at(t->src[SRC_WEIGHT], r->tok, 0, r->seq);
    float sum = 0;
    for (int64_t h = 0; h < q->ne[2]; h++) {
        const float s = vec->dot(query_row(t, r, h), key, (size_t)q->ne[0]);
        sum += w[h] * (s > 0 ? s : 0);
    }
    r->out[j] = sum;
}

static void keep_keys(const struct gguf_tensor *t, const struct row *r,
                      struct scored *best)
{
    const int64_t n_kv = t->ne[0];
    struct gguf_index_params p;
    size_t n = 0;
    memcpy(&p, t->op_params, sizeof p);
    for (int64_t j = 0; j < n_kv; j++) {
        if (r->mask[j] != -INFINITY)
            best[n++] = (struct scored){ r->out[j], (int32_t)j };
        r->out[j] = -INFINITY;
    }
    const size_t kept = GG_MIN(n, (size_t)GG_MIN(p.n_top, n_kv));
    keep_best(best, kept, n);
    for (size_t i = 0; i < kept; i++)
        r->out[best[i].i] = r->mask[best[i].i];
}

static void index_top(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    each_token(t, task, score_key, keep_keys);
}

/* ---- the best blocks ---- */

static void score_heads(const struct gguf_tensor *t,
                        const struct gg_vec_kern *vec, const struct row *r,
                        const float *key, int64_t j)
{
    const struct gguf_tensor *q = t->src[SRC_Q];
    for (int64_t h = 0; h < q->ne[2]; h++) {
        float *out = gg_row_at(t, r->tok, h, r->seq);
        out[j] = vec->dot(query_row(t, r, h), key, (size_t)q->ne[0]);
    }
}

/* Find a block among n, which are in no order. n: not found. The next key
 * belongs to the last block most often. */
static size_t find_block(const struct scored *b, size_t n, int32_t block,
                         int32_t most)
{
    if (block > most)
        return n;
    for (size_t i = n; i-- > 0;)
        if (b[i].i == block)
            return i;
    return n;
}

/* A block by its best score; of local ones the last comes first, of others
 * that are equal the first. */
static bool is_before(struct scored a, struct scored b)
{
    if (a.score != b.score)
        return a.score > b.score;
    return a.score == INFINITY ? a.i > b.i : a.i < b.i;
}

/* Collect the blocks of the keys that a token sees, with their scores. Local
 * blocks rank first. Returns their number. */
static size_t blocks_of(const struct gguf_tensor *t, const struct row *r,
                        const int32_t *pos, const float *score,
                        struct scored *b)
{
    struct gguf_index_params p;
    size_t n = 0;
    int32_t most = -1;
    memcpy(&p, t->op_params, sizeof p);
    for (int64_t j = 0; j < t->ne[0]; j++) {
        if (r->mask[j] == -INFINITY)
            continue;
        const int32_t block = pos[j] / p.block;
        const size_t i = find_block(b, n, block, most);
        if (i == n)
            b[n++] = (struct scored){ score[j], block };
        else if (score[j] > b[i].score)
            b[i].score = score[j];
        most = GG_MAX(most, block);
    }
    for (size_t i = 0; i < n; i++)
        if (most - b[i].i < p.n_local)
            b[i].score = INFINITY;
    return n;
}

static void keep_blocks(const struct gguf_tensor *t, const struct row *r,
                        struct scored *tmp)
{
    const struct gguf_tensor *ids = t->src[SRC_POS];
    const int32_t *pos = gg_row_at(ids, 0, 0, ids->ne[3] == 1 ? 0 : r->seq);
    struct gguf_index_params p;
    memcpy(&p, t->op_params, sizeof p);
    for (int64_t h = 0; h < t->ne[2]; h++) {
        float *out = gg_row_at(t, r->tok, h, r->seq);
        size_t n = blocks_of(t, r, pos, out, tmp);
        size_t kept = GG_MIN(n, (size_t)GG_MIN(p.n_top, t->ne[0]));
        for (size_t i = 0; i < kept; i++) /* few are kept */
            for (size_t k = i + 1; k < n; k++)
                if (is_before(tmp[k], tmp[i])) {
                    const struct scored x = tmp[i];
                    tmp[i] = tmp[k];
                    tmp[k] = x;
                }
        for (int64_t j = 0; j < t->ne[0]; j++) {
            const bool seen =
                r->mask[j] != -INFINITY &&
                find_block(tmp, kept, pos[j] / p.block, INT32_MAX) < kept;
            out[j] = seen ? r->mask[j] : -INFINITY;
        }
    }
}

static void index_blocks(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    each_token(t, task, score_heads, keep_blocks);
}

/* ---- the best blocks, by a key for each ---- */

/* Blocks of a token. */
struct blocks {
    int64_t n_done; /* complete blocks that have a key */
    int64_t n_kept; /* complete blocks to keep */
};

static struct blocks count_blocks(const struct gguf_tensor *t,
                                  const struct row *r, const int32_t *pos)
{
    struct gguf_index_params p;
    int64_t last = -1;
    memcpy(&p, t->op_params, sizeof p);
    for (int64_t j = 0; j < t->ne[0]; j++)
        if (r->mask[j] != -INFINITY)
            last = GG_MAX(last, pos[j]);
    const int64_t n =
        GG_MIN((last + 1) / p.block, (int64_t)t->src[SRC_K]->ne[1]);
    /* there are not more positions */
    const int64_t most = GG_MIN(p.n_top, INT32_MAX) + p.block - 1;
    const int64_t left = (most - (last + 1 - n * p.block)) / p.block;
    return (struct blocks){ n, GG_MAX(GG_MIN(n, left), 0) };
}

/* Scratch of a thread: a score of each block for each of several tokens, the
 * blocks of one token, and a key. */
static size_t pooled_size(const struct gguf_tensor *t)
{
    const struct gguf_tensor *k = t->src[SRC_K];
    const size_t size =
        (size_t)k->ne[1] * (TOKENS * sizeof(float) + sizeof(struct scored)) +
        (size_t)k->ne[0] * sizeof(float);
    return (size + 63) / 64 * 64;
}

static size_t pooled_work(const struct gguf_tensor *t, unsigned nth,
                          const struct gg_kern *kern)
{
    (void)kern;
    return nth * pooled_size(t);
}

static float score_block(const struct gguf_tensor *t,
                         const struct gg_vec_kern *vec, const struct row *r,
                         const float *key)
{
    const struct gguf_tensor *q = t->src[SRC_Q];
    float sum = 0;
    for (int64_t h = 0; h < q->ne[2]; h++) {
        const float s = vec->dot(query_row(t, r, h), key, (size_t)q->ne[0]);
        sum += s > 0 ? s : 0;
    }
    return sum;
}

/* Keep the best of a token's blocks, and the keys of no complete block. best
 * has room for all; score is overwritten. */
static void keep_pooled(const struct gguf_tensor *t, const struct row *r,
                        const struct blocks *b, const int32_t *pos,
                        float *score, struct scored *best)
{
    struct gguf_index_params p;
    memcpy(&p, t->op_params, sizeof p);
    for (int64_t i = 0; i < b->n_done; i++) {
        best[i] = (struct scored){ score[i], (int32_t)i };
        score[i] = -INFINITY;
    }
    keep_best(best, (size_t)b->n_kept, (size_t)b->n_done);
    for (int64_t i = 0; i < b->n_kept; i++)
        score[best[i].i] = 0;
    for (int64_t j = 0; j < t->ne[0]; j++) {
        const float mask = r->mask[j];
        const int64_t block = mask == -INFINITY ? b->n_done : pos[j] / p.block;
        r->out[j] =
            block < b->n_done && score[block] == -INFINITY ? -INFINITY : mask;
    }
}

/* The tokens of rows, of one sequence. */
static void pool_tokens(const struct gguf_tensor *t,
                        const struct gg_cpu_task *task, const struct row *rows,
                        int64_t n, float *score)
{
    const struct gguf_tensor *k = t->src[SRC_K], *ids = t->src[SRC_POS];
    const int64_t n_block = k->ne[1], seq = rows[0].seq;
    const int32_t *pos = gg_row_at(ids, 0, 0, ids->ne[3] == 1 ? 0 : seq);
    struct scored *best = (struct scored *)(void *)(score + TOKENS * n_block);
    float *tmp = (float *)(void *)(best + n_block);
    struct blocks b[TOKENS];
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        b[i] = count_blocks(t, &rows[i], pos);
        most = GG_MAX(most, b[i].n_done);
    }
    for (int64_t j = 0; j < most; j++) {
        const float *key =
            gg_row_load(task->kern, k, gg_row_at(k, j, 0, seq), tmp, k->ne[0]);
        for (int64_t i = 0; i < n; i++)
            if (j < b[i].n_done)
                score[i * n_block + j] =
                    score_block(t, &task->kern->vec, &rows[i], key);
    }
    for (int64_t i = 0; i < n; i++)
        keep_pooled(t, &rows[i], &b[i], pos, score + i * n_block, best);
}

static void index_pooled(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    float *score =
        (float *)(void *)((char *)task->work + task->ith * pooled_size(t));
    struct row rows[TOKENS];
    if (gguf_tensor_is_empty(t))
        return;
    for (int64_t n; (n = claim_rows(t, task, rows)) > 0;)
        pool_tokens(t, task, rows, n, score);
}

GG_CPU_OP(index_top, index_top, index_work, index_supports, false);
GG_CPU_OP(index_blocks, index_blocks, index_work, index_supports, false);
GG_CPU_OP(index_pooled, index_pooled, pooled_work, index_supports, false);
