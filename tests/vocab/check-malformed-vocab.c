/* SPDX-License-Identifier: MIT */
/* check-malformed-vocab.c - malformed vocabularies: merges that are malformed
 * or circular, arrays of wrong length, ids out of range
 *
 * A fault that changes tokens is refused with its key. A fault in a part that
 * need not be used is ignored with a warning that names it. Verifying the file
 * finds both.
 */
#include "config.h"
#include "gguf/verify.h"
#include "tests/vocab/own.h"

#include <string.h>

static const struct own_token tokens[] = {
    { "a", 0, 1 },    { "b", 0, 1 },   { "ab", 0, 1 }, { "ba", 0, 1 },
    { "aba", 0, 1 },  { "bab", 0, 1 }, { "aa", 0, 1 }, { "aaaa", 0, 1 },
    { "abab", 0, 1 }, { "x y", 0, 1 },
};

/* ---- a vocabulary with one thing wrong ---- */

static char said[1024]; /* all warnings */

static void on_warn(void *user, const char *message)
{
    const size_t n = strlen(said);
    (void)user;
    snprintf(said + n, sizeof said - n, "%s\n", message);
}

static bool on_find(void *user, const struct gguf_finding *f)
{
    char *all = user;
    const size_t n = strlen(all);
    if (f->severity != GGUF_SEVERITY_NOTE)
        snprintf(all + n, 4096 - n, "%s\n", f->message);
    return 0;
}

/* Set the merges from one text with commas between them. */
static void put_merges(struct own *o, const char *list)
{
    struct gguf_str s[16];
    size_t n = 0;
    for (const char *p = list, *end; n < GG_LEN(s); p = end + 1) {
        end = strchr(p, ',');
        s[n++] = (struct gguf_str){ p, end ? (size_t)(end - p) : strlen(p) };
        if (!end)
            break;
    }
    if (gguf_meta_set_str_array(o->meta, "tokenizer.ggml.merges", s, n, NULL))
        abort();
}

static void begin_vocab(struct own *o, const char *model, const char *merges)
{
    *o = (struct own){ 0 };
    own_tokens(o, tokens, GG_LEN(tokens), model);
    if (merges)
        put_merges(o, merges);
    if (gguf_meta_set_strz(o->meta, "tokenizer.ggml.pre", "gpt-2", NULL))
        abort();
}

static enum gguf_status open_it(struct own *o)
{
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    p.warn.fn = on_warn;
    said[0] = 0;
    return own_open(o, &p);
}

static void end_vocab(struct own *o)
{
    own_close(o);
    gguf_meta_destroy(o->meta);
}

/* Codes of the findings in the file. */
static const char *find_codes(struct own *o)
{
    static char all[4096];
    all[0] = 0;
    if (gguf_file_verify(o->file, NULL,
                         (struct gguf_finding_callback){ on_find, all },
                         NULL) != GGUF_OK)
        return "";
    return all;
}

/* ---- merges ---- */

static const struct {
    const char *merges, *element;
} malformed[] = {
    { "a b,ab", "element 1 'ab'" },
    { "ab a,", "element 1 ''" },
    { " ", "element 0 ' '" },
    { " a", "element 0 ' a'" },
    { "a ", "element 0 'a '" },
    { " a b", "element 0 ' a b'" },
    { "a b,b a,aa aa,x", "element 3 'x'" },
};

static void check_malformed(void)
{
    for (size_t i = 0; i < GG_LEN(malformed); i++) {
        struct own o;
        begin_vocab(&o, "gpt2", malformed[i].merges);
        const bool refused = open_it(&o) == GGUF_E_VOCAB;
        const char *all = find_codes(&o);
        ok(refused && strstr(o.err.message, "tokenizer.ggml.merges: ") &&
               strstr(o.err.message, malformed[i].element) &&
               strstr(all, "tokenizer.ggml.merges: 1 of ") &&
               o.err.offset != GGUF_NO_OFFSET,
           "malformed: %s", o.err.message);
        end_vocab(&o);
    }
}

