/* SPDX-License-Identifier: MIT */
/* stored.c - layer by layer: what chunks may leave for the next layer */
#include "config.h"
#include "tools/common/stored.h"

#include <inttypes.h>

enum gguf_status stored_room(const struct gguf_session *s, uint64_t max_memory,
                             uint64_t *most, struct gguf_error *err)
{
    uint64_t cache, graph;
    *most = 0;
    gguf_session_memory(s, &cache, &graph);
    if (cache + graph >= max_memory)
        return gguf_error_set(err, GGUF_E_LIMIT,
                              "a chunk takes %" PRIu64
                              " bytes beside what it leaves for the next "
                              "layer: --max-memory must be more",
                              cache + graph);
    *most = max_memory - cache - graph;
    return GGUF_OK;
}
