/* SPDX-License-Identifier: MIT */
/* pages.h - pages of memory: brought in, locked */
#ifndef GG_BASE_PAGES_H
#define GG_BASE_PAGES_H

#include "base/error.h"

/* Read a byte of each page that size bytes at p touch. */
void gg_pages_touch(const void *p, size_t size);

/* Keep the pages that size bytes at p touch in memory; let them go. Locks do
 * not add up: one unlock is enough for any number. GGUF_E_LIMIT (the process
 * may lock less; the message says the limit), GGUF_E_IO, GGUF_E_UNSUPPORTED
 * (the system locks nothing). */
enum gguf_status gg_pages_lock(const void *p, size_t size,
                               struct gguf_error *err);
void gg_pages_unlock(const void *p, size_t size);

#endif
