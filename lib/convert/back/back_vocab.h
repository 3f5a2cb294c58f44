/* SPDX-License-Identifier: MIT */
/* back_vocab.h - tokens of a file, for writers of a folder's tokenizer
 *
 * back_vocab.c reads the tokens and calls the writer for the kind of
 * vocabulary.
 */
#ifndef GG_CONVERT_BACK_BACK_VOCAB_H
#define GG_CONVERT_BACK_BACK_VOCAB_H

#include "convert/back/back.h"
#include "convert/vocab/vocab_folder.h"

struct gg_back_tokens {
    struct gg_back *b;
    const struct gguf_kv *list; /* array of the tokens' texts */
    size_t n;
    /* [n], texts in the file; the array is in the arena, as types and scores */
    struct gguf_str *text;
    int32_t *types; /* [n], kinds */
    float *scores;
    size_t n_used; /* tokens without the fillers at the end */
};

/* Writes the file of the tokens. May add members to tokenizer_config.json; they
 * take precedence. */
typedef enum gguf_status gg_back_vocab_fn(const struct gg_back_tokens *t,
                                          json_t *config,
                                          struct gg_back_text *out,
                                          struct gguf_error *err);
/* Writers: back_pieces.c writes tokenizer.json, where that can express the
 * vocabulary, vocab.txt and spiece.model; back_rwkv.c and back_plamo.c their
 * own formats. */
gg_back_vocab_fn gg_back_put_wordpiece, gg_back_put_unigram, gg_back_put_rwkv,
    gg_back_put_plamo;
/* back_spm.c: write a SentencePiece model with this name, BPE or Unigram. */
enum gguf_status gg_back_put_spm(const struct gg_back_tokens *t,
                                 const char *name, bool unigram,
                                 struct gg_back_text *out,
                                 struct gguf_error *err);

/* back_vocab.c: fail with GGUF_E_VOCAB.
 */
enum gguf_status gg_back_vocab_fail(const char *what, struct gguf_error *err);
/* back_vocab.c: make out the file name with the JSON text of root. Takes
 * root. */
enum gguf_status gg_back_vocab_set_text(struct gg_back_text *out,
                                        const char *name, json_t *root,
                                        struct gguf_error *err);
/* back_vocab.c: value of a bool key; otherwise: without the key. */
int gg_back_vocab_get_flag(const struct gg_back *b, const char *key,
                           int otherwise);
/* back_vocab.c: token whose id a key holds; -1: none. */
int64_t gg_back_vocab_find_role(const struct gg_back_tokens *t,
                                const char *key);
/* back_template.c: add the chat templates to root, the object of
 * tokenizer_config.json. */
void gg_back_put_templates(const struct gg_back *b, json_t *root);
/* back_pieces.c: post_processor of tokenizer.json: TemplateProcessing that adds
 * BOS and EOS as the file says, or null. */
json_t *gg_back_vocab_make_post(const struct gg_back_tokens *t);
/* back_vocab.c: added_tokens of tokenizer.json. */
json_t *gg_back_vocab_make_added(const struct gg_back_tokens *t);
/* back_vocab.c: add a token to vocab of tokenizer.json. GGUF_E_VOCAB: it is
 * there already, or its text cannot be a member. */
enum gguf_status gg_back_vocab_put_token(const struct gg_back_tokens *t,
                                         json_t *vocab, const char *before,
                                         struct gguf_str s, size_t id,
                                         struct gguf_error *err);

#endif
