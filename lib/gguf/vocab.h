/* SPDX-License-Identifier: MIT */
/* vocab.h - text to tokens and back
 *
 *     struct gguf_tokens t = GGUF_TOKENS_INIT;
 *     gguf_vocab_tokenize(vocab, text, size, GGUF_TOKENIZE_ADD_SPECIAL,
 *                         &t, &err);
 *     ... t.id[0] to t.id[t.n - 1] ...
 *     gguf_tokens_fini(&t);
 *
 * A vocabulary is read from a file's metadata (tokenizer.ggml.*); which
 * algorithm splits the text is said by tokenizer.ggml.model.
 */
#ifndef GGUF_VOCAB_H
#define GGUF_VOCAB_H

#include <gguf/file.h>
#include <gguf/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t gguf_token; /* 0 to n_tokens - 1 */
#define GGUF_TOKEN_NONE (-1)

/* What a token is; values of tokenizer.ggml.token_type. */
enum gguf_token_kind {
    GGUF_TOKEN_UNDEFINED = 0, /* also every value that is not listed */
    GGUF_TOKEN_NORMAL = 1,
    GGUF_TOKEN_UNKNOWN = 2,
    GGUF_TOKEN_CONTROL = 3,
    GGUF_TOKEN_USER = 4, /* found in the text before anything else */
    GGUF_TOKEN_UNUSED = 5,
    GGUF_TOKEN_BYTE = 6 /* text <0xHH> */
};

/* Tokens with a role of their own. */
enum gguf_special_token {
    GGUF_SPECIAL_BOS,
    GGUF_SPECIAL_EOS,
    GGUF_SPECIAL_UNK,
    GGUF_SPECIAL_SEP,
    GGUF_SPECIAL_PAD,
    GGUF_SPECIAL_MASK,
    GGUF_SPECIAL_EOT,     /* end of a turn */
    GGUF_SPECIAL_EOM,     /* end of a message that is gone on from */
    GGUF_SPECIAL_FIM_PRE, /* "fill in the middle": before what comes before, */
    GGUF_SPECIAL_FIM_SUF, /* what comes after, */
    GGUF_SPECIAL_FIM_MID, /* and what is to be filled in */
    GGUF_SPECIAL_FIM_PAD,
    GGUF_SPECIAL_FIM_REP, /* before a repository's name, */
    GGUF_SPECIAL_FIM_SEP, /* a file's */
    GGUF_SPECIAL_NEWLINE, /* newline, as llama_vocab_nl gives it: the token of
                           * byte 0x0A in SentencePiece vocabularies; the first
                           * token of the text "\n" in those of other kinds;
                           * the kind's default padding token where there is no
                           * such token, and in WordPiece vocabularies, which
                           * drop line ends. No key names it */
    GGUF_N_SPECIAL
};

struct gguf_vocab;

/* One line of text on something odd but harmless. message is borrowed. */
typedef void gguf_warn_fn(void *user, const char *message);

struct gguf_vocab_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    gguf_warn_fn *warn;                     /* or NULL */
    void *warn_user;
    const char
        *pre; /* instead of tokenizer.ggml.pre; NULL: the file's; kept */
    const struct gguf_meta *meta; /* pairs that count instead of those of the
                                   * file, or beside them; NULL: none; kept */
};
#define GGUF_VOCAB_PARAMS_INIT GGUF_INIT(struct gguf_vocab_params)

/* The vocabulary of a file. file is kept: token texts stay in its mapping.
 * Special ids that there are not, unknown token types and scores that are no
 * numbers are warned of and do without; but an id of BOS, EOS, UNK or SEP that
 * there is not is refused, unless it is -1 (of 32 or 64 bits), which stands for
 * none. Token types may be integers and scores numbers of any type of 32 or
 * 64 bits, if i32 and f32 hold each value. A file whose model is "no_vocab" or
 * "none" gives a vocabulary of 0 tokens.
 * GGUF_E_VOCAB (names key and index), GGUF_E_TYPE, GGUF_E_UNSUPPORTED
 * (algorithm; name of a way to cut words), GGUF_E_NOTFOUND, GGUF_E_OVERFLOW (a
 * score or token type), GGUF_E_LIMIT (2^32 different beginnings of texts),
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_vocab_create(struct gguf_vocab **out, const struct gguf_file *file,
                  const struct gguf_vocab_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_vocab_destroy(struct gguf_vocab *vocab);

/* All that follows may be called from any thread. An id out of range gives
 * an empty text, GGUF_TOKEN_UNDEFINED and a score of 0. Since: 0.1 */
