/* SPDX-License-Identifier: MIT */
/* check-files.c - output files are equal to llama-quantize's
 *
 * files.tsv lists runs on share/tiny-llama and the SHA-256 of their outputs:
 * the lines of ../shared/golden/files/runs.tsv without importance data. If
 * that table is there, its lines run, too, on trained models beside it and on
 * synthetic ones made by its script, which needs Python with numpy. A run with
 * options or types that are not supported is counted, not passed.
 * GGUF_TEST_LONG=1 makes all runs; otherwise the first of every
 * GGUF_TEST_SAMPLE (3) runs of a model.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/meta.h"
#include "gguf/quant.h"
#include "gguf/split.h"
#include "tests/scratch.h"
#include "tests/source.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <unistd.h>

static char dir[4096]; /* folder of temporary files */
static struct gguf_pool *pools[4];

/* Digest of a file, by the system's tool. */
static bool sha256(const char *path, char out[65])
{
    char command[8300];
    snprintf(command, sizeof command, "sha256sum '%s' 2>/dev/null", path);
    FILE *f = popen(command, "r");
    bool good = f && fread(out, 1, 64, f) == 64;
    out[64] = 0;
    return f && pclose(f) == 0 && good;
}

/* Lines of a table, split at the tabs. */
enum { MAX_FIELDS = 16 };
struct row {
    char line[4096];
    char *f[MAX_FIELDS];
};

static bool next_row(FILE *in, struct row *r)
{
    if (!fgets(r->line, sizeof r->line, in))
        return false;
    r->line[strcspn(r->line, "\n")] = 0;
    char *p = r->line;
    for (int i = 0; i < MAX_FIELDS; i++) {
        r->f[i] = p;
        p += strcspn(p, "\t");
        if (*p)
            *p++ = 0;
    }
    return true;
}

/* ------------------------------------------------------------ one run --- */

enum outcome { SAME, DIFFERENT, UNSUPPORTED };

struct args {
    struct gguf_quant_params p;
    struct gguf_quant_override overrides[8];
    const char *texts[8];
    size_t n_texts;
    bool include;
    struct gguf_meta *meta;
    uint32_t prune[8];
    char text[1024];
};

static uint32_t type_of(const char *name)
{
    const struct gguf_dtype_info *t = gguf_dtype_find_name(name);
    return t ? t->id : UINT32_MAX;
}

/* Parse KEY=TYPE:VALUE as llama-quantize does. */
static bool override_key(struct args *a, char *text)
{
    char *eq = strchr(text, '='), *colon = eq ? strchr(eq, ':') : NULL;
    if (!colon || (!a->meta && gguf_meta_create(&a->meta, NULL, NULL)))
        return false;
    *eq = *colon = 0;
    colon++;
    if (!strcmp(eq + 1, "int"))
        return !gguf_meta_set_u32(a->meta, text, (uint32_t)abs(atoi(colon)),
                                  NULL);
    if (!strcmp(eq + 1, "float"))
        return !gguf_meta_set_f32(a->meta, text, strtof(colon, NULL), NULL);
    if (!strcmp(eq + 1, "bool"))
        return !gguf_meta_set_bool(a->meta, text, *colon == 't', NULL);
    return !gguf_meta_set_strz(a->meta, text, colon, NULL);
}

/* Parse options of llama-quantize. false: this test does not support one. */
static bool parse_args(struct args *a, const char *text)
{
    char *save, *value = NULL;
    snprintf(a->text, sizeof a->text, "%s", text);
    for (char *w = strtok_r(a->text, " ", &save); w;
         w = strtok_r(NULL, " ", &save)) {
        if (!strcmp(w, "-"))
            continue;
        if (!strcmp(w, "--pure"))
            a->p.pure = 1;
        else if (!strcmp(w, "--leave-output-tensor"))
            a->p.leave_output = 1;
        else if (!strcmp(w, "--allow-requantize"))
            a->p.allow_requantize = 1;
        else if (!strcmp(w, "--keep-split"))
            a->p.keep_split = 1;
        else if (!(value = strtok_r(NULL, " ", &save)))
            return false;
        else if (!strcmp(w, "--output-tensor-type"))
            a->p.output_type = gguf_dtype_find_name(value);
        else if (!strcmp(w, "--token-embedding-type"))
            a->p.embedding_type = gguf_dtype_find_name(value);
        else if (!strcmp(w, "--override-kv")) {
            if (!override_key(a, value))
                return false;
        } else if (!strcmp(w, "--prune-layers")) {
            for (char *p = value; *p; p += *p == ',')
                a->prune[a->p.n_prune++] = (uint32_t)strtoul(p, &p, 10);
        } else if (strstr(w, "clude-weights")) {
            a->include = !strcmp(w, "--include-weights");
            a->texts[a->n_texts++] = value;
        } else if (!strcmp(w, "--tensor-type")) {
            char *eq = strchr(value, '=');
            *eq = 0;
            a->overrides[a->p.n_overrides++] =
                (struct gguf_quant_override){ value, type_of(eq + 1) };
        } else {
            return false;
        }
    }
    a->p.overrides = a->overrides;
    a->p.meta = a->meta;
    a->p.prune = a->prune;
    return true;
}

