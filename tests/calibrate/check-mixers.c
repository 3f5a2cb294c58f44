/* SPDX-License-Identifier: MIT */
/* check-mixers.c - models of every architecture are calibrated; faults in
 * weights and texts never lead to a crash or to a worse file
 *
 * Each model of tests/family is quantized to one of several types and
 * calibrated twice: as it is, and with one fault. Tensors without new bytes
 * must have those of the plain encoder; new bytes must decode to finite numbers
 * and have the smaller error of outputs.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/calibrate.h"
#include "gguf/model.h"
#include "gguf/stats.h"
#include "tests/calibrate/quantize_through.h"
#include "tests/family/skeleton.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>
#include <unistd.h>

enum { CHUNK = 64, N_TOKENS = 8 * CHUNK };

static const char *const types[] = { "Q4_0",  "Q5_1", "IQ4_NL", "Q8_0",
                                     "MXFP4", "Q2_K", "Q4_K_M" };

static const char *dir;

/* ---- faults ---- */

/* Values of a tensor, which a fault may change; freed with the model. */
static float *own_values(struct gen *g, struct gen_tensor *t)
{
    size_t n = 1;
    for (unsigned i = 0; i < t->n_dims; i++)
        n *= (size_t)t->ne[i];
    float *w = malloc(n * sizeof *w);
    if (!w)
        exit(99);
    gen_weights(w, g, t);
    t->values = w;
    return w;
}

static size_t n_rows(const struct gen_tensor *t)
{
    size_t n = 1;
    for (unsigned i = 1; i < t->n_dims; i++)
        n *= (size_t)t->ne[i];
    return n;
}

static void make_huge(struct gen *g, struct gen_tensor *t)
{
    float *w = own_values(g, t);
    for (size_t i = 0; i < (size_t)t->ne[0] * n_rows(t); i++)
        w[i] *= 1e25f;
}

static void zero_columns(struct gen *g, struct gen_tensor *t)
{
    float *w = own_values(g, t);
    const size_t n = (size_t)t->ne[0];
    for (size_t r = 0; r < n_rows(t); r++)
        for (size_t j = 0; j < n; j += 3)
            w[r * n + j] = 0;
}

static void zero_rows(struct gen *g, struct gen_tensor *t)
{
    float *w = own_values(g, t);
    const size_t n = (size_t)t->ne[0];
    for (size_t r = 0; r < n_rows(t); r++)
        if (r % 5 < 3)
            memset(w + r * n, 0, n * sizeof *w);
}

static void zero_all(struct gen *g, struct gen_tensor *t)
{
    memset(own_values(g, t), 0, (size_t)t->ne[0] * n_rows(t) * sizeof(float));
}

/* Each 50th column is large, and the others are nearly the same. */
static void align_columns(struct gen *g, struct gen_tensor *t)
{
    float *w = own_values(g, t);
    const size_t n = (size_t)t->ne[0];
    for (size_t r = 0; r < n_rows(t); r++)
        for (size_t j = 0; j < n; j++)
            w[r * n + j] =
                w[r * n] * (j % 50 == 7 ? 100 : 1) + 1e-6f * w[r * n + j];
}

static const struct fault {
    const char *what, *part; /* part of the names of tensors to change, which
                              * are matrices unless it is that of a norm */
    void (*change)(struct gen *g, struct gen_tensor *t);
    size_t n_tokens, n_words; /* n_words 0: all of the model's */
} faults[] = {
    { "none", "", NULL, N_TOKENS, 0 },
    { "one token", "", NULL, 1, 0 },
    { "seven tokens", "", NULL, 7, 0 },
    { "one word", "", NULL, N_TOKENS, 1 },
    { "two words, a part of a chunk", "", NULL, CHUNK + 9, 2 },
    { "huge norms in layer 1", "blk.1.attn_norm", make_huge, N_TOKENS, 0 },
    { "dead columns", "", zero_columns, N_TOKENS, 0 },
    { "zero rows", "", zero_rows, N_TOKENS, 0 },
    { "layer 0 is zero", "blk.0.", zero_all, N_TOKENS, 0 },
    { "activations of rank 1", "token_embd", align_columns, N_TOKENS, 0 },
};

/* ---- a calibration ---- */

