/* SPDX-License-Identifier: MIT */
/* load.c - open what a tool was given: file, shard, folder or prefix */
#include "config.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"

#include <gguf/reader.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

void load_raise_limits(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

bool load_try(struct load *l, const char *path, bool with_set,
              const struct gguf_file_params *params, struct gguf_error *err)
{
    struct gguf_error why;
    struct stat sb;
    gguf_error_clear(err);
    *l = (struct load){ .path = path };
    if (with_set && gguf_split_open(&l->set, path, params, err) == GGUF_OK)
        return true;
    const bool far = params && params->opener &&
                     params->opener->takes(params->opener->user, path);
    /* a server that does not answer says nothing about the file */
    bool is_file =
        far ? err->status >= GGUF_E_FORMAT && err->status < GGUF_E_UNSUPPORTED
            : stat(path, &sb) == 0 && !S_ISDIR(sb.st_mode);
    if (with_set && (!is_file || err->sys_errno != 0))
        return false;
    why = *err;
    if (gguf_file_open(&l->alone, path, params, err) != GGUF_OK)
        return false;
    if (with_set) {
        msg_warn(path, "%s", why.message);
        msg_warn(path, "what follows is about this file alone");
    }
    return true;
}

bool load_open(struct load *l, const char *path, bool with_set,
               const struct gguf_file_params *params)
{
    struct gguf_error err;
    if (load_try(l, path, with_set, params, &err))
        return true;
    return msg_fail(path, &err);
}

void load_close(struct load *l)
{
    gguf_split_close(l->set);
    gguf_file_close(l->alone);
    *l = (struct load){ NULL, NULL, NULL };
}

size_t load_n_files(const struct load *l)
{
    return l->set ? gguf_split_n_files(l->set) : 1;
}

const struct gguf_file *load_file(const struct load *l, size_t i)
{
    return l->set ? gguf_split_file(l->set, i) : l->alone;
}

size_t load_n_tensors(const struct load *l)
{
    return l->set ? gguf_split_n_tensors(l->set)
                  : gguf_file_n_tensors(l->alone);
}

struct gguf_split_tensor load_tensor(const struct load *l, size_t i)
{
    if (l->set)
        return *gguf_split_tensor(l->set, i);
    return (struct gguf_split_tensor){ gguf_file_tensor(l->alone, i), l->alone,
                                       0 };
}

bool load_is_again(const struct load_seen *seen, const char *path)
{
    size_t n, m;
    unsigned count, of;
    if (!gguf_split_name_parse(path, &n, NULL, &count))
        return false;
    for (size_t i = 0; i < seen->n; i++)
        if (gguf_split_name_parse(seen->path[i], &m, NULL, &of) && m == n &&
            of == count && !memcmp(seen->path[i], path, n))
            return true;
    return false;
}

void load_note(struct load_seen *seen, const struct load *l)
{
    if (!l->set || !gguf_split_is_split(l->set))
        return;
    seen->path =
        msg_grow(seen->path, &seen->room, seen->n + 1, sizeof *seen->path);
    seen->path[seen->n++] = l->path;
}

void load_forget(struct load_seen *seen)
{
    free(seen->path);
    *seen = (struct load_seen){ NULL, 0, 0 };
}
