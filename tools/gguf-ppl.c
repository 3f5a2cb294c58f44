/* gguf-ppl - perplexity of a model on a text */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/json.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "tools/common/textfile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the run ---- */

/* What is open, torn down in this order. */
struct job {
    char *text;
    struct gguf_session *session;
    struct gguf_pool *pool;
    struct gguf_model *model;
    struct gguf_meta *meta;
    struct gguf_split *set;
    struct gguf_tokens tokens;
    struct ppl_ids ids;
    struct ppl_run run;
    struct ppl_compare compare;
};

static void warn(void *user, const char *message)
{
    const struct ppl_options *o = user;
    if (!o->quiet)
        msg_warn(o->model, "%s", message);
}

static bool fail(const char *file, const struct gguf_error *err)
{
    msg_fail(file, err);
    return false;
}

/* For an architecture that cannot be evaluated: say what else can be done with
 * the file. */
static bool fail_model(const struct job *j, const struct gguf_error *err)
{
    const struct gguf_kv *kv =
        gguf_file_kv_find(gguf_split_file(j->set, 0), "general.architecture");
    struct gguf_str name;
    char esc[128];
    if (err->status != GGUF_E_ARCH ||
        gguf_kv_get_str(kv, &name, NULL) != GGUF_OK)
        return fail(j->run.o->model, err);
    gguf_text_escape(esc, sizeof esc, name);
    msg_error(j->run.o->model,
              "architecture '%s' is not supported by gguf-ppl yet; gguf-info, "
              "gguf-split and gguf-quantize work on it",
              esc);
    return false;
}

static bool open_model(struct job *j, const struct ppl_options *o)
{
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    struct gguf_error err;
    mp.warn = warn;
    mp.warn_user = (void *)(uintptr_t)o;
    mp.pre = o->pre;
    if (!ppl_pool_open(&j->pool, o))
        return false;
    load_raise_limits();
    if (gguf_split_open(&j->set, o->model, NULL, &err) != GGUF_OK)
        return fail(o->model, &err);
    if (!ppl_overrides(o, j->set, &j->meta))
        return false;
    mp.meta = j->meta;
    if (gguf_model_open_split(&j->model, j->set, &mp, &err) != GGUF_OK)
        return fail_model(j, &err);
    j->run.model = *gguf_model_get_info(j->model);
    if (o->n_ctx > j->run.model.n_ctx_train)
        warn((void *)(uintptr_t)o,
             "the context is longer than the model was trained on");
    /* before a text is waited for: can the vocabulary cut one? */
    if (!o->tokens && gguf_vocab_tokenize(gguf_model_vocab(j->model), "", 0,
                                          GGUF_TOKENIZE_ADD_SPECIAL,
                                          &j->tokens, &err) != GGUF_OK)
        return fail(o->model, &err);
    j->tokens.n = 0;
    return ppl_weights(j->model, j->pool, o);
}

static bool read_tokens(struct job *j, const struct ppl_options *o)
{
    if (o->tokens)
        return ppl_read_ids(o->tokens, o->max_text, j->run.model.n_vocab,
                            &j->ids) &&
               ppl_check_ids(&j->run, &j->ids);
    struct gguf_error err;
    const struct gguf_vocab *v = gguf_model_vocab(j->model);
    if (!textfile_read(o->text, o->max_text, &j->text, &j->run.text_size))
        return false;
    /* as llama.cpp does: editors end a file with one that nobody wrote */
    if (j->run.text_size && j->text[j->run.text_size - 1] == '\n')
        j->run.text_size--;
    if (gguf_vocab_tokenize(v, j->text, j->run.text_size,
                            GGUF_TOKENIZE_ADD_SPECIAL, &j->tokens,
                            &err) != GGUF_OK)
        return fail(o->text, &err);
    size_t n = gguf_ppl_n_chunks(j->tokens.n, o->n_ctx);
    if (!n) {
        msg_error(o->text,
                  "%zu tokens are too few: with -c %" PRIu32
                  " at least %" PRIu64 " are needed",
                  j->tokens.n, o->n_ctx, 2 * (uint64_t)o->n_ctx);
        return false;
    }
    j->run.n_tokens = j->tokens.n;
    j->run.n_chunks = o->n_chunks && o->n_chunks < n ? (size_t)o->n_chunks : n;
    j->run.n_scored_chunk = o->n_ctx - o->n_ctx / 2 - 1;
    j->run.add_bos = gguf_vocab_add_bos(v);
    j->run.nll = calloc(j->run.n_chunks, sizeof *j->run.nll);
    if (!j->run.nll) {
        msg_error(NULL, "out of memory");
        return false;
    }
    return true;
}

/* Asked by the backend between operations. */
static int stopped(void *user)
{
    (void)user;
    return progress_stopped();
}

