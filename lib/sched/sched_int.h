/* SPDX-License-Identifier: MIT */
/* sched_int.h - inside of the scheduler
 *
 * The scheduler works on a graph of its own: each node of the caller's has a
 * shadow, the same but for its sources, which are shadows or copies. So the
 * caller's tensors stay as they are, and lifetimes of copies are seen by the
 * graph allocator as those of any node. With one backend there is nothing to
 * copy, and the caller's graph itself is the only split.
 *
 * With several copies there are as many lanes: each a set of shadows with
 * copies of its own. Computations take them in turn. Shadows of all lanes lie
 * in the same memory, since a backend works in order; copies do not, since
 * another backend than their reader fills them.
 */
#ifndef GG_SCHED_SCHED_INT_H
#define GG_SCHED_SCHED_INT_H

#include "backend/backend_int.h"
#include "graph/cgraph.h"
#include "gguf/sched.h"

#include <assert.h>
#include <limits.h>

enum { GG_SCHED_NONE = -1 };

struct gg_sched_split {
    int backend;
    size_t begin, copies_end, end; /* nodes of the shadow graph: views and
                                      copies, then what is computed */
    struct gguf_graph part;        /* what is computed */
    bool is_planned;               /* the lane has a plan of part */
};

struct gg_sched_lane {
    struct gguf_ctx *ctx; /* shadows, copies, the graph, arrays */
    size_t ctx_size;      /* bytes of it */
    size_t capacity, max_splits;
    struct gguf_graph *shadow;
    struct gguf_tensor **shadows;      /* of the caller's nodes */
    const struct gguf_tensor **origin; /* of shadow nodes; NULL: a copy;
                                          no array: all are the caller's */
    struct gg_sched_split *splits;
    struct gguf_plan **plans; /* of each split, some from other graphs */
    size_t n_plans;
    struct gguf_event *used[GGUF_SCHED_MAX_BACKENDS]; /* after each backend's
                               part of the last computation; NULL: no events */
};

/* t is pinned as long as it bears the mark; another tensor at its address does
 * not bear it. */
struct gg_pin {
    const struct gguf_tensor *t; /* NULL: an empty slot */
    uint64_t mark;
    int backend;
};

/* Which backends can compute a node, bit by bit, as far as they were asked. */
struct gg_sched_answers {
    uint16_t asked, yes;
};
static_assert(GGUF_SCHED_MAX_BACKENDS <= 16, "a bit for each backend");

/* Arrays that are filled for each graph. Their memory stays, so that a graph
 * no larger than an earlier one allocates nothing. */
enum gg_sched_array {
    GG_SCHED_BACKEND_OF,
    GG_SCHED_ANSWERS,
    GG_SCHED_READERS,
    GG_SCHED_NODE_POOL,
    GG_SCHED_LEAF_POOL,
    GG_SCHED_SLOTS,
    GG_SCHED_CUT, /* these are of graph_split.c */
    GG_SCHED_PASSING,
    GG_SCHED_WRITTEN,
    GG_SCHED_N_ARRAYS
};

struct gguf_sched {
    const struct gguf_allocator *allocator;
    struct {
        void *p;
        size_t size; /* bytes */
    } arrays[GG_SCHED_N_ARRAYS];
    struct gguf_backend *backends[GGUF_SCHED_MAX_BACKENDS];
    struct gguf_event *done[GGUF_SCHED_MAX_BACKENDS]; /* after its last split;
                                                         NULL: no events */
    int n_backends;
    bool reaches[GGUF_SCHED_MAX_BACKENDS][GGUF_SCHED_MAX_BACKENDS]; /* the
                                first works in memory of the second's type */
    bool apart[GGUF_SCHED_MAX_BACKENDS]; /* asynchronous, with events, and no
                                            other backend reaches its memory */
    unsigned n_lanes;
    bool no_offload;
    gguf_sched_eval_fn *eval;
    void *eval_user;
    gguf_profile_fn *profile; /* callback; NULL: no profile */
    void *profile_user;
    uint16_t measures; /* bit b: backend b reports its nodes by itself */
    struct gguf_galloc *galloc;  /* pool i: backend i */
    bool borrows;                /* it is another scheduler's */
    unsigned n_moves, n_layouts; /* of it, at the last alloc */
    struct gg_pin *pins;         /* a hash table by address, or NULL */
    size_t n_pins, n_pin_slots;
    uint64_t n_marks; /* given so far */
    unsigned n_plans;

    /* of the last graph */
    const struct gguf_graph *graph;   /* the caller's; only alloc sets it */
    const struct gguf_graph *planned; /* the same; reserve too */
    uint64_t generation;              /* of planned */
    uint64_t structure;               /* what assignments depend on */
    uint64_t tensors;                 /* which tensors it has */
    int *backend_of; /* of its nodes, then leaves; GG_SCHED_NONE */
    struct gg_sched_answers *answers; /* of backends about its nodes */
    uint32_t *n_readers; /* nodes that read each node, then leaf */
    size_t max_copies;   /* capacity of each lane, in copies */
    struct gg_sched_lane lanes[GGUF_SCHED_MAX_COPIES];
    struct gguf_tensor **slots; /* for the copies of lanes 1 and up: leaves of
                                   lane 0's graph, max_copies for each */
    int *node_pool, *leaf_pool;
    size_t n_splits, n_copies;
    unsigned lane; /* the next computation's */
};

/* Whether the backend can read and write the memory where t lies, or will lie
 * if it is laid out for backend home (GG_SCHED_NONE: nothing known). */
bool gg_sched_reaches(const struct gguf_sched *s, int backend,
                      const struct gguf_tensor *t, int home);

