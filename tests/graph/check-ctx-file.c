/* SPDX-License-Identifier: MIT */
/* check-ctx-file.c - contexts with the tensors of a GGUF file
 *
 * The test writes the file byte by byte, in either byte order, and compares
 * the tensors with these bytes.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/compute.h"
#include "gguf/gguf.h"
#include "tests/failalloc.h"
#include "tests/fix.h"
#include "tests/tap.h"

enum { N_TENSORS = 5, BLOCK = 34 };

/* ---- the file ---- */

static const float floats[8] = { 1, -2, 0.5f, 3e8f, -1e-7f, 0, 7, 1e30f };
static const int32_t ints[3] = { -5, 1 << 20, 77 };
static const uint16_t halves[8] = { 0x3c00, 0xc000, 0x0001, 0x7bff,
                                    0x8000, 0x4248, 0xfbff, 0x1234 };
static uint8_t blocks[2 * BLOCK]; /* bytes of a little-endian file */

static const struct {
    const char *name;
    uint32_t dtype;
    int64_t ne[4];
    const void *data; /* expected data in memory */
    size_t size;
} want[N_TENSORS] = {
    { "floats", GGUF_DTYPE_F32, { 4, 2, 1, 1 }, floats, sizeof floats },
    { "blocks", GGUF_DTYPE_Q8_0, { 32, 2, 1, 1 }, blocks, sizeof blocks },
    { "ints", GGUF_DTYPE_I32, { 3, 1, 1, 1 }, ints, sizeof ints },
    { "halves", GGUF_DTYPE_F16, { 2, 2, 2, 1 }, halves, sizeof halves },
    { "scalar", GGUF_DTYPE_F32, { 1, 1, 1, 1 }, floats + 3, sizeof(float) },
};

static void put_blocks(struct fix *f)
{
    for (unsigned b = 0; b < 2; b++) {
        fix_u16(f, 0x2c00 + b); /* the scale */
        for (unsigned i = 0; i < 32; i++)
            fix_u8(f, (i * 7 + b) & 255);
    }
}

static void make_blocks(void)
{
    struct fix f;
    fix_init(&f);
    put_blocks(&f);
    memcpy(blocks, f.data, sizeof blocks);
    fix_fini(&f);
}

/* Write skip bytes, then the file. more: type of a sixth tensor, if it has
 * dimensions. */
static void make_file(struct fix *f, bool big_endian, size_t skip,
                      const uint64_t *more_ne, uint32_t more)
{
    struct fix g;
    fix_init(f);
    fix_init(&g);
    g.big_endian = big_endian;
    fix_head(&g, 3, more_ne ? N_TENSORS + 1 : N_TENSORS, 0);
    fix_info(&g, "floats", FIX_NE(4, 2), GGUF_DTYPE_F32, 0);
    fix_info(&g, "blocks", FIX_NE(32, 2), GGUF_DTYPE_Q8_0, 32);
    fix_info(&g, "ints", FIX_NE(3), GGUF_DTYPE_I32, 128);
    fix_info(&g, "halves", FIX_NE(2, 2, 2), GGUF_DTYPE_F16, 160);
    fix_info(&g, "scalar", FIX_NE(0), GGUF_DTYPE_F32, 192);
    if (more_ne)
        fix_info(&g, "more", more_ne, more, 224);
    fix_pad(&g, 32);
    for (size_t i = 0; i < GG_LEN(floats); i++)
        fix_f32(&g, floats[i]);
    put_blocks(&g);
    fix_pad(&g, 32);
    for (size_t i = 0; i < GG_LEN(ints); i++)
        fix_u32(&g, (uint32_t)ints[i]);
    fix_pad(&g, 32);
    for (size_t i = 0; i < GG_LEN(halves); i++)
        fix_u16(&g, halves[i]);
    fix_pad(&g, 32);
    fix_f32(&g, floats[3]);
    fix_pad(&g, 32);
    if (more_ne)
        fix_fill(&g, 0, 256);
    fix_fill(f, 0, skip);
    fix_bytes(f, g.data, g.size);
    fix_fini(&g);
}

static struct gguf_file *open_file(const struct fix *f, size_t skip)
{
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *file;
    struct gguf_error err;
    p.offset = skip;
    struct gguf_limits limits = GGUF_INIT(struct gguf_limits);
    limits.max_dims = GGUF_MAX_DIMS;
    p.limits = &limits;
    if (gguf_file_open_memory(&file, f->data, f->size, &p, &err) != GGUF_OK) {
        printf("Bail out! %s\n", err.message);
        exit(1);
    }
    return file;
}

/* ---- tensors in contexts ---- */

static enum gguf_status create_ctx(struct gguf_ctx **ctx,
                                   const struct gguf_file *file,
                                   enum gguf_ctx_data data, size_t extra,
                                   const struct gguf_allocator *a,
                                   struct gguf_error *err)
{
    struct gguf_ctx_file_params p = GGUF_CTX_FILE_PARAMS_INIT;
    p.allocator = a;
    p.data = data;
    p.extra_size = extra;
    return gguf_ctx_create_from_file(ctx, file, &p, err);
}

