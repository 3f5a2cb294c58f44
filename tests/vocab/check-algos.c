/* SPDX-License-Identifier: MIT */
/* check-algos.c - each tokenizer algorithm on a vocabulary of a few tokens */
#include "config.h"
#include "tests/vocab/own.h"

#include <math.h>

enum {
    SPECIAL = GGUF_TOKENIZE_ADD_SPECIAL,
    PARSE = GGUF_TOKENIZE_PARSE_SPECIAL
};

static int n_warned;
static char warning[400];

static void on_warn(void *user, const char *message)
{
    (void)user;
    n_warned++;
    snprintf(warning, sizeof warning, "%s", message);
}

/* Open a vocabulary of n tokens with the keys that set adds. Ends the test
 * after a failure. */
static void begin_vocab(struct own *o, const struct own_token *t, size_t n,
                        const char *model, void (*set)(struct gguf_meta *))
{
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    p.warn.fn = on_warn;
    *o = (struct own){ 0 };
    own_tokens(o, t, n, model);
    if (set)
        set(o->meta);
    if (own_open(o, &p) != GGUF_OK) {
        printf("# %s: %s\n", model, o->err.message);
        abort();
    }
}

static void end_vocab(struct own *o)
{
    own_close(o);
    gguf_meta_destroy(o->meta);
}

static bool detokenizes_to(const struct gguf_vocab *v, const char *ids,
                           unsigned flags, const char *want)
{
    gguf_token id[32];
    size_t n = 0;
    char out[128];
    for (char *e; *ids; ids = e + (*e == ','))
        id[n++] = (gguf_token)strtol(ids, &e, 10);
    size_t k = gguf_vocab_detokenize(v, id, n, flags, out, sizeof out);
    bool good = k == strlen(want) && !memcmp(out, want, k);
    if (!good)
        printf("# '%.*s', not '%s'\n", (int)k, out, want);
    return good;
}

static void set_u32(struct gguf_meta *m, const char *key, uint32_t value)
{
    if (gguf_meta_set_u32(m, key, value, NULL) != GGUF_OK)
        abort();
}

static void set_bool(struct gguf_meta *m, const char *key, int value)
{
    if (gguf_meta_set_bool(m, key, value, NULL) != GGUF_OK)
        abort();
}

static void set_str(struct gguf_meta *m, const char *key, const char *value)
{
    if (gguf_meta_set_strz(m, key, value, NULL) != GGUF_OK)
        abort();
}

/* ---- WordPiece ---- */

static const struct own_token wpm[] = {
    { "[UNK]", 0, 2 },     { "[CLS]", 0, 3 }, { "[SEP]", 0, 3 },
    { "_un", 0, 1 },       { "aff", 0, 1 },   { "able", 0, 1 },
    { "_e", 0, 1 },        { "_!", 0, 1 },    { "_\xe4\xb8\xad", 0, 1 },
    { "_a", 0, 1 },        { "b", 0, 1 },     { "_'", 0, 1 },
    { "_s", 0, 1 },        { "_?", 0, 1 },    { "_\xc3\xa9", 0, 1 },
    { "[MASK]", 0, 3 },    { "_UN", 0, 1 },   { "_~", 0, 1 },
    { "_\xce\xb1", 0, 1 }, { "_re", 0, 1 },   { "_u", 0, 1 },
    { "s", 0, 1 },         { "re", 0, 1 },
};

static void wpm_keys(struct gguf_meta *m)
{
    set_u32(m, "tokenizer.ggml.unknown_token_id", 0);
    set_u32(m, "tokenizer.ggml.bos_token_id", 1);
    set_u32(m, "tokenizer.ggml.seperator_token_id", 2);
}

static void wpm_cased(struct gguf_meta *m)
{
    wpm_keys(m);
    set_bool(m, "tokenizer.ggml.normalizer.lowercase", 0);
}

static void wpm_accents(struct gguf_meta *m)
{
    wpm_keys(m);
    set_bool(m, "tokenizer.ggml.normalizer.strip_accents", 0);
}

static void wpm_modern(struct gguf_meta *m)
{
    wpm_keys(m);
    set_str(m, "general.name", "A Modern-BERT of ours");
}

