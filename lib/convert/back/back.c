/* SPDX-License-Identifier: MIT */
/* back.c - a GGUF file that becomes a Hugging Face folder */
#include "config.h"
#include "convert/back/back.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/outfile_int.h"
#include "base/params.h"
#include "base/str.h"
#include "kern/cpu_features.h"
#include "model/model_int.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 }; /* elements */

uint32_t gg_back_dtype(const struct gg_back *b, uint32_t dtype)
{
    if (dtype == GGUF_DTYPE_I32)
        return dtype;
    if (b->p.dtype != GGUF_DTYPE_NONE)
        return b->p.dtype;
    return dtype == GGUF_DTYPE_F32 || dtype == GGUF_DTYPE_BF16
               ? dtype
               : GGUF_DTYPE_F16;
}

/* ---- the plan ---- */

static void discard_folder(struct gg_back *b)
{
    if (b->c)
        gg_convert_close_texts(b->c);
    gguf_convert_close(b->c);
    b->c = NULL;
}

/* The object of a folder that has config.json, and no weights. */
static enum gguf_status imagine_dir(struct gg_back *b, struct gguf_error *err)
{
    static const char empty[] = "\2\0\0\0\0\0\0\0{}";
    struct gguf_convert *c = gg_mem_alloc_zero(b->p.allocator, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    b->c = c;
    c->p = (struct gguf_convert_params)GGUF_CONVERT_PARAMS_INIT;
    c->p.allocator = b->p.allocator;
    c->folder.path = "";
    gg_mem_arena_init(&c->arena, b->p.allocator);
    memcpy(c->codec, b->codec, sizeof c->codec);
    for (size_t i = 0; i < GG_CONVERT_N_TEXTS; i++)
        c->text[i].map.fd = -1;
    c->text[GG_CONVERT_CONFIG].name = "config.json";
    GG_TRY(gg_json_read(&c->text[GG_CONVERT_CONFIG].json, b->config,
                        b->n_config, 0, GG_JSON_PYTHON, err));
    c->config = c->text[GG_CONVERT_CONFIG].json.root;
    GG_TRY(gguf_meta_create(&c->meta, b->p.allocator, err));
    return gg_safetensors_memory(&c->from, empty, sizeof empty - 1, NULL,
                                 c->codec, b->p.allocator, err);
}

/* Is what the folder would become the file's tensors? */
static enum gguf_status check_made(struct gg_back *b, struct gguf_error *err)
{
    const struct gguf_convert *c = b->c;
    struct gg_str_esc e;
    size_t at;
    b->tensor_of = gg_mem_arena_alloc(&b->arena, (c->n_tensors + 1) *
                                                     sizeof *b->tensor_of);
    if (!b->tensor_of)
        return gg_error_set_nomem(err, c->n_tensors * sizeof *b->tensor_of);
    for (size_t k = 0; k < c->n_tensors; k++) {
        const struct gguf_convert_tensor *t = &c->tensor[k];
        const bool there = gg_source_find(&b->source, t->name, &at);
        const struct gguf_tensor_info *f =
            there ? gg_source_tensor(&b->source, at).info : NULL;
        if (!there || memcmp(f->ne, t->ne, sizeof t->ne) != 0)
            return gg_error_set(
                err, GGUF_E_TENSOR, GGUF_NO_OFFSET, "tensor '%s' %s",
                gg_str_esc(&e, gg_str_z(t->name)),
                there ? "has another shape than a folder's" : "is missing");
        b->tensor_of[k] = (uint32_t)at;
    }
    size_t n = 0;
    for (size_t i = 0; i < gg_source_n_tensors(&b->source); i++)
        n += !gg_data_gguf_is_scale(&b->numbers, i);
    if (c->n_tensors != n)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "the file has %zu tensors, of a folder %zu are "
                            "made",
                            n, c->n_tensors);
    return GGUF_OK;
}

static enum gguf_status try_arch(struct gg_back *b,
                                 const struct gg_convert_arch *arch,
                                 struct gguf_error *err)
{
    struct gg_str_esc e;
    GG_TRY(gg_back_config(b, arch, err));
    GG_TRY(imagine_dir(b, err));
    GG_TRY(gg_convert_find_arch(b->c, err));
    if (b->c->arch != arch)
        return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                            "no folder of class '%s' has these keys",
                            gg_str_esc(&e, gg_str_z(arch->classes)));
    GG_TRY(gg_back_names(b, err));
    GG_TRY(gg_convert_keys(b->c, err));
    GG_TRY(gg_convert_tensors(b->c, err));
    return check_made(b, err);
}

