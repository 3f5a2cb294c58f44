/* SPDX-License-Identifier: MIT */
/* check-stats.c - statistics and comparison of tensors, compared with plain
 * loops in double precision */
#include "config.h"
#include "tests/fix.h"
#include "tests/ignore_status.h"
#include "tests/tap.h"

#include "gguf/stats.h"

#include <math.h>
#include <sys/resource.h>

enum { N = 1 << 20, M = 700 * 256 };

static float *values;

/* Tensors: x in F32; y differs from x in three elements; q in Q8_0 with scale
 * 1; odd with numbers that are not finite; e with zeros only. */
static struct gguf_file *make_values(struct fix *f)
{
    static const uint64_t at[5] = { 0, (uint64_t)N * 4, (uint64_t)N * 8,
                                    (uint64_t)N * 8 + M / 32 * 34,
                                    (uint64_t)N * 8 + M / 32 * 34 + 64 };
    fix_init(f);
    fix_head(f, 3, 5, 0);
    fix_info(f, "x", FIX_NE(1024, N / 1024), GGUF_DTYPE_F32, at[0]);
    fix_info(f, "y", FIX_NE(1024, N / 1024), GGUF_DTYPE_F32, at[1]);
    fix_info(f, "q", FIX_NE(M), GGUF_DTYPE_Q8_0, at[2]);
    fix_info(f, "odd", FIX_NE(16), GGUF_DTYPE_F32, at[3]);
    fix_info(f, "e", FIX_NE(8), GGUF_DTYPE_F32, at[4]);
    fix_pad(f, 32);
    for (int i = 0; i < N; i++)
        fix_f32(f, values[i]);
    for (int i = 0; i < N; i++)
        fix_f32(f, i == 5 || i == 70000 || i == N - 1 ? values[i] + 1
                                                      : values[i]);
    for (int i = 0; i < M / 32; i++) {
        fix_u16(f, 0x3c00);
        for (int k = 0; k < 32; k++)
            fix_u8(f, (unsigned)(k - 16) & 0xff);
    }
    float odd[16] = { NAN, INFINITY, -INFINITY, NAN, 0, -0.0f, 1, -3 };
    for (int i = 0; i < 16; i++)
        fix_f32(f, odd[i]);
    for (int i = 0; i < 8; i++)
        fix_f32(f, 0);
    fix_pad(f, 32);
    struct gguf_file *file;
    struct gguf_error err;
    if (gguf_file_open_memory(&file, f->data, f->size, NULL, &err) !=
        GGUF_OK) {
        printf("# %s\n", err.message);
        exit(99);
    }
    return file;
}

static int is_near(double a, double b, double rel)
{
    return fabs(a - b) <= rel * fmax(fabs(a), fabs(b)) + 1e-300;
}

static void test_moments(const struct gguf_file *f,
                         const struct gguf_stats_params *p)
{
    struct gguf_stats s = GGUF_INIT(struct gguf_stats);
    double sum = 0, sq = 0, m2 = 0, m4 = 0, lo = values[0], hi = values[0];
    uint64_t zero = 0, binned = 0;
    for (int i = 0; i < N; i++) {
        sum += values[i];
        sq += (double)values[i] * values[i];
        lo = fmin(lo, values[i]);
        hi = fmax(hi, values[i]);
        zero += values[i] == 0;
    }
    for (int i = 0; i < N; i++) {
        double d = values[i] - sum / N;
        m2 += d * d;
        m4 += d * d * d * d;
    }
    double var = m2 / N;
    ok(gguf_stats_tensor(f, 0, p, &s, NULL) == GGUF_OK && s.n == N &&
           s.n_zero == zero && !s.n_nan && !s.n_inf,
       "counts");
    ok(s.min == lo && s.max == hi, "extremes %g %g", s.min, s.max);
    ok(is_near(s.mean, sum / N, 1e-10) &&
           is_near(s.rms, sqrt(sq / N), 1e-12) &&
           is_near(s.stddev, sqrt(var), 1e-12),
       "mean %g, rms %g", s.mean, s.rms);
    ok(is_near(s.kurtosis, m4 / N / (var * var) - 3, 1e-8), "kurtosis %g",
       s.kurtosis);
    for (int i = 0; i < GGUF_STATS_BINS; i++)
        binned += s.bins[i];
    ok(binned == N, "every element is in a bin");
    struct gguf_stats q = GGUF_INIT(struct gguf_stats);
    ok(gguf_stats_tensor(f, 2, p, &q, NULL) == GGUF_OK && q.min == -16 &&
           q.max == 15 && is_near(q.mean, -0.5, 1e-12) && q.n == M &&
           is_near(q.stddev, sqrt((32 * 32 - 1) / 12.0), 1e-12) &&
           is_near(q.kurtosis, -1.2 * (1024 + 1) / (1024 - 1), 1e-9),
       "a uniform distribution in blocks");
    ok(gguf_stats_tensor(f, 3, p, &q, NULL) == GGUF_OK && q.n_nan == 2 &&
           q.n_inf == 2 && q.n_zero == 10 && q.min == -3 && q.max == 1 &&
           is_near(q.mean, -2.0 / 12, 1e-12),
       "numbers that are not finite are counted apart");
    ok(gguf_stats_tensor(f, 4, p, &q, NULL) == GGUF_OK && q.n_zero == 8 &&
           q.kurtosis == 0 && q.rms == 0 && q.bins[0] == 8,
       "zeros only");
    ok(gguf_stats_tensor(f, 5, p, &q, NULL) == GGUF_E_INVALID,
       "no such tensor");
}

