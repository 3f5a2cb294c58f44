/* SPDX-License-Identifier: MIT */
/* model.c - open a model: architecture, vocabulary, hyperparameters, weights */
#include "config.h"
#include "model/build.h"
#include "model/arch_match.h"
#include "model/unread_keys.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"
#include "file/shard_set.h"
#include "gguf/text.h"

#include <stdio.h>

enum gguf_status gg_model_check_type(const struct gguf_file *file,
                                     struct gguf_error *err)
{
    static const struct {
        const char *type, *what;
    } others[] = {
        { "adapter", "an adapter (LoRA), which changes one" },
        { "imatrix", "importance data" },
        { "mmproj", "the part of a model that sees or hears" },
    };
    const struct gguf_kv *kv = gguf_file_kv_find(file, "general.type");
    struct gguf_str type;
    if (gguf_kv_get_str(kv, &type, NULL) != GGUF_OK)
        return GGUF_OK;
    for (size_t i = 0; i < GG_LEN(others); i++)
        if (gg_str_eqz(type, others[i].type))
            return gg_error_set(err, GGUF_E_MISMATCH, kv->off,
                                "the file is not a model but %s (general.type "
                                "is '%s')",
                                others[i].what, others[i].type);
    return GGUF_OK;
}

void gg_model_key(const struct gguf_model *m, const char *key, char *out,
                  size_t size)
{
    if (key[0] == '/')
        snprintf(out, size, "%s", key + 1);
    else
        snprintf(out, size, "%.*s.%s", (int)m->prefix.size, m->prefix.data,
                 key);
}

/* "; did you mean 'NAME'?" for the known architecture that is spelled most
 * like name; "": none. */
static const char *suggest_arch(struct gguf_str name,
                                char out[GGUF_SUGGESTION_SIZE])
{
    const struct gg_arch *known = NULL;
    struct gguf_suggestion near;
    gguf_suggestion_init(&near, name);
    while ((known = gg_arch_next(known)))
        if (known->runs)
            gguf_suggestion_try(&near, gg_str_z(known->name));
    return gguf_suggestion_text(&near, out);
}

static enum gguf_status fail_arch(const struct gguf_model *m,
                                  const struct gguf_kv *kv,
                                  struct gguf_error *err)
{
    struct gg_str_esc e;
    char hint[GGUF_SUGGESTION_SIZE], near[400] = "";
    if (!m->arch && gg_arch_is_draft(m->arch_name))
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, kv->off,
            "architecture '%s' is a draft model: it guesses tokens from "
            "another model's states and cannot be evaluated alone",
            gg_str_esc(&e, m->arch_name));
    if (!err)
        return GGUF_E_ARCH;
    if (!m->arch)
        gg_arch_nearest_text(near, sizeof near, &m->src, m->arch_name,
                             m->allocator);
    return gg_error_set(
        err, GGUF_E_ARCH, kv->off,
        "architecture '%s' is not supported for evaluation yet%s%s",
        gg_str_esc(&e, m->arch_name),
        m->arch ? "" : suggest_arch(m->arch_name, hint), near);
}

/* Use the row that the program names for a file of an unknown architecture. */
static enum gguf_status load_other_arch(struct gguf_model *m,
                                        const struct gguf_kv *kv,
                                        struct gguf_error *err)
{
    const struct gg_arch *other = gg_arch_find(gg_str_z(m->as));
    struct gg_str_esc e;
    char hint[GGUF_SUGGESTION_SIZE];
    if (!other || !other->runs)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "no architecture '%s' can be evaluated%s",
                            gg_str_esc(&e, gg_str_z(m->as)),
                            suggest_arch(gg_str_z(m->as), hint));
    if (m->arch && m->arch->runs && m->arch != other)
        return gg_error_set(err, GGUF_E_INVALID, kv->off,
                            "architecture '%s' is known: its models are not "
                            "evaluated as those of '%s'",
                            m->arch->name, other->name);
    GG_TRY(gg_unread_keys_check_prefix(m->arch_name, kv->off, err));
    m->as = m->arch == other ? NULL : other->name;
    m->arch = other;
    m->prefix = m->arch_name;
    return GGUF_OK;
}

static enum gguf_status load_arch(struct gguf_model *m, struct gguf_error *err)
{
    const struct gguf_kv *kv;
    GG_TRY(gguf_file_kv_get(gg_source_meta(&m->src), "general.architecture",
                            &kv, err));
    GG_TRY(gguf_kv_get_str(kv, &m->arch_name, err));
    if (!m->arch)
        m->arch = gg_arch_find(m->arch_name);
    if (m->as)
        return load_other_arch(m, kv, err);
    if (!m->arch || !m->arch->runs)
        return fail_arch(m, kv, err);
    m->prefix = gg_str_z(m->arch->name);
    return GGUF_OK;
}

static enum gguf_status load_metadata(struct gguf_model *m,
                                      struct gguf_error *err)
{
    struct gguf_vocab_params vp = GGUF_VOCAB_PARAMS_INIT;
    vp.allocator = m->allocator;
    vp.warn = m->warn;
    vp.pre = m->vocab_pre;
    enum gguf_status st = gg_model_check_type(gg_source_meta(&m->src), err);
    if (st == GGUF_OK)
        st = load_arch(m, err);
    if (st == GGUF_OK)
        st = gg_file_check_whole(m->src.file, "to be evaluated", err);
    if (st == GGUF_OK)
        st = gguf_vocab_create(&m->vocab, gg_source_meta(&m->src), &vp, err);
    if (st != GGUF_OK)
        return gg_source_fail(&m->src, 0, st, err);
    const struct gg_finding report = { NULL, &m->src, err };
    if (m->as)
        GG_TRY(gg_unread_keys_check(m, err));
    return gg_hparams_load(&m->hp, &m->src, m->arch, m->prefix,
                           gguf_vocab_n_tokens(m->vocab), m->allocator,
                           &report);
}

