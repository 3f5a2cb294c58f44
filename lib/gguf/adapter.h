/* SPDX-License-Identifier: MIT */
/* adapter.h - adapters: small files that change what a model computes
 *
 * A LoRA adapter adds a product of two thin matrices to some of the weights: y
 * = W x becomes y = W x + scale * alpha / rank * B (A x), whatever type W has,
 * which stays as it is. The weights are matrices of layers, experts, the
 * output, classifiers and dense layers after pooling, and what is looked up for
 * tokens. An output that is the embeddings again changes with them, unless the
 * adapter has a pair of its own for output.weight: that one changes the product
 * alone, and not the embeddings.
 *
 *     gguf_file_open(&file, "lora.gguf", NULL, &err);
 *     gguf_adapter_create(&adapter, model, file, NULL, &err);
 *     gguf_file_close(file);
 *     struct gguf_adapter_use use[] = { { adapter, 1 } };
 *     gguf_session_set_adapters(session, use, 1, &err);      (session.h)
 *
 * The file's form is that of llama.cpp: general.type is "adapter", adapter.type
 * is "lora", general.architecture the model's, adapter.lora.alpha a number
 * (without it, or with 0, the factor is the scale alone); each weight NAME that
 * changes has two tensors of any type that decodes, NAME.lora_a [columns, rank]
 * and NAME.lora_b [rank, rows], of experts with a third dimension. Of
 * token_embd.weight these are [rank, rows] and [rank, columns].
 *
 * A control vector (repeng; llama.cpp's cvector-generator) adds, after a layer,
 * scale times a direction to what flows from layer to layer. Its file has
 * general.architecture "controlvector", controlvector.model_hint, which must be
 * the model's architecture where it is there, controlvector.layer_count, and
 * tensors direction.N of n_embd numbers for layers N from 1 on, counted from 0.
 * It is opened and used like the other kind.
 */
#ifndef GGUF_ADAPTER_H
#define GGUF_ADAPTER_H

#include <gguf/model_base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_adapter;

struct gguf_adapter_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    uint32_t first_layer,
        last_layer; /* of a control vector: only directions of
                                       * these count; last 0: all */
};
#define GGUF_ADAPTER_PARAMS_INIT GGUF_INIT(struct gguf_adapter_params)

/* Read an adapter and check it against the model, which is kept. Its numbers
 * are decoded to floats in memory of its own (size in the info below): the file
 * may be closed. params may be NULL.
 *
 * GGUF_E_MISMATCH     the file is no adapter, or one for another architecture
 * GGUF_E_NOTFOUND     a key that is missing
 * GGUF_E_TYPE         a key of the wrong type
 * GGUF_E_HPARAM       alpha is not finite, or not from -1e9 to 1e9
 * GGUF_E_TENSOR       names the tensor, its shape and the weight's: a half
 *                     without the other, two of different ranks, one for a
 *                     weight that the model does not have or of another shape,
 *                     one that is no half of a pair, nor a vector
 *                     NAME_norm.weight beside some; of a control vector one
 *                     of a layer that there is not, or of another width
 * GGUF_E_NONFINITE    names the tensor and the element
 * GGUF_E_UNSUPPORTED  a type that is not decoded; an adapter that counts from a
 *                     sequence of tokens on (adapter.alora.invocation_tokens)
 * GGUF_E_INVALID (params), GGUF_E_NOMEM
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_adapter_create(struct gguf_adapter **out, const struct gguf_model *model,
                    const struct gguf_file *file,
                    const struct gguf_adapter_params *params,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. No session may use it any more. Since: 0.1 */
GGUF_API void gguf_adapter_destroy(struct gguf_adapter *adapter);

/* Move each low-rank pair, once, to the memory of the weight that it changes:
 * after gguf_model_place_weights() (load.h), so that no graph copies pairs to a
 * device. No session may use the adapter then. Directions stay in host memory.
 * All or nothing. GGUF_E_NOMEM, GGUF_E_LIMIT, what devices return. Since: 0.1
 * */
GGUF_API enum gguf_status
gguf_adapter_place_weights(struct gguf_adapter *adapter,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Made by the library: it may grow at its end. */
struct gguf_adapter_info {
    size_t n_weights; /* that it changes */
    int64_t rank_min, rank_max;
    double alpha;        /* 0: none */
    uint64_t n_params;   /* elements of its tensors */
    uint64_t size;       /* bytes of memory for them */
    size_t n_directions; /* layers after which something is added: of a control
                          * vector alone */
    size_t n_left_out; /* vectors NAME_norm.weight beside pairs, which have no
                        * effect, as in llama.cpp */
};
/* Owned by the adapter, which does not change: any thread. Since: 0.1 */
GGUF_API const struct gguf_adapter_info *
gguf_adapter_info(const struct gguf_adapter *adapter);

/* An adapter and how much of it. It never grows. */
struct gguf_adapter_use {
    const struct gguf_adapter *adapter;
    float scale; /* finite; 0: as if it were not there; may be negative */
};

#ifdef __cplusplus
}
#endif
#endif
