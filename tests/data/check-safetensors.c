/* SPDX-License-Identifier: MIT */
/* check-safetensors.c - safetensors files in Hugging Face folders: numbers,
 * and malformed files that are refused */
#include "config.h"
#include "base/bytes.h"
#include "data/safetensors.h"
#include "kern/cpu_features.h"
#include "tests/failalloc.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[200];
static struct gg_codec_kern codec[GG_N_DTYPES];

/* A file: length of the header, header, data. */
static uint8_t *make_file(const char *header, const void *data, size_t n,
                          size_t *size)
{
    const size_t h = strlen(header);
    uint8_t *p = malloc(8 + h + n + 1);
    gg_bytes_store64le(p, h);
    memcpy(p + 8, header, h);
    if (n)
        memcpy(p + 8 + h, data, n);
    *size = 8 + h + n;
    return p;
}

static void put_file(const char *name, const void *p, size_t size)
{
    FILE *f = fopen(scratch_path(dir, name), "wb");
    if (!f || fwrite(p, 1, size, f) != size || fclose(f) != 0)
        exit(99);
}

static void put_number(const char *name, const char *header, const void *data,
                       size_t n)
{
    size_t size;
    uint8_t *p = make_file(header, data, n, &size);
    put_file(name, p, size);
    free(p);
}

/* ---- malformed files ---- */

#define T(...) "{\"a\":{\"dtype\":\"F32\"," __VA_ARGS__ "}}"
#define AT_2(A, B)                                                            \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" A            \
    "]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" B "]}}"

#define EIGHT(C) C C C C C C C C
#define DEEP(C)  EIGHT(EIGHT(C)) C C

