/* SPDX-License-Identifier: MIT */
/* check-parts.c - jobs over a part of a model: fewer layers, several files */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "dtype/f16.h"
#include "gguf/split.h"
#include "gguf/writer.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

/* A tensor of 32 values per layer; each value is the layer's number. */
static void write_layers(const char *path, int n_layers, const char *arch,
                         bool other)
{
    struct gguf_meta *m = NULL;
    struct gguf_writer *w = NULL;
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    uint32_t per_layer[16];
    char name[64];
    int64_t ne[2] = { 32, 2 };
    p.no_sync = p.force = 1;
    for (uint32_t i = 0; i < 16; i++)
        per_layer[i] = 100 + i;
    struct gguf_str texts[16];
    char letters[16][2];
    for (int i = 0; i < 16; i++) {
        letters[i][0] = (char)('a' + i);
        texts[i] = (struct gguf_str){ letters[i], i % 3 > 0 };
    }
    bool good = gguf_meta_create(&m, NULL, NULL) == GGUF_OK &&
                (!arch || gguf_meta_set_strz(m, "general.architecture", arch,
                                             NULL) == GGUF_OK) &&
                (!other ||
                 gguf_meta_set_u32(m, "y.block_count", 99, NULL) == GGUF_OK) &&
                gguf_meta_set_u32(m, "x.block_count", (uint32_t)n_layers,
                                  NULL) == GGUF_OK &&
                gguf_meta_set_array(m, "x.heads", GGUF_VAL_U32, per_layer,
                                    (uint64_t)n_layers, NULL) == GGUF_OK &&
                gguf_meta_set_str_array(m, "x.kinds", texts, (size_t)n_layers,
                                        NULL) == GGUF_OK &&
                gguf_writer_create(&w, m, NULL, NULL) == GGUF_OK;
    for (int i = 0; good && i < n_layers; i++) {
        snprintf(name, sizeof name, "blk.%d.a.weight", i);
        struct gguf_str s = { name, strlen(name) };
        good = gguf_writer_add_tensor(w, s, GGUF_DTYPE_F32, 2, ne, NULL) ==
               GGUF_OK;
    }
    good = good && gguf_writer_begin_file(w, path, &p, NULL) == GGUF_OK;
    for (int i = 0; good && i < n_layers; i++) {
        uint8_t b[256];
        for (int k = 0; k < 64; k++)
            gg_bytes_store32le(b + 4 * k, gg_bytes_f32_bits((float)i));
        good = gguf_writer_begin_tensor(w, (size_t)i, NULL) == GGUF_OK &&
               gguf_writer_write(w, b, sizeof b, NULL) == GGUF_OK;
    }
    if (!good || gguf_writer_commit(w, NULL) != GGUF_OK)
        printf("Bail out! cannot write %s\n", path);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
}

/* The largest layer number that a name can have does not make it slower to
 * leave out a thousand layers. */
static void check_far_layer(void)
{
    static uint32_t prune[1000];
    const char *in = in_dir("far.gguf"), *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("F16");
    struct gguf_file *f = NULL;
    size_t size;
    write_layers(in, 2, "x", false);
    uint8_t *b = slurp(in, &size);
    if (!b || gguf_file_open_memory(&f, b, size, NULL, NULL) != GGUF_OK)
        abort();
    uint64_t at = gguf_file_tensor(f, 1)->info_off + 8;
    gguf_file_close(f);
    memcpy(b + at, "blk.999999999.", 14); /* was blk.1.a.weight */
    if (!spill(in, b, size))
        abort();
    free(b);
    for (uint32_t i = 0; i < GG_LEN(prune); i++)
        prune[i] = i * 7 % 1000;
    s.p.prune = prune;
    s.p.n_prune = GG_LEN(prune);
    f = NULL;
    ok(quantize(in, out, s, &err) == GGUF_OK &&
           gguf_file_open(&f, out, NULL, NULL) == GGUF_OK &&
           gguf_file_n_tensors(f) == 1 &&
           gguf_file_tensor_find(f, "blk.999998999."),
       "a layer far away %s", err.message);
    gguf_file_close(f);
    remove(in);
    remove(out);
}

/* The output has the alignment that its metadata say, in each of its files. */
static void check_alignment(const char *in)
{
    struct setup s = SETUP("Q8_0");
    struct gguf_error err;
    struct gguf_meta *m;
    struct gguf_file *set = NULL;
    char name[64];
    size_t n = 0;
    int bad = 0;
    if (gguf_meta_create(&m, NULL, NULL) ||
        gguf_meta_set_u32(m, "general.alignment", 512, NULL))
        abort();
    s.p.meta = m;
    s.p.max_file_size = 500000;
    ok(quantize(in, in_dir("a.gguf"), s, &err) == GGUF_OK, "written %s",
       err.message);
    for (size_t i = 1; i < 100 && !n; i++) {
        snprintf(name, sizeof name, "a-00001-of-%05zu.gguf", i);
        if (gguf_file_open(&set, in_dir(name), NULL, &err) == GGUF_OK)
            n = i;
    }
    for (size_t i = 0; i < n; i++) {
        bad += gguf_file_alignment(gguf_file_shard(set, i)) != 512;
        snprintf(name, sizeof name, "a-%05zu-of-%05zu.gguf", i + 1, n);
        remove(in_dir(name));
    }
    ok(!bad && n > 1, "%zu files of another alignment are one model %s", n,
       err.message);
    gguf_file_close(set);
    gguf_meta_destroy(m);
}

