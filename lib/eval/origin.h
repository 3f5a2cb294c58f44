/* SPDX-License-Identifier: MIT */
/* origin.h - digests of a model and a text
 *
 * Parts of an evaluation are merged only if their digests are equal. Digests
 * find accidents, not attacks. */
#ifndef GG_EVAL_ORIGIN_H
#define GG_EVAL_ORIGIN_H

#include "base/error.h"
#include "gguf/session.h"

struct gg_origin {
    char
        /* XXH3-128, in hexadecimal, of the architecture's keys and of each
         * tensor's name, type, shape and data. Longer data have 16 pieces of
         * 4096 bytes in it. */
        model[33];
    char text[33];  /* XXH3-128, in hexadecimal, of the tokens */
    char cache[32]; /* types of cached keys and values */
    uint64_t n_tokens;
};

/* Compute the digests of a session's model and of n tokens. GGUF_E_NOMEM. */
enum gguf_status gg_origin_compute(struct gg_origin *o,
                                   const struct gguf_session *s,
                                   const gguf_token *token, size_t n,
                                   struct gguf_error *err);

/* Compute the digest of n bytes: of their number and of 64 pieces of 4096
 * bytes, or of all if they are fewer. */
void gg_origin_digest_bytes(char out[33], const uint8_t *data, uint64_t n);

/* Check that two origins are equal. GGUF_E_MISMATCH: the message has the first
 * difference, b's value and a's; what names them in the message, as "parts".
 */
enum gguf_status gg_origin_check(const struct gg_origin *a,
                                 const struct gg_origin *b, const char *what,
                                 struct gguf_error *err);

#endif
