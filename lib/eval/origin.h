/* SPDX-License-Identifier: MIT */
/* origin.h - of which model and text something is
 *
 * Digests by which parts of an evaluation know each other. They find accidents,
 * not attackers.
 */
#ifndef GG_EVAL_ORIGIN_H
#define GG_EVAL_ORIGIN_H

#include "base/error.h"
#include "gguf/session.h"

struct gg_origin {
    char
        model[33]; /* XXH3-128, in hexadecimal: of the architecture's keys, and
                     * of each tensor's name, type, shape and data, of which
                     * 16 pieces of 4096 bytes where they are longer */
    char text[33]; /* likewise, of the tokens */
    char cache[32]; /* types of keys and values in memory */
    uint64_t n_tokens;
};

/* Of a session's model and n tokens. GGUF_E_NOMEM. */
enum gguf_status gg_origin_compute(struct gg_origin *o,
                                   const struct gguf_session *s,
                                   const gguf_token *token, size_t n,
                                   struct gguf_error *err);

/* The digest of n bytes: of their number and of 64 pieces of 4096 bytes, or of
 * all where they are fewer. */
void gg_origin_digest_bytes(char out[33], const uint8_t *data, uint64_t n);

/* GGUF_E_MISMATCH: what differs first, b's value and a's; what: "parts" or
 * what else they are of. */
enum gguf_status gg_origin_check(const struct gg_origin *a,
                                 const struct gg_origin *b, const char *what,
                                 struct gguf_error *err);

#endif
