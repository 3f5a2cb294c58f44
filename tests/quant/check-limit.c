/* SPDX-License-Identifier: MIT */
/* check-limit.c - large weights: each type stores them within its error, or
 * the job reports the type that does not
 *
 * The limits follow from the layouts (gguf-quants(7)): the largest F16 times
 * the largest factor that a block's codes can give it. The largest F16 is
 * 65504; 65520 is the first number that rounds to infinity.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/stats.h"
#include "kern/cpu_features.h"
#include "quant/job/job.h"
#include "tests/quant/tensors.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define F16_MAX 65504.0f
#define F16_END 65520.0f

/* A type.
 *
 * Factors of its scale for the largest positive and negative number. How far
 * the scale that its encoder searches for may differ from the plain one. Error
 * of a block's largest element; 1: any, since a codebook need not have a group
 * with one large number among zeros.
 */
static const struct type {
    const char *name;
    float up, down, search, error;
} types[] = {
    { "Q4_0", 8, 8, 0, 0.01f },
    { "Q4_1", 15, 1, 0, 0.01f },
    { "Q5_0", 16, 16, 0, 0.01f },
    { "Q5_1", 31, 1, 0, 0.01f },
    { "Q8_0", 127, 127, 0, 0.01f },
    { "Q8_1", 127, 127, 0, 0.01f },
    { "Q2_K", 15 * 3, 15, 0.2f, 0.05f },
    { "Q3_K", 32 * 4, 32 * 4, 0.2f, 0.02f },
    { "Q4_K", 63 * 15, 63, 0.2f, 0.02f },
    { "Q5_K", 63 * 31, 63, 0.2f, 0.02f },
    { "Q6_K", 128 * 32, 128 * 32, 0.2f, 0.01f },
    { "IQ4_NL", 127, 127, 0.2f, 0.08f },
    { "IQ4_XS", 32 * 127, 32 * 127, 0.2f, 0.08f },
    { "IQ1_S", 15 * 1.125f, 15 * 1.125f, 0.2f, 1 },
    { "IQ1_M", 15 * 1.125f, 15 * 1.125f, 0.2f, 1 },
    { "IQ2_XXS", 15.5f * 43 / 4, 15.5f * 43 / 4, 0.2f, 1 },
    { "IQ2_XS", 15.5f * 43 / 4, 15.5f * 43 / 4, 0.2f, 1 },
    { "IQ2_S", 15.5f * 43 / 4, 15.5f * 43 / 4, 0.2f, 1 },
    { "IQ3_XXS", 15.5f * 62 / 2, 15.5f * 62 / 2, 0.2f, 1 },
    { "IQ3_S", 31 * 15, 31 * 15, 0.2f, 1 },
    { "TQ1_0", 1, 1, 0, 0.01f },
    { "TQ2_0", 1, 1, 0, 0.01f },
    { "Q1_0", 128, 128, 0, 1 },
    { "Q2_0", 1, 1, 0, 0.01f },
    { "F16", 1, 1, 0, 0.001f },
};

/* Types without an F16 scale: a number that is stored, and one that is not (0:
 * every number is). */
static const struct other {
    const char *name;
    float held, refused, error;
} others[] = {
    { "F32", FLT_MAX, 0, 0 },
    { "F64", FLT_MAX, 0, 0 },
    { "BF16", 0x1.fep127f, 0x1.ffp127f, 0.004f },
    { "F8_E4M3", 463, 465, 0.04f },
    { "Q8_K", 0x1.fp127f, 0, 0.01f },
    { "MXFP4", FLT_MAX, 0, 0.26f }, /* 8 * 2^e becomes 6 * 2^e */
    { "Q6_0", 0x1.fp16f, 0x1p17f, 0.02f },
    { "IQ2_K", 0x1.fp16f, 0x1p17f, 0.3f },
    { "IQ3_K", 0x1.fp16f, 0x1p17f, 0.2f },
    { "IQ4_K", 0x1.fp16f, 0x1p17f, 0.08f },
    { "IQ5_K", 0x1.fp16f, 0x1p17f, 0.05f },
    { "IQ6_K", 0x1.fp16f, 0x1p17f, 0.03f },
    { "IQ2_KS", 0x1.fp16f, 0x1p17f, 0.3f },
    { "IQ3_KS", 0x1.fp16f, 0x1p17f, 0.2f },
    { "IQ4_KS", 0x1.fp16f, 0x1p17f, 0.08f },
    { "IQ1_KT", 0x1.fp16f, 0x1p17f, 1 },
    { "IQ2_KT", 0x1.fp16f, 0x1p17f, 1 },
    { "IQ3_KT", 0x1.fp16f, 0x1p17f, 1 },
    { "IQ4_KT", 0x1.fp16f, 0x1p17f, 1 },
    { "IQ1_BN", 65504, 65520, 0.01f },
    { "IQ2_BN", FLT_MAX, 0, 0.01f },
    { "Q8_KV", 0x1.fp127f, 0, 0.01f },
    { "IQ5_KS", 0x1.fp16f, 0x1p17f, 0.05f },
    { "IQ4_KSS", 0x1.fp16f, 0x1p17f, 0.1f },
    { "IQ2_KL", 0x1.fp16f, 0x1p17f, 0.3f },
    { "NVFP4", 2783, 2785, 0.15f }, /* 6 * (448 + 480) / 2; 7 becomes 6 or 8 */
};

