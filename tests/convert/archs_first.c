/* SPDX-License-Identifier: MIT */
/* archs_first.c - llama and those that are built like it, and others */
#include "config.h"
#include "tests/convert/archs.h"

const struct arch archs_first[] = {
    { .class_name = "LlamaForCausalLM",
      "llama",
      SIZES,
      TOP HEAD QKV NORMS MLP L "self_attn.rotary_emb.inv_freq 4\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired },
        { B "attn_k.weight", L "self_attn.k_proj.weight", paired },
        { B "attn_v.weight", L "self_attn.v_proj.weight", same },
        { "output.weight", "lm_head.weight", same },
        { B "ffn_norm.weight", L "post_attention_layernorm.weight", same } } },
    { .class_name = "MistralForCausalLM",
      "llama",
      SIZES,
      TOP HEAD QKV NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } } },
    { .class_name = "MixtralForCausalLM",
      "llama",
      SIZES ",\"num_local_experts\":3,\"num_experts_per_tok\":2",
      TOP HEAD QKV NORMS L "block_sparse_moe.gate.weight 3 32\n" L
                           "block_sparse_moe.experts.@.w1.weight 48 32\n" L
                           "block_sparse_moe.experts.@.w2.weight 32 48\n" L
                           "block_sparse_moe.experts.@.w3.weight 48 32\n",
      { { B "ffn_gate_exps.weight", L "block_sparse_moe.experts.@.w1.weight",
          same },
        { B "ffn_down_exps.weight", L "block_sparse_moe.experts.@.w2.weight",
          same },
        { B "ffn_up_exps.weight", L "block_sparse_moe.experts.@.w3.weight",
          same },
        { B "attn_k.weight", L "self_attn.k_proj.weight", paired } } },
    { .class_name = "Qwen2ForCausalLM",
      "qwen2",
      SIZES,
      TOP QKV QKV_B NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { B "attn_q.bias", L "self_attn.q_proj.bias", same } } },
    { .class_name = "Qwen2MoeForCausalLM",
      "qwen2moe",
      SIZES MOE_SIZES ",\"shared_expert_intermediate_size\":40",
      TOP HEAD QKV QKV_B NORMS MOE L
      "mlp.shared_expert_gate.weight 1 32\n" L
      "mlp.shared_expert.gate_proj.weight 40 32\n" L
      "mlp.shared_expert.up_proj.weight 40 32\n" L
      "mlp.shared_expert.down_proj.weight 32 40\n",
      { MOE_NAMES,
        { B "ffn_gate_inp_shexp.weight", L "mlp.shared_expert_gate.weight",
          same } } },
    { .class_name = "Qwen3ForCausalLM",
      "qwen3",
      SIZES ",\"head_dim\":8",
      TOP HEAD QKV QK_NORM NORMS MLP,
      { { B "attn_q_norm.weight", L "self_attn.q_norm.weight", same } } },
    { .class_name = "Qwen3MoeForCausalLM",
      "qwen3moe",
      SIZES MOE_SIZES ",\"head_dim\":8",
      TOP HEAD QKV QK_NORM NORMS MOE,
      { MOE_NAMES } },
    { .class_name = "OlmoeForCausalLM",
      "olmoe",
      SIZES ",\"num_experts\":3,\"num_experts_per_tok\":2",
      TOP HEAD QKV NORMS L
      "self_attn.q_norm.weight 32\n" L "self_attn.k_norm.weight 16\n" L
      "mlp.gate.weight 3 32\n" L "mlp.experts.@.gate_proj.weight 48 32\n" L
      "mlp.experts.@.up_proj.weight 48 32\n" L
      "mlp.experts.@.down_proj.weight 32 48\n",
      { MOE_NAMES } },
    { .class_name = "Olmo2ForCausalLM",
      "olmo2",
      SIZES,
      TOP HEAD QKV POST MLP L "self_attn.q_norm.weight 32\n" L
                              "self_attn.k_norm.weight 16\n",
      { { B "post_ffw_norm.weight", L "post_feedforward_layernorm.weight",
          same } } },
    { .class_name = "GemmaForCausalLM",
      "gemma",
      SIZES ",\"head_dim\":8",
      TOP QKV NORMS MLP,
      { { B "attn_norm.weight", L "input_layernorm.weight", plus_1 },
        { B "ffn_norm.weight", L "post_attention_layernorm.weight", plus_1 },
        { "output_norm.weight", "model.norm.weight", plus_1 },
        { "token_embd.weight", "model.embed_tokens.weight", same } },
      { { "/tokenizer.ggml.prefix_token_id", "67" },
        { "/tokenizer.ggml.fsep_token_id", "70" } } },
    { .class_name = "Gemma2ForCausalLM",
      "gemma2",
      SIZES ",\"head_dim\":8,\"sliding_window\":16,\"attn_logit_softcapping\":"
            "50.0,\"final_logit_softcapping\":30.0",
      TOP QKV L "input_layernorm.weight 32\n" POST L
                "pre_feedforward_layernorm.weight 32\n" MLP,
      { { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          plus_1 },
        { B "ffn_norm.weight", L "pre_feedforward_layernorm.weight",
          plus_1 } } },
    { .class_name = "Gemma3ForCausalLM",
      "gemma3",
      SIZES ",\"head_dim\":8,\"sliding_window\":16",
      TOP QKV QK_NORM L "input_layernorm.weight 32\n" POST L
                        "pre_feedforward_layernorm.weight 32\n" MLP,
      { { B "attn_k_norm.weight", L "self_attn.k_norm.weight", plus_1 } } },
    { .class_name = "Phi3ForCausalLM",
      "phi3",
      SIZES ",\"sliding_window\":32",
      TOP HEAD NORMS L
      "self_attn.qkv_proj.weight 64 32\n" L "self_attn.o_proj.weight 32 32\n" L
      "mlp.gate_up_proj.weight 96 32\n" L "mlp.down_proj.weight 32 48\n",
      { { B "attn_qkv.weight", L "self_attn.qkv_proj.weight", same },
        { B "ffn_up.weight", L "mlp.gate_up_proj.weight", same } } },
    { .class_name = "PhiForCausalLM",
      "phi2",
      SIZES ",\"layer_norm_eps\":1e-5,\"partial_rotary_factor\":0.5",
      "model.embed_tokens.weight 260 32\n" HEAD
      "lm_head.bias 260\nmodel.final_layernorm.weight 32\n"
      "model.final_layernorm.bias 32\n" L "input_layernorm.weight 32\n" L
      "input_layernorm.bias 32\n" L "self_attn.q_proj.weight 32 32\n" L
      "self_attn.k_proj.weight 16 32\n" L "self_attn.v_proj.weight 16 32\n" L
      "self_attn.dense.weight 32 32\n" L "self_attn.q_proj.bias 32\n" L
      "self_attn.k_proj.bias 16\n" L "self_attn.v_proj.bias 16\n" L
      "self_attn.dense.bias 32\n" L "mlp.fc1.weight 48 32\n" L
      "mlp.fc1.bias 48\n" L "mlp.fc2.weight 32 48\n" L "mlp.fc2.bias 32\n",
      { { B "ffn_up.bias", L "mlp.fc1.bias", same },
        { B "attn_output.weight", L "self_attn.dense.weight", same } } },
    { .class_name = "Starcoder2ForCausalLM",
      "starcoder2",
      SIZES ",\"norm_epsilon\":1e-5",
      TOP "model.norm.bias 32\n" QKV QKV_B NORMS L
          "input_layernorm.bias 32\n" L "post_attention_layernorm.bias 32\n" L
          "self_attn.o_proj.bias 32\n" L "mlp.c_fc.weight 48 32\n" L
          "mlp.c_fc.bias 48\n" L "mlp.c_proj.weight 32 48\n" L
          "mlp.c_proj.bias 32\n",
      { { B "ffn_down.weight", L "mlp.c_proj.weight", same } } },
    { .class_name = "StableLmForCausalLM",
      "stablelm",
      SIZES ",\"layer_norm_eps\":1e-5,\"partial_rotary_factor\":0.25,"
            "\"use_parallel_residual\":false",
      TOP HEAD "model.norm.bias 32\n" QKV NORMS L "input_layernorm.bias 32\n" L
               "post_attention_layernorm.bias 32\n" MLP,
      { { B "attn_norm.bias", L "input_layernorm.bias", same } } },
    { .class_name = "GraniteForCausalLM",
      "granite",
      SIZES ",\"attention_multiplier\":0.1,\"embedding_multiplier\":12.0,"
            "\"residual_multiplier\":0.2,\"logits_scaling\":8.0",
      TOP QKV NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } } },
    { .class_name = "GraniteMoeForCausalLM",
      "granitemoe",
      SIZES ",\"attention_multiplier\":0.1,\"embedding_multiplier\":12.0,"
            "\"residual_multiplier\":0.2,\"logits_scaling\":8.0,"
            "\"num_local_experts\":3,\"num_experts_per_tok\":2",
      TOP QKV NORMS L "block_sparse_moe.router.layer.weight 3 32\n" L
                      "block_sparse_moe.input_linear.weight 3 96 32\n" L
                      "block_sparse_moe.output_linear.weight 3 32 48\n",
      { { B "ffn_gate_exps.weight", L "block_sparse_moe.input_linear.weight",
          half_1 },
        { B "ffn_up_exps.weight", L "block_sparse_moe.input_linear.weight",
          half_2 } } },
    { .class_name = "SmolLM3ForCausalLM",
      "smollm3",
      SIZES,
      TOP QKV NORMS MLP,
      { { B "attn_k.weight", L "self_attn.k_proj.weight", paired } } },
    { .class_name = "SeedOssForCausalLM",
      "seed_oss",
      SIZES ",\"head_dim\":8",
      TOP HEAD QKV QKV_B NORMS MLP,
      { { NULL, NULL, NULL } } },
    { .class_name = "ArceeForCausalLM",
      "arcee",
      SIZES,
      TOP HEAD QKV NORMS L "mlp.up_proj.weight 48 32\n" L
                           "mlp.down_proj.weight 32 48\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } } },
    { .class_name = "CohereForCausalLM",
      "command-r",
      SIZES ",\"layer_norm_eps\":1e-5,\"logit_scale\":0.0625",
      TOP QKV L "input_layernorm.weight 32\n" MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same } } },
    { .class_name = "Cohere2ForCausalLM",
      "cohere2",
      SIZES ",\"layer_norm_eps\":1e-5,\"logit_scale\":0.0625,"
            "\"sliding_window\":16,\"head_dim\":8",
      TOP QKV L "input_layernorm.weight 32\n" MLP,
      { { NULL, NULL, NULL } } },
    { .class_name = "Exaone4ForCausalLM",
      "exaone4",
      SIZES ",\"sliding_window\":16",
      TOP HEAD QKV QK_NORM POST MLP,
      { { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          same } } },
    { .class_name = "GPT2LMHeadModel",
      "gpt2",
      "\"n_embd\":32,\"n_layer\":2,\"n_head\":4,\"n_ctx\":64,\"n_positions\":"
      "64,\"n_inner\":48,\"layer_norm_epsilon\":1e-5,\"vocab_size\":260",
      "transformer.wte.weight 260 32\ntransformer.wpe.weight 64 32\n"
      "transformer.ln_f.weight 32\ntransformer.ln_f.bias 32\n"
      "transformer.h.%.ln_1.weight 32\ntransformer.h.%.ln_1.bias 32\n"
      "transformer.h.%.ln_2.weight 32\ntransformer.h.%.ln_2.bias 32\n"
      "transformer.h.%.attn.bias 1 1 64 64\n"
      "transformer.h.%.attn.c_attn.weight 32 96\n"
      "transformer.h.%.attn.c_attn.bias 96\n"
      "transformer.h.%.attn.c_proj.weight 32 32\n"
      "transformer.h.%.attn.c_proj.bias 32\n"
      "transformer.h.%.mlp.c_fc.weight 32 48\n"
      "transformer.h.%.mlp.c_fc.bias 48\n"
      "transformer.h.%.mlp.c_proj.weight 48 32\n"
      "transformer.h.%.mlp.c_proj.bias 32\n",
      { { B "attn_qkv.weight", "transformer.h.%.attn.c_attn.weight", turned },
        { B "attn_qkv.bias", "transformer.h.%.attn.c_attn.bias", same },
        { B "ffn_down.weight", "transformer.h.%.mlp.c_proj.weight",
          turned } } },
    { .class_name = "MambaForCausalLM",
      "mamba",
      "\"hidden_size\":32,\"num_hidden_layers\":2,\"vocab_size\":260,"
      "\"conv_kernel\":4,\"intermediate_size\":64,\"state_size\":8,"
      "\"time_step_rank\":6,\"layer_norm_epsilon\":1e-5",
      "backbone.embeddings.weight 260 32\nbackbone.norm_f.weight 32\n"
      "backbone.layers.%.norm.weight 32\n"
      "backbone.layers.%.mixer.in_proj.weight 128 32\n"
      "backbone.layers.%.mixer.conv1d.weight 64 1 4\n"
      "backbone.layers.%.mixer.conv1d.bias 64\n"
      "backbone.layers.%.mixer.x_proj.weight 22 64\n"
      "backbone.layers.%.mixer.dt_proj.weight 64 6\n"
      "backbone.layers.%.mixer.dt_proj.bias 64\n"
      "backbone.layers.%.mixer.A_log 64 8\nbackbone.layers.%.mixer.D 64\n"
      "backbone.layers.%.mixer.out_proj.weight 32 64\n",
      { { B "ssm_a", "backbone.layers.%.mixer.A_log", neg_exp },
        { B "ssm_d", "backbone.layers.%.mixer.D", same },
        { B "ssm_conv1d.weight", "backbone.layers.%.mixer.conv1d.weight",
          same } } },
    { .class_name = NULL },
};
