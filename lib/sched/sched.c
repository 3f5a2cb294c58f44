/* SPDX-License-Identifier: MIT */
/* sched.c - the scheduler: planning and placing */
#include "config.h"
#include "sched/sched_int.h"
#include "base/params.h"

#include <stddef.h>
#include <xxhash.h>

/* --- create, destroy ------------------------------------------------------ */

static void find_separate_backends(struct gguf_sched *s)
{
    for (int a = 0; a < s->n_backends; a++)
        for (int b = 0; b < s->n_backends; b++)
            s->reaches[b][a] = gguf_backend_supports_buft(
                s->backends[b], gguf_backend_buft(s->backends[a]));
    const uint32_t both = GGUF_DEVICE_CAP_ASYNC | GGUF_DEVICE_CAP_EVENTS;
    for (int a = 0; a < s->n_backends; a++) {
        struct gguf_device *d = gguf_backend_device(s->backends[a]);
        s->apart[a] = (gguf_device_caps(d) & both) == both;
        for (int b = 0; b < s->n_backends; b++)
            s->apart[a] = s->apart[a] && (a == b || !s->reaches[b][a]);
    }
}

static enum gguf_status make_events(struct gguf_sched *s,
                                    struct gguf_error *err)
{
    for (int b = 0; b < s->n_backends; b++) {
        struct gguf_device *d = gguf_backend_device(s->backends[b]);
        if (!(gguf_device_caps(d) & GGUF_DEVICE_CAP_EVENTS))
            continue;
        GG_TRY(gguf_event_create(&s->done[b], d, s->allocator, err));
        for (unsigned i = 0; s->n_lanes > 1 && i < s->n_lanes; i++)
            GG_TRY(
                gguf_event_create(&s->lanes[i].used[b], d, s->allocator, err));
    }
    return GGUF_OK;
}

static enum gguf_status check_params(const struct gguf_sched_params *p,
                                     struct gguf_error *err)
{
    const unsigned n = p->n_backends;
    if (n <= GGUF_SCHED_MAX_BACKENDS)
        GG_TRY(gg_params_need_all(p->backends, n, "backend", err));
    if (n >= 1 && n <= GGUF_SCHED_MAX_BACKENDS &&
        p->n_copies <= GGUF_SCHED_MAX_COPIES &&
        gguf_buft_is_host(gguf_backend_buft(p->backends[n - 1])))
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "a scheduler of %u backends, %u copies: 1 to %d, the "
                        "last one of host memory, and 1 to %d",
                        n, p->n_copies, GGUF_SCHED_MAX_BACKENDS,
                        GGUF_SCHED_MAX_COPIES);
}

enum gguf_status gguf_sched_create(struct gguf_sched **out,
                                   const struct gguf_sched_params *params,
                                   struct gguf_error *err)
{
    const struct gguf_buft *bufts[GGUF_SCHED_MAX_BACKENDS];
    struct gguf_sched_params own = GGUF_SCHED_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&own, sizeof own, params, "gguf_sched_params", err));
    params = &own;
    GG_TRY(check_params(params, err));
    const unsigned n = params->n_backends;
    struct gguf_sched *s = gg_mem_alloc_zero(params->allocator, 1, sizeof *s);
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    s->allocator = params->allocator;
    s->n_backends = (int)n;
    s->n_lanes = GG_MAX(params->n_copies, 1);
    s->no_offload = params->no_offload;
    for (unsigned i = 0; i < n; i++) {
        s->backends[i] = params->backends[i];
        bufts[i] = gguf_backend_buft(params->backends[i]);
    }
    find_separate_backends(s);
    enum gguf_status st = GGUF_OK;
    s->borrows = params->memory_of != NULL;
    if (s->borrows)
        s->galloc = params->memory_of->galloc;
    else
        st = gg_galloc_create(&s->galloc, s->allocator, bufts, n,
                              params->measure, err);
    if (st == GGUF_OK)
        st = make_events(s, err);
    if (st != GGUF_OK)
        gguf_sched_destroy(s);
    else
        *out = s;
    return st;
}

/* Mark all plans as plans of other graphs. */
static void drop_plans(struct gg_sched_lane *l, size_t n_splits)
{
    for (size_t i = 0; i < n_splits; i++)
        l->splits[i].is_planned = false;
}

