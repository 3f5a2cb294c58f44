/* SPDX-License-Identifier: MIT */
/* check-sensitivities.c - sensitivities in importance data: kept in files,
 * averaged over tokens, and left out where a file's numbers are not valid */
#include "config.h"
#include "base/compiler.h"
#include "gguf/imatrix.h"
#include "gguf/meta.h"
#include "gguf/writer.h"
#include "tests/failalloc.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

static char dir[] = "/tmp/check-sensitivities-XXXXXX";
static char path[64];

static struct gguf_imatrix *make_data(const struct gguf_allocator *a)
{
    const float sums[2] = { 3, 5 }, count = 2;
    struct gguf_imatrix *im;
    if (gguf_imatrix_create(&im, a, NULL) != GGUF_OK)
        return NULL;
    if (gguf_imatrix_add(im, "b.weight", 2, 1, sums, &count, NULL) != GGUF_OK)
        abort();
    return im;
}

static bool add_one(struct gguf_imatrix *im, const char *name, double value,
                    double input, double n_tokens)
{
    return gguf_imatrix_add_sensitivity(im, name, value, input, n_tokens,
                                        NULL) == GGUF_OK;
}

static bool has_one(const struct gguf_imatrix *im, const char *name,
                    double value, double input, double n_tokens)
{
    struct gguf_imatrix_sensitivity s = GGUF_IMATRIX_SENSITIVITY_INIT;
    size_t i;
    return gguf_imatrix_find_sensitivity(
               im, (struct gguf_str){ name, strlen(name) }, &i) &&
           gguf_imatrix_sensitivity(im, i, &s, NULL) == GGUF_OK &&
           !strcmp(s.name, name) && s.value == value && s.input == input &&
           s.n_tokens == n_tokens;
}

static void check_object(void)
{
    struct gguf_imatrix *a = make_data(NULL), *b = make_data(NULL);
    struct gguf_imatrix_sensitivity s = GGUF_IMATRIX_SENSITIVITY_INIT;
    struct gguf_error err;
    const char *texts[] = { "c" };
    ok(gguf_imatrix_n_sensitivities(a) == 0 &&
           gguf_imatrix_sensitivity(a, 0, &s, &err) == GGUF_E_INVALID,
       "none at first: %s", err.message);
    ok(add_one(a, "c", 1, 0, 100) && add_one(a, "a", 2, 3, 100) &&
           add_one(a, "b", 0, 1, 1) && has_one(a, "a", 2, 3, 100) &&
           has_one(a, "b", 0, 1, 1) && has_one(a, "c", 1, 0, 100),
       "added in any order, and found");
    ok(gguf_imatrix_sensitivity(a, 1, &s, NULL) == GGUF_OK &&
           !strcmp(s.name, "b"),
       "numbered by name");
    ok(!add_one(a, "", 1, 1, 1) && !add_one(a, "d", -1, 1, 1) &&
           !add_one(a, "d", NAN, 1, 1) && !add_one(a, "d", INFINITY, 1, 1) &&
           !add_one(a, "d", 1, -1, 1) && !add_one(a, "d", 1, NAN, 1) &&
           !add_one(a, "d", 1, 1, 0) && !add_one(a, "d", 1, 1, INFINITY) &&
           gguf_imatrix_add_sensitivity(a, "d", -1, 1, 1, &err) ==
               GGUF_E_INVALID,
       "refused: %s", err.message);
    ok(add_one(b, "a", 6, 7, 300) && add_one(b, "e", 1, 1, 1) &&
           gguf_imatrix_merge(a, b, NULL) == GGUF_OK &&
           gguf_imatrix_n_sensitivities(a) == 4 &&
           has_one(a, "a", 5, 6, 400) && has_one(a, "e", 1, 1, 1),
       "merged: the mean over all tokens");
    gguf_imatrix_filter(b, texts, 1, false);
    ok(gguf_imatrix_n_sensitivities(b) == 2, "filter drops none that match");
    gguf_imatrix_filter(a, texts, 1, true);
    ok(gguf_imatrix_n_sensitivities(a) == 1 && has_one(a, "c", 1, 0, 100),
       "filter keeps the matching ones");
    gguf_imatrix_destroy(a);
    gguf_imatrix_destroy(b);
}

static void check_files(void)
{
    struct gguf_imatrix *a = make_data(NULL), *b = NULL, *c = NULL;
    bool good =
        add_one(a, "b.weight", 0.1, 1.0 / 3, 2048) &&
        add_one(a, "a.weight", 1e-30, 0, 512) &&
        gguf_imatrix_save(a, path, GGUF_IMATRIX_GGUF, true, NULL) == GGUF_OK &&
        gguf_imatrix_load(&b, path, NULL, NULL) == GGUF_OK;
    ok(good && gguf_imatrix_n_sensitivities(b) == 2 &&
           has_one(b, "b.weight", 0.1, 1.0 / 3, 2048) &&
           has_one(b, "a.weight", 1e-30, 0, 512),
       "a file keeps them to the last bit");
    ok(gguf_imatrix_save(a, path, GGUF_IMATRIX_DAT, true, NULL) == GGUF_OK &&
           gguf_imatrix_load(&c, path, NULL, NULL) == GGUF_OK &&
           gguf_imatrix_n_entries(c) == 1 &&
           gguf_imatrix_n_sensitivities(c) == 0,
       "the older form has no place for them");
    gguf_imatrix_destroy(a);
    gguf_imatrix_destroy(b);
    gguf_imatrix_destroy(c);
}

