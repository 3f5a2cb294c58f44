/* SPDX-License-Identifier: MIT */
/* digest.c - checksums of what was opened */
#include "config.h"
#include "tools/common/digest.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of tensors and their model, or, with whole, of all bytes of files. */
static enum gguf_status
digest_tensors(const struct load *l, enum gguf_digest_algo algo,
               struct gguf_pool *pool, const char *label, bool quiet,
               struct gguf_digest *tensors, struct gguf_digest *model,
               struct gguf_digest *whole, struct gguf_error *err)
{
    const size_t n = load_n_files(l);
    struct gguf_digest_params p = GGUF_DIGEST_PARAMS_INIT;
    struct progress bar;
    const struct gguf_file **files = msg_must(calloc(n, sizeof *files));
    for (size_t i = 0; i < n; i++)
        files[i] = load_file(l, i);
    progress_init(&bar, label, NULL, quiet);
    p.algo = algo;
    p.pool = pool;
    p.progress = progress_report;
    p.progress_user = &bar;
    enum gguf_status st =
        whole ? gguf_digest_whole(files, n, &p, whole, err)
              : gguf_digest_files(files, n, &p, tensors, model, err);
    progress_clear(&bar);
    free(files);
    return st;
}

enum gguf_status digest_model(const struct load *l, enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *tensors,
                              struct gguf_digest *model,
                              struct gguf_error *err)
{
    return digest_tensors(l, algo, pool, label, quiet, tensors, model, NULL,
                          err);
}

enum gguf_status digest_whole(const struct load *l, enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *whole,
                              struct gguf_error *err)
{
    return digest_tensors(l, algo, pool, label, quiet, NULL, NULL, whole, err);
}

static enum gguf_status fail_read(struct gguf_error *err)
{
    const int reason = errno;
    const enum gguf_status st =
        gguf_error_set(err, GGUF_E_IO, "cannot be read: %s", strerror(reason));
    err->sys_errno = reason;
    return st;
}

enum gguf_status digest_path(const char *path, enum gguf_digest_algo algo,
                             struct gguf_digest *out, struct gguf_error *err)
{
    struct stat s;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_read(err);
    void *p = MAP_FAILED;
    if (fstat(fd, &s) == 0)
        p = mmap(NULL, (size_t)s.st_size + !s.st_size, PROT_READ, MAP_PRIVATE,
                 fd, 0);
    enum gguf_status st =
        p == MAP_FAILED
            ? fail_read(err)
            : gguf_digest_bytes(out, algo, p, (size_t)s.st_size, err);
    if (p != MAP_FAILED)
        munmap(p, (size_t)s.st_size + !s.st_size);
    close(fd);
    return st;
}
