/* SPDX-License-Identifier: MIT */
/* check-tiktoken.c - qwen.tiktoken of the first Qwen models and tiktoken.model
 * of Kimi become a vocabulary */
#include "config.h"
#include "tests/convert/reader.h"
#include "tests/convert/converted_vocab.h"

#include <unistd.h>

static char top[200];
static struct folder f;

/* Bytes in order have ranks 0 to 255. */
static const char *const words[] = { "th", "the", " the",
                                     "in", "ing", "\xc3\xa9" };
enum { N_WORDS = sizeof words / sizeof *words };

static void write_tokens(const char *name)
{
    FILE *o = folder_create(&f, name);
    for (int i = 0; i < 256 + N_WORDS; i++) {
        const uint8_t byte = (uint8_t)i;
        const char *s = i < 256 ? (const char *)&byte : words[i - 256];
        folder_base64(o, (const uint8_t *)s, i < 256 ? 1 : strlen(s));
        fprintf(o, " %d\n", i);
    }
    fclose(o);
}

static void check_folder(void)
{
    static const char *const merges[] = { "t h", "th e", "\xc4\xa0 the",
                                          "i n", "in g", "\xc3\x83 \xc2\xa9" };
    struct converted_vocab m;
    struct gguf_error e;
    struct gguf_kv_iter it;
    struct gguf_kv kv;
    struct gguf_str s;
    size_t n = 0;
    folder_begin(&f, scratch_path(top, "tiny"));
    folder_text(&f, "config.json",
                "{\"architectures\":[\"QWenLMHeadModel\"],\"hidden_size\":8,"
                "\"intermediate_size\":8,\"num_hidden_layers\":1,"
                "\"num_attention_heads\":1,\"vocab_size\":480,"
                "\"max_position_embeddings\":64,\"layer_norm_epsilon\":1e-6}");
    folder_tensors(&f, "transformer.wte.weight 480 8\n", 1, 0);
    folder_weights(&f, "F32", 1);
    write_tokens("qwen.tiktoken");
    ok(converted_vocab_open(&m, f.dir, scratch_path(top, "o.gguf"), &e) ==
           GGUF_OK,
       "a folder becomes a file %s", e.message);
    const struct gguf_kv *list =
        gguf_file_kv_find(m.file, "tokenizer.ggml.merges");
    bool good = list != NULL;
    if (good)
        gguf_kv_iter_init(&it, list);
    while (good && gguf_kv_iter_next(&it, &kv)) {
        good = n < N_WORDS && gguf_kv_get_str(&kv, &s, NULL) == GGUF_OK &&
               s.size == strlen(merges[n]) &&
               !memcmp(s.data, merges[n], s.size);
        n++;
    }
    ok(good && n == N_WORDS, "merges by ranks: %zu", n);
    ok(converted_vocab_gives(&m, "the the\n", "257,258,10"), "words");
    ok(converted_vocab_gives(&m, "thin\xc3\xa9", "256,259,261"),
       "letters of two bytes");
    ok(converted_vocab_gives(&m, "x\x7f\xc2\xad", "120,127,194,173"),
       "bytes that are not printed");
    ok(converted_vocab_key(&m, "tokenizer.ggml.bos_token_id") == 262 &&
           converted_vocab_key(&m, "tokenizer.ggml.eos_token_id") == 262 &&
           converted_vocab_key(&m, "tokenizer.ggml.unknown_token_id") == 262,
       "ids with a meaning");
    s = m.vocab ? gguf_vocab_token_text(m.vocab, 469)
                : (struct gguf_str){ "", 0 };
    ok(s.size == 13 && !memcmp(s.data, "<|extra_204|>", 13), "the last: %.*s",
       (int)s.size, s.data);
    s = m.vocab ? gguf_vocab_token_text(m.vocab, 470)
                : (struct gguf_str){ "", 0 };
    ok(s.size && !memcmp(s.data, "[PAD", 4), "a filler: %.*s", (int)s.size,
       s.data);
    converted_vocab_close(&m);
}

