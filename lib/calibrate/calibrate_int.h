/* SPDX-License-Identifier: MIT */
/* calibrate_int.h - a calibration at work
 *
 * Two streams go through the stages of the model: the original, and the
 * quantized model in the output of the improver. */
#ifndef GG_CALIBRATE_CALIBRATE_INT_H
#define GG_CALIBRATE_CALIBRATE_INT_H

#include "base/error.h"
#include "base/index.h"
#include "calibrate/heldout.h"
#include "calibrate/stage_encode.h"
#include "gguf/calibrate.h"
#include "kern/codec.h"
#include "model/build.h"
#include "model/model_int.h"
#include "run/stages.h"

/* Chunks of the text. Chunk c has tokens c n_ctx to (c + 1) n_ctx - 1. */
struct gg_calibrate_text {
    const struct gguf_allocator *allocator;
    uint32_t n_ctx;
    size_t n_chunks;
    gguf_token *token; /* [n_chunks][n_ctx] */
    bool *want;        /* [n_ctx], all true */
    bool *bad;         /* [n_chunks]: left out from now on */
    size_t n_bad;
    struct gguf_batch *batch; /* [n_chunks] */
};

enum { GG_CALIBRATE_ORIGINAL, GG_CALIBRATE_QUANTIZED };

/* A model that is computed stage by stage. */
struct gg_calibrate_stream {
    const struct gguf_model *model;
    struct gguf_backend *backend;
    struct gguf_session *session;
    struct gg_stages *stages;
};

/* A tensor of the output. */
struct gg_calibrate_record {
    const struct gg_form *form; /* form of its type; NULL: none */
    uint32_t n_stages;          /* stages with products of it */
    bool done;                  /* reported */
    size_t n_tuned;             /* tensors that were tuned together with it; 0:
                                 * it was not tuned */
    struct gguf_calibrate_tensor result;
    double strength; /* sum over new matrices */
    /* sums over matrices, of mean squares */
    double error_before, error_after, power;
};

struct gg_calibrate_job {
    const struct gguf_calibrate_params *p;
    const struct gguf_allocator *allocator;
    struct gguf_quant_improver *improver;
    const struct gguf_file *file; /* the improver's */
    struct gg_linalg linalg;
    struct gg_codec_kern codec[GG_N_DTYPES]; /* codecs of tensors in memory */
    struct gguf_model *quantized;
    struct gg_calibrate_text text;
    struct gg_calibrate_stream stream[2];
    struct gg_calibrate_record *record; /* [n_records], as in the job */
    size_t n_records;
    struct gg_index index; /* index of records by name */
    /* gradients of the original, of tokens in the sums and of those held out;
     * NULL: not used */
    struct gg_curvature *curvature, *held_curvature;
    struct gguf_calibrate_result result;
    double divergence_untuned; /* before the tuning */
    uint64_t done, total;      /* progress */
};

/* ---- calibrate_text.c ---- */

/* Cut the tokens of the parameters into chunks. vocab decides about the BOS.
 * GGUF_E_INVALID, GGUF_E_NOMEM. gg_calibrate_text_fini() must follow a failure,
 * too. */
enum gguf_status gg_calibrate_text_init(struct gg_calibrate_text *x,
                                        const struct gguf_calibrate_params *p,
                                        const struct gguf_vocab *vocab,
                                        struct gguf_error *err);
void gg_calibrate_text_fini(struct gg_calibrate_text *x);

/* ---- calibrate_stream.c ---- */

/* Create sessions for the two models, and find their stages.
 * GGUF_E_UNSUPPORTED: the stages differ. gg_calibrate_streams_fini() must
 * follow a failure, too. */
enum gguf_status gg_calibrate_streams_init(struct gg_calibrate_job *j,
                                           struct gguf_error *err);
void gg_calibrate_streams_fini(struct gg_calibrate_job *j);
/* Create backend and session of a stream. */
enum gguf_status gg_calibrate_stream_open(struct gg_calibrate_job *j,
                                          struct gg_calibrate_stream *s,
                                          struct gguf_error *err);

/* Compute the mean divergence on the tokens held out. ends: the streams have
 * passed all stages; else the chunks are decoded as a whole. NaN: no logits, or
 * no tokens. */
enum gguf_status gg_calibrate_measure_divergence(struct gg_calibrate_job *j,
                                                 bool ends, double *mean,
                                                 struct gguf_error *err);

/* Leave a chunk out, because of an input of a tensor. GGUF_E_NONFINITE: it was
 * the last one. */
enum gguf_status gg_calibrate_leave_out(struct gg_calibrate_job *j,
                                        size_t chunk, const char *tensor,
                                        struct gguf_error *err);

/* ---- calibrate_record.c ---- */

