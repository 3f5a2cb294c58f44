/* SPDX-License-Identifier: MIT */
/* folder.c - a folder of a test, and the changes of its files */
#include "config.h"
#include "tests/fault/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail_file(const char *what, const char *name)
{
    printf("# %s: %s: %s\n", name, what, strerror(errno));
    exit(99);
}

struct bytes bytes_of(const char *path)
{
    struct bytes b = { NULL, 0 };
    struct stat s;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return b;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) {
        b.size = (size_t)s.st_size;
        b.data = malloc(b.size + 1);
        if (!b.data || read(fd, b.data, b.size) != (ssize_t)b.size)
            fail_file("cannot be read", path);
        b.data[b.size] = '\0';
    }
    close(fd);
    return b;
}

bool bytes_equal(const struct bytes *a, const struct bytes *b)
{
    return a->data && b->data && a->size == b->size &&
           !memcmp(a->data, b->data, a->size);
}

static struct entry *add_entry(struct folder *f, const char *name)
{
    if (f->n == FOLDER_MAX)
        fail_file("too many", name);
    struct entry *e = &f->e[f->n++];
    *e = (struct entry){ .mode = 0644 };
    snprintf(e->name, sizeof e->name, "%s", name);
    return e;
}

void folder_add(struct folder *f, const char *name, const struct bytes *b,
                mode_t mode, bool output)
{
    struct entry *e = add_entry(f, name);
    e->bytes = b;
    e->mode = mode;
    e->output = output;
}

void folder_add_thing(struct folder *f, const char *name, enum thing what,
                      const char *to)
{
    struct entry *e = add_entry(f, name);
    e->what = what;
    e->to = to;
}

const struct entry *folder_find(const struct folder *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->e[i].name, name))
            return &f->e[i];
    return NULL;
}

static const char *in_folder(const struct folder *f, const char *name)
{
    static char path[4][512];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", f->path, name);
    return p;
}

static void put_file(const char *path, const struct entry *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, e->mode);
    size_t n = e->bytes->size;
    if (fd < 0 || write(fd, e->bytes->data, n) != (ssize_t)n || close(fd) ||
        chmod(path, e->mode))
        fail_file("cannot be written", path);
}

static void put_entry(const struct folder *f, const struct entry *e)
{
    const char *path = in_folder(f, e->name);
    int bad = 0;
    switch (e->what) {
    case A_FILE: put_file(path, e); break;
    case A_LINK: bad = symlink(e->to, path); break;
    case A_HARD_LINK: bad = link(in_folder(f, e->to), path); break;
    case A_PIPE: bad = mkfifo(path, e->mode); break;
    case A_FOLDER: bad = mkdir(path, 0755); break;
    }
    if (bad)
        fail_file("cannot be made", path);
}

void folder_put(struct folder *f)
{
    DIR *d = opendir(f->path);
    if (!d && mkdir(f->path, 0755))
        fail_file("cannot be made", f->path);
    for (const struct dirent *x; d && (x = readdir(d));)
        if (strcmp(x->d_name, ".") && strcmp(x->d_name, "..") &&
            remove(in_folder(f, x->d_name)))
            fail_file("cannot be removed", x->d_name);
    if (d)
        closedir(d);
    for (size_t i = 0; i < f->n; i++)
        put_entry(f, &f->e[i]);
    for (size_t i = 0; i < f->n; i++) /* links were counted above */
        if (lstat(in_folder(f, f->e[i].name), &f->e[i].was))
            fail_file("lstat", f->e[i].name);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* An entry of the folder is untouched if its bytes and attributes are those
 * that folder_put made. If another name of the same file goes, counts and
 * times may differ. */
static bool is_untouched(const struct folder *f, const struct entry *e,
                         const struct stat *now)
{
    const struct stat *was = &e->was;
    bool good = now->st_ino == was->st_ino && now->st_mode == was->st_mode &&
                now->st_size == was->st_size && now->st_uid == was->st_uid &&
                now->st_gid == was->st_gid;
    if (e->what == A_PIPE) /* writing to a pipe changes its attributes only */
        return good;
    good &= same_time(&now->st_mtim, &was->st_mtim);
    const struct entry *other =
        e->what == A_HARD_LINK ? folder_find(f, e->to) : NULL;
    if (!other || !other->output)
        good &= now->st_nlink == was->st_nlink &&
                same_time(&now->st_ctim, &was->st_ctim);
    if (good && e->what == A_FILE) {
        struct bytes b = bytes_of(in_folder(f, e->name));
        good = bytes_equal(&b, e->bytes);
        free(b.data);
    }
    return good;
}

void folder_look(const struct folder *f, folder_report_fn *report, void *user)
{
    struct stat s;
    for (size_t i = 0; i < f->n; i++) {
        const struct entry *e = &f->e[i];
        if (e->output)
            continue;
        if (lstat(in_folder(f, e->name), &s))
            report(user, e->name, "is gone");
        else if (!is_untouched(f, e, &s))
            report(user, e->name, "changed");
    }
    DIR *d = opendir(f->path);
    if (!d)
        fail_file("cannot be listed", f->path);
    for (const struct dirent *x; (x = readdir(d));)
        if (strcmp(x->d_name, ".") && strcmp(x->d_name, "..") &&
            !folder_find(f, x->d_name))
            report(user, x->d_name, "is new");
    closedir(d);
}

static void count_file(void *user, const char *name, const char *what)
{
    (void)name, (void)what;
    ++*(size_t *)user;
}

bool folder_is_untouched(const struct folder *f)
{
    struct stat s;
    size_t n = 0;
    folder_look(f, count_file, &n);
    for (size_t i = 0; i < f->n && !n; i++)
        if (f->e[i].output)
            n += lstat(in_folder(f, f->e[i].name), &s) ||
                 !is_untouched(f, &f->e[i], &s);
    return n == 0;
}
