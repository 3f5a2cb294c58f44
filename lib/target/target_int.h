/* SPDX-License-Identifier: MIT */
/* target_int.h - what is known about the types that a free tensor may have */
#ifndef GG_TARGET_TARGET_INT_H
#define GG_TARGET_TARGET_INT_H

#include "gguf/target.h"
#include "quant/job/job.h"

struct gg_target_option {
    uint32_t wanted, to; /* to: in blocks that fit the rows */
    uint64_t size;       /* bytes */
    uint64_t taken;      /* of the limit: with padding, and scales beside it */
    double noise;        /* infinite: a number became none */
    bool known;          /* it was measured before */
};

struct gg_target_tensor {
    struct gg_job_tensor *t;
    struct gg_data_rows src; /* while it is measured; read NULL: its numbers
                              * cannot be read */
    size_t n;
    struct gg_target_option options[GGUF_TARGET_MAX_TYPES + 1];
};

/* target_noise.c: encode and read back rows of n tensors, and fill noise where
 * it is not known. What comes through a reader is brought for some tensors at a
 * time. */
enum gguf_status gg_target_measure(const struct gguf_quant *q,
                                   struct gg_target_tensor *tensors, size_t n,
                                   uint64_t sample, struct gguf_error *err);

#endif
