/* SPDX-License-Identifier: MIT */
/* gen.h - random graphs for tests of schedulers */
#ifndef TESTS_GRAPH_GEN_H
#define TESTS_GRAPH_GEN_H

#include "gguf/sched.h"
#include "tests/graph/island.h"

enum { GEN_NODES = 60, GEN_ROW = 32 };

struct made {
    struct gguf_ctx *ctx;
    struct gguf_graph *graph;
    struct gguf_buffer *buffers[4];
    tensor *inputs[3], *weights[3], *cache, *out[GEN_NODES];
    int n_out;
};

/* home[k]: buffer types of the three weights and the cache. */
struct made gen_make(uint64_t seed, const struct gguf_buft *const *home);
void gen_drop(struct made *g);

/* Random values for t, if it has memory. */
void gen_set(tensor *t, uint64_t seed);

/* Allocate, set inputs and the cache by seed, compute. */
void gen_run(struct gguf_sched *s, struct made *g, uint64_t seed);

/* Whether outputs and caches are equal, bit by bit. */
bool gen_same(const struct made *a, const struct made *b);

#endif
