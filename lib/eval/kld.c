/* SPDX-License-Identifier: MIT */
/* kld.c - a sink that compares a model with a base
 *
 * The numbers of each token are kept, since quantiles need all of them. Sums
 * are added chunk by chunk, so that chunks scored elsewhere give the same
 * digits. */
#include "config.h"
#include "eval/kld_int.h"

#include "base/mem.h"
#include "base/params.h"
#include "eval/baseline_int.h"
#include "eval/divergence.h"
#include "eval/nll.h"
#include "gguf/session.h"

#include <math.h>

/* Number of the base among the models of a scan. */
enum { BASE = 0 };

double gg_kld_dp(const struct gguf_kld_token *t)
{
    return exp(-t->x) - exp(-t->x_base);
}

/* ---- sums ---- */

static void add_token(struct gg_kld_sums *s, const struct gguf_kld_token *t)
{
    const double x = t->x, b = t->x_base, d = x - b;
    const double dp = gg_kld_dp(t), dp2 = dp * dp;
    s->n++;
    s->same += t->same_top;
    s->x += x;
    s->xx += x * x;
    s->b += b;
    s->bb += b * b;
    s->xb += x * b;
    s->d += d;
    s->dd += d * d;
    s->kld += t->kld;
    s->kld2 += t->kld * t->kld;
    s->dp += dp;
    s->dp2 += dp2;
    s->dp4 += dp2 * dp2;
}

/* Add the tokens since the last chunk as one chunk. */
static void sum_chunk(struct gguf_kld *k)
{
    struct gg_kld_sums one = { .n = 0 }, *s = &k->sums;
    for (; k->n_summed < k->n; k->n_summed++)
        add_token(&one, &k->token[k->n_summed]);
    s->n += one.n;
    s->same += one.same;
    s->x += one.x;
    s->xx += one.xx;
    s->b += one.b;
    s->bb += one.bb;
    s->xb += one.xb;
    s->d += one.d;
    s->dd += one.dd;
    s->kld += one.kld;
    s->kld2 += one.kld2;
    s->dp += one.dp;
    s->dp2 += one.dp2;
    s->dp4 += one.dp4;
}

static enum gguf_status reserve_tokens(struct gguf_kld *k, size_t n,
                                       struct gguf_error *err)
{
    uint64_t least;
    if (gg_ckd_add(&least, k->n, n) || least > SIZE_MAX)
        return gg_error_set_nomem(err, SIZE_MAX);
    if (least <= k->room)
        return GGUF_OK;
    struct gguf_kld_token *more = gg_mem_grow(
        k->p.allocator, k->token, &k->room, sizeof *more, (size_t)least, err);
    if (!more)
        return GGUF_E_NOMEM;
    k->token = more;
    return GGUF_OK;
}

/* ---- the sink ---- */

static enum gguf_status begin_scan(void *user,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err)
{
    struct gguf_kld *k = user;
    const size_t n_compared = info->n_models - !k->p.baseline;
    if (k->p.model >= n_compared)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "divergence of model %zu: the scan has %zu beside "
                            "the base",
                            k->p.model, n_compared);
    k->model = k->p.model + !k->p.baseline;
    k->info = info;
    return k->p.baseline ? gg_baseline_check(k->p.baseline, info, err)
                         : GGUF_OK;
}

static enum gguf_status check_finite(const struct gguf_kld *k,
                                     const struct gguf_scan_rows *rows,
                                     const struct gguf_kld_token *t,
                                     struct gguf_error *err)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const bool base = !isfinite(t[i].x_base);
        if (!base && isfinite(t[i].x) && isfinite(t[i].kld))
            continue;
        if (base && k->p.baseline)
            return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                "chunk %zu: the base's logits after token "
                                "%" PRIu32 " are NaN or infinite",
                                rows->chunk + 1, rows->first + i);
        return gg_nll_report_nonfinite(
            k->info->sessions[base ? BASE : k->model], k->p.pool, rows->chunk,
            rows->first + i + 1, err);
    }
    return GGUF_OK;
}

