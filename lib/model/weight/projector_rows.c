/* SPDX-License-Identifier: MIT */
/* projector_rows.c - tables of the tensors and keys of projector files */
#include "config.h"
#include "model/weight/projector_rows.h"
#include "base/compiler.h"

#define V GG_TOWER_VISION
#define A GG_TOWER_AUDIO

/* Older files of some types have ffn_up and ffn_down the other way round. */
#define SWAPPED "?v.blk.%.ffn_up.weight:x,E ?v.blk.%.ffn_down.weight:E,x "
/* Lists that several types have. */
#define WHISPER "a.conv1d.1.*:*,M,E a.conv1d.2.*:*,E,E "
#define SUBSAMPLING                                                           \
    "a.conv1d.0.* a.conv1d.2.* a.conv1d.3.* a.conv1d.5.* a.conv1d.6.* "       \
    "a.pre_encode.out.*:*,E "
#define SAM                                                                   \
    "v.sam.pos_embd.weight v.sam.patch_embd.* v.sam.neck.0.weight "           \
    "v.sam.neck.1.* v.sam.neck.2.weight v.sam.neck.3.* v.sam.net_2.weight "   \
    "v.sam.net_3.weight ?v.sam.blk.%.pre_ln.* ?v.sam.blk.%.post_ln.* "        \
    "?v.sam.blk.%.attn.qkv.* ?v.sam.blk.%.attn.out.* "                        \
    "?v.sam.blk.%.attn.pos_h.weight ?v.sam.blk.%.attn.pos_w.weight "          \
    "?v.sam.blk.%.mlp.lin1.* ?v.sam.blk.%.mlp.lin2.* "
#define SAM_KEYS                                                              \
    "vision.sam.block_count vision.sam.embedding_length "                     \
    "vision.sam.head_count vision.window_size"
/* A cross-attention block between tower and language model. */
#define CROSS(PREFIX)                                                         \
    "?" PREFIX "cross_attn_q.* ?" PREFIX "cross_attn_k.* ?" PREFIX            \
    "cross_attn_v.* ?" PREFIX "cross_attn_out.* ?" PREFIX                     \
    "cross_attn_norm.* ?" PREFIX "self_attn_q.* ?" PREFIX                     \
    "self_attn_k.* ?" PREFIX "self_attn_v.* ?" PREFIX                         \
    "self_attn_out.* ?" PREFIX "self_attn_norm.* ?" PREFIX                    \
    "ffn_up.* ?" PREFIX "ffn_down.* ?" PREFIX "ffn_norm.* "
/* A part of a block of MobileNetV5, whose blocks differ in width. */
#define MOBILE(NAME) "?v.blk.%.%." NAME ".* "
#define PIXELS       "vision.image_min_pixels vision.image_max_pixels"
#define STACK        "audio.projector.stack_factor"
/* Two matrices, with or without biases. */
#define PATCHES                                                               \
    "mm.1.weight:E,a ?mm.1.bias mm.2.weight:a,O ?mm.2.bias "                  \
    "?mm.input_norm.weight:E ?mm.patch_merger.weight:*,E "
#define MERGER "mm.input_norm.*:E mm.1.*:a,b mm.2.*:b,O"
#define HUNYUAN                                                                \
    "mm.0.*:*,*,E,a mm.2.*:*,*,a,b mm.model.fc.*:b,O mm.pre_norm.weight:E "    \
    "mm.post_norm.weight:O mm.image_begin:O mm.image_end:O v.image_newline:b " \
    "?v.view_seperator"

/* Filters of Mimi in three stages. */
#define STAGE(TO) TO "res_conv1.* " TO "res_conv2.* " TO "scale_conv.* "
#define SEANET(TO)                                                            \
    TO "conv_in.* " TO "conv_out.* " STAGE(TO "blk.0.") STAGE(TO "blk.1.")    \
        STAGE(TO "blk.2.")

