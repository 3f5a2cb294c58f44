/* SPDX-License-Identifier: MIT */
/* fuzz_recipe.c - a recipe, and the types it chooses
 *
 * The input is the text; the bytes after a NUL are facts of the model.
 */
#include "config.h"
#include "base/str.h"
#include "recipe/type_choice.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t ne[4];
    uint32_t type;
} tensors[] = {
    { "token_embd.weight", { 256, 1000, 1, 1 }, GGUF_DTYPE_F16 },
    { "output_norm.weight", { 256, 1, 1, 1 }, GGUF_DTYPE_F32 },
    { "blk.0.attn_q.weight", { 256, 256, 1, 1 }, GGUF_DTYPE_F16 },
    { "blk.0.attn_k.weight", { 96, 64, 1, 1 }, GGUF_DTYPE_F16 },
    { "blk.0.attn_v.weight", { 256, 64, 1, 1 }, GGUF_DTYPE_BF16 },
    { "blk.0.attn_output.weight", { 256, 256, 1, 1 }, GGUF_DTYPE_F16 },
    { "blk.0.ffn_gate_exps.weight", { 256, 512, 8, 1 }, GGUF_DTYPE_F16 },
    { "blk.0.ffn_down_exps.weight", { 512, 256, 8, 1 }, GGUF_DTYPE_Q8_0 },
    { "blk.12.ffn_up.weight", { 100, 7, 1, 1 }, GGUF_DTYPE_F32 },
    { "blk.12.ffn_down.weight", { INT64_C(1) << 40, 3, 1, 1 }, 0 },
    { "blk.99999999999999999999.x.weight", { 1, 2, 3, 4 }, 0 },
    { "per_layer_token_embd.weight", { 96, 1000, 1, 1 }, GGUF_DTYPE_F16 },
    { "output.weight", { 257, 1000, 1, 1 }, GGUF_DTYPE_F16 },
};
enum { N_TENSORS = sizeof tensors / sizeof tensors[0] };

static void read_facts(struct gg_recipe_chooser *c, struct bytes *b)
{
    static const char *const archs[] = { "llama", "falcon", "", "qwen2" };
    *c = (struct gg_recipe_chooser){ .recipe = NULL };
    unsigned how = take(b);
    c->pure = how & 1;
    c->tied = how & 2;
    c->leave_output = how & 4;
    c->compat = how & 8;
    c->facts.arch = gg_str_z(archs[how >> 4 & 3]);
    /* numbers of one byte, the largest of the type, or negative */
    for (int i = 0; i < GG_N_VARS; i++) {
        int64_t v = take(b);
        c->facts.var[i] = v < 250   ? v
                          : v < 253 ? INT64_MAX - 252 + v
                                    : INT64_MIN + 255 - v;
    }
}

/* Choose all types. false: a pattern takes too many steps. */
static bool choose_all(struct gg_recipe_chooser *c,
                       const struct gguf_recipe *r,
                       struct gg_recipe_choice out[N_TENSORS])
{
    struct gguf_error err;
    c->recipe = r;
    for (size_t i = 0; i < N_TENSORS; i++) {
        int64_t ne[GGUF_MAX_DIMS] = { 1, 1, 1, 1, 1, 1, 1, 1 };
        memcpy(ne, tensors[i].ne, sizeof tensors[i].ne);
        if (gg_recipe_choose_type(c, tensors[i].name, ne, tensors[i].type,
                                  &out[i], &err) != GGUF_OK) {
            MUST(err.status == GGUF_E_LIMIT);
            return false;
        }
        MUST(out[i].text && gguf_dtype_find(out[i].wanted));
        const struct gguf_dtype_info *t = gguf_dtype_find(out[i].type);
        MUST(t && t->block_len &&
             (out[i].type == tensors[i].type || ne[0] % t->block_len == 0));
        MUST((out[i].reason == GGUF_REASON_RULE) == (out[i].rule != NULL));
        (void)gg_recipe_choose_needs_imatrix(r, out[i].cls, out[i].type);
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gg_recipe_choice a[N_TENSORS], b[N_TENSORS];
    struct gguf_recipe *r, *again;
    struct gguf_error err;
    struct gg_recipe_chooser c, d;
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t n = end ? (size_t)(end - data) : size;
    struct gguf_str text = { (const char *)data, n };
    struct bytes rest = { data + n, size - n };
    (void)take(&rest);
    gguf_error_clear(&err);
    enum gguf_status st = gguf_recipe_parse(&r, text, NULL, &err);
    if (st != GGUF_OK) {
        MUST(!r && err.status == st && err.message[0]);
        MUST(err.offset <= n || err.offset == GGUF_NO_OFFSET);
        return 0;
    }
    read_facts(&c, &rest);
    d = c;
    bool chosen = choose_all(&c, r, a);
    /* its own text must parse to the same recipe */
    MUST(gguf_recipe_parse(&again, gguf_recipe_text(r), NULL, NULL) ==
         GGUF_OK);
    MUST(choose_all(&d, again, b) == chosen);
    for (size_t i = 0; chosen && i < N_TENSORS; i++)
        MUST(a[i].type == b[i].type && a[i].reason == b[i].reason &&
             !strcmp(a[i].text, b[i].text));
    gguf_recipe_destroy(again);
    gguf_recipe_destroy(r);
    return 0;
}

void fuzz_make_seeds(void)
{
    static const char facts[] = "\0\0\40\40\10\2\10\1\0\0\0\0\0";
    const char *name;
    for (size_t i = 0; (name = gguf_recipe_preset_name(i)) != NULL; i++) {
        struct gguf_recipe *r;
        struct fix *s = new_seed();
        MUST(gguf_recipe_preset(&r, name, NULL, NULL) == GGUF_OK);
        struct gguf_str t = gguf_recipe_text(r);
        fix_bytes(s, t.data, t.size);
        fix_bytes(s, facts, sizeof facts - 1);
        gguf_recipe_destroy(r);
    }
    seed_text("base keep\n\"blk\\.[0-9]+\\.(ffn|attn)_\" = base if layer < 2\n"
              "* = Q8_0 if not (rows % 0 == 0) and -i*3 <= 7\n");
    seed_text("base Q4_K\nlet a = arch in (llama, qwen2)\n"
              "let b = a or experts > 1 and n != 3\n"
              "attn_v = IQ4_NL if a and b # twice\n"
              "needs_imatrix Q4_K\nname x\nalias y\nabout z\nftype 12\n");
    seed_text("base Q4_K\n\"....49+++++++++++++++++++++9i\" = Q5_K\n");
    seed_text("base Q4_K\n\"(a|b)*c{2,3}[^x-z\\d]\" = Q5_K\n");
}
