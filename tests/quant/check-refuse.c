/* SPDX-License-Identifier: MIT */
/* check-refuse.c - requests that jobs refuse, without leaving a file, and
 * those that they carry out if told to */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "gguf/stats.h"
#include "tests/fix.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { Q4_K_R4 = 212 }; /* type of ik_llama.cpp */

static void check_nonfinite(void)
{
    static const struct {
        int tensor;
        size_t where;
        float value;
        const char *want;
    } cases[] = {
        { 4, 64 * 256 + 255, NAN,
          "blk.2.attn_v.weight': NaN at row 64, "
          "column 255" },
        { 8, 2 * 300 * 512 + 17 * 512 + 3, INFINITY,
          "blk.2.ffn_down_exps.weight': infinity at row 617, column 3" },
        { 2, 0, -INFINITY, "output.weight': infinity at row 0, column 0" },
        { 1, 7, NAN, "output_norm.weight': NaN at row 0, column 7" },
    };
    const char *in = in_dir("nan.gguf"), *out = in_dir("o.gguf");
    struct gguf_error err;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        write_model(in, cases[i].tensor, cases[i].where, cases[i].value);
        int before = n_entries();
        for (unsigned n = 1; n < 4; n++) {
            struct setup s = SETUP("Q8_0");
            s.threads = n;
            struct gguf_file *f;
            uint64_t off = 0;
            if (gguf_file_open(&f, in, NULL, NULL) == GGUF_OK)
                off = gguf_file_data_off(f) +
                      gguf_file_tensor(f, (size_t)cases[i].tensor)->off +
                      cases[i].where * (model_tensors[cases[i].tensor].type ==
                                                GGUF_DTYPE_F32
                                            ? 4
                                            : 2);
            gguf_file_close(f);
            ok(quantize(in, out, s, &err) == GGUF_E_NONFINITE &&
                   strstr(err.message, cases[i].want) && err.offset == off &&
                   n_entries() == before,
               "%u threads: %s", n, err.message);
        }
        struct setup s = SETUP("Q8_0");
        s.p.nonfinite = GGUF_NONFINITE_ZERO;
        ok(quantize(in, out, s, &err) == GGUF_OK, "taken as zero");
        s.p.nonfinite = GGUF_NONFINITE_KEEP;
        ok(quantize(in, out, s, &err) == GGUF_OK, "kept");
        remove(out);
    }
    /* with on_nonfinite zero, the output is that of an input with zeros */
    const char *zero = in_dir("zero.gguf"), *out2 = in_dir("o2.gguf");
    write_model(in, 4, 100, NAN);
    write_model(zero, 4, 100, 0);
    struct setup s = SETUP("Q4_K_M");
    s.p.nonfinite = GGUF_NONFINITE_ZERO;
    ok(quantize(in, out, s, &err) == GGUF_OK &&
           quantize(zero, out2, s, &err) == GGUF_OK && same_files(out, out2),
       "NaN taken as zero gives the bytes of zero");
    remove(in);
    remove(zero);
    remove(out);
    remove(out2);
}

/* Element of a tensor of a file, as a float. */
static float get_element(const char *path, const char *name, uint64_t at)
{
    static float row[512];
    struct gguf_rows *rows = NULL;
    struct gguf_file *f = NULL;
    float x = -1;
    if (gguf_rows_create(&rows, NULL, NULL) == GGUF_OK &&
        gguf_file_open(&f, path, NULL, NULL) == GGUF_OK &&
        gguf_rows_decode(rows, f, gguf_file_tensor_find(f, name)->index,
                         at / 256 * 256, 256, row, NULL) == GGUF_OK)
        x = row[at % 256];
    gguf_file_close(f);
    gguf_rows_destroy(rows);
    return x;
}

