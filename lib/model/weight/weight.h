/* SPDX-License-Identifier: MIT */
/* weight.h - table of weights: name and shape, one row each
 *
 * GGUF gives a weight the same name in every architecture, but not always the
 * same shape. A name has a row for each shape; a layer has at most one
 * of them (needs.h). The row of a bias follows that of its weight.
 */
#ifndef GG_MODEL_WEIGHT_WEIGHT_H
#define GG_MODEL_WEIGHT_WEIGHT_H

#include "gguf/file.h"
#include "model/weight/weight_streams.h"

#include <stdbool.h>

/* Sizes from which the shapes of one layer's weights are computed. NAN:
 * unknown, because a key is missing or wrong; so are results computed from
 * it. */
struct gg_model_sizes {
    /* width, tokens of the vocabulary, those of them that have logits, tokens
     * of context */
    double embd, vocab, logits, ctx;
    double head, head_v; /* elements of a head's key and value */
    double n_head, n_head_kv;
    double q, k, v; /* elements of all heads together */
    double rot,
        nope; /* elements of a head with and without rotary embedding */
    double qk_0, qk_q1, qk_k1; /* shapes of norms of queries and keys */
    /* ff: width of the feed-forward part; up: rows of ffn_up, which may include
     * the gate */
    double ff, up;
    double experts, used, expert_ff, shared_ff, expert_in, v_experts;
    double rank_q, rank_kv;      /* latent attention */
    double out_rank, out_groups; /* low-rank output matrix */
    double idx, n_idx;           /* indexer: elements of a head, heads */
    double conv, inner, state, dt, groups; /* state spaces */
    double kda; /* elements of a head of Kimi's delta rule */
    double wkv, mix, decay, iclr, vres, gate, lerps; /* RWKV */
    /* elements of keys and values, if they have fewer heads */
    double wkv_v;
    double lconv; /* taps of a short convolution */
    double per_layer,
        n_layer;    /* width of a layer's additional input; layers */
    double types;   /* token types (segments) */
    double buckets; /* buckets of relative positions */
    double streams; /* residual streams of hyper-connections */
    /* hyper-connections of a part: coefficients, and their scales */
    double hc, hc_scales;
    double mix_rank; /* rank of the mix of gated streams */
    /* n-grams: width of a row of the table, taps of the convolution */
    double ngram, ngram_taps;
    double draft; /* width of a nextn layer's hidden state */
    /* compressed keys: tokens; 2 if blocks overlap, else 1 */
    double ratio, wide;
    double chunk_ff, chunks; /* chunk experts */
    double dense_2, dense_3; /* matrices after pooling */
    double lora, n_lora; /* switched adapters: rank; number, with the base */
    double any;          /* always unknown */
};

/* Prefix of a weight's name. */
enum gg_model_scope {
    GG_MODEL,   /* no prefix: one per model */
    GG_LAYER,   /* blk.N. */
    GG_ENCODER, /* enc.blk.N. */
    GG_DECODER, /* dec.blk.N. */
    GG_N_SCOPES
};

enum gg_model_role {
    GG_MATRIX, /* multiplied or looked up; any type that decodes */
    GG_VECTOR, /* read directly; F32 */
    GG_NUMBERS /* integers; I32 */
};

/* X(ID, name, scope, role, instead, ne...)
 *
 * instead  another row that may replace this one, or NONE
 * ne       an expression of sizes z for each dimension; matrices are [columns,
 *          rows] */
#define GG_WEIGHT_LIST(X)                                                     \
    GG_WEIGHTS_TOP(X)                                                         \
    GG_WEIGHTS_ATTN(X)                                                        \
    GG_WEIGHTS_FFN(X)                                                         \
    GG_WEIGHTS_SSM(X)                                                         \
    GG_WEIGHTS_RWKV(X)                                                        \
    GG_WEIGHTS_ODD(X)                                                         \
    GG_WEIGHTS_STREAMS(X)                                                     \
    GG_WEIGHTS_T5(X)

#define GG_WEIGHTS_TOP(X)                                                     \
    X(NONE, "", MODEL, MATRIX, NONE, 0)                                       \
    X(TOKEN_EMBD, "token_embd.weight", MODEL, MATRIX, NONE, z->embd,          \
      z->vocab)                                                               \
    X(TOKEN_EMBD_MAYBE, "token_embd.weight", MODEL, MATRIX, OUTPUT, z->embd,  \
      z->vocab)                                                               \
    X(EMBD_NORM, "token_embd_norm.weight", MODEL, VECTOR, NONE, z->embd)      \
    X(EMBD_NORM_B, "token_embd_norm.bias", MODEL, VECTOR, NONE, z->embd)      \
    X(TOKEN_TYPES, "token_types.weight", MODEL, MATRIX, NONE, z->embd,        \
      z->types)                                                               \
    X(POSITION, "position_embd.weight", MODEL, MATRIX, NONE, z->embd, z->ctx) \
    X(PER_LAYER_EMBD, "per_layer_token_embd.weight", MODEL, MATRIX, NONE,     \
      z->per_layer * z->n_layer, z->vocab)                                    \
    X(PER_LAYER_PROJ, "per_layer_model_proj.weight", MODEL, MATRIX, NONE,     \
      z->embd, z->per_layer * z->n_layer)                                     \
    X(PER_LAYER_NORM, "per_layer_proj_norm.weight", MODEL, VECTOR, NONE,      \
      z->per_layer)                                                           \
    X(ALTUP_PROJ, "altup_proj.weight", MODEL, MATRIX, NONE, z->embd, z->embd, \
      z->streams - 1)                                                         \
    X(ALTUP_UNEMBD, "altup_unembd_proj.weight", MODEL, MATRIX, NONE, z->embd, \
      z->embd, z->streams - 1)                                                \
    X(OUTPUT_HC_FN, "output_hc_fn.weight", MODEL, MATRIX, NONE,               \
      z->streams * z->embd, z->streams)                                       \
    X(OUTPUT_HC_BASE, "output_hc_base.weight", MODEL, VECTOR, NONE,           \
      z->streams)                                                             \
    X(OUTPUT_HC_SCALE, "output_hc_scale.weight", MODEL, VECTOR, NONE, 1)      \
    X(HRM_LOW_INIT, "hrm.z_l_init", MODEL, VECTOR, NONE, z->embd)             \
    X(OUTPUT_NORM, "output_norm.weight", MODEL, VECTOR, NONE, z->embd)        \
    X(OUTPUT_NORM_B, "output_norm.bias", MODEL, VECTOR, NONE, z->embd)        \
    X(ENC_OUTPUT_NORM, "enc.output_norm.weight", MODEL, VECTOR, NONE,         \
      z->embd)                                                                \
    X(DEC_OUTPUT_NORM, "dec.output_norm.weight", MODEL, VECTOR, NONE,         \
      z->embd)                                                                \
    X(OUTPUT, "output.weight", MODEL, MATRIX, NONE, z->embd, z->logits)       \
    X(OUTPUT_B, "output.bias", MODEL, VECTOR, NONE, z->vocab)                 \
    X(ROPE_FREQS, "rope_freqs.weight", MODEL, VECTOR, NONE, z->rot / 2)       \
    X(ROPE_LONG, "rope_factors_long.weight", MODEL, VECTOR, NONE, z->rot / 2) \
    X(ROPE_SHORT, "rope_factors_short.weight", MODEL, VECTOR, NONE,           \
      z->rot / 2)                                                             \
    X(CLS, "cls.weight", MODEL, MATRIX, NONE, z->embd, z->any)                \
    X(CLS_B, "cls.bias", MODEL, VECTOR, NONE, z->any)                         \
    X(CLS_NORM, "cls.norm.weight", MODEL, VECTOR, NONE, z->embd)              \
    X(CLS_OUT, "cls.output.weight", MODEL, MATRIX, NONE, z->embd, z->any)     \
    X(CLS_OUT_B, "cls.output.bias", MODEL, VECTOR, NONE, z->any)              \
    X(DENSE_2, "dense_2.weight", MODEL, MATRIX, NONE, z->embd, z->dense_2)    \
    X(DENSE_2_B, "dense_2.bias", MODEL, VECTOR, NONE, z->dense_2)             \
    X(DENSE_3, "dense_3.weight", MODEL, MATRIX, NONE, z->dense_3, z->embd)

