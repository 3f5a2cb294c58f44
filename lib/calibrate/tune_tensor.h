/* SPDX-License-Identifier: MIT */
/* tune_tensor.h - parameters of a tensor that are fitted by gradients
 *
 * A quantized tensor has a parameter for the scale of each block, and one for
 * its minimum: the logarithm of the factor by which it changes. Codes and
 * sub-scales stay. A vector, such as the weight of a norm, has its elements.
 *
 * Parameters are floats. After each step the weight in memory gets the nearest
 * values that its type can store. With an element's value w = s - m (scale
 * times level, less the minimum) and the gradient G = dL/dW of the weight,
 *
 *     dL / d log(scale) = sum of s G    dL / d log(minimum) = -sum of m G
 *
 * over the elements of a block. G is the sum over tokens of g x', the gradient
 * of the product's output times its input. It is computed for some rows at a
 * time.
 *
 * Steps are those of Adam (Kingma and Ba, arXiv 1412.6980). All sums have a
 * fixed order: results do not depend on the number of threads. One thread at a
 * time may use a tensor. */
#ifndef GG_CALIBRATE_TUNE_TENSOR_H
#define GG_CALIBRATE_TUNE_TENSOR_H

#include "fit/form.h"
#include "linalg/linalg.h"
#include "run/backward.h"

struct gg_tune_tensor {
    const struct gguf_allocator *allocator;
    const struct gguf_tensor
        *weight;                /* weight of the model; its data change */
    const struct gg_form *form; /* NULL: a vector of F32 */
    const uint8_t *from;        /* quantized blocks before tuning */
    uint64_t size;              /* bytes of the weight */
    size_t n_blocks;            /* elements of a vector */
    unsigned per_block;         /* parameters of a block: 1 or 2 */
    double rms;                 /* RMS of a vector before tuning */
    uint64_t n_steps;           /* steps that were made */
    bool bad; /* a gradient was NaN or infinite, or could not be computed */
    float *value;          /* [n_blocks][per_block] parameters */
    float *gradient;       /* their gradients, summed since the last step */
    float *first, *second; /* Adam's moments */
};

/* Can the scales of a form be tuned? They can if they are F16 numbers. */
bool gg_tune_tensor_has_scales(const struct gg_form *f);

/* Begin with the weight's present values.
 *
 * weight   quantized, contiguous, in memory that can be written, or a vector.
 *          Kept
 * form     form of its type; NULL: a vector
 * from     its blocks in memory that does not change; NULL for a vector. Kept
 *
 * GGUF_E_NOMEM. gg_tune_tensor_fini() must follow a failure, too. */
enum gguf_status
gg_tune_tensor_init(struct gg_tune_tensor *t, const struct gguf_tensor *weight,
                    const struct gg_form *form, const uint8_t *from,
                    const struct gguf_allocator *a, struct gguf_error *err);
void gg_tune_tensor_fini(struct gg_tune_tensor *t);

/* Add gradients of products, look-ups or the vector: g->weight is the tensor's,
 * and g has inputs. GGUF_E_NOMEM. */
enum gguf_status gg_tune_tensor_add(struct gg_tune_tensor *t,
                                    struct gg_linalg *la,
                                    const struct gg_backward_gradient *g,
                                    struct gguf_error *err);

/* Make a step, update the weight, and clear the gradients.
 *
 * rate   step size: of logarithms, or of a vector relative to its RMS */
void gg_tune_tensor_step(struct gg_tune_tensor *t, struct gguf_pool *pool,
                         double rate);

#endif
