/* SPDX-License-Identifier: MIT */
/* check-params.c - structures of parameters from older and newer programs */
#include "config.h"
#include "base/params.h"
#include "gguf/cpu.h"
#include "gguf/model.h"
#include "tests/tap.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool ignore_finding(void *user, const struct gguf_finding *finding)
{
    (void)user;
    (void)finding;
    return 0;
}

struct sample {
    size_t struct_size;
    int a, b;
    char late[8];
};

static void test_take(void)
{
    const struct sample init = { sizeof init, 1, 2, "default" };
    struct sample own = init, given = { sizeof given, 3, 4, "given" };
    struct gguf_error err;
    ok(gg_params_take(&own, sizeof own, NULL, "sample", &err) == GGUF_OK &&
           !memcmp(&own, &init, sizeof own),
       "nothing is given: defaults");
    ok(gg_params_take(&own, sizeof own, &given, "sample", &err) == GGUF_OK &&
           !memcmp(&own, &given, sizeof own),
       "all is given");
    own = init;
    /* the struct of an older program, and not a byte more */
    size_t old = offsetof(struct sample, b);
    struct sample *exact = malloc(old);
    memcpy(exact, &given, old);
    memcpy(exact, &old, sizeof old);
    ok(gg_params_take(&own, sizeof own, exact, "sample", &err) == GGUF_OK &&
           own.struct_size == sizeof own && own.a == 3 && own.b == 2 &&
           !strcmp(own.late, "default"),
       "an older program: members that it lacks have their defaults");
    free(exact);
    own = init;
    struct {
        struct sample s;
        char more[8];
    } newer = { { sizeof newer, 5, 6, "newer" }, "" };
    ok(gg_params_take(&own, sizeof own, &newer, "sample", &err) == GGUF_OK &&
           own.struct_size == sizeof own && own.a == 5 && own.b == 6 &&
           !strcmp(own.late, "newer"),
       "a newer program that asks for nothing new");
    own = init;
    newer.more[7] = 1;
    ok(gg_params_take(&own, sizeof own, &newer, "sample", &err) ==
               GGUF_E_INVALID &&
           !memcmp(&own, &init, sizeof own),
       "and one that does: %s", err.message);
    size_t bad[] = { 0, sizeof(size_t) - 1, 4097, SIZE_MAX };
    bool good = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        given.struct_size = bad[i];
        good &= gg_params_take(&own, sizeof own, &given, "sample", &err) ==
                    GGUF_E_INVALID &&
                !strncmp(err.message, "sample: struct_size is ", 23) &&
                !memcmp(&own, &init, sizeof own);
    }
    ok(good, "or no size: %s", err.message);
}

static void test_give(void)
{
    const struct sample own = { sizeof own, 3, 4, "given" };
    struct gguf_error err;
    struct {
        struct sample s;
        char more[8];
    } to = { { sizeof to, 0, 0, "" }, "later" };
    ok(gg_params_give(&to, &own, sizeof own, "sample", &err) == GGUF_OK &&
           to.s.struct_size == sizeof to && to.s.a == 3 && to.s.b == 4 &&
           !strcmp(to.s.late, "given") && !strcmp(to.more, "later"),
       "to a newer program: its newer members stay");
    const size_t old = offsetof(struct sample, b);
    char *exact = malloc(old);
    memcpy(exact, &old, sizeof old);
    ok(gg_params_give(exact, &own, sizeof own, "sample", &err) == GGUF_OK &&
           !memcmp(exact, &old, sizeof old) &&
           !memcmp(exact + sizeof old, &own.a, sizeof own.a),
       "to an older one, and not a byte beyond");
    free(exact);
    to.s.struct_size = 0;
    to.s.a = 7;
    ok(gg_params_give(&to, &own, sizeof own, "sample", &err) ==
               GGUF_E_INVALID &&
           to.s.a == 7,
       "to one without a size: %s", err.message);
}