/* How many keys of the architecture the folder does not give back, or, if none
 * is told, gives in another order. */
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
        const struct gguf_kv *of = gguf_meta_find(b->c->meta, name);
        lost += !note && of && last && of < last;
        last = of ? of : last;
        if (of && gguf_kv_equal(kv, of))
            continue;
        lost++;
        if (note)
            note(b->p.note_user, name);
    }
    return lost;
}

/* Find the row of the architecture whose folders give back most of the file's
 * keys, the first of equals. If none fits, err is the first row's failure. */
static enum gguf_status find_class(struct gg_back *b, struct gguf_error *err)
{
    const struct gguf_kv *kv =
        gguf_file_kv_find(b->meta, "general.architecture");
    const struct gg_convert_arch *a, *best = NULL;
    struct gguf_str name = GG_STR("");
    struct gg_str_esc e;
    size_t least = SIZE_MAX;
    enum gguf_status first = GGUF_OK;
    struct gguf_error first_why;
    if (kv)
        (void)gguf_kv_get_str(kv, &name, NULL);
    for (size_t i = 0;
         least && first != GGUF_E_NOMEM && (a = gg_convert_arch_row(i)); i++) {
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
    return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                        "models of architecture '%s' are not made folders",
                        gg_str_esc(&e, name));
}

/* The type that the folder's tensor has: that of the first that it is of. */
static uint32_t type_of(const struct gg_back *b, uint32_t i)
{
    for (size_t k = 0; k < b->c->n_tensors; k++)
        for (size_t q = 0; q < b->c->made[k].n_parts; q++)
            if (b->c->made[k].part[q].from == i)
                return gg_back_dtype(
                    b,
                    gg_source_tensor(&b->source, b->tensor_of[k]).info->dtype);
    return GGUF_DTYPE_F32;
}

static enum gguf_status plan_files(struct gg_back *b, struct gguf_error *err)
{
    const struct gg_safetensors *s = b->c->from;
    size_t n = 0;
    b->to = gg_mem_arena_alloc(&b->arena, (s->n_tensors + 1) * sizeof *b->to);
    if (!b->to)
        return gg_error_set_nomem(err, s->n_tensors * sizeof *b->to);
    while (n < b->n_to) {
        const struct gg_safetensors_tensor *t = &s->tensor[n];
        struct gg_stwrite_tensor *to = &b->to[n];
        *to = (struct gg_stwrite_tensor){ .name = t->name,
                                          .dtype = type_of(b, (uint32_t)n),
                                          .n_dims = t->n_dims };
        for (int d = 0; d < 4; d++)
            to->ne[d] = t->ne[d];
        n++;
    }
    return gg_stwrite_cut(&b->out, b->to, n, b->p.max_file_size,
                          b->p.allocator, err);
}

/* ---- files ---- */

struct writer {
    struct gg_back *b;
    const char *dir;
    struct gg_outfile *file; /* of numbers, then texts */
    size_t n, room;
    uint64_t done;
    float *x;
    uint8_t *bytes;
    bool made_dir;
    bool later; /* the folder is made when all files are complete */
};

static enum gguf_status make_dir(struct writer *w, struct gguf_error *err)
{
    struct stat s;
    struct gg_str_esc e;
    w->later = false;
    w->made_dir = mkdir(w->dir, 0777) == 0;
    if (w->made_dir)
        return GGUF_OK;
    if (errno != EEXIST)
        return gg_error_set_errno(err, errno, "the folder '%s'",
                                  gg_str_esc(&e, gg_str_z(w->dir)));
    return stat(w->dir, &s) == 0 && S_ISDIR(s.st_mode)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                              "'%s' is there, and no folder",
                              gg_str_esc(&e, gg_str_z(w->dir)));
}

static struct gg_outfile *file_at(void *user, size_t i)
{
    struct writer *w = user;
    return &w->file[i];
}

