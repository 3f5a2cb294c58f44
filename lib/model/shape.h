/* shape.h - which tensors a model has, and their shapes */
#ifndef GG_MODEL_SHAPE_H
#define GG_MODEL_SHAPE_H

#include "gguf/file.h"
#include "model/arch.h"
#include "model/hparams.h"

/* Sizes that occur in shapes. n heads of d elements; kv: of keys and values,
 * which may have fewer heads; r elements are rotated. */
enum gg_dim {
    GG_DIM_NONE,     /* no such dimension: 1 */
    GG_DIM_ANY,
    GG_DIM_EMBD,
    GG_DIM_VOCAB,
    GG_DIM_CTX,      /* tokens of context in training */
    GG_DIM_ROT,      /* r / 2 */
    GG_DIM_HEAD,     /* d */
    GG_DIM_N_HEAD,
    GG_DIM_N_HEAD_KV,
    GG_DIM_Q,        /* d n */
    GG_DIM_K,        /* d n_kv */
    GG_DIM_V,
    GG_DIM_QKV,      /* the three side by side */
    GG_DIM_HEADS_V,  /* d_v n: what attention gives */
    GG_DIM_FF,
    GG_DIM_FF2,      /* gate and up side by side */
    GG_DIM_EXPERTS,
    GG_DIM_EXPERT_FF,
    GG_DIM_EXPERT_FF2,
    GG_DIM_SHARED_FF,
    GG_DIM_LORA_Q,   /* latent attention: rank of queries */
    GG_DIM_LORA_KV,  /* rank of keys and values */
    GG_DIM_LORA_KVR, /* with the rotated elements behind */
    GG_DIM_HEAD_V,   /* d_v */
    GG_DIM_NOPE,     /* d - r: what is not rotated of a key */
    GG_DIM_NOPE_V    /* (d - r + d_v) n */
};

enum gg_role {
    GG_MATRIX, /* multiplied or looked up: any type that decodes */
    GG_VECTOR  /* read as it is: F32 */
};

/* One tensor, of the model or of each of its layers. */
struct gg_shape {
    const char *name; /* behind "blk.N." if it is of a layer */
    bool block;
    enum gg_role role;
    uint8_t ne[3];     /* enum gg_dim */
    uint8_t instead;   /* enum gg_weight: or that one; GG_W_NONE */
    uint32_t need;     /* parts that cannot do without it */
    uint32_t may;      /* parts that can have it */
};

/* X(ID, name, block, role, instead, need, may, ne...) with parts and
 * dimensions less their prefixes. Of two rows with a name at most one is of an
 * architecture. */
