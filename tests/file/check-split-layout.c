/* SPDX-License-Identifier: MIT */
/* check-split-layout.c - files with layouts that no writer makes are split and
 * merged, and each byte returns to its place. Forged layout keys are refused.
 */
#include "config.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include "gguf/split.h"

#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/check-split-layout-XXXXXX";

static const char *in_dir(const char *name)
{
    return scratch_path(dir, name);
}

static void write_all(const char *name, const void *data, size_t size)
{
    if (!spill(in_dir(name), data, size))
        exit(99);
}

/* Are these the bytes of the file? */
static bool has_bytes(const char *name, const void *data, size_t size)
{
    size_t n;
    void *got = slurp(in_dir(name), &n);
    bool same = got && n == size && !memcmp(got, data, size);
    free(got);
    return same;
}

static enum gguf_status merge_set(const struct gguf_allocator *a,
                                  uint64_t *size, struct gguf_error *err)
{
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *set = NULL;
    fp.allocator = a;
    job.no_sync = job.force = true;
    enum gguf_status st = gguf_file_open(&set, in_dir("s"), &fp, err);
    if (st == GGUF_OK)
        st = gguf_split_merge_size(set, size, err);
    if (st == GGUF_OK)
        st = gguf_split_merge(set, in_dir("merged.gguf"), &job, err);
    gguf_file_close(set);
    return st;
}

/* Split in.gguf into shards s-..., and merge them to merged.gguf. */
static enum gguf_status there_and_back(const struct gguf_allocator *a,
                                       uint64_t *size, struct gguf_error *err)
{
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *set = NULL;
    struct gguf_split_plan *plan = NULL;
    fp.allocator = a;
    p.max_tensors = 1;
    job.no_sync = job.force = true;
    gguf_error_clear(err);
    enum gguf_status st = gguf_file_open(&set, in_dir("in.gguf"), &fp, err);
    if (st == GGUF_OK)
        st = gguf_split_plan_create(&plan, set, &p, err);
    if (st == GGUF_OK)
        st = gguf_split_plan_write(plan, in_dir("s"), &job, err);
    gguf_split_plan_destroy(plan);
    gguf_file_close(set);
    return st == GGUF_OK ? merge_set(a, size, err) : st;
}

static void round_trip(const char *what, const struct fix *f)
{
    struct gguf_error err;
    uint64_t size = 0;
    scratch_clean(dir);
    write_all("in.gguf", f->data, f->size);
    enum gguf_status st = there_and_back(NULL, &size, &err);
    ok(st == GGUF_OK && size == f->size &&
           has_bytes("merged.gguf", f->data, f->size),
       "%s: %s", what, st == GGUF_OK ? "comes back" : err.message);
}

/* Unusual properties of a file, as bits. */
enum {
    HEADER_JUNK = 1, /* padding after the header that is not zero */
    JUNK = 2,        /* padding after tensors that is not zero */
    GAPS = 4,        /* unused bytes before each tensor */
    ORDER = 8,       /* data in another order than the list */
    NO_END = 16,     /* no padding after the last tensor */
    TRAIL = 32,      /* bytes after it */
    KEYS = 64,       /* split keys from an earlier set */
    BIG = 128,       /* big-endian */
    OF_ONE = 256,    /* the only shard of a set */
    OWN = 512,       /* keys with the names of layout keys */
    N_WAYS = 1024
};

enum { N = 3, TENSOR = 40, ROOM = 64 }; /* bytes of a tensor, with padding */

static void add_keys(struct fix *f, unsigned count)
{
    fix_key(f, "split.no", GGUF_VAL_U16);
    fix_u16(f, 0);
    fix_key(f, "split.tensors.count", GGUF_VAL_I32);
    fix_u32(f, N);
    fix_key(f, "split.count", GGUF_VAL_U16);
    fix_u16(f, count);
}

