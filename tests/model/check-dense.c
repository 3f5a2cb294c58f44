/* check-dense.c - what rows of dense models and of models with experts say
 * beyond their samples */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { N = VARY_N, V = VARY_V };

/* ---- values of one tensor for another ---- */

/* Room for values, which is kept to the end of the test. */
static float *room(size_t n)
{
    static float *kept[256];
    static size_t n_kept;
    float *v = malloc(n * sizeof *v);
    if (!v || n_kept == GG_LEN(kept))
        abort();
    return kept[n_kept++] = v;
}

/* Those that the description gives a tensor. */
static float *values_of(const char *name)
{
    const struct gen_tensor *t = vary_find(name);
    size_t n = 1;
    for (unsigned d = 0; d < t->n_dims; d++)
        n *= (size_t)t->ne[d];
    float *v = room(n);
    gen_weights(v, &vary_model.g, t);
    return v;
}

static void scale(const char *name, int64_t n, const float *v)
{
    gen_tensor(&vary_model.g, n, 0, "%s", name);
    vary_values(name, v);
}

/* ---- scales beside matrices ---- */

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
    float *v = values_of("blk.0.ffn_up_exps.weight");
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
    VARY_SAME("bitnet", q_scale, q_gain, 0, "attn_q.scale");
    VARY_SAME("bitnet", down_scale, down_gain, 0, "ffn_down.scale");
    VARY_SAME("talkie", down_scale, down_gain, 0, "ffn_down.scale");
    VARY_SAME("llama", down_scale, down_gain, 0, "ffn_down.scale");
    VARY_COUNTS("bitnet", NULL, down_scale, "scales count");
    VARY_SAME("qwen3moe", up_scales, up_gain, 0, "a scale for each expert");
    VARY_SAME("qwen3moe", up_scale, up_gain, 0, "one for all experts");
    VARY_SAME("qwen3moe", own_scales, own_gains, 0, "of an expert's own");
    VARY_SAME("qwen3moe", NULL, input_scale, 0, "scales of activations");
    VARY_REFUSED("qwen3moe", three_scales,
                 "'blk.0.ffn_up_exps.scale' has 3 elements, must have 1 or 4");
    VARY_SAME("llama", end_scales, end_gains, 0, "of embeddings and output");
    VARY_SAME("llama", tied_scale, tied_gain, 0, "of both in one matrix");
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
    VARY_SAME("apertus", NULL, same_arrays, 0, "numbers or arrays of them");
    VARY_COUNTS("apertus", NULL, other_arrays, "each layer has its numbers");
    VARY_REFUSED("apertus", short_array, "xielu.beta has 3 elements");
    VARY_REFUSED("apertus", not_finite, "xielu.beta is nan in layer 1");
    VARY_REFUSED("apertus", no_xielu, "'xielu.eps' is missing");
    VARY_SAME("apertus", NULL, norm_biases, 0, "biases of norms are idle");
    VARY_COUNTS("apertus", NULL, freqs, "rope_freqs counts");
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
    VARY_SAME("grok", grok_bare, grok_told, 0, "what counts without keys");
    VARY_SAME("grok", no_result, no_other_result, 0,
              "the last norm under another name");
    VARY_COUNTS("grok", NULL, no_dense, "the dense part counts");
    VARY_SAME("grok", zero_dense, no_dense, 1e-7,
              "one of zeros does not, but for half of the sum");
    VARY_REFUSED("grok", half_dense, "'blk.1.ffn_gate.weight' is missing");
    VARY_SAME("grok", yarn, yarn_8, 0, "YaRN's fast beta is 8");
    VARY_COUNTS("grok", yarn, yarn_32, "unless the key is there");
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
    VARY_SAME("deci", no_attention, zero_attention, 1e-12,
              "a first layer without heads");
    VARY_SAME("deci", last_no_attention, last_zero_attention, 1e-12,
              "a last layer without heads");
    VARY_COUNTS("deci", linear, no_attention, "a matrix in place of heads");
    const double d = vary_apart("deci", linear, own_value, N, 1);
    ok(d < 1e-12, "which reads the norm: %.2g", d);
    VARY_SAME("deci", no_ffn, zero_ffn, 1e-12,
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
    vary_values("token_embd.weight", values_of("output.weight"));
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
    VARY_SAME("cogvlm", NULL, other_base, 0, "keys of positions are idle");
    VARY_SAME("cogvlm", NULL, no_images, 0, "the images' weights are idle");
    VARY_SAME("codeshell", one_table, equal_tables, 0,
              "the output is the embeddings");
    VARY_SAME("mpt", act_scales, half_down, 1e-12, "activations are divided");
    VARY_COUNTS("mpt", NULL, no_act_scales, "or not");
    VARY_COUNTS("mpt", NULL, wide_norms, "norms of all heads");
    VARY_SAME("mpt", wide_norms, wide_gains, 1e-8, "of fused q and k");
    VARY_COUNTS("mpt", NULL, mpt_rest, "a clamp, positions, biases");
    VARY_SAME("arctic", no_chosen, no_input, 0,
              "experts read ffn_norm_exps alone");
    VARY_COUNTS("arctic", NULL, no_input, "and count");
}

