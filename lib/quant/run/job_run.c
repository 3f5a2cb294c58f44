/* SPDX-License-Identifier: MIT */
/* job_run.c - a run of jobs: open, process, sync and name its files */
#include "config.h"
#include "quant/run/job_run.h"
#include "base/params.h"
#include "file/writer_int.h"

/* Open the files of job k. gg_quant_run_check_paths has checked that the input
 * is not an output; gg_quant_run_commit checks at the end that it has not
 * changed. */
static enum gguf_status open_writers(struct gg_quant_run *r, size_t k,
                                     const struct gguf_quant_output *output,
                                     struct gguf_error *err)
{
    const struct gguf_quant *q = r->jobs[k];
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    p.force = output->force;
    p.no_sync = output->no_sync;
    p.partial = p.resume = r->resume != NULL;
    for (size_t no = 0; no < q->n_shards; no++) {
        size_t w = r->first_writer[k] + no;
        if (!r->writers[w])
            GG_TRY(gg_job_create_writer(q, no, &r->writers[w], err));
        GG_TRY(gg_quant_run_name_output(
            r, r->paths[w],
            gguf_writer_begin_file(r->writers[w], r->paths[w], &p, err), err));
    }
    return GGUF_OK;
}

/* Store the counts of non-finite weights in the jobs. */
static void finish_nonfinite(struct gg_quant_run *r)
{
    for (size_t k = 0; k < r->n_jobs; k++) {
        struct gguf_quant_totals *sum = &r->jobs[k]->totals;
        sum->n_nonfinite = 0;
        for (size_t i = 0; i < r->n_t; i++) {
            struct gg_job_tensor *t = gg_quant_run_tensor(r, k, i);
            uint64_t n = atomic_load(&r->states[i].n_nonfinite);
            if (!t)
                continue;
            t->pub.n_nonfinite = n;
            t->pub.first_nonfinite =
                n ? atomic_load(&r->states[i].first_nonfinite) : 0;
            sum->n_nonfinite += n;
        }
    }
}

/* Sync the files piece by piece, so that a stop can interrupt it. */
static enum gguf_status sync_all(struct gg_quant_run *r,
                                 struct gguf_error *err)
{
    for (size_t w = 0; w < r->first_writer[r->n_jobs]; w++) {
        uint64_t end = gguf_writer_file_size(r->writers[w]);
        for (uint64_t at = 0; at < end && !gg_quant_run_poll_progress(r, 0);)
            GG_TRY(gg_writer_sync_some(r->writers[w], &at, err));
    }
    return GGUF_OK;
}

static enum gguf_status run_all(struct gg_quant_run *r,
                                const char *const *paths,
                                const struct gguf_quant_output *output,
                                struct gguf_error *err)
{
    GG_TRY(gg_quant_run_prepare(r, err));
    for (size_t k = 0; k < r->n_jobs; k++)
        for (size_t no = 0; no < r->jobs[k]->n_shards; no++)
            GG_TRY(gg_job_format_path(r->jobs[k], paths[k], no,
                                      &r->paths[r->first_writer[k] + no],
                                      err));
    GG_TRY(gg_quant_run_check_paths(r, paths, output, err));
    if (output->resume)
        GG_TRY(gg_quant_run_open_journals(
            r, paths, output->improve.fn ? output->improve_digest : NULL,
            !output->no_sync, err));
    for (size_t k = 0; k < r->n_jobs; k++)
        GG_TRY(open_writers(r, k, output, err));
    GG_TRY(gg_quant_run_write_scales(r, err));
    if (r->resume)
        GG_TRY(gg_quant_run_find_complete(r, err));
    gguf_pool_run(r->jobs[0]->p.pool, (struct gguf_pool_callback){
                                          gg_quant_run_process_chunks, r });
    finish_nonfinite(r);
    for (size_t i = 0; i < r->n_t; i++)
        if (!r->states[i].kept)
            gg_quant_run_finish_loss(r, i);
    if (r->status == GGUF_OK)
        gg_quant_run_poll_progress(r, 0);
    if (r->status == GGUF_OK)
        GG_TRY(sync_all(r, err));
    if (r->status != GGUF_OK) {
        if (err)
            *err = r->err;
        return r->status;
    }
    return gg_quant_run_commit(r, output, err);
}

