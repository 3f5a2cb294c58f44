/* SPDX-License-Identifier: MIT */
/* convert_int.h - a folder that becomes a GGUF file, as it lies in memory
 *
 * convert.c has the order of the steps; each other file does one of them, which
 * its first comment describes.
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

/* A part of a tensor of the output: one tensor of the folder, or a piece. */
struct gg_convert_item {
    struct gguf_str to;
    const struct gg_convert_name *row;
    size_t list;    /* of the names, that the row is of */
    uint64_t order; /* among the parts of one tensor */
    int64_t expert; /* or -1 */
    int64_t layer;  /* or -1 */
    uint32_t from;  /* tensor of the folder */
    uint8_t half;   /* of an adapter's pair */
};
enum { GG_HALF_NONE, GG_HALF_A, GG_HALF_B };

/* A tensor of the folder that is a number of a key. */
struct gg_convert_number {
    const char *key;
    int64_t layer; /* or -1 */
    uint32_t from;
};

/* Longest name of a tensor in a folder, with its NUL. */
enum { GG_CONVERT_NAME = 512 };
/* Parts of the output's tensors: one for each tensor of the folder. */
struct gg_convert_parts {
    struct gg_convert_item
        *item; /* sorted by tensor of the output and order */
    size_t n_items, room_items;
    struct gg_convert_number *number;
    size_t n_numbers, room_numbers;
    uint32_t *left; /* tensors of the folder that are left out */
    size_t n_left;
};

/* The description of the output, which a job writes. */
struct gg_convert_output {
    struct gguf_convert_summary summary;
    struct gg_composed_tensor *made;
    struct gguf_convert_tensor *tensor;
    size_t *first_item; /* first item of each tensor */
    size_t n_tensors;
    struct gg_data_composed data; /* list of made */
    struct gguf_meta *meta;
    struct gg_description description; /* meta and data, for a job */
};

struct gguf_convert {
    struct gguf_convert_params p;
    struct gg_mem_arena arena;
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gg_folder folder;
    bool is_adapter;
    const struct gg_convert_arch *arch;
    int64_t n_layers; /* number of layers that names may have, or INT64_MAX */
    struct gg_convert_parts parts;
    struct gg_convert_output out;
    bool is_checked; /* the output was verified (model_check.c) */
};

/* config.json as functions of families read it. */
static inline struct gg_hf_config
gg_convert_config(const struct gguf_convert *c)
{
    return gg_folder_config(&c->folder);
}

/* config_keys.c: number of layers that names may have, with those that draft;
 * NAN: as many as the folder has, or config.json does not say. */
double gg_convert_count_layers(const struct gguf_convert *c,
                               const struct gg_convert_arch *arch);

/* gg_folder_get_config and the like, of the folder. */
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

/* model_kind.c: return the first name of "architectures", or an empty text;
 * does a class of that name return hidden states (NAMEModel)? Fill the summary;
 * a kind that is already set stays. GGUF_E_NOMEM. */
struct gguf_str gg_convert_class(const struct gguf_convert *c);
bool gg_convert_is_headless(const struct gguf_convert *c);
enum gguf_status gg_convert_set_kind(struct gguf_convert *c,
                                     struct gguf_error *err);

/* output_matrix.c: keep, leave out or refuse the output matrix of the folder;
 * refuse a folder that lacks one. Called once parts have their places.
 * GGUF_E_TENSOR, GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_convert_choose_output_matrix(struct gguf_convert *c,
                                                 struct gguf_error *err);
/* output_matrix.c: is the output of the model its embedding, by config.json,
 * its class or its architecture? */
bool gg_convert_is_tied(const struct gguf_convert *c);

/* classifier.c: has a class of classifiers one in the plan? Note what readers
 * compute otherwise. GGUF_E_TENSOR, GGUF_E_HPARAM (another number of names). */
enum gguf_status gg_convert_check_classifier(struct gguf_convert *c,
                                             struct gguf_error *err);

