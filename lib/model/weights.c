/* weights.c - tensors of the file become weights of the model
 *
 * Which weights there are, with what shape, is a table; a weight is used
 * where it lies in the mapping.
 */
#include "config.h"
#include "model/model.h"

#include "base/mem.h"
#include "base/str.h"
#include "dtype/dtype.h"
#include "kern/kern.h"

#include <stdio.h>
#include <string.h>

/* Sizes that occur in shapes. */
enum dim { NONE, EMBD, VOCAB, Q, K, V, HEADS_V, HEAD, FF, ROT };

enum role {
    MATRIX, /* multiplied or looked up: any type that decodes */
    VECTOR  /* read as it is: F32 */
};

struct weight {
    const char *name;
    size_t slot; /* offset of the pointer in struct gg_block or gguf_model */
    enum role role;
    bool optional;
    enum dim ne[2];
};

#define TOP(n, s, r, o, ...)                                                  \
    { n, offsetof(struct gguf_model, s), r, o, { __VA_ARGS__ } }
static const struct weight top_weights[] = {
    TOP("token_embd.weight", token_embd, MATRIX, false, EMBD, VOCAB),
    TOP("output_norm.weight", output_norm, VECTOR, false, EMBD),
    /* missing: the embeddings again */
    TOP("output.weight", output, MATRIX, true, EMBD, VOCAB),
    TOP("output.bias", output_b, VECTOR, true, VOCAB),
    TOP("rope_freqs.weight", rope_freqs, VECTOR, true, ROT),
};

#define BLK(n, s, r, o, ...)                                                  \
    { n, offsetof(struct gg_block, s), r, o, { __VA_ARGS__ } }
static const struct weight block_weights[] = {
    BLK("attn_norm.weight", attn_norm, VECTOR, false, EMBD),
    BLK("attn_q.weight", attn_q, MATRIX, false, EMBD, Q),
    BLK("attn_k.weight", attn_k, MATRIX, false, EMBD, K),
    BLK("attn_v.weight", attn_v, MATRIX, false, EMBD, V),
    BLK("attn_q.bias", attn_q_b, VECTOR, true, Q),
    BLK("attn_k.bias", attn_k_b, VECTOR, true, K),
    BLK("attn_v.bias", attn_v_b, VECTOR, true, V),
    BLK("attn_q_norm.weight", attn_q_norm, VECTOR, true, HEAD),
    BLK("attn_k_norm.weight", attn_k_norm, VECTOR, true, HEAD),
    BLK("attn_output.weight", attn_out, MATRIX, false, HEADS_V, EMBD),
    BLK("attn_output.bias", attn_out_b, VECTOR, true, EMBD),
    BLK("ffn_norm.weight", ffn_norm, VECTOR, false, EMBD),
    BLK("ffn_gate.weight", ffn_gate, MATRIX, false, EMBD, FF),
    BLK("ffn_up.weight", ffn_up, MATRIX, false, EMBD, FF),
    BLK("ffn_down.weight", ffn_down, MATRIX, false, FF, EMBD),
    BLK("ffn_gate.bias", ffn_gate_b, VECTOR, true, FF),
    BLK("ffn_up.bias", ffn_up_b, VECTOR, true, FF),
    BLK("ffn_down.bias", ffn_down_b, VECTOR, true, EMBD),
};

static int64_t dim_of(const struct gg_hparams *hp,
                      const struct gg_layer_hp *l, enum dim d)
{
    switch (d) {
    case NONE: return 1;
    case EMBD: return hp->n_embd;
    case VOCAB: return hp->n_vocab;
    case Q: return (int64_t)l->n_head * hp->dim_k;
    case K: return (int64_t)l->n_head_kv * hp->dim_k;
    case V: return (int64_t)l->n_head_kv * hp->dim_v;
    case HEADS_V: return (int64_t)l->n_head * hp->dim_v;
    case HEAD: return hp->dim_k;
    case FF: return l->n_ff;
    case ROT: return hp->rope.n_dims / 2;
    }
    return 0;
}

/* ---- checks ---- */

static void shape_text(char *out, size_t size, const int64_t *ne, unsigned n)
{
    int used = snprintf(out, size, "[");
    for (unsigned i = 0; i < n && used < (int)size; i++)
        used += snprintf(out + used, size - (size_t)used, "%s%" PRId64,
                         i ? ", " : "", ne[i]);
    if (used < (int)size)
        snprintf(out + used, size - (size_t)used, "]");
}

static enum gguf_status check_shape(const struct weight *w, const char *name,
                                    const struct gguf_tensor_info *t,
                                    const int64_t want[2],
                                    struct gguf_error *err)
{
    unsigned n_want = w->ne[1] == NONE ? 1 : 2;
    bool same = t->ne[0] == want[0] && t->ne[1] == want[1];
    for (unsigned i = 2; i < t->n_dims; i++)
        same &= t->ne[i] == 1;
    if (same)
        return GGUF_OK;
    char a[128], b[64];
    shape_text(a, sizeof a, t->ne, t->n_dims);
    shape_text(b, sizeof b, want, n_want);
    return gg_fail(err, GGUF_E_TENSOR, t->info_off,
                   "tensor '%s' has shape %s, must be %s", name, a, b);
}

