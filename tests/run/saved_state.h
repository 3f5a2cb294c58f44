/* SPDX-License-Identifier: MIT */
/* saved_state.h - what the tests of saved states share: sessions with two texts
 * in them, of which each token follows from its number, and their states as
 * bytes
 */
#ifndef TESTS_RUN_SAVED_STATE_H
#define TESTS_RUN_SAVED_STATE_H

#include "tests/family/variant.h"

/* Tokens of the texts, and of a context. */
enum { SAVED_A = 50, SAVED_B = 21, SAVED_CTX = 128 };

/* The file of a model with changes (variant.h), to be freed. */
void *saved_file_of(const char *name, const char *changes, size_t *size);

/* A kind of memory. */
struct saved_kind {
    const char *name;
    uint32_t dtype;
    bool unified, full_windows;
    bool holes; /* tokens in the middle can be removed */
};

struct gguf_session_params saved_params_of(const struct saved_kind *k);

/* false: r->err says why. */

/* Tokens [from, to) of a text to a sequence; logits of all, or NULL. */
bool saved_decode(struct run *r, int text, int32_t seq, size_t from, size_t to,
                  float *out);
/* Of a model that encodes first, what it encodes. */
bool saved_encode(struct run *r, int text, int32_t seq);
/* Two texts, one of which loses some of its middle. */
bool saved_fill(struct run *r, const struct saved_kind *k);

struct saved_bytes {
    uint8_t *p; /* to be freed */
    uint64_t n;
};

/* The state of a sequence, or of GGUF_ALL_SEQUENCES. */
bool saved_get(struct run *r, uint32_t seq, struct saved_bytes *b);
enum gguf_status saved_set(struct run *r, uint32_t seq,
                           const struct saved_bytes *b);

#endif
