/* SPDX-License-Identifier: MIT */
/* rwkv.c - classes of RWKV */
#include "config.h"
#include "convert/class_row.h"

/* Results of RWKV 6 are halved each few layers. */
static double halving_factor(const struct gg_hf_config *cfg, int64_t layer)
{
    const double every = num_at(cfg, "rescale_every", layer);
    return every > 0 ? 1 / pow(2, floor((double)layer / every)) : NAN;
}

/* Coefficients of token shift, in one tensor, which x_x has as well.
 * Checkpoints have two forms: their authors' and that of
 * flash-linear-attention. Low-rank matrices are transposed in the first. */
#define LERP(P, X)                                                            \
    N_AXES(P "x_" X, B "time_mix_lerp_fused.weight", "*, 1, c > 1, 1, 1, c")
#define LOW_OWN(P, X)                                                         \
    N_AXES(P X "1", B "time_mix_" X "1.weight", "a, b > b, a"),               \
        N_AXES(P X "2", B "time_mix_" X "2.weight", "a, b > b, a"),           \
        N_HOW(P X "0", B "time_mix_" X "0.weight", SQUEEZE)
#define LOW_FLA(P, X)                                                         \
    N(P X "_lora.lora.0.weight", B "time_mix_" X "1.weight"),                 \
        N(P X "_lora.lora.2.weight", B "time_mix_" X "2.weight"),             \
        N(P X "_lora.lora.2.bias", B "time_mix_" X "0.weight")

/* The first layer has no earlier values. Its tensors for them are ignored, and
 * files have its learning rates in their place. */
#define RATES_OWN(P)                                                          \
    N_AXES(P "a1", "blk.0.time_mix_v1.weight", "a, b > b, a"),                \
        N_AXES(P "a2", "blk.0.time_mix_v2.weight", "a, b > b, a"),            \
        N_HOW(P "a0", "blk.0.time_mix_v0.weight", SQUEEZE)
#define RATES_FLA(P)                                                          \
    N(P "a_lora.lora.0.weight", "blk.0.time_mix_v1.weight"),                  \
        N(P "a_lora.lora.2.weight", "blk.0.time_mix_v2.weight"),              \
        N(P "a_lora.lora.2.bias", "blk.0.time_mix_v0.weight")
#define FIRST(P, ONE, OTHER)                                                  \
    N_NOT(P "v0"), N_NOT(P "v1"), N_NOT(P "v2"),                              \
        N_NOT(P "v_lora.lora.0.weight"), N_NOT(P "v_lora.lora.2.weight"),     \
        N_NOT(P "v_lora.lora.2.bias"), RATES_##ONE(P), RATES_##OTHER(P)
#define SQUARE_OWN(P)                                                         \
    N(P "key", B "time_mix_key"), N(P "value", B "time_mix_value"),           \
        N(P "receptance", B "time_mix_receptance"),                           \
        N(P "output", B "time_mix_output"), N(P "ln_x", B "time_mix_ln")
#define SQUARE_FLA(P)                                                         \
    N(P "k_proj", B "time_mix_key"), N(P "v_proj", B "time_mix_value"),       \
        N(P "r_proj", B "time_mix_receptance"),                               \
        N(P "o_proj", B "time_mix_output"), N(P "g_norm", B "time_mix_ln")

/* Names of RWKV-7 in both forms. ONE is the form that folders are written
 * with. */
#define RWKV7(P, ONE, OTHER)                                                  \
    LERP(P, "r"), LERP(P, "w"), LERP(P, "k"), LERP(P, "v"), LERP(P, "a"),     \
        LERP(P, "g"),                                                         \
        N_AXES(P "x_x", B "time_mix_lerp_fused.weight",                       \
               "x, 1, 1, c > x, 1, 1, c"),                                    \
        LOW_##ONE(P, "w"), LOW_##ONE(P, "a"), LOW_##ONE(P, "v"),              \
        LOW_##ONE(P, "g"), LOW_##OTHER(P, "w"), LOW_##OTHER(P, "a"),          \
        LOW_##OTHER(P, "v"), LOW_##OTHER(P, "g"),                             \
        N_HOW(P "k_k", B "time_mix_k_k.weight", SQUEEZE),                     \
        N_HOW(P "k_a", B "time_mix_k_a.weight", SQUEEZE),                     \
        N_AXES(P "r_k", B "time_mix_r_k.weight", "x, y > x y"),               \
        SQUARE_##ONE(P), SQUARE_##OTHER(P)

