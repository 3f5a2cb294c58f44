/* SPDX-License-Identifier: MIT */
/* check-feedback-bytes.c - bytes do not depend on vector units, threads or the
 * division of rows, and inputs that have no answer leave the plain bytes
 *
 *   check-feedback-bytes [SEED]
 */
#include "config.h"
#include "fit/feedback.h"
#include "kern/kern.h"
#include "tests/failalloc.h"
#include "tests/fit/metric.h"

enum { N = 512, ROWS = 37, MAX_SIZE = N * 2 };

static struct gg_codec_kern codec[GG_N_DTYPES];
static float target[ROWS * N], weight[N];
static uint8_t plain[ROWS * MAX_SIZE], want[ROWS * MAX_SIZE];
static uint8_t got[ROWS * MAX_SIZE];

static size_t size_of(const struct gg_form *f, size_t n)
{
    return n / f->block_len * f->block_size;
}

static void encode_plain(const struct gg_form *f, size_t n)
{
    codec[f->dtype].encode(target, plain, ROWS, n,
                           codec[f->dtype].flags & GG_CODEC_WEIGHT ? weight
                                                                   : NULL);
}

/* Encode rows first .. end - 1 from the plain bytes into got. */
static void encode_part(const struct gg_form *f,
                        const struct gg_feedback_metric *m, uint32_t cpu,
                        enum gg_feedback_effort effort, struct gguf_pool *pool,
                        size_t first, size_t end)
{
    const size_t size = size_of(f, m->n);
    memcpy(got + first * size, plain + first * size, (end - first) * size);
    if (gg_feedback_encode_level(cpu, f, m, target + first * m->n, end - first,
                                 got + first * size, effort, pool, NULL,
                                 NULL) != GGUF_OK)
        exit(99);
}

static bool is_wanted(const struct gg_form *f, size_t n)
{
    return memcmp(got, want, ROWS * size_of(f, n)) == 0;
}

static void check_type(const struct gg_form *f,
                       const struct gg_feedback_metric *m,
                       enum gg_feedback_effort effort, struct gguf_pool *pool)
{
    const char *name = gg_dtype_by_index(f->dtype)->name;
    const uint32_t cpu = gg_kern_cpu_detect();
    uint32_t mask = 0;
    encode_plain(f, m->n);
    encode_part(f, m, 0, effort, NULL, 0, ROWS);
    memcpy(want, got, sizeof want);
    ok(memcmp(want, plain, ROWS * size_of(f, m->n)) != 0, "%s changes", name);
    for (unsigned l = 0; l < gg_kern_cpu_n_levels; l++)
        if (cpu & gg_kern_cpu_levels[l].bit) {
            mask |= gg_kern_cpu_levels[l].bit;
            encode_part(f, m, mask, effort, NULL, 0, ROWS);
            ok(is_wanted(f, m->n), "%s: the bytes of %s are those of C", name,
               gg_kern_cpu_levels[l].name);
        }
    encode_part(f, m, cpu, effort, pool, 0, ROWS);
    ok(is_wanted(f, m->n), "%s: three threads give the same bytes", name);
    memset(got, 0, sizeof got);
    for (size_t r = 0, step = 1; r < ROWS; r += step, step = step * 5 % 23)
        encode_part(f, m, cpu, effort, NULL, r,
                    r + step < ROWS ? r + step : ROWS);
    ok(is_wanted(f, m->n), "%s: parts of the rows give the same bytes", name);
}

/* Is row r of got that of the plain encoder? */
static bool is_plain(const struct gg_form *f, size_t n, unsigned r)
{
    const size_t size = size_of(f, n);
    return memcmp(got + r * size, plain + r * size, size) == 0;
}

/* Rows with targets that are not finite beside others. */
static void check_nonfinite(const struct gg_form *f,
                            const struct gg_feedback_metric *m,
                            enum gg_feedback_effort effort)
{
    const float bad[] = { NAN, INFINITY, -INFINITY, 3e38f };
    const size_t size = size_of(f, m->n);
    float keep[4][N];
    bool kept = true, same = true;
    encode_plain(f, m->n);
    encode_part(f, m, 0, effort, NULL, 0, ROWS);
    memcpy(want, got, sizeof want);
    for (unsigned k = 0; k < 4; k++) {
        memcpy(keep[k], target + (1 + 5 * k) * m->n, m->n * sizeof(float));
        target[(1 + 5 * k) * m->n + 3 + 40 * k] = bad[k];
    }
    encode_part(f, m, gg_kern_cpu_detect(), effort, NULL, 0, ROWS);
    for (unsigned r = 0; r < ROWS; r++)
        if (r % 5 == 1 && r < 20)
            kept = kept && (is_plain(f, m->n, r) || r == 16);
        else
            same = same && memcmp(got + r * size, want + r * size, size) == 0;
    ok(kept, "%s: rows that are not finite keep their bytes",
       gg_dtype_by_index(f->dtype)->name);
    ok(same, "the others do not notice");
    for (unsigned k = 0; k < 4; k++)
        memcpy(target + (1 + 5 * k) * m->n, keep[k], m->n * sizeof(float));
}

