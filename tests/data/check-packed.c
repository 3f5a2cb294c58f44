/* SPDX-License-Identifier: MIT */
/* check-packed.c - packed weights, compared with double precision
 *
 * Codes, zero points and scales are drawn, packed into words as each form's
 * authors pack them (number after number, each by its index), and read back.
 * Expected values are computed from the drawn numbers.
 */
#include "config.h"
#include "base/bytes.h"
#include "data/packed.h"
#include "dtype/block.h"
#include "kern/cpu_features.h"
#include "tests/stfile.h"
#include "tests/tap.h"

#include <math.h>

enum { ROWS = 32, COLS = 64, MOST_GROUPS = COLS };

static struct gg_codec_kern codec[GG_N_DTYPES];

/* ---- a file in memory ---- */

static struct stfile file;

static void begin_file(void)
{
    stfile_begin(&file);
}

static uint8_t *add_tensor(const char *name, const char *type,
                           const char *shape, size_t size)
{
    return stfile_add(&file, name, type, shape, size);
}

static enum gguf_status open_it(struct gg_safetensors **s,
                                const struct gg_packed_config *config,
                                struct gguf_error *e)
{
    const size_t size = stfile_end(&file);
    gguf_error_clear(e);
    enum gguf_status st =
        gg_safetensors_open_memory(s, file.bytes, size, NULL, codec, NULL, e);
    if (st == GGUF_OK)
        st = gg_packed_join(*s, config, e);
    if (st != GGUF_OK) {
        gg_safetensors_close(*s);
        *s = NULL;
    }
    return st;
}

/* ---- a weight ---- */

struct weight {
    unsigned bits;
    int n_groups;
    int code[ROWS][COLS], zero[ROWS][MOST_GROUPS], group[COLS];
    float scale[ROWS][MOST_GROUPS]; /* exact in F16 */
};

static void draw_weight(struct weight *w, unsigned bits, int n_groups,
                        bool mixed)
{
    const uint64_t most = 1u << bits;
    w->bits = bits;
    w->n_groups = n_groups;
    for (int c = 0; c < COLS; c++)
        w->group[c] =
            mixed ? (int)rnd_below((uint64_t)n_groups) : c / (COLS / n_groups);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLS; c++)
            w->code[r][c] = (int)rnd_below(most);
        for (int g = 0; g < n_groups; g++) {
            w->zero[r][g] = (int)rnd_below(most);
            w->scale[r][g] = (float)(1 + rnd_below(1023)) * 0x1p-14f;
        }
    }
}

/* Write v in `bits' bits at bit `at' of a word. */
static void put_bits(uint8_t *word, unsigned bits, unsigned at, int v)
{
    gg_bytes_store32le(word,
                       gg_bytes_load32le(word) | (uint32_t)v << (bits * at));
}

static uint16_t half_bits(float x)
{
    uint8_t b[2];
    codec[gg_dtype_index(GGUF_DTYPE_F16)].encode(&x, b, 1, 1, NULL);
    return gg_bytes_load16le(b);
}

/* Does the list's tensor have the weight's numbers, as a whole and in pieces?
 * Zero points are zero[][] + plus. */
static bool is_weight(const struct gg_safetensors *s, const char *name,
                      const struct weight *w, int plus)
{
    static float x[ROWS * COLS], piece[7];
    struct gg_data_rows rows;
    struct gg_data_info info;
    const uint32_t i =
        gg_safetensors_find(s, (struct gguf_str){ name, strlen(name) });
    if (i == GG_INDEX_NONE)
        return false;
    gg_data_info(&s->list, i, &info);
    if (info.n_dims != 2 || info.ne[0] != COLS || info.ne[1] != ROWS ||
        gg_data_bytes(&s->list, i) || gg_data_rows(&s->list, i, &rows, NULL))
        return false;
    gg_data_read(&rows, 0, ROWS * COLS, x);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) {
            const int g = w->group[c];
            const double want = (double)w->scale[r][g] *
                                (w->code[r][c] - w->zero[r][g] - plus);
            if (x[r * COLS + c] != (float)want) {
                printf("# row %d, column %d: %g, not %g\n", r, c,
                       (double)x[r * COLS + c], want);
                return false;
            }
        }
    gg_data_read(&rows, 3 * COLS + 5, 7, piece);
    return !memcmp(piece, x + 3 * COLS + 5, sizeof piece);
}

/* ---- GPTQ, AWQ ---- */