#define GG_SHAPE_LIST(X)                                                      \
    X(NONE, "", 0, MATRIX, NONE, 0, 0, NONE)                                  \
    X(TOKEN_EMBD, "token_embd.weight", 0, MATRIX, NONE, P(TOP), 0, EMBD,      \
      VOCAB)                                                                  \
    X(EMBD_NORM, "token_embd_norm.weight", 0, VECTOR, NONE, P(EMBD_NORM), 0,  \
      EMBD)                                                                   \
    X(EMBD_NORM_B, "token_embd_norm.bias", 0, VECTOR, NONE, P(EMBD_NORM), 0,  \
      EMBD)                                                                   \
    X(POSITION, "position_embd.weight", 0, MATRIX, NONE, P(POSITION), 0,      \
      EMBD, CTX)                                                              \
    X(OUTPUT_NORM, "output_norm.weight", 0, VECTOR, NONE, P(TOP), 0, EMBD)    \
    X(OUTPUT_NORM_B, "output_norm.bias", 0, VECTOR, NONE, P(NORM_BIAS), 0,    \
      EMBD)                                                                   \
    X(OUTPUT, "output.weight", 0, MATRIX, NONE, 0, P(TOP), EMBD, VOCAB)       \
    X(OUTPUT_B, "output.bias", 0, VECTOR, NONE, 0, P(TOP), VOCAB)             \
    X(ROPE_FREQS, "rope_freqs.weight", 0, VECTOR, NONE, 0, P(TOP), ROT)       \
    X(ROPE_LONG, "rope_factors_long.weight", 0, VECTOR, NONE, 0, P(TOP), ROT) \
    X(ROPE_SHORT, "rope_factors_short.weight", 0, VECTOR, NONE, 0, P(TOP),    \
      ROT)                                                                    \
    X(CLS, "cls.weight", 0, MATRIX, NONE, 0, P(TOP), EMBD, ANY)               \
    X(CLS_B, "cls.bias", 0, VECTOR, NONE, 0, P(TOP), ANY)                     \
    X(CLS_OUT, "cls.output.weight", 0, MATRIX, NONE, 0, P(TOP), EMBD, ANY)    \
    X(CLS_OUT_B, "cls.output.bias", 0, VECTOR, NONE, 0, P(TOP), ANY)          \
    X(ATTN_NORM, "attn_norm.weight", 1, VECTOR, NONE, P(NORM), 0, EMBD)       \
    X(ATTN_NORM_B, "attn_norm.bias", 1, VECTOR, NONE, P(NORM_BIAS), 0, EMBD)  \
    X(ATTN_NORM_2, "attn_norm_2.weight", 1, VECTOR, NONE, 0, P(NORM_MORE),    \
      EMBD)                                                                   \
    X(ATTN_NORM_2_B, "attn_norm_2.bias", 1, VECTOR, NONE, 0, P(NORM_MORE),    \
      EMBD)                                                                   \
    X(ATTN_Q, "attn_q.weight", 1, MATRIX, ATTN_QKV, P(QKV),                   \
      P(QKV_ONE) | P(MLA), EMBD, Q)                                           \
    X(ATTN_K, "attn_k.weight", 1, MATRIX, ATTN_QKV, P(QKV), P(QKV_ONE), EMBD, \
      K)                                                                      \
    X(ATTN_V, "attn_v.weight", 1, MATRIX, ATTN_QKV, P(QKV), P(QKV_ONE), EMBD, \
      V)                                                                      \
    X(ATTN_QKV, "attn_qkv.weight", 1, MATRIX, ATTN_Q, P(QKV_ONE), P(QKV),     \
      EMBD, QKV)                                                              \
    X(ATTN_Q_B, "attn_q.bias", 1, VECTOR, ATTN_QKV_B, P(BIAS),                \
      P(BIAS_MAYBE), Q)                                                       \
    X(ATTN_K_B, "attn_k.bias", 1, VECTOR, ATTN_QKV_B, P(BIAS),                \
      P(BIAS_MAYBE), K)                                                       \
    X(ATTN_V_B, "attn_v.bias", 1, VECTOR, ATTN_QKV_B, P(BIAS),                \
      P(BIAS_MAYBE), V)                                                       \
    X(ATTN_QKV_B, "attn_qkv.bias", 1, VECTOR, NONE, 0,                        \
      P(BIAS) | P(BIAS_MAYBE), QKV)                                           \
    X(ATTN_Q_NORM, "attn_q_norm.weight", 1, VECTOR, NONE, P(HEAD_NORM),       \
      P(HEAD_NORM_MAYBE), HEAD)                                               \
    X(ATTN_K_NORM, "attn_k_norm.weight", 1, VECTOR, NONE, P(HEAD_NORM),       \
      P(HEAD_NORM_MAYBE), HEAD)                                               \
    X(HEADS_Q_NORM, "attn_q_norm.weight", 1, VECTOR, NONE, 0, P(HEADS_NORM),  \
      HEAD, N_HEAD)                                                           \
    X(HEADS_K_NORM, "attn_k_norm.weight", 1, VECTOR, NONE, 0, P(HEADS_NORM),  \
      HEAD, N_HEAD_KV)                                                        \
    X(WIDE_Q_NORM, "attn_q_norm.weight", 1, VECTOR, NONE, P(WIDE_NORM), 0, Q) \
    X(WIDE_K_NORM, "attn_k_norm.weight", 1, VECTOR, NONE, P(WIDE_NORM), 0, K) \
    X(ATTN_SINKS, "attn_sinks.weight", 1, VECTOR, NONE, P(SINKS), 0, N_HEAD)  \
    X(ATTN_OUT, "attn_output.weight", 1, MATRIX, NONE, P(TOP), 0, HEADS_V,    \
      EMBD)                                                                   \
    X(ATTN_OUT_B, "attn_output.bias", 1, VECTOR, NONE, P(BIAS),               \
      P(BIAS_MAYBE), EMBD)                                                    \
    X(NORM_POST, "post_attention_norm.weight", 1, VECTOR, NONE, P(NORM_POST), \
      0, EMBD)                                                                \
    X(MLA_Q_A, "attn_q_a.weight", 1, MATRIX, NONE, P(MLA_Q), 0, EMBD, LORA_Q) \
    X(MLA_Q_NORM, "attn_q_a_norm.weight", 1, VECTOR, NONE, P(MLA_Q), 0,       \
      LORA_Q)                                                                 \
    X(MLA_Q_B, "attn_q_b.weight", 1, MATRIX, ATTN_Q, P(MLA), 0, LORA_Q, Q)    \
    X(MLA_KV_A, "attn_kv_a_mqa.weight", 1, MATRIX, NONE, P(MLA), 0, EMBD,     \
      LORA_KVR)                                                               \
    X(MLA_KV_NORM, "attn_kv_a_norm.weight", 1, VECTOR, NONE, P(MLA), 0,       \
      LORA_KV)                                                                \
    X(MLA_KV_B, "attn_kv_b.weight", 1, MATRIX, MLA_K_B, P(MLA), 0, LORA_KV,   \
      NOPE_V)                                                                 \
    X(MLA_K_B, "attn_k_b.weight", 1, MATRIX, MLA_KV_B, P(MLA), 0, NOPE,       \
      LORA_KV, N_HEAD)                                                        \
    X(MLA_V_B, "attn_v_b.weight", 1, MATRIX, MLA_KV_B, P(MLA), 0, LORA_KV,    \
      HEAD_V, N_HEAD)                                                         \
    X(FFN_NORM, "ffn_norm.weight", 1, VECTOR, NONE, P(NORM_FFN),              \
      P(NORM_MORE), EMBD)                                                     \
    X(FFN_NORM_B, "ffn_norm.bias", 1, VECTOR, NONE, 0, P(NORM_BIAS), EMBD)    \
    X(FFN_GATE, "ffn_gate.weight", 1, MATRIX, NONE, P(FFN_GATE), 0, EMBD, FF) \
    X(FFN_UP, "ffn_up.weight", 1, MATRIX, NONE, P(FFN_UP), 0, EMBD, FF)       \
    X(FFN_DOWN, "ffn_down.weight", 1, MATRIX, NONE, P(FFN), 0, FF, EMBD)      \
    X(FFN_GATE_B, "ffn_gate.bias", 1, VECTOR, NONE, 0, P(BIAS_MAYBE), FF)     \
    X(FFN_UP_B, "ffn_up.bias", 1, VECTOR, NONE, 0, P(BIAS) | P(BIAS_MAYBE),   \
      FF)                                                                     \
    X(FFN_DOWN_B, "ffn_down.bias", 1, VECTOR, NONE, 0,                        \
      P(BIAS) | P(BIAS_MAYBE), EMBD)                                          \
    X(FFN_UP_FUSED, "ffn_up.weight", 1, MATRIX, NONE, P(FFN_FUSED), 0, EMBD,  \
      FF2)                                                                    \
    X(NORM_POST_FFN, "post_ffw_norm.weight", 1, VECTOR, NONE,                 \
      P(NORM_POST_FFN), 0, EMBD)                                              \
    X(ROUTER, "ffn_gate_inp.weight", 1, MATRIX, NONE, P(MOE), 0, EMBD,        \
      EXPERTS)                                                                \
    X(ROUTER_B, "ffn_gate_inp.bias", 1, VECTOR, NONE, P(MOE_BIAS), 0,         \
      EXPERTS)                                                                \
    X(ROUTER_PROBS_B, "exp_probs_b.bias", 1, VECTOR, NONE, 0, P(MOE),         \
      EXPERTS)                                                                \
    X(GATE_EXPS, "ffn_gate_exps.weight", 1, MATRIX, GATE_UP_EXPS, P(MOE), 0,  \
      EMBD, EXPERT_FF, EXPERTS)                                               \
    X(UP_EXPS, "ffn_up_exps.weight", 1, MATRIX, GATE_UP_EXPS, P(MOE), 0,      \
      EMBD, EXPERT_FF, EXPERTS)                                               \
    X(GATE_UP_EXPS, "ffn_gate_up_exps.weight", 1, MATRIX, NONE, 0, P(MOE),    \
      EMBD, EXPERT_FF2, EXPERTS)                                              \
    X(DOWN_EXPS, "ffn_down_exps.weight", 1, MATRIX, NONE, P(MOE), 0,          \
      EXPERT_FF, EMBD, EXPERTS)                                               \
    X(GATE_EXPS_B, "ffn_gate_exps.bias", 1, VECTOR, GATE_UP_EXPS_B,           \
      P(MOE_BIAS), 0, EXPERT_FF, EXPERTS)                                     \
    X(UP_EXPS_B, "ffn_up_exps.bias", 1, VECTOR, GATE_UP_EXPS_B, P(MOE_BIAS),  \
      0, EXPERT_FF, EXPERTS)                                                  \
    X(GATE_UP_EXPS_B, "ffn_gate_up_exps.bias", 1, VECTOR, NONE, 0,            \
      P(MOE_BIAS), EXPERT_FF2, EXPERTS)                                       \
    X(DOWN_EXPS_B, "ffn_down_exps.bias", 1, VECTOR, NONE, P(MOE_BIAS), 0,     \
      EMBD, EXPERTS)                                                          \
    X(GATE_SHARED, "ffn_gate_shexp.weight", 1, MATRIX, NONE, P(SHARED), 0,    \
      EMBD, SHARED_FF)                                                        \
    X(UP_SHARED, "ffn_up_shexp.weight", 1, MATRIX, NONE, P(SHARED), 0, EMBD,  \
      SHARED_FF)                                                              \
    X(DOWN_SHARED, "ffn_down_shexp.weight", 1, MATRIX, NONE, P(SHARED), 0,    \
      SHARED_FF, EMBD)                                                        \
    X(ROUTER_SHARED, "ffn_gate_inp_shexp.weight", 1, VECTOR, NONE,            \
      P(SHARED_GATE), 0, EMBD)

