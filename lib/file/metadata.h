/* SPDX-License-Identifier: MIT */
/* metadata.h - members of struct gguf_meta */
#ifndef GG_FILE_METADATA_H
#define GG_FILE_METADATA_H

#include "base/index.h"
#include "gguf/meta.h"

struct gguf_meta {
    const struct gguf_allocator *allocator; /* allocator of the list */
    struct gguf_kv *kv;    /* pairs; each owns the block at its key */
    size_t n, room;        /* number of pairs; pairs that kv has room for */
    struct gg_index index; /* pairs by key */
};

#endif
