/* SPDX-License-Identifier: MIT */
/* check-latent.c - latent attention beyond its samples: other forms of files,
 * scaling, sizes, groups of experts, and what is kept */
#include "config.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/hparams.h"
#include "tests/model/vary_tap.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>

enum { N = VARY_N, V = VARY_V, LAYERS = 2 };

/* Of the samples: heads, elements of a key's two parts and of a value, rank. */
enum { H = 4, NOPE = 32, ROT = 16, DV = 32, C = 64, E = 128, RANK = 48 };

static char *name_of(int il, const char *what)
{
    static char s[64];
    snprintf(s, sizeof s, "blk.%d.%s", il, what);
    return s;
}

/* The weights that a tensor of the model has by its name. */
static void weights_of(const char *name, float *to)
{
    gen_weights(to, &vary_model.g, vary_find(name));
}

/* ---- files that have both matrices in one ---- */

static void join_matrices(void)
{
    static float k[H * C * NOPE], v[H * DV * C];
    static float both[LAYERS][H * (NOPE + DV) * C];
    for (int il = 0; il < LAYERS; il++) {
        float *to = both[il];
        weights_of(name_of(il, "attn_k_b.weight"), k);
        weights_of(name_of(il, "attn_v_b.weight"), v);
        for (int h = 0; h < H; h++, to += (NOPE + DV) * C)
            for (int c = 0; c < C; c++) {
                for (int i = 0; i < NOPE; i++)
                    to[i * C + c] = k[(h * C + c) * NOPE + i];
                for (int i = 0; i < DV; i++)
                    to[(NOPE + i) * C + c] = v[(h * DV + i) * C + c];
            }
        gen_tensor(&vary_model.g, C, H * (NOPE + DV), "blk.%d.%s", il,
                   "attn_kv_b.weight");
        vary_values(name_of(il, "attn_kv_b.weight"), both[il]);
    }
}

static void all_three(void)
{
    join_matrices();
}
static void joined(void)
{
    join_matrices();
    for (int il = 0; il < LAYERS; il++) {
        vary_drop_tensor(name_of(il, "attn_k_b.weight"));
        vary_drop_tensor(name_of(il, "attn_v_b.weight"));
    }
}
/* As files were before there were keys of the expanded widths. */
static void old_file(void)
{
    joined();
    vary_drop("deepseek2.attention.key_length_mla");
    vary_drop("deepseek2.attention.value_length_mla");
    vary_u32("deepseek2.attention.key_length", NOPE + ROT);
    vary_u32("deepseek2.attention.value_length", DV);
    vary_u32("deepseek2.attention.head_count_kv", H);
}

static void check_forms(void)
{
    vary_same("deepseek2", NULL, old_file, 1e-11,
              "an old file with attn_kv_b");
    vary_same("deepseek2", old_file, joined, 1e-30,
              "with keys of widths, too");
    vary_same("deepseek2", NULL, all_three, 1e-30,
              "both forms: the short row");
}

/* ---- queries in one step ---- */

/* Two steps that are like one: the norm between them does nothing. */
static void ones(void)
{
    static float one[E];
    for (int i = 0; i < E; i++)
        one[i] = 1;
    vary_f32("deepseek2.attention.layer_norm_rms_epsilon", 1e-9f);
    for (int il = 0; il < LAYERS; il++)
        vary_values(name_of(il, "attn_norm.weight"), one);
}
static void two_steps(void)
{
    static float unit[E * E], one[E], q[H * (NOPE + ROT) * E];
    ones();
    for (int i = 0; i < E; i++)
        one[i] = unit[i * E + i] = 1;
    vary_u32("deepseek2.attention.q_lora_rank", E);
    for (int il = 0; il < LAYERS; il++) {
        vary_find(name_of(il, "attn_q_a.weight"))->ne[1] = E;
        vary_values(name_of(il, "attn_q_a.weight"), unit);
        vary_find(name_of(il, "attn_q_a_norm.weight"))->ne[0] = E;
        vary_values(name_of(il, "attn_q_a_norm.weight"), one);
        vary_find(name_of(il, "attn_q_b.weight"))->ne[0] = E;
        for (int i = 0; i < H * (NOPE + ROT) * E; i++)
            q[i] = sinf((float)i) * 0.1f;
        vary_values(name_of(il, "attn_q_b.weight"), q);
    }
}
static void one_step(void)
{
    static float q[H * (NOPE + ROT) * E];
    ones();
    vary_drop("deepseek2.attention.q_lora_rank");
    for (int i = 0; i < H * (NOPE + ROT) * E; i++)
        q[i] = sinf((float)i) * 0.1f;
    for (int il = 0; il < LAYERS; il++) {
        vary_drop_tensor(name_of(il, "attn_q_a.weight"));
        vary_drop_tensor(name_of(il, "attn_q_a_norm.weight"));
        vary_drop_tensor(name_of(il, "attn_q_b.weight"));
        gen_tensor(&vary_model.g, E, H * (NOPE + ROT), "blk.%d.%s", il,
                   "attn_q.weight");
        vary_values(name_of(il, "attn_q.weight"), q);
    }
}

