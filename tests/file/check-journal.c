/* SPDX-License-Identifier: MIT */
/* check-journal.c - edits in place that are interrupted, or that meet each
 * other */
#include "config.h"
#include "base/outfile_int.h"
#include "file/edit_journal.h"
#include "gguf/edit.h"
#include "tests/file/edited.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Header of a file, up to its data. */
static uint8_t *header_of(const char *name, size_t *n)
{
    struct gguf_file *f;
    if (gguf_file_open(&f, name, NULL, NULL) != GGUF_OK)
        exit(99);
    *n = (size_t)gguf_file_data_off(f);
    uint8_t *p = malloc(*n);
    memcpy(p, gguf_file_bytes(f), *n);
    gguf_file_close(f);
    return p;
}

/* The states of an edit in place, made by hand. */
static void check_journal(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    struct gg_mapfile map;
    size_t n, n_old;
    bool done;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(2000, 5000);
    uint8_t *old = header_of(model_path, &n_old);
    ok(edit(500, 'n', &p, NULL, &err) == GGUF_OK, "an edit");
    uint8_t *new = header_of(model_path, &n);
    for (int torn = 0; torn < 3; torn++) {
        write_model(2000, 5000);
        ok(n == n_old &&
               gg_mapfile_open(&map, model_path, 0, 0, &err) == GGUF_OK &&
               gg_edit_journal_save(NULL, model_path, &map, new, n, &err) ==
                   GGUF_OK,
           "a journal");
        gg_mapfile_close(&map);
        size_t m = torn == 0 ? 0 : torn == 1 ? n / 2 : n;
        int fd_ok = 0;
        FILE *f = fopen(model_path, "r+b");
        if (f) {
            fd_ok = fwrite(new, 1, m, f) == m;
            fd_ok = !fclose(f) && fd_ok;
        }
        ok(fd_ok && length_of(model_path, "text") == 500 &&
               data_good(model_path),
           "%zu bytes of the header written: reads as the new file", m);
        ok(length_of(link_path, "text") == 500 && data_good(link_path),
           "also by a symbolic link");
        ok(gguf_edit_recover(torn % 2 ? link_path : model_path, &done, &err) ==
                   GGUF_OK &&
               done == 1 && !exists(journal_path) &&
               length_of(model_path, "text") == 500 && data_good(model_path),
           "and becomes it");
        ok(gguf_edit_recover(model_path, &done, &err) == GGUF_OK && done == 0,
           "once");
    }
    /* a journal of another file */
    write_model(2000, 5000);
    ok(gg_mapfile_open(&map, model_path, 0, 0, &err) == GGUF_OK &&
           gg_edit_journal_save(NULL, model_path, &map, new, n, &err) ==
               GGUF_OK,
       "a journal");
    gg_mapfile_close(&map);
    ok(rename(model_path, other_path) == 0, "the file goes away");
    write_model(2000, 5000);
    ok(length_of(model_path, "text") == 2000,
       "its journal is not the next one's");
    ok(edit(600, 'n', &p, NULL, &err) == GGUF_OK && !exists(journal_path) &&
           length_of(model_path, "text") == 600,
       "which can be edited");
    unlink(other_path);
    free(new);
    free(old);
}

/* Another user's journal in a folder like /tmp. */
static void check_foreign_journal(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    struct gg_mapfile map;
    size_t n;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(2000, 5000);
    ok(edit(500, 'n', &p, NULL, &err) == GGUF_OK, "an edit");
    uint8_t *new = header_of(model_path, &n);
    write_model(2000, 5000);
    ok(gg_mapfile_open(&map, model_path, 0, 0, &err) == GGUF_OK &&
           gg_edit_journal_save(NULL, model_path, &map, new, n, &err) ==
               GGUF_OK,
       "a journal");
    gg_mapfile_close(&map);
    if (chown(journal_path, 65534, (gid_t)-1) != 0) {
        skip("files cannot be given away");
    } else {
        ok(chmod(folder, 01777) == 0 && length_of(model_path, "text") == 2000,
           "another user's is not obeyed where users are kept apart");
        ok(chmod(folder, 0777) == 0 && length_of(model_path, "text") == 500,
           "it is where they could replace the file, too");
        ok(chmod(folder, 01777) == 0 &&
               chown(model_path, 65534, (gid_t)-1) == 0 &&
               length_of(model_path, "text") == 500,
           "the owner's is");
    }
    ok(chmod(folder, 0700) == 0 && unlink(journal_path) == 0, "afterwards");
    unlink(model_path);
    free(new);
}

