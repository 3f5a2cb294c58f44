/* SPDX-License-Identifier: MIT */
/* check-common.c - code that the tools share: JSON, tables, sizes */
#include "config.h"
#include "tests/tap.h"
#include "tools/common/address.h"
#include "tools/common/json.h"
#include "tools/common/markdown.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"
#include "tools/common/table.h"
#include "tools/common/text.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[4096];

/* Capture the output of fn in text. */
static void capture_output(void (*fn)(FILE *f))
{
    FILE *f = tmpfile();
    if (!f) {
        perror("tmpfile");
        exit(99);
    }
    fn(f);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
}

static void write_json(FILE *f)
{
    static const char bad[] = "a\xff\x1b[1m\"\\\n\xe2\x80\xae\xc3\xa9";
    struct json j;
    json_begin_object(&j, f);
    json_u64(&j, "u", UINT64_MAX);
    json_i64(&j, "i", INT64_MIN);
    json_f64(&j, "third", 1.0 / 3);
    json_f32(&j, "eps", 1e-5f);
    json_f64(&j, "nan", NAN);
    json_f64(&j, "inf", -INFINITY);
    json_key(&j, (struct gguf_str){ "keyed-off", 5 });
    json_str(&j, NULL, (struct gguf_str){ bad, sizeof bad - 1 });
    json_strz(&j, "seen",
              "\xf0\x9f\x98\x80\xc2\xa0" /* invisible ones: */
              "\xf3\xa0\x81\x81\xe2\x81\xa0");
    json_open(&j, "flat", '(');
    json_bool(&j, NULL, true);
    json_null(&j, NULL);
    json_close(&j);
    json_open(&j, "none", '[');
    json_close(&j);
    json_close(&j);
    json_end(&j);
}

static void test_json(void)
{
    capture_output(write_json);
    ok(!strcmp(text, "{\n"
                     "  \"u\": 18446744073709551615,\n"
                     "  \"i\": -9223372036854775808,\n"
                     "  \"third\": 0.3333333333333333,\n"
                     "  \"eps\": 1e-05,\n"
                     "  \"nan\": null,\n"
                     "  \"inf\": null,\n"
                     "  \"keyed\": \"a\\ufffd\\u001b[1m\\\"\\\\\\n"
                     "\\u202e\xc3\xa9\",\n"
                     "  \"seen\": \"\xf0\x9f\x98\x80\xc2\xa0"
                     "\\udb40\\udc41\\u2060\",\n"
                     "  \"flat\": [true, null],\n"
                     "  \"none\": []\n"
                     "}\n"),
       "JSON: exact integers, null for NaN, escapes");
    if (tap_bad)
        fprintf(stderr, "%s", text);
    int bad = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = rnd64();
        double d;
        float s;
        char out[32];
        memcpy(&d, &bits, sizeof d);
        memcpy(&s, &bits, sizeof s);
        json_format_f64(out, d);
        bad += !isnan(d) && strtod(out, NULL) != d;
        json_format_f32(out, s);
        bad += !isnan(s) && strtof(out, NULL) != s;
    }
    ok(bad == 0, "numbers read back are equal");
    char out[32];
    json_format_f64(out, 0.1);
    ok(!strcmp(out, "0.1"), "0.1 is written as 0.1");
    json_format_f32(out, 16777216.0f);
    ok(!strcmp(out, "16777216") || !strcmp(out, "1.6777216e+07"),
       "2^24 keeps its digits (%s)", out);
}

static void write_table(FILE *f)
{
    struct table t;
    table_init(&t, "lr", 1);
    table_add(&t, "h\xc3\xa9");
    table_add(&t, "1");
    table_add(&t, "long");
    table_addf(&t, "%d", 100);
    table_add(&t, "left over");
    table_print(&t, f);
    table_markdown(&t, f);
    table_fini(&t);
}

static void write_cells(FILE *f)
{
    static const char *const heads[] = { "name", "shape" };
    static const int64_t ne[] = { 256, 4 };
    struct table t;
    table_init(&t, "ll", 0);
    table_add_row(&t, heads);
    table_add_str(&t, (struct gguf_str){ "a\\\033", 3 });
    table_add_shape(&t, 2, ne);
    table_add_strz(&t, "");
    table_add_shape(&t, 0, ne);
    table_print(&t, f);
    table_fini(&t);
}

