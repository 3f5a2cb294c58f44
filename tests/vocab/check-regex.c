/* SPDX-License-Identifier: MIT */
/* check-regex.c - regular expressions agree with PCRE2
 *
 * Expressions of all rows and random ones, on random texts. Characters of the
 * texts are in Unicode since version 4, so that every version of PCRE2 knows
 * their classes; check-unicode.c has newer ones.
 *
 * PCRE2 is used without its compiler and its optimisations: in version 10.42
 * the compiler backtracks into (?>(s+|s)){3}, and loops that were made
 * possessive do not give back the characters that \P{L}+\p{^S} needs. Perl
 * agrees with this library there.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "tests/failalloc.h"
#include "tests/tap.h"
#include "vocab/pretok_row.h"
#include "vocab/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { MOST_FRAMES = 6000 };

static struct gg_regex_frame frames[MOST_FRAMES];

/* ---- one search, by both ---- */

struct both {
    struct gg_regex *re;
    pcre2_code *code;
    pcre2_match_data *data;
};

static enum gguf_status compile_both(struct both *b, const char *expr,
                                     struct gguf_error *err)
{
    int code;
    PCRE2_SIZE at;
    *b = (struct both){ .re = NULL };
    const enum gguf_status st = gg_regex_create(&b->re, expr, NULL, err);
    if (st != GGUF_OK)
        return st;
    b->code = pcre2_compile((PCRE2_SPTR)expr, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_POSSESS,
                            &code, &at, NULL);
    b->data = pcre2_match_data_create(1, NULL);
    if (!b->code || !b->data) {
        printf("# PCRE2 refuses %s\n", expr);
        abort();
    }
    return GGUF_OK;
}

static void drop_both(struct both *b)
{
    gg_regex_destroy(b->re);
    pcre2_code_free(b->code);
    pcre2_match_data_free(b->data);
}

/* Do both find the same matches in the text? *n: number of matches. */
static bool both_agree(const struct both *b, const char *text, size_t size,
                       int *n)
{
    struct gg_regex_work w = { frames, MOST_FRAMES, 200000 };
    for (size_t from = 0; from < size;) {
        size_t begin = 0, end = 0;
        const enum gg_regex_found found =
            gg_regex_find(b->re, text, size, from, &w, &begin, &end);
        if (found == GG_REGEX_LIMIT)
            return true;
        const int rc = pcre2_match(b->code, (PCRE2_SPTR)text, size, from, 0,
                                   b->data, NULL);
        const PCRE2_SIZE *o = pcre2_get_ovector_pointer(b->data);
        if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
            return true;
        if (rc >= 0 && o[0] == size)
            return found == GG_REGEX_NONE; /* no match at the end */
        if ((found == GG_REGEX_FOUND) != (rc >= 0) ||
            (rc >= 0 && (o[0] != begin || o[1] != end))) {
            printf("# from %zu: %d %zu to %zu, PCRE2: %d %zu to %zu\n", from,
                   found, begin, end, rc, (size_t)o[0], (size_t)o[1]);
            return false;
        }
        if (rc < 0)
            return true;
        ++*n;
        from = end > begin ? end : end + 1;
        while (from < size && ((uint8_t)text[from] & 0xc0) == 0x80)
            from++;
    }
    return true;
}

/* ---- random texts ---- */

static const char *const parts[] = {
    "a",
    "b",
    "s",
    "S",
    "T",
    "re",
    "LL",
    "'",
    "1",
    "23",
    "4",
    " ",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    ",",
    "...",
    "~",
    "$",
    "+",
    "_",
    "-",
    "/",
    "|",
    "\xc3\xa9",
    "\xc3\x89",
    "\xcc\x81",
    "\xd0\x96",
    "\xd1\x8f",
    "\xce\xb1",
    "\xd9\xa3",
    "\xd7\xa9",
    "\xe0\xa4\xb9",
    "\xe0\xa4\xbf", /* Devanagari vowel sign */
    "\xe0\xa5\xa7", /* Devanagari one */
    "\xe4\xb8\xad",
    "\xe3\x81\x82",
    "\xe3\x82\xab", /* Han, kana */
    "\xea\xb0\x80",
    "\xef\xbc\x8c",
    "\xe2\x80\x94", /* Hangul, marks */
    "\xc2\xa0",
    "\xe2\x80\x83",
    "\xe3\x80\x80", /* blanks */
    "\xc2\xbd",
    "\xe2\x85\xa7",
    "\xc2\xb2", /* other numbers */
    "\xe2\x98\x83",
    "\xe2\x82\xac",
    "\xe2\x88\x91", /* symbols */
    "\xef\xbf\xbd",
    "\xf0\x9d\x90\x80", /* beyond 0xffff */
    "\xf0\xa0\x80\x80",
    "\xe2\x80\x8b", /* Han, format */
};

