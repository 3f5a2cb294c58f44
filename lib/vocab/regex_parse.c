/* SPDX-License-Identifier: MIT */
/* regex_parse.c - expressions as texts to nodes */
#include "config.h"
#include "vocab/regex_set.h"

#include "base/str.h"

#include <string.h>

struct parser {
    struct gg_regex *re;
    const char *begin, *p, *end;
    unsigned depth;
    bool any_case; /* case-insensitive */
    struct gguf_error *err;
};

static enum gguf_status parse_any(struct parser *x,
                                  struct gg_regex_node **out);

static enum gguf_status refuse_pattern(struct parser *x, const char *why)
{
    return gg_error_set(x->err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "byte %zu of an expression: %s",
                        (size_t)(x->p - x->begin), why);
}

static enum gguf_status fail_nomem(struct parser *x)
{
    return gg_error_set_nomem(x->err, sizeof(struct gg_regex_node));
}

static enum gguf_status new_node(struct parser *x,
                                 enum gg_regex_node_kind kind,
                                 struct gg_regex_node **out)
{
    struct gg_regex_node *n = gg_mem_arena_alloc(&x->re->arena, sizeof *n);
    if (!n)
        return fail_nomem(x);
    *n = (struct gg_regex_node){ .kind = kind };
    *out = n;
    return GGUF_OK;
}

static bool next_is(struct parser *x, const char *z)
{
    size_t n = strlen(z);
    if ((size_t)(x->end - x->p) < n || memcmp(x->p, z, n) != 0)
        return false;
    x->p += n;
    return true;
}

/* ---- characters ---- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Parse least to most digits. */
static enum gguf_status parse_hex(struct parser *x, unsigned least,
                                  unsigned most, uint32_t *cp)
{
    unsigned n = 0;
    *cp = 0;
    for (; n < most && x->p < x->end && hex_of(*x->p) >= 0; n++)
        *cp = *cp << 4 | (uint32_t)hex_of(*x->p++);
    return n < least || *cp > 0x10ffff ? refuse_pattern(x, "not a code point")
                                       : GGUF_OK;
}

/* Parse a character after a backslash. GGUF_E_UNSUPPORTED. */
static enum gguf_status parse_escape(struct parser *x, uint32_t *cp)
{
    static const char names[] = "tnrfv", values[] = "\t\n\r\f\v";
    const char c = *x->p, *name = c ? strchr(names, c) : NULL;
    if (c == 'x' || c == 'u') {
        x->p++;
        if (c == 'u')
            return parse_hex(x, 4, 4, cp);
        if (!next_is(x, "{"))
            return parse_hex(x, 1, 2, cp);
        enum gguf_status st = parse_hex(x, 1, 8, cp);
        return st || next_is(x, "}") ? st
                                     : refuse_pattern(x, "not a code point");
    }
    const bool word = (uint8_t)c >= 0x80 || (c >= '0' && c <= '9') ||
                      (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!name && (word || !c))
        return refuse_pattern(x, "this escape is not supported");
    x->p++;
    *cp = name ? (uint32_t)values[name - names] : (uint32_t)c;
    return GGUF_OK;
}

static enum gguf_status parse_char(struct parser *x, uint32_t *cp)
{
    const size_t n = gg_str_utf8_decode(x->p, (size_t)(x->end - x->p), cp);
    if (!n)
        return refuse_pattern(x, "not UTF-8");
    x->p += n;
    return GGUF_OK;
}

/* Add cp to s. With any_case add the other case, too; U+017F and U+212A fold to
 * s and k (CaseFolding.txt). */
static enum gguf_status add_char(struct parser *x, struct gg_regex_set *s,
                                 uint32_t cp)
{
    struct gg_mem_arena *a = &x->re->arena;
    bool good = gg_regex_set_add_range(s, a, cp, cp);
    if (!x->any_case)
        return good ? GGUF_OK : fail_nomem(x);
    const uint32_t lower = cp | 0x20;
    if (cp >= 0x80)
        return refuse_pattern(x, "(?i) beyond ASCII is not supported");
    if (lower >= 'a' && lower <= 'z')
        good = good && gg_regex_set_add_range(s, a, cp ^ 0x20, cp ^ 0x20);
    if (lower == 's')
        good = good && gg_regex_set_add_range(s, a, 0x17f, 0x17f);
    if (lower == 'k')
        good = good && gg_regex_set_add_range(s, a, 0x212a, 0x212a);
    return good ? GGUF_OK : fail_nomem(x);
}

/* ---- classes ---- */

