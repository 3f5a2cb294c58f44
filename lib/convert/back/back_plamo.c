/* SPDX-License-Identifier: MIT */
/* back_plamo.c - the vocabulary of PLaMo 2 and 3 as vocab_plamo.c reads it */
#include "config.h"
#include "convert/back/back_vocab.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_of(int32_t type)
{
    return type == GG_CONVERT_NORMAL    ? "NORMAL"
           : type == GG_CONVERT_UNKNOWN ? "UNKNOWN"
           : type == GG_CONVERT_CONTROL ? "CONTROL"
           : type == GG_CONVERT_BYTE    ? "BYTE"
                                        : NULL;
}

/* A line for token i; NULL: it cannot be one. */
static char *line_of(const struct gg_back_tokens *t, size_t i)
{
    const struct gguf_str s = t->text[i];
    const char *kind = kind_of(t->types[i]);
    if (!kind || !isfinite(t->scores[i]) || memchr(s.data, 0, s.size))
        return NULL;
    json_t *list =
        json_pack("[s%, f, s]", s.data, s.size, (double)t->scores[i], kind);
    return gg_json_make_text(list, JSON_REAL_PRECISION(9));
}

/* Those that fill the model's rows come last. */
static size_t n_used(const struct gg_back_tokens *t)
{
    size_t n = t->n_used;
    while (n && t->types[n - 1] == GG_CONVERT_UNUSED &&
           gg_str_starts(t->text[n - 1], "[PAD"))
        n--;
    return n;
}

enum gguf_status gg_back_put_plamo(const struct gg_back_tokens *t,
                                   json_t *config, struct gg_back_text *out,
                                   struct gguf_error *err)
{
    size_t size = 0, n = 0, room = 4096;
    const size_t end = n_used(t);
    char *text = malloc(room);
    /* a reader finds this token by its position */
    json_object_set_new(config, "eot_token", json_null());
    for (size_t i = 0; i < end && text; i++) {
        char *line = line_of(t, i);
        size = line ? strlen(line) : 0;
        if (!line) {
            free(text);
            return gg_back_vocab_fail(
                "a token is unused, not UTF-8, or has no "
                "finite score",
                err);
        }
        if (room - n < size + 2) {
            char *grown = realloc(text, room = 2 * room + size);
            if (!grown)
                free(text);
            text = grown;
        }
        if (text) {
            memcpy(text + n, line, size);
            n += size;
            text[n++] = '\n';
        }
        free(line);
    }
    if (!text)
        return gg_error_set_nomem(err, room);
    *out = (struct gg_back_text){ "tokenizer.jsonl", text, n };
    return GGUF_OK;
}
