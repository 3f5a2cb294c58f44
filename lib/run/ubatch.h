/* ubatch.h - the tokens that are computed together
 *
 * A batch (batch.h) goes through the model in micro-batches of at most a
 * session's n_ubatch tokens: whole sequences side by side where they are
 * neighbours and have equally many tokens, else a part of one. A micro-batch
 * has its tokens, the positions and cells that they get, and what each of them
 * sees. It is filled up with repetitions of its last token where there must be
 * more columns.
 */
#ifndef GG_RUN_UBATCH_H
#define GG_RUN_UBATCH_H

#include "model/hparams.h"
#include "run/batch.h"

/* What the graph of a pass depends on: equal shapes, the same graph. */
struct gg_ubatch_shape {
    int64_t n_tok;  /* of each sequence, repetitions included */
    int64_t n_seq;  /* side by side, from first_stream on */
    int64_t n_real; /* of n_tok */
    int64_t n_kv;   /* cells of each sequence that are read */
    int64_t n_out;  /* rows of output, repetitions included */
    int64_t n_mask; /* 1 where all sequences see the same, else n_seq */
    int64_t first_stream;
    int64_t n_cross; /* cells of each sequence's encoded text that are read */
    bool encodes;    /* the text is encoded, for a decoder */
};

struct gg_run_ubatch {
    const struct gguf_allocator *allocator;
    struct gg_cells *cells;         /* that tokens get */
    const struct gg_cells *encoded; /* those of encoded texts, or NULL */
    uint32_t most;                  /* tokens of one */
    uint32_t least; /* columns of a product: fewer are filled up */
    struct gg_ubatch_shape shape;
    uint32_t begin; /* tokens of its sequences that earlier ones had */
    uint32_t n_out; /* outputs without repetitions */
    int32_t *tok, *pos, *row; /* [n_tok * n_seq]: token, position, cell among
                               * those of all sequences */
    int32_t *out_row;         /* [n_out] which of them are outputs */
};

/* For micro-batches of at most so many tokens, which take cells. The cells are
 * kept. GGUF_E_NOMEM; fini is fine after it. */
enum gguf_status gg_ubatch_init(struct gg_run_ubatch *u,
                                struct gg_cells *cells, uint32_t most,
                                const struct gguf_allocator *a,
                                struct gguf_error *err);
void gg_ubatch_fini(struct gg_run_ubatch *u);

/* Before the first of a batch, whose tokens take these cells, kept: how many
 * columns there must at least be, and whether they are encoded, for a decoder
 * that is to look at encoded. */
void gg_ubatch_start(struct gg_run_ubatch *u, struct gg_cells *cells,
                     const struct gg_cells *encoded, uint32_t least,
                     bool encodes);

/* The next tokens of a batch; false after the last. Their cells are taken. */
bool gg_ubatch_next(struct gg_run_ubatch *u, const struct gg_batch_plan *p);

/* Which token of its batch output k of a micro-batch is, and of which
 * sequence. */
uint32_t gg_ubatch_output(const struct gg_run_ubatch *u,
                          const struct gg_batch_plan *p, uint32_t k,
                          uint32_t *seq);

/* What a token sees, in attention. */
struct gg_ubatch_sight {
    bool kept;   /* the cells of its sequence, else the tokens beside it */
    bool causal; /* of those beside it, none that come later */
    bool far;    /* distances count */
    struct gg_hparams_reach reach;
};

/* Row i of a mask: for each of the n_kv cells of token i's sequence, or each of
 * the n_tok tokens beside it, minus infinity if it is not seen, else 0 or,
 * where distances count, minus how far away it is. */
void gg_ubatch_mask(const struct gg_run_ubatch *u, int64_t i,
                    const struct gg_ubatch_sight *sight, float *mask);

/* How far each of the n_kv cells of token i's sequence (kept), or each of the
 * n_tok tokens beside it, is after it, or before it (negative); at most that
 * far either way. */
void gg_ubatch_far(const struct gg_run_ubatch *u, int64_t i, bool kept,
                   int32_t most, int32_t *far);

#endif
