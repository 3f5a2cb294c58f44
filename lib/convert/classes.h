/* SPDX-License-Identifier: MIT */
/* classes.h - rows of classes of Hugging Face's transformers
 *
 * A row describes how folders of a class (config.json, "architectures") are
 * converted: the architecture of the GGUF file, lists of names of tensors, and
 * keys beyond those that all architectures have. Names and transforms follow
 * from the published checkpoints and from what files of the architecture hold
 * (model/arch.h, model/weight/weight.h).
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
struct gg_convert_vocab;

/* Makes config.json consistent where it can say one thing in several ways.
 * Called before keys are computed. */
typedef enum gguf_status gg_convert_fix_config_fn(struct gguf_convert *c,
                                                  struct gguf_error *err);

/* Makes the text of config.json from the tensors of a folder.
 *
 * text   Receives at most size bytes, with a NUL. Empty: the tensors are those
 *        of another class. */
typedef void gg_convert_make_config_fn(const struct gguf_convert *c,
                                       char *text, size_t size);
/* Adds tensors that the folder lacks (gg_convert_add_computed), on the way back
 * those that config.json determines. Called after keys are computed. */
typedef enum gguf_status gg_convert_add_tensors_fn(struct gguf_convert *c,
                                                   struct gguf_error *err);
/* Changes tokens after the tokenizer's files are read (vocab_folder.h). */
typedef enum gguf_status gg_convert_fix_vocab_fn(struct gg_convert_vocab *v,
                                                 struct gguf_error *err);

/* Adds members to config.json on the way back, from GGUF to a folder
 * (back_maker.h). */
typedef void gg_back_fn(struct gg_back_maker *m);

/* Effect of a change of a weight on the halves A and B of an adapter's pair. */
enum gg_convert_pair {
    GG_PAIR_REFUSED, /* the weight cannot have a pair */
    GG_PAIR_ROWS,    /* rows of B are permuted as the weight's rows */
    GG_PAIR_AS_IS
};

/* Dimensions of a tensor, fastest first; 1 from n on. */
struct gg_convert_dims {
    unsigned n;
    int64_t ne[5];
};

/* Inverse of a view: change the dimensions of the file's tensor to those of the
 * folder's. *open is the dimension that follows from the number of elements,
 * initially the slowest: the file may have a part of it, or several tensors in
 * one. UINT_MAX: all dimensions are known. */
typedef void gg_convert_shape_fn(struct gg_convert_dims *d, unsigned *open);

/* Change of a tensor's numbers and of the order of its elements. */
struct gg_convert_transform {
    const char *text; /* name of the change in lists */
    /* Computes the place of each element (convert_int.h). NULL: unchanged. */
    enum gguf_status (*view)(struct gg_convert_view *v,
                             struct gguf_error *err);
    /* inverse of view for dimensions; NULL: they do not change */
    gg_convert_shape_fn *shape;
    gg_composed_fn *change; /* computes new numbers; NULL: unchanged */
    gg_composed_fn *back;   /* inverse of change; NULL: no change */
    enum gg_convert_pair pair;
    bool if_permuted; /* applies only if the class has .permuted */
    bool if_added;    /* applies only if rows must be added */
    bool is_i32;      /* elements are 32-bit integers */
    /* change rounds by the mean magnitude of all elements (back_ternary.c) */
    bool has_mean;
    /* The row before has the same name in the file; this row's tensor
     * multiplies that one's, element by element. back makes it of the product,
     * on the way back. */
    bool is_factor;
};

/* Row of names: a tensor of the folder, and its tensor or key in the file.
 *
 * from   its name without ".weight" or ".bias", which is kept; or the whole
 *        name. % stands for the number of the layer, @ for that of an expert.
 * to     the name in GGUF files. NULL: the tensor is ignored. "=KEY": it
 *        becomes a number of that key (number_keys.c), "==KEY": a list of
 *        whole numbers. With @, experts are not
 *        stacked: the number is part of the name.
 *
 * Rows of one list with the same "from" cut a tensor. Rows with the same "to"
 * are concatenated in their order. Experts are stacked. */