static void put_scales(const struct weight *w, bool groups_first,
                       const char *name)
{
    char shape[40];
    sprintf(shape, groups_first ? "%d,%d" : "%2$d,%1$d", w->n_groups, ROWS);
    uint8_t *p =
        add_tensor(name, "F16", shape, (size_t)(2 * ROWS * w->n_groups));
    for (int r = 0; r < ROWS; r++)
        for (int g = 0; g < w->n_groups; g++)
            gg_bytes_store16le(
                p + 2 * (groups_first ? g * ROWS + r : r * w->n_groups + g),
                half_bits(w->scale[r][g]));
}

/* Write number no of a row of words that lie step bytes apart. With 3 bits,
 * three words hold 10 numbers, one across two words, 10, one across two words,
 * and 10. */
static void put_code(uint8_t *words, size_t step, unsigned bits, int no, int v)
{
    if (bits == 3) {
        uint8_t *w = words + (size_t)(no / 32 * 3) * step;
        const int k = no % 32;
        for (int b = 0; b < 3; b++) {
            const int at = 3 * k + b;
            uint8_t *p = w + (size_t)(at / 32) * step;
            gg_bytes_store32le(p, gg_bytes_load32le(p) | (uint32_t)(v >> b & 1)
                                                             << (at % 32));
        }
        return;
    }
    const int per = 32 / (int)bits;
    put_bits(words + (size_t)(no / per) * step, bits, (unsigned)(no % per), v);
}

static void put_gptq(const struct weight *w, bool index)
{
    const int down = COLS * (int)w->bits / 32,
              along = ROWS * (int)w->bits / 32;
    char shape[40];
    begin_file();
    sprintf(shape, "%d,%d", down, ROWS);
    uint8_t *q =
        add_tensor("x.qweight", "I32", shape, (size_t)(4 * down * ROWS));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            put_code(q + 4 * r, 4 * ROWS, w->bits, c, w->code[r][c]);
    sprintf(shape, "%d,%d", w->n_groups, along);
    uint8_t *z = add_tensor("x.qzeros", "I32", shape,
                            (size_t)(4 * w->n_groups * along));
    for (int g = 0; g < w->n_groups; g++)
        for (int r = 0; r < ROWS; r++)
            put_code(z + 4 * g * along, 4, w->bits, r, w->zero[r][g]);
    put_scales(w, true, "x.scales");
    if (!index)
        return;
    sprintf(shape, "%d", COLS);
    uint8_t *p = add_tensor("x.g_idx", "I32", shape, 4 * COLS);
    for (int c = 0; c < COLS; c++)
        gg_bytes_store32le(p + 4 * c, (uint32_t)w->group[c]);
}

static void put_awq(const struct weight *w)
{
    /* AutoAWQ packs column order[i] of eight at place i */
    static const int order[8] = { 0, 2, 4, 6, 1, 3, 5, 7 };
    char shape[40];
    begin_file();
    sprintf(shape, "%d,%d", COLS, ROWS / 8);
    uint8_t *q = add_tensor("x.qweight", "I32", shape, 4 * COLS * ROWS / 8);
    for (int c = 0; c < COLS; c++)
        for (int word = 0; word < ROWS / 8; word++)
            for (unsigned i = 0; i < 8; i++)
                put_bits(q + 4 * (c * (ROWS / 8) + word), 4, i,
                         w->code[word * 8 + order[i]][c]);
    sprintf(shape, "%d,%d", w->n_groups, ROWS / 8);
    uint8_t *z = add_tensor("x.qzeros", "I32", shape,
                            (size_t)(4 * w->n_groups * ROWS / 8));
    for (int g = 0; g < w->n_groups; g++)
        for (int word = 0; word < ROWS / 8; word++)
            for (unsigned i = 0; i < 8; i++)
                put_bits(z + 4 * (g * (ROWS / 8) + word), 4, i,
                         w->zero[word * 8 + order[i]][g]);
    put_scales(w, true, "x.scales");
}

static void check_columns(void)
{
    static struct weight w;
    struct gg_safetensors *s;
    struct gguf_error e;
    struct gg_packed_config config = { .form = GG_PACKED_GPTQ };
    for (unsigned bits = 2; bits <= 8; bits += bits < 4 ? 1 : 4)
        for (int k = 0; k < 4; k++) {
            const bool v1 = k & 1, index = k & 2;
            draw_weight(&w, config.bits = bits, 4, index);
            put_gptq(&w, index);
            config.zero_plus_1 = v1;
            /* unused: columns are not in the order of groups */
            config.group = k == 0 ? COLS / 4 : 0;
            const bool good = open_it(&s, &config, &e) == GGUF_OK &&
                              is_weight(s, "x.weight", &w, v1);
            ok(good, "gptq of %u bits%s%s %s", bits,
               v1 ? ", zeros less 1" : "", index ? ", groups of columns" : "",
               e.message);
            gg_safetensors_close(s);
        }
    config = (struct gg_packed_config){ .form = GG_PACKED_AWQ, .bits = 4 };
    draw_weight(&w, 4, 2, false);
    put_awq(&w);
    ok(open_it(&s, &config, &e) == GGUF_OK && is_weight(s, "x.weight", &w, 0),
       "awq %s", e.message);
    ok(s && s->tensor[0].is_part && s->tensor[1].is_part &&
           s->tensor[2].is_part && !s->tensor[3].is_part,
       "its sources are marked as parts");
    gg_safetensors_close(s);
}

