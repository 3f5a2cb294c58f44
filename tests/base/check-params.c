/* check-params.c - structures of parameters from older and newer programs */
#include "config.h"
#include "base/params.h"
#include "gguf/cpu.h"
#include "gguf/gguf.h"
#include "tests/tap.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    /* what an older program has, and not a byte behind it */
    size_t old = offsetof(struct sample, b);
    struct sample *exact = malloc(old);
    memcpy(exact, &given, old);
    memcpy(exact, &old, sizeof old);
    ok(gg_params_take(&own, sizeof own, exact, "sample", &err) == GGUF_OK &&
           own.struct_size == sizeof own && own.a == 3 && own.b == 2 &&
           !strcmp(own.late, "default"),
       "an older program: what it does not have is the default");
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
       "to a newer program: what it knows more of stays");
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

/* Every function that takes a structure looks at its size first. */
static void test_functions(void)
{
    struct gguf_error err;
    void *p[32] = { NULL };
    size_t n = 0;
    const size_t size = 1 << 20; /* of no structure */
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
    REFUSES(gguf_split_open((struct gguf_split **)&p[11], "/", given, &err));
    REFUSES(gguf_path_verify("/", given, NULL, NULL, NULL, &err));
    REFUSES(
        gguf_writer_create((struct gguf_writer **)&p[2], NULL, given, &err));
    REFUSES(gguf_ctx_create((struct gguf_ctx **)&p[3], given, &err));
    REFUSES(gguf_cpu_driver_create((struct gguf_driver **)&p[4], given, &err));
    REFUSES(gguf_quant_create((struct gguf_quant **)&p[5], "/", given, &err));
    REFUSES(gguf_vocab_create((struct gguf_vocab **)&p[6], NULL, given, &err));
    REFUSES(gguf_model_open((struct gguf_model **)&p[7], NULL, given, &err));
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
    bool none = true;
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        none &= !p[i];
    ok(none, "none of %zu made anything", n);
}

/* The last sizeof(size_t) bytes before memory that cannot be read: what a
 * program gives that knows of no member. */
static void test_no_byte_behind(void)
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
    struct gguf_split *set;
    ok(gguf_file_open(&file, nowhere, given, NULL) == GGUF_E_IO,
       "gguf_file_open reads no more than is given");
    ok(gguf_split_open(&set, nowhere, given, NULL) == GGUF_E_IO,
       "nor gguf_split_open");
    ok(gguf_split_open(&set, "/dev", given, NULL) == GGUF_E_NOTFOUND,
       "of a folder");
    ok(gguf_path_verify(nowhere, given, NULL, NULL, NULL, NULL) == GGUF_E_IO,
       "nor gguf_path_verify");
    ok(gguf_path_verify("/dev", given, NULL, NULL, NULL, NULL) ==
           GGUF_E_NOTFOUND,
       "of a folder");
    munmap(two, 2 * page);
}

int main(void)
{
    test_take();
    test_give();
    test_functions();
    test_no_byte_behind();
    return done_testing();
}
