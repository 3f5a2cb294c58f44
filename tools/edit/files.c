/* SPDX-License-Identifier: MIT */
/* files.c - finding the files that the arguments of gguf-edit mean */
#include "config.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/remote.h"
#include "tools/edit/edit.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <gguf/split.h>

#include <stdlib.h>
#include <string.h>

/* State of edit_files_find(). */
struct finding {
    struct edit_files *files;
    const struct edit_options *o;
    bool good;
    int n_models; /* models with files that were not in the list before */
};

/* Are both paths the same existing file? */
static bool is_same_path(const char *a, const char *b)
{
    struct gg_os_stat x, y;
    return gg_os_stat(a, &x) == 0 && gg_os_stat(b, &y) == 0 &&
           x.dev == y.dev && x.ino == y.ino;
}

/* Add a file; output may be NULL. false: it is in the list already. */
static bool add_file(struct finding *f, const char *path, const char *output,
                     bool keys)
{
    struct edit_files *l = f->files;
    for (size_t i = 0; i < l->n; i++)
        if (is_same_path(l->file[i].path, path))
            return false;
    l->file = msg_must(realloc(l->file, (l->n + 1) * sizeof *l->file));
    l->file[l->n++] = (struct edit_file){
        .path = msg_copy(path),
        .output = output ? msg_copy(output) : NULL,
        .keys = keys,
    };
    return true;
}

/* Return the name of output shard no, to be freed. output is the name of a
 * shard with the same count. */
static char *output_shard(const char *output, unsigned no)
{
    struct gguf_error err;
    size_t n;
    unsigned count;
    gguf_split_name_parse(output, &n, NULL, &count);
    const size_t size = strlen(output) + 1;
    char *prefix = msg_copy(output);
    char *name = msg_must(malloc(size));
    prefix[n] = '\0';
    if (gguf_split_name_format(name, size, prefix, no, count, &err) != GGUF_OK)
        /* cannot happen: the name is as long as output */
        msg_fail(output, &err);
    free(prefix);
    return name;
}

/* Is output the name of the first of n shards? */
static bool is_first_shard_name(const char *output, size_t n)
{
    unsigned no, count;
    return output && gguf_split_name_parse(output, NULL, &no, &count) &&
           no == 1 && count == n;
}

/* Add the n shards of a set that arg has named. The first shard comes last:
 * without it, an incomplete set is not taken for a model. */
static bool add_set(struct finding *f, const char *arg,
                    const char *(*path)(const void *set, size_t i),
                    const void *set, size_t n)
{
    const struct edit_options *o = f->o;
    const bool all = o->output || o->order != GGUF_EDIT_KEEP_ORDER ||
                     !o->n_ops; /* otherwise only the first shard changes */
    bool added = false;
    for (size_t i = n; i-- > 0;) {
        const char *p = path(set, i);
        char *out =
            o->output ? output_shard(o->output, (unsigned)i + 1) : NULL;
        if (p && (all || i == 0))
            added |= add_file(f, p, out, i == 0);
        free(out);
    }
    struct gg_os_stat s;
    const bool shard = gg_os_stat(arg, &s) == 0 && s.kind != GG_OS_FOLDER;
    if (added && shard && o->n_ops && !o->quiet && path(set, 0) &&
        !is_same_path(arg, path(set, 0)))
        msg_info(arg, "the metadata of the model is in '%s'", path(set, 0));
    return added;
}

static const char *set_path(const void *set, size_t i)
{
    return gguf_file_path(gguf_file_shard(set, i));
}

/* Names of shards of a set that does not open, because only some of its shards
 * have the new byte order. */
struct names {
    char *prefix, *name; /* same size as the name that was given */
    size_t size;
    unsigned count;
};

static const char *names_path(const void *user, size_t i)
{
    const struct names *n = user;
    struct gg_os_stat s;
    struct gguf_error err;
    return gguf_split_name_format(n->name, n->size, n->prefix, (unsigned)i + 1,
                                  n->count, &err) == GGUF_OK &&
                   gg_os_stat(n->name, &s) == 0
               ? n->name
               : NULL;
}

