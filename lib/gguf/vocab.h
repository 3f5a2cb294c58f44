/* SPDX-License-Identifier: MIT */
/* vocab.h - a vocabulary: text to tokens and back
 *
 * A vocabulary is read from a file's metadata (tokenizer.ggml.*). The key
 * tokenizer.ggml.model names the algorithm that cuts a text into tokens.
 *
 *     struct gguf_tokens t = GGUF_TOKENS_INIT;
 *     gguf_vocab_create(&vocab, file, NULL, &err);
 *     gguf_vocab_tokenize(vocab, text, size, GGUF_TOKENIZE_ADD_SPECIAL,
 *                         &t, &err);
 *     ... t.id[0] to t.id[t.n - 1] ...
 *     gguf_tokens_fini(&t);
 *     gguf_vocab_destroy(vocab);
 *
 * The file must outlive the vocabulary, since the texts of tokens stay in its
 * mapping. A model (model_base.h) has a vocabulary already: gguf_model_vocab().
 *
 * Threads: a vocabulary does not change after gguf_vocab_create(). Any number
 * of threads may use it, each with its own list of tokens. No thread may use it
 * while or after it is destroyed.
 */
#ifndef GGUF_VOCAB_H
#define GGUF_VOCAB_H

#include <gguf/file.h>
#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t gguf_token; /* id of a token, 0 to n_tokens - 1 */
#define GGUF_TOKEN_NONE (-1)

/* Kind of a token: the values of tokenizer.ggml.token_type. */
enum gguf_token_kind {
    GGUF_TOKEN_UNDEFINED = 0, /* any value that is not in this list */
    GGUF_TOKEN_NORMAL = 1,    /* a piece of text */
    GGUF_TOKEN_UNKNOWN = 2,   /* replaces text that no token has */
    GGUF_TOKEN_CONTROL = 3,   /* a mark that is not part of a text */
    GGUF_TOKEN_USER = 4,      /* found in a text before the algorithm runs */
    GGUF_TOKEN_UNUSED = 5,    /* has an id and no meaning */
    GGUF_TOKEN_BYTE = 6       /* a byte; its text is <0xHH> */
};

/* Role of a special token. */
enum gguf_special_token {
    GGUF_SPECIAL_BOS,     /* beginning of a text */
    GGUF_SPECIAL_EOS,     /* end of a text */
    GGUF_SPECIAL_UNK,     /* unknown text */
    GGUF_SPECIAL_SEP,     /* separator of two texts */
    GGUF_SPECIAL_PAD,     /* padding */
    GGUF_SPECIAL_MASK,    /* masked token */
    GGUF_SPECIAL_EOT,     /* end of a turn */
    GGUF_SPECIAL_EOM,     /* end of a message; the same turn continues */
    GGUF_SPECIAL_FIM_PRE, /* fill in the middle: before the prefix */
    GGUF_SPECIAL_FIM_SUF, /* fill in the middle: before the suffix */
    GGUF_SPECIAL_FIM_MID, /* fill in the middle: before the answer */
    GGUF_SPECIAL_FIM_PAD, /* fill in the middle: padding */
    GGUF_SPECIAL_FIM_REP, /* before the name of a repository */
    GGUF_SPECIAL_FIM_SEP, /* before the name of a file */

    /* Newline, as llama_vocab_nl gives it; no key names it. In SentencePiece
     * vocabularies it is the token of byte 0x0A, in others the first token of
     * the text "\n". If the vocabulary has no such token, and always in
     * WordPiece vocabularies, which drop line ends, it is the padding token
     * that the algorithm has by default (whatever the file's padding token
     * is), or GGUF_TOKEN_NONE if the algorithm has no default. */
    GGUF_SPECIAL_NEWLINE,
    GGUF_N_SPECIAL /* number of roles */
};

struct gguf_vocab;

/* Called with a warning: one line of text about something odd but harmless.
 * message is valid during the call. gguf_vocab_create() calls it, in its own
 * thread; it is not called later. */
typedef void gguf_warn_fn(void *user, const char *message);

/* Function for warnings, and its first argument. Later versions add no members
 * to this struct. */
struct gguf_warn_callback {
    gguf_warn_fn *fn; /* NULL: none */
    void *user;       /* first argument of fn */
};

/* Options of gguf_vocab_create(). */
struct gguf_vocab_params {
    size_t struct_size;

    /* Allocator of the vocabulary. It must outlive the vocabulary. NULL:
     * malloc. */
    const struct gguf_allocator *allocator;

    /* Receives warnings, during gguf_vocab_create() only. */
    struct gguf_warn_callback warn;

    /* Name of the pre-tokenizer, in place of the file's key
     * tokenizer.ggml.pre. The string must outlive the vocabulary. NULL: the
     * file's. */
    const char *pre;

    /* Key-value pairs that replace pairs of the file or add to them. They must
     * outlive the vocabulary. NULL: none. */
    const struct gguf_meta *meta;
};
#define GGUF_VOCAB_PARAMS_INIT GGUF_INIT(struct gguf_vocab_params)

