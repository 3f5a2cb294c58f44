/* SPDX-License-Identifier: MIT */
/* quant.h - quantize a model file
 *
 * A job reads a GGUF file (or a set of shards) and writes another one in which
 * each tensor has the type that a recipe chose for it. The job works on names
 * and shapes alone, so that it accepts any architecture. Its calls, in order:
 *
 *  1. gguf_quant_create() opens the input and makes the plan: the type of each
 *     tensor. It reads no weights.
 *  2. gguf_quant_n_tensors(), gguf_quant_tensor() and gguf_quant_totals() show
 *     the plan. Optionally, gguf_quant_fit_size() (target.h) changes it to
 *     meet a file size.
 *  3. gguf_quant_run() reads, encodes and writes the weights, in bounded
 *     memory. It may be called again, for another path.
 *  4. gguf_quant_destroy() frees the job.
 *
 *     struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
 *     gguf_recipe_preset(&recipe, "Q4_K_M", NULL, &err);
 *     p.recipe = recipe;
 *     gguf_quant_create(&job, "model-f16.gguf", &p, &err);
 *     gguf_quant_run(job, "model-q4km.gguf", NULL, &err);
 *     gguf_quant_destroy(job);
 *     gguf_recipe_destroy(recipe);
 *
 * Ownership: objects that the params call "kept" must outlive the job.
 *
 * Determinism: the bytes written depend on the input and the params alone. The
 * number of threads, the memory limit and the instruction set do not change
 * them.
 *
 * NVFP4: a tensor of this type may have a second scale, a tensor NAME.scale
 * beside it (gguf-quants(7)). When such weights are encoded in another type,
 * they are multiplied by the scale first, and the scale is left out of the
 * output. With params.compat the scale stays a tensor and the weights are
 * encoded without it, which is equivalent for llama.cpp.
 *
 * Threads: a job is used by one thread at a time.
 */
#ifndef GGUF_QUANT_H
#define GGUF_QUANT_H

#include <gguf/file.h>
#include <gguf/imatrix.h>
#include <gguf/paths.h>
#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/recipe.h>
#include <gguf/split.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_quant;

/* Type for the tensors whose names match a pattern. The first matching item of
 * an array decides. Later versions add no members to this struct. */
struct gguf_quant_override {
    /* Perl regular expression of at most 1000 bytes, searched anywhere in the
     * name; letter case is ignored. */
    const char *pattern;
    uint32_t dtype; /* type id */
};

/* LoRA adapter to merge into the weights (adapter.h describes its file).
 * Later versions add no members to this struct.
 *
 * For each pair of the adapter, its product is added to the weight while that
 * is read: the weight is decoded, w + factor * product is computed in single
 * precision (the sum in the order of the rank, one adapter after another), and
 * the result is encoded like any other weight.
 *
 * A weight with a product is encoded again even if it keeps its type. For a
 * quantized type this needs params.allow_requantize. */
struct gguf_quant_lora {
    const struct gguf_file *file; /* open file of the adapter; kept */
    float scale;                  /* -1e9 to 1e9; 0: not merged */

    /* File name to record in the key quantize.lora.files, which every reader of
     * the output sees; borrowed. NULL: an empty name. */
    const char *name;
};

/* Treatment of weights that are NaN, infinite or too large for their new type.
 * gguf-quants(7) has a table of limits: 65504 for F16, 2688 for NVFP4 without a
 * second scale, 5e5 to 3e8 for most others. */
enum gguf_nonfinite {
    /* Fail with GGUF_E_NONFINITE; the message has tensor, row and column. */
    GGUF_NONFINITE_ERROR,
    /* Count the weight and replace it by zero, in float tensors that are copied
     * too (unless the recipe keeps all types, such as COPY). If a weight is too
     * large for its block, the whole block becomes zero. */
    GGUF_NONFINITE_ZERO,
    GGUF_NONFINITE_KEEP /* count the weight and encode it as it is */
};

