/* SPDX-License-Identifier: MIT */
/* report.c - figures for charts and pages
 *
 * The sink of a report runs after those of perplexity and divergence, and
 * collects their results for the same rows: sums of each chunk, means of each
 * bin of positions, counts of each bin of changes. Its memory does not grow
 * with the tokens of a chunk.
 */
#include "config.h"
#include "tools/ppl/report.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- means ---- */

static void add_to_mean(struct ppl_mean *m, double v)
{
    m->n++;
    m->sum += v;
    m->sum_sq += v * v;
}

double ppl_mean_value(const struct ppl_mean *m)
{
    return m->n ? m->sum / (double)m->n : NAN;
}

double ppl_mean_error(const struct ppl_mean *m)
{
    const double n = (double)m->n, mean = m->sum / n;
    if (m->n < 2)
        return NAN;
    return sqrt(fmax(m->sum_sq / n - mean * mean, 0) / (n - 1));
}

/* ---- names ---- */

void ppl_report_title(const struct ppl_report *r, FILE *f)
{
    fputs(r->base ? "Compared with " : "Perplexity of ", f);
    svg_textz(f, text_base_name(r->base ? r->o->base : r->run->e.own->path));
}

void ppl_report_text(const struct ppl_report *r, FILE *f)
{
    if (r->o->texts.n > 1)
        fprintf(f, "%zu texts", r->o->texts.n);
    else
        svg_textz(f, text_base_name(r->o->text ? r->o->text : r->o->base));
}

/* Set a label to the name of a file, without folders and .gguf. A long name
 * loses its beginning. */
static void set_label(char out[32], const char *path)
{
    char all[512];
    const char *name = text_base_name(path);
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0)
        n -= 5;
    gguf_text_escape(all, sizeof all, (struct gguf_str){ name, n });
    const char *p = all;
    for (n = strlen(all); n > 28 || (n && (*p & 0xc0) == 0x80); n--)
        p++;
    const size_t lead =
        p > all ? 3 : 0; /* bytes of the character for three dots */
    memcpy(out, "\342\200\246", lead);
    memcpy(out + lead, p, n + 1);
}

/* Remove the common beginning of all labels, up to its last separator. */
static void shorten_labels(struct ppl_curve *curve, size_t n)
{
    size_t same = 0, cut = 0;
    for (; n > 1 && curve[0].label[same]; same++) {
        for (size_t i = 1; i < n; i++)
            if (curve[i].label[same] != curve[0].label[same])
                goto differ;
        if (strchr("-_.", curve[0].label[same]))
            cut = same + 1;
    }
differ:
    for (size_t i = 0; i < n; i++)
        if (!curve[i].label[cut])
            return;
    for (size_t i = 0; cut && i < n; i++)
        memmove(curve[i].label, curve[i].label + cut,
                strlen(curve[i].label + cut) + 1);
}

const struct ev_model *ppl_report_model(const struct ppl_report *r, size_t i)
{
    return r->side ? r->side->model[i] : r->run->e.own;
}

static void set_labels(struct ppl_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        set_label(r->curve[i].label, ppl_report_model(r, i)->path);
    if (r->base)
        set_label(r->base->label, r->o->base);
    shorten_labels(r->curve, r->n + (r->base != NULL));
}

/* Sort models by size, the largest first. There are few: insertion sort. */
static void set_order(struct ppl_report *r)
{
    r->order = msg_must(calloc(r->n + 1, sizeof *r->order));
    for (size_t i = 0; i < r->n; i++) {
        const uint64_t size = ppl_report_model(r, i)->info.weight_size;
        size_t at = i;
        for (; at > 0; at--) {
            const size_t other = r->order[at - 1];
            if (ppl_report_model(r, other)->info.weight_size >= size)
                break;
            r->order[at] = other;
        }
        r->order[at] = i;
    }
}

struct gguf_figure ppl_report_ppl(const struct ppl_report *r, size_t i)
{
    if (r->stats)
        return r->stats[i].ppl;
    return (struct gguf_figure){ gguf_ppl_value(&r->run->total),
                                 gguf_ppl_error(&r->run->total) };
}

/* ---- the sink ---- */

static size_t count_curves(const struct ppl_report *r)
{
    return r->n + (r->base != NULL);
}

static enum gguf_status begin_scan(void *user,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err)
{
    (void)err;
    ppl_report_begin(user, info->first, info->params->n_ctx);
    return GGUF_OK;
}

void ppl_report_begin(struct ppl_report *r, uint32_t first, uint32_t n_ctx)
{
    r->first = first;
    r->n_rows = n_ctx - 1 - first;
    r->last = SIZE_MAX;
}

