/* SPDX-License-Identifier: MIT */
/* check-pretok.c - pre-tokenizers cut texts into words at the right places */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "tests/scratch.h"
#include "tests/tap.h"
#include "vocab/pretok.h"
#include "vocab/pretok_row.h"

/* Note the size of the first word. */
static enum gguf_status first_word(void *user, size_t off, size_t size,
                                   struct gguf_error *err)
{
    (void)err;
    if (!off)
        *(size_t *)user = size;
    return GGUF_OK;
}

/* Is a blank before the code point and a letter a word of its own? */
static bool stands_alone(const struct gg_pretok *p, uint32_t cp)
{
    char text[8] = " ";
    size_t size = 1 + gg_str_utf8_encode(cp, text + 1), first = 0;
    text[size++] = 'y';
    if (gg_pretok_split(p, text, size, first_word, &first, NULL) != GGUF_OK)
        abort();
    return first == 1;
}

/* A blank joins the next character, unless that is white space by Unicode
 * (since 6.3). */
static void check_white_space(void)
{
    static const uint32_t white[] = { 9,      0xb,    0xc,    0x85,   0xa0,
                                      0x1680, 0x2000, 0x200a, 0x2028, 0x2029,
                                      0x202f, 0x205f, 0x3000 };
    static const uint32_t not_white[] = { 8,      0x1c,   0x1f,  0x180e,
                                          0x200b, 0x2060, 0xfeff };
    static const char *const names[] = { "gpt-2",  "qwen2",     "llama-bpe",
                                         "falcon", "starcoder", "default" };
    for (size_t k = 0; k < GG_LEN(names); k++) {
        struct gg_pretok *p;
        bool good = true;
        if (gg_pretok_create(&p, gg_str_z(names[k]), NULL, NULL) != GGUF_OK)
            abort();
        for (size_t i = 0; i < GG_LEN(white); i++)
            good = good && stands_alone(p, white[i]);
        for (size_t i = 0; i < GG_LEN(not_white); i++)
            good = good && !stands_alone(p, not_white[i]);
        ok(good, "%s: white space is what Unicode says", names[k]);
        gg_pretok_destroy(p);
    }
}

/* ---- words by hand ---- */

/* Words with a bar after each. */
struct words {
    const char *text;
    char out[256];
    size_t n;
};

static enum gguf_status add_word(void *user, size_t off, size_t size,
                                 struct gguf_error *err)
{
    struct words *w = user;
    (void)err;
    memcpy(w->out + w->n, w->text + off, size);
    w->n += size;
    w->out[w->n++] = '|';
    return GGUF_OK;
}

static void cut_text(const char *name, const char *text, struct words *w)
{
    struct gg_pretok *p;
    *w = (struct words){ .text = text };
    if (gg_pretok_create(&p, gg_str_z(name), NULL, NULL) != GGUF_OK ||
        gg_pretok_split(p, text, strlen(text), add_word, w, NULL) != GGUF_OK)
        abort();
    gg_pretok_destroy(p);
}

static void check_cut(const char *name, const char *text, const char *words)
{
    struct words w;
    cut_text(name, text, &w);
    bool good = w.n == strlen(words) && !memcmp(w.out, words, w.n);
    ok(good, "%s: %s", name, good ? "words" : w.out);
}

/* Characters that are new in Unicode 15 (U+1E030, a letter, U+1D2C0, a
 * number), 15.1 (U+2EBF0, a letter) and 16 (letters U+1C89 and U+1C8A, digit
 * U+10D40, mark U+0897, punctuation U+1B7F, symbol U+1FADF), and one of
 * Unicode 17 (U+088F), which has no class here. In DeepSeek's expression "~"
 * is a symbol. Expected words are those of the Rust library tokenizers 0.23 by
 * the published expressions. */
