/* SPDX-License-Identifier: MIT */
/* row_chunks.c - decode, encode and write the rows of a run
 *
 * The tensors are cut into chunks of whole rows, numbered in the order of
 * writing. The threads of the pool take one chunk after another: each decodes a
 * slice of rows into floats, handles non-finite weights, encodes the slice, and
 * writes the chunk's bytes to their place in the output. Threads do not wait
 * for each other, so that reading, computing and writing overlap. The bytes of
 * a chunk depend on its rows alone. Each thread needs memory for one slice and
 * one chunk; pages of the input are released after the chunk.
 */
#include "config.h"
#include "quant/run/job_run.h"
#include "base/compiler.h"
#include "base/str.h"
#include "dtype/byte_order.h"
#include "dtype/interleave.h"
#include "file/writer_int.h"
#include "quant/run/finite_rows.h"

#include <string.h>

enum { COPY = 1 << 14 }; /* bytes swapped at once */

#define READ_AHEAD (UINT64_C(8) << 20) /* bytes requested ahead of use */

struct chunk {
    size_t i;           /* number of the tensor */
    uint64_t no;        /* number of the chunk */
    uint64_t mat;       /* number of the matrix in the tensor */
    uint64_t row, n;    /* first row in the matrix, number of rows */
    const uint8_t *src; /* bytes of the first row */
    bool zeroed;        /* non-finite weights were replaced by zero */
};

/* Tensor i in the output of job k. NULL: the job leaves it out, or is not
 * written again. */
static const struct gg_job_tensor *find_output(const struct gg_quant_run *r,
                                               size_t k, size_t i)
{
    return !r->again || r->again == k + 1 ? gg_quant_run_tensor(r, k, i)
                                          : NULL;
}

/* Write bytes of tensor i at their place in the output of job k. */
static enum gguf_status write_at(struct gg_quant_run *r, size_t k, size_t i,
                                 uint64_t off, const void *data, uint64_t size,
                                 struct gguf_error *err)
{
    const struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
    struct gguf_writer *w = r->writers[r->first_writer[k] + t->shard];
    if (r->again) /* the writer is finished */
        return gg_outfile_write_at(
            &w->out, gguf_writer_data_off(w) + w->tensor[t->index].off + off,
            data, size, err);
    return gguf_writer_write_at(w, t->index, off, data, size, err);
}

/* Replace non-finite floats of a type by zero; slice has room for all. */
static void zero_nonfinite(const struct gguf_quant *q, int type, uint8_t *buf,
                           size_t size, float *slice)
{
    size_t width = gg_dtype_by_index(type)->block_size, n = size / width;
    q->kern.codec[type].decode(buf, slice, n);
    for (size_t e = 0; e < n; e++)
        if (!gg_quant_is_finite(slice + e, 1))
            memset(buf + e * width, 0, width);
}

/* Write bytes of the input from off on, converted to little-endian. If slice is
 * not NULL, non-finite floats are replaced by zero; blocks are not changed. */
static enum gguf_status copy_at(struct gg_quant_run *r, size_t k, size_t i,
                                uint64_t off, const uint8_t *src,
                                uint64_t size, float *slice,
                                struct gguf_error *err)
{
    const struct gg_quant_run_cut *cut = &r->cuts[i];
    uint8_t buf[COPY];
    if (!cut->swap && !slice)
        return write_at(r, k, i, off, src, size, err);
    int type = gg_dtype_index(gg_quant_run_tensor(r, k, i)->pub.from);
    for (uint64_t at = 0; at < size;) {
        size_t n = (size_t)GG_MIN(size - at, (uint64_t)COPY);
        if (cut->swap)
            n = (size_t)(gg_byte_order_floor(type, cut->row_from,
                                             off + at + n) -
                         off - at);
        memcpy(buf, src + at, n);
        if (cut->swap)
            gg_byte_order_swap(type, cut->row_from, off + at, buf, n);
        if (slice && gg_dtype_by_index(type)->family == GGUF_FAMILY_FLOAT)
            zero_nonfinite(r->jobs[k], type, buf, n, slice);
        GG_TRY(write_at(r, k, i, off + at, buf, n, err));
        at += n;
    }
    return GGUF_OK;
}

