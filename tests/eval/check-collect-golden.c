/* SPDX-License-Identifier: MIT */
/* check-collect-golden.c - importance data agree with llama-imatrix's */
#include "config.h"
#include "base/compiler.h"
#include "gguf/model.h"
#include "gguf/collect.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

/* Count the entries that differ: in counts, or by more than 1e-3 in a sum,
 * since llama-imatrix stored keys, values and activations in F16. *worst:
 * largest difference of a column. */
static size_t n_golden_wrong(const struct gguf_imatrix *a,
                             const struct gguf_imatrix *b, double *worst)
{
    struct gguf_imatrix_entry x = GGUF_IMATRIX_ENTRY_INIT, y = x;
    size_t n_wrong = gguf_imatrix_n_entries(a) != gguf_imatrix_n_entries(b);
    for (size_t i = 0; !n_wrong && i < gguf_imatrix_n_entries(a); i++) {
        float u, v;
        n_wrong += gguf_imatrix_entry(a, i, &x, NULL) ||
                   gguf_imatrix_entry(b, i, &y, NULL) ||
                   strcmp(x.name, y.name) != 0 || x.n_values != y.n_values ||
                   x.n_mats != y.n_mats || x.n_calls != y.n_calls ||
                   gguf_imatrix_counts(a, i, 0, 1, &u, NULL) ||
                   gguf_imatrix_counts(b, i, 0, 1, &v, NULL) || u != v;
        for (uint64_t j = 0; !n_wrong && j < x.n_values; j++) {
            n_wrong += gguf_imatrix_sums(a, i, j, 1, &u, NULL) ||
                       gguf_imatrix_sums(b, i, j, 1, &v, NULL);
            *worst = fmax(*worst, fabs((double)u / (double)v - 1));
        }
    }
    return n_wrong;
}

/* Collect data of the trained model with llama-imatrix's settings. output:
 * with the output matrix. */
static bool collect_golden(struct gguf_imatrix **im, bool output)
{
    const char *path = shared_path("models/llama-f16.gguf");
    static char bytes[1 << 17];
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_collect_params cp = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_collect_run_params cr = GGUF_COLLECT_RUN_PARAMS_INIT;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_collect *c = NULL;
    struct run r;
    sp.n_ctx = 512;
    bool good = path && run_open_path(&r, path, 2, &sp);
    path = shared_path("models/calib.txt");
    FILE *f = path ? fopen(path, "rb") : NULL;
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    cp.output = output;
    cr.max_chunks = 16;
    cr.dataset = "calib.txt";
    good = good && n && !gguf_collect_create(&c, &cp, &r.err) &&
           !gguf_vocab_tokenize(gguf_model_vocab(r.model), bytes, n - 1,
                                GGUF_TOKENIZE_ADD_SPECIAL, &t, &r.err) &&
           !gguf_collect_run(c, r.session, t.id, t.n, &cr, &r.err) &&
           !gguf_collect_result(c, im, &r.err);
    if (!good)
        printf("# %s\n", r.err.message);
    gguf_tokens_fini(&t);
    gguf_collect_destroy(c);
    run_close(&r);
    return good;
}

static void check_golden(const char *dir)
{
    static const struct {
        const char *name;
        bool output;
        enum gguf_imatrix_form form;
    } forms[] = {
        { "golden/imatrix/llama.c512.n16.gguf", true, GGUF_IMATRIX_GGUF },
        { "golden/imatrix/llama.c512.n16.dat", false, GGUF_IMATRIX_DAT },
    };
    for (size_t k = 0; k < GG_LEN(forms); k++) {
        const char *path = shared_path(forms[k].name);
        const char *own = scratch_path(dir, "golden");
        struct gguf_imatrix *a = NULL, *back = NULL, *b = NULL;
        struct gguf_error err;
        double worst = 0;
        if (!path || gguf_imatrix_load(&b, path, NULL, &err) != GGUF_OK) {
            skip("no %s", forms[k].name);
            continue;
        }
        const bool good =
            collect_golden(&a, forms[k].output) &&
            !gguf_imatrix_save(a, own, forms[k].form, 1, &err) &&
            !gguf_imatrix_load(&back, own, NULL, &err) &&
            gguf_imatrix_n_chunks(back) == gguf_imatrix_n_chunks(b) &&
            gguf_imatrix_chunk_size(back) == gguf_imatrix_chunk_size(b) &&
            !strcmp(gguf_imatrix_dataset(back, 0), "calib.txt");
        ok(good && !n_golden_wrong(back, b, &worst) && worst < 1e-3,
           "%s: counts the same, sums within %.2g", forms[k].name, worst);
        gguf_imatrix_destroy(a);
        gguf_imatrix_destroy(back);
        gguf_imatrix_destroy(b);
    }
}

int main(void)
{
    char dir[] = "/tmp/check-collect-golden-XXXXXX";
    if (!scratch_make(dir)) {
        printf("Bail out! no folder\n");
        return 1;
    }
    check_golden(dir);
    scratch_clean(dir);
    rmdir(dir);
    return done_testing();
}
