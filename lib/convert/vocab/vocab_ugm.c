/* SPDX-License-Identifier: MIT */
/* vocab_ugm.c - read Unigram from tokenizer.json; steps that its readers share
 *
 * The model is a list of pieces with scores, in order of ids. Texts are
 * rewritten by SentencePiece's compiled table (in tokenizer.json the step
 * Precompiled, in base64); the steps around it treat blanks. Steps that
 * lib/vocab/ugm.c does not implement are refused.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/base64.h"
#include "base/compiler.h"
#include "base/str.h"
#include "vocab/charsmap.h"

#include <math.h>
#include <string.h>

#define CHARSMAP "tokenizer.ggml.precompiled_charsmap"

/* Tokens of roles (gg_convert_roles) in T5's tokenizer if no file names
 * them. */
static const char *const t5_roles[GG_CONVERT_ROLES] = {
    NULL, "</s>", "<unk>", NULL, "<pad>", NULL, NULL, NULL,
};

static enum gguf_status set_keys(struct gg_convert_vocab *v,
                                 struct gguf_error *err)
{
    struct gguf_meta *m = v->meta;
    GG_TRY(gguf_meta_set_bool(m, "tokenizer.ggml.add_space_prefix",
                              v->space_prefix > 0, err));
    v->space_prefix = -1; /* is written */
    GG_TRY(gguf_meta_set_bool(m, "tokenizer.ggml.remove_extra_whitespaces",
                              v->merge_spaces, err));
    return v->charsmap.size
               ? gguf_meta_set_array(m, CHARSMAP, GGUF_VAL_U8,
                                     v->charsmap.data, v->charsmap.size, err)
               : GGUF_OK;
}

enum gguf_status gg_convert_vocab_finish_unigram(struct gg_convert_vocab *v,
                                                 uint64_t off,
                                                 struct gguf_error *err)
{
    struct gg_vocab_charsmap m;
    v->model = "t5";
    if (!v->pre)
        v->pre = "default"; /* no reader asks for it */
    v->has_scores = v->unique = true;
    v->role_text = t5_roles;
    v->keys = set_keys;
    for (size_t i = 0; i < v->n && v->unk < 0; i++)
        if (v->type[i] == GG_CONVERT_UNKNOWN)
            v->unk = (int64_t)i;
    return gg_vocab_charsmap_init(&m, v->charsmap.data, v->charsmap.size, off,
                                  err);
}

/* ---- tokenizer.json ---- */

static const struct gg_json *tokenizer_json(const struct gg_convert_vocab *v)
{
    return &v->folder->text[GG_CONVERT_TOKENIZER].json;
}

static enum gguf_status refuse_value(const struct gg_convert_vocab *v,
                                     const json_t *at, enum gguf_status st,
                                     const char *what, struct gguf_error *err)
{
    return gg_error_set(err, st, gg_json_offset_of(tokenizer_json(v), at),
                        "%s", what);
}

static enum gguf_status decode64(struct gg_convert_vocab *v, const json_t *at,
                                 struct gguf_str s, struct gguf_error *err)
{
    size_t n;
    if (s.size % 4)
        return gg_error_set(err, GGUF_E_VOCAB,
                            gg_json_offset_of(tokenizer_json(v), at),
                            "the precompiled table has %zu digits of base64, "
                            "which are not a multiple of 4",
                            s.size);
    uint8_t *out = gg_mem_arena_alloc(v->folder->arena, s.size / 4 * 3 + 1);
    if (!out)
        return gg_error_set_nomem(err, s.size / 4 * 3 + 1);
    const size_t right = gg_base64_decode(s.data, s.size, out, &n);
    if (right < s.size)
        return gg_error_set(err, GGUF_E_VOCAB,
                            gg_json_offset_of(tokenizer_json(v), at),
                            "digit %zu of the precompiled table is byte "
                            "0x%02X, not one of base64",
                            right, (unsigned)(uint8_t)s.data[right]);
    v->charsmap = (struct gguf_str){ (const char *)out, n };
    return GGUF_OK;
}

static bool text_is(const json_t *v, const char *z)
{
    struct gguf_str s;
    return gg_json_str(v, &s) && gg_str_eqz(s, z);
}

#define MARK "\xe2\x96\x81"

/* Read a step Replace: several blanks by one, or a blank by its mark. */
static bool is_blank_step(struct gg_convert_vocab *v, const json_t *step)
{
    const json_t *pattern = json_object_get(step, "pattern");
    const json_t *content = json_object_get(step, "content");
    const bool mark = text_is(content, MARK);
    if (text_is(json_object_get(pattern, "Regex"), " {2,}") &&
        (mark || text_is(content, " "))) {
        v->merge_spaces = true;
        return true;
    }
    return mark && text_is(json_object_get(pattern, "String"), " ");
}

