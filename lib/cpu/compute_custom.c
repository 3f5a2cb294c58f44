/* SPDX-License-Identifier: MIT */
/* compute_custom.c - calling the program's own function */
#include "config.h"
#include "cpu/compute_table.h"
#include "gguf/op.h"

#include <string.h>

static bool custom_supports(const struct gguf_tensor *t,
                            const struct gg_kern *kern)
{
    (void)t;
    (void)kern;
    return true; /* the function is its own judge */
}

static void compute_custom(struct gguf_tensor *t,
                           const struct gg_cpu_task *task)
{
    struct gguf_custom c;
    memcpy(&c, t->op_params, sizeof c);
    const unsigned nth = c.n_tasks ? GG_MIN(c.n_tasks, task->nth) : task->nth;
    if (task->ith >= nth)
        return;
    const enum gguf_status st =
        c.compute.fn(t, task->ith, nth, c.compute.user);
    char name[160];
    if (st != GGUF_OK)
        gg_cpu_fail(task, st, "custom: the function for %s says: %s",
                    gguf_tensor_format(t, name, sizeof name),
                    gguf_status_string(st));
}

GG_CPU_OP(custom, compute_custom, NULL, custom_supports, false);
