/* SPDX-License-Identifier: MIT */
/* check-adapter.c - a LoRA adapter gives the logits of the model with its
 * products added in */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/model/lora.h"
#include "tests/model/ref.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { N = LORA_TOKENS };

static const struct gguf_session_params *small_session(void)
{
    static struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = 64;
    return &p;
}

/* ---- a dense model, against doubles ---- */

static struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = 96 };
static gguf_token tokens[N];

/* Logits of the model with products added in, in double precision on rounded
 * weights. */
static void reference_logits(struct gen *g, const struct lora *const *l,
                             const double *scale, size_t n, double *out)
{
    lora_add_in(g, l, scale, n);
    ref_logits(g, &spec, tokens, N, out);
    lora_drop_values(g);
}

static double distance_of(const float *x, const double *y, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        s += y[i] * y[i];
    }
    return d / s;
}

enum { DENSE = N * 96 };

/* Two adapters whose scales change between decodes: nothing is allocated, and
 * the results are those of the sums. */
static void check_dense(int tied)
{
    static float plain[DENSE], out[DENSE];
    static double ref[DENSE];
    struct gen g;
    struct lora l[2];
    const struct lora *ls[2] = { &l[0], &l[1] };
    struct lora_opened o[2] = { { 0 } };
    struct run r;
    struct failalloc f;
    struct gguf_session_params p = *small_session();
    size_t size;
    spec.tied = tied;
    gen_init(&g, 5);
    gen_model(&g, &spec);
    lora_of_llama(&l[0], &g, 3, 6);
    lora_of_llama(&l[1], &g, 1, 0);
    void *data = gen_file(&g, GGUF_DTYPE_F32, &size);
    p.allocator = failalloc_init(&f, UINT_MAX);
    bool good = run_open(&r, data, size, 1, &p) &&
                lora_outputs(&r, tokens, plain) &&
                !lora_open(&o[0], r.model, &l[0], &r.err) &&
                !lora_open(&o[1], r.model, &l[1], &r.err);
    const struct gguf_adapter_info *info =
        good ? gguf_adapter_info(o[0].adapter) : NULL;
    ok(good && info->n_weights == (tied ? 8 : 9) && info->rank_min == 3 &&
           info->rank_max == 3 && info->alpha == 6 &&
           info->size >= info->n_params * sizeof(float),
       "%s: two adapters are opened %s", tied ? "tied" : "dense",
       good ? "" : r.err.message);
    static const double scales[][2] = { { 1, 1 }, { 0.5, -1.5 }, { -0.25, 1 },
                                        { 1, 0 }, { 0, 0 },      { 2, 1 } };
    for (size_t i = 0; good && i < GG_LEN(scales); i++) {
        const struct gguf_adapter_use use[] = {
            { o[0].adapter, (float)scales[i][0] },
            { o[1].adapter, (float)scales[i][1] }
        };
        const unsigned calls = f.calls;
        good = !gguf_session_set_adapters(r.session, use, 2, &r.err);
        const unsigned set_calls = f.calls - calls;
        good = good && lora_outputs(&r, tokens, out);
        reference_logits(&g, ls, scales[i], 2, ref);
        ok(good && distance_of(out, ref, DENSE) < 1e-10,
           "%s: scales %g and %g: %.2g from the sum in doubles %s",
           tied ? "tied" : "dense", scales[i][0], scales[i][1],
           distance_of(out, ref, DENSE), good ? "" : r.err.message);
        ok(f.calls - calls == set_calls &&
               (i != 1 && i != 2 ? set_calls > 0 : set_calls == 0),
           "allocations: %u when they are set, %u when they are used",
           set_calls, f.calls - calls - set_calls);
        ok(gguf_session_n_adapters(r.session) == 2 &&
               gguf_session_adapter(r.session, 1)->scale == use[1].scale &&
               !gguf_session_adapter(r.session, 2),
           "the session says which count");
        if (i == 4)
            ok(!memcmp(out, plain, sizeof out), "scale 0: the same bits");
    }
    good = good && !gguf_session_set_adapters(r.session, NULL, 0, &r.err) &&
           lora_outputs(&r, tokens, out);
    ok(good && !memcmp(out, plain, sizeof out), "without: the same bits");
    run_close(&r);
    lora_close(&o[0]);
    lora_close(&o[1]);
    ok(!f.live, "all is freed");
    lora_fini(&l[0]);
    lora_fini(&l[1]);
    free(data);
    gen_fini(&g);
    spec.tied = 0;
}

