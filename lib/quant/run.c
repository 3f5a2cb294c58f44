/* run.c - rows in, rows out: the streaming part of a job
 *
 * The tensors are cut into chunks of whole rows, numbered in the order of
 * writing. The threads of the pool take chunk after chunk: each decodes a
 * slice of rows into floats, looks for what is not finite, encodes the slice,
 * and writes a chunk's bytes to their place in the output. Threads do not wait
 * for each other, so that reading, computing and writing overlap; what a chunk
 * gives depends on nothing but its rows. Memory is one slice and one chunk for
 * each thread; pages of the input are let go of behind the chunk.
 */
#include "config.h"
#include "quant/job.h"
#include "base/compiler.h"
#include "base/str.h"
#include "quant/finite.h"
#include "quant/loss.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SLICE = 16384,         /* elements decoded at once: 64 KiB, for the cache */
    CHUNK = 1 << 18,       /* elements written at once */
    PIECE = 1 << 20,       /* bytes copied at once */
    ALIGN = 64             /* of buffers, for vector loads */
};
#define DEFAULT_MEMORY (UINT64_C(128) << 20)
#define READ_AHEAD     (UINT64_C(8) << 20) /* bytes asked for before use */

/* How a tensor is cut. */
struct cut {
    bool rows;          /* else bytes, PIECE at a time */
    uint64_t n_rows;    /* of a matrix */
    uint64_t per_chunk; /* rows */
    uint64_t per_mat;   /* chunks */
    uint64_t first;     /* number of the first chunk */
    uint64_t row_from;  /* bytes */
};

struct run {
    struct gguf_quant *const *jobs;
    struct gguf_writer **writers; /* all files of job 0, of job 1 ... */
    char **paths;                 /* of the writers */
    size_t *first_writer;         /* of the jobs, and one behind the end */
    size_t n_jobs;
    struct cut *cuts;             /* of the tensors, and one behind the end */
    uint8_t *buffers;
    size_t buffer_size;           /* of one thread */
    size_t slice_size;            /* of it for the floats */
    struct gg_loss *losses;       /* of all chunks of job 0, of job 1 ...;
                                   * NULL: not asked for */
    size_t check_size;            /* of a buffer for what is read back; at the
                                   * end of a thread's */
    size_t weight_size;           /* then for a row of weights for each job;
                                   * then what the jobs encode */
    unsigned n_threads;           /* that have a buffer */
    uint64_t total;               /* bytes of input */

    atomic_uint_fast64_t next;    /* chunk */
    atomic_uint_fast64_t done;    /* bytes of input */
    atomic_uint_fast64_t n_nonfinite;
    atomic_bool stop;             /* take no more chunks */
    atomic_bool cancel;           /* leave the chunk too */
    pthread_mutex_t lock;         /* for what follows */
    enum gguf_status status;
    struct gguf_error err;
    uint64_t err_chunk;           /* the lowest that failed */
};

/* Keep the failure of the lowest chunk: chunks are taken in order and each is
 * finished, so that it is the same one for any number of threads. */
static void fail(struct run *r, uint64_t chunk, const struct gguf_error *err)
{
    pthread_mutex_lock(&r->lock);
    if (r->status == GGUF_OK || chunk < r->err_chunk) {
        r->status = err->status;
        r->err = *err;
        r->err_chunk = chunk;
    }
    pthread_mutex_unlock(&r->lock);
    atomic_store(&r->stop, true);
}

/* ---------------------------------------------------------- one chunk --- */

struct chunk {
    size_t i;           /* tensor */
    uint64_t no;        /* of the chunk, in all */
    uint64_t mat;       /* matrix of the tensor */
    uint64_t row, n;    /* first row in the matrix, number of rows */
    const uint8_t *src; /* bytes of the first row */
};

static const struct gguf_quant_tensor *tensor(const struct run *r, size_t job,
                                              size_t i)
{
    return &r->jobs[job]->t[i].pub;
}

