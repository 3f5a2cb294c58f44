/* SPDX-License-Identifier: MIT */
/* regex_code.c - expressions as nodes to instructions and tables */
#include "config.h"
#include "vocab/regex_code.h"
#include "vocab/regex_set.h"

#include "base/compiler.h"

/* Status of the first failure, so that emitting need not look. */
struct writer {
    struct gg_regex *re;
    size_t room; /* capacity of re->op */
    enum gguf_status status;
    struct gguf_error *err;
};

static void refuse_pattern(struct writer *w, const char *why)
{
    if (w->status == GGUF_OK)
        w->status = gg_error_set(w->err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                 "an expression %s", why);
}

/* The instruction's number, or 0 after a failure. */
static uint32_t put_op(struct writer *w, struct gg_regex_op op)
{
    struct gg_regex *re = w->re;
    if (w->status != GGUF_OK)
        return 0;
    if (re->n_ops == GG_REGEX_MAX_OPS) {
        refuse_pattern(w, "is too large");
        return 0;
    }
    if (re->n_ops == w->room) {
        void *grown = gg_mem_grow(re->allocator, re->op, &w->room,
                                  sizeof *re->op, 32, w->err);
        if (!grown) {
            w->status = GGUF_E_NOMEM;
            return 0;
        }
        re->op = grown;
    }
    re->op[re->n_ops] = op;
    return re->n_ops++;
}

/* Make instruction at continue with the next instruction put. */
static void land_jump(struct writer *w, uint32_t at)
{
    if (w->status == GGUF_OK)
        w->re->op[at].to = w->re->n_ops;
}

/* ---- first characters ---- */

struct firsts {
    struct gg_regex_set set; /* superset, without ranges */
    uint64_t leads;          /* first bytes of UTF-8: bit i is byte 0xc0 + i */
};

/* Add the first characters of what n matches to f, perhaps with others. Returns
 * whether n can match nothing. */
static bool add_firsts(const struct gg_regex *re,
                       const struct gg_regex_node *n, struct firsts *f)
{
    const struct gg_regex_node *c = n->child;
    const struct gg_regex_set *s = &re->set[n->set];
    bool empty = false;
    switch (n->kind) {
    case GG_REGEX_N_SET:
        f->set.ascii[0] |= s->ascii[0];
        f->set.ascii[1] |= s->ascii[1];
        f->set.categories |= s->all_categories;
        f->leads |= s->leads;
        return false;
    case GG_REGEX_N_LIST:
        while (c && add_firsts(re, c, f))
            c = c->next;
        return !c;
    case GG_REGEX_N_ANY:
        for (; c; c = c->next)
            empty |= add_firsts(re, c, f);
        return empty;
    case GG_REGEX_N_REPEAT: return add_firsts(re, c, f) || !n->min;
    case GG_REGEX_N_ATOMIC: return add_firsts(re, c, f);
    default: return true;
    }
}

/* Put a choice to match n or to skip it. It skips without a frame if the next
 * character cannot begin n. */
static uint32_t put_split(struct writer *w, const struct gg_regex_node *n,
                          unsigned mode)
{
    struct gg_regex_op op = { .kind = GG_REGEX_SPLIT, .mode = (uint8_t)mode };
    struct firsts f = { .leads = 0 };
    op.no = mode != GG_REGEX_LAZY && !add_firsts(w->re, n, &f) &&
            gg_regex_set_number(w->re, &f.set, &op.set);
    return put_op(w, op);
}

/* ---- nodes to instructions ---- */

static void put_node(struct writer *w, const struct gg_regex_node *n);

/* Put op, the instructions of n and an ACCEPT. op continues after them. */
static void put_inner(struct writer *w, struct gg_regex_op op,
                      const struct gg_regex_node *n)
{
    const uint32_t at = put_op(w, op);
    put_node(w, n);
    put_op(w, (struct gg_regex_op){ .kind = GG_REGEX_ACCEPT });
    land_jump(w, at);
}

static bool can_be_empty(const struct gg_regex_node *n)
{
    const struct gg_regex_node *c = n->child;
    switch (n->kind) {
    case GG_REGEX_N_SET: return false;
    case GG_REGEX_N_ATOMIC: return can_be_empty(c);
    case GG_REGEX_N_REPEAT: return !n->min || can_be_empty(c);
    case GG_REGEX_N_LIST:
        while (c && can_be_empty(c))
            c = c->next;
        return !c;
    case GG_REGEX_N_ANY:
        while (c && !can_be_empty(c))
            c = c->next;
        return c;
    default: return true;
    }
}

/* Put a group min to max times, as copies. Those beyond min are optional;
 * without a max they are one loop. */
