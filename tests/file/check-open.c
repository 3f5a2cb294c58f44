/* SPDX-License-Identifier: MIT */
/* check-open.c - every fixture is opened or refused as it must be: whole,
 * truncated, changed
 *
 * Bad fixtures are refused with the expected status at the expected byte. Good
 * ones open, and are refused when truncated. With changed bytes nothing may
 * crash. Memory may run out at any call.
 */
#include "config.h"
#include "gguf/file.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

static enum gguf_status open_fix(const struct fix *fx, struct gguf_file **f,
                                 struct gguf_error *err)
{
    gguf_error_clear(err);
    return gguf_file_open_memory(f, fx->data, fx->size, NULL, err);
}

/* Read everything in the file. The sum keeps the compiler from leaving it out.
 */
static uint64_t read_all(const struct gguf_file *f)
{
    uint64_t sum = gguf_file_data_end(f);
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        struct gguf_kv_iter it, in;
        struct gguf_kv e, e2;
        gguf_kv_iter_init(&it, kv);
        while (gguf_kv_iter_next(&it, &e)) {
            gguf_kv_iter_init(&in, &e);
            while (gguf_kv_iter_next(&in, &e2))
                for (size_t k = 0; k < e2.size; k++)
                    sum += ((const uint8_t *)e2.data)[k];
            for (size_t k = 0; k < e.size; k++)
                sum += ((const uint8_t *)e.data)[k];
        }
    }
    for (size_t i = 0; i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        const uint8_t *d = gguf_file_tensor_data(f, i);
        for (uint64_t k = 0; k < t->size; k++)
            sum += d[k];
    }
    return sum;
}

static void check_answers(const struct fixture *x)
{
    for (; x->name; x++) {
        struct gguf_error err;
        struct gguf_file *f;
        struct fix fx;
        fix_init(&fx);
        fix_make(x, &fx);
        enum gguf_status st = open_fix(&fx, &f, &err);
        ok(st == x->status && (st == GGUF_OK) == (f != NULL) &&
               (st == GGUF_OK || err.offset == fx.mark),
           "%s: %s at byte %" PRIu64 " %s", x->name, gguf_status_string(st),
           fx.mark, err.message);
        if (f)
            read_all(f);
        gguf_file_close(f);
        fix_fini(&fx);
    }
}

/* Every proper prefix of a good file is refused, unless only padding or bytes
 * after the data are missing. Prefixes are copied, for the sanitizers. */
static void check_cut(const struct fixture *x)
{
    for (; x->name; x++) {
        struct gguf_error err;
        struct gguf_file *f;
        struct fix fx;
        unsigned bad = 0;
        fix_init(&fx);
        fix_make(x, &fx);
        if (open_fix(&fx, &f, &err) != GGUF_OK)
            continue;
        uint64_t needed = gguf_file_n_tensors(f) ? gguf_file_data_end(f)
                                                 : gguf_file_header_end(f);
        /* a tensor of inferred size shrinks with the file */
        for (size_t i = 0; i < gguf_file_n_tensors(f); i++)
            if (gguf_file_tensor(f, i)->size_inferred)
                needed = gguf_file_data_off(f);
        gguf_file_close(f);
        size_t step = fx.size > 4096 ? 97 : 1;
        for (size_t n = 0; n < fx.size; n += step) {
            uint8_t *copy = malloc(n ? n : 1);
            memcpy(copy, fx.data, n);
            enum gguf_status st =
                gguf_file_open_memory(&f, copy, n, NULL, &err);
            if ((st == GGUF_OK) != (n >= needed) && n < needed)
                bad++;
            if (f)
                read_all(f);
            gguf_file_close(f);
            free(copy);
        }
        ok(bad == 0, "%s is refused wherever it is cut", x->name);
        fix_fini(&fx);
    }
}

/* Change each byte in several ways: the file may open or not, but nothing may
 * crash. */
