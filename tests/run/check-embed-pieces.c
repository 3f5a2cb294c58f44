/* SPDX-License-Identifier: MIT */
/* check-embed-pieces.c - sequence embeddings do not depend on how a batch is
 * cut, on tokens shared by sequences, or on the order of positions */
#include "config.h"
#include "base/compiler.h"
#include "tests/run/embed.h"
#include "tests/model/run.h"
#include "tests/tap.h"

enum { N = 41 };
static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;
static const enum gguf_pooling kinds[] = { GGUF_POOLING_MEAN, GGUF_POOLING_CLS,
                                           GGUF_POOLING_LAST };

static bool embed_batch(struct run *r, const struct gguf_batch *b,
                        uint32_t seq, float out[32])
{
    const float *row;
    size_t n;
    if (gguf_session_decode(r->session, b, &r->err) != GGUF_OK ||
        gguf_session_embedding(r->session, seq, &row, &n, &r->err) !=
            GGUF_OK ||
        n != 32)
        return false;
    memcpy(out, row, 32 * sizeof *row);
    return true;
}

/* A text's vector is the same alone and beside another text, with any
 * micro-batch size and any number of threads. */
static void check_pieces(void)
{
    struct gguf_batch both = GGUF_BATCH_INIT, one = GGUF_BATCH_INIT;
    gguf_token tok[2 * N], text[N];
    int32_t seq[2 * N];
    size_t size;
    void *file = embed_llama(&size);
    embed_mix(&both, tok, seq, N, 23);
    one.n = embed_text(&both, 0, text);
    one.token = text;
    for (size_t k = 0; k < GG_LEN(kinds); k++) {
        float want[32] = { 0 }, got[32];
        unsigned bad = 0, ways = 0;
        for (uint32_t ub = 0; ub < 70; ub += ub < 8 ? 4 : 11) {
            struct gguf_session_params p = init;
            struct run r;
            p.pooling = kinds[k];
            p.n_seq = 2;
            p.n_ubatch = ub;
            bad += !run_open(&r, file, size, 1 + ub % 3, &p);
            for (uint32_t q = 0; q < 2; q++) {
                const bool good = embed_batch(&r, q ? &both : &one, 0, got) &&
                                  !gguf_session_clear(r.session, &r.err);
                if (!ub && !q)
                    memcpy(want, got, sizeof want);
                bad += !good || memcmp(got, want, sizeof got) != 0;
                ways++;
            }
            run_close(&r);
        }
        ok(!bad, "a decoder, %s: %u of %u ways give other bits",
           gguf_pooling_name(kinds[k]), bad, ways);
    }
    free(file);
}

/* A token of two sequences counts for each of them, whether it is computed
 * once or twice. */
static void check_several(void)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[20];
    int32_t seq[40];
    uint32_t n_seq[20];
    bool none[20] = { 0 };
    size_t size, n;
    void *file = embed_llama(&size);
    for (int32_t i = 0; i < 20; i++) {
        tok[i] = (i * 37 + 11) % EMBED_VOCAB;
        seq[2 * i] = 1;
        seq[2 * i + 1] = 0;
        n_seq[i] = 2;
    }
    b.n = 20;
    b.token = tok;
    b.want = none;
    for (size_t k = 0; k < 6; k++) {
        struct gguf_session_params p = init;
        float alone[32], both[32];
        const float *row;
        struct run r;
        p.n_seq = 2;
        p.n_ubatch = 8;
        p.unified = k >= 3;
        p.pooling = kinds[k % 3];
        b.seq = NULL;
        b.n_seq = NULL;
        bool good =
            run_open(&r, file, size, 1, &p) && embed_batch(&r, &b, 0, alone);
        b.seq = seq;
        b.n_seq = n_seq;
        good = good && !gguf_session_clear(r.session, &r.err) &&
               embed_batch(&r, &b, 0, both) &&
               !gguf_session_embedding(r.session, 1, &row, &n, &r.err);
        ok(good && !memcmp(alone, both, sizeof both) &&
               !memcmp(alone, row, sizeof both),
           "tokens of two sequences%s, %s%s%s", p.unified ? ", unified" : "",
           gguf_pooling_name(p.pooling), good ? "" : ": ",
           good ? "" : r.err.message);
        run_close(&r);
    }
    free(file);
}

/* The file's pooling is the last token. The last token is the one with the
 * largest position, not the last one in the batch. Requested logits do not
 * change. */
static void check_positions(void)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    static const int32_t pos[5] = { 3, 1, 4, 0, 2 };
    gguf_token tok[5] = { 5, 6, 7, 8, 9 };
    bool want[5] = { 1, 1, 0, 1, 1 }, none[5] = { 0 };
    float a[32], c[32], rows[4 * 32];
    const float *states;
    size_t size;
    struct run r;
    void *file = embed_llama(&size);
    struct gguf_session_params p = init;
    b.n = 5;
    b.token = tok;
    b.pos = pos;
    b.want = want;
    bool good = run_open(&r, file, size, 1, &p) && embed_batch(&r, &b, 0, a) &&
                gguf_session_n_outputs(r.session) == 4 &&
                !gguf_session_states(r.session, 0, 4, &states, &r.err) &&
                gguf_model_info(r.model)->pooling == GGUF_POOLING_LAST &&
                gguf_session_pooling(r.session) == GGUF_POOLING_LAST;
    if (good)
        memcpy(rows, states, sizeof rows);
    good = good && !gguf_session_clear(r.session, &r.err);
    b.want = none;
    good = good && embed_batch(&r, &b, 0, c) && !memcmp(a, c, sizeof a) &&
           gguf_session_n_outputs(r.session) == 0;
    run_close(&r);
    p.pooling = GGUF_POOLING_NONE;
    memset(want, 1, sizeof want);
    b.want = want;
    good = good && run_open(&r, file, size, 1, &p) &&
           !gguf_session_decode(r.session, &b, &r.err) &&
           !gguf_session_states(r.session, 0, 5, &states, &r.err);
    ok(good && !memcmp(states + 2 * 32, a, sizeof a),
       "last is the token at the highest position: %s", r.err.message);
    ok(good && !memcmp(rows, states, 2 * sizeof a) &&
           !memcmp(rows + 64, states + 96, 2 * sizeof a),
       "wanted states are as without pooling");
    p.pooling = GGUF_POOLING_CLS;
    float first[32];
    memcpy(first, states + 3 * 32, sizeof first);
    run_close(&r);
    good =
        good && run_open(&r, file, size, 1, &p) && embed_batch(&r, &b, 0, a);
    ok(good && !memcmp(first, a, sizeof a),
       "cls is the token at the lowest position");
    run_close(&r);
    free(file);
}

int main(void)
{
    check_pieces();
    check_several();
    check_positions();
    return done_testing();
}
