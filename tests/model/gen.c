/* gen.c - model files for tests, built in memory */
#include "config.h"
#include "tests/model/gen.h"

#include "dtype/f16.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    fprintf(stderr, "gen: %s\n", err->message);
    abort();
}

void gen_init(struct gen *g, uint64_t seed)
{
    struct gguf_error err;
    memset(g, 0, sizeof *g);
    g->seed = seed;
    must(gguf_meta_create(&g->meta, NULL, &err), &err);
}

void gen_fini(struct gen *g)
{
    gguf_meta_destroy(g->meta);
}

void gen_tensor(struct gen *g, int64_t ne0, int64_t ne1, const char *fmt, ...)
{
    struct gen_tensor *t = &g->t[g->n++];
    va_list ap;
    if (g->n > GEN_MAX_TENSORS)
        abort();
    va_start(ap, fmt);
    vsnprintf(t->name, sizeof t->name, fmt, ap);
    va_end(ap);
    t->n_dims = ne1 ? 2 : 1;
    t->ne[0] = ne0;
    t->ne[1] = ne1 ? ne1 : 1;
    t->ne[2] = t->ne[3] = 1;
}

/* ---- weights: FNV-1a of the name seeds splitmix64, whose four 16-bit parts
 * add up to a nearly normal number ---- */

static uint64_t fnv1a(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
    return h;
}

static double normal(uint64_t state, uint64_t i)
{
    uint64_t z = state + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    uint64_t s = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) +
                 (z >> 48);
    return ((double)s - 131070.0) / 37837.22723720648;
}

