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

const struct gg_convert_arch gg_convert_family_exaone[] = {
    { .classes = "Exaone4ForCausalLM Exaone4_5_ForConditionalGeneration",
      .arch = "exaone4",
      .layers = LAYERS_NEXTN,
      .drafts = "mtp.layers.",
      .names = OVER_2(exaone4_names, gg_convert_names_after),
      .keys = ROWS(BLOCKS_NEXTN, U32("vocab_size", "vocab_size"), WINDOW,
                   EACH("attention.sliding_window_pattern", BOOL,
                        "i<num_hidden_layers?sliding_window?"
                        "layer_types:sliding_attention|"
                        "sliding_window_pattern#L|((i+1)%sliding_window_"
                        "pattern>0)"),
                   OF("nextn_predict_layers", U32,
                      "num_nextn_predict_layers>0?"
                      "num_nextn_predict_layers")) },
    { .classes = "ExaoneForCausalLM",
      .arch = "exaone",
      .names = OVER(exaone_names),
      .keys = ROWS(OF("attention.layer_norm_rms_epsilon", F32,
                      "rms_norm_eps|layer_norm_epsilon"),
                   OF("rope.dimension_count", U32,
                      "partial_rotary_factor|1*" HEAD "//1")) },
    { .classes = "ExaoneMoeForCausalLM ExaoneMoEForCausalLM",
      .arch = "exaone-moe",
      .layers = LAYERS_NEXTN,
      .drafts = "mtp.layers.",
      .names = OVER_2(exaone_moe_names, gg_convert_names_experts),
      .keys =
          ROWS(BLOCKS_NEXTN, VOCAB_SIZE, WINDOW,
               EACH("attention.sliding_window_pattern", BOOL,
                    "i<num_hidden_layers?sliding_window?"
                    "layer_types:sliding_attention|sliding_window_pattern#L|"
                    "((i+1)%sliding_window_pattern>0)"),
               EXPERT_FF, U32("expert_shared_count", "num_shared_experts"),
               OF("expert_shared_feed_forward_length", U32,
                  "moe_intermediate_size*num_shared_experts"),
               WEIGHTS_SCALE, WEIGHTS_NORM,
               OF("leading_dense_block_count", U32,
                  "first_k_dense_replace|first_last_k_dense_replace|0"),
               OF("nextn_predict_layers", U32, "num_nextn_predict_layers|0"),
               NO_SCALING) },
    { .classes = NULL }
};
