/* SPDX-License-Identifier: MIT */
/* whisper.c - projectors with Whisper's encoder: Ultravox, Voxtral, MERaLiON,
 * GLM-ASR, Audio Flamingo */
#include "config.h"
#include "convert/projector/projector_row.h"

static const struct gg_convert_name two_layers[] = {
    N("multi_modal_projector.ln_pre", "mm.a.norm_pre"),
    N("multi_modal_projector.linear_1", "mm.a.mlp.1"),
    N("multi_modal_projector.linear_2", "mm.a.mlp.2"),
    N("multi_modal_projector.ln_mid", "mm.a.norm_mid"),
    END_NAMES,
};

static const struct gg_convert_name meralion[] = {
    N("ln_speech", "mm.a.norm_pre"),
    N("speech_audio_adapter.mlp_adapter.0", "mm.a.mlp.0"),
    N("speech_audio_adapter.gate_proj", "mm.a.mlp.1"),
    N("speech_audio_adapter.pool_proj", "mm.a.mlp.2"),
    N("speech_audio_adapter.out_proj", "mm.a.mlp.3"),
    END_NAMES,
};

static const struct gg_convert_name glmasr[] = {
    N("audio_encoder.layer_norm", "mm.a.norm_pre"),
    N("audio_encoder.adapting.0", "mm.a.mlp.1"),
    N("audio_encoder.adapting.2", "mm.a.mlp.2"),
    N_AXES("audio_encoder.audio_bos_eos_token.weight", "v.boi",
           "2[1@0], c > c"),
    N_AXES("audio_encoder.audio_bos_eos_token.weight", "v.eoi",
           "2[1@1], c > c"),
    END_NAMES,
};

#define OVER_WHISPER(LIST)                                                    \
    {                                                                         \
        LIST, gg_projector_names_whisper                                      \
    }
#define WHISPER_KEYS     AUDIO, AUDIO_EPS("audio.layer_norm_eps", 1e-5)
#define STACK(HF, VALUE) ELSE("audio.projector.stack_factor", U32, HF, VALUE)
#define TOWER            "audio_tower. multi_modal_projector."

const struct gg_projector gg_projector_family_whisper[] = {
    { .arch = { .classes = "UltravoxModel",
                .names = OVER_WHISPER(two_layers),
                CLIP(TOWER, "audio_tower."),
                .always_f16 = "a.conv",
                .instead = { WHISPER_MEMBERS },
                .keys = ROWS(WHISPER_KEYS, TYPE("ultravox"),
                             STACK("stack_factor", NAN)) },
      .audio = "audio_config",
      .text = TEXT_CONFIG,
      .needs = "audio.projector.stack_factor" },
    { .arch = { .classes = "VoxtralForConditionalGeneration",
                .names = OVER_WHISPER(two_layers),
                CLIP(TOWER, "audio_tower."),
                .always_f16 = "a.conv",
                .keys = ROWS(WHISPER_KEYS, TYPE("voxtral"), STACK("", 4)) },
      .audio = "audio_config",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "AudioFlamingo3ForConditionalGeneration",
                .names = OVER_WHISPER(two_layers),
                CLIP(TOWER, "audio_tower."),
                .always_f32 = "a.conv",
                .keys = ROWS(WHISPER_KEYS, TYPE("musicflamingo")) },
      .audio = "audio_config",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "MERaLiON2ForConditionalGeneration",
                .names = OVER_WHISPER(meralion),
                CLIP("speech_encoder. ln_speech. speech_audio_adapter.",
                     "speech_encoder."),
                .always_f16 = "a.conv",
                .instead = { WHISPER_MEMBERS },
                .keys = ROWS(WHISPER_KEYS, TYPE("meralion"),
                             STACK("speech_mlp_scale_factor", 15)) },
      .audio = "speech_config",
      .text = TEXT_CONFIG },
    { .arch = { .classes = "GlmasrModel GlmAsrModel",
                .names = OVER_WHISPER(glmasr),
                CLIP("audio_encoder.", "audio_encoder.whisper."),
                .unused = "audio_encoder.proj.",
                .always_f16 = "a.conv",
                .instead = { WHISPER_MEMBERS },
                .keys = ROWS(WHISPER_KEYS, TYPE("glma"),
                             STACK("merge_factor", NAN)) },
      .audio = "whisper_config audio_config",
      .text = "lm_config",
      .needs = "audio.projector.stack_factor" },
    { .arch = { .classes = NULL } },
};
