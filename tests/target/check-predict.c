/* SPDX-License-Identifier: MIT */
/* check-predict.c - the predicted divergence of a file follows from the file,
 * its original and the importance data; types are chosen by it */
#include "config.h"
#include "base/compiler.h"
#include "gguf/target.h"
#include "kern/kern.h"
#include "tests/quant/tensors.h"

#include <math.h>

enum { TOKENS, ATTN_Q, EXPERTS, DOWN, NORM, OTHER_Q, N };

static struct tensor model[N] = {
    { "token_embd.weight", GGUF_DTYPE_F32, { 256, 40, 1, 1 }, NULL },
    { "blk.0.attn_q.weight", GGUF_DTYPE_F32, { 256, 24, 1, 1 }, NULL },
    { "blk.0.ffn_up_exps.weight", GGUF_DTYPE_F32, { 256, 8, 3, 1 }, NULL },
    { "blk.0.ffn_down.weight", GGUF_DTYPE_F32, { 512, 16, 1, 1 }, NULL },
    { "blk.0.attn_norm.weight", GGUF_DTYPE_F32, { 256, 1, 1, 1 }, NULL },
    { "blk.1.attn_q.weight", GGUF_DTYPE_F32, { 256, 24, 1, 1 }, NULL },
};
static float values[N][256 * 40];
static float sums[3][256];
static const float counts[3] = { 10, 0, 30 };
static const double c_table = 3, c_output = 0.2, c_q = 0.5, c_experts = 0.9,
                    c_down = 0.07, input_down = 1.7;

/* ---- the model and its data ---- */

static void make_model(void)
{
    for (size_t i = 0; i < N; i++) {
        const int64_t *ne = model[i].ne;
        for (int64_t k = 0; k < ne[0] * ne[1] * ne[2]; k++)
            values[i][k] = (float)(rnd64() % 2001) / 1000 - 1;
        model[i].data = values[i];
    }
    for (size_t m = 0; m < 3; m++)
        for (size_t j = 0; j < 256; j++)
            sums[m][j] = counts[m] * (1 + (float)(rnd64() % 100)) / 10;
    if (!write_model(model, N))
        exit(99);
}

enum { NOT_THE_OTHER, ALL_TENSORS, NO_SENSITIVITIES };

static struct gguf_imatrix *make_data(int how)
{
    struct gguf_imatrix *im;
    const float n = 10;
    bool good = gguf_imatrix_create(&im, NULL, NULL) == GGUF_OK &&
                gguf_imatrix_add(im, model[TOKENS].name, 256, 1, sums[0], &n,
                                 NULL) == GGUF_OK &&
                gguf_imatrix_add(im, model[ATTN_Q].name, 256, 1, sums[0], &n,
                                 NULL) == GGUF_OK &&
                gguf_imatrix_add(im, model[EXPERTS].name, 256, 3, sums[0],
                                 counts, NULL) == GGUF_OK;
    const struct {
        const char *name;
        double value, input;
    } s[] = {
        { model[TOKENS].name, c_table, 0 },
        { "output.weight", c_output, 1.1 },
        { model[ATTN_Q].name, c_q, 1.2 },
        { model[EXPERTS].name, c_experts, 1.3 },
        { model[DOWN].name, c_down, input_down },
        { model[OTHER_Q].name, c_q, 1.2 },
    };
    for (size_t i = 0;
         how != NO_SENSITIVITIES && i < 5u + (how == ALL_TENSORS); i++)
        good = good &&
               gguf_imatrix_add_sensitivity(im, s[i].name, s[i].value,
                                            s[i].input, 512, NULL) == GGUF_OK;
    if (!good)
        exit(99);
    return im;
}

/* ---- a prediction, written from imatrix.h ---- */

/* Sum over rows from to end - 1 of v(j) E^2 between tensor i and that of a
 * file. v NULL: 1. */
