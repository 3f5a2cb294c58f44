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

static void write_all(int fd, const char *s, size_t n)
{
    while (n) {
        const ssize_t k = write(fd, s, n);
        if (k <= 0)
            _exit(0);
        s += k;
        n -= (size_t)k;
    }
}

static void send_head(const struct call *c, const char *status,
                      const char *more)
{
    char s[4096];
    const int n = snprintf(s, sizeof s, "HTTP/1.1 %s\r\n%s\r\n", status, more);
    write_all(c->fd, s, (size_t)n);
}

static void send_empty(const struct call *c, const char *status,
                       const char *more)
{
    char s[3072];
    snprintf(s, sizeof s, "%sContent-Length: 0\r\n", more);
    send_head(c, status, s);
}

static void send_bytes(const struct call *c, uint64_t from, uint64_t n)
{
    static char s[1 << 16];
    while (n) {
        const size_t k = n < sizeof s ? (size_t)n : sizeof s;
        const ssize_t got = pread(c->data, s, k, (off_t)from);
        if (got <= 0)
            memset(s, 'x', k); /* more bytes than the file has */
        write_all(c->fd, s, got > 0 ? (size_t)got : k);
        from += got > 0 ? (uint64_t)got : k;
        n -= got > 0 ? (uint64_t)got : k;
    }
}

/* ---- modes: faults of an answer ---- */

static bool has_mode(const struct call *c, const char *mode)
{
    return !strcmp(c->mode, mode);
}

/* Send the whole file, whatever range was requested. */
static void send_whole(const struct call *c, const char *more, bool length)
{
    char s[512];
    int n = snprintf(s, sizeof s, "%s", more);
    if (length)
        snprintf(s + n, sizeof s - (size_t)n,
                 "Content-Length: %" PRIu64 "\r\n", c->size);
    send_head(c, "200 OK", s);
    send_bytes(c, 0, c->size);
    if (!length)
        _exit(0);
}

static void send_part(const struct call *c)
{
    char s[512];
    uint64_t from = c->from, to = c->to, total = c->size;
    if (from >= total) {
        snprintf(s, sizeof s, "Content-Range: bytes */%" PRIu64 "\r\n", total);
        send_empty(c, "416 Range Not Satisfiable", s);
        return;
    }
    if (to >= total)
        to = total - 1;
    if (has_mode(c, "less") && to - from > 1000)
        to = from + (to - from) / 2; /* servers may send a part of a range */
    const uint64_t n = to - from + 1;
    uint64_t length = n, sent = n;
    if (has_mode(c, "bytes")) /* servers may send one byte for each request */
        to = from, length = sent = 1;
    if (has_mode(c, "other-range"))
        from++, to++;
    if (has_mode(c, "wide-range"))
        to = total * 2, total = total * 4;
    if (has_mode(c, "other-total") && from)
        total += 5;
    if (has_mode(c, "huge-total"))
        total = UINT64_C(1) << 62;
    if (has_mode(c, "over-total"))
        to = total + 10;
    if (has_mode(c, "other-length"))
        length = sent = n / 2;
    if (has_mode(c, "cut"))
        sent = n / 2;
    unsigned nth; /* cutN: from the N-th request on */
    if (sscanf(c->mode, "cut%u", &nth) == 1 && ++n_asked[3] >= nth)
        sent = n / 2;
    if (has_mode(c, "more"))
        sent = n + 10;
    n_asked[1]++;
    int k = snprintf(s, sizeof s,
                     "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64
                     "\r\nETag: \"%u\"\r\n",
                     from, to, total, has_mode(c, "changes") ? n_asked[1] : 1);
    if (has_mode(c, "bad-range"))
        k = snprintf(s, sizeof s,
                     "Content-Range: bytes 0-99999999999999999999999/-1\r\n");
    if (!has_mode(c, "more"))
        snprintf(s + k, sizeof s - (size_t)k,
                 "Content-Length: %" PRIu64 "\r\n", length);
    send_head(c, "206 Partial Content", s);
    if (has_mode(c, "slow"))
        sleep(30);
    for (uint64_t i = 0; has_mode(c, "drip") && i < sent; i++) {
        send_bytes(c, c->from + i, 1);
        usleep(300000);
    }
    send_bytes(c, c->from, sent);
    if (sent != n)
        _exit(0);
}

