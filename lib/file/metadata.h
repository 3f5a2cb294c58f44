/* SPDX-License-Identifier: MIT */
/* metadata.h - what a metadata list is made of */
#ifndef GG_FILE_METADATA_H
#define GG_FILE_METADATA_H

#include "base/index.h"
#include "gguf/meta.h"

struct gguf_meta {
    const struct gguf_allocator *allocator;
    struct gguf_kv *kv; /* each owns the block that its key begins */
    size_t n, room;
    struct gg_index index;
};

#endif
