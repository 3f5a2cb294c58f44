/* SPDX-License-Identifier: MIT */
/* check-quant.c - jobs give the same bytes however they run, and the right
 * figures */
#include "config.h"
#include "base/compiler.h"
#include "gguf/stats.h"
#include "kern/cpu_features.h"
#include "quant/job/job.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

#include <math.h>

/* A type with 1, 2, 3 and 8 threads, with little memory, and with the kernels
 * of every level of this machine. */
static void check_type(const char *in, const char *type,
                       const struct gguf_imatrix *im)
{
    static const unsigned threads[] = { 1, 2, 3, 8 };
    const char *a = in_dir("a.gguf"), *b = in_dir("b.gguf");
    struct gguf_error err;
    struct setup s = SETUP(type);
    int bad = 0;
    s.p.imatrix = im;
    ok(quantize(in, a, s, &err) == GGUF_OK, "%s: %s", type, err.message);
    for (size_t i = 0; i < GG_LEN(threads); i++) {
        s.threads = threads[i];
        s.p.max_memory = threads[i] == 3 ? 700000 : 0;
        bad += quantize(in, b, s, &err) != GGUF_OK || !same_files(a, b);
    }
    ok(!bad, "%s: the same with 1, 2, 3, 8 threads %s", type, err.message);
    s.forced = true;
    for (unsigned i = 0; i <= gg_kern_cpu_n_levels; i++) {
        if (!(gg_kern_cpu_detect() & ~s.cpu) && i)
            break;
        bad += quantize(in, b, s, &err) != GGUF_OK || !same_files(a, b);
        if (i < gg_kern_cpu_n_levels)
            s.cpu |= gg_kern_cpu_levels[i].bit & gg_kern_cpu_detect();
    }
    ok(!bad, "%s: the same with the kernels of every level", type);
    remove(a);
    remove(b);
}

static void check_same(const char *in)
{
    static const char *const some[] = { "Q4_K_M", "Q8_0",   "Q4_0", "F32",
                                        "COPY",   "IQ4_XS", "IQ1_S" };
    bool is_long = getenv("GGUF_TEST_LONG") != NULL;
    struct gguf_imatrix *im = model_imatrix();
    for (size_t i = 0; is_long && gguf_recipe_preset_name(i); i++)
        check_type(in, gguf_recipe_preset_name(i), im);
    for (size_t i = 0; !is_long && i < GG_LEN(some); i++)
        check_type(in, some[i], im);
    gguf_imatrix_destroy(im);
    check_type(in, "Q3_K_M", NULL);
}

/* Losses agree with a plain computation, with any number of threads. */
static void check_loss(const char *in)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    const char *out = in_dir("loss.gguf");
    struct gguf_quant_loss first = { .measured = 0 };
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_pool *pool = NULL;
    o.force = o.no_sync = 1;
    for (unsigned n = 1; n < 4; n += 2) {
        struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
        pp.n_threads = n;
        p.measure = 1;
        bool good = gguf_pool_create(&pool, &pp, NULL) == GGUF_OK &&
                    gguf_recipe_preset(&r, "Q8_0", NULL, NULL) == GGUF_OK;
        p.pool = pool;
        p.recipe = r;
        good = good && gguf_quant_create(&q, in, &p, NULL) == GGUF_OK &&
               gguf_quant_run(q, out, &o, NULL) == GGUF_OK;
        size_t i = 0;
        while (good && strcmp(gguf_quant_tensor(q, i)->name,
                              "blk.2.ffn_down_exps.weight"))
            i++;
        if (good && n == 1) {
            first = gguf_quant_tensor(q, i)->loss;
            ok(first.measured && first.snr > 40 && first.snr < 60 &&
                   fabs(first.rms_in - sqrt(1 / 3.0)) < 0.01 &&
                   first.weighted == first.rms && first.max > first.rms &&
                   fabs(first.snr - 20 * log10(first.rms_in / first.rms)) <
                       1e-9,
               "Q8_0 of uniform numbers: rms %g, max %g, %g dB", first.rms,
               first.max, first.snr);
            ok(!gguf_quant_tensor(q, 1)->loss.measured,
               "nothing is measured where nothing is encoded");
        } else {
            const struct gguf_quant_loss *l = &gguf_quant_tensor(q, i)->loss;
            ok(good && l->rms == first.rms && l->max == first.max &&
                   l->weighted == first.weighted && l->snr == first.snr,
               "the same with 3 threads");
        }
        gguf_quant_destroy(q);
        gguf_recipe_destroy(r);
        gguf_pool_destroy(pool);
    }
    /* the library's comparison of the two files */
    struct gguf_file *a = NULL, *b = NULL;
    struct gguf_rows *rows = NULL;
    struct gguf_stats_params sp = GGUF_INIT(struct gguf_stats_params);
    struct gguf_stats_diff d = GGUF_INIT(struct gguf_stats_diff);
    bool good = gguf_file_open(&a, in, NULL, NULL) == GGUF_OK &&
                gguf_file_open(&b, out, NULL, NULL) == GGUF_OK &&
                gguf_rows_create(&rows, NULL, NULL) == GGUF_OK;
    sp.rows = rows;
    good =
        good &&
        gguf_stats_compare(
            a, gguf_file_tensor_find(a, "blk.2.ffn_down_exps.weight")->index,
            b, gguf_file_tensor_find(b, "blk.2.ffn_down_exps.weight")->index,
            &sp, &d, NULL) == GGUF_OK;
    ok(good && fabs(d.rms - first.rms) <= 1e-12 && d.max_abs == first.max,
       "and what comparing the files says: rms %g, max %g", d.rms, d.max_abs);
    gguf_rows_destroy(rows);
    gguf_file_close(a);
    gguf_file_close(b);
    remove(out);
}

static void check_many(const char *in)
{
    static const char *const types[] = { "Q6_K", "COPY", "F16", "Q8_0" };
    const char *paths[] = { in_dir("m0.gguf"), in_dir("m1.gguf"),
                            in_dir("m2.gguf"), in_dir("m3.gguf") };
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *r[4];
    struct gguf_quant *q[4];
    struct gguf_error err = { .message = "" };
    int bad = 0;
    o.no_sync = 1;
    for (int i = 0; i < 4; i++) {
        struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
        if (gguf_recipe_preset(&r[i], types[i], NULL, NULL) == GGUF_OK) {
            p.recipe = r[i];
            bad += gguf_quant_create(&q[i], in, &p, &err) != GGUF_OK;
        }
    }
    ok(!bad && gguf_quant_run_many(q, paths, 4, &o, &err) == GGUF_OK,
       "four outputs from one reading %s", err.message);
    const char *one = in_dir("one.gguf");
    for (int i = 0; i < 4; i++) {
        struct setup s = SETUP(types[i]);
        bad += quantize(in, one, s, &err) != GGUF_OK ||
               !same_files(one, paths[i]);
        remove(paths[i]);
        gguf_quant_destroy(q[i]);
        gguf_recipe_destroy(r[i]);
    }
    remove(one);
    ok(!bad, "each is the same as alone");
}

int main(void)
{
    const char *in = enter_model();
    check_same(in);
    check_many(in);
    check_loss(in);
    return leave_model();
}
