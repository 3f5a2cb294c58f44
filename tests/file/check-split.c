/* SPDX-License-Identifier: MIT */
/* check-split.c - split sets: names, sizes, membership, plans, writing,
 * merging */
#include "config.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include "gguf/split.h"
#include "gguf/text.h"
#include "gguf/writer.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/check-split-XXXXXX";

static const char *in_dir(const char *name)
{
    return scratch_path(dir, name);
}

/* ---- names and sizes ---- */

static void test_names(void)
{
    char out[64];
    ok(gguf_split_name_format(out, sizeof out, "a/b", 2, 15, NULL) ==
               GGUF_OK &&
           !strcmp(out, "a/b-00002-of-00015.gguf"),
       "%s", out);
    ok(gguf_split_name_format(out, sizeof out, "a", 0, 1, NULL) ==
               GGUF_E_INVALID &&
           gguf_split_name_format(out, sizeof out, "a", 2, 1, NULL) ==
               GGUF_E_INVALID &&
           gguf_split_name_format(out, sizeof out, "a", 1, 65536, NULL) ==
               GGUF_E_INVALID,
       "numbers that no shard has");
    ok(gguf_split_name_format(out, 21, "a", 1, 1, NULL) == GGUF_E_LIMIT &&
           gguf_split_name_format(out, 22, "a", 1, 1, NULL) == GGUF_OK,
       "the name must fit");
    size_t n = 0;
    unsigned no = 0, count = 0;
    ok(gguf_split_name_parse("x-00003-of-00010.gguf", &n, &no, &count) == 1 &&
           n == 1 && no == 3 && count == 10,
       "a name is taken apart");
    ok(gguf_split_name_parse("-65535-of-65535.gguf", NULL, NULL, NULL) == 1,
       "an empty prefix, the last number");
    static const char *const bad[] = {
        "",
        ".gguf",
        "x.gguf",
        "x-00000-of-00010.gguf",
        "x-00011-of-00010.gguf",
        "x-00001-of-00000.gguf",
        "x-0001-of-00010.gguf",
        "x-00001-of-00010.GGUF",
        "x-00001-of-00010.gguf.tmp",
        "x-00001-OF-00010.gguf",
        "x-0000a-of-00010.gguf",
        "x00001-of-00010.gguf",
        "x-00001-of-99999.gguf",
        "x-+0001-of-00010.gguf",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(!gguf_split_name_parse(bad[i], &n, &no, &count), "not '%s'",
           bad[i]);
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        { "0", 0 },
        { "1", 1 },
        { "12B", 12 },
        { "1k", 1000 },
        { "1KiB", 1024 },
        { "1.5G", 1500000000 },
        { "1.5gi", UINT64_C(3) << 29 },
        { ".5M", 500000 },
        { "3.M", 3000000 },
        { "0.1Ki", 102 },
        { "2tb", UINT64_C(2000000000000) },
        { "1.9999999999999T", UINT64_C(1999999999999) },
        { "1.123456789G", 1123456789 },
        { "0.000000001T", 1000 },
        { "0.00000000000090949470177292823791503906250Ti", 1 },
        { "0.00000000000090949470177292823791503906249Ti", 0 },
        { "9223372036854775807", INT64_MAX },
        { "8388607.9999999Ti", UINT64_C(9223372036854665856) },
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t v = 77;
        enum gguf_status st = gguf_size_parse(good[i].text, &v, NULL);
        ok(st == GGUF_OK && v == good[i].bytes, "%s is %llu", good[i].text,
           (unsigned long long)v);
    }
    static const char *const bad[] = { "",   "k",   ".",    ".k",
                                       "1x", "1bk", "1kk",  "1 k",
                                       "-1", "1e3", "0x10", "1kibb" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t v;
        ok(gguf_size_parse(bad[i], &v, NULL) == GGUF_E_INVALID, "not '%s'",
           bad[i]);
    }
    uint64_t v;
    ok(gguf_size_parse("9223372036854775808", &v, NULL) == GGUF_E_OVERFLOW &&
           gguf_size_parse("8388608Ti", &v, NULL) == GGUF_E_OVERFLOW &&
           gguf_size_parse("99999999999999999999999", &v, NULL) ==
               GGUF_E_OVERFLOW,
       "sizes that are too large");
}

/* ---- sets ---- */

