/* SPDX-License-Identifier: MIT */
/* check-calibrate.c - calibrated outputs: nearer to the original, and the same
 * bytes for any threads, memory and interruptions
 *
 * Every architecture is tried, with random weights and tokens. */
#include "config.h"
#include "tests/calibrate/calibrated_output.h"
#include "tests/scratch.h"

/* ---- architectures ---- */

/* Is there nothing to encode, or a reason to encode nothing? */
static bool may_fail(const struct original *o, enum gguf_status st)
{
    return gguf_model_info(o->r.model)->encodes_first
               ? st == GGUF_E_UNSUPPORTED
               : st == GGUF_OK;
}

/* Are the tensors reported those of the result? Tensors whose plain bytes are
 * put back are reported again. */
static bool is_reported(const struct setting *s)
{
    const struct gguf_calibrate_result *r = &s->result;
    return r->divergence_given_up > 0
               ? !r->n_new && s->n_tensors == r->n_tensors + s->n_new
               : s->n_new == r->n_new && s->n_tensors == r->n_tensors;
}

static void check_model(const struct skeleton *m, unsigned effort)
{
    static struct original o;
    struct gguf_error err;
    struct setting s = { .type = "Q4_0",
                         .out = path_a,
                         .n_tokens = SOME_TOKENS,
                         .effort = effort };
    if (!open_original(&o, m)) {
        ok(0, "%s: %s", m->name, o.r.err.message);
        return;
    }
    const enum gguf_status st = quantize_model(&o, &s, &err);
    const struct gguf_calibrate_result *r = &s.result;
    ok(may_fail(&o, st) && !s.n_worse && (st || is_reported(&s)) &&
           !s.bad_progress && !(r->divergence_after > r->divergence_before),
       "%s: %zu of %zu new, divergence %.3g, then %.3g%s%s%s%s%s%s", m->name,
       r->n_new, r->n_tensors, r->divergence_before, r->divergence_after,
       st ? ": " : "", st ? err.message : "", *s.note ? "; " : "", s.note,
       *r->no_gradients ? "; " : "", r->no_gradients);
    close_original(&o);
}

/* ---- one model in many ways ---- */

static struct skeleton skeleton;
static struct original plain;

/* Make plain the model of a name. */
static void open_plain(const char *name)
{
    if (!skeleton_open(&skeleton, name) || !open_original(&plain, &skeleton))
        abort();
}

static void close_plain(void)
{
    close_original(&plain);
    skeleton_close(&skeleton);
}

/* Is the output of a setting that of the first one? */
static void check_same(struct setting s, const char *what)
{
    struct gguf_error err;
    s.out = path_b;
    const enum gguf_status st = quantize_model(&plain, &s, &err);
    ok(st == GGUF_OK && same_files(s.out, path_a),
       "the same bytes with %s%s%s", what, st ? ": " : "",
       st ? err.message : "");
}

static void check_same_bytes(const char *dir, const char *name,
                             unsigned effort)
{
    struct gguf_error err;
    const struct setting first = {
        .type = "Q4_1", .out = path_a, .n_tokens = N_TOKENS, .effort = effort
    };
    struct setting s = first;
    open_plain(name);
    ok(quantize_model(&plain, &s, &err) == GGUF_OK && s.n_new &&
           !*s.result.no_gradients,
       "%s, effort %u: %zu new", name, effort, s.n_new);
    s = first;
    s.n_threads = 1;
    check_same(s, "threads");
    s = first;
    s.max_memory = 1;
    check_same(s, "one expert at a time");
    s.spill = scratch_path(dir, "spill");
    check_same(s, "activations in a file");
    s = first;
    s.effort = 2;
    s.out = path_b;
    ok(quantize_model(&plain, &s, &err) == GGUF_OK && s.n_new && !s.n_worse,
       "more effort");
    close_plain();
}

/* Cancel a run at a report, and resume it to its end. */
static bool is_resumed(struct setting s, uint64_t stop_at, uint64_t *calls)
{
    struct gguf_error err;
    struct setting t = s;
    s.stop_at = stop_at;
    s.resume = t.resume = true;
    const enum gguf_status st = quantize_model(&plain, &s, &err);
    *calls = s.n_calls;
    if (st == GGUF_OK)
        return true;
    return st == GGUF_E_CANCELLED &&
           quantize_model(&plain, &t, &err) == GGUF_OK &&
           t.n_tensors == t.result.n_tensors && t.n_new == t.result.n_new &&
           !isnan(t.result.divergence_before) && !t.n_worse;
}

