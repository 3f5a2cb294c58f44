/* SPDX-License-Identifier: MIT */
/* json_scan.c - read a long JSON array or object without building a tree */
#include "config.h"
#include "base/json_scan.h"

static bool fail_scan(struct gg_json_scan *s, size_t at, const char *what)
{
    return gg_json_lex_fail(&s->lex, at, what);
}

static bool fail_nomem(struct gg_json_scan *s)
{
    s->no_memory = true;
    return fail_scan(s, s->value, "no memory");
}

static char peek_token(struct gg_json_scan *s)
{
    return gg_json_lex_peek(&s->lex);
}

static bool enter_level(struct gg_json_scan *s)
{
    s->close[++s->depth] = s->j->text[s->lex.at++] == '[' ? ']' : '}';
    s->first = true;
    return true;
}

static void open_at(struct gg_json_scan *s, const struct gg_json *j, size_t at,
                    struct gg_mem_arena *arena)
{
    *s = (struct gg_json_scan){ .j = j,
                                .arena = arena,
                                .lex = { .text = j->text, .size = j->size } };
    s->lex.at = s->value = at;
    const char c = peek_token(s);
    if (c == '[' || c == '{')
        enter_level(s);
    else
        fail_scan(s, s->lex.at, "neither an array nor an object");
}

void gg_json_scan_open(struct gg_json_scan *s, const struct gg_json *j,
                       const json_t *v, struct gg_mem_arena *arena)
{
    const uint64_t at = gg_json_offset_of(j, v);
    open_at(s, j, at == GGUF_NO_OFFSET ? j->size : (size_t)(at - j->off),
            arena);
}

void gg_json_scan_open_root(struct gg_json_scan *s, const struct gg_json *j,
                            struct gg_mem_arena *arena)
{
    open_at(s, j, 0, arena);
}

bool gg_json_scan_more(struct gg_json_scan *s)
{
    if (s->lex.what || !s->depth)
        return false;
    char c = peek_token(s);
    s->value = s->lex.at;
    if (c == s->close[s->depth]) {
        s->lex.at++;
        s->depth--;
        s->first = false;
        return false;
    }
    if (!s->first) {
        if (c != ',')
            return fail_scan(s, s->lex.at,
                             s->close[s->depth] == ']'
                                 ? "',' or ']' expected"
                                 : "',' or '}' expected");
        s->lex.at++;
        c = peek_token(s);
        s->value = s->lex.at;
    }
    s->first = false;
    return c && c != ',' && c != s->close[s->depth]
               ? true
               : fail_scan(s, s->lex.at, "a value expected");
}

bool gg_json_scan_enter_list(struct gg_json_scan *s)
{
    return !s->lex.what && peek_token(s) == '[' &&
           s->depth < GG_JSON_SCAN_DEPTH && enter_level(s);
}

bool gg_json_scan_skip(struct gg_json_scan *s, size_t *begin, size_t *end)
{
    const char c = s->lex.what ? 0 : peek_token(s);
    size_t depth = 0;
    if (c != '[' && c != '{')
        return false;
    *begin = s->value = s->lex.at;
    do {
        struct gguf_str raw;
        bool plain;
        const char next = peek_token(s);
        if (s->lex.at >= s->lex.size)
            return fail_scan(s, s->lex.at, "the text ends too early");
        if (next == '"') {
            if (!gg_json_lex_text(&s->lex, &raw, &plain))
                return false;
            continue;
        }
        depth += next == '[' || next == '{';
        depth -= next == ']' || next == '}';
        s->lex.at++;
    } while (depth);
    *end = s->lex.at;
    return true;
}

/* ---- strings and numbers ---- */

static bool read_str(struct gg_json_scan *s, struct gguf_str *out)
{
    struct gguf_str raw;
    bool plain;
    if (s->lex.what || peek_token(s) != '"')
        return false;
    s->value = s->lex.at;
    if (!gg_json_lex_text(&s->lex, &raw, &plain))
        return false;
    *out = raw;
    if (plain)
        return true;
    char *text = gg_mem_arena_alloc(s->arena, raw.size);
    if (!text)
        return fail_nomem(s);
    out->data = text;
    return gg_json_lex_unescape(&s->lex, raw, text, &out->size);
}

bool gg_json_scan_str(struct gg_json_scan *s, struct gguf_str *out)
{
    return read_str(s, out);
}

bool gg_json_scan_name(struct gg_json_scan *s, struct gguf_str *out)
{
    if (!s->lex.what && peek_token(s) != '"')
        return fail_scan(s, s->lex.at, "a name in quotation marks expected");
    if (!read_str(s, out))
        return false;
    if (peek_token(s) != ':')
        return fail_scan(s, s->lex.at, "':' expected");
    s->lex.at++;
    return true;
}

bool gg_json_scan_num(struct gg_json_scan *s, double *out)
{
    struct gg_json_number x;
    const char c = s->lex.what ? 0 : peek_token(s);
    if (c != '-' && (c < '0' || c > '9'))
        return false;
    s->value = s->lex.at;
    if (!gg_json_lex_number(&s->lex, false, &x))
        return false;
    *out = x.x;
    return true;
}

/* ---- the end ---- */

uint64_t gg_json_scan_offset(const struct gg_json_scan *s)
{
    return s->j->off + s->value;
}

enum gguf_status gg_json_scan_end(const struct gg_json_scan *s,
                                  struct gguf_error *err)
{
    if (!s->lex.what)
        return GGUF_OK;
    if (s->no_memory)
        return gg_error_set_nomem(err, s->j->size);
    return gg_json_fail_at(s->j, s->lex.failed, s->lex.what, err);
}

enum gguf_status gg_json_scan_finish(struct gg_json_scan *s,
                                     struct gguf_error *err)
{
    if (!s->lex.what && (peek_token(s) || s->lex.at < s->lex.size))
        fail_scan(s, s->lex.at, "the end of the file expected");
    return gg_json_scan_end(s, err);
}

uint64_t gg_json_scan_next_offset(struct gg_json_scan *s)
{
    (void)peek_token(s);
    return s->j->off + s->lex.at;
}
