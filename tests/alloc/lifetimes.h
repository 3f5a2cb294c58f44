/* SPDX-License-Identifier: MIT */
/* lifetimes.h - lifetimes of a graph's tensors, worked out a second time
 *
 * Independent of lib/alloc, to judge its layouts: what must live at the same
 * time, and the least memory that there could be.
 */
#ifndef TESTS_LIFETIMES_H
#define TESTS_LIFETIMES_H

#include "gguf/backend.h"

#include <stdbool.h>

struct span {
    const struct gguf_tensor *t;
    int first, last; /* nodes; -1: before the graph */
    uint64_t size;   /* bytes, padded */
    bool keep;       /* a result, not to be overwritten */
};

/* The tensors of the graph that lie in buffer (NULL: none), views not. What is
 * flagged as an input or output or read by nobody stays to the end; if
 * that is a view, what it looks at. s holds one for each node and leaf;
 * returns how many. */
int spans_of(const struct gguf_graph *g, const struct gguf_buffer *buffer,
             struct span *s);

/* Whether two tensors overlap that must not. */
bool spans_overlap(const struct span *s, int n);

/* Largest sum of what must live at one node: no layout can be smaller. */
uint64_t spans_bound(const struct span *s, int n, const struct gguf_graph *g);

#endif
