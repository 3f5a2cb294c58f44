/* SPDX-License-Identifier: MIT */
/* check-tune-run.c - calibrations that end with a tuning: less divergence, the
 * same bytes for any threads and interruptions, architectures without gradients
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/calibrate.h"
#include "gguf/model.h"
#include "tests/calibrate/quantize_through.h"
#include "tests/family/skeleton.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>
#include <unistd.h>

enum { N_TOKENS = 640, N_CTX = 64 };

/* End of the callback, after the calibration. */
enum end { GO_ON, CANCEL, SPOIL_A_MARK };

struct setting {
    const char *type, *out;
    unsigned steps, n_tokens;
    bool one_thread, resume;
    enum end end;
    uint64_t stop_at; /* report of progress at which it is cancelled */
    uint64_t n_calls;
    struct gguf_calibrate_result result;
};

static struct skeleton skeleton;
static struct run original;
static void *data;
static gguf_token token[N_TOKENS];
static char path_a[256], path_b[256]; /* outputs */

static void open_original(const char *name)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    size_t size;
    p.n_ctx = N_CTX;
    if (!skeleton_open(&skeleton, name))
        abort();
    data = gen_file(&skeleton.g, GGUF_DTYPE_F32, &size);
    if (!run_open(&original, data, size, 2, &p))
        abort();
    for (size_t i = 0; i < N_TOKENS; i++)
        token[i] = (gguf_token)(i * i * 7 % 61 + i % 13) %
                   (gguf_token)gguf_model_info(original.model)->n_vocab;
}

static void close_original(void)
{
    run_close(&original);
    skeleton_close(&skeleton);
    free(data);
}

static bool see_progress(void *user, uint64_t done, uint64_t total)
{
    struct setting *s = user;
    (void)done, (void)total;
    return ++s->n_calls == s->stop_at;
}

/* Remove the mark of one tuned vector, as if it had not been written. */
static enum gguf_status spoil_mark(struct gguf_quant_improver *h,
                                   struct gguf_error *err)
{
    const struct gguf_quant *q = gguf_quant_improver_job(h);
    size_t i = 0;
    while (gguf_quant_tensor(q, i)->to != GGUF_DTYPE_F32 ||
           !gguf_quant_improver_is_replaced(h, i))
        i++;
    gguf_quant_improver_set_note(h, i, "", 1);
    return gguf_quant_improver_replace(h, i, NULL, 0, err);
}

static enum gguf_status calibrate_output(void *user, size_t job,
                                         struct gguf_quant_improver *h,
                                         struct gguf_error *err)
{
    struct setting *s = user;
    struct gguf_calibrate_params p = GGUF_CALIBRATE_PARAMS_INIT;
    (void)job;
    s->result = (struct gguf_calibrate_result)GGUF_CALIBRATE_RESULT_INIT;
    p.pool = s->one_thread ? NULL : original.pool;
    p.tokens = token;
    p.n_tokens = s->n_tokens ? s->n_tokens : N_TOKENS;
    p.n_ctx = N_CTX;
    p.tune_steps = s->steps;
    p.progress = (struct gguf_progress_callback){ see_progress, s };
    enum gguf_status st =
        gguf_calibrate_run(h, original.model, &p, &s->result, err);
    if (st == GGUF_OK && s->end == SPOIL_A_MARK)
        st = spoil_mark(h, err);
    if (st == GGUF_OK && s->end != GO_ON)
        st = gguf_error_set(err, GGUF_E_CANCELLED, "interrupted");
    return st;
}

static enum gguf_status quantize_model(struct setting *s,
                                       struct gguf_error *err)
{
    const struct gguf_quant_improve_callback improve = { calibrate_output, s };
    return quantize_through(original.file, s->type, s->out,
                            (struct gguf_quant_params)GGUF_QUANT_PARAMS_INIT,
                            s->resume, improve, err);
}

/* ---- a tuning ---- */

