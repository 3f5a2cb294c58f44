/* hparams.h - what the metadata says about a model's shape, checked */
#ifndef GG_MODEL_HPARAMS_H
#define GG_MODEL_HPARAMS_H

#include "base/error.h"
#include "gguf/file.h"
#include "gguf/op.h"

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
};

/* Read and check the keys that begin with prefix ("llama"). n_tokens is the
 * size of the vocabulary, 0 if the file has none. hp->layer comes from
 * allocator and is the caller's to free, also after a failure. hp is zeroed
 * by the caller. GGUF_E_HPARAM, GGUF_E_NOTFOUND, GGUF_E_TYPE,
 * GGUF_E_UNSUPPORTED, GGUF_E_VOCAB, GGUF_E_NOMEM. */
enum gguf_status gg_hparams_load(struct gg_hparams *hp,
                                 const struct gguf_file *file,
                                 const char *prefix, size_t n_tokens,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err);

#endif