/* Where job k's bytes of tensor i go. */
static enum gguf_status write_at(struct run *r, size_t k, size_t i,
                                 uint64_t off, const void *data, uint64_t size,
                                 struct gguf_error *err)
{
    const struct gg_job_tensor *t = &r->jobs[k]->t[i];
    return gguf_writer_write_at(r->writers[r->first_writer[k] + t->shard],
                                t->index, off, data, size, err);
}

/* Report; not 0 if the job is to stop. Only the calling thread may. */
static bool poll(struct run *r, unsigned ith)
{
    const struct gguf_quant_params *p = &r->jobs[0]->p;
    if (!ith && p->progress &&
        p->progress(p->progress_user, atomic_load(&r->done), r->total)) {
        struct gguf_error err;
        gg_fail(&err, GGUF_E_CANCELLED, GGUF_NO_OFFSET, "cancelled");
        fail(r, 0, &err);
        atomic_store(&r->cancel, true);
    }
    return atomic_load(&r->cancel);
}

/* An element of the slice that is not finite: what to do about it. */
static bool meet_nonfinite(struct run *r, size_t i, uint64_t chunk,
                           uint64_t element, float *x, size_t n)
{
    const struct gguf_quant *q = r->jobs[0];
    const struct gguf_quant_tensor *t = tensor(r, 0, i);
    const struct gguf_dtype_info *type = gguf_dtype_find(t->from);
    if (q->p.nonfinite == GGUF_NONFINITE_ERROR) {
        size_t k = 0;
        while (gg_finite(x + k, 1))
            k++;
        const struct gguf_split_tensor *src = q->t[i].src;
        uint64_t e = element + k, ne0 = (uint64_t)t->ne[0];
        uint64_t off = gguf_file_data_off(src->file) + src->info->off +
                       e / type->block_len * type->block_size;
        struct gg_esc esc;
        struct gguf_error err;
        gg_fail(&err, GGUF_E_NONFINITE, off,
                "tensor '%s': %s at row %" PRIu64 ", column %" PRIu64,
                gg_esc(&esc, gg_strz(t->name)),
                x[k] != x[k] ? "NaN" : "infinity", e / ne0, e % ne0);
        fail(r, chunk, &err);
        return false;
    }
    uint64_t count = 0;
    for (size_t k = 0; k < n; k++)
        if (!gg_finite(x + k, 1)) {
            count++;
            if (q->p.nonfinite == GGUF_NONFINITE_ZERO)
                x[k] = 0;
        }
    atomic_fetch_add(&r->n_nonfinite, count);
    return true;
}

static void decode_rows(const struct gg_codec_kern *codec,
                        const struct gguf_dtype_info *type, const uint8_t *src,
                        size_t row_size, float *dst, size_t n_rows, size_t ne0)
{
    if (!type->row_header) {
        codec->decode(src, dst, n_rows * ne0);
        return;
    }
    for (size_t k = 0; k < n_rows; k++)
        codec->decode(src + k * row_size, dst + k * ne0, ne0);
}

/* Read back what job k made of n rows, and sum up the differences. */
static void measure(struct run *r, const struct chunk *c, size_t k,
                    const float *slice, const float *weights,
                    const uint8_t *encoded, size_t n, unsigned ith)
{
    const struct gguf_quant *q = r->jobs[k];
    const struct gguf_quant_tensor *t = tensor(r, k, c->i);
    const struct gg_codec_kern *codec = &q->kern.codec[gg_dtype_index(t->to)];
    float *back = (float *)(void *)(r->buffers + (ith + 1) * r->buffer_size -
                                    r->check_size);
    size_t ne0 = (size_t)t->ne[0];
    if (!codec->decode)
        return;
    codec->decode(encoded, back, n * ne0);
    gg_loss_add(&r->losses[k * r->cuts[q->n_t].first + c->no], slice, back, n,
                ne0, weights);
}

