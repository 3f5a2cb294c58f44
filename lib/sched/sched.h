/* sched.h - inside of the scheduler
 *
 * The scheduler works on a graph of its own: each node of the caller's has a
 * shadow, the same but for its sources, which are shadows or copies. So the
 * caller's tensors stay as they are, and lifetimes of copies are seen by the
 * graph allocator as those of any node.
 */
#ifndef GG_SCHED_SCHED_H
#define GG_SCHED_SCHED_H

#include "backend/backend.h"
#include "graph/cgraph.h"
#include "gguf/sched.h"

enum { GG_SCHED_NONE = -1 };

struct gg_split {
    int backend;
    size_t begin, copies_end, end; /* nodes of the shadow graph: copies, then
                                      what is computed */
};

struct gg_pin {
    const struct gguf_tensor *t;
    int backend;
};

struct gguf_sched {
    const struct gguf_allocator *allocator;
    struct gguf_backend *backends[GGUF_SCHED_MAX_BACKENDS];
    int n_backends;
    gguf_sched_eval_fn *eval;
    void *eval_user;
    struct gguf_galloc *galloc; /* pool i: backend i */
    struct gg_pin *pins;
    size_t n_pins;

    /* of the last graph */
    const struct gguf_graph *graph; /* the caller's; only alloc sets it */
    const struct gguf_graph *planned; /* the same; reserve too */
    int *backend_of;        /* of its nodes, then leaves; GG_SCHED_NONE */
    size_t n_tensors;
    struct gguf_ctx *ctx;   /* shadows, copies, the graph */
    struct gguf_graph *shadow;
    struct gguf_tensor **shadows; /* of the caller's nodes */
    const struct gguf_tensor **origin; /* of shadow nodes; NULL: a copy */
    int *node_pool, *leaf_pool;
    struct gg_split *splits;
    size_t n_splits, n_copies;
};

/* Whether the backend can read and write what lies where t lies, or will lie
 * if it is laid out for backend home (GG_SCHED_NONE: nothing known). */
bool gg_sched_reaches(const struct gguf_sched *s, int backend,
                      const struct gguf_tensor *t, int home);

/* Whether t has memory that this scheduler did not give it. */
bool gg_sched_is_placed(const struct gguf_sched *s,
                        const struct gguf_tensor *t);

/* Index of t in backend_of, or GG_SCHED_NONE. */
int64_t gg_sched_index(const struct gguf_graph *g,
                       const struct gguf_tensor *t);

/* Fill backend_of for graph. GGUF_E_OP. */
enum gguf_status gg_sched_assign(struct gguf_sched *s,
                                 const struct gguf_graph *graph,
                                 struct gguf_error *err);

/* Cut graph into splits: shadows, copies, pools. GGUF_E_NOMEM. */
enum gguf_status gg_sched_split(struct gguf_sched *s,
                                const struct gguf_graph *graph,
                                struct gguf_error *err);

#endif
