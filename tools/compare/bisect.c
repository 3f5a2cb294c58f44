/* SPDX-License-Identifier: MIT */
/* bisect.c - the gain of each weight of the base, by exchanging them */
#include "config.h"
#include "tools/compare/compare.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SUGGESTIONS = 10 };

struct bisect {
    struct compare *c;
    size_t n_done, n_all; /* number of weights or groups */
};

static const char *get_type_name(uint32_t dtype)
{
    return dtype == UINT32_MAX ? "mixed" : gguf_dtype_find(dtype)->name;
}

static int64_t count_extra_bytes(const struct gguf_bisect_entry *e)
{
    return (int64_t)e->base_size - (int64_t)e->size;
}

/* Is the model closer to the base with the base's weights? */
static bool is_gain(const struct gguf_bisect_entry *e)
{
    return e->measured && e->gain > 0;
}

static bool has_groups(const struct compare *c)
{
    return c->o->bisect != 1 + GGUF_BISECT_WEIGHT;
}

/* Print a line PATTERN=TYPE for gguf-quantize. * in name is a layer number. */
static void print_pattern(FILE *f, const char *name, uint32_t dtype)
{
    fputc('^', f);
    for (const char *p = name; *p; p++) {
        if (*p == '*')
            fputs("[0-9]+", f);
        else
            fprintf(f, *p == '.' ? "\\%c" : "%c", *p);
    }
    fprintf(f, "$=%s\n", get_type_name(dtype));
}

/* Print the lines of an entry: one for a kind with a single type in the base,
 * else one for each weight. */
static void print_patterns(const struct gguf_bisect *b, size_t i,
                           const struct compare *c)
{
    const struct gguf_bisect_entry *e = gguf_bisect_entry(b, i);
    if (c->o->bisect == 1 + GGUF_BISECT_KIND && e->base_dtype != UINT32_MAX) {
        print_pattern(stdout, e->name, e->base_dtype);
        return;
    }
    for (size_t k = 0; k < e->n_weights; k++) {
        const struct gguf_bisect_weight *w = gguf_bisect_weight(b, i, k);
        print_pattern(stdout, w->name, w->base_dtype);
    }
}

static void print_suggestions(const struct gguf_bisect *b,
                              const struct compare *c)
{
    size_t n = 0;
    for (size_t i = 0; i < gguf_bisect_n_entries(b) && n < SUGGESTIONS; i++) {
        const struct gguf_bisect_entry *e = gguf_bisect_entry(b, i);
        if (!is_gain(e) || e->halved)
            continue;
        if (!n++)
            puts("\nfor gguf-quantize --tensor-type-file, best first:");
        print_patterns(b, i, c);
    }
    if (n) /* see gguf-quantize(1) */
        puts("\nIn a mixture such as Q4_K_M a line may also change types of "
             "other\nweights: gguf-info --diff shows them.");
}

static void add_row(struct table *t, const struct gguf_bisect_entry *e,
                    const struct compare *c)
{
    if (c->o->bisect == 1 + GGUF_BISECT_HALVES && e->n_weights > 1)
        table_addf(t, "%s, ...", e->name);
    else
        table_add_strz(t, e->name);
    if (has_groups(c))
        table_addf(t, "%zu", e->n_weights);
    table_addf(t, "%s -> %s", get_type_name(e->dtype),
               get_type_name(e->base_dtype));
    table_addf(t, "%" PRId64, count_extra_bytes(e));
    if (e->measured) {
        table_addf(t, "%.7f", e->kld.value);
        table_addf(t, "%.3e", e->gain);
        if (count_extra_bytes(e) > 0)
            table_addf(t, "%.3e",
                       e->gain / (double)count_extra_bytes(e) * 1048576);
        else
            table_add(t, "-");
    } else {
        for (int i = 0; i < 3; i++)
            table_add(t, "-");
    }
    table_addf(t, "%.3e", e->suspicion);
}

/* Print the table of entries, without those that were halved. */
static void print_table(const struct gguf_bisect *b, const struct compare *c)
{
    static const char *const one[] = { "weight",   "type", "bytes more",
                                       "KLD then", "gain", "gain/MiB",
                                       "suspicion" };
    static const char *const many[] = { "weights",    "n",        "type",
                                        "bytes more", "KLD then", "gain",
                                        "gain/MiB",   "suspicion" };
    struct table t;
    table_init(&t, has_groups(c) ? "lrlrrrrr" : "llrrrrr", 0);
    table_add_row(&t, has_groups(c) ? many : one);
    for (size_t i = 0; i < gguf_bisect_n_entries(b); i++)
        if (!gguf_bisect_entry(b, i)->halved)
            add_row(&t, gguf_bisect_entry(b, i), c);
    wrap_printf("\n");
    table_show(&t, has_groups(c) ? "74/2613" : "63/152");
}

static void print_text(const struct gguf_bisect *b, const struct compare *c)
{
    const size_t n = gguf_bisect_n_measured(b);
    print_table(b, c);
    if (c->o->bisect == 1 + GGUF_BISECT_HALVES)
        wrap_printf("\nmeasured %zu parts of %zu weights that differ", n,
                    gguf_bisect_n_weights(b));
    else if (has_groups(c))
        wrap_printf("\nmeasured %zu of %zu groups of %zu weights that differ",
                    n, gguf_bisect_n_entries(b), gguf_bisect_n_weights(b));
    else
        wrap_printf(
            "\nmeasured %zu of %zu weight%s", n, gguf_bisect_n_entries(b),
            gguf_bisect_n_entries(b) == 1 ? " that differs" : "s that differ");
    if (gguf_bisect_n_left_out(b))
        wrap_printf(", %zu cannot be exchanged", gguf_bisect_n_left_out(b));
    wrap_printf("\n");
    print_suggestions(b, c);
    wrap_printf("\ntime    %.1f s\n", c->run.seconds);
}

