/* SPDX-License-Identifier: MIT */
/* check-reader.c - files that a function reads: requested ranges, and memory */
#include "config.h"
#include "tests/fix.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include "base/compiler.h"
#include "gguf/check.h"
#include "gguf/digest.h"
#include "gguf/reader.h"
#include "gguf/split.h"
#include "gguf/stats.h"
#include "gguf/writer.h"

#include <stddef.h>
#include <unistd.h>

static char dir[] = "/tmp/check-reader-XXXXXX";

/* Bytes in memory, and the requests for them. */
struct from {
    const uint8_t *data;
    size_t size;
    size_t n_reads, n_closed;
    uint64_t upto;      /* end of the last byte that was read */
    uint64_t fail_from; /* reads beyond this byte fail */
    bool bad;           /* a read out of range, or of 0 bytes, was asked for */
};

static enum gguf_status from_read(void *user, uint64_t off, void *dst,
                                  size_t size, struct gguf_error *err)
{
    struct from *f = user;
    f->n_reads++;
    f->bad |= !size || off > f->size || size > f->size - off;
    if (f->bad)
        return gguf_error_set(err, GGUF_E_INVALID, "out of range");
    if (off + size > f->fail_from)
        return gguf_error_set(err, GGUF_E_IO, "the line is dead");
    memcpy(dst, f->data + off, size);
    if (f->upto < off + size)
        f->upto = off + size;
    return GGUF_OK;
}

static void from_close(void *user)
{
    struct from *f = user;
    f->n_closed++;
}

static enum gguf_status open_from(struct gguf_file **out, struct from *f,
                                  const struct gguf_file_params *p,
                                  struct gguf_error *err)
{
    struct gguf_reader r = {
        sizeof r, f->size, from_read, from_close, f, NULL
    };
    f->n_reads = f->n_closed = 0;
    f->upto = 0;
    if (!f->fail_from)
        f->fail_from = UINT64_MAX;
    return gguf_file_open_reader(out, &r, "far/away.gguf", p, err);
}

/* ---- the same as from memory ---- */

static bool same_kvs(const struct gguf_file *a, const struct gguf_file *b)
{
    bool same = gguf_file_n_kv(a) == gguf_file_n_kv(b);
    for (size_t i = 0; same && i < gguf_file_n_kv(a); i++) {
        const struct gguf_kv *x = gguf_file_kv(a, i), *y = gguf_file_kv(b, i);
        same = x->type == y->type && x->size == y->size && x->n == y->n &&
               x->off == y->off && !memcmp(x->data, y->data, x->size);
    }
    return same;
}

static bool same_tensors(const struct gguf_file *a, const struct gguf_file *b)
{
    bool same = gguf_file_n_tensors(a) == gguf_file_n_tensors(b);
    for (size_t i = 0; same && i < gguf_file_n_tensors(a); i++) {
        const struct gguf_tensor_info *x = gguf_file_tensor(a, i);
        const struct gguf_tensor_info *y = gguf_file_tensor(b, i);
        same = x->name.size == y->name.size && x->off == y->off &&
               !memcmp(x->name.data, y->name.data, x->name.size) &&
               !memcmp(x->ne, y->ne, sizeof x->ne) && x->size == y->size;
    }
    return same;
}

static void test_fixture(const struct fixture *x)
{
    struct fix f;
    struct gguf_file *a, *b;
    struct gguf_error ea, eb;
    fix_init(&f);
    fix_make(x, &f);
    struct from from = { .data = f.data, .size = f.size };
    gguf_error_clear(&ea);
    gguf_error_clear(&eb);
    enum gguf_status sa = gguf_file_open_memory(&a, f.data, f.size, NULL, &ea);
    enum gguf_status sb = open_from(&b, &from, NULL, &eb);
    ok(sa == sb && ea.offset == eb.offset && !strcmp(ea.message, eb.message) &&
           !from.bad && from.n_closed == (sb != GGUF_OK) &&
           (sb || (same_kvs(a, b) && same_tensors(a, b))),
       "%s: as from memory", x->name);
    gguf_file_close(a);
    gguf_file_close(b);
    if (sb == GGUF_OK && from.n_closed != 1)
        ok(false, "%s: closed once", x->name);
    fix_fini(&f);
}

/* ---- headers of several pieces ---- */

enum { N_WORDS = 60000, N_BOOLS = 700000, N_TENSORS = 9000 };

