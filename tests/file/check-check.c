/* SPDX-License-Identifier: MIT */
/* check-check.c - findings about files that open */
#include "config.h"
#include "base/bytes.h"
#include "dtype/interleave.h"
#include "gguf/check.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/tap.h"

#include <inttypes.h>

/* Codes of all findings, in order, separated by blanks. */
struct seen {
    char codes[512], last[512];
    uint64_t offset; /* place of the last finding */
    unsigned n, stop_at;
};

static bool note_finding(void *user, const struct gguf_finding *f)
{
    struct seen *s = user;
    size_t n = strlen(s->codes);
    snprintf(s->codes + n, sizeof s->codes - n, "%s%s", n ? " " : "", f->code);
    snprintf(s->last, sizeof s->last, "%s", f->message);
    s->offset = f->offset;
    return ++s->n == s->stop_at;
}

static enum gguf_status check_bytes(const uint8_t *p, size_t n,
                                    const struct gguf_check_params *params,
                                    struct seen *s)
{
    struct gguf_file *f;
    struct gguf_error err;
    enum gguf_status st = gguf_file_open_memory(&f, p, n, NULL, &err);
    if (st != GGUF_OK) {
        printf("# %s\n", err.message);
        return st;
    }
    st = gguf_file_check(
        f, params, (struct gguf_finding_callback){ note_finding, s }, &err);
    gguf_file_close(f);
    return st;
}

/* Strings in nested arrays are checked, too. */
static void check_nested_texts(void)
{
    struct seen s = { .n = 0 };
    struct fix fx;
    fix_init(&fx);
    fix_head(&fx, 3, 0, 2);
    fix_kv_str(&fx, "general.architecture", "x");
    fix_key(&fx, "a", GGUF_VAL_ARR);
    fix_u32(&fx, GGUF_VAL_ARR);
    fix_u64(&fx, 2);
    for (int i = 0; i < 2; i++) {
        fix_u32(&fx, GGUF_VAL_STR);
        fix_u64(&fx, 2);
        fix_str(&fx, "good");
        fix_str(&fx, i ? "\xff" : "good");
    }
    ok(check_bytes(fx.data, fx.size, NULL, &s) == GGUF_OK &&
           !strcmp(s.codes, "nested-array text-not-utf8"),
       "a text in an array of arrays: %s", s.codes);
    fix_fini(&fx);
}

static void check_fixtures(void)
{
    static const struct {
        const char *name, *codes;
    } rows[] = {
        { "good-plain", "" },
        { "good-version-2", "version-2" },
        { "good-scalars", "no-architecture" },
        { "good-scalars-be", "big-endian no-architecture" },
        { "good-nested", "no-architecture nested-array" },
        { "good-no-dims", "no-final-padding no-architecture no-dimensions" },
        { "good-name-64", "no-final-padding no-architecture long-name" },
        { "good-gap-and-order", "no-architecture order gap gap" },
        { "good-trailing", "trailing-bytes" },
        { "good-odd-names", "no-final-padding no-architecture key-not-ascii "
                            "text-not-utf8" },
        { "good-types", "no-final-padding no-architecture removed-type "
                        "unknown-type fork-type unknown-type "
                        "nonzero-padding nonzero-padding nonzero-padding" },
    };
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    p.payload = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const struct fixture *x = fix_list("good"); x->name; x++) {
            if (strcmp(x->name, rows[i].name) != 0)
                continue;
            struct seen s = { .n = 0 };
            struct fix fx;
            fix_init(&fx);
            fix_make(x, &fx);
            ok(check_bytes(fx.data, fx.size, &p, &s) == GGUF_OK &&
                   !strcmp(s.codes, rows[i].codes),
               "%s: %s", x->name, s.codes);
            fix_fini(&fx);
        }
}

/* ------------------------------------------------------------- payload --- */

enum { N_BLOCKS = 5 };