/* A cell too wide for its column does not widen the others. */
static void write_wide(FILE *f)
{
    struct table t;
    char wide[1001] = "";
    memset(wide, 'w', sizeof wide - 1);
    table_init(&t, "ll", 0);
    table_add(&t, wide);
    table_add(&t, "1");
    table_add(&t, "abc");
    table_add(&t, "2");
    table_print(&t, f);
    table_fini(&t);
}

static void test_table(void)
{
    capture_output(write_wide);
    ok(strlen(text) == 1000 + 4 + 7 && strstr(text, "w  1\nabc  2\n"),
       "a cell of 1000 columns does not widen the others");
    capture_output(write_cells);
    ok(!strcmp(text, "name     shape\na\\\\\\x1B  256 x 4\n         scalar\n"),
       "names are escaped, shapes written out:\n%s", text);
    capture_output(write_table);
    ok(!strcmp(text, " h\xc3\xa9      1\n long  100\n"
                     "| h\xc3\xa9 | 1 |\n|:---|---:|\n| long | 100 |\n"),
       "columns are aligned by characters");
    char out[24];
    ok(!strcmp(table_size(out, 1023), "1023 B"), "%s", out);
    ok(!strcmp(table_size(out, 1024), "1.00 KiB"), "%s", out);
    ok(!strcmp(table_size(out, 1048575), "1.00 MiB"), "%s", out);
    ok(!strcmp(table_size(out, UINT64_MAX), "16.0 EiB"), "%s", out);
    ok(!strcmp(table_count(out, 1100048384), "1.10 B"), "%s", out);
    ok(!strcmp(table_count(out, 999), "999"), "%s", out);
    ok(!strcmp(table_count(out, 999999), "1.00 M"), "%s", out);
}

static void write_markdown(FILE *f)
{
    static const char *const cases[] = { "blk.0.attn_q", "a|b",  "HTTP://a.b",
                                         "a@b",          "``@",  "#1",
                                         "# 1",          "gh-1", "x\\y",
                                         " @ ",          "@|@" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        markdown_put(f, cases[i], i % 2 || i > 8);
        fputc('\n', f);
    }
}

static void test_markdown(void)
{
    capture_output(write_markdown);
    ok(!strcmp(text, "blk.0.attn\\_q\na\\|b\n`HTTP://a.b`\n`a@b`\n"
                     "``` ``@ ```\n`#1`\n\\# 1\n`gh-1`\nx\\\\y\n"
                     "`  @  `\n`@\\|@`\n"),
       "Markdown: links become code, the rest is escaped: %s", text);
}

static void write_safe(FILE *f)
{
    text_put(f, "a\\x1b\x1b[m\n\xc2\x9b\xe2\x80\xae\xff\xc3\xa9");
}