/* ---- compressed-tensors ---- */

/* zeros: drawn zero points; false: half of the range. */
static void put_words(struct weight *w, bool zeros)
{
    const int per = 32 / (int)w->bits;
    char shape[40];
    begin_file();
    sprintf(shape, "%d,%d", ROWS, COLS / per);
    uint8_t *q =
        add_tensor("x.weight_packed", "I32", shape, 4 * ROWS * COLS / per);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            put_bits(q + 4 * (r * (COLS / per) + c / per), w->bits,
                     (unsigned)(c % per), w->code[r][c]);
    put_scales(w, false, "x.weight_scale");
    uint8_t *p = add_tensor("x.weight_shape", "I64", "2", 16);
    gg_bytes_store64le(p, ROWS);
    gg_bytes_store64le(p + 8, COLS);
    for (int r = 0; r < ROWS && !zeros; r++)
        for (int g = 0; g < w->n_groups; g++)
            w->zero[r][g] = 1 << (w->bits - 1);
    if (!zeros)
        return;
    sprintf(shape, "%d,%d", ROWS / per, w->n_groups);
    uint8_t *z = add_tensor("x.weight_zero_point", "I32", shape,
                            (size_t)(4 * w->n_groups * ROWS / per));
    for (int g = 0; g < w->n_groups; g++)
        for (int r = 0; r < ROWS; r++)
            put_bits(z + 4 * (r / per * w->n_groups + g), w->bits,
                     (unsigned)(r % per), w->zero[r][g]);
}

static void put_bytes(struct weight *w, bool zeros)
{
    char shape[40];
    begin_file();
    sprintf(shape, "%d,%d", ROWS, COLS);
    uint8_t *q = add_tensor("x.weight", "I8", shape, ROWS * COLS);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            q[r * COLS + c] = (uint8_t)(w->code[r][c] - 128);
    put_scales(w, false, "x.weight_scale");
    for (int r = 0; r < ROWS && !zeros; r++)
        for (int g = 0; g < w->n_groups; g++)
            w->zero[r][g] = 128;
    if (!zeros)
        return;
    sprintf(shape, "%d,%d", ROWS, w->n_groups);
    uint8_t *z = add_tensor("x.weight_zero_point", "I8", shape,
                            (size_t)(ROWS * w->n_groups));
    for (int r = 0; r < ROWS; r++)
        for (int g = 0; g < w->n_groups; g++)
            z[r * w->n_groups + g] = (uint8_t)(w->zero[r][g] - 128);
}

static void check_compressed(void)
{
    static struct weight w;
    struct gg_safetensors *s;
    struct gguf_error e;
    struct gg_packed_config config = { .form = GG_PACKED_WORDS };
    for (unsigned bits = 4; bits <= 8; bits *= 2)
        for (int k = 0; k < 4; k++) {
            draw_weight(&w, bits, k & 2 ? 1 : 8, false);
            put_words(&w, k & 1);
            ok(open_it(&s, &config, &e) == GGUF_OK &&
                   is_weight(s, "x.weight", &w, 0),
               "packed words of %u bits, %d groups%s %s", bits, w.n_groups,
               k & 1 ? ", zero points" : "", e.message);
            gg_safetensors_close(s);
        }
    config.form = GG_PACKED_INT;
    for (int k = 0; k < 4; k++) {
        draw_weight(&w, 8, k & 2 ? 1 : 4, false);
        put_bytes(&w, k & 1);
        ok(open_it(&s, &config, &e) == GGUF_OK &&
               is_weight(s, "x.weight", &w, 0),
           "bytes, %d groups%s %s", w.n_groups, k & 1 ? ", zero points" : "",
           e.message);
        gg_safetensors_close(s);
    }
    /* one scale for all */
    draw_weight(&w, 8, 1, false);
    put_bytes(&w, false);
    for (int r = 0; r < ROWS; r++)
        w.scale[r][0] = 0.25f;
    begin_file();
    uint8_t *q = add_tensor("x.weight", "I8", "32,64", ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++)
        q[i] = (uint8_t)(w.code[i / COLS][i % COLS] - 128);
    gg_bytes_store32le(add_tensor("x.weight_scale", "F32", "", 4),
                       gg_bytes_f32_bits(0.25f));
    ok(open_it(&s, &config, &e) == GGUF_OK && is_weight(s, "x.weight", &w, 0),
       "bytes, one scale %s", e.message);
    gg_safetensors_close(s);
}

