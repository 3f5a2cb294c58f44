/* SPDX-License-Identifier: MIT */
/* check-streams.c - layers with inputs of their own, that share keys, or with a
 * dense part beside experts: keys and tensors that samples lack
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary_tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { E = 128, FF = 96, X = 4, L = 5 };

static const char *in_layer(int il, const char *stem)
{
    static char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", il, stem);
    return name;
}

static void flags(bool a, bool b, bool c, bool d, bool e)
{
    const bool v[L] = { a, b, c, d, e };
    vary_array(".attention.sliding_window_pattern", GGUF_VAL_BOOL, v, L);
}

/* ---- keys of other layers ---- */

static void alternate(void)
{
    flags(1, 0, 1, 0, 1);
}
static void shared(void)
{
    alternate();
    vary_u32(".attention.shared_kv_layers", 2);
}
static void shared_bare(void)
{
    static const char *const names[] = { "attn_k.weight", "attn_v.weight",
                                         "attn_k_norm.weight" };
    shared();
    for (int il = 3; il < L; il++)
        for (size_t i = 0; i < GG_LEN(names); i++)
            vary_drop_tensor(in_layer(il, names[i]));
}
static void shared_all(void)
{
    vary_u32(".attention.shared_kv_layers", L);
}
static void shared_none_full(void)
{
    vary_u32(".attention.shared_kv_layers", 2);
}
static void shared_other_heads(void)
{
    const uint32_t n[] = { 2, 2, 2, 1, 2 };
    shared();
    vary_array(".attention.head_count_kv", GGUF_VAL_U32, n, L);
}
/* Values of nothing: whoever reads them takes nothing. */
static void nothing_in(int il)
{
    char name[64];
    shared();
    snprintf(name, sizeof name, "blk.%d.attn_v", il);
    vary_gain(name, 0);
}
static void nothing_in_1(void)
{
    nothing_in(1);
}
static void nothing_in_1_and_3(void)
{
    nothing_in(1);
    vary_gain("blk.3.attn_output", 0);
}
static void nothing_in_2(void)
{
    nothing_in(2);
}
static void nothing_in_2_and_4(void)
{
    nothing_in(2);
    vary_gain("blk.4.attn_output", 0);
}
static void no_own_keys(void)
{
    vary_drop_tensor("blk.2.attn_k.weight");
}

static void check_shared(void)
{
    vary_counts("gemma4", alternate, shared, "keys of other layers");
    vary_same("gemma4", shared, shared_bare, 0, "own ones need not be there");
    vary_same("gemma4", nothing_in_1, nothing_in_1_and_3, 0,
              "a full layer reads those of the last full one");
    vary_same("gemma4", nothing_in_2, nothing_in_2_and_4, 0,
              "a window those of the last window");
    vary_refused("gemma4", shared_all, "shared_kv_layers: layer 0 finds no");
    vary_refused("gemma4", shared_none_full, "layer 4 finds no keys of 2");
    vary_refused("gemma4", shared_other_heads, "layer 3 finds no keys of 1");
    vary_refused("gemma4", no_own_keys, "'blk.2.attn_k.weight' is missing");
    const uint64_t all = vary_kept("gemma4", NULL),
                   some = vary_kept("gemma4", shared);
    ok(all && some * L == all * 3,
       "gemma4: three of five layers keep keys: %d"
       " of %d bytes",
       (int)some, (int)all);
}

/* ---- heads ---- */

static float *kept_values[L];

/* Values that are keys before their norm and positions. */
static void values_are_keys(void)
{
    for (int il = 0; il < L; il++) {
        const struct gen_tensor *t = vary_find(in_layer(il, "attn_k.weight"));
        float *v = malloc((size_t)(t->ne[0] * t->ne[1]) * sizeof *v);
        if (!v)
            abort();
        gen_weights(v, &vary_model.g, t);
        free(kept_values[il]);
        kept_values[il] = v;
        vary_values(in_layer(il, "attn_v.weight"), v);
    }
}
static void no_values(void)
{
    for (int il = 0; il < L; il++)
        vary_drop_tensor(in_layer(il, "attn_v.weight"));
}

/* Heads of 16 in windows, and every layer has one. */
static void narrow_windows(void)
{
    flags(1, 1, 1, 1, 1);
    vary_u32(".attention.key_length_swa", 16);
    vary_u32(".attention.value_length_swa", 16);
    vary_u32(".rope.dimension_count_swa", 16);
    for (int il = 0; il < L; il++) {
        vary_find(in_layer(il, "attn_q.weight"))->ne[1] = 64;
        vary_find(in_layer(il, "attn_k.weight"))->ne[1] = 32;
        vary_find(in_layer(il, "attn_v.weight"))->ne[1] = 32;
        vary_find(in_layer(il, "attn_output.weight"))->ne[0] = 64;
        vary_find(in_layer(il, "attn_q_norm.weight"))->ne[0] = 16;
        vary_find(in_layer(il, "attn_k_norm.weight"))->ne[0] = 16;
    }
}
static void narrow_all(void)
{
    narrow_windows();
    vary_u32(".attention.key_length", 16);
    vary_u32(".attention.value_length", 16);
    vary_find("rope_freqs.weight")->ne[0] = 8;
}
static void wide_full(void)
{
    narrow_windows();
    flags(1, 1, 1, 1, 0);
}

