/* SPDX-License-Identifier: MIT */
/* check-task.c - tasks: scores agree with a forward pass in double precision,
 * figures with llama.cpp */
#include "config.h"
#include "base/compiler.h"
#include "gguf/task.h"
#include "run/session_int.h"
#include "tests/failalloc.h"
#include "tests/model/gen.h"
#include "tests/model/ref.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>

/* Letters and pairs of letters. */
static const char *const pieces[] = { "<unk>", "<s>", "</s>", "\xe2\x96\x81",
                                      "sx",    "ab",  "de" };
enum { N_PIECES = 7, V = N_PIECES + 27 };

static const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = V };

static struct gen g;
static void *file;
static size_t file_size;

static bool make_model(void)
{
    struct gguf_str token[V];
    static char letters[27];
    float score[V] = { 0 };
    int32_t type[V];
    struct gguf_error err;
    for (int i = 0; i < V; i++) {
        type[i] = i == 0 ? 2 : i < 3 ? 3 : 1;
        score[i] = i >= 4 && i < N_PIECES ? 5 : 0;
        if (i < N_PIECES) {
            token[i] = (struct gguf_str){ pieces[i], strlen(pieces[i]) };
            continue;
        }
        letters[i - N_PIECES] = i < V - 1 ? (char)('a' + i - N_PIECES) : '.';
        token[i] = (struct gguf_str){ letters + i - N_PIECES, 1 };
    }
    gen_init(&g, 7);
    gen_model(&g, &spec);
    if (gguf_meta_set_strz(g.meta, "tokenizer.ggml.model", "llama", &err) ||
        gguf_meta_set_str_array(g.meta, "tokenizer.ggml.tokens", token, V,
                                &err) ||
        gguf_meta_set_array(g.meta, "tokenizer.ggml.scores", GGUF_VAL_F32,
                            score, V, &err) ||
        gguf_meta_set_array(g.meta, "tokenizer.ggml.token_type", GGUF_VAL_I32,
                            type, V, &err)) {
        printf("# %s\n", err.message);
        return false;
    }
    file = gen_file(&g, GGUF_DTYPE_F32, &file_size);
    return file != NULL;
}

static bool open_session(struct run *r, uint32_t n_seq, uint32_t n_ctx,
                         unsigned n_threads, uint32_t n_ubatch,
                         const struct gguf_allocator *a)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.allocator = a;
    p.n_ctx = n_ctx;
    p.n_seq = n_seq;
    p.n_ubatch = n_ubatch;
    bool good = run_open(r, file, file_size, n_threads, &p);
    if (!good)
        printf("# %s\n", r->err.message);
    return good;
}

static struct gguf_tasks *parse_tasks(enum gguf_task_kind kind,
                                      const char *text, struct gguf_error *err)
{
    struct gguf_tasks *t;
    gguf_error_clear(err);
    return gguf_tasks_parse(&t, kind, text, strlen(text), NULL, err) ? NULL
                                                                     : t;
}

/* ---- scores ---- */

/* ln p of tokens [first, end) of a text, in double precision. */
static double reference_score(const struct gguf_vocab *v, const char *text,
                              size_t first, size_t end)
{
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    double sum = 0;
    if (gguf_vocab_tokenize(v, text, strlen(text), GGUF_TOKENIZE_ADD_SPECIAL,
                            &t, NULL) != GGUF_OK)
        abort();
    double *logits = ref_doubles(t.n * V);
    ref_logits(&g, &spec, t.id, (int)t.n, logits);
    for (size_t i = first; i < (end ? end : t.n); i++) {
        const double *row = logits + (i - 1) * V;
        double all = 0;
        for (int k = 0; k < V; k++)
            all += exp(row[k]);
        sum += row[t.id[i]] - log(all);
    }
    free(logits);
    gguf_tokens_fini(&t);
    return sum;
}

enum { MOST = 4, TASKS = 3 };
struct got {
    size_t n;
    double sum[TASKS][MOST], score[TASKS][MOST];
    uint32_t n_tokens[TASKS][MOST], chosen[TASKS];
    size_t no[TASKS];
};

static bool on_task(void *user, const struct gguf_task_scores *s)
{
    struct got *got = user;
    for (uint32_t a = 0; a < s->n_answers; a++) {
        got->sum[s->task][a] = s->sum[a];
        got->score[s->task][a] = s->score[a];
        got->n_tokens[s->task][a] = s->n_tokens[a];
    }
    got->chosen[s->task] = s->chosen;
    got->no[s->task] = s->no;
    got->n++;
    return false;
}

