/* SPDX-License-Identifier: MIT */
/* check-edit.c - editing metadata keeps the tensors */
#include "config.h"
#include "gguf/edit.h"
#include "gguf/writer.h"
#include "tests/failalloc.h"
#include "tests/file/edited.h"
#include "tests/fix.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <sys/stat.h>
#include <unistd.h>

static void write_fixture(const char *name)
{
    for (const struct fixture *x = fix_list("good"); x->name; x++)
        if (!strcmp(x->name, name)) {
            struct fix fx;
            fix_init(&fx);
            fix_make(x, &fx);
            if (!spill(model_path, fx.data, fx.size))
                exit(99);
            fix_fini(&fx);
        }
}

static const char *const pad = GGUF_EDIT_PADDING_KEY;

static void check_copy(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    enum gguf_edit_result way;
    p.no_sync = true;
    write_model(100, 5000);
    ok(edit(3000, 'b', &p, &way, &err) == GGUF_OK && way == GGUF_EDIT_COPIED &&
           length_of(model_path, "text") == 3000 &&
           length_of(model_path, pad) == SIZE_MAX && data_good(model_path),
       "a small file is copied");
    ok(edit(100, 'a', &p, &way, &err) == GGUF_OK, "back");
    size_t n, n2;
    uint8_t *now = slurp(model_path, &n);
    write_model(100, 5000);
    uint8_t *was = slurp(model_path, &n2);
    ok(n == n2 && !memcmp(now, was, n), "gives the first file again");
    free(now);
    free(was);

    p.output = other_path;
    ok(edit(0, 0, &p, &way, &err) == GGUF_OK &&
           length_of(other_path, "text") == SIZE_MAX &&
           data_good(other_path) && length_of(model_path, "text") == 100,
       "into another file");
    ok(edit(0, 0, &p, &way, &err) == GGUF_E_EXIST, "once: %s", err.message);
    p.force = true;
    ok(edit(7, 'c', &p, &way, &err) == GGUF_OK &&
           length_of(other_path, "text") == 7,
       "or by force");
    p.output = model_path;
    ok(edit(7, 'c', &p, &way, &err) == GGUF_E_INVALID,
       "the output may not be named as the input: %s", err.message);
    p.output = NULL;
    unlink(other_path);
    ok(symlink(model_path + sizeof folder, other_path) == 0,
       "a symbolic link");
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    struct stat s;
    ok(gguf_file_open(&f, other_path, NULL, &err) == GGUF_OK &&
           gguf_meta_create(&m, NULL, &err) == GGUF_OK &&
           gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_OK &&
           lstat(other_path, &s) == 0 && S_ISLNK(s.st_mode) &&
           length_of(model_path, "text") == SIZE_MAX && data_good(model_path),
       "stays one, its file is edited");
    ok(gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_E_MISMATCH,
       "a file that was replaced: %s", err.message);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    unlink(other_path);
}

static void check_in_place(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    enum gguf_edit_result way;
    struct stat before, after;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(1000, 5000);
    stat(model_path, &before);
    /* every length: too long, exact, too little room for a padding pair */
    unsigned n_fit = 0, bad = 0;
    for (size_t n = 900; n <= 1100; n++) {
        enum gguf_status st = edit(n, 'b', &p, &way, &err);
        n_fit += st == GGUF_OK;
        bad += st != GGUF_OK && st != GGUF_E_NOSPACE;
        bad += st == GGUF_OK && length_of(model_path, "text") != n;
        bad += !data_good(model_path) || exists(journal_path);
    }
    stat(model_path, &after);
    ok(!bad && n_fit > 60 && n_fit < 150 && after.st_size == before.st_size,
       "%u of 201 lengths fit in place: %s", n_fit, err.message);
    ok(edit(10, 'c', &p, &way, &err) == GGUF_OK && way != GGUF_EDIT_COPIED &&
           length_of(model_path, "text") == 10 &&
           length_of(model_path, pad) > 900 && data_good(model_path),
       "a shorter text leaves padding");
    ok(edit(800, 'd', &p, &way, &err) == GGUF_OK &&
           length_of(model_path, "text") == 800 &&
           length_of(model_path, pad) < 200 && data_good(model_path),
       "which a longer one uses");
    p.mode = GGUF_EDIT_COPY;
    ok(edit(800, 'e', &p, &way, &err) == GGUF_OK && way == GGUF_EDIT_COPIED &&
           length_of(model_path, pad) == SIZE_MAX && data_good(model_path),
       "and a plain copy drops");
}

