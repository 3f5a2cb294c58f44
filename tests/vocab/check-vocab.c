/* SPDX-License-Identifier: MIT */
/* check-vocab.c - text to tokens and back, with small vocabularies */
#include "config.h"
#include "tests/ignore_status.h"
#include "tests/vocab/own.h"

static const struct own_token spm_tokens[] = {
    { "<unk>", 0, 2 },  { "<s>", 0, 3 },     { "</s>", 0, 3 },
    { "_", -9, 1 },     { "a", -9, 1 },      { "b", -9, 1 },
    { "c", -9, 1 },     { "ab", -2, 1 },     { "bc", -1, 1 },
    { "_a", -4, 1 },    { "_ab", -3, 1 },    { "<ctl>", 0, 3 },
    { "<user>", 0, 4 }, { "<user>a", 0, 4 }, { "<0x0A>", 0, 6 },
    { "<0xC3>", 0, 6 }, { "__", -5, 1 },     { "dead", 0, 5 },
};
enum { N_SPM = GG_LEN(spm_tokens) };

static void check_own(void)
{
    struct own o = { 0 };
    own_tokens(&o, spm_tokens, N_SPM, "llama");
    if (own_open(&o, NULL) != GGUF_OK) {
        ok(0, "%s", o.err.message);
        own_close(&o);
        return;
    }
    /* "bc" joins before "ab", although it stands after it */
    ok(gives_ids(o.v, "abc", 0, "9,8"), "the better pair joins first");
    ok(gives_ids(o.v, "ab ab", 0, "10,10"), "words, with a blank in front");
    ok(gives_ids(o.v, "ab  b", 0, "10,16,5"), "blanks");
    ok(gives_ids(o.v, "\n\xc3\xa9", 0, "3,14,15,0"),
       "bytes, and the unknown token for missing ones");
    ok(gives_ids(o.v, "a<ctl>b", 0, "9,0,6,0,0,0,5"), "control text is text");
    ok(gives_ids(o.v, "a<ctl>b", GGUF_TOKENIZE_PARSE_SPECIAL, "9,11,3,5"),
       "or a token, and a blank after it");
    ok(gives_ids(o.v, "b<user>ab", 0, "3,5,13,3,5"),
       "the longest of the tokens that are split off");
    ok(gives_ids(o.v, "", GGUF_TOKENIZE_ADD_SPECIAL, "1") &&
           gives_ids(o.v, "", 0, ""),
       "no text");
    own_close(&o);

    ignore_status(
        gguf_meta_set_bool(o.meta, "tokenizer.ggml.add_eos_token", 1, NULL));
    ignore_status(gguf_meta_set_bool(o.meta, "tokenizer.ggml.add_space_prefix",
                                     0, NULL));
    ok(own_open(&o, NULL) == GGUF_OK &&
           gives_ids(o.v, "ab", GGUF_TOKENIZE_ADD_SPECIAL, "1,7,2"),
       "EOS, and no blank in front");
    own_close(&o);
    ignore_status(
        gguf_meta_set_u64(o.meta, "tokenizer.ggml.bos_token_id", 18, NULL));
    ok(own_open(&o, NULL) == GGUF_E_VOCAB &&
           strstr(o.err.message, "bos_token_id is 18, there are 18 tokens"),
       "a BOS out of range: %s", o.err.message);
    own_close(&o);
    ignore_status(gguf_meta_set_u64(o.meta, "tokenizer.ggml.bos_token_id",
                                    UINT64_MAX, NULL));
    ok(own_open(&o, NULL) == GGUF_OK &&
           gguf_vocab_special_id(o.v, GGUF_SPECIAL_BOS) == GGUF_TOKEN_NONE,
       "bos_token_id 2^64 - 1: no BOS");
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    ok(gguf_vocab_tokenize(o.v, "a", 1, GGUF_TOKENIZE_ADD_SPECIAL, &t,
                           &o.err) == GGUF_E_VOCAB &&
           t.n == 0,
       "is missed: %s", o.err.message);
    own_close(&o);
    gguf_meta_destroy(o.meta);
}

/* Tokens back to text, into buffers of every size. */
static void check_pieces(void)
{
    static const gguf_token ids[] = { 1, 10, 11, 9, 14, 2 };
    static const struct {
        unsigned flags;
        const char *text;
    } ways[] = { { 0, "ab a\n" }, /* BOS has no text */
                 { GGUF_DETOKENIZE_SPECIAL, "<s> ab<ctl> a\n</s>" },
                 { GGUF_DETOKENIZE_STRIP, "ab a\n" } };
    struct own o = { 0 };
    int bad = 0;
    own_tokens(&o, spm_tokens, N_SPM, "llama");
    if (own_open(&o, NULL) != GGUF_OK)
        abort();
    for (size_t w = 0; w < GG_LEN(ways); w++) {
        size_t n = strlen(ways[w].text);
        for (size_t size = 0; size <= n + 1; size++) {
            char out[64];
            memset(out, '#', sizeof out);
            size_t got = gguf_vocab_detokenize(o.v, ids, GG_LEN(ids),
                                               ways[w].flags, out, size);
            size_t k = GG_MIN(size, n);
            bad +=
                got != n || memcmp(out, ways[w].text, k) != 0 || out[k] != '#';
        }
    }
    ok(!bad, "text of tokens, in buffers of every size");
    ok(gguf_vocab_piece(o.v, 17, 0, NULL, 0) == 0 &&
           gguf_vocab_piece(o.v, 18, 0, NULL, 0) == 0 &&
           gguf_vocab_piece(o.v, -1, 0, NULL, 0) == 0 &&
           gguf_vocab_token_text(o.v, 99).size == 0,
       "tokens that are unused, and numbers that are not tokens");
    own_close(&o);
    gguf_meta_destroy(o.meta);
}

