/* SPDX-License-Identifier: MIT */
/* check-dequantize.c - jobs that decode quantized models to floats
 *
 * A job's F32 equals gguf_rows_decode() of the input, element by element: for a
 * fork's types, and for NVFP4 with scales outside of its blocks.
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "gguf/quant.h"
#include "gguf/stats.h"
#include "gguf/target.h"
#include "gguf/writer.h"
#include "kern/codec.h"
#include "tests/quant/tensors.h"

#include <math.h>
#include <stdbool.h>
#include <unistd.h>

/* Make `out' of `in'. */
static enum gguf_status dequantize_file(const char *type, int compat,
                                        struct gguf_error *err)
{
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    o.force = o.no_sync = 1;
    enum gguf_status st = gguf_recipe_preset(&r, type, NULL, err);
    p.recipe = r;
    p.allow_requantize = 1;
    p.compat = compat;
    st = st ? st : gguf_quant_create(&q, in, &p, err);
    st = st ? st : gguf_quant_run(q, out, &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    return st;
}

static const struct gguf_tensor_info *find_tensor(const struct gguf_file *f,
                                                  struct gguf_str name)
{
    char s[100];
    snprintf(s, sizeof s, "%.*s", (int)name.size, name.data);
    return gguf_file_tensor_find(f, s);
}

/* Compare every tensor of `out' with that of `in' as floats. Returns their
 * number; -1: some differ. */
static int compare_tensors(const struct gguf_rows *rows)
{
    struct gguf_file *a, *b;
    int n = 0;
    if (gguf_file_open(&a, in, NULL, NULL) != GGUF_OK)
        return -1;
    if (gguf_file_open(&b, out, NULL, NULL) != GGUF_OK) {
        gguf_file_close(a);
        return -1;
    }
    for (size_t i = 0; n >= 0 && i < gguf_file_n_tensors(b); i++, n++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(b, i);
        const struct gguf_tensor_info *s = find_tensor(a, t->name);
        size_t size = (size_t)t->n_elements * sizeof(float);
        float *x = malloc(size), *y = malloc(size);
        if (!s || s->n_elements != t->n_elements ||
            gguf_rows_decode(rows, a, s->index, 0, s->n_elements, x, NULL) !=
                GGUF_OK ||
            gguf_rows_decode(rows, b, i, 0, t->n_elements, y, NULL) !=
                GGUF_OK ||
            memcmp(x, y, size) != 0)
            n = -2;
        free(x);
        free(y);
    }
    gguf_file_close(a);
    gguf_file_close(b);
    return n;
}

/* With the smallest type as target, all of a fork's types larger than Q2_K
 * become Q2_K, those with row headers, too. */
static void test_fork_target(void)
{
    static const char text[] = "base Q2_K\n";
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_target_params t = GGUF_TARGET_PARAMS_INIT;
    struct gguf_error err = { .message = "" };
    enum gguf_status st = gguf_recipe_parse(
        &r, (struct gguf_str){ text, sizeof text - 1 }, NULL, &err);
    p.recipe = r;
    p.allow_requantize = 1;
    t.max_size = 1;
    for (int i = 0; i < 2 && st == GGUF_OK; i++) {
        gguf_quant_destroy(q);
        st = gguf_quant_create(&q, in, &p, &err);
        if (st == GGUF_OK)
            st = gguf_quant_fit_size(q, &t, NULL, &err);
        const char *least = strstr(err.message, "types has ");
        if (st == GGUF_E_LIMIT && !i && least) {
            t.max_size = strtoull(least + 10, NULL, 10);
            st = GGUF_OK;
        }
    }
    int bad = 0;
    size_t n = st == GGUF_OK ? gguf_quant_n_tensors(q) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct gguf_quant_tensor *x = gguf_quant_tensor(q, i);
        uint64_t as_q2_k = x->n_elements / 256 * 84;
        bad += x->from_size > as_q2_k && x->ne[0] % 256 == 0 &&
               x->to != GGUF_DTYPE_Q2_K;
    }
    ok(st == GGUF_OK && n && !bad, "%zu tensors as small as can be: %s", n,
       err.message);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
}

