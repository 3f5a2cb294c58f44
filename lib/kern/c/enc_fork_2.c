/* SPDX-License-Identifier: MIT */
/* enc_fork_2.c - reference encoders of IQ2_K and IQ2_KS
 *
 * Four levels let a search look at more than the nearest ones. IQ2_K sorts the
 * elements and tries every division into four runs, IQ2_KS many scales.
 */
#include "config.h"
#include "base/os/os_math.h"
#include "kern/codec.h"
#include "kern/c/enc_fork.h"
#include "dtype/iq_code.h"

static const int8_t level[4] = GG_IQ2K_LEVELS;

static const struct gg_kern_fork_weight_rule rule_k = { 16, 1.5f, 0.25f };
static const struct gg_kern_fork_weight_rule rule_ks = { 32, 1.5f, 0.25f };

/* ------------------------------------------------------------- IQ2_K --- */

/* Sums of the first i of 16 sorted elements: weights, and weights times
 * elements. */
struct prefix {
    float w[17], x[17];
};

static void sort_elements(struct prefix *p, const float *x, const float *w)
{
    uint8_t order[16];
    for (int i = 0; i < 16; i++) {
        int k = i;
        for (; k > 0 && x[order[k - 1]] > x[i]; k--)
            order[k] = order[k - 1];
        order[k] = (uint8_t)i;
    }
    p->w[0] = p->x[0] = 0;
    for (int i = 0; i < 16; i++) {
        int j = order[i];
        p->w[i + 1] = p->w[i] + w[j];
        p->x[i + 1] = p->x[i] + w[j] * x[j];
    }
}

/* Sums of four runs that end before i[0], i[1], i[2] and 16, with levels v. */
static struct gg_kern_fork_sums run_sums(const struct prefix *p,
                                         const int i[3], const float v[4])
{
    const float *w = p->w, *x = p->x;
    int a = i[0], b = i[1], c = i[2];
    struct gg_kern_fork_sums s = {
        (x[a] - x[0]) * v[0] + (x[b] - x[a]) * v[1] + (x[c] - x[b]) * v[2] +
            (x[16] - x[c]) * v[3],
        (w[a] - w[0]) * v[0] * v[0] + (w[b] - w[a]) * v[1] * v[1] +
            (w[c] - w[b]) * v[2] * v[2] + (w[16] - w[c]) * v[3] * v[3],
    };
    return s;
}

static struct gg_kern_fork_fit fit_runs(const float *x, const float *w)
{
    struct gg_kern_fork_fit f = { 0, 0, false };
    struct prefix p;
    float v[4][4];
    int i[3];
    if (gg_kern_max_abs(x, 16) < 1e-16f)
        return f;
    for (int k = 0; k < 4; k++) {
        v[0][k] = v[2][3 - k] = (float)level[k];
        v[1][k] = v[3][3 - k] = (float)(level[k] + GG_IQ2K_SHIFT);
    }
    sort_elements(&p, x, w);
    for (i[0] = 0; i[0] < 16; i[0]++)
        for (i[1] = i[0]; i[1] < 16; i[1]++)
            for (i[2] = i[1]; i[2] < 16; i[2]++)
                for (int k = 0; k < 4; k++) {
                    struct gg_kern_fork_sums s = run_sums(&p, i, v[k]);
                    if (gg_kern_fork_try(&f, s.qx, s.q2))
                        f.shifted = k & 1;
                }
    return f;
}

static int pick_level(const float v[4], float x)
{
    int a = x < v[1] ? 0 : x > v[2] ? 2 : 1;
    return x - v[a] < v[a + 1] - x ? a : a + 1;
}

/* Scales of 16 sub-blocks, then the sums of their weights, as bytes. */
struct scales {
    uint8_t scale[64], weight[64];
};

/* Codes of 256 elements. Returns the block's scale. */
static float code_iq2_k(struct gg_block_iq2_k *y, const struct scales *found,
                        float d, unsigned extra, const float *x,
                        const float *w)
{
    struct gg_kern_fork_sums sum = { 0, 0 };
    uint8_t q[256] = { 0 };
    float id = 1 / d;
    for (int s = 0; s < 16; s++) {
        float scale = gg_kern_fork_load(found->scale + 4 * s), v[4];
        int l = gg_kern_clamp(gg_kern_nearest(id * scale), -8, 7);
        float dl = d * (float)l;
        gg_kern_fork_put_nibble(y->scales, s, l + 8);
        if (dl == 0)
            continue;
        for (int k = 0; k < 4; k++)
            v[k] = (float)(level[k] + (extra >> s & 1 ? GG_IQ2K_SHIFT : 0));
        float idl = 1 / dl;
        for (int j = 16 * s; j < 16 * s + 16; j++) {
            q[j] = (uint8_t)pick_level(v, idl * x[j]);
            gg_kern_fork_add(&sum, w[j], v[q[j]] * (float)l, x[j]);
        }
    }
    gg_kern_pack_pairs(y->qs, q);
    return 1.030f * (sum.q2 > 0 ? sum.qx / sum.q2 : d);
}

