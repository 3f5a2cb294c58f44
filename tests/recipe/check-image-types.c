/* SPDX-License-Identifier: MIT */
/* check-image-types.c - types that presets choose for image and video models
 *
 * The expected types were read off the rules of lcpp.patch (ComfyUI-GGUF,
 * commit 795e451 and branch auto_convert, 4dfc025) for each tensor and preset.
 * The patch's last block of Qwen-Image is number 59; here it is the model's
 * last, so that the model of this test has 60 blocks.
 */
#include "config.h"
#include "gguf/recipe.h"
#include "recipe/image_class.h"
#include "recipe/type_choice.h"
#include "tests/tap.h"

#include <stdlib.h>

enum { N_PRESETS = 12 };
static const char *const presets[N_PRESETS] = {
    "Q2_K",   "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
    "Q5_K_S", "Q5_K_M", "Q6_K",   "Q4_0",   "Q5_0",   "Q8_0",
};

#define BASE   "Q2_K Q3_K Q3_K Q3_K Q4_K Q4_K Q5_K Q5_K Q6_K Q4_0 Q5_0 Q8_0"
#define V_1_2  "Q3_K Q3_K Q5_K Q5_K Q5_K Q6_K Q5_K Q6_K Q6_K Q4_0 Q5_0 Q8_0"
#define V_3_4  "Q3_K Q3_K Q4_K Q5_K Q5_K Q6_K Q5_K Q6_K Q6_K Q4_0 Q5_0 Q8_0"
#define V_REST "Q3_K Q3_K Q4_K Q5_K Q4_K Q6_K Q5_K Q6_K Q6_K Q4_0 Q5_0 Q8_0"
#define QKV    "Q2_K Q3_K Q4_K Q4_K Q4_K Q5_K Q5_K Q6_K Q6_K Q4_0 Q5_0 Q8_0"
#define DOWN   "Q2_K Q3_K Q4_K Q5_K Q5_K Q6_K Q5_K Q6_K Q6_K Q4_1 Q5_1 Q8_0"
#define EDGE   "Q4_K Q4_K Q4_K Q4_K Q4_K Q5_K Q5_K Q6_K Q6_K Q4_0 Q5_0 Q8_0"
#define EDGE_V "Q4_K Q4_K Q4_K Q4_K Q5_K Q5_K Q5_K Q6_K Q6_K Q4_0 Q5_0 Q8_0"
#define EDGE_D "Q4_K Q4_K Q4_K Q4_K Q5_K Q5_K Q5_K Q6_K Q6_K Q4_1 Q5_1 Q8_0"
/* Rows of 64 elements. */
#define SHORT "F16 F16 F16 F16 F16 F16 F16 F16 F16 Q4_0 Q5_0 Q8_0"
#define KEPT  "BF16 BF16 BF16 BF16 BF16 BF16 BF16 BF16 BF16 BF16 BF16 BF16"

