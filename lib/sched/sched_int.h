/* SPDX-License-Identifier: MIT */
/* sched_int.h - inside of the scheduler
 *
 * The scheduler computes a graph of its own, the shadow graph. Each node of the
 * program's graph has a shadow there: the same operation on sources that are
 * shadows or copies. The program's tensors stay as they are, and the graph
 * allocator sees the lifetimes of copies like those of any node. With one
 * backend nothing is copied: the program's graph itself is the only split.
 *
 * A lane is a shadow graph with copies of its own. There are n_lanes lanes
 * (gguf_sched_params.n_copies), which computations use in turn. The shadows of
 * all lanes share memory, since each backend works in order. The copies of each
 * lane have memory of their own, since one backend fills a copy and another
 * reads it.
 */
#ifndef GG_SCHED_SCHED_INT_H
#define GG_SCHED_SCHED_INT_H

#include "backend/backend_int.h"
#include "graph/cgraph.h"
#include "gguf/sched.h"

#include <assert.h>

enum { GG_SCHED_NONE = -1 };

/* A run of nodes on one backend. Nodes [begin, copies_end) of the shadow graph
 * are views and copies. Nodes [copies_end, end) are computed. */
struct gg_sched_split {
    int backend; /* index of the backend */
    size_t begin, copies_end, end;
    struct gguf_graph part; /* view of the nodes that are computed */
    bool is_planned;        /* the lane's plan of this split is one of part */
};

/* A shadow graph with its copies and splits. */
struct gg_sched_lane {
    struct gguf_ctx *ctx; /* memory of shadows, copies, graph and arrays */
    size_t ctx_size;      /* bytes of ctx */
    size_t capacity;      /* capacity of the shadow graph */
    size_t max_splits;    /* capacity of splits */
    struct gguf_graph *shadow; /* the shadow graph */

    /* Shadow of each node of the program's graph. */
    struct gguf_tensor **shadows;
    /* Program's tensor of each node of the shadow graph; an entry of NULL is a
     * copy. Without the array, shadow is the program's graph. */
    const struct gguf_tensor **origin;

    struct gg_sched_split *splits;
    /* Plan of each split, owned by the lane. If is_planned of the split is
     * false, the plan is out of date, or NULL. */
    struct gguf_plan **plans;
    size_t n_plans; /* capacity of plans */

    /* Event after each backend's part of the lane's last computation. NULL: the
     * backend has no events. */
    struct gguf_event *used[GGUF_SCHED_MAX_BACKENDS];
};

/* Entry of the table of pins: tensor t is pinned to a backend. The entry counts
 * only if t has the same mark: a later tensor at the same address has another
 * one. */
struct gg_pin {
    const struct gguf_tensor *t; /* NULL: an empty slot */
    uint64_t mark;
    int backend; /* index of the backend */
};

/* Backends that can compute a node: bit b of yes, valid if bit b of asked is
 * set. */
struct gg_sched_answers {
    uint16_t asked, yes;
};
static_assert(GGUF_SCHED_MAX_BACKENDS <= 16, "a bit for each backend");

/* Arrays that are filled for each graph. They keep their memory, so that memory
 * is allocated only for a graph that is larger than all earlier ones. */
enum gg_sched_array {
    GG_SCHED_BACKEND_OF,
    GG_SCHED_ANSWERS,
    GG_SCHED_READERS,
    GG_SCHED_NODE_POOL,
    GG_SCHED_LEAF_POOL,
    GG_SCHED_SLOTS,
    GG_SCHED_CUT, /* CUT, PASSING and WRITTEN: scratch of graph_split.c */
    GG_SCHED_PASSING,
    GG_SCHED_WRITTEN,
    GG_SCHED_N_ARRAYS
};

/* Answer about a node, before it is computed. */
enum gg_sched_answer {
    GG_SCHED_SKIP, /* compute the node, and do not show it */
    GG_SCHED_WANT, /* compute the node, then show it */
    GG_SCHED_END   /* show the node, and end the computation: neither this node
                      nor later ones are computed */
};

/* Evaluation callback as the library itself uses it. */
struct gg_sched_watch {
    /* Called for each node before it is computed. NULL: no callback. */
    enum gg_sched_answer (*ask)(void *user, const struct gguf_tensor *t);

    /* Shows a node, after ask returned WANT or END for it. Returns true to stop
     * the computation, which then fails with GGUF_E_CANCELLED. */
    bool (*see)(void *user, struct gguf_tensor *t);

    void *user; /* passed to both */
};

