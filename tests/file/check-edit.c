/* check-edit.c - other metadata, the same tensors, whatever happens meanwhile
 */
#include "config.h"
#include "base/outfile.h"
#include "file/journal.h"
#include "gguf/edit.h"
#include "gguf/writer.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "check-edit-XXXXXX";
static char path[64], other[64], journal[80];
static char by_link[64]; /* a symbolic link to path */

static int exists(const char *name)
{
    return access(name, F_OK) == 0;
}

static void write_fixture(const char *name)
{
    for (const struct fixture *x = fix_good; x->name; x++)
        if (!strcmp(x->name, name)) {
            struct fix fx;
            fix_init(&fx);
            x->make(&fx);
            if (!spill(path, fx.data, fx.size))
                exit(99);
            fix_fini(&fx);
        }
}

/* A model with a text of n bytes under "text" and some data. */
static void write_model(size_t n, size_t data)
{
    struct fix fx;
    fix_init(&fx);
    fix_head(&fx, 3, 2, 2);
    fix_kv_str(&fx, "general.architecture", "llama");
    fix_key(&fx, "text", GGUF_VAL_STR);
    fix_u64(&fx, n);
    fix_fill(&fx, 'a', n);
    fix_info(&fx, "t0", FIX_NE(8), GGUF_DTYPE_F32, 0);
    fix_info(&fx, "t1", FIX_NE(data), GGUF_DTYPE_I8, 32);
    fix_pad(&fx, 32);
    for (size_t i = 0; i < 32 + data; i++)
        fix_u8(&fx, (unsigned)(i * 7) & 255);
    if (!spill(path, fx.data, fx.size))
        exit(99);
    fix_fini(&fx);
}

