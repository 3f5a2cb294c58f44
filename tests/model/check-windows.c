/* SPDX-License-Identifier: MIT */
/* check-windows.c - layers whose tokens see a window: which layers, how far,
 * and what positions turn there; keys and layer counts that samples lack */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary_tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = VARY_N, V = VARY_V };

static void flags(const bool *v, size_t n)
{
    vary_array(".attention.sliding_window_pattern", GGUF_VAL_BOOL, v, n);
}

static void window(uint32_t n)
{
    vary_u32(".attention.sliding_window", n);
}

static void period(uint32_t n)
{
    vary_u32(".attention.sliding_window_pattern", n);
}

static void layers(uint32_t n)
{
    vary_u32(".block_count", n);
}

/* ---- how far ---- */

/* What token at gets of the tokens [from, to), token i at position first + i.
 */
static bool one_row(const char *name, vary_fn *change, int from, int to,
                    int first, int at, float *out)
{
    static float all[N * V];
    struct gguf_error err;
    const bool good =
        vary_part(name, change, N, (size_t)from, (size_t)to, first, all, &err);
    if (good)
        memcpy(out, all + (size_t)(at - from) * V, V * sizeof *out);
    else
        printf("# %s: %s\n", name, err.message);
    return good;
}

/* A token of a model of one layer: it sees those of [from, to) and no others,
 * whichever there are. All are at positions from first on. */
static void sees(const char *name, vary_fn *change, int first, int at,
                 int from, int to)
{
    float all[V], some[V], less[V], more[V];
    bool good = one_row(name, change, 0, N, first, at, all) &&
                one_row(name, change, from, to, first, at, some);
    const double d = good ? run_nmse(some, all, V) : 9;
    ok(d < 1e-12, "%s: token %d at %d sees none but %d to %d: %.2g", name, at,
       first + at, from, to - 1, d);
    good = good && (from == at ||
                    one_row(name, change, from + 1, to, first, at, less));
    good = good && (to == at + 1 ||
                    one_row(name, change, from, to - 1, first, at, more));
    ok(good && (from == at || run_nmse(less, all, V) > 1e-6) &&
           (to == at + 1 || run_nmse(more, all, V) > 1e-6),
       "%s: and all of them", name);
}

static void one_of_8(void)
{
    layers(1);
    window(8);
}
static void one_of_9(void)
{
    layers(1);
    window(9);
}
static void one_layer(void)
{
    layers(1);
}
static void one_of_16(void)
{
    layers(1);
    window(16);
    period(0);
}
static void one_of_17(void)
{
    layers(1);
    window(17);
    period(0);
}

static void check_reach(void)
{
    sees("gemma3", one_of_8, 0, 63, 56, 64);
    sees("gemma3", one_of_8, 0, 9, 2, 10);
    sees("gemma3", one_of_8, 0, 5, 0, 6);
    sees("gemma3", one_of_9, 1000000000, 40, 32, 41);
    sees("modern-bert", one_of_16, 0, 30, 22, 39);
    sees("modern-bert", one_of_17, 0, 60, 52, 64);
    sees("gemma-embedding", one_of_17, 0, 5, 0, 14);
    sees("llama4", one_layer, 8160, 63, 32, 64);
    sees("llama4", one_layer, 8160, 31, 0, 32);
}

/* ---- which layers ---- */

static void never(void)
{
    window(0);
}
static void wide(void)
{
    window(N);
}
static void narrow(void)
{
    window(8);
}
static void unsaid(void)
{
    vary_drop(".attention.sliding_window");
}
static void all_narrow(void)
{
    narrow();
    period(0);
}
static void none_narrow(void)
{
    narrow();
    period(1);
}
static void period_6(void)
{
    period(6);
}
static void period_3(void)
{
    period(3);
}
static void listed_6(void)
{
    flags((const bool[]){ 1, 1, 1, 1, 1, 0, 1 }, 7);
}
static void listed_3(void)
{
    flags((const bool[]){ 1, 1, 0, 1, 1, 0, 1 }, 7);
}
static void listed_short(void)
{
    flags((const bool[]){ 1, 1, 0, 1, 1, 0 }, 6);
}
static void floats(void)
{
    vary_array(".attention.sliding_window_pattern", GGUF_VAL_F32,
               (float[]){ 1, 0 }, 2);
}

