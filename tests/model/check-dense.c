/* SPDX-License-Identifier: MIT */
/* check-dense.c - what rows of dense models say beyond their samples, and
 * scales beside matrices */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary_tap.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { N = VARY_N, V = VARY_V };

/* ---- scales beside matrices ---- */

static void scale(const char *name, int64_t n, const float *v)
{
    gen_tensor(&vary_model.g, n, 0, "%s", name);
    vary_values(name, v);
}

static const float twos[] = { 2, 2, 2, 2 }, halves[] = { 1, 2, 4, 0.5f };

static void q_scale(void)
{
    scale("blk.1.attn_q.scale", 1, twos);
}
static void q_gain(void)
{
    vary_gain("blk.1.attn_q.weight", 2);
}
static void down_scale(void)
{
    scale("blk.0.ffn_down.scale", 1, twos);
}
static void down_gain(void)
{
    vary_gain("blk.0.ffn_down.weight", 2);
}
static void up_scales(void)
{
    scale("blk.0.ffn_up_exps.scale", 4, twos);
}
static void up_scale(void)
{
    scale("blk.0.ffn_up_exps.scale", 1, twos);
}
static void up_gain(void)
{
    vary_gain("blk.0.ffn_up_exps.weight", 2);
}
static void own_scales(void)
{
    scale("blk.0.ffn_up_exps.scale", 4, halves);
}
static void own_gains(void)
{
    float *v = vary_values_of("blk.0.ffn_up_exps.weight");
    const struct gen_tensor *t = vary_find("blk.0.ffn_up_exps.weight");
    const int64_t n = t->ne[0] * t->ne[1];
    for (int64_t i = 0; i < n * t->ne[2]; i++)
        v[i] *= halves[i / n];
    vary_values(t->name, v);
}
static void three_scales(void)
{
    scale("blk.0.ffn_up_exps.scale", 3, twos);
}
static void input_scale(void)
{
    gen_tensor(&vary_model.g, 1, 0, "blk.0.ffn_up_exps.input_scale");
}
static void end_scales(void)
{
    scale("token_embd.scale", 1, twos);
    scale("output.scale", 1, twos);
}
static void end_gains(void)
{
    vary_gain("^(token_embd|output).weight", 2);
}
static void tied_scale(void)
{
    vary_drop_tensor("output.weight");
    scale("token_embd.scale", 1, twos);
}
static void tied_gain(void)
{
    vary_drop_tensor("output.weight");
    vary_gain("token_embd.weight", 2);
}

static void check_scales(void)
{
    vary_same("bitnet", q_scale, q_gain, 0, "attn_q.scale");
    vary_same("bitnet", down_scale, down_gain, 0, "ffn_down.scale");
    vary_same("talkie", down_scale, down_gain, 0, "ffn_down.scale");
    vary_same("llama", down_scale, down_gain, 0, "ffn_down.scale");
    vary_counts("bitnet", NULL, down_scale, "scales count");
    vary_same("qwen3moe", up_scales, up_gain, 0, "a scale for each expert");
    vary_same("qwen3moe", up_scale, up_gain, 0, "one for all experts");
    vary_same("qwen3moe", own_scales, own_gains, 0, "of an expert's own");
    vary_same("qwen3moe", NULL, input_scale, 0, "scales of activations");
    vary_refused("qwen3moe", three_scales,
                 "'blk.0.ffn_up_exps.scale' has 3 elements, must have 1 or 4");
    vary_same("llama", end_scales, end_gains, 0, "of embeddings and output");
    vary_same("llama", tied_scale, tied_gain, 0, "of both in one matrix");
}

static void count(void *user, const char *message)
{
    printf("# %s\n", message);
    ++*(unsigned *)user;
}

