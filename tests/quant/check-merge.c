/* SPDX-License-Identifier: MIT */
/* check-merge.c - adapters merged into quantized weights: F32 outputs are
 * exactly the stated sums, byte for byte, and other types their encoders'
 * bytes for these sums */
#include "config.h"
#include "base/compiler.h"
#include "data/merged.h"
#include "kern/cpu_features.h"
#include "tests/model/lora.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

static char dir[] = "check-merge.XXXXXX";
static struct gen model;
static struct lora one, two;
static struct gguf_file *base, *halves[2]; /* halves: files of the adapters */
static const double alpha[2] = { 6, 0 };
static const float scales[2] = { 0.75f, -1.5f };

/* ---- files ---- */

static void bail_out(const struct gguf_error *err)
{
    printf("Bail out! %s\n", err->message);
    exit(99);
}

static void add_matrix(const char *name, int64_t ne0, int64_t ne1, int64_t ne2)
{
    gen_tensor(&model, ne0, ne1, "%s", name);
    struct gen_tensor *t = &model.t[model.n - 1];
    t->n_dims = ne2 > 1 ? 3 : 2;
    t->ne[2] = ne2;
}

static struct gguf_file *in_memory(void *data, size_t size)
{
    struct gguf_file *f;
    struct gguf_error err;
    if (gguf_file_open_memory(&f, data, size, NULL, &err) != GGUF_OK)
        bail_out(&err);
    return f;
}

static struct gguf_file *at_path(const char *path)
{
    struct gguf_file *f;
    struct gguf_error err;
    if (gguf_file_open(&f, path, NULL, &err) != GGUF_OK)
        bail_out(&err);
    return f;
}

/* Rows have 64, 96 and 300 elements. Two adapters overlap; one has rank 300,
 * more than is added at once. */
static void make_files(void)
{
    size_t size;
    gen_init(&model, 11);
    if (gguf_meta_set_strz(model.meta, "general.architecture", "x", NULL))
        abort();
    add_matrix("token_embd.weight", 64, 90, 1);
    add_matrix("blk.0.attn_q.weight", 300, 37, 1);
    add_matrix("blk.0.ffn_up_exps.weight", 96, 21, 3);
    add_matrix("blk.1.attn_q.weight", 512, 9, 1);
    add_matrix("output.weight", 64, 90, 1);
    gen_tensor(&model, 64, 0, "output_norm.weight");
    lora_init(&one, "x", alpha[0]);
    lora_init(&two, "x", alpha[1]);
    for (size_t i = 0; i < 4; i++)
        lora_pair(&one, &model.t[i], i == 1 ? 300 : 5, 0.02);
    for (size_t i = 0; i < 3; i++)
        lora_pair(&two, &model.t[i], 32, 0.03);
    void *data = gen_file(&model, GGUF_DTYPE_F32, &size);
    base = in_memory(data, size);
    data = lora_file(&one, GGUF_DTYPE_F32, &size);
    halves[0] = in_memory(data, size);
    data = lora_file(&two, GGUF_DTYPE_F16, &size);
    halves[1] = in_memory(data, size);
}

/* ---- expected sums ---- */

/* Numbers of a tensor of a file. */
static float *read_numbers(const struct gguf_file *f, const char *name,
                           size_t *n)
{
    static struct gguf_rows *rows;
    struct gguf_error err;
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    if (!t)
        return NULL;
    if (!rows && gguf_rows_create(&rows, NULL, &err))
        bail_out(&err);
    *n = (size_t)t->n_elements;
    float *v = malloc(*n * sizeof *v);
    if (!v)
        abort();
    if (gguf_rows_decode(rows, f, t->index, 0, *n, v, &err))
        bail_out(&err);
    return v;
}

static float *read_half(const struct gguf_file *f, const char *name, char end)
{
    char full[80];
    size_t n;
    snprintf(full, sizeof full, "%s.lora_%c", name, end);
    return read_numbers(f, full, &n);
}

