/* SPDX-License-Identifier: MIT */
/* checksum.h - running checksums, in any algorithm of gguf/digest.h */
#ifndef GG_FILE_CHECKSUM_H
#define GG_FILE_CHECKSUM_H

#include "base/error.h"
#include "gguf/digest.h"
#include "kern/hash.h"

#include <stdbool.h>

struct gg_checksum {
    enum gguf_digest_algo algo;      /* algorithm */
    const struct gg_hash_kern *kern; /* its kernels */
    union gg_checksum_state {
        struct gg_xxh64 xxh64;
        void *xxh3; /* state of the kernel */
        struct gg_sha256 sha256;
    } u;
};

/* Check that an algorithm exists. GGUF_E_INVALID: it does not. */
enum gguf_status gg_checksum_check(enum gguf_digest_algo algo,
                                   struct gguf_error *err);

/* Begin a checksum. algo must exist; kern must outlive s. Returns false if out
 * of memory; then do not end it. */
bool gg_checksum_begin(struct gg_checksum *s, enum gguf_digest_algo algo,
                       const struct gg_hash_kern *kern);
/* Add n bytes at p. */
void gg_checksum_add(struct gg_checksum *s, const void *p, size_t n);
/* Is adding bytes to two checksums at once, with gg_checksum_add_two(), faster
 * than adding them twice? */
bool gg_checksum_has_two(enum gguf_digest_algo algo,
                         const struct gg_hash_kern *kern);
/* Add n bytes at p to two checksums of one algorithm and kernel. Only if
 * gg_checksum_has_two(). */
void gg_checksum_add_two(struct gg_checksum *a, struct gg_checksum *b,
                         const void *p, size_t n);
/* End a checksum and free its memory. out receives the digest; NULL: not
 * wanted. */
void gg_checksum_end(struct gg_checksum *s, struct gguf_digest *out);

#endif
