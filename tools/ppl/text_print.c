/* SPDX-License-Identifier: MIT */
/* text_print.c - figures of each of several texts, and the macro figure */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- the mean of texts ---- */

/* Compute the mean, over texts with equal weight, of their mean x, and its
 * standard error. Returns the number of evaluated texts. */
static size_t compute_macro_mean(const struct ppl_run *r, double *mean,
                                 double *error)
{
    double sum = 0, sum_sq = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->e.n_texts; i++) {
        const struct gguf_ppl *p = &r->e.texts[i].sums;
        if (!p->n)
            continue;
        const double x = p->sum / (double)p->n;
        sum += x;
        sum_sq += x * x;
        n++;
    }
    *mean = n ? sum / (double)n : (double)NAN;
    *error = NAN;
    if (n > 1) {
        const double var = sum_sq / (double)n - *mean * *mean;
        *error = var > 0 ? sqrt(var / (double)(n - 1)) : 0;
    }
    return n;
}

/* ---- text ---- */

void ppl_print_text_figures(const struct ppl_run *r)
{
    static const char *const heads[] = { "text", "tokens", "PPL", "+/-",
                                         "bits per byte" };
    struct table t;
    double mean, error;
    if (!r->e.several)
        return;
    table_init(&t, "lrrrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < r->e.n_texts; i++) {
        const struct gguf_ppl *p = &r->e.texts[i].sums;
        if (!p->n)
            continue;
        table_add_strz(&t, r->e.texts[i].name);
        table_addf(&t, "%" PRIu64, p->n);
        table_addf(&t, "%.4f", gguf_ppl_value(p));
        table_addf(&t, "%.5f", gguf_ppl_error(p));
        table_addf(&t, "%.5f", gguf_ppl_bits_per_unit(p, GGUF_PPL_BYTE, NULL));
    }
    wrap_printf("\n");
    table_show(&t, "13/4");
    wrap_printf("\n");
    const size_t n = compute_macro_mean(r, &mean, &error);
    wrap_printf("macro   PPL = %.4f +/- %.5f, of the mean of %zu texts\n",
                exp(mean), exp(mean) * error, n);
}

/* ---- JSON ---- */

static void json_text(struct json *j, const struct ev_text *t)
{
    const struct gguf_ppl *p = &t->sums;
    json_strz(j, "file", t->name);
    json_u64(j, "size", t->size);
    ev_json_digest(j, "digest", t->has_digest ? &t->digest : NULL);
    json_u64(j, "tokens", t->n_tokens);
    json_u64(j, "first_chunk", t->first_chunk);
    json_u64(j, "chunks", t->n_chunks);
    json_u64(j, "tokens_scored", p->n);
}

static void json_macro(struct json *j, const struct ppl_run *r)
{
    double mean, error;
    const size_t n = compute_macro_mean(r, &mean, &error);
    json_open(j, "macro", '{');
    json_u64(j, "texts", n);
    json_f64(j, "nll", mean);
    json_f64(j, "nll_error", error);
    json_f64(j, "ppl", exp(mean));
    json_f64(j, "ppl_error", exp(mean) * error);
    json_close(j);
}

void ppl_json_texts(struct json *j, const struct ppl_run *r)
{
    if (!r->e.several) {
        ppl_json_text(j, r);
        return;
    }
    json_open(j, "texts", '[');
    for (size_t i = 0; i < r->e.n_texts; i++) {
        const struct gguf_ppl *p = &r->e.texts[i].sums;
        json_open(j, NULL, '{');
        json_text(j, &r->e.texts[i]);
        json_f64(j, "nll", p->sum / (double)p->n);
        json_f64(j, "ppl", gguf_ppl_value(p));
        json_f64(j, "ppl_error", gguf_ppl_error(p));
        ppl_json_units(j, p);
        json_close(j);
    }
    json_close(j);
    json_u64(j, "skipped", r->e.n_skipped);
    json_macro(j, r);
}

/* ---- with a base ---- */

/* Compute the figures of n tokens of a model, from first on. */
static bool compute_means(const struct gguf_kld *kld, size_t first, size_t n,
                          struct gguf_kld_stats *out)
{
    size_t all;
    struct gguf_kld *one;
    struct gguf_error err;
    const struct gguf_kld_token *t = gguf_kld_tokens(kld, &all);
    *out = (struct gguf_kld_stats)GGUF_KLD_STATS_INIT;
    if (gguf_kld_create(&one, NULL, &err) == GGUF_OK &&
        gguf_kld_add(one, t + first, n, &err) == GGUF_OK &&
        gguf_kld_means(one, out, &err) == GGUF_OK) {
        gguf_kld_destroy(one);
        return true;
    }
    gguf_kld_destroy(one);
    return msg_fail(NULL, &err);
}

void ppl_json_side_texts(struct json *j, const struct ppl_side *s)
{
    const struct ppl_run *r = s->run;
    size_t first = 0;
    if (!r->e.several) {
        ppl_json_text(j, r);
        return;
    }
    json_open(j, "texts", '[');
    for (size_t i = 0; i < r->e.n_texts; i++) {
        const struct ev_text *t = &r->e.texts[i];
        const size_t n = (size_t)t->sums.n;
        struct gguf_kld_stats k;
        json_open(j, NULL, '{');
        json_text(j, t);
        json_u64(j, "bytes_scored", t->sums.n_bytes);
        json_u64(j, "words_scored", t->sums.n_words);
        json_open(j, "models", '[');
        for (size_t m = 0; m < s->n && compute_means(s->kld[m], first, n, &k);
             m++) {
            json_open(j, NULL, '{');
            ppl_json_figure(j, "ppl", k.ppl);
            ppl_json_figure(j, "ppl_base", k.ppl_base);
            ppl_json_figure(j, "ln_ratio", k.ln_ratio);
            ppl_json_figure(j, "kld", k.kld);
            ppl_json_figure(j, "same_top", k.same_top);
            json_close(j);
        }
        json_close(j);
        json_close(j);
        first += n;
    }
    json_close(j);
    json_u64(j, "skipped", r->e.n_skipped);
}

void ppl_print_side_texts(const struct ppl_side *s)
{
    static const char *const heads[] = {
        "text", "model", "tokens", "PPL", "ln(PPL(Q)/PPL(base))", "KLD"
    };
    const struct ppl_run *r = s->run;
    struct table t;
    size_t first = 0;
    if (!r->e.several)
        return;
    table_init(&t, "llrrrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < r->e.n_texts; i++) {
        const size_t n = (size_t)r->e.texts[i].sums.n;
        struct gguf_kld_stats k;
        for (size_t m = 0;
             n && m < s->n && compute_means(s->kld[m], first, n, &k); m++) {
            table_add_strz(&t, r->e.texts[i].name);
            table_add_strz(&t, s->model[m]->path);
            table_addf(&t, "%zu", n);
            table_addf(&t, "%.4f", k.ppl.value);
            table_addf(&t, "%.5f", k.ln_ratio.value);
            table_addf(&t, "%.6f", k.kld.value);
        }
        first += n;
    }
    wrap_printf("\n");
    table_show(&t, "42/31");
}
