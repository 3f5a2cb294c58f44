/* sum.h - a running checksum of one of the algorithms of digest.h */
#ifndef GG_FILE_SUM_H
#define GG_FILE_SUM_H

#include "base/error.h"
#include "base/sha256.h"
#include "gguf/digest.h"

#include <stdbool.h>

struct gg_sum {
    enum gguf_digest_algo algo;
    union gg_sum_state {
        void *ptr; /* of xxhash */
        struct gg_sha256 sha256;
    } u;
};

/* GGUF_E_INVALID: there is no such algorithm. */
enum gguf_status gg_sum_check(enum gguf_digest_algo algo,
                              struct gguf_error *err);

/* algo is one that there is. false: no memory, and nothing to end. */
bool gg_sum_begin(struct gg_sum *s, enum gguf_digest_algo algo);
/* n bytes more. */
void gg_sum_add(struct gg_sum *s, const void *p, size_t n);
/* *out (NULL: not wanted) becomes the digest; what s holds is freed. */
void gg_sum_end(struct gg_sum *s, struct gguf_digest *out);

#endif
