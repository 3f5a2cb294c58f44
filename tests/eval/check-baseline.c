/* SPDX-License-Identifier: MIT */
/* check-baseline.c - files of a base's logits: their bytes, and divergences of
 * a model computed from them */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "eval/baseline_int.h"
#include "gguf/kld.h"
#include "tests/ignore_status.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum {
    CTX = 11,
    CHUNKS = 4,
    V = 301,
    N = CHUNKS * CTX + 2,
    ROWS = CTX - 1 - CTX / 2,
    RECORD = 8 + 2 * (V + 1),
    FIRST = 20 + 4 * CHUNKS * CTX,
    SIZE = FIRST + CHUNKS * ROWS * RECORD
};

static void *file[2];
static size_t file_size[2];
static gguf_token text[N];
static float by_hand[2][CHUNKS * CTX * V]; /* logits of each chunk, decoded by
                                            * itself */
static char path[] = "check-baseline.XXXXXX";

static bool open_one(struct run *r, int which, uint32_t n_seq)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = CTX;
    p.n_seq = n_seq;
    p.n_ubatch = n_seq * CTX;
    bool good = run_open(r, file[which], file_size[which], 2, &p);
    if (!good)
        printf("# %s\n", r->err.message);
    return good;
}

static bool make_models(void)
{
    const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = V };
    bool good = true;
    for (int i = 0; i < N; i++)
        text[i] = (gguf_token)rnd_below(V);
    for (int m = 0; good && m < 2; m++) {
        struct run r;
        file[m] = gen_model_file(&spec, 5 + (uint64_t)m, GGUF_DTYPE_F32,
                                 &file_size[m]);
        good = open_one(&r, m, 1);
        for (int c = 0; good && c < CHUNKS; c++) {
            struct gguf_batch b = { .struct_size = sizeof b,
                                    .n = CTX,
                                    .token = text + c * CTX };
            ignore_status(gguf_session_clear(r.session, NULL));
            good = run_logits(&r, &b, by_hand[m] + c * CTX * V);
        }
        run_close(&r);
    }
    return good;
}

/* ---- records ---- */

static float single_at(const uint8_t *p)
{
    const uint32_t u = gg_bytes_load32le(p);
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static double float_at(const uint8_t *p)
{
    return (double)single_at(p);
}

/* ln p(i) of a stored row, decoded by the definition of the format. */
static double stored_logit(const uint8_t *record, size_t i)
{
    const float q = gg_bytes_load16le(record + 8 + 2 * i);
    const float step = single_at(record) * q;
    return (double)(step + single_at(record + 4));
}

static void check_records(void)
{
    /* stored in 16 bits: 5 to 5 - 65535 / 4096, in steps of 1 / 4096; smaller
     * logits become 5 - 16 */
    static const float row[] = {
        5, 5 - 1.0f / 4096, 5 - 2.4f / 4096, -11, -400, 4
    };
    uint8_t r[8 + 2 * 6];
    gg_baseline_encode(row, 6, r);
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += exp((double)row[i] - 5);
    const double step = 16.0 / 65535;
    ok(fabs(float_at(r) / step - 1) < 1e-7 &&
           fabs(float_at(r + 4) - (-16 - log(sum))) < 1e-5,
       "scale and least logarithm of a row");
    ok(gg_bytes_load16le(r + 8) == 65535 &&
           gg_bytes_load16le(r + 10) == 65534 &&
           gg_bytes_load16le(r + 12) == 65533 &&
           gg_bytes_load16le(r + 14) == 0 && gg_bytes_load16le(r + 16) == 0 &&
           gg_bytes_load16le(r + 18) == 61439,
       "numbers, rounded to nearest, those far below 0");
    static const float same[] = { 2, 2, 2 };
    memset(r, 255, sizeof r);
    gg_baseline_encode(same, 3, r);
    ok(float_at(r) == 0 && fabs(stored_logit(r, 1) + log(3)) < 1e-6 &&
           gg_bytes_load16le(r + 8 + 6) == 0,
       "a row of equal ones, and padding");
    double worst = 0;
    for (int i = 0; i < ROWS; i++) {
        const float *l = by_hand[0] + (CTX / 2 + i) * V;
        uint8_t rec[RECORD];
        double norm = 0;
        gg_baseline_encode(l, V, rec);
        for (int k = 0; k < V; k++)
            norm += exp((double)l[k]);
        for (int k = 0; k < V; k++)
            worst = fmax(worst, fabs(stored_logit(rec, (size_t)k) -
                                     ((double)l[k] - log(norm))) /
                                    float_at(rec));
    }
    ok(worst > 0.4 && worst < 0.52, "at most half a step off: %.3f", worst);
}

/* ---- files ---- */

static enum gguf_status scan_chunks(struct run *r, uint32_t n_seq,
                                    const struct gguf_sink *sink,
                                    size_t n_chunks, struct gguf_error *err)
{
    const struct gguf_sink *const sinks[] = { sink };
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    p.n_ctx = CTX;
    p.max_chunks = n_chunks;
    p.pool = r->pool;
    (void)n_seq;
    return gguf_scan_run(r->session, text, N, &p, sinks, 1, err);
}

static size_t read_back(uint8_t *out, size_t room)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(out, 1, room, f) : 0;
    if (f)
        fclose(f);
    return n;
}

