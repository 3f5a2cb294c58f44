/* SPDX-License-Identifier: MIT */
/* check-imatrix.c - importance data: both forms of files agree with
 * llama-imatrix's; adding up, weights for encoders, and malformed files */
#include "config.h"
#include "base/compiler.h"
#include "base/bytes.h"
#include "imatrix/imatrix_int.h"
#include "tests/imatrix/sample.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

static char dir[3000];

static const char *in_dir(const char *name)
{
    static char path[4][4000];
    static unsigned n;
    char *p = path[n++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

/* Read at most size bytes of a file to p. */
static size_t read_into(const char *path, uint8_t *p, size_t size)
{
    size_t n;
    void *all = slurp(path, &n);
    if (n > size)
        n = size;
    memcpy(p, all ? all : p, n);
    free(all);
    return n;
}

/* A file that is read and written again is equal. Converting the newer form to
 * the older gives the file that llama-imatrix wrote for the same data. */
static void check_forms(const char *model, const char *gguf, const char *dat)
{
    const char *out = in_dir("out");
    struct gguf_imatrix *a = NULL, *b = NULL;
    struct gguf_error err;
    gguf_error_clear(&err);
    ok(gguf_imatrix_load(&a, gguf, NULL, &err) == GGUF_OK &&
           gguf_imatrix_n_entries(a) > 10 && gguf_imatrix_dataset(a, 0) &&
           gguf_imatrix_n_chunks(a),
       "%s, GGUF: read %s", model, err.message);
    ok(gguf_imatrix_load(&b, dat, NULL, &err) == GGUF_OK &&
           gguf_imatrix_n_entries(b) == gguf_imatrix_n_entries(a) &&
           gguf_imatrix_n_chunks(b) == gguf_imatrix_n_chunks(a),
       "%s, older form: read %s", model, err.message);
    ok(gguf_imatrix_save(a, out, GGUF_IMATRIX_GGUF, 1, &err) == GGUF_OK &&
           same_files(out, gguf),
       "%s, GGUF: written as it was %s", model, err.message);
    ok(gguf_imatrix_save(b, out, GGUF_IMATRIX_DAT, 1, &err) == GGUF_OK &&
           same_files(out, dat),
       "%s, older form: written as it was %s", model, err.message);
    ok(gguf_imatrix_save(a, out, GGUF_IMATRIX_DAT, 1, &err) == GGUF_OK &&
           same_files(out, dat),
       "%s: GGUF made older %s", model, err.message);
    ok(gguf_imatrix_save(b, out, GGUF_IMATRIX_GGUF, 0, &err) == GGUF_E_EXIST,
       "%s: an existing file is kept", model);
    gguf_imatrix_destroy(a);
    gguf_imatrix_destroy(b);
    remove(out);
}

/* Data made by the tests, and llama-imatrix's if they are on this machine. */
static void check_golden(const char *model)
{
    char name[256], gguf[4096], dat[4096];
    snprintf(name, sizeof name, "golden/files/imatrix/imat-%s.gguf", model);
    const char *path = shared_path(name);
    if (!path)
        return;
    snprintf(gguf, sizeof gguf, "%s", path);
    snprintf(name, sizeof name, "golden/files/imatrix/imat-%s.dat", model);
    path = shared_path(name);
    snprintf(dat, sizeof dat, "%s", path ? path : "");
    check_forms(model, gguf, dat);
}

static bool is_near(const struct gguf_imatrix *im, const char *name, size_t i,
                    float want)
{
    float w[64];
    const struct gg_imatrix_entry *e = gg_imatrix_find(im, name);
    if (!e)
        return false;
    gg_imatrix_weights(e, 0, (size_t)e->n_values, w);
    return fabsf(w[i] - want) <= 1e-6f * want;
}

static void check_sums(void)
{
    static const float s1[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, c1[2] = { 2, 0 },
                       s2[8] = { 3, 2, 1, 0, 8, 8, 8, 8 }, c2[2] = { 2, 4 };
    struct gguf_imatrix *a, *b, *c = NULL;
    struct gguf_error err;
    if (gguf_imatrix_create(&a, NULL, NULL) != GGUF_OK ||
        gguf_imatrix_create(&b, NULL, NULL) != GGUF_OK)
        return;
    ok(gguf_imatrix_add(a, "b", 4, 2, s1, c1, NULL) == GGUF_OK &&
           gguf_imatrix_add(a, "a", 4, 2, s1, c1, NULL) == GGUF_OK &&
           gguf_imatrix_add(b, "b", 4, 2, s2, c2, NULL) == GGUF_OK &&
           gguf_imatrix_add(b, "c", 8, 1, s2, c2, NULL) == GGUF_OK &&
           gguf_imatrix_add_chunks(a, "x.txt", 3, 512, NULL) == GGUF_OK &&
           gguf_imatrix_add_chunks(b, "y.txt", 4, 512, NULL) == GGUF_OK,
       "data are added");
    ok(is_near(a, "b", 1, 1) && is_near(a, "b", 6, 1),
       "sum by count; 1 for an expert that saw nothing");
    ok(gguf_imatrix_merge(a, b, NULL) == GGUF_OK &&
           gguf_imatrix_n_entries(a) == 3 && gguf_imatrix_n_chunks(a) == 7 &&
           !strcmp(gguf_imatrix_dataset(a, 1), "y.txt"),
       "merged");
    ok(is_near(a, "b", 0, 1) && is_near(a, "b", 4, 13 / 4.0f) &&
           is_near(a, "a", 1, 1) && is_near(a, "c", 0, 1.5f),
       "sums and counts are added");
    ok(gguf_imatrix_add(a, "b", 8, 1, s1, c1, &err) == GGUF_E_MISMATCH,
       "another shape: %s", err.message);
    const char *dat = in_dir("m.dat");
    ok(gguf_imatrix_save(a, dat, GGUF_IMATRIX_DAT, 0, &err) == GGUF_OK &&
           gguf_imatrix_load(&c, dat, NULL, &err) == GGUF_OK &&
           is_near(c, "c", 0, 1.5f),
       "through the older form");
    ok(gguf_imatrix_merge(c, b, &err) == GGUF_OK && is_near(c, "c", 0, 1.5f) &&
           is_near(c, "b", 4, (13 / 4.0f * 512 + 8) / (512 + 4)),
       "the older form counts calls of a chunk each");
    gguf_imatrix_destroy(c);
    remove(dat);
    static const char *const drop[] = { "x", "b" };
    gguf_imatrix_filter(a, drop, 2, 0);
    ok(gguf_imatrix_n_entries(a) == 2 && !gg_imatrix_find(a, "b"), "filtered");
    gguf_imatrix_filter(a, drop, 2, 1);
    ok(gguf_imatrix_n_entries(a) == 0, "to nothing");
    gguf_imatrix_destroy(a);
    gguf_imatrix_destroy(b);
}

/* Adding files of both forms gives the same result in any order. A call counts
 * as a chunk with the number of tokens of the others' chunks; experts come
 * from the form that knows them. Entry "t" has 2 matrices; "u" is in the older
 * form only. */
static void check_orders(void)
{
    static const float s1[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, c1[2] = { 30, 10 };
    static const uint8_t order[][3] = { { 0, 0, 1 },
                                        { 0, 1, 0 },
                                        { 1, 0, 0 } };
    const char *dat = in_dir("a.dat"), *out = in_dir("b.gguf");
    struct gguf_imatrix *old, *new, *sum, *back;
    struct gguf_error err;
    bool made =
        gguf_imatrix_create(&new, NULL, NULL) == GGUF_OK &&
        gguf_imatrix_add(new, "t", 4, 2, s1, c1, NULL) == GGUF_OK &&
        gguf_imatrix_add_chunks(new, "x", 3, 10, NULL) == GGUF_OK &&
        gguf_imatrix_create(&sum, NULL, NULL) == GGUF_OK &&
        gguf_imatrix_add(sum, "t", 8, 1, s1, c1, NULL) == GGUF_OK &&
        gguf_imatrix_add(sum, "u", 8, 1, s1, c1, NULL) == GGUF_OK &&
        gguf_imatrix_add_chunks(sum, "y", 3, 10, NULL) == GGUF_OK &&
        gguf_imatrix_save(sum, dat, GGUF_IMATRIX_DAT, 0, &err) == GGUF_OK &&
        gguf_imatrix_load(&old, dat, NULL, &err) == GGUF_OK;
    if (!made)
        abort();
    gguf_imatrix_destroy(sum);
    for (size_t i = 0; i < GG_LEN(order); i++) {
        struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
        float t[2] = { 0 }, u = 0;
        gguf_error_clear(&err);
        bool good = gguf_imatrix_create(&sum, NULL, NULL) == GGUF_OK;
        for (int k = 0; good && k < 3; k++)
            good = gguf_imatrix_merge(sum, order[i][k] ? new : old, &err) ==
                   GGUF_OK;
        good = good && !gguf_imatrix_entry(sum, 0, &e, NULL) &&
               e.n_mats == 2 &&
               gguf_imatrix_save(sum, out, GGUF_IMATRIX_GGUF, 1, &err) ==
                   GGUF_OK &&
               gguf_imatrix_load(&back, out, NULL, &err) == GGUF_OK;
        if (good) {
            good = gguf_imatrix_counts(back, 0, 0, 2, t, NULL) == GGUF_OK &&
                   gguf_imatrix_counts(back, 1, 0, 1, &u, NULL) == GGUF_OK &&
                   is_near(back, "u", 7, 8 / 30.0f) &&
                   is_near(back, "t", 0, (1 / 30.0f * 60 + 1) / 90) &&
                   is_near(back, "t", 7, (8 / 30.0f * 60 + 8) / 70);
            gguf_imatrix_destroy(back);
        }
        /* two files with 3 calls are 60 tokens */
        ok(good && t[0] == 90 && t[1] == 70 && u == 60,
           "order %zu: counts %g, %g and %g %s", i, (double)t[0], (double)t[1],
           (double)u, err.message);
        gguf_imatrix_destroy(sum);
    }
    gguf_imatrix_destroy(old);
    gguf_imatrix_destroy(new);
    remove(dat);
    remove(out);
}

static void check_mending(void)
{
    static const struct {
        float sums[4], want[4];
        uint64_t n;
    } cases[] = {
        { { 1, 2, 3, 0 }, { 1, 2, 3, 0 }, 0 },
        { { 1, NAN, 3, 2 }, { 1, 2, 3, 2 }, 1 },
        { { 1, INFINITY, -3, 2 }, { 1, 1.5f, 1.5f, 2 }, 2 },
        { { 0, 0, 0, 0 }, { 1, 1, 1, 1 }, 4 },
        { { NAN, 0, -1, 0 }, { 1, 1, 1, 1 }, 4 },
        { { NAN, NAN, NAN, NAN }, { 1, 1, 1, 1 }, 4 },
    };
    static const float one = 1;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_imatrix *im;
        float w[4];
        if (gguf_imatrix_create(&im, NULL, NULL) != GGUF_OK ||
            gguf_imatrix_add(im, "t", 4, 1, cases[i].sums, &one, NULL) !=
                GGUF_OK)
            return;
        uint64_t n = gg_imatrix_weights(gg_imatrix_find(im, "t"), 0, 4, w);
        ok(n == cases[i].n && !memcmp(w, cases[i].want, sizeof w),
           "weights %g %g %g %g, %d replaced", w[0], w[1], w[2], w[3], (int)n);
        gguf_imatrix_destroy(im);
    }
}

/* ------------------------------------------------ data that cannot be --- */

/* Replace the only occurrence of the bytes from by to. */
static void patch_file(uint8_t *b, size_t n, const char *from, const char *to,
                       size_t size)
{
    for (size_t i = 0; i + size <= n; i++)
        if (!memcmp(b + i, from, size)) {
            memcpy(b + i, to, size);
            return;
        }
    abort();
}

/* Write two tensors with these four sums and this count (calls in the older
 * form). Returns the bytes at b. The library refuses data without a count, so
 * the count is written over a valid one. */
static size_t save_one(const char *path, const float *sums, float count,
                       enum gguf_imatrix_form format, uint8_t *b, size_t size)
{
    static const float good[4] = { 1, 2, 3, 4 }, one = 1;
    struct gguf_imatrix *im;
    if (gguf_imatrix_create(&im, NULL, NULL) ||
        gguf_imatrix_add(im, "a", 4, 1, good, &one, NULL) ||
        gguf_imatrix_add(im, "t", 4, 1, sums, &one, NULL) ||
        gguf_imatrix_add_chunks(im, "x.txt", 3, 512, NULL) ||
        gguf_imatrix_save(im, path, format, 1, NULL))
        abort();
    gguf_imatrix_destroy(im);
    size_t n = read_into(path, b, size);
    uint8_t calls[] = { 't', (uint8_t)count, 0, 0, 0 };
    if (format == GGUF_IMATRIX_GGUF) /* the last tensor, with its padding */
        gg_bytes_store32le(b + n - 32, gg_bytes_f32_bits(count));
    else
        patch_file(b, n, "t\1\0\0\0", (char *)calls, sizeof calls);
    if (!spill(path, b, n))
        abort();
    return n;
}

static void check_values(void)
{
    static const struct {
        float sums[4], count;
        enum gguf_imatrix_form format;
        enum gguf_status status;
        const char *says;
    } cases[] = {
        { { 1, 0, 3, -0.0f }, 2, GGUF_IMATRIX_GGUF, GGUF_OK, "" },
        { { 0, 0, 0, 0 }, 2, GGUF_IMATRIX_GGUF, GGUF_OK, "" },
        { { 1, NAN, 3, 4 }, 2, GGUF_IMATRIX_GGUF, GGUF_OK, "" },
        { { 1, 2, 3, INFINITY }, 2, GGUF_IMATRIX_DAT, GGUF_OK, "" },
        { { NAN, NAN, NAN, NAN },
          2,
          GGUF_IMATRIX_GGUF,
          GGUF_E_NONFINITE,
          "'t.in_sum2': none of 4 sums is a number" },
        { { NAN, NAN, NAN, NAN },
          2,
          GGUF_IMATRIX_DAT,
          GGUF_E_NONFINITE,
          "'t': none of 4 values is a number" },
        { { NAN, NAN, NAN, -1 },
          2,
          GGUF_IMATRIX_GGUF,
          GGUF_E_FORMAT,
          "sum 3 is -1" },
        { { 1, 2, -3, 4 },
          2,
          GGUF_IMATRIX_GGUF,
          GGUF_E_FORMAT,
          "sum 2 is -3" },
        { { 1, 2, 3, 4 },
          -1,
          GGUF_IMATRIX_GGUF,
          GGUF_E_FORMAT,
          "'t.counts': count 0 is -1" },
        { { 1, 2, 3, 4 },
          NAN,
          GGUF_IMATRIX_GGUF,
          GGUF_E_NONFINITE,
          "count 0 is " },
        { { 1, 2, 3, 4 },
          0,
          GGUF_IMATRIX_GGUF,
          GGUF_E_FORMAT,
          "'t.counts': all counts are 0" },
        { { 1, 2, 3, 4 }, 1, GGUF_IMATRIX_DAT, GGUF_OK, "" },
        { { 1, 2, 3, 4 },
          0,
          GGUF_IMATRIX_DAT,
          GGUF_E_FORMAT,
          "'t' has 0 calls: nothing was counted" },
        { { 1, 2, -3, 4 },
          1,
          GGUF_IMATRIX_DAT,
          GGUF_E_FORMAT,
          "'t': value 2 is -" },
    };
    static uint8_t b[4096];
    const char *path = in_dir("values");
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_imatrix *im;
        struct gguf_error err;
        gguf_error_clear(&err);
        save_one(path, cases[i].sums, cases[i].count, cases[i].format, b,
                 sizeof b);
        enum gguf_status st = gguf_imatrix_load(&im, path, NULL, &err);
        ok(st == cases[i].status && strstr(err.message, cases[i].says) &&
               (st == GGUF_OK || err.offset < 4096),
           "data %zu: %s", i, err.message);
        gguf_imatrix_destroy(im);
    }
    remove(path);
}

/* Loading, adding and saving follow one rule: tensors without counts are
 * refused, so that every saved file can be read. */
static void check_uncounted(void)
{
    static const float sums[4] = { 1, 2, 3, 4 };
    static const struct {
        float counts[2];
        enum gguf_status status;
    } cases[] = {
        { { 0, 0 }, GGUF_E_INVALID },   { { 1, -1 }, GGUF_E_INVALID },
        { { NAN, 1 }, GGUF_E_INVALID }, { { 1, INFINITY }, GGUF_E_INVALID },
        { { 0, 1 }, GGUF_OK },          { { 0, 0x1p60f }, GGUF_OK },
        { { 0, 0x1p-9f }, GGUF_OK },
    };
    const char *path = in_dir("counted");
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_imatrix *im, *back;
        struct gguf_error err;
        gguf_error_clear(&err);
        if (gguf_imatrix_create(&im, NULL, NULL))
            abort();
        enum gguf_status st =
            gguf_imatrix_add(im, "t", 2, 2, sums, cases[i].counts, &err);
        bool good = st == cases[i].status;
        for (int form = 0; form < 2 && st == GGUF_OK; form++) {
            good &= gguf_imatrix_save(
                        im, path, form ? GGUF_IMATRIX_DAT : GGUF_IMATRIX_GGUF,
                        1, &err) == GGUF_OK &&
                    gguf_imatrix_load(&back, path, NULL, &err) == GGUF_OK &&
                    is_near(back, "t", 0, 1) &&
                    is_near(back, "t", 3, 4 / cases[i].counts[1]);
            gguf_imatrix_destroy(back);
        }
        ok(good && (st == GGUF_OK || strstr(err.message, "one must be above")),
           "counts %g, %g: %s", (double)cases[i].counts[0],
           (double)cases[i].counts[1], err.message);
        gguf_imatrix_destroy(im);
    }
    remove(path);
}

static void check_keys(void)
{
    static const float sums[4] = { 1, 2, 3, 4 };
    static const struct {
        const char *from, *to;
        size_t size;
        enum gguf_status status;
        const char *says;
    } cases[] = {
        { "chunk_count\4", "chunk_count\6", 12, GGUF_E_TYPE,
          "'imatrix.chunk_count' is f32" },
        { "chunk_size\4", "chunk_size\6", 11, GGUF_E_TYPE,
          "'imatrix.chunk_size' is f32" },
        { "chunk_size\4", "chunk_sizE\4", 11, GGUF_OK, "" },
        { "t.in_sum2", "t.in_sum3", 9, GGUF_E_MISMATCH,
          "'t.counts' has no sums" },
        { "t.counts", "t.countS", 8, GGUF_E_MISMATCH,
          "'t.in_sum2' has no counts" },
    };
    static uint8_t b[4096];
    const char *path = in_dir("keys");
    struct gguf_imatrix *im;
    struct gguf_error err;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        size_t n = save_one(path, sums, 1, GGUF_IMATRIX_GGUF, b, sizeof b);
        patch_file(b, n, cases[i].from, cases[i].to, cases[i].size);
        if (!spill(path, b, n))
            abort();
        gguf_error_clear(&err);
        ok(gguf_imatrix_load(&im, path, NULL, &err) == cases[i].status &&
               strstr(err.message, cases[i].says),
           "key %zu: %s", i, err.message);
        gguf_imatrix_destroy(im);
    }
    if (gguf_imatrix_create(&im, NULL, NULL) ||
        gguf_imatrix_save(im, path, GGUF_IMATRIX_GGUF, 1, NULL))
        abort();
    gguf_imatrix_destroy(im);
    ok(gguf_imatrix_load(&im, path, NULL, &err) == GGUF_E_NOTFOUND,
       "no entries: %s", err.message);
    remove(path);
}

