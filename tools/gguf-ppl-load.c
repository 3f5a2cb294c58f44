/* gguf-ppl-load.c - how the model is opened */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/msg.h"
#include "tools/common/override.h"

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

static enum gguf_status check(struct gguf_model *model,
                              const struct gguf_model_job *job,
                              struct gguf_error *err)
{
    return gguf_model_scan_finite(model, job, err);
}

static enum gguf_status prefetch(struct gguf_model *model,
                                 const struct gguf_model_job *job,
                                 struct gguf_error *err)
{
    return gguf_model_prefetch(model, job, err);
}

bool ppl_weights(struct gguf_model *model, const char *path,
                 struct gguf_pool *pool, const struct ppl_options *o)
{
    struct gguf_error err;
    if ((o->prefetch &&
         !run_job(model, path, pool, o, "prefetching", prefetch)) ||
        (o->no_mmap &&
         !run_job(model, path, pool, o, "reading", gguf_model_read)))
        return false;
    if (o->mlock && gguf_model_lock(model, &err) != GGUF_OK && !o->quiet)
        msg_warn(path, "%s", err.message);
    return o->no_check || run_job(model, path, pool, o, "checking", check);
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
