/* SPDX-License-Identifier: MIT */
/* layers.h - two models compared inside, activation by activation
 *
 * A model (a quantized file, say) and a base (the file that it was made from,
 * or the same file on another backend) compute the same tokens of a text. Of
 * each activation that has a name in the graphs of both, q is the model's
 * vector of a token and b the base's, and over all tokens of the text's chunks
 *
 *     error   = sqrt(sum |q - b|^2 / sum |b|^2)
 *     cosine  = sum q.b / sqrt(sum |q|^2 sum |b|^2)
 *     worst   = the largest |q - b| / |b| of a token whose |b| is not 0
 *
 * Both errors are of everything before the activation, too: what a layer adds
 * is seen from what it was given. Activations are
 *
 *     token_embd            the tokens' embeddings
 *     blk.3.attn_q          what is made with blk.3.attn_q.weight, bias and
 *                           adapters included; so for every matrix and norm
 *     blk.3.attn_heads      what attention took of values, of all heads
 *     blk.3.ffn_output      what a part of several matrices gave (experts)
 *     blk.3.output          the stream after the layer: the next one's input
 *     output_norm, logits
 *
 * as far as an architecture has them. Where experts were chosen otherwise, the
 * rows of these are compared all the same, by the order of choice.
 *
 * The models go side by side, node by node: nothing is stored but a few sums
 * for each token that is computed at the time. Sums are in double precision,
 * first over the elements of a token, in order, then over the tokens in the
 * order of the text: digits depend neither on threads nor on n_ubatch.
 *
 *     gguf_layers_run(&l, model, base, tokens, n, &scan, &err);
 *     for (size_t i = 0; i < gguf_layers_n_entries(l); i++)
 *         show(gguf_layers_entry(l, i));
 *     gguf_layers_destroy(l);
 */
#ifndef GGUF_LAYERS_H
#define GGUF_LAYERS_H

#include <gguf/eval.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_layers;

/* An activation. Made by the library: it may grow at its end. */
struct gguf_layers_entry {
    const char *name; /* "blk.3.attn_q"; */
    const char *what; /* what it is in its layer, "attn_q"; else name */
    int32_t layer;    /* from 0; -1: of none */
    unsigned use;     /* of the same name in a pass, from 0: layers that are
                       * gone through again have more */
    uint64_t n_tokens;
    double error;  /* 0 where both are 0; infinite where b alone is */
    double cosine; /* 1 where both are 0; NaN where one is */
    double rms;    /* sqrt(mean b^2) over all elements */
    double worst;  /* that of this token: */
    size_t worst_chunk;
    uint32_t worst_pos;
};

/* Compare what two sessions compute of n tokens, which are cut into chunks as
 * by gguf_scan_run; all tokens of a chunk count, and one chunk is computed at
 * a time. Of params, first and max_stored mean nothing. The
 * sessions, each with backends of its own, are cleared; their callbacks for
 * graphs and nodes are not called but for logits. GGUF_E_INVALID (params, the
 * text, other vocabularies, sessions of another n_ubatch, one session twice),
 * GGUF_E_MISMATCH (an activation of another size, or none that both have),
 * GGUF_E_NONFINITE (an activation is NaN or infinite: names the model, chunk,
 * position, layer, operation and tensor), GGUF_E_UNSUPPORTED (a model of an
 * encoder and a decoder), GGUF_E_CANCELLED, GGUF_E_NOMEM, and the statuses of
 * sessions. Since: 0.1 */
GGUF_API enum gguf_status
gguf_layers_run(struct gguf_layers **out, struct gguf_session *model,
                struct gguf_session *base, const gguf_token *token, size_t n,
                const struct gguf_scan_params *params,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_layers_destroy(struct gguf_layers *l);

/* Activations in the order in which they are computed; NULL if i is out of
 * range. Owned by l. Since: 0.1 */
GGUF_API size_t gguf_layers_n_entries(const struct gguf_layers *l);
GGUF_API const struct gguf_layers_entry *
gguf_layers_entry(const struct gguf_layers *l, size_t i);

#ifdef __cplusplus
}
#endif
#endif
