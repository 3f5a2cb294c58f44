/* check-branches.c - what rows of architectures say beyond their samples: keys
 * and tensors that files may have, by small changes of these models */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/run.h"
#include "tests/model/skeleton.h"
#include "tests/tap.h"

#include <math.h>

enum { N = SKELETON_TOKENS, V = SKELETON_VOCAB };

static struct skeleton m;

static void must(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

static void u32(const char *key, uint32_t v)
{
    must(gguf_meta_set_u32(m.g.meta, key, v, NULL));
}

static void f32(const char *key, float v)
{
    must(gguf_meta_set_f32(m.g.meta, key, v, NULL));
}

static void str(const char *key, const char *s)
{
    must(gguf_meta_set_str(m.g.meta, key, (struct gguf_str){ s, strlen(s) },
                           NULL));
}

static void sections(const char *key, int32_t first)
{
    const int32_t v[] = { first, first, first, 0 };
    must(gguf_meta_set_array(m.g.meta, key, GGUF_VAL_I32, v, 4, NULL));
}

static void drop(const char *key)
{
    gguf_meta_remove(m.g.meta, key);
}

static void drop_tensor(const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < m.g.n; i++)
        if (strcmp(m.g.t[i].name, name))
            m.g.t[n++] = m.g.t[i];
    if (n == m.g.n)
        abort();
    m.g.n = n;
}

/* ---- models that differ in one thing ---- */

/* Logits or states of a changed model of that name, of n_tok tokens in a
 * context; false: err says why it cannot be opened. */
static bool outputs(const char *name, void (*change)(void), uint32_t n_ctx,
                    size_t n_tok, float *out, struct gguf_error *err)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[N];
    uint8_t want[N];
    const float *rows;
    struct run r;
    size_t size;
    if (!skeleton_open(&m, name))
        abort();
    if (change)
        change();
    void *file = gen_file(&m.g, GGUF_DTYPE_F32, &size);
    p.n_ctx = n_ctx;
    skeleton_tokens(tok);
    memset(want, 1, sizeof want);
    b.n = n_tok;
    b.token = tok;
    b.want = want;
    bool good = run_open(&r, file, size, 1, &p);
    if (good && !gguf_model_get_info(r.model)->has_logits) {
        good =
            gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
            gguf_session_states(r.session, 0, n_tok, &rows, &r.err) == GGUF_OK;
        if (good)
            memcpy(out, rows, n_tok * V * sizeof *out);
    } else if (good) {
        good = run_logits(&r, &b, out);
    }
    *err = r.err;
    run_close(&r);
    free(file);
    skeleton_close(&m);
    return good;
}

/* How far two variants are from each other; 9: one cannot be opened. */
static double apart(const char *name, void (*a)(void), void (*b)(void),
                    uint32_t n_ctx, size_t n_tok)
{
    static float x[N * V], y[N * V];
    struct gguf_error err;
    if (outputs(name, a, n_ctx, n_tok, x, &err) &&
        outputs(name, b, n_ctx, n_tok, y, &err))
        return run_nmse(x, y, n_tok * V);
    printf("# %s: %s\n", name, err.message);
    return 9;
}

/* ---- refused ---- */

static void olmo2_window(void)
{
    u32("olmo2.attention.sliding_window", 8);
}
static void glm4_axes(void)
{
    sections("glm4.rope.dimension_sections", 4);
}
static void glm4_all_draft(void)
{
    u32("glm4.nextn_predict_layers", 2);
}
static void arcee_factors(void)
{
    str("arcee.rope.scaling.type", "longrope");
}
static void half_latent(void)
{
    drop_tensor("blk.2.ffn_latent_up.weight");
}
static void refact_experts(void)
{
    u32("refact.expert_count", 4);
    u32("refact.expert_used_count", 2);
}
static void groups(void)
{
    u32("qwen3moe.expert_group_count", 2);
}
static void no_gate(void)
{
    drop_tensor("blk.0.ffn_gate_exps.weight");
}
static void not_causal(void)
{
    must(gguf_meta_set_bool(m.g.meta, "qwen3.attention.causal", false, NULL));
}

