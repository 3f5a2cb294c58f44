/* vocab.h - the tokenizer of a folder, as metadata will have it */
#ifndef GG_CONVERT_VOCAB_H
#define GG_CONVERT_VOCAB_H

#include "convert/convert.h"

/* tokenizer.ggml.token_type */
enum {
    GG_CONVERT_NORMAL = 1,
    GG_CONVERT_UNKNOWN,
    GG_CONVERT_CONTROL,
    GG_CONVERT_USER,
    GG_CONVERT_UNUSED,
    GG_CONVERT_BYTE
};

/* More than any tokenizer has: ids from files are below. */
#define GG_CONVERT_MOST_TOKENS (INT64_C(1) << 24)

struct gg_convert_vocab {
    struct gguf_convert *c;
    const char *model;      /* tokenizer.ggml.model */
    const char *pre;        /* tokenizer.ggml.pre */
    struct gguf_str *token; /* data is NULL: there is none of that id. The
                             * texts are those of files, or the arena's */
    float *score;
    int32_t *type;
    size_t n, room;
    bool has_scores;
    struct gguf_str *merge;
    size_t n_merges;
    int space_prefix; /* 1, 0, or -1: not said */
};

/* Make room for ids below n, with score for those that are new. */
enum gguf_status gg_convert_vocab_grow(struct gg_convert_vocab *v, int64_t n,
                                       float score, struct gguf_error *err);
/* The id of a token; -1: there is none. Searched for. */
int64_t gg_convert_vocab_find(const struct gg_convert_vocab *v,
                              struct gguf_str token);

/* vocab_spm.c: of tokenizer.model. */
enum gguf_status gg_convert_vocab_spm(struct gg_convert_vocab *v,
                                      const struct gg_mapfile *m,
                                      struct gguf_error *err);
/* vocab_json.c: of tokenizer.json. */
enum gguf_status gg_convert_vocab_json(struct gg_convert_vocab *v,
                                       struct gguf_error *err);
/* vocab_added.c: tokens that were added to those of the model, and the kinds
 * that they give. */
enum gguf_status gg_convert_vocab_added(struct gg_convert_vocab *v,
                                        struct gguf_error *err);
/* vocab_special.c: ids with a meaning, and the chat template. */
struct gg_convert_role {
    const char *name;      /* in NAME_token, NAME_token_id, add_NAME_token */
    const char *key, *add; /* in GGUF; add is NULL: there is none */
};
enum { GG_CONVERT_ROLES = 7 };
extern const struct gg_convert_role gg_convert_roles[GG_CONVERT_ROLES];
enum gguf_status gg_convert_vocab_special(struct gg_convert_vocab *v,
                                          struct gguf_error *err);
/* vocab_pre.c: the name of how tokenizer.json cuts words. GGUF_E_UNSUPPORTED:
 * not recognised, with the description. */
enum gguf_status gg_convert_vocab_pre(struct gg_convert_vocab *v,
                                      struct gguf_error *err);
/* The description of a name, as vocab_pre.c says it, and whether words that are
 * tokens are those tokens; NULL: there is none. */
const char *gg_convert_vocab_pre_text(struct gguf_str name, bool *whole);

#endif