static void test_text(void)
{
    static const struct {
        const char *in, *out;
        uint64_t max;
    } cases[] = {
        { "abc", "abc", 3 },
        { "abcd", "abc...", 3 },
        { "ab\xc3\xa9", "ab...", 3 },
        { "ab\xf0\x9f\x98\x80", "ab...", 5 },
        { "ab\xf0\x9f\x98\x80", "ab\xf0\x9f\x98\x80", 6 },
        { "\x80\x80\x80\x80\x80\x80", "\\x80\\x80\\x80\\x80\\x80...", 5 },
        { "\x80\x80", "\\x80...", 1 },
        { "\x80", "...", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text t = { NULL, 0, 0 };
        text_add_esc(&t, (struct gguf_str){ cases[i].in, strlen(cases[i].in) },
                     cases[i].max);
        ok(!strcmp(t.s, cases[i].out), "%d bytes of a text: %s",
           (int)cases[i].max, t.s);
        text_fini(&t);
    }
    capture_output(write_safe);
    ok(!strcmp(text, "a\\x1b\\x1B[m\\n\\u{9B}\\u{202E}\\xFF\xc3\xa9"),
       "printed safely: %s", text);
}

static void test_read(void)
{
    struct text t = { NULL, 0, 0 };
    FILE *f = fopen("check-common.tmp", "wb");
    bool good = f && fwrite("a\0b", 1, 3, f) == 3;
    good = f && fclose(f) == 0 && good;
    ok(good && text_read(&t, "check-common.tmp") && t.n == 3 &&
           !memcmp(t.s, "a\0b", 4),
       "a file is read, and ends in a NUL");
    remove("check-common.tmp");
    text_clear(&t);
    ok(!text_read(&t, "check-common.tmp") && !text_read(&t, ".") && !t.n,
       "a missing file or a folder is not read");
    text_fini(&t);
}

/* If standard streams are closed, opened files do not take their numbers. */
static void test_closed(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            close(fd);
        msg_init("t");
        bool good = open(".", O_RDONLY) > STDERR_FILENO &&
                    write(STDOUT_FILENO, "x", 1) < 0 &&
                    write(STDERR_FILENO, "x", 1) < 0 &&
                    read(STDIN_FILENO, text, 1) < 0;
        _exit(good ? 42 : 1);
    }
    ok(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 42,
       "no file takes the place of a closed standard stream");
}

/* No line reaches the last column, whatever its text. */
static void test_width(const char *label, const char *unit)
{
    struct progress p;
    char line[PROGRESS_LINE];
    int bad = 0;
    progress_init(&p, label, unit, true);
    for (int width = 1; width < 300; width++)
        for (double spent = 1e-3; spent < 1e6; spent *= 7) {
            progress_format(&p, line, width, 1ull << 37, 1ull << 38, spent);
            bad += (int)strlen(line) >= width || !line[0] != (width == 1) ||
                   (strchr(line, '[') && (int)strlen(line) + 2 >= width);
        }
    progress_format(&p, line, 40, 1ull << 37, 1ull << 38, 400);
    ok(!bad && strstr(line, " 50%") && !strncmp(line, label, strlen(label)),
       "every width has its line; at 40 columns: %s", line);
    progress_format(&p, line, 80, 1ull << 37, 1ull << 38, 400);
    ok(strlen(line) >= 60 && strstr(line, "[####") && strstr(line, "/s") &&
           strstr(line, " left"),
       "at 80: %s", line);
}

/* A running estimate disappears as a whole, after the rate and the time. */
static void test_note(void)
{
    struct progress p;
    char line[PROGRESS_LINE];
    int whole = 0, bad = 0;
    progress_init(&p, "perplexity", "tokens", true);
    snprintf(p.note, sizeof p.note, "60.52 +/- 0.68");
    for (int width = 1; width < 200; width++) {
        progress_format(&p, line, width, 1, 2, 400);
        whole += strstr(line, "perplexity 60.52 +/- 0.68 ") != NULL;
        bad += (int)strlen(line) >= width ||
               (strstr(line, " 60") && !strstr(line, "0.68 ")) ||
               (strstr(line, "left") && !strstr(line, "0.68 "));
    }
    ok(!bad && whole == 199 - 30, "a note of 14 columns, in %d widths", whole);
    progress_format(&p, line, 80, 1, 2, 400);
    ok(strstr(line, "0.68 [###") && strstr(line, " left"), "at 80: %s", line);
}

static void test_progress(void)
{
    struct progress p;
    test_width("reading output", NULL);
    test_width("perplexity", "tokens");
    test_note();
    progress_init(&p, "x", NULL, true);
    ok(progress_report(&p, 1, 2) == 0, "nobody asked to stop");
    progress_catch_signals();
    raise(SIGTERM);
    ok(progress_report(&p, 1, 2) != 0 && progress_stopped(),
       "a signal stops the job");
}

