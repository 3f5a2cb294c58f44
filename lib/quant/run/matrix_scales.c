/* SPDX-License-Identifier: MIT */
/* matrix_scales.c - compute scale tensors before the blocks are encoded
 *
 * The scale of a matrix depends on its largest weight: all rows are scanned for
 * it.
 */
#include "config.h"
#include "quant/run/job_run.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "quant/job/outer_scale.h"

static bool has_outer(const struct gg_quant_run *r, size_t i)
{
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
        if (t && t->outer)
            return true;
    }
    return false;
}

/* Find the largest finite weight in a chunk of rows of matrix mat, from row
 * on. */
static void scan_chunk(struct gg_quant_run *r, size_t i, uint64_t mat,
                       uint64_t row, uint64_t n_rows, float *slice)
{
    const struct gg_quant_run_cut *cut = &r->cuts[i];
    uint64_t ne0 = (uint64_t)gg_quant_run_first_tensor(r, i)->pub.ne[0];
    uint64_t step = GG_MAX(1, GG_RUN_SLICE / ne0) * ne0;
    float largest =
        gg_data_find_largest(&cut->src, (mat * cut->n_rows + row) * ne0,
                             n_rows * ne0, 0, slice, step);
    _Atomic uint32_t *to = &r->states[i].largest[mat];
    uint32_t bits = gg_bytes_f32_bits(largest), known = atomic_load(to);
    while (bits > known && !atomic_compare_exchange_weak(to, &known, bits))
        continue;
}

static void scan_chunks(void *user, unsigned ith, unsigned nth)
{
    struct gg_quant_run *r = user;
    size_t i = 0;
    (void)nth;
    if (ith >= r->n_threads)
        return;
    float *slice = (float *)(void *)(r->buffers + ith * r->buffer_size);
    while (!gg_quant_run_poll_progress(r, ith)) {
        uint64_t no = atomic_fetch_add(&r->next_scan, 1);
        if (no >= r->cuts[r->n_t].first)
            return;
        while (no >= r->cuts[i + 1].first)
            i++; /* chunks are taken in ascending order */
        if (!r->states[i].largest)
            continue;
        const struct gg_quant_run_cut *cut = &r->cuts[i];
        uint64_t k = no - cut->first, row = k % cut->per_mat * cut->per_chunk;
        const uint64_t n = GG_MIN(cut->per_chunk, cut->n_rows - row);
        const uint64_t off =
            (k / cut->per_mat * cut->n_rows + row) * cut->row_from;
        if (!gg_quant_run_hold_bytes(r, i, no, off, n * cut->row_from))
            return;
        scan_chunk(r, i, k / cut->per_mat, row, n, slice);
        gg_job_release(r->jobs[0], gg_quant_run_first_tensor(r, i), off,
                       n * cut->row_from);
    }
}

/* Write the scales of tensor i to the file of job k. */
static enum gguf_status write_scales(struct gg_quant_run *r, size_t k,
                                     size_t i, struct gguf_error *err)
{
    const struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
    struct gguf_writer *w = r->writers[r->first_writer[k] + t->shard];
    for (size_t m = 0; m < gg_job_n_mats(t); m++) {
        uint8_t b[4];
        t->outer[m] = gg_outer_scale_compute(
            gg_bytes_f32_from_bits(atomic_load(&r->states[i].largest[m])));
        gg_bytes_store32le(b, gg_bytes_f32_bits(t->outer[m]));
        GG_TRY(gguf_writer_write_at(w, t->index + 1, 4 * m, b, 4, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_quant_run_write_scales(struct gg_quant_run *r,
                                           struct gguf_error *err)
{
    const struct gguf_quant *q = r->jobs[0];
    bool some = false;
    for (size_t i = 0; i < r->n_t; i++) {
        if (!has_outer(r, i))
            continue;
        size_t n = gg_job_n_mats(gg_quant_run_first_tensor(r, i));
        r->states[i].largest =
            gg_mem_alloc_zero(q->p.allocator, n, sizeof *r->states[i].largest);
        if (!r->states[i].largest)
            return gg_error_set_nomem(err, n * sizeof *r->states[i].largest);
        some = true;
    }
    if (!some)
        return GGUF_OK;
    gguf_pool_run(q->p.pool, (struct gguf_pool_callback){ scan_chunks, r });
    if (r->status != GGUF_OK) {
        if (err)
            *err = r->err;
        return r->status;
    }
    for (size_t k = 0; k < r->n_jobs; k++)
        for (size_t i = 0; i < r->n_t; i++) {
            const struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
            if (t && t->outer)
                GG_TRY(write_scales(r, k, i, err));
        }
    return GGUF_OK;
}

void gg_quant_run_free_scales(struct gg_quant_run *r)
{
    for (size_t i = 0; r->states && i < r->n_t; i++)
        gg_mem_free(r->jobs[0]->p.allocator, (void *)r->states[i].largest);
}