static void check_published(void)
{
    static const struct {
        const char *name, *text, *words;
    } cases[] = {
        { "gpt-2",
          "a\xf0\x9e\x80\xb0"
          "b 1\xf0\x9d\x8b\x80"
          "2",
          "a\xf0\x9e\x80\xb0"
          "b| 1\xf0\x9d\x8b\x80"
          "2|" },
        { "gpt-2", "\xe4\xb8\xad\xf0\xae\xaf\xb0\xe6\x96\x87 !\xe1\xad\xbf",
          "\xe4\xb8\xad\xf0\xae\xaf\xb0\xe6\x96\x87| !\xe1\xad\xbf|" },
        { "gpt-2",
          "x\xf0\x90\xb5\x80 \xe1\xb2\x89\xe1\xb2\x8a"
          "a\xe0\xa2\x97"
          "b",
          "x|\xf0\x90\xb5\x80| \xe1\xb2\x89\xe1\xb2\x8a"
          "a|\xe0\xa2\x97|b|" },
        { "gpt-2",
          "a\xe0\xa2\x8f"
          "b \xf0\x9f\xab\x9f\xe0\xa2\x8f",
          "a|\xe0\xa2\x8f|b| \xf0\x9f\xab\x9f\xe0\xa2\x8f|" },
        { "llama-bpe",
          "1\xf0\x9d\x8b\x80"
          "2\xf0\x90\xb5\x80\xf0\x9d\x8b\x81",
          "1\xf0\x9d\x8b\x80"
          "2|\xf0\x90\xb5\x80\xf0\x9d\x8b\x81|" },
        { "llama-bpe",
          "a\xe0\xa2\x8f\xe1\xb2\x89!\xe1\xad\xbf"
          "a",
          "a|\xe0\xa2\x8f\xe1\xb2\x89|!\xe1\xad\xbf|a|" },
        { "qwen2",
          "\xf0\x9d\x8b\x80\xf0\x90\xb5\x80\xf0\xae\xaf\xb0\xf0\x9e\x80\xb0",
          "\xf0\x9d\x8b\x80|\xf0\x90\xb5\x80|\xf0\xae\xaf\xb0\xf0\x9e\x80\xb0|" },
        { "qwen35",
          "a\xe0\xa2\x97\xf0\x91\x9c\x9e"
          "b\xe0\xa2\x97",
          "a\xe0\xa2\x97\xf0\x91\x9c\x9e"
          "b\xe0\xa2\x97|" },
        { "deepseek-v3",
          "\xf0\x9d\x8b\x80\xf0\x90\xb5\x80"
          "12 \xe1\xad\xbf\xf0\x9f\xab\x9f",
          "\xf0\x9d\x8b\x80\xf0\x90\xb5\x80"
          "1|2| \xe1\xad\xbf\xf0\x9f\xab\x9f|" },
        { "deepseek-v3",
          "a\xe0\xa2\x97"
          "b\xe0\xa2\x8f"
          "c",
          "a\xe0\xa2\x97"
          "b|\xe0\xa2\x8f"
          "c|" },
        { "deepseek-v3", "a~b ~~c x ~", "a|~b| ~~|c| x| ~|" },
        { "deepseek-v3", "~\xc3\xa9~ \xc3\xa9~\n",
          "~|\xc3\xa9|~| \xc3\xa9|~\n|" },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++)
        check_cut(cases[i].name, cases[i].text, cases[i].words);
}

static void check_words(void)
{
    static const struct {
        const char *name, *text, *words;
    } cases[] = {
        { "superbpe", "1234567 12", "1|234|567| |12|" },
        { "superbpe", "a123", "a|123|" },
        { "afmoe", "abc1234 \xe4\xb8\xad", "abc|1|234| |\xe4\xb8\xad|" },
        { "tiny_aya", "x=12345", "x|=|12|345|" },
        { "exaone-moe", "ab cd, e  f", "ab cd|,| e| | f|" },
        { "jais-2", "a     b", "a|    | b|" },
        { "gpt-4o", "HelloWORLDx it's", "Hello|WORLDx| it's|" },
        { "tekken", "12 it's", "1|2| it|'s|" },
        { "tekken-num3", "1234567 it's", "1|234|567| it|'s|" },
        { "tekken-num3", "x12345a123", "x|12|345|a|123|" },
        { "nemotron-3.5-embed", "12 it's", "1|2| it|'s|" },
        { "flint", "Abc'S 12345 !!\n\nb", "Abc'S| |123|45| !!\n\n|b|" },
        { "k2-horizon",
          "a\xe2\x80\x8d"
          "b e\xcc\x81'S 12345",
          "a\xe2\x80\x8d"
          "b| e\xcc\x81|'S| |123|45|" },
        { "glm5", "12345", "123|45|" },
        { "mmbert", "a b\n\nc", "a b|\n\n|c|" },
        { "domyn-small", "a b\n\nc", "a b|\n\n|c|" },
        { "granite-embed-multi-97m",
          "e\xcc\x81"
          "a",
          "e\xcc\x81"
          "a|" },
        { "youtu",
          "\xea\xb0\x80\xe4\xb8\xad"
          "1",
          "\xea\xb0\x80|\xe4\xb8\xad|1|" },
        { "kimi-k2",
          "\xe4\xb8\xad"
          "abc's1234",
          "\xe4\xb8\xad|abc's|123|4|" },
        { "qwen35",
          "e\xcc\x81"
          "12",
          "e\xcc\x81|1|2|" },
        { "qwen2",
          "e\xcc\x81"
          "12",
          "e|\xcc\x81|1|2|" },
        { "poro-chat", " a,b c", " a|,|b| c|" },
        { "viking", "a12", "a|1|2|" },
        { "gemma4", "a b\n\nc", "a b|\n\n|c|" },
        { "chameleon", "IMGIMGABZ  x", "IMGIMGABZ|  |x|" },
        { "bailingmoe", "a\n \nb", "a|\n \n|b|" },
        { "seed-coder", "!!\nb", "!!|\n|b|" },
        { "deepseek-llm", "a \nb", "a| |\n|b|" },
        { "deepseek-v3", "12345 x+=", "123|45| x|+=|" },
        { "spark2_5", "123 x+=\n\nb!!\n", "1|2|3| x|+=|\n|\n|b|!!|\n|" },
        { "hy_v4", "12345 x+=", "123|45| x|+=|" },
        { "ufakzeka", "a'da it's 12", "a|'da| it|'s| |1|2|" },
        { "qwen2", "a'da it's 12", "a|'d|a| it|'s| |1|2|" },
        { "minicpm5", "12345", "123|45|" },
        { "laguna", " \nx", " |\n|x|" },
        { "qwen2", " \nx", " \n|x|" },
        { "whitespace", "a b", "a| |b|" },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++)
        check_cut(cases[i].name, cases[i].text, cases[i].words);
}

