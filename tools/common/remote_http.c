/* SPDX-License-Identifier: MIT */
/* remote_http.c - reading ranges of bytes from a server, by libcurl
 *
 * RFC 9110: 14 (ranges), 15.4 (redirects).
 *
 * Responses are not trusted. A range must begin at the requested offset, lie
 * within the file and have the promised length, and the size of the file must
 * not change between responses. Headers, error texts, the number of short
 * responses and the time of a transfer are limited.
 *
 * Redirects are followed here, not by libcurl: the token is sent only to
 * scheme, host and port of the Hub, and no redirect leads from https to http.
 */
#include "config.h"
#include "tools/common/remote_http.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"
#include "tools/common/remote_response.h"
#include "tools/common/remote_curl.h"
#include "tools/common/remote_url.h"
#include "tools/common/text.h"
#include "tools/common/nocase.h"
#include "base/os/os.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SKIP = 256 << 20, /* most bytes to skip if the server ignores ranges */
    MAX_REDIRECTS = 10,
    MAX_TRIES = 3, /* attempts after temporary failures */
    MAX_URL = 16384,
    MAX_HEAD = 256 << 10,  /* most bytes of headers for one request */
    MAX_ERROR = 64 << 10,  /* most bytes of the text of an error */
    SHORT_ANSWERS = 16,    /* number of short responses that are allowed */
    SHORT_BYTES = 1 << 14, /* bytes that allow one more */
    MIN_RATE = 1000,       /* least bytes a second, on average over IDLE_S */
    CONNECT_S = 20,        /* most seconds to connect */
    IDLE_S = 30            /* most seconds without a byte */
};

/* One connection for all files, one request at a time. */
static struct {
    struct remote_curl f;
    CURL *curl;
    char *hub;   /* scheme://host:port of the Hub */
    char *token; /* token for the Hub, or NULL */
    char why[CURL_ERROR_SIZE];
} net;

/* A request for the bytes off .. off+n of a file, into dst. */
struct request {
    struct remote *r;
    uint64_t off;
    size_t n, got;
    uint8_t *dst;
    size_t head, said; /* bytes of headers, and of the text of an error */

    struct remote_response a; /* headers of the response */
    bool checked;
    uint64_t skip; /* bytes to skip */
    struct gguf_error *err;
    enum gguf_status st; /* result of the checks */
};

static enum gguf_status fail_request(struct request *q, enum gguf_status st,
                                     const char *what)
{
    if (q->st == GGUF_OK)
        q->st = gguf_error_set(q->err, st, "%s", what);
    return q->st;
}

/* ---- responses ---- */

static size_t on_header(char *line, size_t one, size_t n, void *user)
{
    struct request *q = user;
    (void)one;
    q->head += n;
    if (q->head > MAX_HEAD) {
        fail_request(q, GGUF_E_LIMIT,
                     "the server sends more headers than are accepted");
        return 0;
    }
    remote_response_read_line(&q->a, line, n);
    return n;
}

