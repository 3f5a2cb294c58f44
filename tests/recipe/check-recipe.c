/* SPDX-License-Identifier: MIT */
/* check-recipe.c - recipes: language, patterns, presets. check-types.c tests
 * the types that presets choose. */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "recipe/type_choice.h"
#include "tests/failalloc.h"
#include "tests/tap.h"

#include <strings.h>

static void check_patterns(void)
{
    static const struct {
        const char *pattern, *name;
        int want; /* 1, 0, or -1: malformed pattern */
    } cases[] = {
        { "attn_v", "blk.0.attn_v.weight", 1 },
        { "ATTN_V", "blk.0.attn_v.weight", 1 },
        { "^attn_v", "blk.0.attn_v.weight", 0 },
        { "blk\\.(0|3)\\.ffn_down", "blk.3.ffn_down.weight", 1 },
        { "blk\\.(0|3)\\.ffn_down", "blk.30.ffn_down.weight", 0 },
        { "blk\\.\\d+\\.ffn", "blk.12.ffn_up.weight", 1 },
        { "blk\\.\\D+\\.ffn", "blk.12.ffn_up.weight", 0 },
        { "attn_[qk]\\.weight", "blk.1.attn_k.weight", 1 },
        { "attn_[^qk]\\.weight", "blk.1.attn_k.weight", 0 },
        { "attn_[^qk]\\.weight", "blk.1.attn_v.weight", 1 },
        { "blk[\\.]1[\\d]", "blk.17.x", 1 },
        { "a[\\]x]b", "a]b", 1 },
        { "a[x^]b", "a^b", 1 },
        { "a[\\^]b", "a^b", 1 },
        { "a[\\^]b", "axb", 0 },
        { "a[x\\-z]b", "ayb", 0 },
        { "a[x\\-z]b", "a-b", 1 },
        { "a{2}", "xaax", 1 },
        { "\\w+_exps$", "ffn_down_exps", 1 },
        { "ffn_(?:up|gate)_", "blk.0.ffn_gate_exps.weight", 1 },
        { "blk\\.(?!0\\.)\\d+\\.ffn", "blk.0.ffn_up.weight", 0 },
        { "blk\\.(?!0\\.)\\d+\\.ffn", "blk.10.ffn_up.weight", 1 },
        { "k\\.1+?\\.", "blk.2.x", 0 },
        { "x$", "x\n", 0 },
        { "a++", "b", 0 },
        { "a+++", "", -1 },
        { "attn_(v", "", -1 },
        { "attn_[v", "", -1 },
        { "", "", -1 },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gg_pattern *p;
        bool found = !cases[i].want;
        enum gguf_status st =
            gg_pattern_create(&p, gg_str_z(cases[i].pattern), NULL, NULL);
        if (cases[i].want < 0) {
            ok(st == GGUF_E_FORMAT && !p, "'%s' is not a pattern",
               cases[i].pattern);
            continue;
        }
        ok(st == GGUF_OK &&
               gg_pattern_match(p, cases[i].name, &found, NULL) == GGUF_OK &&
               found == (cases[i].want != 0),
           "'%s' %s '%s'", cases[i].pattern,
           cases[i].want ? "matches" : "does not match", cases[i].name);
        gg_pattern_destroy(p);
    }
}