/* Rows are in the order of the file; arch NULL: that of the row before. */
static const struct {
    const char *arch, *name, *want;
    int64_t ne[3];
} rows[] = {
    { "flux", "img_in.weight", KEPT, { 256, 64 } },
    { NULL, "double_blocks.0.img_attn.qkv.weight", QKV, { 256, 768 } },
    { NULL, "double_blocks.0.img_attn.proj.weight", BASE, { 256, 256 } },
    { NULL, "double_blocks.0.img_mod.lin.weight", BASE, { 256, 256 } },
    { NULL, "double_blocks.0.img_mlp.2.weight", BASE, { 256, 256 } },
    { NULL, "single_blocks.0.linear1.weight", SHORT, { 64, 256 } },
    { NULL, "single_blocks.0.linear1.bias", KEPT, { 256, 256 } },
    { NULL, "single_blocks.0.norm.query_norm.weight", KEPT, { 256, 256 } },
    { NULL, "double_stream_modulation_img.lin.weight", KEPT, { 256, 64 } },
    { NULL, "distilled_guidance_layer.in_proj.weight", KEPT, { 256, 64 } },
    { NULL, "output.weight", BASE, { 256, 64 } },
    { "sd3", "joint_blocks.0.x_block.attn.qkv.weight", QKV, { 256, 768 } },
    { NULL, "joint_blocks.0.x_block.mlp.fc2.weight", BASE, { 256, 256 } },
    { NULL, "proj_out.weight", KEPT, { 256, 64 } },
    { NULL, "joint_blocks.0.proj_out.weight", BASE, { 256, 64 } },
    { "aura", "double_layers.0.attn.w1v.weight", V_1_2, { 256, 256 } },
    { NULL, "double_layers.0.attn.w2v.weight", V_1_2, { 256, 256 } },
    { NULL, "double_layers.1.attn.w1v.weight", V_3_4, { 256, 256 } },
    { NULL, "double_layers.1.attn.w2v.weight", V_3_4, { 256, 256 } },
    { NULL, "single_layers.0.attn.w1v.weight", V_REST, { 256, 256 } },
    { NULL, "modF.1.weight", KEPT, { 256, 256 } },
    { "wan", "blocks.1.self_attn.v.weight", V_1_2, { 256, 256 } },
    { NULL, "blocks.0.ffn.2.weight", DOWN, { 256, 256 } },
    { NULL, "blocks.0.ffn.0.weight", BASE, { 256, 256 } },
    { NULL, "patch_embedding.weight", KEPT, { 2, 2, 64 } },
    { NULL, "casual_audio_encoder.x.weight", KEPT, { 256, 256 } },
    { "hidream",
      "double_stream_blocks.0.block.ff_i.experts.0.w2.weight",
      DOWN,
      { 256, 256 } },
    { NULL,
      "double_stream_blocks.0.block.ff_i.gate.weight",
      KEPT,
      { 256, 4 } },
    { "cosmos", "blocks.0.self_attn.v_proj.weight", V_1_2, { 256, 256 } },
    { NULL, "blocks.0.mlp.layer2.weight", DOWN, { 256, 256 } },
    { NULL, "blocks.0.adaln_modulation_mlp.2.weight", DOWN, { 256, 256 } },
    { NULL, "llm_adapter.blocks.0.mlp.0.weight", KEPT, { 256, 256 } },
    { "lumina2", "layers.0.attention.qkv.weight", QKV, { 256, 768 } },
    { NULL, "layers.0.feed_forward.w2.weight", DOWN, { 256, 256 } },
    { NULL, "noise_refiner.0.feed_forward.w2.weight", KEPT, { 256, 256 } },
    { "ltxv", "transformer_blocks.0.attn1.to_v.weight", V_1_2, { 256, 256 } },
    { NULL, "transformer_blocks.0.ff.net.2.weight", DOWN, { 256, 256 } },
    { NULL, "transformer_blocks.0.ff.proj_out.weight", KEPT, { 256, 256 } },
    { "hyvid", "double_blocks.0.img_attn_qkv.weight", QKV, { 256, 768 } },
    { NULL, "cond_type_embedding.weight", KEPT, { 256, 3 } },
    { "sdxl",
      "input_blocks.4.1.transformer_blocks.0.attn1.to_v.weight",
      V_1_2,
      { 256, 256 } },
    { NULL, "input_blocks.0.0.weight", KEPT, { 256, 256 } },
    { NULL, "input_blocks.1.0.in_layers.2.weight", BASE, { 256, 256 } },
    { "qwen_image",
      "transformer_blocks.0.attn.to_v.weight",
      EDGE_V,
      { 256, 256 } },
    { NULL,
      "transformer_blocks.0.attn.add_v_proj.weight",
      EDGE_V,
      { 256, 256 } },
    { NULL, "transformer_blocks.0.attn.to_q.weight", EDGE, { 256, 256 } },
    { NULL,
      "transformer_blocks.0.img_mlp.net.2.weight",
      EDGE_D,
      { 256, 256 } },
    { NULL, "transformer_blocks.5.attn.to_v.weight", V_3_4, { 256, 256 } },
    { NULL, "transformer_blocks.5.attn.to_q.weight", BASE, { 256, 256 } },
    { NULL, "transformer_blocks.5.txt_mlp.net.2.weight", DOWN, { 256, 256 } },
    { NULL, "transformer_blocks.59.attn.to_q.weight", EDGE, { 256, 256 } },
    { NULL, "norm_out.linear.weight", KEPT, { 256, 256 } },
    { "krea2", "blocks.0.attn.wv.weight", V_1_2, { 256, 256 } },
    { NULL, "blocks.0.mlp.down.weight", DOWN, { 256, 256 } },
    { "llama", "blk.0.attn.qkv.weight", BASE, { 256, 256 } },
};

/* Word no of a text. */
static bool is_word(const char *text, unsigned no, const char *word)
{
    while (no--)
        text = strchr(text, ' ') + 1;
    const size_t n = strcspn(text, " ");
    return n == strlen(word) && !strncmp(text, word, n);
}

static void check_preset(unsigned no)
{
    struct gguf_recipe *r = NULL;
    struct gg_recipe_chooser c;
    if (gguf_recipe_preset(&r, presets[no], NULL, NULL) != GGUF_OK)
        exit(99);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_recipe_choice choice;
        int64_t ne[GGUF_MAX_DIMS];
        for (size_t d = 0; d < GGUF_MAX_DIMS; d++)
            ne[d] = d < 3 && rows[i].ne[d] ? rows[i].ne[d] : 1;
        if (rows[i].arch) {
            c = (struct gg_recipe_chooser){ .recipe = r, .tied = true };
            c.facts.arch =
                (struct gguf_str){ rows[i].arch, strlen(rows[i].arch) };
            c.facts.var[GG_VAR_LAYERS] = 60;
        }
        if (gg_recipe_choose_type(&c, rows[i].name, ne, GGUF_DTYPE_BF16,
                                  &choice, NULL) != GGUF_OK)
            exit(99);
        const char *type = gguf_dtype_find(choice.type)->name;
        ok(is_word(rows[i].want, no, type), "%s: %s %s is %s", presets[no],
           rows[i].arch ? rows[i].arch : "", rows[i].name, type);
    }
    gguf_recipe_destroy(r);
}

static void check_blocks(void)
{
    const struct gguf_str qwen = { "qwen_image", 10 }, flux = { "flux", 4 };
    ok(gg_image_class_block(qwen, "transformer_blocks.12.x") == 12 &&
           gg_image_class_block(qwen, "transformer_blocks.x") == -1 &&
           gg_image_class_block(qwen, "transformer_blocks.") == -1 &&
           gg_image_class_block(qwen, "transformer_blocks.3") == -1 &&
           gg_image_class_block(qwen, "a.transformer_blocks.3.x") == -1 &&
           gg_image_class_block(qwen, "transformer_blocks.99999999999999999999"
                                      "9.x") == -1 &&
           gg_image_class_block(flux, "transformer_blocks.3.x") == -1,
       "a block's number follows the beginning of its names");
}

int main(void)
{
    for (unsigned i = 0; i < N_PRESETS; i++)
        check_preset(i);
    check_blocks();
    return done_testing();
}
