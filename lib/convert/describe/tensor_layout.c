/* SPDX-License-Identifier: MIT */
/* tensor_layout.c - how the numbers of a tensor lie in what is made of it
 *
 * Where a model turns pairs of neighbours and the checkpoint the first half of
 * each head against the second (as transformers' rotate_half does), row
 * h d + 2 j + i of the file is row h d + i d/2 + j of the checkpoint, for heads
 * of d rows, i of 0 and 1.
 */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#include "base/ckd.h"
#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

static enum gguf_status refuse_view(const struct gg_convert_view *v,
                                    const char *why, struct gguf_error *err)
{
    struct gg_str_esc e;
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET, "tensor '%s' %s",
                        gg_str_esc(&e, v->from->name), why);
}

/* As it is. */
static void see_all(struct gg_convert_view *v)
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

static enum gguf_status see_turned(struct gg_convert_view *v,
                                   const char *names, struct gguf_error *err)
{
    int64_t heads,
        rows = v->from->n_dims > 1 ? v->from->ne[1] : v->from->ne[0];
    const uint64_t row = v->from->n_dims > 1 ? (uint64_t)v->from->ne[0] : 1;
    if (!v->c->arch->turned)
        return GGUF_OK;
    if (v->from->n_dims > 2 || !gg_convert_count(v->c, names, &heads) ||
        rows % (2 * heads))
        return refuse_view(v, "has no rows of whole heads", err);
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
    return see_turned(v, "num_attention_heads n_head", err);
}

static enum gguf_status rope_k(struct gg_convert_view *v,
                               struct gguf_error *err)
{
    return see_turned(v, "num_key_value_heads num_attention_heads n_head",
                      err);
}

