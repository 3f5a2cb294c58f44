/* SPDX-License-Identifier: MIT */
/* convert.c - a folder opened, asked, and made a job of */
#include "config.h"
#include "convert/expr.h"

#include "base/compiler.h"
#include "base/params.h"
#include "base/str.h"
#include "kern/cpu_features.h"
#include "quant/job/job.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* How many layers names may have. */
static void count_layers(struct gguf_convert *c)
{
    c->n_layers = INT64_MAX;
    if (c->arch && c->arch->layers) {
        const double n = gg_convert_eval(c, c->arch->layers, -1);
        c->n_layers = n >= 0 && n < 1e6 ? (int64_t)n : INT64_MAX;
    }
}

static const json_t *class_of(const json_t *config)
{
    return json_array_get(json_object_get(config, "architectures"), 0);
}

static void find_row(struct gguf_convert *c, struct gguf_str name)
{
    for (size_t i = 0; !c->arch && gg_convert_arch_row(i); i++) {
        const struct gg_convert_arch *a = gg_convert_arch_row(i);
        if (gg_convert_arch_has(a, name) &&
            (!a->when || gg_convert_eval(c, a->when, -1) > 0))
            c->arch = a;
    }
}

enum gguf_status gg_convert_find_arch(struct gguf_convert *c,
                                      struct gguf_error *err)
{
    const struct gg_convert_text *t = &c->text[GG_CONVERT_CONFIG];
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
    if (gg_json_str(class_of(c->config), &inner))
        find_row(c, inner);
    count_layers(c);
    if (!c->arch)
        return gg_error_set(err, GGUF_E_ARCH, gg_json_place(&t->json, v),
                            "config.json: models of class '%s' are not "
                            "converted",
                            gg_str_esc(&e, name));
    return GGUF_OK;
}

static enum gguf_status build_adapter(struct gguf_convert *c,
                                      const struct gguf_limits *limits,
                                      struct gguf_error *err)
{
    GG_TRY(gg_convert_adapter_base(c, err));
    GG_TRY(gg_convert_find_arch(c, err));
    GG_TRY(gg_safetensors_open(&c->from, &c->folder, "adapter_model", limits,
                               c->codec, err));
    GG_TRY(gg_convert_note_unread(c, err));
    GG_TRY(gg_convert_find_prefix(c, err));
    GG_TRY(gguf_meta_create(&c->meta, c->p.allocator, err));
    GG_TRY(gg_convert_tensors(c, err));
    GG_TRY(gg_convert_adapter_keys(c, err));
    GG_TRY(gg_convert_general(c, err));
    return gg_convert_tell_kind(c, err);
}

/* What is said of the first file would say nothing of the folder. */
static enum gguf_status check_folder(const struct gg_dir *folder,
                                     struct gguf_error *err)
{
    struct stat s;
    if (gg_dir_is_far(folder))
        return GGUF_OK;
    if (stat(folder->path, &s) != 0)
        return errno == ENOENT
                   ? gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                                  "there is no such folder")
                   : GGUF_OK;
    if (S_ISDIR(s.st_mode))
        return GGUF_OK;
    struct gg_str_esc e;
    const char *slash = strrchr(folder->path, '/');
    const struct gguf_str own = { slash ? folder->path : ".",
                                  slash ? (size_t)(slash - folder->path) : 1 };
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "is a file: a folder is wanted, as '%s', which it is "
                        "in",
                        gg_str_esc(&e, own));
}