/* bitsandbytes: a byte is a multiple of 1/127 of its row's scale. */
static void check_scb(void)
{
    static float x[ROWS * COLS];
    static int code[ROWS * COLS];
    const struct gg_packed_config config = { .form = GG_PACKED_SCB };
    float scale[ROWS];
    struct gg_safetensors *s;
    struct gguf_error e;
    struct gg_data_rows r;
    begin_file();
    uint8_t *q = add_tensor("x.weight", "I8", "32,64", ROWS * COLS);
    uint8_t *p = add_tensor("x.SCB", "F32", "32", 4 * ROWS);
    add_tensor("y.weight", "I8", "2,2",
               4); /* no scales: not a packed weight */
    for (int i = 0; i < ROWS; i++) {
        scale[i] = (float)(1 + rnd_below(1000)) * 0x1p-7f;
        gg_bytes_store32le(p + 4 * i, gg_bytes_f32_bits(scale[i]));
    }
    for (int i = 0; i < ROWS * COLS; i++)
        q[i] = (uint8_t)(code[i] = (int)rnd_below(255) - 127);
    bool good = open_it(&s, &config, &e) == GGUF_OK && s->tensor[1].is_part &&
                gg_data_rows(&s->list, 0, &r, &e) == GGUF_OK;
    if (good)
        gg_data_read(&r, 0, ROWS * COLS, x);
    for (int i = 0; good && i < ROWS * COLS; i++) {
        const double want = (double)scale[i / COLS] * code[i] / 127;
        good = fabs((double)x[i] - want) <= fabs(want) * 0x1p-22;
    }
    ok(good, "bytes of 127ths %s", e.message);
    gg_safetensors_close(s);
}

/* ---- MXFP4 ---- */

static const struct mxfp4 {
    enum gg_packed_form form;
    const char *codes, *shape, *exponents, *shape_exponents;
    uint32_t made; /* number of the weight in the list */
    int64_t ne[3];
} mxfp4_forms[] = {
    { GG_PACKED_MXFP4,
      "x_blocks",
      "2,3,4,16",
      "x_scales",
      "2,3,4",
      0,
      { 128, 3, 2 } },
    { GG_PACKED_MXFP4_PACK,
      "x.weight_packed",
      "6,64",
      "x.weight_scale",
      "6,4",
      2,
      { 128, 6, 1 } },
};

