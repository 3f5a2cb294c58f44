/* SPDX-License-Identifier: MIT */
/* check-chosen.c - gates of attention, experts and activations of models with
 * windows: keys and tensors that samples lack
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/seen.h"
#include "tests/model/vary_tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { E = 128, FF = 96, X = 4 };

static char *in_layer(int il, const char *stem)
{
    static char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", il, stem);
    return name;
}

/* Values of a tensor; free() when the file is made, that is never. */
static float *values(const char *name)
{
    const struct gen_tensor *t = vary_find(name);
    float *v = malloc((size_t)(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]) *
                      sizeof *v);
    if (!v)
        abort();
    gen_weights(v, &vary_model.g, t);
    return v;
}

/* ---- experts ---- */

static float fused_w[2][X * 2 * FF * E], fused_b[2][X * 2 * FF];

/* gate and up of n experts of rows elements each become one. */
static void fuse(float *to, const char *gate, const char *up, size_t rows)
{
    float *g = values(gate), *u = values(up);
    for (size_t x = 0; x < X; x++) {
        memcpy(to + 2 * x * rows, g + x * rows, rows * sizeof *g);
        memcpy(to + (2 * x + 1) * rows, u + x * rows, rows * sizeof *u);
    }
    free(g);
    free(u);
    vary_drop_tensor(gate);
    vary_drop_tensor(up);
}

static void fused_experts(void)
{
    for (int il = 0; il < 2; il++) {
        char up[64];
        strcpy(up, in_layer(il, "ffn_up_exps.weight"));
        fuse(fused_w[il], in_layer(il, "ffn_gate_exps.weight"), up,
             (size_t)FF * E);
        strcpy(up, in_layer(il, "ffn_up_exps.bias"));
        fuse(fused_b[il], in_layer(il, "ffn_gate_exps.bias"), up, FF);
        gen_tensor(&vary_model.g, E, 2 * FF, "blk.%d.ffn_gate_up_exps.weight",
                   il);
        struct gen_tensor *t =
            vary_find(in_layer(il, "ffn_gate_up_exps.weight"));
        t->n_dims = 3;
        t->ne[2] = X;
        t->values = fused_w[il];
        gen_tensor(&vary_model.g, 2 * FF, X, "blk.%d.ffn_gate_up_exps.bias",
                   il);
        vary_values(in_layer(il, "ffn_gate_up_exps.bias"), fused_b[il]);
    }
}

/* Heads of 16, by rope.dimension_count, or by all keys. */
static void narrow_heads(void)
{
    static const char *const names[] = { "attn_q", "attn_k", "attn_v" };
    vary_u32(".rope.dimension_count", 16);
    vary_u32(".attention.key_length", 16);
    vary_u32(".attention.value_length", 16);
    for (int il = 0; il < 2; il++) {
        char stem[32];
        for (size_t i = 0; i < GG_LEN(names); i++) {
            snprintf(stem, sizeof stem, "%s.weight", names[i]);
            vary_find(in_layer(il, stem))->ne[1] = i ? 32 : 64;
            snprintf(stem, sizeof stem, "%s.bias", names[i]);
            vary_find(in_layer(il, stem))->ne[0] = i ? 32 : 64;
        }
        vary_find(in_layer(il, "attn_output.weight"))->ne[0] = 64;
    }
}
static void heads_as_positions(void)
{
    narrow_heads();
    vary_drop(".attention.key_length");
    vary_drop(".attention.value_length");
}

static void no_shared_result(void)
{
    vary_gain("ffn_down_shexp", 0);
}
static void no_shared(void)
{
    vary_u32(".expert_shared_count", 0);
    vary_gain("ffn_down_exps", 0.5);
}
static void no_gating(void)
{
    vary_drop(".expert_gating_func");
}
static void softmax(void)
{
    vary_u32(".expert_gating_func", 1);
}
static void softmax_of_chosen(void)
{
    vary_u32(".expert_gating_func", 3);
}