/* Set "text" to n times c, or take it out for n = 0. */
static enum gguf_status edit(size_t n, char c,
                             const struct gguf_edit_params *p,
                             enum gguf_edit_way *way, struct gguf_error *err)
{
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    char *text = malloc(n + 1);
    memset(text, c, n);
    enum gguf_status st = gguf_file_open(&f, path, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_create(&m, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(m, f, err);
    if (st == GGUF_OK && n)
        st = gguf_meta_set_str(m, "text", (struct gguf_str){ text, n }, err);
    else if (st == GGUF_OK)
        gguf_meta_remove(m, "text");
    if (st == GGUF_OK)
        st = gguf_edit_apply(f, m, p, way, err);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    free(text);
    return st;
}

/* The length of "text" in name (SIZE_MAX: missing), or of the padding pair. */
static size_t length_of(const char *name, const char *key)
{
    struct gguf_file *f;
    struct gguf_error err;
    if (gguf_file_open(&f, name, NULL, &err) != GGUF_OK) {
        printf("# %s\n", err.message);
        return SIZE_MAX - 1;
    }
    const struct gguf_kv *kv = gguf_file_kv_find(f, key);
    size_t n = kv ? kv->size : SIZE_MAX;
    gguf_file_close(f);
    return n;
}

/* Are the tensors' bytes those of write_model? */
static int data_good(const char *name)
{
    struct gguf_file *f;
    if (gguf_file_open(&f, name, NULL, NULL) != GGUF_OK)
        return 0;
    int good = gguf_file_n_tensors(f) == 2;
    for (size_t i = 0, at = 0; good && i < 2; i++) {
        const uint8_t *d = gguf_file_tensor_data(f, i);
        for (uint64_t k = 0; k < gguf_file_tensor(f, i)->size; k++, at++)
            good = good && d[k] == (uint8_t)(at * 7);
    }
    gguf_file_close(f);
    return good;
}

static const char *const pad = GGUF_EDIT_PADDING_KEY;

static void check_copy(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    enum gguf_edit_way way;
    p.no_sync = 1;
    write_model(100, 5000);
    ok(edit(3000, 'b', &p, &way, &err) == GGUF_OK && way == GGUF_EDIT_COPIED &&
           length_of(path, "text") == 3000 &&
           length_of(path, pad) == SIZE_MAX && data_good(path),
       "a small file is copied");
    ok(edit(100, 'a', &p, &way, &err) == GGUF_OK, "back");
    size_t n, n2;
    uint8_t *now = slurp(path, &n);
    write_model(100, 5000);
    uint8_t *was = slurp(path, &n2);
    ok(n == n2 && !memcmp(now, was, n), "gives the first file again");
    free(now);
    free(was);

    p.output = other;
    ok(edit(0, 0, &p, &way, &err) == GGUF_OK &&
           length_of(other, "text") == SIZE_MAX && data_good(other) &&
           length_of(path, "text") == 100,
       "into another file");
    ok(edit(0, 0, &p, &way, &err) == GGUF_E_EXIST, "once: %s", err.message);
    p.force = 1;
    ok(edit(7, 'c', &p, &way, &err) == GGUF_OK &&
           length_of(other, "text") == 7,
       "or by force");
    p.output = path;
    ok(edit(7, 'c', &p, &way, &err) == GGUF_E_INVALID,
       "the output may not be named as the input: %s", err.message);
    p.output = NULL;
    unlink(other);
    ok(symlink(path + sizeof dir, other) == 0, "a symbolic link");
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    struct stat s;
    ok(gguf_file_open(&f, other, NULL, &err) == GGUF_OK &&
           gguf_meta_create(&m, NULL, &err) == GGUF_OK &&
           gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_OK &&
           lstat(other, &s) == 0 && S_ISLNK(s.st_mode) &&
           length_of(path, "text") == SIZE_MAX && data_good(path),
       "stays one, its file is edited");
    ok(gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_E_MISMATCH,
       "a file that was replaced: %s", err.message);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    unlink(other);
}

static void check_in_place(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    enum gguf_edit_way way;
    struct stat before, after;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(1000, 5000);
    stat(path, &before);
    /* Every length: too long, just so, too little left for a pair. */
    unsigned n_fit = 0, bad = 0;
    for (size_t n = 900; n <= 1100; n++) {
        enum gguf_status st = edit(n, 'b', &p, &way, &err);
        n_fit += st == GGUF_OK;
        bad += st != GGUF_OK && st != GGUF_E_NOSPACE;
        bad += st == GGUF_OK && length_of(path, "text") != n;
        bad += !data_good(path) || exists(journal);
    }
    stat(path, &after);
    ok(!bad && n_fit > 60 && n_fit < 150 && after.st_size == before.st_size,
       "%u of 201 lengths fit in place: %s", n_fit, err.message);
    ok(edit(10, 'c', &p, &way, &err) == GGUF_OK && way != GGUF_EDIT_COPIED &&
           length_of(path, "text") == 10 && length_of(path, pad) > 900 &&
           data_good(path),
       "a shorter text leaves padding");
    ok(edit(800, 'd', &p, &way, &err) == GGUF_OK &&
           length_of(path, "text") == 800 && length_of(path, pad) < 200 &&
           data_good(path),
       "which a longer one uses");
    p.mode = GGUF_EDIT_COPY;
    ok(edit(800, 'e', &p, &way, &err) == GGUF_OK && way == GGUF_EDIT_COPIED &&
           length_of(path, pad) == SIZE_MAX && data_good(path),
       "and a plain copy drops");
}

static void check_layouts(void)
{
    static const char *const names[] = {
        "good-trailing",     "good-gap-and-order", "good-types",
        "good-scalars-be",   "good-nothing",       "good-version-2",
        "good-alignment-64",
    };
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    p.no_sync = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct gguf_file *f = NULL, *g = NULL;
        write_fixture(names[i]);
        size_t n, n2 = 0;
        uint8_t *was = slurp(path, &n), *now = NULL;
        int good = gguf_file_open_memory(&f, was, n, NULL, &err) == GGUF_OK &&
                   edit(300, 'x', &p, NULL, &err) == GGUF_OK;
        if (good)
            now = slurp(path, &n2);
        good =
            good && gguf_file_open_memory(&g, now, n2, NULL, &err) == GGUF_OK;
        if (!good)
            printf("# %s\n", err.message);
        good = good && gguf_file_version(f) == gguf_file_version(g) &&
               gguf_file_is_big_endian(f) == gguf_file_is_big_endian(g) &&
               gguf_file_n_kv(f) + 1 == gguf_file_n_kv(g);
        size_t from = good ? (size_t)gguf_file_data_off(f) : 0;
        size_t to = good ? (size_t)gguf_file_data_off(g) : 0;
        ok(good && (n <= from ? n2 <= to
                              : n - from == n2 - to &&
                                    !memcmp(was + from, now + to, n - from)),
           "%s: the data keeps its layout", names[i]);
        gguf_file_close(f);
        gguf_file_close(g);
        free(was);
        free(now);
    }
}

/* Bytes that pad the header, and are not zero, stay where the header keeps its
 * length: in another byte order, in a copy, in place. */
static void check_header_pad(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    struct gguf_file *f;
    size_t n, n2, n3;
    p.no_sync = 1;
    write_model(100, 5000);
    uint8_t *was = slurp(path, &n);
    if (!was || gguf_file_open(&f, path, NULL, &err) != GGUF_OK)
        exit(99);
    const size_t from = gguf_file_header_end(f), to = gguf_file_data_off(f);
    gguf_file_close(f);
    memset(was + from, 0x5a, to - from);
    ok(to - from > 8 && spill(path, was, n), "a padding of %zu bytes",
       to - from);
    p.order = GGUF_EDIT_BIG_ENDIAN;
    ok(edit(100, 'a', &p, NULL, &err) == GGUF_OK, "the other byte order");
    uint8_t *there = slurp(path, &n2);
    ok(n2 == n && !memcmp(there + from, was + from, to - from) &&
           memcmp(there, was, from) != 0,
       "keeps it");
    p.order = GGUF_EDIT_LITTLE_ENDIAN;
    ok(edit(100, 'a', &p, NULL, &err) == GGUF_OK, "and back");
    uint8_t *back = slurp(path, &n3);
    ok(n3 == n && !memcmp(back, was, n), "the file is the same");
    p.order = GGUF_EDIT_KEEP_ORDER;
    for (int way = 0; way < 2; way++) {
        free(back);
        p.mode = way ? GGUF_EDIT_IN_PLACE : GGUF_EDIT_COPY;
        ok(edit(100, way ? 'a' : 'b', &p, NULL, &err) == GGUF_OK &&
               (back = slurp(path, &n3)) && n3 == n &&
               !memcmp(back + from, was + from, to - from) && data_good(path),
           "a text of the same length, %s", way ? "in place" : "in a copy");
    }
    free(back);
    free(there);
    free(was);
}

static void check_alignment(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    p.no_sync = 1;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(100, 5000);
    ok(gguf_file_open(&f, path, NULL, &err) == GGUF_OK &&
           gguf_meta_create(&m, NULL, &err) == GGUF_OK &&
           gguf_meta_copy_file(m, f, &err) == GGUF_OK &&
           gguf_meta_set_u32(m, "general.alignment", 128, &err) == GGUF_OK &&
           gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_E_NOSPACE,
       "another alignment does not go in place: %s", err.message);
    p.mode = GGUF_EDIT_AUTO;
    ok(gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_OK && data_good(path),
       "but in a copy");
    gguf_file_close(f);
    ok(gguf_file_open(&f, path, NULL, &err) == GGUF_OK &&
           gguf_file_alignment(f) == 128 && gguf_file_tensor(f, 1)->off == 128,
       "which is laid out anew");
    ok(gguf_meta_set_u32(m, "general.alignment", 3, &err) == GGUF_OK &&
           gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_E_FORMAT &&
           data_good(path),
       "a bad alignment: %s", err.message);
    gguf_meta_destroy(m);
    gguf_file_close(f);
}

/* ------------------------------------------------------ interruptions --- */

/* Header of name, up to the data. */
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

/* The states that an edit in place goes through, made by hand. */
static void check_journal(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    struct gg_mapfile map;
    size_t n, n_old;
    int done;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(2000, 5000);
    uint8_t *old = header_of(path, &n_old);
    ok(edit(500, 'n', &p, NULL, &err) == GGUF_OK, "an edit");
    uint8_t *new = header_of(path, &n);
    for (int torn = 0; torn < 3; torn++) {
        write_model(2000, 5000);
        ok(n == n_old && gg_mapfile_open(&map, path, 0, 0, &err) == GGUF_OK &&
               gg_journal_save(NULL, path, &map, new, n, &err) == GGUF_OK,
           "a journal");
        gg_mapfile_close(&map);
        size_t m = torn == 0 ? 0 : torn == 1 ? n / 2 : n;
        int fd_ok = 0;
        FILE *f = fopen(path, "r+b");
        if (f) {
            fd_ok = fwrite(new, 1, m, f) == m;
            fd_ok = !fclose(f) && fd_ok;
        }
        ok(fd_ok && length_of(path, "text") == 500 && data_good(path),
           "%zu bytes of the header written: reads as the new file", m);
        ok(length_of(by_link, "text") == 500 && data_good(by_link),
           "also by a symbolic link");
        ok(gguf_edit_recover(torn % 2 ? by_link : path, &done, &err) ==
                   GGUF_OK &&
               done == 1 && !exists(journal) &&
               length_of(path, "text") == 500 && data_good(path),
           "and becomes it");
        ok(gguf_edit_recover(path, &done, &err) == GGUF_OK && done == 0,
           "once");
    }
    /* A journal of another file. */
    write_model(2000, 5000);
    ok(gg_mapfile_open(&map, path, 0, 0, &err) == GGUF_OK &&
           gg_journal_save(NULL, path, &map, new, n, &err) == GGUF_OK,
       "a journal");
    gg_mapfile_close(&map);
    ok(rename(path, other) == 0, "the file goes away");
    write_model(2000, 5000);
    ok(length_of(path, "text") == 2000, "its journal is not the next one's");
    ok(edit(600, 'n', &p, NULL, &err) == GGUF_OK && !exists(journal) &&
           length_of(path, "text") == 600,
       "which can be edited");
    unlink(other);
    free(new);
    free(old);
}

/* Somebody else's journal in a folder like /tmp. */
static void check_foreign_journal(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    struct gg_mapfile map;
    size_t n;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(2000, 5000);
    ok(edit(500, 'n', &p, NULL, &err) == GGUF_OK, "an edit");
    uint8_t *new = header_of(path, &n);
    write_model(2000, 5000);
    ok(gg_mapfile_open(&map, path, 0, 0, &err) == GGUF_OK &&
           gg_journal_save(NULL, path, &map, new, n, &err) == GGUF_OK,
       "a journal");
    gg_mapfile_close(&map);
    if (chown(journal, 65534, (gid_t)-1) != 0) {
        skip("files cannot be given away");
    } else {
        ok(chmod(dir, 01777) == 0 && length_of(path, "text") == 2000,
           "another user's is not obeyed where users are kept apart");
        ok(chmod(dir, 0777) == 0 && length_of(path, "text") == 500,
           "it is where they could replace the file, too");
        ok(chmod(dir, 01777) == 0 && chown(path, 65534, (gid_t)-1) == 0 &&
               length_of(path, "text") == 500,
           "the owner's is");
    }
    ok(chmod(dir, 0700) == 0 && unlink(journal) == 0, "afterwards");
    unlink(path);
    free(new);
}

/* Save a journal that shortens the text of the model at path. */
static uint8_t *save_journal(size_t *n)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gg_mapfile map;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(2000, 5000);
    if (edit(500, 'n', &p, NULL, NULL) != GGUF_OK)
        exit(99);
    uint8_t *new = header_of(path, n);
    unlink(path);
    write_model(2000, 5000);
    if (chmod(path, 0640) != 0 || gg_mapfile_open(&map, path, 0, 0, NULL) ||
        gg_journal_save(NULL, path, &map, new, *n, NULL))
        exit(99);
    gg_mapfile_close(&map);
    return new;
}

