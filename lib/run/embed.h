/* SPDX-License-Identifier: MIT */
/* embed.h - one pooled vector for the tokens of each sequence of a batch
 *
 * The states of micro-batches are pooled as they come, and not kept. Layers
 * behind the pooled state (model/block/pooling.c) are a graph of their own,
 * computed when a vector is asked for. */
#ifndef GG_RUN_EMBED_H
#define GG_RUN_EMBED_H

#include "gguf/sched.h"
#include "model/build.h"

struct gg_embed {
    const struct gguf_allocator *allocator;
    const struct gguf_model *model;
    enum gguf_pooling kind; /* never GGUF_POOLING_MODEL */
    uint32_t n_seq;
    size_t n_embd;
    double *sum;     /* [n_seq][n_embd], sums of states; NULL: no pooling */
    uint32_t *n_tok; /* [n_seq], states in each sum */
    float *row;      /* [n_embd] */
    bool done;       /* the batch is complete */

    /* the graph of the layers behind the pooled state, for n_wide equal
     * columns */
    bool has_head;
    const struct gg_model_adapters *added; /* adapters of the session */
    struct gguf_ctx *ctx; /* context for the graph; owned by adapters.c */
    struct gguf_sched *sched;
    struct gguf_graph *graph; /* NULL: not planned */
    struct gguf_tensor *in, *out;
    float *result; /* one column of out */
    uint32_t n_wide;
};

/* Begin with no graph. GGUF_POOLING_MODEL is the file's kind. GGUF_E_NOMEM.
 * Also fails as gg_model_check_pooled() does. gg_embed_fini() may follow a
 * failure. */
enum gguf_status gg_embed_init(struct gg_embed *e,
                               const struct gguf_model *model,
                               enum gguf_pooling kind, uint32_t n_seq,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);
/* Plan the graph, if the model has one, on a scheduler made with p, which
 * shares the memory of another one. Then: plan it again for the current
 * adapters. Both take all memory for computing it. */
enum gguf_status gg_embed_reserve(struct gg_embed *e,
                                  const struct gguf_sched_params *p,
                                  uint32_t n_wide, struct gguf_error *err);
enum gguf_status gg_embed_plan(struct gg_embed *e, struct gguf_error *err);
/* Drop the graph, before adapters change. */
enum gguf_status gg_embed_drop_graph(struct gg_embed *e,
                                     struct gguf_error *err);
void gg_embed_fini(struct gg_embed *e);

/* Begin a new batch: no sequence has a vector. */
void gg_embed_clear(struct gg_embed *e);
/* Add the state x of a token, in the order of its sequence's tokens. */
void gg_embed_add(struct gg_embed *e, uint32_t seq, const float *x);

#endif