/* Read the vocabulary of a file and check it.
 *
 * out      Receives the vocabulary. NULL after a failure.
 * file     Open file. It must outlive the vocabulary.
 * params   Options. NULL: the defaults.
 *
 * Destroy *out with gguf_vocab_destroy(). A file whose tokenizer.ggml.model is
 * "no_vocab" or "none" gives a vocabulary of 0 tokens.
 *
 * Some faults of a file give a warning: a special token whose id is out of
 * range counts as missing; an unknown token type counts as
 * GGUF_TOKEN_UNDEFINED; a score that is NaN counts as minus infinity. But an
 * out-of-range id of BOS, EOS, UNK or SEP fails with GGUF_E_VOCAB. The value
 * -1, or its bits as an unsigned integer (2^32 - 1, 2^64 - 1), means that the
 * model has no such token; it gives a warning, too.
 *
 * Token types may be integers of 32 or 64 bits whose values fit into i32.
 * Scores may be numbers of 32 or 64 bits: integers that f32 holds exactly, or
 * floats, which are rounded to f32 and must not become infinite by that.
 *
 * GGUF_E_VOCAB         A value contradicts others, or the id of BOS, EOS, UNK
 *                      or SEP is out of range. The message has key and index.
 * GGUF_E_TYPE          A key has the wrong type.
 * GGUF_E_NOTFOUND      A required key is missing.
 * GGUF_E_UNSUPPORTED   The algorithm or the pre-tokenizer is unknown. The
 *                      message has its name.
 * GGUF_E_OVERFLOW      A score or token type does not fit into f32 or i32.
 * GGUF_E_LIMIT         The texts of all tokens together have 2^32 different
 *                      prefixes or more (the search tree of tokens is full).
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_vocab_create(struct gguf_vocab **out, const struct gguf_file *file,
                  const struct gguf_vocab_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a vocabulary. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_vocab_destroy(struct gguf_vocab *vocab);

/* Number of tokens; 0 for "no_vocab" and "none". Since: 0.1 */
GGUF_API size_t gguf_vocab_n_tokens(const struct gguf_vocab *vocab);

/* Name of the algorithm: tokenizer.ggml.model, "no_vocab" and "none" included.
 * Static storage. Since: 0.1 */
GGUF_API struct gguf_str gguf_vocab_model(const struct gguf_vocab *vocab);

/* Text of a token as the file stores it. Each algorithm has its own spelling:
 * SentencePiece writes a space as U+2581 and a byte as <0xHH>, byte-level BPE
 * writes each byte as a letter. gguf_vocab_piece() has the bytes that it stands
 * for. Owned by the file. Empty if id is out of range. Since: 0.1 */
GGUF_API struct gguf_str gguf_vocab_token_text(const struct gguf_vocab *vocab,
                                               gguf_token id);

/* Kind of a token, from tokenizer.ggml.token_type; without that key all tokens
 * are GGUF_TOKEN_NORMAL. Tokens whose texts are known marks ("<|im_end|>") are
 * GGUF_TOKEN_CONTROL, whatever the file says. GGUF_TOKEN_UNDEFINED if id is out
 * of range. Since: 0.1 */
GGUF_API enum gguf_token_kind
gguf_vocab_token_kind(const struct gguf_vocab *vocab, gguf_token id);

/* Score of a token, from tokenizer.ggml.scores; minus infinity if it is NaN
 * there. 0 without that key, or if id is out of range. Since: 0.1 */
GGUF_API float gguf_vocab_token_score(const struct gguf_vocab *vocab,
                                      gguf_token id);

/* Token with a text, in the spelling of gguf_vocab_token_text();
 * GGUF_TOKEN_NONE if no token has that text. No two tokens have the same text,
 * but for the empty text, which is not found. Since: 0.1 */
GGUF_API gguf_token gguf_vocab_find_token(const struct gguf_vocab *vocab,
                                          struct gguf_str text);

/* Token with a role; GGUF_TOKEN_NONE if the vocabulary lacks it, or if which is
 * not a role. Since: 0.1 */
GGUF_API gguf_token gguf_vocab_special_id(const struct gguf_vocab *vocab,
                                          enum gguf_special_token which);

/* Does the model want a BOS before a text? It is the file's key
 * tokenizer.ggml.add_bos_token, or the default of the algorithm or the
 * pre-tokenizer. A few pre-tokenizers want one whatever the key says.
 *
 * With GGUF_TOKENIZE_ADD_SPECIAL, gguf_vocab_tokenize() puts it there, with two
 * exceptions. In RWKV and PLaMo-2 vocabularies it never does, as their own
 * tokenizers never do: the caller adds BOS and EOS. In WordPiece vocabularies
 * it puts a BOS before the text and a SEP after it, whatever this function and
 * gguf_vocab_wants_eos() return. Since: 0.1 */
GGUF_API bool gguf_vocab_wants_bos(const struct gguf_vocab *vocab);

