/* SPDX-License-Identifier: MIT */
/* token_lookup.c - find tokens by text and id, lists of tokens, warnings */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

void gg_vocab_warn(const struct gguf_vocab *v, const char *fmt, ...)
{
    char line[320];
    va_list ap;
    if (!v->warn.fn)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    v->warn.fn(v->warn.user, line);
}

size_t gguf_vocab_n_tokens(const struct gguf_vocab *v)
{
    return v->n_tokens;
}

struct gguf_str gguf_vocab_model(const struct gguf_vocab *v)
{
    return gg_str_z(v->algo->model);
}

struct gguf_str gguf_vocab_token_text(const struct gguf_vocab *v,
                                      gguf_token id)
{
    return gg_vocab_has_id(v, id) ? v->token[id].text : GG_STR("");
}

enum gguf_token_kind gguf_vocab_token_kind(const struct gguf_vocab *v,
                                           gguf_token id)
{
    return gg_vocab_has_id(v, id) ? (enum gguf_token_kind)v->token[id].kind
                                  : GGUF_TOKEN_UNDEFINED;
}

float gguf_vocab_token_score(const struct gguf_vocab *v, gguf_token id)
{
    return gg_vocab_has_id(v, id) ? v->token[id].score : 0;
}

gguf_token gguf_vocab_find_token(const struct gguf_vocab *v,
                                 struct gguf_str text)
{
    if (!v->has_index)
        return GGUF_TOKEN_NONE;
    uint32_t id = gg_index_find(&v->index, text);
    return id == GG_INDEX_NONE ? GGUF_TOKEN_NONE : (gguf_token)id;
}

gguf_token gguf_vocab_special_id(const struct gguf_vocab *v,
                                 enum gguf_special_token which)
{
    return (unsigned)which < GGUF_N_SPECIAL ? v->special[which]
                                            : GGUF_TOKEN_NONE;
}

bool gguf_vocab_wants_bos(const struct gguf_vocab *v)
{
    return v->add_bos;
}

bool gguf_vocab_wants_eos(const struct gguf_vocab *v)
{
    return v->add_eos;
}

bool gguf_vocab_wants_sep(const struct gguf_vocab *v)
{
    return v->add_sep;
}

bool gguf_vocab_is_eog(const struct gguf_vocab *v, gguf_token id)
{
    return gg_vocab_has_id(v, id) && v->token[id].eog;
}

enum gguf_status gg_vocab_tokens_reserve(struct gguf_tokens *t, size_t n,
                                         struct gguf_error *err)
{
    if (n <= t->cap - t->n)
        return GGUF_OK;
    size_t least = n > SIZE_MAX - t->n ? SIZE_MAX : GG_MAX(t->n + n, 64);
    void *grown =
        gg_mem_grow(t->allocator, t->id, &t->cap, sizeof *t->id, least, err);
    if (!grown)
        return GGUF_E_NOMEM;
    t->id = grown;
    return GGUF_OK;
}

void gguf_tokens_fini(struct gguf_tokens *t)
{
    gg_mem_free(t->allocator, t->id);
    t->id = NULL;
    t->n = t->cap = 0;
}
