/* SPDX-License-Identifier: MIT */
/* class_dense.c - rows of architectures without experts */
#include "config.h"
#include "convert/class_row.h"

const struct gg_convert_name gg_convert_names_llama[] = {
    N("model.embed_tokens", "token_embd"),
    N("model.norm", "output_norm"),
    N("lm_head", "output"),
    N(L "input_layernorm", B "attn_norm"),
    N_HOW(L "self_attn.q_proj", B "attn_q", ROPE_Q),
    N_HOW(L "self_attn.k_proj", B "attn_k", ROPE_K),
    N(L "self_attn.v_proj", B "attn_v"),
    N(L "self_attn.o_proj", B "attn_output"),
    N(L "self_attn.q_norm", B "attn_q_norm"),
    N(L "self_attn.k_norm", B "attn_k_norm"),
    N(L "post_attention_layernorm", B "ffn_norm"),
    N(L "mlp.gate_proj", B "ffn_gate"),
    N(L "mlp.up_proj", B "ffn_up"),
    N(L "mlp.down_proj", B "ffn_down"),
    N_NOT(L "self_attn.rotary_emb.inv_freq"),
    N_NOT("model.rotary_emb.inv_freq"),
    N("rope_freqs", "rope_freqs"), /* these three are computed */
    N("rope_factors_long", "rope_factors_long"),
    N("rope_factors_short", "rope_factors_short"),
    END_NAMES
};

/* Norms after the branches. */
const struct gg_convert_name gg_convert_names_after[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"),
    N(L "post_feedforward_layernorm", B "post_ffw_norm"), END_NAMES
};

static const struct gg_convert_name seed_oss_names[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"), END_NAMES
};

static const struct gg_convert_name kormo_names[] = {
    N(L "pre_attention_layernorm", B "attn_norm"),
    N(L "pre_mlp_layernorm", B "ffn_norm"), END_NAMES
};

static const struct gg_convert_name phi3_names[] = {
    N(L "self_attn.qkv_proj", B "attn_qkv"),
    N(L "mlp.gate_up_proj", B "ffn_up"), /* both, as one */
    END_NAMES
};

static const struct gg_convert_name glm4_names[] = {
    N(L "post_self_attn_layernorm", B "post_attention_norm"),
    N(L "post_mlp_layernorm", B "post_ffw_norm"),
    N(L "mlp.gate_up_proj", B "ffn_up"), END_NAMES
};

/* Of models that see: queries and keys turn in pairs in their code, and in
 * halves where positions have several axes. */
static const struct gg_convert_name glm4v_names[] = {
    N_HOW(L "self_attn.q_proj", B "attn_q", HALVES),
    N_HOW(L "self_attn.k_proj", B "attn_k", HALVES), END_NAMES
};

static const struct gg_convert_name starcoder2_names[] = {
    N(L "mlp.c_fc", B "ffn_up"), N(L "mlp.c_proj", B "ffn_down"), END_NAMES
};

static const struct gg_convert_name phi2_names[] = {
    N("model.final_layernorm", "output_norm"),
    N(L "self_attn.dense", B "attn_output"), N(L "mlp.fc1", B "ffn_up"),
    N(L "mlp.fc2", B "ffn_down"), END_NAMES
};

/* A norm for each head, told by numbers. */
static const struct gg_convert_name stablelm_names[] = {
    N(L "self_attn.q_layernorm.norms.@", B "attn_q_norm"),
    N(L "self_attn.k_layernorm.norms.@", B "attn_k_norm"), END_NAMES
};

