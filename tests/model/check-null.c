/* SPDX-License-Identifier: MIT */
/* check-null.c - NULL for parameters, results and callbacks
 *
 * Calls each public function that takes a structure with struct_size, or a
 * callback, with NULL in its place. (headers.t looks for the calls.) NULL for
 * parameters must act like the defaults. NULL for a result or a required
 * callback must give GGUF_E_INVALID. */
#include "config.h"
#include "gguf/backend_impl.h"
#include "tests/convert/folder_text.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_VOCAB = 32, N_CTX = 8, N_TOKENS = 16 };

static struct run r;
static struct gguf_file *set;
static struct gguf_meta *meta;
static struct gguf_ctx *ctx;
static struct gguf_tensor *leaf, *node;
static struct gguf_graph *graph;
static struct gguf_sched *sched;
static struct gguf_driver *driver;
static struct gguf_device *device;
static struct gguf_recipe *recipe;
static struct gguf_quant *quant;
static struct gguf_split_plan *plan;
static gguf_token tok[N_TOKENS];
static char dir[] = "check-null-XXXXXX";
static const char path[] = "m.gguf", other[] = "out/x.gguf";
static struct gguf_error err;

/* Status that the child's call returned; -1: it crashed. */
static int child_status(pid_t child)
{
    int how;
    if (child < 0 || waitpid(child, &how, 0) != child || !WIFEXITED(how))
        return -1;
    return WEXITSTATUS(how);
}

#define OUTCOME(call) child_status(run_child((call)))

static pid_t child;
#define run_child(call)                                                       \
    ((child = fork()) != 0 ? child : (_exit((int)(call)), child))

