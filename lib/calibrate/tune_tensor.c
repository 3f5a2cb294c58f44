/* SPDX-License-Identifier: MIT */
/* tune_tensor.c - gradients and steps of a tensor: see tune_tensor.h */
#include "config.h"
#include "calibrate/tune_tensor.h"

#include "base/ckd.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "dtype/f16.h"
#include "gguf/tensor.h"

#include <math.h>
#include <string.h>

enum {
    PANEL = 1 << 20, /* elements of dL/dW that are computed at a time */
    LEAST_ROWS = 16  /* rows of a panel, at least */
};

/* Adam: decay of the moments, and a number that prevents division by 0. */
static const double decay_first = 0.9, decay_second = 0.99, least = 1e-12;

/* ---- the tensor ---- */

static bool is_f16_scale(const struct gg_form *f)
{
    return !f->has_d && f->scale_step > 1;
}

static bool is_f16_min(const struct gg_form *f)
{
    return f->has_min && !f->has_dmin && f->min_step > 1;
}

bool gg_tune_tensor_has_scales(const struct gg_form *f)
{
    return f->has_d || (is_f16_scale(f) && gg_form_n_subs(f) == 1);
}

static double measure_rms(const struct gguf_tensor *w, size_t n)
{
    const float *x = w->data;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum / (double)GG_MAX(n, (size_t)1));
}

static size_t n_parameters(const struct gg_tune_tensor *t)
{
    return t->n_blocks * t->per_block;
}

enum gguf_status
gg_tune_tensor_init(struct gg_tune_tensor *t, const struct gguf_tensor *weight,
                    const struct gg_form *form, const uint8_t *from,
                    const struct gguf_allocator *a, struct gguf_error *err)
{
    const size_t n = (size_t)gguf_tensor_n_elements(weight);
    *t = (struct gg_tune_tensor){ .allocator = a,
                                  .weight = weight,
                                  .form = form,
                                  .from = from,
                                  .size = gguf_tensor_size(weight),
                                  .n_blocks = form ? n / form->block_len : n,
                                  .per_block = 1 };
    float **list[] = { &t->value, &t->gradient, &t->first, &t->second };
    if (form && (form->has_dmin || is_f16_min(form)))
        t->per_block = 2;
    for (size_t i = 0; i < GG_LEN(list); i++) {
        *list[i] = gg_mem_alloc_zero(a, n_parameters(t) + 1, sizeof(float));
        if (!*list[i])
            return gg_error_set_nomem(err, n_parameters(t) * sizeof(float));
    }
    if (!form) {
        memcpy(t->value, weight->data, n * sizeof *t->value);
        t->rms = measure_rms(weight, n);
    }
    return GGUF_OK;
}

void gg_tune_tensor_fini(struct gg_tune_tensor *t)
{
    gg_mem_free(t->allocator, t->value);
    gg_mem_free(t->allocator, t->gradient);
    gg_mem_free(t->allocator, t->first);
    gg_mem_free(t->allocator, t->second);
}

/* ---- gradients of blocks ---- */

/* Add s G and -m G of a block; gradient: dL/dW of its elements. */
static void add_block(struct gg_tune_tensor *t, size_t k,
                      const float *gradient)
{
    const struct gg_form *f = t->form;
    struct gg_form_block b;
    float x[GG_FORM_MAX_LEN];
    double scale = 0, min = 0;
    f->unpack(&b, (const uint8_t *)t->weight->data + k * f->block_size);
    if (!gg_form_is_finite(f, &b))
        return;
    gg_form_values(f, &b, x);
    for (unsigned e = 0, s = 0; e < f->block_len; s++) {
        const double m = (double)gg_form_min(f, &b, s);
        for (unsigned end = e + f->sub_len; e < end; e++) {
            scale += ((double)x[e] + m) * (double)gradient[e];
            min -= m * (double)gradient[e];
        }
    }
    float *to = t->gradient + k * t->per_block;
    to[0] += (float)scale;
    if (t->per_block == 2)
        to[1] += (float)min;
}

