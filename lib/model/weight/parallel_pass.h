/* SPDX-License-Identifier: MIT */
/* parallel_pass.h - apply a function to all bytes of many items on a thread
 * pool
 *
 * Items are cut into pieces of similar size, which threads take in order. The
 * result does not depend on the number of threads: if several pieces fail, the
 * failure of the first one is returned.
 */
#ifndef GG_MODEL_WEIGHT_PARALLEL_PASS_H
#define GG_MODEL_WEIGHT_PARALLEL_PASS_H

#include "base/error.h"
#include "gguf/model_base.h"

struct gg_parallel_pass_item {
    uint64_t size; /* bytes */
    uint64_t step; /* the size of a piece is a multiple of this; not 0 */
};

/* Processes bytes off .. off + size of an item on thread ith. */
typedef enum gguf_status gg_parallel_pass_fn(void *user, unsigned ith,
                                             size_t item, uint64_t off,
                                             uint64_t size,
                                             struct gguf_error *err);

struct gg_parallel_pass {
    const struct gguf_allocator *allocator;
    const struct gguf_model_job *job; /* pool, progress in bytes */
    uint64_t piece;                   /* approximate bytes of a piece */
    gg_parallel_pass_fn *fn;
    void *user;
};

/* Copy a caller's job into own; given NULL: defaults. GGUF_E_INVALID. */
enum gguf_status gg_parallel_pass_take_job(struct gguf_model_job *own,
                                           const struct gguf_model_job *given,
                                           struct gguf_error *err);

/* Process all items. Returns GGUF_E_CANCELLED, GGUF_E_NOMEM or the status of
 * fn. */
enum gguf_status
gg_parallel_pass_run(const struct gg_parallel_pass *w,
                     const struct gg_parallel_pass_item *items, size_t n,
                     struct gguf_error *err);

#endif
