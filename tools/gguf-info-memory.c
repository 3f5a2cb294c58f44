/* gguf-info-memory.c - what a model takes in memory
 *
 * Weights are the tensor data; the cache holds a key and a value for each
 * layer, key/value head and token of the context, in f16. That is what models
 * do whose every layer attends to everything: where the file speaks of
 * latent attention, of states instead of keys, or of layers that share, no
 * figure is given rather than a wrong one.
 */
#include "config.h"
#include "tools/gguf-info.h"
#include "tools/common/table.h"

#include <inttypes.h>
#include <string.h>

/* "ARCH.suffix", or NULL. */
static const struct gguf_kv *find(const struct info *info, const char *suffix)
{
    const struct info_hparam h = { "", "", suffix };
    return info_hparam(info, &h);
}

static uint64_t number(const struct info *info, const char *suffix,
                       uint64_t otherwise)
{
    uint64_t v;
    const struct gguf_kv *kv = find(info, suffix);
    return kv && gguf_kv_get_uint(kv, &v, NULL) == GGUF_OK ? v : otherwise;
}

/* Key/value heads of all layers together; 0 if the file does not say. */
static uint64_t heads(const struct info *info, uint64_t n_layer)
{
    const struct gguf_kv *kv = find(info, "attention.head_count_kv");
    uint64_t sum = 0, v;
    if (!kv || kv->type != GGUF_VAL_ARR) {
        v = number(info, "attention.head_count_kv",
                   number(info, "attention.head_count", 0));
        return v < UINT32_MAX && n_layer < UINT32_MAX ? v * n_layer : 0;
    }
    for (uint64_t i = 0; i < kv->n && i < n_layer; i++) {
        if (gguf_kv_elems_uint(kv, i, 1, &v, NULL) != GGUF_OK ||
            v > UINT32_MAX)
            return 0;
        sum += v;
    }
    return sum;
}

/* Bytes of the cache for one token; 0: not known here. */
static uint64_t cache_per_token(const struct info *info)
{
    static const char *const other[] = {
        "attention.kv_lora_rank", "ssm.state_size", "wkv.head_size",
        "attention.sliding_window", "attention.shared_kv_layers",
        "attention.recurrent_layers", "full_attention_interval"
    };
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (find(info, other[i]))
            return 0;
    uint64_t n_head = number(info, "attention.head_count", 0);
    uint64_t width = number(info, "embedding_length", 0);
    uint64_t head = n_head ? width / n_head : 0;
    uint64_t key = number(info, "attention.key_length", head);
    uint64_t value = number(info, "attention.value_length", head);
    uint64_t n = heads(info, number(info, "block_count", 0));
    if (key > UINT16_MAX || value > UINT16_MAX || n > UINT32_MAX)
        return 0;
    return n * (key + value) * 2;
}

void info_memory(struct json *j, const struct info *info,
                 const struct info_options *o)
{
    uint64_t each = cache_per_token(info);
    uint64_t n_ctx = o->n_ctx ? o->n_ctx : number(info, "context_length", 0);
    bool known = each && n_ctx && n_ctx <= UINT32_MAX;
    char out[24];
    if (j) {
        json_open(j, "memory", '{');
        json_u64(j, "weights", info->data_size);
        json_u64(j, "context", n_ctx);
        if (known)
            json_u64(j, "cache", each * n_ctx);
        json_close(j);
        return;
    }
    struct table t;
    table_init(&t, "ll", 2);
    table_add(&t, "weights");
    table_addf(&t, "%s (%" PRIu64 " bytes)", table_size(out, info->data_size),
               info->data_size);
    table_addf(&t, "cache for %" PRIu64 " tokens", n_ctx);
    if (known)
        table_addf(&t, "%s (%" PRIu64 " bytes, f16)",
                   table_size(out, each * n_ctx), each * n_ctx);
    else
        table_add(&t, "not known for this kind of model");
    info_heading("Memory", o);
    table_print(&t, stdout);
    table_fini(&t);
}
