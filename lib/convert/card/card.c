/* SPDX-License-Identifier: MIT */
/* card.c - the pairs of a model card */
#include "config.h"
#include "convert/card/card.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

struct line {
    struct gguf_str s; /* text without indentation and trailing blanks */
    size_t indent;
    size_t at; /* byte of the text */
};

struct reader {
    struct gg_mem_arena *arena;
    const char *text;
    struct line *line; /* between the two "---" */
    size_t n, i;       /* i: the one that is read */
    struct gg_card_pair *pair;
    struct gguf_error *err;
};

static enum gguf_status refuse_line(const struct reader *r, const char *what)
{
    const struct line *l = &r->line[r->i < r->n ? r->i : r->n - 1];
    struct gg_str_esc e;
    struct gguf_str s = l->s;
    s.size = GG_MIN(s.size, 40);
    return gg_error_set(r->err, GGUF_E_FORMAT, l->at, "line %zu, '%s': %s",
                        (size_t)(l - r->line) + 2, gg_str_esc(&e, s), what);
}

static enum gguf_status fail_nomem(const struct reader *r, size_t n)
{
    return gg_error_set_nomem(r->err, n);
}

/* ---- lines ---- */

/* The line at *p, which moves after it. */
static struct gguf_str take_line(const char **p, const char *end)
{
    const char *s = *p, *nl = memchr(s, '\n', (size_t)(end - s));
    size_t n = nl ? (size_t)(nl - s) : (size_t)(end - s);
    *p = nl ? nl + 1 : end;
    if (n && s[n - 1] == '\r')
        n--;
    return (struct gguf_str){ s, n };
}

static void take_indent(struct line *l)
{
    while (l->s.size && (*l->s.data == ' ' || *l->s.data == '\t')) {
        /* a tab counts as one: a block is not longer than its lines */
        l->indent++;
        l->s.data++;
        l->s.size--;
    }
    while (l->s.size && strchr(" \t", l->s.data[l->s.size - 1]))
        l->s.size--;
}

