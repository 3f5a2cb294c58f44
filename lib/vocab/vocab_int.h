/* SPDX-License-Identifier: MIT */
/* vocab_int.h - the vocabulary inside, and the table of algorithms */
#ifndef GG_VOCAB_VOCAB_INT_H
#define GG_VOCAB_VOCAB_INT_H

#include "base/hash_set.h"
#include "base/index.h"
#include "file/file_check.h"
#include "gguf/vocab.h"
#include "vocab/charsmap.h"
#include "vocab/prefix.h"
#include "vocab/trie.h"

#include <stdbool.h>
#include <string.h>

/* What the peers call the meta space: U+2581, a visible blank. */
#define GG_META_SPACE      "\xe2\x96\x81"
#define GG_META_SPACE_SIZE 3

struct gg_vocab_token {
    struct gguf_str text; /* in the file's mapping */
    float score;
    uint8_t kind; /* enum gguf_token_kind */
    bool lstrip;  /* blanks before it are dropped when it is split off, */
    bool rstrip;  /* blanks after it */
    bool eog;     /* ends what is generated */
};

struct gg_vocab_space_cleaner;
void gg_vocab_clean_put(struct gg_vocab_space_cleaner *c, char x);

/* Where text goes that may not fit. */
struct gg_vocab_sink {
    char *out;
    size_t size;     /* bytes at out */
    size_t n;        /* bytes put so far, also those that did not fit */
    bool skip_space; /* drop the next byte if it is a blank */
    struct gg_vocab_space_cleaner
        *clean; /* it all goes there instead; or NULL */
};

static inline void gg_vocab_sink_put(struct gg_vocab_sink *s, char c)
{
    if (s->clean) {
        gg_vocab_clean_put(s->clean, c);
        return;
    }
    bool skip = s->skip_space && c == ' ';
    s->skip_space = false;
    if (skip)
        return;
    if (s->n < s->size)
        s->out[s->n] = c;
    s->n++;
}

struct gg_vocab_check_context;

/* The i-th text that a token for a byte can have, the best first, into out: its
 * size, or 0 after the last. */
typedef size_t gg_vocab_byte_fn(unsigned b, unsigned i, char out[8]);

/* Those that come after have no token unless the file says. */
enum { GG_VOCAB_N_DEFAULTS = GGUF_SPECIAL_MASK + 1 };

/* Rule that finds GGUF_SPECIAL_NEWLINE. */
enum gg_vocab_newline {
    GG_VOCAB_NEWLINE_TEXT, /* the first token of the text "\n" */
    GG_VOCAB_NEWLINE_BYTE, /* the token of byte 0x0A */
    GG_VOCAB_NEWLINE_PAD   /* the default padding token */
};

/* One algorithm: a row of the table in algo.c. */
struct gg_vocab_algo {
    const char *model; /* tokenizer.ggml.model */
    const char *pre; /* tokenizer.ggml.pre, whatever the file says; or NULL */
    bool add_bos, add_eos, add_sep,
        add_space_prefix; /* unless the file says */
    bool wraps;    /* BOS and SEP go round a text, whatever the file says */
    bool no_ends;  /* nothing goes round it, whatever the file says */
    bool one_text; /* put gives the bytes of tokens of every kind but bytes */
    bool clean;    /* blanks before punctuation are taken out of texts */
    enum gg_vocab_newline newline;
    gguf_token special[GG_VOCAB_N_DEFAULTS]; /* unless the file says */
    /* Prepare: after tokens are loaded and indexed. Or NULL. */
    enum gguf_status (*load)(struct gguf_vocab *v,
                             const struct gguf_file *file,
                             struct gguf_error *err);
    /* Free what load made. Or NULL. */
    void (*unload)(struct gguf_vocab *v);
    /* Append the tokens of a piece of text that holds no special token.
     * prefix: the piece stands at the start or after a special token.
     * NULL: there is no text to tokenize ("no_vocab"). */
    enum gguf_status (*encode)(const struct gguf_vocab *v, const char *text,
                               size_t size, bool prefix,
                               struct gguf_tokens *out,
                               struct gguf_error *err);
    /* The bytes of a normal token. */
    void (*put)(const struct gguf_vocab *v, gguf_token id,
                struct gg_vocab_sink *s);
    gg_vocab_byte_fn *byte_text; /* NULL: bytes have no tokens */
    /* Report what is wrong about its own keys: vocab_check.c has done the
     * others. NULL: it has none. */
    enum gguf_status (*check)(const struct gg_vocab_check_context *s,
                              struct gguf_error *err);
};