struct gguf_quant_params {
    size_t struct_size;                     /* set by GGUF_QUANT_PARAMS_INIT */
    const struct gguf_allocator *allocator; /* kept; NULL: malloc */
    const struct gguf_limits *limits;       /* limits of the files; kept; NULL:
                                             * defaults */
    const struct gguf_recipe *recipe;       /* required; kept */
    struct gguf_pool *pool; /* kept; NULL: the calling thread alone */

    const struct gguf_imatrix *imatrix; /* importance data; kept; NULL: none */

    /* File name to record in the key quantize.imatrix.file, which every reader
     * of the output sees; kept. NULL: the key is not written. */
    const char *imatrix_name;

    const struct gguf_quant_override *overrides; /* types by name; borrowed */
    size_t n_overrides;                          /* number of overrides */

    /* Type of output.weight, or of the token embedding in a model that has no
     * output.weight. NULL: the recipe decides. */
    const struct gguf_dtype_info *output_type;
    const struct gguf_dtype_info *embedding_type; /* type of token_embd.weight;
                                                   * NULL: the recipe decides */
    bool pure;             /* every tensor gets the recipe's base type */
    bool leave_output;     /* output.weight keeps its type */
    bool allow_requantize; /* accept weights that are quantized already */
    bool compat;           /* the bytes of llama-quantize, oddities included */
    enum gguf_nonfinite nonfinite; /* NaN, infinite and too large weights */

    /* Keys to set in the output; borrowed; NULL: none. Conditions of the recipe
     * see these values too. Keys split.* are refused: they follow from the
     * output files. */
    const struct gguf_meta *meta;

    /* Numbers of layers to leave out; borrowed. Later layers are
     * renumbered. Arrays of the metadata with one element per layer are
     * shortened: those of the architecture's keys or, without
     * general.architecture, those of the only key *.block_count. */
    const uint32_t *prune;
    size_t n_prune; /* number of layers to leave out */

    /* One output file for each file of the input, with the same tensors. Not
     * together with max_file_size. */
    bool keep_split;
    uint64_t max_file_size; /* bytes of each output file; 0: one file */

    /* Write NAME.scale beside each tensor NAME.weight that becomes NVFP4: one
     * scale per matrix, its largest weight divided by the largest value that
     * blocks hold, so that the range of the block scales is used in full. The
     * input is read twice. No effect with compat. */
    bool outer_scales;

    /* Decode each chunk again after encoding, and fill gguf_quant_loss. Takes
     * 64 bytes per chunk of rows beyond max_memory: about 17 MB for a model of
     * 70 billion weights. */
    bool measure;
    uint64_t max_memory; /* bytes of buffers; 0: 128 MiB */

    struct gguf_progress_callback progress; /* unit: bytes of the input */

    /* Adapters to merge; the array is borrowed. Not with compat. */
    const struct gguf_quant_lora *loras;
    size_t n_loras; /* number of adapters */

    /* Opens inputs that are not files of this machine (reader.h); kept; NULL:
     * none. */
    const struct gguf_opener *opener;

    /* Type id, or GGUF_REPACK_...: move rows of ik_llama.cpp's types into
     * groups of rows, or out of them, without a change of value. A type with
     * groups, such as IQ4_K_R4: tensors of IQ4_K get it. A plain type: its
     * groups become rows. Needs a recipe that keeps all types (COPY). 0:
     * none. */
    uint32_t repack_to;
};
/* Values of repack_to. Vectors, the token embeddings and tensors with
 * incomplete groups stay plain, as ik_llama.cpp requires. Q8_K_R8 and Q8_K_R16
 * have no plain type: they become Q8_0 with the same values. */
#define GGUF_REPACK_PLAIN       0xfffffffeu /* all groups become rows */
#define GGUF_REPACK_INTERLEAVED 0xffffffffu /* all rows become groups */
#define GGUF_QUANT_PARAMS_INIT  GGUF_INIT(struct gguf_quant_params)

/* ------------------------------------------------------------ the plan --- */