/* Save a journal that shortens the text of the model at path. */
static uint8_t *save_journal(size_t *n)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gg_mapfile map;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(2000, 5000);
    if (edit(500, 'n', &p, NULL, NULL) != GGUF_OK)
        exit(99);
    uint8_t *new = header_of(model_path, n);
    unlink(model_path);
    write_model(2000, 5000);
    if (chmod(model_path, 0640) != 0 ||
        gg_mapfile_open(&map, model_path, 0, 0, NULL) ||
        gg_edit_journal_save(NULL, model_path, &map, new, *n, NULL))
        exit(99);
    gg_mapfile_close(&map);
    return new;
}

/* The journal has the file's permissions: its readers may read it, and no one
 * else. */
static void check_private(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct stat s;
    size_t n;
    mode_t mask = umask(0);
    free(save_journal(&n));
    ok(stat(journal_path, &s) == 0 && (s.st_mode & 0777) == 0640,
       "the journal has the mode of its file: %03o",
       (unsigned)s.st_mode & 0777);
    umask(mask);
    unlink(journal_path);
    if (chown(model_path, 65534, 65534) != 0) {
        skip("files cannot be given away");
        return;
    }
    p.mode = GGUF_EDIT_COPY;
    ok(edit(3000, 'b', &p, NULL, NULL) == GGUF_OK &&
           stat(model_path, &s) == 0 && s.st_uid == 65534 &&
           s.st_gid == 65534 && (s.st_mode & 0777) == 0640 &&
           length_of(model_path, "text") == 3000,
       "a copy by the superuser keeps owner, group and mode");
    unlink(model_path);
}

/* The journal's name belongs to a file that is not a journal. */
static void check_stranger(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    size_t n;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(2000, 5000);
    if (!spill(journal_path, "notes of mine", 13))
        exit(99);
    enum gguf_status st = edit(500, 'n', &p, NULL, &err);
    uint8_t *notes = slurp(journal_path, &n);
    ok(st == GGUF_E_EXIST && n == 13 && !memcmp(notes, "notes of mine", 13) &&
           length_of(model_path, "text") == 2000,
       "%s", err.message);
    free(notes);
    unlink(journal_path);
}

/* A journal that cannot be opened is reported: it may belong to a half-written
 * header. */
static void check_unreadable(void)
{
    struct rlimit was, few;
    struct gguf_error err;
    struct gguf_file *f;
    size_t n;
    uint8_t *new = save_journal(&n);
    int next = dup(0);
    close(next);
    if (next < 0 || getrlimit(RLIMIT_NOFILE, &was) != 0)
        exit(99);
    few = was;
    few.rlim_cur = (rlim_t)next + 1;
    setrlimit(RLIMIT_NOFILE, &few);
    enum gguf_status with = gguf_file_open(&f, model_path, NULL, &err);
    gguf_file_close(f);
    unlink(journal_path);
    enum gguf_status without = gguf_file_open(&f, model_path, NULL, NULL);
    gguf_file_close(f);
    setrlimit(RLIMIT_NOFILE, &was);
    ok(with == GGUF_E_IO && strstr(err.message, "journal") &&
           without == GGUF_OK,
       "%s", err.message);
    free(new);
}

