/* SPDX-License-Identifier: MIT */
/* check-variants.c - models of tests/family with changes (variant.h)
 *
 *   check-variants [NAME...]    these models; all without a name
 *
 * Each line of a section [variants] is a test.
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/family/refbert.h"
#include "tests/family/variant.h"
#include "tests/model/findings.h"
#include "tests/tap.h"

enum { N = VARIANT_TOKENS, V = VARIANT_WIDTH, MOST = 1024 };

/* A line, split into its parts. */
struct check {
    const char *model;
    char a[MOST], b[MOST]; /* variants; "": the plain model */
    char what[MOST];
    char status[32]; /* expected status of refuse; "": any */
    double bound;    /* -1: none is given */
    int at;          /* token; -1: all */
};

/* Cut the text before a word that stands between blanks. Returns the text
 * after it; NULL: the word is missing. */
static char *cut_after(char *p, const char *word)
{
    char between[16];
    snprintf(between, sizeof between, " %s ", word);
    char *at = strstr(p, between);
    if (!at)
        return NULL;
    *at = 0;
    return at + strlen(between);
}

static bool split_line(struct check *c, const char *line)
{
    char p[MOST];
    if (strlen(line) >= MOST)
        return false;
    strcpy(p, line);
    char *what = strstr(p, ": ");
    if (!what)
        return false;
    *what = 0;
    strcpy(c->what, what + 2);
    const char *with = cut_after(p, "with"), *at = cut_after(p, "at"),
               *within = cut_after(p, "within"), *by = cut_after(p, "by"),
               *b = cut_after(p, "and");
    snprintf(c->status, sizeof c->status, "%s", with ? with : "");
    c->at = at ? atoi(at) : -1;
    c->bound = within ? atof(within) : by ? atof(by) : -1;
    strcpy(c->a, p);
    strcpy(c->b, b ? b : "");
    return true;
}

/* ---- two variants ---- */

/* Compute outputs; those of the plain model are kept. */
static bool get_outputs(const char *model, const char *changes, float *out,
                        struct gguf_error *err)
{
    static float plain[N * V];
    static char known[64];
    memset(out, 0, sizeof plain);
    if (*changes)
        return variant_outputs(model, changes, out, err);
    if (strcmp(known, model) != 0) {
        memset(plain, 0, sizeof plain);
        if (!variant_outputs(model, "", plain, err))
            return false;
        snprintf(known, sizeof known, "%s", model);
    }
    memcpy(out, plain, sizeof plain);
    return true;
}

/* Distance of the outputs; 9: one has no outputs. */
static double get_distance(const struct check *c)
{
    static float x[N * V], y[N * V];
    struct gguf_error err;
    const size_t from = c->at < 0 ? 0 : (size_t)c->at * V;
    if (get_outputs(c->model, c->a, x, &err) &&
        get_outputs(c->model, c->b, y, &err))
        return run_nmse(x + from, y + from, c->at < 0 ? N * V : V);
    printf("# %s: %s\n", c->model, err.message);
    return 9;
}

static void check_same(struct check *c)
{
    const double d = get_distance(c);
    ok(d <= (c->bound < 0 ? 0 : c->bound), "%s: %s: %.2g", c->model, c->what,
       d);
}

static void check_differ(struct check *c)
{
    const double d = get_distance(c);
    ok(d > (c->bound < 0 ? 2e-3 : c->bound) && d < 9, "%s: %s: %.2g", c->model,
       c->what, d);
}

/* ---- one variant ---- */

static bool has_status(const struct check *c, enum gguf_status st)
{
#define STATUS(NAME)                                                          \
    {                                                                         \
#NAME, GGUF_E_##NAME                                                  \
    }
    static const struct {
        const char *name;
        enum gguf_status st;
    } names[] = { STATUS(HPARAM),      STATUS(TENSOR),  STATUS(NOTFOUND),
                  STATUS(UNSUPPORTED), STATUS(INVALID), STATUS(ARCH) };
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (!strcmp(names[i].name, c->status))
            return st == names[i].st;
    return !c->status[0];
}

