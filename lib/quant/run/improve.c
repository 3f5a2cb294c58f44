/* SPDX-License-Identifier: MIT */
/* improve.c - replace tensors of the finished files of a run
 *
 * The bytes are written first, then the record with their digest. A run that is
 * interrupted between them leaves a tensor whose digest is wrong: the next run
 * encodes it again, and the callback replaces it again.
 */
#include "config.h"
#include "gguf/improve.h"
#include "quant/run/job_run.h"
#include "base/str.h"
#include "file/writer_int.h"
#include "quant/run/finite_rows.h"

#include <string.h>

struct gguf_quant_improver {
    struct gg_quant_run *run;
    size_t k;               /* number of the job */
    struct gguf_file *file; /* its output */
    /* State of the job's tensors: those of the journal or, without one, those
     * of this struct. */
    struct gg_quant_resume_tensor *tensors;
    bool changed; /* bytes were written */
};

/* New bytes of a tensor to be compared with the input. */
struct comparison {
    struct gg_quant_run *run;
    size_t k, i;          /* number of the job; of the tensor in the run */
    const uint8_t *bytes; /* new bytes */
    atomic_uint_fast64_t next; /* next chunk */
};

static const struct gguf_quant *job_of(const struct gguf_quant_improver *h)
{
    return h->run->jobs[h->k];
}

const struct gguf_quant *
gguf_quant_improver_job(const struct gguf_quant_improver *h)
{
    return job_of(h);
}

const struct gguf_file *
gguf_quant_improver_file(const struct gguf_quant_improver *h)
{
    return h->file;
}

bool gguf_quant_improver_is_replaced(const struct gguf_quant_improver *h,
                                     size_t i)
{
    return i < job_of(h)->n_t && h->tensors[i].replaced;
}

void gguf_quant_improver_set_note(struct gguf_quant_improver *h, size_t i,
                                  const void *note, size_t size)
{
    if (i >= job_of(h)->n_t)
        return;
    uint8_t *to = h->tensors[i].note;
    memset(to, 0, GGUF_QUANT_NOTE_SIZE);
    memcpy(to, note, GG_MIN(size, (size_t)GGUF_QUANT_NOTE_SIZE));
}

const void *gguf_quant_improver_note(const struct gguf_quant_improver *h,
                                     size_t i)
{
    return i < job_of(h)->n_t ? h->tensors[i].note : NULL;
}

/* Number in the run of tensor i of the job. */
static size_t number_in_run(const struct gguf_quant_improver *h, size_t i)
{
    size_t at = 0;
    while (gg_quant_run_tensor(h->run, h->k, at) != &job_of(h)->t[i])
        at++;
    return at;
}

static enum gguf_status check_finite(const struct gguf_quant_improver *h,
                                     const struct gg_job_tensor *t,
                                     const uint8_t *bytes,
                                     struct gguf_error *err)
{
    const struct gguf_quant *q = job_of(h);
    const int type = gg_dtype_index(t->pub.to);
    const struct gguf_dtype_info *info = gguf_dtype_find(t->pub.to);
    if (q->p.nonfinite == GGUF_NONFINITE_KEEP || !info ||
        !q->kern.codec[type].decode)
        return GGUF_OK;
    float *slice = (float *)(void *)h->run->buffers;
    struct gg_str_esc esc;
    for (uint64_t at = 0; at < t->pub.n_elements; at += GG_RUN_SLICE) {
        const size_t n =
            (size_t)GG_MIN(t->pub.n_elements - at, (uint64_t)GG_RUN_SLICE);
        const uint64_t off = at / info->block_len * info->block_size;
        q->kern.codec[type].decode(bytes + off, slice, n);
        if (!gg_quant_is_finite(slice, n))
            return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                "tensor '%s': the new blocks decode to NaN or "
                                "infinity",
                                gg_str_esc(&esc, gg_str_z(t->pub.name)));
    }
    return GGUF_OK;
}

