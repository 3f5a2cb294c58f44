/* SPDX-License-Identifier: MIT */
/* parallel_pass.h - one thing done to all bytes of many items, on a pool
 *
 * Items are cut into pieces of about a size, which threads take in order. What
 * comes of it does not depend on their number: of several failures that of the
 * first piece counts.
 */
#ifndef GG_MODEL_WEIGHT_PARALLEL_PASS_H
#define GG_MODEL_WEIGHT_PARALLEL_PASS_H

#include "base/error.h"
#include "gguf/model_base.h"

struct gg_parallel_pass_item {
    uint64_t size; /* bytes */
    uint64_t step; /* pieces are multiples of so many; not 0 */
};

/* Bytes off .. off + size of an item, on thread ith. */
typedef enum gguf_status gg_parallel_pass_fn(void *user, unsigned ith,
                                             size_t item, uint64_t off,
                                             uint64_t size,
                                             struct gguf_error *err);

struct gg_parallel_pass {
    const struct gguf_allocator *allocator;
    const struct gguf_model_job *job; /* pool, progress in bytes */
    uint64_t piece;                   /* bytes of a piece, about */
    gg_parallel_pass_fn *fn;
    void *user;
};

/* Take over a caller's job, which may be NULL. GGUF_E_INVALID. */
enum gguf_status gg_parallel_pass_take_job(struct gguf_model_job *own,
                                           const struct gguf_model_job *given,
                                           struct gguf_error *err);

/* What fn returns, GGUF_E_CANCELLED, GGUF_E_NOMEM. */
enum gguf_status
gg_parallel_pass_run(const struct gg_parallel_pass *w,
                     const struct gg_parallel_pass_item *items, size_t n,
                     struct gguf_error *err);

#endif