/* ---- malformed vocabularies ---- */

static int n_warned;

static void on_warn(void *user, const char *message)
{
    (void)user;
    n_warned += message[0] != 0;
}

static const struct own_token dup_tokens[] = { { "a", 0, 1 }, { "a", 0, 1 } };
static const struct own_token byte_tokens[] = { { "a", 0, 1 },
                                                { "<0x-1>", 0, 6 } };
static const struct own_token kind_tokens[] = { { "a", 0, 1 },
                                                { "b", 0, 77 } };
static const struct own_token empty_tokens[] = { { "a", 0, 1 }, { "", 0, 1 } };

static void check_refused(void)
{
    static const struct {
        const struct own_token *t;
        const char *model, *says; /* NULL: accepted with a warning */
        enum gguf_status status;
    } cases[] = {
        { dup_tokens, "llama", "0 and 1 are both 'a'", GGUF_E_VOCAB },
        { byte_tokens, "llama", "token 1 is a byte token", GGUF_E_VOCAB },
        { kind_tokens, "llama", NULL, GGUF_OK },
        { empty_tokens, "llama", NULL, GGUF_OK },
        { dup_tokens, "tert", "'tert' is not supported", GGUF_E_UNSUPPORTED },
        { kind_tokens, "gpt2", "tokenizer.ggml.merges", GGUF_E_NOTFOUND },
    };
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    p.warn.fn = on_warn;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct own o = { 0 };
        own_tokens(&o, cases[i].t, 2, cases[i].model);
        n_warned = 0;
        enum gguf_status st = own_open(&o, &p);
        ok(st == cases[i].status &&
               (cases[i].says ? strstr(o.err.message, cases[i].says) != NULL
                              : n_warned > 0),
           "case %zu: %s", i, st == GGUF_OK ? "a warning" : o.err.message);
        own_close(&o);
        gguf_meta_destroy(o.meta);
    }
}

/* ---- bytes as tokens, and no memory ---- */

static void check_bytes(void)
{
    static const struct own_token tokens[] = { { "a", 0, 1 },
                                               { "b", 0, 1 },
                                               { "c", 0, 1 },
                                               { "\xc4\xa0", 0, 1 },
                                               { "ab", 0, 1 },
                                               { "\xc4\xa0"
                                                 "ab",
                                                 0, 1 },
                                               { "bc", 0, 1 },
                                               { "<ctl>", 0, 3 } };
    static const struct gguf_str merges[] = {
        { "b c", 3 }, { "a b", 3 }, { "\xc4\xa0 ab", 5 }, { "a x", 3 }
    };
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    struct own o = { 0 };
    char out[16];
    p.warn.fn = on_warn;
    own_tokens(&o, tokens, GG_LEN(tokens), "gpt2");
    ignore_status(gguf_meta_set_str_array(o.meta, "tokenizer.ggml.merges",
                                          merges, GG_LEN(merges), NULL));
    ignore_status(
        gguf_meta_set_strz(o.meta, "tokenizer.ggml.pre", "gpt-2", NULL));
    n_warned = 0;
    int good = own_open(&o, &p) == GGUF_OK;
    ok(good && n_warned == 2, "bytes and merges without tokens: warnings");
    ok(good && gives_ids(o.v, "ab ab abc", 0, "4,5,3,0,6"), "merges by rank");
    static const gguf_token ids[] = { 4, 5 };
    ok(good && gguf_vocab_detokenize(o.v, ids, 2, 0, out, sizeof out) == 5 &&
           memcmp(out, "ab ab", 5) == 0,
       "characters back to bytes");
    if (good)
        check_nomem(&o, "merges by rank");
    own_close(&o);
    ignore_status(
        gguf_meta_set_strz(o.meta, "tokenizer.ggml.pre", "unheard-of", NULL));
    ok(own_open(&o, NULL) == GGUF_E_UNSUPPORTED, "%s", o.err.message);
    own_close(&o);
    gguf_meta_destroy(o.meta);

    own_tokens(&o, spm_tokens, N_SPM, "llama");
    if (own_open(&o, NULL) == GGUF_OK)
        check_nomem(&o, "merges by score");
    own_close(&o);
    gguf_meta_destroy(o.meta);
}

int main(void)
{
    check_own();
    check_pieces();
    check_refused();
    check_bytes();
    return done_testing();
}