/* A shard: its keys, and one tensor. */
struct shard {
    const char *file;
    unsigned no, count;
    int total;
    const char *tensor;  /* NULL: no tensor */
    const char *name;    /* general.name; NULL: no key */
    unsigned count_type; /* 0: the right type */
    unsigned align;      /* 0: no key */
    unsigned cut;        /* bytes to cut off the end */
};

static void write_shard(const struct shard *s)
{
    struct fix f;
    fix_init(&f);
    fix_head(&f, 3, s->tensor != NULL,
             3 + (s->name != NULL) + (s->align != 0));
    if (s->name)
        fix_kv_str(&f, "general.name", s->name);
    if (s->align)
        fix_kv_u32(&f, "general.alignment", s->align);
    fix_key(&f, "split.no", GGUF_VAL_U16);
    fix_u16(&f, s->no);
    fix_key(&f, "split.count", s->count_type ? s->count_type : GGUF_VAL_U16);
    if (s->count_type == GGUF_VAL_U32)
        fix_u32(&f, s->count);
    else
        fix_u16(&f, s->count);
    fix_key(&f, "split.tensors.count", GGUF_VAL_I32);
    fix_u32(&f, (uint32_t)s->total);
    if (s->tensor)
        fix_info(&f, s->tensor, FIX_NE(40), GGUF_DTYPE_F32, 0);
    fix_pad(&f, s->align ? s->align : 32);
    if (s->tensor)
        fix_fill(&f, s->no + 1, 160);
    fix_pad(&f, s->align ? s->align : 32);
    FILE *out = fopen(in_dir(s->file), "wb");
    if (!out || fwrite(f.data, 1, f.size - s->cut, out) != f.size - s->cut ||
        fclose(out))
        exit(99);
    fix_fini(&f);
}

static const struct shard sound[3] = {
    { "m-00001-of-00003.gguf", 0, 3, 3, "a", "model", 0, 0, 0 },
    { "m-00002-of-00003.gguf", 1, 3, 3, "b", NULL, 0, 0, 0 },
    { "m-00003-of-00003.gguf", 2, 3, 3, "c", NULL, 0, 0, 0 },
};

static void write_sound(void)
{
    scratch_clean(dir);
    for (int i = 0; i < 3; i++)
        write_shard(&sound[i]);
}

/* Check that the set with this second shard, and the others sound, is refused.
 */
static void check_refused(const char *what, struct shard second,
                          enum gguf_status want, const char *says)
{
    struct gguf_file *s;
    struct gguf_error err;
    static const char *const from[] = { "m-00001-of-00003.gguf",
                                        "m-00003-of-00003.gguf", "m", "" };
    write_sound();
    write_shard(&second);
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        gguf_error_clear(&err);
        enum gguf_status st = gguf_file_open(&s, in_dir(from[i]), NULL, &err);
        ok(st == want && !s && err.status == st && strstr(err.message, says) &&
               strstr(err.message, "'m-00002-of-00003.gguf'"),
           "%s, from '%s': %s", what, from[i], err.message);
        gguf_file_close(s);
    }
}

/* Write two shards with a key of n bytes, with values of their own. */
static void write_keyed(size_t n, unsigned first, unsigned second)
{
    char *key = malloc(n + 1);
    memset(key, 'k', n);
    key[n] = '\0';
    scratch_clean(dir);
    for (unsigned no = 0; no < 2; no++) {
        struct fix f;
        const unsigned v = no ? second : first;
        fix_init(&f);
        fix_head(&f, 3, 0, 3 + (v != 0));
        fix_key(&f, "split.no", GGUF_VAL_U16);
        fix_u16(&f, no);
        fix_key(&f, "split.count", GGUF_VAL_U16);
        fix_u16(&f, 2);
        fix_key(&f, "split.tensors.count", GGUF_VAL_I32);
        fix_u32(&f, 0);
        if (v)
            fix_kv_u32(&f, key, v);
        fix_pad(&f, 32);
        if (!spill(
                in_dir(no ? "k-00002-of-00002.gguf" : "k-00001-of-00002.gguf"),
                f.data, f.size))
            exit(99);
        fix_fini(&f);
    }
    free(key);
}

