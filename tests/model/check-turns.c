/* SPDX-License-Identifier: MIT */
/* check-turns.c - a session's own positions and windows, against files that
 * have these keys: the same bits
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/model/vary.h"
#include "tests/tap.h"

#include <math.h>

static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;

typedef void set_fn(struct gguf_session_params *p);

/* Logits of a changed model, and of a session with other parameters. */
static bool logits(const char *name, vary_fn *change, set_fn *set, float *out,
                   struct gguf_error *err)
{
    struct gguf_session_params p = init;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[VARY_N];
    struct run r;
    size_t size;
    void *file = vary_file(name, change, &size);
    skeleton_tokens_of(&vary_model, tok);
    p.n_ctx = VARY_N;
    if (set)
        set(&p);
    b.n = VARY_N;
    b.token = tok;
    const bool good = run_open(&r, file, size, 1, &p) &&
                      run_logits(&r, &b, out) &&
                      gguf_session_model(r.session) == r.model;
    *err = r.err;
    run_close(&r);
    free(file);
    skeleton_close(&vary_model);
    return good;
}

/* ---- each as a key and as a parameter ---- */

#define BOTH(NAME, KEY, MEMBER)                                               \
    static void key_##NAME(void)                                              \
    {                                                                         \
        KEY;                                                                  \
    }                                                                         \
    static void set_##NAME(struct gguf_session_params *p)                     \
    {                                                                         \
        MEMBER;                                                               \
    }
#define YARN vary_str(".rope.scaling.type", "yarn")
#define P_YARN                                                                \
    p->rope_scaling = GGUF_ROPE_SCALING_YARN;                                 \
    p->rope_factor = 4
#define FACTOR vary_f32(".rope.scaling.factor", 4)

BOTH(base, vary_f32(".rope.freq_base", 777), p->rope_freq_base = 777)
BOTH(factor, vary_f32(".rope.scaling.factor", 3), p->rope_factor = 3)
BOTH(linear, vary_str(".rope.scaling.type", "linear");
     vary_f32(".rope.scaling.factor", 2.5f), p->rope_factor = 2.5f;
     p->rope_scaling = GGUF_ROPE_SCALING_LINEAR)
BOTH(none, vary_str(".rope.scaling.type", "none"),
     p->rope_scaling = GGUF_ROPE_SCALING_NONE)
BOTH(yarn, YARN; FACTOR, P_YARN)
BOTH(orig, YARN; FACTOR;
     vary_u32(".rope.scaling.original_context_length", 16), P_YARN;
     p->yarn_orig_ctx = 16)
BOTH(ext, YARN; FACTOR;
     vary_f32(".rope.scaling.yarn_ext_factor", 0.5f), P_YARN;
     p->yarn_ext_factor = 0.5f)
BOTH(no_ext, YARN; FACTOR;
     vary_f32(".rope.scaling.yarn_ext_factor", 0), P_YARN;
     p->yarn_ext_factor = -1)
BOTH(attn, YARN; FACTOR; vary_f32(".rope.scaling.yarn_ext_factor", 0);
     vary_f32(".rope.scaling.yarn_attn_factor", 1.25f), P_YARN;
     p->yarn_ext_factor = -1; p->yarn_attn_factor = 1.25f)
BOTH(betas, YARN; FACTOR; vary_f32(".rope.scaling.yarn_beta_fast", 8);
     vary_f32(".rope.scaling.yarn_beta_slow", 2), P_YARN;
     p->yarn_beta_fast = 8; p->yarn_beta_slow = 2)
BOTH(window, vary_u32(".attention.sliding_window", 7), p->n_window = 7)
BOTH(no_window, vary_u32(".attention.sliding_window", 0),
     p->n_window = UINT32_MAX)

static const struct {
    const char *name;
    vary_fn *key;
    set_fn *set;
    const char *what;
    bool same; /* as of the plain file */
} pairs[] = {
    { "llama", key_base, set_base, "another base", false },
    { "llama", key_factor, set_factor, "a factor", false },
    { "llama", key_linear, set_linear, "a linear scaling", false },
    { "llama", key_none, set_none, "no scaling", true },
    { "llama", key_yarn, set_yarn, "YaRN", false },
    { "llama", key_orig, set_orig, "its context", false },
    { "llama", key_ext, set_ext, "its extrapolation", false },
    { "llama", key_no_ext, set_no_ext, "no extrapolation", false },
    { "llama", key_attn, set_attn, "its magnitude", false },
    { "llama", key_betas, set_betas, "its betas", false },
    { "gemma3", key_base, set_base, "base of full layers", false },
    { "gemma3", key_factor, set_factor, "factor of full layers", false },
    { "gemma3", key_window, set_window, "a window", false },
    { "gemma2", key_window, set_window, "a window", false },
    { "gpt-oss", key_window, set_window, "a window", false },
    { "gpt-oss", key_betas, set_betas, "betas", false },
    { "gemma2", key_no_window, set_no_window, "no window", false },
    { "deepseek2", key_yarn, set_yarn, "YaRN, of scores, too", false },
    { "qwen3vl", key_base, set_base, "a base of several axes", false },
};

