/* SPDX-License-Identifier: MIT */
/* op_mat.h - matrix products, rotary embedding, attention
 *
 * Conventions: op.h.
 */
#ifndef GGUF_OP_MAT_H
#define GGUF_OP_MAT_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- products ------------------------------------------------------------- */

/* a [k, m, a2, a3] of any type that decodes, b f32 [k, n, b2, b3] ->
 * [m, n, b2, b3]: element (i, j) is the dot product of row i of a and row j of
 * b. b2 is a multiple of a2, b3 of a3: slice (i2, i3) of b meets slice
 * (i2 / (b2 / a2), i3 / (b3 / a3)) of a, as grouped heads do. Rows of both
 * are contiguous in memory, all else may be strided. */
GGUF_BUILDER_2(gguf_op_matmul);

/* A matrix for each column, by number: a [k, m, n_expert], b f32 [k, n_b,
 * n_tok], ids i32 [n_used, n_tok] -> [m, n_used, n_tok]: column (u, t) is
 * matrix ids[u, t] times column (u mod n_b, t) of b; n_b divides n_used. A
 * number that is not in [0, n_expert) fails the computation. */
GGUF_API struct gguf_tensor *gguf_op_matmul_id(struct gguf_ctx *ctx,
                                               struct gguf_tensor *a,
                                               struct gguf_tensor *b,
                                               struct gguf_tensor *ids);

/* Sum of outer products: a [m, k, a2, a3], b [n, k, b2, b3] -> [m, n, b2, b3]:
 * element (i, j) is the sum over p of a[i, p] b[j, p]. Slices meet as in
 * matmul. */
GGUF_BUILDER_2(gguf_op_out_prod);

/* --- rotary embedding ----------------------------------------------------- */

/* Which elements of a head are a pair, and which position turns it. */
enum gguf_rope_kind {
    GGUF_ROPE_NORM = 0, /* 2i and 2i + 1 */
    GGUF_ROPE_NEOX = 1, /* i and i + n_dims / 2 */
    /* These pair as NEOX does; pair i turns by the position on one of four
     * axes, which sections[4], numbers of pairs, and s = i mod (their sum)
     * choose: */
    GGUF_ROPE_MROPE = 2,  /* the first sections[0] pairs by axis 0, the next
                             sections[1] by axis 1 and so on (Wang et al.,
                             Qwen2-VL, arXiv 2409.12191) */
    GGUF_ROPE_IMROPE = 3, /* axis s mod 3 where s < 3 sections[s mod 3], else
                             axis 3 (Qwen3-VL) */
    GGUF_ROPE_VISION = 4  /* pairs i and i + n_dims, n_dims of them; axes as
                             MROPE, and exponents count from the section's
                             begin (Qwen2-VL's image encoder) */
};

/* Rotary embedding (Su et al., arXiv 2104.09864), with YaRN (Peng et al.,
 * arXiv 2309.00071). Pair i of a token at position p turns by the angle
 *
 *   theta_i  = p * freq_base^(-2i / n_dims) / freq_factor_i
 *   angle    = (1 - g) * freq_scale * theta_i + g * theta_i
 *   g        = ext_factor * (1 - ramp(i)), 0 if ext_factor is 0
 *   ramp(i)  = clamp((i - low) / max(0.001, high - low), 0, 1)
 *   low, high = floor, ceil of n_dims ln(n_ctx_orig / (beta 2 pi)) /
 *               (2 ln freq_base), beta = beta_fast, beta_slow, clamped to
 *               [0, n_dims - 1]
 *
 * and is scaled by attn_factor, with ext_factor != 0 times
 * 1 + 0.1 ln(1 / freq_scale). Elements of no pair are copied. */
struct gguf_rope {
    size_t struct_size;
    int32_t n_dims;     /* elements per head that rotate: even, <= d; VISION:
                           half as many, <= d / 2 */
    int32_t kind;       /* GGUF_ROPE_... */
    int32_t n_ctx_orig; /* context the model was trained on; YaRN only */
    float freq_base;
    float freq_scale; /* 1: as trained */
    float ext_factor; /* 0: no YaRN */
    float attn_factor;
    float beta_fast, beta_slow;
    int32_t sections[4]; /* 0 for NORM and NEOX */
    int32_t reserved;    /* 0 */
};
#define GGUF_ROPE_INIT                                                        \
    {                                                                         \
        sizeof(struct gguf_rope), 0, GGUF_ROPE_NORM, 0, 10000.0f, 1.0f, 0.0f, \
            1.0f, 32.0f, 1.0f, { 0, 0, 0, 0 }, 0                              \
    }

