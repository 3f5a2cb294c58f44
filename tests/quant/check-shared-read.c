/* SPDX-License-Identifier: MIT */
/* check-shared-read.c - several jobs over one reading, with different tensors
 */
#include "config.h"
#include "base/bytes.h"
#include "tests/ignore_status.h"
#include "tests/quant/tensors.h"
#include "tests/slurp.h"

enum { F32, COPY, COMPAT };

/* Progress that stops the run at call `at'. */
struct stop {
    uint64_t calls, at;
};

static bool count_calls(void *user, uint64_t done, uint64_t total)
{
    struct stop *s = user;
    (void)done, (void)total;
    return ++s->calls >= s->at;
}

static enum gguf_status make_job(struct gguf_quant **q, struct gguf_recipe **r,
                                 int which, struct stop *stop,
                                 struct gguf_error *err)
{
    static const char *const types[] = { "F32", "COPY", "F32" };
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    enum gguf_status st = gguf_recipe_preset(r, types[which], NULL, err);
    p.recipe = *r;
    p.allow_requantize = p.measure = 1;
    p.compat = which == COMPAT;
    p.nonfinite = GGUF_NONFINITE_ZERO;
    p.progress = (struct gguf_progress_callback){ count_calls, stop };
    return st ? st : gguf_quant_create(q, in, &p, err);
}

static bool same_file(const char *a, const char *b)
{
    size_t n, m;
    uint8_t *x = slurp(a, &n), *y = slurp(b, &m);
    bool same = x && y && n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

static bool same_losses(const struct gguf_quant *a, const struct gguf_quant *b)
{
    bool same = gguf_quant_n_tensors(a) == gguf_quant_n_tensors(b);
    for (size_t i = 0; same && i < gguf_quant_n_tensors(a); i++) {
        const struct gguf_quant_tensor *x = gguf_quant_tensor(a, i);
        const struct gguf_quant_tensor *y = gguf_quant_tensor(b, i);
        same = !strcmp(x->name, y->name) && x->loss.rms == y->loss.rms &&
               x->loss.measured == y->loss.measured;
    }
    return same;
}

/* Two jobs with different tensors in one run give the files of two runs. With
 * resume, a run that is stopped at each call in turn is resumed. */
static void test_two_outputs(int one, int two, const char *what)
{
    static char alone[2][4100];
    const char *paths[] = { out, out_2 };
    struct gguf_recipe *r[4] = { NULL };
    struct gguf_quant *q[4] = { NULL };
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_error err = { .message = "" };
    struct stop stop = { 0, UINT64_MAX };
    o.force = o.no_sync = 1;
    bool good = true;
    for (int i = 0; good && i < 4; i++)
        good =
            make_job(&q[i], &r[i], i % 2 ? two : one, &stop, &err) == GGUF_OK;
    for (int i = 0; good && i < 2; i++) {
        snprintf(alone[i], sizeof alone[i], "%s.alone", paths[i]);
        good = gguf_quant_run(q[i], alone[i], &o, &err) == GGUF_OK;
    }
    good = good && gguf_quant_run_many(q + 2, paths, 2, &o, &err) == GGUF_OK;
    ok(good && same_file(out, alone[0]) && same_file(out_2, alone[1]) &&
           same_losses(q[0], q[2]) && same_losses(q[1], q[3]),
       "%s in one run %s", what, err.message);
    o.resume = 1;
    uint64_t kept = 0;
    for (uint64_t at = 1; good && at < 1000; at++) {
        struct gguf_quant_totals t = GGUF_QUANT_TOTALS_INIT;
        unlink(out);
        unlink(out_2);
        stop = (struct stop){ 0, at };
        enum gguf_status st = gguf_quant_run_many(q + 2, paths, 2, &o, &err);
        if (st == GGUF_OK)
            break;
        stop = (struct stop){ 0, UINT64_MAX };
        good = st == GGUF_E_CANCELLED && access(out, F_OK) &&
               gguf_quant_run_many(q + 2, paths, 2, &o, &err) == GGUF_OK &&
               same_file(out, alone[0]) && same_file(out_2, alone[1]) &&
               same_losses(q[1], q[3]);
        ignore_status(gguf_quant_totals(q[3], &t, NULL));
        kept += t.n_kept;
    }
    ok(good && kept, "%s, stopped and resumed", what);
    for (int i = 0; i < 4; i++) {
        gguf_quant_destroy(q[i]);
        gguf_recipe_destroy(r[i]);
    }
    for (int i = 0; i < 2; i++) {
        unlink(alone[i]);
        unlink(paths[i]);
    }
}

/* Blocks that one output decodes, with infinity replaced by zero, and another
 * one copies. */
static void test_kept_blocks(void)
{
    uint8_t *data = random_data(128 * 34);
    struct tensor t = {
        "blk.0.attn_q.weight", GGUF_DTYPE_Q8_0, { 64, 64, 1, 1 }, data
    };
    gg_bytes_store16le(data, 0x7c00);
    if (!write_model(&t, 1))
        exit(99);
    test_two_outputs(COPY, F32, "blocks with infinity");
    free(data);
}

/* Weights with their scales, and without: two readings. */
static void test_two_readings(void)
{
    const char *paths[] = { out, out_2 };
    struct gguf_recipe *r[2] = { NULL };
    struct gguf_quant *q[2] = { NULL };
    struct gguf_error err = { .message = "" };
    struct stop stop = { 0, UINT64_MAX };
    unlink(out);
    ok(make_job(&q[0], &r[0], F32, &stop, &err) == GGUF_OK &&
           make_job(&q[1], &r[1], COMPAT, &stop, &err) == GGUF_OK &&
           gguf_quant_run_many(q, paths, 2, NULL, &err) == GGUF_E_INVALID &&
           strstr(err.message, "scale") && access(out, F_OK),
       "%s", err.message);
    for (int i = 0; i < 2; i++) {
        gguf_quant_destroy(q[i]);
        gguf_recipe_destroy(r[i]);
    }
}

int main(void)
{
    if (!make_dir("check-shared-read"))
        return 99;
    write_nvfp4();
    test_two_outputs(F32, COPY, "scales in weights, and not");
    test_two_outputs(COPY, F32, "the other way round");
    test_two_readings();
    test_kept_blocks();
    remove_dir();
    return done_testing();
}