/* Add the keys of a file that was split twice. */
static void add_own(struct fix *f)
{
    fix_kv_str(f, "libgguf.split.no", "a text");
    fix_key(f, "libgguf.libgguf.split.size", GGUF_VAL_U64);
    fix_u64(f, 7);
    fix_array(f, "libgguf.split.offsets", GGUF_VAL_U64, 3);
    for (unsigned i = 0; i < 3; i++)
        fix_u64(f, i * ROOM);
    fix_key(f, "libgguf.split.size", GGUF_VAL_U64);
    fix_u64(f, 3 * ROOM);
    fix_kv_u32(f, "libgguf.libgguf.libgguf.split.count", 2);
    fix_kv_u32(f, "libgguf.split.other", 3);
}

static void make_file(struct fix *f, unsigned ways)
{
    static const char *const names[N] = { "a", "b", "c" };
    static const unsigned place[N] = { 1, 2, 0 };
    const unsigned gap = ways & GAPS ? 96 : 0;
    const unsigned pad = ways & JUNK ? 0xa5 : 0;
    fix_init(f);
    f->big_endian = ways & BIG;
    const bool keys = ways & (KEYS | OF_ONE);
    fix_head(f, 3, N, 2 + (keys ? 3 : 0) + (ways & OWN ? 6 : 0));
    fix_kv_str(f, "general.architecture", "x");
    if (keys)
        add_keys(f, ways & OF_ONE ? 1 : 0);
    if (ways & OWN)
        add_own(f);
    fix_kv_str(f, "general.name", "model");
    for (unsigned i = 0; i < N; i++)
        fix_info(f, names[i], FIX_NE(TENSOR / 4), GGUF_DTYPE_F32,
                 (ways & ORDER ? place[i] : i) * (ROOM + gap) + gap);
    while (f->size % 32)
        fix_u8(f, ways & HEADER_JUNK ? 0x5a : 0);
    for (unsigned i = 0; i < N; i++) {
        fix_fill(f, pad, gap);
        fix_fill(f, i + 1, TENSOR);
        if (i + 1 < N || !(ways & NO_END) || ways & TRAIL)
            fix_fill(f, pad, ROOM - TENSOR);
    }
    fix_fill(f, 0x77, ways & TRAIL ? 1000 : 0);
}

static void test_ways(void)
{
    for (unsigned ways = 0; ways < N_WAYS; ways++) {
        struct fix f;
        char what[64];
        make_file(&f, ways);
        snprintf(what, sizeof what, "ways 0x%02x", ways);
        round_trip(what, &f);
        fix_fini(&f);
    }
}

/* Are all sizes known? A tensor of unknown type ends where the next one
 * begins, or its file. */
static bool sizes_known(const struct fix *f)
{
    struct gguf_file *file;
    bool known = true;
    if (gguf_file_open_memory(&file, f->data, f->size, NULL, NULL) != GGUF_OK)
        exit(99);
    for (size_t i = 0; i < gguf_file_n_tensors(file); i++)
        known = known && !gguf_file_tensor(file, i)->size_inferred;
    gguf_file_close(file);
    return known;
}

/* Files that come from sets return to their bytes, too. */
static void test_again(void)
{
    struct fix f;
    struct gguf_error err;
    uint64_t size = 0;
    size_t n = 0;
    make_file(&f, JUNK | KEYS);
    round_trip("the file", &f);
    struct fix one = { 0 };
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *set = NULL;
    struct gguf_split_plan *plan = NULL;
    p.max_tensors = N;
    job.no_sync = true;
    if (gguf_file_open(&set, in_dir("in.gguf"), NULL, &err) != GGUF_OK ||
        gguf_split_plan_create(&plan, set, &p, &err) != GGUF_OK ||
        gguf_split_plan_write(plan, in_dir("one"), &job, &err) != GGUF_OK)
        exit(99);
    gguf_split_plan_destroy(plan);
    gguf_file_close(set);
    one.data = slurp(in_dir("one-00001-of-00001.gguf"), &n);
    one.size = n;
    round_trip("a set of one", &one);
    scratch_clean(dir);
    write_all("s-00001-of-00001.gguf", one.data, one.size);
    ok(merge_set(NULL, &size, &err) == GGUF_OK &&
           has_bytes("merged.gguf", f.data, f.size),
       "and that is merged into the file");
    free(one.data);
    fix_fini(&f);
}

static void test_fixtures(void)
{
    for (const struct fixture *x = fix_list("good"); x->name; x++) {
        struct fix f;
        fix_init(&f);
        fix_make(x, &f);
        if (sizes_known(&f))
            round_trip(x->name, &f);
        fix_fini(&f);
    }
}