/* The rows of a chunk through the floats into the jobs' buffers. */
static bool encode_chunk(struct run *r, const struct chunk *c, float *slice,
                         float *weights, uint8_t *out, unsigned ith)
{
    const struct gguf_quant_tensor *t = tensor(r, 0, c->i);
    const struct cut *cut = &r->cuts[c->i];
    const struct gguf_dtype_info *type = gguf_dtype_find(t->from);
    const struct gg_codec_kern *from =
        &r->jobs[0]->kern.codec[gg_dtype_index(t->from)];
    size_t ne0 = (size_t)t->ne[0];
    uint64_t step = GG_MAX(1, SLICE / ne0);

    for (size_t k = 0; k < r->n_jobs; k++)
        if (r->jobs[k]->t[c->i].imatrix)
            gg_imatrix_weights(r->jobs[k]->t[c->i].imatrix, c->mat * ne0, ne0,
                               weights + k * r->weight_size / 4);
    for (uint64_t at = 0; at < c->n; at += step) {
        size_t n = (size_t)GG_MIN(step, c->n - at);
        decode_rows(from, type, c->src + at * cut->row_from,
                    (size_t)cut->row_from, slice, n, ne0);
        uint64_t row = c->mat * cut->n_rows + c->row + at;
        if (!gg_finite(slice, n * ne0) &&
            !meet_nonfinite(r, c->i, c->no, row * ne0, slice, n * ne0))
            return false;
        uint8_t *dst = out;
        for (size_t k = 0; k < r->n_jobs; k++) {
            const struct gg_job_tensor *jt = &r->jobs[k]->t[c->i];
            if (jt->pub.copied)
                continue;
            const struct gg_codec_kern *to =
                &r->jobs[k]->kern.codec[gg_dtype_index(jt->pub.to)];
            uint64_t row_to = jt->pub.to_size / (jt->pub.n_elements / ne0);
            const float *w =
                jt->imatrix ? weights + k * r->weight_size / 4 : NULL;
            to->encode(slice, dst + at * row_to, n, ne0, w);
            if (r->losses)
                measure(r, c, k, slice, w, dst + at * row_to, n, ith);
            dst += c->n * row_to;
        }
        atomic_fetch_add(&r->done, n * cut->row_from);
        if (poll(r, ith))
            return false;
    }
    return true;
}

static bool write_chunk(struct run *r, const struct chunk *c,
                        const uint8_t *out)
{
    const struct cut *cut = &r->cuts[c->i];
    struct gguf_error err;
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gguf_quant_tensor *t = tensor(r, k, c->i);
        uint64_t n_rows = t->n_elements / (uint64_t)t->ne[0];
        uint64_t row = t->to_size / n_rows;
        uint64_t off = (c->mat * cut->n_rows + c->row) * row;
        if (write_at(r, k, c->i, off, t->copied ? c->src : out, c->n * row,
                     &err) != GGUF_OK) {
            fail(r, c->no, &err);
            return false;
        }
        out += t->copied ? 0 : c->n * row;
    }
    return true;
}

/* A piece of a tensor that no job changes. */
static bool copy_piece(struct run *r, size_t i, uint64_t no, uint64_t off,
                       uint64_t size, const uint8_t *src, unsigned ith)
{
    struct gguf_error err;
    for (size_t k = 0; k < r->n_jobs; k++)
        if (write_at(r, k, i, off, src, size, &err) != GGUF_OK) {
            fail(r, no, &err);
            return false;
        }
    atomic_fetch_add(&r->done, size);
    return !poll(r, ith);
}

/* Before a chunk: ask for what comes READ_AHEAD later, so that the disk works
 * while this one is computed. Behind it: let go. */
static void advise(const struct gguf_split_tensor *t, uint64_t off,
                   uint64_t size, bool before)
{
    uint64_t end = t->info->size;
    if (!before) {
        gguf_file_advise(t->file, t->info->index, off, size,
                         GGUF_ADVICE_DONTNEED);
    } else if (off + READ_AHEAD < end) {
        off += READ_AHEAD;
        gguf_file_advise(t->file, t->info->index, off,
                         GG_MIN(size, end - off), GGUF_ADVICE_WILLNEED);
    }
}

