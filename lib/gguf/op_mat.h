/* SPDX-License-Identifier: MIT */
/* op_mat.h - matrix products, rotary embedding, attention
 *
 * op.h explains the notation and the failures that all builders have.
 */
#ifndef GGUF_OP_MAT_H
#define GGUF_OP_MAT_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- products ------------------------------------------------------------- */

/* Matrix product: y[i, j] = sum over p of a[p, i] * b[p, j].
 *
 *   a   [k, m, a2, a3], any type that decodes, contiguous rows: weights
 *   b   f32 [k, n, b2, b3], contiguous rows: activations. b2 is a multiple
 *       of a2 and b3 of a3
 *   ->  [m, n, b2, b3]
 *
 * Slice (i2, i3) of b meets slice (i2 / (b2 / a2), i3 / (b3 / a3)) of a, as the
 * heads of grouped-query attention do. */
GGUF_BUILDER_2(gguf_op_matmul);

/* Matrix product with a selected matrix for each column (mixture of experts):
 * y[i, u, t] = sum over p of a[p, i, ids[u, t]] * b[p, u mod n_b, t].
 *
 *   a     [k, m, n_expert], any type that decodes, contiguous rows
 *   b     f32 [k, n_b, n_tok], contiguous rows; n_b divides n_used
 *   ids   i32 [n_used, n_tok], each in 0 to n_expert - 1
 *   ->    [m, n_used, n_tok]
 *
 * An index out of range makes the computation fail with GGUF_E_INVALID. */
GGUF_API struct gguf_tensor *gguf_op_matmul_id(struct gguf_ctx *ctx,
                                               struct gguf_tensor *a,
                                               struct gguf_tensor *b,
                                               struct gguf_tensor *ids);

/* Sum of outer products: y[i, j] = sum over p of a[i, p] * b[j, p].
 *
 *   a   float [m, k, a2, a3]
 *   b   float [n, k, b2, b3]; b2 is a multiple of a2 and b3 of a3
 *   ->  [m, n, b2, b3]
 *
 * Slice (i2, i3) of b meets slice (i2 / (b2 / a2), i3 / (b3 / a3)) of a. */
GGUF_BUILDER_2(gguf_op_out_prod);

/* --- rotary embedding ----------------------------------------------------- */

/* Pairs of elements that are rotated together, and the position of each. */
enum gguf_rope_kind {
    GGUF_ROPE_NORM = 0, /* elements 2i and 2i + 1 */
    GGUF_ROPE_NEOX = 1, /* elements i and i + n_dims / 2 */

    /* Pairs as NEOX, positions on four axes (multimodal). sections[] are
     * numbers of pairs; s = i mod (their sum) chooses the axis of pair i. */

    /* The first sections[0] pairs turn by axis 0, the next sections[1] by axis
     * 1, and so on (Wang et al., Qwen2-VL, arXiv 2409.12191). */
    GGUF_ROPE_MROPE = 2,
    /* Interleaved axes: axis s mod 3 where s < 3 * sections[s mod 3], otherwise
     * axis 3 (Qwen3-VL). */
    GGUF_ROPE_IMROPE = 3,
    /* n_dims pairs of elements i and i + n_dims. Axes as MROPE; exponents
     * start anew in each section (Qwen2-VL's image encoder). */
    GGUF_ROPE_VISION = 4
};

/* Parameters of a rotary embedding (Su et al., arXiv 2104.09864), with YaRN
 * (Peng et al., arXiv 2309.00071). Pair i of a token at position p turns by the
 * angle
 *
 *   angle    = (1 - g) * freq_scale * theta_i + g * theta_i
 *   theta_i  = p * freq_base^(-2i / n_dims) / freq_factor_i
 *   g        = ext_factor * (1 - ramp(i))
 *   ramp(i)  = clamp((i - low) / max(0.001, high - low), 0, 1)
 *   low      = floor(d(beta_fast)), high = ceil(d(beta_slow)), both clamped
 *            to
 *              [0, n_dims - 1]
 *   d(beta)  = n_dims * ln(n_ctx_orig / (beta * 2 * pi)) / (2 *
 *            ln(freq_base))
 *
 * and is multiplied by attn_factor, and with YaRN also by
 * 1 + 0.1 * ln(1 / freq_scale). Elements that belong to no pair are copied. */
struct gguf_rope {
    size_t struct_size;

    /* Elements of each head that rotate, an even number of at most d. For
     * VISION: pairs, at most d / 2. */
    int32_t n_dims;

    /* Pairing, GGUF_ROPE_.... */
    int32_t kind;

