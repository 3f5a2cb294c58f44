/* SPDX-License-Identifier: MIT */
/* vocab_normalizer.c - check the normalizer of tokenizer.json, which rewrites
 * texts before they are tokenized
 *
 * GGUF has keys for BERT's normalizer (vocab_wpm.c) and for SentencePiece's
 * table (vocab_ugm.c). For a BPE with SentencePiece's pieces it can express
 * that blanks become U+2581 and that a text may get one in front. All other
 * steps are refused, since a file without them would give other tokens. NFC is
 * ignored with a note: nearly all texts are in that form.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>

#define MARK "\xe2\x96\x81" /* U+2581 */

static bool is_text(const json_t *v, const char *z)
{
    struct gguf_str s;
    return gg_json_str(v, &s) && gg_str_eqz(s, z);
}

/* Text of a step for a message, cut if it is long. */
struct shown {
    char s[40];
};

static const char *show_text(struct shown *to, const json_t *text)
{
    struct gguf_str s = { "", 0 };
    (void)gg_json_str(text, &s);
    gg_str_escape(to->s, sizeof to->s, s.data, s.size);
    return to->s;
}

/* A step's type and texts, for messages. */
static void describe_step(const json_t *step, char *out, size_t size)
{
    struct shown type, from, to;
    const json_t *pattern = json_object_get(step, "pattern");
    const json_t *regex = json_object_get(pattern, "Regex");
    const json_t *prepend = json_object_get(step, "prepend");
    show_text(&type, json_object_get(step, "type"));
    if (pattern)
        snprintf(out, size, "'%s' ('%s' becomes '%s')", type.s,
                 show_text(&from,
                           regex ? regex : json_object_get(pattern, "String")),
                 show_text(&to, json_object_get(step, "content")));
    else if (prepend)
        snprintf(out, size, "'%s' ('%s')", type.s, show_text(&to, prepend));
    else
        snprintf(out, size, "'%s'", type.s);
}

enum gguf_status gg_convert_vocab_refuse_step(const struct gg_convert_vocab *v,
                                              const json_t *step,
                                              struct gguf_error *err)
{
    char what[3 * sizeof(struct shown) + 20];
    describe_step(step, what, sizeof what);
    if (v->folder->p->ignore_normalizer) {
        gg_folder_warn(v->folder,
                       "a normalizer of type %s is ignored: texts "
                       "that it changes get other tokens",
                       what);
        return GGUF_OK;
    }
    return gg_error_set(
        err, GGUF_E_UNSUPPORTED,
        gg_json_offset_of(&v->folder->text[GG_CONVERT_TOKENIZER].json, step),
        "GGUF cannot express a normalizer of type %s; "
        "without it some texts get other tokens "
        "(--ignore-normalizer ignores it)",
        what);
}

static bool replaces_blanks(const json_t *step)
{
    const json_t *pattern = json_object_get(step, "pattern");
    return is_text(json_object_get(step, "content"), MARK) &&
           (is_text(json_object_get(pattern, "String"), " ") ||
            is_text(json_object_get(pattern, "Regex"), " "));
}

/* Check the form of a step: it must have a type, and a sequence a list of
 * steps. */
static enum gguf_status check_form(const struct gg_convert_vocab *v,
                                   const json_t *step, struct gguf_error *err)
{
    struct gguf_str type;
    const char *what = NULL;
    if (!gg_json_str(json_object_get(step, "type"), &type))
        what = "is no object with a text \"type\"";
    else if (gg_str_eqz(type, "Sequence") &&
             !json_is_array(json_object_get(step, "normalizers")))
        what = "of type 'Sequence' has no list \"normalizers\"";
    return what ? gg_error_set(
                      err, GGUF_E_VOCAB,
                      gg_json_offset_of(
                          &v->folder->text[GG_CONVERT_TOKENIZER].json, step),
                      "a normalizer %s", what)
                : GGUF_OK;
}

/* json.c bounds the depth */
static enum gguf_status check_step(const struct gg_convert_vocab *v,
                                   const json_t *step, bool blanks,
                                   bool prefix, struct gguf_error *err)
{
    const json_t *list = json_object_get(step, "normalizers");
    const json_t *type = json_object_get(step, "type");
    if (!step || json_is_null(step))
        return GGUF_OK;
    GG_TRY(check_form(v, step, err));
    if (is_text(type, "Sequence")) {
        for (size_t i = 0; i < json_array_size(list); i++)
            GG_TRY(
                check_step(v, json_array_get(list, i), blanks, prefix, err));
        return GGUF_OK;
    }
    if (is_text(type, "NFC")) {
        gg_folder_note(v->folder,
                       "GGUF cannot express the normalizer NFC: texts "
                       "that are not in NFC get other tokens");
        return GGUF_OK;
    }
    if ((blanks && is_text(type, "Replace") && replaces_blanks(step)) ||
        (prefix && gg_convert_vocab_is_prepend_step(step)))
        return GGUF_OK;
    return gg_convert_vocab_refuse_step(v, step, err);
}

bool gg_convert_vocab_is_prepend_step(const json_t *step)
{
    return is_text(json_object_get(step, "type"), "Prepend") &&
           is_text(json_object_get(step, "prepend"), MARK);
}

enum gguf_status
gg_convert_vocab_check_normalizer(const struct gg_convert_vocab *v,
                                  bool blanks, bool prefix,
                                  struct gguf_error *err)
{
    const json_t *root = v->folder->text[GG_CONVERT_TOKENIZER].json.root;
    return check_step(v, json_object_get(root, "normalizer"), blanks, prefix,
                      err);
}