/* Finite weights that overflow in the type that they get. */
static void check_too_large(void)
{
    static const struct {
        const char *type;
        float value;
        bool fits;
    } cases[] = {
        { "F16", 65504, true },       { "F16", -65519, true },
        { "F16", 65520, false },      { "F16", -1e6f, false },
        { "BF16", 3e38f, true },      { "F64", -3e38f, true },
        { "Q8_0", 8e6f, true },       { "Q8_0", -9e6f, false },
        { "Q4_0", 1e6f, false },      { "Q4_1", 3e6f, false },
        { "Q4_K_S", 3e38f, false },   { "Q2_K", -3e38f, false },
        { "TQ2_0", 7e4f, false },     { "IQ4_XS", 1e9f, false },
        { "MXFP4_MOE", 9e6f, false },
    };
    /* F32, and of the base type */
    static const char name[] = "blk.10.attn_v.weight";
    const char *in = in_dir("big.gguf"), *out = in_dir("o.gguf");
    struct gguf_error err;
    uint64_t at = 64 * 256 + 37;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct setup s = SETUP(cases[i].type);
        write_model(in, 3, at, cases[i].value);
        s.threads = (unsigned)i % 4;
        s.p.pure = strcmp(cases[i].type, "MXFP4_MOE") != 0;
        int before = n_entries();
        enum gguf_status st = quantize(in, out, s, &err);
        if (cases[i].fits) {
            float x = get_element(out, name, at);
            ok(st == GGUF_OK && fabsf(x / cases[i].value - 1) < 0.01f,
               "%g in %s is %g %s", (double)cases[i].value, cases[i].type,
               (double)x, err.message);
            remove(out);
            continue;
        }
        ok(st == GGUF_E_NONFINITE && n_entries() == before &&
               strstr(err.message, "at row 64, column 37 is too large for ") &&
               err.offset != GGUF_NO_OFFSET,
           "%s", err.message);
        s.p.nonfinite = GGUF_NONFINITE_ZERO;
        ok(quantize(in, out, s, &err) == GGUF_OK &&
               get_element(out, name, at) == 0 &&
               get_element(out, name, 37) != 0,
           "taken as zero %s", err.message);
        s.p.nonfinite = GGUF_NONFINITE_KEEP;
        ok(quantize(in, out, s, &err) == GGUF_OK &&
               !isfinite(get_element(out, name, at)),
           "kept %s", err.message);
        remove(out);
    }
    remove(in);
}

static void check_outputs(const char *in)
{
    const char *out = in_dir("o.gguf"), *link1 = in_dir("link.gguf");
    struct setup s = SETUP("Q8_0");
    struct gguf_error err;
    int before = n_entries();
    s.threads = 2;
    ok(quantize(in, in, s, &err) == GGUF_E_INVALID, "input as output: %s",
       err.message);
    ok(!link(in, link1) && quantize(in, link1, s, &err) == GGUF_E_INVALID,
       "another name of the input: %s", err.message);
    remove(link1);
    ok(quantize(in, in_dir("no/o.gguf"), s, &err) == GGUF_E_IO,
       "a folder that is not there: %s", err.message);
    ok(quantize(in, dir_name(), s, &err) == GGUF_E_INVALID, "a folder: %s",
       err.message);
    ok(n_entries() == before, "nothing is left");
    if (!spill(out, "precious", 8))
        abort();
    s.no_force = true;
    ok(quantize(in, out, s, &err) == GGUF_E_EXIST, "an existing file: %s",
       err.message);
    char *b = slurp(out, NULL);
    ok(b && !strcmp(b, "precious"), "it is untouched");
    free(b);
    s.no_force = false;
    ok(quantize(in, out, s, &err) == GGUF_OK, "it is replaced by force");
    remove(out);
}

static void check_inputs(const char *in)
{
    const char *bad = in_dir("bad.gguf"), *out = in_dir("o.gguf");
    struct setup s = SETUP("Q8_0");
    struct gguf_error err;
    size_t size;
    uint8_t *b = slurp(in, &size);
    static const struct {
        size_t keep;
        enum gguf_status want;
    } cuts[] = {
        { 3, GGUF_E_TRUNCATED },
        { 100, GGUF_E_TRUNCATED },
        { 20000, GGUF_E_TRUNCATED },
    };
    for (size_t i = 0; i < GG_LEN(cuts); i++) {
        if (!b || cuts[i].keep > size || !spill(bad, b, cuts[i].keep))
            abort();
        int before = n_entries();
        ok(quantize(bad, out, s, &err) == cuts[i].want &&
               err.offset != GGUF_NO_OFFSET && n_entries() == before,
           "%zu bytes only: %s (byte %llu)", cuts[i].keep, err.message,
           (unsigned long long)err.offset);
    }
    memcpy(b, "GGML", 4);
    if (!spill(bad, b, size))
        abort();
    ok(quantize(bad, out, s, &err) == GGUF_E_FORMAT && err.offset == 0,
       "a wrong magic: %s", err.message);
    ok(quantize(in_dir("none.gguf"), out, s, &err) == GGUF_E_IO ||
           err.status == GGUF_E_NOTFOUND,
       "no such file: %s", err.message);
    remove(bad);
    free(b);
}