static enum gguf_status build_model(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    static const struct gguf_limits defaults = GGUF_LIMITS_INIT;
    struct gguf_limits limits = c->p.limits ? *c->p.limits : defaults;
    /* names of folders are longer than those that they become, and what is
     * left out has more dimensions: pictures through time */
    limits.max_name_size = GG_MAX(limits.max_name_size, GG_CONVERT_NAME);
    limits.max_dims = GGUF_MAX_DIMS;
    GG_TRY(check_folder(&c->folder, err));
    GG_TRY(gg_convert_adapter_open(c, &c->is_adapter, err));
    if (c->is_adapter)
        return build_adapter(c, &limits, err);
    if (c->p.base)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "has no adapter (adapter_config.json): --base is "
                            "for the folder of one; without it the folder's "
                            "model is converted");
    GG_TRY(gg_convert_read_texts(c, err));
    GG_TRY(gg_convert_settle_rope(c, err));
    GG_TRY(gg_convert_unsaid_defaults(c, err));
    GG_TRY(gg_convert_find_arch(c, err));
    GG_TRY(gg_convert_unsaid_epsilon(c, err));
    GG_TRY(gg_safetensors_open(&c->from, &c->folder, "model", &limits,
                               c->codec, err));
    GG_TRY(gg_convert_note_unread(c, err));
    GG_TRY(gg_convert_unsaid_reranker(c, err));
    GG_TRY(gg_convert_find_arch(c, err)); /* a reranker has another row */
    GG_TRY(gg_convert_find_prefix(c, err));
    GG_TRY(gg_convert_unsaid_drafts(c, err));
    GG_TRY(gg_convert_modules(c, err));
    count_layers(c);
    GG_TRY(gg_convert_quantized(c, err));
    GG_TRY(gguf_meta_create(&c->meta, c->p.allocator, err));
    /* keys may add tensors, and what a model is called counts these: the order
     * of writing is that of llama.cpp's converter */
    GG_TRY(gguf_meta_set_strz(c->meta, "general.architecture", c->arch->arch,
                              err));
    GG_TRY(gg_convert_keys(c, err));
    GG_TRY(gg_convert_tensors(c, err));
    GG_TRY(gg_convert_unsaid_rows(c, err));
    GG_TRY(gg_convert_general(c, err));
    GG_TRY(gg_convert_vocab(c, err));
    GG_TRY(gg_convert_last_keys(c, err));
    return gg_convert_tell_kind(c, err);
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
    c->card.fd = -1;
    gg_mem_arena_init(&c->arena, p.allocator);
    gg_codec_kern_init(c->codec, gg_kern_cpu_detect());
    enum gguf_status st = gguf_paths_create(&c->opened, p.allocator, err);
    c->folder =
        (struct gg_dir){ gg_mem_arena_strndup(&c->arena, path, strlen(path)),
                         p.opener, p.allocator, c->opened };
    if (st == GGUF_OK)
        st = c->folder.path ? build_model(c, err)
                            : gg_error_set_nomem(err, strlen(path));
    gg_convert_close_texts(c);
    c->description = (struct gg_description){ .origin = c,
                                              .meta = c->meta,
                                              .list = &c->data.list,
                                              .opened = c->opened,
                                              .n_files = 1,
                                              .is_new = true };
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
    gg_data_made_fini(&c->data);
    gguf_meta_destroy(c->meta);
    gg_safetensors_close(c->from);
    gguf_paths_destroy(c->opened);
    gg_mem_free(a, c->item);
    gg_mem_free(a, c->number);
    gg_mem_free(a, c->left);
    gg_mem_free(a, c->made);
    gg_mem_free(a, c->tensor);
    gg_mem_free(a, c->first_item);
    gg_mem_arena_fini(&c->arena);
    gg_mem_free(a, c);
}

size_t gguf_convert_n_tensors(const struct gguf_convert *c)
{
    return c->n_tensors;
}

const struct gguf_convert_tensor *
gguf_convert_tensor(const struct gguf_convert *c, size_t i)
{
    return i < c->n_tensors ? &c->tensor[i] : NULL;
}

const char *gguf_convert_from(const struct gguf_convert *c, size_t i,
                              size_t no)
{
    return i < c->n_tensors && no < c->tensor[i].n_from
               ? c->from->tensor[c->item[c->first_item[i] + no].from].name.data
               : NULL;
}

size_t gguf_convert_n_left(const struct gguf_convert *c)
{
    return c->n_left;
}

const char *gguf_convert_left(const struct gguf_convert *c, size_t i)
{
    return i < c->n_left ? c->from->tensor[c->left[i]].name.data : NULL;
}

const struct gguf_convert_summary *
gguf_convert_summary(const struct gguf_convert *c)
{
    return &c->summary;
}

const struct gguf_meta *gguf_convert_meta(const struct gguf_convert *c)
{
    return c->meta;
}

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
    return gg_job_create(out, &c->description, &p, err);
}
