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
 * Threads: a vocabulary does not change after gguf_vocab_create(). Any thread
 * may use it.
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
    GGUF_TOKEN_UNKNOWN = 2,   /* stands for text without a token */
    GGUF_TOKEN_CONTROL = 3,   /* a mark that is not part of a text */
    GGUF_TOKEN_USER = 4,      /* its text is found before all other tokens */
    GGUF_TOKEN_UNUSED = 5,    /* stands for nothing */
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
    GGUF_SPECIAL_FIM_PRE, /* fill in the middle: the text before follows */
    GGUF_SPECIAL_FIM_SUF, /* fill in the middle: the text after follows */
    GGUF_SPECIAL_FIM_MID, /* fill in the middle: the answer follows */
    GGUF_SPECIAL_FIM_PAD, /* fill in the middle: padding */
    GGUF_SPECIAL_FIM_REP, /* name of a repository follows */
    GGUF_SPECIAL_FIM_SEP, /* name of a file follows */

    /* Newline, as llama_vocab_nl gives it; no key names it. In SentencePiece
     * vocabularies it is the token of byte 0x0A, in others the first token of
     * the text "\n". It is the algorithm's default padding token where that
     * token is missing, and in WordPiece vocabularies, which drop line ends. */
    GGUF_SPECIAL_NEWLINE,
    GGUF_N_SPECIAL /* number of roles */
};

struct gguf_vocab;

/* Called with a warning: one line of text about something odd but harmless.
 * message is valid during the call. */
typedef void gguf_warn_fn(void *user, const char *message);

