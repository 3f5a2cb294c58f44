/* SPDX-License-Identifier: MIT */
/* check-two-sided.c - feedback among rows against its definition in double
 * precision */
#include "config.h"
#include "calibrate/two_sided.h"
#include "kern/kern.h"
#include "tests/failalloc.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { N = 64, ROWS = 150, BLOCK = GG_TWO_SIDED_BLOCK, N_BLOCKS = 3 };

/* Rows to encode: a metric of columns, curvature of rows, targets. */
struct work {
    const struct gg_form *form;
    struct gg_kern kern;
    double s[N][N];
    float g[N][N], d[N];
    float h[N_BLOCKS][BLOCK][BLOCK];
    float target[ROWS][N];
    size_t row_size;
    unsigned char plain[ROWS * N * 4], bytes[ROWS * N * 4];
};

/* m = a a' / n + floor I with random a of low rank, so that rows are
 * correlated. */
static void make_moments(double *m, size_t n, size_t rank, double floor)
{
    double *a = malloc(n * rank * sizeof *a);
    for (size_t i = 0; i < n * rank; i++)
        a[i] = (double)rnd_f32();
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            m[i * n + j] = i == j ? floor : 0;
            for (size_t k = 0; k < rank; k++)
                m[i * n + j] += a[i * rank + k] * a[j * rank + k] / (double)n;
        }
    free(a);
}

/* Upper triangular R with R R' = m, column by column from the last. */
static void factor_upper(const double *m, size_t n, double *r)
{
    memset(r, 0, n * n * sizeof *r);
    for (size_t j = n; j-- > 0;) {
        double sum = m[j * n + j];
        for (size_t k = j + 1; k < n; k++)
            sum -= r[j * n + k] * r[j * n + k];
        r[j * n + j] = sqrt(sum);
        for (size_t i = 0; i < j; i++) {
            sum = m[i * n + j];
            for (size_t k = j + 1; k < n; k++)
                sum -= r[i * n + k] * r[j * n + k];
            r[i * n + j] = sum / r[j * n + j];
        }
    }
}

static void make_work(struct work *w, int dtype)
{
    static double r[N * N], h[BLOCK * BLOCK];
    w->form = gg_form_of(dtype);
    gg_kern_init(&w->kern, 0);
    w->row_size = N / w->form->block_len * (size_t)w->form->block_size;
    make_moments(&w->s[0][0], N, 12, 0.02);
    factor_upper(&w->s[0][0], N, r);
    for (size_t j = 0; j < N; j++) {
        w->d[j] = (float)(r[j * N + j] * r[j * N + j]);
        for (size_t i = 0; i < N; i++)
            w->g[i][j] = i < j ? (float)(r[i * N + j] / r[j * N + j]) : 0;
    }
    for (size_t b = 0; b < N_BLOCKS; b++) {
        make_moments(h, BLOCK, 6, 0.01);
        for (size_t i = 0; i < BLOCK * BLOCK; i++)
            (&w->h[b][0][0])[i] = (float)h[i];
    }
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t c = 0; c < N; c++)
            w->target[i][c] = rnd_f32();
        w->kern.codec[dtype].encode(w->target[i], w->plain + i * w->row_size,
                                    1, N, NULL);
    }
}

static struct gg_feedback_metric metric_of(const struct work *w)
{
    return (struct gg_feedback_metric){ .n = N, .g = &w->g[0][0], .d = w->d };
}

static bool encode_work(struct work *w, struct gguf_pool *pool,
                        const struct gguf_allocator *a)
{
    const struct gg_feedback_metric m = metric_of(w);
    memcpy(w->bytes, w->plain, ROWS * w->row_size);
    return gg_two_sided_encode(w->form, &m, &w->h[0][0][0], w->target[0], ROWS,
                               w->bytes, GG_FEEDBACK_SEARCHED, pool, a,
                               NULL) == GGUF_OK;
}

/* tr(H E S E') of bytes, without damping. */
static double total_error(const struct work *w, const unsigned char *bytes)
{
    static double e[ROWS][N], es[ROWS][N];
    double sum = 0;
    float row[N];
    for (size_t i = 0; i < ROWS; i++) {
        w->kern.codec[w->form->dtype].decode(bytes + i * w->row_size, row, N);
        for (size_t c = 0; c < N; c++)
            e[i][c] = (double)w->target[i][c] - (double)row[c];
    }
    for (size_t i = 0; i < ROWS; i++)
        for (size_t c = 0; c < N; c++) {
            es[i][c] = 0;
            for (size_t k = 0; k < N; k++)
                es[i][c] += e[i][k] * w->s[k][c];
        }
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < ROWS; j++)
            for (size_t c = 0; i / BLOCK == j / BLOCK && c < N; c++)
                sum += (double)w->h[i / BLOCK][i % BLOCK][j % BLOCK] *
                       es[i][c] * e[j][c];
    return sum;
}