static void write_back(const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f))
        abort();
}

static uint8_t bytes[SIZE + 1], want[SIZE];

static void check_file(void)
{
    memcpy(want, "_logits_", 8);
    gg_bytes_store32le(want + 8, CTX);
    gg_bytes_store32le(want + 12, V);
    gg_bytes_store32le(want + 16, CHUNKS);
    for (int i = 0; i < CHUNKS * CTX; i++)
        gg_bytes_store32le(want + 20 + 4 * i, (uint32_t)text[i]);
    for (int c = 0; c < CHUNKS; c++)
        for (int i = 0; i < ROWS; i++)
            gg_baseline_encode(by_hand[0] + (c * CTX + CTX / 2 + i) * V, V,
                               want + FIRST + (c * ROWS + i) * RECORD);
    static const uint32_t n_seq[] = { 1, 3 };
    for (size_t i = 0; i < GG_LEN(n_seq); i++) {
        struct gguf_baseline_writer_params wp = { .struct_size = sizeof wp,
                                                  .force = true };
        struct gguf_baseline_writer *w = NULL;
        struct gguf_error err = { .status = GGUF_OK };
        struct run r;
        bool good = open_one(&r, 0, n_seq[i]);
        wp.pool = r.pool;
        good = good &&
               gguf_baseline_writer_open(&w, path, &wp, &err) == GGUF_OK &&
               gguf_baseline_writer_commit(w, &err) == GGUF_E_INVALID &&
               scan_chunks(&r, n_seq[i], gguf_baseline_writer_sink(w), 0,
                           &err) == GGUF_OK &&
               gguf_baseline_writer_commit(w, &err) == GGUF_OK;
        ok(good && read_back(bytes, sizeof bytes) == SIZE &&
               !memcmp(bytes, want, SIZE),
           "%d bytes as the form has them, %u chunks together%s", (int)SIZE,
           n_seq[i], good ? "" : err.message);
        ok(good && scan_chunks(&r, 1, gguf_baseline_writer_sink(w), 0, &err) ==
                       GGUF_E_INVALID,
           "%s", err.message);
        gguf_baseline_writer_close(w);
        run_close(&r);
    }
}

static void check_reading(void)
{
    struct gguf_baseline *b = NULL;
    struct gguf_error err;
    ok(gguf_path_is_baseline(path) && !gguf_path_is_baseline("/") &&
           !gguf_path_is_baseline("/nowhere"),
       "such a file is known");
    bool good = gguf_baseline_open(&b, path, NULL, &err) == GGUF_OK;
    ok(good && gguf_baseline_n_ctx(b) == CTX &&
           gguf_baseline_n_vocab(b) == V &&
           gguf_baseline_n_chunks(b) == CHUNKS &&
           !memcmp(gguf_baseline_tokens(b), text, CHUNKS * CTX * sizeof *text),
       "and read");
    gguf_baseline_close(b);
}

/* A file with a changed word of the header, a changed token, or more bytes at
 * its end is refused. */