static void do_chunk(struct run *r, unsigned ith, size_t i, uint64_t no)
{
    const struct cut *cut = &r->cuts[i];
    const struct gguf_split_tensor *st = r->jobs[0]->t[i].src;
    const uint8_t *src = gguf_file_tensor_data(st->file, st->info->index);
    uint64_t k = no - cut->first, off, size;

    if (!cut->rows) {
        off = k * PIECE;
        size = GG_MIN(PIECE, st->info->size - off);
        advise(st, off, size, true);
        copy_piece(r, i, no, off, size, src + off, ith);
    } else {
        struct chunk c = { .i = i, .no = no };
        c.mat = k / cut->per_mat;
        c.row = k % cut->per_mat * cut->per_chunk;
        c.n = GG_MIN(cut->per_chunk, cut->n_rows - c.row);
        off = (c.mat * cut->n_rows + c.row) * cut->row_from;
        size = c.n * cut->row_from;
        c.src = src + off;
        advise(st, off, size, true);
        uint8_t *buffer = r->buffers + ith * r->buffer_size;
        uint8_t *weights = buffer + r->slice_size;
        uint8_t *out = weights + r->n_jobs * r->weight_size;
        double begin = r->losses ? gg_loss_clock() : 0;
        bool good = encode_chunk(r, &c, (float *)(void *)buffer,
                                 (float *)(void *)weights, out, ith);
        for (size_t job = 0; r->losses && job < r->n_jobs; job++)
            r->losses[job * r->cuts[r->jobs[0]->n_t].first + no].seconds =
                gg_loss_clock() - begin;
        if (good)
            write_chunk(r, &c, out);
    }
    advise(st, off, size, false);
}

static void work(void *user, unsigned ith, unsigned nth)
{
    struct run *r = user;
    size_t n_t = r->jobs[0]->n_t, i = 0;
    (void)nth;
    if (ith >= r->n_threads)
        return;
    while (!atomic_load(&r->stop)) {
        uint64_t no = atomic_fetch_add(&r->next, 1);
        if (no >= r->cuts[n_t].first)
            return;
        while (no >= r->cuts[i + 1].first)
            i++; /* numbers only grow */
        do_chunk(r, ith, i, no);
    }
}

/* ------------------------------------------------------- preparations --- */

/* Can every tensor be decoded and encoded here? */
static enum gguf_status check_codecs(const struct gguf_quant *q,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gguf_quant_tensor *t = &q->t[i].pub;
        struct gg_esc esc;
        if (t->copied)
            continue;
        const struct gg_codec_kern *from =
            &q->kern.codec[gg_dtype_index(t->from)];
        const struct gg_codec_kern *to =
            &q->kern.codec[gg_dtype_index(t->to)];
        if (t->needs_imatrix ||
            (!q->t[i].imatrix && to->flags & GG_CODEC_NEEDS_WEIGHT))
            return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                           "tensor '%s': %s needs importance data",
                           gg_esc(&esc, gg_strz(t->name)),
                           gguf_dtype_find(t->to)->name);
        if (!from->decode || !to->encode)
            return gg_fail(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                           "tensor '%s': %s %s is not supported yet",
                           gg_esc(&esc, gg_strz(t->name)),
                           from->decode ? "encoding to" : "decoding",
                           gguf_dtype_find(from->decode ? t->to : t->from)
                               ->name);
    }
    return GGUF_OK;
}

/* Jobs that run together read the same tensors. */
static enum gguf_status check_same_input(const struct gguf_quant *a,
                                         const struct gguf_quant *b,
                                         struct gguf_error *err)
{
    bool same = a->n_t == b->n_t && !strcmp(gguf_split_path(a->set, 0),
                                            gguf_split_path(b->set, 0));
    for (size_t i = 0; same && i < a->n_t; i++)
        same = !strcmp(a->t[i].pub.name, b->t[i].pub.name) &&
               a->t[i].pub.from == b->t[i].pub.from &&
               a->t[i].src->info->off == b->t[i].src->info->off &&
               !memcmp(a->t[i].pub.ne, b->t[i].pub.ne, sizeof a->t[i].pub.ne);
    return same ? GGUF_OK
                : gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                          "jobs that run together must have the same input");
}

