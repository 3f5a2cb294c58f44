/* SPDX-License-Identifier: MIT */
/* vocab_int.h - members of a vocabulary, and the table of algorithms */
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

/* The meta space: U+2581, a visible blank. */
#define GG_META_SPACE      "\xe2\x96\x81"
#define GG_META_SPACE_SIZE 3

struct gg_vocab_token {
    struct gguf_str text; /* text, in the mapping of the file */
    float score;
    uint8_t kind; /* enum gguf_token_kind */
    bool lstrip;  /* blanks before it are dropped when it is split off */
    bool rstrip;  /* blanks after it are dropped when it is split off */
    bool eog;     /* ends generation */
};

struct gg_vocab_space_cleaner;
void gg_vocab_clean_put(struct gg_vocab_space_cleaner *c, char x);

/* Receiver of text that may not fit. */
struct gg_vocab_sink {
    char *out;
    size_t size;     /* bytes at out */
    size_t n;        /* bytes put so far, with those that did not fit */
    bool skip_space; /* drop the next byte if it is a blank */
    struct gg_vocab_space_cleaner
        *clean; /* everything goes there instead; NULL: it does not */
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

/* Write text number i that a token for byte b may have, the best first, to
 * out. Returns its size; 0: after the last. */
typedef size_t gg_vocab_byte_fn(unsigned b, unsigned i, char out[8]);

/* Later roles have no token unless the file names one. */
enum { GG_VOCAB_N_DEFAULTS = GGUF_SPECIAL_MASK + 1 };

/* Rule that finds GGUF_SPECIAL_NEWLINE. */
enum gg_vocab_newline {
    GG_VOCAB_NEWLINE_TEXT, /* first token of the text "\n" */
    GG_VOCAB_NEWLINE_BYTE, /* token of byte 0x0A */
    GG_VOCAB_NEWLINE_PAD   /* default padding token */
};

/* An algorithm: a row of the table in algo.c. */
struct gg_vocab_algo {
    const char *model; /* tokenizer.ggml.model */
    /* in place of the file's tokenizer.ggml.pre; NULL: the file's */
    const char *pre;
    bool add_bos, add_eos, add_sep,
        add_space_prefix; /* defaults of the file's keys */
    bool wraps; /* texts are put between BOS and SEP, whatever the file says */
    bool no_ends;  /* texts get no BOS and EOS, whatever the file says */
    bool one_text; /* put() serves tokens of all kinds except bytes */
    bool clean;    /* blanks before punctuation are removed from texts */
    enum gg_vocab_newline newline;
    gguf_token special[GG_VOCAB_N_DEFAULTS]; /* defaults of the file's keys */
    /* Prepare, after tokens are loaded and indexed. NULL: nothing to do. */
    enum gguf_status (*load)(struct gguf_vocab *v,
                             const struct gguf_file *file,
                             struct gguf_error *err);
    /* Free the memory of load(). NULL: none. */
    void (*unload)(struct gguf_vocab *v);
    /* Append the tokens of a piece of text without special tokens. prefix: the
     * piece is at the start or after a special token. NULL: nothing can be
     * tokenized ("no_vocab"). */
    enum gguf_status (*encode)(const struct gguf_vocab *v, const char *text,
                               size_t size, bool prefix,
                               struct gguf_tokens *out,
                               struct gguf_error *err);
    /* Put the bytes of a normal token. */
    void (*put)(const struct gguf_vocab *v, gguf_token id,
                struct gg_vocab_sink *s);
    gg_vocab_byte_fn *byte_text; /* NULL: bytes have no tokens */
    /* Report faults of the algorithm's own keys; vocab_check.c does the
     * others. NULL: the algorithm has no own keys. */
    enum gguf_status (*check)(const struct gg_vocab_check_context *s,
                              struct gguf_error *err);
};

/* Algorithm of a tokenizer.ggml.model; NULL: unknown. */
const struct gg_vocab_algo *gg_vocab_algo_find(struct gguf_str model);

/* Is it a tokenizer.ggml.model of llama.cpp (August 2026) or of the format's
 * specification, supported or not? */
bool gg_vocab_is_known_model(struct gguf_str model);

struct gguf_vocab {
    const struct gguf_allocator *allocator;
    const struct gguf_file *file;
    /* file with replaced pairs; NULL: no pairs were given */
    struct gguf_file *altered;
    const struct gg_vocab_algo *algo;
    struct gguf_warn_callback warn;

