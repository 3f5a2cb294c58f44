/* SPDX-License-Identifier: MIT */
/* check-outfile.c - outputs appear whole or not at all; inputs are mapped
 *
 * Tests run twice: with files that have no name until the commit, and with
 * temporary names, as on file systems without unnamed files.
 */
#include "config.h"
#include "base/mapfile.h"
#include "base/outfile_int.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif

static char dir[] = "check-outfile-XXXXXX";
static char target[64], source[64], part[64 + sizeof GG_OUTFILE_PART];

/* Is it a file that was removed while it was open, on Windows before 10? */
static bool is_gone(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".gone");
}

/* Number of files in dir besides the two. */
static int n_others(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
             strcmp(e->d_name, "target") && strcmp(e->d_name, "source") &&
             !is_gone(e->d_name);
    if (d)
        closedir(d);
    return n;
}

/* Does path hold n bytes, with f(i) as byte i? */
static int has_bytes(const char *path, size_t n, uint8_t f(size_t))
{
    struct gg_mapfile m;
    if (gg_mapfile_open(&m, path, 0, 0, NULL) != GGUF_OK)
        return 0;
    int good = m.size == n;
    for (size_t i = 0; good && i < n; i++)
        good = m.data[i] == f(i);
    gg_mapfile_close(&m);
    return good;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 2654435761u >> 11);
}

static uint8_t copy_at(size_t i)
{
    return i < 100 ? 0 : byte_at(i - 100 + 7);
}

/* Write pieces of all sizes, and fill a hole afterwards. */
static enum gguf_status write_pieces(struct gg_outfile *o, size_t n)
{
    uint8_t *b = malloc(n);
    for (size_t i = 0; i < n; i++)
        b[i] = byte_at(i);
    enum gguf_status st = GGUF_OK;
    size_t hole = 0, at = 0;
    for (size_t k = 0, step; st == GGUF_OK && at < n; at += step, k++) {
        step = 1 + rnd_below(k % 7 == 0 ? n - at : (n - at) / 9 + 1);
        if (k == 3) {
            hole = at;
            st = gg_outfile_skip(o, step, NULL);
            if (st == GGUF_OK)
                st = gg_outfile_write_at(o, hole, b + hole, step, NULL);
        } else {
            st = gg_outfile_write(o, b + at, step, NULL);
        }
    }
    free(b);
    return st;
}

static void check_way(unsigned how, const char *name)
{
    struct gguf_error err;
    struct gg_outfile o;
    enum { SIZE = 1 << 20 };
    gg_os_remove(target);
    ok(gg_outfile_open(&o, NULL, target, how, &err) == GGUF_OK &&
           (o.temp != NULL) == (n_others() == 1) && access(target, F_OK) != 0,
       "%s: nothing is there yet", name);
    ok(gg_outfile_reserve(&o, SIZE, true, &err) == GGUF_OK &&
           write_pieces(&o, SIZE) == GGUF_OK &&
           gg_outfile_commit(&o, &err) == GGUF_OK &&
           has_bytes(target, SIZE, byte_at) && n_others() == 0,
       "%s: then all of it", name);
    ok(gg_outfile_open(&o, NULL, target, how, &err) == GGUF_E_EXIST,
       "%s: once only: %s", name, err.message);

    ok(gg_outfile_open(&o, NULL, target, how | GG_OUTFILE_FORCE, &err) ==
               GGUF_OK &&
           gg_outfile_write(&o, "x", 1, &err) == GGUF_OK,
       "%s: by force", name);
    gg_outfile_abort(&o);
    gg_outfile_abort(&o);
    ok(has_bytes(target, SIZE, byte_at) && n_others() == 0,
       "%s: giving up keeps the old one", name);

    int fd = open(source, O_RDONLY);
    ok(gg_outfile_open(&o, NULL, target, how | GG_OUTFILE_FORCE, &err) ==
               GGUF_OK &&
           gg_outfile_zeros(&o, 100, &err) == GGUF_OK &&
           gg_outfile_copy(&o, fd, 7, SIZE - 7, &err) == GGUF_OK &&
           gg_outfile_commit(&o, &err) == GGUF_OK &&
           has_bytes(target, SIZE - 7 + 100, copy_at) && n_others() == 0,
       "%s: a copy replaces it", name);
    ok(gg_outfile_open(&o, NULL, target, how | GG_OUTFILE_FORCE, &err) ==
               GGUF_OK &&
           gg_outfile_copy(&o, fd, SIZE - 10, 11, &err) == GGUF_E_TRUNCATED,
       "%s: a copy of more than there is: %s", name, err.message);
    gg_outfile_abort(&o);
    ok(gg_outfile_open(&o, NULL, target, how | GG_OUTFILE_FORCE, &err) ==
               GGUF_OK &&
           (o.no_cfr = true) && gg_outfile_zeros(&o, 100, &err) == GGUF_OK &&
           gg_outfile_copy(&o, fd, 7, SIZE - 7, &err) == GGUF_OK &&
           gg_outfile_commit(&o, &err) == GGUF_OK &&
           has_bytes(target, SIZE - 7 + 100, copy_at),
       "%s: a copy without the file system's help", name);
    close(fd);

    gg_os_remove(target);
    ok(gg_outfile_open(&o, NULL, target, how, &err) == GGUF_OK &&
           gg_os_link(source, target) == 0 &&
           gg_outfile_commit(&o, &err) == GGUF_E_EXIST &&
           has_bytes(target, SIZE, byte_at) && n_others() == 0,
       "%s: a late name is not taken away: %s", name, err.message);
}

