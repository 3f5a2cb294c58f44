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
    size_t *text_end;  /* [n_texts]: the token after the last of each text */
    size_t *before;    /* [n_texts + 1]: number of chunks before each text */
    size_t begin, end; /* chunks that params choose: begin to end - 1 */
    gguf_token bos;    /* takes the place of each chunk's first token; or
                        * GGUF_TOKEN_NONE */
};

/* One chunk. Row first + i predicts the token after it, token
 * begin + first + i + 1 of all. */
struct gg_window {
    size_t text;  /* number */
    size_t begin; /* token, of all */
    uint32_t n;   /* tokens */
    uint32_t first, n_rows;
};

/* Copy a caller's params (NULL: the defaults) to own, with defaults filled in.
 * GGUF_E_INVALID: struct_size. */
enum gguf_status gg_window_take_params(struct gguf_scan_params *own,
                                       const struct gguf_scan_params *params,
                                       struct gguf_error *err);

/* Cut n tokens by the params p. vocab, or NULL, decides about the BOS.
 * GGUF_E_INVALID: a wrong member of p, a text that is too short, a first chunk
 * that there is not; GGUF_E_NOMEM. Call gg_window_fini() after a failure, too.
 */
enum gguf_status gg_window_init(struct gg_window_list *w,
                                const struct gguf_scan_params *p, size_t n,
                                const struct gguf_vocab *vocab,
                                const struct gguf_allocator *a,
                                struct gguf_error *err);
void gg_window_fini(struct gg_window_list *w);

static inline size_t gg_window_count(const struct gg_window_list *w)
{
    return w->before[w->n_texts];
}

/* chunk < gg_window_count */
struct gg_window gg_window_at(const struct gg_window_list *w, size_t chunk);

/* The largest number of rows of a chunk, whatever the texts' length. */
uint32_t gg_window_max_rows(const struct gg_window_list *w);

/* Where text i begins among all tokens. */
static inline size_t gg_window_text_begin(const struct gg_window_list *w,
                                          size_t i)
{
    return i ? w->text_end[i - 1] : 0;
}

/* Copy the tokens of a chunk to out as a model gets them, with the BOS. text:
 * all tokens that were cut. */
void gg_window_copy(const struct gg_window_list *w,
                    const struct gg_window *chunk, const gguf_token *text,
                    gguf_token *out);

#endif
