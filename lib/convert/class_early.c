/* SPDX-License-Identifier: MIT */
/* class_early.c - rows of architectures that are not built after Llama */
#include "config.h"
#include "convert/class_row.h"

/* Conv1D has its matrices the other way round. */
static const struct gg_convert_name gpt2_names[] = {
    N("wte", "token_embd"),
    N("wpe", "position_embd"),
    N("ln_f", "output_norm"),
    N_NOT("h.%.attn.bias"), /* before c_attn's: a mask is not a bias */
    N_NOT("h.%.attn.masked_bias"),
    N("h.%.ln_1", B "attn_norm"),
    N_HOW("h.%.attn.c_attn", B "attn_qkv", TURN),
    N_HOW("h.%.attn.c_proj", B "attn_output", TURN),
    N("h.%.ln_2", B "ffn_norm"),
    N_HOW("h.%.mlp.c_fc", B "ffn_up", TURN),
    N_HOW("h.%.mlp.c_proj", B "ffn_down", TURN),
    N("lm_head", "output"),
    END_NAMES
};

/* The same by Llama's names. */
static const struct gg_convert_name rugpt3xl_names[] = {
    N("model.embed_positions", "position_embd"),
    N(L "self_attn.q_proj", B "attn_qkv"),
    N(L "self_attn.k_proj", B "attn_qkv"),
    N(L "self_attn.v_proj", B "attn_qkv"), END_NAMES
};

/* The same with matrices as they are. */
static const struct gg_convert_name starcoder_names[] = {
    N("wte", "token_embd"),
    N("wpe", "position_embd"),
    N("ln_f", "output_norm"),
    N_NOT("h.%.attn.bias"),
    N("h.%.ln_1", B "attn_norm"),
    N("h.%.attn.c_attn", B "attn_qkv"),
    N("h.%.attn.c_proj", B "attn_output"),
    N("h.%.ln_2", B "ffn_norm"),
    N("h.%.mlp.c_fc", B "ffn_up"),
    N("h.%.mlp.c_proj", B "ffn_down"),
    N("lm_head", "output"),
    END_NAMES
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

/* Each key's head, with the queries that share it before it: all queries, all
 * keys, all values. */
#define FALCON_KV "(num_kv_heads|n_head_kv|1)"
#define FALCON_H  "(num_attention_heads|n_head)"
#define FALCON(SLICE)                                                         \
    "k=" FALCON_KV " n=(" FALCON_H "/" FALCON_KV "+2)[" SLICE                 \
    "] d, * > k n d, *"
static const struct gg_convert_name falcon_names[] = {
    N("word_embeddings", "token_embd"),
    N("ln_f", "output_norm"),
    N("lm_head", "output"),
    N("h.%.input_layernorm", B "attn_norm"),
    N("h.%.ln_mlp", B "attn_norm"),
    N("h.%.ln_attn", B "attn_norm_2"),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           FALCON(FALCON_H "/" FALCON_KV "@0")),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           FALCON("1@" FALCON_H "/" FALCON_KV)),
    N_AXES("h.%.self_attention.query_key_value", B "attn_qkv",
           FALCON("1@" FALCON_H "/" FALCON_KV "+1")),
    N("h.%.self_attention.dense", B "attn_output"),
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

