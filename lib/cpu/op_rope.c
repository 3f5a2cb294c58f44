/* op_rope.c - rotary embedding
 *
 * Cosines and sines of a token serve all its heads. Angles are computed in
 * double: at position 100,000 a float angle is off by 1/256 of a radian.
 */
#include "config.h"
#include "cpu/optab.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

/* Scratch: source row, result row, cosines and sines, and one double for each
 * pair: what position 1 turns it by. */
enum { TMP_X, TMP_OUT, TMP_TRIG, TMP_STEP, N_TMP };

size_t gg_cpu_rope_work(const struct gguf_tensor *t, unsigned nth,
                        const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->ne[0], N_TMP, nth);
}

/* The pair that makes n_rot turns within the original context
 * (arXiv 2309.00071, section 3.2, solved for the dimension). */
static double turns_at(const struct gguf_rope *r, double n_rot)
{
    const double pi = 3.14159265358979323846;
    return r->n_dims * log(r->n_ctx_orig / (n_rot * 2 * pi)) /
           (2 * log((double)r->freq_base));
}

/* Angle of each pair for one position, and the scale of cosine and sine. */
static double steps(const struct gguf_rope *r, const float *freq_factors,
                    double *step)
{
    double low = 0, high = 0, scale = r->attn_factor;
    if (r->ext_factor != 0) {
        low = fmax(0, floor(turns_at(r, r->beta_fast)));
        high = fmin(r->n_dims - 1, ceil(turns_at(r, r->beta_slow)));
        scale *= 1 + 0.1 * log(1 / (double)r->freq_scale);
    }
    for (int i = 0; i < r->n_dims / 2; i++) {
        double theta = pow(r->freq_base, -2.0 * i / r->n_dims);
        if (freq_factors)
            theta /= freq_factors[i];
        double g = 0;
        if (r->ext_factor != 0) {
            double ramp = (i - low) / fmax(0.001, high - low);
            g = r->ext_factor * (1 - fmin(1, fmax(0, ramp)));
        }
        step[i] = theta * (r->freq_scale * (1 - g) + g);
    }
    return scale;
}

void gg_cpu_rope(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0], *pos = t->src[1];
    const struct gguf_tensor *ff = t->src[2];
    const int64_t n = t->ne[0];
    struct gguf_rope rope;
    memcpy(&rope, t->op_params, sizeof rope);
    gg_vec_rope_fn *fn = rope.kind == GGUF_ROPE_NEOX
                             ? task->kern->vec.rope_neox
                             : task->kern->vec.rope_norm;
    const size_t n_pairs = (size_t)rope.n_dims / 2;
    float *tmp_x = gg_row_tmp(task, n, N_TMP, TMP_X);
    float *tmp_y = gg_row_tmp(task, n, N_TMP, TMP_OUT);
    float *cosine = gg_row_tmp(task, n, N_TMP, TMP_TRIG);
    float *sine = cosine + n_pairs;
    double *step = (double *)gg_row_tmp(task, n, N_TMP, TMP_STEP);
    int64_t r, end, last = -1;
    if (gguf_tensor_is_empty(t))
        return;
    gg_cpu_share(task, gguf_tensor_n_rows(t), &r, &end);
    if (r == end)
        return;
    double scale = steps(&rope, ff ? ff->data : NULL, step);
    struct gg_pos p = gg_pos_at(t, r);
    for (; r < end; r++, gg_pos_next(t, &p)) {
        if (p.i2 != last) {
            int32_t at;
            memcpy(&at, (const char *)pos->data + p.i2 * pos->nb[0],
                   sizeof at);
            for (size_t i = 0; i < n_pairs; i++) {
                cosine[i] = (float)(cos(at * step[i]) * scale);
                sine[i] = (float)(sin(at * step[i]) * scale);
            }
            last = p.i2;
        }
        const float *x = gg_row_load(task->kern, a, gg_row(a, p), tmp_x, n);
        float *y = gg_row_out(t, gg_row(t, p), tmp_y);
        fn(y, x, cosine, sine, n_pairs);
        if (y != x)
            memcpy(y + 2 * n_pairs, x + 2 * n_pairs,
                   ((size_t)n - 2 * n_pairs) * sizeof *y);
        gg_row_store(task->kern, t, gg_row(t, p), y);
    }
}