/* Decode n rows that job k encoded, and add their errors. */
static void measure_loss(struct gg_quant_run *r, const struct chunk *c,
                         size_t k, const float *slice, const float *weights,
                         const uint8_t *encoded, size_t n, unsigned ith)
{
    const struct gg_job_tensor *t = gg_quant_run_tensor(r, k, c->i);
    const struct gg_codec_kern *codec =
        &r->jobs[k]->kern.codec[gg_job_row_type(t)];
    float *back = (float *)(void *)(r->buffers + (ith + 1) * r->buffer_size -
                                    r->check_size);
    size_t ne0 = (size_t)t->pub.ne[0];
    if (!codec->decode)
        return;
    codec->decode(encoded, back, n * ne0);
    for (size_t e = 0; t->outer && e < n * ne0; e++)
        back[e] *= t->outer[c->mat];
    gg_loss_add(&r->losses[k * r->cuts[r->n_t].first + c->no], slice, back, n,
                ne0, weights);
}

/* Divide x by the scale of its matrix, into the thread's buffer. */
static const float *unscale_rows(struct gg_quant_run *r, const float *x,
                                 size_t n, float scale, unsigned ith)
{
    float *y = (float *)(void *)(r->buffers + (ith + 1) * r->buffer_size -
                                 r->check_size);
    for (size_t e = 0; e < n; e++)
        y[e] = x[e] / scale;
    return y;
}

/* Move the rows of a chunk into groups, or out of them. dst is NULL if that was
 * done. Returns their size in bytes. */
static uint64_t move_rows(const struct gg_quant_run *r, const struct chunk *c,
                          const struct gguf_quant_tensor *t, uint8_t *dst)
{
    const int from = gg_dtype_index(t->from), to = gg_dtype_index(t->to);
    const uint64_t ne0 = (uint64_t)t->ne[0];
    const uint64_t row_from = r->cuts[c->i].row_from;
    const uint64_t row_to = t->to_size / (t->n_elements / ne0);
    const unsigned in = gg_interleave_rows(to), out = gg_interleave_rows(from);
    for (uint64_t k = 0; dst && k < c->n; k += in)
        if (in > 1)
            gg_interleave_put(to, dst + k * row_to, ne0,
                              c->src + k * row_from);
        else
            gg_interleave_take(from, c->src + (k - k % out) * row_from,
                               (unsigned)(k % out), 0, ne0, dst + k * row_to);
    return c->n * row_to;
}

/* Put the encoded rows of a chunk into groups, in place. The bytes of a group
 * of rows follow the chunk in the buffer. */
static void interleave_rows(const struct chunk *c,
                            const struct gg_job_tensor *t, uint8_t *dst)
{
    const int to = gg_dtype_index(t->pub.to);
    const uint64_t ne0 = (uint64_t)t->pub.ne[0];
    const unsigned rows = gg_quant_run_group(t);
    const size_t size = (size_t)(rows * gg_quant_run_row_size(t));
    const size_t size_to =
        (size_t)(rows * (t->pub.to_size / (t->pub.n_elements / ne0)));
    uint8_t *apart = dst + c->n * gg_quant_run_row_size(t);
    for (uint64_t g = 0; rows && g < c->n / rows; g++) {
        memcpy(apart, dst + g * size, size);
        gg_interleave_put(to, dst + g * size_to, ne0, apart);
    }
}

/* Make groups of the encoded rows of all jobs whose types have groups. */
static void interleave_chunk(const struct gg_quant_run *r,
                             const struct chunk *c, uint8_t *out)
{
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gg_job_tensor *t = find_output(r, k, c->i);
        if (!t || t->pub.copied)
            continue;
        interleave_rows(c, t, out);
        out += gg_quant_run_row_size(t) * (c->n + gg_quant_run_group(t));
    }
}

