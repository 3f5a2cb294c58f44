/* target.h - types for a model that is to have a certain size
 *
 * A job that was made has a type for each tensor. Where none of its options
 * and none of the recipe's rules chose it, so that the base type was taken,
 * the tensor is free, and gguf_quant_target chooses anew: such that the output
 * does not exceed a size and the damage is least.
 *
 *     gguf_quant_create(&job, "model-f16.gguf", &p, &err);
 *     t.max_size = 4000000000;
 *     gguf_quant_target(job, &t, &result, &err);
 *     gguf_quant_run(job, "model-4g.gguf", NULL, &err);
 *
 * Damage. For each free tensor and type rows are encoded and read back: evenly
 * spaced ones, the same in every run. The noise of a type is
 *
 *     sum over rows and columns of  w[column] * (x - x')^2
 *     ----------------------------------------------------
 *     sum over rows and columns of  w[column] * x^2
 *
 * where w is the tensor's importance data (those of its expert), or 1: an
 * estimate of how much of the power of the matrix's output is noise. What is
 * least is the sum of it over the free tensors, of the output matrix (the token
 * embedding where that is both) times 2 n in a model of n layers. That the
 * divergence of a model grows with such a sum, for noise that is small, is the
 * linearity theorem of V. Malinovskii and others, "Pushing the Limits of Large
 * Language Model Quantization via the Linearity Theorem" (2024, arXiv
 * 2411.17525). Its coefficients are guessed, not measured: a layer's matrix
 * puts its noise into one of the 2 n parts whose sum goes on, the output matrix
 * into the logits.
 *
 * Choice. A multiple-choice knapsack: a convex relaxation, its rounding, and
 * an exact search of what is left open. The result says whether it is proven
 * to be the best, and else how much better another could be. It depends on the
 * input and the parameters only, not on threads, instruction set or memory.
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
    const uint32_t *types; /* to choose from, borrowed; where a type's blocks
                        * do not fit the rows, the one that a recipe would
                        * fall back to. A tensor may also keep its type */
    size_t n_types;  /* at most GGUF_TARGET_MAX_TYPES; 0: all from IQ1_S to
                        * Q8_0 that have blocks of 256, Q8_0, and F16 */
    uint64_t sample; /* elements of each tensor to encode, at least; 0:
                        * 131072 and 32 rows; UINT64_MAX: all */
};
#define GGUF_TARGET_PARAMS_INIT                                               \
    {                                                                         \
        sizeof(struct gguf_target_params), 0, 0, NULL, 0, 0                   \
    }

struct gguf_target_result {
    size_t struct_size;   /* the caller's: as much is filled in */
    uint64_t limit, size; /* bytes: of files, or with max_bpw of tensors */
    size_t n_free;        /* tensors */
    double noise;         /* the sum over them, as told above */
    double bound;         /* no choice that fits has less */
    int exact; /* the choice is proven to be the best: noise is bound */
};
#define GGUF_TARGET_RESULT_INIT                                               \
    {                                                                         \
        sizeof(struct gguf_target_result), 0, 0, 0, 0, 0, 0                   \
    }

/* Choose. The job's pool, memory, progress (bytes looked at) and types that
 * need importance data are minded. A job with pure gets one type for all free
 * tensors. The tensors' why is GGUF_WHY_TARGET then, and their rule tells the
 * noise and what the next type would give; general.file_type is left out. May
 * be called again, with another limit. On failure the job is good for
 * gguf_quant_destroy only.
 *
 * GGUF_E_LIMIT      no choice is small enough: the message has the least size
 * GGUF_E_INVALID    params: neither or both limits, a type that is no target
 * GGUF_E_CANCELLED, GGUF_E_UNSUPPORTED, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_target(struct gguf_quant *q,
                  const struct gguf_target_params *params,
                  struct gguf_target_result *result, struct gguf_error *err);

#ifdef __cplusplus
}
#endif
#endif