/* mark: the expected byte is where this text begins in the header. */
static const struct {
    const char *header, *mark, *word;
    enum gguf_status status;
    size_t data; /* bytes of data */
} bad[] = {
    { "", NULL, "begin", GGUF_E_FORMAT, 0 },
    { "[]", "[", "begin", GGUF_E_FORMAT, 0 },
    { " {}", " ", "begin", GGUF_E_FORMAT, 0 },
    { "{}", NULL, "after the last", GGUF_E_FORMAT, 1 },
    { "{\"a\":1}", "1", "object", GGUF_E_FORMAT, 0 },
    { "{\"\":{}}", "{}", "no name", GGUF_E_FORMAT, 0 },
    { "{5:{}}", "5", "a name in quotation marks", GGUF_E_FORMAT, 0 },
    { "{{}:{}}", "{}", "a name in quotation marks", GGUF_E_FORMAT, 0 },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},b:{}}",
      "b:", "a name in quotation marks", GGUF_E_FORMAT, 0 },
    { "{\"__metadata__\":[]}", "[]", "__metadata__", GGUF_E_FORMAT, 0 },
    { "{\"__metadata__\":{\"x\":1}}", "1", "not a text", GGUF_E_FORMAT, 0 },
    { "{\"a\":{\"shape\":[],\"data_offsets\":[0,0]}}", "{\"shape", "dtype",
      GGUF_E_FORMAT, 0 },
    { "{\"a\":{\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,0]}}",
      "\"F31", "unknown", GGUF_E_UNSUPPORTED, 0 },
    { T("\"data_offsets\":[0,4]"), "{\"dtype", "shape", GGUF_E_FORMAT, 4 },
    { T("\"shape\":4,\"data_offsets\":[0,4]"), "4,", "shape", GGUF_E_FORMAT,
      4 },
    { T("\"shape\":[-1],\"data_offsets\":[0,4]"), "-1", "not a size",
      GGUF_E_FORMAT, 4 },
    { T("\"shape\":[1.0],\"data_offsets\":[0,4]"), "1.0", "not a size",
      GGUF_E_FORMAT, 4 },
    { T("\"shape\":[\"1\"],\"data_offsets\":[0,4]"), "\"1", "not a size",
      GGUF_E_FORMAT, 4 },
    { T("\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"),
      "4294967296]", "overflows", GGUF_E_OVERFLOW, 4 },
    { T("\"shape\":[2305843009213693952],\"data_offsets\":[0,4]"), "[2305",
      "overflows", GGUF_E_OVERFLOW, 4 },
    { T("\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]"), "[1,1",
      "dimensions", GGUF_E_LIMIT, 4 },
    { T("\"shape\":[1]"), "{\"dtype", "two numbers", GGUF_E_FORMAT, 4 },
    { T("\"shape\":[1],\"data_offsets\":[0]"), "[0]", "two numbers",
      GGUF_E_FORMAT, 4 },
    { T("\"shape\":[1],\"data_offsets\":[0,4.0]"), "[0,4", "two numbers",
      GGUF_E_FORMAT, 4 },
    { T("\"shape\":[1],\"data_offsets\":[-4,0]"), "-4", "backwards",
      GGUF_E_FORMAT, 4 },
    { T("\"shape\":[1],\"data_offsets\":[4,0]"), "0]", "backwards",
      GGUF_E_FORMAT, 4 },
    { T("\"shape\":[1],\"data_offsets\":[0,4]"), "4]", "the file has 3",
      GGUF_E_TRUNCATED, 3 },
    { T("\"shape\":[1],\"data_offsets\":[9223372036854775804,"
        "9223372036854775807]"),
      "9223372036854775807", "the file has 4", GGUF_E_TRUNCATED, 4 },
    { T("\"shape\":[2],\"data_offsets\":[0,4]"), "[0,4", "its shape",
      GGUF_E_FORMAT, 4 },
    { T("\"shape\":[1],\"data_offsets\":[0,8]"), "[0,8", "its shape",
      GGUF_E_FORMAT, 8 },
    { T("\"shape\":[1],\"data_offsets\":[4,8]"), "{\"dtype", "gap",
      GGUF_E_FORMAT, 8 },
    { AT_2("0,8", "4,12"),
      "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":"
      "[4",
      "the one before", GGUF_E_FORMAT, 12 },
    { AT_2("8,16", "8,16"), NULL, "tensor", GGUF_E_FORMAT, 16 },
    { AT_2("0,8", "12,20"), NULL, "gap", GGUF_E_FORMAT, 20 },
    { AT_2("0,8", "8,16"), NULL, "4 bytes after", GGUF_E_FORMAT, 20 },
    { "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", "[3]",
      "whole number of bytes", GGUF_E_FORMAT, 2 },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],"
      "\"x\":1}}",
      NULL, "duplicate", GGUF_E_DUPLICATE, 0 },
    { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", NULL, "duplicate",
      GGUF_E_DUPLICATE, 0 },
    { "{\"__metadata__\":{},\"__metadata__\":{\"a\":\"b\"}}", "{\"a",
      "duplicate", GGUF_E_DUPLICATE, 0 },
    { "{\"a\\u0000b\":{}}", "{}", "NUL", GGUF_E_FORMAT, 0 },
    { "{} x", "x", "end", GGUF_E_FORMAT, 0 },
    { "{\"a\" 1}", "1", "':' expected", GGUF_E_FORMAT, 0 },
    { "{\"a\":{\"dtype\":}}", "}}", "JSON", GGUF_E_FORMAT, 0 },
    { "{\"a\":{\"dtype\":\"F32\"]}", "]", "'}' expected", GGUF_E_FORMAT, 0 },
    { "{\"a\":[[[[[[[[", NULL, "early", GGUF_E_FORMAT, 0 },
    { "{\"a\":" DEEP("[") DEEP("]") "}", NULL, "deeper", GGUF_E_LIMIT, 0 },
};