/* A failed write reports the files that remain. */
static void check_failed_write(void)
{
    struct rlimit was, few;
    struct gguf_error err;
    struct gg_mapfile map;
    bool begun = false;
    size_t n;
    uint8_t *new = save_journal(&n);
    int fd = open(model_path, O_WRONLY), bad = open(model_path, O_RDONLY);
    if (fd < 0 || bad < 0 || getrlimit(RLIMIT_FSIZE, &was) != 0 ||
        gg_mapfile_open(&map, model_path, 0, 0, NULL))
        exit(99);
    ok(gg_header_overwrite(bad, &map, new, n, &begun, &err) == GGUF_E_IO &&
           !begun && !strstr(err.message, "--recover"),
       "%s", err.message);
    signal(SIGXFSZ, SIG_IGN);
    few = was;
    few.rlim_cur = 1000;
    setrlimit(RLIMIT_FSIZE, &few);
    enum gguf_status st = gg_header_overwrite(fd, &map, new, n, &begun, &err);
    setrlimit(RLIMIT_FSIZE, &was);
    ok(st != GGUF_OK && begun && strstr(err.message, "at byte 1000") &&
           strstr(err.message, "--recover finishes it"),
       "%s", err.message);
    ok(length_of(model_path, "text") == 500, "and that is so");
    gg_mapfile_close(&map);
    close(fd);
    close(bad);
    unlink(journal_path);
    free(new);
}

/* A progress callback that edits the file once more. */
static bool edit_meanwhile(void *user, uint64_t done, uint64_t total)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error *err = user;
    (void)done;
    (void)total;
    p.mode = GGUF_EDIT_IN_PLACE;
    p.no_sync = true;
    (void)edit(100, 'm', &p, NULL, err);
    return 0;
}

/* Two simultaneous edits of a file: none is lost, and none meets the other's
 * header. */
static void check_two_edits(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err, inner;
    struct gguf_file *f;
    struct gguf_meta *m;
    struct gg_mapfile map;
    bool done;
    int fd = -1;
    p.no_sync = true;
    p.mode = GGUF_EDIT_COPY;
    p.progress.fn = edit_meanwhile;
    p.progress.user = &inner;
    gguf_error_clear(&inner);
    write_model(2000, 5000);
#if HAVE_FLOCK
    ok(edit(500, 'n', &p, NULL, &err) == GGUF_OK &&
           inner.status == GGUF_E_IO && strstr(inner.message, "being edited"),
       "an edit during another: %s", inner.message);
    ok(length_of(model_path, "text") == 500, "is refused");
#endif
    p.progress.fn = NULL;
    for (int way_no = 0; way_no < 2; way_no++) {
        write_model(2000, 5000);
        if (gguf_file_open(&f, model_path, NULL, &err) != GGUF_OK ||
            gguf_meta_create(&m, NULL, &err) != GGUF_OK)
            exit(99);
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
        p.mode = way_no ? GGUF_EDIT_IN_PLACE : GGUF_EDIT_COPY;
        ok(edit(500, 'n', &p, NULL, &err) == GGUF_OK &&
               gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_E_MISMATCH &&
               length_of(model_path, "text") == 500,
           "an edit of a file that another has changed: %s", err.message);
        gguf_meta_destroy(m);
        gguf_file_close(f);
    }
    /* another process must not finish an edit that is under way */
#if HAVE_FLOCK
    size_t n;
    uint8_t *head = header_of(model_path, &n);
    ok(gg_mapfile_open(&map, model_path, 0, 0, &err) == GGUF_OK &&
           gg_edit_journal_save(NULL, model_path, &map, head, n, &err) ==
               GGUF_OK &&
           gg_header_lock(model_path, &map, &fd, &err) == GGUF_OK &&
           gguf_edit_recover(model_path, &done, &err) == GGUF_E_IO && !done &&
           exists(journal_path),
       "a journal in use: %s", err.message);
    close(fd);
    ok(gguf_edit_recover(model_path, &done, &err) == GGUF_OK && done == 1,
       "and left behind");
    gg_mapfile_close(&map);
    free(head);
#endif
}

int main(void)
{
    if (!edited_begin())
        return 99;
    check_journal();
    check_foreign_journal();
    check_private();
    check_stranger();
    check_unreadable();
    check_failed_write();
    check_two_edits();
    if (!edited_end())
        return 99;
    return done_testing();
}
