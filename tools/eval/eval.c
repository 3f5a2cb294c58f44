/* SPDX-License-Identifier: MIT */
/* gguf-eval - save logits or embeddings of a model, print or profile its
 * graph */
#include "config.h"
#include "tools/eval/eval.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "tools/common/textfile.h"
#include "tools/common/wrap.h"
#include "base/os/os_program.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- input ---- */

static bool read_ids(struct eval *e)
{
    const struct eval_options *o = e->o;
    const uint32_t n_ctx = o->ev.n_ctx;
    if (!ev_read_ids(o->tokens, o->ev.max_text, e->model.info.n_vocab,
                     &e->ids))
        return false;
    e->run.n_tokens = e->ids.n;
    if (!e->ids.n)
        return msg_error(o->tokens, "no token ids, expected at least one");
    if (e->ids.n > n_ctx)
        return msg_error(o->tokens,
                         "%zu token ids, expected at most %" PRIu32
                         ", the context length: give a larger -c",
                         e->ids.n, n_ctx);
    return true;
}

static bool read_input(struct eval *e)
{
    const struct eval_options *o = e->o;
    struct ev_run *r = &e->run;
    if (o->logits)
        return read_ids(e);
    if (!o->embeddings && !o->profile)
        return true;
    if (!ev_check_vocab(r))
        return false;
    if (o->embeddings)
        return textfile_read(o->text, o->ev.max_text, &e->lines,
                             &r->text_size) &&
               ev_digest_text(r, e->lines, r->text_size);
    return ev_read_texts(r, o->texts.path, o->texts.n, &e->tokens) &&
           ev_plan_chunks(r, ev_count_chunks(r), o->ev.first_chunk,
                          o->ev.n_chunks);
}

bool eval_begin_session(struct eval *e, const struct gguf_session_params *sp)
{
    const struct ev_options *o = &e->o->ev;
    if (!ev_model_open_backends(&e->model, o, e->pool) ||
        !ev_model_begin_session(&e->model, o, sp, false))
        return false;
    /* from here on operations check for caught signals */
    progress_catch_signals();
    return true;
}

/* ---- saved rows ---- */

bool eval_fail(struct eval *e, const char *file)
{
    return progress_fail(&e->run.bar, file, &e->err);
}

bool eval_begin_rows(struct eval *e, const char *label, const char *unit)
{
    ev_begin_work(&e->run, label, unit);
    /* replaces an existing file at the end */
    return gguf_outfile_open(&e->file, e->out, 1, NULL, &e->err) == GGUF_OK ||
           eval_fail(e, e->out);
}

static void store_le(uint8_t *out, float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    for (int k = 0; k < 4; k++)
        out[k] = (uint8_t)(u >> (8 * k));
}

bool eval_write_row(struct eval *e, const float *row, size_t n,
                    const char *what, const char *unit, size_t number)
{
    if (!e->bytes)
        e->bytes = msg_must(malloc(4 * n));
    e->width = n;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(row[i])) {
            progress_clear(&e->run.bar);
            return msg_error(e->model.path,
                             "%s %zu of %s %zu is not a finite number", what,
                             i, unit, number);
        }
        store_le(e->bytes + 4 * i, row[i]);
    }
    e->n_rows++;
    return gguf_outfile_write(e->file, e->bytes, 4 * (uint64_t)n, &e->err) ==
               GGUF_OK ||
           eval_fail(e, e->out);
}

static void json_sentence(struct json *j, const struct eval *e)
{
    const struct eval_sentence *s = &e->sentence;
    json_strz(j, "pooling", gguf_pooling_name(e->pooling));
    json_bool(j, "normalized", s->normalizes);
    json_str(j, "prompt", s->prompt);
    json_u64(j, "cut", s->n_cut);
    if (s->most_dims)
        json_u64(j, "truncate_dim", s->most_dims);
    if (s->count) {
        json_open(j, "rows_of_lines", '(');
        for (size_t i = 0; i < s->n_lines; i++)
            json_u64(j, NULL, s->count[i]);
        json_close(j);
    }
}

/* Rows of the first lines, if a line has several. */
static void print_counts(const struct eval_sentence *s)
{
    enum { SHOWN = 16 };
    struct text t = { NULL, 0, 0 };
    for (size_t i = 0; i < s->n_lines && i < SHOWN; i++)
        text_addf(&t, "%s%zu", i ? ", " : "", s->count[i]);
    if (s->n_lines > SHOWN)
        text_addf(&t, " and those of %zu more lines", s->n_lines - SHOWN);
    if (t.n)
        wrap_printf("lines   %s rows\n", t.s);
    text_fini(&t);
}

