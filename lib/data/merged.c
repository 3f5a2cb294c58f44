/* SPDX-License-Identifier: MIT */
/* merged.c - tensors of a list with the products of adapters added */
#include "config.h"
#include "data/merged.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

/* Rows, and columns or terms of a sum, computed at a time. Blocks of all types
 * divide TILE. */
enum { ROWS = 8, TILE = 256 };

struct part {
    struct gg_data_rows a, b; /* halves as the file names them */
    int64_t rank;
    uint64_t a_block, b_block; /* elements of a block of a, of b */
    bool looked_up;
    float factor;
};

struct gg_merged_tensor {
    struct gg_data_rows base;
    uint64_t ne0, ne1;
    size_t n_parts;
    struct part part[];
};

static const struct gg_data_merged *as_merged(const struct gg_data *d)
{
    return (const struct gg_data_merged *)d;
}

/* ---- numbers ---- */

/* A range of a matrix: rows [row, row + n), and columns [from, to) of one tile.
 * dst has the columns of the first row; those of the next row are stride
 * later. */
struct tile_range {
    uint64_t row, from, to;
    unsigned n;
    uint64_t stride;
};

/* Read elements [from, to) of a row of ne0, in blocks that lie in one tile.
 * Returns element from. buf has TILE elements. */
static const float *read_row(const struct gg_data_rows *r, uint64_t block,
                             uint64_t row, uint64_t ne0, uint64_t from,
                             uint64_t to, float *buf)
{
    const uint64_t begin = from - from % block;
    uint64_t end = to + (block - to % block) % block;
    gg_data_read(r, row * ne0 + begin, end - begin, buf);
    return buf + (from - begin);
}

/* Add the product of terms [r, r + n) to sum; rows of a are terms. */
static void add_rows(const struct part *p, const struct gg_merged_tensor *t,
                     const struct tile_range *at, uint64_t r, uint64_t n,
                     float (*b)[TILE], float (*sum)[TILE])
{
    const uint64_t mat = at->row / t->ne1, rank = (uint64_t)p->rank;
    const size_t n_col = (size_t)(at->to - at->from);
    float buf[TILE];
    for (uint64_t k = 0; k < n; k++) {
        const float *a = read_row(&p->a, p->a_block, mat * rank + r + k,
                                  t->ne0, at->from, at->to, buf);
        for (unsigned j = 0; j < at->n; j++)
            for (size_t i = 0; i < n_col; i++)
                sum[j][i] += b[j][k] * a[i];
    }
}

/* Add the product of terms [r, r + n) to sum; columns of a, which is
 * transposed, are terms. */
static void add_columns(const struct part *p, const struct tile_range *at,
                        uint64_t r, uint64_t n, float (*b)[TILE],
                        float (*sum)[TILE])
{
    float buf[TILE];
    for (uint64_t i = at->from; i < at->to; i++) {
        const float *a =
            read_row(&p->b, p->b_block, i, (uint64_t)p->rank, r, r + n, buf);
        for (unsigned j = 0; j < at->n; j++)
            for (uint64_t k = 0; k < n; k++)
                sum[j][i - at->from] += b[j][k] * a[k];
    }
}

static void add_part(const struct part *p, const struct gg_merged_tensor *t,
                     const struct tile_range *at, float *dst)
{
    /* for token embeddings, a and b are exchanged */
    const struct gg_data_rows *rows = p->looked_up ? &p->a : &p->b;
    const uint64_t block = p->looked_up ? p->a_block : p->b_block;
    const uint64_t rank = (uint64_t)p->rank;
    float sum[ROWS][TILE], b[ROWS][TILE];
    memset(sum, 0, sizeof sum);
    for (uint64_t r = 0; r < rank; r += TILE) {
        const uint64_t n = GG_MIN(rank - r, (uint64_t)TILE);
        for (unsigned j = 0; j < at->n; j++)
            (void)read_row(rows, block, at->row + j, rank, r, r + n, b[j]);
        if (p->looked_up)
            add_columns(p, at, r, n, b, sum);
        else
            add_rows(p, t, at, r, n, b, sum);
    }
    for (unsigned j = 0; j < at->n; j++)
        for (uint64_t i = 0; i < at->to - at->from; i++)
            dst[j * at->stride + i] += p->factor * sum[j][i];
}