/* Make a file with one tensor of N_BLOCKS rows, or groups of rows, with a block
 * of zeros for each row. *data: offset of its data. */
static void one_tensor(struct fix *fx, uint32_t type, size_t *data)
{
    const struct gguf_dtype_info *dt = gguf_dtype_find(type);
    const unsigned rows = gg_interleave_rows(gg_dtype_index(type));
    fix_init(fx);
    fix_head(fx, 3, 1, 1);
    fix_kv_str(fx, "general.architecture", "x");
    fix_info(fx, "t", FIX_NE(dt->block_len, rows * N_BLOCKS), type, 0);
    fix_pad(fx, 32);
    *data = fx->size;
    fix_fill(fx, 0, rows * N_BLOCKS * (dt->row_header + dt->block_size));
    fix_pad(fx, 32);
}

/* Bytes that make the number at off of a block infinite or NaN. Offsets are
 * those of the block layouts in the format's documentation. */
static const struct {
    uint32_t type;
    size_t off, n;
    uint8_t bytes[8];
} poison[] = {
    { GGUF_DTYPE_F32, 0, 4, { 0, 0, 0x80, 0x7f } },
    { GGUF_DTYPE_F32, 0, 4, { 1, 0, 0x80, 0xff } },
    { GGUF_DTYPE_F16, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_BF16, 0, 2, { 0x80, 0x7f } },
    { GGUF_DTYPE_F64, 0, 8, { 0, 0, 0, 0, 0, 0, 0xf0, 0xff } },
    { GGUF_DTYPE_Q4_0, 0, 2, { 0, 0xfc } },
    { GGUF_DTYPE_Q4_1, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q4_1, 2, 2, { 1, 0x7c } },
    { GGUF_DTYPE_Q5_0, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q5_1, 2, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q8_0, 0, 2, { 0, 0x7e } },
    { GGUF_DTYPE_Q2_K, 80, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q2_K, 82, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q3_K, 108, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q4_K, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q4_K, 2, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q5_K, 2, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q6_K, 208, 2, { 0, 0x7c } },
    { GGUF_DTYPE_IQ2_XXS, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_IQ2_XS, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_IQ2_S, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_IQ3_XXS, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_IQ3_S, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_IQ1_S, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_IQ1_M, 48, 8, { 0, 0, 0, 0, 0, 0xc0, 0, 0x70 } },
    { GGUF_DTYPE_IQ4_NL, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_IQ4_XS, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_TQ1_0, 52, 2, { 0, 0x7c } },
    { GGUF_DTYPE_TQ2_0, 64, 2, { 0, 0x7c } },
    { GGUF_DTYPE_MXFP4, 0, 1, { 0xff } },
    { GGUF_DTYPE_NVFP4, 3, 1, { 0x7f } },
    { GGUF_DTYPE_Q1_0, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_Q2_0, 0, 2, { 0, 0x7c } },
    { GGUF_DTYPE_F8_E4M3, 0, 1, { 0xff } },
    { 133, 0, 2, { 0, 0x7c } }, /* Q6_0, and IQ2_K to IQ6_K */
    { 137, 0, 2, { 0, 0x7c } },
    { 138, 0, 2, { 0, 0x7c } },
    { 139, 0, 2, { 0, 0x7c } },
    { 140, 0, 2, { 0, 0x7c } },
    { 141, 0, 2, { 0, 0x7c } },
    { 134, 0, 2, { 0, 0x7c } }, /* IQ1_BN and later: in the row header */
    { 135, 0, 4, { 0, 0, 0x80, 0x7f } },
    { 144, 0, 4, { 0, 0, 0xc0, 0x7f } },
    { 145, 0, 2, { 0, 0xfc } },
    { 146, 0, 4, { 0, 0, 0x80, 0xff } },
    { 151, 0, 4, { 0, 0, 0x80, 0xff } },
    { 152, 0, 4, { 0, 0, 0x80, 0x7f } },
    { 153, 0, 4, { 0, 0, 0x80, 0x7f } },
    { 154, 0, 4, { 0, 0, 0x80, 0x7f } },
    { 155, 0, 4, { 0, 0, 0x80, 0x7f } },
    { 156, 0, 2, { 0, 0x7c } },
    { 157, 0, 2, { 0, 0x7c } },
    { 158, 0, 4, { 0, 0, 0x80, 0x7f } },
    { 202, 14, 2, { 0, 0x7c } }, /* Q4_0_R8: the scale of the last row */
    { 206, 6, 2, { 0, 0x7c } },
    { 208, 14, 2, { 0, 0x7c } },
    { 210, 8, 2, { 0, 0x7c } }, /* Q2_K_R4: four scales, four minima */
    { 211, 6, 2, { 0, 0x7c } },
    { 212, 14, 2, { 0, 0x7c } },
    { 213, 14, 2, { 0, 0x7c } },
    { 214, 6, 2, { 0, 0x7c } },
    { 216, 6, 2, { 0, 0x7c } },
    { 217, 6, 2, { 0, 0x7c } },
    { 218, 6, 2, { 0, 0x7c } },
    { 219, 6, 2, { 0, 0x7c } }, /* IQ1_S_R4: in the headers of rows */
    { 220, 6, 2, { 0, 0x7c } },
    { 221, 6, 2, { 0, 0x7c } },
    { 222, 6, 2, { 0, 0x7c } },
    { 223, 14, 2, { 0, 0x7c } },
    { 229, 6, 2, { 0, 0x7c } },
    { 230, 62, 2, { 0x80, 0x7f } }, /* BF16_R16: two numbers of a row */
    { 233, 6, 2, { 0, 0x7c } },
    { 335, 12, 4, { 0, 0, 0x80, 0x7f } },
    { 337, 6, 2, { 0, 0x7c } },
    { 338, 6, 2, { 0, 0x7c } },
    { 339, 6, 2, { 0, 0x7c } },
    { 340, 6, 2, { 0, 0x7c } },
    { 344, 12, 4, { 0, 0, 0x80, 0x7f } },
    { 352, 12, 4, { 0, 0, 0x80, 0x7f } },
    { 353, 7, 1, { 0xff } },
    { 397, 30, 2, { 0, 0x7c } },
    { 398, 28, 4, { 0, 0, 0x80, 0x7f } },
    { 399, 14, 2, { 0, 0x7c } },
};

