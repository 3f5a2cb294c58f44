/* SPDX-License-Identifier: MIT */
/* check-branches.c - what rows of architectures say beyond their samples: keys
 * and tensors that files may have, by small changes of these models */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary_tap.h"
#include "tests/tap.h"

#include <math.h>

enum { N = VARY_N, V = VARY_V };

/* ---- refused ---- */

static void glm4_all_draft(void)
{
    vary_u32("glm4.nextn_predict_layers", 2);
}
static void arcee_factors(void)
{
    vary_str("arcee.rope.scaling.type", "longrope");
}
static void half_latent(void)
{
    vary_drop_tensor("blk.2.ffn_latent_up.weight");
}
static void refact_experts(void)
{
    vary_u32("refact.expert_count", 4);
    vary_u32("refact.expert_used_count", 2);
}
static void refact_router(void)
{
    refact_experts();
    gen_tensor(&vary_model.g, 128, 4, "blk.1.ffn_gate_inp.weight");
}
static void no_gate(void)
{
    vary_drop_tensor("blk.0.ffn_gate_exps.weight");
}
static void no_gating(void)
{
    vary_drop("dots1.expert_gating_func");
}
static void other_gating(void)
{
    vary_u32("bailingmoe2.expert_gating_func", 5);
}

static const struct {
    const char *name;
    void (*change)(void);
    const char *says;
} refused[] = {
    { "glm4", glm4_all_draft, "glm4.nextn_predict_layers: the file has only" },
    { "arcee", arcee_factors, "rope.scaling.type 'longrope' is not" },
    { "nemotron_h_moe-moe", half_latent,
      "'blk.2.ffn_latent_up.weight' is missing" },
    { "refact", refact_router, "refact.expert_count is 4: models of" },
    { "granitemoe-moe", no_gate, "'blk.0.ffn_gate_exps.weight' is missing" },
    { "dots1", no_gating, "dots1.expert_gating_func: it is missing" },
    { "bailingmoe2", other_gating,
      "bailingmoe2.expert_gating_func is 5, must be 0 to 4" },
};

static void check_refused(void)
{
    for (size_t i = 0; i < GG_LEN(refused); i++)
        vary_refused(refused[i].name, refused[i].change, refused[i].says);
}

/* ---- what changes nothing ---- */

static void glm4_draft(void)
{
    vary_u32("glm4.block_count", 3);
    vary_u32("glm4.nextn_predict_layers", 1);
}
static void output_bias(void)
{
    gen_tensor(&vary_model.g, V, 0, "output.bias");
}
static void ffn_biases(void)
{
    for (int il = 0; il < 2; il++) {
        gen_tensor(&vary_model.g, 192, 0, "blk.%d.ffn_gate.bias", il);
        gen_tensor(&vary_model.g, 192, 0, "blk.%d.ffn_up.bias", il);
        gen_tensor(&vary_model.g, 128, 0, "blk.%d.ffn_down.bias", il);
    }
}
static void more_biases(void)
{
    ffn_biases();
    for (int il = 0; il < 2; il++)
        gen_tensor(&vary_model.g, 128, 0, "blk.%d.attn_output.bias", il);
}
static void biases_and_freqs(void)
{
    more_biases();
    gen_tensor(&vary_model.g, 16, 0, "rope_freqs.weight");
}
static void phi3_window(void)
{
    vary_u32("phi3.attention.sliding_window", 8);
}
static void exaone4_window(void)
{
    vary_u32("exaone4.attention.sliding_window", 8);
}
static void freqs(void)
{
    gen_tensor(&vary_model.g, 16, 0, "rope_freqs.weight");
}
static void no_window(void)
{
    vary_u32("olmo2.attention.sliding_window", 0);
}

