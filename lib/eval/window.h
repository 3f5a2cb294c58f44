/* SPDX-License-Identifier: MIT */
/* window.h - chunks of a scan: how texts are cut */
#ifndef GG_EVAL_WINDOW_H
#define GG_EVAL_WINDOW_H

#include "gguf/eval.h"

/* Least number of tokens of a chunk. Shorter batches are summed in another
 * order (gguf/session.h), and digits would depend on other chunks in the
 * batch. */
enum { GG_WINDOW_LEAST = 4 };

struct gg_window_cut;

/* Chunks of texts that lie one after another in an array of tokens. */
struct gg_window_list {
    const struct gguf_allocator *allocator;
    const struct gg_window_cut *cut;
    uint32_t n_ctx, first, stride;
    size_t n_texts;
    size_t *text_end; /* [n_texts], index after the last token of each text */
    size_t *before;   /* [n_texts + 1], number of chunks before each text */
    /* chunks that the parameters select: begin to end - 1 */
    size_t begin, end;
    /* token that replaces each chunk's first token; GGUF_TOKEN_NONE: none */
    gguf_token bos;
};

/* A chunk. Its row first + i predicts token begin + first + i + 1 of the
 * array. */
struct gg_window {
    size_t text;  /* number of its text */
    size_t begin; /* index of its first token in the array */
    uint32_t n;   /* number of tokens */
    uint32_t first, n_rows;
};

/* Copy a caller's parameters (NULL: the defaults) to own, with defaults filled
 * in. GGUF_E_INVALID: struct_size is wrong. */
enum gguf_status gg_window_take_params(struct gguf_scan_params *own,
                                       const struct gguf_scan_params *params,
                                       struct gguf_error *err);

/* Cut n tokens as the parameters p say. vocab decides about the BOS; NULL:
 * none. GGUF_E_INVALID: a member of p is out of range, a text is too short, or
 * the first chunk does not exist. GGUF_E_NOMEM. gg_window_fini() must follow a
 * failure, too. */
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

/* Chunk with a number below gg_window_count(). */
struct gg_window gg_window_at(const struct gg_window_list *w, size_t chunk);

/* Largest number of rows of a chunk, for texts of any length. */
uint32_t gg_window_max_rows(const struct gg_window_list *w);

/* Index of the first token of text i in the array. */
static inline size_t gg_window_text_begin(const struct gg_window_list *w,
                                          size_t i)
{
    return i ? w->text_end[i - 1] : 0;
}

/* Copy the tokens of a chunk to out, with the BOS. text: the array that was
 * cut. */
void gg_window_copy(const struct gg_window_list *w,
                    const struct gg_window *chunk, const gguf_token *text,
                    gguf_token *out);

#endif
