/* SPDX-License-Identifier: MIT */
/* vocab_tokens.c - the list of tokens while it is read */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/str.h"

#include <string.h>

enum gguf_status gg_convert_vocab_grow(struct gg_convert_vocab *v, int64_t n,
                                       float score, struct gguf_error *err)
{
    const struct gguf_allocator *a = v->folder->p->allocator;
    if (n <= (int64_t)v->n)
        return GGUF_OK;
    const int64_t most = v->most ? v->most : GG_CONVERT_MOST_TOKENS;
    if (n > most)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%" PRId64 " tokens, of %" PRId64
                            " rows of the embedding: limit is %" PRId64,
                            n, v->rows, most);
    if ((size_t)n > v->room) {
        size_t rooms[3] = { v->room, v->room, v->room };
        void *p = gg_mem_grow(a, v->token, &rooms[0], sizeof *v->token,
                              (size_t)n, err);
        if (!p)
            return GGUF_E_NOMEM;
        v->token = p;
        p = gg_mem_grow(a, v->score, &rooms[1], sizeof *v->score, (size_t)n,
                        err);
        if (!p)
            return GGUF_E_NOMEM;
        v->score = p;
        p = gg_mem_grow(a, v->type, &rooms[2], sizeof *v->type, (size_t)n,
                        err);
        if (!p)
            return GGUF_E_NOMEM;
        v->type = p;
        v->room = rooms[0];
    }
    for (; v->n < (size_t)n; v->n++) {
        v->token[v->n] = (struct gguf_str){ NULL, 0 };
        v->score[v->n] = score;
        v->type[v->n] = GG_CONVERT_UNUSED;
    }
    return GGUF_OK;
}

static struct gguf_str text_of(const void *user, uint32_t id)
{
    return ((const struct gg_convert_vocab *)user)->token[id];
}

enum gguf_status gg_convert_vocab_fill_index(const struct gg_convert_vocab *v,
                                             struct gg_index *ix, size_t n,
                                             struct gguf_error *err)
{
    *ix = (struct gg_index){ .allocator = v->folder->p->allocator };
    return gg_index_init(ix, v->folder->p->allocator, (uint32_t)n, text_of, v,
                         err);
}

int64_t gg_convert_vocab_find(const struct gg_convert_vocab *v,
                              struct gguf_str token)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->token[i].data && gg_str_eq(v->token[i], token))
            return (int64_t)i;
    return -1;
}

bool gg_convert_vocab_next_line(struct gg_convert_line *l)
{
    const uint64_t size = l->map->size - l->next;
    const char *p = (const char *)l->map->data + l->next;
    if (!size)
        return false;
    const char *end = memchr(p, '\n', (size_t)size);
    l->text = (struct gguf_str){ p, end ? (size_t)(end - p) : (size_t)size };
    l->off = l->next;
    l->next += l->text.size + (end != NULL);
    l->text.size -= end > p && end[-1] == '\r';
    l->no++;
    return true;
}