#define GG_WEIGHTS_ATTN(X)                                                    \
    X(ATTN_NORM, "attn_norm.weight", LAYER, VECTOR, NONE, z->embd)            \
    X(ATTN_NORM_B, "attn_norm.bias", LAYER, VECTOR, NONE, z->embd)            \
    X(ATTN_NORM_2, "attn_norm_2.weight", LAYER, VECTOR, NONE, z->embd)        \
    X(ATTN_NORM_2_B, "attn_norm_2.bias", LAYER, VECTOR, NONE, z->embd)        \
    X(ATTN_Q, "attn_q.weight", LAYER, MATRIX, ATTN_QKV, z->embd, z->q)        \
    X(ATTN_Q_B, "attn_q.bias", LAYER, VECTOR, ATTN_QKV_B, z->q)               \
    X(ATTN_K, "attn_k.weight", LAYER, MATRIX, ATTN_QKV, z->embd, z->k)        \
    X(ATTN_K_B, "attn_k.bias", LAYER, VECTOR, ATTN_QKV_B, z->k)               \
    X(ATTN_V, "attn_v.weight", LAYER, MATRIX, ATTN_QKV, z->embd, z->v)        \
    X(ATTN_V_B, "attn_v.bias", LAYER, VECTOR, ATTN_QKV_B, z->v)               \
    X(ATTN_V_ROUTER, "attn_v_gate.weight", LAYER, MATRIX, NONE, z->embd,      \
      z->v_experts)                                                           \
    X(ATTN_V_EXPS, "attn_v_exps.weight", LAYER, MATRIX, NONE, z->embd, z->v,  \
      z->v_experts)                                                           \
    X(ATTN_V_SELECT_B, "attn_v_gate.bias", LAYER, VECTOR, NONE, z->v_experts) \
    X(ATTN_QKV, "attn_qkv.weight", LAYER, MATRIX, ATTN_Q, z->embd,            \
      z->q + z->k + z->v)                                                     \
    X(ATTN_QKV_B, "attn_qkv.bias", LAYER, VECTOR, ATTN_Q_B,                   \
      z->q + z->k + z->v)                                                     \
    X(ATTN_QKV_SQUARE, "attn_qkv.weight", LAYER, MATRIX, NONE, z->embd,       \
      3 * z->embd)                                                            \
    X(LINEAR_QKV, "attn_qkv.weight", LAYER, MATRIX, NONE, z->embd,            \
      3 * z->n_head * z->head)                                                \
    X(LINEAR_NORM, "attn_norm_2.weight", LAYER, VECTOR, NONE,                 \
      z->n_head * z->head)                                                    \
    X(ATTN_Q_GATED, "attn_q.weight", LAYER, MATRIX, NONE, z->embd, 2 * z->q)  \
    X(ATTN_Q_NORM, "attn_q_norm.weight", LAYER, VECTOR, NONE, z->qk_0,        \
      z->qk_q1)                                                               \
    X(ATTN_Q_NORM_B, "attn_q_norm.bias", LAYER, VECTOR, NONE, z->qk_0,        \
      z->qk_q1)                                                               \
    X(ATTN_K_NORM, "attn_k_norm.weight", LAYER, VECTOR, NONE, z->qk_0,        \
      z->qk_k1)                                                               \
    X(ATTN_K_NORM_B, "attn_k_norm.bias", LAYER, VECTOR, NONE, z->qk_0,        \
      z->qk_k1)                                                               \
    X(WIDE_Q_NORM, "attn_q_norm.weight", LAYER, VECTOR, NONE, z->q)           \
    X(WIDE_Q_NORM_B, "attn_q_norm.bias", LAYER, VECTOR, NONE, z->q)           \
    X(WIDE_K_NORM, "attn_k_norm.weight", LAYER, VECTOR, NONE, z->k)           \
    X(WIDE_K_NORM_B, "attn_k_norm.bias", LAYER, VECTOR, NONE, z->k)           \
    X(HEAD_GAIN, "attn_q_norm.weight", LAYER, VECTOR, NONE, 1, z->n_head)     \
    X(ATTN_SINKS, "attn_sinks.weight", LAYER, VECTOR, NONE, z->n_head)        \
    X(ATTN_GATE, "attn_gate.weight", LAYER, MATRIX, NONE, z->embd,            \
      z->n_head * z->head_v)                                                  \
    X(ATTN_GATE_HEAD, "attn_gate.weight", LAYER, MATRIX, NONE, z->embd,       \
      z->n_head)                                                              \
    X(ATTN_GATE_ANY, "attn_gate.weight", LAYER, MATRIX, NONE, z->embd,        \
      z->any)                                                                 \
    X(ATTN_SUB_NORM, "attn_sub_norm.weight", LAYER, VECTOR, NONE,             \
      z->n_head * z->head_v)                                                  \
    X(ATTN_OUT, "attn_output.weight", LAYER, MATRIX, NONE,                    \
      z->n_head * z->head_v, z->embd)                                         \
    X(ATTN_OUT_B, "attn_output.bias", LAYER, VECTOR, NONE, z->embd)           \
    X(ATTN_LINEAR, "attn_output.weight", LAYER, MATRIX, NONE, z->embd,        \
      z->embd)                                                                \
    X(NORM_POST, "post_attention_norm.weight", LAYER, VECTOR, NONE, z->embd)  \
    X(NORM_POST_BARE, "post_attention_norm", LAYER, VECTOR, NONE, z->embd)    \
    X(ATTN_OUT_NORM, "attn_output_norm.weight", LAYER, VECTOR, NONE, z->embd) \
    X(ATTN_OUT_NORM_B, "attn_output_norm.bias", LAYER, VECTOR, NONE, z->embd) \
    X(MLA_Q_A, "attn_q_a.weight", LAYER, MATRIX, NONE, z->embd, z->rank_q)    \
    X(MLA_Q_NORM, "attn_q_a_norm.weight", LAYER, VECTOR, NONE, z->rank_q)     \
    X(MLA_Q_B, "attn_q_b.weight", LAYER, MATRIX, ATTN_Q, z->rank_q, z->q)     \
    X(MLA_KV_A, "attn_kv_a_mqa.weight", LAYER, MATRIX, NONE, z->embd,         \
      z->rank_kv + z->rot)                                                    \
    X(MLA_KV_NORM, "attn_kv_a_norm.weight", LAYER, VECTOR, NONE, z->rank_kv)  \
    X(MLA_KV_B, "attn_kv_b.weight", LAYER, MATRIX, MLA_K_B, z->rank_kv,       \
      (z->nope + z->head_v) * z->n_head)                                      \
    X(MLA_K_B, "attn_k_b.weight", LAYER, MATRIX, MLA_KV_B, z->nope,           \
      z->rank_kv, z->n_head)                                                  \
    X(MLA_V_B, "attn_v_b.weight", LAYER, MATRIX, MLA_KV_B, z->rank_kv,        \
      z->head_v, z->n_head)

