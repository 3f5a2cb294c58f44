/* SPDX-License-Identifier: MIT */
/* diffusers_rows.c - names of diffusers, and those that loaders know
 *
 * Sources: the scripts convert_*_to_diffusers.py of huggingface/diffusers, read
 * backwards, and the names that ComfyUI takes from diffusers (comfy/utils.py).
 * The two halves of norm_out.linear are scale and shift in diffusers, and shift
 * and scale in the authors' code.
 */
#include "config.h"
#include "convert/image/image.h"

#include "base/compiler.h"

#define SAME(FROM)                                                            \
    {                                                                         \
        .from = FROM, .to = FROM                                              \
    }
#define TO(FROM, NAME)                                                        \
    {                                                                         \
        .from = FROM, .to = NAME                                              \
    }
#define SWAP(FROM, NAME)                                                      \
    {                                                                         \
        .from = FROM, .to = NAME, .swap = true                                \
    }

#define D "transformer_blocks.%."
#define S "single_transformer_blocks.%."

/* Attention and multilayer perceptrons of a block with two streams. */
#define FLUX_DOUBLE                                                           \
    TO(D "attn.to_q.* " D "attn.to_k.* " D "attn.to_v.*",                     \
       "double_blocks.%.img_attn.qkv.*"),                                     \
        TO(D "attn.add_q_proj.* " D "attn.add_k_proj.* " D                    \
             "attn.add_v_proj.*",                                             \
           "double_blocks.%.txt_attn.qkv.*"),                                 \
        TO(D "attn.norm_q.weight",                                            \
           "double_blocks.%.img_attn.norm.query_norm.scale"),                 \
        TO(D "attn.norm_k.weight",                                            \
           "double_blocks.%.img_attn.norm.key_norm.scale"),                   \
        TO(D "attn.norm_added_q.weight",                                      \
           "double_blocks.%.txt_attn.norm.query_norm.scale"),                 \
        TO(D "attn.norm_added_k.weight",                                      \
           "double_blocks.%.txt_attn.norm.key_norm.scale"),                   \
        TO(D "attn.to_out.0.*", "double_blocks.%.img_attn.proj.*"),           \
        TO(D "attn.to_add_out.*", "double_blocks.%.txt_attn.proj.*")
#define FLUX_SHARED                                                           \
    TO("x_embedder.*", "img_in.*"), TO("context_embedder.*", "txt_in.*"),     \
        TO("proj_out.*", "final_layer.linear.*"),                             \
        SWAP("norm_out.linear.*", "final_layer.adaLN_modulation.1.*")

static const struct gg_image_rename flux[] = {
    FLUX_DOUBLE,
    FLUX_SHARED,
    TO(D "norm1.linear.*", "double_blocks.%.img_mod.lin.*"),
    TO(D "norm1_context.linear.*", "double_blocks.%.txt_mod.lin.*"),
    TO(D "ff.net.0.proj.*", "double_blocks.%.img_mlp.0.*"),
    TO(D "ff.net.2.*", "double_blocks.%.img_mlp.2.*"),
    TO(D "ff_context.net.0.proj.*", "double_blocks.%.txt_mlp.0.*"),
    TO(D "ff_context.net.2.*", "double_blocks.%.txt_mlp.2.*"),
    TO(S "attn.to_q.* " S "attn.to_k.* " S "attn.to_v.* " S "proj_mlp.*",
       "single_blocks.%.linear1.*"),
    TO(S "proj_out.*", "single_blocks.%.linear2.*"),
    TO(S "norm.linear.*", "single_blocks.%.modulation.lin.*"),
    TO(S "attn.norm_q.weight", "single_blocks.%.norm.query_norm.scale"),
    TO(S "attn.norm_k.weight", "single_blocks.%.norm.key_norm.scale"),
    TO("time_text_embed.timestep_embedder.linear_1.*", "time_in.in_layer.*"),
    TO("time_text_embed.timestep_embedder.linear_2.*", "time_in.out_layer.*"),
    TO("time_text_embed.guidance_embedder.linear_1.*",
       "guidance_in.in_layer.*"),
    TO("time_text_embed.guidance_embedder.linear_2.*",
       "guidance_in.out_layer.*"),
    TO("time_text_embed.text_embedder.linear_1.*", "vector_in.in_layer.*"),
    TO("time_text_embed.text_embedder.linear_2.*", "vector_in.out_layer.*"),
    /* Chroma */
    TO("distilled_guidance_layer.layers.%.linear_1.*",
       "distilled_guidance_layer.layers.%.in_layer.*"),
    TO("distilled_guidance_layer.layers.%.linear_2.*",
       "distilled_guidance_layer.layers.%.out_layer.*"),
    TO("distilled_guidance_layer.norms.%.weight",
       "distilled_guidance_layer.norms.%.scale"),
    SAME("distilled_guidance_layer.in_proj.*"),
    SAME("distilled_guidance_layer.out_proj.*"),
    { .from = NULL }
};

