/* SPDX-License-Identifier: MIT */
/* randop.h - a random node of any operation, for tests with random graphs
 *
 * What an operation takes is cut out of tensors that are there, or repeated
 * from them, so that each can follow each.
 */
#ifndef TESTS_GRAPH_RANDOP_H
#define TESTS_GRAPH_RANDOP_H

#include "gguf/op.h"

/* What a node is made from: f32 tensors with elements, one with memory of its
 * own, of 64 elements at least, that may be written into, and chance. */
struct randop {
    struct gguf_ctx *ctx;
    struct gguf_tensor *a, *b, *cache;
    uint64_t seed;
};

/* A node of operation op with what it needs before and, so that the result is
 * f32, after it. The same seed gives the same structure. NULL: there is no
 * operation op, or the context has failed. */
struct gguf_tensor *randop_make(const struct randop *r, uint32_t op);

/* Make t's node of operation op read its source k also in place of each later
 * source i of the same type and layout; or, with copies not NULL, a copy of it
 * from that context. Returns false if there are no such sources, or if the
 * operation writes into one. A quarter of the nodes below are made so. */
bool randop_same_source(struct gguf_tensor *t, uint32_t op,
                        struct gguf_ctx *copies);

/* A node of a random operation. */
struct gguf_tensor *randop_any(const struct randop *r);

#endif