/* Check that call, with parameters p, does the same for NULL and for init. */
#define DEFAULTS(type, init, call)                                            \
    do {                                                                      \
        static const struct type initial = init;                              \
        const struct type *p = NULL;                                          \
        const int with_null = OUTCOME(call);                                  \
        scratch_clean("out");                                                 \
        p = &initial;                                                         \
        const int with_init = OUTCOME(call);                                  \
        scratch_clean("out");                                                 \
        ok(with_null == with_init && with_init >= 0,                          \
           "NULL gives %d, the defaults %d: %.60s", with_null, with_init,     \
           #call);                                                            \
    } while (0)
/* DEFAULTS for a type that GGUF_INIT initialises. */
#define ZERO_DEFAULTS(TYPE, CALL) DEFAULTS(TYPE, GGUF_INIT(struct TYPE), CALL)

#define GIVES(status, call)                                                   \
    do {                                                                      \
        const int got = OUTCOME(call);                                        \
        ok(got == (status), "%.60s is %d", #call, got);                       \
    } while (0)
#define REFUSED(call) GIVES(GGUF_E_INVALID, call)

/* ---- the objects that are needed ---- */

static void must_succeed(enum gguf_status st)
{
    if (st == GGUF_OK)
        return;
    printf("Bail out! %s\n", err.message);
    exit(1);
}

static void open_model(void)
{
    static const struct gen_spec spec = { GEN_ONE_LAYER, .n_vocab = N_VOCAB };
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    size_t size;
    void *data = gen_model_file(&spec, 1, GGUF_DTYPE_F32, &size);
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(i ? path : "edited.gguf", "wb");
        if (!f || fwrite(data, 1, size, f) != size || fclose(f))
            exit(99);
    }
    free(data);
    p.n_ctx = N_TOKENS;
    if (!run_open_path(&r, path, 1, &p)) {
        printf("Bail out! %s\n", r.err.message);
        exit(1);
    }
    must_succeed(gguf_file_open(&set, path, NULL, &err));
    for (size_t i = 0; i < N_TOKENS; i++)
        tok[i] = (gguf_token)(i % N_VOCAB);
}

static void open_rest(void)
{
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct gguf_sched_params sp = GGUF_SCHED_PARAMS_INIT;
    struct gguf_split_params pp = GGUF_INIT(struct gguf_split_params);
    struct gguf_quant_params qp = GGUF_QUANT_PARAMS_INIT;
    cp.mem_size = 1 << 16;
    must_succeed(gguf_ctx_create(&ctx, &cp, &err));
    leaf = gguf_tensor_create_1d(ctx, GGUF_DTYPE_F32, 4);
    node = gguf_op_silu(ctx, leaf);
    graph = gguf_graph_create(ctx, 16);
    must_succeed(gguf_graph_finish(ctx, graph, node, &err));
    sp.backends = &r.backend;
    sp.n_backends = 1;
    must_succeed(gguf_sched_create(&sched, &sp, &err));
    must_succeed(gguf_meta_create(&meta, NULL, &err));
    must_succeed(gguf_meta_copy_file(meta, r.file, &err));
    must_succeed(gguf_cpu_driver_create(&driver, NULL, &err));
    device = gguf_driver_device(driver, 0);
    must_succeed(gguf_recipe_preset(&recipe, "F16", NULL, &err));
    qp.recipe = recipe;
    must_succeed(gguf_quant_create_file(&quant, r.file, &qp, &err));
    pp.max_tensors = 4;
    must_succeed(gguf_split_plan_create(&plan, set, &pp, &err));
}

static void close_all(void)
{
    gguf_split_plan_destroy(plan);
    gguf_quant_destroy(quant);
    gguf_recipe_destroy(recipe);
    gguf_driver_destroy(driver);
    gguf_meta_destroy(meta);
    gguf_sched_destroy(sched);
    gguf_ctx_destroy(ctx);
    gguf_file_close(set);
    run_close(&r);
}

/* ---- parameters ---- */

static enum gguf_status edit_file(const struct gguf_edit_params *p)
{
    struct gguf_file *f;
    must_succeed(gguf_file_open(&f, "edited.gguf", NULL, &err));
    return gguf_edit_apply(f, meta, p, NULL, &err);
}

static void check_files(void)
{
    struct gguf_file *f;
    struct gguf_file *s;
    struct gguf_split_plan *sp;
    struct gguf_writer *w;
    struct gguf_digest digest[64];
    const struct gguf_file *file = r.file;
    const void *bytes = gguf_file_bytes(r.file);
    const size_t size = (size_t)gguf_file_size(r.file);
    FILE *in = fopen(path, "rb");
    ZERO_DEFAULTS(gguf_file_params, gguf_file_open(&f, path, p, &err));
    REFUSED(gguf_file_open(&f, NULL, NULL, &err));
    ZERO_DEFAULTS(gguf_file_params,
                  gguf_file_open_fd(&f, fileno(in), p, &err));
    ZERO_DEFAULTS(gguf_file_params,
                  gguf_file_open_memory(&f, bytes, size, p, &err));
    fclose(in);
    ZERO_DEFAULTS(gguf_reader,
                  gguf_file_open_reader(&f, p, "name", NULL, &err));
    ZERO_DEFAULTS(gguf_file_params, gguf_file_open(&s, path, p, &err));
    ZERO_DEFAULTS(gguf_split_params,
                  gguf_split_plan_create(&sp, set, p, &err));
    ZERO_DEFAULTS(gguf_split_output_params,
                  gguf_split_plan_write(plan, other, p, &err));
    ZERO_DEFAULTS(gguf_split_output_params,
                  gguf_split_merge(set, other, p, &err));
    ZERO_DEFAULTS(gguf_writer_params, gguf_writer_create(&w, meta, p, &err));
    must_succeed(gguf_writer_create(&w, meta, NULL, &err));
    ZERO_DEFAULTS(gguf_output_params,
                  gguf_writer_begin_file(w, other, p, &err));
    gguf_writer_destroy(w);
    ZERO_DEFAULTS(gguf_edit_params, edit_file(p));
    ZERO_DEFAULTS(gguf_digest_params,
                  gguf_digest_tensors(file, p, digest, NULL, &err));
    ZERO_DEFAULTS(gguf_digest_params,
                  gguf_digest_shards(file, p, digest, &err));
}

static bool on_finding(void *user, const struct gguf_finding *f)
{
    (void)user;
    (void)f;
    return 0;
}

static const struct gguf_finding_callback listed = { on_finding, NULL };
static const struct gguf_finding_callback unset = { NULL, NULL };
#define NONE(T) ((struct T##_callback){ NULL, NULL })

static void check_checks(void)
{
    ZERO_DEFAULTS(gguf_check_params, gguf_file_check(r.file, p, listed, &err));
    ZERO_DEFAULTS(gguf_check_params, gguf_file_verify(set, p, listed, &err));
    ZERO_DEFAULTS(gguf_check_params,
                  gguf_file_verify(r.file, p, listed, &err));
    ZERO_DEFAULTS(gguf_check_params,
                  gguf_file_verify_meta(set, meta, p, listed, &err));
    ZERO_DEFAULTS(gguf_check_params,
                  gguf_file_verify_meta(r.file, meta, p, listed, &err));
    ZERO_DEFAULTS(gguf_check_params,
                  gguf_path_verify(path, NULL, p, listed, &err));
    ZERO_DEFAULTS(gguf_file_params,
                  gguf_path_verify(path, p, NULL, listed, &err));
    REFUSED(gguf_file_check(r.file, NULL, unset, &err));
    REFUSED(gguf_file_verify(set, NULL, unset, &err));
    REFUSED(gguf_file_verify(r.file, NULL, unset, &err));
    REFUSED(gguf_file_verify_meta(set, meta, NULL, unset, &err));
    REFUSED(gguf_file_verify_meta(r.file, meta, NULL, unset, &err));
    REFUSED(gguf_file_infer_parts(r.file, NONE(gguf_inferred), &err));
    REFUSED(gguf_arch_compare(set, "llama", NONE(gguf_arch_difference), &err));
    REFUSED(gguf_path_verify(path, NULL, NULL, unset, &err));
}

static void check_numbers(void)
{
    struct gguf_quant *q;
    struct gguf_convert *c;
    struct gguf_imatrix *im;
    struct gguf_collect *col;
    struct gguf_part *part;
    struct gguf_stats stats = GGUF_INIT(struct gguf_stats);
    struct gguf_stats_diff diff = GGUF_INIT(struct gguf_stats_diff);
    struct gguf_target_result result = GGUF_TARGET_RESULT_INIT;
    const char *paths[1] = { other };
    DEFAULTS(gguf_quant_params, GGUF_QUANT_PARAMS_INIT,
             gguf_quant_create(&q, path, p, &err));
    DEFAULTS(gguf_quant_params, GGUF_QUANT_PARAMS_INIT,
             gguf_quant_create_file(&q, r.file, p, &err));
    DEFAULTS(gguf_quant_params, GGUF_QUANT_PARAMS_INIT,
             gguf_quant_create_file(&q, set, p, &err));
    DEFAULTS(gguf_quant_output, GGUF_QUANT_OUTPUT_INIT,
             gguf_quant_run(quant, other, p, &err));
    DEFAULTS(gguf_quant_output, GGUF_QUANT_OUTPUT_INIT,
             gguf_quant_run_many(&quant, paths, 1, p, &err));
    REFUSED(gguf_quant_totals(quant, NULL, &err));
    DEFAULTS(gguf_target_params, GGUF_TARGET_PARAMS_INIT,
             gguf_quant_fit_size(quant, p, &result, &err));
    REFUSED(gguf_quant_predict(quant, NULL, NULL, &err));
    ZERO_DEFAULTS(gguf_stats_params,
                  gguf_stats_tensor(r.file, 0, p, &stats, &err));
    REFUSED(gguf_stats_tensor(r.file, 0, NULL, NULL, &err));
    ZERO_DEFAULTS(gguf_stats_params,
                  gguf_stats_compare(r.file, 0, r.file, 0, p, &diff, &err));
    REFUSED(gguf_stats_compare(r.file, 0, r.file, 0, NULL, NULL, &err));
    DEFAULTS(gguf_convert_params, GGUF_CONVERT_PARAMS_INIT,
             gguf_convert_open(&c, "out", p, &err));
    REFUSED(gguf_convert_open(&c, NULL, NULL, &err));
    DEFAULTS(gguf_folder_params, GGUF_FOLDER_PARAMS_INIT,
             gguf_folder_write(path, "out/folder", p, &err));
    REFUSED(gguf_folder_write(path, NULL, NULL, &err));
    REFUSED(gguf_folder_write(NULL, "out/folder", NULL, &err));
    ZERO_DEFAULTS(gguf_file_params, gguf_imatrix_load(&im, path, p, &err));
    ZERO_DEFAULTS(gguf_file_params, gguf_collect_load(&col, path, p, &err));
    ZERO_DEFAULTS(gguf_file_params, gguf_part_load(&part, path, p, &err));
    REFUSED(gguf_limits_set(NULL, "kv", 1, &err));
}

static void check_folder(void)
{
    static struct folder folder;
    struct gguf_convert *c;
    struct gguf_quant *q;
    folder_text_make(folder_text_find("LlamaForCausalLM"), "hf", false,
                     &folder);
    folder_weights(&folder, "F32", 1);
    must_succeed(gguf_convert_open(&c, "hf", NULL, &err));
    DEFAULTS(gguf_quant_params, GGUF_QUANT_PARAMS_INIT,
             gguf_convert_create_job(&q, c, p, &err));
    gguf_convert_close(c);
}

static enum gguf_status on_outputs(void *user, size_t i, struct gguf_error *e)
{
    (void)user;
    (void)i;
    (void)e;
    return GGUF_OK;
}

static const struct gguf_session_outputs_callback outputs = { on_outputs,
                                                              NULL },
                                                  no_outputs = { NULL, NULL };
static const struct gguf_progress_callback silent = { NULL, NULL };

static void check_models(void)
{
    struct gguf_model *m;
    struct gguf_adapter *a;
    struct gguf_vocab *v;
    struct gguf_session *s;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    uint64_t size;
    sp.backend = r.backend;
    DEFAULTS(gguf_model_params, GGUF_MODEL_PARAMS_INIT,
             gguf_model_create(&m, r.file, p, &err));
    DEFAULTS(gguf_model_params, GGUF_MODEL_PARAMS_INIT,
             gguf_model_create(&m, set, p, &err));
    DEFAULTS(gguf_model_job, GGUF_MODEL_JOB_INIT,
             gguf_model_check_finite(r.model, p, &err));
    DEFAULTS(gguf_model_job, GGUF_MODEL_JOB_INIT,
             gguf_model_prefetch_weights(r.model, p, &err));
    DEFAULTS(gguf_model_job, GGUF_MODEL_JOB_INIT,
             gguf_model_read_weights(r.model, p, &err));
    DEFAULTS(gguf_place_params, GGUF_PLACE_PARAMS_INIT,
             gguf_model_place_weights(r.model, &sp, p, &err));
    DEFAULTS(gguf_session_params, GGUF_SESSION_PARAMS_INIT,
             gguf_model_place_weights(r.model, p, NULL, &err));
    DEFAULTS(gguf_session_params, GGUF_SESSION_PARAMS_INIT,
             gguf_model_split(r.model, p, NULL, 0, &err));
    DEFAULTS(gguf_adapter_params, GGUF_ADAPTER_PARAMS_INIT,
             gguf_adapter_create(&a, r.model, r.file, p, &err));
    DEFAULTS(gguf_vocab_params, GGUF_VOCAB_PARAMS_INIT,
             gguf_vocab_create(&v, r.file, p, &err));
    DEFAULTS(gguf_session_params, GGUF_SESSION_PARAMS_INIT,
             gguf_session_create(&s, r.model, p, &err));
    DEFAULTS(gguf_session_params, GGUF_SESSION_PARAMS_INIT,
             gguf_session_estimate_memory(r.model, p, &size, &size, &err));
    DEFAULTS(gguf_session_params, GGUF_SESSION_PARAMS_INIT,
             gguf_session_estimate_peak_memory(r.model, p, &size, &err));
    REFUSED(gguf_session_estimate_memory(r.model, NULL, &size, NULL, &err));
    REFUSED(gguf_session_estimate_memory(r.model, NULL, NULL, &size, &err));
    REFUSED(gguf_session_estimate_peak_memory(r.model, NULL, NULL, &err));
    DEFAULTS(gguf_batch, GGUF_BATCH_INIT,
             gguf_session_decode(r.session, p, &err));
    DEFAULTS(gguf_batch, GGUF_BATCH_INIT,
             gguf_session_encode(r.session, p, &err));
    DEFAULTS(gguf_batch, GGUF_BATCH_INIT,
             gguf_session_layered_size(r.session, p, &size, &err));
    DEFAULTS(
        gguf_batch, GGUF_BATCH_INIT,
        gguf_session_decode_layered(r.session, &p, 1, outputs, silent, &err));
}

static void check_evaluation(void)
{
    struct gguf_ppl sums = GGUF_PPL_INIT;
    struct gguf_kld *k;
    struct gguf_layers *l;
    struct gguf_bisect *b;
    struct gguf_collect *c;
    struct gguf_tasks *tasks;
    struct gguf_task_result result = GGUF_TASK_RESULT_INIT;
    const char *text = "a\n0\nb\nc\nd\ne\n";
    const struct gguf_sink *no_sink = NULL;
    struct gguf_session *s = r.session, *two[2] = { r.session, r.session };
    double e;
    DEFAULTS(gguf_scan_params, GGUF_SCAN_PARAMS_INIT,
             gguf_scan_n_chunks(4096, p));
    DEFAULTS(gguf_scan_params, GGUF_SCAN_PARAMS_INIT, gguf_scan_min_tokens(p));
    DEFAULTS(gguf_scan_params, GGUF_SCAN_PARAMS_INIT,
             gguf_scan_max_rows(4096, p));
    DEFAULTS(gguf_scan_params, GGUF_SCAN_PARAMS_INIT,
             gguf_ppl_n_chunks(4096, p));
    DEFAULTS(gguf_scan_params, GGUF_SCAN_PARAMS_INIT, gguf_ppl_min_tokens(p));
    DEFAULTS(gguf_scan_params, GGUF_SCAN_PARAMS_INIT,
             gguf_scan_run(s, tok, N_TOKENS, p, NULL, 0, &err));
    DEFAULTS(gguf_scan_params, GGUF_SCAN_PARAMS_INIT,
             gguf_scan_run_models(&s, 1, tok, N_TOKENS, p, NULL, 0, &err));
    GIVES(OUTCOME(gguf_scan_run(s, tok, N_TOKENS, NULL, NULL, 0, &err)),
          gguf_scan_run(s, tok, N_TOKENS, NULL, &no_sink, 1, &err));
    DEFAULTS(gguf_ppl_params, GGUF_PPL_PARAMS_INIT,
             gguf_ppl_run(s, tok, N_TOKENS, p, &sums, &err));
    REFUSED(gguf_ppl_run(s, tok, N_TOKENS, NULL, NULL, &err));
    DEFAULTS(gguf_ppl, GGUF_PPL_INIT, !isnan(gguf_ppl_value(p)));
    DEFAULTS(gguf_ppl, GGUF_PPL_INIT, !isnan(gguf_ppl_error(p)));
    DEFAULTS(gguf_ppl, GGUF_PPL_INIT,
             !isnan(gguf_ppl_per_unit(p, GGUF_PPL_TOKEN, &e)));
    DEFAULTS(gguf_ppl, GGUF_PPL_INIT,
             !isnan(gguf_ppl_bits_per_unit(p, GGUF_PPL_TOKEN, &e)));
    DEFAULTS(gguf_ppl, GGUF_PPL_INIT, gguf_ppl_add(&sums, p, &err));
    REFUSED(gguf_ppl_add(NULL, &sums, &err));
    struct gguf_baseline_writer *w;
    DEFAULTS(gguf_baseline_writer_params, GGUF_BASELINE_WRITER_PARAMS_INIT,
             gguf_baseline_writer_open(&w, other, p, &err));
    DEFAULTS(gguf_kld_params, GGUF_KLD_PARAMS_INIT,
             gguf_kld_create(&k, p, &err));
    must_succeed(gguf_kld_create(&k, NULL, &err));
    REFUSED(gguf_kld_means(k, NULL, &err));
    REFUSED(gguf_kld_stats(k, NULL, &err));
    gguf_kld_destroy(k);
    DEFAULTS(gguf_scan_params, GGUF_SCAN_PARAMS_INIT,
             gguf_layers_run(&l, two[0], two[1], tok, N_TOKENS, p, &err));
    DEFAULTS(
        gguf_bisect_params, GGUF_BISECT_PARAMS_INIT,
        gguf_bisect_run(&b, r.model, two[0], two[1], tok, N_TOKENS, p, &err));
    DEFAULTS(gguf_collect_params, GGUF_COLLECT_PARAMS_INIT,
             gguf_collect_create(&c, p, &err));
    must_succeed(gguf_collect_create(&c, NULL, &err));
    DEFAULTS(gguf_collect_run_params, GGUF_COLLECT_RUN_PARAMS_INIT,
             gguf_collect_run(c, s, tok, N_TOKENS, p, &err));
    REFUSED(gguf_collect_info(c, NULL, &err));
    REFUSED(gguf_calibrate_run(NULL, NULL, NULL, NULL, &err));
    REFUSED(gguf_calibrate_run(NULL, r.model, NULL, NULL, &err));
    gguf_collect_destroy(c);
    DEFAULTS(gguf_sensitivity_params, GGUF_SENSITIVITY_PARAMS_INIT,
             gguf_sensitivity_run(NULL, s, tok, N_TOKENS, p, &err));
    must_succeed(gguf_tasks_parse(&tasks, GGUF_TASK_HELLASWAG, text,
                                  strlen(text), NULL, &err));
    DEFAULTS(gguf_task_params, GGUF_TASK_PARAMS_INIT,
             gguf_tasks_run(s, tasks, p, &result, &err));
    REFUSED(gguf_tasks_run(s, tasks, NULL, NULL, &err));
    gguf_tasks_destroy(tasks);
}

/* ---- graphs and backends ---- */

/* Status of ctx after building t. */
static enum gguf_status built_status(struct gguf_tensor *t)
{
    return t ? GGUF_OK : gguf_ctx_status(ctx, NULL);
}

static void check_graphs(void)
{
    static const int64_t ne[4] = { 4, 1, 1, 1 };
    struct gguf_ctx *c;
    struct gguf_clone *clone;
    struct gguf_sched *s;
    struct gguf_difference diff = GGUF_DIFFERENCE_INIT;
    DEFAULTS(gguf_ctx_file_params, GGUF_CTX_FILE_PARAMS_INIT,
             gguf_ctx_create_from_file(&c, r.file, p, &err));
    DEFAULTS(gguf_ctx_params, GGUF_CTX_PARAMS_INIT,
             gguf_ctx_create(&c, p, &err));
    must_succeed(gguf_ctx_create(&c, NULL, &err));
    ok(!gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 4) &&
           !gguf_ctx_alloc_work(c, 1) &&
           gguf_ctx_status(c, NULL) == GGUF_E_FULL && !gguf_ctx_used(c) &&
           !gguf_ctx_left(c) && !gguf_ctx_first_tensor(c) &&
           !gguf_ctx_first_object(c),
       "a context of the defaults is full and empty");
    gguf_ctx_reset(c);
    ok(gguf_ctx_status(c, NULL) == GGUF_OK && !gguf_graph_create(c, 1),
       "it stays full after a reset");
    gguf_ctx_destroy(c);
    DEFAULTS(gguf_sched_params, GGUF_SCHED_PARAMS_INIT,
             gguf_sched_create(&s, p, &err));
    DEFAULTS(gguf_clone_params, GGUF_CLONE_PARAMS_INIT,
             gguf_clone_create(&clone, r.backend, graph, p, &err));
    DEFAULTS(
        gguf_compare_params, GGUF_COMPARE_PARAMS_INIT,
        gguf_compare_backends(r.backend, r.backend, graph, p, NULL, &err));
    DEFAULTS(
        gguf_compare_counts, GGUF_COMPARE_COUNTS_INIT,
        gguf_compare_backends(
            r.backend, r.backend, graph, NULL,
            p ? &(struct gguf_compare_counts)GGUF_COMPARE_COUNTS_INIT : NULL,
            &err));
    REFUSED(gguf_tensor_compare(leaf, leaf, NULL, NULL, &err));
    GIVES(GGUF_OK, gguf_tensor_compare(leaf, leaf, NULL, &diff, &err));
    DEFAULTS(gguf_rope, GGUF_ROPE_INIT,
             built_status(gguf_op_rope(ctx, leaf, leaf, NULL, p)));
    DEFAULTS(gguf_custom, GGUF_CUSTOM_INIT,
             built_status(gguf_op_map_1(ctx, leaf, p)));
    DEFAULTS(gguf_custom, GGUF_CUSTOM_INIT,
             built_status(gguf_op_map_2(ctx, leaf, leaf, p)));
    DEFAULTS(gguf_custom, GGUF_CUSTOM_INIT,
             built_status(gguf_op_map_3(ctx, leaf, leaf, leaf, p)));
    DEFAULTS(
        gguf_custom, GGUF_CUSTOM_INIT,
        built_status(gguf_op_custom(ctx, GGUF_DTYPE_F32, ne, 1, &leaf, p)));
    REFUSED(built_status(gguf_op_map_1(ctx, leaf, NULL)));
    DEFAULTS(gguf_window, GGUF_WINDOW_INIT,
             built_status(gguf_op_im2col(ctx, leaf, p, GGUF_DTYPE_F32)));
    DEFAULTS(gguf_window, GGUF_WINDOW_INIT,
             built_status(gguf_op_conv_2d(ctx, leaf, leaf, p)));
    DEFAULTS(gguf_window, GGUF_WINDOW_INIT,
             built_status(gguf_op_pool_2d(ctx, leaf, GGUF_POOL_MAX, p)));
    REFUSED(built_status(
        gguf_op_custom(ctx, GGUF_DTYPE_F32, NULL, 1, &leaf, NULL)));
    REFUSED(
        built_status(gguf_op_custom(ctx, GGUF_DTYPE_F32, ne, 1, NULL, NULL)));
}

