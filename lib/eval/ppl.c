/* SPDX-License-Identifier: MIT */
/* ppl.c - perplexity: a sink that sums log-probabilities
 *
 * The numbers of a chunk are added in the order of the text, then to those of
 * earlier chunks: digits do not depend on threads or on pieces of rows. */
#include "config.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/params.h"
#include "eval/nll.h"
#include "eval/window.h"
#include "gguf/ppl.h"
#include "run/session_int.h"

#include <math.h>

double gguf_ppl_value(const struct gguf_ppl *p)
{
    return p && p->n ? exp(p->sum / (double)p->n) : (double)NAN;
}

double gguf_ppl_error(const struct gguf_ppl *p)
{
    if (!p || p->n < 2)
        return (double)NAN;
    double n = (double)p->n, mean = p->sum / n;
    double var = p->sum_sq / n - mean * mean;
    return var > 0 ? exp(mean) * sqrt(var / (n - 1)) : 0;
}

/* Take over sums from a program that may know an older struct. */
static struct gguf_ppl take_sums(const struct gguf_ppl *p)
{
    struct gguf_ppl own = GGUF_PPL_INIT;
    (void)gg_params_take(&own, sizeof own, p, "gguf_ppl", NULL);
    return own;
}

/* Number of units; NaN: none. */
static double count_units(const struct gguf_ppl *p, enum gguf_ppl_unit unit)
{
    const uint64_t n[] = { [GGUF_PPL_TOKEN] = p->n,
                           [GGUF_PPL_BYTE] = p->n_bytes,
                           [GGUF_PPL_WORD] = p->n_words };
    return (size_t)unit < GG_LEN(n) && n[unit] ? (double)n[unit] : (double)NAN;
}

/* Nats for each unit, and their standard error. */
static double nats_per_unit(const struct gguf_ppl *p, enum gguf_ppl_unit unit,
                            double *error)
{
    const struct gguf_ppl own = take_sums(p);
    const double n = count_units(&own, unit);
    const double se = gguf_ppl_error(&own) / gguf_ppl_value(&own);
    *error = se * (double)own.n / n;
    return own.sum / n;
}

double gguf_ppl_per_unit(const struct gguf_ppl *p, enum gguf_ppl_unit unit,
                         double *error)
{
    double e;
    const double value = exp(nats_per_unit(p, unit, &e));
    if (error)
        *error = value * e;
    return value;
}

double gguf_ppl_bits_per_unit(const struct gguf_ppl *p,
                              enum gguf_ppl_unit unit, double *error)
{
    double e;
    const double value = nats_per_unit(p, unit, &e) / log(2);
    if (error)
        *error = e / log(2);
    return value;
}

static void add_sums(struct gguf_ppl *sums, const struct gguf_ppl *part)
{
    sums->n += part->n;
    sums->sum += part->sum;
    sums->sum_sq += part->sum_sq;
    sums->n_bytes += part->n_bytes;
    sums->n_words += part->n_words;
}

enum gguf_status gguf_ppl_add(struct gguf_ppl *sums,
                              const struct gguf_ppl *part,
                              struct gguf_error *err)
{
    struct gguf_ppl a = GGUF_PPL_INIT, b = GGUF_PPL_INIT;
    GG_TRY(gg_params_take(&a, sizeof a, sums, "gguf_ppl", err));
    GG_TRY(gg_params_take(&b, sizeof b, part, "gguf_ppl", err));
    add_sums(&a, &b);
    return gg_params_give(sums, &a, sizeof a, "gguf_ppl", err);
}

static enum gguf_status check_params(const struct gguf_session *s, size_t n,
                                     const struct gguf_scan_params *p,
                                     struct gguf_error *err)
{
    const uint64_t least = gguf_ppl_min_tokens(p);
    if (!s)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "perplexity needs a session");
    if (p->n_ctx < 4 || p->n_ctx > gguf_session_n_ctx(s))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunks of %" PRIu32
                            " tokens: must be 4 to %" PRIu32,
                            p->n_ctx, gguf_session_n_ctx(s));
    if (!p->text_end && n < least)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the text has %zu tokens; with chunks of %" PRIu32
                            " at least %" PRIu64 " are needed",
                            n, p->n_ctx, least);
    return GGUF_OK;
}

