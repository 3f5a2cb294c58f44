/* check-quant.c - jobs: same bytes however they run, what they refuse, and that
 * nothing is left behind when they fail */
#include "config.h"
#include "base/compiler.h"
#include "dtype/f16.h"
#include "gguf/stats.h"
#include "quant/job.h"
#include "tests/tap.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[3000];

static const char *in_dir(const char *name)
{
    static char path[64][4000];
    static unsigned n;
    char *p = path[n++ % 64];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

/* Entries of the folder, so that nothing can be left without notice. */
static int n_entries(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

struct bytes {
    uint8_t *p;
    size_t n;
};

static struct bytes slurp(const char *path)
{
    struct bytes b = { NULL, 0 };
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (f && !fstat(fileno(f), &st)) {
        b.p = malloc((size_t)st.st_size + 1);
        b.n = fread(b.p, 1, (size_t)st.st_size, f);
    }
    if (f)
        fclose(f);
    return b;
}

/* Do the two files have the same bytes, and some? */
static bool same_files(const char *a, const char *b)
{
    struct bytes x = slurp(a), y = slurp(b);
    bool same = x.n && x.n == y.n && !memcmp(x.p, y.p, x.n);
    free(x.p);
    free(y.p);
    return same;
}

/* ------------------------------------------------------------ a model --- */

static const struct tensor {
    const char *name;
    uint32_t type;
    int64_t ne[4];
} tensors[] = {
    { "token_embd.weight", GGUF_DTYPE_F16, { 256, 37, 1, 1 } },
    { "output_norm.weight", GGUF_DTYPE_F32, { 256, 1, 1, 1 } },
    { "output.weight", GGUF_DTYPE_BF16, { 256, 37, 1, 1 } },
    { "blk.10.attn_v.weight", GGUF_DTYPE_F32, { 256, 65, 1, 1 } },
    { "blk.2.attn_v.weight", GGUF_DTYPE_F16, { 256, 65, 1, 1 } },
    { "blk.2.attn_k.weight", GGUF_DTYPE_F16, { 256, 11, 1, 1 } },
    { "blk.2.attn_q.weight", GGUF_DTYPE_F16, { 48, 11, 1, 1 } },
    { "blk.2.attn_q.bias", GGUF_DTYPE_F32, { 48, 1, 1, 1 } },
    { "blk.2.ffn_down_exps.weight", GGUF_DTYPE_F16, { 512, 300, 3, 1 } },
    { "blk.2.ffn_gate_inp.weight", GGUF_DTYPE_F32, { 256, 3, 1, 1 } },
    { "table", GGUF_DTYPE_I32, { 5, 3, 1, 1 } },
};

/* Write it; tensor bad (or -1) gets the value at element where. */
static void write_model(const char *path, int bad, size_t where, float value)
{
    struct gguf_meta *m;
    struct gguf_writer *w;
    struct gguf_output_params p = GGUF_OUTPUT_PARAMS_INIT;
    p.force = p.no_sync = 1;
    tap_rng = 99;
    if (gguf_meta_create(&m, NULL, NULL) != GGUF_OK)
        return;
    bool good =
        gguf_meta_set_strz(m, "general.architecture", "test", NULL) ==
            GGUF_OK &&
        gguf_meta_set_u32(m, "general.file_type", 1, NULL) == GGUF_OK &&
        gguf_meta_set_u32(m, "general.alignment", 64, NULL) == GGUF_OK &&
        gguf_meta_set_u32(m, "test.block_count", 11, NULL) == GGUF_OK &&
        gguf_writer_create(&w, m, NULL, NULL) == GGUF_OK;
    gguf_meta_destroy(m);
    for (size_t i = 0; good && i < GG_LEN(tensors); i++)
        good = gguf_writer_add_tensor(w,
                                      (struct gguf_str){
                                          tensors[i].name,
                                          strlen(tensors[i].name) },
                                      tensors[i].type,
                                      1 + (tensors[i].ne[1] > 1) +
                                          (tensors[i].ne[2] > 1),
                                      tensors[i].ne, NULL) == GGUF_OK;
    good = good && gguf_writer_open(w, path, &p, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < GG_LEN(tensors); i++) {
        size_t n = (size_t)(tensors[i].ne[0] * tensors[i].ne[1] *
                            tensors[i].ne[2]);
        uint8_t *data = malloc(4 * n), *at = data;
        for (size_t k = 0; k < n; k++) {
            float x = rnd_f32();
            if (bad == (int)i && k == where)
                x = value;
            if (tensors[i].type == GGUF_DTYPE_F16)
                gg_store16le(at, gg_f32_to_f16(x));
            else if (tensors[i].type == GGUF_DTYPE_BF16)
                gg_store16le(at, gg_f32_to_bf16(x));
            else
                gg_store32le(at, gg_f32_bits(x));
            at += tensors[i].type == GGUF_DTYPE_F16 ||
                          tensors[i].type == GGUF_DTYPE_BF16
                      ? 2
                      : 4;
        }
        good = gguf_writer_begin(w, i, NULL) == GGUF_OK &&
               gguf_writer_write(w, data, (uint64_t)(at - data), NULL) ==
                   GGUF_OK;
        free(data);
    }
    good = good && gguf_writer_commit(w, NULL) == GGUF_OK;
    gguf_writer_destroy(w);
    if (!good)
        printf("Bail out! cannot write %s\n", path);
}

/* ------------------------------------------------------------ running --- */

struct setup {
    struct gguf_quant_params p;
    const char *type;
    unsigned threads; /* 0: no pool */
    bool no_simd, no_force;
};
#define SETUP(t) { .p = GGUF_QUANT_PARAMS_INIT, .type = t }

static enum gguf_status quantize(const char *in, const char *out,
                                 struct setup s, struct gguf_error *err)
{
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_pool_params pp = GGUF_POOL_PARAMS_INIT;
    struct gguf_pool *pool = NULL;
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *q = NULL;
    gguf_error_clear(err);
    o.no_sync = 1;
    o.force = !s.no_force;
    pp.n_threads = s.threads;
    enum gguf_status st = gguf_recipe_preset(&recipe, s.type, NULL, err);
    if (st == GGUF_OK && s.threads)
        st = gguf_pool_create(&pool, &pp, err);
    s.p.recipe = recipe;
    s.p.pool = pool;
    if (st == GGUF_OK)
        st = gguf_quant_create(&q, in, &s.p, err);
    if (st == GGUF_OK && s.no_simd)
        gg_job_set_cpu(q, 0);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, out, &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(recipe);
    gguf_pool_destroy(pool);
    return st;
}

static void check_same(const char *in)
{
    static const char *const types[] = { "Q4_K_M", "Q8_0", "Q4_0", "F32",
                                         "COPY" };
    const char *a = in_dir("a.gguf"), *b = in_dir("b.gguf");
    struct gguf_error err;
    for (size_t i = 0; i < GG_LEN(types); i++) {
        struct setup s = SETUP(types[i]);
        ok(quantize(in, a, s, &err) == GGUF_OK, "%s: %s", types[i],
           err.message);
        for (unsigned n = 1; n < 9; n += n < 3 ? 1 : 5) {
            s.threads = n;
            s.p.max_memory = n == 3 ? 700000 : 0;
            ok(quantize(in, b, s, &err) == GGUF_OK && same_files(a, b),
               "%s: the same with %u threads %s", types[i], n, err.message);
        }
        s.no_simd = true;
        ok(quantize(in, b, s, &err) == GGUF_OK && same_files(a, b),
           "%s: the same without vector instructions", types[i]);
    }
    remove(a);
    remove(b);
}

/* The figures against a plain computation, and that threads do not matter. */
static void check_loss(const char *in)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    const char *out = in_dir("loss.gguf");
    struct gguf_quant_loss first = { .measured = 0 };
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_pool *pool = NULL;
    o.force = o.no_sync = 1;
    for (unsigned n = 1; n < 4; n += 2) {
        struct gguf_pool_params pp = GGUF_POOL_PARAMS_INIT;
        pp.n_threads = n;
        p.measure = 1;
        bool good = gguf_pool_create(&pool, &pp, NULL) == GGUF_OK &&
                    gguf_recipe_preset(&r, "Q8_0", NULL, NULL) == GGUF_OK;
        p.pool = pool;
        p.recipe = r;
        good = good && gguf_quant_create(&q, in, &p, NULL) == GGUF_OK &&
               gguf_quant_run(q, out, &o, NULL) == GGUF_OK;
        size_t i = 0;
        while (good && strcmp(gguf_quant_tensor(q, i)->name,
                              "blk.2.ffn_down_exps.weight"))
            i++;
        if (good && n == 1) {
            first = gguf_quant_tensor(q, i)->loss;
            ok(first.measured && first.snr > 40 && first.snr < 60 &&
                   fabs(first.rms_in - sqrt(1 / 3.0)) < 0.01 &&
                   first.weighted == first.rms && first.max > first.rms &&
                   fabs(first.snr - 20 * log10(first.rms_in / first.rms)) <
                       1e-9,
               "Q8_0 of uniform numbers: rms %g, max %g, %g dB", first.rms,
               first.max, first.snr);
            ok(!gguf_quant_tensor(q, 1)->loss.measured,
               "nothing is measured where nothing is encoded");
        } else {
            const struct gguf_quant_loss *l = &gguf_quant_tensor(q, i)->loss;
            ok(good && l->rms == first.rms && l->max == first.max &&
                   l->weighted == first.weighted && l->snr == first.snr,
               "the same with 3 threads");
        }
        gguf_quant_destroy(q);
        gguf_recipe_destroy(r);
        gguf_pool_destroy(pool);
    }
    /* the library's own comparison of the two files */
    struct gguf_file *a = NULL, *b = NULL;
    struct gguf_rows *rows = NULL;
    struct gguf_stats_params sp = GGUF_STATS_PARAMS_INIT;
    struct gguf_stats_diff d = { .n = 0 };
    bool good = gguf_file_open(&a, in, NULL, NULL) == GGUF_OK &&
                gguf_file_open(&b, out, NULL, NULL) == GGUF_OK &&
                gguf_rows_create(&rows, NULL, NULL) == GGUF_OK;
    sp.rows = rows;
    good = good &&
           gguf_stats_compare(
               a, gguf_file_tensor_find(a, "blk.2.ffn_down_exps.weight")->index,
               b, gguf_file_tensor_find(b, "blk.2.ffn_down_exps.weight")->index,
               &sp, &d, NULL) == GGUF_OK;
    ok(good && fabs(d.rms - first.rms) <= 1e-12 && d.max_abs == first.max,
       "and what comparing the files says: rms %g, max %g", d.rms, d.max_abs);
    gguf_rows_destroy(rows);
    gguf_file_close(a);
    gguf_file_close(b);
    remove(out);
}

static void check_many(const char *in)
{
    static const char *const types[] = { "Q6_K", "COPY", "F16", "Q8_0" };
    const char *paths[] = { in_dir("m0.gguf"), in_dir("m1.gguf"),
                            in_dir("m2.gguf"), in_dir("m3.gguf") };
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *r[4];
    struct gguf_quant *q[4];
    struct gguf_error err = { .message = "" };
    int bad = 0;
    char one[4000];
    o.no_sync = 1;
    for (int i = 0; i < 4; i++) {
        struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
        if (gguf_recipe_preset(&r[i], types[i], NULL, NULL) == GGUF_OK) {
            p.recipe = r[i];
            bad += gguf_quant_create(&q[i], in, &p, &err) != GGUF_OK;
        }
    }
    ok(!bad && gguf_quant_run_many(q, paths, 4, &o, &err) == GGUF_OK,
       "four outputs from one reading %s", err.message);
    snprintf(one, sizeof one, "%s/one.gguf", dir);
    for (int i = 0; i < 4; i++) {
        struct setup s = SETUP(types[i]);
        bad += quantize(in, one, s, &err) != GGUF_OK ||
               !same_files(one, paths[i]);
        remove(paths[i]);
        gguf_quant_destroy(q[i]);
        gguf_recipe_destroy(r[i]);
    }
    remove(one);
    ok(!bad, "each is the same as alone");
}

/* ------------------------------------------------------------ refusals --- */

static void check_nonfinite(void)
{
    static const struct {
        int tensor;
        size_t where;
        float value;
        const char *want;
    } cases[] = {
        { 4, 64 * 256 + 255, NAN, "blk.2.attn_v.weight': NaN at row 64, "
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
                      cases[i].where *
                          (tensors[cases[i].tensor].type == GGUF_DTYPE_F32
                               ? 4 : 2);
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
    /* zero is what a zero would have given */
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

static void check_outputs(const char *in)
{
    const char *out = in_dir("o.gguf"), *link1 = in_dir("link.gguf");
    struct setup s = SETUP("Q8_0");
    struct gguf_error err;
    int before = n_entries();
    s.threads = 2;
    ok(quantize(in, in, s, &err) == GGUF_E_INVALID, "input as output: %s",
       err.message);
    ok(!link(in, link1) &&
           quantize(in, link1, s, &err) == GGUF_E_INVALID,
       "another name of the input: %s", err.message);
    remove(link1);
    ok(quantize(in, in_dir("no/o.gguf"), s, &err) == GGUF_E_IO,
       "a folder that is not there: %s", err.message);
    ok(quantize(in, dir, s, &err) == GGUF_E_INVALID, "a folder: %s",
       err.message);
    ok(n_entries() == before, "nothing is left");
    FILE *f = fopen(out, "w");
    fputs("precious", f);
    fclose(f);
    s.no_force = true;
    ok(quantize(in, out, s, &err) == GGUF_E_EXIST, "an existing file: %s",
       err.message);
    struct bytes b = slurp(out);
    ok(b.n == 8 && !memcmp(b.p, "precious", 8), "it is untouched");
    free(b.p);
    s.no_force = false;
    ok(quantize(in, out, s, &err) == GGUF_OK, "it is replaced by force");
    remove(out);
}

static void check_inputs(const char *in)
{
    const char *bad = in_dir("bad.gguf"), *out = in_dir("o.gguf");
    struct setup s = SETUP("Q8_0");
    struct gguf_error err;
    struct bytes b = slurp(in);
    static const struct {
        size_t keep;
        enum gguf_status want;
    } cuts[] = {
        { 3, GGUF_E_TRUNCATED },
        { 100, GGUF_E_TRUNCATED },
        { 20000, GGUF_E_TRUNCATED },
    };
    for (size_t i = 0; i < GG_LEN(cuts); i++) {
        FILE *f = fopen(bad, "wb");
        fwrite(b.p, 1, cuts[i].keep, f);
        fclose(f);
        int before = n_entries();
        ok(quantize(bad, out, s, &err) == cuts[i].want &&
               err.offset != GGUF_NO_OFFSET && n_entries() == before,
           "%zu bytes only: %s (byte %llu)", cuts[i].keep, err.message,
           (unsigned long long)err.offset);
    }
    FILE *f = fopen(bad, "wb");
    fwrite("GGML", 1, 4, f);
    fwrite(b.p + 4, 1, b.n - 4, f);
    fclose(f);
    ok(quantize(bad, out, s, &err) == GGUF_E_FORMAT && err.offset == 0,
       "a wrong magic: %s", err.message);
    ok(quantize(in_dir("none.gguf"), out, s, &err) == GGUF_E_IO ||
           err.status == GGUF_E_NOTFOUND,
       "no such file: %s", err.message);
    remove(bad);
    free(b.p);
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
       "a pattern for what is never quantized: %s", err.message);
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

    /* what came out */
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
                           NULL) == GGUF_OK && v == 7,
           "general.file_type");
        ok(gguf_kv_get_u32(
               gguf_file_kv_find(f, "general.quantization_version"), &v,
               NULL) == GGUF_OK && v == 2,
           "general.quantization_version");
        gguf_file_close(f);
    }
    remove(out);
    remove(out2);
}