#define GG_WEIGHTS_FFN(X)                                                     \
    X(FFN_NORM, "ffn_norm.weight", LAYER, VECTOR, NONE, z->embd)              \
    X(FFN_NORM_B, "ffn_norm.bias", LAYER, VECTOR, NONE, z->embd)              \
    X(FFN_NORM_BARE, "ffn_norm", LAYER, VECTOR, FFN_NORM, z->embd)            \
    X(FFN_GATE, "ffn_gate.weight", LAYER, MATRIX, NONE, z->embd, z->ff)       \
    X(FFN_GATE_B, "ffn_gate.bias", LAYER, VECTOR, NONE, z->ff)                \
    X(FFN_UP, "ffn_up.weight", LAYER, MATRIX, NONE, z->embd, z->up)           \
    X(FFN_UP_B, "ffn_up.bias", LAYER, VECTOR, NONE, z->up)                    \
    X(FFN_ACT_SCALE, "ffn.act.scales", LAYER, VECTOR, NONE, z->ff)            \
    X(FFN_SUB_NORM, "ffn_sub_norm.weight", LAYER, VECTOR, NONE, z->ff)        \
    X(FFN_DOWN, "ffn_down.weight", LAYER, MATRIX, NONE, z->ff, z->embd)       \
    X(FFN_DOWN_B, "ffn_down.bias", LAYER, VECTOR, NONE, z->embd)              \
    X(FFN_GATE_SQUARE, "ffn_gate.weight", LAYER, MATRIX, NONE, z->embd,       \
      z->embd)                                                                \
    X(FFN_UP_SQUARE, "ffn_up.weight", LAYER, MATRIX, NONE, z->embd, z->embd)  \
    X(FFN_DOWN_SQUARE, "ffn_down.weight", LAYER, MATRIX, NONE, z->embd,       \
      z->embd)                                                                \
    X(NORM_POST_FFN, "post_ffw_norm.weight", LAYER, VECTOR, NONE, z->embd)    \
    X(NORM_POST_FFN_BARE, "post_ffw_norm", LAYER, VECTOR, NONE, z->embd)      \
    X(LAYER_OUT_NORM, "layer_output_norm.weight", LAYER, VECTOR,              \
      NORM_POST_FFN, z->embd)                                                 \
    X(LAYER_OUT_NORM_B, "layer_output_norm.bias", LAYER, VECTOR, NONE,        \
      z->embd)                                                                \
    X(LAYER_OUT_SCALE, "layer_output_scale.weight", LAYER, VECTOR, NONE, 1)   \
    X(ROUTER, "ffn_gate_inp.weight", LAYER, MATRIX, NONE, z->embd,            \
      z->experts)                                                             \
    X(ROUTER_B, "ffn_gate_inp.bias", LAYER, VECTOR, NONE, z->experts)         \
    X(ROUTER_SCALE, "ffn_gate_inp.scale", LAYER, VECTOR, NONE, z->embd)       \
    X(ROUTER_SELECT_B, "exp_probs_b.bias", LAYER, VECTOR, NONE, z->experts)   \
    X(ROUTER_SELECT_VL_B, "exp_probs_b_vl.bias", LAYER, VECTOR, NONE,         \
      z->experts)                                                             \
    X(ROUTER_SELECT_BARE, "exp_probs_b", LAYER, VECTOR, NONE, z->experts)     \
    X(ROUTER_HASH, "ffn_gate_tid2eid.weight", LAYER, NUMBERS, NONE, z->used,  \
      z->vocab)                                                               \
    X(GATE_EXPS, "ffn_gate_exps.weight", LAYER, MATRIX, GATE_UP_EXPS,         \
      z->expert_in, z->expert_ff, z->experts)                                 \
    X(GATE_EXPS_B, "ffn_gate_exps.bias", LAYER, VECTOR, GATE_UP_EXPS_B,       \
      z->expert_ff, z->experts)                                               \
    X(UP_EXPS, "ffn_up_exps.weight", LAYER, MATRIX, GATE_UP_EXPS,             \
      z->expert_in, z->expert_ff, z->experts)                                 \
    X(UP_EXPS_B, "ffn_up_exps.bias", LAYER, VECTOR, GATE_UP_EXPS_B,           \
      z->expert_ff, z->experts)                                               \
    X(GATE_UP_EXPS, "ffn_gate_up_exps.weight", LAYER, MATRIX, NONE,           \
      z->expert_in, 2 * z->expert_ff, z->experts)                             \
    X(GATE_UP_EXPS_B, "ffn_gate_up_exps.bias", LAYER, VECTOR, NONE,           \
      2 * z->expert_ff, z->experts)                                           \
    X(DOWN_EXPS, "ffn_down_exps.weight", LAYER, MATRIX, NONE, z->expert_ff,   \
      z->expert_in, z->experts)                                               \
    X(DOWN_EXPS_B, "ffn_down_exps.bias", LAYER, VECTOR, NONE, z->embd,        \
      z->experts)                                                             \
    X(GATE_SHARED, "ffn_gate_shexp.weight", LAYER, MATRIX, NONE, z->embd,     \
      z->shared_ff)                                                           \
    X(UP_SHARED, "ffn_up_shexp.weight", LAYER, MATRIX, NONE, z->embd,         \
      z->shared_ff)                                                           \
    X(GATE_UP_SHARED, "ffn_up_shexp.weight", LAYER, MATRIX, NONE, z->embd,    \
      2 * z->shared_ff)                                                       \
    X(DOWN_SHARED, "ffn_down_shexp.weight", LAYER, MATRIX, NONE,              \
      z->shared_ff, z->embd)                                                  \
    X(ROUTER_SHARED, "ffn_gate_inp_shexp.weight", LAYER, VECTOR, NONE,        \
      z->embd)                                                                \
    X(FFN_NORM_EXPS, "ffn_norm_exps.weight", LAYER, VECTOR, NONE, z->embd)    \
    X(PRE_NORM_2, "pre_ffw_norm_2.weight", LAYER, VECTOR, NONE, z->embd)      \
    X(POST_NORM_1, "post_ffw_norm_1.weight", LAYER, VECTOR, NONE, z->embd)    \
    X(POST_NORM_2, "post_ffw_norm_2.weight", LAYER, VECTOR, NONE, z->embd)    \
    X(LATENT_DOWN, "ffn_latent_down.weight", LAYER, MATRIX, NONE, z->embd,    \
      z->expert_in)                                                           \
    X(LATENT_UP, "ffn_latent_up.weight", LAYER, MATRIX, NONE, z->expert_in,   \
      z->embd)                                                                \
    X(GATE_CHUNKS, "ffn_gate_chexps.weight", LAYER, MATRIX, NONE, z->embd,    \
      z->chunk_ff, z->chunks)                                                 \
    X(UP_CHUNKS, "ffn_up_chexps.weight", LAYER, MATRIX, NONE, z->embd,        \
      z->chunk_ff, z->chunks)                                                 \
    X(DOWN_CHUNKS, "ffn_down_chexps.weight", LAYER, MATRIX, NONE,             \
      z->chunk_ff, z->embd, z->chunks)

