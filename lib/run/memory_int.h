/* SPDX-License-Identifier: MIT */
/* memory_int.h - a session's memory of tokens: keys, values and states
 *
 * Each kind of mixer has its kind of memory: keys and values of every token
 * (kv_cache.c), states that every token changes (state_cache.c), keys of
 * blocks of tokens (compressed_cache.c), keys and values of an encoded text
 * (cross_cache.c), adapters that tokens activate (switch_cache.c). Layers map
 * to kinds (model/build.h); one layer may have several. A kind describes its
 * tensors, makes the inputs of a graph, and fills them for a micro-batch.
 *
 * Tensors consist of rows. If a tensor follows a table (cells.h), its rows are
 * the table's cells, one for each token. If it follows no table, it has one row
 * for each sequence, which stands for all tokens of the sequence. Functions
 * that copy, move, clear, save and restore rows need to know no more
 * (memory_rows.c). */
#ifndef GG_RUN_MEMORY_INT_H
#define GG_RUN_MEMORY_INT_H

#include "model/build.h"
#include "run/cache_types.h"
#include "run/ubatch.h"

enum {
    GG_MEMORY_TENSORS = 4, /* tensors of one kind in a layer, at most */
    GG_MEMORY_INPUTS = 32  /* inputs of one kind in a graph, at most */
};

struct gg_memory {
    /* NULL: the model has no memory of this kind */
    const struct gg_memory_kind *kind;
    const struct gguf_model *model;
    const struct gguf_allocator *allocator;
    uint32_t n_ctx, n_seq;
    struct gg_cache_types types;
    /* Tables that the tensors follow, for each type of attention. The table of
     * layers with windows is NULL if they follow the table of full attention.
     * Both are NULL if each sequence has one row. */
    struct gg_cells *table[GG_N_ATTN_TYPES];
    /* Tokens are remembered from pass to pass. false: the tokens of a pass see
     * only each other, and t is NULL. */
    bool kept;
    /* Tensor k of layer il is t[k * (number of layers) + il]. An entry of NULL:
     * the layer has no such tensor of this kind. */
    struct gguf_tensor **t;
    struct gguf_tensor *in[GG_MEMORY_INPUTS]; /* inputs of the last graph */
    /* [n_row], scratch for a row of a mask, or for rows that move */
    float *row;
    size_t n_row; /* floats in row, at least 128 */
    int32_t *ids; /* 0, 1, ... n_seq - 1 */
};

struct gg_memory_kind {
    enum gg_model_memory_kind id;
    const char *name[GG_MEMORY_TENSORS]; /* names of a layer's tensors */
    /* Describe a tensor of layer il in c. The parameter which is the tensor's
     * number, 0 to GG_MEMORY_TENSORS - 1. Returns NULL if the layer has no such
     * tensor. */
    struct gguf_tensor *(*describe)(const struct gg_memory *m,
                                    struct gguf_ctx *c, uint32_t il,
                                    unsigned which);
    /* Make the inputs of a graph of shape h. They are made in pass->ctx. Then
     * set the members of pass for this kind, which refer to the inputs and to
     * the tensors of this memory. */
    void (*inputs)(struct gg_memory *m, const struct gg_ubatch_shape *h,
                   struct gg_model_pass *pass);
    /* Fill the inputs of the last graph for a micro-batch. Allocates
     * nothing. */
    enum gguf_status (*fill)(struct gg_memory *m, const struct gg_ubatch *u,
                             struct gguf_error *err);
    bool encoded; /* holds encoded texts, and follows the table of these */
    bool by_seq;  /* each sequence has one row */
};

extern const struct gg_memory_kind gg_memory_keys, gg_memory_states,
    gg_memory_cross, gg_memory_compressed, gg_memory_switch;

enum { GG_N_MEMORIES = 5 };

/* compressed_cache.c: check that the positions of each sequence have no gaps:
 * the tokens in cells, then the tokens of a planned batch, are at positions 0,
 * 1, 2 and so on. Blocks of tokens are numbered by position. GGUF_E_INVALID: a
 * token is at another position; the message names the first such token. */
enum gguf_status gg_compressed_cache_check(const struct gg_batch_plan *p,
                                           const struct gg_cells *cells,
                                           struct gguf_error *err);

/* Parameters of a session's memory. */
struct gg_memory_params {
    const struct gguf_model *model;
    const struct gguf_allocator *allocator;
    uint32_t n_ctx, n_seq, n_ubatch;
    struct gg_cache_types types;
    /* tables of tokens; [1], for windows, may be NULL */
    struct gg_cells *table[GG_N_ATTN_TYPES];
    struct gg_cells *encoded; /* table of encoded texts */
};

/* memory.c: make a memory of each kind that the model has.
 *
 * m   One element for each kind, zeroed by the caller.
 * c   Receives the tensors, without data. The caller allocates their data
 *     later. It must have room for GG_MEMORY_TENSORS tensors of each layer and
 *     kind.
 *
 * The tables of p must outlive the memory. Call gg_memory_fini() at the end,
 * also after GGUF_E_NOMEM. */
enum gguf_status gg_memory_init(struct gg_memory m[GG_N_MEMORIES],
                                const struct gg_memory_params *p,
                                struct gguf_ctx *c, struct gguf_error *err);
void gg_memory_fini(struct gg_memory m[GG_N_MEMORIES]);

/* Table that layer il follows; NULL: each sequence has one row. */
struct gg_cells *gg_memory_layer_table(const struct gg_memory *m, uint32_t il);

/* Name a tensor and mark it as an input of a graph. Returns t. */
struct gguf_tensor *gg_run_mark_input(struct gguf_tensor *t, const char *name);
/* Copy src to the input t. Does nothing if t is NULL, or if t has no memory
 * because no node of the graph reads it. */
enum gguf_status gg_run_set_input(struct gguf_tensor *t, const void *src,
                                  struct gguf_error *err);

/* ---- memory_rows.c ---- */

/* Number of entries of m->t, including those that are NULL. 0 if m->t is
 * NULL. */
size_t gg_memory_n_tensors(const struct gg_memory *m);
/* Bytes of a row of tensor i, which must not be NULL. */
uint64_t gg_memory_row_size(const struct gg_memory *m, size_t i);
/* Table that tensor i follows. NULL: each sequence has one row. */
struct gg_cells *gg_memory_tensor_table(const struct gg_memory *m, size_t i);

/* Fill n rows, from row on, with zeros in all tensors that follow a table. If
 * table is NULL, in all tensors with one row for each sequence. Rows without a
 * token must be cleared although they are masked: the mask gives them the
 * weight 0, but 0 times NaN is NaN. Statuses: those of gguf_tensor_fill(). */
enum gguf_status gg_memory_zero_rows(struct gg_memory *m,
                                     const struct gg_cells *table,
                                     uint32_t row, uint32_t n,
                                     struct gguf_error *err);

/* Copy n rows, from row `from` on to row `to` and up, in all tensors that
 * follow a table. If table is NULL, in all tensors with one row for each
 * sequence. The two ranges may overlap. Statuses: those of gguf_tensor_get()
 * and gguf_tensor_set(). */
enum gguf_status gg_memory_copy_rows(struct gg_memory *m,
                                     const struct gg_cells *table,
                                     uint32_t from, uint32_t to, uint32_t n,
                                     struct gguf_error *err);

#endif
