/* ubatch.c - micro-batches: how a batch is cut, positions, masks */
#include "config.h"
#include "run/ubatch.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* Cells that a pass reads are a multiple of this, so that a sequence that grows
 * token by token does not get a new graph each time. */
enum { KV_STEP = 32 };

enum gguf_status gg_ubatch_init(struct gg_run_ubatch *u,
                                struct gg_cells *cells, uint32_t most,
                                const struct gguf_allocator *a,
                                struct gguf_error *err)
{
    *u = (struct gg_run_ubatch){
        .allocator = a, .cells = cells, .most = most, .least = 1
    };
    u->tok = gg_mem_alloc_zero(a, most, 4 * sizeof *u->tok);
    if (!u->tok)
        return gg_error_set_nomem(err, most * 4 * sizeof *u->tok);
    u->pos = u->tok + most;
    u->row = u->pos + most;
    u->out_row = u->row + most;
    return GGUF_OK;
}

void gg_ubatch_fini(struct gg_run_ubatch *u)
{
    gg_mem_free(u->allocator, u->tok);
    u->tok = NULL;
}

/* ---- where to cut ---- */

void gg_ubatch_start(struct gg_run_ubatch *u, struct gg_cells *cells,
                     const struct gg_cells *encoded, uint32_t least,
                     bool encodes)
{
    u->cells = cells;
    u->encoded = encoded;
    u->least = least;
    u->begin = 0;
    u->shape = (struct gg_ubatch_shape){ .encodes = encodes };
}

/* How many sequences from q on go side by side: neighbours with equally many
 * tokens. */
static uint32_t n_beside(const struct gg_run_ubatch *u,
                         const struct gg_batch_plan *p, uint32_t q)
{
    const uint32_t n = gg_batch_n_tok(p, q);
    uint32_t side = 1;
    while (q + side < p->n_seq && (side + 1) * (uint64_t)n <= u->most &&
           gg_batch_n_tok(p, q + side) == n)
        side++;
    return side * n < u->least ? 1 : side;
}

/* The next sequences that have tokens, or the next part of one. */
static bool cut(struct gg_run_ubatch *u, const struct gg_batch_plan *p)
{
    struct gg_ubatch_shape *h = &u->shape;
    uint32_t q = (uint32_t)h->first_stream;
    u->begin += (uint32_t)h->n_real;
    if (!h->n_seq || u->begin == gg_batch_n_tok(p, q)) {
        q += (uint32_t)h->n_seq;
        while (q < p->n_seq && !gg_batch_n_tok(p, q))
            q++;
        if (q >= p->n_seq)
            return false;
        u->begin = 0;
        h->first_stream = q;
        h->n_seq = n_beside(u, p, q);
    }
    h->n_real = GG_MIN(gg_batch_n_tok(p, q) - u->begin, u->most);
    /* several sequences have enough tokens already */
    h->n_tok = h->n_seq > 1 ? h->n_real : GG_MAX(h->n_real, (int64_t)u->least);
    return true;
}

/* ---- what is in it ---- */

/* The last token again. */
static void repeat(struct gg_run_ubatch *u, size_t k)
{
    u->tok[k] = u->tok[k - 1];
    u->pos[k] = u->pos[k - 1];
    u->row[k] = u->row[k - 1];
}

/* Token i of the batch, of sequence q, as the kth. */
static void take(struct gg_run_ubatch *u, const struct gguf_batch *b, size_t i,
                 uint32_t q, size_t k)
{
    u->tok[k] = b->token[i];
    u->pos[k] = b->pos ? b->pos[i] : u->cells->stream[q].next_pos;
    u->row[k] =
        (int32_t)(q * u->cells->n_ctx + gg_cells_take(u->cells, q, u->pos[k]));
}

/* Whether all sequences see the same. */
static bool masks_equal(const struct gg_run_ubatch *u)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const struct gg_run_stream *a = &u->cells->stream[h->first_stream];
    for (int64_t q = 1; q < h->n_seq; q++)
        if (memcmp(u->pos, u->pos + q * h->n_tok,
                   (size_t)h->n_tok * sizeof *u->pos) != 0 ||
            memcmp(a->pos, a[q].pos, (size_t)h->n_kv * sizeof *a->pos) != 0)
            return false;
    return true;
}

static int64_t whole_steps(uint32_t n, uint32_t most)
{
    return GG_MIN((n + KV_STEP - 1) / KV_STEP * KV_STEP, most);
}

/* Cells of encoded texts that are read. */
static int64_t n_cross(const struct gg_run_ubatch *u)
{
    const struct gg_ubatch_shape *h = &u->shape;
    uint32_t n = 0;
    if (!u->encoded || h->encodes)
        return 0;
    for (int64_t q = 0; q < h->n_seq; q++)
        n = GG_MAX(n, u->encoded->stream[h->first_stream + q].n_used);
    return whole_steps(n, u->encoded->n_ctx);
}