/* Scales of activations are no weights that a model should have used. */
static void check_quiet(void)
{
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    struct gguf_file *file = NULL;
    struct gguf_model *model = NULL;
    struct gguf_error err;
    unsigned n_warned = 0;
    size_t size;
    if (!skeleton_open(&vary_model, "qwen3moe"))
        abort();
    input_scale();
    void *data = gen_file(&vary_model.g, GGUF_DTYPE_F32, &size);
    p.warn = count;
    p.warn_user = &n_warned;
    if (gguf_file_open_memory(&file, data, size, NULL, &err) ||
        gguf_model_open(&model, file, &p, &err))
        ok(0, "%s", err.message);
    else
        ok(!n_warned, "no warning of scales of activations");
    gguf_model_destroy(model);
    gguf_file_close(file);
    free(data);
    skeleton_close(&vary_model);
}

/* ---- apertus ---- */

static void arrays(float step)
{
    static const char *const keys[] = { "xielu.alpha_n", "xielu.alpha_p",
                                        "xielu.beta", "xielu.eps" };
    static const float v[] = { 0.8f, 0.7f, 0.5f, -1e-6f };
    for (size_t i = 0; i < GG_LEN(keys); i++)
        vary_array(keys[i], GGUF_VAL_F32,
                   (const float[]){ v[i], v[i] + (i < 3 ? step : 0) }, 2);
}
static void same_arrays(void)
{
    arrays(0);
}
static void other_arrays(void)
{
    arrays(0.25f);
}
static void short_array(void)
{
    vary_array("xielu.beta", GGUF_VAL_F32, (const float[]){ 1, 1, 1 }, 3);
}
static void not_finite(void)
{
    vary_array("xielu.beta", GGUF_VAL_F32, (const float[]){ 1, NAN }, 2);
}
static void no_xielu(void)
{
    vary_drop("xielu.eps");
}
static void norm_biases(void)
{
    for (int il = 0; il < 2; il++) {
        gen_tensor(&vary_model.g, 32, 0, "blk.%d.attn_q_norm.bias", il);
        gen_tensor(&vary_model.g, 32, 0, "blk.%d.attn_k_norm.bias", il);
    }
}
static void freqs(void)
{
    gen_tensor(&vary_model.g, 16, 0, "rope_freqs.weight");
}

static void check_apertus(void)
{
    vary_same("apertus", NULL, same_arrays, 0, "numbers or arrays of them");
    vary_counts("apertus", NULL, other_arrays, "each layer has its numbers");
    vary_refused("apertus", short_array, "xielu.beta has 3 elements");
    vary_refused("apertus", not_finite, "xielu.beta is nan in layer 1");
    vary_refused("apertus", no_xielu, "'xielu.eps' is missing");
    vary_same("apertus", NULL, norm_biases, 0, "biases of norms are idle");
    vary_counts("apertus", NULL, freqs, "rope_freqs counts");
}

/* ---- grok ---- */

static void grok_bare(void)
{
    vary_drop(".embedding_scale");
    vary_drop(".logit_scale");
    vary_drop(".attention.output_scale");
    vary_drop(".attn_logit_softcapping");
    vary_drop(".router_logit_softcapping");
    vary_drop(".final_logit_softcapping");
    vary_drop(".expert_feed_forward_length");
    for (int il = 0; il < 2; il++) {
        static const char *const names[] = { "gate", "up", "down" };
        for (int i = 0; i < 3; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", il,
                     names[i]);
            vary_find(name)->ne[i == 2 ? 0 : 1] = 192;
        }
    }
}
static void grok_told(void)
{
    grok_bare();
    vary_f32(".embedding_scale", 78.38367176906169f);
    vary_f32(".logit_scale", 0.5773502691896257f);
    vary_f32(".attention.output_scale", 0.08838834764831845f);
    vary_f32(".attn_logit_softcapping", 30);
    vary_f32(".final_logit_softcapping", 0);
    vary_u32(".expert_feed_forward_length", 192);
}
static void no_result(void)
{
    vary_gain("layer_output_norm", 0);
}
static void other_name(void)
{
    for (int il = 0; il < 2; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.layer_output_norm.weight", il);
        vary_drop_tensor(name);
        gen_tensor(&vary_model.g, V, 0, "blk.%d.post_ffw_norm.weight", il);
    }
}
static void no_other_result(void)
{
    other_name();
    vary_gain("post_ffw_norm", 0);
}
static void no_dense(void)
{
    for (int il = 0; il < 2; il++) {
        static const char *const names[] = { "gate", "up", "down" };
        for (int i = 0; i < 3; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.ffn_%s.weight", il, names[i]);
            vary_drop_tensor(name);
        }
    }
}
static void half_dense(void)
{
    vary_drop_tensor("blk.1.ffn_gate.weight");
}
static void zero_dense(void)
{
    vary_gain("ffn_down.weight", 0);
}
static void yarn(void)
{
    vary_str(".rope.scaling.type", "yarn");
    vary_f32(".rope.scaling.factor", 8);
    vary_u32(".rope.scaling.original_context_length", 4096);
}
static void yarn_8(void)
{
    yarn();
    vary_f32(".rope.scaling.yarn_beta_fast", 8);
}
static void yarn_32(void)
{
    yarn();
    vary_f32(".rope.scaling.yarn_beta_fast", 32);
}

