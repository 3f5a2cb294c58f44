/* SPDX-License-Identifier: MIT */
/* checksum.c - a table of the algorithms of checksums */
#include "config.h"
#include "file/checksum.h"

#include <string.h>

static bool begin_64(struct gg_checksum *s)
{
    gg_xxh64_init(&s->u.xxh64);
    return true;
}

static void add_64(struct gg_checksum *s, const void *p, size_t n)
{
    gg_xxh64_add(&s->u.xxh64, p, n);
}

static void end_64(struct gg_checksum *s, unsigned char *out)
{
    gg_xxh64_end(&s->u.xxh64, out);
}

static bool begin_3(struct gg_checksum *s)
{
    return (s->u.xxh3 = s->kern->xxh3.create()) != NULL;
}

static void add_3(struct gg_checksum *s, const void *p, size_t n)
{
    s->kern->xxh3.add(s->u.xxh3, p, n);
}

static void end_3(struct gg_checksum *s, unsigned char *out)
{
    s->kern->xxh3.end(s->u.xxh3, out);
}

static bool begin_sha256(struct gg_checksum *s)
{
    gg_sha256_init(&s->u.sha256, s->kern->sha256);
    return true;
}

static void add_sha256(struct gg_checksum *s, const void *p, size_t n)
{
    gg_sha256_add(&s->u.sha256, p, n);
}

static void end_sha256(struct gg_checksum *s, unsigned char *out)
{
    gg_sha256_end(&s->u.sha256, out);
}

static const struct {
    const char *name;
    size_t size;
    bool (*begin)(struct gg_checksum *s);
    void (*add)(struct gg_checksum *s, const void *p, size_t n);
    void (*end)(struct gg_checksum *s, unsigned char *out);
} algos[GGUF_N_DIGESTS] = {
    [GGUF_DIGEST_XXH64] = { "xxh64", 8, begin_64, add_64, end_64 },
    [GGUF_DIGEST_XXH3_128] = { "xxh3-128", 16, begin_3, add_3, end_3 },
    [GGUF_DIGEST_SHA256] = { "sha256", 32, begin_sha256, add_sha256,
                             end_sha256 },
};

enum gguf_status gg_checksum_check(enum gguf_digest_algo algo,
                                   struct gguf_error *err)
{
    if ((unsigned)algo < GGUF_N_DIGESTS)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "digest algorithm %u is unknown, expected 0 to %d",
                        (unsigned)algo, GGUF_N_DIGESTS - 1);
}

bool gg_checksum_begin(struct gg_checksum *s, enum gguf_digest_algo algo,
                       const struct gg_hash_kern *kern)
{
    s->algo = algo;
    s->kern = kern;
    return algos[algo].begin(s);
}

void gg_checksum_add(struct gg_checksum *s, const void *p, size_t n)
{
    if (n)
        algos[s->algo].add(s, p, n);
}

bool gg_checksum_has_two(enum gguf_digest_algo algo,
                         const struct gg_hash_kern *kern)
{
    return algo == GGUF_DIGEST_XXH64 && kern->xxh64_two;
}

void gg_checksum_add_two(struct gg_checksum *a, struct gg_checksum *b,
                         const void *p, size_t n)
{
    gg_xxh64_add_two(&a->u.xxh64, &b->u.xxh64, p, n, a->kern->xxh64_two);
}

void gg_checksum_end(struct gg_checksum *s, struct gguf_digest *out)
{
    struct gguf_digest d = { .algo = s->algo };
    algos[s->algo].end(s, d.bytes);
    if (out)
        *out = d;
}

const char *gguf_digest_algo_name(enum gguf_digest_algo algo)
{
    return (unsigned)algo < GGUF_N_DIGESTS ? algos[algo].name : NULL;
}

bool gguf_digest_algo_find(const char *name, enum gguf_digest_algo *algo)
{
    for (int i = 0; i < GGUF_N_DIGESTS; i++)
        if (!strcmp(algos[i].name, name)) {
            *algo = (enum gguf_digest_algo)i;
            return true;
        }
    return false;
}

void gguf_digest_format(const struct gguf_digest *d, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const size_t n = algos[d->algo].size;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[d->bytes[i] >> 4];
        out[2 * i + 1] = digits[d->bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

bool gguf_digest_equal(const struct gguf_digest *a,
                       const struct gguf_digest *b)
{
    return a->algo == b->algo &&
           !memcmp(a->bytes, b->bytes, algos[a->algo].size);
}
