/* class_routed.c - more rows of architectures with experts */
#include "config.h"
#include "convert/class_row.h"

#define Q_ROWS HEAD "*h"
#define K_ROWS HEAD "*k"

/* Queries, keys and values in one; of pairs, where heads have halves. */
static const struct gg_convert_name bailing_names[] = {
    N("model.word_embeddings", "token_embd"),
    N_AXES(L "attention.query_key_value", B "attn_q",
           "[" Q_ROWS "@0] h 2 d, * > h d 2, *"),
    N_AXES(L "attention.query_key_value", B "attn_k",
           "[" K_ROWS "@" Q_ROWS "] k 2 d, * > k d 2, *"),
    N_AXES(L "attention.query_key_value", B "attn_v",
           "[@" Q_ROWS "+" K_ROWS "] x, * > x, *"),
    N(L "attention.dense", B "attn_output"),
    END_NAMES
};

static const struct gg_convert_name bailing2_names[] = {
    N("model.word_embeddings", "token_embd"),
    N(L "attention.query_key_value", B "attn_qkv"),
    N(L "attention.query_layernorm", B "attn_q_norm"),
    N(L "attention.key_layernorm", B "attn_k_norm"),
    N(L "attention.dense", B "attn_output"),
    N(L "mlp.gate.expert_bias", B "exp_probs_b.bias"),
    N(L "final_layernorm", B "layer_output_norm"),
    END_NAMES
};

/* Rows of experts are columns. */
static const struct gg_convert_name qwen3vl_names[] = {
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_gate_exps.weight",
           "x, c, 2[1@0] f > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_up_exps.weight",
           "x, c, 2[1@1] f > x, f, c"),
    N_AXES(L "mlp.experts.down_proj", B "ffn_down_exps.weight",
           "x, f, c > x, c, f"),
    END_NAMES
};

static const struct gg_convert_name exaone_names[] = {
    N(L "mlp.e_score_correction_bias", B "exp_probs_b.bias"),
    N("mtp.fc", "blk.+.nextn.eh_proj"),
    N("mtp.pre_fc_norm_embedding", "blk.+.nextn.enorm"),
    N("mtp.pre_fc_norm_hidden", "blk.+.nextn.hnorm"),
    N("mtp.norm", "blk.+.nextn.shared_head_norm"),
    END_NAMES
};

static const struct gg_convert_name afmoe_names[] = {
    N(L "self_attn.gate_proj", B "attn_gate"),
    N(L "post_attention_layernorm", B "post_attention_norm"),
    N(L "pre_mlp_layernorm", B "ffn_norm"),
    N(L "post_mlp_layernorm", B "post_ffw_norm"),
    N(L "mlp.router.gate", B "ffn_gate_inp"),
    N(L "mlp.expert_bias", B "exp_probs_b.bias"),
    END_NAMES
};

static const struct gg_convert_name smallthinker_names[] = {
    N(L "block_sparse_moe.primary_router", B "ffn_gate_inp"),
    N(L "block_sparse_moe.experts.@.gate", B "ffn_gate_exps"),
    N(L "block_sparse_moe.experts.@.up", B "ffn_up_exps"),
    N(L "block_sparse_moe.experts.@.down", B "ffn_down_exps"), END_NAMES
};

