/* SPDX-License-Identifier: MIT */
/* check-data.c - lists of tensors: of a file, of a set, of another list */
#include "config.h"
#include "base/bytes.h"
#include "base/error.h"
#include "data/gguf_list.h"
#include "gguf/writer.h"
#include "kern/cpu_features.h"
#include "gguf/split.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <unistd.h>

enum { COLS = 64, ROWS = 6, N = COLS * ROWS };

static char dir[200];
static struct gg_codec_kern codec[GG_N_DTYPES];

/* x in F32; w.weight in NVFP4, 3 matrices with a scale each. */
static void write_file(const char *path)
{
    static const struct {
        const char *name;
        uint32_t type;
        unsigned n_dims;
        int64_t ne[3];
    } list[] = {
        { "x", GGUF_DTYPE_F32, 2, { COLS, ROWS, 1 } },
        { "w.weight", GGUF_DTYPE_NVFP4, 3, { COLS, 2, 3 } },
        { "w.scale", GGUF_DTYPE_F32, 1, { 3, 1, 1 } },
    };
    static const float scales[3] = { 3, -0.5f, 1024 };
    float x[N];
    uint8_t bytes[4 * N];
    struct gguf_writer *w;
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    p.no_sync = 1;
    bool good = gguf_writer_create(&w, NULL, NULL, NULL) == GGUF_OK;
    for (size_t i = 0; i < 3; i++)
        good = good &&
               gguf_writer_add_tensor(
                   w, (struct gguf_str){ list[i].name, strlen(list[i].name) },
                   list[i].type, list[i].n_dims, list[i].ne, NULL) == GGUF_OK;
    good = good && gguf_writer_begin_file(w, path, &p, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < 3; i++) {
        size_t size = 4 * N;
        for (int k = 0; k < N; k++)
            gg_bytes_store32le(bytes + 4 * k,
                               gg_bytes_f32_bits(x[k] = rnd_f32()));
        if (i == 1) {
            codec[GG_DT_NVFP4].encode(x, bytes, ROWS, COLS, NULL);
            size = N / 64 * 36;
        } else if (i == 2) {
            size = sizeof scales;
            for (int k = 0; k < 3; k++)
                gg_bytes_store32le(bytes + 4 * k,
                                   gg_bytes_f32_bits(scales[k]));
        }
        good = gguf_writer_begin_tensor(w, i, NULL) == GGUF_OK &&
               gguf_writer_write(w, bytes, size, NULL) == GGUF_OK;
    }
    if (!good || gguf_writer_commit(w, NULL) != GGUF_OK) {
        printf("Bail out! cannot write %s\n", path);
        exit(99);
    }
    gguf_writer_destroy(w);
}

static bool read_all(const struct gg_data *d, size_t i, float *x,
                     struct gguf_error *err)
{
    struct gg_data_rows r;
    if (gg_data_rows(d, i, &r, err) != GGUF_OK)
        return false;
    gg_data_read(&r, 0, N, x);
    return true;
}

/* Check the names, types, shapes and data of a list, whatever it is made of. */
static void check_list(const struct gg_data *d, const struct gg_data *plain,
                       const char *what)
{
    struct gguf_error err;
    struct gg_data_info t;
    float x[N], y[N];
    gguf_error_clear(&err);
    gg_data_info(d, 1, &t);
    ok(gg_data_n_tensors(d) == 3 && t.name.size == 8 &&
           !memcmp(t.name.data, "w.weight", 8) &&
           t.dtype == GGUF_DTYPE_NVFP4 && t.n_dims == 3 && t.ne[0] == COLS &&
           t.ne[2] == 3 && t.ne[3] == 1 && t.n_elements == N &&
           t.size == N / 64 * 36 && gg_data_bytes(d, 1),
       "%s: three tensors", what);
    bool good = read_all(d, 1, x, &err) && read_all(plain, 1, y, &err);
    static const float scales[3] = { 3, -0.5f, 1024 };
    for (int k = 0; good && k < N; k++)
        good = x[k] == y[k] * scales[k / (N / 3)];
    ok(good, "%s: each matrix by its scale %s", what, err.message);
    good = read_all(d, 0, x, &err);
    const uint8_t *p = gg_data_bytes(d, 0);
    for (int k = 0; good && k < N; k++)
        good = gg_bytes_f32_bits(x[k]) == gg_bytes_load32le(p + 4 * k);
    ok(good, "%s: floats are the stored ones %s", what, err.message);
    struct gg_data_rows r;
    good = gg_data_rows(d, 0, &r, NULL) == GGUF_OK;
    gg_data_read(&r, 2 * COLS, 2 * COLS, y);
    ok(good && !memcmp(y, x + 2 * COLS, 2 * COLS * sizeof *y),
       "%s: rows in the middle", what);
    float largest = 0;
    for (int k = 0; k < N; k++)
        largest = x[k] > largest ? x[k] : -x[k] > largest ? -x[k] : largest;
    ok(gg_data_find_largest(&r, 0, N, 0, y, COLS) == largest &&
           gg_data_find_largest(&r, 0, N, 7, y, COLS) == 7,
       "%s: the largest number", what);
}

