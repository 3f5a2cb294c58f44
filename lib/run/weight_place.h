/* SPDX-License-Identifier: MIT */
/* weight_place.h - what is placed on backends, and which backend each layer
 * gets
 *
 * Layers are numbered from 0 on; one more number stands for what follows the
 * last layer (output norm and matrix). What precedes the first layer counts as
 * part of it.
 */
#ifndef GG_RUN_WEIGHT_PLACE_H
#define GG_RUN_WEIGHT_PLACE_H

#include "gguf/load.h"
#include "model/model_int.h"

/* A weight, or a tensor of a session's memory, which layers read. */
struct gg_weight_place_use {
    const struct gguf_tensor *t; /* only its address is used if kept */
    size_t i;                    /* index of the weight in all files */
    uint64_t size;               /* bytes */
    uint64_t first, last; /* first node that reads it, and the last one of the
                           * same graph */
    uint32_t can;         /* a bit for each backend that runs all readers */
    uint32_t layer;
    bool read; /* a node reads it */
    bool kept; /* it is part of a session's memory */
};

struct gg_weight_place {
    struct gguf_model *m;
    /* The session's backends; the last one works in host memory. */
    struct gguf_backend *backend[GGUF_SCHED_MAX_BACKENDS];
    unsigned n_backends;
    struct gg_weight_place_use *use; /* sorted by address */
    size_t n_uses;
    uint64_t n_graph;    /* bytes of the session's graphs */
    uint32_t n_layers;   /* layers, and one for the output */
    uint8_t *backend_of; /* [n_layers] number of a layer's backend */
    bool split; /* layers are divided: each weight lies with its layer */
};

/* layer_split.c: number the layers that uses belong to, and choose a backend
 * for each: as split says, n_split numbers as in gguf_place_params; or, with
 * split NULL, by the free memory of devices. GGUF_E_INVALID, GGUF_E_NOMEM. */
enum gguf_status gg_weight_place_layers(struct gg_weight_place *v,
                                        const uint32_t *split, size_t n_split,
                                        struct gguf_error *err);

/* Does backend b compute in memory that weights are copied to? */
bool gg_weight_place_has_own_memory(const struct gg_weight_place *v,
                                    unsigned b);

/* Backend in whose memory a weight lies already; n_backends: none. */
unsigned gg_weight_place_backend_of(const struct gg_weight_place *v,
                                    const struct gg_weight_place_use *u);

#endif
