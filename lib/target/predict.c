/* SPDX-License-Identifier: MIT */
/* predict.c - predict the divergence of the output of a job */
#include "config.h"
#include "target/target_int.h"
#include "base/params.h"

#include <math.h>

static const char key[] = "quantize.predicted_kld";

enum gguf_status gg_target_record(struct gguf_quant *q, double divergence,
                                  struct gguf_error *err)
{
    return q->p.compat
               ? GGUF_OK
               : gguf_meta_set_f32(q->meta, key, (float)divergence, err);
}

struct prediction {
    struct gguf_quant *q;
    struct gg_target_tensor *tensors;
    size_t n;
};

/* List the tensors whose effects are known, each with its type of the plan, and
 * count the others. */
static void list_tensors(struct prediction *p, size_t *n_unknown)
{
    for (size_t i = 0; i < p->q->n_t; i++) {
        struct gg_job_tensor *jt = &p->q->t[i];
        struct gg_target_tensor *tt = &p->tensors[p->n];
        if (jt->pub.copied || jt->pub.to == jt->pub.from)
            continue;
        tt->t = jt;
        tt->effect = gg_target_find_effect(p->q, jt);
        tt->n = 1;
        tt->options[0] = (struct gg_target_option){ .wanted = jt->pub.wanted,
                                                    .to = jt->pub.to,
                                                    .size = jt->pub.to_size,
                                                    .taken = jt->pub.to_size };
        if (tt->effect.known)
            p->n++;
        else
            ++*n_unknown;
    }
}

static enum gguf_status predict_sum(struct prediction *p,
                                    const struct gguf_target_params *params,
                                    struct gguf_quant_prediction *out,
                                    struct gguf_error *err)
{
    struct gguf_quant *q = p->q;
    p->tensors = gg_mem_alloc_zero(q->p.allocator, (uint64_t)q->n_t + 1,
                                   sizeof *p->tensors);
    if (!p->tensors)
        return gg_error_set_nomem(err, q->n_t * sizeof *p->tensors);
    list_tensors(p, &out->n_unknown);
    out->n_tensors = p->n;
    if (!p->n)
        return GGUF_OK;
    GG_TRY(gg_target_measure_all(q, params, p->tensors, p->n, err));
    for (size_t i = 0; i < p->n; i++)
        out->divergence += p->tensors[i].options[0].noise;
    return GGUF_OK;
}

/* Record the prediction, or remove the record if it lacks a tensor. */
static enum gguf_status record_sum(struct gguf_quant *q,
                                   const struct gguf_quant_prediction *r,
                                   bool no_record, struct gguf_error *err)
{
    gguf_meta_remove(q->meta, key);
    if (r->n_tensors && !r->n_unknown && !no_record)
        GG_TRY(gg_target_record(q, r->divergence, err));
    return gg_job_plan_files(q, &q->totals.file_size, err);
}

enum gguf_status gg_target_predict(struct gguf_quant *q,
                                   const struct gguf_target_params *params,
                                   struct gguf_quant_prediction *out,
                                   struct gguf_error *err)
{
    struct gguf_quant_prediction r = GGUF_QUANT_PREDICTION_INIT;
    struct prediction all = { .q = q };
    enum gguf_status st = predict_sum(&all, params, &r, err);
    if (st == GGUF_OK)
        st = record_sum(q, &r, params->no_record, err);
    gg_mem_free(q->p.allocator, all.tensors);
    if (out)
        *out = r;
    return st;
}

enum gguf_status gguf_quant_predict(struct gguf_quant *q,
                                    const struct gguf_target_params *params,
                                    struct gguf_quant_prediction *out,
                                    struct gguf_error *err)
{
    struct gguf_target_params p = GGUF_TARGET_PARAMS_INIT;
    struct gguf_quant_prediction r = GGUF_QUANT_PREDICTION_INIT;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_target_params", err));
    GG_TRY(gg_params_give(out, &r, sizeof r, "gguf_quant_prediction", err));
    GG_TRY(gg_target_predict(q, &p, &r, err));
    return gg_params_give(out, &r, sizeof r, "gguf_quant_prediction", err);
}