/* By tokenizer.ggml.model, or NULL. */
const struct gg_vocab_algo *gg_vocab_algo_find(struct gguf_str model);

/* Is it a tokenizer.ggml.model of llama.cpp (August 2026) or of the format's
 * specification, supported here or not? */
bool gg_vocab_is_known_model(struct gguf_str model);

struct gguf_vocab {
    const struct gguf_allocator *allocator;
    const struct gguf_file *file;
    struct gguf_file *altered; /* file, if pairs were given; or NULL */
    const struct gg_vocab_algo *algo;
    struct gguf_warn_callback warn;

    struct gg_vocab_token *token;
    size_t n_tokens;
    size_t max_size; /* bytes of the longest text */
    struct gg_index index;
    bool has_index;

    gguf_token special[GGUF_N_SPECIAL];
    const char *pre; /* instead of tokenizer.ggml.pre, or NULL */
    bool add_bos, add_eos, add_sep, add_space_prefix;
    gguf_token byte[256]; /* token of a byte, or GGUF_TOKEN_NONE */

    /* Tokens that are split off before the algorithm sees the text: [0] those
     * that always are, [1] these and what is asked for. */
    struct gg_vocab_prefixes split[2];

    struct gg_bpe *bpe; /* byte-pair encoding's own */

    /* Of WordPiece, unigram, RWKV and PLaMo-2: tokens by their texts. */
    struct gg_vocab_trie trie;

    bool lowercase, strip_accents; /* WordPiece */

    struct gg_vocab_charsmap charsmap; /* unigram: how a text is rewritten, */
    bool merge_spaces;                 /* one blank for several, */
    double *ugm_score;                 /* what each token counts, */
    double unknown_score;              /* and an unknown character */

    int32_t *plamo2_score;

    /* SentencePiece: no token has a meta space after another character, so
     * that the text can be cut before each run of blanks. */
    bool words;
};

/* Is id the id of a token? */
static inline bool gg_vocab_has_id(const struct gguf_vocab *v, gguf_token id)
{
    return id >= 0 && (size_t)id < v->n_tokens;
}

void gg_vocab_warn(const struct gguf_vocab *v, const char *fmt, ...)
    GG_PRINTF(2, 3);

/* Of a key whose id is not one of a token: whether that is refused. It is if
 * tokenizing puts the token into texts (BOS, EOS, UNK, SEP), unless the id is
 * -1, of 32 or 64 bits, which stands for none (llama.cpp #2981). Of other ids,
 * files that people have name some that there are not: an image's is the number
 * of tokens (llama.cpp #11212). */
bool gg_vocab_refuses_id(const struct gguf_kv *kv);

/* The byte of a text <0xHH>, or -1. */
int gg_vocab_byte_text(struct gguf_str text);

/* token_array.c: find an array about tokens, for opening and checking alike. It
 * must have n elements (n = 0: 1 to 2^31 - 1) of type elem_type; I32 allows all
 * integers, F32 all numbers, whose values are checked when they are read. *kv
 * is NULL only without such a key. */
enum gg_vocab_array {
    GG_VOCAB_ARRAY_GOOD,
    GG_VOCAB_ARRAY_MISSING,
    GG_VOCAB_ARRAY_TYPE,
    GG_VOCAB_ARRAY_LENGTH
};
enum gg_vocab_array gg_vocab_array_find(const struct gguf_file *file,
                                        const char *key, uint32_t elem_type,
                                        uint64_t n, const struct gguf_kv **kv);

/* Elements of an array that was found as F32. GGUF_E_OVERFLOW, with key and
 * index: f32 does not hold the value. */
enum gguf_status gg_vocab_array_scores(const struct gguf_kv *kv,
                                       uint64_t first, size_t n, float *out,
                                       struct gguf_error *err);

