/* SPDX-License-Identifier: MIT */
/* check-base.c - sizes, cursor, strings, index, memory */
#include "config.h"
#include "base/base64.h"
#include "base/cursor.h"
#include "base/index.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/suggestion.h"
#include "base/str.h"
#include "tests/tap.h"

#include <stdalign.h>
#include <stddef.h>

static void check_ckd(void)
{
    uint64_t r;
    size_t s;
    ok(gg_ckd_mul(&r, UINT64_MAX, 2), "mul overflow is seen");
    ok(!gg_ckd_mul(&r, UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1) &&
           r == UINT64_MAX - UINT32_MAX,
       "a product that just fits");
    ok(!gg_ckd_align(&r, 33, 32) && r == 64, "33 aligns to 64");
    ok(!gg_ckd_align(&r, 64, 32) && r == 64, "64 aligns to itself");
    ok(gg_ckd_align(&r, UINT64_MAX - 3, 32), "align overflow is seen");
    ok(gg_ckd_array(&s, UINT64_C(1) << 61, 8), "array overflow is seen");
    ok(gg_ckd_exceeds_cap(UINT64_C(1) << 63) && !gg_ckd_exceeds_cap(INT64_MAX),
       "cap");
}

static void check_cursor(void)
{
    static const uint8_t b[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    struct gguf_error e;
    uint64_t v64;
    uint32_t v32;
    struct gg_cursor c = { .base = b, .size = sizeof b };

    ok(gg_cursor_u64(&c, &v64, "count", &e) == GGUF_OK &&
           v64 == UINT64_C(0x0807060504030201),
       "u64, little-endian");
    gguf_error_clear(&e);
    ok(gg_cursor_u64(&c, &v64, "count", &e) == GGUF_E_TRUNCATED &&
           e.offset == 8 && strstr(e.message, "4 left") && c.off == 8,
       "short read: %s", e.message);
    ok(gg_cursor_u32(&c, &v32, "x", NULL) == GGUF_OK && v32 == 9 &&
           c.off == 12,
       "u32 up to the last byte");
    const uint8_t *p;
    ok(gg_cursor_take(&c, UINT64_MAX, &p, "x", &e) == GGUF_E_TRUNCATED,
       "a length of 2^64-1 is refused");
    c = (struct gg_cursor){ .base = b, .size = sizeof b, .swap = true };
    ok(gg_cursor_u32(&c, &v32, "x", NULL) == GGUF_OK && v32 == 0x01020304,
       "u32, big-endian");
}

static void check_escape(void)
{
    static const struct {
        const char *in;
        size_t n;
        const char *want;
    } cases[] = {
        { "plain", 5, "plain" },
        { "\x1b[31mred", 8, "\\x1B[31mred" },
        { "a\0b", 3, "a\\x00b" },
        { "\n\t\\", 3, "\\n\\t\\\\" },
        { "\xc3\xa9", 2, "\xc3\xa9" },
        { "\xc3", 1, "\\xC3" },
        { "\xc2\x9b"
          "31m",
          5, "\\u{9B}31m" },
        { "\xe2\x80\xae"
          "abc",
          6, "\\u{202E}abc" },
        { "\xf3\xa0\x81\x81\xe2\x81\xa0", 7, "\\u{E0041}\\u{2060}" },
        { "\xc2\xad\xef\xb8\x8f", 5, "\\u{AD}\\u{FE0F}" },
        { "\xc2\xac\xe2\x81\x9f\xf3\x9f\xbf\xbf", 9,
          "\xc2\xac\xe2\x81\x9f\xf3\x9f\xbf\xbf" },
        { "\xed\xa0\x80", 3, "\\xED\\xA0\\x80" },
        { "\xf4\x90\x80\x80", 4, "\\xF4\\x90\\x80\\x80" },
        { "\x7f", 1, "\\x7F" },
    };
    char out[64];
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        gg_str_escape(out, sizeof out, cases[i].in, cases[i].n);
        ok(!strcmp(out, cases[i].want), "escape %zu gives %s", i, out);
    }
    for (size_t size = 1; size < 20; size++) {
        char big[32];
        memset(big, '#', sizeof big);
        size_t n = gg_str_escape(big, size, "\x1b\xc3\xa9xyz\x1b\x1b", 9);
        if (n != strlen(big) || n >= size || big[size] != '#' ||
            !gg_str_utf8_valid(big, n)) {
            ok(0, "escape into %zu bytes stays inside", size);
            return;
        }
    }
    ok(1, "escape stays inside buffers of every size");
}