static void check_wpm(void)
{
    struct own o;
    begin_vocab(&o, wpm, GG_LEN(wpm), "bert", wpm_keys);
    ok(gives_ids(o.v, "unaffable", 0, "3,4,5"),
       "WordPiece: the longest first");
    ok(gives_ids(o.v, "UNaffable", 0, "3,4,5"), "lower case");
    ok(gives_ids(o.v, "e\xcc\x81 \xc3\x89 \xce\x91\xcc\x81", 0, "6,6,18"),
       "accents go, composed or not");
    ok(gives_ids(o.v,
                 "a!b?\xe4\xb8\xad\xe4\xb8\xad"
                 "a~",
                 0, "9,7,0,13,8,8,9,17"),
       "punctuation and ideographs stand alone, and a word begins after them");
    ok(gives_ids(o.v, "unaffablex unxy e", 0, "0,0,6"),
       "a word that gets stuck is one unknown token");
    ok(gives_ids(o.v,
                 "a\x01"
                 "b\xe2\x80\x8b \xef\xbf\xbd\xff",
                 0, "9,10"),
       "control characters and invalid UTF-8 are dropped");
    ok(gives_ids(o.v,
                 "\t a\xc2\xa0\xe3\x80\x80"
                 "e\n",
                 0, "9,6"),
       "blanks");
    ok(gives_ids(o.v, "", 0, "") && gives_ids(o.v, " \n", 0, "") &&
           gives_ids(o.v, "", SPECIAL, "1,2"),
       "no text");
    ok(gives_ids(o.v, "a", SPECIAL, "1,9,2"), "BOS and SEP round it");
    ok(gives_ids(o.v, "a [MASK]e", SPECIAL | PARSE, "1,9,15,6,2"),
       "texts of control tokens");
    ok(detokenizes_to(o.v, "3,4,5,7", 0, " unaffable!"),
       "back: no blank before '!'");
    ok(detokenizes_to(o.v, "9,11,9,11,12,11", 0, " a'a's '") &&
           detokenizes_to(o.v, "9,11,21,9,11,22,9,11,10,11", 0,
                          " a's a're a 'b '"),
       "nor round an apostrophe, nor before 's and 're");
    ok(detokenizes_to(o.v, "1,9,2",
                      GGUF_DETOKENIZE_SPECIAL | GGUF_DETOKENIZE_STRIP, " a"),
       "nor BOS and SEP when they are to go");
    check_nomem(&o, "WordPiece");
    end_vocab(&o);
    begin_vocab(&o, wpm, GG_LEN(wpm), "bert", wpm_cased);
    ok(gives_ids(o.v, "UN un \xc3\xa9", 0, "16,3,14"),
       "case and accents kept");
    end_vocab(&o);
    begin_vocab(&o, wpm, GG_LEN(wpm), "bert", wpm_accents);
    ok(gives_ids(o.v, "UN \xc3\x89", 0, "3,14"), "or accents alone");
    end_vocab(&o);
    begin_vocab(&o, wpm, GG_LEN(wpm), "bert", wpm_modern);
    ok(gives_ids(o.v, "\xe4\xb8\xad \t[MASK] a", PARSE, "8,15,9"),
       "blanks before a token that takes them");
    end_vocab(&o);
    begin_vocab(&o, wpm + 3, 3, "bert", NULL);
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    ok(gguf_vocab_tokenize(o.v, "un x", 4, 0, &t, &o.err) == GGUF_E_VOCAB &&
           strstr(o.err.message, "no unknown token"),
       "without an unknown token: %s", o.err.message);
    ok(gguf_vocab_tokenize(o.v, "un", 2, SPECIAL, &t, &o.err) ==
               GGUF_E_VOCAB &&
           strstr(o.err.message, "wants a BOS token and lacks it"),
       "without a BOS: %s", o.err.message);
    gguf_tokens_fini(&t);
    end_vocab(&o);
}

/* ---- unigram ---- */

static const struct own_token ugm[] = {
    { "<pad>", 0, 3 }, { "</s>", 0, 3 }, { "<unk>", 0, 2 },  { "_", -3, 1 },
    { "a", -2, 1 },    { "b", -2, 1 },   { "ab", -3, 1 },    { "_a", -4, 1 },
    { "_ab", -8, 1 },  { "<u>", -9, 4 }, { "bb", -4.5f, 5 },
};

static void ugm_spaces(struct gguf_meta *m)
{
    set_bool(m, "tokenizer.ggml.add_space_prefix", 1);
    set_bool(m, "tokenizer.ggml.remove_extra_whitespaces", 1);
}

