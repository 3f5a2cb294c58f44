/* SPDX-License-Identifier: MIT */
/* feedback.c - encoding with error feedback: rows, threads and memory */
#include "config.h"
#include "fit/feedback.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/mem.h"
#include "fit/feedback_task.h"
#include "kern/cpu_features.h"

#include <math.h>
#include <string.h>

enum { W = GG_FEEDBACK_LANES };

/* Weights of the elements of groups: the diagonal of R R', where R is a group's
 * block of the factor. R R' is the metric of the group's errors once later
 * columns have made up for them. */
static void set_weights(float *weight, const struct gg_feedback_metric *m,
                        unsigned group)
{
    for (size_t o = 0; o < m->n; o += group)
        for (size_t i = o; i < o + group; i++) {
            float sum = m->d[i];
            for (size_t k = i + 1; k < o + group; k++)
                sum += m->d[k] * (m->g[i * m->n + k] * m->g[i * m->n + k]);
            weight[i] = sum;
        }
}

/* May a row be replaced: are the plain row's scales finite? */
static bool is_finite_row(const struct gg_feedback_task *t, unsigned r)
{
    const struct gg_feedback_job *job = t->job;
    const uint8_t *row = job->bytes + (t->first_row + r) * job->row_size;
    for (size_t at = 0; at < job->row_size; at += job->form->block_size) {
        job->form->unpack(t->block, row + at);
        if (!gg_form_is_finite(job->form, t->block))
            return false;
    }
    return true;
}

static void encode_rows(struct gg_feedback_task *t, size_t first,
                        unsigned n_rows)
{
    const struct gg_feedback_job *job = t->job;
    bool is_better[GG_FEEDBACK_ROWS];
    t->first_row = first;
    t->n_rows = n_rows;
    t->n_vectors = (n_rows + W - 1) / W;
    gg_feedback_pass(t);
    if (job->effort >= GG_FEEDBACK_ONE_DESCENT)
        gg_feedback_descend(t);
    gg_feedback_guard(t, is_better);
    for (unsigned r = 0; r < n_rows; r++)
        if (is_better[r] && is_finite_row(t, r))
            memcpy(job->bytes + (first + r) * job->row_size,
                   t->row + r * job->row_size, job->row_size);
}

static void run_tasks(void *user, unsigned ith, unsigned nth)
{
    const struct gg_feedback_job *job = user;
    const size_t step = job->rows_per_task;
    for (size_t r = ith * step; r < job->n_rows; r += nth * step)
        encode_rows(&job->task[ith], r,
                    (unsigned)GG_MIN(step, job->n_rows - r));
}

static void free_task(struct gg_feedback_task *t,
                      const struct gguf_allocator *a)
{
    gg_mem_free_aligned(a, t->err);
    gg_mem_free_aligned(a, t->target);
    gg_mem_free(a, t->codes);
    gg_mem_free(a, t->block);
    gg_mem_free(a, t->row);
}

/* Allocate the scratch of a thread. */
static bool alloc_task(struct gg_feedback_task *t, struct gg_feedback_job *job,
                       const struct gguf_allocator *a)
{
    const size_t n = job->metric->n;
    const size_t rows = GG_FEEDBACK_VECTORS * (size_t)GG_FEEDBACK_PANEL_SIZE;
    const size_t tiles = GG_FEEDBACK_PANEL;
    const size_t sub = (size_t)job->form->sub_len * job->form->sub_len;
    const size_t lanes = 2 * (size_t)GG_FEEDBACK_MAX_SUB * W;
    const size_t descent = job->effort >= GG_FEEDBACK_ONE_DESCENT
                               ? 2 * rows + sub + 2 * GG_FEEDBACK_MAX_SUB
                               : 0;
    const size_t floats = descent + 4 * rows + tiles * GG_FEEDBACK_CHUNK +
                          tiles * GG_FEEDBACK_PANEL + GG_MAX(sub, 256) +
                          GG_FEEDBACK_WORK + lanes;
    size_t err_size, row_size;
    if (gg_ckd_array(&err_size, n, GG_FEEDBACK_ROWS * sizeof(float)) ||
        gg_ckd_array(&row_size, job->row_size, GG_FEEDBACK_ROWS))
        return false;
    t->job = job;
    t->err = gg_mem_alloc_aligned(a, err_size, 64);
    t->target = gg_mem_alloc_aligned(a, floats * sizeof(float), 64);
    t->codes = gg_mem_alloc(a, sizeof *t->codes);
    t->block = gg_mem_alloc(a, 3 * GG_FEEDBACK_ROWS * sizeof *t->block);
    t->row = gg_mem_alloc(a, row_size);
    if (!t->err || !t->target || !t->codes || !t->block || !t->row)
        return false;
    t->plain = t->block + GG_FEEDBACK_ROWS;
    t->best = t->plain + GG_FEEDBACK_ROWS;
    t->base = t->target + rows;
    t->best_err = t->base + rows;
    t->plain_base = t->best_err + rows;
    t->chunk = t->plain_base + rows;
    t->inner = t->chunk + tiles * GG_FEEDBACK_CHUNK;
    t->sub_g = t->inner + tiles * GG_FEEDBACK_PANEL;
    t->work = t->sub_g + GG_MAX(sub, 256);
    t->lanes = t->work + GG_FEEDBACK_WORK;
    if (descent == 0)
        return true;
    t->aim = t->lanes + lanes;
    t->delta = t->aim + rows;
    t->sub_s = t->delta + rows;
    t->factor = t->sub_s + sub;
    return true;
}

