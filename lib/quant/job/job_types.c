/* SPDX-License-Identifier: MIT */
/* job_types.c - set a tensor's type and everything that depends on it */
#include "config.h"
#include "quant/job/job.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/interleave.h"
#include "quant/job/outer_scale.h"

#include <string.h>

static enum gguf_status check_source(const struct gguf_quant *q,
                                     const struct gguf_quant_tensor *t,
                                     struct gguf_error *err)
{
    const struct gguf_dtype_info *from = gguf_dtype_find(t->from);
    struct gg_str_esc esc;
    if (!from || from->family == GGUF_FAMILY_REMOVED)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tensor '%s': unknown type %u",
                            gg_str_esc(&esc, gg_str_z(t->name)), t->from);
    const unsigned rows = gg_interleave_rows(gg_dtype_index(t->from));
    if (t->ne[1] % (int64_t)rows)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tensor '%s': %" PRId64
                            " rows, must be a multiple of %u, which %s stores "
                            "together",
                            gg_str_esc(&esc, gg_str_z(t->name)), t->ne[1],
                            rows, from->name);
    if (from->family != GGUF_FAMILY_FLOAT && !q->p.allow_requantize)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tensor '%s' is %s already: --allow-requantize "
                            "quantizes it again",
                            gg_str_esc(&esc, gg_str_z(t->name)), from->name);
    return GGUF_OK;
}

/* Is the change of type a move of rows into groups, or out of them? */
static bool is_move(const struct gguf_quant *q, const struct gg_job_tensor *jt)
{
    const struct gguf_quant_tensor *t = &jt->pub;
    const int from = gg_dtype_index(t->from), to = gg_dtype_index(t->to);
    if (from < 0 || to < 0 || from == to || t->merged || jt->src->big_endian ||
        !gg_job_bytes(q, jt))
        return false;
    const int group = gg_interleave_rows(from) > 1 ? from : to;
    return t->ne[1] % (int64_t)gg_interleave_rows(group) == 0 &&
           t->ne[0] % (int64_t)gg_interleave_unit(group) == 0 &&
           (group == from ? gg_interleave_plain(from) == to
                          : gg_interleave_of(from) == to);
}

const struct gg_imatrix_entry *gg_job_imatrix(const struct gguf_quant *q,
                                              const struct gg_job_tensor *jt)
{
    const struct gguf_imatrix *im = q->p.imatrix;
    const struct gguf_str name = jt->src->name;
    const uint64_t n = jt->pub.n_elements / (uint64_t)jt->pub.ne[1];
    size_t i;
    if (!im || !gguf_imatrix_find_for_matrix(im, name, n, &i))
        return NULL;
    /* llama-quantize finds data by the tensor's own name only */
    return q->p.compat && !gguf_imatrix_find(im, name, &i) ? NULL
                                                           : im->entries[i];
}

/* Attach the importance data of a tensor if its type uses them, and count the
 * values that must be replaced. */
static enum gguf_status load_importance(struct gguf_quant *q,
                                        struct gg_job_tensor *jt,
                                        struct gguf_error *err)
{
    struct gguf_quant_tensor *t = &jt->pub;
    const struct gg_codec_kern *to = &q->kern.codec[gg_job_row_type(jt)];
    const struct gg_imatrix_entry *e = gg_job_imatrix(q, jt);
    size_t ne0 = (size_t)t->ne[0];
    if (!q->p.imatrix || jt->moves ||
        (to->encode && !(to->flags & GG_CODEC_WEIGHT)))
        return GGUF_OK; /* no data, or its encoder ignores them */
    if (!e) {
        t->bad_imatrix =
            gg_imatrix_find_str(q->p.imatrix, jt->src->name) != NULL;
        t->lacks_imatrix =
            jt->cls != GG_CLASS_OUTPUT && jt->cls != GG_CLASS_TOKEN_EMBD;
        return GGUF_OK;
    }
    float *row = gg_mem_alloc(q->p.allocator, ne0 * sizeof *row);
    if (!row)
        return gg_error_set_nomem(err, ne0 * sizeof *row);
    for (uint64_t at = 0; at < e->n_values; at += ne0)
        t->n_mended += gg_imatrix_weights(e, at, ne0, row);
    gg_mem_free(q->p.allocator, row);
    t->has_imatrix = true;
    jt->imatrix = e;
    return GGUF_OK;
}