/* A later shard may repeat a key of any length. */
static void test_long_keys(void)
{
    static const size_t sizes[] = { 1, 255, 256, 257, 65535 };
    struct gguf_file *s;
    struct gguf_error err;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        gguf_error_clear(&err);
        write_keyed(sizes[i], 1, 1);
        ok(gguf_file_open(&s, in_dir("k"), NULL, &err) == GGUF_OK,
           "a key of %zu bytes in both shards: %s", sizes[i], err.message);
        gguf_file_close(s);
        write_keyed(sizes[i], 1, 2);
        ok(gguf_file_open(&s, in_dir("k"), NULL, &err) == GGUF_E_MISMATCH &&
               strstr(err.message, "has another value"),
           "of another value");
        write_keyed(sizes[i], 0, 1);
        ok(gguf_file_open(&s, in_dir("k"), NULL, &err) == GGUF_E_MISMATCH &&
               strstr(err.message, "is not in the first"),
           "in one");
    }
}

static void test_open(void)
{
    static const char *const from[] = { "m-00001-of-00003.gguf",
                                        "m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf", "m", "" };
    struct gguf_file *s;
    struct gguf_error err;
    gguf_error_clear(&err);
    write_sound();
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        int good = gguf_file_open(&s, in_dir(from[i]), NULL, &err) == GGUF_OK;
        ok(good && gguf_file_n_shards(s) == 3 && gguf_file_is_split(s) &&
               gguf_file_n_tensors(s) == 3,
           "opened from '%s' %s", from[i], err.message);
        const struct gguf_tensor_info *t =
            good ? gguf_file_tensor_find(s, "c") : NULL;
        ok(t && t == gguf_file_tensor(s, 2) && t->index == 2 &&
               t->shard == 2 &&
               *(const char *)gguf_file_tensor_data(s, 2) == 3,
           "a tensor of the last file");
        ok(good && !gguf_file_tensor_find(s, "d") && !gguf_file_tensor(s, 3) &&
               !gguf_file_shard(s, 3) && !gguf_file_tensor_data(s, 3),
           "missing tensors");
        gguf_file_close(s);
    }
    gguf_file_close(NULL);
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    p.single_file = true;
    ok(gguf_file_open(&s, in_dir(from[1]), &p, NULL) == GGUF_OK &&
           gguf_file_n_shards(s) == 1 && gguf_file_shard(s, 0) == s &&
           !gguf_file_shard(s, 1) && gguf_file_n_tensors(s) == 1 &&
           gguf_file_is_split(s),
       "a shard alone");
    gguf_file_close(s);
    ok(gguf_file_open(&s, in_dir("m"), &p, NULL) == GGUF_E_IO,
       "a prefix is not a file");
    ok(gguf_file_open(&s, in_dir("x"), NULL, NULL) == GGUF_E_NOTFOUND,
       "no such prefix");
    ok(gguf_file_open(&s, in_dir("no/x"), NULL, NULL) == GGUF_E_IO,
       "no such folder");
    unlink(in_dir("m-00001-of-00003.gguf"));
    unlink(in_dir("m-00003-of-00003.gguf"));
    ok(gguf_file_open(&s, in_dir("m-00002-of-00003.gguf"), NULL, &err) ==
               GGUF_E_NOTFOUND &&
           strstr(err.message, "missing: 1, 3"),
       "%s", err.message);
    for (unsigned i = 1; i <= 200; i++) {
        /* every third of the first 150 exists, then all to 200 */
        char name[32];
        snprintf(name, sizeof name, "w-%05u-of-03000.gguf", i);
        struct shard x = { name, i - 1, 3000, 0, NULL, NULL, 0, 0, 0 };
        if (i % 3 == 0 || i > 150)
            write_shard(&x);
    }
    ok(gguf_file_open(&s, in_dir("w"), NULL, &err) == GGUF_E_NOTFOUND &&
           strstr(err.message, "2900 of 3000 shards of 'w' are missing: 1-2, "
                               "4-5, 7-8, ") &&
           strstr(err.message, " ..."),
       "%s", err.message);
    write_sound();
    struct shard other = sound[0];
    other.file = "n-00001-of-00003.gguf";
    write_shard(&other);
    ok(gguf_file_open(&s, dir, NULL, &err) == GGUF_E_DUPLICATE, "%s",
       err.message);
    ok(gguf_file_open(&s, in_dir("m"), NULL, NULL) == GGUF_OK,
       "the prefix tells two sets apart");
    gguf_file_close(s);
}