static enum gguf_status transpose_view(struct gg_convert_view *v,
                                       struct gguf_error *err)
{
    if (v->n_dims == 1) /* its bias */
        return GGUF_OK;
    if (v->n_dims != 2)
        return refuse_view(v, "is not a matrix", err);
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

/* What turns against the usual direction turns with it when the second half of
 * each head is negated. */
static enum gguf_status neg_half(struct gg_convert_view *v,
                                 struct gguf_error *err)
{
    int64_t head;
    if (v->n_dims != 2 || !gg_convert_count(v->c, "head_dim", &head) ||
        head % 2 || v->ne[1] % head)
        return refuse_view(v, "has no rows of whole heads", err);
    v->part.run = (uint64_t)(head / 2) * (uint64_t)v->ne[0];
    return GGUF_OK;
}

/* Parts are made for each, however little a head holds. */
#define MOST_HEADS 4096

/* Row 2 j + i of what turns of a head becomes row j of its half i; what does
 * not turn comes after it. */
static enum gguf_status view_halves(struct gg_convert_view *v,
                                    struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(v->c);
    const double all = gg_convert_head_dim(&cfg);
    const double turn = gg_convert_rotary_half(&cfg);
    const unsigned d = v->n_dims - 1;
    const uint64_t row = d ? (uint64_t)v->ne[0] : 1, rows = (uint64_t)v->ne[d];
    if (d > 1 || !(turn >= 2) || turn > all || all > (double)rows ||
        fmod(turn, 2) != 0 || rows % (uint64_t)all)
        return refuse_view(v, "has no rows of whole heads", err);
    const uint64_t head = (uint64_t)all * row, half = (uint64_t)turn / 2;
    v->part.n_dims = 3;
    v->part.ne[0] = row;
    v->part.ne[1] = half;
    v->part.step[1] = 2 * row;
    v->part.ne[2] = 2;
    v->part.step[2] = row;
    v->rest = (struct gg_composed_part){ .from = v->part.from,
                                         .first = 2 * half * row,
                                         .n_dims = 2 * half * row < head,
                                         .ne = { head - 2 * half * row },
                                         .step = { 1 } };
    v->times = rows / (uint64_t)all;
    v->every = head;
    if (v->times > MOST_HEADS)
        return refuse_view(v, "has too many heads", err);
    return GGUF_OK;
}

/* Half no of the rows. */
static enum gguf_status view_half(struct gg_convert_view *v, int no,
                                  struct gguf_error *err)
{
    const unsigned d = v->n_dims > 1 ? 1 : 0;
    if (v->ne[d] % 2)
        return refuse_view(v, "has an odd number of rows: it has no halves",
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

/* Tokens that have no row: those of pictures and sounds, whose vectors come
 * from elsewhere. */
static enum gguf_status fill_rows(struct gg_convert_view *v,
                                  struct gguf_error *err)
{
    int64_t rows;
    if (v->n_dims != 2)
        return refuse_view(v, "is no matrix", err);
    if (!gg_convert_count(v->c, "vocab_size", &rows) || rows <= v->ne[1])
        return GGUF_OK;
    if (rows / 2 - GG_CONVERT_MORE_TOKENS > v->ne[1] ||
        gg_ckd_mul(&v->n_zeros, (uint64_t)(rows - v->ne[1]),
                   (uint64_t)v->ne[0]))
        return refuse_view(v, "has more rows than can be, by vocab_size", err);
    v->ne[1] = rows;
    return GGUF_OK;
}

/* softmax(x, 0) is the sigmoid of x. */
static enum gguf_status pair_row(struct gg_convert_view *v,
                                 struct gguf_error *err)
{
    if (v->n_dims != 2)
        return refuse_view(v, "is no matrix", err);
    if (v->ne[1] == 1) {
        v->n_zeros = (uint64_t)v->ne[0];
        v->ne[1] = 2;
    }
    return GGUF_OK;
}

static enum gguf_status is_index(struct gg_convert_view *v,
                                 struct gguf_error *err)
{
    return v->from->type /* one is known */
               ? gg_safetensors_index(v->c->folder.weights, v->item->from, err)
               : GGUF_OK;
}

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
        return refuse_view(v, "has numbers that are not finite", err);
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

static void plus_1(float *x, size_t n)
{
    while (n--)
        x[n] += 1;
}

static void plus_5th(float *x, size_t n)
{
    while (n--)
        x[n] += 0.2f;
}

static void plus_11th(float *x, size_t n)
{
    while (n--)
        x[n] += 0.0894427191f;
}

static void neg_exp(float *x, size_t n)
{
    while (n--)
        x[n] = -expf(x[n]);
}

static const struct {
    const char *text;
    enum gguf_status (*see)(struct gg_convert_view *v, struct gguf_error *err);
    gg_composed_fn *change;
} hows[GG_N_HOWS] = {
    [GG_HOW_AS_IS] = { "as it is", NULL, NULL },
    [GG_HOW_ROPE_Q] = { "rows of heads from halves to pairs", rope_q, NULL },
    [GG_HOW_ROPE_K] = { "rows of heads from halves to pairs", rope_k, NULL },
    [GG_HOW_PLUS_1] = { "1 added", NULL, plus_1 },
    [GG_HOW_TURN] = { "transposed", transpose_view, NULL },
    [GG_HOW_SQUEEZE] = { "dimensions of one left out", squeeze_view, NULL },
    [GG_HOW_NEG_EXP] = { "-exp(x)", squeeze_view, neg_exp },
    [GG_HOW_HALF_1] = { "first half of the rows", view_half_1, NULL },
    [GG_HOW_HALF_2] = { "second half of the rows", view_half_2, NULL },
    [GG_HOW_PLUS_5TH] = { "1/5 added", NULL, plus_5th },
    [GG_HOW_PLUS_11TH] = { "1/5^1.5 added", NULL, plus_11th },
    [GG_HOW_NEG_HALF] = { "second halves of heads negated", neg_half, NULL },
    [GG_HOW_INDEX] = { "whole numbers of 32 bits", is_index, NULL },
    [GG_HOW_TERNARY] = { "-1, 0 or 1 times their mean magnitude",
                         scale_ternary, round_3 },
    [GG_HOW_HALVES] = { "rows of heads from pairs to halves", view_halves,
                        NULL },
    [GG_HOW_PAIR] = { "a row of zeros after a single one", pair_row, NULL },
    [GG_HOW_FILL] = { "rows of zeros up to vocab_size", fill_rows, NULL },
};

/* A weight's pair: rows of B go where the weight's do. Of A nothing changes,
 * nor is anything transposed: PEFT has both as of a weight whose rows are
 * outputs. What is looked up has A transposed (data/lora.h). */
static enum gguf_status see_half(struct gg_convert_view *v,
                                 struct gguf_error *err)
{
    const struct gg_convert_name *row = v->item->row;
    if (row->axes || row->scale[0] || row->scale_of)
        return refuse_view(v, "is of a weight that is made of more than one",
                           err);
    if (v->n_dims != 2 || row->how == GG_HOW_PLUS_1 ||
        row->how == GG_HOW_NEG_EXP || row->how == GG_HOW_NEG_HALF ||
        row->how == GG_HOW_TERNARY || row->how == GG_HOW_INDEX ||
        row->how == GG_HOW_PAIR ||
        (row->how == GG_HOW_FILL && strcmp(row->to, "token_embd") != 0))
        return refuse_view(v, "is no half of a matrix's pair", err);
    if (!strcmp(row->to, "token_embd"))
        return v->item->half == GG_HALF_A ? transpose_view(v, err) : GGUF_OK;
    if (v->item->half == GG_HALF_A || row->how == GG_HOW_TURN ||
        row->how == GG_HOW_SQUEEZE || !hows[row->how].see)
        return GGUF_OK;
    return hows[row->how].see(v, err);
}

/* Factors; 1 is none. */
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
            return refuse_view(
                v, "has an impossible multiplier in config.json", err);
        v->part.scale[k++] = (float)x;
    }
    return GGUF_OK;
}

const char *gg_convert_how_text(const struct gg_convert_name *row)
{
    return row->axes ? row->axes : hows[row->how].text;
}

gg_composed_fn *gg_convert_change(uint8_t how)
{
    return hows[how].change;
}

enum gguf_status gg_convert_see(struct gg_convert_view *v,
                                struct gguf_error *err)
{
    const uint8_t how = v->item->row->how;
    v->part = (struct gg_composed_part){ .from = v->item->from };
    v->rest = (struct gg_composed_part){ .n_dims = 0 };
    v->times = v->n_zeros = 0;
    for (size_t d = 0; d < GGUF_MAX_DIMS; d++)
        v->ne[d] = 1;
    if (v->from->n_dims > GG_COMPOSED_DIMS || !v->from->n_elements)
        return refuse_view(v,
                           v->from->n_elements ? "has too many dimensions"
                                               : "has no elements",
                           err);
    see_all(v);
    if (v->item->half != GG_HALF_NONE)
        return see_half(v, err);
    GG_TRY(apply_scale(v, err));
    if (!v->item->row->axes)
        return hows[how].see ? hows[how].see(v, err) : GGUF_OK;
    return gg_convert_axes(v, v->item->row->axes)
               ? GGUF_OK
               : refuse_view(v, "has another shape than config.json says",
                             err);
}
