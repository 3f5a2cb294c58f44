/* SPDX-License-Identifier: MIT */
/* check-tune.c - gradients of the divergence by block scales and norms, against
 * central differences in double precision; steps and their values
 *
 * A tiny model is quantized. Its divergence from the original is computed by
 * the definitions of all operations (double_eval.h), with the elements of a
 * tensor changed as its parameters say. */
#include "config.h"
#include "calibrate/tune_pass.h"
#include "run/session_int.h"
#include "tests/graph/double_eval.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct gguf_tensor tensor;

enum { N_TOK = 9, MOST = 40 };

struct work {
    struct run original, quantized;
    void *file[2];
    gguf_token tok[N_TOK];
    bool all[N_TOK], used[N_TOK];
    struct gguf_batch batch;
    struct gg_tune_tensor tensor[MOST];
    uint8_t *from[MOST];
    size_t n;
    double kl;
    /* for the evaluator */
    struct gguf_ctx *ctx;
    struct gguf_graph *head;
    tensor *states, *logits;
};

/* ---- a model and its tensors ---- */

static bool open_run(struct run *r, const void *file, size_t size,
                     unsigned n_threads)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_cpu_params c = GGUF_CPU_PARAMS_INIT;
    c.precision = GGUF_PRECISION_EXACT;
    c.n_threads = n_threads;
    p.n_ctx = 32;
    return run_open_cpu(r, file, size, NULL, &c, &p);
}

static void add_weight(struct work *w, const tensor *t)
{
    const struct gg_form *f = gg_form_of(gg_dtype_index(t->dtype));
    const size_t size = (size_t)gguf_tensor_size(t);
    if (!f && (t->dtype != GGUF_DTYPE_F32 || gguf_tensor_n_rows(t) != 1))
        return;
    uint8_t *from = malloc(size);
    memcpy(from, t->data, size);
    w->from[w->n] = from;
    if (gg_tune_tensor_init(&w->tensor[w->n++], t, f, from, NULL, NULL))
        abort();
}

static char path[256]; /* path of the quantized model */

/* Quantize by a recipe, and read the file. */
static void *quantize_file(const struct gguf_file *f, const char *type,
                           size_t *size)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *recipe;
    struct gguf_quant *q = NULL;
    enum gguf_status st = gguf_recipe_preset(&recipe, type, NULL, NULL);
    p.recipe = recipe;
    o.force = o.no_sync = true;
    if (st == GGUF_OK)
        st = gguf_quant_create_file(&q, f, &p, NULL);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, path, &o, NULL);
    if (st != GGUF_OK)
        abort();
    gguf_quant_destroy(q);
    gguf_recipe_destroy(recipe);
    return slurp(path, size);
}

static struct work *open_work(const char *type, unsigned n_threads)
{
    const struct gen_spec spec = { .arch = "llama",
                                   .n_vocab = 96,
                                   .n_ctx = 64,
                                   .n_embd = 256,
                                   .n_layer = 1,
                                   .n_ff = 256,
                                   .n_head = 4,
                                   .n_head_kv = 2,
                                   .eps = 1e-5f,
                                   .freq_base = 10000 };
    struct work *w = calloc(1, sizeof *w);
    size_t size[2];
    w->file[0] = gen_model_file(&spec, 3, GGUF_DTYPE_F32, &size[0]);
    if (!open_run(&w->original, w->file[0], size[0], n_threads))
        abort();
    w->file[1] = quantize_file(w->original.file, type, &size[1]);
    if (!open_run(&w->quantized, w->file[1], size[1], n_threads))
        abort();
    for (size_t i = 0; i < N_TOK; i++) {
        w->tok[i] = (gguf_token)((i * 37 + 5) % 90);
        w->all[i] = true;
        w->used[i] = i != 3; /* one is held out */
    }
    w->batch = (struct gguf_batch)GGUF_BATCH_INIT;
    w->batch.token = w->tok;
    w->batch.want = w->all;
    w->batch.n = N_TOK;
    for (size_t i = 0; i < gguf_file_n_tensors(w->quantized.file); i++)
        add_weight(w, gguf_model_tensor(w->quantized.model, i));
    return w;
}

