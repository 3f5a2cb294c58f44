/* SPDX-License-Identifier: MIT */
/* remote_none.c - remote_http.h in a build without libcurl */
#include "config.h"
#include "tools/common/remote_http.h"

enum gguf_status remote_http_open(const char *url, struct gguf_reader *out,
                                  struct gguf_error *err)
{
    (void)url, (void)out;
    return gguf_error_set(err, GGUF_E_UNSUPPORTED,
                          "this build has no libcurl, which reads files on "
                          "servers: download the file first");
}
