/* arch.h - architectures as data
 *
 * Tensor names are the same in all of them, so most of a transformer is read
 * off the tensors that are there (block.c). What their presence does not tell
 * is a row of the table in arch.c: how to compute it, and which parts it
 * consists of, so that a file's tensors can be checked against it. More are
 * known than can be evaluated.
 */
#ifndef GG_MODEL_ARCH_H
#define GG_MODEL_ARCH_H

#include "gguf/memory.h"
#include "gguf/op.h"

#include <stdbool.h>

/* What models are made of; a row of shape.c says which tensors a part has. */
enum gg_part {
    GG_PART_TOP = 1 << 0,        /* embeddings and the last norm: all models */
    GG_PART_NORM = 1 << 1,       /* in front of attention */
    GG_PART_NORM_FFN = 1 << 2,   /* in front of the feed-forward part */
    GG_PART_NORM_BIAS = 1 << 3,  /* norms, the last too, have biases */
    GG_PART_NORM_POST = 1 << 4,  /* behind attention */
    GG_PART_NORM_POST_FFN = 1 << 5,
    GG_PART_NORM_MORE = 1 << 6,  /* norms that some models have */
    GG_PART_QKV = 1 << 7,        /* three matrices, or one */
    GG_PART_QKV_ONE = 1 << 8,    /* one matrix, or three */
    GG_PART_BIAS = 1 << 9,       /* of attention and feed-forward part */
    GG_PART_BIAS_MAYBE = 1 << 10, /* likewise, in some models */
    GG_PART_HEAD_NORM = 1 << 11, /* of each head of queries and keys */
    GG_PART_HEAD_NORM_MAYBE = 1 << 12,
    GG_PART_HEADS_NORM = 1 << 13, /* one per head: all heads side by side */
    GG_PART_WIDE_NORM = 1 << 14, /* of queries, and of keys, of all heads */
    GG_PART_SINKS = 1 << 15,
    GG_PART_MLA = 1 << 16,       /* latent attention */
    GG_PART_MLA_Q = 1 << 17,     /* its queries too: a key says so */
    GG_PART_FFN = 1 << 18,       /* down, and of the next three one or two */
    GG_PART_FFN_UP = 1 << 19,
    GG_PART_FFN_GATE = 1 << 20,
    GG_PART_FFN_FUSED = 1 << 21, /* gate and up are one matrix */
    GG_PART_MOE = 1 << 22,       /* experts, if a key says so */
    GG_PART_MOE_BIAS = 1 << 23,
    GG_PART_SHARED = 1 << 24,    /* experts that every token has */
    GG_PART_SHARED_GATE = 1 << 25,
    GG_PART_POSITION = 1 << 26,  /* embeddings of positions */
    GG_PART_EMBD_NORM = 1 << 27
};

struct gg_arch {
    const char *name; /* general.architecture, and prefix of its keys */
    bool runs;        /* it can be evaluated */
    enum gguf_rope_kind rope; /* which elements of a head rotate together, if
                               * it runs */
    bool layer_norm;  /* norms take the mean away, too */
    uint32_t parts;   /* enum gg_part */
};

/* By general.architecture, or NULL. */
const struct gg_arch *gg_arch_find(struct gguf_str name);

#endif
