/* SPDX-License-Identifier: MIT */
/* fuzz_vocab.c - the vocabulary of any file, and text tokenized and back
 *
 * The last 32 bytes of the input are a text, too.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/vocab.h"
#include "gguf/writer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { TAIL = 32 };

static void check_warning(void *user, const char *message)
{
    (void)user;
    for (const char *p = message; *p; p++)
        MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void read_tokens(const struct gguf_vocab *v)
{
    char piece[64];
    size_t n = gguf_vocab_n_tokens(v);
    for (size_t i = 0; i < n && i < 300; i++) {
        gguf_token id = (gguf_token)i;
        struct gguf_str text = gguf_vocab_token_text(v, id);
        MUST(!text.size || gguf_vocab_find_token(v, text) != GGUF_TOKEN_NONE);
        (void)gguf_vocab_token_kind(v, id);
        (void)gguf_vocab_token_score(v, id);
        (void)gguf_vocab_is_eog(v, id);
        (void)gguf_vocab_piece(v, id, GGUF_DETOKENIZE_SPECIAL, piece,
                               sizeof piece);
    }
    for (int i = 0; i < GGUF_N_SPECIAL; i++) {
        gguf_token id = gguf_vocab_special_id(v, (enum gguf_special_token)i);
        MUST(id == GGUF_TOKEN_NONE || (id >= 0 && (size_t)id < n));
    }
    MUST(gguf_vocab_token_text(v, (gguf_token)n).size == 0);
    MUST(gguf_vocab_token_text(v, -1).size == 0);
}

static void convert_text(const struct gguf_vocab *v, const char *text,
                         size_t size, unsigned flags)
{
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_error err;
    if (gguf_vocab_tokenize(v, text, size, flags, &t, &err) == GGUF_OK) {
        for (size_t i = 0; i < t.n; i++)
            MUST(t.id[i] >= 0 && (size_t)t.id[i] < gguf_vocab_n_tokens(v));
        size_t n = gguf_vocab_detokenize(v, t.id, t.n, 0, NULL, 0);
        char *back = malloc(n + 1);
        MUST(back && gguf_vocab_detokenize(v, t.id, t.n, 0, back, n) == n);
        free(back);
    } else {
        MUST(t.n == 0 && err.message[0]);
    }
    gguf_tokens_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "A b  c\n\n<dna>ab</dna> x1234'll \xc3\xa9\xe4\xb8\xad\xff"
        "<s>ab ab\t";
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    struct gguf_file *f;
    struct gguf_vocab *v;
    struct gguf_error err;
    size_t tail = GG_MIN(size, TAIL);
    p.warn.fn = check_warning;
    if (gguf_file_open_memory(&f, data, size, NULL, NULL) != GGUF_OK)
        return 0;
    if (gguf_vocab_create(&v, f, &p, &err) == GGUF_OK) {
        read_tokens(v);
        convert_text(v, text, sizeof text - 1,
                     GGUF_TOKENIZE_ADD_SPECIAL | GGUF_TOKENIZE_PARSE_SPECIAL);
        convert_text(v, (const char *)data + size - tail, tail, 0);
        gguf_vocab_destroy(v);
    } else {
        MUST(!v && err.message[0]);
    }
    gguf_file_close(f);
    return 0;
}

/* ---- seeds ---- */

static const struct {
    const char *text;
    float score;
    int32_t kind;
} tokens[] = {
    { "<unk>", 0, 2 },
    { "<s>", 0, 3 },
    { "</s>", 0, 3 },
    { "<0x41>", 0, 6 },
    { "<0x0A>", 0, 6 },
    { "a", -1, 1 },
    { "b", -2, 1 },
    { "c", -3, 1 },
    { "ab", -4, 1 },
    { "bc", -5, 1 },
    { "abc", -6, 4 },
    { "\xe2\x96\x81", -7, 1 },
    { "\xe2\x96\x81"
      "ab",
      -8, 1 },
    { "\xc4\xa0", 0, 1 },
    { "\xc4\xa0"
      "a",
      0, 1 },
    { "\xc4\x8a", 0, 1 },
};
enum { N_TOKENS = sizeof tokens / sizeof tokens[0] };

