/* SPDX-License-Identifier: MIT */
/* pretok.c - cutting a text into words before byte-pair encoding
 *
 * Stages (pretok_row.c) are applied one after the other, each to the pieces
 * that the ones before have left: what an expression matches becomes a piece,
 * and so does what lies between two matches. A piece goes through all of its
 * stages before the next is looked for, so that nothing is kept.
 */
#include "config.h"
#include "vocab/pretok.h"
#include "vocab/pretok_row.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

/* Stack of the compiled expressions: long runs of one class recurse. */
enum { STACK_MIN = 32 * 1024, STACK_MAX = 64 * 1024 * 1024 };

struct gg_pretok {
    const struct gguf_allocator *allocator;
    const struct gg_pretok_row *row;
    pcre2_general_context *general;
    pcre2_code *code[GG_PRETOK_MAX_STAGES]; /* NULL: a function, or none */
    unsigned n_stages;
    uint32_t limit; /* of backtracking; 0: PCRE2's */
};

static void *re_alloc(PCRE2_SIZE size, void *user)
{
    return gg_mem_alloc(user, size);
}

static void re_free(void *ptr, void *user)
{
    if (ptr)
        gg_mem_free(user, ptr);
}

static enum gguf_status compile(struct gg_pretok *p, pcre2_compile_context *cc,
                                unsigned i, struct gguf_error *err)
{
    int code;
    PCRE2_SIZE at;
    char why[120];
    p->code[i] = pcre2_compile(
        (PCRE2_SPTR)p->row->stage[i].expr, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C,
        &code, &at, cc);
    if (!p->code[i] && code == PCRE2_ERROR_HEAP_FAILED)
        return gg_error_set_nomem(err, sizeof *p);
    if (!p->code[i]) {
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "byte %zu of an expression: %s", (size_t)at, why);
    }
    /* without a compiler for this processor it is interpreted */
    (void)pcre2_jit_compile(p->code[i], PCRE2_JIT_COMPLETE);
    return GGUF_OK;
}

static enum gguf_status unknown(struct gguf_str name, struct gguf_error *err)
{
    struct gg_pretok_near near;
    struct gg_str_esc e;
    gg_pretok_nearest(&near, name);
    return gg_error_set(
        err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
        "tokenizer.ggml.pre '%s' is not a way to cut texts into words "
        "that is known; like it are '%.*s' and '%.*s'",
        gg_str_esc(&e, name), (int)near.name[0].size, near.name[0].data,
        (int)near.name[1].size, near.name[1].data);
}

enum gguf_status gg_pretok_create_row(struct gg_pretok **out,
                                      const struct gg_pretok_row *row,
                                      uint32_t limit,
                                      const struct gguf_allocator *a,
                                      struct gguf_error *err)
{
    *out = NULL;
    struct gg_pretok *p = gg_mem_alloc_zero(a, 1, sizeof *p);
    if (!p)
        return gg_error_set_nomem(err, sizeof *p);
    p->allocator = a;
    p->row = row;
    p->limit = limit;
    p->general =
        pcre2_general_context_create(re_alloc, re_free, (void *)(uintptr_t)a);
    pcre2_compile_context *cc =
        p->general ? pcre2_compile_context_create(p->general) : NULL;
    enum gguf_status st = cc ? GGUF_OK : gg_error_set_nomem(err, sizeof *p);
    while (st == GGUF_OK && p->n_stages < GG_PRETOK_MAX_STAGES &&
           (row->stage[p->n_stages].expr || row->stage[p->n_stages].cut)) {
        unsigned i = p->n_stages++;
        if (row->stage[i].expr)
            st = compile(p, cc, i, err);
    }
    pcre2_compile_context_free(cc);
    if (st != GGUF_OK) {
        gg_pretok_destroy(p);
        return st;
    }
    *out = p;
    return GGUF_OK;
}

enum gguf_status gg_pretok_create(struct gg_pretok **out, struct gguf_str name,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err)
{
    const struct gg_pretok_row *row = gg_pretok_row_find(name);
    *out = NULL;
    return row ? gg_pretok_create_row(out, row, 0, a, err)
               : unknown(name, err);
}

void gg_pretok_destroy(struct gg_pretok *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < p->n_stages; i++)
        pcre2_code_free(p->code[i]);
    pcre2_general_context_free(p->general);
    gg_mem_free(p->allocator, p);
}

const struct gg_pretok_row *gg_pretok_get_row(const struct gg_pretok *p)
{
    return p->row;
}