/* Forget the last graph; buffers, pins and memory stay. */
static enum gguf_status forget_plan(struct gguf_sched *s,
                                    struct gguf_error *err)
{
    const enum gguf_status st = gguf_sched_sync(s, err);
    for (unsigned i = 0; i < s->n_lanes; i++) {
        struct gg_sched_lane *l = &s->lanes[i];
        l->shadow = NULL;
        l->shadows = NULL;
        l->origin = NULL;
        l->splits = NULL;
    }
    s->backend_of = s->node_pool = s->leaf_pool = NULL;
    s->slots = NULL;
    s->graph = NULL;
    s->planned = NULL;
    s->n_splits = s->n_copies = 0;
    return st;
}

static void free_lane(struct gguf_sched *s, struct gg_sched_lane *l)
{
    for (size_t i = 0; i < l->n_plans; i++)
        gguf_plan_destroy(l->plans[i]);
    gg_mem_free(s->allocator, l->plans);
    gguf_ctx_destroy(l->ctx);
    for (int b = 0; b < s->n_backends; b++)
        gguf_event_destroy(l->used[b]);
}

void gguf_sched_destroy(struct gguf_sched *s)
{
    if (!s)
        return;
    (void)forget_plan(s, NULL);
    if (s->profile.fn)
        gg_status_ignore(gguf_sched_set_profile(
            s, (struct gguf_profile_callback){ NULL, NULL }, NULL));
    for (int b = 0; b < s->n_backends; b++)
        gguf_event_destroy(s->done[b]);
    for (unsigned i = 0; i < s->n_lanes; i++)
        free_lane(s, &s->lanes[i]);
    if (!s->borrows)
        gguf_galloc_destroy(s->galloc);
    for (int k = 0; k < GG_SCHED_N_ARRAYS; k++)
        gg_mem_free(s->allocator, s->arrays[k].p);
    gg_sched_clear_pins(s);
    gg_mem_free(s->allocator, s);
}

enum gguf_status gguf_sched_reset(struct gguf_sched *s, struct gguf_error *err)
{
    const enum gguf_status st = forget_plan(s, err);
    gg_sched_clear_pins(s);
    return st;
}

enum gguf_status gg_sched_set_watch(struct gguf_sched *s,
                                    struct gg_sched_watch watch,
                                    struct gguf_error *err)
{
    const enum gguf_status st = gguf_sched_sync(s, err);
    s->watch = watch;
    return st;
}

static enum gg_sched_answer ask_eval(void *user, const struct gguf_tensor *t)
{
    const struct gguf_sched *s = user;
    return s->eval.wants(s->eval.user, t) ? GG_SCHED_WANT : GG_SCHED_SKIP;
}

static bool show_eval(void *user, struct gguf_tensor *t)
{
    const struct gguf_sched *s = user;
    return s->eval.see(s->eval.user, t);
}

enum gguf_status gguf_sched_set_eval(struct gguf_sched *s,
                                     struct gguf_sched_eval eval,
                                     struct gguf_error *err)
{
    struct gg_sched_watch watch = { NULL, NULL, NULL };
    if (eval.wants) {
        GG_TRY(gg_params_need(eval.see, "gguf_sched_eval: see", err));
        watch = (struct gg_sched_watch){ ask_eval, show_eval, s };
    }
    s->eval = eval;
    return gg_sched_set_watch(s, watch, err);
}

bool gg_sched_is_placed(const struct gguf_sched *s,
                        const struct gguf_tensor *t)
{
    return t->buffer ? !gg_galloc_owns(s->galloc, t->buffer) : t->data != NULL;
}

/* --- whether a graph is like the last one --------------------------------- */

/* Two numbers for the tensor at a place, besides its members before src: where
 * memory is that was there before, or 0, and how that is used. */
static void describe_memory(const struct gguf_sched *s,
                            const struct gguf_tensor *t, uint64_t v[2])
{
    const struct gguf_tensor *r = t->view_src ? t->view_src : t;
    v[0] = v[1] = 0;
    if (!gg_sched_is_placed(s, r))
        return;
    v[0] = (uintptr_t)gguf_host_buft();
    if (r->buffer) {
        v[0] = (uintptr_t)gguf_buffer_buft(r->buffer);
        v[1] = (uint64_t)gguf_buffer_usage(r->buffer);
    }
}

/* Hash everything that assignments and splits depend on: type, operation,
 * flags, dimensions and strides, which a tensor begins with, its parameters,
 * and the tensors and memory that it refers to. */
