/* SPDX-License-Identifier: MIT */
/* rwkv.c - RWKV */
#include "config.h"
#include "model/family/arch_row.h"

#include <inttypes.h>
#include <math.h>

static const uint16_t w_rwkv6[] = {
    N(TM_LERP_X),   N(TM6_W1),    N(TM6_W2),
    N(TM_LERP),     M(TM_LERP_W), M(TM_LERP_K),
    M(TM_LERP_V),   M(TM_LERP_R), M(TM_LERP_G),
    N(TM_FIRST),    N(TM_DECAY),  N(TM_DECAY_W1),
    N(TM_DECAY_W2), N(TM_KEY),    N(TM_VALUE),
    N(TM_RECEPT),   N(TM_GATE),   N(TM_LN),
    N(TM_LN_B),     N(TM_OUT),    0
};
static const uint16_t w_rwkv6_linear[] = { N(TM_LERP_X),
                                           N(TM6_W1),
                                           N(TM6_W2),
                                           N(TM_LERP),
                                           M(TM_FIRST),
                                           N(TM_DECAY),
                                           N(TM_DECAY_W1),
                                           N(TM_DECAY_W2),
                                           N(TM_KEY),
                                           M(TM_KEY_B),
                                           N(TM_VALUE),
                                           M(TM_VALUE_B),
                                           N(TM_RECEPT),
                                           M(TM_RECEPT_B),
                                           N(TM_GATE),
                                           N(TM_OUT),
                                           0 };
static const uint16_t w_rwkv7[] = {
    N(TM7_W0),  N(TM7_W1),  N(TM7_W2),  N(TM7_A0), N(TM7_A1),   N(TM7_A2),
    N(TM7_V0),  N(TM7_V1),  N(TM7_V2),  M(TM7_G1), M(TM7_G2),   N(TM_LERP),
    N(TM7_K_K), N(TM7_K_A), N(TM7_R_K), N(TM_KEY), N(TM_VALUE), N(TM_RECEPT),
    M(TM_LN),   M(TM_LN_B), N(TM_OUT),  0
};
static const uint16_t w_channel_mix[] = { N(CM_LERP_K), N(CM_KEY), N(CM_VALUE),
                                          0 };
static const uint16_t w_channel_mix_r[] = { N(CM_LERP_K), N(CM_LERP_R),
                                            N(CM_KEY),    N(CM_VALUE),
                                            N(CM_RECEPT), 0 };

static const struct gg_mixer rwkv6 = { .text = "RWKV-6",
                                       .weights = w_rwkv6,
                                       .mix = gg_model_mix_rwkv6,
                                       .out = GG_W_TM_OUT,
                                       .memory = GG_MODEL_MEMORY_STATES,
                                       .states = gg_model_size_states_rwkv,
                                       .check = gg_model_check_rwkv };

/* ---- RWKV-6 as gated linear attention, of a model that had attention ---- */

/* Key/value heads of each layer divide its heads. */
static enum gguf_status check_kv_heads(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    if (!hp->has[GG_HP_wkv_head])
        return GGUF_OK;
    const uint32_t n_head = hp->n_embd / hp->wkv_head;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_head_kv);
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        const uint32_t n = hp->layer[i].n_head_kv;
        if (n && n_head % n)
            return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                   "%s is %" PRIu32 ", must divide %" PRIu32
                                   " heads of wkv.head_size",
                                   r->key, n, n_head);
    }
    return GGUF_OK;
}

static void size_kv_heads(const struct gg_hparams *hp,
                          const struct gg_model_layer *l,
                          struct gg_model_sizes *z)
{
    (void)hp;
    if (l->n_head_kv)
        z->wkv_v = fmin(z->embd, l->n_head_kv * z->wkv);
}