/* Parse the rest of \p or \P (no) into s. */
static enum gguf_status parse_property(struct parser *x, bool no,
                                       struct gg_regex_set *s)
{
    const bool braces = next_is(x, "{");
    no ^= braces && next_is(x, "^");
    const char *close =
        braces ? memchr(x->p, '}', (size_t)(x->end - x->p)) : NULL;
    const struct gguf_str name = { x->p, close ? (size_t)(close - x->p) : 1 };
    enum gg_regex_named done = gg_regex_set_add_named(s, &x->re->arena, name);
    if (done == GG_REGEX_NO_MEMORY)
        return fail_nomem(x);
    if (done == GG_REGEX_NO_CLASS || (braces && !close))
        return refuse_pattern(x, "no class of this name");
    x->p += name.size + braces;
    if (no)
        gg_regex_set_invert(s);
    return GGUF_OK;
}

/* Parse a class such as \s after a backslash. *is: whether it is one. */
static enum gguf_status parse_class(struct parser *x, struct gg_regex_set *s,
                                    bool *is)
{
    const char c = x->p < x->end ? *x->p : 0;
    bool good = true;
    *s = (struct gg_regex_set){ .n_ranges = 0 };
    *is = c && strchr("sSdDwWpP", c);
    if (!*is)
        return GGUF_OK;
    x->p++;
    if (c == 'p' || c == 'P')
        return parse_property(x, c == 'P', s);
    if (c == 's' || c == 'S')
        good = gg_regex_set_add_spaces(s, &x->re->arena);
    else if (c == 'w' || c == 'W')
        good = gg_regex_set_add_words(s, &x->re->arena);
    else
        gg_regex_set_add_categories(s, GG_UNICODE_BIT(ND));
    if (c == 'S' || c == 'D' || c == 'W')
        gg_regex_set_invert(s);
    return good ? GGUF_OK : fail_nomem(x);
}

static enum gguf_status add_set(struct parser *x, struct gg_regex_set *s,
                                const struct gg_regex_set *from)
{
    if (from->others)
        return refuse_pattern(
            x, "a complement of ranges inside of a class is not supported");
    return gg_regex_set_add_set(s, &x->re->arena, from) ? GGUF_OK
                                                        : fail_nomem(x);
}

static enum gguf_status parse_set(struct parser *x, struct gg_regex_set *s);

/* Parse a member of [...]: add a class or a nested set to s, or return a
 * character (*is_char). */
static enum gguf_status parse_member(struct parser *x, struct gg_regex_set *s,
                                     uint32_t *cp, bool *is_char)
{
    struct gg_regex_set inner;
    bool is_class;
    *is_char = false;
    if (next_is(x, "[:") || next_is(x, "&&"))
        return refuse_pattern(x, "this within a class is not supported");
    if (next_is(x, "[")) {
        GG_TRY(parse_set(x, &inner));
        return add_set(x, s, &inner);
    }
    if (!next_is(x, "\\")) {
        *is_char = true;
        return parse_char(x, cp);
    }
    GG_TRY(parse_class(x, &inner, &is_class));
    if (is_class)
        return add_set(x, s, &inner);
    *is_char = true;
    return parse_escape(x, cp);
}

/* Parse a set after its "[". */
static enum gguf_status parse_set(struct parser *x, struct gg_regex_set *s)
{
    const bool no = next_is(x, "^");
    bool is_char = true;
    uint32_t first, last;
    *s = (struct gg_regex_set){ .n_ranges = 0 };
    if (++x->depth > GG_REGEX_MAX_DEPTH)
        return refuse_pattern(x, "too many brackets");
    for (bool begin = true; begin || x->p == x->end || *x->p != ']';
         begin = false) {
        if (x->p == x->end)
            return refuse_pattern(x, "\"]\" is missing");
        GG_TRY(parse_member(x, s, &first, &is_char));
        if (!is_char)
            continue;
        last = first;
        if (x->end - x->p > 1 && x->p[0] == '-' && x->p[1] != ']') {
            x->p++;
            GG_TRY(parse_member(x, s, &last, &is_char));
            if (!is_char || last < first ||
                (x->any_case && first != last &&
                 (first >= 0x80 || last >= 0x80)))
                return refuse_pattern(x, "not a range");
        }
        if (!x->any_case &&
            !gg_regex_set_add_range(s, &x->re->arena, first, last))
            return fail_nomem(x);
        for (uint32_t cp = first; x->any_case && cp <= last; cp++)
            GG_TRY(add_char(x, s, cp));
    }
    x->p++;
    x->depth--;
    if (no)
        gg_regex_set_invert(s);
    return GGUF_OK;
}