static enum gguf_status check_type(const struct weight *w, const char *name,
                                   const struct gguf_tensor_info *t,
                                   const struct gg_kern *kern,
                                   struct gguf_error *err)
{
    const struct gguf_dtype_info *d = gguf_dtype_find(t->dtype);
    int index = gg_dtype_index(t->dtype);
    if (w->role == VECTOR && t->dtype != GGUF_DTYPE_F32)
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

/* ---- placing ---- */

/* Bytes that a VECTOR's copy takes. */
static size_t copy_room(size_t size)
{
    return (size + GGUF_TENSOR_ALIGN - 1) & ~(size_t)(GGUF_TENSOR_ALIGN - 1);
}

static bool askew(const struct gguf_model *m, const struct gguf_tensor_info *t)
{
    return t->dtype == GGUF_DTYPE_F32 &&
           (uintptr_t)gguf_file_tensor_data(m->file, t->index) %
               sizeof(float);
}

static enum gguf_status place(struct gguf_model *m, struct gguf_tensor *t,
                              const struct gguf_tensor_info *info,
                              struct gguf_error *err)
{
    const uint8_t *base = gguf_file_bytes(m->file);
    const uint8_t *data = gguf_file_tensor_data(m->file, info->index);
    if (!askew(m, info))
        return gguf_buffer_place(m->buffer, t, (uint64_t)(data - base), err);
    memcpy((uint8_t *)m->copy + m->copy_used, data, (size_t)info->size);
    GG_TRY(gguf_buffer_place(m->copy_buffer, t, m->copy_used, err));
    m->copy_used += copy_room((size_t)info->size);
    return GGUF_OK;
}

/* The weight that w describes: checked, and *slot set. */
static enum gguf_status load_one(struct gguf_model *m, const struct weight *w,
                                 const char *name,
                                 const struct gg_layer_hp *l,
                                 const struct gg_kern *kern, void *slots,
                                 struct gguf_error *err)
{
    struct gguf_tensor **slot = (void *)((char *)slots + w->slot);
    const struct gguf_tensor_info *info = gguf_file_tensor_find(m->file, name);
    *slot = NULL;
    if (!info && w->optional)
        return GGUF_OK;
    if (!info)
        return gg_fail(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                       "tensor '%s' is missing", name);
    const int64_t want[2] = { dim_of(&m->hp, l, w->ne[0]),
                              dim_of(&m->hp, l, w->ne[1]) };
    GG_TRY(check_shape(w, name, info, want, err));
    GG_TRY(check_type(w, name, info, kern, err));
    struct gguf_tensor *t = gguf_tensor_2d(m->ctx, info->dtype, want[0],
                                           want[1]);
    GG_TRY(gguf_ctx_status(m->ctx, err));
    GG_TRY(place(m, t, info, err));
    *slot = gguf_tensor_name(t, name);
    m->used[info->index] = 1;
    m->n_params += info->n_elements;
    m->weight_size += info->size;
    return GGUF_OK;
}

static enum gguf_status load_table(struct gguf_model *m,
                                   const struct gg_kern *kern,
                                   struct gguf_error *err)
{
    char name[GGUF_TENSOR_NAME];
    for (size_t i = 0; i < GG_LEN(top_weights); i++)
        GG_TRY(load_one(m, &top_weights[i], top_weights[i].name,
                        &m->hp.layer[0], kern, m, err));
    for (uint32_t il = 0; il < m->hp.n_layer; il++) {
        for (size_t i = 0; i < GG_LEN(block_weights); i++) {
            snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", il,
                     block_weights[i].name);
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
    for (size_t i = gguf_file_n_tensors(m->file); i-- > 0;)
        if (!m->used[i]) {
            n_unused++;
            first = i;
        }
    if (!n_unused || !m->warn)
        return;
    char line[256];
    struct gg_esc e;
    const char *name = gg_esc(&e, gguf_file_tensor(m->file, first)->name);
    if (n_unused == 1)
        snprintf(line, sizeof line, "tensor '%s' is not used by the model",
                 name);
    else
        snprintf(line, sizeof line,
                 "%zu tensors are not used by the model, '%s' is the first",
                 n_unused, name);
    m->warn(m->warn_user, line);
}

/* Memory for descriptions, marks, and copies of what lies askew. */
static enum gguf_status make_room(struct gguf_model *m, struct gguf_error *err)
{
    size_t n = gguf_file_n_tensors(m->file);
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = m->allocator;
    p.mem_size = (n + 1) * gguf_tensor_overhead();
    p.no_alloc = true;
    GG_TRY(gguf_ctx_create(&m->ctx, &p, err));
    m->used = gg_alloc_zero(m->allocator, n ? n : 1, 1);
    m->block = gg_alloc_zero(m->allocator, m->hp.n_layer, sizeof *m->block);
    if (!m->used || !m->block)
        return gg_fail_nomem(err, n + m->hp.n_layer * sizeof *m->block);
    /* read-only: nothing writes to weights */
    GG_TRY(gguf_buffer_from_host(&m->buffer,
                                 (void *)(uintptr_t)gguf_file_bytes(m->file),
                                 (size_t)gguf_file_size(m->file),
                                 m->allocator, err));
    gguf_buffer_set_usage(m->buffer, GGUF_USAGE_WEIGHTS);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(m->file, i);
        if (askew(m, t))
            m->copy_size += copy_room((size_t)t->size);
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

enum gguf_status gg_weights_load(struct gguf_model *m, struct gguf_error *err)
{
    struct gg_kern kern;
    gg_kern_init(&kern, 0);
    GG_TRY(make_room(m, err));
    GG_TRY(load_table(m, &kern, err));
    warn_unused(m);
    return GGUF_OK;
}
