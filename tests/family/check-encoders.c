/* SPDX-License-Identifier: MIT */
/* check-encoders.c - T5 against double precision, and sessions of encoders and
 * of encoder-decoders */
#include "config.h"
#include "base/compiler.h"
#include "model/build.h"
#include "tests/family/refenc.h"
#include "tests/family/variant.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>

enum { V = 128, E = 128, N_ENC = 41, N_DEC = 37, MOST = 160, WHY = 256 };
static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;

static void make_tokens(gguf_token *t, size_t n, int first)
{
    for (size_t i = 0; i < n; i++)
        t[i] = (gguf_token)((i * 37 + (size_t)first) % V);
}

static bool encode_text(struct run *r, const gguf_token *tok, size_t n,
                        const bool *want)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = n;
    b.token = tok;
    b.want = want;
    return gguf_session_encode(r->session, &b, &r->err) == GGUF_OK;
}

/* States of every token of a text. */
static bool states_of(struct run *r, const gguf_token *tok, size_t n,
                      float *out)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = n;
    b.token = tok;
    return run_states(r, &b, out);
}

static bool logits_of(struct run *r, const gguf_token *tok, size_t n,
                      float *out)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = n;
    b.token = tok;
    return run_logits(r, &b, out);
}

/* ---- buckets ---- */

/* Distances at which buckets begin, from the formula by hand. */
static void check_buckets(void)
{
    static const int both_32[] = { 1,  2,  3,  4,  5,  6,  7, 8,
                                   12, 16, 23, 32, 46, 64, 91 };
    static const int back_32[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                   12, 13, 14, 15, 16, 19, 21, 24, 27, 31, 35,
                                   40, 46, 52, 59, 67, 77, 87, 99, 113 };
    unsigned bad = 0;
    int b = 0, c = 0;
    for (int d = 0; d < 1000; d++) {
        b += b < 15 && d == both_32[b];
        c += c < 31 && d == back_32[c];
        bad += gg_model_position_bucket(32, true, -d) != b ||
               (d && gg_model_position_bucket(32, true, d) != 16 + b) ||
               gg_model_position_bucket(32, false, -d) != c ||
               gg_model_position_bucket(32, false, d) != 0;
    }
    ok(!bad && b == 15 && c == 31, "32 buckets of distances: %u differ", bad);
    bad = 0;
    for (uint32_t n = 4; n <= 255; n++)
        for (int64_t d = -300; d <= 300; d++)
            for (int both = 0; both < 2; both++) {
                const int32_t y = gg_model_position_bucket(n, both, d);
                bad += y < 0 || (uint32_t)y >= n ||
                       (d < 0 && gg_model_position_bucket(n, both, d - 1) < y);
            }
    ok(!bad && gg_model_position_bucket(4, true, INT32_MAX) == 3 &&
           gg_model_position_bucket(255, false, INT32_MIN) == 254,
       "of 4 to 255: in range, and not decreasing with distance");
}

/* ---- T5 ---- */

/* Variants that have a name in the texts. */
static const struct {
    const char *model, *variant;
} t5s[] = {
    { "t5", "shared" },
    { "t5", "first_t5" },
    { "t5", "deep_decoder" },
    { "t5", "deep_encoder" },
    { "t5", "grouped" },
    { "t5encoder", "shared" },
    { "t5encoder", "three_layers" },
};

/* Compare with double precision. The text [n] is longer than the distance of
 * the last bucket. */
static void check_t5_model(const char *model, const char *variant, size_t n,
                           size_t m)
{
    static float states[MOST * E], logits[MOST * V], again[MOST * V];
    static double want[MOST * E], want_logits[MOST * V];
    static struct variant v;
    struct gguf_session_params p = init;
    gguf_token text[MOST], to[MOST];
    struct run r;
    size_t size;
    variant_open(&v, model, variant);
    void *file = variant_file(&v, &size);
    make_tokens(text, n, 11);
    make_tokens(to, m, 3);
    p.n_ctx = MOST;
    refenc_t5_run(&v.m, text, (int)n, to, (int)m, want, want_logits);
    bool good =
        run_open(&r, file, size, 2, &p) && states_of(&r, text, n, states);
    double d = run_nmse_double(states, want, n * E), e = 0;
    if (good && gguf_model_info(r.model)->encodes_first) {
        good = logits_of(&r, to, m, logits) && states_of(&r, text, n, states);
        for (size_t i = 0; good && i < m; i++)
            good = logits_of(&r, to + i, 1, again + i * V);
        e = fmax(run_nmse_double(logits, want_logits, m * V),
                 run_nmse(again, logits, m * V));
    }
    ok(good && d < 1e-11 && e < 1e-11,
       "%s, %s: %.2g of states, %.2g of logits%s", model, variant, d, e,
       good ? "" : r.err.message);
    run_close(&r);
    free(file);
    variant_close(&v);
}

/* ---- a session ---- */