static void check_bent(const struct fixture *x)
{
    static const uint8_t with[] = { 0x01, 0x80, 0xff, 0x20 };
    unsigned n = 0;
    for (; x->name; x++) {
        struct gguf_error err;
        struct gguf_file *f;
        struct fix fx;
        fix_init(&fx);
        fix_make(x, &fx);
        for (size_t i = 0; i < fx.size && fx.size < 4096; i++)
            for (size_t k = 0; k < sizeof with; k++, n++) {
                fx.data[i] ^= with[k];
                if (open_fix(&fx, &f, &err) == GGUF_OK)
                    read_all(f);
                else if (!err.message[0] || err.offset > fx.size)
                    ok(0, "%s, byte %zu: %s", x->name, i, err.message);
                gguf_file_close(f);
                fx.data[i] ^= with[k];
            }
        fix_fini(&fx);
    }
    ok(n > 1000, "%u files with a changed byte are opened or refused", n);
}

static void check_nomem(const struct fixture *x)
{
    for (; x->name; x++) {
        struct fix fx;
        unsigned n = 0, bad = 0;
        fix_init(&fx);
        fix_make(x, &fx);
        for (;; n++) {
            struct failalloc fa;
            struct gguf_error err;
            struct gguf_file *f;
            struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
            p.allocator = failalloc_init(&fa, n);
            enum gguf_status st =
                gguf_file_open_memory(&f, fx.data, fx.size, &p, &err);
            gguf_file_close(f);
            bad += fa.live != 0;
            if (fa.calls <= n) {
                bad += st != x->status;
                break;
            }
            bad += st != GGUF_E_NOMEM || f != NULL;
        }
        if (bad)
            ok(0, "%s: out of memory at call 0 to %u: %u wrong", x->name, n,
               bad);
        fix_fini(&fx);
    }
}

/* ------------------------------------------------------------- sources --- */

static void check_sources(void)
{
    char path[] = "check-open-XXXXXX";
    struct gguf_error err;
    struct gguf_file *f;
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct fix fx, one;
    enum { START = 5000 }; /* not a multiple of the page size */
    int fd = mkstemp(path);
    fix_init(&fx);
    fix_init(&one);
    fix_make(fix_find("good-plain"), &one);
    fix_fill(&fx, 'x', START);
    fix_bytes(&fx, one.data, one.size);
    fix_fill(&fx, 'y', 77);
    ok(fd >= 0 && write(fd, fx.data, fx.size) == (ssize_t)fx.size, "a file");

    p.offset = START;
    p.size = one.size;
    ok(gguf_file_open(&f, path, &p, &err) == GGUF_OK &&
           gguf_file_size(f) == one.size &&
           !memcmp(gguf_file_bytes(f), one.data, one.size) &&
           !strcmp(gguf_file_path(f), path),
       "opens inside another file, by path");
    gguf_file_close(f);
    p.size = 0;
    ok(gguf_file_open_fd(&f, fd, &p, &err) == GGUF_OK &&
           gguf_file_size(f) == one.size + 77 && !gguf_file_path(f) &&
           gguf_file_data_end(f) < gguf_file_size(f),
       "by descriptor, up to the end");
    gguf_file_close(f);
    ok(fcntl(fd, F_GETFD) >= 0, "which stays open");
    ok(gguf_file_open_memory(&f, fx.data, fx.size, &p, &err) == GGUF_OK &&
           gguf_file_n_tensors(f) == 2,
       "in memory");
    gguf_file_advise_tensor(f, 0, 0, 32, GGUF_ADVICE_DONTNEED);
    gguf_file_close(f);
    p.size = one.size + 78;
    ok(gguf_file_open(&f, path, &p, &err) == GGUF_E_TRUNCATED && !f,
       "a part that is not all there: %s", err.message);
    p.offset = fx.size + 1;
    p.size = 0;
    ok(gguf_file_open(&f, path, &p, &err) == GGUF_E_INVALID && !f,
       "after the end: %s", err.message);
    close(fd);
    unlink(path);

    p = (struct gguf_file_params)GGUF_INIT(struct gguf_file_params);
    p.single_file = true;
    ok(gguf_file_open(&f, ".", &p, &err) == GGUF_E_IO && !f, "a folder: %s",
       err.message);
    ok(gguf_file_open(&f, "/dev/null", NULL, &err) == GGUF_E_INVALID,
       "a device: %s", err.message);
    ok(mkfifo(path, 0600) == 0 &&
           gguf_file_open(&f, path, NULL, &err) == GGUF_E_INVALID,
       "a pipe without a writer: %s", err.message);
    unlink(path);
    ok(gguf_file_open(&f, path, &p, &err) == GGUF_E_IO && err.sys_errno &&
           gguf_file_open(&f, path, NULL, NULL) == GGUF_E_NOTFOUND,
       "no such file: %s", err.message);
    fix_fini(&fx);
    fix_fini(&one);
}

