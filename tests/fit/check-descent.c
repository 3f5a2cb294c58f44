/* SPDX-License-Identifier: MIT */
/* check-descent.c - coordinate descent never raises the error, and ends where
 * no change of an element, a scale or d lowers it
 *
 *   check-descent [SEED]
 *
 * Errors are e' S e in double precision, by the definition.
 */
#include "config.h"
#include "fit/feedback.h"
#include "dtype/f16.h"
#include "kern/codec.h"
#include "tests/fit/metric.h"

enum { MAX_N = 512, ROWS = 20, MAX_SIZE = 2 * MAX_N };

static struct gg_codec_kern codec[GG_N_DTYPES];
static float target[ROWS * MAX_N], weight[MAX_N];
static uint8_t plain[ROWS * MAX_SIZE], searched[ROWS * MAX_SIZE];
static uint8_t once[ROWS * MAX_SIZE], row[ROWS * MAX_SIZE];

/* Error of a row, and S e. */
static double error_of(const struct gg_form *f, const struct metric *m,
                       const float *wanted, const uint8_t *bytes, double *se)
{
    const size_t n = m->m.n;
    float x[MAX_N];
    double e[MAX_N], sum = 0;
    codec[f->dtype].decode(bytes, x, n);
    for (size_t j = 0; j < n; j++)
        e[j] = (double)wanted[j] - x[j];
    for (size_t i = 0; i < n; i++) {
        se[i] = 0;
        for (size_t j = 0; j < n; j++)
            se[i] += m->s[i * n + j] * e[j];
        sum += se[i] * e[i];
    }
    return sum;
}

static void encode_rows(const struct gg_form *f, const struct metric *m)
{
    const size_t n = m->m.n, size = n / f->block_len * f->block_size;
    for (size_t i = 0; i < ROWS * n; i++)
        target[i] = (float)(0.02 * metric_normal());
    for (size_t j = 0; j < n; j++)
        weight[j] = (float)m->s[j * n + j];
    codec[f->dtype].encode(target, plain, ROWS, n,
                           codec[f->dtype].flags & GG_CODEC_WEIGHT ? weight
                                                                   : NULL);
    memcpy(searched, plain, ROWS * size);
    memcpy(once, plain, ROWS * size);
    memcpy(row, plain, ROWS * size);
    if (gg_feedback_encode(f, &m->m, target, ROWS, searched,
                           GG_FEEDBACK_SEARCHED, NULL, NULL,
                           NULL) != GGUF_OK ||
        gg_feedback_encode(f, &m->m, target, ROWS, once,
                           GG_FEEDBACK_ONE_DESCENT, NULL, NULL,
                           NULL) != GGUF_OK ||
        gg_feedback_encode(f, &m->m, target, ROWS, row, GG_FEEDBACK_DESCENT,
                           NULL, NULL, NULL) != GGUF_OK)
        exit(99);
}

static void check_type(const struct gg_form *f, const struct metric *m)
{
    const size_t size = m->m.n / f->block_len * f->block_size;
    double before = 0, middle = 0, after = 0, se[MAX_N];
    bool rises = false;
    encode_rows(f, m);
    for (unsigned r = 0; r < ROWS; r++) {
        const float *wanted = target + r * m->m.n;
        const double a = error_of(f, m, wanted, searched + r * size, se);
        const double b = error_of(f, m, wanted, once + r * size, se);
        const double c = error_of(f, m, wanted, row + r * size, se);
        rises = rises || b > a * (1 + 1e-5) || c > b * (1 + 1e-5);
        before += a;
        middle += b;
        after += c;
    }
    ok(!rises && middle < 0.98 * before && after < 0.998 * middle,
       "%s: %.3f of the error without, after a pass %.3f",
       gg_dtype_by_index(f->dtype)->name, after / before, middle / before);
}

/* Does another code of an element lower the error by a part of more than
 * 1e-4? If element j changes by x, the error changes by x^2 S[j][j] - 2 x
 * se[j]. */
static bool has_better_element(const struct gg_form *f, const struct metric *m,
                               const struct gg_form_block *b, const double *se,
                               double error)
{
    for (unsigned j = 0; j < f->block_len; j++) {
        const double scale = gg_form_scale(f, b, j / f->sub_len);
        for (unsigned k = f->code_lo; k <= f->code_hi; k++) {
            const double x =
                scale * ((double)f->level[k] - f->level[b->code[j]]);
            if (x * x * m->s[j * m->m.n + j] - 2 * x * se[j] < -1e-4 * error)
                return true;
        }
    }
    return false;
}

/* Does another d or dmin, an F16 number, lower the error by a part of more
 * than 1e-3? */
static bool has_better_d(const struct gg_form *f, const struct metric *m,
                         const float *wanted, const struct gg_form_block *b,
                         double error)
{
    const uint16_t d = gg_dtype_f32_to_f16(b->d);
    const uint16_t dmin = gg_dtype_f32_to_f16(b->dmin);
    uint8_t bytes[512];
    double se[MAX_N];
    for (int i = -8; i <= 8; i++)
        for (int k = f->has_dmin ? -8 : 0; k <= (f->has_dmin ? 8 : 0); k++) {
            struct gg_form_block other = *b;
            other.d = gg_dtype_f16_to_f32((uint16_t)(d + i));
            other.dmin = gg_dtype_f16_to_f32((uint16_t)(dmin + k));
            f->pack(bytes, &other);
            if (error_of(f, m, wanted, bytes, se) < error * (1 - 1e-3))
                return true;
        }
    return false;
}

/* Rows of one block, where three passes are nearly always enough. */
static void check_end(const struct gg_form *f, double damp)
{
    struct metric m;
    unsigned n_elements = 0, n_d = 0;
    metric_init(&m, f->block_len, damp);
    encode_rows(f, &m);
    for (unsigned r = 0; r < ROWS; r++) {
        const float *wanted = target + r * m.m.n;
        struct gg_form_block b;
        double se[MAX_N];
        const double error =
            error_of(f, &m, wanted, row + r * f->block_size, se);
        f->unpack(&b, row + r * f->block_size);
        n_elements += f->n_levels && has_better_element(f, &m, &b, se, error);
        n_d += f->has_d && has_better_d(f, &m, wanted, &b, error);
    }
    ok(n_elements <= ROWS / 4, "%s: an element could be better in %u of %u",
       gg_dtype_by_index(f->dtype)->name, n_elements, ROWS);
    ok(n_d <= ROWS / 4, "d could be better in %u", n_d);
    metric_fini(&m);
}

int main(int argc, char **argv)
{
    struct metric m;
    rnd_seed(argc, argv);
    gg_codec_kern_init(codec, 0);
    metric_init(&m, MAX_N, 0.01);
    for (int t = 0; t < GG_N_DTYPES; t++)
        if (gg_form_of(t))
            check_type(gg_form_of(t), &m);
    metric_fini(&m);
    check_end(gg_form_of(GG_DT_Q4_0), 0.3);
    check_end(gg_form_of(GG_DT_MXFP4), 0.3);
    check_end(gg_form_of(GG_DT_Q4_K), 1);
    check_end(gg_form_of(GG_DT_Q3_K), 1);
    check_end(gg_form_of(GG_DT_IQ2_S), 1);
    return done_testing();
}
