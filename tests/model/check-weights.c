/* SPDX-License-Identifier: MIT */
/* check-weights.c - weights of a model: found, read ahead, copied, locked,
 * released */
#include "config.h"
#include "base/compiler.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_VOCAB = 512, N_TOK = 5, EXTRA = 2 << 20 };

static const struct gen_spec spec = { .arch = "llama",
                                      .n_vocab = N_VOCAB,
                                      .n_ctx = 64,
                                      .n_embd = 256,
                                      .n_layer = 2,
                                      .n_ff = 1024,
                                      .n_head = 4,
                                      .n_head_kv = 4,
                                      .eps = 1e-5f,
                                      .freq_base = 10000 };

static char path[64];
static uint8_t *bytes; /* content of the file */
static size_t n_bytes;

static float want[N_TOK * N_VOCAB];

/* An open file and its model. */
struct opened {
    struct gguf_file *file;
    struct gguf_model *model;
    struct gguf_pool *pool;
    struct gguf_error err;
};

static bool open_it(struct opened *o, const struct gguf_allocator *a)
{
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    *o = (struct opened){ .file = NULL };
    mp.allocator = a;
    pp.n_threads = 3;
    return gguf_pool_create(&o->pool, &pp, &o->err) == GGUF_OK &&
           gguf_file_open(&o->file, path, NULL, &o->err) == GGUF_OK &&
           gguf_model_create(&o->model, o->file, &mp, &o->err) == GGUF_OK;
}

static void close_it(struct opened *o)
{
    gguf_model_destroy(o->model);
    gguf_file_close(o->file);
    gguf_pool_destroy(o->pool);
}

static bool get_logits(struct opened *o, float *out)
{
    static const gguf_token tok[N_TOK] = { 1, 511, 3, 77, 3 };
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct run r = { .model = o->model, .n_vocab = N_VOCAB };
    b.n = N_TOK;
    b.token = tok;
    p.n_ctx = 16;
    bool good = gguf_cpu_backend_create(&r.backend, NULL, &r.err) == GGUF_OK;
    p.backend = r.backend;
    good = good &&
           gguf_session_create(&r.session, o->model, &p, &r.err) == GGUF_OK &&
           run_logits(&r, &b, out);
    gguf_session_destroy(r.session);
    gguf_backend_destroy(r.backend);
    o->err = r.err;
    return good;
}

static bool same_logits(struct opened *o)
{
    static float out[N_TOK * N_VOCAB];
    return get_logits(o, out) && !memcmp(out, want, sizeof out);
}

static uint64_t weight_size(const struct opened *o)
{
    return gguf_model_info(o->model)->weight_size;
}

static uint64_t copied_bytes(const struct opened *o)
{
    return gguf_model_info(o->model)->copied_size;
}

/* Bytes of the file's mappings in memory, by /proc; -1: unknown. */
static int64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    int64_t size = 0;
    bool here = false, any = false;
    while (f && fgets(line, sizeof line, f)) {
        uint64_t begin, end, kib;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &begin, &end) == 2)
            here = strstr(line, path) != NULL;
        else if (here && sscanf(line, "Rss: %" SCNu64 " kB", &kib) == 1) {
            size += (int64_t)kib * 1024;
            any = true;
        }
    }
    if (f)
        fclose(f);
    return any ? size : -1;
}

typedef enum gguf_status job_fn(struct gguf_model *model,
                                const struct gguf_model_job *job,
                                struct gguf_error *err);

static enum gguf_status prefetch_weights(struct gguf_model *model,
                                         const struct gguf_model_job *job,
                                         struct gguf_error *err)
{
    return gguf_model_prefetch_weights(model, job, err);
}

static enum gguf_status run_job(struct opened *o, job_fn *fn,
                                struct run_watch *w, bool threads)
{
    struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
    job.pool = threads ? o->pool : NULL;
    job.progress.fn = run_watch;
    job.progress.user = w;
    return fn(o->model, &job, &o->err);
}