static void test_figure(void)
{
    static const struct {
        double v;
        int digits;
        const char *text;
    } rows[] = {
        { 57.41752, 4, "57.42" },
        { 123456.7, 4, "123457" },
        { 0.00001234, 3, "0.0000123" },
        { 0, 3, "0" },
        { -2.5, 2, "-2.5" },
        { 1e-15, 2, "0.000000000000" },
        { INFINITY, 3, "inf" },
        { 1e22, 3, "10000000000000000000000" },
    };
    char out[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ok(!strcmp(text_format_number(out, rows[i].v, rows[i].digits),
                   rows[i].text),
           "%g to %d digits: %s", rows[i].v, rows[i].digits, out);
}

/* Messages of several processes do not mix: each is one write, which a socket
 * of type SEQPACKET keeps as one piece. */
static void test_messages(void)
{
    static const char *const want[] = {
        "gguf-x: a\\nb: 7 of 'x\\x1B'\n",
        "gguf-x: there is no such option\n",
        "gguf-x: m.gguf: warning: w\n",
    };
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) {
        perror("socketpair");
        exit(99);
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char longer[3001];
        memset(longer, 'y', sizeof longer - 1);
        longer[sizeof longer - 1] = '\0';
        if (dup2(ends[1], STDERR_FILENO) < 0)
            _exit(99);
        msg_init("gguf-x");
        msg_error("a\nb", "%d of '%s'", 7, "x\x1b");
        msg_error(NULL, "there is no such option");
        msg_warn("m.gguf", "w");
        msg_info(NULL, "%s", longer);
        _exit(0);
    }
    int rc = 0;
    ok(child > 0 && waitpid(child, &rc, 0) == child && rc == 0, "messages");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        ssize_t n = recv(ends[0], text, sizeof text - 1, MSG_DONTWAIT);
        text[n > 0 ? n : 0] = '\0';
        ok(!strcmp(text, want[i]), "message %zu is one write", i);
    }
    ok(recv(ends[0], text, sizeof text, MSG_DONTWAIT) == 8 + 3000 + 1,
       "of 3000 characters, too");
    ok(recv(ends[0], text, sizeof text, MSG_DONTWAIT) < 0, "and no more");
    close(ends[0]);
    close(ends[1]);
}

/* Addresses in texts lose their secrets and nothing else. */
static void check_addresses(void)
{
    static const char *const rows[][2] = {
        { "https://me:pw@h.org/a/b.gguf", "https://h.org/a/b.gguf" },
        { "see http://me@h:80/x?token=t, or", "see http://h:80/x, or" },
        { "(curl -LO 'https://h/x?a=b&c=d')", "(curl -LO 'https://h/x')" },
        { "https://h/x?a='b' c", "https://h/x' c" },
        { "HTTPS://me:p/w@h/x#frag y", "HTTPS://h/x y" },
        { "ftp://a:b@c/d ssh://e@f", "ftp://c/d ssh://f" },
        { "https://h:8080/a@b/c", "https://h:8080/a@b/c" },
        { "https://h/a@b:c", "https://h/a@b:c" },
        { "hf://o/r@main/f.gguf?token=t", "hf://o/r@main/f.gguf" },
        { "a ? b # c @ d", "a ? b # c @ d" },
        { "https://", "https://" },
        { "https://a:b@c@d/e", "https://d/e" },
        { "http:///me:pw@h/x", "http://h/x" },
        { "file:///a/b@c", "file:///a/b@c" },
    };
    struct address_secret s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[100];
        snprintf(got, sizeof got, "%s", rows[i][0]);
        address_remove_secrets(got);
        ok(!strcmp(got, rows[i][1]), "'%s' is shown as '%s'", rows[i][0], got);
    }
    ok(address_find_secret("https://me:pw@h/x?t=1", &s) && s.n_user == 6 &&
           !strcmp(s.query, "?t=1") &&
           !address_find_secret("https://h/x", &s) &&
           !address_find_secret("a?b", &s),
       "user and query are found");
    struct text t = { NULL, 0, 0 };
    text_add_shell(&t, "a b'c\\$(d)'");
    ok(!strcmp(t.s, "'a b'\\''c\\$(d)'\\'''"), "a word for a shell: %s", t.s);
    text_fini(&t);
}

int main(void)
{
    check_addresses();
    test_figure();
    test_messages();
    test_closed();
    test_text();
    test_read();
    test_markdown();
    test_json();
    test_table();
    test_progress();
    return done_testing();
}
