/* SPDX-License-Identifier: MIT */
/* split_plan.c - assign tensors to shards */
#include "config.h"
#include "file/split_plan.h"
#include "file/split_layout.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"

#include <string.h>

/* Make the metadata of the first shard without the keys of a shard. For a file
 * it includes the keys that restore its layout; for a set it is the metadata of
 * its first shard. */
static enum gguf_status first_meta(struct gguf_meta *m,
                                   const struct gguf_file *s,
                                   struct gguf_error *err)
{
    const struct gguf_file *first = gguf_file_shard(s, 0);
    if (gguf_file_n_shards(s) == 1)
        return gg_file_split_layout_save(m, first, err);
    GG_TRY(gguf_meta_copy_file(m, first, err));
    gg_file_split_remove_keys(m);
    return GGUF_OK;
}

struct gguf_writer_params
gg_file_split_writer_params(const struct gguf_file *s)
{
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    const struct gguf_file *f = gguf_file_shard(s, 0);
    p.allocator = s->allocator;
    p.version = gguf_file_version(f);
    p.big_endian = gguf_file_is_big_endian(f);
    return p;
}

enum gguf_status gg_file_split_writer(struct gguf_writer **out,
                                      const struct gguf_split_plan *plan,
                                      size_t no, size_t count,
                                      struct gguf_error *err)
{
    *out = NULL;
    /* Setting an existing key keeps its place, so one list serves all
     * shards. */
    struct gguf_meta *m = no ? plan->rest : plan->first;
    GG_TRY(gg_file_split_set_keys(m, no, count,
                                  gguf_file_n_tensors(plan->from), err));
    struct gguf_writer_params p = gg_file_split_writer_params(plan->from);
    return gguf_writer_create(out, m, &p, err);
}

static enum gguf_status add_shard(struct gguf_split_plan *plan,
                                  const struct gguf_split_shard *shard,
                                  struct gguf_error *err)
{
    if (plan->n_shards == GGUF_SPLIT_MAX_FILES)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "more than %d shards are needed",
                            GGUF_SPLIT_MAX_FILES);
    if (plan->n_shards == plan->cap) {
        void *grown = gg_mem_grow(plan->allocator, plan->shards, &plan->cap,
                                  sizeof *plan->shards, 16, err);
        if (!grown)
            return GGUF_E_NOMEM;
        plan->shards = grown;
    }
    plan->shards[plan->n_shards++] = *shard;
    return GGUF_OK;
}

/* Layer of tensor i, or -1. */
static int64_t layer_of(const struct gguf_split_plan *plan, size_t i)
{
    return gguf_layer_from_name(gguf_file_tensor(plan->from, i)->name, NULL);
}

/* May a shard end before tensor i? */
static bool may_cut(const struct gguf_split_plan *plan,
                    const struct gguf_split_params *p, size_t i)
{
    return !p->by_layer || layer_of(plan, i) != layer_of(plan, i - 1);
}

static enum gguf_status too_large(const struct gguf_split_plan *plan,
                                  const struct gguf_split_params *p, size_t i,
                                  uint64_t size, struct gguf_error *err)
{
    const struct gguf_tensor_info *t = gguf_file_tensor(plan->from, i);
    struct gg_str_esc e;
    if (p->max_size && size > p->max_size)
        return gg_error_set(err, GGUF_E_LIMIT, t->info_off,
                            "%s '%s' alone makes a file of %" PRIu64
                            " bytes%s, a shard may have %" PRIu64,
                            p->by_layer ? "the layer of tensor" : "tensor",
                            gg_str_esc(&e, t->name), size,
                            p->by_layer ? " or more" : "", p->max_size);
    return gg_error_set(err, GGUF_E_LIMIT, t->info_off,
                        "the layer of tensor '%s' has more than %" PRIu64
                        " tensors",
                        gg_str_esc(&e, t->name), p->max_tensors);
}

