/* SPDX-License-Identifier: MIT */
/* algo.c - table of the algorithms, by tokenizer.ggml.model
 *
 * Defaults are those of the models from which the algorithm comes; a file's
 * own keys override them. */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/str.h"

#define NONE GGUF_TOKEN_NONE
#define GPT2_SPECIAL                                                          \
    [GGUF_SPECIAL_BOS] = 11, [GGUF_SPECIAL_EOS] = 11,                         \
    [GGUF_SPECIAL_UNK] = NONE, [GGUF_SPECIAL_SEP] = NONE,                     \
    [GGUF_SPECIAL_PAD] = NONE, [GGUF_SPECIAL_MASK] = NONE
#define ALL_NONE NONE, NONE, NONE, NONE, NONE, NONE

static const struct gg_vocab_algo algos[] = {
    { .model = "llama",
      .add_bos = true,
      .add_space_prefix = true,
      .newline = GG_VOCAB_NEWLINE_BYTE,
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
      .special = { GPT2_SPECIAL },
      .load = gg_bpe_load,
      .unload = gg_bpe_unload,
      .encode = gg_bpe_encode,
      .put = gg_bpe_put,
      .byte_text = gg_bpe_byte_text,
      .check = gg_bpe_check },

    { .model = "gemma4",
      .pre = "gemma4",
      .special = { ALL_NONE },
      .load = gg_bpe_load,
      .unload = gg_bpe_unload,
      .encode = gg_bpe_encode,
      .put = gg_bpe_put,
      .byte_text = gg_spm_byte_text,
      .check = gg_bpe_check },

    { .model = "hybriddna",
      .special = { GPT2_SPECIAL },
      .load = gg_bpe_load,
      .unload = gg_bpe_unload,
      .encode = gg_vocab_dna_encode,
      .put = gg_vocab_dna_put,
      .byte_text = gg_bpe_byte_text,
      .check = gg_bpe_check },

    { .model = "whitespace",
      .special = { GPT2_SPECIAL },
      .load = gg_vocab_whitespace_load,
      .unload = gg_bpe_unload,
      .encode = gg_vocab_whitespace_encode,
      .put = gg_bpe_put,
      .check = gg_bpe_check },

    { .model = "bert",
      .add_bos = true,
      .add_sep = true,
      .wraps = true,
      .clean = true,
      .newline = GG_VOCAB_NEWLINE_PAD,
      .special = { [GGUF_SPECIAL_BOS] = 101,
                   [GGUF_SPECIAL_EOS] = NONE,
                   [GGUF_SPECIAL_UNK] = 100,
                   [GGUF_SPECIAL_SEP] = 102,
                   [GGUF_SPECIAL_PAD] = 0,
                   [GGUF_SPECIAL_MASK] = 103 },
      .load = gg_vocab_wpm_load,
      .encode = gg_vocab_wpm_encode,
      .put = gg_spm_put },

    { .model = "t5",
      .add_eos = true,
      .special = { [GGUF_SPECIAL_BOS] = NONE,
                   [GGUF_SPECIAL_EOS] = 1,
                   [GGUF_SPECIAL_UNK] = 2,
                   [GGUF_SPECIAL_SEP] = NONE,
                   [GGUF_SPECIAL_PAD] = 0,
                   [GGUF_SPECIAL_MASK] = NONE },
      .load = gg_vocab_ugm_load,
      .encode = gg_vocab_ugm_encode,
      .put = gg_spm_put,
      .check = gg_vocab_ugm_check },

    { .model = "rwkv",
      .no_ends = true,
      .one_text = true,
      .special = { ALL_NONE },
      .load = gg_vocab_rwkv_load,
      .encode = gg_vocab_rwkv_encode,
      .put = gg_vocab_rwkv_put },

    { .model = "plamo2",
      .no_ends = true,
      .one_text = true,
      .special = { [GGUF_SPECIAL_BOS] = 1,
                   [GGUF_SPECIAL_EOS] = 2,
                   [GGUF_SPECIAL_UNK] = 0,
                   [GGUF_SPECIAL_SEP] = NONE,
                   [GGUF_SPECIAL_PAD] = 3,
                   [GGUF_SPECIAL_MASK] = NONE },
      .load = gg_vocab_plamo2_load,
      .encode = gg_vocab_plamo2_encode,
      .put = gg_vocab_plamo2_put,
      .byte_text = gg_spm_byte_text,
      .check = gg_vocab_ugm_check },

    { .model = "test",
      .no_ends = true,
      .one_text = true,
      .special = { ALL_NONE },
      .encode = gg_vocab_chunk_hash_encode,
      .put = gg_vocab_chunk_hash_put },

    /* Two names for a file without a vocabulary; both are in use. */
    { .model = "no_vocab", .special = { ALL_NONE } },
    { .model = "none", .special = { ALL_NONE } },
};

const struct gg_vocab_algo *gg_vocab_algo_find(struct gguf_str model)
{
    for (size_t i = 0; i < GG_LEN(algos); i++)
        if (gg_str_eqz(model, algos[i].model))
            return &algos[i];
    return NULL;
}

bool gg_vocab_is_known_model(struct gguf_str model)
{
    return gg_vocab_algo_find(model) != NULL ||
           /* named in the format's specification */
           gg_str_eqz(model, "replit");
}
