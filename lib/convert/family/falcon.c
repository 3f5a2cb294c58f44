/* SPDX-License-Identifier: MIT */
/* falcon.c - classes of Falcon */
#include "config.h"
#include "convert/class_row.h"

static gg_hf_config_layer_fn has_one_norm;

/* Each key's head, with the queries that share it before it: all queries, all
 * keys, all values. */

static const struct gg_convert_name falcon_names[] = {
    N("word_embeddings", "token_embd"),
    N("ln_f", "output_norm"),
    N("lm_head", "output"),
    { .from = "h.%.input_layernorm",
      .to = B "attn_norm",
      .only_if = has_one_norm },
    N("h.%.ln_mlp", B "attn_norm"),
    N("h.%.ln_attn", B "attn_norm_2"),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           "k n[g@0] d, * > k n d, *"),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           "k n[1@g] d, * > k n d, *"),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           "k n[1@v] d, * > k n d, *"),
    N("h.%.self_attention.dense", B "attn_output"),
    N("h.%.mlp.dense_h_to_4h", B "ffn_up"),
    N("h.%.mlp.dense_4h_to_h", B "ffn_down"),
    END_NAMES
};

/* Falcon-H1 multiplies inputs and outputs of its parts by factors, which
 * conversion multiplies into the weights. in_proj has the rows of z, x, B, C
 * and the time steps. */
#define IN(ROWS_, NO)                                                         \
    {                                                                         \
        .from = LAYERS_MAMBA "in_proj", .to = B "ssm_in",                     \
        .axes = "[" ROWS_ "] x, * > x, *", .scale = {                         \
            "ssm_in_multiplier",                                              \
            "ssm_multipliers." NO                                             \
        }                                                                     \
    }

static const struct gg_convert_name falcon_h1_names[] = {
    N(L "pre_ff_layernorm.weight", B "ffn_norm"), /* order in files */
    N("model.final_layernorm", "output_norm"),
    N_TIMES("model.embed_tokens", "token_embd", "embedding_multiplier"),
    N_TIMES("lm_head", "output", "lm_head_multiplier"),
    N_TIMES(L "self_attn.q_proj", B "attn_q", "attention_in_multiplier"),
    { .from = L "self_attn.k_proj",
      .to = B "attn_k",
      .scale = { "key_multiplier", "attention_in_multiplier" } },
    N_TIMES(L "self_attn.v_proj", B "attn_v", "attention_in_multiplier"),
    N_TIMES(L "self_attn.o_proj", B "attn_output", "attention_out_multiplier"),
    N_TIMES(L "feed_forward.gate_proj", B "ffn_gate", "mlp_multipliers.0"),
    N_TIMES(L "feed_forward.down_proj", B "ffn_down", "mlp_multipliers.1"),
    N_TIMES(LAYERS_MAMBA "out_proj", B "ssm_out", "ssm_out_multiplier"),
    IN("z@0", "0"),
    IN("z@z", "1"),
    IN("b@bat", "2"),
    IN("b@cat", "3"),
    IN("@dtat", "4"),
    END_NAMES
};

/* ---- Falcon ---- */

static double n_heads(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "num_attention_heads n_head");
}

static double kv_heads(const struct gg_hf_config *cfg)
{
    return num_or(cfg, "num_kv_heads n_head_kv", 1);
}

/* Queries that share a head of keys. */
static double group_queries(const struct gg_hf_config *cfg)
{
    return n_heads(cfg) / kv_heads(cfg);
}

/* Place of a group's values: after its queries and its key. */
static double after_key(const struct gg_hf_config *cfg)
{
    return group_queries(cfg) + 1;
}

/* Heads of a group: queries, a key, values. */
static double group_size(const struct gg_hf_config *cfg)
{
    return group_queries(cfg) + 2;
}

static const struct gg_convert_size falcon_sizes[] = {
    { .name = "k", .of = kv_heads },
    { .name = "g", .of = group_queries },
    { .name = "v", .of = after_key },
    { .name = "n", .of = group_size },
    { .name = NULL }
};

