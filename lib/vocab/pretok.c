/* pretok.c - cutting a text into words before byte-pair encoding
 *
 * Expressions are applied one after the other, each to the pieces that the
 * ones before have left: what it matches becomes a piece, and so does what
 * lies between two matches.
 */
#include "config.h"
#include "vocab/pretok.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

enum { MAX_EXPRS = 5 };

/* Stack of the compiled expressions: long runs of one class recurse. */
enum { STACK_MIN = 32 * 1024, STACK_MAX = 64 * 1024 * 1024 };

struct row {
    const char *names; /* tokenizer.ggml.pre, separated by spaces */
    const char *expr[MAX_EXPRS];
    bool ignore_merges, add_bos;
};

/* Members of a class: what has the Unicode property White_Space, which the
 * expressions' \s means. PCRE2's own has U+180E, too. */
#define SPACES    "\\t-\\r\\x{85}\\p{Z}"
#define SPACE     "[" SPACES "]"
#define SPACE_END SPACE "+(?![^" SPACES "])"
#define GPT2                                                                  \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES                 \
    "\\p{L}\\p{N}]+|" SPACE_END
#define CONTRACTIONS                                                          \
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
/* Words, numbers of at most DIGITS digits, the rest, newlines, blanks. */
#define TIKTOKEN(DIGITS)                                                      \
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" DIGITS               \
                 "| ?[^" SPACES "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE              \
                 "*[\\r\\n]+|" SPACE_END "|" SPACE "+"

static const struct row rows[] = {
    { .names = "default",
      .expr = { "[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+",
                "[0-9][0-9][0-9]" } },
    { .names = "gpt-2 phi-2 mpt olmo jais gigachat jina-es jina-de jina-v1-en "
               "jina-v2-es jina-v2-de jina-v2-code roberta-bpe",
      .expr = { GPT2 } },
    { .names = "starcoder refact command-r smollm codeshell exaone minerva-7b",
      .expr = { "\\p{N}", GPT2 } },
    { .names = "falcon",
      .expr = { "[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]" } },
    { .names = "deepseek-coder",
      .expr = { "[\r\n]", SPACE "?\\p{L}+", SPACE "?\\p{P}+",
                "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}"
                "\\x{ac00}-\\x{d7ff}]+",
                "\\p{N}" } },
    { .names = "qwen2 deepseek-r1-qwen stablelm2 megrez",
      .expr = { TIKTOKEN("") } },
    { .names = "llama-bpe llama3 llama-v3 falcon3",
      .expr = { TIKTOKEN("{1,3}") },
      .ignore_merges = true,
      .add_bos = true },
    { .names = "dbrx smaug-bpe chatglm-bpe", .expr = { TIKTOKEN("{1,3}") } },
};

struct gg_pretok {
    const struct gguf_allocator *allocator;
    const struct row *row;
    pcre2_general_context *general;
    pcre2_code *code[MAX_EXPRS]; /* NULL after the last */
};

const char *gg_pretok_names(size_t n)
{
    return n < GG_LEN(rows) ? rows[n].names : NULL;
}

static bool has_name(const char *names, struct gguf_str name)
{
    while (*names) {
        size_t n = strcspn(names, " ");
        if (n == name.size && !memcmp(names, name.data, n))
            return true;
        names += n + (names[n] == ' ');
    }
    return false;
}

static void *re_alloc(PCRE2_SIZE size, void *user)
{
    return gg_mem_alloc(user, size);
}

static void re_free(void *ptr, void *user)
{
    if (ptr)
        gg_mem_free(user, ptr);
}

enum gguf_status gg_pretok_create(struct gg_pretok **out, struct gguf_str name,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err)
{
    const struct row *row = NULL;
    struct gg_str_esc e;
    *out = NULL;
    for (size_t i = 0; i < GG_LEN(rows) && !row; i++)
        if (has_name(rows[i].names, name))
            row = &rows[i];
    if (!row)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "tokenizer.ggml.pre '%s' is not supported yet",
                            gg_str_esc(&e, name));
    struct gg_pretok *p = gg_mem_alloc_zero(a, 1, sizeof *p);
    if (!p)
        return gg_error_set_nomem(err, sizeof *p);
    p->allocator = a;
    p->row = row;
    p->general =
        pcre2_general_context_create(re_alloc, re_free, (void *)(uintptr_t)a);
    pcre2_compile_context *cc =
        p->general ? pcre2_compile_context_create(p->general) : NULL;
    bool good = cc != NULL;
    for (int i = 0; good && i < MAX_EXPRS && row->expr[i]; i++) {
        int code;
        PCRE2_SIZE at;
        p->code[i] = pcre2_compile(
            (PCRE2_SPTR)row->expr[i], PCRE2_ZERO_TERMINATED,
            PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &code, &at, cc);
        good = p->code[i] != NULL;
        /* without a compiler for this processor it is interpreted */
        if (good)
            (void)pcre2_jit_compile(p->code[i], PCRE2_JIT_COMPLETE);
    }
    pcre2_compile_context_free(cc);
    if (!good) {
        gg_pretok_destroy(p);
        return gg_error_set_nomem(err, sizeof *p);
    }
    *out = p;
    return GGUF_OK;
}

