/* SPDX-License-Identifier: MIT */
/* window.h - how texts are cut into the chunks of a scan */
#ifndef GG_EVAL_WINDOW_H
#define GG_EVAL_WINDOW_H

#include "gguf/eval.h"

/* Shorter batches are summed in another order (gguf/session.h): digits would
 * depend on what else is computed with them. */
enum { GG_WINDOW_LEAST = 4 };

struct gg_window_cut;

/* Texts one after another in one array of tokens. */
struct gg_window_list {
    const struct gguf_allocator *allocator;
    const struct gg_window_cut *cut;
    uint32_t n_ctx, first, stride;
    size_t n_texts;
    size_t *end;    /* [n_texts]: the token after the last of each */
    size_t *before; /* [n_texts + 1]: chunks of those before it */
};

/* One chunk. Row first + i predicts the token after it, token
 * begin + first + i + 1 of all. */
struct gg_window {
    size_t text;  /* number */
    size_t begin; /* token, of all */
    uint32_t n;   /* tokens */
    uint32_t first, n_rows;
};

/* n tokens cut as p says. GGUF_E_INVALID: what is wrong with p, or which text
 * is too short; GGUF_E_NOMEM. To be freed after a failure, too. */
enum gguf_status gg_window_init(struct gg_window_list *w,
                                const struct gguf_scan_params *p, size_t n,
                                const struct gguf_allocator *a,
                                struct gguf_error *err);
void gg_window_fini(struct gg_window_list *w);

static inline size_t gg_window_count(const struct gg_window_list *w)
{
    return w->before[w->n_texts];
}

/* chunk < gg_window_count */
struct gg_window gg_window_at(const struct gg_window_list *w, size_t chunk);

/* Rows of a chunk, at most. */
uint32_t gg_window_most_rows(const struct gg_window_list *w);

/* Does a BOS take the place of each chunk's first token, if the vocabulary has
 * one? */
bool gg_window_put_bos(const struct gg_window_list *w);

#endif
