/* SPDX-License-Identifier: MIT */
/* safetensors_files.c - find the files of a folder, by its index */
#include "config.h"
#include "data/safetensors.h"

#include "base/compiler.h"
#include "base/json.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum gguf_status gg_safetensors_name_file(struct gguf_str name,
                                          enum gguf_status st,
                                          struct gguf_error *err)
{
    char message[sizeof err->message];
    struct gg_str_esc e;
    if (st == GGUF_OK || !err)
        return st;
    memcpy(message, err->message, sizeof message);
    snprintf(err->message, sizeof err->message, "%s: %.340s",
             gg_str_esc(&e, name), message);
    return st;
}

/* Join the folder, '/' and a name, in the arena. */
static char *path_of(struct gg_safetensors *s, const char *folder,
                     struct gguf_str name)
{
    const size_t n = strlen(folder);
    char *path = gg_mem_arena_alloc(&s->arena, n + name.size + 2);
    if (!path)
        return NULL;
    memcpy(path, folder, n);
    path[n] = '/';
    memcpy(path + n + 1, name.data, name.size);
    path[n + 1 + name.size] = 0;
    return path;
}

struct gg_safetensors_file *
gg_safetensors_reserve_file(struct gg_safetensors *s, struct gguf_error *err)
{
    if (s->n_files == s->room_files) {
        void *grown =
            gg_mem_grow(s->allocator, s->file, &s->room_files,
                        sizeof(struct gg_safetensors_file *), 4, err);
        if (!grown)
            return NULL;
        s->file = grown;
    }
    struct gg_safetensors_file *f =
        gg_mem_alloc_zero(s->allocator, 1, sizeof *f);
    if (!f) {
        gg_error_set_nomem(err, sizeof *f);
        return NULL;
    }
    f->map.fd = -1;
    f->prefix = GG_STR("");
    s->file[s->n_files++] = f;
    return f;
}

/* Add a file and the tensors of its header. *there is false if it does not
 * exist. */
static enum gguf_status add_file(struct gg_safetensors *s,
                                 const struct gg_dir *folder,
                                 struct gguf_str name, struct gguf_str prefix,
                                 bool *there, struct gguf_error *err)
{
    const size_t no = s->n_files;
    struct gg_safetensors_file *f = gg_safetensors_reserve_file(s, err);
    if (!f)
        return GGUF_E_NOMEM;
    f->path = path_of(s, folder->path, name);
    f->name.data = gg_mem_arena_strndup(&s->arena, name.data, name.size);
    f->name.size = name.size;
    f->prefix = prefix;
    if (!f->path || !f->name.data)
        return gg_error_set_nomem(err, name.size + 1);
    GG_TRY(gg_safetensors_name_file(
        name, gg_dir_open(folder, f->name.data, &f->map, there, err), err));
    if (!*there) {
        s->n_files--;
        gg_mem_free(s->allocator, f);
        return GGUF_OK;
    }
    GG_TRY(gg_safetensors_name_file(
        f->name, gg_safetensors_read_header(s, no, err), err));
    return f->map.read ? gg_resident_init(&f->held, &f->map, s->allocator, err)
                       : GGUF_OK;
}

static enum gguf_status add_listed(struct gg_safetensors *s,
                                   const struct gg_dir *folder,
                                   struct gguf_str name,
                                   struct gguf_error *err)
{
    bool there;
    GG_TRY(add_file(s, folder, name, GG_STR(""), &there, err));
    return there
               ? GGUF_OK
               : gg_safetensors_name_file(
                     name, gg_error_set_errno(err, ENOENT, "cannot be opened"),
                     err);
}

/* ---- the index ---- */

/* Is this the name of a file in the folder itself? */
static bool is_name(struct gguf_str s)
{
    return s.size && s.size < 256 && gg_str_ends(s, ".safetensors") &&
           *s.data != '.' && !memchr(s.data, '/', s.size) &&
           !memchr(s.data, '\\', s.size) && !memchr(s.data, ':', s.size) &&
           !memchr(s.data, 0, s.size);
}

/* Open each file that the index names, once. */
static enum gguf_status open_files(struct gg_safetensors *s,
                                   const struct gg_dir *folder,
                                   const struct gg_json *j, json_t *where,
                                   struct gguf_error *err)
{
    const char *key;
    json_t *v, *seen = json_object();
    struct gguf_str name = GG_STR("");
    struct gg_str_esc e, e_file;
    enum gguf_status st = seen ? GGUF_OK : gg_error_set_nomem(err, 64);
    json_object_foreach(where, key, v)
    {
        if (st != GGUF_OK)
            break;
        if (!gg_json_str(v, &name) || !is_name(name))
            st = gg_safetensors_name_file(
                gg_str_z(s->index_name),
                gg_error_set(err, GGUF_E_FORMAT, gg_json_offset_of(j, v),
                             "tensor '%s' is in '%s', which is not a "
                             ".safetensors file of this folder",
                             gg_str_esc(&e, gg_str_z(key)),
                             gg_str_esc(&e_file, name)),
                err);
        else if (!json_object_get(seen, name.data))
            st = json_object_set(seen, name.data, v)
                     ? gg_error_set_nomem(err, 64)
                     : add_listed(s, folder, name, err);
    }
    json_decref(seen);
    return st;
}

