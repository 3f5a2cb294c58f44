/* SPDX-License-Identifier: MIT */
/* vocab_wpm.c - read WordPiece: tokenizer.json, or vocab.txt with a token a
 * line
 *
 * In these files tokens inside a word begin with "##". In GGUF files tokens
 * that begin a word have U+2581 before them and the others nothing; control and
 * user tokens are unchanged. lib/vocab/wpm.c normalises texts: lower case and
 * accents have keys; other normalizers are refused. transformers replaces words
 * of more than max_input_chars_per_word characters (100) by the unknown token;
 * here they are cut like others.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

#define MARK "\xe2\x96\x81" /* U+2581 */

/* By gg_convert_roles: the tokens of BertTokenizer if no file names others. */
static const char *const role_texts[GG_CONVERT_ROLES] = {
    NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]", NULL,
};

/* ---- tokens in the form of a GGUF file ---- */

static enum gguf_status rewrite_token(struct gg_convert_vocab *v, size_t i,
                                      struct gguf_error *err)
{
    struct gguf_str *t = &v->token[i];
    if (!t->data || v->type[i] == GG_CONVERT_CONTROL ||
        v->type[i] == GG_CONVERT_USER)
        return GGUF_OK;
    if (gg_str_starts(*t, "##")) {
        t->data += 2;
        t->size -= 2;
        return GGUF_OK;
    }
    const size_t n = sizeof MARK - 1;
    char *text = gg_mem_arena_alloc(v->folder->arena, n + t->size + 1);
    if (!text)
        return gg_error_set_nomem(err, n + t->size + 1);
    memcpy(text, MARK, n);
    memcpy(text + n, t->data, t->size);
    text[n + t->size] = 0;
    *t = (struct gguf_str){ text, n + t->size };
    return GGUF_OK;
}

/* After tokens were added. */
static enum gguf_status finish_tokens(struct gg_convert_vocab *v,
                                      struct gguf_error *err)
{
    for (size_t i = 0; i < GG_CONVERT_ROLES; i++) {
        const int64_t id = gg_convert_vocab_find_role(v, i);
        if (id >= 0)
            v->type[id] = GG_CONVERT_CONTROL;
    }
    for (size_t i = 0; i < v->n; i++)
        GG_TRY(rewrite_token(v, i, err));
    return GGUF_OK;
}

/* Without keys, readers lower the case, and remove accents if they lower the
 * case. */
static enum gguf_status set_keys(struct gg_convert_vocab *v,
                                 struct gguf_error *err)
{
    struct gguf_meta *m = v->meta;
    GG_TRY(gguf_meta_set_bool(m, "tokenizer.ggml.normalizer.lowercase",
                              v->lowercase, err));
    return v->strip_accents == v->lowercase
               ? GGUF_OK
               : gguf_meta_set_bool(m,
                                    "tokenizer.ggml.normalizer.strip_accents",
                                    v->strip_accents, err);
}

static void set_kind(struct gg_convert_vocab *v)
{
    v->model = "bert";
    if (!v->pre)
        v->pre = "default"; /* no reader asks for it */
    v->role_text = role_texts;
    v->unique = true;
    v->finish = finish_tokens;
    v->last_keys = set_keys;
}

/* ---- tokenizer.json ---- */

static enum gguf_status refuse_value(const struct gg_convert_vocab *v,
                                     const json_t *at, const char *what,
                                     struct gguf_error *err)
{
    return gg_error_set(
        err, GGUF_E_UNSUPPORTED,
        gg_json_offset_of(&v->folder->text[GG_CONVERT_TOKENIZER].json, at),
        "%s", what);
}

struct steps {
    bool bert, lowercase, strip, nfd;
};

static enum gguf_status read_bert(const struct gg_convert_vocab *v,
                                  const json_t *step, struct steps *s,
                                  struct gguf_error *err)
{
    const json_t *strip = json_object_get(step, "strip_accents");
    const bool lower = !json_is_false(json_object_get(step, "lowercase"));
    if (json_is_false(json_object_get(step, "clean_text")))
        return refuse_value(v, step,
                            "control characters stay in texts "
                            "(\"clean_text\" is false), which GGUF cannot "
                            "express",
                            err);
    if (json_is_false(json_object_get(step, "handle_chinese_chars")))
        return refuse_value(v, step,
                            "Chinese characters are not words of their own "
                            "(\"handle_chinese_chars\" is false), which "
                            "GGUF cannot express",
                            err);
    s->bert = true;
    s->lowercase |= lower;
    s->strip |= json_is_boolean(strip) ? json_is_true(strip) : lower;
    return GGUF_OK;
}

