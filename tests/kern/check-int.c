/* SPDX-License-Identifier: MIT */
/* check-int.c - packers and tiles of products on integers
 *
 * Integers, scales and their sums have the same bits at every level. Results
 * of a tile are within the bound for F32 sums in any order. The largest
 * weights of each type and activations of all kinds show that no sum
 * overflows.
 */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_i8.h"
#include "tests/aligned.h"
#include "tests/kern/activations.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { STEPS = ACTS_STEPS, MAX_K = 3 * STEPS, MAX_NR = 32 };

static void *panel_of(size_t size)
{
    return memset(activations_must(aligned_new((size / 64 + 2) * 64)), 0x5a,
                  (size / 64 + 2) * 64);
}

/* Where step p of row r of a block of 16-bit integers is. */
static size_t index_16(size_t p, size_t r, size_t width)
{
    return ((p / 32 * 16 + p % 16) * width + r) * 2 + p % 32 / 16;
}

/* Bytes of tiles are signed if they have no bias. */
static bool is_signed(const struct gg_kern_gemm *g)
{
    return g->ints.tiles ? !g->ints.bias
                         : g->ints.order != GG_GEMM_I8_BY_QUADS;
}

static int w_at(const struct gg_kern_gemm *g, const struct gg_gemm_int_w *w,
                size_t p, size_t r)
{
    if (g->ints.width != 1)
        return w->q[index_16(p, r, g->mr)];
    const uint8_t q = ((const uint8_t *)w->q)[gg_gemm_i8_w_index(g, p, r)];
    return (is_signed(g) ? (int8_t)q : q) - g->ints.bias;
}

/* A block of activations, of one or two bytes each. */
struct x_block {
    const void *i;
    const float *s, *sum;
    const int32_t *begin; /* sums for minima; NULL: none */
    size_t steps;         /* steps that share a scale */
};

static struct x_block x_block(const struct gg_kern_gemm *g, void *panel,
                              size_t b)
{
    if (g->ints.width == 1) {
        const struct gg_gemm_i8_x x = gg_gemm_i8_x_at(g, panel, b);
        return (struct x_block){ x.i, x.s, x.sum, x.begin, 32 };
    }
    const struct gg_gemm_int_x x = gg_gemm_int_x_at(g, panel, b);
    return (struct x_block){ x.i, x.s, x.sum, NULL, STEPS };
}

static int x_at(const struct gg_kern_gemm *g, const struct x_block *x,
                size_t p, size_t c)
{
    if (g->ints.tiles)
        return ((const int8_t *)x->i)[(p / 32 * g->nr + c) * 32 + p % 32];
    if (g->ints.width == 1)
        return ((const int8_t *)x->i)[gg_gemm_i8_x_index(g, p, c)];
    return ((const int16_t *)x->i)[index_16(p, c, g->nr)];
}

/* Steps of an integer sum: those that share a scale on both sides. */
static size_t run_length(const struct gg_kern_gemm *g)
{
    const size_t steps = STEPS / g->ints.n_scales;
    return g->ints.width == 1 ? GG_MIN(steps, (size_t)32) : steps;
}

static float s_at(const struct gg_kern_gemm *g, const struct x_block *x,
                  size_t p, size_t c)
{
    return x->s[p / x->steps * g->nr + c];
}

/* ---- activations ---- */

/* Are the integers of a packed column within half a step of x? */
static bool rounds_column(const struct gg_kern_gemm *g, void *panel, size_t c,
                          const float *x, size_t k)
{
    for (size_t b = 0; b * STEPS < k; b++) {
        const struct x_block p = x_block(g, panel, b);
        const size_t run = run_length(g);
        const int most =
            g->ints.width == 1 ? GG_GEMM_I8_MOST : GG_GEMM_INT_MOST;
        uint32_t sum = 0;
        int all = 0;
        for (size_t i = 0; i < STEPS; i++) {
            const int q = x_at(g, &p, i, c);
            const double s = (double)s_at(g, &p, i, c);
            const double v = b * STEPS + i < k ? (double)x[b * STEPS + i] : 0;
            sum = (i % run ? sum : 0) + (uint32_t)abs(q);
            all = (i % run ? all : 0) + q;
            if ((g->ints.most && sum > g->ints.most) || abs(q) > most)
                return false;
            if (p.begin && i % run == run - 1 &&
                p.begin[i / run * g->nr + c] != -(int)g->ints.bias * all)
                return false;
            if (s == s && fabs(v) > 0x1p-100 &&
                fabs(v - s * q) > s * (0.5 + 0x1p-8))
                return false;
            if (s != s && q)
                return false;
        }
    }
    return true;
}

