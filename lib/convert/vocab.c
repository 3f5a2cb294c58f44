/* vocab.c - the tokenizer of a folder */
#include "config.h"
#include "convert/vocab.h"

#include "base/str.h"
#include "vocab/pretok.h"

#include <stdio.h>
#include <string.h>

#define SCORE_PAD (-10000.0f)

enum gguf_status gg_convert_vocab_grow(struct gg_convert_vocab *v, int64_t n,
                                       float score, struct gguf_error *err)
{
    const struct gguf_allocator *a = v->c->p.allocator;
    if (n <= (int64_t)v->n)
        return GGUF_OK;
    if (n > GG_CONVERT_MOST_TOKENS)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%" PRId64 " tokens, limit is %" PRId64, n,
                            GG_CONVERT_MOST_TOKENS);
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

int64_t gg_convert_vocab_find(const struct gg_convert_vocab *v,
                              struct gguf_str token)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->token[i].data && gg_str_eq(v->token[i], token))
            return (int64_t)i;
    return -1;
}

/* As many tokens as the model has rows; those of no text get one. */
static enum gguf_status fill(struct gg_convert_vocab *v,
                             struct gguf_error *err)
{
    int64_t size;
    char text[32];
    if (gg_convert_count(v->c, "vocab_size", &size))
        GG_TRY(gg_convert_vocab_grow(v, size, SCORE_PAD, err));
    for (size_t i = 0; i < v->n; i++) {
        if (v->token[i].data)
            continue;
        const int n = snprintf(text, sizeof text, "[PAD%zu]", i);
        v->token[i].data = gg_mem_arena_strndup(&v->c->arena, text, (size_t)n);
        v->token[i].size = (size_t)n;
        if (!v->token[i].data)
            return gg_error_set_nomem(err, (size_t)n);
        v->type[i] = GG_CONVERT_UNUSED;
    }
    return GGUF_OK;
}

static enum gguf_status set_meta(const struct gg_convert_vocab *v,
                                 struct gguf_error *err)
{
    struct gguf_meta *m = v->c->meta;
    GG_TRY(gguf_meta_set_strz(m, "tokenizer.ggml.model", v->model, err));
    GG_TRY(gguf_meta_set_strz(m, "tokenizer.ggml.pre", v->pre, err));
    GG_TRY(gguf_meta_set_str_array(m, "tokenizer.ggml.tokens", v->token, v->n,
                                   err));
    if (v->has_scores)
        GG_TRY(gguf_meta_set_array(m, "tokenizer.ggml.scores", GGUF_VAL_F32,
                                   v->score, v->n, err));
    GG_TRY(gguf_meta_set_array(m, "tokenizer.ggml.token_type", GGUF_VAL_I32,
                               v->type, v->n, err));
    if (v->n_merges)
        GG_TRY(gguf_meta_set_str_array(m, "tokenizer.ggml.merges", v->merge,
                                       v->n_merges, err));
    return GGUF_OK;
}

static enum gguf_status read(struct gg_convert_vocab *v,
                             struct gguf_error *err)
{
    static const char name[] = "tokenizer.model";
    struct gg_mapfile m = { .fd = -1 };
    bool there;
    GG_TRY(gg_convert_map(v->c, name, &m, &there, err));
    enum gguf_status st;
    if (there) {
        st = gg_convert_in(name, gg_convert_vocab_spm(v, &m, err), err);
        gg_mapfile_close(&m);
    } else {
        st = gg_convert_in("tokenizer.json", gg_convert_vocab_json(v, err),
                           err);
    }
    GG_TRY(st);
    if (v->c->p.pre) {
        struct gguf_str pre = gg_str_z(v->c->p.pre);
        struct gg_str_esc e;
        if (!gg_pretok_known(pre))
            return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                "'%s' is no name of a pre-tokenizer",
                                gg_str_esc(&e, pre));
        v->pre = v->c->p.pre;
    }
    if (!v->pre)
        GG_TRY(gg_convert_in("tokenizer.json", gg_convert_vocab_pre(v, err),
                             err));
    GG_TRY(gg_convert_vocab_added(v, err));
    GG_TRY(fill(v, err));
    GG_TRY(set_meta(v, err));
    return gg_convert_vocab_special(v, err);
}

enum gguf_status gg_convert_vocab(struct gguf_convert *c,
                                  struct gguf_error *err)
{
    struct gg_convert_vocab v = { .c = c, .space_prefix = -1 };
    enum gguf_status st = read(&v, err);
    gg_mem_free(c->p.allocator, v.token);
    gg_mem_free(c->p.allocator, v.score);
    gg_mem_free(c->p.allocator, v.type);
    gg_mem_free(c->p.allocator, v.merge);
    return st;
}
