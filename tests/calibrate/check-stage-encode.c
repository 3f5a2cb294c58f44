/* SPDX-License-Identifier: MIT */
/* check-stage-encode.c - the choice of a matrix's bytes by its outputs
 *
 * Errors are compared with outputs of decoded matrices, in double precision.
 * The encoder of these tests is the type's plain one, of the targets. */
#include "config.h"
#include "base/error.h"
#include "calibrate/stage_encode.h"
#include "calibrate/stage_feedback.h"
#include "calibrate/two_sided.h"
#include "kern/kern.h"
#include "tests/calibrate/stage_text.h"

enum { DTYPE = GG_DT_Q4_0 };

/* A stage with a matrix. */
struct stage {
    struct stage_text text;
    struct gg_linalg la;
    struct gg_moments *m;
    struct gg_targets *t;
    struct gg_kern kern;
    float *w;
    size_t row_size;
    unsigned char *plain, *bytes;
    bool spoil;         /* the encoder writes zeros */
    size_t fail_read;   /* row at which the reader fails */
    size_t most_target; /* most rows that the encoder got */
    float outer_scale;
};

static enum gguf_status read_rows(void *user, size_t first, size_t n_rows,
                                  float *dst, struct gguf_error *err)
{
    const struct stage *s = user;
    if (first <= s->fail_read && s->fail_read < first + n_rows)
        return gg_error_set(err, GGUF_E_IO, GGUF_NO_OFFSET, "unreadable");
    memcpy(dst, s->w + first * s->text.n, n_rows * s->text.n * sizeof *dst);
    return GGUF_OK;
}

static enum gguf_status encode_rows(void *user, const struct gg_targets *t,
                                    const float *curvature,
                                    const float *target, size_t n_rows,
                                    void *bytes, struct gguf_error *err)
{
    struct stage *s = user;
    (void)curvature;
    (void)err;
    s->most_target = GG_MAX(s->most_target, n_rows);
    s->kern.codec[DTYPE].encode(target, bytes, n_rows, t->n, NULL);
    if (s->spoil)
        memset(bytes, 0, n_rows * s->row_size);
    return GGUF_OK;
}

static void stage_create(struct stage *s, struct gguf_pool *pool)
{
    const struct gg_targets_params p = { .n_rows = s->text.m };
    stage_fill(&s->text);
    gg_kern_init(&s->kern, gg_kern_cpu_detect());
    gg_linalg_init(&s->la, pool, NULL);
    s->m = stage_moments(&s->text, &s->la, 100, 40);
    if (gg_targets_create(&s->t, &s->la, s->m, s->text.n_used ? 0 : SIZE_MAX,
                          &p, NULL))
        exit(99);
    const size_t m = s->text.m, n = s->text.n;
    s->w = dense_random(m * n);
    s->row_size = n / 32 * 18;
    s->plain = dense_alloc(m, s->row_size);
    s->bytes = dense_alloc(m, s->row_size);
    s->kern.codec[DTYPE].encode(s->w, s->plain, m, n, NULL);
    memcpy(s->bytes, s->plain, m * s->row_size);
    s->fail_read = SIZE_MAX;
    s->outer_scale = 1;
}

static void stage_destroy(struct stage *s)
{
    gg_targets_destroy(s->t);
    gg_moments_destroy(s->m);
    gg_linalg_fini(&s->la);
    stage_free(&s->text);
    free(s->w);
    free(s->plain);
    free(s->bytes);
}

static enum gguf_status run_stage(struct stage *s, size_t product,
                                  size_t most_rows,
                                  struct gg_stage_encode_result *result)
{
    const struct gg_stage_encode_job x = { .dtype_index = DTYPE,
                                           .outer_scale = s->outer_scale,
                                           .product = product,
                                           .expert =
                                               s->text.n_used ? 0 : SIZE_MAX,
                                           .reader = { read_rows, s },
                                           .encoder = { encode_rows, s },
                                           .most_rows = most_rows,
                                           .bytes = s->bytes };
    return gg_stage_encode_matrix(s->t, s->m, &s->la, &x, result, NULL);
}

