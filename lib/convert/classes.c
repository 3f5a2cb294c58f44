/* classes.c - the rows of architectures
 *
 * Names of tensors and keys of config.json are those of the models in Hugging
 * Face's transformers (src/transformers/models/NAME/modeling_NAME.py and
 * configuration_NAME.py, 4.57); names on the other side are the rows of
 * model/weight.h and model/hparam_list.h.
 */
#include "config.h"
#include "convert/classes.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

#define L "model.layers.%."
#define B "blk.%."
#define END                                                                   \
    {                                                                         \
        NULL, NULL, 0                                                         \
    }

/* ---- names ---- */

/* What nearly all have that came after Llama. */
static const struct gg_convert_name llama_names[] = {
    { "model.embed_tokens", "token_embd", 0 },
    { "model.norm", "output_norm", 0 },
    { "lm_head", "output", 0 },
    { L "input_layernorm", B "attn_norm", 0 },
    { L "self_attn.q_proj", B "attn_q", GG_HOW_ROPE_Q },
    { L "self_attn.k_proj", B "attn_k", GG_HOW_ROPE_K },
    { L "self_attn.v_proj", B "attn_v", 0 },
    { L "self_attn.o_proj", B "attn_output", 0 },
    { L "self_attn.q_norm", B "attn_q_norm", 0 },
    { L "self_attn.k_norm", B "attn_k_norm", 0 },
    { L "post_attention_layernorm", B "ffn_norm", 0 },
    { L "mlp.gate_proj", B "ffn_gate", 0 },
    { L "mlp.up_proj", B "ffn_up", 0 },
    { L "mlp.down_proj", B "ffn_down", 0 },
    { L "self_attn.rotary_emb.inv_freq", NULL, 0 },
    { "model.rotary_emb.inv_freq", NULL, 0 },
    { "rope_freqs", "rope_freqs", 0 }, /* these three are computed */
    { "rope_factors_long", "rope_factors_long", 0 },
    { "rope_factors_short", "rope_factors_short", 0 },
    END
};

/* Mixtral's experts. */
static const struct gg_convert_name mixtral_names[] = {
    { L "block_sparse_moe.gate", B "ffn_gate_inp", 0 },
    { L "block_sparse_moe.experts.@.w1", B "ffn_gate_exps", 0 },
    { L "block_sparse_moe.experts.@.w2", B "ffn_down_exps", 0 },
    { L "block_sparse_moe.experts.@.w3", B "ffn_up_exps", 0 },
    END
};

/* Experts as Qwen, OLMoE, DeepSeek, GLM and others name them. */
static const struct gg_convert_name experts_names[] = {
    { L "mlp.gate", B "ffn_gate_inp", 0 },
    { L "mlp.gate.e_score_correction_bias", B "exp_probs_b.bias", 0 },
    { L "mlp.experts.@.gate_proj", B "ffn_gate_exps", 0 },
    { L "mlp.experts.@.up_proj", B "ffn_up_exps", 0 },
    { L "mlp.experts.@.down_proj", B "ffn_down_exps", 0 },
    { L "mlp.shared_expert_gate", B "ffn_gate_inp_shexp", GG_HOW_SQUEEZE },
    { L "mlp.shared_expert.gate_proj", B "ffn_gate_shexp", 0 },
    { L "mlp.shared_expert.up_proj", B "ffn_up_shexp", 0 },
    { L "mlp.shared_expert.down_proj", B "ffn_down_shexp", 0 },
    { L "mlp.shared_experts.gate_proj", B "ffn_gate_shexp", 0 },
    { L "mlp.shared_experts.up_proj", B "ffn_up_shexp", 0 },
    { L "mlp.shared_experts.down_proj", B "ffn_down_shexp", 0 },
    END
};