static void test_fork(const struct gguf_rows *rows)
{
    static const struct tensor t[] = {
        { "a.weight", 133, { 96, 40, 1, 1 }, NULL },
        { "b.weight", 137, { 512, 40, 1, 1 }, NULL },
        { "c.weight", 138, { 512, 40, 1, 1 }, NULL },
        { "d.weight", 139, { 512, 40, 1, 1 }, NULL },
        { "e.weight", 140, { 512, 40, 1, 1 }, NULL },
        { "f.weight", 141, { 512, 40, 1, 1 }, NULL },
        { "g.weight", 144, { 256, 7, 5, 1 }, NULL },
        { "h.weight", 145, { 1024, 100, 1, 1 }, NULL },
        { "i.weight", 146, { 512, 40, 1, 1 }, NULL },
        { "j.weight", 152, { 512, 40, 1, 1 }, NULL },
        { "k.weight", 156, { 512, 40, 1, 1 }, NULL },
        { "l.weight", 134, { 512, 40, 1, 1 }, NULL },
        { "m.weight", 135, { 512, 40, 1, 1 }, NULL },
        { "n.weight", 151, { 512, 40, 1, 1 }, NULL },
        { "o.weight", 153, { 512, 40, 1, 1 }, NULL },
        { "p.weight", 154, { 512, 40, 1, 1 }, NULL },
        { "q.weight", 155, { 512, 40, 1, 1 }, NULL },
        { "r.weight", 157, { 512, 40, 1, 1 }, NULL },
        { "s.weight", 158, { 512, 40, 1, 1 }, NULL },
    };
    struct gguf_error err = { .message = "" };
    ok(write_model(t, GG_LEN(t)), "a model of a fork's types");
    ok(dequantize_file("F32", 0, &err) == GGUF_OK, "to F32: %s", err.message);
    int n = compare_tensors(rows);
    ok(n == (int)GG_LEN(t), "%d tensors are the same", n);
    ok(dequantize_file("Q8_0", 0, &err) == GGUF_OK, "to Q8_0: %s",
       err.message);
    test_fork_target();

    static const struct tensor u[] = {
        { "a.weight", 202, { 512, 4, 1, 1 }, NULL },
    };
    ok(write_model(u, 1) &&
           dequantize_file("F32", 0, &err) == GGUF_E_UNSUPPORTED,
       "half a group of rows is refused: %s", err.message);
}

/* A number that is not finite is reported with the offset of its block. */
static void test_place(void)
{
    enum { ROW = 4 + 2 * 136 };
    static struct tensor t[] = { { "a.weight", 144, { 512, 5, 1, 1 }, NULL } };
    struct gguf_error err = { .message = "" };
    struct gguf_file *f;
    uint8_t *data = random_data(5 * ROW);
    for (int r = 0; r < 5; r++)
        gg_bytes_store32le(data + r * ROW,
                           gg_bytes_f32_bits(r == 3 ? INFINITY : 1));
    t[0].data = data;
    if (!write_model(t, 1) || gguf_file_open(&f, in, NULL, NULL) != GGUF_OK)
        exit(99);
    uint64_t at = gguf_file_data_off(f) + 3 * ROW + 4;
    ok(dequantize_file("F32", 0, &err) == GGUF_E_NONFINITE &&
           err.offset == at && strstr(err.message, "row 3, column 0"),
       "%s, at byte %llu", err.message, (unsigned long long)err.offset);
    gguf_file_close(f);
    free(data);
}

/* F64 holds any float exactly, and converts back. */
static void test_wider(const struct gguf_rows *rows)
{
    enum { N = 64 * 40 };
    static float x[N];
    static const float few[] = { 0, -0.0f, 0x1p-149f, -0x1.fffffep127f };
    struct tensor t = { "a.weight", GGUF_DTYPE_F32, { 64, 40, 1, 1 }, x };
    struct gguf_error err = { .message = "" };
    struct gguf_file *f;
    for (size_t i = 0; i < N; i++)
        do
            x[i] = i < 4 ? few[i] : gg_bytes_f32_from_bits((uint32_t)rnd64());
        while (!isfinite(x[i]));
    if (!write_model(&t, 1))
        exit(99);
    bool good = dequantize_file("F64", 0, &err) == GGUF_OK &&
                compare_tensors(rows) == 1 &&
                gguf_file_open(&f, out, NULL, &err) == GGUF_OK;
    ok(good, "F32 to F64 %s", err.message);
    if (!good)
        return;
    const uint8_t *p = gguf_file_tensor_data(f, 0);
    int bad = gguf_file_tensor(f, 0)->dtype != GGUF_DTYPE_F64;
    for (size_t i = 0; !bad && i < N; i++)
        bad = gg_bytes_load64le(p + 8 * i) != gg_bytes_f64_bits((double)x[i]);
    ok(!bad, "every number is the same");
    gguf_file_close(f);
}