static void check_ugm(void)
{
    struct own o;
    begin_vocab(&o, ugm, GG_LEN(ugm), "t5", NULL);
    ok(gives_ids(o.v, "ab", 0, "6"), "unigram: -3 is more than -2 - 2");
    ok(gives_ids(o.v, " ab", 0, "3,6") && gives_ids(o.v, "  a", 0, "3,7"),
       "blanks as they are");
    ok(gives_ids(o.v, "bb", 0, "5,5"), "-4 is more than -4.5");
    ok(gives_ids(o.v, "axyb", 0, "4,2,5"), "unknown ones in a row are one");
    ok(gives_ids(o.v, "a", SPECIAL, "4,1"), "EOS after it");
    ok(gives_ids(o.v, "a<u>b", 0, "4,9,5"), "user-defined");
    ok(gives_ids(o.v, "", 0, "") && gives_ids(o.v, "", SPECIAL, "1"),
       "no text");
    ok(detokenizes_to(o.v, "7,3,6", 0, " a ab"), "back");
    check_nomem(&o, "unigram");
    end_vocab(&o);
    begin_vocab(&o, ugm, GG_LEN(ugm), "t5", ugm_spaces);
    ok(gives_ids(o.v, "  ab   a ", 0, "3,6,7"),
       "one blank before each word, none after the last");
    ok(gives_ids(o.v, "   ", 0, "") && gives_ids(o.v, "a<u>b", 0, "7,9,3,5"),
       "before each piece too");
    end_vocab(&o);
    begin_vocab(&o, ugm, 2, "t5", NULL);
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    ok(gguf_vocab_tokenize(o.v, "a", 1, 0, &t, &o.err) == GGUF_E_VOCAB &&
           !t.n && strstr(o.err.message, "no unknown token"),
       "without an unknown token: %s", o.err.message);
    gguf_tokens_fini(&t);
    end_vocab(&o);
}

/* Scores that are not numbers, or no scores. */
static void ugm_scores(struct gguf_meta *m)
{
    float s[GG_LEN(ugm)];
    for (size_t i = 0; i < GG_LEN(ugm); i++)
        s[i] = i == 4   ? (float)INFINITY
               : i == 5 ? -(float)INFINITY
                        : (float)NAN;
    if (gguf_meta_set_array(m, "tokenizer.ggml.scores", GGUF_VAL_F32, s,
                            GG_LEN(ugm), NULL) != GGUF_OK)
        abort();
}

static void no_scores(struct gguf_meta *m)
{
    (void)gguf_meta_remove(m, "tokenizer.ggml.scores");
}

static void check_scores(void)
{
    struct own o;
    n_warned = 0;
    begin_vocab(&o, ugm, GG_LEN(ugm), "t5", ugm_scores);
    ok(n_warned == 1 && gives_ids(o.v, "ab", 0, "4,5"),
       "scores that are not finite: %s", warning);
    end_vocab(&o);
    begin_vocab(&o, ugm, GG_LEN(ugm), "t5", no_scores);
    ok(gives_ids(o.v, "abb", 0, "4,10") || gives_ids(o.v, "abb", 0, "6,5") ||
           gives_ids(o.v, "abb", 0, "4,5,5"),
       "no scores: all ways are as good");
    end_vocab(&o);
}

/* ---- RWKV ---- */

static const struct own_token rwkv[] = {
    { "<s>", 0, 3 },   { "a", 0, 1 },          { "ab", 0, 1 },
    { "abcd", 0, 1 },  { "c", 0, 1 },          { "\\n", 0, 1 },
    { "\\x00", 0, 1 }, { "\\xe4\\xB8", 0, 1 }, { "\\\\", 0, 1 },
    { "\\'", 0, 1 },   { "\\xzz", 0, 1 },      { "\\t\\r", 0, 1 },
};

static void rwkv_unknown(struct gguf_meta *m)
{
    set_u32(m, "tokenizer.ggml.unknown_token_id", 0);
}