static double sum_errors(const struct gguf_file *f, size_t i, size_t from,
                         size_t end, const float *v)
{
    static float decoded[256 * 40];
    const size_t n = (size_t)model[i].ne[0];
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, model[i].name);
    struct gg_kern kern;
    double sum = 0;
    gg_kern_init(&kern, 0);
    kern.codec[gg_dtype_index(t->dtype)].decode(
        gguf_file_tensor_data(f, t->index), decoded, t->n_elements);
    for (size_t k = from * n; k < end * n; k++) {
        const double e = (double)values[i][k] - (double)decoded[k];
        sum += (v ? (double)v[k % n] : 1) * e * e;
    }
    return sum;
}

static double predict_file(const struct gguf_file *f, bool with_other)
{
    double d = 0;
    float v[3][256];
    for (size_t m = 0; m < 3; m++)
        for (size_t j = 0; j < 256; j++)
            v[m][j] = counts[m] > 0 ? sums[m][j] / counts[m] : 1;
    d += c_table / 2 * sum_errors(f, TOKENS, 0, 40, NULL) / 40;
    d += c_output / 2 * sum_errors(f, TOKENS, 0, 40, v[0]);
    d += c_q / 2 * sum_errors(f, ATTN_Q, 0, 24, v[0]);
    d += c_experts / 2 * 10 / 40 * sum_errors(f, EXPERTS, 0, 8, v[0]);
    d += c_experts / 2 * 30 / 40 * sum_errors(f, EXPERTS, 16, 24, v[2]);
    d += c_down / 2 * input_down * sum_errors(f, DOWN, 0, 16, NULL);
    if (with_other)
        d += c_q / 2 * 1.2 * sum_errors(f, OTHER_Q, 0, 24, NULL);
    return d;
}

/* ---- jobs ---- */

struct task {
    const char *recipe;
    uint64_t max_size; /* 0: the recipe decides */
    int data;
    unsigned threads;
    bool compat, no_record, chosen_only;
    /* results */
    enum gguf_status st;
    struct gguf_target_result target;
    struct gguf_quant_prediction p;
    double written; /* the key of the file; 0: missing */
    double wanted;  /* divergence that follows from the file */
    uint32_t other; /* type of the last tensor */
    uint64_t size;
};

static void read_output(struct task *t)
{
    struct gguf_file *f;
    if (gguf_file_open(&f, out, NULL, NULL) != GGUF_OK)
        return;
    const struct gguf_kv *kv = gguf_file_kv_find(f, "quantize.predicted_kld");
    if (kv && gguf_kv_get_float(kv, &t->written, NULL) != GGUF_OK)
        t->written = NAN;
    t->wanted = predict_file(f, t->data == ALL_TENSORS);
    t->other = gguf_file_tensor_find(f, model[OTHER_Q].name)->dtype;
    t->size = gguf_file_size(f);
    gguf_file_close(f);
}