static void check_same(void)
{
    struct gguf_str part = { "iq4_xs rest", 6 };
    ok(gg_str_eq_nocase(part, "IQ4_xs") &&
           !gg_str_eq_nocase(part, "IQ4_XS rest") &&
           !gg_str_eq_nocase(part, "IQ4_X") && !gg_str_eq_nocase(part, "") &&
           gg_str_eq_nocase(GG_STR(""), "") &&
           !gg_str_eq_nocase(GG_STR(""), "a"),
       "names are the same in any case");
    int bad = 0;
    for (int c = 1; c < 256; c++) {
        char z[2] = { (char)c, 0 };
        bad += gg_str_eq_nocase(GG_STR("i"), z) != (c == 'i' || c == 'I') ||
               gg_str_eq_nocase(GG_STR("["), z) != (c == '[');
    }
    ok(!bad, "of ASCII letters, no others");
}

static void check_uint(void)
{
    static const struct {
        const char *text, *left;
        uint64_t max, v;
        int found;
    } cases[] = {
        { "12ab", "ab", 99, 12, 1 },
        { "0", "", 0, 0, 1 },
        { "007.", ".", 7, 7, 1 },
        { "18446744073709551615", "", UINT64_MAX, UINT64_MAX, 1 },
        { "18446744073709551616", NULL, UINT64_MAX, 5, 0 },
        { "1", NULL, 0, 5, 0 },
        { "8", NULL, 7, 5, 0 },
        { "10", NULL, 9, 5, 0 },
        { "10", "", 10, 10, 1 },
        { "", NULL, 9, 5, 0 },
        { "-1", NULL, 9, 5, 0 },
        { " 1", NULL, 9, 5, 0 },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_str s = gg_str_z(cases[i].text);
        uint64_t v = 5;
        ok(gg_str_uint(&s, cases[i].max, &v) == cases[i].found &&
               v == cases[i].v &&
               gg_str_eqz(s, cases[i].found ? cases[i].left : cases[i].text),
           "digits of '%s', at most %" PRIu64, cases[i].text, cases[i].max);
    }
    struct gguf_str one = { "123", 1 };
    uint64_t v;
    ok(gg_str_uint(&one, 9, &v) && v == 1, "only the bytes that are counted");
}

static void check_bounded(void)
{
    char out[8];
    memset(out, '#', sizeof out);
    ok(gg_str_join(out, 7, GG_STR("abc"), "def") && !strcmp(out, "abcdef") &&
           out[7] == '#',
       "a name and an ending fill a buffer");
    ok(!gg_str_join(out, 6, GG_STR("abc"), "def") && !out[0] &&
           !gg_str_join(out, 3, GG_STR(""), "def") && !out[0] &&
           !gg_str_join(out, 4, (struct gguf_str){ "x", SIZE_MAX }, "") &&
           !out[0],
       "and are refused where one byte is missing");
    ok(!gg_str_join(out, 8, GG_STR("a\0b"), "") && !out[0],
       "a name with a NUL is not cut at it");
    ok(gg_str_join(out, 1, (struct gguf_str){ NULL, 0 }, "") && !out[0],
       "nothing fits one byte");

    static const char text[] = "a\xc3\xa9\xf0\x9f\x98\x80";
    static const size_t want[] = { 0, 1, 1, 3, 3, 3, 3, 7, 7 };
    size_t n = sizeof text - 1, bad = 0;
    for (size_t room = 0; room < GG_LEN(want); room++)
        bad += gg_str_utf8_fit(text, n, room) != want[room];
    ok(!bad, "texts are cut between code points");
    bad = gg_str_utf8_fit("\x80\x80\x80", 3, 2) != 0;
    ok(!bad, "invalid UTF-8, too");
}

