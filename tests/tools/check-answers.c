/* SPDX-License-Identifier: MIT */
/* check-answers.c - every tool on every file of the hostile collection
 *
 * The table has a row per file: the answers of opening, of tools that read
 * tensor data, of loading for evaluation, of reading it as importance data,
 * and whether a warning is expected. Each tool runs on each file as users run
 * it. Every run must end by itself within a second of processor time and 64
 * MiB, print no raw escape, and refuse with one line that names the file, and
 * for a file that does not open, the byte.
 */
#include "config.h"
#include "tests/hostile/hostile.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitizers and emulators need more time and memory. */
#define MEASURES    (!SCRATCH_SANITIZED)
#define MAX_SECONDS 1.0
#define MAX_MEMORY  (64L << 10) /* kB */
enum { MAX_ARGS = 16 };

static char dir[64], bin[4096], libs[4200], table_dir[4096];
static const char *emulator; /* needed by tools of a cross build; NULL: none */

/* A row of the table, and the faults found for its file. */
struct row {
    char *name, *expect, *class, *use, *model, *warn, *extra;
    char path[4400], wrong[2048];
};

struct answer {
    int status;     /* -1: ended by a signal */
    double seconds; /* processor time */
    long memory;    /* largest resident memory in kB */
    char err[8192];
    unsigned n_lines;  /* lines of err */
    bool escapes, out; /* raw escapes; anything on standard output */
};

static void note_fault(struct row *r, const char *tool, const char *what,
                       const char *detail)
{
    size_t n = strlen(r->wrong);
    snprintf(r->wrong + n, sizeof r->wrong - n, "%s%s: %s%s%.300s",
             n ? "; " : "", tool, what, *detail ? ": " : "", detail);
}

static char *in_dir(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", dir, name);
    return path;
}

/* Read the output of a run and record its properties. */
static void read_output(const char *name, struct answer *a, bool is_err)
{
    char path[128], buf[8192];
    FILE *f = fopen(in_dir(path, name), "rb");
    size_t n, kept = 0;
    while (f && (n = fread(buf, 1, sizeof buf, f)) > 0) {
        a->escapes |= memchr(buf, '\033', n) != NULL;
        a->out |= !is_err;
        for (size_t i = 0; is_err && i < n; i++) {
            a->n_lines += buf[i] == '\n';
            if (kept + 1 < sizeof a->err)
                a->err[kept++] = buf[i];
        }
    }
    a->err[is_err ? kept : strlen(a->err)] = '\0';
    if (f)
        fclose(f);
}

