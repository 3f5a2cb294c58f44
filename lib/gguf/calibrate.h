/* SPDX-License-Identifier: MIT */
/* calibrate.h - encode the tensors of an output anew, so that the model's
 * predictions stay near the original's
 *
 * gguf_quant_run() encodes each block by itself. A calibration evaluates the
 * original model and the quantized one on a text, stage by stage: a stage is
 * the matrices that multiply the same vectors. The matrices of a stage are
 * encoded so that their outputs in the quantized model, whose earlier stages
 * are done, are near the original's outputs. Types, sizes and all other bytes
 * of the file stay. doc/bytes.md describes the method.
 *
 *     static enum gguf_status improve(void *user, size_t job,
 *                                     struct gguf_quant_improver *h,
 *                                     struct gguf_error *err)
 *     {
 *         struct gguf_calibrate_params p = GGUF_CALIBRATE_PARAMS_INIT;
 *         struct gguf_calibrate_result r = GGUF_CALIBRATE_RESULT_INIT;
 *         p.tokens = ...;
 *         return gguf_calibrate_run(h, original, &p, &r, err);
 *     }
 *
 * One part in eight of the text is held out: no sum has it. New bytes of a
 * tensor are used only if they have the smaller error there, and those of all
 * tensors only if the file has no more divergence than with plain bytes.
 *
 * The result depends on the original, the plain bytes, the tokens, n_ctx and
 * effort. It does not depend on threads, memory or interruptions.
 *
 * With tune_steps, the scales of blocks and the weights of norms are then
 * fitted to the original's predictions, by gradients.
 */
#ifndef GGUF_CALIBRATE_H
#define GGUF_CALIBRATE_H

#include <gguf/improve.h>
#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a tensor after a calibration. */
enum gguf_calibrate_use {
    GGUF_CALIBRATE_PLAIN,   /* bytes of gguf_quant_run() */
    GGUF_CALIBRATE_FEEDBACK /* new bytes, encoded with error feedback */
};

/* Result for a tensor. Only the library makes it; later versions may
 * add members at its end. */
struct gguf_calibrate_tensor {
    size_t tensor;    /* number in gguf_quant_tensor() */
    const char *name; /* its name; belongs to the quantization job */
    enum gguf_calibrate_use use;
    /* Part of the correction for errors of earlier tensors that was used, 0 to
     * 1. The mean of all matrices of a tensor with experts. */
    double strength;
    /* Mean squares of the errors of its outputs on the text held out, as parts
     * of the outputs' mean square: with the plain bytes, and with those that
     * are used. NaN: not measured. */
    double error_before, error_after;
    size_t n_matrices; /* matrices of the tensor: experts, or 1 */
    size_t n_new;      /* matrices with new bytes */
    const char *note;  /* reason for plain bytes, of a tensor without any new
                        * ones; static. NULL: none */
};

/* Receive the result for a tensor. Return true to stop the calibration with
 * GGUF_E_CANCELLED. */
typedef bool
gguf_calibrate_tensor_fn(void *user,
                         const struct gguf_calibrate_tensor *tensor);

/* A tensor function and its first argument. Later versions add no members to
 * this struct. */
struct gguf_calibrate_tensor_callback {
    gguf_calibrate_tensor_fn *fn; /* NULL: none */
    void *user;                   /* its first argument */
};

/* Exchange the parts of an array with the other processes of a calibration.
 *
 * user   The callback's pointer.
 * data   The array. This process has filled bytes off[rank] to off[rank + 1].
 * off    [n_ranks + 1] offsets of the parts.
 *
 * Receive the parts of the other processes. Each process makes the same calls
 * in the same order, from the thread that called gguf_calibrate_run(). Return
 * true to stop the calibration with GGUF_E_CANCELLED. */
typedef bool gguf_calibrate_exchange_fn(void *user, void *data,
                                        const uint64_t *off);

/* An exchange function and its first argument. Later versions add no members to
 * this struct. */
struct gguf_calibrate_exchange_callback {
    gguf_calibrate_exchange_fn *fn; /* NULL: a single process */
    void *user;                     /* its first argument */
};

struct gguf_calibrate_params {
    size_t struct_size; /* set by GGUF_CALIBRATE_PARAMS_INIT */
    const struct gguf_allocator *allocator; /* NULL: malloc */
    struct gguf_pool *pool; /* threads; NULL: the calling thread alone */

    /* Tokens of the texts, one after another, tokenized with
     * GGUF_TOKENIZE_ADD_SPECIAL; borrowed. They are cut into chunks of n_ctx,
     * each a sequence of its own. If the vocabulary adds a BOS, it replaces the
     * first token of each chunk. */
    const gguf_token *tokens;
    size_t n_tokens;
    /* Index after the last token of each text; borrowed. Each text must have a
     * chunk. NULL: one text. */
    const size_t *text_end;
    size_t n_texts;    /* number of texts; ignored without text_end */
    size_t max_tokens; /* evenly spaced chunks of this many tokens are used; 0:
                        * all tokens */
    uint32_t n_ctx;    /* tokens of a chunk; 0: 512, or all tokens if the text
                        * has less */

