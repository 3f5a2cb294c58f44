/* SPDX-License-Identifier: MIT */
/* back_rwkv.c - RWKV's vocabulary as vocab_rwkv.c reads it */
#include "config.h"
#include "convert/back/back_vocab.h"

#include "base/str.h"
#include "vocab/vocab_int.h"

#include <stdio.h>
#include <stdlib.h>

/* Write token i in ASCII to out, which has room for 4 bytes for each of its
 * bytes and 64 more. */
static size_t put_line(char *out, struct gguf_str t, size_t i)
{
    size_t n = (size_t)sprintf(out, "%zu b'", i), n_bytes = 0;
    for (size_t at = 0; at < t.size; n_bytes++) {
        const unsigned c = (uint8_t)gg_vocab_rwkv_byte(t, &at);
        n += (size_t)sprintf(
            out + n,
            c < ' ' || c > '~' || c == '\'' || c == '\\' ? "\\x%02x" : "%c",
            c);
    }
    return n + (size_t)sprintf(out + n, "' %zu\n", n_bytes);
}

enum gguf_status gg_back_put_rwkv(const struct gg_back_tokens *t,
                                  json_t *config, struct gg_back_text *out,
                                  struct gguf_error *err)
{
    size_t size = 1, n = 0;
    (void)config;
    for (size_t i = 1; i < t->n_used; i++) {
        if (t->types[i] != GG_CONVERT_NORMAL || !t->text[i].size)
            return gg_back_vocab_fail(
                "a token has no text or is not a normal token", err);
        size += 4 * t->text[i].size + 64;
    }
    if (!t->n_used || t->types[0] != GG_CONVERT_CONTROL ||
        !gg_str_eqz(t->text[0], "<s>"))
        return gg_back_vocab_fail("token 0 is not the control token <s>", err);
    char *text = malloc(size);
    if (!text)
        return gg_error_set_nomem(err, size);
    for (size_t i = 1; i < t->n_used; i++)
        n += put_line(text + n, t->text[i], i);
    *out = (struct gg_back_text){ "rwkv_vocab_v20230424.txt", text, n };
    return GGUF_OK;
}
