/* SPDX-License-Identifier: MIT */
/* verify.c - evaluating outputs before they are kept
 *
 * Before the conversion a file is made up: the header of the output, followed
 * by zeros for its tensors, which nobody reads. It is enough to open the model
 * and to tokenize the text, so that a model or text that cannot be evaluated is
 * refused at once. When the outputs are complete, and before
 * they get their names, each is evaluated as gguf-ppl does.
 */
#include "config.h"
#include "tools/convert/convert.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "tools/common/textfile.h"
#include <gguf/cpu.h>
#include <gguf/eval.h>
#include <gguf/reader.h>
#include <gguf/writer.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_CTX = 512 };

bool verify_read(struct convert_options *o)
{
    struct verify *v = &o->verify;
    if (!v->text)
        return true;
    if (!textfile_read(v->text, v->max_text, &v->data, &v->size))
        return false;
    if (!o->q.quiet)
        textfile_warn(v->text, v->data, v->size);
    return true;
}

/* ---- before the conversion ---- */

static void warn_model(void *user, const char *message)
{
    const struct options *q = user;
    if (!q->quiet)
        msg_warn(q->in, "%s", message);
}

/* Tokenize the text and decide how it is cut into chunks. */
static enum gguf_status tokenize_text(struct verify *v,
                                      const struct gguf_model *model,
                                      const char **about,
                                      struct gguf_error *err)
{
    const struct gguf_model_info *m = gguf_model_info(model);
    const char *why = !m->has_logits     ? "is an encoder"
                      : m->encodes_first ? "is an encoder-decoder"
                                         : NULL;
    if (why)
        return gguf_error_set(err, GGUF_E_UNSUPPORTED,
                              "--verify: architecture '%.*s' %s: it gives a "
                              "text no perplexity",
                              (int)m->arch.size, m->arch.data, why);
    if (!v->n_ctx)
        v->n_ctx = m->n_ctx_train < USUAL_CTX ? m->n_ctx_train : USUAL_CTX;
    if (!(v->max > 0))
        v->max = m->n_vocab;
    *about = v->text;
    enum gguf_status st =
        gguf_vocab_tokenize(gguf_model_vocab(model), v->data, v->size,
                            GGUF_TOKENIZE_ADD_SPECIAL, &v->tokens, err);
    if (st != GGUF_OK)
        return st;
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    p.n_ctx = v->n_ctx;
    const size_t n = gguf_ppl_n_chunks(v->tokens.n, &p);
    if (!n)
        return gguf_error_set(err, GGUF_E_INVALID,
                              "%zu token%s too few: with chunks of %" PRIu32
                              " at least %" PRIu64
                              " are needed (--verify-ctx)",
                              v->tokens.n, v->tokens.n == 1 ? " is" : "s are",
                              v->n_ctx, gguf_ppl_min_tokens(&p));
    v->n_chunks = v->n_chunks < n ? v->n_chunks : n;
    return GGUF_OK;
}

struct made_up {
    const char *header;
    uint64_t size; /* bytes of the header */
};

/* Read the header, followed by zeros. */
static enum gguf_status read_made_up(void *user, uint64_t off, void *dst,
                                     size_t size, struct gguf_error *err)
{
    const struct made_up *m = user;
    const uint64_t left = off < m->size ? m->size - off : 0;
    const size_t n = left < size ? (size_t)left : size;
    (void)err;
    memcpy(dst, m->header + (off < m->size ? off : 0), n);
    memset((char *)dst + n, 0, size - n);
    return GGUF_OK;
}

/* Open the model of a header that is followed by zeros. */
static enum gguf_status open_header(struct convert_options *o,
                                    struct gguf_writer *w, const char **about,
                                    struct gguf_error *err)
{
    const void *header;
    size_t n;
    enum gguf_status st = gguf_writer_header(w, &header, &n, err);
    if (st != GGUF_OK)
        return st;
    struct made_up m = { header, n };
    struct gguf_reader r = GGUF_READER_INIT;
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_file *file = NULL;
    struct gguf_model *model = NULL;
    r.size = gguf_writer_file_size(w);
    r.read_at = read_made_up;
    r.user = &m;
    fp.limits = &o->q.limits;
    mp.warn.fn = warn_model;
    mp.warn.user = &o->q;
    mp.meta = o->q.meta;
    st = gguf_file_open_reader(&file, &r, NULL, &fp, err);
    if (st == GGUF_OK)
        st = gguf_model_create(&model, file, &mp, err);
    if (st == GGUF_OK)
        st = tokenize_text(&o->verify, model, about, err);
    gguf_model_destroy(model);
    gguf_file_close(file);
    return st;
}

