/* SPDX-License-Identifier: MIT */
/* check-jobs.c - jobs on all weights: threads, progress, cancelling */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>

/* large enough that weights are cut into pieces */
static const struct gen_spec spec = { .arch = "llama",
                                      .n_vocab = 512,
                                      .n_ctx = 64,
                                      .n_embd = 256,
                                      .n_layer = 2,
                                      .n_ff = 1024,
                                      .n_head = 4,
                                      .n_head_kv = 4,
                                      .eps = 1e-5f,
                                      .freq_base = 10000 };

static uint8_t *bytes;
static size_t n_bytes;
static struct gguf_file *file;
static struct gguf_model *model;

static uint8_t *element_of(const char *name, size_t i)
{
    const struct gguf_tensor_info *t = gguf_file_tensor_find(file, name);
    return bytes + gguf_file_data_off(file) + t->off + 4 * i;
}

static void put_value(const char *name, size_t i, float value)
{
    memcpy(element_of(name, i), &value, sizeof value);
}

static enum gguf_status scan_model(unsigned n_threads, struct run_watch *w,
                                   struct gguf_error *err)
{
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
    struct gguf_pool *pool;
    pp.n_threads = n_threads;
    if (gguf_pool_create(&pool, &pp, NULL) != GGUF_OK)
        abort();
    job.pool = pool;
    job.progress.fn = w ? run_watch : NULL;
    job.progress.user = w;
    const enum gguf_status st = gguf_model_check_finite(model, &job, err);
    gguf_pool_destroy(pool);
    return st;
}

/* The first bad element of the file is reported, whichever thread finds one
 * first. */
static void check_first(void)
{
    static const struct {
        const char *tensor;
        size_t element;
    } bad[] = {
        { "output.weight", 511 * 256 },       { "blk.1.ffn_up.weight", 5 },
        { "blk.1.ffn_gate.weight", 262143 },  { "blk.0.ffn_down.weight", 999 },
        { "blk.0.attn_q.weight", 256 * 200 }, { "token_embd.weight", 77777 },
    };
    struct gguf_error err;
    bool good = true;
    float old[GG_LEN(bad)];
    for (size_t i = 0; i < GG_LEN(bad); i++) {
        uint64_t least = UINT64_MAX;
        memcpy(&old[i], element_of(bad[i].tensor, bad[i].element), 4);
        put_value(bad[i].tensor, bad[i].element, i % 2 ? NAN : -INFINITY);
        for (size_t k = 0; k <= i; k++) {
            const uint8_t *at = element_of(bad[k].tensor, bad[k].element);
            least = GG_MIN(least, (uint64_t)(at - bytes));
        }
        for (unsigned t = 1; t <= 8; t *= 2) {
            const enum gguf_status st = scan_model(t, NULL, &err);
            good = good && st == GGUF_E_NONFINITE && err.offset == least;
        }
    }
    ok(good, "on 1 to 8 threads the first of several: %s", err.message);
    for (size_t i = 0; i < GG_LEN(bad); i++)
        put_value(bad[i].tensor, bad[i].element, old[i]);
}

static void check_progress(void)
{
    const uint64_t size = gguf_model_info(model)->weight_size;
    struct gguf_error err;
    unsigned calls = 0;
    for (unsigned t = 1; t <= 4; t += 3) {
        struct run_watch w = { .calls = 0 };
        const enum gguf_status st = scan_model(t, &w, &err);
        ok(st == GGUF_OK && !w.wrong && w.done == size && w.total == size,
           "%u threads: %u reports, the last of all %" PRIu64 " bytes", t,
           w.calls, w.done);
        calls = t == 1 ? w.calls : calls;
    }
    ok(calls > 10, "one thread reports after each piece");
    bool good = true;
    for (unsigned k = 1; k <= calls; k++) {
        struct run_watch w = { .stop_at = k };
        const enum gguf_status st = scan_model(1, &w, &err);
        good = good && st == GGUF_E_CANCELLED && w.calls == k;
    }
    ok(good, "stopped at any of them, it asks no more: %s", err.message);
    struct run_watch w = { .stop_at = 1 };
    put_value("output.weight", 3, NAN);
    ok(scan_model(1, &w, &err) == GGUF_E_CANCELLED, "and finds nothing later");
    put_value("output.weight", 3, 0);
}

static void check_params(void)
{
    struct gguf_model_job job = { .struct_size = 0 };
    struct gguf_error err;
    ok(gguf_model_check_finite(model, &job, &err) == GGUF_E_INVALID, "%s",
       err.message);
}

static void check_nomem(void)
{
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    enum gguf_status st = GGUF_E_NOMEM;
    long n;
    int bad = 0;
    for (n = 0; n < 1000 && st == GGUF_E_NOMEM; n++) {
        struct gguf_model *m;
        struct failalloc f;
        mp.allocator = failalloc_from(&f, (unsigned)n);
        st = gguf_model_create(&m, file, &mp, NULL);
        if (st == GGUF_OK)
            st = gguf_model_check_finite(m, NULL, NULL);
        gguf_model_destroy(m);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 8,
       "each of %ld allocations may fail; nothing is lost", n - 1);
}

int main(void)
{
    struct gguf_error err;
    bytes = gen_model_file(&spec, 5, GGUF_DTYPE_F32, &n_bytes);
    if (gguf_file_open_memory(&file, bytes, n_bytes, NULL, &err) ||
        gguf_model_create(&model, file, NULL, &err)) {
        printf("Bail out! %s\n", err.message);
        return 1;
    }
    check_first();
    check_progress();
    check_params();
    check_nomem();
    gguf_model_destroy(model);
    gguf_file_close(file);
    free(bytes);
    return done_testing();
}
