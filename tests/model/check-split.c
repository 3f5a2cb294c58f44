/* SPDX-License-Identifier: MIT */
/* check-split.c - a split model gives the bits of the whole file, and errors
 * name the right shard */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

enum { N_VOCAB = 40, N_TOK = 12 };

static const struct gen_spec spec = { .arch = "llama",
                                      .n_vocab = N_VOCAB,
                                      .n_ctx = 32,
                                      .n_embd = 32,
                                      .n_layer = 3,
                                      .n_ff = 64,
                                      .n_head = 4,
                                      .n_head_kv = 2,
                                      .eps = 1e-5f,
                                      .freq_base = 10000,
                                      .rope_freqs = 1 };

static char dir[] = "/tmp/check-split-XXXXXX", whole[64], prefix[64];

/* ---- files ---- */

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        exit(99);
}

static void write_whole(const struct gen *g, uint32_t dtype)
{
    size_t size;
    void *data = gen_file(g, dtype, &size);
    write_file(whole, data, size);
    free(data);
}

/* Split the file. Returns the number of shards. */
static size_t cut_file(const struct gguf_split_params *params)
{
    struct gguf_file *from;
    struct gguf_split_plan *plan;
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    job.no_sync = 1;
    if (gguf_file_open(&from, whole, NULL, NULL) ||
        gguf_split_plan_create(&plan, from, params, NULL) ||
        gguf_split_plan_write(plan, prefix, &job, NULL))
        exit(99);
    size_t n = gguf_split_plan_n_shards(plan);
    gguf_split_plan_destroy(plan);
    gguf_file_close(from);
    return n;
}

static const char *shard_path(size_t no, size_t n)
{
    static char path[128];
    if (gguf_split_name_format(path, sizeof path, prefix, (unsigned)no,
                               (unsigned)n, NULL))
        exit(99);
    return path;
}

static void remove_shards(size_t n)
{
    for (size_t no = 1; no <= n; no++)
        unlink(shard_path(no, n));
}

/* ---- the same bits ---- */

static bool get_logits(const char *path, unsigned n_threads, float *out,
                       struct gguf_model_info *info)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[N_TOK];
    struct gguf_batch b = { .struct_size = sizeof b,
                            .n = N_TOK,
                            .token = tok };
    struct run r;
    for (int i = 0; i < N_TOK; i++)
        tok[i] = i * 7 % N_VOCAB;
    bool good = run_open_path(&r, path, n_threads, &p) &&
                run_logits(&r, &b, out) && run_scan(&r);
    if (good)
        *info = *gguf_model_info(r.model);
    else
        printf("# %s\n", r.err.message);
    run_close(&r);
    return good;
}

static void check_same(const char *what, uint32_t dtype,
                       struct gguf_split_params params)
{
    static float want[N_TOK * N_VOCAB], got[3][N_TOK * N_VOCAB];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_model_info a, b[3];
    gguf_token tok[N_TOK];
    struct gguf_batch batch = { .struct_size = sizeof batch,
                                .n = N_TOK,
                                .token = tok };
    struct gen g;
    struct run r;
    gen_init(&g, 5);
    gen_model(&g, &spec);
    write_whole(&g, dtype);
    gen_fini(&g);
    for (int i = 0; i < N_TOK; i++)
        tok[i] = i * 7 % N_VOCAB;
    ok(run_open_path(&r, whole, 1, &p) && run_logits(&r, &batch, want),
       "%s: the whole file computes", what);
    a = *gguf_model_info(r.model);
    size_t n = cut_file(&params);
    const char *paths[] = { whole, prefix, shard_path(n, n) };
    for (unsigned i = 0; i < 3; i++)
        ok(get_logits(paths[i], i + 1, got[i], &b[i]) &&
               !memcmp(want, got[i], sizeof want) &&
               a.n_params == b[i].n_params &&
               a.weight_size == b[i].weight_size,
           "%s: the same bits, %s", what,
           i == 0   ? "opened as a set of one"
           : i == 1 ? "from all shards"
                    : "by the last shard");
    printf("# %zu shards\n", n);
    run_close(&r);
    remove_shards(n);
}

static void check_all_same(void)
{
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    p.max_tensors = 11;
    check_same("f16, by number", GGUF_DTYPE_F16, p);
    p.max_tensors = 1;
    p.no_tensor_first = 1;
    check_same("f32, each by itself, none in the first", GGUF_DTYPE_F32, p);
    p.max_tensors = 0;
    p.by_layer = 1;
    check_same("f32, by layer", GGUF_DTYPE_F32, p);
}

/* ---- malformed sets ---- */

static char warned[512];

static void keep_warning(void *user, const char *message)
{
    (void)user;
    snprintf(warned, sizeof warned, "%s", message);
}

/* Open a model, read all weights and close it. */
static enum gguf_status load_set(const char *path,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_file *set;
    struct gguf_model *model = NULL;
    fp.allocator = mp.allocator = allocator;
    mp.warn.fn = keep_warning;
    enum gguf_status st = gguf_file_open(&set, path, &fp, err);
    if (st == GGUF_OK)
        st = gguf_model_create(&model, set, &mp, err);
    if (st == GGUF_OK)
        st = gguf_model_check_finite(model, NULL, err);
    gguf_model_destroy(model);
    gguf_file_close(set);
    return st;
}

static struct gen_tensor *find_tensor(struct gen *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->t[i].name, name))
            return &g->t[i];
    exit(99);
}