static void check_choices(const char *in)
{
    const char *out = in_dir("o.gguf"), *out2 = in_dir("o2.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q8_0");
    struct gguf_quant_override o = { "attn_x", GGUF_DTYPE_Q4_0 };
    s.p.overrides = &o;
    s.p.n_overrides = 1;
    ok(quantize(in, out, s, &err) == GGUF_E_NOTFOUND &&
           strstr(err.message, "attn_x"),
       "a pattern without a tensor: %s", err.message);
    o.pattern = "output_norm";
    ok(quantize(in, out, s, &err) == GGUF_E_NOTFOUND,
       "a pattern for tensors that are never quantized: %s", err.message);
    o.pattern = "attn_(";
    ok(quantize(in, out, s, &err) == GGUF_E_FORMAT, "no pattern: %s",
       err.message);
    o.pattern = "attn_v";
    o.dtype = GGUF_DTYPE_Q8_K;
    s.p.recipe = NULL;
    o.dtype = 4;
    ok(quantize(in, out, s, &err) == GGUF_E_INVALID, "a removed type: %s",
       err.message);

    struct setup t = SETUP("Q8_0");
    ok(quantize(in, out, t, &err) == GGUF_OK, "once");
    t.type = "Q4_0";
    ok(quantize(out, out2, t, &err) == GGUF_E_UNSUPPORTED &&
           strstr(err.message, "already"),
       "twice is refused: %s", err.message);
    t.p.allow_requantize = 1;
    ok(quantize(out, out2, t, &err) == GGUF_OK, "unless asked for");

    /* types in the output */
    struct gguf_file *f;
    uint32_t v = 0;
    if (gguf_file_open(&f, out, NULL, &err) == GGUF_OK) {
        static const struct {
            const char *name;
            uint32_t type;
        } want[] = {
            { "output.weight", GGUF_DTYPE_Q8_0 },
            { "output_norm.weight", GGUF_DTYPE_F32 },
            { "table", GGUF_DTYPE_I32 },
            { "token_embd.weight", GGUF_DTYPE_Q8_0 },
            { "blk.2.attn_k.weight", GGUF_DTYPE_Q8_0 },
            { "blk.2.attn_q.bias", GGUF_DTYPE_F32 },
            { "blk.2.attn_q.weight", GGUF_DTYPE_F16 }, /* rows of 48 */
            { "blk.2.attn_v.weight", GGUF_DTYPE_Q8_0 },
            { "blk.2.ffn_down_exps.weight", GGUF_DTYPE_Q8_0 },
            { "blk.2.ffn_gate_inp.weight", GGUF_DTYPE_F32 },
            { "blk.10.attn_v.weight", GGUF_DTYPE_Q8_0 },
        };
        int bad = gguf_file_n_tensors(f) != GG_LEN(want);
        for (size_t i = 0; !bad && i < GG_LEN(want); i++) {
            const struct gguf_tensor_info *ti = gguf_file_tensor(f, i);
            bad += ti->dtype != want[i].type ||
                   strlen(want[i].name) != ti->name.size ||
                   memcmp(want[i].name, ti->name.data, ti->name.size);
        }
        ok(!bad, "tensors in order, with their types");
        ok(gguf_file_alignment(f) == 64, "the alignment is the input's");
        ok(gguf_kv_get_u32(gguf_file_kv_find(f, "general.file_type"), &v,
                           NULL) == GGUF_OK &&
               v == 7,
           "general.file_type");
        ok(gguf_kv_get_u32(
               gguf_file_kv_find(f, "general.quantization_version"), &v,
               NULL) == GGUF_OK &&
               v == 2,
           "general.quantization_version");
        gguf_file_close(f);
    }
    remove(out);
    remove(out2);
}

/* Copy the model with the type of one tensor changed, found in its header. */
static void set_type(const char *in, const char *out, const char *name,
                     uint32_t type)
{
    size_t size;
    uint8_t *b = slurp(in, &size);
    struct gguf_file *f;
    if (!b || gguf_file_open_memory(&f, b, size, NULL, NULL) != GGUF_OK)
        abort();
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    gg_bytes_store32le(b + t->info_off + 8 + t->name.size + 4 + 8 * t->n_dims,
                       type);
    gguf_file_close(f);
    if (!spill(out, b, size))
        abort();
    free(b);
}

/* Types that are not weights: integers are copied, unknown types are refused.
 */
