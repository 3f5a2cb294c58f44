/* SPDX-License-Identifier: MIT */
/* qwen.c - Qwen, and models that continue it */
#include "config.h"
#include "model/family/arch_row.h"

#include <math.h>

static const uint16_t w_delta[] = {
    N(DELTA_QKV), N(DELTA_GATE), M(DELTA_IN),   N(M2_CONV), N(DELTA_BA),
    N(M2_DT_B),   N(HEADS_A),    N(DELTA_NORM), N(SSM_OUT), 0
};
static const uint16_t w_delta_tiled[] = {
    N(DELTA_QKV), N(DELTA_GATE), N(M2_CONV),    N(DELTA_BETA), N(DELTA_ALPHA),
    N(M2_DT_B),   N(HEADS_A),    N(DELTA_NORM), N(SSM_OUT),    0
};

static const struct gg_mixer delta = { .text = "gated delta rule",
                                       .weights = w_delta,
                                       .check_states = gg_hparams_check_delta,
                                       .mix = gg_model_mix_delta,
                                       .out = GG_W_SSM_OUT,
                                       .memory = GG_MODEL_MEMORY_STATES,
                                       .states = gg_model_size_states_delta };
static const struct gg_mixer delta_tiled = {
    .text = "gated delta rule, tiled heads",
    .weights = w_delta_tiled,
    .check_states = gg_hparams_check_delta,
    .mix = gg_model_mix_delta_tiled,
    .out = GG_W_SSM_OUT,
    .memory = GG_MODEL_MEMORY_STATES,
    .states = gg_model_size_states_delta,
};

static const struct gg_mixer delta_sigmoid = {
    .text = "gated delta rule, tiled heads, sigmoid gate",
    .weights = w_delta_tiled,
    .layer_weights = gg_mixer_needs_ngrams,
    .check_states = gg_hparams_check_delta,
    .mix = gg_model_mix_delta_sigmoid,
    .out = GG_W_SSM_OUT,
    .memory = GG_MODEL_MEMORY_STATES,
    .states = gg_model_size_states_ngrams,
    .loaded = gg_model_check_ngrams,
};

/* Nextn layers read all streams. */
static void size_draft(const struct gg_hparams *hp,
                       const struct gg_model_layer *l,
                       struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->draft = z->streams * z->embd;
}

static const uint16_t w_pooled[] = { N(IDX_Q_PROJ), N(IDX_K_PROJ),
                                     N(IDX_Q_NORM), N(IDX_K_NORM), 0 };
static const struct gg_mixer pooled = {
    .text = "attention to blocks that an indexer chooses by their mean keys",
    .weights = w_pooled,
    .heads = true,
    .positions = true,
    .idx_rope = GGUF_ROPE_NEOX, /* all axes have the position of a block */
    .check_hparams = gg_hparams_check_pooled,
    .layer_sizes = size_draft,
    .mix = gg_model_mix_pooled,
    .out = GG_W_ATTN_OUT,
    .memory = GG_MODEL_MEMORY_KV | GG_MODEL_MEMORY_COMPRESSED,
    .keys = gg_model_size_keys_pooled,
    .compressed = gg_model_size_compressed_pooled,
    .check = gg_model_check_no_ngrams,
};

/* A table of n-grams, if a layer has them. */
static void choose_table(struct gg_needs *n, const struct gg_hparams *hp,
                         const struct gg_model_layer *l)
{
    if (!l && hp->has[GG_HP_ngram_layers])
        gg_needs_set_weight(n, GG_W_NGRAM_EMBD, GG_MUST);
}

/* Qwen's feed_forward_length is the width of gate and up together. */
static void halve_ffn(const struct gg_hparams *hp,
                      const struct gg_model_layer *l, struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    z->ff /= 2;
    z->up /= 2;
}

/* Nextn layers are like layers with full attention. */
static const struct gg_mixer *mixer_of_layer(const struct gg_arch *a,
                                             const struct gg_hparams *hp,
                                             uint32_t il)
{
    const struct gg_model_layer *l = &hp->layer[il];
    const uint32_t step = hp->has[GG_HP_attn_interval] ? hp->attn_interval : 4;
    const bool attends =
        hp->has[GG_HP_recurrent] ? !l->recurrent : (il + 1) % step == 0;
    return l->is_nextn || attends ? gg_arch_mixer(a) : a->other;
}

static const struct gg_arch_mix_rule in_intervals = {
    .text = "all but every full_attention_interval-th layer, or "
            "attention.recurrent_layers",
    .of_layer = mixer_of_layer
};