static enum gguf_status check_linear(const struct gguf_model *m, uint32_t il,
                                     struct gguf_error *err)
{
    char name[GG_WEIGHT_NAME];
    if (gg_model_has_weight(m, GG_W_TM_FIRST, il))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tensor '%s': such models of architecture '%s' "
                            "are not evaluated",
                            gg_weight_name(GG_W_TM_FIRST, il, name),
                            m->arch->name);
    return gg_model_check_rwkv(m, il, err);
}

static const struct gg_mixer rwkv6_linear = {
    .text = "RWKV-6 as gated linear attention",
    .weights = w_rwkv6_linear,
    .check_hparams = check_kv_heads,
    .layer_sizes = size_kv_heads,
    .mix = gg_model_mix_rwkv6_linear,
    .out = GG_W_TM_OUT,
    .memory = GG_MODEL_MEMORY_STATES,
    .states = gg_model_size_states_rwkv,
    .check = check_linear,
};

/* ---- RWKV-7 ---- */

/* With or without a row for the gate. */
static void size_lerps(const struct gg_hparams *hp,
                       const struct gg_model_layer *l,
                       struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->lerps = z->any;
}

static const struct gg_mixer rwkv7 = { .text = "RWKV-7",
                                       .weights = w_rwkv7,
                                       .layer_sizes = size_lerps,
                                       .mix = gg_model_mix_rwkv7,
                                       .out = GG_W_TM_OUT,
                                       .memory = GG_MODEL_MEMORY_STATES,
                                       .states = gg_model_size_states_rwkv,
                                       .check = gg_model_check_rwkv7 };

static const struct gg_ffn channel_mix = { .text = "channel mix",
                                           .weights = w_channel_mix,
                                           .build = gg_model_channel_mix,
                                           .shifts = true };
static const struct gg_ffn channel_mix_r = { .text =
                                                 "channel mix with receptance",
                                             .weights = w_channel_mix_r,
                                             .build = gg_model_channel_mix,
                                             .shifts = true };

typedef struct gguf_tensor tensor;

/* Halve the residual stream after every rescale_every_n_layers-th layer: output
 * matrices of later layers are stored smaller by that factor. */
static tensor *halve_stream(const struct gg_model_at *at, tensor *x)
{
    const uint32_t step = at->m->hp.rescale;
    return step && (at->il + 1) % step == 0 ? gg_model_apply_scale(at, x, 0.5f)
                                            : x;
}

/* clang-format off */
#define RANKS_7                                                               \
    K(wkv_head), K(rank_decay), K(rank_iclr), K(rank_vres), KM(rank_gate),    \
        KM(n_shift)

static const struct gg_arch rows[] = {
    { .name = "arwkv7", .runs = true, LLAMA, NO_ROPE, OWN, .mixer = &rwkv7,
      .norm_eps_maybe = true, MORE(RANKS_7) },
    { .name = "rwkv6", .runs = true, LAYER, NO_ROPE, OWN,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(ATTN_NORM_2)), OUTPUT_NORM),
      .norm_eps_maybe = true, .mixer = &rwkv6, .ffn = &channel_mix_r,
      .embd_norm = true, .finish_layer = { halve_stream, "" },
      MORE(KM(rescale), K(wkv_head), K(n_mix), K(n_decay), KM(n_shift)) },
    { .name = "rwkv6qwen2", .runs = true, LLAMA, NO_ROPE, OWN,
      .norm_eps_maybe = true, .mixer = &rwkv6_linear,
      MORE(K(wkv_head), K(n_mix), K(n_decay), KM(rescale), KM(n_shift),
           M(OUTPUT_NORM_B)),
      .remark = "rescale_every_n_layers does nothing" },
    { .name = "rwkv7", .runs = true, LAYER, NO_ROPE, OWN,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(ATTN_NORM_2)), OUTPUT_NORM),
      .norm_eps_maybe = true, .mixer = &rwkv7, .ffn = &channel_mix,
      .embd_norm = true, MORE(RANKS_7) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_rwkv = { rows, GG_LEN(rows) };