/* ---- the sink ---- */

struct ppl {
    const struct gguf_ppl_params *p;
    struct gguf_scan_params scan;
    const struct gguf_scan_info *info;
    /* sums of the current chunk, and of all chunks before */
    struct gguf_ppl one, all;
};

static enum gguf_status begin_scan(void *user,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err)
{
    struct ppl *s = user;
    (void)err;
    s->info = info;
    return GGUF_OK;
}

static enum gguf_status add_rows(void *user, const struct gguf_scan_rows *rows,
                                 struct gguf_error *err)
{
    struct ppl *s = user;
    const double *x = gguf_scan_nll(rows);
    for (uint32_t i = 0; i < rows->n; i++) {
        if (!isfinite(x[i]))
            return gg_nll_report_nonfinite(s->info->session, s->scan.pool,
                                           rows->chunk, rows->first + i + 1,
                                           err);
        s->one.sum += x[i];
        s->one.sum_sq += x[i] * x[i];
    }
    s->one.n += rows->n;
    uint64_t n_bytes, n_words;
    GG_TRY(gguf_scan_count_text(rows, &n_bytes, &n_words, err));
    s->one.n_bytes += n_bytes;
    s->one.n_words += n_words;
    return GGUF_OK;
}

static enum gguf_status end_chunk(void *user, size_t chunk,
                                  struct gguf_error *err)
{
    struct ppl *s = user;
    const struct gguf_ppl one = s->one;
    s->one = (struct gguf_ppl){ .struct_size = one.struct_size };
    add_sums(&s->all, &one);
    if (s->p->on_chunk.fn &&
        s->p->on_chunk.fn(s->p->on_chunk.user, chunk, s->info->n_chunks, &one,
                          &s->all))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

/* Scan with perplexity's sink before those of the caller. */
static enum gguf_status run_scan(struct gguf_session *session,
                                 const gguf_token *token, size_t n,
                                 struct ppl *s, struct gguf_error *err)
{
    const struct gguf_ppl_params *p = s->p;
    struct gguf_sink sink = GGUF_SINK_INIT;
    const struct gguf_allocator *a = session->allocator;
    const struct gguf_sink **sinks =
        gg_mem_alloc_zero(a, p->n_sinks + 1, sizeof *sinks);
    if (!sinks)
        return gg_error_set_nomem(err, (p->n_sinks + 1) * sizeof *sinks);
    sink.user = s;
    sink.begin = begin_scan;
    sink.rows = add_rows;
    sink.chunk = end_chunk;
    sinks[0] = &sink;
    for (size_t i = 0; i < p->n_sinks; i++)
        sinks[i + 1] = p->sinks[i];
    enum gguf_status st =
        gguf_scan_run(session, token, n, &s->scan, sinks, p->n_sinks + 1, err);
    gg_mem_free(a, sinks);
    return st;
}

enum gguf_status gguf_ppl_run(struct gguf_session *session,
                              const gguf_token *token, size_t n,
                              const struct gguf_ppl_params *params,
                              struct gguf_ppl *out, struct gguf_error *err)
{
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct ppl s = { .p = &p,
                     .scan = GGUF_SCAN_PARAMS_INIT,
                     .one = GGUF_PPL_INIT,
                     .all = GGUF_PPL_INIT };
    GG_TRY(gg_params_give(out, &s.all, sizeof s.all, "gguf_ppl", err));
    /* a callback may copy its arguments to a struct of out's size */
    s.one.struct_size = s.all.struct_size =
        GG_MIN(out->struct_size, sizeof *out);
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_ppl_params", err));
    GG_TRY(gg_window_take_params(&s.scan, p.scan, err));
    GG_TRY(check_params(session, n, &s.scan, err));
    enum gguf_status st = run_scan(session, token, n, &s, err);
    (void)gg_params_give(out, &s.all, sizeof s.all, "gguf_ppl", NULL);
    return st;
}
