/* SPDX-License-Identifier: MIT */
/* check-vec.c - kernels on rows at every level of this machine
 *
 * EXACT kernels are compared with the C reference, the others with double
 * precision. Rows begin at odd addresses, between guards, with lengths around
 * those of vectors. A seed as argument gives other data. */
#include "config.h"
#include "base/compiler.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { MAX_N = 5003, GUARD = 16, SKEW = 3 };

static const size_t lengths[] = { 0,   1,    2,    3,    7,   8,   9,
                                  15,  16,   17,   31,   32,  33,  63,
                                  64,  65,   127,  128,  129, 130, 255,
                                  256, 1000, 2048, MAX_N };
#define N_LENGTHS (sizeof lengths / sizeof lengths[0])

/* Input rows, an output row between guards, and the reference's output. */
static float store[5][MAX_N + 2 * GUARD + SKEW];
static float *const in1 = store[0] + GUARD + SKEW;
static float *const in2 = store[1] + GUARD + SKEW;
static float *const in3 = store[2] + GUARD + SKEW;
static float *const out = store[3] + GUARD + SKEW;
static float *const ref = store[4] + GUARD + SKEW;

static const float guard = -12345.675f;

static void arm_guards(void)
{
    for (size_t i = 0; i < sizeof store[3] / sizeof(float); i++)
        store[3][i] = guard;
}

static bool guards_intact(size_t n)
{
    for (size_t i = 0; i < GUARD; i++)
        if (out[-1 - (int)i] != guard || out[n + i] != guard)
            return false;
    return true;
}

static const float special[] = {
    0.0f,      -0.0f,     1,          -1,      INFINITY,     -INFINITY,
    NAN,       FLT_MAX,   -FLT_MAX,   FLT_MIN, FLT_TRUE_MIN, -FLT_TRUE_MIN,
    88.72283f, 88.72284f, -87.33655f, -88.8f,  -103.97f,     -104.5f,
    89.5f,     1e-20f,    -1e30f,
};

/* Fill with values of a magnitude; specials: every tenth is a special one. */
static void fill_values(float *x, size_t n, float size, bool specials)
{
    for (size_t i = 0; i < n; i++)
        x[i] = specials && rnd_below(10) == 0
                   ? special[rnd_below(sizeof special / sizeof *special)]
                   : rnd_f32() * size;
}

static bool same_float(float a, float b)
{
    return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0;
}

static bool same_row(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!same_float(a[i], b[i])) {
            printf("# [%zu]: %a, not %a\n", i, (double)a[i], (double)b[i]);
            return false;
        }
    return true;
}

/* Distance from the true value in units of its last place as a float. */
static double ulps(float y, double want)
{
    if (want != want || y != y)
        return (want != want) == (y != y) ? 0 : INFINITY;
    if (fabs(want) > (double)FLT_MAX * (1 + 0x1p-25))
        want = copysign(INFINITY, want);
    if (isinf(want) || isinf(y))
        return (double)y == want                    ? 0
               : isinf(want) && fabsf(y) == FLT_MAX ? 1
                                                    : INFINITY;
    int e;
    frexp(want, &e);
    return fabs((double)y - want) / ldexp(1, e < -125 ? -149 : e - 24);
}

static const char *level_name;

static void check_binary(const char *name, gg_vec_binary_fn *f,
                         gg_vec_binary_fn *c)
{
    bool good = true;
    for (size_t l = 0; l < N_LENGTHS; l++) {
        const size_t n = lengths[l];
        fill_values(in1, n, 100, true);
        fill_values(in2, n, 100, true);
        arm_guards();
        c(ref, in1, in2, n);
        f(out, in1, in2, n);
        good = good && same_row(out, ref, n) && guards_intact(n);
        memcpy(out, in1, n * sizeof *out);
        f(out, out, in2, n); /* output over input */
        good = good && same_row(out, ref, n);
    }
    ok(good, "%s: %s is exact, in place too", level_name, name);
}

