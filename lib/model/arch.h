/* arch.h - architectures as data
 *
 * Tensor names are the same in all of them, so most of a transformer is read
 * off the tensors that are there (block.c). What their presence does not tell
 * is a row of the table in arch.c.
 */
#ifndef GG_MODEL_ARCH_H
#define GG_MODEL_ARCH_H

#include "gguf/memory.h"
#include "gguf/op.h"

struct gg_arch {
    const char *name;         /* general.architecture, and prefix of its keys */
    enum gguf_rope_kind rope; /* which elements of a head rotate together */
};

/* By general.architecture, or NULL. */
const struct gg_arch *gg_arch_find(struct gguf_str name);

#endif
