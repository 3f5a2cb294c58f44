/* SPDX-License-Identifier: MIT */
/* check-experts.c - what rows of models with experts say beyond their samples
 */
#include "config.h"
#include "tests/model/vary_tap.h"
#include "tests/tap.h"

#include <math.h>

enum { N = VARY_N, V = VARY_V };

static void no_gates(void)
{
    vary_drop_tensor("blk.0.ffn_gate_exps.weight");
    vary_drop_tensor("blk.1.ffn_gate_exps.weight");
}
static void fused_apart(void)
{
    for (int il = 1; il < 2; il++) { /* the first is dense */
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_gate_up_exps.weight", il);
        const struct gen_tensor t = *vary_find(name);
        const int64_t half = t.ne[0] * t.ne[1] / 2;
        const float *both = vary_values_of(name);
        vary_drop_tensor(name);
        for (int up = 0; up < 2; up++) {
            float *v = vary_room((size_t)(half * t.ne[2]));
            for (int64_t e = 0; e < t.ne[2]; e++)
                memcpy(v + e * half, both + (2 * e + up) * half,
                       (size_t)half * sizeof *v);
            snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", il,
                     up ? "up" : "gate");
            gen_tensor(&vary_model.g, t.ne[0], t.ne[1] / 2, "%s", name);
            struct gen_tensor *to = vary_find(name);
            to->ne[2] = t.ne[2];
            to->n_dims = 3;
            to->values = v;
        }
    }
}
static void no_gating(void)
{
    vary_drop(".expert_gating_func");
}
static void softmax(void)
{
    vary_u32(".expert_gating_func", 1);
}
static void no_select(void)
{
    vary_drop_tensor("blk.1.exp_probs_b");
}
static void no_count(void)
{
    vary_drop(".expert_count");
    vary_drop(".expert_used_count");
}
static void not_whole(void)
{
    vary_u32(".experts_per_group", 3);
}
static void no_groups(void)
{
    vary_f32(".expert_group_scale", 0);
}
static void zero_groups(void)
{
    vary_gain("ffn_down_chexps", 0);
}
/* One chunk expert: whoever is chosen, it comes once, with a weight of 1. */
static void one_chunk(void)
{
    vary_u32(".experts_per_group", 4);
    for (int il = 0; il < 2; il++) {
        static const char *const names[] = { "gate", "up", "down" };
        for (int i = 0; i < 3; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.ffn_%s_chexps.weight", il,
                     names[i]);
            vary_find(name)->ne[2] = 1;
        }
    }
}
static void equal_chunks(void)
{
    static const char *const names[] = { "gate", "up", "down" };
    for (int il = 0; il < 2; il++)
        for (int i = 0; i < 3; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.ffn_%s_chexps.weight", il,
                     names[i]);
            const struct gen_tensor *t = vary_find(name);
            const size_t n = (size_t)(t->ne[0] * t->ne[1]);
            float *v = vary_values_of(name);
            memcpy(v + n, v, n * sizeof *v);
            vary_values(name, v);
        }
}
/* Where the router says 0, each expert counts sigmoid(0) = 1/2, or
 * sqrt(softplus(0)) = sqrt(ln 2). */
static void no_router(void)
{
    vary_gain("ffn_gate_inp", 0);
    vary_bool(".expert_weights_norm", false);
    vary_f32(".expert_weights_scale", (float)(2 * sqrt(log(2))));
}
static void no_router_softplus(void)
{
    no_router();
    vary_u32(".expert_gating_func", 4);
    vary_f32(".expert_weights_scale", 1);
}
static void softplus(void)
{
    vary_u32(".expert_gating_func", 4);
}
static void layer_eps(void)
{
    vary_drop(".attention.layer_norm_rms_epsilon");
    vary_f32(".attention.layer_norm_epsilon", 1e-5f);
}
static void no_eps(void)
{
    vary_drop(".attention.layer_norm_rms_epsilon");
}
static void out_biases(void)
{
    for (int il = 0; il < 2; il++)
        gen_tensor(&vary_model.g, V, 0, "blk.%d.attn_output.bias", il);
}

static void check_experts(void)
{
    vary_counts("llama-moe", NULL, no_gates, "experts without gates");
    vary_same("hy_v3", NULL, fused_apart, 1e-13, "gate and up in one or two");
    vary_same("hy_v3", NULL, no_gating, 0, "a sigmoid without the key");
    vary_counts("hy_v3", NULL, softmax, "softmax by the key");
    vary_counts("hy_v3", NULL, no_select, "the bias for choosing");
    vary_refused("hy_v3", no_count, "hy_v3.expert_count: it is missing");
    vary_refused("grovemoe", not_whole,
                 "grovemoe.experts_per_group is 3, does not divide");
    vary_same("grovemoe", no_groups, zero_groups, 0, "chunks of zeros");
    vary_counts("grovemoe", NULL, no_groups, "chunk experts count");
    vary_same("grovemoe", one_chunk, equal_chunks, 1e-12,
              "weights of chunks add to 1");
    vary_counts("bailingmoe2", NULL, softplus, "the root of softplus by key");
    vary_same("bailingmoe2", no_router, no_router_softplus, 1e-12,
              "as its name says");
    vary_counts("phimoe", NULL, layer_eps, "layer norms by their key");
    vary_refused("phimoe", no_eps,
                 "'phimoe.attention.layer_norm_rms_epsilon' is missing");
    vary_same("ernie4_5", NULL, out_biases, 0, "biases of outputs are idle");
}

int main(void)
{
    check_experts();
    return done_testing();
}
