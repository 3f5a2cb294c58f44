/* SPDX-License-Identifier: MIT */
/* shared_names.c - names of tensors that several families have */
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
    N_COMPUTED("rope_freqs", "rope_freqs"),
    N_COMPUTED("rope_factors_long", "rope_factors_long"),
    N_COMPUTED("rope_factors_short", "rope_factors_short"),
    END_NAMES
};

/* Norms after the branches. */
const struct gg_convert_name gg_convert_names_post_norm[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"),
    N(L "post_feedforward_layernorm", B "post_ffw_norm"), END_NAMES
};

/* GPT BigCode's names; matrices are not transposed, as GPT-2's are. */
const struct gg_convert_name gg_convert_names_starcoder[] = {
    N("wte", "token_embd"),
    N("wpe", "position_embd"),
    N("ln_f", "output_norm"),
    N_NOT("h.%.attn.bias"),
    N("h.%.ln_1", B "attn_norm"),
    N("h.%.attn.c_attn", B "attn_qkv"),
    N("h.%.attn.c_proj", B "attn_output"),
    N("h.%.ln_2", B "ffn_norm"),
    N("h.%.mlp.c_fc", B "ffn_up"),
    N("h.%.mlp.c_proj", B "ffn_down"),
    N("lm_head", "output"),
    END_NAMES
};

const struct gg_convert_name gg_convert_names_mixtral[] = {
    N(L "block_sparse_moe.gate", B "ffn_gate_inp"),
    N(L "block_sparse_moe.e_score_correction_bias", B "exp_probs_b.bias"),
    N(L "block_sparse_moe.experts.@.w1", B "ffn_gate_exps"),
    N(L "block_sparse_moe.experts.@.w2", B "ffn_down_exps"),
    N(L "block_sparse_moe.experts.@.w3", B "ffn_up_exps"),
    /* as transformers 5 names them in memory */
    PACKED_EXPERTS(L "block_sparse_moe.experts."), END_NAMES
};

/* One tensor per expert, or one for all, with gates before the others. */
const struct gg_convert_name gg_convert_names_experts[] = {
    N(L "mlp.gate", B "ffn_gate_inp"),
    N(L "mlp.gate.e_score_correction_bias", B "exp_probs_b.bias"),
    N(L "mlp.experts.@.gate_proj", B "ffn_gate_exps"),
    N(L "mlp.experts.@.up_proj", B "ffn_up_exps"),
    N(L "mlp.experts.@.down_proj", B "ffn_down_exps"),
    PACKED_EXPERTS(L "mlp.experts."),
    N(L "mlp.shared_expert_gate", B "ffn_gate_inp_shexp"),
    N(L "mlp.shared_expert.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_expert.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_expert.down_proj", B "ffn_down_shexp"),
    N(L "mlp.shared_experts.gate_proj", B "ffn_gate_shexp"),
    N(L "mlp.shared_experts.up_proj", B "ffn_up_shexp"),
    N(L "mlp.shared_experts.down_proj", B "ffn_down_shexp"),
    END_NAMES
};

const struct gg_convert_name gg_convert_names_nextn[] = {
    N(L "eh_proj", B "nextn.eh_proj"),
    N(L "enorm", B "nextn.enorm"),
    N(L "hnorm", B "nextn.hnorm"),
    N(L "embed_tokens", B "nextn.embed_tokens"),
    N(L "shared_head.head", B "nextn.shared_head_head"),
    N(L "shared_head.norm", B "nextn.shared_head_norm"),
    END_NAMES
};

const struct gg_convert_name gg_convert_names_latent[] = {
    N(L "self_attn.q_a_proj", B "attn_q_a"),
    N(L "self_attn.q_a_layernorm", B "attn_q_a_norm"),
    N(L "self_attn.q_b_proj", B "attn_q_b"),
    N(L "self_attn.kv_a_proj_with_mqa", B "attn_kv_a_mqa"),
    N(L "self_attn.kv_a_layernorm", B "attn_kv_a_norm"),
    N_AXES(L "self_attn.kv_b_proj", B "attn_k_b",
           "h kvb[nope@0], c > h, c, kvb"),
    N_AXES(L "self_attn.kv_b_proj", B "attn_v_b",
           "h kvb[vdim@nope], c > h, kvb, c"),
    END_NAMES
};

/* The indexer, a small attention that chooses the keys of a query. */
const struct gg_convert_name gg_convert_names_indexer[] = {
    N(L "self_attn.indexer.wk", B "indexer.attn_k"),
    N(L "self_attn.indexer.wq_b", B "indexer.attn_q_b"),
    N(L "self_attn.indexer.k_norm", B "indexer.k_norm"),
    N(L "self_attn.indexer.weights_proj", B "indexer.proj"), END_NAMES
};

const struct gg_convert_name gg_convert_names_hybrid[] = {
    MAMBA2(LAYERS_MAMBA),
    N(LAYERS_MAMBA "in_proj", B "ssm_in"),
    N(LAYERS_MAMBA "out_proj", B "ssm_out"),
    N(L "feed_forward.gate_proj", B "ffn_gate"),
    N(L "feed_forward.up_proj", B "ffn_up"),
    N(L "feed_forward.down_proj", B "ffn_down"),
    N(L "pre_ff_layernorm", B "ffn_norm"),
    END_NAMES
};