static void test_refuse(void)
{
    struct shard x = sound[1];
    x.no = 2;
    check_refused("another number", x, GGUF_E_MISMATCH, "split.no is 2");
    x = sound[1], x.count = 4;
    check_refused("another count", x, GGUF_E_MISMATCH, "split.count is 4");
    x = sound[1], x.total = 4;
    check_refused("another total", x, GGUF_E_MISMATCH, "tensors.count is 4");
    x = sound[1], x.total = -1;
    check_refused("a negative total", x, GGUF_E_MISMATCH,
                  "tensors.count is -1");
    x = sound[1], x.count_type = GGUF_VAL_U32;
    check_refused("another type", x, GGUF_E_TYPE, "split.count");
    x = sound[1], x.align = 64;
    check_refused("another alignment", x, GGUF_E_MISMATCH, "alignment is 64");
    x = sound[1], x.name = "other";
    check_refused("another model", x, GGUF_E_MISMATCH, "another value");
    x = sound[1], x.tensor = "a";
    check_refused("a tensor twice", x, GGUF_E_DUPLICATE,
                  "'a' is in shard 1 too");
    x = sound[1], x.cut = 60;
    check_refused("a truncated file", x, GGUF_E_TRUNCATED, "byte");
    x = sound[1], x.cut = 300;
    check_refused("a truncated header", x, GGUF_E_TRUNCATED, "byte");
}

/* Totals that agree with every shard but not with the tensors. */
static void test_total(void)
{
    struct gguf_file *s;
    struct gguf_error err;
    scratch_clean(dir);
    for (int i = 0; i < 3; i++) {
        struct shard x = sound[i];
        x.total = 4;
        write_shard(&x);
    }
    ok(gguf_file_open(&s, dir, NULL, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "the shards have 3 tensors"),
       "%s", err.message);
}

/* A file under the name of a shard whose keys say that it is a whole model. */
static void test_alone(void)
{
    struct gguf_file *s;
    struct gguf_error err;
    for (unsigned count = 0; count < 2; count++) {
        struct shard x = sound[0];
        char says[64];
        scratch_clean(dir);
        x.count = count;
        x.total = 1;
        write_shard(&x);
        snprintf(says, sizeof says,
                 "named as shard 1 of 3, but split.count is %u", count);
        ok(gguf_file_open(&s, in_dir(x.file), NULL, &err) == GGUF_E_MISMATCH &&
               !s && strstr(err.message, says) && err.offset < 400,
           "%s", err.message);
        x.file = "m-00001-of-00001.gguf";
        write_shard(&x);
        ok(gguf_file_open(&s, in_dir(x.file), NULL, &err) == GGUF_OK,
           "under its own name it opens");
        gguf_file_close(s);
    }
}

/* ---- plans, writing, merging ---- */

static uint64_t file_size(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 ? (uint64_t)sb.st_size : 0;
}

static void test_plan(void)
{
    struct gguf_file *s;
    struct gguf_split_plan *plan;
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_error err;
    write_sound();
    if (gguf_file_open(&s, dir, NULL, &err) != GGUF_OK)
        exit(99);
    ok(gguf_split_plan_create(&plan, s, &p, NULL) == GGUF_E_INVALID && !plan,
       "a plan needs a limit");
    p.max_tensors = 2;
    ok(gguf_split_plan_create(&plan, s, &p, NULL) == GGUF_OK &&
           gguf_split_plan_n_shards(plan) == 2 &&
           gguf_split_plan_shard(plan, 0)->n_tensors == 2 &&
           gguf_split_plan_shard(plan, 1)->first_tensor == 2 &&
           !gguf_split_plan_shard(plan, 2),
       "by number");
    ok(gguf_split_plan_write(plan, in_dir("out"), NULL, &err) == GGUF_OK &&
           file_size(in_dir("out-00001-of-00002.gguf")) ==
               gguf_split_plan_shard(plan, 0)->file_size &&
           file_size(in_dir("out-00002-of-00002.gguf")) ==
               gguf_split_plan_shard(plan, 1)->file_size,
       "files have the sizes of the plan");
    ok(gguf_split_plan_write(plan, in_dir("out"), NULL, NULL) == GGUF_E_EXIST,
       "nothing is overwritten");
    ok(gguf_split_plan_write(plan, in_dir("no/out"), NULL, NULL) == GGUF_E_IO,
       "a folder that is not there");
    uint64_t first = gguf_split_plan_shard(plan, 0)->file_size;
    gguf_split_plan_destroy(plan);
    p.max_tensors = 0;
    p.max_size = first;
    ok(gguf_split_plan_create(&plan, s, &p, NULL) == GGUF_OK &&
           gguf_split_plan_n_shards(plan) == 2,
       "by size, exactly");
    gguf_split_plan_destroy(plan);
    p.max_size = first - 1;
    ok(gguf_split_plan_create(&plan, s, &p, NULL) == GGUF_OK &&
           gguf_split_plan_shard(plan, 0)->n_tensors == 1,
       "one byte less: one tensor less");
    gguf_split_plan_destroy(plan);
    p.max_size = 100;
    ok(gguf_split_plan_create(&plan, s, &p, NULL) == GGUF_E_LIMIT && !plan,
       "nothing fits");
    gguf_split_plan_destroy(NULL);
    gguf_file_close(s);
}