static void check_refused(void)
{
    static const uint8_t zeros[64];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct gg_safetensors *s = NULL;
        struct gguf_error e;
        size_t size;
        uint8_t *p = make_file(bad[i].header, zeros, bad[i].data, &size);
        gguf_error_clear(&e);
        enum gguf_status st =
            gg_safetensors_open_memory(&s, p, size, NULL, codec, NULL, &e);
        const char *at =
            bad[i].mark ? strstr(bad[i].header, bad[i].mark) : NULL;
        ok(st == bad[i].status && !s && strstr(e.message, bad[i].word) &&
               e.offset != GGUF_NO_OFFSET &&
               (!at || e.offset == 8 + (uint64_t)(at - bad[i].header)),
           "refused at byte %llu: %s", (unsigned long long)e.offset,
           e.message);
        gg_safetensors_close(s);
        free(p);
    }
    uint8_t length[9];
    static const uint64_t lengths[] = { 100000001, UINT64_MAX, 2 };
    for (size_t i = 0; i < 3; i++) {
        struct gg_safetensors *s;
        struct gguf_error e;
        gg_bytes_store64le(length, lengths[i]);
        enum gguf_status st =
            gg_safetensors_open_memory(&s, length, 9, NULL, codec, NULL, &e);
        ok(st == (i < 2 ? GGUF_E_LIMIT : GGUF_E_TRUNCATED) && e.offset == 0,
           "a header's length: %s", e.message);
        st = gg_safetensors_open_memory(&s, length, 7, NULL, codec, NULL, &e);
        ok(st == GGUF_E_TRUNCATED, "half a length: %s", e.message);
    }
}

/* ---- numbers ---- */

static bool read_all(const struct gg_safetensors *s, const char *name,
                     float *x, uint64_t n)
{
    struct gg_data_rows r;
    struct gguf_error e;
    uint32_t i =
        gg_safetensors_find(s, (struct gguf_str){ name, strlen(name) });
    if (i == GG_INDEX_NONE || s->tensor[i].n_elements != n ||
        gg_data_rows(&s->list, i, &r, &e) != GGUF_OK)
        return false;
    for (uint64_t k = 0; k < n; k += 3) /* piece by piece */
        gg_data_read(&r, k, n - k < 3 ? n - k : 3, x + k);
    return true;
}

static void check_types(void)
{
    static const char header[] =
        "{\"f32\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"f64\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]},"
        "\"f16\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[16,20]},"
        "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[20,24]},"
        "\"i8\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[24,26]},"
        "\"__metadata__\":{\"format\":\"pt\"},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[26,26]},"
        "\"one\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[26,28]}}  ";
    static const uint8_t data[28] = {
        0, 0,    0x80, 0x3f, 0, 0, 0x20, 0xc0, /* 1, -2.5 */
        0, 0,    0,    0,    0, 0, 0xe0, 0x3f, /* 0.5 */
        0, 0x3c, 1,    0,                      /* 1, 2^-24 */
        0, 0x3f, 0x80, 0xc0,                   /* 0.5, -4 */
        5, 0xfb, 0,    0x80                    /* 5, -5, -32768 */
    };
    struct gg_safetensors *s;
    struct gguf_error e;
    float x[4];
    size_t size;
    uint8_t *p = make_file(header, data, sizeof data, &size);
    gguf_error_clear(&e);
    ok(gg_safetensors_open_memory(&s, p, size, NULL, codec, NULL, &e) ==
               GGUF_OK &&
           gg_data_n_tensors(&s->list) == 7,
       "a file of several types %s", e.message);
    ok(read_all(s, "f32", x, 2) && x[0] == 1 && x[1] == -2.5f, "F32");
    ok(read_all(s, "f64", x, 1) && x[0] == 0.5f, "F64");
    ok(read_all(s, "f16", x, 2) && x[0] == 1 && x[1] == 0x1p-24f, "F16");
    ok(read_all(s, "bf16", x, 2) && x[0] == 0.5f && x[1] == -4, "BF16");
    ok(read_all(s, "i8", x, 2) && x[0] == 5 && x[1] == -5, "I8");
    ok(read_all(s, "one", x, 1) && x[0] == -32768, "a number without shape");
    ok(!read_all(s, "none", x, 0), "a tensor of nothing is not read");
    struct gg_data_info t;
    gg_data_info(&s->list,
                 gg_safetensors_find(s, (struct gguf_str){ "none", 4 }), &t);
    ok(t.ne[0] == 0 && t.ne[1] == 3 && t.n_dims == 2 && !t.n_elements,
       "but listed");
    gg_safetensors_close(s);
    free(p);
}

