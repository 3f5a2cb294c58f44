/* SPDX-License-Identifier: MIT */
/* vocab_folder.h - the tokenizer of a folder, as metadata will hold it
 *
 * gg_convert_add_vocab() reads the tokenizer's files into struct
 * gg_convert_vocab, with a reader for each format (vocab_json.c, vocab_spm.c,
 * ...), adds tokens, special tokens and chat templates, and writes the keys. */
#ifndef GG_CONVERT_VOCAB_VOCAB_FOLDER_H
#define GG_CONVERT_VOCAB_VOCAB_FOLDER_H

#include "base/index.h"
#include "base/json_scan.h"
#include "convert/classes.h"
#include "convert/folder/folder.h"
#include "data/description.h"

/* tokenizer.ggml.token_type */
enum {
    GG_CONVERT_NORMAL = 1,
    GG_CONVERT_UNKNOWN,
    GG_CONVERT_CONTROL,
    GG_CONVERT_USER,
    GG_CONVERT_UNUSED,
    GG_CONVERT_BYTE
};

/* More tokens than any tokenizer has; ids in files must be below. */
#define GG_CONVERT_MOST_TOKENS (INT64_C(1) << 24)

struct gg_convert_vocab;
typedef enum gguf_status gg_convert_vocab_fn(struct gg_convert_vocab *v,
                                             struct gguf_error *err);

/* Added token whose id is beyond the rows of the embedding. */
struct gg_convert_token_without_row {
    int64_t id;
    struct gguf_str text;
};

struct gg_convert_vocab {
    struct gg_folder *folder;           /* folder that was read; kept */
    const struct gg_convert_arch *arch; /* row of the class; NULL: none */
    struct gguf_meta *meta;             /* receives the keys */
    const char *model;                  /* tokenizer.ggml.model */
    const char *pre;                    /* tokenizer.ggml.pre; NULL: none */
    /* [n], texts of tokens, in files or in the arena; data NULL: no token with
     * that id */
    struct gguf_str *token;
    float *score;
    int32_t *type;
    size_t n, room;
    int64_t most; /* limit of n; 0: GG_CONVERT_MOST_TOKENS */
    int64_t rows; /* rows of the embedding */
    bool has_scores;
    struct gguf_str *merge;
    size_t n_merges;
    int space_prefix; /* 1 or 0; -1: no file says */
    bool lowercase, strip_accents, merge_spaces;
    struct gguf_str charsmap; /* Unigram's map of replaced characters */
    /* add BOS, EOS or SEP as the tokenizer does, unless a file says */
    bool put_ends;
    /* id of the unknown token, unless a role names it; -1: none */
    int64_t unk;
    /* text of the token of each role, unless a file names it; NULL: none */
    const char *const *role_text;
    size_t pad_from; /* fillers are numbered from this id on */
    bool unique;     /* two tokens with the same text are refused */
    /* Steps of the tokenizer's kind, or NULL. finish: after tokens are added;
     * keys: before special ids are written; last_keys: after all keys. */
    gg_convert_vocab_fn *finish, *keys, *last_keys;
    struct gg_convert_token_without_row
        *rowless; /* added tokens that are left out */
    size_t n_rowless, room_rowless;
    size_t n_left; /* number of these that a note reported */
};

/* Line of a file, without its end ("\n" or "\r\n"). */
struct gg_convert_line {
    const struct gg_mapfile *map;
    uint64_t next; /* byte after the line */
    struct gguf_str text;
    uint64_t off; /* byte where it begins */
    size_t no;    /* number, from 1 */
};
/* Read the next line. false: end of the file. */
bool gg_convert_vocab_next_line(struct gg_convert_line *l);

/* Fill an empty index from texts to ids, for the first n tokens of v. */
enum gguf_status gg_convert_vocab_fill_index(const struct gg_convert_vocab *v,
                                             struct gg_index *ix, size_t n,
                                             struct gguf_error *err);
/* Make room for ids below n. New ids get this score. */
enum gguf_status gg_convert_vocab_grow(struct gg_convert_vocab *v, int64_t n,
                                       float score, struct gguf_error *err);
/* Find the id of a token by linear search; -1: not found. */
int64_t gg_convert_vocab_find(const struct gg_convert_vocab *v,
                              struct gguf_str token);

