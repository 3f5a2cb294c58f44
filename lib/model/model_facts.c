/* SPDX-License-Identifier: MIT */
/* model_facts.c - facts of a model that builders of a pass and sessions ask
 * for: its layers in order, weights, memory, positions
 */
#include "config.h"
#include "model/build_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

uint32_t gg_model_n_unrolled_layers(const struct gguf_model *m)
{
    return m->arch->unroll ? m->arch->unroll->n_layers(&m->hp)
                           : m->hp.n_layer_all;
}

uint32_t gg_model_n_uses(const struct gguf_model *m)
{
    return m->arch->unroll ? m->arch->unroll->most(&m->hp) : 1;
}

uint32_t gg_model_stored_layer(const struct gguf_model *m, uint32_t il)
{
    return m->arch->unroll ? m->arch->unroll->layer_of(&m->hp, il) : il;
}

uint32_t gg_model_n_main_layers(const struct gguf_model *m)
{
    return gg_model_n_unrolled_layers(m) -
           (m->arch->nextn ? m->hp.n_nextn : 0);
}

bool gg_model_has_weight(const struct gguf_model *m, enum gg_weight id,
                         uint32_t il)
{
    char name[GG_WEIGHT_NAME];
    return gg_source_find(&m->src, gg_weight_name(id, il, name), NULL);
}

enum gguf_status gg_model_fail_missing_weight(enum gg_weight id, uint32_t il,
                                              struct gguf_error *err)
{
    char name[GG_WEIGHT_NAME];
    return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                        "tensor '%s' is missing",
                        gg_weight_name(id, il, name));
}

unsigned gg_model_layer_memory_kinds(const struct gguf_model *m, uint32_t il)
{
    const struct gg_model_layer *l =
        &m->hp.layer[gg_model_stored_layer(m, il)];
    if (l->is_nextn || l->shares_kv ||
        (gg_model_encodes_first(m) && il >= m->hp.n_dec_layer))
        return 0;
    return l->mixer ? l->mixer->memory : 0;
}

unsigned gg_model_all_memory_kinds(const struct gguf_model *m)
{
    unsigned all = 0;
    for (uint32_t il = 0; il < m->hp.n_layer_all; il++)
        all |= gg_model_layer_memory_kinds(m, il);
    return all;
}

bool gg_model_encodes_first(const struct gguf_model *m)
{
    return m->hp.mixer->memory & GG_MODEL_MEMORY_CROSS;
}

uint32_t gg_model_n_position_buckets(const struct gguf_model *m)
{
    return m->hp.n_buckets;
}

bool gg_model_needs_whole_sequence(const struct gguf_model *m)
{
    return m->arch->whole_sequence || !m->hp.causal;
}

bool gg_model_reads_positions(const struct gguf_model *m)
{
    return m->hp.mixer->positions;
}

bool gg_model_has_query_temperature(const struct gguf_model *m)
{
    return m->hp.temperature.scale != 0;
}

float gg_model_query_temperature(const struct gguf_model *m, int32_t pos)
{
    const double p = (double)pos + m->hp.temperature.first;
    const double n = floor(p / m->hp.temperature.length);
    return (float)(1 + (double)m->hp.temperature.scale * log(n + 1));
}

void gg_model_layer_key_sizes(const struct gguf_model *m, uint32_t il,
                              struct gg_model_key_sizes *n)
{
    il = gg_model_stored_layer(m, il);
    m->hp.layer[il].mixer->keys(m, il, n);
}

void gg_model_layer_compressed_sizes(const struct gguf_model *m, uint32_t il,
                                     struct gg_model_compressed_sizes *n)
{
    il %= m->hp.n_layer;
    m->hp.layer[il].mixer->compressed(m, il, n);
}

void gg_model_layer_state_sizes(const struct gguf_model *m, uint32_t il,
                                struct gg_model_state_sizes *n)
{
    const struct gg_model_layer *l =
        &m->hp.layer[gg_model_stored_layer(m, il)];
    l->mixer->states(m, l, n);
}

struct gg_model_at gg_model_at_layer(const struct gg_model_pass *p,
                                     struct gg_model_layer_links *across,
                                     uint32_t il)
{
    const struct gguf_model *m = p->model;
    const uint32_t of = gg_model_stored_layer(m, il);
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

bool gg_model_is_last_layer(const struct gg_model_at *at)
{
    return at->il == gg_model_n_main_layers(at->m) - 1;
}

tensor *gg_model_take_output_rows(const struct gg_model_at *at, tensor *x)
{
    const struct gg_model_pass *p = at->p;
    return p->out_rows && gg_model_is_last_layer(at)
               ? gguf_op_get_rows(at->c, x, p->out_rows)
               : x;
}

tensor *gg_model_take_output_streams(const struct gg_model_at *at, tensor *h)
{
    if (!h)
        return NULL;
    const int64_t d = h->ne[0], n = h->ne[1];
    h = gg_model_take_output_rows(
        at, gguf_op_reshape_2d(at->c, h, d * n, h->ne[2]));
    return h ? gguf_op_reshape_3d(at->c, h, d, n, h->ne[1]) : NULL;
}

bool gg_model_has_logits(const struct gguf_model *m)
{
    return m->arch->output != GG_OUTPUT_NONE;
}
