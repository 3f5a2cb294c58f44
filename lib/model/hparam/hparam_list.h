/* SPDX-License-Identifier: MIT */
/* hparam_list.h - table of hyperparameters, one row each */
#ifndef GG_MODEL_HPARAM_HPARAM_LIST_H
#define GG_MODEL_HPARAM_HPARAM_LIST_H

#include <math.h>

/* X(FIELD, KIND, WHERE, KEY, MIN, MAX, MOST, FLAGS, JSON, LABEL, HF)
 *
 * FIELD  member of struct gg_hparams, or of struct gg_model_layer
 * WHERE  MODEL: in struct gg_hparams. LAYER: in struct gg_model_layer; the file
 *        has one value for all layers, or an array with one for each.
 * KIND   UINT, FLOAT, BOOL, TEXT. FLAGS: a number, or a bool or an array of
 *        bools; the array may leave out nextn layers. SEEN: only the presence
 *        of the key is read.
 * KEY    name of the key after "ARCH."; with '/' in front the whole name
 * MIN, MAX  range of a number, or of each number of an array
 * MOST   another member of struct gg_hparams that the value must not exceed, if
 *        it is known; or none
 * FLAGS  of enum gguf_hparam_flags without their prefix: ALWAYS, MEMORY,
 *        SUMMARY; or 0
 * JSON   name in the JSON summary, or NULL
 * LABEL  name for people
 * HF     name in config.json of Hugging Face's transformers, or NULL
 *
 * The summary shows rows with SUMMARY in this order. */
#define GG_HPARAM_LIST(X)                                                     \
    GG_HPARAMS_MAIN(X)                                                        \
    GG_HPARAMS_ATTN(X)                                                        \
    GG_HPARAMS_ROPE(X)                                                        \
    GG_HPARAMS_EXPERT(X)                                                      \
    GG_HPARAMS_RECUR(X)                                                       \
    GG_HPARAMS_ODD(X)

/* Limits of numbers. GG_WIDTH_MAX: widths; more than any model has, and
 * products of two fit easily into 64 bits. GG_SPAN_MAX: numbers of tokens and
 * positions. */
#define GG_WIDTH_MAX (1u << 26)
#define GG_SPAN_MAX  INT32_MAX
/* Most tokens of an n-gram, and heads of all sizes of n-grams together. */
#define GG_NGRAM_MAX   8
#define GG_NGRAM_HEADS 64

