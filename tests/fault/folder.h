/* SPDX-License-Identifier: MIT */
/* folder.h - a folder of a test: what lies in it, and what became of that
 *
 * A program runs in the folder, which held what folder_put made; afterwards
 * folder_look tells of each file whether it is as it was. Single thread; what
 * the test itself cannot do ends it with status 99.
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

/* The whole file; {NULL, 0} if it is not there. To be freed. */
struct bytes bytes_of(const char *path);
bool bytes_equal(const struct bytes *a, const struct bytes *b);

enum { FOLDER_MAX = 64, FOLDER_NAME = 96 };

enum thing { A_FILE, A_LINK, A_HARD_LINK, A_PIPE, A_FOLDER };

struct entry {
    char name[FOLDER_NAME];
    enum thing what;
    mode_t mode;
    const struct bytes *bytes; /* of a file; kept */
    const char *to;            /* of a link; kept */
    bool output;               /* may change, and need not be there */
    struct stat was;           /* from folder_put on */
};

struct folder {
    const char *path; /* kept */
    struct entry e[FOLDER_MAX];
    size_t n;
};

/* Add a file that folder_put will make. */
void folder_add(struct folder *f, const char *name, const struct bytes *b,
                mode_t mode, bool output);
/* Add another thing; to: what a link leads to. */
void folder_add_thing(struct folder *f, const char *name, enum thing what,
                      const char *to);
const struct entry *folder_find(const struct folder *f, const char *name);

/* Make the folder so that it holds the entries and nothing else. */
void folder_put(struct folder *f);

/* Tell of whatever is not as folder_put made it: report(user, name, what),
 * where what is "changed" (an entry that is not an output: its bytes, or any
 * attribute but the time of the last access), "is gone", or "is new". Outputs
 * are not compared. */
typedef void folder_report_fn(void *user, const char *name, const char *what);
void folder_look(const struct folder *f, folder_report_fn *report, void *user);

/* Is everything as folder_put made it, outputs too? */
bool folder_is_untouched(const struct folder *f);

#endif