static size_t random_text(char *text, size_t most)
{
    size_t size = 0, n = rnd_below(most / 4);
    for (; n; n--) {
        const char *part = parts[rnd_below(GG_LEN(parts))];
        for (uint64_t k = rnd_below(4) ? 1 : rnd_below(8); k; k--) {
            memcpy(text + size, part, strlen(part));
            size += strlen(part);
            if (size + 40 > most)
                return size;
        }
    }
    return size;
}

static void check_rows(void)
{
    const struct gg_pretok_row *row;
    char text[2000];
    int n = 0, n_exprs = 0;
    for (size_t i = 0; (row = gg_pretok_row(i)); i++) {
        bool good = true;
        for (size_t s = 0; s < GG_PRETOK_MAX_STAGES; s++) {
            struct both b;
            struct gguf_error e;
            if (!row->stage[s].expr)
                continue;
            if (compile_both(&b, row->stage[s].expr, &e) != GGUF_OK) {
                printf("# %s\n", e.message);
                good = false;
                continue;
            }
            for (int k = 0; k < 200 && good; k++)
                good =
                    both_agree(&b, text, random_text(text, sizeof text), &n);
            n_exprs++;
            drop_both(&b);
        }
        ok(good, "%.*s: as PCRE2", (int)strcspn(row->names, " "), row->names);
    }
    ok(n_exprs > 50 && n > 100000, "%d expressions, %d matches", n_exprs, n);
}

/* ---- random expressions ---- */

struct expr {
    char s[4000];
    size_t n;
};

static void put_text(struct expr *x, const char *z)
{
    if (x->n + strlen(z) < sizeof x->s - 500)
        x->n += (size_t)sprintf(x->s + x->n, "%s", z);
}

static void put_atom(struct expr *x, int depth);

static void put_any(struct expr *x, int depth)
{
    for (uint64_t n = 1 + rnd_below(3), i = 0; i < n; i++) {
        put_text(x, i ? "|" : "");
        for (uint64_t k = rnd_below(8) ? 1 + rnd_below(3) : 0; k; k--)
            put_atom(x, depth);
    }
}

static void put_atom(struct expr *x, int depth)
{
    static const char *const atoms[] = {
        "a",
        "s",
        "'",
        "1",
        " ",
        "\\n",
        "\\r",
        "\\$",
        "\\x{4e2d}",
        "\xc3\xa9",
        ".",
        "\\s",
        "\\S",
        "\\d",
        "\\D",
        "\\p{L}",
        "\\P{L}",
        "\\p{N}",
        "\\p{Lu}",
        "\\p{Ll}",
        "\\p{Lo}",
        "\\p{M}",
        "\\p{P}",
        "\\p{^S}",
        "\\pS",
        "\\p{Zs}",
        "\\p{Cf}",
        "[a-z]",
        "[^a-z]",
        "[^\\s\\p{L}\\p{N}]",
        "[\\r\\n]",
        "[^\\P{L}a-z]",
        "[-a1\\-]",
        "[]a]",
        "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{30ff}]",
        "[^\\x{4e00}-\\x{9fa5}\\p{P}]",
        "[\\p{L}\\p{M}]"
    };
    static const char *const counts[] = { "?",     "*",     "+",   "{2}",
                                          "{0,2}", "{1,3}", "{2,}" };
    static const char *const groups[] = { "(?:",  "(",   "(?>",
                                          "(?i:", "(?=", "(?!" };
    static const char *const edges[] = {
        "^",      "$",         "\\A",     "\\z",       "(?<=\\s)",
        "(?<!a)", "(?<=[b1])", "(?!\\S)", "(?=\\p{L})"
    };
    const uint64_t draw = rnd_below(20);
    if (!draw) {
        put_text(x, edges[rnd_below(GG_LEN(edges))]);
        return;
    }
    if (draw < 5 && depth) {
        const uint64_t g = rnd_below(GG_LEN(groups));
        put_text(x, groups[g]);
        if (g == 3) /* (?i beyond ASCII is refused */
            put_text(x, rnd_below(2) ? "'s|'re" : "[st]l");
        else
            put_any(x, depth - 1);
        put_text(x, ")");
        if (g > 3)
            return;
    } else {
        put_text(x, atoms[rnd_below(GG_LEN(atoms))]);
    }
    if (rnd_below(2))
        return;
    put_text(x, counts[rnd_below(GG_LEN(counts))]);
    put_text(x, rnd_below(4) ? "" : rnd_below(2) ? "?" : "+");
}