static void put_meta(struct fix *f, const struct gguf_meta *m)
{
    struct gguf_writer *w;
    const void *head;
    size_t size;
    MUST(gguf_writer_create(&w, m, NULL, NULL) == GGUF_OK);
    MUST(gguf_writer_header(w, &head, &size, NULL) == GGUF_OK);
    fix_bytes(f, head, size);
    gguf_writer_destroy(w);
}

/* A trie of 256 units whose root leads to one key, "A", with the text "b". */
static void set_charsmap(struct gguf_meta *m)
{
    uint8_t t[4 + 4 * 256 + 2] = { 0, 4 };
    const uint32_t key = 'A' | 1u << 8 | (uint32_t)('A' ^ 0xf0) << 10;
    for (int b = 0; b < 4; b++)
        t[4 + 4 * 'A' + b] = (uint8_t)(key >> 8 * b);
    t[4 + 4 * 0xf0 + 3] = 0x80;
    t[4 + 4 * 256] = 'b';
    MUST(!gguf_meta_set_array(m, "tokenizer.ggml.precompiled_charsmap",
                              GGUF_VAL_U8, t, sizeof t, NULL));
    MUST(!gguf_meta_set_bool(m, "tokenizer.ggml.remove_extra_whitespaces", 1,
                             NULL));
}

static void seed_vocab(const char *model, const char *pre)
{
    static const struct gguf_str merges[] = {
        { "a b", 3 },
        { "b c", 3 },
        { "\xc4\xa0 a", 4 },
        { "ab c", 4 },
    };
    struct gguf_str text[N_TOKENS];
    float score[N_TOKENS];
    int32_t kind[N_TOKENS];
    struct gguf_meta *m;
    for (int i = 0; i < N_TOKENS; i++) {
        text[i] = (struct gguf_str){ tokens[i].text, strlen(tokens[i].text) };
        score[i] = tokens[i].score;
        kind[i] = tokens[i].kind;
    }
    MUST(!gguf_meta_create(&m, NULL, NULL));
    MUST(!gguf_meta_set_strz(m, "tokenizer.ggml.model", model, NULL));
    if (pre) {
        MUST(!gguf_meta_set_strz(m, "tokenizer.ggml.pre", pre, NULL));
        MUST(!gguf_meta_set_str_array(m, "tokenizer.ggml.merges", merges,
                                      GG_LEN(merges), NULL));
    }
    MUST(!gguf_meta_set_str_array(m, "tokenizer.ggml.tokens", text, N_TOKENS,
                                  NULL));
    MUST(!gguf_meta_set_array(m, "tokenizer.ggml.scores", GGUF_VAL_F32, score,
                              N_TOKENS, NULL));
    MUST(!gguf_meta_set_array(m, "tokenizer.ggml.token_type", GGUF_VAL_I32,
                              kind, N_TOKENS, NULL));
    MUST(!gguf_meta_set_u32(m, "tokenizer.ggml.bos_token_id", 1, NULL));
    MUST(!gguf_meta_set_bool(m, "tokenizer.ggml.add_bos_token", 1, NULL));
    if (strcmp(model, "t5") == 0)
        set_charsmap(m);
    if (strcmp(model, "bert") == 0)
        MUST(!gguf_meta_set_bool(m, "tokenizer.ggml.normalizer.strip_accents",
                                 1, NULL));
    put_meta(new_seed(), m);
    gguf_meta_destroy(m);
}

void fuzz_make_seeds(void)
{
    seed_vocab("llama", NULL);
    seed_vocab("gpt2", "gpt-2");
    seed_vocab("gpt2", "llama-bpe");
    seed_vocab("gpt2", "qwen2");
    seed_vocab("gpt2", "gpt-4o");
    seed_vocab("gpt2", "afmoe");
    seed_vocab("gpt2", "superbpe");
    seed_vocab("gpt2", "kimi-k2");
    seed_vocab("gemma4", "gemma4");
    seed_vocab("hybriddna", "gpt-2");
    seed_vocab("whitespace", "whitespace");
    seed_vocab("bert", NULL);
    seed_vocab("t5", NULL);
    seed_vocab("rwkv", NULL);
    seed_vocab("plamo2", NULL);
    seed_vocab("test", NULL);
    seed_vocab("no_vocab", NULL);
    seed_vocab("other", "other");
}
