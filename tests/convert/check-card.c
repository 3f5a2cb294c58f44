/* SPDX-License-Identifier: MIT */
/* check-card.c - model cards: their pairs, the parts of names, and the keys
 * written from them */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "convert/card/card.h"
#include "tests/failalloc.h"
#include "tests/tap.h"

#include <time.h>

/* ---- names ---- */

/* Cases of llama.cpp's gguf-py/tests/test_metadata.py (commit 18f4bb5e): name,
 * number of weights; then organization, base, finetune, version, size. */
static const struct {
    const char *id;
    double n_params;
    const char *of, *base, *finetune, *version, *size;
} names[] = {
    { "Mistral/Mixtral-8x7B-Instruct-v0.1", 0, "Mistral", "Mixtral",
      "Instruct", "v0.1", "8x7B" },
    { "Mixtral-8x7B-Instruct", 0, NULL, "Mixtral", "Instruct", NULL, "8x7B" },
    { "Mixtral-8x7B-v0.1", 0, NULL, "Mixtral", NULL, "v0.1", "8x7B" },
    { "Mixtral-8x7B", 0, NULL, "Mixtral", NULL, NULL, "8x7B" },
    { "Mixtral-v0.1", 0, NULL, "Mixtral", NULL, "v0.1", NULL },
    { "Mixtral", 0, NULL, NULL, NULL, NULL, NULL },
    { "NousResearch/Meta-Llama-3-8B", 0, "NousResearch", "Meta-Llama-3", NULL,
      NULL, "8B" },
    { "Qwen1.5-MoE-A2.7B-Chat", 0, NULL, "Qwen1.5-MoE", "Chat", NULL,
      "A2.7B" },
    { "Qwen2-57B-A14B-Instruct", 0, NULL, "Qwen2", "Instruct", NULL,
      "57B-A14B" },
    { "google/gemma-4-26B-A4B-it", 4e9, "google", "gemma-4", "it", NULL,
      "26B-A4B" },
    { "microsoft/Phi-3-mini-4k-instruct", 4e9, "microsoft", "Phi-3",
      "4k-instruct", NULL, "mini" },
    { "delphi-suite/stories-llama2-50k", 50e3, "delphi-suite",
      "stories-llama2", NULL, NULL, "50K" },
    { "DeepSeek-Coder-V2-Lite-Instruct", 0, NULL, "DeepSeek-Coder-V2-Lite",
      "Instruct", NULL, NULL },
    { "crestf411/daybreak-kunoichi-2dpo-7b", 0, "crestf411",
      "daybreak-kunoichi", "2dpo", NULL, "7B" },
    { "Qwen2-0.5B-Instruct", 0, NULL, "Qwen2", "Instruct", NULL, "0.5B" },
    { "smallcloudai/Refact-1_6B-fim", 0, "smallcloudai", "Refact", "fim", NULL,
      "1.6B" },
    { "UCLA-AGI/Gemma-2-9B-It-SPPO-Iter3", 0, "UCLA-AGI", "Gemma-2", "It-SPPO",
      "Iter3", "9B" },
    { "NousResearch/Hermes-2-Theta-Llama-3-8B", 0, "NousResearch",
      "Hermes-2-Theta-Llama-3", NULL, NULL, "8B" },
    { "SeaLLMs/SeaLLMs-v3-7B-Chat", 0, "SeaLLMs", "SeaLLMs-v3", "Chat", NULL,
      "7B" },
    { "internlm/internlm2_5-7b-chat-1m", 7e9, "internlm", "internlm2_5",
      "chat-1m", NULL, "7B" },
    { "pszemraj/jamba-900M-v0.13-KIx2", 0, "pszemraj", "jamba", "KIx2",
      "v0.13", "900M" },
    { "state-spaces/mamba-2.8b-hf", 0, "state-spaces", "mamba", "hf", NULL,
      "2.8B" },
    { "abacaj/llama-161M-100B", 161e6, "abacaj", "llama", "100b", NULL,
      "161M" },
    { "SparseLLM/relu-100B", 1340e6, "SparseLLM", "relu", "100b", NULL, NULL },
    { "bigscience/bloom-7b1-petals", 0, "bigscience", "bloom", "petals", NULL,
      "7.1B" },
    { "MaziyarPanahi/"
      "GreenNode-mini-7B-multilingual-v1olet-Mistral-7B-Instruct-v0.1",
      0, "MaziyarPanahi", "GreenNode-mini",
      "multilingual-v1olet-Mistral-Instruct", "v0.1", "7B" },
    { "mistralai/Mistral-Nemo-Instruct-2407", 0, "mistralai", "Mistral-Nemo",
      "Instruct", "2407", NULL },
    { "deepseek-ai/DeepSeek-V2-Chat-0628", 0, "deepseek-ai", "DeepSeek-V2",
      "Chat", "0628", NULL },
    { "OpenGVLab/Mini-InternVL-Chat-2B-V1-5", 0, "OpenGVLab", "Mini-InternVL",
      "Chat", "V1-5", "2B" },
    { "jondurbin/bagel-dpo-2.8b-v0.2", 0, "jondurbin", "bagel-dpo", NULL,
      "v0.2", "2.8B" },
    { "voxmenthe/SFR-Iterative-DPO-LLaMA-3-8B-R-unquantized", 0, "voxmenthe",
      "SFR-Iterative-DPO-LLaMA-3", "R-unquantized", NULL, "8B" },
    { "microsoft/Florence-2-base", 0, "microsoft", NULL, NULL, NULL, NULL },
    { "mistralai/-Mistral--Nemo-Base-2407-", 0, "mistralai",
      "Mistral-Nemo-Base", NULL, "2407", NULL },
    { "Llama-3-Instruct-abliteration-LoRA-8B", 0, NULL, "Llama-3",
      "Instruct-abliteration-LoRA", NULL, "8B" },
    { "Llama-3-Instruct-abliteration-LoRA-8B", -1234, NULL, "Llama-3",
      "Instruct-abliteration", NULL, "8B" },
    { "./hermes-2-pro-llama-3-8b-DPO", 0, NULL, "hermes-2-pro-llama-3", "DPO",
      NULL, "8B" },
    { "a name of words", 0, NULL, NULL, NULL, NULL, NULL },
};