/* State spaces, delta rules, short convolutions. A state space's numbers
 * ssm.group_count, ssm.state_size and ssm.time_step_rank are a delta rule's
 * key heads, size of a head and value heads. */
#define GG_WEIGHTS_SSM(X)                                                     \
    X(M1_IN, "ssm_in.weight", LAYER, MATRIX, NONE, z->embd, 2 * z->inner)     \
    X(M1_CONV, "ssm_conv1d.weight", LAYER, VECTOR, NONE, z->conv, z->inner)   \
    X(M1_CONV_B, "ssm_conv1d.bias", LAYER, VECTOR, NONE, z->inner)            \
    X(M1_X, "ssm_x.weight", LAYER, MATRIX, NONE, z->inner,                    \
      z->dt + 2 * z->state)                                                   \
    X(M1_DT_NORM, "ssm_dt_norm.weight", LAYER, VECTOR, NONE, z->dt)           \
    X(M1_B_NORM, "ssm_b_norm.weight", LAYER, VECTOR, NONE, z->state)          \
    X(M1_C_NORM, "ssm_c_norm.weight", LAYER, VECTOR, NONE, z->state)          \
    X(M1_DT, "ssm_dt.weight", LAYER, MATRIX, NONE, z->dt, z->inner)           \
    X(M1_DT_B, "ssm_dt.bias", LAYER, VECTOR, NONE, z->inner)                  \
    X(M1_A, "ssm_a", LAYER, VECTOR, NONE, z->state, z->inner)                 \
    X(M1_D, "ssm_d", LAYER, VECTOR, NONE, z->inner)                           \
    X(M2_IN, "ssm_in.weight", LAYER, MATRIX, NONE, z->embd,                   \
      2 * z->inner + 2 * z->groups * z->state + z->dt)                        \
    X(M2_CONV, "ssm_conv1d.weight", LAYER, VECTOR, NONE, z->conv,             \
      z->inner + 2 * z->groups * z->state)                                    \
    X(M2_CONV_B, "ssm_conv1d.bias", LAYER, VECTOR, NONE,                      \
      z->inner + 2 * z->groups * z->state)                                    \
    X(M2_DT_B, "ssm_dt.bias", LAYER, VECTOR, NONE, z->dt)                     \
    X(M2_A, "ssm_a", LAYER, VECTOR, NONE, 1, z->dt)                           \
    X(M2_D, "ssm_d", LAYER, VECTOR, NONE, 1, z->dt)                           \
    X(M2_NORM, "ssm_norm.weight", LAYER, VECTOR, NONE, z->inner / z->groups,  \
      z->groups)                                                              \
    X(PLAMO_X, "ssm_x.weight", LAYER, MATRIX, NONE, z->inner,                 \
      z->rank_q + 2 * z->state)                                               \
    X(PLAMO_DT_NORM, "ssm_dt_norm", LAYER, VECTOR, NONE, z->rank_q)           \
    X(PLAMO_B_NORM, "ssm_b_norm", LAYER, VECTOR, NONE, z->state)              \
    X(PLAMO_C_NORM, "ssm_c_norm", LAYER, VECTOR, NONE, z->state)              \
    X(PLAMO_DT, "ssm_dt.weight", LAYER, MATRIX, NONE, z->rank_q, z->dt)       \
    X(HEADS_A, "ssm_a", LAYER, VECTOR, NONE, z->dt)                           \
    X(HEADS_D, "ssm_d", LAYER, VECTOR, NONE, z->dt)                           \
    X(SSM_OUT, "ssm_out.weight", LAYER, MATRIX, NONE, z->inner, z->embd)      \
    X(DELTA_QKV, "attn_qkv.weight", LAYER, MATRIX, DELTA_IN, z->embd,         \
      z->inner + 2 * z->groups * z->state)                                    \
    X(DELTA_GATE, "attn_gate.weight", LAYER, MATRIX, DELTA_IN, z->embd,       \
      z->inner)                                                               \
    X(DELTA_IN, "ssm_in.weight", LAYER, MATRIX, NONE, z->embd,                \
      2 * z->inner + 2 * z->groups * z->state)                                \
    X(DELTA_BA, "ssm_ba.weight", LAYER, MATRIX, NONE, z->embd, 2 * z->dt)     \
    X(DELTA_BETA, "ssm_beta.weight", LAYER, MATRIX, NONE, z->embd, z->dt)     \
    X(DELTA_ALPHA, "ssm_alpha.weight", LAYER, MATRIX, NONE, z->embd, z->dt)   \
    X(DELTA_NORM, "ssm_norm.weight", LAYER, VECTOR, NONE, z->state)           \
    X(KDA_Q, "attn_q.weight", LAYER, MATRIX, NONE, z->embd,                   \
      z->n_head * z->kda)                                                     \
    X(KDA_K, "attn_k.weight", LAYER, MATRIX, NONE, z->embd,                   \
      z->n_head * z->kda)                                                     \
    X(KDA_V, "attn_v.weight", LAYER, MATRIX, NONE, z->embd,                   \
      z->n_head * z->kda)                                                     \
    X(KDA_CONV_Q, "ssm_conv1d_q.weight", LAYER, VECTOR, NONE, z->conv, 1,     \
      z->n_head * z->kda)                                                     \
    X(KDA_CONV_K, "ssm_conv1d_k.weight", LAYER, VECTOR, NONE, z->conv, 1,     \
      z->n_head * z->kda)                                                     \
    X(KDA_CONV_V, "ssm_conv1d_v.weight", LAYER, VECTOR, NONE, z->conv, 1,     \
      z->n_head * z->kda)                                                     \
    X(KDA_F_A, "ssm_f_a.weight", LAYER, MATRIX, NONE, z->embd, z->kda)        \
    X(KDA_F_B, "ssm_f_b.weight", LAYER, MATRIX, NONE, z->kda,                 \
      z->n_head * z->kda)                                                     \
    X(KDA_G_A, "ssm_g_a.weight", LAYER, MATRIX, NONE, z->embd, z->kda)        \
    X(KDA_G_B, "ssm_g_b.weight", LAYER, MATRIX, NONE, z->kda,                 \
      z->n_head * z->kda)                                                     \
    X(KDA_F, "ssm_f_a.weight", LAYER, MATRIX, NONE, z->embd,                  \
      z->n_head * z->kda)                                                     \
    X(KDA_G, "ssm_g_a.weight", LAYER, MATRIX, NONE, z->embd,                  \
      z->n_head * z->kda)                                                     \
    X(KDA_BETA, "ssm_beta.weight", LAYER, MATRIX, NONE, z->embd, z->n_head)   \
    X(KDA_A, "ssm_a", LAYER, VECTOR, NONE, 1, z->n_head)                      \
    X(KDA_DT_B, "ssm_dt.bias", LAYER, VECTOR, NONE, z->n_head * z->kda)       \
    X(KDA_NORM, "ssm_norm.weight", LAYER, VECTOR, NONE, z->kda)               \
    X(KDA_OUT, "attn_output.weight", LAYER, MATRIX, NONE, z->n_head * z->kda, \
      z->embd)                                                                \
    X(SHORT_IN, "shortconv.in_proj.weight", LAYER, MATRIX, NONE, z->embd,     \
      3 * z->embd)                                                            \
    X(SHORT_CONV, "shortconv.conv.weight", LAYER, VECTOR, NONE, z->lconv,     \
      z->embd)                                                                \
    X(SHORT_OUT, "shortconv.out_proj.weight", LAYER, MATRIX, NONE, z->embd,   \
      z->embd)

