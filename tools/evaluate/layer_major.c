/* SPDX-License-Identifier: MIT */
/* layer_major.c - the memory of --layer-major for activations between layers */
#include "config.h"
#include "tools/evaluate/options.h"

#include <inttypes.h>

enum gguf_status ev_layer_major_budget(const struct ev_options *o,
                                       const struct gguf_session *s,
                                       uint64_t *room, struct gguf_error *err)
{
    uint64_t cache, graph;
    *room = 0;
    gguf_session_memory_size(s, &cache, &graph);
    if (cache + graph >= o->max_memory)
        return gguf_error_set(err, GGUF_E_LIMIT,
                              "a chunk needs %" PRIu64
                              " bytes besides activations between layers: "
                              "give a larger --max-memory",
                              cache + graph);
    *room = o->max_memory - cache - graph;
    return GGUF_OK;
}
