/* SPDX-License-Identifier: MIT */
/* check-override.c - metadata given by the caller replaces that of the file */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <inttypes.h>

enum { N_VOCAB = 32, N_TOK = 6 };

static const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = N_VOCAB };
static const gguf_token tok[N_TOK] = { 1, 5, 9, 5, 30, 2 };

static char warned[512];
static int n_warned;

static void keep_warning(void *user, const char *message)
{
    (void)user;
    snprintf(warned, sizeof warned, "%s", message);
    n_warned++;
}

static void must_set(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

static struct gguf_meta *no_pairs(void)
{
    struct gguf_meta *m;
    must_set(gguf_meta_create(&m, NULL, NULL));
    return m;
}

/* Make the file of the model. change: edits its metadata; NULL: none. */
static void *make_file(void (*change)(struct gguf_meta *), size_t *size)
{
    struct gen g;
    gen_init(&g, 3);
    gen_model(&g, &spec);
    if (change)
        change(g.meta);
    void *data = gen_file(&g, GGUF_DTYPE_F32, size);
    gen_fini(&g);
    return data;
}

static bool get_logits(const void *data, size_t size,
                       const struct gguf_meta *meta, float *out)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct run r;
    b.n = N_TOK;
    b.token = tok;
    p.n_ctx = 16;
    mp.meta = meta;
    mp.warn.fn = keep_warning;
    n_warned = 0;
    bool good =
        run_open_params(&r, data, size, &mp, &p) && run_logits(&r, &b, out);
    if (!good)
        printf("# %s\n", r.err.message);
    run_close(&r);
    return good;
}

/* ---- evaluated as if the file had them ---- */

static void set_freq(struct gguf_meta *m)
{
    must_set(gguf_meta_set_f32(m, "llama.rope.freq_base", 500, NULL));
}
static void set_eps(struct gguf_meta *m)
{
    must_set(gguf_meta_set_f32(m, "llama.attention.layer_norm_rms_epsilon",
                               0.5f, NULL));
}
static void new_key(struct gguf_meta *m)
{
    must_set(gguf_meta_set_u32(m, "llama.rope.dimension_count", 4, NULL));
}
static void other_type(struct gguf_meta *m)
{
    must_set(gguf_meta_set_u64(m, "llama.rope.freq_base", 100, NULL));
}
static void set_several(struct gguf_meta *m)
{
    set_freq(m);
    set_eps(m);
    must_set(gguf_meta_set_u16(m, "llama.attention.head_count", 2, NULL));
    must_set(gguf_meta_set_u16(m, "llama.attention.head_count_kv", 1, NULL));
}
static void set_arch(struct gguf_meta *m)
{
    static const char *const keys[] = { "vocab_size",
                                        "context_length",
                                        "embedding_length",
                                        "block_count",
                                        "feed_forward_length",
                                        "attention.head_count",
                                        "attention.head_count_kv" };
    static const uint32_t values[] = { N_VOCAB, 64, 32, 1, 64, 4, 2 };
    char key[64];
    for (size_t i = 0; i < GG_LEN(keys); i++) {
        snprintf(key, sizeof key, "mistral3.%s", keys[i]);
        must_set(gguf_meta_set_u32(m, key, values[i], NULL));
    }
    must_set(gguf_meta_set_f32(m, "mistral3.attention.layer_norm_rms_epsilon",
                               1e-5f, NULL));
    must_set(gguf_meta_set_strz(m, "general.architecture", "mistral3", NULL));
}

static const struct {
    void (*change)(struct gguf_meta *);
    const char *what;
    bool same; /* digits are those of the file without overrides */
} changes[] = {
    { set_freq, "a float", false },
    { set_eps, "another float", false },
    { new_key, "a key that the file lacks", false },
    { other_type, "an integer where a float was", false },
    { set_several, "several", false },
    { set_arch, "another architecture", true },
};

static void check_equal(void)
{
    size_t size;
    static float plain[N_TOK * N_VOCAB], want[N_TOK * N_VOCAB],
        got[N_TOK * N_VOCAB];
    void *data = make_file(NULL, &size);
    struct gguf_meta *meta = no_pairs();
    ok(get_logits(data, size, NULL, plain) &&
           get_logits(data, size, meta, got) &&
           !memcmp(plain, got, sizeof got),
       "no pairs change nothing");
    gguf_meta_destroy(meta);
    for (size_t i = 0; i < GG_LEN(changes); i++) {
        size_t size2;
        void *changed = make_file(changes[i].change, &size2);
        meta = no_pairs();
        changes[i].change(meta);
        ok(get_logits(changed, size2, NULL, want) &&
               get_logits(data, size, meta, got) &&
               !memcmp(want, got, sizeof got) &&
               changes[i].same == !memcmp(plain, got, sizeof got) && !n_warned,
           "%s: the bits of a file that has it", changes[i].what);
        gguf_meta_destroy(meta);
        free(changed);
    }
    free(data);
}

/* ---- refused, and warned of ---- */

