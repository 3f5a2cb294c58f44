/* SPDX-License-Identifier: MIT */
/* randop.h - a random node of any operation, for tests with random graphs
 *
 * Sources of an operation are cut from given tensors, or repeated from them,
 * so that any operation can follow any other.
 */
#ifndef TESTS_GRAPH_RANDOP_H
#define TESTS_GRAPH_RANDOP_H

#include "gguf/op.h"

/* Tensors to make a node from. a and b: F32, not empty. cache: at least 64
 * elements in memory of its own, which may be overwritten. */
struct randop {
    struct gguf_ctx *ctx;
    struct gguf_tensor *a, *b, *cache;
    uint64_t seed;
};

/* Make a node of operation op. Nodes before it prepare its sources, and nodes
 * after it convert the result to F32. The same seed gives the same structure.
 * NULL: op is unknown, or the context has failed. */
struct gguf_tensor *randop_make(const struct randop *r, uint32_t op);

/* Make t's node of operation op read one source also in place of each later
 * source of the same type and layout; copies not NULL: read a copy from that
 * context instead. false: it has no such sources, or the operation writes into
 * one. A quarter of randop_any()'s nodes are made so. */
bool randop_same_source(struct gguf_tensor *t, uint32_t op,
                        struct gguf_ctx *copies);

/* Make a node of a random operation. */
struct gguf_tensor *randop_any(const struct randop *r);

#endif
