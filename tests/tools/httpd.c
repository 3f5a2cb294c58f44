/* SPDX-License-Identifier: MIT */
/* httpd.c - a small HTTP server for tests, which fails on request
 *
 *   httpd DIR PORTS LOG
 *
 * Serves the files of DIR on two ports of 127.0.0.1, which it writes to the
 * file PORTS, until it is killed or ten minutes have passed. A path is
 * /MODE/FILE; MODE chooses the failure. Each request is a line of LOG: port (1
 * or 2), path, range and token.
 */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder, *log_path;
static unsigned port[2];
static unsigned *n_asked; /* requests of all processes */

struct call {
    int fd, no; /* no: index of the port */
    char path[1024], token[256];
    uint64_t from, to; /* requested range; to is the last byte */
    bool ranged;
    const char *mode, *file;
    uint64_t size;
    int data;
};

static void say(int fd, const char *s, size_t n)
{
    while (n) {
        const ssize_t k = write(fd, s, n);
        if (k <= 0)
            _exit(0);
        s += k;
        n -= (size_t)k;
    }
}

static void head(const struct call *c, const char *status, const char *more)
{
    char s[4096];
    const int n = snprintf(s, sizeof s, "HTTP/1.1 %s\r\n%s\r\n", status, more);
    say(c->fd, s, (size_t)n);
}

static void nothing(const struct call *c, const char *status, const char *more)
{
    char s[3072];
    snprintf(s, sizeof s, "%sContent-Length: 0\r\n", more);
    head(c, status, s);
}

static void body(const struct call *c, uint64_t from, uint64_t n)
{
    static char s[1 << 16];
    while (n) {
        const size_t k = n < sizeof s ? (size_t)n : sizeof s;
        const ssize_t got = pread(c->data, s, k, (off_t)from);
        if (got <= 0)
            memset(s, 'x', k); /* more bytes than the file has */
        say(c->fd, s, got > 0 ? (size_t)got : k);
        from += got > 0 ? (uint64_t)got : k;
        n -= got > 0 ? (uint64_t)got : k;
    }
}

/* ---- modes: faults of an answer ---- */

static bool is(const struct call *c, const char *mode)
{
    return !strcmp(c->mode, mode);
}

/* Send the whole file, whatever range was requested. */
static void whole(const struct call *c, const char *more, bool length)
{
    char s[512];
    int n = snprintf(s, sizeof s, "%s", more);
    if (length)
        snprintf(s + n, sizeof s - (size_t)n,
                 "Content-Length: %" PRIu64 "\r\n", c->size);
    head(c, "200 OK", s);
    body(c, 0, c->size);
    if (!length)
        _exit(0);
}

static void part(const struct call *c)
{
    char s[512];
    uint64_t from = c->from, to = c->to, total = c->size;
    if (from >= total) {
        snprintf(s, sizeof s, "Content-Range: bytes */%" PRIu64 "\r\n", total);
        nothing(c, "416 Range Not Satisfiable", s);
        return;
    }
    if (to >= total)
        to = total - 1;
    if (is(c, "less") && to - from > 1000)
        to = from + (to - from) / 2; /* servers may send a part of a range */
    const uint64_t n = to - from + 1;
    uint64_t length = n, sent = n;
    if (is(c, "bytes")) /* servers may send one byte for each request */
        to = from, length = sent = 1;
    if (is(c, "other-range"))
        from++, to++;
    if (is(c, "wide-range"))
        to = total * 2, total = total * 4;
    if (is(c, "other-total") && from)
        total += 5;
    if (is(c, "huge-total"))
        total = UINT64_C(1) << 62;
    if (is(c, "over-total"))
        to = total + 10;
    if (is(c, "other-length"))
        length = sent = n / 2;
    if (is(c, "cut"))
        sent = n / 2;
    unsigned nth; /* cutN: from the N-th request on */
    if (sscanf(c->mode, "cut%u", &nth) == 1 && ++n_asked[3] >= nth)
        sent = n / 2;
    if (is(c, "more"))
        sent = n + 10;
    n_asked[1]++;
    int k = snprintf(s, sizeof s,
                     "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64
                     "\r\nETag: \"%u\"\r\n",
                     from, to, total, is(c, "changes") ? n_asked[1] : 1);
    if (is(c, "bad-range"))
        k = snprintf(s, sizeof s,
                     "Content-Range: bytes 0-99999999999999999999999/-1\r\n");
    if (!is(c, "more"))
        snprintf(s + k, sizeof s - (size_t)k,
                 "Content-Length: %" PRIu64 "\r\n", length);
    head(c, "206 Partial Content", s);
    if (is(c, "slow"))
        sleep(30);
    for (uint64_t i = 0; is(c, "drip") && i < sent; i++) {
        body(c, c->from + i, 1);
        usleep(300000);
    }
    body(c, c->from, sent);
    if (sent != n)
        _exit(0);
}