/* A text and the range of its tokens that is scored. */
struct want {
    const char *text;
    size_t first, end; /* end 0: to the last token */
};

static void check_scores(void)
{
    /* tokens of the texts: <s>, _, then letters and pairs */
    static const struct {
        enum gguf_task_kind kind;
        bool compat;
        const char *file, *what;
        struct want want[TASKS][MOST];
    } cases[] = {
        { GGUF_TASK_HELLASWAG,
          false,
          "the cat\n2\nsat\nslept\nsang\nab\n"
          "a dog\r\n0\r\nran\r\nran\r\nran off\r\nz\r\n",
          "endings after what all texts begin with",
          { { { "the cat sat", 10, 0 },
              { "the cat slept", 10, 0 },
              { "the cat sang", 10, 0 },
              { "the cat ab", 10, 0 } },
            { { "a dog ran", 8, 0 },
              { "a dog ran", 8, 0 },
              { "a dog ran off", 8, 0 },
              { "a dog z", 8, 0 } } } },
        { GGUF_TASK_WINOGRANDE,
          false,
          "0,the cu_ broke off.,p,bs,1\n"
          "1,\"a, _x is \"\"b\"\"\",s,d,2\n",
          "what comes after a name",
          { { { "the cup broke off.", 9, 0 },
              { "the cubs broke off.", 10, 0 } },
            { { "a, sx is \"b\"", 5, 0 }, { "a, dx is \"b\"", 6, 0 } } } },
        { GGUF_TASK_WINOGRANDE,
          true,
          "0,the cu_ broke off.,p,bs,1\n",
          "the same as llama.cpp: without the last token",
          { { { "the cup broke off.", 9, 19 },
              { "the cubs broke off.", 10, 20 } } } },
        { GGUF_TASK_CHOICE,
          false,
          "{\"question\": \"is it\", \"choices\": [\"ab\", \"a\", \"no\"], "
          "\"labels\": [1, 0, 1], \"id\": [{\"x\": null}, [\"y\"]]}\n\n"
          " {\"label\": \"1\", \"choices\": [\"x\", \"x\"], \"question\": "
          "\"\\u0061b\\n\"}",
          "answers to a question",
          { { { "is it ab", 8, 0 },
              { "is it a", 8, 0 },
              { "is it no", 8, 0 } },
            { { "ab\n x", 5, 0 }, { "ab\n x", 5, 0 } } } },
    };
    for (size_t k = 0; k < GG_LEN(cases); k++) {
        struct gguf_task_params p = GGUF_TASK_PARAMS_INIT;
        struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
        struct got got = { .n = 0 }, again = { .n = 0 };
        struct gguf_error err;
        struct gguf_tasks *t = parse_tasks(cases[k].kind, cases[k].file, &err);
        struct run r;
        double worst = 0;
        size_t n = 0, n_wrong = 0;
        p.compat = cases[k].compat;
        p.on_task.fn = on_task;
        p.on_task.user = &got;
        bool good = t && open_session(&r, MOST, 40, 2, 0, NULL) &&
                    !gguf_tasks_run(r.session, t, &p, &x, &err);
        const struct gguf_vocab *v = good ? gguf_model_vocab(r.model) : NULL;
        for (; good && n < TASKS && cases[k].want[n][0].text; n++)
            for (size_t a = 0; a < MOST && cases[k].want[n][a].text; a++) {
                const struct want *w = &cases[k].want[n][a];
                const double sum =
                    reference_score(v, w->text, w->first, w->end);
                worst = fmax(worst, fabs(got.sum[n][a] / sum - 1));
                n_wrong += fabs(got.score[n][a] * got.n_tokens[n][a] -
                                got.sum[n][a]) > 1e-9;
            }
        ok(good && got.n == n && x.n == n && !n_wrong && worst < 2e-6,
           "%s: %.2g from double precision%s", cases[k].what, worst,
           good ? "" : err.message);
        run_close(&r);
        p.on_task.user = &again;
        good = good && open_session(&r, 6, 64, 1, 5, NULL) &&
               !gguf_tasks_run(r.session, t, &p, &x, &err);
        ok(good && !memcmp(&got, &again, sizeof got),
           "the same digits with other threads, sequences and batches");
        if (good)
            run_close(&r);
        gguf_tasks_destroy(t);
    }
}

/* llama.cpp scores the names if few tokens follow them, and takes the second
 * name after the end of the first text. Published descriptions do not say so.
 */
