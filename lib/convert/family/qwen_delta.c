/* SPDX-License-Identifier: MIT */
/* qwen_delta.c - classes of Qwen with delta rules: Qwen3-Next, Qwen 3.5,
 * Qwen 3.8 */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#define A  L "linear_attn."
#define KH "linear_num_key_heads"
#define VH "linear_num_value_heads"
#define DK "linear_key_head_dim"
#define DV "linear_value_head_dim"

/* Norms, except that of the delta rule, multiply by 1 + weight. Query matrices
 * include gates. Nextn layers come after the others. */
static const struct gg_convert_name norm_names[] = {
    N_HOW("model.norm", "output_norm", PLUS_1),
    N_HOW(L "input_layernorm", B "attn_norm", PLUS_1),
    N_HOW(L "post_attention_layernorm", B "post_attention_norm", PLUS_1),
    N_HOW(L "self_attn.q_norm", B "attn_q_norm", PLUS_1),
    N_HOW(L "self_attn.k_norm", B "attn_k_norm", PLUS_1),
    N_HOW_AXES(A "A_log", B "ssm_a", NEG_EXP, "k r > r k"),
    N_AXES(A "dt_bias", B "ssm_dt.bias", "k r > r k"),
    N(A "norm", B "ssm_norm"),
    N_HOW("mtp.norm", "blk.+.nextn.shared_head_norm", PLUS_1),
    N_HOW("mtp.pre_fc_norm_embedding", "blk.+.nextn.enorm", PLUS_1),
    N_HOW("mtp.pre_fc_norm_hidden", "blk.+.nextn.hnorm", PLUS_1),
    N("mtp.fc", "blk.+.nextn.eh_proj"),
    END_NAMES
};

/* Heads of keys, each with its queries, its values and gates. */

static const struct gg_convert_name next_names[] = {
    N_AXES(A "in_proj_qkvz", B "attn_qkv", "k n[dk@0], * > k n, *"),
    N_AXES(A "in_proj_qkvz", B "attn_qkv", "k n[dk@dk], * > k n, *"),
    N_AXES(A "in_proj_qkvz", B "attn_qkv", "k n[v@vat], * > k n, *"),
    N_AXES(A "in_proj_qkvz", B "attn_gate", "k n[v@zat], * > k n, *"),
    N(A "in_proj_ba", B "ssm_ba"),
    N_HOW(A "A_log", B "ssm_a", NEG_EXP),
    N(A "dt_bias", B "ssm_dt.bias"),
    N_HOW(A "conv1d", B "ssm_conv1d", SQUEEZE),
    N(A "out_proj", B "ssm_out"),
    END_NAMES
};

/* Value heads by their key's head become key heads by number: r for each of k
 * are k for each of r. */
static const struct gg_convert_name tiled_names[] = {
    N_AXES(A "in_proj_qkv", B "attn_qkv", "[qk@0] x, * > x, *"),
    N_AXES(A "in_proj_qkv", B "attn_qkv", "[@qk] k r d, * > r k d, *"),
    N_AXES(A "in_proj_z", B "attn_gate", "k r d, * > r k d, *"),
    N_AXES(A "in_proj_b", B "ssm_beta", "k r, * > r k, *"),
    N_AXES(A "in_proj_a", B "ssm_alpha", "k r, * > r k, *"),
    N_AXES(A "conv1d", B "ssm_conv1d", "[qk@0] x, 1, c > x, c"),
    N_AXES(A "conv1d", B "ssm_conv1d", "[@qk] k r d, 1, c > r k d, c"),
    N_AXES(A "out_proj", B "ssm_out", "x, k r d > x, r k d"),
    END_NAMES
};

#define N_MTP "mtp_num_hidden_layers"
#define DELTA_SIZES                                                           \
    U32("ssm.conv_kernel", "linear_conv_kernel_dim"),                         \
        U32("ssm.state_size", DK), U32("ssm.group_count", KH),                \
        U32("ssm.time_step_rank", VH),                                        \
        OF("ssm.inner_size", U32, value_rows, IN_BACK),                       \
        ELSE("full_attention_interval", U32, "full_attention_interval", 4),   \
        OF("rope.dimension_count", U32, rotary_quarter, IN_BACK)