static void close_work(struct work *w)
{
    for (size_t i = 0; i < w->n; i++) {
        gg_tune_tensor_fini(&w->tensor[i]);
        free(w->from[i]);
    }
    run_close(&w->original);
    run_close(&w->quantized);
    free(w->file[0]);
    free(w->file[1]);
    free(w);
}

static enum gguf_status init_pass(struct work *w, struct gg_tune_pass *t)
{
    const struct gg_tune_pass_params p = { .original = w->original.session,
                                           .quantized = w->quantized.session,
                                           .tensor = w->tensor,
                                           .n_tensors = w->n,
                                           .pool = w->quantized.pool,
                                           .most_tokens = N_TOK };
    return gg_tune_pass_init(t, &p, &w->quantized.err);
}

static bool run_pass(struct work *w)
{
    struct gg_tune_pass t;
    bool good =
        init_pass(w, &t) == GGUF_OK &&
        gg_tune_pass_check(&t, &w->batch, &w->quantized.err) == GGUF_OK &&
        gg_tune_pass_run(&t, &w->batch, w->used, 1.0 / (N_TOK - 1), &w->kl,
                         &w->quantized.err) == GGUF_OK;
    if (!good)
        printf("# %s\n", w->quantized.err.message);
    gg_tune_pass_fini(&t);
    return good;
}

/* ---- the divergence in double precision ---- */

static bool begin_double(struct work *w)
{
    struct gguf_session *s = w->quantized.session;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.mem_size = 1 << 20;
    p.no_alloc = true;
    if (gguf_ctx_create(&w->ctx, &p, NULL) != GGUF_OK)
        return false;
    w->states = gguf_tensor_create_2d(w->ctx, GGUF_DTYPE_F32,
                                      s->model->hp.n_embd, N_TOK);
    w->logits = gg_build_logits(s->model, NULL, w->ctx, w->states);
    w->head = gguf_graph_create(w->ctx, 100);
    return gguf_graph_finish(w->ctx, w->head, w->logits, NULL) == GGUF_OK &&
           deval_begin(s->pass.graph) && deval_begin(w->head);
}

static void end_double(struct work *w)
{
    deval_end(w->head);
    deval_end(w->quantized.session->pass.graph);
    gguf_ctx_destroy(w->ctx);
}

static double log_sum(const double *x, size_t n)
{
    double sum = 0; /* logits are small here */
    for (size_t i = 0; i < n; i++)
        sum += exp(x[i]);
    return log(sum);
}

/* Mean divergence of the tokens that are used. NaN after a failure. */
static double measure_double(struct work *w)
{
    const size_t n = (size_t)w->logits->ne[0];
    double *p = calloc(2 * n, sizeof *p), *q = p + n, sum = 0;
    const float *base;
    struct gguf_error err;
    bool good = deval_run(w->quantized.session->pass.graph) &&
                gguf_session_logits(w->original.session, 0, N_TOK, &base,
                                    &err) == GGUF_OK;
    const tensor *states = w->quantized.session->states;
    for (int64_t i = 0; good && i < gguf_tensor_n_elements(w->states); i++)
        *deval_at(w->states, i) = *deval_at(states, i);
    good = good && deval_run(w->head);
    for (size_t t = 0; good && t < N_TOK; t++) {
        for (size_t i = 0; i < n; i++) {
            p[i] = (double)base[t * n + i];
            q[i] = *deval_at(w->logits, (int64_t)(t * n + i));
        }
        const double np = log_sum(p, n), nq = log_sum(q, n);
        for (size_t i = 0; i < n && w->used[t]; i++)
            sum += exp(p[i] - np) * (p[i] - np - q[i] + nq);
    }
    free(p);
    return good ? sum / (N_TOK - 1) : (double)NAN;
}

