/* SPDX-License-Identifier: MIT */
/* granite.c - classes of Granite */
#include "config.h"
#include "convert/class_row.h"

#define GRANITE                                                               \
    F32("attention.scale", "attention_multiplier"),                           \
        F32("embedding_scale", "embedding_multiplier"),                       \
        F32("residual_scale", "residual_multiplier"),                         \
        F32("logit_scale", "logits_scaling")

static const struct gg_convert_name granitemoe_names[] = {
    N(L "block_sparse_moe.router.layer", B "ffn_gate_inp"),
    N_HOW(L "block_sparse_moe.input_linear", B "ffn_gate_exps", HALF_1),
    N_HOW(L "block_sparse_moe.input_linear", B "ffn_up_exps", HALF_2),
    N(L "block_sparse_moe.output_linear", B "ffn_down_exps"),
    N_HOW(L "shared_mlp.input_linear", B "ffn_gate_shexp", HALF_1),
    N_HOW(L "shared_mlp.input_linear", B "ffn_up_shexp", HALF_2),
    N(L "shared_mlp.output_linear", B "ffn_down_shexp"),
    END_NAMES
};

/* Without experts what they share is all. */
static const struct gg_convert_name granite_dense_names[] = {
    N_HOW(L "shared_mlp.input_linear", B "ffn_gate", HALF_1),
    N_HOW(L "shared_mlp.input_linear", B "ffn_up", HALF_2),
    N(L "shared_mlp.output_linear", B "ffn_down"), END_NAMES
};

static const struct gg_convert_name bamba_names[] = {
    N("model.final_layernorm", "output_norm"), END_NAMES
};

/* Which layers have attention. */
#define ATTENTION                                                             \
    "(layer_types:attention|(i%attn_layer_period=attn_layer_offset)|"         \
    "has(attn_layer_indices))"
#define GRANITE_HYBRID                                                        \
    EACH("attention.head_count_kv", U32, ATTENTION "*num_key_value_heads"),   \
        U32("vocab_size", "vocab_size"),                                      \
        OF("rope.dimension_count", U32, "attn_rotary_emb|" HEAD), GRANITE,    \
        U32("expert_shared_feed_forward_length", "shared_intermediate_size"), \
        U32("ssm.conv_kernel", "mamba_d_conv"),                               \
        U32("ssm.state_size", "mamba_d_state"),                               \
        U32("ssm.group_count", "mamba_n_groups"),                             \
        OF("ssm.inner_size", U32, "mamba_expand*hidden_size"),                \
        U32("ssm.time_step_rank", "mamba_n_heads")

const struct gg_convert_arch gg_convert_family_granite[] = {
    { .classes = "GraniteForCausalLM",
      .arch = "granite",
      .names = LLAMA,
      .keys = ROWS(GRANITE),
      .last = OF_SIZE,
      TURNED },
    { .classes = "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM",
      .arch = "granitemoe",
      .names = OVER(granitemoe_names),
      .keys = ROWS(GRANITE, U32("expert_shared_feed_forward_length",
                                "shared_intermediate_size")),
      TURNED },
    { .classes = "GraniteMoeHybridForCausalLM",
      .arch = "granite",
      .when = "all(layer_types:attention)*(num_local_experts|0=0)",
      .names = OVER(granite_dense_names),
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .turned = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .arch = "granitemoe",
      .when = "all(layer_types:attention)",
      .names = OVER(granitemoe_names),
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .turned = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .arch = "granitehybrid",
      .when = "num_local_experts|0=0",
      .names = { granite_dense_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20), GRANITE_HYBRID,
                   ALWAYS("rope.scaling.finetuned", BOOL, 0)),
      .turned = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .arch = "granitehybrid",
      .names = { granitemoe_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20), GRANITE_HYBRID,
                   ALWAYS("rope.scaling.finetuned", BOOL, 0)),
      .turned = true },
    { .classes = "BambaForCausalLM",
      .arch = "granitehybrid",
      .names = { bamba_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .turned = true },
    { .classes = NULL }
};
