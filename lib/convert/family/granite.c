/* SPDX-License-Identifier: MIT */
/* granite.c - classes of Granite */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#include "base/str.h"

#include <limits.h>

#define GRANITE                                                               \
    F32("attention.scale", "attention_multiplier"),                           \
        F32("embedding_scale", "embedding_multiplier"),                       \
        F32("residual_scale", "residual_multiplier"),                         \
        F32("logit_scale", "logits_scaling")

static const struct gg_convert_name granitemoe_names[] = {
    N(L "block_sparse_moe.router.layer", B "ffn_gate_inp"),
    N_HOW(L "block_sparse_moe.input_linear", B "ffn_gate_exps", HALF_1),
    N_HOW(L "block_sparse_moe.input_linear", B "ffn_up_exps", HALF_2),
    N(L "block_sparse_moe.output_linear", B "ffn_down_exps"),
    N_HOW(L "shared_mlp.input_linear", B "ffn_gate_shexp", HALF_1),
    N_HOW(L "shared_mlp.input_linear", B "ffn_up_shexp", HALF_2),
    N(L "shared_mlp.output_linear", B "ffn_down_shexp"),
    END_NAMES
};

/* A model without experts has only the shared one. */
static const struct gg_convert_name granite_dense_names[] = {
    N_HOW(L "shared_mlp.input_linear", B "ffn_gate", HALF_1),
    N_HOW(L "shared_mlp.input_linear", B "ffn_up", HALF_2),
    N(L "shared_mlp.output_linear", B "ffn_down"), END_NAMES
};

/* As transformers 5 names experts. Older names are those of granitemoe_names.
 */
static const struct gg_convert_name granite_swa_names[] = {
    N(L "self_attn.sinks", B "attn_sinks.weight"),
    N(L "block_sparse_moe.router", B "ffn_gate_inp"),
    N(L "block_sparse_moe.experts.gate_up_proj", B "ffn_gate_up_exps.weight"),
    N(L "block_sparse_moe.experts.down_proj", B "ffn_down_exps.weight"),
    N(L "shared_mlp.input_linear", B "ffn_up_shexp"),
    END_NAMES
};

/* ---- switched adapters ---- */

/* View of the matrices of all adapters, [n, 1, rows, columns], as a stack with
 * a matrix of zeros before them, for tokens without an adapter. heads: names in
 * config.json of the number of heads whose rows are permuted; NULL: none. */
static enum gguf_status stack_matrices(struct gg_convert_view *v,
                                       const char *heads,
                                       struct gguf_error *err)
{
    const int64_t *ne = v->from->ne;
    int64_t n_heads = 1;
    if (v->from->n_dims != 4 || ne[2] != 1)
        return gg_convert_refuse_view(
            v, "is not a stack of an adapter's matrices", err);
    if (heads && (!gg_convert_get_count(v->c, heads, &n_heads) ||
                  ne[1] % (2 * n_heads)))
        return gg_convert_refuse_view(
            v, "has rows that are not a multiple of the heads", err);
    const uint64_t row = (uint64_t)ne[0], rows = (uint64_t)ne[1],
                   half = rows / (uint64_t)n_heads / 2;
    const uint64_t size[] = { 2, half, (uint64_t)n_heads },
                   step[] = { half * row, row, 2 * half * row };
    unsigned n = 0;
    v->part.ne[n] = row;
    v->part.step[n++] = 1;
    for (size_t i = 0; heads && i < 3; i++) {
        v->part.ne[n] = size[i];
        v->part.step[n++] = step[i];
    }
    if (!heads) {
        v->part.ne[n] = rows;
        v->part.step[n++] = row;
    }
    v->part.ne[n] = (uint64_t)ne[3];
    v->part.step[n++] = rows * row;
    v->part.n_dims = n;
    v->n_dims = 3;
    v->ne[2] = ne[3] + 1;
    v->ne[3] = 1;
    v->n_zeros = rows * row;
    v->zeros_first = true;
    return GGUF_OK;
}

static enum gguf_status stack_all(struct gg_convert_view *v,
                                  struct gguf_error *err)
{
    return stack_matrices(v, NULL, err);
}

