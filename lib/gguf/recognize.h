/* SPDX-License-Identifier: MIT */
/* recognize.h - models of architectures that the library does not know
 *
 * A file whose general.architecture is not in the table of architectures can
 * still be described, and perhaps be evaluated. The functions here look at the
 * names and shapes of its tensors and at the names of its keys:
 *
 *   gguf_file_infer_parts()     the parts of the model: layers, heads, experts
 *   gguf_arch_find_nearest()    the architectures that fit the file best
 *   gguf_arch_compare()         the differences between the file and one of
 *                               them
 *
 * A program shows the differences, and the user decides whether the model is
 * evaluated as one of that architecture (member as of struct gguf_model_params
 * in model_base.h). That a file fits an architecture does not prove that
 * the model computes the same: norms, activations and rotary embeddings of
 * different kinds have the same tensors.
 *
 *     const char *arch[8];
 *     size_t n, differences;
 *     if (gguf_arch_find_nearest(file, arch, 8, &n, &differences, &err) ==
 *             GGUF_OK &&
 *         n == 1 && differences == 0)
 *         params.as = arch[0];
 *
 * Threads: any thread may call the functions. The file must not be closed
 * meanwhile.
 */
#ifndef GGUF_RECOGNIZE_H
#define GGUF_RECOGNIZE_H

#include <gguf/file.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parts ---- */

/* A fact that tensors tell about a model. It and everything that it points to
 * are valid during the call of the callback. Only the library makes it; later
 * versions may add members at its end. */
struct gguf_inferred {
    /* Name for programs, such as "head_count". It never changes. */
    const char *name;
    const char *label; /* name for people, such as "attention heads" */
    uint64_t value;    /* the number; 0 if text is not NULL */
    const char *text;  /* words instead of a number; NULL: a number */

    /* Tensor whose name or shape tells the fact, the first of several. Empty:
     * the absence of a tensor tells it. */
    struct gguf_str from;
};

/* Receive a fact. Return true to stop, with GGUF_E_CANCELLED. */
typedef bool gguf_inferred_fn(void *user, const struct gguf_inferred *part);

/* A function that receives facts, and its first argument. Later versions add no
 * members to this struct. */
struct gguf_inferred_callback {
    gguf_inferred_fn *fn; /* the function; required */
    void *user;           /* its first argument */
};

/* Infer the parts of a model from the names and shapes of its tensors.
 *
 * file     An open file or set of shards, of any architecture.
 * report   Receives each fact that the tensors tell, in a fixed order. fn is
 *          required.
 *
 * The key attention.head_count is read if no tensor tells the width of a head;
 * no other key is. Nothing is reported about a file whose tensors
 * have no names of a language model (token_embd.weight, blk.N.).
 *
 * GGUF_OK            All facts were reported.
 * GGUF_E_INVALID     report.fn is NULL.
 * GGUF_E_CANCELLED   The callback returned true.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_file_infer_parts(const struct gguf_file *file,
                      struct gguf_inferred_callback report,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- nearest architecture ---- */

/* Kind of a difference between a file and an architecture. */
enum gguf_arch_difference_kind {
    GGUF_ARCH_TENSOR_EXTRA,   /* models of the architecture do not use it */
    GGUF_ARCH_TENSOR_MISSING, /* the architecture requires it */
    GGUF_ARCH_TENSOR_OTHER,   /* its shape or type does not fit the keys */
    GGUF_ARCH_KEY_EXTRA,      /* models of the architecture do not read it */
    GGUF_ARCH_KEY_MISSING,    /* the architecture requires it */
    GGUF_ARCH_KEY_OTHER       /* its type or value cannot be used */
};

/* A difference between a file and an architecture. It and everything that it
 * points to are valid during the call of the callback. Only the library makes
 * it; later versions may add members at its end. */
struct gguf_arch_difference {
    enum gguf_arch_difference_kind kind; /* kind of the difference */

    /* Name of the key, or of the first tensor: tensors of several layers that
     * differ in the number of the layer are one difference. Empty: layers
     * without tensors. */
    struct gguf_str name;
    const char *message; /* one line for people, escaped */

    /* True: the model cannot be evaluated as one of the architecture. False:
     * evaluation ignores the key, with a warning. */
    bool prevents;
};

/* Receive a difference. Return true to stop, with GGUF_E_CANCELLED. */
typedef bool gguf_arch_difference_fn(void *user,
                                     const struct gguf_arch_difference *d);

/* A function that receives differences, and its first argument. Later versions
 * add no members to this struct. */
struct gguf_arch_difference_callback {
    gguf_arch_difference_fn *fn; /* the function; required */
    void *user;                  /* its first argument */
};

/* Find the architectures that fit a file best: those with the fewest
 * differences.
 *
 * file             An open file or set of shards. The keys of its architecture
 *                  begin with its general.architecture and a dot.
 * arch             Receives names of architectures. Static storage.
 * room             Number of names that arch has room for.
 * n                Receives the number of architectures with the fewest
 *                  differences. It may be more than room.
 * n_differences    Receives their number of differences. May be NULL.
 *
 * The order of equally near architectures is a guess: first those whose names
 * begin like that of the file's architecture, then those that do the least that
 * neither tensors nor keys show (such as ALiBi, or attention to later tokens),
 * then those that require the file's tensors and do not only allow them, then
 * those that allow the most.
 *
 * GGUF_OK           arch has the names; there is at least one.
 * GGUF_E_NOTFOUND   general.architecture is missing, or the file has no
 *                   tensors.
 * GGUF_E_TYPE       general.architecture is not a string.
 * GGUF_E_UNSUPPORTED   general.architecture has other bytes than letters,
 *                   digits, '-', '_' and '.', or more than 64 of them.
 * GGUF_E_NOMEM      An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_arch_find_nearest(const struct gguf_file *file, const char **arch,
                       size_t room, size_t *n, size_t *n_differences,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Compare a file with an architecture.
 *
 * file     An open file or set of shards.
 * arch     Name of the architecture, one of gguf_model_arch_at().
 * report   Receives each difference: tensors, then keys. fn is required.
 *
 * GGUF_OK            All differences were reported.
 * GGUF_E_INVALID     report.fn is NULL, or arch is not a known name.
 * GGUF_E_CANCELLED   The callback returned true.
 * others             Those of gguf_arch_find_nearest().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_arch_compare(const struct gguf_file *file, const char *arch,
                  struct gguf_arch_difference_callback report,
                  struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