/* Gemma's norms multiply by 1 + weight. */
static const struct gg_convert_name gemma_names[] = {
    { "model.norm", "output_norm", GG_HOW_PLUS_1 },
    { L "input_layernorm", B "attn_norm", GG_HOW_PLUS_1 },
    { L "post_attention_layernorm", B "ffn_norm", GG_HOW_PLUS_1 },
    { "lm_head", NULL, 0 }, /* it is the embedding's */
    END
};
static const struct gg_convert_name gemma2_names[] = {
    { "model.norm", "output_norm", GG_HOW_PLUS_1 },
    { L "input_layernorm", B "attn_norm", GG_HOW_PLUS_1 },
    { L "post_attention_layernorm", B "post_attention_norm", GG_HOW_PLUS_1 },
    { L "pre_feedforward_layernorm", B "ffn_norm", GG_HOW_PLUS_1 },
    { L "post_feedforward_layernorm", B "post_ffw_norm", GG_HOW_PLUS_1 },
    { L "self_attn.q_norm", B "attn_q_norm", GG_HOW_PLUS_1 },
    { L "self_attn.k_norm", B "attn_k_norm", GG_HOW_PLUS_1 },
    { "lm_head", NULL, 0 },
    END
};

/* Norms after the branches. */
static const struct gg_convert_name olmo2_names[] = {
    { L "post_attention_layernorm", B "post_attention_norm", 0 },
    { L "post_feedforward_layernorm", B "post_ffw_norm", 0 },
    END
};

static const struct gg_convert_name seed_oss_names[] = {
    { L "post_attention_layernorm", B "post_attention_norm", 0 }, END
};

static const struct gg_convert_name phi3_names[] = {
    { L "self_attn.qkv_proj", B "attn_qkv", 0 },
    { L "mlp.gate_up_proj", B "ffn_up", 0 }, /* both, as one */
    END
};

static const struct gg_convert_name starcoder2_names[] = {
    { L "mlp.c_fc", B "ffn_up", 0 }, { L "mlp.c_proj", B "ffn_down", 0 }, END
};

static const struct gg_convert_name phi2_names[] = {
    { "model.final_layernorm", "output_norm", 0 },
    { L "self_attn.dense", B "attn_output", 0 },
    { L "mlp.fc1", B "ffn_up", 0 },
    { L "mlp.fc2", B "ffn_down", 0 },
    END
};

static const struct gg_convert_name granitemoe_names[] = {
    { L "block_sparse_moe.router.layer", B "ffn_gate_inp", 0 },
    { L "block_sparse_moe.input_linear", B "ffn_gate_exps", GG_HOW_HALF_1 },
    { L "block_sparse_moe.input_linear", B "ffn_up_exps", GG_HOW_HALF_2 },
    { L "block_sparse_moe.output_linear", B "ffn_down_exps", 0 },
    { L "shared_mlp.input_linear", B "ffn_gate_shexp", GG_HOW_HALF_1 },
    { L "shared_mlp.input_linear", B "ffn_up_shexp", GG_HOW_HALF_2 },
    { L "shared_mlp.output_linear", B "ffn_down_shexp", 0 },
    END
};

/* Conv1D has its matrices the other way round. */
#define G2(P)                                                                 \
    { P "wte", "token_embd", 0 }, { P "wpe", "position_embd", 0 },            \
        { P "ln_f", "output_norm", 0 }, { P "h.%.ln_1", B "attn_norm", 0 },   \
        { P "h.%.attn.c_attn", B "attn_qkv", GG_HOW_TURN },                   \
        { P "h.%.attn.c_proj", B "attn_output", GG_HOW_TURN },                \
        { P "h.%.ln_2", B "ffn_norm", 0 },                                    \
        { P "h.%.mlp.c_fc", B "ffn_up", GG_HOW_TURN },                        \
        { P "h.%.mlp.c_proj", B "ffn_down", GG_HOW_TURN },                    \
        { P "h.%.attn.bias", NULL, 0 },                                       \
    {                                                                         \
        P "h.%.attn.masked_bias", NULL, 0                                     \
    }
static const struct gg_convert_name gpt2_names[] = {
    /* whole names first: a mask is not a bias of c_attn */
    G2("transformer."),
    G2(""),
    { "lm_head", "output", 0 },
    END
};

