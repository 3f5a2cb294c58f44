/* SPDX-License-Identifier: MIT */
/* digest.c - checksums with a progress bar */
#include "config.h"
#include "tools/common/digest.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"
#include "base/os/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void begin_digest(struct gguf_digest_params *p, struct progress *bar,
                         enum gguf_digest_algo algo, struct gguf_pool *pool,
                         const char *label, bool quiet)
{
    progress_init(bar, label, NULL, quiet);
    *p = (struct gguf_digest_params)GGUF_INIT(struct gguf_digest_params);
    p->algo = algo;
    p->pool = pool;
    p->progress.fn = progress_report;
    p->progress.user = bar;
}

enum gguf_status digest_model(const struct gguf_file *file,
                              enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *tensors,
                              struct gguf_digest *model,
                              struct gguf_error *err)
{
    struct gguf_digest_params p;
    struct progress bar;
    begin_digest(&p, &bar, algo, pool, label, quiet);
    const enum gguf_status st =
        gguf_digest_tensors(file, &p, tensors, model, err);
    progress_clear(&bar);
    return st;
}

enum gguf_status digest_whole(const struct gguf_file *file,
                              enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *whole,
                              struct gguf_error *err)
{
    struct gguf_digest_params p;
    struct progress bar;
    begin_digest(&p, &bar, algo, pool, label, quiet);
    const enum gguf_status st = gguf_digest_shards(file, &p, whole, err);
    progress_clear(&bar);
    return st;
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
    struct gg_os_stat s = { .size = 0 };
    const int fd = gg_os_open(path, GG_OS_READ);
    if (fd < 0)
        return fail_read(err);
    void *p = NULL;
    if (gg_os_stat_fd(fd, &s) == 0)
        p = gg_os_map(fd, 0, (size_t)s.size + !s.size, GG_OS_MAP_SHARED);
    enum gguf_status st =
        p ? gguf_digest_bytes(out, algo, p, (size_t)s.size, err)
          : fail_read(err);
    if (p)
        gg_os_unmap(p, (size_t)s.size + !s.size);
    gg_os_close(fd);
    return st;
}