static long status_of(void)
{
    long code = 0;
    net.f.easy_getinfo(net.curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

/* Size and entity tag of the file must be those of the first response. */
static void check_whole(struct request *q)
{
    struct remote *r = q->r;
    if (r->size == UINT64_MAX) {
        r->size = q->a.total;
        memcpy(r->etag, q->a.etag, sizeof r->etag);
    } else if (r->size != q->a.total) {
        fail_request(q, GGUF_E_MISMATCH,
                     "has another size on the server than before");
    } else if (strcmp(r->etag, q->a.etag) != 0) {
        fail_request(q, GGUF_E_MISMATCH, "has changed on the server");
    }
}

/* Check the headers; called before the first byte of a body, and after a
 * response without one. */
static void check_answer(struct request *q)
{
    curl_off_t length = -1;
    if (q->checked)
        return;
    q->checked = true;
    net.f.easy_getinfo(net.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (q->a.packed) {
        fail_request(q, GGUF_E_UNSUPPORTED,
                     "the server sends the file compressed, without ranges");
        return;
    }
    if (status_of() == 206) {
        if (!q->a.ranged || q->a.from != q->off || q->a.to - q->a.from >= q->n)
            fail_request(q, GGUF_E_FORMAT,
                         "the server sends another range than requested");
        else if (length >= 0 && (uint64_t)length != q->a.to - q->a.from + 1)
            fail_request(
                q, GGUF_E_FORMAT,
                "the length that the server announces is not that of its "
                "range");
        else
            check_whole(q);
        return;
    }
    /* 200: the whole file from the beginning */
    if (length < 0) {
        fail_request(q, GGUF_E_UNSUPPORTED,
                     "the server supports no ranges, and does not send the "
                     "size");
        return;
    }
    q->a.total = (uint64_t)length;
    check_whole(q);
    q->skip = q->off;
    if (q->off > MAX_SKIP)
        fail_request(
            q, GGUF_E_UNSUPPORTED,
            "the server supports no ranges: each access would read the file "
            "from its first byte; download it first");
}

static size_t on_data(char *p, size_t one, size_t n, void *user)
{
    struct request *q = user;
    const long status = status_of();
    const size_t all = n;
    (void)one;
    if (status != 206 && status != 200) { /* text of an error */
        q->said += n;
        return q->said > MAX_ERROR ? 0 : n;
    }
    check_answer(q);
    if (q->st != GGUF_OK)
        return 0;
    const size_t skip = q->skip < n ? (size_t)q->skip : n;
    q->skip -= skip;
    n -= skip;
    const size_t want = q->n - q->got;
    memcpy(q->dst + q->got, p + skip, n < want ? n : want);
    q->got += n < want ? n : want;
    if (n > want && status == 206)
        fail_request(q, GGUF_E_FORMAT, "the server sends more than its range");
    return q->got == q->n && n > want ? 0 : all;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c,
                       curl_off_t d)
{
    (void)user, (void)a, (void)b, (void)c, (void)d;
    return progress_stopped();
}

/* ---- addresses ---- */

/* Return scheme://host:port of url, to be freed. NULL: it is not an https or
 * http address, or has a user or password. */
static char *origin_of(const char *url)
{
    struct text t = { NULL, 0, 0 };
    CURLU *u = net.f.url();
    char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL,
         *pass = NULL;
    if (u && strlen(url) < MAX_URL &&
        !net.f.url_set(u, CURLUPART_URL, url, 0) &&
        net.f.url_get(u, CURLUPART_USER, &user, 0) == CURLUE_NO_USER &&
        net.f.url_get(u, CURLUPART_PASSWORD, &pass, 0) == CURLUE_NO_PASSWORD &&
        !net.f.url_get(u, CURLUPART_SCHEME, &scheme, 0) &&
        !net.f.url_get(u, CURLUPART_HOST, &host, 0) &&
        !net.f.url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) &&
        (nocase_equals(scheme, "https") || nocase_equals(scheme, "http"))) {
        text_addf(&t, "%s://%s:%s", scheme, host, port);
        for (char *p = t.s; *p; p++)
            if (*p >= 'A' && *p <= 'Z')
                *p = (char)(*p - 'A' + 'a');
    }
    net.f.free(scheme);
    net.f.free(host);
    net.f.free(port);
    net.f.free(user);
    net.f.free(pass);
    net.f.url_cleanup(u);
    return t.s;
}

/* ---- requests ---- */

static void net_end(void)
{
    net.f.easy_cleanup(net.curl);
    free(net.hub);
    free(net.token);
    net.f.global_cleanup();
}

static long idle_seconds(void)
{
    const char *v = getenv("HF_HUB_DOWNLOAD_TIMEOUT");
    const long n = v ? strtol(v, NULL, 10) : 0;
    return n > 0 && n < 3600 ? n : IDLE_S;
}

static void set_options(CURL *c)
{
    const long idle = idle_seconds();
    remote_curl_certificates(&net.f, c);
    net.f.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    net.f.easy_setopt(c, CURLOPT_USERAGENT, PACKAGE_NAME "/" PACKAGE_VERSION);
    net.f.easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    net.f.easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    net.f.easy_setopt(c, CURLOPT_CONNECTTIMEOUT,
                      idle < CONNECT_S ? idle : (long)CONNECT_S);
    net.f.easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)MIN_RATE);
    net.f.easy_setopt(c, CURLOPT_LOW_SPEED_TIME, idle);
    net.f.easy_setopt(c, CURLOPT_ERRORBUFFER, net.why);
    net.f.easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    net.f.easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
    net.f.easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    net.f.easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
    net.f.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https,http");
#else
    net.f.easy_setopt(c, CURLOPT_PROTOCOLS,
                      (long)(CURLPROTO_HTTPS | CURLPROTO_HTTP));
#endif
}

/* Set up the connection, once. */
static enum gguf_status net_begin(struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    if (net.curl)
        return st;
    if ((st = remote_curl_load(&net.f, err)) != GGUF_OK)
        return st;
    if (net.f.global_init(CURL_GLOBAL_DEFAULT) ||
        !(net.curl = net.f.easy_init()))
        return gguf_error_set(err, GGUF_E_NOMEM,
                              "libcurl cannot be "
                              "initialised");
    set_options(net.curl);
    net.hub = origin_of(remote_hub());
    if (!net.hub)
        st = gguf_error_set(err, GGUF_E_INVALID,
                            "HF_ENDPOINT is not an https or http address");
    if (st == GGUF_OK)
        st = remote_token(&net.token, err);
    if (st == GGUF_OK) {
        atexit(net_end);
        return st;
    }
    net_end();
    net.curl = NULL;
    net.hub = NULL;
    return st;
}

