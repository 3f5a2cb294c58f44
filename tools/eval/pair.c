/* SPDX-License-Identifier: MIT */
/* pair.c - joining two texts, a query and a document, for a reranker
 *
 * A file with a chat template named "rerank" has a text with the places
 * "{query}" and "{document}". In other files special tokens stand around and
 * between the texts, as tokenizer.json's post_processor puts them:
 *
 *     [BOS] query [EOS] [SEP] document [EOS]
 *
 * each if the keys tokenizer.ggml.add_..._token say so; a vocabulary without
 * EOS has SEP in its place. So do programs that use llama.cpp's --pooling rank.
 * In models with types of tokens (BERT), the document and what follows it has
 * type 1.
 */
#include "config.h"
#include "tools/eval/eval.h"
#include "tools/common/msg.h"

#include <stdlib.h>
#include <string.h>

static const struct gguf_kv *find_key(const struct ev_model *m,
                                      const char *key)
{
    const struct gguf_kv *kv = m->meta ? gguf_meta_find(m->meta, key) : NULL;
    return kv ? kv : gguf_file_kv_find(m->file, key);
}

static bool has_classifier(const struct eval *e)
{
    static const char *const names[] = { "cls.weight", "cls.output.weight" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (gguf_file_tensor_find(e->model.file, names[i]))
            return true;
    return false;
}

bool eval_pair_begin(struct eval *e, struct eval_pair *p)
{
    uint64_t n_types = 1;
    *p = (struct eval_pair){ .text = { GGUF_TOKENS_INIT, GGUF_TOKENS_INIT } };
    if (!has_classifier(e))
        return msg_error(e->model.path,
                         "lacks a classifier (cls.weight or "
                         "cls.output.weight): it is not a reranker");
    const struct gguf_kv *kv =
        find_key(&e->model, "tokenizer.chat_template.rerank");
    if (gguf_kv_get_str(kv, &p->template, NULL) != GGUF_OK)
        p->template = (struct gguf_str){ NULL, 0 };
    kv = find_key(&e->model, "tokenizer.ggml.token_type_count");
    if (gguf_kv_get_uint(kv, &n_types, NULL) != GGUF_OK)
        n_types = 1;
    p->has_types = n_types > 1;
    return true;
}

void eval_pair_end(struct eval_pair *p)
{
    gguf_tokens_fini(&p->text[0]);
    gguf_tokens_fini(&p->text[1]);
    free(p->type);
    free(p->filled);
}

/* ---- by a template ---- */

static void append_text(struct eval_pair *p, size_t *n, struct gguf_str s)
{
    p->filled = msg_grow(p->filled, &p->room, *n + s.size + 1, 1);
    if (s.size)
        memcpy(p->filled + *n, s.data, s.size);
    *n += s.size;
}

static bool begins_with(struct gguf_str s, const char *what)
{
    const size_t n = strlen(what);
    return s.size >= n && !memcmp(s.data, what, n);
}

/* Tokens of special texts are found in the whole, as by other programs. */
static enum gguf_status fill_template(struct eval *e, struct eval_pair *p,
                                      struct gguf_str query,
                                      struct gguf_str document,
                                      struct gguf_tokens *t)
{
    static const char *const place[] = { "{query}", "{document}" };
    const struct gguf_str text[] = { query, document };
    struct gguf_str rest = p->template;
    size_t n = 0;
    while (rest.size) {
        size_t used = 1, k;
        for (k = 0; k < 2 && !begins_with(rest, place[k]); k++)
            ;
        if (k < 2)
            used = strlen(place[k]);
        append_text(p, &n,
                    k < 2 ? text[k] : (struct gguf_str){ rest.data, 1 });
        rest.data += used;
        rest.size -= used;
    }
    return gguf_vocab_tokenize(gguf_model_vocab(e->model.model), p->filled, n,
                               GGUF_TOKENIZE_PARSE_SPECIAL, t, &e->err);
}

/* ---- by special tokens ---- */

struct joiner {
    gguf_token bos, eos, sep; /* GGUF_TOKEN_NONE: not added */
};

static struct joiner find_joiner(const struct gguf_vocab *v)
{
    gguf_token eos = gguf_vocab_special_id(v, GGUF_SPECIAL_EOS);
    const gguf_token sep = gguf_vocab_special_id(v, GGUF_SPECIAL_SEP);
    if (eos == GGUF_TOKEN_NONE)
        eos = sep;
    return (struct joiner){ gguf_vocab_wants_bos(v)
                                ? gguf_vocab_special_id(v, GGUF_SPECIAL_BOS)
                                : GGUF_TOKEN_NONE,
                            gguf_vocab_wants_eos(v) ? eos : GGUF_TOKEN_NONE,
                            gguf_vocab_wants_sep(v) ? sep : GGUF_TOKEN_NONE };
}

/* Drop the last token of the longer text, of the second if both are equal
 * (transformers' strategy longest_first), until all fit. */
static bool cut_longest(struct gguf_tokens text[2], size_t most)
{
    bool cut = false;
    while (text[0].n + text[1].n > most && text[0].n + text[1].n) {
        text[text[0].n > text[1].n ? 0 : 1].n--;
        cut = true;
    }
    return cut;
}

static void put_tokens(struct gguf_tokens *t, const gguf_token *id, size_t n)
{
    if (n && *id != GGUF_TOKEN_NONE) {
        memcpy(t->id + t->n, id, n * sizeof *id);
        t->n += n;
    }
}

static enum gguf_status join_texts(struct eval *e, struct eval_pair *p,
                                   const struct gguf_str text[2], size_t most,
                                   bool *cut, struct gguf_tokens *t)
{
    enum { SPECIAL = 4 };
    const struct gguf_vocab *v = gguf_model_vocab(e->model.model);
    const struct joiner j = find_joiner(v);
    const size_t n_special = (j.bos != GGUF_TOKEN_NONE) +
                             2 * (size_t)(j.eos != GGUF_TOKEN_NONE) +
                             (j.sep != GGUF_TOKEN_NONE);
    for (int k = 0; k < 2; k++) {
        p->text[k].n = 0;
        const enum gguf_status st = gguf_vocab_tokenize(
            v, text[k].data, text[k].size, 0, &p->text[k], &e->err);
        if (st != GGUF_OK)
            return st;
    }
    if (most)
        *cut = cut_longest(p->text, most > n_special ? most - n_special : 0);
    t->id = msg_grow(t->id, &t->cap, p->text[0].n + p->text[1].n + SPECIAL,
                     sizeof *t->id);
    put_tokens(t, &j.bos, 1);
    put_tokens(t, p->text[0].id, p->text[0].n);
    put_tokens(t, &j.eos, 1);
    put_tokens(t, &j.sep, 1);
    const size_t second = t->n;
    put_tokens(t, p->text[1].id, p->text[1].n);
    put_tokens(t, &j.eos, 1);
    p->type = msg_grow(p->type, &p->n_type, t->n + 1, sizeof *p->type);
    for (size_t i = 0; i < t->n; i++)
        p->type[i] = p->has_types && i >= second;
    return GGUF_OK;
}

enum gguf_status eval_pair_tokenize(struct eval *e, struct eval_pair *p,
                                    struct gguf_str query,
                                    struct gguf_str document, size_t most,
                                    bool *cut, struct gguf_tokens *t)
{
    const struct gguf_str text[2] = { query, document };
    t->n = 0;
    *cut = false;
    return p->template.size ? fill_template(e, p, query, document, t)
                            : join_texts(e, p, text, most, cut, t);
}