static void block_iq2_k(struct gg_block_iq2_k *y, const float *x,
                        const float *importance)
{
    struct scales found;
    float w[256];
    unsigned extra = 0;
    memset(y, 0, sizeof *y);
    gg_kern_fork_weights(w, x, importance, &rule_k);
    for (int s = 0; s < 16; s++) {
        float sum = 0;
        for (int j = 16 * s; j < 16 * s + 16; j++)
            sum += w[j];
        struct gg_kern_fork_fit f = fit_runs(x + 16 * s, w + 16 * s);
        gg_kern_fork_store(found.scale + 4 * s, f.d);
        gg_kern_fork_store(found.weight + 4 * s, sum);
        extra |= (unsigned)f.shifted << s;
    }
    struct gg_kern_fork_list list = { found.scale, 16, 16, 0, 64 };
    struct gg_kern_fork_scale all = gg_kern_fork_scale(&list, 8);
    if (all.d == 0)
        return;
    gg_bytes_store16le(&y->extra, (uint16_t)extra);
    gg_kern_put_half(&y->d, code_iq2_k(y, &found, all.d, extra, x, w));
}

void gg_kern_encode_iq2_k_c(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    for (size_t i = 0; i < n_rows * row_len / 256; i++, src += 256) {
        struct gg_block_iq2_k y;
        block_iq2_k(&y, src, weight ? weight + i * 256 % row_len : NULL);
        GG_PUT_BLOCK(y, dst, i);
    }
}

/* ------------------------------------------------------------ IQ2_KS --- */

/* A row's block until its scales are rounded: 8 scales, 8 sums of weights and
 * a byte of shifts. */
enum { KS_WEIGHTS = 32, KS_SHIFTED = 64 };

/* Sums of eight lanes; element j is in lane j % 8. */
struct lanes {
    float qx[8], q2[8];
};

static void add_lane(struct lanes *s, int j, float w, float q, float x)
{
    float wq = w * q;
    s->qx[j % 8] = gg_os_fmaf(wq, x, s->qx[j % 8]);
    s->q2[j % 8] = gg_os_fmaf(wq, q, s->q2[j % 8]);
}

/* The first of four levels, times dd, that is nearest to x. */
static int nearest_of(const float value[4], float x)
{
    int best = 0;
    float least = 0;
    for (int k = 0; k < 4; k++) {
        float e = (x - value[k]) * (x - value[k]);
        if (k == 0 || e < least) {
            best = k;
            least = e;
        }
    }
    return best;
}

/* The better of scales about dd and -dd; best 0: none. */
static struct gg_kern_fork_fit fit_scale(const float v[4], float dd,
                                         const float *x, const float *w)
{
    struct gg_kern_fork_fit f = { 0, 0, false };
    struct lanes p = { { 0 }, { 0 } }, m = p;
    float value[4], negative[4];
    bool any = false;
    for (int k = 0; k < 4; k++) {
        value[k] = dd * v[k];
        negative[k] = -value[k];
    }
    for (int j = 0; j < 32; j++) {
        add_lane(&p, j, w[j], v[nearest_of(value, x[j])], x[j]);
        add_lane(&m, j, w[j], v[nearest_of(negative, x[j])], x[j]);
    }
    float qx = gg_kern_fork_hsum(p.qx), q2 = gg_kern_fork_hsum(p.q2);
    if (q2 > 0) {
        f.d = qx / q2;
        f.best = qx * f.d;
        any = true;
    }
    qx = gg_kern_fork_hsum(m.qx), q2 = gg_kern_fork_hsum(m.q2);
    if (q2 > 0 && (!any || qx * qx > f.best * q2)) {
        f.d = qx / q2;
        f.best = qx * f.d;
    }
    return f;
}

static struct gg_kern_fork_fit find_scale(const float v[2][4], const float *x,
                                          const float *w)
{
    struct gg_kern_fork_fit f = { 0, 0, false };
    float max = gg_kern_max_abs_signed(x, 32);
    if (fabsf(max) < 1e-14f)
        return f;
    f = fit_scale(v[0], max / v[1][3], x, w);
    for (int half = 0; half < 2; half++)
        for (int t = -13; t <= 13; t++) {
            float dd = max / (v[half][0] + 0.5f * (float)t);
            struct gg_kern_fork_fit g = fit_scale(v[half], dd, x, w);
            if (g.best > f.best) {
                f = g;
                f.shifted = half;
            }
        }
    return f;
}