static enum gguf_status set_node(struct parser *x, struct gg_regex_set *s,
                                 struct gg_regex_node **out)
{
    GG_TRY(new_node(x, GG_REGEX_N_SET, out));
    return gg_regex_set_number(x->re, s, &(*out)->set)
               ? GGUF_OK
               : refuse_pattern(x, "too many classes");
}

/* ---- groups ---- */

/* Parse the child of a lookaround or atomic group. */
static enum gguf_status parse_look(struct parser *x,
                                   enum gg_regex_node_kind kind, bool no,
                                   struct gg_regex_node **out)
{
    struct gg_regex_node *child;
    GG_TRY(parse_any(x, &child));
    GG_TRY(new_node(x, kind, out));
    (*out)->no = no;
    (*out)->child = child;
    if (kind != GG_REGEX_N_BEHIND)
        return GGUF_OK;
    (*out)->set = child->set;
    return child->kind == GG_REGEX_N_SET
               ? GGUF_OK
               : refuse_pattern(x, "only one character can be looked back at");
}

/* Parse a group after its "(". */
static enum gguf_status parse_group(struct parser *x,
                                    struct gg_regex_node **out)
{
    const bool any_case = x->any_case;
    enum gguf_status st;
    if (++x->depth > GG_REGEX_MAX_DEPTH)
        return refuse_pattern(x, "too many groups");
    if (next_is(x, "?i)")) { /* holds until its group ends */
        x->any_case = true;
        x->depth--;
        return new_node(x, GG_REGEX_N_EMPTY, out);
    }
    if (next_is(x, "?=")) {
        st = parse_look(x, GG_REGEX_N_AHEAD, false, out);
    } else if (next_is(x, "?!")) {
        st = parse_look(x, GG_REGEX_N_AHEAD, true, out);
    } else if (next_is(x, "?<=")) {
        st = parse_look(x, GG_REGEX_N_BEHIND, false, out);
    } else if (next_is(x, "?<!")) {
        st = parse_look(x, GG_REGEX_N_BEHIND, true, out);
    } else if (next_is(x, "?>")) {
        st = parse_look(x, GG_REGEX_N_ATOMIC, false, out);
    } else {
        if (next_is(x, "?i:"))
            x->any_case = true;
        else if (!next_is(x, "?:") && next_is(x, "?"))
            return refuse_pattern(x, "this kind of group is not supported");
        st = parse_any(x, out);
    }
    GG_TRY(st);
    if (!next_is(x, ")"))
        return refuse_pattern(x, "\")\" is missing");
    x->any_case = any_case;
    x->depth--;
    return GGUF_OK;
}

/* ---- all else ---- */

static enum gguf_status parse_assert(struct parser *x, int what,
                                     struct gg_regex_node **out)
{
    GG_TRY(new_node(x, GG_REGEX_N_ASSERT, out));
    (*out)->mode = (uint8_t)what;
    return GGUF_OK;
}

/* Parse an escape outside of brackets, after its backslash. */
static enum gguf_status parse_escaped(struct parser *x,
                                      struct gg_regex_node **out)
{
    static const char names[] = "AzZbB";
    static const uint8_t whats[] = { GG_REGEX_TEXT_BEGIN, GG_REGEX_TEXT_END,
                                     GG_REGEX_LAST_LINE_END, GG_REGEX_EDGE,
                                     GG_REGEX_NO_EDGE };
    struct gg_regex_set s;
    bool is_class;
    uint32_t cp;
    if (x->p == x->end)
        return refuse_pattern(x, "nothing after \"\\\"");
    const char *name = strchr(names, *x->p);
    if (name) {
        x->p++;
        GG_TRY(parse_assert(x, whats[name - names], out));
        s = (struct gg_regex_set){ .n_ranges = 0 };
        return !gg_regex_set_add_words(&s, &x->re->arena) ? fail_nomem(x)
               : !gg_regex_set_number(x->re, &s, &(*out)->set)
                   ? refuse_pattern(x, "too many classes")
                   : GGUF_OK;
    }
    GG_TRY(parse_class(x, &s, &is_class));
    if (!is_class) {
        GG_TRY(parse_escape(x, &cp));
        GG_TRY(add_char(x, &s, cp));
    }
    return set_node(x, &s, out);
}

