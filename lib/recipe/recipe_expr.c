/* SPDX-License-Identifier: MIT */
/* recipe_expr.c - conditions of recipes: numbers, comparisons, and/or/not
 *
 * A condition is compiled by precedence climbing into steps of a stack
 * machine. Names given by "let" are copied in where they are used, so that
 * evaluation is one loop without calls.
 */
#include "config.h"
#include "recipe/recipe_int.h"
#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

#define MAX_NUMBER UINT64_C(999999999999999)
enum { MAX_CODE = 65536, MAX_STACK = 64, MAX_NESTING = 40 };

enum op {
    OP_CONST,
    OP_VAR,
    OP_ARCH, /* 1 if the architecture is archs[arg] */
    OP_NOT,
    OP_NEG,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_ADD,
    OP_SUB,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_EQ,
    OP_NE,
    OP_AND,
    OP_OR
};

static const struct {
    const char *word;
    enum op op;
    int level; /* higher levels bind tighter */
} binary[] = {
    { "or", OP_OR, 1 }, { "and", OP_AND, 2 }, { "<=", OP_LE, 4 },
    { ">=", OP_GE, 4 }, { "==", OP_EQ, 4 },   { "!=", OP_NE, 4 },
    { "<", OP_LT, 4 },  { ">", OP_GT, 4 },    { "+", OP_ADD, 5 },
    { "-", OP_SUB, 5 }, { "*", OP_MUL, 6 },   { "/", OP_DIV, 6 },
    { "%", OP_MOD, 6 },
};
enum { LEVEL_NOT = 3, LEVEL_NEG = 7 };

static const char *const var_names[] = {
#define X(ID, NAME) #NAME,
    GG_VAR_LIST(X)
#undef X
};

struct parser {
    struct gguf_recipe *r;
    const char *p, *end, *begin;
    const struct gg_recipe_let *lets;
    uint32_t n_lets, line, nesting;
    uint64_t off;
    struct gguf_error *err;
};

static enum gguf_status refuse_token(struct parser *p, const char *what)
{
    struct gg_str_esc esc;
    struct gguf_str rest = { p->p, (size_t)(p->end - p->p) };
    return gg_error_set(
        p->err, GGUF_E_FORMAT, p->off + (uint64_t)(p->p - p->begin),
        "line %u: %s at '%s'", p->line, what, gg_str_esc(&esc, rest));
}

