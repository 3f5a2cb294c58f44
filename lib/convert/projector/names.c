/* SPDX-License-Identifier: MIT */
/* names.c - lists of tensor names that projectors of several families have */
#include "config.h"
#include "convert/projector/projector_row.h"

#define LAYER "encoder.layers.%."
const struct gg_convert_name gg_projector_names_clip[] = {
    N("embeddings.class_embedding", "v.class_embd"),
    N("embeddings.patch_embedding", "v.patch_embd"),
    N("embeddings.position_embedding", "v.position_embd"),
    N("pre_layrnorm", "v.pre_ln"),
    N("post_layernorm", "v.post_ln"),
    N(LAYER "layer_norm1", V "ln1"),
    N(LAYER "layer_norm2", V "ln2"),
    N(LAYER "self_attn.q_proj", V "attn_q"),
    N(LAYER "self_attn.k_proj", V "attn_k"),
    N(LAYER "self_attn.v_proj", V "attn_v"),
    N(LAYER "self_attn.out_proj", V "attn_out"),
    N(LAYER "self_attn.projection_layer", V "attn_out"),
    N(LAYER "mlp.fc1", V "ffn_up"),
    N(LAYER "mlp.fc2", V "ffn_down"),
    END_NAMES,
};
#undef LAYER

#define LAYER "layers.%."
const struct gg_convert_name gg_projector_names_whisper[] = {
    N("conv1.weight", "a.conv1d.1.weight"),
    N("conv2.weight", "a.conv1d.2.weight"),
    N_AXES("conv1.bias", "a.conv1d.1.bias", "x > x, 1"),
    N_AXES("conv2.bias", "a.conv1d.2.bias", "x > x, 1"),
    N("embed_positions", "a.position_embd"),
    N(LAYER "self_attn.q_proj", A "attn_q"),
    N(LAYER "self_attn.k_proj", A "attn_k"),
    N(LAYER "self_attn.v_proj", A "attn_v"),
    N(LAYER "self_attn.out_proj", A "attn_out"),
    N(LAYER "self_attn_layer_norm", A "ln1"),
    N(LAYER "final_layer_norm", A "ln2"),
    N(LAYER "fc1", A "ffn_up"),
    N(LAYER "fc2", A "ffn_down"),
    N("layer_norm", "a.post_ln"),
    N("ln_post", "a.post_ln"),
    END_NAMES,
};
#undef LAYER