GGUF_API size_t gguf_vocab_n_tokens(const struct gguf_vocab *vocab);
/* tokenizer.ggml.model; borrowed. */
GGUF_API struct gguf_str gguf_vocab_model(const struct gguf_vocab *vocab);
/* As the file has it: spaces as U+2581, bytes as <0xHH>; borrowed. */
GGUF_API struct gguf_str gguf_vocab_token_text(const struct gguf_vocab *vocab,
                                               gguf_token id);
/* As tokenizer.ggml.token_type and tokenizer.ggml.scores have it. */
GGUF_API enum gguf_token_kind
gguf_vocab_token_kind(const struct gguf_vocab *vocab, gguf_token id);
GGUF_API float gguf_vocab_token_score(const struct gguf_vocab *vocab,
                                      gguf_token id);
/* By text, or GGUF_TOKEN_NONE. */
GGUF_API gguf_token gguf_vocab_find_token(const struct gguf_vocab *vocab,
                                          struct gguf_str text);
/* Or GGUF_TOKEN_NONE. */
GGUF_API gguf_token gguf_vocab_special_id(const struct gguf_vocab *vocab,
                                          enum gguf_special_token which);
/* Non-zero if the model wants a BOS in front of a text and an EOS at its end:
 * tokenizing with GGUF_TOKENIZE_ADD_SPECIAL puts them there, but for RWKV and
 * PLaMo-2 (whose programs leave it to the caller) and for WordPiece, which puts
 * a BOS and a SEP. */
GGUF_API int gguf_vocab_wants_bos(const struct gguf_vocab *vocab);
GGUF_API int gguf_vocab_wants_eos(const struct gguf_vocab *vocab);
/* Non-zero if the model wants a SEP between two texts. */
GGUF_API int gguf_vocab_wants_sep(const struct gguf_vocab *vocab);
/* Non-zero if id ends what a model generates: the end of a text or of a turn,
 * by the file's keys and by texts that are known. */
GGUF_API int gguf_vocab_is_eog(const struct gguf_vocab *vocab, gguf_token id);

/* A growing list of tokens; the caller's storage. The struct never grows. */
struct gguf_tokens {
    gguf_token *id;
    size_t n, cap;
    const struct gguf_allocator *allocator; /* NULL: malloc */
};
#define GGUF_TOKENS_INIT                                                      \
    {                                                                         \
        NULL, 0, 0, NULL                                                      \
    }

/* Free the list; it may be used again. Since: 0.1 */
GGUF_API void gguf_tokens_fini(struct gguf_tokens *tokens);

enum {
    GGUF_TOKENIZE_ADD_SPECIAL = 1,  /* BOS and EOS as the vocabulary asks */
    GGUF_TOKENIZE_PARSE_SPECIAL = 2 /* texts of control tokens are tokens */
};

/* Append the tokens of text (size bytes, any bytes) to out. The time grows
 * with size * log(size). GGUF_E_VOCAB (a byte has no token, and there is no
 * unknown token), GGUF_E_UNSUPPORTED (no vocabulary), GGUF_E_NOMEM; out then
 * holds what it held before. Since: 0.1 */
GGUF_API enum gguf_status
gguf_vocab_tokenize(const struct gguf_vocab *vocab, const char *text,
                    size_t size, unsigned flags, struct gguf_tokens *out,
                    struct gguf_error *err) GGUF_MUST_CHECK;

enum {
    GGUF_DETOKENIZE_SPECIAL = 1, /* control tokens give their text */
    GGUF_DETOKENIZE_STRIP = 2    /* without the BOS and EOS at the ends */
};

/* The bytes that id stands for; writes at most size bytes, returns how many
 * there are. A piece can end inside a UTF-8 sequence. Since: 0.1 */
GGUF_API size_t gguf_vocab_piece(const struct gguf_vocab *vocab, gguf_token id,
                                 unsigned flags, char *out, size_t size);

/* The text of n tokens, without the space that tokenizing put in front;
 * writes at most size bytes and no NUL, returns how many there are.
 * Since: 0.1 */
GGUF_API size_t gguf_vocab_detokenize(const struct gguf_vocab *vocab,
                                      const gguf_token *id, size_t n,
                                      unsigned flags, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
