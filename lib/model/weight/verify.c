/* SPDX-License-Identifier: MIT */
/* verify.c - everything that is wrong about a model
 *
 * A file as a container, its vocabulary, its hyperparameters and its tensors,
 * each by the room that knows it, all reported to one callback.
 */
#include "config.h"
#include "gguf/verify.h"
#include "file/file_int.h"
#include "file/shard_set.h"
#include "data/source.h"
#include "model/weight/tensors.h"
#include "model/weight/verify_row.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

struct verify {
    struct gg_file_checker c; /* checker of the current file */
    struct gg_source src;
};

/* Number of layers by the names of tensors, at most the number of tensors. */
static uint32_t count_layers(const struct gg_source *s)
{
    uint64_t most = 0, il, n = gg_source_n_tensors(s);
    for (size_t i = 0; i < n; i++) {
        struct gguf_str name = gg_source_tensor(s, i).info->name;
        if (gg_weight_scope(&name, &il) != GG_MODEL && il < n && il + 1 > most)
            most = il + 1;
    }
    return (uint32_t)most;
}

enum gguf_status gg_verify_row(struct gg_file_checker *c,
                               const struct gg_source *src,
                               const struct gg_arch *arch,
                               struct gguf_str prefix, struct gguf_error *err)
{
    const struct gg_finding report = { c, src, err };
    const struct gguf_kv *tokens =
        gguf_file_kv_find(gg_source_meta(src), "tokenizer.ggml.tokens");
    const size_t n_tokens =
        tokens && tokens->type == GGUF_VAL_ARR && tokens->n <= INT32_MAX
            ? (size_t)tokens->n
            : 0;
    struct gg_hparams hp = { .n_layer = count_layers(src) };
    struct gg_model_lookup lookup = { .src = src, .arch = arch, .hp = &hp };
    enum gguf_status st = gg_hparams_load(&hp, src, arch, prefix, n_tokens,
                                          c->params.allocator, &report);
    if (st == GGUF_OK && hp.n_layer)
        st = gg_tensors_check(&lookup, &report, NULL, c->params.allocator);
    c->file = gg_source_file(src, 0);
    gg_mem_free(c->params.allocator, hp.layer);
    return st;
}

/* Is the file something else than a model: an adapter, importance data ...? */
static bool is_other_file(const struct gguf_file *file)
{
    struct gguf_str type;
    return gguf_kv_get_str(gguf_file_kv_find(file, "general.type"), &type,
                           NULL) == GGUF_OK &&
           !gg_str_eqz(type, "model");
}

static enum gguf_status check_model(struct verify *v, struct gguf_error *err)
{
    const struct gguf_file *file = v->c.file = gg_source_file(&v->src, 0);
    const struct gguf_kv *kv = gguf_file_kv_find(file, "general.architecture");
    struct gguf_str name;
    struct gg_str_esc e;
    if (gg_verify_is_projector(file))
        return gg_verify_projector(&v->c, &v->src, err);
    if (gguf_kv_get_str(kv, &name, NULL) != GGUF_OK || !name.size ||
        !gg_source_n_tensors(&v->src) || is_other_file(file))
        return GGUF_OK;
    const struct gg_arch *arch = gg_arch_find(name);
    if (!arch)
        return gg_file_report_finding(
            &v->c, GG_CHECK_ARCH_UNKNOWN, kv->key, kv->off, err,
            gg_arch_is_draft(name)
                ? "architecture '%s' is a draft model; its tensors are not "
                  "checked"
                : "tensors of architecture '%s' are not known",
            gg_str_esc(&e, name));
    return gg_verify_row(&v->c, &v->src, arch, name, err);
}

/* A file that is one shard of several, looked at alone. */
static enum gguf_status check_shard(const struct verify *v, bool *is_shard,
                                    struct gguf_error *err)
{
    const struct gguf_file *file = v->c.file;
    const char *key = gg_file_split_keys[GG_SPLIT_COUNT];
    const struct gguf_kv *kv = gguf_file_kv_find(file, key);
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *set;
    struct gguf_error why;
    uint64_t count = 0;
    bool known = gguf_kv_get_uint(kv, &count, NULL) == GGUF_OK;
    *is_shard = known && count > 1;
    if (!kv || (known && count <= 1)) /* 0: it was merged */
        return GGUF_OK;
    fp.allocator = v->c.params.allocator;
    if (file->path && !file->map.read && file->map.off == 0) {
        enum gguf_status st = gguf_file_open(&set, file->path, &fp, &why);
        gguf_file_close(set);
        if (st == GGUF_E_NOMEM)
            return gg_error_set(err, st, GGUF_NO_OFFSET, "%s", why.message);
        if (st != GGUF_OK)
            GG_TRY(gg_file_report_finding(&v->c, GG_CHECK_SET, kv->key,
                                          kv->off, err, "%s", why.message));
    }
    if (!*is_shard)
        return GGUF_OK;
    return gg_file_report_finding(&v->c, GG_CHECK_SHARD, kv->key, kv->off, err,
                                  "the file is one of %" PRIu64
                                  " shards: its tensors are "
                                  "not all of the model",
                                  count);
}

static enum gguf_status verify_tensors(struct verify *v,
                                       struct gguf_error *err)
{
    bool is_shard = false;
    for (size_t i = 0; i < gg_source_n_files(&v->src); i++) {
        v->c.file = gg_source_file(&v->src, i);
        GG_TRY(gg_file_check_header(&v->c, err));
    }
    v->c.file = gg_source_file(&v->src, 0);
    GG_TRY(gg_vocab_check(&v->c, err));
    if (gg_source_n_files(&v->src) == 1)
        GG_TRY(check_shard(v, &is_shard, err));
    if (!is_shard)
        GG_TRY(check_model(v, err));
    if (!v->c.params.payload)
        return GGUF_OK;
    for (size_t i = 0; i < gg_source_n_files(&v->src); i++) {
        v->c.file = gg_source_file(&v->src, i);
        GG_TRY(gg_file_check_payload(&v->c, err));
    }
    return GGUF_OK;
}

enum gguf_status gguf_file_verify(const struct gguf_file *file,
                                  const struct gguf_check_params *params,
                                  struct gguf_finding_callback report,
                                  struct gguf_error *err)
{
    struct verify v = { .src = { .file = file } };
    GG_TRY(gg_file_checker_init(&v.c, params, report, err));
    return verify_tensors(&v, err);
}

enum gguf_status gguf_file_verify_meta(const struct gguf_file *file,
                                       const struct gguf_meta *meta,
                                       const struct gguf_check_params *params,
                                       struct gguf_finding_callback report,
                                       struct gguf_error *err)
{
    struct verify v = { .src = { .file = file } };
    struct gguf_file *planned;
    GG_TRY(gg_file_checker_init(&v.c, params, report, err));
    if (v.c.params.payload)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a file that is not written has no payload");
    GG_TRY(gg_file_create_planned(&planned, gguf_file_shard(file, 0), meta,
                                  v.c.params.allocator, err));
    if (gguf_file_n_shards(file) > 1)
        v.src.first = planned;
    else
        v.src.file = planned;
    enum gguf_status st = verify_tensors(&v, err);
    gguf_file_close(planned);
    return st;
}
