/* SPDX-License-Identifier: MIT */
/* speech.c - the part of Qwen3-TTS that knows voices, predicts codes and makes
 * sound of codes; the last is in a folder of its own, speech_tokenizer */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define TOKENIZER "speech_tokenizer"
/* Prefix of the names of the tensors of speech_tokenizer. */
#define SOUND "sound."

/* ---- the speaker's vector (ECAPA-TDNN, arXiv:2005.07143) ---- */

#define LAYER "speaker_encoder.blocks.%."
static const struct gg_convert_name speaker[] = {
    N("speaker_encoder.blocks.0.conv", "a.conv1d.0"),
    N(LAYER "tdnn1.conv", A "conv_pw1"),
    N(LAYER "tdnn2.conv", A "conv_pw2"),
    N(LAYER "se_block.conv1", A "se_conv1"),
    N(LAYER "se_block.conv2", A "se_conv2"),
    N(LAYER "res2net_block.blocks.@.conv", A "res2.@"),
    N("speaker_encoder.mfa.conv", "a.conv_out"),
    N("speaker_encoder.asp.tdnn.conv", "a.asp_tdnn"),
    N("speaker_encoder.asp.conv", "a.asp_attn"),
    N("speaker_encoder.fc", "mm.a.fc"),
    END_NAMES,
};
#undef LAYER

/* ---- codes ---- */

#define CODES "talker.code_predictor."
#define LAYER CODES "model.layers.%."
#define TO    "a.gen.code.blk.%."
static const struct gg_convert_name codes[] = {
    N("talker.model.codec_embedding", "a.gen.code.out_embd"),
    N(CODES "model.norm", "a.gen.code.output_norm"),
    N(CODES "small_to_mtp_projection", "a.gen.code.proj_in"),
    N(CODES "model.codec_embedding.@.weight", "a.gen.code.embd.weight"),
    N(CODES "lm_head.@.weight", "a.gen.code.head.weight"),
    N(LAYER "input_layernorm", TO "ln1"),
    N(LAYER "post_attention_layernorm", TO "ln2"),
    N(LAYER "self_attn.q_proj", TO "attn_q"),
    N(LAYER "self_attn.k_proj", TO "attn_k"),
    N(LAYER "self_attn.v_proj", TO "attn_v"),
    N(LAYER "self_attn.o_proj", TO "attn_out"),
    N(LAYER "self_attn.q_norm", TO "attn_q_norm"),
    N(LAYER "self_attn.k_norm", TO "attn_k_norm"),
    N(LAYER "mlp.gate_proj", TO "ffn_gate"),
    N(LAYER "mlp.up_proj", TO "ffn_up"),
    N(LAYER "mlp.down_proj", TO "ffn_down"),
    END_NAMES,
};
#undef TO
#undef LAYER

/* ---- sound of codes ---- */

#define QUANTIZER "quantizer."
#define WAV       "a.gen.wav."
#define LAYER     "pre_transformer.layers.%."
#define TO        WAV "tfm.blk.%."
static const struct gg_convert_name wave[] = {
    N_AXES(QUANTIZER "rvq_first.input_proj.weight",
           WAV "quant.first.in_proj.weight", "o, i, 1 > o, i"),
    N_AXES(QUANTIZER "rvq_first.output_proj.weight",
           WAV "quant.first.out_proj.weight", "o, i, 1 > o, i"),
    N_AXES(QUANTIZER "rvq_rest.input_proj.weight",
           WAV "quant.rest.in_proj.weight", "o, i, 1 > o, i"),
    N_AXES(QUANTIZER "rvq_rest.output_proj.weight",
           WAV "quant.rest.out_proj.weight", "o, i, 1 > o, i"),
    N_AXES(QUANTIZER "rvq_first.codes.0", WAV "quant.first.codebook.weight",
           "x width > x, width"),
    N_AXES(QUANTIZER "rvq_rest.codes.@", WAV "quant.rest.codebook.weight",
           "x width > x, width"),
    N("pre_conv.conv", WAV "pre_conv"),
    N("pre_transformer.input_proj", WAV "tfm.in_proj"),
    N("pre_transformer.output_proj", WAV "tfm.out_proj"),
    N("pre_transformer.norm", WAV "tfm.output_norm"),
    N(LAYER "input_layernorm", TO "ln1"),
    N(LAYER "post_attention_layernorm", TO "ln2"),
    N(LAYER "self_attn.q_proj", TO "attn_q"),
    N(LAYER "self_attn.k_proj", TO "attn_k"),
    N(LAYER "self_attn.v_proj", TO "attn_v"),
    N(LAYER "self_attn.o_proj", TO "attn_out"),
    N(LAYER "self_attn_layer_scale.scale", TO "ls1.weight"),
    N(LAYER "mlp_layer_scale.scale", TO "ls2.weight"),
    N(LAYER "mlp.gate_proj", TO "ffn_gate"),
    N(LAYER "mlp.up_proj", TO "ffn_up"),
    N(LAYER "mlp.down_proj", TO "ffn_down"),
    N("upsample.%.0.conv", WAV "up.blk.%.conv"),
    N("upsample.%.1.dwconv.conv", WAV "up.blk.%.dwconv"),
    N("upsample.%.1.norm", WAV "up.blk.%.norm"),
    N("upsample.%.1.pwconv1", WAV "up.blk.%.pw1"),
    N("upsample.%.1.pwconv2", WAV "up.blk.%.pw2"),
    N("upsample.%.1.gamma", WAV "up.blk.%.gamma"),
    END_NAMES,
};
#undef TO
#undef LAYER

