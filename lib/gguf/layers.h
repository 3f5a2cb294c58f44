/* SPDX-License-Identifier: MIT */
/* layers.h - compare two models inside, activation by activation
 *
 * A model (a quantized file, say) and a base (the file that it was made from,
 * or the same file on another backend) compute the same tokens of a text. For
 * each activation that has a name in the graphs of both, q is the model's
 * vector of a token and b is the base's. Over all tokens of the text's chunks:
 *
 *     error   = sqrt(sum |q - b|^2 / sum |b|^2)
 *     cosine  = sum q.b / sqrt(sum |q|^2 sum |b|^2)
 *     worst   = largest |q - b| / |b| of a token whose |b| is not 0
 *
 * The errors include those of everything before the activation: compare the
 * output of a layer with its input to see the layer's part.
 *
 * Activations, if an architecture has them, are:
 *
 *     token_embd            embeddings of the tokens
 *     blk.3.attn_q          product with blk.3.attn_q.weight, with bias and
 *                           adapters; the same for every matrix and norm
 *     blk.3.attn_heads      output of attention, all heads
 *     blk.3.ffn_output      output of a part of several matrices (experts)
 *     blk.3.output          residual stream after the layer, input of the next
 *     output_norm, logits
 *
 * Rows of experts are compared in the order of selection, even if the models
 * selected different experts.
 *
 * The models are computed side by side, node by node. Only a few sums are
 * stored for each token of the current chunk. Sums are in double precision,
 * first over the elements of a token, then over the tokens, in order: digits do
 * not depend on the number of threads or on n_ubatch.
 *
 *     gguf_layers_run(&l, model, base, t.id, t.n, NULL, &err);
 *     for (size_t i = 0; i < gguf_layers_n_entries(l); i++)
 *         show(gguf_layers_entry(l, i));
 *     gguf_layers_destroy(l);
 *
 * Threads: one thread at a time for each session; any thread may read results.
 */
#ifndef GGUF_LAYERS_H
#define GGUF_LAYERS_H

#include <gguf/eval.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_layers;

/* Comparison of one activation. Only the library makes it; later versions may
 * add members at its end. */
struct gguf_layers_entry {
    const char *name; /* name: "blk.3.attn_q" */
    const char *what; /* name inside of its layer: "attn_q"; else name */
    int32_t layer;    /* number of its layer, from 0; -1: outside of layers */

    /* Number of its use in a pass, from 0: a layer that a pass uses again has
     * further ones. */
    unsigned use;
    uint64_t n_tokens; /* tokens that were compared */
    double error;      /* relative error; 0: q and b are 0; infinite: only b */
    double cosine;     /* cosine; 1: q and b are 0; NaN: one of them is 0 */
    double rms;        /* sqrt(mean b^2) over all elements */
    double worst;      /* largest relative error of a token */
    size_t worst_chunk; /* chunk of that token */
    uint32_t worst_pos; /* position of that token in the chunk */
};

/* Compare the activations of two models on a text.
 *
 * out      Receives the results. NULL after a failure.
 * model    Session of the model. It is cleared.
 * base     Session of the base, with a backend of its own. It is cleared.
 * token    Tokens of the text, made with GGUF_TOKENIZE_ADD_SPECIAL.
 * n        Number of tokens.
 * params   Chunks, threads and progress, as for gguf_scan_run(). All tokens of
 *          a chunk count: rows_from, first and max_stored are ignored. NULL:
 *          the defaults.
 *
 * Destroy *out with gguf_layers_destroy(). One chunk is computed at a time.
 * on_graph of the sessions and callbacks for nodes are called for logits only.
 *
 * GGUF_E_INVALID       A member of params is out of range, the text is too
 *                      short, the vocabularies or the n_ubatch of the sessions
 *                      differ, or model and base are one session.
 * GGUF_E_MISMATCH      An activation has another size, or the models have none
 *                      in common.
 * GGUF_E_NONFINITE     An activation is NaN or infinite. The message has the
 *                      model, chunk, position, layer, operation and tensor.
 * GGUF_E_UNSUPPORTED   A model has an encoder and a decoder.
 * GGUF_E_CANCELLED     The progress callback returned true.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Fails otherwise as gguf_session_decode() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_layers_run(struct gguf_layers **out, struct gguf_session *model,
                struct gguf_session *base, const gguf_token *token, size_t n,
                const struct gguf_scan_params *params,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Free the results. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_layers_destroy(struct gguf_layers *l);

/* Number of activations. Since: 0.1 */
GGUF_API size_t gguf_layers_n_entries(const struct gguf_layers *l);

/* Activation i, in the order of computation; NULL if i is out of range. Owned
 * by l. Since: 0.1 */
GGUF_API const struct gguf_layers_entry *
gguf_layers_entry(const struct gguf_layers *l, size_t i);

#ifdef __cplusplus
}
#endif
#endif
