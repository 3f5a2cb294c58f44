/* SPDX-License-Identifier: MIT */
/* calibrate_stream.c - the original and the quantized model, side by side */
#include "config.h"
#include "calibrate/calibrate_share.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "eval/divergence.h"
#include "gguf/cpu.h"
#include "run/session_int.h"

#include <math.h>
#include <string.h>

/* ---- sessions ---- */

enum gguf_status gg_calibrate_stream_open(struct gg_calibrate_job *j,
                                          struct gg_calibrate_stream *s,
                                          struct gguf_error *err)
{
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    cp.allocator = sp.allocator = j->allocator;
    cp.pool = j->p->pool;
    cp.n_threads = 1;
    /* no repacked weights: they would be those before a change */
    cp.repack = GGUF_CPU_REPACK_NONE;
    GG_TRY(gguf_cpu_backend_create(&s->backend, &cp, err));
    sp.backend = s->backend;
    sp.n_ctx = sp.n_ubatch = j->text.n_ctx;
    return gguf_session_create(&s->session, s->model, &sp, err);
}

static enum gguf_status create_stages(struct gg_calibrate_job *j,
                                      struct gg_calibrate_stream *s,
                                      struct gguf_error *err)
{
    const struct gg_stages_params p = {
        .session = s->session,
        .batches = j->text.batch,
        .n_batches = j->text.n_chunks,
        .max_memory = j->p->max_memory / 4,
        .spill_path = j->p->spill_path,
    };
    return gg_stages_create(&s->stages, &p, err);
}

static bool has_same_products(const struct gg_stages_stage *a,
                              const struct gg_stages_stage *b)
{
    if (a->n_products != b->n_products || a->has_ids != b->has_ids)
        return false;
    for (size_t k = 0; k < a->n_products; k++) {
        const struct gguf_tensor *v = a->product[k].weight,
                                 *w = b->product[k].weight;
        if (strcmp(v->name, w->name) || memcmp(v->ne, w->ne, sizeof v->ne))
            return false;
    }
    return true;
}

static enum gguf_status compare_stages(const struct gg_stages *a,
                                       const struct gg_stages *b,
                                       struct gguf_error *err)
{
    const size_t n = gg_stages_count(a);
    bool same = n == gg_stages_count(b);
    for (size_t i = 0; same && i < n; i++)
        same = has_same_products(gg_stages_at(a, i), gg_stages_at(b, i));
    return same ? GGUF_OK
                : gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                               "calibration: the quantized model computes "
                               "other products than the original");
}

enum gguf_status gg_calibrate_streams_init(struct gg_calibrate_job *j,
                                           struct gguf_error *err)
{
    for (unsigned i = 0; i < GG_LEN(j->stream); i++) {
        GG_TRY(gg_calibrate_stream_open(j, &j->stream[i], err));
        GG_TRY(create_stages(j, &j->stream[i], err));
    }
    return compare_stages(j->stream[0].stages, j->stream[1].stages, err);
}

void gg_calibrate_streams_fini(struct gg_calibrate_job *j)
{
    for (unsigned i = 0; i < GG_LEN(j->stream); i++) {
        gg_stages_destroy(j->stream[i].stages);
        gguf_session_destroy(j->stream[i].session);
        gguf_backend_destroy(j->stream[i].backend);
    }
}

enum gguf_status gg_calibrate_leave_out(struct gg_calibrate_job *j,
                                        size_t chunk, const char *tensor,
                                        struct gguf_error *err)
{
    struct gg_calibrate_text *x = &j->text;
    x->bad[chunk] = true;
    x->n_bad++;
    if (!j->result.bad)
        j->result.bad = tensor;
    return x->n_bad < x->n_chunks
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                              "calibration: every chunk of the text has "
                              "activations that are NaN or infinite, the last "
                              "one at '%s'",
                              tensor);
}

/* ---- divergence ---- */

/* Sums over the rows of a chunk. */
struct divergence {
    double sum, n;
    struct gguf_kld_token *token; /* [most rows at once] */
};

/* Compare n rows of both sessions' logits, from row first of a chunk on. */
static enum gguf_status compare_rows(struct gg_calibrate_job *j, size_t first,
                                     size_t n, struct divergence *d,
                                     struct gguf_error *err)
{
    const size_t n_vocab = j->quantized->hp.n_vocab;
    struct gg_divergence_base base;
    struct gg_divergence_logits rows = { .n_vocab = n_vocab };
    const float *logits;
    GG_TRY(gguf_session_logits(j->stream[GG_CALIBRATE_ORIGINAL].session, first,
                               n, &rows.logits, err));
    GG_TRY(gguf_session_logits(j->stream[GG_CALIBRATE_QUANTIZED].session,
                               first, n, &logits, err));
    gg_divergence_set_logits(&base, &rows);
    gg_divergence_compare_rows(j->p->pool, &base, logits, n_vocab, n,
                               d->token);
    for (size_t i = 0; i < n; i++)
        d->sum += d->token[i].kld;
    d->n += (double)n;
    return GGUF_OK;
}