#define GG_HPARAMS_MAIN(X)                                                    \
    X(n_ctx_train, COUNT, MODEL, "context_length", 1, 0, none,                \
      ALWAYS | SUMMARY, "context_length", "context length",                   \
      "max_position_embeddings")                                              \
    X(n_layer, UINT, MODEL, "block_count", 1, GG_SPAN_MAX, n_tensors,         \
      ALWAYS | SUMMARY, "block_count", "layers", "num_hidden_layers")         \
    X(n_embd, UINT, MODEL, "embedding_length", 1, GG_WIDTH_MAX, none,         \
      ALWAYS | SUMMARY, "embedding_length", "embedding width", "hidden_size") \
    X(norm_rms_eps, FLOAT, MODEL, "attention.layer_norm_rms_epsilon", 0, 1,   \
      none, ALWAYS, NULL, "epsilon of RMS norms", "rms_norm_eps")             \
    X(norm_eps, FLOAT, MODEL, "attention.layer_norm_epsilon", 0, 1, none,     \
      ALWAYS, NULL, "epsilon of layer norms", "layer_norm_eps")               \
    X(n_ff, UINT, LAYER, "feed_forward_length", 1, GG_WIDTH_MAX, none,        \
      ALWAYS | SUMMARY, "feed_forward_length", "feed-forward width",          \
      "intermediate_size")                                                    \
    X(n_head, UINT, LAYER, "attention.head_count", 1, GG_WIDTH_MAX, n_embd,   \
      ALWAYS | SUMMARY, "head_count", "attention heads",                      \
      "num_attention_heads")                                                  \
    X(n_head_kv, UINT, LAYER, "attention.head_count_kv", 1, GG_WIDTH_MAX,     \
      n_embd, SUMMARY, "head_count_kv", "key/value heads",                    \
      "num_key_value_heads")                                                  \
    X(dim_k, UINT, MODEL, "attention.key_length", 1, 1 << 16, none, SUMMARY,  \
      "key_length", "key width of a head", "head_dim")                        \
    X(dim_v, UINT, MODEL, "attention.value_length", 1, 1 << 16, none,         \
      SUMMARY, "value_length", "value width of a head", "v_head_dim")         \
    X(n_window, UINT, MODEL, "attention.sliding_window", 0, GG_SPAN_MAX,      \
      none, MEMORY | SUMMARY, "sliding_window", "sliding window",             \
      "sliding_window")                                                       \
    X(n_rot, UINT, MODEL, "rope.dimension_count", 2, GG_WIDTH_MAX, none,      \
      SUMMARY, "rope_dimension_count", "rotary dimensions", NULL)             \
    X(rope_base, FLOAT, MODEL, "rope.freq_base", 1, 1e15, none, SUMMARY,      \
      "rope_freq_base", "rotary base", "rope_theta")                          \
    X(rope_scaling, TEXT, MODEL, "rope.scaling.type", 0, 0, none, SUMMARY,    \
      "rope_scaling_type", "rotary scaling", "rope_scaling.rope_type")        \
    X(n_expert, UINT, MODEL, "expert_count", 0, 1 << 16, none, SUMMARY,       \
      "expert_count", "experts", "num_local_experts")                         \
    X(n_expert_used, UINT, LAYER, "expert_used_count", 0, 1 << 16, none,      \
      SUMMARY, "expert_used_count", "experts in use", "num_experts_per_tok")  \
    X(n_shared, UINT, MODEL, "expert_shared_count", 0, 1 << 16, none,         \
      SUMMARY, "expert_shared_count", "shared experts", "n_shared_experts")   \
    X(ssm_state, UINT, MODEL, "ssm.state_size", 1, GG_WIDTH_MAX, none,        \
      MEMORY | SUMMARY, "ssm_state_size", "state-space width", "state_size")