static bool add_names(struct finding *f, const char *arg)
{
    struct names n = { .size = strlen(arg) + 1 };
    size_t at;
    gguf_split_name_parse(arg, &at, NULL, &n.count);
    n.prefix = msg_copy(arg);
    n.prefix[at] = '\0';
    n.name = msg_must(malloc(n.size));
    const bool added = add_set(f, arg, names_path, &n, n.count);
    free(n.prefix);
    free(n.name);
    return added;
}

/* Add a set that could not be opened; arg is a shard or a prefix. A shard
 * whose set is missing or does not fit together can be edited by itself, but
 * not if something could not be read. */
static bool add_unopened(struct finding *f, const char *arg, bool shard,
                         const struct gguf_error *why)
{
    const struct edit_options *o = f->o;
    const bool one_by_one = why->status == GGUF_E_MISMATCH && !o->output;
    const bool turned = o->order != GGUF_EDIT_KEEP_ORDER;
    struct gg_os_stat s;
    if (shard && one_by_one && turned)
        return add_names(f, arg);
    if (gg_os_stat(arg, &s) != 0 || s.kind == GG_OS_FOLDER ||
        (why->status != GGUF_E_NOTFOUND && !one_by_one)) {
        msg_fail(arg, why);
        f->good = false;
        return false;
    }
    if (!o->quiet)
        msg_info(arg, "is edited by itself: %s", why->message);
    return add_file(f, arg, o->output, true);
}

/* Add what an argument names: a file, or a set by a shard, its folder or its
 * prefix. */
static void add_argument(struct finding *f, const char *arg)
{
    struct gguf_file_params params = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *set = NULL;
    struct gguf_error err;
    struct gg_os_stat s;
    unsigned count = 0;
    const bool shard =
        gguf_split_name_parse(arg, NULL, NULL, &count) && count > 1;
    const bool there = gg_os_stat(arg, &s) == 0 && s.kind != GG_OS_FOLDER;
    const char *output = f->o->output;
    bool added;
    paths_require_local(arg);
    params.limits = &f->o->limits;
    gguf_error_clear(&err);
    if (there && !shard)
        added = add_file(f, arg, output, true);
    else if (gguf_file_open(&set, arg, &params, &err) != GGUF_OK)
        added = add_unopened(f, arg, shard, &err);
    else if (gguf_file_n_shards(set) == 1)
        added =
            add_file(f, gguf_file_path(gguf_file_shard(set, 0)), output, true);
    else if (!output || is_first_shard_name(output, gguf_file_n_shards(set)))
        added = add_set(f, arg, set_path, set, gguf_file_n_shards(set));
    else if (there)
        added = add_file(f, arg, output, true);
    else
        opt_usage(
            "--output: '%s' has %zu shards, and '%s' is one file; name the "
            "first shard, NAME-00001-of-%05zu.gguf",
            arg, gguf_file_n_shards(set), output, gguf_file_n_shards(set));
    gguf_file_close(set);
    f->n_models += added;
    if (f->n_models > 1 && output)
        opt_usage("--output: '%s' is one file, and %d models are edited",
                  output, f->n_models);
}

bool edit_files_find(struct edit_files *files, const struct edit_options *o,
                     char **arg, int n)
{
    struct finding f = { .files = files, .o = o, .good = true };
    *files = (struct edit_files){ NULL, 0 };
    for (int i = 0; i < n; i++) {
        struct gg_os_stat s;
        struct gg_os_paths g;
        if (gg_os_stat(arg[i], &s) == 0 || remote_is_url(arg[i]) ||
            !strpbrk(arg[i], "*?[")) {
            add_argument(&f, arg[i]);
            continue;
        }
        if (gg_os_paths_find(&g, arg[i], false) == 0) {
            for (size_t k = 0; k < g.n; k++)
                add_argument(&f, g.path[k]);
            gg_os_paths_free(&g);
        } else {
            msg_error(arg[i], "no file matches this pattern");
            f.good = false;
        }
    }
    return f.good;
}

void edit_files_fini(struct edit_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->file[i].path);
        free(f->file[i].output);
    }
    free(f->file);
}
