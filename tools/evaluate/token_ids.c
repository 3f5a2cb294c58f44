/* SPDX-License-Identifier: MIT */
/* token_ids.c - reading token ids from a file */
#include "config.h"
#include "tools/evaluate/model.h"
#include "tools/common/msg.h"
#include "tools/common/textfile.h"

#include <stdlib.h>

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Parse the ids of a text. A number that is too large is not valid, either; it
 * must only not overflow. */
static bool parse_ids(const char *path, const char *text, size_t size,
                      size_t n_vocab, struct ev_ids *ids)
{
    for (size_t i = 0; i < size;) {
        if (is_blank(text[i])) {
            i++;
            continue;
        }
        const size_t begin = i;
        uint64_t id = 0;
        for (; i < size && text[i] >= '0' && text[i] <= '9'; i++)
            id = id < UINT32_MAX ? id * 10 + (uint64_t)(text[i] - '0') : id;
        if (i == begin || (i < size && !is_blank(text[i])))
            return msg_error(path,
                             "byte %zu: expected a token id, a decimal number",
                             begin);
        if (id >= n_vocab) {
            const size_t n = i - begin;
            return msg_error(
                path,
                "byte %zu: token id %.*s%s, expected less than %zu, the size of "
                "the vocabulary (id number %zu of the file)",
                begin, n < 24 ? (int)n : 24, text + begin, n > 24 ? "..." : "",
                n_vocab, ids->n + 1);
        }
        if (ids->n == ids->room)
            ids->id =
                msg_grow(ids->id, &ids->room, ids->n + 1, sizeof *ids->id);
        ids->id[ids->n++] = (gguf_token)id;
    }
    return true;
}

bool ev_read_ids(const char *path, uint64_t limit, size_t n_vocab,
                 struct ev_ids *ids)
{
    char *text = NULL;
    size_t size = 0;
    const bool good = textfile_read(path, limit, &text, &size) &&
                      parse_ids(path, text, size, n_vocab, ids);
    free(text);
    return good;
}