static const struct gg_convert_name rwkv7_names[] = {
    FIRST("model.layers.0.attn.", FLA, OWN),
    FIRST("model.layers.0.attention.", OWN, FLA),
    N("model.embeddings", "token_embd"),
    N("model.layers.0.pre_norm", "token_embd_norm"),
    N("model.norm", "output_norm"),
    N("model.ln_out", "output_norm"),
    N("lm_head", "output"),
    N("head", "output"),
    N(L "attn_norm", B "attn_norm"),
    N(L "ln1", B "attn_norm"),
    N(L "ffn_norm", B "attn_norm_2"),
    N(L "ln2", B "attn_norm_2"),
    RWKV7(L "attn.", FLA, OWN),
    RWKV7(L "attention.", OWN, FLA),
    N_HOW(L "ffn.x_k", B "channel_mix_lerp_k.weight", SQUEEZE),
    N(L "ffn.key", B "channel_mix_key"),
    N(L "ffn.value", B "channel_mix_value"),
    N_HOW(L "feed_forward.x_k", B "channel_mix_lerp_k.weight", SQUEEZE),
    N(L "feed_forward.key", B "channel_mix_key"),
    N(L "feed_forward.value", B "channel_mix_value"),
    END_NAMES
};

/* RWKV 6: the coefficients of token shift are one tensor in the order w, k, v,
 * r, g. Every few layers results are halved, so later output matrices are
 * smaller. */

#define MIX(P, X)                                                             \
    N_AXES(P "time_maa_" X, B "time_mix_lerp_fused.weight",                   \
           "*, 1, c > 1, 1, 1, c")
#define RWKV6(P)                                                              \
    MIX(P, "w"), MIX(P, "k"), MIX(P, "v"), MIX(P, "r"), MIX(P, "g"),          \
        N_HOW(P "time_maa_x", B "time_mix_lerp_x.weight", SQUEEZE),           \
        N_HOW(P "time_decay", B "time_mix_decay.weight", SQUEEZE),            \
        N_AXES(P "time_decay_w1", B "time_mix_decay_w1.weight",               \
               "a, b > b, a"),                                                \
        N_AXES(P "time_decay_w2", B "time_mix_decay_w2.weight",               \
               "a, b > b, a"),                                                \
        N(P "gate", B "time_mix_gate")
#define A6 "blocks.%.attention."
#define F6 "blocks.%.feed_forward."

static const struct gg_convert_name rwkv6_names[] = {
    N("embeddings", "token_embd"),
    N("blocks.0.pre_ln", "token_embd_norm"),
    N("ln_out", "output_norm"),
    N("head", "output"),
    N("blocks.%.ln1", B "attn_norm"),
    N("blocks.%.ln2", B "attn_norm_2"),
    RWKV6(A6),
    N_AXES(A6 "time_maa_w1", B "time_mix_w1.weight", "a, b > b, a"),
    N_AXES(A6 "time_maa_w2", B "time_mix_w2.weight", "x, a, b > x, b, a"),
    N(A6 "time_faaaa", B "time_mix_first.weight"),
    N(A6 "key", B "time_mix_key"),
    N(A6 "value", B "time_mix_value"),
    N(A6 "receptance", B "time_mix_receptance"),
    N(A6 "ln_x", B "time_mix_ln"),
    { .from = A6 "output",
      .to = B "time_mix_output",
      .scale_of = halving_factor },
    N_HOW(F6 "time_maa_k", B "channel_mix_lerp_k.weight", SQUEEZE),
    N_HOW(F6 "time_maa_r", B "channel_mix_lerp_r.weight", SQUEEZE),
    N(F6 "key", B "channel_mix_key"),
    N(F6 "receptance", B "channel_mix_receptance"),
    { .from = F6 "value",
      .to = B "channel_mix_value",
      .scale_of = halving_factor },
    END_NAMES
};

