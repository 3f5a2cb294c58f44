/* SPDX-License-Identifier: MIT */
/* kyutai.c - the part of Pocket TTS that knows voices, finds the next latent by
 * flow matching (arXiv:2210.02747) and makes sound of latents with the codec
 * Mimi (arXiv:2410.00037)
 *
 * A folder has no config.json: convert/family/kyutai.c makes one of its
 * tensors. Both transformers of Mimi have the same sizes. */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/str.h"

/* Releases differ in how often they name a filter. */
#define CONV(FROM, TO)   N(FROM ".conv", TO), N(FROM ".conv.conv", TO)
#define CONVTR(FROM, TO) N(FROM ".convtr", TO), N(FROM ".convtr.convtr", TO)

/* ---- transformers of Mimi ---- */

#define ENCODER "mimi.encoder_transformer.transformer.layers.%."
#define DECODER "mimi.decoder_transformer.transformer.layers.%."
#define WAV     "a.gen.wav."
#define LAYER(FROM, TO)                                                       \
    N(FROM "norm1", TO "ln1"), N(FROM "norm2", TO "ln2"),                     \
        SPLIT_QKV(FROM "self_attn.in_proj", TO "attn_"),                      \
        N(FROM "self_attn.out_proj", TO "attn_out"),                          \
        N(FROM "layer_scale_1.scale", TO "ls1.weight"),                       \
        N(FROM "linear1", TO "ffn_up"), N(FROM "linear2", TO "ffn_down"),     \
        N(FROM "layer_scale_2.scale", TO "ls2.weight")

/* ---- filters of Mimi (SEANet, arXiv:2009.02095), in three stages ---- */

#define RESIDUAL(FROM, TO)                                                    \
    CONV(FROM ".block.1", TO "res_conv1"),                                    \
        CONV(FROM ".block.3", TO "res_conv2")
#define DOWN(RES, SCALE, STAGE)                                               \
    RESIDUAL("mimi.encoder.model." RES, "a.seanet.blk." STAGE "."),           \
        CONV("mimi.encoder.model." SCALE,                                     \
             "a.seanet.blk." STAGE ".scale_conv")
#define UP(SCALE, RES, STAGE)                                                 \
    CONVTR("mimi.decoder.model." SCALE,                                       \
           WAV "seanet.blk." STAGE ".scale_conv"),                            \
        RESIDUAL("mimi.decoder.model." RES, WAV "seanet.blk." STAGE ".")

static const struct gg_convert_name encoder[] = {
    CONV("mimi.encoder.model.0", "a.seanet.conv_in"),
    DOWN("1", "3", "0"),
    DOWN("4", "6", "1"),
    DOWN("7", "9", "2"),
    CONV("mimi.encoder.model.11", "a.seanet.conv_out"),
    LAYER(ENCODER, A),
    CONV("mimi.downsample", "a.downsample.conv"),
    N("flow_lm.speaker_proj_weight", "a.speaker_proj.weight"),
    END_NAMES,
};

static const struct gg_convert_name decoder[] = {
    N_AXES("mimi.quantizer.output_proj.weight", WAV "quant_out.weight",
           "o, i, 1 > o, i"),
    CONVTR("mimi.upsample", WAV "upsample"),
    LAYER(DECODER, WAV "tfm.blk.%."),
    CONV("mimi.decoder.model.0", WAV "seanet.conv_in"),
    UP("2", "3", "0"),
    UP("5", "6", "1"),
    UP("8", "9", "2"),
    CONV("mimi.decoder.model.11", WAV "seanet.conv_out"),
    END_NAMES,
};

/* ---- latents ---- */

#define FLOW  "flow_lm.flow_net."
#define TIME  FLOW "time_embed.%."
#define BLOCK FLOW "res_blocks.%."
#define TO    "a.gen.flow."
static const struct gg_convert_name flow[] = {
    N("flow_lm.input_linear", "a.gen.input_linear"),
    N("flow_lm.emb_mean", "a.gen.emb_mean"),
    N("flow_lm.emb_std", "a.gen.emb_std"),
    N("flow_lm.out_eos", "a.gen.out_eos"),
    N(FLOW "input_proj", TO "input_proj"),
    N(FLOW "cond_embed", TO "cond_embd"),
    N(TIME "freqs", TO "time.%.freqs"),
    N(TIME "mlp.0", TO "time.%.up"),
    N(TIME "mlp.2", TO "time.%.down"),
    N(TIME "mlp.3.alpha", TO "time.%.norm"),
    N(BLOCK "in_ln", TO "blk.%.norm"),
    N(BLOCK "mlp.0", TO "blk.%.up"),
    N(BLOCK "mlp.2", TO "blk.%.down"),
    N(BLOCK "adaLN_modulation.1", TO "blk.%.ada"),
    N(FLOW "final_layer.adaLN_modulation.1", TO "final.ada"),
    N(FLOW "final_layer.linear", TO "final.proj"),
    END_NAMES,
};
#undef TO

/* The name of the folder tells programs which variant it is: settings such as
 * the number of steps are in no file. */
static enum gguf_status put_variant(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    struct gguf_str name;
    GG_TRY(gg_folder_read_name(&c->folder, &name, err));
    return gguf_meta_set_str(c->out.meta, "clip.gen.audio.model_variant", name,
                             err);
}

#define GEN(KEY, HF) NUMBER("gen.audio." KEY, "audio." HF)

const struct gg_projector gg_projector_family_kyutai[] = {
    { .arch = { .classes = "PocketTTSModel",
                .names = { encoder, decoder, flow },
                CLIP("mimi. flow_lm.flow_net. flow_lm.speaker_proj_weight "
                     "flow_lm.input_linear. flow_lm.emb_ flow_lm.out_eos.",
                     NULL),
                .always_f16 =
                    ".seanet. ^a.downsample.conv ^a.gen.wav.upsample",
                .keys =
                    ROWS(ALWAYS("audio.num_mel_bins", U32, 1), AUDIO,
                         AUDIO_TYPE("pockettts_spkenc"), AUDIO_EPS(NULL, 1e-5),
                         ALWAYS("has_gen_audio_encoder", BOOL, 1),
                         WORD("gen.audio.projector_type", "pockettts_gen"),
                         NUMBER("gen.audio.projection_dim", TEXT_WIDTH),
                         GEN("embedding_length", "hidden_size"),
                         GEN("feed_forward_length", "intermediate_size"),
                         GEN("block_count", "num_hidden_layers"),
                         GEN("attention.head_count", "num_attention_heads"),
                         ALWAYS("gen.audio.attention.layer_norm_epsilon", F32,
                                1e-5)) },
      .audio = "audio_config",
      .add_keys = put_variant,
      .no_back = "a folder has no config.json: its sizes follow from tensors "
                 "of the language model" },
    { .arch = { .classes = NULL } },
};
