/* SPDX-License-Identifier: MIT */
/* model_facts.c - facts of a model that builders of a pass and sessions ask
 * for: its layers in order, weights, memory, positions
 */
#include "config.h"
#include "model/build_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

uint32_t gg_model_n_places(const struct gguf_model *m)
{
    return m->hp.n_deep *
           (m->arch->n_loops.fn ? m->arch->n_loops.fn(&m->hp) : 1);
}

uint32_t gg_model_n_run(const struct gguf_model *m)
{
    return gg_model_n_places(m) - (m->arch->nextn ? m->hp.n_nextn : 0);
}

bool gg_model_has_weight(const struct gguf_model *m, enum gg_weight id,
                         uint32_t il)
{
    char name[GG_WEIGHT_NAME];
    return gg_source_find(&m->src, gg_weight_name(id, il, name), NULL);
}

enum gguf_status gg_model_lacks_weight(enum gg_weight id, uint32_t il,
                                       struct gguf_error *err)
{
    char name[GG_WEIGHT_NAME];
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                        "tensor '%s' is missing",
                        gg_weight_name(id, il, name));
}

unsigned gg_model_layer_keeps(const struct gguf_model *m, uint32_t il)
{
    const struct gg_model_layer *l = &m->hp.layer[il % m->hp.n_deep];
    if (l->drafts || l->reads ||
        (gg_model_encodes_first(m) && il >= m->hp.n_dec_layer))
        return 0;
    return l->mixer ? l->mixer->keeps : 0;
}

unsigned gg_model_keeps(const struct gguf_model *m)
{
    unsigned all = 0;
    for (uint32_t il = 0; il < m->hp.n_deep; il++)
        all |= gg_model_layer_keeps(m, il);
    return all;
}

bool gg_model_encodes_first(const struct gguf_model *m)
{
    return m->hp.mixer->keeps & GG_KEEPS_CROSS;
}

uint32_t gg_model_n_buckets(const struct gguf_model *m)
{
    return m->hp.n_buckets;
}

bool gg_model_is_whole(const struct gguf_model *m)
{
    return m->arch->no_memory || !m->hp.causal;
}

bool gg_model_reads_positions(const struct gguf_model *m)
{
    return m->hp.mixer->positions;
}

bool gg_model_tempers(const struct gguf_model *m)
{
    return m->hp.temper.scale != 0;
}

float gg_model_temper(const struct gguf_model *m, int32_t pos)
{
    const double p = (double)pos + m->hp.temper.first;
    const double n = floor(p / m->hp.temper.length);
    return (float)(1 + (double)m->hp.temper.scale * log(n + 1));
}

void gg_model_layer_keys(const struct gguf_model *m, uint32_t il,
                         struct gg_model_key_sizes *n)
{
    il %= m->hp.n_layer;
    m->hp.layer[il].mixer->keys(m, il, n);
}

void gg_model_layer_states(const struct gguf_model *m, uint32_t il,
                           struct gg_model_states *n)
{
    const struct gg_model_layer *l = &m->hp.layer[il % m->hp.n_deep];
    l->mixer->states(m, l, n);
}

struct gg_model_at gg_model_at_layer(const struct gg_model_pass *p,
                                     struct gg_model_across *across,
                                     uint32_t il)
{
    const struct gguf_model *m = p->model;
    const uint32_t of = il % m->hp.n_deep;
    return (struct gg_model_at){ .p = p,
                                 .m = m,
                                 .c = p->ctx,
                                 .arch = m->arch,
                                 .layer = &m->hp.layer[of],
                                 .weights = &m->layer[of],
                                 .across = across,
                                 .added = p->added,
                                 .il = il };
}

bool gg_model_is_last(const struct gg_model_at *at)
{
    return at->il == gg_model_n_run(at->m) - 1;
}

tensor *gg_model_wanted(const struct gg_model_at *at, tensor *x)
{
    const struct gg_model_pass *p = at->p;
    return p->out_rows && gg_model_is_last(at)
               ? gguf_op_get_rows(at->c, x, p->out_rows)
               : x;
}

bool gg_model_has_logits(const struct gguf_model *m)
{
    return m->arch->output != GG_OUTPUT_NONE;
}
