/* SPDX-License-Identifier: MIT */
/* glm.c - classes of ChatGLM and GLM */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

/* Parts are made for each, however little a head holds. */
#define MOST_HEADS 4096

/* Row 2 j + i of the rotated part of a head becomes row j of half i. The part
 * that is not rotated follows. */
static enum gguf_status view_halves(struct gg_convert_view *v,
                                    struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(v->c);
    const double all = gg_convert_head_dim(&cfg);
    const double turn = gg_convert_rotary_half(&cfg);
    const unsigned d = v->n_dims - 1;
    const uint64_t row = d ? (uint64_t)v->ne[0] : 1, rows = (uint64_t)v->ne[d];
    if (d > 1 || !(turn >= 2) || turn > all || all > (double)rows ||
        fmod(turn, 2) != 0 || rows % (uint64_t)all)
        return gg_convert_refuse_view(
            v, "has rows that are not a multiple of the heads", err);
    const uint64_t head = (uint64_t)all * row, half = (uint64_t)turn / 2;
    v->part.n_dims = 3;
    v->part.ne[0] = row;
    v->part.ne[1] = half;
    v->part.step[1] = 2 * row;
    v->part.ne[2] = 2;
    v->part.step[2] = row;
    v->rest = (struct gg_composed_part){ .from = v->part.from,
                                         .first = 2 * half * row,
                                         .n_dims = 2 * half * row < head,
                                         .ne = { head - 2 * half * row },
                                         .step = { 1 } };
    v->times = rows / (uint64_t)all;
    v->every = head;
    if (v->times > MOST_HEADS)
        return gg_convert_refuse_view(v, "has too many heads", err);
    return GGUF_OK;
}

static const struct gg_convert_transform to_halves = {
    .text = "rows of heads from pairs to halves",
    .view = view_halves,
    .pair = GG_PAIR_ROWS
};

static const struct gg_convert_name glm4_names[] = {
    N(L "post_self_attn_layernorm", B "post_attention_norm"),
    N(L "post_mlp_layernorm", B "post_ffw_norm"),
    N(L "mlp.gate_up_proj", B "ffn_up"), END_NAMES
};

/* Models of text and images. Their code rotates adjacent pairs of queries and
 * keys; files with M-RoPE have them in halves. */
static const struct gg_convert_name glm4v_names[] = {
    N_HOW(L "self_attn.q_proj", B "attn_q", to_halves),
    N_HOW(L "self_attn.k_proj", B "attn_k", to_halves), END_NAMES
};

static const struct gg_convert_name glm_names[] = {
    N(L "mlp.gate_up_proj", B "ffn_up"), /* both, as one */
    END_NAMES
};

static const struct gg_convert_name chatglm_names[] = {
    N("embedding.word_embeddings", "token_embd"),
    N("encoder.final_layernorm", "output_norm"),
    N("output_layer", "output"),
    N("encoder.layers.%.input_layernorm", B "attn_norm"),
    N("encoder.layers.%.self_attention.query_key_value", B "attn_qkv"),
    N("encoder.layers.%.self_attention.dense", B "attn_output"),
    N("encoder.layers.%.post_attention_layernorm", B "ffn_norm"),
    N("encoder.layers.%.mlp.dense_h_to_4h", B "ffn_up"),
    N("encoder.layers.%.mlp.dense_4h_to_h", B "ffn_down"),
    N_NOT("rotary_pos_emb.inv_freq"),
    END_NAMES
};

static const struct gg_convert_name glm4moe_names[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"), END_NAMES
};

#define GLM4_MOE                                                              \
    ROWS(BLOCKS_NEXTN, OF("rope.dimension_count", U32, rotary_half, IN_BACK), \
         EXPERT_FF, U32("expert_shared_count", "n_shared_experts"), LEAD,     \
         ALWAYS("expert_gating_func", U32, 2), WEIGHTS_SCALE, WEIGHTS_NORM,   \
         NEXTN)

/* A matrix for tokens of text, and one for tokens of images. */
static const struct gg_convert_name cogvlm_names[] = {
    N(L "self_attn.language_expert_query_key_value", B "attn_qkv"),
    N(L "self_attn.language_expert_dense", B "attn_output"),
    N(L "self_attn.vision_expert_query_key_value", B "vis_attn_qkv"),
    N(L "self_attn.vision_expert_dense", B "vis_attn_output"),
    N(L "mlp.language_mlp.gate_proj", B "ffn_gate"),
    N(L "mlp.language_mlp.up_proj", B "ffn_up"),
    N(L "mlp.language_mlp.down_proj", B "ffn_down"),
    N(L "mlp.vision_mlp.gate_proj", B "vis_gate"),
    N(L "mlp.vision_mlp.up_proj", B "vis_up"),
    N(L "mlp.vision_mlp.down_proj", B "vis_down"),
    END_NAMES
};

/* ---- ChatGLM and GLM ---- */

/* The object's own factor takes precedence over that of rope_parameters. */
static double rotary_half(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(
        cfg, "partial_rotary_factor rope_parameters.partial_rotary_factor",
        0.5);
}

static double chatglm_rotary_dims(const struct gg_hf_config *cfg)
{
    return floor(
        num_or(cfg, "attention_dim kv_channels", gg_convert_head_dim(cfg)) *
        num_or(cfg, "partial_rotary_factor", 0.5));
}

static double chatglm_rope_base(const struct gg_hf_config *cfg)
{
    return 10000 * num_or(cfg, "rope_ratio", 1);
}

