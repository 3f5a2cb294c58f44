/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-ppl */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/opt.h"
#include "tools/common/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) OPT_AT(struct ppl_options, member)
#define EV         .at = offsetof(struct ppl_options, ev)

static const struct opt_word base_forms[] = {
    { "upstream", GGUF_BASELINE_LLAMA },
    { "compact", GGUF_BASELINE_COMPACT },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What is evaluated:" },
    { "-m --model", "MODEL",
      "GGUF file, or any shard, the folder or the prefix of a split "
      "model; may be repeated with --base",
      OPT_LIST, AT(models) },
    { "--base", "MODEL",
      "compare with this model, or with its saved logits: KL "
      "divergence of the predictions",
      OPT_STR, AT(base) },
    { "-f --file", "TEXT",
      "text, plain or compressed; - is standard input; may be "
      "repeated, or a pattern such as '*.txt'",
      OPT_LIST, AT(texts.args) },
    { .group = &ev_chunks, EV },
    { "--hellaswag", NULL,
      "TEXT has HellaSwag tasks: choose one of four endings", OPT_FLAG,
      AT(task), .value = 1 + GGUF_TASK_HELLASWAG },
    { "--winogrande", NULL,
      "TEXT has WinoGrande tasks: choose one of two names", OPT_FLAG, AT(task),
      .value = 1 + GGUF_TASK_WINOGRANDE },
    { "--multiple-choice", NULL,
      "TEXT has questions with several answers: choose one", OPT_FLAG,
      AT(task), .value = 1 + GGUF_TASK_CHOICE },
    { .help = "How it is evaluated:" },
    { .group = &ev_context, EV },
    { .group = &ev_threads, EV },
    { .help = "What is printed and saved:" },
    { .group = &ev_output, EV },
    { "--per-token", "FILE",
      "save a line for each scored token: CSV if FILE ends in .csv, "
      "else JSON lines",
      OPT_OUT, AT(per_token) },
    { "--plot", "FILE.svg",
      "save a picture: perplexity over the text, and with --base also "
      "divergence",
      OPT_OUT, AT(plot) },
    { "--html", "FILE.html",
      "save a page with tables, charts and all settings", OPT_OUT, AT(html) },
    { "--save-base", "FILE",
      "save the model's logits, to compare other models with them by "
      "--base",
      OPT_OUT, AT(save_base) },
    { "--force", NULL, "replace existing files; accept text that is not UTF-8",
      OPT_FLAG, AT(ev.force) },
    { .help = "Texts:", .rare = true },
    { "--field", "NAME",
      "each line of TEXT is a JSON object; evaluate its member NAME as "
      "a text of its own",
      OPT_STR, AT(field) },
    { "--skip-short", NULL,
      "skip texts that are too short, if there are several texts", OPT_FLAG,
      AT(skip_short) },
    { "--ppl-stride", "N",
      "overlapping windows of -c tokens, N apart; each token is scored "
      "once (default: 0, no overlap)",
      OPT_UINT, AT(stride), .min = 0, .max = EV_MOST_TOKENS },
    { "--hf", NULL,
      "windows of Hugging Face's guide: no BOS, stride 512, or half of -c if "
      "-c is 512 or less",
      OPT_FLAG, AT(hf) },
    { "--compat", NULL,
      "print llama.cpp's figure where it differs: with --ppl-stride or "
      "--winogrande",
      OPT_FLAG, AT(compat) },
    { "--tasks --hellaswag-tasks --winogrande-tasks --multiple-choice-tasks",
      "N",
      "evaluate N random tasks, always the same of a file (default: 0, "
      "all tasks)",
      OPT_UINT, AT(n_tasks), .min = 0, .max = UINT32_MAX },
    { .help = "Bases:", .rare = true },
    { "--base-precision", "KIND", "precision of the base (default: exact)",
      OPT_WORD, AT(base_precision), .words = ev_precision_words },
    { "--base-backend", "NAME[,NAME]...",
      "backends of the base (default: the model's)", OPT_STR,
      AT(base_backends) },
    { "--base-form", "FORM",
      "upstream (llama-perplexity's form), or compact: 1/10 of its "
      "size (default: upstream)",
      OPT_WORD, AT(base_form), .words = base_forms },
    { "--kl-divergence-base --save-all-logits", "FILE",
      "same as --base if --kl-divergence is given, else as --save-base",
      OPT_STR, AT(kl_base) },
    { "--kl-divergence", NULL,
      "compare with the file of --kl-divergence-base instead of "
      "writing it",
      OPT_FLAG, AT(kl) },
    { .help = "Several processes:", .rare = true },
    { "--save-part", "FILE",
      "save the scores of the evaluated chunks, for --merge-parts", OPT_OUT,
      AT(part) },
    { "--merge-parts", NULL,
      "evaluate nothing; merge the parts that are given and print the "
      "figures of one evaluation",
      OPT_FLAG, AT(merge_parts) },
    { "--mpi", NULL,
      "run as one rank of an MPI job: ranks share the chunks, rank 0 "
      "prints (build: --with-mpi)",
      OPT_FLAG, AT(mpi) },
    { .group = &ev_speed, EV },
    { .group = &ev_layer_major, EV },
    ROW_REFUSED("--ppl-output-type", "N",
                "--per-token FILE saves a line for each token"),
    ROW_REFUSED("--in-file --chunk --from-chunk", "X",
                "--chunks A..B selects the chunks"),
    { .group = &ev_all_rare, EV },
    { .names = NULL },
};

