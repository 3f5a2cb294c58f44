/* SPDX-License-Identifier: MIT */
/* os_name_win.c - patterns of names, rights of folders, libraries loaded at
 * run time, on Windows */
#include "config.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/os/os_program.h"
#include "base/os/os_win.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- patterns ----
 *
 * Rules of fnmatch() without flags (POSIX.1-2008, XCU 2.13): '*', '?',
 * brackets with ranges and classes, and '\' before a character that stands for
 * itself. A character is one of UTF-8. */

/* Bytes of the character at s, which is not the end. */
static size_t char_size(const char *s)
{
    size_t n = 1;
    if ((unsigned char)*s >= 0xc0)
        while (((unsigned char)s[n] & 0xc0) == 0x80)
            n++;
    return n;
}

/* Decode the character of n bytes at s. Invalid bytes get a value of their
 * own. */
static uint32_t decode_char(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    uint32_t c = n == 1 ? u[0] : u[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (u[i] & 0x3f);
    return c;
}

static bool is_in_class(const char *name, size_t n, uint32_t c)
{
    static const struct {
        const char *name;
        int (*is)(int);
    } list[] = {
        { "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank },
        { "cntrl", iscntrl }, { "digit", isdigit }, { "graph", isgraph },
        { "lower", islower }, { "print", isprint }, { "punct", ispunct },
        { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strlen(list[i].name) == n && !memcmp(list[i].name, name, n))
            return c < 0x80 && list[i].is((int)c);
    return false;
}

/* Read a character of a bracket, after an optional backslash. */
static uint32_t take_member(const char **p)
{
    if (**p == '\\' && (*p)[1])
        ++*p;
    const size_t n = char_size(*p);
    const uint32_t c = decode_char(*p, n);
    *p += n;
    return c;
}

/* Does the bracket at *p, after its '[', hold c? *p receives its end. Returns
 * -1 if the bracket has no end: it is a character then. */
static int match_bracket(const char **p, uint32_t c)
{
    const char *s = *p;
    const bool not = *s == '!' || *s == '^';
    bool found = false;
    s += not ;
    for (bool first = true; first || *s != ']'; first = false) {
        const char *end;
        if (!*s)
            return -1;
        if (s[0] == '[' && s[1] == ':' && (end = strstr(s + 2, ":]"))) {
            found |= is_in_class(s + 2, (size_t)(end - s - 2), c);
            s = end + 2;
            continue;
        }
        const uint32_t from = take_member(&s);
        uint32_t to = from;
        if (s[0] == '-' && s[1] && s[1] != ']') {
            s++;
            to = take_member(&s);
        }
        found |= from <= c && c <= to;
    }
    *p = s + 1;
    return found != not ;
}

/* Match the first character of text, of n bytes, with the pattern *p, which
 * does not begin with a '*'. *p receives the rest of the pattern. */
static bool match_char(const char **p, const char *text, size_t n)
{
    const char *s = *p;
    const uint32_t c = decode_char(text, n);
    if (*s == '?') {
        *p = s + 1;
        return true;
    }
    if (*s == '[') {
        const char *in = s + 1;
        const int found = match_bracket(&in, c);
        if (found >= 0) {
            *p = in;
            return found;
        }
    }
    if (*s == '\\' && s[1])
        s++;
    const size_t k = *s ? char_size(s) : 0;
    *p = s + k;
    return k == n && !memcmp(s, text, n);
}

bool gg_os_name_matches(const char *pattern, const char *text)
{
    const char *star = NULL, *again = NULL; /* last '*', and its text's end */
    while (*text) {
        const size_t n = char_size(text);
        if (*pattern == '*') {
            star = ++pattern;
            again = text;
            continue;
        }
        const char *next = pattern;
        if (*pattern && match_char(&next, text, n)) {
            pattern = next;
            text += n;
        } else if (star) { /* the last '*' takes a character more */
            again += char_size(again);
            pattern = star;
            text = again;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

/* ---- paths ---- */

static int add_path(struct gg_os_paths *list, const char *path)
{
    char **grown = realloc(list->path, (list->n + 1) * sizeof *list->path);
    if (!grown)
        return -1;
    list->path = grown;
    const size_t size = strlen(path) + 1;
    if (!(list->path[list->n] = malloc(size)))
        return -1;
    memcpy(list->path[list->n++], path, size);
    return 0;
}

/* Join n bytes of folder, a name, and the slash at after, if it is one. */
static char *join_path(const char *folder, const char *name, size_t n,
                       const char *after)
{
    const size_t k = strlen(folder), slashes = gg_os_path_separates(*after);
    char *s = malloc(k + n + slashes + 1);
    if (s) {
        memcpy(s, folder, k);
        memcpy(s + k, name, n);
        memcpy(s + k + n, after, slashes);
        s[k + n + slashes] = '\0';
    }
    return s;
}

static int expand_pattern(struct gg_os_paths *out, const char *folder,
                          const char *pattern, bool strict);

/* Add the path folder + n bytes of name, if nothing follows and it is there, or
 * expand the rest of the pattern in it. */
static int add_below(struct gg_os_paths *out, const char *folder,
                     const char *name, size_t n, const char *rest, bool strict)
{
    char *path = join_path(folder, name, n, rest);
    if (!path)
        return -1;
    int rc = 0;
    if (gg_os_path_separates(*rest))
        rc = expand_pattern(out, path, rest + 1, strict);
    else if (gg_os_find(path) == 0)
        rc = add_path(out, path);
    free(path);
    return rc;
}

/* Expand the names of a folder that match n bytes of the pattern. */
static int expand_names(struct gg_os_paths *out, const char *folder,
                        const char *pattern, size_t n, bool strict)
{
    char *part = join_path("", pattern, n, "");
    struct gg_os_folder *d = gg_os_folder_open(*folder ? folder : ".");
    int rc = part && (d || !strict) ? 0 : -1;
    if (!d && rc != 0)
        errno = EIO;
    for (const char *name;
         rc == 0 && d && (name = gg_os_folder_next(d)) != NULL;)
        if ((*name != '.' || *part == '.') && gg_os_name_matches(part, name))
            rc = add_below(out, folder, name, strlen(name), pattern + n,
                           strict);
    if (d)
        gg_os_folder_close(d);
    free(part);
    return rc;
}

/* Expand the pattern below a folder, which ends in a slash or is empty. */
static int expand_pattern(struct gg_os_paths *out, const char *folder,
                          const char *pattern, bool strict)
{
    const size_t n = strcspn(pattern, "/\\");
    const size_t plain = strcspn(pattern, "*?[");
    return plain < n ? expand_names(out, folder, pattern, n, strict)
                     : add_below(out, folder, pattern, n, pattern + n, strict);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int gg_os_paths_find(struct gg_os_paths *paths, const char *pattern,
                     bool strict)
{
    *paths = (struct gg_os_paths){ NULL, 0 };
    if (expand_pattern(paths, "", pattern, strict) != 0) {
        const int e = errno;
        gg_os_paths_free(paths);
        errno = e;
        return -1;
    }
    if (paths->n == 0) {
        errno = ENOENT;
        return -1;
    }
    qsort(paths->path, paths->n, sizeof *paths->path, compare_paths);
    return 0;
}

void gg_os_paths_free(struct gg_os_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        free(paths->path[i]);
    free(paths->path);
    *paths = (struct gg_os_paths){ NULL, 0 };
}

/* ---- folders ---- */

int gg_os_can_write(const char *folder)
{
    wchar_t *w = gg_os_win_path(folder);
    const DWORD a = w ? GetFileAttributesW(w) : INVALID_FILE_ATTRIBUTES;
    if (w && a == INVALID_FILE_ATTRIBUTES)
        (void)gg_os_win_fail_last();
    free(w);
    return a == INVALID_FILE_ATTRIBUTES ? -1 : 0;
}

const char *gg_os_temporary_folder(void)
{
    static char folder[4 * MAX_PATH];
    wchar_t w[MAX_PATH + 1];
    char *s = GetTempPathW(MAX_PATH, w) ? gg_os_win_from_path(w) : NULL;
    size_t n = s ? strlen(s) : 0;
    while (n > 3 && s[n - 1] == '/') /* keeps "C:/" */
        n--;
    snprintf(folder, sizeof folder, "%.*s", (int)n, s ? s : "");
    free(s);
    return *folder ? folder : ".";
}

int gg_os_make_private_folder(char *path)
{
    const size_t n = strlen(path);
    if (n < 6 || strcmp(path + n - 6, "XXXXXX") != 0) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < 100; i++) {
        if (gg_os_win_random_name(path + n - 6, 6) != 0)
            return -1;
        if (gg_os_make_folder(path) == 0)
            return 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* ---- libraries ---- */

void *gg_os_library_load(const char *name)
{
    wchar_t *w = gg_os_win_wide(name);
    /* not from the current folder */
    HMODULE library =
        w ? LoadLibraryExW(w, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS) : NULL;
    if (w && !library)
        (void)gg_os_win_fail_last();
    free(w);
    return library;
}

void *gg_os_library_find(void *library, const char *name)
{
    void *p = NULL;
    const FARPROC fn = GetProcAddress(library, name);
    if (fn)
        memcpy(&p, &fn, sizeof p);
    return p;
}
