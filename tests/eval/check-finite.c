/* SPDX-License-Identifier: MIT */
/* check-finite.c - the first result that is not finite is reported with its
 * operation, weight and position */
#include "config.h"
#include "base/compiler.h"
#include "gguf/eval.h"
#include "gguf/sensitivity.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>

enum { CTX = 12, CHUNKS = 5, V = 400, N = CHUNKS * CTX, ODD = V - 1 };

static const struct gen_spec spec = { GEN_LAYERS(3), .n_vocab = V };
static gguf_token text[N];

/* ---- models with one changed tensor ---- */

static struct gen_tensor *find_tensor(struct gen *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->t[i].name, name))
            return &g->t[i];
    return NULL;
}

/* A model whose tensor has x at element `at'; at < 0: all elements times x. */
static void *make_with_value(const char *name, int64_t at, float x,
                             size_t *size)
{
    struct gen g;
    gen_init(&g, 5);
    gen_model(&g, &spec);
    struct gen_tensor *t = find_tensor(&g, name);
    const int64_t n = t->ne[0] * (t->n_dims > 1 ? t->ne[1] : 1);
    float *v = malloc((size_t)n * sizeof *v);
    gen_weights(v, &g, t);
    for (int64_t i = 0; at < 0 && i < n; i++)
        v[i] *= x;
    if (at >= 0)
        v[at] = x;
    t->values = v;
    void *file = gen_file(&g, GGUF_DTYPE_F32, size);
    gen_fini(&g);
    free(v);
    return file;
}

struct how {
    uint32_t n_seq, n_ubatch;
    unsigned n_threads;
    bool check;
};

/* Perplexity of the text. Returns the error and the session's fault. */
static enum gguf_status evaluate_text(const void *file, size_t size,
                                      struct how how,
                                      struct gguf_session_fault *fault,
                                      struct gguf_ppl *ppl,
                                      struct gguf_error *err)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_scan_params scan = GGUF_SCAN_PARAMS_INIT;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct run r;
    enum gguf_status st = GGUF_E_INVALID;
    *ppl = (struct gguf_ppl)GGUF_PPL_INIT;
    *fault = (struct gguf_session_fault){ .op = "" };
    gguf_error_clear(err);
    sp.n_ctx = CTX;
    sp.n_seq = how.n_seq;
    sp.n_ubatch = how.n_ubatch;
    if (run_open(&r, file, size, how.n_threads, &sp)) {
        gguf_session_set_finite_check(r.session, how.check);
        scan.n_ctx = CTX;
        scan.pool = r.pool;
        p.scan = &scan;
        st = gguf_ppl_run(r.session, text, N, &p, ppl, err);
        if (gguf_session_fault(r.session))
            *fault = *gguf_session_fault(r.session);
    }
    run_close(&r);
    return st;
}

/* ---- which operation ---- */

static const struct one {
    const char *weight;
    int64_t at;
    float value;
    int32_t layer;
    const char *op, *tensor, *sources;
} ones[] = {
    { "blk.1.attn_q.weight", 37, NAN, 1, "matmul", "blk.1.attn_q",
      "'blk.1.attn_q.weight', 'blk.1.attn_norm'" },
    { "blk.2.attn_k.weight", 3, INFINITY, 2, "matmul", "blk.2.attn_k",
      "'blk.2.attn_k.weight', 'blk.2.attn_norm'" },
    { "blk.0.attn_v.weight", 0, -INFINITY, 0, "matmul", "blk.0.attn_v",
      "'blk.0.attn_v.weight', 'blk.0.attn_norm'" },
    { "blk.0.attn_output.weight", 1023, NAN, 0, "matmul", "blk.0.attn_output",
      "'blk.0.attn_output.weight', 'blk.0.attn_heads'" },
    { "blk.1.attn_norm.weight", 5, INFINITY, 1, "mul", "blk.1.attn_norm",
      "'blk.0.output', 'blk.1.attn_norm.weight'" },
    { "blk.2.ffn_norm.weight", 31, NAN, 2, "mul", "blk.2.ffn_norm", NULL },
    { "blk.1.ffn_gate.weight", 77, NAN, 1, "matmul", "blk.1.ffn_gate", NULL },
    { "blk.1.ffn_up.weight", 78, INFINITY, 1, "matmul", "blk.1.ffn_up", NULL },
    { "blk.2.ffn_down.weight", 79, NAN, 2, "matmul", "blk.2.ffn_down", NULL },
    { "output_norm.weight", 4, NAN, -1, "mul", "output_norm",
      "'blk.2.output', 'output_norm.weight'" },
    { "output.weight", 64, NAN, -1, "matmul", "output", NULL },
    /* every weight is finite; activations overflow */
    { "blk.1.ffn_up.weight", -1, 1e38f, 1, "swiglu", "",
      "'blk.1.ffn_gate', 'blk.1.ffn_up'" },
};