/* Every function that takes a structure checks its size first. */
static void test_functions(void)
{
    struct gguf_error err;
    void *p[32] = { NULL };
    size_t n = 0;
    const size_t size = 1 << 20; /* a size that no structure has */
    const size_t *any = &size;
#define REFUSES(call)                                                         \
    do {                                                                      \
        gguf_error_clear(&err);                                               \
        n++;                                                                  \
        ok((call) == GGUF_E_INVALID && strstr(err.message, "struct_size"),    \
           "%s", err.message);                                                \
    } while (0)
    const void *given = any;
    REFUSES(gguf_pool_create((struct gguf_pool **)&p[0], given, &err));
    REFUSES(gguf_file_open((struct gguf_file **)&p[1], "/", given, &err));
    REFUSES(gguf_file_open((struct gguf_file **)&p[11], "/", given, &err));
    REFUSES(gguf_path_verify(
        "/", given, NULL,
        (struct gguf_finding_callback){ ignore_finding, NULL }, &err));
    REFUSES(
        gguf_writer_create((struct gguf_writer **)&p[2], NULL, given, &err));
    REFUSES(gguf_ctx_create((struct gguf_ctx **)&p[3], given, &err));
    REFUSES(gguf_cpu_driver_create((struct gguf_driver **)&p[4], given, &err));
    REFUSES(gguf_quant_create((struct gguf_quant **)&p[5], "/", given, &err));
    REFUSES(gguf_vocab_create((struct gguf_vocab **)&p[6], NULL, given, &err));
    REFUSES(gguf_model_create((struct gguf_model **)&p[7], NULL, given, &err));
    REFUSES(gguf_sched_create((struct gguf_sched **)&p[8], given, &err));
    REFUSES(
        gguf_session_create((struct gguf_session **)&p[9], NULL, given, &err));
    REFUSES(
        gguf_imatrix_load((struct gguf_imatrix **)&p[10], "/", given, &err));
    REFUSES(gguf_quant_run_many(NULL, NULL, 0, given, &err));
    REFUSES(gguf_scan_run(NULL, NULL, 0, given, NULL, 0, &err));
    struct gguf_ppl sums = GGUF_PPL_INIT;
    REFUSES(gguf_ppl_run(NULL, NULL, 0, given, &sums, &err));
    sums.struct_size = 0;
    REFUSES(gguf_ppl_run(NULL, NULL, 0, NULL, &sums, &err));
    REFUSES(gguf_session_decode(NULL, given, &err));
    struct gguf_stats_params sp = GGUF_INIT(struct gguf_stats_params);
    struct gguf_stats stats = { .struct_size = 0 };
    REFUSES(gguf_stats_tensor(NULL, 0, &sp, &stats, &err));
    bool none = true;
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        none &= !p[i];
    ok(none, "none of %zu made anything", n);
}

/* The last sizeof(size_t) bytes before unreadable memory: the structure of a
 * program that knows no member. */
static void test_no_byte_after(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (two == MAP_FAILED || mprotect(two + page, page, PROT_NONE) != 0)
        exit(99);
    const size_t size = sizeof size;
    const void *given = memcpy(two + page - size, &size, size);
    const char *nowhere = "/nowhere/at/all";
    struct gguf_file *file;
    struct gguf_file *set;
    ok(gguf_file_open(&file, nowhere, given, NULL) == GGUF_E_IO,
       "gguf_file_open reads no more than is given");
    ok(gguf_file_open(&set, nowhere, given, NULL) == GGUF_E_IO,
       "nor gguf_file_open");
    ok(gguf_file_open(&set, "/dev", given, NULL) == GGUF_E_NOTFOUND,
       "of a folder");
    ok(gguf_path_verify(nowhere, given, NULL,
                        (struct gguf_finding_callback){ ignore_finding, NULL },
                        NULL) == GGUF_E_IO,
       "nor gguf_path_verify");
    ok(gguf_path_verify("/dev", given, NULL,
                        (struct gguf_finding_callback){ ignore_finding, NULL },
                        NULL) == GGUF_E_NOTFOUND,
       "of a folder");
    munmap(two, 2 * page);
}

/* Results are written up to the caller's size, and not at all without a size.
 */
static void test_results(void)
{
    struct gguf_imatrix *im;
    struct gguf_error err;
    const float sums[2] = { 1, 2 }, count = 3;
    if (gguf_imatrix_create(&im, NULL, NULL) != GGUF_OK ||
        gguf_imatrix_add(im, "w", 2, 1, sums, &count, NULL) != GGUF_OK)
        exit(99);
    struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
    ok(gguf_imatrix_entry(im, 0, &e, &err) == GGUF_OK && e.n_values == 2 &&
           e.n_mats == 1 &&
           gguf_imatrix_entry(im, 1, &e, &err) == GGUF_E_INVALID,
       "an entry, and none: %s", err.message);
    e.struct_size = offsetof(struct gguf_imatrix_entry, n_mats);
    e.n_values = e.n_mats = 77;
    ok(gguf_imatrix_entry(im, 0, &e, &err) == GGUF_OK && e.n_values == 2 &&
           e.n_mats == 77,
       "of an older program");
    e.struct_size = 0;
    ok(gguf_imatrix_entry(im, 0, &e, &err) == GGUF_E_INVALID,
       "without a size: %s", err.message);
    struct gguf_imatrix_stats s = GGUF_IMATRIX_STATS_INIT;
    ok(gguf_imatrix_stats(im, 0, &s, &err) == GGUF_OK && s.n == 2,
       "figures of one");
    s.struct_size = offsetof(struct gguf_imatrix_stats, sum);
    s.sum = -1;
    ok(gguf_imatrix_stats(im, 0, &s, &err) == GGUF_OK && s.sum == -1,
       "of an older program");
    s.struct_size = 0;
    ok(gguf_imatrix_stats(im, 0, &s, &err) == GGUF_E_INVALID,
       "without a size: %s", err.message);
    gguf_imatrix_destroy(im);
}