/* Does a level pack columns from `first' like the reference, and no others? */
static bool same_columns(const struct gg_kern_gemm *g,
                         const struct gg_kern_gemm *ref, const float *x,
                         size_t first, size_t n, size_t k)
{
    unsigned char *a = panel_of(gg_kern_gemm_x_size(g, k));
    unsigned char *b = panel_of(gg_kern_gemm_x_size(ref, k));
    const size_t stride = MAX_K + 3;
    const int untouched = g->ints.width == 1 ? 0x5a : 0x5a5a;
    bool good = true;
    g->pack_x(g, a, first, x, stride, n, k);
    for (size_t c = 0; good && c < g->nr; c++) {
        const bool in = c >= first && c < first + n;
        if (in) {
            ref->pack_x(ref, b, 0, x + (c - first) * stride, stride, 1, k);
            good = rounds_column(g, a, c, x + (c - first) * stride, k);
        }
        for (size_t i = 0; i * STEPS < k; i++) {
            const struct x_block p = x_block(g, a, i);
            const struct x_block q = x_block(ref, b, i);
            for (size_t s = 0; s < STEPS; s++)
                good = good && x_at(g, &p, s, c) ==
                                   (in ? x_at(ref, &q, s, 0) : untouched);
            for (size_t m = 0; in && m < g->ints.n_mins; m++)
                good = good && !memcmp(&p.sum[m * g->nr + c],
                                       &q.sum[m * ref->nr], sizeof(float));
            for (size_t s = 0; in && s < STEPS / p.steps; s++)
                good = good && !memcmp(&p.s[s * g->nr + c], &q.s[s * ref->nr],
                                       sizeof(float));
        }
    }
    good = good && a[gg_kern_gemm_x_size(g, k)] == 0x5a;
    aligned_free(a);
    aligned_free(b);
    return good;
}

static void check_pack_x(const char *level, const struct gg_kern_gemm *g,
                         const struct gg_kern_gemm *ref, unsigned form)
{
    static float x[MAX_NR * (MAX_K + 3)];
    static const size_t lengths[] = { MAX_K, STEPS, 300, 64, 32, 7 };
    bool good = true;
    for (int kind = 0; kind < N_ACTS; kind++)
        for (size_t i = 0; i < GG_LEN(lengths); i++) {
            const size_t first = rnd_below(g->nr),
                         n = 1 + rnd_below(g->nr - first);
            activations_fill(x, sizeof x / sizeof *x, (enum acts)kind);
            if (!same_columns(g, ref, x, first, n, lengths[i])) {
                printf("# kind %d, %zu steps\n", kind, lengths[i]);
                good = false;
            }
        }
    ok(good, "%s: form %u: activations are rounded as the reference does",
       level, form);
}

/* ---- weights ---- */

/* Fill blocks with one byte, or with random bytes and finite scales. */
static void random_row(const struct gg_codec_kern *codec,
                       const struct gguf_dtype_info *dt, unsigned char *row,
                       size_t n)
{
    static const unsigned char all[] = { 0, 0x80, 0x7f, 0xff };
    float x[STEPS];
    for (size_t b = 0; b < n; b++, row += dt->block_size) {
        const size_t pattern = rnd_below(2 * sizeof all);
        bool good;
        int tries = 0;
        do {
            for (size_t i = 0; i < dt->block_size; i++)
                row[i] = pattern < sizeof all && tries < 20
                             ? all[pattern]
                             : (unsigned char)rnd_below(256);
            /* the scale may be any word of two bytes */
            for (size_t i = 0; pattern < sizeof all && i < 2 && tries < 20;
                 i++) {
                row[i] = (unsigned char)rnd_below(100);
                row[dt->block_size - 1 - i] = (unsigned char)rnd_below(100);
            }
            codec->decode(row, x, dt->block_len);
            good = true;
            for (size_t i = 0; i < dt->block_len; i++)
                good = good && fabsf(x[i]) < 1e30f;
            tries++;
        } while (!good);
    }
}