/* Must tensor i be looked at as numbers: because a job encodes it, or because
 * copies of float tensors are checked too? */
static bool wants_rows(const struct run *r, size_t i)
{
    const struct gguf_quant *q = r->jobs[0];
    const struct gguf_quant_tensor *t = &q->t[i].pub;
    const struct gguf_dtype_info *type = gguf_dtype_find(t->from);
    for (size_t k = 0; k < r->n_jobs; k++)
        if (!tensor(r, k, i)->copied)
            return true;
    return q->p.nonfinite == GGUF_NONFINITE_ERROR &&
           q->p.recipe->base != GG_RECIPE_KEEP && t->n_elements && type &&
           type->family == GGUF_FAMILY_FLOAT &&
           q->kern.codec[gg_dtype_index(t->from)].decode;
}

/* Cut all tensors into chunks of at most n elements; *most is what the jobs'
 * buffers need for one. */
static void cut_tensors(struct run *r, uint64_t n, uint64_t *most)
{
    const struct gguf_quant *q = r->jobs[0];
    uint64_t first = 0;
    *most = 0;
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gguf_quant_tensor *t = &q->t[i].pub;
        struct cut *cut = &r->cuts[i];
        cut->first = first;
        cut->rows = wants_rows(r, i);
        if (!cut->rows) {
            first += (t->from_size + PIECE - 1) / PIECE;
            continue;
        }
        uint64_t ne0 = (uint64_t)t->ne[0], rows = t->n_elements / ne0, out = 0;
        cut->n_rows = (uint64_t)t->ne[1];
        cut->row_from = t->from_size / rows;
        cut->per_chunk = GG_MIN(GG_MAX(1, n / ne0), cut->n_rows);
        cut->per_mat = (cut->n_rows + cut->per_chunk - 1) / cut->per_chunk;
        first += cut->per_mat * (rows / cut->n_rows);
        for (size_t k = 0; k < r->n_jobs; k++)
            if (!tensor(r, k, i)->copied)
                out += tensor(r, k, i)->to_size / rows * cut->per_chunk;
        *most = GG_MAX(*most, out);
    }
    r->cuts[q->n_t].first = first;
}

/* Sizes of chunks and buffers, within the memory that is allowed. */
static enum gguf_status make_buffers(struct run *r, struct gguf_error *err)
{
    const struct gguf_quant *q = r->jobs[0];
    uint64_t limit = q->p.max_memory ? q->p.max_memory : DEFAULT_MEMORY;
    uint64_t slice = SLICE, weights = 0, out, size;
    unsigned nth = gguf_pool_n_threads(q->p.pool);