static void check_grok(void)
{
    vary_same("grok", grok_bare, grok_told, 0, "what counts without keys");
    vary_same("grok", no_result, no_other_result, 0,
              "the last norm under another name");
    vary_counts("grok", NULL, no_dense, "the dense part counts");
    vary_same("grok", zero_dense, no_dense, 1e-7,
              "one of zeros does not, but for half of the sum");
    vary_refused("grok", half_dense, "'blk.1.ffn_gate.weight' is missing");
    vary_same("grok", yarn, yarn_8, 0, "YaRN's fast beta is 8");
    vary_counts("grok", yarn, yarn_32, "unless the key is there");
}

/* ---- deci: layers of arrays ---- */

static void drop_of(int il, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", il, names[i]);
        vary_drop_tensor(name);
    }
}
static void no_attention(void)
{
    static const char *const names[] = { "attn_norm", "attn_q", "attn_k",
                                         "attn_v", "attn_output" };
    vary_i32s(".attention.head_count", (const int32_t[]){ 0, 4 }, 2);
    vary_i32s(".attention.head_count_kv", (const int32_t[]){ 0, 1 }, 2);
    drop_of(0, names, GG_LEN(names));
}
static void last_no_attention(void)
{
    static const char *const names[] = { "attn_norm", "attn_q", "attn_k",
                                         "attn_v", "attn_output" };
    vary_i32s(".attention.head_count", (const int32_t[]){ 4, 0 }, 2);
    vary_i32s(".attention.head_count_kv", (const int32_t[]){ 2, 0 }, 2);
    drop_of(1, names, GG_LEN(names));
}
static void zero_attention(void)
{
    vary_gain("blk.0.attn_output", 0);
}
static void last_zero_attention(void)
{
    vary_gain("blk.1.attn_output", 0);
}
static void linear(void)
{
    static const char *const names[] = { "attn_q", "attn_k", "attn_v" };
    vary_i32s(".attention.head_count_kv", (const int32_t[]){ 0, 1 }, 2);
    drop_of(0, names, GG_LEN(names));
}
/* A lone token takes its own value only. */
static void own_value(void)
{
    static float one[V * V];
    for (int i = 0; i < V; i++)
        one[i * V + i] = 1;
    vary_i32s(".attention.head_count_kv", (const int32_t[]){ 4, 1 }, 2);
    vary_find("blk.0.attn_k.weight")->ne[1] = V;
    vary_find("blk.0.attn_v.weight")->ne[1] = V;
    vary_values("blk.0.attn_v.weight", one);
}
static void no_ffn(void)
{
    static const char *const names[] = { "ffn_norm", "ffn_gate", "ffn_up",
                                         "ffn_down" };
    vary_i32s(".feed_forward_length", (const int32_t[]){ 192, 0 }, 2);
    drop_of(1, names, GG_LEN(names));
}
static void zero_ffn(void)
{
    vary_gain("blk.1.ffn_down", 0);
}

