/* check.h - findings: their table, and reporting one */
#ifndef GG_FILE_CHECK_H
#define GG_FILE_CHECK_H

#include "base/compiler.h"
#include "gguf/check.h"

/* X(ID, CODE, SEVERITY, ABOUT): every finding about a file. */
#define GG_CHECK_LIST(X)                                                      \
    X(BIG_ENDIAN, "big-endian", NOTE, "numbers are in big-endian order")      \
    X(VERSION_2, "version-2", NOTE, "GGUF version 2")                         \
    X(TRAILING, "trailing-bytes", WARNING, "bytes behind the last tensor")    \
    X(NO_FINAL_PAD, "no-final-padding", NOTE,                                 \
      "the last tensor is not padded")                                        \
    X(PADDING, "nonzero-padding", WARNING, "padding that is not zero")        \
    X(NO_ARCH, "no-architecture", WARNING,                                    \
      "general.architecture is missing or no text")                           \
    X(KEY_ASCII, "key-not-ascii", WARNING, "a key with other than ASCII")     \
    X(STR_UTF8, "text-not-utf8", WARNING, "a text that is not UTF-8")         \
    X(STR_NUL, "text-with-nul", WARNING, "a text that holds a NUL byte")      \
    X(NESTED, "nested-array", NOTE, "arrays in an array")                     \
    X(NAME_ASCII, "name-not-ascii", WARNING,                                  \
      "a tensor's name with other than ASCII")                                \
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

enum gg_check_code {
#define X(ID, CODE, SEVERITY, ABOUT) GG_CHECK_##ID,
    GG_CHECK_LIST(X)
#undef X
};

struct gg_checker {
    const struct gguf_file *file;
    struct gguf_check_params params;
    gguf_finding_fn *report;
    void *user;
};

/* Hand one finding to the caller: GGUF_OK or GGUF_E_CANCELLED. */
enum gguf_status gg_finding(const struct gg_checker *c,
                            enum gg_check_code code, struct gguf_str name,
                            uint64_t offset, struct gguf_error *err,
                            const char *fmt, ...) GG_PRINTF(6, 7);

/* check_data.c: the payload of every tensor. */
enum gguf_status gg_check_payload(const struct gg_checker *c,
                                  struct gguf_error *err);

#endif