/* Open a model and choose a type for each of its tensors.
 *
 * out      Receives the job. NULL after a failure.
 * path     Path of a file, of any shard of a set, of a folder that holds one
 *          set, or the prefix of a set.
 * params   How to quantize; recipe must be set.
 *
 * Free *out with gguf_quant_destroy().
 *
 * GGUF_E_UNSUPPORTED  A quantized tensor would be encoded again and
 *                     allow_requantize is not set; or prune is set and the
 *                     metadata do not say which *.block_count is meant.
 * GGUF_E_NOTFOUND     A pattern of overrides matches no tensor that can be
 *                     quantized; a pattern of the recipe, in a rule without a
 *                     condition, matches no tensor; a layer of prune does not
 *                     exist (accepted with compat).
 * GGUF_E_FORMAT       A pattern has a syntax error.
 * GGUF_E_LIMIT        A pattern is too long or takes too many steps to search;
 *                     a tensor or the metadata alone exceed max_file_size.
 * GGUF_E_MISMATCH     The importance data fit another model: they share no
 *                     name with the input (accepted with compat) or have
 *                     another number of columns. Data for token_embd.weight
 *                     with another number of columns are ignored instead.
 *                     Or a file of loras is not an adapter, or belongs to
 *                     another architecture.
 * GGUF_E_TENSOR       The scale of an NVFP4 tensor has another type or shape,
 *                     or is not finite; a tensor of an adapter is not half of a
 *                     pair, or the model has no weight for it, or one of
 *                     another shape.
 * GGUF_E_INVALID      params has no recipe, a type that nothing is encoded in,
 *                     or members that exclude each other.
 * Other               The statuses of gguf_file_open().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_create(struct gguf_quant **out, const char *path,
                  const struct gguf_quant_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Create a job for an open file.
 *
 * out      Receives the job. NULL after a failure.
 * file     The input: a file, a set, a single shard, or a file in memory
 *          (gguf_file_open_memory). Kept; may serve several jobs.
 * params   How to quantize; recipe must be set.
 *
 * Use it for an input that has no path, or that is open already. A change of
 * the file on disk makes gguf_quant_run() fail where it is noticed.
 *
 * Statuses: those of gguf_quant_create().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_create_file(struct gguf_quant **out, const struct gguf_file *file,
                       const struct gguf_quant_params *params,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a job and close the files that it opened. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_quant_destroy(struct gguf_quant *q);

/* Reason for a tensor's type. */
enum gguf_quant_reason {
    GGUF_REASON_NEVER_QUANTIZED, /* norms, biases, routers and the like */
    GGUF_REASON_LEAVE_OUTPUT,    /* params.leave_output */
    GGUF_REASON_EMBEDDING_TYPE,  /* params.embedding_type */
    GGUF_REASON_OUTPUT_TYPE,     /* params.output_type */
    GGUF_REASON_OVERRIDE,        /* a pattern of params.overrides */
    GGUF_REASON_BASE,   /* base type of the recipe: pure, or no rule holds */
    GGUF_REASON_RULE,   /* a rule of the recipe */
    GGUF_REASON_TARGET, /* gguf_quant_fit_size() */

    /* The tensor is a lookup table beside the token embeddings, and gets Q8_0
     * or better. Not with compat or pure, nor where a rule names it. */
    GGUF_REASON_LOOKUP_TABLE
};

/* Encoding error of a tensor: the differences between the weights that were
 * read and those that the written blocks decode to. Sums are made in a fixed
 * order: every member but seconds is the same for any number of threads. Only
 * the library makes it; later versions may add members at its end. */
struct gguf_quant_loss {
    bool measured;   /* false: nothing was encoded, or measure was not set */
    double rms;      /* RMS error */
    double max;      /* largest absolute error */
    double rms_in;   /* RMS of the weights that were read */
    double weighted; /* RMS error weighted with the importance data; rms
                      * without such data */
    double snr;      /* signal-to-noise ratio, 20 log10(rms_in / rms) dB;
                      * infinite for no error */
    double seconds;  /* processor time of all threads, to decode, encode and
                      * measure */
};