/* Tune in path_a; without steps in path_b. */
static void check_tuned(const char *name, const char *type)
{
    struct gguf_error err;
    struct setting s = { .type = type, .out = path_a, .steps = 6 };
    struct setting t = { .type = type, .out = path_b };
    const enum gguf_status st = quantize_model(&s, &err);
    const struct gguf_calibrate_result *r = &s.result;
    ok(st == GGUF_OK && r->n_tuned && !*r->tune_note &&
           r->divergence_tuned < r->divergence_untuned &&
           r->divergence_after == r->divergence_tuned,
       "%s, %s: %zu tensors, divergence %.3g, tuned %.3g%s%s%s", name, type,
       r->n_tuned, r->divergence_untuned, r->divergence_tuned,
       *r->tune_note ? ": " : "", r->tune_note, st ? err.message : "");
    ok(quantize_model(&t, &err) == GGUF_OK && !t.result.n_tuned &&
           t.result.divergence_after == r->divergence_untuned &&
           isnan(t.result.divergence_tuned) && !same_files(path_a, path_b),
       "%s: other bytes than without steps", name);
    s.out = path_b;
    s.one_thread = true;
    ok(quantize_model(&s, &err) == GGUF_OK && same_files(path_a, path_b),
       "%s: the same bytes with one thread", name);
}

/* ---- interruptions ---- */

static bool is_resumed(struct setting s, uint64_t stop_at)
{
    struct gguf_error err;
    struct setting t = s;
    s.stop_at = stop_at;
    return quantize_model(&s, &err) == GGUF_E_CANCELLED &&
           quantize_model(&t, &err) == GGUF_OK && t.result.n_tuned &&
           same_files(path_a, path_b);
}

static void check_interrupted(void)
{
    struct gguf_error err;
    struct setting s = {
        .type = "Q4_0", .out = path_a, .steps = 6, .resume = true
    };
    unsigned bad = 0, n = 0;
    if (quantize_model(&s, &err) != GGUF_OK)
        abort();
    const struct gguf_calibrate_result r = s.result;
    const uint64_t n_calls = s.n_calls;
    s.out = path_b;
    s.n_calls = 0;
    for (uint64_t at = n_calls - 12; at < n_calls; at += 3, n++)
        bad += !is_resumed(s, at);
    ok(!bad, "the same bytes after each of %u interruptions", n);
    s.end = CANCEL;
    struct setting t = s;
    t.end = GO_ON;
    ok(quantize_model(&s, &err) == GGUF_E_CANCELLED &&
           quantize_model(&t, &err) == GGUF_OK && same_files(path_a, path_b) &&
           t.n_calls < n_calls,
       "interrupted after the last tensor");
    ok(t.result.n_tuned == r.n_tuned &&
           t.result.divergence_untuned == r.divergence_untuned &&
           t.result.divergence_tuned == r.divergence_tuned &&
           t.result.divergence_before == r.divergence_before &&
           t.result.divergence_after == r.divergence_after,
       "the results are those of the whole run");
    s.end = SPOIL_A_MARK;
    ok(quantize_model(&s, &err) == GGUF_E_CANCELLED &&
           quantize_model(&t, &err) == GGUF_E_INVALID,
       "interrupted between tensors: %s", err.message);
    t.resume = false;
    ok(quantize_model(&t, &err) == GGUF_OK && same_files(path_a, path_b),
       "begun anew");
}

/* ---- nothing to tune ---- */

/* Is a tuning left out for a reason, with the bytes of no steps? */
static void check_left_out(const char *name, const char *type,
                           const char *reason)
{
    struct gguf_error err;
    struct setting s = { .type = type, .out = path_a };
    struct setting t = { .type = type, .out = path_b, .steps = 3 };
    open_original(name);
    enum gguf_status st = quantize_model(&s, &err);
    if (st == GGUF_OK)
        st = quantize_model(&t, &err);
    ok(st == GGUF_OK && !t.result.n_tuned &&
           strstr(t.result.tune_note, reason) && same_files(path_a, path_b),
       "%s: %s%s", name, t.result.tune_note, st ? err.message : "");
    close_original();
}

int main(void)
{
    char dir[] = "check-tune-run.XXXXXX";
    if (!scratch_make(dir))
        abort();
    strcpy(path_a, scratch_path(dir, "a.gguf"));
    strcpy(path_b, scratch_path(dir, "b.gguf"));
    open_original("llama");
    check_tuned("llama", "Q4_0");
    check_interrupted();
    close_original();
    open_original("qwen3moe");
    check_tuned("qwen3moe", "Q4_0");
    close_original();
    check_left_out("rwkv7", "Q4_0", "has no gradient");
    check_left_out("mamba", "Q4_0", "has no gradient");
    scratch_clean(dir);
    ok(rmdir(dir) == 0, "no file is left");
    return done_testing();
}