/* Allocate the scales of a tensor that becomes NVFP4, if it gets some. */
static enum gguf_status make_outer(struct gguf_quant *q,
                                   struct gg_job_tensor *jt,
                                   struct gguf_error *err)
{
    jt->outer = NULL;
    if (!gg_outer_scale_is_wanted(q, jt, jt->pub.to))
        return GGUF_OK;
    size_t n = gg_job_n_mats(jt);
    jt->outer = gg_mem_arena_alloc(&q->arena, n * sizeof *jt->outer);
    return jt->outer ? GGUF_OK
                     : gg_error_set_nomem(err, n * sizeof *jt->outer);
}

enum gguf_status gg_job_set_type(struct gguf_quant *q,
                                 struct gg_job_tensor *jt, uint32_t wanted,
                                 uint32_t to, enum gguf_quant_reason why,
                                 const char *text, struct gguf_error *err)
{
    struct gguf_quant_tensor *t = &jt->pub;
    uint64_t row;
    t->to = t->n_elements ? to : t->from;
    t->wanted = wanted;
    t->reason = why;
    t->merged = q->merge && gg_data_is_merged(&q->merged, jt->no);
    t->copied = t->to == t->from && !t->merged && gg_job_bytes(q, jt);
    jt->moves = is_move(q, jt);
    t->has_imatrix = t->needs_imatrix = t->bad_imatrix = false;
    t->lacks_imatrix = false;
    t->n_mended = 0;
    jt->imatrix = NULL;
    jt->outer = NULL;
    size_t n = strlen(text);
    t->rule = gg_mem_arena_strndup(&q->arena, text, n);
    if (!t->rule)
        return gg_error_set_nomem(err, n + 1);
    t->to_size = t->from_size;
    t->copied = t->copied || !t->n_elements;
    if (t->copied)
        return GGUF_OK;
    if (!jt->moves)
        GG_TRY(check_source(q, t, err));
    GG_TRY(gguf_dtype_row_size(t->to, (uint64_t)t->ne[0], &row, err));
    if (gg_ckd_mul(&t->to_size, row, t->n_elements / (uint64_t)t->ne[0]))
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "the output is too large");
    GG_TRY(make_outer(q, jt, err));
    GG_TRY(load_importance(q, jt, err));
    t->needs_imatrix =
        !jt->imatrix && !jt->moves &&
        gg_recipe_choose_needs_imatrix(q->p.recipe, jt->cls, t->to);
    return GGUF_OK;
}

void gg_job_update_totals(struct gguf_quant *q)
{
    struct gguf_quant_totals s = { .struct_size = sizeof s,
                                   .file_size = q->totals.file_size,
                                   .n_left_out = q->totals.n_left_out,
                                   .n_imatrix_unknown = q->n_imatrix_unknown };
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gguf_quant_tensor *t = &q->t[i].pub;
        s.n_elements += t->n_elements;
        s.from_size += t->from_size;
        s.to_size += t->to_size;
        if (q->t[i].outer)
            s.to_size += sizeof(float) * gg_job_n_mats(&q->t[i]);
        s.n_fallbacks += t->to != t->wanted;
        s.n_imatrix += (uint64_t)t->has_imatrix;
        s.n_needs_imatrix += (uint64_t)t->needs_imatrix;
        s.n_bad_imatrix += (uint64_t)t->bad_imatrix;
        s.n_lacks_imatrix += (uint64_t)t->lacks_imatrix;
        s.n_mended += t->n_mended != 0;
    }
    q->totals = s;
}
