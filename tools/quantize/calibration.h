/* SPDX-License-Identifier: MIT */
/* calibration.h - --calibrate: encode tensors again on the tokens of texts
 *
 * calibration_open() reads the texts, opens the original model and chooses the
 * tokens, before any output is begun. calibration_attach() makes the run call
 * the calibration for each output in turn (gguf_quant_output.improve).
 */
#ifndef TOOLS_QUANTIZE_CALIBRATION_H
#define TOOLS_QUANTIZE_CALIBRATION_H

#include "tools/quantize/quantize.h"

#include <gguf/model.h>

/* One text. */
struct calibration_text {
    const char *path;  /* borrowed */
    size_t n_tokens;   /* tokens of the text */
    size_t n_used;     /* tokens that are used */
    size_t begin, end; /* tokens of the text in the list of all */
};

struct calibration {
    struct gguf_file *file; /* the input */
    struct gguf_model *model;
    struct calibration_text *texts; /* [n_texts] */
    size_t n_texts;
    struct gguf_tokens tokens; /* chosen tokens, in chunks of n_ctx */
    uint32_t n_ctx;            /* tokens of a chunk */
    uint64_t n_wanted;         /* most tokens: --calib-tokens */
    unsigned effort;           /* 0 to 2 */
    bool nothing;              /* the texts are too poor to calibrate on */
    struct options *o;
    struct progress *bar;
};

enum {
    CALIBRATION_CTX = 512,
    CALIBRATION_TOKENS = 65536, /* default of --calib-tokens */
    /* With fewer tokens, or fewer different ones, nothing is calibrated. */
    CALIBRATION_LEAST = 16,
    CALIBRATION_LEAST_DIFFERENT = 32
};

/* Read the texts of o and choose tokens. Sets o->calibration, which stays NULL
 * without --calibrate. Returns false after a message. */
bool calibration_open(struct options *o);
void calibration_close(struct options *o);

/* calibration_importance.c: without --imatrix, make importance data of the
 * chosen tokens, a chunk or more, for the jobs of o, whose pool exists. A
 * failure of the evaluation is a warning, and the jobs have no importance data.
 * GGUF_E_CANCELLED. GGUF_E_NOMEM. */
enum gguf_status calibration_collect(struct options *o, struct progress *bar,
                                     struct gguf_error *err);

/* Let the run of o improve its outputs. bar shows the progress. */
void calibration_attach(struct options *o, struct progress *bar);

/* calibration_share.c: with --mpi, let a rank other than rank 0 write outputs
 * to files in TMPDIR that never get a name, and print nothing. */
void calibration_begin_rank(struct options *o);
/* Status of a rank's run that ended with st: GGUF_OK if only its outputs were
 * given up. */
enum gguf_status calibration_end_rank(const struct options *o,
                                      enum gguf_status st);
/* Let the ranks begin with the same bytes, those of rank 0's interrupted run
 * included. GGUF_E_MISMATCH: their inputs differ. Does nothing without
 * --mpi. */
enum gguf_status calibration_begin_share(const struct options *o,
                                         struct gguf_quant_improver *h,
                                         struct gguf_error *err);

/* Record the texts among the files that are read. */
void calibration_record_inputs(const struct options *o, struct gguf_paths *p);

/* Print the number of tokens and the effort, as a note about the input. */
void calibration_print_plan(const struct options *o);

/* Choose at most n_chunks chunks of c->n_ctx tokens from c->tokens, which has
 * all tokens of all texts. Each text gives the same number of chunks, as far as
 * it has them, from places at equal distances. A text shorter than a chunk is
 * left out, unless all are: then all their tokens follow each other. */
void calibration_choose_tokens(struct calibration *c, uint64_t n_chunks);

#endif