static void check_layers(void)
{
    vary_same("olmo2", NULL, wide, 0, "a window of the context is none");
    vary_same("olmo2", NULL, never, 0, "one of 0 is none");
    vary_counts("olmo2", NULL, narrow, "a window counts");
    vary_same("olmo2", narrow, all_narrow, 0, "of 4 layers the last is not");
    vary_same("olmo2", NULL, none_narrow, 0, "of 1 none is");
    vary_same("gemma3", NULL, period_6, 0, "a period of 6 unless given");
    vary_same("gemma3", NULL, listed_6, 0, "an array says the same");
    vary_same("gemma3", period_3, listed_3, 0, "or another period");
    vary_counts("gemma3", NULL, period_3, "which counts");
    vary_refused("gemma3", listed_short,
                 "gemma3.attention.sliding_window_pattern has 6 elements, "
                 "there are 7 layers");
    vary_refused("olmo2", floats,
                 "olmo2.attention.sliding_window_pattern is an array of f32");
    vary_same("gemma2", wide, unsaid, 0, "a window of 4096 unless given");
}

/* The first of a period is full. */
static void period_2(void)
{
    period(2);
}
static void period_4(void)
{
    period(4);
}
static void listed_2(void)
{
    flags((const bool[]){ 0, 1 }, 2);
}
static void listed_2_draft(void)
{
    layers(3);
    vary_u32(".nextn_predict_layers", 1);
    listed_2();
}
static void listed_draft_too(void)
{
    layers(3);
    vary_u32(".nextn_predict_layers", 1);
    flags((const bool[]){ 0, 1, 1 }, 3);
}
static void unlisted(void)
{
    vary_drop(".attention.sliding_window_pattern");
}
static void unlisted_full(void)
{
    unlisted();
    unsaid();
}
static void all_full(void)
{
    period(1);
}
static void listed_4(void)
{
    flags((const bool[]){ 0, 1, 1, 1, 0 }, 5);
}
static void all_listed(void)
{
    flags((const bool[]){ 1, 1 }, 2);
}
static void no_flags(void)
{
    period(0);
}
static void none_listed(void)
{
    flags((const bool[]){ 0, 0 }, 2);
}

static void check_periods(void)
{
    vary_same("cohere2moe", period_2, listed_2, 0, "the second of 2 is one");
    vary_same("cohere2moe", listed_2, listed_2_draft, 0,
              "flags of layers that draft may be missing");
    vary_same("cohere2moe", listed_2, listed_draft_too, 0, "or there");
    vary_refused("cohere2moe", unlisted,
                 "'cohere2moe.attention.sliding_window_pattern' is missing");
    vary_same("laguna", NULL, period_4, 0, "a period of 4 unless given");
    vary_same("laguna", NULL, listed_4, 0, "whose first is full");
    vary_same("laguna", all_full, unsaid, 0, "no window unless given");
    vary_same("mellum", NULL, period_2, 0, "the last of 2 is full");
    vary_refused("mellum", unlisted,
                 "'mellum.attention.sliding_window_pattern' is missing");
    vary_counts("mellum", NULL, unlisted_full, "nor a pattern without one");
    vary_same("mimo2", all_full, all_listed, 0, "a number is all flags");
    vary_same("step35", no_flags, none_listed, 0, "a number is all flags");
    vary_same("smallthinker", NULL, narrow, 0, "4096 whatever the key says");
    vary_counts("smallthinker", NULL, never, "unless that is 0");
    vary_same("smallthinker", never, unsaid, 0, "or there is none");
    vary_same("llama4", NULL, unsaid, 0, "chunks of 8192 without the key");
    vary_counts("llama4", NULL, never, "where it is 0 every layer turns");
}

/* ---- numbers of layers ---- */

/* The first two of n layers; the others add nothing. */
static void two_of(int n)
{
    struct gen *g = &vary_model.g;
    size_t kept = 0;
    layers((uint32_t)n);
    for (size_t i = 0; i < g->n; i++)
        if (strncmp(g->t[i].name, "blk.", 4) != 0 ||
            atoi(g->t[i].name + 4) < 2)
            g->t[kept++] = g->t[i];
    g->n = kept;
    for (size_t i = 0; i < kept; i++) {
        const struct gen_tensor t = g->t[i];
        for (int il = 2; il < n && !strncmp(t.name, "blk.1.", 6); il++)
            gen_tensor(g, t.ne[0], t.n_dims > 1 ? t.ne[1] : 0, "blk.%d.%s", il,
                       t.name + 6);
    }
    vary_gain("blk.([2-9]|[1-6][0-9]).(attn_output|ffn_down)", 0);
}