    for (size_t i = 0; i < q->n_t; i++) {
        r->total += q->t[i].pub.from_size;
        uint64_t ne0 = (uint64_t)q->t[i].pub.ne[0];
        if (wants_rows(r, i))
            slice = GG_MAX(slice, ne0);
        for (size_t k = 0; k < r->n_jobs; k++)
            if (r->jobs[k]->t[i].imatrix)
                weights = GG_MAX(weights, ne0);
    }
    slice = (slice * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    weights = (weights * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    r->slice_size = (size_t)slice;
    r->weight_size = (size_t)weights;
    r->check_size = q->p.measure ? (size_t)slice : 0;
    slice += weights * r->n_jobs + r->check_size;
    for (uint64_t n = CHUNK;; n /= 2) {
        cut_tensors(r, n, &out);
        if (gg_ckd_add(&size, slice, out) ||
            gg_ckd_align(&size, size + ALIGN, ALIGN) || size > SIZE_MAX / 2)
            return gg_fail(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                           "a row is too long");
        if (size <= limit / nth || n < SLICE)
            break;
    }
    if (size > limit)
        return gg_fail(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                       "the longest rows need buffers of %" PRIu64
                       " bytes, limit is %" PRIu64,
                       size, limit);
    r->n_threads = (unsigned)GG_MIN(nth, limit / size);
    uint64_t n_losses = r->cuts[q->n_t].first;
    if (q->p.measure && (gg_ckd_mul(&n_losses, n_losses, r->n_jobs) ||
                         !(r->losses = gg_alloc_zero(q->p.allocator, n_losses,
                                                     sizeof *r->losses))))
        return gg_fail_nomem(err, SIZE_MAX);
    r->buffer_size = (size_t)size;
    r->buffers = gg_alloc_aligned(q->p.allocator,
                                  r->n_threads * r->buffer_size, ALIGN);
    return r->buffers ? GGUF_OK
                      : gg_fail_nomem(err, r->n_threads * r->buffer_size);
}

/* Of several outputs, say which one it was. */
static enum gguf_status about_output(const struct run *r, const char *path,
                                     enum gguf_status st,
                                     struct gguf_error *err)
{
    struct gg_esc esc;
    char message[sizeof err->message];
    if (st == GGUF_OK || r->first_writer[r->n_jobs] == 1 || !err)
        return st;
    memcpy(message, err->message, sizeof message);
    snprintf(err->message, sizeof err->message, "%s: %.300s",
             gg_esc(&esc, gg_strz(path)), message);
    return st;
}

static enum gguf_status open_writers(struct run *r, size_t k,
                                     const char *path,
                                     const struct gguf_quant_output *output,
                                     struct gguf_error *err)
{
    const struct gguf_quant *q = r->jobs[k];
    struct gguf_output_params p = GGUF_OUTPUT_PARAMS_INIT;
    size_t n = gguf_split_n_files(q->set);
    enum gguf_status st = GGUF_OK;
    const struct gguf_file **inputs =
        gg_alloc(q->p.allocator, n * sizeof *inputs);
    if (!inputs)
        return gg_fail_nomem(err, n * sizeof *inputs);
    for (size_t i = 0; i < n; i++)
        inputs[i] = gguf_split_file(q->set, i);
    p.force = output && output->force;
    p.no_sync = output && output->no_sync;
    p.inputs = inputs;
    p.n_inputs = n;
    for (size_t no = 0; no < q->n_shards && st == GGUF_OK; no++) {
        size_t w = r->first_writer[k] + no;
        st = gg_job_path(q, path, no, &r->paths[w], err);
        if (st == GGUF_OK)
            st = gg_job_writer(q, no, &r->writers[w], err);
        if (st == GGUF_OK)
            st = about_output(
                r, r->paths[w],
                gguf_writer_open(r->writers[w], r->paths[w], &p, err), err);
    }
    gg_free(q->p.allocator, inputs);
    return st;
}

/* Give all files their names. If one cannot have it, those of this run that
 * have are removed again. */
static enum gguf_status commit(struct run *r, struct gguf_error *err)
{
    size_t n = r->first_writer[r->n_jobs];
    for (size_t w = 0; w < n; w++) {
        enum gguf_status st = gguf_writer_commit(r->writers[w], err);
        if (st == GGUF_OK)
            continue;
        about_output(r, r->paths[w], st, err);
        while (w)
            unlink(r->paths[--w]);
        return st;
    }
    return GGUF_OK;
}

static void finish_losses(struct run *r)
{
    size_t n_t = r->jobs[0]->n_t;
    for (size_t k = 0; k < r->n_jobs; k++)
        for (size_t i = 0; i < n_t; i++) {
            const struct cut *cut = &r->cuts[i];
            struct gguf_quant_tensor *t = &r->jobs[k]->t[i].pub;
            if (!t->copied)
                gg_loss_finish(r->losses + k * r->cuts[n_t].first + cut->first,
                               (size_t)(cut[1].first - cut->first), &t->loss);
        }
}

static enum gguf_status run_all(struct run *r, const char *const *paths,
                                const struct gguf_quant_output *output,
                                struct gguf_error *err)
{
    for (size_t k = 0; k < r->n_jobs; k++) {
        GG_TRY(check_codecs(r->jobs[k], err));
        GG_TRY(check_same_input(r->jobs[0], r->jobs[k], err));
    }
    GG_TRY(make_buffers(r, err));
    for (size_t k = 0; k < r->n_jobs; k++)
        GG_TRY(open_writers(r, k, paths[k], output, err));
    gguf_pool_run(r->jobs[0]->p.pool, work, r);
    for (size_t k = 0; k < r->n_jobs; k++)
        r->jobs[k]->totals.n_nonfinite = atomic_load(&r->n_nonfinite);
    if (r->losses)
        finish_losses(r);
    if (r->status == GGUF_OK)
        poll(r, 0);
    if (r->status != GGUF_OK) {
        if (err)
            *err = r->err;
        return r->status;
    }
    return commit(r, err);
}

/* Everything but the buffers, which make_buffers takes. */
static enum gguf_status run_init(struct run *r, struct gguf_quant *const *jobs,
                                 size_t n, struct gguf_error *err)
{
    const struct gguf_allocator *a = jobs[0]->p.allocator;
    size_t n_files = 0;
    r->jobs = jobs;
    r->n_jobs = n;
    r->first_writer = gg_alloc_zero(a, n + 1, sizeof *r->first_writer);
    if (!r->first_writer)
        return gg_fail_nomem(err, (n + 1) * sizeof *r->first_writer);
    for (size_t k = 0; k < n; k++) {
        r->first_writer[k] = n_files;
        n_files += jobs[k]->n_shards;
    }
    r->writers = gg_alloc_zero(a, n_files, sizeof *r->writers);
    r->paths = gg_alloc_zero(a, n_files, sizeof *r->paths);
    r->cuts = gg_alloc_zero(a, jobs[0]->n_t + 1, sizeof *r->cuts);
    if (!r->writers || !r->paths || !r->cuts)
        return gg_fail_nomem(err, (jobs[0]->n_t + 1) * sizeof *r->cuts);
    r->first_writer[n] = n_files; /* what run_fini looks at */
    return GGUF_OK;
}

static void run_fini(struct run *r)
{
    const struct gguf_allocator *a = r->jobs[0]->p.allocator;
    size_t n = r->first_writer ? r->first_writer[r->n_jobs] : 0;
    for (size_t w = 0; w < n; w++) {
        gguf_writer_destroy(r->writers[w]);
        gg_free(a, r->paths[w]);
    }
    gg_free_aligned(a, r->buffers);
    gg_free(a, r->writers);
    gg_free(a, r->paths);
    gg_free(a, r->first_writer);
    gg_free(a, r->cuts);
    gg_free(a, r->losses);
}

enum gguf_status gguf_quant_run_many(struct gguf_quant *const *jobs,
                                     const char *const *paths, size_t n,
                                     const struct gguf_quant_output *output,
                                     struct gguf_error *err)
{
    if (!n || (output && output->struct_size != sizeof *output))
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       n ? "gguf_quant_output: struct_size" : "no jobs");
    const struct gguf_allocator *a = jobs[0]->p.allocator;
    struct run *r = gg_alloc_zero(a, 1, sizeof *r);
    if (!r)
        return gg_fail_nomem(err, sizeof *r);
    if (pthread_mutex_init(&r->lock, NULL)) {
        gg_free(a, r);
        return gg_fail_nomem(err, sizeof r->lock);
    }
    enum gguf_status st = run_init(r, jobs, n, err);
    if (st == GGUF_OK)
        st = run_all(r, paths, output, err);
    run_fini(r);
    pthread_mutex_destroy(&r->lock);
    gg_free(a, r);
    return st;
}

enum gguf_status gguf_quant_run(struct gguf_quant *q, const char *path,
                                const struct gguf_quant_output *output,
                                struct gguf_error *err)
{
    return gguf_quant_run_many(&q, &path, 1, output, err);
}
