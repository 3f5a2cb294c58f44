/* SPDX-License-Identifier: MIT */
/* graph_run.c - all threads of the team walk the plan, a barrier between steps
 *
 * Small steps run on the first thread alone, and two of them in a row need no
 * barrier. When a step fails, threads must agree on where to stop, or some
 * would wait for others that are gone: the failure carries the step's number,
 * and a thread stops at a step right after a barrier if a step before it
 * failed. All failures before a barrier are known to all after it, and those
 * of later steps do not count yet.
 */
#include "config.h"
#include "cpu/graph_run.h"
#include "base/os/os.h"
#include "base/error.h"
#include "base/mem.h"
#include "cpu/fuse.h"
#include "cpu/compute_table.h"
#include "graph/op_table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Claims by which a thread computes its part of a node, if all are equally
 * fast. */
enum { CLAIMS = 4 };

/* Cost of a node, in steps, up to which one thread is faster than two with a
 * barrier of about a microsecond (measured on Zen 3: 2048 sums of floats take
 * 0.2 us, 2048 exponentials 1.5 us). */
enum { SINGLE_STEPS = 2048 };

struct gg_cpu_run {
    const struct gg_cpu_plan *plan;
    struct gg_barrier *barrier, alone;
    const struct gg_kern *kern;
    void *work;
    struct gguf_abort_callback abort;
    bool timed;            /* the first thread measures */
    _Atomic size_t failed; /* first step that did, or SIZE_MAX */
    atomic_flag has_error;
    struct gguf_error err;
};

void gg_cpu_plan_init(struct gg_cpu_plan *p, const struct gguf_allocator *a,
                      size_t fuse)
{
    *p = (struct gg_cpu_plan){ .allocator = a, .fuse = fuse };
}

void gg_cpu_plan_fini(struct gg_cpu_plan *p)
{
    gg_mem_free(p->allocator, p->steps);
    gg_cpu_plan_init(p, p->allocator, p->fuse);
}

/* Should one thread compute the node? Because of its cost, or because it has
 * one row only. */
static bool is_small(const struct gguf_tensor *t, const struct gg_cpu_op *op)
{
    return (op->by_rows && gguf_tensor_n_rows(t) < 2) ||
           gg_op_row(t->op)->cost(t) <= SINGLE_STEPS;
}

unsigned gg_cpu_n_threads(const struct gguf_tensor *t, unsigned nth)
{
    const struct gg_cpu_op *op = gg_cpu_op_row(t->op);
    if (!op->run)
        return 0;
    return nth == 1 || is_small(t, op) ? 1 : nth;
}

static size_t work_of(const struct gguf_tensor *t, unsigned n_threads,
                      const struct gg_kern *kern)
{
    const struct gg_cpu_op *op = gg_cpu_op_row(t->op);
    return n_threads && op->work ? op->work(t, n_threads, kern) : 0;
}

size_t gg_cpu_plan_work(const struct gguf_graph *graph, unsigned nth,
                        const struct gg_kern *kern)
{
    size_t most = 0;
    for (size_t i = 0; i < gguf_graph_n_nodes(graph); i++) {
        const struct gguf_tensor *t = gguf_graph_node(graph, i);
        const size_t size = work_of(t, gg_cpu_n_threads(t, nth), kern);
        most = GG_MAX(most, size);
    }
    return most;
}

/* Scratch that the nodes of step s need for one thread. */
static size_t work_of_one(const struct gg_cpu_step *s,
                          const struct gg_kern *kern)
{
    size_t most = 0;
    for (size_t k = 0; k < s->n; k++)
        most = GG_MAX(most, work_of(s[k].node, 1, kern));
    return most;
}

/* Rows that nth threads claim at a time, if the step is computed by rows: some
 * for each, and at most those that a fused step takes. */
static void share_rows(struct gg_cpu_step *s, unsigned nth,
                       const struct gg_kern *kern)
{
    if (s->n == 1) {
        s->some = 0;
        if (nth == 1 || !gg_cpu_op_row(s->node->op)->by_rows)
            return;
        s->n_rows = gguf_tensor_n_rows(s->node);
    }
    const int64_t parts = nth == 1 ? 1 : CLAIMS * (int64_t)nth;
    const int64_t each = GG_MAX((s->n_rows + parts - 1) / parts, 1);
    s->some = s->n == 1 ? each : GG_MIN(s->some, each);
    s->work = work_of_one(s, kern);
    assert(s->work % 64 == 0);
}

