/* SPDX-License-Identifier: MIT */
/* class_routed.c - more rows of architectures with experts */
#include "config.h"
#include "convert/class_row.h"

#define Q_ROWS HEAD "*h"
#define K_ROWS HEAD "*k"

/* Queries, keys and values in one; of pairs, where heads have halves. */
static const struct gg_convert_name bailing_names[] = {
    N("model.word_embeddings", "token_embd"),
    N_AXES(L "attention.query_key_value", B "attn_q",
           "[" Q_ROWS "@0] h 2 d, * > h d 2, *"),
    N_AXES(L "attention.query_key_value", B "attn_k",
           "[" K_ROWS "@" Q_ROWS "] k 2 d, * > k d 2, *"),
    N_AXES(L "attention.query_key_value", B "attn_v",
           "[@" Q_ROWS "+" K_ROWS "] x, * > x, *"),
    N(L "attention.dense", B "attn_output"),
    END_NAMES
};

static const struct gg_convert_name bailing2_names[] = {
    N("model.word_embeddings", "token_embd"),
    N(L "attention.query_key_value", B "attn_qkv"),
    N(L "attention.query_layernorm", B "attn_q_norm"),
    N(L "attention.key_layernorm", B "attn_k_norm"),
    N(L "attention.dense", B "attn_output"),
    N(L "mlp.gate.expert_bias", B "exp_probs_b.bias"),
    N(L "final_layernorm", B "layer_output_norm"),
    END_NAMES
};

/* Rows of experts are columns. */
static const struct gg_convert_name qwen3vl_names[] = {
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_gate_exps.weight",
           "x, c, 2[1@0] f > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_up_exps.weight",
           "x, c, 2[1@1] f > x, f, c"),
    N_AXES(L "mlp.experts.down_proj", B "ffn_down_exps.weight",
           "x, f, c > x, c, f"),
    END_NAMES
};

