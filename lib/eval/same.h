/* SPDX-License-Identifier: MIT */
/* same.h - do two models speak of the same tokens? */
#ifndef GG_EVAL_SAME_H
#define GG_EVAL_SAME_H

#include "gguf/model.h"

/* GGUF_E_INVALID, with what differs first: the number of logits, of tokens, the
 * text of a token, or which token begins a text. Models without a vocabulary
 * are compared by the number of logits. */
enum gguf_status gg_eval_same_vocab(const struct gguf_model *a,
                                    const struct gguf_model *b,
                                    struct gguf_error *err);

#endif
