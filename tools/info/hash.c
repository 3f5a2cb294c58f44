/* SPDX-License-Identifier: MIT */
/* hash.c - printing and comparing checksums */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/digest.h"
#include "tools/common/msg.h"
#include "base/os/os_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- printing ---- */

/* Print a line of a manifest. tensor NULL: the digest of a whole file. */
static void put_line(const struct gguf_digest *d, const char *file,
                     const struct gguf_str *tensor)
{
    const struct gguf_str f = { file, strlen(file) };
    size_t n = tensor ? gguf_manifest_format_tensor(NULL, 0, d, f, *tensor)
                      : gguf_manifest_format_file(NULL, 0, d, f);
    char *line = msg_must(malloc(n + 1));
    if (tensor)
        gguf_manifest_format_tensor(line, n + 1, d, f, *tensor);
    else
        gguf_manifest_format_file(line, n + 1, d, f);
    puts(line);
    free(line);
}

/* Write an element of a list of digests; key says whether name is a tensor or
 * a path. */
static void digest_json(struct json *j, const char *key, struct gguf_str name,
                        const struct gguf_digest *d)
{
    char hex[65];
    json_open(j, NULL, '{');
    json_str(j, key, name);
    gguf_digest_format(d, hex);
    json_strz(j, "digest", hex);
    json_close(j);
}

static void hash_json(struct json *j, const struct info *info,
                      const struct gguf_digest *tensors,
                      const struct gguf_digest *model)
{
    char hex[65];
    json_open(j, "digests", '{');
    json_strz(j, "algorithm", gguf_digest_algo_name(model->algo));
    gguf_digest_format(model, hex);
    json_strz(j, "model", hex);
    json_open(j, "tensors", '[');
    for (size_t i = 0; i < info->n_list; i++) {
        uint32_t k = info->list[i];
        digest_json(j, "name", gguf_file_tensor(info->load->file, k)->name,
                    &tensors[k]);
    }
    json_close(j);
    json_close(j);
}

static void whole_json(struct json *j, const struct load *l,
                       const struct gguf_digest *whole)
{
    json_open(j, "digests", '{');
    json_strz(j, "algorithm", gguf_digest_algo_name(whole->algo));
    json_open(j, "files", '[');
    for (size_t i = 0; i < gguf_file_n_shards(l->file); i++) {
        const char *path = gguf_file_path(gguf_file_shard(l->file, i));
        digest_json(j, "path", (struct gguf_str){ path, strlen(path) },
                    &whole[i]);
    }
    json_close(j);
    json_close(j);
}

/* Compute the digests of whole files, to be freed. Returns NULL after a
 * message. */
static struct gguf_digest *whole_files(const struct load *l,
                                       const struct info_options *o)
{
    struct gguf_error err;
    struct gguf_digest *whole =
        msg_must(calloc(gguf_file_n_shards(l->file), sizeof *whole));
    if (digest_whole(l->file, GGUF_DIGEST_SHA256, o->pool, "hashing", o->quiet,
                     whole, &err) == GGUF_OK)
        return whole;
    msg_fail(l->path, &err);
    free(whole);
    return NULL;
}

static bool hash_whole(struct json *j, const struct load *l,
                       const struct info_options *o)
{
    struct gguf_digest *whole = whole_files(l, o);
    if (whole && j)
        whole_json(j, l, whole);
    for (size_t i = 0; whole && !j && i < gguf_file_n_shards(l->file); i++)
        put_line(&whole[i], gguf_file_path(gguf_file_shard(l->file, i)), NULL);
    const bool good = whole != NULL;
    free(whole);
    return good;
}

bool info_hash(struct json *j, const struct info *info,
               const struct info_options *o)
{
    if (o->hash == GGUF_DIGEST_SHA256)
        return hash_whole(j, info->load, o);
    size_t n = gguf_file_n_tensors(info->load->file);
    struct gguf_digest *tensors = msg_must(calloc(n + 1, sizeof *tensors));
    struct gguf_digest model;
    struct gguf_error err;
    bool good =
        digest_model(info->load->file, (enum gguf_digest_algo)o->hash, o->pool,
                     "hashing", o->quiet, tensors, &model, &err) == GGUF_OK;
    static const struct gguf_str whole = { "", 0 };
    if (!good) {
        msg_fail(info->load->path, &err);
    } else if (j) {
        hash_json(j, info, tensors, &model);
    } else {
        for (size_t i = 0; i < info->n_list; i++)
            put_line(&tensors[info->list[i]], info->load->path,
                     &gguf_file_tensor(info->load->file, info->list[i])->name);
        put_line(&model, info->load->path, &whole);
    }
    free(tensors);
    return good;
}

/* ---- checking ---- */

struct compared {
    size_t n_same, n_wrong, n_missing;
};

static void report_mismatch(const struct load *l, struct gguf_str name,
                            const char *what)
{
    struct text s = { NULL, 0, 0 };
    text_add_esc(&s, name, UINT64_MAX);
    if (name.size)
        msg_error(l->path, "tensor '%s': %s", s.s, what);
    else
        msg_error(l->path, "the model: %s", what);
    text_fini(&s);
}

