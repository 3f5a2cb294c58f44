/* SPDX-License-Identifier: MIT */
/* fuzz_tokenizer.c - tokenizer files in text form
 *
 * The first byte chooses the form: tokenizer.json, or the vocabularies of some
 * models.
 */
#include "config.h"
#include "tests/fuzz/vocabs.h"

static void try_tokenizer(const uint8_t *data, size_t size)
{
    struct vocab t;
    vocab_begin(&t);
    enum gguf_status st = gg_json_read_without(
        &t.folder.text[GG_CONVERT_TOKENIZER].json, (const char *)data, size, 0,
        GG_JSON_PYTHON, gg_folder_lazy_members, &t.err);
    if (st == GGUF_OK)
        st = gg_convert_vocab_read_json(&t.v, &t.err);
    if (st == GGUF_OK && !t.v.pre) {
        st = gg_convert_vocab_find_pre(&t.v, &t.err);
        MUST(st != GGUF_OK || t.v.pre);
    }
    vocab_end(&t, st, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    switch (*data++) {
    case 'k': vocab_try(gg_convert_vocab_read_tiktoken, data, size - 1); break;
    case 'l': vocab_try(gg_convert_vocab_read_plamo, data, size - 1); break;
    case 'r': vocab_try(gg_convert_vocab_read_rwkv, data, size - 1); break;
    case 'w': vocab_try(gg_convert_vocab_read_wpm_txt, data, size - 1); break;
    default: try_tokenizer(data, size - 1);
    }
    return 0;
}

void fuzz_make_seeds(void)
{
    seed_text(
        "r1 '\\x00' 1\n2 \"it's\" 4\n3 b'\\xff\\'\"' 3\n4 '\\u4e2d' 3\n");
    seed_text("kYQ== 0\nYg== 1\nYWI= 2\n//4= 3\n");
    seed_text("l[\"<|plamo:unk|>\",0,\"UNKNOWN\"]\n[\"<0x41>\",0,\"BYTE\"]\n"
              "[\"a\",-1.5]\n[\"ab\",-2,\"NORMAL\",\"\"]\n"
              "[\"<|plamo:op|>\",0,\"CONTROL\"]\n");
    seed_text("w[PAD]\n[UNK]\n[CLS]\nun\n##able\r\n\xc3\xa9\n");
    seed_text(
        "t{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":"
        "true}],\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":"
        "true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{"
        "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":"
        "0,\"a\":1,\"##b\":2}}}");
    seed_text(
        "t{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
        "\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAABh\"},{\"type\":"
        "\"Strip\"}]},\"pre_tokenizer\":{\"type\":\"Metaspace\","
        "\"prepend_scheme\":\"always\"},\"post_processor\":{\"type\":"
        "\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},{"
        "\"SpecialToken\":{\"id\":\"</s>\"}}],\"pair\":[]},\"model\":{"
        "\"type\":\"Unigram\",\"unk_id\":1,\"byte_fallback\":true,\"vocab\":[["
        "\"</s>\",0],[\"<unk>\",0],[\"<0x41>\",-1.5]]}}");
    seed_text(
        "t{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
        "\"type\":\"Split\",\"pattern\":{\"Regex\":\"'(?i:[sdmt]|ll|ve|re)|"
        "\\\\p{L}+|\\\\s+(?!\\\\S)\"},\"behavior\":\"Isolated\"},{\"type\":"
        "\"Digits\",\"individual_digits\":true},{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":false}]},\"model\":{"
        "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":["
        "\"a b\"]}}");
}
