/* SPDX-License-Identifier: MIT */
/* convert_int.h - a conversion of a folder into a GGUF file, inside
 *
 * struct gguf_convert holds the folder, the row of its class, and the
 * description of the output. convert.c calls the steps in order; each other
 * file implements one step, which its first comment describes. The conversion
 * owns everything it points to; names and keys lie in its arena.
 */
#ifndef GG_CONVERT_CONVERT_INT_H
#define GG_CONVERT_CONVERT_INT_H

#include "base/compiler.h"
#include "base/mem.h"
#include "convert/classes.h"
#include "convert/folder/folder.h"
#include "data/description.h"
#include "data/composed.h"
#include "kern/codec.h"

/* Part of a tensor of the output: one tensor of the folder, or a piece of
 * one. */
struct gg_convert_item {
    struct gguf_str to;
    const struct gg_convert_name *row;
    size_t list;    /* number of the list of names that has row */
    uint64_t order; /* order among the parts of one tensor */
    int64_t expert; /* number of the expert; -1: none */
    int64_t layer;  /* number of the layer; -1: none */
    uint32_t from;  /* number of the folder's tensor */
    uint8_t half;   /* half of an adapter's pair: GG_HALF_... */
};
enum { GG_HALF_NONE, GG_HALF_A, GG_HALF_B };

/* Tensor of the folder that becomes a number of a key. */
struct gg_convert_number {
    const char *key;
    int64_t layer; /* number of the layer; -1: none */
    uint32_t from;
};

/* Longest name of a tensor in a folder, with its NUL. */
enum { GG_CONVERT_NAME = 512 };
/* Parts of all tensors of the output: at least one for each tensor of the
 * folder that is used. */
struct gg_convert_parts {
    struct gg_convert_item
        *item; /* sorted by tensor of the output, then by order */
    size_t n_items, room_items;
    struct gg_convert_number *number;
    size_t n_numbers, room_numbers;
    uint32_t *left; /* tensors of the folder that are left out */
    size_t n_left;
};

/* Description of the output, which a job of lib/quant writes. */
struct gg_convert_output {
    struct gguf_convert_summary summary;
    struct gg_composed_tensor *made;
    struct gguf_convert_tensor *tensor;
    size_t *first_item; /* first item of each tensor */
    size_t n_tensors;
    struct gg_data_composed data; /* list of the tensors in made */
    struct gguf_meta *meta;
    struct gg_description description; /* meta and data, for the job */
};

struct gguf_convert {
    struct gguf_convert_params p;
    struct gg_mem_arena arena;
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gg_folder folder;
    bool is_adapter;
    const struct gg_convert_arch *arch;
    const struct gg_projector *projector; /* NULL: a language model */
    /* a language model: row of its class's projector, whose tensors are left
     * out; NULL: none */
    const struct gg_projector *tower;
    /* image/image.h: name of the file, or stem of the names of the folder's
     * files; architecture; NULL: no image or video model */
    const char *image_file, *image_stem;
    const struct gg_image_arch *image;
    const struct gg_image_layout *image_layout; /* NULL: as loaders know it */
    json_t *settings; /* joined settings of a projector (projector.h) */
    bool is_other;    /* arch is params.as, not the class of config.json */
    int64_t
        n_layers; /* limit of layer numbers in names; INT64_MAX: no limit */
    struct gg_convert_parts parts;
    struct gg_convert_output out;
    bool is_checked; /* the output was checked (model_check.c) */
};

/* config.json for functions of families. */
static inline struct gg_hf_config
gg_convert_config(const struct gguf_convert *c)
{
    return gg_folder_config(&c->folder);
}

/* config_keys.c: number of layers that names may have, including nextn layers.
 * NAN: config.json does not say, or all layers of the folder are kept. */
double gg_convert_count_layers(const struct gguf_convert *c,
                               const struct gg_convert_arch *arch);

/* Access to config.json of the folder: see gg_folder_get_config() and the
 * functions after it. */
static inline const json_t *gg_convert_get_config(const struct gguf_convert *c,
                                                  const char *names)
{
    return gg_folder_get_config(&c->folder, names);
}
static inline bool gg_convert_get_count(const struct gguf_convert *c,
                                        const char *names, int64_t *out)
{
    return gg_folder_get_count(&c->folder, names, out);
}
static inline enum gguf_status gg_convert_set_config(struct gguf_convert *c,
                                                     const char *name,
                                                     json_t *value,
                                                     struct gguf_error *err)
{
    return gg_folder_set_config(&c->folder, name, value, err);
}

/* model_kind.c: first name of "architectures" in config.json; empty: none. */
struct gguf_str gg_convert_class(const struct gguf_convert *c);
/* model_kind.c: does the class, by its name, return hidden states
 * (NAMEModel)? */
