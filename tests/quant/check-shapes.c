/* SPDX-License-Identifier: MIT */
/* check-shapes.c - every type for rows of every length, in a model without
 * metadata; and unusable importance data */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "dtype/dtype_int.h"
#include "gguf/stats.h"
#include "gguf/writer.h"
#include "kern/cpu_features.h"
#include "kern/kern.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

#include <math.h>

static const int64_t widths[] = { 1,   31,  32,  48,  64, 96,
                                  128, 160, 256, 300, 512 };
enum { N_WIDTHS = GG_LEN(widths), N_ROWS = 3 };

/* Tensors "w32.weight" and so on, without metadata. */
static void write_bare(const char *path)
{
    struct gguf_writer *w = NULL;
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    char name[64];
    static uint8_t data[4 * 512 * N_ROWS];
    p.no_sync = p.force = 1;
    bool good = gguf_writer_create(&w, NULL, NULL, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < N_WIDTHS; i++) {
        int64_t ne[2] = { widths[i], N_ROWS };
        snprintf(name, sizeof name, "w%d.weight", (int)widths[i]);
        struct gguf_str s = { name, strlen(name) };
        good = gguf_writer_add_tensor(w, s, GGUF_DTYPE_F32, 2, ne, NULL) ==
               GGUF_OK;
    }
    good = good && gguf_writer_begin_file(w, path, &p, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < N_WIDTHS; i++) {
        size_t n = (size_t)widths[i] * N_ROWS;
        for (size_t k = 0; k < n; k++)
            gg_bytes_store32le(data + 4 * k, gg_bytes_f32_bits(rnd_f32()));
        good = gguf_writer_begin_tensor(w, i, NULL) == GGUF_OK &&
               gguf_writer_write(w, data, 4 * n, NULL) == GGUF_OK;
    }
    if (!good || gguf_writer_commit(w, NULL) != GGUF_OK)
        printf("Bail out! cannot write %s\n", path);
    gguf_writer_destroy(w);
}

/* Importance data; value k of each tensor is f(k). */
static struct gguf_imatrix *make_imatrix(float f(size_t))
{
    static const float one = 1;
    struct gguf_imatrix *im = NULL;
    float sums[512];
    if (gguf_imatrix_create(&im, NULL, NULL) != GGUF_OK)
        return NULL;
    for (size_t k = 0; k < 512; k++)
        sums[k] = f(k);
    for (size_t i = 0; i < N_WIDTHS; i++) {
        char name[64];
        snprintf(name, sizeof name, "w%d.weight", (int)widths[i]);
        if (gguf_imatrix_add(im, name, (uint64_t)widths[i], 1, sums, &one,
                             NULL) != GGUF_OK)
            printf("Bail out! no memory\n");
    }
    return im;
}

static float uneven_value(size_t k)
{
    return 0.1f + (float)(k % 5);
}

/* The type that llama-quantize uses for rows that do not fit; F16 if it fails.
 * Facts about that program, not from the library's table. */
static uint32_t fallback_of(uint32_t type)
{
    switch (type) {
    case GGUF_DTYPE_IQ1_S:
    case GGUF_DTYPE_IQ1_M:
    case GGUF_DTYPE_IQ2_XXS:
    case GGUF_DTYPE_IQ2_XS:
    case GGUF_DTYPE_IQ2_S:
    case GGUF_DTYPE_IQ3_XXS:
    case GGUF_DTYPE_IQ3_S:
    case GGUF_DTYPE_IQ4_XS: return GGUF_DTYPE_IQ4_NL;
    case GGUF_DTYPE_Q2_K:
    case GGUF_DTYPE_Q3_K:
    case GGUF_DTYPE_TQ1_0:
    case GGUF_DTYPE_TQ2_0:
    case GGUF_DTYPE_Q2_0: return GGUF_DTYPE_Q4_0;
    case GGUF_DTYPE_Q4_K: return GGUF_DTYPE_Q5_0;
    case GGUF_DTYPE_Q5_K: return GGUF_DTYPE_Q5_1;
    case GGUF_DTYPE_Q6_K: return GGUF_DTYPE_Q8_0;
    default: return GGUF_DTYPE_F16;
    }
}

static uint32_t expected_type(uint32_t type, int64_t width)
{
    const struct gguf_dtype_info *t = gguf_dtype_find(type);
    if (width % t->block_len == 0)
        return type;
    t = gguf_dtype_find(fallback_of(type));
    return width % t->block_len == 0 ? t->id : GGUF_DTYPE_F16;
}

/* Quantize all tensors to a type. Count those with a wrong type or wrong
 * numbers. */
static int count_wrong(const struct gguf_quant *q, uint32_t type)
{
    int bad = gguf_quant_n_tensors(q) != N_WIDTHS;
    for (size_t i = 0; i < gguf_quant_n_tensors(q); i++) {
        const struct gguf_quant_tensor *t = gguf_quant_tensor(q, i);
        uint32_t want = expected_type(type, t->ne[0]);
        if (t->to != want || t->wanted != type ||
            (!t->copied && !(t->loss.measured && t->loss.snr > 1))) {
            bad++;
            printf("# %s: %s, wanted %s, %g dB\n", t->name,
                   gguf_dtype_find(t->to)->name, gguf_dtype_find(want)->name,
                   t->loss.snr);
        }
    }
    return bad;
}