static uint8_t x_at(size_t i)
{
    (void)i;
    return 'x';
}

/* Files of a set get their names together, and lose them together. */
static void check_names(unsigned how, const char *name)
{
    struct gguf_error err;
    struct gg_outfile o;
    bool partial = how & GG_OUTFILE_PARTIAL;
    for (int force = 0; force < 2; force++) {
        unsigned flags = how | (force ? GG_OUTFILE_FORCE : 0u);
        gg_os_remove(target);
        if (force)
            ok(!gg_os_link(source, target), "%s: with an old file", name);
        bool good =
            gg_outfile_open(&o, NULL, target, flags, &err) == GGUF_OK &&
            gg_outfile_write(&o, "x", 1, &err) == GGUF_OK &&
            gg_outfile_finish(&o, &err) == GGUF_OK;
        ok(good && (force ? has_bytes(target, 1 << 20, byte_at)
                          : access(target, F_OK) != 0),
           "%s: finished, it has no name yet", name);
        ok(gg_outfile_publish(&o, true, &err) == GGUF_OK &&
               has_bytes(target, 1, x_at) && n_others() == force,
           "%s: then it has, and the old content is kept", name);
        gg_outfile_unpublish(&o);
        ok((force ? has_bytes(target, 1 << 20, byte_at)
                  : access(target, F_OK) != 0) &&
               n_others() == partial,
           "%s: that can be undone", name);
        gg_outfile_unpublish(&o);
        gg_outfile_abort(&o);
        ok(n_others() == partial && access(target, F_OK) == (force ? 0 : -1),
           "%s: once", name);
        gg_os_remove(part);
    }
    /* meanwhile another file has the name */
    gg_os_remove(target);
    ok(gg_outfile_open(&o, NULL, target, how, &err) == GGUF_OK &&
           gg_outfile_finish(&o, &err) == GGUF_OK &&
           gg_outfile_publish(&o, true, &err) == GGUF_OK &&
           !gg_os_remove(target) && !gg_os_link(source, target),
       "%s: a file that was replaced by others", name);
    gg_outfile_unpublish(&o);
    gg_outfile_abort(&o);
    ok(has_bytes(target, 1 << 20, byte_at) && n_others() == 0,
       "%s: is not taken back", name);
}

/* Create a partial file; one that exists is never used. */
static struct gg_outfile *file_at(void *files, size_t i)
{
    return (struct gg_outfile *)files + i;
}

static uint8_t one_at(size_t i)
{
    return (uint8_t)('0' + i);
}

/* Three files get their names, or none of them does. in_the_way: a folder has
 * the name of the second. */
static void check_all(unsigned how, const char *name, bool in_the_way)
{
    struct gg_outfile o[3];
    struct gguf_error err;
    char paths[3][80];
    size_t bad = 9;
    bool good = true;
    for (int i = 0; i < 3; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/all-%d", dir, i);
        good = good &&
               gg_outfile_open(&o[i], NULL, paths[i], how, &err) == GGUF_OK &&
               gg_outfile_write(&o[i], "0123", 4, &err) == GGUF_OK &&
               gg_outfile_finish(&o[i], &err) == GGUF_OK;
    }
    ok(good && (!in_the_way || gg_os_make_folder(paths[1]) == 0),
       "%s: three files", name);
    enum gguf_status st =
        gg_outfile_publish_all(file_at, o, 3, true, &bad, &err);
    if (in_the_way)
        ok(st != GGUF_OK && bad == 1 && access(paths[0], F_OK) &&
               access(paths[2], F_OK) && rmdir(paths[1]) == 0,
           "%s: the second cannot be named, and none is: %s", name,
           err.message);
    else
        ok(st == GGUF_OK && has_bytes(paths[0], 4, one_at) &&
               has_bytes(paths[1], 4, one_at) &&
               has_bytes(paths[2], 4, one_at),
           "%s: all are named", name);
    for (int i = 0; i < 3; i++) {
        gg_outfile_abort(&o[i]);
        gg_os_remove(paths[i]);
    }
    ok(!n_others(), "%s: nothing else is left", name);
}