/* Expressions that take regcomp or a matcher exponential time. */
static void check_bombs(void)
{
    static const char *const bombs[] = {
        "x+++++++++++++++++++++++++++++y", /* found by fuzzing: 2^29 nodes */
        "((((a{99}){99}){99}){99}){99}",
        "((((a{0,99}){0,99}){0,99}){0,99}){0,99}b",
        "(a*)*(a*)*(a*)*(a*)*(a*)*[bd]",
        "^(((a|aa)+)+)+[bd]$",
    };
    static const char name[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac";
    for (size_t i = 0; i < GG_LEN(bombs); i++) {
        struct gg_pattern *p;
        struct gguf_error err = { .message = "no match" };
        bool found = true;
        enum gguf_status st =
            gg_pattern_create(&p, gg_str_z(bombs[i]), NULL, &err);
        if (st == GGUF_OK)
            st = gg_pattern_match(p, name, &found, &err);
        ok(st == GGUF_OK ? !found : st == GGUF_E_FORMAT || st == GGUF_E_LIMIT,
           "%s: %s", bombs[i], err.message);
        gg_pattern_destroy(p);
    }
}

/* If memory runs out at the n-th call, for any n, the status is GGUF_E_NOMEM.
 */
static void check_nomem(void)
{
    struct failalloc fa;
    unsigned n = 0;
    bool bad = false;
    do {
        const struct gguf_allocator *a = failalloc_init(&fa, n);
        struct gg_pattern *p;
        bool found = false;
        enum gguf_status st =
            gg_pattern_create(&p, GG_STR("a(b|c)+"), a, NULL);
        bad |= (st == GGUF_OK) != (p != NULL);
        if (st == GGUF_OK)
            st = gg_pattern_match(p, "xabc", &found, NULL);
        bad |= fa.calls > n ? st != GGUF_E_NOMEM : st != GGUF_OK || !found;
        gg_pattern_destroy(p);
        bad |= fa.live != 0;
    } while (fa.calls > n++ && n < 100);
    ok(!bad && n > 4 && n < 100, "patterns without memory, %u times", n - 1);
}

static void check_conditions(void)
{
    static const struct {
        const char *text;
        int want; /* 1, 0, or -1: malformed */
    } cases[] = {
        { "1", 1 },
        { "0", 0 },
        { "1 + 2 * 3 == 7", 1 },
        { "(1 + 2) * 3 == 9", 1 },
        { "10 - 3 - 2 == 5", 1 },
        { "7 / 2 == 3 and 7 % 2 == 1", 1 },
        { "-3 < 2", 1 },
        { "7 / 0 == 0 and 7 % 0 == 0", 1 },
        { "1 or 0 and 0", 1 },
        { "not 1 or 1", 1 },
        { "not (1 or 1)", 0 },
        { "not 1 == 2", 1 },
        { "i == 5 and n == 32 and layers == 32", 1 },
        { "i < n/8", 0 == 1 || 5 < 4 },
        { "i>=n/8", 1 },
        { "arch == llama", 1 },
        { "arch != llama", 0 },
        { "arch in (falcon, llama)", 1 },
        { "arch in (falcon, qwen2)", 0 },
        { "two == 2 and three == 3", 1 },
        { "-two*two == -4", 1 },
        { "", -1 },
        { "1 +", -1 },
        { "(1", -1 },
        { "1 2", -1 },
        { "x", -1 },
        { "arch", -1 },
        { "arch == ", -1 },
        { "llama", -1 },
        { "9999999999999999", -1 },
        { "1x", -1 },
        { "(((((((((((((((((((((((((((((((((((((((((("
          "1))))))))))))))))))))))))))))))))))))))))))",
          -1 },
    };
    struct gg_recipe_facts facts = { .arch = GG_STR("llama") };
    facts.var[GG_VAR_I] = 5;
    facts.var[GG_VAR_N] = facts.var[GG_VAR_LAYERS] = 32;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        char text[512];
        struct gguf_recipe *r;
        const struct gg_recipe_rule *rule;
        struct gguf_error err;
        snprintf(text, sizeof text,
                 "base Q4_K\nlet two = 2\nlet three = two + 1\n"
                 "attn_v = Q6_K if %s\n",
                 cases[i].text);
        enum gguf_status st =
            gguf_recipe_parse(&r, gg_str_z(text), NULL, &err);
        if (cases[i].want < 0)
            ok(st != GGUF_OK && !r && strstr(err.message, "line 4") &&
                   err.offset >= 33 && err.offset <= strlen(text),
               "'%s': %s", cases[i].text, err.message);
        else
            ok(st == GGUF_OK &&
                   gg_recipe_find_rule(r, GG_CLASS_ATTN_V, "x", &facts, &rule,
                                       NULL) == GGUF_OK &&
                   (rule != NULL) == (cases[i].want != 0),
               "'%s' is %d", cases[i].text, cases[i].want);
        gguf_recipe_destroy(r);
    }
}

