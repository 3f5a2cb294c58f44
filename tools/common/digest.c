/* digest.c - checksums of what was opened */
#include "config.h"
#include "tools/common/digest.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"

#include <stdlib.h>

enum gguf_status digest_model(const struct load *l, enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *tensors,
                              struct gguf_digest *model,
                              struct gguf_error *err)
{
    struct gguf_digest_params p = GGUF_DIGEST_PARAMS_INIT;
    struct progress bar;
    size_t n = load_n_files(l);
    const struct gguf_file **files = msg_must(calloc(n, sizeof *files));
    for (size_t i = 0; i < n; i++)
        files[i] = load_file(l, i);
    progress_init(&bar, label, NULL, quiet);
    p.algo = algo;
    p.pool = pool;
    p.progress = progress_report;
    p.progress_user = &bar;
    enum gguf_status st = gguf_digest_files(files, n, &p, tensors, model, err);
    progress_clear(&bar);
    free(files);
    return st;
}
