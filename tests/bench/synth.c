/* SPDX-License-Identifier: MIT */
/* synth.c - models of a given size with random weights */
#include "config.h"
#include "tests/bench/synth.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "quant/job/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PER_LAYER = 10, OUTLIERS = 199 };

static const struct synth_size sizes[] = {
    /* name vocab embd ff layers heads kv ctx experts used */
    { "tiny", 512, 256, 512, 2, 4, 2, 4096, 0, 0 },
    { "tiny-moe", 512, 256, 256, 2, 4, 2, 4096, 8, 2 },
    { "160m", 32000, 768, 3328, 12, 12, 4, 8192, 0, 0 },
    { "1b", 32000, 2048, 5632, 22, 32, 4, 8192, 0, 0 },
    { "8b", 128256, 4096, 14336, 32, 32, 8, 8192, 0, 0 },
    { "moe", 32000, 512, 256, 8, 8, 4, 8192, 128, 8 },
    { "moe-1b", 32000, 2048, 2048, 16, 32, 4, 8192, 32, 4 },
    { "words", 150000, 256, 512, 1, 4, 2, 32768, 0, 0 },
    { "as-moe-1b", 32000, 2048, 8192, 16, 32, 4, 8192, 0, 0 },
};

struct synth_tensor {
    char name[64];
    unsigned n_dims;
    int64_t ne[3];
    float about; /* mean of the weights: 1 for norms */
    float scale; /* factor of a number whose standard deviation is 37837 */
    uint64_t seed;
    uint64_t outlier; /* first column of outliers; OUTLIERS: none */
};

struct synth {
    struct gg_data list;
    const struct synth_size *size;
    struct gguf_meta *meta;
    struct synth_tensor *t;
    size_t n;
    uint64_t seed;
    struct gg_description description;
};

const struct synth_size *synth_at(size_t n)
{
    return n < GG_LEN(sizes) ? &sizes[n] : NULL;
}

const struct synth_size *synth_find(const char *name)
{
    for (size_t i = 0; i < GG_LEN(sizes); i++)
        if (!strcmp(name, sizes[i].name))
            return &sizes[i];
    return NULL;
}

/* ---- weights ---- */

