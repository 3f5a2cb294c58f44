/* SPDX-License-Identifier: MIT */
/* image_class.c - classes of tensors of image and video models
 *
 * Source: lcpp.patch of ComfyUI-GGUF (city96, commit 795e451, December 2025)
 * and its branch auto_convert (4dfc025). Names of newer models (krea2,
 * ernie_image, minimax_h3) are added.
 */
#include "config.h"
#include "recipe/image_class.h"

#include "base/compiler.h"
#include "base/str.h"
#include "recipe/type_choice.h"

#include <string.h>

/* Parts of names. The first row with a part in a name is its class. also: a
 * second part that the name must have; NULL: none. arch: the only architecture
 * of the row; NULL: all. */
static const struct {
    const char *part, *also, *arch;
    enum gg_recipe_class cls;
} parts[] = {
    { "attn_v.weight", NULL, NULL, GG_CLASS_IMAGE_V },
    { ".to_v.weight", NULL, NULL, GG_CLASS_IMAGE_V },
    { ".v.weight", NULL, NULL, GG_CLASS_IMAGE_V },
    { ".attn.w1v.weight", NULL, NULL, GG_CLASS_IMAGE_V },
    { ".attn.w2v.weight", NULL, NULL, GG_CLASS_IMAGE_V },
    { "_attn.v_proj.weight", NULL, NULL, GG_CLASS_IMAGE_V },
    { ".add_v_proj.weight", NULL, NULL, GG_CLASS_IMAGE_V },
    { ".attn.wv.weight", NULL, "krea2", GG_CLASS_IMAGE_V },
    { "attn_qkv.weight", NULL, NULL, GG_CLASS_IMAGE_QKV },
    { "attn.qkv.weight", NULL, NULL, GG_CLASS_IMAGE_QKV },
    { "attention.qkv.weight", NULL, NULL, GG_CLASS_IMAGE_QKV },
    { ".attn.qkv_proj.weight", NULL, "minimax_h3", GG_CLASS_IMAGE_QKV },
    { "ffn_down", NULL, NULL, GG_CLASS_IMAGE_DOWN },
    { "experts.", ".w2.weight", NULL, GG_CLASS_IMAGE_DOWN },
    { ".ffn.2.weight", NULL, NULL, GG_CLASS_IMAGE_DOWN },
    { ".ff.net.2.weight", NULL, NULL, GG_CLASS_IMAGE_DOWN },
    { ".mlp.layer2.weight", NULL, NULL, GG_CLASS_IMAGE_DOWN },
    { ".adaln_modulation_mlp.2.weight", NULL, NULL, GG_CLASS_IMAGE_DOWN },
    { ".feed_forward.w2.weight", NULL, NULL, GG_CLASS_IMAGE_DOWN },
    { ".img_mlp.net.2.weight", NULL, NULL, GG_CLASS_IMAGE_DOWN },
    { ".txt_mlp.net.2.weight", NULL, NULL, GG_CLASS_IMAGE_DOWN },
    { ".mlp.linear_fc2.weight", NULL, "ernie_image", GG_CLASS_IMAGE_DOWN },
    { ".mlp.down.weight", NULL, "krea2", GG_CLASS_IMAGE_DOWN },
    { ".mlp.fc2.weight", NULL, "minimax_h3", GG_CLASS_IMAGE_DOWN },
};

/* Architectures with more bits for the first and the last block, and the
 * beginning of the names of blocks. The patch has the number 59 for the last
 * block; here the model's names tell it. */
static const struct {
    const char *arch, *begin;
} edges[] = {
    { "qwen_image", "transformer_blocks." },
    { "mage_flow", "transformer_blocks." },
    { "qwen_image_2", "transformer_blocks." },
};

enum gg_recipe_class gg_image_class_find(struct gguf_str arch,
                                         const char *name)
{
    for (size_t i = 0; i < GG_LEN(parts); i++)
        if (strstr(name, parts[i].part) &&
            (!parts[i].also || strstr(name, parts[i].also)) &&
            (!parts[i].arch || gg_str_eqz(arch, parts[i].arch)))
            return parts[i].cls;
    return GG_CLASS_OTHER;
}

int64_t gg_image_class_block(struct gguf_str arch, const char *name)
{
    for (size_t i = 0; i < GG_LEN(edges); i++) {
        const size_t n = strlen(edges[i].begin);
        int64_t block = -1;
        if (!gg_str_eqz(arch, edges[i].arch) ||
            strncmp(name, edges[i].begin, n) != 0)
            continue;
        for (name += n; *name >= '0' && *name <= '9' && block < 100000; name++)
            block = (block < 0 ? 0 : block) * 10 + (*name - '0');
        return *name == '.' ? block : -1;
    }
    return -1;
}

uint32_t gg_image_class_fitting_type(uint32_t type, int64_t cols)
{
    switch (type) {
    case GGUF_DTYPE_Q2_K:
    case GGUF_DTYPE_Q3_K:
    case GGUF_DTYPE_Q4_K:
    case GGUF_DTYPE_Q5_K:
    case GGUF_DTYPE_Q6_K: return cols % 256 ? GGUF_DTYPE_F16 : type;
    default: return gg_recipe_choose_fitting_type(type, cols);
    }
}