static double one_sided_error(struct work *w)
{
    const struct gg_feedback_metric m = metric_of(w);
    memcpy(w->bytes, w->plain, ROWS * w->row_size);
    if (gg_feedback_encode(w->form, &m, w->target[0], ROWS, w->bytes,
                           GG_FEEDBACK_SEARCHED, NULL, NULL, NULL) != GGUF_OK)
        return NAN;
    return total_error(w, w->bytes);
}

/* ---- the factor ---- */

static void check_factor(const struct work *w, size_t n)
{
    const float(*h)[BLOCK] = w->h[1];
    float f[BLOCK * BLOCK], d[BLOCK];
    double mean = 0, worst = 0;
    const bool good = gg_two_sided_factor(h[0], n, f, d);
    for (size_t j = 0; j < n; j++)
        mean += (double)h[j][j] / (double)n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += (i == k ? 1 : (double)f[i * n + k]) * (double)d[k] *
                       (j == k ? 1 : (double)f[j * n + k]);
            const double want = (double)h[i][j] + (i == j ? 0.05 * mean : 0);
            worst = fmax(worst, fabs(sum - want));
        }
    bool upper = true;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            upper = upper && f[i * n + j] == 0;
    ok(good && upper && worst < 1e-6 * mean * (double)n,
       "factors of %zu rows multiply to the damped block: %g", n, worst);
}

static void check_bad_factor(void)
{
    static float h[BLOCK][BLOCK];
    float f[BLOCK * BLOCK], d[BLOCK];
    bool good = !gg_two_sided_factor(h[0], BLOCK, f, d) && f[1] == 0;
    for (size_t i = 0; i < BLOCK; i++)
        h[i][i] = 1;
    good = good && gg_two_sided_factor(h[0], BLOCK, f, d) && f[1] == 0;
    h[2][5] = h[5][2] = 3; /* not positive definite */
    good = good && !gg_two_sided_factor(h[0], BLOCK, f, d) &&
           f[2 * BLOCK + 5] == 0 && d[5] == 1;
    h[2][5] = NAN;
    good = good && !gg_two_sided_factor(h[0], BLOCK, f, d);
    h[2][2] = NAN;
    good = good && !gg_two_sided_factor(h[0], BLOCK, f, d);
    ok(good, "a block that cannot be factored has no feedback");
}

/* ---- encoding ---- */

/* Inverse of a symmetric positive definite matrix, by elimination. */
static void invert_matrix(double *m, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const double p = 1 / m[k * n + k];
        m[k * n + k] = 1;
        for (size_t j = 0; j < n; j++)
            m[k * n + j] *= p;
        for (size_t i = 0; i < n; i++) {
            const double by = m[i * n + k];
            if (i == k)
                continue;
            m[i * n + k] = 0;
            for (size_t j = 0; j < n; j++)
                m[i * n + j] -= by * m[k * n + j];
        }
    }
}

/* Encode in the other form: the error of row i, against the target that it was
 * encoded to, changes the targets of the rows after it by the upper Cholesky
 * factor U of the inverse, inv = U'U (GPTQ, arXiv 2210.17323, equation 3).
 * Returns the number of rows whose bytes are those of w->bytes. */
static size_t count_rows_by_inverse(const struct work *w)
{
    static double m[BLOCK * BLOCK], u[BLOCK * BLOCK], t[BLOCK][N];
    const struct gg_feedback_metric fm = metric_of(w);
    size_t same = 0;
    for (size_t b = 0; b < N_BLOCKS; b++) {
        const size_t n = b + 1 < N_BLOCKS ? BLOCK : ROWS - b * BLOCK;
        double mean = 0;
        for (size_t j = 0; j < n; j++)
            mean += (double)w->h[b][j][j] / (double)n;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                m[i * n + j] =
                    (double)w->h[b][i][j] + (i == j ? 0.05 * mean : 0);
        invert_matrix(m, n);
        memset(u, 0, sizeof u); /* inv = U'U, row by row */
        for (size_t i = 0; i < n; i++)
            for (size_t j = i; j < n; j++) {
                double sum = m[i * n + j];
                for (size_t k = 0; k < i; k++)
                    sum -= u[k * n + i] * u[k * n + j];
                u[i * n + j] = i == j ? sqrt(sum) : sum / u[i * n + i];
            }
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < N; c++)
                t[i][c] = (double)w->target[b * BLOCK + i][c];
        for (size_t i = 0; i < n; i++) {
            const size_t at = (b * BLOCK + i) * w->row_size;
            unsigned char bytes[N * 4];
            float row[N];
            for (size_t c = 0; c < N; c++)
                row[c] = (float)t[i][c];
            memcpy(bytes, w->plain + at, w->row_size);
            if (gg_feedback_encode(w->form, &fm, row, 1, bytes,
                                   GG_FEEDBACK_SEARCHED, NULL, NULL, NULL))
                return 0;
            same += !memcmp(bytes, w->bytes + at, w->row_size);
            w->kern.codec[w->form->dtype].decode(bytes, row, N);
            for (size_t k = i + 1; k < n; k++)
                for (size_t c = 0; c < N; c++)
                    t[k][c] -= u[i * n + k] / u[i * n + i] *
                               (t[i][c] - (double)row[c]);
        }
    }
    return same;
}

