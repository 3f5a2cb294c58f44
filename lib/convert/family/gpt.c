/* SPDX-License-Identifier: MIT */
/* gpt.c - classes of GPT-2 and models built like it */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

static void transpose_back(struct gg_convert_dims *d, unsigned *open)
{
    if (d->n != 2)
        return;
    const int64_t x = d->ne[0];
    d->ne[0] = d->ne[1];
    d->ne[1] = x;
    *open = 0;
}

static const struct gg_convert_transform transposed = {
    .text = "transposed",
    .view = gg_convert_transpose_view,
    .shape = transpose_back,
    .pair = GG_PAIR_AS_IS
};

/* Negate the second half of each head, for heads that are rotated in the
 * opposite direction. */
static enum gguf_status view_negated_halves(struct gg_convert_view *v,
                                            struct gguf_error *err)
{
    int64_t head;
    if (v->n_dims != 2 || !gg_convert_get_count(v->c, "head_dim", &head) ||
        head % 2 || v->ne[1] % head)
        return gg_convert_refuse_view(
            v, "has rows that are not a multiple of the heads", err);
    v->part.run = (uint64_t)(head / 2) * (uint64_t)v->ne[0];
    return GGUF_OK;
}

static const struct gg_convert_transform negated_halves = {
    .text = "second halves of heads negated", .view = view_negated_halves
};

/* Factor of the output matrix of Jais. */
static double jais_output_scale(const struct gg_hf_config *cfg, int64_t layer)
{
    return value_or(num_at(cfg, "mup_output_alpha", layer) *
                        num_at(cfg, "mup_width_scale", layer),
                    num_at(cfg, "width_scale", layer));
}

static void put_talkie(struct gg_back_maker *m)
{
    gg_back_put_num(m, "rms_norm_eps",
                    num_of(&m->keys, "attention.layer_norm_rms_epsilon"));
}

static const struct gg_convert_name starcoder2_names[] = {
    N(L "mlp.c_fc", B "ffn_up"), N(L "mlp.c_proj", B "ffn_down"), END_NAMES
};

/* Norms per head, numbered in names. */
static const struct gg_convert_name stablelm_names[] = {
    N(L "self_attn.q_layernorm.norms.@", B "attn_q_norm"),
    N(L "self_attn.k_layernorm.norms.@", B "attn_k_norm"), END_NAMES
};

/* Conv1D stores its matrices transposed. */
static const struct gg_convert_name gpt2_names[] = {
    N("wte", "token_embd"),
    N("wpe", "position_embd"),
    N("ln_f", "output_norm"),
    N_NOT("h.%.attn.bias"), /* before c_attn's: a mask is not a bias */
    N_NOT("h.%.attn.masked_bias"),
    N("h.%.ln_1", B "attn_norm"),
    N_HOW("h.%.attn.c_attn", B "attn_qkv", transposed),
    N_HOW("h.%.attn.c_proj", B "attn_output", transposed),
    N("h.%.ln_2", B "ffn_norm"),
    N_HOW("h.%.mlp.c_fc", B "ffn_up", transposed),
    N_HOW("h.%.mlp.c_proj", B "ffn_down", transposed),
    N("lm_head", "output"),
    END_NAMES
};

/* ruGPT3 XL is a GPT-2 under Llama's names. */
static const struct gg_convert_name rugpt3xl_names[] = {
    N("model.embed_positions", "position_embd"),
    N(L "self_attn.q_proj", B "attn_qkv"),
    N(L "self_attn.k_proj", B "attn_qkv"),
    N(L "self_attn.v_proj", B "attn_qkv"), END_NAMES
};

/* Query, key and value of each head lie together. */
#define QKV_BY_HEAD "h 3 d, * > 3 h d, *"

static const struct gg_convert_name gptneox_names[] = {
    N("embed_in", "token_embd"),
    N("embed_out", "output"),
    N("final_layer_norm", "output_norm"),
    N("layers.%.input_layernorm", B "attn_norm"),
    N_AXES("layers.%.attention.query_key_value", B "attn_qkv", QKV_BY_HEAD),
    N("layers.%.attention.dense", B "attn_output"),
    N("layers.%.post_attention_layernorm", B "ffn_norm"),
    N("layers.%.mlp.dense_h_to_4h", B "ffn_up"),
    N("layers.%.mlp.dense_4h_to_h", B "ffn_down"),
    N_NOT("layers.%.attention.bias"),
    N_NOT("layers.%.attention.masked_bias"),
    N_NOT("layers.%.attention.rotary_emb.inv_freq"),
    END_NAMES
};