/* Heads of 16 in four layers, of 32 and with one key in the last. */
static void mixed(void)
{
    const uint32_t n_kv[L] = { 2, 2, 2, 2, 1 };
    narrow_windows();
    flags(1, 1, 1, 1, 0);
    vary_array(".attention.head_count_kv", GGUF_VAL_U32, n_kv, L);
    vary_find("blk.4.attn_q.weight")->ne[1] = 128;
    vary_find("blk.4.attn_k.weight")->ne[1] = 32;
    vary_find("blk.4.attn_v.weight")->ne[1] = 32;
    vary_find("blk.4.attn_output.weight")->ne[0] = 128;
    vary_find("blk.4.attn_q_norm.weight")->ne[0] = 32;
    vary_find("blk.4.attn_k_norm.weight")->ne[0] = 32;
}
/* The same key for each of two heads. */
static void mixed_twice(void)
{
    static float twice[2][64 * E];
    static const char *const names[] = { "blk.4.attn_k.weight",
                                         "blk.4.attn_v.weight" };
    mixed();
    vary_u32(".attention.head_count_kv", 2);
    for (size_t i = 0; i < GG_LEN(names); i++) {
        struct gen_tensor *t = vary_find(names[i]);
        gen_weights(twice[i], &vary_model.g, t);
        memcpy(twice[i] + (size_t)32 * E, twice[i], sizeof(float) * 32 * E);
        t->ne[1] = 64;
        t->values = twice[i];
    }
}

static void check_heads(void)
{
    vary_same("gemma4", mixed, mixed_twice, 1e-12,
              "full layers have widths and keys of their own");
    vary_same("gemma4", values_are_keys, no_values, 0,
              "without attn_v values are keys");
    vary_same("gemma4", narrow_windows, narrow_all, 0,
              "windows have heads of their own width");
    vary_refused("gemma4", wide_full, "'blk.4.attn_q.weight' has shape");
}

/* ---- inputs of layers, scales, experts beside ---- */

static void no_inputs(void)
{
    static const char *const top[] = { "per_layer_token_embd.weight",
                                       "per_layer_model_proj.weight",
                                       "per_layer_proj_norm.weight" };
    static const char *const own[] = { "inp_gate.weight", "proj.weight",
                                       "post_norm.weight" };
    vary_u32(".embedding_length_per_layer_input", 0);
    for (size_t i = 0; i < GG_LEN(top); i++)
        vary_drop_tensor(top[i]);
    for (int il = 0; il < L; il++)
        for (size_t i = 0; i < GG_LEN(own); i++)
            vary_drop_tensor(in_layer(il, own[i]));
}
static void zero_inputs(void)
{
    vary_gain("[.]post_norm[.]", 0);
}
static void half_inputs(void)
{
    vary_drop_tensor("blk.3.inp_gate.weight");
}
static void no_projection(void)
{
    vary_drop_tensor("per_layer_model_proj.weight");
}

static void no_scales(void)
{
    for (int il = 0; il < L; il++)
        vary_drop_tensor(in_layer(il, "layer_output_scale.weight"));
}
static void scales_of_1(void)
{
    static const float one = 1;
    for (int il = 0; il < L; il++)
        vary_values(in_layer(il, "layer_output_scale.weight"), &one);
}

static const float by[X] = { 1, 2, 0.5, 4 };

static void down_scales(void)
{
    for (int il = 0; il < L; il++) {
        gen_tensor(&vary_model.g, X, 0, "blk.%d.ffn_down_exps.scale", il);
        vary_values(in_layer(il, "ffn_down_exps.scale"), by);
    }
}
static void down_scaled(void)
{
    static float v[L][X * FF * E];
    for (int il = 0; il < L; il++) {
        struct gen_tensor *t = vary_find(in_layer(il, "ffn_down_exps.weight"));
        gen_weights(v[il], &vary_model.g, t);
        for (size_t i = 0; i < X * FF * E; i++)
            v[il][i] *= by[i / (FF * E)];
        t->values = v[il];
    }
}
static void no_router_scale(void)
{
    vary_drop_tensor("blk.1.ffn_gate_inp.scale");
}
static void no_norm_beside(void)
{
    vary_drop_tensor("blk.1.pre_ffw_norm_2.weight");
}
/* A layer without router is dense. */
static void dense_layer(void)
{
    vary_drop_tensor("blk.2.ffn_gate_inp.weight");
}