    struct gg_vocab_token *token;
    size_t n_tokens;
    size_t max_size; /* bytes of the longest text */
    struct gg_index index;
    bool has_index;

    gguf_token special[GGUF_N_SPECIAL];
    const char *pre; /* replaces tokenizer.ggml.pre; NULL: the file's */
    bool add_bos, add_eos, add_sep, add_space_prefix;
    gguf_token byte[256]; /* token of each byte; GGUF_TOKEN_NONE: none */

    /* Tokens that are split off before the algorithm sees the text: always
     * [0], with GGUF_TOKENIZE_PARSE_SPECIAL [1]. */
    struct gg_vocab_prefixes split[2];

    struct gg_bpe *bpe; /* members of byte-pair encoding */

    /* tokens by text, for WordPiece, unigram, RWKV and PLaMo-2 */
    struct gg_vocab_trie trie;

    bool lowercase, strip_accents; /* used by WordPiece */

    /* used by unigram: table for rewriting texts */
    struct gg_vocab_charsmap charsmap;
    bool merge_spaces;    /* used by unigram: one blank replaces several */
    double *ugm_score;    /* used by unigram: [n_tokens], scores */
    double unknown_score; /* used by unigram: score of an unknown character */

    int32_t *plamo2_score;

    /* For SentencePiece: no token has a meta space after another character, so
     * that the text can be cut before each run of blanks. */
    bool words;
};

/* Is id in range? */
static inline bool gg_vocab_has_id(const struct gguf_vocab *v, gguf_token id)
{
    return id >= 0 && (size_t)id < v->n_tokens;
}

void gg_vocab_warn(const struct gguf_vocab *v, const char *fmt, ...)
    GGUF_PRINTF(2, 3);

/* Is the out-of-range id of a key refused? Yes if tokenizing puts the token
 * into texts (BOS, EOS, UNK, SEP), unless the id is -1, of 32 or 64 bits,
 * which means that the token does not exist (llama.cpp #2981). Files in use
 * have other out-of-range ids: that of an image may be the number of tokens
 * (llama.cpp #11212). */
bool gg_vocab_refuses_id(const struct gguf_kv *kv);

/* Byte of a text <0xHH>; -1: another text. */
int gg_vocab_byte_text(struct gguf_str text);

/* token_array.c: find an array about tokens, for loading and checking. It must
 * have n elements (n = 0: 1 to 2^31 - 1) of type elem_type. I32 allows all
 * integers and F32 all numbers; values are checked when they are read. *kv is
 * NULL only without the key. */
enum gg_vocab_array {
    GG_VOCAB_ARRAY_GOOD,
    GG_VOCAB_ARRAY_MISSING,
    GG_VOCAB_ARRAY_TYPE,
    GG_VOCAB_ARRAY_LENGTH
};
enum gg_vocab_array gg_vocab_array_find(const struct gguf_file *file,
                                        const char *key, uint32_t elem_type,
                                        uint64_t n, const struct gguf_kv **kv);

/* Read elements of an array that was found as F32. GGUF_E_OVERFLOW: f32 does
 * not hold a value; the message has key and index. */
enum gguf_status gg_vocab_array_scores(const struct gguf_kv *kv,
                                       uint64_t first, size_t n, float *out,
                                       struct gguf_error *err);

/* Is it an enum gguf_token_kind that a file may have? */
bool gg_vocab_is_kind(int32_t kind);

/* Make room for n more tokens. GGUF_E_NOMEM. */
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

/* vocab_load.c: load the vocabulary; allocator, file and algo are set. */
enum gguf_status gg_vocab_load(struct gguf_vocab *v, struct gguf_error *err);

/* load_tables.c: value of a boolean key; dflt without the key. GGUF_E_TYPE. */
enum gguf_status gg_vocab_load_bool(const struct gguf_vocab *v,
                                    const char *key, bool dflt, bool *out,
                                    struct gguf_error *err);

/* load_tables.c: fill v->byte. Warns of bytes without a token. dropped: texts
 * lose such bytes; else they become the unknown token. */
void gg_vocab_load_bytes(struct gguf_vocab *v, gg_vocab_byte_fn *byte_text,
                         bool dropped);

/* vocab_check.c: report all faults of the vocabulary of c->file;
 * gg_vocab_load() stops at the first. The algorithm need not be supported. A
 * file without a vocabulary has no faults. Memory: at most 48 bytes for each
 * token, and for each merge. GGUF_E_CANCELLED, GGUF_E_NOMEM. */
enum gguf_status gg_vocab_check(const struct gg_file_checker *c,
                                struct gguf_error *err);

/* Facts for an algorithm's own check. */
struct gg_vocab_check_context {
    const struct gg_file_checker *c;
    const struct gg_vocab_algo *algo; /* NULL: unknown */
    const struct gguf_str *text;      /* [n], texts of the tokens */
    uint32_t n;
    const struct gg_hash_set *texts; /* NULL: texts are not compared */
};

/* Byte of the file at which a string in the mapping begins. */
uint64_t gg_vocab_text_off(const struct gg_vocab_check_context *s,
                           struct gguf_str t);

/* load_tables.c: load v->lowercase, whose value before is the default, and
 * v->strip_accents. Then: load v->merge_spaces. GGUF_E_TYPE. */
enum gguf_status gg_vocab_load_normalizer(struct gguf_vocab *v,
                                          struct gguf_error *err);
enum gguf_status gg_vocab_load_merge_spaces(struct gguf_vocab *v,
                                            struct gguf_error *err);

/* load_tables.c: make v->trie of the tokens whose kinds, as 1 << kind, are in
 * a mask. GGUF_E_NOMEM, GGUF_E_LIMIT. */
enum gguf_status gg_vocab_load_trie(struct gguf_vocab *v, unsigned kinds,
                                    struct gguf_error *err);

/* token_roles.c: find special tokens by their texts, and tokens that end
 * generation. Then: find tokens that drop blanks beside them. */
void gg_vocab_load_roles(struct gguf_vocab *v);
void gg_vocab_load_strip(struct gguf_vocab *v);
/* Find GGUF_SPECIAL_NEWLINE. To be called after the algorithm's load().
 * GGUF_E_NOMEM. */
enum gguf_status gg_vocab_load_newline(struct gguf_vocab *v,
                                       struct gguf_error *err);

/* word_split.c: prepare v->split. GGUF_E_NOMEM. */
enum gguf_status gg_vocab_split_load(struct gguf_vocab *v,
                                     struct gguf_error *err);
void gg_vocab_split_unload(struct gguf_vocab *v);

/* A piece of a text: a token, or text to tokenize if id is GGUF_TOKEN_NONE. */
struct gg_vocab_piece {
    size_t off, size;
    gguf_token id;
};

/* Cut a text at the tokens that are found by their texts: longer ones first
 * wherever they are, then by id, then from left to right. Control and unknown
 * tokens count only if parse is set. *out receives an owned array of *n
 * pieces. Memory: about 60 bytes for each byte of the text at which a token
 * begins. GGUF_E_NOMEM. GGUF_E_LIMIT: 2^32 such bytes. */
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

/* Parse an entry of tokenizer.ggml.merges, "left right". Returns false if it
 * is not two texts with a blank between. */
bool gg_bpe_parse_merge(struct gguf_str text, struct gguf_str *left,
                        struct gguf_str *right);

/* Join two texts in buf, which has room bytes. Size 0: the joined text is
 * longer, and so longer than every token if buf has room for the longest one.
 */
struct gguf_str gg_bpe_join(struct gguf_str left, struct gguf_str right,
                            char *buf, size_t room);

/* check_merges.c */
enum gguf_status gg_bpe_check(const struct gg_vocab_check_context *s,
                              struct gguf_error *err);

/* Does the algorithm "whitespace" keep the case of letters? */
bool gg_bpe_keeps_case(const struct gguf_vocab *v);

/* The other algorithms have a file each; these are members of their rows. */
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
    gg_vocab_dna_encode, gg_vocab_chunk_hash_encode;
gg_vocab_put_fn gg_vocab_rwkv_put, gg_vocab_plamo2_put, gg_vocab_dna_put,
    gg_vocab_chunk_hash_put;
gg_vocab_check_fn gg_vocab_ugm_check;

/* rwkv.c: byte at *i in t, the text of an RWKV token; *i moves to the next. */
char gg_vocab_rwkv_byte(struct gguf_str t, size_t *i);

#endif
