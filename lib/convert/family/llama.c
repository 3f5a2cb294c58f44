/* SPDX-License-Identifier: MIT */
/* llama.c - classes of Llama and models built like it */
#include "config.h"
#include "convert/class_row.h"

static gg_hf_config_layer_fn is_linear_layer;

#include <inttypes.h>
#include <stdio.h>

static const struct gg_convert_name seed_oss_names[] = {
    N(L "post_attention_layernorm", B "post_attention_norm"), END_NAMES
};

/* Each key's head, with the queries that share it before it. */
#define WQKV L "attention.wqkv"

static const struct gg_convert_name internlm2_names[] = {
    N("model.tok_embeddings", "token_embd"),
    N("output", "output"),
    N(L "attention_norm", B "attn_norm"),
    N_AXES(WQKV, B "attn_q", "k n[g@0] 2 d, * > k n d 2, *"),
    N_AXES(WQKV, B "attn_k", "k n[1@g] 2 d, * > k d 2, *"),
    N_AXES(WQKV, B "attn_v", "k n[1@v] d, * > k d, *"),
    N(L "attention.wo", B "attn_output"),
    N(L "ffn_norm", B "ffn_norm"),
    N(L "feed_forward.w1", B "ffn_gate"),
    N(L "feed_forward.w2", B "ffn_down"),
    N(L "feed_forward.w3", B "ffn_up"),
    END_NAMES
};

/* Query, key and value, each of all heads, queries and keys permuted. */
static const struct gg_convert_name baichuan_names[] = {
    N_AXES(L "self_attn.W_pack", B "attn_q", "3[1@0] h 2 d, * > h d 2, *"),
    N_AXES(L "self_attn.W_pack", B "attn_k", "3[1@1] h 2 d, * > h d 2, *"),
    N_AXES(L "self_attn.W_pack", B "attn_v", "3[1@2] x, * > x, *"), END_NAMES
};

#define OE "transformer.layers.%."

static const struct gg_convert_name openelm_names[] = {
    N("transformer.token_embeddings", "token_embd"),
    N("transformer.norm", "output_norm"),
    N(OE "attn_norm", B "attn_norm"),
    N(OE "attn.qkv_proj", B "attn_qkv"),
    N(OE "attn.q_norm", B "attn_q_norm"),
    N(OE "attn.k_norm", B "attn_k_norm"),
    N(OE "attn.out_proj", B "attn_output"),
    N(OE "ffn_norm", B "ffn_norm"),
    N_HOW(OE "ffn.proj_1", B "ffn_gate", HALF_1),
    N_HOW(OE "ffn.proj_1", B "ffn_up", HALF_2),
    N(OE "ffn.proj_2", B "ffn_down"),
    END_NAMES
};

/* The activation has parameters in each layer. */
static const struct gg_convert_name apertus_names[] = {
    N(L "attention_layernorm", B "attn_norm"),
    N(L "feedforward_layernorm", B "ffn_norm"),
    N(L "attention.query_layernorm", B "attn_q_norm"),
    N(L "attention.key_layernorm", B "attn_k_norm"),
    N_KEY(L "mlp.act_fn.alpha_n", "/xielu.alpha_n"),
    N_KEY(L "mlp.act_fn.alpha_p", "/xielu.alpha_p"),
    N_KEY(L "mlp.act_fn.beta", "/xielu.beta"),
    N_KEY(L "mlp.act_fn.eps", "/xielu.eps"),
    END_NAMES
};

/* Layers with fewer heads of keys, with one matrix instead of attention, or
 * without. */

static const struct gg_convert_name deci_names[] = {
    N_AXES(L "self_attn.k_proj", B "attn_k", "k 2 d, * > k d 2, *"),
    { .from = L "self_attn.linear_attn",
      .to = B "attn_output",
      .only_if = is_linear_layer },
    END_NAMES
};

/* Matrices are trained so that they are rounded. Norms before the last matrix
 * of both branches, by the names of its repository and of transformers. */
