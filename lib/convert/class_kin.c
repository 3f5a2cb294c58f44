/* SPDX-License-Identifier: MIT */
/* class_kin.c - rows of architectures that differ from Llama's in little */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name plm_names[] = {
    N(L "self_attn.kv_a_proj_with_mqa", B "attn_kv_a_mqa"),
    N(L "self_attn.kv_a_layernorm", B "attn_kv_a_norm"),
    N(L "self_attn.kv_b_proj", B "attn_kv_b"), END_NAMES
};

/* Its activation has numbers of its own in each layer. */
static const struct gg_convert_name apertus_names[] = {
    N(L "attention_layernorm", B "attn_norm"),
    N(L "feedforward_layernorm", B "ffn_norm"),
    N(L "attention.query_layernorm", B "attn_q_norm"),
    N(L "attention.key_layernorm", B "attn_k_norm"),
    N_KEY(L "mlp.act_fn.alpha_n", "/xielu.alpha_n"),
    N_KEY(L "mlp.act_fn.alpha_p", "/xielu.alpha_p"),
    N_KEY(L "mlp.act_fn.beta", "/xielu.beta"),
    N_KEY(L "mlp.act_fn.eps", "/xielu.eps"),
    END_NAMES
};

/* Layers with fewer heads of keys, with one matrix instead of attention, or
 * without. */
#define DECI_BLOCK "block_configs.i."
#define DECI_GROUP DECI_BLOCK "attention.n_heads_in_group"
#define DECI_HEADS                                                            \
    "(block_configs!?((" DECI_GROUP "|0>0)|0+(" DECI_BLOCK                    \
    "attention.replace_with_linear|0)>0)*num_attention_heads)"
#define DECI_KV                                                               \
    "(num_key_value_heads_per_layer|(block_configs!?(" DECI_GROUP "|0>0?"     \
    "(num_attention_heads//" DECI_GROUP "):0))|num_key_value_heads)"
#define DECI_FF                                                               \
    "block_configs!?(2*" DECI_BLOCK "ffn.ffn_mult|0*hidden_size/3//1+255)"    \
    "//256*256"
static const struct gg_convert_name deci_names[] = {
    N_AXES(L "self_attn.k_proj", B "attn_k",
           "k=" DECI_KV " 2 d, * > k d 2, *"),
    N(L "self_attn.linear_attn", B "attn_output"), END_NAMES
};

/* Matrices are trained so that they are rounded. Norms before the last matrix
 * of both branches, by the names of its repository and of transformers. */
static const struct gg_convert_name bitnet_names[] = {
    N_HOW(L "self_attn.q_proj", B "attn_q", TERNARY),
    N_HOW(L "self_attn.k_proj", B "attn_k", TERNARY),
    N_HOW(L "self_attn.v_proj", B "attn_v", TERNARY),
    N_HOW(L "self_attn.o_proj", B "attn_output", TERNARY),
    N_HOW(L "mlp.gate_proj", B "ffn_gate", TERNARY),
    N_HOW(L "mlp.up_proj", B "ffn_up", TERNARY),
    N_HOW(L "mlp.down_proj", B "ffn_down", TERNARY),
    N(L "self_attn.inner_attn_ln", B "attn_sub_norm"),
    N(L "self_attn.attn_sub_norm", B "attn_sub_norm"),
    N(L "mlp.ffn_layernorm", B "ffn_sub_norm"),
    N(L "mlp.ffn_sub_norm", B "ffn_sub_norm"),
    END_NAMES
};

/* Gains instead of norms, and positions that turn the other way. */
#define T "model.blocks.%."
static const struct gg_convert_name talkie_names[] = {
    N("model.embed", "token_embd"),
    N("lm_head", "output.weight"),
    N_KEY("lm_head_gain.w_g", "logit_scale"),
    N_HOW(T "attn.attn_query", B "attn_q", NEG_HALF),
    N_HOW(T "attn.attn_key", B "attn_k", NEG_HALF),
    N(T "attn.attn_value", B "attn_v"),
    N(T "attn.attn_resid", B "attn_output"),
    N_AXES(T "attn.head_gain.head_g", B "attn_q_norm.weight", "x > x, 1"),
    N(T "attn_gain.a_g", B "attn_output.scale"),
    N(T "mlp.mlp_gate", B "ffn_gate"),
    N(T "mlp.mlp_linear", B "ffn_up"),
    N(T "mlp.mlp_resid", B "ffn_down"),
    N(T "mlp_gain.a_g", B "ffn_down.scale"),
    N(T "embed_skip.a_g", B "layer_output_scale.weight"),
    END_NAMES
};

/* ---- rows ---- */

#define META WORD("tensor_data_layout", "Meta AI original pth")
#define PANGU                                                                 \
    ROWS(U32("vocab_size", "vocab_size"),                                     \
         OF("rope.dimension_count", U32, HEAD),                               \
         OF("attention.key_length", U32, HEAD),                               \
         OF("attention.value_length", U32, HEAD))