enum gg_weight {
#define X(ID, ...) GG_W_##ID,
    GG_SHAPE_LIST(X)
#undef X
    GG_N_WEIGHTS
};

extern const struct gg_shape gg_shapes[GG_N_WEIGHTS];

/* The row of a name (behind "blk.N." if block) in a model of these parts, or
 * NULL. */
const struct gg_shape *gg_shape_find(struct gguf_str name, bool block,
                                     uint32_t parts);

/* The parts of layer l, or of the whole model if l is NULL: those of the
 * architecture less what hyperparameters turn off. */
uint32_t gg_shape_parts(const struct gg_arch *arch,
                        const struct gg_hparams *hp,
                        const struct gg_layer_hp *l);

/* What a tensor of layer l must have (of the model: l is any layer): elements
 * per dimension, 0 where that is not known, 1 where there is none. */
void gg_shape_want(const struct gg_shape *shape, const struct gg_hparams *hp,
                   const struct gg_layer_hp *l, int64_t want[3]);

/* Does t have it? */
bool gg_shape_fits(const struct gguf_tensor_info *t, const int64_t want[3]);

/* "tensor 'x' has shape [1, 2], must be [1, 3]" */
struct gg_shape_text {
    char s[320];
};
const char *gg_shape_text(struct gg_shape_text *out,
                          const struct gguf_tensor_info *t,
                          const struct gg_shape *shape,
                          const int64_t want[3]);

#endif
