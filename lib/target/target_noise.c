/* SPDX-License-Identifier: MIT */
/* target_noise.c - measure the noise of each candidate type in each tensor
 *
 * One thread measures one type of a tensor at a time, row after row: sums do
 * not depend on the number of threads.
 */
#include "config.h"
#include "target/target_int.h"
#include "base/compiler.h"
#include "base/str.h"
#include "quant/run/finite_rows.h"
#include "quant/run/loss.h"
#include "quant/job/outer_scale.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SAMPLE = 1 << 17, /* elements of a tensor: a few seconds for a billion
                       * weights, and an error of 1% of the noise */
    SAMPLE_ROWS = 32, /* rows of a tensor, at least */
    RUN = 8, /* neighbouring rows that a remote file is asked for together */
    PLACES = 8,       /* places of such runs in a tensor, at least */
    SLICE = 16384,    /* elements decoded at once */
    ALIGN = 64,       /* alignment of buffers for vector loads */
    PIECE = 256 << 10 /* bytes loaded around a row, at most */
};
#define DEFAULT_MEMORY (UINT64_C(128) << 20)

struct work {
    const struct gguf_quant *q;
    struct gg_target_tensor *tensors;
    size_t n;
    uint64_t sample; /* elements of a tensor; 0: SAMPLE and SAMPLE_ROWS */
    uint64_t total;  /* bytes of input to read, repeated reads included */
    uint8_t *buffers;
    size_t buffer_size; /* bytes of a buffer; each thread has one */
    size_t slice_size;  /* bytes for floats, twice in a buffer; one row of
                         * weights and encoded bytes follow */
    size_t weight_size;
    unsigned n_threads;
    atomic_size_t next; /* next pair of tensor and option */
    atomic_uint_fast64_t done;
    atomic_bool stop;
};

/* Must the noise of this option be measured? */
static bool is_measured(const struct gg_target_tensor *tt,
                        const struct gg_target_option *o)
{
    return o->to != tt->t->pub.from && !o->known;
}

/* Sampled rows of a tensor. */
struct sample {
    uint64_t rows, n, run; /* rows of the tensor; sampled rows; neighbouring
                            * rows in a run */
};

/* Choose the sample of a tensor. Rows have no neighbours if every fourth row or
 * more is sampled, or if there are several matrices. */
static struct sample sample_of(const struct work *w,
                               const struct gguf_quant_tensor *t)
{
    uint64_t ne0 = (uint64_t)t->ne[0], rows = t->n_elements / ne0;
    uint64_t want = w->sample ? (w->sample - 1) / ne0 + 1
                              : GG_MAX(SAMPLE / ne0, (uint64_t)SAMPLE_ROWS);
    struct sample s = { rows, GG_MIN(rows, want), 1 };
    if (s.n < rows / 4 && rows == (uint64_t)t->ne[1] && s.n >= 2 * PLACES) {
        s.run = GG_MIN(s.n / PLACES, (uint64_t)RUN);
        s.n = (s.n + s.run - 1) / s.run * s.run;
    }
    return s;
}

/* Row of sample k. All rows are divided into parts; the first ones have one row
 * more. The run of a part is in its middle. */
static uint64_t row_at(struct sample s, uint64_t k)
{
    const uint64_t no = k / s.run, parts = s.n / s.run;
    const uint64_t part = s.rows / parts, rest = s.rows % parts;
    return no * part + GG_MIN(no, rest) + (part + 1 - s.run) / 2 + k % s.run;
}

static uint64_t n_sampled(const struct work *w,
                          const struct gguf_quant_tensor *t)
{
    return sample_of(w, t).n;
}

/* Bytes of a row of the input. */
static uint64_t row_bytes(const struct gguf_quant_tensor *t)
{
    return t->from_size / (t->n_elements / (uint64_t)t->ne[0]);
}

