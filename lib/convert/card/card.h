/* SPDX-License-Identifier: MIT */
/* card.h - the metadata of a model card (README.md)
 *
 * A model card begins with pairs in YAML between two lines "---". This reader
 * supports what cards contain: a key at the beginning of a line, followed by a
 * text (plain, quoted, or a block), a list of texts in either form, or a nested
 * value, which is skipped. Anchors, references and tags are refused, so that a
 * card takes no more memory than it has bytes.
 */
#ifndef GG_CONVERT_CARD_CARD_H
#define GG_CONVERT_CARD_CARD_H

#include "base/error.h"
#include "base/mem.h"
#include "gguf/kv.h"

#include <stdbool.h>

enum {
    GG_CARD_BYTES = 1 << 20, /* most bytes of the pairs */
    GG_CARD_PAIRS = 512,
    GG_CARD_ITEMS = 4096 /* most items of a list */
};

struct gg_card_pair {
    struct gguf_str key;
    struct gguf_str *item; /* [n]; n 0: the value is null or nested */
    size_t n;
    bool is_list;
    bool deeper; /* some of the value is nested and not among the items */
    size_t line; /* number of the line, from 1 */
};

struct gg_card {
    struct gg_card_pair *pair;
    size_t n;
};

/* Read the pairs at the beginning of text. Without pairs card is empty. Memory:
 * the arena.
 *
 * GGUF_E_FORMAT   A line is not supported YAML; the message has its number, the
 *                 error its byte.
 * GGUF_E_LIMIT, GGUF_E_NOMEM
 *
 * After a failure card is empty. */
enum gguf_status gg_card_read(struct gg_card *card, struct gg_mem_arena *arena,
                              const char *text, size_t size,
                              struct gguf_error *err);

/* Find the last pair with this key; NULL: not found. */
const struct gg_card_pair *gg_card_find(const struct gg_card *card,
                                        const char *key);

/* Parts of the name of a repository, "ORGANIZATION/Base-7B-Instruct-v0.1".
 * NULL: the name lacks the part. */
struct gg_card_name {
    char *name, *organization, *basename, *finetune, *version, *size_label;
};

/* Split the name of a repository. Memory: the arena.
 *
 * n_params   weights of the model; below 0: of an adapter; 0: unknown. A size
 *            in the name that cannot be the model's is a length of context and
 *            belongs to the finetune.
 *
 * GGUF_E_NOMEM; GGUF_E_LIMIT: id has more than 1000 bytes.
 */
enum gguf_status gg_card_read_name(struct gg_card_name *out,
                                   struct gg_mem_arena *arena,
                                   struct gguf_str id, double n_params,
                                   struct gguf_error *err);

/* Model or data set from which a model is made. A card names it by its
 * repository or by an address. NULL: unknown. */
struct gg_card_source {
    char *name, *version, *organization, *url;
};
#define GG_CARD_HUB "https://huggingface.co/"
enum gguf_status gg_card_read_source(struct gg_card_source *out,
                                     struct gg_mem_arena *arena,
                                     struct gguf_str id, double n_params,
                                     struct gguf_error *err);

/* Make a title of a name: dashes become blanks, and words in lower case get a
 * capital, unless they are versions or sizes. NULL: no memory. */
char *gg_card_make_title(struct gg_mem_arena *arena, const char *name);

/* general.c: texts of the model in order of writing. of_card: names in a card;
 * the first that exists is used. Ends with NULLs. */
struct gg_card_field {
    const char *key, *of_card[3];
};
extern const struct gg_card_field gg_card_fields[];

/* Parameters of sampling in generation_config.json. kind: 's' a text, 'i' a
 * whole number, 'f' a number. */
struct gg_card_sampling {
    const char *key, *name;
    char kind;
};
extern const struct gg_card_sampling gg_card_samplings[];

#endif
