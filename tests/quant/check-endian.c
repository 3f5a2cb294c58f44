/* SPDX-License-Identifier: MIT */
/* check-endian.c - files in the other byte order: written, converted back,
 * read */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "dtype/byte_order.h"
#include "gguf/check.h"
#include "gguf/edit.h"
#include "gguf/quant.h"
#include "gguf/stats.h"
#include "gguf/writer.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <unistd.h>

static char dir[] = "check-endian-XXXXXX";
static char little[64], big[64], again[64];

/* Tensors besides one of each type: rows longer than the swap buffer, and
 * tensors of several pieces, with blocks that do not divide a piece. */
static const struct {
    const char *name, *type;
    int64_t ne[2];
} more[] = {
    { "long.row", "IQ2_KS", { 256 * 8000, 2 } },
    { "rows.header", "IQ4_KS", { 256 * 40, 500 } },
    { "blocks", "Q5_0", { 3200, 900 } },
    { "one", "F32", { 1, 1 } },
};

static enum gguf_status write_data(struct gguf_writer *w)
{
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < gguf_writer_n_tensors(w) && st == GGUF_OK; i++) {
        size_t n = (size_t)gguf_writer_tensor(w, i)->size;
        uint8_t *p = malloc(n);
        for (size_t k = 0; k < n; k++)
            p[k] = (uint8_t)(rnd64() >> 30);
        st = gguf_writer_begin_tensor(w, i, NULL);
        if (st == GGUF_OK)
            st = gguf_writer_write(w, p, n, NULL);
        free(p);
    }
    return st;
}

static enum gguf_status add_tensor(struct gguf_writer *w, const char *name,
                                   uint32_t type, const int64_t *ne)
{
    return gguf_writer_add_tensor(w, (struct gguf_str){ name, strlen(name) },
                                  type, 2, ne, NULL);
}

/* Write a model with every known type, from random bytes. */
static void write_model(uint32_t version)
{
    static const int64_t ne[2] = { 512, 3 };
    static const uint64_t odd[] = { 1, UINT64_C(1) << 40 };
    struct gguf_meta *m = NULL;
    struct gguf_writer *w = NULL;
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    o.force = o.no_sync = true;
    p.version = version;
    enum gguf_status st = gguf_meta_create(&m, NULL, NULL);
    if (st == GGUF_OK)
        st = gguf_meta_set_strz(m, "general.architecture", "test", NULL);
    if (st == GGUF_OK)
        st = gguf_meta_set_array(m, "odd", GGUF_VAL_U64, odd, 2, NULL);
    if (st == GGUF_OK)
        st = gguf_writer_create(&w, m, &p, NULL);
    for (int t = 0; t < GG_N_DTYPES && st == GGUF_OK; t++) {
        char name[64];
        if (!gg_byte_order_is_known(t))
            continue;
        snprintf(name, sizeof name, "blk.0.%s.weight",
                 gg_dtype_by_index(t)->name);
        st = add_tensor(w, name, gg_dtype_by_index(t)->id, ne);
    }
    for (size_t i = 0; i < GG_LEN(more) && st == GGUF_OK; i++)
        st = add_tensor(w, more[i].name,
                        gguf_dtype_find_name(more[i].type)->id, more[i].ne);
    if (st == GGUF_OK)
        st = gguf_writer_begin_file(w, little, &o, NULL);
    if (st == GGUF_OK)
        st = write_data(w);
    if (st == GGUF_OK)
        st = gguf_writer_commit(w, NULL);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
    if (st != GGUF_OK)
        exit(99);
}