static uint64_t hash_structure(const struct gguf_sched *s,
                               const struct gguf_graph *g)
{
    uint64_t h = g->n_nodes;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gguf_tensor *t = gg_graph_at(g, i);
        struct {
            uint64_t view_off, memory[2];
            int32_t pin, root, src[GGUF_TENSOR_SRC];
            char op_params[GGUF_TENSOR_PARAMS];
        } x;
        static_assert(sizeof x == 3 * 8 + (2 + GGUF_TENSOR_SRC) * 4 +
                                      GGUF_TENSOR_PARAMS,
                      "no padding");
        x.view_off = t->view_off;
        x.pin = gg_sched_find_pin(s, t);
        x.root = gg_sched_root(g, i);
        memcpy(x.op_params, t->op_params, sizeof x.op_params);
        describe_memory(s, t, x.memory);
        int n_src = gg_sched_sources(g, i, x.src);
        for (int k = 0; k < GGUF_TENSOR_SRC; k++)
            if (k >= n_src || !t->src[k])
                x.src[k] = GG_SCHED_NONE - 1; /* no source */
        h = XXH3_64bits_withSeed(t, offsetof(struct gguf_tensor, src), h);
        h = XXH3_64bits_withSeed(&x, sizeof x, h);
    }
    return h;
}

/* Hash the tensors' addresses, and the places of those with memory from
 * elsewhere. */
static uint64_t hash_tensors(const struct gguf_sched *s,
                             const struct gguf_graph *g)
{
    uint64_t h = 0;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gguf_tensor *t = gg_graph_at(g, i);
        const void *v[3] = { t, NULL, NULL };
        if (gg_sched_is_placed(s, t)) {
            v[1] = t->data;
            v[2] = t->buffer;
        }
        h = XXH3_64bits_withSeed(v, sizeof v, h);
    }
    return h;
}

/* --- memory --------------------------------------------------------------- */

void *gg_sched_array(struct gguf_sched *s, enum gg_sched_array k, size_t n,
                     size_t size, struct gguf_error *err)
{
    uint64_t all;
    if (gg_ckd_mul(&all, n, size) || all > SIZE_MAX) {
        gg_error_set_nomem(err, SIZE_MAX);
        return NULL;
    }
    if (!s->arrays[k].p || all > s->arrays[k].size) {
        gg_mem_free(s->allocator, s->arrays[k].p);
        s->arrays[k].size = 0;
        s->arrays[k].p = gg_mem_alloc(s->allocator, (size_t)all);
        if (!s->arrays[k].p) {
            gg_error_set_nomem(err, (size_t)all);
            return NULL;
        }
        s->arrays[k].size = (size_t)all;
    }
    memset(s->arrays[k].p, 0, (size_t)all);
    return s->arrays[k].p;
}

/* Room for the plans of all splits. */
static enum gguf_status grow_plans(struct gguf_sched *s,
                                   struct gg_sched_lane *l,
                                   struct gguf_error *err)
{
    size_t room = l->n_plans;
    if (l->max_splits <= room)
        return GGUF_OK;
    struct gguf_plan **p = gg_mem_grow(s->allocator, l->plans, &room,
                                       sizeof *p, l->max_splits, err);
    if (!p)
        return GGUF_E_NOMEM;
    memset(p + l->n_plans, 0, (room - l->n_plans) * sizeof *p);
    l->plans = p;
    l->n_plans = room;
    return GGUF_OK;
}

/* --- planning ------------------------------------------------------------- */

/* Upper bound of the number of copies: one for each source that its reader
 * does not reach. */
static size_t count_possible_copies(const struct gguf_sched *s,
                                    const struct gguf_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        int32_t sources[GGUF_TENSOR_SRC];
        const int n_src = gg_sched_sources(g, i, sources);
        for (int k = 0; k < n_src; k++) {
            if (sources[k] < 0)
                continue;
            int32_t home = gg_sched_root(g, (size_t)sources[k]);
            n += !gg_sched_reaches(s, s->backend_of[i], g->nodes[i]->src[k],
                                   home < 0 ? GG_SCHED_NONE
                                            : s->backend_of[home]);
        }
    }
    return n;
}

/* Zeroed memory for n items in a lane's context, or NULL. */
static void *alloc_lane_array(struct gg_sched_lane *l, size_t n, size_t size)
{
    void *p = gguf_ctx_alloc_work(l->ctx, n * size);
    if (p)
        memset(p, 0, n * size);
    return p;
}

/* The arrays and the empty graph of a lane in its empty context. */
static enum gguf_status fill_lane(struct gguf_sched *s,
                                  struct gg_sched_lane *l,
                                  const struct gguf_graph *g,
                                  struct gguf_error *err)
{
    l->splits = alloc_lane_array(l, l->max_splits, sizeof *l->splits);
    if (!gg_sched_is_plain(s)) {
        l->shadows = alloc_lane_array(l, g->n_nodes, sizeof *l->shadows);
        l->origin = alloc_lane_array(l, l->capacity, sizeof *l->origin);
        l->shadow = gguf_graph_create(l->ctx, l->capacity);
    }
    return gguf_ctx_status(l->ctx, err);
}