#define GG_HPARAMS_ATTN(X)                                                    \
    X(n_vocab_key, UINT, MODEL, "vocab_size", 1, INT32_MAX, none, 0, NULL,    \
      "vocabulary size", "vocab_size")                                        \
    X(causal, BOOL, MODEL, "attention.causal", 0, 1, none, 0, NULL,           \
      "causal attention", NULL)                                               \
    X(attn_scale, FLOAT, MODEL, "attention.scale", 0, 1e6, none, 0, NULL,     \
      "attention scale", "attention_multiplier")                              \
    X(attn_out_scale, FLOAT, MODEL, "attention.output_scale", 0, 1e6, none,   \
      0, NULL, "attention scale", NULL)                                       \
    X(attn_softcap, FLOAT, MODEL, "attn_logit_softcapping", 0, 1e6, none, 0,  \
      NULL, "soft cap of attention scores", "attn_logit_softcapping")         \
    X(clamp_qkv, FLOAT, MODEL, "attention.clamp_kqv", 0, 1e9, none, 0, NULL,  \
      "clamp of queries, keys and values", "clip_qkv")                        \
    X(max_alibi, FLOAT, MODEL, "attention.max_alibi_bias", 0, 1e6, none, 0,   \
      NULL, "maximum ALiBi bias", "alibi_bias_max")                           \
    X(value_scale, FLOAT, MODEL, "attention.value_scale", 0, 1e6, none, 0,    \
      NULL, "scale of attention's result", NULL)                              \
    X(n_norm_groups, UINT, MODEL, "attention.group_norm_groups", 0,           \
      GG_WIDTH_MAX, none, 0, NULL, "groups of norms", "layernorm_num_groups") \
    X(n_value_expert, UINT, MODEL, "attention.value_expert_count", 0,         \
      1 << 16, none, 0, NULL, "experts of values", "mova_num_experts")        \
    X(n_value_used, UINT, MODEL, "attention.value_expert_used_count", 0,      \
      1 << 16, none, 0, NULL, "experts of values in use",                     \
      "mova_num_experts_per_tok")                                             \
    X(temp_scale, FLOAT, MODEL, "attention.temperature_scale", 0, 1e6, none,  \
      0, NULL, "temperature scale", NULL)                                     \
    X(temp_length, UINT, MODEL, "attention.temperature_length", 0,            \
      GG_SPAN_MAX, none, 0, NULL, "temperature length", NULL)                 \
    X(window_pattern, FLAGS, LAYER, "attention.sliding_window_pattern", 0,    \
      GG_SPAN_MAX, none, 0, NULL, "sliding window pattern",                   \
      "sliding_window_pattern")                                               \
    X(rope_pattern, FLAGS, LAYER, "attention.rope_pattern", 0, 1, none, 0,    \
      NULL, "layers with rotary embedding", NULL)                             \
    X(dim_k_swa, UINT, MODEL, "attention.key_length_swa", 1, 1 << 16, none,   \
      MEMORY, NULL, "key width in windows", NULL)                             \
    X(dim_v_swa, UINT, MODEL, "attention.value_length_swa", 1, 1 << 16, none, \
      MEMORY, NULL, "value width in windows", NULL)                           \
    X(n_shared_kv, UINT, MODEL, "attention.shared_kv_layers", 0, GG_SPAN_MAX, \
      n_layer, MEMORY, NULL, "layers with shared keys and values",            \
      "num_kv_shared_layers")                                                 \
    X(dim_k_mla, UINT, MODEL, "attention.key_length_mla", 1, 1 << 16, none,   \
      0, NULL, "key width of MLA", NULL)                                      \
    X(dim_v_mla, UINT, MODEL, "attention.value_length_mla", 1, 1 << 16, none, \
      0, NULL, "value width of MLA", NULL)                                    \
    X(dim_k_mla_swa, UINT, MODEL, "attention.key_length_mla_swa", 1, 1 << 16, \
      none, 0, NULL, "key width of MLA in windows", NULL)                     \
    X(dim_v_mla_swa, UINT, MODEL, "attention.value_length_mla_swa", 1,        \
      1 << 16, none, 0, NULL, "value width of MLA in windows", NULL)          \
    X(rank_kv_swa, UINT, MODEL, "attention.kv_lora_rank_swa", 1,              \
      GG_WIDTH_MAX, none, MEMORY, NULL, "rank of keys and values in windows", \
      NULL)                                                                   \
    X(rank_kv, UINT, MODEL, "attention.kv_lora_rank", 1, GG_WIDTH_MAX, none,  \
      MEMORY, NULL, "rank of keys and values", "kv_lora_rank")                \
    X(rank_q, UINT, MODEL, "attention.q_lora_rank", 0, GG_WIDTH_MAX, none, 0, \
      NULL, "rank of queries", "q_lora_rank")                                 \
    X(n_idx, UINT, MODEL, "attention.indexer.head_count", 1, 1 << 16, none,   \
      0, NULL, "heads of the indexer", "index_n_heads")                       \
    X(dim_idx, UINT, MODEL, "attention.indexer.key_length", 1, 1 << 16, none, \
      0, NULL, "width of the indexer's heads", "index_head_dim")              \
    X(idx_top, UINT, MODEL, "attention.indexer.top_k", 0, GG_SPAN_MAX, none,  \
      0, NULL, "top k of the indexer", "index_topk")                          \
    X(idx_block, UINT, MODEL, "attention.indexer.block_size", 1, GG_SPAN_MAX, \
      none, 0, NULL, "block of the indexer", NULL)                            \
    X(idx_local, UINT, MODEL, "attention.indexer.local_blocks", 0,            \
      GG_SPAN_MAX, none, 0, NULL, "local blocks of the indexer", NULL)        \
    X(idx_types, FLAGS, LAYER, "attention.indexer.types", 0, 1, none, 0,      \
      NULL, "layers with an indexer", NULL)                                   \
    X(out_groups, UINT, MODEL, "attention.output_group_count", 1, 1 << 16,    \
      none, 0, NULL, "groups of the output", NULL)                            \
    X(out_rank, UINT, MODEL, "attention.output_lora_rank", 1, GG_WIDTH_MAX,   \
      none, 0, NULL, "rank of the output", NULL)                              \
    X(compress_base, FLOAT, MODEL, "attention.compress_rope_freq_base", 1,    \
      1e15, none, 0, NULL, "rotary base of compressed keys", NULL)            \
    X(compress, SEEN, MODEL, "attention.compress_ratios", 0, 0, none, MEMORY, \
      NULL, "compression ratios", NULL)                                       \
    X(n_buckets, UINT, MODEL, "attention.relative_buckets_count", 4, 255,     \
      none, 0, NULL, "buckets of relative positions",                         \
      "relative_attention_num_buckets")

