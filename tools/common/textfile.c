/* SPDX-License-Identifier: MIT */
/* textfile.c - reading a text file for evaluation */
#include "config.h"
#include "tools/common/textfile.h"
#include "tools/common/msg.h"
#include "tools/common/decompress.h"
#include "tools/common/nocase.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <gguf/text.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Open path. Returns a descriptor, or -1 after a message. */
static int open_text(const char *path)
{
    struct gg_os_stat st;
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? gg_os_stream_stdin() : gg_os_stream_fd(path, false);
    if (fd < 0) {
        msg_error(path, "cannot open: %s", strerror(errno));
        return -1;
    }
    if (gg_os_stat_fd(fd, &st) == 0 && st.kind == GG_OS_FOLDER) {
        msg_error(path, "is a directory");
        gg_os_close(fd);
        return -1;
    }
    return fd;
}

/* Report a read error of f. Returns false if there was none: the end of the
 * file. */
static bool fail_read(gzFile f, const char *path)
{
    int code;
    const char *why = gzerror(f, &code);
    if (code == Z_OK)
        return false;
    msg_error(path, "cannot read: %s",
              code == Z_ERRNO       ? strerror(errno)
              : code == Z_BUF_ERROR ? "compressed data is cut off"
                                    : why);
    return true;
}

/* Grow the buffer, to one byte above the limit at most. Returns NULL if it has
 * that size. */
static char *grow_buffer(char *p, size_t *cap, uint64_t limit)
{
    /* gzread() takes an unsigned: grow in steps that fit */
    size_t more = *cap < ((size_t)1 << 30) ? *cap : (size_t)1 << 30;
    if (more > limit + 1 - *cap)
        more = (size_t)(limit + 1 - *cap);
    char *q = realloc(p, *cap + more);
    *cap += q ? more : 0;
    return q;
}

/* Read all of f, which may be endless, up to limit bytes. Returns NULL after a
 * message. */
static char *read_all(gzFile f, const char *path, uint64_t limit, size_t *size)
{
    size_t n = 0, cap = (size_t)1 << 20;
    char *p = msg_must(malloc(cap));
    for (int got; (got = gzread(f, p + n, (unsigned)(cap - n))) > 0;) {
        n += (size_t)got;
        if (n > limit) {
            msg_error(path,
                      "has more than %" PRIu64 " bytes%s; --max-text "
                      "allows more",
                      limit, gzdirect(f) ? "" : " when unpacked");
            free(p);
            return NULL;
        }
        if (n == cap)
            p = msg_must(grow_buffer(p, &cap, limit));
    }
    if (fail_read(f, path)) {
        free(p);
        return NULL;
    }
    *size = n;
    return p;
}

/* ---- Git LFS pointers ---- */

/* A Git LFS pointer begins with these words and has less than 1024 bytes.
 * Source: the specification of Git LFS, docs/spec.md. */
static bool is_lfs_pointer(const char *s, size_t size)
{
    static const char begin[] = "version https://git-lfs";
    return size < 1024 && size >= sizeof begin - 1 &&
           !memcmp(s, begin, sizeof begin - 1);
}

bool textfile_read(const char *path, uint64_t limit, char **data, size_t *size)
{
    int fd = open_text(path);
    *data = NULL;
    if (fd < 0)
        return false;
    gzFile f = gzdopen(fd, "rb"); /* plain text is passed through */
    if (!f) {
        gg_os_close(fd);
        return msg_error(path, "out of memory");
    }
    gzbuffer(f, 1u << 18);
    *data = read_all(f, path, limit, size);
    gzclose(f);
    if (!*data || !decompress_text(path, limit, data, size))
        return false;
    if (!is_lfs_pointer(*data, *size))
        return true;
    msg_error(path,
              "is a Git LFS pointer, not a text: the text itself was not "
              "downloaded (git lfs pull)");
    free(*data);
    *data = NULL;
    return false;
}

/* ---- is it a text? ---- */

/* Offset of the first byte that does not begin a character, or size. */
static size_t not_utf8(const char *s, size_t size)
{
    size_t i = 0;
    for (size_t k; i < size; i += k)
        if (!(k = gguf_text_decode_utf8(s + i, size - i, NULL)))
            break;
    return i;
}

/* Is the rest of the text an incomplete character? */
static bool is_cut_off(const char *s, size_t size)
{
    const unsigned char c = (unsigned char)s[0];
    const size_t n = c >= 0xf0 && c < 0xf5 ? 4
                     : c >= 0xe0           ? 3
                     : c >= 0xc2           ? 2
                                           : 0;
    for (size_t i = 1; i < size; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return false;
    return size < n && c < 0xf5;
}

/* Recognise UTF-16 or UTF-32 by its byte order mark, or because every second
 * byte at the beginning is 0, as in text of most alphabets. */
static const char *utf16_or_32(const char *s, size_t size)
{
    size_t zeros[2] = { 0, 0 };
    if (size >= 4 &&
        (!memcmp(s, "\xff\xfe\0\0", 4) || !memcmp(s, "\0\0\xfe\xff", 4)))
        return "UTF-32";
    if (size >= 2 && (!memcmp(s, "\xff\xfe", 2) || !memcmp(s, "\xfe\xff", 2)))
        return "UTF-16";
    if (size < 8)
        return NULL;
    for (size_t i = 0; i < 256 && i < size; i++)
        zeros[i % 2] += s[i] == 0;
    const size_t half = (size < 256 ? size : 256) / 2;
    return (zeros[0] > half * 3 / 4 && !zeros[1]) ||
                   (zeros[1] > half * 3 / 4 && !zeros[0])
               ? "UTF-16"
               : NULL;
}

bool textfile_check(const char *name, const char *s, size_t size)
{
    const char *nul = memchr(s, '\0', size), *wide = utf16_or_32(s, size);
    const size_t at = not_utf8(s, size);
    if (wide)
        msg_error(name, "is %s, not UTF-8; --force takes it as it is", wide);
    else if (nul)
        msg_error(name,
                  "is binary, not text: byte %zu is 0; --force takes it as it "
                  "is",
                  (size_t)(nul - s));
    else if (at < size && !is_cut_off(s + at, size - at))
        msg_error(name,
                  "is not UTF-8: byte %zu is 0x%02x; --force takes it as it "
                  "is",
                  at, (unsigned)(unsigned char)s[at]);
    else
        return true;
    return false;
}

void textfile_warn(const char *name, const char *s, size_t size)
{
    static const char *const begins[] = { "<!doctype html", "<html" };
    while (size && *s && strchr(" \t\r\n", *s)) {
        s++;
        size--;
    }
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const size_t n = strlen(begins[i]);
        if (size >= n && nocase_begins(s, begins[i]))
            msg_warn(name, "is a web page: its markup is taken as text");
    }
}