static const struct {
    const char *name;
    void (*change)(void);
    const char *what;
} same[] = {
    { "glm4", glm4_draft, "a last layer that drafts" },
    { "dream", output_bias, "a bias of logits" },
    { "llada", biases_and_freqs, "biases and rope_freqs" },
    { "refact", more_biases, "biases" },
    { "nomic-bert", ffn_biases, "biases of the feed-forward part" },
    { "phi3", phi3_window, "a window" },
    { "refact", refact_experts, "a number of experts, without any" },
    { "exaone4", exaone4_window, "a window, with 2 layers" },
    { "pangu-embedded", freqs, "rope_freqs" },
    { "olmo2", no_window, "a window of 0" },
};

static void check_same(void)
{
    for (size_t i = 0; i < GG_LEN(same); i++)
        ok(vary_apart(same[i].name, NULL, same[i].change, N, N) == 0,
           "%s: no bit depends on %s", same[i].name, same[i].what);
}

/* ---- what changes something, and what ---- */

static void llama_biases(void)
{
    ffn_biases();
}

static void bare(void)
{
    vary_drop("minicpm.embedding_scale");
    vary_drop("minicpm.residual_scale");
    vary_drop("minicpm.logit_scale");
}
static void told(void)
{
    vary_f32("minicpm.embedding_scale", 12);
    vary_f32("minicpm.residual_scale", 1.4f / sqrtf(2));
    vary_f32("minicpm.logit_scale", 0.5f);
}
static void long_only(void)
{
    gen_tensor(&vary_model.g, 16, 0, "rope_factors_long.weight");
    vary_u32("phi3.rope.scaling.original_context_length", 32);
}
static void short_only(void)
{
    gen_tensor(&vary_model.g, 16, 0, "rope_factors_short.weight");
    vary_u32("phi3.rope.scaling.original_context_length", 32);
}
static void named(void)
{
    vary_str("phi3.rope.scaling.type", "longrope");
    long_only();
}

static void check_factors(void)
{
    const double l32 = vary_apart("phi3", NULL, long_only, 32, 32);
    const double l33 = vary_apart("phi3", NULL, long_only, 33, 32);
    const double s32 = vary_apart("phi3", NULL, short_only, 32, 32);
    const double s33 = vary_apart("phi3", NULL, short_only, 33, 32);
    ok(l32 == 0 && l33 > 1e-4 && l33 < 9,
       "long factors, in contexts of more than before scaling: %g, %g", l32,
       l33);
    ok(s33 == 0 && s32 > 1e-4 && s32 < 9,
       "short factors, in the others: %g, %g", s33, s32);
    ok(vary_apart("phi3", long_only, named, N, N) == 0,
       "whether or not the file names the scaling");
}

/* ---- parallel parts ---- */

/* What the feed-forward part reads is the norm's bias then, in any order. */
static void no_ffn_norm(void)
{
    vary_gain("ffn_norm", 0);
}
static void serial(void)
{
    vary_bool("gptneox.use_parallel_residual", false);
}
static void serial_no_ffn_norm(void)
{
    serial();
    no_ffn_norm();
}
static void no_attention(void)
{
    vary_gain("attn_output", 0);
}
static void second_norm(void)
{
    for (int il = 0; il < 2; il++)
        gen_tensor(&vary_model.g, 128, 0, "blk.%d.attn_norm_2.weight", il);
}
/* Attention reads zeros, the feed-forward part what it did. */
static void second_norm_of_zeros(void)
{
    second_norm();
    vary_gain("attn_norm_2", 0);
}
static void one_norm(void)
{
    for (int il = 0; il < 2; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_norm.weight", il);
        vary_drop_tensor(name);
    }
}
static void norms_of_heads(void)
{
    for (int il = 0; il < 2; il++) {
        gen_tensor(&vary_model.g, 32, 4, "blk.%d.attn_q_norm.weight", il);
        gen_tensor(&vary_model.g, 32, 2, "blk.%d.attn_k_norm.weight", il);
    }
}

