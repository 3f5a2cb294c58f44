/* check-windows.c - layers whose tokens see a window: which layers, how far,
 * and what positions turn there; keys and layer counts that samples lack */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/vary.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = VARY_N, V = VARY_V };

/* ---- what tests say ---- */

/* The outputs of two variants are the same to this bound. */
static void same(const char *name, vary_fn *a, vary_fn *b, double most,
                 const char *what)
{
    const double d = vary_apart(name, a, b, N, N);
    ok(d <= most, "%s: %s: %.2g", name, what, d);
}

/* They are others. */
static void counts(const char *name, vary_fn *a, vary_fn *b, const char *what)
{
    const double d = vary_apart(name, a, b, N, N);
    ok(d > 1e-5 && d < 9, "%s: %s: %.2g", name, what, d);
}

/* Opening fails and says so. */
static void refused(const char *name, vary_fn *change, const char *says)
{
    static float out[N * V];
    struct gguf_error err;
    const bool opens = vary_outputs(name, change, N, N, out, &err);
    ok(!opens && strstr(err.message, says), "%s: %s", name,
       opens ? "is evaluated" : err.message);
}

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

static void check_reach(void)
{
    sees("gemma3", one_of_8, 0, 63, 56, 64);
    sees("gemma3", one_of_8, 0, 9, 2, 10);
    sees("gemma3", one_of_8, 0, 5, 0, 6);
    sees("gemma3", one_of_9, 1000000000, 40, 32, 41);
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
    same("olmo2", NULL, wide, 0, "a window of the context is none");
    same("olmo2", NULL, never, 0, "one of 0 is none");
    counts("olmo2", NULL, narrow, "a window counts");
    same("olmo2", narrow, all_narrow, 0, "of 4 layers the last is not");
    same("olmo2", NULL, none_narrow, 0, "of 1 none is");
    same("gemma3", NULL, period_6, 0, "a period of 6 unless given");
    same("gemma3", NULL, listed_6, 0, "an array says the same");
    same("gemma3", period_3, listed_3, 0, "or another period");
    counts("gemma3", NULL, period_3, "which counts");
    refused("gemma3", listed_short,
            "gemma3.attention.sliding_window_pattern has 6 elements, "
            "there are 7 layers");
    refused("olmo2", floats,
            "olmo2.attention.sliding_window_pattern is an array of f32");
    same("gemma2", wide, unsaid, 0, "a window of 4096 unless given");
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
    same("exaone4", NULL, layers_64, 0, "64 layers, a window of 4096");
    counts("exaone4", NULL, layers_64_narrow, "which a key narrows");
    counts("exaone4", NULL, layers_64_full,
           "layers without window do not turn");
    same("exaone4", NULL, layers_63_narrow, 0, "63 layers have no windows");
    counts("gemma2", NULL, layers_46, "46 layers have another scale");
    same("gemma2", queries_as_46, layers_46, 1e-12, "1/sqrt(32)");
    counts("gemma3", layers_2, layers_62, "so have 62");
    same("gemma3", queries_as_62, layers_62, 1e-12, "1/sqrt(32)");
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
    same("gemma3", base_swa_unsaid, base_swa_10000, 0,
         "a base of 10000 in windows");
    counts("gemma3", NULL, base_swa, "unless given");
    same("gemma3", windows_only, windows_linear, 0,
         "nothing is scaled in windows");
    same("gemma3", windows_only, windows_yarn, 0, "nor by YaRN");
    counts("gemma3", NULL, linear_4, "but in full layers");
    same("gemma2", both_100, only_100, 0, "the base of full layers");
    counts("gemma2", NULL, base_swa, "unless given");
    counts("gemma2", windows_only, windows_linear, "scaled, too");
    same("cohere2", NULL, base_swa, 0, "no base of its own");
    same("olmo2", narrow_windows, narrow_yarn, 0, "not scaled");
    same("olmo2", narrow_windows, narrow_base_swa, 0,
         "with the base of full layers");
    counts("gemma3", NULL, rot_16, "windows may turn less");
    refused("gemma3", rot_odd,
            "gemma3.rope.dimension_count_swa is 15, must be even");
    refused("gemma3", rot_wide,
            "gemma3.rope.dimension_count_swa is 50, must be even and "
            "at most the key width 48");
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
    same("gemma3", no_cap, cap_0, 0, "by nothing unless the key says");
    same("gemma2", NULL, no_cap, 0, "by 30 unless the key says");
    counts("gemma2", cap_0, NULL, "0 is none");
}

int main(void)
{
    check_reach();
    check_layers();
    check_counts();
    check_positions();
    check_caps();
    return done_testing();
}
