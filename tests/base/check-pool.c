/* check-pool.c - the thread pool and the barrier */
#include "config.h"
#include "base/barrier.h"
#include "gguf/pool.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <time.h>

enum { MAX_THREADS = 8 };

struct job {
    unsigned calls[MAX_THREADS]; /* plain: each member writes its own */
    unsigned nth;
    struct gg_barrier *barrier;
    uint64_t sum[MAX_THREADS];
    unsigned n_rounds, bad;
};

static void count(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    j->calls[ith]++;
    if (ith == 0)
        j->nth = nth;
}

/* Each round every member adds what its neighbour wrote in the round before:
 * wrong, and a race for ThreadSanitizer, if anyone passes a barrier early. */
static void ring(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    for (unsigned r = 0; r < j->n_rounds; r++) {
        uint64_t v = j->sum[(ith + 1) % nth];
        gg_barrier_wait(j->barrier);
        j->sum[ith] = v + 1;
        gg_barrier_wait(j->barrier);
    }
}

static void check_team(unsigned n)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_POOL_PARAMS_INIT;
    struct gguf_error err;
    p.n_threads = n;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_OK &&
           gguf_pool_n_threads(pool) == n,
       "a pool of %u", n);
    struct job j = { .nth = 0 };
    for (int i = 0; i < 1000; i++)
        gguf_pool_run(pool, count, &j);
    bool each = j.nth == n;
    for (unsigned i = 0; i < n; i++)
        each = each && j.calls[i] == 1000;
    ok(each, "1000 jobs, every member of %u once each", n);

    /* once spinning, once asleep at once */
    for (unsigned spin = 0; spin <= 200; spin += 200) {
        struct gg_barrier b;
        ok(gg_barrier_init(&b, n, spin, &err) == GGUF_OK, "a barrier");
        j = (struct job){ .barrier = &b, .n_rounds = 2000 };
        gguf_pool_run(pool, ring, &j);
        bool all = true;
        for (unsigned i = 0; i < n; i++)
            all = all && j.sum[i] == 2000;
        ok(all, "2000 rounds of %u members, %u spins", n, spin);
        gg_barrier_fini(&b);
    }
    gguf_pool_destroy(pool);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check_idle(void)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_POOL_PARAMS_INIT;
    p.n_threads = 2;
    if (gguf_pool_create(&pool, &p, NULL) != GGUF_OK)
        exit(99);
    struct job j = { .nth = 0 };
    gguf_pool_run(pool, count, &j);
    double t0 = cpu_seconds();
    nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 * 1000 }, NULL);
    double used = cpu_seconds() - t0;
    printf("# processor time of an idle pool in 100 ms: %.3f ms\n",
           used * 1e3);
    ok(used < 0.005, "an idle pool sleeps");
    gguf_pool_destroy(pool);
}

static void report_cost(void)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_POOL_PARAMS_INIT;
    struct gg_barrier b;
    p.n_threads = 2;
    if (gguf_pool_create(&pool, &p, NULL) != GGUF_OK ||
        gg_barrier_init(&b, 2, gg_barrier_spin(2), NULL) != GGUF_OK)
        exit(99);
    struct job j = { .barrier = &b, .n_rounds = 20000 };
    struct timespec a, z;
    clock_gettime(CLOCK_MONOTONIC, &a);
    gguf_pool_run(pool, ring, &j);
    clock_gettime(CLOCK_MONOTONIC, &z);
    double s = (double)(z.tv_sec - a.tv_sec) +
               1e-9 * (double)(z.tv_nsec - a.tv_nsec);
    printf("# a barrier of two threads: %.3f us\n", s / 40000 * 1e6);
    gg_barrier_fini(&b);
    gguf_pool_destroy(pool);
}

static void *no_memory(void *user, size_t size)
{
    (void)user;
    (void)size;
    return NULL;
}

static void check_failures(void)
{
    struct gguf_error err;
    struct gguf_pool *pool = NULL;
    struct gguf_pool_params p = GGUF_POOL_PARAMS_INIT;
    p.n_threads = GGUF_POOL_MAX_THREADS + 1;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_E_INVALID && !pool &&
           strstr(err.message, "513"),
       "too many threads: %s", err.message);
    const struct gguf_allocator none = { .alloc = no_memory };
    p.n_threads = 2;
    p.allocator = &none;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_E_NOMEM && !pool,
       "no memory: %s", err.message);
    gguf_pool_destroy(NULL);
    struct job j = { .nth = 0 };
    gguf_pool_run(NULL, count, &j);
    ok(j.nth == 1 && j.calls[0] == 1 && gguf_pool_n_threads(NULL) == 1,
       "no pool: the calling thread");
    ok(gguf_cpu_count() >= 1, "%u processors", gguf_cpu_count());
}

int main(void)
{
    for (unsigned n = 1; n <= MAX_THREADS; n = n < 4 ? n + 1 : n * 2)
        check_team(n);
    check_idle();
    report_cost();
    check_failures();
    return done_testing();
}