/* Layers after the 32nd, which add nothing. */
static void baichuan_layers(int n)
{
    static const char *const names[] = { "attn_q", "attn_k", "attn_v",
                                         "attn_output" };
    vary_u32("baichuan.block_count", (uint32_t)n);
    vary_gain("blk.3[2-9].(attn_output|ffn_down)", 0);
    const struct gen_tensor *up = NULL, *k = NULL;
    for (size_t i = 0; i < vary_model.g.n; i++) {
        if (!strcmp(vary_model.g.t[i].name, "blk.0.ffn_up.weight"))
            up = &vary_model.g.t[i];
        if (!strcmp(vary_model.g.t[i].name, "blk.0.attn_k.weight"))
            k = &vary_model.g.t[i];
    }
    if (!up || !k)
        abort();
    const int64_t e = up->ne[0], f = up->ne[1], g = k->ne[1];
    for (int il = 32; il < n; il++) {
        for (size_t i = 0; i < GG_LEN(names); i++)
            gen_tensor(&vary_model.g, e, i == 1 || i == 2 ? g : e,
                       "blk.%d.%s.weight", il, names[i]);
        gen_tensor(&vary_model.g, e, 0, "blk.%d.attn_norm.weight", il);
        gen_tensor(&vary_model.g, e, 0, "blk.%d.ffn_norm.weight", il);
        gen_tensor(&vary_model.g, e, f, "blk.%d.ffn_gate.weight", il);
        gen_tensor(&vary_model.g, e, f, "blk.%d.ffn_up.weight", il);
        gen_tensor(&vary_model.g, f, e, "blk.%d.ffn_down.weight", il);
    }
}
static void layers_33(void)
{
    baichuan_layers(33);
}
static void layers_34_based(void)
{
    baichuan_layers(34);
    vary_f32("baichuan.rope.freq_base", 100);
}
static void layers_40(void)
{
    baichuan_layers(40);
}
static void layers_40_based(void)
{
    baichuan_layers(40);
    vary_f32("baichuan.rope.freq_base", 100);
}

static void check_baichuan(void)
{
    double d = vary_apart("baichuan", NULL, layers_33, N, N);
    ok(d > 1e-4 && d < 9, "baichuan: positions turn with 32 layers: %g", d);
    d = vary_apart("baichuan", layers_33, layers_34_based, N, N);
    ok(d == 0, "not with 33 or 34: %g", d);
    d = vary_apart("baichuan", layers_33, layers_40, N, N);
    ok(d > 1e-4 && d < 9, "distance counts with 40: %g", d);
    d = vary_apart("baichuan", layers_40_based, layers_40, N, N);
    ok(d == 0, "where nothing turns either: %g", d);
}

static void check_orders(void)
{
    double d = vary_apart("gptneox", NULL, serial, N, N);
    ok(d > 1e-4 && d < 9, "gptneox: use_parallel_residual counts: %g", d);
    d = vary_apart("gptneox", no_ffn_norm, serial_no_ffn_norm, N, N);
    ok(d < 1e-12, "but for what the feed-forward part reads: %g", d);
    d = vary_apart("falcon", NULL, second_norm, N, N);
    ok(d > 1e-4 && d < 9, "falcon: attn_norm_2 counts: %g", d);
    d = vary_apart("falcon", no_attention, second_norm_of_zeros, N, N);
    ok(d < 1e-12, "falcon: attention reads attn_norm_2, the rest not: %g", d);
    d = vary_apart("stablelm", NULL, one_norm, N, N);
    ok(d > 1e-4 && d < 9, "stablelm: without ffn_norm in parallel: %g", d);
    d = vary_apart("stablelm", NULL, norms_of_heads, N, N);
    ok(d > 1e-4 && d < 9, "stablelm: norms of heads count: %g", d);
}

int main(void)
{
    check_orders();
    check_baichuan();
    check_refused();
    check_same();
    check_factors();
    ok(vary_apart("minicpm", bare, told, N, N) < 1e-14,
       "minicpm: 12, 1.4/sqrt(layers) and width/256 without keys");
    const double d = vary_apart("llama", NULL, llama_biases, N, N);
    ok(d > 1e-4 && d < 9, "llama: biases count: %g", d);
    return done_testing();
}