static void redirect_output(const char *name, int fd)
{
    char path[128];
    int f = open(in_dir(path, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (f < 0 || dup2(f, fd) < 0)
        _exit(126);
}

/* Replace this process by a tool. argv[0] is its name; ended by NULL. */
static void exec_tool(const char *const *argv)
{
    char program[4200];
    const char *all[MAX_ARGS + 2] = { emulator, program };
    snprintf(program, sizeof program, "%s/%s", bin, argv[0]);
    for (int i = 1; i < MAX_ARGS && argv[i]; i++)
        all[i + 1] = argv[i];
    if (emulator)
        execvp(emulator, (char *const *)(uintptr_t)all);
    else
        execv(program, (char *const *)(uintptr_t)argv);
}

/* Run a tool with these arguments. */
static struct answer run_tool(const char *const *argv)
{
    struct answer a = { .status = -1 };
    struct rusage u;
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit cpu = { 20, 20 };
        if (emulator)
            cpu.rlim_cur = cpu.rlim_max = 200;
        redirect_output("out", 1);
        redirect_output("err", 2);
        setrlimit(RLIMIT_CPU, &cpu);
        if (*libs)
            setenv("LD_LIBRARY_PATH", libs, 1);
        exec_tool(argv);
        _exit(127);
    }
    while (pid > 0 && wait4(pid, &status, 0, &u) < 0 && errno == EINTR)
        ;
    if (pid <= 0)
        return a;
    if (WIFEXITED(status))
        a.status = WEXITSTATUS(status);
    a.seconds = (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
                1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    a.memory = u.ru_maxrss;
    read_output("out", &a, false);
    read_output("err", &a, true);
    return a;
}

/* Check the rules for every run. */
static void judge_run(struct row *r, const char *tool, const struct answer *a)
{
    char number[64];
    if (a->status != 0 && a->status != 1)
        note_fault(r, tool, "ended otherwise", a->err);
    if (a->escapes)
        note_fault(r, tool, "a raw escape", "");
    snprintf(number, sizeof number, "%.2f s, %ld kB", a->seconds, a->memory);
    if (MEASURES && !emulator &&
        (a->seconds >= MAX_SECONDS || a->memory > MAX_MEMORY))
        note_fault(r, tool, "too much", number);
}

/* want: "accept", "reject", or "-" for either. A refusal is one line that
 * begins with the tool's name, and gives the byte if the file does not open. */
static void judge_answer(struct row *r, const char *tool,
                         const struct answer *a, const char *want)
{
    char begin[64];
    snprintf(begin, sizeof begin, "gguf-%s: ", tool);
    judge_run(r, tool, a);
    if (!strcmp(want, "accept") && a->status)
        note_fault(r, tool, "refused", a->err);
    if (!strcmp(want, "reject") && !a->status)
        note_fault(r, tool, "accepted", "");
    if (a->status == 1 &&
        (strncmp(a->err, begin, strlen(begin)) || a->n_lines != 1))
        note_fault(r, tool, "not one line", a->err);
    if (a->status == 1 && !strcmp(r->expect, "reject") &&
        !strstr(a->err, "byte "))
        note_fault(r, tool, "no byte", a->err);
}

/* A refused run leaves no output. */
static void check_outputs(struct row *r, const char *tool, const char *file,
                          const struct answer *a)
{
    char path[128];
    struct stat sb;
    bool there = stat(in_dir(path, file), &sb) == 0;
    if (there != (a->status == 0))
        note_fault(r, tool,
                   there ? "refused, and left an output" : "no output", "");
    unlink(path);
}

/* Is it a shard of a set with missing or foreign shards? Two of them make a
 * sound model here, whichever is named. */
static bool is_of_broken_set(const struct row *r)
{
    return !strcmp(r->class, "split") && !strcmp(r->model, "reject") &&
           strncmp(r->name, "split-start-second/", 19) &&
           strncmp(r->name, "split-count-zero/", 17);
}

static void test_info(struct row *r)
{
    struct answer a = run_tool((const char *[]){ "gguf-info", r->path, NULL });
    judge_answer(r, "info", &a, r->expect);
    if (a.status && a.out)
        note_fault(r, "info", "refused, and printed", "");
    if (!strcmp(r->warn, "yes") && !strstr(a.err, ": warning: "))
        note_fault(r, "info", "no warning", "");
    a = run_tool((const char *[]){ "gguf-info", "-q", "--alone", "--check",
                                   "--hash", r->path, NULL });
    judge_run(r, "info --check", &a); /* 1: the file has errors */
    if (!a.out)
        note_fault(r, "info --check", "no findings", a.err);
    if (!strcmp(r->expect, "reject") && (!a.status || !strstr(a.err, "byte ")))
        note_fault(r, "info --check", "accepted", a.err);
}

/* Run the tools that read and write tensor data. Tools that need the whole
 * model refuse an incomplete set. */
static void test_data_tools(struct row *r)
{
    char out[128];
    struct answer a =
        run_tool((const char *[]){ "gguf-quantize", "-q", r->path,
                                   in_dir(out, "q.gguf"), "q8_0", "1", NULL });
    judge_answer(r, "quantize", &a, is_of_broken_set(r) ? "reject" : r->use);
    check_outputs(r, "quantize", "q.gguf", &a);
    a = run_tool((const char *[]){ "gguf-edit", "--set", "test.edit=1", "-o",
                                   in_dir(out, "e.gguf"), r->path, NULL });
    judge_answer(r, "edit", &a, strcmp(r->expect, "reject") ? "-" : "reject");
    check_outputs(r, "edit", "e.gguf", &a);
    a = run_tool((const char *[]){ "gguf-split", "-q", "--dry-run",
                                   "--split-max-tensors", "1", r->path,
                                   in_dir(out, "s"), NULL });
    judge_answer(r, "split", &a, strcmp(r->use, "reject") ? "-" : "reject");
}

static void test_loading(struct row *r)
{
    char text[128];
    struct answer a = run_tool((const char *[]){
        "gguf-ppl", "-q", "-m", r->path, "-f", in_dir(text, "text"), "-c",
        "16", "--chunks", "1", "-t", "1", NULL });
    judge_answer(r, "ppl", &a, r->model);
}

static void test_imatrix(struct row *r)
{
    char out[128], sound[4200];
    const char *want = strstr(r->extra, "imatrix:");
    if (!want)
        return;
    snprintf(sound, sizeof sound, "%s/model-ok.gguf", table_dir);
    struct answer a = run_tool(
        (const char *[]){ "gguf-quantize", "-q", "--imatrix", r->path, sound,
                          in_dir(out, "i.gguf"), "q4_0", "1", NULL });
    bool refused = !strncmp(want + 8, "reject", 6);
    judge_run(r, "imatrix", &a);
    if ((a.status == 1) != refused)
        note_fault(r, "imatrix", refused ? "accepted" : "refused", a.err);
    if (a.status == 1 && a.n_lines != 1)
        note_fault(r, "imatrix", "not one line", a.err);
    check_outputs(r, "imatrix", "i.gguf", &a);
}

static bool read_row(struct row *r, char *line)
{
    char *col[9];
    for (int i = 0; i < 9; i++) {
        col[i] = line;
        line += strcspn(line, "\t\n");
        if (*line)
            *line++ = '\0';
    }
    *r = (struct row){ .name = col[0],
                       .expect = col[1],
                       .class = col[3],
                       .use = col[5],
                       .model = col[6],
                       .warn = col[7],
                       .extra = col[8] };
    snprintf(r->path, sizeof r->path, "%s/%s", table_dir, r->name);
    return r->name[0] && r->name[0] != '#';
}

/* Find the programs, behind libtool's scripts if there are some. */
static void find_tools(void)
{
    const char *top = getenv("builddir");
    emulator = getenv("EMULATOR");
    if (emulator && !*emulator)
        emulator = NULL;
    char path[4200];
    snprintf(bin, sizeof bin, "%s", top ? top : ".");
    snprintf(path, sizeof path, "%s/.libs/gguf-info", bin);
    if (access(path, X_OK) == 0) {
        snprintf(libs, sizeof libs, "%s/.libs", bin);
        snprintf(bin, sizeof bin, "%.4080s", libs);
    }
}

/* Result of a row. Workers write it to shared memory. */
struct verdict {
    bool judged;
    char name[128], wrong[2048];
};
enum { MAX_ROWS = 1000, WORKERS = 2 };

static bool make_text(void)
{
    char path[128];
    FILE *f = fopen(in_dir(path, "text"), "w");
    for (int i = 0; f && i < 64; i++)
        fputs("a b c ", f);
    return f && fclose(f) == 0;
}

static void remove_folder(void)
{
    static const char *const names[] = { "text", "out", "err" };
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_dir(path, names[i]));
    rmdir(dir);
}

/* Test every WORKERS-th row of the table, in a folder of the worker. */
static void run_worker(unsigned worker, struct verdict *verdicts)
{
    char line[4096], table[4200];
    static struct row r;
    unsigned n = 0;
    const size_t len = strlen(dir);
    snprintf(dir + len, sizeof dir - len, "/%u", worker);
    snprintf(table, sizeof table, "%s/expect.tsv", table_dir);
    FILE *in = fopen(table, "r");
    if (mkdir(dir, 0700) || !make_text())
        _exit(1);
    while (in && n < MAX_ROWS && fgets(line, sizeof line, in)) {
        if (!read_row(&r, line))
            continue;
        struct verdict *v = &verdicts[n];
        snprintf(v->name, sizeof v->name, "%s", r.name);
        if (n++ % WORKERS != worker)
            continue;
        test_info(&r);
        test_data_tools(&r);
        test_loading(&r);
        test_imatrix(&r);
        snprintf(v->wrong, sizeof v->wrong, "%s", r.wrong);
        v->judged = true;
    }
    remove_folder();
    _exit(0);
}

int main(void)
{
    const char *made = hostile_make();
    const size_t size = MAX_ROWS * sizeof(struct verdict);
    struct verdict *v = mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned n = 0;
    snprintf(table_dir, sizeof table_dir, "%s", made ? made : "");
    snprintf(dir, sizeof dir, "/tmp/check-answers-XXXXXX");
    ok(mkdtemp(dir) && v != MAP_FAILED, "a folder and memory");
    if (v == MAP_FAILED)
        return done_testing();
    find_tools();
    fflush(stdout);
    for (unsigned k = 0; k < WORKERS; k++)
        if (fork() == 0)
            run_worker(k, v);
    while (wait(NULL) > 0)
        ;
    for (; n < MAX_ROWS && *v[n].name; n++) {
        ok(v[n].judged && !*v[n].wrong, "%s", v[n].name);
        if (*v[n].wrong)
            printf("# %s\n", v[n].wrong);
    }
    ok(n > 330, "%u files", n);
    munmap(v, size);
    hostile_remove();
    rmdir(dir);
    return done_testing();
}
