/* SPDX-License-Identifier: MIT */
/* stage_feedback.h - encode rows of a stage with error feedback */
#ifndef GG_CALIBRATE_STAGE_FEEDBACK_H
#define GG_CALIBRATE_STAGE_FEEDBACK_H

#include "calibrate/targets.h"
#include "fit/feedback.h"

struct gg_stage_feedback {
    const struct gg_form *form;             /* form of the type */
    enum gg_feedback_effort effort;         /* DESCENT: targets must keep S */
    struct gguf_pool *pool;                 /* NULL: the calling thread */
    const struct gguf_allocator *allocator; /* NULL: malloc */
};

/* Encode rows by gg_feedback_encode(), or with curvature by
 * gg_two_sided_encode(), with the metric of t. user is a struct
 * gg_stage_feedback; the function is one of struct gg_stage_encode_encoder. */
enum gguf_status gg_stage_feedback_encode(void *user,
                                          const struct gg_targets *t,
                                          const float *curvature,
                                          const float *target, size_t n_rows,
                                          void *bytes, struct gguf_error *err);

#endif