static enum outcome one_run(const char *model, const struct row *run)
{
    struct args a = { .p = GGUF_QUANT_PARAMS_INIT };
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *recipe = NULL;
    struct gguf_imatrix *im = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_error err;
    static unsigned n;
    char out[5000], digest[65];

    /* The reference is wrong if layers are left out in the middle: it stores
     * the weights of layer k under the name of layer k, as if the last layers
     * were left out. check-quant tests the right result. */
    bool wrong = strstr(run->f[4], "--prune") && strstr(run->f[0], "deep");
    if (wrong || !parse_args(&a, run->f[4])) {
        gguf_meta_destroy(a.meta);
        return UNSUPPORTED;
    }
    if (strcmp(run->f[3], "-")) {
        char name[256];
        snprintf(name, sizeof name, "golden/files/imatrix/%s", run->f[3]);
        const char *path = shared_path(name);
        if (!path || gguf_imatrix_load(&im, path, NULL, &err) != GGUF_OK) {
            printf("# %s: %s\n", run->f[0], path ? err.message : name);
            return DIFFERENT;
        }
        if (a.n_texts)
            gguf_imatrix_filter(im, a.texts, a.n_texts, a.include);
        a.p.imatrix = im;
        a.p.imatrix_name = run->f[3];
    }
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    a.p.compat = 1;
    a.p.pool = pools[n++ % GG_LEN(pools)];
    o.no_sync = o.force = 1;
    enum gguf_status st = gguf_recipe_preset(&recipe, run->f[2], NULL, &err);
    a.p.recipe = recipe;
    if (st == GGUF_OK)
        st = gguf_quant_create(&q, model, &a.p, &err);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, out, &o, &err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(recipe);
    gguf_imatrix_destroy(im);
    gguf_meta_destroy(a.meta);
    if (st == GGUF_E_UNSUPPORTED)
        return UNSUPPORTED;
    if (a.p.keep_split) /* the run's name has the shard's as its end */
        snprintf(out, sizeof out, "%s/out%s.gguf", dir,
                 strrchr(run->f[0], 't') + 1);
    if (st == GGUF_OK && sha256(out, digest) && !strcmp(digest, run->f[8]))
        return SAME;
    printf("# %s: %s\n", run->f[0], st == GGUF_OK ? digest : err.message);
    return DIFFERENT;
}

static unsigned sample_step(void)
{
    const char *n = getenv("GGUF_TEST_SAMPLE");
    if (getenv("GGUF_TEST_LONG"))
        return 1;
    return n && atoi(n) > 0 ? (unsigned)atoi(n) : 3;
}

static FILE *open_runs(void)
{
    const char *path = shared_path("golden/files/runs.tsv");
    return fopen(path ? path : source_path("tests/quant/files.tsv"), "r");
}

/* Every line of files.tsv stands in the other table. */
static void check_carried(void)
{
    static char all[1 << 20], line[4096];
    unsigned n = 0, n_there = 0;
    FILE *f = open_runs();
    all[f ? fread(all, 1, sizeof all - 1, f) : 0] = 0;
    if (f)
        fclose(f);
    f = fopen(source_path("tests/quant/files.tsv"), "r");
    for (; f && fgets(line, sizeof line, f); n++)
        n_there += strstr(all, line) != NULL;
    if (f)
        fclose(f);
    ok(n > 20 && n == n_there, "%u runs are those of ../shared", n);
}

/* Make the runs of the model at path. name: in the table. */
static void check_model(const char *name, const char *path)
{
    struct row run;
    unsigned n[3] = { 0, 0, 0 }, failed = 0, left = 0, k = 0;
    unsigned step = sample_step();
    FILE *f = open_runs();
    while (f && next_row(f, &run)) {
        const char *slash = strchr(run.f[1], '/');
        if (!slash || strcmp(slash + 1, name))
            continue;
        if (strcmp(run.f[6], "0")) {
            failed++; /* the reference failed */
            continue;
        }
        if (k++ % step)
            left++;
        else
            n[one_run(path, &run)]++;
    }
    if (f)
        fclose(f);
    ok(n[SAME] && !n[DIFFERENT],
       "%s: %u files are the reference's (%u not supported, %u left out, %u "
       "where it failed)",
       name, n[SAME], n[UNSUPPORTED], left, failed);
}

/* --------------------------------------------------------- the models --- */