static const struct gg_image_rename flux2[] = {
    FLUX_DOUBLE,
    FLUX_SHARED,
    TO(D "ff.linear_in.*", "double_blocks.%.img_mlp.0.*"),
    TO(D "ff.linear_out.*", "double_blocks.%.img_mlp.2.*"),
    TO(D "ff_context.linear_in.*", "double_blocks.%.txt_mlp.0.*"),
    TO(D "ff_context.linear_out.*", "double_blocks.%.txt_mlp.2.*"),
    TO(S "attn.to_qkv_mlp_proj.*", "single_blocks.%.linear1.*"),
    TO(S "attn.to_out.*", "single_blocks.%.linear2.*"),
    TO(S "attn.norm_q.weight", "single_blocks.%.norm.query_norm.scale"),
    TO(S "attn.norm_k.weight", "single_blocks.%.norm.key_norm.scale"),
    TO("time_guidance_embed.timestep_embedder.linear_1.*",
       "time_in.in_layer.*"),
    TO("time_guidance_embed.timestep_embedder.linear_2.*",
       "time_in.out_layer.*"),
    TO("time_guidance_embed.guidance_embedder.linear_1.*",
       "guidance_in.in_layer.*"),
    TO("time_guidance_embed.guidance_embedder.linear_2.*",
       "guidance_in.out_layer.*"),
    TO("double_stream_modulation_img.linear.*",
       "double_stream_modulation_img.lin.*"),
    TO("double_stream_modulation_txt.linear.*",
       "double_stream_modulation_txt.lin.*"),
    TO("single_stream_modulation.linear.*", "single_stream_modulation.lin.*"),
    { .from = NULL }
};

#define X "joint_blocks.%.x_block."
#define C "joint_blocks.%.context_block."

static const struct gg_image_rename sd3[] = {
    TO(D "attn.to_q.* " D "attn.to_k.* " D "attn.to_v.*", X "attn.qkv.*"),
    TO(D "attn.add_q_proj.* " D "attn.add_k_proj.* " D "attn.add_v_proj.*",
       C "attn.qkv.*"),
    TO(D "attn2.to_q.* " D "attn2.to_k.* " D "attn2.to_v.*", X "attn2.qkv.*"),
    TO(D "attn.norm_q.*", X "attn.ln_q.*"),
    TO(D "attn.norm_k.*", X "attn.ln_k.*"),
    TO(D "attn2.norm_q.*", X "attn2.ln_q.*"),
    TO(D "attn2.norm_k.*", X "attn2.ln_k.*"),
    TO(D "attn.norm_added_q.*", C "attn.ln_q.*"),
    TO(D "attn.norm_added_k.*", C "attn.ln_k.*"),
    TO(D "attn.to_out.0.*", X "attn.proj.*"),
    TO(D "attn2.to_out.0.*", X "attn2.proj.*"),
    TO(D "attn.to_add_out.*", C "attn.proj.*"),
    TO(D "norm1.linear.*", X "adaLN_modulation.1.*"),
    /* the last block's context has no output: scale and shift only */
    { .from = D "norm1_context.linear.*",
      .to = C "adaLN_modulation.1.*",
      .swap = true,
      .unless = D "attn.to_add_out.weight" },
    TO(D "ff.net.0.proj.*", X "mlp.fc1.*"),
    TO(D "ff.net.2.*", X "mlp.fc2.*"),
    TO(D "ff_context.net.0.proj.*", C "mlp.fc1.*"),
    TO(D "ff_context.net.2.*", C "mlp.fc2.*"),
    TO("pos_embed.proj.*", "x_embedder.proj.*"),
    TO("pos_embed.pos_embed", "pos_embed"),
    SAME("context_embedder.*"),
    TO("time_text_embed.timestep_embedder.linear_1.*", "t_embedder.mlp.0.*"),
    TO("time_text_embed.timestep_embedder.linear_2.*", "t_embedder.mlp.2.*"),
    TO("time_text_embed.text_embedder.linear_1.*", "y_embedder.mlp.0.*"),
    TO("time_text_embed.text_embedder.linear_2.*", "y_embedder.mlp.2.*"),
    TO("proj_out.*", "final_layer.linear.*"),
    SWAP("norm_out.linear.*", "final_layer.adaLN_modulation.1.*"),
    { .from = NULL }
};

#define J "joint_transformer_blocks.%."