/* ------------------------------------------------- progress and memory --- */

struct watch {
    uint64_t last, total;
    int calls, stop_at;
    bool wrong;
};

static int watch(void *user, uint64_t done, uint64_t total)
{
    struct watch *w = user;
    w->wrong |= done < w->last || done > total;
    w->last = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

static void check_progress(const char *in)
{
    const char *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q8_0");
    struct watch w = { 0 };
    s.threads = 1;
    s.p.progress = watch;
    s.p.progress_user = &w;
    ok(quantize(in, out, s, &err) == GGUF_OK && !w.wrong && w.calls > 10 &&
           w.last == w.total,
       "progress goes to the end in %d steps", w.calls);
    remove(out);
    int before = n_entries();
    w = (struct watch){ .stop_at = 1 };
    ok(quantize(in, out, s, &err) == GGUF_E_CANCELLED && w.calls == 1 &&
           n_entries() == before,
       "a callback stops the job: %s", err.message);
}

struct counter {
    size_t now, most;
    int left; /* calls that still succeed; < 0: all */
};

static void *count_alloc(void *user, size_t size)
{
    struct counter *c = user;
    if (!c->left)
        return NULL;
    c->left -= c->left > 0;
    size_t *p = malloc(size + 64);
    if (!p)
        return NULL;
    *p = size;
    c->now += size;
    c->most = GG_MAX(c->most, c->now);
    return (char *)p + 64;
}

static void count_free(void *user, void *ptr)
{
    struct counter *c = user;
    size_t *p = (size_t *)(void *)((char *)ptr - 64);
    c->now -= *p;
    free(p);
}

static void check_memory(const char *in)
{
    const char *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q4_K_M");
    struct counter c = { 0, 0, -1 };
    struct gguf_allocator a = { count_alloc, count_free, &c };
    s.p.allocator = &a;
    s.p.max_memory = 100000;
    ok(quantize(in, out, s, &err) == GGUF_OK && !c.now &&
           c.most < 100000 + 600000,
       "%zu bytes at most, of them buffers of 100000 %s", c.most, err.message);
    s.p.max_memory = 1000;
    ok(quantize(in, out, s, &err) == GGUF_E_LIMIT, "too little: %s",
       err.message);
    s.p.max_memory = 0;
    remove(out);
    int before = n_entries(), bad = 0, n = 0;
    for (enum gguf_status st = GGUF_E_NOMEM; st != GGUF_OK && n < 5000; n++) {
        c.left = n;
        st = quantize(in, out, s, &err);
        bad += c.now != 0 || (st != GGUF_OK &&
                              (st != GGUF_E_NOMEM || n_entries() != before));
    }
    ok(!bad && n > 10 && n < 5000,
       "each of %d allocations may fail, and nothing is left", n - 1);
    remove(out);
}

/* ------------------------------------------------ layers and files ---- */

/* A tensor of 32 values per layer, each the layer's number. */
static void write_layers(const char *path, int n_layers)
{
    struct gguf_meta *m = NULL;
    struct gguf_writer *w = NULL;
    struct gguf_output_params p = GGUF_OUTPUT_PARAMS_INIT;
    uint32_t per_layer[16];
    char name[64];
    int64_t ne[2] = { 32, 2 };
    p.no_sync = p.force = 1;
    for (uint32_t i = 0; i < 16; i++)
        per_layer[i] = 100 + i;
    bool good =
        gguf_meta_create(&m, NULL, NULL) == GGUF_OK &&
        gguf_meta_set_strz(m, "general.architecture", "x", NULL) == GGUF_OK &&
        gguf_meta_set_u32(m, "x.block_count", (uint32_t)n_layers, NULL) ==
            GGUF_OK &&
        gguf_meta_set_array(m, "x.heads", GGUF_VAL_U32, per_layer,
                            (uint64_t)n_layers, NULL) == GGUF_OK &&
        gguf_writer_create(&w, m, NULL, NULL) == GGUF_OK;
    for (int i = 0; good && i < n_layers; i++) {
        snprintf(name, sizeof name, "blk.%d.a.weight", i);
        struct gguf_str s = { name, strlen(name) };
        good = gguf_writer_add_tensor(w, s, GGUF_DTYPE_F32, 2, ne, NULL) ==
               GGUF_OK;
    }
    good = good && gguf_writer_open(w, path, &p, NULL) == GGUF_OK;
    for (int i = 0; good && i < n_layers; i++) {
        uint8_t b[256];
        for (int k = 0; k < 64; k++)
            gg_store32le(b + 4 * k, gg_f32_bits((float)i));
        good = gguf_writer_begin(w, (size_t)i, NULL) == GGUF_OK &&
               gguf_writer_write(w, b, sizeof b, NULL) == GGUF_OK;
    }
    if (!good || gguf_writer_commit(w, NULL) != GGUF_OK)
        printf("Bail out! cannot write %s\n", path);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
}

static void check_pruning(void)
{
    static const uint32_t prune[] = { 1, 4, 4 }, none[] = { 6 };
    static const int want[] = { 0, 2, 3, 5 };
    const char *in = in_dir("layers.gguf"), *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("F16");
    struct gguf_file *f;
    write_layers(in, 6);
    s.p.prune = none;
    s.p.n_prune = 1;
    ok(quantize(in, out, s, &err) == GGUF_E_NOTFOUND, "%s", err.message);
    s.p.prune = prune;
    s.p.n_prune = 3;
    ok(quantize(in, out, s, &err) == GGUF_OK &&
           gguf_file_open(&f, out, NULL, &err) == GGUF_OK,
       "layers 1 and 4 are left out %s", err.message);
    int bad = gguf_file_n_tensors(f) != 4;
    for (int i = 0; !bad && i < 4; i++) {
        char name[64];
        uint64_t v = 0;
        struct gguf_kv kv;
        snprintf(name, sizeof name, "blk.%d.a.weight", i);
        const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
        bad += !t || gg_f16_to_f32(gg_load16le(gguf_file_tensor_data(
                         f, t->index))) != (float)want[i];
        bad += gguf_kv_elem(gguf_file_kv_find(f, "x.heads"), (uint64_t)i, &kv,
                            NULL) != GGUF_OK ||
               gguf_kv_get_uint(&kv, &v, NULL) != GGUF_OK ||
               v != 100 + (uint64_t)want[i];
    }
    uint64_t n = 0;
    bad += gguf_kv_get_uint(gguf_file_kv_find(f, "x.block_count"), &n, NULL) !=
               GGUF_OK || n != 4;
    ok(!bad, "later layers move up, with their data and metadata");
    gguf_file_close(f);
    remove(in);
    remove(out);
}

static void check_shards(const char *in)
{
    const char *out = in_dir("s.gguf"), *one = in_dir("one.gguf");
    const char *merged = in_dir("merged.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q8_0");
    struct gguf_split *set = NULL;
    struct gguf_split_job job = GGUF_SPLIT_JOB_INIT;
    job.no_sync = 1;
    int before = n_entries();
    ok(quantize(in, one, s, &err) == GGUF_OK, "one file");
    s.threads = 2;
    s.p.max_file_size = 200000;
    ok(quantize(in, out, s, &err) == GGUF_E_LIMIT && n_entries() == before + 1,
       "too small a file: %s", err.message);
    s.p.max_file_size = 520000;
    ok(quantize(in, out, s, &err) == GGUF_OK &&
           gguf_split_open(&set, in_dir("s-00001-of-00002.gguf"), NULL,
                           &err) == GGUF_OK &&
           gguf_file_size(gguf_split_file(set, 0)) <= 520000 &&
           gguf_file_size(gguf_split_file(set, 1)) <= 520000,
       "two files %s", err.message);
    ok(gguf_split_merge(set, merged, &job, &err) == GGUF_OK &&
           same_files(merged, one),
       "merged they are the same as one %s", err.message);
    gguf_split_close(set);
    s.p.max_file_size = 0;
    s.p.keep_split = 1;
    s.p.allow_requantize = 1;
    ok(quantize(in_dir("s-00002-of-00002.gguf"), in_dir("k"), s, &err) ==
               GGUF_OK &&
           same_files(in_dir("s-00001-of-00002.gguf"),
                      in_dir("k-00001-of-00002.gguf")) &&
           same_files(in_dir("s-00002-of-00002.gguf"),
                      in_dir("k-00002-of-00002.gguf")),
       "a split input stays split %s", err.message);
    s.p.keep_split = 0;
    ok(quantize(in_dir("k-00001-of-00002.gguf"), out, s, &err) == GGUF_OK &&
           same_files(out, one),
       "or becomes one file %s", err.message);
    static const char *const names[] = {
        "s-00001-of-00002.gguf", "s-00002-of-00002.gguf",
        "k-00001-of-00002.gguf", "k-00002-of-00002.gguf", "s.gguf",
        "one.gguf", "merged.gguf",
    };
    for (size_t i = 0; i < GG_LEN(names); i++)
        remove(in_dir(names[i]));
    ok(n_entries() == before, "and that was all");
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    char in[4000];
    snprintf(dir, sizeof dir, "%.2900s/gguf-check-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        perror(dir);
        return 99;
    }
    snprintf(in, sizeof in, "%s/in.gguf", dir);
    write_model(in, -1, 0, 0);
    check_same(in);
    check_many(in);
    check_loss(in);
    check_nonfinite();
    check_outputs(in);
    check_inputs(in);
    check_choices(in);
    check_progress(in);
    check_memory(in);
    check_pruning();
    check_shards(in);
    remove(in);
    ok(n_entries() == 0, "the folder is empty again");
    rmdir(dir);
    return done_testing();
}
