/* SPDX-License-Identifier: MIT */
/* tensor_layout.c - changes of a tensor's numbers and of their order
 *
 * If a model rotates pairs of neighbours and the checkpoint is for rotating the
 * first half of each head against the second (transformers' rotate_half), rows
 * are permuted: row h d + 2 j + i of the file is row h d + i d/2 + j of the
 * checkpoint, for heads of d rows and i = 0, 1.
 */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"
#include "convert/describe/axes.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

enum gguf_status gg_convert_refuse_view(const struct gg_convert_view *v,
                                        const char *why,
                                        struct gguf_error *err)
{
    struct gg_str_esc e;
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET, "tensor '%s' %s",
                        gg_str_esc(&e, v->from->name), why);
}

/* As it is. */
static void view_all(struct gg_convert_view *v)
{
    uint64_t step = 1;
    v->part.n_dims = v->n_dims = v->from->n_dims ? v->from->n_dims : 1;
    for (unsigned d = 0; d < v->n_dims; d++) {
        v->part.ne[d] = (uint64_t)v->from->ne[d];
        v->part.step[d] = step;
        v->ne[d] = v->from->ne[d];
        step *= (uint64_t)v->from->ne[d];
    }
}

static enum gguf_status view_permuted(struct gg_convert_view *v,
                                      const char *names,
                                      struct gguf_error *err)
{
    int64_t heads,
        rows = v->from->n_dims > 1 ? v->from->ne[1] : v->from->ne[0];
    const uint64_t row = v->from->n_dims > 1 ? (uint64_t)v->from->ne[0] : 1;
    if (!v->c->arch->permuted)
        return GGUF_OK;
    if (v->from->n_dims > 2 || !gg_convert_get_count(v->c, names, &heads) ||
        rows % (2 * heads))
        return gg_convert_refuse_view(
            v, "has rows that are not a multiple of the heads", err);
    const uint64_t half = (uint64_t)(rows / heads / 2);
    unsigned n = 0;
    if (v->from->n_dims > 1) {
        v->part.ne[n] = row;
        v->part.step[n++] = 1;
    }
    v->part.ne[n] = 2;
    v->part.step[n++] = half * row;
    v->part.ne[n] = half;
    v->part.step[n++] = row;
    v->part.ne[n] = (uint64_t)heads;
    v->part.step[n++] = 2 * half * row;
    v->part.n_dims = n;
    return GGUF_OK;
}

static enum gguf_status rope_q(struct gg_convert_view *v,
                               struct gguf_error *err)
{
    return view_permuted(v, "num_attention_heads n_head", err);
}

static enum gguf_status rope_k(struct gg_convert_view *v,
                               struct gguf_error *err)
{
    return view_permuted(v, "num_key_value_heads num_attention_heads n_head",
                         err);
}

enum gguf_status gg_convert_transpose_view(struct gg_convert_view *v,
                                           struct gguf_error *err)
{
    if (v->n_dims == 1) /* its bias */
        return GGUF_OK;
    if (v->n_dims != 2)
        return gg_convert_refuse_view(v, "is not a matrix", err);
    v->ne[0] = v->from->ne[1];
    v->ne[1] = v->from->ne[0];
    v->part.ne[0] = (uint64_t)v->ne[0];
    v->part.ne[1] = (uint64_t)v->ne[1];
    v->part.step[0] = (uint64_t)v->from->ne[0];
    v->part.step[1] = 1;
    return GGUF_OK;
}

static enum gguf_status squeeze_view(struct gg_convert_view *v,
                                     struct gguf_error *err)
{
    unsigned n = 0;
    (void)err;
    for (unsigned d = 0; d < v->n_dims; d++)
        if (v->ne[d] != 1)
            v->ne[n++] = v->ne[d];
    if (!n)
        v->ne[n++] = 1;
    v->n_dims = n;
    for (; n < GGUF_MAX_DIMS; n++)
        v->ne[n] = 1;
    return GGUF_OK;
}