/* ---- experts ---- */

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
        const float *both = values_of(name);
        vary_drop_tensor(name);
        for (int up = 0; up < 2; up++) {
            float *v = room((size_t)(half * t.ne[2]));
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
            float *v = values_of(name);
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
    VARY_COUNTS("llama-moe", NULL, no_gates, "experts without gates");
    VARY_SAME("hy_v3", NULL, fused_apart, 1e-13, "gate and up in one or two");
    VARY_SAME("hy_v3", NULL, no_gating, 0, "a sigmoid without the key");
    VARY_COUNTS("hy_v3", NULL, softmax, "softmax by the key");
    VARY_COUNTS("hy_v3", NULL, no_select, "the bias for choosing");
    VARY_REFUSED("hy_v3", no_count, "hy_v3.expert_count: it is missing");
    VARY_REFUSED("grovemoe", not_whole,
                 "grovemoe.experts_per_group is 3, does not divide");
    VARY_SAME("grovemoe", no_groups, zero_groups, 0, "chunks of zeros");
    VARY_COUNTS("grovemoe", NULL, no_groups, "chunk experts count");
    VARY_SAME("grovemoe", one_chunk, equal_chunks, 1e-12,
              "weights of chunks add to 1");
    VARY_COUNTS("bailingmoe2", NULL, softplus, "the root of softplus by key");
    VARY_SAME("bailingmoe2", no_router, no_router_softplus, 1e-12,
              "as its name says");
    VARY_COUNTS("phimoe", NULL, layer_eps, "layer norms by their key");
    VARY_REFUSED("phimoe", no_eps,
                 "'phimoe.attention.layer_norm_rms_epsilon' is missing");
    VARY_SAME("ernie4_5", NULL, out_biases, 0, "biases of outputs are idle");
}

/* ---- nanbeige: loops ---- */

static void once(void)
{
    vary_u32(".num_loops", 1);
}
static void once_by_default(void)
{
    vary_drop(".num_loops");
}
/* Four layers, of which the last two have the weights of the first. */
static void unrolled(void)
{
    const size_t n = vary_model.g.n;
    once();
    vary_u32(".block_count", 4);
    for (size_t i = 0; i < n; i++) {
        const struct gen_tensor t = vary_model.g.t[i];
        int il, at;
        if (sscanf(t.name, "blk.%d.%n", &il, &at) != 1)
            continue;
        gen_tensor(&vary_model.g, 1, 0, "blk.%d.%s", il + 2, t.name + at);
        struct gen_tensor *to = &vary_model.g.t[vary_model.g.n - 1];
        to->n_dims = t.n_dims;
        memcpy(to->ne, t.ne, sizeof t.ne);
        to->values = values_of(t.name);
    }
}
static void between(void)
{
    vary_bool(".skip_loop_final_norm", false);
}
static void between_by_default(void)
{
    vary_drop(".skip_loop_final_norm");
}
static void many_loops(void)
{
    vary_u32(".num_loops", 65);
}