static const uint16_t w_gated[] = { N(ATTN_Q_GATED), N(ATTN_K), N(ATTN_V), 0 };
static const struct gg_arch_qkv gated = {
    .text = "separate, queries with gates", .weights = w_gated, .gates = true
};

/* SmallThinker; files of four layers are treated so: no model has so few. */
static bool is_not_first_of_four(const struct gg_hparams *hp, uint32_t il)
{
    return !hp->has_windows || hp->n_layer == 4 || il % 4 != 0;
}

static const struct gg_arch_rope_rule but_first_of_four = {
    .text = "except the first of four layers if there are "
            "windows",
    .of_layer = is_not_first_of_four
};

static uint32_t window_size(const struct gg_hparams *hp)
{
    return hp->n_window ? 4096 : 0;
}

typedef struct gguf_tensor tensor;

/* Qwen3-TTS predicts codes of speech, the last tokens of its vocabulary. The
 * number is that of the model's code; no key gives it. */
#define N_CODES 3072

static void count_codes(const struct gg_hparams *hp,
                        const struct gg_model_layer *l,
                        struct gg_model_sizes *z)
{
    (void)hp;
    (void)l;
    if (z->logits > N_CODES)
        z->logits = N_CODES;
}

/* Logits y of the last tokens; those of all others are minus infinity. */
static tensor *mask_texts(const struct gg_model_at *at, tensor *y)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = y ? (int64_t)at->m->hp.n_vocab - y->ne[0] : 0;
    if (n <= 0)
        return y;
    tensor *one =
        gguf_op_cont(c, gguf_op_view_2d(c, y, 1, y->ne[1], y->nb[1], 0));
    one = gguf_op_clamp(c, one, -INFINITY, -INFINITY);
    return gguf_op_concat(c, gguf_op_repeat(c, one, n, y->ne[1], 1, 1), y, 0);
}

/* SmallThinker's router reads the layer's input. */
static tensor *router_input(const struct gg_model_at *at, tensor *x)
{
    (void)x;
    return at->in;
}