static void check_rwkv(void)
{
    struct own o;
    begin_vocab(&o, rwkv, GG_LEN(rwkv), "rwkv", NULL);
    ok(gives_ids(o.v, "abcababcd", 0, "2,4,2,3"),
       "RWKV: the longest each time");
    ok(gives_ids(o.v, "a\n\\\xe4\xb8'\t\r", 0, "1,5,8,7,9,11"), "escapes");
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    ok(gguf_vocab_tokenize(o.v, "a\0xzz", 5, 0, &t, NULL) == GGUF_OK &&
           same_ids(&t, "1,6,10"),
       "a zero byte; a backslash that begins no escape");
    gguf_tokens_fini(&t);
    ok(gguf_vocab_tokenize(o.v, "ad", 2, 0, &t, &o.err) == GGUF_E_VOCAB &&
           strstr(o.err.message, "no token for byte 0x64"),
       "%s", o.err.message);
    ok(detokenizes_to(o.v, "1,5,7,8,9", 0, "a\n\xe4\xb8\\'"), "back");
    gguf_tokens_fini(&t);
    end_vocab(&o);
    begin_vocab(&o, rwkv, GG_LEN(rwkv), "rwkv", rwkv_unknown);
    ok(gives_ids(o.v, "adda", SPECIAL, "1,0,0,1"),
       "an unknown token, and none round the text");
    check_nomem(&o, "RWKV");
    end_vocab(&o);
}

/* ---- raw byte-pair encoding: gemma 4 ---- */

static const struct own_token gemma[] = {
    { "<pad>", 0, 3 }, { "<bos>", 0, 3 },  { "_", 0, 1 },      { "a", 0, 1 },
    { "_a", 0, 1 },    { "b", 0, 1 },      { "ab", 0, 1 },     { "\n", 0, 1 },
    { "\n\n", 0, 1 },  { "<0xC3>", 0, 6 }, { "<0xA9>", 0, 6 }, { "_a_", 0, 1 },
};

static void gemma_keys(struct gguf_meta *m)
{
    static const struct gguf_str merges[] = { { "\xe2\x96\x81 a", 5 },
                                              { "a b", 3 },
                                              { "\xe2\x96\x81"
                                                "a \xe2\x96\x81",
                                                8 } };
    if (gguf_meta_set_str_array(m, "tokenizer.ggml.merges", merges,
                                GG_LEN(merges), NULL) != GGUF_OK)
        abort();
    set_u32(m, "tokenizer.ggml.bos_token_id", 1);
    set_bool(m, "tokenizer.ggml.add_bos_token", 0);
}

static void check_gemma(void)
{
    struct own o;
    n_warned = 0;
    begin_vocab(&o, gemma, GG_LEN(gemma), "gemma4", gemma_keys);
    ok(gives_ids(o.v, " ab ab", 0, "4,5,4,5"), "gemma4: merges by rank");
    ok(gives_ids(o.v, " a  b", 0, "11,2,5"), "also from word to word");
    ok(gives_ids(o.v, "a\n\n\nb\n\n", 0, "3,7,7,7,5,8"),
       "newlines that are a token, and those that are not");
    ok(gives_ids(o.v, "\xc3\xa9\xc3\xaa", 0, "9,10,9"),
       "bytes, as far as there are");
    ok(gives_ids(o.v, "a", SPECIAL, "1,3") && n_warned >= 1 &&
           gguf_vocab_wants_bos(o.v),
       "a BOS, whatever the file says");
    ok(detokenizes_to(o.v, "4,5,7,9,10", 0, " ab\n\xc3\xa9"), "back");
    check_nomem(&o, "gemma4");
    end_vocab(&o);
}

/* ---- hybriddna, whitespace ---- */

static const struct own_token dna[] = {
    { "<dna>", 0, 1 },
    { "</dna>", 0, 1 },
    { "<oov>", 0, 1 },
    { "a", 0, 1 },
    { "c", 0, 1 },
    { "ACGTAA\xee\x80\x80", 0, 1 },
    { "ACGTAC\xee\x80\x80", 0, 1 },
};

static void dna_keys(struct gguf_meta *m)
{
    static const struct gguf_str merges[] = { { "a c", 3 } };
    if (gguf_meta_set_str_array(m, "tokenizer.ggml.merges", merges, 1, NULL) !=
        GGUF_OK)
        abort();
    set_str(m, "tokenizer.ggml.pre", "gpt-2");
}

static void whitespace_keys(struct gguf_meta *m)
{
    dna_keys(m);
    set_str(m, "tokenizer.ggml.pre", "whitespace");
    set_bool(m, "tokenizer.ggml.normalizer.lowercase", 1);
}

