/* SPDX-License-Identifier: MIT */
/* check-opt.c - options: syntax, values, and rules of exclusion */
#include "config.h"
#include "tests/tap.h"
#include "tools/common/opt.h"

#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    bool quiet, json;
    int mode;
    unsigned bits;
    uint32_t n_ctx;
    uint64_t n_chunks, size;
    double tolerance;
    const char *glob, *out;
    unsigned order;
    struct opt_list texts;
    struct gguf_limits limits;
};

#define AT(member) OPT_AT(struct options, member)

static const struct opt_word orders[] = {
    { "name", 7 },
    { "size", 8 },
    { NULL, 0 },
};
static const struct opt_word all[] = { { "all", UINT64_MAX }, { NULL, 0 } };

static const struct opt table[] = {
    { .help = "One:" },
    { "-c --ctx-size", "N", "context", OPT_UINT, AT(n_ctx), .min = 4,
      .max = 5000 },
    { "-ub --ubatch --micro-batch", "N", "batch", OPT_UINT, AT(n_chunks),
      .min = 1, .max = 99, .words = all },
    { "-q --quiet", NULL, "say nothing", OPT_FLAG, AT(quiet) },
    { "-j --json", NULL, "JSON", OPT_FLAG, AT(json),
      OPT_BITS(struct options, bits, 4) },
    { "--fast", NULL, "fast", OPT_FLAG, AT(mode), .value = 2 },
    { "--glob", "[GLOB]", "glob", OPT_STR, AT(glob),
      OPT_BITS(struct options, bits, 1) },
    { "--where", "[GLOB]", "glob, too", OPT_STR, AT(glob),
      OPT_BITS(struct options, bits, 2) },
    { "-o --output", "OUT", "output", OPT_OUT, AT(out) },
    { "--order", "[WORD]", "order", OPT_WORD, AT(order), .words = orders,
      .value = 9 },
    { "--size", "SIZE", "size", OPT_SIZE, AT(size) },
    { "-x --tolerance", "X", "error", OPT_DOUBLE, AT(tolerance), .low = 0,
      .high = 1 },
    { "--add", "TEXT", "one more", OPT_LIST, AT(texts), .value = 1 },
    { "--remove", "TEXT", "one more", OPT_LIST, AT(texts), .value = 2 },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(limits) },
    { "-of --olden --ubershape", "N", "use -o", OPT_REFUSED, OPT_NO_MEMBER },
    { .names = NULL },
};

static const struct opt_rule rules[] = {
    { "--json", OPT_EXCLUDES, "--fast --size" },
    { "--glob --order --size", OPT_EXCLUDES, NULL },
    { "--tolerance", OPT_NEEDS, "--ctx-size --output" },
    { .a = NULL },
};
static const struct opt_rule output[] = {
    { NULL, OPT_NEEDS, "--output --add --remove" },
    { .a = NULL },
};

static const struct opt_tool tool = { "t",   "[OPTION]...", "Tests.", table,
                                      rules, "[FILE...]",   NULL };
static const struct opt_tool strict = { "t",      "[OPTION]... IN OUT [TYPE]",
                                        "Tests.", table,
                                        output,   "IN OUT [TYPE]",
                                        NULL };

static void print_values(const struct options *o, char *const *operand, int n)
{
    printf("%s%s", o->quiet ? "q " : "", o->json ? "j " : "");
    if (o->mode)
        printf("mode=%d ", o->mode);
    if (o->bits)
        printf("bits=%u ", o->bits);
    if (o->n_ctx != 512)
        printf("ctx=%" PRIu32 " ", o->n_ctx);
    if (o->n_chunks)
        printf("chunks=%" PRIu64 " ", o->n_chunks);
    if (o->size)
        printf("size=%" PRIu64 " ", o->size);
    if (o->tolerance > 0)
        printf("x=%g ", o->tolerance);
    if (o->glob)
        printf("glob=%s ", o->glob);
    if (o->out)
        printf("out=%s ", o->out);
    if (o->order)
        printf("order=%u ", o->order);
    for (size_t i = 0; i < o->texts.n; i++)
        printf("%c%s ", o->texts.value[i] == 1 ? '+' : '-', o->texts.arg[i]);
    if (o->limits.max_kv == 17 && o->limits.max_tensors == 18)
        printf("limits ");
    printf("|");
    for (int i = 0; i < n; i++)
        printf(" %s", operand[i]);
}

static void run_parser(const struct opt_tool *t, const char *const *argv)
{
    static char copy[16][64];
    char *args[17] = { NULL };
    int argc = 0;
    struct options o = { .n_ctx = 512,
                         .limits = GGUF_INIT(struct gguf_limits) };
    for (; argv[argc]; argc++) {
        snprintf(copy[argc], sizeof copy[argc], "%s", argv[argc]);
        args[argc] = copy[argc];
    }
    int n = opt_parse(t, argc, args, &o);
    print_values(&o, args + 1, n);
    opt_list_fini(&o.texts);
    exit(fflush(stdout));
}