#define GG_WEIGHTS_RWKV(X)                                                    \
    X(TM_LERP, "time_mix_lerp_fused.weight", LAYER, VECTOR, TM_LERP_W,        \
      z->embd, 1, 1, z->lerps)                                                \
    X(TM_LERP_X, "time_mix_lerp_x.weight", LAYER, VECTOR, NONE, z->embd)      \
    X(TM_LERP_W, "time_mix_lerp_w.weight", LAYER, VECTOR, NONE, z->embd)      \
    X(TM_LERP_K, "time_mix_lerp_k.weight", LAYER, VECTOR, NONE, z->embd)      \
    X(TM_LERP_V, "time_mix_lerp_v.weight", LAYER, VECTOR, NONE, z->embd)      \
    X(TM_LERP_R, "time_mix_lerp_r.weight", LAYER, VECTOR, NONE, z->embd)      \
    X(TM_LERP_G, "time_mix_lerp_g.weight", LAYER, VECTOR, NONE, z->embd)      \
    X(TM6_W1, "time_mix_w1.weight", LAYER, MATRIX, NONE, z->embd, 5 * z->mix) \
    X(TM6_W2, "time_mix_w2.weight", LAYER, MATRIX, NONE, z->mix, z->embd, 5)  \
    X(TM_FIRST, "time_mix_first.weight", LAYER, VECTOR, NONE, z->wkv,         \
      z->embd / z->wkv)                                                       \
    X(TM_DECAY, "time_mix_decay.weight", LAYER, VECTOR, NONE, z->embd)        \
    X(TM_DECAY_W1, "time_mix_decay_w1.weight", LAYER, MATRIX, NONE, z->embd,  \
      z->decay)                                                               \
    X(TM_DECAY_W2, "time_mix_decay_w2.weight", LAYER, MATRIX, NONE, z->decay, \
      z->embd)                                                                \
    X(TM_KEY, "time_mix_key.weight", LAYER, MATRIX, NONE, z->embd, z->wkv_v)  \
    X(TM_KEY_B, "time_mix_key.bias", LAYER, VECTOR, NONE, z->wkv_v)           \
    X(TM_VALUE, "time_mix_value.weight", LAYER, MATRIX, NONE, z->embd,        \
      z->wkv_v)                                                               \
    X(TM_VALUE_B, "time_mix_value.bias", LAYER, VECTOR, NONE, z->wkv_v)       \
    X(TM_RECEPT, "time_mix_receptance.weight", LAYER, MATRIX, NONE, z->embd,  \
      z->embd)                                                                \
    X(TM_RECEPT_B, "time_mix_receptance.bias", LAYER, VECTOR, NONE, z->embd)  \
    X(TM_GATE, "time_mix_gate.weight", LAYER, MATRIX, NONE, z->embd, z->embd) \
    X(TM_LN, "time_mix_ln.weight", LAYER, VECTOR, NONE, z->embd)              \
    X(TM_LN_B, "time_mix_ln.bias", LAYER, VECTOR, NONE, z->embd)              \
    X(TM_OUT, "time_mix_output.weight", LAYER, MATRIX, NONE, z->embd,         \
      z->embd)                                                                \
    X(TM7_W0, "time_mix_w0.weight", LAYER, VECTOR, NONE, z->embd)             \
    X(TM7_W1, "time_mix_w1.weight", LAYER, MATRIX, NONE, z->embd, z->decay)   \
    X(TM7_W2, "time_mix_w2.weight", LAYER, MATRIX, NONE, z->decay, z->embd)   \
    X(TM7_A0, "time_mix_a0.weight", LAYER, VECTOR, NONE, z->embd)             \
    X(TM7_A1, "time_mix_a1.weight", LAYER, MATRIX, NONE, z->embd, z->iclr)    \
    X(TM7_A2, "time_mix_a2.weight", LAYER, MATRIX, NONE, z->iclr, z->embd)    \
    X(TM7_V0, "time_mix_v0.weight", LAYER, VECTOR, NONE, z->embd)             \
    X(TM7_V1, "time_mix_v1.weight", LAYER, MATRIX, NONE, z->embd, z->vres)    \
    X(TM7_V2, "time_mix_v2.weight", LAYER, MATRIX, NONE, z->vres, z->embd)    \
    X(TM7_G1, "time_mix_g1.weight", LAYER, MATRIX, NONE, z->embd, z->gate)    \
    X(TM7_G2, "time_mix_g2.weight", LAYER, MATRIX, NONE, z->gate, z->embd)    \
    X(TM7_K_K, "time_mix_k_k.weight", LAYER, VECTOR, NONE, z->embd)           \
    X(TM7_K_A, "time_mix_k_a.weight", LAYER, VECTOR, NONE, z->embd)           \
    X(TM7_R_K, "time_mix_r_k.weight", LAYER, VECTOR, NONE, z->embd)           \
    X(CM_LERP_K, "channel_mix_lerp_k.weight", LAYER, VECTOR, NONE, z->embd)   \
    X(CM_LERP_R, "channel_mix_lerp_r.weight", LAYER, VECTOR, NONE, z->embd)   \
    X(CM_KEY, "channel_mix_key.weight", LAYER, MATRIX, NONE, z->embd, z->ff)  \
    X(CM_VALUE, "channel_mix_value.weight", LAYER, MATRIX, NONE, z->ff,       \
      z->embd)                                                                \
    X(CM_RECEPT, "channel_mix_receptance.weight", LAYER, MATRIX, NONE,        \
      z->embd, z->embd)

