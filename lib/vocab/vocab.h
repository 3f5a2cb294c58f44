/* vocab.h - the vocabulary inside, and the table of algorithms */
#ifndef GG_VOCAB_VOCAB_H
#define GG_VOCAB_VOCAB_H

#include "base/hashes.h"
#include "base/index.h"
#include "file/check.h"
#include "gguf/vocab.h"
#include "vocab/prefix.h"

#include <stdbool.h>
#include <string.h>

/* What the peers call the meta space: U+2581, a visible blank. */
#define GG_META_SPACE      "\xe2\x96\x81"
#define GG_META_SPACE_SIZE 3

struct gg_vocab_token {
    struct gguf_str text; /* in the file's mapping */
    float score;
    uint8_t kind; /* enum gguf_token_kind */
    bool rstrip;  /* blanks after it are dropped when it is split off */
};

/* Where text goes that may not fit. */
struct gg_vocab_sink {
    char *out;
    size_t size;     /* bytes at out */
    size_t n;        /* bytes put so far, also those that did not fit */
    bool skip_space; /* drop the next byte if it is a blank */
};

static inline void gg_vocab_sink_put(struct gg_vocab_sink *s, char c)
{
    bool skip = s->skip_space && c == ' ';
    s->skip_space = false;
    if (skip)
        return;
    if (s->n < s->size)
        s->out[s->n] = c;
    s->n++;
}

struct gg_vocab_scan;

/* One algorithm: a row of the table in algo.c. */
struct gg_vocab_algo {
    const char *model;                       /* tokenizer.ggml.model */
    bool add_bos, add_eos, add_space_prefix; /* unless the file says */
    gguf_token special[GGUF_N_SPECIAL];      /* unless the file says */
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
    /* The i-th text that a token for a byte can have, the best first, into
     * out: its size, or 0 after the last. */
    size_t (*byte_text)(unsigned b, unsigned i, char out[8]);
    /* Report what is wrong about its own keys: check.c has done the others.
     * NULL: it has none. */
    enum gguf_status (*check)(const struct gg_vocab_scan *s,
                              struct gguf_error *err);
};

/* By tokenizer.ggml.model, or NULL. */
const struct gg_vocab_algo *gg_vocab_algo_find(struct gguf_str model);

/* Is it a tokenizer.ggml.model of llama.cpp (August 2026) or of the format's
 * specification, supported here or not? */
bool gg_vocab_known(struct gguf_str model);

struct gguf_vocab {
    const struct gguf_allocator *allocator;
    const struct gguf_file *file;
    const struct gg_vocab_algo *algo;
    gguf_warn_fn *warn;
    void *warn_user;

    struct gg_vocab_token *token;
    size_t n_tokens;
    size_t max_size; /* bytes of the longest text */
    struct gg_index index;
    bool has_index;

    gguf_token special[GGUF_N_SPECIAL];
    bool add_bos, add_eos, add_space_prefix;
    gguf_token byte[256]; /* token of a byte, or GGUF_TOKEN_NONE */

    /* Tokens that are split off before the algorithm sees the text: [0] those
     * that always are, [1] these and what is asked for. */
    struct gg_vocab_prefixes split[2];

    struct gg_bpe *bpe; /* byte-level encoding's own */

    /* SentencePiece: no token has a meta space after another character, so
     * that the text can be cut before each run of blanks. */
    bool words;
};

void gg_vocab_warn(const struct gguf_vocab *v, const char *fmt, ...)
    GG_PRINTF(2, 3);

/* The byte of a text <0xHH>, or -1. */
int gg_vocab_byte_text(struct gguf_str text);

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

/* load.c: metadata to v, which holds allocator, file and algo. */
enum gguf_status gg_vocab_load(struct gguf_vocab *v, struct gguf_error *err);

/* load.c: fill v->byte by v->algo; how many bytes have no token. */
size_t gg_vocab_load_bytes(struct gguf_vocab *v);

/* check.c: report all that is wrong about the vocabulary of c->file, where
 * gg_vocab_load stops at the first. Needs no algorithm that is supported; a
 * file without vocabulary has no findings. Memory: 48 bytes a token at most,
 * and as much a merge.
 * GGUF_E_CANCELLED, GGUF_E_NOMEM. */
enum gguf_status gg_vocab_check(const struct gg_file_checker *c,
                                struct gguf_error *err);

/* What an algorithm's own check has to go by. */
struct gg_vocab_scan {
    const struct gg_file_checker *c;
    const struct gguf_str *text; /* of the n tokens */
    uint32_t n;
    const struct gg_hashes *texts; /* NULL: not to be compared with */
};

/* Byte of the file where a string that lies in the mapping begins. */
uint64_t gg_vocab_text_off(const struct gg_vocab_scan *s, struct gguf_str t);

/* split.c: prepare v->split. GGUF_E_NOMEM. */
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
size_t gg_spm_byte_text(unsigned b, unsigned i, char out[8]);
enum gguf_status gg_spm_check(const struct gg_vocab_scan *s,
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
size_t gg_bpe_byte_text(unsigned b, unsigned i, char out[8]);

/* Cut an entry of tokenizer.ggml.merges, "left right". false: it is not two
 * texts with a blank between. */
bool gg_bpe_cut_rule(struct gguf_str text, struct gguf_str *left,
                     struct gguf_str *right);

/* What they join to, in buf; size 0 if that is longer than tokens that words
 * are made of. */
enum { GG_BPE_MAX_JOINED = 512 };
struct gguf_str gg_bpe_join(struct gguf_str left, struct gguf_str right,
                            char buf[GG_BPE_MAX_JOINED]);

/* check_merges.c */
enum gguf_status gg_bpe_check(const struct gg_vocab_scan *s,
                              struct gguf_error *err);

#endif
