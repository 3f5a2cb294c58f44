/* SPDX-License-Identifier: MIT */
/* check-delta.c - delta rules and short convolutions beyond their samples: keys
 * and tensors that files may have, by small changes of these models */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary_tap.h"
#include "tests/tap.h"

#include <stdlib.h>

enum { N = VARY_N, E = 128, MAX = 1 << 17 };

/* The weights that a tensor of the model has by its name. */
static void weights(const char *name, float *out)
{
    const struct gen_tensor *t = vary_find(name);
    if (t->ne[0] * t->ne[1] * t->ne[2] > MAX)
        abort();
    gen_weights(out, &vary_model.g, t);
}

static char *named(const char *fmt, int il)
{
    static char name[64];
    snprintf(name, sizeof name, fmt, il);
    return name;
}

static void check_equal(const char *name, vary_fn *a, vary_fn *b, double most,
                        const char *what)
{
    const double d = vary_apart(name, a, b, N, N);
    ok(d <= most, "%s: %s: %g", name, what, d);
}

static void check_counts(const char *name, vary_fn *a, vary_fn *b,
                         const char *what)
{
    const double d = vary_apart(name, a, b, N, N);
    ok(d > 1e-4 && d < 9, "%s: %s: %g", name, what, d);
}

/* ---- Qwen3-Next's first files: one matrix of two ---- */

enum { D = 32, KEYS = 2, EACH = 2, GROUP = 2 * D + 2 * EACH * D };

/* Row r of a key head's group in ssm_in is row *at of attn_qkv, or attn_gate.
 */
static bool in_qkv(int group, int r, int *at)
{
    if (r < 2 * D) {
        *at = r / D * KEYS * D + group * D + r % D;
        return true;
    }
    r -= 2 * D;
    *at = group * EACH * D + r % (EACH * D);
    if (r >= EACH * D)
        return false;
    *at += 2 * KEYS * D;
    return true;
}

static void one_matrix(void)
{
    static float qkv[MAX], gate[MAX], in[2][MAX];
    for (int i = 0; i < 2; i++) {
        weights(named("blk.%d.attn_qkv.weight", 2 * i), qkv);
        weights(named("blk.%d.attn_gate.weight", 2 * i), gate);
        for (int r = 0; r < KEYS * GROUP; r++) {
            int at;
            const float *from = in_qkv(r / GROUP, r % GROUP, &at) ? qkv : gate;
            memcpy(in[i] + r * E, from + at * E, E * sizeof **in);
        }
        vary_drop_tensor(named("blk.%d.attn_qkv.weight", 2 * i));
        vary_drop_tensor(named("blk.%d.attn_gate.weight", 2 * i));
        gen_tensor(&vary_model.g, E, KEYS * GROUP, "blk.%d.ssm_in.weight",
                   2 * i);
        vary_values(named("blk.%d.ssm_in.weight", 2 * i), in[i]);
    }
}

/* ---- which layers attend ---- */

