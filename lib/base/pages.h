/* SPDX-License-Identifier: MIT */
/* pages.h - bring pages into memory and lock them there */
#ifndef GG_BASE_PAGES_H
#define GG_BASE_PAGES_H

#include "base/error.h"

/* Read one byte of each page in size bytes at p, so that all are in memory. */
void gg_pages_touch(const void *p, size_t size);

/* Lock the pages of size bytes at p in memory. Locks do not nest: one unlock is
 * enough. GGUF_E_LIMIT: the process may not lock that much; the message gives
 * the limit. GGUF_E_UNSUPPORTED: the system cannot lock pages. GGUF_E_IO. */
enum gguf_status gg_pages_lock(const void *p, size_t size,
                               struct gguf_error *err);
/* Unlock the pages of size bytes at p. */
void gg_pages_unlock(const void *p, size_t size);

#endif
