/* SPDX-License-Identifier: MIT */
/* llama.c - classes of Llama and models built like it */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name seed_oss_names[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"), END_NAMES
};

/* Each key's head, with the queries that share it before it. */
#define WQKV L "attention.wqkv"

static const struct gg_convert_name internlm2_names[] = {
    N("model.tok_embeddings", "token_embd"),
    N("output", "output"),
    N(L "attention_norm", B "attn_norm"),
    N_AXES(WQKV, B "attn_q", "k n=(g+2)[g@0] 2 d, * > k n d 2, *"),
    N_AXES(WQKV, B "attn_k", "k n=(g+2)[1@g] 2 d, * > k d 2, *"),
    N_AXES(WQKV, B "attn_v", "k n=(g+2)[1@g+1] d, * > k d, *"),
    N(L "attention.wo", B "attn_output"),
    N(L "ffn_norm", B "ffn_norm"),
    N(L "feed_forward.w1", B "ffn_gate"),
    N(L "feed_forward.w2", B "ffn_down"),
    N(L "feed_forward.w3", B "ffn_up"),
    END_NAMES
};

/* Query, key and value, each of all heads, queries and keys permuted. */
static const struct gg_convert_name baichuan_names[] = {
    N_AXES(L "self_attn.W_pack", B "attn_q", "3[1@0] h 2 d, * > h d 2, *"),
    N_AXES(L "self_attn.W_pack", B "attn_k", "3[1@1] h 2 d, * > h d 2, *"),
    N_AXES(L "self_attn.W_pack", B "attn_v", "3[1@2] x, * > x, *"), END_NAMES
};

#define OE "transformer.layers.%."

static const struct gg_convert_name openelm_names[] = {
    N("transformer.token_embeddings", "token_embd"),
    N("transformer.norm", "output_norm"),
    N(OE "attn_norm", B "attn_norm"),
    N(OE "attn.qkv_proj", B "attn_qkv"),
    N(OE "attn.q_norm", B "attn_q_norm"),
    N(OE "attn.k_norm", B "attn_k_norm"),
    N(OE "attn.out_proj", B "attn_output"),
    N(OE "ffn_norm", B "ffn_norm"),
    N_HOW(OE "ffn.proj_1", B "ffn_gate", HALF_1),
    N_HOW(OE "ffn.proj_1", B "ffn_up", HALF_2),
    N(OE "ffn.proj_2", B "ffn_down"),
    END_NAMES
};

/* The width of a layer: the nearest multiple of the divisor, and one more if
 * that is less than nine tenths. */
#define OE_WIDTH "(ffn_multipliers*model_dim)"
#define OE_NEAR                                                               \
    "max(ffn_dim_divisor,(" OE_WIDTH                                          \
    "+ffn_dim_divisor/2)//ffn_dim_divisor*ffn_dim_divisor)"

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

#define META WORD("tensor_data_layout", "Meta AI original pth")
#define PANGU                                                                 \
    ROWS(U32("vocab_size", "vocab_size"),                                     \
         OF("rope.dimension_count", U32, HEAD),                               \
         OF("attention.key_length", U32, HEAD),                               \
         OF("attention.value_length", U32, HEAD))

/* Rows of experts are columns. */
static const struct gg_convert_name llama4_names[] = {
    N(L "feed_forward.router", B "ffn_gate_inp"),
    N_AXES(L "feed_forward.experts.gate_up_proj", B "ffn_gate_exps.weight",
           "x, c, 2[1@0] f > x, f, c"),
    N_AXES(L "feed_forward.experts.gate_up_proj", B "ffn_up_exps.weight",
           "x, c, 2[1@1] f > x, f, c"),
    N_AXES(L "feed_forward.experts.down_proj", B "ffn_down_exps.weight",
           "x, f, c > x, c, f"),
    EACH_EXPERT(L "feed_forward.experts.@."),
    N(L "feed_forward.shared_expert.gate_proj", B "ffn_gate_shexp"),
    N(L "feed_forward.shared_expert.up_proj", B "ffn_up_shexp"),
    N(L "feed_forward.shared_expert.down_proj", B "ffn_down_shexp"),
    N(L "feed_forward.gate_proj", B "ffn_gate"),
    N(L "feed_forward.up_proj", B "ffn_up"),
    N(L "feed_forward.down_proj", B "ffn_down"),
    END_NAMES
};

static const struct gg_convert_name afmoe_names[] = {
    N(L "self_attn.gate_proj", B "attn_gate"),
    N(L "post_attention_layernorm", B "post_attention_norm"),
    N(L "pre_mlp_layernorm", B "ffn_norm"),
    N(L "post_mlp_layernorm", B "post_ffw_norm"),
    N(L "mlp.router.gate", B "ffn_gate_inp"),
    N(L "mlp.expert_bias", B "exp_probs_b.bias"),
    END_NAMES
};

/* Each head has its norm, put as the rows of queries and keys are. (llama.cpp's
 * converter takes that of the first head for all, which it is where the model
 * was trained in one piece.) */