/* The finalizer of SplitMix64 (Steele, Lea and Flood, 2014). */
static uint64_t mix_bits(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The sum of four uniform numbers of 16 bits minus its mean: the standard
 * deviation is 65536 / sqrt(3). */
static int32_t bell_number(uint64_t x)
{
    x = mix_bits(x);
    return (int32_t)((x & 65535) + (x >> 16 & 65535) + (x >> 32 & 65535) +
                     (x >> 48)) -
           2 * 65535;
}

static void read_rows(const struct gg_data_rows *r, uint64_t first, uint64_t n,
                      float *dst)
{
    const struct synth_tensor *t = r->source;
    const uint64_t ne0 = (uint64_t)t->ne[0];
    uint64_t col = first % ne0;
    for (uint64_t i = 0; i < n; i++) {
        const float w = (float)bell_number(t->seed + first + i) * t->scale;
        dst[i] = t->about + (col % OUTLIERS == t->outlier ? 8 * w : w);
        col = col + 1 == ne0 ? 0 : col + 1;
    }
}

static size_t list_n(const struct gg_data *d)
{
    return ((const struct synth *)d)->n;
}

static void list_info(const struct gg_data *d, size_t i,
                      struct gg_data_info *out)
{
    const struct synth_tensor *t = &((const struct synth *)d)->t[i];
    *out = (struct gg_data_info){ .name = { t->name, strlen(t->name) },
                                  .dtype = GGUF_DTYPE_F32,
                                  .n_dims = t->n_dims,
                                  .n_elements = 1,
                                  .info_off = GGUF_NO_OFFSET };
    for (unsigned k = 0; k < GGUF_MAX_DIMS; k++) {
        out->ne[k] = k < t->n_dims ? t->ne[k] : 1;
        out->n_elements *= (uint64_t)out->ne[k];
    }
    out->size = out->n_elements * sizeof(float);
}

static enum gguf_status list_rows(const struct gg_data *d, size_t i,
                                  struct gg_data_rows *out,
                                  struct gguf_error *err)
{
    (void)err;
    *out = (struct gg_data_rows){ .read = read_rows,
                                  .source = &((const struct synth *)d)->t[i] };
    return GGUF_OK;
}

static const uint8_t *list_bytes(const struct gg_data *d, size_t i)
{
    (void)d;
    (void)i;
    return NULL;
}

/* ---- tensors ---- */

static void add_tensor(struct synth *s, int layer, const char *name,
                       int64_t ne0, int64_t ne1, int64_t ne2)
{
    struct synth_tensor *t = &s->t[s->n];
    if (layer >= 0)
        snprintf(t->name, sizeof t->name, "blk.%d.%s.weight", layer, name);
    else
        snprintf(t->name, sizeof t->name, "%s.weight", name);
    t->n_dims = ne2 ? 3 : ne1 ? 2 : 1;
    t->ne[0] = ne0;
    t->ne[1] = ne1;
    t->ne[2] = ne2;
    const float deviation = ne1 ? 1 / sqrtf((float)ne0) : 0.1f;
    t->about = ne1 ? 0 : 1;
    t->scale = deviation * (sqrtf(3) / 65536);
    t->seed = mix_bits(s->seed ^ mix_bits(s->n));
    t->outlier = ne1 ? t->seed % OUTLIERS : OUTLIERS;
    s->n++;
}

static void add_layer(struct synth *s, int i)
{
    const struct synth_size *z = s->size;
    const int64_t embd = z->n_embd, ff = z->n_ff, n = z->n_expert,
                  kv = embd / z->n_head * z->n_head_kv;
    const char *const dense[] = { "ffn_gate", "ffn_up", "ffn_down" };
    const char *const experts[] = { "ffn_gate_exps", "ffn_up_exps",
                                    "ffn_down_exps" };
    const char *const *name = n ? experts : dense;
    add_tensor(s, i, "attn_norm", embd, 0, 0);
    add_tensor(s, i, "attn_q", embd, embd, 0);
    add_tensor(s, i, "attn_k", embd, kv, 0);
    add_tensor(s, i, "attn_v", embd, kv, 0);
    add_tensor(s, i, "attn_output", embd, embd, 0);
    add_tensor(s, i, "ffn_norm", embd, 0, 0);
    if (n)
        add_tensor(s, i, "ffn_gate_inp", embd, n, 0);
    add_tensor(s, i, name[0], embd, ff, n);
    add_tensor(s, i, name[1], embd, ff, n);
    add_tensor(s, i, name[2], ff, embd, n);
}

static enum gguf_status add_tensors(struct synth *s, int64_t n_vocab,
                                    struct gguf_error *err)
{
    const int64_t embd = s->size->n_embd;
    const size_t n = PER_LAYER * s->size->n_layer + 3;
    s->t = gg_mem_alloc_zero(NULL, n, sizeof *s->t);
    if (!s->t)
        return gg_error_set_nomem(err, n * sizeof *s->t);
    add_tensor(s, -1, "token_embd", embd, n_vocab, 0);
    add_tensor(s, -1, "output_norm", embd, 0, 0);
    add_tensor(s, -1, "output", embd, n_vocab, 0);
    for (uint32_t i = 0; i < s->size->n_layer; i++)
        add_layer(s, (int)i);
    return GGUF_OK;
}

/* ---- metadata ---- */

static enum gguf_status set_keys(struct gguf_meta *m,
                                 const struct synth_size *z,
                                 struct gguf_error *err)
{
    const struct {
        const char *key;
        uint32_t v; /* 0: no key */
    } keys[] = {
        { "llama.block_count", z->n_layer },
        { "llama.context_length", z->n_ctx },
        { "llama.embedding_length", z->n_embd },
        { "llama.feed_forward_length", z->n_ff },
        { "llama.attention.head_count", z->n_head },
        { "llama.attention.head_count_kv", z->n_head_kv },
        { "llama.rope.dimension_count", z->n_embd / z->n_head },
        { "llama.expert_count", z->n_expert },
        { "llama.expert_used_count", z->n_used },
    };
    GG_TRY(gguf_meta_set_strz(m, "general.architecture", "llama", err));
    GG_TRY(gguf_meta_set_strz(m, "general.name", "synthetic", err));
    for (size_t i = 0; i < GG_LEN(keys); i++)
        if (keys[i].v)
            GG_TRY(gguf_meta_set_u32(m, keys[i].key, keys[i].v, err));
    GG_TRY(gguf_meta_set_f32(m, "llama.attention.layer_norm_rms_epsilon",
                             1e-5f, err));
    return gguf_meta_set_f32(m, "llama.rope.freq_base", 10000, err);
}

/* A vocabulary under construction. */
struct vocab {
    struct gguf_str *token;
    float *score;
    int32_t *type;
    char (*text)[20];
    uint32_t n, room;
};

static void add_token(struct vocab *v, int type, const char *text)
{
    if (v->n == v->room)
        return;
    snprintf(v->text[v->n], sizeof v->text[0], "%s", text);
    v->token[v->n] = (struct gguf_str){ v->text[v->n], strlen(v->text[v->n]) };
    v->type[v->n] = type;
    v->score[v->n] = type == 1 ? -(float)v->n : 0;
    v->n++;
}

/* Control tokens, bytes, then letters and combinations of letters, the most
 * frequent letters first. Texts of any language can be tokenized. */
static void add_tokens(struct vocab *v)
{
    static const char letters[] = "etaoinshrdlucmfwypvbgkjqxz";
    const uint32_t n_letters = sizeof letters - 1;
    char text[20];
    add_token(v, 2, "<unk>");
    add_token(v, 3, "<s>");
    add_token(v, 3, "</s>");
    for (unsigned i = 0; i < 256; i++) {
        snprintf(text, sizeof text, "<0x%02X>", i);
        add_token(v, 6, text);
    }
    add_token(v, 1, "\xe2\x96\x81"); /* a space */
    for (uint32_t i = 0; i < 2 * n_letters; i++) {
        snprintf(text, sizeof text, "%s%c",
                 i < n_letters ? "" : "\xe2\x96\x81", letters[i % n_letters]);
        add_token(v, 1, text);
    }
    for (uint32_t len = 2, all = n_letters * n_letters; v->n < v->room;
         len++, all *= n_letters)
        for (uint32_t i = 0; i < all && v->n < v->room; i++) {
            for (uint32_t k = 0, rest = i; k < len; k++, rest /= n_letters)
                text[k] = letters[rest % n_letters];
            text[len] = '\0';
            add_token(v, 1, text);
        }
}

static enum gguf_status set_vocab(struct gguf_meta *m, const struct vocab *v,
                                  struct gguf_error *err)
{
    GG_TRY(gguf_meta_set_strz(m, "tokenizer.ggml.model", "llama", err));
    GG_TRY(gguf_meta_set_strz(m, "tokenizer.ggml.pre", "default", err));
    GG_TRY(gguf_meta_set_str_array(m, "tokenizer.ggml.tokens", v->token, v->n,
                                   err));
    GG_TRY(gguf_meta_set_array(m, "tokenizer.ggml.scores", GGUF_VAL_F32,
                               v->score, v->n, err));
    GG_TRY(gguf_meta_set_array(m, "tokenizer.ggml.token_type", GGUF_VAL_I32,
                               v->type, v->n, err));
    GG_TRY(gguf_meta_set_u32(m, "tokenizer.ggml.unknown_token_id", 0, err));
    GG_TRY(gguf_meta_set_u32(m, "tokenizer.ggml.bos_token_id", 1, err));
    GG_TRY(gguf_meta_set_u32(m, "tokenizer.ggml.eos_token_id", 2, err));
    return gguf_meta_set_bool(m, "tokenizer.ggml.add_bos_token", 1, err);
}

static enum gguf_status make_vocab(struct gguf_meta *m, uint32_t n,
                                   struct gguf_error *err)
{
    struct vocab v = { .room = n };
    v.token = calloc(n, sizeof *v.token);
    v.score = calloc(n, sizeof *v.score);
    v.type = calloc(n, sizeof *v.type);
    v.text = calloc(n, sizeof *v.text);
    enum gguf_status st = GGUF_OK;
    if (v.token && v.score && v.type && v.text)
        add_tokens(&v);
    else
        st = gg_error_set_nomem(err, n * sizeof *v.text);
    if (st == GGUF_OK)
        st = set_vocab(m, &v, err);
    free(v.token);
    free(v.score);
    free(v.type);
    free(v.text);
    return st;
}

static enum gguf_status copy_vocab(struct gguf_meta *m,
                                   const struct gguf_file *from, int64_t *n,
                                   struct gguf_error *err)
{
    const char prefix[] = "tokenizer.";
    const struct gguf_kv *tokens =
        gguf_file_kv_find(from, "tokenizer.ggml.tokens");
    if (!tokens || gguf_kv_check_array(tokens, GGUF_VAL_STR, err) != GGUF_OK)
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "the file has no tokenizer.ggml.tokens");
    *n = (int64_t)tokens->n;
    for (size_t i = 0; i < gguf_file_n_kv(from); i++) {
        const struct gguf_kv *kv = gguf_file_kv(from, i);
        if (kv->key.size >= sizeof prefix - 1 &&
            !memcmp(kv->key.data, prefix, sizeof prefix - 1))
            GG_TRY(gguf_meta_set_kv(m, NULL, kv, err));
    }
    return GGUF_OK;
}

