/* SPDX-License-Identifier: MIT */
/* fuzz_answer.c - headers of a server's answer, and addresses in texts */
#include "config.h"
#include "tests/fuzz/fuzz.h"
#include "tools/common/address.h"
#include "tools/common/remote_response.h"

#include <string.h>

/* A range begins before its end and lies in the whole; an etag is a text. */
static void read_headers(const uint8_t *data, size_t size)
{
    struct remote_response a = { .ranged = false };
    while (size) {
        const uint8_t *end = memchr(data, '\n', size);
        const size_t n = end ? (size_t)(end - data) + 1 : size;
        remote_response_read_line(&a, (const char *)data, n);
        MUST(!a.ranged || (a.from <= a.to && a.to < a.total));
        MUST(memchr(a.etag, 0, sizeof a.etag));
        data += n;
        size -= n;
    }
}

/* After secrets were removed from a text, none is found in it. */
static void hide_secrets(const uint8_t *data, size_t size)
{
    char *s = malloc(size + 1), *again = malloc(size + 1);
    MUST(s && again);
    memcpy(s, data, size);
    s[size] = 0;
    const size_t before = strlen(s);
    address_remove_secrets(s);
    MUST(strlen(s) <= before);
    strcpy(again, s);
    address_remove_secrets(again);
    MUST(strlen(again) <= strlen(s));
    struct address_secret x;
    if (address_find_secret(s, &x))
        MUST(x.user >= s && x.user + x.n_user <= s + strlen(s) &&
             x.query + x.n_query == s + strlen(s));
    free(s);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_headers(data, size);
    hide_secrets(data, size);
    return 0;
}

void fuzz_make_seeds(void)
{
    seed_text(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/100\r\n"
        "ETag: \"abc\"\r\nContent-Encoding: identity\r\n");
    seed_text(
        "HTTP/1.1 416\r\ncontent-range: bytes */18446744073709551615\r\n");
    seed_text("Content-Range: bytes 9-0/18446744073709551616\r\nETag: ");
    seed_text(
        "(curl -LO 'https://me:pw@host:80/a/b?token=x#y'), see ftp://a:b@c");
    seed_text("hf://o/r@main/f?x http://a@b@c:1/ http://a:/b@c");
}