static bool is_found(const struct one *o, const struct gguf_session_fault *f)
{
    const bool good = f->op && !strcmp(f->op, o->op) &&
                      !strcmp(f->tensor, o->tensor) &&
                      (!o->sources || !strcmp(f->sources, o->sources)) &&
                      f->layer == o->layer && !isfinite(f->value);
    if (!good)
        printf("# layer %d: %s '%s' of %s\n", (int)f->layer, f->op, f->tensor,
               f->sources);
    return good;
}

static void check_ones(void)
{
    const struct how how = { 1, 12, 2, true };
    for (size_t i = 0; i < GG_LEN(ones); i++) {
        const struct one *o = &ones[i];
        struct gguf_session_fault f;
        struct gguf_error err, plain;
        struct gguf_ppl ppl;
        size_t size;
        void *file = make_with_value(o->weight, o->at, o->value, &size);
        enum gguf_status st = evaluate_text(file, size, how, &f, &ppl, &err);
        char name[80];
        snprintf(name, sizeof name, "%s%s%s%s of ", o->op,
                 o->tensor[0] ? " '" : "", o->tensor, o->tensor[0] ? "'" : "");
        ok(st == GGUF_E_NONFINITE && is_found(o, &f) &&
               strstr(err.message, name) && strstr(err.message, "chunk 1, "),
           "%s: %s", o->weight, err.message);
        st = evaluate_text(file, size, (struct how){ 1, 5, 1, false }, &f,
                           &ppl, &plain);
        ok(st == GGUF_E_NONFINITE && strstr(plain.message, name) &&
               strstr(plain.message, "chunk 1: the probability of token "),
           "without asking: %s", plain.message);
        free(file);
    }
}

/* ---- whose it is ---- */

/* The token ODD has an embedding of NaN. It is reported where it first occurs
 * in the text. */
static void check_place(void)
{
    static const struct how hows[] = {
        { 1, 512, 1, true }, { 3, 512, 2, true }, { 1, 5, 3, true },
        { 5, 5, 1, true },   { 4, 4, 1, true },
    };
    static const size_t at[] = { 0, 7, CTX, 2 * CTX + 11, N - 1 };
    size_t size;
    void *file = make_with_value("token_embd.weight", (int64_t)ODD * 32 + 9,
                                 NAN, &size);
    for (size_t k = 0; k < GG_LEN(at); k++) {
        const gguf_token old = text[at[k]];
        const size_t chunk = at[k] / CTX, pos = at[k] % CTX;
        unsigned n_good = 0;
        char want[160];
        text[at[k]] = ODD;
        snprintf(want, sizeof want,
                 "chunk %zu, position %zu (token %zu of the text): get_rows "
                 "'token_embd' of 'token_embd.weight', 'tokens' is not a "
                 "number",
                 chunk + 1, pos, at[k]);
        for (size_t i = 0; i < GG_LEN(hows); i++) {
            struct gguf_session_fault f;
            struct gguf_error err;
            struct gguf_ppl ppl;
            const enum gguf_status st =
                evaluate_text(file, size, hows[i], &f, &ppl, &err);
            n_good += st == GGUF_E_NONFINITE && !strcmp(err.message, want);
            if (strcmp(err.message, want) != 0)
                printf("# %s\n", err.message);
        }
        ok(n_good == GG_LEN(hows), "token %zu: %s", at[k], want);
        text[at[k]] = old;
    }
    free(file);
}

