/* SPDX-License-Identifier: MIT */
/* cache_types.h - types of cached keys and values */
#ifndef GG_RUN_CACHE_TYPES_H
#define GG_RUN_CACHE_TYPES_H

#include "base/error.h"
#include "model/build.h"

/* Types of keys, also those of an indexer, and of values with rows of their
 * own. */
struct gg_cache_types {
    uint32_t k, v;
};

/* Check that a model's tokens can be kept in these types. GGUF_E_INVALID:
 * nothing is kept in such a type. GGUF_E_UNSUPPORTED: parts of a layer's rows
 * are not whole blocks of the type; the message has the key with their length.
 */
enum gguf_status gg_cache_types_check(const struct gg_cache_types *t,
                                      const struct gguf_model *m,
                                      struct gguf_error *err);

#endif
