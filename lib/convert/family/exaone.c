/* SPDX-License-Identifier: MIT */
/* exaone.c - classes of EXAONE */
#include "config.h"
#include "convert/class_row.h"

static const struct gg_convert_name exaone4_names[] = {
    N("mtp.fc", "blk.+.nextn.eh_proj"),
    N("mtp.pre_fc_norm_embedding", "blk.+.nextn.enorm"),
    N("mtp.pre_fc_norm_hidden", "blk.+.nextn.hnorm"),
    N("mtp.norm", "blk.+.nextn.shared_head_norm"), END_NAMES
};

static const struct gg_convert_name exaone_names[] = {
    N("transformer.wte", "token_embd"),
    N("transformer.ln_f", "output_norm"),
    N("transformer.h.%.ln_1", B "attn_norm"),
    N("transformer.h.%.ln_2", B "ffn_norm"),
    N("transformer.h.%.attn.attention.q_proj", B "attn_q"),
    N("transformer.h.%.attn.attention.k_proj", B "attn_k"),
    N("transformer.h.%.attn.attention.v_proj", B "attn_v"),
    N("transformer.h.%.attn.attention.out_proj", B "attn_output"),
    N("transformer.h.%.mlp.c_fc_0", B "ffn_gate"),
    N("transformer.h.%.mlp.c_fc_1", B "ffn_up"),
    N("transformer.h.%.mlp.c_proj", B "ffn_down"),
    N_NOT("transformer.rotary.inv_freq"),
    END_NAMES
};

static const struct gg_convert_name exaone_moe_names[] = {
    N(L "mlp.e_score_correction_bias", B "exp_probs_b.bias"),
    N("mtp.fc", "blk.+.nextn.eh_proj"),
    N("mtp.pre_fc_norm_embedding", "blk.+.nextn.enorm"),
    N("mtp.pre_fc_norm_hidden", "blk.+.nextn.hnorm"),
    N("mtp.norm", "blk.+.nextn.shared_head_norm"),
    END_NAMES
};

/* By words, by the letters of a text that repeats, or all but each n-th. */
static double is_sliding(const struct gg_hf_config *cfg, int64_t layer)
{
    static const char pattern[] = "sliding_window_pattern";
    if (!((double)layer < num_of(cfg, "num_hidden_layers")) ||
        !is_true(num_of(cfg, "sliding_window")))
        return NAN;
    const double by_letter =
        value_or(gg_convert_is_sliding(cfg, layer),
                 gg_hf_config_has_letter(cfg, pattern, layer, 'L'));
    return value_or(
        by_letter,
        is_above(fmod((double)layer + 1, num_at(cfg, pattern, layer)), 0));
}

static double rotary_dims(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(cfg, "partial_rotary_factor", 1);
}

const struct gg_convert_arch gg_convert_family_exaone[] = {
    { .classes = "Exaone4ForCausalLM Exaone4_5_ForConditionalGeneration",
      .arch = "exaone4",
      .nextn = N_NEXTN,
      .drafts = "mtp.layers.",
      .names = OVER_2(exaone4_names, gg_convert_names_post_norm),
      .keys = ROWS(BLOCKS_NEXTN, U32("vocab_size", "vocab_size"), WINDOW,
                   EACH("attention.sliding_window_pattern", BOOL, is_sliding,
                        gg_back_put_sliding_layers),
                   NEXTN_ABOVE_0) },
    { .classes = "ExaoneForCausalLM",
      .instead = { { "rms_norm_eps", "layer_norm_epsilon" } },
      .arch = "exaone",
      .names = OVER(exaone_names),
      .keys = ROWS(ELSE("attention.layer_norm_rms_epsilon", F32,
                        "rms_norm_eps layer_norm_epsilon", NAN),
                   OF("rope.dimension_count", U32, rotary_dims, NO_BACK)) },
    { .classes = "ExaoneMoeForCausalLM ExaoneMoEForCausalLM",
      .arch = "exaone-moe",
      .nextn = N_NEXTN,
      .drafts = "mtp.layers.",
      .names = OVER_2(exaone_moe_names, gg_convert_names_experts),
      .keys =
          ROWS(BLOCKS_NEXTN, VOCAB_SIZE, WINDOW,
               EACH("attention.sliding_window_pattern", BOOL, is_sliding,
                    gg_back_put_sliding_layers),
               EXPERT_FF, U32("expert_shared_count", "num_shared_experts"),
               OF("expert_shared_feed_forward_length", U32,
                  gg_convert_shared_width, NO_BACK),
               WEIGHTS_SCALE, WEIGHTS_NORM,
               ELSE("leading_dense_block_count", U32,
                    "first_k_dense_replace first_last_k_dense_replace", 0),
               ELSE("nextn_predict_layers", U32, N_NEXTN, 0), NO_SCALING) },
    { .classes = NULL }
};
