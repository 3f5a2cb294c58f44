/* SPDX-License-Identifier: MIT */
/* layer_split.c - choose the backend of each layer
 *
 * If there is room for all weights, each goes to the first backend that can
 * compute with it. Else layers are divided in order over the devices, in
 * proportion to their free memory. If that overfills a device, each device is
 * filled before the next one. Layers that are left over stay in host memory.
 */
#include "config.h"
#include "run/weight_place.h"

#include "backend/backend_int.h"
#include "base/ckd.h"
#include "base/mem.h"
#include "base/str.h"
#include "file/name.h"
#include "model/weight/weight_move.h"

#include <inttypes.h>
#include <string.h>

enum { NO_LAYER = UINT32_MAX };

/* ---- layers ---- */

/* Layer in a name; -1: none. *decodes: it is a layer of a decoder behind an
 * encoder. */
static int64_t layer_in_name(const char *name, bool *decodes)
{
    struct gguf_str s = gg_str_z(name);
    int64_t n = gguf_layer_from_name(s, NULL);
    *decodes = false;
    if (n < 0)
        n = gg_name_cut_index(&s, "enc.blk.");
    if (n < 0) {
        n = gg_name_cut_index(&s, "dec.blk.");
        *decodes = n >= 0;
    }
    return n;
}

/* First node of each layer, and last node of all layers. */
struct range {
    uint64_t *first; /* [n] */
    uint64_t last;
    uint32_t n;
};

/* Layer of a node that no name assigns: the layer during which it runs; the
 * first one if it runs before all layers, n if it runs after them. */
static uint32_t layer_at(const struct range *r, uint64_t node)
{
    uint32_t il = 0;
    if (!r->n || node > r->last)
        return r->n;
    for (uint32_t k = 1; k < r->n; k++)
        if (r->first[k] <= node)
            il = k;
    return il;
}

static enum gguf_status number_layers(struct gg_weight_place *v,
                                      struct gguf_error *err)
{
    struct range r = { .n = 0 };
    uint32_t n_first = 0, n_decoder = 0; /* layers before those of a decoder */
    bool decodes;
    for (size_t k = 0; k < v->n_uses; k++) {
        const int64_t n = layer_in_name(v->use[k].t->name, &decodes);
        uint32_t *most = decodes ? &n_decoder : &n_first;
        if (!v->use[k].kept && v->use[k].read && n >= *most)
            *most = (uint32_t)n + 1;
    }
    r.n = n_first + n_decoder;
    r.first =
        gg_mem_alloc_zero(v->m->allocator, (size_t)r.n + 1, sizeof *r.first);
    if (!r.first)
        return gg_error_set_nomem(err, ((size_t)r.n + 1) * sizeof *r.first);
    for (uint32_t k = 0; k < r.n; k++)
        r.first[k] = UINT64_MAX;
    for (size_t k = 0; k < v->n_uses; k++) {
        struct gg_weight_place_use *u = &v->use[k];
        const int64_t n = layer_in_name(u->t->name, &decodes);
        u->layer = NO_LAYER;
        if (u->kept || !u->read || n < 0)
            continue;
        u->layer = (uint32_t)n + (decodes ? n_first : 0);
        r.first[u->layer] = GG_MIN(r.first[u->layer], u->first);
        r.last = GG_MAX(r.last, u->last);
    }
    for (size_t k = 0; k < v->n_uses; k++)
        if (v->use[k].layer == NO_LAYER)
            v->use[k].layer = layer_at(&r, v->use[k].first);
    v->n_layers = r.n + 1;
    gg_mem_free(v->m->allocator, r.first);
    return GGUF_OK;
}

/* ---- devices ---- */

bool gg_weight_place_has_own_memory(const struct gg_weight_place *v,
                                    unsigned b)
{
    return !gguf_backend_supports_buft(v->backend[b], gguf_host_buft());
}

unsigned gg_weight_place_backend_of(const struct gg_weight_place *v,
                                    const struct gg_weight_place_use *u)
{
    const struct gguf_buft *buft =
        u->t->buffer ? gguf_buffer_buft(u->t->buffer) : gguf_host_buft();
    unsigned first = v->n_backends;
    for (unsigned b = v->n_backends; b-- > 0;) {
        if (!gg_weight_place_has_own_memory(v, b))
            continue;
        if (gguf_backend_buft(v->backend[b]) == buft)
            return b;
        if (gguf_backend_supports_buft(v->backend[b], buft))
            first = b;
    }
    return first;
}

/* Free bytes of backend b's device for weights and memory; UINT64_MAX:
 * unknown. */
static uint64_t free_size(const struct gg_weight_place *v, unsigned b)
{
    uint64_t n_free, n_total;
    gguf_device_memory(gguf_backend_device(v->backend[b]), &n_free, &n_total);
    if (!n_total && !n_free)
        return UINT64_MAX;
    return n_free > v->n_graph ? n_free - v->n_graph : 0;
}

/* Bytes that a use adds to backend b's memory. */
static uint64_t added_size(const struct gg_weight_place *v,
                           const struct gg_weight_place_use *u, unsigned b)
{
    const size_t align = gguf_buft_alignment(gguf_backend_buft(v->backend[b]));
    if (!u->read || !(u->can >> b & 1) ||
        (!u->kept && gg_weight_place_backend_of(v, u) == b))
        return 0;
    if (!u->kept && gg_weight_is_mapped(v->m, u->i) &&
        gguf_device_caps(gguf_backend_device(v->backend[b])) &
            GGUF_DEVICE_CAP_HOST_PTR)
        return 0; /* the device uses the mapping of the file */
    return (u->size + align - 1) / align * align;
}