/* Initialise everything but the buffers, which gg_quant_run_prepare
 * allocates. */
static enum gguf_status run_init(struct gg_quant_run *r,
                                 struct gguf_quant *const *jobs, size_t n,
                                 struct gguf_error *err)
{
    const struct gguf_allocator *a = jobs[0]->p.allocator;
    size_t n_files = 0;
    r->jobs = jobs;
    r->n_jobs = n;
    r->first_writer = gg_mem_alloc_zero(a, n + 1, sizeof *r->first_writer);
    if (!r->first_writer)
        return gg_error_set_nomem(err, (n + 1) * sizeof *r->first_writer);
    for (size_t k = 0; k < n; k++) {
        r->first_writer[k] = n_files;
        n_files += jobs[k]->n_shards;
    }
    r->writers = gg_mem_alloc_zero(a, n_files, sizeof *r->writers);
    r->paths = gg_mem_alloc_zero(a, n_files, sizeof *r->paths);
    if (!r->writers || !r->paths)
        return gg_error_set_nomem(err, n_files * sizeof *r->writers);
    r->first_writer[n] = n_files; /* set last: run_fini reads it */
    GG_TRY(gg_quant_run_join_tensors(r, err));
    r->cuts = gg_mem_alloc_zero(a, r->n_t + 1, sizeof *r->cuts);
    r->states = gg_mem_alloc_zero(a, r->n_t, sizeof *r->states);
    if (!r->cuts || !r->states)
        return gg_error_set_nomem(err, (r->n_t + 1) * sizeof *r->cuts);
    for (size_t i = 0; i < r->n_t; i++)
        atomic_init(&r->states[i].first_nonfinite, UINT64_MAX);
    return GGUF_OK;
}

static void run_fini(struct gg_quant_run *r)
{
    const struct gguf_allocator *a = r->jobs[0]->p.allocator;
    size_t n = r->first_writer ? r->first_writer[r->n_jobs] : 0;
    for (size_t w = 0; w < n; w++) {
        gguf_writer_destroy(r->writers[w]);
        gg_mem_free(a, r->paths[w]);
    }
    gg_mem_free_aligned(a, r->buffers);
    gg_mem_free(a, r->writers);
    gg_mem_free(a, r->paths);
    gg_mem_free(a, r->first_writer);
    gg_mem_free(a, r->cuts);
    gg_mem_free(a, r->losses);
    gg_mem_free(a, r->resume);
    gg_quant_run_free_scales(r);
    gg_mem_free(a, r->states);
    gg_mem_free(a, r->tensors);
}

enum gguf_status gguf_quant_run_many(struct gguf_quant *const *jobs,
                                     const char *const *paths, size_t n,
                                     const struct gguf_quant_output *output,
                                     struct gguf_error *err)
{
    struct gguf_quant_output own = GGUF_QUANT_OUTPUT_INIT;
    GG_TRY(gg_params_take(&own, sizeof own, output, "gguf_quant_output", err));
    if (!n)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_quant_run_many: no jobs");
    GG_TRY(gg_params_need_all(jobs, n, "job", err));
    GG_TRY(gg_params_need_all(paths, n, "path", err));
    const struct gguf_allocator *a = jobs[0]->p.allocator;
    struct gg_quant_run *r = gg_mem_alloc_zero(a, 1, sizeof *r);
    if (!r)
        return gg_error_set_nomem(err, sizeof *r);
    if (pthread_mutex_init(&r->lock, NULL)) {
        gg_mem_free(a, r);
        return gg_error_set_nomem(err, sizeof r->lock);
    }
    enum gguf_status st = run_init(r, jobs, n, err);
    if (st == GGUF_OK)
        st = run_all(r, paths, &own, err);
    enum gguf_status end = gg_quant_run_close_journals(r, st == GGUF_OK, err);
    st = st == GGUF_OK ? end : st;
    run_fini(r);
    pthread_mutex_destroy(&r->lock);
    gg_mem_free(a, r);
    return st;
}

enum gguf_status gguf_quant_run(struct gguf_quant *q, const char *path,
                                const struct gguf_quant_output *output,
                                struct gguf_error *err)
{
    return gguf_quant_run_many(&q, &path, 1, output, err);
}