#define GG_HPARAMS_ROPE(X)                                                    \
    X(n_rot_swa, UINT, MODEL, "rope.dimension_count_swa", 2, GG_WIDTH_MAX,    \
      none, 0, NULL, "rotary dimensions in windows", NULL)                    \
    X(rope_base_swa, FLOAT, MODEL, "rope.freq_base_swa", 1, 1e15, none, 0,    \
      NULL, "rotary base in windows", "rope_local_base_freq")                 \
    X(rope_sections, SEEN, MODEL, "rope.dimension_sections", 0, 0, none, 0,   \
      NULL, "axes of positions", "rope_scaling.mrope_section")                \
    X(rope_old_factor, FLOAT, MODEL, "rope.scale_linear", 1e-6, 1e6, none, 0, \
      NULL, "rotary scaling factor (old)", NULL)                              \
    X(rope_factor, FLOAT, MODEL, "rope.scaling.factor", 1e-6, 1e6, none, 0,   \
      NULL, "rotary scaling factor", "rope_scaling.factor")                   \
    X(rope_attn, FLOAT, MODEL, "rope.scaling.attn_factor", 1e-6, 1e6, none,   \
      0, NULL, "rotary magnitude", "rope_scaling.attention_factor")           \
    X(n_ctx_orig, UINT, MODEL, "rope.scaling.original_context_length", 1,     \
      GG_SPAN_MAX, none, 0, NULL, "context before scaling",                   \
      "rope_scaling.original_max_position_embeddings")                        \
    X(yarn_ext, FLOAT, MODEL, "rope.scaling.yarn_ext_factor", 0, 1e6, none,   \
      0, NULL, "YaRN extrapolation", NULL)                                    \
    X(yarn_attn, FLOAT, MODEL, "rope.scaling.yarn_attn_factor", 1e-6, 1e6,    \
      none, 0, NULL, "YaRN magnitude", NULL)                                  \
    X(yarn_fast, FLOAT, MODEL, "rope.scaling.yarn_beta_fast", 1e-6, 1e6,      \
      none, 0, NULL, "YaRN fast beta", "rope_scaling.beta_fast")              \
    X(yarn_slow, FLOAT, MODEL, "rope.scaling.yarn_beta_slow", 1e-6, 1e6,      \
      none, 0, NULL, "YaRN slow beta", "rope_scaling.beta_slow")              \
    X(yarn_log, FLOAT, MODEL, "rope.scaling.yarn_log_multiplier", 0, 1e6,     \
      none, 0, NULL, "YaRN log multiplier", "rope_scaling.mscale_all_dim")    \
    X(rope_alpha, FLOAT, MODEL, "rope.scaling.alpha", 0, 1e9, none, 0, NULL,  \
      "NTK alpha", "rope_scaling.alpha")                                      \
    X(rope_tuned, BOOL, MODEL, "rope.scaling.finetuned", 0, 1, none, 0, NULL, \
      "positions", NULL)

