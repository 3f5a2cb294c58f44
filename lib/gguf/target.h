/* SPDX-License-Identifier: MIT */
/* target.h - choose types that meet a file size
 *
 * gguf_quant_fit_size() changes the plan of a job (quant.h): it chooses types
 * again so that the output does not exceed a size and loses as little as
 * possible. It changes the free tensors only: those whose type is the recipe's
 * base type (GGUF_REASON_BASE), and lookup tables (GGUF_REASON_LOOKUP_TABLE).
 *
 *     struct gguf_target_params t = GGUF_TARGET_PARAMS_INIT;
 *     gguf_quant_create(&job, "model-f16.gguf", &p, &err);
 *     t.max_size = 4000000000;
 *     gguf_quant_fit_size(job, &t, &result, &err);
 *     gguf_quant_run(job, "model-4g.gguf", NULL, &err);
 *
 * Cost: for each free tensor and each type, a sample of rows is encoded and
 * decoded. The sample is evenly spaced and the same in every run. The noise of
 * a type is
 *
 *     sum over rows and columns of  w[column] * (x - x')^2
 *     ----------------------------------------------------
 *     sum over rows and columns of  w[column] * x^2
 *
 * where w is the importance of the column for this matrix, or 1 without
 * importance data. It estimates the share of noise in the power of the matrix's
 * output. The sum over all free tensors is minimized. In a model of n layers,
 * the output matrix (or the token embedding in its place) counts 2 n times.
 *
 * For small noise, the divergence of a model grows with a sum of this form (the
 * linearity theorem of V. Malinovskii and others, "Pushing the Limits of Large
 * Language Model Quantization via the Linearity Theorem", 2024, arXiv
 * 2411.17525). The coefficients here are guessed, not measured: the noise of a
 * layer's matrix enters one of the 2 n terms of the residual sum, and that of
 * the output matrix enters the logits.
 *
 * Sensitivities: if the importance data of the job have the sensitivity of a
 * free tensor (imatrix.h; gguf_sensitivity_run() measures it), the noise of a
 * type is not relative. It is the KL divergence from the input that the type is
 * predicted to cause, in nats per token, and no tensor counts several times.
 * Free tensors without a sensitivity keep the recipe's type. The sum of the
 * noise is then the predicted divergence of the free tensors.
 * gguf_quant_predict() predicts that of a whole plan.
 *
 * Choice: a multiple-choice knapsack problem, solved by a convex relaxation,
 * its rounding, and an exact search of the remaining choices. The result says
 * if it is proven to be optimal and, if not, bounds the distance from the
 * optimum. It depends on the input and the params alone, not on threads,
 * memory or the instruction set.
 */
#ifndef GGUF_TARGET_H
#define GGUF_TARGET_H

#include <gguf/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_TARGET_MAX_TYPES 32

/* Rows of each tensor that are encoded to measure its noise. */
enum gguf_target_sample {
    GGUF_TARGET_SAMPLE_DEFAULT,  /* 131072 elements and 32 rows, at least */
    GGUF_TARGET_SAMPLE_ELEMENTS, /* n_sample elements, at least */
    GGUF_TARGET_SAMPLE_ALL       /* every row */
};

struct gguf_target_params {
    size_t struct_size; /* set by GGUF_TARGET_PARAMS_INIT */
    uint64_t max_size;  /* bytes of the output: all files, metadata included;
                         * 0: max_bpw is the limit */
    double max_bpw;     /* bits per weight in the data of all tensors together;
                         * 0: max_size is the limit */

    /* Type ids to choose from; borrowed. Where the blocks of a type do
     * not fit the rows of a tensor, the fallback of recipes takes its place. A
     * tensor may also keep its type. */
    const uint32_t *types;
    /* Number of types, up to GGUF_TARGET_MAX_TYPES. 0: all types from IQ1_S to
     * Q8_0 with blocks of 256, Q8_0, and F16. */
    size_t n_types;

    /* Rows to measure. If they are less than a fourth of a matrix, up to 8
     * neighbouring rows are taken together, in 8 places at least. */
    enum gguf_target_sample sample;
    uint64_t n_sample; /* elements, for GGUF_TARGET_SAMPLE_ELEMENTS */

