/* SPDX-License-Identifier: MIT */
/* unread_keys.h - keys of a file that an architecture's models do not read
 *
 * A model may be evaluated as one of another architecture (gguf_model_params,
 * member as). Some keys begin with its own architecture's name, but the other
 * architecture does not read them. If a third architecture reads such a key,
 * it changes results there, so it prevents the evaluation. If no architecture
 * reads it, its effect is unknown, and there is a warning. */
#ifndef GG_MODEL_UNREAD_KEYS_H
#define GG_MODEL_UNREAD_KEYS_H

#include "model/model_int.h"

/* Bytes of general.architecture in a model that is evaluated as one of another
 * architecture. */
enum { GG_ARCH_PREFIX_MAX = 64 };

/* Check that a name can begin keys in messages. GGUF_E_UNSUPPORTED: it is too
 * long, or has bytes that are not letters, digits, '-', '_' and '.'. */
enum gguf_status gg_unread_keys_check_prefix(struct gguf_str name,
                                             uint64_t off,
                                             struct gguf_error *err);

/* Find the next key of meta that begins with prefix and a dot, and that models
 * of the architecture do not read.
 *
 * i        In: number of the first key to look at. Out: that of the next call.
 * known    Receives whether other architectures read the key.
 *
 * Returns NULL after the last. */
const struct gguf_kv *gg_unread_keys_next(const struct gguf_file *meta,
                                          const struct gg_arch *arch,
                                          struct gguf_str prefix, size_t *i,
                                          bool *known);

/* Refuse the first known key that the model does not read, and warn of the
 * others. GGUF_E_UNSUPPORTED. */
enum gguf_status gg_unread_keys_check(const struct gguf_model *m,
                                      struct gguf_error *err);

#endif