/* ---- reading ahead, letting go ---- */

static void check_prefetch(void)
{
    struct opened o;
    struct run_watch w = { .calls = 0 }, stop = { .stop_at = 2 };
    if (!open_it(&o, NULL)) {
        ok(0, "%s", o.err.message);
        return;
    }
    const int64_t before = resident_bytes(), size = (int64_t)weight_size(&o);
    ok(run_job(&o, prefetch_weights, &stop, false) == GGUF_E_CANCELLED &&
           stop.calls == 2 && stop.done < stop.total,
       "prefetching is stopped after %" PRIu64 " of %" PRIu64 " bytes",
       stop.done, stop.total);
    ok(run_job(&o, prefetch_weights, &w, true) == GGUF_OK && !w.wrong &&
           w.done == (uint64_t)size && w.total == w.done,
       "prefetching on three threads reports all %" PRIu64 " bytes", w.done);
    const int64_t after = resident_bytes();
    if (before < 0)
        skip("/proc does not show resident memory");
    else
        ok(before < size / 2 && after >= size && after < size + EXTRA,
           "of the mapping %" PRId64 " bytes are in memory, then %" PRId64,
           before, after);
    const struct gguf_tensor_info *t =
        gguf_file_tensor_find(o.file, "blk.0.extra.weight");
    const uint8_t *extra = gguf_file_tensor_data(o.file, t->index);
    ok(!memcmp(extra,
               bytes + (extra - (const uint8_t *)gguf_file_bytes(o.file)),
               EXTRA),
       "a tensor that no model uses is read");
    const int64_t with_extra = resident_bytes();
    gguf_model_release_pages(o.model);
    const int64_t released = resident_bytes();
    if (before < 0)
        skip("/proc does not show resident memory");
    else
        /* the system maps and releases several pages at a time */
        ok(with_extra >= size + EXTRA - 65536 && released <= size + 65536 &&
               released >= size / 2,
           "with it %" PRId64 " bytes are in memory, released %" PRId64,
           with_extra, released);
    ok(same_logits(&o), "the same logits");
    close_it(&o);
}

/* ---- memory of its own ---- */

static void check_read(void)
{
    struct opened o;
    for (int threads = 0; threads < 2; threads++) {
        struct run_watch w = { .calls = 0 };
        if (!open_it(&o, NULL)) {
            ok(0, "%s", o.err.message);
            return;
        }
        const bool none = copied_bytes(&o) == 0;
        const bool good =
            run_job(&o, gguf_model_read_weights, &w, threads) == GGUF_OK;
        ok(none && good && !w.wrong && w.done == w.total &&
               w.total == weight_size(&o) && copied_bytes(&o) == w.total,
           "%" PRIu64 " bytes are copied%s", copied_bytes(&o),
           threads ? ", by three threads" : "");
        const int64_t left = resident_bytes();
        if (left < 0)
            skip("/proc does not show resident memory");
        else
            ok(left < 1 << 18, "%" PRId64 " of the mapping stay", left);
        ok(same_logits(&o), "the same logits");
        w = (struct run_watch){ .calls = 0 };
        ok(run_job(&o, gguf_model_read_weights, &w, threads) == GGUF_OK &&
               copied_bytes(&o) == weight_size(&o) &&
               gguf_model_check_finite(o.model, NULL, NULL) == GGUF_OK,
           "once more: nothing is left to copy");
        w = (struct run_watch){ .calls = 0 };
        ok(run_job(&o, prefetch_weights, &w, threads) == GGUF_OK &&
               w.total == 0,
           "nor to prefetch");
        close_it(&o);
    }
}