static int ends(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* Numbers of a mean and a deviation, by what the name ends with: the
 * first that fits. All else of one dimension is near one,
 * of more a matrix. */
static const struct {
    const char *part;
    double mean, dev;
} kinds[] = {
    { "ssm_a", -1, -0.25 },
    { "ssm_dt.bias", -1, 0.5 },
    { "ssm_d", 1, 0.1 },
    { "rope_freqs.weight", 1.5, 0.1 },
    { "rope_factors_long.weight", 1.5, 0.1 },
    { "rope_factors_short.weight", 1.5, 0.1 },
    { "attn_sinks.weight", 0, 1 },
    { "layer_output_scale.weight", 1, 0.1 },
    { "norm.weight", 1, 0.1 },
    { ".bias", 0, 0.1 },
};

void gen_weights(float *out, const char *name, uint64_t seed, size_t n,
                 unsigned n_dims, int64_t ne0)
{
    uint64_t state = fnv1a(name) ^ seed;
    double mean = 1, dev = 0.1;
    size_t k = 0;
    while (k < sizeof kinds / sizeof *kinds &&
           !ends(name, kinds[k].part))
        k++;
    if (k < sizeof kinds / sizeof *kinds) {
        mean = kinds[k].mean;
        dev = kinds[k].dev;
    } else if (n_dims > 1) {
        mean = 0;
        dev = 1.0 / sqrt((double)ne0);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(mean + dev * normal(state, i));
}

/* ---- the file ---- */

static size_t elements(const struct gen_tensor *t)
{
    return (size_t)(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]);
}

static void put_tensor(uint8_t *to, const struct gen *g,
                       const struct gen_tensor *t, uint32_t dtype)
{
    size_t n = elements(t);
    float *w = malloc(n * sizeof *w);
    if (!w)
        abort();
    gen_weights(w, t->name, g->seed, n, t->n_dims, t->ne[0]);
    for (size_t i = 0; i < n; i++) {
        if (dtype == GGUF_DTYPE_F16)
            gg_store16le(to + 2 * i, gg_f32_to_f16(w[i]));
        else
            gg_store32le(to + 4 * i, gg_f32_bits(w[i]));
    }
    free(w);
}

static void *make_file(const struct gen *g, uint32_t dtype, int weights,
                       size_t *size)
{
    struct gguf_writer *w;
    struct gguf_error err;
    const void *head;
    size_t head_size;
    must(gguf_writer_create(&w, g->meta, NULL, &err), &err);
    for (size_t i = 0; i < g->n; i++) {
        const struct gen_tensor *t = &g->t[i];
        struct gguf_str name = { t->name, strlen(t->name) };
        must(gguf_writer_add_tensor(w, name,
                                    t->n_dims > 1 ? dtype : GGUF_DTYPE_F32,
                                    t->n_dims, t->ne, &err),
             &err);
    }
    must(gguf_writer_header(w, &head, &head_size, &err), &err);
    *size = (size_t)gguf_writer_file_size(w);
    uint8_t *file = calloc(1, *size);
    if (!file)
        abort();
    memcpy(file, head, head_size);
    for (size_t i = 0; weights && i < g->n; i++) {
        const struct gguf_tensor_info *t = gguf_writer_tensor(w, i);
        put_tensor(file + gguf_writer_data_off(w) + t->off, g, &g->t[i],
                   t->dtype);
    }
    gguf_writer_destroy(w);
    return file;
}

void *gen_file(const struct gen *g, uint32_t dtype, size_t *size)
{
    return make_file(g, dtype, 1, size);
}

void *gen_empty_file(const struct gen *g, size_t *size)
{
    return make_file(g, GGUF_DTYPE_F32, 0, size);
}

/* ---- descriptions in JSON ---- */

struct json {
    const char *p;
    int bad;
};

static char peek(struct json *j)
{
    while (*j->p == ' ' || *j->p == '\n' || *j->p == '\r' || *j->p == '\t')
        j->p++;
    return *j->p;
}

static int take(struct json *j, char c)
{
    if (peek(j) != c)
        return 0;
    j->p++;
    return 1;
}

static void want(struct json *j, char c)
{
    if (!take(j, c))
        j->bad = 1;
}

static void string(struct json *j, char *out, size_t size)
{
    size_t n = 0;
    want(j, '"');
    for (; *j->p && *j->p != '"'; j->p++)
        if (n + 1 < size)
            out[n++] = *j->p;
    out[n] = 0;
    want(j, '"');
}

static double number(struct json *j)
{
    char *end;
    peek(j);
    double v = strtod(j->p, &end);
    j->bad |= end == j->p;
    j->p = end;
    return v;
}

static int truth(struct json *j)
{
    int v = peek(j) == 't';
    j->bad |= strncmp(j->p, v ? "true" : "false", v ? 4 : 5) != 0;
    while (!j->bad && *j->p >= 'a' && *j->p <= 'z')
        j->p++;
    return v;
}

static void skip_value(struct json *j)
{
    char text[256];
    if (peek(j) == '"') {
        string(j, text, sizeof text);
    } else if (take(j, '[') || take(j, '{')) {
        while (!j->bad && !take(j, ']') && !take(j, '}')) {
            if (!take(j, ',') && !take(j, ':'))
                skip_value(j);
        }
    } else {
        number(j);
    }
}

/* An array of i32 or bool. */
static void read_array(struct gen *g, struct json *j, const char *key,
                       int is_bool)
{
    int32_t v[256];
    uint8_t b[256];
    size_t n = 0;
    struct gguf_error err;
    want(j, '[');
    do {
        if (is_bool)
            b[n & 255] = (uint8_t)truth(j);
        else
            v[n & 255] = (int32_t)number(j);
        n++;
    } while (take(j, ','));
    want(j, ']');
    j->bad |= n > 256;
    if (!j->bad)
        must(gguf_meta_set_array(g->meta, key,
                                 is_bool ? GGUF_VAL_BOOL : GGUF_VAL_I32,
                                 is_bool ? (const void *)b : v, n, &err),
             &err);
}

static void read_kv(struct gen *g, struct json *j)
{
    char key[128], type[16], text[128];
    struct gguf_error err;
    string(j, key, sizeof key);
    want(j, ',');
    string(j, type, sizeof type);
    want(j, ',');
    if (strcmp(type, "str") == 0) {
        string(j, text, sizeof text);
        must(gguf_meta_set_strz(g->meta, key, text, &err), &err);
    } else if (strcmp(type, "u32") == 0) {
        must(gguf_meta_set_u32(g->meta, key, (uint32_t)number(j), &err), &err);
    } else if (strcmp(type, "f32") == 0) {
        must(gguf_meta_set_f32(g->meta, key, (float)number(j), &err), &err);
    } else if (strcmp(type, "bool") == 0) {
        must(gguf_meta_set_bool(g->meta, key, truth(j), &err), &err);
    } else if (strncmp(type, "arr:", 4) == 0) {
        read_array(g, j, key, strcmp(type, "arr:bool") == 0);
    } else {
        j->bad = 1;
    }
}

static void read_tensor(struct gen *g, struct json *j)
{
    char name[64], type[16];
    string(j, name, sizeof name);
    want(j, ',');
    string(j, type, sizeof type);
    want(j, ',');
    gen_tensor(g, 1, 0, "%s", name);
    struct gen_tensor *t = &g->t[g->n - 1];
    t->n_dims = 0;
    want(j, '[');
    do
        t->ne[t->n_dims++ & 3] = (int64_t)number(j);
    while (take(j, ','));
    want(j, ']');
}

int gen_read(struct gen *g, const char *path)
{
    static char text[1 << 18];
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    struct json j = { text, 0 };
    want(&j, '{');
    do {
        char key[32], seed[32];
        string(&j, key, sizeof key);
        want(&j, ':');
        if (strcmp(key, "seed") == 0) {
            string(&j, seed, sizeof seed);
            g->seed = strtoull(seed, NULL, 0);
        } else if (strcmp(key, "kv") == 0 || strcmp(key, "tensors") == 0) {
            want(&j, '[');
            do {
                want(&j, '[');
                if (key[0] == 'k')
                    read_kv(g, &j);
                else
                    read_tensor(g, &j);
                want(&j, ']');
            } while (!j.bad && take(&j, ','));
            want(&j, ']');
        } else {
            skip_value(&j);
        }
    } while (!j.bad && take(&j, ','));
    want(&j, '}');
    return !j.bad && g->n > 0;
}

/* ---- a llama-like model ---- */

static void set_u32(struct gen *g, const char *arch, const char *key,
                    uint32_t v)
{
    char name[128];
    struct gguf_error err;
    snprintf(name, sizeof name, "%s.%s", arch, key);
    must(gguf_meta_set_u32(g->meta, name, v, &err), &err);
}

static void set_f32(struct gen *g, const char *arch, const char *key, float v)
{
    char name[128];
    struct gguf_error err;
    snprintf(name, sizeof name, "%s.%s", arch, key);
    must(gguf_meta_set_f32(g->meta, name, v, &err), &err);
}

/* One number, or with layers one for each layer. */
static void set_layers(struct gen *g, const struct gen_spec *s,
                       const char *key, uint32_t v, const uint32_t *layers)
{
    char name[128];
    struct gguf_error err;
    snprintf(name, sizeof name, "%s.%s", s->arch, key);
    if (!layers)
        set_u32(g, s->arch, key, v);
    else
        must(gguf_meta_set_array(g->meta, name, GGUF_VAL_U32, layers,
                                 s->n_layer, &err),
             &err);
}

static void model_meta(struct gen *g, const struct gen_spec *s)
{
    struct gguf_error err;
    const char *a = s->arch;
    char name[128];
    must(gguf_meta_set_strz(g->meta, "general.architecture", a, &err), &err);
    must(gguf_meta_set_strz(g->meta, "tokenizer.ggml.model", "no_vocab", &err),
         &err);
    set_u32(g, a, "vocab_size", s->n_vocab);
    set_u32(g, a, "context_length", s->n_ctx);
    set_u32(g, a, "embedding_length", s->n_embd);
    set_u32(g, a, "block_count", s->n_layer);
    set_layers(g, s, "feed_forward_length", s->n_ff, s->ff_layer);
    set_u32(g, a, "attention.head_count", s->n_head);
    set_layers(g, s, "attention.head_count_kv", s->n_head_kv,
               s->head_kv_layer);
    set_f32(g, a, "attention.layer_norm_rms_epsilon", s->eps);
    set_f32(g, a, "rope.freq_base", s->freq_base);
    if (s->head_dim) {
        set_u32(g, a, "attention.key_length", s->head_dim);
        set_u32(g, a, "attention.value_length", s->head_dim);
    }
    if (s->n_rot)
        set_u32(g, a, "rope.dimension_count", s->n_rot);
    if (s->scaling) {
        snprintf(name, sizeof name, "%s.rope.scaling.type", a);
        must(gguf_meta_set_strz(g->meta, name, s->scaling, &err), &err);
        set_f32(g, a, "rope.scaling.factor", s->factor);
        if (s->n_ctx_orig)
            set_u32(g, a, "rope.scaling.original_context_length",
                    s->n_ctx_orig);
    }
}

void gen_model(struct gen *g, const struct gen_spec *s)
{
    int64_t e = s->n_embd, d = s->head_dim ? s->head_dim : e / s->n_head;
    model_meta(g, s);
    gen_tensor(g, e, s->n_vocab, "token_embd.weight");
    gen_tensor(g, e, 0, "output_norm.weight");
    if (!s->tied)
        gen_tensor(g, e, s->n_vocab, "output.weight");
    if (s->rope_freqs)
        gen_tensor(g, (s->n_rot ? s->n_rot : d) / 2, 0, "rope_freqs.weight");
    for (uint32_t i = 0; i < s->n_layer; i++) {
        int64_t q = d * s->n_head;
        int64_t kv = d * (s->head_kv_layer ? s->head_kv_layer[i]
                                           : s->n_head_kv);
        int64_t ff = s->ff_layer ? s->ff_layer[i] : s->n_ff;
        gen_tensor(g, e, 0, "blk.%u.attn_norm.weight", i);
        gen_tensor(g, e, q, "blk.%u.attn_q.weight", i);
        gen_tensor(g, e, kv, "blk.%u.attn_k.weight", i);
        gen_tensor(g, e, kv, "blk.%u.attn_v.weight", i);
        if (s->qkv_bias) {
            gen_tensor(g, q, 0, "blk.%u.attn_q.bias", i);
            gen_tensor(g, kv, 0, "blk.%u.attn_k.bias", i);
            gen_tensor(g, kv, 0, "blk.%u.attn_v.bias", i);
        }
        if (s->qk_norm) {
            gen_tensor(g, d, 0, "blk.%u.attn_q_norm.weight", i);
            gen_tensor(g, d, 0, "blk.%u.attn_k_norm.weight", i);
        }
        gen_tensor(g, q, e, "blk.%u.attn_output.weight", i);
        if (s->out_bias)
            gen_tensor(g, e, 0, "blk.%u.attn_output.bias", i);
        gen_tensor(g, e, 0, "blk.%u.ffn_norm.weight", i);
        gen_tensor(g, e, ff, "blk.%u.ffn_gate.weight", i);
        gen_tensor(g, e, ff, "blk.%u.ffn_up.weight", i);
        gen_tensor(g, ff, e, "blk.%u.ffn_down.weight", i);
        if (s->ffn_bias) {
            gen_tensor(g, ff, 0, "blk.%u.ffn_gate.bias", i);
            gen_tensor(g, ff, 0, "blk.%u.ffn_up.bias", i);
            gen_tensor(g, e, 0, "blk.%u.ffn_down.bias", i);
        }
    }
}