static void exaone4_windows(void)
{
    u32("exaone4.block_count", 64);
    for (int i = 0; i < 64; i++)
        gen_tensor(&m.g, 1, 0, "pad.%d", i);
}
static void no_gating(void)
{
    drop("dots1.expert_gating_func");
}
static void other_gating(void)
{
    u32("bailingmoe2.expert_gating_func", 4);
}

static const struct {
    const char *name;
    void (*change)(void);
    const char *says;
} refused[] = {
    { "olmo2", olmo2_window, "olmo2.attention.sliding_window: windows" },
    { "glm4", glm4_axes, "glm4.rope.dimension_sections: positions" },
    { "glm4", glm4_all_draft, "glm4.nextn_predict_layers: the file has only" },
    { "arcee", arcee_factors, "rope.scaling.type 'longrope' is not" },
    { "nemotron_h_moe-moe", half_latent,
      "'blk.2.ffn_latent_up.weight' is missing" },
    { "refact", refact_experts, "refact.expert_count is 4: models of" },
    { "qwen3moe", groups, "qwen3moe.expert_group_count is 2: groups" },
    { "granitemoe-moe", no_gate, "'blk.0.ffn_gate_exps.weight' is missing" },
    { "exaone4", exaone4_windows,
      "exaone4.attention.sliding_window: windows" },
    { "dots1", no_gating, "dots1.expert_gating_func: it is missing" },
    { "bailingmoe2", other_gating, "bailingmoe2.expert_gating_func: it is" },
    { "qwen3", not_causal, "qwen3.attention.causal is false" },
};

static void check_refused(void)
{
    static float out[N * V];
    for (size_t i = 0; i < GG_LEN(refused); i++) {
        struct gguf_error err;
        const bool opens =
            outputs(refused[i].name, refused[i].change, N, N, out, &err);
        ok(!opens && strstr(err.message, refused[i].says), "%s: %s",
           refused[i].name, opens ? "is evaluated" : err.message);
    }
}

/* ---- what changes nothing ---- */

static void glm4_no_axes(void)
{
    sections("glm4.rope.dimension_sections", 0);
}
static void glm4_draft(void)
{
    u32("glm4.block_count", 3);
    u32("glm4.nextn_predict_layers", 1);
}
static void output_bias(void)
{
    gen_tensor(&m.g, V, 0, "output.bias");
}
static void ffn_biases(void)
{
    for (int il = 0; il < 2; il++) {
        gen_tensor(&m.g, 192, 0, "blk.%d.ffn_gate.bias", il);
        gen_tensor(&m.g, 192, 0, "blk.%d.ffn_up.bias", il);
        gen_tensor(&m.g, 128, 0, "blk.%d.ffn_down.bias", il);
    }
}
static void more_biases(void)
{
    ffn_biases();
    for (int il = 0; il < 2; il++)
        gen_tensor(&m.g, 128, 0, "blk.%d.attn_output.bias", il);
}
static void biases_and_freqs(void)
{
    more_biases();
    gen_tensor(&m.g, 16, 0, "rope_freqs.weight");
}
static void phi3_window(void)
{
    u32("phi3.attention.sliding_window", 8);
}
static void exaone4_window(void)
{
    u32("exaone4.attention.sliding_window", 8);
}
static void freqs(void)
{
    gen_tensor(&m.g, 16, 0, "rope_freqs.weight");
}
static void no_window(void)
{
    u32("olmo2.attention.sliding_window", 0);
}

