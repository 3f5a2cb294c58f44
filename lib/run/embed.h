/* SPDX-License-Identifier: MIT */
/* embed.h - one vector for the tokens of each sequence of a batch
 *
 * States are pooled as micro-batches give them, and not kept. What a model does
 * with the pooled state (model/block/pooling.c) is a graph of its own, computed
 * when a vector is asked for.
 */
#ifndef GG_RUN_EMBED_H
#define GG_RUN_EMBED_H

#include "gguf/sched.h"
#include "model/build.h"

struct gg_embed {
    const struct gguf_allocator *allocator;
    const struct gguf_model *model;
    enum gguf_pooling kind; /* never MODEL */
    uint32_t n_seq;
    size_t n_embd;
    double *sum;     /* [n_seq][n_embd] of the states of tokens; NULL: NONE */
    uint32_t *n_tok; /* [n_seq] how many */
    float *row;      /* [n_embd] */
    bool done;       /* the batch came to its end */

    /* the graph of what follows, if anything does, for n_wide equal columns */
    bool has_head;
    const struct gg_model_adapters *added; /* the session's adapters */
    struct gguf_ctx *ctx;                  /* theirs, too (adapters.c) */
    struct gguf_sched *sched;
    struct gguf_graph *graph; /* NULL: to be planned */
    struct gguf_tensor *in, *out;
    float *result; /* a column of out */
    uint32_t n_wide;
};

/* Fails as gg_model_check_pooled, and GGUF_E_NOMEM; fini is fine after it.
 * MODEL is the file's kind. */
enum gguf_status gg_embed_init(struct gg_embed *e,
                               const struct gguf_model *model,
                               enum gguf_pooling kind, uint32_t n_seq,
                               const struct gguf_allocator *a,
                               struct gguf_error *err);
/* Plan the graph, if there is one, on a scheduler made of p, which shares
 * another one's memory; and, once that was done, plan it again, as adapters
 * make it. All that computing it takes is taken. */
enum gguf_status gg_embed_reserve(struct gg_embed *e,
                                  const struct gguf_sched_params *p,
                                  uint32_t n_wide, struct gguf_error *err);
enum gguf_status gg_embed_plan(struct gg_embed *e, struct gguf_error *err);
/* Adapters change: the graph is not known any more. */
enum gguf_status gg_embed_drop_graph(struct gg_embed *e,
                                     struct gguf_error *err);
void gg_embed_fini(struct gg_embed *e);

/* There are none of any sequence. */
void gg_embed_clear(struct gg_embed *e);
/* One more token's state x, in the order of a sequence's tokens. */
void gg_embed_add(struct gg_embed *e, uint32_t seq, const float *x);

#endif