static void check_scale(const struct gg_vec_kern *k)
{
    bool good = true;
    for (size_t l = 0; l < N_LENGTHS; l++) {
        const size_t n = lengths[l];
        const float scale = rnd_f32() * 9, bias = l % 2 ? rnd_f32() : 0;
        fill_values(in1, n, 100, true);
        arm_guards();
        gg_vec_scale_c(ref, in1, n, scale, bias);
        k->scale(out, in1, n, scale, bias);
        good = good && same_row(out, ref, n) && guards_intact(n);
    }
    ok(good, "%s: scale is exact", level_name);
}

static double silu_true(double x)
{
    if (x == -INFINITY || x < -88.72284f)
        return -0.0;
    return x / (1 + exp(-x));
}

static double softplus_true(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void check_unary(const char *name, gg_vec_unary_fn *fn,
                        double (*truth)(double x))
{
    static const float sizes[] = { 95, 6, 0.01f };
    double worst = 0;
    bool good = true;
    for (size_t l = 0; l < N_LENGTHS; l++) {
        const size_t n = lengths[l];
        fill_values(in1, n, sizes[l % 3], true);
        arm_guards();
        fn(out, in1, n);
        good = good && guards_intact(n);
        for (size_t i = 0; i < n; i++)
            worst = fmax(worst, ulps(out[i], truth(in1[i])));
    }
    ok(good && worst <= 4, "%s: %s within %.2f ulp", level_name, name, worst);
}

static void check_swiglu(const struct gg_vec_kern *k)
{
    bool good = true;
    for (size_t l = 0; l < N_LENGTHS; l++) {
        const size_t n = lengths[l];
        fill_values(in1, n, l % 2 ? 95 : 6, true);
        fill_values(in2, n, 10, true);
        k->silu(out, in1, n);
        gg_vec_mul_c(ref, out, in2, n);
        arm_guards();
        k->swiglu(out, in1, in2, n);
        good = good && guards_intact(n) && same_row(out, ref, n);
    }
    ok(good, "%s: swiglu is silu times up", level_name);
}

static void check_exp(const struct gg_vec_kern *k)
{
    double worst = 0;
    bool good = true;
    for (size_t l = 0; l < N_LENGTHS; l++) {
        const size_t n = lengths[l];
        const float max = l % 3 ? 0 : rnd_f32() * 50;
        fill_values(in1, n, l % 2 ? 110 : 3, l % 3 == 1);
        arm_guards();
        const double sum = k->exp_sum(out, in1, n, max);
        double want = 0;
        good = good && guards_intact(n);
        for (size_t i = 0; i < n; i++) {
            const float d = in1[i] - max;
            worst = fmax(worst, ulps(out[i], exp((double)d)));
            want += (double)out[i];
        }
        const double only = k->exp_sum(NULL, in1, n, max);
        good = good && (only == sum || (only != only && sum != sum));
        good = good && (sum == want || want != want ||
                        fabs(sum - want) <= 1e-12 * want);
    }
    ok(good && worst <= 2, "%s: exp within %.2f ulp, its sum in double",
       level_name, worst);
    /* Every hundredth float of the whole range. */
    worst = 0;
    for (float x = -104; x < 89;) {
        size_t n = 0;
        for (; n < 1000; n++, x += 0x1p-9f + fabsf(x) * 0x1p-17f)
            in1[n] = x;
        k->exp_sum(out, in1, n, 0);
        for (size_t i = 0; i < n; i++)
            worst = fmax(worst, ulps(out[i], exp((double)in1[i])));
    }
    ok(worst <= 2, "%s: exp over its range within %.3f ulp", level_name,
       worst);
}

/* Reductions of inputs with exact partial sums, then of random ones. */
static void check_sums(const struct gg_vec_kern *k)
{
    bool exact = true, bound = true, max_good = true;
    for (size_t l = 0; l < N_LENGTHS; l++) {
        const size_t n = lengths[l];
        float dot = 0, max = -INFINITY;
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            in1[i] = (float)rnd_below(31) - 15;
            in2[i] = ((float)rnd_below(15) - 7) * 0.25f;
            dot += in1[i] * in2[i];
            sum += (double)in1[i];
        }
        exact = exact && k->dot(in1, in2, n) == dot && k->sum(in1, n) == sum;
        fill_values(in1, n, 3, false);
        fill_values(in2, n, 3, false);
        double want = 0, size = 0, total = 0, total_size = 0;
        for (size_t i = 0; i < n; i++) {
            want += (double)in1[i] * (double)in2[i];
            size += fabs((double)in1[i] * (double)in2[i]);
            total += (double)in1[i];
            total_size += fabs((double)in1[i]);
            max = fmaxf(max, in1[i]);
        }
        bound = bound && fabs((double)k->dot(in1, in2, n) - want) <=
                             (double)n * FLT_EPSILON * size;
        bound = bound && fabs(k->sum(in1, n) - total) <=
                             (double)n * DBL_EPSILON * total_size;
        max_good = max_good && k->max(in1, n) == max;
        if (n) { /* the maximum may stand anywhere */
            in1[rnd_below(n)] = 77;
            max_good = max_good && k->max(in1, n) == 77;
            in1[rnd_below(n)] = INFINITY;
            max_good = max_good && k->max(in1, n) == INFINITY;
        }
    }
    ok(exact, "%s: dot and sum of exact inputs are equal", level_name);
    ok(bound, "%s: dot and sum within the bound of any order", level_name);
    ok(max_good, "%s: max finds the largest", level_name);
}