/* Mean square of the error of outputs over the tokens kept, directly. */
static double output_error(const struct stage *s, const unsigned char *bytes,
                           bool residual)
{
    const size_t n = s->text.n, m = s->text.m;
    float *q = dense_alloc(n, sizeof *q);
    double sum = 0;
    size_t count = 0;
    for (size_t row = 0; row < m; row++) {
        s->kern.codec[DTYPE].decode(bytes + row * s->row_size, q, n);
        for (size_t t = 0; t < s->text.n_tokens; t++) {
            double e = 0;
            if (gg_heldout_row(&s->m->p.heldout, t) == SIZE_MAX)
                continue;
            for (size_t i = 0; i < n; i++)
                e += (double)s->w[row * n + i] * (double)s->text.x[t * n + i] -
                     (double)q[i] * (double)s->text.xq[t * n + i];
            if (residual)
                e += ((double)s->text.r[t * m + row] -
                      (double)s->text.rq[t * m + row]) /
                     (double)s->text.factor;
            sum += e * e;
            count++;
        }
    }
    free(q);
    return sum / (double)count;
}

static double output_power(const struct stage *s)
{
    const size_t n = s->text.n, m = s->text.m;
    double sum = 0;
    size_t count = 0;
    for (size_t row = 0; row < m; row++)
        for (size_t t = 0; t < s->text.n_tokens; t++) {
            double y = 0;
            if (gg_heldout_row(&s->m->p.heldout, t) == SIZE_MAX)
                continue;
            for (size_t i = 0; i < n; i++)
                y += (double)s->w[row * n + i] * (double)s->text.x[t * n + i];
            sum += y * y;
            count++;
        }
    return sum / (double)count;
}

/* Error of the bytes for a strength, encoded directly. */
static double strength_error(struct stage *s, float strength, bool residual,
                             unsigned char *bytes)
{
    const size_t n = s->text.n, m = s->text.m;
    float *target = dense_alloc(m * n, sizeof *target);
    if (gg_targets_correct(s->t, &s->la, s->w, residual ? s->m->d[1] : NULL, m,
                           target, NULL))
        exit(99);
    for (size_t i = 0; i < m * n; i++)
        target[i] = s->w[i] + strength * target[i];
    s->kern.codec[DTYPE].encode(target, bytes, m, n, NULL);
    free(target);
    return output_error(s, bytes, residual);
}

