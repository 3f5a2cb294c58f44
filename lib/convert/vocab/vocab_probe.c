/* SPDX-License-Identifier: MIT */
/* vocab_probe.c - pre-tokenizers, recognised by their results
 *
 * For a description that vocab_pre.c does not know, the steps are run on a test
 * text. So are each row of vocab/pretok_row.c and the published expressions
 * that vocab_pre.c knows, from which some rows deviate ([case] there). A row
 * that gives the same words is taken. The text distinguishes all rows that cut
 * differently, which tests/convert/check-probe.c ensures.
 *
 * Steps are those of Hugging Face's tokenizers: Split (each match a word),
 * Digits, Punctuation, and at the end ByteLevel.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"
#include "vocab/pretok.h"
#include "vocab/pretok_row.h"

#include <string.h>

const char gg_convert_probe[] =
    "Hello, world! It's what we'll do; they'VE said I'M she'D 'tis 's'S 'Re"
    " o'clock a'da\n"
    "\n"
    "  two  blanks\n"
    "   \n"
    "\ttabs \t mixed      five\n"
    "    if (x_1 == 42) {\n"
    "        return a[10] + b->c / 3.14159;  // note\n"
    "    }\n"
    "\n"
    "\n"
    "a  12 b   345\n"
    "1 22 333 4444 55555 666666 7777777 x12y345 6,789.01 $9 #7 v2 (1234) a1"
    "2345b 1000\n"
    "helloWorld HTTPServer iPhone NaN McX aB Ab ABC abc /path/to/file.txt/ "
    "it'S\n"
    "don't \"quoted\" (see: http://a.b/c?d=e&f=g) end. ... !!! ?! --- *** ;"
    "; a.b,c\n"
    "un \xc3\xa9t\xc3\xa9 \xc3\xa0 l'\xc5\x93uvre, na\xc3\xafve stra"
    "\xc3\x9f"
    "e, se\xc3\xb1or; \xc3\x9cnder\n"
    "\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 \xd0\xbc\xd0\xb8"
    "\xd1\x80 \xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xd0\x9c"
    "\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0; \xce\xb3\xce\xb5\xce\xb9"
    "\xce\xac \xcf\x83\xce\xbf\xcf\x85\n"
    "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c"
    "\xe3\x80\x82\xe6\x95\xb0\xe5\xad\x97\xe4\xb8\x80\xe4\xba\x8c"
    "\xe4\xb8\x89 \xe4\xb8\xad\xe6\x96\x87"
    "abc 12\xe5\xa4\xa9 "
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x83\x86\xe3\x82\xad"
    "\xe3\x82\xb9\xe3\x83\x88 \xe3\x82\xab\xe3\x82\xbf\xe3\x82\xab"
    "\xe3\x83\x8a\xe3\x80\x81\xe3\x81\xb2\xe3\x82\x89\xe3\x81\x8c"
    "\xe3\x81\xaa\n"
    "\xec\x95\x88\xeb\x85\x95\xed\x95\x98\xec\x84\xb8\xec\x9a\x94 "
    "\xec\x84\xb8\xea\xb3\x84 \xe3\x84\xb1\xe3\x84\xb4\n"
    "\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6"
    "\xe0\xa5\x80 \xe0\xa4\xae\xe0\xa5\x87\xe0\xa4\x82 \xe0\xa4\x95"
    "\xe0\xa5\x8d\xe0\xa4\xaf\xe0\xa4\xbe \xe0\xa4\xb9\xe0\xa4\xbe"
    "\xe0\xa4\xb2 \xe0\xa4\xb9\xe0\xa5\x88\xe0\xa5\xa4 \xe0\xa4\xa8"
    "\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87\n"
    "\xd8\xa7\xd9\x84\xd8\xb9\xd8\xb1\xd8\xa8\xd9\x8a\xd8\xa9 \xd9\xa1"
    "\xd9\xa2\xd9\xa3 \xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7\xd8\x9f "
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\n"
    "\xe0\xb9\x84\xe0\xb8\x97\xe0\xb8\xa2\xe0\xb8\xa0\xe0\xb8\xb2"
    "\xe0\xb8\xa9\xe0\xb8\xb2 \xe0\xba\xa5\xe0\xba\xb2\xe0\xba\xa7 "
    "\xe1\x9e\x81\xe1\x9f\x92\xe1\x9e\x98\xe1\x9f\x82\xe1\x9e\x9a "
    "\xe1\x80\x99\xe1\x80\xbc\xe1\x80\x94\xe1\x80\xba\xe1\x80\x99"
    "\xe1\x80\xac\n"
    "\xf0\x9f\x98\x80\xf0\x9f\x98\x83 \xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd "
    "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa \xe2\x98\x83 \xc2\xbd \xc2\xb2 "
    "\xe2\x85\xa7 \xd9\xa3\xd9\xa4\xd9\xa5\xd9\xa6\n"
    "<sentinel:12> IMGIMGABCZ \xc2\xabx\xc2\xbb \xe2\x80\x9cy\xe2\x80\x9d "
    "\xe2\x80\x98z\xe2\x80\x99 \xe2\x80\xa6 \xe2\x80\x94 \xef\xbc\xa1"
    "\xef\xbc\xa2\xef\xbc\xa3\xef\xbc\x91\xef\xbc\x92 \xe3\x84\x85"
    "\xe3\x84\x86\xe3\x84\x87\n"
    "          ten\n"
    "                    twenty   \t\n"
    "x = 5%; y<=z; a!=b; $var @name `code` ^up | pipe & and_under + plus = "
    "eq < lt > gt\n"
    "crlf\r\n"
    "\r\n"
    "end\r\n"
    "  \r\n"
    " \n"
    "\n"
    " \n"
    "last  ";

#define PUNCTUATION "[\\p{P}\\$\\+<=>\\^~\\|`]"
/* ByteLevel's own, of GPT-2. */
#define GPT2                                                                  \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"       \
    "|\\s+(?!\\S)|\\s+"