static const struct gg_image_rename aura[] = {
    TO(J "attn.to_q.*", "double_layers.%.attn.w2q.*"),
    TO(J "attn.to_k.*", "double_layers.%.attn.w2k.*"),
    TO(J "attn.to_v.*", "double_layers.%.attn.w2v.*"),
    TO(J "attn.to_out.0.*", "double_layers.%.attn.w2o.*"),
    TO(J "attn.add_q_proj.*", "double_layers.%.attn.w1q.*"),
    TO(J "attn.add_k_proj.*", "double_layers.%.attn.w1k.*"),
    TO(J "attn.add_v_proj.*", "double_layers.%.attn.w1v.*"),
    TO(J "attn.to_add_out.*", "double_layers.%.attn.w1o.*"),
    TO(J "ff.linear_1.*", "double_layers.%.mlpX.c_fc1.*"),
    TO(J "ff.linear_2.*", "double_layers.%.mlpX.c_fc2.*"),
    TO(J "ff.out_projection.*", "double_layers.%.mlpX.c_proj.*"),
    TO(J "ff_context.linear_1.*", "double_layers.%.mlpC.c_fc1.*"),
    TO(J "ff_context.linear_2.*", "double_layers.%.mlpC.c_fc2.*"),
    TO(J "ff_context.out_projection.*", "double_layers.%.mlpC.c_proj.*"),
    TO(J "norm1.linear.*", "double_layers.%.modX.1.*"),
    TO(J "norm1_context.linear.*", "double_layers.%.modC.1.*"),
    TO(S "attn.to_q.*", "single_layers.%.attn.w1q.*"),
    TO(S "attn.to_k.*", "single_layers.%.attn.w1k.*"),
    TO(S "attn.to_v.*", "single_layers.%.attn.w1v.*"),
    TO(S "attn.to_out.0.*", "single_layers.%.attn.w1o.*"),
    TO(S "norm1.linear.*", "single_layers.%.modCX.1.*"),
    TO(S "ff.linear_1.*", "single_layers.%.mlp.c_fc1.*"),
    TO(S "ff.linear_2.*", "single_layers.%.mlp.c_fc2.*"),
    TO(S "ff.out_projection.*", "single_layers.%.mlp.c_proj.*"),
    TO("pos_embed.pos_embed", "positional_encoding"),
    SAME("register_tokens"),
    TO("time_step_proj.linear_1.*", "t_embedder.mlp.0.*"),
    TO("time_step_proj.linear_2.*", "t_embedder.mlp.2.*"),
    TO("context_embedder.*", "cond_seq_linear.*"),
    TO("pos_embed.proj.*", "init_x_linear.*"),
    SWAP("norm_out.linear.*", "modF.1.*"),
    TO("proj_out.*", "final_linear.*"),
    { .from = NULL }
};

/* A stack of blocks of Lumina 2 and Z-Image. */
#define LUMINA_BLOCKS(P)                                                      \
    TO(P ".%.attention.to_q.* " P ".%.attention.to_k.* " P                    \
         ".%.attention.to_v.*",                                               \
       P ".%.attention.qkv.*"),                                               \
        TO(P ".%.attention.norm_q.*", P ".%.attention.q_norm.*"),             \
        TO(P ".%.attention.norm_k.*", P ".%.attention.k_norm.*"),             \
        TO(P ".%.attention.to_out.0.*", P ".%.attention.out.*"),              \
        SAME(P ".%.attention_norm1.*"), SAME(P ".%.attention_norm2.*"),       \
        SAME(P ".%.ffn_norm1.*"), SAME(P ".%.ffn_norm2.*"),                   \
        SAME(P ".%.feed_forward.*"), SAME(P ".%.adaLN_modulation.*")

static const struct gg_image_rename z_image[] = {
    LUMINA_BLOCKS("layers"),
    LUMINA_BLOCKS("context_refiner"),
    LUMINA_BLOCKS("noise_refiner"),
    TO("all_x_embedder.2-1.*", "x_embedder.*"),
    TO("all_final_layer.2-1.*", "final_layer.*"),
    SAME("cap_embedder.*"),
    SAME("t_embedder.*"),
    SAME("norm_final.*"),
    SAME("x_pad_token"),
    SAME("cap_pad_token"),
    { .from = NULL }
};

#define B "blocks.%."
/* Attention of a block of Wan. */
#define WAN_ATTN(P, FROM, NAME)                                               \
    TO(P FROM ".to_q.*", P NAME ".q.*"), TO(P FROM ".to_k.*", P NAME ".k.*"), \
        TO(P FROM ".to_v.*", P NAME ".v.*"),                                  \
        TO(P FROM ".to_out.0.*", P NAME ".o.*"),                              \
        TO(P FROM ".norm_q.*", P NAME ".norm_q.*"),                           \
        TO(P FROM ".norm_k.*", P NAME ".norm_k.*"),                           \
        TO(P FROM ".add_k_proj.*", P NAME ".k_img.*"),                        \
        TO(P FROM ".add_v_proj.*", P NAME ".v_img.*"),                        \
        TO(P FROM ".norm_added_k.*", P NAME ".norm_k_img.*")
