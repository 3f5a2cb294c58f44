/* ppl.c - perplexity
 *
 * Chunks of the text are sequences of the session, as many at a time as go
 * through the model together. Logits come some rows at a time and are turned
 * into one number per token by the threads; the numbers are added up in the
 * order of the text.
 */
#include "config.h"
#include "eval/nll.h"

#include "base/mem.h"
#include "base/params.h"
#include "gguf/eval.h"
#include "run/session.h"

#include <math.h>

double gguf_ppl_value(const struct gguf_ppl *p)
{
    return p->n ? exp(p->sum / (double)p->n) : (double)NAN;
}

double gguf_ppl_error(const struct gguf_ppl *p)
{
    if (p->n < 2)
        return (double)NAN;
    double n = (double)p->n, mean = p->sum / n;
    double var = p->sum_sq / n - mean * mean;
    return var > 0 ? exp(mean) * sqrt(var / (n - 1)) : 0;
}

size_t gguf_ppl_n_chunks(size_t n_tokens, uint32_t n_ctx)
{
    return n_ctx && n_tokens / n_ctx >= 2 ? n_tokens / n_ctx : 0;
}

struct job {
    struct gguf_session *s;
    const struct gguf_ppl_params *p;
    const gguf_token *text;
    size_t n_chunks, end; /* of the text; behind the last to evaluate */
    gguf_token bos;       /* or GGUF_TOKEN_NONE: none is put in */
    uint32_t first;       /* position whose successor is scored first */
    uint32_t n_score;     /* tokens that are scored, per chunk */
    uint32_t group;       /* chunks that are evaluated together, at most */

    /* of a group: n_ctx * group each */
    gguf_token *token;
    int32_t *seq;
    uint8_t *want;
    gguf_token *next; /* n_score * group: what is scored */
    double *nll;      /* n_score * group */
};

/* ---- setting up ---- */

static enum gguf_status check(const struct gguf_session *s, size_t n,
                              const struct gguf_ppl_params *p,
                              struct gguf_error *err)
{
    if (!s)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "perplexity needs a session");
    if (p->n_ctx < 4 || p->n_ctx > gguf_session_n_ctx(s))
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "chunks of %" PRIu32 " tokens: must be 4 to %" PRIu32,
                       p->n_ctx, gguf_session_n_ctx(s));
    size_t n_chunks = gguf_ppl_n_chunks(n, p->n_ctx);
    if (!n_chunks)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "the text has %zu tokens; with chunks of %" PRIu32
                       " at least %" PRIu64 " are needed",
                       n, p->n_ctx, 2 * (uint64_t)p->n_ctx);
    if (p->first_chunk >= n_chunks)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "the first chunk is %zu, the text has %zu",
                       p->first_chunk, n_chunks);
    return GGUF_OK;
}

static enum gguf_status setup(struct job *j, struct gguf_error *err)
{
    const struct gguf_vocab *v =
        gguf_model_vocab(gguf_session_model(j->s));
    const struct gguf_allocator *a = j->s->allocator;
    uint32_t n_ctx = j->p->n_ctx;
    j->bos = gguf_vocab_add_bos(v) ? gguf_vocab_special(v, GGUF_SPECIAL_BOS)
                                   : GGUF_TOKEN_NONE;
    j->first = n_ctx / 2;
    j->n_score = n_ctx - j->first - 1;
    /* those that go through the model in one pass: more would only wait */
    j->group = gguf_session_n_ubatch(j->s) / n_ctx;
    j->group = GG_MAX(1, GG_MIN(j->group, gguf_session_n_seq(j->s)));
    if (j->group > j->end - j->p->first_chunk)
        j->group = (uint32_t)(j->end - j->p->first_chunk);
    uint64_t n = (uint64_t)n_ctx * j->group;
    j->token = gg_alloc_zero(a, n, sizeof *j->token);
    j->seq = gg_alloc_zero(a, n, sizeof *j->seq);
    j->want = gg_alloc_zero(a, n, sizeof *j->want);
    j->next = gg_alloc_zero(a, n, sizeof *j->next);
    j->nll = gg_alloc_zero(a, n, sizeof *j->nll);
    if (!j->token || !j->seq || !j->want || !j->next || !j->nll)
        return gg_fail_nomem(err, (size_t)n * sizeof *j->nll);
    return GGUF_OK;
}

/* ---- a group of chunks ---- */

static enum gguf_status decode_group(struct job *j, size_t chunk, uint32_t n,
                                     struct gguf_error *err)
{
    uint32_t n_ctx = j->p->n_ctx;
    size_t k = 0, m = 0;
    for (uint32_t q = 0; q < n; q++) {
        const gguf_token *text = j->text + (chunk + q) * n_ctx;
        for (uint32_t i = 0; i < n_ctx; i++, k++) {
            j->token[k] = i || j->bos == GGUF_TOKEN_NONE ? text[i] : j->bos;
            j->seq[k] = (int32_t)q;
            j->want[k] = i >= j->first && i + 1 < n_ctx;
            if (j->want[k])
                j->next[m++] = text[i + 1];
        }
    }
    struct gguf_batch b = { .n = k,
                            .token = j->token,
                            .seq = j->seq,
                            .want = j->want };
    gguf_session_clear(j->s);
    return gguf_session_decode(j->s, &b, err);
}

