/* SPDX-License-Identifier: MIT */
/* check-projector-types.c - types that recipes choose for projectors
 *
 * Norms, biases, positions and filters of convolutions are not quantized. Rows
 * that blocks do not fit get a type with shorter blocks, or F16
 * (doc/projectors.md).
 */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "recipe/type_choice.h"
#include "tests/tap.h"

/* Type of a tensor of a projector in the file. -1: none is chosen. */
static int64_t choose_type(const char *preset, const char *name,
                           const int64_t ne[GGUF_MAX_DIMS], uint32_t type)
{
    struct gg_recipe_chooser c = { .tied = false };
    struct gg_recipe_choice choice;
    struct gguf_recipe *r;
    int64_t chosen = -1;
    if (gguf_recipe_preset(&r, preset, NULL, NULL) != GGUF_OK)
        return -1;
    c.recipe = r;
    c.facts.arch = GG_STR("clip");
    c.facts.var[GG_VAR_LAYERS] = c.facts.var[GG_VAR_N] = 4;
    c.facts.var[GG_VAR_HEADS] = c.facts.var[GG_VAR_KV_HEADS] = 4;
    if (gg_recipe_choose_type(&c, name, ne, type, &choice, NULL) == GGUF_OK)
        chosen = choice.type;
    gguf_recipe_destroy(r);
    return chosen;
}

#define NE(...)                                                               \
    (const int64_t[GGUF_MAX_DIMS])                                            \
    {                                                                         \
        __VA_ARGS__, 1, 1, 1, 1                                               \
    }

static void check_kept(void)
{
    static const struct {
        const char *name;
        int64_t ne[GGUF_MAX_DIMS];
        uint32_t type, with_q8; /* types before and after */
    } kept[] = {
        { "v.blk.0.ln1.weight", { 256, 1, 1, 1, 1, 1, 1, 1 }, 0, 0 },
        { "v.blk.0.attn_q.bias", { 256, 1, 1, 1, 1, 1, 1, 1 }, 0, 0 },
        { "v.position_embd.weight", { 256, 64, 1, 1, 1, 1, 1, 1 }, 0, 0 },
        { "v.patch_embd.weight", { 32, 32, 3, 256, 1, 1, 1, 1 }, 0, 0 },
        { "v.patch_embd.weight", { 32, 32, 3, 256, 1, 1, 1, 1 }, 1, 1 },
        { "a.conv1d.1.weight", { 32, 256, 256, 1, 1, 1, 1, 1 }, 1, 1 },
        { "a.blk.0.conv_dw.weight", { 32, 256, 1, 1, 1, 1, 1, 1 }, 0, 0 },
        { "v.sam.blk.0.attn.pos_h.weight",
          { 64, 27, 1, 1, 1, 1, 1, 1 },
          0,
          0 },
    };
    for (size_t i = 0; i < GG_LEN(kept); i++) {
        const int64_t q8 =
            choose_type("Q8_0", kept[i].name, kept[i].ne, kept[i].type);
        const int64_t q4 =
            choose_type("Q4_K_M", kept[i].name, kept[i].ne, kept[i].type);
        ok(q8 == kept[i].with_q8 && q4 == kept[i].with_q8,
           "%s is not quantized: types %d, %d", kept[i].name, (int)q8,
           (int)q4);
    }
}

static void check_matrices(void)
{
    static const char ffn[] = "v.blk.0.ffn_down.weight";
    ok(choose_type("Q8_0", ffn, NE(4096, 256, 1, 1), GGUF_DTYPE_F16) ==
           GGUF_DTYPE_Q8_0,
       "a matrix is quantized");
    ok(choose_type("Q8_0", ffn, NE(4304, 256, 1, 1), GGUF_DTYPE_F16) ==
           GGUF_DTYPE_F16,
       "rows of 4304 are no multiple of 32: F16");
    const int64_t short_rows =
        choose_type("Q4_K_M", ffn, NE(4320, 256, 1, 1), GGUF_DTYPE_F16);
    const struct gguf_dtype_info *t =
        short_rows < 0 ? NULL : gguf_dtype_find((uint32_t)short_rows);
    ok(t && t->block_len == 32,
       "rows of 4320 are a multiple of 32 and not of 256: %s",
       t ? t->name : "no type");
    ok(choose_type("F16", "v.patch_embd.weight", NE(32, 32, 3, 256),
                   GGUF_DTYPE_F32) == GGUF_DTYPE_F16,
       "with F16, filters have it");
    ok(choose_type("F16", "v.blk.0.ln1.weight", NE(256, 1, 1, 1),
                   GGUF_DTYPE_F32) == GGUF_DTYPE_F32,
       "with F16, norms do not");
}

int main(void)
{
    check_kept();
    check_matrices();
    return done_testing();
}