/* -------------------------------------------------------------- limits --- */

/* Open the fixture with one limit changed. */
static enum gguf_status with_limit(const char *name, const char *limit,
                                   uint64_t value, struct gguf_error *err)
{
    struct gguf_limits l = GGUF_INIT(struct gguf_limits);
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *f;
    struct fix fx;
    gguf_error_clear(err);
    if (gguf_limits_set(&l, limit, value, err) != GGUF_OK)
        return GGUF_E_INVALID;
    p.limits = &l;
    fix_init(&fx);
    fix_make(fix_find(name), &fx);
    enum gguf_status st = gguf_file_open_memory(&f, fx.data, fx.size, &p, err);
    if (f)
        read_all(f);
    gguf_file_close(f);
    fix_fini(&fx);
    return st;
}

static void check_limits(void)
{
    static const struct {
        const char *fixture, *limit;
        uint64_t enough; /* smallest limit that suffices */
    } rows[] = {
        { "good-arrays", "kv", 5 },
        { "good-types", "tensors", 6 },
        { "good-long-key", "key-size", 65535 },
        { "good-name-64", "name-size", 64 },
        { "good-arrays", "str-size", 5 },
        { "good-arrays", "array-items", 3 },
        { "good-depth-8", "depth", 8 },
        { "good-four-dims", "dims", 4 },
        { "bad-depth-9", "depth", 9 },
        { "bad-dims-5", "dims", 5 },
        { "bad-name-65", "name-size", 65 },
    };
    struct gguf_error err;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ok(with_limit(rows[i].fixture, rows[i].limit, rows[i].enough, &err) ==
               GGUF_OK,
           "%s: %s of %d do %s", rows[i].fixture, rows[i].limit,
           (int)rows[i].enough, err.message);
        ok(with_limit(rows[i].fixture, rows[i].limit, rows[i].enough - 1,
                      &err) == GGUF_E_LIMIT,
           "%s: one less: %s", rows[i].fixture, err.message);
    }
    struct gguf_limits l = GGUF_INIT(struct gguf_limits);
    ok(gguf_limits_set(&l, "dims", 9, &err) == GGUF_E_INVALID, "too far: %s",
       err.message);
    ok(gguf_limits_set(&l, "legs", 9, &err) == GGUF_E_INVALID &&
           strstr(err.message, "array-items"),
       "no such limit: %s", err.message);
    l.max_dims = 3;
    l.struct_size = offsetof(struct gguf_limits, max_dims);
    ok(gguf_limits_set(&l, "dims", 5, &err) == GGUF_E_INVALID &&
           l.max_dims == 3 && gguf_limits_set(&l, "depth", 5, &err) == GGUF_OK,
       "nothing is written after an older program's limits");
    size_t n = 0;
    while (gguf_limits_name(n))
        n++;
    ok(n == 9, "nine limits have names");
}

/* ---------------------------------------------- meaning of the tables --- */