/* ---- YaRN ---- */

/* Multiply the part of keys that positions turn. */
static void gain_turned(float g)
{
    static float w[LAYERS][(C + ROT) * E];
    for (int il = 0; il < LAYERS; il++) {
        weights_of(name_of(il, "attn_kv_a_mqa.weight"), w[il]);
        for (int i = C * E; i < (C + ROT) * E; i++)
            w[il][i] *= g;
        vary_values(name_of(il, "attn_kv_a_mqa.weight"), w[il]);
    }
}

static const char *arch;
static const char *key(const char *k)
{
    static char s[96];
    snprintf(s, sizeof s, "%s.%s", arch, k);
    return s;
}

/* Factor 4 of that type; log: 0.1 times DeepSeek's mscale_all_dim; attn: the
 * key of magnitude. */
static void scaled(const char *type, float log, float attn)
{
    vary_str(key("rope.scaling.type"), type);
    vary_f32(key("rope.scaling.factor"), 4);
    vary_u32(key("rope.scaling.original_context_length"), 16);
    if (log != 0)
        vary_f32(key("rope.scaling.yarn_log_multiplier"), log);
    if (attn != 1)
        vary_f32(key("rope.scaling.attn_factor"), attn);
}

#define LOG     0.0707f
#define YARN(L) (1 + 0.1 * (double)(L)*log(4))

static void yarn_log(void)
{
    scaled("yarn", LOG, 1);
}
/* Positions at magnitude 1 and no other scale, both put into the weights. */
static void yarn_log_by_weights(void)
{
    scaled("yarn", 0, (float)(1 / YARN(1)));
    const double all = YARN(LOG / 0.1f);
    const double turned = arch[0] == 'd' ? 1 : YARN(1) / all;
    gain_turned((float)(turned * turned));
    vary_gain("attn_q_b", turned * turned * all * all);
    /* the scale of scores counts positions' magnitude, which is in the keys
     * here: both squares are of queries */
}
static void yarn(void)
{
    scaled("yarn", 0, 1);
}
static void linear(void)
{
    scaled("linear", 0, 1);
}
static void yarn_by_weights(void)
{
    scaled("yarn", 0, (float)(1 / YARN(1)));
    gain_turned((float)(YARN(1) * YARN(1)));
    vary_gain("attn_q_b", YARN(1) * YARN(1));
}
static void linear_by_weights(void)
{
    scaled("linear", 0, (float)(1 / YARN(1)));
    gain_turned((float)(YARN(1) * YARN(1)));
    vary_gain("attn_q_b", YARN(1) * YARN(1));
}

static void check_yarn(void)
{
    static const char *const archs[] = { "deepseek2", "mistral4" };
    for (size_t i = 0; i < GG_LEN(archs); i++) {
        arch = archs[i];
        vary_counts(arch, NULL, yarn, "YaRN counts");
        vary_counts(arch, yarn, yarn_log, "and its multiplier");
        vary_same(arch, yarn_log, yarn_log_by_weights, 1e-10,
                  "magnitudes with a multiplier");
        vary_same(arch, yarn, yarn_by_weights, 1e-10, "and without");
        vary_same(arch, linear, linear_by_weights, 1e-10,
                  "and of another kind");
    }
}

/* ---- refused ---- */

