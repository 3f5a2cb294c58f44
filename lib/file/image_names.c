/* SPDX-License-Identifier: MIT */
/* image_names.c - architectures of image and video models */
#include "config.h"
#include "file/image_names.h"

#include "base/compiler.h"
#include "base/str.h"

static const char *const names[] = {
    "aura",         "cosmos",     "ernie_image", "flux",      "hidream",
    "hidream_o1",   "hyvid",      "krea2",       "ideogram4", "ltxv",
    "lumina2",      "minimax_h3", "sd1",         "omnigen2",  "qwen_image",
    "qwen_image_2", "sd3",        "sdxl",        "wan",       "pig",
    "cow",          "mage_flow",  "lens",        "boogu",     "kandinsky5",
    "hunyuan3d",    "mochi",      "pixart",      "cogvideox", "seedvr2"
};

bool gg_image_names_have(const struct gguf_kv *kv)
{
    struct gguf_str arch;
    if (!kv || gguf_kv_get_str(kv, &arch, NULL) != GGUF_OK)
        return false;
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (gg_str_eqz(arch, names[i]))
            return true;
    return false;
}