static void check_backends(void)
{
    struct gguf_buft *buft;
    struct gguf_driver *d;
    struct gguf_backend *b;
    struct gguf_event *e;
    struct gguf_pool *pool;
    ZERO_DEFAULTS(gguf_pool_params, gguf_pool_create(&pool, p, &err));
    DEFAULTS(gguf_cpu_params, GGUF_CPU_PARAMS_INIT,
             gguf_cpu_backend_create(&b, p, &err));
    DEFAULTS(gguf_cpu_params, GGUF_CPU_PARAMS_INIT,
             gguf_cpu_driver_create(&d, p, &err));
    DEFAULTS(gguf_blas_params, GGUF_BLAS_PARAMS_INIT,
             gguf_blas_backend_create(&b, p, &err));
    DEFAULTS(gguf_blas_params, GGUF_BLAS_PARAMS_INIT,
             gguf_blas_driver_create(&d, p, &err));
    DEFAULTS(gguf_host_buft_params, GGUF_HOST_BUFT_PARAMS_INIT,
             gguf_host_buft_create(&buft, p, &err));
    DEFAULTS(gguf_buft_params, GGUF_BUFT_PARAMS_INIT,
             gguf_buft_create(&buft, p, &err));
    DEFAULTS(gguf_driver_params, GGUF_DRIVER_PARAMS_INIT,
             gguf_driver_create(&d, p, &err));
    DEFAULTS(gguf_device_params, GGUF_DEVICE_PARAMS_INIT,
             gguf_driver_add_device(driver, p, NULL, &err));
    DEFAULTS(gguf_backend_params, GGUF_BACKEND_PARAMS_INIT,
             gguf_backend_create(&b, device, p, &err));
    REFUSED(gguf_event_wrap(&e, device, NULL, NULL, NULL, &err));
}