/* json.c bounds the depth */
static enum gguf_status read_steps(const struct gg_convert_vocab *v,
                                   const json_t *step, struct steps *s,
                                   struct gguf_error *err)
{
    const json_t *list = json_object_get(step, "normalizers");
    struct gguf_str type;
    if (!gg_json_str(json_object_get(step, "type"), &type))
        return refuse_value(v, step, "WordPiece without a normalizer", err);
    if (gg_str_eqz(type, "BertNormalizer"))
        return read_bert(v, step, s, err);
    if (gg_str_eqz(type, "Sequence")) {
        for (size_t i = 0; i < json_array_size(list); i++)
            GG_TRY(read_steps(v, json_array_get(list, i), s, err));
        return GGUF_OK;
    }
    if (gg_str_eqz(type, "Lowercase"))
        s->lowercase = true;
    else if (gg_str_eqz(type, "NFD"))
        s->nfd = true;
    else if (gg_str_eqz(type, "StripAccents"))
        s->strip = true;
    else
        return gg_convert_vocab_refuse_step(v, step, err);
    return GGUF_OK;
}

enum gguf_status gg_convert_vocab_read_wpm(struct gg_convert_vocab *v,
                                           const json_t *root, json_t *model,
                                           struct gguf_error *err)
{
    const json_t *normalizer = json_object_get(root, "normalizer");
    const json_t *cut = json_object_get(root, "pre_tokenizer");
    const json_t *sign = json_object_get(model, "continuing_subword_prefix");
    struct steps s = { .bert = false };
    struct gguf_str text;
    struct gg_str_esc e;
    GG_TRY(
        gg_convert_vocab_read_pieces(v, json_object_get(model, "vocab"), err));
    if (gg_json_str(sign, &text) && !gg_str_eqz(text, "##"))
        return refuse_value(v, sign,
                            "pieces within words do not begin with ##", err);
    GG_TRY(read_steps(v, normalizer, &s, err));
    if (!s.bert || (s.nfd && !s.strip))
        return refuse_value(v, normalizer,
                            "WordPiece with a normalizer that is not BERT's",
                            err);
    if (!gg_json_str(json_object_get(cut, "type"), &text))
        text = GG_STR("none");
    if (!gg_str_eqz(text, "BertPreTokenizer"))
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED,
            gg_json_offset_of(&v->folder->text[GG_CONVERT_TOKENIZER].json,
                              cut),
            "WordPiece with a pre-tokenizer of type '%s'",
            gg_str_esc(&e, text));
    if (gg_json_str(json_object_get(model, "unk_token"), &text))
        v->unk = gg_convert_vocab_find(v, text);
    v->lowercase = s.lowercase;
    v->strip_accents = s.strip;
    set_kind(v);
    return GGUF_OK;
}

/* ---- vocab.txt ---- */

/* false: the member of tokenizer_config.json has another value. */
static bool config_is(const struct gg_convert_vocab *v, const char *key,
                      bool value)
{
    const json_t *root =
        v->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    const json_t *e = json_object_get(root, key);
    return !json_is_boolean(e) || json_is_true(e) == value;
}

static enum gguf_status check_config(const struct gg_convert_vocab *v,
                                     struct gguf_error *err)
{
    static const char *const classes[] = { "BertTokenizer",
                                           "DistilBertTokenizer",
                                           "ElectraTokenizer" };
    const json_t *root =
        v->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    struct gguf_str name;
    struct gg_str_esc e;
    bool known = !gg_json_str(json_object_get(root, "tokenizer_class"), &name);
    for (size_t i = 0; i < GG_LEN(classes) && !known; i++)
        known = gg_str_starts(name, classes[i]);
    if (!known)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "a tokenizer of class '%s' is not supported",
                            gg_str_esc(&e, name));
    if (!config_is(v, "tokenize_chinese_chars", true))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "Chinese characters are not words of their own "
                            "(\"tokenize_chinese_chars\" is false), which "
                            "GGUF cannot express");
    if (!config_is(v, "do_basic_tokenize", true))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "texts are cut at blanks only "
                            "(\"do_basic_tokenize\" is false), which GGUF "
                            "cannot express");
    return GGUF_OK;
}

enum gguf_status gg_convert_vocab_read_wpm_txt(struct gg_convert_vocab *v,
                                               const struct gg_mapfile *m,
                                               struct gguf_error *err)
{
    const json_t *root =
        v->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    const json_t *strip = json_object_get(root, "strip_accents");
    struct gg_convert_line l = { .map = m };
    while (gg_convert_vocab_next_line(&l)) {
        const size_t i = v->n;
        if (!l.text.size || !gg_str_utf8_valid(l.text.data, l.text.size))
            return gg_error_set(err, GGUF_E_VOCAB, l.off, "line %zu %s", l.no,
                                l.text.size ? "is not UTF-8" : "is empty");
        GG_TRY(gg_convert_vocab_grow(v, (int64_t)i + 1, 0, err));
        v->token[i].data =
            gg_mem_arena_strndup(v->folder->arena, l.text.data, l.text.size);
        v->token[i].size = l.text.size;
        if (!v->token[i].data)
            return gg_error_set_nomem(err, l.text.size);
        v->type[i] = GG_CONVERT_NORMAL;
    }
    if (!v->n)
        return gg_error_set(err, GGUF_E_VOCAB, 0, "no tokens");
    GG_TRY(check_config(v, err));
    v->lowercase = config_is(v, "do_lower_case", true);
    v->strip_accents =
        json_is_boolean(strip) ? json_is_true(strip) : v->lowercase;
    set_kind(v);
    return GGUF_OK;
}