/* Rows of dL/dW of a weight, from a row on. */
struct panel {
    struct gg_tune_tensor *t;
    const float *gradient; /* [n_rows][ne[0]] */
    size_t first, n_rows;
};

static void add_rows(void *user, unsigned ith, unsigned nth)
{
    const struct panel *p = user;
    const struct gg_form *f = p->t->form;
    const size_t n = (size_t)p->t->weight->ne[0], per_row = n / f->block_len;
    for (size_t i = ith; i < p->n_rows; i += nth)
        for (size_t k = 0; k < per_row; k++)
            add_block(p->t, (p->first + i) * per_row + k,
                      p->gradient + i * n + k * f->block_len);
}

/* n columns of gradients g, and their n inputs x. */
struct columns {
    const float *g, *x;
    size_t g_stride, x_stride, n;
};

/* Add the gradients of n_rows rows, from row `first` of all matrices on. */
static enum gguf_status add_columns(struct gg_tune_tensor *t,
                                    struct gg_linalg *la,
                                    const struct columns *c, size_t first,
                                    size_t n_rows, struct gguf_error *err)
{
    const size_t n = (size_t)t->weight->ne[0];
    const size_t most = GG_MIN(n_rows, GG_MAX(PANEL / n, (size_t)LEAST_ROWS));
    float *sum = gg_mem_alloc(t->allocator, most * n * sizeof *sum);
    enum gguf_status st =
        sum ? GGUF_OK : gg_error_set_nomem(err, most * n * sizeof *sum);
    for (size_t i = 0, rows; st == GGUF_OK && i < n_rows; i += rows) {
        rows = GG_MIN(most, n_rows - i);
        memset(sum, 0, rows * n * sizeof *sum);
        st = gg_linalg_add_products(la, sum, n, c->g + i, c->g_stride, rows,
                                    c->x, c->x_stride, n, c->n, false, err);
        struct panel p = { t, sum, first + i, rows };
        if (st == GGUF_OK)
            gguf_pool_run(la->pool,
                          (struct gguf_pool_callback){ add_rows, &p });
    }
    gg_mem_free(t->allocator, sum);
    return st;
}

/* ---- kinds of products ---- */

/* Row i of a tensor's first dimension. */
static const float *row_of(const struct gguf_tensor *x, size_t i)
{
    const size_t n1 = (size_t)x->ne[1], n2 = (size_t)x->ne[2];
    return (const float *)(const void *)((const char *)x->data +
                                         i % n1 * (size_t)x->nb[1] +
                                         i / n1 % n2 * (size_t)x->nb[2] +
                                         i / n1 / n2 * (size_t)x->nb[3]);
}

static bool has_equal_strides(const struct gguf_tensor *x)
{
    return (x->ne[2] == 1 || x->nb[2] == x->ne[1] * x->nb[1]) &&
           (x->ne[3] == 1 || x->nb[3] == x->ne[2] * x->nb[2]);
}

/* Copies of columns and their inputs. */
struct gathered {
    float *g, *x;
    size_t n;
};

static void copy_column(struct gathered *to,
                        const struct gg_backward_gradient *g, size_t column,
                        size_t input)
{
    const size_t n = (size_t)g->weight->ne[0];
    memcpy(to->g + to->n * g->n, g->g + column * g->n, g->n * sizeof *to->g);
    memcpy(to->x + to->n * n, row_of(g->x, input), n * sizeof *to->x);
    to->n++;
}

static int32_t id_of(const struct gguf_tensor *ids, size_t slot, size_t token)
{
    int32_t id;
    memcpy(&id,
           (const char *)ids->data + slot * (size_t)ids->nb[0] +
               token * (size_t)ids->nb[1],
           sizeof id);
    return id;
}

/* Add the columns of each selected matrix. Column t n_used + u belongs to token
 * t. Its input is row u of the token's inputs, or their only row. */
