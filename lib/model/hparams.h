/* hparams.h - what the metadata says about a model's shape, checked */
#ifndef GG_MODEL_HPARAMS_H
#define GG_MODEL_HPARAMS_H

#include "base/error.h"
#include "file/check.h"
#include "gguf/op.h"
#include "model/arch.h"
#include "data/source.h"

/* Numbers that differ between layers. */
struct gg_layer_hp {
    uint32_t n_head, n_head_kv; /* n_head is a multiple of n_head_kv */
    uint32_t n_ff;
};

struct gg_hparams {
    uint32_t n_layer, n_embd, n_vocab, n_ctx_train;
    uint32_t dim_k, dim_v;     /* elements of a key and of a value, per head */
    float norm_eps;
    struct gguf_rope rope;     /* kind is the architecture's */
    struct gg_layer_hp *layer; /* n_layer of them */

    /* Mixtures of experts: of how many each token takes n_expert_used; the
     * first n_dense layers have none; n_shared of them every token takes. */
    uint32_t n_expert, n_expert_used, n_dense, n_shared;
    uint32_t n_ff_expert, n_ff_shared; /* of one, of all shared ones */
    uint32_t rank_q, rank_kv;          /* latent attention; 0: not so */
};

/* Read and check the keys of an architecture. n_tokens is the size of the
 * vocabulary, 0 if the file has none. hp->layer comes from allocator and is
 * the caller's to free, also after a failure. hp is zeroed by the caller.
 * GGUF_E_HPARAM, GGUF_E_NOTFOUND, GGUF_E_TYPE, GGUF_E_UNSUPPORTED,
 * GGUF_E_VOCAB, GGUF_E_NOMEM.
 *
 * With check, every fault is a finding, and no failure: what is missing or
 * wrong is 0 then, or its default, and hp->n_layer as the caller set it. What
 * is well formed and not supported is no fault. The allocator is that of
 * check. GGUF_E_NOMEM, GGUF_E_CANCELLED. */
enum gguf_status gg_hparams_load(struct gg_hparams *hp,
                                 const struct gg_source *src,
                                 const struct gg_arch *arch, size_t n_tokens,
                                 const struct gguf_allocator *allocator,
                                 const struct gg_checker *check,
                                 struct gguf_error *err);

#endif