static void check_partial(void)
{
    struct gguf_error err;
    struct gg_outfile o;
    unsigned how = GG_OUTFILE_PARTIAL | GG_OUTFILE_NO_SYNC;
    gg_os_remove(target);
    ok(!gg_os_link(source, part) &&
           gg_outfile_open(&o, NULL, target, how, &err) == GGUF_E_MISMATCH &&
           has_bytes(part, 1 << 20, byte_at),
       "a stranger's temporary is not taken: %s", err.message);
    ok(gg_outfile_open(&o, NULL, target, how | GG_OUTFILE_RESUME, &err) ==
               GGUF_E_MISMATCH &&
           has_bytes(part, 1 << 20, byte_at),
       "nor one with another name: %s", err.message);
    gg_os_remove(part);
    ok(gg_outfile_open(&o, NULL, target, how, &err) == GGUF_OK &&
           gg_outfile_write(&o, "x", 1, &err) == GGUF_OK &&
           gg_outfile_finish(&o, &err) == GGUF_OK,
       "one of its own");
    gg_outfile_abort(&o);
    ok(has_bytes(part, 1, x_at) &&
           gg_outfile_open(&o, NULL, target, how | GG_OUTFILE_RESUME, &err) ==
               GGUF_OK &&
           has_bytes(part, 1, x_at),
       "stays, and is taken up");
    gg_outfile_abort(&o);
    gg_os_remove(part);
}

#ifdef _WIN32
static void check_changes(void)
{
    skip("Windows refuses to cut off a mapped file");
}

static void check_killed(void)
{
    skip("killed: there is no fork()");
}
#else
/* A file that is truncated, or written to, while it is mapped. */
static void check_changes(void)
{
    struct gguf_error err;
    struct gg_mapfile m;
    struct timespec old[2] = { { 1000, 5 }, { 1000, 5 } }, now[2];
    gg_os_remove(target);
    int fd = open(target, O_RDWR | O_CREAT | O_EXCL, 0600);
    ok(write(fd, "0123456789", 10) == 10 && !futimens(fd, old) &&
           gg_mapfile_open(&m, target, 0, 0, &err) == GGUF_OK &&
           gg_mapfile_check_unchanged(&m, m.fd, &err) == GGUF_OK,
       "a file as it was");
    ok(!ftruncate(fd, 9) && !futimens(fd, old) && m.data[9] == 0 &&
           gg_mapfile_check_unchanged(&m, m.fd, &err) == GGUF_E_MISMATCH,
       "cut off, it reads as zeros: %s", err.message);
    now[0] = now[1] = (struct timespec){ 1000, 6 };
    ok(!ftruncate(fd, 10) && !futimens(fd, old) &&
           gg_mapfile_check_unchanged(&m, m.fd, &err) == GGUF_OK &&
           !futimens(fd, now) &&
           gg_mapfile_check_unchanged(&m, m.fd, &err) == GGUF_E_MISMATCH,
       "a nanosecond later: %s", err.message);
    gg_mapfile_close(&m);
    ok(gg_mapfile_open(&m, target, 2, 3, &err) == GGUF_OK &&
           gg_mapfile_check_unchanged(&m, m.fd, &err) == GGUF_OK,
       "a part of a file");
    gg_mapfile_close(&m);
    ok(gg_mapfile_open_memory(&m, "x", 1, 0, 0, &err) == GGUF_OK &&
           gg_mapfile_check_unchanged(&m, m.fd, &err) == GGUF_OK,
       "and memory");
    gg_mapfile_close(&m);
    close(fd);
}

#endif