static void *t5_file(int i, size_t *size)
{
    static struct variant v;
    variant_open(&v, t5s[i].model, t5s[i].variant);
    void *file = variant_file(&v, size);
    variant_close(&v);
    return file;
}

static bool has_error(const struct run *r, enum gguf_status st,
                      const char *text)
{
    return r->err.status == st && strstr(r->err.message, text);
}

static void check_order(void)
{
    struct gguf_session_params p = init;
    static float x[V * 8];
    gguf_token tok[8];
    const float *rows;
    struct run r;
    size_t size;
    void *file = t5_file(0, &size);
    make_tokens(tok, 8, 1);
    p.n_ctx = 32;
    p.n_ubatch = 8;
    bool good = run_open(&r, file, size, 1, &p);
    const struct gguf_model_info *info = gguf_model_info(r.model);
    ok(good && info->encodes_first && info->has_logits && !info->is_whole &&
           info->decoder_start == 3,
       "a model that encodes first, and begins with token 3");
    good = !logits_of(&r, tok, 1, x) &&
           has_error(&r, GGUF_E_INVALID, "sequence 0: no text was encoded");
    ok(good, "nothing is decoded before: %s", r.err.message);
    good = encode_text(&r, tok, 5, NULL) &&
           gguf_session_n_outputs(r.session) == 1 &&
           gguf_session_states(r.session, 0, 1, &rows, &r.err) == GGUF_OK &&
           gguf_session_logits(r.session, 0, 1, &rows, &r.err) != GGUF_OK &&
           has_error(&r, GGUF_E_UNSUPPORTED, "the last batch was encoded");
    ok(good && !rows, "encoded tokens have states, no logits: %s",
       r.err.message);
    good =
        logits_of(&r, tok, 3, x) && gguf_session_n_tokens(r.session, 0) == 3;
    gguf_token nine[9] = { 0 };
    good = good && !encode_text(&r, nine, 9, NULL) &&
           has_error(&r, GGUF_E_FULL, "sequence 0 gets 9 tokens") &&
           gguf_session_n_tokens(r.session, 0) == 3;
    ok(good, "a text is encoded at once: %s", r.err.message);
    good = encode_text(&r, tok, 2, NULL) &&
           gguf_session_n_tokens(r.session, 0) == 0 &&
           gguf_session_clear(r.session, &r.err) == GGUF_OK &&
           !logits_of(&r, tok, 1, x) &&
           has_error(&r, GGUF_E_INVALID, "no text was encoded");
    ok(good, "encoding begins again, and clearing removes the encoded text");
    run_close(&r);
    free(file);
}

/* Encoding a text replaces the last one and all that was decoded. Decoded
 * tokens can be removed in part. */
static void check_again(void)
{
    static float first[N_DEC * V], got[N_DEC * V];
    struct gguf_session_params p = init;
    gguf_token text[MOST], other[MOST], to[N_DEC];
    struct run r;
    size_t size;
    void *file = t5_file(1, &size);
    make_tokens(text, N_ENC, 11);
    make_tokens(other, MOST, 5);
    make_tokens(to, N_DEC, 3);
    p.n_ctx = MOST;
    p.n_ubatch = MOST;
    bool good =
        run_open(&r, file, size, 2, &p) &&
        encode_text(&r, text, N_ENC, NULL) &&
        logits_of(&r, to, N_DEC, first) &&
        encode_text(&r, other, MOST, NULL) && logits_of(&r, to, 20, got) &&
        memcmp(got, first, 20 * V * sizeof *got) &&
        encode_text(&r, text, N_ENC, NULL) && logits_of(&r, to, N_DEC, got);
    ok(good && !memcmp(got, first, sizeof first),
       "the same text again, the same bits: %s", good ? "" : r.err.message);
    good =
        good &&
        gguf_session_remove_tokens(r.session, 0, 20, -1, &r.err) == GGUF_OK &&
        logits_of(&r, to + 20, N_DEC - 20, got);
    ok(good && !memcmp(got, first + 20 * V, (N_DEC - 20) * V * sizeof *got),
       "the last tokens removed and decoded again: %s",
       good ? "" : r.err.message);
    run_close(&r);
    free(file);
}

