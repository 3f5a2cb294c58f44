/* SPDX-License-Identifier: MIT */
/* sched_profile.c - setting the callback that receives times */
#include "config.h"
#include "sched/sched_int.h"

/* The driver's function, or NULL. */
static gguf_backend_set_profile_fn *find_setter(struct gguf_backend *b)
{
    const struct gguf_driver *d = gguf_device_driver(gguf_backend_device(b));
    return d ? (gguf_backend_set_profile_fn *)gguf_driver_find_function(
                   d, "set_profile")
             : NULL;
}

enum gguf_status gguf_sched_set_profile(struct gguf_sched *s,
                                        struct gguf_profile_callback profile,
                                        struct gguf_error *err)
{
    const enum gguf_status st = gguf_sched_sync(s, err);
    s->profile = profile;
    s->measures = 0;
    for (int b = 0; b < s->n_backends; b++) {
        gguf_backend_set_profile_fn *set = find_setter(s->backends[b]);
        if (!set)
            continue;
        set(s->backends[b], profile);
        s->measures |= (uint16_t)(1u << b);
    }
    return st;
}
