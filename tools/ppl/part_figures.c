/* SPDX-License-Identifier: MIT */
/* part_figures.c - figures of a text from the records of its chunks
 *
 * Scores are added up chunk by chunk in the order of the text, as in one
 * process, so that the digits are the same. The file of --per-token and the
 * pages get them in that order, too.
 */
#include "config.h"
#include "tools/ppl/part.h"
#include "tools/ppl/report.h"
#include "tools/common/msg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- outputs ---- */

/* Find the text of a chunk. Chunks come in order. */
static size_t find_text(struct ppl_run *r, size_t chunk)
{
    while (r->text_at + 1 < r->e.n_texts &&
           chunk >= r->e.texts[r->text_at + 1].first_chunk)
        r->text_at++;
    return r->text_at;
}

static void begin_outputs(struct ppl_run *r, const struct gguf_part *p,
                          struct ppl_outputs *x)
{
    const double *head = gguf_part_chunk_values(p, r->e.first_chunk);
    r->text_at = 0;
    if (x->pages)
        ppl_report_begin(x->pages,
                         r->o->stride ? 0 : (uint32_t)head[PPL_FIRST],
                         r->o->ev.n_ctx);
}

/* Add a chunk to the outputs, after its sums. nll: its scores; NULL with a
 * base. */
static bool add_outputs(struct ppl_run *r, const struct gguf_part *p,
                        size_t chunk, const double *nll, struct ppl_outputs *x)
{
    const double *head = gguf_part_chunk_values(p, chunk);
    struct gguf_error err;
    size_t n = 0;
    (void)gguf_part_row_values(p, chunk, &n);
    struct ppl_rows rows = { .chunk = chunk,
                             .text = find_text(r, chunk),
                             .first = (uint32_t)head[PPL_FIRST],
                             .n = (uint32_t)n,
                             .nll = nll };
    if (x->pages)
        ppl_report_add(x->pages, &rows);
    if (!x->per_token)
        return true;
    rows.token = x->tokens->id + (size_t)head[PPL_AT];
    return ppl_per_token_add(x->per_token, &rows, &err) == GGUF_OK ||
           msg_fail(r->o->per_token, &err);
}

/* ---- perplexity ---- */

static struct gguf_ppl sum_chunk(const struct gguf_part *p, size_t chunk)
{
    struct gguf_ppl one = GGUF_PPL_INIT;
    const double *head = gguf_part_chunk_values(p, chunk);
    size_t n = 0;
    const double *x = gguf_part_row_values(p, chunk, &n);
    one.n_bytes = (uint64_t)head[PPL_BYTES];
    one.n_words = (uint64_t)head[PPL_WORDS];
    one.n = n;
    for (size_t k = 0; k < n; k++) {
        one.sum += x[k];
        one.sum_sq += x[k] * x[k];
    }
    return one;
}

static bool add_ppl(struct ppl_run *r, const struct gguf_part *p,
                    struct ppl_outputs *x)
{
    struct gguf_error err;
    for (size_t i = 0; i < r->e.n_chunks; i++) {
        const size_t chunk = r->e.first_chunk + i;
        size_t n;
        r->sums[i] = sum_chunk(p, chunk);
        r->n_done = i + 1;
        if (gguf_ppl_add(&r->total, &r->sums[i], &err) != GGUF_OK)
            return msg_fail(NULL, &err);
        ppl_add_chunk_to_text(r, chunk, &r->sums[i]);
        if (!r->o->ev.json)
            ppl_print_chunk(r);
        if (!add_outputs(r, p, chunk, gguf_part_row_values(p, chunk, &n), x))
            return false;
    }
    return true;
}

bool ppl_part_print_text(struct ppl_run *r, struct ppl_side *side,
                         const struct gguf_part *p, struct ppl_outputs *x)
{
    (void)side;
    if (!r->sums)
        r->sums = msg_must(calloc(r->e.n_chunks, sizeof *r->sums));
    r->total = (struct gguf_ppl)GGUF_PPL_INIT;
    begin_outputs(r, p, x);
    bool good = add_ppl(r, p, x);
    good = ppl_per_token_close(x->per_token, good);
    good = ppl_report_close(x->pages, good, NULL);
    if (good && r->o->ev.json)
        ppl_print_json(r, stdout);
    else if (good)
        ppl_print_end(r);
    return good;
}

/* ---- divergence ---- */

/* Add the tokens of a chunk to the divergence of model m. */
static bool add_tokens(struct gguf_kld *kld, const struct gguf_part *p,
                       size_t chunk, size_t m, struct gguf_error *err)
{
    const size_t step = gguf_part_n_row_values(p);
    size_t n = 0;
    const double *v = gguf_part_row_values(p, chunk, &n);
    struct gguf_kld_token *t = msg_must(calloc(n + 1, sizeof *t));
    for (size_t i = 0; i < n; i++) {
        const double *w = v + i * step + m * PPL_VALUES;
        t[i] = (struct gguf_kld_token){ w[0], w[1], w[2], w[3] > 0 };
    }
    const enum gguf_status st = gguf_kld_add(kld, t, n, err);
    free(t);
    return st == GGUF_OK;
}

/* Count the bytes and words of text that a chunk scores. */
static void count_text(struct ppl_run *r, const struct gguf_part *p,
                       size_t chunk)
{
    const double *head = gguf_part_chunk_values(p, chunk);
    size_t n = 0;
    (void)gguf_part_row_values(p, chunk, &n);
    const uint64_t n_bytes = (uint64_t)head[PPL_BYTES];
    const uint64_t n_words = (uint64_t)head[PPL_WORDS];
    r->n_bytes += n_bytes;
    r->n_words += n_words;
    if (r->e.n_texts) {
        struct gguf_ppl *s = &r->e.texts[find_text(r, chunk)].sums;
        s->n += n;
        s->n_bytes += n_bytes;
        s->n_words += n_words;
    }
}

static bool add_divergences(struct ppl_run *r, struct ppl_side *s,
                            const struct gguf_part *p, struct ppl_outputs *x)
{
    struct gguf_error err;
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    for (size_t m = 0; m < s->n; m++)
        if (gguf_kld_create(&s->kld[m], &kp, &err) != GGUF_OK)
            return msg_fail(NULL, &err);
    for (size_t i = 0; i < r->e.n_chunks; i++) {
        const size_t chunk = r->e.first_chunk + i;
        for (size_t m = 0; m < s->n; m++)
            if (!add_tokens(s->kld[m], p, chunk, m, &err))
                return msg_fail(NULL, &err);
        count_text(r, p, chunk);
        r->n_done = i + 1;
        if (!r->o->ev.json)
            ppl_print_side_chunk(s, chunk);
        if (!add_outputs(r, p, chunk, NULL, x))
            return false;
    }
    return true;
}

bool ppl_part_print_side(struct ppl_run *r, struct ppl_side *side,
                         const struct gguf_part *p, struct ppl_outputs *x)
{
    begin_outputs(r, p, x);
    bool good = add_divergences(r, side, p, x);
    good = ppl_per_token_close(x->per_token, good);
    if (good && (!x->tokens || ppl_layer_map_measure(x->pages, x->tokens)))
        return ppl_side_report(side, x->pages);
    (void)ppl_report_close(x->pages, false, NULL);
    if (good)
        progress_raise();
    return false;
}
