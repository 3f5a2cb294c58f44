/* SPDX-License-Identifier: MIT */
/* calibrate_stage.h - a stage of a calibration: its tensors and inputs */
#ifndef GG_CALIBRATE_CALIBRATE_STAGE_H
#define GG_CALIBRATE_CALIBRATE_STAGE_H

#include "calibrate/calibrate_int.h"
#include "fit/form.h"

/* A tensor of the stage that is encoded. */
struct gg_calibrate_matrix {
    struct gg_calibrate_record *record;
    const struct gguf_tensor *original; /* [n, n_rows, matrices] */
    const struct gguf_tensor
        *residual[2];   /* residuals of the streams; NULL: none */
    const float *scale; /* outer scales of the quantized tensor; NULL: none */
    bool has_scales;    /* one for each matrix; else one for all */
    uint8_t *bytes; /* the plain encoder's, then new ones; NULL: not read */
    uint64_t size;  /* bytes of the tensor */
};

/* Way in which products read their inputs. */
enum gg_calibrate_kind {
    GG_CALIBRATE_PLAIN,   /* each token has an input, of a single matrix */
    GG_CALIBRATE_EXPERTS, /* ids say which matrices read a token's input */
    GG_CALIBRATE_HEADS    /* matrix h reads row h of each token's input */
};

struct gg_calibrate_stage {
    struct gg_calibrate_job *j;
    size_t i;           /* number of the stage; SIZE_MAX: the output matrix */
    bool original_only; /* both inputs are those of the original model */
    enum gg_calibrate_kind kind;
    struct gg_calibrate_matrix *matrix;
    size_t n_matrices;
    size_t n;         /* columns */
    size_t n_experts; /* matrices of a tensor; 0: one */
    struct gg_moments_params moments;
    struct gg_moments_product *product; /* [n_matrices] */
    const float **r[2];                 /* [n_matrices], residuals */
    float *gathered[2]; /* inputs of heads, [n_ctx][n_experts][n] */
    int32_t *ids;       /* matrices of heads, [n_ctx][n_experts] */
};

/* Describe a stage, or the output matrix (tied: with inputs of the original
 * alone), with the tensors that can be encoded; they may be none. Others, and
 * those of an interrupted run, are reported if `reports`. GGUF_E_NOMEM,
 * GGUF_E_CANCELLED. gg_calibrate_stage_fini() must follow a failure, too. */
enum gguf_status gg_calibrate_stage_init(struct gg_calibrate_stage *s,
                                         struct gg_calibrate_job *j, size_t i,
                                         bool reports, struct gguf_error *err);
enum gguf_status gg_calibrate_stage_init_output(struct gg_calibrate_stage *s,
                                                struct gg_calibrate_job *j,
                                                bool tied, bool reports,
                                                struct gguf_error *err);
void gg_calibrate_stage_fini(struct gg_calibrate_stage *s);

/* Read the plain bytes of the tensors, and make room for inputs.
 * GGUF_E_NOMEM. */
enum gguf_status gg_calibrate_stage_load(struct gg_calibrate_stage *s,
                                         struct gguf_error *err);

/* Fill in the inputs of the streams, which have reached the stage. They are
 * valid until the streams go on. */
enum gguf_status gg_calibrate_stage_inputs(struct gg_calibrate_stage *s,
                                           struct gg_moments_batch *b,
                                           struct gguf_error *err);
/* Are all inputs and residuals finite? */
bool gg_calibrate_stage_is_finite(const struct gg_calibrate_stage *s,
                                  const struct gg_moments_batch *b);

/* Sweeps over the chunks, each for up to *most matrices of a tensor. */
size_t gg_calibrate_stage_n_sweeps(const struct gg_calibrate_stage *s,
                                   size_t *most);
/* Work in multiply-adds, about: to compute and add a chunk; to encode a matrix
 * of n_rows rows; and of the whole stage. */
uint64_t gg_calibrate_chunk_work(const struct gg_calibrate_stage *s);
uint64_t gg_calibrate_encode_work(const struct gg_calibrate_stage *s,
                                  size_t n_rows);
uint64_t gg_calibrate_stage_work(const struct gg_calibrate_stage *s);

#endif
