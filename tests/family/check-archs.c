/* SPDX-License-Identifier: MIT */
/* check-archs.c - each row of the table of architectures is tested on a model
 * file
 *
 *   check-archs --page       print doc/architectures.md
 *   check-archs NAME...      models of these names only
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"
#include "gguf/verify.h"
#include "model/family/families.h"
#include "model/weight/needs.h"
#include "tests/model/gen.h"
#include "tests/family/page.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

/* ---- findings in a file ---- */

struct seen {
    unsigned n;
    char first[400];
};

/* Notes and findings about a missing vocabulary do not count. */
static bool note_finding(void *user, const struct gguf_finding *f)
{
    struct seen *s = user;
    if (f->severity == GGUF_SEVERITY_NOTE)
        return 0;
    if (!s->n++)
        snprintf(s->first, sizeof s->first, "%s", f->message);
    return 0;
}

/* ---- a model of each architecture ---- */

static void check_model(struct skeleton *m)
{
    struct gguf_file *file;
    struct gguf_error err;
    struct seen s = { .n = 0 };
    size_t size;
    void *data = gen_empty_file(&m->g, &size);
    if (gguf_file_open_memory(&file, data, size, NULL, &err) ||
        gguf_file_verify(file, NULL,
                         (struct gguf_finding_callback){ note_finding, &s },
                         &err))
        ok(0, "%s: %s", m->name, err.message);
    else
        ok(!s.n, "%s: %u findings: %s", m->name, s.n, s.first);
    gguf_file_close(file);
    free(data);
}

/* ---- outputs of a row ---- */

/* Outputs have the same bits however a batch is cut, and with any number of
 * threads. Batches of one token sum in another order, so they are compared by
 * NMSE. An encoder takes its text at once; there the decoder's text is cut. */
static void check_cuts(const struct skeleton *m, const void *file, size_t size,
                       const struct gg_arch *arch, const float *all,
                       double most)
{
    static float got[SKELETON_TOKENS * SKELETON_VOCAB];
    static const uint32_t cuts[] = { 1, 7 }, batches[] = { 4, 16 };
    const bool encodes = gg_arch_mixer(arch)->memory & GG_MODEL_MEMORY_CROSS;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    const size_t bytes = SKELETON_TOKENS * m->width * sizeof *got;
    gguf_token tok[SKELETON_TOKENS];
    unsigned n_same = 0;
    bool good = true;
    struct run r;
    p.n_ctx = SKELETON_TOKENS;
    skeleton_tokens_of(m, tok);
    for (size_t i = 0; i <= GG_LEN(cuts) && good; i++) {
        const bool one = i == GG_LEN(cuts);
        struct gguf_batch b = GGUF_BATCH_INIT;
        b.n = one ? 1 : encodes ? batches[i] : SKELETON_TOKENS;
        p.n_ubatch = one || encodes ? SKELETON_TOKENS : cuts[i];
        good = run_open_arch(&r, file, size, arch, &p) &&
               run_encode(&r, tok, SKELETON_TOKENS);
        for (size_t t = 0; t < SKELETON_TOKENS && good; t += b.n) {
            b.token = tok + t;
            good = run_outputs(&r, &b, got + t * m->width);
        }
        if (good && !one)
            n_same += !memcmp(got, all, bytes);
        run_close(&r);
    }
    const double d = good ? run_nmse(got, all, SKELETON_TOKENS * m->width) : 1;
    ok(good && n_same == GG_LEN(cuts) && d < most,
       "%s: the same bits in pieces of %s (%u), %.2g token by token: %s",
       m->name, encodes ? "4 and 16" : "1 and 7", n_same, d,
       good ? "" : r.err.message);
}

/* Outputs have the same bits however the CPU computes: node by node, with kept
 * panels, and the same batch again. */
