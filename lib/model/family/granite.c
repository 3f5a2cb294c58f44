/* SPDX-License-Identifier: MIT */
/* granite.c - Granite */
#include "config.h"
#include "model/family/arch_row.h"

#include <inttypes.h>
#include <math.h>

typedef struct gguf_tensor tensor;

static bool is_finetuned(const struct gg_hparams *hp, uint32_t il)
{
    (void)il;
    return hp->rope_tuned;
}

static const struct gg_arch_rope_rule finetuned = {
    .text = "unless rope.scaling.finetuned is false", .of_layer = is_finetuned
};

static bool has_rope_by_pattern(const struct gg_hparams *hp, uint32_t il)
{
    return !hp->has[GG_HP_rope_pattern] || hp->layer[il].rope_pattern;
}

static const struct gg_arch_rope_rule by_pattern = {
    .text = "by attention.rope_pattern", .of_layer = has_rope_by_pattern
};

static float scale_by_key(const struct gg_hparams *hp,
                          const struct gg_model_layer *l)
{
    return hp->attn_scale != 0 ? hp->attn_scale : 1 / sqrtf((float)l->dim_k);
}

static const struct gg_arch_scale by_key = { .text = "by attention.scale",
                                             .of_layer = scale_by_key };

static float invert_logit_scale(const struct gg_hparams *hp)
{
    return hp->logit_scale != 0 ? 1 / hp->logit_scale : 1;
}

static const struct gg_arch_factor over = { .text = "divided by logit_scale",
                                            .of_model = invert_logit_scale,
                                            .key = true };

/* One matrix has the gates of the shared experts and their other rows. */
static void fuse_shared_gate(struct gg_needs *n, const struct gg_hparams *hp,
                             const struct gg_model_layer *l)
{
    (void)hp;
    if (!l || !n->weight[GG_W_UP_SHARED])
        return;
    gg_needs_set_weight(n, GG_W_GATE_UP_SHARED, GG_MUST);
    gg_needs_set_weight(n, GG_W_GATE_SHARED, GG_NO);
    gg_needs_set_weight(n, GG_W_UP_SHARED, GG_NO);
}

/* ---- switched adapters ---- */

/* Read an array of integers, one for each adapter. limit: the values must be
 * below; 0: no limit. */
static enum gguf_status read_tokens(struct gg_hparams_reader *r,
                                    enum gg_model_hparam id, uint32_t limit,
                                    const struct gguf_kv **out)
{
    const struct gguf_kv *kv = gg_hparams_find(r, id);
    const uint32_t n = r->hp->n_switch;
    if (!kv)
        return GGUF_OK; /* reported */
    if (kv->type != GGUF_VAL_ARR || kv->n != n)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                               "%s must be an array of %" PRIu32
                               " tokens, one for each adapter",
                               r->key, n);
    for (uint32_t i = 0; i < n; i++) {
        int32_t token;
        if (gguf_kv_get_elems_i32(kv, i, 1, &token, NULL) ||
            (limit && (token < 0 || (uint32_t)token >= limit)))
            return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                                   "%s: element %" PRIu32
                                   " is not a token of the vocabulary",
                                   r->key, i);
    }
    *out = kv;
    return GGUF_OK;
}

static enum gguf_status check_switch(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    GG_TRY(read_tokens(r, GG_HP_switch_tokens, 0, &hp->switch_on));
    return read_tokens(r, GG_HP_switch_embedded, hp->n_vocab,
                       &hp->switch_instead);
}

/* Low-rank deltas of each matrix. Those of queries, keys and values are deltas
 * of the rows of one matrix. */
static const struct {
    uint16_t weight, a, b;
} deltas[] = {
    { GG_W_ATTN_QKV, GG_W_ATTN_Q_LORA_A, GG_W_ATTN_Q_LORA_B },
    { GG_W_ATTN_QKV, GG_W_ATTN_K_LORA_A, GG_W_ATTN_K_LORA_B },
    { GG_W_ATTN_QKV, GG_W_ATTN_V_LORA_A, GG_W_ATTN_V_LORA_B },
    { GG_W_ATTN_OUT, GG_W_ATTN_OUT_LORA_A, GG_W_ATTN_OUT_LORA_B },
    { GG_W_FFN_GATE, GG_W_FFN_GATE_LORA_A, GG_W_FFN_GATE_LORA_B },
    { GG_W_FFN_UP, GG_W_FFN_UP_LORA_A, GG_W_FFN_UP_LORA_B },
    { GG_W_FFN_DOWN, GG_W_FFN_DOWN_LORA_A, GG_W_FFN_DOWN_LORA_B },
};

/* Adapters of the vectors that are multiplied by weight id, i32 [1, N]. After
 * the mixer of the last layer only tokens whose output is wanted remain. */