/* Who may read the file may read its journal, and nobody else. */
static void check_private(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct stat s;
    size_t n;
    mode_t mask = umask(0);
    free(save_journal(&n));
    ok(stat(journal, &s) == 0 && (s.st_mode & 0777) == 0640,
       "the journal has the mode of its file: %03o",
       (unsigned)s.st_mode & 0777);
    umask(mask);
    unlink(journal);
    if (chown(path, 65534, 65534) != 0) {
        skip("files cannot be given away");
        return;
    }
    p.mode = GGUF_EDIT_COPY;
    ok(edit(3000, 'b', &p, NULL, NULL) == GGUF_OK && stat(path, &s) == 0 &&
           s.st_uid == 65534 && s.st_gid == 65534 &&
           (s.st_mode & 0777) == 0640 && length_of(path, "text") == 3000,
       "a copy by the superuser keeps owner, group and mode");
    unlink(path);
}

/* Under the journal's name lies what is none. */
static void check_stranger(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    size_t n;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(2000, 5000);
    if (!spill(journal, "notes of mine", 13))
        exit(99);
    enum gguf_status st = edit(500, 'n', &p, NULL, &err);
    uint8_t *notes = slurp(journal, &n);
    ok(st == GGUF_E_EXIST && n == 13 && !memcmp(notes, "notes of mine", 13) &&
           length_of(path, "text") == 2000,
       "%s", err.message);
    free(notes);
    unlink(journal);
}

