/* SPDX-License-Identifier: MIT */
/* cache_types.h - types of keys and values that are kept */
#ifndef GG_RUN_CACHE_TYPES_H
#define GG_RUN_CACHE_TYPES_H

#include "base/error.h"
#include "model/build.h"

/* Of keys, what an indexer reads included, and of values that have rows of
 * their own. */
struct gg_cache_types {
    uint32_t k, v;
};

/* May tokens of the model be kept as these types? GGUF_E_INVALID: a type that
 * nothing is kept as. GGUF_E_UNSUPPORTED: a layer's rows are read in parts that
 * are not whole blocks of the type; names the key that says how long they
 * are. */
enum gguf_status gg_cache_types_check(const struct gg_cache_types *t,
                                      const struct gguf_model *m,
                                      struct gguf_error *err);

#endif
