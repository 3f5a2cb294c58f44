/* SPDX-License-Identifier: MIT */
/* stored.h - layer by layer: what chunks may leave for the next layer */
#ifndef TOOLS_STORED_H
#define TOOLS_STORED_H

#include <gguf/session.h>

/* Of --layer-major. */
#define STORED_HELP                                                           \
    "compute as many chunks as --max-memory has room for through one layer "  \
    "before any goes through the next: weights that do not fit into memory "  \
    "are read once for all of them. No digit depends on it"

/* Bytes of max_memory that keys, values and graphs of a session leave.
 * GGUF_E_LIMIT: none. */
enum gguf_status stored_room(const struct gguf_session *s, uint64_t max_memory,
                             uint64_t *most, struct gguf_error *err);

#endif