/* Squared error of the scale dl; q receives the codes. */
static float error_of(uint8_t q[32], const float v[4], float dl,
                      const float *x, const float *w)
{
    float value[4], lane[8] = { 0 };
    for (int k = 0; k < 4; k++)
        value[k] = dl * v[k];
    for (int j = 0; j < 32; j++) {
        q[j] = (uint8_t)nearest_of(value, x[j]);
        float diff = gg_os_fmaf(-dl, v[q[j]], x[j]);
        lane[j % 8] = gg_os_fmaf(w[j] * diff, diff, lane[j % 8]);
    }
    return gg_kern_fork_hsum(lane);
}

/* Codes of 32 elements and the better of two integer scales: l, and the next
 * one in the direction of `scale'. */
static int code_iq2_ks(uint8_t q[32], const float v[4], float d, int l,
                       float scale, const float *x, const float *w)
{
    float dl = d * (float)l;
    float error = error_of(q, v, dl, x, w);
    int next = l > -16 && dl > scale  ? l - 1
               : l < -1 && dl < scale ? l + 1
                                      : l;
    uint8_t q2[32];
    if (next == l || !(error_of(q2, v, d * (float)next, x, w) < error))
        return l;
    memcpy(q, q2, sizeof q2);
    return next;
}

/* Find the scales of a row and keep them in its blocks. */
static void find_row(uint8_t *p, const float v[2][4], const float *x, size_t n,
                     const float *weight)
{
    float w[256];
    for (size_t i = 0; i < n; i += 256) {
        unsigned shifted = 0;
        gg_kern_fork_weights(w, x + i, weight ? weight + i : NULL, &rule_ks);
        for (int s = 0; s < 8; s++) {
            float sum = 0;
            for (int j = 32 * s; j < 32 * s + 32; j++)
                sum += w[j];
            struct gg_kern_fork_fit f =
                find_scale(v, x + i + 32 * s, w + 32 * s);
            gg_kern_fork_store(p + 4 * s, f.d);
            gg_kern_fork_store(p + KS_WEIGHTS + 4 * s, sum);
            shifted |= (unsigned)f.shifted << s;
        }
        p[KS_SHIFTED] = (uint8_t)shifted;
        p += sizeof(struct gg_block_iq2_ks);
    }
}

static void block_iq2_ks(struct gg_block_iq2_ks *y, struct lanes *sum,
                         const uint8_t *found, const float v[2][4],
                         const struct gg_kern_fork_scale *all, const float *x,
                         const float *w)
{
    uint8_t q[256];
    unsigned extra = found[KS_SHIFTED];
    memset(y, 0, sizeof *y);
    for (int s = 0; s < 8; s++) {
        const float *level_of = v[extra >> s & 1];
        float scale = gg_kern_fork_load(found + 4 * s);
        int l = gg_kern_fork_code(all, 16, scale);
        l = code_iq2_ks(q + 32 * s, level_of, all->d, l, scale, x + 32 * s,
                        w + 32 * s);
        gg_kern_fork_put_nibble(y->scales, s, (l + 16) & 15);
        extra |= (unsigned)(l >= 0) << (8 + s);
        for (int j = 32 * s; j < 32 * s + 32; j++)
            add_lane(sum, j, w[j], level_of[q[j]] * (float)l, x[j]);
    }
    gg_bytes_store16le(&y->extra, (uint16_t)extra);
    gg_kern_pack_pairs(y->qs, q);
}

static void row_iq2_ks(uint8_t *dst, const float v[2][4], const float *x,
                       size_t n, const float *weight)
{
    const size_t size = sizeof(struct gg_block_iq2_ks);
    struct gg_kern_fork_list list = { dst + 2, n / 32, 8, size, KS_WEIGHTS };
    struct lanes sum = { { 0 }, { 0 } };
    uint8_t *p = dst + 2;
    float w[256];
    find_row(p, v, x, n, weight);
    struct gg_kern_fork_scale all = gg_kern_fork_scale(&list, 16);
    if (all.d == 0) {
        memset(dst, 0, 2 + n / 256 * size);
        return;
    }
    for (size_t i = 0; i < n; i += 256, p += size) {
        struct gg_block_iq2_ks y;
        gg_kern_fork_weights(w, x + i, weight ? weight + i : NULL, &rule_ks);
        block_iq2_ks(&y, &sum, p, v, &all, x + i, w);
        memcpy(p, &y, size);
    }
    float qx = gg_kern_fork_hsum(sum.qx), q2 = gg_kern_fork_hsum(sum.q2);
    gg_kern_put_half(dst, q2 > 0 ? qx / q2 : all.d);
}

void gg_kern_encode_iq2_ks_c(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    float v[2][4];
    size_t size = 2 + row_len / 256 * sizeof(struct gg_block_iq2_ks);
    for (int k = 0; k < 4; k++) {
        v[0][k] = (float)level[k];
        v[1][k] = (float)(level[k] + GG_IQ2K_SHIFT);
    }
    for (size_t r = 0; r < n_rows; r++)
        row_iq2_ks((uint8_t *)dst + r * size, (const float(*)[4])v,
                   src + r * row_len, row_len, weight);
}