static const char *const titles[][2] = {
    { "Mixtral-8x7B-Instruct-v0.1", "Mixtral 8x7B Instruct v0.1" },
    { "Meta-Llama-3-8B", "Meta Llama 3 8B" },
    { "hermes-2-pro-llama-3-8b-DPO", "Hermes 2 Pro Llama 3 8b DPO" },
    { "-tiny_llama--qwen2.5-v1x-v1.2- ", "Tiny_Llama Qwen2.5 V1X v1.2" },
};

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : !a && !b;
}

static void check_names(void)
{
    struct gg_mem_arena a;
    struct gg_card_name n;
    struct gguf_error err;
    char longest[1002];
    gg_mem_arena_init(&a, NULL);
    for (size_t i = 0; i < GG_LEN(names); i++) {
        const char *id = names[i].id;
        const enum gguf_status st =
            gg_card_read_name(&n, &a, (struct gguf_str){ id, strlen(id) },
                              names[i].n_params, NULL);
        ok(st == GGUF_OK && same_text(n.organization, names[i].of) &&
               same_text(n.basename, names[i].base) &&
               same_text(n.finetune, names[i].finetune) &&
               same_text(n.version, names[i].version) &&
               same_text(n.size_label, names[i].size),
           "%s: %s, %s, %s, %s", id, n.basename ? n.basename : "-",
           n.finetune ? n.finetune : "-", n.version ? n.version : "-",
           n.size_label ? n.size_label : "-");
    }
    for (size_t i = 0; i < GG_LEN(titles); i++) {
        const char *t = gg_card_make_title(&a, titles[i][0]);
        ok(same_text(t, titles[i][1]), "%s: %s", titles[i][0], t);
    }
    for (size_t i = 0; i < sizeof longest; i++)
        longest[i] = "7b1-"[i % 4];
    ok(gg_card_read_name(&n, &a, (struct gguf_str){ longest, 1000 }, 0,
                         NULL) == GGUF_OK,
       "a name of 1000 bytes");
    ok(gg_card_read_name(&n, &a, (struct gguf_str){ longest, 1001 }, 0,
                         &err) == GGUF_E_LIMIT,
       "one more: %s", err.message);
    gg_mem_arena_fini(&a);
}