static void check_utf8(void)
{
    int bad = 0;
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        char b[4];
        uint32_t back = 0;
        size_t n = gg_str_utf8_encode(cp, b);
        int surrogate = cp >= 0xd800 && cp < 0xe000;
        if (!n != (surrogate || cp > 0x10ffff))
            bad++;
        if (n && (gg_str_utf8_decode(b, n, &back) != n || back != cp ||
                  (n > 1 && gg_str_utf8_decode(b, n - 1, &back) != 0)))
            bad++;
    }
    ok(!bad, "every code point survives encoding and decoding");
    ok(!gg_str_utf8_valid("\xc0\x80", 2) &&
           !gg_str_utf8_valid("\xe0\x80\x80", 3),
       "overlong forms are refused");
}

static struct gguf_str name_of(const void *user, uint32_t id)
{
    static char buf[2][24]; /* the index holds at most two names at a time */
    static unsigned turn;
    char *b = buf[turn++ & 1];
    (void)user;
    int n = snprintf(b, sizeof buf[0], "name%" PRIu32, id % 5000);
    return (struct gguf_str){ b, (size_t)n };
}

static void check_index(void)
{
    struct gg_index ix;
    uint32_t other;
    int bad = 0;
    ok(gg_index_init(&ix, NULL, 0, name_of, NULL, NULL) == GGUF_OK, "index");
    for (uint32_t i = 0; i < 5000; i++)
        bad += gg_index_add(&ix, i, &other, NULL) != GGUF_OK ||
               other != GG_INDEX_NONE;
    ok(!bad, "5000 names go in");
    for (uint32_t i = 0; i < 5000; i++) {
        char b[24];
        int n = snprintf(b, sizeof b, "name%" PRIu32, i);
        bad += gg_index_find(&ix, (struct gguf_str){ b, (size_t)n }) != i;
    }
    ok(!bad, "and are found");
    ok(gg_index_find(&ix, GG_STR("nobody")) == GG_INDEX_NONE,
       "a name that is not there is not found");
    ok(gg_index_add(&ix, 5042, &other, NULL) == GGUF_OK && other == 42,
       "a duplicate tells who has the name");
    gg_index_fini(&ix);
}

static void check_arena(void)
{
    struct gg_mem_arena a;
    gg_mem_arena_init(&a, NULL);
    int bad = 0;
    for (size_t i = 0; i < 3000; i++) {
        char *p = gg_mem_arena_alloc(&a, i % 100 + (i == 7 ? 200000 : 1));
        bad += !p || (uintptr_t)p % alignof(max_align_t);
        if (p)
            memset(p, 1, i % 100 + 1);
    }
    ok(!bad, "arena blocks are aligned");
    char *s = gg_mem_arena_strndup(&a, "abcdef", 3);
    ok(s && !strcmp(s, "abc"), "strndup ends the copy");
    ok(!gg_mem_arena_alloc(&a, SIZE_MAX - 4), "an absurd size fails");
    gg_mem_arena_fini(&a);
    for (size_t align = 8; align <= 4096; align *= 2) {
        void *p = gg_mem_alloc_aligned(NULL, 100, align);
        bad += !p || (uintptr_t)p % align;
        gg_mem_free_aligned(NULL, p);
    }
    ok(!bad, "aligned blocks are");
    /* sizes around half a huge page, one page and two */
    for (size_t size = 1u << 19; size <= 1u << 23; size += size / 2) {
        char *p = gg_mem_alloc_huge(NULL, size, 64);
        bad += !p || (uintptr_t)p % 64;
        if (p)
            memset(p, 1, size);
        gg_mem_free_aligned(NULL, p);
    }
    ok(!bad && !gg_mem_alloc_huge(NULL, SIZE_MAX - 5, 64),
       "large blocks, and one that is too large");
}

static void check_grow(void)
{
    struct gguf_error err;
    size_t room = 0, n = 0;
    int *v = NULL;
    for (int i = 0; i < 100; i++) {
        if (n == room)
            v = gg_mem_grow(NULL, v, &room, sizeof *v, 3, &err);
        v[n++] = i;
    }
    bool good = room == 192;
    for (int i = 0; i < 100; i++)
        good &= v[i] == i;
    ok(good, "an array grows by doubling and keeps its items");
    v = gg_mem_grow(NULL, v, &room, sizeof *v, 1000, &err);
    good = v && room == 1000 && v[99] == 99;
    ok(good, "to the requested size if twice is less");
    gg_mem_free(NULL, v);
    room = 0;
    ok(!gg_mem_grow(NULL, NULL, &room, 16, SIZE_MAX / 8, &err) &&
           err.status == GGUF_E_NOMEM && room == 0,
       "not to more bytes than can be counted");
    room = SIZE_MAX / 8;
    ok(!gg_mem_grow(NULL, NULL, &room, 16, 1, &err) &&
           err.status == GGUF_E_NOMEM && room == SIZE_MAX / 8,
       "not beyond what there is");
}

