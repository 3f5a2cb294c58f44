/* SPDX-License-Identifier: MIT */
/* check-fork.c - presets named after ik_llama.cpp's types choose its types
 *
 * A table has tensors, facts about their models, and the types that follow from
 * ik_llama.cpp's rules (August 2026). If ../shared is there, the types of two
 * small models are compared with those of its files (golden/ik/files).
 */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "recipe/type_choice.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Facts about a model. */
struct model {
    const char *arch;
    int64_t layers, heads, kv, experts;
    bool imatrix;
    int64_t vocab;
    bool tied;
};

static void set_facts(struct gg_recipe_chooser *c, const struct model *m)
{
    c->facts.arch = gg_str_z(m->arch);
    c->facts.var[GG_VAR_LAYERS] = c->facts.var[GG_VAR_N] = m->layers;
    c->facts.var[GG_VAR_HEADS] = m->heads;
    c->facts.var[GG_VAR_KV_HEADS] = m->kv;
    c->facts.var[GG_VAR_EXPERTS] = m->experts;
    c->facts.var[GG_VAR_IMATRIX] = m->imatrix;
    c->facts.var[GG_VAR_VOCAB] = m->vocab;
    c->facts.var[GG_VAR_TIED] = c->tied = m->tied;
}

/* Name of the type of one tensor; "": an error. */
static const char *choose_type(struct gg_recipe_chooser *c, const char *name,
                               int64_t cols, int64_t rows)
{
    const int64_t ne[GGUF_MAX_DIMS] = { cols, rows, 1, 1, 1, 1, 1, 1 };
    struct gg_recipe_choice choice;
    if (gg_recipe_choose_type(c, name, ne, GGUF_DTYPE_F16, &choice, NULL) !=
        GGUF_OK)
        return "";
    return gguf_dtype_find(choice.type)->name;
}

/* Models with one, two and four query heads for each key head, with experts,
 * and of 80 layers. */
static const struct model one = { "llama", 32, 32, 32, 0, .imatrix = true };
static const struct model two = { "llama", 32, 32, 16, 0, .imatrix = true };
static const struct model four = { "llama", 32, 32, 8, 0, .imatrix = true };
static const struct model bare = { "llama", 32, 32, 32, 0, .imatrix = false };
static const struct model moe = { "llama", 32, 32, 8, 8, .imatrix = true };
static const struct model deep = { "llama", 80, 64, 8, 0, .imatrix = true };
static const struct model eight = {
    "llama", 32, 32, 8, 0, .imatrix = true, .vocab = 128256
};
static const struct model seventy = {
    "qwen2", 80, 64, 8, 0, .imatrix = true, .vocab = 152064
};
static const struct model small = {
    "llama", 16, 32, 8, 0, .imatrix = true, .vocab = 128256
};
static const struct model tied = {
    "llama", 16, 32, 8, 0, .imatrix = true, .vocab = 128256, .tied = true
};
static const struct model deepseek = { "deepseek2", 27, 16,
                                       16,          64, .imatrix = true };
static const struct model falcon = {
    "falcon", 32, 32, 32, 4, .imatrix = true
};

