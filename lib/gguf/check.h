/* SPDX-License-Identifier: MIT */
/* check.h - what is odd or wrong about a file that opens
 *
 * gguf_file_open refuses what no reader may accept. This looks further: at
 * what the specification asks for, at what other programs fail on and, if
 * wanted, at every number of every tensor. verify.h checks what a model needs
 * beyond that, and reports in the same form.
 */
#ifndef GGUF_CHECK_H
#define GGUF_CHECK_H

#include <gguf/file.h>
#include <gguf/pool.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gguf_severity {
    GGUF_SEVERITY_NOTE,    /* legal, but worth knowing */
    GGUF_SEVERITY_WARNING, /* against the specification, or refused by some */
    GGUF_SEVERITY_ERROR    /* the model cannot be right */
};

/* "note", "warning", "error". Since: 0.1 */
GGUF_API const char *gguf_severity_name(enum gguf_severity severity);

/* Made by the library: it may grow at its end. Everything it points to is valid
 * during the call that reports it. */
struct gguf_finding {
    enum gguf_severity severity;
    const char *code;     /* "trailing-bytes": stable, for programs */
    struct gguf_str name; /* of a key or tensor; size 0: the file as a whole */
    uint64_t offset;      /* byte in the file, or GGUF_NO_OFFSET */
    const char *message;  /* one line for people, escaped, names the thing */
    const struct gguf_file *file; /* the file it is about, in which offset
                                   * counts; NULL if that does not open
                                   * (verify.h) */
};

/* Another value than 0 ends the check: GGUF_E_CANCELLED. Called from the
 * thread that runs it. */
typedef int gguf_finding_fn(void *user, const struct gguf_finding *finding);

#define GGUF_CHECK_QUICK_TOKENS 16384

struct gguf_check_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc */
    struct gguf_pool *pool;                 /* NULL: on the calling thread */
    int payload;                /* look at tensor data too: reads all of it */
    gguf_progress_fn *progress; /* bytes of tensor data; NULL: silent */
    void *progress_user;
    int quick; /* leave out what takes longer than opening the file: all after
                * the header, even padding; and (verify.h) comparing the texts
                * of more than GGUF_CHECK_QUICK_TOKENS tokens */
};
#define GGUF_CHECK_PARAMS_INIT GGUF_INIT(struct gguf_check_params)

/* Report findings in a fixed order: file, metadata, tensors, payload by
 * tensor. params may be NULL; report is required. Whatever is found, the status
 * is GGUF_OK; GGUF_E_CANCELLED, GGUF_E_NOMEM, GGUF_E_INVALID. One thread at a
 * time per call; the result does not depend on the pool.
 *
 * Payload: floats must be finite, and so must the scales of quantized blocks
 * (otherwise the whole block is not finite). The data of fork types and
 * unknown types is not looked at; the types themselves are reported.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_check(const struct gguf_file *file,
                const struct gguf_check_params *params,
                gguf_finding_fn *report, void *user,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* The n-th code that a finding can have (also those of verify.h), what it
 * means in a few words, and its severity; NULL after the last. Since: 0.1 */
GGUF_API const char *gguf_check_code(size_t n, const char **about,
                                     enum gguf_severity *severity);

#ifdef __cplusplus
}
#endif
#endif