static void check_interrupted(unsigned effort, unsigned step)
{
    const struct setting s = {
        .type = "Q5_0", .out = path_b, .n_tokens = N_TOKENS, .effort = effort
    };
    struct setting first = s;
    struct gguf_error err;
    uint64_t calls = UINT64_MAX;
    unsigned n = 0, bad = 0;
    first.out = path_a;
    open_plain("llama");
    if (quantize_model(&plain, &first, &err) != GGUF_OK)
        abort();
    for (uint64_t at = 1; at <= first.n_calls; at += step, n++)
        bad += !is_resumed(s, at, &calls) || calls != at ||
               !same_files(s.out, first.out);
    ok(n > 3 && !bad, "the same bytes after each of %u interruptions", n);
    close_plain();
}

/* ---- gradients ---- */

static void check_gradients(void)
{
    struct gguf_error err;
    struct setting s = {
        .type = "Q4_0", .out = path_a, .n_tokens = N_TOKENS, .effort = 1
    };
    open_plain("llama");
    s.effort = 0;
    ok(quantize_model(&plain, &s, &err) == GGUF_OK && s.n_new &&
           s.has_embedding,
       "without gradients the first layer's weights are the embeddings' "
       "metric");
    s = (struct setting){
        .type = "Q4_0", .out = path_b, .n_tokens = N_TOKENS, .effort = 1
    };
    ok(quantize_model(&plain, &s, &err) == GGUF_OK && s.has_embedding &&
           !same_files(path_a, path_b),
       "with gradients the embeddings are encoded, too");
    s = (struct setting){
        .type = "Q4_0", .out = path_b, .n_tokens = N_CTX, .effort = 1
    };
    ok(quantize_model(&plain, &s, &err) == GGUF_OK &&
           strstr(s.result.no_gradients, "one chunk"),
       "no gradients: %s", s.result.no_gradients);
    close_plain();
    open_plain("gemma2");
    s = (struct setting){
        .type = "Q4_0", .out = path_b, .n_tokens = N_TOKENS, .effort = 1
    };
    ok(quantize_model(&plain, &s, &err) == GGUF_OK && s.has_embedding &&
           !s.n_worse,
       "an output matrix that is the table of embeddings, too");
    close_plain();
    open_plain("mamba");
    s = (struct setting){
        .type = "Q4_0", .out = path_b, .n_tokens = N_TOKENS, .effort = 1
    };
    ok(quantize_model(&plain, &s, &err) == GGUF_OK && s.n_new &&
           strstr(s.result.no_gradients, "ssm_conv"),
       "no gradients: %s", s.result.no_gradients);
    close_plain();
}

/* ---- texts and numbers ---- */

static enum gguf_status try_text(size_t n, uint32_t n_ctx, struct setting *s,
                                 struct gguf_error *err)
{
    *s = (struct setting){
        .type = "Q4_0", .out = path_b, .n_tokens = n, .n_ctx = n_ctx
    };
    return quantize_model(&plain, s, err);
}

/* Chunks do not run over the ends of texts, and are evenly spaced. */
static void check_several_texts(void)
{
    static const size_t end[] = { 3 * N_CTX + 5, N_TOKENS };
    struct gguf_error err;
    struct setting s = { .type = "Q4_0",
                         .out = path_b,
                         .n_tokens = N_TOKENS,
                         .text_end = end,
                         .n_texts = GG_LEN(end) };
    open_plain("llama");
    ok(quantize_model(&plain, &s, &err) == GGUF_OK &&
           s.result.n_tokens == 9 * N_CTX && s.result.n_held_out == N_CTX,
       "two texts of %zu tokens, %zu held out", s.result.n_tokens,
       s.result.n_held_out);
    s.max_tokens = 4 * N_CTX + 1;
    ok(quantize_model(&plain, &s, &err) == GGUF_OK &&
           s.result.n_tokens == 4 * N_CTX,
       "%zu of them", s.result.n_tokens);
    s.n_texts = 1;
    s.n_ctx = 4 * N_CTX;
    ok(quantize_model(&plain, &s, &err) == GGUF_E_INVALID, "%s", err.message);
    close_plain();
}

