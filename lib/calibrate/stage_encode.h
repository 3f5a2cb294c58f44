/* SPDX-License-Identifier: MIT */
/* stage_encode.h - encode a matrix anew, and keep the result if it is better
 *
 * Targets of strength 0, .5 and 1 are encoded for evenly spaced rows, and the
 * strength with the least error of outputs on rows held out (output_error.h)
 * is used for all rows. The plain encoder's bytes stay unless the new ones'
 * error over all rows is smaller. With the curvature by its outputs, errors are
 * weighted by it, and whole blocks of rows are encoded together. */
#ifndef GG_CALIBRATE_STAGE_ENCODE_H
#define GG_CALIBRATE_STAGE_ENCODE_H

#include "calibrate/output_error.h"
#include "calibrate/targets.h"

enum { GG_STAGE_ENCODE_SAMPLE = 128 };

/* Reads rows of the original matrix as floats: n_rows rows from first_row on to
 * dst, n floats each. */
struct gg_stage_encode_reader {
    enum gguf_status (*read)(void *user, size_t first_row, size_t n_rows,
                             float *dst, struct gguf_error *err);
    void *user;
};

/* Encodes rows: bytes has the plain encoder's for the original rows, and
 * receives new ones for the target. curvature has the blocks of the rows, which
 * begin a block. NULL: rows must not depend on each other. */
struct gg_stage_encode_encoder {
    enum gguf_status (*encode)(void *user, const struct gg_targets *t,
                               const float *curvature, const float *target,
                               size_t n_rows, void *bytes,
                               struct gguf_error *err);
    void *user;
};

struct gg_stage_encode_job {
    int dtype_index;   /* GG_DT_... of the bytes */
    float outer_scale; /* factor of decoded elements; 1: none */
    size_t product;    /* its number among the moments' products */
    size_t expert;     /* its number among the moments' experts; SIZE_MAX:
                        * none */
    /* Curvature by the matrix's outputs: [n_rows / 64, rounded up][64][64]
     * (two_sided.h). It weighs all errors. NULL: they count alike */
    const float *curvature;
    struct gg_stage_encode_reader reader;
    struct gg_stage_encode_encoder encoder;
    /* Rows that are encoded at a time; at least the sample's. 0: 32 MiB of
     * floats */
    size_t most_rows;
    void *bytes; /* rows of blocks without gaps: the plain encoder's, then the
                  * chosen ones */
};

struct gg_stage_encode_result {
    bool used;       /* the new bytes are used */
    float strength;  /* strength of the best new bytes, used or not */
    size_t n_inputs; /* rows held out on which errors were measured */
    /* Mean squares over these rows: errors of outputs with the plain bytes and
     * with the chosen ones, and outputs of the original (of the sampled rows),
     * weighted by the curvature. 0 without such rows. */
    double error_before, error_after, power;
    const char *note; /* why the plain bytes are used; NULL: they are not */
};

/* Encode a matrix anew.
 *
 * t        Targets of the matrix's inputs.
 * m        The moments behind t.
 * la       Kernels and threads.
 * x        The matrix.
 * result   Receives the choice and its errors.
 *
 * GGUF_OK       x->bytes and *result are set. With unusable moments the bytes
 *               stay, and result->note says why.
 * GGUF_E_NOMEM  Out of memory; x->bytes is unchanged.
 * other         of the reader or the encoder; x->bytes is unchanged. */
enum gguf_status gg_stage_encode_matrix(const struct gg_targets *t,
                                        const struct gg_moments *m,
                                        struct gg_linalg *la,
                                        const struct gg_stage_encode_job *x,
                                        struct gg_stage_encode_result *result,
                                        struct gguf_error *err);

#endif
