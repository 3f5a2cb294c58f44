/* memory.h - what a session keeps of the tokens that it has seen
 *
 * A kind of memory for each kind of mixer: keys and values of every token
 * (keys.c), states that tokens move (states.c). Layers map to kinds
 * (model/build.h), one layer may have several. A kind describes its tensors,
 * gives a graph its inputs, fills them for a micro-batch, and forgets; which
 * cells tokens are in (cells.h) is the same for all.
 */
#ifndef GG_RUN_MEMORY_H
#define GG_RUN_MEMORY_H

#include "model/build.h"
#include "run/types.h"
#include "run/ubatch.h"

enum { GG_MEMORY_TENSORS = 3 }; /* of a layer, at most */

struct gg_memory {
    const struct gg_memory_kind *kind; /* NULL: the model has none of this
                                        * kind */
    const struct gguf_model *model;
    const struct gguf_allocator *allocator;
    uint32_t n_ctx, n_streams;
    struct gg_run_types types;
    bool kept;              /* else of the pass alone */
    struct gguf_tensor **t; /* GG_MEMORY_TENSORS for each layer, the first of
                             * all layers first; NULL where a layer has another
                             * kind */
    struct gguf_tensor *in[3 + GG_N_SIGHTS]; /* inputs of the last graph */
    float *row;                              /* of a mask */
    int32_t *ids;                            /* 0, 1, ... n_streams - 1 */
};

struct gg_memory_kind {
    enum gg_model_memory_kinds id;
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
    enum gguf_status (*fill)(struct gg_memory *m,
                             const struct gg_run_ubatch *u,
                             struct gguf_error *err);
    /* Can it forget the tokens at positions [begin, end) of a sequence and
     * keep the others? NULL where it keeps what was encoded. */
    bool (*can_forget)(const struct gg_run_stream *s, int32_t begin,
                       int32_t end);
    /* Forget what n cells of a sequence hold, or all of it if that is all.
     * Fails as clearing tensors does. */
    enum gguf_status (*forget)(struct gg_memory *m, uint32_t seq,
                               uint32_t cell, uint32_t n, bool all,
                               struct gguf_error *err);
    bool encoded; /* it keeps what was encoded, in cells of that */
};

extern const struct gg_memory_kind gg_memory_keys, gg_memory_states,
    gg_memory_cross;

enum { GG_N_MEMORIES = 3 };

/* memory.c. A memory of each kind that the model has, described in ctx, which
 * has room for GG_MEMORY_TENSORS a layer and kind. GGUF_E_NOMEM. */
enum gguf_status gg_memory_init(struct gg_memory m[GG_N_MEMORIES],
                                const struct gguf_model *model, uint32_t n_ctx,
                                uint32_t n_streams, uint32_t n_ubatch,
                                const struct gg_run_types *types,
                                const struct gguf_allocator *a,
                                struct gguf_ctx *c, struct gguf_error *err);
void gg_memory_fini(struct gg_memory m[GG_N_MEMORIES]);

/* An input of a graph, and what it is filled with; nothing, if no node of the
 * graph reads it. */
struct gguf_tensor *gg_run_input(struct gguf_tensor *t, const char *name);
enum gguf_status gg_run_input_set(struct gguf_tensor *t, const void *src,
                                  struct gguf_error *err);

#endif
