/* SPDX-License-Identifier: MIT */
/* pretok_row.c - the expressions by which tokenizers cut texts into words
 *
 * They are the "pre_tokenizer" of each model's published tokenizer.json (or
 * pat_str of its tiktoken file), in the form in which llama.cpp of August 2026
 * reads them, since people compare token ids with its ids. That form differs
 * from the published one in two ways, which are kept and marked:
 *
 *     [case]   \p{Lu}, \p{Ll} and their kin all mean any letter there, or
 *              tell the case of ASCII letters only
 *     [digits] a group of digits takes along the character before it */
#include "config.h"
#include "vocab/pretok_row.h"
#include "vocab/unicode.h"
#include "vocab/utf8.h"

#include "base/compiler.h"
#include "base/str.h"

#include <string.h>

#define GPT2                                                                  \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"       \
    "|\\s+(?!\\S)"
#define CONTRACTIONS                                                          \
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define BLANKS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Words, numbers of at most DIGITS digits, the rest, newlines, blanks. */
#define WORDS(DIGITS)                                                         \
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" DIGITS                             \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS
#define TIKTOKEN(DIGITS) CONTRACTIONS "|" WORDS(DIGITS)
/* [case] any letter but ASCII letters of the other case; MARKS are further
 * exceptions */
#define UPPER(MARKS) "[^\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}" MARKS "a-z]"
#define LOWER(MARKS) "[^\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}" MARKS "A-Z]"
#define NO_MARKS     "\\p{M}"
/* Words with at most one change from upper to lower case. */
#define CASED(MARKS, DIGITS, END)                                             \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER(MARKS) "*" LOWER(                          \
        MARKS) "+" END                                                        \
               "|[^\\r\\n\\p{L}\\p{N}]?" UPPER(MARKS) "+" LOWER(              \
                   MARKS) "*" END "|\\p{N}" DIGITS "| ?[^\\s"                 \
                          "\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS
/* [case] Letters and marks, with nothing told of their case. */
#define UNCASED(DIGITS)                                                       \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+" CONTRACTIONS "?"                  \
    "|\\p{N}" DIGITS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS
/* Words of ASCII after a mark, other words, marks, blanks. */
#define MARKED_WORD                                                           \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"                   \
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"                            \
    "| ?[\\p{P}\\p{S}]+"
#define MARKED MARKED_WORD "[\\r\\n]*|" BLANKS
/* Chinese characters as kimi-k2 knows them. */
#define HAN                                                                   \
    "\\x{3400}-\\x{4dbf}\\x{4e00}-\\x{9fff}\\x{f900}-\\x{faff}"               \
    "\\x{20000}-\\x{2a6df}\\x{2a700}-\\x{2ebef}\\x{2f800}-\\x{2fa1f}"
#define NOT_HAN "[^\\P{L}" HAN "]"
#define SENTENCE_WORD                                                         \
    " ?[^\\s(|.,!?)"                                                          \
    "\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c}]+"
#define CJK "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"

/* Letters of scripts that have case, as deepseek-llm lists them. */
#define CASED_LETTERS                                                         \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}"             \
    "\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-"            \
    "\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"               \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}"             \
    "\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-"           \
    "\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-"               \
    "\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-"               \
    "\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-"               \
    "\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-"               \
    "\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}"                 \
    "\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-"               \
    "\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-"               \
    "\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-"               \
    "\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}"                 \
    "\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-"                \
    "\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"                \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-"                \
    "\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}"                \
    "\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-"               \
    "\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-"               \
    "\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-"               \
    "\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-"            \
    "\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}"          \
    "-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"
/* Letters of others, as deepseek lists them, but for the blanks among them. */
#define OTHER_LETTERS                                                         \
    "[\\x{800}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"               \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"               \
    "\\x{3001}-\\x{9fa5}\\x{ac00}-\\x{d7ff}]+"

/* ---- splitters without an expression ---- */