static enum gguf_status turn_file(const char *in, const char *out,
                                  enum gguf_edit_byte_order order,
                                  const struct gguf_edit_params *params,
                                  struct gguf_error *err)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    if (params)
        p = *params;
    p.no_sync = p.force = true;
    p.output = out;
    p.byte_order = order;
    enum gguf_status st = gguf_file_open(&f, in, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_create(&m, NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(m, f, err);
    if (st == GGUF_OK)
        st = gguf_edit_apply(f, m, &p, NULL, err);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    return st;
}

static void open_both(struct gguf_file **l, struct gguf_file **b)
{
    if (gguf_file_open(l, little, NULL, NULL) != GGUF_OK ||
        gguf_file_open(b, big, NULL, NULL) != GGUF_OK)
        exit(99);
}

/* --------------------------------------------------------- there, back --- */

static void check_bytes(void)
{
    struct gguf_file *l, *b;
    struct gguf_error err;
    const struct gguf_kv *kv;
    uint64_t v = 0;
    ok(turn_file(little, big, GGUF_EDIT_BIG_ENDIAN, NULL, &err) == GGUF_OK,
       "to big-endian");
    open_both(&l, &b);
    size_t n = gguf_file_n_tensors(l), bad = n != gguf_file_n_tensors(b);
    for (size_t i = 0; i < n && !bad; i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(l, i);
        uint64_t row = t->size / (t->n_elements / (uint64_t)t->ne[0]);
        uint8_t *p = malloc((size_t)t->size);
        memcpy(p, gguf_file_tensor_data(l, i), (size_t)t->size);
        gg_byte_order_swap(gg_dtype_index(t->dtype), row, 0, p,
                           (size_t)t->size);
        bad = t->off != gguf_file_tensor(b, i)->off ||
              memcmp(p, gguf_file_tensor_data(b, i), (size_t)t->size) != 0;
        if (bad)
            printf("# %s\n", t->name.data);
        free(p);
    }
    kv = gguf_file_kv_find(b, "odd");
    ok(!bad && gguf_file_is_big_endian(b) && kv &&
           gguf_file_size(l) == gguf_file_size(b),
       "%zu tensors", n);
    struct gguf_kv_iter it;
    gguf_kv_iter_init(&it, kv);
    struct gguf_kv e;
    ok(gguf_kv_iter_next(&it, &e) &&
           gguf_kv_get_uint(&e, &v, NULL) == GGUF_OK && v == 1 &&
           gguf_kv_iter_next(&it, &e) &&
           gguf_kv_get_uint(&e, &v, NULL) == GGUF_OK && v >> 40 == 1,
       "metadata");
    gguf_file_close(l);
    gguf_file_close(b);
    ok(turn_file(big, again, GGUF_EDIT_LITTLE_ENDIAN, NULL, &err) == GGUF_OK &&
           same_files(little, again),
       "and back: the same bytes");
    ok(turn_file(big, again, GGUF_EDIT_BIG_ENDIAN, NULL, &err) == GGUF_OK &&
           same_files(big, again),
       "a big-endian file stays big-endian");
}

/* Gaps, unusual orders and trailing bytes stay in place. */
static void check_layouts(void)
{
    for (const struct fixture *x = fix_list("good"); x->name; x++) {
        struct fix fx;
        struct gguf_file *f;
        struct gguf_error err;
        fix_init(&fx);
        fix_make(x, &fx);
        FILE *out = fopen(again, "wb");
        if (!out || fwrite(fx.data, 1, fx.size, out) != fx.size || fclose(out))
            exit(99);
        int known = 1;
        if (gguf_file_open(&f, again, NULL, &err) != GGUF_OK)
            exit(99);
        for (size_t i = 0; i < gguf_file_n_tensors(f); i++)
            known = known && !gguf_file_tensor(f, i)->size_inferred;
        int is_big = gguf_file_is_big_endian(f);
        int v2 = gguf_file_version(f) == 2;
        gguf_file_close(f);
        enum gguf_status st =
            turn_file(again, big,
                      is_big ? GGUF_EDIT_LITTLE_ENDIAN : GGUF_EDIT_BIG_ENDIAN,
                      NULL, &err);
        if (!known) {
            ok(st == GGUF_E_UNSUPPORTED && strstr(err.message, "type"),
               "%s: %s", x->name, err.message);
        } else {
            int good = st == GGUF_OK && !same_files(again, big) &&
                       turn_file(big, NULL,
                                 is_big ? GGUF_EDIT_BIG_ENDIAN
                                        : GGUF_EDIT_LITTLE_ENDIAN,
                                 NULL, &err) == GGUF_OK;
            if (good && v2) {
                size_t n;
                uint8_t *p = slurp(big, &n);
                good = p[4] == 3;
                p[4] = 2;
                good = good && n == fx.size && !memcmp(p, fx.data, n);
                free(p);
            } else {
                good = good && same_files(again, big);
            }
            ok(good, "%s: there and back%s", x->name,
               v2 ? ", but for the version" : "");
        }
        fix_fini(&fx);
    }
}

static bool stop_at_once(void *user, uint64_t done, uint64_t total)
{
    unsigned *calls = user;
    (void)total;
    return ++*calls && done > 0;
}

static void check_failures(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    unsigned calls = 0, wrong = 0, n = 0;
    unlink(again);
    p.progress.fn = stop_at_once;
    p.progress.user = &calls;
    ok(turn_file(little, again, GGUF_EDIT_BIG_ENDIAN, &p, &err) ==
               GGUF_E_CANCELLED &&
           calls && access(again, F_OK) != 0,
       "cancelled: no file");
    p = (struct gguf_edit_params)GGUF_INIT(struct gguf_edit_params);
    p.mode = GGUF_EDIT_IN_PLACE;
    ok(turn_file(little, NULL, GGUF_EDIT_BIG_ENDIAN, &p, &err) ==
           GGUF_E_INVALID,
       "not in place: %s", err.message);
    p.mode = GGUF_EDIT_AUTO;
    for (;; n++) {
        struct failalloc fa;
        p.allocator = failalloc_init(&fa, n);
        enum gguf_status st =
            turn_file(little, again, GGUF_EDIT_BIG_ENDIAN, &p, &err);
        wrong += fa.live != 0;
        if (fa.calls <= n) {
            wrong += st != GGUF_OK || !same_files(big, again);
            break;
        }
        wrong += st != GGUF_E_NOMEM || access(again, F_OK) == 0;
    }
    ok(!wrong && n > 5, "memory may run out at each of %u calls", n);
}

/* ------------------------------------------------------------- numbers --- */

static void check_rows(void)
{
    struct gguf_file *l, *b;
    struct gguf_rows *rows;
    struct gguf_error err;
    if (gguf_rows_create(&rows, NULL, &err) != GGUF_OK)
        exit(99);
    open_both(&l, &b);
    size_t n_decoded = 0;
    for (size_t i = 0; i < gguf_file_n_tensors(l); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(l, i);
        uint64_t len = gguf_dtype_find(t->dtype)->block_len, n = t->n_elements;
        float *x = malloc((size_t)n * 4), *y = malloc((size_t)n * 4);
        memset(x, 1, (size_t)n * 4);
        memset(y, 2, (size_t)n * 4);
        if (!gguf_rows_can_decode(rows, t->dtype)) {
            free(x);
            free(y);
            continue;
        }
        int good = gguf_rows_decode(rows, l, i, 0, n, x, &err) == GGUF_OK &&
                   gguf_rows_decode(rows, b, i, 0, n, y, &err) == GGUF_OK &&
                   !memcmp(x, y, (size_t)n * 4);
        /* a part of a row, from its middle on */
        uint64_t at = (uint64_t)t->ne[0] / 2 / len * len;
        uint64_t k = (uint64_t)t->ne[0] - at;
        good = good &&
               gguf_rows_decode(rows, l, i, at, k, y, &err) == GGUF_OK &&
               !memcmp(x + at, y, (size_t)k * 4) &&
               gguf_rows_decode(rows, b, i, at, k, y, &err) == GGUF_OK &&
               !memcmp(x + at, y, (size_t)k * 4);
        ok(good, "%s: the same floats", gguf_dtype_find(t->dtype)->name);
        n_decoded++;
        free(x);
        free(y);
    }
    ok(n_decoded > 30, "%zu tensors", n_decoded);
    gguf_file_close(l);
    gguf_file_close(b);
    gguf_rows_destroy(rows);
}

/* Findings as text, without the one about the byte order. */
struct text {
    char s[1 << 14];
    size_t n;
};

static bool note_finding(void *user, const struct gguf_finding *f)
{
    struct text *t = user;
    if (strcmp(f->code, "big-endian") && t->n + 600 < sizeof t->s)
        t->n += (size_t)snprintf(t->s + t->n, sizeof t->s - t->n, "%s %s\n",
                                 f->code, f->message);
    return 0;
}

static void check_findings(void)
{
    static struct text x, y;
    struct gguf_check_params p = GGUF_INIT(struct gguf_check_params);
    struct gguf_file *l, *b;
    open_both(&l, &b);
    p.payload = true;
    ok(gguf_file_check(l, &p,
                       (struct gguf_finding_callback){ note_finding, &x },
                       NULL) == GGUF_OK &&
           gguf_file_check(b, &p,
                           (struct gguf_finding_callback){ note_finding, &y },
                           NULL) == GGUF_OK &&
           x.n > 1000 && x.n == y.n && !memcmp(x.s, y.s, x.n),
       "the same findings in the data, at the same bytes");
    gguf_file_close(l);
    gguf_file_close(b);
}

static enum gguf_status quantize_file(const char *in, const char *out,
                                      const char *preset,
                                      struct gguf_error *err)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *q = NULL;
    o.no_sync = o.force = true;
    p.allow_requantize = 1;
    p.nonfinite = GGUF_NONFINITE_ZERO;
    enum gguf_status st = gguf_recipe_preset(&recipe, preset, NULL, err);
    p.recipe = recipe;
    if (st == GGUF_OK)
        st = gguf_quant_create(&q, in, &p, err);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, out, &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(recipe);
    return st;
}