/* w + factor * (b0 a0 + b1 a1 + ...), each step in single precision. */
static void add_tensor(float *w, const struct gguf_tensor_info *t,
                       const struct gguf_file *f, const char *name,
                       double alpha_of, float scale)
{
    float *a = read_half(f, name, 'a'), *b = read_half(f, name, 'b');
    const bool embd = !strcmp(name, "token_embd.weight");
    char full[80];
    snprintf(full, sizeof full, "%s.lora_b", name);
    const struct gguf_tensor_info *tb = gguf_file_tensor_find(f, full);
    if (!a || !tb)
        return;
    const int64_t rank = tb->ne[0], ne0 = t->ne[0], ne1 = t->ne[1];
    const double per_rank = alpha_of != 0 ? alpha_of / (double)rank : 1;
    const float factor = (float)((double)scale * per_rank);
    for (int64_t row = 0; row < ne1 * t->ne[2]; row++)
        for (int64_t i = 0; i < ne0; i++) {
            const int64_t mat = row / ne1;
            float sum = 0;
            for (int64_t r = 0; r < rank; r++)
                sum += embd
                           ? a[row * rank + r] * b[i * rank + r]
                           : b[row * rank + r] * a[(mat * rank + r) * ne0 + i];
            const float product = factor * sum;
            w[row * ne0 + i] += product;
        }
    free(a);
    free(b);
}

static float *expected_sum(const struct gguf_file *of, const char *name,
                           size_t *n, int n_loras)
{
    float *w = read_numbers(of, name, n);
    const struct gguf_tensor_info *t = gguf_file_tensor_find(of, name);
    for (int i = 0; i < n_loras; i++)
        add_tensor(w, t, halves[i], name, alpha[i], scales[i]);
    return w;
}

/* ---- jobs ---- */

static struct gguf_quant_lora loras[2];

static enum gguf_status quantize_merged(const struct gguf_file *in,
                                        const char *type, const char *path,
                                        struct gguf_quant_params *p,
                                        unsigned n_threads,
                                        struct gguf_error *err)
{
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *job = NULL;
    struct gguf_pool *pool = NULL;
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_quant_output out = GGUF_QUANT_OUTPUT_INIT;
    pp.n_threads = n_threads;
    out.force = 1;
    out.no_sync = 1;
    enum gguf_status st = gguf_recipe_preset(&recipe, type, NULL, err);
    if (st == GGUF_OK)
        st = gguf_pool_create(&pool, &pp, err);
    p->recipe = recipe;
    p->pool = pool;
    if (st == GGUF_OK)
        st = gguf_quant_create_file(&job, in, p, err);
    if (st == GGUF_OK)
        st = gguf_quant_run(job, path, &out, err);
    gguf_quant_destroy(job);
    gguf_pool_destroy(pool);
    gguf_recipe_destroy(recipe);
    return st;
}

static struct gguf_quant_params merge_params(size_t n_loras)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    for (size_t i = 0; i < 2; i++)
        loras[i] = (struct gguf_quant_lora){ halves[i], scales[i],
                                             i ? NULL : "one.gguf" };
    p.loras = loras;
    p.n_loras = n_loras;
    return p;
}

/* Do the F32 tensors of a file have the bytes of the sums? */
static void check_sums(const struct gguf_file *in, const char *path,
                       int n_loras, const char *what)
{
    struct gguf_file *f = at_path(path);
    bool good = gguf_file_n_tensors(f) == 6;
    for (size_t i = 0; i < 6; i++) {
        const char *name = model.t[i].name;
        size_t n, n_has;
        float *must = expected_sum(in, name, &n, n_loras);
        float *has = read_numbers(f, name, &n_has);
        const bool same =
            has && n == n_has && !memcmp(must, has, n * sizeof *must);
        if (!same)
            printf("# %s differs\n", name);
        good = good && same &&
               gguf_file_tensor_find(f, name)->dtype == GGUF_DTYPE_F32;
        free(must);
        free(has);
    }
    ok(good, "%s: the bytes of the stated sums", what);
    gguf_file_close(f);
}

