/* SPDX-License-Identifier: MIT */
/* gen.c - model files for tests, built in memory */
#include "config.h"
#include "tests/model/gen.h"

#include "dtype/f16.h"
#include "recipe/pattern.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must_succeed(enum gguf_status st, const struct gguf_error *err)
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
    must_succeed(gguf_meta_create(&g->meta, NULL, &err), &err);
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
    t->values = NULL;
    t->ints = NULL;
}

void gen_drop(struct gen *g, const char *name)
{
    size_t i = 0;
    while (i < g->n && strcmp(g->t[i].name, name))
        i++;
    if (i == g->n)
        abort();
    g->n--;
    memmove(&g->t[i], &g->t[i + 1], (g->n - i) * sizeof g->t[0]);
}

/* ---- weights: FNV-1a of the tensor's name seeds splitmix64, and the four
 * 16-bit parts of a number add up to a nearly normal one ---- */

static uint64_t fnv1a(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
    return h;
}

static double draw_normal(uint64_t state, uint64_t i)
{
    uint64_t z = state + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    uint64_t s =
        (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48);
    return ((double)s - 131070.0) / 37837.22723720648;
}

/* Mean and deviation of weights by a part of the name; the first row that fits
 * counts. gain: both are multiplied by the gain. Other tensors are near one if
 * they have one dimension, else they are matrices. */
static const struct {
    const char *pattern;
    double mean, dev;
    int gains;
} kinds[] = {
    { "ssm_a(\\.weight)?$", -1, -0.25, 0 },
    { "ssm_dt(\\.[A-Za-z0-9_]+)?\\.bias$|ssm_dt$", -1, 0.5, 0 },
    { "ssm_d(\\.weight)?$", 1, 0.1, 1 },
    { "rope_(freqs|factors_long|factors_short)\\.weight$", 1.5, 0.1, 0 },
    { "attn_sinks\\.weight$", 0, 1, 0 },
    { "altup_correct_scale\\.weight$|layer_output_scale\\.weight$", 1, 0.1,
      1 },
    { "time_mix_(ln|first|a0|v0|w0|k_k|k_a|r_k)([^A-Za-z0-9_]|$)", 0, 0.1, 0 },
    { "time_mix_lerp_|channel_mix_lerp_", 0.5, 0.1, 0 },
    { "time_mix_decay\\.weight$", -1, 0.5, 0 },
    { "norm[A-Za-z0-9_]*(\\.[0-9]+)?\\.weight$", 1, 0.1, 1 },
    { "(^|\\.)bias$", 0, 0.1, 0 },
};

/* Compile the pattern. The first ones are kept, since compiling takes most of
 * the time of small models; others go to *own. */
static const struct gg_pattern *compile_pattern(const char *pattern,
                                                struct gg_pattern **own)
{
    enum { MOST = 32 };
    static struct {
        char *text;
        struct gg_pattern *compiled;
    } known[MOST];
    struct gguf_error err;
    size_t i = 0;
    while (i < MOST && known[i].text && strcmp(known[i].text, pattern))
        i++;
    if (i < MOST && known[i].text)
        return known[i].compiled;
    struct gg_pattern **to = i < MOST ? &known[i].compiled : own;
    const struct gguf_str text = { pattern, strlen(pattern) };
    must_succeed(gg_pattern_create(to, text, NULL, &err), &err);
    if (i < MOST) {
        if (!(known[i].text = malloc(text.size + 1)))
            abort();
        memcpy(known[i].text, pattern, text.size + 1);
    }
    return *to;
}

static bool fits_pattern(const char *name, const char *pattern)
{
    struct gg_pattern *own = NULL;
    struct gguf_error err;
    bool found;
    const struct gg_pattern *p = compile_pattern(pattern, &own);
    must_succeed(gg_pattern_match(p, name, &found, &err), &err);
    gg_pattern_destroy(own);
    return found;
}

int gen_gain(struct gen *g, const char *pattern, double factor)
{
    const size_t k = g->n_gain;
    if (k == GEN_MAX_GAINS || strlen(pattern) >= sizeof g->gain[k].pattern)
        return 0;
    strcpy(g->gain[k].pattern, pattern);
    g->gain[g->n_gain++].factor = factor;
    return 1;
}

static size_t n_elements(const struct gen_tensor *t)
{
    size_t n = 1;
    for (unsigned i = 0; i < t->n_dims; i++)
        n *= (size_t)t->ne[i];
    return n;
}

void gen_weights(float *out, const struct gen *g, const struct gen_tensor *t)
{
    const uint64_t state = fnv1a(t->name) ^ g->seed;
    double gain = 1, mean = 1, dev = 0.1;
    int gains = 1;
    size_t k = 0;
    if (t->values) {
        memcpy(out, t->values, n_elements(t) * sizeof *out);
        return;
    }
    for (size_t i = 0; i < g->n_gain; i++)
        if (fits_pattern(t->name, g->gain[i].pattern))
            gain = g->gain[i].factor;
    while (k < sizeof kinds / sizeof *kinds &&
           !fits_pattern(t->name, kinds[k].pattern))
        k++;
    if (k < sizeof kinds / sizeof *kinds) {
        mean = kinds[k].mean;
        dev = kinds[k].dev;
        gains = kinds[k].gains;
    } else if (t->n_dims > 1) {
        mean = 0;
        dev = gain / sqrt((double)t->ne[0]);
        gains = 0;
    }
    const size_t n = n_elements(t), own = g->own && g->own < n ? g->own : n;
    for (size_t i = 0; i < own; i++) {
        double v = mean + dev * draw_normal(state, i);
        out[i] = (float)(gains ? v * gain : v);
    }
    /* repeat the first `own' weights */
    for (size_t i = own, m; i < n; i += m) {
        m = n - i < own ? n - i : own;
        memcpy(out + i, out, m * sizeof *out);
    }
}