#define GG_HPARAMS_EXPERT(X)                                                  \
    X(n_dense, UINT, MODEL, "leading_dense_block_count", 0, GG_SPAN_MAX,      \
      n_layer, 0, NULL, "leading dense layers", "first_k_dense_replace")      \
    X(n_ff_expert, UINT, LAYER, "expert_feed_forward_length", 0,              \
      GG_WIDTH_MAX, none, 0, NULL, "expert width", "moe_intermediate_size")   \
    X(n_ff_shared, UINT, MODEL, "expert_shared_feed_forward_length", 0,       \
      GG_WIDTH_MAX, none, 0, NULL, "width of shared experts",                 \
      "shared_expert_intermediate_size")                                      \
    X(n_ff_chunk, UINT, MODEL, "expert_chunk_feed_forward_length", 0,         \
      GG_WIDTH_MAX, none, 0, NULL, "width of chunk experts", NULL)            \
    X(n_per_group, UINT, MODEL, "experts_per_group", 1, 1 << 16, none, 0,     \
      NULL, "experts of a chunk", NULL)                                       \
    X(group_scale, FLOAT, MODEL, "expert_group_scale", 0, 1e6, none, 0, NULL, \
      "scale of chunk experts", NULL)                                         \
    X(n_group, UINT, MODEL, "expert_group_count", 0, 1 << 16, none, 0, NULL,  \
      "groups of experts", "n_group")                                         \
    X(n_group_used, UINT, MODEL, "expert_group_used_count", 0, 1 << 16, none, \
      0, NULL, "groups of experts in use", "topk_group")                      \
    X(expert_gating, UINT, MODEL, "expert_gating_func", 0, 4, none, 0, NULL,  \
      "router gating", "scoring_func")                                        \
    X(expert_norm, BOOL, MODEL, "expert_weights_norm", 0, 1, none, 0, NULL,   \
      "normalised expert weights", "norm_topk_prob")                          \
    X(expert_scale, FLOAT, MODEL, "expert_weights_scale", 0, 1e6, none, 0,    \
      NULL, "scale of expert weights", "routed_scaling_factor")               \
    X(moe_step, UINT, MODEL, "interleave_moe_layer_step", 0, GG_SPAN_MAX,     \
      none, 0, NULL, "step of expert layers", "interleave_moe_layer_step")    \
    X(moe_every, UINT, MODEL, "moe_every_n_layers", 0, GG_SPAN_MAX, none, 0,  \
      NULL, "step of expert layers", "moe_every_n_layers")                    \
    X(moe_latent, UINT, MODEL, "moe_latent_size", 0, GG_WIDTH_MAX, none, 0,   \
      NULL, "width of experts' input", "moe_latent_size")                     \
    X(expert_latent, UINT, MODEL, "expert_latent_length", 0, GG_WIDTH_MAX,    \
      none, 0, NULL, "width of experts' input", "routed_expert_hidden_size")  \
    X(n_hash, UINT, MODEL, "hash_layer_count", 0, GG_SPAN_MAX, n_layer, 0,    \
      NULL, "layers with hash routing", "num_hash_layers")                    \
    X(clamp_exp, FLOAT, LAYER, "swiglu_clamp_exp", 0, 1e9, none, 0, NULL,     \
      "clamp of experts", "swiglu_limits")                                    \
    X(clamp_shexp, FLOAT, LAYER, "swiglu_clamp_shexp", 0, 1e9, none, 0, NULL, \
      "clamp of shared experts", "swiglu_limits_shared")                      \
    X(activation_sparsity, FLOAT, LAYER, "activation_sparsity_scale",         \
      -INFINITY, 1e6, none, 0, NULL, "activation sparsity",                   \
      "activation_sparsity_pattern")                                          \
    X(router_softcap, FLOAT, MODEL, "router_logit_softcapping", 0, 1e6, none, \
      0, NULL, "soft cap of the router", "router_logit_softcapping")