static const struct gg_convert_name bitnet_names[] = {
    N_HOW(L "self_attn.q_proj", B "attn_q", TERNARY),
    N_HOW(L "self_attn.k_proj", B "attn_k", TERNARY),
    N_HOW(L "self_attn.v_proj", B "attn_v", TERNARY),
    N_HOW(L "self_attn.o_proj", B "attn_output", TERNARY),
    N_HOW(L "mlp.gate_proj", B "ffn_gate", TERNARY),
    N_HOW(L "mlp.up_proj", B "ffn_up", TERNARY),
    N_HOW(L "mlp.down_proj", B "ffn_down", TERNARY),
    N(L "self_attn.inner_attn_ln", B "attn_sub_norm"),
    N(L "self_attn.attn_sub_norm", B "attn_sub_norm"),
    N(L "mlp.ffn_layernorm", B "ffn_sub_norm"),
    N(L "mlp.ffn_sub_norm", B "ffn_sub_norm"),
    END_NAMES
};

#define META WORD("tensor_data_layout", "Meta AI original pth")
#define PANGU                                                                 \
    ROWS(U32("vocab_size", "vocab_size"), ALL_ROT,                            \
         OF("attention.key_length", U32, gg_convert_head_dim, NO_BACK),       \
         OF("attention.value_length", U32, gg_convert_head_dim, NO_BACK))

/* Rows of experts are columns. */
static const struct gg_convert_name llama4_names[] = {
    N(L "feed_forward.router", B "ffn_gate_inp"),
    N_AXES(L "feed_forward.experts.gate_up_proj", B "ffn_gate_exps.weight",
           "x, c, 2[1@0] f > x, f, c"),
    N_AXES(L "feed_forward.experts.gate_up_proj", B "ffn_up_exps.weight",
           "x, c, 2[1@1] f > x, f, c"),
    N_AXES(L "feed_forward.experts.down_proj", B "ffn_down_exps.weight",
           "x, f, c > x, c, f"),
    EACH_EXPERT(L "feed_forward.experts.@."),
    N(L "feed_forward.shared_expert.gate_proj", B "ffn_gate_shexp"),
    N(L "feed_forward.shared_expert.up_proj", B "ffn_up_shexp"),
    N(L "feed_forward.shared_expert.down_proj", B "ffn_down_shexp"),
    N(L "feed_forward.gate_proj", B "ffn_gate"),
    N(L "feed_forward.up_proj", B "ffn_up"),
    N(L "feed_forward.down_proj", B "ffn_down"),
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

/* Each head has its own norm, permuted as the rows of queries and keys.
 * (llama.cpp's converter takes the norm of the first head for all, which is
 * right if the model was trained without tensor parallelism.) */
static const struct gg_convert_name chameleon_names[] = {
    N_AXES(L "self_attn.q_norm", B "attn_q_norm", "h, 2 d > h, d 2"),
    N_AXES(L "self_attn.k_norm", B "attn_k_norm", "k, 2 d > k, d 2"), END_NAMES
};

/* ---- Llama 4, and language models of multimodal models ---- */

static double llama4_no_window(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_all_layers(cfg, gg_convert_is_full)) ? 0 : NAN;
}

/* LLaVA's language model may have any class. If text_config names none, its
 * model_type says it; those without one are Llama's. */
static bool is_inner_llama(const struct gg_hf_config *cfg)
{
    const char *name = "text_config.model_type";
    return !gg_hf_config_get(cfg, "text_config.architectures") &&
           (!gg_hf_config_get(cfg, name) ||
            gg_hf_config_is_word(cfg, name, -1, "llama") == 1 ||
            gg_hf_config_is_word(cfg, name, -1, "mistral") == 1);
}

/* ---- InternLM 2 ---- */

/* Places in a group: of the queries that share a key, the key, the value. */
static double after_key(const struct gg_hf_config *cfg)
{
    return gg_convert_gqa_group_size(cfg) + 1;
}

static double group_size(const struct gg_hf_config *cfg)
{
    return gg_convert_gqa_group_size(cfg) + 2;
}

static const struct gg_convert_size internlm2_sizes[] = {
    { .name = "v", .of = after_key },
    { .name = "n", .of = group_size },
    { .name = NULL }
};

