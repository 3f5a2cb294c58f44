/* SPDX-License-Identifier: MIT */
/* saved_state.h - sessions that hold two texts, and their saved states
 *
 * A text is a sequence of tokens, each a function of its index. Functions that
 * return bool return false after a failure, and r->err says why.
 */
#ifndef TESTS_RUN_SAVED_STATE_H
#define TESTS_RUN_SAVED_STATE_H

#include "tests/family/variant.h"

/* Tokens of text 0, of text 1, and of the context. */
enum { SAVED_A = 50, SAVED_B = 21, SAVED_CTX = 128 };

/* The file of a model with changes (variant.h). Free it with free(). */
void *saved_file_of(const char *name, const char *changes, size_t *size);

/* How a session keeps keys and values. */
struct saved_kind {
    const char *name;
    uint32_t dtype;
    bool unified, full_windows;
    bool holes; /* tokens in the middle can be removed */
};

struct gguf_session_params saved_params_of(const struct saved_kind *k);

/* Decode tokens [from, to) of a text into sequence seq. out: logits of every
 * token, or NULL. */
bool saved_decode(struct run *r, int text, int32_t seq, size_t from, size_t to,
                  float *out);
/* Encode the text if the model is an encoder-decoder; else do nothing. */
bool saved_encode(struct run *r, int text, int32_t seq);
/* Decode text 0 into sequence 0 and text 1 into sequence 1. If k->holes, remove
 * positions 30 to 36 of sequence 0. */
bool saved_fill(struct run *r, const struct saved_kind *k);

struct saved_bytes {
    uint8_t *p; /* malloc'ed */
    uint64_t n;
};

/* Save the state of a sequence, or of GGUF_ALL_SEQUENCES. */
bool saved_get(struct run *r, uint32_t seq, struct saved_bytes *b);
enum gguf_status saved_set(struct run *r, uint32_t seq,
                           const struct saved_bytes *b);

#endif