static void check_refuse(struct check *c)
{
    static float out[N * V];
    struct gguf_error err;
    const bool opens = variant_outputs(c->model, c->a, out, &err);
    ok(!opens && strstr(err.message, c->what) && has_status(c, err.status),
       "%s: %s", c->model, opens ? "is evaluated" : err.message);
}

static void keep_warning(void *user, const char *message)
{
    snprintf(user, MOST, "%s", message);
}

/* Open the variant. warning: its last warning, or "". Returns false if opening
 * fails. */
static bool get_warning(const struct check *c, char warning[MOST])
{
    static struct variant v;
    struct gguf_model_params p = GGUF_MODEL_PARAMS_INIT;
    size_t size;
    variant_open(&v, c->model, c->a);
    void *file = variant_file(&v, &size);
    warning[0] = 0;
    p.warn.fn = keep_warning;
    p.warn.user = warning;
    const bool good = run_try(file, size, &p, NULL) == GGUF_OK;
    free(file);
    variant_close(&v);
    return good;
}

static void check_quiet(struct check *c)
{
    char warning[MOST];
    ok(get_warning(c, warning) && !warning[0], "%s: %s: %s", c->model, c->what,
       warning);
}

static void check_warn(struct check *c)
{
    char warning[MOST];
    ok(get_warning(c, warning) && strstr(warning, c->what), "%s: %s", c->model,
       warning);
}

static void check_sound(struct check *c)
{
    static struct variant v;
    struct findings s = { .n = 0 };
    size_t size;
    variant_open(&v, c->model, c->a);
    void *file = variant_file(&v, &size);
    ok(findings_in(file, size, NULL, &s) == GGUF_OK && !s.n_error &&
           !s.n_warning,
       "%s: %s: %s", c->model, c->what, s.codes);
    free(file);
    variant_close(&v);
}

static void check_digest(struct check *c)
{
    static struct variant v;
    static float out[N * V];
    struct gguf_error err = { .message = "" };
    variant_open(&v, c->model, c->a);
    const double d = variant_run(&v, out, &err) ? skeleton_nmse(&v.m, out) : 9;
    ok(d <= c->bound, "%s: %s: %.2g%s", c->model, c->what, d, err.message);
    variant_close(&v);
}

static void check_keeps(struct check *c)
{
    static struct variant v;
    static float out[N * V];
    struct gguf_error err = { .message = "" };
    char *bytes = strrchr(c->a, ' ');
    const unsigned long long want = strtoull(bytes ? bytes : c->a, NULL, 10);
    *(bytes ? bytes : c->a) = 0;
    variant_open(&v, c->model, c->a);
    const bool good = variant_run(&v, out, &err);
    ok(good && v.kept == want, "%s: %s: %llu bytes%s", c->model, c->what,
       (unsigned long long)v.kept, err.message);
    variant_close(&v);
}

/* Output of the last token, if only tokens from to last are decoded. */
static bool one_row(const struct check *c, int from, int last, float *out)
{
    static struct variant v;
    static float all[N * V];
    struct gguf_error err;
    variant_open(&v, c->model, c->a);
    v.first = (size_t)from;
    v.n_tok = (size_t)(last + 1 - from);
    const bool good = variant_run(&v, all, &err);
    if (good)
        memcpy(out, all + (ptrdiff_t)(c->at - from) * V, V * sizeof *out);
    else
        printf("# %s: %s\n", c->model, err.message);
    variant_close(&v);
    return good;
}

