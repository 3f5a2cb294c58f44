/* SPDX-License-Identifier: MIT */
/* check-plamo.c - folders of PLaMo 2: tokenizer.jsonl becomes a vocabulary */
#include "config.h"
#include "tests/convert/reader.h"
#include "tests/convert/converted_vocab.h"

#include <unistd.h>

static char top[200];
static struct folder f;

static void check_lines(void)
{
    static const struct {
        const char *line;
        int type;
        float score;
    } rows[] = {
        { "[\"a\", -1.5, \"NORMAL\"]", GG_CONVERT_NORMAL, -1.5f },
        { "[\"a\", 2]", GG_CONVERT_NORMAL, 2 },
        { "[\"<unk>\", 0.0, \"UNKNOWN\"]\r\n", GG_CONVERT_UNKNOWN, 0 },
        { "[\"<0x41>\", -9.0, \"BYTE\", null, 3]\n", GG_CONVERT_BYTE, -9 },
        { "\n[\"x\", 0, \"CONTROL\"]\n\n", GG_CONVERT_CONTROL, 0 },
        { "[\"<|plamo:eos|>\", 0, \"NORMAL\"]", GG_CONVERT_CONTROL, 0 },
        { "[\"<|plamo:eos\", 0, \"NORMAL\"]", GG_CONVERT_NORMAL, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_convert_vocab v;
        struct reader_folder c;
        struct gguf_error e;
        const enum gguf_status st =
            reader_run(gg_convert_vocab_read_plamo, rows[i].line,
                       strlen(rows[i].line), &v, &c, &e);
        ok(st == GGUF_OK && v.n == 1 && v.type[0] == rows[i].type &&
               v.score[0] == rows[i].score,
           "%.*s %s", (int)strcspn(rows[i].line + 1, "\r\n") + 1, rows[i].line,
           e.message);
        reader_forget(&v, &c);
    }
}

static void check_refused(void)
{
    static const struct reader_refusal broken[] = {
        { "[\"a\", 1]\n[\"b\", 1\n]", "JSON", 16 },
        { "[\"a\", 1]\n\"b\"", "JSON", 9 },
    };
    static const struct reader_refusal rows[] = {
        { "", "no tokens", 0 },
        { "\n\n", "no tokens", 0 },
        { "{}", "line 1: not a list", 0 },
        { "[\"a\", 1]\n[\"b\"]", "line 2: not a list", 9 },
        { "[\"a\", 1]\n[1, 1]", "line 2: not a list", 9 },
        { "[\"a\", \"1\"]", "line 1: not a list", 0 },
        { "[\"a\", 1e300]", "line 1: not a list", 0 },
    };
    reader_refuses(gg_convert_vocab_read_plamo, rows,
                   sizeof rows / sizeof *rows, GGUF_E_VOCAB);
    reader_refuses(gg_convert_vocab_read_plamo, broken,
                   sizeof broken / sizeof *broken, GGUF_E_FORMAT);
}

/* Byte tokens begin at 5, "the" is 255, U+3042 256; three are missing. */
static void check_folder(void)
{
    struct converted_vocab m;
    struct gguf_error e;
    folder_begin(&f, scratch_path(top, "tiny"));
    folder_text(&f, "config.json",
                "{\"architectures\":[\"Qwen2ForCausalLM\"],\"hidden_size\":8,"
                "\"intermediate_size\":8,\"num_hidden_layers\":1,"
                "\"num_attention_heads\":1,\"num_key_value_heads\":1,"
                "\"vocab_size\":260,\"max_position_embeddings\":64,"
                "\"rms_norm_eps\":1e-6}");
    folder_tensors(&f, "model.embed_tokens.weight 260 8\n", 1, 0);
    folder_weights(&f, "F32", 1);
    folder_plamo2(&f);
    ok(converted_vocab_open(&m, f.dir, scratch_path(top, "o.gguf"), &e) ==
           GGUF_OK,
       "a folder becomes a file %s", e.message);
    ok(converted_vocab_gives(&m, "the\xe3\x81\x82the", "255,256,255"),
       "words");
    ok(converted_vocab_gives(&m, "qthe", "118,255"), "a byte before a word");
    ok(converted_vocab_key(&m, "tokenizer.ggml.bos_token_id") == 1 &&
           converted_vocab_key(&m, "tokenizer.ggml.eos_token_id") == 2 &&
           converted_vocab_key(&m, "tokenizer.ggml.unknown_token_id") == 0 &&
           converted_vocab_key(&m, "tokenizer.ggml.padding_token_id") == 3 &&
           converted_vocab_key(&m, "tokenizer.ggml.eot_token_id") == 4 &&
           converted_vocab_key(&m, "tokenizer.ggml.add_space_prefix") == 0,
       "ids with a meaning");
    const struct gguf_str pad = m.vocab ? gguf_vocab_token_text(m.vocab, 257)
                                        : (struct gguf_str){ "", 0 };
    ok(m.vocab && gguf_vocab_n_tokens(m.vocab) == 260 && pad.size == 6 &&
           !memcmp(pad.data, "[PAD1]", 6) &&
           gguf_vocab_token_score(m.vocab, 259) == -1000,
       "fillers: %.*s", (int)pad.size, pad.data);
    converted_vocab_close(&m);
}

int main(void)
{
    snprintf(top, sizeof top, "check-plamo.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    check_lines();
    check_refused();
    check_folder();
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