#define DELTA_KEYS                                                            \
    OF("block_count", U32, blocks_mtp, gg_back_put_main_layers), EXPERT_FF,   \
        SHARED_FF, ABOVE_0("nextn_predict_layers", U32, N_MTP), DELTA_SIZES
#define SECTIONS U32("rope.dimension_sections", "=11,11,10,0")

/* ---- the delta rule: sizes of heads of keys and values ---- */

static double value_rows(const struct gg_hf_config *cfg)
{
    return num_of(cfg, DV) * num_of(cfg, VH);
}

/* Rows of a key head's group in the fused matrix: of its values; all; where
 * values and gates begin. */
static double value_rows_of_key(const struct gg_hf_config *cfg)
{
    return value_rows(cfg) / num_of(cfg, KH);
}

static double rows_of_key(const struct gg_hf_config *cfg)
{
    return 2 * num_of(cfg, DK) + 2 * value_rows(cfg) / num_of(cfg, KH);
}

static double values_at(const struct gg_hf_config *cfg)
{
    return 2 * num_of(cfg, DK);
}

static double gates_at(const struct gg_hf_config *cfg)
{
    return values_at(cfg) + value_rows_of_key(cfg);
}

static double query_key_rows(const struct gg_hf_config *cfg)
{
    return 2 * num_of(cfg, KH) * num_of(cfg, DK);
}

static const struct gg_convert_size delta_sizes[] = {
    { .name = "k", .hf = KH },
    { .name = "d", .hf = DV },
    { .name = "dk", .hf = DK },
    { .name = "n", .of = rows_of_key },
    { .name = "v", .of = value_rows_of_key },
    { .name = "vat", .of = values_at },
    { .name = "zat", .of = gates_at },
    { .name = "qk", .of = query_key_rows },
    { .name = NULL }
};

static double rotary_quarter(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(
        cfg, "rope_parameters.partial_rotary_factor partial_rotary_factor",
        0.25);
}

static double blocks_mtp(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "num_hidden_layers") + num_or(cfg, N_MTP, 0);
}

static void put_delta(struct gg_back_maker *m)
{
    gg_back_put_num(m, DV, gg_back_state_head_dim(&m->keys));
    gg_back_put_rotary_of_key(m);
}

/* ---- Qwen 3.8 ---- */

#define NGRAM L "ple.ple_embedding."
#define MIX(FROM, TO)                                                         \
    N_HOW(FROM "hc_norm", TO "norm", PLUS_1),                                 \
        N(FROM "input_mix_weight_down", TO "down"),                           \
        N(FROM "input_mix_weight_up", TO "up"),                               \
        N(FROM "block_inject_weight", TO "inject")

/* Number of the layer with n-grams: that of the list counts from 1, and may be
 * missing. */
static double ngram_layer(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "ple_layer_ids") - 1;
}

static double has_ngrams(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_equal(ngram_layer(cfg), (double)layer);
}

static const struct gg_convert_name streams_names[] = {
    MIX(L "attn_hyper_connection.", B "hc_attn_"),
    MIX(L "mlp_hyper_connection.", B "hc_ffn_"),
    MIX("model.hyper_connection_mixer.", "output_hc_"),
    N_AXES(L "self_attn.indexer.index_qk_proj", B "indexer.q_proj",
           "[iq@0] x, * > x, *"),
    N_AXES(L "self_attn.indexer.index_qk_proj", B "indexer.k_proj",
           "[@iq] x, * > x, *"),
    N_HOW(L "self_attn.indexer.q_layernorm", B "indexer.q_norm", PLUS_1),
    N_HOW(L "self_attn.indexer.k_layernorm", B "indexer.k_norm", PLUS_1),
    N(L "ple.key_proj", B "ple_key"),
    N(L "ple.value_proj", B "ple_value"),
    N_HOW(L "ple.norm_key", B "ple_norm_key", PLUS_1),
    N_HOW(L "ple.norm_query", B "ple_norm_query", PLUS_1),
    N_HOW(L "ple.norm_conv", B "ple_norm_conv", PLUS_1),
    N_HOW(L "ple.conv1d", B "ple_conv1d", SQUEEZE),
    N_JOIN(NGRAM "ngram_embedding.shard_@", "per_layer_token_embd",
           has_ngrams),
    N_LIST(NGRAM "layer_multipliers", "ple.layer_multipliers", has_ngrams),
    N_LIST(NGRAM "ngram_heads_offsets", "ple.head_offsets", has_ngrams),
    N_LIST(NGRAM "ngram_heads_vocab_sizes", "ple.head_vocab_sizes",
           has_ngrams),
    END_NAMES
};

