/* gguf-ppl-side.c - models side by side with a base, in step */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/msg.h"

#include <stdlib.h>

bool ppl_side_open(struct ppl_side *s, const struct ppl_options *o,
                   const struct ppl_model *base, struct gguf_pool *pool)
{
    s->base = base;
    s->pool = pool;
    s->model = msg_must(calloc(o->models.n, sizeof *s->model));
    s->kld = msg_must(calloc(o->models.n, sizeof *s->kld));
    for (s->n = 0; s->n < o->models.n;) {
        struct ppl_model *m = &s->model[s->n++];
        if (!ppl_model_open(m, o->models.arg[s->n - 1], o) ||
            !ppl_loras_open(&m->loras, o, m->model) ||
            !ppl_weights(m->model, m->path, pool, o))
            return false;
    }
    return true;
}

bool ppl_side_start(struct ppl_side *s, const struct ppl_options *o,
                    const struct gguf_session_params *params,
                    struct gguf_pool *pool)
{
    for (size_t i = 0; i < s->n; i++)
        if (!ppl_model_backends(&s->model[i], o, pool) ||
            !ppl_model_start(&s->model[i], o, params))
            return false;
    return true;
}

void ppl_side_close(struct ppl_side *s)
{
    for (size_t i = 0; i < s->n; i++) {
        ppl_model_close(&s->model[i]);
        gguf_kld_destroy(s->kld[i]);
    }
    free(s->model);
    free(s->kld);
}

/* ---- the run ---- */

static int on_chunk(void *user, size_t chunk, size_t n_chunks,
                    const struct gguf_kld *kld)
{
    struct ppl_side *s = user;
    struct ppl_run *r = s->run;
    (void)n_chunks;
    if (kld != s->kld[s->n - 1])
        return 0;
    r->n_done = chunk + 1; /* by all */
    if (!r->o->json) {
        progress_clear(&r->bar);
        ppl_print_side_chunk(s, chunk);
    }
    return 0;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    struct ppl_side *s = user;
    return progress_report(&s->run->bar, done, total);
}

static enum gguf_status scan(struct ppl_side *s,
                             const struct gguf_tokens *tokens,
                             struct gguf_error *err)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct gguf_session **all = msg_must(calloc(s->n + 1, sizeof *all));
    const struct gguf_sink **sinks = msg_must(calloc(s->n, sizeof *sinks));
    enum gguf_status st = GGUF_OK;
    all[0] = s->base->session;
    for (size_t i = 0; i < s->n && st == GGUF_OK; i++) {
        struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
        kp.model = i + 1;
        kp.pool = s->pool;
        kp.on_chunk = on_chunk;
        kp.user = s;
        st = gguf_kld_create(&s->kld[i], &kp, err);
        all[i + 1] = s->model[i].session;
        sinks[i] = st == GGUF_OK ? gguf_kld_sink(s->kld[i]) : NULL;
    }
    p.n_ctx = s->run->o->n_ctx;
    p.max_chunks = s->run->n_chunks;
    p.pool = s->pool;
    p.progress = on_progress;
    p.user = s;
    if (st == GGUF_OK)
        st = gguf_scan_run_models(all, s->n + 1, tokens->id, tokens->n, &p,
                                  sinks, s->n, err);
    free(all);
    free(sinks);
    return st;
}

static bool report(const struct ppl_side *s)
{
    struct gguf_kld_stats *stats = msg_must(calloc(s->n, sizeof *stats));
    struct gguf_error err;
    bool good = true;
    for (size_t i = 0; good && i < s->n; i++) {
        stats[i].struct_size = sizeof stats[i];
        good = gguf_kld_get_stats(s->kld[i], &stats[i], &err) == GGUF_OK;
    }
    if (!good)
        msg_fail(NULL, &err);
    else if (s->run->o->json)
        ppl_print_side_json(s, stats);
    else
        ppl_print_side_end(s, stats);
    free(stats);
    return good;
}

bool ppl_side_run(struct ppl_side *s, struct ppl_run *r,
                  const struct gguf_tokens *tokens)
{
    struct gguf_error err;
    s->run = r;
    if (!r->o->json)
        ppl_print_side_head(s);
    progress_init(&r->bar, "divergence", "tokens", r->o->quiet);
    const double begin = progress_clock();
    const enum gguf_status st = scan(s, tokens, &err);
    r->seconds = progress_clock() - begin;
    progress_clear(&r->bar);
    if (st == GGUF_E_CANCELLED && progress_stopped())
        progress_raise();
    if (st != GGUF_OK) {
        msg_fail(s->n == 1 ? s->model[0].path : NULL, &err);
        return false;
    }
    return report(s);
}