/* The token attends to every token of a range, and to no other. */
static void check_sees(struct check *c)
{
    float all[V], some[V], less[V], more[V];
    char *range = strrchr(c->a, ' ');
    int from = 0, last = 0;
    if (!range || sscanf(range, " %d-%d", &from, &last) != 2)
        variant_fail(&(struct variant){ .n_tok = 0 }, "no range: %s", c->a);
    *range = 0;
    bool good = one_row(c, 0, N - 1, all) && one_row(c, from, last, some);
    const double d = good ? run_nmse(some, all, V) : 9;
    ok(d < 1e-12, "%s: %s: token %d sees none but %d to %d: %.2g", c->model,
       c->what, c->at, from, last, d);
    good = good && (from == c->at || one_row(c, from + 1, last, less)) &&
           (last == c->at || one_row(c, from, last - 1, more));
    ok(good && (from == c->at || run_nmse(less, all, V) > 1e-6) &&
           (last == c->at || run_nmse(more, all, V) > 1e-6),
       "%s: and all of them", c->model);
}

/* ---- against double precision ---- */

/* Compare outputs with double precision, and their bits with another number of
 * threads. */
static void check_double(struct check *c)
{
    static struct variant v;
    static float got[2][N * V];
    static double want[N * V];
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[N];
    size_t size;
    bool good = true;
    variant_open(&v, c->model, c->a);
    void *file = variant_file(&v, &size);
    skeleton_tokens_of(&v.m, tok);
    b.n = N;
    b.token = tok;
    for (unsigned i = 0; i < 2 && good; i++) {
        struct run r;
        good = run_open(&r, file, size, 1 + 2 * i, &v.params) &&
               run_states(&r, &b, got[i]);
        if (!good)
            printf("# %s: %s\n", c->model, r.err.message);
        run_close(&r);
    }
    refbert_run(&v.m, tok, N, want);
    const double d = good ? run_nmse_double(got[0], want, N * V) : 9;
    ok(d < 1e-11 && !memcmp(got[0], got[1], sizeof got[0]),
       "%s: %s: %.2g from doubles", c->model, c->what, d);
    free(file);
    variant_close(&v);
}

/* ---- all lines ---- */

/* Does another line use the name of these changes? */
static bool is_used(const struct variant_text *t, const char *let)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(let, " "), let);
    const size_t len = strlen(name);
    for (size_t i = 0; i < t->n; i++)
        for (const char *p = t->line[i]; (p = strstr(p, name)); p += len)
            if (p != let && p[-1] == ' ' && (!p[len] || strchr(" :", p[len])))
                return true;
    return false;
}

static void check_line(const struct variant_text *t, const char *line)
{
    static const struct {
        const char *word;
        void (*run)(struct check *c);
    } words[] = {
        { "same ", check_same },     { "differ ", check_differ },
        { "refuse ", check_refuse }, { "quiet ", check_quiet },
        { "warn ", check_warn },     { "sound ", check_sound },
        { "digest ", check_digest }, { "keeps ", check_keeps },
        { "sees ", check_sees },     { "double ", check_double },
    };
    struct check c = { .model = t->model };
    if (!strncmp(line, "let ", 4)) {
        if (!is_used(t, line + 4))
            ok(0, "%s: is used: %s", t->model, line);
        return;
    }
    for (size_t i = 0; i < GG_LEN(words); i++) {
        const size_t len = strlen(words[i].word);
        if (strncmp(line, words[i].word, len) != 0)
            continue;
        if (!split_line(&c, line + len))
            break;
        words[i].run(&c);
        return;
    }
    ok(0, "%s: can be read: %s", t->model, line);
}

int main(int argc, char **argv)
{
    static char names[512][64];
    size_t n = skeleton_names(names, GG_LEN(names));
    for (int i = 1; i < argc; i++)
        snprintf(names[i - 1], sizeof names[0], "%s", argv[i]);
    n = argc > 1 ? (size_t)argc - 1 : n;
    for (size_t i = 0; i < n; i++) {
        const struct variant_text *t = variant_text(names[i]);
        for (size_t k = 0; k < t->n; k++)
            check_line(t, t->line[k]);
    }
    return done_testing();
}
