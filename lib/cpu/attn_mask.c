/* SPDX-License-Identifier: MIT */
/* attn_mask.c - which keys an attention's mask opens */
#include "config.h"
#include "cpu/attn_mask.h"

#include "base/compiler.h"

#include <math.h>

enum { N_UNITS = GG_ATTN_KEYS / GG_ATTN_UNIT };

void gg_attn_mask_init(struct gg_attn_mask *m, const struct gg_attn_args *a,
                       struct gg_attn_span *span)
{
    *m = (struct gg_attn_mask){
        .a = a,
        .n_key_blocks = ((size_t)a->n_kv + GG_ATTN_KEYS - 1) / GG_ATTN_KEYS,
        .n_heads = a->mask_nb[1]   ? (size_t)a->n_head
                   : a->mask_kv_nb ? (size_t)a->n_head_kv
                                   : 1,
        .n_seqs = a->mask_nb[2] ? (size_t)a->n_seq : 1,
        .span = span,
    };
}

size_t gg_attn_mask_n_spans(const struct gg_attn_mask *m)
{
    const size_t n_rows = m->n_seqs * m->n_heads * (size_t)m->a->n_tok;
    return m->a->mask ? n_rows * m->n_key_blocks : 0;
}

const float *gg_attn_mask_row(const struct gg_attn_args *a, size_t seq,
                              size_t head_kv, size_t head, size_t tok,
                              size_t first, size_t n, float *buf)
{
    const size_t size = gg_dtype_by_index(a->mask_type)->block_size;
    const unsigned char *m = (const unsigned char *)a->mask +
                             tok * a->mask_nb[0] + head * a->mask_nb[1] +
                             head_kv * a->mask_kv_nb + seq * a->mask_nb[2] +
                             first * size;
    if (a->mask_type == GG_DT_F32 && (uintptr_t)m % sizeof(float) == 0)
        return (const float *)(const void *)m;
    a->kern->codec[a->mask_type].decode(m, buf, n);
    return buf;
}

/* Summary of n numbers of a row, which belong to one block. */
static struct gg_attn_span span_of(const struct gg_vec_kern *vec,
                                   const float *row, size_t n)
{
    const float max = vec->max(row, n);
    size_t from = 0, to = (n + GG_ATTN_UNIT - 1) / GG_ATTN_UNIT;
    /* numbers that add up to 0, and none of them above 0, are zeros */
    if (max == 0 && vec->sum(row, n) == 0)
        return (struct gg_attn_span){ 0, (uint8_t)to, true };
    if (max == -INFINITY)
        return (struct gg_attn_span){ N_UNITS, 0, false };
    while (vec->max(row + from * GG_ATTN_UNIT,
                    GG_MIN(n - from * GG_ATTN_UNIT, (size_t)GG_ATTN_UNIT)) ==
           -INFINITY)
        from++;
    while (vec->max(row + (to - 1) * GG_ATTN_UNIT,
                    GG_MIN(n - (to - 1) * GG_ATTN_UNIT,
                           (size_t)GG_ATTN_UNIT)) == -INFINITY)
        to--;
    return (struct gg_attn_span){ (uint8_t)from, (uint8_t)to, false };
}

/* Row i of spans: a token of a head of a sequence, all keys. */
static void scan_row(const struct gg_attn_mask *m, size_t i, float *buf)
{
    const struct gg_attn_args *a = m->a;
    const size_t n_tok = (size_t)a->n_tok, tok = i % n_tok;
    const size_t head = i / n_tok % m->n_heads, seq = i / n_tok / m->n_heads;
    for (size_t k = 0; k < m->n_key_blocks; k++) {
        const size_t first = k * GG_ATTN_KEYS,
                     n = GG_MIN((size_t)a->n_kv - first, (size_t)GG_ATTN_KEYS);
        m->span[i * m->n_key_blocks + k] = span_of(
            &a->kern->vec,
            gg_attn_mask_row(a, seq, head, head, tok, first, n, buf), n);
    }
}

void gg_attn_mask_scan(const struct gg_attn_mask *m, unsigned ith,
                       unsigned nth, float *buf)
{
    const size_t n =
        m->a->mask ? m->n_seqs * m->n_heads * (size_t)m->a->n_tok : 0;
    for (size_t i = n * ith / nth; i < n * (ith + 1) / nth; i++)
        scan_row(m, i, buf);
}

struct gg_attn_span gg_attn_mask_span(const struct gg_attn_mask *m, size_t seq,
                                      size_t head_kv, size_t head0, size_t tok,
                                      size_t n_tok, size_t key_block)
{
    const struct gg_attn_args *a = m->a;
    struct gg_attn_span all = { 0, N_UNITS, true };
    if (!a->mask)
        return all;
    const size_t group = (size_t)(a->n_head / a->n_head_kv);
    const size_t n = a->mask_nb[1] ? group : 1, head = a->mask_nb[1] ? head0
                                                       : a->mask_kv_nb
                                                           ? head_kv
                                                           : 0;
    all.begin = N_UNITS;
    all.end = 0;
    for (size_t h = head; h < head + n; h++) {
        const size_t row = (a->mask_nb[2] ? seq : 0) * m->n_heads + h;
        const struct gg_attn_span *s =
            m->span + (row * (size_t)a->n_tok + tok) * m->n_key_blocks +
            key_block;
        for (size_t i = 0; i < n_tok; i++, s += m->n_key_blocks) {
            all.begin = GG_MIN(all.begin, s->begin);
            all.end = GG_MAX(all.end, s->end);
            all.plain = all.plain && s->plain;
        }
    }
    return all;
}