static const struct gg_convert_name bloom_names[] = {
    N("word_embeddings", "token_embd"),
    N("word_embeddings_layernorm", "token_embd_norm"),
    N("ln_f", "output_norm"),
    N("lm_head", "output"),
    N("h.%.input_layernorm", B "attn_norm"),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv", QKV_BY_HEAD),
    N("h.%.self_attention.dense", B "attn_output"),
    N("h.%.post_attention_layernorm", B "ffn_norm"),
    N("h.%.mlp.dense_h_to_4h", B "ffn_up"),
    N("h.%.mlp.dense_4h_to_h", B "ffn_down"),
    END_NAMES
};

static const struct gg_convert_name mpt_names[] = {
    N("wte", "token_embd"),
    N("wpe", "position_embd"),
    N("norm_f", "output_norm"),
    N("lm_head", "output"),
    N("blocks.%.norm_1", B "attn_norm"),
    N("blocks.%.norm_2", B "ffn_norm"),
    N("blocks.%.attn.Wqkv", B "attn_qkv"),
    N("blocks.%.attn.out_proj", B "attn_output"),
    N("blocks.%.attn.q_ln", B "attn_q_norm"),
    N("blocks.%.attn.k_ln", B "attn_k_norm"),
    N("blocks.%.ffn.up_proj", B "ffn_up"),
    N("blocks.%.ffn.down_proj", B "ffn_down"),
    N("blocks.%.ffn.act.scale", B "ffn.act.scales"),
    END_NAMES
};

/* One head of keys, one of values. */
static const struct gg_convert_name refact_names[] = {
    N("h.%.attn.q", B "attn_q"),
    N_HOW("h.%.attn.kv", B "attn_k", HALF_1),
    N_HOW("h.%.attn.kv", B "attn_v", HALF_2),
    N_HOW("h.%.mlp.gate_up_proj", B "ffn_gate", HALF_1),
    N_HOW("h.%.mlp.gate_up_proj", B "ffn_up", HALF_2),
    END_NAMES
};

static const struct gg_convert_name codeshell_names[] = {
    N_NOT("h.%.attn.rotary_emb.inv_freq"), END_NAMES
};

/* GPT-2's names, and a gate in the feed-forward part. Embeddings and logits
 * are multiplied by numbers. Slopes of positions follow from the number of
 * heads. */
static const struct gg_convert_name jais_names[] = {
    N_TIMES("wte", "token_embd", "mup_embeddings_scale embeddings_scale"),
    { .from = "lm_head", .to = "output", .scale_of = jais_output_scale },
    N_HOW("h.%.mlp.c_fc2", B "ffn_gate", transposed),
    N_NOT("relative_pe.slopes"),
    END_NAMES
};

/* Gains instead of norms, and rotation in the opposite direction. */
#define T "model.blocks.%."

static const struct gg_convert_name talkie_names[] = {
    N("model.embed", "token_embd"),
    N("lm_head", "output.weight"),
    N_KEY("lm_head_gain.w_g", "logit_scale"),
    N_HOW(T "attn.attn_query", B "attn_q", negated_halves),
    N_HOW(T "attn.attn_key", B "attn_k", negated_halves),
    N(T "attn.attn_value", B "attn_v"),
    N(T "attn.attn_resid", B "attn_output"),
    N_AXES(T "attn.head_gain.head_g", B "attn_q_norm.weight", "x > x, 1"),
    N(T "attn_gain.a_g", B "attn_output.scale"),
    N(T "mlp.mlp_gate", B "ffn_gate"),
    N(T "mlp.mlp_linear", B "ffn_up"),
    N(T "mlp.mlp_resid", B "ffn_down"),
    N(T "mlp_gain.a_g", B "ffn_down.scale"),
    N(T "embed_skip.a_g", B "layer_output_scale.weight"),
    END_NAMES
};

/* gpt-oss interleaves gate and up rows in gate_up_proj. Its matrices are
 * transposed, except in MXFP4, as it is published: blocks lie along the
 * input. */