/* RWKV with the other parts of Qwen 2; coefficients in the order r, k, v, w,
 * g. */
#define Q6 L "self_attn."
#define W1(NO)                                                                \
    N_AXES(Q6 "time_maa_w1", B "time_mix_w1.weight", "c, 5[1@" NO "] r > r, c")
#define W2(NO)                                                                \
    N_AXES(Q6 "time_maa_w2", B "time_mix_w2.weight",                          \
           "5[1@" NO "], r, c > 1, c, r")

static const struct gg_convert_name rwkv6qwen2_names[] = {
    RWKV6(Q6),
    W1("3"),
    W1("1"),
    W1("2"),
    W1("0"),
    W1("4"),
    W2("3"),
    W2("1"),
    W2("2"),
    W2("0"),
    W2("4"),
    N(Q6 "k_proj", B "time_mix_key"),
    N(Q6 "v_proj", B "time_mix_value"),
    N(Q6 "q_proj", B "time_mix_receptance"),
    N(Q6 "o_proj", B "time_mix_output"),
    END_NAMES
};

/* RWKV 7 with that body. */
static const struct gg_convert_name arwkv7_names[] = {
    FIRST("model.layers.0.self_attn.time_mixer.", OWN, FLA),
    RWKV7(L "self_attn.time_mixer.", OWN, FLA), END_NAMES
};

/* ---- ranks by the model's width, if config.json does not have them ---- */

static double rank_of_width(const struct gg_hf_config *cfg, double power,
                            double factor)
{
    const double n =
        floor(pow(num_of(cfg, "hidden_size"), power) * factor / 32 + 0.5);
    return 32 * (1 > n ? 1 : n);
}

static double rank_of_decay(const struct gg_hf_config *cfg)
{
    return rank_of_width(cfg, 0.5, 1.8);
}

static double rank_of_values(const struct gg_hf_config *cfg)
{
    return rank_of_width(cfg, 0.5, 1.3);
}

static double rank_of_gate(const struct gg_hf_config *cfg)
{
    return rank_of_width(cfg, 0.8, 0.6);
}

/* ---- RWKV 6 ---- */

static double v6_mix_rank(const struct gg_hf_config *cfg)
{
    return is_equal(num_of(cfg, "hidden_size"), 4096) * 32 + 32;
}

static double v6_decay_rank(const struct gg_hf_config *cfg)
{
    return is_equal(num_of(cfg, "hidden_size"), 4096) * 64 + 64;
}

static double v6_feed_forward(const struct gg_hf_config *cfg)
{
    return floor(num_of(cfg, "hidden_size") * 3.5 / 32) * 32;
}

/* ---- with the body of Qwen 2 ---- */

static double qwen2_mix_rank(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "hidden_size") < 4096 ? 32 : 64;
}

static double qwen2_decay_rank(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "hidden_size") < 4096 ? 64 : 128;
}

static void put_qwen2(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_attention_heads",
                    num_of(&m->keys, "embedding_length") /
                        num_of(&m->keys, "wkv.head_size"));
}

static double arwkv_gate_rank(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "wkv_has_gate", 1) * 128;
}

static void put_gate(struct gg_back_maker *m)
{
    if (num_of(&m->keys, "attention.gate_lora_rank") == 0)
        gg_back_put_flag(m, "wkv_has_gate", 0);
}