enum gguf_status verify_begin(struct convert_options *o, const char **about,
                              struct gguf_error *err)
{
    const struct gguf_convert *c = o->from;
    struct gguf_writer *w = NULL;
    if (!o->verify.text)
        return GGUF_OK;
    enum gguf_status st =
        gguf_writer_create(&w, gguf_convert_meta(c), NULL, err);
    for (size_t i = 0; i < gguf_convert_n_tensors(c) && st == GGUF_OK; i++) {
        const struct gguf_convert_tensor *t = gguf_convert_tensor(c, i);
        st = gguf_writer_add_tensor(
            w, (struct gguf_str){ t->name, strlen(t->name) }, t->dtype,
            t->n_dims, t->ne, err);
    }
    if (st == GGUF_OK)
        st = open_header(o, w, about, err);
    gguf_writer_destroy(w);
    return st;
}

/* ---- after the conversion ---- */

struct evaluation {
    struct convert_options *o;
    struct gguf_model *model;
    struct gguf_backend *cpu;
    struct gguf_session *session;
};

static bool is_stopped(void *user)
{
    (void)user;
    return progress_stopped();
}

static enum gguf_status evaluate_set(struct evaluation *e,
                                     const struct gguf_file *set,
                                     struct gguf_ppl *sums,
                                     struct gguf_error *err)
{
    const struct verify *v = &e->o->verify;
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct gguf_scan_params scan = GGUF_SCAN_PARAMS_INIT;
    struct progress bar;
    p.scan = &scan;
    cp.pool = scan.pool = e->o->q.params.pool;
    cp.abort.fn = is_stopped;
    enum gguf_status st = gguf_model_create(&e->model, set, &mp, err);
    if (st == GGUF_OK)
        st = gguf_cpu_backend_create(&e->cpu, &cp, err);
    sp.backend = e->cpu;
    sp.n_ctx = v->n_ctx;
    sp.n_ubatch = v->n_ctx < USUAL_CTX ? v->n_ctx : USUAL_CTX;
    if (e->model && gguf_model_info(e->model)->is_whole)
        sp.n_ubatch = v->n_ctx;
    if (st == GGUF_OK)
        st = gguf_session_create(&e->session, e->model, &sp, err);
    if (st != GGUF_OK)
        return st;
    progress_init(&bar, "verifying", "tokens", e->o->q.quiet);
    scan.n_ctx = v->n_ctx;
    scan.max_chunks = (size_t)v->n_chunks;
    scan.progress.fn = progress_report;
    scan.progress.user = &bar;
    st = gguf_ppl_run(e->session, v->tokens.id, v->tokens.n, &p, sums, err);
    progress_clear(&bar);
    return st;
}

void verify_format(const struct verify *v, const struct gguf_ppl *sums,
                   char *out, size_t size)
{
    char value[32], error[32];
    snprintf(out, size,
             "perplexity %s +/- %s on %" PRIu64 " chunk%s of %" PRIu32
             " tokens",
             text_format_number(value, gguf_ppl_value(sums), 4),
             text_format_number(error, gguf_ppl_error(sums), 2), v->n_chunks,
             text_s(v->n_chunks), v->n_ctx);
}

/* Check the perplexity of output job against the limits. */
static enum gguf_status check_perplexity(struct verify *v, size_t job,
                                         struct gguf_error *err)
{
    const double x = gguf_ppl_value(&v->sums[job]);
    const double first = gguf_ppl_value(&v->sums[0]);
    char said[160], base[32];
    verify_format(v, &v->sums[job], said, sizeof said);
    if (!(x <= v->max))
        return gguf_error_set(err, GGUF_E_MISMATCH,
                              "%s, expected at most %.9g, %s: not kept", said,
                              v->max,
                              v->max_given ? "the limit of --verify-max"
                                           : "that of random guessing");
    if (v->factor > 0 && x > v->factor * first)
        return gguf_error_set(err, GGUF_E_MISMATCH,
                              "%s, expected at most %.9g times %s of the "
                              "first output: not kept",
                              said, v->factor,
                              text_format_number(base, first, 4));
    return GGUF_OK;
}

enum gguf_status verify_check(void *user, size_t job,
                              const struct gguf_file *output,
                              struct gguf_error *err)
{
    struct convert_options *o = user;
    struct verify *v = &o->verify;
    struct evaluation e = { .o = o };
    v->sums[job] = (struct gguf_ppl)GGUF_PPL_INIT;
    v->failed = true;
    enum gguf_status st = evaluate_set(&e, output, &v->sums[job], err);
    gguf_session_destroy(e.session);
    gguf_model_destroy(e.model);
    gguf_backend_destroy(e.cpu);
    v->refused = st == GGUF_E_NONFINITE;
    if (st == GGUF_OK) {
        st = check_perplexity(v, job, err);
        v->refused = st != GGUF_OK;
    }
    v->failed = st != GGUF_OK;
    return st;
}

void verify_fini(struct verify *v)
{
    gguf_tokens_fini(&v->tokens);
    free(v->data);
}