static void check_types(void)
{
    struct gguf_error err;
    struct gguf_file *f;
    struct fix fx;
    fix_init(&fx);
    fix_make(fix_find("good-types"), &fx);
    ok(open_fix(&fx, &f, &err) == GGUF_OK, "good-types opens");
    static const struct {
        const char *name;
        uint64_t size;
        int inferred;
    } rows[] = {
        { "q4_k", 144, 0 }, { "removed", 32, 1 }, { "unknown", 64, 1 },
        { "i8", 1, 0 },     { "fork", 76, 0 },    { "not-that-fork", 10, 1 },
    };
    for (size_t i = 0; f && i < 6; i++) {
        const struct gguf_tensor_info *t =
            gguf_file_tensor_find(f, rows[i].name);
        ok(t && t->index == i && t->size == rows[i].size &&
               t->size_inferred == rows[i].inferred,
           "%s: %d bytes, %sinferred", rows[i].name, (int)rows[i].size,
           rows[i].inferred ? "" : "not ");
    }
    ok(f && !gguf_file_tensor_find(f, "i9") && !gguf_file_tensor(f, 6) &&
           !gguf_file_tensor_data(f, 6) && !gguf_file_kv(f, 0),
       "a missing tensor is NULL");
    gguf_file_close(f);
    fix_fini(&fx);

    fix_init(&fx);
    fix_make(fix_find("good-gap-and-order"), &fx);
    ok(open_fix(&fx, &f, &err) == GGUF_OK &&
           gguf_file_tensor_by_offset(f, 0)->index == 1 &&
           gguf_file_tensor_by_offset(f, 1)->index == 0 &&
           gguf_file_data_end(f) - gguf_file_data_off(f) == 160,
       "by offset is not by list");
    gguf_file_close(f);
    fix_fini(&fx);
}

/* Memory is within gguf/file.h's bound, 512 bytes for each tensor and each
 * key. At these numbers, arrays that grow by doubling have just grown. */
static void check_memory(uint64_t n_tensors, uint64_t n_keys)
{
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *f = NULL;
    struct gguf_error err;
    struct failalloc fa;
    struct fix fx;
    char name[32];
    fix_init(&fx);
    fix_head(&fx, 3, n_tensors, n_keys);
    for (uint64_t i = 0; i < n_keys; i++) {
        snprintf(name, sizeof name, "k%" PRIu64, i);
        fix_kv_u32(&fx, name, 0);
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
        snprintf(name, sizeof name, "t%" PRIu64, i);
        fix_info(&fx, name, FIX_NE(1), GGUF_DTYPE_F32, 32 * i);
    }
    fix_pad(&fx, 32);
    fix_fill(&fx, 0, 32 * n_tensors);
    p.allocator = failalloc_init(&fa, UINT_MAX);
    const enum gguf_status st =
        gguf_file_open_memory(&f, fx.data, fx.size, &p, &err);
    ok(st == GGUF_OK && fa.most <= 512 * (n_tensors + n_keys) + 65536,
       "%" PRIu64 " tensors and %" PRIu64 " keys: %zu bytes at most",
       n_tensors, n_keys, fa.most);
    gguf_file_close(f);
    fix_fini(&fx);
}

int main(void)
{
    check_answers(fix_list("good"));
    check_answers(fix_list("bad metadata"));
    check_answers(fix_list("bad tensors"));
    check_cut(fix_list("good"));
    check_bent(fix_list("good"));
    int before = tap_bad;
    check_memory(0, 0);
    check_memory(32769, 0);
    check_memory(65536, 0);
    check_memory(0, 32769);
    check_memory(16385, 16385);
    check_nomem(fix_list("good"));
    check_nomem(fix_list("bad metadata"));
    check_nomem(fix_list("bad tensors"));
    ok(tap_bad == before, "memory may run out at any call of opening");
    check_sources();
    check_limits();
    check_types();
    return done_testing();
}