#define TASK  "--hellaswag --winogrande --multiple-choice"
#define BASE  "--base --kl-divergence-base"
#define FILES "--per-token --plot --html"

static const struct opt_rule rules[] = {
    { NULL, OPT_NEEDS, "--model --merge-parts" },
    { NULL, OPT_NEEDS, "--file " BASE " --merge-parts" },
    { "--merge-parts", OPT_EXCLUDES,
      "--model --file " BASE " --save-base --save-part --per-token " TASK },
    { TASK, OPT_EXCLUDES, NULL },
    { TASK, OPT_EXCLUDES,
      BASE " --save-base " FILES " --field --skip-short --ppl-stride --hf "
           "--layer-major" },
    { "--tasks", OPT_NEEDS, TASK },
    { "--compat", OPT_NEEDS, TASK " --ppl-stride" },
    { "--compat", OPT_EXCLUDES, "--hf" },
    { "--base --save-base --kl-divergence-base", OPT_EXCLUDES, NULL },
    { "--field --skip-short", OPT_NEEDS, "--file" },
    { "--save-base", OPT_EXCLUDES, "--field --skip-short" },
    { "--kl-divergence", OPT_NEEDS, "--kl-divergence-base" },
    { "--base-precision --base-backend", OPT_NEEDS, BASE },
    { "--base-form", OPT_NEEDS, "--save-base --kl-divergence-base" },
    { "--layer-major", OPT_EXCLUDES, "--base --check-activations" },
    { "--mpi", OPT_EXCLUDES, "--merge-parts --save-base --layer-major" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-ppl",
    "[OPTION]... -m MODEL -f TEXT\n"
    "[OPTION]... -m MODEL [-m MODEL]... --base MODEL -f TEXT\n"
    "[OPTION]... -m MODEL [-m MODEL]... --base LOGITS\n"
    "[OPTION]... -m MODEL -f TASKS --hellaswag\n"
    "[OPTION]... --merge-parts PART...",
    "Compute the perplexity of a model on a text, with its standard error. The "
    "text is cut into chunks, and the second half of each chunk's tokens is "
    "scored. With --base, compare models with the one that they were made "
    "from.",
    table,
    rules,
    "[PART]...",
    NULL
};

/* ---- values that follow from several options ---- */

/* End the program if the name of a file lacks its ending, by which viewers
 * choose the format. */
static void check_ending(const char *option, const char *path,
                         const char *ending)
{
    const size_t n = path ? strlen(path) : 0, k = strlen(ending);
    if (path && (n <= k || strcmp(path + n - k, ending) != 0))
        opt_usage("%s: '%s' does not end in %s", option, path, ending);
}

/* Set base, model and save_base, and the default context. */
static void choose_base(struct ppl_options *o)
{
    if (o->merge_parts)
        return;
    o->model = o->models.arg[0];
    if (o->kl_base)
        *(o->kl ? &o->base : &o->save_base) = o->kl_base;
    if (o->mpi && o->save_base)
        opt_usage("'--mpi' and '--kl-divergence-base' without --kl-divergence "
                  "exclude each other");
    o->base_is_saved = o->base && gguf_path_is_baseline(o->base);
    if (o->models.n > 1 && !o->base)
        opt_usage("%zu models need --base: the model to compare them with",
                  o->models.n);
    if (!o->texts.args.n && !o->base_is_saved)
        opt_usage(
            "--file is missing; only a file of logits contains its text");
    if (!o->ev.n_ctx && !o->base_is_saved)
        o->ev.n_ctx = 512;
}

/* Set the stride and, with --compat, the length of windows. */
static void choose_stride(struct ppl_options *o)
{
    if (!o->stride && !o->hf)
        return;
    if (o->base_is_saved || o->save_base)
        opt_usage("%s: a file of logits has chunks that do not overlap",
                  o->hf ? "--hf" : "--ppl-stride");
    if (!o->stride)
        o->stride = o->ev.n_ctx > 512 ? 512 : o->ev.n_ctx / 2;
    uint32_t most = o->ev.n_ctx;
    if (o->compat) {
        o->ev.n_ctx = gguf_scan_strided_ctx(o->ev.n_ctx, o->stride);
        most = o->ev.n_ctx - 1;
    }
    if (o->stride > most)
        opt_usage("--ppl-stride %" PRIu32
                  " is longer than the windows of %" PRIu32
                  " tokens: give a larger -c",
                  o->stride, o->ev.n_ctx);
}

/* With --mpi each rank reads the text, which thus cannot be standard input. */
static void check_stdin(const struct ppl_options *o)
{
    for (size_t i = 0; o->mpi && i < o->texts.args.n; i++)
        if (!strcmp(o->texts.args.arg[i], "-"))
            opt_usage(
                "--mpi: only one rank has standard input, and every rank "
                "reads the text: give a file");
}

int ppl_parse_options(struct ppl_options *o, int argc, char **argv)
{
    *o = (struct ppl_options){ .ev = EV_OPTIONS_INIT };
    const int n = opt_parse(&tool, argc, argv, o);
    if (o->merge_parts && !n)
        opt_usage("--merge-parts: PART is missing");
    if (!o->merge_parts && n)
        opt_usage("'%s' is one argument too many: only --merge-parts takes "
                  "operands",
                  argv[1]);
    check_stdin(o);
    choose_base(o);
    choose_stride(o);
    check_ending("--plot", o->plot, ".svg");
    check_ending("--html", o->html, ".html");
    ev_finish_options(&o->ev);
    return n;
}

void ppl_clear_rank_outputs(struct ppl_options *o)
{
    if (!ranks_is_worker()) /* rank 0 prints and writes for all */
        return;
    o->ev.quiet = o->ev.no_digest = true;
    o->part = o->per_token = o->plot = o->html = NULL;
}

void ppl_options_fini(struct ppl_options *o)
{
    opt_list_fini(&o->models);
    ev_files_fini(&o->texts);
    ev_options_fini(&o->ev);
}

void ppl_set_base(struct ev_model *m, const struct ppl_options *o)
{
    m->precision = (unsigned)o->base_precision;
    if (o->base_backends)
        m->backend_names = o->base_backends;
}

void ppl_set_run(struct ppl_run *r, const struct ppl_options *o)
{
    r->o = o;
    r->e.o = &o->ev;
    r->e.has_base = o->base && !o->base_is_saved;
    r->e.wants_digest = (o->ev.json || o->html || o->part) && !o->ev.no_digest;
    r->e.text = o->text;
    r->e.tokens_file = o->base;
    r->e.mode = o->task ? "tasks" : NULL;
    r->e.scan = (struct gguf_scan_params)GGUF_SCAN_PARAMS_INIT;
    r->e.scan.n_ctx = o->ev.n_ctx;
    r->e.scan.stride = o->stride;
    if (o->stride)
        r->e.scan.cut = o->compat ? GGUF_SCAN_STRIDED : GGUF_SCAN_SLIDING;
    r->e.scan.no_bos = o->hf || r->e.scan.cut == GGUF_SCAN_STRIDED;
    r->e.hf = o->hf;
    r->e.field = o->field;
    r->e.skip_short = o->skip_short;
    r->e.lone_chunk = o->base_is_saved;
}