static bool open_session(struct job *j, const struct ppl_options *o)
{
    struct ppl_backends *b = &j->run.backends;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_error err;
    uint32_t n_batch = o->n_batch < o->n_ubatch ? o->n_batch : o->n_ubatch;
    uint32_t n_seq = n_batch / o->n_ctx;
    if (n_seq > j->run.n_chunks)
        n_seq = (uint32_t)j->run.n_chunks;
    sp.n_ubatch = o->tokens ? n_batch : o->n_ubatch;
    if (o->tokens && (j->run.model.is_whole || j->run.model.encodes_first))
        sp.n_ubatch = (uint32_t)j->ids.n; /* which -c bounds */
    if (!ppl_backends_open(b, o, j->pool, stopped))
        return false;
    sp.backend = b->list[b->n - 1];
    sp.user = &j->run;
    if (o->compare) {
        j->compare.o = o;
        j->compare.backends = b;
        sp.on_graph = ppl_compare_graph;
        sp.user = &j->compare;
    } else {
        sp.preferred = b->list;
        sp.n_preferred = b->n - 1;
        sp.on_graph = ppl_only_prints(o) ? ppl_print_graph : NULL;
    }
    sp.n_ctx = o->n_ctx;
    sp.n_seq = n_seq ? n_seq : 1;
    sp.key_dtype = o->key_dtype;
    sp.value_dtype = o->value_dtype;
    sp.pooling = GGUF_POOLING_NONE;
    ppl_set_positions(&o->pos, &sp);
    sp.adapters = j->run.loras.use;
    sp.n_adapters = j->run.loras.n;
    j->run.n_seq = sp.n_seq;
    if (gguf_session_create(&j->session, j->model, &sp, &err) != GGUF_OK)
        return fail(o->model, &err);
    return true;
}

static int on_chunk(void *user, size_t chunk, size_t n_chunks,
                    const struct gguf_ppl *one, const struct gguf_ppl *all)
{
    struct ppl_run *r = user;
    (void)n_chunks;
    r->nll[chunk] = one->sum;
    r->n_done = chunk + 1;
    r->total = *all;
    if (!r->o->json)
        ppl_print_chunk(r);
    return 0;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    struct ppl_run *r = user;
    return progress_report(&r->bar, done, total);
}

/* Evaluate n_chunks chunks; what is printed of it is the caller's business. */
static enum gguf_status evaluate(struct job *j, size_t n_chunks,
                                 gguf_ppl_fn *fn, const char *what,
                                 struct gguf_error *err)
{
    struct ppl_run *r = &j->run;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    p.n_ctx = r->o->n_ctx;
    p.max_chunks = n_chunks;
    p.pool = j->pool;
    p.on_chunk = fn;
    p.progress = on_progress;
    p.user = r;
    progress_init(&r->bar, what, "tokens", r->o->quiet);
    double begin = progress_clock();
    enum gguf_status st = gguf_ppl_run(j->session, j->tokens.id, j->tokens.n,
                                       &p, &r->total, err);
    r->seconds = progress_clock() - begin;
    progress_clear(&r->bar);
    if (st == GGUF_E_CANCELLED && progress_stopped())
        progress_raise();
    return st;
}

static bool run(struct job *j)
{
    struct ppl_run *r = &j->run;
    struct gguf_error err;
    if (!r->o->json)
        ppl_print_head(r);
    if (evaluate(j, r->n_chunks, on_chunk, "perplexity", &err) != GGUF_OK)
        return fail(r->o->model, &err);
    if (r->o->json)
        ppl_print_json(r);
    else
        ppl_print_end(r);
    return true;
}

/* Node by node; a difference is a failure. */
static bool compare(struct job *j)
{
    struct ppl_compare *c = &j->compare;
    struct gguf_error err;
    if (evaluate(j, j->run.n_chunks, NULL, "comparing", &err) != GGUF_OK)
        return fail(j->run.o->model, c->err.status ? &c->err : &err);
    ppl_print_compare(c);
    return !c->first.graph;
}

/* The graphs of as many tokens as go through the model together, computed so
 * that there are states for the second one. */
static bool print_graphs(struct job *j)
{
    struct gguf_session *s = j->session;
    const uint32_t n = gguf_session_n_ubatch(s) < j->run.o->n_ctx
                           ? gguf_session_n_ubatch(s)
                           : j->run.o->n_ctx;
    struct gguf_batch b = GGUF_BATCH_INIT;
    const float *logits;
    struct gguf_error err;
    b.n = n;
    b.token = j->tokens.id;
    if (gguf_session_decode(s, &b, &err) != GGUF_OK ||
        gguf_session_logits(s, 0, 1, &logits, &err) != GGUF_OK)
        return fail(j->run.o->model, &err);
    return true;
}

int main(int argc, char **argv)
{
    struct ppl_options o;
    ppl_parse_options(&o, argc, argv);
    if (o.tokenize || o.detokenize)
        return msg_exit((o.tokenize ? ppl_tokenize(&o) : ppl_detokenize(&o))
                            ? MSG_DONE
                            : MSG_FAILED);
    ppl_check_paths(&o);
    struct job j = { .tokens = GGUF_TOKENS_INIT,
                     .run = { .o = &o, .total = GGUF_PPL_INIT } };
    bool good = open_model(&j, &o) &&
                ppl_loras_open(&j.run.loras, &o, j.model) &&
                read_tokens(&j, &o) && open_session(&j, &o);
    /* nothing before this point checks for a caught signal */
    progress_catch_signals();
    good = good && (o.logits    ? ppl_save_rows(&j.run, j.session, &j.ids)
                    : o.compare ? compare(&j)
                    : ppl_only_prints(&o) ? print_graphs(&j)
                                          : run(&j));
    gguf_session_destroy(j.session);
    ppl_backends_close(&j.run.backends);
    gguf_pool_destroy(j.pool);
    ppl_loras_close(&j.run.loras);
    gguf_model_destroy(j.model);
    gguf_meta_destroy(j.meta);
    gguf_split_close(j.set);
    gguf_tokens_fini(&j.tokens);
    free(j.ids.id);
    free(j.text);
    free(j.run.nll);
    opt_list_fini(&o.kv_texts);
    opt_list_fini(&o.lora_texts);
    scaled_fini(&o.loras);
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