enum { COLUMNS = 256, ROWS = 2, AT = COLUMNS + 37, MOST = 128 };
static char names[MOST][16];
static float numbers[MOST][ROWS * COLUMNS];
static struct gguf_imatrix *im;

/* Write a model of n tensors of small numbers, with one large number each. */
static bool write_large(const float *large, size_t n)
{
    static struct tensor t[MOST];
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < GG_LEN(numbers[i]); k++)
            numbers[i][k] = 0.05f * rnd_f32();
        numbers[i][AT] = large[i];
        t[i] = (struct tensor){
            names[i], GGUF_DTYPE_F32, { COLUMNS, ROWS, 1, 1 }, numbers[i]
        };
    }
    return write_model(t, n);
}

/* Run a job. Destroy it with gguf_quant_destroy(). */
static enum gguf_status run_job(struct gguf_quant **q, const char *type,
                                enum gguf_nonfinite what, bool weighted,
                                uint32_t cpu, struct gguf_error *err)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *recipe = NULL;
    char text[32];
    const int n = snprintf(text, sizeof text, "base %s\n", type);
    *q = NULL;
    o.force = o.no_sync = 1;
    gguf_error_clear(err);
    enum gguf_status st = gguf_recipe_parse(
        &recipe, (struct gguf_str){ text, (size_t)n }, NULL, err);
    p.recipe = recipe;
    p.pure = 1;
    p.nonfinite = what;
    p.imatrix = weighted ? im : NULL;
    if (st == GGUF_OK)
        st = gguf_quant_create(q, in, &p, err);
    if (st == GGUF_OK) {
        gg_job_set_cpu(*q, cpu);
        st = gguf_quant_run(*q, out, &o, err);
    }
    gguf_recipe_destroy(recipe);
    return st;
}

/* Read the large numbers of n tensors of the output. */
static bool read_large(float *large, size_t n)
{
    static float row[COLUMNS];
    struct gguf_rows *rows = NULL;
    struct gguf_file *f = NULL;
    bool good = gguf_rows_create(&rows, NULL, NULL) == GGUF_OK &&
                gguf_file_open(&f, out, NULL, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < n; i++) {
        good = gguf_rows_decode(rows, f, i, COLUMNS, COLUMNS, row, NULL) ==
               GGUF_OK;
        large[i] = row[AT - COLUMNS];
    }
    gguf_file_close(f);
    gguf_rows_destroy(rows);
    return good;
}

static bool needs_weights(const char *type)
{
    return !strncmp(type, "IQ1_", 4) ||
           (!strncmp(type, "IQ2_", 4) && type[4] != 'K') ||
           !strcmp(type, "IQ3_XXS");
}

/* With all kernels: a number that is stored, and one that is not (0: none). */
static void check_sides(const char *type, float held, float refused,
                        float error, bool weighted)
{
    const uint32_t cpus[] = { 0, gg_kern_cpu_detect() };
    struct gguf_quant *q;
    struct gguf_error err;
    for (size_t i = 0; i < GG_LEN(cpus) && (weighted || !needs_weights(type));
         i++) {
        const uint32_t cpu = cpus[i];
        char want[100];
        snprintf(
            want, sizeof want,
            "tensor 'a000.weight': %g at row 1, column 37 is too large for %s",
            (double)refused, type);
        bool good =
            write_large(&held, 1) && run_job(&q, type, GGUF_NONFINITE_ERROR,
                                             weighted, cpu, &err) == GGUF_OK;
        float x = 0;
        good = good && read_large(&x, 1);
        gguf_quant_destroy(q);
        ok(good && fabs((double)x / (double)held - 1) <= (double)error,
           "%s, %s, %s: %g is %g %s", type, cpu ? "vectors" : "C",
           weighted ? "weighted" : "plain", (double)held, (double)x,
           err.message);
        if (refused == 0)
            continue;
        good = write_large(&refused, 1) &&
               run_job(&q, type, GGUF_NONFINITE_ERROR, weighted, cpu, &err) ==
                   GGUF_E_NONFINITE;
        gguf_quant_destroy(q);
        ok(good && !strcmp(err.message, want), "%s, %s: %s", type,
           cpu ? "vectors" : "C", err.message);
    }
}