/* One tensor of the output. All pointers belong to the job. Only the library
 * makes it; later versions may add members at its end. */
struct gguf_quant_tensor {
    const char *name; /* unescaped; print it with gguf_text_escape() */
    unsigned n_dims;  /* number of dimensions */
    int64_t ne[GGUF_MAX_DIMS]; /* elements per dimension, fastest first; 1 from
                                * n_dims on */
    uint64_t n_elements;       /* number of weights */
    uint32_t from;             /* type id in the input */
    uint32_t to;               /* type id in the output */

    /* Type id that was chosen. `to` differs from it where the rows are not a
     * multiple of its block. */
    uint32_t wanted;

    uint64_t from_size;            /* bytes in the input */
    uint64_t to_size;              /* bytes in the output */
    enum gguf_quant_reason reason; /* reason for the type */
    const char *rule; /* reason as one line of text, such as the rule itself */

    bool has_imatrix;   /* importance data are used for this tensor */
    bool needs_imatrix; /* its type requires importance data that are missing:
                         * gguf_quant_run() will fail */
    bool bad_imatrix;   /* its importance data have another shape: not used */

    /* Importance data are given and would weigh its errors, but have no usable
     * entry for it. Never set for the output matrix and token embeddings, for
     * which data are seldom collected. */
    bool lacks_imatrix;

    /* Number of columns whose importance was NaN, infinite, negative or above
     * 2^64, and was replaced by the mean of the others. If all columns of a
     * matrix were zero, all are counted and become 1. */
    uint64_t n_mended;
    bool copied; /* its bytes are copied, not encoded */

    /* Number of weights that are NaN or infinite, or too large for the type in
     * one of the outputs. Filled by gguf_quant_run(). */
    uint64_t n_nonfinite;
    /* Index of the first such weight; its row is first_nonfinite / ne[0]. */
    uint64_t first_nonfinite;

    double noise; /* expected noise (target.h), for GGUF_REASON_TARGET */
    struct gguf_quant_loss loss; /* filled by gguf_quant_run() */
    bool merged;                 /* a product of an adapter is added to it */
};

/* Number of tensors of the output. Since: 0.1 */
GGUF_API size_t gguf_quant_n_tensors(const struct gguf_quant *q);

/* Tensor i in the order of the output. NULL if i is out of range. The result
 * belongs to the job. Since: 0.1 */
GGUF_API const struct gguf_quant_tensor *
gguf_quant_tensor(const struct gguf_quant *q, size_t i);

/* Sums over all tensors of a job. */
struct gguf_quant_totals {
    size_t struct_size;   /* set by GGUF_QUANT_TOTALS_INIT; members
                           * beyond this size are not filled */
    uint64_t n_elements;  /* weights */
    uint64_t from_size;   /* bytes of tensor data in the input, no padding */
    uint64_t to_size;     /* bytes of tensor data in the output, no padding */
    uint64_t file_size;   /* bytes of all output files */
    uint64_t n_fallbacks; /* tensors whose rows the wanted type did not fit */
    uint64_t n_imatrix;   /* tensors with has_imatrix */
    uint64_t n_needs_imatrix;   /* tensors with needs_imatrix */
    uint64_t n_bad_imatrix;     /* tensors with bad_imatrix */
    uint64_t n_mended;          /* tensors with replaced importances */
    uint64_t n_lacks_imatrix;   /* tensors with lacks_imatrix */
    uint64_t n_imatrix_unknown; /* entries of the importance data for which the
                                 * input has no tensor */
    uint64_t n_nonfinite;       /* weights counted by the last run */
    uint64_t n_kept;            /* tensors that the last run with resume found
                                 * complete */
    uint64_t n_left_out; /* vectors NAME_norm.weight of adapters, which are not
                          * merged (adapter.h) */
};
#define GGUF_QUANT_TOTALS_INIT GGUF_INIT(struct gguf_quant_totals)