/* Bytes that are read to measure a type: the sampled rows and, if scales must
 * be found, all rows of their matrices. */
static uint64_t count_sampled_bytes(const struct work *w,
                                    const struct gg_target_tensor *tt,
                                    uint32_t type)
{
    const struct gguf_quant_tensor *t = &tt->t->pub;
    const struct sample s = sample_of(w, t);
    uint64_t n_mats = 0, last = UINT64_MAX;
    bool outer = gg_outer_scale_is_wanted(w->q, tt->t, type);
    for (uint64_t k = 0; outer && k < s.n; k++) {
        uint64_t m = row_at(s, k) / (uint64_t)t->ne[1];
        n_mats += m != last;
        last = m;
    }
    return (s.n + n_mats * (uint64_t)t->ne[1]) * row_bytes(t);
}

/* Read a row. Non-finite weights become zero here; the run reports them. */
static void read_row(const struct gg_data_rows *src, uint64_t row, size_t ne0,
                     float *dst)
{
    gg_data_read(src, row * ne0, ne0, dst);
    for (size_t i = 0; i < ne0 && !gg_quant_is_finite(dst, ne0); i++)
        if (!gg_quant_is_finite(dst + i, 1))
            dst[i] = 0;
}

/* Report progress from thread 0, the calling one. Returns true to stop. */
static bool poll_progress(struct work *w, unsigned ith)
{
    const struct gguf_quant_params *p = &w->q->p;
    if (!ith && p->progress.fn &&
        p->progress.fn(p->progress.user, atomic_load(&w->done), w->total))
        atomic_store(&w->stop, true);
    return atomic_load(&w->stop);
}

/* The measurement of an option of a tensor. */
struct option_trial {
    const struct gg_target_tensor *tt;
    struct gg_target_option *o;
    const struct gg_imatrix_entry *imatrix; /* NULL: none */
    struct gg_data_rows src;
    struct gg_loss loss;
    double divergence; /* predicted for the measured rows */
    uint64_t mat;      /* number of the present matrix */
    size_t ne0;
    bool outer;  /* the type gets a scale tensor */
    float scale; /* scale of the present matrix */
    /* parts of the thread's buffer */
    float *slice, *back, *weights;
    uint8_t *out;
};

/* Encode and decode n rows of the slice, and add the errors. */
static void measure_rows(const struct work *w, struct option_trial *y,
                         size_t n)
{
    const struct gg_codec_kern *codec =
        &w->q->kern.codec[gg_dtype_index(y->o->to)];
    const float *from = y->slice;
    for (size_t e = 0; y->outer && e < n * y->ne0; e++)
        y->back[e] = y->slice[e] / y->scale;
    if (y->outer)
        from = y->back;
    codec->encode(from, y->out, n, y->ne0, y->imatrix ? y->weights : NULL);
    codec->decode(y->out, y->back, n * y->ne0);
    for (size_t e = 0; y->outer && e < n * y->ne0; e++)
        y->back[e] *= y->scale;
    const float *weights = y->imatrix ? y->weights : NULL;
    gg_loss_add(&y->loss, y->slice, y->back, n, y->ne0, weights);
    if (!y->tt->effect.known)
        return;
    struct gg_loss some = { 0 };
    gg_loss_add(&some, y->slice, y->back, n, y->ne0, weights);
    y->divergence +=
        gg_target_predict_rows(w->q, y->tt, y->mat, some.err2, some.weighted);
}

/* Noise of an option. n rows were measured; the tensor has all rows. */
static double noise_of(const struct option_trial *y, uint64_t n, uint64_t all)
{
    if (y->loss.n < (double)(n * y->ne0))
        return (double)INFINITY;
    if (y->tt->effect.known)
        return y->divergence * ((double)all / (double)n);
    return y->loss.weighted_in > 0 ? y->loss.weighted / y->loss.weighted_in
                                   : 0;
}