static void check_f32(void)
{
    struct gguf_error err;
    const char *path = scratch_path(dir, "f32.gguf");
    for (unsigned n = 1; n <= 2; n++)
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            struct gguf_quant_params p = merge_params(n);
            p.max_memory = threads == 3 ? 1 << 20 : 0;
            const enum gguf_status st =
                quantize_merged(base, "F32", path, &p, threads, &err);
            if (st != GGUF_OK)
                bail_out(&err);
            char what[64];
            snprintf(what, sizeof what, "%u adapters, %u threads", n, threads);
            check_sums(base, path, (int)n, what);
        }
    /* with scale 0 nothing is merged */
    struct gguf_quant_params p = merge_params(2);
    loras[0].scale = loras[1].scale = 0;
    if (quantize_merged(base, "COPY", path, &p, 1, &err))
        bail_out(&err);
    check_sums(base, path, 0, "scale 0");
}

/* Keys of the output describe the merge. */
static void check_meta(void)
{
    struct gguf_file *f = at_path(scratch_path(dir, "two.gguf"));
    const struct gguf_kv *files = gguf_file_kv_find(f, "quantize.lora.files");
    const struct gguf_kv *by = gguf_file_kv_find(f, "quantize.lora.scales");
    struct gguf_kv first;
    struct gguf_str name = { "", 0 };
    float v[2] = { 0, 0 };
    const bool good = files && by && files->n == 2 && by->n == 2 &&
                      !gguf_kv_get_elem(files, 0, &first, NULL) &&
                      !gguf_kv_get_str(&first, &name, NULL) &&
                      !gguf_kv_get_elems_f32(by, 0, 2, v, NULL);
    ok(good && name.size == 8 && !memcmp(name.data, "one.gguf", 8) &&
           v[0] == scales[0] && v[1] == scales[1] &&
           gguf_file_kv_find(f, "quantize.tool"),
       "names and scales are noted");
    gguf_file_close(f);
}

/* Merging while quantizing gives the file of merging to F32 and then
 * quantizing. The base may be quantized already. */
static void check_types(void)
{
    struct gguf_error err;
    const char *f32 = scratch_path(dir, "f32.gguf");
    const char *q8 = scratch_path(dir, "two.gguf");
    const char *steps = scratch_path(dir, "steps.gguf");
    struct gguf_quant_params p = merge_params(2), none = merge_params(0);
    if (quantize_merged(base, "F32", f32, &p, 1, &err) ||
        quantize_merged(base, "Q8_0", q8, &p, 2, &err))
        bail_out(&err);
    struct gguf_file *f = at_path(f32);
    none.loras = NULL;
    if (quantize_merged(f, "Q8_0", steps, &none, 1, &err))
        bail_out(&err);
    struct gguf_file *a = at_path(q8), *b = at_path(steps);
    bool good = true;
    unsigned n_q8 = 0;
    for (size_t i = 0; i < gguf_file_n_tensors(a); i++) {
        const struct gguf_tensor_info *x = gguf_file_tensor(a, i);
        const struct gguf_tensor_info *y = gguf_file_tensor(b, i);
        n_q8 += x->dtype == GGUF_DTYPE_Q8_0;
        good = good && x->dtype == y->dtype && x->size == y->size &&
               !memcmp(gguf_file_tensor_data(a, i),
                       gguf_file_tensor_data(b, i), (size_t)x->size);
    }
    ok(good && n_q8 >= 3, "Q8_0: the bytes of two steps, %u tensors", n_q8);
    check_meta();
    /* decoded, added, and encoded in the same type again */
    struct gguf_quant_params q = merge_params(2);
    ok(quantize_merged(a, "F32", steps, &q, 1, &err) == GGUF_E_UNSUPPORTED &&
           strstr(err.message, "--allow-requantize quantizes it"),
       "of Q8_0: %s", err.message);
    q.allow_requantize = 1;
    gguf_file_close(b);
    if (quantize_merged(a, "F32", steps, &q, 1, &err))
        bail_out(&err);
    check_sums(a, steps, 2, "of Q8_0");
    gguf_file_close(a);
    gguf_file_close(f);
}

