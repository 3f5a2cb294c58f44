/* SPDX-License-Identifier: MIT */
/* card.h - what a folder's README.md says of the model before its text
 *
 * A model card begins with pairs in YAML between two lines "---". Read is what
 * cards have of it: a key at the beginning of a line, and after it a text
 * (plain, quoted, or a block), a list of texts in either form, or something
 * deeper, which is passed over. Anchors, references and tags are refused, so
 * that a card takes no more memory than it has bytes.
 */
#ifndef GG_CONVERT_CARD_CARD_H
#define GG_CONVERT_CARD_CARD_H

#include "base/error.h"
#include "base/mem.h"
#include "gguf/kv.h"

#include <stdbool.h>

enum {
    GG_CARD_BYTES = 1 << 20, /* of the pairs */
    GG_CARD_PAIRS = 512,
    GG_CARD_ITEMS = 4096 /* of one list */
};

struct gg_card_pair {
    struct gguf_str key;
    struct gguf_str *item; /* n of them; 0: the value is null, or deeper */
    size_t n;
    bool is_list;
    bool deeper; /* some of it is not a text, and is not among the items */
    size_t line; /* from 1 */
};

struct gg_card {
    struct gg_card_pair *pair;
    size_t n;
};

/* Read the pairs at the beginning of text, which may have none; what card has
 * is in the arena. GGUF_E_FORMAT (with line and byte), GGUF_E_LIMIT,
 * GGUF_E_NOMEM; card is empty then. */
enum gguf_status gg_card_read(struct gg_card *card, struct gg_mem_arena *arena,
                              const char *text, size_t size,
                              struct gguf_error *err);

/* The last pair of this key; NULL. */
const struct gg_card_pair *gg_card_find(const struct gg_card *card,
                                        const char *key);

/* What the name of a repository, "ORGANIZATION/Base-7B-Instruct-v0.1", says;
 * in the arena, NULL: it does not. */
struct gg_card_name {
    char *name, *organization, *basename, *finetune, *version, *size_label;
};

/* n_params: weights of the model, below 0 of an adapter, 0: not known. A size
 * in the name that cannot be the model's is a length of context, and then of
 * the finetune. GGUF_E_NOMEM, GGUF_E_LIMIT (over 1000 bytes: nothing is said).
 */
enum gguf_status gg_card_read_name(struct gg_card_name *out,
                                   struct gg_mem_arena *arena,
                                   struct gguf_str id, double n_params,
                                   struct gguf_error *err);

/* A model or a set of data that one is made of, by what a card calls it: the
 * name of a repository, or an address; NULL: it does not say. GGUF_E_NOMEM. */
struct gg_card_source {
    char *name, *version, *organization, *url;
};
#define GG_CARD_HUB "https://huggingface.co/"
enum gguf_status gg_card_read_source(struct gg_card_source *out,
                                     struct gg_mem_arena *arena,
                                     struct gguf_str id, double n_params,
                                     struct gguf_error *err);

/* As a title: blanks for dashes, and words of small letters begin with a large
 * one, unless they are versions or sizes. NULL: no memory. */
char *gg_card_make_title(struct gg_mem_arena *arena, const char *name);

/* general.c: texts of the model, in the order of writing: the key, and what a
 * card calls it, the first that is there; ends with NULLs. */
struct gg_card_field {
    const char *key, *of_card[3];
};
extern const struct gg_card_field gg_card_fields[];

/* How generation_config.json wants tokens to be chosen: the key, its name
 * there, and what it is: 's' a text, 'i' a whole number, 'f' a number. */
struct gg_card_sampling {
    const char *key, *name;
    char kind;
};
extern const struct gg_card_sampling gg_card_samplings[];

#endif