static bool stop_at_second(void *user, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    return ++*(int *)user > 3;
}

static void test_cancel(void)
{
    struct gguf_file *s;
    struct gguf_split_plan *plan;
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    int calls = 0;
    write_sound();
    p.max_tensors = 1;
    job.progress.fn = stop_at_second;
    job.progress.user = &calls;
    if (gguf_file_open(&s, dir, NULL, NULL) != GGUF_OK ||
        gguf_split_plan_create(&plan, s, &p, NULL) != GGUF_OK)
        exit(99);
    ok(gguf_split_plan_write(plan, in_dir("out"), &job, NULL) ==
               GGUF_E_CANCELLED &&
           access(in_dir("out-00001-of-00003.gguf"), F_OK) != 0 &&
           access(in_dir("out-00002-of-00003.gguf"), F_OK) != 0,
       "a cancelled split leaves nothing");
    calls = 0;
    ok(gguf_split_merge(s, in_dir("all.gguf"), &job, NULL) ==
               GGUF_E_CANCELLED &&
           access(in_dir("all.gguf"), F_OK) != 0,
       "a cancelled merge leaves nothing");
    gguf_split_plan_destroy(plan);
    gguf_file_close(s);
}

/* Open, plan, write and merge with an allocator. */
static enum gguf_status whole_way(const struct gguf_allocator *a)
{
    struct gguf_file *s = NULL;
    struct gguf_split_plan *plan = NULL;
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_error err;
    fp.allocator = a;
    p.max_tensors = 2;
    job.force = job.no_sync = true;
    gguf_error_clear(&err);
    enum gguf_status st = gguf_file_open(&s, in_dir("m"), &fp, &err);
    if (st == GGUF_OK)
        st = gguf_split_plan_create(&plan, s, &p, &err);
    if (st == GGUF_OK)
        st = gguf_split_plan_write(plan, in_dir("out"), &job, &err);
    if (st == GGUF_OK)
        st = gguf_split_merge(s, in_dir("all.gguf"), &job, &err);
    gguf_split_plan_destroy(plan);
    gguf_file_close(s);
    return st;
}

/* Number of files in the folder whose names begin like this. */
static unsigned n_files(const char *begin)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
             !strncmp(e->d_name, begin, strlen(begin));
    if (d)
        closedir(d);
    return n;
}

static void test_memory(void)
{
    struct failalloc fa;
    int leaks = 0, wrong = 0, left = 0;
    unsigned n = 0;
    for (;; n++) {
        write_sound();
        enum gguf_status st = whole_way(failalloc_init(&fa, n));
        leaks += fa.live != 0;
        /* all shards or none, and no incomplete file */
        unsigned out = n_files("out-"), all = n_files("all.gguf");
        left += (out && out != 2) || (all && !out) ||
                n_files("") != 3 + out + all || (all && st != GGUF_OK);
        if (fa.calls <= n) {
            wrong += st != GGUF_OK;
            break;
        }
        wrong += st != GGUF_E_NOMEM;
    }
    ok(leaks == 0, "no block is lost, whichever of %u fails", n);
    ok(left == 0, "no file is left that is not complete");
    ok(wrong == 0, "each failure is GGUF_E_NOMEM");
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    test_names();
    test_sizes();
    test_open();
    test_long_keys();
    test_refuse();
    test_total();
    test_alone();
    test_plan();
    test_cancel();
    test_memory();
    scratch_clean(dir);
    rmdir(dir);
    return done_testing();
}