#define GG_HPARAMS_RECUR(X)                                                   \
    X(ssm_conv, UINT, MODEL, "ssm.conv_kernel", 1, 1 << 16, none, MEMORY,     \
      NULL, "taps of the convolution", "conv_kernel")                         \
    X(ssm_inner, UINT, MODEL, "ssm.inner_size", 1, GG_WIDTH_MAX, none,        \
      MEMORY, NULL, "inner width", "mamba_d_inner")                           \
    X(ssm_dt, UINT, MODEL, "ssm.time_step_rank", 1, GG_WIDTH_MAX, none,       \
      MEMORY, NULL, "rank of time steps, or heads", "mamba_n_heads")          \
    X(ssm_groups, UINT, MODEL, "ssm.group_count", 0, GG_WIDTH_MAX, none,      \
      MEMORY, NULL, "groups of the state", "mamba_n_groups")                  \
    X(ssm_rms, BOOL, MODEL, "ssm.dt_b_c_rms", 0, 1, none, MEMORY, NULL,       \
      "norms of dt, B and C", NULL)                                           \
    X(attn_interval, UINT, MODEL, "full_attention_interval", 1, GG_SPAN_MAX,  \
      none, MEMORY, NULL, "step of attention layers",                         \
      "full_attention_interval")                                              \
    X(recurrent, FLAGS, LAYER, "attention.recurrent_layers", 0, 1, none,      \
      MEMORY, NULL, "layers without attention", NULL)                         \
    X(kda_head, UINT, MODEL, "kda.head_dim", 1, 1 << 16, none, MEMORY, NULL,  \
      "width of delta heads", "linear_attn_config.head_dim")                  \
    X(kda_bound, FLOAT, MODEL, "kda.gate_lower_bound", -1e6, -1e-6, none, 0,  \
      NULL, "lower bound of the decay",                                       \
      "linear_attn_config.gate_lower_bound")                                  \
    X(kda_safe, BOOL, MODEL, "kda.safe_gate", 0, 1, none, 0, NULL,            \
      "bounded decay", "kda_safe_gate")                                       \
    X(n_lconv, UINT, MODEL, "shortconv.l_cache", 1, 1 << 16, none, MEMORY,    \
      NULL, "taps of the convolution", "conv_L_cache")                        \
    X(wkv_head, UINT, MODEL, "wkv.head_size", 1, 1 << 16, none, MEMORY, NULL, \
      "width of heads", "head_size")                                          \
    X(n_mix, UINT, MODEL, "time_mix_extra_dim", 1, GG_WIDTH_MAX, none,        \
      MEMORY, NULL, "rank of mixing", NULL)                                   \
    X(n_decay, UINT, MODEL, "time_decay_extra_dim", 1, GG_WIDTH_MAX, none,    \
      MEMORY, NULL, "rank of the decay", NULL)                                \
    X(rank_decay, UINT, MODEL, "attention.decay_lora_rank", 1, GG_WIDTH_MAX,  \
      none, MEMORY, NULL, "rank of the decay", NULL)                          \
    X(rank_iclr, UINT, MODEL, "attention.iclr_lora_rank", 1, GG_WIDTH_MAX,    \
      none, MEMORY, NULL, "rank of the learning rate", NULL)                  \
    X(rank_vres, UINT, MODEL, "attention.value_residual_mix_lora_rank", 1,    \
      GG_WIDTH_MAX, none, MEMORY, NULL, "rank of the value residual", NULL)   \
    X(rank_gate, UINT, MODEL, "attention.gate_lora_rank", 0, GG_WIDTH_MAX,    \
      none, MEMORY, NULL, "rank of the gate", NULL)                           \
    X(n_shift, UINT, MODEL, "token_shift_count", 0, 2, none, MEMORY, NULL,    \
      "token shifts", NULL)                                                   \
    X(rescale, UINT, MODEL, "rescale_every_n_layers", 0, GG_SPAN_MAX, none,   \
      0, NULL, "step of halving", "rescale_every")

