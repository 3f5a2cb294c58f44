/* gguf-ppl-text.c - reading the text that is evaluated */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* A descriptor of path, or -1 after a message. */
static int open_text(const char *path)
{
    struct stat st;
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        msg_error(path, "cannot open: %s", strerror(errno));
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        msg_error(path, "is a directory");
        close(fd);
        return -1;
    }
    return fd;
}

/* Everything that f gives; NULL after a message. */
static char *read_all(gzFile f, const char *path, size_t *size)
{
    size_t n = 0, cap = (size_t)1 << 20;
    char *p = malloc(cap);
    while (p) {
        int got = gzread(f, p + n, (unsigned)(cap - n));
        if (got > 0)
            n += (size_t)got;
        if (n < cap) {
            int code;
            const char *why = gzerror(f, &code);
            if (got > 0 && code == Z_OK)
                continue;
            if (got >= 0 && code == Z_OK) {
                *size = n;
                return p;
            }
            msg_error(path, "cannot read: %s",
                      code == Z_ERRNO     ? strerror(errno)
                      : code == Z_BUF_ERROR ? "compressed data is cut off"
                                            : why);
            free(p);
            return NULL;
        }
        /* gzread takes an unsigned: grow in steps that fit */
        size_t more = cap < ((size_t)1 << 30) ? cap : (size_t)1 << 30;
        char *q = realloc(p, cap + more);
        if (!q)
            break;
        p = q;
        cap += more;
    }
    msg_error(path, "out of memory");
    free(p);
    return NULL;
}

bool ppl_read_text(const char *path, char **data, size_t *size)
{
    int fd = open_text(path);
    *data = NULL;
    if (fd < 0)
        return false;
    gzFile f = gzdopen(fd, "rb"); /* plain text goes through as it is */
    if (!f) {
        close(fd);
        msg_error(path, "out of memory");
        return false;
    }
    gzbuffer(f, 1u << 18);
    *data = read_all(f, path, size);
    gzclose(f);
    if (!*data)
        return false;
    if (*size >= 4 && memcmp(*data, "GGUF", 4) == 0) {
        msg_error(path, "is a GGUF file, not a text");
        free(*data);
        *data = NULL;
        return false;
    }
    /* as llama.cpp does: editors end a file with one that nobody wrote */
    if (*size && (*data)[*size - 1] == '\n')
        --*size;
    return true;
}