/* Norm 2 of diffusers is the one before the second attention. */
#define WAN_BLOCKS(P)                                                         \
    WAN_ATTN(P, "attn1", "self_attn"), WAN_ATTN(P, "attn2", "cross_attn"),    \
        TO(P "norm2.*", P "norm3.*"), TO(P "norm3.*", P "norm2.*"),           \
        TO(P "ffn.net.0.proj.*", P "ffn.0.*"),                                \
        TO(P "ffn.net.2.*", P "ffn.2.*"),                                     \
        TO(P "scale_shift_table", P "modulation")
#define COND "condition_embedder."

static const struct gg_image_rename wan[] = {
    WAN_BLOCKS(B),
    WAN_BLOCKS("vace_blocks.%."),
    TO("vace_blocks.%.proj_in.*", "vace_blocks.%.before_proj.*"),
    TO("vace_blocks.%.proj_out.*", "vace_blocks.%.after_proj.*"),
    SAME("vace_patch_embedding.*"),
    SAME("patch_embedding.*"),
    TO(COND "time_embedder.linear_1.*", "time_embedding.0.*"),
    TO(COND "time_embedder.linear_2.*", "time_embedding.2.*"),
    TO(COND "text_embedder.linear_1.*", "text_embedding.0.*"),
    TO(COND "text_embedder.linear_2.*", "text_embedding.2.*"),
    TO(COND "time_proj.*", "time_projection.1.*"),
    TO(COND "image_embedder.norm1.*", "img_emb.proj.0.*"),
    TO(COND "image_embedder.ff.net.0.proj.*", "img_emb.proj.1.*"),
    TO(COND "image_embedder.ff.net.2.*", "img_emb.proj.3.*"),
    TO(COND "image_embedder.norm2.*", "img_emb.proj.4.*"),
    TO(COND "image_embedder.pos_embed", "img_emb.emb_pos"),
    TO("scale_shift_table", "head.modulation"),
    TO("proj_out.*", "head.head.*"),
    { .from = NULL }
};

static const struct gg_image_rename ltxv[] = {
    TO(D "attn1.norm_q.*", D "attn1.q_norm.*"),
    TO(D "attn1.norm_k.*", D "attn1.k_norm.*"),
    TO(D "attn2.norm_q.*", D "attn2.q_norm.*"),
    TO(D "attn2.norm_k.*", D "attn2.k_norm.*"),
    SAME(D "attn1.*"),
    SAME(D "attn2.*"),
    SAME(D "ff.*"),
    SAME(D "scale_shift_table"),
    TO("proj_in.*", "patchify_proj.*"),
    TO("time_embed.*", "adaln_single.*"),
    SAME("caption_projection.*"),
    SAME("scale_shift_table"),
    SAME("proj_out.*"),
    { .from = NULL }
};

static const struct gg_image_layout rows[] = {
    { "flux",
      "x_embedder.weight context_embedder.weight "
      "transformer_blocks.0.attn.add_q_proj.weight "
      "single_transformer_blocks.0.attn.to_q.weight "
      "single_transformer_blocks.0.proj_mlp.weight",
      flux },
    { "flux",
      "x_embedder.weight context_embedder.weight "
      "transformer_blocks.0.attn.add_q_proj.weight "
      "single_transformer_blocks.0.attn.to_qkv_mlp_proj.weight",
      flux2 },
    { "sd3",
      "pos_embed.proj.weight context_embedder.weight "
      "transformer_blocks.0.attn.add_q_proj.weight "
      "time_text_embed.text_embedder.linear_1.weight",
      sd3 },
    { "aura",
      "pos_embed.proj.weight register_tokens "
      "joint_transformer_blocks.3.ff_context.out_projection.weight "
      "joint_transformer_blocks.3.norm1.linear.weight",
      aura },
    { "lumina2",
      "all_x_embedder.2-1.weight layers.0.attention.to_q.weight "
      "cap_embedder.1.weight context_refiner.0.attention.to_q.weight",
      z_image },
    { "wan",
      "blocks.0.attn1.norm_q.weight scale_shift_table "
      "condition_embedder.text_embedder.linear_2.weight",
      wan },
    { "ltxv",
      "time_embed.emb.timestep_embedder.linear_2.weight proj_in.weight "
      "transformer_blocks.0.attn1.norm_q.weight "
      "caption_projection.linear_2.weight",
      ltxv },
};

const struct gg_image_layout *gg_image_layout_row(size_t n)
{
    return n < GG_LEN(rows) ? &rows[n] : NULL;
}
