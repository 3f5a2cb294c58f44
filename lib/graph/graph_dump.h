/* SPDX-License-Identifier: MIT */
/* graph_dump.h - writing text to a callback that may stop it */
#ifndef GG_GRAPH_GRAPH_DUMP_H
#define GG_GRAPH_GRAPH_DUMP_H

#include "base/error.h"
#include "gguf/graph.h"

/* Text output. */
struct gg_graph_out {
    struct gguf_write_callback write;
    bool stopped; /* write has stopped it; further text is dropped */
};

/* Write formatted text of at most 511 bytes. Longer text is cut. */
void gg_graph_out_put(struct gg_graph_out *o, const char *fmt, ...)
    GGUF_PRINTF(2, 3);

/* Returns GGUF_E_CANCELLED if the output was stopped; the message names `what`,
 * such as "a graph". */
enum gguf_status gg_graph_out_finish(const struct gg_graph_out *o,
                                     const char *what, struct gguf_error *err);

#endif