/* Plain rows whose scale is infinite keep their bytes. */
static void check_infinite_scale(const struct gg_feedback_metric *m)
{
    const struct gg_form *f = gg_form_of(GG_DT_Q4_K);
    encode_plain(f, m->n);
    plain[0] = 0, plain[1] = 0x7c; /* d of row 0: infinity */
    plain[size_of(f, m->n)] = 1, plain[size_of(f, m->n) + 1] = 0x7c; /* NaN */
    encode_part(f, m, 0, GG_FEEDBACK_SEARCHED, NULL, 0, ROWS);
    ok(is_plain(f, m->n, 0) && is_plain(f, m->n, 1) && !is_plain(f, m->n, 2),
       "rows with infinite or NaN scales keep their bytes");
}

/* Zero rows, columns of zeros, and moments with zero rows. */
static void check_zeros(const struct gg_form *f,
                        const struct gg_feedback_metric *m)
{
    static float keep[ROWS * N];
    const size_t n = m->n;
    const char *name = gg_dtype_by_index(f->dtype)->name;
    float x[N], *g = malloc(n * n * sizeof *g), *d = malloc(n * sizeof *d);
    if (!g || !d)
        exit(99);
    bool finite = true, changed = false;
    memcpy(keep, target, sizeof keep);
    memset(target, 0, n * sizeof *target);
    for (unsigned r = 0; r < ROWS; r++)
        for (size_t j = 0; j < n; j += 3)
            target[r * n + j] = 0;
    encode_plain(f, n);
    encode_part(f, m, gg_kern_cpu_detect(), GG_FEEDBACK_SEARCHED, NULL, 0,
                ROWS);
    for (unsigned r = 0; r < ROWS; r++) {
        codec[f->dtype].decode(got + r * size_of(f, n), x, n);
        for (size_t j = 0; j < n; j++)
            finite = finite && isfinite(x[j]);
        changed = changed || !is_plain(f, n, r);
    }
    ok(finite && changed && is_plain(f, n, 0), "%s: zero rows and columns",
       name);
    memcpy(target, keep, sizeof keep);

    /* dead columns: no weight, and no share in the feedback */
    memcpy(g, m->g, n * n * sizeof *g);
    memcpy(d, m->d, n * sizeof *d);
    for (size_t j = 0; j < n; j += 2) {
        d[j] = 0;
        for (size_t i = 0; i < n; i++)
            g[i * n + j] = g[j * n + i] = 0;
    }
    float *s = calloc(n * n, sizeof *s);
    if (!s)
        exit(99);
    const struct gg_feedback_metric dead = { n, g, d, s };
    encode_plain(f, n);
    encode_part(f, &dead, gg_kern_cpu_detect(), GG_FEEDBACK_SEARCHED, NULL, 0,
                ROWS);
    ok(memcmp(got, plain, ROWS * size_of(f, n)) != 0, "%s: dead columns",
       name);
    memset(g, 0, n * n * sizeof *g);
    memset(d, 0, n * sizeof *d);
    encode_part(f, &dead, gg_kern_cpu_detect(), GG_FEEDBACK_DESCENT, NULL, 0,
                ROWS);
    ok(memcmp(got, plain, ROWS * size_of(f, n)) == 0,
       "%s: a metric of zeros keeps the bytes", name);
    for (size_t i = 0; i < n * n; i++)
        g[i] = s[i] = i % 2 ? NAN : INFINITY;
    for (size_t i = 0; i < n; i++)
        d[i] = 1;
    encode_part(f, &dead, gg_kern_cpu_detect(), GG_FEEDBACK_DESCENT, NULL, 0,
                ROWS);
    ok(memcmp(got, plain, ROWS * size_of(f, n)) == 0,
       "%s: and so does a metric that is not finite", name);
    free(g);
    free(d);
    free(s);
}