static void test_compare(const struct gguf_file *f,
                         const struct gguf_stats_params *p)
{
    struct gguf_stats_diff d = GGUF_INIT(struct gguf_stats_diff);
    ok(gguf_stats_compare(f, 0, f, 0, p, &d, NULL) == GGUF_OK && d.n == N &&
           !d.n_differ && d.max_abs == 0 && d.rms == 0 && d.cosine == 1 &&
           d.rms_a == d.rms_b,
       "a tensor and itself");
    ok(gguf_stats_compare(f, 0, f, 1, p, &d, NULL) == GGUF_OK &&
           d.n_differ == 3 && is_near(d.max_abs, 1, 1e-6) &&
           is_near(d.rms, sqrt(3.0 / N), 1e-6) && d.cosine < 1 &&
           d.cosine > 0.99,
       "three elements differ");
    ok(gguf_stats_compare(f, 3, f, 3, p, &d, NULL) == GGUF_OK &&
           d.n_nan == 4 && d.n_differ == 0,
       "not finite in both");
    ok(gguf_stats_compare(f, 4, f, 4, p, &d, NULL) == GGUF_OK && d.cosine == 1,
       "zeros and zeros");
    ok(gguf_stats_compare(f, 0, f, 2, p, &d, NULL) == GGUF_E_SHAPE,
       "another shape");
}

static void test_rows(const struct gguf_file *f, const struct gguf_rows *rows)
{
    float x[64];
    ok(gguf_rows_decode(rows, f, 0, 1000, 64, x, NULL) == GGUF_OK &&
           !memcmp(x, values + 1000, sizeof x),
       "elements of floats");
    ok(gguf_rows_decode(rows, f, 2, 32, 64, x, NULL) == GGUF_OK &&
           x[0] == -16 && x[63] == 15,
       "elements of blocks");
    ok(gguf_rows_decode(rows, f, 2, 8, 32, x, NULL) == GGUF_E_INVALID &&
           gguf_rows_decode(rows, f, 2, 0, 8, x, NULL) == GGUF_E_INVALID &&
           gguf_rows_decode(rows, f, 2, M, 32, x, NULL) == GGUF_E_INVALID &&
           gguf_rows_decode(rows, f, 9, 0, 0, x, NULL) == GGUF_E_INVALID,
       "parts of blocks, and elements out of range");
    ok(gguf_rows_can_decode(rows, GGUF_DTYPE_Q4_K) &&
           !gguf_rows_can_decode(rows, 9999) && !gguf_rows_can_decode(rows, 4),
       "types");
}

/* Rows with headers: pieces that begin anywhere agree with the formula
 * (IQ4_KS, gguf-quants(7); all codes are 8 except in the last sub-blocks). */
