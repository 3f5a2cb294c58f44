/* SPDX-License-Identifier: MIT */
/* graph_run.h - plans of the CPU backend, and running them */
#ifndef GG_CPU_GRAPH_RUN_H
#define GG_CPU_GRAPH_RUN_H

#include "cpu/weight_cache.h"
#include "cpu/cpu_task.h"
#include "gguf/cpu.h"
#include "gguf/graph.h"
#include "gguf/profile.h"

/* Step of a plan: a node, or the first of n nodes that are fused (fuse.h). The
 * steps of the others follow it. */
struct gg_cpu_step {
    struct gguf_tensor *node;
    gg_cpu_op_fn *run;
    bool single;    /* too small to share: the first thread computes it */
    bool barrier;   /* the threads meet after this step */
    size_t n;       /* nodes that are fused; 1: not fused */
    int64_t n_rows; /* rows of nodes that are computed by rows */
    int64_t some;   /* rows that a thread claims at a time; 0: the operation
                       divides itself */
    size_t work; /* bytes of scratch for each thread if rows are claimed: the
                       threads are at different nodes */
    _Atomic size_t next; /* counter of claims, 0 when the plan begins */
    const struct gg_cpu_panels *panels; /* packed panels of its weights, or
                                           NULL */
    uint64_t end; /* measured end of the step, nanoseconds */
    uint64_t ns;  /* measured time of the first thread on this fused node,
                     nanoseconds */
};

/* Destination of measured times. All zero: measure nothing. */
struct gg_cpu_profile {
    struct gguf_profile_callback callback;
    const struct gguf_backend *backend; /* backend of the records */
};

/* Plan of a graph. */
struct gg_cpu_plan {
    const struct gguf_allocator *allocator;
    struct gg_cpu_step *steps; /* one for each node but views */
    size_t n, cap;             /* steps, and room for steps */
    size_t work_size;          /* bytes of scratch of the largest step */
    size_t fuse; /* bytes of rows that fused nodes take at a time;
                                  0: do not fuse */
    bool shared; /* a step is not single */
};

/* Set up a plan without steps. fuse: see the member. */
void gg_cpu_plan_init(struct gg_cpu_plan *p, const struct gguf_allocator *a,
                      size_t fuse);
void gg_cpu_plan_fini(struct gg_cpu_plan *p);

/* Number of threads that compute t, 1 or nth. 0 for a view. */
unsigned gg_cpu_n_threads(const struct gguf_tensor *t, unsigned nth);

/* Make p the plan of a graph for nth threads. gg_cpu_supports() must accept all
 * nodes. GGUF_E_NOMEM. */
enum gguf_status gg_cpu_plan_make(struct gg_cpu_plan *p,
                                  const struct gguf_graph *graph, unsigned nth,
                                  const struct gg_kern *kern,
                                  struct gguf_error *err);

/* Bytes of scratch that the largest step of a graph needs. */
size_t gg_cpu_plan_work(const struct gguf_graph *graph, unsigned nth,
                        const struct gg_kern *kern);

/* Find the packed panels of the plan's products in the cache. They are valid
 * until weights change or the cache is emptied. */
void gg_cpu_plan_find_panels(struct gg_cpu_plan *p,
                             struct gg_cpu_weight_cache *store,
                             const struct gg_kern *kern);

/* Compute a plan.
 *
 * pool      Threads to compute with.
 * barrier   Barrier of the pool's threads.
 * work      p->work_size bytes of scratch, aligned to 64.
 * abort     Asked after each node.
 * profile   Receives the times afterwards, unless the plan fails. NULL: measure
 *           nothing.
 *
 * GGUF_E_CANCELLED if abort stops it, and the failures of operations. */
enum gguf_status
gg_cpu_plan_run(const struct gg_cpu_plan *p, struct gguf_pool *pool,
                struct gg_barrier *barrier, void *work,
                const struct gg_kern *kern, struct gguf_abort_callback abort,
                const struct gg_cpu_profile *profile, struct gguf_error *err);

#endif