#define GG_HPARAMS_ODD(X)                                                     \
    X(embd_scale, FLOAT, MODEL, "embedding_scale", 0, 1e6, none, 0, NULL,     \
      "scale of embeddings", "embedding_multiplier")                          \
    X(residual_scale, FLOAT, MODEL, "residual_scale", 0, 1e6, none, 0, NULL,  \
      "residual scale", "residual_multiplier")                                \
    X(logit_scale, FLOAT, MODEL, "logit_scale", 0, 1e6, none, 0, NULL,        \
      "scale of logits", "logits_scaling")                                    \
    X(logit_softcap, FLOAT, MODEL, "final_logit_softcapping", 0, 1e6, none,   \
      0, NULL, "soft cap of logits", "final_logit_softcapping")               \
    X(parallel, BOOL, MODEL, "use_parallel_residual", 0, 1, none, 0, NULL,    \
      "parallel residual", "use_parallel_residual")                           \
    X(swin, BOOL, MODEL, "swin_norm", 0, 1, none, 0, NULL,                    \
      "norms after the branches", "swin_norm")                                \
    X(n_nextn, UINT, MODEL, "nextn_predict_layers", 0, GG_SPAN_MAX, n_layer,  \
      0, NULL, "nextn layers", "num_nextn_predict_layers")                    \
    X(n_per_layer, UINT, MODEL, "embedding_length_per_layer_input", 0,        \
      GG_WIDTH_MAX, none, 0, NULL, "width of per-layer inputs",               \
      "hidden_size_per_layer_input")                                          \
    X(dense_2_out, UINT, MODEL, "dense_2_feat_out", 1, GG_WIDTH_MAX, none, 0, \
      NULL, "width after pooling", NULL)                                      \
    X(dense_3_in, UINT, MODEL, "dense_3_feat_in", 1, GG_WIDTH_MAX, none, 0,   \
      NULL, "width after pooling", NULL)                                      \
    X(n_embd_out, UINT, MODEL, "embedding_length_out", 1, GG_WIDTH_MAX, none, \
      0, NULL, "width of the output", NULL)                                   \
    X(n_streams, UINT, MODEL, "hyper_connection.count", 1, 64, none, 0, NULL, \
      "streams", "hc_mult")                                                   \
    X(n_sinkhorn, UINT, MODEL, "hyper_connection.sinkhorn_iterations", 0,     \
      1 << 10, none, 0, NULL, "Sinkhorn iterations", "hc_sinkhorn_iters")     \
    X(streams_eps, FLOAT, MODEL, "hyper_connection.epsilon", 0, 1, none, 0,   \
      NULL, "epsilon of streams", "hc_eps")                                   \
    X(streams_magnitude, FLOAT, MODEL, "hyper_connection.magnitude", 1e-6,    \
      1e6, none, 0, NULL, "magnitude of streams", "hc_magnitude")             \
    X(mix_rank, UINT, MODEL, "hyper_connection.low_rank", 1, GG_WIDTH_MAX,    \
      none, 0, NULL, "rank of streams", "hc_lowrank")                         \
    X(ngram_layers, SEEN, MODEL, "ple.layers", 0, 0, none, MEMORY, NULL,      \
      "layers with n-grams", NULL)                                            \
    X(ngram_size, UINT, MODEL, "ple.ngram_size", 2, GG_NGRAM_MAX, none,       \
      MEMORY, NULL, "tokens of an n-gram", "ngram_size")                      \
    X(ngram_heads, UINT, MODEL, "ple.heads_per_ngram", 1, GG_NGRAM_HEADS,     \
      none, 0, NULL, "heads of an n-gram", "heads_per_ngram")                 \
    X(ngram_taps, UINT, MODEL, "ple.conv_kernel", 1, 32, none, MEMORY, NULL,  \
      "taps of the n-grams' convolution", "ple_conv_kernel_size")             \
    X(ngram_eos, UINT, MODEL, "ple.eos_token_id", 0, INT32_MAX, none, 0,      \
      NULL, "token that ends n-grams", NULL)                                  \
    X(ngram_image, UINT, MODEL, "ple.image_token_id", 0, INT32_MAX, none, 0,  \
      NULL, "token of images in n-grams", NULL)                               \
    X(ngram_width, UINT, MODEL, "embedding_length_per_layer_input", 1,        \
      GG_WIDTH_MAX, none, 0, NULL, "width of a row of n-grams", NULL)         \
    X(ngram_factors, SEEN, MODEL, "ple.layer_multipliers", 0, 0, none, 0,     \
      NULL, "factors of tokens", NULL)                                        \
    X(ngram_offsets, SEEN, MODEL, "ple.head_offsets", 0, 0, none, 0, NULL,    \
      "first rows of heads", NULL)                                            \
    X(ngram_sizes, SEEN, MODEL, "ple.head_vocab_sizes", 0, 0, none, 0, NULL,  \
      "rows of heads", NULL)                                                  \
    X(n_deepstack, UINT, MODEL, "n_deepstack_layers", 0, GG_SPAN_MAX, none,   \
      0, NULL, "deepstack layers", NULL)                                      \
    X(n_stack, UINT, MODEL, "hrm.layers_per_stack", 1, GG_SPAN_MAX, none, 0,  \
      NULL, "layers of a stack", "num_layers_per_stack")                      \
    X(n_high, UINT, MODEL, "hrm.h_cycles", 1, 1 << 16, none, 0, NULL,         \
      "cycles of the high stack", "H_cycles")                                 \
    X(n_low, UINT, MODEL, "hrm.l_cycles", 1, 1 << 16, none, 0, NULL,          \
      "cycles of the low stack", "L_cycles")                                  \
    X(prefix_lm, BOOL, MODEL, "hrm.prefix_lm", 0, 1, none, 0, NULL,           \
      "prompts seen in both directions", "prefix_lm")                         \
    X(n_switch, UINT, MODEL, "adapters.count", 0, 4096, none, 0, NULL,        \
      "adapters in the model", "num_adapters")                                \
    X(switch_rank, UINT, MODEL, "adapters.lora_rank", 1, 4096, none, 0, NULL, \
      "rank of the model's adapters", "max_lora_rank")                        \
    X(switch_gain, FLOAT, MODEL, "adapters.router_gain", 0, 1e6, none, 0,     \
      NULL, "gain of activation tokens", "control_token_gain")                \
    X(switch_tokens, SEEN, MODEL, "adapters.token_ids_activate", 0, 0, none,  \
      0, NULL, "activation tokens", "adapter_token_ids")                      \
    X(switch_embedded, SEEN, MODEL, "adapters.token_ids_substitute", 0, 0,    \
      none, 0, NULL, "substitutes of activation tokens",                      \
      "adapter_substitute_token_ids")                                         \
    X(n_loops, UINT, MODEL, "num_loops", 1, 64, none, 0, NULL, "loops",       \
      "num_loops")                                                            \
    X(skip_loop_norm, BOOL, MODEL, "skip_loop_final_norm", 0, 1, none, 0,     \
      NULL, "no norm between loops", "skip_loop_final_norm")                  \
    X(res_block, UINT, MODEL, "attn_res.block_size", 0, GG_SPAN_MAX, none, 0, \
      NULL, "layers of a residual block", "attn_res_block_size")              \
    X(situ_beta, FLOAT, MODEL, "activation.situ_beta", 1e-6, 1e6, none, 0,    \
      NULL, "bound of gates", "activation_situ_beta")                         \
    X(situ_linear, FLOAT, MODEL, "activation.situ_linear_beta", -1e6, 1e6,    \
      none, 0, NULL, "bound of the up projection",                            \
      "activation_situ_linear_beta")                                          \
    X(n_dec_layer, UINT, MODEL, "decoder_block_count", 1, GG_SPAN_MAX,        \
      n_tensors, 0, NULL, "layers of the decoder", "num_decoder_layers")      \
    X(dec_start, UINT, MODEL, "decoder_start_token_id", 0, INT32_MAX, none,   \
      0, NULL, "first token of the decoder", "decoder_start_token_id")        \
    X(pooling, UINT, MODEL, "pooling_type", 0, 4, none, 0, NULL, "pooling",   \
      NULL)                                                                   \
    X(labels, SEEN, MODEL, "classifier.output_labels", 0, 0, none, 0, NULL,   \
      "labels", NULL)                                                         \
    X(activation, TEXT, MODEL, "hidden_activation", 0, 0, none, 0, NULL,      \
      "activation", "hidden_activation")                                      \
    X(xielu_n, FLOAT, LAYER, "/xielu.alpha_n", -1e6, 1e6, none, 0, NULL,      \
      "xIELU alpha_n", NULL)                                                  \
    X(xielu_p, FLOAT, LAYER, "/xielu.alpha_p", -1e6, 1e6, none, 0, NULL,      \
      "xIELU alpha_p", NULL)                                                  \
    X(xielu_beta, FLOAT, LAYER, "/xielu.beta", -1e6, 1e6, none, 0, NULL,      \
      "xIELU beta", NULL)                                                     \
    X(xielu_eps, FLOAT, LAYER, "/xielu.eps", -1e6, 1e6, none, 0, NULL,        \
      "xIELU epsilon", NULL)                                                  \
    X(n_types, UINT, MODEL, "/tokenizer.ggml.token_type_count", 1,            \
      GG_SPAN_MAX, none, 0, NULL, "token types", "type_vocab_size")

#endif
