/* SPDX-License-Identifier: MIT */
/* vocab.c - the vocabulary: create, tokenize, detokenize */
#include "config.h"
#include "vocab/clean_spaces.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"
#include "file/file_int.h"

enum gguf_status gguf_vocab_create(struct gguf_vocab **out,
                                   const struct gguf_file *file,
                                   const struct gguf_vocab_params *params,
                                   struct gguf_error *err)
{
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_vocab_params", err));
    if (!file)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET, "no file");
    struct gguf_vocab *v = gg_mem_alloc_zero(p.allocator, 1, sizeof *v);
    if (!v)
        return gg_error_set_nomem(err, sizeof *v);
    v->allocator = p.allocator;
    v->file = file;
    v->warn = p.warn;
    v->pre = p.pre;
    enum gguf_status st = GGUF_OK;
    if (p.meta)
        st = gg_file_create_with_pairs(&v->altered, file, p.meta, p.allocator,
                                       err);
    if (v->altered)
        v->file = v->altered;
    if (st == GGUF_OK)
        st = gg_vocab_load(v, err);
    if (st != GGUF_OK) {
        gguf_vocab_destroy(v);
        return st;
    }
    if (v->pre && !v->bpe)
        gg_vocab_warn(v,
                      "a vocabulary of the kind '%s' does not cut words by a "
                      "name of tokenizer.ggml.pre: '%s' is not used",
                      v->algo->model, v->pre);
    *out = v;
    return GGUF_OK;
}

void gguf_vocab_destroy(struct gguf_vocab *v)
{
    if (!v)
        return;
    if (v->algo && v->algo->unload)
        v->algo->unload(v);
    if (v->has_index)
        gg_index_fini(&v->index);
    gg_vocab_split_unload(v);
    gg_vocab_trie_fini(&v->trie, v->allocator);
    gg_mem_free(v->allocator, v->ugm_score);
    gg_mem_free(v->allocator, v->plamo2_score);
    gg_mem_free(v->allocator, v->token);
    gguf_file_close(v->altered);
    gg_mem_free(v->allocator, v);
}

/* ---- text to tokens ---- */

static enum gguf_status encode_pieces(const struct gguf_vocab *v,
                                      const char *text,
                                      const struct gg_vocab_piece *p, size_t n,
                                      struct gguf_tokens *out,
                                      struct gguf_error *err)
{
    bool prefix = true;
    for (size_t i = 0; i < n; i++) {
        if (p[i].id == GGUF_TOKEN_NONE)
            GG_TRY(v->algo->encode(v, text + p[i].off, p[i].size, prefix, out,
                                   err));
        else
            GG_TRY(gg_vocab_tokens_push(out, p[i].id, err));
        prefix = p[i].id != GGUF_TOKEN_NONE;
    }
    return GGUF_OK;
}

static enum gguf_status push_end(const struct gguf_vocab *v,
                                 enum gguf_special_token which,
                                 const char *name, struct gguf_tokens *out,
                                 struct gguf_error *err)
{
    if (v->special[which] == GGUF_TOKEN_NONE)
        return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                            "the vocabulary wants a %s token and lacks it",
                            name);
    return gg_vocab_tokens_push(out, v->special[which], err);
}

enum gguf_status gguf_vocab_tokenize(const struct gguf_vocab *v,
                                     const char *text, size_t size,
                                     unsigned flags, struct gguf_tokens *out,
                                     struct gguf_error *err)
{
    if (!v->algo->encode)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "the file has no vocabulary (tokenizer.ggml.model is "
            "'%s')",
            v->algo->model);
    size_t n_before = out->n, n;
    bool special = flags & GGUF_TOKENIZE_ADD_SPECIAL;
    struct gg_vocab_piece *p;
    GG_TRY(gg_vocab_split_text(
        v, text, size, flags & GGUF_TOKENIZE_PARSE_SPECIAL, &p, &n, err));
    enum gguf_status st = GGUF_OK;
    if (special && (v->algo->wraps || (v->add_bos && !v->algo->no_ends)))
        st = push_end(v, GGUF_SPECIAL_BOS, "BOS", out, err);
    if (st == GGUF_OK)
        st = encode_pieces(v, text, p, n, out, err);
    if (st == GGUF_OK && special && v->algo->wraps)
        st = push_end(v, GGUF_SPECIAL_SEP, "SEP", out, err);
    else if (st == GGUF_OK && special && v->add_eos && !v->algo->no_ends)
        st = push_end(v, GGUF_SPECIAL_EOS, "EOS", out, err);
    gg_mem_free(v->allocator, p);
    if (st != GGUF_OK)
        out->n = n_before;
    return st;
}

