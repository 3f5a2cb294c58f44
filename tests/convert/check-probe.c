/* SPDX-License-Identifier: MIT */
/* check-probe.c - pre-tokenizers are recognised by the way they cut a probe
 * text
 *
 * Rows whose expressions cut differently cut the probe text differently. The
 * published expressions, which are written in other words, cut it as their
 * rows do.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "convert/vocab/vocab_folder.h"
#include "tests/convert/folder.h"
#include "tests/convert/reader.h"
#include "tests/tap.h"
#include "vocab/pretok.h"
#include "vocab/pretok_row.h"

#include <string.h>

/* ---- rows ---- */

enum { MOST_ROWS = 100, MOST_WORDS = 4000 };

static struct words {
    size_t end[MOST_WORDS], n;
} words[MOST_ROWS];

static enum gguf_status on_word(void *user, size_t off, size_t size,
                                struct gguf_error *err)
{
    struct words *w = user;
    (void)err;
    if (w->n < MOST_WORDS)
        w->end[w->n++] = off + size;
    return GGUF_OK;
}

static bool same_stages(const struct gg_pretok_row *a,
                        const struct gg_pretok_row *b)
{
    for (size_t i = 0; i < GG_PRETOK_MAX_STAGES; i++) {
        const char *x = a->stage[i].expr, *y = b->stage[i].expr;
        if (a->stage[i].cut != b->stage[i].cut || !x != !y ||
            (x && strcmp(x, y) != 0))
            return false;
    }
    return true;
}

/* Rows with different expressions that cut every text alike: blanks up to the
 * last newline are \s*[\r\n]+ in one and \s*[\r\n] in the other. */
static bool are_alike(const struct gg_pretok_row *a,
                      const struct gg_pretok_row *b)
{
    return same_stages(a, b) || (!strncmp(a->names, "qwen2 ", 6) &&
                                 !strncmp(b->names, "bailingmoe ", 11));
}

static bool same_words(size_t i, size_t k)
{
    return words[i].n == words[k].n &&
           !memcmp(words[i].end, words[k].end,
                   words[i].n * sizeof *words[i].end);
}

static void check_rows(void)
{
    const struct gg_pretok_row *row;
    size_t n = 0, n_pairs = 0;
    struct gguf_error e;
    bool good = true;
    gguf_error_clear(&e);
    for (; (row = gg_pretok_row(n)) && n < MOST_ROWS; n++) {
        struct gg_pretok *p = NULL;
        good =
            good &&
            gg_pretok_create_row(&p, row, UINT64_MAX, NULL, &e) == GGUF_OK &&
            gg_pretok_split(p, gg_convert_probe, strlen(gg_convert_probe),
                            on_word, &words[n], &e) == GGUF_OK;
        gg_pretok_destroy(p);
    }
    ok(good && n > 30 && n < MOST_ROWS, "%zu rows cut the text %s", n,
       e.message);
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++) {
            const struct gg_pretok_row *a = gg_pretok_row(i),
                                       *b = gg_pretok_row(k);
            if (a->raw || b->raw)
                continue;
            n_pairs++;
            if (same_words(i, k) != are_alike(a, b)) {
                printf("# %s and %s\n", a->names, b->names);
                good = false;
            }
        }
    ok(good, "of %zu pairs, those that are not one cut differently", n_pairs);
}

/* ---- descriptions ---- */

/* Pre-tokenizer of a section, or the error in e; counts the notes. */
static int n_notes;

static void note_text(void *user, enum gguf_convert_note_kind kind,
                      const char *line)
{
    (void)kind;
    (void)user;
    (void)line;
    n_notes++;
}

static const char *tokenizer_config; /* NULL: the file is missing */