static void skip_blanks(struct parser *p)
{
    while (p->p < p->end && (*p->p == ' ' || *p->p == '\t'))
        p->p++;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

/* Return the word at p without consuming it: letters, digits and '_', and also
 * '-' and '.' in names of architectures. */
static struct gguf_str peek_word(const struct parser *p, bool arch)
{
    const char *q = p->p;
    while (q < p->end && is_word(*q) && (arch || (*q != '-' && *q != '.')))
        q++;
    return (struct gguf_str){ p->p, (size_t)(q - p->p) };
}

/* Consume a token if it is next. Words must end where the token does. */
static bool accept_token(struct parser *p, const char *token)
{
    skip_blanks(p);
    size_t n = strlen(token);
    if ((size_t)(p->end - p->p) < n || memcmp(p->p, token, n) != 0)
        return false;
    if (token[0] >= 'a' && token[0] <= 'z' && peek_word(p, false).size != n)
        return false;
    p->p += n;
    return true;
}

static enum gguf_status emit_op(struct parser *p, enum op op, int64_t arg)
{
    struct gguf_recipe *r = p->r;
    if (r->n_code == MAX_CODE)
        return gg_error_set(p->err, GGUF_E_LIMIT, p->off,
                            "line %u: conditions of more than %d steps",
                            p->line, MAX_CODE);
    if (r->n_code == r->cap_code) {
        void *grown = gg_mem_grow(r->allocator, r->code, &r->cap_code,
                                  sizeof *r->code, 64, p->err);
        if (!grown)
            return GGUF_E_NOMEM;
        r->code = grown;
    }
    r->code[r->n_code++] = (struct gg_recipe_step){ (uint8_t)op, arg };
    return GGUF_OK;
}

static enum gguf_status emit_arch(struct parser *p)
{
    struct gguf_recipe *r = p->r;
    skip_blanks(p);
    struct gguf_str name = peek_word(p, true);
    if (!name.size)
        return refuse_token(p, "the name of an architecture is missing");
    p->p += name.size;
    if (r->n_archs == r->cap_archs) {
        void *grown = gg_mem_grow(r->allocator, r->archs, &r->cap_archs,
                                  sizeof *r->archs, 8, p->err);
        if (!grown)
            return GGUF_E_NOMEM;
        r->archs = grown;
    }
    r->archs[r->n_archs] = name; /* points into r->text */
    return emit_op(p, OP_ARCH, r->n_archs++);
}

/* arch == NAME, arch != NAME, arch in (NAME, NAME ...) */
static enum gguf_status arch_test(struct parser *p)
{
    if (accept_token(p, "=="))
        return emit_arch(p);
    if (accept_token(p, "!=")) {
        GG_TRY(emit_arch(p));
        return emit_op(p, OP_NOT, 0);
    }
    if (!accept_token(p, "in") || !accept_token(p, "("))
        return refuse_token(p, "'==', '!=' or 'in (' is expected after arch");
    GG_TRY(emit_arch(p));
    while (accept_token(p, ",")) {
        GG_TRY(emit_arch(p));
        GG_TRY(emit_op(p, OP_OR, 0));
    }
    return accept_token(p, ")") ? GGUF_OK : refuse_token(p, "')' is missing");
}

static enum gguf_status parse_number(struct parser *p, struct gguf_str word)
{
    const size_t size = word.size;
    uint64_t v;
    if (!gg_str_uint(&word, MAX_NUMBER, &v) || word.size)
        return refuse_token(p, "this is not a number");
    p->p += size;
    return emit_op(p, OP_CONST, (int64_t)v);
}

static enum gguf_status parse_name(struct parser *p, struct gguf_str word)
{
    for (uint32_t i = 0; i < p->n_lets; i++)
        if (gg_str_eq(word, p->lets[i].name)) {
            p->p += word.size;
            for (uint32_t k = 0; k < p->lets[i].n_code; k++) {
                struct gg_recipe_step s = p->r->code[p->lets[i].code + k];
                GG_TRY(emit_op(p, s.op, s.arg));
            }
            return GGUF_OK;
        }
    for (unsigned i = 0; i < GG_N_VARS; i++)
        if (gg_str_eqz(word, var_names[i])) {
            p->p += word.size;
            return emit_op(p, OP_VAR, i);
        }
    return refuse_token(p, "this name is not known");
}

static enum gguf_status parse_expression(struct parser *p, int level);

static enum gguf_status parse_operand(struct parser *p)
{
    if (accept_token(p, "(")) {
        GG_TRY(parse_expression(p, 1));
        return accept_token(p, ")") ? GGUF_OK
                                    : refuse_token(p, "')' is missing");
    }
    if (accept_token(p, "not")) {
        GG_TRY(parse_expression(p, LEVEL_NOT));
        return emit_op(p, OP_NOT, 0);
    }
    if (accept_token(p, "-")) {
        GG_TRY(parse_expression(p, LEVEL_NEG));
        return emit_op(p, OP_NEG, 0);
    }
    if (accept_token(p, "arch"))
        return arch_test(p);
    skip_blanks(p);
    struct gguf_str word = peek_word(p, false);
    if (!word.size)
        return refuse_token(p, "a number, a name or '(' is expected");
    if (word.data[0] >= '0' && word.data[0] <= '9')
        return parse_number(p, word);
    return parse_name(p, word);
}

/* Parse an operand and the following operators that bind at least as tight as a
 * level. */
static enum gguf_status parse_expression(struct parser *p, int level)
{
    if (++p->nesting > MAX_NESTING)
        return gg_error_set(p->err, GGUF_E_LIMIT, p->off,
                            "line %u: nested deeper than %d", p->line,
                            MAX_NESTING);
    GG_TRY(parse_operand(p));
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < GG_LEN(binary) && !more; i++) {
            if (binary[i].level < level || !accept_token(p, binary[i].word))
                continue;
            GG_TRY(parse_expression(p, binary[i].level + 1));
            GG_TRY(emit_op(p, binary[i].op, 0));
            more = true;
        }
    }
    p->nesting--;
    return GGUF_OK;
}

