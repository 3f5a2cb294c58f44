/* SPDX-License-Identifier: MIT */
/* fuzz_arch.c - small changes of a model of any architecture: opened,
 * tokenized, evaluated
 *
 * The first byte or two choose a model of tests/family. Each further group of
 * bytes is a change: a key's value or type, an array's length, a missing or
 * new key, a tensor's shape, name or type, or a vocabulary that does not fit.
 * The model is refused with a message, or it computes.
 */
#include "config.h"
#include "gguf/cpu.h"
#include "gguf/session.h"
#include "gguf/verify.h"
#include "tests/fuzz/fuzz.h"
#include "tests/family/skeleton.h"
#include "tests/ignore_status.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_MODELS = 512,
    MAX_CHANGES = 8,
    N_TOKENS = 6,
    MAX_LAYERS = 64,
    OWN_WEIGHTS = 509,
    MAX_ELEMENTS = 1 << 20, /* weights of a model */
    MAX_GRAPH = 64 << 20    /* bytes of a session */
};

static char names[MAX_MODELS][64];
static size_t n_names;
static struct skeleton model;

/* ---- values that may be wrong ---- */

static uint64_t odd_number(struct bytes *in)
{
    static const uint64_t odd[] = {
        0,   1,   2,    3,          4,          5,    7,   8,         16,  31,
        32,  33,  63,   64,         65,         96,   127, 128,       129, 192,
        255, 256, 1000, 0x7fffffff, 0x80000000, 1e12, -1u, UINT64_MAX
    };
    return odd[take(in) % (sizeof odd / sizeof *odd)];
}

static float odd_float(struct bytes *in)
{
    static const uint32_t odd[] = { 0,          0x80000000, 0x3f800000,
                                    0xbf800000, 0x7f800000, 0xff800000,
                                    0x7fc00000, 1,          0x7f7fffff,
                                    0x3a83126f, 0x461c4000, 0x40000000 };
    float f;
    memcpy(&f, &odd[take(in) % (sizeof odd / sizeof *odd)], sizeof f);
    return f;
}

static const char *odd_text(struct bytes *in)
{
    static const char *const odd[] = {
        "",      "none",      "linear",    "yarn", "longrope", "llama",
        "gpt2",  "bert",      "t5",        "rwkv", "plamo2",   "no_vocab",
        "a\377", "default",   "silu",      "gelu", "mean",     "tekken",
        "qwen2", "hybriddna", "whitespace"
    };
    return odd[take(in) % (sizeof odd / sizeof *odd)];
}

/* ---- changes of metadata ---- */

static void set_array(struct bytes *in, const char *key)
{
    static const uint8_t lengths[] = { 0, 1, 2, 3, 4, 5, 6, 20, 27, 64 };
    uint32_t v[64];
    float f[64];
    struct gguf_str s[64];
    const unsigned n = lengths[take(in) % sizeof lengths];
    const uint8_t kind = take(in);
    for (unsigned i = 0; i < n; i++) {
        v[i] = (uint32_t)odd_number(in);
        f[i] = odd_float(in);
        s[i] = (struct gguf_str){ "text", 4 };
    }
    switch (kind % 6) {
    case 0:
        ignore_status(
            gguf_meta_set_array(model.g.meta, key, GGUF_VAL_F32, f, n, NULL));
        break;
    case 1:
        ignore_status(gguf_meta_set_str_array(model.g.meta, key, s, n, NULL));
        break;
    case 2:
        ignore_status(
            gguf_meta_set_array(model.g.meta, key, GGUF_VAL_I32, v, n, NULL));
        break;
    default:
        ignore_status(
            gguf_meta_set_array(model.g.meta, key, GGUF_VAL_U32, v, n, NULL));
    }
}

static void set_key(struct bytes *in, const char *key)
{
    struct gguf_meta *m = model.g.meta;
    const uint64_t v = odd_number(in);
    switch (take(in) % 8) {
    case 0:
    case 1:
    case 2: ignore_status(gguf_meta_set_u32(m, key, (uint32_t)v, NULL)); break;
    case 3:
        ignore_status(gguf_meta_set_f32(m, key, odd_float(in), NULL));
        break;
    case 4: set_array(in, key); break;
    case 5:
        ignore_status(gguf_meta_set_strz(m, key, odd_text(in), NULL));
        break;
    case 6: ignore_status(gguf_meta_set_bool(m, key, v & 1, NULL)); break;
    default: ignore_status(gguf_meta_set_i64(m, key, (int64_t)v, NULL));
    }
}

