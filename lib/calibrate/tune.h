/* SPDX-License-Identifier: MIT */
/* tune.h - fit norms and block scales of an output to the original's logits
 *
 * The last part of a calibration. Scales and minima of quantized blocks, and
 * weights that are vectors, are changed by gradients of the divergence from the
 * original, on chunks of the calibration text that are not held out. Each step
 * takes two chunks. The weights are copies in memory; the file has the bytes of
 * the calibration until the divergence on held-out tokens has shown that the
 * new ones are better. */
#ifndef GG_CALIBRATE_TUNE_H
#define GG_CALIBRATE_TUNE_H

#include "calibrate/calibrate_int.h"

/* Work of all steps, for the progress; 0 without steps. */
uint64_t gg_calibrate_tune_work(const struct gg_calibrate_job *j);

/* Check what an interrupted run has left. GGUF_E_INVALID: it was interrupted
 * while it wrote tuned tensors, and has to be begun anew. */
enum gguf_status gg_calibrate_tune_check(const struct gg_calibrate_job *j,
                                         struct gguf_error *err);

/* Tune the output. Call it when all stages are done and divergence_after is
 * set. It ends the stages of both streams. Without params.tune_steps it does
 * nothing.
 *
 * GGUF_OK           The result has the number of tensors, or a reason.
 * GGUF_E_CANCELLED  A callback returned true.
 * GGUF_E_NOMEM      Out of memory.
 *
 * Fails otherwise as gguf_session_decode() and gguf_quant_improver_replace().
 */
enum gguf_status gg_calibrate_tune(struct gg_calibrate_job *j,
                                   struct gguf_error *err);

#endif
