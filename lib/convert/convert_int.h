/* SPDX-License-Identifier: MIT */
/* convert_int.h - a folder that becomes a GGUF file, as it lies in memory
 *
 * convert.c has the order of the steps; each other file does one of them, which
 * its first comment describes.
 */
#ifndef GG_CONVERT_CONVERT_INT_H
#define GG_CONVERT_CONVERT_INT_H

#include "base/compiler.h"
#include "base/json.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "convert/classes.h"
#include "data/description.h"
#include "data/composed.h"
#include "data/safetensors.h"
#include "gguf/convert.h"
#include "kern/codec.h"

/* A JSON text of the folder. */
struct gg_convert_text {
    const char *name; /* of the file */
    struct gg_mapfile map;
    struct gg_json json; /* root is NULL: there is no such file */
};

enum gg_convert_texts {
    GG_CONVERT_CONFIG,
    GG_CONVERT_GENERATION,
    GG_CONVERT_TOKENIZER,
    GG_CONVERT_TOKENIZER_CONFIG,
    GG_CONVERT_ADDED,
    GG_CONVERT_N_TEXTS
};

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
enum { GG_CONVERT_PREFIX = 64 };
/* A vocabulary has at most 2 n + GG_CONVERT_MORE_TOKENS tokens if the embedding
 * has n rows. */
#define GG_CONVERT_MORE_TOKENS (INT64_C(1) << 16)

struct gguf_convert {
    struct gguf_convert_params p;
    struct gg_mem_arena arena;
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gguf_paths *opened; /* all files of this machine that were read */
    struct gg_dir folder;
    struct gg_convert_text text[GG_CONVERT_N_TEXTS];
    json_t *config;                 /* of the language model */
    struct gg_mapfile card;         /* README.md; fd -1: there is none */
    struct gg_convert_text adapter; /* adapter_config.json */
    bool is_adapter;
    const struct gg_convert_arch *arch;
    int64_t n_layers;              /* that names may have, or INT64_MAX */
    struct gguf_str prefix;        /* prefix of the folder's names that the
                                 * class's lack (name_prefix.c); empty: none */
    char added[GG_CONVERT_PREFIX]; /* prefix of the class's names that the
                                 * folder's lack; "": none */
    struct gg_safetensors *from;
    struct gg_convert_item *item; /* by output and order */
    size_t n_items, room_items;
    struct gg_convert_number *number;
    size_t n_numbers, room_numbers;
    uint32_t *left; /* tensors of the folder that are left out */
    size_t n_left;
    struct gguf_convert_summary summary;
    struct gg_composed_tensor *made; /* of the output */
    struct gguf_convert_tensor *tensor;
    size_t *first_item; /* of each of them */
    size_t n_tensors;
    struct gg_data_made data;
    struct gguf_meta *meta;
    struct gg_description description; /* of the output: meta, data */
    bool is_checked;                   /* it is one of a model */
};

/* folder.c: open what the folder has of texts. */
enum gguf_status gg_convert_read_texts(struct gguf_convert *c,
                                       struct gguf_error *err);
void gg_convert_close_texts(struct gguf_convert *c);
/* Have a file of the folder in memory; *there is false if there is none. */
enum gguf_status gg_convert_map(struct gguf_convert *c, const char *name,
                                struct gg_mapfile *m, bool *there,
                                struct gguf_error *err);
/* Name of the folder: the last segment of its path that is a name, without a
 * revision; OWNER/NAME of a repository in a cache
 * (models--OWNER--NAME/snapshots/HASH). GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_convert_folder_name(struct gguf_convert *c,
                                        struct gguf_str *out,
                                        struct gguf_error *err);
/* Says the segment nothing of the model: ".", a hash, "checkpoint-500"? */
bool gg_convert_is_passing_name(struct gguf_str name);
/* st, with the name of the file before the message. */
enum gguf_status gg_convert_in(const char *name, enum gguf_status st,
                               struct gguf_error *err);
/* A value of the language model's config.json: names separated by blanks, the
 * first that is there and not null; members of members by points. Or NULL. */
const json_t *gg_convert_get(const struct gguf_convert *c, const char *names);
/* A whole number above 0 of them; false: there is none. */
bool gg_convert_count(const struct gguf_convert *c, const char *names,
                      int64_t *out);

/* Have config.json of the language model say it, too: value is taken over, and
 * NULL where it could not be made. GGUF_E_NOMEM. */
