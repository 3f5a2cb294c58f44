/* SPDX-License-Identifier: MIT */
/* recipe_parse.c - the text of a recipe, line by line
 *
 *     name WORD, alias WORD, about TEXT, ftype NUMBER, base TYPE
 *     needs_imatrix TYPE
 *     let WORD = CONDITION
 *     SELECTOR = TYPE [if CONDITION]
 *
 * SELECTOR is a class of tensors, a "pattern" on names, or *. Everything
 * after # is a comment.
 */
#include "config.h"
#include "recipe/recipe_int.h"
#include "base/compiler.h"
#include "base/str.h"
#include "gguf/text.h"

#include <string.h>

enum { MAX_LETS = 64 };

struct parser {
    struct gguf_recipe *r;
    struct gg_recipe_let lets[MAX_LETS];
    uint32_t n_lets, line;
    struct gguf_str rest; /* unread part of the line */
    struct gguf_error *err;
};

static const char *const class_names[] = { NULL,
#define X(ID, NAME) #NAME,
                                           GG_CLASS_LIST(X)
#undef X
};

static uint64_t offset_of(const struct parser *p)
{
    return (uint64_t)(p->rest.data - p->r->text.data);
}

static enum gguf_status refuse_text(struct parser *p, const char *what)
{
    struct gg_str_esc esc;
    return gg_error_set(p->err, GGUF_E_FORMAT, offset_of(p),
                        "line %u: %s at '%s'", p->line, what,
                        gg_str_esc(&esc, p->rest));
}

static struct gguf_str trim_blanks(struct gguf_str s)
{
    while (s.size && strchr(" \t\r", s.data[0])) {
        s.data++;
        s.size--;
    }
    while (s.size && strchr(" \t\r", s.data[s.size - 1]))
        s.size--;
    return s;
}

/* Take n bytes from the front of the rest, and skip the blanks after them. */
static struct gguf_str take_bytes(struct parser *p, size_t n)
{
    struct gguf_str s = { p->rest.data, n };
    p->rest.data += n;
    p->rest.size -= n;
    p->rest = trim_blanks(p->rest);
    return s;
}

static struct gguf_str take_word(struct parser *p)
{
    size_t n = 0;
    while (n < p->rest.size && !strchr(" \t=\"#", p->rest.data[n]))
        n++;
    return take_bytes(p, n);
}

static enum gguf_status take_equals(struct parser *p)
{
    if (!p->rest.size || p->rest.data[0] != '=')
        return refuse_text(p, "'=' is expected");
    take_bytes(p, 1);
    return GGUF_OK;
}

static enum gguf_status take_type(struct parser *p, bool rule, int64_t *type)
{
    char word[32];
    uint64_t at = offset_of(p);
    struct gguf_str s = take_word(p);
    if (gg_str_eqz(s, "keep")) {
        *type = GG_RECIPE_KEEP;
        return GGUF_OK;
    }
    if (rule && gg_str_eqz(s, "base")) {
        *type = GG_RECIPE_BASE;
        return GGUF_OK;
    }
    const struct gguf_dtype_info *t = NULL;
    if (gg_str_join(word, sizeof word, s, ""))
        t = gguf_dtype_find_name(word);
    if (!t || t->family == GGUF_FAMILY_INT ||
        t->family == GGUF_FAMILY_REMOVED) {
        struct gg_str_esc esc;
        struct gguf_suggestion near;
        char hint[GGUF_SUGGESTION_SIZE];
        gguf_suggestion_init(&near, s);
        for (size_t i = 0; (t = gguf_dtype_at(i)); i++)
            gguf_suggestion_try(&near, gg_str_z(t->name));
        return gg_error_set(p->err, GGUF_E_FORMAT, at,
                            "line %u: '%s' is not a type to quantize to%s",
                            p->line, gg_str_esc(&esc, s),
                            gguf_suggestion_text(&near, hint));
    }
    *type = t->id;
    return GGUF_OK;
}

static enum gguf_status take_condition(struct parser *p, uint32_t *code,
                                       uint32_t *n_code)
{
    *code = p->r->n_code;
    GG_TRY(gg_recipe_compile_condition(p->r, p->rest, p->lets, p->n_lets,
                                       p->line, offset_of(p), n_code, p->err));
    take_bytes(p, p->rest.size);
    return GGUF_OK;
}

