/* SPDX-License-Identifier: MIT */
/* remote_curl.c - libcurl, loaded when it is first needed
 *
 * Loading libcurl and the libraries that it needs takes 9 ms, three times as
 * long as the rest of a short program run.
 */
#include "config.h"
#include "tools/common/remote_curl.h"
#include "base/os/os_program.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const libraries[] = { "libcurl.so.4", "libcurl-gnutls.so.4",
                                         "libcurl.4.dylib", "libcurl.so" };

enum gguf_status remote_curl_load(struct remote_curl *f,
                                  struct gguf_error *err)
{
    static const struct {
        const char *name;
        size_t at;
    } rows[] = {
#define X(NAME) { "curl_" #NAME, offsetof(struct remote_curl, NAME) },
        REMOTE_CURL_CALLS(X)
#undef X
    };
    void *lib = NULL;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !lib; i++)
        lib = gg_os_library_load(libraries[i]);
    if (!lib)
        return gguf_error_set(err, GGUF_E_UNSUPPORTED,
                              "libcurl is not installed, which reads files on "
                              "servers (%s)",
                              libraries[0]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *call = gg_os_library_find(lib, rows[i].name);
        if (!call)
            return gguf_error_set(err, GGUF_E_UNSUPPORTED,
                                  "libcurl has no %s: it is older than 7.62",
                                  rows[i].name);
        memcpy((char *)f + rows[i].at, &call, sizeof call);
    }
    return GGUF_OK;
}

void remote_curl_certificates(const struct remote_curl *f, CURL *c)
{
    static const struct {
        const char *name;
        CURLoption option;
    } rows[] = {
        { "SSL_CERT_FILE", CURLOPT_CAINFO },
        { "SSL_CERT_DIR", CURLOPT_CAPATH },
        { "REQUESTS_CA_BUNDLE", CURLOPT_CAINFO },
        { "CURL_CA_BUNDLE", CURLOPT_CAINFO },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *v = getenv(rows[i].name);
        if (v && *v)
            f->easy_setopt(c, rows[i].option, v);
    }
}