static void check_arguments(const struct gg_feedback_metric *m)
{
    const struct gg_form *f = gg_form_of(GG_DT_Q4_K);
    struct gg_feedback_metric other = *m;
    struct gguf_error err;
    ok(gg_feedback_encode(f, m, NULL, 0, NULL, GG_FEEDBACK_SEARCHED, NULL,
                          NULL, &err) == GGUF_OK,
       "no rows");
    other.n = 96;
    ok(gg_feedback_encode(f, &other, target, 1, got, GG_FEEDBACK_SEARCHED,
                          NULL, NULL, &err) == GGUF_E_INVALID &&
           strstr(err.message, "96 columns"),
       "columns that are no blocks: %s", err.message);
    other.n = 0;
    ok(gg_feedback_encode(f, &other, target, 1, got, GG_FEEDBACK_SEARCHED,
                          NULL, NULL, &err) == GGUF_E_INVALID,
       "no columns");
    other = *m;
    other.s = NULL;
    ok(gg_feedback_encode(f, &other, target, 1, got, GG_FEEDBACK_DESCENT, NULL,
                          NULL, &err) == GGUF_E_INVALID,
       "descent without moments: %s", err.message);
}

static void check_memory(const struct gg_form *f,
                         const struct gg_feedback_metric *m,
                         enum gg_feedback_effort effort)
{
    struct failalloc fa;
    bool kept = true, freed = true;
    unsigned n = 0;
    encode_plain(f, m->n);
    for (;; n++) {
        const struct gguf_allocator *a = failalloc_init(&fa, n);
        memcpy(got, plain, sizeof got);
        enum gguf_status st =
            gg_feedback_encode(f, m, target, 1, got, effort, NULL, a, NULL);
        freed = freed && fa.live == 0;
        if (fa.calls <= n)
            break;
        kept = kept && st == GGUF_E_NOMEM && is_plain(f, m->n, 0);
    }
    ok(kept && freed && n > 5, "%u allocations fail", n);
}

/* Short rows of types with short blocks. */
static void check_short(struct gguf_pool *pool)
{
    const size_t length[] = { 32, 64, 96, 288 };
    for (unsigned k = 0; k < 4; k++) {
        struct metric m;
        metric_init(&m, length[k], 0.05);
        check_type(gg_form_of(GG_DT_Q4_0), &m.m, GG_FEEDBACK_SEARCHED, pool);
        check_type(gg_form_of(GG_DT_Q4_1), &m.m, GG_FEEDBACK_DESCENT, pool);
        if (length[k] % 64 == 0)
            check_type(gg_form_of(GG_DT_NVFP4), &m.m, GG_FEEDBACK_SEARCHED,
                       pool);
        metric_fini(&m);
    }
}

int main(int argc, char **argv)
{
    struct metric m;
    struct gguf_pool *pool;
    struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
    rnd_seed(argc, argv);
    params.n_threads = 3;
    if (gguf_pool_create(&pool, &params, NULL) != GGUF_OK)
        return 99;
    gg_codec_kern_init(codec, 0);
    metric_init(&m, N, 0.01);
    for (size_t i = 0; i < ROWS * N; i++)
        target[i] = (float)(0.02 * metric_normal());
    for (size_t j = 0; j < N; j++)
        weight[j] = (float)m.s[j * N + j];
    for (int t = 0; t < GG_N_DTYPES; t++)
        if (gg_form_of(t)) {
            check_type(gg_form_of(t), &m.m, GG_FEEDBACK_SEARCHED, pool);
            check_zeros(gg_form_of(t), &m.m);
        }
    check_type(gg_form_of(GG_DT_Q4_K), &m.m, GG_FEEDBACK_FIXED, pool);
    check_type(gg_form_of(GG_DT_IQ2_XS), &m.m, GG_FEEDBACK_FIXED, pool);
    check_type(gg_form_of(GG_DT_Q5_K), &m.m, GG_FEEDBACK_ONE_DESCENT, pool);
    for (int t = 0; t < GG_N_DTYPES; t++)
        if (gg_form_of(t))
            check_type(gg_form_of(t), &m.m, GG_FEEDBACK_DESCENT, pool);
    check_nonfinite(gg_form_of(GG_DT_Q4_K), &m.m, GG_FEEDBACK_DESCENT);
    check_nonfinite(gg_form_of(GG_DT_IQ2_S), &m.m, GG_FEEDBACK_DESCENT);
    check_nonfinite(gg_form_of(GG_DT_Q4_K), &m.m, GG_FEEDBACK_SEARCHED);
    check_nonfinite(gg_form_of(GG_DT_IQ2_S), &m.m, GG_FEEDBACK_SEARCHED);
    check_infinite_scale(&m.m);
    check_arguments(&m.m);
    check_memory(gg_form_of(GG_DT_Q4_K), &m.m, GG_FEEDBACK_SEARCHED);
    check_memory(gg_form_of(GG_DT_IQ3_S), &m.m, GG_FEEDBACK_DESCENT);
    check_short(pool);
    metric_fini(&m);
    gguf_pool_destroy(pool);
    return done_testing();
}
