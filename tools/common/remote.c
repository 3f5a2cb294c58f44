/* SPDX-License-Identifier: MIT */
/* remote.c - models on servers: rewriting operands, and the opener */
#include "config.h"
#include "tools/common/remote.h"
#include "tools/common/address.h"
#include "tools/common/msg.h"
#include "tools/common/remote_http.h"
#include "tools/common/remote_url.h"
#include "tools/common/text.h"

#include <stdlib.h>
#include <string.h>

/* Strings that remote_args() made; they stay until the program ends. */
static char **rewritten;
static size_t n_rewritten, room_rewritten;

/* Secrets of the arguments. They are sent with requests for files below the
 * folder, and are in no path that the tool sees. */
static struct secret {
    char *shown;
    char *folder; /* address without secrets, up to its last slash */
    char *user, *query;
} * secrets;
static size_t n_secrets, room_secrets;

static void free_made(void)
{
    for (size_t i = 0; i < n_rewritten; i++)
        free(rewritten[i]);
    for (size_t i = 0; i < n_secrets; i++) {
        free(secrets[i].shown);
        free(secrets[i].folder);
        free(secrets[i].user);
        free(secrets[i].query);
    }
    free(secrets);
    free(rewritten);
}

/* Replace *arg by other, which is freed when the program ends. */
static void replace_argument(char **arg, char *other)
{
    if (!other)
        return;
    if (!n_rewritten)
        atexit(free_made);
    rewritten = msg_grow(rewritten, &room_rewritten, n_rewritten + 1,
                         sizeof *rewritten);
    rewritten[n_rewritten++] = *arg = other;
}

/* Replace *arg by the address without its secrets, and remember these. */
static void hide_secrets(char **arg, bool folder)
{
    struct address_secret s;
    if (!address_find_secret(*arg, &s))
        return;
    secrets = msg_grow(secrets, &room_secrets, n_secrets + 1, sizeof *secrets);
    struct secret *x = &secrets[n_secrets++];
    x->user = msg_copy_n(s.user, s.n_user);
    x->query = msg_copy_n(s.query, s.n_query);
    char *shown = msg_copy(*arg);
    shown[s.query - *arg] = '\0';
    char *user = shown + (s.user - *arg);
    memmove(user, user + s.n_user, strlen(user + s.n_user) + 1);
    replace_argument(arg, shown);
    struct text t = { NULL, 0, 0 };
    text_addf(&t, "%s%s", shown, folder ? "/" : "");
    t.s[strrchr(t.s, '/') + 1 - t.s] = '\0';
    x->folder = t.s;
    x->shown = msg_copy(shown);
}

void remote_args(char **arg, int n)
{
    for (int i = 0; i < n; i++)
        if (remote_is_url(arg[i])) {
            hide_secrets(&arg[i], false);
            replace_argument(&arg[i], remote_normalise(arg[i]));
        }
}

void remote_folder_arg(char **arg)
{
    if (remote_is_url(*arg)) {
        hide_secrets(arg, true);
        replace_argument(arg, remote_normalise_folder(*arg));
    }
}

/* Add the secrets of its folder to the address of a file. Takes url; free the
 * result. */
static char *with_secrets(char *url)
{
    const struct secret *x = NULL;
    struct text t = { NULL, 0, 0 };
    for (size_t i = n_secrets; i-- > 0;)
        if (!strcmp(url, secrets[i].shown) ||
            (!x &&
             !strncmp(url, secrets[i].folder, strlen(secrets[i].folder))))
            x = &secrets[i];
    if (!x)
        return url;
    const size_t scheme = (size_t)(strstr(url, "://") + 3 - url);
    text_addf(&t, "%.*s%s%s%s", (int)scheme, url, x->user, url + scheme,
              x->query);
    free(url);
    return t.s;
}

static bool takes_path(void *user, const char *path)
{
    (void)user;
    return remote_is_url(path);
}

static enum gguf_status open_remote(void *user, const char *path,
                                    struct gguf_reader *out,
                                    struct gguf_error *err)
{
    (void)user;
    enum gguf_status st = GGUF_E_INVALID;
    char *url = remote_url(path, err);
    if (url) {
        url = with_secrets(url);
        st = remote_http_open(url, out, err);
    }
    free(url);
    return st;
}

const struct gguf_opener *remote_opener(void)
{
    static const struct gguf_opener opener = { sizeof opener, takes_path,
                                               open_remote, NULL };
    return &opener;
}