static void put_copies(struct writer *w, const struct gg_regex_node *n)
{
    const uint32_t first = w->re->n_ops;
    for (uint32_t i = 0; i < n->min && w->status == GGUF_OK; i++)
        put_node(w, n->child);
    if (n->max == GG_REGEX_NO_MAX) {
        const uint32_t at = put_split(w, n->child, n->mode);
        put_node(w, n->child);
        put_op(w, (struct gg_regex_op){ .kind = GG_REGEX_JUMP, .to = at });
        land_jump(w, at);
        w->re->n_frames = GG_REGEX_DEEP_FRAMES;
        return;
    }
    for (uint32_t i = n->min; i < n->max && w->status == GGUF_OK; i++) {
        put_split(w, n->child, n->mode);
        put_node(w, n->child);
    }
    for (uint32_t i = first; i < w->re->n_ops && w->status == GGUF_OK; i++)
        if (w->re->op[i].kind == GG_REGEX_SPLIT && !w->re->op[i].to)
            land_jump(w, i);
}

static void put_repeat(struct writer *w, const struct gg_regex_node *n)
{
    const struct gg_regex_node *c = n->child;
    struct gg_regex_op op = { .kind = GG_REGEX_LOOP,
                              .mode = n->mode,
                              .set = c->set,
                              .min = n->min,
                              .max = n->max };
    if (c->kind == GG_REGEX_N_SET) {
        put_op(w, op);
        return;
    }
    if (n->max == GG_REGEX_NO_MAX && can_be_empty(c)) {
        refuse_pattern(w, "repeats what can match nothing");
        return;
    }
    if (n->mode != GG_REGEX_POSSESSIVE) {
        put_copies(w, n);
    } else if (n->min <= 1) { /* no round is gone back to */
        op.kind = GG_REGEX_GROUP_LOOP;
        put_inner(w, op, c);
    } else {
        struct gg_regex_node greedy = *n;
        greedy.mode = GG_REGEX_GREEDY;
        op.kind = GG_REGEX_ATOMIC;
        put_inner(w, op, &greedy);
    }
}

static void put_any(struct writer *w, const struct gg_regex_node *n)
{
    uint32_t jumps = 0; /* a chain by their to */
    for (const struct gg_regex_node *c = n->child; c; c = c->next) {
        const uint32_t at = c->next ? put_split(w, c, GG_REGEX_GREEDY) : 0;
        put_node(w, c);
        if (!c->next || w->status != GGUF_OK)
            break;
        jumps = put_op(
            w, (struct gg_regex_op){ .kind = GG_REGEX_JUMP, .to = jumps });
        land_jump(w, at);
    }
    while (jumps && w->status == GGUF_OK) {
        const uint32_t next = w->re->op[jumps].to;
        land_jump(w, jumps);
        jumps = next;
    }
}

static void put_node(struct writer *w, const struct gg_regex_node *n)
{
    const struct gg_regex_node *c = n->child;
    struct gg_regex_op op = { .mode = n->mode, .set = n->set, .no = n->no };
    switch (n->kind) {
    case GG_REGEX_N_EMPTY: break;
    case GG_REGEX_N_SET:
        op.kind = GG_REGEX_SET;
        put_op(w, op);
        break;
    case GG_REGEX_N_LIST:
        for (; c; c = c->next)
            put_node(w, c);
        break;
    case GG_REGEX_N_ANY: put_any(w, n); break;
    case GG_REGEX_N_REPEAT: put_repeat(w, n); break;
    case GG_REGEX_N_AHEAD:
        if (c->kind == GG_REGEX_N_SET) {
            op.kind = GG_REGEX_AHEAD_SET;
            op.set = c->set;
            put_op(w, op);
        } else {
            op.kind = GG_REGEX_AHEAD;
            put_inner(w, op, c);
        }
        break;
    case GG_REGEX_N_BEHIND:
        op.kind = GG_REGEX_BEHIND_SET;
        put_op(w, op);
        break;
    case GG_REGEX_N_ATOMIC:
        op.kind = GG_REGEX_ATOMIC;
        put_inner(w, op, c);
        break;
    case GG_REGEX_N_ASSERT:
        op.kind = GG_REGEX_ASSERT;
        put_op(w, op);
        break;
    }
}