static void check_compat_names(void)
{
    struct gguf_error err;
    struct gguf_tasks *t =
        parse_tasks(GGUF_TASK_WINOGRANDE, "0,the _b,p,q,1\n", &err);
    struct gguf_task_params p = GGUF_TASK_PARAMS_INIT;
    struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
    struct got got = { .n = 0 };
    struct run r;
    p.compat = true;
    p.on_task.fn = on_task;
    p.on_task.user = &got;
    bool good = t && open_session(&r, 2, 40, 2, 0, NULL) &&
                !gguf_tasks_run(r.session, t, &p, &x, &err);
    const struct gguf_vocab *v = good ? gguf_model_vocab(r.model) : NULL;
    /* tokens <s> _ t h e _ p b: score p; then q after b */
    const double a = good ? reference_score(v, "the pb", 6, 7) : 0;
    const double b = good ? reference_score(v, "the pbq", 8, 9) : 0;
    ok(good && fabs(got.sum[0][0] / a - 1) < 2e-6 &&
           fabs(got.sum[0][1] / b - 1) < 2e-6 && got.n_tokens[0][0] == 1,
       "a name is scored, the other after the end of the first text");
    run_close(&r);
    gguf_tasks_destroy(t);
}

/* ---- number of computed tokens ---- */

static size_t n_computed;
static bool on_graph(void *user, struct gguf_graph *graph,
                     struct gguf_sched *sched)
{
    const struct run *r = user;
    (void)graph;
    if (r->session && sched == r->session->sched)
        n_computed += (size_t)(r->session->ubatch.shape.n_real *
                               r->session->ubatch.shape.n_seq);
    return false;
}

static void check_once(void)
{
    struct gguf_error err;
    struct gguf_tasks *t = parse_tasks(
        GGUF_TASK_HELLASWAG, "the cat\n0\nsat\nslept\nsang\nab\n", &err);
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
    struct run r = { .session = NULL };
    p.n_ctx = 40;
    p.n_seq = 4;
    p.on_graph.fn = on_graph;
    p.on_graph.user = &r;
    bool good = t && run_open(&r, file, file_size, 1, &p);
    n_computed = 0;
    good = good && !gguf_tasks_run(r.session, t, NULL, &x, &err);
    /* 10 tokens in common; then sat 2, slept 4, sang 3, ab 0 (a single token)
     */
    ok(good && n_computed == 10 + 2 + 4 + 3,
       "what texts have in common is computed once: %zu tokens of 53",
       n_computed);
    run_close(&r);
    gguf_tasks_destroy(t);
}

/* ---- some of them ---- */

static void check_sample(void)
{
    char text[4000] = "";
    struct gguf_error err;
    size_t at = 0, n_wrong = 0;
    for (int i = 0; i < 100; i++)
        at += (size_t)sprintf(text + at, "%d,a _ b,c,d,%d\n", i, i % 2 + 1);
    struct gguf_tasks *a = parse_tasks(GGUF_TASK_WINOGRANDE, text, &err);
    struct gguf_tasks *b = parse_tasks(GGUF_TASK_WINOGRANDE, text, &err);
    gguf_tasks_sample(a, 200);
    ok(a && gguf_tasks_n_tasks(a) == 100, "no more than there are");
    gguf_tasks_sample(a, 12);
    gguf_tasks_sample(b, 12);
    struct gguf_task_params p = GGUF_TASK_PARAMS_INIT;
    struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
    struct got got = { .n = 0 };
    struct run r;
    p.on_task.fn = on_task;
    p.on_task.user = &got;
    bool good = open_session(&r, 2, 40, 1, 0, NULL);
    gguf_tasks_sample(a, 3);
    gguf_tasks_sample(b, 3);
    good = good && !gguf_tasks_run(r.session, a, &p, &x, &err) && x.n == 3;
    const struct got first = got;
    good = good && !gguf_tasks_run(r.session, b, &p, &x, &err);
    for (int i = 1; i < 3; i++)
        n_wrong += first.no[i] <= first.no[i - 1] ||
                   first.no[i] != got.no[i] || first.no[i] > 99;
    ok(good && !n_wrong && first.no[2] > 3 && first.no[0] < 75,
       "tasks %zu, %zu and %zu of 100, and again", first.no[0], first.no[1],
       first.no[2]);
    got = (struct got){ .n = 0 };
    p.first_task = 1;
    p.max_tasks = 1;
    good = good && !gguf_tasks_run(r.session, b, &p, &x, &err);
    ok(good && x.n == 1 && got.n == 1 && got.no[1] == first.no[1] &&
           got.sum[1][0] == first.sum[1][0] &&
           got.sum[1][1] == first.sum[1][1],
       "the second alone, with the same scores");
    p.max_tasks = 0;
    good = !gguf_tasks_run(r.session, b, &p, &x, &err) && x.n == 2;
    p.first_task = 3;
    ok(good && gguf_tasks_run(r.session, b, &p, &x, &err) == GGUF_E_INVALID &&
           strstr(err.message, "3 tasks: none from 3 on"),
       "from the second on; none after the last: %s", err.message);
    run_close(&r);
    gguf_tasks_destroy(a);
    gguf_tasks_destroy(b);
}

