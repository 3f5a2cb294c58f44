/* SPDX-License-Identifier: MIT */
/* window.c - how texts are cut into the chunks of a scan
 *
 * Each kind of cut is a row of a table: the number of chunks of a text of n
 * tokens, and the tokens and rows of chunk i. Chunk i depends on i alone, so
 * that any chunk can be computed without those before it. */
#include "config.h"
#include "eval/window.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/params.h"
#include "gguf/ppl.h"

#include <stdio.h>
#include <string.h>

/* Default of n_ctx. */
enum { DEFAULT_CTX = 512 };

struct gg_window_cut {
    bool strides;    /* it has a stride */
    uint32_t less;   /* its stride is at most n_ctx - less */
    bool has_bos;    /* a BOS takes the place of the first token */
    bool takes_rows; /* rows_from and first are allowed */
    bool any_length; /* a text may be shorter than a chunk */
    /* length of the shortest text that has a chunk */
    uint64_t (*min_tokens)(const struct gg_window_list *w);
    size_t (*n_chunks)(const struct gg_window_list *w, size_t n);
    /* largest number of rows of a chunk in texts of up to n tokens */
    size_t (*max_rows)(const struct gg_window_list *w, size_t n);
    /* out->begin is counted from the text's first token */
    void (*at)(const struct gg_window_list *w, size_t n, size_t i,
               struct gg_window *out);
};

static void set_window(struct gg_window *out, size_t begin, size_t end,
                       size_t scored, size_t scored_end)
{
    out->begin = begin;
    out->n = (uint32_t)(end - begin);
    out->first = (uint32_t)(scored - 1 - begin);
    out->n_rows = (uint32_t)(scored_end - scored);
}

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* ---- side by side ---- */

static uint64_t disjoint_tokens(const struct gg_window_list *w)
{
    return w->n_ctx;
}

static size_t n_disjoint(const struct gg_window_list *w, size_t n)
{
    return n / w->n_ctx;
}

static void disjoint_at(const struct gg_window_list *w, size_t n, size_t i,
                        struct gg_window *out)
{
    const size_t begin = i * w->n_ctx, end = begin + w->n_ctx;
    (void)n;
    set_window(out, begin, end, begin + w->first + 1, end);
}

static size_t disjoint_rows(const struct gg_window_list *w, size_t n)
{
    (void)n;
    return w->n_ctx - w->first - 1;
}

/* ---- sliding ---- */

static uint64_t sliding_tokens(const struct gg_window_list *w)
{
    (void)w;
    return GG_WINDOW_LEAST;
}

/* The last window is the first that reaches the end of the text. If windows do
 * not overlap, one of a single token would predict nothing. */
static size_t n_sliding(const struct gg_window_list *w, size_t n)
{
    if (n < GG_WINDOW_LEAST)
        return 0;
    if (n <= w->n_ctx)
        return 1;
    const size_t rest = n - w->n_ctx;
    return 1 + ceil_div(rest, w->stride) -
           (w->stride == w->n_ctx && rest % w->stride == 1);
}

static void sliding_at(const struct gg_window_list *w, size_t n, size_t i,
                       struct gg_window *out)
{
    size_t begin = i * w->stride;
    const size_t end = GG_MIN(begin + w->n_ctx, n);
    /* end of the window before */
    const size_t done = i ? begin - w->stride + w->n_ctx : 0;
    const size_t scored = GG_MAX(begin + 1, done);
    if (end - begin < GG_WINDOW_LEAST)
        begin = end - GG_WINDOW_LEAST;
    set_window(out, begin, end, scored, end);
}

static size_t sliding_rows(const struct gg_window_list *w, size_t n)
{
    return n ? GG_MIN(n, (size_t)w->n_ctx) - 1 : 0;
}

/* ---- llama.cpp's strides ---- */

static uint64_t strided_tokens(const struct gg_window_list *w)
{
    return (uint64_t)w->n_ctx + 1;
}

static size_t n_strided(const struct gg_window_list *w, size_t n)
{
    return n > w->n_ctx ? ceil_div(n - w->n_ctx, w->stride) : 0;
}

static void strided_at(const struct gg_window_list *w, size_t n, size_t i,
                       struct gg_window *out)
{
    const size_t begin = i * w->stride, end = begin + w->n_ctx;
    (void)n;
    set_window(out, begin, end, end - w->stride, end);
}

static size_t strided_rows(const struct gg_window_list *w, size_t n)
{
    (void)n;
    return w->stride;
}

/* ---- all cuts ---- */