static enum gguf_status score_group(struct job *j, uint32_t n,
                                    struct gguf_error *err)
{
    struct gguf_model_info info;
    size_t most = gguf_session_max_logits(j->s), all = (size_t)n * j->n_score;
    info = *gguf_model_get_info(gguf_session_model(j->s));
    for (size_t i = 0; i < all; i += most) {
        size_t rows = GG_MIN(most, all - i);
        const float *logits;
        GG_TRY(gguf_session_logits(j->s, i, rows, &logits, err));
        gg_nll_rows(j->p->pool, logits, info.n_vocab, rows, j->next + i,
                    j->nll + i);
    }
    return GGUF_OK;
}

/* Say where the first number that is none came up, and why if the weights
 * show it. */
static enum gguf_status blame(const struct job *j, size_t chunk, uint32_t i,
                              struct gguf_error *err)
{
    struct gguf_error why;
    enum gguf_status st =
        gguf_model_scan_finite(gguf_session_model(j->s), j->p->pool, &why);
    return gg_fail(err, GGUF_E_NONFINITE,
                   st == GGUF_E_NONFINITE ? why.offset : GGUF_NO_OFFSET,
                   "chunk %zu: the probability of token %" PRIu32
                   " is no number: %s",
                   chunk + 1, j->first + i + 1,
                   st == GGUF_E_NONFINITE ? why.message
                                          : "the model's sums overflow");
}

static enum gguf_status add_chunk(struct job *j, size_t chunk, uint32_t q,
                                  struct gguf_ppl *out,
                                  struct gguf_error *err)
{
    struct gguf_ppl one = { j->n_score, 0, 0 };
    const double *x = j->nll + (size_t)q * j->n_score;
    for (uint32_t i = 0; i < j->n_score; i++) {
        if (!isfinite(x[i]))
            return blame(j, chunk, i, err);
        one.sum += x[i];
        one.sum_sq += x[i] * x[i];
    }
    out->n += one.n;
    out->sum += one.sum;
    out->sum_sq += one.sum_sq;
    if (j->p->on_chunk &&
        j->p->on_chunk(j->p->user, chunk, j->n_chunks, &one, out))
        return gg_fail(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET, "cancelled");
    return GGUF_OK;
}

static enum gguf_status report(const struct job *j, size_t chunk,
                               struct gguf_error *err)
{
    uint64_t n_ctx = j->p->n_ctx, begin = j->p->first_chunk;
    if (j->p->progress &&
        j->p->progress(j->p->user, (chunk - begin) * n_ctx,
                       (j->end - begin) * n_ctx))
        return gg_fail(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET, "cancelled");
    return GGUF_OK;
}

static enum gguf_status run(struct job *j, struct gguf_ppl *out,
                            struct gguf_error *err)
{
    size_t chunk = j->p->first_chunk;
    GG_TRY(report(j, chunk, err));
    while (chunk < j->end) {
        uint32_t n = (uint32_t)GG_MIN((size_t)j->group, j->end - chunk);
        GG_TRY(decode_group(j, chunk, n, err));
        GG_TRY(score_group(j, n, err));
        for (uint32_t q = 0; q < n; q++)
            GG_TRY(add_chunk(j, chunk + q, q, out, err));
        chunk += n;
        GG_TRY(report(j, chunk, err));
    }
    return GGUF_OK;
}

enum gguf_status gguf_ppl_run(struct gguf_session *session,
                              const gguf_token *token, size_t n,
                              const struct gguf_ppl_params *params,
                              struct gguf_ppl *out, struct gguf_error *err)
{
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    *out = (struct gguf_ppl){ 0, 0, 0 };
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_ppl_params", err));
    GG_TRY(check(session, n, &p, err));
    struct job j = { .s = session, .p = &p, .text = token };
    j.n_chunks = gguf_ppl_n_chunks(n, p.n_ctx);
    j.end = j.n_chunks;
    if (p.max_chunks && p.max_chunks < j.n_chunks - p.first_chunk)
        j.end = p.first_chunk + p.max_chunks;
    enum gguf_status st = setup(&j, err);
    if (st == GGUF_OK)
        st = run(&j, out, err);
    gguf_session_clear(session);
    gg_free(session->allocator, j.token);
    gg_free(session->allocator, j.seq);
    gg_free(session->allocator, j.want);
    gg_free(session->allocator, j.next);
    gg_free(session->allocator, j.nll);
    return st;
}