static const struct {
    const char *preset;
    const struct model *model;
    const char *name;
    int64_t cols;
    const char *want;
} cases[] = {
    { "IQ4_K", &one, "blk.3.attn_v.weight", 4096, "IQ4_K" },
    { "IQ4_K", &two, "blk.3.attn_v.weight", 4096, "IQ5_K" },
    { "IQ4_K", &moe, "blk.3.attn_v.weight", 4096, "Q8_0" },
    { "IQ4_K", &deep, "blk.3.attn_v.weight", 4096, "IQ4_K" },
    { "IQ4_K", &moe, "blk.3.attn_output.weight", 4096, "Q5_K" },
    { "IQ4_K", &falcon, "blk.3.attn_output.weight", 4096, "IQ4_K" },
    { "IQ4_K", &one, "output.weight", 4096, "Q6_K" },
    { "IQ4_K", &one, "output.weight", 4096 + 32, "Q8_0" },
    { "IQ4_K", &one, "token_embd.weight", 4096, "IQ4_K" },
    { "IQ4_KS", &bare, "blk.0.ffn_down.weight", 4096, "Q5_K" },
    { "IQ4_KS", &one, "blk.0.ffn_down.weight", 4096, "IQ4_KS" },
    { "IQ3_K", &deep, "blk.3.attn_v.weight", 4096, "IQ5_K" },
    { "IQ3_KL", &one, "blk.31.ffn_up.weight", 4096, "IQ4_KS" },
    { "IQ3_KL", &one, "blk.31.attn_q.weight", 4096, "IQ3_K" },
    { "IQ2_K", &one, "blk.3.attn_v.weight", 4096, "IQ3_K" },
    { "IQ2_K", &two, "blk.3.attn_v.weight", 4096, "IQ4_K" },
    { "IQ2_KS", &one, "blk.3.attn_v.weight", 4096, "Q2_K" },
    { "IQ2_KS", &two, "blk.3.attn_v.weight", 4096, "IQ3_K" },
    { "IQ2_KS", &four, "blk.3.attn_v.weight", 4096, "IQ4_K" },
    { "IQ2_KS", &moe, "blk.3.attn_q.weight", 4096, "Q4_K" },
    { "IQ2_KL", &moe, "blk.3.attn_output.weight", 4096, "IQ4_KS" },
    { "IQ2_KT", &one, "blk.3.attn_output.weight", 4096, "IQ3_K" },
    { "IQ3_KT", &four, "blk.3.attn_output.weight", 4096, "IQ3_K" },
    { "IQ3_KT", &bare, "blk.0.ffn_down.weight", 4096, "IQ4_K" },
    { "IQ3_KT", &one, "token_embd.weight", 4096, "IQ3_S" },
    { "IQ4_KT", &four, "blk.3.attn_v.weight", 4096, "IQ5_K" },
    { "IQ1_BN", &one, "token_embd.weight", 4096, "IQ4_NL" },
    { "IQ6_K", &one, "output.weight", 4096, "IQ6_K" },
    /* large vocabularies of models with 8 and 70 billion weights */
    { "IQ5_K", &eight, "blk.3.attn_v.weight", 4096, "IQ6_K" },
    { "IQ5_K", &eight, "blk.3.attn_q.weight", 4096, "IQ4_K" },
    { "IQ5_KS", &eight, "blk.3.attn_q.weight", 4096, "IQ4_KS" },
    { "IQ5_K", &seventy, "blk.3.attn_v.weight", 8192, "IQ5_K" },
    { "IQ5_K", &seventy, "blk.3.attn_q.weight", 8192, "IQ4_K" },
    { "IQ5_K", &small, "blk.3.attn_q.weight", 2048, "IQ5_K" },
    { "IQ5_K", &four, "blk.3.attn_q.weight", 4096, "IQ5_K" },
    { "IQ3_K", &seventy, "blk.3.attn_v.weight", 8192, "IQ5_K" },
    { "IQ3_K", &small, "output.weight", 2048, "Q5_K" },
    { "IQ3_K", &tied, "token_embd.weight", 2048, "IQ4_K" },
    { "IQ4_KS", &tied, "token_embd.weight", 2048, "IQ5_K" },
    { "IQ2_KT", &deepseek, "blk.0.ffn_up.weight", 2048, "IQ3_K" },
    { "IQ2_KT", &deepseek, "blk.5.ffn_up_exps.weight", 2048, "IQ2_KT" },
    { "IQ2_KT", &deepseek, "blk.5.ffn_up_shexp.weight", 2048, "IQ4_K" },
    { "IQ2_KT", &deepseek, "blk.5.attn_kv_b.weight", 512, "Q4_K" },
    { "IQ2_KT", &deepseek, "blk.5.attn_q.weight", 2048, "Q4_K" },
    { "IQ2_KT", &one, "blk.5.attn_qkv.weight", 2048, "IQ3_K" },
    /* groups of rows; 4096 + 32 columns: as the rows apart */
    { "IQ4_K_R4", &one, "blk.3.ffn_up.weight", 4096, "IQ4_K_R4" },
    { "IQ4_K_R4", &two, "blk.3.attn_v.weight", 4096, "IQ5_K" },
    { "IQ4_K_R4", &one, "token_embd.weight", 4096, "IQ4_K" },
    { "IQ4_K_R4", &one, "blk.3.ffn_up.weight", 4096 + 32, "Q5_0" },
    { "IQ4_XS_R8", &one, "blk.3.ffn_up.weight", 4096 + 32, "IQ4_NL" },
    { "IQ4_KS_R4", &bare, "blk.0.ffn_down.weight", 4096, "Q5_K_R4" },
    { "Q4_0_R8", &one, "blk.0.ffn_down.weight", 4096, "IQ4_NL_R4" },
    { "Q8_0_R8", &one, "output.weight", 4096, "Q8_0_R8" },
    { "IQ2_XXS_R4", &tied, "token_embd.weight", 2048, "IQ4_K" },
    { "BF16_R16", &one, "blk.3.attn_v.weight", 4096, "BF16_R16" },
    { "Q8_KV", &one, "output.weight", 4096, "Q8_KV" },
    /* rows with a rest after blocks of 256, 64 or 32 */
    { "IQ4_K", &one, "blk.3.ffn_up.weight", 4096 + 32, "Q5_0" },
    { "IQ5_K", &one, "blk.3.ffn_up.weight", 4096 + 32, "Q6_0" },
    { "IQ6_K", &one, "blk.3.ffn_up.weight", 4096 + 32, "Q8_0" },
    { "IQ4_KS", &one, "blk.3.ffn_up.weight", 4096 + 32, "IQ4_NL" },
    { "IQ5_KS", &one, "blk.3.ffn_up.weight", 4096 + 32, "Q5_0" },
    { "IQ2_KT", &one, "blk.3.ffn_up.weight", 4096 + 32, "IQ4_NL" },
    { "IQ2_BN", &one, "blk.3.ffn_up.weight", 4096 + 32, "F16" },
    { "IQ4_K", &one, "blk.3.ffn_up.weight", 4096 + 16, "F16" },
};