static enum gguf_status recognise_row(const char *section, bool whole,
                                      char name[64], struct gguf_error *e)
{
    static char text[8000];
    struct reader_folder c;
    struct gg_json *config = &c.folder.text[GG_CONVERT_TOKENIZER_CONFIG].json;
    struct gg_convert_vocab v = { .folder = &c.folder };
    reader_begin(&c);
    c.p.note.fn = note_text;
    snprintf(text, sizeof text,
             "{\"pre_tokenizer\":%s,\"model\":{\"ignore_merges\":%s}}",
             section, whole ? "true" : "false");
    gguf_error_clear(e);
    n_notes = 0;
    *name = 0;
    enum gguf_status st =
        gg_json_read(&c.folder.text[GG_CONVERT_TOKENIZER].json, text,
                     strlen(text), 0, 0, e);
    if (st == GGUF_OK && tokenizer_config)
        st = gg_json_read(config, tokenizer_config, strlen(tokenizer_config),
                          0, 0, e);
    if (st == GGUF_OK)
        st = gg_convert_vocab_find_pre(&v, e);
    if (st == GGUF_OK)
        snprintf(name, 64, "%s", v.pre);
    gg_json_fini(&c.folder.text[GG_CONVERT_TOKENIZER].json);
    gg_json_fini(config);
    gg_mem_arena_fini(&c.arena);
    return st;
}

#define SEQUENCE(STEPS) "{\"type\":\"Sequence\",\"pretokenizers\":[" STEPS "]}"
#define SPLIT(EXPR)                                                           \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" EXPR                      \
    "\"},\"behavior\":\"Isolated\",\"invert\":false},"
#define BYTES                                                                 \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define DIGITS(EACH) "{\"type\":\"Digits\",\"individual_digits\":" EACH "},"
#define GPT2                                                                  \
    "'(?:[stmd]|re|ve|ll)| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}"          \
    "\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+"
/* tiktoken's expression for contractions. */
#define TIKTOKEN(DIGITS_)                                                     \
    "'(?i:[sdmt]|ll|ve|re)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+"           \
    "|\\\\p{N}" DIGITS_ "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*"           \
    "|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define PUNCT "[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~]"

static void check_known(void)
{
    static const struct {
        const char *section;
        bool whole;
        const char *name;
    } rows[] = {
        { SEQUENCE(SPLIT(TIKTOKEN("{1,3}")) BYTES), true, "llama-bpe" },
        { SEQUENCE(SPLIT(TIKTOKEN("{1,3}")) BYTES), false, "smaug-bpe" },
        { SEQUENCE(SPLIT(TIKTOKEN("")) BYTES), false, "qwen2" },
        { SEQUENCE(SPLIT(TIKTOKEN("{1}")) BYTES), false, "qwen2" },
        { SEQUENCE(SPLIT("[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1}"
                         "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*"
                         "|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+") BYTES),
          false, "ufakzeka" },
        { SEQUENCE(SPLIT("\\\\p{N}{1,3}") SPLIT(TIKTOKEN("+")) BYTES), true,
          "minicpm5" },
        { SEQUENCE(SPLIT("[^\\\\n]+|\\\\n+") SPLIT(TIKTOKEN("")) BYTES), true,
          "laguna" },
        { SEQUENCE(SPLIT(GPT2) BYTES), false, "gpt-2" },
        { SEQUENCE(DIGITS("true") SPLIT(GPT2) BYTES), false, "starcoder" },
        { SEQUENCE(SPLIT("\\\\p{N}") SPLIT(GPT2) BYTES), false, "starcoder" },
        { SEQUENCE(SPLIT("[\\r\\n]") SPLIT("\\\\s?\\\\p{L}+")
                       SPLIT("\\\\s?\\\\p{P}+")
                           SPLIT("[\\u4e00-\\u9fa5\\u0800-\\u4e00"
                                 "\\uac00-\\ud7ff]+") DIGITS("true") BYTES),
          false, "deepseek-coder" },
        /* keep matches; nothing is left between them */
        { SEQUENCE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" TIKTOKEN(
              "{1,3}") "\"},\"behavior\":\"Removed\",\"invert\":true}," BYTES),
          false, "smaug-bpe" },
        { SEQUENCE(SPLIT("\\\\p{N}{1,3}") SPLIT(
              "[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-"
              "\\u30ff]+") SPLIT(PUNCT "[A-Za-z]+|[^\\\\r\\\\n"
                                       "\\\\p{L}\\\\p{P}\\\\p{S}]?"
                                       "(?:\\\\p{L}|\\\\p{M})+| "
                                       "?[\\\\p{P}\\\\p{S}]+"
                                       "[\\\\r\\\\n]*|\\\\s*[\\\\r"
                                       "\\\\n]+|\\\\s+(?!\\\\S)|"
                                       "\\\\s+") BYTES),
          false, "deepseek-v3" },
        { SEQUENCE(SPLIT("\\\\p{N}{1,3}") SPLIT(
              "[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-"
              "\\u30ff]+") SPLIT(PUNCT "[A-Za-z]+|[^\\\\r\\\\n"
                                       "\\\\p{L}\\\\p{P}\\\\p{S}]?"
                                       "[\\\\p{L}\\\\p{M}]+| "
                                       "?[\\\\p{P}\\\\p{S}]+"
                                       "|[\\\\r\\\\n]|\\\\s+(?!\\\\S)|"
                                       "\\\\s+") DIGITS("true") BYTES),
          false, "spark2_5" },
    };
    char name[64];
    struct gguf_error e;
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        const enum gguf_status st =
            recognise_row(rows[i].section, rows[i].whole, name, &e);
        ok(st == GGUF_OK && !strcmp(name, rows[i].name) && n_notes == 1,
           "%s, and it is said: %s %s", rows[i].name, name, e.message);
    }
}