static const struct gg_convert_name gpt_oss_names[] = {
    N(L "self_attn.sinks", B "attn_sinks.weight"),
    N(L "post_attention_layernorm", B "post_attention_norm"),
    N(L "mlp.router", B "ffn_gate_inp"),
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_gate_exps.weight",
           "x, c, f 2[1@0] > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj", B "ffn_up_exps.weight",
           "x, c, f 2[1@1] > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj_bias", B "ffn_gate_exps.bias",
           "x, f 2[1@0] > x, f"),
    N_AXES(L "mlp.experts.gate_up_proj_bias", B "ffn_up_exps.bias",
           "x, f 2[1@1] > x, f"),
    N_AXES(L "mlp.experts.down_proj", B "ffn_down_exps.weight",
           "x, f, c > x, c, f"),
    N(L "mlp.experts.down_proj_bias", B "ffn_down_exps.bias"),
    N_AXES(L "mlp.experts.gate_up_proj_blocks", B "ffn_gate_exps.weight",
           "x, f 2[1@0], c > x, f, c"),
    N_AXES(L "mlp.experts.gate_up_proj_blocks", B "ffn_up_exps.weight",
           "x, f 2[1@1], c > x, f, c"),
    N(L "mlp.experts.down_proj_blocks", B "ffn_down_exps.weight"),
    /* one by one, with weights and biases, as some quantizers need them */
    EACH_EXPERT(L "mlp.experts.@."),
    N_AXES(L "mlp.experts.gate_up_projs.@", B "ffn_gate_exps",
           "f 2[1@0], * > f, *"),
    N_AXES(L "mlp.experts.gate_up_projs.@", B "ffn_up_exps",
           "f 2[1@1], * > f, *"),
    N(L "mlp.experts.down_projs.@", B "ffn_down_exps"), END_NAMES
};

static const struct gg_convert_name dbrx_names[] = {
    N("transformer.wte", "token_embd"), N("transformer.norm_f", "output_norm"),
    N("transformer.blocks.%.norm_attn_norm.norm_1", B "attn_norm"),
    N("transformer.blocks.%.norm_attn_norm.norm_2", B "attn_output_norm"),
    N("transformer.blocks.%.norm_attn_norm.attn.Wqkv", B "attn_qkv"),
    N("transformer.blocks.%.norm_attn_norm.attn.out_proj", B "attn_output"),
    N("transformer.blocks.%.ffn.router.layer", B "ffn_gate_inp"),
    N_AXES("transformer.blocks.%.ffn.experts.mlp.w1", B "ffn_gate_exps.weight",
           "e f, c > e, f, c"),
    N_AXES("transformer.blocks.%.ffn.experts.mlp.v1", B "ffn_up_exps.weight",
           "e f, c > e, f, c"),
    N_AXES("transformer.blocks.%.ffn.experts.mlp.w2", B "ffn_down_exps.weight",
           "e f, c > e, c, f"),
    /* one by one, each a Linear of its own */
    N("transformer.blocks.%.ffn.experts.mlp.@.w1", B "ffn_gate_exps"),
    N("transformer.blocks.%.ffn.experts.mlp.@.v1", B "ffn_up_exps"),
    N("transformer.blocks.%.ffn.experts.mlp.@.w2", B "ffn_down_exps"),
    END_NAMES
};

/* ---- functions of rows ---- */

static double gpt2_feed_forward(const struct gg_hf_config *cfg)
{
    return 4 * num_of(cfg, "n_embd");
}

static double bloom_feed_forward(const struct gg_hf_config *cfg)
{
    return 4 * num_of(cfg, "hidden_size n_embed");
}

static double mpt_feed_forward(const struct gg_hf_config *cfg)
{
    return 4 * num_of(cfg, "d_model");
}

static double stablelm_rotary_dims(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(cfg,
                                  "partial_rotary_factor rope_pct "
                                  "rope_parameters.partial_rotary_factor",
                                  NAN);
}

static double neox_rotary_dims(const struct gg_hf_config *cfg)
{
    return gg_convert_rotary_dims(
        cfg, "rotary_pct rope_parameters.partial_rotary_factor", NAN);
}

static void put_neox(struct gg_back_maker *m)
{
    gg_back_put_num(m, "rotary_pct", gg_back_rotary_of_width(&m->keys));
}

static void put_bloom(struct gg_back_maker *m)
{
    gg_back_put_num(m, "seq_length", num_of(&m->keys, "context_length"));
}

static double mpt_alibi_bias(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "attn_config.alibi") == 1
               ? num_or(cfg, "attn_config.alibi_bias_max", 8)
               : 0;
}

static void put_mpt(struct gg_back_maker *m)
{
    const double bias = num_of(&m->keys, "attention.max_alibi_bias");
    gg_back_put_flag(m, "attn_config.alibi", is_above(bias, 0));
    if (bias > 0)
        gg_back_put_num(m, "attn_config.alibi_bias_max", bias);
}

/* Two thirds of four times the width, in multiples of 256. */
static double refact_feed_forward(const struct gg_hf_config *cfg)
{
    return 256 * floor((floor(8 * num_of(cfg, "n_embd") / 3) + 255) / 256);
}

