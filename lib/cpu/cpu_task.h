/* SPDX-License-Identifier: MIT */
/* cpu_task.h - what an operation's function gets when the CPU backend runs it
 *
 * All threads of the team call the function of each node, in the order of the
 * graph; the backend puts a barrier between nodes. The function divides its
 * work by ith and nth so that no result depends on nth.
 */
#ifndef GG_CPU_CPU_TASK_H
#define GG_CPU_CPU_TASK_H

#include "base/barrier.h"
#include "base/compiler.h"
#include "gguf/tensor.h"
#include "kern/kern.h"

#include <stdbool.h>

struct gg_cpu_run;    /* of graph_run.c */
struct gg_cpu_panels; /* weight_cache.h */

/* Parts from to to - 1 of n equal ones. */
struct gg_cpu_part {
    int64_t from, to, n;
};

struct gg_cpu_task {
    unsigned ith, nth;          /* this thread of how many */
    struct gg_barrier *barrier; /* of the whole team; every thread of it must
                                   come, or none */
    const struct gg_kern *kern;
    void *work; /* shared by the team, aligned to 64, not
                                   zeroed: as many bytes as the operation's
                                   work function asked for with this nth */
    size_t work_size;
    struct gg_cpu_run *run;
    size_t step;                        /* number of the node in the plan */
    const struct gg_cpu_panels *panels; /* of src[0], or NULL */
    struct gg_cpu_part part; /* of the node, to be computed now, and not the
                                thread's whole share; n 0: its share. Only of
                                operations that are by_rows; ith is
                                0 then, and work this thread's alone */
};

/* Compute node t: shapes, types and strides were accepted by supports. */
typedef void gg_cpu_op_fn(struct gguf_tensor *t,
                          const struct gg_cpu_task *task);
/* Bytes of work for nth threads. */
typedef size_t gg_cpu_work_fn(const struct gguf_tensor *t, unsigned nth,
                              const struct gg_kern *kern);
/* Whether node t can be computed, by types, shapes and strides alone. */
typedef bool gg_cpu_supports_fn(const struct gguf_tensor *t,
                                const struct gg_kern *kern);

/* Something in the data was wrong: the computation ends after this node with
 * that failure (the first one counts). The caller goes on to the node's end,
 * through all its barriers, without touching what is wrong. Any thread. */
void gg_cpu_fail(const struct gg_cpu_task *task, enum gguf_status status,
                 const char *fmt, ...) GG_PRINTF(3, 4);

/* The next size bytes of memory that is divided into parts, each on lines of
 * its own: those from *used on, which is then the end of the part. base:
 * aligned to 64; or NULL, to count only, which returns NULL. */
static inline void *gg_cpu_take_scratch(void *base, size_t *used, size_t size)
{
    void *p = base ? (char *)base + *used : NULL;
    *used += (size + 63) & ~(size_t)63;
    return p;
}

/* This thread's part [*begin, *end) of n items, or what it is to do of it now:
 * contiguous, sizes differ by at most one. */
static inline void gg_cpu_share(const struct gg_cpu_task *task, int64_t n,
                                int64_t *begin, int64_t *end)
{
    struct gg_cpu_part p = task->part;
    if (!p.n)
        p = (struct gg_cpu_part){ task->ith, (int64_t)task->ith + 1,
                                  task->nth };
    *begin = n / p.n * p.from + n % p.n * p.from / p.n;
    *end = n / p.n * p.to + n % p.n * p.to / p.n;
}

#endif
