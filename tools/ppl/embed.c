/* SPDX-License-Identifier: MIT */
/* embed.c - vectors of the lines of a text, saved row after row */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"

#include <gguf/outfile.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct embedding {
    struct ppl_run *run;
    struct gguf_session *session;
    const struct gguf_vocab *vocab;
    struct gguf_outfile *file;
    struct gguf_tokens tokens;
    bool each;   /* a row for each token, not for each line */
    size_t line; /* from 1 */
    uint8_t *bytes;
    struct gguf_error err;
};

static bool fail_embedding(const struct embedding *e, const char *file)
{
    return progress_fail(&e->run->bar, file, &e->err);
}

static bool fail_line(const struct embedding *e, const char *what, size_t n)
{
    progress_clear(&e->run->bar);
    msg_error(e->run->o->text, "line %zu %s (%zu tokens, -c %" PRIu32 ")",
              e->line, what, n, e->run->o->n_ctx);
    return false;
}

/* n_rows rows of n floats. */
static bool compute_rows(struct embedding *e, const float **row, size_t *n,
                         size_t *n_rows)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    uint8_t *want = msg_must(calloc(e->tokens.n, 1));
    b.n = e->tokens.n;
    b.token = e->tokens.id;
    b.want = memset(want, e->each, b.n);
    enum gguf_status st = gguf_session_clear(e->session, &e->err);
    if (st == GGUF_OK)
        st = e->run->model.encodes_first
                 ? gguf_session_encode(e->session, &b, &e->err)
                 : gguf_session_decode(e->session, &b, &e->err);
    *n_rows = e->each ? b.n : 1;
    *n = e->run->model.n_embd;
    if (st == GGUF_OK)
        st = e->each ? gguf_session_states(e->session, 0, b.n, row, &e->err)
                     : gguf_session_embedding(e->session, 0, row, n, &e->err);
    free(want);
    return st == GGUF_OK || fail_embedding(e, e->run->o->model);
}

static double length_of(const float *row, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)row[i] * (double)row[i];
    return sqrt(sum);
}

static void store_le(uint8_t out[4], float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    for (int k = 0; k < 4; k++)
        out[k] = (uint8_t)(u >> (8 * k));
}

static bool save_row(struct embedding *e, const float *row, size_t n)
{
    const double length = e->run->o->normalize ? length_of(row, n) : 1;
    if (!e->bytes) {
        e->bytes = msg_must(malloc(4 * n));
        e->run->width = n;
    }
    for (size_t i = 0; i < n; i++) {
        const float x = (float)((double)row[i] / (length > 0 ? length : 1));
        if (!isfinite(x)) {
            progress_clear(&e->run->bar);
            msg_error(e->run->o->model, "number %zu of line %zu is not finite",
                      i, e->line);
            return false;
        }
        store_le(e->bytes + 4 * i, x);
    }
    e->run->n_rows++;
    return gguf_outfile_write(e->file, e->bytes, 4 * (uint64_t)n, &e->err) ==
               GGUF_OK ||
           fail_embedding(e, e->run->o->embeddings);
}

static bool embed_line(struct embedding *e, const char *text, size_t size)
{
    const float *row;
    size_t n, n_rows;
    bool good = true;
    e->line++;
    e->tokens.n = 0;
    if (gguf_vocab_tokenize(e->vocab, text, size, GGUF_TOKENIZE_ADD_SPECIAL,
                            &e->tokens, &e->err) != GGUF_OK)
        return fail_embedding(e, e->run->o->text);
    if (!e->tokens.n)
        return fail_line(e, "has no tokens", 0);
    if (e->tokens.n > e->run->o->n_ctx)
        return fail_line(e, "does not fit into the context", e->tokens.n);
    e->run->n_tokens += e->tokens.n;
    if (!compute_rows(e, &row, &n, &n_rows))
        return false;
    for (size_t i = 0; i < n_rows && good; i++)
        good = save_row(e, row + i * n, n);
    return good;
}

static bool embed_all(struct embedding *e, const char *text, size_t size)
{
    for (size_t i = 0, n; i < size; i += n + 1) {
        const char *end = memchr(text + i, '\n', size - i);
        n = end ? (size_t)(end - text) - i : size - i;
        const bool cr = n && text[i + n - 1] == '\r';
        if (!embed_line(e, text + i, n - cr))
            return false;
        progress_report(&e->run->bar, i + n, size);
    }
    return e->line || fail_line(e, "is missing", 0);
}

bool ppl_save_embeddings(struct ppl_run *r, struct gguf_session *session,
                         const char *text)
{
    struct embedding e = { .run = r,
                           .session = session,
                           .tokens = GGUF_TOKENS_INIT };
    const double begin = progress_clock();
    e.vocab = gguf_model_vocab(gguf_session_model(session));
    e.each = r->o->pooling == GGUF_POOLING_NONE;
    if (!e.each && gguf_session_pooling(session) == GGUF_POOLING_NONE) {
        msg_error(r->o->model, "the file does not say how to pool; --pooling "
                               "does");
        return false;
    }
    if (gguf_outfile_open(&e.file, r->o->embeddings, 1, NULL, &e.err) !=
        GGUF_OK)
        return fail_embedding(&e, r->o->embeddings);
    progress_init(&r->bar, "embedding", "bytes", r->o->quiet);
    bool good = embed_all(&e, text, r->text_size);
    progress_clear(&r->bar);
    if (good && gguf_outfile_commit(e.file, &e.err) != GGUF_OK)
        good = fail_embedding(&e, r->o->embeddings);
    r->seconds = progress_clock() - begin;
    r->timings = *gguf_session_get_timings(session);
    gguf_outfile_destroy(e.file);
    gguf_tokens_fini(&e.tokens);
    free(e.bytes);
    r->pooling = gguf_session_pooling(session);
    if (good)
        ppl_print_rows(r);
    return good;
}
