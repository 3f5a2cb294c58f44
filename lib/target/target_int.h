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
    double noise;        /* infinite: a decoded number was not finite */
    bool known;          /* measured before */
};

struct gg_target_tensor {
    struct gg_job_tensor *t;
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

#endif
