/* SPDX-License-Identifier: MIT */
/* projected.c - a tensor whose rows are those of another, passed through two
 * layers */
#include "config.h"
#include "data/projected.h"

#include "base/compiler.h"
#include "base/str.h"
#include "kern/cpu_features.h"
#include "kern/vec.h"

enum { WORK = 8192 }; /* floats of the rows that are computed at once */

struct projected {
    struct gg_data_rows rows;
    uint64_t n_in, n_mid, n_out;
    const float *w1, *b1, *w2, *b2; /* row-major */
    struct gg_vec_kern vec;
};

/* Compute columns col to col + n of n_rows rows, n apart in y. */
static void compute_rows(const struct projected *p, uint64_t row,
                         uint64_t n_rows, uint64_t col, uint64_t n, float *y)
{
    float x[WORK], mid[WORK];
    gg_data_read(&p->rows, row * p->n_in, n_rows * p->n_in, x);
    for (uint64_t k = 0; k < p->n_mid; k++)
        for (uint64_t i = 0; i < n_rows; i++)
            mid[i * p->n_mid + k] =
                p->vec.dot(p->w1 + k * p->n_in, x + i * p->n_in,
                           (size_t)p->n_in) +
                p->b1[k];
    p->vec.silu(mid, mid, (size_t)(n_rows * p->n_mid));
    for (uint64_t k = 0; k < n; k++)
        for (uint64_t i = 0; i < n_rows; i++)
            y[i * n + k] = p->vec.dot(p->w2 + (col + k) * p->n_mid,
                                      mid + i * p->n_mid, (size_t)p->n_mid) +
                           p->b2[col + k];
}

static void read_projected(const struct gg_data_rows *r, uint64_t first,
                           uint64_t n, float *dst)
{
    const struct projected *p = r->source;
    const uint64_t most = WORK / GG_MAX(p->n_in, p->n_mid);
    while (n) {
        const uint64_t col = first % p->n_out;
        const uint64_t width = GG_MIN(n, p->n_out - col);
        const uint64_t n_rows = width < p->n_out ? 1 : GG_MIN(most, n / width);
        compute_rows(p, first / p->n_out, n_rows, col, width, dst);
        dst += n_rows * width;
        first += n_rows * width;
        n -= n_rows * width;
    }
}

/* Read a layer into the list's arena. */
static enum gguf_status read_layer(struct gg_safetensors *s, uint32_t no,
                                   const float **out, struct gguf_error *err)
{
    const uint64_t n = s->tensor[no].n_elements;
    struct gg_data_rows rows;
    GG_TRY(gg_data_rows(&s->list, no, &rows, err));
    float *x = n > SIZE_MAX / sizeof *x
                   ? NULL
                   : gg_mem_arena_alloc(&s->arena, (size_t)n * sizeof *x);
    if (!x)
        return gg_error_set_nomem(err, (size_t)n * sizeof *x);
    GG_TRY(gg_data_hold(&s->list, no, 0, n, err));
    gg_data_read(&rows, 0, n, x);
    gg_data_release(&s->list, no, 0, n);
    *out = x;
    return GGUF_OK;
}

static bool has_shape(const struct gg_safetensors *s, uint32_t no,
                      unsigned n_dims, int64_t ne0, int64_t ne1)
{
    const struct gg_safetensors_tensor *t = &s->tensor[no];
    return t->n_dims == n_dims && t->ne[0] == ne0 && t->ne[1] == ne1;
}

static enum gguf_status check_shapes(const struct gg_safetensors *s,
                                     struct gguf_str name,
                                     const struct gg_projected_from *from,
                                     struct gguf_error *err)
{
    const struct gg_safetensors_tensor *x = &s->tensor[from->rows];
    const int64_t n_mid = s->tensor[from->w1].ne[1];
    const int64_t n_out = s->tensor[from->w2].ne[1];
    struct gg_str_esc e;
    if (x->n_dims != 2 || !x->n_elements || n_mid < 1 || n_out < 1 ||
        !has_shape(s, from->w1, 2, x->ne[0], n_mid) ||
        !has_shape(s, from->b1, 1, n_mid, 1) ||
        !has_shape(s, from->w2, 2, n_mid, n_out) ||
        !has_shape(s, from->b2, 1, n_out, 1))
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s': the layers that it passes through "
                            "do not fit it",
                            gg_str_esc(&e, x->name));
    if (x->ne[0] > WORK || n_mid > WORK)
        return gg_error_set(
            err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
            "tensor '%s': layers of %" PRId64 " elements, limit is %d",
            gg_str_esc(&e, name), GG_MAX(x->ne[0], n_mid), WORK);
    return GGUF_OK;
}

enum gguf_status gg_projected_add(struct gg_safetensors *s,
                                  struct gguf_str name,
                                  const struct gg_projected_from *from,
                                  struct gguf_error *err)
{
    GG_TRY(check_shapes(s, name, from, err));
    struct projected *p = gg_mem_arena_alloc(&s->arena, sizeof *p);
    struct gg_safetensors_made *made =
        gg_mem_arena_alloc(&s->arena, sizeof *made);
    if (!p || !made)
        return gg_error_set_nomem(err, sizeof *p);
    const struct gg_safetensors_tensor *x = &s->tensor[from->rows];
    const int64_t ne[2] = { s->tensor[from->w2].ne[1], x->ne[1] };
    *p = (struct projected){ .n_in = (uint64_t)x->ne[0],
                             .n_mid = (uint64_t)s->tensor[from->w1].ne[1],
                             .n_out = (uint64_t)ne[0] };
    gg_vec_kern_init(&p->vec, gg_kern_cpu_detect());
    GG_TRY(gg_data_rows(&s->list, from->rows, &p->rows, err));
    GG_TRY(read_layer(s, from->w1, &p->w1, err));
    GG_TRY(read_layer(s, from->b1, &p->b1, err));
    GG_TRY(read_layer(s, from->w2, &p->w2, err));
    GG_TRY(read_layer(s, from->b2, &p->b2, err));
    *made = (struct gg_safetensors_made){
        .rows = { .read = read_projected, .source = p },
        .from = from->rows,
        .width_from = p->n_in,
        .width = p->n_out,
    };
    GG_TRY(gg_safetensors_add_shape(s, name, 2, ne, err));
    struct gg_safetensors_tensor *t = &s->tensor[s->n_tensors - 1];
    t->type = s->tensor[from->rows].type;
    t->size = t->n_elements * t->type->bits / 8;
    t->made = made;
    return GGUF_OK;
}
