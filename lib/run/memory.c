/* SPDX-License-Identifier: MIT */
/* memory.c - functions that all kinds of memory share */
#include "config.h"
#include "run/memory_int.h"

#include "base/mem.h"
#include "gguf/backend.h"

#include <inttypes.h>

static const struct gg_memory_kind *const kinds[GG_N_MEMORIES] = {
    &gg_memory_keys, &gg_memory_states, &gg_memory_cross,
    &gg_memory_compressed, &gg_memory_switch
};

static enum gguf_status init_memory(struct gg_memory *m, struct gguf_ctx *c,
                                    struct gguf_error *err)
{
    const uint32_t n = gg_model_n_unrolled_layers(m->model);
    m->t = gg_mem_alloc_zero(m->allocator, GG_MEMORY_TENSORS * (size_t)n,
                             sizeof *m->t);
    if (!m->t)
        return gg_error_set_nomem(err, GG_MEMORY_TENSORS * (size_t)n *
                                           sizeof *m->t);
    for (uint32_t il = 0; il < n; il++)
        for (unsigned k = 0; k < GG_MEMORY_TENSORS; k++)
            if (gg_model_layer_memory_kinds(m->model, il) & m->kind->id)
                m->t[k * n + il] =
                    gguf_tensor_set_namef(m->kind->describe(m, c, il, k),
                                          "%s.%" PRIu32, m->kind->name[k], il);
    return gguf_ctx_status(c, err);
}

static void follow_cells(struct gg_memory *m, const struct gg_memory_params *p)
{
    if (m->kind->by_seq)
        return;
    m->table[GG_ATTN_FULL] = m->kind->encoded ? p->encoded : p->table[0];
    if (!m->kind->encoded)
        m->table[GG_ATTN_WINDOW] = p->table[GG_ATTN_WINDOW];
}

enum gguf_status gg_memory_init(struct gg_memory m[GG_N_MEMORIES],
                                const struct gg_memory_params *p,
                                struct gguf_ctx *c, struct gguf_error *err)
{
    const struct gguf_allocator *a = p->allocator;
    const bool kept = !gg_model_needs_whole_sequence(p->model);
    for (unsigned i = 0; i < GG_N_MEMORIES; i++) {
        m[i] = (struct gg_memory){ .model = p->model,
                                   .allocator = a,
                                   .n_ctx = p->n_ctx,
                                   .n_seq = p->n_seq,
                                   .types = p->types,
                                   .kept = kept };
        if (!(gg_model_all_memory_kinds(p->model) & kinds[i]->id))
            continue;
        m[i].kind = kinds[i];
        /* compressed keys have at least that number of rows */
        const uint32_t n_row = GG_MAX(GG_MAX(p->n_ctx, p->n_ubatch), 128);
        m[i].row = gg_mem_alloc_zero(a, n_row, sizeof *m[i].row);
        m[i].ids = gg_mem_alloc_zero(a, p->n_seq, sizeof *m[i].ids);
        m[i].n_row = n_row;
        if (!m[i].row || !m[i].ids)
            return gg_error_set_nomem(err, n_row * sizeof *m[i].row);
        for (uint32_t q = 0; q < p->n_seq; q++)
            m[i].ids[q] = (int32_t)q;
        follow_cells(&m[i], p);
        if (kept)
            GG_TRY(init_memory(&m[i], c, err));
    }
    return GGUF_OK;
}

struct gg_cells *gg_memory_layer_table(const struct gg_memory *m, uint32_t il)
{
    const struct gg_hparams *hp = &m->model->hp;
    struct gg_cells *of_windows = m->table[GG_ATTN_WINDOW];
    return of_windows &&
                   hp->layer[gg_model_stored_layer(m->model, il)].attn_type ==
                       GG_ATTN_WINDOW
               ? of_windows
               : m->table[GG_ATTN_FULL];
}

void gg_memory_fini(struct gg_memory m[GG_N_MEMORIES])
{
    for (unsigned i = 0; i < GG_N_MEMORIES; i++) {
        gg_mem_free(m[i].allocator, m[i].t);
        gg_mem_free(m[i].allocator, m[i].row);
        gg_mem_free(m[i].allocator, m[i].ids);
    }
}

struct gguf_tensor *gg_run_mark_input(struct gguf_tensor *t, const char *name)
{
    return gguf_tensor_set_name(gguf_tensor_add_flags(t, GGUF_TENSOR_INPUT),
                                name);
}

enum gguf_status gg_run_set_input(struct gguf_tensor *t, const void *src,
                                  struct gguf_error *err)
{
    if (!t || !t->buffer)
        return GGUF_OK;
    return gguf_tensor_set(t, src, 0, gguf_tensor_size(t), err);
}
