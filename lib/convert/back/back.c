/* SPDX-License-Identifier: MIT */
/* back.c - a GGUF file that becomes a Hugging Face folder */
#include "config.h"
#include "convert/back/back_shape.h"
#include "convert/projectors.h"

#include "base/compiler.h"
#include "base/params.h"
#include "base/str.h"
#include "kern/cpu_features.h"
#include "model/model_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- the plan ---- */

static void discard_folder(struct gg_back *b)
{
    if (b->c)
        gg_folder_close_texts(&b->c->folder);
    if (b->c)
        json_decref(b->c->settings);
    gguf_convert_close(b->c);
    b->c = NULL;
    gg_mem_free(b->p.allocator, b->use);
    gg_mem_free(b->p.allocator, b->first_use);
    b->use = NULL;
    b->first_use = NULL;
    b->n_used = 0;
}

/* Begin to describe a folder: it has config.json and no tensors yet. */
static enum gguf_status begin_folder(struct gg_back *b, struct gguf_error *err)
{
    struct gguf_convert *c = gg_mem_alloc_zero(b->p.allocator, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    b->c = c;
    c->p = (struct gguf_convert_params)GGUF_CONVERT_PARAMS_INIT;
    c->p.allocator = b->p.allocator;
    c->folder.dir.path = "";
    c->folder.p = &c->p;
    c->folder.arena = &c->arena;
    gg_mem_arena_init(&c->arena, b->p.allocator);
    memcpy(c->codec, b->codec, sizeof c->codec);
    for (size_t i = 0; i < GG_CONVERT_N_TEXTS; i++)
        c->folder.text[i].map.fd = -1;
    c->folder.text[GG_CONVERT_CONFIG].name = "config.json";
    GG_TRY(gg_json_read(&c->folder.text[GG_CONVERT_CONFIG].json, b->config,
                        b->n_config, 0, GG_JSON_PYTHON, err));
    c->folder.config = c->folder.text[GG_CONVERT_CONFIG].json.root;
    GG_TRY(gguf_meta_create(&c->out.meta, b->p.allocator, err));
    return gg_safetensors_create(&c->folder.weights, c->codec, b->p.allocator,
                                 err);
}

/* Does the folder become the file's tensors? */
static enum gguf_status check_made(struct gg_back *b, struct gguf_error *err)
{
    const struct gguf_convert *c = b->c;
    struct gg_str_esc e;
    size_t at;
    for (size_t k = 0; k < c->out.n_tensors; k++) {
        const struct gguf_convert_tensor *t = &c->out.tensor[k];
        const bool there = gg_source_find(&b->source, t->name, &at);
        const struct gguf_tensor_info *f =
            there ? gg_source_tensor(&b->source, at).info : NULL;
        if (!there || memcmp(f->ne, t->ne, sizeof t->ne) != 0)
            return gg_error_set(
                err, GGUF_E_TENSOR, GGUF_NO_OFFSET, "tensor '%s' %s",
                gg_str_esc(&e, gg_str_z(t->name)),
                there ? "has another shape than a folder's" : "is missing");
    }
    size_t n = 0;
    for (size_t i = 0; i < gg_source_n_tensors(&b->source); i++)
        n += !gg_data_gguf_is_scale(&b->numbers, i);
    if (c->out.n_tensors != n)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "the file has %zu tensors, a folder of this "
                            "class gives %zu",
                            n, c->out.n_tensors);
    return GGUF_OK;
}

/* Make the folder of a projector of the row p. */
static enum gguf_status try_projector(struct gg_back *b,
                                      const struct gg_projector *p,
                                      struct gguf_error *err)
{
    struct gg_str_esc e;
    if (p->no_back)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "class '%s' has no way back: %s",
                            gg_str_esc(&e, gg_str_z(p->arch.classes)),
                            p->no_back);
    GG_TRY(gg_back_make_projector_config(b, p, err));
    GG_TRY(begin_folder(b, err));
    GG_TRY(gg_back_describe_projector(b, p, err));
    return check_made(b, err);
}

static enum gguf_status try_arch(struct gg_back *b,
                                 const struct gg_convert_arch *arch,
                                 struct gguf_error *err)
{
    struct gg_str_esc e;
    if (arch->parts)
        return try_projector(b, gg_projector_of(arch), err);
    GG_TRY(gg_back_make_config(b, arch, err));
    GG_TRY(begin_folder(b, err));
    GG_TRY(gg_convert_find_arch(b->c, err));
    if (b->c->arch != arch)
        return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                            "class '%s': no folder of it gives these keys",
                            gg_str_esc(&e, gg_str_z(arch->classes)));
    GG_TRY(gg_back_add_tensors(b, err));
    GG_TRY(gg_convert_add_keys(b->c, err));
    GG_TRY(gg_convert_assemble_tensors(b->c, err));
    return check_made(b, err);
}