bool gg_convert_is_headless(const struct gguf_convert *c);
/* model_kind.c: set the kind of the model in the summary, unless it is set.
 * GGUF_E_NOMEM. */
enum gguf_status gg_convert_set_kind(struct gguf_convert *c,
                                     struct gguf_error *err);

/* output_matrix.c: decide whether the folder's output matrix is kept. Called
 * after all parts have their places.
 *
 * GGUF_E_TENSOR   The matrix contradicts config.json, or is missing.
 * GGUF_E_IO, GGUF_E_NOMEM */
enum gguf_status gg_convert_choose_output_matrix(struct gguf_convert *c,
                                                 struct gguf_error *err);
/* output_matrix.c: is the output of the model its embedding (tied), by
 * config.json, its class or its architecture? */
bool gg_convert_is_tied(const struct gguf_convert *c);

/* classifier.c: check that a class of classifiers has a classifier among its
 * tensors, and note where readers of the file compute it differently.
 * GGUF_E_TENSOR; GGUF_E_HPARAM: the number of its rows is not that of the
 * labels. */
enum gguf_status gg_convert_check_classifier(struct gguf_convert *c,
                                             struct gguf_error *err);

/* config_of_tensors.c: make config.json of a folder without one, if a class
 * makes it from its tensors. Opens the weights. GGUF_E_NOMEM. */
enum gguf_status gg_convert_make_config(struct gguf_convert *c,
                                        const struct gguf_limits *limits,
                                        struct gguf_error *err);
/* default_numbers.c: add to config.json the defaults of the language model's
 * class, which folders of a model that contains it leave out. Called before the
 * row of the class is looked up. GGUF_E_NOMEM. */
enum gguf_status gg_convert_add_defaults(struct gguf_convert *c,
                                         struct gguf_error *err);
/* default_numbers.c: add to config.json the number of nextn layers, counted by
 * names of tensors, if it is missing. GGUF_E_NOMEM. */
enum gguf_status gg_convert_add_nextn_count(struct gguf_convert *c,
                                            struct gguf_error *err);
/* default_numbers.c: add to config.json the size of the vocabulary, counted by
 * rows of the embedding, if it is missing. GGUF_E_NOMEM. */
enum gguf_status gg_convert_add_vocab_size(struct gguf_convert *c,
                                           struct gguf_error *err);
/* reranker.c: mark the model in config.json as a reranker if the folder says so
 * anywhere. The row of its class must then be looked up again.
 *
 * GGUF_E_VOCAB         The tokenizer lacks the tokens of its answers.
 * GGUF_E_UNSUPPORTED   The caller asks for a reranker of another class.
 * GGUF_E_FORMAT, GGUF_E_IO, GGUF_E_NOMEM */
enum gguf_status gg_convert_detect_reranker(struct gguf_convert *c,
                                            struct gguf_error *err);
/* modules.c: read modules.json. Adds its pooling to config.json and its
 * matrices to the folder's tensors. GGUF_E_FORMAT, GGUF_E_NOTFOUND,
 * GGUF_E_HPARAM; GGUF_E_UNSUPPORTED: a kind of pooling, or a function after a
 * matrix. */
enum gguf_status gg_convert_read_modules(struct gguf_convert *c,
                                         struct gguf_error *err);
/* prompts.c: add to config.json the prompts of
 * config_sentence_transformers.json and the limit of sentence_bert_config.json.
 * GGUF_E_FORMAT; GGUF_E_HPARAM: a member has another type. */
enum gguf_status gg_convert_read_prompts(struct gguf_convert *c,
                                         struct gguf_error *err);
/* labels.c: write a list of texts. GGUF_E_HPARAM. */
enum gguf_status gg_convert_set_texts(struct gguf_convert *c, const char *key,
                                      const json_t *texts,
                                      struct gguf_error *err);
/* labels.c: write the texts of an object with the members "0", "1", ... as a
 * list, unless they are placeholders (LABEL_0). GGUF_E_HPARAM. */
enum gguf_status gg_convert_set_labels(struct gguf_convert *c, const char *key,
                                       const json_t *names,
                                       struct gguf_error *err);

/* model_check.c: check that the output, with the keys in more (or NULL), is a
 * valid model. Does it once; skips adapters, and outputs that the caller wants
 * unchecked. GGUF_E_MISMATCH. */
enum gguf_status gg_convert_check_model(struct gguf_convert *c,
                                        const struct gguf_meta *more,
                                        struct gguf_error *err);

/* find_class.c: find the row of the class that config.json names, or else of
 * the class of its language model. */
enum gguf_status gg_convert_find_arch(struct gguf_convert *c,
                                      struct gguf_error *err);
