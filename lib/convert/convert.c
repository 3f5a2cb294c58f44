/* SPDX-License-Identifier: MIT */
/* convert.c - a folder becomes a file in three steps
 *
 * The folder is read: its texts and weights, and what these say in several ways
 * is settled. Then it is described: metadata, and a list of tensors made of the
 * folder's. What is described is written by a job of quant.
 */
#include "config.h"
#include "convert/convert_int.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/params.h"
#include "base/str.h"
#include "kern/cpu_features.h"
#include "quant/job/job.h"

#include <math.h>
#include <string.h>

/* How many layers names may have. */
static void count_layers(struct gguf_convert *c)
{
    const double n =
        c->arch ? gg_convert_count_layers(c, c->arch) : (double)NAN;
    c->n_layers = n >= 0 && n < 1e6 ? (int64_t)n : INT64_MAX;
}

static const json_t *class_of(const json_t *config)
{
    return json_array_get(json_object_get(config, "architectures"), 0);
}

static void find_row(struct gguf_convert *c, struct gguf_str name)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    for (size_t i = 0; !c->arch && gg_convert_arch_row(i); i++) {
        const struct gg_convert_arch *a = gg_convert_arch_row(i);
        if (gg_convert_arch_has(a, name) && (!a->when || a->when(&cfg)))
            c->arch = a;
    }
}

enum gguf_status gg_convert_find_arch(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    const struct gg_convert_text *t = &c->folder.text[GG_CONVERT_CONFIG];
    const json_t *v = class_of(t->json.root);
    struct gguf_str name, inner;
    struct gg_str_esc e;
    c->arch = NULL;
    if (!gg_json_str(v, &name))
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "config.json: there is no name in "
                            "\"architectures\"");
    find_row(c, name);
    /* what sees and hears may say of which class its language model is */
    if (gg_json_str(class_of(c->folder.config), &inner))
        find_row(c, inner);
    count_layers(c);
    if (!c->arch)
        return gg_error_set(err, GGUF_E_ARCH, gg_json_place(&t->json, v),
                            "config.json: models of class '%s' are not "
                            "converted",
                            gg_str_esc(&e, name));
    return GGUF_OK;
}

/* ---- read: what a folder has, as its class has it ---- */

static enum gguf_status read_adapter(struct gguf_convert *c,
                                     const struct gguf_limits *limits,
                                     struct gguf_error *err)
{
    GG_TRY(gg_convert_adapter_base(c, err));
    GG_TRY(gg_convert_find_arch(c, err));
    GG_TRY(gg_safetensors_open(&c->folder.weights, &c->folder.dir,
                               "adapter_model", limits, c->codec, err));
    GG_TRY(gg_folder_note_unread(&c->folder, err));
    return gg_convert_find_prefix(c, err);
}

static enum gguf_status read_model(struct gguf_convert *c,
                                   const struct gguf_limits *limits,
                                   struct gguf_error *err)
{
    GG_TRY(gg_folder_read_texts(&c->folder, err));
    GG_TRY(gg_folder_settle_rope(&c->folder, err));
    GG_TRY(gg_convert_unsaid_defaults(c, err));
    GG_TRY(gg_convert_find_arch(c, err));
    if (c->arch->settle)
        GG_TRY(c->arch->settle(c, err));
    GG_TRY(gg_safetensors_open(&c->folder.weights, &c->folder.dir, "model",
                               limits, c->codec, err));
    GG_TRY(gg_folder_note_unread(&c->folder, err));
    GG_TRY(gg_convert_unsaid_reranker(c, err));
    GG_TRY(gg_convert_find_arch(c, err)); /* a reranker has another row */
    GG_TRY(gg_convert_find_prefix(c, err));
    GG_TRY(gg_convert_unsaid_drafts(c, err));
    GG_TRY(gg_convert_modules(c, err));
    count_layers(c);
    return gg_folder_join_quantized(&c->folder, err);
}

static enum gguf_status read_folder(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    static const struct gguf_limits defaults = GGUF_LIMITS_INIT;
    struct gguf_limits limits = c->p.limits ? *c->p.limits : defaults;
    /* names of folders are longer than those that they become, and what is
     * left out has more dimensions: pictures through time */
    limits.max_name_size = GG_MAX(limits.max_name_size, GG_CONVERT_NAME);
    limits.max_dims = GGUF_MAX_DIMS;
    GG_TRY(gg_convert_adapter_open(c, &c->is_adapter, err));
    if (c->is_adapter)
        return read_adapter(c, &limits, err);
    if (c->p.base)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "has no adapter (adapter_config.json): --base is "
                            "for the folder of one; without it the folder's "
                            "model is converted");
    return read_model(c, &limits, err);
}

/* ---- describe: metadata, and tensors made of the folder's ---- */

static enum gguf_status describe_adapter(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    GG_TRY(gg_convert_tensors(c, err));
    GG_TRY(gg_convert_adapter_keys(c, err));
    GG_TRY(gg_convert_general(c, err));
    return gg_convert_tell_kind(c, err);
}

