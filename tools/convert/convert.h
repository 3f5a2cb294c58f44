/* SPDX-License-Identifier: MIT */
/* convert.h - declarations that the parts of gguf-convert share
 *
 * The code of gguf-quantize handles outputs, types, importance data and keys.
 */
#ifndef TOOLS_CONVERT_CONVERT_H
#define TOOLS_CONVERT_CONVERT_H

#include "tools/quantize/quantize.h"

#include <gguf/convert.h>
#include <gguf/ppl.h>

/* Evaluation of outputs before they are kept. */
struct verify {
    const char *text; /* path of the text; NULL: no evaluation */
    uint64_t max_text;
    char *data; /* content of the text */
    size_t size;
    struct gguf_tokens tokens;
    uint64_t n_chunks; /* most chunks; after verify_begin() their number */
    uint32_t n_ctx;    /* tokens of a chunk; 0: verify_begin() chooses */
    /* greatest perplexity that is kept; 0: size of the vocabulary */
    double max;
    double factor; /* greatest ratio to the first output; 0: any */
    bool max_given;
    struct gguf_ppl sums[MAX_TARGETS];
    /* an evaluation failed; it was refused for its perplexity */
    bool failed, refused;
};

/* Output for the projector, beside the language model. */
struct projector_output {
    const char *arg; /* OUT=TYPE; NULL: none */
    struct target target;
    struct gguf_convert *from;
};

struct convert_options {
    struct options q; /* q.in is the folder to convert */
    struct gguf_convert_params params;
    struct opt_list ignore;
    struct gguf_convert *from;
    const char *folder; /* folder to write from the file q.in, or NULL */
    struct gguf_folder_params back;
    struct verify verify;
    struct projector_output projector;
};
#define CONVERT_OPTIONS_INIT                                                  \
    {                                                                         \
        .q = OPTIONS_INIT, .params = GGUF_CONVERT_PARAMS_INIT,                \
        .back = GGUF_FOLDER_PARAMS_INIT, .verify = {                          \
            .n_chunks = 4,                                                    \
            .max_text = UINT64_C(1) << 30                                     \
        }                                                                     \
    }

/* options.c: parse the command line into o, which is initialised. Ends the
 * program after an error or after printing text that was asked for. */
void parse_convert(struct convert_options *o, int argc, char **argv);
void convert_options_fini(struct convert_options *o);

/* projector.c: plan the output of --mmproj-output, and write it; both do
 * nothing without that option. Call projector_fini() at the end. */
enum gguf_status projector_plan(struct convert_options *o, const char **about,
                                struct gguf_error *err);
enum gguf_status projector_write(struct convert_options *o,
                                 const struct gguf_paths *noted,
                                 struct progress *bar, const char **about,
                                 struct gguf_error *err);
void projector_fini(struct projector_output *p);

/* to_safetensors.c: write o->folder. */
enum gguf_status write_folder(struct convert_options *o, struct progress *bar,
                              const char **about, struct gguf_error *err);

/* verify.c: evaluate outputs before they are kept.
 *
 * verify_read() reads the text before the conversion; false after a message.
 * verify_begin(), once the jobs are planned, checks that the text can be
 * evaluated with such a model. verify_check() is a gguf_quant_check_fn whose
 * user is the options. verify_format() writes "perplexity 8.21 +/- 0.3 on ...".
 */
bool verify_read(struct convert_options *o);
enum gguf_status verify_begin(struct convert_options *o, const char **about,
                              struct gguf_error *err);
enum gguf_status verify_check(void *user, size_t job,
                              const struct gguf_file *output,
                              struct gguf_error *err);
void verify_format(const struct verify *v, const struct gguf_ppl *sums,
                   char *out, size_t size);
void verify_fini(struct verify *v);

/* print.c: print the kind of model that was recognised, and the source of each
 * tensor, as a table or as one JSON document. */
void print_kind(const struct convert_options *o);
void print_sources(const struct convert_options *o);
void print_convert_json(const struct convert_options *o, double seconds);

#endif