/* default_numbers.c: what config.json leaves out, in it: what the class of a
 * language model within another has by default, before its row is found; how
 * many layers draft, by the names of tensors; how many tokens there are, by the
 * rows of what they became. GGUF_E_NOMEM. */
enum gguf_status gg_convert_add_defaults(struct gguf_convert *c,
                                         struct gguf_error *err);
enum gguf_status gg_convert_add_nextn_count(struct gguf_convert *c,
                                            struct gguf_error *err);
enum gguf_status gg_convert_add_vocab_size(struct gguf_convert *c,
                                           struct gguf_error *err);
/* reranker.c: likewise, that the model is a reranker, by all that the folder
 * has; the row of its class is to be found again then. GGUF_E_VOCAB (without
 * its answers), GGUF_E_UNSUPPORTED (asked for of another class), GGUF_E_FORMAT,
 * GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_convert_detect_reranker(struct gguf_convert *c,
                                            struct gguf_error *err);
/* modules.c: likewise, what modules.json says, and the matrices that it has, as
 * tensors of the folder: GGUF_E_FORMAT, GGUF_E_NOTFOUND, GGUF_E_HPARAM,
 * GGUF_E_UNSUPPORTED (a kind of pooling, a function after a matrix). */
enum gguf_status gg_convert_read_modules(struct gguf_convert *c,
                                         struct gguf_error *err);
/* labels.c: the names of an object with "0", "1" and so on as a list, which is
 * not written if nobody has named them. GGUF_E_HPARAM. */
enum gguf_status gg_convert_set_labels(struct gguf_convert *c, const char *key,
                                       const json_t *names,
                                       struct gguf_error *err);

/* model_check.c: is the plan, with the pairs of more (or NULL), one of a model?
 * Asked once, of no adapter, and not if any will do. GGUF_E_MISMATCH. */
enum gguf_status gg_convert_check_model(struct gguf_convert *c,
                                        const struct gguf_meta *more,
                                        struct gguf_error *err);

/* find_class.c: the row of the class that config.json names; if there is none,
 * that of the class of its language model. */
enum gguf_status gg_convert_find_arch(struct gguf_convert *c,
                                      struct gguf_error *err);
/* find_class.c: set n_layers by what config.json says now. */
void gg_convert_limit_layers(struct gguf_convert *c);

/* peft.c: is the folder one of an adapter that becomes a file? Then the
 * config.json of the model that it is for; the name that a weight whose pair a
 * tensor is of has, and which half it is; after the tensors, the keys. */
enum gguf_status gg_convert_adapter_open(struct gguf_convert *c, bool *yes,
                                         struct gguf_error *err);
enum gguf_status gg_convert_adapter_base(struct gguf_convert *c,
                                         struct gguf_error *err);
uint8_t gg_convert_adapter_name(struct gguf_str name,
                                char out[GG_CONVERT_NAME]);
enum gguf_status gg_convert_adapter_keys(struct gguf_convert *c,
                                         struct gguf_error *err);

/* name_prefix.c: compare the folder's names with the class's and set prefix and
 * added of the folder. A note says what is left out of names or added to them.
 * GGUF_E_NOMEM. */
enum gguf_status gg_convert_find_prefix(struct gguf_convert *c,
                                        struct gguf_error *err);
/* name_wrappers.c: copy a name without wrappers. *which gets a bit for each one
 * that was left out, by its number (gg_convert_wrapper_name, NULL after the
 * last). False: the name is too long. */
bool gg_convert_strip_wrappers(const struct gguf_convert *c,
                               struct gguf_str name, char out[GG_CONVERT_NAME],
                               unsigned *which);
const char *gg_convert_wrapper_name(size_t i);
/* name_wrappers.c: a tensor's name without wrappers ("_orig_mod.") and with the
 * class's prefix, in out; false: it does not fit. */
bool gg_convert_unwrap(const struct gguf_convert *c, struct gguf_str name,
                       char out[GG_CONVERT_NAME]);

