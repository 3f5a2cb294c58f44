/* SPDX-License-Identifier: MIT */
/* pin.c - tensors that the program has pinned to a backend
 *
 * A hash table by address, since every tensor of every graph is looked up. The
 * entry of a pinned tensor repeats a mark that the tensor has: a tensor that
 * is made at its address later has no mark, and is not taken for the pinned
 * one. If that tensor is pinned, too, it takes over the entry: the table never
 * has more entries than addresses, however often graphs are rebuilt. */
#include "config.h"
#include "sched/sched_int.h"

#include <xxhash.h>

enum { FIRST_SLOTS = 64 }; /* a power of two */

/* The entry of an address, or the empty one where it belongs. */
static struct gg_pin *find_slot(struct gg_pin *pins, size_t n_slots,
                                const struct gguf_tensor *t)
{
    size_t i = (size_t)XXH3_64bits(&t, sizeof t) & (n_slots - 1);
    while (pins[i].t && pins[i].t != t)
        i = (i + 1) & (n_slots - 1);
    return &pins[i];
}

int gg_sched_find_pin(const struct gguf_sched *s, const struct gguf_tensor *t)
{
    const uint64_t mark = gg_tensor_storage(t)->pin;
    if (!mark || !s->n_pins)
        return GG_SCHED_NONE;
    const struct gg_pin *p = find_slot(s->pins, s->n_pin_slots, t);
    return p->t && p->mark == mark ? p->backend : GG_SCHED_NONE;
}

void gg_sched_clear_pins(struct gguf_sched *s)
{
    gg_mem_free(s->allocator, s->pins);
    s->pins = NULL;
    s->n_pins = s->n_pin_slots = 0;
}

/* Half of the slots stay empty. */
static enum gguf_status make_room(struct gguf_sched *s, struct gguf_error *err)
{
    if (2 * (s->n_pins + 1) <= s->n_pin_slots)
        return GGUF_OK;
    const size_t n = GG_MAX(2 * s->n_pin_slots, (size_t)FIRST_SLOTS);
    struct gg_pin *pins = gg_mem_alloc_zero(s->allocator, n, sizeof *pins);
    if (!pins)
        return gg_error_set_nomem(err, n * sizeof *pins);
    for (size_t i = 0; i < s->n_pin_slots; i++)
        if (s->pins[i].t)
            *find_slot(pins, n, s->pins[i].t) = s->pins[i];
    gg_mem_free(s->allocator, s->pins);
    s->pins = pins;
    s->n_pin_slots = n;
    return GGUF_OK;
}

/* A mark that includes the scheduler's address, so that marks of other
 * schedulers, whose tensors may come to lie at the same place, differ. Not
 * 0. */
static uint64_t new_mark(struct gguf_sched *s)
{
    const uint64_t v[2] = { (uintptr_t)s, ++s->n_marks };
    return XXH3_64bits(v, sizeof v) | 1;
}

enum gguf_status gguf_sched_pin(struct gguf_sched *s, struct gguf_tensor *t,
                                unsigned i, struct gguf_error *err)
{
    if (i >= (unsigned)s->n_backends)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "backend %u of %d", i, s->n_backends);
    GG_TRY(make_room(s, err));
    struct gg_pin *p = find_slot(s->pins, s->n_pin_slots, t);
    s->n_pins += !p->t;
    uint64_t *mark = &gg_tensor_storage(t)->pin;
    if (!*mark)
        *mark = new_mark(s);
    *p = (struct gg_pin){ t, *mark, (int)i };
    return GGUF_OK;
}
