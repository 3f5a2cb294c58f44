/* SPDX-License-Identifier: MIT */
/* arch_row.h - macros for rows of architectures
 *
 * Only the files of families include this. A macro stands for columns that many
 * rows share. Rows were written after llama.cpp of August 2026;
 * tests/family/check-archs compares each with a model of its architecture.
 */
#ifndef GG_MODEL_FAMILY_ARCH_ROW_H
#define GG_MODEL_FAMILY_ARCH_ROW_H

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/model_base.h"
#include "model/arch.h"
#include "model/build_int.h"
#include "model/family/families.h"
#include "model/hparam/hparams_int.h"
#include "model/weight/needs.h"

/* clang-format off */
#define W(ID) GG_W_##ID
#define N(ID) GG_NEED(ID)
#define M(ID) GG_MAYBE(ID)
#define K(FIELD) GG_KEY(FIELD)
#define KM(FIELD) GG_KEY_MAYBE(FIELD)
#define MORE(...) .more = (const uint16_t[]){ __VA_ARGS__, 0 }

#define D(FIELD, VALUE) { GG_HP_##FIELD, VALUE }
#define DEFAULTS(...)                                                         \
    .defaults = (const struct gg_arch_default[]){ __VA_ARGS__, { 0, 0 } }

#define UNUSED(...) .unused = (const uint16_t[]){ __VA_ARGS__, 0 }

/* Norms around both parts of a layer, and the last norm. */
#define NORMS(MIX, FFN, LAST)                                                 \
    .mix_norm = MIX, .ffn_norm = FFN, .final_norm = W(LAST)
#define AT(...) { __VA_ARGS__ }
#define LLAMA                                                                 \
    .mix_norm = { .pre = W(ATTN_NORM) }, .ffn_norm = { .pre = W(FFN_NORM) },  \
    .final_norm = W(OUTPUT_NORM)
#define LLAMA_POST /* the second norm has another name */                   \
    .mix_norm = { .pre = W(ATTN_NORM) }, .ffn_norm = { .pre = W(NORM_POST) }, \
    .final_norm = W(OUTPUT_NORM)
#define SANDWICH_NORM                                                          \
    .mix_norm = { .pre = W(ATTN_NORM), .post = W(NORM_POST) },                \
    .ffn_norm = { .pre = W(FFN_NORM), .post = W(NORM_POST_FFN) },             \
    .final_norm = W(OUTPUT_NORM)
#define SANDWICH_NORM_BARE                                                     \
    .mix_norm = { .pre = W(ATTN_NORM), .post = W(NORM_POST_BARE) },           \
    .ffn_norm = { .pre = W(FFN_NORM), .post = W(NORM_POST_FFN_BARE) },        \
    .final_norm = W(OUTPUT_NORM)
#define POST_NORM                                                              \
    .mix_norm = { .post = W(NORM_POST) },                                     \
    .ffn_norm = { .post = W(NORM_POST_FFN) }, .final_norm = W(OUTPUT_NORM)
#define ONE .mix_norm = { .pre = W(ATTN_NORM) }, .final_norm = W(OUTPUT_NORM)
#define LAYER .norm = GG_NORM_LAYER, .norm_b = GG_MUST

#define NEOX .rope = GGUF_ROPE_NEOX
#define NO_ROPE .rope = GG_ROPE_NONE
#define OWN .output = GG_OUTPUT_OWN
#define HEAD_NORM .qk_norm = { .form = GG_QK_HEAD }
#define GELU_B                                                                \
    .ffn = &gg_ffn_plain, .act = &gg_ffn_act_gelu, .ffn_b = GG_MUST
#define FUSED_B .qkv = &gg_arch_qkv_fused, .qkv_b = GG_MUST, .out_b = GG_MUST
#define FREQS .rope_freqs = GG_MAY
#define LONGROPE .longrope = true

/* Experts in all layers, softmax over all experts. */
#define OR_PART &gg_arch_expert_width_or_part
#define MOE_ALL(NORM, FF)                                                     \
    { .where = &gg_arch_experts_all, .norm = GG_##NORM, .ff = FF }
#define MOE_IF_ANY                                                            \
    { .where = &gg_arch_experts_if_any, .norm = GG_MUST }

#define SSM                                                                   \
    K(ssm_conv), K(ssm_inner), K(ssm_state), K(ssm_dt)
#define LATENT                                                                \
    K(rank_kv), KM(rank_q), KM(dim_k_mla), KM(dim_v_mla)
#define INDEXER K(n_idx), K(dim_idx), K(idx_top)
#define YARN KM(yarn_log)
/* clang-format on */

#endif