/* Layer il becomes one with the delta rule, like layer 0. */
static void make_delta(int il)
{
    static const char *const attends[] = { "q",      "k",      "v",
                                           "output", "q_norm", "k_norm" };
    static const char *const has[] = { "attn_qkv.weight",
                                       "attn_gate.weight",
                                       "ssm_conv1d.weight",
                                       "ssm_dt.bias",
                                       "ssm_a",
                                       "ssm_ba.weight",
                                       "ssm_norm.weight",
                                       "ssm_out.weight" };
    char name[64];
    for (size_t i = 0; i < GG_LEN(attends); i++) {
        snprintf(name, sizeof name, "blk.%d.attn_%s.weight", il, attends[i]);
        vary_drop_tensor(name);
    }
    for (size_t i = 0; i < GG_LEN(has); i++) {
        snprintf(name, sizeof name, "blk.0.%s", has[i]);
        const struct gen_tensor *t = vary_find(name);
        gen_tensor(&vary_model.g, t->ne[0], t->n_dims > 1 ? t->ne[1] : 0,
                   "blk.%d.%s", il, has[i]);
    }
}
static void every_fourth(void)
{
    make_delta(1);
    vary_u32(".full_attention_interval", 4);
}
static void no_interval(void)
{
    make_delta(1);
    vary_drop(".full_attention_interval");
}
static void by_bools(void)
{
    static const uint8_t is[] = { 1, 1, 1, 0 };
    make_delta(1); /* the interval says 2 */
    vary_array(".attention.recurrent_layers", GGUF_VAL_BOOL, is, 4);
}
static void by_numbers(void)
{
    static const uint32_t is[] = { 1, 1, 1, 0 };
    make_delta(1);
    vary_array(".attention.recurrent_layers", GGUF_VAL_U32, is, 4);
}
static void all_delta(void)
{
    make_delta(1);
    make_delta(3);
    vary_u32(".full_attention_interval", 9);
}
static void by_one_bool(void)
{
    all_delta();
    vary_drop(".full_attention_interval");
    vary_bool(".attention.recurrent_layers", true);
}
static void by_one_number(void)
{
    all_delta();
    vary_drop(".full_attention_interval");
    vary_u32(".attention.recurrent_layers", 1);
}

/* ---- a layer that drafts ---- */

static void drafts(void)
{
    vary_u32(".block_count", 5);
    vary_u32(".nextn_predict_layers", 1);
    gen_tensor(&vary_model.g, 2 * E, E, "blk.4.nextn.eh_proj.weight");
    gen_tensor(&vary_model.g, E, 0, "blk.4.attn_norm.weight");
    gen_tensor(&vary_model.g, E, 2 * E, "blk.4.attn_q.weight");
}
static void drafts_by_bools(void)
{
    static const uint8_t is[] = { 1, 0, 1, 0, 0 };
    drafts();
    vary_array(".attention.recurrent_layers", GGUF_VAL_BOOL, is, 5);
}
static void all_draft(void)
{
    vary_u32(".nextn_predict_layers", 4);
}

/* ---- widths of experts ---- */

static void part_of_width(void)
{
    vary_drop(".expert_feed_forward_length");
}
static void shared_as_model(void)
{
    vary_u32(".feed_forward_length", 96);
    vary_drop(".expert_shared_feed_forward_length");
}

/* ---- taps ---- */

/* Kernels of to taps for those of from, the last ones; where there are more,
 * the first are 0. */
static void taps(const char *fmt, const char *key, int from, int to)
{
    static float w[MAX], v[3][MAX];
    for (int il = 0, i = 0; il < 3; il += 2, i++) {
        struct gen_tensor *t = vary_find(named(fmt, il));
        const int64_t channels = t->ne[1];
        weights(t->name, w);
        t->ne[0] = to;
        for (int64_t c = 0; c < channels; c++)
            for (int k = 0; k < to; k++)
                v[i][c * to + k] =
                    k < to - from ? 0 : w[c * from + k - (to - from)];
        vary_values(t->name, v[i]);
    }
    vary_u32(key, (uint32_t)to);
}
/* All but the last tap are 0. */
static void last_only(const char *fmt, int from)
{
    static float v[3][MAX];
    for (int il = 0, i = 0; il < 3; il += 2, i++) {
        const struct gen_tensor *t = vary_find(named(fmt, il));
        weights(t->name, v[i]);
        for (int64_t k = 0; k < t->ne[0] * t->ne[1]; k++)
            if (k % from != from - 1)
                v[i][k] = 0;
        vary_values(t->name, v[i]);
    }
}
#define DELTA_TAPS "blk.%d.ssm_conv1d.weight", ".ssm.conv_kernel", 4
#define SHORT_TAPS "blk.%d.shortconv.conv.weight", ".shortconv.l_cache", 3
static void delta_more(void)
{
    taps(DELTA_TAPS, 6);
}
static void delta_last(void)
{
    last_only("blk.%d.ssm_conv1d.weight", 4);
}
static void delta_one(void)
{
    taps(DELTA_TAPS, 1);
}
static void short_more(void)
{
    taps(SHORT_TAPS, 5);
}
static void short_last(void)
{
    last_only("blk.%d.shortconv.conv.weight", 3);
}
static void short_one(void)
{
    taps(SHORT_TAPS, 1);
}

