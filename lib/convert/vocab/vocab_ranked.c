/* SPDX-License-Identifier: MIT */
/* vocab_ranked.c - BPE with bytes and ranked merges: Gemma 4's tokenizer
 *
 * A BPE of tokenizer.json in the form of SentencePiece's (byte_fallback) whose
 * merges are not turned into scores: a piece has one score, but may come from
 * several merges of different ranks. Tokens by which chat templates are parsed
 * become user tokens, which are shown, as in llama.cpp's converter
 * (conversion/gemma.py).
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"

#define SCORE (-1000.0f) /* score of every token; it has no meaning */

static enum gguf_status show_ranked(struct gg_convert_vocab *v,
                                    struct gguf_error *err)
{
    static const char *const shown[] = {
        "<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
        "<|tool_response>", "<tool_response|>", "<|\"|>"
    };
    (void)err;
    for (size_t i = 0; i < GG_LEN(shown); i++) {
        const int64_t id = gg_convert_vocab_find(v, gg_str_z(shown[i]));
        if (id >= 0)
            v->type[id] = GG_CONVERT_USER;
    }
    return GGUF_OK;
}

enum gguf_status gg_convert_vocab_set_ranked(struct gg_convert_vocab *v,
                                             struct gguf_error *err)
{
    (void)err;
    v->model = v->arch->pieces;
    v->space_prefix = 0;
    v->has_scores = true;
    v->finish = show_ranked;
    for (size_t i = 0; i < v->n; i++) {
        v->score[i] = SCORE;
        if (v->token[i].data && gg_convert_vocab_is_byte(v->token[i]))
            v->type[i] = GG_CONVERT_BYTE;
    }
    return GGUF_OK;
}
