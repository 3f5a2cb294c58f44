/* SPDX-License-Identifier: MIT */
/* buffer_version.h - versions of the weights in a buffer
 *
 * For caches of data that was made from weights, such as packed panels. A
 * buffer with GGUF_USAGE_WEIGHTS has a version object once a cache asks for it.
 * The object counts changes: data that is set, memory that is replaced, and the
 * end of the buffer. A cache keeps a reference and the count; cached data is
 * valid as long as the count is the same. The object lives until the last
 * reference is dropped, so its address is never that of another buffer's
 * version.
 */
#ifndef GG_BACKEND_BUFFER_VERSION_H
#define GG_BACKEND_BUFFER_VERSION_H

#include "gguf/backend.h"

struct gg_buffer_version;

/* Take a reference to the version of b. Returns NULL if nothing made from b may
 * be cached: b is NULL, its usage is not GGUF_USAGE_WEIGHTS, or memory is
 * short. The object comes from b's allocator, which must outlive it. Any
 * thread. */
struct gg_buffer_version *gg_buffer_version_ref(struct gguf_buffer *b);
/* Is age the version of b? */
bool gg_buffer_version_is_of(const struct gg_buffer_version *age,
                             const struct gguf_buffer *b);
/* Drop a reference. NULL is ignored. Any thread. */
void gg_buffer_version_unref(struct gg_buffer_version *age);
/* Number of changes so far. */
uint64_t gg_buffer_version_n_changes(const struct gg_buffer_version *age);

/* Count a change of b's data. b may be NULL. */
void gg_buffer_version_change(struct gguf_buffer *b);
/* Count the end of b, and drop b's own reference. */
void gg_buffer_version_end(struct gguf_buffer *b);

#endif