static bool is_in(const void *p, const struct gguf_file *file)
{
    const char *begin = gguf_file_bytes(file);
    return (const char *)p >= begin &&
           (const char *)p < begin + gguf_file_size(file);
}

static bool is_described(const struct gguf_tensor *t, size_t i)
{
    return t && !strcmp(t->name, want[i].name) && t->op == GGUF_OP_NONE &&
           t->dtype == want[i].dtype && gguf_tensor_is_contiguous(t) &&
           !memcmp(t->ne, want[i].ne, sizeof t->ne) &&
           gguf_tensor_size(t) == want[i].size;
}

static bool has_data(const struct gguf_tensor *t, size_t i)
{
    uint8_t got[sizeof blocks];
    return t->data &&
           gguf_tensor_get(t, got, 0, want[i].size, NULL) == GGUF_OK &&
           !memcmp(got, want[i].data, want[i].size);
}

static void check_tensors(const char *what, bool big_endian, size_t skip,
                          enum gguf_ctx_data data, unsigned n_mapped)
{
    struct gguf_error err;
    struct gguf_ctx *ctx;
    struct fix f;
    make_file(&f, big_endian, skip, NULL, 0);
    struct gguf_file *file = open_file(&f, skip);
    if (create_ctx(&ctx, file, data, 0, NULL, &err) != GGUF_OK) {
        ok(0, "%s: %s", what, err.message);
        return;
    }
    unsigned n = 0, n_in_file = 0;
    bool described = true, filled = true;
    for (struct gguf_tensor *t = gguf_ctx_first_tensor(ctx); t;
         t = gguf_ctx_next_tensor(ctx, t), n++) {
        described = described && n < N_TENSORS && is_described(t, n) &&
                    gguf_ctx_find_tensor(ctx, want[n].name) == t;
        filled = filled && described &&
                 (data == GGUF_CTX_DATA_NONE ? !t->data : has_data(t, n));
        n_in_file += t->data && is_in(t->data, file);
    }
    ok(n == N_TENSORS && described && filled && n_in_file == n_mapped,
       "%s: %u tensors, %u in the file", what, n, n_in_file);
    ok(gguf_ctx_no_alloc(ctx) == (data != GGUF_CTX_DATA_COPY),
       "%s: whether more tensors get data", what);
    if (data != GGUF_CTX_DATA_MAP) {
        gguf_file_close(file);
        memset(f.data, 0xee, f.size);
        file = NULL;
        ok(data == GGUF_CTX_DATA_NONE ||
               has_data(gguf_ctx_find_tensor(ctx, "blocks"), 1),
           "%s: the file is not needed any more", what);
    }
    gguf_ctx_destroy(ctx);
    gguf_file_close(file);
    fix_fini(&f);
}

