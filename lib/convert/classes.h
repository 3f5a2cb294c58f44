/* SPDX-License-Identifier: MIT */
/* classes.h - one row for each architecture of Hugging Face's transformers
 *
 * A row has the classes' names (config.json, "architectures"), the name that
 * GGUF files have, lists of names of tensors, and keys beyond those that all
 * have. Names and transforms are facts of the checkpoints of each model and of
 * what files of its architecture are to have (model/arch.h,
 * model/weight/weight.h).
 */
#ifndef GG_CONVERT_CLASSES_H
#define GG_CONVERT_CLASSES_H

#include "convert/hf_config.h"
#include "data/composed.h"
#include "gguf/memory.h"

#include <stdbool.h>
#include <stdint.h>

struct gguf_convert;
struct gg_back_maker;
struct gg_convert_view;

/* Settles what config.json says in several ways, before keys are computed. */
typedef enum gguf_status gg_convert_fix_config_fn(struct gguf_convert *c,
                                                  struct gguf_error *err);

/* Puts members into config.json that the way back makes (back_maker.h). */
typedef void gg_back_fn(struct gg_back_maker *m);

/* Change of the halves of an adapter's pair, for the change of a weight. */
enum gg_convert_pair {
    GG_PAIR_REFUSED, /* the weight has no pair */
    GG_PAIR_ROWS,    /* rows of B go where the weight's rows do */
    GG_PAIR_AS_IS
};

/* Dimensions of a tensor, the fastest first; 1 from n on. */
struct gg_convert_dims {
    unsigned n;
    int64_t ne[4];
};

/* Inverse of a view: turn the dimensions of the file's tensor into those of the
 * folder's. *open, at first the slowest, is the dimension that follows from the
 * number of elements: the file may have a part of it, or several in one. */
typedef void gg_convert_shape_fn(struct gg_convert_dims *d, unsigned *open);

/* Change of a tensor: of its numbers, and of the order of its elements. */
struct gg_convert_transform {
    const char *text; /* name of the change in lists */
    /* Set the place of each element (convert_int.h); NULL: as it is. */
    enum gguf_status (*view)(struct gg_convert_view *v,
                             struct gguf_error *err);
    gg_convert_shape_fn *shape; /* inverse of view; NULL: they stay */
    gg_composed_fn *change;     /* new numbers; NULL: as they are */
    gg_composed_fn *back;       /* inverse of change; NULL: without change */
    enum gg_convert_pair pair;
    bool if_permuted; /* the class must be turned, else nothing changes */
    bool if_added;    /* rows must be added, else nothing changes */
    bool is_i32;      /* whole numbers of 32 bits */
    bool has_mean;    /* change rounds by the mean of all (back_ternary.c) */
};

/* What a tensor of the folder becomes. from: its name without ".weight" or
 * ".bias", which it keeps, or the whole name; % stands for the number of the
 * layer, @ for that of an expert. to: the name in GGUF files; NULL: it carries
 * nothing; "=KEY": it is a number of that key (numbers.c). Several rows of one
 * list may have one "from", which then is cut, or one "to", which is put
 * together in their order; experts are stacked. */
struct gg_convert_name {
    const char *from, *to;
    const struct gg_convert_transform *transform; /* NULL: as they are */
    const char *axes;     /* how the elements are put (axes.c); NULL: by how */
    const char *scale[2]; /* names in config.json of factors, applied one after
                           * the other; NULL, or missing there: 1 */
    gg_hf_config_layer_fn *scale_of; /* a factor that is computed, NAN: none;
                                      * NULL */
    gg_hf_config_layer_fn *only_if;  /* way back: among several names that
                                      * become one, a layer has this one if it
                                      * is above 0; NULL: the first is taken */
    const char *n_rows; /* way back: name in config.json of the number of rows,
                         * where the file adds rows of zeros; NULL */
};

enum gg_convert_kind {
    GG_KIND_U32,
    GG_KIND_F32,
    GG_KIND_BOOL,
    GG_KIND_STR,
    GG_KIND_LABELS, /* texts of an object with "0", "1" ... */
    /* a number that is computed, once or for each layer; without a result the
     * key is left out, as is a list whose first layer has no result */
    GG_KIND_U32_OF,
    GG_KIND_F32_OF,
    GG_KIND_BOOL_OF,
    GG_KIND_EACH_U32,
    GG_KIND_EACH_F32,
    GG_KIND_EACH_BOOL
};

