/* SPDX-License-Identifier: MIT */
/* lifetimes.h - lifetimes of a graph's tensors, computed independently of
 * lib/alloc
 *
 * Judges the allocator's layouts: which tensors must not overlap, and the
 * smallest memory that any layout needs.
 */
#ifndef TESTS_LIFETIMES_H
#define TESTS_LIFETIMES_H

#include "gguf/backend.h"

#include <stdbool.h>

struct span {
    const struct gguf_tensor *t;
    int first,
        last;      /* first and last node that need t; -1: before the graph */
    uint64_t size; /* bytes, with padding */
    bool keep;     /* a result: never overwrite it */
};

/* Find the lifetimes of the graph's tensors in a buffer (NULL: those without
 * one). Views have none of their own.
 *
 * A tensor that is flagged as input or output, or that no node reads, lives to
 * the end; if it is a view, its source does. s: room for every node and leaf.
 * Returns the number of lifetimes.
 */
int spans_of(const struct gguf_graph *g, const struct gguf_buffer *buffer,
             struct span *s);

/* Do two tensors overlap that live at the same time? */
bool spans_overlap(const struct span *s, int n);

/* The largest sum of sizes that live at one node. No layout can be smaller. */
uint64_t spans_bound(const struct span *s, int n, const struct gguf_graph *g);

#endif