enum gguf_status gg_convert_say(struct gguf_convert *c, const char *name,
                                json_t *value, struct gguf_error *err);

/* quantized.c: put weights together that are stored in several tensors.
 * GGUF_E_UNSUPPORTED: a method that is not read. */
enum gguf_status gg_convert_quantized(struct gguf_convert *c,
                                      struct gguf_error *err);

/* model_kind.c: return the first name of "architectures", or an empty text;
 * does a class of that name return hidden states (NAMEModel)? Fill the summary;
 * a kind that is already set stays. GGUF_E_NOMEM. */
struct gguf_str gg_convert_class(const struct gguf_convert *c);
bool gg_convert_is_headless(const struct gguf_convert *c);
enum gguf_status gg_convert_tell_kind(struct gguf_convert *c,
                                      struct gguf_error *err);

/* output_matrix.c: keep, leave out or refuse the output matrix of the folder;
 * refuse a folder that lacks one. Called once parts have their places.
 * GGUF_E_TENSOR, GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_convert_settle_output(struct gguf_convert *c,
                                          struct gguf_error *err);
/* output_matrix.c: is the output of the model its embedding, by config.json,
 * its class or its architecture? */
bool gg_convert_is_tied(const struct gguf_convert *c);

/* classifier.c: has a class of classifiers one in the plan? Note what readers
 * compute otherwise. GGUF_E_TENSOR, GGUF_E_HPARAM (another number of names). */
enum gguf_status gg_convert_check_classifier(struct gguf_convert *c,
                                             struct gguf_error *err);

/* note.c: give the caller's callback a line of kind GGUF_CONVERT_WARNING or
 * GGUF_CONVERT_REMARK. */
void gg_convert_warn(const struct gguf_convert *c, const char *format, ...)
    GG_PRINTF(2, 3);
void gg_convert_note(const struct gguf_convert *c, const char *format, ...)
    GG_PRINTF(2, 3);

/* rope_config.c: resolve contradictory rotary parameters of config.json in its
 * tree. Called before anything reads them. Notes each contradiction.
 * GGUF_E_HPARAM: a member of the wrong type. GGUF_E_NOMEM. */
enum gguf_status gg_convert_settle_rope(struct gguf_convert *c,
                                        struct gguf_error *err);

/* weight_files.c: note files of weights that the folder has and that are not
 * read. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_convert_note_unread(struct gguf_convert *c,
                                        struct gguf_error *err);

/* default_numbers.c: what config.json leaves out, in it: what the class of a
 * language model within another has by default, before its row is found; how
 * many layers draft, by the names of tensors; how many tokens there are, by the
 * rows of what they became. GGUF_E_NOMEM. */
enum gguf_status gg_convert_unsaid_defaults(struct gguf_convert *c,
                                            struct gguf_error *err);
enum gguf_status gg_convert_unsaid_epsilon(struct gguf_convert *c,
                                           struct gguf_error *err);
enum gguf_status gg_convert_unsaid_drafts(struct gguf_convert *c,
                                          struct gguf_error *err);
enum gguf_status gg_convert_unsaid_rows(struct gguf_convert *c,
                                        struct gguf_error *err);
/* reranker.c: likewise, that the model is a reranker, by all that the folder
 * has; the row of its class is to be found again then. GGUF_E_VOCAB (without
 * its answers), GGUF_E_UNSUPPORTED (asked for of another class), GGUF_E_FORMAT,
 * GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_convert_unsaid_reranker(struct gguf_convert *c,
                                            struct gguf_error *err);
/* modules.c: likewise, what modules.json says, and the matrices that it has, as
 * tensors of the folder: GGUF_E_FORMAT, GGUF_E_NOTFOUND, GGUF_E_HPARAM,
 * GGUF_E_UNSUPPORTED (a kind of pooling, a function after a matrix). */
enum gguf_status gg_convert_modules(struct gguf_convert *c,
                                    struct gguf_error *err);
/* labels.c: the names of an object with "0", "1" and so on as a list, which is
 * not written if nobody has named them. GGUF_E_HPARAM. */
enum gguf_status gg_convert_labels(struct gguf_convert *c, const char *key,
                                   const json_t *names,
                                   struct gguf_error *err);

/* model_check.c: is the plan, with the pairs of more (or NULL), one of a model?
 * Asked once, of no adapter, and not if any will do. GGUF_E_MISMATCH. */
