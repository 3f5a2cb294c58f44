/* SPDX-License-Identifier: MIT */
/* fuzz_imatrix.c - importance data in either form: read, added to themselves,
 * written in both forms, read again */
#include "config.h"
#include "base/compiler.h"
#include "imatrix/imatrix_int.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { MAX_VALUES = 4096 };

/* Encoders get finite importances that are not negative, whatever the file
 * says. */
static void check_weights(const struct gguf_imatrix *im, const char *name)
{
    static float w[MAX_VALUES];
    const struct gg_imatrix_entry *e = gg_imatrix_find(im, name);
    MUST(e);
    size_t n = (size_t)GG_MIN(e->n_cols, MAX_VALUES);
    for (uint64_t k = 0; k < e->n_values / e->n_cols && k < 4; k++) {
        gg_imatrix_weights(e, k * e->n_cols, n, w);
        for (size_t i = 0; n == e->n_cols && i < n; i++)
            MUST(isfinite(w[i]) && w[i] >= 0);
    }
}

static void read_all(const struct gguf_imatrix *im)
{
    float v[16];
    struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
    struct gguf_imatrix_entry last = { .name = "" };
    size_t n = gguf_imatrix_n_entries(im);
    for (size_t i = 0; i < n; i++) {
        MUST(gguf_imatrix_entry(im, i, &e, NULL) == GGUF_OK);
        MUST(i == 0 || strcmp(last.name, e.name) < 0);
        MUST(e.n_values > 0);
        size_t k = (size_t)GG_MIN(e.n_values, 16);
        MUST(gguf_imatrix_sums(im, i, e.n_values - k, k, v, NULL) == GGUF_OK);
        MUST(gguf_imatrix_sums(im, i, e.n_values, 1, v, NULL) ==
             GGUF_E_INVALID);
        if (e.n_mats)
            MUST(gguf_imatrix_counts(im, i, e.n_mats - 1, 1, v, NULL) ==
                 GGUF_OK);
        check_weights(im, e.name);
        last = e;
    }
    MUST(gguf_imatrix_entry(im, n, &e, NULL) == GGUF_E_INVALID);
}

/* Write and read again: the entries are equal, and so are the facts that only
 * this form stores. */
static void save_again(const struct gguf_imatrix *im,
                       enum gguf_imatrix_form form)
{
    struct gguf_imatrix *back;
    struct gguf_imatrix_entry a = GGUF_IMATRIX_ENTRY_INIT,
                              b = GGUF_IMATRIX_ENTRY_INIT;
    struct gguf_error err;
    const char *path = scratch_path("saved");
    enum gguf_status st = gguf_imatrix_save(im, path, form, 1, &err);
    if (st != GGUF_OK) {
        MUST(err.message[0]);
        return;
    }
    st = gguf_imatrix_load(&back, path, NULL, &err);
    if (st == GGUF_OK) {
        size_t n = gguf_imatrix_n_entries(im);
        MUST(gguf_imatrix_n_entries(back) == n);
        for (size_t i = 0; i < n; i++) {
            MUST(!gguf_imatrix_entry(im, i, &a, NULL));
            MUST(!gguf_imatrix_entry(back, i, &b, NULL));
            MUST(!strcmp(a.name, b.name) && a.n_values == b.n_values);
        }
        gguf_imatrix_destroy(back);
    } else { /* a file without entries is not importance data */
        MUST(form == GGUF_IMATRIX_DAT && !gguf_imatrix_n_entries(im));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_imatrix *im, *sum;
    struct gguf_error err;
    const char *path = scratch_path("imatrix"), *out = "w";
    scratch_write(path, data, size);
    gguf_error_clear(&err);
    enum gguf_status st = gguf_imatrix_load(&im, path, NULL, &err);
    if (st != GGUF_OK) {
        MUST(!im && err.status == st && err.message[0]);
        MUST(err.offset <= size || err.offset == GGUF_NO_OFFSET);
        scratch_clean();
        return 0;
    }
    read_all(im);
    save_again(im, GGUF_IMATRIX_GGUF);
    save_again(im, GGUF_IMATRIX_DAT);
    MUST(gguf_imatrix_create(&sum, NULL, NULL) == GGUF_OK);
    if (gguf_imatrix_merge(sum, im, &err) == GGUF_OK &&
        gguf_imatrix_merge(sum, im, &err) == GGUF_OK)
        MUST(gguf_imatrix_n_entries(sum) == gguf_imatrix_n_entries(im));
    read_all(sum);
    gguf_imatrix_filter(sum, &out, 1, 0);
    read_all(sum);
    gguf_imatrix_destroy(sum);
    gguf_imatrix_destroy(im);
    scratch_clean();
    return 0;
}

/* ---- seeds ---- */

static void put_i32_str(struct fix *f, const char *s)
{
    fix_u32(f, (uint32_t)strlen(s));
    fix_bytes(f, s, strlen(s));
}

static void put_old(struct fix *f, uint32_t n_entries, uint32_t calls)
{
    fix_u32(f, n_entries);
    for (uint32_t i = 0; i < n_entries; i++) {
        put_i32_str(f, i ? "b.weight" : "a.weight");
        fix_u32(f, calls);
        fix_u32(f, 4);
        for (uint32_t k = 0; k < 4; k++)
            fix_f32(f, (float)(k * (i + 1)));
    }
}

/* counts: number of counts; 0: no tensor of counts. */
static void put_new(struct fix *f, uint64_t counts, float first)
{
    fix_head(f, 3, counts ? 2 : 1, 4);
    fix_kv_str(f, "general.type", "imatrix");
    fix_kv_u32(f, "imatrix.chunk_count", 10);
    fix_kv_u32(f, "imatrix.chunk_size", 512);
    fix_array(f, "imatrix.datasets", GGUF_VAL_STR, 1);
    fix_str(f, "text.txt");
    fix_info(f, "x.weight.in_sum2", FIX_NE(4, 2), GGUF_DTYPE_F32, 0);
    if (counts)
        fix_info(f, "x.weight.counts", FIX_NE(1, counts), GGUF_DTYPE_F32, 32);
    fix_pad(f, 32);
    for (int i = 0; i < 8; i++)
        fix_f32(f, i ? (float)i : first);
    for (uint64_t i = 0; i < counts; i++)
        fix_f32(f, (float)i);
    fix_pad(f, 32);
}

void fuzz_make_seeds(void)
{
    struct fix *f = new_seed();
    put_old(f, 2, 3);
    f = new_seed();
    put_old(f, 1, 0);
    fix_u32(f, 100);
    put_i32_str(f, "text.txt");
    put_new(new_seed(), 2, 1);
    put_new(new_seed(), 2, NAN);
    put_new(new_seed(), 3, 1); /* counts with another shape */
    put_new(new_seed(), 0, 1);
    seed_text("");
}
