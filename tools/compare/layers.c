/* SPDX-License-Identifier: MIT */
/* layers.c - comparison of a model with its base, activation by activation */
#include "config.h"
#include "tools/compare/compare.h"
#include "tools/common/msg.h"
#include "tools/common/style.h"
#include "tools/common/table.h"
#include "tools/common/wrap.h"
#include "base/os/os_program.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 8, WORST = 10, MOST_KINDS = 256 };

/* Activations of the same name in all layers. */
struct kind {
    const char *what;
    unsigned use;
    double worst; /* largest error of all layers */
};
struct layers {
    const struct gguf_layers *l;
    struct kind kind[MOST_KINDS];
    size_t n_kinds;
    int32_t n_layers;
};

static struct kind *find_kind(struct layers *x,
                              const struct gguf_layers_entry *e)
{
    size_t k = 0;
    while (k < x->n_kinds &&
           (x->kind[k].use != e->use || strcmp(x->kind[k].what, e->what) != 0))
        k++;
    if (k == MOST_KINDS)
        return NULL;
    if (k == x->n_kinds)
        x->kind[x->n_kinds++] =
            (struct kind){ .what = e->what, .use = e->use };
    return &x->kind[k];
}

static void group_by_kind(struct layers *x)
{
    for (size_t i = 0; i < gguf_layers_n_entries(x->l); i++) {
        const struct gguf_layers_entry *e = gguf_layers_entry(x->l, i);
        struct kind *k = e->layer >= 0 ? find_kind(x, e) : NULL;
        if (!k)
            continue;
        k->worst = e->error > k->worst ? e->error : k->worst;
        if (e->layer >= x->n_layers)
            x->n_layers = e->layer + 1;
    }
}

static const struct gguf_layers_entry *
find_entry(const struct layers *x, int32_t layer, const struct kind *k)
{
    for (size_t i = 0; i < gguf_layers_n_entries(x->l); i++) {
        const struct gguf_layers_entry *e = gguf_layers_entry(x->l, i);
        if (e->layer == layer && e->use == k->use && !strcmp(e->what, k->what))
            return e;
    }
    return NULL;
}

/* ---- text ---- */

static void add_kind(struct table *t, const struct kind *k)
{
    if (k->use)
        table_addf(t, "%s #%u", k->what, k->use + 1);
    else
        table_add_strz(t, k->what);
}

/* The end of the kinds from begin on that fit into a line. */
static size_t find_block_end(const struct layers *x, size_t begin)
{
    enum { CELL = 10 }; /* terminal columns of an error */
    const int columns =
        style_on_terminal() ? style_columns(GG_OS_STDOUT) : INT_MAX;
    int at = (int)strlen("layer");
    size_t k = begin;
    for (; k < x->n_kinds && k < begin + BLOCK; k++) {
        const int name =
            table_width(x->kind[k].what) + (x->kind[k].use ? 3 : 0);
        at += 2 + (name > CELL ? name : CELL);
        if (k > begin && at > columns)
            break;
    }
    return k;
}

/* Print the errors of some kinds, with a line for each layer. */
static void print_block(const struct layers *x, size_t begin, size_t end)
{
    struct table t;
    table_init(&t, &"rrrrrrrrr"[BLOCK - (end - begin)], 0);
    table_add(&t, "layer");
    for (size_t k = begin; k < end; k++)
        add_kind(&t, &x->kind[k]);
    for (int32_t il = 0; il < x->n_layers; il++) {
        table_addf(&t, "%" PRId32, il);
        for (size_t k = begin; k < end; k++) {
            const struct gguf_layers_entry *e = find_entry(x, il, &x->kind[k]);
            if (e)
                table_addf(&t, "%.3e%c", e->error,
                           e->error > 0 && e->error == x->kind[k].worst ? '*'
                                                                        : ' ');
            else
                table_add(&t, "- ");
        }
    }
    wrap_printf("\n");
    table_show(&t, "");
}