/* One NaN in the output matrix makes one logit of every row NaN. The first
 * scored token of the chunk is reported. */
static void check_logits(void)
{
    size_t size;
    struct gguf_session_fault f;
    struct gguf_error err;
    struct gguf_ppl ppl;
    void *file = make_with_value("output.weight", 64, NAN, &size);
    const enum gguf_status st = evaluate_text(
        file, size, (struct how){ 2, 512, 1, true }, &f, &ppl, &err);
    ok(st == GGUF_E_NONFINITE && f.row == 0 && f.seq == -1 &&
           strstr(err.message, "chunk 1, position 6 (token 6 of the text)"),
       "logits: %s", err.message);
    free(file);
}

static void check_digits(void)
{
    size_t size;
    struct gguf_session_fault f;
    struct gguf_error err;
    struct gguf_ppl a, b;
    void *file = make_with_value("output.weight", 64, 0.5f, &size);
    const enum gguf_status x = evaluate_text(
        file, size, (struct how){ 2, 512, 2, false }, &f, &a, &err);
    const enum gguf_status y = evaluate_text(
        file, size, (struct how){ 2, 512, 2, true }, &f, &b, &err);
    ok(!x && !y && a.n && a.sum == b.sum && a.sum_sq == b.sum_sq,
       "a model without fault has the same digits when it is checked");
    free(file);
}

/* ---- sensitivities ---- */

static enum gguf_status measure_file(const void *file, size_t size,
                                     struct gguf_imatrix *im,
                                     struct gguf_error *err)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_sensitivity_params p = GGUF_SENSITIVITY_PARAMS_INIT;
    struct run r;
    enum gguf_status st = GGUF_E_INVALID;
    sp.n_ctx = sp.n_ubatch = p.n_ctx = CTX;
    p.n_tokens = 1;
    if (run_open(&r, file, size, 1, &sp))
        st = gguf_sensitivity_run(im, r.session, text, N, &p, err);
    run_close(&r);
    return st;
}

static void check_sensitivities(void)
{
    static const char zero[] = "blk.1.ffn_down.weight";
    static const struct {
        const char *name;
        int64_t at;
        float x;
        enum gguf_status want;
    } cases[] = {
        { zero, 5, (float)NAN, GGUF_E_NONFINITE },
        { "output.weight", 5, (float)NAN, GGUF_E_NOTFOUND },
        { zero, -1, 0, GGUF_OK }, /* the last case */
    };
    struct gguf_imatrix *im;
    struct gguf_error err;
    size_t i, size;
    if (gguf_imatrix_create(&im, NULL, &err) != GGUF_OK)
        return;
    for (size_t k = 0; k < GG_LEN(cases); k++) {
        void *file =
            make_with_value(cases[k].name, cases[k].at, cases[k].x, &size);
        gguf_error_clear(&err);
        ok(measure_file(file, size, im, &err) == cases[k].want,
           "sensitivities with %g in '%s': %s", (double)cases[k].x,
           cases[k].name, err.message);
        free(file);
    }
    ok(gguf_imatrix_n_sensitivities(im) == 22 &&
           !gguf_imatrix_find_sensitivity(
               im, (struct gguf_str){ zero, sizeof zero - 1 }, &i),
       "a weight of zeros is left out");
    gguf_imatrix_destroy(im);
}

/* ---- every architecture, every weight ---- */