/* Rules that make their own parts, or each other's, in any order: each join
 * leaves fewer pieces, and the text stays the same. */
static void check_round(void)
{
    static const char *const lists[] = {
        "a b,b a,ab a,ba b,ab ab",
        "ab ab,ab a,ba b,b a,a b",
        "a a,aa aa,a a,aa aa",
        "ba b,a ba,ab a,a b",
        "aa aa,a a",
        "x y,a b",
    };
    static const char *const texts[] = { "abababababab", "aaaaaaaaaaaaaaa",
                                         "babbaabbab", "a", "x y" };
    for (size_t i = 0; i < GG_LEN(lists); i++) {
        struct own o;
        unsigned bad = 0;
        begin_vocab(&o, "gpt2", lists[i]);
        const bool good = open_it(&o) == GGUF_OK;
        for (size_t k = 0; good && k < GG_LEN(texts); k++) {
            struct gguf_tokens t = GGUF_TOKENS_INIT;
            char back[64];
            const size_t n = strlen(texts[k]);
            if (gguf_vocab_tokenize(o.v, texts[k], n, 0, &t, NULL) != GGUF_OK)
                bad++;
            for (size_t j = 0; j < t.n; j++)
                bad += t.id[j] < 0 || (size_t)t.id[j] >= GG_LEN(tokens);
            const size_t m =
                gguf_vocab_detokenize(o.v, t.id, t.n, 0, back, sizeof back);
            /* bytes without a token are dropped */
            bad += k < 4 && (m != n || memcmp(back, texts[k], n));
            gguf_tokens_fini(&t);
        }
        ok(good && !bad, "merges that go round: %s", lists[i]);
        end_vocab(&o);
    }
}

static void check_doubtful(void)
{
    static const struct {
        const char *merges, *warns, *finds;
    } cases[] = {
        { "a c,a b", "merges: 1 join or make", "join or make texts that are" },
        { "ab b", "merges: 1 join or make", "join or make texts that are" },
        { "a b,a b", "", "are there before" },
        { "a b c", "merges: 1 join or make", "have more than one blank" },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct own o;
        begin_vocab(&o, "gpt2", cases[i].merges);
        const bool good = open_it(&o) == GGUF_OK;
        ok(good && strstr(said, cases[i].warns) &&
               strstr(find_codes(&o), cases[i].finds),
           "merges '%s': %s", cases[i].merges, cases[i].finds);
        end_vocab(&o);
    }
}

/* ---- arrays ---- */

static void check_arrays(void)
{
    static const uint32_t numbers[12];
    static const float reals[12];
    static const struct {
        const char *key;
        enum gguf_val_type type;
        size_t n;
        enum gguf_status st;
    } cases[] = {
        { "merges", GGUF_VAL_U32, 2, GGUF_E_TYPE },
        { "tokens", GGUF_VAL_U32, 10, GGUF_E_TYPE },
        { "scores", GGUF_VAL_F32, 9, GGUF_E_VOCAB },
        { "scores", GGUF_VAL_F32, 12, GGUF_E_VOCAB },
        { "scores", GGUF_VAL_BOOL, 10, GGUF_E_TYPE },
        { "token_type", GGUF_VAL_I32, 9, GGUF_E_VOCAB },
        { "token_type", GGUF_VAL_I32, 11, GGUF_E_VOCAB },
        { "token_type", GGUF_VAL_F32, 10, GGUF_E_TYPE },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct own o;
        char key[64];
        begin_vocab(&o, "gpt2", "a b");
        snprintf(key, sizeof key, "tokenizer.ggml.%s", cases[i].key);
        if (gguf_meta_set_array(
                o.meta, key, cases[i].type,
                cases[i].type == GGUF_VAL_F32 ? (const void *)reals : numbers,
                cases[i].n, NULL))
            abort();
        const enum gguf_status st = open_it(&o);
        ok(st == cases[i].st && strstr(o.err.message, key) &&
               strstr(find_codes(&o), key),
           "%s: %s", key, o.err.message);
        end_vocab(&o);
    }
}