static void check_random(void)
{
    enum { N = 4000 };
    char text[400];
    int n_bad = 0, n_refused = 0, n = 0;
    for (int i = 0; i < N; i++) {
        static struct expr x;
        struct both b;
        bool good = true;
        x.n = 0;
        put_any(&x, 2);
        const enum gguf_status st = compile_both(&b, x.s, NULL);
        n_refused += st == GGUF_E_UNSUPPORTED;
        if (st != GGUF_OK)
            continue;
        for (int k = 0; k < 10 && good; k++)
            good = both_agree(&b, text, random_text(text, sizeof text), &n);
        if (!good)
            printf("# %s\n", x.s);
        n_bad += !good;
        drop_both(&b);
    }
    ok(!n_bad && n_refused < N / 8 && n > 10 * N,
       "random expressions: %d of %d differ, %d are refused, %d matches",
       n_bad, N, n_refused, n);
}

/* ---- differences from PCRE2 ---- */

static bool finds_match(const char *expr, const char *text, size_t begin,
                        size_t end)
{
    struct gg_regex *re;
    struct gg_regex_work w = { frames, MOST_FRAMES, UINT64_MAX };
    size_t b = 0, e = 0;
    if (gg_regex_create(&re, expr, NULL, NULL) != GGUF_OK)
        return false;
    const enum gg_regex_found found =
        gg_regex_find(re, text, strlen(text), 0, &w, &b, &e);
    gg_regex_destroy(re);
    return begin == end ? found == GG_REGEX_NONE
                        : found == GG_REGEX_FOUND && b == begin && e == end;
}

static void check_own(void)
{
    ok(finds_match("[^(\\s|[.,]+)]", " (.)x", 4, 5) ||
           finds_match("[^(\\s|[.,])]+", " (.)x", 4, 5),
       "a set in a set");
    ok(finds_match("(?i:'s)", "a'\xc5\xbf", 1, 4),
       "long s is an s in any case");
    ok(finds_match("(?i)'K", "'\xe2\x84\xaa", 0, 4),
       "so is the sign of kelvin a k");
    ok(finds_match("\\w+", "-\xe0\xa4\xb9\xe0\xa4\xbf_1\xe2\x93\x90-", 1, 12),
       "word characters are letters, marks, digits, _ and circled letters");
    ok(finds_match("\\bb", "ab b", 3, 4) && finds_match("\\Bb", "b ab", 3, 4),
       "edges of words");
    ok(finds_match("\\u4e2d\\x41",
                   "\xe4\xb8\xad"
                   "A",
                   0, 4),
       "characters by number");
    ok(finds_match("\\p{Han}", "\xe3\x80\x81\xe3\x80\x85", 3, 6),
       "the script of Han, not its extensions");
    ok(finds_match("\\p{Cs}", "a\xed\xa0\x80", 1, 4) &&
           finds_match("[^\\p{L}]+", "a\xed\xa0\x80.", 1, 5),
       "surrogates are characters");
    ok(finds_match("a{,2", "a{,2", 0, 4), "braces that are not a quantifier");
}