/* Functions cut as their expressions do, at each place. */
static void check_digits(void)
{
    int n_bad = 0;
    for (int round = 0; round < 2000; round++) {
        static const char *const parts[] = { "1", "2", "3", "\xc2\xb2" };
        char text[64] = "", want[128] = "";
        struct words w;
        for (size_t n = 1 + rnd_below(20); n; n--)
            strcat(text, parts[rnd_below(round % 2 ? 3 : 4)]);
        /* (?=(\d{3})+(?!\d)): a multiple of three digits follows, then none */
        for (size_t i = 0; text[i]; i++) {
            size_t k = strspn(text + i, "123");
            if (i && k && k % 3 == 0)
                strcat(want, "|");
            size_t end = strlen(want);
            want[end] = text[i];
            want[end + 1] = 0;
        }
        strcat(want, "|");
        cut_text("superbpe", text, &w);
        n_bad += w.n != strlen(want) || memcmp(w.out, want, w.n) != 0;
        if (round % 2 == 0)
            continue; /* groups of ASCII digits from the right are equal */
        cut_text("afmoe", text, &w);
        n_bad += w.n != strlen(want) || memcmp(w.out, want, w.n) != 0;
    }
    ok(!n_bad, "digits in threes from the right: %d texts wrong", n_bad);
}

/* ---- how long it takes ---- */

static enum gguf_status count_word(void *user, size_t off, size_t size,
                                   struct gguf_error *err)
{
    (void)off;
    (void)err;
    *(size_t *)user += size;
    return GGUF_OK;
}

static double time_of(const struct gg_pretok *p, const char *text, size_t n)
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        size_t sum = 0;
        double begin = scratch_cpu_time();
        if (gg_pretok_split(p, text, n, count_word, &sum, NULL) != GGUF_OK ||
            sum != n)
            return 1e9;
        double took = scratch_cpu_time() - begin;
        best = GG_MIN(best, took);
    }
    return best;
}

/* Every row on long texts of one kind of character: no stack overflows, and
 * runs are not scanned again and again. */
static void check_time(void)
{
    enum { SHORT = 1 << 14, LONG = 1 << 19 };
    static const char *const units[] = {
        "a", "A", " ", "7", "=", "\n", "a ", "\xcc\x81", "\xe4\xb8\xad", "'"
    };
    char *text = malloc(LONG);
    const struct gg_pretok_row *row;
    for (size_t i = 0; (row = gg_pretok_row(i)); i++) {
        struct gg_pretok *p;
        const char *slow = NULL;
        struct gguf_str name = { row->names, strcspn(row->names, " ") };
        if (gg_pretok_create(&p, name, NULL, NULL) != GGUF_OK)
            abort();
        for (size_t u = 0; u < GG_LEN(units); u++) {
            size_t k = strlen(units[u]), n_short = SHORT / k * k,
                   n_long = LONG / k * k;
            for (size_t at = 0; at < n_long; at++)
                text[at] = units[u][at % k];
            double a = time_of(p, text, n_short), b = time_of(p, text, n_long);
            /* 32 times the length; quadratic time would be 1024 times */
            if (b > 200 * a + 0.01)
                slow = units[u];
        }
        ok(!slow, "%.*s: time grows with the text%s%s", (int)name.size,
           name.data, slow ? ", not with " : "", slow ? slow : "");
        gg_pretok_destroy(p);
    }
    free(text);
}

int main(void)
{
    check_white_space();
    check_words();
    check_published();
    check_digits();
    check_time();
    return done_testing();
}
