/* SPDX-License-Identifier: MIT */
/* check-embedding-metric.c - the embedding's metric against its definition, by
 * names of tensors and in double precision */
#include "config.h"
#include "base/mem.h"
#include "calibrate/embedding_metric.h"
#include "kern/cpu_features.h"
#include "tests/family/skeleton.h"
#include "tests/failalloc.h"
#include "tests/linalg/dense.h"
#include "tests/model/run.h"

#include <float.h>

/* Floats of a tensor; NULL: missing. *n_rows: all its rows. */
static const float *find_floats(const struct gguf_file *f, const char *name,
                                size_t *n_rows)
{
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    if (!t || t->dtype != GGUF_DTYPE_F32)
        return NULL;
    *n_rows = (size_t)(t->n_elements / (uint64_t)t->ne[0]);
    return gguf_file_tensor_data(f, t->index);
}

/* Add diag(g) W'W diag(g) times the part of the experts that a token uses. */
static void add_products(double *m, double *size, size_t n, const float *w,
                         size_t n_rows, const float *gain, double part)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t r = 0; r < n_rows; r++) {
                const double x =
                    (double)w[r * n + i] * (double)w[r * n + j] *
                    (gain ? (double)gain[i] * (double)gain[j] : 1) * part;
                m[i * n + j] += x;
                size[i * n + j] += fabs(x);
            }
}

/* Check a model. norm: of gate and up; part: experts used, of all. */
static void check_model(const char *name, const char *norm, double part)
{
    static const char *const attention[] = { "attn_q", "attn_k", "attn_v",
                                             "attn_qkv" };
    static const char *const ffn[] = { "ffn_gate", "ffn_up", "ffn_gate_exps",
                                       "ffn_up_exps", "ffn_gate_up_exps" };
    static struct skeleton s;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gg_linalg la;
    struct run r;
    size_t data_size, n = 128, got_n = 0, rows, n_parts = 0;
    char path[80];
    float *got;
    if (!skeleton_open(&s, name))
        exit(99);
    void *data = gen_file(&s.g, GGUF_DTYPE_F32, &data_size);
    if (!run_open(&r, data, data_size, 1, &sp))
        exit(99);
    double *m = dense_alloc(n * n, sizeof *m);
    double *size = dense_alloc(n * n, sizeof *size);
    const float *gain = find_floats(r.file, "blk.0.attn_norm.weight", &rows);
    for (size_t i = 0; i < GG_LEN(attention); i++) {
        snprintf(path, sizeof path, "blk.0.%s.weight", attention[i]);
        const float *w = find_floats(r.file, path, &rows);
        n_parts += w != NULL;
        if (w)
            add_products(m, size, n, w, rows, gain, 1);
    }
    snprintf(path, sizeof path, "blk.0.%s.weight", norm);
    gain = find_floats(r.file, path, &rows);
    for (size_t i = 0; i < GG_LEN(ffn); i++) {
        snprintf(path, sizeof path, "blk.0.%s.weight", ffn[i]);
        const float *w = find_floats(r.file, path, &rows);
        n_parts += w != NULL;
        if (w)
            add_products(m, size, n, w, rows, gain,
                         strstr(ffn[i], "exps") ? part : 1);
    }
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    gg_codec_kern_set_native_order(codec);
    gg_linalg_init(&la, NULL, NULL);
    const enum gguf_status st =
        gg_embedding_metric(r.model, codec, &la, &got, &got_n, NULL);
    bool good = !st && got_n == n && (got != NULL) == (n_parts > 0);
    /* rounding of gains and factors, of sums of up to 2000 rows */
    for (size_t i = 0; got && i < n * n; i++)
        good &= fabs((double)got[i] - m[i]) <= 2000 * FLT_EPSILON * size[i];
    ok(good, "%s: %zu matrices", name, n_parts);
    gg_mem_free(NULL, got);
    free(m);
    free(size);
    run_close(&r);
    free(data);
    skeleton_close(&s);
    gg_linalg_fini(&la);
}

int main(void)
{
    check_model("llama", "ffn_norm", 1);
    check_model("qwen3moe", "ffn_norm", 0.5);
    check_model("falcon", "attn_norm", 1);
    check_model("gpt2", "ffn_norm", 1);
    check_model("olmo2", "none", 1);
    check_model("mamba", "none", 1);
    return done_testing();
}