static void put_falcon(struct gg_back_maker *m)
{
    const double kv = num_of(&m->keys, "attention.head_count_kv");
    gg_back_put_num(m, "num_attention_heads",
                    num_of(&m->keys, "attention.head_count"));
    gg_back_put_num(m, "num_kv_heads", kv);
    gg_back_put_flag(m, "multi_query", is_equal(kv, 1));
    gg_back_put_flag(m, "new_decoder_architecture", is_above(kv, 1));
    gg_back_put_flag(m, "alibi", 0);
}

/* The newer form has a norm for each of the parallel parts. */
static double has_one_norm(const struct gg_hf_config *cfg, int64_t layer)
{
    (void)layer;
    return is_equal(num_of(cfg, "new_decoder_architecture"), 0);
}

/* ---- Falcon-H1 ---- */

/* Rows of in_proj: size of B and C, and where B, C and the time steps begin. */
static double b_rows(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "mamba_n_groups") * num_of(cfg, "mamba_d_state");
}

static double b_at(const struct gg_hf_config *cfg)
{
    return 2 * num_of(cfg, "mamba_d_ssm");
}

static double c_at(const struct gg_hf_config *cfg)
{
    return b_at(cfg) + b_rows(cfg);
}

static double dt_at(const struct gg_hf_config *cfg)
{
    return b_at(cfg) + 2 * b_rows(cfg);
}

static const struct gg_convert_size falcon_h1_sizes[] = {
    { .name = "z", .hf = "mamba_d_ssm" }, { .name = "b", .of = b_rows },
    { .name = "bat", .of = b_at },        { .name = "cat", .of = c_at },
    { .name = "dtat", .of = dt_at },      { .name = NULL }
};

static double h1_state_heads(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "mamba_d_ssm") / num_of(cfg, "mamba_d_head");
}

static void put_h1(struct gg_back_maker *m)
{
    gg_back_put_num(m, "mamba_d_head", gg_back_state_head_dim(&m->keys));
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_falcon[] = {
    { .classes = "FalconForCausalLM RWForCausalLM",
      .arch = "falcon",
      .sizes = falcon_sizes,
      .back = put_falcon,
      .ties = true,
      .strip = "transformer.",
      .names = { falcon_names },
      .keys = ROWS(
          ALWAYS("context_length", U32, 2048),
          WORD("tensor_data_layout", "jploski"),
          U32("embedding_length", "hidden_size"),
          OF("feed_forward_length", U32, gg_convert_four_times_width, NO_BACK),
          U32("block_count", "num_hidden_layers n_layer"),
          OF("attention.head_count", U32, n_heads, IN_BACK),
          OF("attention.head_count_kv", U32, kv_heads, IN_BACK),
          F32("attention.layer_norm_epsilon", "layer_norm_epsilon"), THETA),
      .only_keys = true },
    { .classes = "FalconH1ForCausalLM",
      .arch = "falcon-h1",
      .sizes = falcon_h1_sizes,
      .back = put_h1,
      .names = OVER_2(falcon_h1_names, gg_convert_names_hybrid),
      .keys =
          ROWS(U32("context_length", "max_position_embeddings"),
               U32("embedding_length", "hidden_size"),
               U32("feed_forward_length", "intermediate_size"),
               U32("attention.head_count", "num_attention_heads"),
               U32("block_count", "num_hidden_layers"),
               U32("ssm.conv_kernel", "mamba_d_conv"),
               U32("ssm.inner_size", "mamba_d_ssm"),
               U32("ssm.state_size", "mamba_d_state"),
               OF("ssm.time_step_rank", U32, h1_state_heads, IN_BACK),
               U32("ssm.group_count", "mamba_n_groups"), MAMBA_EPS, FILE_TYPE,
               U32("vocab_size", "vocab_size"),
               U32("attention.head_count_kv", "num_key_value_heads"),
               U32("attention.key_length", "head_dim"),
               U32("attention.value_length", "head_dim"),
               F32("rope.freq_base", "rope_theta rope_parameters.rope_theta")),
      .only_keys = true },
    { .classes = NULL }
};