static enum gguf_status fail_status(long status, bool with_token,
                                    struct gguf_error *err)
{
    if (status == 404 || status == 410)
        return gguf_error_set(err, GGUF_E_NOTFOUND,
                              "the server has no such file (HTTP %ld)",
                              status);
    if (status == 401 || status == 403)
        return gguf_error_set(
            err, GGUF_E_IO,
            with_token
                ? "the token that was sent gives no access to it (HTTP %ld)"
                : "the server gives access only with a token (HTTP %ld): for "
                  "files of the Hub, set HF_TOKEN",
            status);
    return gguf_error_set(err, GGUF_E_IO, "the server answers HTTP %ld",
                          status);
}

/* Is the failure temporary? */
static bool is_transient(CURLcode c, long status)
{
    return c == CURLE_COULDNT_CONNECT || c == CURLE_RECV_ERROR ||
           c == CURLE_SEND_ERROR || c == CURLE_GOT_NOTHING ||
           c == CURLE_PARTIAL_FILE ||
           (c == CURLE_OK &&
            (status == 429 || status == 500 || status == 502 ||
             status == 503 || status == 504));
}

/* Send q to url. *status receives the HTTP status, or 0. */
static CURLcode send_once(struct request *q, const char *url, bool with_token,
                          long *status)
{
    char range[64], header[4200];
    struct curl_slist *list = NULL;
    snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, q->off,
             q->off + q->n - 1);
    q->checked = false;
    q->a = (struct remote_response){ .ranged = false };
    q->got = q->head = q->said = 0;
    q->skip = 0;
    net.why[0] = '\0';
    if (with_token) {
        snprintf(header, sizeof header, "Authorization: Bearer %s", net.token);
        list = msg_must(net.f.slist_append(NULL, header));
    }
    net.f.easy_setopt(net.curl, CURLOPT_HTTPHEADER, list);
    net.f.easy_setopt(net.curl, CURLOPT_URL, url);
    net.f.easy_setopt(net.curl, CURLOPT_RANGE, range);
    net.f.easy_setopt(net.curl, CURLOPT_HEADERDATA, q);
    net.f.easy_setopt(net.curl, CURLOPT_WRITEDATA, q);
    CURLcode c = net.f.easy_perform(net.curl);
    *status = status_of();
    net.f.easy_setopt(net.curl, CURLOPT_HTTPHEADER, NULL);
    net.f.slist_free_all(list);
    memset(header, 0, sizeof header);
    if (c == CURLE_WRITE_ERROR && q->st == GGUF_OK &&
        (q->got == q->n || q->said > MAX_ERROR))
        c = CURLE_OK; /* all requested bytes have arrived */
    return c;
}

static CURLcode send_some(struct request *q, const char *url, bool with_token,
                          long *status)
{
    CURLcode c = CURLE_OK;
    for (int i = 0; i < MAX_TRIES; i++) {
        if (i)
            gg_os_sleep(i == 1 ? 300000000 : 1000000000);
        c = send_once(q, url, with_token, status);
        if (q->st != GGUF_OK || !is_transient(c, *status) ||
            progress_stopped())
            break;
    }
    return c;
}

/* Return the target of a redirect, to be freed. NULL: q has the error. */
static char *follow_redirect(struct request *q, const char *from)
{
    char *to = NULL, *next = NULL;
    net.f.easy_getinfo(net.curl, CURLINFO_REDIRECT_URL, &to);
    char *origin = to ? origin_of(to) : NULL;
    if (!origin)
        fail_request(
            q, GGUF_E_FORMAT,
            "the server redirects to an address that is not https or http");
    else if (nocase_begins(from, "https:") &&
             strncmp(origin, "https:", 6) != 0)
        fail_request(
            q, GGUF_E_UNSUPPORTED,
            "the server redirects from https to http, which is not followed");
    else
        next = msg_copy(to);
    free(origin);
    return next;
}

