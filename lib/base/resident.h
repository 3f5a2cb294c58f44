/* SPDX-License-Identifier: MIT */
/* resident.h - what of a file read by a function is in memory
 *
 * A map through a function (mapfile.h) is addresses; who reads there holds the
 * bytes first, and lets go of them afterwards. What nobody holds stays for a
 * while, since the next piece often begins in the last one's end: so many bytes
 * as were ever held in one go, or a sixteenth of the file up to 16 MiB if that
 * is more. The rest is given back to the system, and fetched again where it is
 * held again.
 */
#ifndef GG_BASE_RESIDENT_H
#define GG_BASE_RESIDENT_H

#include "base/mapfile.h"
#include "base/mem.h"

#include <pthread.h>

struct gg_resident_block;
struct gg_resident {
    const struct gg_mapfile *map; /* kept */
    const struct gguf_allocator *allocator;
    pthread_mutex_t lock; /* for what follows, and for fetching */
    struct gg_resident_block *block;
    uint64_t block_size;
    uint32_t newest, oldest; /* of those that nobody holds */
    uint32_t n_idle, most_idle;
};

/* Of a map with a function; nothing is fetched. GGUF_E_NOMEM. */
enum gguf_status gg_resident_init(struct gg_resident *w,
                                  const struct gg_mapfile *map,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
/* Fine on a zeroed struct. Before the map is closed. */
void gg_resident_fini(struct gg_resident *w);

/* Bytes up to upto are in memory already, and stay until gg_resident_fini, as
 * blocks that somebody holds. Before anything is held. */
void gg_resident_pin(struct gg_resident *w, uint64_t upto);

/* Have bytes off .. off + size, which the map has, in memory until as many are
 * released: from any thread, as often as wanted. What gg_mapfile_fetch
 * returns; nothing is held then. */
enum gguf_status gg_resident_hold(struct gg_resident *w, uint64_t off,
                                  uint64_t size, struct gguf_error *err);
void gg_resident_release(struct gg_resident *w, uint64_t off, uint64_t size);

#endif
