/* SPDX-License-Identifier: MIT */
/* task.c - tasks in which the model chooses an answer */
#include "config.h"
#include "tools/ppl/part.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/textfile.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

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

static enum gguf_task_kind get_kind(const struct ppl_options *o)
{
    return (enum gguf_task_kind)(o->task - 1);
}

/* Choose the tasks of --chunks: each task is a chunk. */
static bool choose_tasks(struct ppl_run *r)
{
    const struct ppl_options *o = r->o;
    const size_t n = gguf_tasks_n_tasks(r->tasks);
    if (o->ev.first_chunk >= n)
        return msg_error(
            o->text,
            "the first task is %" PRIu64 ", counted from 0, but there %s only "
            "%zu task%s",
            o->ev.first_chunk, n == 1 ? "is" : "are", n, text_s(n));
    r->e.first_chunk = (size_t)o->ev.first_chunk;
    r->e.n_chunks = n - r->e.first_chunk;
    if (o->ev.n_chunks && o->ev.n_chunks < r->e.n_chunks)
        r->e.n_chunks = (size_t)o->ev.n_chunks;
    return true;
}

bool ppl_read_tasks(struct ppl_run *r, const struct gguf_vocab *vocab)
{
    const struct ppl_options *o = r->o;
    struct gguf_error err;
    char *data = NULL;
    uint32_t most = 0;
    if (!textfile_read(o->text, o->ev.max_text, &data, &r->e.text_size))
        return false;
    enum gguf_status st = gguf_tasks_parse(&r->tasks, get_kind(o), data,
                                           r->e.text_size, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_digest_bytes(&r->tasks_digest, GGUF_DIGEST_XXH64, data,
                               r->e.text_size, &err);
    if (st == GGUF_OK && !ev_digest_text(&r->e, data, r->e.text_size)) {
        free(data);
        return false;
    }
    free(data);
    if (st == GGUF_OK) {
        r->n_tasks_read = gguf_tasks_n_tasks(r->tasks);
        if (o->n_tasks)
            gguf_tasks_sample(r->tasks, (size_t)o->n_tasks);
        st = gguf_tasks_max_tokens(r->tasks, vocab, &most, &err);
    }
    if (st != GGUF_OK)
        return msg_fail(o->text, &err);
    if (most > o->ev.n_ctx)
        return msg_error(o->text,
                         "an answer has %" PRIu32
                         " tokens, expected at most %" PRIu32
                         ": use -c %" PRIu32,
                         most, o->ev.n_ctx, most);
    r->e.n_seq = gguf_tasks_max_answers(r->tasks);
    r->e.n_tokens = most;
    return choose_tasks(r);
}

/* ---- results of single tasks ---- */

/* Results of the tasks so far. */
struct out {
    struct ppl_run *r;
    struct gguf_task_result x;
    struct task { /* results of each task, for JSON */
        size_t no;
        uint32_t n, chosen;
        bool right;
        double *score; /* [2 * n], scores, then sums */
    } * list;
    size_t room;
    struct ppl_part *part; /* NULL: the result is not saved */
};

static void keep_result(struct out *out, size_t no, uint32_t n,
                        uint32_t chosen, bool right, const double *score,
                        const double *sum)
{
    double *copy = msg_must(malloc(2 * n * sizeof *copy));
    memcpy(copy, score, n * sizeof *copy);
    memcpy(copy + n, sum, n * sizeof *copy);
    out->list =
        msg_grow(out->list, &out->room, (size_t)out->x.n, sizeof *out->list);
    out->list[out->x.n - 1] = (struct task){ no, n, chosen, right, copy };
}

static void out_fini(struct out *out)
{
    for (uint64_t i = 0; out->list && i < out->x.n; i++)
        free(out->list[i].score);
    free(out->list);
}

/* Add the record of a task to a part. */
static bool add_record(struct ppl_part *p, const struct gguf_task_scores *s)
{
    struct gguf_error err;
    const double head[PPL_TASK_HEADS] = { (double)s->no };
    const size_t n = (size_t)s->n_answers * PPL_TASK_VALUES;
    p->value = msg_grow(p->value, &p->room, n, sizeof *p->value);
    for (uint32_t a = 0; a < s->n_answers; a++) {
        double *v = p->value + a * PPL_TASK_VALUES;
        v[PPL_TASK_SUM] = s->sum[a];
        v[PPL_TASK_TOKENS] = s->n_tokens[a];
        v[PPL_TASK_RIGHT] = s->right[a];
    }
    if (gguf_part_add_chunk(p->part, s->task, head, p->value, s->n_answers,
                            &err) == GGUF_OK)
        return true;
    return msg_fail(NULL, &err);
}

static bool on_task(void *user, const struct gguf_task_scores *s)
{
    struct out *out = user;
    const bool right = s->right[s->chosen];
    out->x.n_right += right;
    out->x.n++;
    snprintf(out->r->e.bar.note, sizeof out->r->e.bar.note, "%.1f%%",
             100 * (double)out->x.n_right / (double)out->x.n);
    if (out->r->o->ev.json)
        keep_result(out, s->no, s->n_answers, s->chosen, right, s->score,
                    s->sum);
    return out->part && !add_record(out->part, s);
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct out *out = user;
    return out->r->o->mpi ? ppl_report_share_progress(out->r, done)
                          : progress_report(&out->r->e.bar, done, total);
}

/* ---- printing ---- */

static void print_head(const struct ppl_run *r)
{
    char name[256];
    const struct gguf_str file = { r->o->text, strlen(r->o->text) };
    ev_print_model("model", &r->o->ev, r->e.own);
    gguf_text_escape(name, sizeof name, file);
    wrap_printf("tasks   %s: %s, %zu of %zu, ", name,
                kinds[get_kind(r->o)].title, gguf_tasks_n_tasks(r->tasks),
                r->n_tasks_read);
    if (r->e.n_chunks < gguf_tasks_n_tasks(r->tasks))
        wrap_printf("of these %zu from %zu on, ", r->e.n_chunks,
                    r->e.first_chunk);
    wrap_printf("up to %" PRIu32 " answers of %zu tokens\n", r->e.n_seq,
                r->e.n_tokens);
    ev_print_mode(&r->e);
    msg_flush();
}

static void print_end(const struct out *out)
{
    const struct ppl_run *r = out->r;
    const struct gguf_task_result *x = &out->x;
    double low, high;
    const double n = (double)x->n;
    gguf_proportion_interval(x->n_right, x->n, &low, &high);
    ppl_print_ranks(r);
    wrap_printf("time    %.1f s\n", r->e.seconds);
    wrap_printf("chance  %.4f%%\n", 100 * x->chance);
    wrap_printf("by sum  %.4f%% +/- %.4f (%" PRIu64 " of %" PRIu64 ")\n",
                100 * (double)x->n_right_sum / n,
                100 * gguf_proportion_error(x->n_right_sum, x->n),
                x->n_right_sum, x->n);
    wrap_printf("%s%s: %.4f%% +/- %.4f (%" PRIu64 " of %" PRIu64
                "), 95%%: %.4f%% to %.4f%%\n",
                kinds[get_kind(r->o)].title, r->o->compat ? " (compat)" : "",
                100 * (double)x->n_right / n,
                100 * gguf_proportion_error(x->n_right, x->n), x->n_right,
                x->n, 100 * low, 100 * high);
}

static void json_tasks(struct json *j, const struct out *out)
{
    json_open(j, "tasks", '[');
    for (uint64_t i = 0; i < out->x.n; i++) {
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

static void print_json(const struct out *out)
{
    const struct ppl_run *r = out->r;
    const struct gguf_task_result *x = &out->x;
    struct json j;
    double low, high;
    gguf_proportion_interval(x->n_right, x->n, &low, &high);
    json_begin_object(&j, stdout);
    ev_json_model(&j, "model", &r->o->ev, r->e.own);
    json_close(&j);
    ppl_json_settings(&j, r);
    ppl_json_text(&j, r);
    json_strz(&j, "task", kinds[get_kind(r->o)].name);
    json_bool(&j, "compat", r->o->compat);
    json_u64(&j, "first_task", r->e.first_chunk);
    json_u64(&j, "n", x->n);
    json_u64(&j, "n_right", x->n_right);
    json_f64(&j, "accuracy", (double)x->n_right / (double)x->n);
    json_f64(&j, "accuracy_error", gguf_proportion_error(x->n_right, x->n));
    json_f64(&j, "accuracy_low", low);
    json_f64(&j, "accuracy_high", high);
    json_u64(&j, "n_right_by_sum", x->n_right_sum);
    json_f64(&j, "chance", x->chance);
    json_tasks(&j, out);
    ppl_json_ranks(&j, r);
    json_f64(&j, "seconds", r->e.seconds);
    json_end(&j);
}

static void print_result(const struct out *out)
{
    if (out->r->o->ev.json)
        print_json(out);
    else
        print_end(out);
}

/* ---- results from records ---- */

/* Add task no, whose record is v, with n answers. sum: room for 2 n numbers.
 * Also adds the number of answers, and the accuracy of guessing. */
static void add_task(struct out *out, size_t no, const double *v, uint32_t n,
                     double *sum, uint64_t *n_answers, double *chance)
{
    const struct ppl_options *o = out->r->o;
    double *score = sum + n, n_right = 0;
    for (uint32_t a = 0; a < n; a++) {
        const double *w = v + a * PPL_TASK_VALUES;
        sum[a] = w[PPL_TASK_SUM];
        score[a] = sum[a] / w[PPL_TASK_TOKENS];
        n_right += w[PPL_TASK_RIGHT];
    }
    const uint32_t best =
        gguf_task_choose_answer(get_kind(o), o->compat, score, n);
    const uint32_t best_sum =
        gguf_task_choose_answer(get_kind(o), false, sum, n);
    const bool right = v[best * PPL_TASK_VALUES + PPL_TASK_RIGHT] > 0;
    out->x.n++;
    out->x.n_right += right;
    out->x.n_right_sum += v[best_sum * PPL_TASK_VALUES + PPL_TASK_RIGHT] > 0;
    *chance += n_right / n;
    *n_answers += n;
    if (o->ev.json)
        keep_result(out, no, n, best, right, score, sum);
}

bool ppl_part_print_tasks(struct ppl_run *r, struct ppl_side *side,
                          const struct gguf_part *p, struct ppl_outputs *x)
{
    struct out out = { .r = r, .x = GGUF_TASK_RESULT_INIT };
    double chance = 0, *scores = NULL;
    uint64_t n_answers = 0;
    size_t room = 0;
    (void)side;
    (void)x;
    for (size_t i = 0; i < r->e.n_chunks; i++) {
        size_t n = 0;
        const double *v = gguf_part_row_values(p, r->e.first_chunk + i, &n);
        const double *head = gguf_part_chunk_values(p, r->e.first_chunk + i);
        if (!n || n > UINT32_MAX) {
            msg_error(NULL, "task %zu has %zu answers, expected 1 to %" PRIu32,
                      r->e.first_chunk + i, n, UINT32_MAX);
            out_fini(&out);
            free(scores);
            return false;
        }
        scores = msg_grow(scores, &room, 2 * n, sizeof *scores);
        add_task(&out, (size_t)head[0], v, (uint32_t)n, scores, &n_answers,
                 &chance);
    }
    const double n = (double)out.x.n;
    out.x.chance = r->o->compat ? n / (double)n_answers : chance / n;
    print_result(&out);
    out_fini(&out);
    free(scores);
    return true;
}

/* ---- the run ---- */

struct job {
    struct out out;
    struct gguf_session *session;
    struct gguf_pool *pool;
};

/* Evaluate n tasks from first on. */
static enum gguf_status compute_batch(struct job *j, size_t first, size_t n,
                                      struct gguf_error *err)
{
    struct gguf_task_params p = GGUF_TASK_PARAMS_INIT;
    struct gguf_task_result x = GGUF_TASK_RESULT_INIT;
    struct ppl_part *part = j->out.part;
    p.compat = j->out.r->o->compat;
    p.pool = j->pool;
    p.on_task.fn = on_task;
    p.on_task.user = &j->out;
    p.progress.fn = on_progress;
    p.progress.user = &j->out;
    p.first_task = first;
    p.max_tasks = n;
    enum gguf_status st = GGUF_OK;
    if (part && !part->part)
        st = ppl_part_begin_tasks(part, j->session, err);
    if (st == GGUF_OK)
        st = gguf_tasks_run(j->session, j->out.r->tasks, &p, &x, err);
    j->out.x.n_right_sum = x.n_right_sum;
    j->out.x.chance = x.chance;
    return st;
}

/* Callback of ppl_part_share(), which computes the result from records. */
static bool compute_share(void *user, struct ppl_part *part, size_t first,
                          size_t n)
{
    struct job *j = user;
    struct gguf_error err;
    j->out.part = part;
    const enum gguf_status st = compute_batch(j, first, n, &err);
    if (st == GGUF_E_CANCELLED) {
        progress_raise();
        return false; /* another rank printed its error */
    }
    if (st != GGUF_OK)
        msg_fail(j->out.r->o->text, &err);
    return st == GGUF_OK;
}

static bool run_tasks(struct job *j)
{
    struct ppl_run *r = j->out.r;
    struct gguf_error err;
    if (!ppl_part_open(&j->out.part, r, NULL))
        return false;
    ev_begin_work(&r->e, kinds[get_kind(r->o)].name, "tasks");
    const enum gguf_status st =
        compute_batch(j, r->e.first_chunk, r->e.n_chunks, &err);
    ev_end_work(&r->e);
    const bool good = ppl_part_close(j->out.part, st == GGUF_OK);
    if (st == GGUF_E_CANCELLED && progress_stopped())
        progress_raise();
    if (st != GGUF_OK)
        msg_fail(r->o->text, &err);
    else if (good)
        print_result(&j->out);
    return good;
}

bool ppl_run_tasks(struct ppl_run *r, struct gguf_session *session,
                   struct gguf_pool *pool)
{
    struct job j = { .out = { .r = r, .x = GGUF_TASK_RESULT_INIT },
                     .session = session,
                     .pool = pool };
    if (!r->o->ev.json)
        print_head(r);
    const bool good = r->o->mpi
                          ? ppl_part_share(r, NULL, compute_share, &j, NULL)
                          : run_tasks(&j);
    out_fini(&j.out);
    return good;
}