static void check_encoding(struct work *w, const char *name)
{
    const double plain = total_error(w, w->plain);
    const double one = one_sided_error(w);
    const bool done = encode_work(w, NULL, NULL);
    const double two = total_error(w, w->bytes);
    const size_t same = count_rows_by_inverse(w);
    ok(done && two < 0.8 * one && one < plain,
       "%s: the error is %.3g of the plain bytes', one-sided %.3g", name,
       two / plain, one / plain);
    /* a rounded target may change the choice of a code */
    ok(same > ROWS * 9 / 10, "%s: %zu of %d rows are those by the inverse",
       name, same, ROWS);
}

static void check_divisions(struct work *w)
{
    const struct gg_feedback_metric m = metric_of(w);
    static unsigned char whole[sizeof w->bytes];
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct gguf_pool *pool;
    bool good = encode_work(w, NULL, NULL);
    memcpy(whole, w->bytes, ROWS * w->row_size);
    p.n_threads = 3;
    if (gguf_pool_create(&pool, &p, NULL) != GGUF_OK)
        abort();
    good = good && encode_work(w, pool, NULL) &&
           !memcmp(whole, w->bytes, ROWS * w->row_size);
    gguf_pool_destroy(pool);
    ok(good, "three threads give the same bytes");
    memcpy(w->bytes, w->plain, ROWS * w->row_size);
    for (size_t first = 0; good && first < ROWS; first += BLOCK)
        good = gg_two_sided_encode(
                   w->form, &m, w->h[first / BLOCK][0], w->target[first],
                   first + BLOCK < ROWS ? BLOCK : ROWS - first,
                   w->bytes + first * w->row_size, GG_FEEDBACK_SEARCHED, NULL,
                   NULL, NULL) == GGUF_OK;
    ok(good && !memcmp(whole, w->bytes, ROWS * w->row_size),
       "block by block gives the same bytes");
    good =
        gg_two_sided_encode(w->form, &m, NULL, NULL, 0, NULL,
                            GG_FEEDBACK_SEARCHED, NULL, NULL, NULL) == GGUF_OK;
    ok(good, "no rows");
}

/* Blocks without curvature are encoded row by row. */
static void check_no_curvature(struct work *w)
{
    const double one = one_sided_error(w);
    static unsigned char bytes[sizeof w->bytes];
    memcpy(bytes, w->bytes, ROWS * w->row_size);
    memset(w->h, 0, sizeof w->h);
    w->h[1][3][4] = NAN;
    ok(one > 0 && encode_work(w, NULL, NULL) &&
           !memcmp(bytes, w->bytes, ROWS * w->row_size),
       "without curvature the bytes are those of one-sided feedback");
}

static void check_memory(struct work *w)
{
    struct failalloc fa;
    unsigned n = 0;
    bool good = true;
    for (;; n++) {
        const bool done = encode_work(w, NULL, failalloc_init(&fa, n));
        good = good && !fa.live;
        if (fa.calls <= n) {
            good = good && done;
            break;
        }
        good = good && !done;
    }
    ok(good && n > 3, "%u allocations fail, and nothing is left", n);
}

int main(void)
{
    static struct work w;
    make_work(&w, GG_DT_Q4_0);
    check_factor(&w, BLOCK);
    check_factor(&w, 22);
    check_factor(&w, 1);
    check_bad_factor();
    check_encoding(&w, "Q4_0");
    check_divisions(&w);
    check_memory(&w);
    check_no_curvature(&w);
    make_work(&w, GG_DT_IQ4_NL);
    check_encoding(&w, "IQ4_NL");
    return done_testing();
}
