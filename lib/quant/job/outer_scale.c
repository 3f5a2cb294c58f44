/* SPDX-License-Identifier: MIT */
/* outer_scale.c - scale tensors: when they stay, and how large they are
 *
 * The block scales of NVFP4 have eight bits, with four significant ones between
 * 2^-6 and 448. Most weights of models lie at the lower end of this range. So
 * the largest weight of a matrix is mapped to the largest value that a block
 * holds well, and the divisor is the scale of the matrix. The format's authors
 * (NVIDIA, "Pretraining Large Language Models with NVFP4", arXiv:2509.25149)
 * take 6 * 448. Our encoder, which gives ggml's bytes, rounds all block scales
 * above 240 to 448, so that we take 6 * 240.
 */
#include "config.h"
#include "quant/job/outer_scale.h"
#include "base/compiler.h"
#include "base/str.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* largest E2M1 element times the largest usable E4M3 block scale */
#define LARGEST (6.0f * 240.0f)

/* Suffixes of the tensors that may stand beside an NVFP4 tensor. */
static const char *const suffixes[] = { ".scale", ".input_scale" };

/* Find the tensor of the input beside src; NULL if it does not exist. */
static const struct gg_data_info *find_beside(const struct gguf_quant *q,
                                              const struct gg_data_info *src,
                                              const char *suffix)
{
    char name[GG_SCALE_NAME];
    return gg_data_scale_name(src->name, src->dtype, suffix, name)
               ? gg_job_find(q, name)
               : NULL;
}

/* ------------------------------------------------------- of the input --- */

/* Put tensors of the output first, each group in its order. */
static int compare_places(const void *a, const void *b)
{
    const struct gg_job_tensor *x = a, *y = b;
    if (x->left_out != y->left_out)
        return x->left_out ? 1 : -1;
    return (x->place > y->place) - (x->place < y->place);
}

static void arrange_tensors(struct gguf_quant *q)
{
    size_t n = 0;
    if (q->n_all)
        qsort(q->t, q->n_all, sizeof *q->t, compare_places);
    while (n < q->n_all && !q->t[n].left_out)
        n++;
    q->n_t = n;
}

void gg_outer_scale_unfold(struct gguf_quant *q)
{
    for (size_t i = 0; i < q->n_all; i++) {
        q->t[i].left_out = false;
        q->t[i].scale = NULL;
    }
    arrange_tensors(q);
}

/* Multiply the scale of one tensor into its weights; gone[] marks the tensors
 * of the input that are left out then. */
static enum gguf_status fold_scale(struct gguf_quant *q,
                                   struct gg_job_tensor *jt, bool *gone,
                                   struct gguf_error *err)
{
    struct gg_data_rows rows;
    jt->scale = find_beside(q, jt->src, suffixes[0]);
    if (jt->scale)
        GG_TRY(gg_job_rows(q, jt, &rows, err));
    for (size_t s = 0; s < GG_LEN(suffixes); s++) {
        const struct gg_data_info *other =
            find_beside(q, jt->src, suffixes[s]);
        if (other)
            gone[other - q->all] = true;
    }
    return GGUF_OK;
}

enum gguf_status gg_outer_scale_fold(struct gguf_quant *q,
                                     struct gguf_error *err)
{
    const size_t n = q->n_in;
    bool *gone = gg_mem_alloc_zero(q->p.allocator, n, sizeof *gone);
    if (!gone)
        return gg_error_set_nomem(err, n);
    gg_outer_scale_unfold(q);
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; !q->p.compat && i < q->n_all && st == GGUF_OK; i++)
        if (!q->t[i].pub.copied && q->t[i].pub.from == GGUF_DTYPE_NVFP4)
            st = fold_scale(q, &q->t[i], gone, err);
    for (size_t i = 0; i < q->n_all; i++)
        q->t[i].left_out = gone[q->t[i].no];
    gg_mem_free(q->p.allocator, gone);
    if (st != GGUF_OK)
        return st;
    arrange_tensors(q);
    gg_job_update_totals(q);
    return GGUF_OK;
}

/* ------------------------------------------------------ of the output --- */

bool gg_outer_scale_is_wanted(const struct gguf_quant *q,
                              const struct gg_job_tensor *jt, uint32_t type)
{
    char name[GG_SCALE_NAME];
    return q->p.outer_scales && !q->p.compat && type != jt->pub.from &&
           gg_data_scale_name(jt->src->name, type, suffixes[0], name) &&
           !gg_job_find(q, name);
}

/* Size of a tensor of size bytes that is named like jt with a suffix. */
static uint64_t tensor_size(const struct gg_job_tensor *jt, const char *suffix,
                            unsigned n_dims, uint64_t size, uint64_t align,
                            bool headers)
{
    uint64_t name = strlen(jt->pub.name) - strlen(".weight") + strlen(suffix);
    size = (size + align - 1) / align * align;
    return size + (headers ? 8 + name + 4 + 8 * n_dims + 4 + 8 : 0);
}

uint64_t gg_outer_scale_size(const struct gguf_quant *q,
                             const struct gg_job_tensor *jt, uint32_t type,
                             uint64_t align, bool headers)
{
    uint64_t sum = 0;
    if (gg_outer_scale_is_wanted(q, jt, type))
        return tensor_size(jt, suffixes[0], 1, 4 * gg_job_n_mats(jt), align,
                           headers);
    for (size_t s = 0; s < GG_LEN(suffixes); s++) {
        const struct gg_data_info *t =
            type == jt->pub.from && !q->p.compat
                ? find_beside(q, jt->src, suffixes[s])
                : NULL;
        if (t)
            sum += tensor_size(jt, suffixes[s], t->n_dims, t->size, align,
                               headers);
    }
    return sum;
}

float gg_outer_scale_compute(float largest)
{
    float scale = largest / LARGEST;
    return scale > 0 ? scale : 1;
}