/* Numbers of n-grams, if there are any. */
static double ngram_num(const struct gg_hf_config *cfg, const char *name)
{
    return isnan(ngram_layer(cfg)) ? NAN : num_of(cfg, name);
}

static double ngram_size(const struct gg_hf_config *cfg)
{
    return ngram_num(cfg, "ngram_size");
}

static double ngram_heads(const struct gg_hf_config *cfg)
{
    return ngram_num(cfg, "heads_per_ngram");
}

static double ngram_taps(const struct gg_hf_config *cfg)
{
    return ngram_num(cfg, "ple_conv_kernel_size");
}

static double ngram_image(const struct gg_hf_config *cfg)
{
    return ngram_num(cfg, "image_token_id");
}

/* The last of several tokens that end texts ends n-grams. */
static double ngram_eos(const struct gg_hf_config *cfg)
{
    const size_t n = gg_hf_config_list_len(cfg, "eos_token_id");
    return isnan(ngram_layer(cfg))
               ? NAN
               : num_at(cfg, "eos_token_id", n ? (int64_t)n - 1 : -1);
}

static double ngram_width(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "hidden_size") /
           ((ngram_size(cfg) - 1) * ngram_heads(cfg));
}

/* Tokens of a block: 0 in layers with a delta rule. */
static double block_size(const struct gg_hf_config *cfg, int64_t layer)
{
    const double step = num_or(cfg, "full_attention_interval", 4);
    const double full = value_or(gg_convert_is_full(cfg, layer),
                                 fmod((double)layer + 1, step) == 0);
    return full * num_of(cfg, "indexer_compress_ratio");
}

static double index_query_rows(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "indexer_n_heads") * num_of(cfg, "indexer_head_dim");
}

static const struct gg_convert_size streams_sizes[] = {
    { .name = "k", .hf = KH },
    { .name = "d", .hf = DV },
    { .name = "qk", .of = query_key_rows },
    { .name = "iq", .of = index_query_rows },
    { .name = NULL }
};

/* A list of one layer. */
static enum gguf_status set_ngram_layer(struct gguf_convert *c,
                                        struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const double layer = ngram_layer(&cfg);
    char buf[128];
    if (!(layer >= 0 && layer < GG_HF_CONFIG_LAYERS))
        return GGUF_OK;
    return gguf_meta_set_array(
        c->out.meta, gg_convert_key_name(c, "ple.layers", buf), GGUF_VAL_I32,
        &(int32_t){ (int32_t)layer }, 1, err);
}

/* Is it a layer with full attention (1) or with a delta rule (0)? */
static double is_full_by_keys(const struct gg_hf_config *keys, int64_t layer)
{
    const double recurrent = num_at(keys, "attention.recurrent_layers", layer);
    const double step = num_or(keys, "full_attention_interval", 4);
    return isnan(recurrent) ? fmod((double)layer + 1, step) == 0
                            : recurrent == 0;
}

static double ratio_if_any(const struct gg_hf_config *keys, int64_t layer)
{
    const double r = num_at(keys, "attention.compress_ratios", layer);
    return r > 0 ? r : NAN;
}