static const struct gg_window_cut cuts[] = {
    [GGUF_SCAN_CHUNKS] = { .has_bos = true,
                           .takes_rows = true,
                           .min_tokens = disjoint_tokens,
                           .n_chunks = n_disjoint,
                           .max_rows = disjoint_rows,
                           .at = disjoint_at },
    [GGUF_SCAN_SLIDING] = { .strides = true,
                            .has_bos = true,
                            .any_length = true,
                            .min_tokens = sliding_tokens,
                            .n_chunks = n_sliding,
                            .max_rows = sliding_rows,
                            .at = sliding_at },
    [GGUF_SCAN_STRIDED] = { .strides = true,
                            .less = 1,
                            .min_tokens = strided_tokens,
                            .n_chunks = n_strided,
                            .max_rows = strided_rows,
                            .at = strided_at },
};

static enum gguf_status check_params(const struct gguf_scan_params *p,
                                     struct gguf_error *err)
{
    if ((size_t)p->cut >= GG_LEN(cuts))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "cut %d, must be 0 to 2", (int)p->cut);
    const struct gg_window_cut *c = &cuts[p->cut];
    if (c->any_length && p->n_ctx < GG_WINDOW_LEAST)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "n_ctx %" PRIu32 ", expected at least %d for a "
                            "sliding window",
                            p->n_ctx, GG_WINDOW_LEAST);
    const uint32_t most = c->strides ? p->n_ctx - c->less : 0;
    if (p->stride > most || (c->strides && !p->stride))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a stride of %" PRIu32 " tokens: must be %d to "
                            "%" PRIu32 " where chunks have %" PRIu32,
                            p->stride, c->strides, most, p->n_ctx);
    if ((unsigned)p->rows_from > GGUF_SCAN_FROM_FIRST)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "rows_from %d, must be 0 to %d", (int)p->rows_from,
                            (int)GGUF_SCAN_FROM_FIRST);
    if (p->rows_from == GGUF_SCAN_FROM_FIRST &&
        ((uint64_t)p->first + 2 > p->n_ctx || !c->takes_rows))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "rows from position %" PRIu32
                            " of chunks of %" PRIu32
                            " tokens: must be 0 to %" PRIu32 "%s",
                            p->first, p->n_ctx, p->n_ctx - 2,
                            c->takes_rows ? "" : ", of chunks side by side");
    return GGUF_OK;
}

static enum gguf_status too_short(const struct gg_window_list *w, size_t i,
                                  size_t n, struct gguf_error *err)
{
    char which[64] = "the text";
    if (w->n_texts > 1)
        snprintf(which, sizeof which, "text %zu of %zu", i + 1, w->n_texts);
    if (w->cut->any_length)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%s has %zu tokens: must be %d or more", which, n,
                            GG_WINDOW_LEAST);
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "%s has %zu tokens, a chunk %" PRIu32, which, n,
                        w->n_ctx);
}

/* Find the ends of texts, and the number of chunks before each. */
static enum gguf_status count_chunks(struct gg_window_list *w,
                                     const size_t *text_end, size_t n,
                                     struct gguf_error *err)
{
    for (size_t i = 0, begin = 0; i < w->n_texts; begin = w->text_end[i++]) {
        w->text_end[i] = text_end ? text_end[i] : n;
        if (w->text_end[i] < begin || w->text_end[i] > n)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "text %zu of %zu ends at token %zu: must be "
                                "%zu to %zu",
                                i + 1, w->n_texts, w->text_end[i], begin, n);
        const size_t n_chunks = w->cut->n_chunks(w, w->text_end[i] - begin);
        if (!n_chunks)
            return too_short(w, i, w->text_end[i] - begin, err);
        w->before[i + 1] = w->before[i] + n_chunks;
    }
    return GGUF_OK;
}

/* Select the chunks of the parameters. */
static enum gguf_status choose_chunks(struct gg_window_list *w,
                                      const struct gguf_scan_params *p,
                                      struct gguf_error *err)
{
    w->begin = p->first_chunk;
    w->end = gg_window_count(w);
    if (w->begin >= w->end)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the first chunk is %zu, the text has %zu",
                            w->begin, w->end);
    if (p->max_chunks && p->max_chunks < w->end - w->begin)
        w->end = w->begin + p->max_chunks;
    return GGUF_OK;
}

static void set_params(struct gg_window_list *w,
                       const struct gguf_scan_params *p)
{
    w->cut = &cuts[p->cut];
    w->n_ctx = p->n_ctx;
    w->stride = p->stride;
    /* half of 2 or 3 tokens must leave a token to predict */
    w->first = p->rows_from == GGUF_SCAN_SECOND_HALF
                   ? GG_MIN(p->n_ctx / 2, p->n_ctx - 2)
                   : p->first;
}