/* Does the model want an EOS after a text? It is the file's key
 * tokenizer.ggml.add_eos_token, or the default of the algorithm. With
 * GGUF_TOKENIZE_ADD_SPECIAL, gguf_vocab_tokenize() puts it there; not in RWKV
 * and PLaMo-2 vocabularies (the caller adds it) and not in WordPiece
 * vocabularies (a SEP stands there). Since: 0.1 */
GGUF_API bool gguf_vocab_wants_eos(const struct gguf_vocab *vocab);

/* Does the model want a SEP between two texts? The caller adds it.
 * Since: 0.1 */
GGUF_API bool gguf_vocab_wants_sep(const struct gguf_vocab *vocab);

/* Does a token end generation? It does if it is EOS, EOT, EOM, FIM_PAD, FIM_REP
 * or FIM_SEP, or if its text is in the library's list of end marks
 * ("<|im_end|>", "</s>"). In vocabularies that use such a text for something
 * else (gpt-oss: "<|end|>" ends one of several messages) it does not. False if
 * id is out of range. Since: 0.1 */
GGUF_API bool gguf_vocab_is_eog(const struct gguf_vocab *vocab, gguf_token id);

/* List of tokens. The caller holds the struct, which begins as
 * GGUF_TOKENS_INIT. The library allocates the array id and enlarges it; free it
 * with gguf_tokens_fini(). Later versions add no members to this struct. */
struct gguf_tokens {
    gguf_token *id;                         /* the tokens */
    size_t n;                               /* number of tokens */
    size_t cap;                             /* tokens that id has room for */
    const struct gguf_allocator *allocator; /* allocator of id; NULL: malloc */
};
#define GGUF_TOKENS_INIT                                                      \
    {                                                                         \
        NULL, 0, 0, NULL                                                      \
    }

/* Free a list's array. The list is then empty, has the same allocator, and may
 * be used again. tokens must not be NULL. Since: 0.1 */
GGUF_API void gguf_tokens_fini(struct gguf_tokens *tokens);

/* Options of gguf_vocab_tokenize(), as bits. */
enum {
    /* Add BOS and EOS if the vocabulary wants them; gguf_vocab_wants_bos() has
     * the exceptions. */
    GGUF_TOKENIZE_ADD_SPECIAL = 1,
    /* Texts of control tokens become these tokens. Not for text from
     * strangers. */
    GGUF_TOKENIZE_PARSE_SPECIAL = 2
};

/* Append the tokens of a text to a list.
 *
 * text     The text; any bytes.
 * size     Bytes of the text.
 * flags    GGUF_TOKENIZE_ bits, or 0. Other bits are ignored.
 * out      The list. After a failure it has the tokens that it had before.
 *
 * The time grows with size * log(size).
 *
 * GGUF_E_VOCAB         A byte has no token, and the vocabulary has no unknown
 *                      token; or, with GGUF_TOKENIZE_ADD_SPECIAL, the
 *                      vocabulary lacks a special token that is to be added.
 * GGUF_E_UNSUPPORTED   The vocabulary is "no_vocab" or "none", also if the text
 *                      is empty.
 * GGUF_E_LIMIT         A piece of the text is too long (about 1 GiB), or an
 *                      expression of the pre-tokenizer has too many choices.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_vocab_tokenize(const struct gguf_vocab *vocab, const char *text,
                    size_t size, unsigned flags, struct gguf_tokens *out,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Options of gguf_vocab_piece() and gguf_vocab_detokenize(), as bits.
 *
 * GGUF_DETOKENIZE_STRIP is for gguf_vocab_detokenize() only. It drops one token
 * at each end: a BOS, if the vocabulary wants a BOS; an EOS, if it wants an EOS
 * (in WordPiece vocabularies: a SEP, always). */
enum {
    GGUF_DETOKENIZE_SPECIAL = 1, /* control tokens give their text */
    GGUF_DETOKENIZE_STRIP = 2    /* drop BOS at the start, EOS at the end */
};

/* Write the bytes of one token.
 *
 * id       The token.
 * flags    GGUF_DETOKENIZE_ bits, or 0.
 * out      Receives at most size bytes, without a NUL. May be NULL if size is
 *          0.
 * size     Bytes at out.
 *
 * Returns the number of bytes that the token has, even if it is larger than
 * size. 0 if id is out of range. The bytes may end inside of a UTF-8 sequence.
 * Threads: any. Since: 0.1 */
GGUF_API size_t gguf_vocab_piece(const struct gguf_vocab *vocab, gguf_token id,
                                 unsigned flags, char *out, size_t size);

/* Write the text of tokens, without the space that tokenizing put in front.
 *
 * id       The tokens.
 * n        Number of tokens.
 * flags    GGUF_DETOKENIZE_ bits, or 0.
 * out      Receives at most size bytes, without a NUL. May be NULL if size is
 *          0.
 * size     Bytes at out.
 *
 * Returns the number of bytes that the text has, even if it is larger than
 * size. Ids that are out of range are skipped. Threads: any. Since: 0.1 */
GGUF_API size_t gguf_vocab_detokenize(const struct gguf_vocab *vocab,
                                      const gguf_token *id, size_t n,
                                      unsigned flags, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