static void check_ways(const struct skeleton *m, const void *file, size_t size,
                       const struct gg_arch *arch, const float *all)
{
    static float got[SKELETON_TOKENS * SKELETON_VOCAB];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[SKELETON_TOKENS];
    unsigned n_same = 0;
    enum { WAYS = 4 };
    struct run r = { .n_vocab = 0 };
    bool good = true;
    p.n_ctx = SKELETON_TOKENS;
    skeleton_tokens_of(m, tok);
    for (unsigned i = 0; i < WAYS && good; i++) {
        struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
        struct gguf_batch b = { .struct_size = sizeof b,
                                .n = SKELETON_TOKENS,
                                .token = tok };
        cp.n_threads = 1 + i;
        cp.no_fuse = i % 2 == 0;
        cp.repack = i < 2 ? GGUF_CPU_REPACK_NONE : GGUF_CPU_REPACK_LIMIT;
        cp.repack_size = UINT64_C(1) << 26;
        good = run_open_cpu(&r, file, size, arch, &cp, &p);
        for (int again = 0; again < 2 && good; again++) {
            good = gguf_session_clear(r.session, &r.err) == GGUF_OK &&
                   run_encode(&r, tok, SKELETON_TOKENS) &&
                   run_outputs(&r, &b, got);
            n_same +=
                good &&
                !memcmp(got, all, SKELETON_TOKENS * m->width * sizeof *got);
        }
        run_close(&r);
    }
    ok(good && n_same == 2 * WAYS,
       "%s: the same bits by other ways over memory (%u of %d): %s", m->name,
       n_same, 2 * WAYS, good ? "" : r.err.message);
}

/* llama.cpp's outputs for the tokens. NULL: not on this machine. free(). */
#ifdef HAVE_ZLIB
static float *read_outputs(const char *name, size_t n)
{
    static const char *const folders[] = { "public", "autumn",
                                           "autumn/tiefree" };
    const char *path = NULL;
    char rel[300];
    for (size_t i = 0; i < GG_LEN(folders) && !path; i++) {
        snprintf(rel, sizeof rel, "archs/%s/logits/%s.f32.gz", folders[i],
                 name);
        path = shared_path(rel);
    }
    gzFile f = path ? gzopen(path, "rb") : NULL;
    const unsigned size = (unsigned)(n * sizeof(float));
    float *x = f ? malloc(size) : NULL;
    if (x && gzread(f, x, size) != (int)size) {
        free(x);
        x = NULL;
    }
    for (size_t i = 0; x && i < n; i++)
        x[i] = gg_bytes_f32_from_bits(gg_bytes_load32le(&x[i]));
    if (f)
        gzclose(f);
    return x;
}
#else
static float *read_outputs(const char *name, size_t n)
{
    (void)name, (void)n;
    return NULL;
}
#endif

/* Compare all outputs with llama.cpp's: *far is the NMSE, *same whether the
 * digest belongs to llama.cpp's. false: they are not on this machine. */
static bool compare_outputs(const struct skeleton *s, const float *got,
                            double *nmse, bool *same)
{
    float *want = read_outputs(s->name, s->n_rows * s->width);
    if (!want)
        return false;
    *nmse = run_nmse(got, want, s->n_rows * s->width);
    *same = skeleton_nmse(s, want) < 1e-15; /* the digest has nine digits */
    free(want);
    return true;
}

static const struct gg_arch *find_row(const struct skeleton *m)
{
    struct gguf_str name;
    const struct gguf_kv *kv =
        gguf_meta_find(m->g.meta, "general.architecture");
    const struct gg_arch *a =
        gguf_kv_get_str(kv, &name, NULL) ? NULL : gg_arch_find(name);
    if (!a)
        abort();
    return a;
}

/* Compute the model by its architecture's row, even if that says runs = false.
 */
