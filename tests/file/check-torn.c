/* SPDX-License-Identifier: MIT */
/* check-torn.c - readers of a file whose header is being written in place
 *
 * The allocator is the hook: at its n-th call, for every n, the file that is
 * being opened is edited, or an edit is begun and never finished. A reader
 * must get the old file or the new one.
 */
#include "config.h"
#include "file/edit_journal.h"
#include "gguf/edit.h"
#include "tests/fix.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "check-torn-XXXXXX";
static char path[64], journal[80];

enum { N_TEXTS = 8, SIZE = 3000 };

/* A model with texts of SIZE bytes, each of one letter. */
static void write_model(char c)
{
    struct fix fx;
    fix_init(&fx);
    fix_head(&fx, 3, 1, 1 + N_TEXTS);
    fix_kv_str(&fx, "general.architecture", "llama");
    for (unsigned i = 0; i < N_TEXTS; i++) {
        char key[16];
        snprintf(key, sizeof key, "text.%u", i);
        fix_key(&fx, key, GGUF_VAL_STR);
        fix_u64(&fx, SIZE);
        fix_fill(&fx, (unsigned char)c, SIZE);
    }
    fix_info(&fx, "t", FIX_NE(8), GGUF_DTYPE_F32, 0);
    fix_pad(&fx, 32);
    fix_fill(&fx, 1, 32);
    unlink(path); /* another file than the last one */
    if (!spill(path, fx.data, fx.size))
        exit(99);
    fix_fini(&fx);
}

/* Metadata of f with n bytes of c for each text. */
static struct gguf_meta *changed_meta(const struct gguf_file *f, char c,
                                      size_t n)
{
    struct gguf_meta *m;
    static char text[SIZE];
    memset(text, c, n);
    if (gguf_meta_create(&m, NULL, NULL) || gguf_meta_copy_file(m, f, NULL))
        exit(99);
    for (unsigned i = 0; i < N_TEXTS; i++) {
        char key[16];
        snprintf(key, sizeof key, "text.%u", i);
        if (gguf_meta_set_str(m, key, (struct gguf_str){ text, n }, NULL))
            exit(99);
    }
    return m;
}

static enum gguf_status edit_texts(char c, size_t n)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_file *f;
    p.mode = GGUF_EDIT_IN_PLACE;
    if (gguf_file_open(&f, path, NULL, NULL) != GGUF_OK)
        return GGUF_E_IO;
    struct gguf_meta *m = changed_meta(f, c, n);
    enum gguf_status st = gguf_edit_apply(f, m, &p, NULL, NULL);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    return st;
}

/* An edit that dies after half of its header. It would write 'n', as edit()
 * does. */
static void begin_edit(size_t n)
{
    struct gguf_file *f;
    struct gg_mapfile map;
    uint8_t *old, *new;
    size_t size, size2;
    old = slurp(path, &size);
    if (edit_texts('n', n) != GGUF_OK || gguf_file_open(&f, path, NULL, NULL))
        exit(99);
    new = slurp(path, &size2);
    size_t header = (size_t)gguf_file_data_off(f);
    gguf_file_close(f);
    FILE *file = fopen(path, "r+b");
    if (!file || fwrite(old, 1, size, file) != size || fflush(file) ||
        gg_mapfile_open(&map, path, 0, 0, NULL) ||
        gg_edit_journal_save(NULL, path, &map, new, header, NULL))
        exit(99);
    gg_mapfile_close(&map);
    rewind(file);
    if (fwrite(new, 1, header / 2, file) != header / 2 || fclose(file))
        exit(99);
    free(old);
    free(new);
}

/* The letter of all texts; 0: they differ, or have another length than n. */
static char common_letter(const struct gguf_file *f, size_t *n)
{
    char c = 0;
    *n = 0;
    for (unsigned i = 0; i < N_TEXTS; i++) {
        char key[16];
        snprintf(key, sizeof key, "text.%u", i);
        const struct gguf_kv *kv = gguf_file_kv_find(f, key);
        if (!kv || kv->type != GGUF_VAL_STR || !kv->size)
            return 0;
        const char *s = kv->data;
        if (i == 0) {
            c = s[0];
            *n = kv->size;
        }
        if (kv->size != *n)
            return 0;
        for (size_t k = 0; k < kv->size; k++)
            if (s[k] != c)
                return 0;
    }
    return c;
}

struct hook {
    struct gguf_allocator a;
    unsigned calls, at;
    void (*run)(size_t n);
    size_t n;
};

static void *hook_alloc(void *user, size_t size)
{
    struct hook *h = user;
    if (h->calls++ == h->at)
        h->run(h->n);
    return malloc(size);
}

