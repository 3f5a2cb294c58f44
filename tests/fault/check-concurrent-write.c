/* SPDX-License-Identifier: MIT */
/* check-concurrent-write.c - files that another process changes while they are
 * read
 *
 * Tools map files, so another process can change any byte at any time. One
 * process keeps writing values typical of counts and lengths to random places
 * in a model's header, and restores the bytes. Meanwhile every way to read the
 * file runs. Each run must end by itself with status 0 or 1: no signal, no
 * hang, no report of a sanitizer. GGUF_TEST_LONG makes 200 runs of each.
 */
#include "config.h"
#include "tests/fault/program.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const commands[] = {
    "gguf-info x.gguf",
    "gguf-info --json x.gguf",
    "gguf-info --markdown x.gguf",
    "gguf-info --arrays=all --strings=all x.gguf",
    "gguf-info --check x.gguf",
    "gguf-info --stats x.gguf",
    "gguf-info --hash x.gguf",
    "gguf-info --memory x.gguf",
    "gguf-info --diff x.gguf y.gguf",
    "gguf-info --diff y.gguf x.gguf",
    "gguf-info --key test.nested x.gguf",
    "gguf-info --key tokenizer.ggml.tokens x.gguf",
    "gguf-edit --dry-run --set general.name=New --delete test.big x.gguf",
    "gguf-edit -f --set general.name=New -o out x.gguf",
    "gguf-edit -f --to-endian big -o out x.gguf",
    "gguf-split -f --split-max-tensors 3 x.gguf out",
    "gguf-quantize -f --allow-requantize x.gguf out Q8_0 1",
    "gguf-quantize -n --explain --allow-requantize x.gguf out Q4_K_M 1",
    "gguf-imatrix --force -o out x.gguf",
    "gguf-imatrix -m x.gguf y.imatrix",
    "gguf-eval --print-plan -c 16 -m x.gguf",
    "gguf-ppl --chunks=1 -c 16 -t 1 -m x.gguf -f text",
};

/* ------------------------------------------------------- the scribbler --- */

/* Bytes at the start of each file that hold names and counts. */
enum { HEADER = 1500, IMATRIX_HEADER = 400, TINY_HEADER = 48900 };

static void put_bytes(int fd, const char *bytes, size_t n, off_t at)
{
    if (pwrite(fd, bytes, n, at) != (ssize_t)n)
        _exit(98);
}

/* A wrong length: off by a little, or as wrong as possible. */
static uint64_t odd_value(uint64_t was)
{
    static const uint64_t odd[] = {
        0, 1, 7, 8, 255, 4096, UINT32_MAX, UINT64_MAX, (uint64_t)INT64_MAX
    };
    uint64_t k = rnd_below(16);
    return k < sizeof odd / sizeof *odd ? odd[k]
           : k < 12                     ? was + rnd_below(64) - 32
                                        : rnd64();
}

static void wait_a_moment(uint64_t turns)
{
    for (volatile uint64_t k = rnd_below(turns); k; k--)
        continue;
}

/* Write one to eight bytes at random places and restore them soon after: most
 * faults need a value that is read twice. Ends when its parent does. */
static void scribble_header(const char *path, const struct bytes *good,
                            size_t header, uint64_t seed)
{
    pid_t parent = getppid();
    int fd = open(path, O_WRONLY);
    tap_rng ^= seed * UINT64_C(0x2545F4914F6CDD1D);
    while (fd >= 0 && getppid() == parent) {
        for (int i = 0; i < 2000; i++) {
            size_t n = (size_t)1 << rnd_below(4);
            off_t at = (off_t)rnd_below(header - n);
            uint64_t v = 0;
            memcpy(&v, good->data + at, n);
            v = odd_value(v);
            put_bytes(fd, (const char *)&v, n, at);
            wait_a_moment(2000);
            put_bytes(fd, good->data + at, n, at);
            wait_a_moment(20000);
        }
    }
    _exit(0);
}

/* ------------------------------------------------------------ the runs --- */

struct tally {
    unsigned done, failed, bad;
};

static void run_once(const char *args, struct tally *t)
{
    static const char *const env[] = { NULL };
    struct program_run r;
    program_run(&r, "folder", args, "", env);
    t->done += r.rc == 0;
    t->failed += r.rc == 1;
    if (r.rc != 0 && r.rc != 1 && t->bad++ < 3)
        printf("# status %d, signal %d: %.300s\n", r.rc,
               WIFSIGNALED(r.status) ? WTERMSIG(r.status) : 0,
               r.err.data ? r.err.data : "");
    program_run_free(&r);
}

static void try_file(const char *what, const char *path, size_t header,
                     unsigned rounds)
{
    struct bytes good = bytes_of(path);
    char line[PROGRAM_PATH + 40];
    if (!good.data || good.size < header) {
        skip("%s: not here", what);
        return;
    }
    snprintf(line, sizeof line, "rm -f out*; cp '%s' x.gguf", path);
    program_shell("folder", line);
    pid_t pid = fork();
    if (pid == 0)
        scribble_header(program_place("folder/x.gguf"), &good, header, 1);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct tally t = { 0 };
        for (unsigned k = 0; k < rounds; k++)
            run_once(commands[i], &t);
        ok(!t.bad, "%s: %s: %u runs done, %u failed", what, commands[i],
           t.done, t.failed);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    free(good.data);
}

int main(void)
{
    const char *more = getenv("GGUF_TEST_LONG"), *srcdir = getenv("srcdir");
    unsigned rounds = more && *more ? 200 : 4;
    char tiny[PROGRAM_PATH];
    if (!program_begin("check-concurrent-write")) {
        skip("programs cannot be started here");
        return done_testing();
    }
    /* lets the test tell a sanitizer's report from an ordinary failure */
    setenv("ASAN_OPTIONS", "exitcode=99", 1);
    setenv("UBSAN_OPTIONS", "halt_on_error=1:exitcode=99", 1);
    setenv("TSAN_OPTIONS", "exitcode=99", 1);
    program_shell("folder",
                  "mkmodel ../model n=8 rows=4 kv=20 weights=1 && "
                  "mkmodel y.gguf n=8 rows=4 kv=20 weights=1 && "
                  "mkimatrix i.dat 1 256 && mkimatrix j.dat 1 256 && "
                  "gguf-imatrix -q -o ../imatrix i.dat && "
                  "gguf-imatrix -q -o y.imatrix j.dat && "
                  "for i in 1 2 3 4 5 6 7 8 9; do echo $i times is enough; "
                  "done >text");
    try_file("a model", program_place("model"), HEADER, rounds);
    try_file("importance data", program_place("imatrix"), IMATRIX_HEADER,
             rounds);
    snprintf(tiny, sizeof tiny, "%s/share/tiny-llama/tiny-llama-f16.gguf",
             srcdir ? srcdir : ".");
    try_file("a model with a vocabulary", tiny, TINY_HEADER, rounds / 2);
    program_end();
    return done_testing();
}
