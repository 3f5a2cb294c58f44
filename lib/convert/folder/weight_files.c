/* SPDX-License-Identifier: MIT */
/* weight_files.c - note weight files that a conversion does not read
 *
 * A folder may have several sets of weights: model.safetensors beside an index
 * with other files, or shards of an earlier save that no index names.
 * data/safetensors.h says which set is read; the others are noted here.
 */
#include "config.h"
#include "convert/folder/folder.h"
#include "base/os/os.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Does the index name other files than model.safetensors? *there: the folder
 * has an index. */
static enum gguf_status names_others(struct gg_folder *f, bool *there,
                                     bool *yes, struct gguf_error *err)
{
    const struct gg_safetensors *s = f->weights;
    struct gg_json j = { .root = NULL };
    struct gg_mapfile m = { .fd = -1 };
    struct gguf_str file;
    const char *key;
    json_t *v;
    *yes = false;
    enum gguf_status st = gg_folder_map(f, s->index_name, &m, there, err);
    if (st == GGUF_E_IO || st == GGUF_E_NOMEM || (st == GGUF_OK && !*there))
        return st;
    /* one that cannot be read is not read, either */
    if (st == GGUF_OK)
        st = m.size > GG_SAFETENSORS_HEADER
                 ? GGUF_E_LIMIT
                 : gg_json_read(&j, (const char *)m.data, (size_t)m.size, 0,
                                GG_JSON_PYTHON, err);
    *there = true;
    *yes = st != GGUF_OK;
    json_object_foreach(json_object_get(j.root, "weight_map"), key, v)
    {
        *yes = *yes || !gg_json_str(v, &file) ||
               !gg_str_eqz(file, s->single_name);
    }
    gg_json_fini(&j);
    gg_mapfile_close(&m);
    return st == GGUF_E_NOMEM ? st : GGUF_OK;
}

/* Is this the name of a shard, STEM-00001-of-00002.safetensors? */
static bool is_shard(const struct gg_safetensors *s, struct gguf_str name)
{
    const size_t stem = strlen(s->single_name) - strlen(".safetensors");
    uint64_t n;
    if (name.size <= stem || memcmp(name.data, s->single_name, stem) != 0)
        return false;
    name.data += stem;
    name.size -= stem;
    for (int i = 0; i < 2; i++) {
        const char *before = i ? "-of-" : "-";
        if (!gg_str_starts(name, before))
            return false;
        name.data += strlen(before);
        name.size -= strlen(before);
        if (!gg_str_uint(&name, UINT32_MAX, &n))
            return false;
    }
    return gg_str_eqz(name, ".safetensors");
}

static bool is_read(const struct gg_safetensors *s, struct gguf_str name)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (gg_str_eq(s->file[i]->name, name))
            return true;
    return false;
}

/* Count the shards of the folder that are not read, and find the first by
 * name. */
static size_t count_strays(const struct gg_folder *f, char first[256])
{
    const char *x;
    size_t n = 0;
    struct gg_os_folder *d =
        gg_dir_is_remote(&f->dir) ? NULL : gg_os_folder_open(f->dir.path);
    *first = 0;
    while (d && (x = gg_os_folder_next(d)) != NULL) {
        const struct gguf_str name = gg_str_z(x);
        if (!is_shard(f->weights, name) || is_read(f->weights, name))
            continue;
        if (!n++ || strcmp(x, first) < 0)
            snprintf(first, 256, "%s", x);
    }
    if (d)
        gg_os_folder_close(d);
    return n;
}

enum gguf_status gg_folder_note_unread(struct gg_folder *f,
                                       struct gguf_error *err)
{
    const struct gg_safetensors *s = f->weights;
    const bool single = is_read(s, gg_str_z(s->single_name));
    bool there = false, others = false;
    char first[256], more[64] = "";
    struct gg_str_esc e;
    if (!f->p->note.fn)
        return GGUF_OK;
    if (single)
        GG_TRY(names_others(f, &there, &others, err));
    if (others) {
        gg_folder_warn(f,
                       "%s is read, as by transformers, and not the files "
                       "that %s names",
                       s->single_name, s->index_name);
        return GGUF_OK;
    }
    const size_t n = count_strays(f, first);
    if (n > 1)
        snprintf(more, sizeof more, " and %zu more", n - 1);
    gg_str_esc(&e, gg_str_z(first));
    if (n && single)
        gg_folder_warn(f, "%s is read, as by transformers, and not '%s'%s",
                       s->single_name, e.s, more);
    else if (n)
        gg_folder_warn(f, "'%s'%s: not read, because %s does not name %s", e.s,
                       more, s->index_name, n > 1 ? "them" : "it");
    return GGUF_OK;
}