static void put_streams(struct gg_back_maker *m)
{
    static const struct {
        const char *name, *key;
    } same[] = { { "ngram_size", "ple.ngram_size" },
                 { "heads_per_ngram", "ple.heads_per_ngram" },
                 { "ple_conv_kernel_size", "ple.conv_kernel" },
                 { "image_token_id", "ple.image_token_id" },
                 { "eos_token_id", "ple.eos_token_id" } };
    const double layer = num_of(&m->keys, "ple.layers");
    json_t *layers = json_array();
    put_delta(m);
    gg_back_put_layer_words(m, "layer_types", is_full_by_keys,
                            "linear_attention full_attention");
    gg_back_put_num(m, "indexer_kv_heads", 1);
    gg_back_put_num(m, "indexer_compress_ratio",
                    gg_back_first_layer(m, ratio_if_any));
    if (!isnan(layer))
        json_array_append_new(layers, json_integer((json_int_t)layer + 1));
    gg_back_put(m->root, "ple_layer_ids", layers);
    if (isnan(layer))
        return;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        gg_back_put_num(m, same[i].name, num_of(&m->keys, same[i].key));
    gg_back_put_num(m, "split_ngram_parts", 1);
    gg_back_put_num(m, "ple_embed_dim", num_of(&m->keys, "embedding_length"));
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_qwen_delta[] = {
    { .classes = "Qwen3NextForCausalLM",
      .arch = "qwen3next",
      .sizes = delta_sizes,
      .back = put_delta,
      .nextn = N_MTP,
      .nextn_by_names = true,
      .drafts = "mtp.layers.",
      .names = { next_names, norm_names, gg_convert_names_experts,
                 gg_convert_names_llama },
      .keys = ROWS(DELTA_KEYS) },
    { .classes = "Qwen3_5ForConditionalGeneration Qwen3_5ForCausalLM",
      .arch = "qwen35",
      .sizes = delta_sizes,
      .back = put_delta,
      .nextn = N_MTP,
      .nextn_by_names = true,
      .drafts = "mtp.layers.",
      .names = { tiled_names, norm_names, gg_convert_names_llama },
      .keys = ROWS(DELTA_KEYS, SECTIONS) },
    /* without nextn layers */
    { .classes = "MiniCPMV4_6ForConditionalGeneration",
      .arch = "qwen35",
      .sizes = delta_sizes,
      .back = put_delta,
      .skip = "mtp. model.mtp.",
      .names = { tiled_names, norm_names, gg_convert_names_llama },
      .keys = ROWS(DELTA_SIZES, SECTIONS) },
    { .classes = "Qwen3_5MoeForConditionalGeneration Qwen3_5MoeForCausalLM",
      .arch = "qwen35moe",
      .sizes = delta_sizes,
      .back = put_delta,
      .nextn = N_MTP,
      .nextn_by_names = true,
      .drafts = "mtp.layers.",
      .names = { tiled_names, norm_names, gg_convert_names_experts,
                 gg_convert_names_llama },
      .keys = ROWS(DELTA_KEYS, SECTIONS) },
    /* llama.cpp of September 2026 leaves the draft layer out, too */
    { .classes = "Qwen4ExpForConditionalGeneration Qwen4ExpForCausalLM",
      .arch = "qwen4exp",
      .sizes = streams_sizes,
      .back = put_streams,
      .add_tensors = set_ngram_layer,
      .skip = "mtp. model.mtp.",
      .names = { streams_names, tiled_names, norm_names,
                 gg_convert_names_experts, gg_convert_names_llama },
      .keys = ROWS(
          EXPERT_FF, SHARED_FF, DELTA_SIZES, SECTIONS,
          U32("hyper_connection.count", "hc_count"),
          U32("hyper_connection.low_rank", "hc_lowrank"),
          U32("attention.indexer.head_count", "indexer_n_heads"),
          U32("attention.indexer.key_length", "indexer_head_dim"),
          U32("attention.indexer.top_k", "indexer_budget"),
          EACH("attention.compress_ratios", U32, block_size, IN_BACK),
          OF("ple.ngram_size", U32, ngram_size, IN_BACK),
          OF("ple.heads_per_ngram", U32, ngram_heads, IN_BACK),
          OF("ple.conv_kernel", U32, ngram_taps, IN_BACK),
          OF("ple.eos_token_id", U32, ngram_eos, IN_BACK),
          OF("ple.image_token_id", U32, ngram_image, IN_BACK),
          OF("embedding_length_per_layer_input", U32, ngram_width, IN_BACK)) },
    { .classes = NULL }
};