/* A tied model with an adapter for output.weight has the logits of an untied
 * model whose output matrix is the embedding plus the product. Token look-ups
 * still read the embedding. */
static void check_tied_output(int both)
{
    static float out[DENSE];
    static double ref[DENSE];
    struct gen g, untied;
    struct lora l;
    struct lora_opened o = { 0 };
    struct run r;
    size_t size;
    spec.tied = 1;
    gen_init(&g, 5);
    gen_model(&g, &spec);
    void *data = gen_file(&g, GGUF_DTYPE_F32, &size);
    spec.tied = 0;
    gen_init(&untied, 5);
    gen_model(&untied, &spec);
    struct gen_tensor *head = NULL;
    const struct gen_tensor *embd = NULL;
    for (size_t i = 0; i < untied.n; i++) {
        if (!strcmp(untied.t[i].name, "output.weight"))
            head = &untied.t[i];
        if (!strcmp(untied.t[i].name, "token_embd.weight"))
            embd = &untied.t[i];
    }
    lora_init(&l, "llama", 6);
    lora_pair(&l, head, 3, 0.1);
    if (both)
        lora_pair(&l, embd, 3, 0.1);
    float *values = malloc(lora_n(embd) * sizeof *values);
    if (!values)
        exit(99);
    gen_weights(values, &untied, embd);
    double *sum = calloc(lora_n(head), sizeof *sum);
    if (!sum)
        exit(99);
    for (size_t i = 0; i < lora_n(head); i++)
        sum[i] = (double)values[i];
    lora_add(&l, head, 1, sum);
    for (size_t i = 0; i < lora_n(head); i++)
        values[i] = (float)sum[i];
    head->values = values;
    bool good = run_open(&r, data, size, 1, small_session()) &&
                !lora_open(&o, r.model, &l, &r.err);
    const struct gguf_adapter_use use = { o.adapter, 1 };
    good = good && !gguf_session_set_adapters(r.session, &use, 1, &r.err) &&
           lora_outputs(&r, tokens, out);
    if (both) {
        float *looked_up = malloc(lora_n(embd) * sizeof *looked_up);
        if (!looked_up)
            exit(99);
        gen_weights(looked_up, &untied, embd);
        memset(sum, 0, lora_n(embd) * sizeof *sum);
        lora_add(&l, embd, 1, sum);
        for (size_t i = 0; i < lora_n(embd); i++)
            looked_up[i] = (float)((double)looked_up[i] + sum[i]);
        untied.t[embd - untied.t].values = looked_up;
    }
    ref_logits(&untied, &spec, tokens, N, ref);
    ok(good && distance_of(out, ref, DENSE) < 1e-10,
       "a pair of the output of a tied model%s: %.2g from doubles %s",
       both ? ", and one of the embedding" : "", distance_of(out, ref, DENSE),
       good ? "" : r.err.message);
    run_close(&r);
    lora_close(&o);
    lora_fini(&l);
    lora_drop_values(&untied);
    free(sum);
    free(data);
    gen_fini(&untied);
    gen_fini(&g);
}

/* ---- weights of other types ---- */

/* The base in block types, the adapter in F16: compared with the decoded
 * blocks plus the products. */