static void send_redirect(const struct call *c, const char *to)
{
    char s[2048];
    snprintf(s, sizeof s, "Location: %s\r\n", to);
    send_empty(c, "302 Found", s);
}

/* Send an error text byte by byte, headers without an end, or a header of 200
 * KB. */
static void send_endless(const struct call *c, const char *status)
{
    static char s[200 << 10];
    memset(s, 'x', sizeof s - 1);
    if (has_mode(c, "long-line")) {
        static char line[sizeof s + 8];
        snprintf(line, sizeof line, "X: %s\r\n", s);
        write_all(c->fd, "HTTP/1.1 ", 9);
        write_all(c->fd, status, strlen(status));
        write_all(c->fd, "\r\n", 2);
        write_all(c->fd, line, strlen(line));
        send_empty(c, status, "");
        return;
    }
    write_all(c->fd, "HTTP/1.1 ", 9);
    write_all(c->fd, status, strlen(status));
    write_all(c->fd, has_mode(c, "headers") ? "\r\n" : "\r\n\r\n",
              has_mode(c, "headers") ? 2 : 4);
    for (;;) {
        if (has_mode(c, "headers"))
            write_all(c->fd, "X: some header\r\n", 16);
        else if (has_mode(c, "error-drip"))
            write_all(c->fd, "x", 1), usleep(300000);
        else
            write_all(c->fd, s, 1000);
    }
}

static void answer_call(struct call *c)
{
    char s[1200];
    if (has_mode(c, "auth") && strcmp(c->token, "Bearer secret") != 0)
        send_empty(c, "401 Unauthorized", "");
    else if (has_mode(c, "flaky") && n_asked[0]++ % 2 == 0)
        send_empty(c, "503 Service Unavailable", "");
    else if (has_mode(c, "reset")) {
        n_asked[3] = 0; /* cutN counts anew */
        send_empty(c, "404 Not Found", "");
    } else if (has_mode(c, "error-text") || has_mode(c, "error-drip") ||
               has_mode(c, "headers") || has_mode(c, "long-line"))
        send_endless(c, has_mode(c, "error-text") ? "500 Error"
                                                  : "404 Not Found");
    else if (has_mode(c, "status-500"))
        send_empty(c, "500 Internal Server Error", "");
    else if (has_mode(c, "other-host")) {
        snprintf(s, sizeof s, "http://127.0.0.1:%u/ok/%s", port[1], c->file);
        send_redirect(c, s);
    } else if (has_mode(c, "expires")) {
        /* the target is valid for two requests */
        snprintf(s, sizeof s, "/twice/%s", c->file);
        n_asked[2] = 0;
        send_redirect(c, s);
    } else if (has_mode(c, "twice") && n_asked[2]++ >= 2)
        send_empty(c, "403 Forbidden", "");
    else if (has_mode(c, "loop"))
        send_redirect(c, c->path);
    else if (has_mode(c, "to-file"))
        send_redirect(c, "file:///etc/passwd");
    else if (has_mode(c, "nowhere"))
        send_empty(c, "302 Found", "");
    else if (c->data < 0)
        send_empty(c, "404 Not Found", "");
    else if (has_mode(c, "packed"))
        send_whole(c, "Content-Encoding: gzip\r\n", true);
    else if (has_mode(c, "no-length"))
        send_whole(c, "Connection: close\r\n", false);
    else if (has_mode(c, "no-ranges") || !c->ranged)
        send_whole(c, "", true);
    else
        send_part(c);
}

/* ---- requests ---- */

static void log_call(const struct call *c)
{
    char s[2048];
    const int n = snprintf(s, sizeof s, "%d %s %" PRIu64 "-%" PRIu64 " %s\n",
                           c->no + 1, c->path, c->from, c->to, c->token);
    const int fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    write_all(fd, s, (size_t)n);
    close(fd);
}

/* Parse a request. The last two parts of its path count, so that it may look
 * like the Hub's: /OWNER/REPO/resolve/MODE/FILE. */
static void parse_request(struct call *c, char *text)
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

static void serve_call(struct call *c)
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
        parse_request(c, text);
        log_call(c);
        snprintf(path, sizeof path, "%s/%s", folder, c->file);
        c->data = *c->file ? open(path, O_RDONLY) : -1;
        c->size =
            c->data >= 0 && !fstat(c->data, &s) ? (uint64_t)s.st_size : 0;
        answer_call(c);
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
                serve_call(&c);
                _exit(0);
            }
            close(c.fd);
        }
    return 0;
}
