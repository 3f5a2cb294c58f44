/* SPDX-License-Identifier: MIT */
/* check-feedback.c - feedback, rounding and search against the formulas in
 * double precision
 *
 *   check-feedback [SEED]
 *
 * The reference has the form of GPTQ (arXiv 2210.17323, section 3.3): with
 * S^-1 = U' U, U upper triangular, the error of column j changes the targets w
 * of all later columns by -(w[j] - q[j]) U[j][k] / U[j][j], and costs
 * ((w[j] - q[j]) / U[j][j])^2. It follows the encoder: after each sub-block it
 * takes the encoder's elements, as the type's decoder gives them, so that
 * roundings in single precision do not add up.
 */
#include "config.h"
#include "fit/feedback.h"
#include "dtype/f16.h"
#include "kern/codec.h"
#include "tests/fit/metric.h"

enum { N = 512, ROWS = 20, LEN = GG_FORM_MAX_LEN };

static struct gg_codec_kern codec[GG_N_DTYPES];

/* U of S^-1 = U' U: the inverse by elimination, then its factor. */
static double *inverse_factor(const struct metric *m)
{
    const size_t n = m->m.n;
    double *a = metric_matrix(n), *inv = metric_matrix(n);
    double *u = metric_matrix(n);
    memcpy(a, m->s, n * n * sizeof *a);
    for (size_t i = 0; i < n; i++)
        inv[i * n + i] = 1;
    for (size_t p = 0; p < n; p++) {
        const double d = a[p * n + p];
        for (size_t k = 0; k < n; k++) {
            a[p * n + k] /= d;
            inv[p * n + k] /= d;
        }
        for (size_t i = 0; i < n; i++) {
            const double x = a[i * n + p];
            for (size_t k = 0; k < n && i != p; k++) {
                a[i * n + k] -= x * a[p * n + k];
                inv[i * n + k] -= x * inv[p * n + k];
            }
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            double x = inv[i * n + j];
            for (size_t k = 0; k < i; k++)
                x -= u[k * n + i] * u[k * n + j];
            u[i * n + j] = i == j ? sqrt(x) : x / u[i * n + i];
        }
    free(a);
    free(inv);
    return u;
}

/* Numbers of a sub-block's codes. */
struct point {
    double scale, min, shift;
};

/* Columns of a sub-block and of those after it in the block: targets with
 * feedback, and U. */
struct place {
    const struct gg_form *f;
    const float *words;
    const double *u;    /* element [0][0] */
    size_t n;           /* row length of u */
    unsigned n_columns; /* columns, at least sub_len */
    double w[LEN];
};

/* Add the error of column j, if it becomes q, to the later targets. */
static double push_error(const struct place *p, double *w, unsigned j,
                         double q)
{
    const double *u = p->u + j * p->n;
    const double e = (w[j] - q) / u[j];
    for (unsigned k = j + 1; k < p->n_columns; k++)
        w[k] -= e * u[k];
    return e * e;
}

static double nearest_value(const struct gg_form *f, const struct point *at,
                            double w)
{
    double best = INFINITY;
    for (int k = f->code_lo; k <= f->code_hi; k++) {
        const double v = at->scale * f->level[k] - at->min;
        if (fabs(v - w) < fabs(best - w))
            best = v;
    }
    return best;
}

/* Diagonal of the inverse of (U' U)^-1's block of a group: of R R', where R is
 * the inverse of U's block. */
static void group_weights(const struct place *p, unsigned o, double *weight)
{
    const unsigned n = p->f->group;
    double r[8][8] = { { 0 } };
    for (unsigned j = 0; j < n; j++)
        for (unsigned i = j + 1; i-- > 0;) {
            double x = i == j;
            for (unsigned k = i + 1; k <= j; k++)
                x -= p->u[(o + i) * p->n + o + k] * r[k][j];
            r[i][j] = x / p->u[(o + i) * p->n + o + i];
        }
    for (unsigned i = 0; i < n; i++) {
        weight[i] = 0;
        for (unsigned k = i; k < n; k++)
            weight[i] += r[i][k] * r[i][k];
    }
}

/* Choose signs: those of x, and in types with even signs the cheapest other
 * one where the number of signs so far is odd at the end of eight. */
static void choose_signs(const struct gg_form *f, const double *x,
                         const double *weight, unsigned o, int *odd,
                         double *sign)
{
    unsigned least = 0;
    if (o % 8 == 0)
        *odd = 0;
    for (unsigned j = 0; j < f->group; j++) {
        sign[j] = f->has_signs && x[j] < 0 ? -1 : 1;
        *odd ^= sign[j] < 0;
        if (weight[j] * fabs(x[j]) < weight[least] * fabs(x[least]))
            least = j;
    }
    if (f->even_signs && (o + f->group) % 8 == 0 && *odd)
        sign[least] = -sign[least];
}

/* Values of the nearest word for targets x, in units of the scale. */
static double nearest_word(const struct place *p, const double *x,
                           const double *weight, const double *sign,
                           double shift, double *value)
{
    const unsigned n = p->f->group;
    double best = INFINITY;
    for (unsigned k = 0; k < p->f->n_words; k++) {
        const float *word = p->words + k * n;
        double cost = 0;
        for (unsigned j = 0; j < n; j++) {
            const double e = x[j] - sign[j] * word[j] - shift;
            cost += weight[j] * e * e;
        }
        if (cost >= best)
            continue;
        best = cost;
        for (unsigned j = 0; j < n; j++)
            value[j] = sign[j] * word[j] + shift;
    }
    return best;
}

/* Cost of rounding a sub-block; w receives the targets that are left. */
static double round_place(const struct place *p, const struct point *at,
                          double w[LEN])
{
    const struct gg_form *f = p->f;
    double cost = 0;
    int odd = 0;
    memcpy(w, p->w, sizeof p->w);
    for (unsigned o = 0; o < f->sub_len && f->n_levels; o++)
        cost += push_error(p, w, o, nearest_value(f, at, w[o]));
    for (unsigned o = 0; o < f->sub_len && !f->n_levels; o += f->group) {
        double weight[8], sign[8], x[8], v[8], other[8];
        group_weights(p, o, weight);
        for (unsigned j = 0; j < f->group; j++)
            x[j] = at->scale != 0 ? w[o + j] / at->scale : 0;
        choose_signs(f, x, weight, o, &odd, sign);
        if (f->shift_len == f->group) {
            if (nearest_word(p, x, weight, sign, f->shift[0], v) >
                nearest_word(p, x, weight, sign, f->shift[1], other))
                memcpy(v, other, sizeof v);
        } else {
            nearest_word(p, x, weight, sign, at->shift, v);
        }
        for (unsigned j = 0; j < f->group; j++)
            cost += push_error(p, w, o + j, at->scale * v[j]);
    }
    return cost;
}

static struct point point_of(const struct gg_form *f,
                             const struct gg_form_block *b, int32_t scale,
                             int32_t min)
{
    return (struct point){
        .scale = (double)b->d * f->scale_value(scale),
        .min = f->has_min ? (double)b->dmin * f->min_value(min) : 0,
        .shift = f->shift_len == f->sub_len ? f->shift[min] : 0
    };
}

/* The least cost that at most four moves by steps of each length reach from
 * the codes of b; w receives the targets that are left. */
static double climb_codes(const struct place *p, const struct gg_form_block *b,
                          unsigned s, double w[LEN])
{
    const struct gg_form *f = p->f;
    const bool has_shift = f->shift_len == f->sub_len;
    const int32_t lo = has_shift ? 0 : f->min_lo;
    const int32_t hi = has_shift ? 1 : f->min_hi;
    int32_t by = f->scale_first / f->scale_step, moves = 0;
    int32_t scale = b->scale[s], min = has_shift ? b->shift[s] : b->min[s];
    struct point at = point_of(f, b, scale, min);
    double cost = round_place(p, &at, w);
    while (by > 0) {
        const int32_t step = has_shift ? 1 : by * f->min_step;
        const int32_t from = scale, up = min;
        const int reach = f->has_min || has_shift;
        for (int ds = -1; ds <= 1; ds++)
            for (int dm = -reach; dm <= reach; dm++) {
                const int32_t a = from + ds * by * f->scale_step;
                const int32_t c = up + dm * step;
                double left[LEN];
                if (a < f->scale_lo || a > f->scale_hi ||
                    (reach && (c < lo || c > hi)))
                    continue;
                at = point_of(f, b, a, c);
                const double x = round_place(p, &at, left);
                if (x >= cost)
                    continue;
                cost = x;
                scale = a;
                min = c;
                memcpy(w, left, sizeof left);
            }
        if ((scale == from && min == up) || ++moves == 4) {
            by /= 8;
            moves = 0;
        }
    }
    return cost;
}

/* Nearest code, by trying all. */
static int32_t nearest_code(const struct gg_form *f, double value)
{
    int32_t best = f->scale_lo;
    for (int32_t c = f->scale_lo; c <= f->scale_hi; c++)
        if (fabs(f->scale_value(c) - value) <
            fabs(f->scale_value(best) - value))
            best = c;
    return best;
}

/* Cost of a block whose scales begin at those of the plain encoder times x. */
static double encode_block(const struct gg_form *f, const float *words,
                           const double *u, size_t n, const double *target,
                           const struct gg_form_block *plain, double x)
{
    struct gg_form_block b = *plain;
    struct place p = { f, words, u, n, f->block_len, { 0 } };
    double cost = 0;
    memcpy(p.w, target, f->block_len * sizeof *target);
    if (f->has_d)
        b.d = gg_dtype_f16_to_f32(gg_dtype_f32_to_f16((float)(b.d * x)));
    for (unsigned s = 0; s < gg_form_n_subs(f); s++) {
        const double was = f->scale_value(b.scale[s]);
        double w[LEN];
        if (x != 1)
            b.scale[s] = nearest_code(f, f->has_d ? was / x : was * x);
        cost += climb_codes(&p, &b, s, w);
        p.u += f->sub_len * (n + 1);
        p.n_columns -= f->sub_len;
        memcpy(p.w, w + f->sub_len, p.n_columns * sizeof *w);
    }
    return cost;
}

/* Differences of an encoded type from the reference. */
struct tally {
    unsigned n_subs, n_rounded;    /* sub-blocks, and those with a cost that
                                    * differs by more than 0.1% */
    unsigned n_blocks, n_searched; /* blocks, and those that differ so */
    double error, plain;           /* e' S e of all rows */
    double sum; /* sum of the costs of columns, equal to error */
    bool none_worse;
};

static bool is_close(double x, double y)
{
    return fabs(x - y) <= 1e-3 * y + 1e-12;
}

/* Follow the encoder through a block whose elements are x: w are the targets
 * with feedback. */
static void follow_block(const struct gg_form *f, const float *words,
                         const double *u, size_t n, double *w, const float *x,
                         const struct gg_form_block *plain,
                         const struct gg_form_block *b, bool searched,
                         struct tally *t)
{
    static const double factor[] = { 1, 0.94, 1.06 };
    const bool has_shift = f->shift_len == f->sub_len;
    double least = INFINITY, sum = 0, left[LEN];
    for (int k = 0; k < 3 && searched; k++)
        least = fmin(least, encode_block(f, words, u, n, w, plain, factor[k]));
    for (unsigned s = 0; s < gg_form_n_subs(f); s++) {
        const unsigned o = s * f->sub_len;
        struct place p = { f, words, u + o * (n + 1), n, f->sub_len, { 0 } };
        const struct point at =
            point_of(f, b, b->scale[s], has_shift ? b->shift[s] : b->min[s]);
        double cost = 0;
        memcpy(p.w, w + o, f->sub_len * sizeof *w);
        for (size_t j = o; j < o + f->sub_len; j++) {
            const double r = (w[j] - x[j]) / u[j * n + j];
            cost += r * r;
            for (size_t k = j; k < f->block_len; k++)
                w[k] -= r * u[j * n + k];
        }
        t->n_subs++;
        t->n_rounded += !is_close(cost, round_place(&p, &at, left));
        sum += cost;
    }
    t->n_blocks++;
    t->n_searched += searched && !is_close(sum, least);
    t->sum += sum;
}

/* Follow the encoder through a row. */
static void follow_row(const struct gg_form *f, const struct metric *m,
                       const double *u, const float *words,
                       const float *target, const uint8_t *plain,
                       const uint8_t *row, bool searched, struct tally *t)
{
    const size_t n = m->m.n;
    double w[N], e[N], now[LEN];
    float x[N];
    codec[f->dtype].decode(row, x, n);
    for (size_t j = 0; j < n; j++)
        w[j] = target[j];
    for (size_t o = 0; o < n; o += f->block_len) {
        const size_t at = o / f->block_len * f->block_size;
        struct gg_form_block was, b;
        f->unpack(&was, plain + at);
        f->unpack(&b, row + at);
        memcpy(now, w + o, f->block_len * sizeof *w);
        follow_block(f, words, u + o * (n + 1), n, now, x + o, &was, &b,
                     searched, t);
        for (size_t j = o; j < o + f->block_len; j++) {
            const double r = (w[j] - x[j]) / u[j * n + j];
            for (size_t k = j; k < n; k++)
                w[k] -= r * u[j * n + k];
        }
    }
    for (size_t j = 0; j < n; j++)
        e[j] = (double)target[j] - x[j];
    const double error = metric_error(m, e);
    codec[f->dtype].decode(plain, x, n);
    for (size_t j = 0; j < n; j++)
        e[j] = (double)target[j] - x[j];
    const double before = metric_error(m, e);
    t->error += error;
    t->plain += before;
    t->none_worse = t->none_worse && error <= before * (1 + 1e-5);
}

static void check_type(const struct gg_form *f, const struct metric *m,
                       const double *u, const float *target)
{
    const char *name = gg_dtype_by_index(f->dtype)->name;
    const size_t n = m->m.n, size = n / f->block_len * f->block_size;
    static float words[2048 * 8], weight[N];
    uint8_t *plain = calloc(ROWS, size), *row = calloc(ROWS, size);
    double errors[2];
    if (!plain || !row)
        exit(99);
    for (size_t j = 0; j < n; j++)
        weight[j] = (float)m->s[j * n + j];
    codec[f->dtype].encode(target, plain, ROWS, n,
                           codec[f->dtype].flags & GG_CODEC_WEIGHT ? weight
                                                                   : NULL);
    if (!f->n_levels)
        gg_form_words(f, words);
    for (int searched = 0; searched < 2; searched++) {
        struct tally t = { .none_worse = true };
        memcpy(row, plain, ROWS * size);
        enum gguf_status st = gg_feedback_encode(
            f, &m->m, target, ROWS, row,
            searched ? GG_FEEDBACK_SEARCHED : GG_FEEDBACK_FIXED, NULL, NULL,
            NULL);
        for (unsigned r = 0; r < ROWS; r++)
            follow_row(f, m, u, words, target + r * n, plain + r * size,
                       row + r * size, searched, &t);
        ok(st == GGUF_OK && t.none_worse && t.error < 0.7 * t.plain,
           "%s, %s: %.3f of the plain error", name,
           searched ? "searched" : "fixed", t.error / t.plain);
        ok(is_close(t.sum, t.error), "costs of columns add up to e' S e");
        ok(t.n_rounded * 20 <= t.n_subs + 20,
           "%u of %u sub-blocks are rounded differently", t.n_rounded,
           t.n_subs);
        if (searched)
            ok(t.n_searched * 20 <= t.n_blocks + 20,
               "%u of %u blocks have other scales", t.n_searched, t.n_blocks);
        errors[searched] = t.error;
    }
    ok(errors[1] < errors[0], "a search of scales gains: %.3f",
       errors[1] / errors[0]);
    free(plain);
    free(row);
}

int main(int argc, char **argv)
{
    struct metric m;
    static float target[ROWS * N];
    rnd_seed(argc, argv);
    gg_codec_kern_init(codec, 0);
    metric_init(&m, N, 0.01);
    double *u = inverse_factor(&m);
    for (size_t i = 0; i < ROWS * N; i++)
        target[i] = (float)(0.02 * metric_normal());
    for (int t = 0; t < GG_N_DTYPES; t++)
        if (gg_form_of(t))
            check_type(gg_form_of(t), &m, u, target);
    metric_fini(&m);
    free(u);
    return done_testing();
}