static void check_layouts(void)
{
    static const char *const names[] = {
        "good-trailing",     "good-gap-and-order", "good-types",
        "good-scalars-be",   "good-nothing",       "good-version-2",
        "good-alignment-64",
    };
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    p.no_sync = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct gguf_file *f = NULL, *g = NULL;
        write_fixture(names[i]);
        size_t n, n2 = 0;
        uint8_t *was = slurp(model_path, &n), *now = NULL;
        int good = gguf_file_open_memory(&f, was, n, NULL, &err) == GGUF_OK &&
                   edit(300, 'x', &p, NULL, &err) == GGUF_OK;
        if (good)
            now = slurp(model_path, &n2);
        good =
            good && gguf_file_open_memory(&g, now, n2, NULL, &err) == GGUF_OK;
        if (!good)
            printf("# %s\n", err.message);
        good = good && gguf_file_version(f) == gguf_file_version(g) &&
               gguf_file_is_big_endian(f) == gguf_file_is_big_endian(g) &&
               gguf_file_n_kv(f) + 1 == gguf_file_n_kv(g);
        size_t from = good ? (size_t)gguf_file_data_off(f) : 0;
        size_t to = good ? (size_t)gguf_file_data_off(g) : 0;
        ok(good && (n <= from ? n2 <= to
                              : n - from == n2 - to &&
                                    !memcmp(was + from, now + to, n - from)),
           "%s: the data keeps its layout", names[i]);
        gguf_file_close(f);
        gguf_file_close(g);
        free(was);
        free(now);
    }
}

/* Header padding that is not zero stays in place while the header keeps its
 * length: in another byte order, in a copy, in place. */
static void check_header_pad(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    struct gguf_file *f;
    size_t n, n2, n3;
    p.no_sync = true;
    write_model(100, 5000);
    uint8_t *was = slurp(model_path, &n);
    if (!was || gguf_file_open(&f, model_path, NULL, &err) != GGUF_OK)
        exit(99);
    const size_t from = gguf_file_header_end(f), to = gguf_file_data_off(f);
    gguf_file_close(f);
    memset(was + from, 0x5a, to - from);
    ok(to - from > 8 && spill(model_path, was, n), "a padding of %zu bytes",
       to - from);
    p.byte_order = GGUF_EDIT_BIG_ENDIAN;
    ok(edit(100, 'a', &p, NULL, &err) == GGUF_OK, "the other byte order");
    uint8_t *there = slurp(model_path, &n2);
    ok(n2 == n && !memcmp(there + from, was + from, to - from) &&
           memcmp(there, was, from) != 0,
       "keeps it");
    p.byte_order = GGUF_EDIT_LITTLE_ENDIAN;
    ok(edit(100, 'a', &p, NULL, &err) == GGUF_OK, "and back");
    uint8_t *back = slurp(model_path, &n3);
    ok(n3 == n && !memcmp(back, was, n), "the file is the same");
    p.byte_order = GGUF_EDIT_KEEP_ORDER;
    for (int way = 0; way < 2; way++) {
        free(back);
        p.mode = way ? GGUF_EDIT_IN_PLACE : GGUF_EDIT_COPY;
        ok(edit(100, way ? 'a' : 'b', &p, NULL, &err) == GGUF_OK &&
               (back = slurp(model_path, &n3)) && n3 == n &&
               !memcmp(back + from, was + from, to - from) &&
               data_good(model_path),
           "a text of the same length, %s", way ? "in place" : "in a copy");
    }
    free(back);
    free(there);
    free(was);
}

