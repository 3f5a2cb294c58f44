/* SPDX-License-Identifier: MIT */
/* back_vocab.h - the tokens of a file, for those who write them as a folder has
 * them: a function for each kind of vocabulary
 */
#ifndef GG_CONVERT_BACK_BACK_VOCAB_H
#define GG_CONVERT_BACK_BACK_VOCAB_H

#include "convert/back/back.h"
#include "convert/vocab/vocab_folder.h"

struct gg_back_tokens {
    struct gg_back *b;
    const struct gguf_kv *list; /* of texts */
    size_t n;
    struct gguf_str *text; /* of all, in the file; in the arena, as kinds */
    int32_t *types;        /* and scores */
    float *scores;
    size_t n_used; /* without those at the end that fill the model's rows */
};

/* Writes the file of the tokens, and may put what else is to be said into
 * tokenizer_config.json; what it puts there stays. */
typedef enum gguf_status gg_back_vocab_fn(const struct gg_back_tokens *t,
                                          json_t *config,
                                          struct gg_back_text *out,
                                          struct gguf_error *err);
/* back_pieces.c: tokenizer.json, where that says it; vocab.txt, spiece.model;
 * back_rwkv.c; back_plamo.c. */
gg_back_vocab_fn gg_back_put_wordpiece, gg_back_put_unigram, gg_back_put_rwkv,
    gg_back_put_plamo;
/* back_spm.c: SentencePiece's model of this name, BPE or Unigram. */
enum gguf_status gg_back_put_spm(const struct gg_back_tokens *t,
                                 const char *name, bool unigram,
                                 struct gg_back_text *out,
                                 struct gguf_error *err);

/* back_vocab.c: GGUF_E_VOCAB; root, which is taken, as the text of a file; the
 * value of a key, or what it is otherwise; the token whose id a key is, or -1.
 */
enum gguf_status gg_back_vocab_fail(const char *what, struct gguf_error *err);
enum gguf_status gg_back_vocab_set_text(struct gg_back_text *out,
                                        const char *name, json_t *root,
                                        struct gguf_error *err);
int gg_back_vocab_get_flag(const struct gg_back *b, const char *key,
                           int otherwise);
int64_t gg_back_vocab_find_role(const struct gg_back_tokens *t,
                                const char *key);
/* back_template.c: have root, of tokenizer_config.json, state the templates. */
void gg_back_put_templates(const struct gg_back *b, json_t *root);
/* back_pieces.c: TemplateProcessing that puts BOS and EOS where the file says
 * so, or null. */
json_t *gg_back_vocab_make_post(const struct gg_back_tokens *t);
/* added_tokens of tokenizer.json; a member of its vocab. GGUF_E_VOCAB: it is
 * there, or cannot be one. */
json_t *gg_back_vocab_make_added(const struct gg_back_tokens *t);
enum gguf_status gg_back_vocab_put_token(const struct gg_back_tokens *t,
                                         json_t *vocab, const char *before,
                                         struct gguf_str s, size_t id,
                                         struct gguf_error *err);

#endif