/* Begin a chunk. */
static void add_chunk(struct ppl_report *r)
{
    const size_t had = r->room;
    if (r->n_chunks == had)
        r->room = had ? 2 * had : 64;
    for (size_t i = 0; i < count_curves(r); i++) {
        struct ppl_curve *c = &r->curve[i];
        if (had != r->room)
            c->chunk = msg_must(realloc(c->chunk, r->room * sizeof *c->chunk));
        c->chunk[r->n_chunks] = (struct ppl_mean){ 0, 0, 0 };
    }
    r->n_chunks++;
}

static void add_token(struct ppl_report *r, struct ppl_curve *c, uint32_t row,
                      const struct gguf_kld_token *t)
{
    size_t bin = (size_t)row * PPL_POSITIONS / (r->n_rows ? r->n_rows : 1);
    bin = bin < PPL_POSITIONS ? bin : PPL_POSITIONS - 1;
    add_to_mean(&c->position[bin], t->kld);
    /* parts may have scores below 0, whose exponential is above 1 */
    const double dp = fmin(fmax(exp(-t->x) - exp(-t->x_base), -1), 1);
    bin = (size_t)floor((dp + 1) / 2 * PPL_CHANGES);
    c->change[bin < PPL_CHANGES ? bin : PPL_CHANGES - 1]++;
}

void ppl_report_add(struct ppl_report *r, const struct ppl_rows *rows)
{
    if (rows->chunk != r->last)
        add_chunk(r);
    r->last = rows->chunk;
    const size_t at = r->n_chunks - 1;
    for (size_t m = 0; m < r->n; m++) {
        const struct gguf_kld_token *t = NULL;
        if (r->side)
            t = ppl_side_last_tokens(r->side, m, rows->n);
        for (uint32_t i = 0; i < rows->n; i++) {
            add_to_mean(&r->curve[m].chunk[at], t ? t[i].x : rows->nll[i]);
            if (t)
                add_token(r, &r->curve[m], rows->first - r->first + i, &t[i]);
            if (t && m == 0)
                add_to_mean(&r->base->chunk[at], t[i].x_base);
        }
    }
}

static enum gguf_status take_rows(void *user,
                                  const struct gguf_scan_rows *scanned,
                                  struct gguf_error *err)
{
    struct ppl_report *r = user;
    const struct ppl_rows rows = ppl_convert_rows(scanned, r->side);
    (void)err;
    ppl_report_add(r, &rows);
    return GGUF_OK;
}

/* ---- the object ---- */

static bool open_output(struct outtext *o, const char *path, bool force)
{
    struct gguf_error err;
    if (!path || outtext_open(o, path, force, &err) == GGUF_OK)
        return true;
    return msg_fail(path, &err);
}

bool ppl_report_open(struct ppl_report **out, const struct ppl_run *run,
                     const struct ppl_side *side)
{
    const struct ppl_options *o = run->o;
    *out = NULL;
    if (!o->plot && !o->html)
        return true;
    struct ppl_report *r = *out = msg_must(calloc(1, sizeof *r));
    r->o = o;
    r->run = run;
    r->side = side;
    r->plot = r->html = (struct outtext)OUTTEXT_INIT;
    r->n = side ? side->n : 1;
    r->curve = msg_must(calloc(r->n + 1, sizeof *r->curve));
    for (size_t i = 0; i < r->n; i++) {
        r->curve[i].series = (int)i;
        if (side)
            r->curve[i].change =
                msg_must(calloc(PPL_CHANGES, sizeof *r->curve[i].change));
    }
    if (side) {
        r->base = &r->curve[r->n];
        r->base->series = SVG_BASE;
    }
    set_labels(r);
    set_order(r);
    r->sink = (struct gguf_sink)GGUF_SINK_INIT;
    r->sink.user = r;
    r->sink.begin = begin_scan;
    r->sink.rows = take_rows;
    return open_output(&r->plot, o->plot, o->ev.force) &&
           open_output(&r->html, o->html, o->ev.force);
}

const struct gguf_sink *ppl_report_sink(struct ppl_report *r)
{
    return &r->sink;
}

static bool commit_output(struct outtext *t, const char *path)
{
    struct gguf_error err;
    if (!path || outtext_commit(t, &err) == GGUF_OK)
        return true;
    return msg_fail(path, &err);
}

bool ppl_report_close(struct ppl_report *r, bool good,
                      const struct gguf_kld_stats *stats)
{
    if (!r)
        return good;
    r->stats = stats;
    if (good && r->o->plot)
        ppl_report_plot(r, r->plot.f);
    if (good && r->o->html)
        ppl_report_html(r, r->html.f);
    good = good && commit_output(&r->plot, r->o->plot) &&
           commit_output(&r->html, r->o->html);
    outtext_abort(&r->plot);
    outtext_abort(&r->html);
    for (size_t i = 0; i < count_curves(r); i++) {
        free(r->curve[i].chunk);
        free(r->curve[i].change);
    }
    free(r->curve);
    free(r->order);
    ppl_layer_map_free(r);
    free(r);
    return good;
}