struct gg_convert_name {
    const char *from, *to;
    const struct gg_convert_transform *transform; /* NULL: no change */
    /* order of the elements as a text (axes.c); NULL: by transform */
    const char *axes;
    /* Names in config.json of factors, applied one after the other. NULL, or
     * missing in config.json: 1. */
    const char *scale[2];
    /* Computes a factor; NAN: none. NULL: no such factor. */
    gg_hf_config_layer_fn *scale_of;
    /* The row applies to layers for which the function returns a number above
     * 0. NULL: it applies to all layers. Way back, if "to" has no layer: the
     * first of these layers. */
    gg_hf_config_layer_fn *in_layers;
    /* Tensors numbered by @ are concatenated by rows, not stacked. Way back:
     * they are one tensor, with number 0. */
    bool joins;
    /* Way back, if several names become one: a layer has this name if the
     * function returns a number above 0. NULL: the first name is taken. */
    gg_hf_config_layer_fn *only_if;
    /* Computes the number that % in "to" stands for from the folder's; NAN: the
     * name has no place. NULL: the folder's number. */
    gg_hf_config_layer_fn *layer_of;
    /* Way back, if the file adds rows of zeros: name in config.json of the
     * number of rows. NULL: no added rows. */
    const char *n_rows;
    /* config.json determines the numbers (gg_convert_add_computed): no folder
     * has the tensor, and the way back leaves it out */
    bool is_computed;
    /* Names in config.json of the number that layer 0 of the folder has in the
     * file; later layers follow it. NULL: 0. */
    const char *first_layer;
};

enum gg_convert_kind {
    GG_KIND_U32,
    GG_KIND_F32,
    GG_KIND_BOOL,
    GG_KIND_STR,
    GG_KIND_TEXTS,  /* list of texts */
    GG_KIND_LABELS, /* texts of an object with members "0", "1" ... */
    /* Computed numbers, once or for each layer. Without a result the key is
     * left out; so is a list whose first layer has no result. */
    GG_KIND_U32_OF,
    GG_KIND_F32_OF,
    GG_KIND_BOOL_OF,
    GG_KIND_EACH_U32,
    GG_KIND_EACH_F32,
    GG_KIND_EACH_BOOL
};

/* A key of GGUF files.
 *
 * key      its name after "ARCH."; with '/' in front its whole name
 * hf       names in config.json; the first that exists is read. "=TEXT" and
 *          "=N,N": a constant.
 * value    value of the key if hf is NULL or not in config.json. 0: the key is
 *          left out.
 * above_0  for numbers: values that are not above 0 are left out
 * of, of_layer  for kinds ..._OF and EACH_...: computes the number if hf does
 *               not give it. Then value NAN leaves the key out.
 * back     way back: the inverse of of or of_layer
 *
 * The way back writes the key's value under one of the names of hf, and calls
 * back. A computed key without either is written by gg_convert_arch.back, or no
 * member of config.json depends on it. */
struct gg_convert_key {
    const char *key, *hf;
    uint8_t kind; /* enum gg_convert_kind */
    bool above_0;
    double value;
    gg_hf_config_fn *of;
    gg_hf_config_layer_fn *of_layer;
    gg_back_fn *back;
};

/* Size that texts on axes name (axes.c): a number of config.json, per layer
 * where it is a list, or a computed number. */
struct gg_convert_size {
    const char *name, *hf;
    gg_hf_config_fn *of;
    gg_hf_config_layer_fn *of_layer;
};

#define GG_CONVERT_KEY(KEY, HF, KIND, VALUE)                                  \
    {                                                                         \
        .key = KEY, .hf = HF, .kind = GG_KIND_##KIND, .value = VALUE          \
    }

/* Default of a number in a class of language models, which folders leave out
 * where that model is part of another. */
struct gg_convert_default {
    const char *name;
    double value;
};
struct gg_convert_defaults {
    const char *model_type;
    struct gg_convert_default value[9]; /* ends with an entry without a name */
};
/* Find the defaults of a model_type; NULL: none. */
const struct gg_convert_defaults *
gg_convert_find_defaults(struct gguf_str model_type);