/* Known descriptions give no note. */
static void check_described(void)
{
    static const struct {
        const char *section, *name;
    } rows[] = {
        { SEQUENCE(
              "{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"},{"
              "\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
              "\"use_regex\":true}," DIGITS(
                  "false") "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[0-9][0-9]"
                           "[0-9]\"},\"behavior\":\"Isolated\",\"invert\":false}"),
          "falcon" },
        { SEQUENCE(SPLIT(" ?[^(\\\\s|[.,!?\\u2026\\u3002\\uff0c\\u3001\\u0964"
                         "\\u06d4\\u060c])]+") BYTES),
          "bloom" },
        { SEQUENCE(DIGITS("true") "{\"type\":\"ByteLevel\"}"), "starcoder" },
    };
    char name[64];
    struct gguf_error e;
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        const enum gguf_status st =
            recognise_row(rows[i].section, false, name, &e);
        ok(st == GGUF_OK && !strcmp(name, rows[i].name) && !n_notes,
           "%s by its description %s %s", rows[i].name, name, e.message);
    }
}

/* Names for one way to cut words. In some, llama.cpp 0.5 removes blanks before
 * punctuation when it detokenizes (clean_spaces in src/llama-vocab.cpp):
 * clean_up_tokenization_spaces decides. In one, BOS is not added unless the
 * file says so. The configurations are those of Command R, SmolLM2, Trillion,
 * Qwen 2.5, StableLM 2, BLOOM and GLM 4, without members that are not read. */