/* Prepare matrix m: its importances, and the scale that a run would find in its
 * rows. Returns false to stop. */
static bool start_matrix(struct work *w, struct option_trial *y, uint64_t m,
                         unsigned ith)
{
    const struct gguf_quant_tensor *t = &y->tt->t->pub;
    uint64_t n = (uint64_t)t->ne[0] * (uint64_t)t->ne[1];
    uint64_t step = GG_MAX(SLICE / y->ne0, 1) * y->ne0;
    float largest = 0;
    y->mat = m;
    if (y->imatrix)
        gg_imatrix_weights(y->imatrix, m * y->ne0, y->ne0, y->weights);
    for (uint64_t at = 0, k; y->outer && at < n; at += k) {
        k = GG_MIN(step, n - at);
        largest = gg_data_find_largest(&y->src, m * n + at, k, largest,
                                       y->slice, step);
        atomic_fetch_add(&w->done, k / y->ne0 * row_bytes(t));
        if (poll_progress(w, ith))
            return false;
    }
    y->scale = gg_outer_scale_compute(largest);
    return true;
}

/* Measure all sampled rows of a tensor in one type. */
static void measure_option(struct work *w, const struct gg_target_tensor *tt,
                           struct gg_target_option *o, unsigned ith)
{
    const struct gguf_quant_tensor *t = &tt->t->pub;
    uint8_t *buffer = w->buffers + ith * w->buffer_size;
    size_t ne0 = (size_t)t->ne[0], most = GG_MAX(SLICE / ne0, 1), n_slice = 0;
    const struct sample s = sample_of(w, t);
    uint64_t n = s.n, mat = 0;
    struct option_trial y = {
        .tt = tt,
        .o = o,
        .ne0 = ne0,
        .imatrix = gg_job_imatrix(w->q, tt->t),
        .src = tt->src,
        .outer = gg_outer_scale_is_wanted(w->q, tt->t, o->to),
        .slice = (float *)(void *)buffer,
        .back = (float *)(void *)(buffer + w->slice_size),
        .weights = (float *)(void *)(buffer + 2 * w->slice_size),
        .out = buffer + 2 * w->slice_size + w->weight_size
    };
    if (!y.src.read) {
        o->noise = (double)INFINITY;
        return;
    }
    for (uint64_t k = 0; k <= n; k++) {
        uint64_t row = k < n ? row_at(s, k) : 0;
        uint64_t m = k < n ? row / (uint64_t)t->ne[1] : UINT64_MAX;
        if (n_slice && (m != mat || n_slice == most)) {
            measure_rows(w, &y, n_slice);
            atomic_fetch_add(&w->done, n_slice * row_bytes(t));
            n_slice = 0;
            if (poll_progress(w, ith))
                return;
        }
        if (k < n && (m != mat || !k) && !start_matrix(w, &y, m, ith))
            return;
        mat = m;
        if (k < n)
            read_row(&y.src, row, ne0, y.slice + n_slice++ * ne0);
    }
    o->noise = noise_of(&y, n, s.rows);
}

static void measure_pieces(void *user, unsigned ith, unsigned nth)
{
    struct work *w = user;
    size_t i = 0, first = 0; /* number of a tensor, and of its first option */
    (void)nth;
    while (ith < w->n_threads && !atomic_load(&w->stop)) {
        size_t no = atomic_fetch_add(&w->next, 1);
        while (i < w->n && no - first >= w->tensors[i].n)
            first += w->tensors[i++].n; /* options are taken in ascending
                                         * order */
        if (i == w->n)
            return;
        struct gg_target_tensor *t = &w->tensors[i];
        struct gg_target_option *o = &t->options[no - first];
        if (is_measured(t, o))
            measure_option(w, t, o, ith);
    }
}

static uint64_t memory_limit(const struct gguf_quant *q)
{
    return q->p.max_memory ? q->p.max_memory : DEFAULT_MEMORY;
}

