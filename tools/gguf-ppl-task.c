/* gguf-ppl-task.c - tasks with answers to choose from */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/textfile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *title;
} kinds[] = {
    [GGUF_TASK_HELLASWAG] = { "hellaswag", "HellaSwag" },
    [GGUF_TASK_WINOGRANDE] = { "winogrande", "WinoGrande" },
    [GGUF_TASK_CHOICE] = { "multiple-choice", "multiple choice" },
};

static enum gguf_task_kind kind_of(const struct ppl_options *o)
{
    return (enum gguf_task_kind)(o->task - 1);
}

bool ppl_read_tasks(struct ppl_run *r, const struct gguf_vocab *vocab)
{
    const struct ppl_options *o = r->o;
    struct gguf_error err;
    char *data = NULL;
    uint32_t most = 0;
    if (!textfile_read(o->text, o->max_text, &data, &r->text_size))
        return false;
    enum gguf_status st = gguf_tasks_parse(&r->tasks, kind_of(o), data,
                                           r->text_size, NULL, &err);
    if (st == GGUF_OK && !ppl_digest_text(r, data, r->text_size)) {
        free(data);
        return false;
    }
    free(data);
    if (st == GGUF_OK) {
        r->n_tasks_read = gguf_tasks_n(r->tasks);
        if (o->n_tasks)
            gguf_tasks_sample(r->tasks, (size_t)o->n_tasks);
        st = gguf_tasks_most_tokens(r->tasks, vocab, &most, &err);
    }
    if (st != GGUF_OK) {
        msg_fail(o->text, &err);
        return false;
    }
    if (most > o->n_ctx) {
        msg_error(o->text,
                  "a text has %" PRIu32 " tokens: -c %" PRIu32 " is needed",
                  most, most);
        return false;
    }
    r->n_seq = gguf_tasks_most_answers(r->tasks);
    r->n_tokens = most;
    return true;
}

/* ---- one after another ---- */

/* What the document says of a task, as JSON has it. */
struct out {
    struct ppl_run *r;
    uint64_t n, n_right;
    struct task {
        size_t no;
        uint32_t n, chosen;
        bool right;
        double *score; /* [n], then sums */
    } * list;
    size_t room;
};

static int on_task(void *user, const struct gguf_task_scores *s)
{
    struct out *out = user;
    const bool right = s->right[s->chosen];
    out->n_right += right;
    out->n++;
    snprintf(out->r->bar.note, sizeof out->r->bar.note, "%.1f%%",
             100 * (double)out->n_right / (double)out->n);
    if (!out->r->o->json)
        return 0;
    const size_t n = s->n_answers;
    double *score = msg_must(malloc(2 * n * sizeof *score));
    memcpy(score, s->score, n * sizeof *score);
    memcpy(score + n, s->sum, n * sizeof *score);
    out->list =
        msg_grow(out->list, &out->room, (size_t)out->n, sizeof *out->list);
    out->list[out->n - 1] =
        (struct task){ s->no, s->n_answers, s->chosen, right, score };
    return 0;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    struct out *out = user;
    return progress_report(&out->r->bar, done, total);
}

/* ---- what is printed ---- */

static void print_head(const struct ppl_run *r)
{
    char name[256];
    const struct gguf_str file = { r->o->text, strlen(r->o->text) };
    ppl_print_model("model", r->o, r->own);
    gguf_text_escape(name, sizeof name, file);
    printf("tasks   %s: %s, %zu of %zu, up to %" PRIu32
           " answers of %zu tokens\n",
           name, kinds[kind_of(r->o)].title, gguf_tasks_n(r->tasks),
           r->n_tasks_read, r->n_seq, r->n_tokens);
    ppl_print_mode(r);
    msg_flush();
}