/* Is it an enum gguf_token_kind that a file may name? */
bool gg_vocab_is_kind(int32_t kind);

/* Room for n more tokens after out->n. GGUF_E_NOMEM. */
enum gguf_status gg_vocab_tokens_reserve(struct gguf_tokens *out, size_t n,
                                         struct gguf_error *err);

/* Append one token. GGUF_E_NOMEM. */
static inline enum gguf_status gg_vocab_tokens_push(struct gguf_tokens *out,
                                                    gguf_token id,
                                                    struct gguf_error *err)
{
    if (out->n == out->cap)
        GG_TRY(gg_vocab_tokens_reserve(out, 1, err));
    out->id[out->n++] = id;
    return GGUF_OK;
}

/* vocab_load.c: metadata to v, which holds allocator, file and algo. */
enum gguf_status gg_vocab_load(struct gguf_vocab *v, struct gguf_error *err);

/* load_tables.c: *out is the value of a key, or dflt without the key.
 * GGUF_E_TYPE. */
enum gguf_status gg_vocab_load_bool(const struct gguf_vocab *v,
                                    const char *key, bool dflt, bool *out,
                                    struct gguf_error *err);

/* load_tables.c: fill v->byte. Bytes without a token are a warning; dropped:
 * texts go on without them, else they become the unknown token. */
void gg_vocab_load_bytes(struct gguf_vocab *v, gg_vocab_byte_fn *byte_text,
                         bool dropped);

/* vocab_check.c: report all that is wrong about the vocabulary of c->file,
 * where gg_vocab_load stops at the first. Needs no algorithm that is supported;
 * a file without vocabulary has no findings. Memory: 48 bytes a token at most,
 * and as much a merge. GGUF_E_CANCELLED, GGUF_E_NOMEM. */
enum gguf_status gg_vocab_check(const struct gg_file_checker *c,
                                struct gguf_error *err);

/* What an algorithm's own check has to go by. */
struct gg_vocab_check_context {
    const struct gg_file_checker *c;
    const struct gg_vocab_algo *algo; /* NULL: not known */
    const struct gguf_str *text;      /* texts of the n tokens */
    uint32_t n;
    const struct gg_hash_set *texts; /* NULL: not to be compared with */
};

/* Byte of the file where a string that lies in the mapping begins. */
uint64_t gg_vocab_text_off(const struct gg_vocab_check_context *s,
                           struct gguf_str t);

/* load_tables.c: v->lowercase, which is set to what it is without a key, and
 * v->strip_accents; v->merge_spaces. GGUF_E_TYPE. */
enum gguf_status gg_vocab_load_normalizer(struct gguf_vocab *v,
                                          struct gguf_error *err);
enum gguf_status gg_vocab_load_merge_spaces(struct gguf_vocab *v,
                                            struct gguf_error *err);

/* load_tables.c: v->trie of the tokens whose kinds, as 1 << kind, are in this
 * mask. GGUF_E_NOMEM, GGUF_E_LIMIT. */
enum gguf_status gg_vocab_load_trie(struct gguf_vocab *v, unsigned kinds,
                                    struct gguf_error *err);

/* token_roles.c: special tokens that are known by their texts, and those that
 * end what is generated; blanks beside them. */
void gg_vocab_load_roles(struct gguf_vocab *v);
void gg_vocab_load_strip(struct gguf_vocab *v);
/* Find GGUF_SPECIAL_NEWLINE, after the algorithm is loaded. GGUF_E_NOMEM. */
enum gguf_status gg_vocab_load_newline(struct gguf_vocab *v,
                                       struct gguf_error *err);

/* word_split.c: prepare v->split. GGUF_E_NOMEM. */
enum gguf_status gg_vocab_split_load(struct gguf_vocab *v,
                                     struct gguf_error *err);
void gg_vocab_split_unload(struct gguf_vocab *v);

/* A stretch of text: a token (id) or text to tokenize (id is
 * GGUF_TOKEN_NONE). */
struct gg_vocab_piece {
    size_t off, size;
    gguf_token id;
};