/* A tensor that keeps its type is encoded again; others are copied. */
static void check_copy(void)
{
    struct gguf_error err;
    struct gguf_recipe *recipe;
    struct gguf_quant *job;
    struct gguf_quant_params p = merge_params(1);
    if (gguf_recipe_preset(&recipe, "COPY", NULL, &err))
        bail_out(&err);
    p.recipe = recipe;
    if (gguf_quant_create_file(&job, base, &p, &err))
        bail_out(&err);
    unsigned n_merged = 0, n_copied = 0;
    for (size_t i = 0; i < gguf_quant_n_tensors(job); i++) {
        const struct gguf_quant_tensor *t = gguf_quant_tensor(job, i);
        n_merged += t->merged && !t->copied && t->to == t->from;
        n_copied += !t->merged && t->copied;
    }
    ok(n_merged == 4 && n_copied == 2,
       "COPY: %u tensors are encoded, %u are copied", n_merged, n_copied);
    gguf_quant_destroy(job);
    const char *path = scratch_path(dir, "copy.gguf");
    p = merge_params(1);
    if (quantize_merged(base, "COPY", path, &p, 1, &err))
        bail_out(&err);
    check_sums(base, path, 1, "COPY");
    gguf_recipe_destroy(recipe);
}

/* ---- reads of any part ---- */

static void check_parts(void)
{
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gg_merged_lora with[2] = { 0 };
    struct gg_data_gguf plain;
    struct gg_data_merged m;
    struct gguf_error err;
    const struct gg_source from = { .file = base };
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    gg_data_gguf_init(&plain, &from, codec, true);
    for (int i = 0; i < 2; i++) {
        const struct gg_source s = { .file = halves[i] };
        if (gg_lora_init(&with[i].lora, halves[i], NULL, &err))
            bail_out(&err);
        gg_data_gguf_init(&with[i].data, &s, codec, true);
        with[i].scale = scales[i];
    }
    if (gg_data_merged_init(&m, &plain.list, with, 2, NULL, &err))
        bail_out(&err);
    for (size_t i = 0; i < 4; i++) {
        const char *name = model.t[i].name;
        const struct gguf_tensor_info *t = gguf_file_tensor_find(base, name);
        const uint64_t ne0 = (uint64_t)t->ne[0], n_rows = t->n_elements / ne0;
        struct gg_data_rows r;
        struct gg_data_info info;
        size_t n;
        float *must = expected_sum(base, name, &n, 2),
              *x = malloc(n * sizeof *x);
        bool good = x && gg_data_is_merged(&m, t->index) &&
                    !gg_data_bytes(&m.over.list, t->index) &&
                    !gg_data_rows(&m.over.list, t->index, &r, &err);
        gg_data_info(&m.over.list, t->index, &info);
        for (int k = 0; good && k < 200; k++) {
            uint64_t at, count; /* a part of a row, or several rows */
            if (k & 1) {
                at = rnd_below(t->n_elements);
                count = 1 + rnd_below(ne0 - at % ne0);
            } else {
                at = rnd_below(n_rows);
                count = ne0 * (1 + rnd_below(n_rows - at));
                at *= ne0;
            }
            gg_data_read(&r, at, count, x);
            good = !memcmp(x, must + at, count * sizeof *x);
        }
        ok(good && info.n_elements == t->n_elements,
           "%s: any part of it gives the same numbers", name);
        free(must);
        free(x);
    }
    ok(!gg_data_is_merged(
           &m, gguf_file_tensor_find(base, "output.weight")->index) &&
           gg_data_bytes(&m.over.list, 0) == NULL &&
           gg_data_n_tensors(&m.over.list) == 6,
       "others are as they were");
    gg_data_merged_fini(&m);
    for (int i = 0; i < 2; i++)
        gg_lora_fini(&with[i].lora);
}

/* ---- refused adapters ---- */

