/* SPDX-License-Identifier: MIT */
/* run_buffers.c - prepare a run: check types, cut tensors, allocate buffers */
#include "config.h"
#include "quant/run/job_run.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/byte_order.h"
#include "dtype/interleave.h"

#include <string.h>

enum {
    CHUNK = 1 << 18, /* elements written at once */
    ALIGN = 64       /* alignment of buffers for vector loads */
};
#define DEFAULT_MEMORY (UINT64_C(128) << 20)

/* Does the source give blocks in the output's type, so that nothing is
 * encoded? */
static bool has_blocks(const struct gguf_quant *q,
                       const struct gg_job_tensor *t)
{
    struct gg_data_rows rows;
    return t->pub.to == t->pub.from &&
           gg_job_rows(q, t, &rows, NULL) == GGUF_OK && rows.blocks;
}

/* Check that the rows of a tensor are whole groups, if its type has groups. */
static enum gguf_status check_groups(const struct gguf_quant_tensor *t,
                                     struct gguf_error *err)
{
    const int from = gg_dtype_index(t->from);
    const unsigned n = from < 0 ? 1 : gg_interleave_rows(from);
    struct gg_str_esc esc;
    if (t->ne[1] % (int64_t)n == 0)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "tensor '%s': %" PRId64
                        " rows, must be a multiple of %u, which %s stores "
                        "together",
                        gg_str_esc(&esc, gg_str_z(t->name)), t->ne[1], n,
                        gguf_dtype_find(t->from)->name);
}

/* Can the rows of a tensor be encoded, and put into groups if its type has
 * groups? */
static bool can_encode(const struct gguf_quant *q,
                       const struct gg_job_tensor *t)
{
    const int to = gg_dtype_index(t->pub.to);
    return has_blocks(q, t) ||
           (gg_job_encoder(q, t) &&
            (gg_interleave_rows(to) == 1 || gg_interleave_has_put(to) ||
             q->kern.codec[to].encode_apart));
}

/* Check that every tensor can be decoded and encoded. */
static enum gguf_status check_codecs(const struct gguf_quant *q,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gguf_quant_tensor *t = &q->t[i].pub;
        const struct gg_data_info *src = q->t[i].src;
        struct gg_str_esc esc;
        if (t->copied && src->big_endian &&
            (src->size_inferred ||
             !gg_byte_order_is_known(gg_dtype_index(t->from))))
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, src->info_off,
                "tensor '%s': type %" PRIu32
                " cannot be copied from a big-endian file: its "
                "layout is unknown",
                gg_str_esc(&esc, gg_str_z(t->name)), t->from);
        if (t->copied || q->t[i].moves)
            continue;
        const bool readable =
            gg_stored_can_decode(q->kern.codec, gg_dtype_index(t->from));
        const struct gg_codec_kern *to =
            &q->kern.codec[gg_job_row_type(&q->t[i])];
        if (t->needs_imatrix ||
            (!q->t[i].imatrix && to->flags & GG_CODEC_NEEDS_WEIGHT))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "tensor '%s': %s needs importance data%s",
                                gg_str_esc(&esc, gg_str_z(t->name)),
                                gguf_dtype_find(t->to)->name,
                                !q->p.imatrix ? " (--imatrix)"
                                : t->bad_imatrix
                                    ? "; those given have another shape"
                                    : "; those given have no entry for it");
        GG_TRY(check_groups(t, err));
        if (!readable || !can_encode(q, &q->t[i]))
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                "tensor '%s': %s %s is not supported yet",
                gg_str_esc(&esc, gg_str_z(t->name)),
                readable ? "encoding to" : "decoding",
                gguf_dtype_find(readable ? t->to : t->from)->name);
    }
    return GGUF_OK;
}

/* Must tensor i be read as floats? It must if a job encodes it, or if copies of
 * float tensors are checked too (except where the recipe keeps all types). */
static bool wants_rows(const struct gg_quant_run *r, size_t i)
{
    const struct gguf_quant *q = r->jobs[0];
    const struct gguf_quant_tensor *t = &gg_quant_run_first_tensor(r, i)->pub;
    const struct gguf_dtype_info *type = gguf_dtype_find(t->from);
    bool looks = q->p.nonfinite == GGUF_NONFINITE_ZERO;
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gg_job_tensor *jt = gg_quant_run_tensor(r, k, i);
        if (jt && !jt->pub.copied)
            return true;
        looks |= jt && r->jobs[k]->p.recipe->base != GG_RECIPE_KEEP;
    }
    return looks && t->n_elements && type &&
           type->family == GGUF_FAMILY_FLOAT &&
           q->kern.codec[gg_dtype_index(t->from)].decode;
}

static uint64_t rows_of(const struct gguf_quant_tensor *t)
{
    return t->n_elements ? t->n_elements / (uint64_t)t->ne[0] : 1;
}

/* Prepare to read tensor i as jobs encode it: with scale tensors or without,
 * the same in all jobs. */
static bool set_rows(struct gg_quant_run *r, size_t i,
                     struct gg_data_rows *out)
{
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
        if (t && !t->pub.copied)
            return gg_job_rows(r->jobs[k], t, out, NULL) == GGUF_OK;
    }
    size_t k = 0;
    while (!gg_quant_run_tensor(r, k, i))
        k++;
    return gg_job_rows(r->jobs[k], gg_quant_run_tensor(r, k, i), out, NULL) ==
           GGUF_OK;
}