static void lead(const struct call *c, const char *to)
{
    char s[2048];
    snprintf(s, sizeof s, "Location: %s\r\n", to);
    nothing(c, "302 Found", s);
}

/* Send an error text byte by byte, headers without an end, or a header of 200
 * KB. */
static void endless(const struct call *c, const char *status)
{
    static char s[200 << 10];
    memset(s, 'x', sizeof s - 1);
    if (is(c, "long-line")) {
        static char line[sizeof s + 8];
        snprintf(line, sizeof line, "X: %s\r\n", s);
        say(c->fd, "HTTP/1.1 ", 9);
        say(c->fd, status, strlen(status));
        say(c->fd, "\r\n", 2);
        say(c->fd, line, strlen(line));
        nothing(c, status, "");
        return;
    }
    say(c->fd, "HTTP/1.1 ", 9);
    say(c->fd, status, strlen(status));
    say(c->fd, is(c, "headers") ? "\r\n" : "\r\n\r\n",
        is(c, "headers") ? 2 : 4);
    for (;;) {
        if (is(c, "headers"))
            say(c->fd, "X: some header\r\n", 16);
        else if (is(c, "error-drip"))
            say(c->fd, "x", 1), usleep(300000);
        else
            say(c->fd, s, 1000);
    }
}

static void answer(struct call *c)
{
    char s[1200];
    if (is(c, "auth") && strcmp(c->token, "Bearer secret") != 0)
        nothing(c, "401 Unauthorized", "");
    else if (is(c, "flaky") && n_asked[0]++ % 2 == 0)
        nothing(c, "503 Service Unavailable", "");
    else if (is(c, "reset")) {
        n_asked[3] = 0; /* cutN counts anew */
        nothing(c, "404 Not Found", "");
    } else if (is(c, "error-text") || is(c, "error-drip") ||
               is(c, "headers") || is(c, "long-line"))
        endless(c, is(c, "error-text") ? "500 Error" : "404 Not Found");
    else if (is(c, "status-500"))
        nothing(c, "500 Internal Server Error", "");
    else if (is(c, "other-host")) {
        snprintf(s, sizeof s, "http://127.0.0.1:%u/ok/%s", port[1], c->file);
        lead(c, s);
    } else if (is(c, "expires")) {
        /* the target is valid for two requests */
        snprintf(s, sizeof s, "/twice/%s", c->file);
        n_asked[2] = 0;
        lead(c, s);
    } else if (is(c, "twice") && n_asked[2]++ >= 2)
        nothing(c, "403 Forbidden", "");
    else if (is(c, "loop"))
        lead(c, c->path);
    else if (is(c, "to-file"))
        lead(c, "file:///etc/passwd");
    else if (is(c, "nowhere"))
        nothing(c, "302 Found", "");
    else if (c->data < 0)
        nothing(c, "404 Not Found", "");
    else if (is(c, "packed"))
        whole(c, "Content-Encoding: gzip\r\n", true);
    else if (is(c, "no-length"))
        whole(c, "Connection: close\r\n", false);
    else if (is(c, "no-ranges") || !c->ranged)
        whole(c, "", true);
    else
        part(c);
}

