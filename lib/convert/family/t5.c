/* SPDX-License-Identifier: MIT */
/* t5.c - classes of T5 */
#include "config.h"
#include "convert/class_row.h"

#define ATTN(P, TO)                                                           \
    N(P ".q", TO "_q"), N(P ".k", TO "_k"), N(P ".v", TO "_v"),               \
        N(P ".o", TO "_o"), N(P ".relative_attention_bias", TO "_rel_b")
#define FF(P, TO)                                                             \
    N(P ".DenseReluDense.wi", TO "ffn_up"),                                   \
        N(P ".DenseReluDense.wi_0", TO "ffn_gate"),                           \
        N(P ".DenseReluDense.wi_1", TO "ffn_up"),                             \
        N(P ".DenseReluDense.wo", TO "ffn_down"),                             \
        N(P ".layer_norm", TO "ffn_norm")

static const struct gg_convert_name t5_names[] = {
    N("shared", "token_embd"),
    N_NOT("encoder.embed_tokens"), /* a copy of "shared" */
    N_NOT("decoder.embed_tokens"),
    N("lm_head", "output"),
    N("encoder.final_layer_norm", "enc.output_norm"),
    N("decoder.final_layer_norm", "dec.output_norm"),
    ATTN("encoder.block.%.layer.0.SelfAttention", "enc.blk.%.attn"),
    N("encoder.block.%.layer.0.layer_norm", "enc.blk.%.attn_norm"),
    FF("encoder.block.%.layer.1", "enc.blk.%."),
    ATTN("decoder.block.%.layer.0.SelfAttention", "dec.blk.%.attn"),
    N("decoder.block.%.layer.0.layer_norm", "dec.blk.%.attn_norm"),
    ATTN("decoder.block.%.layer.1.EncDecAttention", "dec.blk.%.cross_attn"),
    N("decoder.block.%.layer.1.layer_norm", "dec.blk.%.cross_attn_norm"),
    FF("decoder.block.%.layer.2", "dec.blk.%."),
    END_NAMES
};

#define T5_SIZES                                                              \
    ELSE("context_length", U32, "n_positions", 512),                          \
        U32("embedding_length", "d_model"),                                   \
        U32("feed_forward_length", "d_ff"), U32("block_count", "num_layers")
#define T5_HEADS                                                              \
    U32("attention.head_count", "num_heads"),                                 \
        U32("attention.key_length", "d_kv"),                                  \
        U32("attention.value_length", "d_kv"),                                \
        F32("attention.layer_norm_epsilon", "layer_norm_epsilon"),            \
        U32("attention.relative_buckets_count",                               \
            "relative_attention_num_buckets"),                                \
        F32("attention.layer_norm_rms_epsilon", "layer_norm_epsilon")

const struct gg_convert_arch gg_convert_family_t5[] = {
    { .classes = "T5WithLMHeadModel T5ForConditionalGeneration "
                 "MT5ForConditionalGeneration UMT5ForConditionalGeneration "
                 "UMT5Model",
      .arch = "t5",
      .ties = true,
      .names = { t5_names },
      .keys = ROWS(T5_SIZES, U32("decoder_block_count", "num_decoder_layers"),
                   T5_HEADS,
                   U32("decoder_start_token_id", "decoder_start_token_id")),
      .only_keys = true },
    { .classes = "T5EncoderModel",
      .arch = "t5encoder",
      .names = { t5_names },
      .keys = ROWS(T5_SIZES, T5_HEADS),
      .only_keys = true },
    { .classes = NULL }
};