static void check_experts(void)
{
    vary_same("gpt-oss", NULL, fused_experts, 1e-12,
              "gate, up and their biases in one");
    vary_same("gpt-oss", narrow_heads, heads_as_positions, 0,
              "heads as wide as rope.dimension_count");
    vary_same("cohere2moe", no_shared_result, no_shared, 1e-12,
              "half of both, but all of experts alone");
    vary_refused("smallthinker", no_gating,
                 "smallthinker.expert_gating_func: it is missing");
    vary_counts("smallthinker", NULL, softmax, "softmax counts");
    vary_same("smallthinker", softmax, softmax_of_chosen, 1e-12,
              "softmax of the chosen is that, if weights add to one");
}

/* ---- llama 4 ---- */

static void many_experts(uint32_t n)
{
    vary_u32(".expert_count", n);
    vary_u32(".expert_feed_forward_length", 8);
    for (size_t i = 0; i < vary_model.g.n; i++) {
        struct gen_tensor *t = &vary_model.g.t[i];
        const bool down = strstr(t->name, "ffn_down_") != NULL;
        const bool shared = strstr(t->name, "_shexp") != NULL;
        if (strstr(t->name, "ffn_gate_inp"))
            t->ne[1] = n;
        else if (shared || strstr(t->name, "_exps"))
            t->ne[down ? 0 : 1] = 8;
        if (strstr(t->name, "_exps"))
            t->ne[2] = n;
    }
}
static void experts_127(void)
{
    many_experts(127);
}
static void experts_128(void)
{
    many_experts(128);
}
/* A norm undoes it. */
static void twice(void)
{
    vary_gain("blk.[0-2].attn_q", 2);
}
static void experts_127_twice(void)
{
    many_experts(127);
    twice();
}
static void experts_128_twice(void)
{
    many_experts(128);
    twice();
}
/* In layers that do not turn there is none. */
static void still_twice(void)
{
    vary_gain("blk.3.attn_q", 2);
}
/* What a temperature does from token 8191 on. */
static void warm(void)
{
    vary_gain("blk.3.attn_q", 1 + 0.1 * log(2));
}
static void warmer(void)
{
    vary_gain("blk.3.attn_q", 1 + 0.1 * log(3));
}

/* One expert a token, as published models have. */
static void one_used(void)
{
    vary_u32(".expert_used_count", 1);
}
static void check_llama4(void)
{
    enum { N = VARY_N, V = VARY_V };
    static float late[N * V], early[N * V], other[N * V];
    struct gguf_error err;
    vary_counts("llama4", NULL, one_used, "one expert a token");
    vary_same("llama4", experts_127, experts_127_twice, 1e-9,
              "heads are normed where they turn");
    vary_counts("llama4", NULL, still_twice, "and nowhere else");
    vary_counts("llama4", experts_128, experts_128_twice,
                "with 128 experts they are not");
    const bool good = vary_part("llama4", NULL, N, 0, N, 8192, late, &err) &&
                      vary_part("llama4", warm, N, 0, N, 0, early, &err) &&
                      vary_part("llama4", warmer, N, 0, N, 0, other, &err);
    const double d = good ? run_nmse(late, early, (size_t)N * V) : 9;
    const double more = good ? run_nmse(late, other, (size_t)N * V) : 0;
    ok(d < 1e-8 && more > 100 * d,
       "llama4: queries at 8192 are 1 + 0.1 ln 2 as large: %.2g (%.2g)", d,
       more);
}

/* ---- gates ---- */

static float wide_gate[5][E * E];

/* A gate for each element of a head, all the same. */
static void gate_elements(void)
{
    for (int il = 0; il < 5; il++) {
        char *name = in_layer(il, "attn_gate.weight");
        float *v = values(name);
        for (size_t i = 0; i < E; i++)
            memcpy(wide_gate[il] + i * E, v + i / 32 * E, E * sizeof *v);
        free(v);
        vary_find(name)->ne[1] = E;
        vary_values(name, wide_gate[il]);
    }
}
static void gate_odd(void)
{
    vary_find("blk.2.attn_gate.weight")->ne[1] = 5;
}
static void no_gate(void)
{
    for (int il = 0; il < 2; il++)
        vary_drop_tensor(in_layer(il, "attn_gate.weight"));
}
/* sigmoid(0) is 1/2. */
static void gate_half(void)
{
    vary_gain("attn_gate", 0);
}
static void no_gate_half(void)
{
    no_gate();
    vary_gain("attn_output", 0.5);
}

