/* SPDX-License-Identifier: MIT */
/* check-paths.c - two names of one file are recognised, and files of other
 * users stay */
#include "config.h"
#include "base/file_id.h"
#include "base/paths_int.h"
#include "gguf/outfile.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "check-paths-XXXXXX";

static char *in_dir(const char *name)
{
    return scratch_path(dir, name);
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        exit(99);
}

static bool has_text(const char *name, const char *text)
{
    char buf[100] = "";
    FILE *f = fopen(in_dir(name), "r");
    if (!f)
        return false;
    size_t n = fread(buf, 1, sizeof buf - 1, f);
    fclose(f);
    return n == strlen(text) && !memcmp(buf, text, n);
}

/* ------------------------------------------------------------- clashes --- */

/* Is it refused to read a and then write b, and the reverse? */
static bool is_clash(const char *a, const char *b)
{
    int n = 0;
    for (int turn = 0; turn < 2; turn++) {
        struct gguf_paths *p, *copy;
        struct gguf_error err;
        if (gguf_paths_create(&p, NULL, NULL) != GGUF_OK)
            exit(99);
        enum gguf_status st = turn
                                  ? gguf_paths_add_output(p, b, "output", &err)
                                  : gguf_paths_add_input(p, a, "input", &err);
        if (st != GGUF_OK || gg_paths_copy(&copy, p, NULL, &err) != GGUF_OK)
            exit(99);
        st = turn ? gguf_paths_add_input(copy, a, "input", &err)
                  : gguf_paths_add_output(copy, b, "output", &err);
        n += st == GGUF_E_INVALID &&
             strstr(err.message, turn ? "would be both output and input"
                                      : "would be both input and output");
        gguf_paths_destroy(copy);
        gguf_paths_destroy(p);
    }
    return n == 2;
}

static void check_clashes(void)
{
    char there[256], gone[256], other[256], cwd[300];
    snprintf(there, sizeof there, "%s", in_dir("there"));
    snprintf(gone, sizeof gone, "%s", in_dir("gone"));
    snprintf(other, sizeof other, "%s", in_dir("other"));
    write_file("there", "1");
    write_file("other", "2");
    if (gg_os_make_folder(in_dir("sub")) || symlink("there", in_dir("link")) ||
        symlink("nowhere", in_dir("dangling")) ||
        symlink(".", in_dir("here")) || link(there, in_dir("hard")) ||
        mkfifo(in_dir("pipe"), 0600))
        exit(99);
    snprintf(cwd, sizeof cwd, "./%s", gone);
    ok(is_clash(there, there) && is_clash(there, in_dir("./there")) &&
           is_clash(there, in_dir("sub/../there")),
       "a file by several ways");
    ok(is_clash(there, in_dir("link")) && is_clash(in_dir("link"), there) &&
           is_clash(there, in_dir("here/there")),
       "by symbolic links");
    ok(is_clash(there, in_dir("hard")), "by hard links");
    ok(is_clash(gone, cwd) && is_clash(gone, in_dir("here/gone")) &&
           is_clash(gone, in_dir("sub/../gone")),
       "a file that is not there yet, by several ways");
    ok(is_clash(in_dir("dangling"), in_dir("here/dangling")) &&
           is_clash(in_dir("pipe"), in_dir("pipe")),
       "a link to nothing, and a pipe");
    ok(!is_clash(there, other) && !is_clash(gone, other) &&
           !is_clash(gone, in_dir("sub/gone")) &&
           !is_clash(in_dir("dangling"), in_dir("nowhere")),
       "others are not the same");
    ok(!is_clash("/dev/null", "/dev/null"), "nor are devices");
    ok(!is_clash(in_dir("no/x"), in_dir("no/y")), "nor folders that are not");
}

static void check_sets(void)
{
    struct gguf_paths *p;
    struct gguf_error err;
    if (gguf_paths_create(&p, NULL, NULL) != GGUF_OK)
        exit(99);
    ok(gguf_paths_add_input(p, in_dir("there"), "a", &err) == GGUF_OK &&
           gguf_paths_add_input(p, in_dir("link"), "b", &err) == GGUF_OK,
       "a file that is read may be read again");
    ok(gguf_paths_add_output(p, in_dir("gone"), "output", &err) == GGUF_OK &&
           gguf_paths_add_output(p, in_dir("here/gone"), "output", &err) ==
               GGUF_E_INVALID &&
           strstr(err.message, "would be output twice"),
       "a file that is written may not be written again: %s", err.message);
    ok(gg_paths_add_output_beside(p, in_dir("the"), "re", "journal", &err) ==
               GGUF_E_INVALID &&
           strstr(err.message, "both a and journal"),
       "what lies beside: %s", err.message);
    int fd = open(in_dir("other"), O_RDONLY);
    ok(gguf_paths_add_input_fd(p, fd, "standard input", &err) == GGUF_OK &&
           gguf_paths_add_input_fd(p, 999, "nothing", &err) == GGUF_OK &&
           gguf_paths_add_output(p, in_dir("other"), "report", &err) ==
               GGUF_E_INVALID,
       "open descriptors: %s", err.message);
    close(fd);
    double begin = scratch_cpu_time();
    bool good = true;
    for (int i = 0; i < 20000; i++) {
        char name[40];
        snprintf(name, sizeof name, "s-%05d", i);
        good = good && gguf_paths_add_output(p, in_dir(name), "output",
                                             &err) == GGUF_OK;
    }
    ok(good && scratch_cpu_time() - begin < 4, "20000 names");
    gguf_paths_destroy(p);
    gguf_paths_destroy(NULL);
}

/* --------------------------------------------------------- whose it is --- */

