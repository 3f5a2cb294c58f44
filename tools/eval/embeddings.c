/* SPDX-License-Identifier: MIT */
/* embeddings.c - saving a vector of each line of a text */
#include "config.h"
#include "tools/eval/eval.h"
#include "tools/common/msg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct embedding {
    struct eval *eval;
    struct gguf_session *session;
    struct gguf_tokens tokens;
    bool row_per_token; /* save a row for each token instead of each line */
    size_t line;        /* number of the current line, from 1 */
    float *unit;        /* [n_unit], a row after normalization */
    size_t n_unit;
};

static bool report_line(const struct embedding *e, const char *what, size_t n)
{
    progress_clear(&e->eval->run.bar);
    return msg_error(e->eval->o->text,
                     "line %zu %s (%zu tokens, -c %" PRIu32 ")", e->line, what,
                     n, e->eval->o->ev.n_ctx);
}

/* Compute the states of a line. */
static bool compute_line(struct embedding *e)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    bool *want = msg_must(calloc(e->tokens.n, sizeof *want));
    b.n = e->tokens.n;
    b.token = e->tokens.id;
    b.want = memset(want, e->row_per_token, b.n);
    const struct eval_pair *pair = e->eval->sentence.pair;
    if (pair && pair->has_types)
        b.type = pair->type;
    enum gguf_status st = gguf_session_clear(e->session, &e->eval->err);
    if (st == GGUF_OK)
        st = e->eval->model.info.encodes_first
                 ? gguf_session_encode(e->session, &b, &e->eval->err)
                 : gguf_session_decode(e->session, &b, &e->eval->err);
    free(want);
    return st == GGUF_OK || eval_fail(e->eval, e->eval->model.path);
}

/* Compute row i of the line: n floats, valid until the next call. */
static bool compute_row(struct embedding *e, size_t i, const float **row,
                        size_t *n)
{
    const enum gguf_status st =
        e->row_per_token
            ? gguf_session_token_embedding(e->session, i, row, n,
                                           &e->eval->err)
            : gguf_session_embedding(e->session, 0, row, n, &e->eval->err);
    return st == GGUF_OK || eval_fail(e->eval, e->eval->model.path);
}

static double compute_length(const float *row, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)row[i] * (double)row[i];
    return sqrt(sum);
}

/* A vector is normalised, and then cut, as by sentence-transformers. With
 * --normalize it is cut first. */
static bool save_row(struct embedding *e, const float *row, size_t n)
{
    const struct eval_sentence *s = &e->eval->sentence;
    const size_t kept = s->most_dims && s->most_dims < n ? s->most_dims : n;
    const double length =
        !s->normalizes ? 1
                       : compute_length(row, e->eval->o->normalize ? kept : n);
    n = kept;
    e->unit = msg_grow(e->unit, &e->n_unit, n, sizeof *e->unit);
    for (size_t i = 0; i < n; i++)
        e->unit[i] = (float)((double)row[i] / (length > 0 ? length : 1));
    return eval_write_row(e->eval, e->unit, n, "number", "line", e->line);
}

/* Keep the number of rows of the line. */
static void count_rows(struct eval_sentence *s, size_t n)
{
    s->count =
        msg_grow(s->count, &s->n_counts, s->n_lines + 1, sizeof *s->count);
    s->count[s->n_lines++] = n;
}

static bool tokenize_line(struct embedding *e, const char *text, size_t size)
{
    struct eval_sentence *s = &e->eval->sentence;
    const char *tab = s->pair ? memchr(text, '\t', size) : NULL;
    enum gguf_status st;
    if (s->pair && !tab)
        return report_line(e, "has no tab between a query and a document", 0);
    if (s->pair) {
        const struct gguf_str query = { text, (size_t)(tab - text) },
                              document = { tab + 1, size - query.size - 1 };
        bool cut;
        st = eval_pair_tokenize(e->eval, s->pair, query, document, s->most,
                                &cut, &e->tokens);
        s->n_cut += cut;
    } else {
        st = eval_sentence_tokenize(e->eval, s, text, size, &e->tokens);
    }
    return st == GGUF_OK || eval_fail(e->eval, e->eval->o->text);
}

static bool embed_line(struct embedding *e, const char *text, size_t size)
{
    const float *row;
    size_t n;
    bool good = true;
    e->line++;
    if (!tokenize_line(e, text, size))
        return false;
    if (!e->tokens.n)
        return report_line(e, "has no tokens", 0);
    if (e->tokens.n > e->eval->o->ev.n_ctx)
        return report_line(e, "is longer than the context", e->tokens.n);
    e->eval->run.n_tokens += e->tokens.n;
    const size_t n_rows = e->row_per_token ? e->tokens.n : 1;
    if (e->row_per_token)
        count_rows(&e->eval->sentence, n_rows);
    good = compute_line(e);
    for (size_t i = 0; i < n_rows && good; i++)
        good = compute_row(e, i, &row, &n) && save_row(e, row, n);
    return good;
}

static bool embed_lines(struct embedding *e, const char *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n + 1) {
        const char *end = memchr(text + i, '\n', size - i);
        n = end ? (size_t)(end - text) - i : size - i;
        const bool cr = n && text[i + n - 1] == '\r';
        if (!embed_line(e, text + i, n - cr))
            return false;
        progress_report(&e->eval->run.bar, i + n, size);
    }
    return e->line || report_line(e, "is missing", 0);
}

bool eval_embeddings(struct eval *eval)
{
    const struct eval_options *o = eval->o;
    const struct gguf_model_info *m = &eval->model.info;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct embedding e = { .eval = eval, .tokens = GGUF_TOKENS_INIT };
    struct eval_pair pair;
    sp.n_seq = 1;
    sp.n_ubatch =
        m->is_whole || m->encodes_first ? o->ev.n_ctx : o->ev.n_ubatch;
    if (!eval_begin_session(eval, &sp))
        return false;
    e.session = eval->model.session;
    eval->pooling = gguf_session_pooling(e.session);
    if ((o->pairs && !eval_pair_begin(eval, &pair)) ||
        !eval_sentence_begin(eval, &eval->sentence))
        return false;
    eval->sentence.pair = o->pairs ? &pair : NULL;
    e.row_per_token =
        eval->pooling == GGUF_POOLING_NONE &&
        (o->pooling == GGUF_POOLING_NONE || eval->sentence.per_token);
    if (!e.row_per_token && eval->pooling == GGUF_POOLING_NONE)
        return msg_error(o->model, "has no pooling_type: give --pooling");
    if (!eval_begin_rows(eval, "embedding", "bytes"))
        return false;
    const bool good = embed_lines(&e, eval->lines, eval->run.text_size);
    const bool saved = eval_end_rows(eval, good);
    eval_sentence_end(&eval->sentence);
    if (o->pairs)
        eval_pair_end(&pair);
    gguf_tokens_fini(&e.tokens);
    free(e.unit);
    return saved;
}
