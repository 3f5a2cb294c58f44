/* SPDX-License-Identifier: MIT */
/* stage_feedback.c - encode rows of a stage with error feedback */
#include "config.h"
#include "calibrate/stage_feedback.h"
#include "calibrate/two_sided.h"

enum gguf_status gg_stage_feedback_encode(void *user,
                                          const struct gg_targets *t,
                                          const float *curvature,
                                          const float *target, size_t n_rows,
                                          void *bytes, struct gguf_error *err)
{
    const struct gg_stage_feedback *f = user;
    const struct gg_feedback_metric metric = {
        .n = t->n, .g = t->g, .d = t->d, .s = t->s
    };
    if (curvature)
        return gg_two_sided_encode(f->form, &metric, curvature, target, n_rows,
                                   bytes, f->effort, f->pool, f->allocator,
                                   err);
    return gg_feedback_encode(f->form, &metric, target, n_rows, bytes,
                              f->effort, f->pool, f->allocator, err);
}