/* ---- Kimi ---- */

static const char *const kimi_convs[] = { "blk.%d.ssm_conv1d_q.weight",
                                          "blk.%d.ssm_conv1d_k.weight",
                                          "blk.%d.ssm_conv1d_v.weight" };
static void kimi_last(void)
{
    static float v[6][MAX];
    for (int i = 0; i < 6; i++) {
        const struct gen_tensor *t =
            vary_find(named(kimi_convs[i / 2], i % 2 * 2));
        weights(t->name, v[i]);
        for (int64_t k = 0; k < t->ne[0] * t->ne[2]; k++)
            if (k % 4 != 3)
                v[i][k] = 0;
        vary_values(t->name, v[i]);
    }
}
static void kimi_one(void)
{
    static float w[MAX], v[6][MAX];
    for (int i = 0; i < 6; i++) {
        struct gen_tensor *t = vary_find(named(kimi_convs[i / 2], i % 2 * 2));
        weights(t->name, w);
        for (int64_t k = 0; k < t->ne[2]; k++)
            v[i][k] = w[4 * k + 3];
        t->ne[0] = 1;
        vary_values(t->name, v[i]);
    }
    vary_u32(".ssm.conv_kernel", 1);
}
/* Kernels of queries for keys. */
static void kimi_exchanged(void)
{
    static float v[2][MAX];
    for (int i = 0; i < 2; i++) {
        weights(named(kimi_convs[0], 2 * i), v[i]);
        vary_values(named(kimi_convs[1], 2 * i), v[i]);
    }
}
static void kimi_shapes(void)
{
    for (int il = 0; il < 3; il += 2) {
        vary_find(named("blk.%d.ssm_a", il))->n_dims = 4;
        for (int i = 0; i < 3; i++)
            vary_find(named(kimi_convs[i], il))->n_dims = 4;
    }
}
static void kimi_one_shared(void)
{
    vary_drop(".expert_shared_count");
}
static void kimi_scale_1(void)
{
    vary_f32(".expert_weights_scale", 1);
}
static void kimi_no_scale(void)
{
    vary_drop(".expert_weights_scale");
}
static void kimi_flat(void)
{
    struct gen_tensor *t = vary_find("blk.2.ssm_conv1d_k.weight");
    t->ne[1] = 2;
    t->ne[2] = 64;
}
static void kimi_no_head(void)
{
    vary_drop(".kda.head_dim");
}

/* ---- short convolutions ---- */

static void no_window(void)
{
    vary_drop(".attention.sliding_window");
}
static void wide_window(void)
{
    vary_u32(".attention.sliding_window", N);
}
static void after_pooling(void)
{
    vary_u32(".embedding_length_out", 64);
    gen_tensor(&vary_model.g, E, 64, "dense_2.weight");
    gen_tensor(&vary_model.g, 64, 0, "dense_2.bias");
}
static void no_lead(void)
{
    vary_drop(".leading_dense_block_count");
}
static void lead_0(void)
{
    vary_u32(".leading_dense_block_count", 0);
}
static void experts_first(void)
{
    static const char *const dense[] = { "ffn_gate", "ffn_up", "ffn_down" };
    static const char *const has[] = {
        "ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight",
        "ffn_down_exps.weight", "exp_probs_b.bias"
    };
    char name[64];
    for (size_t i = 0; i < GG_LEN(dense); i++) {
        snprintf(name, sizeof name, "blk.0.%s.weight", dense[i]);
        vary_drop_tensor(name);
    }
    for (size_t i = 0; i < GG_LEN(has); i++) {
        snprintf(name, sizeof name, "blk.1.%s", has[i]);
        struct gen_tensor t = *vary_find(name);
        snprintf(name, sizeof name, "blk.0.%s", has[i]);
        gen_tensor(&vary_model.g, t.ne[0], 0, "%s", name);
        struct gen_tensor *to = vary_find(name);
        to->n_dims = t.n_dims;
        memcpy(to->ne, t.ne, sizeof t.ne);
    }
}
static void no_lead_key(void)
{
    experts_first();
    no_lead();
}
static void lead_of_0(void)
{
    experts_first();
    lead_0();
}