/* Copy the totals of a job to *out.
 *
 * GGUF_E_INVALID  out is NULL or its struct_size is 0.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_totals(const struct gguf_quant *q, struct gguf_quant_totals *out,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* ------------------------------------------------------------- the run --- */

/* Accept or refuse a finished output.
 *
 * user     The callback's pointer.
 * job      Number of the job in gguf_quant_run_many(); 0 in gguf_quant_run().
 * output   The output of this job, opened; borrowed.
 * err      Receives the message of a refusal; never NULL.
 *
 * Called once for each job, in order, when all files of the run are complete
 * and on disk but do not have their names yet. Any status but GGUF_OK refuses
 * the output: the run ends with that status and no output gets its name. */
typedef enum gguf_status gguf_quant_check_fn(void *user, size_t job,
                                             const struct gguf_file *output,
                                             struct gguf_error *err);

/* A check function and its pointer. Later versions add no members to this
 * struct. */
struct gguf_quant_check_callback {
    gguf_quant_check_fn *fn; /* NULL: accept every output */
    void *user;              /* passed to fn */
};

struct gguf_quant_improver; /* improve.h */

/* Replace tensors of a finished output by better ones.
 *
 * user      The callback's pointer.
 * job       Number of the job in gguf_quant_run_many(); 0 in gguf_quant_run().
 * improver  Reads and replaces tensors (improve.h); valid during the call.
 * err       Receives the message of a failure; never NULL.
 *
 * Called once for each job, in order, when all files of the run are complete
 * and on disk, before any output is checked. Any status but GGUF_OK ends the
 * run with that status, and no output gets its name. */
typedef enum gguf_status
gguf_quant_improve_fn(void *user, size_t job,
                      struct gguf_quant_improver *improver,
                      struct gguf_error *err);

/* An improve function and its pointer. Later versions add no members to this
 * struct. */
struct gguf_quant_improve_callback {
    gguf_quant_improve_fn *fn; /* NULL: keep the encoded tensors */
    void *user;                /* passed to fn */
};

struct gguf_quant_output {
    size_t struct_size; /* set by GGUF_QUANT_OUTPUT_INIT */
    bool force;   /* replace existing regular files, at the end of the run */
    bool no_sync; /* do not wait for the disk: for tests and scratch files */
    bool resume;  /* keep a journal and continue an interrupted run */
    /* Other files of the program, which no file of the run may be; borrowed;
     * NULL: none. */
    const struct gguf_paths *paths;
    struct gguf_quant_check_callback check; /* accepts or refuses outputs */
    struct gguf_quant_improve_callback improve; /* replaces tensors */

    /* Digest of everything that determines what improve writes, such as its
     * parameters and its text. A resumed run must have the same one. Not used
     * without improve.fn. */
    uint8_t improve_digest[16];
};
#define GGUF_QUANT_OUTPUT_INIT GGUF_INIT(struct gguf_quant_output)

/* Number of output files. It is 1 unless keep_split or max_file_size is set.
 * Several files are named PREFIX-NNNNN-of-NNNNN.gguf, where PREFIX is the path
 * given to gguf_quant_run() without ".gguf". Since: 0.1 */
GGUF_API size_t gguf_quant_n_files(const struct gguf_quant *q);