static void check_cancel(void)
{
    bool good = true;
    unsigned n = 0;
    for (unsigned k = 1; good && k < 100; k++) {
        struct opened o;
        struct run_watch w = { .stop_at = k };
        good = open_it(&o, NULL);
        const enum gguf_status st =
            run_job(&o, gguf_model_read_weights, &w, k % 2);
        const bool all = st == GGUF_OK && copied_bytes(&o) == weight_size(&o);
        good = good &&
               (all || (st == GGUF_E_CANCELLED && !copied_bytes(&o))) &&
               (k % 3 || same_logits(&o));
        n += !all;
        close_it(&o);
        if (all && k > 40)
            break;
    }
    ok(good && n > 5, "stopped at %u places, nothing has moved", n);
}

static void check_nomem(void)
{
    enum gguf_status st = GGUF_E_NOMEM;
    int bad = 0;
    long n;
    for (n = 0; n < 1000 && st == GGUF_E_NOMEM; n++) {
        struct opened o;
        struct failalloc f;
        const struct gguf_allocator *a = failalloc_from(&f, (unsigned)n);
        st = open_it(&o, a) ? gguf_model_read_weights(o.model, NULL, &o.err)
                            : o.err.status;
        bad += st != GGUF_OK && o.model && copied_bytes(&o) != 0;
        close_it(&o);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 20,
       "each of %ld allocations may fail; nothing is lost", n - 1);
}

static void check_cut(void)
{
    struct opened o;
    const bool opened = open_it(&o, NULL);
    const enum gguf_status st =
        opened && !truncate(path, (off_t)(n_bytes / 2))
            ? gguf_model_read_weights(o.model, NULL, &o.err)
            : GGUF_OK;
    ok(st == GGUF_E_TRUNCATED && o.err.offset == n_bytes / 2 &&
           !copied_bytes(&o),
       "a file that was cut off meanwhile: %s", o.err.message);
    close_it(&o);
}

/* ---- locks ---- */

/* Bytes that the process has locked; -1: unknown. Sanitizers pretend to lock.
 */
static int64_t locked_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    int64_t size = -1;
    uint64_t kib;
    while (!SCRATCH_SANITIZED && f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmLck: %" SCNu64 " kB", &kib) == 1)
            size = (int64_t)kib * 1024;
    if (f)
        fclose(f);
    return size;
}

static void check_lock(bool read)
{
    struct opened o;
    if (!open_it(&o, NULL) ||
        (read && gguf_model_read_weights(o.model, NULL, &o.err) != GGUF_OK)) {
        ok(0, "%s", o.err.message);
        return;
    }
    const enum gguf_status st = gguf_model_lock_weights(o.model, &o.err);
    const int64_t size = (int64_t)weight_size(&o), n = locked_bytes();
    if (st == GGUF_E_LIMIT || st == GGUF_E_UNSUPPORTED || n < 0)
        skip("%s", o.err.message);
    else
        ok(st == GGUF_OK && n >= size && n < 2 * size,
           "%" PRId64 " bytes of %s are locked", n,
           read ? "memory" : "the mapping");
    if (st == GGUF_OK && !read)
        ok(gguf_model_read_weights(o.model, NULL, &o.err) == GGUF_E_INVALID,
           "%s", o.err.message);
    ok(same_logits(&o), "the same logits");
    gguf_model_destroy(o.model);
    o.model = NULL;
    if (n >= 0)
        ok(locked_bytes() == 0, "no locks are left");
    close_it(&o);
}

/* A process without root's rights may lock a small amount only. */
static void check_limit(void)
{
    struct opened o;
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit l = { 65536, 65536 };
        char says[64];
        int bad = !open_it(&o, NULL) || setrlimit(RLIMIT_MEMLOCK, &l);
        if ((geteuid() == 0 && setuid(65534)) || SCRATCH_SANITIZED)
            _exit(77);
        bad = bad || gguf_model_lock_weights(o.model, &o.err) != GGUF_E_LIMIT;
        printf("# %s\n", o.err.message);
        fflush(stdout);
        snprintf(says, sizeof says, "%" PRIu64 " bytes of", weight_size(&o));
        bad = bad || !strstr(o.err.message, says) ||
              !strstr(o.err.message, "may lock 65536 bytes (RLIMIT_MEMLOCK") ||
              locked_bytes() > 0;
        _exit(bad);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid ||
        (WIFEXITED(status) && WEXITSTATUS(status) == 77)) {
        skip("no process that may lock little");
        return;
    }
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "too much to lock: the size and the limit, and nothing is locked");
}