static enum gguf_status parse_atom(struct parser *x,
                                   struct gg_regex_node **out)
{
    struct gg_regex_set s = { .n_ranges = 0 };
    uint32_t cp;
    if (next_is(x, "("))
        return parse_group(x, out);
    if (next_is(x, "["))
        GG_TRY(parse_set(x, &s));
    else if (next_is(x, "\\"))
        return parse_escaped(x, out);
    else if (next_is(x, "^"))
        return parse_assert(x, GG_REGEX_TEXT_BEGIN, out);
    else if (next_is(x, "$"))
        return parse_assert(x, GG_REGEX_LAST_LINE_END, out);
    else if (next_is(x, ".")) {
        GG_TRY(add_char(x, &s, '\n'));
        gg_regex_set_invert(&s);
    } else if (strchr("*+?", *x->p)) {
        return refuse_pattern(x, "nothing to repeat");
    } else {
        GG_TRY(parse_char(x, &cp));
        GG_TRY(add_char(x, &s, cp));
    }
    return set_node(x, &s, out);
}

static bool parse_number(struct parser *x, uint32_t *n)
{
    const char *begin = x->p;
    for (*n = 0; x->p < x->end && *x->p >= '0' && *x->p <= '9'; x->p++)
        *n = *n < 100000 ? 10 * *n + (uint32_t)(*x->p - '0') : *n;
    return x->p != begin;
}

/* Parse a quantifier, if one follows. Any other "{" is a literal. */
static bool parse_counts(struct parser *x, uint32_t *min, uint32_t *max)
{
    const char *begin = x->p;
    *min = 0;
    *max = GG_REGEX_NO_MAX;
    if (next_is(x, "*"))
        return true;
    *min = 1;
    if (next_is(x, "+"))
        return true;
    *min = 0;
    *max = 1;
    if (next_is(x, "?"))
        return true;
    if (next_is(x, "{") && parse_number(x, min)) {
        *max = *min;
        if (next_is(x, ",") && !parse_number(x, max))
            *max = GG_REGEX_NO_MAX;
        if (next_is(x, "}"))
            return true;
    }
    x->p = begin;
    return false;
}

static enum gguf_status parse_repeated(struct parser *x,
                                       struct gg_regex_node **out)
{
    uint32_t min, max;
    GG_TRY(parse_atom(x, out));
    if (x->p == x->end || !parse_counts(x, &min, &max))
        return GGUF_OK;
    struct gg_regex_node *child = *out;
    if (max < min || min > GG_REGEX_MAX_COUNT ||
        (max != GG_REGEX_NO_MAX && max > GG_REGEX_MAX_COUNT))
        return refuse_pattern(x, "this count is not supported");
    GG_TRY(new_node(x, GG_REGEX_N_REPEAT, out));
    (*out)->child = child;
    (*out)->min = min;
    (*out)->max = max;
    (*out)->mode = next_is(x, "+")   ? GG_REGEX_POSSESSIVE
                   : next_is(x, "?") ? GG_REGEX_LAZY
                                     : GG_REGEX_GREEDY;
    return GGUF_OK;
}

static enum gguf_status parse_list(struct parser *x,
                                   struct gg_regex_node **out)
{
    struct gg_regex_node **last;
    GG_TRY(new_node(x, GG_REGEX_N_LIST, out));
    last = &(*out)->child;
    while (x->p < x->end && *x->p != '|' && *x->p != ')') {
        GG_TRY(parse_repeated(x, last));
        last = &(*last)->next;
    }
    if ((*out)->child && !(*out)->child->next)
        *out = (*out)->child;
    return GGUF_OK;
}

static enum gguf_status parse_any(struct parser *x, struct gg_regex_node **out)
{
    struct gg_regex_node **last, *first;
    GG_TRY(parse_list(x, &first));
    *out = first;
    if (x->p == x->end || *x->p != '|')
        return GGUF_OK;
    GG_TRY(new_node(x, GG_REGEX_N_ANY, out));
    (*out)->child = first;
    last = &first->next;
    while (next_is(x, "|")) {
        GG_TRY(parse_list(x, last));
        last = &(*last)->next;
    }
    return GGUF_OK;
}

enum gguf_status gg_regex_parse(struct gg_regex *re, const char *text,
                                struct gg_regex_node **out,
                                struct gguf_error *err)
{
    struct parser x = { .re = re, .begin = text, .p = text, .err = err };
    x.end = text + strlen(text);
    if (x.end - text > GG_REGEX_MAX_TEXT)
        return refuse_pattern(&x, "it is too long");
    GG_TRY(parse_any(&x, out));
    return x.p == x.end ? GGUF_OK : refuse_pattern(&x, "\")\" without \"(\"");
}