/* A truncated file, and one with a changed byte near its start, is refused or
 * read. */
static void check_broken(const char *name)
{
    static uint8_t b[1 << 20];
    const char *bad = in_dir("bad");
    struct gguf_imatrix *im;
    struct gguf_error err;
    size_t n = read_into(in_dir(name), b, sizeof b);
    int wrong = 0, refused = 0;
    for (size_t k = 0; k < 300; k++) {
        size_t cut = k < 200 ? k : (size_t)rnd_below(n);
        FILE *f = fopen(bad, "wb");
        if (k & 1) { /* changed */
            size_t at = (size_t)rnd_below(GG_MIN(n, 2000));
            uint8_t old = b[at];
            b[at] = (uint8_t)rnd64();
            fwrite(b, 1, n, f);
            b[at] = old;
        } else {
            fwrite(b, 1, cut, f);
        }
        fclose(f);
        gguf_error_clear(&err);
        if (gguf_imatrix_load(&im, bad, NULL, &err) != GGUF_OK) {
            refused++;
            wrong += im != NULL || !err.message[0];
            continue;
        }
        for (size_t i = 0; i < gguf_imatrix_n_entries(im); i++) {
            float w[256];
            uint64_t all = im->entries[i]->n_values;
            gg_imatrix_weights(im->entries[i], 0,
                               (size_t)GG_MIN(all, GG_LEN(w)), w);
        }
        gguf_imatrix_destroy(im);
    }
    ok(!wrong && refused > 100, "%s: %d of 300 broken files are refused", name,
       refused);
    remove(bad);
}

int main(void)
{
    static const char *const models[] = { "llama", "syn-a", "syn-moe8",
                                          "syn-odd" };
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.2900s/gguf-check-XXXXXX", tmp ? tmp : "/tmp");
    if (!scratch_make(dir)) {
        perror(dir);
        return 99;
    }
    ok(write_sample_gguf(in_dir("made.gguf")) &&
           write_sample_dat(in_dir("made.dat")),
       "data are made");
    check_forms("made", in_dir("made.gguf"), in_dir("made.dat"));
    for (size_t i = 0; i < GG_LEN(models); i++)
        check_golden(models[i]);
    check_sums();
    check_orders();
    check_mending();
    check_values();
    check_uncounted();
    check_keys();
    check_broken("made.gguf");
    check_broken("made.dat");
    remove(in_dir("made.gguf"));
    remove(in_dir("made.dat"));
    ok(rmdir(dir) == 0, "nothing is left");
    return done_testing();
}
