/* SPDX-License-Identifier: MIT */
/* remote_curl.h - libcurl, loaded when it is first needed */
#ifndef TOOLS_REMOTE_CURL_H
#define TOOLS_REMOTE_CURL_H

#include <gguf/status.h>

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#define REMOTE_CURL_CALLS(X)                                                  \
    X(global_init)                                                            \
    X(global_cleanup)                                                         \
    X(easy_init)                                                              \
    X(easy_setopt)                                                            \
    X(easy_perform)                                                           \
    X(easy_getinfo)                                                           \
    X(easy_cleanup)                                                           \
    X(easy_strerror)                                                          \
    X(slist_append)                                                           \
    X(slist_free_all)                                                         \
    X(free)                                                                   \
    X(url)                                                                    \
    X(url_cleanup)                                                            \
    X(url_set)                                                                \
    X(url_get)

struct remote_curl {
#define X(NAME) __typeof__(curl_##NAME) *NAME;
    REMOTE_CURL_CALLS(X)
#undef X
};

/* Load libcurl. GGUF_E_UNSUPPORTED: it is not installed, or too old. */
enum gguf_status remote_curl_load(struct remote_curl *f,
                                  struct gguf_error *err);

/* Set the certificates that environment variables name, as the program curl
 * and huggingface_hub do; libcurl itself ignores these variables. */
void remote_curl_certificates(const struct remote_curl *f, CURL *c);

#endif
