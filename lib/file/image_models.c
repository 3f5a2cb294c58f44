/* SPDX-License-Identifier: MIT */
/* image_models.c - architectures of image and video models, one row each
 *
 * Source of the kept tensors: lcpp.patch of ComfyUI-GGUF (city96, commit
 * 795e451, December 2025) and its branch auto_convert (4dfc025). Tensors with
 * names that this patch does not know, such as those of newer models, are parts
 * of the same kind.
 */
#include "config.h"
#include "file/image_models.h"

#include "base/compiler.h"
#include "base/str.h"

#define UNET_KEPT                                                             \
    "class_embedding. time_embedding. add_embedding. time_embed. label_emb. " \
    "conv_in. conv_out. =input_blocks.0.0.weight =out.2.weight"
#define FLUX_KEPT                                                             \
    "txt_in. img_in. time_in. vector_in. guidance_in. final_layer. "
#define QWEN_KEPT "img_in. txt_in. time_text_embed. proj_out. norm_out."
#define OMNI_KEPT                                                             \
    "time_caption_embed. x_embedder. ref_image_patch_embedder. norm_out. "    \
    "context_refiner. noise_refiner."
#define DIT_KEPT "t_embedder. x_embedder. final_layer. "

static const struct gg_image_models_row rows[] = {
    { "flux", FLUX_KEPT "distilled_guidance_layer. single_stream_modulation. "
                        "double_stream_modulation_ nerf_" },
    { "sd3", "final_layer. time_text_embed. context_embedder. t_embedder. "
             "y_embedder. x_embedder. =proj_out.weight =pos_embed" },
    { "aura", "t_embedder. init_x_linear. =modF.1.weight "
              "=cond_seq_linear.weight =final_linear.weight "
              "=positional_encoding =register_tokens" },
    { "hidream", "p_embedder. t_embedder. x_embedder. final_layer. "
                 ".ff_i.gate.weight caption_projection." },
    { "cosmos", "p_embedder. t_embedder. t_embedding_norm. x_embedder. "
                "pos_embedder. final_layer. llm_adapter." },
    { "qwen_image", QWEN_KEPT },
    { "mage_flow", QWEN_KEPT },
    { "lens", QWEN_KEPT " txt_norm." },
    { "qwen_image_2", QWEN_KEPT " =modulation.1.weight" },
    { "ltxv", "adaln_single. caption_projection. patchify_proj. proj_out. "
              "scale_shift_table" },
    { "hyvid", FLUX_KEPT "byt5_in. vision_in. =cond_type_embedding.weight" },
    { "wan", "modulation. patch_embedding. text_embedding. time_projection. "
             "time_embedding. img_emb. head. cond_encoder. frame_packer. "
             "audio_injector. casual_audio_encoder. trainable_cond_mask" },
    { "sdxl", UNET_KEPT },
    { "sd1", UNET_KEPT },
    { "lumina2", DIT_KEPT "cap_embedder. context_refiner. noise_refiner." },
    { "krea2", "txtfusion. first. last. tmlp. txtmlp." },
    { "ideogram4", "embed_image_indicator. input_proj. t_embedding. "
                   "final_layer. llm_cond_" },
    { "ernie_image", DIT_KEPT "text_proj. time_embedding. final_linear. "
                              "final_norm. adaLN_modulation." },
    { "omnigen2", OMNI_KEPT },
    { "boogu", OMNI_KEPT },
    { "hidream_o1", "t_embedder1. x_embedder. final_layer" },
    { "minimax_h3", "video_patch_proj. audio_patch_proj. adaln_" },
    { "kandinsky5", "text_embeddings. time_embeddings. visual_embeddings. "
                    "pooled_text_embeddings. out_layer.modulation. "
                    "out_layer.out_layer." },
    { "hunyuan3d", DIT_KEPT "latent_in. cond_in. time_in. guidance_in." },
    { "mochi", DIT_KEPT "t5_y_embedder. t5_yproj." },
    { "pixart", DIT_KEPT "t_block. y_embedder. csize_embedder. ar_embedder." },
    { "cogvideox", "patch_embed. time_embedding ofs_embedding norm_out. "
                   "proj_out." },
    { "seedvr2", "=vid_in.proj.weight =txt_in.weight emb_in. "
                 "=vid_out.proj.weight" },
    { "pig", NULL },
    { "cow", NULL },
};

const struct gg_image_models_row *gg_image_models_find(struct gguf_str arch)
{
    for (size_t i = 0; i < GG_LEN(rows); i++)
        if (gg_str_eqz(arch, rows[i].name))
            return &rows[i];
    return NULL;
}

bool gg_image_models_have(const struct gguf_kv *kv)
{
    struct gguf_str arch;
    return kv && gguf_kv_get_str(kv, &arch, NULL) == GGUF_OK &&
           gg_image_models_find(arch);
}
