/* sum.c - the algorithms of checksums, a row each */
#include "config.h"
#include "file/sum.h"

#include <string.h>
#include <xxhash.h>

static bool begin_64(union gg_sum_state *u)
{
    XXH64_state_t *x = u->ptr = XXH64_createState();
    return x && XXH64_reset(x, 0) == XXH_OK;
}

static void add_64(union gg_sum_state *u, const void *p, size_t n)
{
    (void)XXH64_update(u->ptr, p, n); /* fails for NULL only */
}

static void end_64(union gg_sum_state *u, unsigned char *out)
{
    XXH64_canonical_t c;
    XXH64_canonicalFromHash(&c, XXH64_digest(u->ptr));
    memcpy(out, c.digest, sizeof c.digest);
    (void)XXH64_freeState(u->ptr);
}

static bool begin_3(union gg_sum_state *u)
{
    XXH3_state_t *x = u->ptr = XXH3_createState();
    return x && XXH3_128bits_reset(x) == XXH_OK;
}

static void add_3(union gg_sum_state *u, const void *p, size_t n)
{
    (void)XXH3_128bits_update(u->ptr, p, n);
}

static void end_3(union gg_sum_state *u, unsigned char *out)
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, XXH3_128bits_digest(u->ptr));
    memcpy(out, c.digest, sizeof c.digest);
    (void)XXH3_freeState(u->ptr);
}

static bool begin_sha256(union gg_sum_state *u)
{
    gg_sha256_init(&u->sha256);
    return true;
}

static void add_sha256(union gg_sum_state *u, const void *p, size_t n)
{
    gg_sha256_add(&u->sha256, p, n);
}

static void end_sha256(union gg_sum_state *u, unsigned char *out)
{
    gg_sha256_end(&u->sha256, out);
}

static const struct {
    const char *name;
    size_t size;
    bool (*begin)(union gg_sum_state *u);
    void (*add)(union gg_sum_state *u, const void *p, size_t n);
    void (*end)(union gg_sum_state *u, unsigned char *out);
} algos[GGUF_N_DIGESTS] = {
    [GGUF_DIGEST_XXH64] = { "xxh64", 8, begin_64, add_64, end_64 },
    [GGUF_DIGEST_XXH3_128] = { "xxh3-128", 16, begin_3, add_3, end_3 },
    [GGUF_DIGEST_SHA256] = { "sha256", 32, begin_sha256, add_sha256,
                             end_sha256 },
};

enum gguf_status gg_sum_check(enum gguf_digest_algo algo,
                              struct gguf_error *err)
{
    if ((unsigned)algo < GGUF_N_DIGESTS)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "no digest has number %u", (unsigned)algo);
}

bool gg_sum_begin(struct gg_sum *s, enum gguf_digest_algo algo)
{
    s->algo = algo;
    return algos[algo].begin(&s->u);
}

void gg_sum_add(struct gg_sum *s, const void *p, size_t n)
{
    if (n)
        algos[s->algo].add(&s->u, p, n);
}

void gg_sum_end(struct gg_sum *s, struct gguf_digest *out)
{
    struct gguf_digest d = { .algo = s->algo };
    algos[s->algo].end(&s->u, d.bytes);
    if (out)
        *out = d;
}

const char *gguf_digest_algo_name(enum gguf_digest_algo algo)
{
    return (unsigned)algo < GGUF_N_DIGESTS ? algos[algo].name : NULL;
}

int gguf_digest_algo_from_name(const char *name)
{
    for (int i = 0; i < GGUF_N_DIGESTS; i++)
        if (!strcmp(algos[i].name, name))
            return i;
    return -1;
}

void gguf_digest_hex(const struct gguf_digest *d, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const size_t n = algos[d->algo].size;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[d->bytes[i] >> 4];
        out[2 * i + 1] = digits[d->bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

int gguf_digest_equal(const struct gguf_digest *a, const struct gguf_digest *b)
{
    return a->algo == b->algo &&
           !memcmp(a->bytes, b->bytes, algos[a->algo].size);
}
