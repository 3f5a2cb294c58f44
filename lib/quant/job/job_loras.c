/* SPDX-License-Identifier: MIT */
/* job_loras.c - adapters that a job merges into the weights */
#include "config.h"
#include "quant/job/job.h"

#include <math.h>
#include <string.h>

#define MOST_SCALE 1e9f

static enum gguf_status check_params(const struct gguf_quant_params *p,
                                     struct gguf_error *err)
{
    if (!p->loras || p->compat)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_quant_params: n_loras is set, but %s",
                            p->compat ? "compat is set too" : "loras is NULL");
    for (size_t i = 0; i < p->n_loras; i++)
        if (!(fabsf(p->loras[i].scale) <= MOST_SCALE))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "adapter %zu has scale %g, must be from -1e9 "
                                "to 1e9",
                                i, (double)p->loras[i].scale);
    return GGUF_OK;
}

static enum gguf_status open_one(struct gguf_quant *q, size_t i,
                                 struct gguf_error *err)
{
    struct gg_merged_lora *m = &q->merge[i];
    const struct gg_source from = { .file = q->p.loras[i].file };
    const struct gguf_kv *kv =
        gguf_meta_find(q->in.meta, "general.architecture");
    struct gguf_str arch;
    GG_TRY(gg_lora_init(&m->lora, from.file, q->p.allocator, err));
    gg_data_gguf_init(&m->data, &from, q->kern.codec, true);
    m->scale = q->p.loras[i].scale;
    q->totals.n_left_out += m->lora.n_norms;
    if (gguf_kv_get_str(kv, &arch, NULL) != GGUF_OK)
        return GGUF_OK; /* decided by names and shapes instead */
    return gg_lora_check_arch(&m->lora, arch, err);
}

enum gguf_status gg_job_open_loras(struct gguf_quant *q,
                                   struct gguf_error *err)
{
    const size_t n = q->p.n_loras;
    if (!n)
        return GGUF_OK;
    GG_TRY(check_params(&q->p, err));
    q->merge = gg_mem_alloc_zero(q->p.allocator, n, sizeof *q->merge);
    if (!q->merge)
        return gg_error_set_nomem(err, n * sizeof *q->merge);
    for (size_t i = 0; i < n; i++)
        GG_TRY(open_one(q, i, err));
    return gg_data_merged_init(&q->merged, q->in.list, q->merge, n,
                               q->p.allocator, err);
}

void gg_job_close_loras(struct gguf_quant *q)
{
    if (!q->merge)
        return;
    gg_data_merged_fini(&q->merged);
    for (size_t i = 0; i < q->p.n_loras; i++)
        gg_lora_fini(&q->merge[i].lora);
    gg_mem_free(q->p.allocator, q->merge);
}

bool gg_job_has_same_loras(const struct gguf_quant *a,
                           const struct gguf_quant *b)
{
    bool same = a->p.n_loras == b->p.n_loras;
    for (size_t i = 0; same && i < a->p.n_loras; i++)
        same = a->merge[i].lora.file == b->merge[i].lora.file &&
               a->merge[i].scale == b->merge[i].scale;
    return same;
}

enum gguf_status gg_job_set_lora_keys(struct gguf_quant *q,
                                      struct gguf_error *err)
{
    static const char files[] = "quantize.lora.files";
    static const char scales[] = "quantize.lora.scales";
    const size_t n = q->p.n_loras;
    if (!n)
        return GGUF_OK;
    float *scale = gg_mem_alloc_zero(q->p.allocator, n, sizeof *scale);
    struct gguf_str *name = gg_mem_alloc_zero(q->p.allocator, n, sizeof *name);
    enum gguf_status st = GGUF_OK;
    if (!scale || !name)
        st = gg_error_set_nomem(err, n * (sizeof *scale + sizeof *name));
    for (size_t i = 0; i < n && st == GGUF_OK; i++) {
        const char *text = q->p.loras[i].name ? q->p.loras[i].name : "";
        scale[i] = q->merge[i].scale;
        name[i] = (struct gguf_str){ text, strlen(text) };
    }
    gguf_meta_remove(q->meta, files);
    gguf_meta_remove(q->meta, scales);
    if (st == GGUF_OK)
        st = gguf_meta_set_str_array(q->meta, files, name, n, err);
    if (st == GGUF_OK)
        st = gguf_meta_set_array(q->meta, scales, GGUF_VAL_F32, scale, n, err);
    gg_mem_free(q->p.allocator, name);
    gg_mem_free(q->p.allocator, scale);
    return st;
}