/* A header of some MB with fields across the ends of pieces. */
static void make_long(struct fix *f)
{
    char name[40];
    fix_head(f, 3, N_TENSORS, 4);
    fix_array(f, "words", GGUF_VAL_STR, N_WORDS);
    for (unsigned i = 0; i < N_WORDS; i++) {
        snprintf(name, sizeof name, "%.*s%u", (int)(i % 20),
                 "abcdefghijklmnopqrstu", i);
        fix_str(f, name);
    }
    fix_array(f, "bools", GGUF_VAL_BOOL, N_BOOLS);
    for (unsigned i = 0; i < N_BOOLS; i++)
        fix_u8(f, i & 1);
    fix_array(f, "nested", GGUF_VAL_ARR, 20000);
    for (unsigned i = 0; i < 20000; i++) {
        fix_u32(f, GGUF_VAL_U16);
        fix_u64(f, i % 7);
        for (unsigned k = 0; k < i % 7; k++)
            fix_u16(f, k);
    }
    fix_kv_str(f, "last", "one");
    for (unsigned i = 0; i < N_TENSORS; i++) {
        snprintf(name, sizeof name, "blk.%u.weight", i);
        fix_info(f, name, FIX_NE(8), GGUF_DTYPE_F32, (uint64_t)i * 32);
    }
    fix_pad(f, 32);
    for (unsigned i = 0; i < N_TENSORS; i++)
        fix_fill(f, i & 0x3f, 32);
}

static void test_pieces(void)
{
    struct fix f;
    struct gguf_file *a, *b;
    struct gguf_error err;
    struct gguf_limits limits = GGUF_INIT(struct gguf_limits);
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    fix_init(&f);
    make_long(&f);
    struct from from = { .data = f.data, .size = f.size };
    enum gguf_status sa =
        gguf_file_open_memory(&a, f.data, f.size, NULL, &err);
    enum gguf_status sb = open_from(&b, &from, NULL, &err);
    ok(sa == GGUF_OK && sb == GGUF_OK && same_kvs(a, b) && same_tensors(a, b),
       "a header of %llu bytes", (unsigned long long)gguf_file_header_end(b));
    ok(from.n_reads <= 4 && !from.bad, "in %zu pieces", from.n_reads);
    uint64_t end = gguf_file_header_end(b);
    ok(from.upto <= 4 * end, "and not much more than it: %llu bytes",
       (unsigned long long)from.upto);
    uint64_t data = gguf_file_data_off(b);
    gguf_file_close(a);
    gguf_file_close(b);
    ok(from.n_closed == 1, "closed");

    p.limits = &limits;
    limits.max_header = data;
    sb = open_from(&b, &from, &p, &err);
    ok(sb == GGUF_OK && from.upto == data, "a limit that is met");
    gguf_file_close(b);
    limits.max_header = end - 1;
    sb = open_from(&b, &from, &p, &err);
    ok(sb == GGUF_E_LIMIT && !b && from.upto < end && from.n_closed == 1 &&
           strstr(err.message, "limit is"),
       "one that is not: %s", err.message);

    from.fail_from = 200000;
    sb = open_from(&b, &from, NULL, &err);
    ok(sb == GGUF_E_IO && !b && from.n_closed == 1 &&
           !strcmp(err.message, "the line is dead"),
       "a failure of the function is passed on");
    fix_fini(&f);
}

/* A string of 1 GB that the size of the file would allow. */
static void test_lies(void)
{
    struct fix f;
    struct gguf_file *file;
    struct gguf_error err;
    fix_init(&f);
    fix_head(&f, 3, 0, 1);
    fix_key(&f, "long", GGUF_VAL_STR);
    fix_u64(&f, (uint64_t)1 << 29);
    fix_fill(&f, 'x', 1 << 20);
    struct from from = { .data = f.data, .size = f.size };
    struct gguf_reader r = { sizeof r,  (uint64_t)1 << 33,
                             from_read, from_close,
                             &from,     NULL };
    from.fail_from = UINT64_MAX;
    enum gguf_status st = gguf_file_open_reader(&file, &r, NULL, NULL, &err);
    ok(st == GGUF_E_LIMIT && !file && !from.bad && from.upto <= 1 << 20,
       "a string that is longer than a header may be: %s", err.message);
    r.size = 5000;
    from.upto = 0;
    st = gguf_file_open_reader(&file, &r, NULL, NULL, &err);
    ok(st == GGUF_E_TRUNCATED && !file && !from.bad && from.upto == 5000,
       "one that is longer than the whole");
    r.read_at = NULL;
    from.n_closed = 0;
    st = gguf_file_open_reader(&file, &r, NULL, NULL, &err);
    ok(st == GGUF_E_INVALID && !file && from.n_closed == 1, "no function");
    fix_fini(&f);
}

/* ---- data ---- */

static bool ignore_finding(void *user, const struct gguf_finding *f)
{
    (void)user, (void)f;
    return 0;
}