const struct gg_convert_arch gg_convert_class_kin[] = {
    /* config.json speaks of RMS norms, but they are of layers */
    { .classes = "OrionForCausalLM",
      .arch = "orion",
      .names = LLAMA,
      .keys = ROWS(FILE_TYPE, META,
                   U32("context_length",
                       "max_sequence_length max_position_embeddings "
                       "model_max_length"),
                   U32("embedding_length", "hidden_size"),
                   U32("block_count", "num_hidden_layers"),
                   U32("feed_forward_length", "intermediate_size"),
                   U32("attention.head_count", "num_attention_heads"),
                   U32("attention.head_count_kv",
                       "num_key_value_heads num_attention_heads"),
                   F32("attention.layer_norm_epsilon", "rms_norm_eps"), THETA),
      .only_keys = true },
    { .classes = "XverseForCausalLM",
      .arch = "xverse",
      .names = LLAMA,
      .keys = ROWS(META, OF("rope.dimension_count", U32, HEAD)),
      .turned = true },
    /* All tokens see each other. */
    { .classes = "DreamModel",
      .arch = "dream",
      .names = LLAMA,
      .keys = ROWS(ALWAYS("attention.causal", BOOL, 0),
                   U32("/tokenizer.ggml.mask_token_id", "mask_token_id")) },
    { .classes = "MaincoderForCausalLM",
      .arch = "maincoder",
      .names = LLAMA,
      .keys = ROWS(U32("rope.dimension_count", "head_dim")) },
    { .classes = "PanguEmbeddedForCausalLM",
      .arch = "pangu-embedded",
      .drops_copy = true,
      .names = LLAMA,
      .keys = PANGU },
    { .classes = "PLMForCausalLM",
      .arch = "plm",
      .names = OVER(plm_names),
      .keys = ROWS(
          U32("vocab_size", "vocab_size"),
          U32("attention.kv_lora_rank", "kv_lora_rank"),
          OF("attention.key_length", U32, "qk_nope_head_dim+qk_rope_head_dim"),
          U32("attention.value_length", "v_head_dim"),
          U32("rope.dimension_count", "qk_rope_head_dim")) },
    { .classes = "Jais2ForCausalLM",
      .arch = "jais2",
      .names = LLAMA,
      .keys = ROWS(OF("rope.dimension_count", U32, HEAD)) },
    /* Its layers are run several times. */
    { .classes = "NanbeigeForCausalLM",
      .arch = "nanbeige",
      .names = LLAMA,
      .keys = ROWS(OF("num_loops", U32, "num_loops|1"),
                   OF("skip_loop_final_norm", BOOL, "skip_loop_final_norm|0")),
      TURNED },
    /* Texts as vectors: all tokens see each other, and their mean is it. */
    { .classes = "LlamaBidirectionalModel",
      .arch = "llama-embed",
      .before = "model.",
      .names = LLAMA,
      .keys = ROWS(ALWAYS("attention.causal", BOOL, 0),
                   OF("pooling_type", U32, "pooling:avg=1?1")),
      TURNED },
    { .classes = "MellumForCausalLM",
      .arch = "mellum",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF,
                   OF("attention.sliding_window", U32,
                      "use_sliding_window|1?sliding_window"),
                   EACH("attention.sliding_window_pattern", BOOL,
                        "use_sliding_window|1*(sliding_window>0)?layer_types:"
                        "sliding_attention")) },
    { .classes = "ApertusForCausalLM",
      .arch = "apertus",
      .names = OVER(apertus_names),
      .rope_count = true,
      .vocab_size = true },
    { .classes = "DeciLMForCausalLM",
      .arch = "deci",
      .names = OVER(deci_names),
      .keys = ROWS(EACH("feed_forward_length", U32, DECI_FF),
                   U32("feed_forward_length", "intermediate_size"),
                   EACH("attention.head_count", U32, DECI_HEADS),
                   U32("attention.head_count", "num_attention_heads"),
                   EACH("attention.head_count_kv", U32, DECI_KV),
                   OF("attention.key_length", U32, HEAD),
                   OF("attention.value_length", U32, HEAD)),
      TURNED },
    /* with another activation it is another model */
    { .classes = "BitnetForCausalLM BitNetForCausalLM",
      .arch = "bitnet",
      .when = "hidden_act:silu",
      .names = OVER(bitnet_names),
      .keys = ROWS(WORD("rope.scaling.type", "linear"),
                   ALWAYS("rope.scaling.factor", F32, 1)) },
    /* its norms have the least number that 1 can be told from */
    { .classes = "TalkieForCausalLM",
      .arch = "talkie",
      .names = { talkie_names },
      .keys = ROWS(ALWAYS("attention.layer_norm_rms_epsilon", F32,
                          1.1920928955078125e-07)) },
    { .classes = NULL }
};