static void change_nothing(struct gen *g)
{
    (void)g;
}
static void set_heads(struct gen *g)
{
    if (gguf_meta_set_u32(g->meta, "llama.attention.head_count", 5, NULL))
        exit(99);
}
static void set_layers(struct gen *g)
{
    if (gguf_meta_set_u32(g->meta, "llama.block_count", 4000000000u, NULL))
        exit(99);
}
static void rename_tensor(struct gen *g)
{
    strcpy(find_tensor(g, "blk.2.ffn_up.weight")->name,
           "blk.2.ffn_top.weight");
}
static void transpose_tensor(struct gen *g)
{
    find_tensor(g, "blk.2.ffn_up.weight")->ne[0] = 64;
    find_tensor(g, "blk.2.ffn_up.weight")->ne[1] = 32;
}
static void add_tensor(struct gen *g)
{
    gen_tensor(g, 32, 0, "blk.0.extra.weight");
}

static const struct {
    void (*change)(struct gen *g);
    enum gguf_status status;
    const char *begins, *says; /* start and part of the message or warning */
} changes[] = {
    { change_nothing, GGUF_OK, "", "" },
    { set_heads, GGUF_E_HPARAM,
      "shard 's-00001-of-00004.gguf': ", "llama.attention.head_count is 5" },
    { set_layers, GGUF_E_HPARAM,
      "shard 's-00001-of-00004.gguf': ", "llama.block_count is 4000000000" },
    { rename_tensor, GGUF_E_TENSOR, "tensor ",
      "'blk.2.ffn_up.weight' is missing" },
    { transpose_tensor, GGUF_E_TENSOR, "shard 's-00004-of-00004.gguf': ",
      "'blk.2.ffn_up.weight' has shape [64, 32], must be [32, 64]" },
    { add_tensor, GGUF_OK, "tensor ", "'blk.0.extra.weight' is not used" },
};

static const struct gguf_split_params by_eight = {
    sizeof(struct gguf_split_params), 8, 0, 0, 0
};

static void check_changes(void)
{
    for (size_t i = 0; i < GG_LEN(changes); i++) {
        struct gguf_error err = { GGUF_OK, 0, 0, "" };
        struct gen g;
        gen_init(&g, 3);
        gen_model(&g, &spec);
        changes[i].change(&g);
        write_whole(&g, GGUF_DTYPE_F32);
        gen_fini(&g);
        size_t n = cut_file(&by_eight);
        warned[0] = '\0';
        enum gguf_status st = load_set(prefix, NULL, &err);
        const char *said = st == GGUF_OK ? warned : err.message;
        ok(n == 4 && st == changes[i].status &&
               strstr(said, changes[i].begins) == said &&
               strstr(said, changes[i].says),
           "change %zu: %s", i, *said ? said : "loads");
        remove_shards(n);
    }
}

/* A NaN in the last shard is reported there. */
static void check_nan(size_t n)
{
    struct gguf_file *file;
    struct gguf_error err;
    const char *path = shard_path(n, n);
    if (gguf_file_open(&file, path, NULL, &err))
        exit(99);
    const struct gguf_tensor_info *t =
        gguf_file_tensor_find(file, "blk.2.ffn_up.weight");
    uint64_t at = gguf_file_data_off(gguf_file_shard(file, t->shard)) + t->off;
    FILE *f = fopen(path, "r+b");
    if (!f || fseek(f, (long)at + 4 * 1234, SEEK_SET) ||
        fwrite("\377\377\377\377", 1, 4, f) != 4 || fclose(f))
        exit(99);
    gguf_file_close(file);
    ok(load_set(prefix, NULL, &err) == GGUF_E_NONFINITE &&
           err.offset == at + 4 * 1234 &&
           strstr(err.message, "shard 's-00004-of-00004.gguf': tensor "
                               "'blk.2.ffn_up.weight': element 1234 is not a"),
       "%s", err.message);
}

static void check_nomem(void)
{
    enum gguf_status st = GGUF_E_NOMEM;
    unsigned n, bad = 0;
    for (n = 0; n < 2000 && st == GGUF_E_NOMEM; n++) {
        struct failalloc f;
        st = load_set(prefix, failalloc_init(&f, n), NULL);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 20,
       "each of %u allocations may fail; nothing is lost", n - 1);
}

static void check_broken(void)
{
    struct gen g;
    struct gguf_error err;
    struct gguf_file *file;
    struct gguf_model *model;
    gen_init(&g, 3);
    gen_model(&g, &spec);
    write_whole(&g, GGUF_DTYPE_F32);
    gen_fini(&g);
    size_t n = cut_file(&by_eight);
    check_nomem();
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    fp.single_file = true;
    ok(gguf_file_open(&file, shard_path(1, n), &fp, &err) == GGUF_OK &&
           gguf_model_create(&model, file, NULL, &err) == GGUF_E_UNSUPPORTED &&
           !model && strstr(err.message, "one of 4 shards"),
       "one shard alone: %s", err.message);
    gguf_file_close(file);
    ok(gguf_model_create(&model, NULL, NULL, &err) == GGUF_E_INVALID && !model,
       "no set: %s", err.message);
    check_nan(n);
    unlink(shard_path(3, n));
    ok(load_set(prefix, NULL, &err) == GGUF_E_NOTFOUND &&
           strstr(err.message, "1 of 4 shards of 's' is missing: 3"),
       "%s", err.message);
    remove_shards(n);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    snprintf(whole, sizeof whole, "%s/whole.gguf", dir);
    snprintf(prefix, sizeof prefix, "%s/s", dir);
    check_all_same();
    check_changes();
    check_broken();
    unlink(whole);
    rmdir(dir);
    return done_testing();
}
