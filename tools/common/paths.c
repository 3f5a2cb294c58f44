/* SPDX-License-Identifier: MIT */
/* paths.c - paths that a tool reads and writes, recorded before it writes */
#include "config.h"
#include "tools/common/paths.h"
#include "tools/common/address.h"
#include "tools/common/msg.h"
#include "tools/common/remote.h"
#include "tools/common/remote_url.h"
#include "tools/common/text.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/os/os_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gguf/split.h>

static void exit_on_error(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    msg_fail(NULL, err);
    exit(msg_exit(MSG_FAILED));
}

struct gguf_paths *paths_new(void)
{
    struct gguf_paths *p;
    struct gguf_error err;
    gguf_error_clear(&err);
    exit_on_error(gguf_paths_create(&p, NULL, &err), &err);
    exit_on_error(
        gguf_paths_add_input_fd(p, GG_OS_STDOUT, "standard output", &err),
        &err);
    exit_on_error(
        gguf_paths_add_input_fd(p, GG_OS_STDERR, "standard error", &err),
        &err);
    return p;
}

void paths_require_local(const char *path)
{
    if (!path || !remote_is_url(path) || gg_os_find(path) == 0)
        return;
    struct gguf_error err;
    gguf_error_clear(&err);
    struct text word = { NULL, 0, 0 };
    char *shown = msg_copy(path); /* '?' in hf:// would become %3F */
    address_remove_secrets(shown);
    char *url = remote_url(shown, &err);
    free(shown);
    if (url) {
        text_add_shell(&word, url);
        msg_error(path,
                  "is on a server, expected a local file: download it first "
                  "(curl -LO %s); only gguf-info, gguf-split, gguf-quantize "
                  "and gguf-convert read from servers",
                  word.s);
    } else {
        msg_fail(path, &err);
    }
    text_fini(&word);
    free(url);
    exit(msg_exit(MSG_FAILED));
}

void paths_read(struct gguf_paths *p, const char *path, const char *what)
{
    struct gguf_error err;
    gguf_error_clear(&err);
    if (path && !strcmp(path, "-"))
        exit_on_error(gguf_paths_add_input_fd(p, GG_OS_STDIN, what, &err),
                      &err);
    else if (path) {
        paths_require_local(path);
        exit_on_error(gguf_paths_add_input(p, path, what, &err), &err);
    }
}

void paths_write(struct gguf_paths *p, const char *path, const char *what)
{
    struct gguf_error err;
    gguf_error_clear(&err);
    if (path)
        exit_on_error(gguf_paths_add_output(p, path, what, &err), &err);
}

void paths_read_model(struct gguf_paths *p, const char *path,
                      const struct gguf_file_params *params, const char *what)
{
    struct gguf_file *set = NULL;
    paths_read(p, path, what);
    if (path && gguf_file_open(&set, path, params, NULL) == GGUF_OK)
        for (size_t i = 0; i < gguf_file_n_shards(set); i++)
            paths_read(p, gguf_file_path(gguf_file_shard(set, i)), what);
    gguf_file_close(set);
}

bool paths_can_write(const char *path)
{
    const size_t n = path ? gg_os_path_folder_size(path, strlen(path)) : 0;
    struct text folder = { NULL, 0, 0 };
    struct gg_os_stat is;
    if (!path)
        return true;
    if (gg_os_stat(path, &is) == 0 && is.kind != GG_OS_FILE)
        return msg_error(path,
                         "is not a regular file: it cannot be an output");
    text_addf(&folder, "%.*s", n ? (int)n : 1, n ? path : ".");
    const bool good = gg_os_can_write(folder.s) == 0;
    if (!good)
        msg_error(path, "its folder cannot be written to: %s",
                  strerror(errno));
    text_fini(&folder);
    return good;
}