/* ---- pairs ---- */

/* Text between "---" and "---", and the expected items of key k: "a|b"; lists
 * begin with "L:"; "-": the key is missing. */
static const struct {
    const char *text, *want;
} pairs[] = {
    { "k: a text", "a text" },
    { "k:\ta\r", "a" },
    { "k: # nothing", "" },
    { "k: a # b", "a" },
    { "k: a#b: c", "a#b: c" },
    { "k: ~\n", "" },
    { "k: null", "" },
    { "'k': 'it''s' # x", "it's" },
    { "k: \"a\\tb \\u00e9\\x41\\U0001f600\"", "a\tb \xc3\xa9"
                                              "A\xf0\x9f\x98\x80" },
    { "k: a\n  b\n  c # d\nj: e", "a b c" },
    { "k:\n  a\n  b", "a b" },
    { "k: >-\n  a\n  b\n\n  c\nj: 1", "a b\nc" },
    { "k: |\n   a\n    b\nj: 1", "a\n b" },
    { "k: [a, 'b, c', \"d\"] # x", "L:a|b, c|d" },
    { "k: [a,\n  b # x\n  , c\n]\nj: 1", "L:a|b|c" },
    { "k: [a, 'b # c', d#e, # x\n f]", "L:a|b # c|d#e|f" },
    { "k: []", "L:" },
    { "k:\n- a\n- 'b' # x\n\n# y\n-\n- c\nj: 1", "L:a|b|c" },
    { "k:\n  - a\n    b\n  - no\nj: 1", "L:a b|no" },
    { "k:\n- name: a\n  b: c\n- d\n- [e, f]\n- {g: h}", "L:d" },
    { "k:\n  a: b\n  c:\n    - d", "" },
    { "k: {a: b,\n  c: d}\nj: 1", "" },
    { "k: a\nk: b", "b" },
    { "j: a", "-" },
    { "# k: a\n\n", "-" },
    { "model-index:\n- name: x\n  results:\n  - task:\n      k: y\nk: z",
      "z" },
};

/* Malformed cards, and a part of each message. */
static const char *const bad[][2] = {
    { "k", "line 2, 'k': neither a key nor an item of a list" },
    { "j: a\n\nk", "line 4, 'k'" },
    { " k: a", "unexpected indentation" },
    { "- a", "unexpected indentation" },
    { "k: \"a", "a quotation does not end on its line" },
    { "k: 'a", "a quotation does not end on its line" },
    { "k: \"\\q\"", "unknown escape sequence" },
    { "k: \"\\u12\"", "unknown escape sequence" },
    { "k: \"\\ud800\"", "unknown escape sequence" },
    { "k: \"\\UFFFFFFFF\"", "unknown escape sequence" },
    { "k: 'a' b", "unexpected text after a quotation" },
    { "k: ['a' b]", "unexpected text after a quotation" },
    { "k: [a] b", "unexpected text after a list" },
    { "k: [a, [b]]", "nested lists are not supported" },
    { "k: [a", "a list has no end" },
    { "k: &x a", "a value with such a mark is not supported" },
    { "k: *x", "a value with such a mark is not supported" },
    { "k: !!str a", "a value with such a mark is not supported" },
    { "k: \xff", "are not UTF-8" },
};

/* Write the items of k in the form of the table. */
static void print_card(char *out, size_t size, const struct gg_card *c)
{
    const struct gg_card_pair *p = gg_card_find(c, "k");
    int n = snprintf(out, size, "%s", !p ? "-" : p->is_list ? "L:" : "");
    for (size_t i = 0; p && i < p->n; i++)
        n += snprintf(out + n, size - (size_t)n, "%s%.*s", i ? "|" : "",
                      (int)p->item[i].size, p->item[i].data);
}