static const struct gg_arch_rank by_last = {
    .text = "ranks by the last token and a softmax",
    .pools = GGUF_POOLING_LAST,
    .act = gguf_op_tanh,
    .softmax = true
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "grovemoe", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .moe = MOE_ALL(MUST, OR_PART),
      MORE(N(GATE_CHUNKS), N(UP_CHUNKS), N(DOWN_CHUNKS), K(group_scale),
           K(n_per_group), KM(n_ff_chunk), K(n_ff_expert)),
      .remark = "chunk experts after the experts, each with the "
                "weight of the expert of its number" },
    { .name = "qwen", .runs = true, LLAMA, NEOX, OWN,
      .qkv = &gg_arch_qkv_fused, .qkv_b = GG_MUST,
      .layer_sizes = { halve_ffn, "half of feed_forward_length" } },
    { .name = "qwen2", .runs = true, LLAMA, NEOX, FREQS, LONGROPE,
      .qk_norm = { .form = GG_QK_HEAD, .optional = true }, .out_b = GG_MAY,
      .ffn_b = GG_MAY, .output_b = GG_MAY },
    { .name = "qwen2moe", .runs = true, LLAMA, NEOX, OWN,
      .moe = { .where = &gg_arch_experts_all,
               .ff = &gg_arch_expert_width_or_part,
               .shared = &gg_arch_shared_or_model, .shared_gate = true } },
    { .name = "qwen2vl", .runs = true, LLAMA, .rope = GGUF_ROPE_MROPE,
      .mrope_sections = true, .output_b = GG_MAY, UNUSED(W(OUTPUT_B)),
      .remark = "output.bias is not added; norms have the key's epsilon, "
                "llama.cpp's have none" },
    { .name = "qwen3", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .rank = &by_last },
    { .name = "qwen35", .runs = true, LLAMA_POST, HEAD_NORM,
      .rope = GGUF_ROPE_IMROPE, .mrope_sections = true, .qkv = &gated,
      .other = &delta_tiled, .mix_rule = &in_intervals, .nextn = true,
      MORE(SSM, K(ssm_groups), KM(attn_interval), KM(recurrent)) },
    { .name = "qwen35moe", .runs = true, LLAMA_POST, HEAD_NORM,
      .rope = GGUF_ROPE_IMROPE, .mrope_sections = true, .qkv = &gated,
      .other = &delta_tiled, .mix_rule = &in_intervals,
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MUST,
               .ff = &gg_arch_expert_width_or_part,
               .shared = &gg_arch_shared_or_model, .shared_gate = true },
      .nextn = true,
      MORE(SSM, K(ssm_groups), KM(attn_interval), KM(recurrent)) },
    { .name = "qwen3moe", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .moe = MOE_ALL(MUST, OR_PART) },
    { .name = "qwen3next", .runs = true, LLAMA_POST, NEOX, HEAD_NORM,
      .qkv = &gated, .other = &delta, .mix_rule = &in_intervals,
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MUST,
               .ff = &gg_arch_expert_width_or_part,
               .shared = &gg_arch_shared_or_model, .shared_gate = true },
      .nextn = true,
      MORE(SSM, K(ssm_groups), KM(attn_interval), KM(recurrent)) },
    { .name = "qwen3tts", .runs = true, LLAMA, HEAD_NORM,
      .rope = GGUF_ROPE_IMROPE, .mrope_sections = true,
      .layer_sizes = { count_codes, "logits of the last 3072 tokens" },
      .mask_logits = mask_texts,
      .remark = "the logits of all tokens before the last 3072 are minus "
                "infinity; pairs outside the sections are as in qwen3vl" },
    { .name = "qwen3vl", .runs = true, LLAMA, HEAD_NORM, .rank = &by_last,
      .rope = GGUF_ROPE_IMROPE, .mrope_sections = true, MORE(KM(n_deepstack)),
      .remark = "pairs outside the sections are not rotated in "
                "texts; the definition rotates them by time, "
                "unlike llama.cpp" },
    { .name = "qwen3vlmoe", .runs = true, LLAMA, HEAD_NORM,
      .rope = GGUF_ROPE_IMROPE, .mrope_sections = true,
      .moe = MOE_ALL(MUST, OR_PART), MORE(KM(n_deepstack)),
      .remark = "pairs outside the sections are not rotated in "
                "texts; the definition rotates them by time, "
                "unlike llama.cpp" },
    { .name = "qwen4exp", .runs = true, HEAD_NORM,
      .build_layers = { gg_gated_streams_layers,
                        "streams by gated hyper-connections of low rank" },
      .rope = GGUF_ROPE_IMROPE, .mrope_sections = true, .qkv = &gated,
      .mixer = &pooled, .other = &delta_sigmoid, .mix_rule = &in_intervals,
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MUST,
               .ff = &gg_arch_expert_width_or_part,
               .shared = &gg_arch_shared_or_model, .shared_gate = true },
      .nextn = true,
      .choose_weights = { choose_table, "embeddings of n-grams in a layer" },
      MORE(N(OUTPUT_MIX_NORM), N(OUTPUT_MIX_DOWN), N(OUTPUT_MIX_UP),
           N(ATTN_MIX_NORM), N(ATTN_MIX_DOWN), N(ATTN_MIX_UP),
           N(ATTN_MIX_INJECT), N(FFN_MIX_NORM), N(FFN_MIX_DOWN),
           N(FFN_MIX_UP), N(FFN_MIX_INJECT), SSM, K(ssm_groups),
           KM(attn_interval), KM(recurrent), K(n_streams), K(mix_rank),
           INDEXER, KM(compress), KM(ngram_layers), KM(ngram_size),
           KM(ngram_heads), KM(ngram_taps), KM(ngram_eos), KM(ngram_image),
           KM(ngram_width), KM(ngram_factors), KM(ngram_offsets),
           KM(ngram_sizes)),
      .remark = "whole blocks only, as in the definition; llama.cpp fills up "
                "the budget with a part of another" },
    { .name = "smallthinker", .runs = true, LLAMA, NEOX,
      .rope_rule = &but_first_of_four,
      .window = { &gg_arch_window_first_full, GG_MAY, 4,
                  .size = { window_size, "of 4096" },
                  .rope = &gg_arch_window_rope_base },
      .act = &gg_ffn_act_relu,
      .moe = { .where = &gg_arch_experts_all, .gating = GG_GATING_KEY,
               .gating_key = GG_MAY, .norm = GG_MUST,
               .ff = &gg_arch_expert_width_given,
               .router_input = { router_input,
                                 "router on the layer's input" } },
      .remark = "with 4 layers all have RoPE" },
};
/* clang-format on */

const char *const gg_arch_drafts_qwen[] = { "dflash", NULL };

const struct gg_arch_family gg_arch_family_qwen = { rows, GG_LEN(rows) };