/* x [d, n_head, n_tok, s], pos i32 [n_tok], with sections [4 n_tok]: the
 * tokens' positions on axis 0, then on axis 1, 2, 3; freq_factors f32 [>= the
 * number of pairs] or NULL (all 1) -> x's shape and type. rope is copied:
 * op_params has it as this library knows it, for backends. */
GGUF_API struct gguf_tensor *gguf_op_rope(struct gguf_ctx *ctx,
                                          struct gguf_tensor *x,
                                          struct gguf_tensor *pos,
                                          struct gguf_tensor *freq_factors,
                                          const struct gguf_rope *rope);

/* --- attention ------------------------------------------------------------ */

/* softmax(q k^T * scale + slope * mask) v for every head, without the matrix
 * of weights in memory.
 *   q     f32 [d, n_tok, n_head, n_seq]
 *   k     [d, n_kv, n_head_kv, n_seq], f32, f16 or another type that decodes
 *   v     [dv, n_kv, n_head_kv, n_seq], likewise
 *   mask  f32 or f16 [n_kv, >= n_tok, n_head, n_head_kv or 1, n_seq or 1], or
 *         NULL: added
 * -> [dv, n_head, n_tok, n_seq]. n_head is a multiple of n_head_kv; head h
 * reads h / (n_head / n_head_kv). slope as with soft_max; softcap != 0
 * replaces the scaled product x by softcap * tanh(x / softcap) before the
 * mask. A row whose mask is -inf everywhere gives zeros. Rows of q, k, v are
 * contiguous in memory, all else may be strided. */
GGUF_API struct gguf_tensor *
gguf_op_attention(struct gguf_ctx *ctx, struct gguf_tensor *q,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *mask, float scale, float max_bias,
                  float softcap);
/* The same with sinks f32 [n_head], or NULL: as soft_max_sinks. */
GGUF_API struct gguf_tensor *
gguf_op_attention_sinks(struct gguf_ctx *ctx, struct gguf_tensor *q,
                        struct gguf_tensor *k, struct gguf_tensor *v,
                        struct gguf_tensor *mask, struct gguf_tensor *sinks,
                        float scale, float max_bias, float softcap);

/* Parameters as the builders store them in op_params, for backends. Made by the
 * library: they may grow at their end (gguf_tensor_op_params). */
struct gguf_attn_params {
    float scale, max_bias, softcap;
};

/* --- which keys attention reads ------------------------------------------- */

/* A mask like the one given, but for minus infinity where keys are not chosen.
 * Only keys whose mask is not minus infinity can be.
 *
 * index_top: the n_top of the highest scores, sum over heads h of
 * weight[h] max(q[h] k, 0) (DeepSeek-AI, DeepSeek-V3.2, 2.1: the lightning
 * indexer). Of equal ones some stay.
 *   q       f32 [d, n_tok, n_head, n_seq]
 *   k       [d, n_kv, 1, n_seq], any type that decodes
 *   weight  f32 [n_head, n_tok, 1, n_seq]
 *   mask    f32 [n_kv, >= n_tok, 1, n_seq or 1]
 * -> f32 [n_kv, n_tok, 1, n_seq]
 *
 * index_blocks: those of the n_top best of blocks of so many positions, for
 * each head by itself; a block's score is the highest q[h] k of its keys. The
 * last n_local blocks with keys that may be chosen are the best, the last of
 * them first (MiniMax-M3).
 *   pos     i32 [n_kv, 1, 1, n_seq or 1]: positions of keys, from 0 on where
 *           the mask is not minus infinity
 * -> f32 [n_kv, n_tok, n_head, n_seq]
 *
 * Rows of q, weight, pos and mask are contiguous. */
GGUF_API struct gguf_tensor *
gguf_op_index_top(struct gguf_ctx *ctx, struct gguf_tensor *q,
                  struct gguf_tensor *k, struct gguf_tensor *weight,
                  struct gguf_tensor *mask, int64_t n_top);
GGUF_API struct gguf_tensor *
gguf_op_index_blocks(struct gguf_ctx *ctx, struct gguf_tensor *q,
                     struct gguf_tensor *k, struct gguf_tensor *pos,
                     struct gguf_tensor *mask, int64_t n_top, int32_t block,
                     int32_t n_local);
/* Parameters, as above. Made by the library: they may grow at their end. */
struct gguf_index_params {
    int64_t n_top;
    int32_t block, n_local;
};

#ifdef __cplusplus
}
#endif
#endif