static bool is_version_7(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "wkv_version", 7) == 7;
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_rwkv[] = {
    { .classes = "RWKV7ForCausalLM Rwkv7ForCausalLM",
      .arch = "rwkv7",
      .names = { rwkv7_names },
      .keys = ROWS(
          ALWAYS("context_length", U32, 1 << 20),
          U32("embedding_length", "hidden_size"),
          U32("block_count", "num_hidden_layers"),
          F32("attention.layer_norm_epsilon", "layer_norm_epsilon norm_eps"),
          U32("wkv.head_size", "head_size head_dim"),
          ELSE_OF("attention.decay_lora_rank", U32,
                  "lora_rank_decay decay_low_rank_dim", rank_of_decay),
          ELSE_OF("attention.iclr_lora_rank", U32,
                  "lora_rank_iclr a_low_rank_dim", rank_of_decay),
          ELSE_OF("attention.value_residual_mix_lora_rank", U32,
                  "lora_rank_value_residual_mix v_low_rank_dim",
                  rank_of_values),
          ELSE_OF("attention.gate_lora_rank", U32,
                  "lora_rank_gate gate_low_rank_dim", rank_of_gate),
          ELSE_OF("feed_forward_length", U32, "intermediate_size",
                  gg_convert_four_times_width),
          FILE_TYPE, ALWAYS("attention.head_count", U32, 0)),
      .only_keys = true },
    { .classes = "Rwkv6ForCausalLM",
      .arch = "rwkv6",
      .strip = "rwkv.",
      .names = { rwkv6_names },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20),
                   U32("embedding_length", "hidden_size"),
                   U32("block_count", "num_hidden_layers"),
                   F32("attention.layer_norm_epsilon", "layer_norm_epsilon"),
                   U32("rescale_every_n_layers", "rescale_every"),
                   U32("wkv.head_size", "head_size"),
                   OF("time_mix_extra_dim", U32, v6_mix_rank, NO_BACK),
                   OF("time_decay_extra_dim", U32, v6_decay_rank, NO_BACK),
                   ELSE_OF("feed_forward_length", U32, "intermediate_size",
                           v6_feed_forward),
                   FILE_TYPE, ALWAYS("attention.head_count", U32, 0)),
      .only_keys = true },
    { .classes = "RWKV6Qwen2ForCausalLM",
      .arch = "rwkv6qwen2",
      .back = put_qwen2,
      .names = OVER(rwkv6qwen2_names),
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20),
                   U32("embedding_length", "hidden_size"),
                   U32("block_count", "num_hidden_layers"),
                   OF("wkv.head_size", U32, gg_convert_head_width, IN_BACK),
                   ELSE_OF("time_mix_extra_dim", U32, "lora_rank_tokenshift",
                           qwen2_mix_rank),
                   ELSE_OF("time_decay_extra_dim", U32, "lora_rank_decay",
                           qwen2_decay_rank),
                   U32("feed_forward_length", "intermediate_size"), FILE_TYPE,
                   F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
                   ALWAYS("token_shift_count", U32, 1),
                   U32("attention.head_count_kv", "num_key_value_heads"),
                   ALWAYS("attention.head_count", U32, 0)),
      .only_keys = true },
    { .classes = "RwkvHybridForCausalLM",
      .arch = "arwkv7",
      .when = is_version_7,
      .names = OVER(arwkv7_names),
      .keys =
          ROWS(ALWAYS("context_length", U32, 1 << 20),
               U32("embedding_length", "hidden_size"),
               U32("block_count", "num_hidden_layers"),
               F32("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
               U32("wkv.head_size", "head_size"),
               ALWAYS("attention.decay_lora_rank", U32, 64),
               ALWAYS("attention.iclr_lora_rank", U32, 64),
               ALWAYS("attention.value_residual_mix_lora_rank", U32, 32),
               OF("attention.gate_lora_rank", U32, arwkv_gate_rank, put_gate),
               U32("feed_forward_length", "intermediate_size"), FILE_TYPE,
               ALWAYS("token_shift_count", U32, 1),
               ALWAYS("attention.head_count", U32, 0)),
      .only_keys = true },
    { .classes = NULL }
};
