/* SPDX-License-Identifier: MIT */
/* check-lists.c - every function that takes a list of objects refuses one with
 * a NULL in it
 *
 * tests/backend/check-broken.c tests lists of backends and of buffer types.
 */
#include "config.h"
#include "gguf/model.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#define REFUSES(call, what)                                                   \
    ok((call) == GGUF_E_INVALID && strstr(err.message, what), "%s",           \
       err.message)

static void *make_model(size_t *size)
{
    const struct gen_spec spec = { .n_vocab = 40, GEN_ONE_LAYER };
    void *data = gen_model_file(&spec, 7, GGUF_DTYPE_F32, size);
    return data;
}

static enum gguf_status ignore_outputs(void *user, size_t i,
                                       struct gguf_error *err)
{
    (void)user, (void)i, (void)err;
    return GGUF_OK;
}

int main(void)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    const gguf_token tok[20] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct gguf_batch b = { .struct_size = sizeof b, .n = 4, .token = tok };
    const struct gguf_batch *const batches[2] = { &b, NULL };
    const struct gguf_sink *const sinks[1] = { NULL };
    struct gguf_error err;
    struct run r;
    size_t size;
    void *data = make_model(&size);
    p.n_ctx = 16;
    if (!run_open(&r, data, size, 1, &p))
        exit(99);
    struct gguf_session *const sessions[2] = { r.session, NULL };
    struct gguf_quant *const jobs[1] = { NULL };
    const char *const paths[1] = { "out.gguf" };

    REFUSES(gguf_scan_run_models(sessions, 2, tok, 20, NULL, NULL, 0, &err),
            "session 2 of 2 is NULL");
    REFUSES(gguf_scan_run_models(sessions, 1, tok, 20, NULL, sinks, 1, &err),
            "sink 1 of 1 is NULL");
    REFUSES(gguf_scan_run_models(sessions, 1, tok, 20, NULL, NULL, 1, &err),
            "sink 1 of 1 is NULL");
    const struct gguf_session_outputs_callback outputs = { ignore_outputs,
                                                           NULL };
    const struct gguf_progress_callback silent = { NULL, NULL };
    REFUSES(gguf_session_decode_layered(r.session, batches, 2, outputs, silent,
                                        &err),
            "batch 2 of 2 is NULL");
    REFUSES(gguf_quant_run_many(jobs, paths, 1, NULL, &err),
            "job 1 of 1 is NULL");
    run_close(&r);
    free(data);
    return done_testing();
}