static void check_variants(void)
{
    static const struct own_token words[] = {
        { "a", 0, 1 },  { "b", 0, 1 },        { "c", 0, 1 },
        { "ac", 0, 1 }, { "\xc3\xa9", 0, 1 },
    };
    struct own o;
    begin_vocab(&o, dna, GG_LEN(dna), "hybriddna", dna_keys);
    ok(gives_ids(o.v, "ca<dna>acgtacACGTnnAcGt</dna>a", 0, "4,3,0,6,2,5,1,3"),
       "hybriddna: six bases each, filled up with A");
    ok(gives_ids(o.v, "<dna>ACGTA", 0, "0,5") &&
           gives_ids(o.v, "<dna></dna>", 0, "0,1"),
       "without an end, without a base");
    ok(detokenizes_to(o.v, "3,0,6,5,1", 0, "a<dna>ACGTACACGTAA</dna>"),
       "back");
    end_vocab(&o);
    begin_vocab(&o, words, GG_LEN(words), "whitespace", whitespace_keys);
    ok(gives_ids(o.v,
                 " aC \t\xc3\x89\xe3\x80\x80"
                 "b",
                 0, "3,4,1"),
       "whitespace: words between blanks, in lower case");
    check_nomem(&o, "whitespace");
    end_vocab(&o);
}

/* ---- test ---- */

static void hash_keys(struct gguf_meta *m)
{
    set_u32(m, "tokenizer.ggml.bos_token_id", 1);
    set_bool(m, "tokenizer.ggml.add_bos_token", 1);
}

/* Ids of llama.cpp v0.5.0 for 300 tokens: the second is a control token, the
 * fourth is defined by the user. */
static void check_chunk_hash(void)
{
    static struct own_token t[300];
    static char text[300][8];
    struct own o;
    for (size_t i = 0; i < GG_LEN(t); i++) {
        snprintf(text[i], sizeof text[i], "t%zu", i);
        t[i] = (struct own_token){ text[i], 0, i == 1 ? 3 : i == 3 ? 4 : 1 };
    }
    begin_vocab(&o, t, GG_LEN(t), "test", hash_keys);
    ok(gives_ids(o.v, "hello world", SPECIAL | PARSE, "22,214,100") &&
           gives_ids(o.v, "a<", SPECIAL, "67") && gives_ids(o.v, "", 0, ""),
       "test: hashes of chunks, no BOS");
    ok(gives_ids(o.v, "at1b", PARSE, "97,1,98") &&
           gives_ids(o.v, "xt3y", 0, "120,3,121"),
       "special tokens are split off");
    ok(gives_ids(o.v, "\xff\xff\xff\xff\xff", 0, "75"),
       "bytes are not negative");
    ok(detokenizes_to(o.v, "0,7,14,255", 0, "07eff"), "ids in hexadecimal");
    ok(gguf_vocab_special_id(o.v, GGUF_SPECIAL_NEWLINE) == 10, "a line end");
    check_nomem(&o, "test");
    end_vocab(&o);
}

/* ---- roles ---- */

static const struct own_token roles[] = {
    { "<unk>", 0, 2 },       { "<s>", 0, 3 },        { "</s>", 0, 1 },
    { "<|end|>", 0, 1 },     { "<|return|>", 0, 3 }, { "<|call|>", 0, 3 },
    { "<EOT>", 0, 1 },       { "<PRE>", 0, 1 },      { "<PAD>", 0, 1 },
    { "<|channel|>", 0, 3 }, { "a", 0, 1 },
};

static void check_roles(void)
{
    struct own o;
    begin_vocab(&o, roles, GG_LEN(roles), "llama", NULL);
    int eog = 0;
    for (int i = 0; i < (int)GG_LEN(roles); i++)
        eog |= gguf_vocab_is_eog(o.v, i) << i;
    ok(eog == (1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8) &&
           !gguf_vocab_is_eog(o.v, -1) && !gguf_vocab_is_eog(o.v, 11),
       "what ends a text: 0x%x", (unsigned)eog);
    ok(gguf_vocab_special_id(o.v, GGUF_SPECIAL_EOT) == 3 &&
           gguf_vocab_special_id(o.v, GGUF_SPECIAL_FIM_PRE) == 7 &&
           gguf_vocab_special_id(o.v, GGUF_SPECIAL_FIM_PAD) == 8 &&
           gguf_vocab_special_id(o.v, GGUF_SPECIAL_EOM) == GGUF_TOKEN_NONE,
       "roles by their texts");
    ok(gguf_vocab_token_kind(o.v, 6) == GGUF_TOKEN_CONTROL &&
           gguf_vocab_token_kind(o.v, 7) == GGUF_TOKEN_CONTROL &&
           gguf_vocab_token_kind(o.v, 9) == GGUF_TOKEN_USER &&
           gguf_vocab_token_kind(o.v, 3) == GGUF_TOKEN_USER,
       "which say what kind they are");
    end_vocab(&o);
}