/* Read the rows of a slice as they were encoded: non-finite weights may have
 * become zero. */
static void read_slice(const struct comparison *c, uint64_t element, size_t n,
                       float *slice)
{
    gg_data_read(&c->run->cuts[c->i].src, element, n, slice);
    if (c->run->jobs[0]->p.nonfinite != GGUF_NONFINITE_ZERO)
        return;
    for (size_t e = 0; e < n; e++)
        if (!gg_quant_is_finite(slice + e, 1))
            slice[e] = 0;
}

/* Compare the rows of a chunk. Returns false if the run fails. */
static bool compare_chunk(const struct comparison *c, uint64_t no,
                          unsigned ith)
{
    struct gg_quant_run *r = c->run;
    const struct gg_quant_run_cut *cut = &r->cuts[c->i];
    const struct gg_job_tensor *t = gg_quant_run_tensor(r, c->k, c->i);
    const struct gg_codec_kern *codec =
        &r->jobs[c->k]->kern.codec[gg_dtype_index(t->pub.to)];
    struct gg_loss *loss = &r->losses[c->k * r->cuts[r->n_t].first + no];
    const size_t ne0 = (size_t)t->pub.ne[0];
    const uint64_t in_tensor = no - cut->first;
    const uint64_t mat = in_tensor / cut->per_mat;
    const uint64_t row = in_tensor % cut->per_mat * cut->per_chunk;
    const uint64_t n_rows = GG_MIN(cut->per_chunk, cut->n_rows - row);
    const uint64_t off = (mat * cut->n_rows + row) * cut->row_from;
    const uint64_t row_to = t->pub.to_size / (t->pub.n_elements / ne0);
    uint8_t *buffer = r->buffers + ith * r->buffer_size;
    float *slice = (float *)(void *)buffer;
    float *weights = (float *)(void *)(buffer + r->slice_size);
    float *back = (float *)(void *)(buffer + r->buffer_size - r->check_size);
    const double begin = gg_loss_clock();

    if (!gg_quant_run_hold_bytes(r, c->i, no, off, n_rows * cut->row_from))
        return false;
    *loss = (struct gg_loss){ .seconds = 0 };
    if (t->imatrix)
        gg_imatrix_weights(t->imatrix, mat * ne0, ne0, weights);
    const uint64_t step = GG_MAX(1, GG_RUN_SLICE / ne0);
    for (uint64_t at = 0; at < n_rows; at += step) {
        const size_t n = (size_t)GG_MIN(step, n_rows - at);
        const uint64_t first = mat * cut->n_rows + row + at;
        read_slice(c, first * ne0, n * ne0, slice);
        codec->decode(c->bytes + first * row_to, back, n * ne0);
        for (size_t e = 0; t->outer && e < n * ne0; e++)
            back[e] *= t->outer[mat];
        gg_loss_add(loss, slice, back, n, ne0, t->imatrix ? weights : NULL);
    }
    gg_job_release(r->jobs[0], gg_quant_run_first_tensor(r, c->i), off,
                   n_rows * cut->row_from);
    loss->seconds = gg_loss_clock() - begin;
    return true;
}

static void compare_chunks(void *user, unsigned ith, unsigned nth)
{
    struct comparison *c = user;
    (void)nth;
    while (ith < c->run->n_threads && !atomic_load(&c->run->stop)) {
        const uint64_t no = atomic_fetch_add(&c->next, 1);
        if (no >= c->run->cuts[c->i + 1].first || !compare_chunk(c, no, ith))
            return;
    }
}

