/* SPDX-License-Identifier: MIT */
/* convert.c - convert a folder to a file, in three steps
 *
 * 1. Read the folder, its texts and weights, and resolve contradictions.
 * 2. Describe the file: its metadata, and a list of tensors composed of the
 *    folder's.
 * 3. A job of lib/quant writes it.
 */
#include "config.h"
#include "convert/convert_int.h"
#include "convert/image/image.h"
#include "convert/projector/projector.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/params.h"
#include "base/str.h"
#include "kern/cpu_features.h"
#include "quant/job/job.h"
#include "file/limits.h"

#include <stdio.h>
#include <string.h>

/* ---- read ---- */

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

/* Find the row of the folder's class. The message of a failure also names the
 * nearest classes, unless the class is known or that of draft models. */
static enum gguf_status find_class(struct gguf_convert *c,
                                   const struct gguf_limits *limits,
                                   struct gguf_error *err)
{
    struct gg_str_esc e;
    const enum gguf_status st = gg_convert_find_arch(c, err);
    const struct gguf_str name = gg_convert_class(c);
    if (st == GGUF_E_ARCH && !c->p.as &&
        gg_projector_refuse_text(c, name, NULL) != GGUF_OK) {
        gguf_error_clear(err);
        return gg_projector_refuse_text(c, name, err);
    }
    if (st == GGUF_E_ARCH && !gg_convert_is_draft(name) &&
        !gg_convert_is_known_class(name))
        gg_convert_name_nearest(c, limits, name, err);
    if (st == GGUF_OK && c->is_other)
        c->folder.read = json_object();
    if (st == GGUF_OK && c->is_other)
        gg_folder_warn(&c->folder,
                       "class '%s' is not known: it is converted as %.*s of "
                       "architecture %s, which may compute something else "
                       "with the same tensors",
                       gg_str_esc(&e, name),
                       (int)strcspn(c->arch->classes, " "), c->arch->classes,
                       c->arch->arch);
    return st;
}

/* Read the model that config.json describes. */
static enum gguf_status read_described(struct gguf_convert *c,
                                       const struct gguf_limits *limits,
                                       struct gguf_error *err)
{
    GG_TRY(gg_folder_find_config(&c->folder, err));
    GG_TRY(gg_folder_fix_rope(&c->folder, err));
    GG_TRY(gg_convert_add_defaults(c, err));
    GG_TRY(find_class(c, limits, err));
    if (c->arch->fix_config)
        GG_TRY(c->arch->fix_config(c, err));
    if (!c->folder.weights)
        GG_TRY(gg_safetensors_open(&c->folder.weights, &c->folder.dir, "model",
                                   limits, c->codec, err));
    GG_TRY(gg_folder_note_unread(&c->folder, err));
    c->tower = gg_projector_find(c);
    GG_TRY(gg_convert_detect_reranker(c, err));
    GG_TRY(gg_convert_find_arch(c, err)); /* rerankers have another row */
    GG_TRY(gg_convert_find_prefix(c, err));
    GG_TRY(gg_convert_add_nextn_count(c, err));
    GG_TRY(gg_convert_read_modules(c, err));
    gg_convert_limit_layers(c);
    return gg_folder_join_quantized(&c->folder, err);
}

static enum gguf_status read_model(struct gguf_convert *c,
                                   const struct gguf_limits *limits,
                                   struct gguf_error *err)
{
    GG_TRY(gg_folder_read_texts(&c->folder, err));
    GG_TRY(gg_image_find_folder(c, err));
    if (c->image_stem)
        return gg_image_read(c, limits, err);
    GG_TRY(gg_convert_make_config(c, limits, err));
    return read_described(c, limits, err);
}

/* Read one file: an image or video model, or its text encoder, whose class
 * makes config.json. */
static enum gguf_status read_file(struct gguf_convert *c,
                                  const struct gguf_limits *limits,
                                  struct gguf_error *err)
{
    const enum gguf_status st = gg_image_read(c, limits, err);
    if (st != GGUF_E_ARCH || c->image)
        return st;
    if (gg_folder_read_texts(&c->folder, NULL) != GGUF_OK ||
        c->folder.text[GG_CONVERT_CONFIG].json.root ||
        gg_convert_make_config(c, limits, NULL) != GGUF_OK ||
        !c->folder.text[GG_CONVERT_CONFIG].json.root)
        return st;
    gguf_error_clear(err);
    return read_described(c, limits, err);
}

