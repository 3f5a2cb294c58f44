/* SPDX-License-Identifier: MIT */
/* vary.c - small changes of models, and how far they lead */
#include "config.h"
#include "tests/model/vary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct skeleton vary_model;

/* ---- changes ---- */

void vary_must(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

struct name {
    char s[128];
};

/* A key in full. */
static const char *full(struct name *n, const char *key)
{
    struct gguf_str arch;
    if (key[0] != '.')
        return key;
    vary_must(gguf_kv_get_str(
        gguf_meta_find(vary_model.g.meta, "general.architecture"), &arch,
        NULL));
    snprintf(n->s, sizeof n->s, "%.*s%s", (int)arch.size, arch.data, key);
    return n->s;
}

void vary_u32(const char *key, uint32_t v)
{
    struct name n;
    vary_must(gguf_meta_set_u32(vary_model.g.meta, full(&n, key), v, NULL));
}

void vary_f32(const char *key, float v)
{
    struct name n;
    vary_must(gguf_meta_set_f32(vary_model.g.meta, full(&n, key), v, NULL));
}

void vary_bool(const char *key, bool v)
{
    struct name n;
    vary_must(gguf_meta_set_bool(vary_model.g.meta, full(&n, key), v, NULL));
}

void vary_str(const char *key, const char *s)
{
    struct name n;
    vary_must(gguf_meta_set_strz(vary_model.g.meta, full(&n, key), s, NULL));
}

void vary_array(const char *key, enum gguf_val_type type, const void *v,
                size_t n)
{
    struct name name;
    vary_must(gguf_meta_set_array(vary_model.g.meta, full(&name, key), type, v,
                                  n, NULL));
}

void vary_i32s(const char *key, const int32_t *v, size_t n)
{
    vary_array(key, GGUF_VAL_I32, v, n);
}

void vary_drop(const char *key)
{
    struct name n;
    gguf_meta_remove(vary_model.g.meta, full(&n, key));
}

struct gen_tensor *vary_find(const char *name)
{
    for (size_t i = 0; i < vary_model.g.n; i++)
        if (!strcmp(vary_model.g.t[i].name, name))
            return &vary_model.g.t[i];
    abort();
}

void vary_drop_tensor(const char *name)
{
    gen_drop(&vary_model.g, name);
}

void vary_gain(const char *pattern, double factor)
{
    if (!gen_gain(&vary_model.g, pattern, factor))
        abort();
}

void vary_values(const char *name, const float *v)
{
    vary_find(name)->values = v;
}

float *vary_room(size_t n)
{
    static float *kept[256];
    static size_t n_kept;
    float *v = malloc(n * sizeof *v);
    if (!v || n_kept == sizeof kept / sizeof *kept)
        abort();
    return kept[n_kept++] = v;
}

float *vary_values_of(const char *name)
{
    const struct gen_tensor *t = vary_find(name);
    size_t n = 1;
    for (unsigned d = 0; d < t->n_dims; d++)
        n *= (size_t)t->ne[d];
    float *v = vary_room(n);
    gen_weights(v, &vary_model.g, t);
    return v;
}

/* ---- outputs ---- */

static bool rows_of(struct run *r, const struct gguf_batch *b, float *out)
{
    const float *rows;
    if (gguf_model_get_info(r->model)->has_logits)
        return run_logits(r, b, out);
    if (gguf_session_decode(r->session, b, &r->err) != GGUF_OK ||
        gguf_session_states(r->session, 0, b->n, &rows, &r->err) != GGUF_OK)
        return false;
    memcpy(out, rows, b->n * VARY_V * sizeof *out);
    return true;
}

void *vary_file(const char *name, vary_fn *change, size_t *size)
{
    if (!skeleton_open(&vary_model, name))
        abort();
    if (change)
        change();
    return gen_file(&vary_model.g, GGUF_DTYPE_F32, size);
}

bool vary_part(const char *name, vary_fn *change, uint32_t n_ctx, size_t from,
               size_t to, int32_t first, float *out, struct gguf_error *err)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[VARY_N];
    int32_t pos[VARY_N];
    uint8_t want[VARY_N];
    struct run r;
    size_t size;
    void *file = vary_file(name, change, &size);
    p.n_ctx = n_ctx;
    skeleton_tokens_of(&vary_model, tok);
    memset(want, 1, sizeof want);
    memset(out, 0, (to - from) * VARY_V * sizeof *out);
    for (size_t i = from; i < to; i++)
        pos[i] = first + (int32_t)i;
    b.n = to - from;
    b.token = tok + from;
    b.pos = pos + from;
    b.want = want;
    const bool good = run_open(&r, file, size, 1, &p) &&
                      run_encode(&r, tok, to) && rows_of(&r, &b, out);
    *err = r.err;
    run_close(&r);
    free(file);
    skeleton_close(&vary_model);
    return good;
}

bool vary_outputs(const char *name, vary_fn *change, uint32_t n_ctx,
                  size_t n_tok, float *out, struct gguf_error *err)
{
    return vary_part(name, change, n_ctx, 0, n_tok, 0, out, err);
}

double vary_apart(const char *name, vary_fn *a, vary_fn *b, uint32_t n_ctx,
                  size_t n_tok)
{
    static float x[VARY_N * VARY_V], y[VARY_N * VARY_V];
    struct gguf_error err;
    if (vary_outputs(name, a, n_ctx, n_tok, x, &err) &&
        vary_outputs(name, b, n_ctx, n_tok, y, &err))
        return run_nmse(x, y, n_tok * VARY_V);
    printf("# %s: %s\n", name, err.message);
    return 9;
}

uint64_t vary_kept(const char *name, vary_fn *change)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    uint64_t cache = 0, graphs;
    struct run r;
    size_t size;
    void *file = vary_file(name, change, &size);
    p.n_ctx = VARY_N;
    if (run_open(&r, file, size, 1, &p))
        gguf_session_memory(r.session, &cache, &graphs);
    run_close(&r);
    free(file);
    skeleton_close(&vary_model);
    return cache;
}