/* Add the products to columns [from, to) of n rows, tile by tile. */
static void add_tiles(const struct gg_merged_tensor *t, uint64_t row,
                      unsigned n, uint64_t from, uint64_t to, float *dst)
{
    for (uint64_t at = from; at < to;) {
        const uint64_t end = GG_MIN(to, at - at % TILE + TILE);
        const struct tile_range s = { row, at, end, n, to - from };
        for (size_t k = 0; k < t->n_parts; k++)
            add_part(&t->part[k], t, &s, dst + (at - from));
        at = end;
    }
}

static void read_merged(const struct gg_data_rows *r, uint64_t first,
                        uint64_t n, float *dst)
{
    const struct gg_merged_tensor *t = r->source;
    gg_data_read(&t->base, first, n, dst);
    while (n) {
        const uint64_t row = first / t->ne0, from = first % t->ne0;
        uint64_t n_rows = 1, to = GG_MIN(t->ne0, from + n);
        if (!from && n >= t->ne0) { /* rows of one matrix */
            n_rows = GG_MIN(n / t->ne0, (uint64_t)ROWS);
            n_rows = GG_MIN(n_rows, t->ne1 - row % t->ne1);
        }
        const uint64_t done = n_rows * (to - from);
        add_tiles(t, row, (unsigned)n_rows, from, to, dst);
        first += done;
        dst += done;
        n -= done;
    }
}

/* ---- the list ---- */

static enum gguf_status prepare_rows(const struct gg_data *d, size_t i,
                                     struct gg_data_rows *out,
                                     struct gguf_error *err)
{
    const struct gg_data_merged *m = as_merged(d);
    if (!gg_data_is_merged(m, i))
        return gg_data_rows(m->over.base, i, out, err);
    *out =
        (struct gg_data_rows){ .read = read_merged, .source = m->tensor[i] };
    return GGUF_OK;
}

static const uint8_t *stored_bytes(const struct gg_data *d, size_t i)
{
    const struct gg_data_merged *m = as_merged(d);
    return gg_data_is_merged(m, i) ? NULL : gg_data_bytes(m->over.base, i);
}

/* ---- making it ---- */

static enum gguf_status prepare_half(const struct gg_merged_lora *with,
                                     const struct gguf_tensor_info *t,
                                     struct gg_data_rows *out, uint64_t *block,
                                     struct gguf_error *err)
{
    struct gg_str_esc e;
    GG_TRY(gg_data_rows(&with->data.list, t->index, out, err));
    *block = gguf_dtype_find(t->dtype)->block_len;
    return TILE % *block == 0
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_UNSUPPORTED, t->info_off,
                              "tensor '%s': an adapter with blocks of %" PRIu64
                              " elements cannot be merged",
                              gg_str_esc(&e, t->name), *block);
}

/* Prepare tensor i of base if an adapter has a pair for it. */
static enum gguf_status make_tensor(struct gg_data_merged *m, size_t i,
                                    const struct gg_merged_lora *with,
                                    size_t n, struct gguf_error *err)
{
    struct gg_data_info t;
    size_t n_parts = 0;
    gg_data_info(m->over.base, i, &t);
    for (size_t k = 0; k < n; k++)
        n_parts += gg_lora_find(&with[k].lora, t.name) != NULL;
    if (!n_parts)
        return GGUF_OK;
    struct gg_merged_tensor *to = gg_mem_alloc_zero(
        m->allocator, 1, sizeof *to + n_parts * sizeof *to->part);
    if (!to)
        return gg_error_set_nomem(err, sizeof *to);
    m->tensor[i] = to;
    to->ne0 = (uint64_t)t.ne[0];
    to->ne1 = (uint64_t)t.ne[1];
    GG_TRY(gg_data_rows(m->over.base, i, &to->base, err));
    for (size_t k = 0; k < n; k++) {
        const struct gg_lora_pair *p = gg_lora_find(&with[k].lora, t.name);
        if (!p)
            continue;
        struct part *q = &to->part[to->n_parts++];
        GG_TRY(gg_lora_check_shape(p, t.ne, err));
        GG_TRY(prepare_half(&with[k], p->a, &q->a, &q->a_block, err));
        GG_TRY(prepare_half(&with[k], p->b, &q->b, &q->b_block, err));
        q->rank = p->rank;
        q->looked_up = p->looked_up;
        q->factor = gg_lora_factor(&with[k].lora, p, with[k].scale);
        to->n_parts -= q->factor == 0; /* dropped: it adds nothing */
    }
    if (!to->n_parts) {
        gg_mem_free(m->allocator, to);
        m->tensor[i] = NULL;
    }
    return GGUF_OK;
}