/* Function that receives warnings. Later versions add no members to this
 * struct. */
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

    struct gguf_warn_callback warn; /* receives warnings */

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
 * These are ignored with a warning: ids of special tokens that are out of
 * range, unknown token types, and scores that are NaN. But an out-of-range id
 * of BOS, EOS, UNK or SEP is refused, unless it is -1 (of 32 or 64 bits), which
 * means that the token does not exist. Token types may be integers and scores
 * numbers of any type, if i32 and f32 can hold each value.
 *
 * GGUF_E_VOCAB         A value contradicts others. The message has key and
 *                      index.
 * GGUF_E_TYPE          A key has the wrong type.
 * GGUF_E_NOTFOUND      A required key is missing.
 * GGUF_E_UNSUPPORTED   The algorithm or the pre-tokenizer is unknown. The
 *                      message has its name.
 * GGUF_E_OVERFLOW      A score or token type does not fit into f32 or i32.
 * GGUF_E_LIMIT         The texts have 2^32 different prefixes or more.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_vocab_create(struct gguf_vocab **out, const struct gguf_file *file,
                  const struct gguf_vocab_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a vocabulary. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_vocab_destroy(struct gguf_vocab *vocab);

/* Number of tokens. Since: 0.1 */
GGUF_API size_t gguf_vocab_n_tokens(const struct gguf_vocab *vocab);

/* Name of the algorithm: tokenizer.ggml.model. Static storage. Since: 0.1 */
GGUF_API struct gguf_str gguf_vocab_model(const struct gguf_vocab *vocab);

/* Text of a token as the file has it: spaces as U+2581, bytes as <0xHH>. Owned
 * by the file. Empty if id is out of range. Since: 0.1 */
GGUF_API struct gguf_str gguf_vocab_token_text(const struct gguf_vocab *vocab,
                                               gguf_token id);

/* Kind of a token, from tokenizer.ggml.token_type. GGUF_TOKEN_UNDEFINED if id
 * is out of range. Since: 0.1 */
GGUF_API enum gguf_token_kind
gguf_vocab_token_kind(const struct gguf_vocab *vocab, gguf_token id);

/* Score of a token, from tokenizer.ggml.scores. 0 if id is out of range.
 * Since: 0.1 */
GGUF_API float gguf_vocab_token_score(const struct gguf_vocab *vocab,
                                      gguf_token id);

/* Token with a text, in the form of gguf_vocab_token_text(); GGUF_TOKEN_NONE if
 * no token has that text. Since: 0.1 */
GGUF_API gguf_token gguf_vocab_find_token(const struct gguf_vocab *vocab,
                                          struct gguf_str text);

/* Token with a role; GGUF_TOKEN_NONE if the vocabulary lacks it. Since: 0.1 */
GGUF_API gguf_token gguf_vocab_special_id(const struct gguf_vocab *vocab,
                                          enum gguf_special_token which);

/* Does the model want a BOS before a text? gguf_vocab_tokenize() adds it with
 * GGUF_TOKENIZE_ADD_SPECIAL. RWKV and PLaMo-2 vocabularies are exceptions:
 * their programs leave it to the caller. WordPiece vocabularies always add a
 * BOS and a SEP. Since: 0.1 */
GGUF_API bool gguf_vocab_wants_bos(const struct gguf_vocab *vocab);

/* Does the model want an EOS after a text? gguf_vocab_tokenize() adds it with
 * GGUF_TOKENIZE_ADD_SPECIAL, with the exceptions of gguf_vocab_wants_bos().
 * Since: 0.1 */
GGUF_API bool gguf_vocab_wants_eos(const struct gguf_vocab *vocab);

/* Does the model want a SEP between two texts? The caller adds it.
 * Since: 0.1 */
GGUF_API bool gguf_vocab_wants_sep(const struct gguf_vocab *vocab);

/* Does a token end generation: is it the end of a text or of a turn, by the
 * file's keys or by a known text? Since: 0.1 */
GGUF_API bool gguf_vocab_is_eog(const struct gguf_vocab *vocab, gguf_token id);

/* A growing list of tokens, in the caller's storage. It begins as
 * GGUF_TOKENS_INIT. Later versions add no members to this struct. */
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

/* Free a list. It is then empty and may be used again. Since: 0.1 */
GGUF_API void gguf_tokens_fini(struct gguf_tokens *tokens);

/* Options of gguf_vocab_tokenize(), as bits. */
enum {
    /* Add BOS and EOS if the vocabulary wants them. */
    GGUF_TOKENIZE_ADD_SPECIAL = 1,
    /* Texts of control tokens become these tokens. Not for text from
     * strangers. */
    GGUF_TOKENIZE_PARSE_SPECIAL = 2
};

/* Append the tokens of a text to a list.
 *
 * text     The text; any bytes.
 * size     Bytes of the text.
 * flags    GGUF_TOKENIZE_ bits, or 0.
 * out      The list. After a failure it has the tokens that it had before.
 *
 * The time grows with size * log(size).
 *
 * GGUF_E_VOCAB         A byte has no token, and the vocabulary has no unknown
 *                      token; or it wants a special token that it lacks.
 * GGUF_E_UNSUPPORTED   The vocabulary has no tokens.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_vocab_tokenize(const struct gguf_vocab *vocab, const char *text,
                    size_t size, unsigned flags, struct gguf_tokens *out,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Options of gguf_vocab_piece() and gguf_vocab_detokenize(), as bits. */
enum {
    GGUF_DETOKENIZE_SPECIAL = 1, /* control tokens give their text */
    GGUF_DETOKENIZE_STRIP = 2    /* leave out BOS and EOS at the ends */
};

/* Write the bytes of one token.
 *
 * id       The token.
 * flags    GGUF_DETOKENIZE_ bits, or 0.
 * out      Receives at most size bytes, without a NUL. NULL if size is 0.
 * size     Bytes at out.
 *
 * Returns the bytes of the token, also if out has room for fewer. They may end
 * inside of a UTF-8 sequence. Threads: any. Since: 0.1 */
GGUF_API size_t gguf_vocab_piece(const struct gguf_vocab *vocab, gguf_token id,
                                 unsigned flags, char *out, size_t size);

/* Write the text of tokens, without the space that tokenizing put in front.
 *
 * id       The tokens.
 * n        Number of tokens.
 * flags    GGUF_DETOKENIZE_ bits, or 0.
 * out      Receives at most size bytes, without a NUL. NULL if size is 0.
 * size     Bytes at out.
 *
 * Returns the bytes of the text, also if out has room for fewer. Threads: any.
 * Since: 0.1 */
GGUF_API size_t gguf_vocab_detokenize(const struct gguf_vocab *vocab,
                                      const gguf_token *id, size_t n,
                                      unsigned flags, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