/* ---- the file ---- */

static void put_tensor(uint8_t *to, const struct gen *g,
                       const struct gen_tensor *t, uint32_t dtype)
{
    size_t n = n_elements(t);
    float *w = malloc(n * sizeof *w);
    if (!w)
        abort();
    if (!t->ints)
        gen_weights(w, g, t);
    for (size_t i = 0; i < n; i++) {
        if (dtype == GGUF_DTYPE_F16)
            gg_bytes_store16le(to + 2 * i, gg_dtype_f32_to_f16(w[i]));
        else
            gg_bytes_store32le(to + 4 * i, t->ints ? (uint32_t)t->ints[i]
                                                   : gg_bytes_f32_bits(w[i]));
    }
    free(w);
}

/* Make the file. NULL: it cannot be written, and err says why. */
static void *make_file(const struct gen *g, uint32_t dtype, int weights,
                       size_t *size, struct gguf_error *err)
{
    struct gguf_writer *w;
    const void *head;
    size_t head_size;
    if (gguf_writer_create(&w, g->meta, NULL, err) != GGUF_OK)
        return NULL;
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < g->n && st == GGUF_OK; i++) {
        const struct gen_tensor *t = &g->t[i];
        struct gguf_str name = { t->name, strlen(t->name) };
        st = gguf_writer_add_tensor(w, name,
                                    t->ints         ? GGUF_DTYPE_I32
                                    : t->n_dims > 1 ? dtype
                                                    : GGUF_DTYPE_F32,
                                    t->n_dims, t->ne, err);
    }
    if (st == GGUF_OK)
        st = gguf_writer_header(w, &head, &head_size, err);
    if (st != GGUF_OK) {
        gguf_writer_destroy(w);
        return NULL;
    }
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

void *gen_file_if(const struct gen *g, uint32_t dtype, size_t *size)
{
    struct gguf_error err;
    return make_file(g, dtype, 1, size, &err);
}

void *gen_file(const struct gen *g, uint32_t dtype, size_t *size)
{
    struct gguf_error err;
    void *file = make_file(g, dtype, 1, size, &err);
    must_succeed(file ? GGUF_OK : err.status, &err);
    return file;
}

void *gen_empty_file(const struct gen *g, size_t *size)
{
    struct gguf_error err;
    void *file = make_file(g, GGUF_DTYPE_F32, 0, size, &err);
    must_succeed(file ? GGUF_OK : err.status, &err);
    return file;
}

/* ---- a llama-like model ---- */

static void set_u32(struct gen *g, const char *arch, const char *key,
                    uint32_t v)
{
    char name[128];
    struct gguf_error err;
    snprintf(name, sizeof name, "%s.%s", arch, key);
    must_succeed(gguf_meta_set_u32(g->meta, name, v, &err), &err);
}

static void set_f32(struct gen *g, const char *arch, const char *key, float v)
{
    char name[128];
    struct gguf_error err;
    snprintf(name, sizeof name, "%s.%s", arch, key);
    must_succeed(gguf_meta_set_f32(g->meta, name, v, &err), &err);
}

/* Set a key to one number, or to one for each layer. */
static void set_layers(struct gen *g, const struct gen_spec *s,
                       const char *key, uint32_t v, const uint32_t *layers)
{
    char name[128];
    struct gguf_error err;
    snprintf(name, sizeof name, "%s.%s", s->arch, key);
    if (!layers)
        set_u32(g, s->arch, key, v);
    else
        must_succeed(gguf_meta_set_array(g->meta, name, GGUF_VAL_U32, layers,
                                         s->n_layer, &err),
                     &err);
}

static void model_meta(struct gen *g, const struct gen_spec *s)
{
    struct gguf_error err;
    const char *a = s->arch;
    char name[128];
    must_succeed(gguf_meta_set_strz(g->meta, "general.architecture", a, &err),
                 &err);
    must_succeed(
        gguf_meta_set_strz(g->meta, "tokenizer.ggml.model", "no_vocab", &err),
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
        must_succeed(gguf_meta_set_strz(g->meta, name, s->scaling, &err),
                     &err);
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
        int64_t kv =
            d * (s->head_kv_layer ? s->head_kv_layer[i] : s->n_head_kv);
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

void *gen_model_file(const struct gen_spec *spec, uint64_t seed,
                     uint32_t dtype, size_t *size)
{
    static struct gen g;
    gen_init(&g, seed);
    gen_model(&g, spec);
    void *file = gen_file(&g, dtype, size);
    gen_fini(&g);
    return file;
}
