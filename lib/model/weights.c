/* weights.c - tensors of the file become weights of the model
 *
 * Which weights there are, with what shape, is a table; a weight is used
 * where it lies in the mapping, or copied if it cannot be.
 */
#include "config.h"
#include "model/model.h"

#include "base/mem.h"
#include "base/str.h"
#include "dtype/dtype.h"
#include "dtype/order.h"
#include "kern/kern.h"
#include "data/rows.h"
#include "model/shape.h"

#include <stdio.h>
#include <string.h>

/* A weight, and where its pointer goes in struct gg_block or gguf_model. */
struct weight {
    enum gg_weight id;
    size_t slot;
};

#define TOP(id, s) { GG_W_##id, offsetof(struct gguf_model, s) }
static const struct weight top_weights[] = {
    TOP(TOKEN_EMBD, token_embd), TOP(OUTPUT_NORM, output_norm),
    TOP(OUTPUT, output), /* missing: the embeddings again */
    TOP(OUTPUT_B, output_b),     TOP(ROPE_FREQS, rope_freqs),
};

#define BLK(id, s) { GG_W_##id, offsetof(struct gg_block, s) }
static const struct weight block_weights[] = {
    BLK(ATTN_NORM, attn_norm),     BLK(ATTN_Q, attn_q),
    BLK(ATTN_K, attn_k),           BLK(ATTN_V, attn_v),
    BLK(ATTN_Q_B, attn_q_b),       BLK(ATTN_K_B, attn_k_b),
    BLK(ATTN_V_B, attn_v_b),       BLK(ATTN_Q_NORM, attn_q_norm),
    BLK(ATTN_K_NORM, attn_k_norm), BLK(ATTN_OUT, attn_out),
    BLK(ATTN_OUT_B, attn_out_b),   BLK(FFN_NORM, ffn_norm),
    BLK(FFN_GATE, ffn_gate),       BLK(FFN_UP, ffn_up),
    BLK(FFN_DOWN, ffn_down),       BLK(FFN_GATE_B, ffn_gate_b),
    BLK(FFN_UP_B, ffn_up_b),       BLK(FFN_DOWN_B, ffn_down_b),
};

/* ---- checks ---- */

static enum gguf_status check_type(const struct gg_shape *w, const char *name,
                                   const struct gguf_tensor_info *t,
                                   const struct gg_kern *kern,
                                   struct gguf_error *err)
{
    const struct gguf_dtype_info *d = gguf_dtype_find(t->dtype);
    int index = gg_dtype_index(t->dtype);
    if (w->role == GG_VECTOR && t->dtype != GGUF_DTYPE_F32)
        return gg_fail(err, GGUF_E_TENSOR, t->info_off,
                       "tensor '%s' is of type %s (%" PRIu32
                       "), must be F32",
                       name, d ? d->name : "unknown", t->dtype);
    if (index >= 0 && d->family != GGUF_FAMILY_INT && !d->row_header &&
        kern->codec[index].decode)
        return GGUF_OK;
    return gg_fail(err, GGUF_E_TENSOR, t->info_off,
                   "tensor '%s' is of type %s (%" PRIu32
                   "), which cannot be multiplied",
                   name, d ? d->name : "unknown", t->dtype);
}

/* A scale outside of the blocks would have to be applied to the products. */
static enum gguf_status check_scale(const struct gg_source *src,
                                    const struct gguf_tensor_info *t,
                                    struct gguf_error *err)
{
    char scale[GG_SCALE_NAME];
    struct gg_esc e, f;
    if (!gg_scale_name(t, ".scale", scale) ||
        !gg_source_find(src, scale, NULL))
        return GGUF_OK;
    return gg_fail(err, GGUF_E_UNSUPPORTED, t->info_off,
                   "tensor '%s' has a scale of its own, '%s', which is not "
                   "applied here: convert it first",
                   gg_esc(&e, t->name), gg_esc(&f, gg_strz(scale)));
}

/* ---- placing ---- */

/* Bytes that a weight's copy takes. */
static size_t copy_room(size_t size)
{
    return (size + GGUF_TENSOR_ALIGN - 1) & ~(size_t)(GGUF_TENSOR_ALIGN - 1);
}