/* ---- all of it ---- */

static enum gguf_status fill_synth(struct synth *s,
                                   const struct gguf_file *vocab,
                                   struct gguf_error *err)
{
    int64_t n_vocab = s->size->n_vocab;
    GG_TRY(gguf_meta_create(&s->meta, NULL, err));
    GG_TRY(set_keys(s->meta, s->size, err));
    GG_TRY(vocab ? copy_vocab(s->meta, vocab, &n_vocab, err)
                 : make_vocab(s->meta, s->size->n_vocab, err));
    GG_TRY(add_tensors(s, n_vocab, err));
    s->description = (struct gg_description){ .origin = s,
                                              .meta = s->meta,
                                              .list = &s->list,
                                              .n_files = 1,
                                              .is_new = true };
    return GGUF_OK;
}

enum gguf_status synth_create(struct synth **out, const struct synth_size *z,
                              uint64_t seed, const struct gguf_file *vocab,
                              struct gguf_error *err)
{
    static const struct gg_data_ops ops = { .n_tensors = list_n,
                                            .info = list_info,
                                            .rows = list_rows,
                                            .bytes = list_bytes };
    struct synth *s = gg_mem_alloc_zero(NULL, 1, sizeof *s);
    *out = NULL;
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    s->list.ops = &ops;
    s->size = z;
    s->seed = seed;
    const enum gguf_status st = fill_synth(s, vocab, err);
    if (st != GGUF_OK) {
        synth_destroy(s);
        return st;
    }
    *out = s;
    return GGUF_OK;
}