/* Fill a shard with the tensors from shard->first_tensor on that fit. */
static enum gguf_status fill_shard(struct gguf_split_plan *plan,
                                   const struct gguf_split_params *p,
                                   struct gguf_writer *w,
                                   struct gguf_split_shard *shard,
                                   struct gguf_error *err)
{
    size_t n = gguf_file_n_tensors(plan->from), first = shard->first_tensor;
    uint64_t max_tensors = p->max_tensors ? p->max_tensors : UINT64_MAX;
    uint64_t size = gguf_writer_file_size(w);
    shard->file_size = size;
    if (p->max_size && size > p->max_size)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the metadata alone takes %" PRIu64
                            " bytes, a shard may have %" PRIu64,
                            size, p->max_size);
    if (p->no_tensor_first && plan->n_shards == 0)
        return GGUF_OK;
    for (size_t i = first; i < n; i++) {
        if (i > first && may_cut(plan, p, i)) {
            shard->n_tensors = i - first;
            shard->file_size = size;
            if (p->by_layer && !p->max_tensors && !p->max_size)
                return GGUF_OK;
        }
        GG_TRY(gguf_writer_add_like(w, gguf_file_tensor(plan->from, i), err));
        size = gguf_writer_file_size(w);
        if (i - first < max_tensors && (!p->max_size || size <= p->max_size))
            continue;
        /* Only the first shard, which has the metadata, may be empty. */
        return shard->n_tensors || plan->n_shards == 0
                   ? GGUF_OK
                   : too_large(plan, p, i, size, err);
    }
    shard->n_tensors = n - first;
    shard->file_size = size;
    return GGUF_OK;
}

static enum gguf_status plan_shards(struct gguf_split_plan *plan,
                                    const struct gguf_split_params *p,
                                    struct gguf_error *err)
{
    struct gguf_split_shard shard = { 0, 0, 0 };
    do {
        struct gguf_writer *w;
        shard.n_tensors = 0;
        enum gguf_status st =
            gg_file_split_writer(&w, plan, plan->n_shards, 1, err);
        if (st == GGUF_OK)
            st = fill_shard(plan, p, w, &shard, err);
        gguf_writer_destroy(w);
        GG_TRY(st);
        GG_TRY(add_shard(plan, &shard, err));
        shard.first_tensor += shard.n_tensors;
    } while (shard.first_tensor < gguf_file_n_tensors(plan->from));
    return GGUF_OK;
}

/* Make the lists of metadata of the first and of the other shards. */
static enum gguf_status make_meta(struct gguf_split_plan *plan,
                                  struct gguf_error *err)
{
    GG_TRY(gguf_meta_create(&plan->first, plan->allocator, err));
    GG_TRY(gguf_meta_create(&plan->rest, plan->allocator, err));
    GG_TRY(first_meta(plan->first, plan->from, err));
    const struct gguf_kv *alignment =
        gguf_meta_find(plan->first, "general.alignment");
    return alignment ? gguf_meta_set_kv(plan->rest, NULL, alignment, err)
                     : GGUF_OK;
}

enum gguf_status gguf_split_plan_create(struct gguf_split_plan **out,
                                        const struct gguf_file *from,
                                        const struct gguf_split_params *params,
                                        struct gguf_error *err)
{
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_split_params", err));
    if (!p.max_tensors && !p.max_size && !p.no_tensor_first && !p.by_layer)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "no rule to split by: set a number of tensors, a size or "
            "layers");
    GG_TRY(gg_file_check_whole(from, "to be split again", err));
    if (gguf_file_n_tensors(from) > INT32_MAX)
        return gg_error_set(
            err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
            "%zu tensors, split.tensors.count can hold at most %d",
            gguf_file_n_tensors(from), INT32_MAX);
    const struct gguf_allocator *a = from->allocator;
    struct gguf_split_plan *plan = gg_mem_alloc_zero(a, 1, sizeof *plan);
    if (!plan)
        return gg_error_set_nomem(err, sizeof *plan);
    plan->allocator = a;
    plan->from = from;
    enum gguf_status st = make_meta(plan, err);
    if (st == GGUF_OK)
        st = plan_shards(plan, &p, err);
    if (st == GGUF_OK)
        *out = plan;
    else
        gguf_split_plan_destroy(plan);
    return st;
}

void gguf_split_plan_destroy(struct gguf_split_plan *plan)
{
    if (!plan)
        return;
    gguf_meta_destroy(plan->first);
    gguf_meta_destroy(plan->rest);
    gg_mem_free(plan->allocator, plan->shards);
    gg_mem_free(plan->allocator, plan);
}

size_t gguf_split_plan_n_shards(const struct gguf_split_plan *plan)
{
    return plan->n_shards;
}

const struct gguf_split_shard *
gguf_split_plan_shard(const struct gguf_split_plan *plan, size_t i)
{
    return i < plan->n_shards ? &plan->shards[i] : NULL;
}