/* Half no of the rows. */
static enum gguf_status view_half(struct gg_convert_view *v, int no,
                                  struct gguf_error *err)
{
    const unsigned d = v->n_dims > 1 ? 1 : 0;
    if (v->ne[d] % 2)
        return gg_convert_refuse_view(
            v,
            "has an odd number of rows, expected an even "
            "one",
            err);
    v->ne[d] /= 2;
    v->part.ne[d] /= 2;
    v->part.first = no ? v->part.ne[d] * v->part.step[d] : 0;
    return GGUF_OK;
}

static enum gguf_status view_half_1(struct gg_convert_view *v,
                                    struct gguf_error *err)
{
    return view_half(v, 0, err);
}

static enum gguf_status view_half_2(struct gg_convert_view *v,
                                    struct gguf_error *err)
{
    return view_half(v, 1, err);
}

static void plus_1(float *x, size_t n)
{
    while (n--)
        x[n] += 1;
}

static void exp_each(float *x, size_t n)
{
    while (n--)
        x[n] = expf(x[n]);
}

static void neg_exp(float *x, size_t n)
{
    while (n--)
        x[n] = -expf(x[n]);
}

static void set_ones(float *x, size_t n)
{
    while (n--)
        x[n] = 1;
}

static void minus_1(float *x, size_t n)
{
    while (n--)
        x[n] -= 1;
}

/* The logarithm whose exponential is want again, among those nearby. */
static float find_log(float want)
{
    const float guess = (float)log((double)want);
    float low = guess, high = guess;
    for (int k = 0; k < 5; k++) {
        if (expf(low) == want)
            return low;
        if (expf(high) == want)
            return high;
        low = nextafterf(low, -INFINITY);
        high = nextafterf(high, INFINITY);
    }
    return guess;
}

static void log_each(float *x, size_t n)
{
    while (n--)
        x[n] = find_log(x[n]);
}

static void log_neg(float *x, size_t n)
{
    while (n--)
        x[n] = find_log(-x[n]);
}

static const char from_halves[] = "rows of heads from halves to pairs";
/* The one that was left out comes before the slowest of two, or last. */
static void restore_one(struct gg_convert_dims *d, unsigned *open)
{
    if (d->n > 2)
        return;
    *open = d->n == 2 ? 2 : 0;
    d->ne[2] = d->ne[1];
    d->ne[1] = 1;
    d->n++;
}

static void restore_halves(struct gg_convert_dims *d, unsigned *open)
{
    *open = d->n > 1;
}

const struct gg_convert_transform gg_convert_rope_q = { .text = from_halves,
                                                        .view = rope_q,
                                                        .pair = GG_PAIR_ROWS,
                                                        .if_permuted = true };
const struct gg_convert_transform gg_convert_rope_k = { .text = from_halves,
                                                        .view = rope_k,
                                                        .pair = GG_PAIR_ROWS,
                                                        .if_permuted = true };
const struct gg_convert_transform gg_convert_plus_1 = { .text = "1 added",
                                                        .change = plus_1,
                                                        .back = minus_1 };
const struct gg_convert_transform gg_convert_squeeze = {
    .text = "dimensions of one left out",
    .view = squeeze_view,
    .shape = restore_one,
    .pair = GG_PAIR_AS_IS
};
const struct gg_convert_transform gg_convert_factor = { .text = "a factor",
                                                        .back = set_ones,
                                                        .is_factor = true };
const struct gg_convert_transform gg_convert_exp = { .text = "exp(x)",
                                                     .view = squeeze_view,
                                                     .change = exp_each,
                                                     .back = log_each };
const struct gg_convert_transform gg_convert_neg_exp = {
    .text = "-exp(x)", .view = squeeze_view, .change = neg_exp, .back = log_neg
};
const struct gg_convert_transform gg_convert_half_1 = {
    .text = "first half of the rows",
    .view = view_half_1,
    .shape = restore_halves,
    .pair = GG_PAIR_ROWS
};
const struct gg_convert_transform gg_convert_half_2 = {
    .text = "second half of the rows",
    .view = view_half_2,
    .shape = restore_halves,
    .pair = GG_PAIR_ROWS
};

/* View of one half of an adapter's pair. Rows of B are permuted as the weight's
 * rows are; A stays as it is. Neither is transposed: PEFT stores both for a
 * weight whose rows are outputs. The pair of an embedding has A transposed
 * (data/lora.h). */