/* Turn a response that is not a redirect into a status. */
static enum gguf_status finish_request(struct request *q, CURLcode c,
                                       long status, bool with_token)
{
    if (q->st != GGUF_OK)
        return q->st;
    if (progress_stopped())
        return fail_request(q, GGUF_E_CANCELLED, "was stopped");
    if (c == CURLE_OPERATION_TIMEDOUT)
        return q->st = gguf_error_set(
                   q->err, GGUF_E_IO,
                   q->got || q->said
                       ? "the server sends fewer than %d bytes a second"
                       : "the server does not answer in time",
                   (int)MIN_RATE);
    /* also returned for a header line of over 100 KB */
    if (c == CURLE_OUT_OF_MEMORY)
        return fail_request(
            q, GGUF_E_LIMIT,
            "a header line of the server is too long, or memory ran out");
    if (c != CURLE_OK)
        return q->st = gguf_error_set(q->err, GGUF_E_IO, "%s",
                                      net.why[0] ? net.why
                                                 : net.f.easy_strerror(c));
    if (status == 416 && q->a.has_total && q->off == 0 && q->a.total == 0) {
        check_whole(q); /* an empty file has no ranges */
        return q->st;
    }
    if (status != 200 && status != 206)
        return q->st = fail_status(status, with_token, q->err);
    check_answer(q); /* needed if there was no body */
    if (q->st != GGUF_OK)
        return q->st;
    const uint64_t left = q->r->size > q->off ? q->r->size - q->off : 0;
    const uint64_t due = status == 206 ? q->a.to - q->a.from + 1
                         : left < q->n ? left
                                       : q->n;
    if (q->got > due)
        return fail_request(q, GGUF_E_FORMAT,
                            "the server sends more than its range");
    if (q->got < due)
        return fail_request(q, GGUF_E_TRUNCATED,
                            "the server sends fewer bytes than it announced");
    return GGUF_OK;
}

/* Send q, following redirects. */
static enum gguf_status send_request(struct request *q)
{
    struct remote *r = q->r;
    char *url = msg_copy(r->target ? r->target : r->url);
    for (int i = 0; q->st == GGUF_OK; i++) {
        long status;
        char *origin = origin_of(url);
        const bool with_token =
            net.token && origin && !strcmp(origin, net.hub);
        free(origin);
        const CURLcode c = send_some(q, url, with_token, &status);
        if (c == CURLE_OK && status >= 300 && status < 400 && status != 304) {
            char *to = follow_redirect(q, url);
            if (i == MAX_REDIRECTS)
                fail_request(q, GGUF_E_IO, "the server redirects too often");
            if (to) {
                free(url);
                url = to;
            }
            continue;
        }
        if (r->target && c == CURLE_OK && status >= 400 && status != 416) {
            /* addresses of redirects are valid for a limited time */
            free(r->target);
            free(url);
            r->target = NULL;
            url = msg_copy(r->url);
            continue;
        }
        (void)finish_request(q, c, status, with_token);
        break;
    }
    if (q->st == GGUF_OK && strcmp(url, r->url) != 0) {
        free(r->target);
        r->target = url;
        url = NULL;
    }
    free(url);
    return q->st;
}

/* Count a response that is shorter than requested. Some are allowed, but not a
 * server that needs a request for every few bytes. */
static enum gguf_status count_short(struct remote *r, const struct request *q)
{
    const uint64_t left = r->size - q->off;
    r->n_bytes += q->got;
    r->n_short += q->got < q->n && q->got < left;
    return r->n_short > SHORT_ANSWERS + r->n_bytes / SHORT_BYTES
               ? gguf_error_set(q->err, GGUF_E_LIMIT,
                                "the server sent %" PRIu64 " responses that "
                                "were shorter than requested, with %" PRIu64
                                " bytes in all",
                                r->n_short, r->n_bytes)
               : GGUF_OK;
}

enum gguf_status remote_http_read(struct remote *r, uint64_t off, uint8_t *dst,
                                  size_t n, struct gguf_error *err)
{
    while (n) {
        struct request q = {
            .r = r, .off = off, .n = n, .dst = dst, .err = err
        };
        if (send_request(&q) != GGUF_OK)
            return q.st;
        if (!q.got)
            return gguf_error_set(err, GGUF_E_TRUNCATED,
                                  "the server sends fewer bytes than it "
                                  "announced");
        const enum gguf_status st = count_short(r, &q);
        if (st != GGUF_OK)
            return st;
        off += q.got;
        dst += q.got;
        n -= q.got;
    }
    return GGUF_OK;
}

enum gguf_status remote_http_read_first(struct remote *r, size_t n,
                                        struct gguf_error *err)
{
    const enum gguf_status st = net_begin(err);
    if (st != GGUF_OK)
        return st;
    char *origin = origin_of(r->url);
    if (!origin)
        return gguf_error_set(
            err, GGUF_E_INVALID,
            "is not an https or http address, or has a user and password, "
            "which are not sent: set HF_TOKEN for files of the Hub");
    free(origin);
    struct request q = { .r = r, .n = n, .dst = r->buf, .err = err };
    if (send_request(&q) != GGUF_OK)
        return q.st;
    r->buf_n = q.got;
    r->next = q.got;
    return count_short(r, &q);
}