static enum gguf_status parse_let(struct parser *p)
{
    struct gguf_str word = take_word(p);
    if (!word.size || gg_recipe_is_reserved(word))
        return refuse_text(p, "a new name is expected after 'let'");
    for (size_t i = 0; i < word.size; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                    "0123456789",
                    word.data[i]) ||
            (!i && word.data[i] <= '9'))
            return refuse_text(p, "a name is letters, digits and '_'");
    for (uint32_t i = 0; i < p->n_lets; i++)
        if (gg_str_eq(word, p->lets[i].name))
            return refuse_text(p, "this name is given already");
    if (p->n_lets == MAX_LETS)
        return gg_error_set(p->err, GGUF_E_LIMIT, offset_of(p),
                            "line %u: more than %d names", p->line, MAX_LETS);
    GG_TRY(take_equals(p));
    struct gg_recipe_let *let = &p->lets[p->n_lets];
    let->name = word;
    GG_TRY(take_condition(p, &let->code, &let->n_code));
    p->n_lets++;
    return GGUF_OK;
}

static enum gguf_status parse_pattern(struct parser *p,
                                      struct gg_recipe_rule *rule)
{
    const char *end = memchr(p->rest.data + 1, '"', p->rest.size - 1);
    if (!end)
        return refuse_text(p, "the closing '\"' is missing");
    struct gguf_str text = { p->rest.data + 1,
                             (size_t)(end - p->rest.data - 1) };
    /* freed with the recipe */
    enum gguf_status st =
        gg_pattern_create(&rule->pattern, text, p->r->allocator, p->err);
    if (st == GGUF_OK)
        take_bytes(p, text.size + 2);
    else if (p->err)
        p->err->offset = offset_of(p);
    return st;
}

/* Append an empty rule. */
static enum gguf_status new_rule(struct parser *p,
                                 struct gg_recipe_rule **rule)
{
    struct gguf_recipe *r = p->r;
    if (r->n_rules == GGUF_RECIPE_MAX_RULES)
        return gg_error_set(p->err, GGUF_E_LIMIT, offset_of(p),
                            "line %u: more than %d rules", p->line,
                            GGUF_RECIPE_MAX_RULES);
    if (r->n_rules == r->cap_rules) {
        void *grown = gg_mem_grow(r->allocator, r->rules, &r->cap_rules,
                                  sizeof *r->rules, 32, p->err);
        if (!grown)
            return GGUF_E_NOMEM;
        r->rules = grown;
    }
    *rule = &r->rules[r->n_rules++];
    **rule = (struct gg_recipe_rule){ .line = p->line };
    return GGUF_OK;
}

static enum gguf_status parse_rule(struct parser *p, enum gg_recipe_class cls,
                                   struct gguf_str word)
{
    struct gg_recipe_rule *rule = NULL;
    struct gguf_str line = { word.data, (size_t)(p->rest.data + p->rest.size -
                                                 word.data) };
    GG_TRY(new_rule(p, &rule));
    rule->cls = cls;
    if (!word.size) {
        line = p->rest;
        GG_TRY(parse_pattern(p, rule));
    }
    size_t size = 8 * line.size + 1; /* an escaped byte takes up to 8 */
    char *text = gg_mem_arena_alloc(&p->r->arena, size);
    if (!text)
        return gg_error_set_nomem(p->err, size);
    gg_str_escape(text, size, line.data, line.size);
    rule->text = text;
    GG_TRY(take_equals(p));
    GG_TRY(take_type(p, true, &rule->type));
    if (!p->rest.size)
        return GGUF_OK;
    struct gguf_str before = p->rest;
    if (!gg_str_eqz(take_word(p), "if")) {
        p->rest = before;
        return refuse_text(p, "'if' or the end of the line is expected");
    }
    return take_condition(p, &rule->code, &rule->n_code);
}

/* Take the rest of the line as a text, copied. */
static enum gguf_status parse_text(struct parser *p, const char **out)
{
    if (!p->rest.size)
        return refuse_text(p, "a text is expected");
    size_t size = 8 * p->rest.size + 1;
    char *text = gg_mem_arena_alloc(&p->r->arena, size);
    if (!text)
        return gg_error_set_nomem(p->err, size);
    gg_str_escape(text, size, p->rest.data, p->rest.size);
    *out = text;
    take_bytes(p, p->rest.size);
    return GGUF_OK;
}

static enum gguf_status parse_ftype(struct parser *p)
{
    struct gguf_str word = take_word(p);
    uint64_t v;
    if (!gg_str_uint(&word, 999999, &v) || word.size)
        return refuse_text(p, "a number is expected after 'ftype'");
    p->r->ftype = (int)v;
    return GGUF_OK;
}