    /* Tokens of context that the model was trained with. YaRN requires it. */
    int32_t n_ctx_orig;

    /* Base of the frequencies. 0: 10000. */
    float freq_base;

    /* Factor of all positions, the inverse of the context's extension. 0: 1. */
    float freq_scale;

    /* Share of extrapolation in YaRN. 0: no YaRN. */
    float ext_factor;

    /* Factor of the rotated elements. 0: 1. */
    float attn_factor;

    /* Rotations above which a pair keeps its trained frequency (YaRN). 0:
     * 32. */
    float beta_fast;

    /* Rotations below which a pair is fully interpolated (YaRN). 0: 1. */
    float beta_slow;

    /* Pairs of each axis, for MROPE, IMROPE and VISION. */
    int32_t sections[4];

    /* Must be 0. */
    int32_t reserved;
};
#define GGUF_ROPE_INIT GGUF_INIT(struct gguf_rope)

/* Rotary position embedding of the heads of x.
 *
 *   x              float [d, n_head, n_tok, s]
 *   pos            i32 [n_tok]: positions of the tokens. For MROPE, IMROPE
 *                  and VISION i32 [4 * n_tok]: the positions on axis 0,
 *                  then on axes 1, 2 and 3
 *   freq_factors   f32, one for each pair or more. NULL: all are 1
 *   rope           parameters. NULL: the defaults. The struct is copied
 *   ->             shape and type of x
 *
 * Backends find the parameters in op_params, as a struct gguf_rope in which 0
 * is replaced by the default. */
GGUF_API struct gguf_tensor *gguf_op_rope(struct gguf_ctx *ctx,
                                          struct gguf_tensor *x,
                                          struct gguf_tensor *pos,
                                          struct gguf_tensor *freq_factors,
                                          const struct gguf_rope *rope);

/* --- attention ------------------------------------------------------------ */

/* Scaled dot-product attention, for each head and without storing the matrix of
 * attention weights:
 *
 *     score = scale * (q k)
 *     score = softcap * tanh(score / softcap)       if softcap is not 0
 *     y     = softmax(score + slope * mask) v
 *
 *   q          f32 [d, n_tok, n_head, n_seq], contiguous rows
 *   k          [d, n_kv, n_head_kv, n_seq], any type that decodes,
 *              contiguous rows. n_head is a multiple of n_head_kv
 *   v          [dv, n_kv, n_head_kv, n_seq], any type that decodes,
 *              contiguous rows
 *   mask       f32 or f16 [n_kv, >= n_tok, h, s] with h = n_head, n_head_kv
 *              or 1, and s = n_seq or 1. NULL: no mask
 *   scale      factor of the products, usually 1 / sqrt(d)
 *   max_bias   ALiBi as in gguf_op_soft_max(). 0: slope is 1
 *   softcap    bound of the scores' absolute values (logit soft cap). 0:
 *              none
 *   ->         [dv, n_head, n_tok, n_seq]
 *
 * Head h reads the keys and values of head h / (n_head / n_head_kv). A token
 * whose mask is -infinity for all keys gets zeros. */
GGUF_API struct gguf_tensor *
gguf_op_attention(struct gguf_ctx *ctx, struct gguf_tensor *q,
                  struct gguf_tensor *k, struct gguf_tensor *v,
                  struct gguf_tensor *mask, float scale, float max_bias,
                  float softcap);

/* Scaled dot-product attention with attention sinks.
 *
 *   sinks   f32 [n_head]: a further score of each head, neither scaled nor
 *           masked, whose weight multiplies no value. NULL: no sinks
 *
 * The other parameters and the result are those of gguf_op_attention(). */
GGUF_API struct gguf_tensor *
gguf_op_attention_sinks(struct gguf_ctx *ctx, struct gguf_tensor *q,
                        struct gguf_tensor *k, struct gguf_tensor *v,
                        struct gguf_tensor *mask, struct gguf_tensor *sinks,
                        float scale, float max_bias, float softcap);

/* --- sparse attention ----------------------------------------------------- */

/* Mask that keeps the best keys of each token, by a lightning indexer
 * (DeepSeek-AI, DeepSeek-V3.2, section 2.1):
 *
 *     score = sum over heads h of weight[h] * max(q[h] k, 0)
 *
 *   q        f32 [d, n_tok, n_head, n_seq], contiguous rows
 *   k        [d, n_kv, 1, n_seq], any type that decodes
 *   weight   f32 [n_head, n_tok, 1, n_seq], contiguous rows
 *   mask     f32 [n_kv, >= n_tok, 1, n_seq or 1], contiguous rows. Only
 *            keys whose mask is not -infinity can be kept
 *   n_top    keys to keep for each token, >= 1
 *   ->       f32 [n_kv, n_tok, 1, n_seq]: the mask, with -infinity for all
 *            keys that are not kept
 *
 * If several keys have the lowest score that is kept, some of them are. */