static void check_texts(void)
{
    static const struct {
        const char *text, *want; /* want: part of the message; NULL: valid */
    } cases[] = {
        { "base Q4_K", NULL },
        { "base q4_k\r\n# comment\n\n\"a#b\" = F16 # more\n* = base", NULL },
        { "base keep\n", NULL },
        { "", "no line 'base" },
        { "base Q9_9", "line 1: 'Q9_9' is not a type" },
        { "base I32", "'I32' is not a type" },
        { "base Q4_K\nattn_x = Q6_K", "line 2: this is not a line" },
        { "base Q4_K\nattn_v Q6_K", "line 2: '=' is expected" },
        { "base Q4_K\nattn_v = Q6_K when 1", "line 2: 'if'" },
        { "base Q4_K\n\"a[\" = Q6_K", "missing terminating" },
        { "base Q4_K\n\"a = Q6_K", "closing" },
        { "base Q4_K\nlet i = 1", "a new name" },
        { "base Q4_K\nlet x = 1\nlet x = 2", "given already" },
        { "base Q4_K\nlet 9x = 1", "a name is" },
        { "base Q4_K\nftype x", "a number" },
        { "base Q4_K\nneeds_imatrix base", "is not a type" },
        { "base Q4_K if", "line 1: the end" },
        { "base Q4_K\nftype 1 2", "line 2: the end" },
        { "base Q4_K\nattn_v = F16 F16", "line 2: 'if'" },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_recipe *r;
        struct gguf_error err;
        enum gguf_status st =
            gguf_recipe_parse(&r, gg_str_z(cases[i].text), NULL, &err);
        if (!cases[i].want)
            ok(st == GGUF_OK, "recipe %zu is one", i);
        else
            ok(st == GGUF_E_FORMAT && strstr(err.message, cases[i].want),
               "recipe %zu: %s", i, err.message);
        gguf_recipe_destroy(r);
    }
    /* names whose text doubles in each line: growth is bounded */
    char text[4096] = "base Q4_K\nlet a0 = i + i\n";
    for (int i = 1; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "let a%d = a%d + a%d\n", i, i - 1, i - 1);
    struct gguf_recipe *r;
    ok(gguf_recipe_parse(&r, gg_str_z(text), NULL, NULL) == GGUF_E_LIMIT,
       "conditions cannot grow without end");
}

static void check_presets(void)
{
    struct gguf_recipe *r;
    int bad = 0;
    size_t n = 0;
    for (; gguf_recipe_preset_name(n); n++) {
        struct gguf_error err;
        const char *name = gguf_recipe_preset_name(n);
        if (gguf_recipe_preset(&r, name, NULL, &err) != GGUF_OK) {
            printf("# %s: %s\n", name, err.message);
            bad++;
            continue;
        }
        bad += strcmp(gguf_recipe_name(r), name) != 0 ||
               strcmp(gguf_recipe_about(r), gguf_recipe_preset_about(n)) ||
               !*gguf_recipe_about(r);
        gguf_recipe_destroy(r);
    }
    ok(n == 86 && !bad, "%zu presets are recipes", n);
    static const char *const same[][2] = {
        { "q4_k", "Q4_K_M" }, { "15", "Q4_K_M" }, { "iq4_nl", "IQ4_NL" },
        { "32", "BF16" },     { "copy", "COPY" }, { "f64", "F64" },
    };
    for (size_t i = 0; i < GG_LEN(same); i++) {
        ok(gguf_recipe_preset(&r, same[i][0], NULL, NULL) == GGUF_OK &&
               !strcmp(gguf_recipe_name(r), same[i][1]),
           "'%s' is %s", same[i][0], same[i][1]);
        gguf_recipe_destroy(r);
    }
    ok(gguf_recipe_preset(&r, "Q4", NULL, NULL) == GGUF_E_NOTFOUND,
       "'Q4' is not a preset");
}

/* Two rules that the reference's models do not show: for falcon the attention
 * output gets the base type, also with eight experts, except in types of less
 * than three bits. (Source: llama-quant.cpp of llama.cpp.) */