/* Labels of a classifier; NULL: none. */
static const struct gguf_kv *labels_of(const struct gguf_model *m)
{
    char key[GG_MODEL_KEY];
    gg_model_key(m, "classifier.output_labels", key, sizeof key);
    const struct gguf_kv *kv = gguf_file_kv_find(gg_source_meta(&m->src), key);
    return kv && kv->type == GGUF_VAL_ARR && kv->elem_type == GGUF_VAL_STR &&
                   kv->n <= UINT32_MAX
               ? kv
               : NULL;
}

static void fill_info(struct gguf_model *m)
{
    m->info = (struct gguf_model_info){
        .arch = m->arch_name,
        .as = m->as,
        .n_layer = m->hp.n_layer,
        .n_embd = m->hp.n_embd,
        .n_vocab = m->hp.n_vocab,
        .n_ctx_train = m->hp.n_ctx_train,
        .n_params = m->n_params,
        .weight_size = m->weight_size,
        .copied_size = m->copy_used,
        .has_logits = gg_model_has_logits(m),
        .is_whole = gg_model_needs_whole_sequence(m),
        .encodes_first = gg_model_encodes_first(m),
        .decoder_start = m->hp.has[GG_HP_dec_start]
                             ? (gguf_token)m->hp.dec_start
                             : GGUF_TOKEN_NONE,
        .pooling = gg_model_resolve_pooling(m, GGUF_POOLING_MODEL),
    };
    const struct gguf_kv *labels = labels_of(m);
    m->info.n_label = labels ? (uint32_t)labels->n : 0;
}

enum gguf_status gg_model_open(struct gguf_model **out,
                               const struct gg_source *src,
                               const struct gg_arch *arch,
                               const struct gguf_model_params *params,
                               struct gguf_error *err)
{
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_model_params", err));
    if (!src->file)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET, "no file");
    struct gguf_model *m = gg_mem_alloc_zero(p.allocator, 1, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    m->allocator = p.allocator;
    m->src = *src;
    m->arch = arch;
    m->warn = p.warn;
    m->vocab_pre = p.pre;
    m->as = p.as;
    enum gguf_status st = p.meta ? gg_model_override(m, p.meta, err) : GGUF_OK;
    if (st == GGUF_OK)
        st = load_metadata(m, err);
    if (st == GGUF_OK && p.meta)
        gg_model_override_warn(m, p.meta);
    if (st == GGUF_OK)
        st = gg_build_check(m, err);
    if (st == GGUF_OK)
        st = gg_weights_load(m, err);
    if (st == GGUF_OK)
        st = gg_build_check_loaded(m, err);
    if (st != GGUF_OK) {
        gguf_model_destroy(m);
        return st;
    }
    fill_info(m);
    *out = m;
    return GGUF_OK;
}

enum gguf_status gguf_model_create(struct gguf_model **out,
                                   const struct gguf_file *file,
                                   const struct gguf_model_params *params,
                                   struct gguf_error *err)
{
    const struct gg_source src = { .file = file };
    return gg_model_open(out, &src, NULL, params, err);
}

void gguf_model_destroy(struct gguf_model *m)
{
    if (!m)
        return;
    if (m->of)
        gg_weights_unlock(m);
    for (size_t i = 0; i < m->n_moved; i++)
        gguf_buffer_destroy(m->moved[i]);
    gg_mem_free(m->allocator, m->moved);
    gguf_buffer_destroy(m->copy_buffer);
    for (size_t i = 0; m->buffer && i < gg_source_n_files(&m->src); i++)
        gguf_buffer_destroy(m->buffer[i]);
    gg_mem_free(m->allocator, m->buffer);
    gguf_ctx_destroy(m->ctx);
    gg_mem_free_aligned(m->allocator, m->copy);
    gg_mem_free(m->allocator, m->layer);
    gg_mem_free(m->allocator, m->used);
    gg_mem_free(m->allocator, m->of);
    gg_mem_free(m->allocator, m->hp.layer);
    gguf_vocab_destroy(m->vocab);
    gguf_file_close(m->altered);
    gg_mem_free(m->allocator, m);
}

const struct gguf_model_info *gguf_model_info(const struct gguf_model *m)
{
    return &m->info;
}

const struct gguf_tensor *gguf_model_tensor(const struct gguf_model *m,
                                            size_t i)
{
    return i < gg_source_n_tensors(&m->src) ? m->of[i] : NULL;
}

const struct gguf_tensor *gguf_model_tensor_find(const struct gguf_model *m,
                                                 const char *name)
{
    size_t i;
    return gg_source_find(&m->src, name, &i) ? m->of[i] : NULL;
}

enum gguf_status gguf_model_label(const struct gguf_model *m, size_t i,
                                  struct gguf_str *label,
                                  struct gguf_error *err)
{
    struct gguf_kv name;
    if (i >= m->info.n_label)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "label %zu of a model of %" PRIu32, i,
                            m->info.n_label);
    GG_TRY(gguf_kv_get_elem(labels_of(m), i, &name, err));
    return gguf_kv_get_str(&name, label, err);
}

const struct gguf_vocab *gguf_model_vocab(const struct gguf_model *m)
{
    return m->vocab;
}
