/* SPDX-License-Identifier: MIT */
/* common_tensors.c - list the tensors of several jobs with one input
 *
 * The outputs need not have the same tensors: a scale that is multiplied into
 * the weights of one stays a tensor of another, and one may leave out layers.
 */
#include "config.h"
#include "quant/run/job_run.h"
#include "base/str.h"

#include <string.h>

static enum gguf_status check_input(const struct gguf_quant *a,
                                    const struct gguf_quant *b,
                                    struct gguf_error *err)
{
    const char *differs = gg_job_input_difference(a, b);
    return differs
               ? gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                              "jobs that run together must have the same %s",
                              differs)
               : GGUF_OK;
}

/* Check that two jobs see the same tensor and read the same numbers from it:
 * each job opened the input for itself. */
static enum gguf_status check_tensor(const struct gg_job_tensor *a,
                                     const struct gg_job_tensor *b,
                                     struct gguf_error *err)
{
    struct gg_str_esc esc;
    if (!gg_str_eq(a->src->name, b->src->name) || a->pub.from != b->pub.from ||
        a->src->off != b->src->off ||
        memcmp(a->pub.ne, b->pub.ne, sizeof a->pub.ne) != 0)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor '%s': the input has changed",
                            gg_str_esc(&esc, a->src->name));
    if (!a->pub.copied && !b->pub.copied && !a->scale != !b->scale)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor '%s': its scale is multiplied into the "
                            "weights of one output only; make the outputs "
                            "one by one",
                            gg_str_esc(&esc, a->src->name));
    return GGUF_OK;
}

/* Enter the tensors of job k. place[] is 1 more than the place of each tensor
 * of the input; 0: none yet. */
static enum gguf_status join_job(struct gg_quant_run *r, size_t k,
                                 size_t *place, struct gguf_error *err)
{
    const struct gguf_quant *q = r->jobs[k];
    for (size_t j = 0; j < q->n_t; j++) {
        struct gg_job_tensor *t = &q->t[j];
        size_t *at = &place[t->no];
        if (!*at)
            *at = ++r->n_t;
        r->tensors[k * r->n_in + *at - 1] = t;
        for (size_t other = 0; other < k; other++) {
            const struct gg_job_tensor *o =
                gg_quant_run_tensor(r, other, *at - 1);
            if (o)
                GG_TRY(check_tensor(o, t, err));
        }
    }
    return GGUF_OK;
}

enum gguf_status gg_quant_run_join_tensors(struct gg_quant_run *r,
                                           struct gguf_error *err)
{
    const struct gguf_allocator *a = r->jobs[0]->p.allocator;
    uint64_t n;
    for (size_t k = 1; k < r->n_jobs; k++)
        GG_TRY(check_input(r->jobs[0], r->jobs[k], err));
    r->n_in = r->jobs[0]->n_in;
    if (gg_ckd_mul(&n, r->n_in, r->n_jobs))
        return gg_error_set_nomem(err, SIZE_MAX);
    r->tensors = gg_mem_alloc_zero(a, n, sizeof *r->tensors);
    size_t *place = gg_mem_alloc_zero(a, r->n_in, sizeof *place);
    enum gguf_status st =
        r->tensors && place ? GGUF_OK
                            : gg_error_set_nomem(err, n * sizeof *r->tensors);
    for (size_t k = 0; k < r->n_jobs && st == GGUF_OK; k++)
        st = join_job(r, k, place, err);
    gg_mem_free(a, place);
    return st;
}
