/* SPDX-License-Identifier: MIT */
/* json_scan.c - a list or object of JSON, read where it lies */
#include "config.h"
#include "base/json_scan.h"

static bool fail(struct gg_json_scan *s, size_t at, const char *what)
{
    return gg_json_lex_fail(&s->lex, at, what);
}

static bool fail_nomem(struct gg_json_scan *s)
{
    s->no_memory = true;
    return fail(s, s->value, "no memory");
}

static char peek(struct gg_json_scan *s)
{
    return gg_json_lex_peek(&s->lex);
}

static bool enter(struct gg_json_scan *s)
{
    s->close[++s->depth] = s->j->text[s->lex.at++] == '[' ? ']' : '}';
    s->first = true;
    return true;
}

void gg_json_scan_open(struct gg_json_scan *s, const struct gg_json *j,
                       const json_t *v, struct gg_mem_arena *arena)
{
    const uint64_t at = gg_json_place(j, v);
    *s = (struct gg_json_scan){ .j = j,
                                .arena = arena,
                                .lex = { .text = j->text, .size = j->size } };
    s->lex.at = s->value =
        at == GGUF_NO_OFFSET ? j->size : (size_t)(at - j->off);
    const char c = peek(s);
    if (c == '[' || c == '{')
        enter(s);
    else
        fail(s, s->lex.at, "'[' or '{' expected");
}

bool gg_json_scan_more(struct gg_json_scan *s)
{
    if (s->lex.what || !s->depth)
        return false;
    char c = peek(s);
    s->value = s->lex.at;
    if (c == s->close[s->depth]) {
        s->lex.at++;
        s->depth--;
        s->first = false;
        return false;
    }
    if (!s->first) {
        if (c != ',')
            return fail(s, s->lex.at,
                        s->close[s->depth] == ']' ? "',' or ']' expected"
                                                  : "',' or '}' expected");
        s->lex.at++;
        c = peek(s);
        s->value = s->lex.at;
    }
    s->first = false;
    return c && c != ',' && c != s->close[s->depth]
               ? true
               : fail(s, s->lex.at, "a value expected");
}

bool gg_json_scan_list(struct gg_json_scan *s)
{
    return !s->lex.what && peek(s) == '[' && s->depth < GG_JSON_SCAN_DEPTH &&
           enter(s);
}

/* ---- texts and numbers ---- */

static bool read_str(struct gg_json_scan *s, struct gguf_str *out)
{
    struct gguf_str raw;
    bool plain;
    if (s->lex.what || peek(s) != '"')
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
    if (!read_str(s, out))
        return false;
    if (peek(s) != ':')
        return fail(s, s->lex.at, "':' expected");
    s->lex.at++;
    return true;
}

bool gg_json_scan_num(struct gg_json_scan *s, double *out)
{
    struct gg_json_number x;
    const char c = s->lex.what ? 0 : peek(s);
    if (c != '-' && (c < '0' || c > '9'))
        return false;
    s->value = s->lex.at;
    if (!gg_json_lex_number(&s->lex, false, &x))
        return false;
    *out = x.x;
    return true;
}

/* ---- what came of it ---- */

uint64_t gg_json_scan_place(const struct gg_json_scan *s)
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