/* A key of GGUF files.
 *
 * key      its name after "ARCH."; its whole name after '/'
 * hf       names in config.json; the first that is there counts. "=TEXT" and
 *          "=N,N": a constant
 * value    the key's value if hf is NULL or not there; 0: the key is left out
 *
 * Kinds ..._OF and EACH_... are numbers: of or of_layer computes what hf does
 * not say, value NAN leaves the key out, and above_0 leaves out a number that
 * is not above 0.
 *
 * The way back puts the key's value under one of the names of hf, and calls
 * back, the inverse of of or of_layer. A computed key without either is put by
 * gg_convert_arch.back, or no member of config.json depends on it. */
struct gg_convert_key {
    const char *key, *hf;
    uint8_t kind; /* enum gg_convert_kind */
    bool above_0;
    double value;
    gg_hf_config_fn *of;
    gg_hf_config_layer_fn *of_layer;
    gg_back_fn *back;
};

/* A size that texts on axes name (axes.c): a number of config.json, of the
 * layer where it is a list, or one that is computed. */
struct gg_convert_size {
    const char *name, *hf;
    gg_hf_config_fn *of;
    gg_hf_config_layer_fn *of_layer;
};

#define GG_CONVERT_KEY(KEY, HF, KIND, VALUE)                                  \
    {                                                                         \
        .key = KEY, .hf = HF, .kind = GG_KIND_##KIND, .value = VALUE          \
    }

/* Numbers that a class of language models has by default, which folders leave
 * out where that model is within another. */
struct gg_convert_default {
    const char *name;
    double value;
};
struct gg_convert_defaults {
    const char *model_type;
    struct gg_convert_default value[9]; /* up to one without a name */
};
/* Find the defaults of a model_type, or NULL. */
const struct gg_convert_defaults *
gg_convert_find_defaults(struct gguf_str model_type);

/* Sizes that all architectures have (shared_keys.c); ends with NULLs. */
extern const struct gg_convert_size gg_convert_sizes[];

struct gg_convert_arch {
    const char *classes; /* separated by blanks */
    const char *arch;
    gg_hf_config_test_fn
        *when;              /* is it this row? NULL: it is; the first row of
                                 * a class counts, and all are in one family */
    const char *model_type; /* way back: in config.json; NULL: the class's name
                             * in small letters */
    const char *instead[5][2]; /* way back: a usual name in config.json, and
                                * the one that the class has instead */
    const char *strip;  /* prefixes of names, separated by blanks, of which the
                        * first that is there is left out; NULL */
    const char *before; /* what names that do not begin with it get in front;
                         * NULL */
    const char *skip;   /* prefixes of names that carry nothing, separated by
                         * blanks; NULL */
    const char *nextn;  /* name in config.json of the number of layers that
                         * draft, after the others; tensors of later layers are
                         * left out. "": no layer drafts. NULL: all layers of
                         * the folder are kept */
    int n_nextn;        /* number of them if config.json does not say */
    bool nextn_by_names; /* the folder's tensors say it then */
    const char *drafts;  /* prefix of names in layers that draft, which are
                         * counted from 0 after it; NULL: these layers are
                         * named and counted like others */
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
    const struct gg_convert_size *sizes;  /* that axes name; ends with NULLs */
    gg_convert_fix_config_fn *fix_config; /* NULL: nothing is to be settled */
    gg_back_fn *back; /* the way back puts into config.json what several keys,
                         * or when, are made of; after all keys; NULL */
    int n_dense;      /* number of matrices after pooling (modules.c) */
    bool dense_asked; /* they are converted only if they are asked for */
    bool reranker;    /* row of rerankers, whose answers are yes and no */
    bool only_keys;   /* the file has the keys of this row and no others */
    bool permuted;    /* queries and keys are permuted (gg_convert_rope_q) */
    bool rope_count;  /* rope.dimension_count is written */
    bool vocab_size;  /* vocab_size is written */
    bool ties;        /* transformers' default of tie_word_embeddings */
    bool drops_copy;  /* an output matrix that is equal to the embedding is
                         * left out */
};

/* The n-th row, NULL after the last; has it the class? */
const struct gg_convert_arch *gg_convert_arch_row(size_t n);
/* Has a class a row of rerankers? */
bool gg_convert_class_is_reranker(struct gguf_str class_name);
bool gg_convert_arch_has_class(const struct gg_convert_arch *arch,
                               struct gguf_str class_name);

#endif