static void check_types(const char *in)
{
    const char *bad = in_dir("type.gguf"), *out = in_dir("o.gguf");
    const char *name = "token_embd.weight";
    struct setup s = SETUP("Q8_0");
    struct gguf_error err;
    struct gguf_file *f = NULL;
    set_type(in, bad, name, 4999);
    ok(quantize(bad, out, s, &err) == GGUF_E_UNSUPPORTED &&
           strstr(err.message, "unknown type 4999") &&
           err.offset != GGUF_NO_OFFSET,
       "%s", err.message);
    set_type(in, bad, name, GGUF_DTYPE_I16); /* was F16 */
    ok(quantize(bad, out, s, &err) == GGUF_OK &&
           gguf_file_open(&f, out, NULL, &err) == GGUF_OK,
       "a matrix of integers");
    ok(gguf_file_tensor_find(f, name)->dtype == GGUF_DTYPE_I16 &&
           gguf_file_tensor_find(f, "output.weight")->dtype == GGUF_DTYPE_Q8_0,
       "it is copied, others are not");
    gguf_file_close(f);
    remove(bad);
    remove(out);
}

/* Importance data of another model. */
static void check_imatrix(const char *in)
{
    static const float sums[3] = { 1, 2, 3 }, one = 1;
    const char *out = in_dir("o.gguf");
    struct setup s = SETUP("Q4_K_M");
    struct gguf_error err;
    struct gguf_imatrix *im, *embd;
    if (gguf_imatrix_create(&im, NULL, NULL) ||
        gguf_imatrix_create(&embd, NULL, NULL) ||
        gguf_imatrix_add(im, "output.weight", 3, 1, sums, &one, NULL) ||
        gguf_imatrix_add(embd, "token_embd.weight", 3, 1, sums, &one, NULL))
        abort();
    s.p.imatrix = im;
    ok(quantize(in, out, s, &err) == GGUF_E_MISMATCH &&
           strstr(err.message, "its importance data 3 values"),
       "%s", err.message);
    s.p.imatrix = embd;
    ok(quantize(in, out, s, &err) == GGUF_OK,
       "those of embeddings are passed over");
    gguf_imatrix_destroy(im);
    gguf_imatrix_destroy(embd);
    remove(out);
}

/* Write a file with a tensor of Q4_K_R4, which stores 4 rows of 256 elements
 * together, of n_rows rows; of the last one, n_cut bytes are left out. */
static void write_groups(const char *path, unsigned n_rows, size_t n_cut)
{
    struct fix f;
    fix_init(&f);
    fix_head(&f, 3, 1, 0);
    fix_info(&f, "blk.0.attn_v.weight", FIX_NE(256, n_rows), Q4_K_R4, 0);
    fix_pad(&f, 32);
    fix_fill(&f, 0, 144 * n_rows - n_cut);
    fix_pad(&f, 32);
    FILE *o = fopen(path, "wb");
    if (!o || fwrite(f.data, 1, f.size, o) != f.size || fclose(o))
        abort();
    fix_fini(&f);
}

/* An incomplete group of rows is refused by name. */
static void check_groups(void)
{
    const char *in = in_dir("rows.gguf"), *out = in_dir("o.gguf");
    struct gguf_error err;
    struct gguf_file *file = NULL;
    struct gguf_rows *rows = NULL;
    struct setup s = SETUP("COPY");
    float x[256];
    s.p.repack_to = GGUF_REPACK_PLAIN;
    write_groups(in, 8, 0);
    ok(quantize(in, out, s, &err) == GGUF_OK, "two groups become rows");
    remove(out);
    write_groups(in, 6, 0);
    ok(quantize(in, out, s, &err) == GGUF_E_UNSUPPORTED &&
           strstr(err.message, "6 rows, must be a multiple of 4, which "
                               "Q4_K_R4 stores together"),
       "a group and a half: %s", err.message);
    ok(gguf_file_open(&file, in, NULL, NULL) == GGUF_OK &&
           gguf_rows_create(&rows, NULL, NULL) == GGUF_OK &&
           gguf_rows_decode(rows, file, 0, 0, 256, x, &err) ==
               GGUF_E_UNSUPPORTED &&
           strstr(err.message, "6 rows, must be a multiple of 4"),
       "its rows are not read: %s", err.message);
    gguf_rows_destroy(rows);
    gguf_file_close(file);
    write_groups(in, 8, 256);
    ok(quantize(in, out, s, &err) == GGUF_E_UNSUPPORTED &&
           strstr(err.message, "has type 212, but not the size of Q4_K_R4"),
       "groups that are cut: %s", err.message);
    remove(in);
}

int main(void)
{
    const char *in = enter_model();
    check_nonfinite();
    check_too_large();
    check_outputs(in);
    check_inputs(in);
    check_choices(in);
    check_types(in);
    check_imatrix(in);
    check_groups();
    return leave_model();
}
