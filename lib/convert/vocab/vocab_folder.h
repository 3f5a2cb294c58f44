/* SPDX-License-Identifier: MIT */
/* vocab_folder.h - the tokenizer of a folder, as metadata will have it */
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

/* More than any tokenizer has: ids from files are below. */
#define GG_CONVERT_MOST_TOKENS (INT64_C(1) << 24)

struct gg_convert_vocab;
typedef enum gguf_status gg_convert_vocab_fn(struct gg_convert_vocab *v,
                                             struct gguf_error *err);

/* An added token whose id is not below the number of the embedding's rows. */
struct gg_convert_token_without_row {
    int64_t id;
    struct gguf_str text;
};

struct gg_convert_vocab {
    struct gg_folder *folder;           /* read; kept */
    const struct gg_convert_arch *arch; /* NULL: no class */
    struct gguf_meta *meta;             /* gets the keys */
    const char *model;                  /* tokenizer.ggml.model */
    const char *pre;        /* tokenizer.ggml.pre; NULL: there is none */
    struct gguf_str *token; /* data is NULL: there is none of that id. The
                             * texts are those of files, or the arena's */
    float *score;
    int32_t *type;
    size_t n, room;
    int64_t most; /* limit of n; 0: GG_CONVERT_MOST_TOKENS */
    int64_t rows; /* rows of the embedding */
    bool has_scores;
    struct gguf_str *merge;
    size_t n_merges;
    int space_prefix; /* 1, 0, or -1: not said */
    bool lowercase, strip_accents, merge_spaces;
    struct gguf_str charsmap;     /* how Unigram rewrites texts */
    bool put_ends;                /* BOS, EOS, SEP, unless a file says */
    int64_t unk;                  /* unless a role says so; -1: none */
    const char *const *role_text; /* the same: of each role, or NULL */
    size_t pad_from;              /* fillers are counted from this id on */
    bool unique;                  /* two tokens of one text are refused */
    /* What its kind does: once tokens are added, before ids with a meaning are
     * written, after all. Or NULL. */
    gg_convert_vocab_fn *finish, *keys, *last_keys;
    struct gg_convert_token_without_row
        *rowless; /* tokens that are left out */
    size_t n_rowless, room_rowless;
    size_t n_left; /* tokens of these that a note told */
};

/* Lines of a file, without their end ("\n" or "\r\n"). */
struct gg_convert_line {
    const struct gg_mapfile *map;
    uint64_t next; /* byte after it */
    struct gguf_str text;
    uint64_t off; /* where it begins */
    size_t no;    /* the first is 1 */
};
/* The next one, or false. */
bool gg_convert_vocab_next_line(struct gg_convert_line *l);

/* Texts of tokens, to ids: of v's tokens, none at first. */
enum gguf_status gg_convert_vocab_fill_index(const struct gg_convert_vocab *v,
                                             struct gg_index *ix, size_t n,
                                             struct gguf_error *err);
/* Make room for ids below n, with score for those that are new. */
enum gguf_status gg_convert_vocab_grow(struct gg_convert_vocab *v, int64_t n,
                                       float score, struct gguf_error *err);
/* The id of a token; -1: there is none. Searched for. */
int64_t gg_convert_vocab_find(const struct gg_convert_vocab *v,
                              struct gguf_str token);

/* vocab_spm.c: of tokenizer.model. */
enum gguf_status gg_convert_vocab_read_spm(struct gg_convert_vocab *v,
                                           const struct gg_mapfile *m,
                                           struct gguf_error *err);
/* vocab_json.c: of tokenizer.json. */
enum gguf_status gg_convert_vocab_read_json(struct gg_convert_vocab *v,
                                            struct gguf_error *err);
/* Its vocab, an object of texts and ids; the failure of a scan, or that what
 * it came to is not what it should be; a step of a section (normalizer,
 * pre_tokenizer ...) of that type, however deep, or NULL. */
enum gguf_status gg_convert_vocab_read_pieces(struct gg_convert_vocab *v,
                                              json_t *vocab,
                                              struct gguf_error *err);
enum gguf_status gg_convert_vocab_fail_scan(const struct gg_json_scan *s,
                                            const char *what,
                                            struct gguf_error *err);
const json_t *gg_convert_vocab_find_step(const json_t *section,
                                         const char *type);
/* Is a blank put before a text? Is a piece's text <0xHH>? */
bool gg_convert_vocab_adds_space_prefix(const struct gg_convert_vocab *v);
bool gg_convert_vocab_is_byte(struct gguf_str text);
/* vocab_normalizer.c: check the normalizer of a BPE, whose kind may put U+2581
 * for blanks, and one in front of a text. Does a step do the latter? Refuse a
 * step of a normalizer, or note that it is left out, if that is asked for.
 * GGUF_E_UNSUPPORTED, with the step. */
enum gguf_status
gg_convert_vocab_check_normalizer(const struct gg_convert_vocab *v,
                                  bool blanks, bool prefix,
                                  struct gguf_error *err);
bool gg_convert_vocab_is_prepend_step(const json_t *step);
enum gguf_status gg_convert_vocab_refuse_step(const struct gg_convert_vocab *v,
                                              const json_t *step,
                                              struct gguf_error *err);
/* vocab_wpm.c: WordPiece, of tokenizer.json and of vocab.txt. */
enum gguf_status gg_convert_vocab_read_wpm(struct gg_convert_vocab *v,
                                           const json_t *root, json_t *model,
                                           struct gguf_error *err);
