/* SPDX-License-Identifier: MIT */
/* weights.c - reading, checking and placing the weights of a model */
#include "config.h"
#include "tools/evaluate/model.h"
#include "tools/common/digest.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"
#include "tools/common/text.h"
#include "tools/common/nocase.h"

#include <stdlib.h>
#include <string.h>

/* A job on all weights of a model. */
typedef enum gguf_status job_fn(struct gguf_model *model,
                                const struct gguf_model_job *job,
                                struct gguf_error *err);

static bool run_job(struct gguf_model *model, const char *path,
                    struct gguf_pool *pool, const struct ev_options *o,
                    const char *label, job_fn *fn)
{
    struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
    struct gguf_error err;
    struct progress bar;
    progress_init(&bar, label, NULL, o->quiet);
    job.pool = pool;
    job.progress.fn = progress_report;
    job.progress.user = &bar;
    const enum gguf_status st = fn(model, &job, &err);
    progress_clear(&bar);
    if (st != GGUF_OK)
        msg_fail(path, &err);
    return st == GGUF_OK;
}

static enum gguf_status check_weights(struct gguf_model *model,
                                      const struct gguf_model_job *job,
                                      struct gguf_error *err)
{
    return gguf_model_check_finite(model, job, err);
}

static enum gguf_status prefetch_weights(struct gguf_model *model,
                                         const struct gguf_model_job *job,
                                         struct gguf_error *err)
{
    return gguf_model_prefetch_weights(model, job, err);
}

static bool hash_weights(struct ev_model *m, const struct ev_options *o,
                         struct gguf_pool *pool)
{
    struct gguf_error err;
    m->has_digest = digest_model(m->file, GGUF_DIGEST_XXH64, pool, "hashing",
                                 o->quiet, NULL, &m->digest, &err) == GGUF_OK;
    return m->has_digest || progress_fail(NULL, m->path, &err);
}

bool ev_model_load_weights(struct ev_model *m, const struct ev_options *o,
                           bool digest, struct gguf_pool *pool)
{
    struct gguf_error err;
    if ((o->prefetch && !run_job(m->model, m->path, pool, o, "prefetching",
                                 prefetch_weights)) ||
        (digest && !hash_weights(m, o, pool)) ||
        (o->no_mmap && !run_job(m->model, m->path, pool, o, "reading",
                                gguf_model_read_weights)))
        return false;
    if (o->mlock && gguf_model_lock_weights(m->model, &err) != GGUF_OK &&
        !o->quiet)
        msg_warn(m->path, "%s", err.message);
    return o->no_check ||
           run_job(m->model, m->path, pool, o, "checking", check_weights);
}

/* ---- placing ---- */

/* Find the type of memory in which a backend computes, by the name of the type
 * or of the backend. Returns NULL if the name is unknown. */
static const struct gguf_buft *find_buft(const struct ev_backends *b,
                                         const char *name)
{
    for (unsigned i = 0; i < b->n; i++) {
        const struct gguf_buft *t = gguf_backend_buft(b->list[i]);
        if (nocase_equals(name, gguf_buft_name(t)) ||
            nocase_equals(name, gguf_backend_name(b->list[i])))
            return t;
    }
    return NULL;
}

static bool is_first_use(const struct ev_backends *b, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (gguf_backend_buft(b->list[k]) == gguf_backend_buft(b->list[i]))
            return false;
    return true;
}

static void report_unknown_buft(const struct ev_backends *b, const char *name)
{
    struct text t = { NULL, 0, 0 };
    for (unsigned i = 0; i < b->n; i++)
        if (is_first_use(b, i))
            text_addf(&t, "%s%s", t.n ? ", " : "",
                      gguf_buft_name(gguf_backend_buft(b->list[i])));
    msg_error(
        NULL,
        "--override-tensor: unknown type of memory '%s', expected one of: "
        "%s",
        name, t.s);
    text_fini(&t);
}

/* Make rules from the arguments of --override-tensor. copy: room for all
 * patterns, which the rules point to. */
static bool make_rules(struct gguf_place_rule *rule, char *copy,
                       const struct ev_backends *b, const struct ev_options *o)
{
    for (size_t i = 0; i < o->places.n; i++) {
        const char *arg = o->places.arg[i];
        const char *eq = strrchr(arg, '='); /* not NULL: checked before */
        const size_t n = (size_t)(eq - arg);
        memcpy(copy, arg, n);
        copy[n] = 0;
        rule[i].pattern = copy;
        rule[i].buft = find_buft(b, eq + 1);
        copy += n + 1;
        if (!rule[i].buft) {
            report_unknown_buft(b, eq + 1);
            return false;
        }
    }
    return true;
}

bool ev_place_weights(struct ev_model *m, const struct gguf_session_params *sp,
                      const struct ev_options *o)
{
    struct gguf_place_params p = GGUF_PLACE_PARAMS_INIT;
    struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
    struct gguf_error err;
    struct progress bar;
    size_t size = 1;
    if (!sp->n_preferred && !o->places.n)
        return true;
    for (size_t i = 0; i < o->places.n; i++)
        size += strlen(o->places.arg[i]) + 1;
    char *copy = msg_must(malloc(size));
    struct gguf_place_rule *rule =
        msg_must(calloc(o->places.n + 1, sizeof *rule));
    progress_init(&bar, "placing", NULL, o->quiet);
    job.progress.fn = progress_report;
    job.progress.user = &bar;
    p.job = &job;
    p.rules = rule;
    p.n_rules = o->places.n;
    bool good = make_rules(rule, copy, &m->backends, o);
    if (good && gguf_model_place_weights(m->model, sp, &p, &err) != GGUF_OK) {
        progress_clear(&bar);
        msg_fail(m->path, &err);
        good = false;
    }
    progress_clear(&bar);
    free(rule);
    free(copy);
    return good;
}
