/* SPDX-License-Identifier: MIT */
/* sched_run.c - a computation: copies, splits, and which backend waits for
 * which
 *
 * The calling thread goes through the splits and starts each on its backend;
 * synchronous backends compute in that call. Backends wait for each other in
 * three ways:
 *
 *   - A backend that reaches memory of another waits for the other's last
 *     split before its own: backends that share memory take turns.
 *   - A copy out of a backend that stands apart is made by that backend, in
 *     its order, so that nothing overwrites the source before; the reader of
 *     the copy waits for an event. With n lanes the copy's memory was last
 *     used n computations ago, which the start of this one waited for. With
 *     one lane, and a reader that stands apart too, the source's backend waits
 *     for the reader's first.
 *   - Any other copy waits for all backends.
 */
#include "config.h"
#include "base/os/os.h"
#include "graph/op_table.h"
#include "sched/sched_int.h"

static bool is_async(const struct gguf_sched *s, int b)
{
    const struct gguf_device *d = gguf_backend_device(s->backends[b]);
    return gguf_device_caps(d) & GGUF_DEVICE_CAP_ASYNC;
}

enum gguf_status gguf_sched_sync(struct gguf_sched *s, struct gguf_error *err)
{
    enum gguf_status first = GGUF_OK;
    for (int b = 0; b < s->n_backends; b++) {
        enum gguf_status st =
            gguf_backend_sync(s->backends[b], first ? NULL : err);
        if (first == GGUF_OK)
            first = st;
    }
    return first;
}

/* Let backend b wait for the work that was started on backend a. */
static enum gguf_status wait_for_backend(struct gguf_sched *s, int b, int a,
                                         struct gguf_error *err)
{
    if (a == b || !is_async(s, a))
        return GGUF_OK;
    if (s->done[a] && is_async(s, b))
        return gguf_event_wait(s->done[a], s->backends[b], err);
    return gguf_backend_sync(s->backends[a], err);
}

/* --- copies --------------------------------------------------------------- */

static struct gg_sched_copy copy_params(const struct gguf_tensor *copy)
{
    struct gg_sched_copy how;
    gg_op_params_get(copy, &how, sizeof how);
    return how;
}

/* The copies of inputs, of all splits. */
static enum gguf_status copy_inputs(struct gguf_sched *s,
                                    struct gg_sched_lane *l,
                                    struct gguf_error *err)
{
    for (size_t k = 0; k < s->n_splits; k++)
        for (size_t i = l->splits[k].begin; i < l->splits[k].copies_end; i++) {
            struct gguf_tensor *t = l->shadow->nodes[i];
            if (!gg_sched_origin(l, i) && copy_params(t).early)
                GG_TRY(gguf_tensor_copy(t->src[0], t, err));
        }
    return GGUF_OK;
}

/* Copy t for a split of backend b. */
static enum gguf_status copy_in(struct gguf_sched *s, struct gguf_tensor *t,
                                int b, struct gguf_error *err)
{
    const int a = copy_params(t).home;
    const bool apart = a != GG_SCHED_NONE && s->apart[a];
    if (apart && s->n_lanes == 1 && s->apart[b])
        return gguf_backend_copy_async(s->backends[a], s->backends[b],
                                       t->src[0], t, err);
    bool queued = false;
    if (apart && s->n_lanes > 1)
        GG_TRY(gg_backend_copy_queued(s->backends[a], t->src[0], t, &queued,
                                      err));
    if (queued) {
        GG_TRY(gguf_event_record(s->done[a], s->backends[a], err));
        return wait_for_backend(s, b, a, err);
    }
    GG_TRY(gguf_sched_sync(s, err));
    return gguf_tensor_copy(t->src[0], t, err);
}

/* --- splits --------------------------------------------------------------- */

/* Compute a split's nodes from *at on up to the next one that is wanted, *node,
 * or to the last: then *node is NULL. *ends: want ends the computation at
 * *node, which is not computed. */
static enum gguf_status run_to_wanted(struct gguf_sched *s,
                                      const struct gg_sched_lane *l,
                                      const struct gg_sched_split *split,
                                      struct gg_sched_filter want, size_t *at,
                                      struct gguf_tensor **node, bool *ends,
                                      struct gguf_error *err)
{
    struct gguf_graph part = split->part;
    size_t end = *at;
    enum gg_sched_answer answer = GG_SCHED_SKIP;
    while (end < split->end && answer == GG_SCHED_SKIP)
        answer = want.ask(want.user, gg_sched_origin(l, end++));
    *ends = answer == GG_SCHED_END;
    *node = answer != GG_SCHED_SKIP ? gg_sched_origin(l, end - 1) : NULL;
    part.nodes = l->shadow->nodes + *at;
    part.capacity = part.n_nodes = end - *at - (*ends ? 1 : 0);
    *at = end;
    return part.n_nodes
               ? gguf_backend_compute(s->backends[split->backend], &part, err)
               : GGUF_OK;
}

/* Up to each node that the callback wants, then the callback; or, *ends, up to
 * where it wants no more. */
