/* SPDX-License-Identifier: MIT */
/* check-pool.c - the thread pool and the barrier */
#include "config.h"
#include "base/barrier.h"
#include "base/affinity.h"
#include "gguf/pool.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifndef _WIN32
#include <sys/mman.h>
#include <sys/wait.h>
#endif

enum { MAX_THREADS = 8, MOST_THREADS = 128 };

struct job {
    unsigned calls[MOST_THREADS]; /* not atomic: each member writes its own */
    unsigned nth;
    struct gg_barrier *barrier;
    uint64_t sum[MOST_THREADS];
    unsigned n_rounds, bad;
};

static void count_calls(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    j->calls[ith]++;
    if (ith == 0)
        j->nth = nth;
}

/* In each round every member adds the number that its neighbour wrote in the
 * round before. If one of them passes a barrier early, the sum is wrong, and
 * ThreadSanitizer reports a race. */
static void pass_ring(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    for (unsigned r = 0; r < j->n_rounds; r++) {
        uint64_t v = j->sum[(ith + 1) % nth];
        gg_barrier_wait(j->barrier);
        j->sum[ith] = v + 1;
        gg_barrier_wait(j->barrier);
    }
}

/* Workers have room for the largest frames of kernels, whatever the system's
 * default is (with musl 128 KiB). */
static void fill_stack(void *user, unsigned ith, unsigned nth)
{
    enum { SIZE = 700 * 1024, PAGE = 4096 };
    volatile char room[SIZE];
    struct job *j = user;
    (void)nth;
    for (int i = SIZE - 1; i >= 0; i -= PAGE)
        room[i] = 1;
    j->calls[ith] += (unsigned)room[SIZE - 1];
}

static void check_stack(void)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct job j = { .nth = 0 };
    p.n_threads = 2;
    if (gguf_pool_create(&pool, &p, NULL) != GGUF_OK)
        exit(99);
    gguf_pool_run(pool, (struct gguf_pool_callback){ fill_stack, &j });
    ok(j.calls[0] == 1 && j.calls[1] == 1, "700 KiB on a worker's stack");
    gguf_pool_destroy(pool);
}

/* ---- signals that a thread raises by itself ---- */

#ifdef _WIN32
static void check_bus_error(void)
{
    skip("Windows refuses to cut off a mapped file");
}
#else
static const volatile char *cut_off;

static void read_page(void *user, unsigned ith, unsigned nth)
{
    (void)user;
    if (ith == nth - 1)
        (void)*cut_off;
}

static void on_bus_error(int number)
{
    (void)number;
    _exit(42);
}

/* The program's handler is called if a worker reads a mapped file that was
 * truncated. Runs in a child process. */
static void check_bus_error(void)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        FILE *f = tmpfile();
        size_t size = (size_t)sysconf(_SC_PAGESIZE);
        void *m = f && !ftruncate(fileno(f), (off_t)size)
                      ? mmap(NULL, size, PROT_READ, MAP_SHARED, fileno(f), 0)
                      : MAP_FAILED;
        p.n_threads = 2;
        signal(SIGBUS, on_bus_error);
        if (m == MAP_FAILED || ftruncate(fileno(f), 0) ||
            gguf_pool_create(&pool, &p, NULL) != GGUF_OK)
            _exit(99);
        cut_off = m;
        gguf_pool_run(pool, (struct gguf_pool_callback){ read_page, NULL });
        _exit(0);
    }
    ok(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 42,
       "a file cut off under a worker: the program's handler runs");
}

#endif

static void check_team(unsigned n)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct gguf_error err;
    p.n_threads = n;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_OK &&
           gguf_pool_n_threads(pool) == n,
       "a pool of %u", n);
    struct job j = { .nth = 0 };
    for (int i = 0; i < 1000; i++)
        gguf_pool_run(pool, (struct gguf_pool_callback){ count_calls, &j });
    bool each = j.nth == n;
    for (unsigned i = 0; i < n; i++)
        each = each && j.calls[i] == 1000;
    ok(each, "1000 jobs, every member of %u once each", n);

    /* once spinning, once sleeping at once */
    for (unsigned spin = 0; spin <= 200; spin += 200) {
        struct gg_barrier b;
        ok(gg_barrier_init(&b, n, spin, &err) == GGUF_OK, "a barrier");
        j = (struct job){ .barrier = &b, .n_rounds = 2000 };
        gguf_pool_run(pool, (struct gguf_pool_callback){ pass_ring, &j });
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

/* Far more members than processors. Waiting members must sleep: otherwise each
 * would use a processor's time slice to look at the others. Between two
 * barriers a member then costs one or two switches, some microseconds. */
static void check_crowd(unsigned n)
{
    enum { ROUNDS = 100 };
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct gg_barrier b;
    p.n_threads = n;
    if (gguf_pool_create(&pool, &p, NULL) != GGUF_OK ||
        gg_barrier_init(&b, n, gg_barrier_spin(n), NULL) != GGUF_OK)
        exit(99);
    struct job j = { .barrier = &b, .n_rounds = ROUNDS };
    const double t0 = cpu_seconds();
    gguf_pool_run(pool, (struct gguf_pool_callback){ pass_ring, &j });
    const double each = (cpu_seconds() - t0) / (2.0 * ROUNDS * n);
    bool all = true;
    for (unsigned i = 0; i < n; i++)
        all = all && j.sum[i] == ROUNDS;
    ok(all, "%u rounds of %u members", 2 * ROUNDS, n);
    printf("# processor time of a member at a barrier: %.1f us\n", each * 1e6);
    if (gguf_cpu_count() < n && !SCRATCH_SANITIZED)
        ok(each < 100e-6, "%u members on %u processors: less than 100 us", n,
           gguf_cpu_count());
    gg_barrier_fini(&b);
    gguf_pool_destroy(pool);
}

static void check_idle(void)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    p.n_threads = 2;
    if (gguf_pool_create(&pool, &p, NULL) != GGUF_OK)
        exit(99);
    struct job j = { .nth = 0 };
    gguf_pool_run(pool, (struct gguf_pool_callback){ count_calls, &j });
    double t0 = cpu_seconds();
    nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 * 1000 }, NULL);
    double used = cpu_seconds() - t0;
    printf("# processor time of an idle pool in 100 ms: %.3f ms\n",
           used * 1e3);
    ok(used < 0.001, "an idle pool sleeps: less than 1 ms");
    gguf_pool_destroy(pool);
}

