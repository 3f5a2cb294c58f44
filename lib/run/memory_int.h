/* SPDX-License-Identifier: MIT */
/* memory_int.h - a session's memory of tokens: keys, values and states
 *
 * Each kind of mixer has its kind of memory: keys and values of every token
 * (kv_cache.c), states that every token changes (state_cache.c), keys of
 * blocks of tokens (compressed_cache.c). Layers map to kinds (model/build.h);
 * one layer may have several. A kind describes its tensors, makes the inputs
 * of a graph, and fills them for a micro-batch.
 *
 * Tensors consist of rows. If a tensor follows a table (cells.h), its rows are
 * the table's cells, one for each token; else each sequence has one row for all
 * of its tokens. Functions that copy, move, clear, save and restore rows need
 * to know no more (memory_rows.c). */
#ifndef GG_RUN_MEMORY_INT_H
#define GG_RUN_MEMORY_INT_H

#include "model/build.h"
#include "run/cache_types.h"
#include "run/ubatch.h"

enum {
    GG_MEMORY_TENSORS = 3, /* tensors of a layer, at most */
    GG_MEMORY_INPUTS = 16  /* inputs of a graph, at most */
};

struct gg_memory {
    /* NULL: the model has no memory of this kind */
    const struct gg_memory_kind *kind;
    const struct gguf_model *model;
    const struct gguf_allocator *allocator;
    uint32_t n_ctx, n_seq;
    struct gg_cache_types types;
    /* Tables that its tensors follow, for each type of attention. The table of
     * windows is NULL if windows follow the other one. Both are NULL if each
     * sequence has one row. */
    struct gg_cells *table[GG_N_ATTN_TYPES];
    bool kept; /* false: memory of one pass only */
    /* GG_MEMORY_TENSORS for each layer: first the first tensor of all layers,
     * and so on. NULL: the layer has another kind. */
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
    /* Describe tensor number which of layer il. NULL: the layer lacks it. */
    struct gguf_tensor *(*describe)(const struct gg_memory *m,
                                    struct gguf_ctx *c, uint32_t il,
                                    unsigned which);
    /* Make the inputs of a graph of a shape in pass->ctx, and set the memory
     * of the pass. */
    void (*inputs)(struct gg_memory *m, const struct gg_ubatch_shape *h,
                   struct gg_model_pass *pass);
    /* Fill the inputs. Allocates nothing. */
    enum gguf_status (*fill)(struct gg_memory *m, const struct gg_ubatch *u,
                             struct gguf_error *err);
    bool encoded; /* memory of encoded texts; it follows their table */
    bool by_seq;  /* each sequence has one row */
};

extern const struct gg_memory_kind gg_memory_keys, gg_memory_states,
    gg_memory_cross, gg_memory_compressed;

enum { GG_N_MEMORIES = 4 };

/* compressed_cache.c: check that the tokens of each sequence in a planned
 * batch are at positions 0, 1, ..., which number their blocks. GGUF_E_INVALID:
 * the message has the first that is not. */
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

/* memory.c: make a memory of each kind that the model has, described in ctx,
 * which has room for GG_MEMORY_TENSORS tensors of each layer and kind. The
 * tables must outlive the memory. GGUF_E_NOMEM. */
enum gguf_status gg_memory_init(struct gg_memory m[GG_N_MEMORIES],
                                const struct gg_memory_params *p,
                                struct gguf_ctx *c, struct gguf_error *err);
void gg_memory_fini(struct gg_memory m[GG_N_MEMORIES]);

/* Table that layer il follows; NULL: each sequence has one row. */
struct gg_cells *gg_memory_layer_table(const struct gg_memory *m, uint32_t il);

/* Name a tensor and mark it as an input of a graph. Then: copy src to an
 * input; nothing happens if no node of the graph reads it. */
struct gguf_tensor *gg_run_mark_input(struct gguf_tensor *t, const char *name);
enum gguf_status gg_run_set_input(struct gguf_tensor *t, const void *src,
                                  struct gguf_error *err);

/* ---- memory_rows.c ---- */

/* Number of tensors in m->t (NULL entries count); bytes of a row of tensor i;
 * table that tensor i follows. */
size_t gg_memory_n_tensors(const struct gg_memory *m);
uint64_t gg_memory_row_size(const struct gg_memory *m, size_t i);
struct gg_cells *gg_memory_tensor_table(const struct gg_memory *m, size_t i);

/* Call fn for the rows that a sequence has in tensor i, in the order of its
 * cells. Adjacent rows make one call, with the offset of the first and the
 * bytes of all. A tensor without a table has one row, if the sequence has any
 * token. The first failure ends the calls. To restore a sequence, take its
 * cells first, then write rows in the same order. */
typedef enum gguf_status gg_memory_rows_fn(void *user, struct gguf_tensor *t,
                                           uint64_t off, uint64_t size,
                                           struct gguf_error *err);
enum gguf_status gg_memory_visit_rows(const struct gg_memory *m, size_t i,
                                      uint32_t seq, gg_memory_rows_fn *fn,
                                      void *user, struct gguf_error *err);

/* Clear n rows of all tensors that follow a table; NULL: of those with one row
 * for each sequence. Rows without a token are masked where others are read,
 * but 0 times NaN is NaN. Fails as clearing tensors does. */
enum gguf_status gg_memory_zero_rows(struct gg_memory *m,
                                     const struct gg_cells *table,
                                     uint32_t row, uint32_t n,
                                     struct gguf_error *err);

/* Copy n rows of the same tensors. Ranges may overlap. Fails as transfers do.
 */
enum gguf_status gg_memory_copy_rows(struct gg_memory *m,
                                     const struct gg_cells *table,
                                     uint32_t from, uint32_t to, uint32_t n,
                                     struct gguf_error *err);

#endif
