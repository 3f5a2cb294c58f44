/* SPDX-License-Identifier: MIT */
/* remote.c - models on servers, by what stands in the place of a path */
#include "config.h"
#include "tools/common/remote.h"
#include "tools/common/msg.h"
#include "tools/common/remote_http.h"
#include "tools/common/remote_url.h"

#include <stdlib.h>

/* What remote_args made, until the program ends. */
static char **made;
static size_t n_made, room_made;

static void free_made(void)
{
    for (size_t i = 0; i < n_made; i++)
        free(made[i]);
    free(made);
}

/* Put other, which is kept, in the place of *arg. */
static void replace(char **arg, char *other)
{
    if (!other)
        return;
    if (!n_made)
        atexit(free_made);
    made = msg_grow(made, &room_made, n_made + 1, sizeof *made);
    made[n_made++] = *arg = other;
}

void remote_args(char **arg, int n)
{
    for (int i = 0; i < n; i++)
        if (remote_is(arg[i]))
            replace(&arg[i], remote_tidy(arg[i]));
}

void remote_folder_arg(char **arg)
{
    if (remote_is(*arg))
        replace(arg, remote_tidy_folder(*arg));
}

static int takes(void *user, const char *path)
{
    (void)user;
    return remote_is(path);
}

static enum gguf_status open_remote(void *user, const char *path,
                                    struct gguf_reader *out,
                                    struct gguf_error *err)
{
    (void)user;
    enum gguf_status st = GGUF_E_INVALID;
    char *url = remote_url(path, err);
    if (url)
        st = remote_http_open(url, out, err);
    free(url);
    return st;
}

const struct gguf_opener *remote_opener(void)
{
    static const struct gguf_opener opener = { sizeof opener, takes,
                                               open_remote, NULL };
    return &opener;
}