struct trial {
    const struct fault *fault;
    struct run *original;
    gguf_token tok[N_TOKENS];
    bool all_plain_wanted;
    void *plain; /* data of all tensors before the calibration */
    struct gguf_calibrate_result result;
    enum gguf_status status; /* status of the calibration */
    char message[sizeof((struct gguf_error *)0)->message];
    size_t n_reports;
    bool worse, changed, silent;
    bool seen[4096]; /* tensors that were reported */
    const struct gguf_file *f;
};

/* Is this tensor that of the plain encoder? */
static bool is_plain(const struct trial *t, size_t i)
{
    const struct gguf_tensor_info *x = gguf_file_tensor(t->f, i);
    return !memcmp(gguf_file_tensor_data(t->f, i),
                   (char *)t->plain +
                       (x->off - gguf_file_tensor(t->f, 0)->off),
                   (size_t)x->size);
}

static bool take_report(void *user, const struct gguf_calibrate_tensor *c)
{
    struct trial *t = user;
    t->n_reports += !t->seen[c->tensor];
    t->seen[c->tensor] = true;
    t->worse |= c->error_after > c->error_before;
    t->changed |= !c->n_new && !is_plain(t, c->tensor);
    t->silent |= !c->n_new && !c->note;
    return false;
}

static bool are_finite(const struct gguf_file *f)
{
    struct gguf_rows *rows;
    struct gguf_error err;
    bool good = gguf_rows_create(&rows, NULL, &err) == GGUF_OK;
    for (size_t i = 0; good && i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *x = gguf_file_tensor(f, i);
        const size_t n = (size_t)x->n_elements;
        float *w = malloc(n * sizeof *w);
        if (!w)
            exit(99);
        if (gguf_rows_can_decode(rows, x->dtype))
            good = gguf_rows_decode(rows, f, i, 0, n, w, &err) == GGUF_OK;
        else
            memset(w, 0, n * sizeof *w);
        for (size_t k = 0; good && k < n; k++)
            good = isfinite(w[k]);
        free(w);
    }
    gguf_rows_destroy(rows);
    return good;
}

static enum gguf_status calibrate_output(void *user, size_t job,
                                         struct gguf_quant_improver *h,
                                         struct gguf_error *err)
{
    struct trial *t = user;
    struct gguf_calibrate_params p = GGUF_CALIBRATE_PARAMS_INIT;
    (void)job;
    t->f = gguf_quant_improver_file(h);
    const size_t last = gguf_file_n_tensors(t->f) - 1;
    const uint64_t size = gguf_file_tensor(t->f, last)->off +
                          gguf_file_tensor(t->f, last)->size -
                          gguf_file_tensor(t->f, 0)->off;
    t->plain = malloc((size_t)size);
    if (!t->plain)
        exit(99);
    memcpy(t->plain, gguf_file_tensor_data(t->f, 0), (size_t)size);
    p.tokens = t->tok;
    p.n_tokens = t->fault->n_tokens;
    p.n_ctx = t->fault->n_tokens < CHUNK ? 0 : CHUNK;
    p.on_tensor.fn = take_report;
    p.on_tensor.user = t;
    t->status = gguf_calibrate_run(h, t->original->model, &p, &t->result, err);
    if (t->status != GGUF_OK)
        snprintf(t->message, sizeof t->message, "%s", err->message);
    /* A calibration that failed may have replaced some tensors. */
    if (t->status == GGUF_OK && !are_finite(t->f))
        t->worse = true;
    return t->status;
}

static bool write_file(const char *path, struct gen *g)
{
    size_t size;
    void *data = gen_file(g, GGUF_DTYPE_F32, &size);
    FILE *f = fopen(path, "wb");
    const bool good = f && fwrite(data, 1, size, f) == size;
    free(data);
    return f && !fclose(f) && good;
}

static void set_tokens(struct trial *t, const struct skeleton *s)
{
    gguf_token own[SKELETON_TOKENS];
    uint64_t x = 1;
    skeleton_tokens_of(s, own);
    for (size_t i = 0; i < N_TOKENS; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const size_t words =
            t->fault->n_words ? t->fault->n_words : SKELETON_TOKENS;
        t->tok[i] = own[(x >> 33) % words];
    }
}

static bool is_changed(const struct gen *g, size_t i, const struct fault *f)
{
    return strstr(g->t[i].name, f->part) &&
           (g->t[i].n_dims > 1) == !strstr(f->part, "norm");
}

static void apply_fault(struct gen *g, const struct fault *f)
{
    for (size_t i = 0; f->change && i < g->n; i++)
        if (is_changed(g, i, f) && !g->t[i].ints && !g->t[i].values)
            f->change(g, &g->t[i]);
}