static void check_ident(void)
{
    struct gg_file_id id;
    int fd = open(in_dir("mine"), O_RDWR | O_CREAT | O_EXCL, 0600);
    ok(gg_file_id_fd(&id, fd) && gg_file_id_is(&id, in_dir("mine")) &&
           !gg_file_id_is(&id, in_dir("other")),
       "a file is known again");
    ok(!rename(in_dir("mine"), in_dir("moved")) &&
           !gg_file_id_unlink(&id, in_dir("mine")) &&
           (write_file("mine", "of others"),
            !gg_file_id_unlink(&id, in_dir("mine"))) &&
           has_text("mine", "of others"),
       "another one of that name stays");
    ok(!symlink("moved", in_dir("to-it")) &&
           !gg_file_id_unlink(&id, in_dir("to-it")) &&
           gg_file_id_unlink(&id, in_dir("moved")) &&
           access(in_dir("moved"), F_OK) != 0,
       "itself goes away, a link to it does not");
    close(fd);
    fd = open("/dev/null", O_RDONLY);
    ok(!gg_file_id_fd(&id, fd), "a device is not a file to remove");
    close(fd);
}

static void check_open(void)
{
    struct gguf_error err;
    int fd;
    ok(gg_file_id_open(in_dir("gone"), &fd, &err) == GGUF_OK && fd < 0,
       "nothing is there");
    ok(gg_file_id_open(in_dir("other"), &fd, &err) == GGUF_OK && fd >= 0,
       "a file of one's own");
    close(fd);
    ok(gg_file_id_open(in_dir("there"), &fd, &err) == GGUF_E_MISMATCH &&
           fd < 0,
       "a file of two names: %s", err.message);
    ok(gg_file_id_open(in_dir("link"), &fd, &err) == GGUF_E_MISMATCH &&
           gg_file_id_open(in_dir("sub"), &fd, &err) == GGUF_E_MISMATCH &&
           gg_file_id_open(in_dir("pipe"), &fd, &err) == GGUF_E_MISMATCH,
       "a link, a folder, a pipe: %s", err.message);
}

/* As another user: in a folder like /tmp, and in another folder. */
static void check_owner(void)
{
    enum { OTHER = 12345 };
    if (geteuid() != 0) {
        skip("no other user here");
        return;
    }
    write_file("sub/strange", "x");
    if (chown(in_dir("sub/strange"), OTHER, OTHER) ||
        chmod(in_dir("sub"), 01777) || chmod(in_dir("sub/strange"), 0666))
        exit(99);
    for (int i = 0; i < 2; i++) {
        struct gguf_error err;
        int fd = -1;
        enum gguf_status st =
            gg_file_id_open(in_dir("sub/strange"), &fd, &err);
        ok(i ? st == GGUF_OK : st == GGUF_E_MISMATCH,
           "a stranger's file, in %s: %s", i ? "a common folder" : "/tmp",
           i ? "taken" : err.message);
        if (fd >= 0)
            close(fd);
        fd = open(in_dir("sub/strange"), O_RDONLY | O_CLOEXEC);
        bool yes, also;
        ok(gg_file_id_trusted(fd, in_dir("sub/strange"), OTHER, &yes, &err) ==
                   GGUF_OK &&
               gg_file_id_trusted(fd, in_dir("sub/strange"), 0, &also, &err) ==
                   GGUF_OK &&
               yes && also == i,
           "or where the file beside it is the stranger's");
        close(fd);
        ok(gg_file_id_trusted(fd, "x", OTHER, &yes, &err) == GGUF_E_IO && !yes,
           "what cannot be looked at is not: %s", err.message);
        if (chmod(in_dir("sub"), 0777))
            exit(99);
    }
    unlink(in_dir("sub/strange"));
}

/* ------------------------------------------------------------ outfiles --- */

static void check_outfile(void)
{
    struct gguf_outfile *o;
    struct gguf_error err;
    ok(gguf_outfile_open(&o, in_dir("r"), 0, NULL, &err) == GGUF_OK &&
           gguf_outfile_write(o, "one", 3, &err) == GGUF_OK &&
           access(in_dir("r"), F_OK) != 0 &&
           gguf_outfile_commit(o, &err) == GGUF_OK && has_text("r", "one"),
       "a file of any kind is there when it is complete");
    ok(gguf_outfile_commit(o, &err) == GGUF_E_INVALID &&
           gguf_outfile_write(o, "x", 1, &err) == GGUF_E_INVALID,
       "once: %s", err.message);
    gguf_outfile_close(o);
    ok(gguf_outfile_open(&o, in_dir("r"), 0, NULL, &err) == GGUF_E_EXIST && !o,
       "another is not replaced");
    ok(gguf_outfile_open(&o, in_dir("r"), 1, NULL, &err) == GGUF_OK &&
           gguf_outfile_write(o, "two", 3, &err) == GGUF_OK &&
           has_text("r", "one"),
       "with force, it stays");
    gguf_outfile_close(o);
    ok(has_text("r", "one"), "until the new one is complete");
    ok(gguf_outfile_open(&o, in_dir("pipe"), 1, NULL, &err) ==
               GGUF_E_INVALID &&
           !o,
       "a pipe is refused: %s", err.message);
}

int main(void)
{
    static const char *const names[] = { "there", "other", "link", "dangling",
                                         "here",  "hard",  "pipe", "mine",
                                         "to-it", "r" };
    if (!scratch_make(dir))
        return 99;
    check_clashes();
    check_sets();
    check_ident();
    check_open();
    check_owner();
    check_outfile();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_dir(names[i]));
    ok(!rmdir(in_dir("sub")) && !rmdir(dir), "nothing else is left");
    return done_testing();
}
