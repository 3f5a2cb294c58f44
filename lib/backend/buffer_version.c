/* SPDX-License-Identifier: MIT */
/* buffer_version.c - whether bytes of weights are still those that they were */
#include "config.h"
#include "backend/buffer_version.h"
#include "backend/backend_int.h"

#include <stdatomic.h>

struct gg_buffer_version {
    const struct gguf_allocator *allocator;
    _Atomic unsigned n_holders; /* the buffer is one */
    _Atomic uint64_t n_changes;
};

/* A new one, which the buffer holds. */
static struct gg_buffer_version *create_version(struct gguf_buffer *b)
{
    struct gg_buffer_version *age = gg_mem_alloc(b->allocator, sizeof *age);
    struct gg_buffer_version *other = NULL;
    if (!age)
        return NULL;
    age->allocator = b->allocator;
    atomic_init(&age->n_holders, 1);
    atomic_init(&age->n_changes, 0);
    /* another thread may do the same: the first one counts */
    if (atomic_compare_exchange_strong_explicit(
            &b->age, &other, age, memory_order_acq_rel, memory_order_acquire))
        return age;
    gg_mem_free(b->allocator, age);
    return other;
}

/* Pairs with begin. */
static struct gg_buffer_version *load_version(const struct gguf_buffer *b)
{
    return atomic_load_explicit(&b->age, memory_order_acquire);
}

struct gg_buffer_version *gg_buffer_version_ref(struct gguf_buffer *b)
{
    if (!b || b->usage != GGUF_USAGE_WEIGHTS)
        return NULL;
    struct gg_buffer_version *age = load_version(b);
    if (!age)
        age = create_version(b);
    if (age) /* the buffer holds it, and the caller has the buffer */
        atomic_fetch_add_explicit(&age->n_holders, 1, memory_order_relaxed);
    return age;
}

bool gg_buffer_version_is_of(const struct gg_buffer_version *age,
                             const struct gguf_buffer *b)
{
    return b && load_version(b) == age;
}

void gg_buffer_version_unref(struct gg_buffer_version *age)
{
    /* changes by other threads come before it is freed */
    if (age && atomic_fetch_sub_explicit(&age->n_holders, 1,
                                         memory_order_acq_rel) == 1)
        gg_mem_free(age->allocator, age);
}

uint64_t gg_buffer_version_n_changes(const struct gg_buffer_version *age)
{
    /* pairs with gg_buffer_version_change */
    return atomic_load_explicit(&age->n_changes, memory_order_acquire);
}

void gg_buffer_version_change(struct gguf_buffer *b)
{
    struct gg_buffer_version *age = b ? load_version(b) : NULL;
    if (age) /* pairs with gg_buffer_version_n_changes */
        atomic_fetch_add_explicit(&age->n_changes, 1, memory_order_release);
}

void gg_buffer_version_end(struct gguf_buffer *b)
{
    gg_buffer_version_change(b);
    gg_buffer_version_unref(load_version(b));
}
