/* SPDX-License-Identifier: MIT */
/* pretok_row.h - a way to cut a text into words, by tokenizer.ggml.pre */
#ifndef GG_VOCAB_PRETOK_ROW_H
#define GG_VOCAB_PRETOK_ROW_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

enum { GG_PRETOK_MAX_STAGES = 6 };

/* Receiver of the words of a piece: called with the byte after each word, in
 * order; the last one is the size of the piece. A failure ends the cutting. */
typedef enum gguf_status gg_pretok_end_fn(void *user, size_t end,
                                          struct gguf_error *err);
struct gg_pretok_out {
    gg_pretok_end_fn *word;
    void *user;
};

/* Cut size bytes of UTF-8, size > 0, without a regular expression. */
typedef enum gguf_status gg_pretok_cut_fn(const char *text, size_t size,
                                          const struct gg_pretok_out *out,
                                          struct gguf_error *err);

/* A stage cuts the pieces from the stage before: by an expression, or by a
 * function. */
struct gg_pretok_stage {
    const char *expr; /* NULL: cut does it */
    gg_pretok_cut_fn *cut;
};

struct gg_pretok_row {
    const char *names; /* names of tokenizer.ggml.pre, separated by blanks */
    struct gg_pretok_stage stage[GG_PRETOK_MAX_STAGES];
    bool ignore_merges; /* a word that is a token is that token */
    bool add_bos;       /* default of the file's key */
    bool force_bos;     /* true, whatever the file says */
    bool no_bos;        /* a BOS is not the default */
    bool add_sep;       /* default of the file's key */
    bool raw;        /* tokens are plain UTF-8, bytes have the text <0xHH> */
    bool meta_space; /* blanks are written as U+2581, if raw */
    bool newlines;   /* a word of newlines that is a token is that token */
    bool keep_case;  /* "whitespace" keeps the case of letters */
};

/* The n-th row; NULL after the last. */
const struct gg_pretok_row *gg_pretok_row(size_t n);
/* The row of a name; NULL: none. */
const struct gg_pretok_row *gg_pretok_row_find(struct gguf_str name);

#endif
