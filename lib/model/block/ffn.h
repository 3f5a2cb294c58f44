/* SPDX-License-Identifier: MIT */
/* ffn.h - feed-forward parts and their activations
 *
 * Rows of architectures point at one object of each kind (arch.h). Objects that
 * several families use are declared here; those of one family stand beside its
 * rows.
 */
#ifndef GG_MODEL_BLOCK_FFN_H
#define GG_MODEL_BLOCK_FFN_H

#include "model/arch.h"
#include "model/hparam/hparams.h"

struct gg_hparams_reader;
struct gg_model_at;

struct gg_ffn_act {
    const char *text;
    /* The activation of x (a part without gate); of a gate, times up; and both
     * with parameters of the layer. NULL: the activation does not have this
     * form. */
    struct gguf_tensor *(*alone)(struct gguf_ctx *c, struct gguf_tensor *x);
    struct gguf_tensor *(*gated)(struct gguf_ctx *c, struct gguf_tensor *gate,
                                 struct gguf_tensor *up);
    struct gguf_tensor *(*of_layer)(const struct gg_model_at *at,
                                    struct gguf_tensor *x);
    struct gguf_tensor *(*gated_of_layer)(const struct gg_model_at *at,
                                          struct gguf_tensor *gate,
                                          struct gguf_tensor *up);
    /* the limit of a gate applies before the activation; false: after it */
    bool clamps_first;
    /* Returns the activation that a file names. If not NULL, it replaces all
     * members above. */
    const struct gg_ffn_act *(*of_model)(const struct gg_hparams *hp);
};
extern const struct gg_ffn_act gg_ffn_act_silu, gg_ffn_act_silu_clamped_first,
    gg_ffn_act_gelu, gg_ffn_act_relu, gg_ffn_act_relu_sqr, gg_ffn_act_oai;

struct gg_ffn {
    const char *text;
    const uint16_t *weights; /* list of weights (needs.h); NULL: none */
    /* Builds the part for normed x [n_embd, N]. */
    struct gguf_tensor *(*build)(const struct gg_model_at *at,
                                 struct gguf_tensor *x);
    /* no gate: the activation is applied to the up projection alone */
    bool ungated;
    bool fused_gate; /* the up matrix also has the rows of the gate */
    bool shifts;     /* token shift: it mixes each token with the one before */
    bool absent;     /* layers have no feed-forward part */
    /* Returns the part that a layer's tensors imply. If not NULL, it replaces
     * all members above. */
    const struct gg_ffn *(*of_layer)(const struct gg_hparams_reader *r,
                                     uint32_t il);
};
extern const struct gg_ffn gg_ffn_gated, gg_ffn_fused, gg_ffn_plain;
static inline const struct gg_ffn *gg_arch_ffn(const struct gg_arch *a)
{
    return a->ffn ? a->ffn : &gg_ffn_gated;
}

#endif