/* Parameters of x + sin(exp(a) x)^2 / exp(b) (SnakeBeta, arXiv:2206.04658), as
 * factors. */
static void snake_alpha(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)exp((double)x[i]);
}

static void snake_beta(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 1 / ((float)exp((double)x[i]) + 1e-9f);
}

static const struct gg_convert_transform alpha = { .text = "exponential",
                                                   .change = snake_alpha };
static const struct gg_convert_transform beta = {
    .text = "inverse of the exponential", .change = snake_beta
};

/* Blocks are counted after the first filter. */
static double no_below(const struct gg_hf_config *cfg, int64_t no)
{
    (void)cfg;
    return (double)no - 1;
}

#define DAC WAV "dac."
#define BLOCK(FROM, TO)                                                       \
    {                                                                         \
        .from = "decoder.%.block." FROM, .to = DAC "blk.%." TO,               \
        .layer_of = no_below                                                  \
    }
#define ALPHA(FROM, TO)                                                       \
    {                                                                         \
        .from = "decoder.%.block." FROM ".alpha",                             \
        .to = DAC "blk.%." TO ".alpha", .transform = &alpha,                  \
        .layer_of = no_below                                                  \
    }
#define BETA(FROM, TO)                                                        \
    {                                                                         \
        .from = "decoder.%.block." FROM ".beta",                              \
        .to = DAC "blk.%." TO ".beta", .transform = &beta,                    \
        .layer_of = no_below                                                  \
    }
#define SNAKE(FROM, TO) ALPHA(FROM, TO), BETA(FROM, TO)
#define RESIDUAL(FROM, TO)                                                    \
    SNAKE(FROM ".act1", TO ".act1"), SNAKE(FROM ".act2", TO ".act2"),         \
        BLOCK(FROM ".conv1.conv", TO ".conv1"),                               \
        BLOCK(FROM ".conv2.conv", TO ".conv2")
static const struct gg_convert_name dac[] = {
    N("decoder.0.conv", DAC "entry"),
    SNAKE("0", "snake"),
    BLOCK("1.conv", "conv"),
    RESIDUAL("2", "res.0"),
    RESIDUAL("3", "res.1"),
    RESIDUAL("4", "res.2"),
    N_HOW("decoder.5.alpha", DAC "post_snake.alpha", alpha),
    N_HOW("decoder.5.beta", DAC "post_snake.beta", beta),
    N("decoder.6.conv", DAC "post_conv"),
    END_NAMES,
};

/* ---- codebooks ---- */

static const struct gg_convert_size sizes[] = {
    { .name = "width", .hf = "audio.codebook_width" }, { .name = NULL }
};

#define BOOK SOUND "decoder.quantizer.%s.vq.layers.%zu._codebook.%s"

/* Compute the vectors of a codebook: sums, by the number of vectors that were
 * summed. */