/* Whether t has memory that this scheduler did not give it. */
bool gg_sched_is_placed(const struct gguf_sched *s,
                        const struct gguf_tensor *t);

/* Place in the graph (backend_of has these) of the root of the tensor at a
 * place: its own if it is not a view; or GG_SCHED_NONE. */
static inline int32_t gg_sched_root(const struct gguf_graph *g, size_t place)
{
    uint32_t found[GG_GRAPH_EDGES];
    return gg_graph_at(g, place)->view_src
               ? gg_graph_place(g, *gg_graph_edges(g, place, found))
               : (int32_t)place;
}

/* The places of as many sources as the tensor at a place can have, which is
 * returned; GG_SCHED_NONE where it has none. */
int gg_sched_sources(const struct gguf_graph *graph, size_t place,
                     int32_t sources[GGUF_TENSOR_SRC]);

/* Array k with n zeroed items of size bytes. NULL: GGUF_E_NOMEM. */
void *gg_sched_array(struct gguf_sched *s, enum gg_sched_array k, size_t n,
                     size_t size, struct gguf_error *err);

/* Assign graph and cut it into splits, without memory for its tensors:
 * gguf_sched_find_backend knows them. Waits for all backends. Fails as
 * gguf_sched_reserve does. */
enum gguf_status gg_sched_plan(struct gguf_sched *s,
                               const struct gguf_graph *graph,
                               struct gguf_error *err);

/* Make the plans of the last alloc's graph, which its first computation would
 * do: all memory that backends take to compute, if they take it then. Where the
 * scheduler's allocator measures it is only said what that is. */
enum gguf_status gg_sched_prepare(struct gguf_sched *s,
                                  struct gguf_error *err);

/* Compute nodes begin to end - 1 of the last alloc's graph, which is plain
 * (below), and wait. Inputs and what these nodes read of others are set. */
enum gguf_status gg_sched_compute_nodes(struct gguf_sched *s,
                                        struct gguf_graph *graph, size_t begin,
                                        size_t end, struct gguf_error *err);

/* What an evaluation callback of the library may answer, too, when it is asked
 * for a node: this one and those after it are not needed. What comes before is
 * computed, the callback is handed the node as a wanted one, and the
 * computation ends there, as a whole one does. */
enum { GG_SCHED_END = INT_MIN }; /* no answer of a caller's */

/* A computation step by step. Which nodes are wanted: fn is called with done
 * false, as the evaluation callback is. */
struct gg_sched_filter {
    gguf_sched_eval_fn *fn;
    void *user;
};
struct gg_sched_stepper {
    struct gguf_sched *s;
    unsigned lane;
    size_t split, at; /* the split, and the next node of it */
    bool entered;     /* its copies are made */
};

/* Begin to compute graph, as gguf_sched_compute does; until the last step
 * nothing else may be computed with s. The evaluation callback is not called.
 */
enum gguf_status gg_sched_stepper_begin(struct gg_sched_stepper *w,
                                        struct gguf_sched *s,
                                        struct gguf_graph *graph,
                                        struct gguf_error *err);
/* Compute up to the next node that is wanted, which is *node, a node of the
 * caller's graph: its result is there until the next step. NULL: all is
 * computed. */
enum gguf_status gg_sched_stepper_next(struct gg_sched_stepper *w,
                                       struct gg_sched_filter want,
                                       struct gguf_tensor **node,
                                       struct gguf_error *err);

/* Fill backend_of for graph. GGUF_E_OP. */
enum gguf_status gg_sched_assign(struct gguf_sched *s,
                                 const struct gguf_graph *graph,
                                 struct gguf_error *err);

/* How many splits graph, which is assigned, will be. */
size_t gg_sched_count_splits(const struct gguf_sched *s,
                             const struct gguf_graph *graph);

/* Cut graph into splits: shadows, copies, pools, for every lane.
 * GGUF_E_NOMEM. */
enum gguf_status gg_sched_split(struct gguf_sched *s,
                                const struct gguf_graph *graph,
                                struct gguf_error *err);

/* Whether the caller's graph is computed as it is. */
static inline bool gg_sched_is_plain(const struct gguf_sched *s)
{
    return s->n_backends == 1;
}

/* The caller's tensor that node i of a lane is; NULL: a copy. */
static inline struct gguf_tensor *
gg_sched_origin(const struct gg_sched_lane *l, size_t i)
{
    return l->origin ? (struct gguf_tensor *)(uintptr_t)l->origin[i]
                     : l->shadow->nodes[i];
}

/* Whether the memory that the last graph was given is gone, because a graph of
 * another scheduler needed more. */
bool gg_sched_is_stale(const struct gguf_sched *s);

/* Whether graph is the one of the last alloc, with the same nodes and the
 * memory that they got there. */
bool gg_sched_has_placed(const struct gguf_sched *s,
                         const struct gguf_graph *graph);

/* The graph of the last reserve or alloc, if it is still there with the same
 * nodes; or NULL. */
const struct gguf_graph *gg_sched_graph(const struct gguf_sched *s);

/* pin.c: the backend that t is pinned to, or GG_SCHED_NONE. */
int gg_sched_find_pin(const struct gguf_sched *s, const struct gguf_tensor *t);
/* Forget all pins. */
void gg_sched_clear_pins(struct gguf_sched *s);

/* What a copy in a shadow graph is, as its parameters. */
struct gg_sched_copy {
    int32_t early; /* of an input that nothing writes: made before all else */
    int32_t home;  /* backend whose pool has the source, or GG_SCHED_NONE */
};

#endif