struct gguf_sched {
    const struct gguf_allocator *allocator;
    struct {
        void *p;
        size_t size; /* bytes */
    } arrays[GG_SCHED_N_ARRAYS];
    struct gguf_backend *backends[GGUF_SCHED_MAX_BACKENDS];
    /* Event after the last split of each backend. NULL: it has no events. */
    struct gguf_event *done[GGUF_SCHED_MAX_BACKENDS];
    int n_backends;
    /* reaches[a][b]: backend a can compute on tensors in buffers of backend b's
     * buffer type. */
    bool reaches[GGUF_SCHED_MAX_BACKENDS][GGUF_SCHED_MAX_BACKENDS];
    /* apart[b]: backend b is asynchronous and has events, and no other backend
     * reaches its memory. */
    bool apart[GGUF_SCHED_MAX_BACKENDS];
    unsigned n_lanes;            /* lanes in use */
    bool no_offload;             /* gguf_sched_params.no_offload */
    struct gg_sched_watch watch; /* evaluation callback in use */
    struct gguf_sched_eval eval; /* program's callback, behind watch */
    struct gguf_profile_callback profile; /* receives times */
    uint16_t measures; /* bit b: backend b reports its own times */
    struct gguf_galloc
        *galloc;         /* memory; buffer type i is that of backend i */
    bool borrows;        /* galloc belongs to another scheduler */
    unsigned n_moves;    /* gg_galloc_n_moves() at the last alloc */
    unsigned n_layouts;  /* gguf_galloc_n_plans() at the last alloc */
    struct gg_pin *pins; /* hash table of pins by address, or NULL */
    size_t n_pins, n_pin_slots; /* pins, and size of the table */
    uint64_t n_marks;           /* number of marks made for pins so far */
    unsigned n_plans;           /* number of graphs assigned so far */

    /* The last graph. */
    /* Graph of the last alloc. NULL: none, or gguf_sched_reserve() was called
     * after it. */
    const struct gguf_graph *graph;
    /* Graph of the last alloc or reserve. NULL: none. */
    const struct gguf_graph *planned;
    uint64_t generation; /* generation of planned */
    /* Hash of everything in planned that the assignment of backends uses. */
    uint64_t structure;
    /* Hash of the addresses of planned's tensors, and of the memory of those
     * that have memory from elsewhere (gg_sched_is_placed()). */
    uint64_t tensors;
    /* Backend of each node, then of each leaf. GG_SCHED_NONE: not assigned. */
    int *backend_of;
    struct gg_sched_answers *answers; /* one for each node */
    uint32_t *n_readers; /* number of nodes that read each node, then leaf */
    size_t max_copies;   /* copies that each lane has room for */
    struct gg_sched_lane lanes[GGUF_SCHED_MAX_COPIES];
    /* Leaves of lane 0's shadow graph, max_copies for each of the lanes 1 and
     * up. The graph allocator places them, and copies of those lanes get their
     * memory. */
    struct gguf_tensor **slots;
    int *node_pool, *leaf_pool; /* buffer types, for gguf_galloc_reserve_n() */
    /* splits of each lane, and copies of each lane */
    size_t n_splits, n_copies;
    unsigned lane; /* lane of the next computation */
};

/* Does the backend reach the memory of t? For a tensor without memory, home is
 * the backend in whose buffer it will be placed, or GG_SCHED_NONE if that is
 * not known: then the answer is yes. */
bool gg_sched_reaches(const struct gguf_sched *s, int backend,
                      const struct gguf_tensor *t, int home);

/* Does t have memory from elsewhere than this scheduler? */
bool gg_sched_is_placed(const struct gguf_sched *s,
                        const struct gguf_tensor *t);

/* Place of the root of the tensor at `place`. A tensor that is not a view is
 * its own root. GG_SCHED_NONE: the root is outside of the graph. A place is an
 * index into backend_of: nodes are counted first, then leaves. */
static inline int32_t gg_sched_root(const struct gguf_graph *g, size_t place)
{
    uint32_t found[GG_GRAPH_EDGES];
    return gg_graph_at(g, place)->view_src
               ? gg_graph_place(g, *gg_graph_edges(g, place, found))
               : (int32_t)place;
}

/* Find the places of the sources of the tensor at a place. GG_SCHED_NONE for a
 * source that is NULL or outside of the graph. Returns the number of sources
 * that its operation can have. */
int gg_sched_sources(const struct gguf_graph *graph, size_t place,
                     int32_t sources[GGUF_TENSOR_SRC]);

/* Array k, with room for n items of size bytes, all zero. NULL after
 * GGUF_E_NOMEM. Pointers from earlier calls for k are then invalid. */
void *gg_sched_array(struct gguf_sched *s, enum gg_sched_array k, size_t n,
                     size_t size, struct gguf_error *err);

/* Assign a graph and cut it into splits, without memory for its tensors.
 * gguf_sched_find_backend() can be asked afterwards. Waits for all backends.
 * Fails as gguf_sched_reserve() does. */