static enum gguf_status run_with_eval(struct gguf_sched *s,
                                      const struct gg_sched_lane *l,
                                      const struct gg_sched_split *split,
                                      bool *ends, struct gguf_error *err)
{
    const struct gg_sched_filter want = { s->watch.ask, s->watch.user };
    *ends = false;
    for (size_t i = split->copies_end; i < split->end && !*ends;) {
        struct gguf_tensor *node;
        GG_TRY(run_to_wanted(s, l, split, want, &i, &node, ends, err));
        if (node && s->watch.see(s->watch.user, node))
            return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                                "stopped by the evaluation callback");
    }
    return GGUF_OK;
}

/* Can one of the backends access memory of the other, or both access host
 * memory? */
static bool have_common_memory(const struct gguf_sched *s, int a, int b)
{
    struct gguf_backend *x = s->backends[a], *y = s->backends[b];
    return gguf_backend_supports_buft(y, gguf_backend_buft(x)) ||
           gguf_backend_supports_buft(x, gguf_backend_buft(y)) ||
           (gguf_backend_supports_buft(x, gguf_host_buft()) &&
            gguf_backend_supports_buft(y, gguf_host_buft()));
}

static enum gguf_status make_plan(const struct gguf_sched *s,
                                  struct gg_sched_lane *l,
                                  struct gg_sched_split *split,
                                  struct gguf_error *err)
{
    struct gguf_plan **plan = &l->plans[split - l->splits];
    struct gguf_backend *b = s->backends[split->backend];
    if (split->is_planned)
        return GGUF_OK;
    GG_TRY(
        gg_measure_find(s->allocator)
            ? gg_backend_measure_plan(plan, b, &split->part, s->allocator, err)
            : gg_backend_prepare_plan(plan, b, &split->part, err));
    split->is_planned = true;
    return GGUF_OK;
}

enum gguf_status gg_sched_prepare(struct gguf_sched *s, struct gguf_error *err)
{
    for (unsigned k = 0; k < s->n_lanes; k++)
        for (size_t i = 0; i < s->n_splits; i++) {
            struct gg_sched_split *split = &s->lanes[k].splits[i];
            if (split->copies_end < split->end)
                GG_TRY(make_plan(s, &s->lanes[k], split, err));
        }
    return GGUF_OK;
}

/* Make the copies that a split needs, and wait for the backends whose results
 * it reads. */
static enum gguf_status enter_split(struct gguf_sched *s,
                                    struct gg_sched_lane *l,
                                    const struct gg_sched_split *split,
                                    struct gguf_error *err)
{
    const int b = split->backend;
    for (size_t i = split->begin; i < split->copies_end; i++) {
        struct gguf_tensor *t = l->shadow->nodes[i];
        if (!gg_sched_origin(l, i) && !copy_params(t).early)
            GG_TRY(copy_in(s, t, b, err));
    }
    if (split->copies_end == split->end)
        return GGUF_OK;
    for (int a = 0; a < s->n_backends; a++)
        if (a != b && is_async(s, a) && have_common_memory(s, a, b))
            GG_TRY(wait_for_backend(s, b, a, err));
    return GGUF_OK;
}

/* Compute part of a graph on backend b, whose nodes do not measure themselves,
 * node by node, and report each. Waits for each. */
static enum gguf_status compute_timed(struct gguf_sched *s, int b,
                                      const struct gguf_graph *part,
                                      struct gguf_error *err)
{
    struct gguf_graph one = *part;
    one.capacity = one.n_nodes = 1;
    for (size_t i = 0; i < part->n_nodes; i++) {
        struct gguf_tensor *t = part->nodes[i];
        one.nodes = part->nodes + i;
        if (gg_op_row(t->op)->flags & GG_OP_VIEW)
            continue;
        const uint64_t begin = gg_os_clock_ns();
        GG_TRY(gguf_backend_compute(s->backends[b], &one, err));
        const struct gguf_profile_node n = {
            .node = t,
            .backend = s->backends[b],
            .begin = begin,
            .end = gg_os_clock_ns(),
            .flops = gg_graph_flops(t),
            .bytes = gg_graph_bytes(t),
            .n_threads = 1,
            .n_fused = 1,
        };
        s->profile.fn(s->profile.user, &n);
    }
    return GGUF_OK;
}

static enum gguf_status run_split(struct gguf_sched *s,
                                  struct gg_sched_lane *l,
                                  struct gg_sched_split *split, bool *ends,
                                  struct gguf_error *err)
{
    const int b = split->backend;
    GG_TRY(enter_split(s, l, split, err));
    if (split->copies_end == split->end)
        return GGUF_OK;
    if (s->watch.ask) {
        GG_TRY(gguf_sched_sync(s, err));
        return run_with_eval(s, l, split, ends, err);
    }
    if (s->profile.fn && !(s->measures >> b & 1)) {
        GG_TRY(gguf_sched_sync(s, err));
        return compute_timed(s, b, &split->part, err);
    }
    GG_TRY(make_plan(s, l, split, err));
    GG_TRY(gguf_plan_compute_async(l->plans[split - l->splits], err));
    if (s->done[b])
        return gguf_event_record(s->done[b], s->backends[b], err);
    return GGUF_OK;
}