/* Take the lines between "---" and "---"; none if the text begins otherwise. */
static enum gguf_status take_lines(struct reader *r, size_t size)
{
    const char *p = r->text, *end = r->text + size;
    size_t n = 0;
    if (size >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
        p += 3; /* a byte-order mark */
    if (!gg_str_eqz(take_line(&p, end), "---"))
        return GGUF_OK;
    const char *begin = p;
    for (bool last = false; !last; n++) {
        if (p == end || p - begin > GG_CARD_BYTES)
            return gg_error_set(r->err,
                                p == end ? GGUF_E_FORMAT : GGUF_E_LIMIT,
                                (uint64_t)(p - r->text),
                                "the metadata after '---' has no end%s",
                                p == end ? "" : " in 1 MiB");
        last = gg_str_eqz(take_line(&p, end), "---");
    }
    if (!gg_str_utf8_valid(begin, (size_t)(p - begin)) ||
        memchr(begin, 0, (size_t)(p - begin)))
        return gg_error_set(r->err, GGUF_E_FORMAT, (uint64_t)(begin - r->text),
                            "the lines up to %zu are not UTF-8", n + 1);
    r->line = gg_mem_arena_alloc(r->arena, n * sizeof *r->line);
    if (!r->line)
        return fail_nomem(r, n * sizeof *r->line);
    for (p = begin; r->n + 1 < n; r->n++) {
        struct line *l = &r->line[r->n];
        *l = (struct line){ .at = (uint64_t)(p - r->text) };
        l->s = take_line(&p, end);
        take_indent(l);
    }
    return GGUF_OK;
}

static bool is_empty(const struct line *l)
{
    return !l->s.size || *l->s.data == '#';
}

/* An item of a list: "- x", or "-" alone. */
static bool is_item(const struct line *l)
{
    return l->s.size && *l->s.data == '-' &&
           (l->s.size == 1 || l->s.data[1] == ' ' || l->s.data[1] == '\t');
}

/* Position of the colon after "KEY"; SIZE_MAX: none. */
static size_t find_colon(struct gguf_str s)
{
    for (size_t i = 0; i < s.size; i++)
        if (s.data[i] == ':' &&
            (i + 1 == s.size || s.data[i + 1] == ' ' || s.data[i + 1] == '\t'))
            return i;
    return SIZE_MAX;
}

static struct gguf_str trim_blanks(struct gguf_str s)
{
    while (s.size && strchr(" \t", *s.data)) {
        s.data++;
        s.size--;
    }
    while (s.size && strchr(" \t", s.data[s.size - 1]))
        s.size--;
    return s;
}

/* Without a comment, which begins after a blank. */
static struct gguf_str cut_comment(struct gguf_str s)
{
    for (size_t i = 0; i < s.size; i++)
        if (s.data[i] == '#' && (!i || strchr(" \t", s.data[i - 1])))
            s.size = i;
    return trim_blanks(s);
}

/* ---- texts ---- */

static enum gguf_status add_value(struct reader *r, struct gguf_str s)
{
    struct gg_card_pair *p = r->pair;
    if (p->n == GG_CARD_ITEMS)
        return gg_error_set(r->err, GGUF_E_LIMIT, r->line[r->i].at,
                            "line %zu: a list of more than %d items", r->i + 2,
                            GG_CARD_ITEMS);
    if (!(p->n & (p->n - 1))) { /* full: a power of two, or empty */
        const size_t room = p->n ? 2 * p->n : 1;
        struct gguf_str *grown =
            gg_mem_arena_alloc(r->arena, room * sizeof *grown);
        if (!grown)
            return fail_nomem(r, room * sizeof *grown);
        if (p->n)
            memcpy(grown, p->item, p->n * sizeof *grown);
        p->item = grown;
    }
    p->item[p->n++] = s;
    return GGUF_OK;
}

/* Bytes of the escape sequence of a backslash and c, in out. Returns their
 * number; 0: unknown sequence. */
static size_t unescape_char(struct gguf_str *s, char out[4])
{
    static const char from[] = "ntr\"\\/ab ", to[] = "\n\t\r\"\\/\a\b ";
    const char c = s->size ? *s->data : 0;
    const char *k = c ? strchr(from, c) : NULL;
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t cp = 0;
    if (k) {
        *out = to[k - from];
        s->data++;
        s->size--;
        return 1;
    }
    if (!digits || s->size <= digits)
        return 0;
    for (size_t i = 1; i <= digits; i++) {
        const char *hex = "0123456789abcdef", h = s->data[i];
        const char *at = strchr(hex, h >= 'A' && h <= 'F' ? h + 32 : h);
        if (!at || !h || cp >> 28)
            return 0;
        cp = cp * 16 + (uint32_t)(at - hex);
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return 0;
    s->data += digits + 1;
    s->size -= digits + 1;
    return gg_str_utf8_encode(cp, out);
}

/* Position of the mark that ends the quotation at the beginning of s; s.size:
 * none. No escape sequence is shorter than its result. */
static size_t find_quote(struct gguf_str s)
{
    const char mark = *s.data, *p = s.data;
    size_t i = 1;
    while (i < s.size) {
        const bool twice =
            mark == '\'' && i + 1 < s.size && p[i] == mark && p[i + 1] == mark;
        if (p[i] == mark && !twice)
            return i;
        i += twice || (mark == '"' && p[i] == '\\') ? 2 : 1;
    }
    return s.size;
}

/* A text in quotation marks at the beginning of *s, which moves after it. */
static enum gguf_status read_quoted(struct reader *r, struct gguf_str *s,
                                    struct gguf_str *out)
{
    const char mark = *s->data;
    const size_t room = find_quote(*s) + 1;
    char *p = gg_mem_arena_alloc(r->arena, room);
    size_t n = 0;
    if (!p)
        return fail_nomem(r, room);
    s->data++;
    s->size--;
    while (s->size) {
        const char c = *s->data++;
        s->size--;
        if (c == mark && mark == '\'' && s->size && *s->data == mark) {
            s->data++;
            s->size--;
        } else if (c == mark) {
            p[n] = 0;
            *out = (struct gguf_str){ p, n };
            return GGUF_OK;
        }
        if (c == '\\' && mark == '"') {
            const size_t k = unescape_char(s, p + n);
            if (!k)
                return refuse_line(r, "unknown escape sequence");
            n += k;
        } else {
            p[n++] = c;
        }
    }
    return refuse_line(r, "a quotation does not end on its line");
}

static bool is_null(struct gguf_str s)
{
    return !s.size || gg_str_eqz(s, "~") || gg_str_eq_nocase(s, "null");
}

/* A text without marks, and the deeper lines that go on with it. */
static enum gguf_status read_plain(struct reader *r, struct gguf_str s,
                                   size_t indent)
{
    struct gguf_str part = cut_comment(s);
    size_t n = part.size, k = r->i + 1;
    if (n && strchr("&*!%@`", *part.data))
        return refuse_line(r, "a value with such a mark is not supported");
    while (k < r->n && r->line[k].indent > indent && !is_empty(&r->line[k]))
        n += 1 + r->line[k++].s.size;
    char *p = gg_mem_arena_alloc(r->arena, n + 1);
    if (!p)
        return fail_nomem(r, n + 1);
    memcpy(p, part.data, part.size);
    n = part.size;
    while (r->i + 1 < k) {
        part = cut_comment(r->line[++r->i].s);
        if (n)
            p[n++] = ' ';
        memcpy(p + n, part.data, part.size);
        n += part.size;
    }
    p[n] = 0;
    const struct gguf_str all = { p, n };
    return is_null(all) ? GGUF_OK : add_value(r, all);
}

/* Read a block: '|' keeps its lines, '>' joins them with blanks. */
static enum gguf_status read_block(struct reader *r, char how, size_t indent)
{
    size_t n = 0, first = 0, k = r->i + 1;
    for (; k < r->n && (!r->line[k].s.size || r->line[k].indent > indent); k++)
        n += r->line[k].indent + r->line[k].s.size + 1;
    char *p = gg_mem_arena_alloc(r->arena, n + 1);
    if (!p)
        return fail_nomem(r, n + 1);
    n = 0;
    while (r->i + 1 < k) {
        const struct line *l = &r->line[++r->i];
        first = first || !l->s.size ? first : l->indent;
        if (n && (how == '|' || !l->s.size))
            p[n++] = '\n';
        else if (n && p[n - 1] != '\n')
            p[n++] = ' ';
        for (size_t i = first; i < l->indent && l->s.size; i++)
            p[n++] = ' ';
        memcpy(p + n, l->s.data, l->s.size);
        n += l->s.size;
    }
    while (n && strchr("\n ", p[n - 1]))
        n--;
    p[n] = 0;
    return n ? add_value(r, (struct gguf_str){ p, n }) : GGUF_OK;
}

/* Read a text after a key or a dash, in any of its forms. */
static enum gguf_status read_text(struct reader *r, struct gguf_str s,
                                  size_t indent)
{
    struct gguf_str out;
    if (s.size && strchr("|>", *s.data))
        return read_block(r, *s.data, indent);
    if (!s.size || !strchr("'\"", *s.data))
        return read_plain(r, s, indent);
    GG_TRY(read_quoted(r, &s, &out));
    if (cut_comment(s).size)
        return refuse_line(r, "unexpected text after a quotation");
    return add_value(r, out);
}

/* ---- lists ---- */

/* Skip blanks, and the rest of the line if that is a comment. */
static void skip_blanks(struct gguf_str *s)
{
    while (s->size && strchr(" \t", *s->data)) {
        s->data++;
        s->size--;
    }
    if (s->size && *s->data == '#')
        s->size = 0;
}

static bool begins_comment(const char *p)
{
    return *p == '#' && strchr(" \t", p[-1]);
}

/* Read one text of "[a, 'b']"; *s is then at the mark that ends it. */
static enum gguf_status read_flow_item(struct reader *r, struct gguf_str *s)
{
    struct gguf_str out = *s;
    if (strchr("[{", *s->data))
        return refuse_line(r, "nested lists are not supported");
    if (strchr("'\"", *s->data)) {
        GG_TRY(read_quoted(r, s, &out));
        skip_blanks(s);
        if (s->size && !strchr(",]", *s->data))
            return refuse_line(r, "unexpected text after a quotation");
        return add_value(r, out);
    }
    while (s->size && !strchr(",]", *s->data) && !begins_comment(s->data)) {
        s->data++;
        s->size--;
    }
    out.size = (size_t)(s->data - out.data);
    out = trim_blanks(out);
    return is_null(out) ? GGUF_OK : add_value(r, out);
}

/* "[a, 'b', c]", over lines. */
static enum gguf_status read_flow(struct reader *r, struct gguf_str s)
{
    r->pair->is_list = true;
    s.data++;
    s.size--;
    for (;;) {
        skip_blanks(&s);
        if (s.size && *s.data == ']')
            break;
        if (!s.size) {
            if (++r->i >= r->n)
                return refuse_line(r, "a list has no end");
            s = r->line[r->i].s;
            continue;
        }
        if (*s.data != ',')
            GG_TRY(read_flow_item(r, &s));
        if (s.size && *s.data == ',') {
            s.data++;
            s.size--;
        }
    }
    s.data++;
    s.size--;
    return cut_comment(s).size ? refuse_line(r, "unexpected text after a list")
                               : GGUF_OK;
}

/* Pass over lines that are deeper than the one at hand. */
static void skip_deeper(struct reader *r, size_t indent)
{
    r->pair->deeper = true;
    while (r->i + 1 < r->n &&
           (is_empty(&r->line[r->i + 1]) || r->line[r->i + 1].indent > indent))
        r->i++;
}

/* "- a" and so on, in the lines that follow. */
static enum gguf_status read_items(struct reader *r, size_t indent)
{
    r->pair->is_list = true;
    while (r->i + 1 < r->n) {
        const struct line *l = &r->line[r->i + 1];
        if (!is_empty(l) && (l->indent != indent || !is_item(l)))
            return l->indent > indent ? (r->i++, refuse_line(r, "is no item"))
                                      : GGUF_OK;
        r->i++;
        if (is_empty(l))
            continue;
        struct gguf_str s = { l->s.data + 1, l->s.size - 1 };
        s = trim_blanks(s);
        const bool marked = s.size && strchr("'\"", *s.data);
        if (!s.size || strchr("[{-", *s.data) ||
            (!marked && find_colon(s) != SIZE_MAX))
            skip_deeper(r, indent);
        else
            GG_TRY(read_text(r, s, indent));
    }
    return GGUF_OK;
}

/* ---- pairs ---- */

static enum gguf_status read_value(struct reader *r, struct gguf_str s)
{
    size_t k = r->i + 1;
    s = trim_blanks(s);
    if (s.size && *s.data == '[')
        return read_flow(r, s);
    if (s.size && *s.data == '{') {
        skip_deeper(r, 0);
        return GGUF_OK;
    }
    if (cut_comment(s).size)
        return read_text(r, s, 0);
    while (k < r->n && is_empty(&r->line[k]))
        k++;
    if (k < r->n && is_item(&r->line[k]))
        return read_items(r, r->line[k].indent);
    if (k < r->n && r->line[k].indent &&
        find_colon(r->line[k].s) == SIZE_MAX) {
        r->i = k;
        return read_text(r, r->line[k].s, 0);
    }
    if (k < r->n && r->line[k].indent)
        skip_deeper(r, 0);
    return GGUF_OK;
}

static enum gguf_status read_pair(struct reader *r, struct gg_card *card)
{
    const struct line *l = &r->line[r->i];
    struct gguf_str key, rest = l->s;
    if (l->indent || is_item(l))
        return refuse_line(r, "unexpected indentation");
    if (strchr("'\"", *l->s.data))
        GG_TRY(read_quoted(r, &rest, &key));
    const size_t colon = find_colon(rest);
    if (colon == SIZE_MAX)
        return refuse_line(r, "neither a key nor an item of a list");
    if (rest.data == l->s.data)
        key = trim_blanks((struct gguf_str){ rest.data, colon });
    if (card->n == GG_CARD_PAIRS)
        return gg_error_set(r->err, GGUF_E_LIMIT, l->at,
                            "line %zu: more than %d keys", r->i + 2,
                            GG_CARD_PAIRS);
    r->pair = &card->pair[card->n++];
    *r->pair = (struct gg_card_pair){ .key = key, .line = r->i + 2 };
    rest.data += colon + 1;
    rest.size -= colon + 1;
    return read_value(r, rest);
}

enum gguf_status gg_card_read(struct gg_card *card, struct gg_mem_arena *arena,
                              const char *text, size_t size,
                              struct gguf_error *err)
{
    struct reader r = { .arena = arena, .text = text, .err = err };
    *card = (struct gg_card){ NULL, 0 };
    GG_TRY(take_lines(&r, size));
    if (!r.n)
        return GGUF_OK;
    card->pair = gg_mem_arena_alloc(arena, GG_CARD_PAIRS * sizeof *card->pair);
    if (!card->pair)
        return fail_nomem(&r, GG_CARD_PAIRS * sizeof *card->pair);
    enum gguf_status st = GGUF_OK;
    for (; r.i < r.n && st == GGUF_OK; r.i++)
        if (!is_empty(&r.line[r.i]))
            st = read_pair(&r, card);
    if (st != GGUF_OK)
        card->n = 0;
    return st;
}

const struct gg_card_pair *gg_card_find(const struct gg_card *card,
                                        const char *key)
{
    for (size_t i = card->n; i-- > 0;)
        if (gg_str_eqz(card->pair[i].key, key))
            return &card->pair[i];
    return NULL;
}