static void check_renew(void)
{
    struct gguf_error err;
    size_t room = 0;
    int *v = gg_mem_renew(NULL, NULL, &room, sizeof *v, 0, &err), *same;
    ok(v && !room, "an array of nothing is one, too");
    v = gg_mem_renew(NULL, v, &room, sizeof *v, 5, &err);
    bool good = v && room == 5;
    for (int i = 0; i < 5 && good; i++) {
        good = !v[i];
        v[i] = i + 1;
    }
    ok(good, "a renewed array is as long as asked for, and zeroed");
    same = gg_mem_renew(NULL, v, &room, sizeof *v, 3, &err);
    ok(same == v && room == 5 && v[4] == 5, "one that has room stays");
    v = gg_mem_renew(NULL, v, &room, sizeof *v, SIZE_MAX / 2, &err);
    ok(!v && !room && err.status == GGUF_E_NOMEM,
       "one that cannot be had leaves nothing");
}

static bool is_after(const void *user, int32_t i, int32_t k)
{
    const int *v = user;
    return v[i] > v[k];
}

static void check_sort(void)
{
    int v[100], bad = 0;
    int32_t order[101], tmp[100];
    for (size_t n = 0; n <= GG_LEN(v); n++) {
        for (size_t i = 0; i < n; i++)
            v[i] = (int)rnd_below(1 + n / 3); /* many are equal */
        order[n] = -7;
        gg_sort(order, tmp, n, is_after, v);
        bad += order[n] != -7;
        unsigned char seen[100] = { 0 };
        for (size_t i = 0; i < n; i++)
            seen[order[i]]++;
        for (size_t i = 0; i < n; i++)
            bad += seen[i] != 1;
        for (size_t i = 1; i < n; i++)
            bad += v[order[i - 1]] > v[order[i]] ||
                   (v[order[i - 1]] == v[order[i]] && order[i - 1] > order[i]);
    }
    ok(!bad, "numbers are put in order, those of equals stay in theirs");
}

static void check_sort_u64(void)
{
    uint64_t x[101], was[100], tmp[100];
    int bad = 0;
    for (size_t n = 0; n <= GG_LEN(was); n++) {
        for (size_t i = 0; i < n; i++)
            x[i] = was[i] = n % 2 ? rnd_below(1 + n / 3) : UINT64_MAX - i * i;
        x[n] = 7;
        gg_sort_u64(x, tmp, n);
        bad += x[n] != 7;
        for (size_t i = 0; i < n; i++) {
            size_t before = 0, equal = 0;
            for (size_t k = 0; k < n; k++) {
                before += was[k] < x[i];
                equal += was[k] == x[i];
            }
            bad += before > i || before + equal <= i;
        }
    }
    ok(!bad, "numbers of 64 bits are put in order");
}

static void check_error(void)
{
    struct gguf_error e;
    ok(gg_error_set_errno(&e, 2, "open %s", "x") == GGUF_E_IO &&
           e.sys_errno == 2 && !strncmp(e.message, "open x: No such file", 20),
       "system errors: %s", e.message);
    ok(gg_error_set_errno(NULL, 28, "x") == GGUF_E_NOSPACE, "a full disk");
    ok(!strcmp(gguf_status_string(GGUF_E_TRUNCATED), "truncated file") &&
           !strcmp(gguf_status_string((enum gguf_status)77), "unknown status"),
       "status strings");
}

/* Edit distance by its definition, over all sequences of edits that change no
 * place twice. */
static unsigned edit_distance(const char *a, const char *b)
{
    if (!*a || !*b)
        return (unsigned)(strlen(a) + strlen(b));
    unsigned best = edit_distance(a + 1, b + 1) + (*a != *b);
    unsigned d = edit_distance(a + 1, b) + 1;
    best = d < best ? d : best;
    d = edit_distance(a, b + 1) + 1;
    best = d < best ? d : best;
    if (a[1] && b[1] && a[0] == b[1] && a[1] == b[0]) {
        d = edit_distance(a + 2, b + 2) + 1;
        best = d < best ? d : best;
    }
    return best;
}