static enum gguf_status add_codes(struct gguf_convert *c, const char *of,
                                  size_t no, struct gguf_error *err)
{
    char name[GG_CONVERT_NAME];
    float *sum = NULL, *usage = NULL;
    size_t n = 0, n_codes = 0;
    snprintf(name, sizeof name, BOOK, of, no, "embedding_sum");
    enum gguf_status st = gg_projector_read_floats(c, name, &n, &sum, err);
    snprintf(name, sizeof name, BOOK, of, no, "cluster_usage");
    if (st == GGUF_OK)
        st = gg_projector_read_floats(c, name, &n_codes, &usage, err);
    const size_t width = n_codes ? n / n_codes : 0;
    if (st == GGUF_OK && (!width || n % n_codes))
        st = gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                          "tensor '%s' has another number of codes than the "
                          "sums",
                          name);
    for (size_t i = 0; i < n && st == GGUF_OK; i++)
        sum[i] /= fmaxf(usage[i / width], 1e-5f);
    snprintf(name, sizeof name, SOUND "decoder.quantizer.%s.codes.%zu", of,
             no);
    if (st == GGUF_OK)
        st = gg_projector_add_floats(c, name, sum, n, err);
    if (st == GGUF_OK)
        st = gg_projector_set(c, "audio.codebook_width", (double)width, err);
    gg_mem_free(c->p.allocator, sum);
    gg_mem_free(c->p.allocator, usage);
    return st;
}

static enum gguf_status read_sound(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    static const char *const of[] = { "rvq_first", "rvq_rest" };
    enum { MOST_BOOKS = 256 };
    char name[GG_CONVERT_NAME];
    bool there;
    GG_TRY(gg_safetensors_add_file(c->folder.weights, &c->folder.dir,
                                   TOKENIZER "/model.safetensors", SOUND,
                                   &there, err));
    if (!there)
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "%s/model.safetensors is missing", TOKENIZER);
    for (size_t k = 0; k < GG_LEN(of); k++)
        for (size_t i = 0; i < MOST_BOOKS; i++) {
            snprintf(name, sizeof name, BOOK, of[k], i, "embedding_sum");
            if (gg_safetensors_find(c->folder.weights, gg_str_z(name)) ==
                GG_INDEX_NONE)
                break;
            GG_TRY(add_codes(c, of[k], i, err));
        }
    return GGUF_OK;
}

#define PREDICTOR      "talker_config.code_predictor_config."
#define GEN(KEY, NAME) NUMBER("gen.audio." KEY, PREDICTOR NAME)

const struct gg_projector gg_projector_family_speech[] = {
    { .arch = { .classes = "Qwen3TTSForConditionalGeneration",
                .names = { speaker, codes, wave, dac },
                .sizes = sizes,
                CLIP("speaker_encoder. talker.code_predictor. "
                     "talker.model.codec_embedding. " SOUND "decoder.",
                     SOUND "decoder."),
                .unused = SOUND "decoder.quantizer.rvq_first.vq. " SOUND
                                "decoder.quantizer.rvq_rest.vq.",
                .always_f16 = "a.gen.wav.pre_conv. .dwconv. .dac.entry. "
                              ".res. .dac.post_conv.",
                .always_f32 = ".conv.weight",
                .keys =
                    ROWS(NUMBER("audio.projection_dim",
                                "talker_config.hidden_size"),
                         ALWAYS("audio.num_mel_bins", U32, 128),
                         ALWAYS("audio.block_count", U32, 3),
                         ALWAYS("audio.embedding_length", U32, 1536),
                         ALWAYS("audio.attention.head_count", U32, 1),
                         ALWAYS("audio.feed_forward_length", U32, 1536), AUDIO,
                         AUDIO_TYPE("qwen3tts_spkenc"), AUDIO_EPS(NULL, 1e-5),
                         ALWAYS("has_gen_audio_encoder", BOOL, 1),
                         WORD("gen.audio.projector_type", "qwen3tts_gen"),
                         NUMBER("gen.audio.projection_dim",
                                "talker_config.hidden_size"),
                         GEN("embedding_length", "hidden_size"),
                         GEN("feed_forward_length", "intermediate_size"),
                         GEN("block_count", "num_hidden_layers"),
                         GEN("attention.head_count", "num_attention_heads"),
                         GEN("attention.head_count_kv", "num_key_value_heads"),
                         F32("gen.audio.attention.layer_norm_epsilon",
                             PREDICTOR "rms_norm_eps")) },
      .audio = "speaker_encoder_config",
      .needs = "gen.audio.projection_dim gen.audio.embedding_length "
               "gen.audio.feed_forward_length gen.audio.block_count "
               "gen.audio.attention.head_count "
               "gen.audio.attention.head_count_kv "
               "gen.audio.attention.layer_norm_epsilon",
      .add_tensors = read_sound,
      .no_back = "its codebooks are quotients of two tensors" },
    { .arch = { .classes = NULL } },
};