enum gguf_status gg_recipe_compile_condition(struct gguf_recipe *r,
                                             struct gguf_str text,
                                             const struct gg_recipe_let *lets,
                                             uint32_t n_lets, uint32_t line,
                                             uint64_t off, uint32_t *n_code,
                                             struct gguf_error *err)
{
    uint32_t begin = r->n_code;
    struct parser p = { r,         text.data, text.data + text.size,
                        text.data, lets,      n_lets,
                        line,      0,         off,
                        err };
    GG_TRY(parse_expression(&p, 1));
    skip_blanks(&p);
    if (p.p < p.end)
        return refuse_token(&p, "an operator or the end is expected");
    *n_code = r->n_code - begin;

    unsigned depth = 0, most = 0;
    for (uint32_t i = begin; i < r->n_code; i++) {
        enum op op = r->code[i].op;
        depth += op <= OP_ARCH;
        depth -= op >= OP_MUL;
        most = GG_MAX(most, depth);
    }
    if (most > MAX_STACK)
        return gg_error_set(
            err, GGUF_E_LIMIT, off,
            "line %u: a condition needs more than %d numbers at "
            "once",
            line, MAX_STACK);
    return GGUF_OK;
}

bool gg_recipe_is_reserved(struct gguf_str word)
{
    static const char *const words[] = { "and", "or",   "not",  "in", "arch",
                                         "if",  "base", "keep", "let" };
    for (size_t i = 0; i < GG_LEN(words); i++)
        if (gg_str_eqz(word, words[i]))
            return true;
    for (unsigned i = 0; i < GG_N_VARS; i++)
        if (gg_str_eqz(word, var_names[i]))
            return true;
    return false;
}

static int64_t apply_op(enum op op, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (op) {
    case OP_MUL: return (int64_t)(ua * ub);
    case OP_DIV: return !b ? 0 : b == -1 ? (int64_t)(0 - ua) : a / b;
    case OP_MOD: return !b || b == -1 ? 0 : a % b;
    case OP_ADD: return (int64_t)(ua + ub);
    case OP_SUB: return (int64_t)(ua - ub);
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_GT: return a > b;
    case OP_GE: return a >= b;
    case OP_EQ: return a == b;
    case OP_NE: return a != b;
    case OP_AND: return a && b;
    case OP_OR: return a || b;
    default: return 0;
    }
}

bool gg_recipe_rule_holds(const struct gguf_recipe *r,
                          const struct gg_recipe_rule *rule,
                          const struct gg_recipe_facts *facts)
{
    int64_t stack[MAX_STACK + 1];
    unsigned n = 0;
    if (!rule->n_code)
        return true;
    for (uint32_t i = 0; i < rule->n_code; i++) {
        const struct gg_recipe_step *s = &r->code[rule->code + i];
        switch ((enum op)s->op) {
        case OP_CONST: stack[n++] = s->arg; break;
        case OP_VAR: stack[n++] = facts->var[s->arg]; break;
        case OP_ARCH:
            stack[n++] = gg_str_eq(facts->arch, r->archs[s->arg]);
            break;
        case OP_NOT: stack[n - 1] = !stack[n - 1]; break;
        case OP_NEG:
            stack[n - 1] = (int64_t)(0 - (uint64_t)stack[n - 1]);
            break;
        default: n--; stack[n - 1] = apply_op(s->op, stack[n - 1], stack[n]);
        }
    }
    return stack[0] != 0;
}