/* Write a number of a type: the integer i, or else x. */
static size_t put_number(void *to, enum gguf_val_type type, int64_t i,
                         double x)
{
    const size_t size = gguf_val_type_size(type);
    const uint8_t u8 = (uint8_t)i;
    const uint16_t u16 = (uint16_t)i;
    const uint32_t u32 = (uint32_t)i;
    memcpy(to,
           type == GGUF_VAL_F64 ? (const void *)&x
           : size == 1          ? (const void *)&u8
           : size == 2          ? (const void *)&u16
           : size == 4          ? (const void *)&u32
                                : (const void *)&i,
           size);
    return size;
}

/* Scores and token types in every numeric type: read if each value fits, else
 * refused with key and index; narrower types are refused. The last token has
 * the value; the others have 1. */
static void check_numbers(void)
{
    static const struct {
        const char *key;
        enum gguf_val_type type;
        int64_t i;
        double x; /* the number that is read */
        enum { BIG, FITS, NARROW } is;
    } cases[] = {
        { "scores", GGUF_VAL_U8, 255, 255, NARROW },
        { "scores", GGUF_VAL_I8, -128, -128, NARROW },
        { "scores", GGUF_VAL_U16, 65535, 65535, NARROW },
        { "scores", GGUF_VAL_I16, -32768, -32768, NARROW },
        { "scores", GGUF_VAL_U32, 1 << 24, 1 << 24, FITS },
        { "scores", GGUF_VAL_U32, (1 << 24) + 1, 0, BIG },
        { "scores", GGUF_VAL_U32, UINT32_MAX, 0, BIG },
        { "scores", GGUF_VAL_I32, -((1 << 24) + 2), -16777218, FITS },
        { "scores", GGUF_VAL_I32, -((1 << 24) + 3), 0, BIG },
        { "scores", GGUF_VAL_I64, INT64_MIN, -9223372036854775808.0, FITS },
        { "scores", GGUF_VAL_I64, INT64_MAX, 0, BIG },
        { "scores", GGUF_VAL_U64, INT64_MIN, 9223372036854775808.0, FITS },
        { "scores", GGUF_VAL_U64, -1, 0, BIG },
        { "scores", GGUF_VAL_F64, 0, -1.5, FITS },
        { "scores", GGUF_VAL_F64, 0, 3e38, FITS },
        { "scores", GGUF_VAL_F64, 0, 1e39, BIG },
        { "token_type", GGUF_VAL_U8, 4, 4, NARROW },
        { "token_type", GGUF_VAL_I8, 3, 3, NARROW },
        { "token_type", GGUF_VAL_U16, 5, 5, NARROW },
        { "token_type", GGUF_VAL_I16, 2, 2, NARROW },
        { "token_type", GGUF_VAL_U32, 4, 4, FITS },
        { "token_type", GGUF_VAL_U32, UINT32_MAX, 0, BIG },
        { "token_type", GGUF_VAL_I64, 4, 4, FITS },
        { "token_type", GGUF_VAL_I64, INT64_C(1) << 32 | 4, 0, BIG },
        { "token_type", GGUF_VAL_U64, 3, 3, FITS },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        enum { LAST = GG_LEN(tokens) - 1 };
        struct own o;
        char key[64], named[80];
        uint8_t bytes[8 * GG_LEN(tokens)];
        size_t n = 0;
        for (size_t k = 0; k <= LAST; k++)
            n += put_number(bytes + n, cases[i].type,
                            k == LAST ? cases[i].i : 1,
                            k == LAST ? cases[i].x : 1);
        snprintf(key, sizeof key, "tokenizer.ggml.%s", cases[i].key);
        snprintf(named, sizeof named, "%s'[%d] is ", key, LAST);
        begin_vocab(&o, "gpt2", "a b");
        if (gguf_meta_set_array(o.meta, key, cases[i].type, bytes,
                                GG_LEN(tokens), NULL))
            abort();
        const enum gguf_status st = open_it(&o);
        const double got = st != GGUF_OK ? 0
                           : !strcmp(cases[i].key, "scores")
                               ? (double)gguf_vocab_token_score(o.v, LAST)
                               : (double)gguf_vocab_token_kind(o.v, LAST);
        if (cases[i].is == FITS)
            ok(st == GGUF_OK && got == (double)(float)cases[i].x &&
                   strstr(find_codes(&o), key),
               "%s of %s: %g", key, gguf_val_type_name(cases[i].type), got);
        else if (cases[i].is == NARROW)
            ok(st == GGUF_E_TYPE && strstr(find_codes(&o), key), "%s",
               o.err.message);
        else
            ok(st == GGUF_E_OVERFLOW && strstr(o.err.message, named) &&
                   strstr(find_codes(&o), named),
               "%s", o.err.message);
        end_vocab(&o);
    }
}