enum gguf_status gg_window_take_params(struct gguf_scan_params *own,
                                       const struct gguf_scan_params *params,
                                       struct gguf_error *err)
{
    *own = (struct gguf_scan_params)GGUF_SCAN_PARAMS_INIT;
    GG_TRY(gg_params_take(own, sizeof *own, params, "gguf_scan_params", err));
    own->n_ctx = own->n_ctx ? own->n_ctx : DEFAULT_CTX;
    return GGUF_OK;
}

enum gguf_status gg_window_init(struct gg_window_list *w,
                                const struct gguf_scan_params *p, size_t n,
                                const struct gguf_vocab *vocab,
                                const struct gguf_allocator *a,
                                struct gguf_error *err)
{
    GG_TRY(check_params(p, err));
    set_params(w, p);
    w->allocator = a;
    w->n_texts = p->text_end ? p->n_texts : 1;
    w->bos = !p->no_bos && w->cut->has_bos && gguf_vocab_wants_bos(vocab)
                 ? gguf_vocab_special_id(vocab, GGUF_SPECIAL_BOS)
                 : GGUF_TOKEN_NONE;
    if (!w->n_texts)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "no text is given");
    w->text_end = gg_mem_alloc_zero(a, w->n_texts, sizeof *w->text_end);
    w->before =
        gg_mem_alloc_zero(a, (uint64_t)w->n_texts + 1, sizeof *w->before);
    if (!w->text_end || !w->before)
        return gg_error_set_nomem(err, w->n_texts * sizeof *w->text_end);
    GG_TRY(count_chunks(w, p->text_end, n, err));
    return choose_chunks(w, p, err);
}

void gg_window_fini(struct gg_window_list *w)
{
    gg_mem_free(w->allocator, w->text_end);
    gg_mem_free(w->allocator, w->before);
}

struct gg_window gg_window_at(const struct gg_window_list *w, size_t chunk)
{
    size_t low = 0, high = w->n_texts; /* its text is among these */
    while (high - low > 1) {
        const size_t mid = low + (high - low) / 2;
        if (w->before[mid] <= chunk)
            low = mid;
        else
            high = mid;
    }
    const size_t begin = low ? w->text_end[low - 1] : 0;
    struct gg_window out = { .text = low };
    w->cut->at(w, w->text_end[low] - begin, chunk - w->before[low], &out);
    out.begin += begin;
    return out;
}

uint32_t gg_window_max_rows(const struct gg_window_list *w)
{
    return (uint32_t)w->cut->max_rows(w, SIZE_MAX);
}

void gg_window_copy(const struct gg_window_list *w,
                    const struct gg_window *chunk, const gguf_token *text,
                    gguf_token *out)
{
    memcpy(out, text + chunk->begin, chunk->n * sizeof *out);
    if (w->bos != GGUF_TOKEN_NONE)
        out[0] = w->bos;
}

/* ---- for callers ---- */

/* Set the cut of a caller's parameters. Returns false if they are wrong. */
static bool take_params_cut(struct gg_window_list *w,
                            const struct gguf_scan_params *params)
{
    struct gguf_scan_params p;
    *w = (struct gg_window_list){ .n_texts = 1 };
    if (gg_window_take_params(&p, params, NULL) != GGUF_OK ||
        check_params(&p, NULL) != GGUF_OK)
        return false;
    set_params(w, &p);
    return true;
}

size_t gguf_scan_n_chunks(size_t n_tokens,
                          const struct gguf_scan_params *params)
{
    struct gg_window_list w;
    return take_params_cut(&w, params) ? w.cut->n_chunks(&w, n_tokens) : 0;
}

uint64_t gguf_scan_min_tokens(const struct gguf_scan_params *params)
{
    struct gg_window_list w;
    return take_params_cut(&w, params) ? w.cut->min_tokens(&w) : 0;
}

size_t gguf_scan_max_rows(size_t n_tokens,
                          const struct gguf_scan_params *params)
{
    struct gg_window_list w;
    return take_params_cut(&w, params) ? w.cut->max_rows(&w, n_tokens) : 0;
}

uint64_t gguf_ppl_min_tokens(const struct gguf_scan_params *params)
{
    struct gg_window_list w;
    if (!take_params_cut(&w, params))
        return 0;
    return w.cut->any_length ? w.cut->min_tokens(&w) : 2 * (uint64_t)w.n_ctx;
}

size_t gguf_ppl_n_chunks(size_t n_tokens,
                         const struct gguf_scan_params *params)
{
    return n_tokens < gguf_ppl_min_tokens(params)
               ? 0
               : gguf_scan_n_chunks(n_tokens, params);
}

uint32_t gguf_scan_strided_ctx(uint32_t n_ctx, uint32_t stride)
{
    const uint64_t n = (uint64_t)n_ctx + stride / 2;
    const uint64_t up = (n + 255) / 256 * 256;
    return up > UINT32_MAX ? 0 : (uint32_t)up;
}