/* Measure the loss of a tensor again, for its new bytes. */
static enum gguf_status measure_again(struct gguf_quant_improver *h, size_t i,
                                      const uint8_t *bytes,
                                      struct gguf_error *err)
{
    struct gg_quant_run *r = h->run;
    struct gg_job_tensor *t = &job_of(h)->t[i];
    const double seconds = t->pub.loss.seconds;
    struct comparison c = { .run = r, .k = h->k, .bytes = bytes };
    if (!r->losses || t->pub.copied ||
        !r->jobs[h->k]->kern.codec[gg_dtype_index(t->pub.to)].decode)
        return GGUF_OK;
    c.i = number_in_run(h, i);
    const struct gg_quant_run_cut *cut = &r->cuts[c.i];
    atomic_init(&c.next, cut->first);
    gguf_pool_run(r->jobs[0]->p.pool,
                  (struct gguf_pool_callback){ compare_chunks, &c });
    if (r->status != GGUF_OK) {
        if (err)
            *err = r->err;
        return r->status;
    }
    gg_loss_finish(r->losses + h->k * r->cuts[r->n_t].first + cut->first,
                   (size_t)(cut[1].first - cut->first), &t->pub.loss);
    t->pub.loss.seconds += seconds;
    return GGUF_OK;
}

/* Record tensor i, whose bytes are in the file. */
static enum gguf_status record_tensor(struct gguf_quant_improver *h, size_t i,
                                      const uint8_t *bytes, uint64_t size,
                                      bool replaced, struct gguf_error *err)
{
    struct gg_quant_resume_tensor *t = &h->tensors[i];
    t->replaced = replaced;
    if (!h->run->resume)
        return GGUF_OK;
    if (bytes) {
        XXH128_canonicalFromHash(&t->digest,
                                 XXH3_128bits(bytes, (size_t)size));
        t->loss = job_of(h)->t[i].pub.loss;
    }
    return gg_quant_resume_add_tensor(&h->run->resume[h->k], i, err);
}

enum gguf_status gguf_quant_improver_replace(struct gguf_quant_improver *h,
                                             size_t i, const void *bytes,
                                             uint64_t size,
                                             struct gguf_error *err)
{
    const struct gguf_quant *q = job_of(h);
    struct gg_str_esc esc;
    if (i >= q->n_t)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor %zu does not exist: there are %zu", i,
                            q->n_t);
    const struct gg_job_tensor *t = &q->t[i];
    if (bytes && size != t->pub.to_size)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "tensor '%s': %" PRIu64 " new bytes, expected %" PRIu64,
            gg_str_esc(&esc, gg_str_z(t->pub.name)), size, t->pub.to_size);
    if (bytes) {
        struct gguf_writer *w =
            h->run->writers[h->run->first_writer[h->k] + t->shard];
        GG_TRY(check_finite(h, t, bytes, err));
        h->changed = true;
        GG_TRY(gg_outfile_write_at(
            &w->out, gguf_writer_data_off(w) + w->tensor[t->index].off, bytes,
            size, err));
        GG_TRY(measure_again(h, i, bytes, err));
    }
    return record_tensor(h, i, bytes, size, true, err);
}

/* ---- plain bytes ---- */

/* Chunks of tensor i of the run that are encoded again. */
struct repetition {
    struct gg_quant_run *run;
    size_t i;
    atomic_uint_fast64_t next; /* next chunk */
};

static void encode_chunks(void *user, unsigned ith, unsigned nth)
{
    struct repetition *c = user;
    (void)nth;
    while (ith < c->run->n_threads && !atomic_load(&c->run->stop)) {
        const uint64_t no = atomic_fetch_add(&c->next, 1);
        if (no >= c->run->cuts[c->i + 1].first)
            return;
        gg_quant_run_do_chunk(c->run, ith, c->i, no);
    }
}

