/* SPDX-License-Identifier: MIT */
/* cache_types.c - types of cached keys and values */
#include "config.h"
#include "run/cache_types.h"

#include "base/compiler.h"
#include "gguf/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Types that encode each row by itself with a small enough error. */
static const uint32_t types[] = {
    GGUF_DTYPE_F32,  GGUF_DTYPE_F16,  GGUF_DTYPE_BF16,
    GGUF_DTYPE_Q8_0, GGUF_DTYPE_Q4_0, GGUF_DTYPE_Q4_1,
    GGUF_DTYPE_Q5_0, GGUF_DTYPE_Q5_1, GGUF_DTYPE_IQ4_NL,
};

static enum gguf_status check_type(const char *what, uint32_t type,
                                   struct gguf_error *err)
{
    char list[128] = "";
    size_t at = 0;
    for (size_t i = 0; i < GG_LEN(types); i++) {
        if (types[i] == type)
            return GGUF_OK;
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
                               i ? ", " : "", gguf_dtype_find(types[i])->name);
    }
    const struct gguf_dtype_info *info = gguf_dtype_find(type);
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "%s of type %s (%" PRIu32 "), must be one of %s", what,
                        info ? info->name : "unknown", type, list);
}

static enum gguf_status check_part(const struct gguf_model *m, uint32_t il,
                                   const struct gg_model_key_part *part,
                                   const char *what, uint32_t type,
                                   struct gguf_error *err)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(type);
    if (part->n % info->block_len == 0)
        return GGUF_OK;
    char key[128];
    gg_model_key(m, gguf_hparam_at((size_t)part->key - 1)->key, key,
                 sizeof key);
    const struct gguf_kv *kv = gguf_file_kv_find(m->src.file, key);
    return gg_error_set(err, GGUF_E_UNSUPPORTED, kv ? kv->off : GGUF_NO_OFFSET,
                        "%s: %s of layer %" PRIu32 " have %" PRId64
                        " elements in a row, not "
                        "a multiple of the %" PRIu32 " in a block of %s",
                        key, what, il, part->n, info->block_len, info->name);
}

enum gguf_status gg_cache_types_check(const struct gg_cache_types *t,
                                      const struct gguf_model *m,
                                      struct gguf_error *err)
{
    GG_TRY(check_type("keys", t->k, err));
    GG_TRY(check_type("values", t->v, err));
    if (gg_model_needs_whole_sequence(m))
        return GGUF_OK; /* an encoder keeps no keys */
    for (uint32_t il = 0; il < m->hp.n_layer_all; il++) {
        struct gg_model_key_sizes n = { 0 };
        if (!(gg_model_layer_memory_kinds(m, il) &
              (unsigned)(GG_MODEL_MEMORY_KV | GG_MODEL_MEMORY_CROSS)))
            continue;
        gg_model_layer_key_sizes(m, il, &n);
        for (unsigned i = 0; i < GG_N_KEY_PARTS; i++) {
            const bool of_v = i == GG_KEY_PART_V;
            GG_TRY(check_part(m, il, &n.part[i], of_v ? "values" : "keys",
                              of_v ? t->v : t->k, err));
        }
    }
    return GGUF_OK;
}
