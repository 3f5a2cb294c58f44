/* SPDX-License-Identifier: MIT */
/* vocab_json.c - read tokenizer.json: a model of pieces and merges
 *
 * BPE on bytes written as letters becomes "gpt2". BPE on characters with byte
 * fallback is a SentencePiece model in this form and becomes "llama". That
 * algorithm joins the pair whose result has the highest score, so each piece
 * gets the negated number of the first merge that makes it. A table at the end
 * lists the readers of other models.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"
#include "vocab/vocab_int.h"

#include <stdio.h>
#include <string.h>

static const struct gg_json *tokenizer_json(const struct gg_convert_vocab *v)
{
    return &v->folder->text[GG_CONVERT_TOKENIZER].json;
}

static enum gguf_status refuse_value(const struct gg_convert_vocab *v,
                                     const json_t *at, const char *what,
                                     struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_VOCAB,
                        gg_json_offset_of(tokenizer_json(v), at), "%s", what);
}

/* ---- pieces ---- */

/* ---- merges ---- */

/* A part of a merge: blanks in it would end it, and are written as U+0120. */
static size_t put_part(char *out, struct gguf_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.size; i++)
        if (s.data[i] == ' ') {
            out[n++] = '\xc4';
            out[n++] = '\xa0';
        } else {
            out[n++] = s.data[i];
        }
    return n;
}

/* "left right", of a text as it is or of a pair. */
static enum gguf_status read_merge(struct gg_convert_vocab *v,
                                   struct gg_json_scan *s,
                                   struct gguf_str *out,
                                   struct gguf_error *err)
{
    static const char not_two[] = "a merge is not of two pieces";
    struct gguf_str a, b;
    const size_t at = s->value;
    if (gg_json_scan_str(s, out)) {
        const char *blank = memchr(out->data, ' ', out->size);
        return blank && blank != out->data &&
                       blank + 1 != out->data + out->size
                   ? GGUF_OK
                   : gg_convert_vocab_fail_scan(s, not_two, err);
    }
    const bool two = gg_json_scan_enter_list(s) && gg_json_scan_more(s) &&
                     gg_json_scan_str(s, &a) && gg_json_scan_more(s) &&
                     gg_json_scan_str(s, &b) && !gg_json_scan_more(s);
    s->value = at;
    if (!two || s->lex.what || !a.size || !b.size)
        return gg_convert_vocab_fail_scan(s, not_two, err);
    char *text =
        gg_mem_arena_alloc(v->folder->arena, 2 * (a.size + b.size) + 1);
    if (!text)
        return gg_error_set_nomem(err, a.size + b.size);
    size_t n = put_part(text, a);
    text[n++] = ' ';
    n += put_part(text + n, b);
    *out = (struct gguf_str){ text, n };
    return GGUF_OK;
}

static enum gguf_status read_merges(struct gg_convert_vocab *v,
                                    const json_t *merges,
                                    struct gguf_error *err)
{
    struct gg_json_scan s;
    size_t room = 0;
    if (!json_is_array(merges))
        return refuse_value(v, merges, "the model lacks the list \"merges\"",
                            err);
    gg_json_scan_open(&s, tokenizer_json(v), merges, v->folder->arena);
    while (gg_json_scan_more(&s)) {
        if (v->n_merges == room) {
            void *p = gg_mem_grow(v->folder->p->allocator, v->merge, &room,
                                  sizeof *v->merge, 1024, err);
            if (!p)
                return GGUF_E_NOMEM;
            v->merge = p;
        }
        GG_TRY(read_merge(v, &s, &v->merge[v->n_merges], err));
        v->n_merges++;
    }
    return gg_json_scan_end(&s, err);
}

/* ---- scores in place of merges ---- */