/* ---- the newline token ---- */

static void pad_is_5(struct gguf_meta *m)
{
    set_u32(m, "tokenizer.ggml.padding_token_id", 5);
}

/* The newline token, as lib/gguf/vocab.h defines it. */
static void check_newline(void)
{
    static const struct own_token spm[] = {
        { "<unk>", 0, 2 },  { "<s>", 0, 3 }, { "</s>", 0, 3 },
        { "<0x0A>", 0, 6 }, { "\n", 0, 4 },  { "a", 0, 1 },
    };
    const struct {
        const char *name, *model;
        const struct own_token *t;
        size_t n;
        void (*set)(struct gguf_meta *);
        gguf_token newline;
    } rows[] = {
        { "the byte token", "llama", spm, 6, NULL, 3 },
        { "the byte as it is", "llama", spm + 4, 2, NULL, 0 },
        { "no byte, no default padding", "llama", roles, 3, pad_is_5,
          GGUF_TOKEN_NONE },
        { "the default padding, whatever the key", "bert", wpm, GG_LEN(wpm),
          pad_is_5, 0 },
        { "unigram: a user's token is not looked for", "t5", ugm, GG_LEN(ugm),
          NULL, 2 },
        { "the first token of the text", "rwkv", rwkv, GG_LEN(rwkv), NULL, 5 },
        { "no such text", "rwkv", rwkv, 2, NULL, GGUF_TOKEN_NONE },
        { "a text that is a token", "gemma4", gemma, GG_LEN(gemma), gemma_keys,
          7 },
        { "no vocabulary", "no_vocab", roles, 1, NULL, GGUF_TOKEN_NONE },
    };
    for (size_t i = 0; i < GG_LEN(rows); i++) {
        struct own o;
        begin_vocab(&o, rows[i].t, rows[i].n, rows[i].model, rows[i].set);
        const gguf_token id = gguf_vocab_special_id(o.v, GGUF_SPECIAL_NEWLINE);
        ok(id == rows[i].newline, "newline of %s is %d: %s", rows[i].model,
           (int)id, rows[i].name);
        end_vocab(&o);
    }
}

/* ---- refused vocabularies ---- */

static void short_scores(struct gguf_meta *m)
{
    float s = 0;
    if (gguf_meta_set_array(m, "tokenizer.ggml.scores", GGUF_VAL_F32, &s, 1,
                            NULL) != GGUF_OK)
        abort();
}

static void text_switch(struct gguf_meta *m)
{
    set_str(m, "tokenizer.ggml.normalizer.lowercase", "yes");
}

static void text_merge(struct gguf_meta *m)
{
    set_str(m, "tokenizer.ggml.remove_extra_whitespaces", "yes");
}

static void check_refused(void)
{
    static const struct {
        const char *model;
        void (*set)(struct gguf_meta *);
        enum gguf_status status;
        const char *says;
    } cases[] = {
        { "t5", short_scores, GGUF_E_VOCAB,
          "tokenizer.ggml.scores has 1 elements, there are 11 tokens" },
        { "plamo2", short_scores, GGUF_E_VOCAB, "tokenizer.ggml.scores" },
        { "bert", text_switch, GGUF_E_TYPE,
          "tokenizer.ggml.normalizer.lowercase" },
        { "t5", text_merge, GGUF_E_TYPE,
          "tokenizer.ggml.remove_extra_whitespaces" },
        { "gemma4", NULL, GGUF_E_NOTFOUND, "tokenizer.ggml.merges" },
        { "whitespace", NULL, GGUF_E_NOTFOUND, "tokenizer.ggml.merges" },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct own o = { 0 };
        own_tokens(&o, ugm, GG_LEN(ugm), cases[i].model);
        if (cases[i].set)
            cases[i].set(o.meta);
        ok(own_open(&o, NULL) == cases[i].status &&
               strstr(o.err.message, cases[i].says),
           "%s: %s", cases[i].model, o.err.message);
        own_close(&o);
        gguf_meta_destroy(o.meta);
    }
}

int main(void)
{
    check_wpm();
    check_ugm();
    check_scores();
    check_rwkv();
    check_gemma();
    check_variants();
    check_chunk_hash();
    check_roles();
    check_newline();
    check_refused();
    return done_testing();
}