/* Rows that must stay in one chunk: those of a group, in the input or in an
 * output. All such numbers divide the largest. */
static uint64_t rows_of_group(const struct gg_quant_run *r, size_t i)
{
    unsigned most = 1;
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gg_job_tensor *jt = gg_quant_run_tensor(r, k, i);
        if (!jt || jt->pub.copied)
            continue;
        if (jt->moves)
            most =
                GG_MAX(most, gg_interleave_rows(gg_dtype_index(jt->pub.from)));
        most = GG_MAX(most, gg_interleave_rows(gg_dtype_index(jt->pub.to)));
    }
    return most;
}

/* Cut all tensors into chunks of at most n elements. *most receives the bytes
 * that the encoded rows of a chunk need. */
static void cut_tensors(struct gg_quant_run *r, uint64_t n, uint64_t *most)
{
    uint64_t first = 0;
    *most = 0;
    for (size_t i = 0; i < r->n_t; i++) {
        const struct gguf_quant_tensor *t =
            &gg_quant_run_first_tensor(r, i)->pub;
        struct gg_quant_run_cut *cut = &r->cuts[i];
        const struct gg_data_info *from = gg_quant_run_first_tensor(r, i)->src;
        cut->first = first;
        cut->swap = from->big_endian;
        cut->row_from = from->size / rows_of(t);
        cut->rows = wants_rows(r, i) && set_rows(r, i, &cut->src);
        if (!cut->rows) {
            first += (t->from_size + GG_RUN_PIECE - 1) / GG_RUN_PIECE;
            continue;
        }
        uint64_t ne0 = (uint64_t)t->ne[0], rows = rows_of(t), out = 0;
        cut->n_rows = (uint64_t)t->ne[1];
        const uint64_t group = rows_of_group(r, i);
        cut->per_chunk = GG_MAX(1, n / ne0 / group) * group;
        cut->per_chunk = GG_MIN(cut->per_chunk, cut->n_rows);
        cut->per_mat = (cut->n_rows + cut->per_chunk - 1) / cut->per_chunk;
        first += cut->per_mat * (rows / cut->n_rows);
        for (size_t k = 0; k < r->n_jobs; k++) {
            const struct gg_job_tensor *jt = gg_quant_run_tensor(r, k, i);
            if (jt && !jt->pub.copied)
                out += gg_quant_run_row_size(jt) *
                       (cut->per_chunk + gg_quant_run_group(jt));
        }
        *most = GG_MAX(*most, out);
    }
    r->cuts[r->n_t].first = first;
}

/* Choose sizes of chunks and buffers within the memory limit. */
static enum gguf_status make_buffers(struct gg_quant_run *r,
                                     struct gguf_error *err)
{
    const struct gguf_quant *q = r->jobs[0];
    uint64_t limit = q->p.max_memory ? q->p.max_memory : DEFAULT_MEMORY;
    uint64_t slice = GG_RUN_SLICE, weights = 0, out, size;
    unsigned nth = gguf_pool_n_threads(q->p.pool);
    size_t n_outer = 0;

    for (size_t i = 0; i < r->n_t; i++) {
        const struct gguf_quant_tensor *t =
            &gg_quant_run_first_tensor(r, i)->pub;
        uint64_t ne0 = (uint64_t)t->ne[0];
        r->total += t->from_size;
        if (wants_rows(r, i))
            slice = GG_MAX(slice, ne0);
        for (size_t k = 0; k < r->n_jobs; k++) {
            const struct gg_job_tensor *jt = gg_quant_run_tensor(r, k, i);
            if (jt && jt->imatrix)
                weights = GG_MAX(weights, ne0);
            n_outer += jt && jt->outer;
        }
    }
    slice = (slice * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    weights = (weights * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    r->slice_size = (size_t)slice;
    r->weight_size = (size_t)weights;
    r->check_size = q->p.measure || n_outer ? (size_t)slice : 0;
    slice += weights * r->n_jobs + r->check_size;
    for (uint64_t n = CHUNK;; n /= 2) {
        cut_tensors(r, n, &out);
        if (gg_ckd_add(&size, slice, out) ||
            gg_ckd_align(&size, size + ALIGN, ALIGN) || size > SIZE_MAX / 2)
            return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                                "a row is too long");
        if (size <= limit / nth || n < GG_RUN_SLICE)
            break;
    }
    if (size > limit)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the longest rows need buffers of %" PRIu64
                            " bytes, limit is %" PRIu64,
                            size, limit);
    r->n_threads = (unsigned)GG_MIN(nth, limit / size);
    uint64_t n_losses = r->cuts[r->n_t].first;
    if (q->p.measure && (gg_ckd_mul(&n_losses, n_losses, r->n_jobs) ||
                         !(r->losses = gg_mem_alloc_zero(
                               q->p.allocator, n_losses, sizeof *r->losses))))
        return gg_error_set_nomem(err, SIZE_MAX);
    r->buffer_size = (size_t)size;
    r->buffers = gg_mem_alloc_aligned(q->p.allocator,
                                      r->n_threads * r->buffer_size, ALIGN);
    return r->buffers ? GGUF_OK
                      : gg_error_set_nomem(err, r->n_threads * r->buffer_size);
}

enum gguf_status gg_quant_run_prepare(struct gg_quant_run *r,
                                      struct gguf_error *err)
{
    for (size_t k = 0; k < r->n_jobs; k++)
        GG_TRY(check_codecs(r->jobs[k], err));
    return make_buffers(r, err);
}
