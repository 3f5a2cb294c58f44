/* check-archs.c - the table of architectures: each row against a file of it */
#include "config.h"
#include "base/compiler.h"
#include "gguf/verify.h"
#include "model/arch.h"
#include "base/bytes.h"
#include "model/need.h"
#include "tests/model/gen.h"
#include "tests/model/page.h"
#include "tests/model/ref.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <dirent.h>
#include <zlib.h>

/* ---- what is found in a file ---- */

struct seen {
    unsigned n;
    char first[400];
};

/* Notes, and keys of a vocabulary that is not there, are not of interest. */
static int note(void *user, const struct gguf_finding *f)
{
    struct seen *s = user;
    if (f->severity == GGUF_SEVERITY_NOTE)
        return 0;
    if (!s->n++)
        snprintf(s->first, sizeof s->first, "%s", f->message);
    return 0;
}

/* ---- a model of each architecture ---- */

static void check_model(const char *path, const char *name)
{
    static struct gen g;
    struct gguf_file *file;
    struct gguf_error err;
    struct seen s = { .n = 0 };
    size_t size;
    gen_init(&g, 0);
    if (!gen_read(&g, path)) {
        ok(0, "%s is read", name);
        gen_fini(&g);
        return;
    }
    void *data = gen_empty_file(&g, &size);
    if (gguf_file_open_memory(&file, data, size, NULL, &err) ||
        gguf_file_verify(file, NULL, note, &s, &err))
        ok(0, "%s: %s", name, err.message);
    else
        ok(!s.n, "%s: %u findings: %s", name, s.n, s.first);
    gguf_file_close(file);
    free(data);
    gen_fini(&g);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void check_models(void)
{
    static char names[512][256];
    size_t n = 0;
    const char *dir = shared_path("archs/public/skeletons");
    DIR *d = dir ? opendir(dir) : NULL;
    if (!d) {
        skip("no models of architectures here");
        return;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".json") && n < GG_LEN(names))
            snprintf(names[n++], sizeof names[0], "%s", e->d_name);
    closedir(d);
    qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++) {
        char rel[512];
        snprintf(rel, sizeof rel, "archs/public/skeletons/%s", names[i]);
        check_model(shared_path(rel), names[i]);
    }
}

/* ---- what a row computes ---- */

/* Models whose rows say all that there is: as the table has them, and those of
 * architectures that it has with runs = false, but for that. */
static const char *const whole[] = {
    "llama", "llama-moe", "qwen2", "qwen2moe", "qwen3moe", "qwen3", "olmoe",
    "seed_oss", "internlm2", "xverse", "granite", "granite-moe", "granitemoe",
    "maincoder", "phi3", "smollm3", "arcee", "chatglm", "starcoder2", "gpt2",
    "nemotron", "orion", "olmo", "olmo2", "exaone", "minicpm",
    "granitehybrid", "granitehybrid-moe", "mamba2", "nemotron_h",
    "bert", "nomic-bert", "jina-bert-v3", "nomic-bert-moe", "eurobert",
    "llama-embed", "neo-bert", "dream", "llada", "llada-moe", "rnd1",
    "bloom", "jais", "refact", "phi2", "plamo", "command-r", "dbrx", "gemma",
    "starcoder", "openelm", "glm4",
};

static float *read_logits(const char *name, size_t n)
{
    char rel[300];
    snprintf(rel, sizeof rel, "archs/public/logits/%s.f32.gz", name);
    const char *path = shared_path(rel);
    const unsigned size = (unsigned)(n * sizeof(float));
    float *x = malloc(size);
    gzFile f = path ? gzopen(path, "rb") : NULL;
    int got = f ? gzread(f, x, size) : -1;
    for (size_t i = 0; i < n; i++)
        x[i] = got == (int)size ? gg_f32_from_bits(gg_load32le(&x[i])) : 0;
    if (f)
        gzclose(f);
    return x;
}

/* Logits, or of an encoder states, of all tokens. */
static bool run_rows(struct run *r, struct gguf_batch *b, size_t width,
                     float *out)
{
    uint8_t all[64];
    const float *rows;
    memset(all, 1, sizeof all);
    b->want = all;
    if (run_logits(r, b, out))
        return true;
    if (r->err.status != GGUF_E_UNSUPPORTED ||
        gguf_session_states(r->session, 0, b->n, &rows, &r->err) != GGUF_OK)
        return false;
    memcpy(out, rows, b->n * width * sizeof *out);
    return true;
}