/* Limit of backtracking of an unknown expression on the whole text. */
enum { MOST_BACKTRACKS = 1000000 };

struct steps {
    struct gg_pretok_row row;
    unsigned n;
    bool ended; /* ByteLevel was there */
};

static bool is_text(const json_t *step, const char *key, const char *z)
{
    struct gguf_str s;
    return gg_json_str(json_object_get(step, key), &s) && gg_str_eqz(s, z);
}

static bool add_expression(struct steps *s, const char *expr)
{
    if (s->n == GG_PRETOK_MAX_STAGES)
        return false;
    s->row.stage[s->n++].expr = expr;
    return true;
}

/* Matches become words, either the matches or the texts between them, which
 * leaves gaps that no row leaves. \K would move the start of a match. */
static bool add_split(struct steps *s, const json_t *step)
{
    const json_t *regex =
        json_object_get(json_object_get(step, "pattern"), "Regex");
    const bool invert = json_is_true(json_object_get(step, "invert"));
    struct gguf_str text;
    return gg_json_str(regex, &text) && !strstr(text.data, "\\K") &&
           (is_text(step, "behavior", "Isolated") ||
            (invert && is_text(step, "behavior", "Removed"))) &&
           add_expression(s, text.data);
}

/* false: the section has an unknown step. */
static bool add_steps(struct steps *s, const json_t *step)
{
    const json_t *list = json_object_get(step, "pretokenizers");
    if (s->ended)
        return false;
    if (is_text(step, "type", "Sequence")) {
        for (size_t i = 0; i < json_array_size(list); i++)
            if (!add_steps(s, json_array_get(list, i)))
                return false;
        return true;
    }
    if (is_text(step, "type", "Split"))
        return add_split(s, step);
    if (is_text(step, "type", "Digits"))
        return add_expression(
            s, json_is_true(json_object_get(step, "individual_digits"))
                   ? "\\p{N}"
                   : "\\p{N}+");
    if (is_text(step, "type", "Punctuation"))
        return is_text(step, "behavior", "Contiguous")
                   ? add_expression(s, PUNCTUATION "+")
                   : (is_text(step, "behavior", "Isolated") ||
                      !json_object_get(step, "behavior")) &&
                         add_expression(s, PUNCTUATION);
    s->ended = is_text(step, "type", "ByteLevel") &&
               !json_is_true(json_object_get(step, "add_prefix_space"));
    return s->ended && (json_is_false(json_object_get(step, "use_regex")) ||
                        add_expression(s, GPT2));
}

/* ---- the words of the text ---- */

struct words {
    uint16_t end[sizeof gg_convert_probe];
    size_t n;
};

static enum gguf_status add_word(void *user, size_t off, size_t size,
                                 struct gguf_error *err)
{
    struct words *w = user;
    (void)err;
    w->end[w->n++] = (uint16_t)(off + size);
    return GGUF_OK;
}

/* GGUF_E_UNSUPPORTED: an expression is invalid. */
static enum gguf_status cut_words(struct words *w,
                                  const struct gg_pretok_row *row,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err)
{
    struct gg_pretok *p;
    w->n = 0;
    GG_TRY(gg_pretok_create_row(&p, row, MOST_BACKTRACKS, a, err));
    enum gguf_status st = gg_pretok_split(
        p, gg_convert_probe, sizeof gg_convert_probe - 1, add_word, w, err);
    gg_pretok_destroy(p);
    return st;
}

static bool same_words(const struct words *a, const struct words *b)
{
    return a->n == b->n && !memcmp(a->end, b->end, a->n * sizeof *a->end);
}

/* Cut the text as a row does. An expression that cannot be compiled gives no
 * words. */