static void print_sentence(const struct eval *e)
{
    const struct eval_sentence *s = &e->sentence;
    struct text prompt = { NULL, 0, 0 };
    wrap_printf("pooling %s%s\n", gguf_pooling_name(e->pooling),
                s->normalizes ? ", normalised" : "");
    if (s->prompt.size) {
        text_add_esc(&prompt, s->prompt, 200);
        wrap_printf("prompt  '%s'\n", prompt.s);
        text_fini(&prompt);
    }
    if (s->most_dims)
        wrap_printf("kept    the first %zu numbers of a vector\n",
                    s->most_dims);
    print_counts(s);
    if (s->n_cut)
        wrap_printf("cut     %zu of %zu lines, to %zu tokens\n", s->n_cut,
                    e->n_rows, s->most);
}

static void print_json(const struct eval *e, const char *in, const char *what)
{
    struct json j;
    json_begin_object(&j, stdout);
    ev_json_model(&j, "model", &e->o->ev, &e->model);
    json_close(&j);
    json_open(&j, "tokens", '{');
    json_strz(&j, "file", in);
    json_u64(&j, "tokens", e->run.n_tokens);
    json_close(&j);
    ev_json_settings(&j, &e->run);
    json_open(&j, "rows", '{');
    json_strz(&j, "file", e->out);
    json_strz(&j, "of", what);
    json_u64(&j, "rows", e->n_rows);
    json_u64(&j, "width", e->width);
    if (e->pooling)
        json_sentence(&j, e);
    json_close(&j);
    json_f64(&j, "seconds", e->run.seconds);
    ev_json_timings(&j, &e->run.timings);
    json_end(&j);
}

static void print_rows(const struct eval *e)
{
    const struct eval_options *o = e->o;
    const char *in = o->tokens ? o->tokens : o->text;
    const char *what = o->embeddings              ? "embeddings"
                       : e->model.info.has_logits ? "logits"
                                                  : "states";
    char name[256];
    if (o->ev.json) {
        print_json(e, in, what);
        return;
    }
    ev_print_model("model", &o->ev, &e->model);
    wrap_printf("tokens  %s: %zu, in a context of %" PRIu32 "\n",
                ev_escape(name, in), e->run.n_tokens, o->ev.n_ctx);
    ev_print_mode(&e->run);
    if (e->pooling)
        print_sentence(e);
    wrap_printf("rows    %s: %zu of %zu %s, f32, little-endian\n",
                ev_escape(name, e->out), e->n_rows, e->width, what);
    wrap_printf("time    %.1f s\n", e->run.seconds);
}

bool eval_end_rows(struct eval *e, bool good)
{
    ev_end_work(&e->run);
    e->run.timings = *gguf_session_timings(e->model.session);
    if (good && gguf_outfile_commit(e->file, &e->err) != GGUF_OK)
        good = eval_fail(e, e->out);
    gguf_outfile_close(e->file);
    free(e->bytes);
    if (good)
        print_rows(e);
    return good;
}

int main(int argc, char **argv)
{
    struct eval_options o;
    gg_os_program_arguments(&argc, &argv);
    eval_parse_options(&o, argc, argv);
    struct eval e = { .o = &o,
                      .out = o.logits ? o.logits : o.embeddings,
                      .tokens = GGUF_TOKENS_INIT };
    e.run = (struct ev_run){ .o = &o.ev,
                             .own = &e.model,
                             .wants_digest = o.ev.json && !o.ev.no_digest,
                             .text = o.text,
                             .mode = o.logits       ? "tokens"
                                     : o.embeddings ? "lines"
                                                    : NULL,
                             .n_seq = 1,
                             .scan = GGUF_SCAN_PARAMS_INIT };
    e.run.scan.n_ctx = o.ev.n_ctx;
    const bool good =
        ev_pool_open(&e.pool, &o.ev) &&
        ev_model_open(&e.model, o.model, &o.ev) &&
        ev_adapters_open(&e.model, &o.ev) && read_input(&e) &&
        ev_model_load_weights(&e.model, &o.ev, e.run.wants_digest, e.pool) &&
        (o.logits       ? eval_rows(&e)
         : o.embeddings ? eval_embeddings(&e)
         : o.profile    ? eval_profile(&e)
                        : eval_graphs(&e));
    ev_model_close(&e.model);
    gguf_pool_destroy(e.pool);
    gguf_tokens_fini(&e.tokens);
    ev_free_texts(&e.run);
    free(e.ids.id);
    free(e.lines);
    ev_files_fini(&o.texts);
    ev_options_fini(&o.ev);
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