static void drop_rope_scaling(struct gg_back_maker *m)
{
    gg_back_remove_member(m, "rope_scaling");
}

static const struct gg_convert_size dbrx_sizes[] = {
    { .name = "e", .hf = "ffn_config.moe_num_experts" }, { .name = NULL }
};

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_gpt[] = {
    { .classes = "Starcoder2ForCausalLM",
      .instead = { { "layer_norm_eps", "norm_epsilon" } },
      .arch = "starcoder2",
      .ties = true,
      .names = OVER(starcoder2_names) },
    { .classes = "StableLmForCausalLM StableLMEpochForCausalLM "
                 "LlavaStableLMEpochForCausalLM",
      .model_type = "stablelm",
      .arch = "stablelm",
      .names = OVER(stablelm_names),
      .keys =
          ROWS(U32("context_length", "max_position_embeddings"),
               U32("embedding_length", "hidden_size"),
               U32("block_count", "num_hidden_layers"),
               U32("feed_forward_length", "intermediate_size"),
               OF("rope.dimension_count", U32, stablelm_rotary_dims, NO_BACK),
               THETA, U32("attention.head_count", "num_attention_heads"),
               U32("attention.head_count_kv", "num_key_value_heads"),
               ELSE("use_parallel_residual", BOOL, "use_parallel_residual", 1),
               F32("attention.layer_norm_epsilon", "layer_norm_eps norm_eps")),
      .only_keys = true,
      .rope_count = true },
    { .classes = "GPT2LMHeadModel GPT2Model",
      .arch = "gpt2",
      .ties = true,
      .strip = "transformer.",
      .names = { gpt2_names },
      .keys = ROWS(
          U32("block_count", "n_layer"),
          U32("context_length", "n_positions n_ctx"),
          U32("embedding_length", "n_embd"),
          ELSE_OF("feed_forward_length", U32, "n_inner", gpt2_feed_forward),
          U32("attention.head_count", "n_head"),
          F32("attention.layer_norm_epsilon", "layer_norm_epsilon")),
      .only_keys = true },
    { .classes = "RuGPT3XLForCausalLM",
      .arch = "gpt2",
      .names = OVER(rugpt3xl_names) },
    { .classes = "GPTBigCodeForCausalLM",
      .arch = "starcoder",
      .ties = true,
      .strip = "transformer.",
      .names = { gg_convert_names_starcoder },
      .keys = ROWS(
          U32("context_length", "n_positions"),
          U32("embedding_length", "n_embd"),
          ELSE_OF("feed_forward_length", U32, "n_inner", gpt2_feed_forward),
          U32("block_count", "n_layer"), U32("attention.head_count", "n_head"),
          ALWAYS("attention.head_count_kv", U32, 1),
          F32("attention.layer_norm_epsilon", "layer_norm_epsilon")),
      .only_keys = true },
    { .classes = "GPTNeoXForCausalLM",
      .model_type = "gpt_neox",
      .arch = "gptneox",
      .back = put_neox,
      .strip = "gpt_neox.",
      .names = { gptneox_names },
      .keys =
          ROWS(U32("context_length", "max_position_embeddings"),
               U32("embedding_length", "hidden_size"),
               U32("block_count", "num_hidden_layers"),
               U32("feed_forward_length", "intermediate_size"),
               OF("rope.dimension_count", U32, neox_rotary_dims, IN_BACK),
               U32("attention.head_count", "num_attention_heads"),
               ELSE("use_parallel_residual", BOOL, "use_parallel_residual", 1),
               F32("attention.layer_norm_epsilon", "layer_norm_eps"), THETA),
      .only_keys = true },
    { .classes = "BloomForCausalLM BloomModel",
      .arch = "bloom",
      .back = put_bloom,
      .ties = true,
      .strip = "transformer.",
      .names = { bloom_names },
      .keys = ROWS(
          ELSE("context_length", U32, "seq_length hidden_size n_embed", NAN),
          U32("embedding_length", "hidden_size n_embed"),
          OF("feed_forward_length", U32, bloom_feed_forward, NO_BACK),
          U32("block_count", "num_hidden_layers n_layer"),
          U32("attention.head_count", "num_attention_heads n_head"),
          U32("attention.head_count_kv", "num_attention_heads n_head"),
          F32("attention.layer_norm_epsilon", "layer_norm_epsilon")),
      .only_keys = true },
    { .classes = "MPTForCausalLM MptForCausalLM",
      .arch = "mpt",
      .back = put_mpt,
      .ties = true,
      .strip = "transformer.",
      .names = { mpt_names },
      .keys = ROWS(
          U32("context_length", "max_seq_len"),
          U32("embedding_length", "d_model"), U32("block_count", "n_layers"),
          OF("feed_forward_length", U32, mpt_feed_forward, NO_BACK),
          U32("attention.head_count", "n_heads"),
          U32("attention.head_count_kv", "attn_config.kv_n_heads"),
          ALWAYS("attention.layer_norm_epsilon", F32, 1e-5),
          F32("attention.clamp_kqv", "attn_config.clip_qkv"),
          OF("attention.max_alibi_bias", F32, mpt_alibi_bias, IN_BACK)),
      .only_keys = true },
    { .classes = "GPTRefactForCausalLM",
      .arch = "refact",
      .strip = "transformer.",
      .names = { refact_names, gg_convert_names_starcoder },
      .keys = ROWS(
          U32("context_length", "n_positions"),
          U32("embedding_length", "n_embd"),
          OF("feed_forward_length", U32, refact_feed_forward, NO_BACK),
          U32("block_count", "n_layer"), U32("attention.head_count", "n_head"),
          ALWAYS("attention.head_count_kv", U32, 1),
          F32("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
          ALWAYS("/tokenizer.ggml.prefix_token_id", U32, 1),
          ALWAYS("/tokenizer.ggml.suffix_token_id", U32, 3),
          ALWAYS("/tokenizer.ggml.middle_token_id", U32, 2)),
      .only_keys = true },
    { .classes = "CodeShellForCausalLM",
      .arch = "codeshell",
      .back = drop_rope_scaling,
      .strip = "transformer.",
      .names = { codeshell_names, gg_convert_names_starcoder },
      .keys = ROWS(
          U32("context_length", "n_positions"),
          U32("embedding_length", "n_embd"),
          ELSE_OF("feed_forward_length", U32, "n_inner", gpt2_feed_forward),
          U32("block_count", "n_layer"), U32("attention.head_count", "n_head"),
          U32("attention.head_count_kv", "num_query_groups"),
          F32("attention.layer_norm_epsilon", "layer_norm_epsilon"), FILE_TYPE,
          ALWAYS("rope.freq_base", F32, 10000),
          WORD("rope.scaling.type", "linear"),
          ALWAYS("rope.scaling.factor", F32, 1)),
      .only_keys = true },
    { .classes = "JAISLMHeadModel",
      .arch = "jais",
      .strip = "transformer.",
      .names = { jais_names, gpt2_names },
      .keys = ROWS(U32("block_count", "n_layer"),
                   U32("context_length", "n_positions"),
                   U32("embedding_length", "n_embd"),
                   U32("feed_forward_length", "n_inner"),
                   U32("attention.head_count", "n_head"),
                   F32("attention.layer_norm_epsilon", "layer_norm_epsilon"),
                   ALWAYS("attention.max_alibi_bias", F32, 8)),
      .only_keys = true },
    { .classes = "Jais2ForCausalLM",
      .arch = "jais2",
      .names = LLAMA,
      .keys = ROWS(ALL_ROT) },
    /* the epsilon of its norms is that of single precision */
    { .classes = "TalkieForCausalLM",
      .arch = "talkie",
      .back = put_talkie,
      .names = { talkie_names },
      .keys = ROWS(ALWAYS("attention.layer_norm_rms_epsilon", F32,
                          1.1920928955078125e-07)) },
    { .classes = "GptOssForCausalLM",
      .arch = "gpt-oss",
      .names = OVER(gpt_oss_names),
      .keys = ROWS(WINDOW,
                   U32("expert_feed_forward_length", "intermediate_size")) },
    { .classes = "DbrxForCausalLM",
      .arch = "dbrx",
      .sizes = dbrx_sizes,
      .names = OVER(dbrx_names),
      .keys = ROWS(U32("block_count", "n_layers"),
                   U32("context_length", "max_seq_len"),
                   U32("embedding_length", "d_model"),
                   U32("feed_forward_length", "ffn_config.ffn_hidden_size"),
                   U32("attention.head_count", "n_heads"),
                   U32("attention.head_count_kv", "attn_config.kv_n_heads"),
                   F32("rope.freq_base", "attn_config.rope_theta"),
                   F32("attention.clamp_kqv", "attn_config.clip_qkv"),
                   U32("expert_count", "ffn_config.moe_num_experts"),
                   U32("expert_used_count", "ffn_config.moe_top_k"),
                   ALWAYS("attention.layer_norm_epsilon", F32, 1e-5)),
      .only_keys = true },
    { .classes = NULL }
};