static void check_logits(const char *name)
{
    enum { N = 64, WIDTH = 128 };
    static struct gen g;
    static float got[N * WIDTH];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    char rel[300];
    gguf_token tok[N];
    struct gguf_batch b = { .n = N, .token = tok };
    struct gguf_str arch_name;
    size_t size;
    snprintf(rel, sizeof rel, "archs/public/skeletons/%s.json", name);
    const char *path = shared_path(rel);
    gen_init(&g, 0);
    if (!path || !gen_read(&g, path)) {
        skip("%s: no model here", name);
        gen_fini(&g);
        return;
    }
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    const struct gguf_kv *kv = gguf_meta_find(g.meta, "general.architecture");
    if (gguf_kv_get_str(kv, &arch_name, NULL) || !gg_arch_find(arch_name))
        abort();
    struct gg_arch arch = *gg_arch_find(arch_name);
    const bool has = arch.runs;
    arch.runs = true;
    p.n_ctx = N;
    for (int i = 0; i < N; i++)
        tok[i] = (i * 37 + 11) % WIDTH;
    float *want = read_logits(name, N * WIDTH);
    struct run r;
    bool good = run_open_arch(&r, file, size, &arch, &p) &&
                r.n_vocab == WIDTH && run_rows(&r, &b, WIDTH, got);
    double d = good ? run_nmse(got, want, N * WIDTH) : 1;
    /* gelu is a table of half precision numbers there */
    ok(good && d < (arch.act == GG_ACT_GELU ? 1e-6 : 1e-11),
       "%s%s: %s%.2g from llama.cpp", name, has ? "" : ", by its row alone",
       good ? "" : r.err.message, d);
    run_close(&r);
    free(want);
    free(file);
    gen_fini(&g);
}

/* ---- one more architecture ---- */

/* Norms after the parts, as the 132nd that nobody has: a row. */
static void check_one_more(void)
{
    enum { N = 32, V = 96 };
    static const struct gg_arch row = {
        .name = "onemore", .runs = true, .rope = GGUF_ROPE_NEOX,
        .mix_norm = { .pre = GG_W_ATTN_NORM },
        .ffn_norm = { .pre = GG_W_FFN_NORM }, .final_norm = GG_W_OUTPUT_NORM,
        .qk = { .form = GG_QK_HEAD },
    };
    static const struct gen_spec spec = {
        .arch = "onemore", .n_vocab = V, .n_ctx = 64, .n_embd = 64,
        .n_layer = 2, .n_ff = 80, .n_head = 4, .n_head_kv = 2, .eps = 1e-5f,
        .freq_base = 10000, .qkv_bias = 1, .qk_norm = 1
    };
    static struct gen g;
    static float got[N * V], want[N * V];
    static double ref[N * V];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[N];
    struct gguf_batch b = { .n = N, .token = tok };
    struct run r;
    size_t size;
    for (int i = 0; i < N; i++)
        tok[i] = (i * 37 + 11) % V;
    gen_init(&g, 9);
    gen_model(&g, &spec);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    bool good = run_open_arch(&r, file, size, &row, &p) &&
                run_logits(&r, &b, got);
    ref_logits(&g, &spec, tok, N, ref);
    for (int i = 0; i < N * V; i++)
        want[i] = (float)ref[i];
    ok(good && run_nmse(got, want, N * V) < 1e-11,
       "one more architecture is a row: %s%.2g",
       good ? "" : r.err.message, run_nmse(got, want, N * V));
    run_close(&r);
    free(file);
    gen_fini(&g);
}

/* ---- the rows themselves ---- */

static void check_order(void)
{
    unsigned bad = 0;
    for (size_t i = 1; i < gg_arch_count(); i++)
        bad += strcmp(gg_arch_at(i - 1)->name, gg_arch_at(i)->name) >= 0;
    ok(!bad && gg_arch_count() > 130, "%zu rows in the order of names",
       gg_arch_count());
}

/* The page says what the rows say. */
static void check_page(void)
{
    const char *top = getenv("srcdir");
    char path[4096];
    size_t n = 0, at = 0;
    FILE *made = tmpfile();
    snprintf(path, sizeof path, "%s/doc/architectures.md", top ? top : ".");
    FILE *page = fopen(path, "r");
    if (!made || !page) {
        ok(0, "%s is there", path);
        return;
    }
    page_print(made);
    rewind(made);
    int a, b;
    do {
        a = getc(made);
        b = getc(page);
        n += a == '\n';
        at += a == b;
    } while (a == b && a != EOF);
    ok(a == b && at > 1000, "doc/architectures.md is of these rows: line %zu",
       n + 1);
    fclose(page);
    fclose(made);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--page")) {
        page_print(stdout);
        return 0;
    }
    check_order();
    check_page();
    check_models();
    check_one_more();
    for (size_t i = 0; i < GG_LEN(whole); i++)
        check_logits(whole[i]);
    return done_testing();
}