bool gg_ubatch_next(struct gg_run_ubatch *u, const struct gg_batch_plan *p)
{
    struct gg_ubatch_shape *h = &u->shape;
    size_t k = 0;
    uint32_t end = 0;
    if (!cut(u, p))
        return false;
    h->n_out = 0;
    for (int64_t s = 0; s < h->n_seq; s++) {
        const uint32_t q = (uint32_t)(h->first_stream + s);
        for (int64_t t = 0; t < h->n_tok; t++, k++) {
            if (t >= h->n_real) {
                repeat(u, k);
                continue;
            }
            const uint32_t i = p->order[p->begin[q] + u->begin + (uint32_t)t];
            take(u, p->batch, i, q, k);
            if (p->out_at[i] != UINT32_MAX || gg_batch_pools(p, q, i))
                u->out_row[h->n_out++] = (int32_t)k;
        }
        end = GG_MAX(end, u->cells->stream[q].end);
    }
    h->n_kv = whole_steps(end, u->cells->n_ctx);
    h->n_mask = masks_equal(u) ? 1 : h->n_seq;
    h->n_cross = n_cross(u);
    u->n_out = (uint32_t)h->n_out;
    while (h->n_out && h->n_out < u->least) {
        u->out_row[h->n_out] = u->out_row[h->n_out - 1];
        h->n_out++;
    }
    return true;
}

uint32_t gg_ubatch_output(const struct gg_run_ubatch *u,
                          const struct gg_batch_plan *p, uint32_t k,
                          uint32_t *seq)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const int64_t at = u->out_row[k];
    const uint32_t q = (uint32_t)(h->first_stream + at / h->n_tok);
    *seq = q;
    return p->order[p->begin[q] + u->begin + (uint32_t)(at % h->n_tok)];
}

/* ---- what each of them sees ---- */

/* Positions that a token sees. */
struct span {
    int32_t first, last;
};

static struct span seen_from(int32_t pos, const struct gg_hparams_reach *r)
{
    struct span s = { GG_MAX(pos - r->before, 0), pos > INT32_MAX - r->after
                                                      ? INT32_MAX
                                                      : pos + r->after };
    const int32_t in_chunk = r->chunk ? pos % r->chunk : 0;
    if (r->chunk) {
        s.first = GG_MAX(s.first, pos - in_chunk);
        s.last = s.last - pos > r->chunk - 1 - in_chunk
                     ? pos + (r->chunk - 1 - in_chunk)
                     : s.last;
    }
    return s;
}

/* Cells of a sequence; those that are free are at no position. */
static void mask_cells(const struct gg_run_stream *st, int32_t pos,
                       struct span span, int64_t n_kv, bool far, float *mask)
{
    for (int64_t k = 0; k < n_kv; k++)
        mask[k] = st->pos[k] < span.first || st->pos[k] > span.last ? -INFINITY
                  : far ? (float)(st->pos[k] - pos)
                        : 0;
}

/* All but repetitions. */
static void mask_beside(const struct gg_ubatch_shape *h, const int32_t *all,
                        int32_t pos, struct span span, bool far, float *mask)
{
    for (int64_t k = 0; k < h->n_tok; k++)
        mask[k] = k >= h->n_real || all[k] < span.first || all[k] > span.last
                      ? -INFINITY
                  : far ? -fabsf((float)(all[k] - pos))
                        : 0;
}

void gg_ubatch_mask(const struct gg_run_ubatch *u, int64_t i,
                    const struct gg_ubatch_sight *sight, float *mask)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const int64_t q = i / h->n_tok;
    const int32_t pos = u->pos[i];
    struct span span = seen_from(pos, &sight->reach);
    if (sight->causal || sight->kept)
        span.last = GG_MIN(span.last, pos);
    if (sight->kept)
        mask_cells(&u->cells->stream[h->first_stream + q], pos, span, h->n_kv,
                   sight->far, mask);
    else
        mask_beside(h, u->pos + q * h->n_tok, pos, span, sight->far, mask);
}

void gg_ubatch_far(const struct gg_run_ubatch *u, int64_t i, bool kept,
                   int32_t most, int32_t *far)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const int64_t q = i / h->n_tok;
    const int32_t *all = kept ? u->cells->stream[h->first_stream + q].pos
                              : u->pos + q * h->n_tok;
    const int64_t n = kept ? h->n_kv : h->n_tok;
    for (int64_t k = 0; k < n; k++) {
        const int64_t d = (int64_t)all[k] - u->pos[i];
        far[k] = (int32_t)GG_MAX(-most, GG_MIN(d, most));
    }
}
