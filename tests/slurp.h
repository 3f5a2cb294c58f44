/* SPDX-License-Identifier: MIT */
/* slurp.h - whole files in and out of memory, for tests */
#ifndef TESTS_SLURP_H
#define TESTS_SLURP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every byte of a file and a NUL after them, to be freed; NULL, and a size of
 * 0, if path is NULL or cannot be read. size may be NULL. */
static inline void *slurp(const char *path, size_t *size)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    char *p = NULL;
    long n = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    if (n >= 0 && !fseek(f, 0, SEEK_SET) && (p = malloc((size_t)n + 1))) {
        if (fread(p, 1, (size_t)n, f) == (size_t)n) {
            p[n] = 0;
        } else {
            free(p);
            p = NULL;
        }
    }
    if (f)
        fclose(f);
    if (size)
        *size = p ? (size_t)n : 0;
    return p;
}

/* Make a file of n bytes; false if that does not work. */
static inline bool spill(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool good = f && (n == 0 || fwrite(p, 1, n, f) == n);
    if (f && fclose(f))
        good = false;
    return good;
}

/* Do the two files have the same bytes, and some? */
static inline bool same_files(const char *a, const char *b)
{
    size_t n, m;
    void *p = slurp(a, &n), *q = slurp(b, &m);
    bool same = p && q && n && n == m && !memcmp(p, q, n);
    free(p);
    free(q);
    return same;
}

#endif