/* Compute y = x W^T with W from the file and memory for the rest. */
static void check_compute(enum gguf_ctx_data data)
{
    static const float x[4] = { 1, 10, 100, 0 };
    struct gguf_backend *cpu = NULL;
    struct gguf_galloc *mem = NULL;
    struct gguf_ctx *ctx;
    struct gguf_error err;
    struct fix f;
    float y[2] = { 0, 0 };
    make_file(&f, false, 0, NULL, 0);
    struct gguf_file *file = open_file(&f, 0);
    enum gguf_status st =
        create_ctx(&ctx, file, data,
                   4 * gguf_tensor_overhead() + gguf_graph_overhead(8) + 1024,
                   NULL, &err);
    if (st == GGUF_OK)
        st = gguf_cpu_backend_create(&cpu, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_galloc_create(&mem, NULL, gguf_backend_buft(cpu), &err);
    struct gguf_tensor *in = NULL, *out = NULL;
    struct gguf_graph *g = NULL;
    if (st == GGUF_OK) {
        in = gguf_tensor_create_1d(ctx, GGUF_DTYPE_F32, 4);
        out = gguf_op_matmul(ctx, gguf_ctx_find_tensor(ctx, "floats"), in);
        g = gguf_graph_create(ctx, 8);
        st = gguf_graph_finish(ctx, g, out, &err);
    }
    if (st == GGUF_OK)
        st = gguf_galloc_alloc(mem, g, &err);
    if (st == GGUF_OK)
        st = gguf_tensor_set(in, x, 0, sizeof x, &err);
    if (st == GGUF_OK)
        st = gguf_backend_compute(cpu, g, &err);
    if (st == GGUF_OK)
        st = gguf_tensor_get(out, y, 0, sizeof y, &err);
    ok(st == GGUF_OK && y[0] == 31 && y[1] == 700 - 1e-7f,
       "a product with a tensor of the file: %g %g%s%s", (double)y[0],
       (double)y[1], st ? ": " : "", st ? err.message : "");
    gguf_galloc_destroy(mem);
    gguf_backend_destroy(cpu);
    gguf_ctx_destroy(ctx);
    gguf_file_close(file);
    fix_fini(&f);
}

/* ---- refused files ---- */

static void check_refused(void)
{
    static const uint64_t ne5[] = { 1, 1, 1, 1, 2, 0 }, ne1[] = { 32, 0 };
    struct gguf_error err;
    struct gguf_ctx *ctx;
    struct fix f;
    make_file(&f, false, 0, ne5, GGUF_DTYPE_F32);
    struct gguf_file *file = open_file(&f, 0);
    ok(create_ctx(&ctx, file, GGUF_CTX_DATA_NONE, 0, NULL, &err) ==
               GGUF_E_UNSUPPORTED &&
           !ctx && strstr(err.message, "'more': 5 dimensions"),
       "%s", err.message);
    gguf_file_close(file);
    fix_fini(&f);
    make_file(&f, false, 0, ne1, 12345);
    file = open_file(&f, 0);
    ok(create_ctx(&ctx, file, GGUF_CTX_DATA_COPY, 0, NULL, &err) ==
               GGUF_E_UNSUPPORTED &&
           !ctx && strstr(err.message, "'more': type 12345"),
       "%s", err.message);
    ok(create_ctx(&ctx, file, (enum gguf_ctx_data)9, 0, NULL, &err) ==
               GGUF_E_INVALID &&
           !ctx,
       "%s", err.message);
    ok(gguf_ctx_create_from_file(&ctx, NULL, NULL, &err) == GGUF_E_INVALID &&
           !ctx,
       "%s", err.message);
    gguf_file_close(file);
    fix_fini(&f);
    make_file(&f, false, 0, NULL, 0);
    file = open_file(&f, 0);
    ok(create_ctx(&ctx, file, GGUF_CTX_DATA_COPY, SIZE_MAX, NULL, &err) ==
               GGUF_E_NOMEM &&
           !ctx,
       "%s", err.message);
    struct failalloc fa;
    bool good = true;
    unsigned n = 0;
    for (;; n++) {
        const struct gguf_allocator *a = failalloc_init(&fa, n);
        enum gguf_status st =
            create_ctx(&ctx, file, GGUF_CTX_DATA_COPY, 0, a, &err);
        if (st == GGUF_OK)
            gguf_ctx_destroy(ctx);
        good = good && fa.live == 0 &&
               st == (fa.calls > n ? GGUF_E_NOMEM : GGUF_OK);
        if (fa.calls <= n)
            break;
    }
    ok(good && n >= 2, "each of %u allocations failed once", n);
    gguf_file_close(file);
    fix_fini(&f);
}

/* ---- through a reader ---- */

static enum gguf_status read_memory(void *user, uint64_t off, void *dst,
                                    size_t size, struct gguf_error *e)
{
    const struct fix *f = user;
    (void)e;
    memcpy(dst, f->data + off, size);
    return GGUF_OK;
}

static void check_reader(void)
{
    struct gguf_reader r = GGUF_INIT(struct gguf_reader);
    struct gguf_error err;
    struct gguf_file *file;
    struct gguf_ctx *ctx;
    struct fix f;
    make_file(&f, true, 0, NULL, 0);
    r.size = f.size;
    r.read_at = read_memory;
    r.user = &f;
    if (gguf_file_open_reader(&file, &r, NULL, NULL, &err) != GGUF_OK) {
        ok(0, "%s", err.message);
        return;
    }
    ok(create_ctx(&ctx, file, GGUF_CTX_DATA_MAP, 0, NULL, &err) ==
               GGUF_E_UNSUPPORTED &&
           !ctx,
       "the file is not mapped: %s", err.message);
    ok(create_ctx(&ctx, file, GGUF_CTX_DATA_COPY, 0, NULL, &err) == GGUF_OK &&
           has_data(gguf_ctx_find_tensor(ctx, "floats"), 0) &&
           has_data(gguf_ctx_find_tensor(ctx, "blocks"), 1),
       "copies through a reader");
    gguf_ctx_destroy(ctx);
    gguf_file_close(file);
    fix_fini(&f);
}

int main(void)
{
    const union {
        uint16_t number;
        uint8_t first;
    } one = { 1 };
    make_blocks();
    check_tensors("no data", false, 0, GGUF_CTX_DATA_NONE, 0);
    check_tensors("a copy", false, 0, GGUF_CTX_DATA_COPY, 0);
    check_tensors("a copy, big-endian", true, 0, GGUF_CTX_DATA_COPY, 0);
    check_tensors("a copy, off alignment", false, 1, GGUF_CTX_DATA_COPY, 0);
    if (one.first) {
        check_tensors("mapped", false, 0, GGUF_CTX_DATA_MAP, N_TENSORS);
        check_tensors("mapped, off alignment", false, 2, GGUF_CTX_DATA_MAP, 2);
        check_tensors("mapped, big-endian", true, 0, GGUF_CTX_DATA_MAP, 0);
    } else {
        check_tensors("mapped", true, 0, GGUF_CTX_DATA_MAP, N_TENSORS - 1);
        check_tensors("mapped, little-endian", false, 0, GGUF_CTX_DATA_MAP, 1);
    }
    check_compute(GGUF_CTX_DATA_MAP);
    check_compute(GGUF_CTX_DATA_COPY);
    check_refused();
    check_reader();
    return done_testing();
}