static void set_heads(struct gguf_meta *m)
{
    must_set(gguf_meta_set_u32(m, "llama.attention.head_count", 5, NULL));
}
static void set_text(struct gguf_meta *m)
{
    must_set(gguf_meta_set_strz(m, "llama.block_count", "many", NULL));
}
static void set_layers(struct gguf_meta *m)
{
    must_set(gguf_meta_set_u32(m, "llama.block_count", 2, NULL));
}
static void set_alignment(struct gguf_meta *m)
{
    must_set(gguf_meta_set_u32(m, "general.alignment", 64, NULL));
}
static void set_shards(struct gguf_meta *m)
{
    must_set(gguf_meta_set_u16(m, "split.count", 0, NULL));
}
static void no_arch(struct gguf_meta *m)
{
    must_set(gguf_meta_set_strz(m, "general.architecture", "lama", NULL));
}
static void set_typo(struct gguf_meta *m)
{
    must_set(gguf_meta_set_f32(m, "llama.rope.freq_bass", 1, NULL));
}
static void set_name(struct gguf_meta *m)
{
    must_set(gguf_meta_set_strz(m, "general.name", "x", NULL));
}
static void set_bos(struct gguf_meta *m)
{
    must_set(gguf_meta_set_u32(m, "tokenizer.ggml.bos_token_id", 2, NULL));
}

static const struct {
    void (*change)(struct gguf_meta *);
    enum gguf_status status;
    const char *says;
} refusals[] = {
    { set_heads, GGUF_E_HPARAM, "llama.attention.head_count is 5" },
    { set_text, GGUF_E_TYPE, "llama.block_count" },
    { set_layers, GGUF_E_TENSOR, "'blk.1.attn_norm.weight' is missing" },
    { set_alignment, GGUF_E_INVALID,
      "'general.alignment' describes the layout" },
    { set_shards, GGUF_E_INVALID, "'split.count' describes the layout" },
    { no_arch, GGUF_E_ARCH, "'lama' is not supported" },
    { set_typo, GGUF_OK, "'llama.rope.freq_bass' is given a value that no" },
    { set_name, GGUF_OK, "'general.name' is given a value that no" },
    { set_bos, GGUF_OK, "" },
};

static enum gguf_status open_bytes(const void *data, size_t size,
                                   const struct gguf_meta *meta,
                                   const struct gguf_allocator *a,
                                   struct gguf_error *err)
{
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    p.allocator = a;
    p.meta = meta;
    p.warn.fn = keep_warning;
    return run_try(data, size, &p, err);
}

static void check_refused(void)
{
    size_t size;
    void *data = make_file(NULL, &size);
    for (size_t i = 0; i < GG_LEN(refusals); i++) {
        struct gguf_error err = { GGUF_OK, 0, GGUF_NO_OFFSET, "" };
        struct gguf_meta *meta = no_pairs();
        refusals[i].change(meta);
        warned[0] = 0;
        const enum gguf_status st = open_bytes(data, size, meta, NULL, &err);
        const char *said = st == GGUF_OK ? warned : err.message;
        ok(st == refusals[i].status && strstr(said, refusals[i].says) &&
               (*refusals[i].says || !*said) && err.offset == GGUF_NO_OFFSET,
           "change %zu: %s", i, *said ? said : "nothing is said");
        gguf_meta_destroy(meta);
    }
    free(data);
}

/* An error in a pair of the file reports its offset. */
static void check_offset(void)
{
    size_t size;
    void *data = make_file(set_heads, &size);
    struct gguf_meta *meta = no_pairs();
    struct gguf_error a, b;
    set_eps(meta);
    ok(open_bytes(data, size, NULL, NULL, &a) == GGUF_E_HPARAM &&
           open_bytes(data, size, meta, NULL, &b) == GGUF_E_HPARAM &&
           a.offset == b.offset && a.offset < size,
       "a fault of the file stays at its byte, %" PRIu64, b.offset);
    gguf_meta_destroy(meta);
    free(data);
}

/* ---- the vocabulary by itself ---- */

static void check_vocab(void)
{
    size_t size;
    void *data = make_file(set_bos, &size);
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    struct gguf_file *file;
    struct gguf_vocab *v;
    struct gguf_meta *meta = no_pairs();
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    struct gguf_str texts[N_VOCAB];
    for (size_t i = 0; i < N_VOCAB; i++)
        texts[i] = (struct gguf_str){ letters + i, 1 };
    must_set(gguf_meta_set_strz(meta, "tokenizer.ggml.model", "bert", NULL));
    must_set(gguf_meta_set_str_array(meta, "tokenizer.ggml.tokens", texts,
                                     N_VOCAB, NULL));
    p.meta = meta;
    must_set(gguf_file_open_memory(&file, data, size, NULL, NULL));
    must_set(gguf_vocab_create(&v, file, &p, NULL));
    ok(gguf_vocab_n_tokens(v) == N_VOCAB &&
           gguf_vocab_find_token(v, (struct gguf_str){ "c", 1 }) == 2 &&
           gguf_vocab_special_id(v, GGUF_SPECIAL_BOS) == 2,
       "tokens of the pairs, and a key of the file");
    gguf_vocab_destroy(v);
    gguf_file_close(file);
    gguf_meta_destroy(meta);
    free(data);
}

/* ---- no memory ---- */

static void check_nomem(void)
{
    size_t size;
    void *data = make_file(NULL, &size);
    struct gguf_meta *meta = no_pairs();
    enum gguf_status st = GGUF_E_NOMEM;
    long n;
    int bad = 0;
    set_several(meta);
    for (n = 0; n < 1000 && st == GGUF_E_NOMEM; n++) {
        struct failalloc f;
        st = open_bytes(data, size, meta, failalloc_from(&f, (unsigned)n),
                        NULL);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 8,
       "each of %ld allocations may fail; nothing is lost", n - 1);
    gguf_meta_destroy(meta);
    free(data);
}

int main(void)
{
    check_equal();
    check_refused();
    check_offset();
    check_vocab();
    check_nomem();
    return done_testing();
}