static void check_poison(void)
{
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    p.payload = true;
    for (size_t i = 0; i < sizeof poison / sizeof *poison; i++) {
        struct seen clean = { .n = 0 }, s = { .n = 0 };
        struct fix fx;
        size_t data;
        const struct gguf_dtype_info *dt = gguf_dtype_find(poison[i].type);
        one_tensor(&fx, poison[i].type, &data);
        enum gguf_status st = check_bytes(fx.data, fx.size, &p, &clean);
        const unsigned rows = gg_interleave_rows(gg_dtype_index(dt->id));
        size_t at =
            data + 3 * rows * (size_t)(dt->row_header + dt->block_size);
        unsigned fork = dt->family == GGUF_FAMILY_FORK;
        memcpy(fx.data + at + poison[i].off, poison[i].bytes, poison[i].n);
        ok(st == GGUF_OK && clean.n == fork &&
               check_bytes(fx.data, fx.size, &p, &s) == GGUF_OK &&
               s.n == 1 + fork && s.offset == at &&
               strstr(s.last, " 3 at byte"),
           "%s: %s %s", dt->name, clean.codes, s.last);
        fix_fini(&fx);
    }
}

static bool stop_early(void *user, uint64_t done, uint64_t total)
{
    unsigned *n = user;
    (void)done, (void)total;
    return ++*n == 2;
}

