/* SPDX-License-Identifier: MIT */
/* back_files.c - write the files of a folder from its description
 *
 * Files are written under temporary names and renamed together, so that the
 * folder has all of them or none. If the system has files without names, a new
 * folder is created when its files are complete.
 */
#include "config.h"
#include "convert/back/back.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/os/os.h"
#include "base/outfile_int.h"
#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Elements that are converted at a time, and after which the pages that they
 * came from are released. */
enum { CHUNK = 1 << 16, RELEASED = 1 << 22 };

struct writer {
    struct gg_back *b;
    const char *dir;
    struct gg_outfile *file; /* texts, then files of numbers */
    size_t n, room;
    uint64_t done;
    float *x;
    uint8_t *bytes;
    bool made_dir;
    bool later; /* the folder is made when all files are complete */
};

static enum gguf_status make_dir(struct writer *w, struct gguf_error *err)
{
    struct gg_os_stat s;
    struct gg_str_esc e;
    w->later = false;
    w->made_dir = gg_os_make_folder(w->dir) == 0;
    if (w->made_dir)
        return GGUF_OK;
    if (errno != EEXIST)
        return gg_error_set_errno(err, errno, "the folder '%s'",
                                  gg_str_esc(&e, gg_str_z(w->dir)));
    return gg_os_stat(w->dir, &s) == 0 && s.kind == GG_OS_FOLDER
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                              "'%s' exists and is not a folder",
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
static enum gguf_status
store_index(struct writer *w, const struct gg_safetensors_writer_tensor *t,
            uint64_t n, struct gguf_error *err)
{
    struct gg_str_esc e;
    for (uint64_t i = 0; i < n; i++) {
        if (fabsf(w->x[i]) > 0x1p24f) /* a float holds all up to here */
            return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                                "tensor '%s': value %.0f, expected an index",
                                gg_str_esc(&e, t->name), (double)w->x[i]);
        gg_bytes_store32le(w->bytes + 4 * i, (uint32_t)(int32_t)w->x[i]);
    }
    return GGUF_OK;
}

/* n floats as the tensor's type, to the file. */
static enum gguf_status
put_floats(struct writer *w, const struct gg_safetensors_writer_tensor *t,
           uint64_t n, struct gguf_error *err)
{
    struct gg_str_esc e;
    const float limit = gg_codec_max_magnitude(gg_dtype_index(t->dtype));
    for (uint64_t i = 0; i < n; i++)
        if (fabsf(w->x[i]) >= limit && isfinite(w->x[i]))
            return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                                "tensor '%s': value %g, out of range of %s",
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
    const struct gg_safetensors_writer_tensor *t = &b->to[i];
    const uint64_t n = b->c->folder.weights->tensor[i].n_elements;
    struct gg_back_made m = { .part = NULL };
    const bool own = b->c->folder.weights->tensor[i].data != NULL;
    const struct gg_data *list =
        own ? &b->c->folder.weights->list : &m.list.list;
    const uint32_t no = own ? i : 0;
    struct gg_data_rows rows;
    if (own && t->dtype == GGUF_DTYPE_I64) {
        w->done += t->size;
        return gg_outfile_write(&w->file[w->n - 1],
                                b->c->folder.weights->tensor[i].data,
                                (size_t)t->size, err);
    }
    uint64_t kept = 0; /* first element whose pages may be resident */
    enum gguf_status st = own ? GGUF_OK : gg_back_make_tensor(b, i, &m, err);
    if (st == GGUF_OK)
        st = gg_data_rows(list, no, &rows, err);
    for (uint64_t at = 0, k; at < n && st == GGUF_OK; at += k) {
        k = GG_MIN(n - at, CHUNK);
        if ((st = gg_data_hold(list, no, at, k, err)) != GGUF_OK)
            break;
        gg_data_read(&rows, at, k, w->x);
        gg_data_release(list, no, at, k);
        if (at + k - kept >= RELEASED || at + k == n) {
            gg_data_advise(list, no, kept, at + k - kept, GG_ADVISE_DONTNEED);
            kept = at + k;
        }
        st = put_floats(w, t, k, err);
        w->done += k * (t->size / n);
        if (st == GGUF_OK && b->p.progress.fn &&
            b->p.progress.fn(b->p.progress.user, w->done, b->out.total))
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
    const struct gg_safetensors_writer *out = &w->b->out;
    char name[64];
    uint8_t *header;
    size_t size;
    gg_safetensors_writer_file_name(out, file_no, name);
    GG_TRY(open_file(w, name, err));
    /* room for all files together: they are in one folder */
    GG_TRY(gg_outfile_reserve(&w->file[w->n - 1], out->total - w->done, false,
                              err));
    GG_TRY(gg_safetensors_writer_header(out, file_no, &header, &size, err));
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
    GG_TRY(gg_safetensors_writer_index(&w->b->out, &text, &size, err));
    const enum gguf_status st =
        put_text(w, "model.safetensors.index.json", text, size, err);
    gg_mem_free(w->b->p.allocator, text);
    return st;
}

/* Would programs that load the folder read a file of this name? */
static bool is_model_file(struct gguf_str name)
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

/* Find a file that would be read as part of the model and is not written. */
static enum gguf_status check_dir(const struct writer *w,
                                  const struct gg_back_text *text,
                                  struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    struct gg_str_esc e;
    const char *x;
    struct gg_os_folder *d = gg_os_folder_open(w->dir);
    while (d && st == GGUF_OK && (x = gg_os_folder_next(d)) != NULL) {
        char name[64];
        bool ours = w->b->out.n_files > 1 &&
                    !strcmp(x, "model.safetensors.index.json");
        for (size_t i = 0; i < w->b->out.n_files && !ours; i++) {
            gg_safetensors_writer_file_name(&w->b->out, i, name);
            ours = !strcmp(x, name);
        }
        for (size_t i = 0; i < GG_BACK_TEXTS && !ours; i++)
            ours = text[i].name && !strcmp(x, text[i].name);
        if (!ours && is_model_file(gg_str_z(x)))
            st = gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                              "the folder has '%s', a file of another model; "
                              "name an empty folder",
                              gg_str_esc(&e, gg_str_z(x)));
    }
    if (d)
        gg_os_folder_close(d);
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
        st = gg_outfile_publish_all(file_at, w, w->n, true, &bad, err);
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

enum gguf_status gg_back_write_folder(struct gg_back *b, const char *dir,
                                      const struct gg_back_text *text,
                                      struct gguf_error *err)
{
    struct writer w = { .b = b, .dir = dir };
    struct gg_os_stat s;
    w.later = gg_os_stat_link(dir, &s) != 0 && errno == ENOENT;
    enum gguf_status st = w.later ? GGUF_OK : make_dir(&w, err);
    if (st == GGUF_OK)
        st = check_dir(&w, text, err);
    if (st == GGUF_OK)
        st = write_files(&w, text, err);
    if (st != GGUF_OK && w.made_dir)
        (void)gg_os_remove_folder(dir);
    return st;
}
