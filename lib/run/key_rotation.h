/* SPDX-License-Identifier: MIT */
/* key_rotation.h - rotate cached keys to the new positions of their tokens */
#ifndef GG_RUN_KEY_ROTATION_H
#define GG_RUN_KEY_ROTATION_H

#include "gguf/sched.h"
#include "run/memory_int.h"

struct gg_key_rotation {
    struct gguf_ctx *ctx; /* NULL: the model has no rotated keys */
    struct gguf_sched *sched;
    struct gguf_graph *graph;
    struct gguf_tensor *rows, *by; /* inputs of the graph */
    uint32_t most;                 /* most rows of a graph */
    int32_t *row;                  /* [most], rows of keys */
    int32_t *delta; /* [most], changes of positions; [4 most] with axes */
};

struct gguf_session;

/* Make contexts for graphs of up to most rows, and a scheduler with parameters
 * p, which shares the memory of another one. GGUF_E_NOMEM.
 * gg_key_rotation_fini() may follow a failure. */
enum gguf_status gg_key_rotation_init(struct gguf_session *s,
                                      const struct gguf_sched_params *p,
                                      uint32_t most, struct gguf_error *err);
void gg_key_rotation_fini(struct gguf_session *s);

/* Plan the largest graphs. GGUF_E_NOMEM. Also fails as planning does. */
enum gguf_status gg_key_rotation_reserve(struct gguf_session *s,
                                         struct gguf_error *err);

/* Call see with the largest graphs, described but not placed. */
typedef void gg_session_visit_graph_fn(void *user,
                                       const struct gguf_graph *graph);
enum gguf_status gg_key_rotation_visit_graphs(struct gguf_session *s,
                                              gg_session_visit_graph_fn *see,
                                              void *user,
                                              struct gguf_error *err);

/* Rotate n keys in a stream of a table: cell i by by[i] positions. After a
 * failure of computing some are rotated. */
enum gguf_status gg_key_rotation_apply(struct gguf_session *s,
                                       const struct gg_cells *table,
                                       uint32_t stream, const int32_t *by,
                                       uint32_t n, struct gguf_error *err);

#endif