/* Make loops possessive if nothing after them can fail. */
static void drop_choices(struct gg_regex *re)
{
    bool is_sure[GG_REGEX_MAX_OPS + 1] = { false };
    for (uint32_t i = re->n_ops; i-- > 0;) {
        struct gg_regex_op *op = &re->op[i];
        const bool skips = op->kind == GG_REGEX_SPLIT ||
                           op->kind == GG_REGEX_GROUP_LOOP ||
                           op->kind == GG_REGEX_JUMP;
        if (op->kind == GG_REGEX_LOOP && op->mode == GG_REGEX_GREEDY &&
            is_sure[i + 1])
            op->mode = GG_REGEX_POSSESSIVE;
        if (op->kind == GG_REGEX_ACCEPT)
            is_sure[i] = true;
        else if (op->kind == GG_REGEX_LOOP)
            is_sure[i] = !op->min && is_sure[i + 1];
        else if (skips && op->to > i)
            is_sure[i] = !op->min && is_sure[op->to];
        if (op->kind == GG_REGEX_SPLIT ||
            (op->kind == GG_REGEX_LOOP && op->mode != GG_REGEX_POSSESSIVE))
            re->n_frames += re->n_frames != GG_REGEX_DEEP_FRAMES;
    }
}

static void fill_tables(uint64_t *ascii,
                        uint64_t category[GG_UNICODE_N_CATEGORIES],
                        unsigned bit, const uint64_t of_ascii[2],
                        uint32_t categories)
{
    const uint64_t mask = UINT64_C(1) << bit;
    for (unsigned c = 0; c < 128; c++)
        if (of_ascii[c >> 6] >> (c & 63) & 1)
            ascii[c] |= mask;
    for (unsigned c = 0; c < GG_UNICODE_N_CATEGORIES; c++)
        if (categories >> c & 1)
            category[c] |= mask;
}

/* Alternative k begins with f, or with anything. */
static void tabulate_head(struct gg_regex *re, unsigned k, struct firsts *f,
                          bool anything)
{
    if (anything)
        *f = (struct firsts){ .set = { .ascii = { ~UINT64_C(0), ~UINT64_C(0) },
                                       .categories = ~UINT32_C(0) },
                              .leads = ~UINT64_C(0) };
    fill_tables(re->head_byte, re->head_category, k, f->set.ascii,
                f->set.categories);
    for (unsigned b = 0x80; b < 256; b++) /* bytes out of place: as U+FFFD */
        if (b < 0xc2 || b > 0xf4 || (f->leads >> (b - 0xc0) & 1))
            re->head_byte[b] |= UINT64_C(1) << k;
}

static void put_heads(struct writer *w, const struct gg_regex_node *root)
{
    struct gg_regex *re = w->re;
    const struct gg_regex_node *c =
        root->kind == GG_REGEX_N_ANY ? root->child : root;
    for (; c && w->status == GGUF_OK; c = c->next) {
        struct firsts f = { .leads = 0 };
        if (re->n_heads == GG_REGEX_MAX_HEADS) {
            refuse_pattern(w, "has too many alternatives");
            break;
        }
        tabulate_head(re, re->n_heads, &f, add_firsts(re, c, &f));
        re->head[re->n_heads++] = re->n_ops;
        put_node(w, c);
        put_op(w, (struct gg_regex_op){ .kind = GG_REGEX_ACCEPT });
    }
}

enum gguf_status gg_regex_create(struct gg_regex **out, const char *text,
                                 const struct gguf_allocator *a,
                                 struct gguf_error *err)
{
    struct gg_regex *re = gg_mem_alloc_zero(a, 1, sizeof *re);
    struct gg_regex_node *root;
    struct writer w = { .re = re, .err = err };
    *out = NULL;
    if (!re)
        return gg_error_set_nomem(err, sizeof *re);
    re->allocator = a;
    gg_mem_arena_init(&re->arena, a);
    enum gguf_status st = gg_regex_parse(re, text, &root, err);
    if (st == GGUF_OK) {
        put_heads(&w, root);
        st = w.status;
    }
    if (st == GGUF_OK && !gg_regex_set_map(re))
        st = gg_error_set_nomem(err, sizeof *re);
    if (st != GGUF_OK) {
        gg_regex_destroy(re);
        return st;
    }
    drop_choices(re);
    for (unsigned k = 0; k < re->n_sets; k++) {
        const struct gg_regex_set *s = &re->set[k];
        fill_tables(re->set_ascii, re->set_category, k, s->ascii,
                    s->categories);
        re->ranged |= s->n_ranges ? UINT64_C(1) << k : 0;
    }
    re->from_run = re->n_heads == 1 && re->op[0].kind == GG_REGEX_LOOP &&
                   re->op[0].max == GG_REGEX_NO_MAX;
    *out = re;
    return GGUF_OK;
}

void gg_regex_destroy(struct gg_regex *re)
{
    if (!re)
        return;
    const struct gguf_allocator *a = re->allocator;
    gg_mem_arena_fini(&re->arena);
    gg_mem_free(a, re->op);
    gg_mem_free(a, re);
}

size_t gg_regex_n_frames(const struct gg_regex *re)
{
    return re->n_frames;
}