/* ---- tokens that see later ones ---- */

static void one_layer(void)
{
    vary_u32(".block_count", 1);
    for (size_t i = vary_model.g.n; i-- > 0;)
        if (!strncmp(vary_model.g.t[i].name, "blk.1.", 6))
            vary_drop_tensor(vary_model.g.t[i].name);
}
static void sees_all(void)
{
    vary_bool(".attention.causal", false);
}
static void not_causal(void)
{
    one_layer();
    sees_all();
}

/* In a model of one layer the last token sees the same, and nothing is there
 * for one token to see. */
static void check_ahead(void)
{
    static float back[N * VARY_V], ahead[N * VARY_V];
    struct gguf_error err;
    const size_t last = (size_t)(N - 1) * VARY_V;
    bool good = vary_outputs("qwen3", one_layer, N, N, back, &err) &&
                vary_outputs("qwen3", not_causal, N, N, ahead, &err);
    const double first = run_nmse(back, ahead, VARY_V);
    const double d = run_nmse(back + last, ahead + last, VARY_V);
    ok(good && first > 1e-4 && d < 1e-12,
       "qwen3: tokens see later ones: %g of the first, %g of the last", first,
       d);
    static const char *const names[] = { "qwen3", "gemma2", "deepseek2",
                                         "minicpm3", "phi3" };
    for (size_t i = 0; i < GG_LEN(names); i++) {
        const double one = vary_apart(names[i], NULL, sees_all, N, 1);
        const double all = vary_apart(names[i], NULL, sees_all, N, N);
        ok(one < 1e-12 && all > 1e-4 && all < 9,
           "%s: one token does not, %g; 64 do, %g", names[i], one, all);
    }
}

/* Without attention, kernels [a, b, 0] in the middle of three tokens, and
 * [0, a, b] at their end, are the same. */
static void two_taps(bool ahead)
{
    static float v[2][MAX];
    vary_gain("attn_output", 0);
    for (int i = 0; i < 2; i++) {
        const struct gen_tensor *t =
            vary_find(named("blk.%d.shortconv.conv.weight", 2 * i));
        weights(t->name, v[i]);
        for (int64_t c = 0; c < t->ne[1]; c++) {
            float *w = v[i] + 3 * c;
            const float two[] = { w[0], w[1] };
            w[ahead ? 2 : 0] = 0;
            memcpy(w + !ahead, two, sizeof two);
        }
        vary_values(t->name, v[i]);
    }
}
static void short_back(void)
{
    two_taps(false);
}
static void short_ahead(void)
{
    two_taps(true);
    sees_all();
}
static void short_even(void)
{
    taps(SHORT_TAPS, 4);
    sees_all();
}

/* ---- refused ---- */

static void other_inner(void)
{
    vary_u32(".ssm.inner_size", 256);
}
static void odd_groups(void)
{
    vary_u32(".ssm.group_count", 3);
}
static void other_values(void)
{
    vary_u32(".attention.value_length", 16);
}
static void many_flags(void)
{
    static const uint8_t is[] = { 1, 0, 1, 0, 1 };
    vary_array(".attention.recurrent_layers", GGUF_VAL_BOOL, is, 5);
}
static void flag_2(void)
{
    static const uint32_t is[] = { 1, 0, 2, 0 };
    vary_array(".attention.recurrent_layers", GGUF_VAL_U32, is, 4);
}
static void interval_0(void)
{
    vary_u32(".full_attention_interval", 0);
}
static void no_gate(void)
{
    vary_drop_tensor("blk.2.attn_gate.weight");
}
static void no_taps(void)
{
    vary_drop(".shortconv.l_cache");
}