static enum gguf_status score_pieces(struct gg_convert_vocab *v,
                                     const json_t *model,
                                     struct gguf_error *err)
{
    struct gg_index ix;
    struct gguf_str unk, a, b;
    uint32_t other;
    size_t room = 0;
    for (size_t i = 0; i < v->n; i++)
        room = GG_MAX(room, v->token[i].size);
    char *text = gg_mem_arena_alloc(v->folder->arena, room);
    if (!text)
        return gg_error_set_nomem(err, room);
    enum gguf_status st = gg_convert_vocab_fill_index(v, &ix, v->n, err);
    if (!gg_json_str(json_object_get(model, "unk_token"), &unk))
        unk = (struct gguf_str){ NULL, 0 };
    for (size_t i = 0; i < v->n && st == GGUF_OK; i++) {
        v->score[i] = -(float)(v->n_merges + 1);
        if (!v->token[i].data)
            continue;
        if (gg_convert_vocab_is_byte(v->token[i]))
            v->type[i] = GG_CONVERT_BYTE;
        else if (unk.data && gg_str_eq(v->token[i], unk))
            v->type[i] = GG_CONVERT_UNKNOWN;
        st = gg_index_add(&ix, (uint32_t)i, &other, err);
    }
    for (size_t k = v->n_merges; k-- > 0 && st == GGUF_OK;) {
        /* a piece gets the score of the first merge that makes it */
        if (!gg_bpe_parse_merge(v->merge[k], &a, &b))
            continue;
        other = gg_index_find(&ix, gg_bpe_join(a, b, text, room));
        if (other != GG_INDEX_NONE)
            v->score[other] = -(float)(k + 1);
    }
    gg_index_fini(&ix);
    v->n_merges = 0;
    v->has_scores = true;
    return st;
}

/* A text that the model puts before or after pieces within a word would be in
 * no token's bytes. */
static enum gguf_status refuse_affix(const struct gg_convert_vocab *v,
                                     const json_t *model, const char *name,
                                     struct gguf_error *err)
{
    struct gguf_str s;
    struct gg_str_esc e;
    const json_t *affix = json_object_get(model, name);
    if (!gg_json_str(affix, &s) || !s.size)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_UNSUPPORTED,
                        gg_json_offset_of(tokenizer_json(v), affix),
                        "the model has %s '%s', which GGUF cannot "
                        "express for a BPE",
                        name, gg_str_esc(&e, s));
}

static enum gguf_status read_bpe(struct gg_convert_vocab *v,
                                 const json_t *root, json_t *model,
                                 struct gguf_error *err)
{
    (void)root;
    GG_TRY(refuse_affix(v, model, "continuing_subword_prefix", err));
    GG_TRY(refuse_affix(v, model, "end_of_word_suffix", err));
    GG_TRY(
        gg_convert_vocab_read_pieces(v, json_object_get(model, "vocab"), err));
    GG_TRY(read_merges(v, json_object_get(model, "merges"), err));
    const bool bytes = json_is_true(json_object_get(model, "byte_fallback"));
    const bool ranked = v->arch->pieces != NULL;
    GG_TRY(gg_convert_vocab_check_normalizer(v, bytes, bytes && !ranked, err));
    if (!bytes) {
        v->model = "gpt2";
        return GGUF_OK;
    }
    if (ranked)
        return gg_convert_vocab_set_ranked(v, err);
    v->model = "llama";
    if (!v->pre)
        v->pre = "default";
    v->space_prefix = gg_convert_vocab_adds_space_prefix(v);
    return score_pieces(v, model, err);
}

/* ---- all of them ---- */

static const struct {
    const char *type;
    enum gguf_status (*read)(struct gg_convert_vocab *v, const json_t *root,
                             json_t *model, struct gguf_error *err);
} models[] = {
    { "BPE", read_bpe },
    { "WordPiece", gg_convert_vocab_read_wpm },
    { "Unigram", gg_convert_vocab_read_ugm },
};

enum gguf_status gg_convert_vocab_read_json(struct gg_convert_vocab *v,
                                            struct gguf_error *err)
{
    const json_t *root = tokenizer_json(v)->root;
    json_t *model = json_object_get(root, "model");
    struct gguf_str type;
    struct gg_str_esc e;
    if (!json_is_object(model))
        return refuse_value(v, model, "there is no object \"model\"", err);
    if (!gg_json_str(json_object_get(model, "type"), &type))
        type = GG_STR("BPE"); /* older files have no type */
    for (size_t i = 0; i < GG_LEN(models); i++)
        if (gg_str_eqz(type, models[i].type))
            return models[i].read(v, root, model, err);
    return gg_error_set(
        err, GGUF_E_UNSUPPORTED, gg_json_offset_of(tokenizer_json(v), model),
        "a model of type '%s' is not supported", gg_str_esc(&e, type));
}