static struct gguf_str text_of(const char *s)
{
    return (struct gguf_str){ s, strlen(s) };
}

static void check_near(void)
{
    static const char *const known[] = { "Q4_0",   "Q4_K_M", "Q4_K_S",
                                         "IQ4_XS", "BF16",   "MXFP4_MOE" };
    static const char *const cases[][2] = {
        { "Q4KM", "Q4_K_M" },
        { "q4-k-s", "Q4_K_S" },
        { "IQ4SX", "IQ4_XS" },
        { "fb16", "BF16" },
        { "MXFP4", "" },
        { "x", "" },
        { "", "" },
        { "MXFP4_MEO", "MXFP4_MOE" },
    };
    unsigned wrong = 0;
    for (int i = 0; i < 3000; i++) {
        char a[8] = "", b[8] = "";
        for (unsigned k = 0, n = (unsigned)(rnd64() >> 32) % 7; k < n; k++)
            a[k] = (char)('a' + (rnd64() >> 40) % 3);
        for (unsigned k = 0, n = (unsigned)(rnd64() >> 32) % 7; k < n; k++)
            b[k] = (char)('a' + (rnd64() >> 40) % 3);
        wrong += gg_suggestion_distance(text_of(a), text_of(b)) !=
                 edit_distance(a, b);
    }
    ok(!wrong, "distances are those of the definition");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_suggestion near;
        char hint[GGUF_SUGGESTION_SIZE], want[64] = "";
        gguf_suggestion_init(&near, text_of(cases[i][0]));
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            gguf_suggestion_try(&near, text_of(known[k]));
        if (*cases[i][1])
            snprintf(want, sizeof want, "; did you mean '%s'?", cases[i][1]);
        ok(!strcmp(gguf_suggestion_text(&near, hint), want), "'%s'%s",
           cases[i][0], hint);
    }
    char many[300];
    memset(many, 'a', sizeof many);
    const struct gguf_str s = { many, sizeof many };
    ok(gg_suggestion_distance(s, text_of("a")) == 63, "long names are cut");
}

/* The vectors of RFC 4648, section 10, and all bytes. */
static void check_base64(void)
{
    static const struct {
        const char *digits, *bytes;
    } vector[] = { { "", "" },
                   { "Zg==", "f" },
                   { "Zm8=", "fo" },
                   { "Zm9v", "foo" },
                   { "Zm9vYg==", "foob" },
                   { "Zm9vYmE=", "fooba" },
                   { "Zm9vYmFy", "foobar" } };
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                 "qrstuvwxyz0123456789+/";
    uint8_t out[64];
    size_t size, n_right = 0;
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++) {
        const size_t n = strlen(vector[i].digits);
        n_right += gg_base64_decode(vector[i].digits, n, out, &size) == n &&
                   size == strlen(vector[i].bytes) &&
                   !memcmp(out, vector[i].bytes, size);
    }
    ok(n_right == 7, "base64: the vectors of the RFC");
    n_right = gg_base64_decode(digits, 64, out, &size) == 64 && size == 48;
    for (size_t i = 0; i < 64; i++) /* six bits each */
        n_right += (((unsigned)out[i * 6 / 8] << 8 |
                     (i * 6 / 8 + 1 < 48 ? out[i * 6 / 8 + 1] : 0u)) >>
                        (10 - i * 6 % 8) &
                    63u) == i;
    ok(n_right == 65, "base64: every digit");
    n_right = gg_base64_decode("Zm9-", 4, out, &size) == 3;
    n_right += gg_base64_decode("Zg=a", 4, out, &size) == 2;
    n_right += gg_base64_decode("Z===", 4, out, &size) == 1;
    n_right += gg_base64_decode("Zm9v\nA==", 8, out, &size) == 4;
    ok(n_right == 4, "base64: the first character that is not a digit");
}

int main(void)
{
    check_ckd();
    check_cursor();
    check_escape();
    check_same();
    check_uint();
    check_bounded();
    check_utf8();
    check_index();
    check_arena();
    check_grow();
    check_renew();
    check_sort();
    check_sort_u64();
    check_error();
    check_near();
    check_base64();
    return done_testing();
}