/* Random blocks of a type with finite sums. */
static void random_blocks(const struct gg_kern *k, int type, unsigned char *w,
                          size_t n)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(type);
    for (size_t i = 0; i < n; i += dt->block_len, w += dt->block_size) {
        bool good;
        do {
            for (size_t b = 0; b < dt->block_size; b++)
                w[b] = (unsigned char)rnd_below(256);
            k->codec[type].decode(w, in1, dt->block_len);
            good = true;
            for (size_t e = 0; e < dt->block_len; e++)
                good = good && fabsf(in1[e]) < 1e20f;
        } while (!good);
    }
}

/* Dot products of encoded rows against those of decoded rows: random bits,
 * several columns, every length, any address. */
static void check_dots(const struct gg_kern *kern, int type)
{
    enum { LONGEST = 1030, STRIDE = LONGEST + 5 };
    static unsigned char w[LONGEST * sizeof(float) + 1];
    static float x[3 * STRIDE];
    const size_t len = gg_dtype_by_index(type)->block_len;
    struct gg_kern native = *kern;
    const struct gg_kern *k = &native;
    bool good = true;
    gg_codec_kern_set_native_order(native.codec);
    for (size_t n = 0; n <= LONGEST;
         n += n < 140 || len > 1 ? len : 89 * len) {
        fill_values(x, 3 * STRIDE, 3, false);
        random_blocks(k, type, w + 1, n);
        k->codec[type].decode(w + 1, in1, n);
        for (size_t n_cols = 1; n_cols <= GG_KERN_DOTS_COLS; n_cols++) {
            float sum[4] = { 7, 7, 7, 7 };
            k->codec[type].dots(sum, w + 1, x + 1, STRIDE, n_cols, n);
            for (size_t j = 0; j < 4; j++) {
                const float want =
                    j < n_cols ? k->vec.dot(in1, x + 1 + j * STRIDE, n) : 7;
                good = good && !memcmp(&sum[j], &want, sizeof want);
            }
        }
    }
    ok(good, "%s: dots of %s are those of its floats", level_name,
       gg_dtype_by_index(type)->name);
}

static void check_scores(const struct gg_vec_kern *k)
{
    bool good = true;
    for (size_t l = 0; l < N_LENGTHS; l++)
        for (int masked = 0; masked < 2; masked++) {
            const size_t n = lengths[l];
            fill_values(in1, n, 40, false);
            fill_values(in2, n, 4, false);
            if (n)
                in2[rnd_below(n)] = -INFINITY;
            const float *mask = masked ? in2 : NULL;
            arm_guards();
            const float want = gg_vec_scores_c(ref, in1, mask, n, 0.3f, 0.7f);
            const float max = k->scores(out, in1, mask, n, 0.3f, 0.7f);
            good = good && max == want && same_row(out, ref, n) &&
                   guards_intact(n);
        }
    ok(good, "%s: scores are exact", level_name);
}