static const struct gg_model_projector rows[] = {
    { "mlp", V, true,
      SWAPPED "mm.0.*:E,* ?mm.1.* ?mm.2.* ?mm.3.* ?mm.4.* ?v.image_newline "
              "?model.image_newline",
      NULL },
    { "ldp", V, true,
      SWAPPED "mm.model.mlp.1.* mm.model.mlp.3.* ?mm.model.mb_block.+", NULL },
    { "ldpv2", V, true,
      SWAPPED "mm.model.mlp.0.* mm.model.mlp.2.* mm.model.peg.0.*", NULL },
    { "resampler", V, true,
      SWAPPED "resampler.query resampler.proj.weight resampler.kv.weight "
              "?resampler.pos_embed ?resampler.pos_embed_k resampler.attn.q.* "
              "resampler.attn.k.* resampler.attn.v.* resampler.attn.out.* "
              "resampler.ln_q.* resampler.ln_kv.* resampler.ln_post.*",
      NULL },
    { "adapter", V, true,
      SWAPPED
      "adapter.conv.* adapter.linear.linear.weight adapter.linear.norm1.* "
      "adapter.linear.dense_h_to_4h.weight adapter.linear.gate.weight "
      "adapter.linear.dense_4h_to_h.weight adapter.boi adapter.eoi",
      NULL },
    { "qwen2vl_merger", V, true, SWAPPED "mm.0.*:a,b mm.2.*:b,O", NULL },
    { "qwen2.5vl_merger", V, true, SWAPPED "mm.0.*:a,b mm.2.*:b,O",
      "vision.n_wa_pattern" },
    { "qwen2.5o", V, true, "mm.0.*:a,b mm.2.*:b,O", "vision.n_wa_pattern" },
    { "qwen2.5o", A, true, WHISPER "mm.a.fc.*:E,O", NULL },
    { "qwen3vl_merger", V, true,
      "mm.0.*:a,b mm.2.*:b,O ?v.deepstack.%.norm.* ?v.deepstack.%.fc1.* "
      "?v.deepstack.%.fc2.*:*,O",
      NULL },
    { "step3vl", V, true,
      "mm.0.weight:*,*,E,a ?mm.0.bias mm.1.weight:*,*,a,b ?mm.1.bias "
      "mm.model.fc.weight:b,O",
      NULL },
    { "youtuvl", V, true, "mm.input_norm.weight:E mm.0.*:a,b mm.2.*:b,O",
      "vision.window_size vision.wa_layer_indexes" },
    { "yasa2", V, false,
      "mm.0.weight ?mm.0.bias mm.2.weight ?mm.2.bias ?v.patch_ln.* "
      "?v.backbone_ln.* ?v.vision_pos_embed ?v.stage.+",
      NULL },
    { "glm4v", V, true,
      "mm.patch_merger.*:*,*,E,O mm.model.fc.weight:O,O mm.up.weight:O,a "
      "?mm.up.bias mm.gate.weight:O,a ?mm.gate.bias mm.down.weight:a,O "
      "?mm.down.bias mm.post_norm.weight:O ?mm.post_norm.bias",
      NULL },
    { "gemma3", V, true,
      SWAPPED "mm.input_projection.weight:O,E mm.soft_emb_norm.weight:E",
      NULL },
    { "gemma4v", V, true,
      "mm.input_projection.weight:E,O ?mm.soft_emb_norm.weight ?v.std_bias "
      "?v.std_scale",
      NULL },
    { "gemma4uv", V, false,
      "mm.input_projection.weight:*,O v.patch_norm.1.* v.patch_norm.2.* "
      "v.patch_norm.3.*",
      NULL },
    { "gemma3nv", V, false,
      "mm.input_projection.weight:*,O mm.soft_emb_norm.weight "
      "?mm.hard_emb_norm.weight ?mm.embedding.weight ?v.conv_stem.conv.* "
      "?v.conv_stem.bn.* ?v.msfa.ffn.pw_exp.conv.* ?v.msfa.ffn.pw_exp.bn.* "
      "?v.msfa.ffn.pw_proj.conv.* ?v.msfa.ffn.pw_proj.bn.* ?v.msfa.norm.* " MOBILE(
          "conv_exp") MOBILE("bn1") MOBILE("conv_pwl") MOBILE("bn2")
          MOBILE("dw_start.conv") MOBILE("dw_start.bn") MOBILE("dw_mid.conv")
              MOBILE("dw_mid.bn") MOBILE("pw_exp.conv") MOBILE(
                  "pw_exp.bn") MOBILE("pw_proj.conv") MOBILE("pw_proj.bn")
                  MOBILE("attn.query.proj") MOBILE("attn.key.proj") MOBILE(
                      "attn.key.down_conv") MOBILE("attn.key.norm")
                      MOBILE("attn.value.proj") MOBILE("attn.value.down_conv")
                          MOBILE("attn.value.norm") MOBILE("attn.output.proj")
                              MOBILE("norm") "?v.blk.%.%.layer_scale.gamma",
      NULL },
    { "idefics3", V, true, SWAPPED "mm.model.fc.weight:*,O", NULL },
    { "lfm2", V, true, "?mm.input_norm.* mm.1.*:a,b mm.2.*:b,O", NULL },
    { "kimivl", V, true, MERGER, NULL },
    { "kimik25", V, true, MERGER, NULL },
    { "paddleocr", V, true, MERGER, PIXELS },
    { "pixtral", V, true, PATCHES "v.token_embd.img_break:O", NULL },
    { "lightonocr", V, true, PATCHES, NULL },
    { "dots_ocr", V, true,
      "mm.0.*:a,b mm.2.*:b,O mm.input_norm.*:E mm.post_norm.weight:E",
      PIXELS " vision.projector.scale_factor" },
    { "internvl", V, true,
      "mm.model.mlp.0.*:a mm.model.mlp.1.*:a,b mm.model.mlp.3.*:b,O", NULL },
    { "nemotron_v2_vl", V, true,
      "mm.model.mlp.0.weight:a mm.model.mlp.1.weight:a,b "
      "mm.model.mlp.3.weight:b,O",
      NULL },
    { "llama4", V, true,
      "mm.model.mlp.1.weight:*,a mm.model.mlp.2.weight:a,b "
      "mm.model.fc.weight:b,O",
      NULL },
    { "cogvlm", V, true,
      "mm.model.fc.weight:E,O mm.post_fc_norm.*:O mm.up.weight:O,a "
      "mm.gate.weight:O,a mm.down.weight:a,O v.boi:O v.eoi:O",
      NULL },
    { "hunyuanocr", V, true, HUNYUAN, PIXELS },
    { "hunyuanvl", V, true, HUNYUAN, NULL },
    { "janus_pro", V, true, "mm.0.*:E,a mm.1.*:a,O", NULL },
    { "phi4", V, true, "mm.0.*:E,a mm.2.*:a,O", PIXELS },
    { "deepseekocr", V, true,
      SAM "mm.model.fc.*:*,O v.image_newline:O v.view_seperator:O", SAM_KEYS },
    { "deepseekocr2", V, true,
      SAM "mm.model.fc.*:*,O v.view_seperator:O "
          "v.resample_query_768.weight:E,* v.resample_query_1024.weight:E,*",
      SAM_KEYS },
    { "minicpmv4_6", V, true,
      "mm.input_norm.*:a mm.up.*:a,b mm.down.*:b,O v.vit_merger.ln1.*:E "
      "v.vit_merger.attn_q.*:E,* v.vit_merger.attn_k.*:E,* "
      "v.vit_merger.attn_v.*:E,* v.vit_merger.attn_out.*:*,E "
      "v.vit_merger.ds_ln.*:c v.vit_merger.ds_ffn_up.*:c,d "
      "v.vit_merger.ds_ffn_down.*:d,E",
      NULL },
    { "minimax_m3", V, true,
      "mm.1.*:E,a mm.2.*:a,b mm.merger.fc1.*:*,c mm.merger.fc2.*:c,O", NULL },
    { "granite4_vision", V, true,
      "v.image_newline:O ?v.proj_blk.%.query ?v.proj_blk.%.img_pos "
      "?v.proj_blk.%.norm.* ?v.proj_blk.%.post_norm.* "
      "?v.proj_blk.%.linear.*:*,O " CROSS("v.proj_blk.%."),
      NULL },
    { "mimovl", V, true, "mm.0.*:a,b mm.2.*:b,O", NULL },
    { "ultravox", A, true,
      WHISPER "mm.a.mlp.1.weight mm.a.mlp.2.weight:*,O mm.a.norm_pre.weight "
              "mm.a.norm_mid.weight",
      STACK },
    { "meralion", A, true,
      WHISPER "mm.a.mlp.0.*:*,a mm.a.mlp.1.*:a,b mm.a.mlp.2.*:a,b "
              "mm.a.mlp.3.*:b,O mm.a.norm_pre.*:E",
      STACK },
    { "qwen2a", A, true, WHISPER "mm.a.fc.*:E,O", NULL },
    { "qwen3a", A, true,
      "a.conv2d.1.* a.conv2d.2.* a.conv2d.3.* a.conv_out.weight:*,E "
      "?a.conv_out.bias mm.a.mlp.1.*:E,a mm.a.mlp.2.*:a,O",
      NULL },
    { "voxtral", A, true,
      WHISPER "mm.a.mlp.1.weight:*,a mm.a.mlp.2.weight:a,O", STACK },
    { "musicflamingo", A, true, WHISPER "mm.a.mlp.1.*:*,a mm.a.mlp.2.*:a,O",
      NULL },
    { "glma", A, true,
      WHISPER "mm.a.mlp.1.*:*,a mm.a.mlp.2.*:a,O mm.a.norm_pre.*:E v.boi:O "
              "v.eoi:O",
      STACK },
    { "lfm2a", A, true,
      SUBSAMPLING "mm.a.mlp.0.*:E mm.a.mlp.1.*:E,a mm.a.mlp.3.*:a,O "
                  "?a.embd_to_logits.weight ?a.position_embd_norm.weight",
      NULL },
    { "parakeet", A, true,
      SUBSAMPLING "a.mel_filters a.window ?mm.a.norm_pre.weight "
                  "?mm.a.mlp.1.weight ?mm.a.mlp.2.weight",
      "audio.subsampling_factor audio.conv_kernel_size" },
    { "gemma4a", A, true,
      "a.conv1d.0.weight a.conv1d.1.weight ?a.conv1d.%.bias "
      "?a.conv1d.%.norm.weight a.input_projection.weight:*,E "
      "?a.input_projection.bias ?a.pre_encode.out.*:E,* "
      "?mm.a.input_projection.weight:*,O ?mm.a.soft_emb_norm.weight",
      NULL },
    { "gemma3na", A, true,
      "a.conv1d.0.weight a.conv1d.1.weight ?a.conv1d.%.bias "
      "?a.conv1d.%.norm.weight a.pre_encode.out.weight:*,E "
      "mm.a.input_projection.weight:*,O ?mm.a.soft_emb_norm.weight "
      "?mm.a.hard_emb_norm.weight ?mm.a.embedding.weight",
      NULL },
    { "gemma4ua", A, false, "mm.a.input_projection.weight:*,O", NULL },
    { "granite_speech", A, true,
      "a.input_projection.*:*,E a.enc_ctc_out.*:E,a a.enc_ctc_out_mid.*:a,E "
      "a.proj_linear.*:*,O a.proj_norm.* a.proj_query " CROSS("a.proj_blk.%."),
      "audio.chunk_size audio.conv_kernel_size audio.max_pos_emb "
      "audio.projector.window_size audio.projector.downsample_rate "
      "audio.projector.head_count" },
    { "mimo_audio", A, true,
      WHISPER
      "a.downsample.conv.weight:*,E,E a.downsample.norm.*:E "
      "a.rvq.codebook.weight mm.a.code_embd.weight mm.a.local_norm.weight:c "
      "mm.a.mlp.1.weight:*,a mm.a.mlp.2.weight:a,O "
      "?mm.a.local_blk.%.ln1.weight:c ?mm.a.local_blk.%.ln2.weight:c "
      "?mm.a.local_blk.%.attn_q.*:c,* ?mm.a.local_blk.%.attn_k.*:c,* "
      "?mm.a.local_blk.%.attn_v.*:c,* ?mm.a.local_blk.%.attn_out.weight:*,c "
      "?mm.a.local_blk.%.ffn_gate.weight:c,d "
      "?mm.a.local_blk.%.ffn_up.weight:c,d "
      "?mm.a.local_blk.%.ffn_down.weight:d,c",
      "audio.rvq.num_quantizers audio.rvq.codebook_size audio.window_size "
      "audio.local_block_count audio.local_group_size" },
    { "qwen3tts_spkenc", A, false,
      "a.conv1d.0.*:*,*,w a.asp_tdnn.*:*,*,t a.asp_attn.*:*,t,m "
      "a.conv_out.*:*,*,m mm.a.fc.*:*,*,O ?a.blk.%.conv_pw1.*:*,w,w "
      "?a.blk.%.conv_pw2.*:*,w,w ?a.blk.%.res2.%.*:*,r,r "
      "?a.blk.%.se_conv1.*:*,w,s ?a.blk.%.se_conv2.*:*,s,w",
      NULL },
    { "qwen3tts_gen", GG_TOWER_SPEECH, false,
      "a.gen.code.embd.weight a.gen.code.head.weight "
      "a.gen.code.output_norm.weight a.gen.wav.pre_conv.* "
      "a.gen.wav.quant.first.codebook.weight "
      "a.gen.wav.quant.rest.codebook.weight ?a.gen.+",
      NULL },
    { "pockettts_spkenc", A, true,
      SEANET("a.seanet.") "a.downsample.conv.weight a.speaker_proj.weight:*,O "
                          "?a.blk.%.ls1.weight:E ?a.blk.%.ls2.weight:E",
      NULL },
    { "pockettts_gen", GG_TOWER_SPEECH, false,
      "a.gen.flow.input_proj.*:l,f a.gen.flow.cond_embd.*:O,f "
      "?a.gen.flow.time.%.freqs ?a.gen.flow.time.%.up.*:*,f "
      "?a.gen.flow.time.%.down.*:f,f ?a.gen.flow.time.%.norm:f "
      "?a.gen.flow.blk.%.norm.*:f ?a.gen.flow.blk.%.up.*:f,* "
      "?a.gen.flow.blk.%.down.*:*,f ?a.gen.flow.blk.%.ada.*:f,* "
      "a.gen.flow.final.ada.*:f,* a.gen.flow.final.proj.*:f,l "
      "a.gen.out_eos.*:O a.gen.input_linear.weight:l,O a.gen.emb_mean:l "
      "a.gen.emb_std:l a.gen.wav.quant_out.weight:l,* a.gen.wav.upsample.weight "
      "?a.gen.wav.tfm.blk.%.ln1.*:E ?a.gen.wav.tfm.blk.%.ln2.*:E "
      "?a.gen.wav.tfm.blk.%.attn_q.weight:E,E "
      "?a.gen.wav.tfm.blk.%.attn_k.weight:E,E "
      "?a.gen.wav.tfm.blk.%.attn_v.weight:E,E "
      "?a.gen.wav.tfm.blk.%.attn_out.weight:E,E "
      "?a.gen.wav.tfm.blk.%.ls1.weight:E ?a.gen.wav.tfm.blk.%.ls2.weight:E "
      "?a.gen.wav.tfm.blk.%.ffn_up.weight:E,t "
      "?a.gen.wav.tfm.blk.%.ffn_down.weight:t,E " SEANET("a.gen.wav.seanet."),
      NULL },
};

