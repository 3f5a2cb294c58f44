/* SPDX-License-Identifier: MIT */
/* t5.c - classes of T5 */
#include "config.h"
#include "convert/class_row.h"

#include "base/str.h"

#include <stdio.h>

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

/* ---- encoders without config.json ---- */

static const struct gg_safetensors_tensor *
find_tensor(const struct gguf_convert *c, const char *name)
{
    const struct gg_safetensors *s = c->folder.weights;
    const uint32_t i = gg_safetensors_find(s, gg_str_z(name));
    return i == GG_INDEX_NONE ? NULL : &s->tensor[i];
}

#define SELF "SelfAttention.q.weight"
#define BIAS "SelfAttention.relative_attention_bias.weight"

/* Number of blocks of the encoder. */
static int count_blocks(const struct gguf_convert *c)
{
    char name[80];
    int n = 0;
    do
        snprintf(name, sizeof name, "encoder.block.%d.layer.0." SELF, n);
    while (find_tensor(c, name) && ++n);
    return n;
}

/* Files of image models have the encoder alone. Each of its numbers is a size
 * of a tensor, except for the epsilon, which all published models share. UMT5
 * has a bias of positions in each block, T5 in the first. */
static void make_encoder_config(const struct gguf_convert *c, char *text,
                                size_t size)
{
    const struct gg_safetensors_tensor *embed, *q, *bias, *up;
    embed = find_tensor(c, "shared.weight");
    q = find_tensor(c, "encoder.block.0.layer.0." SELF);
    bias = find_tensor(c, "encoder.block.0.layer.0." BIAS);
    up = find_tensor(c, "encoder.block.0.layer.1.DenseReluDense.wo.weight");
    if (!embed || !q || !bias || !up || bias->ne[0] < 1 ||
        q->ne[1] % bias->ne[0] ||
        find_tensor(c, "decoder.block.0.layer.0." SELF))
        return;
    const bool each = find_tensor(c, "encoder.block.1.layer.0." BIAS) != NULL;
    snprintf(text, size,
             "{\"architectures\":[\"%s\"],\"model_type\":\"%s\","
             "\"d_model\":%" PRId64 ",\"d_ff\":%" PRId64 ",\"d_kv\":%" PRId64
             ",\"num_heads\":%" PRId64
             ",\"num_layers\":%d,\"vocab_size\":%" PRId64
             ",\"relative_attention_num_buckets\":%" PRId64
             ",\"layer_norm_epsilon\":1e-06}",
             each ? "UMT5EncoderModel" : "T5EncoderModel",
             each ? "umt5" : "t5", q->ne[0], up->ne[0], q->ne[1] / bias->ne[0],
             bias->ne[0], count_blocks(c), embed->ne[1], bias->ne[1]);
}

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
    { .classes = "T5EncoderModel UMT5EncoderModel",
      .arch = "t5encoder",
      .make_config = make_encoder_config,
      .names = { t5_names },
      .keys = ROWS(T5_SIZES, T5_HEADS),
      .only_keys = true },
    { .classes = NULL }
};