/* Encode texts of three lengths side by side, and decode a text after each. */
static void check_beside(void)
{
    enum { SEQS = 3, LEN = 6 };
    static const size_t len[SEQS] = { 9, 33, 9 };
    static float alone[SEQS][LEN * V], beside[SEQS * LEN * V];
    struct gguf_session_params p = init;
    gguf_token text[SEQS * 40], to[SEQS * LEN];
    int32_t seq[SEQS * 40], to_seq[SEQS * LEN];
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct run r;
    size_t size, n = 0;
    void *file = t5_file(2, &size);
    p.n_ctx = 48;
    p.n_seq = SEQS;
    bool good = run_open(&r, file, size, 2, &p);
    for (int q = 0; q < SEQS; q++) {
        make_tokens(text + n, len[q], q + 1);
        make_tokens(to + q * LEN, LEN, 7 * q);
        good = good && encode_text(&r, text + n, len[q], NULL) &&
               logits_of(&r, to + q * LEN, LEN, alone[q]);
        for (size_t i = 0; i < len[q]; i++)
            seq[n++] = q;
        for (int i = 0; i < LEN; i++)
            to_seq[q * LEN + i] = q;
    }
    b.n = n;
    b.token = text;
    b.seq = seq;
    good = good && gguf_session_encode(r.session, &b, &r.err) == GGUF_OK;
    b.n = SEQS * LEN;
    b.token = to;
    b.seq = to_seq;
    good = good && run_logits(&r, &b, beside);
    ok(good && !memcmp(beside, alone, sizeof beside),
       "sequences with texts of several lengths: the same bits as alone: %s",
       good ? "" : r.err.message);
    /* encode one of them again; the others stay */
    b.n = len[0];
    b.token = text;
    b.seq = seq;
    good = good && gguf_session_encode(r.session, &b, &r.err) == GGUF_OK &&
           gguf_session_n_tokens(r.session, 0) == 0 &&
           gguf_session_n_tokens(r.session, 1) == LEN;
    ok(good, "one encoded again, the others stay");
    run_close(&r);
    free(file);
}

static void check_bounds(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16 };
    static float x[2][N_DEC * V];
    uint64_t size[2][2] = { { 0 } };
    struct gguf_session_params p = init;
    gguf_token tok[N_DEC];
    struct run r;
    size_t n;
    void *file = t5_file(3, &n);
    make_tokens(tok, N_DEC, 1);
    p.n_ctx = 64;
    p.n_seq = 2;
    bool good = true, same = true;
    for (int i = 0; i < 2 && good; i++) {
        p.key_dtype = p.value_dtype = gguf_dtype_find(types[i]);
        good = run_open(&r, file, n, 1, &p);
        p.backend = r.backend;
        gguf_session_memory_size(r.session, &size[0][0], &size[0][1]);
        good = good &&
               gguf_session_estimate_memory(r.model, &p, &size[1][0],
                                            &size[1][1], &r.err) == GGUF_OK;
        same = same && !memcmp(size[0], size[1], sizeof size[0]);
        good = good && encode_text(&r, tok, N_DEC, NULL) &&
               logits_of(&r, tok, N_DEC, x[i]);
        gguf_session_memory_size(r.session, &size[1][0], &size[1][1]);
        same = same && !memcmp(size[0], size[1], sizeof size[0]);
        run_close(&r);
    }
    ok(good && same && size[0][0],
       "memory is as was estimated, before and after");
    const double d = run_nmse(x[1], x[0], N_DEC * V);
    ok(good && d > 0 && d < 1e-6, "halves are kept, too: %.2g", d);
    free(file);
}

/* Models without an encoder, and encoders without a decoder. */
static void check_others(void)
{
    static const struct gen_spec llama = { GEN_ONE_LAYER, .n_vocab = V };
    static float a[8 * E], b[8 * E];
    struct gguf_batch batch = GGUF_BATCH_INIT;
    gguf_token tok[8];
    const float *rows;
    struct run r;
    size_t size;
    make_tokens(tok, 8, 2);
    void *file = gen_model_file(&llama, 1, GGUF_DTYPE_F32, &size);
    bool good = run_open(&r, file, size, 1, &init) &&
                !encode_text(&r, tok, 4, NULL) &&
                has_error(&r, GGUF_E_UNSUPPORTED, "'llama' have no encoder");
    ok(good && !gguf_model_info(r.model)->encodes_first &&
           gguf_model_info(r.model)->decoder_start == GGUF_TOKEN_NONE,
       "llama: %s", r.err.message);
    run_close(&r);
    free(file);
    file = t5_file(5, &size);
    batch.n = 8;
    batch.token = tok;
    batch.want = (const bool[]){ 1, 1, 1, 1, 1, 1, 1, 1 };
    good = run_open(&r, file, size, 1, &init) && states_of(&r, tok, 8, a) &&
           gguf_session_decode(r.session, &batch, &r.err) == GGUF_OK &&
           gguf_session_states(r.session, 0, 8, &rows, &r.err) == GGUF_OK;
    if (good)
        memcpy(b, rows, sizeof b);
    ok(good && !memcmp(a, b, sizeof a),
       "an encoder alone: encode is decode: %s", good ? "" : r.err.message);
    run_close(&r);
    free(file);
}

int main(void)
{
    check_buckets();
    for (size_t i = 0; i < GG_LEN(t5s); i++)
        check_t5_model(t5s[i].model, t5s[i].variant, i ? N_ENC : MOST,
                       i ? N_DEC : 140);
    check_order();
    check_again();
    check_beside();
    check_bounds();
    check_others();
    return done_testing();
}