static enum gguf_status prepare_lane(struct gguf_sched *s,
                                     struct gg_sched_lane *l,
                                     const struct gguf_graph *g,
                                     size_t n_copies, size_t n_slots,
                                     struct gguf_error *err)
{
    const size_t n = g->n_nodes + n_copies;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    l->max_splits = gg_sched_count_splits(s, g);
    l->capacity = GG_MAX(n, g->n_leaves + n_slots) + 1;
    p.allocator = s->allocator;
    p.no_alloc = true;
    p.mem_size = l->max_splits * sizeof *l->splits + 4096;
    if (!gg_sched_is_plain(s))
        p.mem_size += (n + n_slots) * gguf_tensor_overhead() +
                      g->n_nodes * sizeof *l->shadows +
                      l->capacity * sizeof *l->origin +
                      gguf_graph_overhead(l->capacity);
    GG_TRY(grow_plans(s, l, err));
    if (l->ctx && p.mem_size <= l->ctx_size) {
        gguf_ctx_reset(l->ctx);
    } else {
        gguf_ctx_destroy(l->ctx);
        GG_TRY(gguf_ctx_create(&l->ctx, &p, err));
        l->ctx_size = p.mem_size;
    }
    return fill_lane(s, l, g, err);
}

static enum gguf_status prepare_memory(struct gguf_sched *s,
                                       const struct gguf_graph *g,
                                       struct gguf_error *err)
{
    const size_t n_copies =
        gg_sched_is_plain(s) ? 0 : count_possible_copies(s, g);
    const size_t n_slots = (s->n_lanes - 1) * n_copies;
    const size_t n = g->n_nodes + n_copies, n_leaves = g->n_leaves + n_slots;
    s->max_copies = n_copies;
    s->node_pool =
        gg_sched_array(s, GG_SCHED_NODE_POOL, n, sizeof *s->node_pool, err);
    if (s->node_pool)
        s->leaf_pool = gg_sched_array(s, GG_SCHED_LEAF_POOL, n_leaves,
                                      sizeof *s->leaf_pool, err);
    if (s->leaf_pool)
        s->slots =
            gg_sched_array(s, GG_SCHED_SLOTS, n_slots, sizeof *s->slots, err);
    if (!s->slots)
        return GGUF_E_NOMEM;
    for (unsigned i = 0; i < s->n_lanes; i++)
        GG_TRY(
            prepare_lane(s, &s->lanes[i], g, n_copies, i ? 0 : n_slots, err));
    return GGUF_OK;
}

/* Shadows of another graph of the same structure. */
static enum gguf_status clear_lanes(struct gguf_sched *s,
                                    const struct gguf_graph *g,
                                    struct gguf_error *err)
{
    for (unsigned i = 0; i < s->n_lanes; i++) {
        struct gg_sched_lane *l = &s->lanes[i];
        drop_plans(l, s->n_splits);
        gguf_ctx_reset(l->ctx);
        GG_TRY(fill_lane(s, l, g, err));
    }
    return GGUF_OK;
}

static enum gguf_status assign_nodes(struct gguf_sched *s,
                                     const struct gguf_graph *g,
                                     struct gguf_error *err)
{
    const size_t n = g->n_nodes + g->n_leaves;
    (void)forget_plan(s, NULL);
    s->backend_of =
        gg_sched_array(s, GG_SCHED_BACKEND_OF, n, sizeof *s->backend_of, err);
    if (s->backend_of)
        s->answers = gg_sched_array(s, GG_SCHED_ANSWERS, g->n_nodes,
                                    sizeof *s->answers, err);
    if (s->answers)
        s->n_readers =
            gg_sched_array(s, GG_SCHED_READERS, n, sizeof *s->n_readers, err);
    if (!s->backend_of || !s->answers || !s->n_readers)
        return GGUF_E_NOMEM;
    GG_TRY(gg_sched_assign(s, g, err));
    s->n_plans++;
    return prepare_memory(s, g, err);
}

