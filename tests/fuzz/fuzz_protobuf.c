/* SPDX-License-Identifier: MIT */
/* fuzz_protobuf.c - SentencePiece's tokenizer.model, a message of protobuf,
 * with its own ids and with fairseq's */
#include "config.h"
#include "tests/fuzz/vocabs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vocab_try(gg_convert_vocab_read_spm, data, size);
    vocab_try(gg_convert_vocab_read_fairseq, data, size);
    return 0;
}

void fuzz_make_seeds(void)
{
    static const char spm[] = "\x0a\x0a\x0a\x01"
                              "a\x15\0\0\x80\xbf\x18\x01\x12\x05\x0a\x01x\x18"
                              "\x02\x1a\x02\x18\x00";
    static const char xlmr[] =
        "\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x07\x0a\x03<s>"
        "\x18\x03\x0a\x08\x0a\x04</s>\x18\x03\x0a\x03\x0a"
        "\x01"
        "a\x1a\x04\x20\x01\x28\x01";
    static const char bpe[] = "\x0a\x0a\x0a\x06<0x41>\x18\x06\x0a\x05\x0a"
                              "\x01z\x18\x04\x12\x02\x18\x02\x1a\x06\x12"
                              "\x04\0\0\0\0";
    static const char far[] = "\x0a\xff\xff\xff\xff\x0f\x0a\x01"
                              "a";
    static const char long_varint[] = "\x0a\x0e\x0a\x01"
                                      "a\x18\xff\xff\xff"
                                      "\xff\xff\xff\xff\xff\xff\x01";
    fix_bytes(new_seed(), bpe, sizeof bpe - 1);
    fix_bytes(new_seed(), far, sizeof far - 1);
    fix_bytes(new_seed(), long_varint, sizeof long_varint - 1);
    fix_bytes(new_seed(), spm, sizeof spm - 1);
    fix_bytes(new_seed(), xlmr, sizeof xlmr - 1);
}