/* Count the keys of the architecture that the folder would lose, and note each.
 * Without note, also count keys whose order changes. */
static size_t lost_keys(const struct gg_back *b, gguf_folder_note_fn *note)
{
    char name[256];
    const size_t n = strlen(b->c->arch->arch);
    size_t lost = 0;
    const struct gguf_kv *last = NULL; /* they lie one after another */
    for (size_t i = 0; i < gguf_file_n_kv(b->meta); i++) {
        const struct gguf_kv *kv = gguf_file_kv(b->meta, i);
        if (kv->key.size <= n || kv->key.size >= sizeof name ||
            memcmp(kv->key.data, b->c->arch->arch, n) != 0 ||
            kv->key.data[n] != '.')
            continue;
        memcpy(name, kv->key.data, kv->key.size);
        name[kv->key.size] = 0;
        const struct gguf_kv *of = gguf_meta_find(b->c->out.meta, name);
        lost += !note && of && last && of < last;
        last = of ? of : last;
        if (of && gguf_kv_equal(kv, of))
            continue;
        lost++;
        if (note)
            note(b->p.note.user, name);
    }
    return lost;
}

/* Row n that may make files of an architecture; NULL after the last. */
static const struct gg_convert_arch *row_at(const struct gg_back *b,
                                            struct gguf_str arch, size_t n)
{
    const struct gg_projector *p;
    if (!gg_str_eqz(arch, "clip"))
        return gg_convert_arch_row(n);
    for (size_t i = 0; (p = gg_projector_row(i)); i++)
        if (gg_back_fits_projector(b, p) && !n--)
            return &p->arch;
    return NULL;
}

/* Find the row of the architecture whose folders keep most of the file's keys;
 * the first of several. If none fits, err is the first row's failure. */
static enum gguf_status find_class(struct gg_back *b, struct gguf_error *err)
{
    const struct gguf_kv *kv =
        gguf_file_kv_find(b->meta, "general.architecture");
    const struct gg_convert_arch *a, *best = NULL;
    struct gguf_str name = GG_STR(""), type = GG_STR("");
    struct gg_str_esc e;
    size_t least = SIZE_MAX;
    enum gguf_status first = GGUF_OK;
    struct gguf_error first_why;
    if (kv && gguf_kv_get_str(kv, &name, NULL) != GGUF_OK)
        name.size = 0;
    for (size_t i = 0;
         least && first != GGUF_E_NOMEM && (a = row_at(b, name, i)); i++) {
        struct gguf_error why;
        if (!gg_str_eqz(name, a->arch))
            continue;
        const enum gguf_status st = try_arch(b, a, &why);
        const size_t lost = st == GGUF_OK ? lost_keys(b, NULL) : SIZE_MAX;
        if (lost < least) {
            least = lost;
            best = a;
        }
        if (least)
            discard_folder(b);
        if (st == GGUF_E_NOMEM || (first == GGUF_OK && st != GGUF_OK)) {
            first = st;
            first_why = why;
        }
    }
    if (best && first != GGUF_E_NOMEM)
        return least ? try_arch(b, best, err) : GGUF_OK;
    if (first != GGUF_OK && err)
        *err = first_why;
    if (first != GGUF_OK)
        return first;
    kv = gguf_file_kv_find(b->meta, "clip.projector_type");
    if (gg_str_eqz(name, "clip") && kv && !gguf_kv_get_str(kv, &type, NULL))
        return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                            "projector of type '%s': conversion to a folder "
                            "is not supported",
                            gg_str_esc(&e, type));
    return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                        "architecture '%s': conversion to a folder is "
                        "not supported",
                        gg_str_esc(&e, name));
}

/* The type of the folder's tensor: that of the first of the file with parts of
 * it. */
static uint32_t type_of(const struct gg_back *b, size_t i)
{
    const struct gg_safetensors_tensor *t = &b->c->folder.weights->tensor[i];
    if (t->type->dtype == GGUF_DTYPE_I64)
        return GGUF_DTYPE_I64;
    return i < b->n_used
               ? gg_back_dtype(b,
                               gg_source_tensor(&b->source,
                                                b->use[b->first_use[i]].tensor)
                                   .info->dtype)
               : GGUF_DTYPE_F32;
}

static enum gguf_status plan_files(struct gg_back *b, struct gguf_error *err)
{
    const struct gg_safetensors *s = b->c->folder.weights;
    size_t n = 0;
    b->to = gg_mem_arena_alloc(&b->arena, (s->n_tensors + 1) * sizeof *b->to);
    if (!b->to)
        return gg_error_set_nomem(err, s->n_tensors * sizeof *b->to);
    while (n < b->n_to) {
        const struct gg_safetensors_tensor *t = &s->tensor[n];
        struct gg_safetensors_writer_tensor *to = &b->to[n];
        *to = (struct gg_safetensors_writer_tensor){ .name = t->name,
                                                     .dtype = type_of(b, n),
                                                     .n_dims = t->n_dims };
        for (size_t d = 0; d < GG_LEN(to->ne); d++)
            to->ne[d] = t->ne[d];
        n++;
    }
    return gg_safetensors_writer_divide(&b->out, b->to, n, b->p.max_file_size,
                                        b->p.allocator, err);
}