enum gguf_status gg_sched_plan(struct gguf_sched *s,
                               const struct gguf_graph *graph,
                               struct gguf_error *err);

/* Create the backends' plans for the graph of the last alloc. Without this
 * call, its first computation creates them and allocates their memory. With a
 * counting allocator (gg_measure) the memory is counted and not allocated. */
enum gguf_status gg_sched_prepare(struct gguf_sched *s,
                                  struct gguf_error *err);

/* Compute the nodes [begin, end) of the graph of the last alloc, and wait. The
 * graph must be plain (gg_sched_is_plain()). Inputs, and results of other nodes
 * that these nodes read, must be set. */
enum gguf_status gg_sched_compute_nodes(struct gguf_sched *s,
                                        struct gguf_graph *graph, size_t begin,
                                        size_t end, struct gguf_error *err);

/* Wait for all backends, and set the watch of later computations in place of
 * any other. Returns the first failure of the work that was started before; the
 * watch is set all the same. */
enum gguf_status gg_sched_set_watch(struct gguf_sched *s,
                                    struct gg_sched_watch watch,
                                    struct gguf_error *err);

/* Nodes to stop at in a computation step by step. */
struct gg_sched_filter {
    enum gg_sched_answer (*ask)(void *user, const struct gguf_tensor *t);
    void *user; /* passed to ask */
};

/* A computation step by step. */
struct gg_sched_stepper {
    struct gguf_sched *s;
    unsigned lane;
    size_t split; /* split in progress */
    size_t at;    /* next node of the split */
    bool entered; /* the copies of the split are made */
};

/* Start to compute a graph step by step. It is allocated first if needed. No
 * other computation may run on s before the last step. The evaluation callback
 * is not called. Statuses: those of gguf_sched_alloc(), and of the computation
 * of earlier work that this call waits for. */
enum gguf_status gg_sched_stepper_begin(struct gg_sched_stepper *w,
                                        struct gguf_sched *s,
                                        struct gguf_graph *graph,
                                        struct gguf_error *err);
/* Compute up to and including the next node for which want.ask returns WANT. It
 * must not return END. *node receives the node of the program's graph; its
 * result is valid until the next step. NULL: the graph is computed to its
 * end. */
enum gguf_status gg_sched_stepper_next(struct gg_sched_stepper *w,
                                       struct gg_sched_filter want,
                                       struct gguf_tensor **node,
                                       struct gguf_error *err);

/* Assign a backend to each node and leaf: fill in backend_of. GGUF_E_OP if no
 * backend can compute a node. */
enum gguf_status gg_sched_assign(struct gguf_sched *s,
                                 const struct gguf_graph *graph,
                                 struct gguf_error *err);

/* Number of splits of a graph that is assigned. */
size_t gg_sched_count_splits(const struct gguf_sched *s,
                             const struct gguf_graph *graph);

/* Cut an assigned graph into splits: make the shadows, copies and pools of
 * every lane. GGUF_E_NOMEM. */
enum gguf_status gg_sched_split(struct gguf_sched *s,
                                const struct gguf_graph *graph,
                                struct gguf_error *err);

/* Is the program's graph computed itself, without shadows? */
static inline bool gg_sched_is_plain(const struct gguf_sched *s)
{
    return s->n_backends == 1;
}

/* Program's tensor of node i of a lane's shadow graph. NULL: the node is a
 * copy. */
static inline struct gguf_tensor *
gg_sched_origin(const struct gg_sched_lane *l, size_t i)
{
    return l->origin ? (struct gguf_tensor *)(uintptr_t)l->origin[i]
                     : l->shadow->nodes[i];
}

/* Has the last graph lost its memory, because another scheduler that uses the
 * same galloc needed more memory for a graph? */
bool gg_sched_is_stale(const struct gguf_sched *s);

/* Is it the graph of the last alloc, with the same nodes and memory? */
bool gg_sched_has_placed(const struct gguf_sched *s,
                         const struct gguf_graph *graph);

/* Graph of the last reserve or alloc. NULL if it has changed since, or does not
 * exist any more. */
const struct gguf_graph *gg_sched_graph(const struct gguf_sched *s);

/* Backend that t is pinned to, or GG_SCHED_NONE. In pin.c. */
int gg_sched_find_pin(const struct gguf_sched *s, const struct gguf_tensor *t);
/* Remove all pins and free their table. */
void gg_sched_clear_pins(struct gguf_sched *s);

/* op_params of a copy in a shadow graph. */
struct gg_sched_copy {
    int32_t early; /* 1: the source is an input that no node writes, and it is
                      copied before the first split */
    int32_t home;  /* backend whose buffer has the source, or GG_SCHED_NONE */
};

#endif