/* Layout keys stand only where they are needed, and in the first shard. */
static void test_keys(void)
{
    static const struct {
        unsigned ways;
        bool offsets, gaps, no;
    } rows[] = {
        { 0, false, false, false },   { NO_END, true, false, false },
        { GAPS, true, false, false }, { JUNK, true, true, false },
        { KEYS, false, false, true }, { OF_ONE, false, false, true }
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fix f;
        struct gguf_file *set;
        make_file(&f, rows[i].ways);
        round_trip("once more", &f);
        fix_fini(&f);
        if (gguf_file_open(&set, in_dir("s"), NULL, NULL) != GGUF_OK)
            exit(99);
        const struct gguf_file *first = gguf_file_shard(set, 0);
        const struct gguf_file *second = gguf_file_shard(set, 1);
        ok(!gguf_file_kv_find(first, "libgguf.split.offsets") ==
                   !rows[i].offsets &&
               !gguf_file_kv_find(first, "libgguf.split.size") ==
                   !rows[i].offsets &&
               !gguf_file_kv_find(first, "libgguf.split.gaps") ==
                   !rows[i].gaps &&
               !gguf_file_kv_find(first, "libgguf.split.no") == !rows[i].no &&
               gguf_file_n_kv(second) == 3,
           "the keys of ways 0x%02x", rows[i].ways);
        gguf_file_close(set);
    }
}

/* ---- forged keys ---- */

struct made_up {
    const char *what;
    unsigned n; /* number of offsets */
    uint64_t off[3], size;
    unsigned n_gaps;
    uint32_t type; /* type of the offsets */
};

/* Write the header after the metadata: infos of two tensors, then padding. */
static void write_made_up(const struct made_up *m)
{
    for (unsigned no = 0; no < 2; no++) {
        struct fix f;
        fix_init(&f);
        fix_head(&f, 3, 1, no ? 3 : 6);
        fix_key(&f, "split.no", GGUF_VAL_U16);
        fix_u16(&f, no);
        fix_key(&f, "split.count", GGUF_VAL_U16);
        fix_u16(&f, 2);
        fix_key(&f, "split.tensors.count", GGUF_VAL_I32);
        fix_u32(&f, 2);
        if (!no) {
            fix_array(&f, "libgguf.split.offsets", m->type, m->n);
            for (unsigned i = 0; i < m->n; i++)
                fix_u64(&f, m->off[i]);
            fix_key(&f, "libgguf.split.size", GGUF_VAL_U64);
            fix_u64(&f, m->size);
            fix_array(&f, "libgguf.split.gaps", GGUF_VAL_U8, m->n_gaps);
            fix_fill(&f, 0xee, m->n_gaps);
        }
        fix_info(&f, no ? "b" : "a", FIX_NE(TENSOR / 4), GGUF_DTYPE_F32, 0);
        fix_pad(&f, 32);
        fix_fill(&f, no + 1, TENSOR);
        fix_pad(&f, 32);
        write_all(no ? "s-00002-of-00002.gguf" : "s-00001-of-00002.gguf",
                  f.data, f.size);
        fix_fini(&f);
    }
}

/* The result of a merge that ignores the keys. */
static void merge_plain(struct fix *f)
{
    fix_init(f);
    fix_head(f, 3, 2, 0);
    fix_info(f, "a", FIX_NE(TENSOR / 4), GGUF_DTYPE_F32, 0);
    fix_info(f, "b", FIX_NE(TENSOR / 4), GGUF_DTYPE_F32, ROOM);
    fix_pad(f, 32);
    for (int i = 1; i <= 2; i++) {
        fix_fill(f, (unsigned)i, TENSOR);
        fix_pad(f, 32);
    }
}