/* Steps of one node or more, and barriers between them. */
static void join_nodes(struct gg_cpu_plan *p, unsigned nth,
                       const struct gg_kern *kern)
{
    for (size_t i = 0; i < p->n; i += p->steps[i].n) {
        struct gg_cpu_step *s = &p->steps[i];
        if (p->fuse)
            gg_cpu_fuse(s, p->n - i, p->fuse);
        share_rows(s, s->single ? 1 : nth, kern);
        const size_t next = i + s->n;
        s->barrier = next < p->n && !(s->single && p->steps[next].single);
    }
}

enum gguf_status gg_cpu_plan_make(struct gg_cpu_plan *p,
                                  const struct gguf_graph *graph, unsigned nth,
                                  const struct gg_kern *kern,
                                  struct gguf_error *err)
{
    size_t n_nodes = gguf_graph_n_nodes(graph);
    p->n = 0;
    p->work_size = 0;
    p->shared = false;
    p->steps = gg_mem_renew(p->allocator, p->steps, &p->cap, sizeof *p->steps,
                            n_nodes, err);
    if (!p->steps)
        return GGUF_E_NOMEM;
    for (size_t i = 0; i < n_nodes; i++) {
        struct gguf_tensor *t = gguf_graph_node(graph, i);
        const struct gg_cpu_op *op = gg_cpu_op_row(t->op);
        if (!op->run)
            continue;
        const unsigned n = gg_cpu_n_threads(t, nth);
        const size_t work = work_of(t, n, kern);
        p->work_size = GG_MAX(p->work_size, work);
        p->shared = p->shared || n > 1;
        p->steps[p->n++] = (struct gg_cpu_step){
            .node = t, .run = op->run, .single = n == 1, .n = 1
        };
    }
    join_nodes(p, nth, kern);
    return GGUF_OK;
}

void gg_cpu_plan_find_panels(struct gg_cpu_plan *p,
                             struct gg_cpu_weight_cache *store,
                             const struct gg_kern *kern)
{
    gg_cpu_weight_cache_sweep(store);
    for (size_t i = 0; i < p->n; i++)
        p->steps[i].panels =
            gg_cpu_weight_cache_find(store, p->steps[i].node, kern);
}

static void fail_at(struct gg_cpu_run *r, size_t step)
{
    size_t seen = atomic_load_explicit(&r->failed, memory_order_relaxed);
    while (step < seen && !atomic_compare_exchange_weak_explicit(
                              &r->failed, &seen, step, memory_order_relaxed,
                              memory_order_relaxed))
        ; /* seen is fresh */
}

void gg_cpu_fail(const struct gg_cpu_task *task, enum gguf_status status,
                 const char *fmt, ...)
{
    struct gg_cpu_run *r = task->run;
    if (!atomic_flag_test_and_set_explicit(&r->has_error,
                                           memory_order_relaxed)) {
        /* read when the pool has come back */
        char text[sizeof r->err.message];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        gg_error_set(&r->err, status, GGUF_NO_OFFSET, "%s", text);
    }
    fail_at(r, task->step);
}

/* Some rows at a time through all nodes of the step. */
static void run_rows(struct gg_cpu_step *s, const struct gg_cpu_task *some,
                     bool timed)
{
    if (!timed) {
        for (size_t k = 0; k < s->n; k++)
            s[k].run(s[k].node, some);
        return;
    }
    for (size_t k = 0; k < s->n; k++) {
        const uint64_t begin = gg_os_clock_ns();
        s[k].run(s[k].node, some);
        s[k].ns += gg_os_clock_ns() - begin;
    }
}

static void run_step(struct gg_cpu_step *s, const struct gg_cpu_task *task,
                     bool timed)
{
    if (!s->some) {
        s->run(s->node, task);
        return;
    }
    struct gg_cpu_task some = *task;
    some.work = (char *)task->work + task->ith * s->work;
    some.ith = 0;
    some.nth = 1;
    for (int64_t at;
         (at = (int64_t)atomic_fetch_add_explicit(
              &s->next, (size_t)s->some, memory_order_relaxed)) < s->n_rows;) {
        some.part = (struct gg_cpu_part){ at, GG_MIN(at + s->some, s->n_rows),
                                          s->n_rows };
        run_rows(s, &some, timed);
    }
}

/* One thread is asked, as often as there are nodes. */
static void check_abort(struct gg_cpu_run *r, const struct gg_cpu_step *s,
                        const struct gg_cpu_task *task)
{
    for (size_t k = 0; k < s->n; k++)
        if (r->abort.fn(r->abort.user)) {
            gg_cpu_fail(task, GGUF_E_CANCELLED, "stopped after %s",
                        gguf_op_name(s[k].node->op));
            return;
        }
}

