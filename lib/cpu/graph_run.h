/* SPDX-License-Identifier: MIT */
/* graph_run.h - plans of the CPU backend: a graph made ready, and running it */
#ifndef GG_CPU_GRAPH_RUN_H
#define GG_CPU_GRAPH_RUN_H

#include "cpu/weight_cache.h"
#include "cpu/cpu_task.h"
#include "gguf/cpu.h"
#include "gguf/graph.h"
#include "gguf/profile.h"

/* A node; or the first of n nodes, the others following, that go over memory
 * together: fuse.h. */
struct gg_cpu_step {
    struct gguf_tensor *node;
    gg_cpu_op_fn *run;
    bool single;    /* too small to share: the first thread does it */
    bool barrier;   /* after this step */
    size_t n;       /* nodes of the step */
    int64_t n_rows; /* of more than one: what they share out, */
    int64_t some;   /* and how many of these at a time */
    size_t work;    /* and bytes of work that each thread has for itself: they
                       are at different nodes at a time */
    const struct gg_cpu_panels *panels; /* of its weights, or NULL */
    /* measured times, in nanoseconds */
    uint64_t end; /* when the step, whose first node this is, was done */
    uint64_t ns;  /* time of the first thread on this node of a fused step */
};

/* Where times go. Zeroed: nothing is measured. */
struct gg_cpu_profile {
    gguf_profile_fn *fn; /* callback; NULL: no profile */
    void *user;
    const struct gguf_backend *backend;
};

struct gg_cpu_plan {
    const struct gguf_allocator *allocator;
    struct gg_cpu_step *steps; /* nodes that are work */
    size_t n, cap;
    size_t work_size; /* bytes that the largest step needs */
    size_t fuse;      /* bytes of rows that go through the nodes of a step
                         together; 0: each node is a step */
    bool shared;      /* a step that is not single */
};

void gg_cpu_plan_init(struct gg_cpu_plan *p, const struct gguf_allocator *a,
                      size_t fuse);
void gg_cpu_plan_fini(struct gg_cpu_plan *p);

/* How many of nth threads compute t, one or all; 0 if it needs no work. */
unsigned gg_cpu_n_threads(const struct gguf_tensor *t, unsigned nth);

/* Make p the plan of graph for nth threads. Every node is one that
 * gg_cpu_supports accepts. GGUF_E_NOMEM. */
enum gguf_status gg_cpu_plan_make(struct gg_cpu_plan *p,
                                  const struct gguf_graph *graph, unsigned nth,
                                  const struct gg_kern *kern,
                                  struct gguf_error *err);

/* Bytes of work that its largest step needs. */
size_t gg_cpu_plan_work(const struct gguf_graph *graph, unsigned nth,
                        const struct gg_kern *kern);

/* Give its products what store keeps of their weights, until weights change or
 * the store ends. */
void gg_cpu_plan_find_panels(struct gg_cpu_plan *p,
                             struct gg_cpu_weight_cache *store,
                             const struct gg_kern *kern);

/* Run it on all threads of pool, which barrier is for; work of p->work_size
 * bytes, aligned to 64. profile (or NULL) receives the times afterwards, if
 * nothing failed. The failures of operations; GGUF_E_CANCELLED. */
enum gguf_status gg_cpu_plan_run(const struct gg_cpu_plan *p,
                                 struct gguf_pool *pool,
                                 struct gg_barrier *barrier, void *work,
                                 const struct gg_kern *kern,
                                 gguf_abort_fn *abort, void *abort_user,
                                 const struct gg_cpu_profile *profile,
                                 struct gguf_error *err);

#endif
