/* SPDX-License-Identifier: MIT */
/* compute_matmul.c - matrix products: tensors to plain arguments */
#include "config.h"
#include "cpu/matmul.h"
#include "cpu/compute_table.h"
#include "cpu/weight_cache.h"
#include "cpu/row.h"

/* Rows of blocks side by side of a type that decodes. */
static bool is_weight(const struct gguf_tensor *t, const struct gg_kern *kern)
{
    return gg_row_can_load(kern, t) && gguf_tensor_has_contiguous_rows(t);
}

bool gg_cpu_matmul_supports(const struct gguf_tensor *t,
                            const struct gg_kern *kern)
{
    return is_weight(t->src[0], kern) && gg_row_is_plain(t->src[1]) &&
           gg_row_is_plain(t);
}

/* Are all columns of b, over its upper dimensions, one stride apart, and
 * multiplied by the same matrix? */
static bool is_flat(const struct gguf_tensor *t)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    return a->ne[2] == 1 && a->ne[3] == 1 &&
           gguf_tensor_is_contiguous_from(b, 1) &&
           gguf_tensor_is_contiguous_from(t, 1);
}

static struct gg_cpu_gemm_args gemm_args(const struct gguf_tensor *t,
                                         const struct gg_kern *kern)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    struct gg_cpu_gemm_args g = {
        .kern = kern,
        .form = gg_kern_gemm_form_of(kern, gg_dtype_index(a->dtype)),
        .dtype_index = gg_dtype_index(a->dtype),
        .w = a->data,
        .w_stride = (size_t)a->nb[1],
        .x = b->data,
        .x_stride = (size_t)b->nb[1],
        .y = t->data,
        .y_stride = (size_t)t->nb[1],
        .m = a->ne[1],
        .n = b->ne[1],
        .k = a->ne[0],
    };
    if (is_flat(t)) {
        g.n = gguf_tensor_n_rows(b);
        if (b->ne[1] == 1) { /* columns lie in the upper dimensions */
            int d = b->ne[2] > 1 ? 2 : 3;
            g.x_stride = (size_t)b->nb[d];
            g.y_stride = (size_t)t->nb[d];
        }
    }
    return g;
}

/* Matrices lie in two dimensions at most. */
static bool matmul_product(const struct gguf_tensor *t,
                           const struct gg_kern *kern,
                           struct gg_cpu_gemm_args *a)
{
    *a = gemm_args(t, kern);
    return t->src[0]->ne[3] == 1;
}

static size_t matmul_work(const struct gguf_tensor *t, unsigned nth,
                          const struct gg_kern *kern)
{
    struct gg_cpu_gemm_args g = gemm_args(t, kern);
    return gg_cpu_gemm_work_size(&g, nth);
}

static void compute_matmul(struct gguf_tensor *t,
                           const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    struct gg_cpu_gemm_args g = gemm_args(t, task->kern);
    if (gguf_tensor_is_empty(t))
        return;
    if (is_flat(t)) {
        g.kept = gg_cpu_panels_matrix(task->panels, 0);
        g.next = task->next;
        gg_cpu_gemm_run(&g, task->ith, task->nth, task->work, task->barrier);
        return;
    }
    bool first = true;
    for (int64_t i3 = 0; i3 < b->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < b->ne[2]; i2++) {
            if (!first && task->nth > 1)
                gg_barrier_wait(task->barrier);
            first = false;
            const int64_t m2 = i2 / (b->ne[2] / a->ne[2]);
            g.w = gg_row_at(a, 0, m2, i3 / (b->ne[3] / a->ne[3]));
            g.kept = gg_cpu_panels_matrix(task->panels, m2);
            g.x = gg_row_at(b, 0, i2, i3);
            g.y = gg_row_at(t, 0, i2, i3);
            gg_cpu_gemm_run(&g, task->ith, task->nth, task->work,
                            task->barrier);
        }
    }
}

GG_CPU_PRODUCT(matmul, compute_matmul, matmul_work, gg_cpu_matmul_supports,
               matmul_product);
