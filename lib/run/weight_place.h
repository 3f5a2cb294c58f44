/* SPDX-License-Identifier: MIT */
/* weight_place.h - which backend each weight and each layer is placed on
 *
 * Layers are numbered from 0. One more number stands for the output norm and
 * matrix. Nodes before the first layer belong to it. */
#ifndef GG_RUN_WEIGHT_PLACE_H
#define GG_RUN_WEIGHT_PLACE_H

#include "gguf/load.h"
#include "model/model_int.h"

/* A weight, or a tensor of a session's memory, that layers read. */
struct gg_weight_place_use {
    /* only its address is used for kept tensors */
    const struct gguf_tensor *t;
    size_t i;      /* index of the weight in all files */
    uint64_t size; /* size in bytes */
    /* first node that reads it, and last one of the same graph */
    uint64_t first, last;
    /* a bit for each backend that supports all nodes that read it */
    uint32_t can;
    uint32_t layer;
    bool read; /* some node reads it */
    bool kept; /* a tensor of a session's memory */
};

struct gg_weight_place {
    struct gguf_model *m;
    /* Backends of the session; the last one works in host memory. */
    struct gguf_backend *backend[GGUF_SCHED_MAX_BACKENDS];
    unsigned n_backends;
    struct gg_weight_place_use *use; /* sorted by address */
    size_t n_uses;
    uint64_t n_graph;    /* bytes of the session's graphs */
    uint32_t n_layers;   /* layers, and one for the output */
    uint8_t *backend_of; /* [n_layers], number of each layer's backend */
    bool split; /* layers are divided: each weight lies with its layer */
};

/* layer_split.c: number the layers of all uses, and choose a backend for each:
 * by the n_split split points of struct gguf_place_params or, if split is
 * NULL, by the free memory of devices. GGUF_E_INVALID, GGUF_E_NOMEM. */
enum gguf_status gg_weight_place_layers(struct gg_weight_place *v,
                                        const uint32_t *split, size_t n_split,
                                        struct gguf_error *err);

/* Does backend b compute in memory to which weights have to be copied? */
bool gg_weight_place_has_own_memory(const struct gg_weight_place *v,
                                    unsigned b);

/* Backend in whose memory a weight lies already; n_backends: none. */
unsigned gg_weight_place_backend_of(const struct gg_weight_place *v,
                                    const struct gg_weight_place_use *u);

#endif
