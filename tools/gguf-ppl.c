/* gguf-ppl - perplexity of a model on a text */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/json.h"
#include "tools/common/opt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    OPT_CHUNKS = OPT_FIRST_LONG,
    OPT_CACHE,
    OPT_JSON,
    OPT_NO_CHECK,
    OPT_UBATCH
};

static const struct opt table[] = {
    { 0, NULL, NULL, "What is evaluated:" },
    { 'm', "-m --model", "MODEL", "the GGUF file" },
    { 'f', "-f --file", "TEXT",
      "the text, plain or compressed by gzip; - for standard input" },
    { OPT_CHUNKS, "--chunks", "N",
      "only the first N chunks; without this option, all" },
    { 0, NULL, NULL, "How:" },
    { 'c', "-c --ctx-size", "N",
      "tokens of a chunk: the context in which they are predicted; 512 "
      "without this option" },
    { 'b', "-b --batch-size", "N",
      "tokens of the chunks that are evaluated together, at most; 2048 "
      "without this option. No digit depends on it" },
    { OPT_UBATCH, "-ub --ubatch-size", "N",
      "tokens that go through the matrices together, at most; 512 without "
      "this option. No digit depends on it" },
    { 't', "-t --threads", "N",
      "threads; without this option, one for each processor. No digit "
      "depends on it" },
    { OPT_CACHE, "-ctk --cache-type", "TYPE",
      "type of the keys and values in memory: f32 (without this option) or "
      "f16" },
    { OPT_NO_CHECK, "--no-check", NULL,
      "do not look for NaN and infinities among the weights first" },
    { 0, NULL, NULL, "Output:" },
    { OPT_JSON, "-j --json", NULL, "one JSON document at the end" },
    { 'q', "-q --quiet", NULL, "no progress bar, no warnings" },
    { 0, NULL, NULL, NULL },
};

static const struct opt_tool tool = {
    "gguf-ppl", "[OPTION]... -m MODEL -f TEXT",
    "Evaluate a model on a text: the perplexity, exp of the mean negative "
    "log-likelihood of the second half of each chunk's tokens, and its "
    "uncertainty.",
    table, NULL
};

/* ---- options ---- */

static uint32_t cache_type(const char *name)
{
    const struct gguf_dtype_info *d = gguf_dtype_from_name(name);
    if (!d || (d->id != GGUF_DTYPE_F32 && d->id != GGUF_DTYPE_F16))
        opt_usage("--cache-type: '%s' is not f32 or f16", name);
    return d->id;
}

static void parse(struct opt_parser *p, struct ppl_options *o)
{
    for (int id; (id = opt_next(p)) != OPT_END;)
        switch (id) {
        case 'm':
            o->model = p->arg;
            break;
        case 'f':
            o->text = p->arg;
            break;
        case 'c':
            o->n_ctx = (uint32_t)opt_u64(p, 4, 1u << 24);
            break;
        case 'b':
            o->n_batch = (uint32_t)opt_u64(p, 1, 1u << 24);
            break;
        case OPT_UBATCH:
            o->n_ubatch = (uint32_t)opt_u64(p, 1, 1u << 24);
            break;
        case 't':
            o->n_threads = (uint32_t)opt_u64(p, 1, GGUF_POOL_MAX_THREADS);
            break;
        case OPT_CHUNKS:
            o->n_chunks = opt_u64(p, 1, UINT32_MAX);
            break;
        case OPT_CACHE:
            o->cache_dtype = cache_type(p->arg);
            break;
        case OPT_NO_CHECK:
            o->check = false;
            break;
        case OPT_JSON:
            o->json = true;
            break;
        case 'q':
            o->quiet = true;
            break;
        }
    if (p->i < p->argc)
        opt_usage("unexpected operand '%s'", p->argv[p->i]);
    if (!o->model)
        opt_usage("which model? (-m)");
    if (!o->text)
        opt_usage("which text? (-f)");
    if (!o->n_threads)
        o->n_threads = gguf_cpu_count();
}

/* ---- the run ---- */