/* Decode the rows of a chunk, and encode them into the jobs' buffers. */
static bool encode_chunk(struct gg_quant_run *r, struct chunk *c, float *slice,
                         float *weights, uint8_t *out, unsigned ith)
{
    const struct gg_quant_run_cut *cut = &r->cuts[c->i];
    size_t ne0 = (size_t)gg_quant_run_first_tensor(r, c->i)->pub.ne[0];
    uint64_t step = GG_MAX(1, GG_RUN_SLICE / ne0);

    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gg_job_tensor *jt = find_output(r, k, c->i);
        if (jt && jt->imatrix)
            gg_imatrix_weights(jt->imatrix, c->mat * ne0, ne0,
                               weights + k * r->weight_size / 4);
    }
    for (uint64_t at = 0; at < c->n; at += step) {
        size_t n = (size_t)GG_MIN(step, c->n - at);
        uint64_t row = c->mat * cut->n_rows + c->row + at;
        gg_data_read(&cut->src, row * ne0, n * ne0, slice);
        bool small = gg_quant_is_small(slice, n * ne0);
        if (!small && !gg_quant_is_finite(slice, n * ne0)) {
            if (!gg_quant_run_handle_nonfinite(r, c->i, c->no, row * ne0,
                                               slice, n * ne0))
                return false;
            c->zeroed |= r->jobs[0]->p.nonfinite == GGUF_NONFINITE_ZERO;
        }
        uint8_t *dst = out;
        for (size_t k = 0; k < r->n_jobs; k++) {
            const struct gg_job_tensor *jt = find_output(r, k, c->i);
            if (!jt || jt->pub.copied)
                continue;
            if (jt->moves) {
                dst += move_rows(r, c, &jt->pub, at ? NULL : dst);
                continue;
            }
            if (dst != out && gg_quant_run_poll_progress(r, ith))
                return false; /* encoding for one job may take long */
            gg_kern_encode_fn *encode = gg_job_encoder(r->jobs[k], jt);
            const uint64_t row_to = gg_quant_run_row_size(jt);
            const float *w =
                jt->imatrix ? weights + k * r->weight_size / 4 : NULL;
            const float *from = slice;
            if (jt->outer)
                from = unscale_rows(r, slice, n * ne0, jt->outer[c->mat], ith);
            if (cut->src.blocks && jt->pub.to == jt->pub.from)
                cut->src.blocks(&cut->src, row * ne0, n * ne0,
                                dst + at * row_to);
            else
                encode(from, dst + at * row_to, n, ne0, w);
            const struct gg_quant_run_blocks made = {
                k,    c->i,  c->no, row * ne0,        n * ne0,
                from, slice, w,     dst + at * row_to
            };
            if (!small && !gg_quant_run_check_blocks(r, &made))
                return false;
            if (r->losses)
                measure_loss(r, c, k, slice, w, dst + at * row_to, n, ith);
            dst += row_to * (c->n + gg_quant_run_group(jt));
        }
        atomic_fetch_add(&r->done, n * cut->row_from);
        if (gg_quant_run_poll_progress(r, ith))
            return false;
    }
    interleave_chunk(r, c, out);
    return true;
}

static bool write_chunk(struct gg_quant_run *r, const struct chunk *c,
                        float *slice, const uint8_t *out, unsigned ith)
{
    const struct gg_quant_run_cut *cut = &r->cuts[c->i];
    struct gguf_error err;
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gg_job_tensor *jt = find_output(r, k, c->i);
        if (!jt)
            continue;
        const struct gguf_quant_tensor *t = &jt->pub;
        uint64_t n_rows = t->n_elements / (uint64_t)t->ne[0];
        uint64_t row = t->to_size / n_rows;
        uint64_t off = (c->mat * cut->n_rows + c->row) * row;
        enum gguf_status st =
            t->copied ? copy_at(r, k, c->i, off, c->src, c->n * row,
                                c->zeroed ? slice : NULL, &err)
                      : write_at(r, k, c->i, off, out, c->n * row, &err);
        if (st != GGUF_OK) {
            gg_quant_run_fail(r, c->no, &err);
            return false;
        }
        out += t->copied ? 0
                         : gg_quant_run_row_size(jt) *
                               (c->n + gg_quant_run_group(jt));
        if (gg_quant_run_poll_progress(r, ith))
            return false; /* writing may take long too */
    }
    return true;
}

/* Write a piece of a tensor that all jobs copy. */
static bool copy_piece(struct gg_quant_run *r, size_t i, uint64_t no,
                       uint64_t off, uint64_t size, const uint8_t *src,
                       unsigned ith)
{
    struct gguf_error err;
    for (size_t k = 0; k < r->n_jobs; k++) {
        if (!find_output(r, k, i))
            continue;
        if (k && gg_quant_run_poll_progress(r, ith))
            return false;
        if (copy_at(r, k, i, off, src, size, NULL, &err) != GGUF_OK) {
            gg_quant_run_fail(r, no, &err);
            return false;
        }
    }
    atomic_fetch_add(&r->done, size);
    return !gg_quant_run_poll_progress(r, ith);
}

