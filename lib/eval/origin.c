/* SPDX-License-Identifier: MIT */
/* origin.c - digests of models and texts */
#include "config.h"
#include "eval/origin.h"

#include "base/bytes.h"
#include "base/str.h"
#include "gguf/digest.h"
#include "run/session_int.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static void write_hex(char out[33], XXH3_state_t *x)
{
    struct gguf_digest d = { .algo = GGUF_DIGEST_XXH3_128 };
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(x));
    memcpy(d.bytes, canonical.digest, sizeof canonical.digest);
    gguf_digest_format(&d, out);
}

static void add_number(XXH3_state_t *x, uint64_t v)
{
    uint8_t b[8];
    gg_bytes_store64le(b, v);
    (void)XXH3_128bits_update(x, b, sizeof b);
}

static void add_text(XXH3_state_t *x, struct gguf_str s)
{
    add_number(x, s.size);
    (void)XXH3_128bits_update(x, s.data, s.size);
}

/* Hash name, type, shape, and 16 pieces of the data at equal distances:
 * another fine-tuning or quantization changes most bytes, and a large model
 * need not be read. */
static void add_tensor(XXH3_state_t *x, const struct gguf_file *f,
                       const struct gguf_tensor_info *t)
{
    enum { PIECES = 16, PIECE = 4096 };
    const uint8_t *data = gguf_file_tensor_data(f, t->index);
    add_text(x, t->name);
    add_number(x, t->dtype);
    for (unsigned d = 0; d < 4; d++)
        add_number(x, (uint64_t)t->ne[d]);
    if (t->size <= PIECES * PIECE) {
        (void)XXH3_128bits_update(x, data, (size_t)t->size);
        return;
    }
    for (uint64_t i = 0; i < PIECES; i++)
        (void)XXH3_128bits_update(
            x, data + (t->size - PIECE) / (PIECES - 1) * i, PIECE);
}

/* Hash the keys of the architecture, which evaluation reads. */
static void add_keys(XXH3_state_t *x, const struct gguf_model *m)
{
    const struct gguf_file *f = gg_source_meta(&m->src);
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        if (kv->key.size <= m->arch_name.size ||
            memcmp(kv->key.data, m->arch_name.data, m->arch_name.size) != 0)
            continue;
        add_text(x, kv->key);
        add_text(x, (struct gguf_str){ kv->data, kv->size });
    }
}

static void digest_model(char out[33], XXH3_state_t *x,
                         const struct gguf_model *m)
{
    (void)XXH3_128bits_reset(x);
    add_text(x, m->arch_name);
    if (m->as)
        add_text(x, gg_str_z(m->as));
    add_keys(x, m);
    for (size_t i = 0; i < gg_source_n_files(&m->src); i++) {
        const struct gguf_file *f = gg_source_file(&m->src, i);
        for (size_t k = 0; k < gguf_file_n_tensors(f); k++)
            add_tensor(x, f, gguf_file_tensor(f, k));
    }
    write_hex(out, x);
}

static void digest_text(char out[33], XXH3_state_t *x, const gguf_token *token,
                        size_t n)
{
    (void)XXH3_128bits_reset(x);
    for (size_t i = 0; i < n; i++)
        add_number(x, (uint64_t)token[i]);
    write_hex(out, x);
}

/* Name the types of keys and values, on which digits depend. */
static void name_cache(char out[32], const struct gguf_session *s)
{
    snprintf(out, 32, "none");
    for (unsigned i = 0; i < GG_N_MEMORIES; i++) {
        const struct gg_memory *m = &s->memory[i];
        if (m->kind && m->kind->id == GG_MODEL_MEMORY_KV)
            snprintf(out, 32, "%s %s", gguf_dtype_find(m->types.k)->name,
                     gguf_dtype_find(m->types.v)->name);
    }
}

void gg_origin_digest_bytes(char out[33], const uint8_t *data, uint64_t n)
{
    enum { PIECES = 64, PIECE = 4096 };
    XXH64_canonical_t c;
    struct gguf_digest d = { .algo = GGUF_DIGEST_XXH3_128 };
    XXH64_hash_t h[2] = { n, 0 };
    if (n <= PIECES * PIECE)
        h[1] = XXH3_64bits(data, (size_t)n);
    for (uint64_t i = 0; n > PIECES * PIECE && i < PIECES; i++)
        h[1] = XXH3_64bits_withSeed(data + (n - PIECE) / (PIECES - 1) * i,
                                    PIECE, h[1]);
    for (int i = 0; i < 2; i++) {
        XXH64_canonicalFromHash(&c, h[i]);
        memcpy(d.bytes + 8 * i, c.digest, sizeof c.digest);
    }
    gguf_digest_format(&d, out);
}

enum gguf_status gg_origin_compute(struct gg_origin *o,
                                   const struct gguf_session *s,
                                   const gguf_token *token, size_t n,
                                   struct gguf_error *err)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x)
        return gg_error_set_nomem(err, sizeof x);
    memset(o, 0, sizeof *o);
    digest_model(o->model, x, s->model);
    digest_text(o->text, x, token, n);
    (void)XXH3_freeState(x);
    name_cache(o->cache, s);
    o->n_tokens = n;
    return GGUF_OK;
}

static enum gguf_status refuse_differing(const char *what, const char *of,
                                         const char *a, const char *b,
                                         struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "%s of another %s: %s, not %s", what, of, b, a);
}

enum gguf_status gg_origin_check(const struct gg_origin *a,
                                 const struct gg_origin *b, const char *what,
                                 struct gguf_error *err)
{
    if (strcmp(a->model, b->model) != 0)
        return refuse_differing(what, "model", a->model, b->model, err);
    if (a->n_tokens != b->n_tokens)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "%s of another text: %" PRIu64
                            " tokens, not %" PRIu64,
                            what, b->n_tokens, a->n_tokens);
    if (strcmp(a->text, b->text) != 0)
        return refuse_differing(what, "text", a->text, b->text, err);
    return strcmp(a->cache, b->cache) != 0
               ? refuse_differing(what, "type of keys and values", a->cache,
                                  b->cache, err)
               : GGUF_OK;
}