/* Weights of one or two architectures. */
/* Low-rank deltas of a matrix [in, out], a pair for each switched adapter. */
#define GG_WEIGHT_PAIR(X, ID, NAME, IN, OUT)                                  \
    X(ID##_LORA_A, NAME ".lora_a", LAYER, MATRIX, NONE, IN, z->lora,          \
      z->n_lora)                                                              \
    X(ID##_LORA_B, NAME ".lora_b", LAYER, MATRIX, NONE, z->lora, OUT,         \
      z->n_lora)

#define GG_WEIGHTS_ODD(X)                                                     \
    GG_WEIGHT_PAIR(X, ATTN_Q, "attn_q", z->embd, z->q)                        \
    GG_WEIGHT_PAIR(X, ATTN_K, "attn_k", z->embd, z->k)                        \
    GG_WEIGHT_PAIR(X, ATTN_V, "attn_v", z->embd, z->v)                        \
    GG_WEIGHT_PAIR(X, ATTN_OUT, "attn_output", z->n_head * z->head_v,         \
                   z->embd)                                                   \
    GG_WEIGHT_PAIR(X, FFN_GATE, "ffn_gate", z->embd, z->ff)                   \
    GG_WEIGHT_PAIR(X, FFN_UP, "ffn_up", z->embd, z->ff)                       \
    GG_WEIGHT_PAIR(X, FFN_DOWN, "ffn_down", z->ff, z->embd)                   \
    X(NEXTN_PROJ, "nextn.eh_proj.weight", LAYER, MATRIX, NONE, 2 * z->embd,   \
      z->embd)                                                                \
    X(NEXTN_ENORM, "nextn.enorm.weight", LAYER, VECTOR, NONE, z->embd)        \
    X(NEXTN_HNORM, "nextn.hnorm.weight", LAYER, VECTOR, NONE, z->draft)       \
    X(NEXTN_EMBD, "nextn.embed_tokens.weight", LAYER, MATRIX, NONE, z->embd,  \
      z->vocab)                                                               \
    X(NEXTN_HEAD, "nextn.shared_head_head.weight", LAYER, MATRIX, NONE,       \
      z->embd, z->vocab)                                                      \
    X(NEXTN_NORM, "nextn.shared_head_norm.weight", LAYER, VECTOR, NONE,       \
      z->embd)                                                                \
    X(VIS_QKV, "vis_attn_qkv.weight", LAYER, MATRIX, NONE, z->embd,           \
      z->q + z->k + z->v)                                                     \
    X(VIS_OUT, "vis_attn_output.weight", LAYER, MATRIX, NONE,                 \
      z->n_head * z->head_v, z->embd)                                         \
    X(VIS_GATE, "vis_gate.weight", LAYER, MATRIX, NONE, z->embd, z->ff)       \
    X(VIS_UP, "vis_up.weight", LAYER, MATRIX, NONE, z->embd, z->ff)           \
    X(VIS_DOWN, "vis_down.weight", LAYER, MATRIX, NONE, z->ff, z->embd)       \
    X(INP_GATE, "inp_gate.weight", LAYER, MATRIX, NONE, z->embd,              \
      z->per_layer)                                                           \
    X(INP_PROJ, "proj.weight", LAYER, MATRIX, NONE, z->per_layer, z->embd)    \
    X(INP_NORM, "post_norm.weight", LAYER, VECTOR, NONE, z->embd)             \
    X(ALTUP_CORRECT, "altup_correct_coef.weight", LAYER, MATRIX, NONE,        \
      z->streams, z->streams)                                                 \
    X(ALTUP_SCALE, "altup_correct_scale.weight", LAYER, VECTOR, NONE,         \
      z->embd)                                                                \
    X(ALTUP_PREDICT, "altup_predict_coef.weight", LAYER, MATRIX, NONE,        \
      z->streams, z->streams * z->streams)                                    \
    X(ALTUP_ROUTER, "altup_router.weight", LAYER, MATRIX, NONE, z->embd,      \
      z->streams)                                                             \
    X(ALTUP_NORM, "altup_router_norm.weight", LAYER, VECTOR, NONE, z->embd)   \
    X(LAUREL_L, "laurel_l.weight", LAYER, MATRIX, NONE, z->embd, 64)          \
    X(LAUREL_R, "laurel_r.weight", LAYER, MATRIX, NONE, 64, z->embd)          \
    X(LAUREL_NORM, "laurel_post_norm.weight", LAYER, VECTOR, NONE, z->embd)   \
    X(KDA_G_BARE, "ssm_g.weight", LAYER, MATRIX, NONE, z->embd,               \
      z->n_head * z->kda)                                                     \
    X(KDA_A_FLAT, "ssm_a", LAYER, VECTOR, NONE, z->n_head)                    \
    X(ROUTED_DOWN, "ffn_routed_down.weight", LAYER, MATRIX, NONE, z->embd,    \
      z->expert_in)                                                           \
    X(ROUTED_NORM, "ffn_routed_norm.weight", LAYER, VECTOR, NONE,             \
      z->expert_in)                                                           \
    X(ROUTED_UP, "ffn_routed_up.weight", LAYER, MATRIX, NONE, z->expert_in,   \
      z->embd)                                                                \
    X(ATTN_RES_SCORE, "attn_res_score.weight", LAYER, VECTOR, NONE, z->embd)  \
    X(FFN_RES_SCORE, "ffn_res_score.weight", LAYER, VECTOR, NONE, z->embd)    \
    X(OUTPUT_RES_SCORE, "output_res_score.weight", MODEL, VECTOR, NONE,       \
      z->embd)                                                                \
    X(IDX_K_NORM, "indexer.k_norm.weight", LAYER, VECTOR, NONE, z->idx)       \
    X(IDX_K_NORM_B, "indexer.k_norm.bias", LAYER, VECTOR, NONE, z->idx)       \
    X(IDX_PROJ, "indexer.proj.weight", LAYER, MATRIX, NONE, z->embd,          \
      z->n_idx)                                                               \
    X(IDX_K, "indexer.attn_k.weight", LAYER, MATRIX, NONE, z->embd, z->idx)   \
    X(IDX_Q_B, "indexer.attn_q_b.weight", LAYER, MATRIX, NONE, z->rank_q,     \
      z->n_idx * z->idx)                                                      \
    X(IDX_Q_PROJ, "indexer.q_proj.weight", LAYER, MATRIX, NONE, z->embd,      \
      z->n_idx * z->idx)                                                      \
    X(IDX_K_PROJ, "indexer.k_proj.weight", LAYER, MATRIX, NONE, z->embd,      \
      z->idx)                                                                 \
    X(IDX_Q_NORM, "indexer.q_norm.weight", LAYER, VECTOR, NONE, z->idx)       \
    X(HC_ATTN_FN, "hc_attn_fn.weight", LAYER, MATRIX, NONE,                   \
      z->streams * z->embd, z->hc)                                            \
    X(HC_ATTN_BASE, "hc_attn_base.weight", LAYER, VECTOR, NONE, z->hc)        \
    X(HC_ATTN_SCALE, "hc_attn_scale.weight", LAYER, VECTOR, NONE,             \
      z->hc_scales)                                                           \
    X(HC_FFN_FN, "hc_ffn_fn.weight", LAYER, MATRIX, NONE,                     \
      z->streams * z->embd, z->hc)                                            \
    X(HC_FFN_BASE, "hc_ffn_base.weight", LAYER, VECTOR, NONE, z->hc)          \
    X(HC_FFN_SCALE, "hc_ffn_scale.weight", LAYER, VECTOR, NONE, z->hc_scales) \
    X(DS4_KV, "attn_kv.weight", LAYER, MATRIX, NONE, z->embd, z->head)        \
    X(DS4_KV_NORM, "attn_kv_a_norm.weight", LAYER, VECTOR, NONE, z->head)     \
    X(DS4_OUT_A, "attn_output_a.weight", LAYER, MATRIX, NONE,                 \
      z->n_head * z->head / z->out_groups, z->any, z->any)                    \
    X(DS4_OUT_B, "attn_output_b.weight", LAYER, MATRIX, NONE,                 \
      z->out_rank * z->out_groups, z->embd)                                   \
    X(COMP_KV, "attn_compressor_kv.weight", LAYER, MATRIX, NONE, z->embd,     \
      z->wide * z->head)                                                      \
    X(COMP_GATE, "attn_compressor_gate.weight", LAYER, MATRIX, NONE, z->embd, \
      z->wide * z->head)                                                      \
    X(COMP_APE, "attn_compressor_ape.weight", LAYER, MATRIX, NONE,            \
      z->wide * z->head, z->ratio)                                            \
    X(COMP_NORM, "attn_compressor_norm.weight", LAYER, VECTOR, NONE, z->head) \
    X(IDX_COMP_KV, "indexer_compressor_kv.weight", LAYER, MATRIX, NONE,       \
      z->embd, z->wide * z->idx)                                              \
    X(IDX_COMP_GATE, "indexer_compressor_gate.weight", LAYER, MATRIX, NONE,   \
      z->embd, z->wide * z->idx)                                              \
    X(IDX_COMP_APE, "indexer_compressor_ape.weight", LAYER, MATRIX, NONE,     \
      z->wide * z->idx, z->ratio)                                             \
    X(IDX_COMP_NORM, "indexer_compressor_norm.weight", LAYER, VECTOR, NONE,   \
      z->idx)