/* Parse argv. Returns the printed values or message; *rc: status. */
static const char *parse_line(const struct opt_tool *t,
                              const char *const *argv, int *rc)
{
    static char text[4096];
    int fd[2], status = 0;
    size_t at = 0;
    fflush(stdout);
    if (pipe(fd) != 0)
        exit(99);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd[1], STDOUT_FILENO);
        dup2(fd[1], STDERR_FILENO);
        close(fd[0]);
        run_parser(t, argv);
    }
    close(fd[1]);
    for (ssize_t n; at + 1 < sizeof text &&
                    (n = read(fd[0], text + at, sizeof text - 1 - at)) > 0;)
        at += (size_t)n;
    close(fd[0]);
    text[at] = '\0';
    waitpid(pid, &status, 0);
    *rc = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return text;
}

#define ARGV(...) ((const char *const[]){ "t", __VA_ARGS__, NULL })

/* Check the whole output: the values, or the message without "t: ". A message
 * ends with the hint, unless it says itself what to do. */
static void expect_values(const struct opt_tool *t, const char *const *argv,
                          const char *want)
{
    int rc;
    const char *got = parse_line(t, argv, &rc);
    ok(rc == 0 && !strcmp(got, want), "%s ...: %s", argv[1], got);
}

static void expect_error(const struct opt_tool *t, const char *const *argv,
                         const char *want)
{
    int rc;
    char line[512];
    const char *got = parse_line(t, argv, &rc);
    snprintf(line, sizeof line, "t: %s%s\n", want,
             strstr(want, "unsupported option") ? "" : " (try 't --help')");
    ok(rc == 2 && !strcmp(got, line), "%s ...: %.300s", argv[1], got);
}

static void test_writing(void)
{
    const struct opt_tool *t = &tool;
    expect_values(t, ARGV("a", "-c", "600", "b", "--ubatch=3", "-q"),
                  "q ctx=600 chunks=3 | a b");
    expect_values(t, ARGV("-ub", "64", "-qc4", "x"), "q ctx=4 chunks=64 | x");
    expect_values(t, ARGV("-ub=64", "-c=8"), "ctx=8 chunks=64 |");
    expect_values(t,
                  ARGV("--ctx_size", "8", "--glob", "x", "--micro_batch=all"),
                  "bits=1 ctx=8 chunks=18446744073709551615 | x");
    expect_values(t, ARGV("--glob=a_b"), "bits=1 glob=a_b |");
    expect_values(t, ARGV("--ctx", "9", "--qui"), "q ctx=9 |");
    expect_values(t, ARGV("--output", "-ub", "--", "-ub", "-"),
                  "out=-ub | -ub -");
    expect_values(t, ARGV("-oab", "-", ""), "out=ab | - ");
    expect_values(t, ARGV("-q", "-q", "-jq"), "q j bits=4 |");
    expect_values(t, ARGV("--order"), "order=9 |");
    expect_values(t, ARGV("--order=size"), "order=8 |");
    expect_values(t, ARGV("--size", "1.5Ki", "--fast"), "mode=2 size=1536 |");
}

/* An argument is a name, letters of options, or unknown; it is not cut
 * elsewhere. */
static void test_words(void)
{
    const struct opt_tool *t = &tool;
    expect_error(t, ARGV("-cb", "2"), "unknown option '-cb'");
    expect_error(t, ARGV("-ctv", "f16"), "unknown option '-ctv'");
    expect_error(t, ARGV("-hf", "x"), "unknown option '-hf'");
    expect_error(t, ARGV("-qh"), "unknown option '-qh'");
    expect_error(t, ARGV("-qz"), "unknown option '-qz'");
    expect_error(t, ARGV("-Z"), "unknown option '-Z'");
    expect_error(t, ARGV("-of", "x"), "unsupported option '-of': use -o");
    expect_error(t, ARGV("-of=x"), "unsupported option '-of': use -o");
    expect_error(t, ARGV("--olden"), "unsupported option '--olden': use -o");
    expect_error(t, ARGV("--old"), "unknown option '--old'");
    expect_error(t, ARGV("-output", "x"),
                 "unknown option '-output'; did you mean '--output'?");
    expect_error(t, ARGV("-ctx_size=3"),
                 "unknown option '-ctx_size'; did you mean '--ctx-size'?");
    expect_error(t, ARGV("--nonsense=1"), "unknown option '--nonsense'");
    expect_error(t, ARGV("--o", "x"),
                 "option '--o' is ambiguous: --output, --order");
    expect_values(t, ARGV("--ub", "7"),
                  "chunks=7 |"); /* --ubershape is not here */
}

