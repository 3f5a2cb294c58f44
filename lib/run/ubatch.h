/* SPDX-License-Identifier: MIT */
/* ubatch.h - micro-batches: tokens that are computed together
 *
 * A batch (batch.h) is computed in micro-batches of at most n_ubatch tokens. A
 * micro-batch has whole groups side by side, if they are neighbours with
 * equally many tokens, or a part of one group. A group is a sequence, or all
 * tokens if only masks tell sequences apart. For each token the micro-batch
 * has position, cell, and the cells that it sees. If it has fewer columns than
 * a product needs, its last token is repeated. */
#ifndef GG_RUN_UBATCH_H
#define GG_RUN_UBATCH_H

#include "model/hparam/hparams.h"
#include "run/batch.h"

/* Step of n_past: large enough that a growing text seldom needs a new graph.
 */
enum { GG_PAST_STEP = 512 };

/* Shape of a pass: passes of equal shapes have the same graph. */
struct gg_ubatch_shape {
    int64_t n_tok;  /* tokens of each group, with repetitions */
    int64_t n_seq;  /* number of groups, from first_stream on */
    int64_t n_real; /* tokens of each group, without repetitions */
    int64_t
        /* cells of each stream that are read, in both tables; 0: no such table
         */
        n_kv[GG_N_ATTN_TYPES];
    int64_t n_out;  /* rows of output, with repetitions */
    int64_t n_mask; /* masks: 1 if all groups see the same, else n_seq */
    int64_t first_stream;
    /* highest position of the sequences, in steps of GG_PAST_STEP */
    int64_t n_past;
    int64_t n_cross; /* cells of each sequence's encoded text that are read */
    bool encodes;    /* the text is encoded for a decoder */
    bool shared;     /* all groups see cells of one stream */
};

struct gg_ubatch {
    const struct gguf_allocator *allocator;
    struct gg_cells
        /* tables in which tokens take cells; [1], for windows, may be NULL */
        *table[GG_N_ATTN_TYPES];
    const struct gg_cells *encoded; /* table of encoded texts; NULL: none */
    uint32_t most;                  /* most tokens of a micro-batch */
    uint32_t least;                 /* least number of columns of a product */
    bool counts_past;               /* the shape has n_past; else that is 0 */
    /* Cells for later tokens of the batch are read too, so that all
     * micro-batches have one shape. */
    bool reads_ahead;
    struct gg_ubatch_shape shape;
    /* tokens of its groups that are in earlier micro-batches */
    uint32_t begin;
    uint32_t n_out; /* outputs, without repetitions */
    /* [n_tok * n_seq]: token, position and first sequence */
    int32_t *tok, *pos, *seq;
    int32_t *type; /* [n_tok * n_seq]: type of each token */
    /* cell of each token, counted through all streams */
    int32_t *row[GG_N_ATTN_TYPES];
    int32_t *out_row; /* [n_out], tokens that are outputs */
};

/* Allocate memory for micro-batches of up to most tokens. GGUF_E_NOMEM.
 * gg_ubatch_fini() may follow a failure. */
enum gguf_status gg_ubatch_init(struct gg_ubatch *u, uint32_t most,
                                const struct gguf_allocator *a,
                                struct gguf_error *err);
void gg_ubatch_fini(struct gg_ubatch *u);

/* Begin a batch.
 *
 * table     Tables in which its tokens take cells. They must outlive the batch.
 * encoded   Table of encoded texts that its tokens see; NULL: none.
 * least     Least number of columns of a product.
 * encodes   The batch is encoded for a decoder. */
void gg_ubatch_start(struct gg_ubatch *u,
                     struct gg_cells *const table[GG_N_ATTN_TYPES],
                     const struct gg_cells *encoded, uint32_t least,
                     bool encodes);

/* Make the next micro-batch of a batch. Returns false after the last one. */
bool gg_ubatch_next(struct gg_ubatch *u, const struct gg_batch_plan *p);

/* Entry i of group g of the micro-batch; g is below n_seq, i below n_real. */
const struct gg_batch_entry *gg_ubatch_entry(const struct gg_ubatch *u,
                                             const struct gg_batch_plan *p,
                                             int64_t g, int64_t i);

/* Take cells for the tokens of the micro-batch. Their streams must have enough
 * free cells at the end. */
void gg_ubatch_take_cells(struct gg_ubatch *u, const struct gg_batch_plan *p);

/* Entry of the batch for output k of the micro-batch. */
const struct gg_batch_entry *gg_ubatch_output(const struct gg_ubatch *u,
                                              const struct gg_batch_plan *p,
                                              uint32_t k);

/* Cells or tokens that a token sees in attention. */
struct gg_ubatch_visibility {
    /* table of the cells; NULL: tokens of the micro-batch instead */
    const struct gg_cells *kept;
    int64_t n_kv; /* number of cells or tokens of a mask's row */
    bool causal;  /* no later tokens of the micro-batch are seen */
    bool far;     /* distances count */
    struct gg_hparams_attn_range reach;
};

/* Fill row i of a mask: for each of the n_kv cells or tokens minus infinity if
 * token i does not see it; else 0, or minus the distance if distances count.
 */
void gg_ubatch_fill_mask(const struct gg_ubatch *u, int64_t i,
                         const struct gg_ubatch_visibility *sight,
                         float *mask);

/* Fill in the signed distance from token i to each cell or token: positive for
 * those after it. Distances are limited to most either way. */
void gg_ubatch_fill_distances(const struct gg_ubatch *u, int64_t i,
                              const struct gg_ubatch_visibility *sight,
                              int32_t most, int32_t *far);

/* First position that a token at pos sees. */
int32_t gg_ubatch_first_visible(int32_t pos,
                                const struct gg_hparams_attn_range *r);

/* Number of cells that are read if n of most are used. */
int64_t gg_ubatch_n_cells_read(uint32_t n, uint32_t most);

#endif