/* tensor_names.c: what the language model's part calls a tensor; false: it has
 * no such name, or (*nothing) is of another part. And the number that the first
 * layer that drafts has. */
bool gg_convert_normalize_name(const struct gguf_convert *c,
                               struct gguf_str name, char out[GG_CONVERT_NAME],
                               bool *nothing);
/* Does a row have the name? The numbers of its layer and its expert, or -1;
 * *end: the ending that the output's name has. Does any row of the class? */
bool gg_convert_row_matches(const struct gg_convert_name *row,
                            const char *name, int64_t *layer, int64_t *expert,
                            const char **end);
bool gg_convert_has_name(const struct gguf_convert *c, const char *name);
/* Spell a name that no row has as some row does, if a class and its published
 * checkpoints differ in it; false: none does. */
bool gg_convert_respell(const struct gguf_convert *c,
                        char name[GG_CONVERT_NAME]);
int64_t gg_convert_first_nextn_layer(const struct gguf_convert *c);
/* folder_tensors.c: what each tensor of the folder becomes. */
enum gguf_status gg_convert_assemble_tensors(struct gguf_convert *c,
                                             struct gguf_error *err);
/* output_tensors.c: the tensor of the output of that name; NULL. */
const struct gguf_convert_tensor *
gg_convert_find_tensor(const struct gguf_convert *c, const char *name);
/* name_pattern.c: take from name what the pattern of a row says, a number for
 * "%" (to layer) and for "@" (to expert); false where they differ. */
bool gg_convert_match_pattern(const char *pattern, struct gguf_str *name,
                              int64_t *layer, int64_t *expert);
/* numbers.c: is a row's tensor a number of a key? Note one that is; write the
 * keys of those noted: GGUF_E_TENSOR, GGUF_E_NONFINITE. */
bool gg_convert_is_number(const struct gg_convert_name *row);
enum gguf_status gg_convert_note_number(struct gguf_convert *c,
                                        const struct gg_convert_name *row,
                                        uint32_t from, int64_t layer,
                                        struct gguf_error *err);
enum gguf_status gg_convert_set_number_keys(struct gguf_convert *c,
                                            struct gguf_error *err);
/* tensor_layout.c: how a part's numbers lie, and the shape that it has. */
struct gg_convert_view {
    const struct gguf_convert *c;
    const struct gg_convert_item *item;
    const struct gg_safetensors_tensor *from;
    struct gg_composed_part part;
    struct gg_composed_part rest; /* after it, if it has dimensions */
    uint64_t times, every; /* both again, that many elements later; 0: once
                               */
    uint64_t n_zeros;      /* elements after them */
    unsigned n_dims;
    int64_t ne[GGUF_MAX_DIMS]; /* of both */
};
enum gguf_status gg_convert_make_view(struct gg_convert_view *v,
                                      struct gguf_error *err);
/* axes.c: the same by a row's text; false: it does not fit the tensor. */
bool gg_convert_apply_axes(struct gg_convert_view *v, const char *text);
/* What is done to an item's numbers, in words. */
const char *gg_convert_transform_text(struct gguf_convert *c,
                                      const struct gg_convert_item *item);
/* For views of families: the failure of one, with why after the name of the
 * tensor (GGUF_E_TENSOR); exchange rows and columns. */
enum gguf_status gg_convert_refuse_view(const struct gg_convert_view *v,
                                        const char *why,
                                        struct gguf_error *err);
enum gguf_status gg_convert_transpose_view(struct gg_convert_view *v,
                                           struct gguf_error *err);

/* config_keys.c, rope.c, general.c: their part of the metadata. */
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
/* The n-th row of an architecture's keys, its own first; NULL after the last.
 */
const struct gg_convert_key *
gg_convert_key_row(const struct gg_convert_arch *a, size_t n);
/* classes.c: the name of a key in files: "ARCH.key", in buf. */
const char *gg_convert_key_name(const struct gguf_convert *c, const char *key,
                                char buf[128]);

#endif