static void check_cases(void)
{
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gg_recipe_chooser c = { .recipe = NULL };
        struct gguf_recipe *r;
        const char *type = "";
        if (gguf_recipe_preset(&r, cases[i].preset, NULL, NULL) == GGUF_OK) {
            c.recipe = r;
            set_facts(&c, cases[i].model);
            type = choose_type(&c, cases[i].name, cases[i].cols, 4096);
        }
        ok(!strcmp(type, cases[i].want), "%s, case %zu: %s is %s",
           cases[i].preset, i, cases[i].name, type);
        gguf_recipe_destroy(r);
    }
}

/* Presets that need importance data. */
static void check_needs(void)
{
    static const char *const names[] = { "IQ1_KT", "IQ2_KT", "IQ3_KT",
                                         "IQ2_KS" };
    for (size_t i = 0; i < GG_LEN(names); i++) {
        struct gguf_recipe *r;
        uint32_t type = gguf_dtype_find_name(names[i])->id;
        bool good = gguf_recipe_preset(&r, names[i], NULL, NULL) == GGUF_OK;
        ok(good && gg_recipe_choose_needs_imatrix(r, GG_CLASS_FFN_UP, type) ==
                       (i < 2),
           "%s %s importance data", names[i], i < 2 ? "needs" : "needs no");
        gguf_recipe_destroy(r);
    }
}

/* ------------------------------------------------- ik_llama.cpp's files --- */

/* A run: MODEL.PRESET.im or MODEL.PRESET.noim, and the number of its tensors.
 */
struct run {
    char name[64];
    struct gguf_recipe *r;
    struct gg_recipe_chooser c;
    unsigned n, wrong;
};

static bool start_run(struct run *run, const char *name)
{
    struct model m = { "llama", 2, 4, 2, 0, .imatrix = false };
    char preset[32];
    const char *dot = strchr(name, '.');
    size_t n = dot ? strcspn(dot + 1, ".") : 0;
    if (!n || n >= sizeof preset)
        return false;
    memcpy(preset, dot + 1, n);
    preset[n] = 0;
    m.imatrix = !strcmp(dot + 1 + n, ".im");
    m.experts = !strncmp(name, "syn-m", 5) ? 4 : 0;
    if (!m.imatrix && strcmp(dot + 1 + n, ".noim") != 0)
        return false;
    if (gguf_recipe_preset(&run->r, preset, NULL, NULL) != GGUF_OK ||
        run->r->ftype < 135)
        return false;
    snprintf(run->name, sizeof run->name, "%s", name);
    run->c.recipe = run->r;
    set_facts(&run->c, &m);
    return true;
}

static void end_run(struct run *run)
{
    if (run->n)
        ok(!run->wrong, "%s: types of %u tensors", run->name, run->n);
    gguf_recipe_destroy(run->r);
    memset(run, 0, sizeof *run);
}

/* Compare the type of a line: run, tensor, dimensions, type. */
static void check_line(struct run *run, char last[64], const char *line)
{
    char name[64], tensor[64], type[32];
    long long cols, rows = 1;
    if (sscanf(line, "%63[^\t]\t%63[^\t]\t%lldx%lld", name, tensor, &cols,
               &rows) < 3 ||
        sscanf(line, "%*[^\t]\t%*[^\t]\t%*[^\t]\t%31[^\t]", type) != 1)
        return;
    if (strcmp(name, last) != 0) {
        end_run(run);
        snprintf(last, 64, "%s", name);
        if (!start_run(run, name))
            end_run(run);
    }
    if (!run->c.recipe || !strcasecmp(type, "f32"))
        return;
    const char *got = choose_type(&run->c, tensor, cols, rows);
    run->n++;
    if (strcasecmp(got, type) != 0) {
        printf("# %s %s: %s, not %s\n", name, tensor, got, type);
        run->wrong++;
    }
}

static void check_files(const char *path)
{
    char *text = slurp(shared_path(path), NULL), *line = text, last[64] = "";
    struct run run = { .n = 0 };
    if (!text)
        skip("no files of ik_llama.cpp");
    while (line && *line) {
        check_line(&run, last, line);
        line += strcspn(line, "\n");
        line += *line != 0;
    }
    end_run(&run);
    free(text);
}

int main(void)
{
    check_cases();
    check_needs();
    check_files("golden/ik/files/tensors-syn-p.tsv");
    check_files("golden/ik/files/tensors-syn-m.tsv");
    return done_testing();
}