/* Numbers of all magnitudes are counted as too large, or stored within the
 * type's error. All above the limit are counted. */
static void check_all(const char *type, const float *large, float limit,
                      float error, bool weighted, uint32_t cpu)
{
    static float made[MOST];
    struct gguf_quant *q;
    struct gguf_error err;
    size_t bad = 0, n_held = 0;
    bool good = run_job(&q, type, GGUF_NONFINITE_ZERO, weighted, cpu, &err) ==
                    GGUF_OK &&
                read_large(made, MOST);
    for (size_t i = 0; good && i < MOST; i++) {
        const struct gguf_quant_tensor *t = gguf_quant_tensor(q, i);
        const double x = (double)made[i];
        const double off = fabs(x / (double)large[i] - 1);
        const bool held = !t->n_nonfinite;
        n_held += held;
        if (held ? fabsf(large[i]) >= limit || off > (double)error : x != 0) {
            printf("# %s: %g is %g, %s\n", type, (double)large[i], x,
                   held ? "held" : "not held");
            bad++;
        }
    }
    gguf_quant_destroy(q);
    ok(good && !bad, "%s, %s, %s: %zu of %d magnitudes are held %s", type,
       cpu ? "vectors" : "C", weighted ? "weighted" : "plain", n_held, MOST,
       err.message);
}

/* Powers of two, and numbers between them. */
static void check_each(float sign)
{
    const uint32_t cpus[] = { 0, gg_kern_cpu_detect() };
    static float large[MOST];
    for (size_t i = 0; i < MOST; i++)
        large[i] = sign * ldexpf(i % 2 ? 1.4f : 1, (int)i);
    if (!write_large(large, MOST))
        abort();
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < GG_LEN(types); i++) {
            const struct type *t = &types[i];
            if (k & 2 || !needs_weights(t->name))
                check_all(t->name, large,
                          (1.001f + t->search) * F16_END * t->up, t->error,
                          (k & 2) != 0, cpus[k & 1]);
        }
        /* without vectors the search for a trellis takes seconds */
        for (size_t i = 0; i < GG_LEN(others); i++)
            if (cpus[k & 1] || !strstr(others[i].name, "_KT"))
                check_all(others[i].name, large,
                          others[i].refused > 0 ? others[i].refused : INFINITY,
                          others[i].error, (k & 2) != 0, cpus[k & 1]);
    }
}

/* Each type with an encoder stands in one of the tables. */
static void check_tables(void)
{
    static struct gg_codec_kern codec[GG_N_DTYPES];
    gg_codec_kern_init(codec, 0);
    for (int i = 0; i < GG_N_DTYPES; i++) {
        const char *name = gg_dtype_by_index(i)->name;
        bool found = !codec[i].encode;
        for (size_t k = 0; k < GG_LEN(types); k++)
            found |= !strcmp(types[k].name, name);
        for (size_t k = 0; k < GG_LEN(others); k++)
            found |= !strcmp(others[k].name, name);
        ok(found, "%s has limits here", name);
    }
}

int main(void)
{
    static float sums[COLUMNS], one = 1;
    if (!make_dir("check-limit") ||
        gguf_imatrix_create(&im, NULL, NULL) != GGUF_OK)
        return 99;
    for (size_t i = 0; i < COLUMNS; i++)
        sums[i] = 0.5f + 0.01f * (float)(i % 50);
    for (size_t i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "a%03zu.weight", i);
        if (gguf_imatrix_add(im, names[i], COLUMNS, 1, sums, &one, NULL) !=
            GGUF_OK)
            return 99;
    }
    for (size_t i = 0; i < 2 * GG_LEN(types); i++) {
        const struct type *t = &types[i / 2];
        /* with importances every scale is searched for, up to a factor of 1.4
         */
        const float search = i % 2 ? 0.4f : t->search;
        const float held = (0.999f - search) * F16_MAX;
        const float refused = (1.001f + search) * F16_END;
        check_sides(t->name, held * t->up, refused * t->up, t->error, i % 2);
        check_sides(t->name, -held * t->down, -refused * t->down, t->error,
                    i % 2);
    }
    for (size_t i = 0; i < GG_LEN(others); i++) {
        const struct other *t = &others[i];
        check_sides(t->name, t->held, t->refused, t->error, false);
        check_sides(t->name, -t->held, -t->refused, t->error, false);
    }
    check_tables();
    check_each(1);
    check_each(-1);
    gguf_imatrix_destroy(im);
    remove_dir();
    return done_testing();
}