static enum gguf_status make_buffers(struct work *w, struct gguf_error *err)
{
    const struct gguf_quant_params *p = &w->q->p;
    uint64_t limit = memory_limit(w->q);
    uint64_t row = 0, out = 0, slice, size, all;
    unsigned nth = gguf_pool_n_threads(p->pool);
    for (size_t i = 0; i < w->n; i++) {
        const struct gguf_quant_tensor *t = &w->tensors[i].t->pub;
        uint64_t ne0 = (uint64_t)t->ne[0], rows = t->n_elements / ne0;
        uint64_t most = GG_MAX(SLICE / ne0, 1);
        row = GG_MAX(row, ne0);
        for (size_t k = 0; k < w->tensors[i].n; k++) {
            const struct gg_target_option *o = &w->tensors[i].options[k];
            out = GG_MAX(out, o->size / rows * most);
            if (is_measured(&w->tensors[i], o))
                w->total += count_sampled_bytes(w, &w->tensors[i], o->to);
        }
    }
    slice = GG_MAX(row, (uint64_t)SLICE);
    if (gg_ckd_mul(&slice, slice, sizeof(float)) ||
        gg_ckd_align(&slice, slice, ALIGN) ||
        gg_ckd_align(&row, row * sizeof(float), ALIGN) ||
        gg_ckd_mul(&size, slice, 2) || gg_ckd_add(&size, size, row) ||
        gg_ckd_add(&size, size, out) || gg_ckd_align(&size, size, ALIGN) ||
        gg_ckd_mul(&all, size, nth) || all > SIZE_MAX / 2)
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "a row is too long");
    if (size > limit)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the longest rows need buffers of %" PRIu64
                            " bytes, limit is %" PRIu64,
                            size, limit);
    w->slice_size = (size_t)slice;
    w->weight_size = (size_t)row;
    w->buffer_size = (size_t)size;
    w->n_threads = (unsigned)GG_MIN(nth, limit / size);
    w->buffers = gg_mem_alloc_aligned(p->allocator,
                                      w->n_threads * w->buffer_size, ALIGN);
    return w->buffers ? GGUF_OK
                      : gg_error_set_nomem(err, w->n_threads * w->buffer_size);
}

/* ---- some tensors at a time ---- */

/* Number of rows that are loaded together: one or, if a scale must be found, a
 * matrix. 0: the tensor is not read. */
static uint64_t rows_per_piece(const struct work *w,
                               const struct gg_target_tensor *tt)
{
    uint64_t rows = 0;
    for (size_t k = 0; k < tt->n; k++)
        if (is_measured(tt, &tt->options[k]))
            rows = gg_outer_scale_is_wanted(w->q, tt->t, tt->options[k].to)
                       ? (uint64_t)tt->t->pub.ne[1]
                       : GG_MAX(rows, 1);
    return rows;
}

/* Bytes of memory that the loaded rows of a tensor take. */
static uint64_t bytes_held(const struct work *w,
                           const struct gg_target_tensor *tt)
{
    const struct gguf_quant_tensor *t = &tt->t->pub;
    const struct sample s = sample_of(w, t);
    const uint64_t size = s.run * rows_per_piece(w, tt) * row_bytes(t);
    return size ? GG_MIN(s.n / s.run * GG_MAX(size, (uint64_t)PIECE),
                         t->from_size + 2 * PIECE)
                : 0;
}

/* Consecutive rows that are loaded together. */
struct piece {
    uint64_t first, end;
};

/* Get the piece that begins at sampled row *k, and advance *k past it. */
static struct piece next_piece(const struct work *w,
                               const struct gg_target_tensor *tt, uint64_t *k)
{
    const struct gguf_quant_tensor *t = &tt->t->pub;
    const struct sample s = sample_of(w, t);
    const uint64_t some = rows_per_piece(w, tt);
    struct piece p = { 0, 0 };
    for (bool on = true; on && *k < s.n; *k += on) {
        const uint64_t first = row_at(s, *k) / some * some;
        if (!p.end)
            p.first = first;
        on = !p.end || first <= p.end;
        if (on)
            p.end = first + some;
    }
    return p;
}

