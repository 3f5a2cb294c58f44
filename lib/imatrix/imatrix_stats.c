/* SPDX-License-Identifier: MIT */
/* imatrix_stats.c - statistics of importance data */
#include "config.h"
#include "base/params.h"
#include "imatrix/imatrix_int.h"
#include "base/bytes.h"
#include "base/str.h"

#include <math.h>

static float load_float(const uint8_t *floats, uint64_t i)
{
    return gg_bytes_f32_from_bits(gg_bytes_load32le(floats + 4 * i));
}

static double count_of(const struct gg_imatrix_entry *e, uint64_t mat)
{
    return e->counts ? (double)load_float(e->counts, mat) : (double)e->n_calls;
}

/* Mean square of the input of value i; NaN if it is unknown or not finite. */
static double mean_square(const struct gg_imatrix_entry *e, uint64_t i)
{
    double count = count_of(e, i / e->n_cols);
    double v = (double)load_float(e->sums, i);
    v /= count;
    return count > 0 && isfinite(v) && v >= 0 ? v : (double)NAN;
}

static void sum_up(const struct gg_imatrix_entry *e,
                   struct gguf_imatrix_stats *s)
{
    double squares = 0; /* sum of squared distances from the mean: the
                         * difference of two large sums would lose nearly equal
                         * values */
    uint64_t n_active = 0;
    for (uint64_t i = 0; i < e->n_values; i++) {
        double v = mean_square(e, i);
        if (isnan(v))
            continue;
        s->min = s->n && s->min < v ? s->min : v;
        s->max = s->n && s->max > v ? s->max : v;
        s->sum += v;
        n_active += v > 1e-5;
        s->n++;
    }
    if (!s->n)
        return;
    s->mean = s->sum / (double)s->n;
    for (uint64_t i = 0; i < e->n_values; i++) {
        const double off = mean_square(e, i) - s->mean;
        squares += isnan(off) ? 0 : off * off;
    }
    s->stddev = sqrt(squares / (double)s->n);
    s->active = (double)n_active / (double)s->n;
}

enum gguf_status gguf_imatrix_stats(const struct gguf_imatrix *im, size_t i,
                                    struct gguf_imatrix_stats *out,
                                    struct gguf_error *err)
{
    struct gguf_imatrix_stats s = GGUF_IMATRIX_STATS_INIT;
    GG_TRY(gg_params_give(out, &s, sizeof s, "gguf_imatrix_stats", err));
    if (i >= im->n_entries)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "importance data: entry out of range");
    const struct gg_imatrix_entry *e = im->entries[i];
    uint64_t n_mats = e->n_mats ? e->n_mats : 1, n_high = 0;
    for (uint64_t m = 0; m < n_mats; m++) {
        double count = count_of(e, m);
        s.min_count = m && s.min_count < count ? s.min_count : count;
        s.max_count = m && s.max_count > count ? s.max_count : count;
        s.n_empty += !(count > 0);
    }
    sum_up(e, &s);
    for (uint64_t k = 0; k < e->n_values; k++) {
        double v = mean_square(e, k);
        if (isnan(v)) {
            s.n_bad += count_of(e, k / e->n_cols) > 0;
            continue;
        }
        double p = s.sum > 0 ? v / s.sum : 0;
        s.entropy -= p > 0 ? p * log2(p) : 0;
        n_high += s.stddev > 0 && (v - s.mean) / s.stddev > 1;
    }
    s.high = s.n ? (double)n_high / (double)s.n : 0;
    return gg_params_give(out, &s, sizeof s, "gguf_imatrix_stats", err);
}

enum gguf_status gguf_imatrix_cosine(const struct gguf_imatrix *im, size_t i,
                                     size_t k, double *out,
                                     struct gguf_error *err)
{
    if (i >= im->n_entries || k >= im->n_entries)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "importance data: entry out of range");
    const struct gg_imatrix_entry *a = im->entries[i], *b = im->entries[k];
    if (a->n_values != b->n_values || a->n_cols != b->n_cols)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "importance data: the entries have different "
                            "shapes");
    double ab = 0, aa = 0, bb = 0;
    for (uint64_t at = 0; at < a->n_values; at++) {
        double x = mean_square(a, at), y = mean_square(b, at);
        if (isnan(x) || isnan(y))
            continue;
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    *out = aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
    return GGUF_OK;
}