static bool decode_tokens(const struct skeleton *s, const gguf_token *tok,
                          bool check, float *out, struct gguf_session_fault *f,
                          struct gguf_error *err)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct run r;
    bool want[SKELETON_TOKENS];
    size_t size = 0, n = 0;
    void *file = gen_file(&s->g, GGUF_DTYPE_F32, &size);
    memset(want, 1, sizeof want);
    p.n_ctx = p.n_ubatch = SKELETON_TOKENS;
    b.n = s->n_rows;
    b.token = tok;
    b.want = want;
    f->op = NULL;
    bool good = run_open(&r, file, size, 1, &p);
    if (good) {
        const float *row;
        gguf_session_set_finite_check(r.session, check);
        good = !gguf_session_decode(r.session, &b, &r.err);
        n = good ? gguf_session_n_outputs(r.session) : 0;
        for (size_t i = 0; good && i < n; i++, out += s->width) {
            good = strstr(s->run, "embed")
                       ? !gguf_session_states(r.session, i, 1, &row, &r.err)
                       : !gguf_session_logits(r.session, i, 1, &row, &r.err);
            if (good)
                memcpy(out, row, s->width * sizeof *out);
        }
        if (gguf_session_fault(r.session))
            *f = *gguf_session_fault(r.session);
    }
    *err = r.err;
    run_close(&r);
    free(file);
    return good;
}

/* Fill one weight after another with NaN, every step-th of all models. */
static void fill_each_with_nan(struct skeleton *s, const gguf_token *tok,
                               float *out, size_t step, size_t *turn)
{
    size_t n = 0, n_found = 0, n_wrong = 0;
    char wrong[400] = "";
    for (size_t i = 0; i < s->g.n; i++) {
        struct gen_tensor *t = &s->g.t[i];
        struct gguf_session_fault f;
        struct gguf_error err;
        int64_t n_el = 1;
        int layer = -1;
        if (t->ints || (*turn)++ % step)
            continue;
        for (unsigned d = 0; d < t->n_dims; d++)
            n_el *= t->ne[d];
        float *bad = malloc((size_t)n_el * sizeof *bad);
        for (int64_t k = 0; k < n_el; k++)
            bad[k] = NAN;
        const float *old = t->values;
        t->values = bad;
        n++;
        (void)decode_tokens(s, tok, true, out, &f, &err);
        t->values = old;
        free(bad);
        if (!f.op)
            continue; /* no operation reads it */
        n_found++;
        const bool is_layers = sscanf(t->name, "blk.%d.", &layer) == 1;
        if (strstr(f.sources, t->name) &&
            (!is_layers || f.layer == layer || f.layer == -1))
            continue;
        n_wrong++;
        snprintf(wrong, sizeof wrong, ": %s, not layer %d: %s '%s' of %s",
                 t->name, (int)f.layer, f.op, f.tensor, f.sources);
    }
    ok(!n_wrong && n_found >= n / 2,
       "%s: %zu of %zu weights are found where they are NaN%s", s->name,
       n_found, n, wrong);
}

static void check_arch(const char *name, size_t step, size_t *turn)
{
    struct skeleton s;
    struct gguf_session_fault f;
    struct gguf_error err;
    gguf_token tok[SKELETON_TOKENS];
    if (!skeleton_open(&s, name) || !s.n_rows || strstr(s.run, "encode+")) {
        skeleton_close(&s);
        return; /* not evaluated, or has two texts */
    }
    skeleton_tokens_of(&s, tok);
    const size_t size = s.n_rows * s.width * sizeof(float);
    float *a = calloc(1, size), *b = calloc(1, size);
    const bool plain = decode_tokens(&s, tok, false, a, &f, &err);
    const bool good = decode_tokens(&s, tok, true, b, &f, &err);
    ok(plain && good && !f.op && !memcmp(a, b, size),
       "%s: nothing is found where nothing is wrong%s%s", name,
       err.status ? ": " : "", err.message);
    fill_each_with_nan(&s, tok, b, step, turn);
    free(a);
    free(b);
    skeleton_close(&s);
}

int main(int argc, char **argv)
{
    static char names[200][64];
    const size_t n = skeleton_names(names, GG_LEN(names));
    const char *all = getenv("GGUF_TEST_LONG");
    size_t turn = 0;
    for (int i = 0; i < N; i++)
        text[i] = i * 37 % ODD;
    if (argc < 2) {
        check_ones();
        check_place();
        check_logits();
        check_digits();
        check_sensitivities();
    }
    for (size_t i = 0; i < n; i++)
        if (argc < 2 || !strcmp(argv[1], names[i]))
            check_arch(names[i], argc < 2 && !all ? 5 : 1, &turn);
    return done_testing();
}
