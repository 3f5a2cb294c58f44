/* SPDX-License-Identifier: MIT */
/* feedback_scale.c - a choice among several scales of a block
 *
 * A block is encoded with the scale d of the plain encoder and with d times a
 * few factors. The codes of its sub-blocks begin at the scales that they had.
 * In a type without d, the scales themselves are multiplied. The feedback's
 * own error decides. With factors of 6%, the errors of rows become 6 to 12%
 * smaller in all types but MXFP4 and NVFP4, whose scales are coarser.
 */
#include "config.h"
#include "dtype/f16.h"
#include "fit/feedback_task.h"

#include <string.h>

enum { W = GG_FEEDBACK_LANES, PANEL_SIZE = GG_FEEDBACK_PANEL_SIZE };

static const float factor[] = { 1, 0.94f, 1.06f };

/* Multiply the scales of a block by x. Is there a change? */
static bool multiply_scales(const struct gg_form *f, struct gg_form_block *b,
                            float x)
{
    bool changes = false;
    const float d = b->d;
    if (f->has_d) {
        b->d = gg_dtype_f16_to_f32(gg_dtype_f32_to_f16(d * x));
        changes = b->d != d;
    }
    for (unsigned s = 0; s < gg_form_n_subs(f); s++) {
        const float value = f->scale_value(b->scale[s]);
        const float wanted = f->has_d ? value / x : value * x;
        if (wanted != wanted)
            continue;
        const int32_t code = gg_form_scale_code(f, wanted);
        changes = changes || code != b->scale[s];
        b->scale[s] = code;
    }
    return changes;
}

/* Keep the attempts that are better than the best so far. */
static void keep_better(struct gg_feedback_task *t, size_t column,
                        double best[GG_FEEDBACK_ROWS], bool is_first)
{
    const unsigned n = t->job->form->block_len;
    for (unsigned r = 0; r < t->n_vectors * W; r++) {
        const size_t v = r / W, l = r % W;
        const float *err = t->err + (v * t->job->metric->n + column) * W + l;
        float *to = t->best_err + v * PANEL_SIZE + l;
        if (!is_first && !(t->cost[r] < best[r]))
            continue;
        best[r] = t->cost[r];
        t->best[r] = t->block[r];
        for (unsigned j = 0; j < n; j++)
            to[j * W] = err[j * W];
    }
}

/* Copy n columns of all vectors. */
static void copy_columns(const struct gg_feedback_task *t, float *to,
                         size_t to_stride, const float *from,
                         size_t from_stride)
{
    const size_t size = t->job->form->block_len * W * sizeof *to;
    for (unsigned v = 0; v < t->n_vectors; v++)
        memcpy(to + v * to_stride, from + v * from_stride, size);
}

void gg_feedback_try_scales(struct gg_feedback_task *t, size_t panel,
                            unsigned column)
{
    const unsigned n_rows = t->n_vectors * W;
    const size_t stride = t->job->metric->n * W;
    const size_t size = n_rows * sizeof *t->block;
    float *base = t->base + column * W;
    float *err = t->err + (panel + column) * W;
    double best[GG_FEEDBACK_ROWS];
    memcpy(t->plain, t->block, size);
    copy_columns(t, t->plain_base, PANEL_SIZE, base, PANEL_SIZE);
    for (unsigned k = 0; k < GG_LEN(factor); k++) {
        bool changes = k == 0;
        memcpy(t->block, t->plain, size);
        for (unsigned r = 0; r < n_rows && k > 0; r++)
            if (multiply_scales(t->job->form, &t->block[r], factor[k]))
                changes = true;
        if (!changes)
            continue;
        copy_columns(t, base, PANEL_SIZE, t->plain_base, PANEL_SIZE);
        gg_feedback_round_block(t, panel, column);
        keep_better(t, panel + column, best, k == 0);
    }
    copy_columns(t, err, stride, t->best_err, PANEL_SIZE);
    memcpy(t->block, t->best, size);
    memcpy(t->cost, best, n_rows * sizeof *best);
}
