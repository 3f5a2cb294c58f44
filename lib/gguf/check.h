/* SPDX-License-Identifier: MIT */
/* check.h - find errors and oddities in a GGUF file
 *
 * gguf_file_open() refuses files that no program may read. gguf_file_check()
 * looks further at a file that opens: for violations of the specification, for
 * things that other programs fail on and, if asked, for numbers in tensor data
 * that are not finite. It reports each as a finding to a callback.
 *
 * gguf_file_verify() (verify.h) does the same and also checks vocabulary,
 * hyperparameters and tensors of the model.
 *
 *     static bool show(void *user, const struct gguf_finding *f)
 *     {
 *         printf("%s: %s\n", gguf_severity_name(f->severity), f->message);
 *         return false;
 *     }
 *     ...
 *     struct gguf_finding_callback report = { show, NULL };
 *     if (gguf_file_check(file, NULL, report, &err) != GGUF_OK)
 *         return fail(err.message);
 */
#ifndef GGUF_CHECK_H
#define GGUF_CHECK_H

#include <gguf/file.h>
#include <gguf/pool.h>
#include <gguf/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Weight of a finding. */
enum gguf_severity {
    GGUF_SEVERITY_NOTE,    /* allowed, but unusual */
    GGUF_SEVERITY_WARNING, /* violates the specification, or some programs
                            * refuse it */
    GGUF_SEVERITY_ERROR    /* the model cannot work */
};

/* Name of a severity: "note", "warning" or "error". Threads: any.
 * Since: 0.1 */
GGUF_API const char *gguf_severity_name(enum gguf_severity severity);

/* One finding. It and everything that it points to are valid during the call of
 * the callback. Only the library makes it; later versions may add members at
 * its end. */
struct gguf_finding {
    enum gguf_severity severity; /* weight of the finding */
    const char *code;            /* kind of finding for programs, such as
                                  * "trailing-bytes"; it never changes */
    struct gguf_str name;        /* key or tensor; empty: the whole file */
    uint64_t offset;             /* byte of file; GGUF_NO_OFFSET: unknown */
    const char *message;         /* one line for people, escaped */

    /* File that the finding is about. NULL: the file does not open
     * (gguf_path_verify()). */
    const struct gguf_file *file;
};

/* Receive a finding. Runs on the thread that called the check. Return true to
 * stop the check, which then returns GGUF_E_CANCELLED. */
typedef bool gguf_finding_fn(void *user, const struct gguf_finding *finding);

/* A function that receives findings, and its first argument. Later versions add
 * no members to this struct. */
struct gguf_finding_callback {
    gguf_finding_fn *fn; /* the function; required */
    void *user;          /* its first argument */
};

/* Number of tokens up to which a quick check compares their texts. */
#define GGUF_CHECK_QUICK_TOKENS 16384

/* How to check. */
struct gguf_check_params {
    size_t struct_size; /* size of this structure in bytes */

    /* Allocator for the call. NULL: malloc. */
    const struct gguf_allocator *allocator;

    /* Threads for tensor data. NULL: the calling thread. */
    struct gguf_pool *pool;

    bool payload; /* check tensor data, too; reads all of it */

    /* Called with the bytes of tensor data that are done and all of them, on
     * the thread that called. */
    struct gguf_progress_callback progress;

    /* Skip checks that take longer than opening the file: everything after the
     * header, and (verify.h) duplicate tokens if the vocabulary has more than
     * GGUF_CHECK_QUICK_TOKENS. Excludes payload. */
    bool quick;
};
#define GGUF_CHECK_PARAMS_INIT GGUF_INIT(struct gguf_check_params)

/* Check a file, or each shard of a set.
 *
 * file     An open file.
 * params   How to check. NULL: the defaults.
 * report   Receives the findings. fn is required.
 *
 * Findings come in a fixed order: the file as a whole, metadata, tensors, then
 * tensor data by tensor. They do not depend on the pool.
 *
 * With params.payload, every float must be finite, and so must the scales of
 * quantized blocks. Data of unknown types, and of some types of forks, is not
 * checked; the types are reported.
 *
 * GGUF_OK              The check is complete, with or without findings.
 * GGUF_E_INVALID       report.fn is NULL, or payload and quick are both set.
 * GGUF_E_UNSUPPORTED   payload is set and the file is read through a reader.
 * GGUF_E_CANCELLED     A callback returned true.
 * GGUF_E_NOMEM         Out of memory.
 *
 * Threads: any, with a pool of its own. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_check(const struct gguf_file *file,
                const struct gguf_check_params *params,
                struct gguf_finding_callback report,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Code n that a finding can have, counted from 0; NULL after the last. The
 * codes of verify.h are included. For documentation, and for programs that let
 * their users ignore findings.
 *
 * n          Index of the code.
 * about      Receives its meaning in a few words. May be NULL.
 * severity   Receives its severity. May be NULL.
 *
 * Threads: any. Since: 0.1 */
GGUF_API const char *gguf_check_code(size_t n, const char **about,
                                     enum gguf_severity *severity);

#ifdef __cplusplus
}
#endif
#endif