#define PREFIX "libgguf.imatrix.sensitivity."

/* Write a file with n names and arrays of n_values numbers. */
static void write_file(const char *const *names, size_t n,
                       const double *values, size_t n_values, uint32_t type)
{
    const float one[2] = { 1, 1 };
    struct gguf_meta *m;
    struct gguf_writer *w;
    struct gguf_str s[4];
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    const struct gguf_str sums = { "a.in_sum2", 9 },
                          counts = { "a.counts", 8 };
    const int64_t ne[2] = { 2, 1 };
    for (size_t i = 0; i < n; i++)
        s[i] = (struct gguf_str){ names[i], strlen(names[i]) };
    p.force = true;
    if (gguf_meta_create(&m, NULL, NULL) != GGUF_OK ||
        gguf_meta_set_strz(m, "general.type", "imatrix", NULL) != GGUF_OK ||
        gguf_meta_set_str_array(m, PREFIX "names", s, n, NULL) != GGUF_OK ||
        gguf_meta_set_array(m, PREFIX "values", type, values, n_values,
                            NULL) != GGUF_OK ||
        gguf_meta_set_array(m, PREFIX "inputs", GGUF_VAL_F64, values, n,
                            NULL) != GGUF_OK ||
        gguf_meta_set_array(m, PREFIX "tokens", GGUF_VAL_F64, values, n,
                            NULL) != GGUF_OK ||
        gguf_writer_create(&w, m, NULL, NULL) != GGUF_OK ||
        gguf_writer_add_tensor(w, sums, GGUF_DTYPE_F32, 1, ne, NULL) !=
            GGUF_OK ||
        gguf_writer_add_tensor(w, counts, GGUF_DTYPE_F32, 1, ne + 1, NULL) !=
            GGUF_OK ||
        gguf_writer_begin_file(w, path, &p, NULL) != GGUF_OK ||
        gguf_writer_begin_tensor(w, 0, NULL) != GGUF_OK ||
        gguf_writer_write(w, one, 8, NULL) != GGUF_OK ||
        gguf_writer_begin_tensor(w, 1, NULL) != GGUF_OK ||
        gguf_writer_write(w, one, 4, NULL) != GGUF_OK ||
        gguf_writer_commit(w, NULL) != GGUF_OK)
        abort();
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
}

/* Number of sensitivities that the file at path has; -1: it is refused. */
static int count_file(void)
{
    struct gguf_imatrix *im;
    if (gguf_imatrix_load(&im, path, NULL, NULL) != GGUF_OK)
        return -1;
    const int n = (int)gguf_imatrix_n_sensitivities(im);
    gguf_imatrix_destroy(im);
    return n;
}

static void check_strange_files(void)
{
    const char *names[] = { "a", "b", "a", "" };
    const double good[] = { 1, 2, 3, 4 };
    const double bad[] = { 1, NAN, -1, 1 };
    static char longest[300];
    write_file(names, 4, good, 4, GGUF_VAL_F64);
    ok(count_file() == 2, "a name twice, and an empty one, are left out");
    write_file(names, 2, bad, 2, GGUF_VAL_F64);
    ok(count_file() == 1, "NaN is left out");
    write_file(names + 1, 2, bad + 1, 2, GGUF_VAL_F64);
    ok(count_file() == 0, "a negative number is left out");
    write_file(names, 2, good, 3, GGUF_VAL_F64);
    ok(count_file() == 0, "arrays of several lengths are ignored");
    write_file(names, 2, good, 2, GGUF_VAL_F32);
    ok(count_file() == 0, "arrays of another type are ignored");
    memset(longest, 'x', sizeof longest - 1);
    names[1] = longest;
    write_file(names, 2, good, 2, GGUF_VAL_F64);
    ok(count_file() == 1, "a name that no tensor can have is left out");
}

static void check_memory(void)
{
    struct failalloc fa;
    bool good = true;
    unsigned n = 0;
    const char *names[] = { "a", "b" };
    const double values[] = { 1, 2 };
    write_file(names, 2, values, 2, GGUF_VAL_F64);
    for (;; n++) {
        struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
        struct gguf_imatrix *im;
        p.allocator = failalloc_init(&fa, n);
        const enum gguf_status st = gguf_imatrix_load(&im, path, &p, NULL);
        good = good && (st == GGUF_OK ? gguf_imatrix_n_sensitivities(im) == 2
                                      : st == GGUF_E_NOMEM && !im);
        gguf_imatrix_destroy(im);
        good = good && fa.live == 0;
        if (fa.calls <= n)
            break;
    }
    ok(good && n > 5, "%u allocations that fail, one at a time", n);
}

int main(void)
{
    if (!scratch_make(dir))
        return 1;
    snprintf(path, sizeof path, "%s/x", dir);
    check_object();
    check_files();
    check_strange_files();
    check_memory();
    (void)unlink(path);
    (void)rmdir(dir);
    return done_testing();
}
