/* SPDX-License-Identifier: MIT */
/* pretok_row.h - one way to cut a text into words, by tokenizer.ggml.pre */
#ifndef GG_VOCAB_PRETOK_ROW_H
#define GG_VOCAB_PRETOK_ROW_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

enum { GG_PRETOK_MAX_STAGES = 6 };

/* Where the words of a piece go: the byte after each, in order, the last of
 * which is the piece's size. What fails stops the cutting. */
typedef enum gguf_status gg_pretok_end_fn(void *user, size_t end,
                                          struct gguf_error *err);
struct gg_pretok_out {
    gg_pretok_end_fn *word;
    void *user;
};

/* Cut size bytes of UTF-8, not 0, without a regular expression. */
typedef enum gguf_status gg_pretok_cut_fn(const char *text, size_t size,
                                          const struct gg_pretok_out *out,
                                          struct gguf_error *err);

/* What cuts a piece that the stages before it have left: an expression, or a
 * function. */
struct gg_pretok_stage {
    const char *expr; /* NULL: none, cut does it */
    gg_pretok_cut_fn *cut;
};

struct gg_pretok_row {
    const char *names; /* of tokenizer.ggml.pre, separated by blanks */
    struct gg_pretok_stage stage[GG_PRETOK_MAX_STAGES];
    bool ignore_merges; /* a word that is a token is that token */
    bool add_bos;       /* unless the file says */
    bool force_bos;     /* whatever the file says */
    bool no_bos;        /* there is none by default */
    bool add_sep;       /* unless the file says */
    bool raw;        /* tokens are plain UTF-8, bytes have the text <0xHH> */
    bool meta_space; /* with raw: blanks are written as U+2581 */
    bool newlines;   /* a word of newlines that is a token is that token */
    bool keep_case;  /* "whitespace" does not lower the case */
};

/* The n-th row, or NULL after the last. */
const struct gg_pretok_row *gg_pretok_row(size_t n);
/* The row of a name, or NULL. */
const struct gg_pretok_row *gg_pretok_row_find(struct gguf_str name);

#endif
