/* SPDX-License-Identifier: MIT */
/* resident.h - memory management for files that are read by a function
 *
 * The bytes of such a file (mapfile.h) are not in memory by themselves. A user
 * holds a range before it reads there, and releases it afterwards. Blocks that
 * nobody holds are idle. Some of them stay in memory, because the next range
 * often begins in the last block. Their size is that of the largest range that
 * was held, or a sixteenth of the file up to 16 MiB if that is more. The others
 * are returned to the system, oldest first, and fetched again when needed.
 */
#ifndef GG_BASE_RESIDENT_H
#define GG_BASE_RESIDENT_H

#include "base/mapfile.h"
#include "base/mem.h"

#include <pthread.h>

struct gg_resident_block;
struct gg_resident {
    const struct gg_mapfile *map;           /* the file */
    const struct gguf_allocator *allocator; /* allocator of block */
    pthread_mutex_t lock; /* protects the members below, and fetching */
    struct gg_resident_block *block; /* all blocks of the file */
    uint64_t block_size;             /* bytes of a block */
    uint32_t newest, oldest;         /* ends of the list of idle blocks */
    uint32_t n_idle, most_idle;      /* idle blocks; most that stay */
};

/* Initialize for a file that is read by a function. Fetches nothing. map must
 * outlive w. GGUF_E_NOMEM. */
enum gguf_status gg_resident_init(struct gg_resident *w,
                                  const struct gg_mapfile *map,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
/* Release everything. Call it before the file is closed. A zeroed struct is
 * allowed. */
void gg_resident_fini(struct gg_resident *w);

/* Declare bytes up to upto to be in memory, for good. Call it before anything
 * is held. */
void gg_resident_pin(struct gg_resident *w, uint64_t upto);

/* Hold a range of size bytes from off in memory until it is released. A range
 * may be held several times, by any thread. Returns the status of
 * gg_mapfile_fetch(); after a failure nothing is held. */
enum gguf_status gg_resident_hold(struct gg_resident *w, uint64_t off,
                                  uint64_t size, struct gguf_error *err);
/* Release a range that is held. */
void gg_resident_release(struct gg_resident *w, uint64_t off, uint64_t size);

#endif