/* Its norms multiply by 1 + weight. */
static const struct gg_convert_name nemotron_names[] = {
    { "model.norm.weight", "output_norm.weight", GG_HOW_PLUS_1, NULL, NULL },
    { L "input_layernorm.weight", B "attn_norm.weight", GG_HOW_PLUS_1, NULL,
      NULL },
    { L "post_attention_layernorm.weight", B "ffn_norm.weight", GG_HOW_PLUS_1,
      NULL, NULL },
    END_NAMES
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

static const struct gg_convert_name hunyuan_names[] = {
    N(L "self_attn.query_layernorm", B "attn_q_norm"),
    N(L "self_attn.key_layernorm", B "attn_k_norm"), END_NAMES
};

static const struct gg_convert_name ernie_names[] = {
    N_AXES(L "self_attn.qkv_proj", B "attn_q", "[h*" HEAD "@0] x, * > x, *"),
    N_AXES(L "self_attn.qkv_proj", B "attn_k",
           "[k*" HEAD "@h*" HEAD "] x, * > x, *"),
    N_AXES(L "self_attn.qkv_proj", B "attn_v",
           "[@(h+k)*" HEAD "] x, * > x, *"),
    N_HOW(L "mlp.up_gate_proj", B "ffn_gate", HALF_1),
    N_HOW(L "mlp.up_gate_proj", B "ffn_up", HALF_2),
    END_NAMES
};

static const struct gg_convert_name minicpm3_names[] = {
    N(L "self_attn.q_a_proj", B "attn_q_a"),
    N(L "self_attn.q_a_layernorm", B "attn_q_a_norm"),
    N(L "self_attn.q_b_proj", B "attn_q_b"),
    N(L "self_attn.kv_a_proj_with_mqa", B "attn_kv_a_mqa"),
    N(L "self_attn.kv_a_layernorm", B "attn_kv_a_norm"),
    N(L "self_attn.kv_b_proj", B "attn_kv_b"),
    END_NAMES
};

static const struct gg_convert_name exaone4_names[] = {
    N("mtp.fc", "blk.+.nextn.eh_proj"),
    N("mtp.pre_fc_norm_embedding", "blk.+.nextn.enorm"),
    N("mtp.pre_fc_norm_hidden", "blk.+.nextn.hnorm"),
    N("mtp.norm", "blk.+.nextn.shared_head_norm"), END_NAMES
};

static const struct gg_convert_name exaone_names[] = {
    N("transformer.wte", "token_embd"),
    N("transformer.ln_f", "output_norm"),
    N("transformer.h.%.ln_1", B "attn_norm"),
    N("transformer.h.%.ln_2", B "ffn_norm"),
    N("transformer.h.%.attn.attention.q_proj", B "attn_q"),
    N("transformer.h.%.attn.attention.k_proj", B "attn_k"),
    N("transformer.h.%.attn.attention.v_proj", B "attn_v"),
    N("transformer.h.%.attn.attention.out_proj", B "attn_output"),
    N("transformer.h.%.mlp.c_fc_0", B "ffn_gate"),
    N("transformer.h.%.mlp.c_fc_1", B "ffn_up"),
    N("transformer.h.%.mlp.c_proj", B "ffn_down"),
    N_NOT("transformer.rotary.inv_freq"),
    END_NAMES
};

/* ---- rows ---- */

#define GRANITE                                                               \
    F32("attention.scale", "attention_multiplier"),                           \
        F32("embedding_scale", "embedding_multiplier"),                       \
        F32("residual_scale", "residual_multiplier"),                         \
        F32("logit_scale", "logits_scaling")
#define HUNYUAN_DYNAMIC                                                       \
    OF("context_length", U32,                                                 \
       "rope_scaling.type:dynamic?262144:max_position_embeddings"),           \
        OF("rope.freq_base", F32,                                             \
           "rope_scaling.type:dynamic?rope_theta|10000*pow(rope_scaling."     \
           "alpha|1000," HEAD "/(" HEAD "-2)):rope_theta|10000"),             \
        NO_SCALING,                                                           \
        OF("rope.scaling.factor", F32, "rope_scaling.type:dynamic?1"),        \
        OF("rope.scaling.original_context_length", U32,                       \
           "rope_scaling.type:dynamic?262144")

/* Families by the sizes of their vocabularies: Code Llama, whose tokens of
 * filling in have no texts of their own in its files, and Granite's small ones
 * and SmolLM. */
#define IF_CODE(KEY, ID)                                                      \
    OF("/tokenizer.ggml." KEY "_token_id", U32, "vocab_size=32016?" #ID)
#define OF_SIZE                                                               \
    ROWS(IF_CODE("prefix", 32007), IF_CODE("suffix", 32008),                  \
         IF_CODE("middle", 32009),                                            \
         OF("/tokenizer.ggml.add_bos_token", BOOL, "vocab_size=49152?0")),    \
        .roles = "eot=\xe2\x96\x81<EOT>"

const struct gg_convert_name gg_convert_names_answers[] = { ANSWERS("lm_head"),
                                                            END_NAMES };
const struct gg_convert_name gg_convert_names_tied_answers[] = {
    N("model.embed_tokens", "token_embd"), ANSWERS("model.embed_tokens"),
    END_NAMES
};
static const struct gg_convert_name score_names[] = {
    N_HOW("score", "cls.output", PAIR), END_NAMES
};

const struct gg_convert_arch gg_convert_class_dense[] = {
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
    { .classes = "Mistral3ForConditionalGeneration Ministral3ForCausalLM",
      .arch = "mistral3",
      .when = "model_type:mistral4=0",
      .names = LLAMA,
      .keys = ROWS(F32("rope.scaling.yarn_log_multiplier",
                       "rope_parameters.mscale_all_dim"),
                   F32("attention.temperature_scale",
                       "rope_parameters.llama_4_scaling_beta")),
      TURNED },
    { .classes = "LlamaModel",
      .arch = "llama",
      .before = "model.",
      .names = LLAMA,
      .last = OF_SIZE,
      TURNED },
    /* alone, and of models that hear or see */
    { .classes = "Qwen2ForCausalLM Qwen2AudioForConditionalGeneration "
                 "AudioFlamingo3ForConditionalGeneration DotsOCRForCausalLM",
      .arch = "qwen2",
      .names = LLAMA },
    { .classes = "KORMoForCausalLM",
      .arch = "qwen2",
      .names = OVER(kormo_names) },
    { .classes = "Qwen2Model",
      .arch = "qwen2",
      .before = "model.",
      .names = LLAMA },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification",
      .arch = "qwen3",
      .when = "reranker_tied",
      .names = OVER(gg_convert_names_tied_answers),
      .keys = ROWS(RERANKER) },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification",
      .arch = "qwen3",
      .when = "reranker",
      .names = OVER(gg_convert_names_answers),
      .keys = ROWS(RERANKER) },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification",
      .arch = "qwen3",
      .when = "reranker_score",
      .names = OVER(score_names),
      .keys = ROWS(
          ALWAYS("pooling_type", U32, 4),
          OR("classifier.output_labels", "reranker_answers", LABELS, 0)) },
    { .classes = "Qwen3ForCausalLM Qwen3ForSequenceClassification "
                 "StepVLForConditionalGeneration",
      .arch = "qwen3",
      .names = LLAMA },
    { .classes = "Qwen3Model",
      .arch = "qwen3",
      .before = "model.",
      .names = LLAMA },
    { .classes = "OlmoForCausalLM OLMoForCausalLM",
      .arch = "olmo",
      .names = LLAMA,
      .keys = ROWS(ALWAYS("attention.layer_norm_epsilon", F32, 1e-5),
                   F32("attention.clamp_kqv", "clip_qkv")),
      .turned = true },
    { .classes = "Olmo2ForCausalLM",
      .arch = "olmo2",
      .names = OVER(gg_convert_names_after) },
    { .classes = "Olmo3ForCausalLM",
      .arch = "olmo2",
      .names = OVER(gg_convert_names_after),
      .keys =
          ROWS(WINDOW, EACH("attention.sliding_window_pattern", BOOL,
                            "layer_types:sliding_attention|((i+1)%4>0)")) },
    { .classes = "Phi3ForCausalLM Phi4ForCausalLMV",
      .arch = "phi3",
      .names = OVER(phi3_names),
      .keys = ROWS(
          U32("context_length", "max_position_embeddings"),
          U32("rope.scaling.original_context_length",
              "original_max_position_embeddings "
              "rope_scaling.original_max_position_embeddings "
              "rope_parameters.original_max_position_embeddings"),
          U32("embedding_length", "hidden_size"),
          U32("feed_forward_length", "intermediate_size"),
          U32("block_count", "num_hidden_layers"),
          U32("attention.head_count", "num_attention_heads"),
          U32("attention.head_count_kv", "num_key_value_heads"),
          F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
          OF("rope.dimension_count", U32,
             "partial_rotary_factor|rope_parameters.partial_rotary_factor|1*"
             "hidden_size//num_attention_heads"),
          F32("rope.freq_base", "rope_theta rope_parameters.rope_theta"),
          FILE_TYPE, OF("attention.sliding_window", U32, "sliding_window|0")),
      .only_keys = true,
      .rope_count = true },
    { .classes = "PhiForCausalLM",
      .arch = "phi2",
      .names = OVER(phi2_names),
      .keys = ROWS(
          U32("context_length", "n_positions max_position_embeddings"),
          U32("embedding_length", "hidden_size n_embd"),
          OF("feed_forward_length", U32,
             "intermediate_size|(4*hidden_size|n_embd)"),
          U32("block_count", "num_hidden_layers n_layer"),
          U32("attention.head_count", "num_attention_heads n_head"),
          U32("attention.head_count_kv",
              "num_key_value_heads num_attention_heads n_head"),
          F32("attention.layer_norm_epsilon",
              "layer_norm_epsilon layer_norm_eps"),
          THETA,
          OF("rope.dimension_count", U32,
             "partial_rotary_factor|rope_parameters.partial_rotary_factor*"
             "hidden_size//num_attention_heads"),
          FILE_TYPE, ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 0)),
      .only_keys = true,
      .rope_count = true },
    { .classes = "Starcoder2ForCausalLM",
      .arch = "starcoder2",
      .ties = true,
      .names = OVER(starcoder2_names) },
    { .classes = "StableLmForCausalLM StableLMEpochForCausalLM "
                 "LlavaStableLMEpochForCausalLM",
      .arch = "stablelm",
      .names = OVER(stablelm_names),
      .keys =
          ROWS(U32("context_length", "max_position_embeddings"),
               U32("embedding_length", "hidden_size"),
               U32("block_count", "num_hidden_layers"),
               U32("feed_forward_length", "intermediate_size"),
               OF("rope.dimension_count", U32,
                  "partial_rotary_factor|rope_pct|rope_parameters."
                  "partial_rotary_factor*" HEAD "//1"),
               THETA, U32("attention.head_count", "num_attention_heads"),
               U32("attention.head_count_kv", "num_key_value_heads"),
               OF("use_parallel_residual", BOOL, "use_parallel_residual|1"),
               F32("attention.layer_norm_epsilon", "layer_norm_eps norm_eps")),
      .only_keys = true,
      .rope_count = true },
    { .classes = "Glm4ForCausalLM Glm4vForConditionalGeneration",
      .arch = "glm4",
      .when = "rope_parameters.mrope_section.0|"
              "rope_scaling.mrope_section.0|0=0",
      .roles = GLM_ROLES,
      .names = OVER(glm4_names),
      .keys = ROWS(PART_ROT("0.5")) },
    { .classes = "Glm4vForConditionalGeneration "
                 "GlmOcrForConditionalGeneration Glm4ForCausalLM",
      .arch = "glm4",
      .roles = GLM_ROLES,
      .layers = LAYERS_NEXTN,
      .names = OVER_3(glm4v_names, gg_convert_names_nextn, glm4_names),
      .keys = ROWS(BLOCKS_NEXTN, PART_ROT("0.5"), NEXTN) },
    { .classes = "GraniteForCausalLM",
      .arch = "granite",
      .names = LLAMA,
      .keys = ROWS(GRANITE),
      .last = OF_SIZE,
      TURNED },
    { .classes = "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM",
      .arch = "granitemoe",
      .names = OVER(gg_convert_names_granitemoe),
      .keys = ROWS(GRANITE, U32("expert_shared_feed_forward_length",
                                "shared_intermediate_size")),
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
    { .classes = "CohereForCausalLM",
      .arch = "command-r",
      .ties = true,
      .names = LLAMA,
      .keys = ROWS(
          U32("context_length", "model_max_length max_position_embeddings"),
          F32("logit_scale", "logit_scale"), NO_SCALING) },
    { .classes = "Cohere2ForCausalLM",
      .arch = "cohere2",
      .ties = true,
      .names = LLAMA,
      .keys = ROWS(F32("logit_scale", "logit_scale"), WINDOW,
                   U32("vocab_size", "vocab_size"),
                   OF("rope.dimension_count", U32, "rotary_pct|1*" HEAD "//1"),
                   NO_SCALING) },
    { .classes = "Exaone4ForCausalLM Exaone4_5_ForConditionalGeneration",
      .arch = "exaone4",
      .layers = LAYERS_NEXTN,
      .drafts = "mtp.layers.",
      .names = OVER_2(exaone4_names, gg_convert_names_after),
      .keys = ROWS(BLOCKS_NEXTN, U32("vocab_size", "vocab_size"), WINDOW,
                   EACH("attention.sliding_window_pattern", BOOL,
                        "i<num_hidden_layers?sliding_window?"
                        "layer_types:sliding_attention|"
                        "sliding_window_pattern#L|((i+1)%sliding_window_"
                        "pattern>0)"),
                   OF("nextn_predict_layers", U32,
                      "num_nextn_predict_layers>0?"
                      "num_nextn_predict_layers")) },
    { .classes = "ExaoneForCausalLM",
      .arch = "exaone",
      .names = OVER(exaone_names),
      .keys = ROWS(OF("attention.layer_norm_rms_epsilon", F32,
                      "rms_norm_eps|layer_norm_epsilon"),
                   OF("rope.dimension_count", U32,
                      "partial_rotary_factor|1*" HEAD "//1")) },
    { .classes = "NemotronForCausalLM",
      .arch = "nemotron",
      .names = OVER(nemotron_names),
      .keys = ROWS(U32("vocab_size", "vocab_size"),
                   F32("attention.layer_norm_epsilon",
                       "norm_eps layer_norm_eps layer_norm_epsilon "
                       "norm_epsilon"),

                   OF("rope.dimension_count", U32,
                      "partial_rotary_factor|rope_parameters.partial_rotary_"
                      "factor*hidden_size//num_attention_heads"),
                   NO_SCALING),
      /* whatever the tokenizer's files say */
      .last = ROWS(ALWAYS("/tokenizer.ggml.padding_token_id", U32, 0),
                   ALWAYS("/tokenizer.ggml.unknown_token_id", U32, 1)) },
    { .classes = "InternLM2ForCausalLM",
      .arch = "internlm2",
      .names = OVER(internlm2_names) },
    { .classes = "MiniCPMForCausalLM",
      .arch = "minicpm",
      .names = LLAMA,
      .keys = ROWS(
          F32("embedding_scale", "scale_emb"),
          OF("residual_scale", F32, "scale_depth/sqrt(num_hidden_layers)"),
          OF("logit_scale", F32, "hidden_size/dim_model_base")),
      .turned = true },
    { .classes = "MiniCPM3ForCausalLM",
      .arch = "minicpm3",
      .names = OVER(minicpm3_names),
      .keys = ROWS(
          FILE_TYPE, U32("context_length", "max_position_embeddings"),
          U32("embedding_length", "hidden_size"),
          U32("block_count", "num_hidden_layers"),
          U32("feed_forward_length", "intermediate_size"),
          U32("attention.head_count", "num_attention_heads"),
          U32("attention.head_count_kv", "num_key_value_heads"),
          F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
          U32("vocab_size", "vocab_size"),
          U32("attention.q_lora_rank", "q_lora_rank"),
          U32("attention.kv_lora_rank", "kv_lora_rank"),
          OF("attention.key_length", U32, "qk_nope_head_dim+qk_rope_head_dim"),
          U32("rope.dimension_count", "qk_rope_head_dim")),
      .only_keys = true },
    { .classes = "HunYuanDenseV1ForCausalLM",
      .arch = "hunyuan-dense",
      .names = OVER(hunyuan_names),
      .keys = ROWS(HUNYUAN_DYNAMIC) },
    { .classes = "Ernie4_5_ForCausalLM Ernie4_5ForCausalLM",
      .arch = "ernie4_5",
      .ties = true,
      .names = OVER(ernie_names) },
    { .classes = NULL }
};