/* Set element e of block k for parameters that are h times `by` further. */
static void move_block(const struct gg_tune_tensor *x, size_t k,
                       const double *by, double h)
{
    const struct gg_form *f = x->form;
    struct gg_form_block b;
    f->unpack(&b, x->from + k * f->block_size);
    for (unsigned e = 0; e < f->block_len; e++) {
        const unsigned s = e / f->sub_len;
        double level = (double)gg_form_level(f, &b, e);
        if (f->shift_len)
            level += (double)f->shift[b.shift[e / f->shift_len]];
        const double min = x->per_block == 2
                               ? (double)gg_form_min(f, &b, s) * exp(h * by[1])
                               : 0;
        *deval_at(x->weight, (int64_t)(k * f->block_len + e)) =
            (double)gg_form_scale(f, &b, s) * level * exp(h * by[0]) - min;
    }
}

static void move_tensor(const struct gg_tune_tensor *x, const double *by,
                        double h)
{
    for (size_t k = 0; k < x->n_blocks; k++)
        if (x->form)
            move_block(x, k, by + k * x->per_block, h);
        else
            *deval_at(x->weight, (int64_t)k) =
                (double)((const float *)(const void *)x->from)[k] + h * by[k];
}

static bool compare_direction(struct work *w, const struct gg_tune_tensor *x,
                              const double *by)
{
    const double h = 1e-4;
    double sum = 0, all = 0, squares = 0;
    const size_t n = x->n_blocks * x->per_block;
    for (size_t i = 0; i < n; i++) {
        const double g = (double)x->gradient[i], d = g * by[i];
        sum += d;
        all += d * d;
        squares += g * g;
    }
    move_tensor(x, by, h);
    const double up = measure_double(w);
    move_tensor(x, by, -h);
    const double down = measure_double(w);
    move_tensor(x, by, 0);
    const double d = (up - down) / (2 * h);
    /* The forward pass is F32: a small gradient is a sum of larger ones. */
    const bool good =
        fabs(d - sum) <= 1e-3 * (sqrt(all) + sqrt(squares / (double)n));
    if (!good)
        printf("# %s: %g by differences, %g by gradients, scale %g\n",
               x->weight->name, d, sum, sqrt(all));
    return good;
}

/* Compare the derivatives along a random direction, and by one parameter. */
static bool compare_tensor(struct work *w, const struct gg_tune_tensor *x)
{
    const size_t n = x->n_blocks * x->per_block;
    double *by = calloc(n, sizeof *by);
    bool good = true;
    for (size_t i = 0; i < n; i++)
        by[i] = (double)rnd_f32();
    good = compare_direction(w, x, by);
    memset(by, 0, n * sizeof *by);
    for (size_t i = 0; good && i < 1; i++) {
        const size_t k = rnd_below(n);
        by[k] = 1;
        good = compare_direction(w, x, by);
        by[k] = 0;
    }
    free(by);
    return good;
}

static void check_gradients(const char *type)
{
    struct work *w = open_work(type, 2);
    unsigned n_forms = 0, n_vectors = 0;
    bool good = run_pass(w) && begin_double(w);
    const double kl = good ? measure_double(w) : (double)NAN;
    ok(fabs(kl - w->kl) <= 1e-5 * kl + 1e-9,
       "%s: divergence %g, by definition %g", type, w->kl, kl);
    for (size_t i = 0; good && i < w->n; i++) {
        const struct gg_tune_tensor *x = &w->tensor[i];
        good = !x->bad && compare_tensor(w, x);
        n_forms += x->form != NULL;
        n_vectors += !x->form;
    }
    ok(good && n_forms == 9 && n_vectors == 3,
       "%s: gradients of %u matrices and %u vectors", type, n_forms,
       n_vectors);
    end_double(w);
    close_work(w);
}

/* ---- steps ---- */

enum { STEPS = 3 };

/* Parameter i after three steps of Adam, by the definition. */
static double step_double(double value, const double *g, double rate)
{
    double m = 0, v = 0;
    for (int k = 0; k < STEPS; k++) {
        m = .9 * m + .1 * g[k];
        v = .99 * v + .01 * g[k] * g[k];
        value -= rate * (m / (1 - pow(.9, k + 1))) /
                 (sqrt(v / (1 - pow(.99, k + 1))) + 1e-12);
    }
    return value;
}

