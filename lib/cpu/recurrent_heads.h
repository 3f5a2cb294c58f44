/* SPDX-License-Identifier: MIT */
/* recurrent_heads.h - sharing recurrent heads among threads
 *
 * Each element of a head's value has a part of the state to itself
 * (kern/vec.h): so threads claim elements of all heads of all sequences.
 * Rows that all elements need of a token are prepared for a tile of tokens at a
 * time, few enough to stay in the first-level cache.
 */
#ifndef GG_CPU_RECURRENT_HEADS_H
#define GG_CPU_RECURRENT_HEADS_H

#include "cpu/row.h"

/* Tokens of a tile, and elements of a value that a thread takes together. */
enum { GG_HEADS_TILE = 8, GG_HEADS_PART = 4 };

/* Scratch of a thread in rows. A row is as long as a value, or as a tile if
 * that is longer. One row more is for gg_cpu_heads_source_row(). */
struct gg_cpu_heads_scratch {
    unsigned n_tiles; /* tiles, with a row for each token */
    unsigned n_more;  /* further rows */
};
/* Bytes of scratch of an operation for nth threads. */
size_t gg_cpu_heads_work(const struct gguf_tensor *t, unsigned nth,
                         struct gg_cpu_heads_scratch s);

/* Some elements of one head of one sequence. Source 2 of t holds the values [n,
 * heads, tokens, sequences]; t holds the results in that shape, then the new
 * states. */
struct gg_cpu_heads_part {
    const struct gguf_tensor *t;
    const struct gg_cpu_task *task;
    struct gg_cpu_heads_scratch scratch;
    int64_t head, seq;               /* head and sequence */
    int64_t first;                   /* first element of the part */
    int64_t n_rows;                  /* elements of the part */
    int64_t n;                       /* elements of a value */
    const struct gguf_tensor *state; /* states before the first token */
    float *to;                       /* new state of the part, [n_rows][n] */
};

/* Further row i of the scratch. */
float *gg_cpu_heads_extra_row(const struct gg_cpu_heads_part *p, unsigned i);
/* Row of token k in tile `what`. The rows of a tile are adjacent. */
float *gg_cpu_heads_tile_row(const struct gg_cpu_heads_part *p, unsigned what,
                             int64_t k);
/* Row of a token in source i, which may have fewer heads. Valid until the next
 * call. */
const float *gg_cpu_heads_source_row(const struct gg_cpu_heads_part *p, int i,
                                     int64_t tok);
/* State of the part before its n_tok tokens: in the source, or copied to p->to.
 * Without tokens it is always copied, as the new state. */
const float *gg_cpu_heads_load_state(const struct gg_cpu_heads_part *p,
                                     int64_t n_tok);
/* Results of the part for a token. */
float *gg_cpu_heads_result_row(const struct gg_cpu_heads_part *p, int64_t tok);

/* Claim parts of t, and call fn for each.
 *
 * state      Index of the source with the states.
 * per_part   Elements of a part. 0: all elements of a head. */
void gg_cpu_heads_for_each_part(const struct gguf_tensor *t,
                                const struct gg_cpu_task *task, int state,
                                int64_t per_part,
                                struct gg_cpu_heads_scratch s,
                                void (*fn)(const struct gg_cpu_heads_part *p));

#endif
