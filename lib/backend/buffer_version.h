/* SPDX-License-Identifier: MIT */
/* buffer_version.h - whether bytes of weights are still those that they were
 *
 * For those who keep something that they made of a buffer of weights, such as
 * panels: a buffer whose usage is GGUF_USAGE_WEIGHTS has an age, once somebody
 * holds it, which becomes another when data of its tensors are set, when its
 * memory is replaced and when it is destroyed. An age stays as long as it is
 * held, so that its address is never that of another buffer's, whatever lies
 * where the buffer lay.
 */
#ifndef GG_BACKEND_BUFFER_VERSION_H
#define GG_BACKEND_BUFFER_VERSION_H

#include "gguf/backend.h"

struct gg_buffer_version;

/* That of b, held for the caller, or NULL: nothing may be kept of b, which may
 * be NULL, or there is no memory. From b's allocator, which must outlive it.
 * Any thread. */
struct gg_buffer_version *gg_buffer_version_ref(struct gguf_buffer *b);
/* Is it b's? */
bool gg_buffer_version_is_of(const struct gg_buffer_version *age,
                             const struct gguf_buffer *b);
/* NULL is fine. Any thread. */
void gg_buffer_version_unref(struct gg_buffer_version *age);
/* How often what it is of changed. */
uint64_t gg_buffer_version_n_changes(const struct gg_buffer_version *age);

/* For what changes buffers. b may be NULL. */
void gg_buffer_version_change(struct gguf_buffer *b);
void gg_buffer_version_end(struct gguf_buffer *b);

#endif