static size_t char_of(const char *text, size_t size, uint32_t *cp)
{
    return gg_vocab_utf8_decode(text, size, GG_VOCAB_UTF8_MOST, cp);
}

/* [digits] Numbers, of any script, in groups of three from the right; what
 * stands before a number belongs to its first group. */
static enum gguf_status cut_numbers(const char *text, size_t size,
                                    const struct gg_pretok_out *out,
                                    struct gguf_error *err)
{
    size_t done = 0;
    uint32_t cp;
    for (size_t i = 0; i < size;) {
        size_t begin = i, n = 0, k = 0;
        for (; i < size; i += k, n++) {
            k = char_of(text + i, size - i, &cp);
            if (!gg_unicode_is(cp, GG_UNICODE_N))
                break;
        }
        if (!n)
            i += k;
        for (i = n ? begin : i; n; n--) {
            i += char_of(text + i, size - i, &cp);
            if ((n - 1) % 3 == 0)
                GG_TRY(out->word(out->user, done = i, err));
        }
    }
    return done < size ? out->word(out->user, size, err) : GGUF_OK;
}

/* (?=(\d{3})+(?!\d)): before each group of three digits, counted from the
 * right. */
static enum gguf_status cut_thousands(const char *text, size_t size,
                                      const struct gg_pretok_out *out,
                                      struct gguf_error *err)
{
    for (size_t i = 0; i < size;) {
        size_t end = i;
        while (end < size && text[end] >= '0' && text[end] <= '9')
            end++;
        for (; i < end; i++)
            if (i && (end - i) % 3 == 0)
                GG_TRY(out->word(out->user, i, err));
        i += i < size;
    }
    return size ? out->word(out->user, size, err) : GGUF_OK;
}

/* Cut runs of blanks without newlines into pieces of 512, 256 and so on to 4,
 * 2 and 1; everything else stays. (jais-2 has \s{512}(?!\S)|\s{256}(?!\S)|...
 * in place of \s+(?!\S), which would search the rest of a run again for each
 * piece.) */
static enum gguf_status cut_blanks(const char *text, size_t size,
                                   const struct gg_pretok_out *out,
                                   struct gguf_error *err)
{
    size_t n = 0, at = 0;
    uint32_t cp;
    for (size_t i = 0; i < size; n++) {
        i += char_of(text + i, size - i, &cp);
        if (cp == '\r' || cp == '\n' || !gg_unicode_is_space(cp))
            return out->word(out->user, size, err);
    }
    for (size_t k = 512; n; n -= k) {
        while (k > n)
            k /= 2;
        for (size_t c = 0; c < k; c++)
            at += char_of(text + at, size - at, &cp);
        GG_TRY(out->word(out->user, at, err));
    }
    return GGUF_OK;
}

/* ---- the rows ---- */