    /* A job with the same input, importance data, outer_scales and compat, for
     * which gguf_quant_fit_size() was called with the same sample: its
     * measurements are reused; borrowed. NULL: measure everything. */
    const struct gguf_quant *measured;

    /* Do not record the predicted divergence in the output, for an output whose
     * tensors will be replaced (improve.h). */
    bool no_record;
};
#define GGUF_TARGET_PARAMS_INIT GGUF_INIT(struct gguf_target_params)

struct gguf_target_result {
    size_t struct_size; /* set by GGUF_TARGET_RESULT_INIT; members
                         * beyond this size are not filled */
    uint64_t limit;     /* bytes allowed: of files, or with max_bpw of tensor
                         * data */
    uint64_t size;      /* bytes of the choice, at most limit */
    size_t n_free;      /* tensors whose type was chosen */
    double noise;       /* sum of their noise, as described above */
    double bound;   /* lower bound for the noise of every choice that fits */
    bool exact;     /* the choice is proven to be optimal: noise == bound */
    bool predicted; /* noise is predicted divergence, in nats per token */
};
#define GGUF_TARGET_RESULT_INIT GGUF_INIT(struct gguf_target_result)

/* Choose types for a job so that its output meets a size.
 *
 * q        The job. A second call with another limit reuses the measurements.
 * params   The limit: one of max_size and max_bpw must be set.
 * result   Receives size and noise of the choice. NULL: not wanted.
 *
 * Uses the pool, the memory limit and the progress callback of the job (unit:
 * bytes looked at). Types that require importance data are chosen only for
 * tensors that have some. A job with pure gets one type for all free tensors.
 *
 * Afterwards the reason of the free tensors is GGUF_REASON_TARGET. Their rule
 * shows the noise, and the noise and size of the next larger type. The key
 * general.file_type is left out of the output, unless the caller set it.
 *
 * After a failure the job can only be destroyed.
 *
 * GGUF_E_LIMIT        No choice is small enough: the message has the least
 *                     size. Or max_memory is too small for the longest row.
 * GGUF_E_INVALID      params has no limit or both, a type that nothing is
 *                     encoded in, or a measured job that differs.
 * GGUF_E_CANCELLED    The progress callback stopped the call.
 * GGUF_E_UNSUPPORTED  The type of a tensor has no known size.
 * GGUF_E_NOMEM        A buffer cannot be allocated.
 * Other               The statuses of a reader (reader.h), through which the
 *                     sampled rows of some tensors at a time are loaded, in
 *                     half of max_memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_quant_fit_size(
    struct gguf_quant *q, const struct gguf_target_params *params,
    struct gguf_target_result *result, struct gguf_error *err) GGUF_MUST_CHECK;

/* Divergence that the sensitivities of the importance data predict. */
struct gguf_quant_prediction {
    size_t struct_size; /* set by GGUF_QUANT_PREDICTION_INIT; members
                         * beyond this size are not filled */
    double divergence;  /* KL divergence from the input, in nats per token */
    size_t n_tensors;   /* tensors that change and have a sensitivity; 0: the
                         * divergence is unknown */
    size_t n_unknown;   /* tensors that change and lack a sensitivity: the
                         * divergence lacks their part */
};
#define GGUF_QUANT_PREDICTION_INIT GGUF_INIT(struct gguf_quant_prediction)

/* Predict the divergence of a job's output from its input.
 *
 * q        The job. Its plan stays as it is.
 * params   Rows to measure: sample, n_sample and measured; the other members
 *          are ignored. NULL: the defaults.
 * out      Receives the prediction.
 *
 * Measurements of gguf_quant_fit_size() with the same rows are reused. If every
 * tensor that changes has a sensitivity, the output gets the key
 * quantize.predicted_kld with the divergence, unless the job has compat or
 * params has no_record. gguf_quant_fit_size() records it, too.
 *
 * GGUF_E_INVALID      out is NULL or its struct_size is 0; or a measured job
 *                     differs.
 * GGUF_E_LIMIT        max_memory is too small for the longest row.
 * GGUF_E_CANCELLED    The progress callback stopped the call.
 * GGUF_E_NOMEM        A buffer cannot be allocated.
 * Other               The statuses of a reader (reader.h).
 *
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_quant_predict(
    struct gguf_quant *q, const struct gguf_target_params *params,
    struct gguf_quant_prediction *out, struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