static void check_refused(void)
{
    static const char *const rows[] = {
        "(",
        ")",
        "a)",
        "[a",
        "[z-a]",
        "*a",
        "a**",
        "a{3,2}",
        "a{99999}",
        "(?:a*)*",
        "(?:|a)+",
        "\\C",
        "a\\Kb",
        "\\1",
        "\\p{Odd}",
        "\\p{L",
        "\\",
        "(?R)",
        "(?<n>a)",
        "(?(1)a)",
        "(?s:.)",
        "[[:alpha:]]",
        "[a&&b]",
        "(?<=ab)",
        "[\\P{Han}a]",
        "\\x{110000}",
        "\\u12",
        "\xff",
        "(?i:\xc3\xa9)",
        "(((((((((((((((((((((((((a)))))))))))))))))))))))))",
        "(?:(?:(?:a{99}b){99}c){99}d){99}"
    };
    struct gguf_error e;
    struct gg_regex *re;
    for (size_t i = 0; i < GG_LEN(rows); i++)
        ok(gg_regex_create(&re, rows[i], NULL, &e) == GGUF_E_UNSUPPORTED &&
               !re,
           "%s: %s", i < 2 ? "bracket" : rows[i], e.message);
}

/* Random bytes are refused, or run to an end. */
static void check_garbage(void)
{
    static const char bytes[] = "ab'1 \\\\\\pPsSdDxu{}{L}{Lu}[]()^$?*+|,-.:"
                                "=!<>i&\xc3\xa9\xe4\xb8\xad\xff";
    int n_good = 0;
    for (int i = 0; i < 60000; i++) {
        char expr[64], text[100];
        size_t n = rnd_below(sizeof expr), begin, end;
        struct gg_regex *re;
        struct gg_regex_work w = { frames, 100, 1000 };
        for (size_t k = 0; k < n; k++)
            expr[k] = bytes[rnd_below(sizeof bytes - 1)];
        expr[n] = 0;
        if (gg_regex_create(&re, expr, NULL, NULL) != GGUF_OK)
            continue;
        n = random_text(text, sizeof text);
        for (size_t k = 0; n && k < rnd_below(4); k++)
            text[rnd_below(n)] = (char)rnd64();
        if (gg_regex_find(re, text, n, 0, &w, &begin, &end) == GG_REGEX_FOUND)
            n_good += begin <= end && end <= n;
        gg_regex_destroy(re);
    }
    ok(n_good > 500, "of random bytes %d are expressions and match", n_good);
}

static void check_limits(void)
{
    struct failalloc f;
    struct gg_regex *re;
    struct gg_regex_work w = { frames, MOST_FRAMES, UINT64_MAX };
    size_t begin, end;
    char text[4000];
    memset(text, 'a', sizeof text);
    if (gg_regex_create(&re, "(?:(?:[^~]+)+)+~", NULL, NULL) != GGUF_OK)
        abort();
    w.budget = 20000;
    ok(gg_regex_find(re, text, sizeof text, 0, &w, &begin, &end) ==
           GG_REGEX_LIMIT,
       "an expression that backtracks for ever");
    gg_regex_destroy(re);
    if (gg_regex_create(&re, "(?:a|b)*c", NULL, NULL) != GGUF_OK)
        abort();
    w.budget = UINT64_MAX;
    w.n = 100;
    ok(gg_regex_find(re, text, sizeof text, 0, &w, &begin, &end) ==
           GG_REGEX_LIMIT,
       "more choices than the stack has room for");
    gg_regex_destroy(re);
    unsigned n = 0;
    bool good = true;
    for (enum gguf_status st = GGUF_E_NOMEM; st != GGUF_OK && good; n++) {
        st = gg_regex_create(
            &re,
            "(?i:'s|'re)|[\\x{4e00}-\\x{9fa5}\\p{Han}]+(?!\\S|ab)|"
            "(?:a|b){30}",
            failalloc_init(&f, n), NULL);
        gg_regex_destroy(re);
        good = f.live == 0 && (st == GGUF_OK || st == GGUF_E_NOMEM);
    }
    ok(good && n > 4, "each of %u allocations may fail", n - 1);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    check_rows();
    check_random();
    check_own();
    check_refused();
    check_garbage();
    check_limits();
    return done_testing();
}