/* find_class.c: is it the name of a class of draft models? */
bool gg_convert_is_draft(struct gguf_str name);
/* find_class.c: does a row have the class, whatever else config.json says? */
bool gg_convert_is_known_class(struct gguf_str name);
/* nearest_class.c: add the known classes whose tensors are named most like the
 * folder's to the message of err. Opens the weights. name: the class of the
 * folder. */
void gg_convert_name_nearest(struct gguf_convert *c,
                             const struct gguf_limits *limits,
                             struct gguf_str name, struct gguf_error *err);
/* find_class.c: set n_layers by the current contents of config.json. */
void gg_convert_limit_layers(struct gguf_convert *c);

/* peft.c: open the folder as an adapter. *yes: it is one that can be
 * converted. */
enum gguf_status gg_convert_adapter_open(struct gguf_convert *c, bool *yes,
                                         struct gguf_error *err);
/* peft.c: read config.json of the adapter's base model. */
enum gguf_status gg_convert_adapter_base(struct gguf_convert *c,
                                         struct gguf_error *err);
/* peft.c: copy to out the name of the weight that a tensor of a pair changes.
 * Returns the half of the pair that the tensor is: GG_HALF_... */
uint8_t gg_convert_adapter_name(struct gguf_str name,
                                char out[GG_CONVERT_NAME]);
/* peft.c: write the keys of an adapter. Called after its tensors. */
enum gguf_status gg_convert_adapter_keys(struct gguf_convert *c,
                                         struct gguf_error *err);

/* name_prefix.c: compare the folder's names of tensors with the class's, and
 * set the members prefix and added of the folder. A note says which prefix is
 * removed or added. GGUF_E_NOMEM. */
enum gguf_status gg_convert_find_prefix(struct gguf_convert *c,
                                        struct gguf_error *err);
/* name_wrappers.c: copy a name without wrapper segments such as "_orig_mod.".
 * *which receives a bit for each kind of wrapper that was removed. false: the
 * name is too long. */
bool gg_convert_strip_wrappers(const struct gguf_convert *c,
                               struct gguf_str name, char out[GG_CONVERT_NAME],
                               unsigned *which);
/* name_wrappers.c: name of wrapper i; NULL after the last. */
const char *gg_convert_wrapper_name(size_t i);
/* name_wrappers.c: copy a tensor's name without wrappers and with the class's
 * prefix. false: it does not fit into out. */
bool gg_convert_unwrap(const struct gguf_convert *c, struct gguf_str name,
                       char out[GG_CONVERT_NAME]);

/* tensor_names.c: copy the name that a tensor has in the language model alone.
 * false: no such name; *nothing says whether it belongs to another part of the
 * model (vision, audio). */
bool gg_convert_normalize_name(const struct gguf_convert *c,
                               struct gguf_str name, char out[GG_CONVERT_NAME],
                               bool *nothing);
/* part_names.c: copy the name that a tensor has in a projector alone, by the
 * parts of the class. false: no such name; *nothing: it belongs to the language
 * model, or is not used. */
bool gg_convert_normalize_part(const struct gguf_convert *c,
                               struct gguf_str name, char out[GG_CONVERT_NAME],
                               bool *nothing);
/* part_names.c: does the beginning of a name belong to the towers of a
 * projector's class? Tensors that the projector leaves out are included. */
bool gg_convert_is_of_tower(const struct gg_convert_arch *arch,
                            struct gguf_str name);
/* part_names.c: does a tensor with this name belong to the projector of a
 * class? */
bool gg_convert_is_part(const struct gg_convert_arch *arch,
                        struct gguf_str name);
/* part_names.c: type of tensor t of a projector in the file, made of numbers of
 * type own. *fixed: jobs must keep it. */
uint32_t gg_convert_choose_part_type(const struct gguf_convert *c,
                                     const struct gg_composed_tensor *t,
                                     uint32_t own, bool *fixed);
/* tensor_names.c: remove the first prefix of a list, separated by blanks, that
 * the name has. false: no prefix matches. */
bool gg_convert_strip_prefix(const char *list, struct gguf_str *name);
/* tensor_names.c: does a row have the name? Sets *layer and *expert to its
 * numbers, or -1, and *end to the ending of the output's name. */
bool gg_convert_row_matches(const struct gg_convert_name *row,
                            const char *name, int64_t *layer, int64_t *expert,
                            const char **end);
/* tensor_names.c: does the tensor of the next row multiply this row's? */
bool gg_convert_has_factor(const struct gg_convert_name *row);
/* tensor_names.c: does any row of the class have the name? */
bool gg_convert_has_name(const struct gguf_convert *c, const char *name);
/* tensor_names.c: change a name that no row has into one that a row has, where
 * a class and its published checkpoints differ in spelling. false: no row has
 * it in any spelling. */