/* Make the records of all tensors, with the results of an interrupted run.
 * GGUF_E_NOMEM. gg_calibrate_records_fini() must follow a failure, too. */
enum gguf_status gg_calibrate_records_init(struct gg_calibrate_job *j,
                                           struct gguf_error *err);
void gg_calibrate_records_fini(struct gg_calibrate_job *j);

/* Record of a weight. NULL: the output has no tensor of this name. */
struct gg_calibrate_record *
gg_calibrate_find_record(const struct gg_calibrate_job *j, const char *name);
/* Number of a tensor of the output in its file or set; SIZE_MAX: none. */
size_t gg_calibrate_find_in_file(const struct gg_calibrate_job *j,
                                 const char *name);
/* Add the result for one matrix of a tensor. */
void gg_calibrate_add_result(struct gg_calibrate_record *r,
                             const struct gg_stage_encode_result *result);
/* Write the bytes of a tensor (NULL: the plain ones stay), and report it. Fails
 * as gguf_quant_improver_replace(). GGUF_E_CANCELLED. */
enum gguf_status gg_calibrate_finish_tensor(struct gg_calibrate_job *j,
                                            struct gg_calibrate_record *r,
                                            const void *bytes,
                                            struct gguf_error *err);
/* Put back the plain bytes of a tensor with new ones, and report it again.
 * note: the reason; static. Fails as gguf_quant_improver_restore().
 * GGUF_E_CANCELLED. */
enum gguf_status gg_calibrate_restore_tensor(struct gg_calibrate_job *j,
                                             struct gg_calibrate_record *r,
                                             const char *note,
                                             struct gguf_error *err);
/* Write the bytes of a tensor that was tuned together with others, n_tuned in
 * all. Fails as gguf_quant_improver_replace(). */
enum gguf_status gg_calibrate_replace_tuned(struct gg_calibrate_job *j,
                                            struct gg_calibrate_record *r,
                                            const void *bytes, uint64_t size,
                                            size_t n_tuned,
                                            struct gguf_error *err);
/* Report a tensor that keeps its plain bytes. */
enum gguf_status gg_calibrate_keep_tensor(struct gg_calibrate_job *j,
                                          struct gg_calibrate_record *r,
                                          const char *note,
                                          struct gguf_error *err);

/* Add to the work that is done. GGUF_E_CANCELLED. */
enum gguf_status gg_calibrate_add_progress(struct gg_calibrate_job *j,
                                           uint64_t work,
                                           struct gguf_error *err);

/* ---- calibrate_curvature.c ---- */

/* Compute the curvature by outputs, with effort 1 or more. For a model without
 * gradients the result's no_gradients gets the reason. Fails as
 * gguf_session_decode() does. GGUF_E_CANCELLED. */
enum gguf_status gg_calibrate_curvature_init(struct gg_calibrate_job *j,
                                             struct gguf_error *err);
void gg_calibrate_curvature_fini(struct gg_calibrate_job *j);
/* Work in multiply-adds, about. */
uint64_t gg_calibrate_curvature_work(const struct gg_calibrate_job *j);
/* Blocks of the curvature by a matrix's n_rows outputs (two_sided.h). NULL:
 * none. */
const float *gg_calibrate_curvature_of(const struct gg_calibrate_job *j,
                                       const char *name, size_t n_rows);
/* Add the metric of the embeddings to the second moments of the inputs of an
 * output matrix that is the table of embeddings, too. For row v with frequency
 * f in the text, the divergence of an error e is
 *
 *     1/2 e'(h S + f M) e     h = E[p (1 - p)], p the probability of token v
 *
 * h is nearly f tr(H), H the curvature by logits, so that S + M / tr(H) is a
 * metric of all rows. Without curvature nothing is added. */
void gg_calibrate_add_embedding_metric(const struct gg_calibrate_job *j,
                                       struct gg_moments *m);
/* Encode the table of embeddings by its metric, unless it is the output matrix
 * or has no metric. Fails as gg_calibrate_finish_tensor(). GGUF_E_NOMEM. */
enum gguf_status gg_calibrate_run_embedding(struct gg_calibrate_job *j,
                                            struct gguf_error *err);

/* ---- calibrate_stage.c ---- */

/* Encode the tensors of stage i. */
enum gguf_status gg_calibrate_run_stage(struct gg_calibrate_job *j, size_t i,
                                        struct gguf_error *err);
/* Encode the output matrix. tied: it is the embedding, too, and no stage was
 * computed yet: the inputs are those of the original model. Else both streams
 * have passed all stages. */
enum gguf_status gg_calibrate_run_output(struct gg_calibrate_job *j, bool tied,
                                         struct gguf_error *err);

#endif