static enum gguf_status open_file(struct writer *w, const char *name,
                                  struct gguf_error *err)
{
    char path[4096];
    const unsigned flags = (w->b->p.force ? GG_OUTFILE_FORCE : 0) |
                           (w->b->p.no_sync ? GG_OUTFILE_NO_SYNC : 0);
    const int n = snprintf(path, sizeof path, "%s/%s", w->dir, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the path of the folder is too long");
    struct gg_outfile *o = &w->file[w->n];
    enum gguf_status st =
        gg_outfile_open(o, w->b->p.allocator, path,
                        flags | (w->later ? GG_OUTFILE_NEW_FOLDER : 0), err);
    if (st == GGUF_E_UNSUPPORTED && w->later) {
        GG_TRY(make_dir(w, err));
        st = gg_outfile_open(o, w->b->p.allocator, path, flags, err);
    }
    w->n += st == GGUF_OK;
    return st;
}

/* n floats as whole numbers. */
static enum gguf_status store_index(struct writer *w,
                                    const struct gg_stwrite_tensor *t,
                                    uint64_t n, struct gguf_error *err)
{
    struct gg_str_esc e;
    for (uint64_t i = 0; i < n; i++) {
        if (fabsf(w->x[i]) > 0x1p24f) /* a float holds all up to here */
            return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                                "tensor '%s' has %.0f, which is no index",
                                gg_str_esc(&e, t->name), (double)w->x[i]);
        gg_bytes_store32le(w->bytes + 4 * i, (uint32_t)(int32_t)w->x[i]);
    }
    return GGUF_OK;
}

/* n floats as the tensor's type, to the file. */
static enum gguf_status put_floats(struct writer *w,
                                   const struct gg_stwrite_tensor *t,
                                   uint64_t n, struct gguf_error *err)
{
    struct gg_str_esc e;
    const float limit = gg_codec_limit(gg_dtype_index(t->dtype));
    for (uint64_t i = 0; i < n; i++)
        if (fabsf(w->x[i]) >= limit && isfinite(w->x[i]))
            return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                "tensor '%s' has %g, which %s does not hold",
                                gg_str_esc(&e, t->name), (double)w->x[i],
                                gguf_dtype_find(t->dtype)->name);
    if (t->dtype == GGUF_DTYPE_I32)
        GG_TRY(store_index(w, t, n, err));
    else
        w->b->codec[gg_dtype_index(t->dtype)].encode(w->x, w->bytes, 1,
                                                     (size_t)n, NULL);
    const size_t size = gguf_dtype_find(t->dtype)->block_size;
    return gg_outfile_write(&w->file[w->n - 1], w->bytes, n * size, err);
}

static enum gguf_status put_tensor(struct writer *w, uint32_t i,
                                   struct gguf_error *err)
{
    const struct gg_back *b = w->b;
    const struct gg_stwrite_tensor *t = &b->to[i];
    const uint64_t n = b->c->from->tensor[i].n_elements;
    struct gg_back_made m = { .part = NULL };
    const bool own = b->c->from->tensor[i].data != NULL;
    const struct gg_data *list = own ? &b->c->from->list : &m.list.list;
    const uint32_t no = own ? i : 0;
    struct gg_data_rows rows;
    enum gguf_status st = own ? GGUF_OK : gg_back_make(b, i, &m, err);
    if (st == GGUF_OK)
        st = gg_data_rows(list, no, &rows, err);
    for (uint64_t at = 0, k; at < n && st == GGUF_OK; at += k) {
        k = GG_MIN(n - at, CHUNK);
        if ((st = gg_data_hold(list, no, at, k, err)) != GGUF_OK)
            break;
        gg_data_read(&rows, at, k, w->x);
        gg_data_release(list, no, at, k);
        st = put_floats(w, t, k, err);
        w->done += k * (t->size / n);
        if (st == GGUF_OK && b->p.progress &&
            b->p.progress(b->p.progress_user, w->done, b->out.total))
            st = gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                              "cancelled");
    }
    gg_back_made_fini(b, &m);
    return st;
}

static enum gguf_status put_text(struct writer *w, const char *name,
                                 const void *text, size_t size,
                                 struct gguf_error *err)
{
    GG_TRY(open_file(w, name, err));
    return gg_outfile_write(&w->file[w->n - 1], text, size, err);
}