static void check_damaged(void)
{
    static const struct {
        size_t at;
        uint32_t value;
        int more; /* bytes to append */
        enum gguf_status st;
        const char *message;
    } cases[] = {
        { 0, 0x61626364, 0, GGUF_E_FORMAT, "does not begin with '_logits_'" },
        { 8, 3, 0, GGUF_E_INVALID, "the context is 3, must be 4 to " },
        { 8, UINT32_MAX, 0, GGUF_E_INVALID, "the context is -1, must be" },
        { 12, 0, 0, GGUF_E_INVALID, "the vocabulary is 0, must be 1 to " },
        { 16, 0, 0, GGUF_E_INVALID, "the number of chunks is 0" },
        { 16, CHUNKS + 1, 0, GGUF_E_TRUNCATED, "5 chunks of 11 tokens" },
        { 16, 1 << 28, 0, GGUF_E_TRUNCATED, "268435456 chunks" },
        { 20, V, 0, GGUF_E_INVALID, "token 0 is 301, the vocabulary has 301" },
        { 8, CTX, -1, GGUF_E_TRUNCATED, "the file has " },
        { 8, CTX, 1, GGUF_E_TRUNCATED, "the file has " },
        { 8, CTX, 19 - SIZE, GGUF_E_FORMAT, "not a file of a base's logits" },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_baseline *b;
        struct gguf_error err;
        memcpy(bytes, want, SIZE);
        gg_bytes_store32le(bytes + cases[i].at, cases[i].value);
        write_back(bytes, (size_t)(SIZE + cases[i].more));
        const enum gguf_status st = gguf_baseline_open(&b, path, NULL, &err);
        ok(st == cases[i].st && !b && strstr(err.message, cases[i].message),
           "%s", err.message);
    }
    write_back(want, SIZE);
}

/* ---- divergence by a file ---- */

static enum gguf_status compute_divergence(struct run *r,
                                           const struct gguf_baseline *b,
                                           struct gguf_kld **k,
                                           struct gguf_error *err)
{
    struct gguf_kld_params p = GGUF_KLD_PARAMS_INIT;
    p.model = 0;
    p.baseline = b;
    p.pool = r->pool;
    const enum gguf_status st = gguf_kld_create(k, &p, err);
    return st == GGUF_OK ? scan_chunks(r, 1, gguf_kld_sink(*k), 0, err) : st;
}

static void check_divergence(void)
{
    struct gguf_baseline *b = NULL;
    struct gguf_kld *k = NULL;
    struct gguf_error err;
    struct run r;
    size_t n = 0;
    double off[3] = { 0, 0, 0 };
    bool good = open_one(&r, 1, 2);
    good = good && gguf_baseline_open(&b, path, NULL, &err) == GGUF_OK &&
           compute_divergence(&r, b, &k, &err) == GGUF_OK;
    const struct gguf_kld_token *t = good ? gguf_kld_tokens(k, &n) : NULL;
    for (size_t i = 0; good && i < n; i++) {
        const uint8_t *rec = want + FIRST + i * RECORD;
        const size_t at = i / ROWS * CTX + CTX / 2 + i % ROWS;
        const float *q = by_hand[1] + at * V;
        long double norm = 0, sum = 0;
        size_t tb = 0, tq = 0;
        for (size_t v = 0; v < V; v++) {
            norm += expl(q[v]);
            tb = stored_logit(rec, v) > stored_logit(rec, tb) ? v : tb;
            tq = q[v] > q[tq] ? v : tq;
        }
        for (size_t v = 0; v < V; v++) {
            const long double lb = stored_logit(rec, v);
            if (lb > -16)
                sum += expl(lb) * (lb - (q[v] - logl(norm)));
        }
        off[0] = fmax(off[0], fabs(t[i].kld - (double)sum));
        off[1] = fmax(off[1], fabs(t[i].x_base +
                                   stored_logit(rec, (size_t)text[at + 1])));
        off[2] += t[i].same_top != (tb == tq);
    }
    ok(good && n == CHUNKS * ROWS && off[0] < 1e-13 && off[1] == 0 &&
           off[2] == 0,
       "divergence from the file's logits, to %.2g%s", off[0],
       good ? "" : err.message);
    gguf_kld_destroy(k);
    gguf_baseline_close(b);
    run_close(&r);
}

/* Files of another run are refused with the difference, before anything is
 * computed. */