static enum gguf_status read_folder(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    struct gguf_limits limits;
    GG_TRY(gg_limits_resolve(&limits, c->p.limits, err));
    /* names in folders are longer than in GGUF files, and ignored tensors (of
     * video encoders) have more dimensions */
    limits.max_name_size = GG_MAX(limits.max_name_size, GG_CONVERT_NAME);
    limits.max_dims = GGUF_MAX_DIMS;
    if (c->image_file && c->p.projector)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "is a file: a projector is converted from the "
                            "folder of a model that sees, hears or speaks");
    if (c->image_file)
        return read_file(c, &limits, err);
    if (c->p.projector)
        return gg_projector_read(c, &limits, err);
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

/* ---- describe ---- */

static enum gguf_status describe_adapter(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    GG_TRY(gg_convert_assemble_tensors(c, err));
    GG_TRY(gg_convert_adapter_keys(c, err));
    GG_TRY(gg_convert_add_general(c, err));
    return gg_convert_set_kind(c, err);
}

/* Add the tokenizer. A single file may lack it. */
static enum gguf_status add_vocab(struct gguf_convert *c, int64_t rows,
                                  struct gguf_error *err)
{
    const enum gguf_status st =
        gg_convert_add_vocab(&c->folder, c->arch, rows, c->out.meta,
                             &c->out.summary.n_tokens_left, err);
    if (st != GGUF_E_NOTFOUND || !c->image_file)
        return st;
    gguf_error_clear(err);
    gg_folder_warn(&c->folder,
                   "no tokenizer is beside the file: only programs with a "
                   "tokenizer of their own can use the output");
    char key[80];
    snprintf(key, sizeof key, "%s.vocab_size", c->arch->arch);
    GG_TRY(gguf_meta_set_strz(c->out.meta, "tokenizer.ggml.model", "no_vocab",
                              err));
    return gguf_meta_set_u32(c->out.meta, key, (uint32_t)rows, err);
}

/* Keys may add tensors, and the model's name depends on their number. The order
 * of keys is that of llama.cpp's converter. */
static enum gguf_status describe_model(struct gguf_convert *c,
                                       struct gguf_error *err)
{
    GG_TRY(gguf_meta_set_strz(c->out.meta, "general.architecture",
                              c->arch->arch, err));
    GG_TRY(gg_convert_add_keys(c, err));
    GG_TRY(gg_convert_assemble_tensors(c, err));
    GG_TRY(gg_convert_add_vocab_size(c, err));
    GG_TRY(gg_convert_add_general(c, err));
    const struct gguf_convert_tensor *t =
        gg_convert_find_tensor(c, "token_embd.weight");
    GG_TRY(add_vocab(c, t ? t->ne[1] : 0, err));
    GG_TRY(gg_convert_add_last_keys(c, err));
    c->out.summary.n_projector = gg_projector_count_left(c);
    gg_folder_warn_unread_config(&c->folder);
    return gg_convert_set_kind(c, err);
}

static enum gguf_status describe_folder(struct gguf_convert *c,
                                        struct gguf_error *err)
{
    GG_TRY(gguf_meta_create(&c->out.meta, c->p.allocator, err));
    GG_TRY(c->image         ? gg_image_describe(c, err)
           : c->p.projector ? gg_projector_describe(c, err)
           : c->is_adapter  ? describe_adapter(c, err)
                            : describe_model(c, err));
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
        gg_image_is_file(path)
            ? gg_image_open(c, path, err)
            : gg_folder_open(&c->folder, path, &c->p, &c->arena, err);
    if (st == GGUF_OK)
        st = read_folder(c, err);
    if (st == GGUF_OK)
        st = describe_folder(c, err);
    json_decref(c->settings);
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

/* ---- write ---- */

enum gguf_status
gguf_convert_create_job(struct gguf_quant **out, struct gguf_convert *c,
                        const struct gguf_quant_params *params,
                        struct gguf_error *err)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_quant_params", err));
    GG_TRY(gg_convert_check_model(c, p.meta, err));
    p.allow_requantize = true; /* MXFP4 copies the folder's blocks */
    return gg_job_create(out, &c->out.description, &p, err);
}