/* Are its numbers in another byte order than tensors in memory? */
static bool turned(const struct gguf_split_tensor *t)
{
    int type = gg_dtype_index(t->info->dtype);
    return type >= 0 && gg_order_known(type) &&
           gg_order_differs(type, gguf_file_is_big_endian(t->file));
}

/* Can it not be used where it lies: turned, or floats that C would read off
 * their alignment? */
static bool moves(const struct gguf_split_tensor *t)
{
    return turned(t) ||
           (t->info->dtype == GGUF_DTYPE_F32 &&
            (uintptr_t)gguf_file_tensor_data(t->file, t->info->index) %
                sizeof(float));
}

static enum gguf_status place(struct gguf_model *m, struct gguf_tensor *t,
                              const struct gguf_split_tensor *from,
                              struct gguf_error *err)
{
    const uint8_t *base = gguf_file_bytes(from->file);
    const uint8_t *data =
        gguf_file_tensor_data(from->file, from->info->index);
    size_t size = (size_t)from->info->size;
    if (!moves(from))
        return gguf_buffer_place(m->buffer[from->file_no], t,
                                 (uint64_t)(data - base), err);
    uint8_t *copy = (uint8_t *)m->copy + m->copy_used;
    memcpy(copy, data, size);
    if (turned(from))
        gg_order_swap(gg_dtype_index(t->dtype), (uint64_t)t->nb[1], 0, copy,
                      size);
    GG_TRY(gguf_buffer_place(m->copy_buffer, t, m->copy_used, err));
    m->copy_used += copy_room(size);
    return GGUF_OK;
}

/* The tensor at place i of those of all files is the weight w: checked, and
 * *slot set. */
static enum gguf_status take(struct gguf_model *m, const struct weight *w,
                             const char *name, size_t i,
                             const struct gg_layer_hp *l,
                             const struct gg_kern *kern,
                             struct gguf_tensor **slot, struct gguf_error *err)
{
    const struct gg_shape *shape = &gg_shapes[w->id];
    const struct gguf_split_tensor from = gg_source_tensor(&m->src, i);
    const struct gguf_tensor_info *info = from.info;
    struct gg_shape_text text;
    int64_t want[3];
    gg_shape_want(shape, &m->hp, l, want);
    if (!gg_shape_fits(info, want))
        return gg_fail(err, GGUF_E_TENSOR, info->info_off, "%s",
                       gg_shape_text(&text, info, shape, want));
    GG_TRY(check_type(shape, name, info, kern, err));
    GG_TRY(check_scale(&m->src, info, err));
    struct gguf_tensor *t = gguf_tensor_2d(m->ctx, info->dtype, want[0],
                                           want[1]);
    GG_TRY(gguf_ctx_status(m->ctx, err));
    GG_TRY(place(m, t, &from, err));
    *slot = gguf_tensor_name(t, name);
    m->used[i] = 1;
    m->n_params += info->n_elements;
    m->weight_size += info->size;
    return GGUF_OK;
}

/* The weight that w describes, if it is there or must be. */
static enum gguf_status load_one(struct gguf_model *m, const struct weight *w,
                                 const char *name,
                                 const struct gg_layer_hp *l,
                                 const struct gg_kern *kern, void *slots,
                                 struct gguf_error *err)
{
    struct gguf_tensor **slot = (void *)((char *)slots + w->slot);
    size_t i;
    *slot = NULL;
    if (gg_source_find(&m->src, name, &i))
        return gg_source_fail(&m->src, gg_source_tensor(&m->src, i).file_no,
                              take(m, w, name, i, l, kern, slot, err), err);
    if (!(gg_shapes[w->id].need & m->arch->parts))
        return GGUF_OK;
    return gg_fail(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                   "tensor '%s' is missing", name);
}

