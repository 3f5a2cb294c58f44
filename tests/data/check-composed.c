/* SPDX-License-Identifier: MIT */
/* check-composed.c - tensors composed of parts of others, compared with loops
 * over indices */
#include "config.h"
#include "base/mem.h"
#include "data/composed.h"
#include "gguf/dtype.h"
#include "tests/tap.h"

enum { N = 240, N_BASE = 3 };

/* A list of three tensors of N numbers: 1000 i, 1000 i + 1, ... */
static size_t base_n(const struct gg_data *d)
{
    (void)d;
    return N_BASE;
}

static void base_info(const struct gg_data *d, size_t i,
                      struct gg_data_info *out)
{
    (void)d;
    (void)i;
    *out = (struct gg_data_info){ .name = { "x", 1 },
                                  .dtype = GGUF_DTYPE_F32,
                                  .n_dims = 1,
                                  .ne = { N, 1, 1, 1, 1, 1, 1, 1 },
                                  .n_elements = N,
                                  .size = 4 * N };
}

static void base_read(const struct gg_data_rows *r, uint64_t first, uint64_t n,
                      float *dst)
{
    const float *begin = r->source;
    for (uint64_t k = 0; k < n; k++)
        dst[k] = *begin + (float)(first + k);
}

static enum gguf_status base_rows(const struct gg_data *d, size_t i,
                                  struct gg_data_rows *out,
                                  struct gguf_error *err)
{
    static const float begin[N_BASE] = { 0, 1000, 2000 };
    (void)d;
    (void)err;
    *out = (struct gg_data_rows){ .read = base_read, .source = &begin[i] };
    return GGUF_OK;
}

static const uint8_t *base_bytes(const struct gg_data *d, size_t i)
{
    static const uint8_t there[N_BASE];
    (void)d;
    return &there[i];
}

static const struct gg_data_ops ops = { .n_tensors = base_n,
                                        .info = base_info,
                                        .rows = base_rows,
                                        .bytes = base_bytes };
static const struct gg_data base = { &ops };

/* A random part: all of a tensor in a random shape, with its dimensions in
 * random order, and sometimes only a piece of one; or zeros. */
static void draw_part(struct gg_composed_part *p)
{
    /* 240 elements together */
    static const uint64_t sizes[] = { 2, 3, 4, 5, 2 };
    uint64_t step[5], s = 1;
    unsigned order[5] = { 0, 1, 2, 3, 4 };
    *p = (struct gg_composed_part){ .from = rnd_below(N_BASE), .n_dims = 5 };
    if (!rnd_below(6)) {
        p->zero = true;
        p->n_dims = 1;
        p->ne[0] = 1 + rnd_below(N);
        return;
    }
    for (int d = 0; d < 5; d++) {
        step[d] = s;
        s *= sizes[d];
    }
    if (rnd_below(4))
        for (int d = 4; d > 0; d--) {
            const uint64_t k = rnd_below((uint64_t)d + 1);
            const unsigned t = order[d];
            order[d] = order[k];
            order[k] = t;
        }
    for (int d = 0; d < 5; d++) {
        p->ne[d] = sizes[order[d]];
        p->step[d] = step[order[d]];
    }
    if (rnd_below(2)) {
        const uint64_t d = rnd_below(5), from = rnd_below(p->ne[d]);
        p->first = from * p->step[d];
        p->ne[d] -= from;
    }
}

/* Its elements, one by one. */
static size_t expand_list(const struct gg_composed_part *p, float *x)
{
    size_t n = 0;
    while (p->zero && n < p->ne[0])
        x[n++] = 0;
    for (uint64_t e = 0; e < p->ne[4]; e++)
        for (uint64_t d = 0; d < p->ne[3]; d++)
            for (uint64_t c = 0; c < p->ne[2]; c++)
                for (uint64_t b = 0; b < p->ne[1]; b++)
                    for (uint64_t a = 0; a < p->ne[0]; a++)
                        x[n++] = (float)(1000 * p->from + p->first +
                                         a * p->step[0] + b * p->step[1] +
                                         c * p->step[2] + d * p->step[3] +
                                         e * p->step[4]);
    return n;
}