static void test_made_up(void)
{
    enum { HEAD = 24 + 2 * 33 }; /* bytes of the header without padding */
    const uint64_t pad = 96 - HEAD;
    const struct made_up rows[] = {
        { "one offset too few", 1, { 0 }, pad + 128, pad + 48, GGUF_VAL_U64 },
        { "one too many",
          3,
          { 0, 64, 128 },
          pad + 128,
          pad + 48,
          GGUF_VAL_U64 },
        { "none", 0, { 0 }, pad + 128, pad + 48, GGUF_VAL_U64 },
        { "after the end", 2, { 0, 128 }, pad + 128, pad + 48, GGUF_VAL_U64 },
        { "far after",
          2,
          { 0, UINT64_MAX - 31 },
          pad + 128,
          pad + 48,
          GGUF_VAL_U64 },
        { "not aligned", 2, { 0, 65 }, pad + 128, pad + 48, GGUF_VAL_U64 },
        { "one in the other",
          2,
          { 0, 32 },
          pad + 128,
          pad + 48,
          GGUF_VAL_U64 },
        { "of another type", 2, { 0, 64 }, pad + 128, pad + 48, GGUF_VAL_I64 },
        { "too few gaps", 2, { 0, 64 }, pad + 128, pad + 47, GGUF_VAL_U64 },
        { "too many gaps", 2, { 64, 0 }, pad + 128, pad + 49, GGUF_VAL_U64 },
        { "a size that overflows", 2, { 0, 64 }, UINT64_MAX, 0, GGUF_VAL_U64 },
        { "a size of no end", 2, { 0, 64 }, INT64_MAX / 2, 0, GGUF_VAL_U64 },
        { "a size too small", 2, { 0, 64 }, 100, 0, GGUF_VAL_U64 },
        { "a size of 0", 2, { 0, 64 }, 0, 0, GGUF_VAL_U64 },
    };
    struct fix want;
    struct gguf_error err;
    uint64_t size = 0;
    merge_plain(&want);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scratch_clean(dir);
        write_made_up(&rows[i]);
        gguf_error_clear(&err);
        enum gguf_status st = merge_set(NULL, &size, &err);
        ok(st == GGUF_OK && size == want.size &&
               has_bytes("merged.gguf", want.data, want.size),
           "made up, %s: %s", rows[i].what, st ? err.message : "no harm");
    }
    /* the counterpart: valid keys are used */
    const struct made_up good = { "",        2,        { 64, 0 },
                                  pad + 128, pad + 48, GGUF_VAL_U64 };
    scratch_clean(dir);
    write_made_up(&good);
    enum gguf_status st = merge_set(NULL, &size, &err);
    ok(st == GGUF_OK && size == HEAD + good.size &&
           !has_bytes("merged.gguf", want.data, want.size),
       "made up, and right: %s", st ? err.message : "believed");
    fix_fini(&want);
}

static void test_too_much(void)
{
    struct fix f;
    struct gguf_error err;
    uint64_t size;
    make_file(&f, 0);
    scratch_clean(dir);
    write_all("in.gguf", f.data, f.size);
    if (truncate(in_dir("in.gguf"), 80 << 20) != 0)
        exit(99);
    ok(there_and_back(NULL, &size, &err) == GGUF_E_LIMIT &&
           strstr(err.message, "belong to no tensor") &&
           err.offset != GGUF_NO_OFFSET,
       "%s", err.message);
    fix_fini(&f);
}

static void test_memory(void)
{
    struct failalloc fa;
    struct gguf_error err;
    struct fix f;
    int leaks = 0, wrong = 0;
    unsigned n = 0;
    uint64_t size;
    make_file(&f, N_WAYS - 1 - BIG);
    for (;; n++) {
        scratch_clean(dir);
        write_all("in.gguf", f.data, f.size);
        enum gguf_status st =
            there_and_back(failalloc_init(&fa, n), &size, &err);
        leaks += fa.live != 0;
        if (fa.calls <= n) {
            wrong += st != GGUF_OK;
            break;
        }
        wrong +=
            st != GGUF_E_NOMEM || access(in_dir("merged.gguf"), F_OK) == 0;
    }
    ok(leaks == 0, "no block is lost, whichever of %u fails", n);
    ok(wrong == 0 && has_bytes("merged.gguf", f.data, f.size),
       "each failure is GGUF_E_NOMEM and leaves nothing");
    fix_fini(&f);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    test_ways();
    test_again();
    test_fixtures();
    test_keys();
    test_made_up();
    test_too_much();
    test_memory();
    scratch_clean(dir);
    rmdir(dir);
    return done_testing();
}