/* A journal that cannot be opened may tell of a header that is half written. */
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
    enum gguf_status with = gguf_file_open(&f, path, NULL, &err);
    gguf_file_close(f);
    unlink(journal);
    enum gguf_status without = gguf_file_open(&f, path, NULL, NULL);
    gguf_file_close(f);
    setrlimit(RLIMIT_NOFILE, &was);
    ok(with == GGUF_E_IO && strstr(err.message, "journal") &&
           without == GGUF_OK,
       "%s", err.message);
    free(new);
}

/* What a failure leaves is said. */
static void check_failed_write(void)
{
    struct rlimit was, few;
    struct gguf_error err;
    struct gg_mapfile map;
    bool begun = false;
    size_t n;
    uint8_t *new = save_journal(&n);
    int fd = open(path, O_WRONLY), bad = open(path, O_RDONLY);
    if (fd < 0 || bad < 0 || getrlimit(RLIMIT_FSIZE, &was) != 0 ||
        gg_mapfile_open(&map, path, 0, 0, NULL))
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
    ok(length_of(path, "text") == 500, "and that is so");
    gg_mapfile_close(&map);
    close(fd);
    close(bad);
    unlink(journal);
    free(new);
}

/* A progress callback that edits the file once more. */
static int edit_meanwhile(void *user, uint64_t done, uint64_t total)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error *err = user;
    (void)done;
    (void)total;
    p.mode = GGUF_EDIT_IN_PLACE;
    p.no_sync = 1;
    (void)edit(100, 'm', &p, NULL, err);
    return 0;
}