const struct gg_model_projector *gg_model_projector_at(size_t n)
{
    return n < GG_LEN(rows) ? &rows[n] : NULL;
}

const char *const gg_model_tower_tensors[GG_N_TOWERS] = {
    "?v.class_embd:E,* ?v.class_embd:E ?v.pre_ln.* ?v.post_ln.* "
    "?v.patch_embd.weight ?v.patch_embd.weight.1 ?v.patch_embd.bias:E "
    "?v.norm_embd.*:E ?v.position_embd.weight:E,*,* ?v.image_newline "
    "?v.view_seperator ?t.+",
    "?a.position_embd.weight ?a.pre_ln.* ?a.post_ln.*",
    NULL,
};

#define LAYER                                                                 \
    "?ln1.*:E ?ln2.*:E ?attn_q.*:E,q ?attn_k.*:E,* ?attn_v.*:E,* "            \
    "attn_out.weight:q,E ?attn_out.bias ?attn_post_norm.*:E "                 \
    "?ffn_post_norm.*:E ffn_up.weight:E,x ?ffn_up.bias "                      \
    "ffn_down.weight:x,E ?ffn_down.bias "

const char *const gg_model_tower_layer_tensors[GG_N_TOWERS] = {
    LAYER "?attn_qkv.*:E,* ?attn_q_norm.* ?attn_k_norm.* ?attn_sinks "
          "?ls1.weight:E ?ls2.weight:E ?out_scale.weight ?ffn_gate.*:E,x",
    LAYER "?attn_pre_norm.*:E ?attn_k_rel.* ?attn_rel_pos_emb ?per_dim_scale "
          "?per_dim_scale.weight ?per_dim_k_scale.weight "
          "?layer_pre_norm.weight:E ?linear_pos.* ?pos_bias_u ?pos_bias_v "
          "?ffn_norm.*:E ?ffn_norm_1.*:E ?ffn_up_1.*:E,y ?ffn_down_1.*:y,E "
          "?ffn_post_norm_1.*:E ?norm_conv.*:E ?conv_pw1.* ?conv_dw.* "
          "?conv_norm.* ?conv_norm_mean ?conv_norm_var ?conv_norm_var.* "
          "?conv_pw2.*",
    NULL,
};