static bool is_projector(const struct gguf_file *f)
{
    const struct gguf_kv *kv = gguf_file_kv_find(f, "general.architecture");
    struct gguf_str s;
    return kv && gguf_kv_get_str(kv, &s, NULL) == GGUF_OK &&
           gg_str_eqz(s, "clip");
}

/* The file, and the folder on paper. */
static enum gguf_status plan_folder(struct gg_back *b, const char *path,
                                    struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    fp.allocator = b->p.allocator;
    fp.limits = b->p.limits;
    fp.opener = b->p.opener;
    GG_TRY(gguf_file_open(&b->in, path, &fp, err));
    b->source = (struct gg_source){ .file = b->in };
    b->meta = b->source.file;
    if (!is_projector(b->meta))
        GG_TRY(gg_model_check_type(b->meta, err));
    gg_data_gguf_init(&b->numbers, &b->source, b->codec, true);
    GG_TRY(gg_data_gguf_allow_readers(&b->numbers, b->p.allocator, err));
    return find_class(b, err);
}

static enum gguf_status convert_file(struct gg_back *b, const char *path,
                                     const char *dir, struct gguf_error *err)
{
    struct gg_back_text text[GG_BACK_TEXTS] = { { NULL, NULL, 0 } };
    GG_TRY(plan_folder(b, path, err));
    GG_TRY(gg_data_elements_init(&b->loose, &b->numbers.list, b->p.allocator,
                                 err));
    (void)lost_keys(b, b->p.note.fn);
    GG_TRY(plan_files(b, err));
    enum gguf_status st = b->c->projector ? gg_back_add_image(b, text, err)
                                          : gg_back_make_vocab(b, text, err);
    if (st == GGUF_OK)
        st = gg_back_make_card(b, text + GG_BACK_CARD, err);
    if (st == GGUF_OK)
        st = gg_back_check_paths(b, dir, text, err);
    if (st == GGUF_OK)
        st = gg_back_write_folder(b, dir, text, err);
    for (size_t i = 0; i < GG_BACK_TEXTS; i++)
        free(text[i].text);
    return st;
}

static void init_back(struct gg_back *b, const struct gguf_folder_params *p)
{
    memset(b, 0, sizeof *b);
    b->p = *p;
    gg_mem_arena_init(&b->arena, p->allocator);
    gg_codec_kern_init(b->codec, gg_kern_cpu_detect());
}

static void fini_back(struct gg_back *b)
{
    discard_folder(b);
    gg_data_elements_fini(&b->loose);
    gg_data_gguf_fini(&b->numbers, b->p.allocator);
    gguf_file_close(b->in);
    free(b->config);
    free(b->image);
    gg_mem_arena_fini(&b->arena);
}

enum gguf_status gguf_folder_write(const char *path, const char *dir,
                                   const struct gguf_folder_params *params,
                                   struct gguf_error *err)
{
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    GG_TRY(gg_params_need(dir, "dir", err));
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_folder_params", err));
    if (p.dtype && p.dtype->id != GGUF_DTYPE_F32 &&
        p.dtype->id != GGUF_DTYPE_F16 && p.dtype->id != GGUF_DTYPE_BF16)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_folder_params: type %s, expected F32, "
                            "F16 or BF16",
                            p.dtype->name);
    struct gg_back b;
    init_back(&b, &p);
    const enum gguf_status st = convert_file(&b, path, dir, err);
    fini_back(&b);
    return st;
}

enum gguf_status gg_back_read_config(const char *path,
                                     const struct gguf_limits *limits,
                                     struct gg_mem_arena *arena,
                                     struct gguf_paths *opened, char **out,
                                     size_t *size, struct gguf_error *err)
{
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    struct gg_back b;
    p.allocator = arena->allocator;
    p.limits = limits;
    init_back(&b, &p);
    enum gguf_status st = plan_folder(&b, path, err);
    if (st == GGUF_OK && b.c->projector)
        st = gg_model_check_type(b.meta, err);
    if (st == GGUF_OK)
        st = gg_back_note_input(&b, opened, err);
    *out = st == GGUF_OK ? gg_mem_arena_strndup(arena, b.config, b.n_config)
                         : NULL;
    *size = b.n_config;
    if (st == GGUF_OK && !*out)
        st = gg_error_set_nomem(err, b.n_config);
    fini_back(&b);
    return st;
}