static enum gguf_status add_selected(struct gg_tune_tensor *t,
                                     struct gg_linalg *la,
                                     const struct gg_backward_gradient *g,
                                     struct gathered *to,
                                     struct gguf_error *err)
{
    const size_t n = (size_t)g->weight->ne[0], m = (size_t)g->weight->ne[1];
    const size_t n_used = (size_t)g->ids->ne[0];
    const size_t n_inputs = (size_t)g->x->ne[1];
    for (int64_t e = 0; e < g->weight->ne[2]; e++) {
        to->n = 0;
        for (size_t i = 0; i < g->n_columns; i++)
            if (id_of(g->ids, i % n_used, i / n_used) == e)
                copy_column(to, g, i,
                            i / n_used * n_inputs + i % n_used % n_inputs);
        const struct columns c = { to->g, to->x, g->n, n, to->n };
        if (to->n)
            GG_TRY(add_columns(t, la, &c, (size_t)e * m, m, err));
    }
    return GGUF_OK;
}

/* Add columns whose inputs do not follow each other at one distance. */
static enum gguf_status add_scattered(struct gg_tune_tensor *t,
                                      struct gg_linalg *la,
                                      const struct gg_backward_gradient *g,
                                      struct gathered *to,
                                      struct gguf_error *err)
{
    for (size_t i = 0; i < g->n_columns; i++)
        copy_column(to, g, i, i);
    const struct columns c = { to->g, to->x, g->n, (size_t)g->weight->ne[0],
                               to->n };
    return add_columns(t, la, &c, g->first_row, g->n, err);
}

static enum gguf_status add_copied(struct gg_tune_tensor *t,
                                   struct gg_linalg *la,
                                   const struct gg_backward_gradient *g,
                                   struct gguf_error *err)
{
    const size_t n = (size_t)g->weight->ne[0];
    struct gathered to = { .g = gg_mem_alloc_zero(t->allocator, g->n_columns,
                                                  g->n * sizeof(float)),
                           .x = gg_mem_alloc_zero(t->allocator, g->n_columns,
                                                  n * sizeof(float)) };
    enum gguf_status st =
        to.g && to.x
            ? (g->has_ids ? add_selected : add_scattered)(t, la, g, &to, err)
            : gg_error_set_nomem(err, g->n_columns * n * sizeof(float));
    gg_mem_free(t->allocator, to.g);
    gg_mem_free(t->allocator, to.x);
    return st;
}

/* Add the gradients of rows that were looked up. */
static void add_lookups(struct gg_tune_tensor *t,
                        const struct gg_backward_gradient *g)
{
    const size_t per_row = g->n / t->form->block_len;
    const struct gguf_tensor *ids = g->x;
    for (size_t i = 0; i < g->n_columns; i++) {
        const int32_t id =
            id_of(ids, i % (size_t)ids->ne[0], i / (size_t)ids->ne[0]);
        for (size_t k = 0; k < per_row; k++)
            add_block(t, (size_t)id * per_row + k,
                      g->g + i * g->n + k * t->form->block_len);
    }
}

static void add_vector(struct gg_tune_tensor *t,
                       const struct gg_backward_gradient *g)
{
    for (size_t i = 0; i < t->n_blocks; i++)
        t->gradient[i] += g->g[i];
}

/* Do inputs and gradients have the shapes that are read here? */
static bool is_known(const struct gg_tune_tensor *t,
                     const struct gg_backward_gradient *g)
{
    const struct gguf_tensor *w = t->weight;
    if (!t->form || g->is_vector)
        return !t->form && g->is_vector && g->n == t->n_blocks;
    if (!g->x)
        return false;
    if (g->is_lookup)
        return w->ne[2] * w->ne[3] == 1 && g->x->ne[2] * g->x->ne[3] == 1 &&
               g->n == (size_t)w->ne[0];
    return g->x->dtype == GGUF_DTYPE_F32 && g->x->nb[0] == 4 &&
           g->x->ne[0] == w->ne[0] && w->ne[3] == 1 &&
           (!g->has_ids ||
            (g->x->ne[3] == 1 && g->ids->ne[2] * g->ids->ne[3] == 1));
}

