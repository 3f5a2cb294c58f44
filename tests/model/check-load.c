/* SPDX-License-Identifier: MIT */
/* check-load.c - models that must be refused, and what is said */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/failalloc.h"
#include "tests/hostile/hostile.h"
#include "tests/tap.h"

#include <inttypes.h>

/* ---- hostile files: column "model" of their table ---- */

static int n_warned;

static void on_warn(void *user, const char *message)
{
    (void)user;
    (void)message;
    n_warned++;
}

/* Open, read all weights, close. */
static enum gguf_status load(const char *path, struct gguf_error *err)
{
    struct gguf_file *file;
    struct gguf_model *model = NULL;
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    p.warn = on_warn;
    n_warned = 0;
    enum gguf_status st = gguf_file_open(&file, path, NULL, err);
    if (st == GGUF_OK)
        st = gguf_model_open(&model, file, &p, err);
    if (st == GGUF_OK)
        st = gguf_model_scan_finite(model, NULL, err);
    gguf_model_destroy(model);
    gguf_file_close(file);
    return st;
}

static void check_hostile(void)
{
    const char *dir = hostile_make();
    char line[1024], path[4096];
    int n = 0, n_wrong = 0;
    snprintf(path, sizeof path, "%s/expect.tsv", dir ? dir : "");
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *col[8], *p = line;
        for (int i = 0; i < 8; i++) {
            col[i] = p;
            p += strcspn(p, "\t\n");
            if (*p)
                *p++ = 0;
        }
        int accept = strcmp(col[6], "accept") == 0;
        if (line[0] == '#' || (!accept && strcmp(col[6], "reject") != 0))
            continue;
        struct gguf_error err = { GGUF_OK, 0, 0, "" };
        snprintf(path, sizeof path, "%s/%s", dir, col[0]);
        enum gguf_status st = load(path, &err);
        n++;
        if ((st == GGUF_OK) != accept || (st != GGUF_OK && !err.message[0])) {
            n_wrong++;
            printf("# %s: %s; %s\n", col[0],
                   st == GGUF_OK ? "accepted" : err.message, col[2]);
        }
    }
    if (f)
        fclose(f);
    hostile_remove();
    ok(n > 100 && !n_wrong, "%d models as the list expects", n - n_wrong);
}

/* ---- one wrong thing at a time ---- */

static const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = 32 };

static struct gen g;

static struct gen_tensor *tensor(const char *name)
{
    for (size_t i = 0; i < g.n; i++)
        if (strcmp(g.t[i].name, name) == 0)
            return &g.t[i];
    return &g.t[0];
}

static void u32(const char *key, uint32_t v)
{
    if (gguf_meta_set_u32(g.meta, key, v, NULL) != GGUF_OK)
        abort();
}

static void f32(const char *key, float v)
{
    if (gguf_meta_set_f32(g.meta, key, v, NULL) != GGUF_OK)
        abort();
}

static void str(const char *key, const char *v)
{
    if (gguf_meta_set_strz(g.meta, key, v, NULL) != GGUF_OK)
        abort();
}

static void nothing(void)
{
}
static void as_u64(void)
{
    if (gguf_meta_set_u64(g.meta, "llama.block_count", 1, NULL) != GGUF_OK)
        abort();
}
static void arch(void)
{
    str("general.architecture", "gem\033ma3");
}
static void heads(void)
{
    u32("llama.attention.head_count", 5);
}
static void odd_heads(void)
{
    u32("llama.attention.head_count", 32);
}
static void groups(void)
{
    u32("llama.attention.head_count_kv", 3);
}
static void layers(void)
{
    u32("llama.block_count", 4000000000u);
}
static void more_layers(void)
{
    u32("llama.block_count", 2);
}
static void no_width(void)
{
    gguf_meta_remove(g.meta, "llama.embedding_length");
}
static void eps(void)
{
    f32("llama.attention.layer_norm_rms_epsilon", -1);
}
static void rope_odd(void)
{
    u32("llama.rope.dimension_count", 3);
}
static void rope_scaling(void)
{
    str("llama.rope.scaling.type", "dynamic");
}
static void rope_factor(void)
{
    f32("llama.rope.scaling.factor", 0);
}
static void experts(void)
{
    u32("llama.expert_count", 8);
}
static void vocab_size(void)
{
    u32("llama.vocab_size", 33);
}
static void tokenizer(void)
{
    str("tokenizer.ggml.model", "replit");
}
static void wordpiece(void)
{
    static const char bytes[] = "abcdefghijklmnopqrstuvwxyz012345";
    struct gguf_str text[32];
    for (size_t i = 0; i < 32; i++)
        text[i] = (struct gguf_str){ bytes + i, 1 };
    str("tokenizer.ggml.model", "bert");
    if (gguf_meta_set_str_array(g.meta, "tokenizer.ggml.tokens", text, 32,
                                NULL) != GGUF_OK)
        abort();
}
static void missing(void)
{
    strcpy(tensor("blk.0.ffn_up.weight")->name, "blk.0.ffn_top.weight");
}
static void transposed(void)
{
    tensor("blk.0.ffn_up.weight")->ne[0] = 64;
    tensor("blk.0.ffn_up.weight")->ne[1] = 32;
}
static void extra(void)
{
    gen_tensor(&g, 32, 0, "blk.0.extra.weight");
}
static void shard(void)
{
    if (gguf_meta_set_u16(g.meta, "split.count", 3, NULL) != GGUF_OK ||
        gguf_meta_set_u16(g.meta, "split.no", 0, NULL) != GGUF_OK)
        abort();
}