static void check_inputs(void)
{
    vary_same("gemma4", zero_inputs, no_inputs, 0,
              "layers need not have inputs");
    vary_counts("gemma4", NULL, no_inputs, "which count");
    vary_refused("gemma4", half_inputs, "'blk.3.inp_gate.weight' is missing");
    vary_refused("gemma4", no_projection,
                 "'per_layer_model_proj.weight' is missing");
    vary_same("gemma4", scales_of_1, no_scales, 0,
              "layers' results need not be scaled");
    vary_counts("gemma4", NULL, no_scales, "which counts");
    vary_same("gemma4-moe", down_scaled, down_scales, 1e-10,
              "experts' results may be scaled");
    vary_counts("gemma4-moe", NULL, down_scales, "which counts");
    vary_refused("gemma4-moe", no_router_scale,
                 "'blk.1.ffn_gate_inp.scale' is missing");
    vary_refused("gemma4-moe", no_norm_beside,
                 "'blk.1.pre_ffw_norm_2.weight' is missing");
    vary_counts("gemma4-moe", NULL, dense_layer,
                "a layer without router is dense");
}

/* ---- streams ---- */

static void said(void)
{
    vary_u32(".attention.shared_kv_layers", 2);
    vary_u32(".embedding_length_per_layer_input", 256);
    vary_u32(".attention.sliding_window_pattern", 5);
    vary_f32(".final_logit_softcapping", 30);
}
static void listed(void)
{
    bool v[22];
    for (int i = 0; i < 22; i++)
        v[i] = i % 5 != 4;
    vary_array(".attention.sliding_window_pattern", GGUF_VAL_BOOL, v, 22);
}
static void one_more(void)
{
    vary_u32(".attention.shared_kv_layers", 1);
}
static void bare(void)
{
    for (int il = 20; il < 22; il++) {
        vary_drop_tensor(in_layer(il, "attn_k.weight"));
        vary_drop_tensor(in_layer(il, "attn_v.weight"));
    }
}
static void wide_laurel(void)
{
    vary_find("blk.3.laurel_l.weight")->ne[1] = 32;
}

/* Numbers of layers: of the first n this, of the others minus infinity. */
static void above(int n, float v)
{
    float all[22];
    for (int i = 0; i < 22; i++)
        all[i] = i < n ? v : -INFINITY;
    vary_array(".activation_sparsity_scale", GGUF_VAL_F32, all, 22);
}
static void above_as_usual(void)
{
    above(10, 1.6448533535003662f);
}
static void above_in_12(void)
{
    above(12, 1.6448533535003662f);
}
static void above_mean(void)
{
    above(10, 0);
}
static void above_none(void)
{
    above(0, 0);
}
static void above_all(void)
{
    above(4, 30); /* no gate of 48 is that far above their mean */
}
static void nothing_in_4(void)
{
    above_none();
    vary_gain("blk.[0-3].ffn_down", 0);
}
static void above_few(void)
{
    const float v[] = { 1, 2 };
    vary_array(".activation_sparsity_scale", GGUF_VAL_F32, v, 2);
}
static void above_nothing_known(void)
{
    above(3, NAN);
}

static void check_sparse(void)
{
    vary_same("gemma3n", NULL, above_as_usual, 0,
              "a number for each layer that says what is usual");
    vary_counts("gemma3n", NULL, above_in_12, "in two more layers");
    vary_counts("gemma3n", NULL, above_mean, "all gates above their mean");
    vary_counts("gemma3n", NULL, above_none, "in no layer");
    vary_same("gemma3n", above_all, nothing_in_4, 0,
              "where no gate counts nothing is added");
    vary_refused("gemma3n", above_few, "activation_sparsity_scale has 2 elem");
    vary_refused("gemma3n", above_nothing_known,
                 "activation_sparsity_scale is ");
}

static void check_streams(void)
{
    vary_same("gemma3n", NULL, said, 0, "keys that say what is usual");
    vary_same("gemma3n", NULL, listed, 0, "an array of windows");
    vary_counts("gemma3n", NULL, one_more, "how many layers share keys");
    vary_same("gemma3n", NULL, bare, 0, "those need none of their own");
    check_sparse();
    vary_refused("gemma3n", wide_laurel, "'blk.3.laurel_l.weight' has shape");
}

int main(void)
{
    check_shared();
    check_heads();
    check_inputs();
    check_streams();
    for (int il = 0; il < L; il++)
        free(kept_values[il]);
    return done_testing();
}
