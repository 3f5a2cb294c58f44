/* textfile.c - reading a text that is evaluated */
#include "config.h"
#include "tools/common/textfile.h"
#include "tools/common/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

/* Report why f gave no more; false: it ended without an error. */
static bool failed(gzFile f, const char *path)
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

/* Room for more, up to one byte above the limit; NULL: there is none. */
static char *grow(char *p, size_t *cap, uint64_t limit)
{
    /* gzread takes an unsigned: in steps that fit */
    size_t more = *cap < ((size_t)1 << 30) ? *cap : (size_t)1 << 30;
    if (more > limit + 1 - *cap)
        more = (size_t)(limit + 1 - *cap);
    char *q = realloc(p, *cap + more);
    *cap += q ? more : 0;
    return q;
}

/* All that f gives, which may be endless: at most limit bytes; NULL after a
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
            p = msg_must(grow(p, &cap, limit));
    }
    if (failed(f, path)) {
        free(p);
        return NULL;
    }
    *size = n;
    return p;
}

bool textfile_read(const char *path, uint64_t limit, char **data, size_t *size)
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
    *data = read_all(f, path, limit, size);
    gzclose(f);
    if (!*data)
        return false;
    if (*size >= 4 && memcmp(*data, "GGUF", 4) == 0) {
        msg_error(path, "is a GGUF file, not a text");
        free(*data);
        *data = NULL;
        return false;
    }
    return true;
}