enum gguf_status gg_sched_plan(struct gguf_sched *s,
                               const struct gguf_graph *g,
                               struct gguf_error *err)
{
    const uint64_t structure = hash_structure(s, g),
                   tensors = hash_tensors(s, g);
    const bool like = s->planned && structure == s->structure;
    const bool same = like && tensors == s->tensors &&
                      (g == s->planned || !gg_sched_is_plain(s));
    enum gguf_status st = GGUF_OK;
    s->graph = NULL;
    /* A failure belongs to the graph before this one. */
    gg_status_ignore(gguf_sched_sync(s, NULL));
    if (!like)
        st = assign_nodes(s, g, err);
    else if (!same)
        st = clear_lanes(s, g, err);
    if (st == GGUF_OK && !same)
        st = gg_sched_split(s, g, err);
    if (st != GGUF_OK) {
        (void)forget_plan(s, NULL);
        return st;
    }
    s->planned = g;
    s->generation = g->generation;
    s->structure = structure;
    s->tensors = tensors;
    s->lane = 0;
    return GGUF_OK;
}

enum gguf_status gguf_sched_reserve(struct gguf_sched *s,
                                    const struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    GG_TRY(gg_sched_plan(s, graph, err));
    return gguf_galloc_reserve_n(s->galloc, s->lanes[0].shadow, s->node_pool,
                                 s->leaf_pool, err);
}

static void copy_placement(struct gguf_tensor *t,
                           const struct gguf_tensor *from)
{
    t->data = from->data;
    t->buffer = from->buffer;
    t->extra = from->extra;
}

enum gguf_status gguf_sched_alloc(struct gguf_sched *s,
                                  struct gguf_graph *graph,
                                  struct gguf_error *err)
{
    const struct gg_sched_lane *first = &s->lanes[0];
    GG_TRY(gg_sched_plan(s, graph, err));
    GG_TRY(gg_galloc_alloc_n(s->galloc, first->shadow, s->node_pool,
                             s->leaf_pool, err));
    for (size_t i = 0; first->shadows && i < graph->n_nodes; i++)
        copy_placement(graph->nodes[i], first->shadows[i]);
    for (unsigned k = 1; first->shadows && k < s->n_lanes; k++) {
        struct gguf_graph *g = s->lanes[k].shadow;
        struct gguf_tensor **slot = s->slots + (k - 1) * s->max_copies;
        for (size_t i = 0; i < g->n_nodes; i++)
            copy_placement(g->nodes[i], s->lanes[k].origin[i]
                                            ? first->shadow->nodes[i]
                                            : *slot++);
    }
    graph->placer = s;
    s->graph = graph;
    /* a plan depends on the addresses of its tensors */
    if (s->n_moves != gg_galloc_n_moves(s->galloc) ||
        s->n_layouts != gguf_galloc_n_plans(s->galloc))
        for (unsigned i = 0; i < s->n_lanes; i++)
            drop_plans(&s->lanes[i], s->n_splits);
    s->n_moves = gg_galloc_n_moves(s->galloc);
    s->n_layouts = gguf_galloc_n_plans(s->galloc);
    return GGUF_OK;
}

bool gg_sched_is_stale(const struct gguf_sched *s)
{
    return s->n_moves != gg_galloc_n_moves(s->galloc);
}

bool gg_sched_has_placed(const struct gguf_sched *s,
                         const struct gguf_graph *graph)
{
    return s->graph == graph && graph->placer == s && !gg_sched_is_stale(s);
}

const struct gguf_graph *gg_sched_graph(const struct gguf_sched *s)
{
    return s->planned && s->planned->generation == s->generation ? s->planned
                                                                 : NULL;
}

/* --- asking --------------------------------------------------------------- */

unsigned gguf_sched_n_backends(const struct gguf_sched *s)
{
    return (unsigned)s->n_backends;
}

struct gguf_backend *gguf_sched_backend(const struct gguf_sched *s, unsigned i)
{
    return i < (unsigned)s->n_backends ? s->backends[i] : NULL;
}

size_t gguf_sched_n_splits(const struct gguf_sched *s)
{
    return s->n_splits;
}

size_t gguf_sched_n_copies(const struct gguf_sched *s)
{
    return s->n_copies;
}

unsigned gguf_sched_n_plans(const struct gguf_sched *s)
{
    return s->n_plans;
}

int32_t gguf_sched_find_backend(const struct gguf_sched *s,
                                const struct gguf_tensor *t)
{
    const struct gguf_graph *g = gg_sched_graph(s);
    int32_t i = g ? gg_graph_find(g, t) : GG_SCHED_NONE;
    return i < 0 ? GG_SCHED_NONE : s->backend_of[i];
}

size_t gguf_sched_buffer_size(const struct gguf_sched *s, unsigned i)
{
    return gguf_galloc_buffer_size(s->galloc, i);
}