/* ---- ids ---- */

static void check_ids(void)
{
    static const char *const names[] = { "bos",     "eos",  "unknown",
                                         "padding", "mask", "eot" };
    static const int64_t ids[] = { 10, -1, UINT32_MAX, INT64_MAX, INT64_MIN };
    static const bool none[] = { false, true, true, false, false };
    for (size_t i = 0; i < GG_LEN(names); i++)
        for (size_t k = 0; k < GG_LEN(ids); k++) {
            struct own o;
            char key[64];
            begin_vocab(&o, "gpt2", "a b");
            snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", names[i]);
            if (gguf_meta_set_i64(o.meta, key, ids[k], NULL))
                abort();
            const enum gguf_status st = open_it(&o);
            const bool good = st == GGUF_OK;
            unsigned bad = 0;
            for (unsigned s = 0; good && s < GGUF_N_SPECIAL; s++) {
                const gguf_token id =
                    gguf_vocab_special_id(o.v, (enum gguf_special_token)s);
                bad += id != GGUF_TOKEN_NONE &&
                       (id < 0 || (size_t)id >= GG_LEN(tokens));
            }
            if (i < 3 && !none[k]) { /* texts get these */
                char why[128];
                snprintf(why, sizeof why, "%s is %lld, there are %zu tokens",
                         key, (long long)ids[k], GG_LEN(tokens));
                ok(st == GGUF_E_VOCAB && strstr(o.err.message, why) &&
                       o.err.offset != GGUF_NO_OFFSET &&
                       strstr(find_codes(&o), key),
                   "%s", o.err.message);
            } else {
                ok(good && !bad && strstr(said, key) &&
                       strstr(find_codes(&o), key),
                   "%s of %lld is not used, and said", key, (long long)ids[k]);
            }
            end_vocab(&o);
        }
}

/* An algorithm with one way to cut texts needs no pre-tokenizer's name. */
static void check_one_way(void)
{
    static const char *const models[] = { "gemma4", "gpt2" };
    for (size_t i = 0; i < GG_LEN(models); i++) {
        struct own o;
        begin_vocab(&o, models[i], "a b");
        (void)gguf_meta_remove(o.meta, "tokenizer.ggml.pre");
        const bool good = open_it(&o) == GGUF_OK;
        ok(good && !strstr(said, "tokenizer.ggml.pre") == !i &&
               !strstr(find_codes(&o), "tokenizer.ggml.pre") == !i,
           "%s without a pre-tokenizer: %s", models[i],
           i ? "warned of" : "nothing is missing");
        end_vocab(&o);
    }
}

int main(void)
{
    check_malformed();
    check_round();
    check_doubtful();
    check_arrays();
    check_numbers();
    check_one_way();
    check_ids();
    return done_testing();
}
