/* SPDX-License-Identifier: MIT */
/* side_by_side_print.c - the output of a comparison, as text and JSON
 *
 * One model has a line for each chunk and all figures, in the words and digits
 * of llama.cpp's perplexity tool. Several models have a table with a row for
 * each.
 */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "tools/common/style.h"
#include "tools/common/table.h"
#include "tools/common/wrap.h"
#include "base/os/os_program.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PM    "\302\261" /* plus or minus */
#define DELTA "\316\224" /* Greek capital delta */

/* Factor of the file's error, which is that of all its chunks, for the
 * evaluated chunks. */
static double compute_error_factor(const struct ppl_side *s)
{
    return sqrt((double)gguf_baseline_n_chunks(s->saved) /
                (double)(s->run->e.n_chunks ? s->run->e.n_chunks : 1));
}

/* Columns of a chunk's line, in this order. A narrow terminal shows those of
 * the lowest ranks. */
enum { CHUNK = 5 }; /* terminal columns of the chunk number */
static const struct chunk_column {
    const char *head;
    int width, digits, after; /* widths and decimals of a figure and its error,
                               * after one blank */
    double factor;
    const char *unit;
    size_t at; /* offset of the figure in struct gguf_kld_stats */
    int rank;
} chunk_columns[] = {
#define KLD(member) offsetof(struct gguf_kld_stats, member)
    { "PPL", 10, 4, 9, 1, "", KLD(ppl), 1 },
    { "ln(PPL(Q)/PPL(base))", 11, 5, 10, 1, "", KLD(ln_ratio), 2 },
    { "KL Divergence", 11, 5, 10, 1, "", KLD(kld), 0 },
    { DELTA "p RMS", 7, 3, 6, 100, " %", KLD(dp_rms), 4 },
    { "Same top p", 9, 3, 6, 100, " %", KLD(same_top), 3 },
#undef KLD
};
enum { N_CHUNK_COLUMNS = sizeof chunk_columns / sizeof *chunk_columns };

static int column_width(const struct chunk_column *c)
{
    return 1 + c->width + 3 + c->after + (int)strlen(c->unit);
}

/* Choose the columns to show: a bit for each. */
static unsigned choose_columns(void)
{
    unsigned shown = 0;
    int room = style_on_terminal() ? style_columns(GG_OS_STDOUT) : INT_MAX;
    room -= CHUNK;
    for (int rank = 0; rank < N_CHUNK_COLUMNS; rank++)
        for (int i = 0; i < N_CHUNK_COLUMNS; i++) {
            if (chunk_columns[i].rank != rank)
                continue;
            room -= column_width(&chunk_columns[i]);
            shown |= (unsigned)(room >= 0) << i;
        }
    return shown;
}

void ppl_print_side_columns(void)
{
    const unsigned shown = choose_columns();
    wrap_printf("\nchunk");
    for (int i = 0; i < N_CHUNK_COLUMNS; i++) {
        const struct chunk_column *c = &chunk_columns[i];
        const int pad = column_width(c) - table_width(c->head);
        if (shown >> i & 1)
            wrap_printf("%*s%s%*s", pad - pad / 2, "", c->head,
                        shown >> i > 1 ? pad / 2 : 0, "");
    }
    wrap_printf("\n");
}

/* Print the file of logits, and the error that its form adds to divergences. */
static void print_saved(const struct ppl_side *s)
{
    char name[256];
    const double error = gguf_baseline_kld_error(s->saved);
    wrap_printf("base    %s: logits of %zu chunk%s",
                ev_escape(name, s->run->o->base),
                gguf_baseline_n_chunks(s->saved),
                text_s(gguf_baseline_n_chunks(s->saved)));
    if (error > 0)
        wrap_printf(", compact: mean KLD of a model near it within " PM
                    " %.3f%%",
                    100 * error * compute_error_factor(s));
    wrap_printf("\n");
}