void gg_pretok_destroy(struct gg_pretok *p)
{
    if (!p)
        return;
    for (int i = 0; i < MAX_EXPRS; i++)
        pcre2_code_free(p->code[i]);
    pcre2_general_context_free(p->general);
    gg_mem_free(p->allocator, p);
}

bool gg_pretok_ignore_merges(const struct gg_pretok *p)
{
    return p->row->ignore_merges;
}

bool gg_pretok_add_bos(const struct gg_pretok *p)
{
    return p->row->add_bos;
}

/* ---- splitting ---- */

struct ends {
    const struct gguf_allocator *allocator;
    size_t *end;
    size_t n, cap;
};

static enum gguf_status push(struct ends *a, size_t end,
                             struct gguf_error *err)
{
    if (a->n == a->cap) {
        void *grown = gg_mem_grow(a->allocator, a->end, &a->cap,
                                  sizeof *a->end, 256, err);
        if (!grown)
            return GGUF_E_NOMEM;
        a->end = grown;
    }
    a->end[a->n++] = end;
    return GGUF_OK;
}

struct matcher {
    pcre2_match_context *ctx;
    pcre2_jit_stack *stack;
    pcre2_match_data *data;
};

/* Cut text[begin..end) by one expression: nothing outside is seen. */
static enum gguf_status cut(const struct matcher *m, const pcre2_code *code,
                            const char *text, size_t begin, size_t end,
                            struct ends *out, struct gguf_error *err)
{
    PCRE2_SPTR piece = (PCRE2_SPTR)text + begin;
    size_t size = end - begin, done = 0;
    for (size_t from = 0; from < size;) {
        int n = pcre2_match(code, piece, size, from, PCRE2_NO_UTF_CHECK,
                            m->data, m->ctx);
        if (n == PCRE2_ERROR_NOMATCH)
            break;
        if (n < 0)
            return gg_error_set(
                err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                "the text cannot be cut into words at byte %zu "
                "(PCRE2 error %d)",
                begin + from, n);
        const PCRE2_SIZE *o = pcre2_get_ovector_pointer(m->data);
        if (o[1] == o[0]) { /* no expression here matches nothing */
            from++;
            continue;
        }
        if (o[0] > done)
            GG_TRY(push(out, begin + o[0], err));
        GG_TRY(push(out, begin + o[1], err));
        from = done = o[1];
    }
    return done < size ? push(out, end, err) : GGUF_OK;
}

static enum gguf_status split(const struct gg_pretok *p,
                              const struct matcher *m, const char *text,
                              size_t size, struct ends *a, struct ends *b,
                              struct gguf_error *err)
{
    GG_TRY(push(a, size, err));
    for (int i = 0; i < MAX_EXPRS && p->code[i]; i++) {
        size_t begin = 0;
        b->n = 0;
        for (size_t k = 0; k < a->n; begin = a->end[k++])
            GG_TRY(cut(m, p->code[i], text, begin, a->end[k], b, err));
        struct ends t = *a;
        *a = *b;
        *b = t;
    }
    return GGUF_OK;
}

/* A copy of text with surrogates replaced by U+FFFD, which is as long and of
 * no class either; text itself if it has none. NULL: no memory. */
static char *without_surrogates(const struct gguf_allocator *a,
                                const char *text, size_t size)
{
    char *copy = NULL;
    for (size_t i = 0; i + 2 < size; i++) {
        if ((uint8_t)text[i] != 0xed || (uint8_t)text[i + 1] < 0xa0)
            continue;
        if (!copy) {
            copy = gg_mem_alloc(a, size);
            if (!copy)
                return NULL;
            memcpy(copy, text, size);
        }
        memcpy(copy + i, "\xef\xbf\xbd", 3);
    }
    return copy ? copy : (char *)(uintptr_t)text;
}

enum gguf_status gg_pretok_split(const struct gg_pretok *p, const char *text,
                                 size_t size, size_t **end, size_t *n,
                                 struct gguf_error *err)
{
    struct ends a = { .allocator = p->allocator }, b = a;
    enum gguf_status st;
    char *copy = without_surrogates(p->allocator, text, size);
    struct matcher m = {
        .ctx = pcre2_match_context_create(p->general),
        .stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, p->general),
        .data = pcre2_match_data_create(1, p->general),
    };
    *end = NULL;
    *n = 0;
    if (copy && m.ctx && m.data) {
        if (m.stack)
            pcre2_jit_stack_assign(m.ctx, NULL, m.stack);
        st = split(p, &m, copy, size, &a, &b, err);
    } else {
        st = gg_error_set_nomem(err, size);
    }
    pcre2_match_data_free(m.data);
    pcre2_jit_stack_free(m.stack);
    pcre2_match_context_free(m.ctx);
    if (copy != text)
        gg_mem_free(p->allocator, copy);
    gg_mem_free(p->allocator, b.end);
    if (st != GGUF_OK) {
        gg_mem_free(p->allocator, a.end);
        return st;
    }
    *end = a.end;
    *n = a.n;
    return GGUF_OK;
}