static const struct gg_convert_name mamba_names[] = {
    { "backbone.embeddings", "token_embd", 0 },
    { "backbone.norm_f", "output_norm", 0 },
    { "lm_head", "output", 0 },
    { "backbone.layers.%.norm", B "attn_norm", 0 },
    { "backbone.layers.%.mixer.in_proj", B "ssm_in", 0 },
    { "backbone.layers.%.mixer.conv1d", B "ssm_conv1d", GG_HOW_SQUEEZE },
    { "backbone.layers.%.mixer.x_proj", B "ssm_x", 0 },
    { "backbone.layers.%.mixer.dt_proj", B "ssm_dt", 0 },
    { "backbone.layers.%.mixer.A_log", B "ssm_a", GG_HOW_NEG_EXP },
    { "backbone.layers.%.mixer.D", B "ssm_d", 0 },
    { "backbone.layers.%.mixer.out_proj", B "ssm_out", 0 },
    END
};

/* ---- keys ---- */

#define NO_KEY                                                                \
    {                                                                         \
        NULL, NULL, 0, 0                                                      \
    }
#define ROWS(...)                                                             \
    (const struct gg_convert_key[])                                           \
    {                                                                         \
        __VA_ARGS__, NO_KEY                                                   \
    }
#define OR                       GG_CONVERT_KEY
#define U32(KEY, HF)             OR(KEY, HF, U32, 0)
#define F32(KEY, HF)             OR(KEY, HF, F32, 0)
#define BOOL(KEY, HF)            OR(KEY, HF, BOOL, 0)
#define ALWAYS(KEY, KIND, VALUE) OR(KEY, NULL, KIND, VALUE)

#define WINDOW    U32("attention.sliding_window", "sliding_window")
#define EXPERT_FF U32("expert_feed_forward_length", "moe_intermediate_size")
#define GRANITE                                                               \
    F32("attention.scale", "attention_multiplier"),                           \
        F32("embedding_scale", "embedding_multiplier"),                       \
        F32("residual_scale", "residual_multiplier"),                         \
        F32("logit_scale", "logits_scaling")

/* ---- rows ---- */

#define LLAMA                                                                 \
    {                                                                         \
        llama_names                                                           \
    }
#define OVER(LIST)                                                            \
    {                                                                         \
        LIST, llama_names                                                     \
    }