void ppl_print_side_head(const struct ppl_side *s)
{
    if (s->base)
        ev_print_model("base", &s->run->o->ev, s->base);
    else
        print_saved(s);
    for (size_t i = 0; i < s->n; i++)
        ev_print_model("model", &s->run->o->ev, s->model[i]);
    ev_print_text(&s->run->e);
    ev_print_mode(&s->run->e);
    if (s->n == 1)
        ppl_print_side_columns();
    msg_flush();
}

void ppl_print_side_chunk(const struct ppl_side *s, size_t chunk)
{
    struct gguf_kld_stats k = GGUF_KLD_STATS_INIT;
    if (s->n > 1 || gguf_kld_means(s->kld[0], &k, NULL) != GGUF_OK)
        return;
    const unsigned shown = choose_columns();
    wrap_printf("%4zu ", chunk + 1);
    for (int i = 0; i < N_CHUNK_COLUMNS; i++) {
        const struct chunk_column *c = &chunk_columns[i];
        struct gguf_figure f;
        memcpy(&f, (const char *)&k + c->at, sizeof f);
        if (shown >> i & 1)
            wrap_printf(" %*.*lf " PM " %*.*lf%s", c->width, c->digits,
                        c->factor * f.value, c->after, c->digits,
                        c->factor * f.error, c->unit);
    }
    wrap_printf("\n");
    msg_flush();
}

/* ---- one model ---- */

static void print_figure(const char *name, struct gguf_figure f)
{
    wrap_printf("%-30s: %10.6lf " PM " %10.6lf\n", name, f.value, f.error);
}

/* Names of the quantiles of gguf_kld_quantile(). */
static const char *const quantile_names[GGUF_KLD_N_QUANTILES] = {
    "Minimum", " 0.1%  ", " 1.0%  ", " 5.0%  ", "10.0%  ",
    "25.0%  ", "Median ", "75.0%  ", "90.0%  ", "95.0%  ",
    "99.0%  ", "99.9%  ", "Maximum"
};

static void print_quantiles(const char *what, const struct gguf_figure *at,
                            double factor, int digits, const char *unit)
{
    for (int i = GGUF_KLD_N_QUANTILES - 1; i >= 0; i--) {
        wrap_printf("%s %s: %*.*lf", quantile_names[i], what, digits + 4,
                    digits, factor * at[i].value);
        if (isnan(at[i].error))
            wrap_printf("%s\n", unit);
        else
            wrap_printf(" " PM " %*.*lf%s\n", digits + 4, digits,
                        factor * at[i].error, unit);
    }
}

static void print_statistics(const struct gguf_kld_stats *k)
{
    wrap_printf("\n====== Perplexity statistics ======\n");
    print_figure("Mean PPL(Q)", k->ppl);
    print_figure("Mean PPL(base)", k->ppl_base);
    wrap_printf("%-30s: %6.2lf%% " PM " %.4lf%%\n",
                "Cor(ln(PPL(Q)), ln(PPL(base)))", 100 * k->correlation.value,
                100 * k->correlation.error);
    print_figure("Mean ln(PPL(Q)/PPL(base))", k->ln_ratio);
    print_figure("Mean PPL(Q)/PPL(base)", k->ratio);
    print_figure("Mean PPL(Q)-PPL(base)", k->difference);
    wrap_printf("\n====== KL divergence statistics ======\n");
    wrap_printf("Mean    KLD: %10.6lf " PM " %10.6lf\n", k->kld.value,
                k->kld.error);
    print_quantiles("KLD", k->kld_at, 1, 6, "");
    wrap_printf("\n====== Token probability statistics ======\n");
    wrap_printf("Mean    " DELTA "p: %6.3lf " PM " %5.3lf %%\n",
                100 * k->dp.value, 100 * k->dp.error);
    print_quantiles(DELTA "p", k->dp_at, 100, 3, "%");
    wrap_printf("RMS " DELTA "p    : %6.3lf " PM " %5.3lf %%\n",
                100 * k->dp_rms.value, 100 * k->dp_rms.error);
    wrap_printf("Same top p: %6.3lf " PM " %5.3lf %%\n",
                100 * k->same_top.value, 100 * k->same_top.error);
}

