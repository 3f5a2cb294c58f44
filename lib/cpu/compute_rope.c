/* SPDX-License-Identifier: MIT */
/* rope.c - rotary embedding
 *
 * Cosines and sines of a token serve all its heads. Angles are computed in
 * double: at position 100,000 a float angle is off by 1/256 of a radian.
 */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

/* Scratch: source row, result row, cosines and sines; for each pair what
 * position 1 turns it by, a double, and its axis. */
enum { TMP_X, TMP_OUT, TMP_TRIG, TMP_STEP, TMP_AXIS, N_TMP };

static size_t rope_work(const struct gguf_tensor *t, unsigned nth,
                        const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->ne[0], N_TMP, nth);
}

/* Axis of pair i, and the first pair of its section. */
static int axis_of(const struct gguf_rope *r, int i, int *begin)
{
    int sum = 0, at;
    *begin = 0;
    if (r->kind < GGUF_ROPE_MROPE)
        return 0;
    for (int k = 0; k < 4; k++)
        sum += r->sections[k];
    at = i % sum;
    if (r->kind == GGUF_ROPE_IMROPE)
        return at / 3 < r->sections[at % 3] ? at % 3 : 3;
    int axis = 0;
    for (*begin = i - at; at >= r->sections[axis]; axis++) {
        at -= r->sections[axis];
        *begin += r->sections[axis];
    }
    return axis;
}

/* The pair that makes n_rot turns within the original context
 * (arXiv 2309.00071, section 3.2, solved for the dimension). */
static double turns_at(const struct gguf_rope *r, double n_rot)
{
    const double pi = 3.14159265358979323846;
    return r->n_dims * log(r->n_ctx_orig / (n_rot * 2 * pi)) /
           (2 * log((double)r->freq_base));
}

/* Angle by which position 1 turns each pair, and the axis of its position.
 * Returns the factor of cosine and sine. */
static double rope_steps(const struct gguf_rope *r, int n_pairs,
                         const float *freq_factors, double *step,
                         uint8_t *axis)
{
    double low = 0, high = 0, scale = (double)r->attn_factor;
    if (r->ext_factor != 0) {
        low = fmax(0, floor(turns_at(r, (double)r->beta_fast)));
        high = fmin(r->n_dims - 1, ceil(turns_at(r, (double)r->beta_slow)));
        scale *= 1 + 0.1 * log(1 / (double)r->freq_scale);
    }
    for (int i = 0; i < n_pairs; i++) {
        int begin;
        axis[i] = (uint8_t)axis_of(r, i, &begin);
        const int e = r->kind == GGUF_ROPE_VISION ? i - begin : i;
        double theta = pow((double)r->freq_base, -2.0 * e / r->n_dims);
        if (freq_factors)
            theta /= (double)freq_factors[i];
        double g = 0;
        if (r->ext_factor != 0) {
            double ramp = (i - low) / fmax(0.001, high - low);
            g = (double)r->ext_factor * (1 - fmin(1, fmax(0, ramp)));
        }
        step[i] = theta * ((double)r->freq_scale * (1 - g) + g);
    }
    return scale;
}

/* Token i's positions; on one axis unless there are sections. */
static void token_positions(const struct gguf_tensor *t,
                            const struct gguf_rope *r, int64_t i, double at[4])
{
    const struct gguf_tensor *pos = t->src[1];
    const int n = r->kind < GGUF_ROPE_MROPE ? 1 : 4;
    for (int k = 0; k < n; k++) {
        int32_t p;
        memcpy(&p, (const char *)pos->data + (k * t->ne[2] + i) * pos->nb[0],
               sizeof p);
        at[k] = p;
    }
}

static void compute_rope(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0], *ff = t->src[2];
    const int64_t n = t->ne[0];
    struct gguf_rope rope;
    memcpy(&rope, t->op_params, sizeof rope);
    gg_vec_rope_fn *fn = rope.kind == GGUF_ROPE_NORM
                             ? task->kern->vec.rope_norm
                             : task->kern->vec.rope_neox;
    const int n_pairs =
        rope.kind == GGUF_ROPE_VISION ? rope.n_dims : rope.n_dims / 2;
    float *tmp_x = gg_row_tmp(task, n, N_TMP, TMP_X);
    float *tmp_y = gg_row_tmp(task, n, N_TMP, TMP_OUT);
    float *cosine = gg_row_tmp(task, n, N_TMP, TMP_TRIG);
    float *sine = cosine + n_pairs;
    double *step = (double *)(void *)gg_row_tmp(task, n, N_TMP, TMP_STEP);
    uint8_t *axis = (uint8_t *)gg_row_tmp(task, n, N_TMP, TMP_AXIS);
    int64_t last = -1;
    struct gg_cpu_rows rows = gg_cpu_rows_share(t, task);
    if (!rows.left)
        return;
    /* the transposed rotation: by the negative angle */
    const double sign = t->op == GGUF_OP_ROPE_BACK ? -1 : 1;
    double scale =
        rope_steps(&rope, n_pairs, ff ? ff->data : NULL, step, axis);
    for (; rows.left; gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        if (p.i2 != last) {
            double at[4];
            token_positions(t, &rope, p.i2, at);
            for (int i = 0; i < n_pairs; i++) {
                cosine[i] = (float)(cos(at[axis[i]] * step[i]) * scale);
                sine[i] = (float)(sin(at[axis[i]] * step[i]) * scale * sign);
            }
            last = p.i2;
        }
        const float *x = gg_row_load(task->kern, a, gg_row(a, p), tmp_x, n);
        float *y = gg_row_out(t, gg_row(t, p), tmp_y);
        fn(y, x, cosine, sine, (size_t)n_pairs);
        if (y != x)
            memcpy(y + 2 * n_pairs, x + 2 * n_pairs,
                   (size_t)(n - 2 * n_pairs) * sizeof *y);
        gg_row_store(task->kern, t, gg_row(t, p), y);
    }
}

GG_CPU_OP(rope, compute_rope, rope_work, gg_cpu_elem_supports, true);
GG_CPU_OP(rope_back, compute_rope, rope_work, gg_cpu_elem_supports, true);
