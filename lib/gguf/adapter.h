/* SPDX-License-Identifier: MIT */
/* adapter.h - adapters: small files that change a model
 *
 * An adapter belongs to one model, and any number of sessions may use it.
 *
 *     gguf_file_open(&file, "lora.gguf", NULL, &err);
 *     gguf_adapter_create(&adapter, model, file, NULL, &err);
 *     gguf_file_close(file);
 *     struct gguf_adapter_use use[] = { { adapter, 1 } };
 *     gguf_session_set_adapters(session, use, 1, &err);      (session.h)
 *     ...
 *     gguf_session_destroy(session);
 *     gguf_adapter_destroy(adapter);
 *
 * The model must outlive the adapter, and the adapter must outlive its use by
 * sessions. Its numbers are copied, so that the file may be closed.
 *
 * There are two kinds. Both are opened and used in the same way.
 *
 * A LoRA adapter adds a product of two thin matrices to some of the weights: y
 * = W x becomes y = W x + scale * alpha / rank * B (A x). W keeps its type and
 * its bytes. W may be a matrix of a layer, of experts, of the output, of a
 * classifier, a dense layer after pooling, or a table of embeddings. If the
 * output matrix is the table of embeddings, a pair for the embeddings changes
 * both, unless the adapter has a pair for output.weight: that pair then changes
 * the output alone.
 *
 * The file of a LoRA adapter has llama.cpp's form:
 *
 *     general.type            "adapter"
 *     adapter.type            "lora"
 *     general.architecture    the model's
 *     adapter.lora.alpha      a number; without it, or with 0, the factor is
 *                             the scale alone
 *     NAME.lora_a             tensor [columns, rank], for each weight NAME that
 *                             changes; of token_embd.weight [rank, rows]
 *     NAME.lora_b             tensor [rank, rows]; of token_embd.weight
 *                             [rank, columns]
 *
 * Tensors may have any type that decodes, and a third dimension for experts.
 *
 * A control vector (repeng; llama.cpp's cvector-generator) adds scale times a
 * direction to the residual stream after a layer. Its file has:
 *
 *     general.architecture         "controlvector"
 *     controlvector.model_hint     the model's architecture; optional
 *     controlvector.layer_count    a number
 *     direction.N                  tensor of n_embd numbers for layer N, 1 or
 *                                  more, counted from 0
 *
 * Threads: an adapter does not change, except by gguf_adapter_place_weights().
 * Any thread may call a function that takes a const adapter.
 */
#ifndef GGUF_ADAPTER_H
#define GGUF_ADAPTER_H

#include <gguf/model_base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_adapter;

/* Options of gguf_adapter_create(). */
struct gguf_adapter_params {
    size_t struct_size;

    /* Allocator of the adapter. It must outlive the adapter. NULL: malloc. */
    const struct gguf_allocator *allocator;

    /* First and last layer at which a control vector has an effect, counted
     * from 0. last_layer 0: up to the last layer. LoRA adapters ignore both. */
    uint32_t first_layer, last_layer;
};
#define GGUF_ADAPTER_PARAMS_INIT GGUF_INIT(struct gguf_adapter_params)

/* Read an adapter and check it against a model.
 *
 * out      Receives the adapter. NULL after a failure.
 * model    Model that the adapter is for. It must outlive the adapter.
 * file     Open file of the adapter. It may be closed afterwards.
 * params   Options. NULL: the defaults.
 *
 * Destroy *out with gguf_adapter_destroy(). Its tensors are decoded to floats
 * in memory; gguf_adapter_info() has the size.
 *
 * GGUF_E_MISMATCH      The file is not an adapter, or is one for another
 *                      architecture.
 * GGUF_E_NOTFOUND      A required key is missing.
 * GGUF_E_TYPE          A key has the wrong type.
 * GGUF_E_HPARAM        alpha is not finite, or not between -1e9 and 1e9.
 * GGUF_E_TENSOR        One half of a pair is missing, the halves have different
 *                      ranks, the model lacks the weight or has it in another
 *                      shape, or a tensor is neither half of a pair nor a
 *                      vector NAME_norm.weight beside a pair. A direction is
 *                      for a layer that the model lacks, or has another width.
 *                      The message has the tensor, its shape and the weight's.
 * GGUF_E_NONFINITE     A tensor has a NaN or an infinity. The message has the
 *                      tensor and the element.
 * GGUF_E_UNSUPPORTED   A type cannot be decoded; or the adapter is to count
 *                      from a sequence of tokens on
 *                      (adapter.alora.invocation_tokens).
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_adapter_create(struct gguf_adapter **out, const struct gguf_model *model,
                    const struct gguf_file *file,
                    const struct gguf_adapter_params *params,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Free an adapter. No session may use it any more. NULL is allowed.
 * Since: 0.1 */
GGUF_API void gguf_adapter_destroy(struct gguf_adapter *adapter);

/* Move each low-rank pair to the memory of the weight that it changes.
 *
 * Call it after gguf_model_place_weights() (load.h) and before a session uses
 * the adapter, so that no graph copies pairs to a device. Directions of a
 * control vector stay in host memory. After a failure nothing has moved.
 *
 * GGUF_E_NOMEM   An allocation failed.
 * GGUF_E_LIMIT   A device has no buffers as large as a pair.
 *
 * Devices may return further statuses. One thread. Since: 0.1 */
GGUF_API enum gguf_status
gguf_adapter_place_weights(struct gguf_adapter *adapter,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Facts about an adapter. Only the library makes it; later versions may add
 * members at its end. */
struct gguf_adapter_info {
    size_t n_weights;           /* weights of the model that it changes */
    int64_t rank_min, rank_max; /* smallest and largest rank of its pairs */
    double alpha;               /* adapter.lora.alpha; 0: none */
    uint64_t n_params;          /* elements of its tensors */
    uint64_t size;              /* bytes of its tensors in memory */
    size_t n_directions;        /* layers at which a control vector adds */

    /* Vectors NAME_norm.weight beside pairs. They have no effect, as in
     * llama.cpp. */
    size_t n_left_out;
};

/* Facts about the adapter. Owned by the adapter. Any thread. Since: 0.1 */
GGUF_API const struct gguf_adapter_info *
gguf_adapter_info(const struct gguf_adapter *adapter);

/* An adapter and its strength in a session. Later versions add no members to
 * this struct. */
struct gguf_adapter_use {
    const struct gguf_adapter *adapter; /* the adapter */

    /* Factor of everything that it adds: finite, negative too. With 0 results
     * are the bits of a session without it. */
    float scale;
};

#ifdef __cplusplus
}
#endif
#endif
