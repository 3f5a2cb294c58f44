/* SPDX-License-Identifier: MIT */
/* model.c - opening a model and beginning a session on it */
#include "config.h"
#include "tools/evaluate/model.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "tools/common/nearest_arch.h"
#include "tools/common/override.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* User data of warn_model(). */
struct warned {
    const struct ev_options *o;
    const char *path;
};

static void warn_model(void *user, const char *message)
{
    const struct warned *w = user;
    if (!w->o->quiet)
        msg_warn(w->path, "%s", message);
}

bool ev_explain_adapter(const struct gguf_file *set, const char *path)
{
    struct gguf_str type;
    const struct gguf_kv *kv = gguf_file_kv_find(set, "general.type");
    if (gguf_kv_get_str(kv, &type, NULL) != GGUF_OK || type.size != 7 ||
        memcmp(type.data, "adapter", 7) != 0)
        return false;
    msg_error(path,
              "the file is an adapter (LoRA), not a model: '-m MODEL --lora "
              "%s' evaluates its model with it",
              path);
    return true;
}

/* Print why a model could not be opened. For an unsupported architecture, name
 * the tools that work on the file and, unless quiet, the nearest ones. */
static bool report_failure(const struct ev_model *m, bool quiet,
                           const struct gguf_error *err)
{
    const struct gguf_kv *kv =
        gguf_file_kv_find(m->file, "general.architecture");
    struct gguf_str name;
    char esc[128];
    if (err->status == GGUF_E_MISMATCH && ev_explain_adapter(m->file, m->path))
        return false;
    if (err->status != GGUF_E_ARCH ||
        gguf_kv_get_str(kv, &name, NULL) != GGUF_OK)
        return msg_fail(m->path, err);
    gguf_text_escape(esc, sizeof esc, name);
    msg_error(m->path,
              "architecture '%s' is not supported by %s yet; gguf-info, "
              "gguf-split and gguf-quantize work on it",
              esc, msg_tool());
    if (!quiet)
        nearest_arch_print(m->file, m->path);
    return false;
}

bool ev_parse_overrides(const struct ev_options *o, const char *path,
                        const struct gguf_file *set, struct gguf_meta **meta)
{
    struct gguf_error err;
    *meta = NULL;
    if (!o->kv_texts.n)
        return true;
    if (gguf_meta_create(meta, NULL, &err) != GGUF_OK)
        return msg_fail(NULL, &err);
    const struct override to = { .meta = *meta, .like = set };
    for (size_t i = 0; i < o->kv_texts.n; i++)
        override_add(&to, o->kv_texts.arg[i]);
    struct guard g = { .name = path,
                       .file = to.like,
                       .verdict = "nothing was evaluated",
                       .force = o->force };
    return override_guard(&g, *meta);
}

bool ev_model_open(struct ev_model *m, const char *path,
                   const struct ev_options *o)
{
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct warned w = { o, path };
    struct gguf_error err;
    m->path = path;
    m->precision = (unsigned)o->precision;
    m->backend_names = o->backends;
    mp.warn.fn = warn_model;
    mp.warn.user = &w;
    mp.pre = o->pre;
    mp.as = o->as;
    load_raise_limits();
    if (gguf_file_open(&m->file, path, o->files, &err) != GGUF_OK)
        return msg_fail(path, &err);
    if (!ev_parse_overrides(o, path, m->file, &m->meta))
        return false;
    mp.meta = m->meta;
    if (gguf_model_create(&m->model, m->file, &mp, &err) != GGUF_OK)
        return report_failure(m, o->quiet, &err);
    m->info = *gguf_model_info(m->model);
    if (o->n_ctx > m->info.n_ctx_train && !o->quiet)
        msg_warn(path,
                 "context of %" PRIu32 " tokens, but the model was trained on "
                 "at most %" PRIu32,
                 o->n_ctx, m->info.n_ctx_train);
    return true;
}

bool ev_model_open_backends(struct ev_model *m, const struct ev_options *o,
                            struct gguf_pool *pool)
{
    return ev_backends_open(&m->backends, o, m->backend_names, m->precision,
                            pool);
}

bool ev_model_begin_session(struct ev_model *m, const struct ev_options *o,
                            const struct gguf_session_params *params,
                            bool alone)
{
    struct gguf_session_params sp = *params;
    struct ev_backends *b = &m->backends;
    struct gguf_error err;
    sp.backend = b->list[b->n - 1];
    if (!alone) {
        sp.preferred = b->list;
        sp.n_preferred = b->n - 1;
    }
    sp.n_ctx = sp.n_ctx ? sp.n_ctx : o->n_ctx;
    sp.unified = o->unified;
    if (o->unified) /* one cache for the tokens of all sequences */
        sp.n_ctx *= sp.n_seq;
    sp.full_windows = o->full_windows;
    sp.key_dtype = gguf_dtype_find(o->key_dtype);
    sp.value_dtype = gguf_dtype_find(o->value_dtype);
    sp.pooling = o->pooling;
    ev_set_positions(&o->pos, &sp);
    sp.adapters = m->adapters.use;
    sp.n_adapters = m->adapters.n;
    if (!ev_place_weights(m, &sp, o))
        return false;
    for (size_t i = 0; i < m->adapters.n; i++)
        if (gguf_adapter_place_weights(m->adapters.adapter[i], &err) !=
            GGUF_OK)
            return msg_fail(m->path, &err);
    if (gguf_session_create(&m->session, m->model, &sp, &err) != GGUF_OK)
        return msg_fail(m->path, &err);
    gguf_session_set_finite_check(m->session, o->check_activations);
    return true;
}

void ev_model_close(struct ev_model *m)
{
    gguf_session_destroy(m->session);
    for (size_t i = 0; i < m->adapters.n; i++)
        gguf_adapter_destroy(m->adapters.adapter[i]);
    free(m->adapters.adapter);
    free(m->adapters.use);
    gguf_model_destroy(m->model); /* weights may be in backends' memory */
    ev_backends_close(&m->backends);
    gguf_meta_destroy(m->meta);
    gguf_file_close(m->file);
}
