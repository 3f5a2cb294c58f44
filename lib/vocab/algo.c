/* algo.c - the algorithms, by tokenizer.ggml.model
 *
 * Defaults are those of the models that the algorithm comes from; a file's
 * own keys go before them.
 */
#include "config.h"
#include "vocab/vocab.h"

#include "base/str.h"

#define NONE GGUF_TOKEN_NONE

static const struct gg_vocab_algo algos[] = {
    { .model = "llama",
      .add_bos = true,
      .add_space_prefix = true,
      .special = { [GGUF_SPECIAL_BOS] = 1,
                   [GGUF_SPECIAL_EOS] = 2,
                   [GGUF_SPECIAL_UNK] = 0,
                   [GGUF_SPECIAL_SEP] = NONE,
                   [GGUF_SPECIAL_PAD] = NONE,
                   [GGUF_SPECIAL_MASK] = NONE },
      .load = gg_spm_load,
      .encode = gg_spm_encode,
      .put = gg_spm_put,
      .byte_text = gg_spm_byte_text,
      .check = gg_spm_check },

    { .model = "gpt2",
      .special = { [GGUF_SPECIAL_BOS] = 11,
                   [GGUF_SPECIAL_EOS] = 11,
                   [GGUF_SPECIAL_UNK] = NONE,
                   [GGUF_SPECIAL_SEP] = NONE,
                   [GGUF_SPECIAL_PAD] = NONE,
                   [GGUF_SPECIAL_MASK] = NONE },
      .load = gg_bpe_load,
      .unload = gg_bpe_unload,
      .encode = gg_bpe_encode,
      .put = gg_bpe_put,
      .byte_text = gg_bpe_byte_text,
      .check = gg_bpe_check },

    /* A file without a vocabulary says so; both names are in use. */
    { .model = "no_vocab", .special = { NONE, NONE, NONE, NONE, NONE, NONE } },
    { .model = "none", .special = { NONE, NONE, NONE, NONE, NONE, NONE } },
};

const struct gg_vocab_algo *gg_vocab_algo_find(struct gguf_str model)
{
    for (size_t i = 0; i < GG_LEN(algos); i++)
        if (gg_str_eqz(model, algos[i].model))
            return &algos[i];
    return NULL;
}

bool gg_vocab_known(struct gguf_str model)
{
    static const char *const others[] = { "bert",   "t5",        "rwkv",
                                          "plamo2", "hybriddna", "whitespace",
                                          "gemma4", "replit" };
    for (size_t i = 0; i < GG_LEN(others); i++)
        if (gg_str_eqz(model, others[i]))
            return true;
    return gg_vocab_algo_find(model) != NULL;
}