/* ---- a list that is made of another: its tensors upside down ---- */

struct turned {
    struct gg_data list;
    const struct gg_data *of;
    struct gg_data_rows rows[3];
};

static size_t turned_n(const struct gg_data *d)
{
    return gg_data_n_tensors(((const struct turned *)d)->of);
}

static void turned_info(const struct gg_data *d, size_t i,
                        struct gg_data_info *out)
{
    gg_data_info(((const struct turned *)d)->of, i, out);
}

static void turned_read(const struct gg_data_rows *r, uint64_t first,
                        uint64_t n, float *dst)
{
    for (uint64_t k = 0; k < n; k += COLS)
        gg_data_read(r->source, N - COLS - first - k, COLS, dst + k);
}

static enum gguf_status turned_rows(const struct gg_data *d, size_t i,
                                    struct gg_data_rows *out,
                                    struct gguf_error *err)
{
    (void)err;
    *out = (struct gg_data_rows){ .read = turned_read,
                                  .source =
                                      &((const struct turned *)d)->rows[i] };
    return GGUF_OK;
}

static const uint8_t *turned_bytes(const struct gg_data *d, size_t i)
{
    (void)d;
    (void)i;
    return NULL;
}

static void check_turned(const struct gg_data *of)
{
    static const struct gg_data_ops ops = { .n_tensors = turned_n,
                                            .info = turned_info,
                                            .rows = turned_rows,
                                            .bytes = turned_bytes };
    struct turned t = { { &ops }, of, { { 0 } } };
    float x[N], y[N];
    bool good = true;
    for (size_t i = 0; i < 2; i++)
        good &= gg_data_rows(of, i, &t.rows[i], NULL) == GGUF_OK;
    for (size_t i = 0; i < 2; i++) {
        good =
            good && read_all(of, i, x, NULL) && read_all(&t.list, i, y, NULL);
        for (int row = 0; row < ROWS; row++)
            good &= !memcmp(x + row * COLS, y + (ROWS - 1 - row) * COLS,
                            COLS * sizeof *x);
    }
    ok(good && !gg_data_bytes(&t.list, 0) && gg_data_n_tensors(&t.list) == 3,
       "a list made of a list");
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    struct gguf_error err;
    snprintf(dir, sizeof dir, "%.150s/gguf-check-XXXXXX", tmp ? tmp : "/tmp");
    if (!scratch_make(dir)) {
        perror(dir);
        return 99;
    }
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    char *path = scratch_path(dir, "f.gguf");
    write_file(path);

    struct gg_source from = { .file = NULL }, parts = { .file = NULL };
    struct gguf_file *file, *set;
    struct gguf_split_plan *plan;
    struct gguf_split_params sp = GGUF_INIT(struct gguf_split_params);
    sp.max_tensors = 1;
    if (gguf_file_open(&file, path, NULL, NULL) ||
        gguf_split_plan_create(&plan, file, &sp, NULL) ||
        gguf_split_plan_write(plan, scratch_path(dir, "s"), NULL, NULL) ||
        gguf_file_open(&set, scratch_path(dir, "s"), NULL, NULL))
        return 99;
    from.file = file;
    parts.file = set;
    struct gg_data_gguf plain, whole, shards, alone;
    gg_data_gguf_init(&plain, &from, codec, false);
    gg_data_gguf_init(&whole, &from, codec, true);
    gg_data_gguf_init(&shards, &parts, codec, true);
    check_list(&whole.list, &plain.list, "a file");
    check_list(&shards.list, &plain.list, "a set");
    check_turned(&whole.list);
    from.file = gguf_file_shard(set, 1);
    gg_data_gguf_init(&alone, &from, codec, true);
    struct gg_data_rows r;
    ok(gg_data_n_tensors(&alone.list) == 1 &&
           gg_data_rows(&alone.list, 0, &r, &err) == GGUF_E_UNSUPPORTED &&
           strstr(err.message, "its scale may be in another of the 3 files"),
       "a shard without the scale: %s", err.message);
    memset(codec, 0, sizeof codec);
    ok(gg_data_rows(&plain.list, 0, &r, &err) == GGUF_E_UNSUPPORTED,
       "a type without a decoder: %s", err.message);
    gguf_file_close(set);
    gguf_split_plan_destroy(plan);
    gguf_file_close(file);
    scratch_clean(dir);
    ok(rmdir(dir) == 0, "nothing is left");
    return done_testing();
}