/* Query, key and value, each of all heads, queries and keys permuted. */
static const struct gg_convert_name baichuan_names[] = {
    N_AXES(L "self_attn.W_pack", B "attn_q", "3[1@0] h 2 d, * > h d 2, *"),
    N_AXES(L "self_attn.W_pack", B "attn_k", "3[1@1] h 2 d, * > h d 2, *"),
    N_AXES(L "self_attn.W_pack", B "attn_v", "3[1@2] x, * > x, *"), END_NAMES
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

/* w1 carries what the activated w2 multiplies. */
static const struct gg_convert_name qwen_names[] = {
    N("h.%.mlp.w1", B "ffn_up"), N("h.%.mlp.w2", B "ffn_gate"),
    N_NOT("rotary_emb.inv_freq"), END_NAMES
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

/* GPT-2's with a second matrix, whose result is activated; what goes in and
 * comes out is multiplied. The slopes of the positions are those that the
 * number of heads gives. */
static const struct gg_convert_name jais_names[] = {
    N_TIMES("wte", "token_embd", NULL,
            "mup_embeddings_scale|embeddings_scale"),
    N_TIMES("lm_head", "output", NULL,
            "(mup_output_alpha*mup_width_scale)|width_scale"),
    N_HOW("h.%.mlp.c_fc2", B "ffn_gate", TURN), N_NOT("relative_pe.slopes"),
    END_NAMES
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
/* The width of a layer: the nearest multiple of the divisor, and one more if
 * that is less than nine tenths. */
#define OE_WIDTH "(ffn_multipliers*model_dim)"
#define OE_NEAR                                                               \
    "max(ffn_dim_divisor,(" OE_WIDTH                                          \
    "+ffn_dim_divisor/2)//ffn_dim_divisor*ffn_dim_divisor)"

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_class_early[] = {
    { .classes = "GPT2LMHeadModel GPT2Model",
      .arch = "gpt2",
      .ties = true,
      .strip = "transformer.",
      .names = { gpt2_names },
      .keys = ROWS(U32("block_count", "n_layer"),
                   U32("context_length", "n_positions n_ctx"),
                   U32("embedding_length", "n_embd"),
                   OF("feed_forward_length", U32, "n_inner|(4*n_embd)"),
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
      .names = { starcoder_names },
      .keys = ROWS(U32("context_length", "n_positions"),
                   U32("embedding_length", "n_embd"),
                   OF("feed_forward_length", U32, "n_inner|(4*n_embd)"),
                   U32("block_count", "n_layer"),
                   U32("attention.head_count", "n_head"),
                   ALWAYS("attention.head_count_kv", U32, 1),
                   F32("attention.layer_norm_epsilon", "layer_norm_epsilon")),
      .only_keys = true },
    { .classes = "GPTNeoXForCausalLM",
      .arch = "gptneox",
      .strip = "gpt_neox.",
      .names = { gptneox_names },
      .keys = ROWS(
          U32("context_length", "max_position_embeddings"),
          U32("embedding_length", "hidden_size"),
          U32("block_count", "num_hidden_layers"),
          U32("feed_forward_length", "intermediate_size"),
          OF("rope.dimension_count", U32,
             "rotary_pct|rope_parameters.partial_rotary_factor*" HEAD "//1"),
          U32("attention.head_count", "num_attention_heads"),
          OF("use_parallel_residual", BOOL, "use_parallel_residual|1"),
          F32("attention.layer_norm_epsilon", "layer_norm_eps"), THETA),
      .only_keys = true },
    { .classes = "BloomForCausalLM BloomModel",
      .arch = "bloom",
      .ties = true,
      .strip = "transformer.",
      .names = { bloom_names },
      .keys =
          ROWS(OF("context_length", U32, "seq_length|hidden_size|n_embed"),
               U32("embedding_length", "hidden_size n_embed"),
               OF("feed_forward_length", U32, "4*hidden_size|n_embed"),
               U32("block_count", "num_hidden_layers n_layer"),
               U32("attention.head_count", "num_attention_heads n_head"),
               U32("attention.head_count_kv", "num_attention_heads n_head"),
               F32("attention.layer_norm_epsilon", "layer_norm_epsilon")),
      .only_keys = true },
    { .classes = "FalconForCausalLM RWForCausalLM",
      .arch = "falcon",
      .ties = true,
      .strip = "transformer.",
      .names = { falcon_names },
      .keys = ROWS(ALWAYS("context_length", U32, 2048),
                   WORD("tensor_data_layout", "jploski"),
                   U32("embedding_length", "hidden_size"),
                   OF("feed_forward_length", U32, "4*hidden_size"),
                   U32("block_count", "num_hidden_layers n_layer"),
                   OF("attention.head_count", U32, FALCON_H),
                   OF("attention.head_count_kv", U32, FALCON_KV),
                   F32("attention.layer_norm_epsilon", "layer_norm_epsilon"),
                   THETA),
      .only_keys = true },
    { .classes = "MPTForCausalLM MptForCausalLM",
      .arch = "mpt",
      .ties = true,
      .strip = "transformer.",
      .names = { mpt_names },
      .keys = ROWS(U32("context_length", "max_seq_len"),
                   U32("embedding_length", "d_model"),
                   U32("block_count", "n_layers"),
                   OF("feed_forward_length", U32, "4*d_model"),
                   U32("attention.head_count", "n_heads"),
                   U32("attention.head_count_kv", "attn_config.kv_n_heads"),
                   ALWAYS("attention.layer_norm_epsilon", F32, 1e-5),
                   F32("attention.clamp_kqv", "attn_config.clip_qkv"),
                   OF("attention.max_alibi_bias", F32,
                      "attn_config.alibi=1?attn_config.alibi_bias_max|8:0")),
      .only_keys = true },
    { .classes = "BaichuanForCausalLM BaiChuanForCausalLM",
      .arch = "baichuan",
      .names = OVER(baichuan_names),
      .keys = ROWS(WORD("tensor_data_layout", "Meta AI original pth"),
                   OF("rope.dimension_count", U32, HEAD)) },
    { .classes = "ChatGLMModel ChatGLMForConditionalGeneration",
      .arch = "chatglm",
      .roles = "eos=<|endoftext|> eot=<|user|> unk=<|endoftext|>",
      .strip = "transformer.",
      .names = { chatglm_names },
      .keys = ROWS(
          U32("context_length", "seq_length"),
          U32("embedding_length", "hidden_size"),
          OF("feed_forward_length", U32,
             "ffn_hidden_size|intermediate_size|(4*hidden_size)"),
          U32("block_count", "num_layers num_hidden_layers"),
          U32("attention.head_count", "num_attention_heads"),
          OF("attention.head_count_kv", U32,
             "multi_query_group_num|num_key_value_heads|num_attention_heads"),
          OR("attention.layer_norm_rms_epsilon",
             "layernorm_epsilon rms_norm_eps", F32, 1e-5),
          FILE_TYPE,
          OF("rope.dimension_count", U32,
             "attention_dim|kv_channels|" HEAD
             "*partial_rotary_factor|0.5//1"),
          ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 0),
          OF("rope.freq_base", F32, "10000*rope_ratio|1")),
      .only_keys = true },
    /* GLM-4 and GLM-Edge in transformers' own form */
    { .classes = "GlmForCausalLM",
      .arch = "chatglm",
      .roles = "eos=<|endoftext|> eot=<|user|> unk=<|endoftext|>",
      .names = OVER(glm_names),
      .keys = ROWS(OF("rope.dimension_count", U32,
                      HEAD "*partial_rotary_factor|rope_parameters."
                           "partial_rotary_factor|0.5//1"),
                   ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 0)) },
    { .classes = "QWenLMHeadModel",
      .arch = "qwen",
      .strip = "transformer.",
      .names = { qwen_names, starcoder_names },
      .keys =
          ROWS(F32("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
               OF("rope.dimension_count", U32,
                  "kv_channels|(hidden_size//num_attention_heads)")) },
    { .classes = "GPTRefactForCausalLM",
      .arch = "refact",
      .strip = "transformer.",
      .names = { refact_names, starcoder_names },
      .keys = ROWS(
          U32("context_length", "n_positions"),
          U32("embedding_length", "n_embd"),
          OF("feed_forward_length", U32, "256*((8*n_embd//3+255)//256)"),
          U32("block_count", "n_layer"), U32("attention.head_count", "n_head"),
          ALWAYS("attention.head_count_kv", U32, 1),
          F32("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
          ALWAYS("/tokenizer.ggml.prefix_token_id", U32, 1),
          ALWAYS("/tokenizer.ggml.suffix_token_id", U32, 3),
          ALWAYS("/tokenizer.ggml.middle_token_id", U32, 2)),
      .only_keys = true },
    { .classes = "CodeShellForCausalLM",
      .arch = "codeshell",
      .strip = "transformer.",
      .names = { codeshell_names, starcoder_names },
      .keys = ROWS(U32("context_length", "n_positions"),
                   U32("embedding_length", "n_embd"),
                   OF("feed_forward_length", U32, "n_inner|(4*n_embd)"),
                   U32("block_count", "n_layer"),
                   U32("attention.head_count", "n_head"),
                   U32("attention.head_count_kv", "num_query_groups"),
                   F32("attention.layer_norm_epsilon", "layer_norm_epsilon"),
                   FILE_TYPE, ALWAYS("rope.freq_base", F32, 10000),
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
    { .classes = "OpenELMForCausalLM",
      .arch = "openelm",
      .names = { openelm_names },
      .keys = ROWS(U32("block_count", "num_transformer_layers"),
                   U32("context_length", "max_context_length"),
                   U32("embedding_length", "model_dim"),
                   EACH("feed_forward_length", U32,
                        OE_NEAR "+ffn_dim_divisor*(" OE_NEAR "<(0.9*" OE_WIDTH
                                "))"),
                   U32("attention.head_count", "num_query_heads"),
                   U32("attention.head_count_kv", "num_kv_heads"),
                   F32("rope.freq_base", "rope_freq_constant"),
                   ALWAYS("attention.layer_norm_rms_epsilon", F32, 1e-6),
                   U32("rope.dimension_count", "head_dim"),
                   U32("attention.key_length", "head_dim"),
                   U32("attention.value_length", "head_dim")),
      .only_keys = true },
    { .classes = NULL }
};