static void check_gates(void)
{
    vary_same("laguna", NULL, gate_elements, 1e-12,
              "a gate an element, each as its head's");
    vary_refused("laguna", gate_odd,
                 "'blk.2.attn_gate.weight' has 5 rows, must have 4 or 128");
    vary_counts("step35", NULL, no_gate, "gates need not be there");
    vary_same("step35", gate_half, no_gate_half, 1e-12, "gates of 1/2");
}

/* ---- limits ---- */

static void limit(const char *key, float v)
{
    vary_f32(key, v);
}
static void limit_both(void)
{
    limit(".swiglu_clamp_exp", 0.1f);
    limit(".swiglu_clamp_shexp", 0.1f);
}
static void limit_none(void)
{
    limit(".swiglu_clamp_exp", 0);
    limit(".swiglu_clamp_shexp", 1e-7f);
}
static void limit_high(void)
{
    limit(".swiglu_clamp_exp", 1e6f);
    limit(".swiglu_clamp_shexp", 1e6f);
}
static void limit_exp(void)
{
    limit(".swiglu_clamp_exp", 0.1f);
}
static void limit_shexp(void)
{
    limit(".swiglu_clamp_shexp", 0.1f);
}
static void limit_list(void)
{
    vary_array(".swiglu_clamp_exp", GGUF_VAL_F32,
               (const float[]){ 0.1f, 0.1f }, 2);
}
static void limit_short(void)
{
    vary_array(".swiglu_clamp_exp", GGUF_VAL_F32, (const float[]){ 1 }, 1);
}
static void limit_nan(void)
{
    vary_array(".swiglu_clamp_exp", GGUF_VAL_F32, (const float[]){ 1, -1 }, 2);
}
/* Where gates and values are all far beyond limits, only their signs count:
 * results are 0 or the limit's square. */
static void far(float most)
{
    vary_gain("ffn_(gate|up)(_shexp|_exps)?.weight", 1e7);
    vary_u32(".leading_dense_block_count", 0);
    limit(".swiglu_clamp_exp", most);
    limit(".swiglu_clamp_shexp", most);
}
static void far_half(void)
{
    far(0.5f);
}
static void far_one(void)
{
    far(1);
    vary_gain("ffn_down", 0.25);
}

static void check_limits(void)
{
    vary_counts("step35", NULL, limit_both, "limits count");
    vary_same("step35", NULL, limit_none, 0, "0 is none");
    vary_same("step35", NULL, limit_high, 1e-12, "one that is not reached");
    vary_counts("step35", limit_exp, limit_both, "shared experts have theirs");
    vary_counts("step35", limit_shexp, limit_both, "so have the chosen");
    vary_same("step35", limit_exp, limit_list, 0, "an array of them");
    vary_refused("step35", limit_short,
                 "step35.swiglu_clamp_exp has 1 elements, there are 2");
    vary_refused("step35", limit_nan,
                 "step35.swiglu_clamp_exp is -1 in layer 1, must be 0 to");
    vary_same("step35", far_half, far_one, 1e-8,
              "beyond it the square of the limit");
}

/* ---- one each ---- */

static void half_value(void)
{
    vary_f32(".attention.value_scale", 0.5);
}
static void half_output(void)
{
    vary_gain("attn_output", 0.5);
}
static void biases(void)
{
    for (int il = 0; il < 2; il++) {
        gen_tensor(&vary_model.g, 128, 0, "blk.%d.attn_q.bias", il);
        gen_tensor(&vary_model.g, 64, 0, "blk.%d.attn_k.bias", il);
        gen_tensor(&vary_model.g, 64, 0, "blk.%d.attn_v.bias", il);
    }
}
static void no_sinks(void)
{
    vary_drop_tensor("blk.0.attn_sinks.weight");
}

static float fused_qkv[2][(128 + 64 + 32) * E];

