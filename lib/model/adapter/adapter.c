/* SPDX-License-Identifier: MIT */
/* adapter.c - open an adapter: its tensors against the weights of a model
 *
 * The adapter's numbers are decoded once. They are few, each graph then reads
 * floats, and numbers that are not finite are found before anything is
 * computed.
 */
#include "config.h"
#include "model/adapter/adapter_int.h"

#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"
#include "data/gguf_list.h"
#include "data/lora.h"
#include "kern/cpu_features.h"
#include "model/weight/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* State of opening an adapter. */
struct opening {
    struct gguf_adapter *to;
    struct gg_lora lora;
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gg_data_gguf data; /* tensors of the adapter's file */
    struct gg_model_lookup lookup;
    /* a row of numbers that are decoded before they are moved */
    float *row;
};

/* ---- the weight ---- */

/* The matrix of the model that a pair is for. */
static enum gguf_status find_weight(struct opening *o,
                                    const struct gg_lora_pair *p,
                                    struct gg_adapter_pair *to,
                                    struct gguf_error *err)
{
    const struct gguf_tensor **out = &to->weight;
    const struct gguf_model *m = o->to->model;
    uint64_t il;
    int64_t ne[GGUF_MAX_DIMS];
    const enum gg_weight id = gg_model_lookup(&o->lookup, p->weight, &il);
    *out = NULL;
    if (id != GG_W_NONE && gg_weights[id].role == GG_MATRIX)
        *out = gg_weights[id].scope == GG_MODEL ? m->top.w[id]
                                                : m->layer[il].w[id];
    /* a shared weight has the name of its tensor in the file */
    const bool shared = *out && !gg_str_eqz(p->weight, (*out)->name);
    to->of_output = shared && id == GG_W_OUTPUT;
    if (!*out || (shared && !to->of_output))
        return gg_lora_fail_missing_weight(p, err);
    for (unsigned d = 0; d < GGUF_MAX_DIMS; d++)
        ne[d] = d < GGUF_TENSOR_DIMS ? (*out)->ne[d] : 1;
    return gg_lora_check_shape(p, ne, err);
}

/* ---- numbers ---- */

/* n numbers of tensor t, from first on. */
static enum gguf_status read_row(const struct gguf_tensor_info *t,
                                 const struct gg_data_rows *rows,
                                 uint64_t first, uint64_t n, float *to,
                                 struct gguf_error *err)
{
    struct gg_str_esc e;
    gg_data_read(rows, first, n, to);
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(to[i]))
            return gg_error_set(err, GGUF_E_NONFINITE, t->info_off,
                                "tensor '%s': element %" PRIu64
                                " is not finite",
                                gg_str_esc(&e, t->name), first + i);
    return GGUF_OK;
}

/* Read the numbers of t, row after row, into to, which has the same shape. A
 * matrix may be transposed. */
static enum gguf_status decode_tensor(struct opening *o,
                                      const struct gguf_tensor_info *t,
                                      bool turned, struct gguf_tensor *to,
                                      struct gguf_error *err)
{
    struct gg_data_rows rows;
    const uint64_t n = (uint64_t)t->ne[0];
    const uint64_t n_rows = t->n_elements / n;
    float *out = to->data;
    GG_TRY(gg_data_rows(&o->data.list, t->index, &rows, err));
    for (uint64_t r = 0; r < n_rows; r++) {
        float *row = turned ? o->row : out + r * n;
        GG_TRY(read_row(t, &rows, r * n, n, row, err));
        for (uint64_t i = 0; turned && i < n; i++)
            out[i * n_rows + r] = row[i];
    }
    return GGUF_OK;
}

static enum gguf_status decode_pair(struct opening *o,
                                    const struct gg_lora_pair *from,
                                    struct gg_adapter_pair *to,
                                    struct gguf_error *err)
{
    if (from->looked_up) {
        GG_TRY(decode_tensor(o, from->a, false, to->b, err));
        return decode_tensor(o, from->b, true, to->a, err);
    }
    GG_TRY(decode_tensor(o, from->a, false, to->a, err));
    return decode_tensor(o, from->b, false, to->b, err);
}

/* ---- all of it ---- */

static enum gguf_status make_ctx(struct opening *o, struct gguf_error *err)
{
    struct gguf_adapter *a = o->to;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = a->allocator;
    p.mem_size = 2 * o->lora.n_pairs * gguf_tensor_overhead();
    p.no_alloc = true;
    a->pair =
        gg_mem_alloc_zero(a->allocator, o->lora.n_pairs, sizeof *a->pair);
    if (!a->pair)
        return gg_error_set_nomem(err, o->lora.n_pairs * sizeof *a->pair);
    return gguf_ctx_create(&a->ctx, &p, err);
}

