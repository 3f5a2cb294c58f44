/* SPDX-License-Identifier: MIT */
/* graph_dump.h - text that is written piece by piece, until the callback stops
 * it */
#ifndef GG_GRAPH_GRAPH_DUMP_H
#define GG_GRAPH_GRAPH_DUMP_H

#include "base/error.h"
#include "gguf/graph.h"

struct gg_graph_out {
    gguf_write_fn *write;
    void *user;
    bool stopped; /* by write: nothing more is put */
};

/* At most 511 bytes; what is more is cut. */
void gg_graph_out_put(struct gg_graph_out *o, const char *fmt, ...)
    GG_PRINTF(2, 3);

/* GGUF_E_CANCELLED if it was stopped; what is "a graph". */
enum gguf_status gg_graph_out_finish(const struct gg_graph_out *o,
                                     const char *what, struct gguf_error *err);

#endif