static void check_mxfp4(const struct mxfp4 *m)
{
    enum { N = 2 * 3 * 4 * 32 };
    static const double levels[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    static double want[N];
    static float x[N], y[N];
    static uint8_t blocks[N / 32 * 17];
    struct gg_packed_config config = { .form = m->form };
    struct gg_safetensors *s;
    struct gguf_error e;
    struct gg_data_rows r;
    begin_file();
    uint8_t *q = add_tensor(m->codes, "U8", m->shape, N / 2);
    uint8_t *p = add_tensor(m->exponents, "U8", m->shape_exponents, N / 32);
    for (int b = 0; b < N / 32; b++) {
        p[b] = (uint8_t)(b < 3 ? b : 100 + (int)rnd_below(50));
        for (int i = 0; i < 32; i++) {
            const int code = (int)rnd_below(16);
            q[16 * b + i / 2] |= (uint8_t)(code << 4 * (i % 2));
            want[32 * b + i] = ldexp(
                code & 8 ? -levels[code & 7] : levels[code & 7], p[b] - 127);
        }
    }
    bool good = open_it(&s, &config, &e) == GGUF_OK && s->n_tensors > m->made;
    const struct gg_safetensors_tensor *t = good ? &s->tensor[m->made] : NULL;
    good = good && t->n_dims == (m->ne[2] > 1 ? 3 : 2) &&
           !memcmp(t->ne, m->ne, sizeof m->ne) && t->size == sizeof blocks &&
           gg_data_rows(&s->list, m->made, &r, &e) == GGUF_OK && r.blocks;
    ok(good, "blocks and exponents are one tensor %s", e.message);
    if (!good)
        return;
    gg_data_read(&r, 0, N, x);
    for (int i = 0; i < N; i++)
        good = good && (double)x[i] == want[i];
    ok(good, "its numbers, the smallest, too");
    r.blocks(&r, 0, N, blocks);
    codec[gg_dtype_index(GGUF_DTYPE_MXFP4)].decode(blocks, y, N);
    for (int b = 0; b < N / 32; b++)
        good = good && blocks[17 * b] == file.data[N / 2 + b];
    ok(good && !memcmp(x, y, sizeof x), "its blocks, with the same exponents");
    gg_safetensors_close(s);
}

/* ---- refused weights ---- */

static void check_refusal(enum gg_packed_form form, enum gguf_status want,
                          const char *word)
{
    const struct gg_packed_config config = { .form = form, .bits = 4 };
    struct gg_safetensors *s = NULL;
    struct gguf_error e;
    ok(open_it(&s, &config, &e) == want && strstr(e.message, word) &&
           strstr(e.message, "'x.") && !s,
       "refused: %s", e.message);
}

static void check_refused(void)
{
    static struct weight w;
    begin_file();
    add_tensor("x.qweight", "I32", "8,24", 768);
    check_refusal(GG_PACKED_GPTQ, GGUF_E_TENSOR, "missing");
    begin_file();
    add_tensor("x.qweight", "F32", "8,24", 768);
    add_tensor("x.qzeros", "I32", "4,3", 48);
    add_tensor("x.scales", "F16", "4,24", 192);
    check_refusal(GG_PACKED_GPTQ, GGUF_E_TENSOR, "32-bit words");
    begin_file();
    add_tensor("x.qweight", "I32", "8,24", 768);
    add_tensor("x.qzeros", "I32", "4,4", 64);
    add_tensor("x.scales", "F16", "4,24", 192);
    check_refusal(GG_PACKED_GPTQ, GGUF_E_TENSOR, "zero points");
    begin_file();
    add_tensor("x.qweight", "I32", "8,24", 768);
    add_tensor("x.qzeros", "I32", "4,3", 48);
    add_tensor("x.scales", "F16", "4,23", 184);
    check_refusal(GG_PACKED_GPTQ, GGUF_E_TENSOR, "rows do not fit");
    begin_file();
    add_tensor("x.qweight", "I32", "8,24", 768);
    add_tensor("x.qzeros", "I32", "100,3", 1200);
    add_tensor("x.scales", "F16", "100,24", 4800);
    check_refusal(GG_PACKED_GPTQ, GGUF_E_TENSOR, "groups");
    begin_file();
    add_tensor("x.qweight", "I32", "8,24", 768);
    add_tensor("x.qzeros", "I32", "4,3", 48);
    add_tensor("x.scales", "U8", "4,24", 96);
    check_refusal(GG_PACKED_GPTQ, GGUF_E_TENSOR, "not numbers");
    draw_weight(&w, 4, 4, false);
    put_gptq(&w, true);
    gg_bytes_store32le(file.data + file.n_data - 4, 4);
    check_refusal(GG_PACKED_GPTQ, GGUF_E_TENSOR, "without a scale");
    put_gptq(&w, true);
    gg_bytes_store32le(file.data + file.n_data - 4, UINT32_MAX);
    check_refusal(GG_PACKED_GPTQ, GGUF_E_TENSOR, "without a scale");
    draw_weight(&w, 4, 8, false);
    put_words(&w, false);
    gg_bytes_store64le(file.data + file.n_data - 8, COLS + 100);
    check_refusal(GG_PACKED_WORDS, GGUF_E_TENSOR, "words");
    put_words(&w, false);
    gg_bytes_store64le(file.data + file.n_data - 16, 0);
    check_refusal(GG_PACKED_WORDS, GGUF_E_TENSOR, "words");
    begin_file();
    add_tensor("x._blocks", "U8", "2,16", 32);
    add_tensor("x._scales", "U8", "3", 3);
    check_refusal(GG_PACKED_MXFP4, GGUF_E_TENSOR, "exponents");
    begin_file();
    add_tensor("x.weight_packed", "U8", "2,16", 32);
    add_tensor("x.weight_scale", "U8", "1,2", 2);
    check_refusal(GG_PACKED_MXFP4_PACK, GGUF_E_TENSOR, "exponents");
    begin_file();
    add_tensor("x.weight_packed", "U8", "2,16", 32);
    check_refusal(GG_PACKED_MXFP4_PACK, GGUF_E_TENSOR, "missing");
}

int main(void)
{
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    check_columns();
    check_compressed();
    check_scb();
    for (size_t i = 0; i < sizeof mxfp4_forms / sizeof *mxfp4_forms; i++)
        check_mxfp4(&mxfp4_forms[i]);
    check_refused();
    return done_testing();
}