static void add_entry(struct table *t, const struct gguf_layers_entry *e)
{
    if (e->use)
        table_addf(t, "%s #%u", e->name, e->use + 1);
    else
        table_add_strz(t, e->name);
    table_addf(t, "%.3e", e->error);
    table_addf(t, "%.9f", e->cosine);
    table_addf(t, "%.4g", e->rms);
    table_addf(t, "%.3e", e->worst);
    table_addf(t, "%zu", e->worst_chunk + 1);
    table_addf(t, "%" PRIu32, e->worst_pos);
}

static int compare_errors(const void *a, const void *b)
{
    const struct gguf_layers_entry *x =
        *(const struct gguf_layers_entry *const *)a;
    const struct gguf_layers_entry *y =
        *(const struct gguf_layers_entry *const *)b;
    return (x->error < y->error) - (x->error > y->error);
}

/* Print the activations outside of layers, then the largest errors of
 * layers. */
static void print_entries(const struct layers *x)
{
    static const char *const heads[] = { "activation",  "error",
                                         "cosine",      "rms",
                                         "worst token", "in chunk",
                                         "position" };
    const size_t n_all = gguf_layers_n_entries(x->l);
    const struct gguf_layers_entry **of_layers =
        msg_must(calloc(n_all + 1, sizeof *of_layers));
    size_t n = 0;
    struct table t;
    table_init(&t, "lrrrrrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < n_all; i++) {
        const struct gguf_layers_entry *e = gguf_layers_entry(x->l, i);
        if (e->layer >= 0)
            of_layers[n++] = e;
        else
            add_entry(&t, e);
    }
    qsort(of_layers, n, sizeof *of_layers, compare_errors);
    for (size_t i = 0; i < n && i < WORST; i++)
        add_entry(&t, of_layers[i]);
    wrap_printf("\n");
    table_show(&t, "65/432");
    free(of_layers);
}

static void print_text(struct layers *x, const struct compare *c)
{
    group_by_kind(x);
    for (size_t k = 0, end; k < x->n_kinds; k = end) {
        end = find_block_end(x, k);
        print_block(x, k, end);
    }
    print_entries(x);
    wrap_printf("\ntime    %.1f s\n", c->run.seconds);
}

/* ---- JSON ---- */

static void json_entry(struct json *j, const struct gguf_layers_entry *e)
{
    json_open(j, NULL, '{');
    json_strz(j, "name", e->name);
    json_i64(j, "layer", e->layer);
    json_strz(j, "what", e->what);
    json_u64(j, "use", e->use);
    json_u64(j, "tokens", e->n_tokens);
    json_f64(j, "error", e->error);
    json_f64(j, "cosine", e->cosine);
    json_f64(j, "rms", e->rms);
    json_f64(j, "worst", e->worst);
    json_u64(j, "worst_chunk", e->worst_chunk);
    json_u64(j, "worst_position", e->worst_pos);
    json_close(j);
}

static void print_json(const struct layers *x, const struct compare *c)
{
    struct json j;
    compare_json_head(&j, c);
    json_open(&j, "activations", '[');
    for (size_t i = 0; i < gguf_layers_n_entries(x->l); i++)
        json_entry(&j, gguf_layers_entry(x->l, i));
    json_close(&j);
    json_f64(&j, "seconds", c->run.seconds);
    json_end(&j);
}

/* ---- the run ---- */

static void print_head(const struct compare *c)
{
    compare_print_head(c);
    wrap_printf("errors  |q - b| / |b| over all tokens, * the largest of a "
                "column\n");
    msg_flush();
}

bool compare_layers(struct compare *c)
{
    struct gguf_layers *l;
    struct gguf_error err;
    if (!compare_begin_sessions(c, NULL, NULL))
        return false;
    progress_catch_signals();
    const struct gguf_scan_params p = compare_scan_params(c);
    if (!c->o->ev.json)
        print_head(c);
    ev_begin_work(&c->run, "layers", "tokens");
    const enum gguf_status st =
        gguf_layers_run(&l, c->model.session, c->base.session, c->tokens.id,
                        c->tokens.n, &p, &err);
    ev_end_work(&c->run);
    if (st != GGUF_OK)
        return progress_fail(NULL, c->model.path, &err);
    struct layers x = { .l = l };
    if (c->o->ev.json)
        print_json(&x, c);
    else
        print_text(&x, c);
    gguf_layers_destroy(l);
    return true;
}