static tensor *adapter_ids(const struct gg_model_at *at, enum gg_weight id)
{
    return id == GG_W_ATTN_QKV
               ? at->p->adapter_ids
               : gg_model_take_output_rows(at, at->p->adapter_ids);
}

/* Add b a x to y, with the pair of each token's adapter. */
static tensor *add_deltas(const struct gg_model_at *at, enum gg_weight id,
                          tensor *x, tensor *y)
{
    struct gguf_ctx *c = at->c;
    tensor *sum = NULL, *ids = NULL;
    for (size_t i = 0; x && i < GG_LEN(deltas); i++) {
        if (deltas[i].weight != id)
            continue;
        ids = ids ? ids : adapter_ids(at, id);
        tensor *one = gguf_op_reshape_3d(c, x, x->ne[0], 1, x->ne[1]);
        one = gg_model_linear_id(at, (enum gg_weight)deltas[i].a, one, ids);
        one = gg_model_linear_id(at, (enum gg_weight)deltas[i].b, one, ids);
        sum = sum ? gguf_op_concat(c, sum, one, 0) : one;
    }
    if (!sum)
        return y;
    return gguf_op_add(c, y,
                       gguf_op_reshape_2d(c, sum, sum->ne[0], sum->ne[2]));
}

static const struct gg_mixer switched = {
    .text = "low-rank deltas of each matrix, chosen by earlier tokens",
    .heads = true,
    .check_hparams = check_switch,
    .mix = gg_model_mix_attention,
    .out = GG_W_ATTN_OUT,
    .memory = GG_MODEL_MEMORY_KV | GG_MODEL_MEMORY_SWITCH,
    .keys = gg_model_size_keys_heads
};

/* clang-format off */
#define DELTAS                                                                \
    N(ATTN_Q_LORA_A), N(ATTN_Q_LORA_B), N(ATTN_K_LORA_A), N(ATTN_K_LORA_B),   \
    N(ATTN_V_LORA_A), N(ATTN_V_LORA_B), N(ATTN_OUT_LORA_A),                   \
    N(ATTN_OUT_LORA_B), N(FFN_GATE_LORA_A), N(FFN_GATE_LORA_B),               \
    N(FFN_UP_LORA_A), N(FFN_UP_LORA_B), N(FFN_DOWN_LORA_A),                   \
    N(FFN_DOWN_LORA_B)
#define GRANITE                                                               \
    LLAMA, FREQS, .out_b = GG_MAY,                                            \
    .scale = &by_key, .ffn_b = GG_MAY,                                        \
    .moe = { .where = &gg_arch_experts_if_any, .norm = GG_MUST,               \
             .shared = &gg_arch_shared_if_wide },                             \
    .embd_scale = &gg_arch_embd_by_key, .residual_scale = true,               \
    .logit_scale = &over

static const struct gg_arch rows[] = {
    { .name = "granite", .runs = true, GRANITE, LONGROPE,
      .rope_rule = &finetuned,
      MORE(KM(attn_scale), KM(rope_tuned), K(logit_scale)) },
    { .name = "granite_swa", .runs = true, GRANITE, LONGROPE,
      .rope_rule = &by_pattern, .sinks = GG_MUST,
      .window = { .rule = &gg_arch_window_listed, .key = GG_MUST },
      .choose_weights = { fuse_shared_gate, "shared gate and up fused" },
      MORE(KM(attn_scale), K(logit_scale), K(window_pattern),
           KM(rope_pattern)) },
    { .name = "granitehybrid", .runs = true, GRANITE,
      .rope_rule = &finetuned,
      .other = &gg_mixer_mamba2, .mix_rule = &gg_arch_mix_by_kv,
      MORE(KM(attn_scale), KM(rope_tuned), SSM, K(ssm_groups)) },
    { .name = "granitemoe", .runs = true, GRANITE, LONGROPE,
      .rope_rule = &finetuned,
      MORE(KM(attn_scale), KM(rope_tuned), K(logit_scale)) },
    { .name = "graniteswitch", .runs = true, LLAMA, FREQS, LONGROPE,
      .mixer = &switched, .qkv = &gg_arch_qkv_fused, .rope_rule = &finetuned,
      .scale = &by_key,
      .finish_product = { add_deltas, "" },
      .embd_scale = &gg_arch_embd_by_key, .residual_scale = true,
      .logit_scale = &over, DEFAULTS(D(switch_gain, 15)),
      MORE(KM(attn_scale), KM(rope_tuned), K(logit_scale), K(n_switch),
           K(switch_rank), K(switch_tokens), K(switch_embedded), DELTAS) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_granite = { rows, GG_LEN(rows) };