static void check_loops(void)
{
    VARY_SAME("nanbeige", once, once_by_default, 0, "one loop by default");
    VARY_COUNTS("nanbeige", NULL, once, "two are more");
    VARY_SAME("nanbeige", NULL, unrolled, 0, "as much as twice the layers");
    VARY_COUNTS("nanbeige", NULL, between, "a norm between them");
    VARY_SAME("nanbeige", between, between_by_default, 0, "by default");
    VARY_REFUSED("nanbeige", many_loops, "nanbeige.num_loops is 65");
}

/* ---- chameleon ---- */

static void swin(void)
{
    vary_bool(".swin_norm", true);
}
static void swin_nothing(void)
{
    swin();
    vary_gain("attn_norm|ffn_norm", 0);
}
static void nothing(void)
{
    vary_gain("attn_output|ffn_down", 0);
}
/* Queries and keys of no length: only the norm's own epsilon, not the key's,
 * says how long they become. */
static void short_q(void)
{
    vary_gain("attn_q.weight", 1e-3);
}
static void short_q_other_eps(void)
{
    short_q();
    vary_f32(".attention.layer_norm_rms_epsilon", 1e-6f);
}
static void head_biases(void)
{
    for (int il = 0; il < 2; il++) {
        gen_tensor(&vary_model.g, 32, 4, "blk.%d.attn_q_norm.bias", il);
        gen_tensor(&vary_model.g, 32, 2, "blk.%d.attn_k_norm.bias", il);
    }
}

static void check_struck(void)
{
    static float x[N * V];
    struct gguf_error err;
    unsigned n_struck = 0, n_left = 0;
    const bool good = vary_outputs("chameleon", NULL, N, N, x, &err);
    for (int i = 0; good && i < N * V; i++)
        if (i % V < 4)
            n_left += fabsf(x[i]) < 100;
        else
            n_struck += x[i] == -FLT_MAX;
    ok(n_left == 4 * N && n_struck == (V - 4) * N,
       "chameleon: logits of images are struck out in every row: %s",
       good ? "" : err.message);
}

/* Logits that are left, of the first four tokens. */
static double left_apart(vary_fn *a, vary_fn *b)
{
    static float x[N * V], y[N * V];
    struct gguf_error err;
    double d = 0, s = 0;
    if (!vary_outputs("chameleon", a, N, N, x, &err) ||
        !vary_outputs("chameleon", b, N, N, y, &err))
        return 9;
    for (int i = 0; i < N * V; i++)
        if (i % V < 4) {
            d += pow((double)x[i] - (double)y[i], 2);
            s += pow((double)y[i], 2);
        }
    return d / s;
}

static void check_chameleon(void)
{
    check_struck();
    double d = left_apart(NULL, swin);
    ok(d > 1e-4 && d < 9, "chameleon: swin_norm counts: %.2g", d);
    d = left_apart(swin_nothing, nothing);
    ok(d < 1e-12, "chameleon: norms are of the results then: %.2g", d);
    d = left_apart(NULL, head_biases);
    ok(d > 1e-6 && d < 9, "chameleon: biases of head norms: %.2g", d);
    d = left_apart(short_q, short_q_other_eps);
    ok(d < 1e-6, "chameleon: head norms have 1e-5: %.2g", d);
}

int main(void)
{
    check_scales();
    check_quiet();
    check_apertus();
    check_grok();
    check_deci();
    check_some();
    check_experts();
    check_loops();
    check_chameleon();
    return done_testing();
}