GGUF_API struct gguf_tensor *
gguf_op_index_top(struct gguf_ctx *ctx, struct gguf_tensor *q,
                  struct gguf_tensor *k, struct gguf_tensor *weight,
                  struct gguf_tensor *mask, int64_t n_top);

/* Mask that keeps the best blocks of keys of each token and head (MiniMax-M3).
 * A block is `block` adjacent positions; its score is the largest q[h] k of its
 * keys.
 *
 *   q         f32 [d, n_tok, n_head, n_seq], contiguous rows
 *   k         [d, n_kv, 1, n_seq], any type that decodes
 *   pos       i32 [n_kv, 1, 1, n_seq or 1], contiguous rows: positions of
 *             the keys, >= 0 where the mask is not -infinity
 *   mask      f32 [n_kv, >= n_tok, 1, n_seq or 1], contiguous rows. Only
 *             keys whose mask is not -infinity can be kept
 *   n_top     blocks to keep for each token and head, >= 1
 *   block     positions of a block, >= 1
 *   n_local   number of last blocks with keys that can be kept, >= 0. They
 *             rank above all others, the last of them first
 *   ->        f32 [n_kv, n_tok, n_head, n_seq]: the mask, with -infinity
 *             for all keys that are not kept */
GGUF_API struct gguf_tensor *
gguf_op_index_blocks(struct gguf_ctx *ctx, struct gguf_tensor *q,
                     struct gguf_tensor *k, struct gguf_tensor *pos,
                     struct gguf_tensor *mask, int64_t n_top, int32_t block,
                     int32_t n_local);

/* Mask that keeps the best blocks of keys of each token, by one key for each
 * block, and the keys after the last complete block (Qwen3.8). A block is
 * `block` adjacent positions, beginning at a multiple of `block`.
 *
 *     score = sum over heads h of max(q[h] k, 0)
 *
 *   q         f32 [d, n_tok, n_head, n_seq], contiguous rows
 *   k         [d, n_block, 1, n_seq], any type that decodes: keys of blocks 0,
 *             1, ...
 *   pos       i32 [n_kv, 1, 1, n_seq or 1], contiguous rows: positions of
 *             the keys, >= 0 where the mask is not -infinity
 *   mask      f32 [n_kv, >= n_tok, 1, n_seq or 1], contiguous rows. Only
 *             keys whose mask is not -infinity can be kept
 *   n_top     number of keys, >= 1
 *   block     positions of a block, >= 1
 *   ->        f32 [n_kv, n_tok, 1, n_seq]: the mask, with -infinity for all
 *             keys that are not kept
 *
 * The last position of a token is the highest whose mask is not -infinity.
 * Blocks up to it are complete. Keys that belong to no complete block are
 * kept. Of the complete blocks, the best are kept that fit, together with the
 * positions after them, into n_top + block - 1 positions. If several blocks
 * have the lowest score that is kept, some of them are. */
GGUF_API struct gguf_tensor *
gguf_op_index_pooled(struct gguf_ctx *ctx, struct gguf_tensor *q,
                     struct gguf_tensor *k, struct gguf_tensor *pos,
                     struct gguf_tensor *mask, int64_t n_top, int32_t block);

/* --- parameters, for backends --------------------------------------------- */

/* The builders store these structs as parameters of their results; a backend
 * reads them with gguf_tensor_op_params(). */

/* GGUF_OP_ATTENTION, from gguf_op_attention_sinks()'s parameters. Only the
 * library makes it; later versions may add members at its end. */
struct gguf_attn_params {
    float scale;    /* factor of the products */
    float max_bias; /* ALiBi; 0: slope is 1 */
    float softcap;  /* logit soft cap; 0: none */
};

/* GGUF_OP_INDEX_TOP, GGUF_OP_INDEX_BLOCKS and GGUF_OP_INDEX_POOLED, from the
 * parameters of gguf_op_index_top(), gguf_op_index_blocks() and
 * gguf_op_index_pooled(). Only the library makes it; later versions may add
 * members at its end. */
struct gguf_index_params {
    int64_t n_top;   /* keys or blocks to keep */
    int32_t block;   /* positions of a block; INDEX_TOP: 0 */
    int32_t n_local; /* last blocks that rank first; INDEX_BLOCKS only */
};

#ifdef __cplusplus
}
#endif
#endif
