/* SPDX-License-Identifier: MIT */
/* kld_stats.c - statistics of scored tokens; gguf/kld.h has the formulas */
#include "config.h"
#include "eval/kld_int.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/params.h"

#include <math.h>
#include <stdlib.h>

static const double quantiles[GGUF_KLD_N_QUANTILES] = {
    0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1
};

double gguf_kld_quantile(unsigned i)
{
    return i < GGUF_KLD_N_QUANTILES ? quantiles[i] : (double)NAN;
}

/* ---- means ---- */

/* Square root; 0 for a variance that rounding made negative. */
static double root_of(double v)
{
    return v > 0 ? sqrt(v) : v <= 0 ? 0 : v;
}

/* Mean and standard error, from the sums of n values and of their squares. */
static struct gguf_figure mean_of(double n, double sum, double squares)
{
    const double m = sum / n;
    if (n < 2)
        return (struct gguf_figure){ m, NAN };
    return (struct gguf_figure){ m, root_of((squares / n - m * m) / (n - 1)) };
}

/* exp of a mean, with its error. */
static struct gguf_figure exp_of(struct gguf_figure m)
{
    const double v = exp(m.value);
    return (struct gguf_figure){ v, v * m.error };
}

static void set_means(const struct gg_kld_sums *s, struct gguf_kld_stats *out)
{
    const double n = (double)s->n;
    const struct gguf_figure x = mean_of(n, s->x, s->xx);
    const struct gguf_figure b = mean_of(n, s->b, s->bb);
    const double cov = (s->xb / n - x.value * b.value) / (n - 1);
    out->n = s->n;
    out->ppl = exp_of(x);
    out->ppl_base = exp_of(b);
    out->ln_ratio = mean_of(n, s->d, s->dd);
    out->ratio = exp_of(out->ln_ratio);
    const double r = cov / (x.error * b.error);
    out->correlation.value = r > 1 ? 1 : r;
    out->correlation.error =
        (1 - out->correlation.value * out->correlation.value) / sqrt(n - 1);
    const double p = out->ppl.value, pb = out->ppl_base.value;
    out->difference.value = p - pb;
    out->difference.error =
        root_of(out->ppl.error * out->ppl.error +
                out->ppl_base.error * out->ppl_base.error - 2 * p * pb * cov);
    out->kld = mean_of(n, s->kld, s->kld2);
    out->dp = mean_of(n, s->dp, s->dp2);
    const struct gguf_figure square = mean_of(n, s->dp2, s->dp4);
    out->dp_rms.value = sqrt(square.value);
    out->dp_rms.error =
        square.value > 0 ? square.error / (2 * out->dp_rms.value) : 0;
    out->same_top.value = (double)s->same / n;
    out->same_top.error =
        sqrt(out->same_top.value * (1 - out->same_top.value) / (n - 1));
}

static void clear_quantiles(struct gguf_figure *at)
{
    for (int i = 0; i < GGUF_KLD_N_QUANTILES; i++)
        at[i] = (struct gguf_figure){ NAN, NAN };
}

/* Statistics without tokens: all NaN. */
static void clear_stats(struct gguf_kld_stats *s)
{
    const struct gguf_figure none = { NAN, NAN };
    s->ppl = s->ppl_base = s->correlation = s->ln_ratio = s->ratio = none;
    s->difference = s->kld = s->dp = s->dp_rms = s->same_top = none;
}

static void set_all_means(const struct gguf_kld *k, struct gguf_kld_stats *own)
{
    if (k->sums.n)
        set_means(&k->sums, own);
    else
        clear_stats(own);
    clear_quantiles(own->kld_at);
    clear_quantiles(own->dp_at);
}

enum gguf_status gguf_kld_means(const struct gguf_kld *kld,
                                struct gguf_kld_stats *stats,
                                struct gguf_error *err)
{
    struct gguf_kld_stats own = GGUF_KLD_STATS_INIT;
    set_all_means(kld, &own);
    return gg_params_give(stats, &own, sizeof own, "gguf_kld_stats", err);
}

/* ---- quantiles ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Interpolate between n sorted values; at is from 0 to n - 1. */
static double quantile_at(const double *v, size_t n, double at)
{
    at = at < 0 ? 0 : at > (double)(n - 1) ? (double)(n - 1) : at;
    const size_t i = (size_t)at;
    if (i + 1 >= n)
        return v[n - 1];
    const double part = at - (double)i;
    return (1 - part) * v[i] + part * v[i + 1];
}

static void compute_quantiles(double *v, size_t n, struct gguf_figure *out)
{
    qsort(v, n, sizeof *v, by_value);
    for (int i = 0; i < GGUF_KLD_N_QUANTILES; i++) {
        const double f = quantiles[i], at = f * (double)(n - 1);
        const double wide = sqrt((double)n * f * (1 - f));
        out[i].value = quantile_at(v, n, at);
        out[i].error = f > 0 && f < 1 ? (quantile_at(v, n, at + wide) -
                                         quantile_at(v, n, at - wide)) /
                                            2
                                      : (double)NAN;
    }
}

enum gguf_status gguf_kld_stats(const struct gguf_kld *kld,
                                struct gguf_kld_stats *stats,
                                struct gguf_error *err)
{
    struct gguf_kld_stats own = GGUF_KLD_STATS_INIT;
    const size_t n = kld->n_summed;
    set_all_means(kld, &own);
    if (n) {
        double *v = gg_mem_alloc_zero(kld->p.allocator, n, sizeof *v);
        if (!v)
            return gg_error_set_nomem(err, n * sizeof *v);
        for (size_t i = 0; i < n; i++)
            v[i] = kld->token[i].kld;
        compute_quantiles(v, n, own.kld_at);
        for (size_t i = 0; i < n; i++)
            v[i] = gg_kld_dp(&kld->token[i]);
        compute_quantiles(v, n, own.dp_at);
        gg_mem_free(kld->p.allocator, v);
    }
    return gg_params_give(stats, &own, sizeof own, "gguf_kld_stats", err);
}
