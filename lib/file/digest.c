/* digest.c - checksums of tensors and models */
#include "config.h"
#include "base/error.h"
#include "base/params.h"
#include "gguf/digest.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

/* A running sum of either kind. */
union state {
    XXH64_state_t *x64;
    XXH3_state_t *x3;
};

static bool begin_64(union state *s)
{
    s->x64 = XXH64_createState();
    return s->x64 && XXH64_reset(s->x64, 0) == XXH_OK;
}

static void update_64(union state *s, const void *p, size_t n)
{
    (void)XXH64_update(s->x64, p, n); /* fails for NULL only */
}

static void end_64(union state *s, unsigned char *out)
{
    XXH64_canonical_t c;
    XXH64_canonicalFromHash(&c, XXH64_digest(s->x64));
    memcpy(out, c.digest, sizeof c.digest);
}

static void free_64(union state *s)
{
    (void)XXH64_freeState(s->x64);
}

static bool begin_3(union state *s)
{
    s->x3 = XXH3_createState();
    return s->x3 && XXH3_128bits_reset(s->x3) == XXH_OK;
}

static void update_3(union state *s, const void *p, size_t n)
{
    (void)XXH3_128bits_update(s->x3, p, n);
}

static void end_3(union state *s, unsigned char *out)
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, XXH3_128bits_digest(s->x3));
    memcpy(out, c.digest, sizeof c.digest);
}

static void free_3(union state *s)
{
    (void)XXH3_freeState(s->x3);
}

/* One row per algorithm. */
static const struct {
    const char *name;
    size_t size;
    bool (*begin)(union state *s);
    void (*update)(union state *s, const void *p, size_t n);
    void (*end)(union state *s, unsigned char *out);
    void (*free)(union state *s);
} algos[GGUF_N_DIGESTS] = {
    [GGUF_DIGEST_XXH64] = { "xxh64", 8, begin_64, update_64, end_64, free_64 },
    [GGUF_DIGEST_XXH3_128] = { "xxh3-128", 16, begin_3, update_3, end_3,
                               free_3 },
};

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