/* ---- OpenELM ---- */

/* Width of a layer: the nearest multiple of the divisor, and one more if that
 * is less than nine tenths. */
static double openelm_feed_forward(const struct gg_hf_config *cfg,
                                   int64_t layer)
{
    const double width =
        num_at(cfg, "ffn_multipliers", layer) * num_of(cfg, "model_dim");
    const double step = num_of(cfg, "ffn_dim_divisor");
    double near = floor((width + step / 2) / step) * step;
    near = step > near ? step : near;
    return near + step * is_above(0.9 * width, near);
}

static double openelm_multiplier(const struct gg_hf_config *keys,
                                 int64_t layer)
{
    return num_at(keys, "feed_forward_length", layer) /
           num_of(keys, "embedding_length");
}

static void put_openelm(struct gg_back_maker *m)
{
    gg_back_put_layers(m, "ffn_multipliers", openelm_multiplier);
    gg_back_put_num(m, "ffn_dim_divisor", 1);
}

/* ---- Deci: layers that differ ---- */

/* A number of the layer's block. */
static double deci_block(const struct gg_hf_config *cfg, int64_t layer,
                         const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "block_configs.%" PRId64 ".%s",
             layer < 0 ? 0 : layer, name);
    return num_of(cfg, path);
}

static double deci_group(const struct gg_hf_config *cfg, int64_t layer)
{
    return deci_block(cfg, layer, "attention.n_heads_in_group");
}

static bool has_blocks(const struct gg_hf_config *cfg)
{
    return gg_hf_config_get(cfg, "block_configs") != NULL;
}

/* A layer without attention has a single matrix in its place, or nothing. */
static double deci_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    const double linear =
        value_or(deci_block(cfg, layer, "attention.replace_with_linear"), 0);
    const double has = deci_group(cfg, layer) > 0;
    return has_blocks(cfg)
               ? (has + linear > 0) * num_at(cfg, "num_attention_heads", layer)
               : NAN;
}

static double deci_kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    const double group = deci_group(cfg, layer);
    double n = num_at(cfg, "num_key_value_heads_per_layer", layer);
    if (isnan(n) && has_blocks(cfg))
        n = group > 0
                ? floor(num_at(cfg, "num_attention_heads", layer) / group)
                : 0;
    return value_or(n, num_at(cfg, "num_key_value_heads", layer));
}

/* Two thirds of a multiple of the width, rounded up to a multiple of 256. */
static double deci_feed_forward(const struct gg_hf_config *cfg, int64_t layer)
{
    const double by = value_or(deci_block(cfg, layer, "ffn.ffn_mult"), 0);
    const double width = floor(2 * by * num_of(cfg, "hidden_size") / 3);
    return has_blocks(cfg) ? floor((width + 255) / 256) * 256 : NAN;
}

static const struct gg_convert_size deci_sizes[] = {
    { .name = "k", .of_layer = deci_kv_heads }, { .name = NULL }
};

static double kv_heads(const struct gg_hf_config *keys, int64_t layer)
{
    return num_at(keys, "attention.head_count_kv", layer);
}

/* The block of a layer. */
static void put_block(struct gg_back_maker *m, int64_t layer)
{
    const struct gg_hf_config *keys = &m->keys;
    const double heads = num_at(keys, "attention.head_count", layer);
    const double kv = kv_heads(keys, layer);
    const double width = num_at(keys, "feed_forward_length", layer);
    json_t *block = json_object();
    if (kv > 0)
        gg_back_put(block, "attention.n_heads_in_group",
                    gg_back_number_to_json(heads / kv));
    gg_back_put(block, "attention.replace_with_linear",
                json_boolean(heads > 0 && kv == 0));
    gg_back_put(block, "attention.no_op", json_boolean(heads == 0));
    if (width > 0)
        gg_back_put(
            block, "ffn.ffn_mult",
            gg_back_number_to_json(3 * (width - 128) /
                                   (2 * num_of(keys, "embedding_length"))));
    gg_back_put(block, "ffn.no_op", json_boolean(width == 0));
    json_array_append_new(json_object_get(m->root, "block_configs"), block);
}