static bool is_close(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

static void check_choice(struct gguf_pool *pool, bool residual)
{
    struct stage s = { .text = { .n_tokens = 640,
                                 .n_ctx = 40,
                                 .n = 64,
                                 .m = 24,
                                 .factor = 0.5f } };
    struct gg_stage_encode_result result;
    static const float strengths[] = { 0, 0.5f, 1 };
    const char *what = residual ? "with residual" : "without residual";
    double best = INFINITY;
    float strength = 0;
    stage_create(&s, pool);
    unsigned char *trial = dense_alloc(s.text.m, s.row_size);
    unsigned char *want = dense_alloc(s.text.m, s.row_size);
    for (size_t i = 0; i < GG_LEN(strengths); i++) {
        const double e = strength_error(&s, strengths[i], residual, trial);
        if (e < best) {
            best = e;
            strength = strengths[i];
            memcpy(want, trial, s.text.m * s.row_size);
        }
    }
    const double plain = output_error(&s, s.plain, residual);
    ok(!run_stage(&s, residual, 0, &result) && result.n_inputs == 40,
       "%s: is encoded", what);
    ok(is_close(result.error_before, plain),
       "%s: error of the plain bytes %g, directly %g", what,
       result.error_before, plain);
    ok(is_close(result.error_after, best) && result.strength == strength &&
           strength > 0 && result.used && !result.note,
       "%s: error of the best bytes %g, directly %g, of strength %g", what,
       result.error_after, best, (double)strength);
    ok(!memcmp(s.bytes, want, s.text.m * s.row_size), "%s: their bytes", what);
    ok(is_close(result.power, output_power(&s)), "%s: power %g", what,
       result.power);
    free(trial);
    free(want);
    stage_destroy(&s);
}

/* More rows than the sample, in parts. */
static void check_parts(struct gguf_pool *pool)
{
    struct stage s = { .text = { .n_tokens = 320,
                                 .n_ctx = 40,
                                 .n = 32,
                                 .m = 300,
                                 .factor = 1 } };
    struct gg_stage_encode_result result, again;
    stage_create(&s, pool);
    ok(!run_stage(&s, 1, 0, &result) && result.used && s.most_target == 300,
       "a matrix of 300 rows");
    ok(is_close(result.error_before, output_error(&s, s.plain, true)) &&
           is_close(result.error_after, output_error(&s, s.bytes, true)),
       "its errors are those of all rows");
    unsigned char *first = dense_alloc(s.text.m, s.row_size);
    memcpy(first, s.bytes, s.text.m * s.row_size);
    memcpy(s.bytes, s.plain, s.text.m * s.row_size);
    s.most_target = 0;
    s.la.pool = NULL;
    ok(!run_stage(&s, 1, 130, &again) && s.most_target == 130 &&
           !memcmp(first, s.bytes, s.text.m * s.row_size) &&
           result.error_after == again.error_after &&
           result.error_before == again.error_before,
       "parts of 130 rows and one thread give the same bytes and errors");
    memcpy(s.bytes, s.plain, s.text.m * s.row_size);
    s.fail_read = 299;
    ok(run_stage(&s, 1, 130, &again) == GGUF_E_IO &&
           !memcmp(s.plain, s.bytes, s.text.m * s.row_size),
       "a failure of the reader leaves the plain bytes");
    free(first);
    stage_destroy(&s);
}

/* Bytes of a quarter of W that is multiplied by 4: Q4_0 has the bytes of W,
 * with a quarter of its scales. */
static void check_outer_scale(void)
{
    struct stage s = {
        .text = { .n_tokens = 320, .n_ctx = 40, .n = 32, .m = 20, .factor = 1 }
    };
    struct gg_stage_encode_result one, four;
    stage_create(&s, NULL);
    const size_t size = s.text.m * s.row_size;
    unsigned char *first = dense_alloc(s.text.m, s.row_size);
    float *quarter = dense_alloc(s.text.m * s.text.n, sizeof *quarter);
    bool same = !run_stage(&s, 1, 0, &one);
    memcpy(first, s.bytes, size);
    for (size_t i = 0; i < s.text.m * s.text.n; i++)
        quarter[i] = s.w[i] / 4;
    s.kern.codec[DTYPE].encode(quarter, s.bytes, s.text.m, s.text.n, NULL);
    s.outer_scale = 4;
    same &= !run_stage(&s, 1, 0, &four) && four.used;
    for (size_t i = 0; i < size; i++)
        same &= i % 18 < 2 || first[i] == s.bytes[i]; /* an F16 scale */
    ok(same && four.error_before == one.error_before &&
           four.error_after == one.error_after,
       "a factor of decoded elements changes the scales alone");
    free(first);
    free(quarter);
    stage_destroy(&s);
}

static bool keeps_plain(struct stage *s, struct gg_stage_encode_result *result)
{
    return !run_stage(s, 1, 0, result) && !result->used && result->note &&
           !memcmp(s->plain, s->bytes, s->text.m * s->row_size);
}

static void check_plain(void)
{
    struct stage s = {
        .text = { .n_tokens = 320, .n_ctx = 40, .n = 32, .m = 20, .factor = 1 }
    };
    struct gg_stage_encode_result result;
    stage_create(&s, NULL);
    s.spoil = true;
    ok(keeps_plain(&s, &result) &&
           is_close(result.error_after, output_error(&s, s.plain, true)) &&
           result.error_after == result.error_before,
       "a worse encoder changes nothing: %s", result.note);
    s.spoil = false;
    s.m->xq[3] = NAN;
    ok(keeps_plain(&s, &result), "NaN on text held out: %s", result.note);
    s.m->xq[3] = 0;
    s.t->state = GG_MOMENTS_SINGULAR;
    ok(keeps_plain(&s, &result), "unusable moments: %s", result.note);
    s.t->state = GG_MOMENTS_GOOD;
    s.m->n_kept = 0;
    ok(keeps_plain(&s, &result), "no text held out: %s", result.note);
    stage_destroy(&s);
}

/* Better on the sample, and worse over all rows: a matrix whose sampled rows
 * alone gain. */
static void check_all_rows_count(void)
{
    struct stage s = { .text = { .n_tokens = 320,
                                 .n_ctx = 40,
                                 .n = 32,
                                 .m = 256,
                                 .factor = 1 } };
    struct gg_stage_encode_result result;
    stage_create(&s, NULL);
    /* Rows between the sampled ones already have the best bytes of 256. */
    if (run_stage(&s, 1, 0, &result) || !result.used)
        exit(99);
    for (size_t row = 0; row < s.text.m; row += 2)
        memcpy(s.bytes + row * s.row_size, s.plain + row * s.row_size,
               s.row_size);
    unsigned char *before = dense_alloc(s.text.m, s.row_size);
    memcpy(before, s.bytes, s.text.m * s.row_size);
    for (size_t row = 1; row < s.text.m; row += 2) /* the encoder's targets */
        for (size_t i = 0; i < s.text.n; i++)
            s.m->d[1][row * s.text.n + i] = -50;
    ok(!run_stage(&s, 1, 0, &result) && !result.used && result.strength > 0 &&
           !memcmp(before, s.bytes, s.text.m * s.row_size),
       "the error over all rows decides: %s", result.note);
    free(before);
    stage_destroy(&s);
}

/* Inputs of an expert: its own, or the layer's if it has few. */
static void check_expert(size_t n_tokens, bool own)
{
    struct stage s = { .text = { .n_tokens = n_tokens,
                                 .n_ctx = 40,
                                 .n = 32,
                                 .m = 9,
                                 .n_used = 2,
                                 .n_experts = 5,
                                 .factor = 1 } };
    struct gg_stage_encode_result result;
    struct gg_output_error_rows rows;
    size_t count = 0;
    bool good = true;
    stage_create(&s, NULL);
    if (gg_output_error_rows_init(&rows, s.m, 0, 0, NULL))
        exit(99);
    for (size_t t = 0; t < n_tokens; t++) {
        const size_t row = gg_heldout_row(&s.m->p.heldout, t);
        if (row == SIZE_MAX ||
            (own && s.text.ids_q[t * 2] != 0 && s.text.ids_q[t * 2 + 1] != 0))
            continue;
        for (size_t i = 0; count < rows.n_inputs && i < s.text.n; i++) {
            good &=
                rows.xq[count * s.text.n + i] == s.text.xq[t * s.text.n + i];
            good &= rows.dx[count * s.text.n + i] ==
                    s.text.x[t * s.text.n + i] - s.text.xq[t * s.text.n + i];
        }
        count++;
    }
    ok(good && rows.n_inputs == count && (rows.gathered != NULL) == own,
       "an expert is compared on %zu rows, %s", count,
       own ? "its own" : "the layer's");
    gg_output_error_rows_fini(&rows);
    ok(!run_stage(&s, 0, 0, &result) && result.n_inputs == count &&
           result.used == (result.error_after < result.error_before) &&
           result.used == !result.note,
       "it is encoded: error %g, then %g", result.error_before,
       result.error_after);
    stage_destroy(&s);
}

/* Error feedback, with each effort, is better than the plain encoder of the
 * same targets. */
static void check_feedback(struct gguf_pool *pool)
{
    struct stage s = { .text = { .n_tokens = 2000,
                                 .n_ctx = 40,
                                 .n = 64,
                                 .m = 40,
                                 .factor = 1 } };
    struct gg_stage_encode_result result;
    const struct gg_targets_params p = { .n_rows = s.text.m, .keep_s = true };
    stage_create(&s, pool);
    if (run_stage(&s, 1, 0, &result))
        exit(99);
    double last = result.error_after;
    gg_targets_destroy(s.t);
    gg_moments_destroy(s.m);
    s.m = stage_moments(&s.text, &s.la, 100, 40);
    if (gg_targets_create(&s.t, &s.la, s.m, SIZE_MAX, &p, NULL))
        exit(99);
    for (int effort = GG_FEEDBACK_FIXED; effort <= GG_FEEDBACK_DESCENT;
         effort++) {
        struct gg_stage_feedback f = { gg_form_of(DTYPE),
                                       (enum gg_feedback_effort)effort, pool,
                                       NULL };
        const struct gg_stage_encode_job x = {
            .dtype_index = DTYPE,
            .outer_scale = 1,
            .product = 1,
            .expert = SIZE_MAX,
            .reader = { read_rows, &s },
            .encoder = { gg_stage_feedback_encode, &f },
            .bytes = s.bytes
        };
        memcpy(s.bytes, s.plain, s.text.m * s.row_size);
        ok(!gg_stage_encode_matrix(s.t, s.m, &s.la, &x, &result, NULL) &&
               result.used && result.error_after < 0.9 * last &&
               is_close(result.error_after, output_error(&s, s.bytes, true)),
           "feedback of effort %d: error %g, %g by the plain encoder", effort,
           result.error_after, last);
    }
    stage_destroy(&s);
}

/* Mean of the errors of outputs, weighted by blocks of the curvature and .05 of
 * their mean diagonal, directly. */
static double weighted_error(const struct stage *s, const float *h,
                             const unsigned char *bytes)
{
    enum { B = GG_TWO_SIDED_BLOCK };
    const size_t n = s->text.n, m = s->text.m;
    float *q = dense_alloc(m * n, sizeof *q);
    double sum = 0, *e = calloc(m, sizeof *e);
    size_t count = 0;
    for (size_t row = 0; row < m; row++)
        s->kern.codec[DTYPE].decode(bytes + row * s->row_size, q + row * n, n);
    for (size_t t = 0; t < s->text.n_tokens; t++) {
        if (gg_heldout_row(&s->m->p.heldout, t) == SIZE_MAX)
            continue;
        count += m;
        for (size_t row = 0; row < m; row++) {
            e[row] = 0;
            for (size_t i = 0; i < n; i++)
                e[row] +=
                    (double)s->w[row * n + i] * (double)s->text.x[t * n + i] -
                    (double)q[row * n + i] * (double)s->text.xq[t * n + i];
        }
        for (size_t i = 0; i < m; i++)
            for (size_t j = i / B * B; j < GG_MIN(m, i / B * B + B); j++) {
                double by = (double)h[i / B * B * B + i % B * B + j % B];
                const size_t rows = GG_MIN((size_t)B, m - i / B * B);
                for (size_t k = 0; i == j && k < rows; k++)
                    by += 0.05 * (double)h[i / B * B * B + k * B + k] /
                          (double)rows;
                sum += by * e[i] * e[j];
            }
    }
    free(q);
    free(e);
    return sum / (double)count;
}

/* Errors are weighted by the curvature, and rows of its blocks are encoded
 * together, in any number of parts. */
static void check_curvature(struct gguf_pool *pool)
{
    enum { B = GG_TWO_SIDED_BLOCK };
    struct stage s = { .text = { .n_tokens = 2000,
                                 .n_ctx = 40,
                                 .n = 64,
                                 .m = 150,
                                 .factor = 1 } };
    struct gg_stage_encode_result one, two, parts;
    const struct gg_targets_params p = { .n_rows = s.text.m };
    stage_create(&s, pool);
    gg_targets_destroy(s.t);
    gg_moments_destroy(s.m);
    s.m = stage_moments(&s.text, &s.la, 100, 40);
    if (gg_targets_create(&s.t, &s.la, s.m, SIZE_MAX, &p, NULL))
        exit(99);
    float *h = dense_alloc(3 * B * B, sizeof *h), *a = dense_random(3 * B * 5);
    for (size_t b = 0; b < 3; b++) /* blocks of rank 5 */
        for (size_t i = 0; i < B; i++)
            for (size_t j = 0; j < B; j++) {
                h[b * B * B + i * B + j] = 0;
                for (size_t k = 0; k < 5; k++)
                    h[b * B * B + i * B + j] +=
                        a[(b * B + i) * 5 + k] * a[(b * B + j) * 5 + k];
            }
    struct gg_stage_feedback f = { gg_form_of(DTYPE), GG_FEEDBACK_SEARCHED,
                                   pool, NULL };
    struct gg_stage_encode_job x = { .dtype_index = DTYPE,
                                     .outer_scale = 1,
                                     .product = 0,
                                     .expert = SIZE_MAX,
                                     .reader = { read_rows, &s },
                                     .encoder = { gg_stage_feedback_encode,
                                                  &f },
                                     .bytes = s.bytes };
    bool good = !gg_stage_encode_matrix(s.t, s.m, &s.la, &x, &one, NULL);
    const double unweighted = weighted_error(&s, h, s.bytes);
    memcpy(s.bytes, s.plain, s.text.m * s.row_size);
    x.curvature = h;
    good = good && !gg_stage_encode_matrix(s.t, s.m, &s.la, &x, &two, NULL);
    ok(good && two.used && one.used &&
           is_close(two.error_before, weighted_error(&s, h, s.plain)) &&
           is_close(two.error_after, weighted_error(&s, h, s.bytes)),
       "errors are weighted by the curvature: %g, then %g", two.error_before,
       two.error_after);
    ok(two.error_after < 0.9 * unweighted,
       "rows make up for errors: %g, one by one %g", two.error_after,
       unweighted);
    unsigned char *bytes = dense_alloc(s.text.m, s.row_size);
    memcpy(bytes, s.bytes, s.text.m * s.row_size);
    memcpy(s.bytes, s.plain, s.text.m * s.row_size);
    x.most_rows = 140; /* rounded to 128, whole blocks */
    ok(!gg_stage_encode_matrix(s.t, s.m, &s.la, &x, &parts, NULL) &&
           !memcmp(bytes, s.bytes, s.text.m * s.row_size) &&
           is_close(parts.error_after, two.error_after),
       "two parts give the same bytes");
    free(bytes);
    free(h);
    free(a);
    stage_destroy(&s);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    struct gguf_pool *pool = stage_pool(3);
    check_choice(pool, false);
    check_choice(NULL, true);
    check_parts(pool);
    check_outer_scale();
    check_plain();
    check_all_rows_count();
    check_feedback(pool);
    check_curvature(pool);
    check_expert(1600, true);
    check_expert(80, false);
    gguf_pool_destroy(pool);
    return done_testing();
}
