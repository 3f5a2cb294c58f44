/* SPDX-License-Identifier: MIT */
/* target_int.h - the types that a free tensor may have, with size and noise */
#ifndef GG_TARGET_TARGET_INT_H
#define GG_TARGET_TARGET_INT_H

#include "gguf/target.h"
#include "quant/job/job.h"

struct gg_target_option {
    uint32_t wanted, to; /* type ids as chosen, and with blocks that fit the
                          * rows */
    uint64_t size;       /* bytes of data */
    uint64_t taken;      /* bytes of the limit: size with padding and scale
                          * tensors */
    /* relative noise, or the predicted divergence in nats of a tensor whose
     * effect is known; infinite: a decoded number was not finite */
    double noise;
    bool known; /* measured before */
};

/* Sensitivities of a tensor (imatrix.h). */
struct gg_target_effect {
    bool known;
    double product; /* sensitivity of products with it; 0: none */
    double input;   /* mean square of their inputs, for a tensor without
                     * importance data */
    double table;   /* sensitivity of its rows that are looked up; 0: none */
};

struct gg_target_tensor {
    struct gg_job_tensor *t;
    struct gg_target_effect effect; /* not known: noise is relative */
    struct gg_data_rows src; /* reads the tensor while it is measured; read is
                              * NULL if it cannot be read */
    size_t n;
    struct gg_target_option options[GGUF_TARGET_MAX_TYPES + 1];
};

/* target_noise.c: encode and decode a sample of rows of n tensors, and fill
 * noise where it is not known. Data behind a reader are loaded for some tensors
 * at a time. */
enum gguf_status gg_target_measure(const struct gguf_quant *q,
                                   struct gg_target_tensor *tensors, size_t n,
                                   uint64_t sample, struct gguf_error *err);

/* target_effect.c: find the sensitivities of a tensor in the importance data of
 * the job. */
struct gg_target_effect gg_target_find_effect(const struct gguf_quant *q,
                                              const struct gg_job_tensor *t);
/* Predicted divergence of an error in rows of matrix m.
 *
 * err2       Sum of squares of the error's elements.
 * weighted   Sum of these squares times the importance of their columns; the
 *            same as err2 for a tensor without importance data. */
double gg_target_predict_rows(const struct gguf_quant *q,
                              const struct gg_target_tensor *tt, uint64_t m,
                              double err2, double weighted);

/* target.c: measure the noise of all options of n tensors, and keep it in the
 * job's table. params->measured may have it. */
enum gguf_status gg_target_measure_all(struct gguf_quant *q,
                                       const struct gguf_target_params *params,
                                       struct gg_target_tensor *tensors,
                                       size_t n, struct gguf_error *err);

/* predict.c: record a predicted divergence in the metadata, whose size does not
 * depend on the number. GGUF_E_NOMEM. */
enum gguf_status gg_target_record(struct gguf_quant *q, double divergence,
                                  struct gguf_error *err);
/* Predict the divergence of the plan, and record it. out may be NULL. Fails as
 * gguf_quant_predict() does. */
enum gguf_status gg_target_predict(struct gguf_quant *q,
                                   const struct gguf_target_params *params,
                                   struct gguf_quant_prediction *out,
                                   struct gguf_error *err);

#endif
