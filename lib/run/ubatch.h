/* SPDX-License-Identifier: MIT */
/* ubatch.h - the tokens that are computed together
 *
 * A batch (batch.h) goes through the model in micro-batches of at most a
 * session's n_ubatch tokens: whole groups side by side where they are
 * neighbours and have equally many tokens, else a part of one. A group is a
 * sequence, or all tokens where nothing tells sequences apart but masks. A
 * micro-batch has its tokens, the positions and cells that they get, and what
 * each of them sees. It is filled up with repetitions of its last token where
 * there must be more columns.
 */
#ifndef GG_RUN_UBATCH_H
#define GG_RUN_UBATCH_H

#include "model/hparam/hparams.h"
#include "run/batch.h"

/* So many that a text that grows does not get a new graph each time. */
enum { GG_PAST_STEP = 512 };

/* What the graph of a pass depends on: equal shapes, the same graph. */
struct gg_ubatch_shape {
    int64_t n_tok;  /* of each group, repetitions included */
    int64_t n_seq;  /* groups side by side, from first_stream on */
    int64_t n_real; /* of n_tok */
    int64_t
        n_kv[GG_N_ATTN_TYPES]; /* cells of each stream that are read, of both
                                * books; 0: there is none */
    int64_t n_out;             /* rows of output, repetitions included */
    int64_t n_mask; /* 1 where all groups see the same, else n_seq */
    int64_t first_stream;
    int64_t n_past;  /* positions up to which sequences have come, in steps of
                     * GG_PAST_STEP */
    int64_t n_cross; /* cells of each sequence's encoded text that are read */
    bool encodes;    /* the text is encoded, for a decoder */
    bool shared;     /* groups see cells of one stream */
};

struct gg_ubatch {
    const struct gguf_allocator *allocator;
    struct gg_cells
        *book[GG_N_ATTN_TYPES];     /* whose cells tokens get; [1], that of
                                         * windows, may be NULL */
    const struct gg_cells *encoded; /* those of encoded texts, or NULL */
    uint32_t most;                  /* tokens of one */
    uint32_t least;   /* columns of a product: fewer are filled up */
    bool counts_past; /* the shape has n_past, else 0 */
    bool reads_ahead; /* cells are read that later ones of the batch take, so
                       * that all have one shape */
    struct gg_ubatch_shape shape;
    uint32_t begin;           /* tokens of its groups that earlier ones had */
    uint32_t n_out;           /* outputs without repetitions */
    int32_t *tok, *pos, *seq; /* [n_tok * n_seq]: token, position, the first
                                 * of its sequences */
    int32_t *row[GG_N_ATTN_TYPES]; /* cell among those of all streams */
    int32_t *out_row;              /* [n_out] which of them are outputs */
};

/* For micro-batches of at most so many tokens. GGUF_E_NOMEM; fini is fine after
 * it. */
enum gguf_status gg_ubatch_init(struct gg_ubatch *u, uint32_t most,
                                const struct gguf_allocator *a,
                                struct gguf_error *err);
void gg_ubatch_fini(struct gg_ubatch *u);

/* Before the first of a batch, whose tokens take cells of these books, kept:
 * how many columns there must at least be, and whether they are encoded, for a
 * decoder that is to look at encoded. */
void gg_ubatch_start(struct gg_ubatch *u,
                     struct gg_cells *const book[GG_N_ATTN_TYPES],
                     const struct gg_cells *encoded, uint32_t least,
                     bool encodes);

/* The next tokens of a batch; false after the last. */
bool gg_ubatch_next(struct gg_ubatch *u, const struct gg_batch_plan *p);

/* Entries i of its group g, which must be below n_seq and n_real. */
const struct gg_batch_entry *gg_ubatch_entry(const struct gg_ubatch *u,
                                             const struct gg_batch_plan *p,
                                             int64_t g, int64_t i);

/* Take cells for them, of which there must be enough at the end of their
 * streams. */
void gg_ubatch_take_cells(struct gg_ubatch *u, const struct gg_batch_plan *p);

/* Which entry of its batch output k of a micro-batch is of. */
const struct gg_batch_entry *gg_ubatch_output(const struct gg_ubatch *u,
                                              const struct gg_batch_plan *p,
                                              uint32_t k);

/* What a token sees, in attention. */
struct gg_ubatch_visibility {
    const struct gg_cells *kept; /* of its sequence's cells in this book, NULL:
                                  * of the tokens beside it */
    int64_t n_kv; /* how many of them there are to see, or not */
    bool causal;  /* of those beside it, none that come later */
    bool far;     /* distances count */
    struct gg_hparams_attn_range reach;
};

/* Row i of a mask: for each of the n_kv cells or tokens, minus infinity if it
 * is not seen, else 0 or, where distances count, minus how far away it is. */
void gg_ubatch_fill_mask(const struct gg_ubatch *u, int64_t i,
                         const struct gg_ubatch_visibility *sight,
                         float *mask);

/* How far each of those is after token i, or before it (negative); at most that
 * far either way. */
void gg_ubatch_fill_distances(const struct gg_ubatch *u, int64_t i,
                              const struct gg_ubatch_visibility *sight,
                              int32_t most, int32_t *far);

/* The first position that a token at this one sees. */
int32_t gg_ubatch_first_visible(int32_t pos,
                                const struct gg_hparams_attn_range *r);

/* So many cells are read where n are used, of most. */
int64_t gg_ubatch_n_cells_read(uint32_t n, uint32_t most);

#endif