static void check_equal(void)
{
    static float plain[VARY_N * VARY_V], want[VARY_N * VARY_V],
        got[VARY_N * VARY_V];
    for (size_t i = 0; i < GG_LEN(pairs); i++) {
        struct gguf_error err;
        const bool good =
            logits(pairs[i].name, NULL, NULL, plain, &err) &&
            logits(pairs[i].name, pairs[i].key, NULL, want, &err) &&
            logits(pairs[i].name, NULL, pairs[i].set, got, &err);
        ok(good && !memcmp(want, got, sizeof got) &&
               pairs[i].same == !memcmp(plain, got, sizeof got),
           "%s, %s: the bits of a file that has it%s%s", pairs[i].name,
           pairs[i].what, good ? "" : ": ", good ? "" : err.message);
    }
}

/* ---- refusals ---- */

static void beta_alone(struct gguf_session_params *p)
{
    p->yarn_beta_fast = 8;
}
static void low_base(struct gguf_session_params *p)
{
    p->rope_freq_base = 0.5f;
}
static void nan_base(struct gguf_session_params *p)
{
    p->rope_freq_base = NAN;
}
static void below(struct gguf_session_params *p)
{
    p->rope_factor = -2;
}
static void scaling_9(struct gguf_session_params *p)
{
    p->rope_scaling = (enum gguf_rope_scaling)9;
}
static void longrope(struct gguf_session_params *p)
{
    p->rope_scaling = GGUF_ROPE_SCALING_LONGROPE;
}

static const struct {
    const char *name;
    set_fn *set;
    enum gguf_status st;
    const char *says;
} refusals[] = {
    { "llama", beta_alone, GGUF_E_INVALID, "yarn_beta_fast counts with" },
    { "llama", low_base, GGUF_E_HPARAM, "llama.rope.freq_base is 0.5" },
    { "llama", nan_base, GGUF_E_HPARAM, "llama.rope.freq_base is " },
    { "llama", below, GGUF_E_HPARAM, "llama.rope.scaling.factor is 0" },
    { "llama", scaling_9, GGUF_E_INVALID, "rope_scaling 9" },
    { "gemma3", longrope, GGUF_E_HPARAM, "'longrope' is not supported" },
    { "llama", set_window, GGUF_E_UNSUPPORTED, "'llama' have no windows" },
    { "gpt2", set_base, GGUF_E_UNSUPPORTED, "rope_freq_base: models of" },
    { "gpt2", set_none, GGUF_E_UNSUPPORTED, "rope_scaling: models of" },
    { "mamba", set_factor, GGUF_E_UNSUPPORTED, "rope_factor: models of" },
};

static void check_refused(void)
{
    static float out[VARY_N * VARY_V];
    struct gguf_error err;
    for (size_t i = 0; i < GG_LEN(refusals); i++) {
        const bool good =
            !logits(refusals[i].name, NULL, refusals[i].set, out, &err);
        ok(good && err.status == refusals[i].st &&
               strstr(err.message, refusals[i].says),
           "%s: %s", refusals[i].name, good ? err.message : "evaluated");
    }
}

/* A program that was built before: a smaller struct, the file's positions. */
static void cut_off(struct gguf_session_params *p)
{
    p->rope_freq_base = 777;
    p->struct_size = offsetof(struct gguf_session_params, pooling);
}

static void check_older(void)
{
    static float a[VARY_N * VARY_V], b[VARY_N * VARY_V];
    struct gguf_error err;
    ok(logits("llama", NULL, NULL, a, &err) &&
           logits("llama", NULL, cut_off, b, &err) && !memcmp(a, b, sizeof a),
       "what an older program does not know is the file's");
}

static void check_allocations(void)
{
    struct gguf_session_params p = init;
    struct failalloc f;
    struct run r;
    size_t size;
    unsigned i, bad = 0;
    bool good;
    if (!skeleton_open(&vary_model, "gemma3"))
        abort();
    void *file = gen_file(&vary_model.g, GGUF_DTYPE_F32, &size);
    p.n_ctx = 16;
    p.n_window = 7;
    for (i = 0;; i++) {
        p.allocator = failalloc_init(&f, i);
        good = run_open(&r, file, size, 1, &p);
        run_close(&r);
        bad += f.live != 0 || (!good && r.err.status != GGUF_E_NOMEM);
        if (f.calls <= i)
            break;
    }
    ok(good && !bad, "each of %u allocations may fail", i);
    free(file);
    skeleton_close(&vary_model);
}

int main(void)
{
    check_equal();
    check_refused();
    check_older();
    check_allocations();
    return done_testing();
}
