/* SPDX-License-Identifier: MIT */
/* image_arch.c - architectures of image and video models
 *
 * Sources: the converter and the loader of ComfyUI-GGUF (city96, commit
 * 795e451, December 2025) and its branch auto_convert (4dfc025), and the names
 * that ComfyUI's model_detection.py reads (0b61ce5, 2026). Names of
 * architectures that the loader lacks are those of its open requests, or the
 * model's own.
 */
#include "config.h"
#include "convert/image/image.h"

#include "base/compiler.h"

#define BOOGU                                                                 \
    "double_stream_layers.0.img_instruct_attn.processor.img_to_q.weight"

/* Sizes of Mage-Flow; those of Qwen-Image are 3584 and 64. */
#define MAGE_FLOW "txt_norm.weight=2560 proj_out.weight=128"

#define SDXL_LABEL "label_emb.0.0.weight add_embedding.linear_1.weight"

static const struct gg_image_arch rows[] = {
    { .name = "flux",
      .sets = "double_blocks.0.img_attn.proj.weight",
      .without = "latent_in.weight",
      .foreign = "transformer_blocks.0.attn.norm_added_k.weight "
                 "single_transformer_blocks.0.attn.norm_k.weight" },
    { .name = "sd3",
      .sets = "joint_blocks.0.x_block.attn.qkv.weight",
      .foreign = "transformer_blocks.0.attn.add_q_proj.weight "
                 "transformer_blocks.0.ff_context.net.0.proj.weight" },
    { .name = "aura",
      .sets = "double_layers.3.modX.1.weight",
      .foreign =
          "joint_transformer_blocks.3.ff_context.out_projection.weight" },
    { .name = "hidream",
      .sets = "caption_projection.0.linear.weight "
              "double_stream_blocks.0.block.ff_i.shared_experts.w3.weight",
      .f32 = ".ff_i.gate.weight img_emb.emb_pos" },
    { .name = "cosmos",
      .sets = "blocks.0.mlp.layer1.weight "
              "blocks.0.adaln_modulation_cross_attn.1.weight|"
              "blocks.block0.blocks.0.block.attn.to_q.0.weight",
      .f32 = "pos_embedder",
      .dropped = "_extra_state accum_" },
    { .name = "qwen_image",
      .sets = "time_text_embed.timestep_embedder.linear_2.weight "
              "transformer_blocks.0.attn.norm_added_q.weight "
              "transformer_blocks.0.img_mlp.net.0.proj.weight",
      .not_rows = MAGE_FLOW },
    { .name = "mage_flow",
      .sets = "txt_norm.weight proj_out.weight "
              "transformer_blocks.0.attn.norm_added_q.weight "
              "transformer_blocks.0.img_mlp.net.0.proj.weight",
      .rows = MAGE_FLOW },
    { .name = "lens",
      .sets = "transformer_blocks.0.attn.norm_added_q.weight "
              "transformer_blocks.0.img_mlp.w1.weight" },
    { .name = "qwen_image_2",
      .sets = "txt_in.text_norm.weight modulation.1.weight "
              "transformer_blocks.0.img_mlp.proj.weight|"
              "txt_in.text_norm.weight modulation.1.weight "
              "transformer_blocks.0.img_mlp.gate_up.weight" },
    { .name = "ltxv",
      .sets = "adaln_single.emb.timestep_embedder.linear_2.weight "
              "transformer_blocks.27.scale_shift_table "
              "caption_projection.linear_2.weight|"
              "adaln_single.emb.timestep_embedder.linear_2.weight "
              "audio_adaln_single.linear.weight",
      .f32 = "scale_shift_table learnable_registers" },
    { .name = "hyvid",
      .sets =
          "double_blocks.0.img_attn_proj.weight "
          "txt_in.individual_token_refiner.blocks.1.self_attn_qkv.weight" },
    { .name = "wan",
      .sets = "blocks.0.self_attn.norm_q.weight text_embedding.2.weight "
              "head.modulation",
      .f32 = ".modulation .encoder.padding_tokens trainable_cond_mask "
             "casual_audio_encoder.weights casual_audio_encoder.encoder.conv "
             "img_emb.emb_pos" },
    { .name = "sdxl",
      .sets = "down_blocks.0.downsamplers.0.conv.weight "
              "add_embedding.linear_1.weight|"
              "input_blocks.3.0.op.weight input_blocks.6.0.op.weight "
              "output_blocks.2.2.conv.weight output_blocks.5.2.conv.weight|"
              "label_emb.0.0.weight",
      .folds = true },
    { .name = "sd1",
      .sets = "down_blocks.0.downsamplers.0.conv.weight|"
              "input_blocks.3.0.op.weight input_blocks.6.0.op.weight "
              "input_blocks.9.0.op.weight output_blocks.2.1.conv.weight "
              "output_blocks.5.2.conv.weight output_blocks.8.2.conv.weight",
      .without = SDXL_LABEL " output_blocks.2.2.conv.weight",
      .folds = true },
    { .name = "lumina2",
      .sets = "cap_embedder.1.weight "
              "context_refiner.0.attention.qkv.weight",
      .foreign = "all_x_embedder.2-1.weight",
      .f32 = "x_pad_token cap_pad_token" },
    { .name = "krea2",
      .sets = "txtfusion.projector.weight blocks.0.attn.wq.weight "
              "last.linear.weight" },
    { .name = "ideogram4",
      .sets = "embed_image_indicator.weight input_proj.weight "
              "layers.0.attention.qkv.weight" },
    { .name = "ernie_image",
      .sets = "layers.0.adaLN_sa_ln.weight text_proj.weight "
              "layers.0.mlp.linear_fc2.weight" },
    { .name = "omnigen2",
      .sets = "time_caption_embed.timestep_embedder.linear_1.bias",
      .without = BOOGU },
    { .name = "boogu", .sets = BOOGU " x_embedder.weight" },
    { .name = "hidream_o1",
      .sets = "t_embedder1.mlp.0.weight x_embedder.proj1.weight" },
    { .name = "minimax_h3",
      .sets = "video_patch_proj.weight audio_patch_proj.weight",
      .f32 = "adaln_t_table" },
    { .name = "kandinsky5",
      .sets = "visual_transformer_blocks.0.cross_attention.key_norm.weight "
              "visual_embeddings.in_layer.weight",
      .without = "audio_embeddings.in_layer.weight" },
    { .name = "hunyuan3d",
      .sets = "latent_in.weight cond_in.weight "
              "double_blocks.0.img_attn.proj.weight|"
              "t_embedder.mlp.2.weight blocks.0.attn1.k_norm.weight "
              "x_embedder.weight" },
    { .name = "mochi",
      .sets = "t5_yproj.weight x_embedder.proj.weight",
      .f32 = "pos_frequencies" },
    { .name = "pixart",
      .sets = "t_block.1.weight blocks.0.scale_shift_table "
              "x_embedder.proj.weight y_embedder.y_proj.fc1.weight",
      .without = "attention_y_norm.weight genre_embedder.weight",
      .f32 = "scale_shift_table" },
    { .name = "cogvideox",
      .sets = "blocks.0.norm1.linear.weight patch_embed.proj.weight "
              "patch_embed.text_proj.weight" },
    { .name = "seedvr2",
      .sets = "blocks.31.mlp.all.proj_in_gate.weight|"
              "blocks.35.mlp.all.proj_in_gate.weight|"
              "blocks.35.mlp.vid.proj_out.weight blocks.0.mlp.txt.proj_out"
              ".weight" },
};

const struct gg_image_arch *gg_image_row(size_t n)
{
    return n < GG_LEN(rows) ? &rows[n] : NULL;
}
