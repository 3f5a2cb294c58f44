/* SPDX-License-Identifier: MIT */
/* file_check.h - the table of findings, and how to report one
 *
 * The table has the findings of all layers, so that their codes are distinct.
 * Its headings name the files that report them. */
#ifndef GG_FILE_FILE_CHECK_H
#define GG_FILE_FILE_CHECK_H

#include "base/compiler.h"
#include "gguf/check.h"

/* X(ID, CODE, SEVERITY, ABOUT) */
#define GG_CHECK_LIST(X)                                                      \
    GG_CHECK_LIST_FILE(X)                                                     \
    GG_CHECK_LIST_VOCAB(X)                                                    \
    GG_CHECK_LIST_MODEL(X)

/* file_check.c, check_data.c: the file. */
#define GG_CHECK_LIST_FILE(X)                                                 \
    X(MALFORMED, "malformed", ERROR,                                          \
      "not GGUF, or a rule of the format is broken")                          \
    X(VERSION, "version", ERROR, "an unsupported version of GGUF")            \
    X(TRUNCATED, "truncated", ERROR,                                          \
      "something reaches past the end of the file")                           \
    X(OVERFLOW, "overflow", ERROR, "a size that does not fit 63 bits")        \
    X(ROW, "row-length", ERROR,                                               \
      "rows that are not a multiple of their type's block")                   \
    X(LIMIT, "limit", ERROR, "a limit is exceeded")                           \
    X(TWICE, "duplicate", ERROR, "two keys or two tensors of one name")       \
    X(BIG_ENDIAN, "big-endian", NOTE, "numbers are in big-endian order")      \
    X(VERSION_2, "version-2", NOTE, "GGUF version 2")                         \
    X(TRAILING, "trailing-bytes", WARNING, "bytes after the last tensor")     \
    X(NO_FINAL_PAD, "no-final-padding", NOTE,                                 \
      "the last tensor is not padded")                                        \
    X(PADDING, "nonzero-padding", WARNING, "padding that is not zero")        \
    X(NO_ARCH, "no-architecture", WARNING,                                    \
      "general.architecture is missing or not a string")                      \
    X(KEY_ASCII, "key-not-ascii", WARNING, "a key that is not ASCII")         \
    X(STR_UTF8, "text-not-utf8", WARNING, "a string that is not UTF-8")       \
    X(STR_NUL, "text-with-nul", WARNING, "a string that holds a NUL byte")    \
    X(NESTED, "nested-array", NOTE, "nested arrays")                          \
    X(NAME_ASCII, "name-not-ascii", WARNING,                                  \
      "a tensor's name that is not ASCII")                                    \
    X(NAME_LONG, "long-name", NOTE, "a tensor's name of more than 63 bytes")  \
    X(SCALAR, "no-dimensions", NOTE, "a tensor without dimensions")           \
    X(UNKNOWN, "unknown-type", WARNING, "a tensor of an unknown type")        \
    X(REMOVED, "removed-type", WARNING, "a tensor of a removed type")         \
    X(FORK, "fork-type", NOTE, "a tensor of a type that only forks read")     \
    X(RUNTIME, "runtime-type", WARNING,                                       \
      "a tensor of a type that is not meant for files")                       \
    X(ORDER, "order", WARNING, "tensor data in another order than the list")  \
    X(GAP, "gap", WARNING, "unused bytes between tensors")                    \
    X(VALUES, "nonfinite-values", ERROR, "values that are not finite")        \
    X(SCALES, "nonfinite-scales", ERROR, "block scales that are not finite")