static unsigned n_taken;

static void *count_alloc(void *user, size_t size)
{
    (void)user;
    n_taken++;
    return malloc(size);
}

static void count_free(void *user, void *p)
{
    (void)user;
    free(p);
}

/* The allocator is kept, not copied: its size says which members may be used.
 */
static void test_allocator(void)
{
    struct {
        struct gguf_allocator a;
        void (*more)(void);
    } newer = { { .struct_size = sizeof(struct gguf_allocator),
                  .alloc = count_alloc,
                  .free = count_free },
                test_give };
    struct gguf_imatrix *im = NULL;
    newer.a.struct_size = sizeof newer;
    ok(gguf_imatrix_create(&im, &newer.a, NULL) == GGUF_OK && n_taken > 0,
       "an allocator of a newer program");
    gguf_imatrix_destroy(im);
    const size_t bad[] = { 0, sizeof(size_t),
                           offsetof(struct gguf_allocator, user) };
    bool good = true;
    n_taken = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        newer.a.struct_size = bad[i];
        good &= gguf_imatrix_create(&im, &newer.a, NULL) == GGUF_E_NOMEM;
    }
    ok(good && !n_taken, "one that says it has no functions is not called");
}

static enum gguf_status compute_nothing(struct gguf_tensor *t, unsigned ith,
                                        unsigned nth, void *user)
{
    (void)t, (void)ith, (void)nth, (void)user;
    return GGUF_OK;
}

/* Builders of operations keep the first failure in the context. */
static void test_operations(void)
{
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct gguf_error err;
    struct gguf_ctx *ctx;
    cp.mem_size = 1 << 16;
    if (gguf_ctx_create(&ctx, &cp, NULL) != GGUF_OK)
        exit(99);
    struct gguf_tensor *x =
        gguf_tensor_create_3d(ctx, GGUF_DTYPE_F32, 8, 2, 3);
    struct gguf_tensor *pos = gguf_tensor_create_1d(ctx, GGUF_DTYPE_I32, 3);
    struct {
        struct gguf_rope r;
        int32_t more[2];
    } rope = { GGUF_ROPE_INIT, { 0, 0 } };
    struct gguf_rope got;
    rope.r.n_dims = 8;
    rope.r.freq_base = 5;
    rope.r.struct_size = offsetof(struct gguf_rope, freq_base);
    struct gguf_tensor *y = gguf_op_rope(ctx, x, pos, NULL, &rope.r);
    if (y)
        memcpy(&got, y->op_params, sizeof got);
    ok(y && got.struct_size == sizeof got && got.n_dims == 8 &&
           got.freq_base == 10000 && got.beta_fast == 32,
       "a rotation of an older program has the defaults of the others");
    rope.r.struct_size = sizeof rope;
    y = gguf_op_rope(ctx, x, pos, NULL, &rope.r);
    if (y)
        memcpy(&got, y->op_params, sizeof got);
    ok(y && got.freq_base == 5, "a newer one that asks for nothing new");
    struct gguf_custom c = GGUF_CUSTOM_INIT;
    c.compute.fn = compute_nothing;
    c.n_tasks = 7;
    c.struct_size = offsetof(struct gguf_custom, n_tasks);
    y = gguf_op_map_1(ctx, x, &c);
    struct gguf_custom kept;
    if (y)
        memcpy(&kept, y->op_params, sizeof kept);
    ok(y && kept.compute.fn == compute_nothing && kept.n_tasks == 0,
       "a function of an older program");
    c.struct_size = 0;
    ok(!gguf_op_map_1(ctx, x, &c) &&
           gguf_ctx_status(ctx, &err) == GGUF_E_INVALID &&
           strstr(err.message, "gguf_custom: struct_size"),
       "one without a size: %s", err.message);
    gguf_ctx_reset(ctx);
    x = gguf_tensor_create_3d(ctx, GGUF_DTYPE_F32, 8, 2, 3);
    pos = gguf_tensor_create_1d(ctx, GGUF_DTYPE_I32, 3);
    rope.more[1] = 1;
    ok(!gguf_op_rope(ctx, x, pos, NULL, &rope.r) &&
           gguf_ctx_status(ctx, &err) == GGUF_E_INVALID &&
           strstr(err.message, "gguf_rope: struct_size"),
       "a rotation that asks for something new: %s", err.message);
    gguf_ctx_destroy(ctx);
}

/* Structures that are compared byte by byte have no padding. */
_Static_assert(sizeof(struct gguf_rope) ==
                       offsetof(struct gguf_rope, reserved) + 4 &&
                   sizeof(struct gguf_custom) ==
                       offsetof(struct gguf_custom, reserved) + 4,
               "no padding at the end");

int main(void)
{
    test_take();
    test_give();
    test_functions();
    test_results();
    test_allocator();
    test_operations();
    test_no_byte_after();
    return done_testing();
}
