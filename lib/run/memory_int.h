/* SPDX-License-Identifier: MIT */
/* memory_int.h - what a session keeps of the tokens that it has seen
 *
 * A kind of memory for each kind of mixer: keys and values of every token
 * (kv_cache.c), states that tokens move (state_cache.c), keys of blocks of them
 * (compressed_cache.c). Layers map to kinds (model/build.h), one layer may have
 * several. A kind describes its tensors, gives a graph its inputs and fills
 * them for a micro-batch.
 *
 * What sequences keep in a tensor is rows. Those of a tensor that follows a
 * book (cells.h) are its cells, one for each token; else a sequence has one
 * row, which all its tokens made. Copying, moving and forgetting, and saving
 * and restoring, know no more than that (memory_rows.c).
 */
#ifndef GG_RUN_MEMORY_INT_H
#define GG_RUN_MEMORY_INT_H

#include "model/build.h"
#include "run/cache_types.h"
#include "run/ubatch.h"

enum {
    GG_MEMORY_TENSORS = 3, /* of a layer, at most */
    GG_MEMORY_INPUTS = 16  /* of a graph */
};

struct gg_memory {
    const struct gg_memory_kind *kind; /* NULL: the model has none of this
                                        * kind */
    const struct gguf_model *model;
    const struct gguf_allocator *allocator;
    uint32_t n_ctx, n_seq;
    struct gg_cache_types types;
    /* Those that its tensors follow, of layers that see so much; NULL for
     * those of windows where they follow the other one, and in a memory whose
     * rows are sequences. */
    struct gg_cells *book[GG_N_ATTN_TYPES];
    bool kept;              /* else of the pass alone */
    struct gguf_tensor **t; /* GG_MEMORY_TENSORS for each layer, the first of
                             * all layers first; NULL where a layer has another
                             * kind */
    struct gguf_tensor *in[GG_MEMORY_INPUTS]; /* of the last graph */
    float *row;   /* [n_row] scratch: a row of a mask, or rows on their way */
    size_t n_row; /* floats in row, at least 128 */
    int32_t *ids; /* 0, 1, ... n_seq - 1 */
};

struct gg_memory_kind {
    enum gg_model_memory_kind id;
    const char *name[GG_MEMORY_TENSORS]; /* of a layer's tensors */
    /* One of them of layer il, or NULL: it has none. */
    struct gguf_tensor *(*describe)(const struct gg_memory *m,
                                    struct gguf_ctx *c, uint32_t il,
                                    unsigned which);
    /* Make the inputs of a graph for a shape, in pass->ctx, and tell the pass
     * where its memory is. */
    void (*inputs)(struct gg_memory *m, const struct gg_ubatch_shape *h,
                   struct gg_model_pass *pass);
    /* Fill them. Allocates nothing. */
    enum gguf_status (*fill)(struct gg_memory *m, const struct gg_ubatch *u,
                             struct gguf_error *err);
    bool encoded; /* it keeps what was encoded, in cells of that */
    bool by_seq;  /* a sequence has one row, whatever its tokens */
};

extern const struct gg_memory_kind gg_memory_keys, gg_memory_states,
    gg_memory_cross, gg_memory_compressed;

enum { GG_N_MEMORIES = 4 };

/* compressed_cache.c. Blocks are told by positions: the tokens of a sequence
 * must be at 0, 1, ... GGUF_E_INVALID names the first that is not, of a batch
 * that is planned. */
enum gguf_status gg_compressed_cache_check(const struct gg_batch_plan *p,
                                           const struct gg_cells *cells,
                                           struct gguf_error *err);

/* What memories are made for. */
struct gg_memory_params {
    const struct gguf_model *model;
    const struct gguf_allocator *allocator;
    uint32_t n_ctx, n_seq, n_ubatch;
    struct gg_cache_types types;
    struct gg_cells *book[GG_N_ATTN_TYPES]; /* of tokens; [1] or NULL */
    struct gg_cells *encoded;               /* of encoded ones */
};

/* memory.c. A memory of each kind that the model has, described in ctx, which
 * has room for GG_MEMORY_TENSORS a layer and kind. Books are kept.
 * GGUF_E_NOMEM. */
enum gguf_status gg_memory_init(struct gg_memory m[GG_N_MEMORIES],
                                const struct gg_memory_params *p,
                                struct gguf_ctx *c, struct gguf_error *err);
void gg_memory_fini(struct gg_memory m[GG_N_MEMORIES]);

/* The book that layer il follows; NULL: rows are sequences. */
struct gg_cells *gg_memory_layer_book(const struct gg_memory *m, uint32_t il);

/* An input of a graph, and what it is filled with; nothing, if no node of the
 * graph reads it. */
struct gguf_tensor *gg_run_mark_input(struct gguf_tensor *t, const char *name);
enum gguf_status gg_run_set_input(struct gguf_tensor *t, const void *src,
                                  struct gguf_error *err);

/* ---- memory_rows.c ---- */

/* Tensors i of a memory are m->t[0] to m->t[gg_memory_n_tensors() - 1], some
 * NULL. Bytes of a row, and its book, as above. */
size_t gg_memory_n_tensors(const struct gg_memory *m);
uint64_t gg_memory_row_size(const struct gg_memory *m, size_t i);
struct gg_cells *gg_memory_tensor_book(const struct gg_memory *m, size_t i);

/* Rows that a sequence has in tensor i, in the order of its cells, as many
 * together as lie side by side: called with the first one's offset and the
 * bytes of all of them. A tensor that follows no book has one, if the sequence
 * has any token. The first failure ends it. To restore a sequence: take its
 * cells first, then put rows in the same order. */
typedef enum gguf_status gg_memory_rows_fn(void *user, struct gguf_tensor *t,
                                           uint64_t off, uint64_t size,
                                           struct gguf_error *err);
enum gguf_status gg_memory_visit_rows(const struct gg_memory *m, size_t i,
                                      uint32_t seq, gg_memory_rows_fn *fn,
                                      void *user, struct gguf_error *err);

/* Set to zero n rows of all tensors that follow a book, or of those whose rows
 * are sequences (book NULL). What is in a row that nobody has is masked where
 * others are read, but 0 times a NaN is a NaN. Fails as clearing tensors
 * does. */
enum gguf_status gg_memory_zero_rows(struct gg_memory *m,
                                     const struct gg_cells *book, uint32_t row,
                                     uint32_t n, struct gguf_error *err);

/* Copy n rows likewise; they may overlap. Fails as transfers do. */
enum gguf_status gg_memory_copy_rows(struct gg_memory *m,
                                     const struct gg_cells *book,
                                     uint32_t from, uint32_t to, uint32_t n,
                                     struct gguf_error *err);

#endif
