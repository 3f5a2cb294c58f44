/* SPDX-License-Identifier: MIT */
/* vocab_pre.c - pre-tokenizers, recognised by their description
 *
 * The section pre_tokenizer of tokenizer.json is written as one line, its steps
 * separated by blanks, and compared with known descriptions of the rows of
 * vocab/pretok_row.c:
 *
 *     Split(EXPRESSION)   cut where it matches; matches are words of their own
 *     Digits              each digit is a word; Digits+: runs of digits
 *     Punctuation         each punctuation mark is a word
 *     ByteLevel           GPT-2's expression; Bytes: no expression
 *
 * If no description is the same, vocab_probe.c compares results.
 *
 * Several names stand for the same words. Runtimes such as llama.cpp derive
 * other behaviour from the name: whether blanks before punctuation are removed
 * from generated text, and the default for BOS. tokenizer_config.json and the
 * class of the folder choose between such names.
 *
 * Further members of a step follow its name. vocab_normalizer.c checks the
 * normalizer.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"
#include "vocab/pretok_row.h"

#include <stdio.h>
#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL         "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS(DIGITS)                                                         \
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" DIGITS                             \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" TAIL ") Bytes"
#define TIKTOKEN(DIGITS) "Split(" CONTRACTIONS "|" WORDS(DIGITS)
#define UPPER            "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER            "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(DIGITS, END)                                                    \
    "Split([^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" END                    \
    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" END "|\\p{N}" DIGITS        \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" TAIL ") Bytes"
#define CJK                                                                   \
    "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f"                     \
    "\xe3\x82\xa0-\xe3\x83\xbf]+"
#define MARKED_WORD                                                           \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"                  \
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"

static const struct gg_convert_pre rows[] = {
    { "ByteLevel", "gpt-2", -1 },
    { "Digits ByteLevel", "starcoder", -1 },
    { "Punctuation+ ByteLevel Digits+ Split([0-9][0-9][0-9])", "falcon", -1 },
    { "Split( ?[^(\\s|[.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x81"
      "\xe0\xa5\xa4\xdb\x94\xd8\x8c])]+) Bytes",
      "bloom", -1 },
    { "Digits Bytes Split('s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
      "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+)",
      "starcoder", -1 },
    { TIKTOKEN("{1,3}"), "llama-bpe", 1 },
    { TIKTOKEN("{1,3}"), "smaug-bpe", 0 },
    { TIKTOKEN(""), "qwen2", -1 },
    { "Split(" WORDS(""), "ufakzeka", -1 },
    { "Split(" CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
      "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" TAIL ") Bytes",
      "qwen35", -1 },
    { CASED("", ""), "tekken", -1 },
    { CASED("{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))|\\p{N}{1,2}", ""),
      "tekken-num3", -1 },
    { "Split(" CONTRACTIONS
      "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\u200C|\\u200D)+"
      "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" TAIL ") Bytes",
      "k2-horizon", -1 },
    { CASED("{1,3}", CONTRACTIONS "?"), "gpt-4o", -1 },
    { "Split(\\p{N}{1,3}) Split(" CJK ") Split(" MARKED_WORD "[\\r\\n]*" TAIL
      ") Bytes",
      "deepseek-v3", -1 },
    { "Split(\\p{N}{1,3}) Split(" CJK ") Split(" MARKED_WORD
      "|[\\r\\n]|\\s+(?!\\S)|\\s+) Split(\\p{N}) Bytes",
      "spark2_5", -1 },
};

/* Names that cut as another name (base) does. They differ in behaviour that
 * llama.cpp 0.5 derives from the name (src/llama-vocab.cpp, clean_spaces and
 * special_bos_id). The first row that applies is used. */