/* ---------------------------------------------------------------- NVFP4 --- */

/* Is the tensor of `out' nvfp4[i], decoded and multiplied by the scales? */
static bool is_scaled(const struct gguf_rows *rows, int i, const float *scale)
{
    struct gguf_file *f;
    const struct tensor *t = &nvfp4[i];
    size_t mat = (size_t)(t->ne[0] * t->ne[1]), n = mat * (size_t)t->ne[2];
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    if (gguf_file_open(&f, out, NULL, NULL) != GGUF_OK)
        exit(99);
    const struct gguf_tensor_info *info = gguf_file_tensor_find(f, t->name);
    gg_kern_decode_nvfp4_c(t->data, x, n);
    for (size_t k = 0; scale && k < n; k++)
        x[k] *= scale[k / mat];
    bool good =
        info &&
        gguf_rows_decode(rows, f, info->index, 0, n, y, NULL) == GGUF_OK &&
        !memcmp(x, y, n * sizeof *x);
    gguf_file_close(f);
    free(x);
    free(y);
    return good;
}

static size_t n_out(void)
{
    struct gguf_file *f;
    if (gguf_file_open(&f, out, NULL, NULL) != GGUF_OK)
        return 0;
    size_t n = gguf_file_n_tensors(f);
    gguf_file_close(f);
    return n;
}

static void test_scales(const struct gguf_rows *rows)
{
    struct gguf_error err = { .message = "" };
    write_nvfp4();
    ok(dequantize_file("F32", 0, &err) == GGUF_OK, "NVFP4 to F32 %s",
       err.message);
    ok(n_out() == N_TENSORS - 3, "what went into weights is left out");
    ok(is_scaled(rows, Q, scales), "weights times their scale");
    ok(is_scaled(rows, UP, scales + 1), "experts, each times its own");
    ok(is_scaled(rows, K, NULL), "without a scale");
    ok(compare_tensors(rows) == N_TENSORS - 3,
       "rows of the input have their scale");
    ok(dequantize_file("F32", 1, &err) == GGUF_OK && n_out() == N_TENSORS &&
           is_scaled(rows, Q, NULL) && is_scaled(rows, UP, NULL),
       "as llama-quantize: scales stay beside weights without them");
    ok(dequantize_file("COPY", 0, &err) == GGUF_OK && n_out() == N_TENSORS &&
           compare_tensors(rows) == N_TENSORS,
       "NVFP4 that stays has its scales");
}

static void test_bad_scales(const struct gguf_rows *rows)
{
    static const float nan[1] = { NAN };
    struct gguf_error err;
    struct gguf_file *f;
    float x[64];
    nvfp4[UP_SCALE].ne[0] = 2;
    ok(write_model(nvfp4, N_TENSORS) &&
           dequantize_file("F32", 0, &err) == GGUF_E_TENSOR,
       "refused: %s", err.message);
    nvfp4[UP_SCALE].ne[0] = 3;
    nvfp4[Q_SCALE].type = GGUF_DTYPE_I32;
    ok(write_model(nvfp4, N_TENSORS) &&
           dequantize_file("F32", 0, &err) == GGUF_E_TENSOR,
       "refused: %s", err.message);
    nvfp4[Q_SCALE].type = GGUF_DTYPE_F32;
    nvfp4[Q_SCALE].data = nan;
    ok(write_model(nvfp4, N_TENSORS) &&
           dequantize_file("F32", 0, &err) == GGUF_E_TENSOR,
       "refused: %s", err.message);
    ok(gguf_file_open(&f, in, NULL, NULL) == GGUF_OK &&
           gguf_rows_decode(rows, f, 0, 0, 64, x, &err) == GGUF_E_TENSOR,
       "and its rows are: %s", err.message);
    gguf_file_close(f);
    n_shards = 2;
    struct gguf_file_params alone = GGUF_INIT(struct gguf_file_params);
    alone.single_file = true;
    ok(write_model(nvfp4 + K, 1) &&
           gguf_file_open(&f, in, &alone, NULL) == GGUF_OK &&
           gguf_rows_decode(rows, f, 0, 0, 64, x, &err) == GGUF_E_UNSUPPORTED,
       "a shard does not know: %s", err.message);
    gguf_file_close(f);
    n_shards = 0;
    for (int i = 0; i < N_TENSORS; i++)
        if (nvfp4[i].type == GGUF_DTYPE_NVFP4)
            free((void *)(uintptr_t)nvfp4[i].data);
}