/* ---- tokens to text ---- */

static void put_text(struct gg_vocab_sink *s, struct gguf_str t)
{
    for (size_t i = 0; i < t.size; i++)
        gg_vocab_sink_put(s, t.data[i]);
}

static void put_token(const struct gguf_vocab *v, gguf_token id,
                      unsigned flags, struct gg_vocab_sink *s)
{
    if (!gg_vocab_has_id(v, id))
        return;
    const struct gg_vocab_token *t = &v->token[id];
    bool control =
        t->kind == GGUF_TOKEN_CONTROL || t->kind == GGUF_TOKEN_UNKNOWN;
    if (v->algo->one_text && t->kind != GGUF_TOKEN_BYTE) {
        if (!control || flags & GGUF_DETOKENIZE_SPECIAL)
            v->algo->put(v, id, s);
        return;
    }
    switch ((enum gguf_token_kind)t->kind) {
    case GGUF_TOKEN_NORMAL: v->algo->put(v, id, s); break;
    case GGUF_TOKEN_USER: put_text(s, t->text); break;
    case GGUF_TOKEN_CONTROL:
    case GGUF_TOKEN_UNKNOWN:
        if (flags & GGUF_DETOKENIZE_SPECIAL)
            put_text(s, t->text);
        break;
    case GGUF_TOKEN_BYTE:
        gg_vocab_sink_put(s, (char)gg_vocab_byte_text(t->text));
        break;
    case GGUF_TOKEN_UNDEFINED:
    case GGUF_TOKEN_UNUSED: break;
    }
}

size_t gguf_vocab_piece(const struct gguf_vocab *v, gguf_token id,
                        unsigned flags, char *out, size_t size)
{
    struct gg_vocab_sink s = { out, size, 0, false, NULL };
    put_token(v, id, flags, &s);
    return s.n;
}

/* Detokenize, and remove the blanks before punctuation. */
static size_t detokenize_clean(const struct gguf_vocab *v,
                               const gguf_token *id, size_t n, unsigned flags,
                               struct gg_vocab_sink *s)
{
    struct gg_vocab_space_cleaner c = { .out = s };
    for (size_t i = 0; i < n; i++) {
        struct gg_vocab_sink none = { NULL, 0, 0, false, &c };
        put_token(v, id[i], flags, &none);
    }
    gg_vocab_clean_end(&c);
    return s->n;
}

size_t gguf_vocab_detokenize(const struct gguf_vocab *v, const gguf_token *id,
                             size_t n, unsigned flags, char *out, size_t size)
{
    bool strip = flags & GGUF_DETOKENIZE_STRIP;
    if (strip && n && v->add_bos && id[0] == v->special[GGUF_SPECIAL_BOS]) {
        id++;
        n--;
    }
    gguf_token last =
        v->special[v->algo->wraps ? GGUF_SPECIAL_SEP : GGUF_SPECIAL_EOS];
    if (strip && n && (v->add_eos || v->algo->wraps) && id[n - 1] == last)
        n--;
    struct gg_vocab_sink s = { out, size, 0, v->add_space_prefix, NULL };
    if (v->algo->clean)
        return detokenize_clean(v, id, n, flags, &s);
    for (size_t i = 0; i < n; i++)
        put_token(v, id[i], flags, &s);
    return s.n;
}