/* Cut text at the tokens that are found by their text: longer ones first
 * wherever they stand, then by id, then from left to right; control and
 * unknown tokens only if parse is set. *out is an owned array of *n pieces.
 * Memory: some 60 bytes for each byte of the text where a token begins,
 * whatever their number. GGUF_E_NOMEM, GGUF_E_LIMIT (2^32 such bytes). */
enum gguf_status gg_vocab_split_text(const struct gguf_vocab *v,
                                     const char *text, size_t size, bool parse,
                                     struct gg_vocab_piece **out, size_t *n,
                                     struct gguf_error *err);

/* spm.c: SentencePiece byte-pair encoding, merges by score. */
enum gguf_status gg_spm_load(struct gguf_vocab *v,
                             const struct gguf_file *file,
                             struct gguf_error *err);
enum gguf_status gg_spm_encode(const struct gguf_vocab *v, const char *text,
                               size_t size, bool prefix,
                               struct gguf_tokens *out,
                               struct gguf_error *err);
void gg_spm_put(const struct gguf_vocab *v, gguf_token id,
                struct gg_vocab_sink *s);
gg_vocab_byte_fn gg_spm_byte_text;
enum gguf_status gg_spm_check(const struct gg_vocab_check_context *s,
                              struct gguf_error *err);

/* bpe.c: byte-level byte-pair encoding, merges by rank. */
enum gguf_status gg_bpe_load(struct gguf_vocab *v,
                             const struct gguf_file *file,
                             struct gguf_error *err);
void gg_bpe_unload(struct gguf_vocab *v);
enum gguf_status gg_bpe_encode(const struct gguf_vocab *v, const char *text,
                               size_t size, bool prefix,
                               struct gguf_tokens *out,
                               struct gguf_error *err);
void gg_bpe_put(const struct gguf_vocab *v, gguf_token id,
                struct gg_vocab_sink *s);
gg_vocab_byte_fn gg_bpe_byte_text;

/* Cut an entry of tokenizer.ggml.merges, "left right". false: it is not two
 * texts with a blank between. */
bool gg_bpe_parse_merge(struct gguf_str text, struct gguf_str *left,
                        struct gguf_str *right);

/* The text that left and right join to, in buf of room bytes; size 0 if that is
 * longer. With room for the longest token it is longer than every token. */
struct gguf_str gg_bpe_join(struct gguf_str left, struct gguf_str right,
                            char *buf, size_t room);

/* check_merges.c */
enum gguf_status gg_bpe_check(const struct gg_vocab_check_context *s,
                              struct gguf_error *err);

/* Does "whitespace" leave the case of letters as it is? */
bool gg_bpe_keeps_case(const struct gguf_vocab *v);

/* The other algorithms, one file each: members of a row. */
typedef enum gguf_status gg_vocab_load_fn(struct gguf_vocab *v,
                                          const struct gguf_file *file,
                                          struct gguf_error *err);
typedef enum gguf_status gg_vocab_encode_fn(const struct gguf_vocab *v,
                                            const char *text, size_t size,
                                            bool prefix,
                                            struct gguf_tokens *out,
                                            struct gguf_error *err);
typedef void gg_vocab_put_fn(const struct gguf_vocab *v, gguf_token id,
                             struct gg_vocab_sink *s);
typedef enum gguf_status
gg_vocab_check_fn(const struct gg_vocab_check_context *s,
                  struct gguf_error *err);

gg_vocab_load_fn gg_vocab_wpm_load, gg_vocab_ugm_load, gg_vocab_rwkv_load,
    gg_vocab_plamo2_load, gg_vocab_whitespace_load;
gg_vocab_encode_fn gg_vocab_wpm_encode, gg_vocab_ugm_encode,
    gg_vocab_rwkv_encode, gg_vocab_plamo2_encode, gg_vocab_whitespace_encode,
    gg_vocab_dna_encode;
gg_vocab_put_fn gg_vocab_rwkv_put, gg_vocab_plamo2_put, gg_vocab_dna_put;
gg_vocab_check_fn gg_vocab_ugm_check;

/* rwkv.c: the byte that t, the text of a token of RWKV's, has at *i, and on to
 * the next. */
char gg_vocab_rwkv_byte(struct gguf_str t, size_t *i);

#endif