static void walk_graph(void *user, unsigned ith, unsigned nth)
{
    struct gg_cpu_run *r = user;
    struct gg_cpu_task all = { .ith = ith,
                               .nth = nth,
                               .barrier = r->barrier,
                               .kern = r->kern,
                               .work = r->work,
                               .work_size = r->plan->work_size,
                               .run = r };
    struct gg_cpu_task alone = all;
    alone.nth = 1;
    alone.barrier = &r->alone;
    const bool timed = r->timed && ith == 0;
    bool synced = true;
    for (size_t i = 0; i < r->plan->n; i += r->plan->steps[i].n) {
        struct gg_cpu_step *s = &r->plan->steps[i];
        /* the barrier orders these accesses */
        bool stop = atomic_load_explicit(&r->failed, memory_order_relaxed) < i;
        if (stop && synced)
            return;
        struct gg_cpu_task *task = s->single ? &alone : &all;
        task->step = i;
        task->panels = s->panels;
        task->next = &s->next;
        if (!stop && (!s->single || ith == 0))
            run_step(s, task, timed);
        if (ith == 0 && !stop && r->abort.fn)
            check_abort(r, s, task);
        synced = s->barrier;
        if (synced)
            gg_barrier_wait(r->barrier);
        if (timed)
            s->end = gg_os_clock_ns();
    }
}

/* ---- times ---- */

/* Until the first step begins. */
static void forget_times(const struct gg_cpu_plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->steps[i].ns = 0;
}

/* The records of a step's nodes, which was computed from begin on by nth
 * threads. */
static void put_step(const struct gg_cpu_profile *profile,
                     const struct gg_cpu_step *s, uint64_t begin, unsigned nth)
{
    const double time = (double)(s->end - begin);
    uint64_t sum = 0, so_far = 0, at = begin;
    for (size_t k = 0; k < s->n; k++)
        sum += s[k].ns;
    for (size_t k = 0; k < s->n; k++) {
        so_far += s[k].ns;
        const double share = sum ? (double)so_far / (double)sum
                                 : (double)(k + 1) / (double)s->n;
        const uint64_t end =
            k + 1 < s->n ? begin + (uint64_t)(time * share) : s->end;
        const struct gguf_profile_node n = {
            .node = s[k].node,
            .backend = profile->backend,
            .begin = at,
            .end = end,
            .flops = gg_graph_flops(s[k].node),
            .bytes = gg_graph_bytes(s[k].node),
            .n_threads = s->single ? 1 : nth,
            .n_fused = (unsigned)s->n,
        };
        profile->callback.fn(profile->callback.user, &n);
        at = end;
    }
}

/* Report a plan that ran from begin to end. The last step ends with the plan,
 * since no barrier follows it. */
static void put_times(const struct gg_cpu_plan *p,
                      const struct gg_cpu_profile *profile, uint64_t begin,
                      uint64_t end, unsigned nth)
{
    for (size_t i = 0; i < p->n; i += p->steps[i].n) {
        struct gg_cpu_step *s = &p->steps[i];
        if (i + s->n == p->n)
            s->end = end;
        put_step(profile, s, begin, nth);
        begin = s->end;
    }
}

enum gguf_status
gg_cpu_plan_run(const struct gg_cpu_plan *p, struct gguf_pool *pool,
                struct gg_barrier *barrier, void *work,
                const struct gg_kern *kern, struct gguf_abort_callback abort,
                const struct gg_cpu_profile *profile, struct gguf_error *err)
{
    struct gg_cpu_run r = { .plan = p,
                            .barrier = barrier,
                            .kern = kern,
                            .work = work,
                            .abort = abort,
                            .timed = profile && profile->callback.fn,
                            .has_error = ATOMIC_FLAG_INIT };
    GG_TRY(gg_barrier_init(&r.alone, 1, 0, err));
    atomic_init(&r.failed, SIZE_MAX);
    for (size_t i = 0; i < p->n; i++)
        atomic_init(&p->steps[i].next, 0);
    uint64_t begin = 0;
    if (r.timed) {
        forget_times(p);
        begin = gg_os_clock_ns();
    }
    /* a plan of small steps does not wake the others */
    if (p->shared)
        gguf_pool_run(pool, (struct gguf_pool_callback){ walk_graph, &r });
    else
        walk_graph(&r, 0, 1);
    const uint64_t end = r.timed ? gg_os_clock_ns() : 0;
    gg_barrier_fini(&r.alone);
    if (atomic_load_explicit(&r.failed, memory_order_relaxed) == SIZE_MAX) {
        if (r.timed)
            put_times(p, profile, begin, end,
                      p->shared ? gguf_pool_n_threads(pool) : 1);
        return GGUF_OK;
    }
    if (err)
        *err = r.err;
    return r.err.status;
}