/* Decode a block whose d and dmin are d0 exp(v) in F16. */
static bool compare_block(const struct gg_tune_tensor *x, size_t k,
                          const double *v)
{
    const struct gg_form *f = x->form;
    /* half the distance of subnormal F16 numbers, times the largest code */
    const double subnormal = 0x1p-25 * 128;
    struct gg_form_block was, is;
    f->unpack(&was, x->from + k * f->block_size);
    f->unpack(&is, (const uint8_t *)x->weight->data + k * f->block_size);
    const double d[2] = { (double)gg_form_scale(f, &was, 0) * exp(v[0]),
                          (double)gg_form_min(f, &was, 0) *
                              exp(x->per_block == 2 ? v[1] : 0) };
    return fabs((double)gg_form_scale(f, &is, 0) - d[0]) <=
               fabs(d[0]) * 0x1p-11 + subnormal &&
           fabs((double)gg_form_min(f, &is, 0) - d[1]) <=
               fabs(d[1]) * 0x1p-11 + subnormal &&
           !memcmp(was.code, is.code, sizeof was.code) &&
           (!f->has_d || !memcmp(was.scale, is.scale, sizeof was.scale));
}

static bool check_tensor_steps(struct gg_tune_tensor *x)
{
    const size_t n = x->n_blocks * x->per_block;
    const double rate = .02;
    double *g = calloc(n * STEPS, sizeof *g), *want = calloc(n, sizeof *want);
    bool good = true;
    for (size_t i = 0; i < n * STEPS; i++)
        g[i] = (double)(rnd_f32() * 1e-3f);
    for (int k = 0; k < STEPS; k++) {
        for (size_t i = 0; i < n; i++)
            x->gradient[i] = (float)g[i * STEPS + k];
        gg_tune_tensor_step(x, NULL, rate);
    }
    for (size_t i = 0; good && i < n; i++) {
        const float *from = (const float *)(const void *)x->from;
        want[i] = step_double(x->form ? 0 : (double)from[i], g + i * STEPS,
                              x->form ? rate : rate * x->rms);
        good = fabs((double)x->value[i] - want[i]) < 1e-6 && !x->gradient[i];
        if (!x->form)
            good = good && ((const float *)x->weight->data)[i] == x->value[i];
    }
    for (size_t k = 0; good && x->form && k < x->n_blocks; k++)
        good = compare_block(x, k, want + k * x->per_block);
    if (!good)
        printf("# %s differs\n", x->weight->name);
    free(g);
    free(want);
    return good && !x->bad;
}

static void check_steps(const char *type)
{
    struct work *w = open_work(type, 1);
    bool good = true;
    for (size_t i = 0; good && i < w->n; i++)
        good = check_tensor_steps(&w->tensor[i]);
    ok(good, "%s: three steps of %zu tensors", type, w->n);
    struct gg_tune_tensor *x = &w->tensor[0];
    uint8_t *was = malloc((size_t)x->size);
    memcpy(was, x->weight->data, (size_t)x->size);
    x->gradient[1] = NAN;
    x->gradient[0] = 1;
    gg_tune_tensor_step(x, NULL, .1);
    ok(x->bad && !memcmp(was, x->weight->data, (size_t)x->size),
       "%s: no step with a gradient that is NaN", type);
    free(was);
    close_work(w);
}

int main(void)
{
    static const char *const types[] = { "Q4_K_M", "Q5_1", "IQ4_XS" };
    char dir[] = "check-tune.XXXXXX";
    if (!scratch_make(dir))
        abort();
    strcpy(path, scratch_path(dir, "a.gguf"));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        check_gradients(types[i]);
    check_steps("Q4_K_M");
    check_steps("Q5_1");
    check_steps("IQ3_S");
    scratch_clean(dir);
    ok(rmdir(dir) == 0, "no file is left");
    return done_testing();
}