static void check_pairs(void)
{
    char text[512], got[512];
    struct gg_card c;
    struct gguf_error err;
    for (size_t i = 0; i < GG_LEN(pairs); i++) {
        struct gg_mem_arena a;
        gg_mem_arena_init(&a, NULL);
        gguf_error_clear(&err);
        snprintf(text, sizeof text, "---\n%s\n---\nk: not here\n",
                 pairs[i].text);
        const enum gguf_status st =
            gg_card_read(&c, &a, text, strlen(text), &err);
        print_card(got, sizeof got, &c);
        ok(st == GGUF_OK && !strcmp(got, pairs[i].want), "pair %zu: %s %s", i,
           got, err.message);
        gg_mem_arena_fini(&a);
    }
    for (size_t i = 0; i < GG_LEN(bad); i++) {
        struct gg_mem_arena a;
        gg_mem_arena_init(&a, NULL);
        gguf_error_clear(&err);
        snprintf(text, sizeof text, "---\n%s\n---\n", bad[i][0]);
        const enum gguf_status st =
            gg_card_read(&c, &a, text, strlen(text), &err);
        ok(st == GGUF_E_FORMAT && !c.n && strstr(err.message, bad[i][1]),
           "bad %zu: %s", i, err.message);
        gg_mem_arena_fini(&a);
    }
}

/* Texts that are all head, or have no head. */
static void check_frames(void)
{
    struct gg_mem_arena a;
    struct gg_card c;
    struct gguf_error err;
    static const char *const none[] = { "",
                                        "# Title\n---\nk: a\n---\n",
                                        " ---\nk: a\n---\n",
                                        "---x\n---\n",
                                        "---\n---\n",
                                        "---\r\n---\r\n" };
    gg_mem_arena_init(&a, NULL);
    for (size_t i = 0; i < GG_LEN(none); i++)
        ok(gg_card_read(&c, &a, none[i], strlen(none[i]), NULL) == GGUF_OK &&
               !c.n,
           "text %zu has no pairs", i);
    const char *open = "---\nk: a\n";
    ok(gg_card_read(&c, &a, open, strlen(open), &err) == GGUF_E_FORMAT &&
           strstr(err.message, "has no end"),
       "no end: %s", err.message);
    const size_t size = (2u << 20) + 8;
    char *large = malloc(size + 8);
    if (!large)
        exit(99);
    memset(large, '\n', size);
    memcpy(large, "---\n", 4);
    memcpy(large + size - 4, "---\n", 4);
    ok(gg_card_read(&c, &a, large, size, &err) == GGUF_E_LIMIT &&
           strstr(err.message, "1 MiB"),
       "two megabytes: %s", err.message);
    size_t n = (size_t)sprintf(large, "---\n");
    for (int i = 0; i < 600; i++)
        n += (size_t)sprintf(large + n, "k%d: a\n", i);
    n += (size_t)sprintf(large + n, "---\n");
    ok(gg_card_read(&c, &a, large, n, &err) == GGUF_E_LIMIT &&
           strstr(err.message, "more than 512 keys"),
       "600 keys: %s", err.message);
    n = (size_t)sprintf(large, "---\nk:\n");
    for (int i = 0; i < 5000; i++)
        n += (size_t)sprintf(large + n, "- a\n");
    n += (size_t)sprintf(large + n, "---\n");
    ok(gg_card_read(&c, &a, large, n, &err) == GGUF_E_LIMIT &&
           strstr(err.message, "more than 4096 items"),
       "5000 items: %s", err.message);
    free(large);
    gg_mem_arena_fini(&a);
}

/* ---- work and memory ---- */

