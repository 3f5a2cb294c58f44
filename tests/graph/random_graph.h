/* SPDX-License-Identifier: MIT */
/* random_graph.h - random graphs for tests of schedulers */
#ifndef TESTS_GRAPH_RANDOM_GRAPH_H
#define TESTS_GRAPH_RANDOM_GRAPH_H

#include "gguf/sched.h"
#include "tests/graph/fake_backend.h"

enum { RANDOM_GRAPH_NODES = 60, RANDOM_GRAPH_ROW = 32 };

struct random_graph {
    struct gguf_ctx *ctx;
    struct gguf_graph *graph;
    struct gguf_buffer *buffers[4];
    tensor *inputs[3], *weights[3], *cache, *out[RANDOM_GRAPH_NODES];
    int n_out;
};

/* Make a graph. home[k]: buffer types of the three weights and the cache. */
struct random_graph random_graph_make(uint64_t seed,
                                      const struct gguf_buft *const *home);
void random_graph_free(struct random_graph *g);

/* Set t to random values, if it has memory. */
void random_graph_fill(tensor *t, uint64_t seed);

/* Allocate, set inputs and the cache by seed, compute. */
void random_graph_run(struct gguf_sched *s, struct random_graph *g,
                      uint64_t seed);

/* Are the outputs and caches equal, bit by bit? */
bool random_graph_same(const struct random_graph *a,
                       const struct random_graph *b);

#endif