/* Two edits of one file: none is lost, and none meets the other's header. */
static void check_two_edits(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err, inner;
    struct gguf_file *f;
    struct gguf_meta *m;
    struct gg_mapfile map;
    int done, fd = -1;
    p.no_sync = 1;
    p.mode = GGUF_EDIT_COPY;
    p.progress = edit_meanwhile;
    p.progress_user = &inner;
    gguf_error_clear(&inner);
    write_model(2000, 5000);
#if HAVE_FLOCK
    ok(edit(500, 'n', &p, NULL, &err) == GGUF_OK &&
           inner.status == GGUF_E_IO && strstr(inner.message, "being edited"),
       "an edit during another: %s", inner.message);
    ok(length_of(path, "text") == 500, "is refused");
#endif
    p.progress = NULL;
    for (int way_no = 0; way_no < 2; way_no++) {
        write_model(2000, 5000);
        if (gguf_file_open(&f, path, NULL, &err) != GGUF_OK ||
            gguf_meta_create(&m, NULL, &err) != GGUF_OK)
            exit(99);
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
        p.mode = way_no ? GGUF_EDIT_IN_PLACE : GGUF_EDIT_COPY;
        ok(edit(500, 'n', &p, NULL, &err) == GGUF_OK &&
               gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_E_MISMATCH &&
               length_of(path, "text") == 500,
           "an edit of a file that another has changed: %s", err.message);
        gguf_meta_destroy(m);
        gguf_file_close(f);
    }
    /* The journal of an edit that is under way is not finished by others. */
#if HAVE_FLOCK
    size_t n;
    uint8_t *head = header_of(path, &n);
    ok(gg_mapfile_open(&map, path, 0, 0, &err) == GGUF_OK &&
           gg_journal_save(NULL, path, &map, head, n, &err) == GGUF_OK &&
           gg_header_lock(path, &map, &fd, &err) == GGUF_OK &&
           gguf_edit_recover(path, &done, &err) == GGUF_E_IO && !done &&
           exists(journal),
       "a journal in use: %s", err.message);
    close(fd);
    ok(gguf_edit_recover(path, &done, &err) == GGUF_OK && done == 1,
       "and left behind");
    gg_mapfile_close(&map);
    free(head);
#endif
}

/* Edits that go on until the process is killed. */
static void edit_for_ever(enum gguf_edit_mode mode, size_t i)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    p.mode = mode;
    p.no_sync = 1;
    for (;; i++)
        if (edit(i % 2 ? 50000 : 300, i % 2 ? 'o' : 'e', &p, NULL, &err))
            _exit(1);
}

static void check_kill(enum gguf_edit_mode mode, const char *name)
{
    enum { KILLS = 200 };
    unsigned bad = 0, odd = 0, journals = 0;
    write_model(60000, 5000);
    for (unsigned i = 0; i < KILLS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            edit_for_ever(mode, i);
        struct timespec t = { 0, (long)(200000 + rnd_below(3000000)) };
        nanosleep(&t, NULL);
        int status;
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        bad += !WIFSIGNALED(status);
        size_t n = length_of(path, "text");
        bad += n != 300 && n != 50000 && n != 60000;
        bad += !data_good(path);
        odd += n == 50000;
        journals += exists(journal);
    }
    ok(!bad,
       "%s: killed %d times, %u with the longer text, %u with a "
       "journal: always a whole file",
       name, KILLS, odd, journals);
    struct gguf_error err;
    ok(gguf_edit_recover(path, NULL, &err) == GGUF_OK && !exists(journal),
       "%s: and recovered", name);
}