static void check_other_names(void)
{
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define STARCODER  SEQUENCE(DIGITS("true") BYTE_LEVEL)
#define CLEAN(YES) "\"clean_up_tokenization_spaces\":" YES
#define BLOOM                                                                 \
    SEQUENCE(SPLIT(" ?[^(\\\\s|[.,!?\\u2026\\u3002\\uff0c\\u3001\\u0964"      \
                   "\\u06d4\\u060c])]+") BYTES)
    static const struct {
        const char *section, *config, *name;
    } rows[] = {
        { STARCODER, NULL, "starcoder" },
        { STARCODER, "{" CLEAN("true") "}", "starcoder" },
        { STARCODER,
          "{" CLEAN("false") ",\"tokenizer_class\":\"CohereTokenizer\"}",
          "command-r" },
        { STARCODER, "{\"tokenizer_class\":\"CohereTokenizerFast\"}",
          "command-r" },
        { STARCODER,
          "{" CLEAN("false") ",\"tokenizer_class\":\"GPT2Tokenizer\"}",
          "smollm" },
        { SEQUENCE(SPLIT("\\\\p{N}") SPLIT(GPT2) BYTES),
          "{" CLEAN("false") "}", "smollm" },
        { BYTE_LEVEL, NULL, "gpt-2" },
        { BYTE_LEVEL, "{" CLEAN("true") "}", "gpt-2" },
        { BYTE_LEVEL, "{" CLEAN("false") "}", "trillion" },
        { SEQUENCE(SPLIT(TIKTOKEN("")) BYTES), "{" CLEAN("false") "}",
          "qwen2" },
        { SEQUENCE(SPLIT(TIKTOKEN("")) BYTES), "{}", "qwen2" },
        { SEQUENCE(SPLIT(TIKTOKEN("")) BYTES), "{" CLEAN("true") "}",
          "stablelm2" },
        { BLOOM, "{}", "bloom" },
        { BLOOM, "{" CLEAN("false") "}", "poro-chat" },
        { SEQUENCE(SPLIT(TIKTOKEN("{1,3}")) BYTES),
          "{\"eos_token\":\"<|endoftext|>\"}", "glm4" },
        { SEQUENCE(SPLIT(TIKTOKEN("{1,3}")) BYTES),
          "{\"bos_token\":\"<|begin_of_text|>\"}", "smaug-bpe" },
    };
    char name[64];
    struct gguf_error e;
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        tokenizer_config = rows[i].config;
        const enum gguf_status st =
            recognise_row(rows[i].section, false, name, &e);
        ok(st == GGUF_OK && !strcmp(name, rows[i].name), "%s with %s: %s %s",
           rows[i].name, rows[i].config ? rows[i].config : "no configuration",
           name, e.message);
    }
    tokenizer_config = NULL;
}

/* The way back: all names of one way have the same description, and say
 * whether blanks are removed. */
static void check_descriptions(void)
{
    static const struct {
        const char *name, *base;
        int cleans;
    } rows[] = {
        { "command-r", "starcoder", 0 }, { "smollm", "starcoder", 0 },
        { "refact", "starcoder", -1 },   { "trillion", "gpt-2", 0 },
        { "olmo", "gpt-2", -1 },         { "stablelm2", "qwen2", 1 },
        { "poro-chat", "bloom", 0 },     { "glm4", "smaug-bpe", -1 },
        { "dbrx", "smaug-bpe", -1 },     { "falcon3", "llama-bpe", -1 },
    };
    bool whole[2];
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        const struct gguf_str name = gg_str_z(rows[i].name);
        const char *text = gg_convert_vocab_pre_text(name, &whole[0]);
        const char *base =
            gg_convert_vocab_pre_text(gg_str_z(rows[i].base), &whole[1]);
        ok(text && base && !strcmp(text, base) && whole[0] == whole[1] &&
               gg_convert_vocab_pre_clean_up(name) == rows[i].cleans,
           "%s is described as %s", rows[i].name, rows[i].base);
    }
    ok(!gg_convert_vocab_pre_text(GG_STR("gemma4"), &whole[0]),
       "a name without a description");
}

/* llama.cpp keeps the digits of a number together; DeepSeek's expression does
 * not. */