static enum gguf_status stack_q(struct gg_convert_view *v,
                                struct gguf_error *err)
{
    return stack_matrices(v, "num_attention_heads", err);
}

static enum gguf_status stack_k(struct gg_convert_view *v,
                                struct gguf_error *err)
{
    return stack_matrices(v, "num_key_value_heads num_attention_heads", err);
}

static void restore_stack(struct gg_convert_dims *d, unsigned *open)
{
    if (d->n != 3)
        return;
    d->n = 4;
    d->ne[3] = d->ne[2] - 1;
    d->ne[2] = 1;
    *open = UINT_MAX;
}

static const struct gg_convert_transform
    stacked = { .text = "after a matrix of zeros",
                .view = stack_all,
                .shape = restore_stack },
    stacked_q = { .text = "rows of heads from halves to pairs, after zeros",
                  .view = stack_q,
                  .shape = restore_stack },
    stacked_k = { .text = "rows of heads from halves to pairs, after zeros",
                  .view = stack_k,
                  .shape = restore_stack };

/* Matrices of the base model. PEFT's segment is part of the names in folders;
 * it is removed from them before names are looked up. */
#define BASE(SEGMENT)                                                         \
    N_AXES(L "self_attn.qkv_proj" SEGMENT, B "attn_qkv",                      \
           "[qrows@0] h 2 d, * > h d 2, *"),                                  \
        N_AXES(L "self_attn.qkv_proj" SEGMENT, B "attn_qkv",                  \
               "[krows@qrows] k 2 d, * > k d 2, *"),                          \
        N_AXES(L "self_attn.qkv_proj" SEGMENT, B "attn_qkv",                  \
               "[@qkrows] x, * > x, *"),                                      \
        N(L "self_attn.o_proj" SEGMENT, B "attn_output"),                     \
        N_HOW(L "shared_mlp.input_linear" SEGMENT, B "ffn_gate", HALF_1),     \
        N_HOW(L "shared_mlp.input_linear" SEGMENT, B "ffn_up", HALF_2),       \
        N(L "shared_mlp.output_linear" SEGMENT, B "ffn_down")
#define PAIR(FROM, NO, TO, HOW_B)                                             \
    N_HOW(L FROM ".lora_A" NO, B TO ".lora_a", stacked),                      \
        N_HOW(L FROM ".lora_B" NO, B TO ".lora_b", HOW_B)

static const struct gg_convert_name switch_names[] = {
    BASE(".base_layer"),
    BASE(""),
    PAIR("self_attn.qkv_proj", "_slices.0", "attn_q", stacked_q),
    PAIR("self_attn.qkv_proj", "_slices.1", "attn_k", stacked_k),
    PAIR("self_attn.qkv_proj", "_slices.2", "attn_v", stacked),
    PAIR("self_attn.o_proj", "", "attn_output", stacked),
    PAIR("shared_mlp.input_linear", "_slices.0", "ffn_gate", stacked),
    PAIR("shared_mlp.input_linear", "_slices.1", "ffn_up", stacked),
    PAIR("shared_mlp.output_linear", "", "ffn_down", stacked),
    N_NOT("model.adapter_token_ids"),
    N_NOT("model.control_to_substitute_lut"),
    END_NAMES
};

/* One of the layers keeps the chooser's memory and has no tensors. */
static double blocks_without_chooser(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "num_hidden_layers") - 1;
}

static void put_blocks_and_chooser(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_hidden_layers",
                    num_of(&m->keys, "block_count") + 1);
}

/* The model is dense, whatever config.json has. */
static double no_experts(const struct gg_hf_config *cfg)
{
    (void)cfg;
    return 0;
}

static void put_no_experts(struct gg_back_maker *m)
{
    gg_back_put_num(m, "num_experts_per_tok", 0);
}

static const struct gg_convert_name bamba_names[] = {
    N("model.final_layernorm", "output_norm"), END_NAMES
};

#define GRANITE_SWA                                                           \
    WINDOW,                                                                   \
        EACH("attention.sliding_window_pattern", BOOL, is_sliding,            \
             gg_back_put_sliding_layers),                                     \
        EACH("attention.rope_pattern", BOOL, has_rope, put_layer_bases),      \
        OF("rope.freq_base", F32, layer_base, gg_back_put_rope_base)