static void check_refusal(struct lora *l, struct gguf_quant_params *p,
                          enum gguf_status status, const char *says)
{
    struct gguf_error err;
    size_t size;
    void *data = lora_file(l, GGUF_DTYPE_F32, &size);
    struct gguf_file *f = in_memory(data, size);
    loras[0].file = f;
    gguf_error_clear(&err);
    ok(quantize_merged(base, "F32", scratch_path(dir, "none.gguf"), p, 1,
                       &err) == status &&
           strstr(err.message, says) &&
           access(scratch_path(dir, "none.gguf"), F_OK) != 0,
       "refused: %s", err.message);
    gguf_file_close(f);
    free(data);
    lora_fini(l);
}

static void check_refused(void)
{
    struct gguf_quant_params p = merge_params(1);
    struct lora l;
    lora_init(&l, "y", 1);
    lora_pair(&l, &model.t[1], 2, 0.1);
    check_refusal(&l, &p, GGUF_E_MISMATCH,
                  "architecture 'y', the model has 'x'");
    lora_init(&l, "x", 1);
    struct gen_tensor other = model.t[1];
    strcpy(other.name, "blk.7.attn_q.weight");
    lora_pair(&l, &model.t[1], 2, 0.1);
    lora_pair(&l, &other, 2, 0.1);
    check_refusal(&l, &p, GGUF_E_TENSOR, "a matrix 'blk.7.attn_q.weight'");
    lora_init(&l, "x", 1);
    other = model.t[1];
    other.ne[1]++;
    lora_pair(&l, &other, 2, 0.1);
    check_refusal(
        &l, &p, GGUF_E_TENSOR,
        "'blk.0.attn_q.weight.lora_b' has shape [2, 38], must be [2, 37]");
    lora_init(&l, "x", 1);
    lora_pair(&l, &model.t[1], 2, 0.1);
    p.compat = 1;
    check_refusal(&l, &p, GGUF_E_INVALID, "n_loras is set, but compat");
    p.compat = 0;
    loras[0].scale = NAN;
    lora_init(&l, "x", 1);
    lora_pair(&l, &model.t[1], 2, 0.1);
    check_refusal(&l, &p, GGUF_E_INVALID, "adapter 0 has scale nan");
    lora_init(&l, "x", 1);
    lora_pair(&l, &model.t[1], 2, 0.1);
    ((float *)(uintptr_t)l.g.t[0].values)[7] = INFINITY;
    p = merge_params(1);
    check_refusal(&l, &p, GGUF_E_NONFINITE, "tensor 'blk.0.attn_q.weight': ");
}

/* Jobs over one reading merge the same sums. */
static void check_together(void)
{
    struct gguf_error err;
    struct gguf_recipe *recipe;
    struct gguf_quant *job[2];
    const char *paths[2] = { scratch_path(dir, "a.gguf"),
                             scratch_path(dir, "b.gguf") };
    struct gguf_quant_output out = GGUF_QUANT_OUTPUT_INIT;
    if (gguf_recipe_preset(&recipe, "F32", NULL, &err))
        bail_out(&err);
    for (int other = 0; other < 2; other++) {
        for (int i = 0; i < 2; i++) {
            struct gguf_quant_params p = merge_params(2);
            p.recipe = recipe;
            if (other && i)
                loras[1].scale = 3;
            if (gguf_quant_create_file(&job[i], base, &p, &err))
                bail_out(&err);
        }
        out.force = out.no_sync = 1;
        const enum gguf_status st =
            gguf_quant_run_many(job, paths, 2, &out, &err);
        if (other)
            ok(st == GGUF_E_INVALID && strstr(err.message, "same adapters"),
               "%s", err.message);
        else
            check_sums(base, paths[1], 2, "two jobs");
        gguf_quant_destroy(job[0]);
        gguf_quant_destroy(job[1]);
    }
    gguf_recipe_destroy(recipe);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    make_files();
    check_f32();
    check_types();
    check_copy();
    check_parts();
    check_refused();
    check_together();
    scratch_clean(dir);
    rmdir(dir);
    return done_testing();
}