static enum gguf_status load_table(struct gguf_model *m,
                                   const struct gg_kern *kern,
                                   struct gguf_error *err)
{
    char name[GGUF_TENSOR_NAME];
    for (size_t i = 0; i < GG_LEN(top_weights); i++)
        GG_TRY(load_one(m, &top_weights[i], gg_shapes[top_weights[i].id].name,
                        &m->hp.layer[0], kern, m, err));
    for (uint32_t il = 0; il < m->hp.n_layer; il++) {
        for (size_t i = 0; i < GG_LEN(block_weights); i++) {
            snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", il,
                     gg_shapes[block_weights[i].id].name);
            GG_TRY(load_one(m, &block_weights[i], name, &m->hp.layer[il],
                            kern, &m->block[il], err));
        }
    }
    if (!m->output)
        m->output = m->token_embd;
    return GGUF_OK;
}

static void warn_unused(const struct gguf_model *m)
{
    size_t n_unused = 0, first = 0;
    for (size_t i = gg_source_n_tensors(&m->src); i-- > 0;)
        if (!m->used[i]) {
            n_unused++;
            first = i;
        }
    if (!n_unused || !m->warn)
        return;
    char line[256];
    struct gg_esc e;
    const char *name = gg_esc(&e, gg_source_tensor(&m->src, first).info->name);
    if (n_unused == 1)
        snprintf(line, sizeof line, "tensor '%s' is not used by the model",
                 name);
    else
        snprintf(line, sizeof line,
                 "%zu tensors are not used by the model, '%s' is the first",
                 n_unused, name);
    m->warn(m->warn_user, line);
}

/* A buffer round the mapping of each file: read-only, as nothing writes to
 * weights. */
static enum gguf_status wrap_files(struct gguf_model *m,
                                   struct gguf_error *err)
{
    size_t n = gg_source_n_files(&m->src);
    m->buffer = gg_alloc_zero(m->allocator, n, sizeof(struct gguf_buffer *));
    if (!m->buffer)
        return gg_fail_nomem(err, n * sizeof(struct gguf_buffer *));
    for (size_t i = 0; i < n; i++) {
        const struct gguf_file *f = gg_source_file(&m->src, i);
        GG_TRY(gguf_buffer_from_host(&m->buffer[i],
                                     (void *)(uintptr_t)gguf_file_bytes(f),
                                     (size_t)gguf_file_size(f), m->allocator,
                                     err));
        gguf_buffer_set_usage(m->buffer[i], GGUF_USAGE_WEIGHTS);
    }
    return GGUF_OK;
}

/* Memory for copies. */
static enum gguf_status make_copy(struct gguf_model *m, struct gguf_error *err)
{
    for (size_t i = 0; i < gg_source_n_tensors(&m->src); i++) {
        const struct gguf_split_tensor t = gg_source_tensor(&m->src, i);
        if (moves(&t))
            m->copy_size += copy_room((size_t)t.info->size);
    }
    if (!m->copy_size)
        return GGUF_OK;
    m->copy = gg_alloc_aligned(m->allocator, m->copy_size, GGUF_TENSOR_ALIGN);
    if (!m->copy)
        return gg_fail_nomem(err, m->copy_size);
    GG_TRY(gguf_buffer_from_host(&m->copy_buffer, m->copy, m->copy_size,
                                 m->allocator, err));
    gguf_buffer_set_usage(m->copy_buffer, GGUF_USAGE_WEIGHTS);
    return GGUF_OK;
}

/* Memory for descriptions and marks. */
static enum gguf_status make_room(struct gguf_model *m, struct gguf_error *err)
{
    size_t n = gg_source_n_tensors(&m->src);
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = m->allocator;
    p.mem_size = (n + 1) * gguf_tensor_overhead();
    p.no_alloc = true;
    GG_TRY(gguf_ctx_create(&m->ctx, &p, err));
    m->used = gg_alloc_zero(m->allocator, n ? n : 1, 1);
    m->block = gg_alloc_zero(m->allocator, m->hp.n_layer, sizeof *m->block);
    if (!m->used || !m->block)
        return gg_fail_nomem(err, n + m->hp.n_layer * sizeof *m->block);
    return GGUF_OK;
}

enum gguf_status gg_weights_load(struct gguf_model *m, struct gguf_error *err)
{
    struct gg_kern kern;
    gg_kern_init(&kern, 0);
    GG_TRY(make_room(m, err));
    GG_TRY(wrap_files(m, err));
    GG_TRY(make_copy(m, err));
    GG_TRY(load_table(m, &kern, err));
    warn_unused(m);
    return GGUF_OK;
}