/* Make a synthetic model with its command in models.tsv. */
static bool make_model(const struct row *m, const char *path)
{
    static const char *const pythons[] = { "python3", "/usr/bin/python3" };
    char command[16384], digest[65];
    const char *script = strchr(m->f[3], ' ');
    const char *args = strstr(m->f[3], "OUT ");
    if (!script || !args)
        return false;
    for (size_t i = 0; i < GG_LEN(pythons); i++) {
        snprintf(command, sizeof command,
                 "%s '%s/golden/tools/%.*s' '%s' %s >/dev/null 2>&1",
                 pythons[i], getenv("GGUF_SHARED"), (int)(script - m->f[3]),
                 m->f[3], path, args + 4);
        if (system(command) == 0)
            return sha256(path, digest) && !strcmp(digest, m->f[1]);
    }
    return false;
}

static void check_models(FILE *models)
{
    struct row m;
    char path[5000], digest[65];
    while (next_row(models, &m)) {
        if (!strncmp(m.f[3], "trained", 7)) {
            char name[128];
            snprintf(name, sizeof name, "models/%s", m.f[0]);
            const char *p = shared_path(name);
            if (p && sha256(p, digest) && !strcmp(digest, m.f[1])) {
                snprintf(path, sizeof path, "%s", p);
                check_model(m.f[0], path);
            } else {
                skip("%s is not here", m.f[0]);
            }
        } else if (!strncmp(m.f[3], "synth", 5)) {
            snprintf(path, sizeof path, "%s/%s", dir, m.f[0]);
            if (make_model(&m, path))
                check_model(m.f[0], path);
            else
                skip("%s cannot be made here: no Python with numpy", m.f[0]);
            if (strcmp(m.f[0], "syn-a-f16.gguf"))
                remove(path);
        }
    }
}

/* syn-a in three files, split by the reference. */
static void check_split(void)
{
    char in[5000], out[5000], path[9000];
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_plan *plan = NULL;
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *set = NULL;
    snprintf(in, sizeof in, "%s/syn-a-f16.gguf", dir);
    snprintf(out, sizeof out, "%s/syn-a", dir);
    if (access(in, R_OK)) {
        skip("no syn-a-f16.gguf to split");
        return;
    }
    p.max_tensors = 14;
    job.no_sync = 1;
    ok(gguf_file_open(&set, in, NULL, NULL) == GGUF_OK &&
           gguf_split_plan_create(&plan, set, &p, NULL) == GGUF_OK &&
           gguf_split_plan_write(plan, out, &job, NULL) == GGUF_OK,
       "split");
    gguf_split_plan_destroy(plan);
    gguf_file_close(set);
    snprintf(path, sizeof path, "%s-00001-of-00003.gguf", out);
    check_model("split/syn-a-00001-of-00003.gguf", path);
}

/* Models that a quantizer made from syn-a. */
static void check_derived(const char *name, const char *type)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    p.compat = 1; /* llama-quantize made them so */
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *recipe;
    struct gguf_quant *q = NULL;
    char in[5000], out[5000];
    snprintf(in, sizeof in, "%s/syn-a-f16.gguf", dir);
    snprintf(out, sizeof out, "%s/%s", dir, name);
    if (access(in, R_OK)) {
        skip("no syn-a-f16.gguf to make %s from", name);
        return;
    }
    o.no_sync = 1;
    if (gguf_recipe_preset(&recipe, type, NULL, NULL) == GGUF_OK) {
        p.recipe = recipe;
        if (gguf_quant_create(&q, in, &p, NULL) == GGUF_OK &&
            gguf_quant_run(q, out, &o, NULL) == GGUF_OK)
            check_model(name, out);
        else
            ok(0, "%s can be made", name);
        gguf_quant_destroy(q);
        gguf_recipe_destroy(recipe);
    }
    remove(out);
}

int main(void)
{
    const char *path = shared_path("golden/files/models.tsv");
    FILE *models = path ? fopen(path, "r") : NULL;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.3000s/gguf-check-XXXXXX", tmp ? tmp : "/tmp");
    if (!scratch_make(dir)) {
        perror(dir);
        return 99;
    }
    for (unsigned i = 0; i < GG_LEN(pools); i++) {
        struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
        p.n_threads = i + 1;
        if (gguf_pool_create(&pools[i], &p, NULL) != GGUF_OK)
            pools[i] = NULL;
    }
    if (models) {
        check_carried();
        check_models(models);
        check_split();
        check_derived("syn-a-q8_0.gguf", "Q8_0");
        check_derived("syn-a-q4km.gguf", "Q4_K_M");
        fclose(models);
    } else {
        char model[4096];
        snprintf(model, sizeof model, "%s",
                 source_path("share/tiny-llama/tiny-llama-f16.gguf"));
        check_model("llama-f16.gguf", model);
    }
    if (!scratch_remove(dir))
        perror(dir);
    for (unsigned i = 0; i < GG_LEN(pools); i++)
        gguf_pool_destroy(pools[i]);
    return done_testing();
}
