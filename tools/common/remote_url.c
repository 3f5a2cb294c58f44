/* SPDX-License-Identifier: MIT */
/* remote_url.c - addresses of the Hub, and the token for it
 *
 * These follow huggingface_hub: HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HOME,
 * HF_HUB_DISABLE_IMPLICIT_TOKEN, and hf://[TYPE/]OWNER/REPO[@REVISION]/FILE
 * (its documentation, "Environment variables" and "Interact with the Hub
 * through the Filesystem API").
 */
#include "config.h"
#include "tools/common/remote_url.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "tools/common/nocase.h"
#include "base/os/os.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *find_setting(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

const char *remote_hub(void)
{
    static char hub[1024];
    const char *v = find_setting("HF_ENDPOINT");
    size_t n = (size_t)snprintf(hub, sizeof hub, "%s",
                                v ? v : "https://huggingface.co");
    if (n >= sizeof hub) /* too long: no address rather than a wrong one */
        hub[n = 0] = '\0';
    for (; n && hub[n - 1] == '/'; n--)
        hub[n - 1] = '\0';
    return hub;
}

/* ---- hf:// ---- */

/* Parts of hf://[TYPE/]OWNER/REPO[@REVISION]/FILE[@REVISION]. */
struct hf {
    const char *repo, *file, *revision;
    size_t n_repo, n_file, n_revision; /* n_revision is 0 for main */
};

/* Split an address of the Hub. Returns false if a part is missing. */
static bool split_hub_url(const char *path, struct hf *h)
{
    const char *p = path + strlen("hf://"), *end = p, *at;
    const int n_parts = !strncmp(p, "datasets/", 9) ? 3
                        : !strncmp(p, "spaces/", 7) ? 3
                                                    : 2;
    *h = (struct hf){ .repo = p };
    for (int i = 0; i < n_parts; i++, end++) {
        const char *begin = end;
        end += strcspn(end, "/");
        if (end == begin || !*end)
            return false;
    }
    h->file = end;
    h->n_repo = (size_t)(end - 1 - p);
    at = memchr(p, '@', h->n_repo);
    if (at) {
        h->revision = at + 1;
        h->n_revision = (size_t)(end - 1 - h->revision);
        h->n_repo = (size_t)(at - p);
    }
    h->n_file = strlen(h->file);
    at = strrchr(h->file, '@');
    if (at && !h->revision) {
        h->revision = at + 1;
        h->n_revision = strlen(h->revision);
        h->n_file = (size_t)(at - h->file);
    }
    return h->n_repo && h->n_file && (!h->revision || h->n_revision);
}

/* Append n bytes, escaping as %XX those that an address cannot contain. In a
 * revision slashes are escaped, too, and escapes that it contains already are
 * kept. */
static void add_escaped(struct text *t, const char *s, size_t n, bool revision)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') ||
                           (c && strchr("-._~", c)) ||
                           (c == (revision ? '%' : '/'));
        text_addf(t, plain ? "%c" : "%%%02X", c);
    }
}

char *remote_url(const char *path, struct gguf_error *err)
{
    struct text t = { NULL, 0, 0 };
    struct hf h;
    if (!nocase_begins(path, "hf://"))
        return msg_copy(path);
    if (!split_hub_url(path, &h)) {
        gguf_error_set(
            err, GGUF_E_INVALID,
            "is not hf://OWNER/REPO/FILE, with @REVISION after REPO "
            "or FILE if it is not main");
        return NULL;
    }
    text_addf(&t, "%s/", remote_hub());
    add_escaped(&t, h.repo, h.n_repo, false);
    text_addf(&t, "/resolve/");
    add_escaped(&t, h.n_revision ? h.revision : "main",
                h.n_revision ? h.n_revision : 4, true);
    text_addf(&t, "/");
    add_escaped(&t, h.file, h.n_file, false);
    return t.s;
}

char *remote_normalise(const char *path)
{
    static const char query[] = "?download=true", blob[] = "/blob/";
    struct text t = { NULL, 0, 0 };
    struct hf h;
    const char *hub = remote_hub();
    if (nocase_begins(path, "hf://")) {
        if (!split_hub_url(path, &h) || h.file[h.n_file] != '@')
            return NULL;
        text_addf(&t, "hf://%.*s@", (int)h.n_repo, h.repo);
        add_escaped(&t, h.revision, h.n_revision, true);
        text_addf(&t, "/%.*s", (int)h.n_file, h.file);
        return t.s;
    }
    if (strncmp(path, hub, strlen(hub)) != 0 || path[strlen(hub)] != '/')
        return NULL;
    size_t n = strlen(path);
    if (n > sizeof query && !strcmp(path + n - (sizeof query - 1), query))
        n -= sizeof query - 1;
    const char *at = strstr(path + strlen(hub), blob);
    if (at)
        text_addf(&t, "%.*s/resolve/%.*s", (int)(at - path), path,
                  (int)(path + n - at - (sizeof blob - 1)),
                  at + sizeof blob - 1);
    else
        text_addf(&t, "%.*s", (int)n, path);
    return t.s;
}

