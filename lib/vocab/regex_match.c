/* SPDX-License-Identifier: MIT */
/* regex_match.c - running the instructions of an expression on a text
 *
 * A frame records a choice that may be taken back. A loop of one set needs one
 * frame, however many characters it took: it gives them back one by one.
 */
#include "config.h"
#include "vocab/regex_code.h"
#include "vocab/regex_set.h"

#include "base/compiler.h"

/* The state of one search. */
struct run {
    const struct gg_regex *re;
    const char *text;
    size_t size;
    struct gg_regex_work *w;
    size_t n; /* frames in use */
};

/* ---- characters ---- */

static inline bool is_inner(char c)
{
    return ((uint8_t)c & 0xc0) == 0x80;
}

/* Bytes of a character that begins with c. */
static inline size_t char_size(uint8_t c)
{
    return c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* The character beyond ASCII at byte at, and its bytes. */
static inline size_t decode_char(const struct run *r, size_t at, uint32_t *cp)
{
    const uint8_t *p = (const uint8_t *)r->text + at;
    const size_t left = r->size - at;
    const size_t n = char_size(*p);
    if (GG_UNLIKELY(n == 1 || n > left)) {
        *cp = 0xfffd;
        return 1;
    }
    if (n == 2)
        *cp = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    else if (n == 3)
        *cp = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    else
        *cp = (p[0] & 7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 |
              (p[3] & 0x3fu);
    return n;
}

/* Is cp, beyond ASCII, of set k? */
static inline bool set_has(const struct gg_regex *re, unsigned k, uint32_t cp)
{
    if (GG_LIKELY(!(re->ranged >> k & 1)))
        return re->set_category[gg_unicode_category(cp)] >> k & 1;
    const struct gg_regex_set *s = &re->set[k];
    const bool in = gg_regex_set_in_range(s, cp) ||
                    (s->categories && gg_unicode_is(cp, s->categories));
    return in != s->others;
}

/* Size of the character at byte at, or 0 if it is not in set k. */
static inline size_t take_char(const struct run *r, unsigned k, size_t at)
{
    uint32_t cp;
    if (at >= r->size)
        return 0;
    const uint8_t c = (uint8_t)r->text[at];
    if (c < 0x80)
        return r->re->set_ascii[c] >> k & 1;
    const size_t n = decode_char(r, at, &cp);
    return set_has(r->re, k, cp) ? n : 0;
}

/* Skip characters of set k, at most max; returns the byte after them. */
static inline size_t take_run(const struct run *r, unsigned k, size_t at,
                              uint32_t max)
{
    const uint64_t *ascii = r->re->set_ascii;
    for (; max && at < r->size; max--) {
        const uint8_t c = (uint8_t)r->text[at];
        uint32_t cp;
        if (c < 0x80) {
            if (!(ascii[c] >> k & 1))
                break;
            at++;
            continue;
        }
        const size_t n = decode_char(r, at, &cp);
        if (!set_has(r->re, k, cp))
            break;
        at += n;
    }
    return at;
}

static size_t size_before(const struct run *r, size_t at)
{
    const size_t end = at;
    do
        at--;
    while (at && end - at < 4 && is_inner(r->text[at]));
    return at;
}

/* ---- assertions ---- */

/* Does the edge of a word, whose characters are set k, lie before byte at? */
static bool is_edge(const struct run *r, unsigned k, size_t at)
{
    const bool word_before = at && take_char(r, k, size_before(r, at));
    return word_before != (take_char(r, k, at) != 0);
}

static bool assertion_holds(const struct run *r, const struct gg_regex_op *op,
                            size_t at)
{
    switch (op->mode) {
    case GG_REGEX_TEXT_BEGIN: return at == 0;
    case GG_REGEX_TEXT_END: return at == r->size;
    case GG_REGEX_LAST_LINE_END:
        return at == r->size || (at + 1 == r->size && r->text[at] == '\n');
    case GG_REGEX_EDGE: return is_edge(r, op->set, at);
    default: return !is_edge(r, op->set, at);
    }
}

/* ---- instructions ---- */

static enum gg_regex_found run_ops(struct run *r, uint32_t pc, size_t at,
                                   size_t *end);

/* Take n off the budget. false: it is spent. */
static inline bool spend_budget(struct run *r, uint64_t n)
{
    const bool left = r->w->budget > n;
    r->w->budget -= left ? n : r->w->budget;
    return left;
}

/* Push a frame. false: the stack is full. */
static inline bool push_frame(struct run *r, uint32_t pc, size_t at,
                              size_t least)
{
    if (r->n == r->w->n)
        return false;
    r->w->frame[r->n++] = (struct gg_regex_frame){ at, least, pc };
    return true;
}

/* Pop the last choice above n_kept; the search continues at *pc and *at. false:
 * no choice is left. */
static inline bool backtrack_match(struct run *r, size_t n_kept, uint32_t *pc,
                                   size_t *at)
{
    while (r->n > n_kept) {
        struct gg_regex_frame *f = &r->w->frame[r->n - 1];
        const struct gg_regex_op *op = &r->re->op[f->pc];
        *pc = f->pc + 1;
        *at = f->at;
        if (op->kind == GG_REGEX_SPLIT) {
            if (op->mode != GG_REGEX_LAZY)
                *pc = op->to;
            r->n--;
            return true;
        }
        if (op->mode == GG_REGEX_GREEDY) {
            *at = f->at = GG_MAX(size_before(r, f->at), f->least);
            r->n -= f->at <= f->least;
            return true;
        }
        const size_t n = take_char(r, op->set, f->at);
        *at = f->at += n;
        if (n && f->least--)
            return true;
        r->n--;
    }
    return false;
}

/* Run a LOOP, and move *at past the characters that it takes. */
static enum gg_regex_found run_loop(struct run *r, uint32_t pc, size_t *at)
{
    const struct gg_regex_op *op = &r->re->op[pc];
    const uint32_t more =
        op->max == GG_REGEX_NO_MAX ? UINT32_MAX : op->max - op->min;
    bool room = true;
    for (uint32_t i = 0; i < op->min; i++) {
        const size_t n = take_char(r, op->set, *at);
        if (!n)
            return GG_REGEX_NONE;
        *at += n;
    }
    if (op->mode == GG_REGEX_LAZY) {
        room = push_frame(r, pc, *at, more);
    } else {
        const size_t least = *at;
        *at = take_run(r, op->set, least, more);
        room = spend_budget(r, (*at - least) / 32);
        if (op->mode == GG_REGEX_GREEDY && *at > least && room)
            room = push_frame(r, pc, *at, least);
    }
    return room ? GG_REGEX_FOUND : GG_REGEX_LIMIT;
}

/* Run instructions up to an ACCEPT and drop their frames. */
static enum gg_regex_found run_to_accept(struct run *r, uint32_t pc, size_t at,
                                         size_t *end)
{
    const size_t n_kept = r->n;
    const enum gg_regex_found found = run_ops(r, pc, at, end);
    r->n = n_kept;
    return found;
}

/* Run an INNER instruction; moves *at past the characters of its match. */
static enum gg_regex_found run_inner(struct run *r, uint32_t pc, size_t *at)
{
    const struct gg_regex_op *op = &r->re->op[pc];
    enum gg_regex_found found;
    size_t end;
    if (op->kind == GG_REGEX_GROUP_LOOP) {
        uint32_t n = 0;
        found = GG_REGEX_FOUND;
        for (; n < op->max && found == GG_REGEX_FOUND; n++) {
            found = run_to_accept(r, pc + 1, *at, &end);
            if (found == GG_REGEX_FOUND)
                *at = end;
        }
        n -= found == GG_REGEX_NONE;
        return found == GG_REGEX_LIMIT ? found
               : n < op->min           ? GG_REGEX_NONE
                                       : GG_REGEX_FOUND;
    }
    found = run_to_accept(r, pc + 1, *at, &end);
    if (found == GG_REGEX_FOUND && op->kind == GG_REGEX_ATOMIC)
        *at = end;
    if (op->no && found != GG_REGEX_LIMIT)
        found = found == GG_REGEX_FOUND ? GG_REGEX_NONE : GG_REGEX_FOUND;
    return found;
}

/* Match at byte at from instruction pc. Frames in use before stay as they
 * are. */
static enum gg_regex_found run_ops(struct run *r, uint32_t pc, size_t at,
                                   size_t *end)
{
    const size_t n_kept = r->n;
    for (;; pc++) {
        const struct gg_regex_op *op = &r->re->op[pc];
        enum gg_regex_found good = GG_REGEX_FOUND;
        size_t n;
        switch (op->kind) {
        case GG_REGEX_SET:
            n = take_char(r, op->set, at);
            at += n;
            good = n ? GG_REGEX_FOUND : GG_REGEX_NONE;
            break;
        case GG_REGEX_LOOP: good = run_loop(r, pc, &at); break;
        case GG_REGEX_SPLIT:
            if (op->no && !take_char(r, op->set, at)) {
                pc = op->to - 1;
                break;
            }
            good = push_frame(r, pc, at, 0) ? GG_REGEX_FOUND : GG_REGEX_LIMIT;
            pc = op->mode == GG_REGEX_LAZY ? op->to - 1 : pc;
            break;
        case GG_REGEX_JUMP: pc = op->to - 1; break;
        case GG_REGEX_AHEAD:
        case GG_REGEX_ATOMIC:
        case GG_REGEX_GROUP_LOOP:
            good = run_inner(r, pc, &at);
            pc = op->to - 1;
            break;
        case GG_REGEX_AHEAD_SET:
            good = (take_char(r, op->set, at) != 0) != op->no;
            break;
        case GG_REGEX_BEHIND_SET:
            good = (at && take_char(r, op->set, size_before(r, at))) != op->no;
            break;
        case GG_REGEX_ASSERT: good = assertion_holds(r, op, at); break;
        case GG_REGEX_ACCEPT: *end = at; return GG_REGEX_FOUND;
        }
        if (GG_LIKELY(good == GG_REGEX_FOUND))
            continue;
        if (good == GG_REGEX_LIMIT || !spend_budget(r, 1))
            return GG_REGEX_LIMIT;
        if (!backtrack_match(r, n_kept, &pc, &at))
            return GG_REGEX_NONE;
        pc--;
    }
}

enum gg_regex_found gg_regex_find(const struct gg_regex *re, const char *text,
                                  size_t size, size_t from,
                                  struct gg_regex_work *w, size_t *begin,
                                  size_t *end)
{
    struct run r = { .re = re, .text = text, .size = size, .w = w };
    for (size_t at = from, n; at < size; at += n) {
        const uint8_t c = (uint8_t)text[at];
        uint64_t heads = re->head_byte[c];
        n = char_size(c);
        if (heads && c >= 0x80) {
            uint32_t cp;
            n = decode_char(&r, at, &cp);
            heads &= re->head_category[gg_unicode_category(cp)];
        }
        if (!heads)
            continue;
        for (unsigned k = 0; heads; k++, heads >>= 1) {
            if (!(heads & 1))
                continue;
            r.n = 0;
            const enum gg_regex_found found =
                run_ops(&r, re->head[k], at, end);
            *begin = at;
            if (found != GG_REGEX_NONE)
                return found;
        }
        if (re->from_run) { /* ends after the run; another set may begin it */
            const size_t run_end = take_run(&r, re->op[0].set, at, UINT32_MAX);
            n = run_end > at ? run_end - at : n;
        }
    }
    return GG_REGEX_NONE;
}
