/* SPDX-License-Identifier: MIT */
/* model_digest.c - digest of everything in a model that determines results, so
 * that results of one model are not continued with another
 *
 * The digest covers hyperparameters, the number of tokens, and the name, type
 * and shape of each weight, but not the weights' values, which take long to
 * read. Hashes are summed, so that the order in files does not matter.
 */
#include "config.h"
#include "model/model_int.h"

#include "base/bytes.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static uint64_t add_u64(uint64_t h, uint64_t v)
{
    uint8_t le[8];
    gg_bytes_store64le(le, v);
    return XXH3_64bits_withSeed(le, sizeof le, h);
}

static uint64_t add_str(uint64_t h, struct gguf_str s)
{
    return XXH3_64bits_withSeed(s.data, s.size, add_u64(h, s.size));
}

/* A scalar in little-endian order, or a string. */
static uint64_t add_scalar(uint64_t h, const struct gguf_kv *kv)
{
    struct gguf_str s;
    uint8_t le[8] = { 0 };
    const size_t n = gguf_val_type_size(kv->type);
    if (kv->type == GGUF_VAL_STR)
        return gguf_kv_get_str(kv, &s, NULL) == GGUF_OK ? add_str(h, s) : h;
    for (size_t i = 0; i < n && i < sizeof le; i++)
        le[i] = ((const uint8_t *)kv->data)[kv->big_endian ? n - 1 - i : i];
    return XXH3_64bits_withSeed(le, sizeof le, h);
}

static uint64_t add_pair(const struct gguf_kv *kv)
{
    struct gguf_kv_iter it;
    struct gguf_kv elem;
    uint64_t h = add_str(0, kv->key);
    h = add_u64(add_u64(add_u64(h, kv->type), kv->elem_type), kv->n);
    if (kv->type != GGUF_VAL_ARR)
        return add_scalar(h, kv);
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next(&it, &elem))
        h = elem.type == GGUF_VAL_ARR ? add_u64(h, elem.n)
                                      : add_scalar(h, &elem);
    return h;
}

static uint64_t add_tensor(const struct gguf_tensor_info *t)
{
    uint64_t h = add_u64(add_str(1, t->name), t->dtype);
    for (unsigned i = 0; i < GGUF_MAX_DIMS; i++)
        h = add_u64(h, (uint64_t)t->ne[i]);
    return h;
}

uint64_t gg_model_digest(const struct gguf_model *m)
{
    const struct gguf_file *meta = gg_source_meta(&m->src);
    uint64_t sum = add_u64(add_str(2, gg_str_z(m->arch->name)), m->hp.n_vocab);
    char prefix[GG_MODEL_KEY];
    gg_model_key(m, "", prefix, sizeof prefix);
    for (size_t i = 0; i < gguf_file_n_kv(meta); i++)
        if (gg_str_starts(gguf_file_kv(meta, i)->key, prefix))
            sum += add_pair(gguf_file_kv(meta, i));
    for (size_t i = 0; i < gg_source_n_tensors(&m->src); i++)
        if (m->used[i])
            sum += add_tensor(gg_source_tensor(&m->src, i).info);
    return sum;
}