/* ---- requests ---- */

static void note(const struct call *c)
{
    char s[2048];
    const int n = snprintf(s, sizeof s, "%d %s %" PRIu64 "-%" PRIu64 " %s\n",
                           c->no + 1, c->path, c->from, c->to, c->token);
    const int fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    say(fd, s, (size_t)n);
    close(fd);
}

/* Parse a request. The last two parts of its path count, so that it may look
 * like the Hub's: /OWNER/REPO/resolve/MODE/FILE. */
static void parse(struct call *c, char *text)
{
    char path[1200], *line = strtok(text, "\r\n"), *slash;
    static char mode[256], file[256];
    *mode = *file = '\0';
    c->ranged = false;
    c->from = c->to = 0;
    c->token[0] = c->path[0] = '\0';
    if (line)
        sscanf(line, "GET %1023s", c->path);
    while ((line = strtok(NULL, "\r\n"))) {
        c->ranged |= sscanf(line, "Range: bytes=%" SCNu64 "-%" SCNu64,
                            &c->from, &c->to) == 2;
        sscanf(line, "Authorization: %255[^\r\n]", c->token);
    }
    snprintf(path, sizeof path, "%s", c->path);
    path[strcspn(path, "?")] = '\0';
    if ((slash = strrchr(path, '/'))) {
        snprintf(file, sizeof file, "%s", slash + 1);
        *slash = '\0';
        slash = strrchr(path, '/');
        snprintf(mode, sizeof mode, "%s", slash ? slash + 1 : "");
    }
    c->mode = mode;
    c->file = file;
}

static void serve(struct call *c)
{
    char text[8192], path[2048];
    size_t n = 0;
    struct stat s;
    while (n < sizeof text - 1) {
        const ssize_t k = read(c->fd, text + n, sizeof text - 1 - n);
        if (k <= 0)
            return;
        n += (size_t)k;
        text[n] = '\0';
        if (!strstr(text, "\r\n\r\n"))
            continue;
        n = 0;
        parse(c, text);
        note(c);
        snprintf(path, sizeof path, "%s/%s", folder, c->file);
        c->data = *c->file ? open(path, O_RDONLY) : -1;
        c->size =
            c->data >= 0 && !fstat(c->data, &s) ? (uint64_t)s.st_size : 0;
        answer(c);
        if (c->data >= 0)
            close(c->data);
    }
}

static int listen_on(unsigned *no)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) || listen(fd, 64) ||
        getsockname(fd, (struct sockaddr *)&a, &n))
        exit(1);
    *no = ntohs(a.sin_port);
    return fd;
}

int main(int argc, char **argv)
{
    struct pollfd p[2];
    if (argc != 4)
        return 2;
    folder = argv[1];
    log_path = argv[3];
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    alarm(600);
    n_asked = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        p[i] = (struct pollfd){ listen_on(&port[i]), POLLIN, 0 };
    char tmp[2048];
    snprintf(tmp, sizeof tmp, "%s.tmp", argv[2]);
    FILE *f = fopen(tmp, "w");
    if (!f || n_asked == MAP_FAILED)
        return 1;
    fprintf(f, "%u %u\n", port[0], port[1]);
    if (fclose(f) || rename(tmp, argv[2]))
        return 1;
    while (poll(p, 2, -1) > 0)
        for (int i = 0; i < 2; i++) {
            struct call c = { .no = i };
            if (!(p[i].revents & POLLIN) ||
                (c.fd = accept(p[i].fd, NULL, NULL)) < 0)
                continue;
            if (fork() == 0) {
                alarm(60);
                serve(&c);
                _exit(0);
            }
            close(c.fd);
        }
    return 0;
}