static const struct {
    void (*change)(void);
    enum gguf_status status;
    const char *says; /* part of the message, or of the warning */
} changes[] = {
    { nothing, GGUF_OK, "" },
    { as_u64, GGUF_OK, "" },
    { arch, GGUF_E_ARCH, "architecture 'gem\\x1Bma3' is not supported" },
    { heads, GGUF_E_HPARAM, "llama.attention.head_count is 5" },
    { groups, GGUF_E_HPARAM, "no multiple of head_count_kv 3" },
    { odd_heads, GGUF_E_HPARAM,
      "attention.head_count makes heads of 1 elements" },
    { layers, GGUF_E_HPARAM, "llama.block_count is 4000000000" },
    { more_layers, GGUF_E_TENSOR, "'blk.1.attn_norm.weight' is missing" },
    { no_width, GGUF_E_NOTFOUND, "'llama.embedding_length' is missing" },
    { eps, GGUF_E_HPARAM, "epsilon is -1" },
    { rope_odd, GGUF_E_HPARAM, "llama.rope.dimension_count is 3" },
    { rope_scaling, GGUF_E_HPARAM, "scaling.type 'dynamic'" },
    { rope_factor, GGUF_E_HPARAM, "llama.rope.scaling.factor is 0" },
    { experts, GGUF_E_NOTFOUND, "'llama.expert_used_count' is missing" },
    { vocab_size, GGUF_E_TENSOR,
      "'token_embd.weight' has shape [32, 32], must be [32, 33]" },
    { tokenizer, GGUF_E_UNSUPPORTED, "'replit' is not supported yet" },
    { wordpiece, GGUF_OK, "" },
    { missing, GGUF_E_TENSOR, "'blk.0.ffn_up.weight' is missing" },
    { transposed, GGUF_E_TENSOR,
      "'blk.0.ffn_up.weight' has shape [64, 32], must be [32, 64]" },
    { extra, GGUF_OK, "'blk.0.extra.weight' is not used" },
    { shard, GGUF_E_UNSUPPORTED, "one of 3 shards" },
};

static char warned[512];

static void keep_warning(void *user, const char *message)
{
    (void)user;
    snprintf(warned, sizeof warned, "%s", message);
}

static enum gguf_status open_bytes(const void *data, size_t size,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err)
{
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    p.allocator = allocator;
    p.warn = keep_warning;
    return run_try(data, size, &p, err);
}

static void check_changes(void)
{
    for (size_t i = 0; i < GG_LEN(changes); i++) {
        struct gguf_error err = { GGUF_OK, 0, 0, "" };
        size_t size;
        gen_init(&g, 3);
        gen_model(&g, &spec);
        changes[i].change();
        void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
        warned[0] = 0;
        enum gguf_status st = open_bytes(file, size, NULL, &err);
        const char *said = st == GGUF_OK ? warned : err.message;
        ok(st == changes[i].status && strstr(said, changes[i].says),
           "change %zu: %s", i, *said ? said : "loads");
        free(file);
        gen_fini(&g);
    }
}

/* ---- no memory ---- */

static void check_nomem(const void *data, size_t size)
{
    enum gguf_status st = GGUF_E_NOMEM;
    long n;
    int bad = 0;
    for (n = 0; n < 1000 && st == GGUF_E_NOMEM; n++) {
        struct failalloc f;
        const struct gguf_allocator *a = failalloc_from(&f, (unsigned)n);
        st = open_bytes(data, size, a, NULL);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 5,
       "each of %ld allocations may fail; nothing is lost", n - 1);
}

/* ---- NaN ---- */

