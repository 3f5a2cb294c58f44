/* SPDX-License-Identifier: MIT */
/* job.c - create, query and destroy a quantization job */
#include "config.h"
#include "quant/job/job.h"
#include "base/params.h"
#include "base/str.h"
#include "dtype/interleave.h"
#include "recipe/recipe_int.h"

#include <string.h>

static bool is_target(const struct gguf_dtype_info *t)
{
    return t && t->family != GGUF_FAMILY_INT &&
           t->family != GGUF_FAMILY_REMOVED;
}

/* Refuse keys split.*: they follow from the output files. */
static enum gguf_status check_keys(const struct gguf_meta *meta,
                                   struct gguf_error *err)
{
    static const char split[] = "split.";
    struct gg_str_esc esc;
    for (size_t i = 0; meta && i < gguf_meta_n_kv(meta); i++) {
        struct gguf_str key = gguf_meta_kv(meta, i)->key;
        if (key.size >= sizeof split - 1 &&
            !memcmp(key.data, split, sizeof split - 1))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "key '%s' cannot be set: it follows from the "
                                "output files",
                                gg_str_esc(&esc, key));
    }
    return GGUF_OK;
}

static enum gguf_status check_repack(const struct gguf_quant_params *p,
                                     struct gguf_error *err)
{
    const int to = gg_dtype_index(p->repack_to);
    const bool known =
        p->repack_to == GGUF_REPACK_PLAIN ||
        p->repack_to == GGUF_REPACK_INTERLEAVED ||
        (to >= 0 && (gg_interleave_has_put(to) || gg_interleave_of(to) >= 0));
    if (!p->repack_to)
        return GGUF_OK;
    if (!known)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "type %" PRIu32 " has no interleaved form",
                            p->repack_to);
    if (p->recipe->base != GG_RECIPE_KEEP)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "only a recipe that keeps all types, such as "
                            "COPY, can be combined with a change of "
                            "interleaving");
    return GGUF_OK;
}

static enum gguf_status check_params(const struct gguf_quant_params *p,
                                     struct gguf_error *err)
{
    if (!p->recipe)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_quant_params: recipe is NULL");
    bool good = (!p->output_type || is_target(p->output_type)) &&
                (!p->embedding_type || is_target(p->embedding_type));
    for (size_t i = 0; i < p->n_overrides; i++)
        good = good && p->overrides[i].pattern &&
               is_target(gguf_dtype_find(p->overrides[i].dtype));
    if (!good)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_quant_params: a type that nothing is "
                            "quantized to");
    if (p->keep_split && p->max_file_size)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_quant_params: keep_split and "
                            "max_file_size exclude each other");
    GG_TRY(check_repack(p, err));
    return check_keys(p->meta, err);
}

static enum gguf_status build_job(struct gguf_quant *q, struct gguf_error *err)
{
    GG_TRY(gg_job_open_loras(q, err));
    GG_TRY(gg_job_make_plan(q, err));
    GG_TRY(gg_job_make_metadata(q, err));
    return gg_job_plan_files(q, &q->totals.file_size, err);
}

/* Input of a job: the first member that is not NULL. */
struct origin {
    const struct gg_description *in;
    const char *path;
    const struct gguf_file *file;
};

static enum gguf_status create_job(struct gguf_quant **out,
                                   const struct origin *from,
                                   const struct gguf_quant_params *params,
                                   struct gguf_error *err)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_quant_params", err));
    GG_TRY(check_params(&p, err));
    struct gguf_quant *q = gg_mem_alloc_zero(p.allocator, 1, sizeof *q);
    if (!q)
        return gg_error_set_nomem(err, sizeof *q);
    q->p = p;
    gg_mem_arena_init(&q->arena, p.allocator);
    gg_kern_init(&q->kern, gg_kern_cpu_detect());
    enum gguf_status st = GGUF_OK;
    if (from->in)
        q->in = *from->in;
    else
        st = gg_job_open_input(q, from->path, from->file, err);
    if (st == GGUF_OK)
        st = build_job(q, err);
    q->p.overrides = NULL; /* borrowed for the call only */
    q->p.n_overrides = 0;
    q->p.meta = NULL;
    q->p.prune = NULL;
    q->p.loras = NULL; /* copied to q->merge */
    if (st != GGUF_OK) {
        gguf_quant_destroy(q);
        return st;
    }
    *out = q;
    return GGUF_OK;
}

enum gguf_status gguf_quant_create(struct gguf_quant **out, const char *path,
                                   const struct gguf_quant_params *params,
                                   struct gguf_error *err)
{
    const struct origin from = { .path = path };
    return create_job(out, &from, params, err);
}

enum gguf_status gguf_quant_create_file(struct gguf_quant **out,
                                        const struct gguf_file *file,
                                        const struct gguf_quant_params *params,
                                        struct gguf_error *err)
{
    const struct origin from = { .file = file };
    return create_job(out, &from, params, err);
}

enum gguf_status gg_job_create(struct gguf_quant **out,
                               const struct gg_description *in,
                               const struct gguf_quant_params *params,
                               struct gguf_error *err)
{
    const struct origin from = { .in = in };
    return create_job(out, &from, params, err);
}

void gguf_quant_destroy(struct gguf_quant *q)
{
    if (!q)
        return;
    gguf_meta_destroy(q->meta);
    gg_job_close_loras(q);
    gg_job_close_input(q);
    gg_index_fini(&q->names);
    gg_mem_free(q->p.allocator, q->all);
    gg_mem_free(q->p.allocator, q->t);
    gg_mem_free(q->p.allocator, q->noise);
    gg_mem_arena_fini(&q->arena);
    gg_mem_free(q->p.allocator, q);
}

size_t gguf_quant_n_tensors(const struct gguf_quant *q)
{
    return q->n_t;
}

size_t gguf_quant_n_files(const struct gguf_quant *q)
{
    return q->n_shards;
}

const struct gguf_quant_tensor *gguf_quant_tensor(const struct gguf_quant *q,
                                                  size_t i)
{
    return i < q->n_t ? &q->t[i].pub : NULL;
}

enum gguf_status gguf_quant_totals(const struct gguf_quant *q,
                                   struct gguf_quant_totals *out,
                                   struct gguf_error *err)
{
    return gg_params_give(out, &q->totals, sizeof q->totals,
                          "gguf_quant_totals", err);
}

void gg_job_set_cpu(struct gguf_quant *q, uint32_t cpu)
{
    gg_kern_init(&q->kern, cpu);
}