static enum gguf_status cut_known(struct words *w,
                                  const struct gg_pretok_row *row,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err)
{
    struct gguf_error why;
    const enum gguf_status st = cut_words(w, row, a, &why);
    if (st == GGUF_E_NOMEM)
        return gg_error_set_nomem(err, sizeof *w);
    if (st != GGUF_OK)
        w->n = 0;
    return GGUF_OK;
}

/* Try the rows that deviate from the published expression as in llama.cpp,
 * where numbers are cut digit by digit. */
static enum gguf_status try_digit_rows(struct gg_convert_vocab *v,
                                       const struct words *want,
                                       struct words *got,
                                       struct gguf_error *err)
{
    static const struct {
        const char *name, *expr, *published;
    } rows[] = { { "deepseek-llm", "\\p{N}+", "\\p{N}" } };
    for (size_t i = 0; i < GG_LEN(rows) && !v->pre; i++) {
        struct gg_pretok_row row = *gg_pretok_row_find(gg_str_z(rows[i].name));
        for (size_t k = 0; k < GG_PRETOK_MAX_STAGES; k++)
            if (row.stage[k].expr && !strcmp(row.stage[k].expr, rows[i].expr))
                row.stage[k].expr = rows[i].published;
        GG_TRY(cut_known(got, &row, v->folder->p->allocator, err));
        if (same_words(want, got))
            v->pre = rows[i].name;
    }
    return GGUF_OK;
}

/* Published expressions: descriptions "Split(EXPRESSION) Bytes". */
static enum gguf_status try_published(struct gg_convert_vocab *v,
                                      const struct words *want,
                                      struct words *got, bool whole,
                                      struct gguf_error *err)
{
    static const char begin[] = "Split(", end[] = ") Bytes";
    const size_t around = sizeof begin + sizeof end - 2;
    const struct gg_convert_pre *p;
    char expr[1000];
    for (size_t i = 0; !v->pre && (p = gg_convert_vocab_pre_row(i)); i++) {
        struct gg_pretok_row row = { .stage = { { .expr = expr } } };
        const struct gguf_str text = gg_str_z(p->text);
        if ((p->whole >= 0 && p->whole != whole) ||
            !gg_str_starts(text, begin) || !gg_str_ends(text, end) ||
            strstr(p->text + sizeof begin, begin) ||
            text.size - around >= sizeof expr)
            continue;
        memcpy(expr, text.data + sizeof begin - 1, text.size - around);
        expr[text.size - around] = 0;
        GG_TRY(cut_known(got, &row, v->folder->p->allocator, err));
        if (same_words(want, got))
            v->pre = p->pre;
    }
    return v->pre ? GGUF_OK : try_digit_rows(v, want, got, err);
}

/* The first name of a row. */
static enum gguf_status take_name(struct gg_convert_vocab *v,
                                  const struct gg_pretok_row *row,
                                  struct gguf_error *err)
{
    const size_t n = strcspn(row->names, " ");
    v->pre = gg_mem_arena_strndup(v->folder->arena, row->names, n);
    return v->pre ? GGUF_OK : gg_error_set_nomem(err, n);
}

/* Choose among rows that give the same words: the one that agrees on whether
 * words that are tokens stay those tokens. */
static enum gguf_status try_rows(struct gg_convert_vocab *v,
                                 const struct words *want, struct words *got,
                                 bool whole, struct gguf_error *err)
{
    const struct gg_pretok_row *row, *found = NULL;
    for (size_t i = 0; (row = gg_pretok_row(i)); i++) {
        if (row->raw || (found && found->ignore_merges == whole))
            continue;
        GG_TRY(cut_words(got, row, v->folder->p->allocator, err));
        if (same_words(want, got) && (!found || row->ignore_merges == whole))
            found = row;
    }
    return found ? take_name(v, found, err) : GGUF_OK;
}

enum gguf_status gg_convert_vocab_probe(struct gg_convert_vocab *v,
                                        const json_t *section, bool whole,
                                        struct gguf_error *err)
{
    struct steps s = { .n = 0 };
    struct gguf_error why;
    if (!add_steps(&s, section) || !s.ended || !s.n)
        return GGUF_OK;
    struct words *w = gg_mem_alloc(v->folder->p->allocator, 2 * sizeof *w);
    if (!w)
        return gg_error_set_nomem(err, 2 * sizeof *w);
    enum gguf_status st =
        cut_words(&w[0], &s.row, v->folder->p->allocator, &why);
    if (st == GGUF_OK) {
        st = try_published(v, &w[0], &w[1], whole, err);
        if (st == GGUF_OK && !v->pre)
            st = try_rows(v, &w[0], &w[1], whole, err);
    } else if (st == GGUF_E_NOMEM) {
        st = gg_error_set_nomem(err, sizeof *w);
    } else {
        st = GGUF_OK; /* not recognised */
    }
    gg_mem_free(v->folder->p->allocator, w);
    return st;
}