static const struct {
    const char *name;
    vary_fn *change;
    const char *says;
} refused[] = {
    { "qwen3next", other_inner, "qwen3next.ssm.state_size is 32, must be 64" },
    { "qwen3next", odd_groups, "qwen3next.ssm.time_step_rank is 4, must" },
    { "qwen3next", other_values, "attention.value_length is 16, must be 32" },
    { "qwen3next", many_flags, "attention.recurrent_layers has 5 elements" },
    { "qwen3next", flag_2, "attention.recurrent_layers is 2, must be 0 to 1" },
    { "qwen3next", interval_0, "full_attention_interval is 0, must be 1" },
    { "qwen3next", all_draft, "qwen3next.nextn_predict_layers: the file has" },
    { "qwen3next", no_gate, "'blk.2.attn_gate.weight' is missing" },
    { "kimi-linear", kimi_flat,
      "'blk.2.ssm_conv1d_k.weight' has shape [4, 2" },
    { "kimi-linear", kimi_no_head, "'kimi-linear.kda.head_dim' is missing" },
    { "qwen3next", sees_all, "attention.causal: it is false" },
    { "lfm2", short_even, "lfm2.shortconv.l_cache is 4, must be odd" },
    { "lfm2", no_taps, "'lfm2.shortconv.l_cache' is missing" },
};

static void check_refused(void)
{
    for (size_t i = 0; i < GG_LEN(refused); i++)
        vary_refused(refused[i].name, refused[i].change, refused[i].says);
}

int main(void)
{
    check_equal("qwen3next", NULL, one_matrix, 1e-13,
                "ssm_in for attn_qkv and attn_gate");
    check_counts("qwen3next", NULL, every_fourth, "the interval counts");
    check_equal("qwen3next", every_fourth, no_interval, 0,
                "an interval of 4 unless the key says");
    check_equal("qwen3next", every_fourth, by_bools, 0,
                "recurrent_layers counts instead");
    check_equal("qwen3next", every_fourth, by_numbers, 0,
                "of numbers as of flags");
    check_equal("qwen3next", all_delta, by_one_bool, 0, "one flag for all");
    check_equal("qwen3next", all_delta, by_one_number, 0,
                "one number for all");
    check_equal("qwen3next", NULL, drafts, 0, "a last layer drafts");
    check_equal("qwen3next", NULL, drafts_by_bools, 0,
                "and has a flag of its own");
    check_equal("qwen3next", NULL, part_of_width, 0,
                "experts share the width without a key");
    check_equal("qwen3next", NULL, shared_as_model, 0,
                "shared ones have all of it");
    check_equal("qwen3next", NULL, delta_more, 1e-13, "taps of 0 first");
    check_equal("qwen3next", delta_last, delta_one, 1e-13, "one tap");
    check_equal("kimi-linear", kimi_last, kimi_one, 1e-13, "one tap");
    check_counts("kimi-linear", NULL, kimi_exchanged,
                 "keys have kernels of their own");
    check_equal("kimi-linear", NULL, kimi_shapes, 0, "four dimensions");
    check_equal("kimi-linear", NULL, kimi_one_shared, 0, "one shared expert");
    check_equal("kimi-linear", kimi_scale_1, kimi_no_scale, 0,
                "weights are not scaled without a key");
    check_equal("lfm2", NULL, short_more, 1e-13, "taps of 0 first");
    check_equal("lfm2", short_last, short_one, 1e-13, "one tap");
    check_counts("lfm2", NULL, no_window, "the window counts");
    check_equal("lfm2", no_window, wide_window, 0, "one of all tokens not");
    check_equal("lfm2", NULL, after_pooling, 0, "what comes after pooling");
    check_equal("lfm2", short_back, short_ahead, 1e-13,
                "the middle tap is a token's own if tokens see later ones");
    check_counts("lfm2", NULL, sees_all, "tokens see later ones");
    check_equal("lfm2moe", lead_of_0, no_lead_key, 0,
                "experts from the first layer on without a key");
    check_ahead();
    check_refused();
    return done_testing();
}