/* Without an architecture, the only number of layers in the metadata is used.
 */
static void check_pruning(const char *arch)
{
    static const uint32_t prune[] = { 1, 4, 4 }, none[] = { 6 };
    static const int want[] = { 0, 2, 3, 5 };
    const char *in = in_dir("layers.gguf"), *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("F16");
    struct gguf_file *f;
    write_layers(in, 6, arch, arch != NULL);
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
        bad +=
            !t || gg_dtype_f16_to_f32(gg_bytes_load16le(
                      gguf_file_tensor_data(f, t->index))) != (float)want[i];
        bad += gguf_kv_get_elem(gguf_file_kv_find(f, "x.heads"), (uint64_t)i,
                                &kv, NULL) != GGUF_OK ||
               gguf_kv_get_uint(&kv, &v, NULL) != GGUF_OK ||
               v != 100 + (uint64_t)want[i];
        struct gguf_str text;
        bad += gguf_kv_get_elem(gguf_file_kv_find(f, "x.kinds"), (uint64_t)i,
                                &kv, NULL) != GGUF_OK ||
               gguf_kv_get_str(&kv, &text, NULL) != GGUF_OK ||
               text.size != (want[i] % 3 > 0) ||
               (text.size && text.data[0] != 'a' + want[i]);
    }
    const struct gguf_kv *kinds = gguf_file_kv_find(f, "x.kinds");
    bad += !kinds || kinds->n != 4;
    uint64_t n = 0;
    bad += gguf_kv_get_uint(gguf_file_kv_find(f, "x.block_count"), &n, NULL) !=
               GGUF_OK ||
           n != 4;
    bad += arch && (gguf_kv_get_uint(gguf_file_kv_find(f, "y.block_count"), &n,
                                     NULL) != GGUF_OK ||
                    n != 99);
    ok(!bad, "later layers move up, with their data and metadata%s",
       arch ? "" : ", without an architecture");
    gguf_file_close(f);
    remove(in);
    remove(out);
}

/* Two numbers of layers: the metadata do not say which one belongs to these
 * layers. */
static void check_pruning_unclear(void)
{
    static const uint32_t prune[] = { 1 };
    const char *in = in_dir("layers.gguf"), *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("F16");
    struct gguf_meta *m;
    write_layers(in, 3, NULL, true);
    int before = n_entries();
    s.p.prune = prune;
    s.p.n_prune = 1;
    ok(quantize(in, out, s, &err) == GGUF_E_UNSUPPORTED &&
           strstr(err.message, "'y.block_count' and 'x.block_count'") &&
           n_entries() == before,
       "%s", err.message);
    if (gguf_meta_create(&m, NULL, NULL) != GGUF_OK)
        return;
    s.p.meta = m;
    ok(gguf_meta_set_strz(m, "general.architecture", "x", NULL) == GGUF_OK &&
           quantize(in, out, s, &err) == GGUF_OK,
       "told the architecture, it works %s", err.message);
    gguf_meta_destroy(m);
    remove(in);
    remove(out);
}

static void check_shards(const char *in)
{
    const char *out = in_dir("s.gguf"), *one = in_dir("one.gguf");
    const char *merged = in_dir("merged.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q8_0");
    struct gguf_file *set = NULL;
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    job.no_sync = 1;
    int before = n_entries();
    ok(quantize(in, one, s, &err) == GGUF_OK, "one file");
    s.threads = 2;
    s.p.max_file_size = 200000;
    ok(quantize(in, out, s, &err) == GGUF_E_LIMIT && n_entries() == before + 1,
       "too small a file: %s", err.message);
    s.p.max_file_size = 520000;
    ok(quantize(in, out, s, &err) == GGUF_OK &&
           gguf_file_open(&set, in_dir("s-00001-of-00002.gguf"), NULL, &err) ==
               GGUF_OK &&
           gguf_file_size(gguf_file_shard(set, 0)) <= 520000 &&
           gguf_file_size(gguf_file_shard(set, 1)) <= 520000,
       "two files %s", err.message);
    ok(gguf_split_merge(set, merged, &job, &err) == GGUF_OK &&
           same_files(merged, one),
       "merged they are the same as one %s", err.message);
    gguf_file_close(set);
    s.p.keep_split = 1;
    ok(quantize(in, out, s, &err) == GGUF_E_INVALID, "%s", err.message);
    s.p.max_file_size = 0;
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
        "s-00001-of-00002.gguf",
        "s-00002-of-00002.gguf",
        "k-00001-of-00002.gguf",
        "k-00002-of-00002.gguf",
        "s.gguf",
        "one.gguf",
        "merged.gguf",
    };
    for (size_t i = 0; i < GG_LEN(names); i++)
        remove(in_dir(names[i]));
    ok(n_entries() == before, "and that was all");
}

int main(void)
{
    const char *in = enter_model();
    check_pruning("x");
    check_pruning(NULL);
    check_pruning_unclear();
    check_far_layer();
    check_shards(in);
    check_alignment(in);
    return leave_model();
}