/* Compare all entries of m with this algorithm. */
static void
compare_manifest(const struct load *l, const struct gguf_manifest *m,
                 enum gguf_digest_algo algo, const struct gguf_digest *tensors,
                 const struct gguf_digest *model, struct compared *c)
{
    size_t n_found = 0, n_listed = 0;
    for (size_t i = 0; i <= gguf_file_n_tensors(l->file); i++) {
        bool whole = i == gguf_file_n_tensors(l->file);
        struct gguf_str name = { "", 0 };
        if (!whole)
            name = gguf_file_tensor(l->file, i)->name;
        const struct gguf_digest *d = gguf_manifest_find(m, algo, name);
        if (!d)
            continue;
        n_found++;
        if (gguf_digest_equal(d, whole ? model : &tensors[i])) {
            c->n_same++;
        } else {
            c->n_wrong++;
            report_mismatch(l, name, "the data differs from the manifest");
        }
    }
    for (size_t i = 0; i < gguf_manifest_n_entries(m); i++)
        n_listed += gguf_manifest_entry(m, i, NULL)->algo == algo;
    c->n_missing += n_listed - n_found;
}

static struct gguf_str base_name(struct gguf_str path)
{
    const size_t n = gg_os_path_folder_size(path.data, path.size);
    return (struct gguf_str){ path.data + n, path.size - n };
}

/* Find the digest of a file in m, by its name without folders. only: model and
 * manifest have a single file each, so that the name does not matter. NULL:
 * none. */
static const struct gguf_digest *find_whole(const struct gguf_manifest *m,
                                            const char *path, bool only)
{
    const struct gguf_str p =
        base_name((struct gguf_str){ path, strlen(path) });
    const struct gguf_digest *d, *found = NULL;
    struct text escaped = { NULL, 0, 0 };
    struct gguf_str name;
    text_add_esc(&escaped, p, UINT64_MAX);
    for (size_t i = 0; !found && (d = gguf_manifest_file(m, i, &name)); i++) {
        name = base_name(name);
        if (text_is(name, escaped.s) ||
            (name.size == p.size && !memcmp(name.data, p.data, p.size)))
            found = d;
    }
    text_fini(&escaped);
    return found || !only ? found : gguf_manifest_file(m, 0, NULL);
}

/* Compare the digests of whole files. Returns false if one cannot be read. */
static bool compare_whole(const struct load *l, const struct gguf_manifest *m,
                          const struct info_options *o, struct compared *c)
{
    const size_t n = gguf_file_n_shards(l->file);
    const bool only = n == 1 && gguf_manifest_n_files(m) == 1;
    struct gguf_digest *whole = whole_files(l, o);
    const bool good = whole != NULL;
    for (size_t i = 0; good && i < n; i++) {
        const char *path = gguf_file_path(gguf_file_shard(l->file, i));
        const struct gguf_digest *d = find_whole(m, path, only);
        if (!d) {
            msg_error(path, "is not in the manifest");
            c->n_wrong++;
        } else if (gguf_digest_equal(d, &whole[i])) {
            c->n_same++;
        } else {
            msg_error(path, "the file differs from the manifest");
            c->n_wrong++;
        }
    }
    free(whole);
    return good;
}

/* Compare the digests of tensors and model, for each algorithm in m. Returns
 * false if the data cannot be read. */
static bool compare_tensors(const struct load *l,
                            const struct gguf_manifest *m,
                            const struct info_options *o, struct compared *c)
{
    struct gguf_error err;
    struct gguf_digest model;
    bool used[GGUF_N_DIGESTS] = { false }, good = true;
    struct gguf_digest *tensors =
        msg_must(calloc(gguf_file_n_tensors(l->file) + 1, sizeof *tensors));
    for (size_t i = 0; i < gguf_manifest_n_entries(m); i++)
        used[gguf_manifest_entry(m, i, NULL)->algo] = true;
    for (int a = 0; good && a < GGUF_N_DIGESTS; a++) {
        if (!used[a])
            continue;
        good =
            digest_model(l->file, (enum gguf_digest_algo)a, o->pool, "hashing",
                         o->quiet, tensors, &model, &err) == GGUF_OK;
        if (good)
            compare_manifest(l, m, (enum gguf_digest_algo)a, tensors, &model,
                             c);
        else
            msg_fail(l->path, &err);
    }
    free(tensors);
    return good;
}

bool info_manifest(const struct load *l, const struct info_options *o)
{
    struct gguf_manifest *m = NULL;
    struct gguf_error err;
    struct compared c = { 0, 0, 0 };
    struct text text = { NULL, 0, 0 };
    bool good = text_read(&text, o->manifest);
    if (good &&
        gguf_manifest_parse(&m, text.s, text.n, NULL, &err) != GGUF_OK) {
        msg_fail(o->manifest, &err);
        good = false;
    }
    if (good)
        good = compare_tensors(l, m, o, &c);
    if (good && gguf_manifest_n_files(m))
        good = compare_whole(l, m, o, &c);
    if (c.n_missing)
        msg_error(l->path, "%zu tensor%s of the manifest %s missing",
                  c.n_missing, text_s(c.n_missing),
                  c.n_missing == 1 ? "is" : "are");
    if (good && !c.n_same && !c.n_wrong && !c.n_missing) {
        msg_error(o->manifest, "has no checksum of a known algorithm");
        good = false;
    }
    if (good && !o->quiet)
        msg_info(l->path, "%zu of %zu checksums %s right", c.n_same,
                 c.n_same + c.n_wrong + c.n_missing,
                 c.n_same == 1 ? "is" : "are");
    gguf_manifest_destroy(m);
    text_fini(&text);
    return good && !c.n_wrong && !c.n_missing;
}
