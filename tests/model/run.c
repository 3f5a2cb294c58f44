/* SPDX-License-Identifier: MIT */
/* run.c - opens models in memory and evaluates them */
#include "config.h"
#include "tests/model/run.h"

#include "model/model_int.h"

#include <stdlib.h>
#include <string.h>

static enum gguf_status open_model(struct run *r)
{
    const struct gg_source alone = { .file = r->file };
    return r->arch ? gg_model_open(&r->model, &alone, r->arch, NULL, &r->err)
                   : gguf_model_create(&r->model, r->file, r->params, &r->err);
}

static bool start_session(struct run *r, unsigned n_threads,
                          const struct gguf_session_params *params)
{
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_session_params p = *params;
    struct gguf_model_info info;
    if (open_model(r) != GGUF_OK)
        return false;
    info = *gguf_model_info(r->model);
    r->n_vocab = info.n_vocab;
    pp.n_threads = n_threads;
    if (gguf_pool_create(&r->pool, &pp, &r->err) != GGUF_OK)
        return false;
    if (r->cpu)
        cp = *r->cpu;
    cp.pool = r->pool;
    cp.allocator = params->allocator;
    if (gguf_cpu_backend_create(&r->backend, &cp, &r->err) != GGUF_OK)
        return false;
    p.backend = r->backend;
    return gguf_session_create(&r->session, r->model, &p, &r->err) == GGUF_OK;
}

bool run_open(struct run *r, const void *data, size_t size, unsigned n_threads,
              const struct gguf_session_params *p)
{
    memset(r, 0, sizeof *r);
    return gguf_file_open_memory(&r->file, data, size, NULL, &r->err) ==
               GGUF_OK &&
           start_session(r, n_threads, p);
}

bool run_open_params(struct run *r, const void *data, size_t size,
                     const struct gguf_model_params *mp,
                     const struct gguf_session_params *p)
{
    memset(r, 0, sizeof *r);
    r->params = mp;
    return gguf_file_open_memory(&r->file, data, size, NULL, &r->err) ==
               GGUF_OK &&
           start_session(r, 1, p);
}

bool run_open_arch(struct run *r, const void *data, size_t size,
                   const struct gg_arch *arch,
                   const struct gguf_session_params *p)
{
    memset(r, 0, sizeof *r);
    r->arch = arch;
    return gguf_file_open_memory(&r->file, data, size, NULL, &r->err) ==
               GGUF_OK &&
           start_session(r, 1, p);
}

bool run_open_cpu(struct run *r, const void *data, size_t size,
                  const struct gg_arch *arch,
                  const struct gguf_cpu_params *cpu,
                  const struct gguf_session_params *p)
{
    memset(r, 0, sizeof *r);
    r->arch = arch;
    r->cpu = cpu;
    return gguf_file_open_memory(&r->file, data, size, NULL, &r->err) ==
               GGUF_OK &&
           start_session(r, cpu->n_threads, p);
}

bool run_open_path(struct run *r, const char *path, unsigned n_threads,
                   const struct gguf_session_params *p)
{
    memset(r, 0, sizeof *r);
    return gguf_file_open(&r->file, path, NULL, &r->err) == GGUF_OK &&
           start_session(r, n_threads, p);
}

void run_close(struct run *r)
{
    gguf_session_destroy(r->session);
    gguf_backend_destroy(r->backend);
    gguf_pool_destroy(r->pool);
    gguf_model_destroy(r->model);
    gguf_file_close(r->file);
}

bool run_scan(struct run *r)
{
    struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
    job.pool = r->pool;
    return gguf_model_check_finite(r->model, &job, &r->err) == GGUF_OK;
}

bool run_encode(struct run *r, const gguf_token *tok, size_t n)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = n;
    b.token = tok;
    return !gguf_model_info(r->model)->encodes_first ||
           gguf_session_encode(r->session, &b, &r->err) == GGUF_OK;
}

bool run_logits(struct run *r, const struct gguf_batch *batch, float *out)
{
    struct gguf_batch b = *batch;
    bool *all = malloc(b.n * sizeof *all);
    memset(all, 1, b.n);
    if (!b.want)
        b.want = all;
    bool good = gguf_session_decode(r->session, &b, &r->err) == GGUF_OK;
    size_t n = gguf_session_n_outputs(r->session);
    size_t most = gguf_session_max_logits(r->session);
    for (size_t i = 0; good && i < n; i += most) {
        const float *rows;
        size_t k = n - i < most ? n - i : most;
        good =
            gguf_session_logits(r->session, i, k, &rows, &r->err) == GGUF_OK;
        if (good)
            memcpy(out + i * r->n_vocab, rows, k * r->n_vocab * sizeof *rows);
    }
    free(all);
    return good;
}

bool run_states(struct run *r, const struct gguf_batch *batch, float *out)
{
    const struct gguf_model_info *info = gguf_model_info(r->model);
    struct gguf_batch b = *batch;
    bool *all = malloc(b.n * sizeof *all);
    const float *rows;
    memset(all, 1, b.n);
    b.want = all;
    enum gguf_status st = info->encodes_first
                              ? gguf_session_encode(r->session, &b, &r->err)
                              : gguf_session_decode(r->session, &b, &r->err);
    if (st == GGUF_OK)
        st = gguf_session_states(r->session, 0, b.n, &rows, &r->err);
    if (st == GGUF_OK)
        memcpy(out, rows, b.n * info->n_embd * sizeof *out);
    free(all);
    return st == GGUF_OK;
}

bool run_outputs(struct run *r, const struct gguf_batch *b, float *out)
{
    return gguf_model_info(r->model)->has_logits ? run_logits(r, b, out)
                                                 : run_states(r, b, out);
}

double run_nmse(const float *a, const float *b, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        s += (double)b[i] * (double)b[i];
    }
    return d / s;
}

double run_nmse_double(const float *a, const double *b, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        s += b[i] * b[i];
    }
    return d / s;
}

bool run_watch(void *watch, uint64_t done, uint64_t total)
{
    struct run_watch *w = watch;
    w->wrong = w->wrong || done < w->done || done > total ||
               (w->calls && total != w->total);
    w->done = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

enum gguf_status run_try(const void *data, size_t size,
                         const struct gguf_model_params *params,
                         struct gguf_error *err)
{
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *file;
    struct gguf_model *model = NULL;
    p.allocator = params->allocator;
    enum gguf_status st = gguf_file_open_memory(&file, data, size, &p, err);
    if (st == GGUF_OK)
        st = gguf_model_create(&model, file, params, err);
    gguf_model_destroy(model);
    gguf_file_close(file);
    return st;
}