static void check_map(void)
{
    struct gguf_error err;
    struct gg_mapfile m;
    long page = (long)gg_os_page_size();
    ok(gg_mapfile_open(&m, source, (uint64_t)page + 3, 1000, &err) ==
               GGUF_OK &&
           m.size == 1000 && m.data[999] == byte_at((size_t)page + 3 + 999),
       "a part of a file");
    gg_mapfile_advise(&m, 10, 500, GG_ADVISE_DONTNEED);
    gg_mapfile_advise(&m, 0, UINT64_MAX, GG_ADVISE_WILLNEED);
    ok(m.data[10] == byte_at((size_t)page + 13) &&
           gg_mapfile_is_path(&m, source) && !gg_mapfile_is_path(&m, dir),
       "is there after advice");
    gg_mapfile_close(&m);
    gg_mapfile_close(&m);
    int fd = open(target, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ok(fd >= 0 && gg_mapfile_open(&m, target, 0, 0, &err) == GGUF_OK &&
           m.size == 0 && m.data,
       "an empty file");
    gg_mapfile_close(&m);
    close(fd);
}

/* A file without a name is created before its folder, if the system allows. */
static void check_new_folder(void)
{
    struct gguf_error err;
    struct gg_outfile o;
    char folder[64], path[80];
    snprintf(folder, sizeof folder, "%s/later", dir);
    snprintf(path, sizeof path, "%s//x", folder);
    enum gguf_status st =
        gg_outfile_open(&o, NULL, path, GG_OUTFILE_NEW_FOLDER, &err);
    if (st == GGUF_E_UNSUPPORTED) {
        skip("a file before its folder: %s", err.message);
    } else {
        ok(st == GGUF_OK && write_pieces(&o, 1000) == GGUF_OK &&
               gg_outfile_flush(&o, &err) == GGUF_OK && n_others() == 0 &&
               gg_os_make_folder(folder) == 0 &&
               gg_outfile_commit(&o, &err) == GGUF_OK &&
               has_bytes(path, 1000, byte_at),
           "a file waits until its folder is there");
        gg_os_remove(path);
        rmdir(folder);
        ok(gg_outfile_open(&o, NULL, path, GG_OUTFILE_NEW_FOLDER, &err) ==
                   GGUF_OK &&
               gg_outfile_commit(&o, &err) == GGUF_E_IO && n_others() == 0,
           "one that never has a folder is gone: %s", err.message);
    }
    st = gg_outfile_open(&o, NULL, path,
                         GG_OUTFILE_NEW_FOLDER | GG_OUTFILE_NAMED, &err);
    ok(st == GGUF_E_UNSUPPORTED && n_others() == 0,
       "not one that must have a name: %s", err.message);
}

#ifndef _WIN32
/* Write target under a temporary name, and die after 1 step (written), 2
 * (synced) or 3 (named). */
static void die_after(int steps)
{
    struct gg_outfile o;
    if (gg_outfile_open(&o, NULL, target, GG_OUTFILE_FORCE | GG_OUTFILE_NAMED,
                        NULL) != GGUF_OK ||
        write_pieces(&o, 5000) != GGUF_OK ||
        (steps > 1 && gg_outfile_finish(&o, NULL) != GGUF_OK) ||
        (steps > 2 && gg_outfile_publish(&o, false, NULL) != GGUF_OK))
        _exit(1);
    raise(SIGKILL);
}

/* With temporary names; tests/fault kills programs whose files have no names.
 */
static void check_killed(void)
{
    char cmd[100];
    snprintf(cmd, sizeof cmd, "rm -f %s/.target.*.tmp", dir);
    for (int steps = 1; steps <= 3; steps++) {
        struct gg_outfile o;
        int status = 0;
        if (gg_outfile_open(&o, NULL, target, GG_OUTFILE_FORCE, NULL) ||
            write_pieces(&o, 1000) || gg_outfile_commit(&o, NULL))
            exit(99);
        pid_t pid = fork();
        if (!pid)
            die_after(steps);
        ok(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
               has_bytes(target, steps < 3 ? 1000 : 5000, byte_at) &&
               n_others() == (steps < 3) && system(cmd) == 0 &&
               n_others() == 0,
           "killed after %d of 3 steps: %s file%s", steps,
           steps < 3 ? "the old" : "the new",
           steps < 3 ? ", and a temporary" : "");
    }
}

#endif

int main(void)
{
    struct gg_outfile o;
    if (!scratch_make(dir))
        return 99;
    snprintf(target, sizeof target, "%s/target", dir);
    snprintf(source, sizeof source, "%s/source", dir);
    snprintf(part, sizeof part, "%s" GG_OUTFILE_PART, target);
    ok(gg_outfile_open(&o, NULL, source, 0, NULL) == GGUF_OK &&
           write_pieces(&o, 1 << 20) == GGUF_OK &&
           gg_outfile_commit(&o, NULL) == GGUF_OK,
       "a source");
    check_way(0, "nameless");
    check_way(GG_OUTFILE_NAMED, "named");
    check_way(GG_OUTFILE_NO_SYNC, "unsynced");
    check_names(0, "nameless");
    check_names(GG_OUTFILE_NAMED, "named");
    check_names(GG_OUTFILE_PARTIAL, "partial");
    for (int i = 0; i < 2; i++) {
        check_all(GG_OUTFILE_FORCE, "nameless", i);
        check_all(GG_OUTFILE_FORCE | GG_OUTFILE_NAMED, "named", i);
    }
    check_partial();
    check_changes();
    check_new_folder();
    check_killed();
    check_map();
    gg_os_remove(target);
    gg_os_remove(source);
    rmdir(dir);
    return done_testing();
}