static void check_falcon(void)
{
    static const char *const want[][2] = {
        { "Q2_K", "Q2_K" },     { "Q3_K_S", "Q3_K" },
        { "Q3_K_M", "Q3_K" },   { "Q3_K_L", "Q4_K" },
        { "Q4_K_S", "Q4_K" },   { "Q4_K_M", "Q4_K" },
        { "Q5_K_M", "Q5_K" },   { "IQ3_XXS", "IQ3_XXS" },
        { "IQ3_XS", "IQ3_S" },  { "IQ3_S", "IQ3_S" },
        { "IQ3_M", "IQ3_S" },   { "IQ4_NL", "IQ4_NL" },
        { "IQ4_XS", "IQ4_XS" }, { "IQ2_M", "Q5_K" },
        { "IQ1_S", "Q5_K" },
    };
    for (size_t i = 0; i < GG_LEN(want); i++) {
        static const int64_t ne[GGUF_MAX_DIMS] = {
            512, 512, 1, 1, 1, 1, 1, 1
        };
        struct gg_recipe_chooser c = { .recipe = NULL };
        struct gguf_recipe *r;
        struct gg_recipe_choice choice = { 0 };
        ok(gguf_recipe_preset(&r, want[i][0], NULL, NULL) == GGUF_OK, "%s",
           want[i][0]);
        c.recipe = r;
        c.facts.arch = GG_STR("falcon");
        c.facts.var[GG_VAR_LAYERS] = c.facts.var[GG_VAR_N] = 32;
        c.facts.var[GG_VAR_HEADS] = c.facts.var[GG_VAR_KV_HEADS] = 8;
        c.facts.var[GG_VAR_EXPERTS] = 8;
        ok(gg_recipe_choose_type(&c, "blk.9.attn_output.weight", ne,
                                 GGUF_DTYPE_F16, &choice, NULL) == GGUF_OK &&
               choice.type == gguf_dtype_find_name(want[i][1])->id,
           "%s: falcon of eight experts: %s (%s)", want[i][0], want[i][1],
           choice.text);
        gguf_recipe_destroy(r);
    }
}

/* Tables that are only looked up get Q8_0 or better unless a rule names them;
 * a matrix of the same shape does not. */
static void check_gathered(void)
{
    static const struct {
        const char *name, *from, *preset;
        bool compat, pure, option, pattern;
        const char *want;
    } t[] = {
        { "per_layer_token_embd.weight", "F16", "Q4_K_M", 0, 0, 0, 0, "Q8_0" },
        { "blk.1.engram_embd.weight", "BF16", "IQ2_M", 0, 0, 0, 0, "Q8_0" },
        { "ngram_embd.0.weight", "F32", "Q2_K", 0, 0, 0, 0, "Q8_0" },
        { "per_layer_token_embd.weight", "F16", "F16", 0, 0, 0, 0, "F16" },
        { "per_layer_token_embd.weight", "F32", "BF16", 0, 0, 0, 0, "BF16" },
        { "per_layer_token_embd.weight", "F16", "COPY", 0, 0, 0, 0, "F16" },
        { "per_layer_token_embd.weight", "Q6_K", "Q4_K_M", 0, 0, 0, 0,
          "Q6_K" },
        { "per_layer_token_embd.weight", "F16", "Q4_0", 1, 0, 0, 0, "Q6_K" },
        { "blk.1.engram_embd.weight", "F16", "Q4_0", 1, 0, 0, 0, "Q4_0" },
        { "per_layer_token_embd.weight", "F16", "Q4_0", 0, 1, 0, 0, "Q4_0" },
        { "per_layer_token_embd.weight", "F16", "Q4_0", 0, 0, 1, 0, "Q5_K" },
        { "blk.1.engram_embd.weight", "F16", "Q4_0", 0, 0, 0, 1, "Q3_K" },
        { "token_embd.weight", "F16", "Q4_0", 0, 0, 0, 0, "Q6_K" },
        { "blk.1.attn_q.weight", "F16", "Q4_0", 0, 0, 0, 0, "Q4_0" },
    };
    static const int64_t ne[GGUF_MAX_DIMS] = { 512, 512, 1, 1, 1, 1, 1, 1 };
    for (size_t i = 0; i < GG_LEN(t); i++) {
        struct gg_recipe_chooser c = {
            .tied = true,
            .compat = t[i].compat,
            .pure = t[i].pure,
            .embedding_type =
                t[i].option ? gguf_dtype_find(GGUF_DTYPE_Q5_K) : NULL
        };
        const struct gguf_quant_override by = { "engram", GGUF_DTYPE_Q3_K };
        struct gg_pattern *p = NULL;
        struct gguf_recipe *r = NULL;
        struct gg_recipe_choice choice = { 0 };
        bool good =
            gguf_recipe_preset(&r, t[i].preset, NULL, NULL) == GGUF_OK &&
            gg_pattern_create(&p, GG_STR("engram"), NULL, NULL) == GGUF_OK;
        c.recipe = r;
        c.overrides = &by;
        c.patterns = &p;
        c.n_overrides = t[i].pattern;
        good =
            good && gg_recipe_choose_type(&c, t[i].name, ne,
                                          gguf_dtype_find_name(t[i].from)->id,
                                          &choice, NULL) == GGUF_OK;
        ok(good && choice.type == gguf_dtype_find_name(t[i].want)->id,
           "%s of %s, %s: %s (%s)", t[i].name, t[i].from, t[i].preset,
           t[i].want, choice.text);
        gg_pattern_destroy(p);
        gguf_recipe_destroy(r);
    }
}

