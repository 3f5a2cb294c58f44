/* SPDX-License-Identifier: MIT */
/* falcon.c - classes of Falcon */
#include "config.h"
#include "convert/class_row.h"

/* Each key's head, with the queries that share it before it: all queries, all
 * keys, all values. */
#define FALCON_KV "(num_kv_heads|n_head_kv|1)"
#define FALCON_H  "(num_attention_heads|n_head)"
#define FALCON(SLICE)                                                         \
    "k=" FALCON_KV " n=(" FALCON_H "/" FALCON_KV "+2)[" SLICE                 \
    "] d, * > k n d, *"

static const struct gg_convert_name falcon_names[] = {
    N("word_embeddings", "token_embd"),
    N("ln_f", "output_norm"),
    N("lm_head", "output"),
    N("h.%.input_layernorm", B "attn_norm"),
    N("h.%.ln_mlp", B "attn_norm"),
    N("h.%.ln_attn", B "attn_norm_2"),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           FALCON(FALCON_H "/" FALCON_KV "@0")),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           FALCON("1@" FALCON_H "/" FALCON_KV)),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           FALCON("1@" FALCON_H "/" FALCON_KV "+1")),
    N("h.%.self_attention.dense", B "attn_output"),
    N("h.%.mlp.dense_h_to_4h", B "ffn_up"),
    N("h.%.mlp.dense_4h_to_h", B "ffn_down"),
    END_NAMES
};

/* Falcon-H1 multiplies what goes into its parts and comes out of them by
 * numbers; weights take them. in_proj is z, x, B, C and the steps. */
#define IN(N_ROWS, FIRST_ROW, NO)                                             \
    N_TIMES(LAYERS_MAMBA "in_proj", B "ssm_in",                               \
            "[" N_ROWS "@" FIRST_ROW "] x, * > x, *",                         \
            "ssm_in_multiplier|1,ssm_multipliers." NO "|1")
#define GN "mamba_n_groups*mamba_d_state"

static const struct gg_convert_name falcon_h1_names[] = {
    N(L "pre_ff_layernorm.weight", B "ffn_norm"), /* files have it so */
    N("model.final_layernorm", "output_norm"),
    N_TIMES("model.embed_tokens", "token_embd", NULL,
            "embedding_multiplier|1"),
    N_TIMES("lm_head", "output", NULL, "lm_head_multiplier|1"),
    { L "self_attn.q_proj", B "attn_q", GG_HOW_AS_IS, NULL,
      "attention_in_multiplier|1" },
    { L "self_attn.k_proj", B "attn_k", GG_HOW_AS_IS, NULL,
      "key_multiplier|1,attention_in_multiplier|1" },
    { L "self_attn.v_proj", B "attn_v", GG_HOW_AS_IS, NULL,
      "attention_in_multiplier|1" },
    { L "self_attn.o_proj", B "attn_output", GG_HOW_AS_IS, NULL,
      "attention_out_multiplier|1" },
    { L "feed_forward.gate_proj", B "ffn_gate", GG_HOW_AS_IS, NULL,
      "mlp_multipliers.0|1" },
    { L "feed_forward.down_proj", B "ffn_down", GG_HOW_AS_IS, NULL,
      "mlp_multipliers.1|1" },
    { LAYERS_MAMBA "out_proj", B "ssm_out", GG_HOW_AS_IS, NULL,
      "ssm_out_multiplier|1" },
    IN("mamba_d_ssm", "0", "0"),
    IN("mamba_d_ssm", "mamba_d_ssm", "1"),
    IN(GN, "2*mamba_d_ssm", "2"),
    IN(GN, "2*mamba_d_ssm+" GN, "3"),
    IN("", "2*mamba_d_ssm+2*" GN, "4"),
    END_NAMES
};

const struct gg_convert_arch gg_convert_family_falcon[] = {
    { .classes = "FalconForCausalLM RWForCausalLM",
      .arch = "falcon",
      .ties = true,
      .strip = "transformer.",
      .names = { falcon_names },
      .keys = ROWS(ALWAYS("context_length", U32, 2048),
                   WORD("tensor_data_layout", "jploski"),
                   U32("embedding_length", "hidden_size"),
                   OF("feed_forward_length", U32, "4*hidden_size"),
                   U32("block_count", "num_hidden_layers n_layer"),
                   OF("attention.head_count", U32, FALCON_H),
                   OF("attention.head_count_kv", U32, FALCON_KV),
                   F32("attention.layer_norm_epsilon", "layer_norm_epsilon"),
                   THETA),
      .only_keys = true },
    { .classes = "FalconH1ForCausalLM",
      .arch = "falcon-h1",
      .names = OVER_2(falcon_h1_names, gg_convert_names_hybrid),
      .keys =
          ROWS(U32("context_length", "max_position_embeddings"),
               U32("embedding_length", "hidden_size"),
               U32("feed_forward_length", "intermediate_size"),
               U32("attention.head_count", "num_attention_heads"),
               U32("block_count", "num_hidden_layers"),
               U32("ssm.conv_kernel", "mamba_d_conv"),
               U32("ssm.inner_size", "mamba_d_ssm"),
               U32("ssm.state_size", "mamba_d_state"),
               OF("ssm.time_step_rank", U32, "mamba_d_ssm/mamba_d_head"),
               U32("ssm.group_count", "mamba_n_groups"), MAMBA_EPS, FILE_TYPE,
               U32("vocab_size", "vocab_size"),
               U32("attention.head_count_kv", "num_key_value_heads"),
               U32("attention.key_length", "head_dim"),
               U32("attention.value_length", "head_dim"),
               F32("rope.freq_base", "rope_theta rope_parameters.rope_theta")),
      .only_keys = true },
    { .classes = NULL }
};