/* ---------------------------------------------------------------- large --- */

static void check_large(void)
{
    static const int64_t ne[] = { 65 << 20 };
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_output_params o = GGUF_OUTPUT_PARAMS_INIT;
    struct gguf_writer *w = NULL;
    struct gguf_meta *m = NULL;
    struct gguf_file *f = NULL;
    struct gguf_error err;
    enum gguf_edit_way way = GGUF_EDIT_COPIED;
    o.force = o.no_sync = 1;
    p.no_sync = 1;
    uint8_t *zeros = calloc(1, 1 << 20);
    enum gguf_status st = gguf_meta_create(&m, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_meta_set_strz(m, "text",
                                "a text of some length, so that "
                                "there is room for a padding pair",
                                &err);
    if (st == GGUF_OK)
        st = gguf_writer_create(&w, m, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_writer_add_tensor(w, (struct gguf_str){ "t", 1 },
                                    GGUF_DTYPE_I8, 1, ne, &err);
    if (st == GGUF_OK)
        st = gguf_writer_open(w, path, &o, &err);
    if (st == GGUF_OK)
        st = gguf_writer_begin(w, 0, &err);
    for (int i = 0; st == GGUF_OK && i < 65; i++) {
        memset(zeros, i, 1 << 20);
        st = gguf_writer_write(w, zeros, 1 << 20, &err);
    }
    if (st == GGUF_OK)
        st = gguf_writer_commit(w, &err);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
    ok(st == GGUF_OK && edit(3, 'x', &p, &way, &err) == GGUF_OK &&
           way != GGUF_EDIT_COPIED && length_of(path, "text") == 3,
       "a large file is edited in place");
    ok(edit(100000, 'x', &p, &way, &err) == GGUF_OK &&
           way == GGUF_EDIT_COPIED && length_of(path, "text") == 100000 &&
           length_of(path, pad) < 2 * 4096,
       "or copied");
    int good = gguf_file_open(&f, path, NULL, &err) == GGUF_OK;
    /* The old data began at byte 192 or so. */
    good = good && gguf_file_data_off(f) % 4096 < 512;
    const uint8_t *d = good ? gguf_file_tensor_data(f, 0) : NULL;
    for (size_t i = 0; good && i < (size_t)ne[0]; i += 4097)
        good = d[i] == i >> 20;
    ok(good, "its data moves by whole extents and is the same");
    gguf_file_close(f);
    free(zeros);
}

static void check_nomem(void)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    unsigned wrong = 0, n = 0;
    p.no_sync = 1;
    for (int mode = GGUF_EDIT_COPY; mode <= GGUF_EDIT_IN_PLACE; mode++)
        for (n = 0;; n++) {
            struct failalloc fa;
            write_model(2000, 100);
            p.mode = (enum gguf_edit_mode)mode;
            p.allocator = failalloc_init(&fa, n);
            enum gguf_status st = edit(500, 'x', &p, NULL, &err);
            size_t len = length_of(path, "text");
            wrong += fa.live != 0 || (len != 2000 && len != 500);
            if (fa.calls <= n) {
                wrong += st != GGUF_OK;
                break;
            }
            wrong += st != GGUF_E_NOMEM;
            unlink(journal);
        }
    ok(!wrong && n > 10, "memory may run out at any call");
}

int main(void)
{
    if (!mkdtemp(dir))
        return 99;
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    snprintf(other, sizeof other, "%s/other.gguf", dir);
    snprintf(journal, sizeof journal, "%s.edit-journal", path);
    snprintf(by_link, sizeof by_link, "%s/link.gguf", dir);
    if (symlink("model.gguf", by_link) != 0)
        return 99;
    check_copy();
    check_in_place();
    check_layouts();
    check_header_pad();
    check_alignment();
    check_journal();
    check_foreign_journal();
    check_private();
    check_stranger();
    check_unreadable();
    check_failed_write();
    check_two_edits();
    check_nomem();
    check_kill(GGUF_EDIT_COPY, "copy");
    check_kill(GGUF_EDIT_IN_PLACE, "in place");
    check_large();
    char cmd[100];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    if (system(cmd) != 0)
        return 99;
    return done_testing();
}
