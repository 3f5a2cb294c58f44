/* SPDX-License-Identifier: MIT */
/* check-positions.c - RoPE and window settings of a session: old programs
 * without them, and failing allocations. Their effects are tested in
 * the texts of tests/family. */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/family/variant.h"
#include "tests/tap.h"

static float out[VARIANT_TOKENS * VARIANT_WIDTH];

/* A program built before the settings: a smaller struct, the file's positions.
 */
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
    check_older();
    check_allocations();
    return done_testing();
}