enum gguf_status gg_tune_tensor_add(struct gg_tune_tensor *t,
                                    struct gg_linalg *la,
                                    const struct gg_backward_gradient *g,
                                    struct gguf_error *err)
{
    if (!is_known(t, g)) {
        t->bad = true;
        return GGUF_OK;
    }
    if (g->is_vector) {
        add_vector(t, g);
        return GGUF_OK;
    }
    if (g->is_lookup) {
        add_lookups(t, g);
        return GGUF_OK;
    }
    if (g->has_ids || !has_equal_strides(g->x))
        return add_copied(t, la, g, err);
    const struct columns c = { g->g, g->x->data, g->n,
                               (size_t)g->x->nb[1] / sizeof(float),
                               g->n_columns };
    return add_columns(t, la, &c, g->first_row, g->n, err);
}

/* ---- steps ---- */

/* v exp(change) as an F16 number; v itself if that is 0 or infinite. */
static float scale_number(float v, float change)
{
    const float x = gg_dtype_f16_to_f32(
        gg_dtype_f32_to_f16((float)((double)v * exp((double)change))));
    return isfinite(x) && x != 0 ? x : v;
}

/* Write block k with its present parameters. */
static void update_block(struct gg_tune_tensor *t, size_t k)
{
    const struct gg_form *f = t->form;
    const float *value = t->value + k * t->per_block;
    struct gg_form_block b;
    f->unpack(&b, t->from + k * f->block_size);
    if (!gg_form_is_finite(f, &b))
        return;
    if (f->has_d)
        b.d = scale_number(b.d, value[0]);
    else
        b.scale[0] = gg_form_scale_code(
            f, scale_number(f->scale_value(b.scale[0]), value[0]));
    if (f->has_dmin)
        b.dmin = scale_number(b.dmin, value[1]);
    else if (t->per_block == 2)
        b.min[0] = gg_form_min_code(
            f, scale_number(f->min_value(b.min[0]), value[1]));
    f->pack((uint8_t *)t->weight->data + k * f->block_size, &b);
}

struct step {
    struct gg_tune_tensor *t;
    double rate;
    double correct[2]; /* 1 - decay^n: the moments begin at 0 */
};

static void step_share(void *user, unsigned ith, unsigned nth)
{
    const struct step *s = user;
    struct gg_tune_tensor *t = s->t;
    for (size_t k = ith; k < t->n_blocks; k += nth) {
        for (size_t i = k * t->per_block; i < (k + 1) * t->per_block; i++) {
            const double g = (double)t->gradient[i];
            const double a =
                decay_first * (double)t->first[i] + (1 - decay_first) * g;
            const double b = decay_second * (double)t->second[i] +
                             (1 - decay_second) * g * g;
            t->first[i] = (float)a;
            t->second[i] = (float)b;
            t->value[i] -= (float)(s->rate * (a / s->correct[0]) /
                                   (sqrt(b / s->correct[1]) + least));
            t->gradient[i] = 0;
        }
        if (t->form)
            update_block(t, k);
        else
            ((float *)t->weight->data)[k] = t->value[k];
    }
}

void gg_tune_tensor_step(struct gg_tune_tensor *t, struct gguf_pool *pool,
                         double rate)
{
    const double n = (double)++t->n_steps;
    float sum = 0;
    for (size_t i = 0; i < n_parameters(t); i++)
        sum += t->gradient[i] * 0.0f; /* NaN if it is not finite */
    t->bad |= sum != 0;
    if (t->bad)
        return;
    struct step s = { t,
                      t->form ? rate : rate * t->rms,
                      { 1 - pow(decay_first, n), 1 - pow(decay_second, n) } };
    gguf_pool_run(pool, (struct gguf_pool_callback){ step_share, &s });
}
