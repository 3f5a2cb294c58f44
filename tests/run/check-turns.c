/* SPDX-License-Identifier: MIT */
/* check-turns.c - a session's own positions and windows that are refused; those
 * that count give what files with their keys give (texts of tests/family)
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/family/variant.h"
#include "tests/tap.h"

static float out[VARIANT_TOKENS * VARIANT_WIDTH];

/* ---- refusals: what texts of tests/family say but for the status ---- */

static const struct {
    const char *name, *changes;
    enum gguf_status st;
    const char *says;
} refusals[] = {
    { "llama", "set yarn_beta_fast 8", GGUF_E_INVALID,
      "yarn_beta_fast counts with" },
    { "llama", "set rope_freq_base 0.5", GGUF_E_HPARAM,
      "llama.rope.freq_base is 0.5" },
    { "llama", "set rope_freq_base nan", GGUF_E_HPARAM,
      "llama.rope.freq_base is " },
    { "llama", "set rope_factor -2", GGUF_E_HPARAM,
      "llama.rope.scaling.factor is 0" },
    { "llama", "set rope_scaling 9", GGUF_E_INVALID, "rope_scaling 9" },
    { "gemma3", "set rope_scaling longrope", GGUF_E_HPARAM,
      "'longrope' is not supported" },
    { "llama", "set n_window 7", GGUF_E_UNSUPPORTED,
      "'llama' have no windows" },
    { "gpt2", "set rope_freq_base 777", GGUF_E_UNSUPPORTED,
      "rope_freq_base: models of" },
    { "gpt2", "set rope_scaling none", GGUF_E_UNSUPPORTED,
      "rope_scaling: models of" },
    { "mamba", "set rope_factor 3", GGUF_E_UNSUPPORTED,
      "rope_factor: models of" },
};

static void check_refused(void)
{
    struct gguf_error err;
    for (size_t i = 0; i < GG_LEN(refusals); i++) {
        const bool good =
            !variant_outputs(refusals[i].name, refusals[i].changes, out, &err);
        ok(good && err.status == refusals[i].st &&
               strstr(err.message, refusals[i].says),
           "%s: %s", refusals[i].name, good ? err.message : "evaluated");
    }
}

/* A program that was built before: a smaller struct, the file's positions. */
static void check_older(void)
{
    static struct variant v;
    static float got[VARIANT_TOKENS * VARIANT_WIDTH];
    struct gguf_error err;
    variant_open(&v, "llama", "set rope_freq_base 777");
    v.params.struct_size = offsetof(struct gguf_session_params, pooling);
    ok(variant_run(&v, got, &err) && variant_outputs("llama", "", out, &err) &&
           !memcmp(got, out, sizeof got),
       "what an older program does not know is the file's");
    variant_close(&v);
}

static void check_allocations(void)
{
    static struct variant v;
    struct gguf_session_params p;
    struct failalloc f;
    struct run r;
    size_t size;
    unsigned i, bad = 0;
    bool good;
    variant_open(&v, "gemma3", "context 16 + set n_window 7");
    void *file = variant_file(&v, &size);
    p = v.params;
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
    variant_close(&v);
}

int main(void)
{
    check_refused();
    check_older();
    check_allocations();
    return done_testing();
}