/* Choose the name of a key that the model has, or could have. */
static bool choose_key(struct bytes *in, char out[128])
{
    const size_t n = gguf_meta_n_kv(model.g.meta), i = take(in);
    const uint8_t which = take(in);
    if (which < 160 && n) {
        const struct gguf_str k = gguf_meta_kv(model.g.meta, i % n)->key;
        snprintf(out, 128, "%.*s", (int)k.size, k.data);
        return true;
    }
    size_t n_all = 0;
    while (gguf_hparam_at(n_all))
        n_all++;
    const char *key = gguf_hparam_at(i % n_all)->key;
    const struct gguf_kv *kv =
        gguf_meta_find(model.g.meta, "general.architecture");
    struct gguf_str arch = { "", 0 };
    if (key[0] != '/' && (!kv || gguf_kv_get_str(kv, &arch, NULL) != GGUF_OK))
        return false;
    snprintf(out, 128, key[0] == '/' ? "%.*s%s" : "%.*s.%s", (int)arch.size,
             arch.data, key + (key[0] == '/'));
    return true;
}

static void change_key(struct bytes *in)
{
    char key[128];
    if (choose_key(in, key))
        set_key(in, key);
}

static void drop_key(struct bytes *in)
{
    char key[128];
    if (choose_key(in, key))
        gguf_meta_remove(model.g.meta, key);
}

/* ---- changes of tensors ---- */

static struct gen_tensor *choose_tensor(struct bytes *in)
{
    const size_t i = take(in) | (size_t)take(in) << 8;
    return model.g.n ? &model.g.t[i % model.g.n] : NULL;
}

static void drop_tensor(struct bytes *in)
{
    struct gen_tensor *t = choose_tensor(in);
    if (t)
        *t = model.g.t[--model.g.n];
}

static void reshape_tensor(struct bytes *in)
{
    struct gen_tensor *t = choose_tensor(in);
    if (!t)
        return;
    int64_t *ne = &t->ne[take(in) % 4];
    switch (take(in) % 6) {
    case 0: *ne = *ne / 2; break;
    case 1: *ne = *ne * 2; break;
    case 2: *ne = *ne + 1; break;
    case 3: *ne = (int64_t)(odd_number(in) & 0xff); break;
    case 4: t->n_dims = 1 + take(in) % 4; break;
    default: {
        const int64_t first = t->ne[0];
        t->ne[0] = t->ne[1];
        t->ne[1] = first;
    }
    }
    for (unsigned i = 0; i < 4; i++)
        t->ne[i] = i < t->n_dims && t->ne[i] > 0 ? t->ne[i] : 1;
}

/* Rename a tensor: to another one's name, with a word more or less, or in
 * another layer. */
static void rename_tensor(struct bytes *in)
{
    static const char *const words[] = {
        "attn_q.bias",           "attn_output.bias",     "ffn_up.bias",
        "ffn_gate.weight",       "attn_norm_2.weight",   "attn_q_norm.weight",
        "ffn_gate_inp.weight",   "ffn_gate_inp.bias",    "exp_probs_b.bias",
        "attn_sinks.weight",     "rope_freqs.weight",    "ffn_norm.weight",
        "attn_rel_b.weight",     "ffn_gate_exps.weight", "attn_qkv.weight",
        "ffn_down_shexp.weight", "attn_gate.weight",     "ssm_conv1d.bias"
    };
    struct gen_tensor *t = choose_tensor(in);
    const char *word = words[take(in) % (sizeof words / sizeof *words)];
    char name[64];
    unsigned il = 0;
    if (!t)
        return;
    (void)sscanf(t->name, "blk.%u.", &il);
    snprintf(name, sizeof name, "blk.%u.%s", il + take(in) % 2, word);
    memcpy(t->name, name, sizeof name);
}

/* Add a copy of a tensor under another name. */
static void add_tensor(struct bytes *in)
{
    struct gen_tensor *t = choose_tensor(in);
    struct gen *g = &model.g;
    if (!t || g->n == GEN_MAX_TENSORS)
        return;
    g->t[g->n] = *t;
    char *end = strstr(g->t[g->n].name, ".weight");
    if (!end || strlen(g->t[g->n].name) > 56)
        return;
    static const char *const ends[] = { ".bias", ".scale", ".x", "_2.weight" };
    const char *with = ends[take(in) % 4];
    memcpy(end, with, strlen(with) + 1);
    if (strstr(end, ".bias")) {
        g->t[g->n].n_dims = 1;
        g->t[g->n].ne[0] = t->ne[1];
        g->t[g->n].ne[1] = 1;
    }
    g->n++;
}