static void check_texts(void)
{
    struct gguf_error err;
    struct setting s;
    open_plain("llama");
    ok(try_text(0, 0, &s, &err) == GGUF_E_INVALID, "%s", err.message);
    ok(try_text(1, 0, &s, &err) == GGUF_E_INVALID, "%s", err.message);
    ok(try_text(100, 3, &s, &err) == GGUF_E_INVALID, "%s", err.message);
    ok(try_text(16, 0, &s, &err) == GGUF_OK && !s.n_worse &&
           s.result.n_tokens == 16 && s.result.n_held_out == 2,
       "16 tokens, %zu of %zu new", s.n_new, s.n_tensors);
    for (size_t i = 0; i < N_TOKENS; i++)
        plain.token[i] = 7;
    ok(try_text(N_TOKENS, 0, &s, &err) == GGUF_OK && !s.n_worse &&
           s.result.n_tokens == N_TOKENS &&
           s.result.n_held_out == N_TOKENS / 10,
       "one word many times, %zu of %zu new", s.n_new, s.n_tensors);
    close_plain();
}

/* Make the embedding of a token NaN. */
static void spoil_token(struct original *o, gguf_token token)
{
    const struct gguf_tensor *t =
        gguf_model_tensor_find(o->r.model, "token_embd.weight");
    float *row = (float *)(void *)((char *)t->data + token * t->nb[1]);
    row[3] = NAN;
}

static void check_nan(void)
{
    struct gguf_error err;
    struct setting s;
    open_plain("llama");
    for (size_t i = 0; i < N_TOKENS; i++)
        plain.token[i] = i / N_CTX == 4 && i % N_CTX == 9 ? 5 : 6 + i % 60;
    spoil_token(&plain, 5);
    s = (struct setting){ .type = "Q8_0",
                          .out = path_b,
                          .n_tokens = N_TOKENS,
                          .keep_nonfinite = true };
    enum gguf_status st = quantize_model(&plain, &s, &err);
    ok(st == GGUF_OK && s.n_new && s.result.n_left_out == 1 &&
           !strcmp(s.bad, "blk.0.attn_q.weight"),
       "a chunk with NaN at '%s' is left out%s%s", s.bad, st ? ": " : "",
       st ? err.message : "");
    for (size_t i = 0; i < N_TOKENS; i += N_CTX)
        plain.token[i] = 5;
    st = quantize_model(&plain, &s, &err);
    ok(st == GGUF_E_NONFINITE, "%s", err.message);
    close_plain();
}

/* The original model lacks the products of an adapter. */
static void check_merged(void)
{
    struct gguf_error err;
    struct lora l;
    size_t size;
    struct gguf_file *f;
    open_plain("llama");
    lora_of_llama(&l, &skeleton.g, 2, 4);
    void *data = lora_file(&l, GGUF_DTYPE_F32, &size);
    if (gguf_file_open_memory(&f, data, size, NULL, &err) != GGUF_OK)
        abort();
    const struct gguf_quant_lora lora = { f, 1, NULL };
    struct setting s = {
        .type = "Q4_0", .out = path_b, .lora = &lora, .n_tokens = N_TOKENS
    };
    ok(quantize_model(&plain, &s, &err) == GGUF_E_UNSUPPORTED, "%s",
       err.message);
    gguf_file_close(f);
    free(data);
    lora_fini(&l);
    close_plain();
}

/* ---- memory ---- */

/* Let allocations of a calibration fail, one in each of some runs. */
static void check_memory(const char *name)
{
    struct gguf_error err;
    struct failalloc fa;
    struct setting s = { .type = "Q4_0", .out = path_b, .n_tokens = 96 };
    unsigned n_failed = 0, bad = 0, step = 1;
    open_plain(name);
    s.allocator = failalloc_init(&fa, UINT_MAX);
    s.effort = 1;
    for (unsigned i = 0;; i += step++ / 4 + 1, n_failed++) {
        struct setting t = s;
        fa.calls = 0;
        fa.fail_at = fa.last = i;
        const enum gguf_status st = quantize_model(&plain, &t, &err);
        if (st == GGUF_OK && fa.calls <= i)
            break;
        bad += st != GGUF_E_NOMEM || fa.live != 0;
    }
    ok(n_failed > 20 && !bad && !fa.live,
       "%s: allocations fail in %u runs, each time by name", name, n_failed);
    close_plain();
}