#define GRANITE_HYBRID                                                        \
    EACH("attention.head_count_kv", U32, kv_heads, IN_BACK),                  \
        U32("vocab_size", "vocab_size"),                                      \
        ELSE_OF("rope.dimension_count", U32, "attn_rotary_emb",               \
                gg_convert_head_dim),                                         \
        GRANITE,                                                              \
        U32("expert_shared_feed_forward_length", "shared_intermediate_size"), \
        U32("ssm.conv_kernel", "mamba_d_conv"),                               \
        U32("ssm.state_size", "mamba_d_state"),                               \
        U32("ssm.group_count", "mamba_n_groups"),                             \
        OF("ssm.inner_size", U32, gg_convert_mamba_inner_size, IN_BACK),      \
        U32("ssm.time_step_rank", "mamba_n_heads")

/* ---- layers with and without attention ---- */

static double is_attention(const struct gg_hf_config *cfg, int64_t layer)
{
    return gg_hf_config_is_word(cfg, "layer_types", layer, "attention");
}

static double kv_heads(const struct gg_hf_config *cfg, int64_t layer)
{
    const double has = value_or(
        is_attention(cfg, layer),
        value_or(gg_convert_attention_by_period(cfg, layer),
                 gg_hf_config_list_has(cfg, "attn_layer_indices", layer)));
    return has * num_at(cfg, "num_key_value_heads", layer);
}

static bool is_without_experts(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "num_local_experts", 0) == 0;
}

static bool is_all_attention(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_all_layers(cfg, is_attention));
}

static bool is_dense_attention(const struct gg_hf_config *cfg)
{
    return is_all_attention(cfg) && is_without_experts(cfg);
}

static void put_layers(struct gg_back_maker *m)
{
    gg_back_put_layer_words(m, "layer_types", gg_back_has_attention,
                            "mamba attention");
    gg_back_put_first_kv_heads(m);
}

/* The folder has the hybrid class if the number of key heads is a list. */
static void put_attention_only(struct gg_back_maker *m)
{
    if (gg_hf_config_list_len(&m->keys, "attention.head_count_kv") > 0)
        put_layers(m);
    gg_back_put_mamba_expand(m);
}

static void put_hybrid(struct gg_back_maker *m)
{
    gg_back_put_num(m, "max_position_embeddings",
                    num_of(&m->keys, "context_length"));
    put_layers(m);
    gg_back_put_mamba_expand(m);
}

/* ---- windows ---- */

/* Without layer_types each fourth layer has full attention, from the first. */
static double is_sliding(const struct gg_hf_config *cfg, int64_t layer)
{
    return value_or(gg_convert_is_sliding(cfg, layer), layer % 4 != 0);
}

/* A layer whose base is 0 has no rotary embedding. */
static double has_rope(const struct gg_hf_config *cfg, int64_t layer)
{
    const double base = num_at(cfg, "layer_rope_theta", layer);
    return isnan(base) ? NAN : base != 0;
}

/* Base of the first layer with rotary embedding. */
static double layer_base(const struct gg_hf_config *cfg)
{
    const size_t n = gg_hf_config_list_len(cfg, "layer_rope_theta");
    for (size_t i = 0; i < n; i++)
        if (is_true(has_rope(cfg, (int64_t)i)))
            return num_at(cfg, "layer_rope_theta", (int64_t)i);
    return num_of(cfg, "rope_theta rope_parameters.rope_theta");
}

/* Files have one base for all layers. */
static double has_one_base(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_true(has_rope(cfg, layer))
               ? is_equal(num_at(cfg, "layer_rope_theta", layer),
                          layer_base(cfg))
               : 1;
}

static bool is_of_one_base(const struct gg_hf_config *cfg)
{
    return is_true(gg_hf_config_all_layers(cfg, has_one_base));
}

static double base_of_layer(const struct gg_hf_config *keys, int64_t layer)
{
    return num_at(keys, "attention.rope_pattern", layer) *
           num_or(keys, "rope.freq_base", 10000);
}

static void put_layer_bases(struct gg_back_maker *m)
{
    gg_back_put_layers(m, "layer_rope_theta", base_of_layer);
}