/* ---- a vocabulary ---- */

static void add_vocab(struct bytes *in)
{
    struct gguf_meta *m = model.g.meta;
    static struct gguf_str text[SKELETON_VOCAB + 1], merge[8];
    static char word[SKELETON_VOCAB + 1][8];
    static float score[SKELETON_VOCAB + 1];
    static int32_t kind[SKELETON_VOCAB + 1];
    static const char *const merges[] = { "a b", "ab c", "b a",   "a",
                                          "",    " ",    "a b c", "ab ab" };
    const size_t n = SKELETON_VOCAB + take(in) % 3 - 1;
    const uint8_t how = take(in);
    for (size_t i = 0; i < n; i++) {
        snprintf(word[i], sizeof word[i], i < 64 ? "%c" : "t%c",
                 i < 64 ? (int)('!' + i) : (int)('!' + i - 64));
        text[i] = (struct gguf_str){ word[i], strlen(word[i]) };
        score[i] = (float)i;
        kind[i] = i < 3 ? 3 : 1;
    }
    if (how & 1)
        text[take(in) % n] = text[take(in) % n];
    if (how & 2)
        score[take(in) % n] = odd_float(in);
    if (how & 4)
        kind[take(in) % n] = (int32_t)odd_number(in);
    for (size_t i = 0; i < 8; i++)
        merge[i] = (struct gguf_str){ merges[(i + how) % 8],
                                      strlen(merges[(i + how) % 8]) };
    ignore_status(
        gguf_meta_set_strz(m, "tokenizer.ggml.model", odd_text(in), NULL));
    ignore_status(
        gguf_meta_set_strz(m, "tokenizer.ggml.pre", odd_text(in), NULL));
    ignore_status(
        gguf_meta_set_str_array(m, "tokenizer.ggml.tokens", text, n, NULL));
    if (how & 8)
        ignore_status(gguf_meta_set_array(m, "tokenizer.ggml.scores",
                                          GGUF_VAL_F32, score, n - (how >> 7),
                                          NULL));
    if (how & 16)
        ignore_status(gguf_meta_set_array(m, "tokenizer.ggml.token_type",
                                          GGUF_VAL_I32, kind, n, NULL));
    if (how & 32)
        ignore_status(gguf_meta_set_str_array(m, "tokenizer.ggml.merges",
                                              merge, take(in) % 9, NULL));
    if (how & 64)
        ignore_status(gguf_meta_set_u32(m, "tokenizer.ggml.bos_token_id",
                                        (uint32_t)odd_number(in), NULL));
}

typedef void change_fn(struct bytes *in);
static change_fn *const changes[] = {
    change_key,    change_key,  change_key,     change_key,
    drop_key,      drop_tensor, reshape_tensor, reshape_tensor,
    rename_tensor, add_tensor,  add_vocab
};

/* ---- using the model ---- */

static void check_warning(void *user, const char *message)
{
    (void)user;
    MUST(message[0]);
}

static bool note_finding(void *user, const struct gguf_finding *f)
{
    (void)user;
    MUST(f->message[0]);
    return 0;
}

static void through_vocab(const struct gguf_vocab *v)
{
    static const char text[] = "ab abc \xc3\xa4\n <0x41> a\xff !#";
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_error err;
    char back[256];
    if (gguf_vocab_tokenize(v, text, sizeof text - 1,
                            GGUF_TOKENIZE_ADD_SPECIAL, &t, &err) == GGUF_OK) {
        for (size_t i = 0; i < t.n; i++)
            MUST(t.id[i] >= 0 && (size_t)t.id[i] < gguf_vocab_n_tokens(v));
        (void)gguf_vocab_detokenize(v, t.id, t.n, 0, back, sizeof back);
    } else {
        MUST(err.message[0]);
    }
    gguf_tokens_fini(&t);
}