void synth_destroy(struct synth *s)
{
    if (!s)
        return;
    gg_mem_free(NULL, s->t);
    gguf_meta_destroy(s->meta);
    gg_mem_free(NULL, s);
}

const struct gg_data *synth_data(const struct synth *s)
{
    return &s->list;
}

/* Importance data for every tensor that needs some. */
static enum gguf_status add_importance(const struct gguf_quant *job,
                                       struct gguf_imatrix *im,
                                       struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < gguf_quant_n_tensors(job) && st == GGUF_OK; i++) {
        const struct gguf_quant_tensor *t = gguf_quant_tensor(job, i);
        const size_t mats = (size_t)t->ne[2], cols = (size_t)t->ne[0];
        if (!t->needs_imatrix)
            continue;
        float *sums = calloc(cols * mats, sizeof *sums);
        float *counts = calloc(mats, sizeof *counts);
        for (size_t k = 0; sums && k < cols * mats; k++)
            sums[k] = 0.1f + (float)(mix_bits(k) >> 40) * 0x1p-22f;
        for (size_t k = 0; counts && k < mats; k++)
            counts[k] = 1;
        st = sums && counts
                 ? gguf_imatrix_add(im, t->name, cols, mats, sums, counts, err)
                 : gg_error_set_nomem(err, cols * mats * 4);
        free(sums);
        free(counts);
    }
    return st;
}

enum gguf_status synth_write(struct synth *s, const struct gguf_recipe *recipe,
                             struct gguf_pool *pool, const char *path,
                             struct gguf_error *err)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant_totals totals = GGUF_QUANT_TOTALS_INIT;
    struct gguf_imatrix *im = NULL;
    struct gguf_quant *job;
    p.recipe = recipe;
    p.pool = pool;
    o.force = 1;
    o.no_sync = 1;
    enum gguf_status st = gg_job_create(&job, &s->description, &p, err);
    if (st == GGUF_OK)
        st = gguf_quant_totals(job, &totals, err);
    if (st == GGUF_OK && totals.n_needs_imatrix) {
        st = gguf_imatrix_create(&im, NULL, err);
        if (st == GGUF_OK)
            st = add_importance(job, im, err);
        gguf_quant_destroy(job);
        job = NULL;
        p.imatrix = im;
        if (st == GGUF_OK)
            st = gg_job_create(&job, &s->description, &p, err);
    }
    if (st == GGUF_OK)
        st = gguf_quant_run(job, path, &o, err);
    gguf_quant_destroy(job);
    gguf_imatrix_destroy(im);
    return st;
}