static enum gguf_status parse_needs(struct parser *p)
{
    int64_t type;
    GG_TRY(take_type(p, false, &type));
    if (type < 0)
        return refuse_text(p, "a type is expected");
    if (p->r->n_needs == GG_LEN(p->r->needs))
        return refuse_text(p, "too many types");
    p->r->needs[p->r->n_needs++] = (uint32_t)type;
    return GGUF_OK;
}

/* Parse a line: a keyword line or a rule. */
static enum gguf_status parse_words(struct parser *p)
{
    const char *ignored;
    if (p->rest.data[0] == '"')
        return parse_rule(p, GG_CLASS_OTHER, (struct gguf_str){ NULL, 0 });
    struct gguf_str word = take_word(p);
    bool rule = p->rest.size && p->rest.data[0] == '=';
    if (gg_str_eqz(word, "*"))
        return parse_rule(p, GG_CLASS_OTHER, word);
    for (int c = 1; c < GG_N_CLASSES; c++)
        if (gg_str_eqz(word, class_names[c]))
            return parse_rule(p, (enum gg_recipe_class)c, word);
    if (!rule && gg_str_eqz(word, "let"))
        return parse_let(p);
    if (!rule && gg_str_eqz(word, "name"))
        return parse_text(p, &p->r->name);
    if (!rule && gg_str_eqz(word, "about"))
        return parse_text(p, &p->r->about);
    if (!rule && gg_str_eqz(word, "alias"))
        return parse_text(p, &ignored);
    if (!rule && gg_str_eqz(word, "ftype"))
        return parse_ftype(p);
    if (!rule && gg_str_eqz(word, "base"))
        return take_type(p, false, &p->r->base);
    if (!rule && gg_str_eqz(word, "needs_imatrix"))
        return parse_needs(p);
    p->rest.size += (size_t)(p->rest.data - word.data);
    p->rest.data = word.data;
    return refuse_text(p, "this is not a line of a recipe");
}

static enum gguf_status parse_line(struct parser *p)
{
    if (!p->rest.size)
        return GGUF_OK;
    GG_TRY(parse_words(p));
    return p->rest.size ? refuse_text(p, "the end of the line is expected")
                        : GGUF_OK;
}

/* Cut off the comment of a line. A '#' in a quoted pattern belongs to the
 * pattern. */
static struct gguf_str cut_comment(struct gguf_str s)
{
    bool quoted = false;
    for (size_t i = 0; i < s.size; i++) {
        quoted ^= s.data[i] == '"';
        if (s.data[i] == '#' && !quoted)
            s.size = i;
    }
    return trim_blanks(s);
}

static enum gguf_status parse_all(struct gguf_recipe *r,
                                  struct gguf_error *err)
{
    struct parser p = { .r = r, .err = err };
    const char *at = r->text.data, *end = at + r->text.size;
    while (at < end) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((eol ? eol : end) - at);
        p.line++;
        p.rest = cut_comment((struct gguf_str){ at, n });
        GG_TRY(parse_line(&p));
        at += n + 1;
    }
    if (r->base == GG_RECIPE_BASE)
        return gg_error_set(err, GGUF_E_FORMAT, r->text.size,
                            "the recipe has no line 'base TYPE'");
    return GGUF_OK;
}

enum gguf_status gguf_recipe_parse(struct gguf_recipe **out,
                                   struct gguf_str text,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err)
{
    enum gguf_status st;
    *out = NULL;
    if (text.size > GGUF_RECIPE_MAX_SIZE)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a recipe of %zu bytes, limit is %d", text.size,
                            GGUF_RECIPE_MAX_SIZE);
    if (text.size && memchr(text.data, 0, text.size))
        return gg_error_set(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                            "the recipe has a NUL byte");
    struct gguf_recipe *r = gg_mem_alloc_zero(allocator, 1, sizeof *r);
    if (!r)
        return gg_error_set_nomem(err, sizeof *r);
    r->allocator = allocator;
    r->name = r->about = "";
    r->base = GG_RECIPE_BASE; /* no base line yet */
    r->ftype = -1;
    gg_mem_arena_init(&r->arena, allocator);
    r->text.data = gg_mem_arena_strndup(&r->arena, text.data, text.size);
    r->text.size = text.size;
    st = r->text.data ? parse_all(r, err) : gg_error_set_nomem(err, text.size);
    if (st != GGUF_OK) {
        gguf_recipe_destroy(r);
        return st;
    }
    *out = r;
    return GGUF_OK;
}