static const struct gg_pretok_row rows[] = {
    { .names = "default",
      .stage = { { .expr = "[\\p{P}\\$\\+<=>\\^~\\|]+" },
                 { .expr = GPT2 },
                 { .expr = "\\p{N}+" },
                 { .expr = "[0-9][0-9][0-9]" } } },
    { .names = "gpt-2 phi-2 mpt olmo jais gigachat jina-es jina-de "
               "jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert exaone4 "
               "trillion granite-docling",
      .stage = { { .expr = GPT2 } } },
    { .names = "jina-v1-en jina-v2-code roberta-bpe",
      .stage = { { .expr = GPT2 } },
      .add_sep = true },
    { .names = "starcoder refact command-r smollm codeshell exaone "
               "minerva-7b mellum2",
      .stage = { { .expr = "\\p{N}" }, { .expr = GPT2 } } },
    { .names = "falcon",
      .stage = { { .expr = "[\\p{P}\\$\\+<=>\\^~\\|`]+" },
                 { .expr = GPT2 },
                 { .expr = "[0-9][0-9][0-9]" } } },
    { .names = "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez "
               "hunyuan solar-open grok-2",
      .stage = { { .expr = TIKTOKEN("") } } },
    { .names = "ufakzeka", .stage = { { .expr = WORDS("") } } },
    { .names = "qwen35",
      .stage = { { .expr = CONTRACTIONS
                   "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
                   "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS } } },
    { .names = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 "
               "lfm2 jina-v5-nano",
      .stage = { { .expr = TIKTOKEN("{1,3}") } },
      .ignore_merges = true,
      .add_bos = true },
    { .names = "smaug-bpe dbrx", .stage = { { .expr = TIKTOKEN("{1,3}") } } },
    { .names = "chatglm-bpe glm4 glm5",
      .stage = { { .expr = TIKTOKEN("{1,3}") } },
      .no_bos = true },
    { .names = "minicpm5",
      .stage = { { .expr = "\\p{N}{1,3}" }, { .expr = TIKTOKEN("+") } },
      .ignore_merges = true },
    { .names = "laguna",
      .stage = { { .expr = "[^\\n]+|\\n+" }, { .expr = TIKTOKEN("") } } },
    { .names = "jais-2",
      .stage = { { .expr = TIKTOKEN("{1,3}") }, { .cut = cut_blanks } } },
    { .names = "bailingmoe bailingmoe2 llada-moe",
      .stage = { { .expr = "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])"
                           "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]"
                           "|\\s+(?!\\S)|\\s+" } } },
    { .names = "seed-coder",
      .stage = { { .expr = CONTRACTIONS
                   "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                   "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" BLANKS } } },
    /* words of one sentence stay together; backtracking inside never helps */
    { .names = "exaone-moe",
      .stage = { { .expr = CONTRACTIONS
                   "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}[\\p{L}\\p{M}]*+"
                   "(?: \\p{L}[\\p{L}\\p{M}]*+)*+"
                   "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?"
                   "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+" } } },
    { .names = "tekken nemotron-3.5-embed",
      .stage = { { .expr = CASED(NO_MARKS, "", "") } },
      .ignore_merges = true,
      .add_bos = true },
    { .names = "tekken-num3", /* groups of three digits from the right */
      .stage = { { .expr = CASED(NO_MARKS,
                                 "{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))"
                                 "|\\p{N}{1,2}",
                                 "") } },
      .ignore_merges = true,
      .add_bos = true },
    { .names = "gpt-4o llama4 kanana2 talkie minimax-m2",
      .stage = { { .expr = CASED(NO_MARKS, "{1,3}", CONTRACTIONS "?") } } },
    { .names = "granite-embed-multi-97m",
      .stage = { { .expr = CASED("", "{1,3}", CONTRACTIONS "?") } },
      .ignore_merges = true },
    { .names = "tiny_aya cohere2moe",
      .stage = { { .cut = cut_numbers }, { .expr = UNCASED("{1,3}") } } },
    { .names = "youtu",
      .stage = { { .expr =
                       "[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+"
                       "|[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}"
                       "\\x{2014}\\x{ff1a}\\x{ff1b}\\x{ff0c}\\x{3001}-\\x{303f}"
                       "\\x{fe30}-\\x{fe4f}]+|[\\x{3105}-\\x{312f}]+|" CJK },
                 { .expr = UNCASED("") } },
      .ignore_merges = true },
    { .names = "kimi-k2",
      .stage = { { .expr = "[" HAN "]+|[^\\r\\n\\p{L}\\p{N}]?" NOT_HAN
                           "+" CONTRACTIONS "?|\\p{N}{1,3}"
                           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS } } },
    { .names = "deepseek-llm",
      .stage = { { .expr = "[\\r\\n]" },
                 { .expr = "\\s?[" CASED_LETTERS "]+" },
                 { .expr =
                       "\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-"
                       "\\x{ff5e}\\x{2018}-\\x{201f}\\x{3001}\\x{3002}]+" },
                 { .expr = "\\s+\\z" },
                 { .expr = OTHER_LETTERS },
                 { .expr = "\\p{N}+" } } },
    { .names = "deepseek-coder",
      .stage = { { .expr = "[\\r\\n]" },
                 { .expr = "\\s?\\p{L}+" },
                 { .expr = "\\s?\\p{P}+" },
                 { .expr = OTHER_LETTERS },
                 { .expr = "\\p{N}" } } },
    { .names = "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
      .stage = { { .expr = "\\p{N}{1,3}" },
                 { .expr = CJK },
                 { .expr = MARKED } } },
    { .names = "spark2_5",
      .stage = { { .expr = "\\p{N}{1,3}" },
                 { .expr = CJK },
                 { .expr = MARKED_WORD "|[\\r\\n]|\\s+(?!\\S)|\\s+" },
                 { .expr = "\\p{N}" } } },
    { .names = "flint",
      .stage = { { .expr = "\\p{N}{1,3}" },
                 { .expr = CJK },
                 { .expr = "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+" CONTRACTIONS
                           "?| ?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS } } },
    { .names = "k2-horizon", /* words with joiners (Indic) */
      .stage = { { .expr = CONTRACTIONS
                   "|[^\\r\\n\\p{L}\\p{N}]?"
                   "[\\p{L}\\p{M}\\x{200c}\\x{200d}]+|\\p{N}{1,3}"
                   "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS } } },
    { .names = "afmoe",
      .stage = { { .cut = cut_numbers },
                 { .expr =
                       "[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}"
                       "\\x{8c48}-\\x{faff}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}"
                       "\\x{ff65}-\\x{ff9f}\\x{2f00}-\\x{2fdf}\\x{e40}-\\x{e7f}"
                       "\\x{e80}-\\x{eff}\\x{1780}-\\x{17ff}\\x{1000}-\\x{109f}"
                       "\\x{aa60}-\\x{aa7f}\\x{a9e0}-\\x{a9ff}\\x{ac00}-\\x{d7af}"
                       "\\x{1100}-\\x{11ff}]+" },
                 { .expr = MARKED } } },
    { .names = "superbpe",
      .stage = { { .expr = "\\p{N}+" }, { .cut = cut_thousands } } },
    { .names = "bloom poro-chat gpt3-finnish",
      .stage = { { .expr = SENTENCE_WORD } } },
    { .names = "viking",
      .stage = { { .expr = SENTENCE_WORD }, { .expr = "\\p{N}" } } },
    { .names = "chameleon",
      .stage = { { .expr = "<sentinel:[0-9]+>" },
                 { .expr = "IMGIMG[A-I]{1,4}Z" },
                 { .expr = "[\\t\\n]|    |  " },
                 { .expr = "\\p{N}" },
                 { .expr = "[\\p{P}!-/:-@\\[-`{-~]" },
                 { .expr = GPT2 } },
      .add_bos = true },
    { .names = "gemma4 granite-embed-multi-311m",
      .stage = { { .expr = "[^\\n]+|\\n+" } },
      .raw = true,
      .meta_space = true,
      .newlines = true,
      .force_bos = true },
    { .names = "sarvam-moe domyn-small mmbert",
      .stage = { { .expr = "[^\\n]+|\\n+" } },
      .raw = true,
      .meta_space = true },
    { .names = "whitespace",
      .stage = { { .expr = "\\S+" } },
      .raw = true,
      .keep_case = true },
};

const struct gg_pretok_row *gg_pretok_row(size_t n)
{
    return n < GG_LEN(rows) ? &rows[n] : NULL;
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

const struct gg_pretok_row *gg_pretok_row_find(struct gguf_str name)
{
    for (size_t i = 0; i < GG_LEN(rows); i++)
        if (has_name(rows[i].names, name))
            return &rows[i];
    return NULL;
}