static void one_width(void)
{
    vary_drop("deepseek2.attention.value_length_mla");
}
static void all_turned(void)
{
    vary_u32("deepseek2.rope.dimension_count", NOPE + ROT);
}
static void no_matrix(void)
{
    vary_drop_tensor("blk.1.attn_v_b.weight");
}
static void three_groups(void)
{
    vary_u32("bailingmoe2.expert_group_count", 3);
    vary_u32("bailingmoe2.expert_group_used_count", 1);
}
static void groups(uint32_t n, uint32_t used)
{
    vary_u32("bailingmoe2.expert_group_count", n);
    vary_u32("bailingmoe2.expert_group_used_count", used);
}
static void no_group_used(void)
{
    vary_u32("bailingmoe2.expert_group_count", 2);
}
static void few_groups(void)
{
    groups(4, 1);
}
static void many_groups(void)
{
    groups(2, 3);
}

static const struct {
    const char *name;
    vary_fn *change;
    const char *says;
} refused[] = {
    { "deepseek2", one_width, "'deepseek2.attention.value_length_mla' is" },
    { "deepseek2", all_turned,
      "deepseek2.rope.dimension_count is 48, must be 2 to 47" },
    { "deepseek2", no_matrix, "'blk.1.attn_v_b.weight' is missing" },
    { "bailingmoe2", three_groups,
      "expert_group_count is 3, does not divide expert_count 4" },
    { "bailingmoe2", no_group_used, "expert_group_used_count' is missing" },
    { "bailingmoe2", few_groups,
      "expert_group_used_count is 1, must be 2 to 4" },
    { "bailingmoe2", many_groups,
      "expert_group_used_count is 3, must be 1 to 2" },
};

static void check_refused(void)
{
    for (size_t i = 0; i < GG_LEN(refused); i++)
        vary_refused(refused[i].name, refused[i].change, refused[i].says);
}

/* ---- groups of experts ---- */

static void biases(const float *v)
{
    vary_values("blk.1.exp_probs_b.bias", v);
}
static void all_groups(void)
{
    groups(2, 2);
}
/* The best expert is of the group whose sum is less. */
static void sums_decide(void)
{
    static const float b[] = { 10, -10, 3, 3 };
    groups(2, 1);
    biases(b);
}
static void last_two(void)
{
    static const float b[] = { -10, -10, 3, 3 };
    biases(b);
}
static void six_experts(void)
{
    static const char *const names[] = { "ffn_gate_exps", "ffn_up_exps",
                                         "ffn_down_exps" };
    char s[64];
    for (size_t i = 0; i < GG_LEN(names); i++) {
        snprintf(s, sizeof s, "blk.1.%s.weight", names[i]);
        vary_find(s)->ne[2] = 6;
    }
    vary_find("blk.1.ffn_gate_inp.weight")->ne[1] = 6;
    vary_find("blk.1.exp_probs_b.bias")->ne[0] = 6;
    vary_u32("bailingmoe2.expert_count", 6);
}
/* Two of three count, whatever the third is. */
static void two_decide(void)
{
    static const float b[] = { 5, 5, -20, 4, 4, 4 };
    six_experts();
    groups(2, 1);
    biases(b);
}
static void first_two(void)
{
    static const float b[] = { 5, 5, -20, -9, -9, -9 };
    six_experts();
    biases(b);
}
/* The same of groups of one, of which as many are left as experts chosen. */
static void single_groups(void)
{
    groups(4, 2);
}

static void check_groups(void)
{
    const char *a = "bailingmoe2";
    vary_same(a, NULL, all_groups, 1e-30, "all groups are as none");
    vary_same(a, sums_decide, last_two, 1e-30,
              "a group counts by its two best");
    vary_same(a, two_decide, first_two, 1e-30, "and by no more");
    vary_same(a, NULL, single_groups, 1e-30, "groups of one expert");
}

/* ---- what is told by size ---- */

static void softmax_key(void)
{
    vary_u32("deepseek2.expert_gating_func", 1);
}
static void no_key(void)
{
    vary_drop("deepseek2.expert_gating_func");
}