/* ---- weights by name ---- */

/* Does every tensor that the model uses have the file's type, shape and bytes,
 * found by number and by name? */
static bool has_weights(const struct opened *o)
{
    const size_t n = gguf_file_n_tensors(o->file);
    size_t n_unused = 0;
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        const struct gguf_tensor_info *info = gguf_file_tensor(o->file, i);
        const struct gguf_tensor *t = gguf_model_tensor(o->model, i);
        char name[GGUF_TENSOR_NAME];
        snprintf(name, sizeof name, "%.*s", (int)info->name.size,
                 info->name.data);
        good = gguf_model_tensor_find(o->model, name) == t;
        n_unused += !t;
        if (!t || !good)
            continue;
        uint8_t *data = malloc(info->size), *other = malloc(info->size);
        good = data && other && !strcmp(t->name, name) &&
               t->dtype == info->dtype &&
               !memcmp(t->ne, info->ne, sizeof t->ne) &&
               gguf_tensor_size(t) == info->size &&
               gguf_tensor_get(t, data, 0, info->size, NULL) == GGUF_OK &&
               gguf_file_read_tensor(o->file, i, 0, other, info->size, NULL) ==
                   GGUF_OK &&
               !memcmp(data, other, info->size);
        free(data);
        free(other);
    }
    return good && n_unused == 1 &&
           !gguf_model_tensor_find(o->model, "blk.0.extra.weight") &&
           !gguf_model_tensor_find(o->model, "blk.2.attn_q.weight") &&
           !gguf_model_tensor_find(o->model, "") &&
           !gguf_model_tensor(o->model, n) &&
           !gguf_model_tensor(o->model, SIZE_MAX);
}

static void check_names(void)
{
    const union {
        uint16_t number;
        uint8_t first;
    } one = { 1 };
    struct run_watch w = { .calls = 0 };
    struct opened o;
    if (!one.first) {
        skip("the file's bytes are not this machine's");
        return;
    }
    if (!open_it(&o, NULL)) {
        ok(0, "%s", o.err.message);
        return;
    }
    const struct gguf_tensor *t =
        gguf_model_tensor_find(o.model, "output_norm.weight");
    ok(has_weights(&o), "weights by name and by number, in the mapping");
    ok(run_job(&o, gguf_model_read_weights, &w, 1) == GGUF_OK &&
           has_weights(&o) &&
           gguf_model_tensor_find(o.model, "output_norm.weight") == t,
       "the same in memory of the model's own");
    close_it(&o);
}

static void make_model(void)
{
    struct gen g;
    snprintf(path, sizeof path, "/tmp/check-weights-%ld.gguf", (long)getpid());
    gen_init(&g, 5);
    gen_model(&g, &spec);
    gen_tensor(&g, 512, EXTRA / 512 / 4, "blk.0.extra.weight");
    bytes = gen_file(&g, GGUF_DTYPE_F32, &n_bytes);
    gen_fini(&g);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n_bytes, f) != n_bytes || fclose(f))
        abort();
}

int main(void)
{
    struct opened o;
    make_model();
    if (!open_it(&o, NULL) || !get_logits(&o, want)) {
        printf("Bail out! %s\n", o.err.message);
        return 1;
    }
    close_it(&o);
    check_names();
    check_prefetch();
    check_read();
    check_cancel();
    check_nomem();
    check_lock(false);
    check_lock(true);
    check_limit();
    check_cut();
    unlink(path);
    free(bytes);
    return done_testing();
}
