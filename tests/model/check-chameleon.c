/* SPDX-License-Identifier: MIT */
/* check-chameleon.c - norms before or after, norms of heads, and tokens that
 * are struck out */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/ref.h"
#include "tests/model/refbert.h"
#include "tests/model/vary.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = VARY_N, V = VARY_V };

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

/* ---- against doubles ---- */

#define SIZES                                                                 \
    .arch = "chameleon", .pre = 1, .last = "output_norm",                     \
    .rope = REFBERT_PAIRS, .ffn = REFBERT_GATED, .causal = 2, .n_embd = 48,   \
    .n_ff = 40, .n_head = 4, .n_layer = 3, .eps = 1e-6f
static const struct {
    const char *what;
    struct refbert s;
} forms[] = {
    { "norms before the parts", { SIZES, .n_head_kv = 2, .head_norm = 1 } },
    { "norms after them",
      { SIZES, .n_head_kv = 2, .head_norm = 1, .swin = 1 } },
    { "biases of head norms, another base",
      { SIZES, .n_head_kv = 4, .head_norm = 2, .base = 500 } },
    { "q, k and v in one, with a bias",
      { SIZES, .n_head_kv = 1, .head_norm = 2, .swin = 1, .fused = 1,
        .qkv_bias = 1 } },
};

static void check_form(const struct refbert *s, const char *what)
{
    enum { T = 29, E = 48 };
    static struct gen g;
    static float got[T * E], want[T * E];
    static double ref[T * E];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[T];
    uint8_t all[T];
    const float *rows;
    struct run r;
    size_t size;
    refbert_model(&g, s, V);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    memset(all, 1, sizeof all);
    for (int i = 0; i < T; i++)
        tok[i] = (i * 37 + 11) % V;
    b.n = T;
    b.token = tok;
    b.want = all;
    const bool good =
        run_open(&r, file, size, 2, &p) &&
        gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
        gguf_session_states(r.session, 0, T, &rows, &r.err) == GGUF_OK;
    refbert_run(&g, s, tok, T, ref);
    for (int i = 0; i < T * E; i++) {
        want[i] = (float)ref[i];
        got[i] = good ? rows[i] : 0;
    }
    const double d = run_nmse(got, want, T * E);
    ok(good && d < 1e-11, "chameleon, %s: %.2g from doubles%s", what, d,
       good ? "" : r.err.message);
    run_close(&r);
    free(file);
    gen_fini(&g);
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
    check_chameleon();
    for (size_t i = 0; i < GG_LEN(forms); i++)
        check_form(&forms[i].s, forms[i].what);
    return done_testing();
}