static void check_alignment(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    p.no_sync = true;
    p.mode = GGUF_EDIT_IN_PLACE;
    write_model(100, 5000);
    ok(gguf_file_open(&f, model_path, NULL, &err) == GGUF_OK &&
           gguf_meta_create(&m, NULL, &err) == GGUF_OK &&
           gguf_meta_copy_file(m, f, &err) == GGUF_OK &&
           gguf_meta_set_u32(m, "general.alignment", 128, &err) == GGUF_OK &&
           gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_E_NOSPACE,
       "another alignment does not go in place: %s", err.message);
    p.mode = GGUF_EDIT_AUTO;
    ok(gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_OK &&
           data_good(model_path),
       "but in a copy");
    gguf_file_close(f);
    ok(gguf_file_open(&f, model_path, NULL, &err) == GGUF_OK &&
           gguf_file_alignment(f) == 128 && gguf_file_tensor(f, 1)->off == 128,
       "which is laid out anew");
    ok(gguf_meta_set_u32(m, "general.alignment", 3, &err) == GGUF_OK &&
           gguf_edit_apply(f, m, &p, NULL, &err) == GGUF_E_FORMAT &&
           data_good(model_path),
       "a bad alignment: %s", err.message);
    gguf_meta_destroy(m);
    gguf_file_close(f);
}

/* ---------------------------------------------------------------- large --- */

static void check_large(void)
{
    static const int64_t ne[] = { 65 << 20 };
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    struct gguf_writer *w = NULL;
    struct gguf_meta *m = NULL;
    struct gguf_file *f = NULL;
    struct gguf_error err;
    enum gguf_edit_result way = GGUF_EDIT_COPIED;
    o.force = o.no_sync = true;
    p.no_sync = true;
    uint8_t *zeros = calloc(1, 1 << 20);
    enum gguf_status st = gguf_meta_create(&m, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_meta_set_strz(m, "text",
                                "a text of some length, so that "
                                "there is room for a padding pair",
                                &err);
    if (st == GGUF_OK)
        st = gguf_writer_create(&w, m, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_writer_add_tensor(w, (struct gguf_str){ "t", 1 },
                                    GGUF_DTYPE_I8, 1, ne, &err);
    if (st == GGUF_OK)
        st = gguf_writer_begin_file(w, model_path, &o, &err);
    if (st == GGUF_OK)
        st = gguf_writer_begin_tensor(w, 0, &err);
    for (int i = 0; st == GGUF_OK && i < 65; i++) {
        memset(zeros, i, 1 << 20);
        st = gguf_writer_write(w, zeros, 1 << 20, &err);
    }
    if (st == GGUF_OK)
        st = gguf_writer_commit(w, &err);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
    ok(st == GGUF_OK && edit(3, 'x', &p, &way, &err) == GGUF_OK &&
           way != GGUF_EDIT_COPIED && length_of(model_path, "text") == 3,
       "a large file is edited in place");
    ok(edit(100000, 'x', &p, &way, &err) == GGUF_OK &&
           way == GGUF_EDIT_COPIED &&
           length_of(model_path, "text") == 100000 &&
           length_of(model_path, pad) < 2 * 4096,
       "or copied");
    int good = gguf_file_open(&f, model_path, NULL, &err) == GGUF_OK;
    /* the old data began near byte 192 */
    good = good && gguf_file_data_off(f) % 4096 < 512;
    const uint8_t *d = good ? gguf_file_tensor_data(f, 0) : NULL;
    for (size_t i = 0; good && i < (size_t)ne[0]; i += 4097)
        good = d[i] == i >> 20;
    ok(good, "its data moves by whole extents and is the same");
    gguf_file_close(f);
    free(zeros);
}

static void check_nomem(void)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    unsigned wrong = 0, n = 0;
    p.no_sync = true;
    for (int mode = GGUF_EDIT_COPY; mode <= GGUF_EDIT_IN_PLACE; mode++)
        for (n = 0;; n++) {
            struct failalloc fa;
            write_model(2000, 100);
            p.mode = (enum gguf_edit_mode)mode;
            p.allocator = failalloc_init(&fa, n);
            enum gguf_status st = edit(500, 'x', &p, NULL, &err);
            size_t len = length_of(model_path, "text");
            wrong += fa.live != 0 || (len != 2000 && len != 500);
            if (fa.calls <= n) {
                wrong += st != GGUF_OK;
                break;
            }
            wrong += st != GGUF_E_NOMEM;
            unlink(journal_path);
        }
    ok(!wrong && n > 10, "memory may run out at any call");
}

int main(void)
{
    if (!edited_begin())
        return 99;
    check_copy();
    check_in_place();
    check_layouts();
    check_header_pad();
    check_alignment();
    check_nomem();
    check_large();
    if (!edited_end())
        return 99;
    return done_testing();
}