static void check_soft_max(const struct gg_vec_kern *k)
{
    bool good = true;
    double worst = 0;
    for (size_t l = 0; l < N_LENGTHS; l++)
        for (int masked = 0; masked < 2; masked++) {
            const size_t n = lengths[l];
            const float scale = 0.125f, slope = 0.5f;
            fill_values(in1, n, 40, false);
            fill_values(in2, n, 4, false);
            for (size_t i = 0; i < n; i++)
                if (rnd_below(3) == 0 && i)
                    in2[i] = -INFINITY;
            arm_guards();
            k->soft_max(out, in1, masked ? in2 : NULL, n, scale, slope);
            good = good && guards_intact(n);
            double sum = 0;
            float max = -INFINITY;
            for (size_t i = 0; i < n; i++) {
                in3[i] = in1[i] * scale;
                if (masked)
                    in3[i] = in3[i] + slope * in2[i];
                max = fmaxf(max, in3[i]);
            }
            for (size_t i = 0; i < n; i++)
                sum += exp((double)(in3[i] - max));
            for (size_t i = 0; i < n; i++) {
                const double want = exp((double)(in3[i] - max)) / sum;
                worst = fmax(worst, ulps(out[i], want));
                good = good && (in3[i] != -INFINITY || out[i] == 0);
            }
        }
    ok(good && worst <= 4, "%s: soft_max within %.2f ulp", level_name, worst);
    for (size_t i = 0; i < 37; i++)
        in1[i] = 1, in2[i] = -INFINITY;
    k->soft_max(out, in1, in2, 37, 1, 1);
    good = true;
    for (size_t i = 0; i < 37; i++)
        good = good && out[i] == 0;
    in1[5] = NAN;
    k->soft_max(out, in1, NULL, 37, 1, 1);
    ok(good && out[5] != out[5],
       "%s: soft_max of nothing is zero, of a NaN is NaN", level_name);
}

static void check_rms_norm(const struct gg_vec_kern *k)
{
    bool good = true;
    double worst = 0;
    for (size_t l = 1; l < N_LENGTHS; l++)
        for (int weighted = 0; weighted < 2; weighted++) {
            const size_t n = lengths[l];
            fill_values(in1, n, l % 2 ? 1 : 1e4f, false);
            fill_values(in2, n, 2, false);
            arm_guards();
            k->rms_norm(out, in1, weighted ? in2 : NULL, n, 1e-5f);
            good = good && guards_intact(n);
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += (double)in1[i] * (double)in1[i];
            const double s = 1 / sqrt(sum / (double)n + 1e-5);
            for (size_t i = 0; i < n; i++)
                worst = fmax(
                    worst, ulps(out[i], (double)in1[i] * s *
                                            (weighted ? (double)in2[i] : 1)));
        }
    ok(good && worst <= 4, "%s: rms_norm within %.2f ulp", level_name, worst);
}

static void check_rope(const struct gg_vec_kern *k)
{
    bool good = true;
    for (size_t l = 0; l < N_LENGTHS; l++)
        for (int neox = 0; neox < 2; neox++) {
            const size_t n = lengths[l] / 2;
            gg_vec_rope_fn *c = neox ? gg_vec_rope_neox_c : gg_vec_rope_norm_c;
            gg_vec_rope_fn *f = neox ? k->rope_neox : k->rope_norm;
            fill_values(in1, 2 * n, 5, true);
            fill_values(in2, n, 1, false);
            fill_values(in3, n, 1, false);
            arm_guards();
            c(ref, in1, in2, in3, n);
            f(out, in1, in2, in3, n);
            good = good && same_row(out, ref, 2 * n) && guards_intact(2 * n);
            memcpy(out, in1, 2 * n * sizeof *out);
            f(out, out, in2, in3, n);
            good = good && same_row(out, ref, 2 * n);
        }
    ok(good, "%s: rope is exact, in place too", level_name);
}