static void check_departed(void)
{
    static char section[6000];
    const struct gg_pretok_row *row =
        gg_pretok_row_find(gg_str_z("deepseek-llm"));
    char name[64];
    struct gguf_error e;
    size_t n = 0;
    n += (size_t)sprintf(
        section,
        "{\"type\":\"Sequence\",\"pretokenizers\":[" SPLIT("[\\r\\n]"));
    for (size_t i = 1; i < 5; i++) {
        n += (size_t)sprintf(section + n,
                             "{\"type\":\"Split\",\"behavior\":\"Isolated\","
                             "\"pattern\":{\"Regex\":\"");
        for (const char *p = row->stage[i].expr; *p; p++) {
            if (*p == '\\' || *p == '"')
                section[n++] = '\\';
            section[n++] = *p;
        }
        n += (size_t)sprintf(section + n, "\"}},");
    }
    sprintf(section + n, DIGITS("true") BYTES "]}");
    ok(recognise_row(section, false, name, &e) == GGUF_OK &&
           !strcmp(name, "deepseek-llm") && n_notes == 1,
       "numbers digit by digit: %s %s", name, e.message);
    sprintf(section + n, DIGITS("false") BYTES "]}");
    ok(recognise_row(section, false, name, &e) == GGUF_OK &&
           !strcmp(name, "deepseek-llm"),
       "numbers as they are: %s %s", name, e.message);
}

/* Published expressions that vocab_pre.c knows, put in parentheses. */
static void check_published(void)
{
    static const char *const names[] = { "smaug-bpe", "qwen2", "qwen35",
                                         "tekken", "gpt-4o" };
    static char section[6000], regex[5000];
    char name[64];
    struct gguf_error e;
    bool whole;
    for (size_t i = 0; i < GG_LEN(names); i++) {
        const char *t = gg_convert_vocab_pre_text(gg_str_z(names[i]), &whole);
        size_t n = 0;
        for (const char *p = t + 6; strcmp(p, ") Bytes") != 0; p++) {
            if (*p == '\\' || *p == '"')
                regex[n++] = '\\';
            regex[n++] = *p;
        }
        regex[n] = 0;
        snprintf(section, sizeof section, SEQUENCE(SPLIT("(?:%s)") BYTES),
                 regex);
        const enum gguf_status st = recognise_row(section, false, name, &e);
        const struct gg_pretok_row *a = gg_pretok_row_find(gg_str_z(names[i])),
                                   *b = gg_pretok_row_find(gg_str_z(name));
        ok(st == GGUF_OK && a && b && same_stages(a, b),
           "%s in parentheses cuts as %s %s", names[i], name, e.message);
    }
}

static void check_not(void)
{
    static const char *const rows[] = {
        /* two digits: no row has this */
        SEQUENCE(SPLIT(TIKTOKEN("{1,2}")) BYTES),
        SEQUENCE(SPLIT("(") BYTES),
        SEQUENCE(SPLIT("\\\\p{Odd}") BYTES),
        SEQUENCE(SPLIT("\\\\C") BYTES),
        SEQUENCE(SPLIT("a\\\\Kb") BYTES),
        /* takes exponential time to match */
        SEQUENCE(SPLIT("(?:(?:[^~]+)+)+~") BYTES),
        SEQUENCE(SPLIT("(?R)") BYTES),
        SEQUENCE(SPLIT("") BYTES),
        SEQUENCE(SPLIT(GPT2) "{\"type\":\"Whitespace\"}," BYTES),
        /* the bytes are letters when Split sees them */
        SEQUENCE(BYTES "," SPLIT(GPT2) BYTES),
        SEQUENCE(SPLIT("a") SPLIT("b") SPLIT("c") SPLIT("d") SPLIT("e")
                     SPLIT("f") SPLIT("g") BYTES),
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}",
        SEQUENCE(""),
        "null",
    };
    char name[64];
    struct gguf_error e;
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        const enum gguf_status st = recognise_row(rows[i], false, name, &e);
        ok(st == GGUF_E_UNSUPPORTED && !n_notes &&
               strstr(e.message, "the pre-tokenizer is not recognised: "),
           "%s%s", name, e.message);
    }
}

int main(void)
{
    check_rows();
    check_known();
    check_described();
    check_other_names();
    check_descriptions();
    check_departed();
    check_published();
    check_not();
    return done_testing();
}
