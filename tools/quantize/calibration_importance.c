/* SPDX-License-Identifier: MIT */
/* calibration_importance.c - importance data of the tokens of --calibrate
 *
 * Without --imatrix, the plain bytes of calibrated outputs are weighted by the
 * mean squares over the tokens of the calibration, and types that require
 * importance data have them. A text shorter than a chunk would give data that
 * say little of others. */
#include "config.h"
#include "tools/quantize/calibration.h"
#include "tools/common/msg.h"

#include <gguf/collect.h>
#include <gguf/cpu.h>

/* Objects of a collection, in the order in which they are destroyed. */
struct collection {
    struct gguf_collect *c;
    struct gguf_session *session;
    struct gguf_backend *backend;
};

static enum gguf_status open_session(struct collection *x,
                                     const struct calibration *c,
                                     uint32_t n_ctx, struct gguf_error *err)
{
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    cp.pool = c->o->params.pool;
    enum gguf_status st = gguf_cpu_backend_create(&x->backend, &cp, err);
    sp.backend = x->backend;
    sp.n_ctx = n_ctx;
    return st == GGUF_OK ? gguf_session_create(&x->session, c->model, &sp, err)
                         : st;
}

static enum gguf_status collect_squares(struct collection *x,
                                        const struct calibration *c,
                                        struct progress *bar,
                                        struct gguf_error *err)
{
    struct options *o = c->o;
    struct gguf_collect_params cp = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_collect_run_params run = GGUF_COLLECT_RUN_PARAMS_INIT;
    cp.n_ctx = c->n_ctx;
    run.pool = o->params.pool;
    run.progress = (struct gguf_progress_callback){ progress_report, bar };
    enum gguf_status st = open_session(x, c, cp.n_ctx, err);
    if (st == GGUF_OK)
        st = gguf_collect_create(&x->c, &cp, err);
    if (st == GGUF_OK)
        st = gguf_collect_run(x->c, x->session, c->tokens.id, c->tokens.n,
                              &run, err);
    return st == GGUF_OK ? gguf_collect_result(x->c, &o->imatrix, err) : st;
}

enum gguf_status calibration_collect(struct options *o, struct progress *bar,
                                     struct gguf_error *err)
{
    const struct calibration *c = o->calibration;
    struct collection x = { NULL, NULL, NULL };
    if (!c || c->nothing || o->params.imatrix || o->dry_run ||
        c->tokens.n < c->n_ctx)
        return GGUF_OK;
    progress_init(bar, "collecting importance data", NULL, o->quiet);
    enum gguf_status st = collect_squares(&x, c, bar, err);
    progress_clear(bar);
    gguf_collect_destroy(x.c);
    gguf_session_destroy(x.session);
    gguf_backend_destroy(x.backend);
    if (st != GGUF_OK && st != GGUF_E_CANCELLED && st != GGUF_E_NOMEM) {
        msg_warn(o->in, "no importance data of the texts: %s", err->message);
        gguf_error_clear(err);
        st = GGUF_OK;
    }
    o->params.imatrix = o->imatrix;
    return st;
}