static void check_quantized(void)
{
    static float with[DENSE], added[DENSE];
    char dir[] = "check-adapter.XXXXXX";
    struct gguf_quant_params qp = GGUF_QUANT_PARAMS_INIT;
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *job = NULL;
    struct gguf_rows *rows = NULL;
    struct gguf_file *from = NULL;
    struct gguf_error err;
    struct gen g;
    struct lora l;
    struct lora_opened o = { 0 };
    struct run r, sum;
    size_t size;
    if (!scratch_make(dir))
        exit(99);
    const char *path = scratch_path(dir, "q8.gguf");
    gen_init(&g, 6);
    gen_model(&g, &spec);
    lora_of_llama(&l, &g, 4, 4);
    void *data = gen_file(&g, GGUF_DTYPE_F32, &size);
    qp.pure = 1;
    bool good = !gguf_recipe_preset(&recipe, "Q8_0", NULL, &err) &&
                !gguf_file_open_memory(&from, data, size, NULL, &err);
    qp.recipe = recipe;
    good = good && !gguf_quant_create_file(&job, from, &qp, &err) &&
           !gguf_quant_run(job, path, NULL, &err) &&
           run_open_path(&r, path, 1, small_session()) &&
           !gguf_rows_create(&rows, NULL, &err);
    void *halves = lora_file(&l, GGUF_DTYPE_F16, &size);
    struct gguf_adapter_use use = { NULL, 1 };
    good = good && !lora_open_data(&o, r.model, halves, size, &err);
    use.adapter = o.adapter;
    good = good && !gguf_session_set_adapters(r.session, &use, 1, &err) &&
           lora_outputs(&r, tokens, with);
    size_t n_q8 = 0;
    for (size_t i = 0; good && i < g.n; i++) {
        const struct gguf_tensor_info *t =
            gguf_file_tensor_find(r.file, g.t[i].name);
        float *v = malloc(t->n_elements * sizeof *v);
        good = !gguf_rows_decode(rows, r.file, t->index, 0, t->n_elements, v,
                                 &err);
        n_q8 += t->dtype == GGUF_DTYPE_Q8_0;
        g.t[i].values = v;
    }
    const struct lora *ls[] = { &l };
    lora_add_in(&g, ls, (const double[]){ 1 }, 1);
    void *both = gen_file(&g, GGUF_DTYPE_F32, &size);
    lora_drop_values(&g);
    good = good && run_open(&sum, both, size, 1, small_session()) &&
           lora_outputs(&sum, tokens, added);
    ok(good && n_q8 == 9 && run_nmse(with, added, DENSE) < 1e-10,
       "%zu matrices of Q8_0, pairs of F16: %.2g from the sum %s", n_q8,
       good ? run_nmse(with, added, DENSE) : 9, good ? "" : err.message);
    if (good)
        run_close(&sum);
    run_close(&r);
    lora_close(&o);
    gguf_rows_destroy(rows);
    gguf_quant_destroy(job);
    gguf_recipe_destroy(recipe);
    gguf_file_close(from);
    lora_fini(&l);
    gen_fini(&g);
    free(both);
    free(data);
    scratch_clean(dir);
    rmdir(dir);
}

/* ---- memory ---- */

/* The estimate is exact for a session created with adapters, and for one that
 * gets them later. */