static enum gguf_status view_adapter_half(struct gg_convert_view *v,
                                          struct gguf_error *err)
{
    const struct gg_convert_name *row = v->item->row;
    if (row->axes || row->scale[0] || row->scale_of)
        return gg_convert_refuse_view(
            v,
            "belongs to a weight that is made of several "
            "tensors",
            err);
    const bool is_embedding = !strcmp(row->to, "token_embd");
    if (v->n_dims != 2 ||
        (row->transform && row->transform->pair == GG_PAIR_REFUSED &&
         !is_embedding))
        return gg_convert_refuse_view(
            v, "is not one of the two matrices of a pair", err);
    if (is_embedding)
        return v->item->half == GG_HALF_A ? gg_convert_transpose_view(v, err)
                                          : GGUF_OK;
    return v->item->half == GG_HALF_B && row->transform &&
                   row->transform->pair == GG_PAIR_ROWS
               ? row->transform->view(v, err)
               : GGUF_OK;
}

/* Apply factors other than 1. */
static enum gguf_status apply_scale(struct gg_convert_view *v,
                                    struct gguf_error *err)
{
    const struct gg_convert_name *row = v->item->row;
    const struct gg_hf_config cfg = gg_convert_config(v->c);
    const int64_t layer = v->item->layer;
    for (size_t i = 0, k = 0; i < GG_LEN(row->scale); i++) {
        const double x = row->scale[i]
                             ? gg_hf_config_num(&cfg, row->scale[i], layer)
                         : row->scale_of && !i ? row->scale_of(&cfg, layer)
                                               : NAN;
        if (isnan(x) || x == 1)
            continue;
        if (!isfinite((float)x) || (float)x == 0)
            return gg_convert_refuse_view(
                v, "has an impossible multiplier in config.json", err);
        v->part.scale[k++] = (float)x;
    }
    return GGUF_OK;
}

const char *gg_convert_transform_text(struct gguf_convert *c,
                                      const struct gg_convert_item *item)
{
    const struct gg_convert_name *row = item->row;
    return row->axes        ? gg_axes_describe(c, row->axes, item->layer)
           : row->transform ? row->transform->text
                            : "as it is";
}

/* Refuse a shape that the row's axes do not fit. */
static enum gguf_status refuse_shape(const struct gg_convert_view *v,
                                     struct gguf_error *err)
{
    char shape[200] = "", axes[GG_AXES_TEXT], why[420];
    size_t n = 0;
    for (unsigned d = v->from->n_dims; d-- > 0;)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRId64,
                              n ? " x " : "", v->from->ne[d]);
    gg_axes_print_from(v->c, v->item->row->axes, v->item->layer, axes);
    snprintf(why, sizeof why,
             "has another shape than config.json says: %s, expected %s",
             n ? shape : "a number", axes);
    return gg_convert_refuse_view(v, why, err);
}

enum gguf_status gg_convert_make_view(struct gg_convert_view *v,
                                      struct gguf_error *err)
{
    const struct gg_convert_transform *how = v->item->row->transform;
    char why[64];
    v->part = (struct gg_composed_part){ .from = v->item->from };
    v->rest = (struct gg_composed_part){ .n_dims = 0 };
    v->times = v->n_zeros = 0;
    v->zeros_first = false;
    for (size_t d = 0; d < GGUF_MAX_DIMS; d++)
        v->ne[d] = 1;
    if (!v->from->n_elements)
        return gg_convert_refuse_view(v, "has no elements", err);
    if (v->from->n_dims > GG_COMPOSED_DIMS) {
        snprintf(why, sizeof why, "has %u dimensions, limit is %d",
                 v->from->n_dims, (int)GG_COMPOSED_DIMS);
        return gg_convert_refuse_view(v, why, err);
    }
    view_all(v);
    if (v->item->half != GG_HALF_NONE)
        return view_adapter_half(v, err);
    GG_TRY(apply_scale(v, err));
    if (!v->item->row->axes)
        return how && how->view ? how->view(v, err) : GGUF_OK;
    return gg_convert_apply_axes(v, v->item->row->axes) ? GGUF_OK
                                                        : refuse_shape(v, err);
}