/* Make a card with a list of n times `what'. Returns its size. */
static size_t put_list(char *out, const char *what, size_t n)
{
    const size_t k = strlen(what);
    size_t size = (size_t)sprintf(out, "---\nk: [");
    for (size_t i = 0; i < n; i++, size += k)
        memcpy(out + size, what, k);
    return size + (size_t)sprintf(out + size, "]\n---\n");
}

/* Processor time of reading a card `times' times. */
static double time_reads(const char *text, size_t size, int times)
{
    const clock_t begin = clock();
    for (int i = 0; i < times; i++) {
        struct gg_mem_arena a;
        struct gg_card c;
        gg_mem_arena_init(&a, NULL);
        if (gg_card_read(&c, &a, text, size, NULL) != GGUF_OK)
            exit(99);
        gg_mem_arena_fini(&a);
    }
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* Reading 16 cards of 32 KB takes as long as reading one of 512 KB. */
static void check_linear(void)
{
    static const char *const bits[] = { ",", "~,", " ,", ",#\n " };
    char *text = malloc(1 << 20);
    if (!text)
        exit(99);
    for (size_t i = 0; i < GG_LEN(bits); i++) {
        const size_t n = ((size_t)1 << 15) / strlen(bits[i]);
        const double few = time_reads(text, put_list(text, bits[i], n), 16);
        const double many =
            time_reads(text, put_list(text, bits[i], 16 * n), 1);
        ok(many < 6 * few + 0.05, "a list of '%.2s': %g s, and %g s", bits[i],
           few, many);
    }
    free(text);
}

/* Quoted strings take at most their size in memory. */
static void check_memory(void)
{
    struct failalloc fa;
    struct gg_mem_arena a;
    struct gg_card c;
    struct gguf_error err;
    char *text = malloc(1 << 20);
    if (!text)
        exit(99);
    gguf_error_clear(&err);
    size_t n = put_list(text, "'a''b', \"\\n\",", 1500) - strlen("]\n---\n");
    memset(text + n, ' ', 900000);
    n += 900000;
    n += (size_t)sprintf(text + n, "x]\n---\n");
    gg_mem_arena_init(&a, failalloc_init(&fa, UINT_MAX));
    ok(gg_card_read(&c, &a, text, n, &err) == GGUF_OK && c.pair[0].n == 3001 &&
           gg_str_eqz(c.pair[0].item[0], "a'b") &&
           gg_str_eqz(c.pair[0].item[1], "\n") && fa.most < 1 << 20,
       "3001 texts of a line of 1 MB: %zu bytes of memory %s", fa.most,
       err.message);
    gg_mem_arena_fini(&a);
    free(text);
}

/* Random bytes are read or refused, without a read out of bounds. */
static void check_random(void)
{
    static const char *const bits[] = { "---\n", "k",   ": ",  "- ",   "\n",
                                        "  ",    "'",   "\"",  "[",    "]",
                                        ", ",    "{",   "|\n", ">",    "#",
                                        "\\u",   "00e", "~",   "\xff", "*",
                                        ":",     "\t",  "\r\n" };
    size_t n_read = 0;
    for (int turn = 0; turn < 20000; turn++) {
        struct gg_mem_arena a;
        struct gg_card c;
        char text[400] = "---\n";
        size_t n = 4;
        for (unsigned k = rnd64() % 40; k > 0; k--) {
            const char *s = bits[rnd64() % GG_LEN(bits)];
            memcpy(text + n, s, strlen(s));
            n += strlen(s);
        }
        memcpy(text + n, "\n---\n", 5);
        n += 5;
        char *exact = malloc(n); /* ends with the text, so that sanitizers see
                                  * a read beyond */
        if (!exact)
            exit(99);
        memcpy(exact, text, n);
        gg_mem_arena_init(&a, NULL);
        n_read += gg_card_read(&c, &a, exact, n, NULL) == GGUF_OK;
        gg_mem_arena_fini(&a);
        free(exact);
    }
    ok(n_read > 500 && n_read < 19000, "%zu of 20000 random cards are read",
       n_read);
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    check_names();
    check_pairs();
    check_frames();
    check_linear();
    check_memory();
    check_random();
    return done_testing();
}