/* Release the sampled rows before number end. */
static void release_rows(const struct work *w,
                         const struct gg_target_tensor *tt, uint64_t end)
{
    const uint64_t size = row_bytes(&tt->t->pub);
    end = GG_MIN(end, n_sampled(w, &tt->t->pub));
    for (uint64_t k = 0; k < end;) {
        const struct piece p = next_piece(w, tt, &k);
        gg_job_release(w->q, tt->t, p.first * size, (p.end - p.first) * size);
    }
}

/* Load all sampled rows of a tensor. After a failure nothing is held. */
static enum gguf_status hold_rows(const struct work *w,
                                  const struct gg_target_tensor *tt,
                                  struct gguf_error *err)
{
    const uint64_t n = n_sampled(w, &tt->t->pub);
    const uint64_t size = row_bytes(&tt->t->pub);
    enum gguf_status st = GGUF_OK;
    for (uint64_t k = 0, before; rows_per_piece(w, tt) && k < n;) {
        before = k;
        const struct piece p = next_piece(w, tt, &k);
        st = gg_job_hold(w->q, tt->t, p.first * size, (p.end - p.first) * size,
                         err);
        if (st == GGUF_OK)
            continue;
        release_rows(w, tt, before);
        break;
    }
    return st;
}

/* Prepare to read a tensor. A tensor that cannot be decoded gets no choice;
 * other failures end the measurement. */
static enum gguf_status prepare_tensor(struct work *w,
                                       struct gg_target_tensor *tt,
                                       struct gguf_error *err)
{
    const enum gguf_status st = gg_job_rows(w->q, tt->t, &tt->src, err);
    if (st == GGUF_E_UNSUPPORTED || st == GGUF_E_TENSOR) {
        tt->src.read = NULL;
        gguf_error_clear(err);
    } else if (st != GGUF_OK) {
        return st;
    }
    return hold_rows(w, tt, err);
}

/* Measure the next n tensors. */
static enum gguf_status measure_some(struct work *w, size_t n,
                                     struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    size_t taken = 0;
    w->n = n;
    atomic_store(&w->next, 0);
    while (taken < n && !poll_progress(w, 0) &&
           (st = prepare_tensor(w, &w->tensors[taken], err)) == GGUF_OK)
        taken++;
    if (st == GGUF_OK)
        gguf_pool_run(w->q->p.pool,
                      (struct gguf_pool_callback){ measure_pieces, w });
    while (taken--)
        if (rows_per_piece(w, &w->tensors[taken]))
            release_rows(w, &w->tensors[taken], UINT64_MAX);
    w->tensors += n;
    return st;
}

enum gguf_status gg_target_measure(const struct gguf_quant *q,
                                   struct gg_target_tensor *tensors, size_t n,
                                   uint64_t sample, struct gguf_error *err)
{
    struct work w = { .q = q, .tensors = tensors, .n = n, .sample = sample };
    const uint64_t most = memory_limit(q) / 2;
    const bool far = gg_job_has_reader(q);
    enum gguf_status st = make_buffers(&w, err);
    for (size_t at = 0, k; at < n && st == GGUF_OK; at += k) {
        uint64_t size = 0;
        for (k = 0; at + k < n; k++) {
            size += far ? bytes_held(&w, &tensors[at + k]) : 0;
            if (k && size > most)
                break;
        }
        st = measure_some(&w, k, err);
    }
    gg_mem_free_aligned(q->p.allocator, w.buffers);
    if (st != GGUF_OK)
        return st;
    if (!atomic_load(&w.stop))
        poll_progress(&w, 0);
    if (atomic_load(&w.stop))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}
