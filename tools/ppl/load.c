/* SPDX-License-Identifier: MIT */
/* load.c - how the model is opened */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/override.h"
#include "tools/common/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool ppl_overrides(const struct ppl_options *o, const char *path,
                   const struct gguf_split *set, struct gguf_meta **meta)
{
    struct gguf_error err;
    *meta = NULL;
    if (!o->kv_texts.n)
        return true;
    if (gguf_meta_create(meta, NULL, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        return false;
    }
    const struct override to = { .meta = *meta,
                                 .like = gguf_split_file(set, 0) };
    for (size_t i = 0; i < o->kv_texts.n; i++)
        override_add(&to, o->kv_texts.arg[i]);
    struct guard g = { .name = path,
                       .set = set,
                       .file = to.like,
                       .verdict = "nothing was evaluated",
                       .force = o->force };
    return override_guard(&g, *meta);
}

/* Jobs on all weights: how each is begun. */
typedef enum gguf_status job_fn(struct gguf_model *model,
                                const struct gguf_model_job *job,
                                struct gguf_error *err);

static bool run_job(struct gguf_model *model, const char *path,
                    struct gguf_pool *pool, const struct ppl_options *o,
                    const char *label, job_fn *fn)
{
    struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
    struct gguf_error err;
    struct progress bar;
    progress_init(&bar, label, NULL, o->quiet);
    job.pool = pool;
    job.progress = progress_report;
    job.user = &bar;
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
    return gguf_model_scan_finite(model, job, err);
}

static enum gguf_status prefetch_weights(struct gguf_model *model,
                                         const struct gguf_model_job *job,
                                         struct gguf_error *err)
{
    return gguf_model_prefetch(model, job, err);
}

bool ppl_weights(struct ppl_model *m, struct gguf_pool *pool,
                 const struct ppl_options *o)
{
    struct gguf_error err;
    if ((o->prefetch && !run_job(m->model, m->path, pool, o, "prefetching",
                                 prefetch_weights)) ||
        !ppl_digest_model(m, pool, o) ||
        (o->no_mmap &&
         !run_job(m->model, m->path, pool, o, "reading", gguf_model_read)))
        return false;
    if (o->mlock && gguf_model_lock(m->model, &err) != GGUF_OK && !o->quiet)
        msg_warn(m->path, "%s", err.message);
    return o->no_check ||
           run_job(m->model, m->path, pool, o, "checking", check_weights);
}

void ppl_set_positions(const struct ppl_positions *pos,
                       struct gguf_session_params *p)
{
    const double factor =
        pos->freq_scale > 0 ? 1 / pos->freq_scale : pos->scale;
    p->rope_freq_base = (float)pos->base;
    p->rope_factor = (float)factor;
    p->rope_scaling = (enum gguf_rope_scaling)pos->scaling;
    p->yarn_orig_ctx = pos->yarn_ctx;
    /* the session takes 0 for the file's, and less for 0 */
    p->yarn_ext_factor = pos->yarn_ext < 0    ? 0
                         : pos->yarn_ext == 0 ? -1
                                              : (float)pos->yarn_ext;
    p->yarn_attn_factor = (float)pos->yarn_attn;
    p->yarn_beta_fast = (float)pos->yarn_fast;
    p->yarn_beta_slow = (float)pos->yarn_slow;
    p->n_window = pos->window == UINT32_MAX ? 0
                  : pos->window == 0        ? UINT32_MAX
                                            : pos->window;
}

/* ---- where weights lie ---- */

/* The type of memory that a backend computes in, by its own name or that of the
 * backend; NULL: there is none of that name. */
static const struct gguf_buft *find_buft(const struct ppl_backends *b,
                                         const char *name)
{
    for (unsigned i = 0; i < b->n; i++) {
        const struct gguf_buft *t = gguf_backend_buft(b->list[i]);
        if (!strcasecmp(name, gguf_buft_name(t)) ||
            !strcasecmp(name, gguf_backend_name(b->list[i])))
            return t;
    }
    return NULL;
}

static bool is_new(const struct ppl_backends *b, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (gguf_backend_buft(b->list[k]) == gguf_backend_buft(b->list[i]))
            return false;
    return true;
}

static void unknown_buft(const struct ppl_backends *b, const char *name)
{
    struct text t = { NULL, 0, 0 };
    for (unsigned i = 0; i < b->n; i++)
        if (is_new(b, i))
            text_addf(&t, "%s%s", t.n ? ", " : "",
                      gguf_buft_name(gguf_backend_buft(b->list[i])));
    msg_error(NULL,
              "--override-tensor: there is no type of memory '%s' here, but "
              "%s",
              name, t.s);
    text_fini(&t);
}

/* Rules of the option's arguments; their patterns are cut out of copy, which
 * has all of them. */
static bool make_rules(struct gguf_place_rule *rule, char *copy,
                       const struct ppl_backends *b,
                       const struct ppl_options *o)
{
    for (size_t i = 0; i < o->places.n; i++) {
        const char *arg = o->places.arg[i];
        const char *eq = strrchr(arg, '='); /* there is one: parsed */
        const size_t n = (size_t)(eq - arg);
        memcpy(copy, arg, n);
        copy[n] = 0;
        rule[i].pattern = copy;
        rule[i].buft = find_buft(b, eq + 1);
        copy += n + 1;
        if (!rule[i].buft) {
            unknown_buft(b, eq + 1);
            return false;
        }
    }
    return true;
}

bool ppl_place(struct ppl_model *m, const struct gguf_session_params *sp,
               const struct ppl_options *o)
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
    job.progress = progress_report;
    job.user = &bar;
    p.job = &job;
    p.rules = rule;
    p.n_rules = o->places.n;
    bool good = make_rules(rule, copy, &m->backends, o);
    if (good && gguf_model_place(m->model, sp, &p, &err) != GGUF_OK) {
        progress_clear(&bar);
        msg_fail(m->path, &err);
        good = false;
    }
    progress_clear(&bar);
    free(rule);
    free(copy);
    return good;
}