static void check_type(const char *in, uint32_t type,
                       const struct gguf_imatrix *im)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant_override over = { "weight", type };
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_error err = { .message = "" };
    const char *out = in_dir("o.gguf");
    o.no_sync = o.force = 1;
    bool good = gguf_recipe_preset(&r, "Q8_0", NULL, &err) == GGUF_OK;
    p.recipe = r;
    p.overrides = &over;
    p.n_overrides = 1;
    p.measure = 1;
    p.imatrix = im;
    good = good && gguf_quant_create(&q, in, &p, &err) == GGUF_OK &&
           gguf_quant_run(q, out, &o, &err) == GGUF_OK;
    ok(good && !count_wrong(q, type), "%s: rows of 1 to 512 elements %s",
       gguf_dtype_find(type)->name, err.message);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
}

static void check_types(const char *in)
{
    struct gguf_imatrix *im = make_imatrix(uneven_value);
    static struct gg_kern kern;
    gg_kern_init(&kern, gg_kern_cpu_detect());
    for (int i = 0; i < GG_N_DTYPES; i++) {
        const struct gguf_dtype_info *t = gg_dtype_by_index(i);
        if ((t->family == GGUF_FAMILY_FLOAT ||
             t->family == GGUF_FAMILY_QUANT) &&
            kern.codec[i].encode)
            check_type(in, t->id, im);
    }
    gguf_imatrix_destroy(im);
}

/* Presets read metadata that is missing. */
static void check_presets(const char *in)
{
    struct gguf_imatrix *im = make_imatrix(uneven_value);
    struct gguf_error err;
    int bad = 0, n = 0;
    for (; gguf_recipe_preset_name((size_t)n); n++) {
        struct setup s = SETUP(gguf_recipe_preset_name((size_t)n));
        struct gguf_file *f;
        s.p.imatrix = im;
        if (quantize(in, in_dir("o.gguf"), s, &err) != GGUF_OK ||
            gguf_file_open(&f, in_dir("o.gguf"), NULL, &err) != GGUF_OK) {
            printf("# %s: %s\n", s.type, err.message);
            bad++;
            continue;
        }
        bad += gguf_file_n_tensors(f) != N_WIDTHS;
        gguf_file_close(f);
    }
    ok(!bad && n > 30, "%d presets for a model without an architecture", n);
    gguf_imatrix_destroy(im);
}

/* ------------------------------------------------------ importance data --- */

static float all_zero(size_t k)
{
    return 0 * (float)k;
}

static float all_nan(size_t k)
{
    return (float)NAN * (float)k;
}

static float some_bad(size_t k)
{
    static const float bad[] = { (float)NAN, (float)INFINITY, -1, 0 };
    return k % 8 < 4 ? bad[k % 8] : 1 + (float)(k % 3);
}

static float huge_or_tiny(size_t k)
{
    return k % 2 ? 3e38f : 1e-38f;
}

static void check_bad_imatrix(const char *in)
{
    static const struct {
        const char *what;
        float (*f)(size_t);
        uint64_t mended; /* columns of 256 without data that were filled */
    } cases[] = {
        { "zero throughout", all_zero, 256 },
        { "NaN throughout", all_nan, 256 },
        { "NaN, infinite and negative here and there", some_bad, 96 },
        { "huge and tiny", huge_or_tiny, 128 },
    };
    static const char *const types[] = {
        "Q4_0",  "Q5_1",    "Q2_K",  "Q3_K_M",  "Q4_K_M", "Q6_K", "IQ4_XS",
        "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XXS", "IQ1_S",  "IQ1_M"
    };
    struct gguf_error err = { .message = "" };
    for (size_t c = 0; c < GG_LEN(cases); c++) {
        struct gguf_imatrix *im = make_imatrix(cases[c].f);
        int bad = 0;
        for (size_t i = 0; i < GG_LEN(types); i++) {
            struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
            struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
            struct gguf_recipe *r = NULL;
            struct gguf_quant *q = NULL;
            o.no_sync = o.force = 1;
            p.measure = p.pure = 1;
            p.imatrix = im;
            bool good =
                gguf_recipe_preset(&r, types[i], NULL, &err) == GGUF_OK;
            p.recipe = r;
            good = good && gguf_quant_create(&q, in, &p, &err) == GGUF_OK &&
                   gguf_quant_run(q, in_dir("o.gguf"), &o, &err) == GGUF_OK;
            bad += !good;
            for (size_t k = 0; good && k < gguf_quant_n_tensors(q); k++) {
                const struct gguf_quant_tensor *t = gguf_quant_tensor(q, k);
                bool finite = !t->loss.measured || t->loss.snr > 0;
                if (!finite || (t->ne[0] == 256 && t->has_imatrix &&
                                t->n_mended != cases[c].mended)) {
                    bad++;
                    printf("# %s, %s: %g dB, %d mended\n", types[i], t->name,
                           t->loss.snr, (int)t->n_mended);
                }
            }
            gguf_quant_destroy(q);
            gguf_recipe_destroy(r);
        }
        ok(!bad, "importances %s end no run %s", cases[c].what, err.message);
        gguf_imatrix_destroy(im);
    }
}

int main(void)
{
    char in[4000]; /* a copy: in_dir() reuses its paths */
    if (!enter_dir())
        return 99;
    snprintf(in, sizeof in, "%s", in_dir("in.gguf"));
    write_bare(in);
    check_types(in);
    check_presets(in);
    check_bad_imatrix(in);
    remove(in_dir("o.gguf"));
    remove(in);
    ok(leave_dir(), "the folder is empty again");
    return done_testing();
}