static void print_end(const struct ppl_run *r,
                      const struct gguf_task_result *x)
{
    double low, high;
    const double n = (double)x->n;
    gguf_share_interval(x->n_right, x->n, &low, &high);
    printf("time    %.1f s\n", r->seconds);
    printf("chance  %.4f%%\n", 100 * x->chance);
    printf("by sum  %.4f%% +/- %.4f (%" PRIu64 " of %" PRIu64 ")\n",
           100 * (double)x->n_right_sum / n,
           100 * gguf_share_error(x->n_right_sum, x->n), x->n_right_sum, x->n);
    printf("%s%s: %.4f%% +/- %.4f (%" PRIu64 " of %" PRIu64
           "), 95%%: %.4f%% to %.4f%%\n",
           kinds[kind_of(r->o)].title, r->o->compat ? " (compat)" : "",
           100 * (double)x->n_right / n,
           100 * gguf_share_error(x->n_right, x->n), x->n_right, x->n,
           100 * low, 100 * high);
}

static void json_tasks(struct json *j, const struct out *out)
{
    json_open(j, "tasks", '[');
    for (uint64_t i = 0; i < out->n; i++) {
        const struct task *t = &out->list[i];
        json_open(j, NULL, '{');
        json_u64(j, "number", t->no);
        json_u64(j, "chosen", t->chosen);
        json_bool(j, "right", t->right);
        json_open(j, "scores", '(');
        for (uint32_t a = 0; a < t->n; a++)
            json_f64(j, NULL, t->score[a]);
        json_close(j);
        json_open(j, "sums", '(');
        for (uint32_t a = 0; a < t->n; a++)
            json_f64(j, NULL, t->score[t->n + a]);
        json_close(j);
        json_close(j);
    }
    json_close(j);
}

static void print_json(const struct out *out, const struct gguf_task_result *x)
{
    const struct ppl_run *r = out->r;
    struct json j;
    double low, high;
    gguf_share_interval(x->n_right, x->n, &low, &high);
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    ppl_json_model(&j, "model", r->o, r->own);
    json_close(&j);
    ppl_json_settings(&j, r);
    json_open(&j, "text", '{');
    json_strz(&j, "file", r->o->text);
    json_u64(&j, "size", r->text_size);
    ppl_json_digest(&j, "digest", r->has_digest ? &r->digest : NULL);
    json_u64(&j, "tasks", r->n_tasks_read);
    json_close(&j);
    json_strz(&j, "task", kinds[kind_of(r->o)].name);
    json_bool(&j, "compat", r->o->compat);
    json_u64(&j, "n", x->n);
    json_u64(&j, "n_right", x->n_right);
    json_f64(&j, "accuracy", (double)x->n_right / (double)x->n);
    json_f64(&j, "accuracy_error", gguf_share_error(x->n_right, x->n));
    json_f64(&j, "accuracy_low", low);
    json_f64(&j, "accuracy_high", high);
    json_u64(&j, "n_right_by_sum", x->n_right_sum);
    json_f64(&j, "chance", x->chance);
    json_tasks(&j, out);
    json_f64(&j, "seconds", r->seconds);
    json_close(&j);
    json_end(&j);
}

bool ppl_run_tasks(struct ppl_run *r, struct gguf_session *session,
                   struct gguf_pool *pool)
{
    struct gguf_task_params p = GGUF_TASK_PARAMS_INIT;
    struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
    struct out out = { .r = r };
    struct gguf_error err;
    p.compat = r->o->compat;
    p.pool = pool;
    p.on_task = on_task;
    p.progress = on_progress;
    p.user = &out;
    if (!r->o->json)
        print_head(r);
    progress_init(&r->bar, kinds[kind_of(r->o)].name, "tasks", r->o->quiet);
    const double begin = progress_clock();
    const enum gguf_status st =
        gguf_tasks_run(session, r->tasks, &p, &x, &err);
    r->seconds = progress_clock() - begin;
    progress_clear(&r->bar);
    if (st == GGUF_E_CANCELLED && progress_stopped())
        progress_raise();
    if (st != GGUF_OK)
        msg_fail(r->o->text, &err);
    else if (r->o->json)
        print_json(&out, &x);
    else
        print_end(r, &x);
    for (uint64_t i = 0; r->o->json && i < out.n; i++)
        free(out.list[i].score);
    free(out.list);
    return st == GGUF_OK;
}
