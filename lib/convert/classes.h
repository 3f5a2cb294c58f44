/* SPDX-License-Identifier: MIT */
/* classes.h - one row for each architecture of Hugging Face's transformers
 *
 * A row has the classes' names (config.json, "architectures"), the name that
 * GGUF files have, lists of names of tensors, and keys beyond those that all
 * have. Names and transforms are facts of the checkpoints of each model and of
 * what files of its architecture are to have (model/arch.h, model/weight.h).
 */
#ifndef GG_CONVERT_CLASSES_H
#define GG_CONVERT_CLASSES_H

#include "gguf/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* What is done to the numbers of a tensor. */
enum gg_convert_how {
    GG_HOW_AS_IS,
    GG_HOW_ROPE_Q, /* rows of each head from halves to pairs, if the row of the
                    * architecture says so: of queries */
    GG_HOW_ROPE_K, /* of keys */
    GG_HOW_PLUS_1,
    GG_HOW_TURN,    /* rows and columns change places */
    GG_HOW_SQUEEZE, /* dimensions of one are left out */
    GG_HOW_NEG_EXP, /* -e^x, and squeezed */
    GG_HOW_HALF_1,  /* the first half of the rows, the second */
    GG_HOW_HALF_2,
    GG_HOW_PLUS_5TH,
    GG_HOW_PLUS_11TH, /* 1 / 5^1.5 */
    GG_HOW_NEG_HALF, /* the second half of each head's rows negated: head_dim */
    GG_HOW_INDEX,    /* whole numbers, which stay such, of 32 bits */
    GG_HOW_TERNARY,  /* -1, 0 or 1 times the mean of their magnitudes */
    GG_HOW_HALVES,   /* rows of each head from pairs to halves, as far as they
                      * turn; the others stay */
    GG_HOW_PAIR,     /* a row of zeros after it, if it has one row */
    GG_HOW_FILL,     /* rows of zeros after it, as many as vocab_size wants */
    GG_N_HOWS
};

/* What a tensor of the folder becomes. from: its name without ".weight" or
 * ".bias", which it keeps, or the whole name; % stands for the number of the
 * layer, @ for that of an expert. to: the name in GGUF files; NULL: it carries
 * nothing; "=KEY": it is a number of that key (numbers.c). Several rows of one
 * list may have one "from", which then is cut, or one "to", which is put
 * together in their order; experts are stacked. */
struct gg_convert_name {
    const char *from, *to;
    uint8_t how;       /* enum gg_convert_how */
    const char *axes;  /* how the elements are put (axes.c); NULL: by how */
    const char *scale; /* expression (expr.h) by which they are multiplied, or
                        * two with a ',' between; NULL: by none */
};

enum gg_convert_kind {
    GG_KIND_U32,
    GG_KIND_F32,
    GG_KIND_BOOL,
    GG_KIND_STR,
    GG_KIND_LABELS, /* texts of an object with "0", "1" ... */
    /* hf is an expression (expr.h), computed once, or for each layer; nothing
     * is written if something in it is missing, in the first layer if for
     * each. */
    GG_KIND_U32_OF,
    GG_KIND_F32_OF,
    GG_KIND_BOOL_OF,
    GG_KIND_EACH_U32,
    GG_KIND_EACH_F32,
    GG_KIND_EACH_BOOL
};

/* What config.json says. key: after "ARCH."; with a '/' in front it has no
 * prefix; hf: names in config.json, of which the first that is there counts;
 * "=TEXT" and "=N,N": what it always is. */
struct gg_convert_key {
    const char *key, *hf;
    uint8_t kind; /* enum gg_convert_kind */
    double value; /* if hf is NULL: what it always is; else what it is if it is
                    * not there, 0: nothing */
};
#define GG_CONVERT_KEY(KEY, HF, KIND, VALUE)                                  \
    {                                                                         \
        KEY, HF, GG_KIND_##KIND, VALUE                                        \
    }

struct gg_convert_arch {
    const char *classes; /* separated by blanks */
    const char *arch;
    const char *when;   /* expression: it is this row if it is true; NULL: it
                        * is; the first row of a class counts */
    const char *strip;  /* prefixes of names, separated by blanks, of which the
                        * first that is there is left out; NULL */
    const char *before; /* what names that do not begin with it get in front;
                         * NULL */
    const char *skip;   /* prefixes of names that carry nothing, separated by
                         * blanks; NULL */
    const char *layers; /* expression: how many there are, with those that
                         * draft; what is of later ones is left out. NULL: as
                         * many as there are */
    const char *drafts; /* what names of layers that draft begin with, up to
                         * the number: from 0, those of the layers after the
                         * others; NULL: as others */
    const struct gg_convert_name *names[5]; /* lists, each ends with NULLs; the
                                             * first that has the name counts */
    const struct gg_convert_key *keys; /* ends with NULLs; they come before
                                        * those of all, and instead of them */
    const struct gg_convert_key *last; /* likewise; they come after those of
                                        * the tokenizer, and instead of them */
    const char *roles;  /* "eot=<|user|> ...": tokens with a meaning, where
                         * no file of the tokenizer says which; NULL */
    const char *pieces; /* tokenizer.ggml.model of a BPE with a piece for each
                         * byte; NULL: llama */
    int n_dense;        /* matrices after pooling that it has (modules.c), */
    bool dense_asked;   /* if they are asked for */
    bool only_keys;     /* those are all that there are */
    bool turned;        /* queries and keys are permuted: GG_HOW_ROPE_... */
    bool rope_count;    /* rope.dimension_count is written */
    bool vocab_size;    /* vocab_size is written */
    bool ties;          /* transformers' default of tie_word_embeddings */
    bool drops_copy;    /* an output matrix that is equal to the embedding is
                         * left out */
};

/* The n-th row, NULL after the last; has it the class? */
const struct gg_convert_arch *gg_convert_arch_row(size_t n);
bool gg_convert_arch_has(const struct gg_convert_arch *arch,
                         struct gguf_str class_name);

#endif