/* json.c bounds the depth */
static enum gguf_status read_step(struct gg_convert_vocab *v,
                                  const json_t *step, const char *list,
                                  struct gguf_error *err)
{
    const json_t *steps = json_object_get(step, list);
    struct gguf_str type, text;
    struct gg_str_esc e;
    if (!gg_json_str(json_object_get(step, "type"), &type))
        return json_is_object(step)
                   ? refuse_value(v, step, GGUF_E_VOCAB,
                                  "a step without a type", err)
                   : GGUF_OK;
    if (gg_str_eqz(type, "Sequence")) {
        for (size_t i = 0; i < json_array_size(steps); i++)
            GG_TRY(read_step(v, json_array_get(steps, i), list, err));
        return GGUF_OK;
    }
    if (gg_str_eqz(type, "Precompiled")) {
        const json_t *at = json_object_get(step, "precompiled_charsmap");
        if (json_is_null(at))
            return GGUF_OK;
        return gg_json_str(at, &text)
                   ? decode64(v, at, text, err)
                   : refuse_value(v, step, GGUF_E_VOCAB,
                                  "the step Precompiled has no table", err);
    }
    if (gg_str_eqz(type, "WhitespaceSplit"))
        v->merge_spaces = true;
    else if (gg_str_eqz(type, "Prepend"))
        v->space_prefix = 1;
    else if (gg_str_eqz(type, "Metaspace")) /* puts_blank */
        (void)0;
    else if (gg_str_eqz(type, "Strip") ||
             (gg_str_eqz(type, "Replace") && is_blank_step(v, step)))
        (void)0;
    else if (!strcmp(list, "normalizers"))
        return gg_convert_vocab_refuse_step(v, step, err);
    else
        return gg_error_set(err, GGUF_E_UNSUPPORTED,
                            gg_json_offset_of(tokenizer_json(v), step),
                            "Unigram with a step of type '%s', which GGUF "
                            "cannot express",
                            gg_str_esc(&e, type));
    return GGUF_OK;
}

static enum gguf_status read_piece(struct gg_convert_vocab *v,
                                   struct gg_json_scan *s, bool bytes,
                                   struct gguf_error *err)
{
    struct gguf_str text;
    double score = 0;
    const size_t i = v->n, at = s->value;
    const bool two = gg_json_scan_enter_list(s) && gg_json_scan_more(s) &&
                     gg_json_scan_str(s, &text) && gg_json_scan_more(s);
    const bool number = two && gg_json_scan_num(s, &score);
    const bool whole = number && !gg_json_scan_more(s);
    s->value = at; /* section, for messages */
    if (!two || (number && !whole))
        return gg_convert_vocab_fail_scan(
            s, "a piece is not a text and a score", err);
    if (!number || !isfinite((float)score))
        return gg_convert_vocab_fail_scan(
            s, "a piece's score is not a finite number", err);
    GG_TRY(gg_json_scan_end(s, err));
    GG_TRY(gg_convert_vocab_grow(v, (int64_t)i + 1, 0, err));
    v->token[i] = text;
    v->score[i] = (float)score;
    v->type[i] = bytes && gg_convert_vocab_is_byte(text) ? GG_CONVERT_BYTE
                                                         : GG_CONVERT_NORMAL;
    return GGUF_OK;
}

static enum gguf_status read_pieces(struct gg_convert_vocab *v,
                                    const json_t *list, bool bytes,
                                    struct gguf_error *err)
{
    static const char none[] = "the model has no list \"vocab\"";
    struct gg_json_scan s;
    if (!json_is_array(list))
        return refuse_value(v, list, GGUF_E_VOCAB, none, err);
    gg_json_scan_open(&s, tokenizer_json(v), list, v->folder->arena);
    while (gg_json_scan_more(&s))
        GG_TRY(read_piece(v, &s, bytes, err));
    GG_TRY(gg_json_scan_end(&s, err));
    return v->n ? GGUF_OK : refuse_value(v, list, GGUF_E_VOCAB, none, err);
}

enum gguf_status gg_convert_vocab_read_ugm(struct gg_convert_vocab *v,
                                           const json_t *root, json_t *model,
                                           struct gguf_error *err)
{
    const json_t *list = json_object_get(model, "vocab");
    const json_t *unk = json_object_get(model, "unk_id");
    const json_t *normalizer = json_object_get(root, "normalizer");
    const bool bytes = json_is_true(json_object_get(model, "byte_fallback"));
    int64_t id;
    GG_TRY(read_pieces(v, list, bytes, err));
    if (unk && !json_is_null(unk)) {
        if (!gg_json_int(unk, &id) || id < 0 || id >= (int64_t)v->n)
            return gg_error_set(err, GGUF_E_VOCAB,
                                gg_json_offset_of(tokenizer_json(v), unk),
                                "\"unk_id\" is not one of %zu pieces", v->n);
        v->type[id] = GG_CONVERT_UNKNOWN;
    }
    v->space_prefix = gg_convert_vocab_adds_space_prefix(v);
    GG_TRY(read_step(v, normalizer, "normalizers", err));
    GG_TRY(read_step(v, json_object_get(root, "pre_tokenizer"),
                     "pretokenizers", err));
    return gg_convert_vocab_finish_unigram(
        v,
        gg_json_offset_of(tokenizer_json(v), gg_convert_vocab_find_step(
                                                 normalizer, "Precompiled")),
        err);
}