/* What is open, torn down in this order. */
struct job {
    char *text;
    struct gguf_session *session;
    struct gguf_backend *backend;
    struct gguf_pool *pool;
    struct gguf_model *model;
    struct gguf_file *file;
    struct gguf_tokens tokens;
    struct ppl_run run;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

/* An architecture that cannot be evaluated is no dead end: say what can be
 * done with the file. */
static bool fail_model(const struct job *j, const struct gguf_error *err)
{
    const struct gguf_kv *kv =
        gguf_file_kv_find(j->file, "general.architecture");
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
    struct gguf_pool_params pp = GGUF_POOL_PARAMS_INIT;
    struct gguf_error err;
    mp.warn = warn;
    mp.warn_user = (void *)(uintptr_t)o;
    pp.n_threads = o->n_threads;
    if (gguf_file_open(&j->file, o->model, NULL, &err) != GGUF_OK)
        return fail(o->model, &err);
    if (gguf_model_open(&j->model, j->file, &mp, &err) != GGUF_OK)
        return fail_model(j, &err);
    if (gguf_pool_create(&j->pool, &pp, &err) != GGUF_OK)
        return fail(NULL, &err);
    gguf_model_get_info(j->model, &j->run.model);
    if (o->n_ctx > j->run.model.n_ctx_train)
        warn((void *)(uintptr_t)o,
             "the context is longer than the model was trained on");
    if (o->check && gguf_model_check(j->model, j->pool, &err) != GGUF_OK)
        return fail(o->model, &err);
    return true;
}

static bool read_tokens(struct job *j, const struct ppl_options *o)
{
    struct gguf_error err;
    const struct gguf_vocab *v = gguf_model_vocab(j->model);
    if (!ppl_read_text(o->text, &j->text, &j->run.text_size))
        return false;
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
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_error err;
    uint32_t n_batch = o->n_batch < o->n_ubatch ? o->n_batch : o->n_ubatch;
    uint32_t n_seq = n_batch / o->n_ctx;
    if (n_seq > j->run.n_chunks)
        n_seq = (uint32_t)j->run.n_chunks;
    cp.pool = j->pool;
    cp.abort = stopped;
    if (gguf_cpu_backend_create(&j->backend, &cp, &err) != GGUF_OK)
        return fail(NULL, &err);
    sp.backend = j->backend;
    sp.n_ctx = o->n_ctx;
    sp.n_seq = n_seq ? n_seq : 1;
    sp.n_ubatch = o->n_ubatch;
    sp.cache_dtype = o->cache_dtype;
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

static bool run(struct job *j)
{
    struct ppl_run *r = &j->run;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct gguf_error err;
    p.n_ctx = r->o->n_ctx;
    p.max_chunks = r->n_chunks;
    p.pool = j->pool;
    p.on_chunk = on_chunk;
    p.progress = on_progress;
    p.user = r;
    if (!r->o->json)
        ppl_print_head(r);
    progress_init(&r->bar, "perplexity", "tokens", r->o->quiet);
    double begin = now();
    enum gguf_status st = gguf_ppl_run(j->session, j->tokens.id, j->tokens.n,
                                       &p, &r->total, &err);
    r->seconds = now() - begin;
    progress_clear(&r->bar);
    if (st == GGUF_E_CANCELLED)
        progress_raise();
    if (st != GGUF_OK)
        return fail(r->o->model, &err);
    if (r->o->json)
        ppl_print_json(r);
    else
        ppl_print_end(r);
    return true;
}

int main(int argc, char **argv)
{
    struct ppl_options o = { .n_ctx = 512, .n_batch = 2048, .n_ubatch = 512,
                             .cache_dtype = GGUF_DTYPE_F32, .check = true };
    struct opt_parser p;
    opt_begin(&p, &tool, argc, argv);
    parse(&p, &o);
    progress_catch_signals();
    struct job j = { .tokens = GGUF_TOKENS_INIT, .run = { .o = &o } };
    bool good = open_model(&j, &o) && read_tokens(&j, &o) &&
                open_session(&j, &o) && run(&j);
    gguf_session_destroy(j.session);
    gguf_backend_destroy(j.backend);
    gguf_pool_destroy(j.pool);
    gguf_model_destroy(j.model);
    gguf_file_close(j.file);
    gguf_tokens_fini(&j.tokens);
    free(j.text);
    free(j.run.nll);
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