/* Check that index and files have the same tensors. */
static enum gguf_status compare_index(const struct gg_safetensors *s,
                                      const struct gg_json *j, json_t *where,
                                      struct gguf_error *err)
{
    const char *key;
    json_t *v;
    struct gguf_str name;
    struct gg_str_esc e;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const struct gg_safetensors_tensor *t = &s->tensor[i];
        const struct gguf_str file = s->file[t->file_no]->name;
        v = json_object_get(where, t->name.data);
        if (!gg_json_str(v, &name) || !gg_str_eq(name, file))
            return gg_error_set(
                err, GGUF_E_MISMATCH,
                v ? gg_json_offset_of(j, v) : GGUF_NO_OFFSET,
                "%s: tensor '%s' %s", s->index_name, gg_str_esc(&e, t->name),
                v ? "is in another file" : "is in a file, but not here");
    }
    json_object_foreach(where, key, v)
    {
        if (gg_safetensors_find(s, gg_str_z(key)) == GG_INDEX_NONE)
            return gg_error_set(err, GGUF_E_NOTFOUND, gg_json_offset_of(j, v),
                                "%s: tensor '%s' is not in its file, '%s'",
                                s->index_name, gg_str_esc(&e, gg_str_z(key)),
                                json_string_value(v));
    }
    return GGUF_OK;
}

static enum gguf_status read_index(struct gg_safetensors *s,
                                   const struct gg_dir *folder,
                                   const struct gg_mapfile *m,
                                   struct gguf_error *err)
{
    struct gg_json j = { .root = NULL };
    enum gguf_status st =
        m->size > GG_SAFETENSORS_HEADER
            ? gg_error_set(err, GGUF_E_LIMIT, 0,
                           "%s of %" PRIu64 " bytes, limit is %d",
                           s->index_name, m->size, GG_SAFETENSORS_HEADER)
            : gg_safetensors_name_file(gg_str_z(s->index_name),
                                       gg_json_read(&j, (const char *)m->data,
                                                    (size_t)m->size, 0,
                                                    GG_JSON_PYTHON, err),
                                       err);
    json_t *where = json_object_get(j.root, "weight_map");
    if (st == GGUF_OK && !json_is_object(where))
        st = gg_error_set(err, GGUF_E_FORMAT, gg_json_offset_of(&j, j.root),
                          "%s: \"weight_map\" is missing or not an object",
                          s->index_name);
    if (st == GGUF_OK)
        st = open_files(s, folder, &j, where, err);
    if (st == GGUF_OK)
        st = compare_index(s, &j, where, err);
    gg_json_fini(&j);
    return st;
}

/* Weights in other forms: begin and end of a file's name, and advice. */
#define AS_SAFETENSORS                                                        \
    ": save the model as safetensors, by save_pretrained of transformers"
#define OF_TORCH   "is PyTorch's, which is not read" AS_SAFETENSORS
#define OF_AUTHORS "download or make the files of transformers"
static const struct gg_dir_alternative instead[] = {
    { "model-0", ".safetensors",
      "is a shard: download the index that lists the shards, too" },
    { "pytorch_model", ".bin", OF_TORCH },
    { "adapter_model", ".bin",
      "is PyTorch's, which is not read: save it as safetensors, by "
      "save_pretrained of PEFT" },
    { "consolidated", ".safetensors",
      "has the names of its authors' own code: " OF_AUTHORS },
    { "consolidated", ".pth", "is of its authors' own code: " OF_AUTHORS },
    { "tf_model", ".h5", "is TensorFlow's" AS_SAFETENSORS },
    { "flax_model", ".msgpack", "is Flax's" AS_SAFETENSORS },
    { "", ".gguf", "is a GGUF file: gguf-quantize takes it" },
    { "model.safetensors", "", "is a model, not an adapter" },
    { "", ".safetensors", "must be named so if it has all weights" },
    { "", ".bin", OF_TORCH },
    { "", ".pt", OF_TORCH },
    { "", ".pth", OF_TORCH },
    { "", ".ckpt", OF_TORCH },
    { "", ".npz", "is of NumPy or MLX" AS_SAFETENSORS },
    { "", ".onnx", "is ONNX, which has no names of weights" AS_SAFETENSORS },
};

enum gguf_status gg_safetensors_read_files(struct gg_safetensors *s,
                                           const struct gg_dir *folder,
                                           struct gguf_error *err)
{
    struct gg_mapfile m;
    bool there;
    GG_TRY(add_file(s, folder, gg_str_z(s->single_name), GG_STR(""), &there,
                    err));
    if (there)
        return GGUF_OK;
    GG_TRY(gg_safetensors_name_file(gg_str_z(s->index_name),
                                    gg_dir_map(folder, s->index_name,
                                               GG_SAFETENSORS_HEADER, &m,
                                               &there, err),
                                    err));
    if (there) {
        const enum gguf_status st = read_index(s, folder, &m, err);
        gg_mapfile_close(&m);
        return st;
    }
    char what[200];
    snprintf(what, sizeof what, "there is neither %s nor %s", s->single_name,
             s->index_name);
    return gg_dir_fail_missing(folder, what, instead, GG_LEN(instead), err);
}

enum gguf_status gg_safetensors_add_file(struct gg_safetensors *s,
                                         const struct gg_dir *folder,
                                         const char *path, const char *prefix,
                                         bool *there, struct gguf_error *err)
{
    const size_t n = strlen(prefix);
    const char *kept = gg_mem_arena_strndup(&s->arena, prefix, n);
    return kept ? add_file(s, folder, gg_str_z(path),
                           (struct gguf_str){ kept, n }, there, err)
                : gg_error_set_nomem(err, n + 1);
}