/* Allocate the memory of a job and run it. False: out of memory. */
static bool run_job(struct gg_feedback_job *job, struct gguf_pool *pool,
                    const struct gguf_allocator *a)
{
    /* the threads that have rows */
    const size_t n_tasks = (job->n_rows - 1) / job->rows_per_task + 1;
    const size_t nth = GG_MIN(n_tasks, (size_t)gguf_pool_n_threads(pool));
    const struct gg_form *f = job->form;
    struct gg_feedback_rule *rule = gg_mem_alloc(a, sizeof *rule);
    float *weight = f->n_levels
                        ? NULL
                        : gg_mem_alloc_zero(a, job->metric->n, sizeof *weight);
    job->task = gg_mem_alloc_zero(a, nth, sizeof *job->task);
    bool has_room = rule && job->task && (f->n_levels || weight);
    for (size_t i = 0; i < nth && has_room; i++)
        has_room = alloc_task(&job->task[i], job, a);
    if (has_room) {
        gg_feedback_rule_init(rule, f);
        if (weight)
            set_weights(weight, job->metric, f->group);
        job->rule = rule;
        job->weight = weight;
        gguf_pool_run(pool, (struct gguf_pool_callback){ run_tasks, job });
    }
    for (size_t i = 0; job->task && i < nth; i++)
        free_task(&job->task[i], a);
    gg_mem_free(a, job->task);
    gg_mem_free(a, weight);
    gg_mem_free(a, rule);
    return has_room;
}

enum gguf_status gg_feedback_encode_level(
    uint32_t cpu, const struct gg_form *f, const struct gg_feedback_metric *m,
    const float *target, size_t n_rows, void *bytes,
    enum gg_feedback_effort effort, struct gguf_pool *pool,
    const struct gguf_allocator *a, struct gguf_error *err)
{
    struct gg_feedback_kern kern;
    struct gg_feedback_job job = {
        .kern = &kern,
        .form = f,
        .metric = m,
        .target = target,
        .bytes = bytes,
        .n_rows = n_rows,
        .row_size = m->n / f->block_len * f->block_size,
        .rows_per_task = GG_FEEDBACK_ROWS,
        .effort = effort,
    };
    if (m->n == 0 || m->n % f->block_len)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%zu columns, expected a multiple of %u", m->n,
                            (unsigned)f->block_len);
    if (effort >= GG_FEEDBACK_ONE_DESCENT && !m->s)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "descent needs the matrix of moments");
    if (n_rows == 0)
        return GGUF_OK;
    /* Smaller tasks keep more threads busy. */
    while (job.rows_per_task > W &&
           (n_rows - 1) / job.rows_per_task + 1 < gguf_pool_n_threads(pool))
        job.rows_per_task -= W;
    gg_feedback_kern_init(&kern, cpu);
    if (!run_job(&job, pool, a))
        return gg_error_set_nomem(err,
                                  m->n * GG_FEEDBACK_ROWS * sizeof(float));
    return GGUF_OK;
}

enum gguf_status
gg_feedback_encode(const struct gg_form *f, const struct gg_feedback_metric *m,
                   const float *target, size_t n_rows, void *bytes,
                   enum gg_feedback_effort effort, struct gguf_pool *pool,
                   const struct gguf_allocator *a, struct gguf_error *err)
{
    return gg_feedback_encode_level(gg_kern_cpu_detect(), f, m, target, n_rows,
                                    bytes, effort, pool, a, err);
}