static void check_choose(void)
{
    static const double x[] = { -3, -1, -1, -2 };
    ok(gguf_task_choose_answer(GGUF_TASK_HELLASWAG, false, x, 4) == 1 &&
           gguf_task_choose_answer(GGUF_TASK_CHOICE, true, x + 1, 2) == 0 &&
           gguf_task_choose_answer(GGUF_TASK_WINOGRANDE, false, x + 1, 2) ==
               0 &&
           gguf_task_choose_answer(GGUF_TASK_WINOGRANDE, true, x + 1, 2) ==
               1 &&
           gguf_task_choose_answer(GGUF_TASK_WINOGRANDE, true, x + 2, 2) == 0,
       "the first of equal scores, but as llama.cpp does");
}

/* ---- sessions, shares ---- */

static void check_session(void)
{
    struct gguf_error err;
    struct gguf_tasks *t = parse_tasks(
        GGUF_TASK_HELLASWAG, "the cat\n0\nsat\nslept\nsang\nab\n", &err);
    struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
    struct run r;
    bool good = t && open_session(&r, 3, 40, 1, 0, NULL);
    ok(good && gguf_tasks_run(r.session, t, NULL, &x, &err) == GGUF_E_INVALID,
       "%s", err.message);
    run_close(&r);
    uint32_t most = 0;
    good = good && open_session(&r, 4, 14, 1, 0, NULL) &&
           !gguf_tasks_max_tokens(t, gguf_model_vocab(r.model), &most, &err);
    ok(good && most == 15, "the longest text has %u tokens", most);
    ok(good &&
           gguf_tasks_run(r.session, t, NULL, &x, &err) == GGUF_E_INVALID &&
           strstr(err.message, "task 1: 15 tokens, the session has room for "
                               "14"),
       "%s", err.message);
    run_close(&r);
    gguf_tasks_destroy(t);
}

static void check_shares(void)
{
    double low, high;
    gguf_proportion_interval(2, 10, &low, &high);
    /* printed by llama-perplexity, golden/ppl */
    ok(fabs(low - 0.056682) < 1e-6 && fabs(high - 0.509838) < 1e-6,
       "2 of 10: %.6f to %.6f", low, high);
    ok(fabs(gguf_proportion_error(3, 10) - 0.152753) < 1e-6 &&
           isnan(gguf_proportion_error(1, 1)),
       "3 of 10: %.6f", gguf_proportion_error(3, 10));
    /* the interval ends where the share is z standard errors away */
    for (uint64_t k = 0; k <= 40; k += 8) {
        const double p = (double)k / 40, z = 1.959963984540054;
        gguf_proportion_interval(k, 40, &low, &high);
        ok((k == 0
                ? low < 1e-15
                : fabs((p - low) / sqrt(low * (1 - low) / 40) - z) < 1e-9) &&
               (k == 40 ? high > 1 - 1e-15
                        : fabs((high - p) / sqrt(high * (1 - high) / 40) - z) <
                              1e-9),
           "%u of 40: %.4f to %.4f", (unsigned)k, low, high);
    }
    gguf_proportion_interval(0, 0, &low, &high);
    ok(low == 0 && high == 1, "of nothing");
}

