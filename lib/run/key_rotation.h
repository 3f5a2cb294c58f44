/* SPDX-License-Identifier: MIT */
/* key_rotation.h - keys that are kept, turned on as tokens change positions
 * */
#ifndef GG_RUN_KEY_ROTATION_H
#define GG_RUN_KEY_ROTATION_H

#include "gguf/sched.h"
#include "run/memory_int.h"

struct gg_key_rotation {
    struct gguf_ctx *ctx; /* NULL: positions turn nothing */
    struct gguf_sched *sched;
    struct gguf_graph *graph;
    struct gguf_tensor *rows, *by; /* its inputs */
    uint32_t most;                 /* rows at a time */
    int32_t *row;                  /* [most] */
    int32_t *delta;                /* [most], of axes [4 most] */
};

struct gguf_session;

/* Make contexts for graphs of at most `most' rows, and a scheduler with the
 * parameters p, which shares another one's memory. GGUF_E_NOMEM; fini is fine
 * after it. */
enum gguf_status gg_key_rotation_init(struct gguf_session *s,
                                      const struct gguf_sched_params *p,
                                      uint32_t most, struct gguf_error *err);
void gg_key_rotation_fini(struct gguf_session *s);

/* Plan the largest graphs. GGUF_E_NOMEM and what planning returns. */
enum gguf_status gg_key_rotation_reserve(struct gguf_session *s,
                                         struct gguf_error *err);

/* Show the largest graphs, described, not placed. */
typedef void gg_session_visit_graph_fn(void *user,
                                       const struct gguf_graph *graph);
enum gguf_status gg_key_rotation_visit_graphs(struct gguf_session *s,
                                              gg_session_visit_graph_fn *see,
                                              void *user,
                                              struct gguf_error *err);

/* Turn keys of a book's stream: cell i by so many positions more, by[i], n of
 * them. Fails as computing does, with some of them turned. */
enum gguf_status gg_key_rotation_apply(struct gguf_session *s,
                                       const struct gg_cells *book,
                                       uint32_t stream, const int32_t *by,
                                       uint32_t n, struct gguf_error *err);

#endif
