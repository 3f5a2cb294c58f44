/* SPDX-License-Identifier: MIT */
/* regex_code.h - compiled expressions, and the nodes they are compiled from
 *
 * regex_parse.c turns a text into nodes and sets of characters, regex_code.c
 * turns nodes into instructions, and regex_match.c runs the instructions.
 */
#ifndef GG_VOCAB_REGEX_CODE_H
#define GG_VOCAB_REGEX_CODE_H

#include "base/mem.h"
#include "vocab/regex.h"
#include "vocab/unicode.h"

enum {
    GG_REGEX_MAX_SETS = 64,      /* sets of characters: bits of a mask */
    GG_REGEX_MAX_HEADS = 64,     /* top-level alternatives: bits of a mask */
    GG_REGEX_MAX_TEXT = 20000,   /* bytes of an expression */
    GG_REGEX_MAX_OPS = 2000,     /* instructions */
    GG_REGEX_MAX_DEPTH = 20,     /* nesting of groups */
    GG_REGEX_MAX_COUNT = 1000,   /* m and n of {m,n} */
    GG_REGEX_DEEP_FRAMES = 5000, /* frames if groups are looped over */
};
#define GG_REGEX_NO_MAX UINT32_MAX

/* A set of characters: a bit for each of ASCII; others by category or range. */
struct gg_regex_set {
    uint64_t ascii[2];
    uint32_t categories; /* mask of 1 << enum gg_unicode_category */
    uint32_t n_ranges;
    uint32_t *range; /* first and last of each range; sorted, disjoint; in the
                        arena */
    uint64_t *low;   /* bitmap of the ranges below 0x10000; NULL without
                        ranges */
    bool others;     /* complement, beyond ASCII, of categories and ranges */
    /* Upper bounds for characters beyond ASCII: their categories, ranges
     * included, and the first bytes of their UTF-8 (bit i: byte 0xc0 + i). */
    uint32_t all_categories;
    uint64_t leads;
};

enum gg_regex_mode { GG_REGEX_GREEDY, GG_REGEX_LAZY, GG_REGEX_POSSESSIVE };

enum gg_regex_assert {
    GG_REGEX_TEXT_BEGIN,
    GG_REGEX_TEXT_END,
    GG_REGEX_LAST_LINE_END, /* end of the text, or the newline before it */
    GG_REGEX_EDGE,          /* word boundary */
    GG_REGEX_NO_EDGE
};

/* ---- nodes ---- */

enum gg_regex_node_kind {
    GG_REGEX_N_EMPTY,
    GG_REGEX_N_SET,    /* one character of set */
    GG_REGEX_N_LIST,   /* concatenation of the children */
    GG_REGEX_N_ANY,    /* alternation of the children */
    GG_REGEX_N_REPEAT, /* child, min to max times */
    GG_REGEX_N_AHEAD,  /* lookahead of child; negative: no */
    GG_REGEX_N_BEHIND, /* lookbehind of one character of set; negative: no */
    GG_REGEX_N_ATOMIC, /* atomic group of child */
    GG_REGEX_N_ASSERT
};

struct gg_regex_node {
    enum gg_regex_node_kind kind;
    uint8_t mode; /* enum gg_regex_mode, or enum gg_regex_assert */
    uint8_t set;
    bool no;
    uint32_t min, max; /* max may be GG_REGEX_NO_MAX */
    struct gg_regex_node *child, *next;
};

/* ---- instructions ---- */

/* INNER: the instructions up to an ACCEPT follow; execution continues at to. */
enum gg_regex_op_kind {
    GG_REGEX_SET,   /* match one character of set */
    GG_REGEX_LOOP,  /* match min to max characters of set */
    GG_REGEX_SPLIT, /* continue with the next instruction; on failure at to.
                            LAZY: the reverse. no: jump to to unless the next
                            character is in set */
    GG_REGEX_JUMP,  /* continue at to */
    GG_REGEX_AHEAD, /* lookahead, INNER; negative: no */
    GG_REGEX_AHEAD_SET,  /* lookahead of one character of set */
    GG_REGEX_BEHIND_SET, /* lookbehind of one character of set */
    GG_REGEX_ATOMIC,     /* atomic group, INNER */
    GG_REGEX_GROUP_LOOP, /* possessive loop, min to max times, INNER */
    GG_REGEX_ASSERT,
    GG_REGEX_ACCEPT
};

struct gg_regex_op {
    enum gg_regex_op_kind kind;
    uint8_t mode, set;
    bool no;
    uint32_t min, max, to;
};

/* A compiled expression. Masks have a bit for each set, or for each top-level
 * alternative ("head"). Set masks are indexed by the character in ASCII, by its
 * category beyond. Head masks are indexed by the first byte of UTF-8, and
 * beyond ASCII by the category as well. */
struct gg_regex {
    const struct gguf_allocator *allocator;
    struct gg_mem_arena arena;
    uint64_t set_ascii[128], set_category[GG_UNICODE_N_CATEGORIES];
    uint64_t ranged; /* sets with ranges; set_category lacks these */
    uint64_t head_byte[256], head_category[GG_UNICODE_N_CATEGORIES];
    uint32_t head[GG_REGEX_MAX_HEADS]; /* first instruction of each head */
    struct gg_regex_op *op;
    uint32_t n_ops, n_sets, n_heads;
    size_t n_frames;
    bool from_run; /* the only head begins with an unbounded loop of one set: a
                      failure at its begin is a failure within the run, too */
    struct gg_regex_set set[GG_REGEX_MAX_SETS];
};

/* regex_parse.c: parse text into nodes, in re->arena; adds sets to re.
 * GGUF_E_NOMEM, GGUF_E_UNSUPPORTED. */
enum gguf_status gg_regex_parse(struct gg_regex *re, const char *text,
                                struct gg_regex_node **out,
                                struct gguf_error *err);

#endif