static void hook_free(void *user, void *p)
{
    (void)user;
    free(p);
}

static void whole_edit(size_t n)
{
    if (edit_texts('n', n) != GGUF_OK)
        exit(99);
}

/* An edit at every place between two calls. */
static void check_between(const char *what, void (*run)(size_t n), size_t n,
                          bool must_be_new)
{
    unsigned old = 0, new = 0, mixed = 0;
    for (unsigned at = 0;; at++) {
        struct hook h = { { .struct_size = sizeof(struct gguf_allocator),
                            .alloc = hook_alloc,
                            .free = hook_free,
                            .user = &h },
                          0,
                          at,
                          run,
                          n };
        struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
        struct gguf_file *f;
        p.allocator = &h.a;
        write_model('o');
        unlink(journal);
        enum gguf_status st = gguf_file_open(&f, path, &p, NULL);
        size_t size = 0;
        char c = st == GGUF_OK ? common_letter(f, &size) : 0;
        old += c == 'o' && size == SIZE;
        new += c == 'n' && size == n;
        mixed += !(c == 'o' && size == SIZE) && !(c == 'n' && size == n);
        gguf_file_close(f);
        if (h.calls <= at)
            break;
    }
    unlink(journal);
    ok(!mixed && old && (new > 3 || !must_be_new),
       "%s: %u times the old file, %u times the new one, %u mixed", what, old,
       new, mixed);
}

/* An open file keeps its content. */
static void check_stays(void)
{
    struct gguf_file *f;
    size_t n;
    write_model('o');
    bool good = gguf_file_open(&f, path, NULL, NULL) == GGUF_OK;
    const uint8_t *at = gguf_file_tensor_data(f, 0);
    ok(good && edit_texts('n', SIZE) == GGUF_OK && common_letter(f, &n) == 'o',
       "an edit does not change an open file");
    ok(at == gguf_file_tensor_data(f, 0) && at[31] == 1 &&
           gguf_file_bytes(f) == (const void *)(at - gguf_file_data_off(f)),
       "which is in one piece");
    gguf_file_close(f);
    ok(gguf_file_open(&f, path, NULL, NULL) == GGUF_OK &&
           common_letter(f, &n) == 'n',
       "who opens it afterwards has the new one");
    gguf_file_close(f);
}

/* Edit until this process is killed, and count the edits. */
static void edit_forever(atomic_uint *edits)
{
    for (unsigned i = 0;; i++) {
        if (edit_texts((char)('a' + i % 26), SIZE - 100 * (i % 3)) != GGUF_OK)
            _exit(1);
        atomic_fetch_add(edits, 1);
    }
}

/* A writer and a reader, each as fast as it can. */
static void check_race(void)
{
    atomic_uint *edits = mmap(NULL, sizeof *edits, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (edits == MAP_FAILED)
        exit(99);
    write_model('o');
    pid_t pid = fork();
    if (pid == 0)
        edit_forever(edits);
    unsigned reads = 0, mixed = 0, failed = 0;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        struct gguf_file *f;
        struct gguf_error err;
        size_t n;
        if (gguf_file_open(&f, path, NULL, &err) == GGUF_OK) {
            mixed += !common_letter(f, &n);
        } else {
            failed++;
            printf("# %s\n", err.message);
        }
        gguf_file_close(f);
        reads++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < 2 || atomic_load(edits) < 3);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(journal);
    ok(!mixed && !failed, "%u edits, %u reads: %u mixed, %u failed",
       atomic_load(edits), reads, mixed, failed);
    munmap(edits, sizeof *edits);
}

/* A file that is written to all the time, except its header, opens. */
static void check_growing(void)
{
    struct gguf_file *f;
    write_model('o');
    pid_t pid = fork();
    FILE *file = pid ? NULL : fopen(path, "ab");
    while (pid == 0)
        if (!file || fputc('x', file) < 0 || fflush(file))
            _exit(1);
    unsigned opened = 0;
    for (int i = 0; i < 200; i++) {
        opened += gguf_file_open(&f, path, NULL, NULL) == GGUF_OK;
        gguf_file_close(f);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ok(opened == 200, "a file that grows: %u of 200 times", opened);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    snprintf(journal, sizeof journal, "%s" GG_EDIT_JOURNAL, path);
    check_between("an edit", whole_edit, SIZE, true);
    check_between("an edit that makes texts shorter", whole_edit, 700, true);
    check_between("half an edit", begin_edit, SIZE, true);
    check_between("half an edit to shorter texts", begin_edit, 700, true);
    check_stays();
    check_race();
    check_growing();
    if (!scratch_remove(dir))
        return 99;
    return done_testing();
}