/* vocab_spm.c: read tokenizer.model. */
enum gguf_status gg_convert_vocab_read_spm(struct gg_convert_vocab *v,
                                           const struct gg_mapfile *m,
                                           struct gguf_error *err);
/* vocab_json.c: read tokenizer.json. */
enum gguf_status gg_convert_vocab_read_json(struct gg_convert_vocab *v,
                                            struct gguf_error *err);
/* Read vocab, an object from texts to ids. Takes vocab. */
enum gguf_status gg_convert_vocab_read_pieces(struct gg_convert_vocab *v,
                                              json_t *vocab,
                                              struct gguf_error *err);
/* Report the failure of a scan, or that its result is not what. */
enum gguf_status gg_convert_vocab_fail_scan(const struct gg_json_scan *s,
                                            const char *what,
                                            struct gguf_error *err);
/* Find a step with this type in a section (normalizer, pre_tokenizer ...),
 * nested or not; NULL: not found. */
const json_t *gg_convert_vocab_find_step(const json_t *section,
                                         const char *type);
/* Does the tokenizer put a blank before a text? */
bool gg_convert_vocab_adds_space_prefix(const struct gg_convert_vocab *v);
/* Is the text of a piece <0xHH>? */
bool gg_convert_vocab_is_byte(struct gguf_str text);
/* vocab_normalizer.c: check the normalizer of a BPE. blanks: it may replace
 * blanks by U+2581; prefix: it may put one before a text. GGUF_E_UNSUPPORTED
 * names the step that does something else. */
enum gguf_status
gg_convert_vocab_check_normalizer(const struct gg_convert_vocab *v,
                                  bool blanks, bool prefix,
                                  struct gguf_error *err);
/* Does a step of the normalizer put U+2581 before a text? */
bool gg_convert_vocab_is_prepend_step(const json_t *step);
/* Refuse a step of a normalizer with GGUF_E_UNSUPPORTED, or note that it is
 * ignored, if the caller asked for that. */
enum gguf_status gg_convert_vocab_refuse_step(const struct gg_convert_vocab *v,
                                              const json_t *step,
                                              struct gguf_error *err);
/* vocab_wpm.c: read WordPiece from tokenizer.json; and from vocab.txt. */
enum gguf_status gg_convert_vocab_read_wpm(struct gg_convert_vocab *v,
                                           const json_t *root, json_t *model,
                                           struct gguf_error *err);
enum gguf_status gg_convert_vocab_read_wpm_txt(struct gg_convert_vocab *v,
                                               const struct gg_mapfile *m,
                                               struct gguf_error *err);
/* vocab_ugm.c, vocab_fairseq.c: read Unigram from tokenizer.json; from
 * sentencepiece.bpe.model, whose ids are XLM-RoBERTa's.
 * gg_convert_vocab_finish_unigram(): steps of both and of vocab_spm.c, after
 * the pieces are read; off: byte of the table in the file. */
enum gguf_status gg_convert_vocab_read_ugm(struct gg_convert_vocab *v,
                                           const json_t *root, json_t *model,
                                           struct gguf_error *err);
enum gguf_status gg_convert_vocab_read_fairseq(struct gg_convert_vocab *v,
                                               const struct gg_mapfile *m,
                                               struct gguf_error *err);
enum gguf_status gg_convert_vocab_finish_unigram(struct gg_convert_vocab *v,
                                                 uint64_t off,
                                                 struct gguf_error *err);
/* vocab_rwkv.c: read rwkv_vocab_v20230424.txt. */
enum gguf_status gg_convert_vocab_read_rwkv(struct gg_convert_vocab *v,
                                            const struct gg_mapfile *m,
                                            struct gguf_error *err);
/* vocab_plamo.c: read tokenizer.jsonl. */
enum gguf_status gg_convert_vocab_read_plamo(struct gg_convert_vocab *v,
                                             const struct gg_mapfile *m,
                                             struct gguf_error *err);
/* vocab_tiktoken.c: read qwen.tiktoken; and tiktoken.model. */
enum gguf_status gg_convert_vocab_read_tiktoken(struct gg_convert_vocab *v,
                                                const struct gg_mapfile *m,
                                                struct gguf_error *err);
enum gguf_status gg_convert_vocab_read_kimi(struct gg_convert_vocab *v,
                                            const struct gg_mapfile *m,
                                            struct gguf_error *err);