/* Make the outputs of a chunk those of both sessions. */
static enum gguf_status get_outputs(struct gg_calibrate_job *j, size_t c,
                                    bool ends, struct gguf_error *err)
{
    for (unsigned i = 0; i < GG_LEN(j->stream); i++) {
        struct gg_calibrate_stream *s = &j->stream[i];
        if (ends) {
            GG_TRY(gg_stages_finish(s->stages, c, err));
            continue;
        }
        GG_TRY(gguf_session_clear(s->session, err));
        GG_TRY(gguf_session_decode(s->session, &j->text.batch[c], err));
    }
    return GGUF_OK;
}

static bool is_held_out(const struct gg_heldout *h, size_t begin, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (gg_heldout_has(h, begin + i))
            return true;
    return false;
}

/* Add the rows of a chunk that are held out, most at a time. */
static enum gguf_status add_chunk(struct gg_calibrate_job *j,
                                  const struct gg_heldout *h, size_t c,
                                  bool ends, size_t most, struct divergence *d,
                                  struct gguf_error *err)
{
    const size_t n_ctx = j->text.n_ctx, begin = c * n_ctx;
    if (j->text.bad[c] || !is_held_out(h, begin, n_ctx))
        return GGUF_OK;
    GG_TRY(get_outputs(j, c, ends, err));
    for (size_t i = 0, n; i < n_ctx; i += n) {
        const bool in = gg_heldout_has(h, begin + i);
        for (n = 1; i + n < n_ctx && n < most &&
                    gg_heldout_has(h, begin + i + n) == in;
             n++)
            ;
        if (in)
            GG_TRY(compare_rows(j, i, n, d, err));
    }
    return GGUF_OK;
}

/* Sum and number of the rows of each chunk. Chunk c, of process c % n_ranks, is
 * pair c / n_ranks of this process's pairs. */
struct chunk_sums {
    size_t n_ranks, per_rank;
    double *pair; /* [n_ranks][per_rank][2] */
};

static double *find_pair(const struct chunk_sums *s, size_t c)
{
    return s->pair + 2 * (c % s->n_ranks * s->per_rank + c / s->n_ranks);
}

static enum gguf_status sum_chunks(struct gg_calibrate_job *j,
                                   const struct gg_heldout *h, bool ends,
                                   size_t most, struct divergence *d,
                                   const struct chunk_sums *s,
                                   struct gguf_error *err)
{
    for (size_t c = 0; c < j->text.n_chunks; c++) {
        double *pair = find_pair(s, c);
        if (!gg_calibrate_owns(j, c))
            continue;
        d->sum = d->n = 0;
        GG_TRY(add_chunk(j, h, c, ends, most, d, err));
        pair[0] = d->sum;
        pair[1] = d->n;
    }
    return s->n_ranks > 1
               ? gg_calibrate_exchange(j, s->pair,
                                       s->per_rank * 2 * sizeof *s->pair, err)
               : GGUF_OK;
}

/* Mean of the rows of all chunks, added in order. NaN: no rows. */
static double average_chunks(const struct gg_calibrate_job *j,
                             const struct chunk_sums *s)
{
    double sum = 0, n = 0;
    for (size_t c = 0; c < j->text.n_chunks; c++) {
        const double *pair = find_pair(s, c);
        sum += pair[0];
        n += pair[1];
    }
    return n > 0 ? sum / n : (double)NAN;
}

enum gguf_status gg_calibrate_measure_divergence(struct gg_calibrate_job *j,
                                                 bool ends, double *mean,
                                                 struct gguf_error *err)
{
    const size_t most = GG_MIN(gguf_session_max_logits(j->stream[0].session),
                               gguf_session_max_logits(j->stream[1].session));
    struct divergence d = { 0 };
    struct chunk_sums s = { .n_ranks = gg_calibrate_n_ranks(j) };
    struct gg_heldout h;
    *mean = (double)NAN;
    if (!gg_model_has_logits(j->quantized))
        return GGUF_OK;
    gg_heldout_init(&h, j->text.n_chunks * j->text.n_ctx, j->text.n_ctx, 1);
    s.per_rank = (j->text.n_chunks + s.n_ranks - 1) / s.n_ranks;
    s.pair = gg_mem_alloc_zero(j->allocator, s.n_ranks * s.per_rank,
                               2 * sizeof *s.pair);
    d.token = gg_mem_alloc_zero(j->allocator, most, sizeof *d.token);
    enum gguf_status st =
        s.pair && d.token ? GGUF_OK
                          : gg_error_set_nomem(err, most * sizeof *d.token);
    if (st == GGUF_OK)
        st = sum_chunks(j, &h, ends, most, &d, &s, err);
    if (st == GGUF_OK)
        *mean = average_chunks(j, &s);
    gg_mem_free(j->allocator, d.token);
    gg_mem_free(j->allocator, s.pair);
    return st;
}