/* ---- a convolution's taps ---- */

static void check_taps(const struct gg_vec_kern *k)
{
    bool good = true;
    for (size_t l = 0; l < N_LENGTHS; l++) {
        const size_t n = lengths[l] / 4, taps = 1 + l % 4;
        fill_values(in1, 4 * n, 100, true);
        fill_values(in2, 4 * n, 3, true);
        arm_guards();
        gg_vec_taps_c(ref, in1, n, in2, n, taps, n);
        k->taps(out, in1, n, in2, n, taps, n);
        good = good && same_row(out, ref, n) && guards_intact(n);
    }
    ok(good, "%s: taps is exact", level_name);
}

/* ---- the delta rule ---- */

enum { D_N = 130, D_ROWS = 11, D_TOK = 5, D_GAP = 3 };

/* Arguments of a call; s is shared by all levels or separate for each. */
static struct {
    float g[D_TOK * D_N], k[D_TOK * D_N], gk[D_TOK * D_N], gq[D_TOK * D_N];
    float beta[D_TOK], kq[D_TOK], v[D_TOK * (D_ROWS + D_GAP)];
    float from[D_ROWS * D_N + 1];
} din;
struct delta_out {
    float s[D_ROWS * D_N + 1], y[D_TOK * (D_ROWS + D_GAP)];
};

/* Inputs with exact sums, or random ones. */
static void fill_delta(size_t n, bool exact)
{
    float *const all[] = { din.k, din.gk, din.gq, din.from };
    for (size_t a = 0; a < 4; a++)
        for (size_t i = 0; i < (a < 3 ? D_TOK : D_ROWS) * n; i++)
            all[a][i] =
                exact ? (float)rnd_below(3) - 1 : rnd_f32() / sqrtf((float)n);
    for (size_t i = 0; i < D_TOK * n; i++)
        din.g[i] = exact ? (float)rnd_below(2) : fabsf(rnd_f32());
    for (size_t i = 0; i < D_TOK; i++) {
        din.beta[i] = exact ? (float)rnd_below(2) : fabsf(rnd_f32());
        din.kq[i] = exact ? (float)rnd_below(3) - 1 : rnd_f32();
    }
    for (size_t i = 0; i < D_TOK * (D_ROWS + D_GAP); i++)
        din.v[i] = exact ? (float)rnd_below(9) - 4 : rnd_f32();
}

/* Compute values [first, first + rows) for tokens [tok, tok + n_tok), from the
 * earlier state: din.from, or to's own. */
static void run_delta(gg_vec_delta_fn *f, size_t n, size_t first, size_t rows,
                      size_t tok, size_t n_tok, struct delta_out *to)
{
    const struct gg_vec_delta p = {
        .n = n,
        .n_rows = rows,
        .n_tok = n_tok,
        .from = (tok ? to->s : din.from) + first * n,
        .s = to->s + first * n,
        .g = din.g + tok * n,
        .k = din.k + tok * n,
        .gk = din.gk + tok * n,
        .gq = din.gq + tok * n,
        .beta = din.beta + tok,
        .kq = din.kq + tok,
        .v = din.v + tok * (D_ROWS + D_GAP) + first,
        .y = to->y + tok * (D_ROWS + D_GAP) + first,
        .v_stride = D_ROWS + D_GAP,
        .y_stride = D_ROWS + D_GAP,
    };
    f(&p);
}