static void report_cost(void)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct gg_barrier b;
    p.n_threads = 2;
    if (gguf_pool_create(&pool, &p, NULL) != GGUF_OK ||
        gg_barrier_init(&b, 2, gg_barrier_spin(2), NULL) != GGUF_OK)
        exit(99);
    struct job j = { .barrier = &b, .n_rounds = 20000 };
    struct timespec a, z;
    clock_gettime(CLOCK_MONOTONIC, &a);
    gguf_pool_run(pool, (struct gguf_pool_callback){ pass_ring, &j });
    clock_gettime(CLOCK_MONOTONIC, &z);
    double s =
        (double)(z.tv_sec - a.tv_sec) + 1e-9 * (double)(z.tv_nsec - a.tv_nsec);
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
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    p.n_threads = GGUF_POOL_MAX_THREADS + 1;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_E_INVALID && !pool &&
           strstr(err.message, "513"),
       "too many threads: %s", err.message);
    const struct gguf_allocator none = { .struct_size =
                                             sizeof(struct gguf_allocator),
                                         .alloc = no_memory };
    p.n_threads = 2;
    p.allocator = &none;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_E_NOMEM && !pool,
       "no memory: %s", err.message);
    gguf_pool_destroy(NULL);
    struct job j = { .nth = 0 };
    gguf_pool_run(NULL, (struct gguf_pool_callback){ count_calls, &j });
    ok(j.nth == 1 && j.calls[0] == 1 && gguf_pool_n_threads(NULL) == 1,
       "no pool: the calling thread");
    ok(gguf_cpu_count() >= 1, "%u processors", gguf_cpu_count());
}

/* --- places --------------------------------------------------------------- */

static bool is_list(const char *text, uint64_t low, unsigned n)
{
    struct gg_affinity_cpu_set s;
    return gg_affinity_cpu_set_parse(&s, text) && s.bits[0] == low &&
           gg_affinity_cpu_set_count(&s) == n;
}

static void check_lists(void)
{
    struct gg_affinity_cpu_set s;
    ok(is_list("0-3,8\n", 0x10F, 5) && is_list("", 0, 0) &&
           is_list("\n", 0, 0) && is_list("5", 32, 1) &&
           is_list("0,0-1,1", 3, 2) && is_list("62-65", UINT64_C(3) << 62, 4),
       "lists of processors");
    ok(is_list("1023-99999999999,1", 2, 2) && is_list("4096", 0, 0),
       "numbers beyond the last are left out");
    static const char *const bad[] = { "-1",  "1-",   "3-1", "a",
                                       "1 2", "1,,2", ",",   "0x1" };
    bool refused = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused = refused && !gg_affinity_cpu_set_parse(&s, bad[i]);
    ok(refused, "malformed lists");
}

static void write_file(const char *root, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = text ? fopen(path, "wb") : NULL;
    if (text ? !f || fputs(text, f) < 0 || fclose(f)
             : gg_os_make_folder(path) != 0)
        exit(99);
}

/* A machine with three nodes. The second has no memory; the others have the
 * processors that this process may use. */