/* Keys may add tensors, and the name of a model counts these; keys come in the
 * order of llama.cpp's converter. */
static enum gguf_status describe_model(struct gguf_convert *c,
                                       struct gguf_error *err)
{
    GG_TRY(gguf_meta_set_strz(c->out.meta, "general.architecture",
                              c->arch->arch, err));
    GG_TRY(gg_convert_keys(c, err));
    GG_TRY(gg_convert_tensors(c, err));
    GG_TRY(gg_convert_unsaid_rows(c, err));
    GG_TRY(gg_convert_general(c, err));
    const struct gguf_convert_tensor *t =
        gg_convert_find_tensor(c, "token_embd.weight");
    GG_TRY(gg_convert_vocab(&c->folder, c->arch, t ? t->ne[1] : 0, c->out.meta,
                            &c->out.summary.n_tokens_left, err));
    GG_TRY(gg_convert_last_keys(c, err));
    return gg_convert_tell_kind(c, err);
}

static enum gguf_status describe_folder(struct gguf_convert *c,
                                        struct gguf_error *err)
{
    GG_TRY(gguf_meta_create(&c->out.meta, c->p.allocator, err));
    GG_TRY(c->is_adapter ? describe_adapter(c, err) : describe_model(c, err));
    c->out.description = (struct gg_description){ .origin = c,
                                                  .meta = c->out.meta,
                                                  .list = &c->out.data.list,
                                                  .opened = c->folder.opened,
                                                  .n_files = 1,
                                                  .is_new = true };
    return GGUF_OK;
}

enum gguf_status gguf_convert_open(struct gguf_convert **out, const char *path,
                                   const struct gguf_convert_params *params,
                                   struct gguf_error *err)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_need(path, "path", err));
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_convert_params", err));
    if (p.n_ignore && !p.ignore)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_convert_params: n_ignore, but no ignore");
    struct gguf_convert *c = gg_mem_alloc_zero(p.allocator, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    c->p = p;
    gg_mem_arena_init(&c->arena, p.allocator);
    gg_codec_kern_init(c->codec, gg_kern_cpu_detect());
    enum gguf_status st =
        gg_folder_open(&c->folder, path, &c->p, &c->arena, err);
    if (st == GGUF_OK)
        st = read_folder(c, err);
    if (st == GGUF_OK)
        st = describe_folder(c, err);
    gg_folder_close_texts(&c->folder);
    c->p.pre = NULL; /* borrowed until here */
    c->p.ignore = NULL;
    c->p.base = NULL;
    c->p.limits = NULL;
    if (st != GGUF_OK) {
        gguf_convert_close(c);
        return st;
    }
    *out = c;
    return GGUF_OK;
}

void gguf_convert_close(struct gguf_convert *c)
{
    if (!c)
        return;
    const struct gguf_allocator *a = c->p.allocator;
    gg_data_made_fini(&c->out.data);
    gguf_meta_destroy(c->out.meta);
    gg_folder_close(&c->folder);
    gg_mem_free(a, c->parts.item);
    gg_mem_free(a, c->parts.number);
    gg_mem_free(a, c->parts.left);
    gg_mem_free(a, c->out.made);
    gg_mem_free(a, c->out.tensor);
    gg_mem_free(a, c->out.first_item);
    gg_mem_arena_fini(&c->arena);
    gg_mem_free(a, c);
}

size_t gguf_convert_n_tensors(const struct gguf_convert *c)
{
    return c->out.n_tensors;
}

const struct gguf_convert_tensor *
gguf_convert_tensor(const struct gguf_convert *c, size_t i)
{
    return i < c->out.n_tensors ? &c->out.tensor[i] : NULL;
}

const char *gguf_convert_from(const struct gguf_convert *c, size_t i,
                              size_t no)
{
    return i < c->out.n_tensors && no < c->out.tensor[i].n_from
               ? c->folder.weights
                     ->tensor[c->parts.item[c->out.first_item[i] + no].from]
                     .name.data
               : NULL;
}

size_t gguf_convert_n_left(const struct gguf_convert *c)
{
    return c->parts.n_left;
}

const char *gguf_convert_left(const struct gguf_convert *c, size_t i)
{
    return i < c->parts.n_left
               ? c->folder.weights->tensor[c->parts.left[i]].name.data
               : NULL;
}

const struct gguf_convert_summary *
gguf_convert_summary(const struct gguf_convert *c)
{
    return &c->out.summary;
}

const struct gguf_meta *gguf_convert_meta(const struct gguf_convert *c)
{
    return c->out.meta;
}

/* ---- write ---- */

enum gguf_status gguf_convert_job(struct gguf_quant **out,
                                  struct gguf_convert *c,
                                  const struct gguf_quant_params *params,
                                  struct gguf_error *err)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_quant_params", err));
    GG_TRY(gg_convert_check(c, p.meta, err));
    p.allow_requantize = 1; /* MXFP4 is how a folder has its numbers */
    return gg_job_create(out, &c->out.description, &p, err);
}
