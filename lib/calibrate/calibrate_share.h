/* SPDX-License-Identifier: MIT */
/* calibrate_share.h - a calibration that several processes share
 *
 * All processes run the same calibration and come to the same bytes. Chunk c is
 * computed by process c % n_ranks, which alone has its activations. The others
 * receive its inputs at each stage, and add the chunks in their order, so that
 * sums are those of a single process. Of the rows that are encoded together,
 * each process encodes a part. */
#ifndef GG_CALIBRATE_CALIBRATE_SHARE_H
#define GG_CALIBRATE_CALIBRATE_SHARE_H

#include "calibrate/calibrate_stage.h"
#include "calibrate/stage_encode.h"

/* Number of processes; 1 if nothing is shared. */
static inline size_t gg_calibrate_n_ranks(const struct gg_calibrate_job *j)
{
    return j->p->exchange.fn && j->p->n_ranks > 1 ? j->p->n_ranks : 1;
}

/* Is chunk c computed by this process? */
static inline bool gg_calibrate_owns(const struct gg_calibrate_job *j,
                                     size_t c)
{
    const size_t n = gg_calibrate_n_ranks(j);
    return n == 1 || c % n == j->p->rank;
}

/* Check rank and n_ranks. GGUF_E_INVALID. */
enum gguf_status
gg_calibrate_check_share(const struct gguf_calibrate_params *p,
                         struct gguf_error *err);

/* Exchange an array of size bytes for each process. GGUF_E_CANCELLED,
 * GGUF_E_NOMEM. */
enum gguf_status gg_calibrate_exchange(const struct gg_calibrate_job *j,
                                       void *data, size_t size,
                                       struct gguf_error *err);

/* ---- inputs of a stage ---- */

/* Inputs of one chunk of each process. */
struct gg_calibrate_share_inputs {
    const struct gg_calibrate_stage *s;
    char *data;            /* [n_ranks][slot] */
    size_t slot;           /* bytes of a chunk */
    size_t x, r, ids;      /* bytes of a stream's inputs, residuals, ids */
    size_t r_stride;       /* floats from residual to residual */
    const float **list[2]; /* [n_matrices] residuals of a batch */
};

/* Make room for a stage. GGUF_E_NOMEM. gg_calibrate_share_inputs_fini() must
 * follow a failure, too. */
enum gguf_status
gg_calibrate_share_inputs_init(struct gg_calibrate_share_inputs *i,
                               const struct gg_calibrate_stage *s,
                               struct gguf_error *err);
void gg_calibrate_share_inputs_fini(struct gg_calibrate_share_inputs *i);

/* Copy the inputs of this process's chunk. */
void gg_calibrate_share_inputs_put(struct gg_calibrate_share_inputs *i,
                                   const struct gg_moments_batch *b);
/* Point b to the inputs of another process's chunk, after an exchange of
 * i->slot bytes. They are valid until the next call. */
void gg_calibrate_share_inputs_get(const struct gg_calibrate_share_inputs *i,
                                   size_t rank, struct gg_moments_batch *b);

/* Complete the sums of moments. Each process has made its part of the rows. */
enum gguf_status gg_calibrate_share_sums(const struct gg_calibrate_stage *s,
                                         const struct gg_moments *m,
                                         struct gguf_error *err);

/* ---- rows ---- */

/* An encoder that encodes a part of the rows with another one, and exchanges
 * the bytes. user of its function is a struct gg_calibrate_share_rows. */
struct gg_calibrate_share_rows {
    const struct gg_calibrate_job *j;
    struct gg_stage_encode_encoder encoder;
    size_t row_size; /* bytes of a row */
};
enum gguf_status
gg_calibrate_share_encode(void *user, const struct gg_targets *t,
                          const float *curvature, const float *target,
                          size_t n_rows, void *bytes, struct gguf_error *err);

#endif