static enum gguf_status put_numbers(struct writer *w, size_t file_no,
                                    struct gguf_error *err)
{
    const struct gg_stwrite *out = &w->b->out;
    char name[64];
    uint8_t *header;
    size_t size;
    gg_stwrite_name(out, file_no, name);
    GG_TRY(open_file(w, name, err));
    /* of all files together: they are in one folder */
    GG_TRY(gg_outfile_reserve(&w->file[w->n - 1], out->total - w->done, false,
                              err));
    GG_TRY(gg_stwrite_header(out, file_no, &header, &size, err));
    enum gguf_status st =
        gg_outfile_write(&w->file[w->n - 1], header, size, err);
    gg_mem_free(w->b->p.allocator, header);
    for (size_t i = 0; i < out->n && st == GGUF_OK; i++)
        if (out->tensor[i].file_no == file_no)
            st = put_tensor(w, (uint32_t)i, err);
    return st == GGUF_OK ? gg_outfile_finish(&w->file[w->n - 1], err) : st;
}

static enum gguf_status put_index(struct writer *w, struct gguf_error *err)
{
    char *text;
    size_t size;
    GG_TRY(gg_stwrite_index(&w->b->out, &text, &size, err));
    const enum gguf_status st =
        put_text(w, "model.safetensors.index.json", text, size, err);
    gg_mem_free(w->b->p.allocator, text);
    return st;
}

/* Is it a file that those who load the folder would look at? */
static bool is_of_a_model(struct gguf_str name)
{
    static const char *const texts[] = {
        "tokenizer.json",    "vocab.txt",
        "added_tokens.json", "rwkv_vocab_v20230424.txt",
        "tokenizer.jsonl",   "generation_config.json",
        "qwen.tiktoken",     "additional_chat_templates",
        "README.md"
    };
    for (size_t i = 0; i < GG_LEN(texts); i++)
        if (gg_str_eqz(name, texts[i]))
            return true;
    return gg_str_ends(name, ".safetensors") || gg_str_ends(name, ".model") ||
           gg_str_starts(name, "chat_template.") ||
           gg_str_ends(name, ".safetensors.index.json");
}

/* Is there what would be taken for a part of the model, and is not written? */
static enum gguf_status check_dir(const struct writer *w,
                                  const struct gg_back_text *text,
                                  struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    struct gg_str_esc e;
    const struct dirent *x;
    DIR *d = opendir(w->dir);
    while (d && st == GGUF_OK && (x = readdir(d))) {
        char name[64];
        bool ours = w->b->out.n_files > 1 &&
                    !strcmp(x->d_name, "model.safetensors.index.json");
        for (size_t i = 0; i < w->b->out.n_files && !ours; i++) {
            gg_stwrite_name(&w->b->out, i, name);
            ours = !strcmp(x->d_name, name);
        }
        for (size_t i = 0; i < GG_BACK_TEXTS && !ours; i++)
            ours = text[i].name && !strcmp(x->d_name, text[i].name);
        if (!ours && is_of_a_model(gg_str_z(x->d_name)))
            st = gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                              "the folder has '%s' of another model",
                              gg_str_esc(&e, gg_str_z(x->d_name)));
    }
    if (d)
        closedir(d);
    return st;
}

/* All files but their names. Texts come before numbers, so that one that
 * exists is found at once. */
static enum gguf_status put_all(struct writer *w,
                                const struct gg_back_text *text,
                                struct gguf_error *err)
{
    const struct gg_back *b = w->b;
    for (size_t i = 0; i < GG_BACK_TEXTS; i++)
        if (text[i].name)
            GG_TRY(put_text(w, text[i].name, text[i].text, text[i].size, err));
    GG_TRY(put_text(w, "config.json", b->config, b->n_config, err));
    if (b->out.n_files > 1)
        GG_TRY(put_index(w, err));
    for (size_t i = 0; i < w->n; i++)
        GG_TRY(gg_outfile_finish(&w->file[i], err));
    for (size_t i = 0; i < b->out.n_files; i++)
        GG_TRY(put_numbers(w, i, err));
    return GGUF_OK;
}