static bool has_tensor(const struct gg_data *list, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < gg_data_n_tensors(list) && !has; i++) {
        struct gg_data_info t;
        gg_data_info(list, i, &t);
        has = gg_str_eqz(t.name, name);
    }
    return has;
}

static enum gguf_status fail_lacking(const struct gg_data_merged *m,
                                     const struct gg_lora_pair *p,
                                     struct gguf_error *err)
{
    struct gg_str_esc e;
    if (!gg_str_eqz(p->weight, "output.weight") ||
        !has_tensor(m->over.base, "token_embd.weight"))
        return gg_lora_fail_missing_weight(p, err);
    return gg_error_set(err, GGUF_E_TENSOR, p->a->info_off,
                        "tensor '%s': the output of the model is its "
                        "embedding, 'token_embd.weight', which the "
                        "pair must not change, so that it cannot be "
                        "merged; gguf-ppl --lora evaluates it",
                        gg_str_esc(&e, p->a->name));
}

/* Check that every pair has a tensor. */
static enum gguf_status check_found(const struct gg_data_merged *m,
                                    const struct gg_merged_lora *with,
                                    size_t n, struct gguf_error *err)
{
    for (size_t k = 0; k < n; k++) {
        const struct gg_lora *l = &with[k].lora;
        bool *found = gg_mem_alloc_zero(m->allocator, l->n_pairs, 1);
        enum gguf_status st = GGUF_OK;
        if (!found)
            return gg_error_set_nomem(err, l->n_pairs);
        for (size_t i = 0; i < gg_data_n_tensors(m->over.base); i++) {
            struct gg_data_info t;
            gg_data_info(m->over.base, i, &t);
            const struct gg_lora_pair *p = gg_lora_find(l, t.name);
            if (p)
                found[p - l->pair] = true;
        }
        for (size_t i = 0; i < l->n_pairs && st == GGUF_OK; i++)
            if (!found[i])
                st = fail_lacking(m, &l->pair[i], err);
        gg_mem_free(m->allocator, found);
        GG_TRY(st);
    }
    return GGUF_OK;
}

enum gguf_status gg_data_merged_init(struct gg_data_merged *m,
                                     const struct gg_data *base,
                                     const struct gg_merged_lora *with,
                                     size_t n,
                                     const struct gguf_allocator *allocator,
                                     struct gguf_error *err)
{
    static const struct gg_data_ops ops = {
        .n_tensors = gg_data_overlay_n_tensors,
        .info = gg_data_overlay_info,
        .rows = prepare_rows,
        .bytes = stored_bytes,
    };
    const size_t n_base = gg_data_n_tensors(base);
    *m = (struct gg_data_merged){ { { &ops }, base }, allocator, NULL };
    m->tensor =
        gg_mem_alloc_zero(allocator, n_base ? n_base : 1, sizeof *m->tensor);
    if (!m->tensor)
        return gg_error_set_nomem(err, n_base * sizeof *m->tensor);
    enum gguf_status st = check_found(m, with, n, err);
    for (size_t i = 0; i < n_base && st == GGUF_OK; i++)
        st = make_tensor(m, i, with, n, err);
    if (st != GGUF_OK)
        gg_data_merged_fini(m);
    return st;
}

void gg_data_merged_fini(struct gg_data_merged *m)
{
    const size_t n = m->tensor ? gg_data_n_tensors(m->over.base) : 0;
    for (size_t i = 0; i < n; i++)
        gg_mem_free(m->allocator, (void *)(uintptr_t)m->tensor[i]);
    gg_mem_free(m->allocator, (void *)m->tensor);
    m->tensor = NULL;
}