static void test_headers(const struct gguf_rows *rows)
{
    enum { ROW = 20 * 256, ROWS = 3, BLOCKS = ROW / 256 };
    struct fix f;
    struct gguf_file *file;
    static float x[ROW * ROWS], y[ROW * ROWS];
    unsigned bad = 0;
    fix_init(&f);
    fix_head(&f, 3, 1, 0);
    fix_info(&f, "k", FIX_NE(ROW, ROWS), 144, 0);
    fix_pad(&f, 32);
    for (int r = 0; r < ROWS; r++) {
        fix_f32(&f, (float)(r + 1));
        for (int b = 0; b < BLOCKS; b++) {
            for (unsigned s = 0; s < 8; s++)
                fix_u8(&f, s == 5 ? (unsigned)b : 128 + 2 * s);
            fix_fill(&f, 0x88, 128);
        }
    }
    fix_pad(&f, 32);
    if (gguf_file_open_memory(&file, f.data, f.size, NULL, NULL) != GGUF_OK)
        exit(99);
    for (int i = 0; i < ROW * ROWS; i++) {
        int s = i % 256 / 32, b = i % ROW / 256;
        int scale = s == 5 ? (b & 254) - 127 : 1 + 2 * s;
        y[i] = (float)(i / ROW + 1) * (float)scale * (s == 5 && b & 1 ? 5 : 1);
    }
    ok(gguf_rows_decode(rows, file, 0, 0, ROW * ROWS, x, NULL) == GGUF_OK &&
           !memcmp(x, y, sizeof x),
       "rows with headers, all");
    for (int i = 0; i < ROW * ROWS; i += 256) {
        int n = (int)rnd_below((uint64_t)(ROW * ROWS - i) / 256 + 1) * 256;
        memset(x, 0, sizeof x);
        bad += gguf_rows_decode(rows, file, 0, (uint64_t)i, (uint64_t)n, x,
                                NULL) != GGUF_OK ||
               memcmp(x, y + i, (size_t)n * sizeof *x);
    }
    ok(!bad, "pieces of rows with headers");
    gguf_file_close(file);
    fix_fini(&f);
}

static size_t n_bytes;

static void *count_alloc(void *user, size_t size)
{
    (void)user;
    n_bytes += size;
    return malloc(size);
}

static void count_free(void *user, void *p)
{
    (void)user;
    free(p);
}

/* A tensor of one piece is computed by the calling thread: no other one is
 * woken or allocates. */
static void test_small(const struct gguf_file *f, struct gguf_stats_params p)
{
    const struct gguf_allocator counting = { .struct_size =
                                                 sizeof(struct gguf_allocator),
                                             .alloc = count_alloc,
                                             .free = count_free };
    struct rusage before, after;
    struct gguf_stats s = GGUF_INIT(struct gguf_stats);
    struct gguf_stats_diff d = GGUF_INIT(struct gguf_stats_diff);
    long n_calls = 1000;
    p.allocator = &counting;
    getrusage(RUSAGE_SELF, &before);
    for (long i = 0; i < n_calls; i++) {
        ignore_status(gguf_stats_tensor(f, 3, &p, &s, NULL));
        ignore_status(gguf_stats_compare(f, 3, f, 3, &p, &d, NULL));
    }
    getrusage(RUSAGE_SELF, &after);
    long n_waits = after.ru_nvcsw - before.ru_nvcsw;
    ok(n_waits < n_calls / 10, "%ld tiny tensors: threads waited %ld times",
       2 * n_calls, n_waits);
    n_bytes = 0;
    ok(gguf_stats_tensor(f, 3, &p, &s, NULL) == GGUF_OK && n_bytes < 80000,
       "and there is memory for one: %zu bytes", n_bytes);
}

int main(void)
{
    struct fix f;
    struct gguf_rows *rows;
    struct gguf_stats one = GGUF_INIT(struct gguf_stats),
                      many = GGUF_INIT(struct gguf_stats);
    struct gguf_stats_params p = GGUF_INIT(struct gguf_stats_params);
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    values = malloc(N * sizeof *values);
    for (int i = 0; i < N; i++) {
        float v = rnd_f32();
        values[i] = i % 100 ? v * v * v + 0.01f : 0;
    }
    struct gguf_file *file = make_values(&f);
    if (gguf_rows_create(&rows, NULL, NULL) != GGUF_OK)
        return 99;
    ok(gguf_stats_tensor(file, 0, &p, &one, NULL) == GGUF_E_INVALID,
       "params without rows");
    p.rows = rows;
    test_moments(file, &p);
    test_compare(file, &p);
    test_rows(file, rows);
    test_headers(rows);
    memset(&one, 0, sizeof one);
    memset(&many, 0, sizeof many);
    ignore_status(gguf_stats_tensor(file, 0, &p, &one, NULL));
    pp.n_threads = 3;
    if (gguf_pool_create(&p.pool, &pp, NULL) != GGUF_OK)
        return 99;
    ignore_status(gguf_stats_tensor(file, 0, &p, &many, NULL));
    ok(!memcmp(&one, &many, sizeof one), "three threads give the same bits");
    test_small(file, p);
    gguf_pool_destroy(p.pool);
    gguf_rows_destroy(rows);
    gguf_file_close(file);
    fix_fini(&f);
    free(values);
    return done_testing();
}