/* ---- several models ---- */

static void add_figure(struct table *t, struct gguf_figure f, double factor,
                       int digits)
{
    table_addf(t, "%.*f " PM " %.*f", digits, factor * f.value, digits,
               factor * f.error);
}

enum { COLUMNS = 8, P99 = 10 }; /* P99: index of the quantile 99% */

static void print_table(const struct ppl_side *s,
                        const struct gguf_kld_stats *stats)
{
    static const char *const heads[COLUMNS] = { "model",
                                                "size",
                                                "PPL",
                                                "ln(PPL/base)",
                                                "KLD",
                                                "99%",
                                                ("RMS " DELTA "p %"),
                                                "same top %" };
    struct table t;
    char size[24];
    table_init(&t, "lrrrrrrr", 0);
    table_add_row(&t, heads);
    table_add_strz(&t, text_base_name(s->run->o->base));
    table_add(&t, s->base && s->base->info.weight_size
                      ? table_size(size, s->base->info.weight_size)
                      : "");
    add_figure(&t, stats[0].ppl_base, 1, 4);
    for (int i = 3; i < COLUMNS; i++)
        table_add(&t, i == 3 ? "base" : "");
    for (size_t i = 0; i < s->n; i++) {
        const struct gguf_kld_stats *k = &stats[i];
        table_add_strz(&t, text_base_name(s->model[i]->path));
        table_add(&t, table_size(size, s->model[i]->info.weight_size));
        add_figure(&t, k->ppl, 1, 4);
        add_figure(&t, k->ln_ratio, 1, 5);
        add_figure(&t, k->kld, 1, 6);
        table_addf(&t, "%.6f", k->kld_at[P99].value);
        add_figure(&t, k->dp_rms, 100, 3);
        add_figure(&t, k->same_top, 100, 3);
    }
    wrap_printf("\n");
    table_show(&t, "65/7312");
}

/* Print the divergence that each file predicts, and the measured one as a
 * multiple. */
static void print_predictions(const struct ppl_side *s,
                              const struct gguf_kld_stats *stats)
{
    double kld;
    for (size_t i = 0; i < s->n; i++)
        if (ppl_find_prediction(s->model[i], &kld))
            wrap_printf("%sPredicted KLD: %10.6lf, measured %.2lf times that: "
                        "%s\n",
                        s->n == 1 ? "\n" : "", kld, stats[i].kld.value / kld,
                        text_base_name(s->model[i]->path));
}

void ppl_print_side_end(const struct ppl_side *s,
                        const struct gguf_kld_stats *stats)
{
    const struct ppl_run *r = s->run;
    const double n =
        (double)r->n_done_tokens * (double)(s->n + (s->base != NULL));
    if (s->n == 1)
        print_statistics(&stats[0]);
    else
        print_table(s, stats);
    print_predictions(s, stats);
    ppl_print_side_texts(s);
    wrap_printf("\n");
    ppl_print_ranks(r);
    wrap_printf("time    %.1f s, %.0f tokens/s\n", r->e.seconds,
                r->e.seconds > 0 ? n / r->e.seconds : 0);
}

/* ---- JSON ---- */

void ppl_json_figure(struct json *j, const char *key, struct gguf_figure f)
{
    json_open(j, key, '{');
    json_f64(j, "value", f.value);
    json_f64(j, "error", f.error);
    json_close(j);
}

static void json_quantiles(struct json *j, const char *key,
                           const struct gguf_figure *at)
{
    json_open(j, key, '[');
    for (unsigned i = 0; i < GGUF_KLD_N_QUANTILES; i++) {
        json_open(j, NULL, '{');
        json_f64(j, "quantile", gguf_kld_quantile(i));
        json_f64(j, "value", at[i].value);
        json_f64(j, "error", at[i].error);
        json_close(j);
    }
    json_close(j);
}

