/* SPDX-License-Identifier: MIT */
/* control_vector.c - control vectors: directions that are added after layers */
#include "config.h"
#include "model/adapter/adapter_int.h"

#include "base/mem.h"
#include "base/str.h"
#include "data/gguf_list.h"
#include "kern/cpu_features.h"

#include <inttypes.h>
#include <math.h>

static const char arch_key[] = "general.architecture";
static const char kind[] = "controlvector";

bool gg_control_vector_is_file(const struct gguf_file *file)
{
    struct gguf_str s;
    return gguf_kv_get_str(gguf_file_kv_find(file, arch_key), &s, NULL) ==
               GGUF_OK &&
           gg_str_eqz(s, kind);
}

/* Check that the control vector is for this architecture. A file without
 * model_hint passes. */
static enum gguf_status check_keys(const struct gguf_adapter *a,
                                   const struct gguf_file *file,
                                   struct gguf_error *err)
{
    const struct gguf_kv *hint =
        gguf_file_kv_find(file, "controlvector.model_hint");
    const struct gguf_kv *count =
        gguf_file_kv_find(file, "controlvector.layer_count");
    struct gguf_str s;
    struct gg_str_esc e, f;
    uint64_t n;
    if (hint) {
        GG_TRY(gguf_kv_get_str(hint, &s, err));
        if (!gg_str_eq(s, a->model->arch_name))
            return gg_error_set(err, GGUF_E_MISMATCH, hint->off,
                                "the control vector is for architecture '%s', "
                                "the model has '%s'",
                                gg_str_esc(&e, s),
                                gg_str_esc(&f, a->model->arch_name));
    }
    return count ? gguf_kv_get_uint(count, &n, err) : GGUF_OK;
}

/* The layer N of "direction.N". */
static enum gguf_status parse_layer(const struct gguf_adapter *a,
                                    const struct gguf_tensor_info *t,
                                    uint64_t *il, struct gguf_error *err)
{
    static const char begin[] = "direction.";
    struct gguf_str s = t->name;
    struct gg_str_esc e;
    const uint64_t n = a->model->hp.n_layer;
    bool good = gg_str_starts(s, begin);
    if (good) {
        s.data += sizeof begin - 1;
        s.size -= sizeof begin - 1;
        good = s.size && s.data[0] != '0' && gg_str_uint(&s, UINT32_MAX, il) &&
               !s.size;
    }
    if (good && *il < n)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_TENSOR, t->info_off,
                        good ? "tensor '%s' belongs to a layer that the model "
                               "lacks: it has %" PRIu64 ", from 0 on"
                             : "tensor '%s', expected direction.N with N from "
                               "1 to %" PRIu64,
                        gg_str_esc(&e, t->name), good ? n : n - 1);
}

static enum gguf_status check_shape(const struct gguf_adapter *a,
                                    const struct gguf_tensor_info *t,
                                    struct gguf_error *err)
{
    const uint64_t n = a->model->hp.n_embd;
    struct gg_str_esc e;
    return (uint64_t)t->ne[0] == n && t->n_elements == n
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_TENSOR, t->info_off,
                              "tensor '%s' has %" PRIu64 " elements, must "
                              "have shape [%" PRIu64 "]",
                              gg_str_esc(&e, t->name), t->n_elements, n);
}

static enum gguf_status decode_direction(const struct gg_data_gguf *d,
                                         const struct gguf_tensor_info *t,
                                         float *to, struct gguf_error *err)
{
    struct gg_data_rows rows;
    struct gg_str_esc e;
    GG_TRY(gg_data_rows(&d->list, t->index, &rows, err));
    gg_data_read(&rows, 0, t->n_elements, to);
    for (uint64_t i = 0; i < t->n_elements; i++)
        if (!isfinite(to[i]))
            return gg_error_set(err, GGUF_E_NONFINITE, t->info_off,
                                "tensor '%s': element %" PRIu64
                                " is not finite",
                                gg_str_esc(&e, t->name), i);
    return GGUF_OK;
}

/* Descriptions of those in range; all are checked. */
static enum gguf_status describe_directions(struct gguf_adapter *a,
                                            const struct gguf_file *file,
                                            uint32_t first, uint32_t last,
                                            struct gguf_error *err)
{
    for (size_t i = 0; i < gguf_file_n_tensors(file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
        uint64_t il;
        GG_TRY(parse_layer(a, t, &il, err));
        GG_TRY(check_shape(a, t, err));
        if (il < first || (last && il > last))
            continue;
        a->direction[il] =
            gguf_tensor_create_1d(a->ctx, GGUF_DTYPE_F32, t->ne[0]);
        a->info.n_directions++;
        a->info.n_params += t->n_elements;
    }
    if (!a->info.n_directions)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "the control vector has no direction for these "
                            "layers");
    return gguf_ctx_status(a->ctx, err);
}

enum gguf_status gg_control_vector_open(struct gguf_adapter *a,
                                        const struct gguf_file *file,
                                        uint32_t first, uint32_t last,
                                        struct gguf_error *err)
{
    const size_t n = a->model->hp.n_layer;
    const struct gg_source from = { .file = file };
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gg_data_gguf data;
    p.allocator = a->allocator;
    p.mem_size = n * gguf_tensor_overhead();
    p.no_alloc = true;
    GG_TRY(check_keys(a, file, err));
    a->direction =
        gg_mem_alloc_zero(a->allocator, n, sizeof(struct gguf_tensor *));
    if (!a->direction)
        return gg_error_set_nomem(err, n * sizeof(struct gguf_tensor *));
    a->n_directions = n;
    GG_TRY(gguf_ctx_create(&a->ctx, &p, err));
    GG_TRY(describe_directions(a, file, first, last, err));
    GG_TRY(gguf_ctx_alloc_tensors(a->ctx, gguf_host_buft(), a->allocator,
                                  &a->buffer, err));
    gguf_buffer_set_usage(a->buffer, GGUF_USAGE_WEIGHTS);
    a->info.size = gguf_buffer_size(a->buffer);
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    gg_data_gguf_init(&data, &from, codec, true);
    for (size_t i = 0; i < gguf_file_n_tensors(file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
        uint64_t il;
        GG_TRY(parse_layer(a, t, &il, err));
        if (a->direction[il])
            GG_TRY(decode_direction(&data, t, a->direction[il]->data, err));
    }
    return GGUF_OK;
}