/* vocab_post.c: special tokens that post_processor of tokenizer.json adds to a
 * text. */
struct gg_convert_special_ends {
    int bos, eos, sep;    /* 1: added, 0: not; -1: it does not say */
    struct gguf_str last; /* token after a text; data NULL: none */
};
/* vocab_post.c: read them. */
void gg_convert_vocab_read_ends(const struct gg_convert_vocab *v,
                                struct gg_convert_special_ends *out);
/* vocab_added.c: read added tokens and their kinds. */
enum gguf_status gg_convert_vocab_read_added(struct gg_convert_vocab *v,
                                             struct gguf_error *err);
/* vocab_ranked.c: for architectures with .pieces, change a BPE with a piece for
 * each byte into one that keeps its merges. */
enum gguf_status gg_convert_vocab_set_ranked(struct gg_convert_vocab *v,
                                             struct gguf_error *err);
/* vocab_template.c: write the keys of the folder's chat templates.
 * GGUF_E_FORMAT, GGUF_E_LIMIT, GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status
gg_convert_vocab_add_templates(const struct gg_convert_vocab *v,
                               struct gguf_error *err);
/* Role of a special token. */
struct gg_convert_role {
    /* in NAME_token, NAME_token_id and add_NAME_token of files */
    const char *name;
    const char *key, *add; /* keys in GGUF; add NULL: none */
};
enum { GG_CONVERT_ROLES = 9 };
extern const struct gg_convert_role gg_convert_roles[GG_CONVERT_ROLES];
/* vocab_special.c: text of NAME_token in tokenizer_config.json; data NULL:
 * none. */
struct gguf_str gg_convert_vocab_role_text(const struct gg_convert_vocab *v,
                                           const char *name);
/* vocab_special.c: id of the token that role i names by its text; -1: none. */
int64_t gg_convert_vocab_find_role(const struct gg_convert_vocab *v, size_t i);
/* vocab_special.c: does a file of the folder name a BOS token? */
bool gg_convert_vocab_names_bos(const struct gg_convert_vocab *v);
/* vocab_special.c: write the ids of special tokens, then chat templates. */
enum gguf_status gg_convert_vocab_set_special(struct gg_convert_vocab *v,
                                              struct gguf_error *err);
/* vocab_pre.c: set v->pre to the name of the pre-tokenizer of tokenizer.json.
 * GGUF_E_UNSUPPORTED: not recognised; the message describes it. */
enum gguf_status gg_convert_vocab_find_pre(struct gg_convert_vocab *v,
                                           struct gguf_error *err);
/* Text that gg_convert_vocab_probe() cuts. */
extern const char gg_convert_probe[];
/* vocab_probe.c: set v->pre by comparing the words into which section cuts a
 * text with those of each known pre-tokenizer. whole: a word that is a token
 * stays that token. v->pre stays NULL if none gives the same words.
 * GGUF_E_NOMEM. */
enum gguf_status gg_convert_vocab_probe(struct gg_convert_vocab *v,
                                        const json_t *section, bool whole,
                                        struct gguf_error *err);
/* Known descriptions of pre-tokenizers. */
struct gg_convert_pre {
    const char *text, *pre;
    int whole; /* a word that is a token stays that token; -1: either */
};
/* Row n; NULL after the last. */
const struct gg_convert_pre *gg_convert_vocab_pre_row(size_t n);
/* Description of a name's pre-tokenizer, as vocab_pre.c writes it. *whole: a
 * word that is a token stays that token. NULL: unknown name. */
const char *gg_convert_vocab_pre_text(struct gguf_str name, bool *whole);
/* clean_up_tokenization_spaces of a name's tokenizer; -1: either. */
int gg_convert_vocab_pre_clean_up(struct gguf_str name);

/* vocab_keys.c: read the tokenizer of a folder into meta.
 *
 * arch     row of the class; NULL: none
 * rows     rows of the embedding; 0: no embedding
 * n_left   receives the number of added tokens that are left out
 *
 * GGUF_E_VOCAB and others; the message begins with the name of the file. */
enum gguf_status gg_convert_add_vocab(struct gg_folder *folder,
                                      const struct gg_convert_arch *arch,
                                      int64_t rows, struct gguf_meta *meta,
                                      size_t *n_left, struct gguf_error *err);

#endif