static enum gguf_status write_files(struct writer *w,
                                    const struct gg_back_text *text,
                                    struct gguf_error *err)
{
    const struct gguf_allocator *a = w->b->p.allocator;
    size_t bad;
    w->room = w->b->out.n_files + GG_BACK_TEXTS + 2;
    w->file = gg_mem_alloc_zero(a, w->room, sizeof *w->file);
    w->x = gg_mem_alloc(a, CHUNK * sizeof *w->x);
    w->bytes = gg_mem_alloc(a, CHUNK * sizeof *w->x);
    enum gguf_status st =
        w->file && w->x && w->bytes ? GGUF_OK : gg_error_set_nomem(err, CHUNK);
    if (st == GGUF_OK)
        st = put_all(w, text, err);
    if (st == GGUF_OK && w->later)
        st = make_dir(w, err);
    if (st == GGUF_OK)
        st = gg_outfile_name_all(file_at, w, w->n, true, &bad, err);
    for (size_t i = 0; i < w->n && st == GGUF_OK; i++)
        if (i + 1 == w->n)
            st = gg_outfile_sync_folder(&w->file[i], err);
    for (size_t i = 0; i < w->n; i++)
        gg_outfile_abort(&w->file[i]);
    gg_mem_free(a, w->file);
    gg_mem_free(a, w->x);
    gg_mem_free(a, w->bytes);
    return st;
}

/* The file, and the folder on paper. */
static enum gguf_status plan_folder(struct gg_back *b, const char *path,
                                    struct gguf_error *err)
{
    struct gguf_file_params fp = GGUF_FILE_PARAMS_INIT;
    fp.allocator = b->p.allocator;
    fp.limits = b->p.limits;
    fp.opener = b->p.opener;
    GG_TRY(gguf_split_open(&b->in, path, &fp, err));
    b->source =
        (struct gg_source){ .set = b->in, .file = gguf_split_file(b->in, 0) };
    b->meta = b->source.file;
    GG_TRY(gg_model_check_type(b->meta, err));
    gg_data_gguf_init(&b->numbers, &b->source, b->codec, true);
    GG_TRY(gg_data_gguf_hold(&b->numbers, b->p.allocator, err));
    return find_class(b, err);
}

static enum gguf_status convert_file(struct gg_back *b, const char *path,
                                     const char *dir, struct gguf_error *err)
{
    struct gg_back_text text[GG_BACK_TEXTS] = { { NULL, NULL, 0 } };
    struct writer w = { .b = b, .dir = dir };
    GG_TRY(plan_folder(b, path, err));
    GG_TRY(
        gg_data_loose_init(&b->loose, &b->numbers.list, b->p.allocator, err));
    (void)lost_keys(b, b->p.note);
    GG_TRY(plan_files(b, err));
    enum gguf_status st = gg_back_vocab(b, text, err);
    if (st == GGUF_OK)
        st = gg_back_card(b, text + GG_BACK_CARD, err);
    if (st == GGUF_OK)
        st = gg_back_check_paths(b, dir, text, err);
    struct stat s;
    w.later = lstat(dir, &s) != 0 && errno == ENOENT;
    if (st == GGUF_OK && !w.later)
        st = make_dir(&w, err);
    if (st == GGUF_OK)
        st = check_dir(&w, text, err);
    if (st == GGUF_OK)
        st = write_files(&w, text, err);
    if (st != GGUF_OK && w.made_dir)
        (void)rmdir(dir);
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
    gg_data_loose_fini(&b->loose);
    gg_data_gguf_fini(&b->numbers, b->p.allocator);
    gguf_split_close(b->in);
    free(b->config);
    gg_mem_arena_fini(&b->arena);
}

enum gguf_status gguf_folder_write(const char *path, const char *dir,
                                   const struct gguf_folder_params *params,
                                   struct gguf_error *err)
{
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    GG_TRY(gg_params_need(dir, "dir", err));
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_folder_params", err));
    if (p.dtype != GGUF_DTYPE_NONE && p.dtype != GGUF_DTYPE_F32 &&
        p.dtype != GGUF_DTYPE_F16 && p.dtype != GGUF_DTYPE_BF16)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_folder_params: type %s, but a folder is "
                            "written in F32, F16 or BF16",
                            gguf_dtype_find(p.dtype)
                                ? gguf_dtype_find(p.dtype)->name
                                : "unknown");
    struct gg_back b;
    init_back(&b, &p);
    const enum gguf_status st = convert_file(&b, path, dir, err);
    fini_back(&b);
    return st;
}

enum gguf_status gg_back_config_of(const char *path,
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