/* vocab/vocab_check.c: the keys tokenizer.* of a model. */
#define GG_CHECK_LIST_VOCAB(X)                                                \
    X(VOCAB_MODEL, "no-tokenizer", ERROR,                                     \
      "tokenizer.ggml.model is missing or no text")                           \
    X(VOCAB_UNKNOWN, "unknown-tokenizer", WARNING,                            \
      "tokenizer.ggml.model is not one of those known")                       \
    X(VOCAB_TYPE, "vocab-type", ERROR,                                        \
      "a key of the vocabulary has the wrong type")                           \
    X(VOCAB_NUMBERS, "vocab-numbers", WARNING,                                \
      "scores or token types that are not f32 or i32")                        \
    X(NO_TOKENS, "no-tokens", ERROR, "there are no tokens, or too many")      \
    X(VOCAB_LENGTH, "vocab-length", ERROR,                                    \
      "there are not as many scores or token types as tokens")                \
    X(TOKEN_EMPTY, "empty-token", WARNING, "tokens without text")             \
    X(TOKEN_TWICE, "duplicate-token", ERROR, "tokens with the same text")     \
    X(BYTE_TOKEN, "byte-token", ERROR,                                        \
      "a byte token whose text is not <0xHH>")                                \
    X(BYTES, "missing-bytes", WARNING, "bytes that no token stands for")      \
    X(TOKEN_KIND, "token-type", WARNING, "token types that do not exist")     \
    X(SCORE, "nonfinite-score", WARNING, "scores that are not finite")        \
    X(NO_SCORES, "no-scores", WARNING,                                        \
      "a tokenizer that goes by scores has none")                             \
    X(TOKEN_ID, "token-id", WARNING, "a token id that is out of range")       \
    X(TOKEN_ID_PUT, "special-token-id", ERROR,                                \
      "an id of BOS, EOS, UNK or SEP that is out of range")                   \
    X(NO_MERGES, "no-merges", ERROR,                                          \
      "a tokenizer that goes by merges has none")                             \
    X(MERGE, "malformed-merge", ERROR,                                        \
      "merges that are not two texts with a blank between")                   \
    X(MERGE_BLANKS, "merge-blanks", WARNING, "merges with several blanks")    \
    X(MERGE_UNKNOWN, "unknown-merge", WARNING,                                \
      "merges of texts, or into texts, that are not tokens")                  \
    X(MERGE_TWICE, "duplicate-merge", WARNING, "merges listed twice")         \
    X(NO_PRE, "no-pre-tokenizer", WARNING, "tokenizer.ggml.pre is missing")   \
    X(PRE_UNKNOWN, "unknown-pre-tokenizer", WARNING,                          \
      "tokenizer.ggml.pre is not one of those known")                         \
    X(CHARSMAP, "charsmap", ERROR,                                            \
      "tokenizer.ggml.precompiled_charsmap is cut off or malformed")

/* model/weight/verify.c, model/hparam/hparams.c: about hyperparameters and
 * tensors. */
#define GG_CHECK_LIST_MODEL(X)                                                \
    X(ARCH_UNKNOWN, "unknown-architecture", NOTE,                             \
      "tensors were not compared with hyperparameters")                       \
    X(SHARD, "shard", NOTE, "one shard of a set: tensors were not compared")  \
    X(SET, "broken-set", ERROR,                                               \
      "the shards of the model are not all there, or not of one set")         \
    X(KEY_MISSING, "missing-key", ERROR, "a hyperparameter is missing")       \
    X(KEY_TYPE, "key-type", ERROR, "a hyperparameter has the wrong type")     \
    X(KEY_VALUE, "key-value", ERROR, "a hyperparameter that cannot be")       \
    X(VOCAB_SIZE, "vocab-size", ERROR,                                        \
      "vocab_size is not the number of tokens")                               \
    X(BLOCK_MISSING, "missing-block", ERROR,                                  \
      "layers that block_count promises have no tensors")                     \
    X(TENSOR_MISSING, "missing-tensor", ERROR,                                \
      "a tensor that the architecture needs is missing")                      \
    X(TENSOR_EXTRA, "extra-tensor", WARNING,                                  \
      "a tensor that the architecture does not use")                          \
    X(TENSOR_SHAPE, "tensor-shape", ERROR,                                    \
      "a shape that contradicts the hyperparameters")                         \
    X(TENSOR_TYPE, "tensor-type", ERROR,                                      \
      "a type that such a tensor cannot have")

enum gg_file_check_code {
#define X(ID, CODE, SEVERITY, ABOUT) GG_CHECK_##ID,
    GG_CHECK_LIST(X)
#undef X
};

/* A check in progress. */
struct gg_file_checker {
    const struct gguf_file *file;    /* file that is being checked */
    struct gguf_check_params params; /* how to check */
    struct gguf_finding_callback report;
};

/* Initialize from public parameters. GGUF_E_INVALID: they do not fit
 * together. */
enum gguf_status gg_file_checker_init(struct gg_file_checker *c,
                                      const struct gguf_check_params *params,
                                      struct gguf_finding_callback report,
                                      struct gguf_error *err);

/* Report a finding about c->file. fmt is its message. GGUF_E_CANCELLED: the
 * callback returned true. */
enum gguf_status gg_file_report_finding(const struct gg_file_checker *c,
                                        enum gg_file_check_code code,
                                        struct gguf_str name, uint64_t offset,
                                        struct gguf_error *err,
                                        const char *fmt, ...)
    GGUF_PRINTF(6, 7);

/* Check structure, metadata and list of tensors of c->file. */
enum gguf_status gg_file_check_header(const struct gg_file_checker *c,
                                      struct gguf_error *err);

/* Check the data of every tensor of c->file (check_data.c). */
enum gguf_status gg_file_check_payload(const struct gg_file_checker *c,
                                       struct gguf_error *err);

#endif