/* Before a chunk, request the data READ_AHEAD bytes later, so that the disk
 * works meanwhile. After a chunk, release its pages. */
static void advise_pages(const struct gguf_quant *q,
                         const struct gg_job_tensor *t, uint64_t off,
                         uint64_t size, bool before)
{
    const uint64_t end = t->src->size;
    if (before && off + READ_AHEAD >= end)
        return;
    off += before ? READ_AHEAD : 0;
    gg_job_advise(q, t, off, GG_MIN(size, end - off),
                  before ? GG_ADVISE_WILLNEED : GG_ADVISE_DONTNEED);
}

/* Offset of piece k of a tensor that is copied. */
static uint64_t piece_off(const struct gg_quant_run_cut *cut,
                          const struct gg_data_info *t, uint64_t k)
{
    uint64_t off = GG_MIN(k * GG_RUN_PIECE, t->size);
    return cut->swap ? gg_byte_order_floor(gg_dtype_index(t->dtype),
                                           cut->row_from, off)
                     : off;
}

void gg_quant_run_do_chunk(struct gg_quant_run *r, unsigned ith, size_t i,
                           uint64_t no)
{
    const struct gg_quant_run_cut *cut = &r->cuts[i];
    const struct gguf_quant *q = r->jobs[0];
    const struct gg_job_tensor *jt = gg_quant_run_first_tensor(r, i);
    const struct gg_data_info *st = jt->src;
    const uint8_t *src = gg_job_bytes(q, jt);
    uint64_t k = no - cut->first, off, size;
    bool have, good;

    if (!cut->rows) {
        off = piece_off(cut, st, k);
        size = piece_off(cut, st, k + 1) - off;
        advise_pages(q, jt, off, size, true);
        have = gg_quant_run_hold_bytes(r, i, no, off, size);
        good = have && copy_piece(r, i, no, off, size, src + off, ith);
    } else {
        struct chunk c = { .i = i, .no = no };
        c.mat = k / cut->per_mat;
        c.row = k % cut->per_mat * cut->per_chunk;
        c.n = GG_MIN(cut->per_chunk, cut->n_rows - c.row);
        off = (c.mat * cut->n_rows + c.row) * cut->row_from;
        size = c.n * cut->row_from;
        c.src = src ? src + off : NULL;
        advise_pages(q, jt, off, size, true);
        have = gg_quant_run_hold_bytes(r, i, no, off, size);
        uint8_t *buffer = r->buffers + ith * r->buffer_size;
        uint8_t *weights = buffer + r->slice_size;
        uint8_t *out = weights + r->n_jobs * r->weight_size;
        double begin = r->losses ? gg_loss_clock() : 0;
        float *slice = (float *)(void *)buffer;
        good = have &&
               encode_chunk(r, &c, slice, (float *)(void *)weights, out, ith);
        for (size_t job = 0; r->losses && job < r->n_jobs; job++)
            r->losses[job * r->cuts[r->n_t].first + no].seconds =
                gg_loss_clock() - begin;
        good = good && write_chunk(r, &c, slice, out, ith);
    }
    advise_pages(q, jt, off, size, false);
    if (have)
        gg_job_release(q, jt, off, size);
    if (good && r->resume && !r->again)
        gg_quant_run_record_chunk(r, i, no, ith);
}

void gg_quant_run_process_chunks(void *user, unsigned ith, unsigned nth)
{
    struct gg_quant_run *r = user;
    size_t i = 0;
    (void)nth;
    if (ith >= r->n_threads)
        return;
    while (!atomic_load(&r->stop)) {
        uint64_t no = atomic_fetch_add(&r->next, 1);
        if (no >= r->cuts[r->n_t].first)
            return;
        while (no >= r->cuts[i + 1].first)
            i++; /* chunks are taken in ascending order */
        if (r->states[i].kept)
            continue;
        gg_quant_run_do_chunk(r, ith, i, no);
    }
}