static void put_chatglm(struct gg_back_maker *m)
{
    gg_back_put_num(m, "rope_ratio",
                    num_of(&m->keys, "rope.freq_base") / 10000);
    gg_back_put_num(m, "partial_rotary_factor",
                    gg_back_rotary_of_width(&m->keys));
}

/* ---- GLM 4 ---- */

/* Positions have one axis. */
static bool is_text_only(const struct gg_hf_config *cfg)
{
    return num_or(cfg,
                  "rope_parameters.mrope_section.0 "
                  "rope_scaling.mrope_section.0",
                  0) == 0;
}

static void put_glm4(struct gg_back_maker *m)
{
    const struct gg_hf_config *keys = &m->keys;
    const double width = num_of(keys, "embedding_length");
    const double heads = num_of(keys, "attention.head_count");
    gg_back_put_num(m, "partial_rotary_factor",
                    num_of(keys, "rope.dimension_count") /
                        num_or(keys, "attention.key_length", width / heads));
}

/* The whole rotary part is rotated. */
static bool turns_whole(const struct gg_hf_config *cfg)
{
    return num_or(cfg,
                  "rope_parameters.partial_rotary_factor "
                  "partial_rotary_factor",
                  1) == 1;
}

static double has_full_indexer(const struct gg_hf_config *cfg, int64_t layer)
{
    return (size_t)layer < gg_hf_config_list_len(cfg, "indexer_types")
               ? gg_hf_config_is_word(cfg, "indexer_types", layer, "full")
               : NAN;
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_glm[] = {
    { .classes = "Glm4ForCausalLM Glm4vForConditionalGeneration",
      .arch = "glm4",
      .back = put_glm4,
      .when = is_text_only,
      .roles = GLM_ROLES,
      .names = OVER(glm4_names),
      .keys = ROWS(
          OF("rope.dimension_count", U32, gg_convert_rotary_half, IN_BACK)) },
    { .classes = "Glm4vForConditionalGeneration "
                 "GlmOcrForConditionalGeneration Glm4ForCausalLM",
      .arch = "glm4",
      .back = put_glm4,
      .roles = GLM_ROLES,
      .nextn = N_NEXTN,
      .names = OVER_3(glm4v_names, gg_convert_names_nextn, glm4_names),
      .keys = ROWS(
          BLOCKS_NEXTN,
          OF("rope.dimension_count", U32, gg_convert_rotary_half, IN_BACK),
          NEXTN) },
    { .classes = "ChatGLMModel ChatGLMForConditionalGeneration",
      .arch = "chatglm",
      .back = put_chatglm,
      .roles = "eos=<|endoftext|> eot=<|user|> unk=<|endoftext|>",
      .strip = "transformer.",
      .names = { chatglm_names },
      .keys = ROWS(
          U32("context_length", "seq_length"),
          U32("embedding_length", "hidden_size"),
          ELSE_OF("feed_forward_length", U32,
                  "ffn_hidden_size intermediate_size",
                  gg_convert_four_times_width),
          U32("block_count", "num_layers num_hidden_layers"),
          U32("attention.head_count", "num_attention_heads"),
          ELSE("attention.head_count_kv", U32,
               "multi_query_group_num num_key_value_heads num_attention_heads",
               NAN),
          OR("attention.layer_norm_rms_epsilon",
             "layernorm_epsilon rms_norm_eps", F32, 1e-5),
          FILE_TYPE,
          OF("rope.dimension_count", U32, chatglm_rotary_dims, IN_BACK),
          ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 0),
          OF("rope.freq_base", F32, chatglm_rope_base, IN_BACK)),
      .only_keys = true },
    /* GLM-4 and GLM-Edge in transformers' own form */
    { .classes = "GlmForCausalLM",
      .arch = "chatglm",
      .back = put_chatglm,
      .roles = "eos=<|endoftext|> eot=<|user|> unk=<|endoftext|>",
      .names = OVER(glm_names),
      .keys = ROWS(OF("rope.dimension_count", U32, rotary_half, IN_BACK),
                   ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 0)) },
    { .classes = "Glm4MoeForCausalLM Glm4vMoeForConditionalGeneration",
      .arch = "glm4moe",
      .back = gg_back_put_rotary_of_key,
      .roles = GLM_MOE_ROLES,
      .names = OVER_3(glm4moe_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .nextn = N_NEXTN,
      .keys = GLM4_MOE },
    { .classes = "SolarOpenForCausalLM",
      .arch = "glm4moe",
      .back = gg_back_put_rotary_of_key,
      .roles = "eos=<|endoftext|> eot=<|endoftext|> unk=<unk> "
               "bos=<|startoftext|>",
      .names = OVER_3(glm4moe_names, gg_convert_names_nextn,
                      gg_convert_names_experts),
      .nextn = N_NEXTN,
      .keys = GLM4_MOE },
    { .classes = "GlmMoeDsaForCausalLM",
      .arch = "glm-dsa",
      .roles = GLM_MOE_ROLES,
      .when = turns_whole,
      .nextn = N_NEXTN,
      .names = { gg_convert_names_latent, gg_convert_names_indexer,
                 gg_convert_names_nextn, gg_convert_names_experts,
                 gg_convert_names_llama },
      .keys = ROWS(BLOCKS_NEXTN, LATENT_KEYS, NEXTN, INDEXER_KEYS,
                   EACH("attention.indexer.types", BOOL, has_full_indexer,
                        gg_back_put_indexer_types)) },
    { .classes = "CogVLMForCausalLM",
      .arch = "cogvlm",
      .names = OVER(cogvlm_names),
      .rope_count = true,
      .vocab_size = true },
    { .classes = NULL }
};