/* A tensor of many pieces with some bad numbers gives the same finding with
 * any number of threads. */
static void check_threads(void)
{
    enum { N = 6 << 20 };
    struct fix fx;
    fix_init(&fx);
    fix_head(&fx, 3, 1, 1);
    fix_kv_str(&fx, "general.architecture", "x");
    fix_info(&fx, "t", FIX_NE(N), GGUF_DTYPE_F32, 0);
    fix_pad(&fx, 32);
    size_t data = fx.size;
    fix_fill(&fx, 0, 4 * (size_t)N);
    for (size_t i = 1234567; i < N; i += 1000000)
        gg_bytes_store32le(fx.data + data + 4 * i, 0x7f800000u);
    for (unsigned t = 1; t <= 4; t++) {
        struct seen s = { .n = 0 };
        struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
        struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
        struct gguf_error err;
        pp.n_threads = t;
        p.payload = true;
        if (gguf_pool_create(&p.pool, &pp, &err) != GGUF_OK)
            continue;
        ok(check_bytes(fx.data, fx.size, &p, &s) == GGUF_OK && s.n == 1 &&
               s.offset == data + 4 * 1234567 &&
               strstr(s.last, "6 values are not finite, first in element "
                              "1234567 "),
           "%u threads: %s", t, s.last);
        gguf_pool_destroy(p.pool);
    }
    unsigned calls = 0;
    struct seen s = { .n = 0 };
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    p.payload = true;
    p.progress.fn = stop_early;
    p.progress.user = &calls;
    ok(check_bytes(fx.data, fx.size, &p, &s) == GGUF_E_CANCELLED &&
           calls == 2 && s.n == 0,
       "progress can stop it");
    s.stop_at = 1;
    p.progress.fn = NULL;
    ok(check_bytes(fx.data, fx.size, &p, &s) == GGUF_E_CANCELLED && s.n == 1,
       "and so can a report");
    struct failalloc fa;
    for (unsigned n = 0; n < 2; n++) {
        struct seen none = { .n = 0 };
        p.allocator = failalloc_init(&fa, n);
        ok(check_bytes(fx.data, fx.size, &p, &none) == GGUF_E_NOMEM &&
               fa.live == 0,
           "no memory at call %u", n);
    }
    fix_fini(&fx);
}

/* The manual page lists every code with its severity. */
static void check_page(void)
{
    static char page[1 << 16];
    char path[4096];
    const char *top = getenv("srcdir"), *code;
    enum gguf_severity severity;
    unsigned n_missing = 0;
    snprintf(path, sizeof path, "%s/man/gguf-info.1", top ? top : ".");
    FILE *f = fopen(path, "r");
    page[f ? fread(page, 1, sizeof page - 1, f) : 0] = 0;
    if (f)
        fclose(f);
    for (size_t i = 0; (code = gguf_check_code(i, NULL, &severity)); i++) {
        char line[128];
        size_t n = (size_t)snprintf(line, sizeof line, "\n.BR ");
        for (; *code; code++)
            n += (size_t)snprintf(line + n, sizeof line - n, "%s%c",
                                  *code == '-' ? "\\" : "", *code);
        snprintf(line + n, sizeof line - n, " \" (%s)\"\n",
                 gguf_severity_name(severity));
        if (!strstr(page, line)) {
            printf("# %s is not there\n", line + 1);
            n_missing++;
        }
    }
    ok(!n_missing, "the manual page has all codes");
}

int main(void)
{
    check_page();
    check_fixtures();
    check_nested_texts();
    check_poison();
    check_threads();
    size_t n = 0, bad = 0;
    const char *about;
    enum gguf_severity sev;
    while (gguf_check_code(n, &about, &sev)) {
        bad += !*about || !strcmp(gguf_severity_name(sev), "?");
        n++;
    }
    ok(n > 20 && !bad, "%zu codes have a meaning and a severity", n);
    return done_testing();
}