/* Compare panels of two levels, and with the decoder. */
static bool same_rows(const struct gg_kern *kern, const struct gg_kern *ref,
                      int form, const struct gg_kern_gemm_rows *w, size_t n,
                      size_t k, const float *decoded)
{
    const struct gg_kern_gemm *g = &kern->gemm[form], *h = &ref->gemm[form];
    const size_t g_size = gg_kern_gemm_w_size(g, k),
                 h_size = gg_kern_gemm_w_size(h, k);
    unsigned char *a = panel_of(g_size * (n / g->mr + 1));
    unsigned char *b = panel_of(h_size * (n / h->mr + 1));
    void *buf = panel_of(g->buf_size);
    bool good = true;
    g->pack_rows(kern, g, w, n, k, a, buf);
    h->pack_rows(ref, h, w, n, k, b, buf);
    for (size_t r = 0; r < n; r++)
        for (size_t p = 0; p < (k + STEPS - 1) / STEPS * STEPS; p++) {
            const struct gg_gemm_int_w u =
                gg_gemm_int_w_at(g, a + r / g->mr * g_size, p / STEPS);
            const struct gg_gemm_int_w v =
                gg_gemm_int_w_at(h, b + r / h->mr * h_size, p / STEPS);
            const size_t step = p % STEPS, ur = r % g->mr, vr = r % h->mr;
            const size_t run = step * g->ints.n_scales / STEPS,
                         group = step * g->ints.n_mins / STEPS;
            const int q = w_at(g, &u, step, ur);
            const double d = (double)u.d[run * g->mr + ur],
                         m = g->ints.n_mins ? (double)u.m[group * g->mr + ur]
                                            : 0;
            const double want = p < k ? (double)decoded[r * k + p] : 0;
            good = good && q == w_at(h, &v, step, vr) &&
                   (int64_t)abs(q) * g->ints.most <= INT32_MAX &&
                   (g->ints.width != 1 ||
                    q + (int)g->ints.bias <= (int)g->ints.top) &&
                   u.d[run * g->mr + ur] == v.d[run * h->mr + vr] &&
                   fabs(d * q + m - want) <=
                       2 * FLT_EPSILON * (fabs(d * q) + fabs(m));
        }
    aligned_free(a);
    aligned_free(b);
    aligned_free(buf);
    return good;
}

static void check_pack_w(const char *level, const struct gg_kern *kern,
                         const struct gg_kern *ref, int dtype, int form)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    const struct gg_codec_kern *codec = &kern->codec[dtype];
    const size_t k = dt->block_len < STEPS ? MAX_K - dt->block_len : MAX_K;
    const size_t n = 70, size = k / dt->block_len * dt->block_size, skew = 3;
    unsigned char *w = activations_must(malloc(n * (size + skew)));
    float *decoded = activations_must(malloc(n * k * sizeof *decoded));
    for (size_t r = 0; r < n; r++) {
        random_row(codec, dt, w + r * (size + skew), k / dt->block_len);
        codec->decode(w + r * (size + skew), decoded + r * k, k);
    }
    const struct gg_kern_gemm_rows rows = { dtype, w, size + skew, 0 };
    ok(same_rows(kern, ref, form, &rows, n, k, decoded),
       "%s: rows of %s: integers as the reference has them, times scales the "
       "decoder's",
       level, dt->name);
    free(w);
    free(decoded);
}

/* ---- tiles ---- */

struct tile_case {
    const struct gg_kern_gemm *g;
    unsigned char *w, *x;
    size_t n_blocks;
    unsigned n_cols;
    int add;
};

/* Element (r, c) in double precision, and the sum of magnitudes. false: a sum
 * of integers overflows. */