static void plus_half(float *x, size_t n)
{
    while (n)
        x[--n] += 0.5f;
}

static void check_random(void)
{
    static float want[8 * N], got[8 * N];
    int good = 0, tried = 400;
    for (int k = 0; k < tried; k++) {
        struct gg_composed_part parts[8];
        const size_t n_parts = 1 + rnd_below(8);
        size_t n = 0;
        for (size_t i = 0; i < n_parts; i++) {
            draw_part(&parts[i]);
            const size_t more = expand_list(&parts[i], want + n);
            if (k % 3 == 0 && !parts[i].zero)
                plus_half(want + n, more);
            n += more;
        }
        struct gg_composed_tensor t = { .name = { "t", 1 },
                                        .dtype = GGUF_DTYPE_F32,
                                        .n_dims = 1,
                                        .ne = { (int64_t)n, 1, 1, 1 },
                                        .change = k % 3 ? NULL : plus_half,
                                        .part = parts,
                                        .n_parts = n_parts };
        struct gg_data_composed m;
        struct gg_data_rows r;
        if (gg_data_composed_init(&m, &base, &t, 1, NULL, NULL) != GGUF_OK ||
            gg_data_rows(&m.list, 0, &r, NULL) != GGUF_OK)
            break;
        for (size_t at = 0; at < n;) { /* piece by piece */
            size_t piece = 1 + rnd_below(n - at);
            memset(got, 0xff, sizeof got);
            gg_data_read(&r, at, piece, got);
            if (memcmp(got, want + at, piece * sizeof *got) != 0)
                break;
            at += piece;
            good += at == n;
        }
        gg_data_composed_fini(&m);
    }
    ok(good == tried, "%d of %d tensors of random views", good, tried);
}

/* Products of a whole tensor and another in reverse order of its halves. */
static void check_product(void)
{
    enum { HALF = N / 2 };
    struct gg_composed_part parts[] = {
        { .from = 1, .n_dims = 1, .ne = { N }, .step = { 1 } },
        { .from = 2, .n_dims = 2, .ne = { 2, HALF }, .step = { HALF, 1 } },
    };
    struct gg_composed_tensor t = { .name = { "t", 1 },
                                    .dtype = GGUF_DTYPE_F32,
                                    .n_dims = 1,
                                    .ne = { N, 1, 1, 1 },
                                    .part = parts,
                                    .n_parts = 2,
                                    .product = true };
    struct gg_data_composed m;
    struct gg_data_rows r;
    struct gguf_error e;
    float got[N];
    int n_good = 0;
    bool good =
        gg_data_composed_init(&m, &base, &t, 1, NULL, NULL) == GGUF_OK &&
        gg_data_rows(&m.list, 0, &r, NULL) == GGUF_OK;
    for (uint64_t at = 0, n = 7; good && at < N; at += n) {
        n = at + n > N ? N - at : n;
        gg_data_read(&r, at, n, got + at);
    }
    for (int i = 0; good && i < N; i++)
        n_good +=
            got[i] == (float)(1000 + i) * (float)(2000 + i / 2 + i % 2 * HALF);
    ok(n_good == N && !r.blocks && !gg_data_bytes(&m.list, 0),
       "%d of %d products", n_good, N);
    gg_data_composed_fini(&m);
    parts[1].ne[1]--;
    ok(gg_data_composed_init(&m, &base, &t, 1, NULL, &e) == GGUF_E_SHAPE,
       "a factor of fewer elements: %s", e.message);
    parts[1].ne[1]++;
    parts[0].ne[0] -= 2;
    ok(gg_data_composed_init(&m, &base, &t, 1, NULL, &e) == GGUF_E_SHAPE,
       "or the first: %s", e.message);
}