#define T  "model.transformer."
#define TB T "blocks.%."
static const struct gg_convert_name llada_names[] = {
    N(T "wte", "token_embd"),
    N(T "ln_f", "output_norm"),
    N(T "ff_out", "output"),
    N(TB "attn_norm", B "attn_norm"),
    N_AXES(TB "q_proj", B "attn_q", "h 2 d, * > h d 2, *"),
    N_AXES(TB "k_proj", B "attn_k", "k 2 d, * > k d 2, *"),
    N(TB "v_proj", B "attn_v"),
    N(TB "attn_out", B "attn_output"),
    N(TB "ff_norm", B "ffn_norm"),
    N(TB "ff_proj", B "ffn_gate"),
    N(TB "up_proj", B "ffn_up"),
    N(TB "ff_out", B "ffn_down"),
    END_NAMES
};

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_class_routed[] = {
    /* norm_head: rows of the output are divided by lengths of its columns */
    { .classes = "BailingMoeForCausalLM",
      .arch = "bailingmoe",
      .when = "norm_head|0=0",
      .names = OVER_2(bailing_names, gg_convert_names_experts),
      .keys = ROWS(ALL_ROT, LEAD, VOCAB_SIZE, EXPERT_FF,
                   ALWAYS("expert_weights_scale", F32, 1),
                   U32("expert_shared_count", "num_shared_experts"),
                   WEIGHTS_NORM) },
    { .classes = "BailingMoeV2ForCausalLM",
      .arch = "bailingmoe2",
      .layers = LAYERS_NEXTN,
      .names = OVER_3(bailing2_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .keys =
          ROWS(BLOCKS_NEXTN, PART_ROT("0.5"), LEAD, VOCAB_SIZE, EXPERT_FF,
               OF("expert_shared_feed_forward_length", U32,
                  "moe_shared_expert_intermediate_size|("
                  "moe_intermediate_size*num_shared_experts)"),
               WEIGHTS_SCALE, U32("expert_shared_count", "num_shared_experts"),
               WEIGHTS_NORM, NEXTN) },
    { .classes = "Qwen3VLMoeForConditionalGeneration",
      .arch = "qwen3vlmoe",
      .names = OVER_2(qwen3vl_names, gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF,
                   OF("n_deepstack_layers", U32,
                      "len(vision_config.deepstack_visual_indexes)")) },
    { .classes = "RND1",
      .arch = "rnd1",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF, SHARED_FF, ALWAYS("attention.causal", BOOL, 0),
                   U32("/tokenizer.ggml.mask_token_id", "mask_token_id")) },
    { .classes = "ExaoneMoeForCausalLM ExaoneMoEForCausalLM",
      .arch = "exaone-moe",
      .layers = LAYERS_NEXTN,
      .drafts = "mtp.layers.",
      .names = OVER_2(exaone_names, gg_convert_names_experts),
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
    /* every fourth layer sees all, without positions, and embeddings are
     * multiplied */
    { .classes = "AfmoeForCausalLM",
      .arch = "afmoe",
      .when = "(global_attn_every_n_layers|4=4)*mup_enabled|1",
      .names = OVER_2(afmoe_names, gg_convert_names_experts),
      .keys = ROWS(U32("expert_shared_count", "num_shared_experts"), EXPERT_FF,
                   U32("leading_dense_block_count", "num_dense_layers"),
                   BOOL("expert_weights_norm", "route_norm"),
                   F32("expert_weights_scale", "route_scale"), WINDOW),
      .rope_count = true,
      .vocab_size = true },
    { .classes = "SmallThinkerForCausalLM",
      .arch = "smallthinker",
      .names = OVER(smallthinker_names),
      .keys = ROWS(U32("expert_count", "moe_num_primary_experts"),
                   U32("expert_used_count", "moe_num_active_primary_experts"),
                   U32("expert_feed_forward_length", "moe_ffn_hidden_size"),
                   U32("feed_forward_length", "moe_ffn_hidden_size"),
                   OF("expert_gating_func", U32,
                      "moe_primary_router_apply_softmax|0?1:2"),
                   OF("attention.sliding_window", U32,
                      "all(sliding_window_layout=0)=0?sliding_window_size>0?"
                      "sliding_window_size")) },
    { .classes = "LLaDAModelLM",
      .arch = "llada",
      .names = { llada_names },
      .keys =
          ROWS(VOCAB_SIZE,
               OF("rope.dimension_count", U32,
                  "(head_dim|(d_model|hidden_size//h))"),
               OF("context_length", U32, "max_sequence_length|4096"),
               U32("embedding_length", "d_model hidden_size"),
               U32("feed_forward_length", "mlp_hidden_size intermediate_size"),
               DIFFUSION, ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 1)) },
    { .classes = "LLaDAMoEModelLM LLaDAMoEModel",
      .arch = "llada-moe",
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(
          U32("expert_feed_forward_length", "expert_intermediate_size"),
          ALWAYS("/tokenizer.ggml.mask_token_id", U32, 156895), DIFFUSION) },
    { .classes = NULL }
};