/* Value of an 8-bit float by its definition, bit by bit. */
static double value_of(uint8_t x, int n_exp, int n_man, bool ieee)
{
    const int bias = (1 << (n_exp - 1)) - 1;
    int e = (x & 0x7f) >> n_man;
    double m = 0;
    for (int b = 0; b < n_man; b++)
        if (x >> b & 1)
            m += pow(2, b - n_man);
    double v = e ? pow(2, e - bias) * (1 + m) : pow(2, 1 - bias) * m;
    if (ieee && e == (1 << n_exp) - 1)
        v = m > 0 ? NAN : INFINITY;
    if (!ieee && (x & 0x7f) == 0x7f)
        v = NAN;
    return x & 0x80 ? -v : v;
}

static void check_f8(void)
{
    uint8_t data[256 + 256 + 4 * 4];
    float x[256], scales[4] = { 2, -0.5f, 1, 3 };
    for (int i = 0; i < 256; i++)
        data[i] = data[256 + i] = (uint8_t)i;
    for (int i = 0; i < 4; i++)
        gg_bytes_store32le(data + 512 + 4 * i, gg_bytes_f32_bits(scales[i]));
    struct gg_safetensors *s;
    struct gguf_error e;
    size_t size;
    uint8_t *p = make_file(
        "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[256],\"data_offsets\":[0,"
        "256]},\"b\":{\"dtype\":\"F8_E5M2\",\"shape\":[256],\"data_offsets\":["
        "256,512]},\"c\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":["
        "512,528]}}",
        data, sizeof data, &size);
    bool good = true;
    ok(gg_safetensors_open_memory(&s, p, size, NULL, codec, NULL, &e) ==
               GGUF_OK &&
           read_all(s, "a", x, 256),
       "E4M3");
    for (int i = 0; i < 256; i++) {
        const double v = value_of((uint8_t)i, 4, 3, false);
        good = good && (isnan(v) ? isnan(x[i]) : (double)x[i] == v);
    }
    ok(good && x[0x7e] == 448, "all values of E4M3");
    good = read_all(s, "b", x, 256);
    for (int i = 0; i < 256; i++) {
        const double v = value_of((uint8_t)i, 5, 2, true);
        good = good && (isnan(v) ? isnan(x[i]) : (double)x[i] == v);
    }
    ok(good && x[0x7b] == 57344, "all values of E5M2");
    gg_safetensors_close(s);
    free(p);
}

/* w of rows x cols ones, with a scale of that shape. */
static void check_scale(int rows, int cols, const char *shape, int n,
                        const char *suffix, int per_row, int per_col)
{
    static uint8_t data[300 * 130 + 4 * 400];
    static float x[300 * 130];
    char header[400];
    const int all = rows * cols;
    memset(data, 0x38, (size_t)all); /* 1 */
    for (int i = 0; i < n; i++)
        gg_bytes_store32le(data + all + 4 * i,
                           gg_bytes_f32_bits((float)(i + 1)));
    snprintf(header, sizeof header,
             "{\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[%d,%d],"
             "\"data_offsets\":[0,%d]},\"w%s\":{\"dtype\":\"F32\",\"shape\":["
             "%s],\"data_offsets\":[%d,%d]}}",
             rows, cols, all, suffix, shape, all, all + 4 * n);
    struct gg_safetensors *s;
    struct gguf_error e;
    size_t size;
    uint8_t *p = make_file(header, data, (size_t)(all + 4 * n), &size);
    gguf_error_clear(&e);
    enum gguf_status st =
        gg_safetensors_open_memory(&s, p, size, NULL, codec, NULL, &e);
    if (!per_row) {
        ok(st == GGUF_E_TENSOR, "a scale of %s: %s", shape, e.message);
        free(p);
        return;
    }
    bool good = st == GGUF_OK && read_all(s, "w", x, (uint64_t)all) &&
                s->tensor[1].is_part;
    const int per_line = (cols + per_col - 1) / per_col;
    for (int r = 0; good && r < rows; r++)
        for (int c = 0; good && c < cols; c++)
            good = x[r * cols + c] ==
                   (float)(r / per_row * per_line + c / per_col + 1);
    ok(good, "%d x %d by %s of [%s] %s", rows, cols, suffix, shape, e.message);
    if (st == GGUF_OK)
        gg_safetensors_close(s);
    free(p);
}

/* ---- memory ---- */

enum { MANY = 65537 }; /* arrays that double have just grown */

/* A header of MANY tensors. */
static uint8_t *make_many(size_t *size)
{
    const size_t room = MANY * (size_t)96 + 16;
    char *text = malloc(room);
    size_t at = 0;
    for (int i = 0; i < MANY; i++)
        at +=
            (size_t)snprintf(text + at, room - at,
                             "%s\"t%07d.weight\":{\"dtype\":\"F32\",\"shape\":"
                             "[1],\"data_offsets\":[%d,%d]}",
                             i ? "," : "{", i, 4 * i, 4 * i + 4);
    snprintf(text + at, room - at, "}");
    static const float zeros[MANY];
    uint8_t *p = make_file(text, zeros, sizeof zeros, size);
    free(text);
    return p;
}

/* Largest resident memory of the process in KiB. */
static long resident_bytes(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* Memory is within the bound in gguf/convert.h, 1 KiB for each tensor. The
 * JSON tree does not use the allocator, so the process is measured from
 * outside. */
static void check_memory(void)
{
    size_t size;
    uint8_t *p = make_many(&size);
    struct gg_safetensors *s = NULL;
    struct gguf_error e;
    struct failalloc fa;
    const struct gguf_allocator *a = failalloc_init(&fa, UINT_MAX);
    const long before = resident_bytes();
    const enum gguf_status st =
        gg_safetensors_open_memory(&s, p, size, NULL, codec, a, &e);
    const long grown = resident_bytes() - before;
    ok(st == GGUF_OK && s->n_tensors == MANY && fa.most / MANY < 768,
       "a header of %d tensors: %zu bytes for each", MANY, fa.most / MANY);
    if (SCRATCH_SANITIZED)
        skip("a sanitizer has memory of its own");
    else
        ok(grown < MANY, "%ld KiB in all", grown);
    if (st == GGUF_OK)
        gg_safetensors_close(s);
    ok(!fa.live, "all of it is freed");
    free(p);
}

/* ---- folders ---- */

static enum gguf_status open_dir(struct gg_safetensors **s,
                                 struct gguf_error *e)
{
    const struct gg_dir folder = { .path = dir };
    gguf_error_clear(e);
    return gg_safetensors_open(s, &folder, "model", NULL, codec, e);
}

static const char one_a[] =
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
static const char one_b[] =
    "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static void check_index(const char *text, enum gguf_status want,
                        const char *word)
{
    struct gg_safetensors *s = NULL;
    struct gguf_error e;
    put_file("model.safetensors.index.json", text, strlen(text));
    enum gguf_status st = open_dir(&s, &e);
    ok(st == want && (!word || strstr(e.message, word)), "%.60s: %s", text,
       e.message);
    gg_safetensors_close(s);
}

static void check_folders(void)
{
    struct gg_safetensors *s = NULL;
    struct gguf_error e;
    float x;
    ok(open_dir(&s, &e) == GGUF_E_NOTFOUND, "an empty folder: %s", e.message);
    put_number("model.safetensors", one_a, "\0\0\200\77", 4);
    struct gg_data_file file;
    ok(open_dir(&s, &e) == GGUF_OK && read_all(s, "a", &x, 1) && x == 1 &&
           gg_data_file(&s->list, 0, &file) && file.map == &s->file[0]->map &&
           strstr(file.path, "model.safetensors") &&
           !gg_data_file(&s->list, 1, &file),
       "one file");
    gg_safetensors_close(s);
    put_number("a.safetensors", one_a, "\0\0\200\77", 4);
    put_number("b.safetensors", one_b, "\0\0\0\100", 4);
    /* transformers reads model.safetensors if it exists, and no index */
    check_index("{\"weight_map\":{\"b\":\"b.safetensors\"}}", GGUF_OK, NULL);
    ok(open_dir(&s, &e) == GGUF_OK && s->n_files == 1 &&
           read_all(s, "a", &x, 1),
       "one file beside an index");
    gg_safetensors_close(s);
    unlink(scratch_path(dir, "model.safetensors"));
    check_index("{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":"
                "\"b.safetensors\"},\"metadata\":{\"total_size\":8}}",
                GGUF_OK, NULL);
    ok(open_dir(&s, &e) == GGUF_OK && s->n_files == 2 &&
           read_all(s, "b", &x, 1) && x == 2,
       "two files");
    gg_safetensors_close(s);
    check_index("[]", GGUF_E_FORMAT, "weight_map");
    check_index("{\"weight_map\":[]}", GGUF_E_FORMAT, "weight_map");
    check_index("{\"weight_map\":{\"a\":1}}", GGUF_E_FORMAT,
                "tensor 'a' is in ''");
    static const char *const names[] = {
        "../a.safetensors",
        "/tmp/a.safetensors",
        "x/a.safetensors",
        "..",
        "a.bin",
        "",
        "a\\\\b.safetensors",
        "a\\u0000.safetensors",
        ".safetensors",
    };
    char text[200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}",
                 names[i]);
        check_index(text, GGUF_E_FORMAT, "of this folder");
    }
    check_index("{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":"
                "\"a.safetensors\"}}",
                GGUF_E_NOTFOUND, "'b' is not in its file, 'a.safetensors'");
    check_index("{\"weight_map\":{\"x\":\"a.safetensors\"}}", GGUF_E_MISMATCH,
                "but not here");
    check_index("{\"weight_map\":{\"a\":\"none.safetensors\"}}", GGUF_E_IO,
                "none.safetensors: ");
    put_number("b.safetensors", one_a, "\0\0\0\100", 4);
    check_index("{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":"
                "\"b.safetensors\"}}",
                GGUF_E_DUPLICATE, "b.safetensors: ");
    put_file("a.safetensors", "123", 3);
    check_index("{\"weight_map\":{\"a\":\"a.safetensors\"}}", GGUF_E_TRUNCATED,
                "a.safetensors: ");
}

int main(void)
{
    snprintf(dir, sizeof dir, "check-safetensors.%d.tmp", (int)getpid());
    if (gg_os_make_folder(dir) != 0)
        return 99;
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    check_refused();
    check_memory();
    check_types();
    check_f8();
    check_scale(3, 4, "", 1, "_scale", 3, 4);
    check_scale(3, 4, "1", 1, "_scale_inv", 3, 4);
    check_scale(3, 4, "3", 3, "_scale", 1, 4);
    check_scale(3, 4, "3,1", 3, "_scale", 1, 4);
    check_scale(3, 4, "1,4", 4, "_scale", 3, 1);
    check_scale(300, 130, "3,2", 6, "_scale_inv", 128, 128);
    check_scale(256, 128, "2,1", 2, "_scale_inv", 128, 128);
    check_scale(300, 130, "2,2", 4, "_scale_inv", 0, 0);
    check_scale(3, 4, "4", 4, "_scale", 0, 0);
    check_folders();
    scratch_clean(dir);
    rmdir(dir);
    return done_testing();
}
