/* SPDX-License-Identifier: MIT */
/* ternary.c - matrices that are trained to be rounded to -v, 0 and v
 *
 * back_ternary.c is the way back.
 */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#include "base/compiler.h"

#include <math.h>

/* The mean of the magnitudes of all, by which they are divided, rounded, and
 * multiplied again, as those compute it who train so (utils_quant.py of
 * 1bitLLM/bitnet_b1_58-3B). They are read here, once. */
static enum gguf_status scale_ternary(struct gg_convert_view *v,
                                      struct gguf_error *err)
{
    enum { CHUNK = 4096 };
    float x[CHUNK];
    struct gg_data_rows rows;
    const struct gg_data *list = &v->c->folder.weights->list;
    const uint64_t n = v->from->n_elements;
    double sum = 0;
    if (!v->from->data && !v->from->packed && !v->from->nibbles)
        return GGUF_OK; /* a folder that is only planned (back.h) */
    GG_TRY(gg_data_rows(list, v->item->from, &rows, err));
    for (uint64_t at = 0, k; at < n; at += k) {
        k = GG_MIN(n - at, CHUNK);
        GG_TRY(gg_data_hold(list, v->item->from, at, k, err));
        gg_data_read(&rows, at, k, x);
        gg_data_release(list, v->item->from, at, k);
        for (uint64_t i = 0; i < k; i++)
            sum += fabs((double)x[i]);
        gg_data_advise(list, v->item->from, at, k, GG_ADVISE_DONTNEED);
    }
    const double mean = sum / (double)n;
    if (!isfinite(mean))
        return gg_convert_refuse_view(v, "has numbers that are not finite",
                                      err);
    v->part.scale[0] = 1 / (float)(mean > 1e-5 ? mean : 1e-5);
    v->part.after = 1 / v->part.scale[0];
    return GGUF_OK;
}

static void round_3(float *x, size_t n)
{
    while (n--) {
        const float y = rintf(x[n]);
        x[n] = y > 1 ? 1 : y < -1 ? -1 : y;
    }
}

/* a zero keeps its sign */
static void take_sign(float *x, size_t n)
{
    while (n--)
        x[n] = x[n] > 0 ? 1 : x[n] < 0 ? -1 : x[n];
}

const struct gg_convert_transform gg_convert_ternary = {
    .text = "-1, 0 or 1 times their mean magnitude",
    .view = scale_ternary,
    .change = round_3,
    .back = take_sign,
    .has_mean = true
};