enum gguf_status gg_convert_check(struct gguf_convert *c,
                                  const struct gguf_meta *more,
                                  struct gguf_error *err);

/* convert.c: the row of the class that config.json names; if there is none,
 * that of the class of its language model. */
enum gguf_status gg_convert_find_arch(struct gguf_convert *c,
                                      struct gguf_error *err);

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

/* name_prefix.c: compare the folder's names with the class's and set c->prefix
 * and c->added. A note says what is left out of the names or added to them.
 * GGUF_E_NOMEM. */
enum gguf_status gg_convert_find_prefix(struct gguf_convert *c,
                                        struct gguf_error *err);
/* name_prefix.c: a tensor's name without wrappers ("_orig_mod.") and with the
 * class's prefix, in out; false: it does not fit. */
bool gg_convert_unwrap(const struct gguf_convert *c, struct gguf_str name,
                       char out[GG_CONVERT_NAME]);

/* tensor_names.c: what the language model's part calls a tensor; false: it has
 * no such name, or (*nothing) is of another part. And the number that the first
 * layer that drafts has. */
bool gg_convert_known_as(const struct gguf_convert *c, struct gguf_str name,
                         char out[GG_CONVERT_NAME], bool *nothing);
/* Does a row have the name? The numbers of its layer and its expert, or -1;
 * *end: the ending that the output's name has. Does any row of the class? */
bool gg_convert_row_has(const struct gg_convert_name *row, const char *name,
                        int64_t *layer, int64_t *expert, const char **end);
bool gg_convert_has_name(const struct gguf_convert *c, const char *name);
/* Spell a name that no row has as some row does, if a class and its published
 * checkpoints differ in it; false: none does. */
bool gg_convert_respell(const struct gguf_convert *c,
                        char name[GG_CONVERT_NAME]);
int64_t gg_convert_first_draft(const struct gguf_convert *c);
/* assemble.c: what each tensor of the folder becomes. */
enum gguf_status gg_convert_tensors(struct gguf_convert *c,
                                    struct gguf_error *err);
/* Takes from name what the pattern of a row says, a number for "%" (to layer)
 * and for "@" (to expert); false where they differ. */
bool gg_convert_fits(const char *pattern, struct gguf_str *name,
                     int64_t *layer, int64_t *expert);
/* numbers.c: is a row's tensor a number of a key? Note one that is; write the
 * keys of those noted: GGUF_E_TENSOR, GGUF_E_NONFINITE. */
bool gg_convert_is_number(const struct gg_convert_name *row);
enum gguf_status gg_convert_number(struct gguf_convert *c,
                                   const struct gg_convert_name *row,
                                   uint32_t from, int64_t layer,
                                   struct gguf_error *err);
enum gguf_status gg_convert_numbers(struct gguf_convert *c,
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
enum gguf_status gg_convert_see(struct gg_convert_view *v,
                                struct gguf_error *err);
/* axes.c: the same by a row's text; false: it does not fit the tensor. */
bool gg_convert_axes(struct gg_convert_view *v, const char *text);
/* In words. */
const char *gg_convert_how_text(const struct gg_convert_name *row);
gg_composed_fn *gg_convert_change(uint8_t how);

/* config_keys.c, rope.c, general.c: their part of the metadata. */
enum gguf_status gg_convert_keys(struct gguf_convert *c,
                                 struct gguf_error *err);
enum gguf_status gg_convert_last_keys(struct gguf_convert *c,
                                      struct gguf_error *err);
enum gguf_status gg_convert_rope(struct gguf_convert *c,
                                 struct gguf_error *err);
enum gguf_status gg_convert_rope_count(struct gguf_convert *c,
                                       struct gguf_error *err);
enum gguf_status gg_convert_general(struct gguf_convert *c,
                                    struct gguf_error *err);
/* The n-th row of an architecture's keys, its own first; NULL after the last.
 */
const struct gg_convert_key *
gg_convert_key_row(const struct gg_convert_arch *a, size_t n);
/* "ARCH.key" in buf. */
const char *gg_convert_key(const struct gguf_convert *c, const char *key,
                           char buf[128]);

/* vocab_json.c: what of tokenizer.json is read where it lies: json.h's later.
 */
extern const char *const gg_convert_vocab_later[];
/* vocab_keys.c */
enum gguf_status gg_convert_vocab(struct gguf_convert *c,
                                  struct gguf_error *err);

#endif