/* Division of the layers over the devices, backends 0 to n - 1. */
struct division {
    uint64_t *size; /* [n_layers][n], bytes of a layer on each device */
    uint64_t room[GGUF_SCHED_MAX_BACKENDS];
    unsigned n;
};

static enum gguf_status measure_layers(const struct gg_weight_place *v,
                                       struct division *d,
                                       struct gguf_error *err)
{
    d->n = v->n_backends - 1;
    d->size = gg_mem_alloc_zero(
        v->m->allocator, (size_t)v->n_layers * d->n + 1, sizeof *d->size);
    if (!d->size)
        return gg_error_set_nomem(err, (size_t)v->n_layers * d->n *
                                           sizeof *d->size);
    for (unsigned b = 0; b < d->n; b++) {
        d->room[b] =
            gg_weight_place_has_own_memory(v, b) ? free_size(v, b) : 0;
        for (size_t k = 0; k < v->n_uses; k++)
            d->size[(size_t)v->use[k].layer * d->n + b] +=
                added_size(v, &v->use[k], b);
    }
    return GGUF_OK;
}

/* Is there room if each weight goes to the first backend that can compute with
 * it? */
static bool fits_devices(const struct gg_weight_place *v,
                         const struct division *d)
{
    uint64_t used[GGUF_SCHED_MAX_BACKENDS] = { 0 };
    for (size_t k = 0; k < v->n_uses; k++)
        for (unsigned b = 0; b < d->n; b++)
            if (v->use[k].can >> b & 1) {
                used[b] += added_size(v, &v->use[k], b);
                break;
            }
    for (unsigned b = 0; b < d->n; b++)
        if (gg_weight_place_has_own_memory(v, b) && used[b] > d->room[b])
            return false;
    return true;
}

/* Bytes of a layer on the device where it takes the most. */
static uint64_t layer_size(const struct division *d, uint32_t il)
{
    uint64_t most = 0;
    for (unsigned b = 0; b < d->n; b++)
        most = GG_MAX(most, d->size[(size_t)il * d->n + b]);
    return most;
}

/* Give each layer the first device that has room for it, from the device of
 * the layer before on. With shared, a device also gets no more than its share
 * of all bytes, in proportion to its room. Returns false if layers are left
 * over. */
static bool divide_layers(struct gg_weight_place *v, const struct division *d,
                          bool shared)
{
    double total = 0, sum = 0, before = 0;
    /* room of all devices up to each one, as a fraction */
    double share[GGUF_SCHED_MAX_BACKENDS];
    uint64_t used = 0;
    unsigned b = 0;
    for (uint32_t il = 0; il < v->n_layers; il++)
        total += (double)layer_size(d, il);
    for (unsigned k = 0; k < d->n; k++)
        share[k] = sum += (double)d->room[k];
    for (uint32_t il = 0; il < v->n_layers; il++) {
        const uint64_t *size = &d->size[(size_t)il * d->n];
        const double all = (double)layer_size(d, il);
        while (b < d->n &&
               (size[b] > d->room[b] - used || !d->room[b] ||
                (shared && (before + all / 2) * sum > share[b] * total))) {
            b++;
            used = 0;
        }
        used += b < d->n ? size[b] : 0;
        before += all;
        v->backend_of[il] = (uint8_t)b;
    }
    return b < d->n;
}

/* For layers that are not divided, or that lie on devices already: set the
 * backend of each to that of its largest weight. */
static void find_layers(struct gg_weight_place *v)
{
    for (uint32_t il = 0; il < v->n_layers; il++) {
        const struct gg_weight_place_use *most = NULL;
        for (size_t k = 0; k < v->n_uses; k++) {
            const struct gg_weight_place_use *u = &v->use[k];
            if (u->layer == il && !u->kept && u->read &&
                (!most || u->size > most->size))
                most = u;
        }
        if (!most)
            continue;
        unsigned b = gg_weight_place_backend_of(v, most);
        if (b == v->n_backends && !v->split)
            for (b = 0; b < v->n_backends && !(most->can >> b & 1);)
                b++;
        if (b < v->n_backends)
            v->backend_of[il] = (uint8_t)b;
    }
}

static enum gguf_status take_split(struct gg_weight_place *v,
                                   const uint32_t *split, size_t n_split,
                                   struct gguf_error *err)
{
    uint32_t il = 0;
    if (n_split + 1 != v->n_backends)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%zu split points for %u preferred backends",
                            n_split, v->n_backends - 1);
    for (size_t b = 0; b < n_split; b++) {
        if (b && split[b] < split[b - 1])
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "split point %zu is %" PRIu32
                                ", less than the one before, %" PRIu32,
                                b, split[b], split[b - 1]);
        for (; il < v->n_layers && il < split[b]; il++)
            v->backend_of[il] = (uint8_t)b;
    }
    v->split = true;
    return GGUF_OK;
}

enum gguf_status gg_weight_place_layers(struct gg_weight_place *v,
                                        const uint32_t *split, size_t n_split,
                                        struct gguf_error *err)
{
    struct division d = { .n = 0 };
    GG_TRY(number_layers(v, err));
    v->backend_of = gg_mem_alloc_zero(v->m->allocator, v->n_layers, 1);
    if (!v->backend_of)
        return gg_error_set_nomem(err, v->n_layers);
    memset(v->backend_of, (int)v->n_backends - 1, v->n_layers);
    if (split)
        return take_split(v, split, n_split, err);
    GG_TRY(measure_layers(v, &d, err));
    v->split = !fits_devices(v, &d);
    if (v->split && !divide_layers(v, &d, true))
        (void)divide_layers(v, &d, false);
    gg_mem_free(v->m->allocator, d.size);
    find_layers(v);
    return GGUF_OK;
}
