/* SPDX-License-Identifier: MIT */
/* recurrent_heads.h - recurrences of heads: values shared out among threads,
 * and what all values of a head take of its tokens
 *
 * Every value of a head has a part of the state to itself (kern/vec.h), so
 * values of heads of sequences are shared out. What they take of a token is
 * made for some tokens at a time, few enough to stay in the first cache while
 * values go by.
 */
#ifndef GG_CPU_RECURRENT_HEADS_H
#define GG_CPU_RECURRENT_HEADS_H

#include "cpu/row.h"

/* Tokens at a time, and values that are shared out together. */
enum { GG_HEADS_TILE = 8, GG_HEADS_PART = 4 };

/* Scratch of a thread in rows as long as a value, or a tile if that is longer:
 * n_tiles times a row of each token of a tile, a row, and n_more. */
struct gg_cpu_heads_scratch {
    unsigned n_tiles, n_more;
};
size_t gg_cpu_heads_work(const struct gguf_tensor *t, unsigned nth,
                         struct gg_cpu_heads_scratch s);

/* Some values of one head of one sequence. Source 2 of t are the values [n,
 * heads, tokens, sequences]; the result has theirs, then the states. */
struct gg_cpu_heads_part {
    const struct gguf_tensor *t;
    const struct gg_cpu_task *task;
    struct gg_cpu_heads_scratch scratch;
    int64_t head, seq;
    int64_t first, n_rows, n; /* n_rows of n values, from first on */
    const struct gguf_tensor *state;
    float *to; /* where the state of these values goes, [n_rows][n] */
};

/* Row i after the tiles and the row. */
float *gg_cpu_heads_extra_row(const struct gg_cpu_heads_part *p, unsigned i);
/* The row of token k of a tile; those of a tile follow each other without
 * gaps. */
float *gg_cpu_heads_tile_row(const struct gg_cpu_heads_part *p, unsigned what,
                             int64_t k);
/* The row of a token in source i, which may have fewer heads: till the next
 * one. */
const float *gg_cpu_heads_source_row(const struct gg_cpu_heads_part *p, int i,
                                     int64_t tok);
/* The state before the first of n_tok tokens: where it lies, or put where it
 * goes, which it is without tokens. */
const float *gg_cpu_heads_load_state(const struct gg_cpu_heads_part *p,
                                     int64_t n_tok);
/* Where results of a token go. */
float *gg_cpu_heads_result_row(const struct gg_cpu_heads_part *p, int64_t tok);

/* A thread's share of t, part after part. state: the source of that number;
 * per_part: values that go together, 0 for all of a head. */
void gg_cpu_heads_for_each_part(const struct gguf_tensor *t,
                                const struct gg_cpu_task *task, int state,
                                int64_t per_part,
                                struct gg_cpu_heads_scratch s,
                                void (*fn)(const struct gg_cpu_heads_part *p));

#endif