static bool expected_element(const struct tile_case *t, size_t r, size_t c,
                             double *sum, double *size)
{
    const struct gg_kern_gemm *g = t->g;
    const size_t run = run_length(g);
    *sum = *size = t->add ? 3 : 0;
    for (size_t b = 0; b < t->n_blocks; b++) {
        const struct gg_gemm_int_w w = gg_gemm_int_w_at(g, t->w, b);
        const struct x_block x = x_block(g, t->x, b);
        for (size_t i = 0; i < STEPS / run; i++) {
            const double d =
                (double)w.d[i * run * g->ints.n_scales / STEPS * g->mr + r];
            const double s = (double)s_at(g, &x, i * run, c);
            int64_t dot = 0;
            for (size_t p = i * run; p < (i + 1) * run; p++)
                dot += w_at(g, &w, p, r) * x_at(g, &x, p, c);
            if (dot > INT32_MAX || dot < -INT32_MAX)
                return false;
            *sum += s * d * (double)dot;
            *size += fabs(s * d * (double)dot);
        }
        for (size_t i = 0; i < g->ints.n_mins; i++) {
            const double v =
                (double)w.m[i * g->mr + r] * (double)x.sum[i * g->nr + c];
            *sum += v;
            *size += fabs(v);
        }
    }
    return true;
}

static bool tile_good(const struct tile_case *t)
{
    enum { STRIDE = 37 };
    static float y[MAX_NR * STRIDE];
    const struct gg_kern_gemm *g = t->g;
    const float guard = -12345.675f;
    for (size_t i = 0; i < GG_LEN(y); i++)
        y[i] = guard;
    for (size_t j = 0; j < t->n_cols; j++)
        for (size_t i = 0; i < g->mr; i++)
            y[1 + j * STRIDE + i] = t->add ? 3 : NAN;
    acts_tile(g, t->w, t->x, t->n_blocks, t->n_cols, y + 1, STRIDE, t->add);
    for (size_t j = 0; j < MAX_NR; j++)
        for (size_t i = 0; i < STRIDE - 1; i++) {
            const float got = y[1 + j * STRIDE + i];
            double want, size;
            if (i >= g->mr || j >= t->n_cols) {
                if (got != guard)
                    return false;
                continue;
            }
            if (!expected_element(t, i, j, &want, &size) ||
                !(fabs((double)got - want) <=
                  (double)(t->n_blocks * 34 + 1) * FLT_EPSILON * size)) {
                printf("# [%zu][%zu] = %a, not %a\n", j, i, (double)got, want);
                return false;
            }
        }
    return y[0] == guard;
}

/* Fill with the largest integers of the form, with one sign, so that sums are
 * the largest possible. */
static void fill_w(const struct gg_kern_gemm *g, unsigned char *panel,
                   size_t n_blocks, bool extreme, const struct tile_case *t)
{
    const int bias = g->ints.bias, top = g->ints.top;
    const int least = g->ints.width != 1 ? -(int)(INT32_MAX / g->ints.most)
                      : g->ints.tiles && !bias ? -128
                      : is_signed(g)           ? -top - 1 - bias
                                               : -bias;
    const int most = g->ints.width == 1 ? top - bias : -least;
    for (size_t b = 0; b < n_blocks; b++) {
        const struct gg_gemm_int_w w = gg_gemm_int_w_at(g, panel, b);
        const struct x_block x = x_block(g, t->x, b);
        for (size_t p = 0; p < STEPS; p++)
            for (size_t r = 0; r < g->mr; r++) {
                int q = (int)rnd_below((unsigned)(most - least) + 1) + least;
                if (extreme)
                    q = (x_at(g, &x, p, r % g->nr) < 0) == (r & 1) ? most
                                                                   : least;
                if (g->ints.width == 1)
                    ((uint8_t *)w.q)[gg_gemm_i8_w_index(g, p, r)] =
                        (uint8_t)(q + bias);
                else
                    w.q[index_16(p, r, g->mr)] = (int16_t)q;
            }
        for (size_t i = 0; i < g->ints.n_scales * g->mr; i++)
            w.d[i] = rnd_f32();
        for (size_t i = 0; i < g->ints.n_mins * g->mr; i++)
            w.m[i] = rnd_f32();
    }
}