/* Descriptions of the pairs, in the file's order, each with its weight. */
static enum gguf_status describe_pairs(struct opening *o,
                                       struct gguf_error *err)
{
    struct gguf_adapter *a = o->to;
    size_t most = 1;
    a->info.rank_min = INT64_MAX;
    a->info.alpha = o->lora.alpha;
    a->info.n_left_out = o->lora.n_norms;
    for (size_t i = 0; i < o->lora.n_pairs; i++) {
        const struct gg_lora_pair *p = &o->lora.pair[i];
        struct gg_adapter_pair *to = &a->pair[i];
        GG_TRY(find_weight(o, p, to, err));
        const int64_t *ne = to->weight->ne;
        to->a = gguf_tensor_create_3d(a->ctx, GGUF_DTYPE_F32, ne[0], p->rank,
                                      ne[2]);
        to->b = gguf_tensor_create_3d(a->ctx, GGUF_DTYPE_F32, p->rank, ne[1],
                                      ne[2]);
        to->factor = gg_lora_factor(&o->lora, p, 1);
        most = GG_MAX(most, (size_t)p->b->ne[0]);
        a->info.rank_min = GG_MIN(a->info.rank_min, p->rank);
        a->info.rank_max = GG_MAX(a->info.rank_max, p->rank);
        a->info.n_params += p->a->n_elements + p->b->n_elements;
    }
    a->n_pairs = a->info.n_weights = o->lora.n_pairs;
    GG_TRY(gguf_ctx_status(a->ctx, err));
    o->row = gg_mem_alloc_zero(a->allocator, most, sizeof *o->row);
    return o->row ? GGUF_OK : gg_error_set_nomem(err, most * sizeof *o->row);
}

static enum gguf_status fill_pairs(struct opening *o, struct gguf_error *err)
{
    struct gguf_adapter *a = o->to;
    GG_TRY(make_ctx(o, err));
    GG_TRY(describe_pairs(o, err));
    GG_TRY(gguf_ctx_alloc_tensors(a->ctx, gguf_host_buft(), a->allocator,
                                  &a->buffer, err));
    gguf_buffer_set_usage(a->buffer, GGUF_USAGE_WEIGHTS);
    a->info.size = gguf_buffer_size(a->buffer);
    for (size_t i = 0; i < a->n_pairs; i++)
        GG_TRY(decode_pair(o, &o->lora.pair[i], &a->pair[i], err));
    qsort(a->pair, a->n_pairs, sizeof *a->pair, gg_adapter_compare);
    return GGUF_OK;
}

static enum gguf_status open_lora(struct opening *o,
                                  const struct gguf_file *file,
                                  struct gguf_error *err)
{
    const struct gguf_model *m = o->to->model;
    const struct gg_source from = { .file = file };
    GG_TRY(gg_lora_init(&o->lora, file, o->to->allocator, err));
    gg_codec_kern_init(o->codec, gg_kern_cpu_detect());
    gg_data_gguf_init(&o->data, &from, o->codec, true);
    o->lookup = (struct gg_model_lookup){ .src = &m->src,
                                          .arch = m->arch,
                                          .hp = &m->hp };
    enum gguf_status st = gg_lora_check_arch(&o->lora, m->arch_name, err);
    if (st == GGUF_OK)
        st = fill_pairs(o, err);
    gg_mem_free(o->to->allocator, o->row);
    gg_lora_fini(&o->lora);
    return st;
}

enum gguf_status gguf_adapter_create(struct gguf_adapter **out,
                                     const struct gguf_model *model,
                                     const struct gguf_file *file,
                                     const struct gguf_adapter_params *params,
                                     struct gguf_error *err)
{
    struct gguf_adapter_params p = GGUF_ADAPTER_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_adapter_params", err));
    if (!model || !file)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "an adapter needs a model and a file");
    struct gguf_adapter *a = gg_mem_alloc_zero(p.allocator, 1, sizeof *a);
    struct opening *o = gg_mem_alloc_zero(p.allocator, 1, sizeof *o);
    enum gguf_status st = GGUF_OK;
    if (a)
        *a = (struct gguf_adapter){ .allocator = p.allocator, .model = model };
    if (a && o) {
        o->to = a;
        st = gg_control_vector_is_file(file)
                 ? gg_control_vector_open(a, file, p.first_layer, p.last_layer,
                                          err)
                 : open_lora(o, file, err);
    } else {
        st = gg_error_set_nomem(err, sizeof *a + sizeof *o);
    }
    gg_mem_free(p.allocator, o);
    if (st != GGUF_OK) {
        gguf_adapter_destroy(a);
        return st;
    }
    *out = a;
    return GGUF_OK;
}

void gguf_adapter_destroy(struct gguf_adapter *a)
{
    if (!a)
        return;
    gg_adapter_free_memory(a);
    gguf_ctx_destroy(a->ctx);
    gg_mem_free(a->allocator, a->pair);
    gg_mem_free(a->allocator, a->direction);
    gg_mem_free(a->allocator, a);
}

const struct gguf_adapter_info *gguf_adapter_info(const struct gguf_adapter *a)
{
    return &a->info;
}