char *remote_normalise_folder(const char *path)
{
    static const char *const kinds[] = { "tree/", "resolve/", "blob/" };
    struct text t = { NULL, 0, 0 };
    const char *hub = remote_hub(), *p = path + strlen(hub) + 1;
    if (nocase_begins(path, "hf://"))
        return remote_normalise(path);
    if (strncmp(path, hub, strlen(hub)) != 0 || p[-1] != '/')
        return NULL;
    const size_t owner = strcspn(p, "/"), name = owner + (p[owner] == '/');
    const size_t n = name + strcspn(p + name, "/");
    if (!owner || n == name)
        return NULL;
    text_addf(&t, "hf://%.*s", (int)n, p);
    p += n + strspn(p + n, "/");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t k = strlen(kinds[i]);
        if (!strncmp(p, kinds[i], k) && p[k]) {
            text_addf(&t, "@%s", p + k);
            return t.s;
        }
    }
    if (!*p)
        return t.s;
    text_fini(&t);
    return NULL;
}

/* ---- tokens ---- */

enum { MAX_TOKEN = 4096, MAX_TOKEN_FILE = 2 * MAX_TOKEN };

/* Copy s without blanks around it. Returns false if nothing is left, or it has
 * characters that a header cannot have. */
static bool trim_slashes(const char *s, char **out)
{
    static const char blank[] = " \t\r\n";
    s += strspn(s, blank);
    size_t n = strlen(s);
    while (n && strchr(blank, s[n - 1]))
        n--;
    for (size_t i = 0; i < n; i++)
        if (s[i] <= ' ' || s[i] > '~')
            return false;
    *out = n ? msg_copy_n(s, n) : NULL;
    return true;
}

/* Return the content of the file, to be freed, or NULL. */
static char *read_token(const char *path)
{
    FILE *f = gg_os_stream_open(path, "rb");
    char *s = f ? msg_must(calloc(MAX_TOKEN_FILE + 1, 1)) : NULL;
    const size_t n = s ? fread(s, 1, MAX_TOKEN_FILE, f) : 0;
    for (size_t i = 0; i < n; i++)
        /* a NUL is not part of a token: make it an invalid character */
        s[i] = s[i] ? s[i] : 1;
    if (s && !n) {
        free(s);
        s = NULL;
    }
    if (f)
        fclose(f);
    return s;
}

/* Return the path of the file in which a login stores the token, to be freed,
 * or NULL. */
static char *token_path(void)
{
    struct text t = { NULL, 0, 0 };
    const char *v;
    if ((v = find_setting("HF_TOKEN_PATH")))
        text_addf(&t, "%s", v);
    else if ((v = find_setting("HF_HOME")))
        text_addf(&t, "%s/token", v);
    else if ((v = find_setting("XDG_CACHE_HOME")))
        text_addf(&t, "%s/huggingface/token", v);
    else if ((v = find_setting("HOME")))
        text_addf(&t, "%s/.cache/huggingface/token", v);
    return t.s;
}

enum gguf_status remote_token(char **out, struct gguf_error *err)
{
    const char *given = find_setting("HF_TOKEN"), *from = "HF_TOKEN";
    const char *off = find_setting("HF_HUB_DISABLE_IMPLICIT_TOKEN");
    char *path = NULL, *text = NULL;
    *out = NULL;
    if (off && (!strcmp(off, "1") || nocase_equals(off, "true") ||
                nocase_equals(off, "yes") || nocase_equals(off, "on")))
        return GGUF_OK;
    if (!given)
        given = find_setting(from = "HUGGING_FACE_HUB_TOKEN");
    if (!given && (path = token_path()))
        given = text = read_token(from = path);
    enum gguf_status st = GGUF_OK;
    const bool plain = !given || trim_slashes(given, out);
    if (given && (strlen(given) >= MAX_TOKEN_FILE ||
                  (*out && strlen(*out) > MAX_TOKEN)))
        st = gguf_error_set(err, GGUF_E_INVALID,
                            "the token in %s is longer than %d bytes", from,
                            (int)MAX_TOKEN);
    else if (!plain)
        st = gguf_error_set(err, GGUF_E_INVALID,
                            "the token in %s has characters that no token can "
                            "have",
                            from);
    if (st != GGUF_OK) {
        free(*out);
        *out = NULL;
    }
    free(text);
    free(path);
    return st;
}