/* Only a whole tensor without changes has bytes. */
static void check_bytes(void)
{
    struct gg_composed_part whole = {
        .from = 1, .n_dims = 3, .ne = { 6, 10, 4 }, .step = { 1, 6, 60 }
    };
    static const struct {
        const char *what;
        uint64_t first, ne0, step1;
        gg_composed_fn *change;
        uint32_t dtype;
        bool bytes;
    } rows[] = {
        { "the whole", 0, 6, 6, NULL, GGUF_DTYPE_F32, true },
        { "a piece", 1, 5, 6, NULL, GGUF_DTYPE_F32, false },
        { "another order", 0, 6, 0, NULL, GGUF_DTYPE_F32, false },
        { "changed", 0, 6, 6, plus_half, GGUF_DTYPE_F32, false },
        { "of another type", 0, 6, 6, NULL, GGUF_DTYPE_F16, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_composed_part p = whole;
        struct gg_data_composed m;
        struct gg_data_info info;
        p.first = rows[i].first;
        p.ne[0] = rows[i].ne0;
        p.step[1] = rows[i].step1;
        struct gg_composed_tensor t = { .name = { "t", 1 },
                                        .dtype = rows[i].dtype,
                                        .n_dims = 2,
                                        .ne = { (int64_t)p.ne[0], 40, 1, 1 },
                                        .change = rows[i].change,
                                        .part = &p,
                                        .n_parts = 1 };
        bool good =
            gg_data_composed_init(&m, &base, &t, 1, NULL, NULL) == GGUF_OK;
        gg_data_info(&m.list, 0, &info);
        ok(good &&
               gg_data_bytes(&m.list, 0) ==
                   (rows[i].bytes ? gg_data_bytes(&base, 1) : NULL) &&
               info.n_elements == rows[i].ne0 * 40 &&
               info.size ==
                   info.n_elements * (rows[i].dtype == GGUF_DTYPE_F32 ? 4 : 2),
           "bytes of %s", rows[i].what);
        gg_data_composed_fini(&m);
    }
}

static void check_refused(void)
{
    static const struct {
        const char *what;
        struct gg_composed_part p;
        int64_t ne;
    } rows[] = {
        { "one element too many",
          { .n_dims = 1, .ne = { N + 1 }, .step = { 1 } },
          N + 1 },
        { "first",
          { .first = N, .n_dims = 1, .ne = { 1 }, .step = { 1 } },
          1 },
        { "a step", { .n_dims = 2, .ne = { 2, 2 }, .step = { 1, N } }, 4 },
        { "products",
          { .n_dims = 2, .ne = { 2, 1ull << 63 }, .step = { 1, 0 } },
          4 },
        { "steps that overflow",
          { .n_dims = 2, .ne = { 2, 3 }, .step = { 1, 1ull << 63 } },
          6 },
        { "nothing", { .n_dims = 1, .ne = { 0 }, .step = { 1 } }, 0 },
        { "no dimensions", { .n_dims = 0 }, 1 },
        { "too few", { .n_dims = 1, .ne = { 5 }, .step = { 1 } }, 6 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gg_composed_part p = rows[i].p;
        struct gg_data_composed m;
        struct gguf_error e;
        struct gg_composed_tensor t = { .name = { "t", 1 },
                                        .dtype = GGUF_DTYPE_F32,
                                        .n_dims = 1,
                                        .ne = { rows[i].ne, 1, 1, 1 },
                                        .part = &p,
                                        .n_parts = 1 };
        ok(gg_data_composed_init(&m, &base, &t, 1, NULL, &e) == GGUF_E_SHAPE,
           "%s: %s", rows[i].what, e.message);
    }
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    check_random();
    check_product();
    check_bytes();
    check_refused();
    return done_testing();
}