static void check_logits(struct skeleton *m)
{
    static float got[SKELETON_TOKENS * SKELETON_VOCAB];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[SKELETON_TOKENS];
    struct gguf_batch b = { .struct_size = sizeof b,
                            .n = SKELETON_TOKENS,
                            .token = tok };
    size_t size;
    struct gg_arch arch = *find_row(m);
    const bool has = arch.runs;
    arch.runs = true;
    p.n_ctx = SKELETON_TOKENS;
    skeleton_tokens_of(m, tok);
    void *file = gen_file(&m->g, GGUF_DTYPE_F32, &size);
    struct run r;
    bool good = run_open_arch(&r, file, size, &arch, &p) &&
                m->n_rows == SKELETON_TOKENS && m->width <= SKELETON_VOCAB &&
                run_encode(&r, tok, SKELETON_TOKENS) &&
                run_outputs(&r, &b, got);
    /* llama.cpp's GELU is a table of F16 numbers */
    const bool gelu = arch.act && !strncmp(arch.act->text, "GELU", 4);
    const double most = m->tol > 0 ? m->tol : gelu ? 1e-6 : 1e-11;
    const double d = good ? skeleton_nmse(m, got) : 1;
    ok(good && d < most, "%s%s: %s%.2g from llama.cpp", m->name,
       has ? "" : ", by its row alone", good ? "" : r.err.message, d);
    double all;
    bool same;
    if (good && compare_outputs(m, got, &all, &same))
        ok(same && all < most,
           "%s: all outputs, %.2g from llama.cpp, whose "
           "digest this is",
           m->name, all);
    if (good)
        check_ways(m, file, size, &arch, got);
    if (good && !gguf_model_info(r.model)->is_whole)
        check_cuts(m, file, size, &arch, got, most);
    run_close(&r);
    free(file);
}

struct text {
    const struct gg_arch *row; /* NULL: the text cannot be read */
    bool has_digest;
};

static struct text check_text(const char *name)
{
    static struct skeleton m;
    struct text t = { NULL, false };
    if (skeleton_open(&m, name)) {
        t.row = find_row(&m);
        t.has_digest = m.n_rows;
        check_model(&m);
    } else {
        ok(0, "%s is read", name);
    }
    if (t.has_digest)
        check_logits(&m);
    skeleton_close(&m);
    return t;
}

/* Is the row tested by a digest? Models with masked logits have no digest;
 * check-logits tests them. */
static bool is_row_tested(const struct gg_arch *a, const struct text *t,
                          size_t n)
{
    bool has_text = false, has_digest = !a->runs || a->mask_logits;
    for (size_t i = 0; i < n; i++) {
        has_text |= t[i].row == a;
        has_digest |= t[i].row == a && t[i].has_digest;
    }
    return has_text && has_digest;
}

static void check_models(void)
{
    static char names[512][64];
    static struct text texts[GG_LEN(names)];
    size_t n_digests = 0, n = skeleton_names(names, GG_LEN(names));
    const char *untested = "";
    for (size_t i = 0; i < n; i++) {
        texts[i] = check_text(names[i]);
        n_digests += texts[i].has_digest;
    }
    ok(n > 140 && n_digests > 50, "%zu models, %zu evaluated", n, n_digests);
    for (const struct gg_arch *a = NULL; (a = gg_arch_next(a));)
        if (!is_row_tested(a, texts, n))
            untested = a->name;
    ok(!*untested, "each row has a text, with a digest if it runs: %s",
       *untested ? untested : "all");
}

/* ---- the rows themselves ---- */

static void check_order(void)
{
    static const struct gg_arch_family *const families[] = {
#define X(FAMILY) &gg_arch_family_##FAMILY,
        GG_FAMILY_LIST(X)
#undef X
    };
    const char *last = "";
    size_t n = 0, all = 0;
    unsigned bad = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        all += families[i]->n;
    for (const struct gg_arch *a = NULL; (a = gg_arch_next(a)); n++) {
        bad +=
            strcmp(last, a->name) >= 0 || gg_arch_find(gg_str_z(a->name)) != a;
        last = a->name;
    }
    ok(!bad && n == all && n > 130,
       "%zu rows of all families, in the order of names", n);
}

/* doc/architectures.md agrees with the rows. */
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
    ok(a == b && at > 1000,
       "doc/architectures.md agrees with the rows: line %zu", n + 1);
    fclose(page);
    fclose(made);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--page")) {
        page_print(stdout);
        return 0;
    }
    for (int i = 1; i < argc; i++)
        check_text(argv[i]);
    if (argc > 1)
        return done_testing();
    check_order();
    check_page();
    check_models();
    return done_testing();
}