static const struct gg_convert_name chameleon_names[] = {
    N_AXES(L "self_attn.q_norm", B "attn_q_norm", "h, 2 d > h, d 2"),
    N_AXES(L "self_attn.k_norm", B "attn_k_norm", "k, 2 d > k, d 2"), END_NAMES
};

const struct gg_convert_arch gg_convert_family_llama[] = {
    { .classes = "LlamaForCausalLM LLaMAForCausalLM MistralForCausalLM "
                 "IQuestCoderForCausalLM InternLM3ForCausalLM "
                 "VLlama3ForCausalLM VoxtralForConditionalGeneration "
                 "JanusForConditionalGeneration",
      .arch = "llama",
      .names = LLAMA,
      .last = OF_SIZE,
      TURNED },
    /* of any class; Llama's, if none is said */
    { .classes = "LlavaForConditionalGeneration",
      .arch = "llama",
      .when = "text_config.architectures!=0",
      .names = LLAMA,
      .last = OF_SIZE,
      TURNED },
    { .classes = "Sarashina2VisionForCausalLM",
      .arch = "llama",
      .skip = "norm.", /* of what is seen */
      .names = LLAMA,
      .last = OF_SIZE,
      TURNED },
    { .classes = "LlamaModel",
      .arch = "llama",
      .before = "model.",
      .names = LLAMA,
      .last = OF_SIZE,
      TURNED },
    { .classes = "SmolLM3ForCausalLM",
      .arch = "smollm3",
      .ties = true,
      .names = LLAMA,
      TURNED },
    { .classes = "SeedOssForCausalLM",
      .arch = "seed_oss",
      .names = OVER(seed_oss_names) },
    { .classes = "ArceeForCausalLM", .arch = "arcee", .names = LLAMA, TURNED },
    { .classes = "InternLM2ForCausalLM",
      .arch = "internlm2",
      .names = OVER(internlm2_names) },
    { .classes = "BaichuanForCausalLM BaiChuanForCausalLM",
      .arch = "baichuan",
      .names = OVER(baichuan_names),
      .keys = ROWS(WORD("tensor_data_layout", "Meta AI original pth"),
                   OF("rope.dimension_count", U32, HEAD)) },
    { .classes = "OpenELMForCausalLM",
      .arch = "openelm",
      .names = { openelm_names },
      .keys = ROWS(U32("block_count", "num_transformer_layers"),
                   U32("context_length", "max_context_length"),
                   U32("embedding_length", "model_dim"),
                   EACH("feed_forward_length", U32,
                        OE_NEAR "+ffn_dim_divisor*(" OE_NEAR "<(0.9*" OE_WIDTH
                                "))"),
                   U32("attention.head_count", "num_query_heads"),
                   U32("attention.head_count_kv", "num_kv_heads"),
                   F32("rope.freq_base", "rope_freq_constant"),
                   ALWAYS("attention.layer_norm_rms_epsilon", F32, 1e-6),
                   U32("rope.dimension_count", "head_dim"),
                   U32("attention.key_length", "head_dim"),
                   U32("attention.value_length", "head_dim")),
      .only_keys = true },
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
    { .classes = "MaincoderForCausalLM",
      .arch = "maincoder",
      .names = LLAMA,
      .keys = ROWS(U32("rope.dimension_count", "head_dim")) },
    { .classes = "PanguEmbeddedForCausalLM",
      .arch = "pangu-embedded",
      .drops_copy = true,
      .names = LLAMA,
      .keys = PANGU },
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
    { .classes = "MixtralForCausalLM",
      .arch = "llama",
      .names = OVER(gg_convert_names_mixtral),
      TURNED },
    { .classes = "Llama4ForConditionalGeneration Llama4ForCausalLM",
      .arch = "llama4",
      .names = OVER(llama4_names),
      .keys =
          ROWS(U32("feed_forward_length", "intermediate_size_mlp"),
               U32("vocab_size", "vocab_size"),
               OF("rope.dimension_count", U32, HEAD),
               U32("interleave_moe_layer_step", "interleave_moe_layer_step"),
               U32("expert_feed_forward_length", "intermediate_size"),
               OF("attention.sliding_window", U32,
                  "all(layer_types:full_attention)?0")) },
    /* every fourth layer sees all, without positions, and embeddings are
     * multiplied */
    { .classes = "AfmoeForCausalLM",
      .arch = "afmoe",
      .when = "(global_attn_every_n_layers|4=4)*mup_enabled|1",
      .names = OVER_2(afmoe_names, gg_convert_names_experts),
      .keys = ROWS(U32("expert_shared_count", "num_shared_experts"), EXPERT_FF,
                   U32("leading_dense_block_count", "num_dense_layers"),
                   BOOL("expert_weights_norm", "route_norm"),
                   F32("expert_weights_scale", "route_scale"), WINDOW),
      .rope_count = true,
      .vocab_size = true },
    { .classes = "ChameleonForConditionalGeneration ChameleonForCausalLM",
      .arch = "chameleon",
      .names = OVER(chameleon_names),
      .keys = ROWS(OF("swin_norm", BOOL, "swin_norm|0")),
      .turned = true },
    { .classes = NULL }
};
