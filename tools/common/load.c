/* SPDX-License-Identifier: MIT */
/* load.c - opening the model that an argument names */
#include "config.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <gguf/reader.h>
#include <gguf/split.h>
#include <stdlib.h>
#include <string.h>

void load_raise_limits(void)
{
    gg_os_program_raise_limits();
}

bool load_try(struct load *l, const char *path, bool with_set,
              const struct gguf_file_params *params, struct gguf_error *err)
{
    struct gguf_file_params own = GGUF_INIT(struct gguf_file_params);
    struct gguf_error why;
    struct gg_os_stat s;
    gguf_error_clear(err);
    *l = (struct load){ .path = path };
    if (params)
        own = *params;
    own.single_file = !with_set;
    const bool good = gguf_file_open(&l->file, path, &own, err) == GGUF_OK;
    l->whole = good && with_set;
    if (good || !with_set)
        return good;
    const bool far = params && params->opener &&
                     params->opener->accepts(params->opener->user, path);
    /* a server that does not answer says nothing about the file itself */
    bool is_file =
        far ? err->status >= GGUF_E_FORMAT && err->status < GGUF_E_UNSUPPORTED
            : gg_os_stat(path, &s) == 0 && s.kind != GG_OS_FOLDER;
    if (!is_file || err->sys_errno != 0)
        return false;
    why = *err;
    own.single_file = true;
    if (gguf_file_open(&l->file, path, &own, err) != GGUF_OK)
        return false;
    msg_warn(path, "%s", why.message);
    msg_warn(path, "only this file is read, not its set");
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
    gguf_file_close(l->file);
    *l = (struct load){ .file = NULL };
}

bool load_is_duplicate(const struct load_seen *seen, const char *path)
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

void load_remember(struct load_seen *seen, const struct load *l)
{
    if (!l->whole || !gguf_file_is_split(l->file))
        return;
    seen->path =
        msg_grow(seen->path, &seen->room, seen->n + 1, sizeof *seen->path);
    seen->path[seen->n++] = l->path;
}

void load_seen_fini(struct load_seen *seen)
{
    free(seen->path);
    *seen = (struct load_seen){ NULL, 0, 0 };
}
