/* SPDX-License-Identifier: MIT */
/* checksum.h - a running checksum of one of the algorithms of digest.h */
#ifndef GG_FILE_CHECKSUM_H
#define GG_FILE_CHECKSUM_H

#include "base/error.h"
#include "gguf/digest.h"
#include "kern/hash.h"

#include <stdbool.h>

struct gg_checksum {
    enum gguf_digest_algo algo;
    const struct gg_hash_kern *kern;
    union gg_checksum_state {
        struct gg_xxh64 xxh64;
        void *xxh3; /* the kernel's */
        struct gg_sha256 sha256;
    } u;
};

/* GGUF_E_INVALID: there is no such algorithm. */
enum gguf_status gg_checksum_check(enum gguf_digest_algo algo,
                                   struct gguf_error *err);

/* algo is one that there is. kern is kept. false: no memory, and nothing to
 * end. */
bool gg_checksum_begin(struct gg_checksum *s, enum gguf_digest_algo algo,
                       const struct gg_hash_kern *kern);
/* n bytes more. */
void gg_checksum_add(struct gg_checksum *s, const void *p, size_t n);
/* Is it faster to add bytes to two sums at once than to one, then the other?
 * Then gg_checksum_add_two does so, to sums of this algorithm and kernel. */
bool gg_checksum_has_two(enum gguf_digest_algo algo,
                         const struct gg_hash_kern *kern);
void gg_checksum_add_two(struct gg_checksum *a, struct gg_checksum *b,
                         const void *p, size_t n);
/* *out (NULL: not wanted) becomes the digest; what s holds is freed. */
void gg_checksum_end(struct gg_checksum *s, struct gguf_digest *out);

#endif