/* Bits per byte of a perplexity of n tokens; NaN if the run scored no bytes. */
static struct gguf_figure compute_bits_per_byte(const struct ppl_run *r,
                                                uint64_t n,
                                                struct gguf_figure ppl)
{
    const double per = (double)n / ((double)r->n_bytes * log(2));
    struct gguf_figure f = { NAN, NAN };
    if (r->n_bytes) {
        f.value = log(ppl.value) * per;
        f.error = ppl.error / ppl.value * per;
    }
    return f;
}

static void json_stats(struct json *j, const struct ppl_run *r,
                       const struct gguf_kld_stats *k)
{
    ppl_json_figure(j, "ppl", k->ppl);
    ppl_json_figure(j, "bits_per_byte",
                    compute_bits_per_byte(r, k->n, k->ppl));
    ppl_json_figure(j, "correlation", k->correlation);
    ppl_json_figure(j, "ln_ratio", k->ln_ratio);
    ppl_json_figure(j, "ratio", k->ratio);
    ppl_json_figure(j, "difference", k->difference);
    ppl_json_figure(j, "kld", k->kld);
    json_quantiles(j, "kld_quantiles", k->kld_at);
    ppl_json_figure(j, "dp", k->dp);
    ppl_json_figure(j, "dp_rms", k->dp_rms);
    json_quantiles(j, "dp_quantiles", k->dp_at);
    ppl_json_figure(j, "same_top", k->same_top);
}

void ppl_json_base(struct json *j, const struct ppl_side *s)
{
    if (s->base) {
        ev_json_model(j, "base", &s->run->o->ev, s->base);
        return;
    }
    json_open(j, "base", '{');
    json_strz(j, "file", s->run->o->base);
    json_u64(j, "chunks", gguf_baseline_n_chunks(s->saved));
    json_strz(j, "form", gguf_baseline_form(s->saved));
    json_f64(j, "kld_error",
             gguf_baseline_kld_error(s->saved) * compute_error_factor(s));
    json_f64(j, "tail", gguf_baseline_tail_mass(s->saved));
    ev_json_digest(j, "digest", s->has_digest ? &s->digest : NULL);
}

void ppl_print_side_json(const struct ppl_side *s,
                         const struct gguf_kld_stats *stats, FILE *f)
{
    const struct ppl_run *r = s->run;
    const double n =
        (double)r->n_done_tokens * (double)(s->n + (s->base != NULL));
    struct json j;
    json_begin_object(&j, f);
    ppl_json_base(&j, s);
    ppl_json_figure(&j, "ppl", stats[0].ppl_base);
    ppl_json_figure(&j, "bits_per_byte",
                    compute_bits_per_byte(r, stats[0].n, stats[0].ppl_base));
    json_close(&j);
    ppl_json_side_texts(&j, s);
    ppl_json_settings(&j, r);
    json_u64(&j, "tokens_per_chunk", r->e.n_scored_chunk);
    json_u64(&j, "first_chunk", r->e.first_chunk);
    json_u64(&j, "chunks", r->n_done);
    json_u64(&j, "tokens_scored", stats[0].n);
    json_u64(&j, "bytes_scored", r->n_bytes);
    json_u64(&j, "words_scored", r->n_words);
    json_open(&j, "models", '[');
    for (size_t i = 0; i < s->n; i++) {
        double predicted;
        ev_json_model(&j, NULL, &r->o->ev, s->model[i]);
        json_stats(&j, r, &stats[i]);
        if (ppl_find_prediction(s->model[i], &predicted))
            json_f64(&j, "predicted_kld", predicted);
        json_close(&j);
    }
    json_close(&j);
    ppl_json_ranks(&j, r);
    json_f64(&j, "seconds", r->e.seconds);
    json_f64(&j, "tokens_per_second", r->e.seconds > 0 ? n / r->e.seconds : 0);
    json_end(&j);
}