static void check_imatrix(void)
{
    struct gguf_imatrix *im;
    must_succeed(gguf_imatrix_create(&im, NULL, &err));
    REFUSED(gguf_imatrix_entry(im, 0, NULL, &err));
    REFUSED(gguf_imatrix_stats(im, 0, NULL, &err));
    REFUSED(gguf_imatrix_sensitivity(im, 0, NULL, &err));
    gguf_imatrix_destroy(im);
}

/* ---- callbacks ---- */

static enum gguf_status run_nothing(void)
{
    gguf_pool_run(NULL, (struct gguf_pool_callback){ NULL, NULL });
    return GGUF_OK;
}

static void check_callbacks(void)
{
    struct gguf_batch batch = GGUF_BATCH_INIT;
    const struct gguf_batch *one = &batch;
    const struct gguf_allocator no_alloc = { .struct_size = sizeof(
                                                 struct gguf_allocator) };
    const struct gguf_write_callback no_write = { NULL, NULL };
    const struct gguf_sched_eval no_eval = { NULL, NULL, NULL };
    const struct gguf_profile_callback no_profile = { NULL, NULL };
    const struct gguf_abort_callback no_abort = { NULL, NULL };
    struct gguf_meta *m;
    gguf_cpu_set_abort_fn *set_abort = (gguf_cpu_set_abort_fn *)(void (*)(
        void))gguf_driver_find_function(driver, "set_abort");
    REFUSED(gguf_json_walk((struct gguf_str){ "[]", 2 },
                           (struct gguf_json_callback){ NULL, NULL }, &err));
    REFUSED(gguf_gradients_build(ctx, graph, NULL, NULL, &err));
    REFUSED(gguf_gradients_missing(
        graph, NULL, &(const struct gguf_tensor *){ NULL }, &err));
    REFUSED(gguf_graph_dump(graph, NULL, no_write, &err));
    REFUSED(gguf_graph_dump_dot(graph, NULL, no_write, &err));
    must_succeed(gguf_sched_alloc(sched, graph, &err));
    REFUSED(gguf_sched_dump(sched, no_write, &err));
    REFUSED(gguf_sched_dump_plan(sched, no_write, &err));
    GIVES(GGUF_OK, gguf_sched_set_eval(sched, no_eval, &err));
    GIVES(GGUF_OK, gguf_sched_set_profile(sched, no_profile, &err));
    GIVES(GGUF_OK, gguf_session_set_profile(r.session, no_profile, &err));
    batch.n = 4;
    batch.token = tok;
    GIVES(GGUF_OK, gguf_session_decode_layered(r.session, &one, 1, outputs,
                                               silent, &err));
    REFUSED(gguf_session_decode_layered(r.session, &one, 1, no_outputs, silent,
                                        &err));
    GIVES(GGUF_OK, run_nothing());
    GIVES(GGUF_E_NOMEM, gguf_meta_create(&m, &no_alloc, &err));
    GIVES(GGUF_OK, set_abort(r.backend, no_abort, &err));
}

int main(void)
{
    if (!scratch_make(dir) || chdir(dir) || gg_os_make_folder("out"))
        return 99;
    open_model();
    open_rest();
    check_files();
    check_checks();
    check_numbers();
    check_folder();
    check_models();
    check_evaluation();
    check_graphs();
    check_backends();
    check_imatrix();
    check_callbacks();
    close_all();
    if (chdir(".."))
        return 99;
    scratch_clean(dir);
    if (rmdir(dir))
        return 99;
    return done_testing();
}
