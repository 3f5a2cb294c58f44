/* SPDX-License-Identifier: MIT */
/* memory.c - the memory that a model needs
 *
 * The weights are the tensor data. If the architecture can be evaluated here,
 * cache, compute buffers and the peak of a session on one thread are those
 * that a session plans, without allocating them.
 *
 * Otherwise the cache is computed: a key and a value for each layer, key/value
 * head and token of the context. That is right for models in which every layer
 * has full attention. If the file has keys of latent attention, of recurrent
 * states or of shared layers, no size is shown.
 */
#include "config.h"
#include "tools/info/info.h"

#include <gguf/cpu.h>
#include <gguf/session_memory.h>

#include <inttypes.h>
#include <string.h>

static uint64_t read_number(const struct info *info, const char *suffix,
                            uint64_t otherwise)
{
    uint64_t v;
    const struct gguf_kv *kv = info_hparam(info, suffix);
    return kv && gguf_kv_get_uint(kv, &v, NULL) == GGUF_OK ? v : otherwise;
}

/* Number of key/value heads in all layers; 0 if the file does not say. */
static uint64_t count_heads(const struct info *info, uint64_t n_layer)
{
    const struct gguf_kv *kv = info_hparam(info, "attention.head_count_kv");
    uint64_t sum = 0, v;
    if (!kv || kv->type != GGUF_VAL_ARR) {
        v = read_number(info, "attention.head_count_kv",
                        read_number(info, "attention.head_count", 0));
        return v < UINT32_MAX && n_layer < UINT32_MAX ? v * n_layer : 0;
    }
    for (uint64_t i = 0; i < kv->n && i < n_layer; i++) {
        if (gguf_kv_get_elems_uint(kv, i, 1, &v, NULL) != GGUF_OK ||
            v > UINT32_MAX)
            return 0;
        sum += v;
    }
    return sum;
}

/* Bytes of the cache for one token; 0: unknown. */
static uint64_t cache_per_token(const struct info *info, uint32_t type)
{
    uint64_t key_size, value_size;
    const struct gguf_hparam *h;
    for (size_t i = 0; (h = gguf_hparam_at(i)) != NULL; i++)
        if ((h->flags & GGUF_HPARAM_MEMORY) && info_hparam(info, h->key))
            return 0;
    uint64_t n_head = read_number(info, "attention.head_count", 0);
    uint64_t width = read_number(info, "embedding_length", 0);
    uint64_t head = n_head ? width / n_head : 0;
    uint64_t key = read_number(info, "attention.key_length", head);
    uint64_t value = read_number(info, "attention.value_length", head);
    uint64_t n = count_heads(info, read_number(info, "block_count", 0));
    if (key > UINT16_MAX || value > UINT16_MAX || n > UINT32_MAX)
        return 0;
    if (gguf_dtype_row_size(type, key, &key_size, NULL) != GGUF_OK ||
        gguf_dtype_row_size(type, value, &value_size, NULL) != GGUF_OK)
        return 0;
    return n * (key_size + value_size);
}

/* Tokens of a batch, unless the context is shorter. */
enum { UBATCH = 512 };

struct needs {
    uint64_t n_ctx;
    uint64_t cache, compute; /* bytes; 0: unknown */
    uint64_t session;        /* peak of a session in bytes; 0: unknown */
    /* the sizes were planned by a session: 0 means no bytes */
    bool planned;
    const char *why; /* reason why a size is unknown */
};

/* Plan the memory of a session, if the model can be evaluated. */
static void plan_memory(const struct info *info, uint32_t type,
                        struct needs *n)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_cpu_params cpu = GGUF_CPU_PARAMS_INIT;
    struct gguf_model *model = NULL;
    const struct load *l = info->load;
    if (gguf_model_create(&model, l->file, NULL, NULL) != GGUF_OK)
        return;
    p.n_ctx = (uint32_t)n->n_ctx;
    p.n_ubatch = UBATCH;
    p.key_dtype = p.value_dtype = gguf_dtype_find(type);
    cpu.n_threads = 1; /* the plan computes nothing */
    if (gguf_cpu_backend_create(&p.backend, &cpu, NULL) == GGUF_OK)
        n->planned = gguf_session_estimate_memory(
                         model, &p, &n->cache, &n->compute, NULL) == GGUF_OK &&
                     gguf_session_estimate_peak_memory(model, &p, &n->session,
                                                       NULL) == GGUF_OK;
    gguf_backend_destroy(p.backend);
    gguf_model_destroy(model);
}

static struct needs estimate_memory(const struct info *info,
                                    const struct info_options *o)
{
    struct needs n = { .n_ctx = o->n_ctx
                                    ? o->n_ctx
                                    : read_number(info, "context_length", 0),
                       .why = "unknown for this kind of model" };
    if (!n.n_ctx || n.n_ctx > UINT32_MAX)
        return n;
    plan_memory(info, o->cache_dtype, &n);
    const uint64_t each = cache_per_token(info, o->cache_dtype);
    if (!n.planned && each <= UINT64_MAX / n.n_ctx)
        n.cache = each * n.n_ctx;
    return n;
}

static void add_line(struct table *t, const char *label, uint64_t size,
                     const char *more, const char *why)
{
    char out[24];
    table_add(t, label);
    if (size)
        table_addf(t, "%s (%" PRIu64 " bytes%s)", table_size(out, size), size,
                   more);
    else
        table_add(t, why);
}

void info_memory(struct json *j, const struct info *info,
                 const struct info_options *o)
{
    struct needs n = estimate_memory(info, o);
    char label[64], more[40];
    /* without a plan, only the cache, if its size is known */
    const uint64_t rest = n.session ? n.session : n.cache;
    const uint64_t total = rest || n.planned ? info->data_size + rest : 0;
    if (j) {
        json_open(j, "memory", '{');
        json_u64(j, "weights", info->data_size);
        json_u64(j, "context", n.n_ctx);
        if (n.cache || n.planned)
            json_u64(j, "cache", n.cache);
        if (n.compute)
            json_u64(j, "compute", n.compute);
        if (n.cache)
            json_strz(j, "cache_type", gguf_dtype_find(o->cache_dtype)->name);
        if (n.session)
            json_u64(j, "session", n.session);
        if (total)
            json_u64(j, "total", total);
        json_close(j);
        return;
    }
    struct table t;
    table_init(&t, "ll", o->markdown ? 0 : 2);
    t.drop = "";
    if (o->markdown) {
        table_add(&t, "memory");
        table_add(&t, "size");
    }
    add_line(&t, "weights", info->data_size, "", n.why);
    snprintf(label, sizeof label, "cache for %" PRIu64 " tokens", n.n_ctx);
    snprintf(more, sizeof more, ", %s", gguf_dtype_find(o->cache_dtype)->name);
    add_line(&t, label, n.cache, more,
             n.planned ? "the model keeps no cache" : n.why);
    snprintf(label, sizeof label, "buffers for %d tokens", UBATCH);
    add_line(&t, label, n.compute, "", n.why);
    add_line(&t, "session", n.session, ", on one thread", n.why);
    add_line(&t, "total", total, n.session ? "" : ", without buffers", n.why);
    info_heading("Memory", o);
    info_table(&t, o);
}
