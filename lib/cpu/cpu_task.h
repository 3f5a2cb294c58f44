/* SPDX-License-Identifier: MIT */
/* cpu_task.h - arguments of the functions that compute operations
 *
 * All threads of a team call the function of each node, in the order of the
 * graph, with a barrier between nodes. The function divides its work by ith and
 * nth in a way that no result depends on nth.
 */
#ifndef GG_CPU_CPU_TASK_H
#define GG_CPU_CPU_TASK_H

#include "base/barrier.h"
#include "base/compiler.h"
#include "cpu/claim.h"
#include "gguf/tensor.h"
#include "kern/kern.h"

#include <stdbool.h>

struct gg_cpu_run;    /* graph_run.c */
struct gg_cpu_panels; /* weight_cache.h */

/* Parts `from` to `to` - 1 of n equal parts. */
struct gg_cpu_part {
    int64_t from, to, n;
};

struct gg_cpu_task {
    unsigned ith;               /* index of this thread */
    unsigned nth;               /* number of threads */
    struct gg_barrier *barrier; /* barrier of the team: all threads of it must
                                   come, or none */
    const struct gg_kern *kern;
    void *work;       /* scratch of the team, aligned to 64, not zeroed */
    size_t work_size; /* bytes of work: the result of the operation's work
                         function for nth threads */
    struct gg_cpu_run *run;             /* takes failures: gg_cpu_fail() */
    size_t step;                        /* index of the node in the plan */
    const struct gg_cpu_panels *panels; /* packed panels of src[0], or NULL */
    _Atomic size_t
        *next; /* counter of claims of the team, 0 before the node */

    /* Part of the node to compute now. n is 0 for the whole share of this
     * thread. Otherwise the operation is by_rows, and threads claim rows: ith
     * is 0, and work belongs to this thread alone. */
    struct gg_cpu_part part;
};

/* Compute this thread's share of node t, which supports has accepted. */
typedef void gg_cpu_op_fn(struct gguf_tensor *t,
                          const struct gg_cpu_task *task);
/* Bytes of scratch for nth threads. */
typedef size_t gg_cpu_work_fn(const struct gguf_tensor *t, unsigned nth,
                              const struct gg_kern *kern);
/* Can node t be computed? Looks at types, shapes and strides alone. */
typedef bool gg_cpu_supports_fn(const struct gguf_tensor *t,
                                const struct gg_kern *kern);

/* Report bad data: the computation ends after this node. The first failure of a
 * node counts. The caller must continue to the end of the node, through all its
 * barriers, and leave the bad data alone. Any thread. */
void gg_cpu_fail(const struct gg_cpu_task *task, enum gguf_status status,
                 const char *fmt, ...) GGUF_PRINTF(3, 4);

/* Take the next part of a block of scratch, on cache lines of its own.
 *
 * base   The block, aligned to 64. NULL: only count; the result is NULL.
 * used   Bytes of the block in use so far; set to the end of the part.
 * size   Bytes of the part. */
static inline void *gg_cpu_take_scratch(void *base, size_t *used, size_t size)
{
    void *p = base ? (char *)base + *used : NULL;
    *used += (size + 63) & ~(size_t)63;
    return p;
}

/* Items *begin to *end - 1 of n that this thread has to do now: its share, or
 * task->part. Shares are contiguous and differ by at most one item. */
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

/* Claim items *begin to *end - 1 of a node's n items, for an operation that is
 * not by_rows; false: none are left. A slow thread claims fewer items than
 * the others. All claims of one computation of a node have the same n. */
static inline bool gg_cpu_claim_items(const struct gg_cpu_task *task,
                                      int64_t n, int64_t *begin, int64_t *end)
{
    const size_t total = (size_t)n, nth = task->nth;
    size_t at;
    const size_t some = gg_cpu_claim(task->next, total, nth == 1 ? 1 : 2 * nth,
                                     total / (8 * nth) + 1, total, total, &at);
    *begin = (int64_t)at;
    *end = (int64_t)(at + some);
    return some > 0;
}

#endif