/* ---- splitting ---- */

struct run {
    const struct gg_pretok *p;
    pcre2_match_context *ctx;
    pcre2_jit_stack *stack;
    pcre2_match_data *data;
    const char *text;
    gg_pretok_word_fn *word;
    void *user;
};

/* The pieces of text[begin..end) by stage i and those after it. */
static enum gguf_status cut(const struct run *r, unsigned i, size_t begin,
                            size_t end, struct gguf_error *err);

/* Of one function: its words, each through the stages after it. */
struct by_function {
    const struct run *r;
    unsigned stage;
    size_t begin; /* of the piece */
    size_t done;  /* bytes of it */
};

static enum gguf_status on_end(void *user, size_t end, struct gguf_error *err)
{
    struct by_function *f = user;
    size_t from = f->begin + f->done;
    f->done = end;
    return cut(f->r, f->stage + 1, from, f->begin + end, err);
}

static size_t next_char(const char *text, size_t at, size_t size)
{
    do
        at++;
    while (at < size && ((uint8_t)text[at] & 0xc0) == 0x80);
    return at;
}

/* Nothing outside the piece is seen. */
static enum gguf_status match_all(const struct run *r, unsigned i,
                                  size_t begin, size_t end,
                                  struct gguf_error *err)
{
    const char *piece = r->text + begin;
    size_t size = end - begin, done = 0;
    for (size_t from = 0; from < size;) {
        int n = pcre2_match(r->p->code[i], (PCRE2_SPTR)piece, size, from,
                            PCRE2_NO_UTF_CHECK, r->data, r->ctx);
        if (n == PCRE2_ERROR_NOMATCH)
            break;
        if (n < 0)
            return gg_error_set(
                err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                "the text cannot be cut into words at byte %zu "
                "(PCRE2 error %d)",
                begin + from, n);
        const PCRE2_SIZE *o = pcre2_get_ovector_pointer(r->data);
        size_t at = o[0], to = o[1];
        if (to == at) { /* no expression here matches nothing */
            from = next_char(piece, at, size);
            continue;
        }
        if (at > done)
            GG_TRY(cut(r, i + 1, begin + done, begin + at, err));
        GG_TRY(cut(r, i + 1, begin + at, begin + to, err));
        from = done = to;
    }
    return done < size ? cut(r, i + 1, begin + done, end, err) : GGUF_OK;
}

static enum gguf_status cut(const struct run *r, unsigned i, size_t begin,
                            size_t end, struct gguf_error *err)
{
    if (begin == end)
        return GGUF_OK;
    if (i == r->p->n_stages)
        return r->word(r->user, begin, end - begin, err);
    if (r->p->code[i])
        return match_all(r, i, begin, end, err);
    struct by_function f = { r, i, begin, 0 };
    const struct gg_pretok_out out = { on_end, &f };
    return r->p->row->stage[i].cut(r->text + begin, end - begin, &out, err);
}

/* A copy of text with surrogates replaced by U+FFFD, which is as long and of
 * no class either; text itself if it has none. NULL: no memory. */
static char *without_surrogates(const struct gguf_allocator *a,
                                const char *text, size_t size)
{
    char *copy = NULL;
    const char *next = text;
    while (size && (next = memchr(next, 0xed, size - (size_t)(next - text)))) {
        size_t i = (size_t)(next++ - text);
        if (i + 2 >= size || (uint8_t)text[i + 1] < 0xa0)
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
                                 size_t size, gg_pretok_word_fn *word,
                                 void *user, struct gguf_error *err)
{
    enum gguf_status st;
    char *copy = without_surrogates(p->allocator, text, size);
    struct run r = {
        .p = p,
        .ctx = pcre2_match_context_create(p->general),
        .stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, p->general),
        .data = pcre2_match_data_create(1, p->general),
        .text = copy,
        .word = word,
        .user = user,
    };
    if (copy && r.ctx && r.data) {
        if (p->limit)
            pcre2_set_match_limit(r.ctx, p->limit);
        if (r.stack)
            pcre2_jit_stack_assign(r.ctx, NULL, r.stack);
        st = cut(&r, 0, 0, size, err);
    } else {
        st = gg_error_set_nomem(err, size);
    }
    pcre2_match_data_free(r.data);
    pcre2_jit_stack_free(r.stack);
    pcre2_match_context_free(r.ctx);
    if (copy != text)
        gg_mem_free(p->allocator, copy);
    return st;
}
