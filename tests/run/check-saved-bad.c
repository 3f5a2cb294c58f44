/* SPDX-License-Identifier: MIT */
/* check-saved-bad.c - saved states that are refused: of another model or
 * session, damaged, truncated, and without memory */
#include "config.h"
#include "base/bytes.h"
#include "tests/failalloc.h"
#include "tests/run/saved_state.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <xxhash.h>

static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;

static void check_unfit(const char *model, const char *changes,
                        void (*with)(struct gguf_session_params *),
                        uint32_t seq, const struct saved_bytes *b,
                        enum gguf_status st, uint64_t at, const char *text)
{
    const struct saved_kind k = { "llama", GGUF_DTYPE_F32, false, false,
                                  false };
    struct gguf_session_params p = saved_params_of(&k);
    struct run r;
    size_t size;
    void *file = saved_file_of(model, changes, &size);
    if (with)
        with(&p);
    const bool good = run_open(&r, file, size, 1, &p) &&
                      saved_set(&r, seq, b) == st && r.err.offset == at &&
                      strstr(r.err.message, text) &&
                      !gguf_session_n_tokens(r.session, 0);
    ok(good, "%s", r.err.message);
    run_close(&r);
    free(file);
}

static void with_f16(struct gguf_session_params *p)
{
    p->value_dtype = gguf_dtype_find(GGUF_DTYPE_F16);
}
static void with_base(struct gguf_session_params *p)
{
    p->rope_freq_base = 777;
}
static void with_few(struct gguf_session_params *p)
{
    p->n_ctx = 16;
}
static void with_one(struct gguf_session_params *p)
{
    p->n_seq = 1;
}

static void check_foreign(void)
{
    const struct saved_kind k = { "llama", GGUF_DTYPE_F32, false, false,
                                  false };
    struct gguf_session_params p = saved_params_of(&k);
    struct saved_bytes one, all;
    struct run r;
    uint64_t n;
    size_t size;
    void *file = saved_file_of("llama", "", &size);
    bool good = run_open(&r, file, size, 1, &p) && saved_fill(&r, &k) &&
                saved_get(&r, 0, &one) &&
                saved_get(&r, GGUF_ALL_SEQUENCES, &all);
    ok(good, "a state of llama: %s", good ? "" : r.err.message);
    check_unfit("qwen3", "", NULL, 0, &one, GGUF_E_MISMATCH, 24,
                "another model");
    check_unfit("llama", "key .attention.layer_norm_rms_epsilon f32 2e-05",
                NULL, 0, &one, GGUF_E_MISMATCH, 24, "another model");
    check_unfit("llama", "", with_base, 0, &one, GGUF_E_MISMATCH, 24,
                "another RoPE");
    check_unfit("llama", "", NULL, 0, &all, GGUF_E_MISMATCH, 12,
                "of all sequences");
    check_unfit("llama", "", NULL, GGUF_ALL_SEQUENCES, &one, GGUF_E_MISMATCH,
                12, "of one sequence");
    check_unfit("llama", "", with_one, GGUF_ALL_SEQUENCES, &all,
                GGUF_E_MISMATCH, 32, "the number of sequences is 3");
    check_unfit("llama", "", with_few, 0, &one, GGUF_E_FULL, 60, "50 tokens");
    struct gguf_error err;
    p.value_dtype = gguf_dtype_find(GGUF_DTYPE_F16);
    (void)with_f16;
    struct run h;
    good = run_open(&h, file, size, 1, &p) &&
           saved_set(&h, 0, &one) == GGUF_E_MISMATCH &&
           strstr(h.err.message, "cache_v.0 has type 0");
    ok(good, "%s", h.err.message);
    run_close(&h);
    ok(gguf_session_state_size(r.session, 3, &n, &err) == GGUF_E_INVALID &&
           gguf_session_state_set(r.session, 3, one.p, one.n, &err) ==
               GGUF_E_INVALID,
       "%s", err.message);
    ok(gguf_session_state_get(r.session, 0, one.p, one.n - 1, &err) ==
           GGUF_E_INVALID,
       "%s", err.message);
    run_close(&r);
    free(one.p);
    free(all.p);
    free(file);
    file = saved_file_of("bert", "", &size);
    good = run_open(&r, file, size, 1, &init) &&
           gguf_session_state_size(r.session, 0, &n, &r.err) ==
               GGUF_E_UNSUPPORTED;
    ok(good, "%s", r.err.message);
    run_close(&r);
    free(file);
}