/* Hyperparameters of a file of so many layers and tokens, with attn_q. */
static bool sized(uint32_t n_layer, size_t n_vocab, struct gg_hparams *hp)
{
    struct gguf_file *file;
    struct gguf_error err;
    size_t size;
    if (!skeleton_open(&vary_model, "deepseek2"))
        abort();
    no_key();
    vary_drop("deepseek2.vocab_size");
    vary_u32("deepseek2.block_count", n_layer);
    gen_tensor(&vary_model.g, E, H * (NOPE + ROT), "blk.0.attn_q.weight");
    for (uint32_t i = 0; i < n_layer; i++)
        gen_tensor(&vary_model.g, 1, 0, "pad.%" PRIu32, i);
    void *data = gen_empty_file(&vary_model.g, &size);
    memset(hp, 0, sizeof *hp);
    bool good =
        gguf_file_open_memory(&file, data, size, NULL, &err) == GGUF_OK;
    if (good) {
        const struct gg_source src = { .file = file };
        const struct gg_finding report = { NULL, &src, &err };
        good = gg_hparams_load(hp, &src, gg_arch_find(gg_str_z("deepseek2")),
                               n_vocab, NULL, &report) == GGUF_OK;
    }
    gg_mem_free(NULL, hp->layer);
    gguf_file_close(file);
    free(data);
    skeleton_close(&vary_model);
    return good;
}

static void check_sizes(void)
{
    static const struct {
        uint32_t n_layer;
        size_t n_vocab;
        uint32_t rank, gating;
    } rows[] = {
        { 25, 100, RANK, 1 },    { 26, 100, 0, 1 },
        { 27, 100, 0, 1 },       { 28, 100, RANK, 1 },
        { 48, 128255, RANK, 1 }, { 48, 128256, 0, 1 },
        { 47, 154880, RANK, 2 }, { 48, 154880, RANK, 2 },
        { 46, 154880, RANK, 1 }, { 47, 154881, RANK, 1 },
    };
    static struct gg_hparams hp;
    for (size_t i = 0; i < GG_LEN(rows); i++)
        ok(sized(rows[i].n_layer, rows[i].n_vocab, &hp) &&
               hp.rank_q == rows[i].rank && hp.expert_gating == rows[i].gating,
           "%" PRIu32 " layers, %zu tokens: rank %" PRIu32 ", gate %" PRIu32,
           rows[i].n_layer, rows[i].n_vocab, hp.rank_q, hp.expert_gating);
    vary_same("deepseek2", no_key, softmax_key, 1e-30, "else softmax");
    vary_counts("deepseek2", NULL, softmax_key, "which is another");
}

/* ---- what is kept ---- */

static void check_kept(void)
{
    const uint64_t n = (uint64_t)N * LAYERS * sizeof(float);
    uint64_t k = vary_kept("deepseek2", NULL);
    ok(k == n * (C + ROT), "a short row of a token is kept: %" PRIu64, k);
    k = vary_kept("deepseek2", old_file);
    ok(k == n * H * (NOPE + ROT + DV),
       "of an old file keys and values: %" PRIu64, k);
    k = vary_kept("plm", NULL);
    ok(k == n * H * (NOPE + ROT + DV), "and of plm: %" PRIu64, k);
}

/* ---- minicpm3 ---- */

static void long_factors(void)
{
    gen_tensor(&vary_model.g, ROT / 2, 0, "rope_factors_long.weight");
    vary_u32("minicpm3.rope.scaling.original_context_length", 32);
}
static void wide_values(void)
{
    vary_u32("minicpm3.attention.value_length", 40);
    for (int il = 0; il < LAYERS; il++) {
        vary_find(name_of(il, "attn_kv_b.weight"))->ne[1] = H * (NOPE + 40);
        vary_find(name_of(il, "attn_output.weight"))->ne[0] = H * 40;
    }
}
static void wide_values_of_zeros(void)
{
    wide_values();
    vary_gain("attn_output", 0);
}
static void no_attention(void)
{
    vary_gain("attn_output", 0);
}

static void check_minicpm3(void)
{
    vary_counts("minicpm3", NULL, long_factors, "long factors count");
    vary_same("minicpm3", no_attention, wide_values_of_zeros, 1e-30,
              "values have their own width");
    vary_counts("minicpm3", NULL, wide_values, "which counts");
}

int main(void)
{
    check_forms();
    vary_same("deepseek2", two_steps, one_step, 1e-8, "queries in one step");
    check_yarn();
    check_refused();
    check_groups();
    check_sizes();
    check_kept();
    check_minicpm3();
    return done_testing();
}