/* Sizes of all architectures (shared_keys.c); ends with NULLs. */
extern const struct gg_convert_size gg_convert_sizes[];

struct gg_convert_arch {
    const char *classes; /* names of classes, separated by blanks */
    const char *arch;
    /* Does this row apply to config.json? NULL: yes. The first row of a class
     * that applies is used. */
    gg_hf_config_test_fn *when;
    /* Way back: model_type in config.json. NULL: the class's name in lower
     * case. */
    const char *model_type;
    /* Way back: usual names in config.json, each with the name that the class
     * has instead. */
    const char *instead[8][2];
    /* Prefixes of names, separated by blanks: the first that a name has is
     * removed. NULL: none. */
    const char *strip;
    /* Prefix that is added to names without it. NULL: none. */
    const char *before;
    /* Prefixes of names that are ignored, separated by blanks. NULL: none. */
    const char *skip;
    /* Name in config.json of the number of nextn layers, which come after the
     * others. Tensors of later layers are left out. "": no nextn layers. NULL:
     * all layers of the folder are kept. */
    const char *nextn;
    int n_nextn; /* number of nextn layers if config.json does not say */
    bool nextn_by_names; /* ... or it is counted by names of tensors */
    /* Prefix of names in nextn layers, after which these are counted from 0.
     * NULL: they are named and counted like other layers. */
    const char *drafts;
    /* lists, each ended by NULLs; the first list with a name applies */
    const struct gg_convert_name *names[6];
    /* Keys, ended by NULLs. They precede those of all architectures and replace
     * keys of the same name. */
    const struct gg_convert_key *keys;
    /* Keys after those of the tokenizer, ended by NULLs. They replace keys of
     * the same name. */
    const struct gg_convert_key *last;
    /* Special tokens, "eot=<|user|> ...", if no file of the tokenizer names
     * them. NULL: none. */
    const char *roles;
    /* tokenizer.ggml.model of a BPE with a piece for each byte; NULL: llama */
    const char *pieces;
    /* sizes that axes name, ended by NULLs */
    const struct gg_convert_size *sizes;
    gg_convert_fix_config_fn *fix_config; /* NULL: config.json is consistent */
    /* NULL: its folders have a config.json */
    gg_convert_make_config_fn *make_config;
    gg_convert_add_tensors_fn *add_tensors; /* NULL: adds none */
    gg_convert_fix_vocab_fn *fix_vocab;     /* NULL: changes none */
    /* Way back: adds members to config.json that depend on several keys, or on
     * when. Called after all keys. NULL: none. */
    gg_back_fn *back;
    /* Projectors (projector/projector.h): beginnings of the names of their
     * tensors, separated by blanks; other tensors belong to the language model.
     * NULL: a language model. */
    const char *parts;
    /* Projectors: beginnings, or with '*' in front ends, of names that are left
     * out all the same, separated by blanks. NULL: none. */
    const char *unused;
    /* Projectors: parts of names in the file or, with '^' in front, beginnings,
     * separated by blanks, of matrices that programs read as F32 only, and as
     * F16 only. NULL: none. */
    const char *always_f32, *always_f16;
    int n_dense; /* number of matrices after pooling (modules.c) */
    /* these matrices are converted only if the caller asks for them */
    bool dense_asked;
    bool reranker;  /* row of rerankers that answer yes or no */
    bool only_keys; /* the file has no keys but those of this row */
    /* query and key matrices are permuted (gg_convert_rope_q) */
    bool permuted;
    bool rope_count; /* rope.dimension_count is written */
    bool vocab_size; /* vocab_size is written */
    bool ties;       /* transformers' default of tie_word_embeddings */
    bool drops_copy; /* an output matrix equal to the embedding is left out */
};

/* Row n; NULL after the last. */
const struct gg_convert_arch *gg_convert_arch_row(size_t n);
/* Does a class have a row of rerankers? */
bool gg_convert_class_is_reranker(struct gguf_str class_name);
/* Does the row have the class? */
bool gg_convert_arch_has_class(const struct gg_convert_arch *arch,
                               struct gguf_str class_name);

#endif