static const struct gg_convert_arch rows[] = {
    { .classes = "LlamaForCausalLM LLaMAForCausalLM MistralForCausalLM",
      .arch = "llama",
      .names = LLAMA,
      .turned = true,
      .rope_count = true,
      .vocab_size = true },
    { .classes = "MixtralForCausalLM",
      .arch = "llama",
      .names = OVER(mixtral_names),
      .turned = true,
      .rope_count = true,
      .vocab_size = true },
    { .classes = "Qwen2ForCausalLM", .arch = "qwen2", .names = LLAMA },
    { .classes = "Qwen2MoeForCausalLM",
      .arch = "qwen2moe",
      .names = OVER(experts_names),
      .keys = ROWS(U32("expert_count", "num_experts"), EXPERT_FF,
                   U32("expert_shared_feed_forward_length",
                       "shared_expert_intermediate_size")) },
    { .classes = "Qwen3ForCausalLM", .arch = "qwen3", .names = LLAMA },
    { .classes = "Qwen3MoeForCausalLM",
      .arch = "qwen3moe",
      .names = OVER(experts_names),
      .keys = ROWS(U32("expert_count", "num_experts"), EXPERT_FF) },
    { .classes = "OlmoeForCausalLM",
      .arch = "olmoe",
      .names = OVER(experts_names) },
    { .classes = "Olmo2ForCausalLM",
      .arch = "olmo2",
      .names = OVER(olmo2_names) },
    { .classes = "GemmaForCausalLM",
      .arch = "gemma",
      .names = OVER(gemma_names) },
    { .classes = "Gemma2ForCausalLM",
      .arch = "gemma2",
      .names = OVER(gemma2_names),
      .keys = ROWS(F32("attn_logit_softcapping", "attn_logit_softcapping"),
                   F32("final_logit_softcapping", "final_logit_softcapping"),
                   WINDOW) },
    { .classes = "Gemma3ForCausalLM Gemma3ForConditionalGeneration",
      .arch = "gemma3",
      .names = OVER(gemma2_names),
      .keys = ROWS(
          OR("context_length", "max_position_embeddings", U32, 131072),
          OR("attention.head_count", "num_attention_heads", U32, 8),
          OR("attention.head_count_kv", "num_key_value_heads", U32, 4),
          OR("attention.key_length", "head_dim", U32, 256),
          OR("attention.value_length", "head_dim", U32, 256),
          OR("attention.layer_norm_rms_epsilon", "rms_norm_eps", F32, 1e-6),
          OR("rope.freq_base", "rope_theta", F32, 1e6), WINDOW,
          F32("final_logit_softcapping", "final_logit_softcapping")) },
    { .classes = "Phi3ForCausalLM",
      .arch = "phi3",
      .names = OVER(phi3_names),
      .keys = ROWS(WINDOW),
      .rope_count = true },
    { .classes = "PhiForCausalLM", .arch = "phi2", .names = OVER(phi2_names) },
    { .classes = "Starcoder2ForCausalLM",
      .arch = "starcoder2",
      .names = OVER(starcoder2_names) },
    { .classes = "StableLmForCausalLM",
      .arch = "stablelm",
      .names = LLAMA,
      .keys = ROWS(BOOL("use_parallel_residual", "use_parallel_residual")),
      .rope_count = true },
    { .classes = "GraniteForCausalLM",
      .arch = "granite",
      .names = LLAMA,
      .keys = ROWS(GRANITE),
      .turned = true,
      .rope_count = true,
      .vocab_size = true },
    { .classes = "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM",
      .arch = "granitemoe",
      .names = OVER(granitemoe_names),
      .keys = ROWS(GRANITE, U32("expert_shared_feed_forward_length",
                                "shared_intermediate_size")),
      .turned = true,
      .rope_count = true,
      .vocab_size = true },
    { .classes = "SmolLM3ForCausalLM",
      .arch = "smollm3",
      .names = LLAMA,
      .turned = true,
      .rope_count = true,
      .vocab_size = true },
    { .classes = "SeedOssForCausalLM",
      .arch = "seed_oss",
      .names = OVER(seed_oss_names) },
    { .classes = "ArceeForCausalLM",
      .arch = "arcee",
      .names = LLAMA,
      .turned = true,
      .rope_count = true,
      .vocab_size = true },
    { .classes = "CohereForCausalLM",
      .arch = "command-r",
      .names = LLAMA,
      .keys = ROWS(F32("logit_scale", "logit_scale")) },
    { .classes = "Cohere2ForCausalLM",
      .arch = "cohere2",
      .names = LLAMA,
      .keys = ROWS(F32("logit_scale", "logit_scale"), WINDOW),
      .rope_count = true,
      .vocab_size = true },
    { .classes = "Exaone4ForCausalLM",
      .arch = "exaone4",
      .names = OVER(olmo2_names),
      .keys = ROWS(WINDOW) },
    { .classes = "GPT2LMHeadModel", .arch = "gpt2", .names = { gpt2_names } },
    { .classes = "MambaForCausalLM",
      .arch = "mamba",
      .names = { mamba_names },
      .keys = ROWS(U32("ssm.conv_kernel", "conv_kernel d_conv"),
                   U32("ssm.inner_size", "intermediate_size d_inner"),
                   U32("ssm.state_size", "state_size d_state"),
                   U32("ssm.time_step_rank", "time_step_rank dt_rank"),
                   ALWAYS("feed_forward_length", U32, 0),
                   ALWAYS("attention.head_count", U32, 0),
                   ALWAYS("context_length", U32, 1 << 20),
                   F32("attention.layer_norm_rms_epsilon",
                       "layer_norm_epsilon rms_norm_eps")) },
};

const struct gg_convert_arch *gg_convert_arch_row(size_t n)
{
    return n < GG_LEN(rows) ? &rows[n] : NULL;
}

const struct gg_convert_arch *gg_convert_arch_find(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(rows); i++)
        for (const char *p = rows[i].classes; *p;) {
            const size_t n = strcspn(p, " ");
            if (n == name.size && !memcmp(p, name.data, n))
                return &rows[i];
            p += n + (p[n] == ' ');
        }
    return NULL;
}