/* A model of floats and blocks that have decoders, and of integers, which are
 * copied. */
static void write_plain(void)
{
    static const char *const types[] = { "F32",  "F16",     "BF16", "Q5_0",
                                         "Q4_K", "IQ2_XXS", "I16",  "I64" };
    static const int64_t ne[2] = { 1024, 300 };
    struct gguf_meta *m = NULL;
    struct gguf_writer *w = NULL;
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    o.force = o.no_sync = true;
    if (gguf_meta_create(&m, NULL, NULL) != GGUF_OK ||
        gguf_meta_set_strz(m, "general.architecture", "test", NULL) !=
            GGUF_OK ||
        gguf_writer_create(&w, m, NULL, NULL) != GGUF_OK)
        exit(99);
    for (size_t i = 0; i < GG_LEN(types); i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%zu.ffn_up.weight", i);
        if (add_tensor(w, name, gguf_dtype_find_name(types[i])->id, ne) !=
            GGUF_OK)
            exit(99);
    }
    if (gguf_writer_begin_file(w, little, &o, NULL) != GGUF_OK ||
        write_data(w) != GGUF_OK || gguf_writer_commit(w, NULL) != GGUF_OK)
        exit(99);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
}

static void check_quantize(void)
{
    struct gguf_error err;
    char out[64];
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    ok(quantize_file(little, again, "COPY", &err) == GGUF_OK &&
           quantize_file(big, out, "COPY", &err) == GGUF_OK &&
           same_files(again, out),
       "a copy of all types: little-endian");
    write_plain();
    ok(turn_file(little, big, GGUF_EDIT_BIG_ENDIAN, NULL, &err) == GGUF_OK &&
           quantize_file(little, again, "Q4_K_M", &err) == GGUF_OK &&
           quantize_file(big, out, "Q4_K_M", &err) == GGUF_OK &&
           same_files(again, out),
       "quantized: the same");
    unlink(out);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    snprintf(little, sizeof little, "%s/little.gguf", dir);
    snprintf(big, sizeof big, "%s/big.gguf", dir);
    snprintf(again, sizeof again, "%s/again.gguf", dir);
    check_layouts();
    write_model(3);
    check_bytes();
    check_failures();
    check_rows();
    check_findings();
    check_quantize();
    unlink(little);
    unlink(big);
    unlink(again);
    rmdir(dir);
    return done_testing();
}
