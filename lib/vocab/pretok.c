/* SPDX-License-Identifier: MIT */
/* pretok.c - cut a text into words before byte-pair encoding
 *
 * Stages (pretok_row.c) are applied one after the other, each to the pieces
 * from the stage before. Each match of an expression becomes a piece, and so
 * does the text between two matches. A piece passes all of its stages before
 * the next piece is searched, so that nothing is stored. */
#include "config.h"
#include "vocab/pretok.h"
#include "vocab/pretok_row.h"

#include "vocab/regex.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"

struct gg_pretok {
    const struct gguf_allocator *allocator;
    const struct gg_pretok_row *row;
    /* NULL: the stage is a function */
    struct gg_regex *regex[GG_PRETOK_MAX_STAGES];
    unsigned n_stages;
    size_t n_frames; /* frames that the expressions need */
    uint64_t budget; /* backtracks for each text */
};

static enum gguf_status refuse_unknown(struct gguf_str name,
                                       struct gguf_error *err)
{
    struct gg_pretok_suggestions near;
    struct gg_str_esc e;
    gg_pretok_suggest(&near, name);
    return gg_error_set(
        err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
        "tokenizer.ggml.pre '%s' is not a way to cut texts into words "
        "that is known; like it are '%.*s' and '%.*s'",
        gg_str_esc(&e, name), (int)near.name[0].size, near.name[0].data,
        (int)near.name[1].size, near.name[1].data);
}

enum gguf_status gg_pretok_create_row(struct gg_pretok **out,
                                      const struct gg_pretok_row *row,
                                      uint64_t budget,
                                      const struct gguf_allocator *a,
                                      struct gguf_error *err)
{
    *out = NULL;
    struct gg_pretok *p = gg_mem_alloc_zero(a, 1, sizeof *p);
    if (!p)
        return gg_error_set_nomem(err, sizeof *p);
    p->allocator = a;
    p->row = row;
    p->budget = budget;
    enum gguf_status st = GGUF_OK;
    while (st == GGUF_OK && p->n_stages < GG_PRETOK_MAX_STAGES &&
           (row->stage[p->n_stages].expr || row->stage[p->n_stages].cut)) {
        unsigned i = p->n_stages++;
        if (!row->stage[i].expr)
            continue;
        st = gg_regex_create(&p->regex[i], row->stage[i].expr, a, err);
        if (st == GGUF_OK)
            p->n_frames = GG_MAX(p->n_frames, gg_regex_n_frames(p->regex[i]));
    }
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
    return row ? gg_pretok_create_row(out, row, UINT64_MAX, a, err)
               : refuse_unknown(name, err);
}

void gg_pretok_destroy(struct gg_pretok *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < p->n_stages; i++)
        gg_regex_destroy(p->regex[i]);
    gg_mem_free(p->allocator, p);
}

const struct gg_pretok_row *gg_pretok_get_row(const struct gg_pretok *p)
{
    return p->row;
}

/* ---- splitting ---- */

struct run {
    const struct gg_pretok *p;
    struct gg_regex_work *work;
    const char *text;
    gg_pretok_word_fn *word;
    void *user;
};

/* Cut text[begin..end) by stage i and those after it. */
static enum gguf_status cut_stages(const struct run *r, unsigned i,
                                   size_t begin, size_t end,
                                   struct gguf_error *err);

/* Words from a stage that is a function; each passes the later stages. */
struct by_function {
    const struct run *r;
    unsigned stage;
    size_t begin; /* begin of the piece */
    size_t done;  /* bytes of the piece that are cut */
};

static enum gguf_status on_end(void *user, size_t end, struct gguf_error *err)
{
    struct by_function *f = user;
    size_t from = f->begin + f->done;
    f->done = end;
    return cut_stages(f->r, f->stage + 1, from, f->begin + end, err);
}

static size_t next_char(const char *text, size_t at, size_t size)
{
    do
        at++;
    while (at < size && ((uint8_t)text[at] & 0xc0) == 0x80);
    return at;
}

/* The expression sees the piece alone. */
static enum gguf_status match_all(const struct run *r, unsigned i,
                                  size_t begin, size_t end,
                                  struct gguf_error *err)
{
    const char *piece = r->text + begin;
    size_t size = end - begin, done = 0;
    for (size_t from = 0, at, to; from < size;) {
        const enum gg_regex_found found = gg_regex_find(
            r->p->regex[i], piece, size, from, r->work, &at, &to);
        if (found == GG_REGEX_NONE)
            break;
        if (found == GG_REGEX_LIMIT)
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "the text cannot be cut into words at byte "
                                "%zu: an expression has too many choices",
                                begin + from);
        if (to == at) { /* no expression here has an empty match */
            from = next_char(piece, at, size);
            continue;
        }
        if (at > done)
            GG_TRY(cut_stages(r, i + 1, begin + done, begin + at, err));
        GG_TRY(cut_stages(r, i + 1, begin + at, begin + to, err));
        from = done = to;
    }
    return done < size ? cut_stages(r, i + 1, begin + done, end, err)
                       : GGUF_OK;
}

static enum gguf_status cut_stages(const struct run *r, unsigned i,
                                   size_t begin, size_t end,
                                   struct gguf_error *err)
{
    if (begin == end)
        return GGUF_OK;
    if (i == r->p->n_stages)
        return r->word(r->user, begin, end - begin, err);
    if (r->p->regex[i])
        return match_all(r, i, begin, end, err);
    struct by_function f = { r, i, begin, 0 };
    const struct gg_pretok_out out = { on_end, &f };
    return r->p->row->stage[i].cut(r->text + begin, end - begin, &out, err);
}

enum gguf_status gg_pretok_split(const struct gg_pretok *p, const char *text,
                                 size_t size, gg_pretok_word_fn *word,
                                 void *user, struct gguf_error *err)
{
    struct gg_regex_work work = { .n = p->n_frames, .budget = p->budget };
    const struct run r = {
        .p = p, .work = &work, .text = text, .word = word, .user = user
    };
    work.frame = gg_mem_alloc(p->allocator, work.n * sizeof *work.frame);
    if (!work.frame)
        return gg_error_set_nomem(err, work.n * sizeof *work.frame);
    enum gguf_status st = cut_stages(&r, 0, 0, size, err);
    gg_mem_free(p->allocator, work.frame);
    return st;
}