static void put_deci(struct gg_back_maker *m)
{
    const struct gg_hf_config *keys = &m->keys;
    const bool widths = gg_hf_config_list_len(keys, "feed_forward_length") > 0;
    const bool heads =
        gg_hf_config_list_len(keys, "attention.head_count_kv") > 0;
    gg_back_put_first_heads(m);
    if (heads)
        gg_back_remove_member(m, "num_key_value_heads");
    if (heads && !widths)
        gg_back_put_layers(m, "num_key_value_heads_per_layer", kv_heads);
    gg_back_put_num(m, "intermediate_size",
                    num_of(keys, "feed_forward_length"));
    if (!widths)
        return;
    gg_back_remove_member(m, "intermediate_size");
    gg_back_put(m->root, "block_configs", json_array());
    for (int64_t i = 0; i < gg_back_n_layers(m); i++)
        put_block(m, i);
}

static double is_linear_layer(const struct gg_hf_config *cfg, int64_t layer)
{
    return deci_block(cfg, layer, "attention.replace_with_linear") > 0;
}

/* ---- other models ---- */

/* With another activation it is another model. */
static bool is_silu(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_is_word(cfg, "hidden_act", -1, "silu"));
}

static void put_bitnet(struct gg_back_maker *m)
{
    gg_back_put_word(m, "hidden_act", "silu");
    gg_back_remove_member(m, "rope_scaling");
}

static double embed_pooling(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_is_word(cfg, "pooling", -1, "avg")) ? 1 : NAN;
}

static void put_embed(struct gg_back_maker *m)
{
    if (num_of(&m->keys, "pooling_type") == 1)
        gg_back_put_word(m, "pooling", "avg");
}

static double mellum_window(const struct gg_hf_config *cfg)
{
    return is_true(num_or(cfg, "use_sliding_window", 1))
               ? num_of(cfg, "sliding_window")
               : NAN;
}

static double mellum_is_sliding(const struct gg_hf_config *cfg, int64_t layer)
{
    return mellum_window(cfg) > 0 ? gg_convert_is_sliding(cfg, layer) : NAN;
}

static void put_mellum(struct gg_back_maker *m)
{
    gg_back_put_num(m, "sliding_window",
                    num_of(&m->keys, "attention.sliding_window"));
}

/* Every fourth layer has full attention without rotary embedding, and
 * embeddings are scaled. */
static bool is_afmoe(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "global_attn_every_n_layers", 4) == 4 &&
           is_true(num_or(cfg, "mup_enabled", 1));
}

static void put_afmoe(struct gg_back_maker *m)
{
    gg_back_put_flag(m, "mup_enabled", 1);
}

/* ---- Code Llama and others, recognised by the size of their vocabulary
 * ---- */

static double if_vocab_size(const struct gg_hf_config *cfg, double n, double x)
{
    return num_of(cfg, "vocab_size") == n ? x : NAN;
}

double gg_convert_fim_prefix(const struct gg_hf_config *cfg)
{
    return if_vocab_size(cfg, 32016, 32007);
}

double gg_convert_fim_suffix(const struct gg_hf_config *cfg)
{
    return if_vocab_size(cfg, 32016, 32008);
}

double gg_convert_fim_middle(const struct gg_hf_config *cfg)
{
    return if_vocab_size(cfg, 32016, 32009);
}

double gg_convert_no_bos(const struct gg_hf_config *cfg)
{
    return if_vocab_size(cfg, 49152, 0);
}

/* ---- rows ---- */

const struct gg_convert_defaults gg_convert_defaults_llama = {
    "llama",
    { { "num_attention_heads", 32 },
      { "num_hidden_layers", 32 },
      { "hidden_size", 4096 },
      { "intermediate_size", 11008 },
      { "max_position_embeddings", 2048 },
      { "vocab_size", 32000 },
      { "rms_norm_eps", 1e-6 },
      { "rope_theta", 10000 } }
};