static void test_arguments(void)
{
    const struct opt_tool *t = &tool;
    expect_error(t, ARGV("--quiet=1"), "option '--quiet' takes no argument");
    expect_error(t, ARGV("-q", "-c"), "option '-c' needs an argument");
    expect_error(t, ARGV("--out"), "option '--output' needs an argument");
    expect_error(t, ARGV("-c", "3"),
                 "-c: '3' is not a whole number between 4 and 5000");
    expect_error(t, ARGV("--ctx-size=-4"),
                 "--ctx-size: '-4' is not a whole number between 4 and 5000");
    expect_error(
        t, ARGV("-ub", "18446744073709551616"),
        "-ub: '18446744073709551616' is not a whole number between 1 and 99, "
        "or 'all'");
    expect_error(t, ARGV("--order=age"),
                 "--order: 'age' is not 'name' or 'size'");
    expect_error(t, ARGV("-x", "nan", "-oa"),
                 "-x: 'nan' is not a number between 0 "
                 "and 1");
    expect_error(t, ARGV("--size", "0"), "--size: 0 bytes are too few");
    expect_error(
        t, ARGV("-o", "-"),
        "an output must be a file, not a pipe ('./-' is a file with the "
        "name '-')");
    expect_error(t, ARGV("--limit", "kv"), "--limit: 'kv' is not NAME=N");
    expect_error(t, ARGV("--limit", "kv=x"), "--limit: 'kv=x' is not NAME=N");
    expect_values(t, ARGV("--limit", "kv=17", "--limit=tensors=18"),
                  "limits |");
}

static void test_twice(void)
{
    const struct opt_tool *t = &tool;
    expect_error(t, ARGV("-c", "8", "-c", "8"), "option '-c' is given twice");
    expect_error(t, ARGV("-c8", "--ctx-size=9"),
                 "'-c' and '--ctx-size' say the same thing: give only one");
    expect_error(t, ARGV("--where=a", "--glob=b"),
                 "'--where' and '--glob' say the same thing: give only one");
    expect_values(t, ARGV("--where", "--glob=b"), "bits=3 glob=b |");
    expect_error(t, ARGV("--glob=a", "--glob"),
                 "option '--glob' is given twice");
    expect_values(
        t, ARGV("--add", "a", "--remove=b", "--add=c", "--add=d", "--add=e"),
        "+a -b +c +d +e |");
}

static void test_rules(void)
{
    const struct opt_tool *t = &tool;
    expect_error(t, ARGV("-j", "--size", "1"),
                 "'-j' and '--size' exclude each other");
    expect_error(t, ARGV("--fast", "--json"),
                 "'--json' and '--fast' exclude each other");
    expect_error(t, ARGV("--order", "--glob"),
                 "'--glob' and '--order' exclude each other");
    expect_error(t, ARGV("-x", "1"), "'-x' needs --ctx-size or --output");
    expect_values(t, ARGV("-x.5", "-c600"), "ctx=600 x=0.5 |");
    t = &strict;
    expect_error(t, ARGV("-q"), "--output, --add or --remove is missing");
    expect_error(t, ARGV("-oa"), "IN is missing");
    expect_error(t, ARGV("-oa", "b"), "OUT is missing");
    expect_error(t, ARGV("-oa", "b", "c", "d", "e"),
                 "'e' is one argument too many");
    expect_values(t, ARGV("b", "-oa", "c"), "out=a | b c");
    expect_error(t, ARGV("b", "c", "--", "d", "-oa"),
                 "--output, --add or --remove is missing before 'b'");
}

static void test_help(void)
{
    int rc;
    const char *text = parse_line(&strict, ARGV("--help", "--nonsense"), &rc);
    ok(rc == 0 && !strncmp(text, "Usage: t [OPTION]... IN OUT [TYPE]\n", 35) &&
           strstr(text, "\nOne:\n  -c, --ctx-size=N ") &&
           strstr(text, "--order[=WORD] ") && strstr(text, "--version"),
       "--help prints the table");
    ok(!strstr(text, "olden"), "but not refused options");
    text = parse_line(&strict, ARGV("--version"), &rc);
    ok(rc == 0 && !strncmp(text, "t (libgguf) ", 12), "--version");
    uint64_t v;
    ok(opt_parse_u64("18446744073709551615", &v) && v == UINT64_MAX,
       "the largest number");
    ok(!opt_parse_u64("18446744073709551616", &v) &&
           !opt_parse_u64("-1", &v) && !opt_parse_u64("1x", &v) &&
           !opt_parse_u64("", &v),
       "malformed numbers");
}

int main(void)
{
    test_writing();
    test_words();
    test_arguments();
    test_twice();
    test_rules();
    test_help();
    return done_testing();
}