/* Distance of a result from double precision, as a part of the bound. */
static double delta_distance(const struct delta_out *to, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < D_ROWS; i++) {
        double s[D_N], size[D_N];
        for (size_t j = 0; j < n; j++) {
            s[j] = (double)din.from[i * n + j];
            size[j] = fabs(s[j]);
        }
        for (size_t t = 0; t < D_TOK; t++) {
            const double beta = (double)din.beta[t], kq = (double)din.kq[t];
            double e = (double)din.v[t * (D_ROWS + D_GAP) + i], y = 0;
            double e_size = fabs(e), y_size = 0;
            for (size_t j = 0; j < n; j++) {
                const double gk = (double)din.gk[t * n + j];
                const double gq = (double)din.gq[t * n + j];
                e -= s[j] * gk;
                e_size += size[j] * fabs(gk);
                y += s[j] * gq;
                y_size += size[j] * fabs(gq);
            }
            e *= beta;
            e_size *= fabs(beta);
            y += e * kq;
            y_size += e_size * fabs(kq);
            for (size_t j = 0; j < n; j++) {
                const double g = (double)din.g[t * n + j];
                const double k = (double)din.k[t * n + j];
                s[j] = s[j] * g + e * k;
                size[j] = size[j] * fabs(g) + e_size * fabs(k);
            }
            const double most = (double)((t + 1) * (n + 4)) * FLT_EPSILON;
            const double got = (double)to->y[t * (D_ROWS + D_GAP) + i];
            worst = fmax(worst, fabs(got - y) / (most * y_size + 1e-37));
        }
        const double most = (double)(D_TOK * (n + 4)) * FLT_EPSILON;
        for (size_t j = 0; j < n; j++)
            worst = fmax(worst, fabs((double)to->s[i * n + j] - s[j]) /
                                    (most * size[j] + 1e-37));
    }
    return worst;
}

static void check_delta(const struct gg_vec_kern *k)
{
    static struct delta_out want, got, cut;
    bool exact = true, same = true, guarded = true;
    double worst = 0;
    for (size_t l = 1; lengths[l] <= D_N; l++) {
        const size_t n = lengths[l];
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        fill_delta(n, true);
        run_delta(gg_vec_delta_c, n, 0, D_ROWS, 0, D_TOK, &want);
        run_delta(k->delta, n, 0, D_ROWS, 0, D_TOK, &got);
        for (size_t i = 0; i < D_ROWS * n; i++)
            exact = exact && got.s[i] == want.s[i];
        for (size_t i = 0; i < GG_LEN(got.y); i++)
            exact = exact && got.y[i] == want.y[i];
        fill_delta(n, false);
        got.s[D_ROWS * n] = got.y[D_ROWS] = guard;
        run_delta(k->delta, n, 0, D_ROWS, 0, D_TOK, &got);
        guarded =
            guarded && got.s[D_ROWS * n] == guard && got.y[D_ROWS] == guard;
        worst = fmax(worst, delta_distance(&got, n));
        memcpy(&cut, &got, sizeof cut);
        memset(cut.s, 0, D_ROWS * n * sizeof *cut.s);
        for (size_t first = 0; first < D_ROWS; first += first ? 5 : 1) {
            const size_t rows = first ? 5 : 1;
            run_delta(k->delta, n, first, rows, 0, 2, &cut);
            run_delta(k->delta, n, first, rows, 2, D_TOK - 2, &cut);
        }
        same = same && !memcmp(&cut, &got, sizeof cut);
    }
    ok(exact && guarded, "%s: delta of exact inputs is equal", level_name);
    ok(worst <= 1, "%s: delta within %.2f of the bound of any order",
       level_name, worst);
    ok(same, "%s: delta's bits do not depend on parts", level_name);
}

static void check_level(const struct gg_kern *k, const char *level)
{
    level_name = level;
    check_binary("add", k->vec.add, gg_vec_add_c);
    check_binary("mul", k->vec.mul, gg_vec_mul_c);
    check_scale(&k->vec);
    check_unary("silu", k->vec.silu, silu_true);
    check_swiglu(&k->vec);
    check_unary("softplus", k->vec.softplus, softplus_true);
    check_unary("tanh", k->vec.tanh, tanh);
    check_exp(&k->vec);
    check_sums(&k->vec);
    for (int type = 0; type < GG_N_DTYPES; type++)
        if (k->codec[type].dots)
            check_dots(k, type);
    check_scores(&k->vec);
    check_soft_max(&k->vec);
    check_rms_norm(&k->vec);
    check_rope(&k->vec);
    check_taps(&k->vec);
    check_delta(&k->vec);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    test_each_level(check_level);
    return done_testing();
}