static void check_other(void)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *message;
    } cases[] = {
        { 20 + 4 * (CTX + 3), 0,
          "another text or tokenizer: token 4 of chunk 2 is 0 there" },
        { 16, CHUNKS - 1, "another run: chunks: 3 there, 4 here" },
    };
    struct run r;
    bool good = open_one(&r, 1, 1);
    text[CTX + 3] = 7;
    gg_bytes_store32le(want + 20 + 4 * (CTX + 3), 7);
    for (size_t i = 0; good && i < GG_LEN(cases); i++) {
        struct gguf_baseline *b = NULL;
        struct gguf_kld *k = NULL;
        struct gguf_error err;
        memcpy(bytes, want, SIZE);
        size_t size = SIZE;
        gg_bytes_store32le(bytes + cases[i].at, cases[i].value);
        if (cases[i].at == 16) { /* leave out the last chunk */
            const size_t less = 4 * CTX;
            memmove(bytes + FIRST - less, bytes + FIRST, SIZE - FIRST);
            size -= less + ROWS * RECORD;
        }
        write_back(bytes, size);
        good = gguf_baseline_open(&b, path, NULL, &err) == GGUF_OK;
        ok(good && compute_divergence(&r, b, &k, &err) == GGUF_E_INVALID &&
               strstr(err.message, cases[i].message),
           "%s", err.message);
        gguf_kld_destroy(k);
        gguf_baseline_close(b);
    }
    run_close(&r);
}

/* A row with a logit that is not a number is refused. */
static void check_nonfinite(void)
{
    struct gguf_baseline *b = NULL;
    struct gguf_kld *k = NULL;
    struct gguf_error err;
    struct run r;
    bool good = open_one(&r, 1, 1);
    memcpy(bytes, want, SIZE);
    gg_bytes_store32le(bytes + FIRST + (ROWS + 1) * RECORD, 0x7fc00000);
    write_back(bytes, SIZE);
    good = good && gguf_baseline_open(&b, path, NULL, &err) == GGUF_OK;
    ok(good && compute_divergence(&r, b, &k, &err) == GGUF_E_NONFINITE &&
           strstr(err.message, "chunk 2: ") && strstr(err.message, "base"),
       "%s", err.message);
    gguf_kld_destroy(k);
    gguf_baseline_close(b);
    run_close(&r);
}

/* ---- a file that llama.cpp wrote ---- */

static void check_golden(void)
{
    const char *name = shared_path("golden/ppl/synthetic/syn-a.c128.kld");
    struct gguf_baseline *b;
    struct gguf_error err;
    if (!name || gguf_baseline_open(&b, name, NULL, &err) != GGUF_OK) {
        skip("no file of llama.cpp here");
        return;
    }
    enum { GV = 2048 };
    double worst = 0, sums = 0;
    size_t n = 0, wrong = 0;
    for (size_t c = 0; c < gguf_baseline_n_chunks(b); c++) {
        struct gg_baseline_rows rows;
        struct gg_divergence_base base;
        gg_baseline_rows(b, c, 64, &rows, &base);
        for (size_t i = 0; i < 63; i++, n++) {
            const uint8_t *rec = rows.b->map.data + rows.b->first +
                                 (rows.first + i) * (8 + 2 * GV);
            static float l[GV];
            uint8_t again[8 + 2 * GV];
            double sum = 0;
            for (size_t v = 0; v < GV; v++) {
                l[v] = (float)stored_logit(rec, v);
                sum += exp(stored_logit(rec, v));
            }
            gg_baseline_encode(l, GV, again);
            for (size_t v = 0; v < GV; v++)
                wrong += gg_bytes_load16le(rec + 8 + 2 * v) !=
                         gg_bytes_load16le(again + 8 + 2 * v);
            worst = fmax(worst, fabs(float_at(again) / float_at(rec) - 1));
            sums = fmax(sums, fabs(sum - 1));
        }
    }
    ok(gguf_baseline_n_ctx(b) == 128 && gguf_baseline_n_vocab(b) == GV &&
           n == 252 && sums < 1e-4 && wrong == 0 && worst < 1e-5,
       "%zu records of llama.cpp, encoded again: the same numbers", n);
    gguf_baseline_close(b);
}

int main(void)
{
    const int fd = mkstemp(path);
    if (fd < 0 || !make_models()) {
        printf("Bail out! no model\n");
        return 1;
    }
    close(fd);
    check_records();
    check_file();
    check_reading();
    check_damaged();
    check_divergence();
    check_other();
    check_nonfinite();
    check_golden();
    remove(path);
    free(file[0]);
    free(file[1]);
    return done_testing();
}