enum gguf_status gg_convert_vocab_read_wpm_txt(struct gg_convert_vocab *v,
                                               const struct gg_mapfile *m,
                                               struct gguf_error *err);
/* vocab_ugm.c: Unigram, of tokenizer.json; of sentencepiece.bpe.model, whose
 * ids are XLM-RoBERTa's; what both and vocab_spm.c have in common, once the
 * pieces are read (off: byte of the file where the table is). */
enum gguf_status gg_convert_vocab_read_ugm(struct gg_convert_vocab *v,
                                           const json_t *root, json_t *model,
                                           struct gguf_error *err);
enum gguf_status gg_convert_vocab_read_fairseq(struct gg_convert_vocab *v,
                                               const struct gg_mapfile *m,
                                               struct gguf_error *err);
enum gguf_status gg_convert_vocab_finish_unigram(struct gg_convert_vocab *v,
                                                 uint64_t off,
                                                 struct gguf_error *err);
/* vocab_rwkv.c: of rwkv_vocab_v20230424.txt. */
enum gguf_status gg_convert_vocab_read_rwkv(struct gg_convert_vocab *v,
                                            const struct gg_mapfile *m,
                                            struct gguf_error *err);
/* vocab_plamo.c: of tokenizer.jsonl. */
enum gguf_status gg_convert_vocab_read_plamo(struct gg_convert_vocab *v,
                                             const struct gg_mapfile *m,
                                             struct gguf_error *err);
/* vocab_tiktoken.c: of qwen.tiktoken. */
enum gguf_status gg_convert_vocab_read_tiktoken(struct gg_convert_vocab *v,
                                                const struct gg_mapfile *m,
                                                struct gguf_error *err);
/* vocab_post.c: what tokenizer.json's post_processor puts round a text. */
struct gg_convert_special_ends {
    int bos, eos, sep;    /* put, or not; -1: not said */
    struct gguf_str last; /* after a text; or its data is NULL */
};
void gg_convert_vocab_read_ends(const struct gg_convert_vocab *v,
                                struct gg_convert_special_ends *out);
/* vocab_added.c: tokens that were added to those of the model, and the kinds
 * that they give. */
enum gguf_status gg_convert_vocab_read_added(struct gg_convert_vocab *v,
                                             struct gguf_error *err);
/* vocab_ranked.c: pieces with a piece for each byte that keep their merges,
 * where the architecture has them so. */
enum gguf_status gg_convert_vocab_set_ranked(struct gg_convert_vocab *v,
                                             struct gguf_error *err);
/* vocab_template.c: keys of the folder's chat templates. GGUF_E_FORMAT,
 * GGUF_E_LIMIT, GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status
gg_convert_vocab_add_templates(const struct gg_convert_vocab *v,
                               struct gguf_error *err);
/* vocab_special.c: ids with a meaning, then chat templates. */
struct gg_convert_role {
    const char *name;      /* in NAME_token, NAME_token_id, add_NAME_token */
    const char *key, *add; /* in GGUF; add is NULL: there is none */
};
enum { GG_CONVERT_ROLES = 9 };
extern const struct gg_convert_role gg_convert_roles[GG_CONVERT_ROLES];
/* The text of NAME_token in tokenizer_config.json (no data: there is none), and
 * the id of the token that role i names by its text, or -1. */
struct gguf_str gg_convert_vocab_role_text(const struct gg_convert_vocab *v,
                                           const char *name);
int64_t gg_convert_vocab_find_role(const struct gg_convert_vocab *v, size_t i);
/* Does a file of the folder name a token that begins texts? */
bool gg_convert_vocab_names_bos(const struct gg_convert_vocab *v);
enum gguf_status gg_convert_vocab_set_special(struct gg_convert_vocab *v,
                                              struct gguf_error *err);
/* vocab_pre.c: the name of how tokenizer.json cuts words. GGUF_E_UNSUPPORTED:
 * not recognised, with the description. */
enum gguf_status gg_convert_vocab_find_pre(struct gg_convert_vocab *v,
                                           struct gguf_error *err);
/* vocab_probe.c: the same, by the words of a text, which section, and whether
 * words that are tokens are those tokens, make of it; v->pre stays NULL if no
 * row makes the same. GGUF_E_NOMEM. */
extern const char gg_convert_probe[];
enum gguf_status gg_convert_vocab_probe(struct gg_convert_vocab *v,
                                        const json_t *section, bool whole,
                                        struct gguf_error *err);
/* Descriptions that are known; NULL after the last. */
struct gg_convert_pre {
    const char *text, *pre;
    int whole; /* a word that is a token is that token; -1: either */
};
const struct gg_convert_pre *gg_convert_vocab_pre_row(size_t n);
/* The description of a name's words, as vocab_pre.c writes it, and whether
 * words that are tokens are those tokens; NULL: none is known. */
const char *gg_convert_vocab_pre_text(struct gguf_str name, bool *whole);
/* clean_up_tokenization_spaces that the name stands for; -1: either. */
int gg_convert_vocab_pre_clean_up(struct gguf_str name);

/* vocab_keys.c: read the tokenizer of a folder into meta. rows: those of the
 * embedding, 0 if there is none; *n_left: added tokens that are left out.
 * GGUF_E_VOCAB and others, with the name of the file. */
enum gguf_status gg_convert_add_vocab(struct gg_folder *folder,
                                      const struct gg_convert_arch *arch,
                                      int64_t rows, struct gguf_meta *meta,
                                      size_t *n_left, struct gguf_error *err);

#endif