static void check_nodes(void)
{
    char root[] = "/tmp/gguf-nodes-XXXXXX", cpu[2][16];
    static struct gg_affinity_nodes n;
    gg_affinity_nodes_read(&n, "/nonexistent");
    ok(n.n == 1 && gg_affinity_cpu_set_count(&n.cpus[0]) == gguf_cpu_count(),
       "no nodes: one");
    ok(gguf_numa_node_count() >= 1, "%u nodes here", gguf_numa_node_count());
    unsigned first = 0;
    while (!(n.cpus[0].bits[first / 64] >> first % 64 & 1))
        first++;
    if (!scratch_make(root))
        exit(99);
    snprintf(cpu[0], sizeof cpu[0], "%u\n", first);
    snprintf(cpu[1], sizeof cpu[1], "%u-1023\n", first + 1);
    write_file(root, "has_memory", "0,2\n");
    write_file(root, "node0", NULL);
    write_file(root, "node1", NULL);
    write_file(root, "node2", NULL);
    write_file(root, "node0/cpulist", cpu[0]);
    write_file(root, "node1/cpulist", cpu[0]);
    write_file(root, "node2/cpulist", cpu[1]);
    gg_affinity_nodes_read(&n, root);
    const unsigned want = gguf_cpu_count() > 1 ? 2 : 1;
    ok(n.n == want && n.number[want - 1] == 2 * (want - 1) &&
           gg_affinity_cpu_set_count(&n.cpus[0]) == 1 &&
           (want < 2 ||
            gg_affinity_cpu_set_count(&n.cpus[1]) == gguf_cpu_count() - 1),
       "nodes with memory and with processors of ours");
    struct gg_affinity_cpu_set where[5];
    n.n = 2;
    gg_affinity_nodes(where, 5, &n);
    bool spread = true;
    for (int i = 0; i < 5; i++)
        spread = spread && !memcmp(&where[i], &n.cpus[i >= 3], sizeof *where);
    ok(spread, "five members on two nodes: three and two");
    ok(scratch_remove(root), "and away");
}

#if defined(HAVE_PTHREAD_SETAFFINITY_NP) && defined(HAVE_SCHED_GETAFFINITY)
struct at {
    int cpu[MAX_THREADS];
};

static void note_cpu(void *user, unsigned ith, unsigned nth)
{
    (void)nth;
#ifdef __linux__
    ((struct at *)user)->cpu[ith] = sched_getcpu();
#else
    ((struct at *)user)->cpu[ith] = -1;
#endif
}

static void check_binding(void)
{
    struct gguf_pool *pool;
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct gguf_error err;
    struct at at;
    cpu_set_t before;
    unsigned have[2] = { 0, 0 }, n = 0;
    sched_getaffinity(0, sizeof before, &before);
    for (unsigned i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &before))
            have[n++] = i;
    p.n_threads = 4;
    p.bind = GGUF_BIND_CPUS;
    p.cpus = have;
    p.n_cpus = n;
    bool right = gguf_pool_create(&pool, &p, &err) == GGUF_OK;
    for (int r = 0; right && r < 50; r++) {
        gguf_pool_run(pool, (struct gguf_pool_callback){ note_cpu, &at });
        for (unsigned i = 1; i < 4; i++)
            right = right && at.cpu[i] == (int)have[i % n];
    }
    ok(right, "members run on their processors");
    ok(gguf_pool_bind_caller(pool, &err) == GGUF_OK &&
           sched_getcpu() == (int)have[0],
       "and the caller, if it wants");
    gguf_pool_destroy(pool);
    sched_setaffinity(0, sizeof before, &before);
    const unsigned far[] = { 1023 }, beyond[] = { 5000 };
    p.n_cpus = 1;
    p.cpus = far;
    if (CPU_ISSET(1023, &before))
        skip("there are 1024 processors");
    else
        ok(gguf_pool_create(&pool, &p, &err) != GGUF_OK && !pool, "%s",
           err.message);
    p.cpus = beyond;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_E_INVALID && !pool, "%s",
       err.message);
    p.n_cpus = 0;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_E_INVALID && !pool, "%s",
       err.message);
    p.bind = GGUF_BIND_NODES;
    ok(gguf_pool_create(&pool, &p, &err) == GGUF_OK &&
           gguf_pool_bind_caller(pool, &err) == GGUF_OK,
       "spread over nodes");
    gguf_pool_destroy(pool);
    sched_setaffinity(0, sizeof before, &before);
}
#else
static void check_binding(void)
{
    skip("threads cannot be bound here");
}
#endif

static void check_policy(void)
{
    struct gguf_error err;
    if (gguf_numa_node_count() < 2) {
        ok(gguf_numa_set_policy(GGUF_NUMA_INTERLEAVE, &err) == GGUF_OK,
           "on one node there is nothing to set");
        skip("memory of several nodes: there is one");
        return;
    }
    ok(gguf_numa_set_policy(GGUF_NUMA_INTERLEAVE, &err) == GGUF_OK &&
           gguf_numa_set_policy(GGUF_NUMA_LOCAL, &err) == GGUF_OK,
       "memory is spread, and is not");
}

int main(void)
{
    check_bus_error(); /* before there are threads */
    check_lists();
    check_nodes();
    check_binding();
    check_policy();
    for (unsigned n = 1; n <= MAX_THREADS; n = n < 4 ? n + 1 : n * 2)
        check_team(n);
    check_crowd(64);
    check_crowd(MOST_THREADS);
    check_stack();
    check_idle();
    report_cost();
    check_failures();
    return done_testing();
}