/* A rule for the table's name sets its type; a rule for its class does not. */
static void check_gathered_rules(void)
{
    static const int64_t ne[GGUF_MAX_DIMS] = { 512, 512, 1, 1, 1, 1, 1, 1 };
    static const char *const text[] = {
        "base Q4_0\ntoken_embd = Q3_K\n",
        "base Q4_0\n\"^per_layer_token_embd\" = Q3_K\n",
    };
    static const uint32_t want[] = { GGUF_DTYPE_Q8_0, GGUF_DTYPE_Q3_K };
    for (size_t i = 0; i < 2; i++) {
        struct gg_recipe_chooser c = { .recipe = NULL };
        struct gguf_recipe *r = NULL;
        struct gg_recipe_choice choice = { 0 };
        bool good =
            gguf_recipe_parse(&r, gg_str_z(text[i]), NULL, NULL) == GGUF_OK;
        c.recipe = r;
        ok(good &&
               gg_recipe_choose_type(&c, "per_layer_token_embd.weight", ne,
                                     GGUF_DTYPE_F16, &choice,
                                     NULL) == GGUF_OK &&
               choice.type == want[i] &&
               (choice.reason == GGUF_REASON_LOOKUP_TABLE) == !i,
           "a rule for the %s: %s", i ? "name" : "class", choice.text);
        gguf_recipe_destroy(r);
    }
}

/* Presets with bytes changed, removed and doubled are parsed or refused with a
 * message. A parsed recipe can be used. */
static void check_mutations(void)
{
    static char text[8192];
    int n_parsed = 0, n_refused = 0, wrong = 0;
    for (int round = 0; round < 5000; round++) {
        const char *from =
            gg_recipe_presets[rnd_below(gg_recipe_n_presets)].text;
        size_t n = strlen(from);
        memcpy(text, from, n);
        for (uint64_t k = rnd_below(4) + 1; k; k--) {
            size_t at = (size_t)rnd_below(n), len = (size_t)rnd_below(n - at);
            switch (rnd_below(4)) {
            case 0: text[at] = (char)rnd64(); break;
            case 1: text[at] = "\n\"=()#*%/-9ai "[rnd_below(14)]; break;
            case 2: /* removed */
                len = GG_MIN(len, n - 1);
                memmove(text + at, text + at + len, n - at - len);
                n -= len;
                break;
            default: /* doubled */
                len = GG_MIN(len, sizeof text - n);
                memmove(text + at + len, text + at, n - at);
                n += len;
            }
        }
        struct gguf_recipe *r;
        struct gguf_error err = { .message = "" };
        struct gguf_str s = { text, n };
        if (gguf_recipe_parse(&r, s, NULL, &err) != GGUF_OK) {
            n_refused++;
            wrong += r || !err.message[0];
            continue;
        }
        n_parsed++;
        struct gg_recipe_chooser c = { .recipe = r };
        c.facts.arch = GG_STR("llama");
        for (int i = 0; i < GG_N_VARS; i++)
            c.facts.var[i] = (int64_t)rnd64() >> rnd_below(64);
        static const char *const names[] = { "output.weight",
                                             "blk.3.attn_v.weight",
                                             "blk.99.ffn_down_exps.weight" };
        for (size_t i = 0; i < GG_LEN(names); i++) {
            static const int64_t ne[GGUF_MAX_DIMS] = {
                512, 3, 2, 1, 1, 1, 1, 1
            };
            struct gg_recipe_choice choice;
            wrong += gg_recipe_choose_type(&c, names[i], ne, GGUF_DTYPE_F16,
                                           &choice, NULL) != GGUF_OK ||
                     512 % gguf_dtype_find(choice.type)->block_len != 0;
        }
        gguf_recipe_destroy(r);
    }
    ok(!wrong && n_parsed > 100 && n_refused > 100,
       "%d changed presets are refused, %d are recipes", n_refused, n_parsed);
}

int main(void)
{
    check_patterns();
    check_bombs();
    check_nomem();
    check_conditions();
    check_texts();
    check_presets();
    check_falcon();
    check_gathered();
    check_gathered_rules();
    check_mutations();
    return done_testing();
}