static const struct gg_convert_name exaone_names[] = {
    N(L "mlp.e_score_correction_bias", B "exp_probs_b.bias"),
    N("mtp.fc", "blk.+.nextn.eh_proj"),
    N("mtp.pre_fc_norm_embedding", "blk.+.nextn.enorm"),
    N("mtp.pre_fc_norm_hidden", "blk.+.nextn.hnorm"),
    N("mtp.norm", "blk.+.nextn.shared_head_norm"),
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

static const struct gg_convert_name smallthinker_names[] = {
    N(L "block_sparse_moe.primary_router", B "ffn_gate_inp"),
    N(L "block_sparse_moe.experts.@.gate", B "ffn_gate_exps"),
    N(L "block_sparse_moe.experts.@.up", B "ffn_up_exps"),
    N(L "block_sparse_moe.experts.@.down", B "ffn_down_exps"), END_NAMES
};

#define T  "model.transformer."
#define TB T "blocks.%."
static const struct gg_convert_name llada_names[] = {
    N(T "wte", "token_embd"),
    N(T "ln_f", "output_norm"),
    N(T "ff_out", "output"),
    N(TB "attn_norm", B "attn_norm"),
    N_AXES(TB "q_proj", B "attn_q", "h 2 d, * > h d 2, *"),
    N_AXES(TB "k_proj", B "attn_k", "k 2 d, * > k d 2, *"),
    N(TB "v_proj", B "attn_v"),
    N(TB "attn_out", B "attn_output"),
    N(TB "ff_norm", B "ffn_norm"),
    N(TB "ff_proj", B "ffn_gate"),
    N(TB "up_proj", B "ffn_up"),
    N(TB "ff_out", B "ffn_down"),
    END_NAMES
};

/* Grok 2, and Grok 1 as it was made a folder. */
#define G "transformer.decoder_layer.%."
static const struct gg_convert_name grok_names[] = {
    N(L "pre_attn_norm", B "attn_norm"),
    N(L "post_attn_norm", B "attn_output_norm"),
    N(L "pre_moe_norm", B "ffn_norm"),
    N(L "post_moe_norm", B "post_ffw_norm"),
    N("transformer.in_out_embed", "token_embd"),
    N("transformer.rms_norm", "output_norm"),
    N(G "rms_norm", B "attn_norm"),
    N(G "rms_norm_1", B "attn_output_norm"),
    N(G "rms_norm_2", B "ffn_norm"),
    N(G "rms_norm_3", B "layer_output_norm"),
    N(G "multi_head_attention.query", B "attn_q"),
    N(G "multi_head_attention.key", B "attn_k"),
    N(G "multi_head_attention.value", B "attn_v"),
    N(G "multi_head_attention.linear", B "attn_output"),
    N(G "router", B "ffn_gate_inp"),
    N(G "moe.@.linear", B "ffn_gate_exps"),
    N(G "moe.@.linear_v", B "ffn_up_exps"),
    N(G "moe.@.linear_1", B "ffn_down_exps"),
    END_NAMES
};

/* Experts beside a part that all tokens take. */
static const struct gg_convert_name arctic_names[] = {
    N(L "residual_layernorm", B "ffn_norm"),
    N(L "post_attention_layernorm", B "ffn_norm_exps"),
    N(L "residual_mlp.w1", B "ffn_gate"),
    N(L "residual_mlp.w2", B "ffn_down"),
    N(L "residual_mlp.w3", B "ffn_up"),
    END_NAMES
};

static const struct gg_convert_name grove_names[] = {
    N(L "mlp.chunk_experts.@.gate_proj", B "ffn_gate_chexps"),
    N(L "mlp.chunk_experts.@.up_proj", B "ffn_up_chexps"),
    N(L "mlp.chunk_experts.@.down_proj", B "ffn_down_chexps"),
    N_NOT(L "mlp.expert_bias"), /* the model's code does not use it */
    N_NOT(L "mlp.gate.expert_bias"),
    END_NAMES
};

/* As it was published, and as transformers write it. */
static const struct gg_convert_name hy3_names[] = {
    N(L "mlp.router.gate", B "ffn_gate_inp"),
    N(L "mlp.expert_bias", B "exp_probs_b"),
    N(L "mlp.e_score_correction_bias", B "exp_probs_b"),
    N(L "mlp.shared_mlp.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_mlp.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_mlp.down_proj", B "ffn_down_shexp"),
    N(L "final_layernorm", B "nextn.shared_head_norm"),
    END_NAMES
};

static const struct gg_convert_name laguna_names[] = {
    N(L "self_attn.g_proj", B "attn_gate"),
    N(L "mlp.experts.e_score_correction_bias", B "exp_probs_b.bias"), END_NAMES
};

static const struct gg_convert_name mimo2_names[] = {
    N(L "self_attn.qkv_proj", B "attn_qkv"),
    N(L "self_attn.attention_sink_bias", B "attn_sinks.weight"),
    N(L "pre_mlp_layernorm", B "ffn_norm"),
    N(L "final_layernorm", B "layer_output_norm"), END_NAMES
};

/* Norms multiply by 1 + weight. */
#define NORMS_PLUS_1                                                          \
    N_HOW("model.norm", "output_norm", PLUS_1),                               \
        N_HOW(L "input_layernorm", B "attn_norm", PLUS_1),                    \
        N_HOW(L "post_attention_layernorm", B "ffn_norm", PLUS_1),            \
        N_HOW(L "self_attn.q_norm", B "attn_q_norm", PLUS_1),                 \
        N_HOW(L "self_attn.k_norm", B "attn_k_norm", PLUS_1)
#define SH "shared_head."
static const struct gg_convert_name step35_names[] = {
    NORMS_PLUS_1,
    N_HOW(L "enorm", B "nextn.enorm", PLUS_1),
    N_HOW(L "hnorm", B "nextn.hnorm", PLUS_1),
    N_HOW(L "transformer." SH "norm", B "nextn.shared_head_norm", PLUS_1),
    N(L "transformer." SH "output", B "nextn.shared_head_head"),
    N_HOW(L SH "norm", B "nextn.shared_head_norm", PLUS_1),
    N_HOW(L "self_attn.g_proj", B "attn_gate", SQUEEZE),
    N_HOW(L "moe.gate", B "ffn_gate_inp", SQUEEZE),
    N(L "moe.router_bias", B "exp_probs_b.bias"),
    N_HOW(L "moe.gate_proj", B "ffn_gate_exps", SQUEEZE),
    N_HOW(L "moe.up_proj", B "ffn_up_exps", SQUEEZE),
    N_HOW(L "moe.down_proj", B "ffn_down_exps", SQUEEZE),
    N(L "share_expert.gate_proj", B "ffn_gate_shexp"),
    N(L "share_expert.up_proj", B "ffn_up_shexp"),
    N(L "share_expert.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

#define SHARED L "block_sparse_moe.shared_experts."
static const struct gg_convert_name minimax3_names[] = {
    NORMS_PLUS_1,
    N_HOW(L "self_attn.index_q_norm", B "indexer.q_norm", PLUS_1),
    N_HOW(L "self_attn.index_k_norm", B "indexer.k_norm", PLUS_1),
    N(L "self_attn.index_q_proj", B "indexer.q_proj"),
    N(L "self_attn.index_k_proj", B "indexer.k_proj"),
    N(SHARED "gate_proj", B "ffn_gate_shexp"),
    N(SHARED "up_proj", B "ffn_up_shexp"),
    N(SHARED "down_proj", B "ffn_down_shexp"),
    END_NAMES
};

/* ---- rows ---- */

#define BAILING_2                                                             \
    LEAD, VOCAB_SIZE, EXPERT_FF,                                              \
        OF("expert_shared_feed_forward_length", U32,                          \
           "moe_shared_expert_intermediate_size|("                            \
           "moe_intermediate_size*num_shared_experts)"),                      \
        WEIGHTS_SCALE, U32("expert_shared_count", "num_shared_experts"),      \
        WEIGHTS_NORM, NEXTN
#define GROK_KEYS                                                             \
    OF("attn_logit_softcapping", F32, "attn_logit_softcapping|30"),           \
        OF("router_logit_softcapping", F32, "router_logit_softcapping|30"),   \
        OF("final_logit_softcapping", F32,                                    \
           "final_logit_softcapping>0?final_logit_softcapping"),              \
        EXPERT_FF,                                                            \
        OF("attention.temperature_length", U32,                               \
           "attn_temperature_len>0?attn_temperature_len"),                    \
        OF("attention.output_scale", F32,                                     \
           "attn_output_multiplier|pow(" HEAD ",-0.5)"),                      \
        F32("embedding_scale", "embedding_multiplier_scale"),                 \
        F32("logit_scale", "output_multiplier_scale")
#define LEAD_TYPES(ELSE)                                                      \
    OF("leading_dense_block_count", U32,                                      \
       "first(mlp_layer_types:dense=0)|" ELSE)
/* Of two kinds of layers, by the word that stands for those with windows. */
#define BY_TYPE(NAME)                                                         \
    "layer_types:sliding_attention?(attention_other_setting." NAME "|" NAME   \
    "):" NAME
#define HYBRID(WINDOWS, FULL)                                                 \
    "i<num_hidden_layers?(hybrid_layer_pattern?(" WINDOWS "):" FULL           \
    "):" WINDOWS
#define MIMO_LAYERS "num_hidden_layers+num_nextn_predict_layers|3"
#define SAME(NAME)  "(swa_" NAME "|" NAME "=" NAME ")"
#define SPARSE(NAME, FROM)                                                    \
    U32("attention.indexer." NAME, "sparse_attention_config.sparse_" FROM)

const struct gg_convert_arch gg_convert_class_routed[] = {
    /* norm_head: rows of the output are divided by lengths of its columns */
    { .classes = "BailingMoeForCausalLM",
      .arch = "bailingmoe",
      .when = "norm_head|0=0",
      .names = OVER_2(bailing_names, gg_convert_names_experts),
      .keys = ROWS(ALL_ROT, LEAD, VOCAB_SIZE, EXPERT_FF,
                   ALWAYS("expert_weights_scale", F32, 1),
                   U32("expert_shared_count", "num_shared_experts"),
                   WEIGHTS_NORM) },
    { .classes = "BailingMoeV2ForCausalLM",
      .arch = "bailingmoe2",
      .layers = LAYERS_NEXTN,
      .names = OVER_3(bailing2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(BLOCKS_NEXTN, PART_ROT("0.5"), BAILING_2) },
    /* its code takes their mean off the biases of experts, which changes no
     * choice */
    { .classes = "SarvamMoEForCausalLM "
                 "modeling_sarvam_moe.SarvamMoEForCausalLM",
      .arch = "bailingmoe2",
      .layers = LAYERS_NEXTN,
      .names = OVER_3(bailing2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(BLOCKS_NEXTN, ALL_ROT, BAILING_2) },
    { .classes = "Qwen3VLMoeForConditionalGeneration",
      .arch = "qwen3vlmoe",
      .names = OVER_2(qwen3vl_names, gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF,
                   OF("n_deepstack_layers", U32,
                      "len(vision_config.deepstack_visual_indexes)")) },
    { .classes = "Qwen3OmniMoeForConditionalGeneration",
      .arch = "qwen3vlmoe",
      .roles = "bos=<|im_end|> eos=<|im_end|>",
      .names = OVER_2(qwen3vl_names, gg_convert_names_experts),
      .keys =
          ROWS(EXPERT_FF, SHARED_FF, ALWAYS("n_deepstack_layers", U32, 0)) },
    { .classes = "RND1",
      .arch = "rnd1",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF, ALWAYS("attention.causal", BOOL, 0),
                   U32("/tokenizer.ggml.mask_token_id", "mask_token_id")) },
    { .classes = "ExaoneMoeForCausalLM ExaoneMoEForCausalLM",
      .arch = "exaone-moe",
      .layers = LAYERS_NEXTN,
      .drafts = "mtp.layers.",
      .names = OVER_2(exaone_names, gg_convert_names_experts),
      .keys =
          ROWS(BLOCKS_NEXTN, VOCAB_SIZE, WINDOW,
               EACH("attention.sliding_window_pattern", BOOL,
                    "i<num_hidden_layers?sliding_window?"
                    "layer_types:sliding_attention|sliding_window_pattern#L|"
                    "((i+1)%sliding_window_pattern>0)"),
               EXPERT_FF, U32("expert_shared_count", "num_shared_experts"),
               OF("expert_shared_feed_forward_length", U32,
                  "moe_intermediate_size*num_shared_experts"),
               WEIGHTS_SCALE, WEIGHTS_NORM,
               OF("leading_dense_block_count", U32,
                  "first_k_dense_replace|first_last_k_dense_replace|0"),
               OF("nextn_predict_layers", U32, "num_nextn_predict_layers|0"),
               NO_SCALING) },
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
    { .classes = "SmallThinkerForCausalLM",
      .arch = "smallthinker",
      .names = OVER(smallthinker_names),
      .keys = ROWS(U32("expert_count", "moe_num_primary_experts"),
                   U32("expert_used_count", "moe_num_active_primary_experts"),
                   U32("expert_feed_forward_length", "moe_ffn_hidden_size"),
                   U32("feed_forward_length", "moe_ffn_hidden_size"),
                   OF("expert_gating_func", U32,
                      "moe_primary_router_apply_softmax|0?1:2"),
                   OF("attention.sliding_window", U32,
                      "all(sliding_window_layout=0)=0?sliding_window_size>0?"
                      "sliding_window_size")) },
    { .classes = "LLaDAModelLM",
      .arch = "llada",
      .names = { llada_names },
      .keys =
          ROWS(VOCAB_SIZE,
               OF("rope.dimension_count", U32,
                  "(head_dim|(d_model|hidden_size//h))"),
               OF("context_length", U32, "max_sequence_length|4096"),
               U32("embedding_length", "d_model hidden_size"),
               U32("feed_forward_length", "mlp_hidden_size intermediate_size"),
               DIFFUSION),
      .last = BEGINS },
    { .classes = "LLaDAMoEModelLM LLaDAMoEModel",
      .arch = "llada-moe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(
          U32("expert_feed_forward_length", "expert_intermediate_size"),
          ALWAYS("/tokenizer.ggml.mask_token_id", U32, 156895), DIFFUSION) },
    { .classes = "Grok1ForCausalLM GrokForCausalLM",
      .arch = "grok",
      .when = "rope_type:yarn+rope_type:original",
      .names = OVER_2(grok_names, gg_convert_names_mixtral),
      .keys = ROWS(GROK_KEYS, WORD("rope.scaling.type", "yarn"),
                   F32("rope.scaling.factor", "scaling_factor"),
                   U32("rope.scaling.original_context_length",
                       "original_max_position_embeddings"),
                   F32("rope.scaling.yarn_ext_factor", "extrapolation_factor"),
                   F32("rope.scaling.yarn_attn_factor", "attn_factor"),
                   F32("rope.scaling.yarn_beta_fast", "beta_fast"),
                   F32("rope.scaling.yarn_beta_slow", "beta_slow")) },
    { .classes = "Grok1ForCausalLM GrokForCausalLM",
      .arch = "grok",
      .names = OVER_2(grok_names, gg_convert_names_mixtral),
      .keys = ROWS(GROK_KEYS) },
    { .classes = "ArcticForCausalLM",
      .arch = "arctic",
      .names = OVER_2(arctic_names, gg_convert_names_mixtral),
      .keys = ROWS(VOCAB_SIZE, OF("rope.dimension_count", U32,
                                  "hidden_size//num_attention_heads")),
      .turned = true },
    { .classes = "GroveMoeForCausalLM modeling_grove_moe.GroveMoeForCausalLM",
      .arch = "grovemoe",
      .names = OVER_2(grove_names, gg_convert_names_experts),
      /* numbers that are in the model's code only */
      .keys = ROWS(EXPERT_FF,
                   OF("expert_chunk_feed_forward_length", U32, "head_dim|128"),
                   ALWAYS("experts_per_group", U32, 2),
                   ALWAYS("expert_group_scale", F32, 0.05)) },
    { .classes = "HYV3ForCausalLM",
      .arch = "hy_v3",
      .layers = LAYERS_NEXTN,
      .names =
          OVER_3(hy3_names, gg_convert_names_nextn, gg_convert_names_experts),
      .keys = ROWS(BLOCKS_NEXTN, EXPERT_FF,
                   OF("expert_shared_feed_forward_length", U32,
                      "moe_intermediate_size*num_shared_experts|1"),
                   OF("expert_weights_norm", BOOL, "route_norm|1"),
                   OF("expert_weights_scale", F32, "router_scaling_factor|1"),
                   ALWAYS("expert_gating_func", U32, 2),
                   OF("nextn_predict_layers", U32,
                      "num_nextn_predict_layers>0?"
                      "num_nextn_predict_layers")) },
    { .classes = "Cohere2MoeForCausalLM",
      .arch = "cohere2moe",
      .ties = true,
      .when = "(num_shared_experts|0=0)+"
              "(shared_expert_combination_strategy:average|1)",
      .layers = LAYERS_NEXTN,
      .names = OVER_2(gg_convert_names_nextn, gg_convert_names_experts),
      .keys = ROWS(
          BLOCKS_NEXTN, F32("logit_scale", "logit_scale"), WINDOW,
          EACH("attention.sliding_window_pattern", BOOL,
               "i<num_hidden_layers?layer_types:sliding_attention"),
          VOCAB_SIZE, U32("expert_feed_forward_length", "intermediate_size"),
          LEAD_TYPES("first_k_dense_replace|0"),
          OF("expert_weights_norm", BOOL, "norm_topk_prob|0"),
          OF("expert_shared_count", U32,
             "num_shared_experts>0?num_shared_experts"),
          OF("expert_shared_feed_forward_length", U32,
             "num_shared_experts>0?intermediate_size*num_shared_experts"),
          OF("nextn_predict_layers", U32,
             "num_nextn_predict_layers>0?num_nextn_predict_layers"),
          U32("rope.dimension_count", "head_dim"), NO_SCALING) },
    /* every fourth layer, from the first on, sees all */
    { .classes = "LagunaForCausalLM",
      .arch = "laguna",
      .when = "((sliding_window|0=0)+"
              "all(layer_types:full_attention=(i%4=0))|1)*"
              "(moe_router_logit_softcapping|0=0)",
      .names = OVER_2(laguna_names, gg_convert_names_experts),
      .keys = ROWS(
          EACH("attention.head_count", U32,
               "num_attention_heads_per_layer|num_attention_heads"),
          VOCAB_SIZE,
          OF("attention.sliding_window", U32,
             "sliding_window>0?sliding_window"),
          EXPERT_FF, SHARED_FF, ALWAYS("expert_weights_norm", BOOL, 1),
          F32("expert_weights_scale", "moe_routed_scaling_factor"),
          ALWAYS("expert_gating_func", U32, 2), LEAD_TYPES("1"),
          OF("rope.dimension_count", U32,
             HEAD "*rope_parameters.full_attention.partial_rotary_factor|1"
                  "//1"),
          OF("rope.dimension_count_swa", U32,
             "rope_parameters.sliding_attention!?" HEAD
             "*rope_parameters.sliding_attention.partial_rotary_factor|1"
             "//1")) },
    /* three layers that draft, of which config.json does not tell */
    { .classes = "MiMoV2FlashForCausalLM MiMoV2ForCausalLM",
      .arch = "mimo2",
      .when = SAME("head_dim") "*" SAME("v_head_dim") "*" SAME(
          "num_attention_heads"),
      .layers = MIMO_LAYERS,
      .drafts = "model.mtp.layers.",
      .names = OVER_3(mimo2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys = ROWS(
          OF("block_count", U32, MIMO_LAYERS),
          EACH("attention.head_count_kv", U32,
               HYBRID("swa_num_key_value_heads", "num_key_value_heads")),
          WINDOW,
          EACH("attention.sliding_window_pattern", U32, HYBRID("1", "0")),
          U32("attention.value_length", "v_head_dim"), EXPERT_FF,
          PART_ROT("1"),
          OF("attention.layer_norm_rms_epsilon", F32,
             "layernorm_epsilon|1e-5"),
          F32("attention.value_scale", "attention_value_scale"),
          OF("nextn_predict_layers", U32, "num_nextn_predict_layers|3")) },
    { .classes = "Step3p5ForCausalLM Step3p7ForConditionalGeneration",
      .arch = "step35",
      .when = "all((layer_types:sliding_attention?1:0.5)="
              "partial_rotary_factors)|1",
      .layers = LAYERS_NEXTN,
      .names = OVER_2(step35_names, gg_convert_names_nextn),
      .keys = ROWS(
          BLOCKS_NEXTN,
          EACH("attention.head_count", U32, BY_TYPE("num_attention_heads")),
          OF("rope.freq_base", F32, "rope_theta"),
          EACH("attention.head_count_kv", U32,
               BY_TYPE("num_attention_groups")),
          WINDOW, PATTERN, U32("expert_count", "moe_num_experts"),
          U32("expert_used_count", "moe_top_k"), EXPERT_FF,
          U32("expert_shared_feed_forward_length", "share_expert_dim"),
          F32("expert_weights_scale", "moe_router_scaling_factor"),
          BOOL("expert_weights_norm", "norm_expert_weight"),
          OF("leading_dense_block_count", U32, "number(moe_layers_enum)|0"),
          OF("moe_every_n_layers", U32, "moe_every_n_layer|1"),
          OF("attention.layer_norm_rms_epsilon", F32, "rms_norm_eps|1e-5"),
          EACH("swiglu_clamp_exp", F32, "swiglu_limits!?swiglu_limits|0"),
          EACH("swiglu_clamp_shexp", F32,
               "swiglu_limits_shared!?swiglu_limits_shared|0"),
          OF("nextn_predict_layers", U32,
             "num_nextn_predict_layers>0?num_nextn_predict_layers")) },
    { .classes = "MiniMaxM3SparseForCausalLM "
                 "MiniMaxM3SparseForConditionalGeneration",
      .arch = "minimax-m3",
      .names = OVER_2(minimax3_names, gg_convert_names_mixtral),
      .keys = ROWS(
          U32("expert_feed_forward_length", "intermediate_size"), N_ROT,
          U32("expert_shared_count", "n_shared_experts"), WEIGHTS_SCALE,
          ALWAYS("expert_weights_norm", BOOL, 1),
          SPARSE("head_count", "num_index_heads"),
          SPARSE("key_length", "index_dim"), SPARSE("top_k", "topk_blocks"),
          SPARSE("block_size", "block_size"),
          SPARSE("local_blocks", "local_block"),
          OF("leading_dense_block_count", U32, "first(moe_layer_freq)")) },
    { .classes = NULL }
};
