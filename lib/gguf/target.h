/* SPDX-License-Identifier: MIT */
/* target.h - choosing types to meet a file size
 *
 * A job that was created has a type for each tensor. A tensor that got the base
 * type, because no option and no rule of the recipe chose its type, is free,
 * and so is one of GGUF_REASON_LOOKUP_TABLE: gguf_quant_fit_size chooses its
 * type anew, so that the output does not exceed a size and the damage is least.
 *
 *     gguf_quant_create(&job, "model-f16.gguf", &p, &err);
 *     t.max_size = 4000000000;
 *     gguf_quant_fit_size(job, &t, &result, &err);
 *     gguf_quant_run(job, "model-4g.gguf", NULL, &err);
 *
 * Damage. For each free tensor and type some rows are encoded and read back:
 * evenly spaced, and the same in every run. The noise of a type is
 *
 *     sum over rows and columns of  w[column] * (x - x')^2
 *     ----------------------------------------------------
 *     sum over rows and columns of  w[column] * x^2
 *
 * where w is the tensor's importance data (those of its expert), or 1: an
 * estimate of how much of the power of the matrix's output is noise. The sum
 * of it over the free tensors is minimized; in a model of n layers the output
 * matrix (the token embedding if that is both) counts 2 n times. For small
 * noise the divergence of a model grows with a sum of this form: the linearity
 * theorem of V. Malinovskii and others, "Pushing the Limits of Large Language
 * Model Quantization via the Linearity Theorem" (2024, arXiv 2411.17525). The
 * coefficients are guessed, not measured: the noise of a layer's matrix enters
 * one of the 2 n terms of the residual sum, that of the output matrix the
 * logits.
 *
 * Choice. A multiple-choice knapsack: a convex relaxation, its rounding, and
 * an exact search of the remaining choices. The result says whether it is
 * proven to be the best, and if not, how much better another could be. It
 * depends on the input and the parameters only, not on threads, instruction
 * set or memory.
 */
#ifndef GGUF_TARGET_H
#define GGUF_TARGET_H

#include <gguf/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_TARGET_MAX_TYPES 32

struct gguf_target_params {
    size_t struct_size;
    uint64_t max_size; /* bytes of the output, all files, metadata included */
    double max_bpw;    /* or, if that is 0: bits per weight of the data of all
                        * tensors together */
    const uint32_t *types; /* types to choose from, borrowed; if a type's
                        * blocks do not fit the rows, a recipe's fallback takes
                        * its place. A tensor may also keep its type */
    size_t n_types;  /* at most GGUF_TARGET_MAX_TYPES; 0: all from IQ1_S to
                        * Q8_0 that have blocks of 256, Q8_0, and F16 */
    uint64_t sample; /* elements of each tensor to encode, at least; 0:
                        * 131072 and 32 rows; UINT64_MAX: all. Of a matrix
                        * of which these are less than a fourth, up to 8 rows
                        * lie together, in 8 places at least */
    const struct gguf_quant *measured; /* borrowed: a job of the same input,
                        * importance data and kinds of scales, for which types
                        * were chosen with the same sample: what was measured
                        * then is not measured again; NULL: none */
};
#define GGUF_TARGET_PARAMS_INIT GGUF_INIT(struct gguf_target_params)

struct gguf_target_result {
    size_t struct_size;   /* the caller's: as much is filled in */
    uint64_t limit, size; /* bytes of files, or with max_bpw of tensor data */
    size_t n_free;        /* tensors */
    double noise;         /* the sum over them, as described above */
    double bound;         /* no choice that fits has less */
    int exact; /* the choice is proven to be the best: noise == bound */
};
#define GGUF_TARGET_RESULT_INIT GGUF_INIT(struct gguf_target_result)

/* Choose. Uses the job's pool, memory and progress (bytes looked at); types
 * that need importance data are chosen only with them. A job with pure gets one
 * type for all free tensors. Afterwards the tensors' why is GGUF_REASON_TARGET,
 * and their rule tells the noise and what the next type would give;
 * general.file_type is left out. May be called again with another limit, which
 * measures nothing again. After a failure the job can only be destroyed.
 *
 * GGUF_E_LIMIT      no choice is small enough: the message gives the least
 * size
 * GGUF_E_INVALID    params: neither or both limits, a type that cannot be
 * encoded, a job that was not measured alike
 * GGUF_E_CANCELLED, GGUF_E_UNSUPPORTED, GGUF_E_NOMEM; what a reader returns
 * (reader.h): the sampled rows are brought, those of some tensors at a time,
 * in half of max_memory. Since: 0.1 */
GGUF_API enum gguf_status gguf_quant_fit_size(
    struct gguf_quant *q, const struct gguf_target_params *params,
    struct gguf_target_result *result, struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