static void test_data(void)
{
    struct fix f;
    struct gguf_file *a, *b;
    struct gguf_error err;
    uint8_t some[32];
    float row[8];
    fix_init(&f);
    make_long(&f);
    struct from from = { .data = f.data, .size = f.size };
    if (gguf_file_open_memory(&a, f.data, f.size, NULL, &err) ||
        open_from(&b, &from, NULL, &err)) {
        ok(false, "%s", err.message);
        return;
    }
    ok(gguf_file_has_reader(b) && !gguf_file_has_reader(a) &&
           !gguf_file_tensor_data(b, 3) && gguf_file_tensor_data(a, 3),
       "no data is in memory");
    ok(gguf_file_read_tensor(b, 3, 4, some, 28, &err) == GGUF_OK &&
           !memcmp(some, gguf_file_tensor_data(a, 3), 28) &&
           gguf_file_read_tensor(a, 3, 0, some, 32, &err) == GGUF_OK &&
           !memcmp(some, gguf_file_tensor_data(a, 3), 32) &&
           gguf_file_read_tensor(b, 3, 0, some, 0, &err) == GGUF_OK,
       "it can be read");
    ok(gguf_file_read_tensor(b, 3, 4, some, 29, &err) == GGUF_E_INVALID &&
           gguf_file_read_tensor(b, 3, 33, some, 0, &err) == GGUF_E_INVALID &&
           gguf_file_read_tensor(b, N_TENSORS, 0, some, 0, &err) ==
               GGUF_E_INVALID &&
           !from.bad,
       "but not a missing tensor");
    struct gguf_digest x, y;
    ok(gguf_digest_tensors(a, NULL, NULL, &x, &err) == GGUF_OK &&
           gguf_digest_tensors(b, NULL, NULL, &y, &err) == GGUF_OK &&
           gguf_digest_equal(&x, &y),
       "sums are those of the file");

    struct gguf_rows *rows;
    struct gguf_check_params c = GGUF_INIT(struct gguf_check_params);
    c.payload = true;
    ok(gguf_rows_create(&rows, NULL, &err) == GGUF_OK &&
           gguf_rows_decode(rows, b, 0, 0, 8, row, &err) == GGUF_E_UNSUPPORTED,
       "numbers need memory: %s", err.message);
    ok(gguf_file_check(b, &c,
                       (struct gguf_finding_callback){ ignore_finding, NULL },
                       &err) == GGUF_E_UNSUPPORTED,
       "so does a check of data");
    c.payload = false;
    ok(gguf_file_check(b, &c,
                       (struct gguf_finding_callback){ ignore_finding, NULL },
                       &err) == GGUF_OK,
       "one of the header does not");
    gguf_rows_destroy(rows);
    gguf_file_close(a);
    gguf_file_close(b);
    fix_fini(&f);
}

/* ---- paths of an opener ---- */

/* Opens "far:NAME", the file NAME in dir. */
struct world {
    struct from from[8];
    size_t n;
};

static bool opens_path(void *user, const char *path)
{
    (void)user;
    return !strncmp(path, "far:", 4);
}

static void world_close(void *user)
{
    struct from *f = user;
    f->n_closed++;
    free((void *)(uintptr_t)f->data);
}

static enum gguf_status world_open(void *user, const char *path,
                                   struct gguf_reader *out,
                                   struct gguf_error *err)
{
    struct world *w = user;
    size_t size;
    void *data = slurp(scratch_path(dir, path + 4), &size);
    if (!data || w->n == 8)
        return gguf_error_set(err, GGUF_E_NOTFOUND, "is nowhere");
    struct from *f = &w->from[w->n++];
    *f = (struct from){ .data = data, .size = size, .fail_from = UINT64_MAX };
    out->size = size;
    out->read_at = from_read;
    out->close = world_close;
    out->user = f;
    return GGUF_OK;
}

static size_t n_open(const struct world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        n += !w->from[i].n_closed;
    return n;
}

/* Make the model in three shards, and as one file. */
static bool make_set(void)
{
    struct fix f;
    struct gguf_file *s = NULL;
    struct gguf_split_plan *plan = NULL;
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    fix_init(&f);
    make_long(&f);
    p.max_tensors = N_TENSORS / 3;
    bool good = spill(scratch_path(dir, "whole.gguf"), f.data, f.size);
    fix_fini(&f);
    good = good &&
           gguf_file_open(&s, scratch_path(dir, "whole.gguf"), NULL, NULL) ==
               GGUF_OK &&
           gguf_split_plan_create(&plan, s, &p, NULL) == GGUF_OK &&
           gguf_split_plan_write(plan, scratch_path(dir, "x"), NULL, NULL) ==
               GGUF_OK;
    gguf_split_plan_destroy(plan);
    gguf_file_close(s);
    return good;
}