/* Decode a few tokens at once, then one more. */
static void decode_tokens(struct gguf_session *s,
                          const struct gguf_model_info *info)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct gguf_error err;
    gguf_token id[N_TOKENS];
    const float *rows;
    for (unsigned i = 0; i < N_TOKENS; i++)
        id[i] = (gguf_token)(i * 37 % info->n_vocab);
    b.n = N_TOKENS - 1;
    b.token = id;
    enum gguf_status st = GGUF_OK;
    gguf_error_clear(&err);
    if (info->encodes_first)
        st = gguf_session_encode(s, &b, &err);
    for (int i = 0; i < 2 && st == GGUF_OK; i++) {
        st = gguf_session_decode(s, &b, &err);
        if (st == GGUF_OK && info->has_logits)
            st = gguf_session_logits(s, 0, 1, &rows, &err);
        b.n = 1;
        b.token = id + N_TOKENS - 1;
    }
    MUST(st == GGUF_OK || (err.status == st && err.message[0]));
}

static void evaluate_model(const struct gguf_model *m)
{
    const struct gguf_model_info *info = gguf_model_info(m);
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_cpu_params cpu = GGUF_CPU_PARAMS_INIT;
    struct gguf_session *s = NULL;
    struct gguf_error err;
    uint64_t cache, graph;
    through_vocab(gguf_model_vocab(m));
    if (info->n_layer > MAX_LAYERS || info->n_vocab > 1000)
        return; /* would take long */
    p.n_ctx = 2 * N_TOKENS;
    cpu.n_threads = 1;
    MUST(gguf_cpu_backend_create(&p.backend, &cpu, NULL) == GGUF_OK);
    gguf_error_clear(&err);
    enum gguf_status st =
        gguf_session_estimate_memory(m, &p, &cache, &graph, &err);
    if (st == GGUF_OK && cache + graph < MAX_GRAPH)
        st = gguf_session_create(&s, m, &p, &err);
    MUST(st == GGUF_OK || (err.status == st && err.message[0]));
    if (s)
        decode_tokens(s, info);
    gguf_session_destroy(s);
    gguf_backend_destroy(p.backend);
}

static void count_finding(const void *data, size_t size)
{
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    struct gguf_model *m = NULL;
    struct gguf_file *f;
    struct gguf_error err;
    p.warn.fn = check_warning;
    MUST(gguf_file_open_memory(&f, data, size, NULL, &err) == GGUF_OK);
    gguf_error_clear(&err);
    MUST(gguf_file_verify(f, NULL,
                          (struct gguf_finding_callback){ note_finding, NULL },
                          NULL) == GGUF_OK);
    const enum gguf_status st = gguf_model_create(&m, f, &p, &err);
    MUST(st == GGUF_OK ? m != NULL : !m && err.status == st && err.message[0]);
    if (m)
        evaluate_model(m);
    gguf_model_destroy(m);
    gguf_file_close(f);
}

static bool is_small(const struct gen *g)
{
    double n = 0;
    for (size_t i = 0; i < g->n; i++) {
        double one = 1;
        for (unsigned d = 0; d < g->t[i].n_dims; d++)
            one *= (double)g->t[i].ne[d];
        n += one;
    }
    return n <= MAX_ELEMENTS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = { data, size };
    size_t n_bytes;
    if (!n_names)
        n_names = skeleton_names(names, MAX_MODELS);
    MUST(n_names);
    const size_t i = take(&in) | (size_t)take(&in) << 8;
    const uint32_t dtype = take(&in) & 1 ? GGUF_DTYPE_F16 : GGUF_DTYPE_F32;
    MUST(skeleton_open(&model, names[i % n_names]));
    model.g.own = OWN_WEIGHTS;
    for (unsigned k = 0; in.n && k < MAX_CHANGES; k++)
        changes[take(&in) % (sizeof changes / sizeof *changes)](&in);
    void *file =
        is_small(&model.g) ? gen_file_if(&model.g, dtype, &n_bytes) : NULL;
    if (file)
        count_finding(file, n_bytes);
    free(file);
    skeleton_close(&model);
    return 0;
}

/* ---- seeds ---- */

/* Each model, with a few changes. */
void fuzz_make_seeds(void)
{
    enum { N = 27 };
    uint32_t x = 1;
    n_names = skeleton_names(names, MAX_MODELS);
    for (size_t i = 0; i < n_names; i++) {
        uint8_t b[N] = { (uint8_t)i, (uint8_t)(i >> 8), i % 5 == 0 };
        for (size_t k = 3; k < N; k++) {
            x = x * 1664525 + 1013904223; /* Knuth's constants */
            b[k] = (uint8_t)(x >> 24);
        }
        fix_bytes(new_seed(), b, i % 4 ? N : 3 + i % 24);
    }
}