static const struct {
    const char *name;
    void (*change)(void);
    const char *what;
} same[] = {
    { "glm4", glm4_no_axes, "sections of no axes" },
    { "glm4", glm4_draft, "a last layer that drafts" },
    { "dream", output_bias, "a bias of logits" },
    { "llada", biases_and_freqs, "biases and rope_freqs" },
    { "refact", more_biases, "biases" },
    { "nomic-bert", ffn_biases, "biases of the feed-forward part" },
    { "phi3", phi3_window, "a window" },
    { "exaone4", exaone4_window, "a window, with 2 layers" },
    { "pangu-embedded", freqs, "rope_freqs" },
    { "olmo2", no_window, "a window of 0" },
};

static void check_same(void)
{
    for (size_t i = 0; i < GG_LEN(same); i++)
        ok(apart(same[i].name, NULL, same[i].change, N, N) == 0,
           "%s: no bit depends on %s", same[i].name, same[i].what);
}

/* ---- what changes something, and what ---- */

static void llama_biases(void)
{
    ffn_biases();
}

static void bare(void)
{
    drop("minicpm.embedding_scale");
    drop("minicpm.residual_scale");
    drop("minicpm.logit_scale");
}
static void told(void)
{
    f32("minicpm.embedding_scale", 12);
    f32("minicpm.residual_scale", 1.4f / sqrtf(2));
    f32("minicpm.logit_scale", 0.5f);
}
static void long_only(void)
{
    gen_tensor(&m.g, 16, 0, "rope_factors_long.weight");
    u32("phi3.rope.scaling.original_context_length", 32);
}
static void short_only(void)
{
    gen_tensor(&m.g, 16, 0, "rope_factors_short.weight");
    u32("phi3.rope.scaling.original_context_length", 32);
}
static void named(void)
{
    str("phi3.rope.scaling.type", "longrope");
    long_only();
}

static void check_factors(void)
{
    const double l32 = apart("phi3", NULL, long_only, 32, 32);
    const double l33 = apart("phi3", NULL, long_only, 33, 32);
    const double s32 = apart("phi3", NULL, short_only, 32, 32);
    const double s33 = apart("phi3", NULL, short_only, 33, 32);
    ok(l32 == 0 && l33 > 1e-4 && l33 < 9,
       "long factors, in contexts of more than before scaling: %g, %g", l32,
       l33);
    ok(s33 == 0 && s32 > 1e-4 && s32 < 9,
       "short factors, in the others: %g, %g", s33, s32);
    ok(apart("phi3", long_only, named, N, N) == 0,
       "whether or not the file names the scaling");
}

/* ---- parallel parts ---- */

static void gain(const char *pattern, double factor)
{
    if (!gen_gain(&m.g, pattern, factor))
        abort();
}

/* What the feed-forward part reads is the norm's bias then, in any order. */
static void no_ffn_norm(void)
{
    gain("ffn_norm", 0);
}
static void serial(void)
{
    must(gguf_meta_set_bool(m.g.meta, "gptneox.use_parallel_residual", false,
                            NULL));
}
static void serial_no_ffn_norm(void)
{
    serial();
    no_ffn_norm();
}
static void no_attention(void)
{
    gain("attn_output", 0);
}
static void second_norm(void)
{
    for (int il = 0; il < 2; il++)
        gen_tensor(&m.g, 128, 0, "blk.%d.attn_norm_2.weight", il);
}
/* Attention reads zeros, the feed-forward part what it did. */
static void second_norm_of_zeros(void)
{
    second_norm();
    gain("attn_norm_2", 0);
}
static void one_norm(void)
{
    for (int il = 0; il < 2; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_norm.weight", il);
        drop_tensor(name);
    }
}
static void norms_of_heads(void)
{
    for (int il = 0; il < 2; il++) {
        gen_tensor(&m.g, 32, 4, "blk.%d.attn_q_norm.weight", il);
        gen_tensor(&m.g, 32, 2, "blk.%d.attn_k_norm.weight", il);
    }
}