/* Values of 16 elements, keys of 32. */
static void short_values(void)
{
    vary_u32(".attention.key_length", 32);
    vary_u32(".attention.value_length", 16);
    for (int il = 0; il < 2; il++) {
        vary_find(in_layer(il, "attn_v.weight"))->ne[1] = 32;
        vary_find(in_layer(il, "attn_output.weight"))->ne[0] = 64;
    }
}
static void short_values_fused(void)
{
    static const char *const names[] = { "attn_q.weight", "attn_k.weight",
                                         "attn_v.weight" };
    static const size_t rows[] = { 128, 64, 32 };
    short_values();
    for (int il = 0; il < 2; il++) {
        float *to = fused_qkv[il];
        for (size_t i = 0; i < GG_LEN(names); i++, to += rows[i - 1] * E) {
            float *v = values(in_layer(il, names[i]));
            memcpy(to, v, rows[i] * E * sizeof *v);
            free(v);
            vary_drop_tensor(in_layer(il, names[i]));
        }
        gen_tensor(&vary_model.g, E, 224, "blk.%d.attn_qkv.weight", il);
        vary_values(in_layer(il, "attn_qkv.weight"), fused_qkv[il]);
    }
}

static void gelu(void)
{
    vary_str(".hidden_activation", "gelu");
}
static void silu(void)
{
    vary_str(".hidden_activation", "silu");
}
static void swish(void)
{
    vary_str(".hidden_activation", "swish");
}
static void relu(void)
{
    vary_str(".hidden_activation", "reglu");
}
static void another(void)
{
    vary_str(".hidden_activation", "mish");
}
static void no_first_norm(void)
{
    vary_drop_tensor("blk.0.attn_norm.weight");
}
static void no_second_norm(void)
{
    vary_drop_tensor("blk.1.attn_norm.weight");
}

static void check_odd(void)
{
    vary_same("mimo2", half_value, half_output, 1e-12,
              "attention's result is scaled");
    vary_same("mimo2", NULL, biases, 0, "biases are not added");
    vary_counts("mimo2", NULL, no_sinks, "a layer may have no sinks");
    vary_same("mimo2", short_values, short_values_fused, 1e-12,
              "values narrower than keys, in one matrix");
    vary_same("modern-bert", NULL, gelu, 0, "GELU unless given");
    vary_same("modern-bert", NULL, another, 0, "or if it is not known");
    vary_counts("modern-bert", NULL, silu, "SiLU");
    vary_same("modern-bert", silu, swish, 0, "by another name");
    vary_counts("modern-bert", silu, relu, "ReLU");
    vary_counts("modern-bert", NULL, no_first_norm,
                "the first layer may have no norm");
    vary_refused("modern-bert", no_second_norm,
                 "'blk.1.attn_norm.weight' is missing");
}

/* ---- layers that draft ---- */

/* One more layer, dense where others have experts. */
static void draft(void)
{
    struct gen *g = &vary_model.g;
    const size_t n = g->n;
    vary_u32(".block_count", 6);
    vary_u32(".nextn_predict_layers", 1);
    for (size_t i = 0; i < n; i++) {
        const struct gen_tensor t = g->t[i];
        if (!strncmp(t.name, "blk.0.", 6))
            gen_tensor(g, t.ne[0], t.n_dims > 1 ? t.ne[1] : 0, "blk.5.%s",
                       t.name + 6);
    }
    gen_tensor(g, 2 * E, E, "blk.5.nextn.eh_proj.weight");
    gen_tensor(g, E, 0, "blk.5.nextn.enorm.weight");
    gen_tensor(g, E, 0, "blk.5.nextn.hnorm.weight");
}

static void check_draft(void)
{
    static struct seen s;
    size_t size;
    if (!skeleton_open(&vary_model, "exaone-moe"))
        abort();
    draft();
    void *file = gen_file(&vary_model.g, GGUF_DTYPE_F32, &size);
    seen_in(file, size, NULL, &s);
    ok(s.n_error == 0 && s.n_warning == 0,
       "exaone-moe: a dense layer that drafts is as it must be: %s", s.codes);
    free(file);
    skeleton_close(&vary_model);
    vary_same("exaone-moe", NULL, draft, 0, "and is not computed");
}

int main(void)
{
    check_draft();
    check_experts();
    check_llama4();
    check_gates();
    check_limits();
    check_odd();
    return done_testing();
}