/* A malformed opener is refused before it is called. */
static void test_opener_checked(void)
{
    static struct world w;
    const struct gguf_opener good = { sizeof good, opens_path, world_open,
                                      &w };
    struct gguf_opener bad[4] = { good, good, good, good };
    static const char *const said[] = {
        "gguf_opener: struct_size is 0, ", "gguf_opener: struct_size is ",
        "gguf_opener has no function accepts",
        "gguf_opener has no function open_reader"
    };
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *s;
    struct gguf_file *file;
    struct gguf_error err;
    unsigned n = 0;
    bad[0].struct_size = 0;
    bad[1].struct_size = offsetof(struct gguf_opener, user);
    bad[2].accepts = NULL;
    bad[3].open_reader = NULL;
    for (unsigned i = 0; i < 4; i++) {
        p.opener = &bad[i];
        n += gguf_file_open(&file, "far:x", &p, &err) == GGUF_E_INVALID &&
             !file && !strncmp(err.message, said[i], strlen(said[i]));
        n += gguf_file_open(&s, "far:x", &p, &err) == GGUF_E_INVALID && !s &&
             !strncmp(err.message, said[i], strlen(said[i]));
    }
    ok(n == 8 && w.n == 0, "an opener without a size or a function");
}

static void test_opener(void)
{
    static struct world w;
    const struct gguf_opener o = { sizeof o, opens_path, world_open, &w };
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *s;
    struct gguf_file *file;
    struct gguf_error err;
    p.opener = &o;
    if (!make_set()) {
        ok(false, "a set to read");
        return;
    }
    enum gguf_status st =
        gguf_file_open(&s, "far:x-00002-of-00003.gguf", &p, &err);
    ok(st == GGUF_OK && gguf_file_n_shards(s) == 3 && w.n == 3 &&
           gguf_file_n_tensors(s) == N_TENSORS &&
           !strcmp(gguf_file_path(gguf_file_shard(s, 2)),
                   "far:x-00003-of-00003.gguf"),
       "a set, by its second shard, each opened once");
    ok(gguf_split_merge(s, scratch_path(dir, "merged.gguf"), NULL, &err) ==
               GGUF_OK &&
           same_files(scratch_path(dir, "merged.gguf"),
                      scratch_path(dir, "whole.gguf")),
       "merged, it is the file that was split");
    gguf_file_close(s);
    ok(n_open(&w) == 0, "all are closed");

    st = gguf_file_open(&s, scratch_path(dir, "whole.gguf"), &p, &err);
    ok(st == GGUF_OK && w.n == 3, "other paths are files");
    gguf_file_close(s);

    remove(scratch_path(dir, "x-00003-of-00003.gguf"));
    st = gguf_file_open(&s, "far:x-00002-of-00003.gguf", &p, &err);
    ok(st == GGUF_E_NOTFOUND && !s && w.n == 5 && n_open(&w) == 0 &&
           strstr(err.message, "x-00003-of-00003.gguf"),
       "a shard that is missing: %s", err.message);
    st = gguf_file_open(&file, "far:nowhere", &p, &err);
    ok(st == GGUF_E_NOTFOUND && !file, "a file that is missing");

    w.n = 0;
    struct gguf_split_plan *plan = NULL;
    struct gguf_split_params sp = GGUF_INIT(struct gguf_split_params);
    sp.max_tensors = N_TENSORS / 3;
    ok(gguf_file_open(&s, "far:whole.gguf", &p, &err) == GGUF_OK &&
           gguf_split_plan_create(&plan, s, &sp, &err) == GGUF_OK &&
           gguf_split_plan_write(plan, scratch_path(dir, "y"), NULL, &err) ==
               GGUF_OK &&
           same_files(scratch_path(dir, "x-00002-of-00003.gguf"),
                      scratch_path(dir, "y-00002-of-00003.gguf")),
       "and split, it is the shards of the file");
    gguf_split_plan_destroy(plan);
    gguf_file_close(s);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    const struct fixture *const lists[] = { fix_list("good"),
                                            fix_list("bad metadata"),
                                            fix_list("bad tensors") };
    for (size_t i = 0; i < GG_LEN(lists); i++)
        for (const struct fixture *x = lists[i]; x->name; x++)
            test_fixture(x);
    test_pieces();
    test_lies();
    test_data();
    test_opener();
    test_opener_checked();
    static const char *const made[] = {
        "whole.gguf",
        "merged.gguf",
        "x-00001-of-00003.gguf",
        "x-00002-of-00003.gguf",
        "x-00003-of-00003.gguf",
        "y-00001-of-00003.gguf",
        "y-00002-of-00003.gguf",
        "y-00003-of-00003.gguf",
    };
    for (size_t i = 0; i < GG_LEN(made); i++)
        remove(scratch_path(dir, made[i]));
    ok(rmdir(dir) == 0, "nothing is left");
    return done_testing();
}