static const struct other_name {
    const char *base, *name;
    int cleans;  /* required clean_up_tokenization_spaces: 1, 0; -1: any */
    bool no_bos; /* requires that the folder names no BOS */
    const char *class;   /* required prefix of tokenizer_class; or NULL */
    const char *arch[2]; /* architectures that imply the class */
} other_names[] = {
    { .base = "starcoder",
      .name = "command-r",
      .class = "Cohere",
      .arch = { "command-r", "cohere2" } },
    { .base = "starcoder", .name = "smollm" },
    { .base = "gpt-2", .name = "trillion" },
    { .base = "qwen2", .name = "stablelm2", .cleans = 1 },
    { .base = "bloom", .name = "poro-chat" },
    { .base = "smaug-bpe", .name = "glm4", .cleans = -1, .no_bos = true },
};

const struct gg_convert_pre *gg_convert_vocab_pre_row(size_t n)
{
    return n < GG_LEN(rows) ? &rows[n] : NULL;
}

static bool same_words(const struct gg_pretok_row *a,
                       const struct gg_pretok_row *b)
{
    for (size_t i = 0; i < GG_PRETOK_MAX_STAGES; i++) {
        const char *x = a->stage[i].expr, *y = b->stage[i].expr;
        if (a->stage[i].cut != b->stage[i].cut || !x != !y ||
            (x && strcmp(x, y) != 0))
            return false;
    }
    return a->ignore_merges == b->ignore_merges && a->raw == b->raw;
}

const char *gg_convert_vocab_pre_text(struct gguf_str name, bool *whole)
{
    const struct gg_pretok_row *row = gg_pretok_row_find(name);
    size_t found = GG_LEN(rows);
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        if (gg_str_eqz(name, rows[i].pre)) {
            found = i;
            break;
        }
        if (found == GG_LEN(rows) && row &&
            same_words(row, gg_pretok_row_find(gg_str_z(rows[i].pre))))
            found = i;
    }
    if (found == GG_LEN(rows))
        return NULL;
    *whole = rows[found].whole > 0;
    return rows[found].text;
}

int gg_convert_vocab_pre_clean_up(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(other_names); i++)
        if (gg_str_eqz(name, other_names[i].name))
            return other_names[i].cleans;
    return -1;
}

struct text {
    char s[4096];
    size_t n;
};

