/* SPDX-License-Identifier: MIT */
/* folder.h - a folder of a test, and the changes of its files
 *
 * folder_put() makes the files, a program runs in the folder, and
 * folder_look() reports each file that has changed. Single thread. Failures of
 * the test itself end it with status 99.
 */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct bytes {
    char *data; /* malloc'ed; NULL: no file */
    size_t size;
};

/* Read a whole file; {NULL, 0} if it is missing. Free data with free(). */
struct bytes bytes_of(const char *path);
bool bytes_equal(const struct bytes *a, const struct bytes *b);

enum { FOLDER_MAX = 64, FOLDER_NAME = 96 };

enum thing { A_FILE, A_LINK, A_HARD_LINK, A_PIPE, A_FOLDER };

struct entry {
    char name[FOLDER_NAME];
    enum thing what;
    mode_t mode;
    const struct bytes *bytes; /* content of a file; must outlive the folder */
    const char *to;            /* target of a link; must outlive the folder */
    bool output;               /* an output: may change, and may be missing */
    struct stat was;           /* attributes, set by folder_put() */
};

struct folder {
    const char *path; /* must outlive the folder */
    struct entry e[FOLDER_MAX];
    size_t n;
};

/* Add a file for folder_put() to make. */
void folder_add(struct folder *f, const char *name, const struct bytes *b,
                mode_t mode, bool output);
/* Add a link, a pipe or a folder. to: target of a link. */
void folder_add_thing(struct folder *f, const char *name, enum thing what,
                      const char *to);
const struct entry *folder_find(const struct folder *f, const char *name);

/* Make the folder with these entries and no others. */
void folder_put(struct folder *f);

/* Report each difference from folder_put(): report(user, name, what), where
 * `what' is "changed" (its bytes, or any attribute but the time of the last
 * access), "is gone", or "is new". Outputs are not compared. */
typedef void folder_report_fn(void *user, const char *name, const char *what);
void folder_look(const struct folder *f, folder_report_fn *report, void *user);

/* Is every entry as folder_put() made it, outputs included? */
bool folder_is_untouched(const struct folder *f);

#endif