/* Layers after the 32nd, which add nothing. */
static void baichuan_layers(int n)
{
    static const char *const names[] = { "attn_q", "attn_k", "attn_v",
                                         "attn_output" };
    u32("baichuan.block_count", (uint32_t)n);
    gain("blk.3[2-9].(attn_output|ffn_down)", 0);
    const struct gen_tensor *up = NULL, *k = NULL;
    for (size_t i = 0; i < m.g.n; i++) {
        if (!strcmp(m.g.t[i].name, "blk.0.ffn_up.weight"))
            up = &m.g.t[i];
        if (!strcmp(m.g.t[i].name, "blk.0.attn_k.weight"))
            k = &m.g.t[i];
    }
    if (!up || !k)
        abort();
    const int64_t e = up->ne[0], f = up->ne[1], g = k->ne[1];
    for (int il = 32; il < n; il++) {
        for (size_t i = 0; i < GG_LEN(names); i++)
            gen_tensor(&m.g, e, i == 1 || i == 2 ? g : e, "blk.%d.%s.weight",
                       il, names[i]);
        gen_tensor(&m.g, e, 0, "blk.%d.attn_norm.weight", il);
        gen_tensor(&m.g, e, 0, "blk.%d.ffn_norm.weight", il);
        gen_tensor(&m.g, e, f, "blk.%d.ffn_gate.weight", il);
        gen_tensor(&m.g, e, f, "blk.%d.ffn_up.weight", il);
        gen_tensor(&m.g, f, e, "blk.%d.ffn_down.weight", il);
    }
}
static void layers_33(void)
{
    baichuan_layers(33);
}
static void layers_34_based(void)
{
    baichuan_layers(34);
    f32("baichuan.rope.freq_base", 100);
}
static void layers_40(void)
{
    baichuan_layers(40);
}
static void layers_40_based(void)
{
    baichuan_layers(40);
    f32("baichuan.rope.freq_base", 100);
}

static void check_baichuan(void)
{
    double d = apart("baichuan", NULL, layers_33, N, N);
    ok(d > 1e-4 && d < 9, "baichuan: positions turn with 32 layers: %g", d);
    d = apart("baichuan", layers_33, layers_34_based, N, N);
    ok(d == 0, "not with 33 or 34: %g", d);
    d = apart("baichuan", layers_33, layers_40, N, N);
    ok(d > 1e-4 && d < 9, "distance counts with 40: %g", d);
    d = apart("baichuan", layers_40_based, layers_40, N, N);
    ok(d == 0, "where nothing turns either: %g", d);
}

static void check_orders(void)
{
    double d = apart("gptneox", NULL, serial, N, N);
    ok(d > 1e-4 && d < 9, "gptneox: use_parallel_residual counts: %g", d);
    d = apart("gptneox", no_ffn_norm, serial_no_ffn_norm, N, N);
    ok(d < 1e-12, "but for what the feed-forward part reads: %g", d);
    d = apart("falcon", NULL, second_norm, N, N);
    ok(d > 1e-4 && d < 9, "falcon: attn_norm_2 counts: %g", d);
    d = apart("falcon", no_attention, second_norm_of_zeros, N, N);
    ok(d < 1e-12, "falcon: attention reads attn_norm_2, the rest not: %g", d);
    d = apart("stablelm", NULL, one_norm, N, N);
    ok(d > 1e-4 && d < 9, "stablelm: without ffn_norm in parallel: %g", d);
    d = apart("stablelm", NULL, norms_of_heads, N, N);
    ok(d > 1e-4 && d < 9, "stablelm: norms of heads count: %g", d);
}

int main(void)
{
    check_orders();
    check_baichuan();
    check_refused();
    check_same();
    check_factors();
    ok(apart("minicpm", bare, told, N, N) < 1e-14,
       "minicpm: 12, 1.4/sqrt(layers) and width/256 without keys");
    const double d = apart("llama", NULL, llama_biases, N, N);
    ok(d > 1e-4 && d < 9, "llama: biases count: %g", d);
    return done_testing();
}
