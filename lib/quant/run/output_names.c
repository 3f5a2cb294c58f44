/* SPDX-License-Identifier: MIT */
/* output_names.c - paths of a run's files: checked before, named after the work
 *
 * Before the work, all paths to read and write are checked to be different
 * files. At the end, all files get their names, or none does.
 */
#include "config.h"
#include "quant/run/job_run.h"
#include "base/outfile_int.h"
#include "base/paths_int.h"
#include "base/str.h"
#include "file/file_int.h"
#include "file/shard_set.h"
#include "file/writer_int.h"

#include <stdio.h>
#include <string.h>

enum gguf_status gg_quant_run_name_output(const struct gg_quant_run *r,
                                          const char *path,
                                          enum gguf_status st,
                                          struct gguf_error *err)
{
    struct gg_str_esc esc;
    char message[sizeof err->message];
    if (st == GGUF_OK || r->first_writer[r->n_jobs] == 1 || !err)
        return st;
    memcpy(message, err->message, sizeof message);
    snprintf(err->message, sizeof err->message, "%s: %.300s",
             gg_str_esc(&esc, gg_str_z(path)), message);
    return st;
}

static enum gguf_status note_inputs(const struct gg_quant_run *r,
                                    struct gguf_paths *p,
                                    struct gguf_error *err)
{
    for (size_t k = 0; k < r->n_jobs; k++) /* each job may have opened its
                                            * own */
        GG_TRY(gg_job_list_inputs(r->jobs[k], p, err));
    return GGUF_OK;
}

static enum gguf_status note_outputs(const struct gg_quant_run *r,
                                     const char *const *paths, bool resume,
                                     struct gguf_paths *p,
                                     struct gguf_error *err)
{
    size_t n = r->first_writer[r->n_jobs];
    for (size_t w = 0; w < n; w++)
        GG_TRY(gguf_paths_add_output(p, r->paths[w], "output", err));
    for (size_t w = 0; w < n && resume; w++)
        GG_TRY(gg_paths_add_output_beside(p, r->paths[w], GG_OUTFILE_PART,
                                          "unfinished output", err));
    for (size_t k = 0; k < r->n_jobs && resume; k++)
        GG_TRY(gg_paths_add_output_beside(p, paths[k], GG_JOURNAL_SUFFIX,
                                          "journal", err));
    return GGUF_OK;
}

enum gguf_status gg_quant_run_check_paths(
    const struct gg_quant_run *r, const char *const *paths,
    const struct gguf_quant_output *output, struct gguf_error *err)
{
    struct gguf_paths *p;
    GG_TRY(gg_paths_copy(&p, output->paths, r->jobs[0]->p.allocator, err));
    enum gguf_status st = note_inputs(r, p, err);
    if (st == GGUF_OK)
        st = note_outputs(r, paths, output->resume, p, err);
    gguf_paths_destroy(p);
    return st;
}

enum gguf_status gg_quant_run_open_outputs(const struct gg_quant_run *r,
                                           size_t k, struct gguf_file **out,
                                           struct gguf_error *err)
{
    *out = NULL;
    const struct gguf_quant_params *p = &r->jobs[k]->p;
    const size_t first = r->first_writer[k], n = r->jobs[k]->n_shards;
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    int *fd = gg_mem_alloc_zero(p->allocator, n, sizeof *fd);
    if (!fd)
        return gg_error_set_nomem(err, n * sizeof *fd);
    fp.allocator = p->allocator;
    fp.limits = p->limits;
    for (size_t i = 0; i < n; i++)
        fd[i] = r->writers[first + i]->out.fd;
    const enum gguf_status st = gg_file_open_set_fds(
        out, fd, (const char *const *)r->paths + first, n, &fp, err);
    gg_mem_free(p->allocator, fd);
    return st;
}

/* Let the caller check the files of job k. */
static enum gguf_status ask_job(const struct gg_quant_run *r, size_t k,
                                const struct gguf_quant_output *output,
                                struct gguf_error *err)
{
    struct gguf_file *set = NULL;
    struct gguf_error why;
    enum gguf_status st = gg_quant_run_open_outputs(r, k, &set, err);
    gguf_error_clear(&why);
    if (st == GGUF_OK)
        st = output->check.fn(output->check.user, k, set, &why);
    if (why.status != GGUF_OK && err)
        *err = why;
    gguf_file_close(set);
    return gg_quant_run_name_output(r, r->paths[r->first_writer[k]], st, err);
}

/* Fail if an input has changed since it was opened. */
static enum gguf_status check_inputs(const struct gg_quant_run *r,
                                     struct gguf_error *err)
{
    for (size_t k = 0; k < r->n_jobs; k++) {
        const struct gguf_quant *q = r->jobs[k];
        GG_TRY(gg_job_check_inputs(q, err));
        if (q->p.imatrix)
            GG_TRY(gg_imatrix_check_file(q->p.imatrix, err));
    }
    return GGUF_OK;
}

static struct gg_outfile *file_at(void *run, size_t w)
{
    const struct gg_quant_run *r = run;
    return &r->writers[w]->out;
}

/* Do the paths of files v and w name their folder in the same way? */
static bool one_folder(const struct gg_quant_run *r, size_t v, size_t w)
{
    size_t n = gg_file_id_folder_size(r->paths[v]);
    return n == gg_file_id_folder_size(r->paths[w]) &&
           !memcmp(r->paths[v], r->paths[w], n);
}

enum gguf_status gg_quant_run_commit(struct gg_quant_run *r,
                                     const struct gguf_quant_output *output,
                                     struct gguf_error *err)
{
    size_t n = r->first_writer[r->n_jobs];
    for (size_t w = 0; w < n; w++)
        GG_TRY(gg_quant_run_name_output(
            r, r->paths[w], gg_writer_finish(r->writers[w], err), err));
    GG_TRY(gg_quant_run_improve(r, output, err));
    for (size_t k = 0; k < r->n_jobs && output->check.fn; k++)
        GG_TRY(ask_job(r, k, output, err));
    GG_TRY(check_inputs(r, err));
    if (r->resume)
        GG_TRY(gg_quant_run_record_names(r, !output->no_sync, err));
    size_t bad = 0;
    enum gguf_status st =
        gg_outfile_publish_all(file_at, r, n, n > 1, &bad, err);
    GG_TRY(gg_quant_run_name_output(r, r->paths[bad], st, err));
    for (size_t w = 0; w < n; w++)
        if (!w || !one_folder(r, w - 1, w))
            GG_TRY(gg_quant_run_name_output(
                r, r->paths[w],
                gg_outfile_sync_folder(&r->writers[w]->out, err), err));
    return GGUF_OK;
}