/* --- all of it ------------------------------------------------------------ */

/* Wait until the last computation in this lane is done: with one lane, all. */
static enum gguf_status enter_lane(struct gguf_sched *s,
                                   struct gg_sched_lane *l,
                                   struct gguf_error *err)
{
    if (s->n_lanes == 1)
        return gguf_sched_sync(s, err);
    for (int b = 0; b < s->n_backends; b++) {
        if (l->used[b])
            GG_TRY(gguf_event_sync(l->used[b], err));
        else
            GG_TRY(gguf_backend_sync(s->backends[b], err));
    }
    return GGUF_OK;
}

/* Inputs may be changed from now on: backends that read them in place must be
 * done. */
static enum gguf_status leave_lane(struct gguf_sched *s,
                                   struct gg_sched_lane *l,
                                   struct gguf_error *err)
{
    const int last = s->n_backends - 1;
    for (int b = 0; b < s->n_backends; b++) {
        if (l->used[b])
            GG_TRY(gguf_event_record(l->used[b], s->backends[b], err));
        if (is_async(s, b) && (b == last || have_common_memory(s, b, last)))
            GG_TRY(gguf_backend_sync(s->backends[b], err));
    }
    return GGUF_OK;
}

static enum gguf_status run_lane(struct gguf_sched *s, struct gg_sched_lane *l,
                                 struct gguf_error *err)
{
    GG_TRY(enter_lane(s, l, err));
    bool ends = false;
    GG_TRY(copy_inputs(s, l, err));
    for (size_t i = 0; i < s->n_splits && !ends; i++)
        GG_TRY(run_split(s, l, &l->splits[i], &ends, err));
    return leave_lane(s, l, err);
}

enum gguf_status gguf_sched_compute_async(struct gguf_sched *s,
                                          struct gguf_graph *graph,
                                          struct gguf_error *err)
{
    if (!gg_sched_has_placed(s, graph))
        GG_TRY(gguf_sched_alloc(s, graph, err));
    enum gguf_status st = run_lane(s, &s->lanes[s->lane], err);
    s->lane = (s->lane + 1) % s->n_lanes;
    if (st != GGUF_OK || s->watch.ask) {
        enum gguf_status rest = gguf_sched_sync(s, st ? NULL : err);
        return st ? st : rest;
    }
    return st;
}

enum gguf_status gguf_sched_compute(struct gguf_sched *s,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    GG_TRY(gguf_sched_compute_async(s, graph, err));
    return gguf_sched_sync(s, err);
}

enum gguf_status gg_sched_compute_nodes(struct gguf_sched *s,
                                        struct gguf_graph *graph, size_t begin,
                                        size_t end, struct gguf_error *err)
{
    struct gg_sched_lane *l = &s->lanes[0];
    bool ends;
    assert(gg_sched_is_plain(s) && gg_sched_has_placed(s, graph));
    if (begin == end)
        return GGUF_OK;
    struct gg_sched_split some = l->splits[0];
    some.copies_end = begin;
    some.end = end;
    if (s->watch.ask)
        return run_with_eval(s, l, &some, &ends, err);
    some.part.nodes = graph->nodes + begin;
    some.part.capacity = some.part.n_nodes = end - begin;
    return gguf_backend_compute(s->backends[some.backend], &some.part, err);
}

/* --- step by step --------------------------------------------------------- */

enum gguf_status gg_sched_stepper_begin(struct gg_sched_stepper *w,
                                        struct gguf_sched *s,
                                        struct gguf_graph *graph,
                                        struct gguf_error *err)
{
    *w = (struct gg_sched_stepper){ .s = s };
    if (!gg_sched_has_placed(s, graph))
        GG_TRY(gguf_sched_alloc(s, graph, err));
    w->lane = s->lane;
    s->lane = (s->lane + 1) % s->n_lanes;
    GG_TRY(enter_lane(s, &s->lanes[w->lane], err));
    return copy_inputs(s, &s->lanes[w->lane], err);
}

enum gguf_status gg_sched_stepper_next(struct gg_sched_stepper *w,
                                       struct gg_sched_filter want,
                                       struct gguf_tensor **node,
                                       struct gguf_error *err)
{
    struct gguf_sched *s = w->s;
    struct gg_sched_lane *l = &s->lanes[w->lane];
    bool ends;
    *node = NULL;
    for (; w->split < s->n_splits; w->split++, w->entered = false) {
        const struct gg_sched_split *split = &l->splits[w->split];
        if (!w->entered) {
            GG_TRY(enter_split(s, l, split, err));
            GG_TRY(gguf_sched_sync(s, err));
            w->at = split->copies_end;
            w->entered = true;
        }
        while (w->at < split->end && !*node)
            GG_TRY(run_to_wanted(s, l, split, want, &w->at, node, &ends, err));
        if (*node)
            return GGUF_OK;
    }
    GG_TRY(leave_lane(s, l, err));
    return gguf_sched_sync(s, err);
}