/* ---- types ---- */

/* Equal importances for all matrices. NULL: out of memory. */
static struct gguf_imatrix *make_imatrix(const struct gguf_file *f)
{
    static float ones[1024];
    struct gguf_imatrix *im;
    struct gguf_error err;
    for (size_t i = 0; i < GG_LEN(ones); i++)
        ones[i] = 1;
    enum gguf_status st = gguf_imatrix_create(&im, NULL, &err);
    for (size_t i = 0; st == GGUF_OK && i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        char name[128];
        if (t->n_dims != 2 || t->ne[0] > (int64_t)GG_LEN(ones))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)t->name.size, t->name.data);
        st = gguf_imatrix_add(im, name, (uint64_t)t->ne[0], 1, ones, ones,
                              &err);
    }
    return st == GGUF_OK ? im : NULL;
}

static void check_type(const char *type, const struct gguf_imatrix *im)
{
    struct gguf_error err;
    struct setting s = {
        .type = type, .out = path_b, .imatrix = im, .n_tokens = SOME_TOKENS
    };
    const enum gguf_status st = quantize_model(&plain, &s, &err);
    const double before = s.result.divergence_before,
                 after = s.result.divergence_after;
    /* Recipes of ik_llama.cpp's types may have one tensor of a type that is
     * described for calibration, the output. */
    ok(st == GGUF_OK && !s.n_worse && !(after > before) &&
           (s.n_new || s.n_tensors < 2),
       "%s: %zu of %zu new, divergence %.3g, then %.3g%s%s", type, s.n_new,
       s.n_tensors, before, after, st ? ": " : "", st ? err.message : "");
}

/* All recipes, for a model whose rows are blocks of every type. */
static void check_types(void)
{
    static const struct gen_spec spec = { .arch = "llama",
                                          .n_vocab = 128,
                                          .n_ctx = N_CTX,
                                          .n_embd = 256,
                                          .n_layer = 1,
                                          .n_ff = 512,
                                          .n_head = 4,
                                          .n_head_kv = 2,
                                          .eps = 1e-5f,
                                          .freq_base = 10000 };
    const char *name;
    gen_init(&skeleton.g, 5);
    gen_model(&skeleton.g, &spec);
    if (!open_original(&plain, &skeleton))
        abort();
    struct gguf_imatrix *im = make_imatrix(plain.r.file);
    for (size_t i = 0; (name = gguf_recipe_preset_name(i)); i++)
        check_type(name, im);
    gguf_imatrix_destroy(im);
    close_original(&plain);
    gen_fini(&skeleton.g);
}

int main(void)
{
    static char names[512][64];
    static struct skeleton m;
    char dir[] = "check-calibrate.XXXXXX";
    const size_t n = skeleton_names(names, GG_LEN(names));
    if (!scratch_make(dir))
        abort();
    strcpy(path_a, scratch_path(dir, "a.gguf"));
    strcpy(path_b, scratch_path(dir, "b.gguf"));
    for (size_t i = 0; i < n; i++) {
        if (skeleton_open(&m, names[i]) && m.n_rows)
            check_model(&m, i % 8 == 0);
        skeleton_close(&m);
    }
    check_same_bytes(dir, "llama", 0);
    check_same_bytes(dir, "llama", 1);
    check_same_bytes(dir, "qwen3moe", 1);
    check_same_bytes(dir, "deepseek2", 0);
    check_same_bytes(dir, "deepseek2", 1);
    check_interrupted(0, 7);
    check_interrupted(1, 23);
    check_gradients();
    check_texts();
    check_several_texts();
    check_merged();
    check_memory("llama");
    check_memory("qwen3moe");
    check_types();
    check_nan();
    scratch_clean(dir);
    ok(rmdir(dir) == 0, "no file is left");
    return done_testing();
}