const struct gg_convert_arch gg_convert_family_llama[] = {
    { .classes = "LlamaForCausalLM LLaMAForCausalLM MistralForCausalLM "
                 "IQuestCoderForCausalLM InternLM3ForCausalLM "
                 "VLlama3ForCausalLM VoxtralForConditionalGeneration "
                 "JanusForConditionalGeneration GlmasrModel GlmAsrModel",
      .arch = "llama",
      .names = LLAMA,
      .last = OF_SIZE,
      PERMUTED },
    { .classes =
          "LlavaForConditionalGeneration LlavaNextForConditionalGeneration",
      .arch = "llama",
      .when = is_inner_llama,
      .names = LLAMA,
      .last = OF_SIZE,
      PERMUTED },
    { .classes = "Sarashina2VisionForCausalLM",
      .arch = "llama",
      .skip = "norm.", /* norm of the image encoder */
      .names = LLAMA,
      .last = OF_SIZE,
      PERMUTED },
    { .classes = "LlamaModel",
      .arch = "llama",
      .before = "model.",
      .names = LLAMA,
      .last = OF_SIZE,
      PERMUTED },
    { .classes = "SmolLM3ForCausalLM",
      .model_type = "smollm3",
      .arch = "smollm3",
      .ties = true,
      .names = LLAMA,
      PERMUTED },
    { .classes = "SeedOssForCausalLM",
      .arch = "seed_oss",
      .names = OVER(seed_oss_names) },
    { .classes = "ArceeForCausalLM",
      .arch = "arcee",
      .names = LLAMA,
      PERMUTED },
    { .classes = "InternLM2ForCausalLM",
      .arch = "internlm2",
      .sizes = internlm2_sizes,
      .names = OVER(internlm2_names) },
    { .classes = "BaichuanForCausalLM BaiChuanForCausalLM",
      .arch = "baichuan",
      .names = OVER(baichuan_names),
      .keys =
          ROWS(WORD("tensor_data_layout", "Meta AI original pth"), ALL_ROT) },
    { .classes = "OpenELMForCausalLM",
      .arch = "openelm",
      .back = put_openelm,
      .names = { openelm_names },
      .keys =
          ROWS(U32("block_count", "num_transformer_layers"),
               U32("context_length", "max_context_length"),
               U32("embedding_length", "model_dim"),
               EACH("feed_forward_length", U32, openelm_feed_forward, IN_BACK),
               U32("attention.head_count", "num_query_heads"),
               U32("attention.head_count_kv", "num_kv_heads"),
               F32("rope.freq_base", "rope_freq_constant"),
               ALWAYS("attention.layer_norm_rms_epsilon", F32, 1e-6),
               U32("rope.dimension_count", "head_dim"),
               U32("attention.key_length", "head_dim"),
               U32("attention.value_length", "head_dim")),
      .only_keys = true },
    /* config.json has rms_norm_eps, although the norms are layer norms */
    { .classes = "OrionForCausalLM",
      .arch = "orion",
      .names = LLAMA,
      .keys = ROWS(FILE_TYPE, META,
                   U32("context_length",
                       "max_sequence_length max_position_embeddings "
                       "model_max_length"),
                   U32("embedding_length", "hidden_size"),
                   U32("block_count", "num_hidden_layers"),
                   U32("feed_forward_length", "intermediate_size"),
                   U32("attention.head_count", "num_attention_heads"),
                   U32("attention.head_count_kv",
                       "num_key_value_heads num_attention_heads"),
                   F32("attention.layer_norm_epsilon", "rms_norm_eps"), THETA),
      .only_keys = true },
    { .classes = "XverseForCausalLM",
      .arch = "xverse",
      .names = LLAMA,
      .keys = ROWS(META, ALL_ROT),
      .permuted = true },
    { .classes = "MaincoderForCausalLM",
      .arch = "maincoder",
      .names = LLAMA,
      .keys = ROWS(U32("rope.dimension_count", "head_dim")) },
    { .classes = "PanguEmbeddedForCausalLM",
      .arch = "pangu-embedded",
      .drops_copy = true,
      .names = LLAMA,
      .keys = PANGU },
    /* Its layers are run several times. */
    { .classes = "NanbeigeForCausalLM",
      .arch = "nanbeige",
      .names = LLAMA,
      .keys =
          ROWS(ELSE("num_loops", U32, "num_loops", 1),
               ELSE("skip_loop_final_norm", BOOL, "skip_loop_final_norm", 0)),
      PERMUTED },
    /* Embedding models: attention is bidirectional, and the vector is the
     * mean. */
    { .classes = "LlamaBidirectionalModel",
      .arch = "llama-embed",
      .back = put_embed,
      .before = "model.",
      .names = LLAMA,
      .keys = ROWS(ALWAYS("attention.causal", BOOL, 0),
                   OF("pooling_type", U32, embed_pooling, IN_BACK)),
      PERMUTED },
    { .classes = "MellumForCausalLM",
      .arch = "mellum",
      .back = put_mellum,
      .names = OVER(gg_convert_names_experts),
      .keys = ROWS(EXPERT_FF,
                   OF("attention.sliding_window", U32, mellum_window, IN_BACK),
                   EACH("attention.sliding_window_pattern", BOOL,
                        mellum_is_sliding, gg_back_put_sliding_layers)) },
    { .classes = "ApertusForCausalLM",
      .arch = "apertus",
      .names = OVER(apertus_names),
      .rope_count = true,
      .vocab_size = true },
    { .classes = "DeciLMForCausalLM",
      .arch = "deci",
      .sizes = deci_sizes,
      .back = put_deci,
      .names = OVER(deci_names),
      .keys = ROWS(
          EACH("feed_forward_length", U32, deci_feed_forward, IN_BACK),
          U32("feed_forward_length", "intermediate_size"),
          EACH("attention.head_count", U32, deci_heads, IN_BACK),
          U32("attention.head_count", "num_attention_heads"),
          EACH("attention.head_count_kv", U32, deci_kv_heads, IN_BACK),
          OF("attention.key_length", U32, gg_convert_head_dim, NO_BACK),
          OF("attention.value_length", U32, gg_convert_head_dim, NO_BACK)),
      PERMUTED },
    /* with another activation it is another model */
    { .classes = "BitnetForCausalLM BitNetForCausalLM",
      .arch = "bitnet",
      .when = is_silu,
      .back = put_bitnet,
      .names = OVER(bitnet_names),
      .keys = ROWS(WORD("rope.scaling.type", "linear"),
                   ALWAYS("rope.scaling.factor", F32, 1)) },
    { .classes = "MixtralForCausalLM",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "llama",
      .names = OVER(gg_convert_names_mixtral),
      PERMUTED },
    { .classes = "Llama4ForConditionalGeneration Llama4ForCausalLM",
      .arch = "llama4",
      .names = OVER(llama4_names),
      .keys = ROWS(
          U32("feed_forward_length", "intermediate_size_mlp"),
          U32("vocab_size", "vocab_size"), ALL_ROT,
          U32("interleave_moe_layer_step", "interleave_moe_layer_step"),
          U32("expert_feed_forward_length", "intermediate_size"),
          OF("attention.sliding_window", U32, llama4_no_window, NO_BACK)) },
    /* every fourth layer has full attention without rotary embedding, and
     * embeddings are scaled */
    { .classes = "AfmoeForCausalLM",
      .instead = { { "scoring_func", "score_func" } },
      .arch = "afmoe",
      .when = is_afmoe,
      .back = put_afmoe,
      .names = OVER_2(afmoe_names, gg_convert_names_experts),
      .keys = ROWS(U32("expert_shared_count", "num_shared_experts"), EXPERT_FF,
                   U32("leading_dense_block_count", "num_dense_layers"),
                   BOOL("expert_weights_norm", "route_norm"),
                   F32("expert_weights_scale", "route_scale"), WINDOW),
      .rope_count = true,
      .vocab_size = true },
    { .classes = "ChameleonForConditionalGeneration ChameleonForCausalLM",
      .arch = "chameleon",
      .names = OVER(chameleon_names),
      .keys = ROWS(ELSE("swin_norm", BOOL, "swin_norm", 0)),
      .permuted = true },
    { .classes = NULL }
};