static void check_memory(void)
{
    struct gen g;
    struct lora l;
    struct lora_opened o = { 0 };
    struct run r, s;
    struct gguf_session_params p = *small_session();
    size_t size;
    uint64_t cache[3] = { 0 }, graphs[4] = { 0 };
    gen_init(&g, 7);
    gen_model(&g, &spec);
    lora_of_llama(&l, &g, 32, 8);
    void *data = gen_file(&g, GGUF_DTYPE_F32, &size);
    bool good =
        run_open(&r, data, size, 1, &p) && !lora_open(&o, r.model, &l, &r.err);
    struct gguf_adapter_use use = { o.adapter, 1 };
    gguf_session_memory_size(r.session, &cache[0], &graphs[0]);
    p.adapters = &use;
    p.n_adapters = 1;
    p.backend = r.backend;
    good = good && !gguf_session_estimate_memory(r.model, &p, &cache[1],
                                                 &graphs[1], &r.err);
    good = good && !gguf_session_set_adapters(r.session, &use, 1, &r.err);
    gguf_session_memory_size(r.session, &cache[2], &graphs[2]);
    gguf_session_destroy(r.session);
    good = !gguf_session_create(&s.session, r.model, &p, &r.err) && good;
    r.session = s.session;
    gguf_session_memory_size(r.session, &cache[0], &graphs[3]);
    ok(good && cache[0] == cache[1] && cache[1] == cache[2] &&
           graphs[1] > graphs[0] && graphs[1] == graphs[2] &&
           graphs[1] == graphs[3],
       "graphs take %llu bytes, with adapters %llu as estimated %s",
       (unsigned long long)graphs[0], (unsigned long long)graphs[1],
       good ? "" : r.err.message);
    run_close(&r);
    lora_close(&o);
    lora_fini(&l);
    gen_fini(&g);
    free(data);
}

/* Each allocation fails once while an adapter is opened and set. The session
 * is unchanged then, and the next try succeeds. */
static void check_failures(void)
{
    static float before[DENSE], with[DENSE], after[DENSE];
    struct gen g;
    struct lora l;
    struct gguf_file *file;
    struct gguf_adapter *adapter = NULL;
    struct gguf_adapter_params ap = GGUF_ADAPTER_PARAMS_INIT;
    struct failalloc f, fs;
    struct run r;
    struct gguf_session_params p = *small_session();
    size_t size;
    unsigned n;
    bool good = true;
    gen_init(&g, 8);
    gen_model(&g, &spec);
    lora_of_llama(&l, &g, 2, 1);
    void *data = gen_file(&g, GGUF_DTYPE_F32, &size);
    p.allocator = failalloc_init(&fs, UINT_MAX);
    if (!run_open(&r, data, size, 1, &p) || !lora_outputs(&r, tokens, before))
        abort();
    void *bytes = lora_file(&l, GGUF_DTYPE_F32, &size);
    if (gguf_file_open_memory(&file, bytes, size, NULL, &r.err))
        abort();
    for (n = 0; good; n++) {
        ap.allocator = failalloc_init(&f, n);
        const enum gguf_status st =
            gguf_adapter_create(&adapter, r.model, file, &ap, &r.err);
        if (st == GGUF_OK && f.calls <= n)
            break;
        good = st == GGUF_E_NOMEM && !adapter && !f.live;
    }
    ok(good && n > 4, "each of %u allocations of opening fails", n);
    const struct gguf_adapter_use use = { adapter, 1 };
    unsigned failed = 0;
    for (unsigned k = 0; good; k++) {
        fs.fail_at = fs.last = fs.calls + k;
        const enum gguf_status st =
            gguf_session_set_adapters(r.session, &use, 1, &r.err);
        fs.fail_at = fs.last = UINT_MAX;
        if (st == GGUF_OK)
            break;
        failed++;
        good = st == GGUF_E_NOMEM && !gguf_session_n_adapters(r.session) &&
               lora_outputs(&r, tokens, after) &&
               !memcmp(before, after, sizeof after);
    }
    good = good && lora_outputs(&r, tokens, with);
    ok(good && failed > 2 && run_nmse(with, before, DENSE) > 1e-4,
       "and each of %u when it is set, which changes nothing %s", failed,
       good ? "" : r.err.message);
    run_close(&r);
    gguf_adapter_destroy(adapter);
    ok(!f.live && !fs.live, "all is freed");
    gguf_file_close(file);
    free(bytes);
    free(data);
    lora_fini(&l);
    gen_fini(&g);
}

int main(void)
{
    for (int i = 0; i < N; i++)
        tokens[i] = (gguf_token)((37 * i + 11) % 96);
    check_dense(0);
    check_dense(1);
    check_tied_output(0);
    check_tied_output(1);
    check_quantized();
    check_memory();
    check_failures();
    return done_testing();
}