    /* 0: error feedback with searched scales. 1: with gradients of the
     * original, too, if all operations of the architecture have one: errors are
     * weighted by the curvature by outputs, feedback also goes from row to row,
     * and the table of embeddings is encoded. 2: then coordinate descent, which
     * takes several times as long. */
    unsigned effort;

    /* Budget in bytes for activations between stages, and for sums. The model
     * is not counted. 0: 1 GiB. */
    uint64_t max_memory;
    /* Activations that exceed their part of the budget go to a file without a
     * name in the folder of this path. NULL: they stay in memory. */
    const char *spill_path;

    struct gguf_progress_callback progress; /* unit: multiply-adds, about */
    struct gguf_calibrate_tensor_callback on_tensor; /* called in the order of
                                                      * the work; again for a
                                                      * tensor whose new bytes
                                                      * are given up */

    /* Processes that calibrate the same output together, each with plain bytes
     * of its own. They must have the same original, plain bytes, tokens and
     * other params, on machines of one kind. Chunks are computed and rows
     * encoded by one process each; the result is that of a single process. */
    struct gguf_calibrate_exchange_callback exchange;
    size_t rank;    /* number of this process, from 0 */
    size_t n_ranks; /* number of processes; 0, 1: nothing is shared */

    /* Steps that fit the scales of all blocks, and weights that are vectors,
     * to the original's predictions. Each step takes two chunks that are not
     * held out. The quantized tensors are copied to memory, with 16 bytes for
     * each scale. The new values are used only if they have the smaller
     * divergence on held-out tokens. 0: none. */
    unsigned tune_steps;
};
#define GGUF_CALIBRATE_PARAMS_INIT GGUF_INIT(struct gguf_calibrate_params)

/* Bytes of a note about the tuning, with the final NUL. */
enum { GGUF_CALIBRATE_NOTE_SIZE = 232 };

/* Result of a calibration. */
struct gguf_calibrate_result {
    size_t struct_size; /* set by GGUF_CALIBRATE_RESULT_INIT; members beyond
                          * this size are not filled */
    size_t n_tensors;   /* tensors of types that can be calibrated */
    size_t n_new;       /* tensors with new bytes */
    size_t n_tokens;    /* tokens that were evaluated */
    size_t n_held_out;  /* tokens held out: no sum has them */
    size_t n_left_out;  /* chunks left out, because an activation was NaN or
                          * infinite */
    const char *bad;    /* name of the first tensor with such an input; belongs
                          * to the quantization job. NULL: none */
    /* Mean KL divergence of the quantized model's predictions from the
     * original's, in nats, on the tokens held out: with plain bytes, and at the
     * end. NaN: not measured, as for a model without logits. */
    double divergence_before, divergence_after;
    char
        no_gradients[160]; /* reason why gradients were not used, with effort 1
                             * or more. "": they were */
    /* Divergence with new bytes, if it is above divergence_before: all tensors
     * have the plain bytes again. NaN: they have not. */
    double divergence_given_up;
    /* With tune_steps: the divergence before the first step, and with the new
     * values, used or not. NaN: not tuned. */
    double divergence_untuned, divergence_tuned;
    size_t n_tuned; /* tensors with new values of tune_steps */
    /* With tune_steps: reason why no new values are used. Empty: none. */
    char tune_note[GGUF_CALIBRATE_NOTE_SIZE];
};
#define GGUF_CALIBRATE_RESULT_INIT GGUF_INIT(struct gguf_calibrate_result)

/* Calibrate the output of a quantization.
 *
 * h          The improver, with the complete output.
 * original   The model that the output was made of: weights in host memory, and
 *            tensors of the same names and shapes.
 * params     Text and options.
 * result     Receives the result. NULL: it is not wanted.
 *
 * Tensors that an interrupted run has replaced (gguf_quant_output.resume) are
 * kept; their results are those of that run. The steps of tune_steps begin
 * anew, unless all of their tensors were written.
 *
 * GGUF_OK             The file has the bytes that were chosen.
 * GGUF_E_INVALID      A text has too few tokens; an argument is missing; or the
 *                     resumed run was interrupted while it wrote the tensors
 *                     of tune_steps.
 * GGUF_E_UNSUPPORTED  The architecture encodes one text and decodes another;
 *                     the two models compute different products; or an adapter
 *                     was merged into the output.
 * GGUF_E_NONFINITE    Every chunk has an activation that is NaN or infinite.
 * GGUF_E_CANCELLED    A callback returned true.
 * GGUF_E_NOMEM        Out of memory.
 * Other               The statuses of gguf_model_create(), of
 *                     gguf_session_decode() and of
 *                     gguf_quant_improver_replace().
 *
 * Threads: any; improver and pool are used by the call alone. Since: 0.1 */
GGUF_API enum gguf_status
gguf_calibrate_run(struct gguf_quant_improver *h,
                   const struct gguf_model *original,
                   const struct gguf_calibrate_params *params,
                   struct gguf_calibrate_result *result,
                   struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