void gguf_digest_hex(const struct gguf_digest *d, char out[33])
{
    static const char digits[] = "0123456789abcdef";
    size_t n = algos[d->algo].size;
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

/* ------------------------------------------------------------- the work --- */

/* Small enough for the cache, so that with one thread the tensor's and the
 * model's sum read memory once. */
enum { CHUNK = 1 << 17 };

struct job {
    const struct gguf_file *const *files;
    size_t n_files;
    struct gguf_digest_params p;
    struct gguf_digest *tensors, *model;
    size_t n_tensors;
    uint64_t total;        /* bytes */
    _Atomic size_t next;   /* tensor to take */
    _Atomic uint64_t done; /* bytes */
    atomic_bool model_taken, stop, no_memory;
};

static void stop(struct job *j, bool no_memory)
{
    if (no_memory)
        atomic_store_explicit(&j->no_memory, true, memory_order_relaxed);
    atomic_store_explicit(&j->stop, true, memory_order_relaxed);
}

static bool stopped(const struct job *j)
{
    return atomic_load_explicit(&j->stop, memory_order_relaxed);
}

/* Only from the thread that runs the job. */
static void tell(struct job *j)
{
    if (j->p.progress &&
        j->p.progress(j->p.progress_user,
                      atomic_load_explicit(&j->done, memory_order_relaxed),
                      j->total))
        stop(j, false);
}

/* Bytes p[0..n) into one or two sums (NULL: none). counts: they count as done
 * here and not where the same bytes go into the other sum. */
static void feed(struct job *j, const uint8_t *p, uint64_t n, union state *a,
                 union state *b, bool counts, bool first_thread)
{
    void (*update)(union state *, const void *, size_t) =
        algos[j->p.algo].update;
    for (uint64_t off = 0, step; off < n && !stopped(j); off += step) {
        step = GG_MIN(n - off, (uint64_t)CHUNK);
        if (a)
            update(a, p + off, (size_t)step);
        if (b)
            update(b, p + off, (size_t)step);
        if (counts)
            atomic_fetch_add_explicit(&j->done, step, memory_order_relaxed);
        if (first_thread)
            tell(j);
    }
}

/* Tensor number i of all files. */
static const struct gguf_tensor_info *tensor_at(const struct job *j, size_t i,
                                                const uint8_t **data)
{
    size_t k = 0;
    while (i >= gguf_file_n_tensors(j->files[k]))
        i -= gguf_file_n_tensors(j->files[k++]);
    *data = gguf_file_tensor_data(j->files[k], i);
    return gguf_file_tensor(j->files[k], i);
}

/* Sum of tensor i; model, if not NULL, takes the same bytes. */
static void sum_tensor(struct job *j, size_t i, union state *model,
                       bool first_thread)
{
    union state s;
    const uint8_t *data;
    const struct gguf_tensor_info *t = tensor_at(j, i, &data);
    bool counts = model || !j->model;
    if (!algos[j->p.algo].begin(&s)) {
        stop(j, true);
    } else {
        feed(j, data, t->size, &s, model, counts, first_thread);
        j->tensors[i].algo = j->p.algo;
        algos[j->p.algo].end(&s, j->tensors[i].bytes);
    }
    algos[j->p.algo].free(&s);
}

/* The model's sum; with both, the tensors' too. */
static void sum_model(struct job *j, bool both, bool first_thread)
{
    union state s;
    if (!algos[j->p.algo].begin(&s)) {
        stop(j, true);
    } else {
        for (size_t i = 0; i < j->n_tensors && !stopped(j); i++) {
            const uint8_t *data;
            const struct gguf_tensor_info *t = tensor_at(j, i, &data);
            if (both)
                sum_tensor(j, i, &s, first_thread);
            else
                feed(j, data, t->size, &s, NULL, true, first_thread);
        }
        j->model->algo = j->p.algo;
        algos[j->p.algo].end(&s, j->model->bytes);
    }
    algos[j->p.algo].free(&s);
}

static void work(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    bool both = nth == 1 && j->tensors;
    if (j->model && !atomic_exchange_explicit(&j->model_taken, true,
                                              memory_order_relaxed)) {
        sum_model(j, both, ith == 0);
        if (both)
            return;
    }
    while (j->tensors && !stopped(j)) {
        size_t i =
            atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (i >= j->n_tensors)
            return;
        sum_tensor(j, i, NULL, ith == 0);
    }
}

static enum gguf_status check_algo(enum gguf_digest_algo algo,
                                   struct gguf_error *err)
{
    if ((unsigned)algo < GGUF_N_DIGESTS)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "no digest has number %u", (unsigned)algo);
}

enum gguf_status gguf_digest_bytes(struct gguf_digest *out,
                                   enum gguf_digest_algo algo,
                                   const void *data, size_t size,
                                   struct gguf_error *err)
{
    union state s;
    GG_TRY(check_algo(algo, err));
    const bool good = algos[algo].begin(&s);
    if (good) {
        if (size)
            algos[algo].update(&s, data, size);
        out->algo = algo;
        algos[algo].end(&s, out->bytes);
    }
    algos[algo].free(&s);
    return good ? GGUF_OK : gg_error_set_nomem(err, sizeof(XXH3_state_t *));
}

enum gguf_status gguf_digest_files(const struct gguf_file *const *files,
                                   size_t n_files,
                                   const struct gguf_digest_params *params,
                                   struct gguf_digest *tensors,
                                   struct gguf_digest *model,
                                   struct gguf_error *err)
{
    struct job j = { .files = files,
                     .n_files = n_files,
                     .p = GGUF_DIGEST_PARAMS_INIT,
                     .tensors = tensors,
                     .model = model };
    GG_TRY(
        gg_params_take(&j.p, sizeof j.p, params, "gguf_digest_params", err));
    GG_TRY(check_algo(j.p.algo, err));
    for (size_t k = 0; k < n_files; k++) {
        j.n_tensors += gguf_file_n_tensors(files[k]);
        for (size_t i = 0; i < gguf_file_n_tensors(files[k]); i++)
            j.total += gguf_file_tensor(files[k], i)->size;
    }
    gguf_pool_run(j.p.pool, work, &j);
    if (atomic_load(&j.no_memory))
        return gg_error_set_nomem(err, sizeof(XXH3_state_t *));
    if (atomic_load(&j.stop))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "the digest was stopped");
    return GGUF_OK;
}
