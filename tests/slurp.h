/* SPDX-License-Identifier: MIT */
/* slurp.h - reads and writes whole files */
#ifndef TESTS_SLURP_H
#define TESTS_SLURP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read a whole file and append a NUL. Free it with free(). NULL, and a size of
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

/* Write a file of n bytes. false: failed. */
static inline bool spill(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool good = f && (n == 0 || fwrite(p, 1, n, f) == n);
    if (f && fclose(f))
        good = false;
    return good;
}

/* Are the files equal and not empty? */
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