static enum gguf_status add_rows(void *user, const struct gguf_scan_rows *rows,
                                 struct gguf_error *err)
{
    struct gguf_kld *k = user;
    GG_TRY(reserve_tokens(k, rows->n, err));
    struct gguf_kld_token *t = k->token + k->n;
    const double *x = gguf_scan_model_nll(rows, k->model);
    struct gg_baseline_rows saved;
    struct gg_divergence_logits l;
    struct gg_divergence_base base;
    for (uint32_t i = 0; i < rows->n; i++)
        t[i] = (struct gguf_kld_token){ .x = x[i] };
    if (k->p.baseline) {
        gg_baseline_rows(k->p.baseline, rows->chunk, rows->first, &saved,
                         &base);
        for (uint32_t i = 0; i < rows->n; i++)
            t[i].x_base =
                gg_baseline_nll(&saved, i, rows->token[rows->first + i + 1]);
    } else {
        const double *b = gguf_scan_model_nll(rows, BASE);
        for (uint32_t i = 0; i < rows->n; i++)
            t[i].x_base = b[i];
        l = (struct gg_divergence_logits){ rows->logits_of[BASE],
                                           rows->n_vocab };
        gg_divergence_set_logits(&base, &l);
    }
    gg_divergence_compare_rows(k->p.pool, &base, rows->logits_of[k->model],
                               rows->n_vocab, rows->n, t);
    GG_TRY(check_finite(k, rows, t, err));
    k->n += rows->n;
    return GGUF_OK;
}

static enum gguf_status end_chunk(void *user, size_t chunk,
                                  struct gguf_error *err)
{
    struct gguf_kld *k = user;
    sum_chunk(k);
    if (k->p.on_chunk.fn &&
        k->p.on_chunk.fn(k->p.on_chunk.user, chunk, k->info->n_chunks, k))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

static enum gguf_status end_scan(void *user, enum gguf_status st,
                                 struct gguf_error *err)
{
    struct gguf_kld *k = user;
    (void)st;
    (void)err;
    k->n = k->n_summed; /* drop the tokens of an incomplete chunk */
    k->info = NULL;
    return GGUF_OK;
}

/* ---- the object ---- */

enum gguf_status gguf_kld_create(struct gguf_kld **out,
                                 const struct gguf_kld_params *params,
                                 struct gguf_error *err)
{
    struct gguf_kld_params p = GGUF_KLD_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_kld_params", err));
    struct gguf_kld *k = gg_mem_alloc_zero(p.allocator, 1, sizeof *k);
    if (!k)
        return gg_error_set_nomem(err, sizeof *k);
    k->p = p;
    k->sink = (struct gguf_sink)GGUF_SINK_INIT;
    k->sink.user = k;
    k->sink.begin = begin_scan;
    k->sink.rows = add_rows;
    k->sink.chunk = end_chunk;
    k->sink.end = end_scan;
    *out = k;
    return GGUF_OK;
}

void gguf_kld_destroy(struct gguf_kld *kld)
{
    if (!kld)
        return;
    gg_mem_free(kld->p.allocator, kld->token);
    gg_mem_free(kld->p.allocator, kld);
}

const struct gguf_sink *gguf_kld_sink(struct gguf_kld *kld)
{
    return &kld->sink;
}

const struct gguf_kld_token *gguf_kld_tokens(const struct gguf_kld *kld,
                                             size_t *n)
{
    *n = kld->n;
    return kld->token;
}

enum gguf_status gguf_kld_add(struct gguf_kld *kld,
                              const struct gguf_kld_token *token, size_t n,
                              struct gguf_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(token[i].x) || !isfinite(token[i].x_base) ||
            !isfinite(token[i].kld))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "token %zu of %zu: not a number", i + 1, n);
    GG_TRY(reserve_tokens(kld, n, err));
    for (size_t i = 0; i < n; i++)
        kld->token[kld->n++] = token[i];
    sum_chunk(kld);
    return GGUF_OK;
}