static void check_tile(const char *level, const struct gg_kern_gemm *g,
                       unsigned form)
{
    static float x[MAX_NR * (MAX_K + 3)];
    struct tile_case t = { .g = g };
    bool good = true;
    t.w = panel_of(gg_kern_gemm_w_size(g, MAX_K));
    t.x = panel_of(gg_kern_gemm_x_size(g, MAX_K));
    for (int kind = 0; kind <= ACTS_OUTLIER; kind++)
        for (unsigned cols = 1; cols <= g->nr; cols = acts_next_cols(g, cols))
            for (size_t n = 0; n <= 3; n++) {
                activations_fill(x, sizeof x / sizeof *x, (enum acts)kind);
                g->pack_x(g, t.x, 0, x, MAX_K + 3, g->nr, MAX_K);
                t.n_blocks = n;
                t.n_cols = cols;
                t.add = (int)rnd_below(2);
                fill_w(g, t.w, n, (cols + n) % 2, &t);
                good = good && tile_good(&t);
            }
    ok(good, "%s: form %u: tiles are what their panels say; no sum overflows",
       level, form);
    aligned_free(t.w);
    aligned_free(t.x);
}

/* With scales of 1 and no minima, the sums have integers only and exact in
 * F32: every level must give them. */
static void check_exact(const char *level, const struct gg_kern_gemm *g,
                        unsigned form)
{
    enum { STRIDE = 37 };
    static float x[MAX_NR * STEPS], y[MAX_NR * STRIDE];
    struct tile_case t = { .g = g, .n_blocks = 1 };
    bool good = true;
    t.w = panel_of(gg_kern_gemm_w_size(g, STEPS));
    t.x = panel_of(gg_kern_gemm_x_size(g, STEPS));
    for (int round = 0; round < 8; round++) {
        for (size_t i = 0; i < GG_LEN(x); i++)
            x[i] = (float)rnd_below(255) - 127;
        for (size_t i = 0; i < GG_LEN(x); i += 1 + (round & 1 ? 0 : 31))
            x[i] = rnd_below(2) ? 127 : -127;
        g->pack_x(g, t.x, 0, x, STEPS, g->nr, STEPS);
        fill_w(g, t.w, 1, round % 4 < 2, &t);
        const struct gg_gemm_int_w w = gg_gemm_int_w_at(g, t.w, 0);
        for (size_t i = 0; i < g->ints.n_scales * g->mr; i++)
            w.d[i] = 1;
        for (size_t i = 0; i < g->ints.n_mins * g->mr; i++)
            w.m[i] = 0;
        acts_tile(g, t.w, t.x, 1, g->nr, y, STRIDE, 0);
        for (size_t c = 0; c < g->nr; c++)
            for (size_t r = 0; r < g->mr; r++) {
                double want, size;
                good = good && expected_element(&t, r, c, &want, &size) &&
                       (double)y[c * STRIDE + r] == want;
            }
    }
    ok(good, "%s: form %u: integers are those of the panels", level, form);
    aligned_free(t.w);
    aligned_free(t.x);
}

static void check_type(const struct acts_form *f, void *user)
{
    if (f->form != GG_GEMM_BF16)
        check_pack_w(f->level, f->kern, user, f->dtype, f->form);
}

int main(int argc, char **argv)
{
    static struct gg_kern kern, ref;
    struct test_level level[ACTS_LEVELS];
    rnd_seed(argc, argv);
    const unsigned n = acts_levels(level);
    gg_kern_init(&ref, 0);
    for (unsigned i = 0; i < n; i++) {
        acts_kern_init(&kern, &level[i]);
        for (unsigned f = GG_GEMM_I16_8; f < GG_GEMM_N_FORMS; f++) {
            if (!kern.gemm[f].tile)
                continue;
            check_pack_x(level[i].name, &kern.gemm[f], &ref.gemm[f], f);
            check_tile(level[i].name, &kern.gemm[f], f);
            if (kern.gemm[f].ints.width == 1)
                check_exact(level[i].name, &kern.gemm[f], f);
        }
    }
    acts_each_form(check_type, &ref);
    return done_testing();
}