/* ------------------------------------------------ NVFP4 with its scales --- */

/* Quantize three matrices to NVFP4, each 256 times smaller than the one
 * before. Returns the share of squares that is lost, with equal weight for
 * each matrix; 1: the output is wrong. */
static double loss_of_small(const struct gguf_rows *rows, const float *x,
                            int outer, unsigned n_threads)
{
    enum { N = 128 * 6 * 3 };
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_file *f = NULL;
    static float y[N];
    double lost = 0, all = 0, rms = 0;
    struct gguf_str text = { "base NVFP4\n", 11 };
    pp.n_threads = n_threads;
    o.force = o.no_sync = 1;
    p.outer_scales = outer;
    p.measure = 1;
    bool good = gguf_pool_create(&p.pool, &pp, NULL) == GGUF_OK &&
                gguf_recipe_parse(&r, text, NULL, NULL) == GGUF_OK;
    p.recipe = r;
    good = good && gguf_quant_create(&q, in, &p, NULL) == GGUF_OK &&
           gguf_quant_run(q, out, &o, NULL) == GGUF_OK &&
           gguf_file_open(&f, out, NULL, NULL) == GGUF_OK &&
           gguf_rows_decode(rows, f, 0, 0, N, y, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < N; i++) {
        double d = (double)x[i] - (double)y[i];
        double unit = ldexp(1, -8 * (int)(i / (N / 3)));
        rms += d * d;
        lost += d / unit * (d / unit);
        all += (double)x[i] / unit * ((double)x[i] / unit);
    }
    const struct gguf_tensor_info *s =
        good ? gguf_file_tensor_find(f, "ffn_up_exps.scale") : NULL;
    good = good && (outer ? s && s->n_elements == 3 : !s) &&
           fabs(gguf_quant_tensor(q, 0)->loss.rms - sqrt(rms / N)) <
               1e-6 * sqrt(rms / N);
    gguf_file_close(f);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    gguf_pool_destroy(p.pool);
    return good ? lost / all : 1;
}

static void test_outer(const struct gguf_rows *rows)
{
    enum { N = 128 * 6 * 3 };
    static float x[N];
    struct tensor t = {
        "ffn_up_exps.weight", GGUF_DTYPE_F32, { 128, 6, 3, 1 }, x
    };
    for (size_t i = 0; i < N; i++)
        x[i] = ldexpf((float)(rnd64() % 2001) / 1000 - 1,
                      -8 * (int)(i / (N / 3)) - 6);
    if (!write_model(&t, 1))
        exit(99);
    double plain = loss_of_small(rows, x, 0, 1);
    double one = loss_of_small(rows, x, 1, 1);
    ok(plain < 1 && plain > 0.3 && one < 0.015,
       "%g of the squares are lost with scales, %g without", one, plain);
    ok(loss_of_small(rows, x, 1, 3) == one, "the same with three threads");
}

int main(void)
{
    struct gguf_rows *rows;
    if (!make_dir("check-dequantize") ||
        gguf_rows_create(&rows, NULL, NULL) != GGUF_OK)
        return 99;
    test_fork(rows);
    test_place();
    test_wider(rows);
    test_scales(rows);
    test_bad_scales(rows);
    test_outer(rows);
    gguf_rows_destroy(rows);
    remove_dir();
    return done_testing();
}