/* Encode tensor i of the job as the run did. */
static enum gguf_status encode_again(struct gguf_quant_improver *h, size_t i,
                                     struct gguf_error *err)
{
    struct gg_quant_run *r = h->run;
    struct repetition c = { .run = r, .i = number_in_run(h, i) };
    const struct gg_quant_run_cut *cut = &r->cuts[c.i];
    const size_t first = h->k * r->cuts[r->n_t].first + cut->first;
    const size_t n = (size_t)(cut[1].first - cut->first);
    for (size_t k = 0; r->losses && k < n; k++)
        r->losses[first + k] = (struct gg_loss){ .seconds = 0 };
    atomic_init(&c.next, cut->first);
    r->again = h->k + 1;
    gguf_pool_run(r->jobs[0]->p.pool,
                  (struct gguf_pool_callback){ encode_chunks, &c });
    r->again = 0;
    if (r->status != GGUF_OK) {
        if (err)
            *err = r->err;
        return r->status;
    }
    struct gguf_quant_tensor *t = &job_of(h)->t[i].pub;
    const double seconds = t->loss.seconds;
    if (r->losses && !t->copied) {
        gg_loss_finish(r->losses + first, n, &t->loss);
        t->loss.seconds += seconds;
    }
    return GGUF_OK;
}

enum gguf_status gguf_quant_improver_restore(struct gguf_quant_improver *h,
                                             size_t i, struct gguf_error *err)
{
    const struct gguf_quant *q = job_of(h);
    if (i >= q->n_t)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor %zu does not exist: there are %zu", i,
                            q->n_t);
    const struct gguf_tensor_info *at =
        gguf_file_tensor_find(h->file, q->t[i].pub.name);
    h->changed = true;
    GG_TRY(encode_again(h, i, err));
    memset(h->tensors[i].note, 0, GGUF_QUANT_NOTE_SIZE);
    GG_TRY(record_tensor(h, i,
                         at ? gguf_file_tensor_data(h->file, at->index) : NULL,
                         q->t[i].pub.to_size, false, err));
    return GGUF_OK;
}

/* ---- the run ---- */

/* Call the callback for an open output. */
static enum gguf_status call_improve(struct gguf_quant_improver *h,
                                     const struct gguf_quant_output *output,
                                     struct gguf_error *err)
{
    struct gguf_error why;
    gguf_error_clear(&why);
    enum gguf_status st =
        output->improve.fn(output->improve.user, h->k, h, &why);
    if (st != GGUF_OK && err)
        *err = why;
    if (st == GGUF_OK && h->run->status != GGUF_OK) {
        st = h->run->status; /* a failure that the callback ignored */
        if (err)
            *err = h->run->err;
    }
    return st;
}

/* Wait for the disk again. The files were finished before. */
static enum gguf_status sync_job(struct gg_quant_run *r, size_t k,
                                 struct gguf_error *err)
{
    for (size_t w = r->first_writer[k]; w < r->first_writer[k + 1]; w++)
        GG_TRY(gg_outfile_finish(&r->writers[w]->out, err));
    return GGUF_OK;
}

static enum gguf_status improve_job(struct gg_quant_run *r, size_t k,
                                    const struct gguf_quant_output *output,
                                    struct gguf_error *err)
{
    const struct gguf_allocator *a = r->jobs[0]->p.allocator;
    const size_t n = r->jobs[k]->n_t;
    struct gguf_quant_improver h = { .run = r, .k = k };
    struct gg_quant_resume_tensor *own = NULL;
    if (r->resume) {
        h.tensors = r->resume[k].tensors;
    } else {
        own = h.tensors = gg_mem_alloc_zero(a, n, sizeof *own);
        if (!own)
            return gg_error_set_nomem(err, n * sizeof *own);
    }
    enum gguf_status st = gg_quant_run_open_outputs(r, k, &h.file, err);
    if (st == GGUF_OK)
        st = call_improve(&h, output, err);
    gguf_file_close(h.file);
    gg_mem_free(a, own);
    if (st == GGUF_OK && h.changed)
        st = sync_job(r, k, err);
    return gg_quant_run_name_output(r, r->paths[r->first_writer[k]], st, err);
}

enum gguf_status gg_quant_run_improve(struct gg_quant_run *r,
                                      const struct gguf_quant_output *output,
                                      struct gguf_error *err)
{
    for (size_t k = 0; k < r->n_jobs && output->improve.fn; k++)
        GG_TRY(improve_job(r, k, output, err));
    return GGUF_OK;
}