static void run_task(struct task *t)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_target_params tp = GGUF_TARGET_PARAMS_INIT;
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_str text = { t->recipe, strlen(t->recipe) };
    struct gguf_imatrix *im = make_data(t->data);
    struct gguf_recipe *r;
    struct gguf_quant *q = NULL;
    struct gguf_error err;
    pp.n_threads = t->threads ? t->threads : 1;
    o.force = o.no_sync = true;
    tp.sample = GGUF_TARGET_SAMPLE_ALL;
    tp.max_size = t->max_size;
    tp.no_record = t->no_record;
    t->written = 0;
    t->target = (struct gguf_target_result)GGUF_TARGET_RESULT_INIT;
    t->p = (struct gguf_quant_prediction)GGUF_QUANT_PREDICTION_INIT;
    t->st = gguf_recipe_parse(&r, text, NULL, &err);
    p.recipe = r;
    p.imatrix = im;
    p.compat = t->compat;
    if (gguf_pool_create(&p.pool, &pp, NULL) != GGUF_OK)
        exit(99);
    if (t->st == GGUF_OK)
        t->st = gguf_quant_create(&q, in, &p, &err);
    if (t->st == GGUF_OK && t->max_size)
        t->st = gguf_quant_fit_size(q, &tp, &t->target, &err);
    if (t->st == GGUF_OK && !t->chosen_only)
        t->st = gguf_quant_predict(q, &tp, &t->p, &err);
    if (t->st == GGUF_OK)
        t->st = gguf_quant_run(q, out, &o, &err);
    if (t->st == GGUF_OK)
        read_output(t);
    else
        printf("# %s\n", err.message);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    gguf_pool_destroy(p.pool);
    gguf_imatrix_destroy(im);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static void check_predictions(void)
{
    static const char *const recipes[] = { "base Q4_0\n", "base Q8_0\n",
                                           "base Q2_K\n", "base Q6_K\n" };
    double last = 0;
    for (size_t i = 0; i < GG_LEN(recipes); i++) {
        struct task t = { .recipe = recipes[i], .data = ALL_TENSORS };
        run_task(&t);
        ok(t.st == GGUF_OK && is_near(t.p.divergence, t.wanted) &&
               t.p.n_tensors == 5 && !t.p.n_unknown &&
               is_near(t.written, (double)(float)t.p.divergence),
           "%.9s: predicted %.6g, by the file %.6g", recipes[i],
           t.p.divergence, t.wanted);
        last = t.p.divergence;
    }
    struct task t = { .recipe = recipes[3],
                      .data = ALL_TENSORS,
                      .threads = 4 };
    run_task(&t);
    ok(t.st == GGUF_OK && t.p.divergence == last,
       "the same bits with four threads");
    t.compat = true;
    run_task(&t);
    ok(t.st == GGUF_OK && t.p.divergence > 0 && t.written == 0,
       "compat: no key");
    t.compat = false;
    t.no_record = true;
    run_task(&t);
    ok(t.st == GGUF_OK && t.p.divergence == last && t.written == 0,
       "no_record: no key");
    t = (struct task){ .recipe = recipes[0], .data = NOT_THE_OTHER };
    run_task(&t);
    ok(t.st == GGUF_OK && is_near(t.p.divergence, t.wanted) &&
           t.p.n_unknown == 1 && t.written == 0,
       "a tensor without a sensitivity: no key");
    t = (struct task){ .recipe = recipes[0], .data = NO_SENSITIVITIES };
    run_task(&t);
    ok(t.st == GGUF_OK && t.p.n_tensors == 0 && t.p.divergence == 0 &&
           t.written == 0,
       "data without sensitivities: no prediction");
}

static void check_choice(void)
{
    struct task plain = { .recipe = "base Q4_0\n", .data = ALL_TENSORS };
    run_task(&plain);
    struct task t = plain;
    t.recipe = "base Q2_K\n";
    t.max_size = plain.size;
    run_task(&t);
    ok(t.st == GGUF_OK && t.target.predicted &&
           is_near(t.target.noise, t.wanted) &&
           is_near(t.p.divergence, t.wanted) && t.size <= plain.size &&
           is_near(t.written, (double)(float)t.wanted),
       "at the size of Q4_0 (%llu, limit %llu): %.6g nats, by the file %.6g",
       (unsigned long long)t.size, (unsigned long long)plain.size,
       t.target.noise, t.wanted);
    t.chosen_only = true;
    run_task(&t);
    ok(t.st == GGUF_OK && t.size <= plain.size &&
           is_near(t.written, (double)(float)t.wanted),
       "the choice records its prediction");
    t.chosen_only = false;
    ok(t.wanted < 0.8 * plain.wanted, "that is less than Q4_0's %.6g",
       plain.wanted);
    t.data = NOT_THE_OTHER;
    run_task(&t);
    ok(t.st == GGUF_OK && t.target.predicted && t.other == GGUF_DTYPE_Q2_K &&
           is_near(t.target.noise, t.wanted) && t.size <= plain.size &&
           t.target.n_free == 4,
       "a tensor without a sensitivity keeps the recipe's type");
    t.data = NO_SENSITIVITIES;
    run_task(&t);
    ok(t.st == GGUF_OK && !t.target.predicted && t.target.n_free == 5,
       "without sensitivities noise is relative");
}

int main(void)
{
    if (!make_dir("check-predict"))
        return 1;
    make_model();
    check_predictions();
    check_choice();
    remove_dir();
    return done_testing();
}