bool gg_convert_respell(const struct gguf_convert *c,
                        char name[GG_CONVERT_NAME]);
/* tensor_names.c: number of the first nextn layer. */
int64_t gg_convert_first_nextn_layer(const struct gguf_convert *c);
/* folder_tensors.c: decide what each tensor of the folder becomes. */
enum gguf_status gg_convert_assemble_tensors(struct gguf_convert *c,
                                             struct gguf_error *err);
/* output_tensors.c: find a tensor of the output by name; NULL: not found. */
const struct gguf_convert_tensor *
gg_convert_find_tensor(const struct gguf_convert *c, const char *name);
/* name_pattern.c: remove from name what matches the pattern of a row. "%"
 * matches a number (the layer), "@" another (the expert). false: no match. */
bool gg_convert_match_pattern(const char *pattern, struct gguf_str *name,
                              int64_t *layer, int64_t *expert);
/* number_keys.c: does the tensor of a row become a number of a key? */
bool gg_convert_is_number(const struct gg_convert_name *row);
/* number_keys.c: remember a tensor that becomes a number of a key. */
enum gguf_status gg_convert_note_number(struct gguf_convert *c,
                                        const struct gg_convert_name *row,
                                        uint32_t from, int64_t layer,
                                        struct gguf_error *err);
/* number_keys.c: write these keys. GGUF_E_TENSOR, GGUF_E_NONFINITE. */
enum gguf_status gg_convert_set_number_keys(struct gguf_convert *c,
                                            struct gguf_error *err);
/* computed_tensors.c: add a tensor of n numbers to the folder's, which no file
 * has. GGUF_E_DUPLICATE: the folder has one of this name. GGUF_E_NOMEM. */
enum gguf_status gg_convert_add_computed(struct gguf_convert *c,
                                         const char *name, const double *x,
                                         size_t n, struct gguf_error *err);
/* computed_tensors.c: read all elements of tensor no of the folder. *out: to be
 * freed with gg_mem_free(c->p.allocator); NULL after a failure. */
enum gguf_status gg_convert_read_tensor(const struct gguf_convert *c,
                                        uint32_t no, float **out,
                                        struct gguf_error *err);
/* View of a part: where its elements lie in the folder's tensor, and the shape
 * that it has in the output. */
struct gg_convert_view {
    const struct gguf_convert *c;
    const struct gg_convert_item *item;
    const struct gg_safetensors_tensor *from;
    struct gg_composed_part part;
    /* further elements after part; without dimensions: none */
    struct gg_composed_part rest;
    /* times: repetitions of both; every: distance between them in elements. 0:
     * once. */
    uint64_t times, every;
    uint64_t n_zeros; /* elements of 0 after them */
    bool zeros_first; /* these come before them */
    unsigned n_dims;
    int64_t ne[GGUF_MAX_DIMS]; /* shape of both */
};
/* tensor_layout.c: compute the view of v->item by the transform of its row. */
enum gguf_status gg_convert_make_view(struct gg_convert_view *v,
                                      struct gguf_error *err);
/* axes.c: compute a view by a row's text on axes. false: it does not fit the
 * tensor. */
bool gg_convert_apply_axes(struct gg_convert_view *v, const char *text);
/* Text for people about the change of a part's elements. */
const char *gg_convert_transform_text(struct gguf_convert *c,
                                      const struct gg_convert_item *item);
/* For views of families: fail with GGUF_E_TENSOR and why, after the tensor's
 * name. */
enum gguf_status gg_convert_refuse_view(const struct gg_convert_view *v,
                                        const char *why,
                                        struct gguf_error *err);
/* For views of families: exchange rows and columns. */
enum gguf_status gg_convert_transpose_view(struct gg_convert_view *v,
                                           struct gguf_error *err);

/* config_keys.c, rope.c, general.c: write their part of the metadata. */
enum gguf_status gg_convert_add_keys(struct gguf_convert *c,
                                     struct gguf_error *err);
enum gguf_status gg_convert_add_last_keys(struct gguf_convert *c,
                                          struct gguf_error *err);
enum gguf_status gg_convert_add_rope(struct gguf_convert *c,
                                     struct gguf_error *err);
enum gguf_status gg_convert_add_rope_count(struct gguf_convert *c,
                                           struct gguf_error *err);
enum gguf_status gg_convert_add_general(struct gguf_convert *c,
                                        struct gguf_error *err);
/* Row n of an architecture's keys, its own rows first; NULL after the last.
 */
const struct gg_convert_key *
gg_convert_key_row(const struct gg_convert_arch *a, size_t n);
/* classes.c: full name of a key, "ARCH.key", in buf. */
const char *gg_convert_key_name(const struct gguf_convert *c, const char *key,
                                char buf[128]);

#endif