static void check_nan(uint8_t *data, size_t size)
{
    struct gguf_file *file;
    struct gguf_model *model;
    struct gguf_error err;
    if (gguf_file_open_memory(&file, data, size, NULL, &err) != GGUF_OK ||
        gguf_model_open(&model, file, NULL, &err) != GGUF_OK) {
        ok(0, "%s", err.message);
        return;
    }
    ok(gguf_model_scan_finite(model, NULL, &err) == GGUF_OK,
       "all are numbers");
    const struct gguf_tensor_info *t =
        gguf_file_tensor_find(file, "blk.0.ffn_down.weight");
    uint8_t *w = data + gguf_file_data_off(file) + t->off;
    memset(w + 4 * 1234, 0xff, 4);
    ok(gguf_model_scan_finite(model, NULL, &err) == GGUF_E_NONFINITE &&
           strstr(err.message,
                  "'blk.0.ffn_down.weight': element 1234 is not a"),
       "%s", err.message);
    ok(err.offset == (uint64_t)(w + 4 * 1234 - data), "its byte is %" PRIu64,
       err.offset);
    gguf_model_destroy(model);
    gguf_file_close(file);
}

/* ---- a header with a few bytes changed: refused, or it computes ---- */

static void add_vocab(void)
{
    static char text[32][8];
    struct gguf_str tokens[32];
    float score[32];
    int32_t kind[32];
    for (int i = 0; i < 32; i++) {
        int n = snprintf(text[i], sizeof text[i],
                         i < 3    ? "<s%d>"
                         : i < 16 ? "<0x%02X>"
                                  : "t%d",
                         i);
        tokens[i] = (struct gguf_str){ text[i], (size_t)n };
        score[i] = (float)-i;
        kind[i] = i < 3 ? 3 : i < 16 ? 6 : 1;
    }
    str("tokenizer.ggml.model", "llama");
    u32("tokenizer.ggml.bos_token_id", 1);
    if (gguf_meta_set_str_array(g.meta, "tokenizer.ggml.tokens", tokens, 32,
                                NULL) ||
        gguf_meta_set_array(g.meta, "tokenizer.ggml.scores", GGUF_VAL_F32,
                            score, 32, NULL) ||
        gguf_meta_set_array(g.meta, "tokenizer.ggml.token_type", GGUF_VAL_I32,
                            kind, 32, NULL))
        abort();
}

static bool compute(const void *data, size_t size, struct gguf_error *err)
{
    static const gguf_token tok[] = { 1, 0, 31, 7 };
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = { .struct_size = sizeof b, .n = 4, .token = tok };
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct run r;
    p.n_ctx = 8;
    bool good = run_open(&r, data, size, 1, &p);
    if (good) {
        const float *row;
        enum gguf_status st = gguf_vocab_tokenize(
            gguf_model_vocab(r.model), "a t17 <s1>", 10,
            GGUF_TOKENIZE_ADD_SPECIAL | GGUF_TOKENIZE_PARSE_SPECIAL, &t,
            &r.err);
        good = (st == GGUF_OK || st == GGUF_E_VOCAB ||
                st == GGUF_E_UNSUPPORTED) &&
               gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
               gguf_session_logits(r.session, 0, 1, &row, &r.err) == GGUF_OK;
    }
    *err = r.err;
    gguf_tokens_fini(&t);
    run_close(&r);
    return good;
}

static void check_mutations(void)
{
    enum { N = 4000 };
    struct gguf_error err;
    struct gguf_file *file;
    size_t size, head;
    int n_good = 0, n_mute = 0;
    gen_init(&g, 4);
    gen_model(&g, &spec);
    add_vocab();
    uint8_t *data = gen_file(&g, GGUF_DTYPE_F32, &size);
    uint8_t *copy = malloc(size);
    if (gguf_file_open_memory(&file, data, size, NULL, NULL) != GGUF_OK)
        abort();
    head = (size_t)gguf_file_data_off(file);
    gguf_file_close(file);
    ok(compute(data, size, &err), "a model with a vocabulary computes");
    memcpy(copy, data, size);
    for (int i = 0; i < N; i++) {
        size_t at[3], n = 1 + (size_t)rnd_below(3);
        for (size_t k = 0; k < n; k++) {
            at[k] = (size_t)rnd_below(head);
            copy[at[k]] = rnd_below(2) ? (uint8_t)rnd64()
                                       : (uint8_t)(1u << rnd_below(8));
        }
        if (compute(copy, size, &err))
            n_good++;
        else
            n_mute += !err.message[0];
        for (size_t k = 0; k < n; k++)
            copy[at[k]] = data[at[k]];
    }
    ok(!n_mute && n_good > 0 && n_good < N,
       "%d headers with bytes changed: %d compute, all others say why", N,
       n_good);
    free(copy);
    free(data);
    gen_fini(&g);
}

int main(void)
{
    size_t size;
    check_hostile();
    check_changes();
    check_mutations();
    gen_init(&g, 3);
    gen_model(&g, &spec);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    check_nomem(file, size);
    check_nan(file, size);
    free(file);
    gen_fini(&g);
    return done_testing();
}