static void put_text(struct text *t, const char *s, size_t n)
{
    n = GG_MIN(n, sizeof t->s - 1 - t->n);
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

static void put_z(struct text *t, const char *s)
{
    put_text(t, s, strlen(s));
}

static bool is_text(const json_t *v, const char *s)
{
    struct gguf_str x;
    return gg_json_str(v, &x) && gg_str_eqz(x, s);
}

static void describe_split(struct text *t, const json_t *step)
{
    const json_t *pattern = json_object_get(step, "pattern");
    const json_t *behavior = json_object_get(step, "behavior");
    struct gguf_str s;
    put_z(t, "Split");
    if (!is_text(behavior, "Isolated"))
        put_z(t, gg_json_str(behavior, &s) ? s.data : "?");
    if (json_is_true(json_object_get(step, "invert")))
        put_z(t, "!");
    if (gg_json_str(json_object_get(pattern, "Regex"), &s)) {
        put_z(t, "(");
    } else {
        put_z(t, "Text(");
        if (!gg_json_str(json_object_get(pattern, "String"), &s))
            s = GG_STR("?");
    }
    put_text(t, s.data, s.size);
    put_z(t, ")");
}

static void describe_step(struct text *t, const json_t *step)
{
    const json_t *list = json_object_get(step, "pretokenizers");
    struct gguf_str type;
    if (!gg_json_str(json_object_get(step, "type"), &type))
        type = GG_STR("none");
    if (gg_str_eqz(type, "Sequence")) {
        for (size_t i = 0; i < json_array_size(list); i++)
            describe_step(t, json_array_get(list, i));
        return;
    }
    if (t->n)
        put_z(t, " ");
    if (gg_str_eqz(type, "Split")) {
        describe_split(t, step);
    } else if (gg_str_eqz(type, "Digits")) {
        put_z(t, "Digits");
        if (!json_is_true(json_object_get(step, "individual_digits")))
            put_z(t, "+");
    } else if (gg_str_eqz(type, "Punctuation")) {
        const json_t *behavior = json_object_get(step, "behavior");
        put_z(t, "Punctuation");
        if (is_text(behavior, "Contiguous"))
            put_z(t, "+");
        else if (behavior && !is_text(behavior, "Isolated"))
            put_z(t, "?");
    } else if (gg_str_eqz(type, "ByteLevel")) {
        put_z(t, json_is_false(json_object_get(step, "use_regex"))
                     ? "Bytes"
                     : "ByteLevel");
        if (json_is_true(json_object_get(step, "add_prefix_space")))
            put_z(t, "(blank)");
    } else {
        put_text(t, type.data, type.size);
    }
}

static void note_unknown_pre(const struct gg_convert_vocab *v)
{
    gg_folder_warn(v->folder,
                   "the pre-tokenizer is taken for '%s': its "
                   "description is unknown, but it cuts a text "
                   "like that one (--pre names another)",
                   v->pre);
}

static bool has_class(const struct gg_convert_vocab *v,
                      const struct other_name *o, const json_t *config)
{
    struct gguf_str class;
    bool has =
        o->class &&
        gg_json_str(json_object_get(config, "tokenizer_class"), &class) &&
        gg_str_starts(class, o->class);
    for (size_t i = 0; i < GG_LEN(o->arch) && v->arch && o->arch[i]; i++)
        has = has || !strcmp(v->arch->arch, o->arch[i]);
    return has;
}

/* Replace v->pre by another name of its words, if the folder asks for that. */
static void choose_name(struct gg_convert_vocab *v)
{
    const json_t *config =
        v->folder->text[GG_CONVERT_TOKENIZER_CONFIG].json.root;
    const json_t *t = json_object_get(config, "clean_up_tokenization_spaces");
    const int cleans = json_is_boolean(t) ? json_is_true(t) : -1;
    for (size_t i = 0; i < GG_LEN(other_names); i++) {
        const struct other_name *o = &other_names[i];
        const bool is_class = has_class(v, o, config);
        const bool same_blanks =
            o->cleans < 0 || cleans == o->cleans || (is_class && cleans < 0);
        if (strcmp(v->pre, o->base) != 0 || !same_blanks ||
            (o->class && !is_class) ||
            (o->no_bos && (!config || gg_convert_vocab_names_bos(v))))
            continue;
        v->pre = o->name;
        return;
    }
}

/* Set v->pre to the name of a description; NULL: it is not known. */
static void recognise_pre(struct gg_convert_vocab *v, const char *text,
                          bool whole)
{
    for (size_t i = 0; i < GG_LEN(rows) && !v->pre; i++)
        if (!strcmp(text, rows[i].text) &&
            (rows[i].whole < 0 || rows[i].whole == whole))
            v->pre = rows[i].pre;
}

enum gguf_status gg_convert_vocab_find_pre(struct gg_convert_vocab *v,
                                           struct gguf_error *err)
{
    const struct gg_json *j = &v->folder->text[GG_CONVERT_TOKENIZER].json;
    const json_t *section = json_object_get(j->root, "pre_tokenizer");
    const json_t *model = json_object_get(j->root, "model");
    const bool whole = json_is_true(json_object_get(model, "ignore_merges"));
    struct text t = { .n = 0 };
    char shown[380];
    describe_step(&t, section);
    recognise_pre(v, t.s, whole);
    const bool known = v->pre;
    if (!known)
        GG_TRY(gg_convert_vocab_probe(v, section, whole, err));
    if (v->pre) {
        choose_name(v);
        if (!known)
            note_unknown_pre(v);
        return GGUF_OK;
    }
    gg_str_escape(shown, sizeof shown, t.s, t.n);
    return gg_error_set(err, GGUF_E_UNSUPPORTED, gg_json_offset_of(j, section),
                        "the pre-tokenizer is not recognised: %s; "
                        "--pre NAME names one that cuts alike",
                        shown);
}