static void layers_64(void)
{
    two_of(64);
}
static void layers_64_narrow(void)
{
    two_of(64);
    narrow();
}
static void layers_64_full(void)
{
    two_of(64);
    none_narrow();
}
static void layers_63_narrow(void)
{
    two_of(63);
    narrow();
}
static void layers_46(void)
{
    two_of(46);
}
static void layers_62(void)
{
    two_of(62);
}
static void layers_2(void)
{
    layers(2);
}
/* Over sqrt(128 / 4), not sqrt(48). */
static void queries_as_46(void)
{
    vary_gain("attn_q.weight", sqrt(48.0 / 32));
}
static void queries_as_62(void)
{
    layers(2);
    vary_gain("attn_q_norm", sqrt(48.0 / 32));
}

static void check_counts(void)
{
    vary_same("exaone4", NULL, layers_64, 0, "64 layers, a window of 4096");
    vary_counts("exaone4", NULL, layers_64_narrow, "which a key narrows");
    vary_counts("exaone4", NULL, layers_64_full,
                "layers without window do not turn");
    vary_same("exaone4", NULL, layers_63_narrow, 0,
              "63 layers have no windows");
    vary_counts("gemma2", NULL, layers_46, "46 layers have another scale");
    vary_same("gemma2", queries_as_46, layers_46, 1e-12, "1/sqrt(32)");
    vary_counts("gemma3", layers_2, layers_62, "so have 62");
    vary_same("gemma3", queries_as_62, layers_62, 1e-12, "1/sqrt(32)");
}

/* ---- positions ---- */

static void base_100(void)
{
    vary_f32(".rope.freq_base", 100);
}
static void base_swa(void)
{
    vary_f32(".rope.freq_base_swa", 100);
}
static void base_swa_unsaid(void)
{
    vary_drop(".rope.freq_base_swa");
}
static void base_swa_10000(void)
{
    vary_f32(".rope.freq_base_swa", 10000);
}
static void both_100(void)
{
    base_100();
    base_swa();
}
static void only_100(void)
{
    base_100();
    base_swa_unsaid();
}
static void linear_4(void)
{
    vary_str(".rope.scaling.type", "linear");
    vary_f32(".rope.scaling.factor", 4);
}
static void yarn_4(void)
{
    vary_str(".rope.scaling.type", "yarn");
    vary_f32(".rope.scaling.factor", 4);
}
static void windows_only(void)
{
    period(0);
}
static void windows_linear(void)
{
    windows_only();
    linear_4();
}
static void windows_yarn(void)
{
    windows_only();
    yarn_4();
}
static void narrow_windows(void)
{
    all_narrow();
}
static void narrow_yarn(void)
{
    all_narrow();
    yarn_4();
}
static void narrow_base_swa(void)
{
    all_narrow();
    base_swa();
}
static void rot_16(void)
{
    vary_u32(".rope.dimension_count_swa", 16);
}
static void rot_odd(void)
{
    vary_u32(".rope.dimension_count_swa", 15);
}
static void rot_wide(void)
{
    vary_u32(".rope.dimension_count_swa", 50);
}

static void check_positions(void)
{
    vary_same("gemma3", base_swa_unsaid, base_swa_10000, 0,
              "a base of 10000 in windows");
    vary_counts("gemma3", NULL, base_swa, "unless given");
    vary_same("gemma3", windows_only, windows_linear, 0,
              "nothing is scaled in windows");
    vary_same("gemma3", windows_only, windows_yarn, 0, "nor by YaRN");
    vary_counts("gemma3", NULL, linear_4, "but in full layers");
    vary_same("gemma2", both_100, only_100, 0, "the base of full layers");
    vary_counts("gemma2", NULL, base_swa, "unless given");
    vary_counts("gemma2", windows_only, windows_linear, "scaled, too");
    vary_same("cohere2", NULL, base_swa, 0, "no base of its own");
    vary_same("olmo2", narrow_windows, narrow_yarn, 0, "not scaled");
    vary_same("olmo2", narrow_windows, narrow_base_swa, 0,
              "with the base of full layers");
    vary_counts("gemma3", NULL, rot_16, "windows may turn less");
    vary_refused("gemma3", rot_odd,
                 "gemma3.rope.dimension_count_swa is 15, must be even");
    vary_refused("gemma3", rot_wide,
                 "gemma3.rope.dimension_count_swa is 50, must be even and "
                 "at most the key width 48");
}