static bool has_token(const struct converted_vocab *m, int id,
                      const char *text)
{
    const struct gguf_str s = m->vocab ? gguf_vocab_token_text(m->vocab, id)
                                       : (struct gguf_str){ "", 0 };
    return s.size == strlen(text) && !memcmp(s.data, text, s.size);
}

/* 256 bytes, 6 words and 256 reserved tokens. tokenizer_config.json gives three
 * of these a text. */
static void check_kimi(void)
{
    struct converted_vocab m;
    struct gguf_error e;
    struct gguf_str s = { "", 0 };
    folder_begin(&f, scratch_path(top, "kimi"));
    folder_text(&f, "config.json",
                "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":8,"
                "\"intermediate_size\":8,\"num_hidden_layers\":1,"
                "\"num_attention_heads\":1,\"vocab_size\":520,"
                "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6}");
    folder_text(&f, "tokenizer_config.json",
                "{\"added_tokens_decoder\":{"
                "\"262\":{\"content\":\"[BOS]\",\"special\":true},"
                "\"263\":{\"content\":\"[EOS]\",\"special\":true},"
                "\"265\":{\"content\":\"[tool]\",\"special\":false}},"
                "\"bos_token\":\"[BOS]\",\"eos_token\":\"[EOS]\"}");
    folder_tensors(&f, "model.embed_tokens.weight 520 8\n", 1, 0);
    folder_weights(&f, "F32", 1);
    write_tokens("tiktoken.model");
    ok(converted_vocab_open(&m, f.dir, scratch_path(top, "k.gguf"), &e) ==
           GGUF_OK,
       "a folder of Kimi becomes a file %s", e.message);
    const struct gguf_kv *pre =
        m.file ? gguf_file_kv_find(m.file, "tokenizer.ggml.pre") : NULL;
    ok(pre && gguf_kv_get_str(pre, &s, NULL) == GGUF_OK && s.size == 7 &&
           !memcmp(s.data, "kimi-k2", 7),
       "its pre-tokenizer");
    ok(converted_vocab_gives(&m, "the the\n", "257,258,10"), "words");
    ok(has_token(&m, 262, "[BOS]") && has_token(&m, 265, "[tool]") &&
           has_token(&m, 264, "<|reserved_token_264|>") &&
           has_token(&m, 517, "<|reserved_token_517|>") &&
           has_token(&m, 518, "[PAD518]"),
       "reserved tokens and fillers");
    ok(m.vocab && gguf_vocab_token_kind(m.vocab, 265) == GGUF_TOKEN_CONTROL &&
           gguf_vocab_token_kind(m.vocab, 264) == GGUF_TOKEN_CONTROL,
       "reserved tokens are control tokens");
    ok(converted_vocab_key(&m, "tokenizer.ggml.bos_token_id") == 262 &&
           converted_vocab_key(&m, "tokenizer.ggml.eos_token_id") == 263,
       "ids with a meaning");
    converted_vocab_close(&m);
}

static void check_refused(void)
{
    static const struct reader_refusal rows[] = {
        { "", "no tokens", 0 },
        { "\n", "line 1: expected at most 256 bytes", 0 },
        { "IQ==", "line 1: expected at most 256 bytes", 0 },
        { " 0", "line 1: expected at most 256 bytes", 0 },
        { "IQ= 0", "line 1: expected at most 256 bytes", 0 },
        { "I*== 0", "line 1: expected at most 256 bytes", 0 },
        { "I=Q= 0", "line 1: expected at most 256 bytes", 0 },
        { "IQ== 1", "line 1: the rank", 0 },
        { "IQ== x", "line 1: the rank", 0 },
        { "IQ== 0 ", "line 1: the rank", 0 },
        { "IQ== -1", "line 1: the rank", 0 },
        { "IQ== 0\nIg== 2\n", "line 2: the rank", 7 },
        { "IQ== 0\nIQ== 1\n", "tokens 0 and 1 have the same bytes",
          GGUF_NO_OFFSET },
    };
    reader_refuses(gg_convert_vocab_read_tiktoken, rows,
                   sizeof rows / sizeof *rows, GGUF_E_VOCAB);
}

int main(void)
{
    snprintf(top, sizeof top, "check-tiktoken.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    check_refused();
    check_folder();
    check_kimi();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