static bool is_granite_inside(const struct gg_hf_config *cfg)
{
    struct gguf_str type;
    return gg_json_str(gg_hf_config_get(cfg, "model_type"), &type) &&
           gg_str_eqz(type, "granite");
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_granite[] = {
    { .classes = "GraniteForCausalLM",
      .arch = "granite",
      .back = put_attention_only,
      .names = LLAMA,
      .keys = ROWS(GRANITE),
      .last = OF_SIZE,
      PERMUTED },
    /* the language model of a speech model, beside encoder and projector */
    { .classes = "GraniteSpeechForConditionalGeneration "
                 "GraniteSpeechPlusForConditionalGeneration",
      .arch = "granite",
      .when = is_granite_inside,
      .skip = "encoder. projector.",
      .names = LLAMA,
      .keys = ROWS(GRANITE),
      .last = OF_SIZE,
      PERMUTED },
    { .classes = "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM",
      .model_type = "granitemoe",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granitemoe",
      .back = put_attention_only,
      .names = OVER(granitemoe_names),
      .keys = ROWS(GRANITE, U32("expert_shared_feed_forward_length",
                                "shared_intermediate_size")),
      PERMUTED },
    { .classes = "GraniteSWAForCausalLM",
      .model_type = "granite_swa",
      .arch = "granite_swa",
      .when = is_of_one_base,
      .names = OVER(granite_swa_names),
      .keys = ROWS(GRANITE, GRANITE_SWA),
      .last = OF_SIZE,
      PERMUTED },
    { .classes = "GraniteMoeSWAForCausalLM",
      .model_type = "granitemoe_swa",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granite_swa",
      .when = is_of_one_base,
      .names = OVER_2(granite_swa_names, granitemoe_names),
      .keys = ROWS(
          GRANITE,
          U32("expert_shared_feed_forward_length", "shared_intermediate_size"),
          GRANITE_SWA),
      PERMUTED },
    { .classes = "GraniteSwitchForCausalLM",
      .model_type = "granite_switch",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "graniteswitch",
      .skip = "model.switch. switch.",
      .names = OVER(switch_names),
      .keys = ROWS(
          OF("block_count", U32, blocks_without_chooser,
             put_blocks_and_chooser),
          GRANITE,
          U32("expert_shared_feed_forward_length", "shared_intermediate_size"),
          OF("expert_used_count", U32, no_experts, put_no_experts),
          U32("adapters.count", "num_adapters"),
          U32("adapters.lora_rank", "max_lora_rank"),
          U32("adapters.token_ids_activate", "adapter_token_ids"),
          U32("adapters.token_ids_substitute", "adapter_substitute_token_ids"),
          OR("adapters.router_gain", "control_token_gain", F32, 15)),
      PERMUTED },
    { .classes = "GraniteMoeHybridForCausalLM",
      .model_type = "granitemoehybrid",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granite",
      .back = put_attention_only,
      .when = is_dense_attention,
      .names = OVER(granite_dense_names),
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .permuted = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .model_type = "granitemoehybrid",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granitemoe",
      .back = put_attention_only,
      .when = is_all_attention,
      .names = OVER(granitemoe_names),
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .permuted = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .model_type = "granitemoehybrid",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granitehybrid",
      .back = put_hybrid,
      .when = is_without_experts,
      .names = { granite_dense_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20), GRANITE_HYBRID,
                   ALWAYS("rope.scaling.finetuned", BOOL, 0)),
      .permuted = true },
    { .classes = "GraniteMoeHybridForCausalLM",
      .model_type = "granitemoehybrid",
      .instead = { { "num_experts", "num_local_experts" } },
      .arch = "granitehybrid",
      .back = put_hybrid,
      .names = { granitemoe_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(ALWAYS("context_length", U32, 1 << 20), GRANITE_HYBRID,
                   ALWAYS("rope.scaling.finetuned", BOOL, 0)),
      .permuted = true },
    { .classes = "BambaForCausalLM",
      .arch = "granitehybrid",
      .back = put_hybrid,
      .names = { bamba_names, gg_convert_names_hybrid,
                 gg_convert_names_llama },
      .keys = ROWS(GRANITE_HYBRID, ALWAYS("rope.scaling.finetuned", BOOL, 1)),
      .permuted = true },
    { .classes = NULL }
};
