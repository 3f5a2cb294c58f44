/* SPDX-License-Identifier: MIT */
/* gemma.c - Gemma */
#include "config.h"
#include "model/family/arch_row.h"

/* AltUp's streams, which no key counts. */
static void size_streams(const struct gg_hparams *hp,
                         const struct gg_model_layer *l,
                         struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->streams = 4;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "gemma", .runs = true, LLAMA, NEOX, .act = &gg_ffn_act_gelu,
      .embd_scale = GG_EMBD_SCALE_SQRT, .output = GG_OUTPUT_EMBD },
    { .name = "gemma-embedding", .runs = true, FOUR, NEOX, HEAD_NORM,
      .act = &gg_ffn_act_gelu,
      .window = { GG_WINDOW_LAST_FULL, GG_MUST, 6, .centred = true,
                  .rope = GG_WINDOW_ROPE_OWN },
      .no_causal = true, .no_memory = true, .embd_scale = GG_EMBD_SCALE_SQRT,
      .output = GG_OUTPUT_NONE,
      MORE(M(OUTPUT), M(DENSE_2), M(DENSE_3), KM(dense_2_out),
           KM(dense_3_in)) },
    { .name = "gemma2", .runs = true, FOUR, NEOX, .act = &gg_ffn_act_gelu,
      .scale = GG_SCALE_SIZE, .scale_at = 46,
      .window = { GG_WINDOW_LAST_FULL, GG_MAY, 2, .size = 4096,
                  .rope = GG_WINDOW_ROPE_BASE },
      .embd_scale = GG_EMBD_SCALE_SQRT, .output = GG_OUTPUT_EMBD,
      .attn_cap = 50, .cap = 2 },
    { .name = "gemma3", .runs = true, FOUR, NEOX, HEAD_NORM,
      .act = &gg_ffn_act_gelu, .scale = GG_SCALE_SIZE, .scale_at = 62,
      .window = { GG_WINDOW_LAST_FULL, GG_MAY, 6, .rope = GG_WINDOW_ROPE_OWN },
      .embd_scale = GG_EMBD_SCALE_SQRT, .cap = 1 },
    { .name = "gemma3n", .runs = true, FOUR, NEOX, .order = GG_ORDER_ALTUP,
      .layer_sizes = { size_streams, "" }, .qkv = GG_QKV_HALF_OWN,
      .qk = { .form = GG_QK_HEAD, .value = true }, .act = &gg_ffn_act_gelu,
      .scale = GG_SCALE_ONE,
      .window = { GG_WINDOW_LAST_FULL, GG_MUST, 5, .rope = GG_WINDOW_ROPE_OWN },
      .embd_scale = GG_EMBD_SCALE_SQRT, .cap = 2, .per_layer = 256,
      .own_keys = 20, .sparse = 10,
      MORE(KM(n_per_layer), KM(n_shared_kv), KM(sparse_above), N(ALTUP_PROJ),
           N(ALTUP_UNEMBD), N(ALTUP_CORRECT), N(ALTUP_SCALE), N(ALTUP_PREDICT),
           N(ALTUP_ROUTER), N(ALTUP_NORM), N(LAUREL_L), N(LAUREL_R),
           N(LAUREL_NORM)) },
    { .name = "gemma4", .runs = true, FOUR, NEOX, .freqs = GG_MUST,
      .qkv = GG_QKV_NO_V, .qk = { .form = GG_QK_HEAD, .value = true },
      .act = &gg_ffn_act_gelu, .scale = GG_SCALE_ONE,
      .window = { GG_WINDOW_ARRAY, GG_MUST, .rope = GG_WINDOW_ROPE_OWN },
      .moe = { .where = GG_EXPERTS_TENSOR, .norm = GG_MUST, .fused = true,
               .ff = GG_EXPERT_FF_KEY_OR_MODEL, .router = GG_ROUTER_SUM,
               .beside = GG_BESIDE_NORMED },
      .embd_scale = GG_EMBD_SCALE_SQRT, .cap = 2, .layer_scale = GG_MAY,
      MORE(K(n_per_layer), K(dim_k_swa), K(dim_v_swa), K(window_pattern),
           KM(n_shared_kv)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_gemma = { rows, GG_LEN(rows) };