static void check_no_memory(void)
{
    static const char text[] = "{\"question\": \"is it\", \"choices\": "
                               "[\"ab\", \"a\", \"no\"], \"label\": 1}";
    struct failalloc f, sf;
    struct run r;
    unsigned n_failed = 0;
    bool good = open_session(&r, 3, 40, 1, 0, failalloc_init(&sf, UINT_MAX));
    for (bool more = good; more;) {
        struct gguf_tasks *t;
        enum gguf_status st =
            gguf_tasks_parse(&t, GGUF_TASK_CHOICE, text, sizeof text - 1,
                             failalloc_init(&f, n_failed), &r.err);
        more = f.calls > n_failed;
        good = good && st == (more ? GGUF_E_NOMEM : GGUF_OK);
        gguf_tasks_destroy(t);
        good = good && f.live == 0;
        n_failed += more;
    }
    ok(good && n_failed >= 4, "each of %u allocations of reading fails once",
       n_failed);
    struct gguf_tasks *t = parse_tasks(GGUF_TASK_CHOICE, text, &r.err);
    n_failed = 0;
    for (bool more = good; more;) {
        struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
        sf.calls = 0;
        sf.fail_at = sf.last = n_failed;
        enum gguf_status st = gguf_tasks_run(r.session, t, NULL, &x, &r.err);
        more = sf.calls > n_failed;
        good = good && st == (more ? GGUF_E_NOMEM : GGUF_OK);
        n_failed += more && good;
        more = more && good;
    }
    ok(good && n_failed >= 6, "and each of %u of a run", n_failed);
    sf.fail_at = sf.last = UINT_MAX;
    gguf_tasks_destroy(t);
    run_close(&r);
    ok(sf.live == 0, "and nothing stays");
}

/* ---- llama.cpp's figures ---- */

struct scores {
    double of[8][2];
};

static bool on_pair(void *user, const struct gguf_task_scores *s)
{
    struct scores *x = user;
    for (int a = 0; a < 2 && s->task < 8; a++)
        x->of[s->task][a] = s->score[a];
    return false;
}

/* llama-perplexity's scores of seven sentences, from F16 keys and quantized
 * activations. It prints no score for the last one. */
static void check_golden(void)
{
    static const double pairs[7][2] = {
        { -5.101265, -5.658477 }, { -3.974703, -4.544687 },
        { -6.264486, -5.275977 }, { -4.017871, -4.405653 },
        { -4.777965, -4.856428 }, { -4.806781, -4.802013 },
        { -4.069626, -4.464932 },
    };
    static const struct {
        const char *file;
        enum gguf_task_kind kind;
        uint64_t n, n_right;
        double chance;
    } files[] = {
        { "golden/ppl/hellaswag.txt", GGUF_TASK_HELLASWAG, 10, 2, 0.25 },
        { "golden/ppl/mc.bin", GGUF_TASK_CHOICE, 10, 3, 0.294118 },
        { "golden/ppl/winogrande.csv", GGUF_TASK_WINOGRANDE, 8, 3, 0.5 },
    };
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    sp.n_ctx = 64;
    sp.n_seq = 4;
    const char *model = shared_path("models/llama-f16.gguf");
    if (!model || !run_open_path(&r, model, 2, &sp)) {
        skip("no trained model");
        return;
    }
    for (size_t k = 0; k < GG_LEN(files); k++) {
        static char bytes[10000];
        const char *path = shared_path(files[k].file);
        FILE *f = path ? fopen(path, "rb") : NULL;
        const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
        struct gguf_task_params p = GGUF_TASK_PARAMS_INIT;
        struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
        struct scores got = { { { 0 } } };
        struct gguf_tasks *t = NULL;
        double worst = 0;
        if (f)
            fclose(f);
        p.compat = true;
        p.on_task.fn = on_pair;
        p.on_task.user = &got;
        bool good =
            n &&
            !gguf_tasks_parse(&t, files[k].kind, bytes, n, NULL, &r.err) &&
            !gguf_tasks_run(r.session, t, &p, &x, &r.err);
        for (int i = 0; i < 14 && files[k].kind == GGUF_TASK_WINOGRANDE; i++)
            worst =
                fmax(worst, fabs(got.of[i / 2][i % 2] - pairs[i / 2][i % 2]));
        ok(good && x.n == files[k].n && x.n_right == files[k].n_right &&
               fabs(x.chance - files[k].chance) < 1e-6 && worst < 1e-3,
           "%s: %u of %u right, scores within %.2g", files[k].file,
           (unsigned)x.n_right, (unsigned)x.n, worst);
        gguf_tasks_destroy(t);
    }
    run_close(&r);
}

int main(void)
{
    if (!make_model()) {
        printf("Bail out! no model\n");
        return 1;
    }
    check_scores();
    check_compat_names();
    check_once();
    check_sample();
    check_choose();
    check_session();
    check_shares();
    check_no_memory();
    check_golden();
    gen_fini(&g);
    free(file);
    return done_testing();
}