/* Statuses of models that a calibration refuses, with their reason. */
static bool is_refusal(const struct trial *t)
{
    return (t->status == GGUF_E_UNSUPPORTED || t->status == GGUF_E_NONFINITE ||
            (t->status == GGUF_E_INVALID && t->fault->n_tokens < CHUNK)) &&
           t->message[0];
}

/* Sum of the logarithms of divergence after by before, and its terms. */
static double sum_log;
static int n_log;
static int n_given_up; /* files whose new bytes were given up */

/* Is the divergence not above that of the plain bytes? */
static bool is_no_worse(const struct gguf_calibrate_result *r)
{
    const double before = r->divergence_before, after = r->divergence_after;
    if (before > 0 && after > 0) {
        sum_log += log(after / before);
        n_log++;
    }
    n_given_up += !isnan(r->divergence_given_up);
    return !(after > before);
}

static void try_model(const char *name, const struct fault *fault,
                      const char *type)
{
    static struct skeleton s;
    static struct trial t;
    static struct run r;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    const struct gguf_quant_improve_callback improve = { calibrate_output,
                                                         &t };
    struct gguf_error err;
    gguf_error_clear(&err);
    memset(&t, 0, sizeof t);
    t.fault = fault;
    t.result = (struct gguf_calibrate_result)GGUF_CALIBRATE_RESULT_INIT;
    t.result.divergence_before = t.result.divergence_after = NAN;
    p.n_ctx = CHUNK;
    if (!skeleton_open(&s, name))
        exit(99);
    set_tokens(&t, &s);
    apply_fault(&s.g, fault);
    const char *in = scratch_path(dir, "in.gguf");
    const char *out = scratch_path(dir, "out.gguf");
    bool good = write_file(in, &s.g) && run_open_path(&r, in, 1, &p);
    if (!good)
        snprintf(err.message, sizeof err.message, "%s", r.err.message);
    t.original = &r;
    if (good)
        good =
            quantize_through(r.file, type, out,
                             (struct gguf_quant_params)GGUF_QUANT_PARAMS_INIT,
                             false, improve, &err) == GGUF_OK ||
            is_refusal(&t);
    if (good && t.status == GGUF_OK)
        good = t.n_reports == t.result.n_tensors && !t.worse && !t.changed &&
               !t.silent && is_no_worse(&t.result);
    ok(good, "%s, %s, %s", name, type, fault->what);
    printf("# %zu of %zu new, divergence %.3g to %.3g%s%s%s%s%s\n",
           t.result.n_new, t.result.n_tensors, t.result.divergence_before,
           t.result.divergence_after, t.worse ? ", worse" : "",
           t.changed ? ", changed" : "", t.silent ? ", silent" : "",
           err.message[0] ? ": " : "", err.message);
    run_close(&r);
    free(t.plain);
    for (size_t i = 0; fault->change && i < s.g.n; i++)
        if (is_changed(&s.g, i, fault))
            free((void *)(uintptr_t)s.g.t[i].values);
    skeleton_close(&s);
    scratch_clean(dir);
}

int main(int argc, char **argv)
{
    static char names[256][64];
    static char tmp[] = "/tmp/gguf-mixers-XXXXXX";
    const size_t n = skeleton_names(names, GG_LEN(names));
    dir = scratch_make(tmp);
    if (!dir || !n)
        return 99;
    for (size_t i = 0; i < n; i++) {
        if (argc > 1 && strcmp(argv[1], names[i]))
            continue;
        static struct skeleton s;
        const bool evaluates = skeleton_open(&s, names[i]) && s.n_rows;
        skeleton_close(&s);
        if (!evaluates)
            continue;
        try_model(names[i], &faults[0], types[i % GG_LEN(types)]);
        if (argc > 1)
            for (size_t k = 1; k < GG_LEN(faults); k++)
                try_model(names[i], &faults[k], types[k % GG_LEN(types)]);
        else
            try_model(names[i], &faults[1 + i % (GG_LEN(faults) - 1)],
                      types[(i + 3) % GG_LEN(types)]);
    }
    printf("# mean of divergences, after by before: %.3f\n",
           exp(sum_log / n_log));
    printf("# new bytes of %d files were given up\n", n_given_up);
    ok(argc > 1 || sum_log < n_log * log(0.5), "divergence is halved");
    return rmdir(dir) ? 99 : done_testing();
}