static void check_deci(void)
{
    vary_same("deci", no_attention, zero_attention, 1e-12,
              "a first layer without heads");
    vary_same("deci", last_no_attention, last_zero_attention, 1e-12,
              "a last layer without heads");
    vary_counts("deci", linear, no_attention, "a matrix in place of heads");
    const double d = vary_apart("deci", linear, own_value, N, 1);
    ok(d < 1e-12, "which reads the norm: %.2g", d);
    vary_same("deci", no_ffn, zero_ffn, 1e-12,
              "a layer without a feed-forward part attends");
}

/* ---- cogvlm, codeshell, mpt, arctic ---- */

static void other_base(void)
{
    vary_f32(".rope.freq_base", 500);
    vary_f32(".rope.scaling.factor", 4);
    freqs();
}
static void no_images(void)
{
    vary_gain("vis_", 0);
}
static void one_table(void)
{
    vary_drop_tensor("token_embd.weight");
}
static void equal_tables(void)
{
    vary_values("token_embd.weight", vary_values_of("output.weight"));
}
static void act_scales(void)
{
    vary_gain("ffn.act.scales", 2);
}
static void half_down(void)
{
    vary_gain("ffn_down.weight", 0.5);
}
static void no_act_scales(void)
{
    vary_drop_tensor("blk.0.ffn.act.scales");
    vary_drop_tensor("blk.1.ffn.act.scales");
}
static void wide_norms(void)
{
    for (int il = 0; il < 2; il++) {
        gen_tensor(&vary_model.g, V, 0, "blk.%d.attn_q_norm.weight", il);
        gen_tensor(&vary_model.g, V, 0, "blk.%d.attn_q_norm.bias", il);
        gen_tensor(&vary_model.g, V, 0, "blk.%d.attn_k_norm.weight", il);
        gen_tensor(&vary_model.g, V, 0, "blk.%d.attn_k_norm.bias", il);
    }
}
/* Norms take the factor of queries and keys away, the output that of values. */
static void wide_gains(void)
{
    wide_norms();
    vary_gain("attn_qkv", 2);
    vary_gain("attn_output", 0.5);
}
static void mpt_rest(void)
{
    vary_f32(".attention.clamp_kqv", 0.5f);
    gen_tensor(&vary_model.g, V, 128, "position_embd.weight");
    gen_tensor(&vary_model.g, V, 0, "output_norm.bias");
    for (int il = 0; il < 2; il++) {
        gen_tensor(&vary_model.g, 3 * V, 0, "blk.%d.attn_qkv.bias", il);
        gen_tensor(&vary_model.g, V, 0, "blk.%d.ffn_down.bias", il);
    }
}
static void no_chosen(void)
{
    vary_gain("ffn_down_exps", 0);
}
static void no_input(void)
{
    vary_gain("ffn_norm_exps", 0);
}

static void check_some(void)
{
    vary_same("cogvlm", NULL, other_base, 0, "keys of positions are idle");
    vary_same("cogvlm", NULL, no_images, 0, "the images' weights are idle");
    vary_same("codeshell", one_table, equal_tables, 0,
              "the output is the embeddings");
    vary_same("mpt", act_scales, half_down, 1e-12, "activations are divided");
    vary_counts("mpt", NULL, no_act_scales, "or not");
    vary_counts("mpt", NULL, wide_norms, "norms of all heads");
    vary_same("mpt", wide_norms, wide_gains, 1e-8, "of fused q and k");
    vary_counts("mpt", NULL, mpt_rest, "a clamp, positions, biases");
    vary_same("arctic", no_chosen, no_input, 0,
              "experts read ffn_norm_exps alone");
    vary_counts("arctic", NULL, no_input, "and count");
}

int main(void)
{
    check_scales();
    check_quiet();
    check_apertus();
    check_grok();
    check_deci();
    check_some();
    return done_testing();
}