/* Write the output of a job.
 *
 * q        The job.
 * path     Path of the output.
 * output   How to write it. NULL: the defaults.
 *
 * The file grows under a temporary name and gets its own when it is complete. A
 * failure leaves no new file, and an existing one as it was. Several files get
 * their names together at the end: if one cannot get its name, none does, and
 * replaced files are restored (on file systems with hard links).
 *
 * With output->resume, the file grows as PATH.resume-data, and the journal
 * PATH.resume records each complete tensor with a digest of its bytes (XXH3,
 * 128 bits). A run that fails, is cancelled or is killed leaves both; one that
 * completed no tensor leaves nothing. The next run with resume
 *
 *  - checks that the journal belongs to the same plan: types, metadata,
 *    importance data, version of the library and, for each input file, its
 *    size, modification time, inode, header, and 64 pieces of 4 KiB of data;
 *  - reads the recorded tensors back and keeps those with the right digest;
 *  - makes the others.
 *
 * The result has the bytes of a single run, for any threads and memory. The
 * gguf_quant_loss of a kept tensor is that of the run that made it. A job with
 * several files has one journal and a PATH.resume-data for each file. Files of
 * these names are refused, and not touched, if no run made them, if they belong
 * to another user in a folder like /tmp, or if they have a second hard link.
 *
 * With output->improve, tensors of the complete files may be replaced. The
 * journal records each replaced tensor; the next run with resume keeps it, and
 * makes those again that are incomplete.
 *
 * With output->check, the files are opened and checked before they get their
 * names. A refused output is removed unless resume is set; then the next run
 * would keep its tensors and ask again. Remove it with gguf_quant_discard().
 *
 * A cancelled run returns at once, but without resume the system frees the
 * written blocks when the file is closed: about 0.1 s per gigabyte. A child
 * forked in the progress callback can take over this wait, as the tools do.
 *
 * GGUF_E_EXIST        path exists and force is not set.
 * GGUF_E_MISMATCH     PATH.resume belongs to another plan, is not a journal, or
 *                     is refused for the reasons above; or the input has
 *                     changed since the job was created.
 * GGUF_E_INVALID      Two of the files to read and write are the same file
 *                     (paths.h); or a tensor requires importance data that it
 *                     does not have.
 * GGUF_E_UNSUPPORTED  A type that cannot be decoded or encoded.
 * GGUF_E_NONFINITE    A weight that params.nonfinite does not allow; the
 *                     message has tensor, row and column.
 * GGUF_E_CANCELLED    The progress callback stopped the run. It is called after
 *                     each slice of rows, each write, and every few megabytes
 *                     while the disk is synced; never again after it stopped.
 * GGUF_E_LIMIT        max_memory is too small for the longest row.
 * GGUF_E_IO           A file cannot be read or written; or, with resume,
 *                     another process is running this job.
 * GGUF_E_NOSPACE      The disk is full.
 * GGUF_E_NOMEM        A buffer cannot be allocated.
 * Other               The statuses of a reader (reader.h), of improve and
 *                     of check.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_run(struct gguf_quant *q, const char *path,
               const struct gguf_quant_output *output,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* Write the outputs of several jobs in one pass over their common input. Each
 * weight is read and decoded once.
 *
 * jobs     n jobs, all created from the same path, open file or set.
 * paths    Path of each job's output; all different.
 * n        Number of jobs, at least 1.
 * output   How to write the outputs. NULL: the defaults.
 *
 * Jobs need not have the same tensors: one may leave out some that others
 * write. Pool, max_memory, progress and nonfinite are those of jobs[0]. After a
 * failure no output gets its name.
 *
 * GGUF_E_INVALID  n is 0; the jobs have different inputs or adapters; or jobs
 *                 with and without compat share an NVFP4 tensor that both
 *                 encode. Found before any file is touched.
 * Other           The statuses of gguf_quant_run().
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_run_many(struct gguf_quant *const *jobs, const char *const *paths,
                    size_t n, const struct gguf_quant_output *output,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Remove the journal and unfinished files of an interrupted run with resume.
 *
 * path     Path of the output that was not finished.
 * n        Receives the number of files removed. 0: there was no journal, or it
 *          belongs to another user, is not a journal, or is in use by another
 *          process; it stays then.
 *
 * Removes PATH.resume, and the files of its folder ending in .resume-data that
 * the journal lists. Call it when the unfinished output is not wanted any more,
 * as after a complete run without resume.
 *
 * GGUF_E_IO     A file cannot be removed.
 * GGUF_E_NOMEM  Memory for the journal cannot be allocated.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_quant_discard(const char *path, size_t *n,
                   struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