/* Weights of encoder and decoder (T5): the same parts under each one's
 * prefix. */
#define GG_WEIGHTS_T5(X)                                                      \
    GG_WEIGHTS_T5_HALF(X, ENC, ENCODER)                                       \
    GG_WEIGHTS_T5_HALF(X, DEC, DECODER)                                       \
    X(CROSS_NORM, "cross_attn_norm.weight", DECODER, VECTOR, NONE, z->embd)   \
    X(CROSS_Q, "cross_attn_q.weight", DECODER, MATRIX, NONE, z->embd, z->q)   \
    X(CROSS_K, "cross_attn_k.weight", DECODER, MATRIX, NONE, z->embd, z->k)   \
    X(CROSS_V, "cross_attn_v.weight", DECODER, MATRIX, NONE, z->embd, z->v)   \
    X(CROSS_OUT, "cross_attn_o.weight", DECODER, MATRIX, NONE,                \
      z->n_head * z->head_v, z->embd)                                         \
    X(CROSS_REL, "cross_attn_rel_b.weight", DECODER, MATRIX, NONE, z->n_head, \
      z->buckets)
#define GG_WEIGHTS_T5_HALF(X, P, SCOPE)                                       \
    X(P##_NORM, "attn_norm.weight", SCOPE, VECTOR, NONE, z->embd)             \
    X(P##_Q, "attn_q.weight", SCOPE, MATRIX, NONE, z->embd, z->q)             \
    X(P##_K, "attn_k.weight", SCOPE, MATRIX, NONE, z->embd, z->k)             \
    X(P##_V, "attn_v.weight", SCOPE, MATRIX, NONE, z->embd, z->v)             \
    X(P##_OUT, "attn_o.weight", SCOPE, MATRIX, NONE, z->n_head * z->head_v,   \
      z->embd)                                                                \
    X(P##_REL, "attn_rel_b.weight", SCOPE, MATRIX, NONE, z->n_head,           \
      z->buckets)                                                             \
    X(P##_FFN_NORM, "ffn_norm.weight", SCOPE, VECTOR, NONE, z->embd)          \
    X(P##_GATE, "ffn_gate.weight", SCOPE, MATRIX, NONE, z->embd, z->ff)       \
    X(P##_UP, "ffn_up.weight", SCOPE, MATRIX, NONE, z->embd, z->ff)           \
    X(P##_DOWN, "ffn_down.weight", SCOPE, MATRIX, NONE, z->ff, z->embd)

enum gg_weight {
#define X(ID, ...) GG_W_##ID,
    GG_WEIGHT_LIST(X)
#undef X
        GG_N_WEIGHTS
};

struct gg_weight_row {
    const char *name; /* name after the prefix of the scope */
    uint8_t scope;    /* enum gg_model_scope */
    uint8_t role;     /* enum gg_model_role */
    uint16_t instead; /* enum gg_weight of a row that may replace this one */
};

extern const struct gg_weight_row gg_weights[GG_N_WEIGHTS];
/* prefixes: "", "blk.", ... */
extern const char *const gg_model_scopes[GG_N_SCOPES];

enum { GG_WEIGHT_DIMS = 4, GG_WEIGHT_NAME = 96 };

/* Name of a weight: "blk.3.attn_q.weight". */
const char *gg_weight_name(enum gg_weight id, uint32_t il,
                           char out[GG_WEIGHT_NAME]);

/* Bias of a weight; GG_W_NONE: no bias. */
enum gg_weight gg_weight_bias(enum gg_weight id);

/* Remove the prefix ("blk.N.") of a tensor's name. Returns its scope and sets
 * *il to N. */
enum gg_model_scope gg_weight_scope(struct gguf_str *name, uint64_t *il);

/* Compute the shape of a weight in a layer of these sizes: 1 for dimensions
 * that it lacks, 0 for unknown numbers. */
void gg_weight_ne(enum gg_weight id, const struct gg_model_sizes *z,
                  int64_t ne[GG_WEIGHT_DIMS]);

/* Does t have this shape? */
bool gg_weight_fits(const struct gguf_tensor_info *t,
                    const int64_t ne[GG_WEIGHT_DIMS]);

/* Text of a wrong shape: "tensor 'x' has shape [1, 2], must be [1, 3]". */
struct gg_weight_text {
    char s[320];
};
const char *gg_weight_shape_text(struct gg_weight_text *out,
                                 const struct gguf_tensor_info *t,
                                 const int64_t ne[GG_WEIGHT_DIMS]);

#endif
