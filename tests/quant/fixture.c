/* SPDX-License-Identifier: MIT */
/* fixture.c - a scratch folder, a small model in it, and jobs over it */
#include "config.h"
#include "tests/quant/fixture.h"
#include "base/compiler.h"
#include "dtype/f16.h"
#include "quant/job/job.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[3000];

const char *in_dir(const char *name)
{
    static char path[64][4000];
    static unsigned n;
    char *p = path[n++ % 64];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

bool enter_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.2900s/gguf-check-XXXXXX", tmp ? tmp : "/tmp");
    if (scratch_make(dir))
        return true;
    perror(dir);
    return false;
}

bool leave_dir(void)
{
    return rmdir(dir) == 0;
}

bool file_exists(const char *name)
{
    struct stat s;
    return lstat(in_dir(name), &s) == 0;
}

const char *dir_name(void)
{
    return dir;
}

int n_entries(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

/* ------------------------------------------------------------ a model --- */

const struct model_tensor model_tensors[] = {
    { "token_embd.weight", GGUF_DTYPE_F16, { 256, 37, 1, 1 } },
    { "output_norm.weight", GGUF_DTYPE_F32, { 256, 1, 1, 1 } },
    { "output.weight", GGUF_DTYPE_BF16, { 256, 37, 1, 1 } },
    { "blk.10.attn_v.weight", GGUF_DTYPE_F32, { 256, 65, 1, 1 } },
    { "blk.2.attn_v.weight", GGUF_DTYPE_F16, { 256, 65, 1, 1 } },
    { "blk.2.attn_k.weight", GGUF_DTYPE_F16, { 256, 11, 1, 1 } },
    { "blk.2.attn_q.weight", GGUF_DTYPE_F16, { 48, 11, 1, 1 } },
    { "blk.2.attn_q.bias", GGUF_DTYPE_F32, { 48, 1, 1, 1 } },
    { "blk.2.ffn_down_exps.weight", GGUF_DTYPE_F16, { 512, 300, 3, 1 } },
    { "blk.2.ffn_gate_inp.weight", GGUF_DTYPE_F32, { 256, 3, 1, 1 } },
    { "table", GGUF_DTYPE_I32, { 5, 3, 1, 1 } },
};
enum { N_TENSORS = GG_LEN(model_tensors) };

void write_model(const char *path, int bad, size_t where, float value)
{
    struct gguf_meta *m;
    struct gguf_writer *w;
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    p.force = p.no_sync = 1;
    tap_rng = 99;
    if (gguf_meta_create(&m, NULL, NULL) != GGUF_OK)
        return;
    bool good =
        gguf_meta_set_strz(m, "general.architecture", "test", NULL) ==
            GGUF_OK &&
        gguf_meta_set_u32(m, "general.file_type", 1, NULL) == GGUF_OK &&
        gguf_meta_set_u32(m, "general.alignment", 64, NULL) == GGUF_OK &&
        gguf_meta_set_u32(m, "test.block_count", 11, NULL) == GGUF_OK &&
        gguf_writer_create(&w, m, NULL, NULL) == GGUF_OK;
    gguf_meta_destroy(m);
    for (size_t i = 0; good && i < N_TENSORS; i++)
        good = gguf_writer_add_tensor(
                   w,
                   (struct gguf_str){ model_tensors[i].name,
                                      strlen(model_tensors[i].name) },
                   model_tensors[i].type,
                   1 + (model_tensors[i].ne[1] > 1) +
                       (model_tensors[i].ne[2] > 1),
                   model_tensors[i].ne, NULL) == GGUF_OK;
    good = good && gguf_writer_begin_file(w, path, &p, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < N_TENSORS; i++) {
        size_t n = (size_t)(model_tensors[i].ne[0] * model_tensors[i].ne[1] *
                            model_tensors[i].ne[2]);
        uint8_t *data = malloc(4 * n), *at = data;
        for (size_t k = 0; k < n; k++) {
            float x = rnd_f32();
            if (bad == (int)i && k == where)
                x = value;
            if (model_tensors[i].type == GGUF_DTYPE_F16)
                gg_bytes_store16le(at, gg_dtype_f32_to_f16(x));
            else if (model_tensors[i].type == GGUF_DTYPE_BF16)
                gg_bytes_store16le(at, gg_dtype_f32_to_bf16(x));
            else
                gg_bytes_store32le(at, gg_bytes_f32_bits(x));
            at += model_tensors[i].type == GGUF_DTYPE_F16 ||
                          model_tensors[i].type == GGUF_DTYPE_BF16
                      ? 2
                      : 4;
        }
        good =
            gguf_writer_begin_tensor(w, i, NULL) == GGUF_OK &&
            gguf_writer_write(w, data, (uint64_t)(at - data), NULL) == GGUF_OK;
        free(data);
    }
    good = good && gguf_writer_commit(w, NULL) == GGUF_OK;
    gguf_writer_destroy(w);
    if (!good)
        printf("Bail out! cannot write %s\n", path);
}

static char model_path[4000];

const char *enter_model(void)
{
    if (!enter_dir())
        exit(99);
    snprintf(model_path, sizeof model_path, "%s", in_dir("in.gguf"));
    write_model(model_path, -1, 0, 0);
    return model_path;
}

struct gguf_imatrix *model_imatrix(void)
{
    static float sums[512 * 3], counts[3] = { 1, 2, 3 };
    struct gguf_imatrix *im;
    if (gguf_imatrix_create(&im, NULL, NULL) != GGUF_OK)
        return NULL;
    for (size_t i = 0; i < GG_LEN(sums); i++)
        sums[i] = i % 7 ? 0.01f * (float)(1 + i % 64) : 1;
    for (size_t i = 0; i < N_TENSORS; i++) {
        const struct model_tensor *t = &model_tensors[i];
        if (t->ne[1] > 1 && gguf_imatrix_add(im, t->name, (uint64_t)t->ne[0],
                                             (uint64_t)t->ne[2], sums, counts,
                                             NULL) != GGUF_OK) {
            gguf_imatrix_destroy(im);
            return NULL;
        }
    }
    return im;
}

/* ------------------------------------------------------------ running --- */

enum gguf_status quantize(const char *in, const char *out, struct setup s,
                          struct gguf_error *err)
{
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_pool *pool = NULL;
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *q = NULL;
    gguf_error_clear(err);
    o.no_sync = !s.sync;
    o.force = !s.no_force;
    o.resume = s.resume;
    pp.n_threads = s.threads;
    enum gguf_status st = gguf_recipe_preset(&recipe, s.type, NULL, err);
    if (st == GGUF_OK && s.threads)
        st = gguf_pool_create(&pool, &pp, err);
    s.p.recipe = recipe;
    s.p.pool = pool;
    if (st == GGUF_OK)
        st = gguf_quant_create(&q, in, &s.p, err);
    if (st == GGUF_OK && s.forced)
        gg_job_set_cpu(q, s.cpu);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, out, &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(recipe);
    gguf_pool_destroy(pool);
    return st;
}