static void full_100(void)
{
    all_full();
    base_100();
}
static void flags_yarn(void)
{
    all_full();
    yarn_4();
}
static void flags_rot_16(void)
{
    all_full();
    vary_u32(".rope.dimension_count", 16);
}
static void flags_rot_swa_16(void)
{
    all_full();
    rot_16();
}
/* As layers with a window, of which they see all. */
static void halves_full(void)
{
    no_flags();
    base_100();
}
static void halves_windows(void)
{
    all_full();
    wide();
    rot_16();
    base_swa();
}
static void laguna_narrow(void)
{
    narrow();
    period(0);
    base_swa_unsaid();
}
static void laguna_yarn(void)
{
    laguna_narrow();
    yarn_4();
}
static void laguna_base(void)
{
    laguna_narrow();
    base_100();
}
static void laguna_base_swa(void)
{
    laguna_narrow();
    base_swa();
}
static void full_yarn(void)
{
    all_full();
    yarn_4();
}
static void rot_15(void)
{
    vary_u32(".rope.dimension_count", 30);
}

/* Factors of as many pairs as windows turn: full layers take the first. */
static void more_factors(float last)
{
    static float v[16];
    vary_u32(".rope.dimension_count", 16);
    vary_u32(".rope.dimension_count_swa", 32);
    gen_tensor(&vary_model.g, 16, 0, "rope_freqs.weight");
    for (int i = 0; i < 16; i++)
        v[i] = i < 4 ? 1.5f : last;
    vary_values("rope_freqs.weight", v);
}
static void factors_1(void)
{
    more_factors(1);
}
static void factors_2(void)
{
    more_factors(2);
}
static void no_factors(void)
{
    vary_u32(".rope.dimension_count", 16);
    vary_u32(".rope.dimension_count_swa", 32);
}

static void check_places(void)
{
    vary_same("step35", factors_1, factors_2, 0,
              "a quarter of the factors for full layers");
    vary_counts("step35", factors_1, no_factors, "which count");
    vary_same("cohere2", all_full, full_100, 0, "full layers do not turn");
    vary_same("exaone-moe", all_full, full_100, 0, "full layers do not turn");
    vary_counts("cohere2moe", all_full, full_100, "but leading ones do");
    vary_counts("afmoe", all_full, full_100, "three of four layers turn");
    vary_same("mimo2", all_full, flags_yarn, 0, "windows are not scaled");
    vary_same("laguna", laguna_narrow, laguna_yarn, 0,
              "windows are not scaled");
    vary_counts("laguna", all_full, full_yarn, "full layers are");
    vary_same("laguna", laguna_base, laguna_base_swa, 0,
              "the base of full layers unless given");
    vary_same("step35", flags_rot_16, flags_rot_swa_16, 0,
              "windows turn so many");
    vary_same("step35", halves_full, halves_windows, 0,
              "full layers half of them");
    vary_refused("step35", rot_15, "step35.rope.dimension_count is 30, half");
}

/* ---- ends ---- */

static void no_cap(void)
{
    vary_drop(".final_logit_softcapping");
}
static void cap_0(void)
{
    vary_f32(".final_logit_softcapping", 0);
}
static void cap_2(void)
{
    vary_f32(".final_logit_softcapping", 2);
}

static void check_caps(void)
{
    static float z[N * V], y[N * V];
    struct gguf_error err;
    if (!vary_outputs("gemma3", no_cap, N, N, z, &err) ||
        !vary_outputs("gemma3", cap_2, N, N, y, &err))
        abort();
    for (size_t i = 0; i < N * V; i++)
        z[i] = (float)(2 * tanh((double)z[i] / 2));
    const double d = run_nmse(y, z, N * V);
    ok(d < 1e-12, "gemma3: logits are capped softly: %.2g", d);
    vary_same("gemma3", no_cap, cap_0, 0, "by nothing unless the key says");
    vary_same("gemma2", NULL, no_cap, 0, "by 30 unless the key says");
    vary_by("gemma2", cap_0, NULL, 1e-5, "0 is none");
}

int main(void)
{
    check_reach();
    check_layers();
    check_periods();
    check_counts();
    check_positions();
    check_places();
    check_caps();
    return done_testing();
}