static void json_weights(struct json *j, const struct gguf_bisect *b, size_t i)
{
    json_open(j, "weights", '[');
    for (size_t k = 0; k < gguf_bisect_entry(b, i)->n_weights; k++)
        json_strz(j, NULL, gguf_bisect_weight(b, i, k)->name);
    json_close(j);
}

static void json_entry(struct json *j, const struct gguf_bisect *b, size_t i,
                       const struct compare *c)
{
    const struct gguf_bisect_entry *e = gguf_bisect_entry(b, i);
    json_open(j, NULL, '{');
    json_strz(j, "name", e->name);
    json_strz(j, "type", get_type_name(e->dtype));
    json_strz(j, "base_type", get_type_name(e->base_dtype));
    json_u64(j, "size", e->size);
    json_u64(j, "base_size", e->base_size);
    json_f64(j, "suspicion", e->suspicion);
    json_bool(j, "measured", e->measured);
    if (e->measured) {
        json_open(j, "kld", '{');
        json_f64(j, "value", e->kld.value);
        json_f64(j, "error", e->kld.error);
        json_close(j);
        json_f64(j, "gain", e->gain);
    }
    if (has_groups(c)) {
        json_bool(j, "halved", e->halved);
        json_weights(j, b, i);
    }
    json_close(j);
}

static void print_json(const struct gguf_bisect *b, const struct compare *c)
{
    static const char *const by[] = {
        [GGUF_BISECT_WEIGHT] = "weight",
        [GGUF_BISECT_KIND] = "kind",
        [GGUF_BISECT_LAYER] = "layer",
        [GGUF_BISECT_HALVES] = "halves",
    };
    const struct gguf_figure kld = gguf_bisect_kld(b);
    struct json j;
    compare_json_head(&j, c);
    json_open(&j, "kld", '{');
    json_f64(&j, "value", kld.value);
    json_f64(&j, "error", kld.error);
    json_close(&j);
    json_strz(&j, "by", by[c->o->bisect - 1]);
    json_u64(&j, "measured", gguf_bisect_n_measured(b));
    json_u64(&j, "left_out", gguf_bisect_n_left_out(b));
    json_open(&j, has_groups(c) ? "groups" : "weights", '[');
    for (size_t i = 0; i < gguf_bisect_n_entries(b); i++)
        json_entry(&j, b, i, c);
    json_close(&j);
    json_f64(&j, "seconds", c->run.seconds);
    json_end(&j);
}

/* ---- the run ---- */

static bool on_done(void *user, const struct gguf_bisect *b,
                    const struct gguf_bisect_entry *e, size_t n_done,
                    size_t n_all)
{
    struct bisect *x = user;
    x->n_done = n_done;
    x->n_all = n_all;
    progress_clear(&x->c->run.bar);
    if (!e && !x->c->o->ev.json) {
        const struct gguf_figure kld = gguf_bisect_kld(b);
        wrap_printf("KLD     %.7f, uncertainty %.7f\n", kld.value, kld.error);
        msg_flush();
    }
    return false;
}

/* Progress in weights or groups: those that are measured, and the current
 * one. */
static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct bisect *x = user;
    enum { PARTS = 1000 };
    const uint64_t part = total ? done * PARTS / total : 0;
    return progress_report(&x->c->run.bar, x->n_done * PARTS + part % PARTS,
                           (x->n_all + !x->n_all) * PARTS);
}

static enum gguf_status run_bisect(struct compare *c, struct gguf_bisect **b,
                                   struct gguf_error *err)
{
    struct gguf_bisect_params p = GGUF_BISECT_PARAMS_INIT;
    struct gguf_scan_params scan = compare_scan_params(c);
    struct bisect x = { .c = c };
    scan.progress.fn = on_progress;
    scan.progress.user = &x;
    p.scan = &scan;
    p.seconds = c->o->time_budget;
    p.by = (enum gguf_bisect_grouping)(c->o->bisect - 1);
    p.on_done.fn = on_done;
    p.on_done.user = &x;
    ev_begin_work(&c->run, has_groups(c) ? "groups" : "weights", "");
    const enum gguf_status st =
        gguf_bisect_run(b, c->model.model, c->model.session, c->base.session,
                        c->tokens.id, c->tokens.n, &p, err);
    ev_end_work(&c->run);
    return st;
}

bool compare_bisect(struct compare *c)
{
    struct gguf_bisect *b;
    struct gguf_error err;
    if (!compare_begin_sessions(c, NULL, NULL))
        return false;
    progress_catch_signals();
    if (!c->o->ev.json)
        compare_print_head(c);
    const enum gguf_status st = run_bisect(c, &b, &err);
    if (progress_stopped())
        progress_raise();
    if (st == GGUF_E_CANCELLED)
        return msg_error(
            c->model.path,
            "--time-budget ended before the model was measured: give more "
            "seconds");
    if (st != GGUF_OK)
        return msg_fail(c->model.path, &err);
    if (c->o->ev.json)
        print_json(b, c);
    else
        print_text(b, c);
    gguf_bisect_destroy(b);
    return true;
}