/* Every truncated state and every state with a changed byte is refused, and
 * the session keeps its content. With a corrected checksum a changed state
 * does no harm. */
static void check_damage(void)
{
    const struct saved_kind k = { "llama", GGUF_DTYPE_F16, true, false,
                                  false };
    struct gguf_session_params p = saved_params_of(&k);
    struct saved_bytes b = { NULL, 0 }, now = b, cut;
    struct run r;
    size_t size, shorter = 0, other = 0, taken = 0;
    void *file = saved_file_of("llama", "", &size);
    bool good = run_open(&r, file, size, 1, &p) &&
                saved_decode(&r, 0, 0, 0, 5, NULL) &&
                saved_decode(&r, 1, 1, 0, 3, NULL) &&
                saved_get(&r, GGUF_ALL_SEQUENCES, &b);
    for (cut = b; good && cut.n-- > 0;)
        shorter += saved_set(&r, GGUF_ALL_SEQUENCES, &cut) == GGUF_OK ||
                   r.err.offset == GGUF_NO_OFFSET;
    cut = b;
    for (uint64_t i = 0; good && i < b.n; i++) {
        b.p[i] ^= (uint8_t)(1 << i % 8);
        other += saved_set(&r, GGUF_ALL_SEQUENCES, &b) == GGUF_OK ||
                 r.err.offset == GGUF_NO_OFFSET;
        b.p[i] ^= (uint8_t)(1 << i % 8);
    }
    good = good && saved_get(&r, GGUF_ALL_SEQUENCES, &now) && now.n == b.n &&
           !memcmp(now.p, b.p, (size_t)b.n);
    ok(good && !shorter && !other,
       "%" PRIu64
       " truncated states and that number of changed ones are refused: %s",
       b.n, r.err.message);
    /* bytes of the header, before the rows */
    for (uint64_t i = 24; good && i < 320; i++)
        for (unsigned bit = 0; bit < 8; bit += 3) {
            uint8_t *sum = b.p + b.n - 8;
            b.p[i] ^= (uint8_t)(1 << bit);
            gg_bytes_store64le(sum, XXH3_64bits(b.p, (size_t)b.n - 8));
            taken += saved_set(&r, GGUF_ALL_SEQUENCES, &b) == GGUF_OK &&
                     saved_decode(&r, 0, 0, 5, 7, NULL);
            b.p[i] ^= (uint8_t)(1 << bit);
        }
    ok(good, "with good checksums %zu are taken and go on", taken);
    run_close(&r);
    free(b.p);
    free(now.p);
    free(file);
}

/* ---- allocations ---- */

static void check_allocations(void)
{
    const struct saved_kind k = { "gemma3", GGUF_DTYPE_F32, true, false,
                                  false };
    struct gguf_session_params p = saved_params_of(&k);
    struct failalloc f;
    struct saved_bytes b;
    struct run r;
    size_t size;
    unsigned bad = 0, n_failed = 0;
    void *file = saved_file_of(k.name, "", &size);
    p.allocator = failalloc_init(&f, UINT_MAX);
    bool good = run_open(&r, file, size, 1, &p) && saved_fill(&r, &k) &&
                saved_get(&r, GGUF_ALL_SEQUENCES, &b);
    for (unsigned n = 0; good; n++) {
        const unsigned before = f.calls;
        const int live = f.live;
        f.fail_at = f.last = before + n;
        const enum gguf_status st = saved_set(&r, GGUF_ALL_SEQUENCES, &b);
        bad += f.live != live || (st != GGUF_OK && st != GGUF_E_NOMEM);
        n_failed += st != GGUF_OK;
        if (st == GGUF_OK)
            break;
    }
    f.fail_at = f.last = UINT_MAX;
    good = good && gguf_session_n_tokens(r.session, 0) == SAVED_A;
    ok(good && !bad && n_failed >= 3, "each of %u allocations may fail",
       n_failed);
    run_close(&r);
    free(b.p);
    free(file);
}

int main(void)
{
    check_foreign();
    check_damage();
    check_allocations();
    return done_testing();
}
